-- Loads stages by cp.async, with groups and sync_threads(). Fault: the commit
-- is in a branch that is not always taken.
-- expect: cutelua: simulator: kernel groups: 1 fault [kernel-fault]
-- expect: spec/faults/async-in-flight/groups_conditional_commit.lua:46 in main
--   chunk
-- expect: groups_conditional_commit.lua:43: read of shared memory while a
--   cp.async to it is in flight (the preceding wait left 1 group pending):
--   element 127 of shared tensor 's' [async-in-flight]
-- expect: the cp.async: groups_conditional_commit.lua:33, thread 127
-- expect: no group was committed since the wait before this one: call
--   cp_async_commit_group() in every iteration, also where nothing is copied,
--   or end with cp_async_wait_group(0)
local cute = require "cute"
local arch, _ = cute.arch, cute._
local cpasync = cute.nvgpu.cpasync

local STAGES, TILES = 3, 7
local X = cute.zeros({128 * TILES}, cute.f32)
local Y = cute.zeros({128 * TILES}, cute.f32)
local k = cute.kernel("groups", function(x, y)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32,
    cute.make_layout {128, STAGES}, 16)
  local atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.f32,
    {num_bits_per_copy = 32})
  local gx = cute.local_tile(x, {128}, {_})
  local tiled = cute.make_tiled_copy_tv(atom, cute.make_layout(128),
    cute.make_layout(1))
  local thr = tiled:get_slice(tid)
  local tx, ts = thr:partition_S(gx), thr:partition_D(s)
  local function fetch(t)
    cute.when(cute.lt(t, TILES), function()
      cute.copy(tiled, tx(_, _, t), ts(_, _, t % STAGES))
    arch.cp_async_commit_group() end)  -- wrong
    -- mend: end)
    -- mend: arch.cp_async_commit_group()
  end
  for t = 0, STAGES - 2 do fetch(t) end
  for t in cute.range(TILES) do
    arch.cp_async_wait_group(STAGES - 2)
    arch.sync_threads()
    fetch(t + STAGES - 1)
    y[tid + 128 * t] = s[{127 - tid, t % STAGES}]
  end
end)
k(X, Y):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
