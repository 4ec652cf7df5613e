-- Two blocks send each other values by st.async. Fault: the wait has the wrong
-- parity.
-- expect: cutelua: simulator: kernel letters: 1 fault [kernel-fault]
-- expect: spec/faults/async-in-flight/letters_parity.lua:33 in main chunk
-- expect: letters_parity.lua:31: read of shared memory while an st.async to it
--   is in flight (the wait at mbarrier 'came'[0] passed before the end of phase
--   0: wrong parity): element 31 of shared tensor 'mail' [async-in-flight]
-- expect: the st.async: letters_parity.lua:27, thread 31
-- expect: the wait: letters_parity.lua:28
-- expect: wait for the parity of this phase: 0 for the first, then 1, 0, ...
-- expect: 4 more may follow from it
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
    arch.mbarrier_arrive_and_expect_tx(came, 256)
  end)
  arch.cluster_arrive()
  arch.cluster_wait()
  arch.store_async_dsmem(mail + tid, tid:to(cute.f32), came, 1 - rank)
  arch.mbarrier_wait(came, 1)  -- wrong
  -- mend: arch.mbarrier_wait(came, 0)
  local got = cute.make_tensor(mail, cute.make_layout(64))
  y[tid + 64 * rank] = got[63 - tid]
end)
k(Y):launch {grid = 2, block = 64, cluster = 2,
  device = "sim:sm_90a", seed = 1}
