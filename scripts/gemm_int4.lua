-- 4-bit weights: C = A W^T. W has a quarter of the bytes of 16-bit weights.
--
-- For a few rows of A and a large W, reading W takes most of the time. W is
-- stored in the order in which the tensor cores need it. Each thread loads 16
-- bytes at once: its elements of four consecutive fragments along K. cp.async
-- copies them to shared memory that only this thread reads. The copies run
-- ahead by as many tiles as shared memory can hold. The eight weights of a word
-- become floats in 9 instructions: their bits are inserted into the floats 1024
-- and 64. For bf16, the float is 128 and 11 instructions are needed. A scale
-- multiplies the sum of a group, not each weight. Warps divide K, and
-- synchronize only to add their partial sums.
--   cutelua scripts/gemm_int4.lua --help
local gemm_int4 = require "kernels.gemm_int4"

local function made(p)
  local o = p.opt
  local warps = (o.along or o.across) and {o.across or 4, o.along or 2}
  local group = o.group or 128
  return gemm_int4 {m = p.m, n = p.n, k = p.k, group = group > 0 and group
    or nil, zeros = o.zeros, warps = warps, rows = o.rows,
    columns = o.columns, slice = o.slice, stages = o.stages,
    splits = o.splits, cluster = o.cluster, min_blocks = o.blocks}
end

-- Returns the number of rows of a problem's scales.
local function groups(p)
  local group = p.opt.group or 128
  return group > 0 and p.k // group or 1
end

local RUN = 16  -- number of elements of C per check

require "cutelua.bench.harness".run(arg, {
  about = "C = A W^T of 16-bit floats and 4-bit weights.",
  dims = {{"m", "rows of A"}, {"n", "columns of C, a multiple of 16"},
          {"k", "columns of A, a multiple of 64"}},
  dtypes = {"bf16", "f16"},
  options = {
    {"--group", "int", min = 0, help = "weights along K that share a scale "
      .. "(128); 0: all of a column"},
    {"--zeros", "flag", help = "the weights have zero points, too"},
    {"--rows", "int", min = 8, help = "rows of A in a tile"},
    {"--columns", "int", min = 1, help = "groups of 16 columns of C that a "
      .. "warp computes"},
    {"--across", "int", min = 1, help = "warps along N"},
    {"--along", "int", min = 1, help = "warps along K"},
    {"--slice", "int", min = 64, help = "elements of K in a warp's tile (128)"},
    {"--stages", "int", min = 2, help = "tiles in flight"},
    {"--splits", "int", min = 1, help = "blocks that share K"},
    {"--cluster", "flag", help = "the blocks of --splits are a cluster, and "
      .. "add in shared memory (sm_90)"},
    {"--blocks", "int", min = 1, help = "the fewest blocks that a "
      .. "multiprocessor must have room for"}},
  sim = {{16, 128, 256}},
  gpu = {{16, 4096, 4096}, {16, 8192, 8192}, {64, 8192, 8192}},
  operands = function(p)
    local k = made(p)
    p.made = k
    local sums, counts = k.scratch(p.m)
    local words = {p.n // 16, p.k // 64, 32, 4}
    local list = {{"a", {p.m, p.k}},
      {"w", words, dtype = "i32", fill = {-1 << 31, (1 << 31) - 1}},
      {"s", {groups(p), p.n}}}
    if p.opt.zeros then
      list[4] = {"z", {groups(p), p.n}, dtype = "u8", fill = {0, 15}}
    end
    list[#list + 1] = {"c", {p.m, p.n}, out = true}
    if sums then
      list[#list + 1] = {"work", {sums}, dtype = "f32", scratch = true}
      list[#list + 1] = {"turns", {counts}, dtype = "i32", scratch = true,
                         fill = "zero"}
    end
    return list
  end,
  make = function(p)
    return {kernel = p.made.kernel, grid = p.made.grid(p.m),
            block = p.made.block, cluster = p.made.cluster}
  end,
  look = 1 << 10,
  pieces = function(p) return p.m * p.n // RUN end,
  reference = function(p, i)
    local row, c = i * RUN // p.n, {}
    local each = p.k // groups(p)
    for j = 0, RUN - 1 do
      local col, sum = i * RUN % p.n + j, 0
      for k = 0, p.k - 1 do
        local at = k // each * p.n + col
        sum = sum + p.a[row * p.k + k] * p.s[at]
          * (gemm_int4.weight(p.w, p.k, col, k) - (p.z and p.z[at] or 8))
      end
      c[j + 1] = sum
    end
    return {c = c}
  end,
})
-- SPDX-License-Identifier: MIT
