-- The example of the error kind `type-mismatch` in docs/errors.md.
-- expect: cutelua: tensor:store: a vector of f32 cannot be stored to a tensor
--   of bf16 [type-mismatch]
-- expect: spec/faults/type-mismatch/example.lua:15 in kernel k
-- expect: ptr[bf16,rmem] o (32):(1)
-- expect: convert it with :to(cute.bf16)
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local r = cute.make_rmem_tensor({32}, cute.bf16)
  r:store(mX(0, cute._):load())   -- f32 values into a bf16 tensor  -- wrong
  -- mend: r:store(mX(0, cute._):load():to(cute.bf16))
end, X)
