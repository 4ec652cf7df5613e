--- Makes plans for kernels that several families use (`make` of
-- cute.ops.families).
local cute = require "cute"
local formats = require "cute.ops.formats"
local scales = require "cute.ops.scales"

local prepared = {}

--- Returns the first n elements of tensor t as a vector of elements of type
-- `dtype`.
function prepared.view(t, n, dtype)
  local v = cute.make_tensor(t.iterator, cute.make_layout {n})
  return dtype and dtype ~= t.element_type and cute.recast_tensor(v, dtype) or v
end

-- Makes the plan of a split-K product. The last block of a tile adds the
-- partial sums.
local function by_splits(p, c)
  local made = require "kernels.gemm_splitk"(c.options, c.base)
  local grid, tile = made.grid(p.m, p.n, p.k), made.tile
  local blocks = grid[1] * grid[2]
  return {kernel = made.kernel, block = made.block, grid = grid,
          mma = made.mma, tile = tile, pdl = c.options.pdl,
          sums = blocks * c.options.splits * tile[1] * tile[2]
            * p.sums.bits // 32, counts = blocks,
          arguments = function(A, B, D, work, turns)
            local sums = prepared.view(work, cute.size(work), p.sums)
            return {A, B, D, sums, turns, n = 5}
          end}
end

--- Makes the plan of a family whose kernels have one block for each tile. The
-- kernels' arguments are A, B and D, then the offsets or counts of groups, if
-- any, then the scale factors for blocks of K, if any. Scale factors of formats
-- such as NVFP4 are passed as tiles.
function prepared.tiles(p, c)
  if c.family == "gemm_splitk" then return by_splits(p, c) end
  local made = require("kernels." .. c.family)(c.options)
  local factors = p.format and formats.mover(p)
  return {kernel = made.kernel, block = made.block, mma = made.mma,
          tile = made.tile, grid = made.grid(p.m, p.columns, p.batches),
          pdl = c.options.pdl, before = factors and factors.before,
          sums = factors and factors.floats > 0 and factors.floats or nil,
          arguments = function(A, B, D, work, _, call)
            local list, n = {A, B, D, call.where}, call.where and 4 or 3
            if factors then
              list[4], list[5] = formats.matrices(p, factors.tiles(call, work))
              n = 5
            elseif p.group then
              local SA, SB = scales.blocks(p, call.o, p.batch)
              list[n + 1], list[n + 2], n = SA or false, SB or false, n + 2
            end
            list.n = n
            return list
          end}
end

--- Makes the plan of a family whose kernels use kernels/splitk_skinny.
-- operands(A, B, call) returns the kernel's first arguments.
function prepared.join(p, made, operands)
  local sums, counts = made.scratch(p.m, p.batches)
  return {kernel = made.kernel, block = made.block, cluster = made.cluster,
          grid = made.grid(p.m, p.batches), mma = made.mma, tile = made.tile,
          pdl = made.plan.pdl, sums = sums, counts = counts,
          arguments = function(A, B, D, work, turns, call)
            local list = operands(A, B, call)
            list[#list + 1] = D
            if counts then table.move({work, turns}, 1, 2, #list + 1, list) end
            list.n = #list
            return list
          end}
end

return prepared
-- SPDX-License-Identifier: MIT
