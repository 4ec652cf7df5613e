-- Fault: a block exits while its peer may still read its shared memory.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: cluster_last.lua:26: access to shared memory of block (1,0,0), which
--   may have exited: none of its threads waits for this access [exited-block]
-- expect: let the block wait for it, or add a cluster barrier (cluster_arrive,
--   cluster_wait) before the block exits
-- expect: fixed by cute.arch.cluster_arrive() cute.arch.cluster_wait() at the
--   end of the kernel, after cluster_last.lua:26
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
  s[t] = t
  meet()
  out[rank * 64 + t] = peer[63 - t]
end)
k(cute.zeros({128}, cute.i32)):launch {grid = 2, block = 64, cluster = 2,
                                       device = "sim"}
