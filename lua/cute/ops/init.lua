--- Operations on whole tensors, by the kernel that serves each best.
--
--     local D = cute.ops.gemm(A, B)                -- A B^T
--     print(cute.ops.explain(A, B))                -- by what, and why
local functions = require "cute.ops.functions"
local gemm = require "cute.ops.gemm"
local sign = require "cute.lang.sign"

local ops = {gemm = gemm.gemm, explain = gemm.explain}
for name, f in pairs(functions) do ops[name] = f end

return sign.public("ops.", ops, [[
  gemm(A: tensor, B: tensor, C?: tensor|table, options?: table)
  explain(A: tensor, B: tensor, C?: tensor|table, options?: table)
  relu(x) sigmoid(x) silu(x) gelu(x) gelu_tanh(x)
]])
