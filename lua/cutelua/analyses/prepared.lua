--- The methods that the workshop adds to a prepared launch.
local core = require "cute.core"
local devices = require "cute.lang.devices"

local Prepared = {}

--- Every schedule of it: see Call:check.
function Prepared:check(opts)
  return require "cutelua.check".prepared(self, opts or {})
end

--- How long it will take on a card, and why, from one cluster on the
-- simulator: see cutelua.profile.estimate.
---@param opts? {card: string, cold: boolean, registers: integer, at: integer}
---@return table
function Prepared:estimate(opts)
  if not (self.values and self.grid) then
    core.fail("bad-launch", ("kernel %s is estimated with its arguments and "
      .. "a grid"):format(self.program.info.name))
  end
  devices.check_places(self.program.info.name, self.values, "host")
  return require "cutelua.profile.estimate".of(self, opts)
end

return Prepared
