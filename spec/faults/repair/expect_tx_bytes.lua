-- Fault: fewer bytes are expected than a bulk copy brings.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: expect_tx_bytes.lua:32: no warp can go on: 2 warps wait (warp 0, 1)
--   at mbarrier 'bar'[0] for the end of phase 0 (parity 0), which lacks
--   nothing; 128 bytes arrived that no expect_tx announced [deadlock]
-- expect: expected: expect_tx_bytes.lua:22
-- expect: a TMA load transfers the tx_bytes of its atom, whole boxes, including
--   elements outside the tensor: expect all of these bytes
-- expect: fixed by 256 bytes expected at expect_tx_bytes.lua:22
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
    arch.mbarrier_arrive_and_expect_tx(bar, 128)
  end)
  s[t] = t
  arch.fence_proxy("async")
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
