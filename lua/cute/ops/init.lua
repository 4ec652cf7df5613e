--- Operations on whole tensors. Each uses the kernel that fits best.
--
--     local D = cute.ops.gemm(A, B)                -- A B^T
--     print(cute.ops.explain(A, B))                -- the kernel, and why
local sign = require "cute.lang.signature"

return sign.parts({}, "cute.ops", "ops.", {
  ["cute.ops.gemm"] = [[
    gemm(A: tensor, B: tensor|table, C?: tensor|table, options?: table)
    explain(A: tensor, B: tensor|table, C?: tensor|table, options?: table)]],
  ["cute.ops.grouped"] = [[
    grouped_gemm(A: tensor|table, B?: tensor|table, where?: tensor,
      options?: table)
    explain_grouped(A: tensor, B: tensor, where: tensor, options?: table)]],
  ["cute.ops.elementwise"] = [[
    elementwise(f: function, values...)
    copy(src: tensor, dst?: tensor|table, options?: table)
    convert(x: tensor, dtype: dtype|string, options?: table)
    transpose(x: tensor, perm?: table, options?: table)]],
  ["cute.ops.reduce"] = [[reduce(x: tensor, op: string, options?: table)]],
  ["cute.ops.int4"] = [[int4(q: tensor|function, n?: integer, k?: integer)]],
  ["cute.ops.functions"] = [[
    relu(x: number|value|vector)
    sigmoid(x: number|value|vector)
    silu(x: number|value|vector)
    gelu(x: number|value|vector)
    gelu_tanh(x: number|value|vector)]],
})
-- SPDX-License-Identifier: MIT
