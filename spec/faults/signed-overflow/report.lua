-- The example of the error kind `signed-overflow` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/signed-overflow/report.lua:13 in main chunk
-- expect: report.lua:14: a result that overflows 32 bits is compared, divided
--   or shifted: compilers assume that signed integers do not overflow
--   [signed-overflow]
-- expect: the result: the same line
-- expect: compute it in i64, x:to(cute.i64) + y, or in u32, which wraps:
--   x:to(cute.u32) + y
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)

cute.kernel("k", function(mX, n)
  cute.when((n + 1):gt(n), function() mX[{0, 0}] = 1.0 end)  -- wrong
  -- mend: cute.when((n:to(cute.i64) + 1):gt(n:to(cute.i64)), function()
    -- mend: mX[{0, 0}] = 1.0
  -- mend: end)
end)(X, 2147483647):launch {grid = 1, block = 1, device = "sim"}
