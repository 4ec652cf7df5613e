-- Fault: a peer's arrival and the wait for it have the scope of a block.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: cluster_both_scopes.lua:35: read after a write by a thread of another
--   block with nothing that orders them at cluster scope: element 63 of shared
--   tensor 's' [race]
-- expect: first access: cluster_both_scopes.lua:32, thread 63
-- expect: put cluster_arrive() and cluster_wait() between the two lines, or use
--   an mbarrier with scope = "cluster" for both sides (PipelineTmaAsync {scope
--   = "cluster"})
-- expect: fixed by scope = "cluster" at cluster_both_scopes.lua:33 and scope =
--   "cluster" at cluster_both_scopes.lua:34
local cute = require "cute"
local arch = cute.arch

local function meet()
  arch.cluster_arrive()
  arch.cluster_wait()
end

local k = cute.kernel("k", function(out)
  local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64))
  local bar = arch.alloc_smem(cute.i64, 1)
  cute.when(t:eq(0), function()
    arch.mbarrier_init(bar, 64)
    arch.mbarrier_init_fence()
  end)
  meet()
  local peer = cute.make_tensor(arch.map_dsmem_ptr(s.iterator, 1 - rank),
                                s.layout)
  peer[t] = rank * 100 + t
  arch.mbarrier_arrive(bar, 1 - rank, 1, {scope = "cta"})
  arch.mbarrier_wait(bar, 0, {scope = "cta"})
  out[rank * 64 + t] = s[63 - t]
  meet()
end)
k(cute.zeros({128}, cute.i32)):launch {grid = 2, block = 64, cluster = 2,
                                       device = "sim"}
