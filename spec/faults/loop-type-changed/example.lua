-- The example of the error kind `loop-type-changed` in docs/errors.md.
-- expect: cutelua: local 'sum' changes from i32 to f32 in this loop
--   [loop-type-changed]
-- expect: spec/faults/loop-type-changed/example.lua:14 in kernel k
-- expect: convert it with :to(dtype), or use another local
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX, n)
  local sum = cute.arch.thread_idx()      -- sum is i32  -- wrong
  for i in cute.range(n) do sum = sum + mX[{i, 0}] end    -- sum becomes f32  -- wrong
  -- mend: local sum = cute.arch.thread_idx():to(cute.f32)
  -- mend: for i in cute.range(n) do sum = sum + mX[{i, 0}] end
end, X, 4)
