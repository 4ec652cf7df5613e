--- Concatenated sequences of different lengths, for kernels/attention_bwd_sm90.
--
-- The tiles of all sequences are numbered together. cu holds the first row (or
-- key) of each sequence among all rows. Sequence b begins with tile cu[b] //
-- size + b, which gives every sequence enough tiles. The rows of a tile after
-- the end of its sequence are padding. Rows after the last sequence form
-- sequence B, which has no keys. Keys after the last sequence form a sequence
-- without rows.
local cute = require "cute"
local flash = require "kernels.flash"
local tiles = require "cute.tiles"

local sequences = {}

--- Returns the number of tiles of B sequences, and of the rows after them.
-- Without B, returns that of a batch of `total` rows.
---@param total any the number of all rows
---@param size integer the rows of a tile
function sequences.count(total, B, size)
  return B and total // size + B + 1 or tiles.count(total, size)
end

--- Returns sequence b: {b = b, first = its first row, rows = its number of
-- rows, tile = its first tile}. Without cu, b is a batch of `total` rows.
---@param total any the number of all rows
---@param size integer
---@param rest? boolean gives the rows after the last sequence to sequence B
function sequences.part(cu, b, total, size, rest)
  if not cu then return {b = b, first = 0, rows = total, tile = 0} end
  local first, rows = flash.span(cu, b, total, rest)
  return {b = b, first = first, rows = rows, tile = first // size + b}
end

--- Returns the sequence to which tile t belongs (see sequences.part), and the
-- index of t among the sequence's tiles. The tile may have no rows.
function sequences.find(cu, t, total, size)
  local B, b = cute.size(cu) - 1, 0
  cute.loop(function()
    local next = cute.min(b + 1, B)
    local from = cute.min(cute.max(cu[next], 0), total)
    return cute.lt(b, B) & cute.le(from // size + next, t)
  end, function() b = b + 1 end)
  local part = sequences.part(cu, b, total, size, true)
  return part, t - part.tile
end

return sequences
-- SPDX-License-Identifier: MIT
