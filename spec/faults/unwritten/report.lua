-- The example of docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/unwritten/report.lua:10 in main chunk
-- expect: report.lua:12: 1 of 30 elements of global tensor 'mY', an output,
--   were not written: element 29 [unwritten]
-- expect: is a tile, a rest or a branch missing? Where others are to write
--   them: hand over the part, or say cute.undefined_ok(tensor)
local cute = require "cute"

cute.kernel("k", function(mY, n)
  local i = cute.arch.thread_idx()
  cute.when(i:lt(n - 1), function() mY[i] = i end)  -- wrong
  -- mend: cute.when(i:lt(n), function() mY[i] = i end)
end)(cute.empty({30}, cute.i32), 30):launch {grid = 1, block = 32,
                                            device = "sim"}
