-- Several GEMMs with different numbers of rows in one launch, as in a mixture
-- of experts.
--
-- The number of rows of each expert is known only on the device, in `offsets`.
-- The grid has the maximum number of tiles: all rows, plus one partial tile per
-- group. A block reads `offsets` to find the group of its tile. Surplus blocks
-- exit. So there is only one launch, and rows are not padded.
--   cutelua scripts/gemm_grouped.lua --help
local cute = require "cute"
local oracle = require "cutelua.bench.oracle"
local gemm_grouped = require "kernels.gemm_grouped"

local MMA = {bf16 = "SM80_16x8x16_F32BF16BF16F32_TN",
             f16 = "SM80_16x8x16_F32F16F16F32_TN"}

-- Returns a function that fills the offsets of the groups, including the end of
-- the last group. The numbers of rows increase in equal steps from 0. The last
-- group also has the remaining rows.
local function uneven(p)
  return function(b)
    b[0] = 0
    for g = 0, p.g - 1 do b[g + 1] = p.m * g * (g + 1) // (p.g * (p.g + 1)) end
    b[p.g] = p.m
    return b
  end
end

require "cutelua.bench.harness".run(arg, {
  about = "C_g = A_g B_g^T of groups of rows.",
  dims = {{"g", "groups"}, {"m", "rows of A and C, of all groups together"},
          {"n", "rows of each B, columns of C"}, {"k", "columns of A and B"}},
  dtypes = {"bf16", "f16"},
  sim = {{4, 300, 72, 64}},
  gpu = {{8, 16384, 4096, 4096}, {64, 16384, 2048, 2048}},
  operands = function(p)
    return {{"a", {p.m, p.k}}, {"b", {p.g, p.n, p.k}},
            {"c", {p.m, p.n}, out = true},
            {"offsets", {p.g + 1}, dtype = "i32", fill = uneven(p)}}
  end,
  make = function(p)
    local k = gemm_grouped {mma = MMA[p.dtype], rows = true}
    return {kernel = k.kernel, grid = k.grid(p.m, p.n, p.g), block = k.block,
            args = {"a", {"b", function(b)  -- (N,K,G)
              return cute.select(b, {1, 2, 0})
            end}, "c", "offsets"}}
  end,
  flops = function(p) return 2.0 * p.m * p.n * p.k end,
  look = 1 << 10,
  pieces = function(p) return oracle.pieces(p.m, p.n) end,
  reference = function(p, i)
    return {c = oracle.product(p, i, nil, function(row)
      local g = 0
      while p.offsets[g + 1] <= row do g = g + 1 end
      return g * p.n * p.k
    end)}
  end,
})
-- SPDX-License-Identifier: MIT
