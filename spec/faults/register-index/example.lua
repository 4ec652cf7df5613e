-- The example of the error kind `register-index` in docs/errors.md.
-- expect: cutelua: cute.gemm: fragment A is indexed by a traced value;
--   registers have no addresses: unroll with a plain Lua loop [register-index]
-- expect: spec/faults/register-index/example.lua:25 in kernel k
-- expect: D ptr[f32,rmem] o ((2,2),1,1):((1,2),0,0)
-- expect: A ptr[bf16,rmem]+?{div=8} o ((2,2,2),1):((1,2,4),0)
-- expect: B ptr[bf16,rmem]+?{div=4} o ((2,2),1):((1,2),0)
-- expect: C ptr[f32,rmem] o ((2,2),1,1):((1,2),0,0)
-- expect: hint: index fragments with the variable of a plain `for i = 0, n do`,
--   which unrolls
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
  local a = cute.make_rmem_tensor({{2, 2, 2}, 1, 2}, cute.bf16)
  local b = cute.make_rmem_tensor({{2, 2}, 1, 2}, cute.bf16)
  local c = cute.make_rmem_tensor({{2, 2}, 1, 1}, cute.f32)
  a:fill(1) b:fill(1) c:fill(0)
  for k in cute.range(2) do                        -- k is not a constant  -- wrong
  -- mend: for k = 0, 1 do                                  -- unrolled
    cute.gemm(mma, c, a(cute._, cute._, k), b(cute._, cute._, k), c)
  end
  cute.when(cute.arch.thread_idx():eq(0), function() mX[{0, 0}] = c[0] end)
end, X)
