--- Products by cuBLAS and cublasLt, with which measurements compare kernels.
local core = require "cute.core"

local blas = {}

-- Calls a method of the device object; returns nil, message if there is no GPU.
local function ask(t, method)
  local dev, why = core.gpu_open(t.ordinal)
  if not dev then return nil, why end
  return dev[method](dev, t)
end

--- Prepares a product by cuBLAS's default algorithm: D[m,n] = A[m,k] B[n,k],
-- with f32 accumulators.
--
-- The field `layout` is "tn" (the default), "nt", "nn" or "tt", in BLAS
-- notation. The first letter is for A (M,K): K is contiguous for t and M for n.
-- The second letter is for B (N,K): K is contiguous for n and N for t. D has N
-- contiguous, or M with m_major = true. The buffers determine the types: floats
-- of 16 to 64 bits, or i8 with D of i32 (exact). tf32 = true allows f32
-- operands to be rounded to tf32. 8-bit floats need cublasLt. batches = 3
-- requests a batch of three products (cublasGemmStridedBatchedEx). Their
-- matrices are step_A, step_B and step_D elements apart: 0 shares one matrix;
-- an absent step means dense matrices.
---@param t table m, n, k, A, B, D, layout, m_major, tf32, batches, ordinal; for
-- floats alpha = 1, beta = 0: D = alpha A B^T + beta D
---@return table|nil product with :launch([stream]) and :launch_n(n [, stream])
---@return string|nil message
function blas.cublas(t)
  return ask(t, "cublas")
end

--- Prepares products by cublasLt. Returns a list with one product for each
-- algorithm that cublasLt's heuristics propose, the most promising first.
--
-- Operands can also be e4m3 and e5m2 (not both e5m2), in layout "tn" with
-- extents that are multiples of 16. scale_A and scale_B are buffers of one f32
-- that scale A and B. Accumulators are f32. With fast_accum = true the tensor
-- cores accumulate; they keep fewer bits. bias, of D's type, is added to each
-- column of a D with N contiguous; then epilogue = "relu" or "gelu" (the tanh
-- approximation of cublasLt) is applied.
---@param t table as for gpu.cublas; scale_A, scale_B, fast_accum = false, bias,
-- epilogue, algos = 32, workspace = 64 MiB
---@return table[]|nil products nil if it has no algorithm
---@return string|nil message
function blas.cublaslt(t)
  return ask(t, "cublaslt")
end

--- Returns the algorithm that cublasLt's heuristics propose first, which
-- cublasGemmEx uses: {algorithm =, tile =, split = parts of K, reduction =,
-- workspace = bytes}, with cublasLt's numbers.
---@param t table as for gpu.cublaslt, but A, B and D are types; workspace = 32
-- MiB, as in cublasGemmEx
---@return table|nil
---@return string|nil message
function blas.cublaslt_first(t)
  return ask(t, "cublaslt_first")
end

return blas
-- SPDX-License-Identifier: MIT
