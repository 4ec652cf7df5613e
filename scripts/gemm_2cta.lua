-- Pairs of blocks: C = A B^T in bf16 on Blackwell. Two blocks on adjacent SMs
-- execute one tcgen05.mma (cta_group::2).
--
-- In gemm_tcgen05.lua a block multiplies a tile of 128x128, and loads 128 rows
-- of A and of B. Here a pair multiplies a tile of 256x128. Each block loads 128
-- rows of A, but only 64 rows of B, because the tensor cores read B from the
-- shared memory of both blocks. So a block loads 3/4 of the bytes, and its
-- stages are smaller. The sums of a block's rows are in its own tensor memory.
--   warp 0   in both blocks: one thread loads the block's part of a tile
--   warp 1   in the even block, the leader: one thread issues the MMAs
--   warp 2   in both blocks: allocates and frees tensor memory
-- The leader's mbarriers count the bytes of both blocks' loads. A commit
-- arrives in both blocks. It frees a stage, and after the last tile it allows
-- all warps to load the sums.
--   cutelua scripts/gemm_2cta.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local cpasync, tcgen05 = cute.nvgpu.cpasync, cute.nvgpu.tcgen05
local pipeline, arch, _ = cute.pipeline, cute.arch, cute._
local sm100 = cute.utils.blackwell_helpers

local BM, BN, BK, STAGES = 256, 128, 64, 4  -- the tile of a pair

local mma = cute.make_tiled_mma(tcgen05.MmaF16BF16Op(
  cute.bf16, cute.f32, {BM, BN, 16}, tcgen05.CtaGroup.TWO))
local tile = {BM, BN, BK}
-- The layouts are (MMA,M,K,PIPE) and (MMA,N,K,PIPE) of one block.
local sA_layout = sm100.make_smem_layout_a(mma, tile, cute.bf16, STAGES)
local sB_layout = sm100.make_smem_layout_b(mma, tile, cute.bf16, STAGES)
local cluster = cute.tiled_divide(cute.make_layout {2, 1, 1}, {mma.thr_id})
local t2r = cute.make_copy_atom(tcgen05.Ld32x32bOp(32), cute.f32)

local gemm = cute.kernel("gemm_2cta", function(tma_a, cA, tma_b, cB, mC, alpha,
                                               beta)
  local warp, block = arch.warp_idx(), arch.block_idx()
  local v = arch.block_idx_in_cluster()        -- rank of this block in its pair
  local bm, bn = tiles.raster(block // 2, tiles.count(mC.shape[1], BM),
                              tiles.count(mC.shape[2], BN), 8)
  local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
  local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 1024)
  local One = pipeline.CooperativeGroup(pipeline.Agent.Thread)
  local pipe = pipeline.PipelineTmaUmma {
    num_stages = STAGES, tx_count = 2 * (tma_a.tx_bytes + tma_b.tx_bytes),
    producer_group = One, consumer_group = One, cta_layout_vmnk = cluster,
    defer_sync = true}
  local sums = pipeline.PipelineUmmaAsync {num_stages = 1,
    producer_group = One, consumer_group = One, cta_layout_vmnk = cluster,
    defer_sync = true}
  local address = arch.alloc_smem(cute.i32, 1)
  cute.when(warp:eq(2), function()
    arch.alloc_tmem(BN, address, true)
    arch.relinquish_tmem_alloc_permit(true)
  end)

  local function sync_pair()
    arch.tcgen05_before_thread_sync()
    pipeline.agent_sync(cluster)
    arch.tcgen05_after_thread_sync()
  end
  sync_pair()

  local thr = mma:get_slice(v)
  local gA = thr:partition_A(cute.local_tile(cA, {BM, BK}, {bm, _}))
  local gB = thr:partition_B(cute.local_tile(cB, {BN, BK}, {bn, _}))
  local k_tiles = cute.size(gA, 3)                              -- (MMA,M,K,k)
  local tCrA, tCrB = mma:make_fragment_A(sA), mma:make_fragment_B(sB)
  local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
  local tCtC = cute.make_tensor(ptr,                            -- (MMA,M,N)
    mma:make_fragment_C(mma:partition_shape_C {BM, BN}).layout)

  local function partition(tma, s, g)  -- returns (TMA,PIPE) and (TMA,k)
    return cpasync.tma_partition(tma, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 3), cute.group_modes(g, 0, 3))
  end
  cute.when(warp:eq(0) & arch.elect_one(), function()
    local tAsA, tAgA = partition(tma_a, sA, gA)
    local tBsB, tBgB = partition(tma_b, sB, gB)
    local write = pipe:make_producer_state()
    for k_tile in cute.range(k_tiles) do
      pipe:producer_acquire(write)
      local full = {tma_bar_ptr = pipe:producer_get_barrier(write)}
      cute.copy(tma_a, tAgA(_, k_tile), tAsA(_, write.index), full)
      cute.copy(tma_b, tBgB(_, k_tile), tBsB(_, write.index), full)
      write:advance()
    end
    pipe:producer_tail(write)              -- no commit may follow the exit
  end)
  cute.when(pipe.is_leader_cta & warp:eq(1) & arch.elect_one(), function()
    local read = pipe:make_consumer_state()
    for k_tile in cute.range(k_tiles) do
      pipe:consumer_wait(read)
      mma:set(tcgen05.Field.ACCUMULATE, cute.gt(k_tile, 0))
      cute.gemm(mma, tCtC, tCrA(_, _, _, read.index),
                tCrB(_, _, _, read.index), tCtC)
      pipe:consumer_release(read)
      read:advance()
    end
    sums:producer_commit(sums:make_producer_state())
  end)
  arch.sync_warp()

  sums:consumer_wait(sums:make_consumer_state())
  arch.tcgen05_after_thread_sync()
  local tC = tCtC({_, _}, 0, 0)                                 -- (BM/2,BN)
  local load = tcgen05.make_tmem_copy(t2r, tC)
  local tid = arch.thread_idx()
  local C = tiles.result(mC, load, {BM // 2, BN}, {bm * 2 + v, bn}, tid)
  cute.copy(load, load:get_slice(tid):partition_S(tC), C.acc)
  arch.fence_view_async_tmem_load()
  C.store(alpha or 1, beta or 0)
  sync_pair()
  cute.when(warp:eq(2), function() arch.dealloc_tmem(ptr, BN, true) end)
end)

local op = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.TWO)
lesson.gemm(arg, {
  kernel = gemm, tile = tile, block = 128, cluster = {2, 1, 1},
  grid = function(m, n)
    return {2 * tiles.count(m, BM) * tiles.count(n, BN), 1, 1}
  end,
  arguments = function(A, B, C, alpha, beta)
    local a, cA = cute.nvgpu.make_tiled_tma_atom_A(op, A, sA_layout, tile, mma)
    local b, cB = cute.nvgpu.make_tiled_tma_atom_B(op, B, sB_layout, tile, mma)
    return a, cA, b, cB, C, alpha, beta
  end,
  takes = lesson.rows_of_16, needs = "tcgen05", arch = "sm_100a",
  general = gemm_sm80 {tile = {BM // 2, BN, BK}, stages = 2},
  archs = {"sm_100a"},
  about = "C = A B^T in bf16 by tcgen05 of pairs of blocks (sm_100a).",
})
-- SPDX-License-Identifier: MIT
