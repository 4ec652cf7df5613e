--- Reports whether a kernel can run on targets that are not present, and which
-- features it lacks there.
--
--     print(k(A, B):preflight("sm_100a", {block = 128}))
--     print(k(A, B):preflight {block = 128})           -- all targets
--
-- The properties of targets are in tables. core/ir/target.h has the
-- requirements of instructions, the features, and the shared memory of a block
-- (PTX ISA: "Target ISA Notes" of each instruction). cute.targets has the
-- limits of SMs. The number of registers comes from NVRTC, if it is installed
-- and supports the target.
--
-- A result has kernel, target, ok, checks = {{what =, ok =, needs =, has =,
-- source =}, ...} (ok is nil if unknown), lacks = {{name =, file =, line =,
-- needs =}, ...}, blocks (per SM) and by (the resource that limits them). The
-- results for all targets are a list; tostring prints it as a table.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local kernel = require "cute.lang.kernel"
local sign = require "cute.lang.signature"
local source = require "cute.lang.source"
local targets = require "cute.targets"

local preflight = {}

local SPECS = "CUDA C++ Programming Guide, technical specifications"
local NOTES = "PTX ISA, target ISA notes"
local TENSORMAP = "CUDA driver API, cuTensorMapEncodeTiled"

-- CLUSTER: the largest cluster, in blocks, on every GPU that has clusters.
-- CLUSTER_MOST: the largest cluster on some of these GPUs.
local CLUSTER, CLUSTER_MOST = 8, 16

local Result = {__closed = true}  -- traces do not record its fields
Result.__index = Result

---------------------------------------------------------------------------
-- Instructions
---------------------------------------------------------------------------

-- Returns text for the targets that satisfy requirement n: "sm_90 and newer",
-- "sm_90a alone".
local function whose(n)
  local letter = n.specific and "a" or ""
  if n.most == n.least then return ("sm_%d%s alone"):format(n.least, letter) end
  if n.most > 0 then
    return ("sm_%d%s to sm_%d%s"):format(n.least, letter, n.most, letter)
  end
  return ("sm_%d and newer%s"):format(n.least, n.specific
    and ", with a or f after the number" or "")
end

-- Returns the elements of `needs`, a kernel's requirements from fn:needs(),
-- that a target does not satisfy.
local function lacking(needs, arch, sm)
  local list, plain = {}, not arch:find "[af]$"
  for _, n in ipairs(needs) do
    if sm < n.least or n.most > 0 and sm > n.most or n.specific and plain then
      list[#list + 1] = {name = n.name, file = n.file, line = n.line,
                         needs = whose(n)}
    end
  end
  return list
end

local function at(x)
  return x.line and x.line > 0
    and (" (%s:%d)"):format(source.short(x.file), x.line) or ""
end

local function instructions(lacks)
  if #lacks == 0 then return "no", "all" end
  local text = {}
  for i, x in ipairs(lacks) do
    text[i] = ("%s%s: %s"):format(x.name, at(x), x.needs)
  end
  return table.concat(text, "; "), "not these"
end

---------------------------------------------------------------------------
-- Checks
---------------------------------------------------------------------------

local function product(t) return t[1] * t[2] * t[3] end

