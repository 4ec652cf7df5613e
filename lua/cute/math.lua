--- Functions on numbers, traced scalars and vectors that core/bind/mathlib.c
-- does not define: named arithmetic operations, classes of floats, powers, and
-- divisors for repeated use.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local math_ = {}

local function traced(x)
  local t = core.typename(x)
  return t == "value" or t == "vector"
end

---------------------------------------------------------------------------
-- Rounding and subnormals
---------------------------------------------------------------------------

local TINY = 2.0 ^ -126

-- Replaces subnormals of f32 by a zero with the same sign.
local function flush(x)
  if not traced(x) then return x end
  return core.where(core.abs(x):lt(TINY), core.copysign(x * 0.0, x), x)
end

-- Calls f once for scalars, or for each element of vectors.
local function each(f, ...)
  local args, like = {core.broadcast(...)}, nil
  for _, x in ipairs(args) do
    if core.typename(x) == "vector" then like = x end
  end
  if not like then return f(...) end
  local out = core.make_rmem_tensor(like.shape, core.f32)
  for i = 0, #like - 1 do
    local at = {}
    for k, x in ipairs(args) do
      at[k] = core.typename(x) == "vector" and x[i] or x
    end
    out[i] = f(table.unpack(at))
  end
  return out:load()
end

-- Reports whether the computation is in f32, judging by the traced arguments.
local function is_f32(args)
  local found = false
  for _, x in ipairs(args) do
    if traced(x) and x.dtype ~= core.f32 then return false end
    found = found or traced(x)
  end
  return found
end

-- Returns the function op(x..., opts) for the operation `name`. Its options are
-- rounding ("rn", "rz", "rp" or "rm") and ftz, both for f32 only.
local function rounded(name, plain, count)
  return function(...)
    local args = {...}
    local opts = args[count + 1] or {}
    args[count + 1] = nil
    local mode = opts.rounding or "rn"
    sign.one_of(name, "rounding", mode, "rn rz rp rm")
    if opts.ftz then for i = 1, count do args[i] = flush(args[i]) end end
    local r
    if mode == "rn" and opts.fastmath and is_f32(args) then
      r = core.div_full(args[1], args[2])
    elseif mode == "rn" then
      r = plain(table.unpack(args, 1, count))
    else
      r = each(function(...) return core.intrin(name .. "." .. mode, 0, ...)
      end, table.unpack(args, 1, count))
    end
    return opts.ftz and flush(r) or r
  end
end

--- Computes x + y. The options apply to f32: rounding = "rn", "rz", "rp" or
-- "rm" (nearest, toward zero, up, down); ftz = true treats subnormals as zero.
---@param opts? {rounding: string, ftz: boolean}
math_.add = rounded("add", function(x, y) return x + y end, 2)

--- Computes x * y. The options are those of math.add.
---@param opts? {rounding: string, ftz: boolean}
math_.mul = rounded("mul", function(x, y) return x * y end, 2)

--- Computes x / y as a float. The options are those of math.add; in addition,
-- fastmath = true uses the approximate div.full.
---@param opts? {rounding: string, ftz: boolean, fastmath: boolean}
math_.div = rounded("div", function(x, y) return x / y end, 2)

--- Computes x - y.
function math_.sub(x, y) return x - y end

--- Returns the negative of x.
function math_.neg(x) return -x end

--- Returns the remainder of x / y if the quotient is rounded toward zero. It
-- has the sign of x. (x % y has the sign of y, as in Lua.)
function math_.rem(x, y)
  local float = core.typename(x) == "number" and math.type(x) == "float"
  if traced(x) then float = x.dtype.is_float end
  if float or not traced(x) and not traced(y) then return core.fmod(x, y) end
  local r = core.abs(x) % core.abs(y)
  return core.where(core.lt(x, 0), -r, r)
end

math_.absf = core.abs
math_.absi = core.abs

--- Computes max(lo, min(x, hi)).
function math_.clamp(x, lo, hi) return core.max(core.min(x, hi), lo) end

--- Computes sin(x), cos(x).
---@param opts? {fastmath: boolean}
function math_.sincos(x, opts) return core.sin(x, opts), core.cos(x, opts) end

---------------------------------------------------------------------------
-- Classes of floats
---------------------------------------------------------------------------

-- The exponent of the smallest normal number of each float type.
local LEAST = {f16 = -14, bf16 = -126, tf32 = -126, f32 = -126, f64 = -1022}

local function check_float(name, x)
  if not traced(x) or x.dtype.is_float then return end
  core.fail("type-mismatch", ("%s of %s; a float is needed")
    :format(name, tostring(x.dtype)))
end

--- Reports whether x is NaN: a boolean, or a vector of booleans.
function math_.isnan(x)
  check_float("isnan", x)
  return core.ne(x, x)
