-- A GEMM with a custom epilogue: C = gelu(A B^T + bias) + residual.
--
-- After the product, the accumulators are in registers as f32. Separate kernels
-- for bias, gelu and residual would store and load them again, and would round
-- them each time. Here a Lua function does all of it, and is traced into the
-- kernel. part.load(t) returns the elements of another tensor at the positions
-- of a thread's accumulators.
--   cutelua scripts/gemm_epilogue.lua --help
local cute = require "cute"
local oracle = require "cutelua.bench.oracle"
local gemm_sm80 = require "kernels.gemm_sm80"

local MMA = {bf16 = "SM80_16x8x16_F32BF16BF16F32_TN",
             f16 = "SM80_16x8x16_F32F16F16F32_TN"}

local LOG2E = math.log(math.exp(1), 2)

-- inner(x) is y in gelu(x) = x / 2 (1 + tanh(y / 2)) = x / (1 + e^-y).
local function inner(x)
  return 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
end

local function gelu(x) return x * cute.rcp(1 + cute.exp2(inner(x) * -LOG2E)) end

require "cutelua.bench.harness".run(arg, {
  about = "C = gelu(A B^T + bias) + residual in one kernel.",
  dims = {{"m", "rows of A and C"}, {"n", "rows of B, columns of C"},
          {"k", "columns of A and B"}},
  dtypes = {"bf16", "f16"},
  sim = {{136, 72, 64}},
  gpu = {{8192, 8192, 4096}, {4096, 14336, 4096}},
  operands = function(p)
    local all = {p.m, p.n}
    return {{"a", {p.m, p.k}}, {"b", {p.n, p.k}}, {"bias", {p.n}},
            {"residual", all}, {"c", all, out = true}}
  end,
  make = function(p)
    local k = gemm_sm80 {name = "gemm_gelu", mma = MMA[p.dtype], rows = true,
      epilogue = function(acc, part, bias, residual)
        return gelu(acc + part.load(bias)) + part.load(residual)
      end}
    return {kernel = k.kernel, grid = k.grid(p.m, p.n), block = k.block,
            args = {"a", "b", "c", "bias", "residual"}}
  end,
  flops = function(p) return 2.0 * p.m * p.n * p.k end,
  look = 1 << 10,
  pieces = function(p) return oracle.pieces(p.m, p.n) end,
  reference = function(p, i)
    return {c = oracle.product(p, i, function(sum, row, j)
      local x = sum + p.bias[j]
      return x / (1 + math.exp(-inner(x))) + p.residual[row * p.n + j]
    end)}
  end,
})
-- SPDX-License-Identifier: MIT
