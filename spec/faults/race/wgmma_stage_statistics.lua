-- Threads compute row statistics from the stage that wgmma reads. Fault: no
-- proxy fence precedes the release of the stage, only the wait for wgmma.
-- run: check
-- expect: check: kernel faulty: ok
-- expect: note: wgmma_stage_statistics.lua:53: write by a bulk copy after a
--   thread's read, with no fence_proxy("async") in between: element 0 of shared
--   tensor 'lse' (first access: wgmma_stage_statistics.lua:68); PTX does not
--   guarantee this: PTX needs a fence between accesses through two proxies:
--   call fence_view_async_shared() in the threads that read, before they
--   arrive, or in the thread that copies, after its wait
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local warpgroup = cute.nvgpu.warpgroup
local pipeline = cute.pipeline
local Group, Agent = pipeline.CooperativeGroup, pipeline.Agent
local when = cute.when
local LOAD = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local function run64(from, n, to, m)
  return cpasync.group_bulk_copy_modes(
    cute.local_tile(from, {64}, {n}), cute.local_tile(to, {64}, {m or 0}))
end

local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
local rows = cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128",
  "bf16"), {64, 64})
local load, cX = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SOp(), cute.zeros({64, 64}, cute.bf16), rows,
  {64, 64})
local k = cute.kernel("faulty", function(a, c, stats, d)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.bf16, rows, 1024)
  local lse = smem(64)
  local pipe = pipeline.PipelineTmaAsync {num_stages = 1,
    tx_count = a.tx_bytes + 256, producer_group = Group(Agent.Thread),
    consumer_group = Group(Agent.Warp, 4)}
  local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(cute.local_tile(c, {64, 64},
    {0, 0}), 0, 2))
  when(tid:eq(128), function()
    local write = pipe:make_producer_state()
    for k in cute.range(2) do  -- luacheck: ignore k
      pipe:producer_acquire(write)
      local full = pipe:producer_get_barrier(write)
      cute.copy(a, tg, ts, {tma_bar_ptr = full})
      local from, to = run64(stats, 0, lse)
      cute.copy(LOAD, from, to, {mbar_ptr = full})
      write:advance()
    end
  end)
  when(tid:lt(128), function()
    local read = pipe:make_consumer_state()
    local thr = mma:get_slice(tid)
    local acc = thr:partition_fragment_C(cute.make_layout {64, 64})
    mma:set("ACCUMULATE", false)
    for k in cute.range(2) do  -- luacheck: ignore k
      pipe:consumer_wait(read)
      warpgroup.fence()
      cute.gemm(mma, acc, mma:make_fragment_A(thr:partition_A(s)),
                mma:make_fragment_B(thr:partition_B(s)), acc)
      warpgroup.commit_group()
      local l = lse[tid % 64]
      warpgroup.wait_group(0)
      for i = 0, cute.size(acc) - 1 do acc[i] = acc[i] + l end
      -- mend: arch.fence_view_async_shared()
      arch.sync_warp()
      pipe:consumer_release(read)
      read:advance()
    end
    cute.autovec_copy(acc, thr:partition_C(d))
  end)
end)
k(load, cX, cute.zeros({64}, cute.f32), cute.zeros({64, 64}, cute.f32)):launch {
  grid = 1, block = 160, device = "sim:sm_90a"}
