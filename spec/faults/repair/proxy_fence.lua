-- Fault: there is no proxy fence between stores and a bulk copy of their data.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: proxy_fence.lua:29: read by a bulk copy after a thread's write, with
--   no fence_proxy("async") in between: element 0 of shared tensor 's' [race]
-- expect: first access: proxy_fence.lua:25, thread 0
-- expect: call fence_view_async_shared() in the threads that wrote, then
--   synchronize at a barrier
-- expect: fixed by cute.arch.fence_view_async_shared() before
--   proxy_fence.lua:29, or before proxy_fence.lua:28, or before
--   proxy_fence.lua:26
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(out)
  local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 128)
  local r = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 128)
  local bar = arch.alloc_smem(cute.i64, 1)
  cute.when(t:eq(0), function()
    arch.mbarrier_init(bar, 1)
    arch.mbarrier_init_fence()
    arch.mbarrier_arrive_and_expect_tx(bar, 256)
  end)
  s[t] = t
  arch.cluster_arrive()
  arch.cluster_wait()
  cute.when(t:eq(0), function()
    cute.copy(cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkS2SOp(),
      cute.i32), s, r, {mbar_ptr = bar, cta_rank = 1 - rank})
  end)
  arch.mbarrier_wait(bar, 0)
  out[rank * 64 + t] = r[63 - t]
end)
k(cute.zeros({128}, cute.i32)):launch {grid = 2, block = 64, cluster = 2,
                                       device = "sim"}
