-- 4-bit floats with block scales: C = A B^T of NVFP4 on GeForce Blackwell
-- (sm_120).
--
-- An NVFP4 number is an e2m1. 16 numbers of a row share a scale of type e4m3.
-- One mma.sync multiplies a 16x64 block of A by a 64x8 block of B, multiplies
-- each product by both scales, and adds in f32. A thread passes the four scales
-- of a row of its block in one register.
--
-- The scales are stored in the order that cuBLAS expects. 128 rows x 4 scales
-- are 512 bytes. Every 16 bytes hold the scales of rows r, r + 32, r + 64
-- and r + 96. A layout describes this order, so the kernel reads scales like
-- any tensor.
--   cutelua scripts/gemm_sm120.lua --help
local block_scaled = require "kernels.block_scaled"
local cute = require "cute"
local harness = require "cutelua.bench.harness"
local scaledlesson = require "cutelua.bench.scaledlesson"
local tiles = require "cute.tiles"
local _, helpers = cute._, cute.utils.blackwell_helpers

local BM, BN, BK, STAGES = 128, 128, 128, 3
local VS = 16             -- elements of K that share a scale
local SCALES = BK // VS   -- scales per row of a tile

local mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaMXF4NVF4Op(cute.e2m1,
  cute.f32, cute.e4m3), {2, 2, 1}, {32, 32, 64})
local sSF_layout = cute.make_layout({128, {VS, 4, SCALES // 4}, STAGES},
  {4, {0, 1, 512}, 128 * SCALES})                          -- (128,BK,PIPE)
local g2s = cute.make_tiled_copy(
  cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.e4m3, 32),
  cute.make_layout {128, 1}, cute.make_layout {1, 4})

-- Returns the layout (rows,k/16) of the scales of `rows` rows of k elements.
local function scale_layout(rows, k)
  return block_scaled.layout(rows, tiles.count(k, VS))
end

-- Returns this thread's scales of an operand for the tiles in row `at`.
-- load(k_tile, stage) copies a tile's scales to a stage. fetch(stage, k) copies
-- the scales of block k of K to frag(_, _, k). fragment_of makes registers for
-- the scales that the thread passes to the MMA, and `tv` is their layout.
local function scales(mSF, at, fragment_of, tv)
  local tid = cute.arch.thread_idx()
  local gSF = cute.local_tile(mSF, {128, SCALES}, {at, _})  -- (128,SCALES,k)
  local sSF = cute.make_smem_tensor(cute.e4m3, sSF_layout, 16)
  local thr = g2s:get_slice(tid)
  local from, to = thr:partition_S(gSF), thr:partition_D(cute.filter_zeros(sSF))
  local along = cute.size(mSF, 1) // 4
  local frag = fragment_of(sSF(_, _, 0), mma:get_slice(tid), tid)  -- (V,M,K)
  local s2r = cute.make_tiled_copy(cute.make_copy_atom(
    cute.nvgpu.CopyUniversalOp(), cute.e4m3), tv(mma), {32, 64}):get_slice(tid)
  local own, held = s2r:partition_S(sSF), s2r:retile(frag)
  return {frag = frag, load = function(k_tile, stage)
    for k = 0, SCALES // 4 - 1 do
      cute.when(cute.lt(k_tile * (SCALES // 4) + k, along), function()
        cute.copy(g2s, from(_, _, k, k_tile), to(_, _, k, stage))
      end, function()  -- beyond K, products are 0, but a scale could be NaN
        to(_, _, k, stage):fill(0)
      end)
    end
  end, fetch = function(stage, k)
    cute.autovec_copy(cute.filter_zeros(own(_, _, k, stage)),
                      cute.filter_zeros(held(_, _, k)))
  end}
end

local gemm = cute.kernel("gemm_sm120", function(mA, mSFA, mB, mSFB, mC)
  local bm, bn = tiles.raster(cute.arch.block_idx(),
    tiles.count(cute.size(mC, 0), BM), tiles.count(cute.size(mC, 1), BN), 8)
  local A = tiles.operand(mA, {of = mma, which = "A", tile = {BM, BK},
                               at = bm, stages = STAGES, slots = 1})
  local B = tiles.operand(mB, {of = mma, which = "B", tile = {BN, BK},
                               at = bn, stages = STAGES, slots = 1})
  local C = tiles.result(mC, mma, {BM, BN}, {bm, bn})
  C.acc:fill(0)
  local SFA = scales(mSFA, bm, helpers.partition_fragment_SFA,
                     helpers.get_layoutSFA_TV)
  local SFB = scales(mSFB, bn, helpers.partition_fragment_SFB,
                     helpers.get_layoutSFB_TV)

  local function load(k_tile, stage)
    cute.when(cute.lt(k_tile, A.k_tiles), function()
      tiles.load({A, B, SFA, SFB}, k_tile, stage)
    end)
    cute.arch.cp_async_commit_group()
  end
  for stage = 0, STAGES - 2 do load(stage, stage) end
  for k_tile in cute.range(A.k_tiles) do
    cute.arch.cp_async_wait_group(STAGES - 2)
    cute.arch.sync_threads()
    local stage = k_tile % STAGES
    for k = 0, A.k_blocks - 1 do
      for _, X in ipairs {A, B, SFA, SFB} do X.fetch(stage, k) end
      if k == 0 then
        load(k_tile + STAGES - 1, (k_tile + STAGES - 1) % STAGES)
      end
      cute.gemm(mma, C.acc, {A.block(k), SFA.frag(_, _, k)},
                {B.block(k), SFB.frag(_, _, k)}, C.acc)
    end
  end
  C.store()
end)

-- Returns a function that views a tensor of scales, of `rows` rows, in the
-- order of scale_layout.
local function arranged(rows, k)
  return function(t)
    return cute.make_tensor(t.iterator, scale_layout(rows, k))
  end
end

harness.run(arg, scaledlesson.lesson {
  about = "C = A B^T of NVFP4 in bf16 (sm_120).",
  arch = "sm_120a", tile = {BM, BN, BK}, dtype = "e2m1", sf = "e4m3", vs = VS,
  step = 2, scale_layout = scale_layout,
  make = function(p)
    return {kernel = gemm, block = mma:size(),
            grid = tiles.count(p.m, BM) * tiles.count(p.n, BN),
            args = {"a", {"sfa", arranged(p.m, p.k)}, "b",
                    {"sfb", arranged(p.n, p.k)}, "c"}}
  end,
})
-- SPDX-License-Identifier: MIT
