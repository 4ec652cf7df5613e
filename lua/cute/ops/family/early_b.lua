--- Decides whether a product should read B before the previous launch ends, if
-- it may.
local tiles = require "cute.tiles"

local early_b = {}

-- A launch whose blocks fit on the GPU at once counts as full if it has at
-- least this fraction of the blocks that fit.
local FULL = 0.75

--- Reports whether it saves time to read B before the previous launch ends.
-- Blocks of the next launch then begin on any multiprocessor with free
-- resources. This is good if each of them replaces a block of this launch that
-- ends, or if most of the GPU is free. Otherwise some multiprocessors get more
-- blocks than others, which costs up to a third of the time.
---@param blocks integer blocks of a launch
---@param room integer blocks that fit on a multiprocessor
---@param sms integer
---@return boolean? # nil: it should not
function early_b.pays(blocks, room, sms)
  local each = tiles.count(blocks, sms)
  local even = room < each or room == each and blocks >= FULL * each * sms
  return 2 * blocks <= sms or even or nil
end

return early_b
-- SPDX-License-Identifier: MIT
