--- The methods that the workshop adds to a call: what a launch does on the
-- simulator in every schedule, how long it will take on a card, what it asks of
-- shared memory.
local core = require "cute.core"
local kernel = require "cute.lang.kernel"

local Call = {}

--- Every schedule of a launch on the simulator: see cutelua.check.
---@param opts table {grid: any, block: any, orders: integer, seconds: number,
-- surgeon: boolean, reference: fun(...) which stores into the arguments what
-- is right, tolerance: number, gpu: boolean, sizes: fun(...): table
-- arguments, with options of their launch, of a size, tile: integer[],
-- size: integer[]}
---@return table verdict
function Call:check(opts)
  local check = require "cutelua.check"
  local launch, own = check.options(opts)
  local v = check.prepared(self:compile(launch), own, self)
  if own.sizes then check.sizes(v, self.kernel, opts) end
  return v
end

--- Prepares it and estimates that: see Prepared:estimate.
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

--- When its warps, ranges and agents began and ended: see
-- cutelua.profile.timeline.
---@param opts table options of a launch, of estimate, and room
---@return table? timeline
---@return string? message
function Call:timeline(opts)
  if type(opts) ~= "table" then kernel.check_options(opts) end
  return require "cutelua.profile.timeline".of(self, opts or {})
end

--- Runs it on a simulator (options as for launch) and records what it asks of
-- shared memory: a report with conflicts() and find_swizzle(name?).
---@param opts table
---@return table report
function Call:profile(opts)
  kernel.check_options(opts)
  local o = {record = true, device = "sim"}
  for k, v in pairs(opts or {}) do o[k] = v end
  local p = self:compile(o)
  if p.device.kind ~= "sim" then
    core.fail("bad-launch", "a profile is made on the simulator, not on "
      .. p.device.name)
  end
  return p:launch(o)
end

--- Layouts of shared memory with fewer conflicts, for all of its accesses
-- together: see cutelua.profile.swizzle.
---@param opts table options of launch, and tensor: the name of one
---@return table[]
function Call:find_swizzle(opts)
  local found = require "cutelua.profile.swizzle".of_call(self, opts)
  return found
end

--- Whether it runs on a target that is not there ("sm_100a"), or on which:
-- see cutelua.profile.preflight.
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
