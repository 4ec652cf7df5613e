-- Fault: a block with no tile exits, but the other block multicasts to it.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/exited-block/multicast_block_leaves.lua:60 in main chunk
-- expect: multicast_block_leaves.lua:50: access to shared memory of block
--   (1,0,0), which may have exited: none of its threads waits for this access
--   [exited-block]
-- expect: let the block wait for it, or add a cluster barrier (cluster_arrive,
--   cluster_wait) before the block exits
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local when = cute.when

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

local function run64(from, n, to, m)
  return cpasync.group_bulk_copy_modes(
    cute.local_tile(from, {64}, {n}), cute.local_tile(to, {64}, {m or 0}))
end

local k = cute.kernel("faulty", function(x, y, n)
  local t, b = arch.thread_idx(), arch.block_idx()
  local s, bar = smem(64), barriers {1}
  local multicast = cute.make_copy_atom(cpasync.CopyBulkG2SMulticastOp(),
    cute.f32)
  local function work()
    thread0(function() arch.mbarrier_arrive_and_expect_tx(bar, 256) end)
    when(b:eq(0), function()
      thread0(function()
        local from, to = run64(x, 0, s)
        cute.copy(multicast, from, to, {mbar_ptr = bar, mcast_mask = 3})
      end)
    end)
    arch.mbarrier_wait(bar, 0)
    y[t] = s[t]
  end
  when(b:lt(n), work)  -- wrong
  when(b:lt(n), function() y[t] = s[t] end)  -- wrong
  -- mend: work()
end)
k(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32), 1):launch {
  grid = 2, cluster = 2, block = 32, device = "sim:sm_90a", seed = 1}
