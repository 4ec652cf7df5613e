--- Methods that the package cutelua adds to a call of a kernel: checks of every
-- schedule on the simulator, time estimates for a GPU, and analyses of
-- shared-memory accesses.
local core = require "cute.core"
local kernel = require "cute.lang.kernel"

local Call = {}

--- Checks every schedule of a launch on the simulator: see cutelua.check.
---@param opts table {grid: any, block: any, orders: integer, seconds: number,
-- surgeon: boolean, reference: fun(...) which stores the right results in the
-- arguments, tolerance: number, gpu: boolean, sizes: fun(...): table arguments
-- of a size, with options of their launch, tile: integer[], size: integer[]}
---@return table verdict
function Call:check(opts)
  local check = require "cutelua.check"
  local launch, own = check.options(opts)
  local v = check.prepared(self:compile(launch), own, self)
  if own.sizes then check.sizes(v, self.kernel, opts) end
  return v
end

--- Prepares the launch and estimates its time: see Prepared:estimate.
---@param opts table {grid: any, block: any, card: string, cold: boolean,
-- registers: integer, at: integer} and options of a launch on the simulator
---@return table
function Call:estimate(opts)
  local known = require "cutelua.profile.estimate".OPTIONS
  local launch, own = {}, {}
  if type(opts) ~= "table" then kernel.check_options(opts) end
  for k, v in pairs(opts or {}) do
    if known[k] then own[k] = v else launch[k] = v end
  end
  launch.device = launch.device or "sim"
  return assert(self:compile(launch)):estimate(own)
end

--- Returns the times at which the call's warps, ranges and agents (asynchronous
-- hardware such as TMA) began and ended: see cutelua.profile.timeline.
---@param opts table options of a launch and of estimate, and room: the number
-- of events per warp
---@return table? timeline
---@return string? message
function Call:timeline(opts)
  if type(opts) ~= "table" then kernel.check_options(opts) end
  return require "cutelua.profile.timeline".of(self, opts or {})
end

--- Runs the call on a simulator (options as for launch) and records its
-- accesses to shared memory. Returns a report with conflicts() and
-- find_swizzle(name?).
---@param opts table
---@return table report
function Call:profile(opts)
  kernel.check_options(opts)
  local o = {record = true, device = "sim"}
  for k, v in pairs(opts or {}) do o[k] = v end
  local p = self:compile(o)
  if p.device.kind ~= "sim" then
    core.fail("bad-launch", "profiling runs on the simulator, not on "
      .. p.device.name)
  end
  return p:launch(o)
end

--- Finds layouts of shared memory with fewer conflicts, over all accesses: see
-- cutelua.profile.swizzle.
---@param opts table options of a launch, and tensor: the name of one tensor
---@return table[]
function Call:find_swizzle(opts)
  local found = require "cutelua.profile.swizzle".of_call(self, opts)
  return found
end

--- Reports whether the kernel runs on a target that is not present, such as
-- "sm_100a"; without a target, reports on which targets it runs: see
-- cutelua.profile.preflight.
---@param target? string all of them when absent
---@param opts? {block: any, cluster: any, registers: boolean} and options of
-- trace; registers = false: does not compile
---@return table
function Call:preflight(target, opts)
  local preflight = require "cutelua.profile.preflight"
  local found = preflight.of_call(self, target, opts)
  return found
end

return Call
-- SPDX-License-Identifier: MIT
