-- Fault: of two warpgroups that read a stage, only the first releases it.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/warpgroup_hands_back.lua:73 in main chunk
-- expect: warpgroup_hands_back.lua:47: write after a read by wgmma whose
--   completion was not waited for: element 0 of shared tensor 's' [race]
-- expect: first access: warpgroup_hands_back.lua:57
-- expect: the threads that issued it have waited for it; put sync_threads(), or
--   an mbarrier that they arrive at, between their wait and this line
-- expect: 1 more may follow from it
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local warpgroup = cute.nvgpu.warpgroup
local when = cute.when

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function barriers(counts)
  local all = arch.alloc_smem(cute.i64, #counts)
  thread0(function()
    for i, n in ipairs(counts) do arch.mbarrier_init(all + (i - 1), n) end
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  return all
end

local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
local rows = cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128",
  "bf16"), {64, 64})
local load, cX = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SOp(), cute.zeros({64, 64}, cute.bf16), rows,
  {64, 64})
local k = cute.kernel("faulty", function(a, c, d)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.bf16, rows, 1024)
  local bar = barriers {1, 4}  -- wrong
  -- mend: local bar = barriers {1, 8}
  local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(cute.local_tile(c, {64, 64},
    {0, 0}), 0, 2))
  when(tid:eq(256), function()
    for k = 0, 1 do
      if k == 1 then arch.mbarrier_wait(bar + 1, 0) end
      arch.mbarrier_arrive_and_expect_tx(bar, a.tx_bytes)
      cute.copy(a, tg, ts, {tma_bar_ptr = bar})
    end
  end)
  when(tid:lt(256), function()
    local thr = mma:get_slice(tid % 128)
    local acc = thr:partition_fragment_C(cute.make_layout {64, 64})
    mma:set("ACCUMULATE", false)
    for k = 0, 1 do
      arch.mbarrier_wait(bar, k)
      warpgroup.fence()
      cute.gemm(mma, acc, mma:make_fragment_A(thr:partition_A(s)),
                mma:make_fragment_B(thr:partition_B(s)), acc)
      warpgroup.commit_group()
      warpgroup.wait_group(0)
      if k == 0 then
        when(arch.lane_idx():eq(0)
          & arch.warp_idx():lt(4), function()  -- wrong
          -- mend: & arch.warp_idx():lt(8), function()
          arch.mbarrier_arrive(bar + 1)
        end)
      end
    end
    local half = cute.local_tile(d, {64, 64}, {0, tid // 128})
    cute.autovec_copy(acc, thr:partition_C(half))
  end)
end)
k(load, cX, cute.zeros({64, 128}, cute.f32)):launch {grid = 1, block = 288,
  device = "sim:sm_90a", seed = 1}
