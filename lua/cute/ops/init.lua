--- Operations on whole tensors, by the kernel that serves each best.
--
--     local D = cute.ops.gemm(A, B)                -- A B^T
--     print(cute.ops.explain(A, B))                -- by what, and why
local gemm = require "cute.ops.gemm"
local sign = require "cute.lang.sign"

local ops = {gemm = gemm.gemm, explain = gemm.explain}

return sign.public("ops.", ops, [[
  gemm(A: tensor, B: tensor, C?: tensor|table, options?: table)
  explain(A: tensor, B: tensor, C?: tensor|table, options?: table)
]])
