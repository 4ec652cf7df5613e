--- `cutelua ptx FILE`: lists the entries of a file, with their parameters,
-- shared memory and opcodes, and with everything that the simulator rejects.
local cli = require "cutelua.program.cli"
local collected = require "cutelua.program.collected"
local core = require "cute.core"
local cute = require "cute"
local devices = require "cute.lang.devices"
local launch = require "cutelua.ptx.launch"
local map = require "cutelua.ptx.map"
local plural = require "cute.lang.report".plural
local report = require "cute.lang.report"

local list = {}

local SPEC = {
  script = "ptx", name = "ptx",
  about = "Lists the entries of PTX, CUDA C or Triton's metadata: parameters "
    .. "with their byte offsets, shared memory, module variables, opcodes with "
    .. "their counts, and what the reader rejects. Exit code: 0 all is "
    .. "modelled, 1 an error or something is not, 2 a wrong command line.",
  args = {name = "FILE", required = true,
          help = "FILE.ptx, FILE.cu or NAME.json"},
  options = {
    {"--launch", "file", help = "for CUDA C: takes include, define and arch "
      .. "from this LAUNCH file"},
    {"--format", "choice", choices = {"text", "json", "sarif"},
     default = "text", help = "json and sarif print what the reader rejects as "
      .. "findings"}}}

local function say(fmt, ...) print(core.visible(fmt:format(...))) end

-- Sizes in bytes for the trial translation of an entry. POINTEE: the memory
-- that each pointer addresses. DYNAMIC: dynamic shared memory.
local POINTEE, DYNAMIC = 1 << 20, 64 << 10

-- Returns the rank for an entry's tensor maps: the largest rank of the entry's
-- tensor copies.
local function map_rank(module, entry)
  local rank = 1
  for op in pairs(core.ptx_opcodes(module.module, entry.name)) do
    local n = op:match "bulk%.tensor%.(%d)d"
    rank = math.max(rank, tonumber(n) or 1)
  end
  return rank
end

-- Returns a tensor map with boxes of 16 x 1 x ... bytes, for trial_arguments.
local function trial_map(rank)
  local p = {type = 0, rank = rank, extent = {16}, box = {16}, stride = {}}
  for i = 2, rank do p.extent[i], p.box[i], p.stride[i - 1] = 1, 1, 16 end
  return map.encode(p)
end

-- Returns arguments that fit an entry's parameters, to translate the entry on
-- trial.
local function trial_arguments(entry, rank)
  local args = {}
  for i, p in ipairs(entry.parameters) do
    local bytes = p.bits // 8 * p.count
    if map.takes(p) then
      args[i] = {tensor = cute.zeros({POINTEE}, cute.u8),
                 map = trial_map(rank)}
    elseif p.array then
      args[i] = ("\0"):rep(bytes)
    elseif p.bits == 64 and p.kind ~= "f" then
      args[i] = cute.zeros({POINTEE}, cute.u8)
    else
      args[i] = 0
    end
  end
  return args
end

-- Translates the entry once. Returns nil if this succeeds, else the error
-- message.
local function trial(module, entry)
  local ok, why = pcall(function()
    local smem = entry.dynamic and DYNAMIC or 0
    local k = module:kernel(entry.name, {smem = smem})
    local rank = map_rank(module, entry)
    k(table.unpack(trial_arguments(entry, rank))):trace {
      block = entry.reqntid or 32, cluster = entry.cluster,
      arch = devices.ARCH}
  end)
  if ok then return nil end
  local text = report.parse(tostring(why))
  return (text.message or tostring(why)):gsub(" %[[%l-]+%]", "", 1)
end

local function show_parameters(module, entry)
  local notes = module.own and module:notes() or {}
  for i, p in ipairs(entry.parameters) do
    local size = p.array and ("[%d]"):format(p.count) or ""
    local note = notes[i] or map.takes(p) and "a tensor map"
    say("  %2d  byte %4d  %s%d%s  %s%s", i, p.offset, p.kind, p.bits, size,
        p.name, note and ("  (%s)"):format(note) or "")
  end
end

local function show_memory(entry)
  for _, key in ipairs {"reqntid", "maxntid", "cluster"} do
    if entry[key] then
      say("  %s %s", key, table.concat(entry[key], " x "))
    end
  end
  if entry.shared > 0 or entry.dynamic then
    say("  shared memory: %s%s", plural(entry.shared, "byte"),
        entry.dynamic and ", and `smem` dynamic ones" or "")
  end
end

-- Prints an entry's opcodes with their counts. Returns the number of opcodes
-- that the translator rejects.
local function show_opcodes(module, entry, collector)
  local codes = core.ptx_opcodes(module.module, entry.name)
  local names, total, rejected = {}, 0, 0
  for op, c in pairs(codes) do
    names[#names + 1], total = op, total + c.count
  end
  table.sort(names, function(a, b)
    if codes[a].count ~= codes[b].count then
      return codes[a].count > codes[b].count
    end
    return a < b
  end)
  say("  %s, %s", plural(total, "instruction"), plural(#names, "opcode"))
  for _, op in ipairs(names) do
    local c = codes[op]
    if c.why then
      rejected = rejected + 1
      if collector then
        collector:rejected(("'%s' is %s"):format(op, c.why), c.line,
                           module.file)
      end
    end
    say("  %6d  %s%s", c.count, op,
        c.why and ("  REJECTED, line %d%s: %s"):format(c.line,
          c.place and (" (%s)"):format(c.place) or "", c.why) or "")
  end
  return rejected
end

-- Prints an entry; returns whether the simulator supports all of it.
local function show(module, name, collector)
  local entry = core.ptx_entry(module.module, name)
  say("entry %s, line %d%s", entry.name, entry.line,
      module.file == "=ptx" and " of its PTX" or "")
  show_parameters(module, entry)
  show_memory(entry)
  local ok, variables = pcall(core.ptx_variables, module.module, name)
  for _, v in ipairs(ok and variables or {}) do
    say("  variable %s: %s of %s memory", v.name, plural(v.bytes, "byte"),
        v.constant and "constant" or "global")
  end
  if show_opcodes(module, entry, collector) > 0 then return false end
  local why = trial(module.ptx or module, entry)
  if why then say("  REJECTED: %s", why) end
  if why and collector then
    collector:rejected(why, tonumber(why:match "%f[%w]line (%d+)"),
                       module.file)
  end
  return not why
end

-- Lists a file. Returns the exit code.
local function run(path, launch_file, collector)
  local spec = launch_file and launch.read(launch_file) or {}
  local module = launch.module(path, spec)
  local version, target = core.ptx_head(module.module)
  say("%s: PTX %d.%d for %s", path, version // 10, version % 10, target)
  local all = true
  for _, name in ipairs(module:entries()) do
    all = show(module, name, collector) and all
  end
  if #module:entries() == 0 then print "no entry" end
  return all and 0 or 1
end

--- Runs `cutelua ptx` with these arguments. Returns the exit code.
---@param words string[]
---@param program table options of the program
---@return integer
function list.main(words, program)
  local opt = cli.parse(words, SPEC)
  local path = opt.args[1]
  if opt.format == "text" then return run(path, opt.launch) end
  return collected.run(program, opt.format, "ptx", {path}, 1, function()
    return run(path, opt.launch, program.collector)
  end)
end

return list
-- SPDX-License-Identifier: MIT
