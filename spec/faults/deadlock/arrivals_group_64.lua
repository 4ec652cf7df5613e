-- One warp copies by cp.async, which arrives at mbarriers, and another warp
-- reads. Fault: the producers' group counts 64 threads instead of 32.
-- expect: cutelua: simulator: kernel arrivals: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/arrivals_group_64.lua:54 in main chunk
-- expect: arrivals_group_64.lua:47: no warp can go on: 1 warp waits (warp 1) at
--   mbarrier 'pipe_full'[0] for the end of phase 0 (parity 0), which lacks 32
--   of 64 arrivals [deadlock]
-- expect: made: arrivals_group_64.lua:32
-- expect: initialize the mbarrier with the number of threads that arrive in a
--   phase, or let the missing threads arrive
-- expect: 1 more may follow from it
local cute = require "cute"
local arch, _ = cute.arch, cute._
local cpasync = cute.nvgpu.cpasync
local pipeline = cute.pipeline
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

local STAGES, TILES = 2, 6
local X = cute.zeros({32 * TILES}, cute.f32)
local Y = cute.zeros({32 * TILES}, cute.f32)
local k = cute.kernel("arrivals", function(x, y)
  local warp, lane = arch.warp_idx(), arch.lane_idx()
  local s = cute.make_smem_tensor(cute.f32,
    cute.make_layout {32, STAGES}, 16)
  local atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.f32,
    {num_bits_per_copy = 32})
  local tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(32),
    cute.make_layout(1))
  local thr = tiled:get_slice(lane)
  local tx = thr:partition_S(cute.local_tile(x, {32}, {_}))
  local ts = thr:partition_D(s)
  local pipe = pipeline.PipelineAsync {num_stages = STAGES, cp_async = true,
    producer_group = Group(Agent.Thread, 64),  -- wrong
    -- mend: producer_group = Group(Agent.Thread, 32),
    consumer_group = Group(Agent.Thread, 32)}
  cute.when(warp:eq(0), function()
    local write = pipe:make_producer_state()
    for t in cute.range(TILES) do
      pipe:producer_acquire(write)
      cute.copy(tiled, tx(_, _, t), ts(_, _, write.index))
      pipe:producer_commit(write)
      write:advance()
    end
  end, function()
    local read = pipe:make_consumer_state()
    for t in cute.range(TILES) do
      pipe:consumer_wait(read)
      y[lane + 32 * t] = s[{31 - lane, read.index}]
      pipe:consumer_release(read)
      read:advance()
    end
  end)
end)
k(X, Y):launch {grid = 1, block = 64,
  device = "sim:sm_90a", seed = 1}
