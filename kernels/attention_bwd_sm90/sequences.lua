--- Concatenated sequences of different lengths, for kernels/attention_bwd_sm90.
--
-- The tiles of all sequences are numbered together, so that every sequence has
-- enough of them: sequence b begins with tile cu[b] // size + b, where cu has
-- the positions of the sequences among all rows (or keys). The rows of a tile
-- after the end of its sequence are padding.
local cute = require "cute"
local flash = require "kernels.flash"

local sequences = {}

--- Returns the number of tiles of B sequences with `total` rows.
---@param size integer the rows of a tile
function sequences.count(total, B, size) return total // size + B end

--- Returns sequence b: {b = b, first = its first row, rows =, tile = its first
-- tile}. Without cu, b is a batch of `total` rows.
---@param total any the number of all rows
---@param size integer
function sequences.part(cu, b, total, size)
  if not cu then return {b = b, first = 0, rows = total, tile = 0} end
  local first, rows = flash.span(cu, b, total)
  return {b = b, first = first, rows = rows, tile = first // size + b}
end

--- Returns the sequence to which tile t belongs, as `part` does, and the index
-- of t among its tiles. The tile may have no rows.
function sequences.find(cu, t, total, size)
  local B, b = cute.size(cu) - 1, 0
  cute.loop(function()
    local last = cute.min(b + 1, B - 1)
    local from = cute.min(cute.max(cu[last], 0), total)
    return cute.lt(b + 1, B) & cute.le(from // size + last, t)
  end, function() b = b + 1 end)
  local part = sequences.part(cu, b, total, size)
  return part, t - part.tile
end

return sequences
-- SPDX-License-Identifier: MIT
