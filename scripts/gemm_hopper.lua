-- What a Hopper GEMM is made of: C = A B^T in bf16 by blocks that stay, a
-- thread that loads, warpgroups that multiply, clusters that share.
--
-- kernels/gemm_sm90.lua has it with every choice a parameter; this script is
-- one choice for large matrices. On top of gemm_ws.lua: a block for each
-- multiprocessor takes tile after tile, so that loads of the next tile run
-- under the end of this one; two blocks of a cluster load B once for both;
-- tiles go round in groups of 8 that share what they read in L2; sums leave by
-- stmatrix and TMA while the next tile is multiplied.
--   cutelua scripts/gemm_hopper.lua --help
local gemm_sm80 = require "kernels.gemm_sm80"
local gemm_sm90 = require "kernels.gemm_sm90"
local lesson = require "cute.bench.lesson"

local function rung(choices)
  choices.name = "gemm_hopper"
  local k = gemm_sm90(choices)
  return k.kernel, k
end

local kernel, k = rung {tile = {128, 256, 64}, stages = 4, cluster = {2, 1}}

lesson.gemm(arg, {
  kernel = kernel, tile = k.options.tile, block = k.block, cluster = k.cluster,
  grid = k.grid, arguments = function(...)
    local list = k.arguments(...)
    return table.unpack(list, 1, list.n)
  end, takes = k.takes,
  general = gemm_sm80 {tile = {128, 128, 64}, stages = 2}, archs = {"sm_90a"},
  about = "C = A B^T in bf16 as Hopper wants it: persistent, specialised "
    .. "warps, clusters, TMA both ways (sm_90a).",
})
