-- The example of the error kind `block-race` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 2 faults [kernel-fault]
-- expect: spec/faults/block-race/report.lua:20 in run
-- expect: report.lua:25: write after a read by another lane of the warp with no
--   __syncwarp in between: element 0 of global tensor 'mX' [warp-race]
-- expect: first access: thread 1
-- expect: to add to one element from many threads, use an atomic
--   (cute.arch.atomic_add); otherwise read, cute.arch.sync_warp(), then write
-- expect: report.lua:25: write by block (1,0,0) and write by block (0,0,0) with
--   nothing to order them: element 0 of global tensor 'mX' [block-race]
-- expect: second access: thread 0
-- expect: let one block access it, use atomics, or synchronize with a release
--   and an acquire of gpu scope; a thread that releases for its block must come
--   after a sync_threads()
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

run({grid = 2}, function(mX)
  local tid, block = cute.arch.thread_idx(), cute.arch.block_idx()  -- wrong
  mX[{0, 0}] = mX[{0, 0}] + 1     -- both blocks add  -- wrong
  -- mend: cute.when(cute.arch.thread_idx():eq(0), function()
    -- mend: cute.arch.atomic_add(mX.iterator, 1.0)
  -- mend: end)
end, X)
