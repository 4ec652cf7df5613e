-- The example of the error kind `unwritten` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/unwritten/report.lua:11 in main chunk
-- expect: report.lua:13: 1 of 30 elements of global tensor 'mY', an output,
--   were not written: element 29 [unwritten]
-- expect: is a tile, a remainder or a branch missing? If these elements are
--   written elsewhere, pass only the part that is written here, or call
--   cute.undefined_ok(tensor)
local cute = require "cute"

cute.kernel("k", function(mY, n)
  local i = cute.arch.thread_idx()
  cute.when(i:lt(n - 1), function() mY[i] = i end)  -- wrong
  -- mend: cute.when(i:lt(n), function() mY[i] = i end)
end)(cute.empty({30}, cute.i32), 30):launch {grid = 1, block = 32,
                                            device = "sim"}
