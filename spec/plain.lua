--- Plain numbers that behave like traced values: each has a type, and each
-- operation rounds or truncates its result to a type. Called with such numbers,
-- a function for kernels returns the expected value. In that call, plain.cute
-- replaces `cute`.
local ops = require "spec.ops"

local plain = {}

local Number = {}
Number.__index = Number

local CLASS = {boolean = {"P", 8}, i8 = {"I", 8}, u8 = {"U", 8},
  i16 = {"I", 16}, u16 = {"U", 16}, i32 = {"I", 32}, u32 = {"U", 32},
  i64 = {"I", 64}, u64 = {"U", 64}, f16 = {"F", 16}, bf16 = {"F", 16},
  f32 = {"F", 32}, f64 = {"F", 64}, e4m3 = {"F", 8}, e5m2 = {"F", 8}}

local round = setmetatable({}, {__index = function(t, name)
  t[name] = ops.rounded(name)
  return t[name]
end})

local function is_float(t) return CLASS[t][1] == "F" end

-- Returns an integer truncated to a type's width.
local function cut(t, v)
  local class, bits = CLASS[t][1], CLASS[t][2]
  if bits == 64 then return v end
  v = v & (1 << bits) - 1
  return class == "I" and (v ~ 1 << bits - 1) - (1 << bits - 1) or v
end

local function new(t, v)
  if is_float(t) then v = round[t](v) elseif t ~= "boolean" then v = cut(t, v)
  end
  return setmetatable({t = t, v = v}, Number)
end

--- Returns the number or boolean v as a value of type t.
---@param t string
---@param v any the number, as a read of an element returns it
function plain.value(t, v) return setmetatable({t = t, v = v}, Number) end

-- Converts a number to a float. A float is returned unchanged, because -0.0 +
-- 0.0 is 0.0.
local function float(v) return math.type(v) == "float" and v or v + 0.0 end

-- Returns a u64 as a float.
local function unsigned(v)
  return v >= 0 and v + 0.0 or (v >> 1 | v & 1) * 2.0
end

function Number:to(t)
  t = tostring(t)
  local v = self.v
  if t == self.t then return self end
  if self.t == "boolean" then v = v and 1 or 0 end
  if t == "boolean" then return new(t, v ~= 0) end
  if is_float(t) then
    return new(t, self.t == "u64" and unsigned(v) or float(v))
  elseif not is_float(self.t) then
    return new(t, v)
  end
  local class, bits = CLASS[t][1], CLASS[t][2]
  local least = class == "I" and -2.0 ^ (bits - 1) or 0
  local most = class == "I" and 2.0 ^ (bits - 1) or 2.0 ^ bits
  if v ~= v then  -- PTX's cvt converts NaNs to these values.
    local wide = bits == 64 or self.t == "f64" and not (class == "U"
                                                        and bits < 32)
    return new(t, wide and 1 << bits - 1 or 0)
  end
  v = v < 0 and math.ceil(v) + 0.0 or math.floor(v) + 0.0
  if v >= most then return new(t, bits == 64 and class == "I"
    and math.maxinteger or (1 << bits - (class == "I" and 1 or 0)) - 1) end
  if v < least then v = least end
  return new(t, v >= 2.0 ^ 63 and math.tointeger(v - 2.0 ^ 64)
             or math.tointeger(v))
end

-- Converts two operands to their common type. If only one operand has a type,
-- the common type is that type. The exception is an integer type with a float
-- as the other operand: their common type is f32.
local function meet(a, b)
  local t = math.type(a) and b.t or a.t
  if (math.type(a) or math.type(b)) == "float" and not is_float(t) then
    t = "f32"
  end
  local function of(x)
    if math.type(x) then return new(t, x).v end
    assert(x.t == t or t == "f32", "types do not mix")
    return x:to(t).v
  end
  return t, of(a), of(b)
end

-- Returns a binary operation: f applies to floats, g to integers, h to u64.
local function operation(f, g, h)
  return function(x, y)
    local t, a, b = meet(x, y)
    return new(t, (is_float(t) and f or t == "u64" and h or g)(a, b))
  end
end

