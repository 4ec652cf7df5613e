--- Lesson: tensor cores.
local cute = require "cute"

-- Reports whether k(A, B, C) computes C = A B^T for these extents.
local function multiplies(k, m, n, depth, launch)
  local a = cute.zeros({m, depth}, cute.bf16)
  local b = cute.zeros({n, depth}, cute.bf16)
  local c = cute.zeros({m, n}, cute.f32)
  for p = 0, depth - 1 do
    for i = 0, m - 1 do a[{i, p}] = (i + 2 * p) % 5 - 2 end
    for j = 0, n - 1 do b[{j, p}] = (3 * j + p) % 7 - 3 end
  end
  launch.device = "sim"
  k(a, b, c):launch(launch)
  for i = 0, m - 1 do
    for j = 0, n - 1 do
      local sum = 0
      for p = 0, depth - 1 do sum = sum + a(i, p) * b(j, p) end
      if c(i, j) ~= sum then
        return nil, ("K = %d: C(%d, %d) is %s, and should be %s"):format(depth,
          i, j, c(i, j), sum)
      end
    end
  end
  return true
end

return {
  title = "Tensor cores",
  text = [==[
A tensor core multiplies small matrices. `SM80_16x8x16_F32BF16BF16F32_TN` takes
A of 16x16 and B of 8x16 in bf16, and adds their product to 16x8 sums in f32. A
warp issues it together, and each thread holds a few elements, which the
hardware determines. The *atom* describes them, as layouts of threads and
values:

```draw
cute.make_mma_atom "SM80_16x8x16_F32BF16BF16F32_TN"
```

Thread 0 holds C(0,0), C(0,1), C(8,0), C(8,1). You need not know that by heart:
a *tiled MMA* partitions tensors into each thread's elements by `partition_A`,
`partition_B` and `partition_C`. `make_fragment_A` and so on make matching
registers.

```lua
mma = cute.make_tiled_mma "SM80_16x8x16_F32BF16BF16F32_TN"
mma:size()  --> 32
one = cute.kernel("one", function(A, B, C)
  local thr = mma:get_slice(cute.arch.thread_idx())
  local tCgA, tCgB = thr:partition_A(A), thr:partition_B(B)
  local tCgC = thr:partition_C(C)
  local rA, rB = thr:make_fragment_A(tCgA), thr:make_fragment_B(tCgB)
  local acc = thr:make_fragment_C(tCgC)
  acc:fill(0)
  cute.autovec_copy(tCgA, rA)
  cute.autovec_copy(tCgB, rB)
  cute.gemm(mma, acc, rA, rB, acc)
  cute.autovec_copy(acc, tCgC)
end)
A, B = cute.full({16, 16}, 2, cute.bf16), cute.full({8, 16}, 3, cute.bf16)
C = cute.zeros({16, 8}, cute.f32)
one(A, B, C):launch {grid = 1, block = 32, device = "sim"}
C(15, 7)  --> 96.0
```

Longer operands work in the same way: partitions have the modes (MMA, M, K),
and `cute.gemm` iterates over all of them. So this kernel also accepts A of
32x48, with more registers. Real kernels load one piece of K at a time through
shared memory, for which `ldmatrix` is made. `scripts/gemm_base.lua` does that
on one page.

More warps: `make_tiled_mma(atom, {2, 2, 1})` has four, 2x2, on 32x16. Each of
the 128 threads has its part:

```lua
mma4 = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", {2, 2, 1})
mma4:size()  --> 128
```

Exercise: let the kernel multiply with few registers: K of any multiple of 16,
in pieces of 16. `cute.local_tile(A, {16, 16}, {0, k})` is piece k of A. Make
the fragments from piece 0, and fill them in a loop
`for k in cute.range(n) do`.

```exercise deep
mma = cute.make_tiled_mma "SM80_16x8x16_F32BF16BF16F32_TN"
k = cute.kernel("deep", function(A, B, C)
  local thr = mma:get_slice(cute.arch.thread_idx())
  local tCgC = thr:partition_C(C)
  local acc = thr:make_fragment_C(tCgC)
  acc:fill(0)
  local tCgA = thr:partition_A(cute.local_tile(A, {16, 16}, {0, 0}))
  local tCgB = thr:partition_B(cute.local_tile(B, {8, 16}, {0, 0}))
  local rA, rB = thr:make_fragment_A(tCgA), thr:make_fragment_B(tCgB)
  cute.autovec_copy(tCgA, rA)
  cute.autovec_copy(tCgB, rB)
  cute.gemm(mma, acc, rA, rB, acc)
  cute.autovec_copy(acc, tCgC)
end)
```
]==],
  exercises = {
    deep = {
      makes = "k",
      hints = {"cute.local_tile(A, {16, 16}, {0, cute._}) has one more mode: "
        .. "the piece. partition_A of it is (MMA, M, K, piece).",
        "In the loop: copy tCgA(_, _, _, k) to rA, the same for B, and gemm.",
        "The number of pieces is cute.size(tCgA, 3)."},
      solution = [[
mma = cute.make_tiled_mma "SM80_16x8x16_F32BF16BF16F32_TN"
k = cute.kernel("deep", function(A, B, C)
  local thr = mma:get_slice(cute.arch.thread_idx())
  local tCgC = thr:partition_C(C)
  local acc = thr:make_fragment_C(tCgC)
  acc:fill(0)
  local tCgA = thr:partition_A(cute.local_tile(A, {16, 16}, {0, _}))
  local tCgB = thr:partition_B(cute.local_tile(B, {8, 16}, {0, _}))
  local rA = thr:make_fragment_A(tCgA(_, _, _, 0))
  local rB = thr:make_fragment_B(tCgB(_, _, _, 0))
  for k in cute.range(cute.size(tCgA, 3)) do
    cute.autovec_copy(tCgA(_, _, _, k), rA)
    cute.autovec_copy(tCgB(_, _, _, k), rB)
    cute.gemm(mma, acc, rA, rB, acc)
  end
  cute.autovec_copy(acc, tCgC)
end)]],
      check = function(env)
        for _, depth in ipairs {16, 48, 64} do
          local ok, why = multiplies(env.k, 16, 8, depth,
                                     {grid = 1, block = 32})
          if not ok then return nil, why end
        end
        return true
      end,
    },
  },
}
-- SPDX-License-Identifier: MIT