end

--- Reports whether x is an infinity.
function math_.isinf(x)
  check_float("isinf", x)
  return core.eq(core.abs(x), math.huge)
end

--- Reports whether x is neither NaN nor an infinity.
function math_.isfinite(x)
  check_float("isfinite", x)
  return core.lt(core.abs(x), math.huge)
end

--- Reports whether x is finite, and neither zero nor subnormal.
function math_.isnormal(x)
  check_float("isnormal", x)
  local least = 2.0 ^ (traced(x) and LEAST[x.dtype.name] or -1022)
  local a = core.abs(x)
  return core.ge(a, least) & core.lt(a, math.huge)
end

---------------------------------------------------------------------------
-- Powers
---------------------------------------------------------------------------

-- Computes x^n for a Lua integer n > 0, by squaring.
local function power(x, n)
  local result
  while n > 0 do
    if n & 1 == 1 then result = result and result * x or x end
    n = n >> 1
    if n > 0 then x = x * x end
  end
  return result
end

--- Raises a float x to an integer power n. If n is known at trace time,
-- computes the power by repeated squaring, otherwise by pow.
function math_.fpowi(x, n)
  if math.type(n) ~= "integer" then
    return core.pow(x, n:to(x.dtype or core.f32))
  end
  if n == 0 then return core.abs(core.copysign(1.0, x)) end
  local r = power(x, math.abs(n))
  return n < 0 and 1.0 / r or r
end

-- Computes x^n for integers x and n < 0: 1 / x^-n, truncated to an integer. The
-- result is 1 for x = 1, -1 or 1 for x = -1, else 0. `odd` says whether n is
-- odd.
local function inverse(x, odd)
  local one = core.where(core.eq(x, 1), 1, 0)
  local minus = core.where(odd, -1, 1)
  return core.where(core.eq(x, -1), minus, one)
end

--- Raises an integer x to an integer power n. If n is negative, the result is 0
-- unless x is 1 or -1.
function math_.ipowi(x, n)
  if math.type(n) == "integer" then
    if n == 0 then return traced(x) and x * 0 + 1 or 1 end
    if n > 0 then return power(x, n) end
    return inverse(x, n & 1 == 1)
  end
  local result, base = x * 0 + 1, x
  for bit = 0, 31 do
    local take = ((n >> bit) & 1):eq(1)
    result = core.where(take, result * base, result)
    if bit < 31 then base = base * base end
  end
  return core.where(n:lt(0), inverse(x, (n & 1):eq(1)), result)
end

---------------------------------------------------------------------------
-- A divisor for repeated use
---------------------------------------------------------------------------

local Divisor = {}
Divisor.__index = Divisor

-- Returns the quotient of a nonnegative dividend a and the Divisor d. It is the
-- sum of a and the upper half of a times the multiplier, shifted right. The sum
-- may have 33 bits, so there are two shifts. The result is exact for 32 bits.
local function quotient(a, d)
  if core.typename(d) ~= "table" or getmetatable(d) ~= Divisor then
    core.fail("bad-argument", "a fast divisor can only be the divisor, not the "
      .. "dividend")
  end
  if not traced(a) then a = core.cvt(a, core.i32) end
  local u = a:to(core.u32)
  local hi = core.intrin("mul_hi", 0, u, d.multiplier)
  return ((u - hi >> d.first) + hi >> d.shift):to(core.dtype_of(a))
end

Divisor.__idiv = quotient
function Divisor.__mod(a, d)
  return a - quotient(a, d) * d.divisor
end

--- Returns the quotient and the remainder of a nonnegative dividend.
function Divisor:divmod(a)
  local q = quotient(a, self)
  return q, a - q * self.divisor
end

sign.class("divisor", Divisor, "divmod(a: integer|value)")

--- Prepares a divisor (a number or a traced i32, at least 1) for nonnegative
-- dividends: `i // d` and `i % d` become a product and two shifts.
function math_.fast_divmod_create_divisor(divisor)
  local d = traced(divisor) and divisor or core.cvt(divisor, core.i32)
  -- A dividend a has the quotient (m + 2^32) * a / 2^(32 + l) for l = ceil(log2
  -- d) and the multiplier m = floor(2^32 (2^l - d) / d) + 1.
  local l = core.cvt(32, core.i32)
    - core.intrin("clz", 0, (d - 1):to(core.u32))
  local wide = d:to(core.u64)
  local one = core.cvt(1, core.u64)
  local m = ((one << l) - wide << 32) // wide + one
  return setmetatable({divisor = divisor, multiplier = m:to(core.u32),
                       first = core.min(l, 1), shift = core.max(l - 1, 0)},
                      Divisor)
end

return math_
-- SPDX-License-Identifier: MIT
