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
    transpose(x: tensor, perm?: table, options?: table)]],
  ["cute.ops.convert"] = [[
    convert(x: tensor, dtype, options?: table)]],
  ["cute.ops.reduce"] = [[reduce(x: tensor, op: string, options?: table)]],
  ["cute.ops.norms"] = [[
    rmsnorm(X: tensor, W?: tensor|table, options?: table)
    layernorm(X: tensor, W?: tensor|table, B?: tensor|table, options?: table)
    rmsnorm_backward(dY: tensor, X: tensor, Rstd: tensor, W?: tensor|table,
      options?: table)
    layernorm_backward(dY: tensor, X: tensor, Mean: tensor, Rstd: tensor,
      W?: tensor|table, options?: table)]],
  ["cute.ops.softmax"] = [[
    softmax(X: tensor, options?: table)
    softmax_backward(dY: tensor, Y: tensor, options?: table)
    cross_entropy(X: tensor, T: tensor, options?: table)
    cross_entropy_backward(dLoss: tensor, X: tensor, T: tensor, Lse: tensor,
      options?: table)]],
  ["cute.ops.topk"] = [[
    topk(X: tensor, k: integer, options?: table)
    sample(X: tensor, seed: integer|tensor, options?: table)]],
  ["cute.ops.embedding"] = [[
    embedding(I: tensor, W: tensor, options?: table)
    embedding_backward(dY: tensor, I: tensor, rows: integer, options?: table)
    rope(X: tensor, Cos: tensor, Sin: tensor, options?: table)]],
  ["cute.ops.attention.forward"] = [[
    attention(Q: tensor, K: tensor, V: tensor, options?: table)
    explain_attention(Q: tensor, K: tensor, V: tensor, options?: table)]],
  ["cute.ops.attention.block_mask"] = [[
    block_mask(mask_mod: function, shape: table, options?: table)]],
  ["cute.ops.attention.backward"] = [[
    attention_backward(dO: tensor, Q: tensor, K: tensor, V: tensor, O: tensor,
      LSE: tensor, options?: table)
    explain_attention_backward(dO: tensor, Q: tensor, K: tensor, V: tensor,
      O: tensor, LSE: tensor, options?: table)]],
  ["cute.ops.attention.decode"] = [[
    attention_decode(Q: tensor, K: tensor, V?: tensor|table, options?: table)]],
  ["cute.ops.int4"] = [[int4(q: tensor|function, n?: integer, k?: integer)]],
  ["cute.ops.functions"] = [[
    relu(x: number|value|vector)
    expm1(x: number|value|vector)
    log(x: number|value|vector)
    log1p(x: number|value|vector)
    softplus(x: number|value|vector)
    elu(x: number|value|vector)
    selu(x: number|value|vector)
    sigmoid(x: number|value|vector)
    silu(x: number|value|vector)
    gelu(x: number|value|vector)
    gelu_tanh(x: number|value|vector)]],
})
-- SPDX-License-Identifier: MIT
