--- Numbers with bounds of their rounding errors, with which references compute.
--
-- A reference computes in f64. Each number carries a bound of the error that a
-- candidate makes if it computes the same formula in a narrower type, with any
-- order of summation. The bounds follow from Higham, Accuracy and Stability of
-- Numerical Algorithms, 2nd edition. With the unit roundoff u, an operation
-- adds the error u |result| (section 2.2). Errors of operands propagate to the
-- result, to first order and beyond (running error analysis, section 3.3). For
-- every order, a sum of n terms adds gamma(n - 1) times the sum of their
-- magnitudes, where gamma(n) = n u / (1 - n u) (section 4.2).
local core = require "cute.core"

local bounded = {}

--- Unit roundoffs 2^-p of types with p bits of precision.
bounded.U = {f64 = 2.0 ^ -53, f32 = 2.0 ^ -24, tf32 = 2.0 ^ -11,
  f16 = 2.0 ^ -11, bf16 = 2.0 ^ -8, e4m3 = 2.0 ^ -4, e5m2 = 2.0 ^ -3}

-- Half the distance between adjacent subnormal numbers, by type. This is the
-- largest rounding error of a result that underflows.
local TINY = {f64 = 2.0 ^ -1075, f32 = 2.0 ^ -150, tf32 = 2.0 ^ -137,
  f16 = 2.0 ^ -25, bf16 = 2.0 ^ -134, e4m3 = 2.0 ^ -10, e5m2 = 2.0 ^ -17}

-- The largest relative error of a CUDA library function, as a multiple of the
-- unit roundoff u. The functions are wrong by at most 4 units in the last
-- place, which are 8 u.
local FUNCTION = 8

-- Unit roundoff of the reference's own arithmetic.
local own = bounded.U.f64

-- u: the unit roundoff of the candidate's arithmetic. A result whose magnitude
-- is below `least` has an additional error of `tiny`.
local u, least, tiny
-- The least unit roundoff of every type, or nil. If it is set, errors are
-- expected errors instead of bounds. Rounding errors are then assumed to be
-- independent and random, so that their squares are added (Higham and Mary, A
-- New Approach to Probabilistic Rounding Error Analysis, 2019). Inputs are also
-- rounded.
local coarsest

-- Sets the arithmetic to that of type `dtype`; `lowest` as in bounded.with.
local function set(dtype, lowest)
  coarsest = lowest and bounded.U[lowest]
  u = math.max(bounded.U[dtype], coarsest or 0)
  tiny, least = TINY[dtype], TINY[dtype] / bounded.U[dtype]
end
set "f32"

-- Returns the combined error of two or three independent errors: their sum or,
-- for expected errors, the root of the sum of their squares.
local function join(a, b, c)
  if not coarsest then return a + b + (c or 0) end
  return math.sqrt(a * a + b * b + (c or 0) ^ 2)
end

local Number = {}
Number.__index = Number

-- Returns a Number with value v and error bound e.
local function new(v, e) return setmetatable({v = v, e = e}, Number) end

-- Returns the value and the error bound of x, which is a Number or a plain
-- number of Lua.
local function parts(x)
  if getmetatable(x) == Number then return x.v, x.e end
  if type(x) ~= "number" then
    core.fail("bad-argument", ("the reference computes with %s, where a number "
      .. "is needed"):format(core.show(x)))
  end
  -- The candidate rounds a constant that is not an integer to its own type.
  return x, x % 1 ~= 0 and u * math.abs(x) or 0.0
end

-- Returns the Number for a result v whose operands cause the error e. Adds the
-- rounding error of the operation itself: `by` (1 when absent) times the unit
-- roundoff times |v|.
local function rounded(v, e, by)
  local size = math.abs(v)
  if size < least and v ~= 0 then e = e + tiny end
  return new(v, join(e, (by or 1) * (u + own) * size))
end

function Number.__add(a, b)
  local av, ae = parts(a)
  local bv, be = parts(b)
  return rounded(av + bv, join(ae, be))
end

function Number.__sub(a, b)
  local av, ae = parts(a)
  local bv, be = parts(b)
  return rounded(av - bv, join(ae, be))
end

function Number.__mul(a, b)
  local av, ae = parts(a)
  local bv, be = parts(b)
  return rounded(av * bv, join(math.abs(av) * be, math.abs(bv) * ae, ae * be))
end

function Number.__div(a, b)
  local av, ae = parts(a)
  local bv, be = parts(b)
  local v, divisor = av / bv, math.abs(bv) - be
  if divisor <= 0 then return new(v, math.huge) end
  return rounded(v, join(ae, math.abs(v) * be) / divisor)
end

function Number.__unm(a) return new(-a.v, a.e) end
function Number.__lt(a, b) return (parts(a)) < (parts(b)) end
function Number.__le(a, b) return (parts(a)) <= (parts(b)) end

function Number.__tostring(a) return ("%.17g +- %.3g"):format(a.v, a.e) end

--- Returns the value without its bound, for comparisons.
---@param x any
---@return number
function bounded.value(x) return (parts(x)) end

