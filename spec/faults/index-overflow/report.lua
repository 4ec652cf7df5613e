-- The example of the error kind `index-overflow` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/index-overflow/report.lua:11 in main chunk
-- expect: report.lua:14: an index uses a product that overflows 32 bits: the
--   access reaches element 0 of global tensor 'mX' [index-overflow]
-- expect: the product: the same line
-- expect: compute it in i64: x:to(cute.i64) * y
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)

cute.kernel("k", function(mX, n)
  local x = cute.make_tensor(mX.iterator, cute.make_layout {1024})
  local tid = cute.arch.thread_idx()
  x[tid + n * n] = 1.0           -- 65536^2 is 0 in 32 bits  -- wrong
end)(X, 65536):launch {grid = 1, block = 32, device = "sim"}  -- wrong
  -- mend: x[tid + n * n] = 1.0
-- mend: end)(X, 16):launch {grid = 1, block = 32, device = "sim"}
