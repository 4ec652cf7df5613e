-- Fault: the loader handles ceil(k / 2) tiles, the readers only k // 2.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/exited-block/one_more_tile_loaded.lua:45 in main chunk
-- expect: one_more_tile_loaded.lua:29: block (0,0,0) may exit before a copy to
--   or from its shared memory completes: none of its threads waits for the copy
--   [exited-block]
-- expect: filled 4 stages, released 3: do both loops count alike?
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local pipeline = cute.pipeline
local Group, Agent = pipeline.CooperativeGroup, pipeline.Agent
local when = cute.when
local _ = cute._
local LOAD = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)

local k = cute.kernel("faulty", function(x, y, n)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64, 2}, 128)
  local pipe = pipeline.PipelineTmaAsync {num_stages = 2, tx_count = 256,
    producer_group = Group(Agent.Thread),
    consumer_group = Group(Agent.Thread, 32)}
  when(tid:eq(32), function()
    local write = pipe:make_producer_state()
    for k in cute.range((n + 1) // 2) do
      pipe:producer_acquire(write)
      local from, to = cpasync.group_bulk_copy_modes(
        cute.local_tile(x, {64}, {k}), s(_, write.index))
      cute.copy(LOAD, from, to, {mbar_ptr = pipe:producer_get_barrier(write)})
      write:advance()
    end
  end)
  when(tid:lt(32), function()
    local read = pipe:make_consumer_state()
    for k in cute.range(n // 2) do  -- wrong
    -- mend: for k in cute.range((n + 1) // 2) do
      pipe:consumer_wait(read)
      y[k * 64 + tid] = s[{tid, read.index}]
      arch.fence_view_async_shared()
      pipe:consumer_release(read)
      read:advance()
    end
  end)
end)
k(cute.zeros({256}, cute.f32), cute.zeros({256}, cute.f32), 7):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
