--- Methods that the package cutelua adds to a prepared launch.
local core = require "cute.core"
local devices = require "cute.lang.devices"

local Prepared = {}

--- Checks every schedule of the launch: see Call:check.
function Prepared:check(opts)
  return require "cutelua.check".prepared(self, opts or {})
end

--- Estimates the launch's time on a GPU, and its bottleneck, from a run of one
-- cluster on the simulator: see cutelua.profile.estimate.
---@param opts? {card: string, cold: boolean, registers: integer, at: integer}
---@return table
function Prepared:estimate(opts)
  if not (self.values and self.grid) then
    core.fail("bad-launch", ("kernel %s: an estimate needs the kernel's "
      .. "arguments and a grid"):format(self.program.info.name))
  end
  devices.check_places(self.program.info.name, self.values, "host")
  return require "cutelua.profile.estimate".of(self, opts)
end

return Prepared
-- SPDX-License-Identifier: MIT
