--- When a product that may read B ahead of the launch in front should.
local tiles = require "cute.tiles"

local early_b = {}

-- Of the blocks that fit at once the share that there is, at least.
local FULL = 0.75

--- Blocks of the next launch begin where there is room. They should begin where
-- those of this one end, one for one, or leave most of the card to it: else
-- some multiprocessors get more of them than others, which costs up to a third.
---@param blocks integer of a launch
---@param room integer blocks that fit a multiprocessor
---@param sms integer
---@return boolean? # nil: it should not
function early_b.pays(blocks, room, sms)
  local each = tiles.count(blocks, sms)
  local even = room < each or room == each and blocks >= FULL * each * sms
  return 2 * blocks <= sms or even or nil
end

return early_b
