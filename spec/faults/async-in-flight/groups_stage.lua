-- Loads stages by cp.async, with groups and sync_threads(). Fault: the readers
-- read another stage than the one that they waited for.
-- expect: cutelua: simulator: kernel groups: 1 fault [kernel-fault]
-- expect: spec/faults/async-in-flight/groups_stage.lua:45 in main chunk
-- expect: groups_stage.lua:41: read of shared memory while a cp.async to it is
--   in flight (the preceding wait left 1 group pending): element 191 of shared
--   tensor 's' [async-in-flight]
-- expect: the cp.async: groups_stage.lua:32, thread 63
-- expect: the wait completed the copy to coordinate (63,0), which no thread has
--   read: do the copy, the wait and this read use the same stage?
-- expect: 1 more may follow from it
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
    end)
    arch.cp_async_commit_group()
  end
  for t = 0, STAGES - 2 do fetch(t) end
  for t in cute.range(TILES) do
    arch.cp_async_wait_group(STAGES - 2)
    arch.sync_threads()
    fetch(t + STAGES - 1)
    y[tid + 128 * t] = s[{127 - tid, (t + 1) % STAGES}]  -- wrong
    -- mend: y[tid + 128 * t] = s[{127 - tid, t % STAGES}]
  end
end)
k(X, Y):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