-- Returns the largest number of registers per thread with which a block of
-- `threads` threads fits on an SM.
local function register_limit(limits, threads)
  local warps = (threads + 31) // 32
  warps = (warps + limits.quarters - 1) // limits.quarters * limits.quarters
  return math.min(limits.thread_registers,
                  limits.registers // (warps * 32) // 8 * 8)
end

-- Returns the number of registers, and the number of spilled bytes, that NVRTC
-- reports; nil and the reason if they are unknown.
local function compiled(program, arch)
  local ok, out, why = pcall(program.compile, program, arch)
  if not ok then return nil, tostring(out) end
  if not out then
    return nil, why:find("[no-nvrtc]", 1, true) and "no NVRTC"
      or why:match "^[^\n]*"
  end
  local r = out.resources
  return r.registers, (r.spill_stores or 0) + (r.spill_loads or 0)
end

local function check_registers(r, program, limits, threads, wanted)
  local most = register_limit(limits, threads)
  if not wanted or not r.ok then
    return nil, wanted and "not compiled: see above" or "not asked for", most
  end
  local n, more = compiled(program, r.target)
  if not n then return nil, "unknown: " .. more, most end
  r.registers, r.spilled = n, more
  return n <= most, n .. (more > 0 and (", %d bytes spilled"):format(more)
    or ""), most
end

local function check_cluster(n, sm)
  local has = core.has(sm, "a cluster of blocks") and CLUSTER_MOST or 1
  local ok = n <= has
  if ok and n > CLUSTER then ok = nil end
  return ok, n == 1 and "none" or n .. " blocks",
         has == 1 and "none" or ("%d, %d where the GPU says so"):format(CLUSTER,
                                                                    has)
end

local function count(n, one) return ("%d %s%s"):format(n, one, n == 1 and ""
  or "s") end

-- Alignments, in bytes, that shared tensors need if TMA, bulk copies or a
-- warpgroup's MMA access them.
local ALIGN = {tma = 128, bulk = 16, wgmma = 128}

local function check_alignment(program)
  local text, ok = {}, true
  for _, a in ipairs(program.info.args) do
    if a.pointer and not a.map then
      text[#text + 1] = ("%s %d"):format(a.name, a.align)
    end
  end
  for place, o in ipairs(program.fn:shared()) do
    local need = ALIGN[o.agent]
    if need then
      local name = o.name ~= "" and o.name or "#" .. place
      text[#text + 1] = ("%s %d"):format(name, o.align)
      ok = ok and o.align % need == 0
    end
  end
  return ok, #text > 0 and table.concat(text, ", ") .. " bytes" or "none"
end

local function one(program, needs, arch, wanted)
  local sm, info = devices.sm(arch), program.info
  local limits, threads = targets.limits(sm), product(program.block)
  local r = setmetatable({kernel = info.name, target = arch, checks = {},
                          lacks = lacking(needs, arch, sm), ok = true}, Result)
  local function check(what, ok, need, has, from)
    if ok == false then r.ok = false end
    r.checks[#r.checks + 1] = {what = what, ok = ok, needs = tostring(need),
                               has = tostring(has), source = from}
  end
  local lacks, has = instructions(r.lacks)
  check("instructions", #r.lacks == 0, #r.lacks == 0
    and (#needs == 0 and "of all targets" or count(#needs, "kind")
    .. " that not all have") or lacks, has, NOTES)
  check("threads", threads <= limits.block_threads, threads,
        limits.block_threads, SPECS)
  local shared = core.smem_budget(sm)
  check("shared memory", info.smem <= shared, info.smem, shared, SPECS)
  local ok, n, most = check_cluster(product(program.cluster), sm)
  check("cluster", ok, n, most, SPECS)
  local maps = 0
  for _, a in ipairs(info.args) do maps = maps + (a.map and 1 or 0) end
  local tma = core.has(sm, "a bulk copy")
  check("TMA", maps == 0 or tma, maps == 0 and "none"
    or count(maps, "tensor map"), tma and "tensor maps" or "none", TENSORMAP)
  ok, n = check_alignment(program)
  check("alignment", ok, n, "16 bytes a thread, TMA 128", NOTES)
  ok, n, most = check_registers(r, program, limits, threads, wanted)
  check("registers", ok, n, most, SPECS)
  if r.ok then
    local held = targets.occupancy(sm, {threads = threads, shared = info.smem,
      registers = r.registers, barriers = info.barriers})
    r.blocks, r.by = held.blocks, held.by
    check("blocks of an SM", held.blocks > 0, held.blocks,
          "by " .. table.concat(held.by, ", "), SPECS)
  end
  return r
end

---------------------------------------------------------------------------
-- Messages
---------------------------------------------------------------------------

local function columns(rows)
  local width, out = {}, {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      width[i] = math.max(width[i] or 0, #cell)
    end
  end
  for k, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      cells[i] = cell .. (" "):rep(width[i] - #cell)
    end
    out[k] = (table.concat(cells, "  "):gsub("%s+$", ""))
  end
  return table.concat(out, "\n")
end

local function verdict(ok)
  return ok and "ok" or ok == nil and "?" or "NO"
end

function Result.__tostring(r)
  local rows = {{"", "what", "the kernel", r.target}}
  for _, c in ipairs(r.checks) do
    local needs, has = c.needs, c.has
    if c.what == "instructions" and not c.ok then
      needs, has = count(#r.lacks, "kind"), "see below"
    end
    rows[#rows + 1] = {verdict(c.ok), c.what, needs, has}
  end
  local text = {("kernel %s %s on %s"):format(r.kernel,
    r.ok and "runs" or "does not run", r.target), columns(rows)}
  for _, x in ipairs(r.lacks) do
    text[#text + 1] = ("lacks %s%s, which needs %s"):format(x.name, at(x),
                                                           x.needs)
  end
  return core.visible(table.concat(text, "\n"), true)
end

local List = {}
List.__index = List

-- Returns, in a few words, the reason why a kernel does not run on a target.
local function short(r)
  for _, c in ipairs(r.checks) do
    if c.ok == false and c.what == "instructions" then
      local more = #r.lacks > 1 and (" and %d more"):format(#r.lacks - 1) or ""
      return "lacks " .. r.lacks[1].name .. more
    elseif c.ok == false then
      return ("%s: %s of %s"):format(c.what, c.needs, c.has)
    end
  end
  return "ok"
end

function List.__tostring(list)
  local rows = {{"target", "shared", "of", "registers", "blocks of an SM", ""}}
  for i, r in ipairs(list) do
    local by = {}
    for _, c in ipairs(r.checks) do by[c.what] = c end
    rows[i + 1] = {r.target, by["shared memory"].needs, by["shared memory"].has,
      r.registers and by.registers.needs or "-",
      r.blocks and ("%d by %s"):format(r.blocks, table.concat(r.by, ", "))
        or "-", short(r)}
  end
  return core.visible("kernel " .. list.kernel .. "\n" .. columns(rows), true)
end

-- Returns the names of all targets, one for each architecture: the variant that
-- has all features, such as sm_90a.
local function all_targets()
  local list, archs = {}, core.archs()
  for _, name in ipairs(archs) do
    if not name:find "f$" then
      local last = list[#list]
      if last and archs[last] == archs[name] then list[#list] = name
      else list[#list + 1] = name end
    end
  end
  return list
end

-- Returns the options without `registers`, and the value of `registers`:
-- whether to compile the kernel.
local function options(opts)
  if type(opts) ~= "table" then
    kernel.check_options(opts)
    return {}, true
  end
  local own, registers = {}, opts.registers
  for k, v in pairs(opts) do own[k] = v end
  own.registers = nil
  kernel.check_options(own)
  if registers ~= nil and type(registers) ~= "boolean" then
    core.fail("bad-launch", ("registers = %s; true or false is needed"):format(
      tostring(registers)))
  end
  return own, registers
end

--- Checks whether a call of a kernel, k(A, B), can run on a target, or on each
-- target if none is given.
---@param call table
---@param target? string|table "sm_100a"; or opts, for all targets
---@param opts? table options of trace; registers = false: do not compile
---@return table
function preflight.of_call(call, target, opts)
  if type(target) ~= "string" then target, opts = nil, target end
  local own, registers = options(opts)
  if target then devices.sm(target) end
  local program = call:trace(own)
  local needs = program.fn:needs()
  if target then return one(program, needs, target, registers ~= false) end
  local list = setmetatable({kernel = program.info.name}, List)
  for i, arch in ipairs(all_targets()) do
    list[i] = one(program, needs, arch, registers ~= false)
  end
  return list
end

sign.strict("preflight", Result, "registers spilled blocks by")

return preflight
-- SPDX-License-Identifier: MIT
