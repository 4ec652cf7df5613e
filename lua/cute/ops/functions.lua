--- Activation functions for epilogues. They accept vectors, scalars of a kernel
-- and plain numbers.
--
-- The f32 versions use few instructions, because they run at the same time as
-- tensor cores. They use the special function unit for 2^x, log2 x and 1 / x.
-- Their relative error is below 2^-19 if x > -4, and below 2^-16 if x > -12.
-- Results whose magnitude is below 2^-120 may be 0.
local core = require "cute.core"
local cute = require "cute"

local functions = {}

local LOG2E = math.log(math.exp(1), 2)

--- Returns max(x, 0), which is 0 if x is NaN.
function functions.relu(x) return cute.max(x, 0) end

---------------------------------------------------------------------------
-- In f32
---------------------------------------------------------------------------

local function exp2(x) return cute.arch.approx("ex2.approx.ftz.f32", x) end
local function rcp(x) return cute.arch.approx("rcp.approx.ftz.f32", x) end

local lean = {}

function lean.exp(x) return exp2(x * LOG2E) end

-- Returns e^-|x|.
function lean.decay(x) return exp2(cute.abs(x) * -LOG2E) end

-- Returns 1 / (1 + 2^-y).
local function logistic(y) return rcp(1 + exp2(-y)) end

function lean.sigmoid(x) return logistic(x * LOG2E) end
function lean.silu(x) return x * logistic(x * LOG2E) end

-- A constant of the approximation gelu(x) = x (1 + tanh y) / 2 with y = sqrt(2
-- / pi) (x + 0.044715 x^3). The code computes x / (1 + e^-2y), since 1 + tanh y
-- = 2 / (1 + e^-2y).
local TANH = 2 * math.sqrt(2 / math.pi) * LOG2E
function lean.gelu_tanh(x)
  return x * logistic(x * cute.fma(x * x, 0.044715 * TANH, TANH))
end

-- gelu(x) = max(x, 0) - |x| Phi(-|x|). Here |x| Phi(-|x|) = u P(t) 2^-u^2,
-- where u = |x| sqrt(log2(e) / 2) and t = 1 / (1 + 0.3 u). The coefficients of
-- the polynomial P come from the Remez exchange algorithm for |x| up to 12.8,
-- with relative error 2.2e-7. For larger |x| the result is x or 0.
local U, T = math.sqrt(LOG2E / 2), 0.30023955574144606
local P = {[0] = 0.00011490730008989438, 0.11761413273548794,
           0.13707597023953522, 0.03552545434834129, 0.2998872450497054,
           -0.25511323703168726, 0.3555004508694563, -0.10189980755600116}
