--- Helpers of tiled copies of a matrix of any size: the block's tile, the
-- widest possible vectors of a row, and predicates.
local cute = require "cute"
local sign = require "cute.lang.signature"
local tiles = require "cute.tiles"
local rules = require "kernels.operand_rules"

local copytile = {}

--- Returns the coordinate of this block's tile of t if blocks take the tiles
-- row by row. Blocks that run at the same time then access the same rows, so
-- DRAM accesses form long runs.
---@return table {bm, bn}
function copytile.by_rows(t, tiler)
  local block = (cute.arch.block_idx())
  local along = tiles.count(cute.size(t, 1), tiler[2])
  return {block // along, block % along}
end

--- Returns the coordinate of this block's tile of t if blocks take the tiles
-- column by column.
---@return table {bm, bn}
function copytile.by_columns(t, tiler)
  local block = (cute.arch.block_idx())
  local down = tiles.count(cute.size(t, 0), tiler[1])
  return {block % down, block // down}
end

--- Returns the width, in bits, of the widest access that divides rows of n
-- elements. It is at most 128 and at least the width of one element.
---@param dtype cute.DType
---@param n integer
function copytile.bits(dtype, n)
  return rules.widest(dtype.width, n) * dtype.width
end

--- Returns the copy atom for rows of n elements. If vectors of 16 bytes divide
-- the rows, it is cp.async of 16 bytes, which bypasses L1. Otherwise, it is
-- cp.async of 8 or 4 bytes. If not even 4 bytes divide the rows, it is a
-- synchronous copy.
---@param dtype cute.DType
---@param n integer
function copytile.async_atom(dtype, n)
  local bits = copytile.bits(dtype, n)
  local name = bits == 128 and "SM80_CP_ASYNC_CACHEGLOBAL"
    or bits >= 32 and "SM80_CP_ASYNC_CACHEALWAYS" or "UniversalCopy"
  return cute.make_copy_atom(name, dtype, bits)
end

--- Returns the predicates, (atoms,CPY_M,CPY_N), of a thread's accesses to the
-- tile of t at coordinate `at`. Returns nil if no tile of t extends beyond t.
---@param thr cute.TiledCopy
---@param t cute.Tensor (M,N)
---@param tiler integer[] {BM, BN}
---@param at table {bm, bn}
function copytile.inside(thr, t, tiler, at)
  local shape = t.shape
  if shape[1] % tiler[1] == 0 and shape[2] % tiler[2] == 0 then return nil end
  local c = thr:partition_S(
    cute.local_tile(cute.make_identity_tensor(shape), tiler, at))
  local atoms, m, n = cute.size(c, {0, 1}), cute.size(c, 1), cute.size(c, 2)
  local pred = cute.make_rmem_tensor({atoms, m, n}, cute.boolean)
  for j = 0, n - 1 do
    for i = 0, m - 1 do
      for a = 0, atoms - 1 do
        pred[{a, i, j}] = cute.elem_less(c[{{0, a}, i, j}], shape)
      end
    end
  end
  return pred
end

return sign.module("kernels.copytile", copytile)
-- SPDX-License-Identifier: MIT
