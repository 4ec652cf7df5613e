-- The example of the error kind `shape-mismatch` in docs/errors.md.
-- expect: cutelua: cute.autovec_copy: the source has 32 elements, the
--   destination 8 [shape-mismatch]
-- expect: spec/faults/shape-mismatch/example.lua:15 in kernel k
-- expect: source ptr[f32,gmem] o (32):(1)
-- expect: destination ptr[f32,rmem] o (8):(1)
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local r = cute.make_rmem_tensor({8}, cute.f32)  -- wrong
  cute.autovec_copy(mX(0, cute._), r)    -- copies 32 elements to 8  -- wrong
  -- mend: local r = cute.make_rmem_tensor({32}, cute.f32)
  -- mend: cute.autovec_copy(mX(0, cute._), r)
end, X)
