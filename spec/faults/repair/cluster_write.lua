-- Fault: a block reads data that its peer writes, with no cluster barrier.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: cluster_write.lua:28: read of an element that a thread of another
--   block writes, with nothing that orders them at cluster scope: element 0 of
--   distributed shared tensor 'peer' [race]
-- expect: first access: cluster_write.lua:27, thread 0
-- expect: put cluster_arrive() and cluster_wait() between the two lines, or use
--   an mbarrier with scope = "cluster" for both sides (PipelineTmaAsync {scope
--   = "cluster"})
-- expect: fixed by cute.arch.cluster_arrive() cute.arch.cluster_wait() before
--   cluster_write.lua:28
local cute = require "cute"
local arch = cute.arch

local function meet()
  arch.cluster_arrive()
  arch.cluster_wait()
end

local k = cute.kernel("k", function(out)
  local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64))
  meet()
  local peer = cute.make_tensor(arch.map_dsmem_ptr(s.iterator, 1 - rank),
                                s.layout)
  peer[t] = rank * 100 + t
  out[rank * 64 + t] = s[63 - t]
  meet()
end)
k(cute.zeros({128}, cute.i32)):launch {grid = 2, block = 64, cluster = 2,
                                       device = "sim"}
