--- Makes many variants of one GEMM, C = A B^T of bf16. They differ in tile,
-- stages, warps, swizzle, shared memory, clusters, bytes per copy (16, 8, 4),
-- and instruction (mma.sync or wgmma). spec/bench/gemms.lua compares the cost
-- model's estimates with measurements.
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local gemm_sm90 = require "kernels.gemm_sm90"
local tiles = require "cute.tiles"
local _ = cute._

local gemms = {}

local ATOM = "SM80_16x8x16_F32BF16BF16F32_TN"

-- Returns a kernel with one stage: it loads a tile, synchronizes, multiplies.
local function one_stage(tile, atoms, permutation)
  local mma = cute.make_tiled_mma(ATOM, atoms, permutation)
  local kernel = cute.kernel("one_stage", function(mA, mB, mC)
    local BM, BN, BK = table.unpack(tile)
    local block = cute.arch.block_idx()
    local bm, bn = tiles.raster(block, tiles.count(cute.size(mC, 0), BM),
                                tiles.count(cute.size(mC, 1), BN), 8)
    local A = tiles.operand(mA, {of = mma, which = "A", tile = {BM, BK},
                                 at = bm, stages = 1})
    local B = tiles.operand(mB, {of = mma, which = "B", tile = {BN, BK},
                                 at = bn, stages = 1})
    local C = tiles.result(mC, mma, {BM, BN}, {bm, bn})
    C.acc:fill(0)
    for k in cute.range(A.k_tiles) do
      A.load(k, 0)
      B.load(k, 0)
      cute.arch.cp_async_commit_group()
      cute.arch.cp_async_wait_group(0)
      cute.arch.sync_threads()
      for kb = 0, A.k_blocks - 1 do
        A.fetch(0, kb)
        B.fetch(0, kb)
        cute.gemm(mma, C.acc, A.block(kb), B.block(kb), C.acc)
      end
      cute.arch.sync_threads()
    end
    C.store()
  end)
  return {kernel = kernel, mma = mma}
end

-- Returns a kernel without shared memory: it loads fragments from global
-- memory.
local function direct(tile, atoms, permutation)
  local mma = cute.make_tiled_mma(ATOM, atoms, permutation)
  local kernel = cute.kernel("direct", function(mA, mB, mC)
    local BM, BN, BK = table.unpack(tile)
    local block = cute.arch.block_idx()
    local bm, bn = tiles.raster(block, tiles.count(cute.size(mC, 0), BM),
                                tiles.count(cute.size(mC, 1), BN), 8)
    local thr = mma:get_slice((cute.arch.thread_idx()))
    local tCgA = thr:partition_A(cute.local_tile(mA, {BM, BK}, {bm, _}))
    local tCgB = thr:partition_B(cute.local_tile(mB, {BN, BK}, {bn, _}))
    local tCrA = thr:make_fragment_A(tCgA(_, _, _, 0))
    local tCrB = thr:make_fragment_B(tCgB(_, _, _, 0))
    local C = tiles.result(mC, mma, {BM, BN}, {bm, bn})
    C.acc:fill(0)
    for k in cute.range(cute.size(tCgA, 3)) do
      cute.autovec_copy(tCgA(_, _, _, k), tCrA)
      cute.autovec_copy(tCgB(_, _, _, k), tCrB)
      cute.gemm(mma, C.acc, tCrA, tCrB, C.acc)
    end
    C.store()
  end)
  return {kernel = kernel, mma = mma}
end

-- Returns a function that launches kernel k with one block for each tile of C.
local function by_blocks(k, tile)
  return function(A, B, C, opts)
    local M, N = table.unpack(C.shape)
    local o = {grid = tiles.count(M, tile[1]) * tiles.count(N, tile[2]),
               block = k.mma:size()}
    for name, v in pairs(opts) do o[name] = v end
    return k.kernel(A, B, C):compile(o)
  end
end

local function sm80(o)
  local k = gemm_sm80(o)
  return by_blocks(k, o.tile)
end

local function sm90(o)
  local k = gemm_sm90(o)
  return function(A, B, C, opts)
    return k.prepare(A, B, C, opts)
  end
end

-- Returns the arguments of a TiledMMA of m by n warps: the layout of the warps,
-- and a permutation that lets one ldmatrix load 16 rows of B.
local function warps(m, n)
  return {m, n, 1}, {16 * m, 16 * n, 16}
end

local list = {}

