-- The example of the error kind `race` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/race/report.lua:14 in run
-- expect: report.lua:34: read after a write by another warp with no barrier in
--   between: element 31 of shared tensor 's' [race]
-- expect: first access: report.lua:24, thread 31
-- expect: arrive at an mbarrier, or a named barrier, after the write, and wait
--   there before the read: these threads have no common sync_threads()…
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

run({block = 64}, function(mX)
  local arch, tid = cute.arch, cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {32})
  local flag = cute.make_smem_tensor(cute.i32, cute.make_layout {1})
  cute.when(tid:eq(0), function() flag[0] = 0 end)
  arch.sync_threads()
  cute.when(tid:lt(32), function()
    s[tid] = 1
    arch.sync_warp()
    cute.when(tid:eq(0), function()
      arch.store(flag.iterator, 1, {sem = "relaxed"})  -- wrong
      -- mend: arch.store(flag.iterator, 1, {sem = "release"})
    end)
  end, function()
    cute.loop(function()
      return arch.load(flag.iterator, nil, {sem = "acquire"}):eq(0)
    end, function() end)
    mX[{tid - 32, 0}] = s[63 - tid]
  end)
end, X)
