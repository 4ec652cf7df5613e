-- The first GEMM: each of 256 threads computes 4x4 of C, without shared memory.
--
-- CuTe's three partitions express the same as CUDA's index arithmetic. This
-- command prints the CUDA code for comparison:
--   cutelua scripts/gemm_simt.lua --emit cu
-- The tiled MMA has 16x16 threads, each with one multiply-add. The permutation
-- (16,4):(4,1) gives a thread 4 adjacent elements of M and of N, so that it
-- loads them together.
--   cutelua scripts/gemm_simt.lua --help
local cute = require "cute"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local _, X = cute._, cute.X

local BM, BN, BK = 64, 64, 4
local neighbours = cute.make_layout({16, 4}, {4, 1})
local mma = cute.make_tiled_mma("UniversalFMA<float>", {16, 16, 1},
                                {neighbours, neighbours, _})

local gemm = cute.kernel("gemm_simt", function(mA, mB, mC, alpha, beta)
  local tid = cute.arch.thread_idx()
  local bm, bn = cute.arch.block_idx()
  local at = {bm, bn, _}
  local gA = cute.local_tile(mA, {BM, BN, BK}, at, {1, X, 1})  -- (BM,BK,k)
  local gB = cute.local_tile(mB, {BM, BN, BK}, at, {X, 1, 1})  -- (BN,BK,k)

  local thr = mma:get_slice(tid)
  local tCgA, tCgB = thr:partition_A(gA), thr:partition_B(gB)  -- (MMA,M,K,k)
  local tCrA = thr:make_fragment_A(tCgA(_, _, _, 0))           -- (MMA,M,K)
  local tCrB = thr:make_fragment_B(tCgB(_, _, _, 0))           -- (MMA,N,K)
  local C = tiles.result(mC, mma, {BM, BN}, {bm, bn})
  C.acc:fill(0)
  -- At the edges, elements outside A and B are replaced by zeros.
  local load_A = tiles.loader(tCgA, thr, "A", mA, {BM, BK}, bm)
  local load_B = tiles.loader(tCgB, thr, "B", mB, {BN, BK}, bn)

  for k_tile in cute.range(cute.size(tCgA, 3)) do
    load_A(k_tile, tCrA)
    load_B(k_tile, tCrB)
    cute.gemm(mma, C.acc, tCrA, tCrB, C.acc)
  end

  C.store(alpha, beta)
end)

lesson.gemm(arg, {
  kernel = gemm, tile = {BM, BN, BK}, block = mma:size(),
  types = {"f32", "f32", "f32"},
  grid = function(m, n) return {(m + BM - 1) // BM, (n + BN - 1) // BN} end,
  about = "C = A B^T in f32, straight from global memory (any GPU).",
})
-- SPDX-License-Identifier: MIT