--- Returns the Number for an element of an input. It has no error. Only if
-- `coarsest` is set, it has the error of rounding to that unit roundoff.
---@param v number
---@return table
function bounded.input(v) return new(v, (coarsest or 0.0) * math.abs(v)) end

--- Returns f(0) + ... + f(n - 1); the bound holds for any order of summation.
---@param n integer
---@param f fun(i: integer): any
---@return table
function bounded.sum(n, f)
  local v, e, magnitude = 0.0, 0.0, 0.0
  for i = 0, n - 1 do
    local tv, te = parts(f(i))
    v, e, magnitude = v + tv, join(e, te), magnitude + math.abs(tv) + te
    if coarsest then e = join(e, u * math.abs(v)) end
  end
  if coarsest then return new(v, e) end
  return new(v, e + bounded.gamma(math.max(n - 1, 0)) * magnitude)
end

--- Returns gamma(n) = n u / (1 - n u), where u is the unit roundoff of the
-- candidate's arithmetic plus that of the reference's.
---@param n integer
---@return number
function bounded.gamma(n)
  local x = n * (u + own)
  return x < 1 and x / (1 - x) or math.huge
end

--- Returns the largest of f(0), ..., f(n - 1). Taking a maximum adds no
-- rounding error.
---@param n integer
---@param f fun(i: integer): any
---@return table
function bounded.max(n, f)
  local v, e = -math.huge, 0.0
  for i = 0, n - 1 do
    local tv, te = parts(f(i))
    v, e = math.max(v, tv), math.max(e, te)
  end
  return new(v, e)
end

--- Returns the larger of two numbers.
---@param a any
---@param b any
---@return table
function bounded.most(a, b)
  local av, ae = parts(a)
  local bv, be = parts(b)
  return new(math.max(av, bv), math.max(ae, be))
end

--- Returns |x|.
---@param x any
---@return table
function bounded.abs(x)
  local v, e = parts(x)
  return new(math.abs(v), e)
end

--- Returns x with an error bound that is larger by 1/4, for outputs that are x
-- rounded to an integer. Rounding changes x by at most 1/2, and the referee
-- allows twice the bound.
---@param x any
---@return table
function bounded.nearest(x)
  local v, e = parts(x)
  return new(v, e + 0.25)
end

-- Returns a function that computes f(x) and its error bound. The bound is the
-- error of x times the largest slope of f at x and at both ends of x's error
-- interval, plus the error of CUDA's library function.
local function apply(f, slope)
  return function(x)
    local xv, xe = parts(x)
    local v = f(xv)
    local most = xe > 0 and math.max(math.abs(slope(xv - xe)),
      math.abs(slope(xv + xe)), math.abs(slope(xv))) or 0
    return rounded(v, xe * most, FUNCTION)
  end
end

local function tanh(x)
  local t = math.exp(-2 * math.abs(x))
  t = (1 - t) / (1 + t)
  return x < 0 and -t or t
end

bounded.sqrt = apply(math.sqrt, function(x)
  return x > 0 and 0.5 / math.sqrt(x) or math.huge
end)
bounded.rsqrt = apply(function(x) return 1 / math.sqrt(x) end, function(x)
  return x > 0 and -0.5 / (x * math.sqrt(x)) or math.huge
end)
bounded.log = apply(math.log, function(x)
  return x > 0 and 1 / x or math.huge
end)
bounded.tanh = apply(tanh, function(x)
  local t = tanh(x)
  return 1 - t * t
end)
bounded.sin = apply(math.sin, function() return 1 end)
bounded.cos = apply(math.cos, function() return 1 end)

--- Returns e^x. A candidate may compute it as exp2(x log2(e)). If the product x
-- log2(e) has the relative error d, the result has an additional relative error
-- of |x| d.
---@param x any
---@return table
function bounded.exp(x)
  local xv, xe = parts(x)
  local v = math.exp(xv)
  return rounded(v, v * (math.exp(xe) - 1), FUNCTION + 2 * math.abs(xv))
end

--- Returns x with the added error of a conversion to a type.
---@param x any
---@param dtype string
---@return table
function bounded.round(x, dtype)
  local v, e = parts(x)
  local by = math.max(bounded.U[dtype], coarsest or 0)
  return new(v, join(e, by * (math.abs(v) + e), TINY[dtype]))
end

--- Calls f with the arithmetic of type `dtype`. With `lowest`, all types are at
-- least as coarse as type `lowest`, and errors are expected errors instead of
-- bounds.
---@param dtype string
---@param lowest string?
---@param f fun(): any
function bounded.with(dtype, lowest, f)
  set(dtype, lowest)
  local _ <close> = setmetatable({}, {__close = function() set "f32" end})
  return (f())
end

--- Returns the value and the error bound of an output of the reference. The
-- bound for a float type includes the conversion to that type, unless the value
-- is exact and representable. Outputs of integer types are exact.
---@param x any
---@param one any a buffer with one element of the output's type
---@return number value
---@return number bound
function bounded.output(x, one)
  local dtype = one.dtype.name
  if bounded.U[dtype] then
    local v, e = parts(x)
    one[0] = v
    if e > 0 or one[0] ~= v then x = bounded.round(x, dtype) end
  end
  return parts(x)
end

return bounded
-- SPDX-License-Identifier: MIT