local function test(f)
  return function(x, y)
    local t, a, b = meet(x, y)
    return new("boolean", f(a, b, t == "u64" and math.ult
                                  or function(p, q) return p < q end))
  end
end

-- Returns a version of math.floor or math.ceil whose results are floats. It
-- keeps the sign of zeros, infinities and NaNs.
local function whole(f)
  return function(v)
    if v - v ~= 0 then return v end
    local r = f(v) + 0.0
    return r == 0 and 1 / v < 0 and -0.0 or r
  end
end
local floor, ceil = whole(math.floor), whole(math.ceil)

-- Returns the quotient a // b of unsigned integers. b must be below 2^63.
local function by_u64(a, b)
  local q = (a >> 1) // b << 1
  return math.ult(a - q * b, b) and q or q + 1
end

local function both(f) return operation(f, f, f) end

Number.__add = both(function(a, b) return a + b end)
Number.__sub = both(function(a, b) return a - b end)
Number.__mul = both(function(a, b) return a * b end)
Number.__div = both(function(a, b) return a / b end)
local function quotient(a, b) return a // b end
local function rest(a, b) return a % b end
Number.__mod = operation(rest, rest, function(a, b)
  return a - by_u64(a, b) * b
end)
Number.__shl = both(function(a, n) return a << n end)
Number.__shr = operation(nil, function(a, n) return a // (1 << n) end,
                         function(a, n) return a >> n end)

-- A float quotient is rounded to the type before floor is
-- applied.
function Number.__idiv(x, y)
  local t, a, b = meet(x, y)
  if is_float(t) then return new(t, floor(round[t](a / b))) end
  return new(t, (t == "u64" and by_u64 or quotient)(a, b))
end

-- Returns a bitwise operation: f applies to integers, g to booleans.
local function bitwise(f, g)
  return function(x, y)
    if x.t == "boolean" then return new("boolean", g(x.v, y.v)) end
    local t, a, b = meet(x, y)
    return new(t, f(a, b))
  end
end

Number.__band = bitwise(function(a, b) return a & b end,
                        function(a, b) return a and b end)
Number.__bor = bitwise(function(a, b) return a | b end,
                       function(a, b) return a or b end)
Number.__bxor = bitwise(function(a, b) return a ~ b end,
                        function(a, b) return a ~= b end)

function Number:__bnot()
  if self.t == "boolean" then return new(self.t, not self.v) end
  return new(self.t, ~self.v)
end

function Number:__unm() return new(self.t, -self.v) end

Number.lt = test(function(a, b, less) return less(a, b) end)
Number.gt = test(function(a, b, less) return less(b, a) end)
Number.le = test(function(a, b, less) return a == b or less(a, b) end)
Number.ge = test(function(a, b, less) return a == b or less(b, a) end)
Number.eq = test(function(a, b) return a == b end)
Number.ne = test(function(a, b) return a ~= b end)

local function least(t, a, b)
  if a ~= a or b ~= b then return a ~= a and b or a end
  if t == "u64" then return math.ult(b, a) and b or a end
  return b < a and b or a
end

local function map(f)
  return function(x)
    local v = f(x.v)
    return new(x.t, is_float(x.t) and float(v) or v)
  end
end

--- The functions of `cute` that a function of vectors may call.
plain.cute = {
  min = function(x, y)
    local t, a, b = meet(x, y)
    return new(t, least(t, a, b))
  end,
  max = function(x, y)
    local t, a, b = meet(x, y)
    if a ~= a or b ~= b then return new(t, a ~= a and b or a) end
    return new(t, least(t, a, b) == a and b or a)
  end,
  abs = map(math.abs), sqrt = map(math.sqrt), floor = map(floor),
  ceil = map(ceil),
  where = function(c, x, y)
    local t, a, b = meet(x, y)
    return new(t, c.v and a or not c.v and b)
  end,
}
for t in pairs(CLASS) do plain.cute[t] = t end

--- Returns a replacement of `at` whose at:coords() returns the coordinates c.
---@param c integer[]
function plain.at(c)
  return {coords = function()
    local list = {}
    for i, x in ipairs(c) do list[i] = new("i32", x) end
    return table.unpack(list)
  end}
end

return plain
-- SPDX-License-Identifier: MIT
