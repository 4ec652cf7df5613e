--- A source of random numbers for inputs and held-back sizes. Its algorithm is
-- splitmix64, which yields the same numbers on all computers.
local random = {}

local Source = {}
Source.__index = Source

--- Starts a source from a seed.
---@param seed integer
---@return table
function random.new(seed) return setmetatable({state = seed}, Source) end

--- Returns 64 random bits.
---@return integer
function Source:bits()
  self.state = self.state + 0x9e3779b97f4a7c15
  local z = self.state
  z = (z ~ z >> 30) * 0xbf58476d1ce4e5b9
  z = (z ~ z >> 27) * 0x94d049bb133111eb
  return z ~ z >> 31
end

--- Returns a number in [0, 1).
---@return number
function Source:float() return (self:bits() >> 11) * 2.0 ^ -53 end

--- Returns an integer from lo to hi.
---@param lo integer
---@param hi integer
---@return integer
function Source:integer(lo, hi)
  return lo + math.floor(self:float() * (hi - lo + 1))
end

--- Returns a normally distributed number.
---@return number
function Source:normal()
  local r = math.sqrt(-2 * math.log(1 - self:float()))
  return r * math.cos(2 * math.pi * self:float())
end

return random
-- SPDX-License-Identifier: MIT
