--- Compiles generated CUDA C to a CUBIN with NVRTC. Keeps the results in a disk
-- cache, and parses NVRTC's log.
--
-- The log is read after every compile, even a successful one: it contains
-- registers, spills and ptxas's warnings. Lines of the generated source are
-- reported as lines of the user's script.
-- @module cute.jit

local sign = require "cute.lang.signature"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local texts = require "cute.lang.source"

local jit = {}

-- Finds the sections of an ELF file whose names are `prefix` followed by a
-- kernel's name. Sets sizes[kernel's name] to the size of the section in bytes.
local function section_sizes(elf, prefix, sizes)
  if #elf < 64 or elf:sub(1, 5) ~= "\x7fELF\2" then return sizes end
  local shoff = string.unpack("<I8", elf, 41)
  local entsize, count, names = string.unpack("<I2I2I2", elf, 59)
  local function section(i)
    local at = shoff + i * entsize + 1
    if at + 63 > #elf then return nil end
    local name, _, _, _, offset, size = string.unpack("<I4I4I8I8I8I8", elf, at)
    return name, offset, size
  end
  local _, strings = section(names)
  if not strings then return sizes end
  for i = 0, count - 1 do
    local name, _, size = section(i)
    if not name or strings + name >= #elf then break end
    local text = string.unpack("z", elf, strings + name + 1)
    if text:sub(1, #prefix) == prefix then
      sizes[text:sub(#prefix + 1)] = size
    end
  end
  return sizes
end

--- Returns the number of bytes of a kernel's machine code. An instruction has
-- 16 bytes.
---@param cubin string
---@param name string
---@return integer
function jit.code_size(cubin, name)
  return section_sizes(cubin, ".text.", {})[name] or 0
end

--- Parses the compiler's log. Returns the registers, shared memory and other
-- resources of each kernel.
---@param log string      NVRTC's log, with ptxas -v
---@param cubin string|nil
---@return table<string, cute.Resources> kernels
---@return string|nil first name of the first kernel
function jit.resources(log, cubin)
  local kernels, first, now = {}, nil, nil
  for line in log:gmatch "[^\n]+" do
    local entry = line:match "Compiling entry function '([^']+)'"
    local props = line:match "Function properties for ([%w_$.]+)"
    if entry then
      first = first or entry
      kernels[entry] = kernels[entry] or {}
      now = kernels[entry]
    -- `props` may name a device function, which has no entry in `kernels`.
    -- `now` is then nil, so that the lines about the function's registers are
    -- skipped.
    elseif props then
      now = kernels[props]
    elseif now and line:find "bytes stack frame" then
      now.stack = tonumber(line:match "(%d+) bytes stack frame")
      now.spill_stores = tonumber(line:match "(%d+) bytes spill stores")
      now.spill_loads = tonumber(line:match "(%d+) bytes spill loads")
    elseif now and line:find "Used %d+ registers" then
      now.registers = tonumber(line:match "Used (%d+) registers")
      now.barriers = tonumber(line:match "used (%d+) barriers") or 0
      now.smem_static = tonumber(line:match "(%d+) bytes smem") or 0
      now.const = tonumber(line:match "(%d+) bytes cmem%[0%]")
    end
  end
  local const = section_sizes(cubin or "", ".nv.constant0.", {})
  local smem = section_sizes(cubin or "", ".nv.shared.", {})
  for name, size in pairs(const) do
    kernels[name] = kernels[name] or {}
    first = first or name
    kernels[name].const = kernels[name].const or size
    kernels[name].smem_static = kernels[name].smem_static or smem[name] or 0
  end
  return kernels, first
end

-- Replaces the position in the compiler's log by a position in the script:
-- "k.cu(12): error: ..." becomes "gemm.lua:31: error: ... (gemm.cu:12)".
local function map_line(line, name, lines)
  local at, rest = line:match "^k%.cu%((%d+)%): ?(.*)$"
  if not at then return (line:gsub('"k%.cu"', '"' .. name .. '.cu"')) end
  local where = lines and lines[tonumber(at)]
  if not where or where == "" then
    return ("%s.cu:%s: %s"):format(name, at, rest)
  end
  return ("%s: %s (%s.cu:%s)"):format(where, rest, name, at)
end

--- Returns NVRTC's log with line numbers of the script instead of the generated
-- source.
---@param log string
---@param name string              names the source, as `name.cu`
---@param lines table<integer, string>|nil maps a source line to a script line
-- such as "script.lua:31", or "" if there is none
---@return string
function jit.map_log(log, name, lines)
  local out = {}
  for line in log:gmatch "[^\n]*" do
    out[#out + 1] = map_line(line:gsub("%s+$", ""), name, lines)
  end
  while out[#out] == "" do out[#out] = nil end
  return table.concat(out, "\n")
end

-- Returns the lines of the log that need attention: the front end's warnings,
-- and ptxas's remarks (C75xx), which a successful compile also logs.
local function warnings(log)
  local list = {}
  for line in log:gmatch "[^\n]+" do
    if line:find "%(C%d%d%d%d%)" or line:find ": warning" or
       line:find "^ptxas warning" then
      list[#list + 1] = line
    end
  end
  return list
end

-- Spills of at most this number of bytes per thread are not reported.
local MOST_SPILLED = 100

-- Advice on ptxas's remarks, by their codes. C7514: a loop that reads
-- accumulators begins its next iteration while a group of wgmma is running. The
-- group may write other accumulators (tried: ptxas 13.0 and 13.5).
local ADVICE = {C7514 = "; does a wgmma run while a loop that reads "
  .. "accumulators begins its next iteration? end each iteration with "
  .. "warpgroup.wait_group(0)"}

local function losses(out, name)
  local list = {}
  for _, line in ipairs(out.warnings) do
    local code = line:match "%((C7[56]%d%d)%)"
    -- C7519 reports that ptxas adds a wgmma.fence, which costs little.
    if code and code ~= "C7519" then
      list[#list + 1] = line .. (ADVICE[code] or "")
    end
  end
  local r = out.resources
  local spilled = (r.spill_stores or 0) + (r.spill_loads or 0)
  if spilled > MOST_SPILLED then
    list[#list + 1] = ("kernel %s spills %d bytes of registers per thread to "
      .. "memory (%d registers)"):format(name, spilled, r.registers or 0)
  end
  return list
end

local warned = {}

-- Prints each message about the disk cache only once.
local function warn_once(notes)
  for _, note in ipairs(notes) do
    local kind = note:match "^[^:]*"
    if not warned[kind] then
      warned[kind] = true
      io.stderr:write("cutelua: warning: ", core.visible(note), "\n")
    end
  end
end

--- The number of seconds after which a compile reports its progress on a
-- terminal.
jit.patience = 2

--- Compiles CUDA C for one architecture.
---@param source string    CUDA C without includes
---@param opts table arch = "sm_90a"; name = kernel name; lines = a table that
-- maps a source line to a script line such as "script.lua:31"; options = more
-- NVRTC options; cache = false to bypass the disk cache
---@return cute.Compiled|nil
---@return string|nil message
---@return string|nil log
function jit.compile(source, opts)
  local text = opts.lines and texts.without_comments(source) or source
  local later = devices.dry and devices.dry:defer(text, opts)
  if later then return later end
  local name = opts.name or "kernel"
  local waiting = core.isatty(2)
    and ("cutelua: compiling kernel %s for %s ...\n"):format(name, opts.arch)
  local out, message, log, warning = core.jit_compile(text, opts.arch,
    opts.options, opts.cache == false, waiting or nil, jit.patience)
  if waiting and out and not out.cached and out.seconds >= jit.patience then
    local slow = sign.workshop.slow_compile
    if slow then slow(name, out.seconds, opts.lines) end
  end
  if not out then
    if (warning or "") ~= "" then warn_once {warning} end
    if not log or log == "" then return nil, message end
    local explain = sign.workshop.failed_compile
    if not explain then return nil, message, log end
    return nil, explain(source, opts, name, log)
  end
  warn_once(out.notes)
  local first
  out.kernels, first = jit.resources(out.log, out.cubin)
  out.resources = out.kernels[name] or out.kernels[first] or {}
  log = out.log
  -- ptxas reports some problems of wgmma without a line number: that it
  -- serializes them (C7510 to C7519), or that there are not enough registers
  -- (C7602).
  local add_lines = log:find "%(C7[56]%d%d%)" and sign.workshop.with_wgmma_lines
  if add_lines then log = add_lines(source, log) end
  out.log = jit.map_log(log, name, opts.lines)
  out.warnings = warnings(out.log)
  out.losses = losses(out, name)
  out.arch = opts.arch
  return out
end

--- Returns the version of the available NVRTC.
---@return string|nil version such as "13.0"
---@return string|nil message
function jit.version()
  return core.nvrtc_version()
end

return sign.public("jit.", jit, [[
  compile(source: string, opts: {arch cache lines name options}) version()
  code_size(cubin: string, name: string)
  map_log(log: string, name: string, lines?: table)
  resources(log: string, cubin?: string)
]])
-- SPDX-License-Identifier: MIT
