-- Fault: the bytes that the peer block multicasts here are not expected.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/async-in-flight/multicast_bytes.lua:52 in main chunk
-- expect: multicast_bytes.lua:49: read of shared memory while a bulk copy to it
--   is in flight (mbarrier 'all'[0] ended phase 0 with 256 of 512 bytes):
--   element 64 of shared tensor 's' [async-in-flight]
-- expect: the bulk copy: multicast_bytes.lua:46, thread 0
-- expect: expect the bytes of all copies: a TMA load transfers the tx_bytes of
--   its atom
-- expect: 1 more may follow from it
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function meet()
  arch.cluster_arrive()
  arch.cluster_wait()
end

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local function barriers(counts)
  local all = arch.alloc_smem(cute.i64, #counts)
  thread0(function()
    for i, n in ipairs(counts) do arch.mbarrier_init(all + (i - 1), n) end
    arch.mbarrier_init_fence()
  end)
  meet()
  return all
end

local k = cute.kernel("faulty", function(x, y)
  local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local s, bar = smem(128), barriers {1}
  local multicast = cute.make_copy_atom(cpasync.CopyBulkG2SMulticastOp(),
    cute.f32)
  thread0(function()
    arch.mbarrier_arrive_and_expect_tx(bar, 256)  -- wrong
    -- mend: arch.mbarrier_arrive_and_expect_tx(bar, 512)
    local from, to = cpasync.group_bulk_copy_modes(
      cute.local_tile(x, {64}, {rank}), cute.local_tile(s, {64}, {rank}))
    cute.copy(multicast, from, to, {mbar_ptr = bar, mcast_mask = 3})
  end)
  arch.mbarrier_wait(bar, 0)
  y[rank * 64 + t] = s[t] + s[64 + t]
  meet()
end)
k(cute.zeros({128}, cute.f32), cute.zeros({128}, cute.f32)):launch {
  grid = 2, cluster = 2, block = 32, device = "sim:sm_90a", seed = 1}
