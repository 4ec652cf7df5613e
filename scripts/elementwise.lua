-- A function of every element: gelu and silu in bf16, f16 or f32.
--
-- An elementwise kernel should cost no more than its memory traffic. Two things
-- would cost more: accesses narrower than 16 bytes, and tanh or exp in full
-- precision, which a narrow result cannot represent. Both functions are x times
-- a sigmoid, 1 / (1 + 2^-ax). With fastmath this takes two instructions of the
-- special function unit (ex2 and rcp). The speed is 1.01 of the driver's copy
-- on an H200.
--   cutelua scripts/elementwise.lua --help
local cute = require "cute"
local elementwise = require "kernels.elementwise"

local LOG2E = math.log(math.exp(1), 2)

-- Returns the function x sigmoid(inner(x)), for traced vectors and for numbers.
local function gated(inner)
  return {kernel = function(x)
    return x * cute.rcp(1 + cute.exp2(inner(x) * -LOG2E))
  end, plain = function(x) return x / (1 + math.exp(-inner(x))) end}
end

local FUNCTIONS = {
  silu = gated(function(x) return x end),
  -- gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  gelu = gated(function(x)
    return 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
  end),
}

require "cutelua.bench.harness".run(arg, {
  about = "gelu or silu of every element of a matrix.",
  dims = {{"m", "rows of x"}, {"n", "columns of x"}},
  options = {{"--f", "choice", choices = {"gelu", "silu"}, default = "gelu",
              help = "the function"}},
  dtypes = {"bf16", "f16", "f32"},
  sim = {{16, 1000}}, gpu = {{32768, 8192}},
  operands = function(p)
    return {{"x", {p.m, p.n}}, {"y", {p.m, p.n}, out = true}}
  end,
  make = function(p)
    return elementwise {f = FUNCTIONS[p.opt.f or "gelu"].kernel, n = p.m * p.n,
                        inputs = {cute[p.dtype]}}
  end,
  pieces = function(p) return p.m end,
  reference = function(p, row)
    local y = {}
    for i = 1, p.n do
      y[i] = FUNCTIONS[p.opt.f or "gelu"].plain(p.x[row * p.n + i - 1])
    end
    return {y = y}
  end,
})
-- SPDX-License-Identifier: MIT
