--- Operations on whole tensors, by the kernel that serves each best.
--
--     local D = cute.ops.gemm(A, B)                -- A B^T
--     print(cute.ops.explain(A, B))                -- by what, and why
local elementwise = require "cute.ops.elementwise"
local functions = require "cute.ops.functions"
local gemm = require "cute.ops.gemm"
local grouped = require "cute.ops.grouped"
local int4 = require "cute.ops.int4"
local reduce = require "cute.ops.reduce"
local sign = require "cute.lang.sign"

local ops = {gemm = gemm.gemm, explain = gemm.explain, int4 = int4.new,
             reduce = reduce.reduce, grouped_gemm = grouped.grouped_gemm,
             explain_grouped = grouped.explain}
for _, name in ipairs {"elementwise", "copy", "convert", "transpose"} do
  ops[name] = elementwise[name]
end
for name, f in pairs(functions) do ops[name] = f end

return sign.public("ops.", ops, [[
  gemm(A: tensor, B: tensor|table, C?: tensor|table, options?: table)
  explain(A: tensor, B: tensor|table, C?: tensor|table, options?: table)
  grouped_gemm(A: tensor|table, B?: tensor|table, where?: tensor,
    options?: table)
  explain_grouped(A: tensor, B: tensor, where: tensor, options?: table)
  elementwise(f: function, values...)
  copy(src: tensor, dst?: tensor|table, options?: table)
  convert(x: tensor, dtype: dtype|string, options?: table)
  transpose(x: tensor, perm?: table, options?: table)
  reduce(x: tensor, op: string, options?: table)
  int4(q: tensor|function, n?: integer, k?: integer)
  relu(x: number|value|vector)
  sigmoid(x: number|value|vector)
  silu(x: number|value|vector)
  gelu(x: number|value|vector)
  gelu_tanh(x: number|value|vector)
]])
