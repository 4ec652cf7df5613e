-- Two blocks send each other values by st.async. Fault: too many bytes are
-- expected.
-- expect: cutelua: simulator: kernel letters: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/letters_many_bytes.lua:32 in main chunk
-- expect: letters_many_bytes.lua:28: no warp can go on: 2 warps wait (warp 0,
--   1) at mbarrier 'came'[0] for the end of phase 0 (parity 0), which lacks 256
--   bytes [deadlock]
-- expect: expected: letters_many_bytes.lua:22
-- expect: a TMA load transfers the tx_bytes of its atom, whole boxes, including
--   elements outside the tensor: expect all of these bytes
local cute = require "cute"
local arch, _ = cute.arch, cute._

local Y = cute.zeros({128}, cute.f32)
local k = cute.kernel("letters", function(y)
  local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local mail = arch.alloc_smem(cute.f32, 64, 16)
  local came = arch.alloc_smem(cute.i64, 1)
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(came, 1)
    arch.mbarrier_init_fence()
    arch.mbarrier_arrive_and_expect_tx(came, 512)  -- wrong
    -- mend: arch.mbarrier_arrive_and_expect_tx(came, 256)
  end)
  arch.cluster_arrive()
  arch.cluster_wait()
  arch.store_async_dsmem(mail + tid, tid:to(cute.f32), came, 1 - rank)
  arch.mbarrier_wait(came, 0)
  local got = cute.make_tensor(mail, cute.make_layout(64))
  y[tid + 64 * rank] = got[63 - tid]
end)
k(Y):launch {grid = 2, block = 64, cluster = 2,
  device = "sim:sm_90a", seed = 1}