-- Adds a variant to the list. Rows of A and B are `pad` elements longer in
-- memory than K.
local function add(name, make, pad)
  list[#list + 1] = {name = name, make = make, pad = pad or 0}
end

local function add80(name, tile, stages, m, n, more, pad)
  local o = {tile = tile, stages = stages}
  o.atoms, o.permutation = warps(m, n)
  for k, v in pairs(more or {}) do o[k] = v end
  add("mma " .. name, sm80(o), pad)
end

add80("128x128x64 3 stages", {128, 128, 64}, 3, 2, 2)
add80("128x128x64 2 stages", {128, 128, 64}, 2, 2, 2)
add80("128x128x32 2 stages", {128, 128, 32}, 2, 2, 2)
add80("128x128x32 3 stages", {128, 128, 32}, 3, 2, 2)
add80("128x128x32 5 stages", {128, 128, 32}, 5, 2, 2)
add80("128x128x64 3 stages 8 warps", {128, 128, 64}, 3, 2, 4)
add80("128x128x64 3 stages 16 warps", {128, 128, 64}, 3, 4, 4)
add80("128x256x64 3 stages 8 warps", {128, 256, 64}, 3, 2, 4)
add80("128x256x32 4 stages 8 warps", {128, 256, 32}, 4, 2, 4)
add80("256x128x64 3 stages 8 warps", {256, 128, 64}, 3, 4, 2)
add80("64x64x64 3 stages", {64, 64, 64}, 3, 2, 2)
add80("64x64x32 2 stages", {64, 64, 32}, 2, 2, 2)
add80("64x128x64 3 stages", {64, 128, 64}, 3, 2, 2)
add80("64x64x64 3 stages 1 warp", {64, 64, 64}, 3, 1, 1)
add80("32x32x64 3 stages", {32, 32, 64}, 3, 2, 2)
add80("128x128x64 3 stages, not swizzled", {128, 128, 64}, 3, 2, 2,
      {piece = 128})
add80("128x128x32 3 stages, not swizzled", {128, 128, 32}, 3, 2, 2,
      {piece = 64})
add80("64x64x64 3 stages, not swizzled", {64, 64, 64}, 3, 2, 2, {piece = 128})
add80("128x128x64 3 stages, 4-byte fetches", {128, 128, 64}, 3, 2, 2,
      {fetch = function(t) return cute.make_copy_atom("UniversalCopy", t, 32)
      end})
add80("128x128x64 3 stages, 8-byte copies", {128, 128, 64}, 3, 2, 2, nil, 4)
add80("128x128x64 3 stages, 4-byte copies", {128, 128, 64}, 3, 2, 2, nil, 2)
do
  local atoms, permutation = warps(2, 2)
  add("mma 128x128x64 1 stage", by_blocks(one_stage({128, 128, 64}, atoms,
    permutation), {128, 128}))
  add("mma 64x64x64 1 stage", by_blocks(one_stage({64, 64, 64}, atoms,
    permutation), {64, 64}))
  add("mma 128x128x16 past shared memory", by_blocks(direct({128, 128, 16},
    atoms, permutation), {128, 128}))
  add("mma 64x64x32 past shared memory", by_blocks(direct({64, 64, 32},
    atoms, permutation), {64, 64}))
end

local function add90(name, tile, stages, more)
  local o = {tile = tile, stages = stages}
  for k, v in pairs(more or {}) do o[k] = v end
  add("wgmma " .. name, sm90(o))
end

add90("128x256x64 4 stages", {128, 256, 64}, 4)
add90("128x256x64 3 stages, cluster 2x1", {128, 256, 64}, 3,
      {cluster = {2, 1}})
add90("128x256x64 2 stages", {128, 256, 64}, 2)
add90("256x128x64 4 stages, cluster 1x2", {256, 128, 64}, 4,
      {cluster = {1, 2}})
add90("128x128x64 4 stages", {128, 128, 64}, 4)
add90("128x128x64 2 stages", {128, 128, 64}, 2)
add90("128x128x64 6 stages, cluster 2x1", {128, 128, 64}, 6,
      {cluster = {2, 1}})
add90("128x128x64 5 stages, a tile a block", {128, 128, 64}, 5,
      {persistent = false})
add90("128x128x64 3 stages, two blocks", {128, 128, 64}, 3,
      {persistent = false, min_blocks = 2})
add90("64x256x64 4 stages, turns", {64, 256, 64}, 4, {schedule = "pingpong"})
add90("64x128x64 5 stages, turns", {64, 128, 64}, 5, {schedule = "pingpong"})
add90("128x192x64 4 stages", {128, 192, 64}, 4)
add90("128x64x64 4 stages", {128, 64, 64}, 4)
add90("64x64x64 8 stages, 1 warpgroup", {64, 64, 64}, 8, {consumers = 1})
add90("64x64x64 2 stages, a tile a block", {64, 64, 64}, 2,
      {consumers = 1, persistent = false})
add90("128x128x128 3 stages", {128, 128, 128}, 3)

gemms.list = list

--- Returns the layouts of A (M,K), B (N,K) and C (M,N) for a variant.
function gemms.layouts(g, m, n, k)
  local row = k + g.pad
  return cute.make_layout({m, k}, {row, 1}), cute.make_layout({n, k}, {row, 1}),
    cute.make_layout({m, n}, {n, 1})
end

return gemms
-- SPDX-License-Identifier: MIT
