-- A persistent block has three steps per tile in two stages. Fault: each tile
-- restarts with the pipeline states of the first tile.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/ring_states_anew.lua:53 in main chunk
-- expect: ring_states_anew.lua:44: no warp can go on: 1 warp waits (warp 0) at
--   mbarrier 'pipe_full'[1] for the end of phase 2 (parity 0), which lacks 1 of
--   1 arrival [deadlock]
-- expect: this wait is for a phase that is not next for these threads: let the
--   readers wait for parity 0 first, then 1, 0, ...
-- expect: 1 more may follow from it
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local pipeline = cute.pipeline
local Group, Agent = pipeline.CooperativeGroup, pipeline.Agent
local when = cute.when
local _ = cute._
local LOAD = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)

local k = cute.kernel("faulty", function(x, y)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64, 2}, 128)
  local pipe = pipeline.PipelineTmaAsync {num_stages = 2, tx_count = 256,
    producer_group = Group(Agent.Thread),
    consumer_group = Group(Agent.Thread, 32)}
  when(tid:eq(32), function()
    local write = pipe:make_producer_state()
    for tile in cute.range(2) do
      for k in cute.range(3) do
        pipe:producer_acquire(write)
        local from, to = cpasync.group_bulk_copy_modes(
          cute.local_tile(x, {64}, {tile * 3 + k}), s(_, write.index))
        cute.copy(LOAD, from, to,
          {mbar_ptr = pipe:producer_get_barrier(write)})
        write:advance()
      end
    end
  end)
  when(tid:lt(32), function()
    local read = pipe:make_consumer_state()
    for tile in cute.range(2) do
      read.index, read.phase = 0, 0  -- wrong
      for k in cute.range(3) do
        pipe:consumer_wait(read)
        y[(tile * 3 + k) * 64 + tid] = s[{tid, read.index}]
        arch.fence_view_async_shared()
        pipe:consumer_release(read)
        read:advance()
      end
    end
  end)
end)
k(cute.zeros({384}, cute.f32), cute.zeros({384}, cute.f32)):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
