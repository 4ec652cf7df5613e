-- Multiplies two tiles by Volta's MMA. Fault: B's fragment is made like A's.
-- expect: cutelua: cute.gemm: operand B is the fragment 'rB', which was made
--   for operand A: its values are in other threads [shape-mismatch]
-- expect: spec/faults/shape-mismatch/fragment_of_a_for_b.lua:22 in kernel mma
-- expect: make it with make_fragment_B and partition_B
local cute = require "cute"

local mma = cute.make_tiled_mma("SM70_8x8x4_F32F16F16F32_TN",
  cute.make_layout {2, 2, 1}, {16, 16, 4})

local kernel = cute.kernel("mma", function(a, b, c)
  local thr = mma:get_slice(cute.arch.thread_idx())
  local tA, tC = thr:partition_A(a), thr:partition_C(c)
  local tB = thr:partition_A(b)  -- wrong
  -- mend: local tB = thr:partition_B(b)
  local rA, rC = thr:make_fragment_A(tA), thr:make_fragment_C(tC)
  local rB = thr:make_fragment_A(tB)  -- wrong
  -- mend: local rB = thr:make_fragment_B(tB)
  cute.autovec_copy(tA, rA)
  cute.autovec_copy(tB, rB)
  rC:fill(0)
  cute.gemm(mma, rC, rA, rB, rC)
  cute.autovec_copy(rC, tC)
end)

local a, b = cute.ones({16, 4}, "f16"), cute.ones({16, 4}, "f16")
local c = cute.zeros({16, 16}, "f32")
kernel(a, b, c):launch {grid = 1, block = mma:size(), device = "sim"}
assert(c(15, 15) == 4)
-- SPDX-License-Identifier: MIT
