-- The example of the error kind `barrier-mismatch` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/barrier-mismatch/report.lua:16 in run
-- expect: report.lua:21: nothing orders this arrival at barrier 1 after the
--   barrier's previous phase: that phase may count it instead of another
--   arrival [barrier-mismatch]
-- expect: the other: report.lua:22
-- expect: let the arriving threads wait for the end of that phase; give each
--   role, such as producers, a barrier of its own
-- expect: 1 more may follow from it
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

run({block = 64}, function(mX)
  local n = cute.arch.warp_idx():eq(0)  -- wrong
  cute.when(n, function() cute.arch.barrier_arrive(1, 64) end, function()  -- wrong
    cute.arch.barrier_arrive(1, 32)  -- wrong
    cute.arch.barrier_arrive(1, 32)  -- wrong
  end)  -- wrong
  cute.arch.barrier(1, 64)
end, X)