function lean.gelu(x)
  local u = cute.min(cute.abs(x) * U, 11)
  local t = rcp(cute.fma(u, T, 1))
  local p = P[#P]
  for i = #P - 1, 0, -1 do p = cute.fma(p, t, P[i]) end
  -- The product below is |x| Phi(-|x|). The result is max(x, 0) minus this
  -- product, or NaN if x is NaN.
  return cute.fma(-u, p * exp2(-u * u), cute.where(cute.lt(x, 0), 0, x))
end

-- If |x| is below SMALL, expm1(x) = x E(x). The coefficients of the polynomial
-- E come from the Remez exchange algorithm, with relative error 2^-21. For
-- larger |x|, expm1(x) = e^x - 1. Its relative error is below 2^-20 if x < 4,
-- and grows with x if x is larger.
local SMALL = 0.35
local E = {[0] = 0.9999999432979637, 0.4999935199339129, 0.16666945722144003,
           0.041879251431811114, 0.008333320742016538}
function lean.expm1(x)
  local p = E[#E]
  for i = #E - 1, 0, -1 do p = cute.fma(p, x, E[i]) end
  return cute.where(cute.lt(cute.abs(x), SMALL), p * x, lean.exp(x) - 1)
end

-- If |x| is below NEAR, log(1 + x) = x L(x). The coefficients of the polynomial
-- L come from the Remez exchange algorithm, with relative error 2^-21.6. For
-- larger |x|, log2 of the special function unit has an absolute error of 2^-22.
local NEAR, LN2 = 0.2, math.log(2)
local L = {[0] = 1.0000003018637862, -0.5000008372494574, 0.3331983021607141,
           -0.24982440660667032, 0.2088934077657179, -0.1756021956932237}

-- Returns log(1 + x), where `log2` is log2(1 + x).
local function near_or(x, log2)
  local p = L[#L]
  for i = #L - 1, 0, -1 do p = cute.fma(p, x, L[i]) end
  return cute.where(cute.lt(cute.abs(x), NEAR), p * x, log2 * LN2)
end

-- With .ftz, the instruction would take subnormal numbers as 0.
function lean.log(x)
  return near_or(x - 1, cute.arch.approx("lg2.approx.f32", x))
end

function lean.log1p(x)
  return near_or(x, cute.arch.approx("lg2.approx.ftz.f32", x + 1))
end

---------------------------------------------------------------------------
-- Other types
---------------------------------------------------------------------------

local general = {}

function general.sigmoid(x) return cute.rcp(1 + cute.exp2(x * -LOG2E)) end

function general.silu(x) return x * general.sigmoid(x) end

for _, name in ipairs {"expm1", "log", "log1p"} do
  general[name] = cute[name]
end

-- The factor 1.0 converts integers to f32, because an unsigned x has no -x, and
-- the least signed integer no |x|.
function general.decay(x) return cute.exp(-cute.abs(x * 1.0)) end

function general.gelu(x)
  return 0.5 * x * (1 + cute.erf(x * math.sqrt(0.5)))
end

function general.gelu_tanh(x)
  local y = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
  return x * general.sigmoid(y)
end

---------------------------------------------------------------------------
-- Both
---------------------------------------------------------------------------

-- The constants of SELU, with which a layer keeps mean 0 and variance 1.
local SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772

for _, own in ipairs {lean, general} do
  function own.softplus(x)
    return cute.max(x, 0) + own.log1p(own.decay(x))
  end

  function own.elu(x) return cute.where(cute.gt(x, 0), x, own.expm1(x)) end

  function own.selu(x)
    return cute.where(cute.gt(x, 0), x, own.expm1(x) * ALPHA) * SCALE
  end
end

---------------------------------------------------------------------------

-- Activation functions with many instructions. To keep the code short, a loop
-- computes AT_ONCE elements per iteration. Each iteration appends its results
-- to the vector and shifts the other elements forward, so that all register
-- indices are constant.
local LONG, AT_ONCE = {gelu = true}, 16

local function in_turn(r, n, f)
  local some = cute.make_rmem_tensor({AT_ONCE}, cute.f32)
  local rest = n - AT_ONCE
  for _ in cute.range(n // AT_ONCE) do
    for i in cute.range(AT_ONCE, {unroll = AT_ONCE}) do some[i] = f(r[i]) end
    for i in cute.range(rest, {unroll = math.min(rest, 1024)}) do
      r[i] = r[i + AT_ONCE]
    end
    for i in cute.range(AT_ONCE, {unroll = AT_ONCE}) do
      r[rest + i] = some[i]
    end
  end
end

local function of(name)
  return function(x)
    local kind = core.typename(x)
    if kind == "vector" and x.dtype == cute.f32 then
      local n = cute.size(x.shape)
      local r = cute.make_rmem_tensor({n}, cute.f32)
      local shaped = cute.make_tensor(r.iterator, cute.make_layout(x.shape))
      shaped:store(x)
      if LONG[name] and n > AT_ONCE and n % AT_ONCE == 0 then
        in_turn(r, n, lean[name])
      else
        for i in cute.range(n, {unroll = math.min(n, 1024)}) do
          r[i] = lean[name](r[i])
        end
      end
      return shaped:load()
    end
    local own = kind == "value" and x.dtype == cute.f32 and lean or general
    return own[name](x)
  end
end

--- Returns 1 / (1 + e^-x).
functions.sigmoid = of "sigmoid"

--- Returns x / (1 + e^-x).
functions.silu = of "silu"

--- Returns e^x - 1.
functions.expm1 = of "expm1"

--- Returns the natural logarithm of x.
functions.log = of "log"

--- Returns the natural logarithm of 1 + x.
functions.log1p = of "log1p"

--- Returns log(1 + e^x).
functions.softplus = of "softplus"

--- Returns x if x > 0, otherwise e^x - 1.
functions.elu = of "elu"

--- Returns SELU: 1.0507 x if x > 0, otherwise 1.7581 (e^x - 1).
functions.selu = of "selu"

--- Returns x Phi(x), where Phi is the standard normal distribution function.
functions.gelu = of "gelu"

--- Returns the approximation of gelu by tanh.
functions.gelu_tanh = of "gelu_tanh"

return functions
-- SPDX-License-Identifier: MIT
