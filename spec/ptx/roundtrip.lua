--- Runs launches on the simulator twice: directly, and through the PTX that
-- NVRTC compiles from their CUDA C. Compares memory, faults, traffic, notes and
-- verdicts.
local check = require "cutelua.check"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local kernel = require "cute.lang.kernel"
local memory = require "cutelua.program.memory"
local simreport = require "cute.lang.simreport"
local through = require "spec.ptx.through"

local roundtrip = {}

-- The maximum number of schedules of a launch that a check runs. Most launches
-- have at most 10 different schedules; the others have thousands.
local ORDERS = 30

---------------------------------------------------------------------------
-- Comparisons
---------------------------------------------------------------------------

-- Counters of an access that profilers of hardware have, too.
local COUNTERS = {"requests", "sectors", "bytes", "wavefronts", "conflicts"}

local Traffic = {}
Traffic.__index = Traffic

-- Adds n to a counter of accesses of a kind, such as "ld.global 2".
function Traffic:add(kind, name, n)
  local key = ("%s %s"):format(kind, name)
  if n > 0 then self[key] = (self[key] or 0) + n end
end

-- Returns a run's counters, by kind of access and number of the argument. A
-- copy between shared and global memory in the IR counts as a load and a store,
-- because the emitted text has both.
local function traffic(report, program)
  local number, sums = {}, setmetatable({}, Traffic)
  for i, a in ipairs(program.info.args) do number[a.name] = i end
  for _, s in ipairs(report.lines) do
    local at = s.global and (" %s"):format(number[s.global] or "?") or ""
    if s.op == "copy" then
      local far = (s.out and "st.global" or "ld.global") .. at
      local near = s.out and "ld.shared" or "st.shared"
      sums:add(far, "bytes", s.bytes // 2)
      sums:add(near, "bytes", s.bytes // 2)
      for _, name in ipairs {"requests", "sectors"} do
        sums:add(far, name, s[name])
      end
      for _, name in ipairs {"wavefronts", "conflicts"} do
        sums:add(near, name, s[name])
      end
    else
      for _, name in ipairs(COUNTERS) do sums:add(s.op .. at, name, s[name]) end
    end
  end
  return sums
end

-- Kinds of accesses that the two runs may assign to different arguments if a
-- kernel builds tensor maps in memory. The direct run assigns such an access to
-- the argument whose map was copied.
local BY_MAPS = {["st.global"] = true, ["tma.load"] = true,
                 ["tma.store"] = true}

-- Adds up the counters of the kinds in BY_MAPS over all arguments.
local function over_arguments(sums)
  local out = setmetatable({}, Traffic)
  for key, n in pairs(sums) do
    local op, name = key:match "^(%S+) .-(%S+)$"
    if BY_MAPS[op] then out:add(op, name, n)
    else out[key] = n end
  end
  return out
end

-- Returns the counters that differ: {["ld.global 2 requests"] = {direct,
-- through PTX}}.
local function traffic_differences(direct, ptx)
  local out = {}
  for key, n in pairs(direct) do
    if n ~= (ptx[key] or 0) then out[key] = {n, ptx[key] or 0} end
  end
  for key, n in pairs(ptx) do
    if not direct[key] then out[key] = {0, n} end
  end
  return out
end

-- Returns the kinds of a report's faults, in order.
local function kinds(report)
  local list = {}
  for i, r in ipairs(report.reports) do list[i] = r.kind end
  return table.concat(list, " ")
end

-- Returns the number of shared tensors that a run reports as never read.
local function unread(report, program)
  local n = 0
  for _, note in ipairs(simreport.attach(report, program):notes()) do
    if note:find "never read" then n = n + 1 end
  end
  return n
end

-- Returns the verdict of a check of every schedule, with its first fault.
local function verdict(program, launch)
  local v = check.launch(program, launch, {orders = ORDERS, gpu = false})
  return v.fault and ("%s: %s"):format(v.verdict, v.fault.kind) or v.verdict
end

---@class RoundTrip
---@field kernel string
---@field arch string
---@field equal boolean memory is equal, bit for bit
---@field faults string[] kinds of faults, direct and through PTX
---@field unread integer[] shared tensors that are never read
---@field traffic table<string, integer[]> counters that differ
---@field verdicts? string[] direct and through PTX

-- Clears the addresses in encoded tensor maps in memory, because they differ
-- between the runs. In the direct run they are numbers of tensors; in the run
-- through PTX, they are addresses of the host.
local function clear_addresses(args)
  for _, v in ipairs(args) do
    local b = v[1]
    if core.typename(b) == "buffer" and b.dtype.bits == 64 then
      for i = 0, #b - 16, 16 do
        if core.decode_tensor_map(b:bytes(i, 16)) then b:set(i, 0) end
      end
    end
  end
end

-- Runs a launch directly and through PTX. Memory then has the direct run's
-- results. Returns the comparison and the direct report.
local function compare(program, launch, checks)
  local before = memory.keep(program, launch.args, true)
  local direct = core.sim_run(program.fn, launch)
  local after = memory.keep(program, launch.args, true)
  local pair = {kernel = program.info.name, arch = program.arch}
  local ptx_text = assert(through.ptx(program, program.arch))
  local builds = ptx_text:find("fence.proxy.tensormap", 1, true)
  if builds then clear_addresses(launch.args) end
  local sum = before()
  local theirs, other = through.launch(program, launch, ptx_text)
  local ptx = core.sim_run(theirs.fn, other)
  if builds then clear_addresses(launch.args) end
  pair.equal = after() == sum
  if checks and checks(launch, ptx_text) then
    before()
    pair.verdicts = {verdict(program, launch), verdict(theirs, other)}
    after()
  end
  pair.faults = {kinds(direct), kinds(ptx)}
  pair.unread = {unread(direct, program), unread(ptx, theirs)}
  local one, other_sums = traffic(direct, program), traffic(ptx, theirs)
  if builds then
    one, other_sums = over_arguments(one), over_arguments(other_sums)
  end
  pair.traffic = traffic_differences(one, other_sums)
  return pair, direct
end

--- Returns a kernel.runner that also runs each launch on the simulator through
-- its PTX, and calls found(comparison) for it.
---@param found fun(pair: RoundTrip)
---@param checks? fun(launch: table, ptx: string): boolean whether to compare
-- the verdicts of `check` for this launch
function roundtrip.runner(found, checks)
  local runner
  runner = {run = function(program, launch)
    kernel.runner = nil
    local ok, pair, direct = pcall(compare, program, launch, checks)
    kernel.runner = runner
    if not ok then error(pair, 0) end
    found(pair)
    return direct
  end}
  return runner
end

--- Calls f with roundtrip.runner(found, checks) as the kernels' runner.
function roundtrip.during(f, found, checks)
  kernel.runner = roundtrip.runner(found, checks)
  local ok, why = pcall(f)
  kernel.runner = nil
  if not ok then error(why, 0) end
end

--- Runs a script; its device "auto" means the simulator.
---@param script string its path
---@param words string[] its arguments
function roundtrip.script(script, words)
  local saved, simulates = arg, devices.simulates
  _G.arg = table.move(words, 1, #words, 1, {[0] = script})
  devices.simulates = true
  local ok, why = pcall(function()
    assert(loadfile(script))(table.unpack(words))
  end)
  _G.arg, devices.simulates = saved, simulates
  if not ok then error(why, 0) end
end

return roundtrip
-- SPDX-License-Identifier: MIT
