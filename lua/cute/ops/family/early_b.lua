--- Decides whether a product that may read B before the previous launch ends
-- should do so.
local tiles = require "cute.tiles"

local early_b = {}

-- A launch is considered full if it has at least this fraction of the blocks
-- that fit on the GPU at once.
local FULL = 0.75

--- Reports whether it saves time to read B before the previous launch ends.
-- Blocks of the next launch then begin on any multiprocessor with free
-- resources. This saves time if each of them replaces a block that ends, or if
-- most of the GPU is free. Otherwise some multiprocessors receive more blocks
-- than others, which costs up to a third of the time.
---@param blocks integer number of blocks of a launch
---@param room integer number of blocks that fit on a multiprocessor
---@param sms integer
---@return boolean? # nil if B should be read after the previous launch
function early_b.pays(blocks, room, sms)
  local each = tiles.count(blocks, sms)
  local even = room < each or room == each and blocks >= FULL * each * sms
  return 2 * blocks <= sms or even or nil
end

return early_b
-- SPDX-License-Identifier: MIT
