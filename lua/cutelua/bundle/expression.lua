--- Integer expressions of extents and numbers. The script's grid function
-- builds them while the bundle is made, and generated C code evaluates them at
-- each launch.
--
-- An expression records the operations that the function applies to it.
-- Comparing expressions has no result while the bundle is made, so it raises an
-- error. `x == 1` raises none, because Lua does not let an expression intercept
-- it; check_grid in record.lua detects such branches by calling the function
-- with integers, too.
local core = require "cute.core"

local expression = {}

local Expression = {__name = "extent"}

local function fail(text, ...)
  core.fail("bad-argument", "cute.bundle: " .. text:format(...))
end

local function made(op, a, b)
  return setmetatable({op = op, a = a, b = b}, Expression)
end

--- Returns an expression for a value that C code reads.
---@param text string C code
function expression.leaf(text) return made("leaf", text) end

local function operand(x)
  if getmetatable(x) == Expression or math.type(x) == "integer" then
    return x
  end
  fail("the grid's function computes with %s; integers are needed",
       core.show(x))
end

for name, op in pairs {__add = "+", __sub = "-", __mul = "*", __idiv = "//",
                       __mod = "%"} do
  Expression[name] = function(a, b) return made(op, operand(a), operand(b)) end
end
function Expression.__unm(a) return made("-", 0, a) end

function Expression.__div()
  fail "the grid's function divides by `/`; integers are divided by `//`"
end

local function compared()
  fail("the grid's function compares an extent, which is not known before "
    .. "the launch: use cute.bundle.min and cute.bundle.max")
end
Expression.__lt, Expression.__le, Expression.__eq = compared, compared, compared

local function lesser(op)
  return function(a, b)
    local x, y = math.type(a) == "integer", math.type(b) == "integer"
    if x and y then return op == "min" and math.min(a, b) or math.max(a, b) end
    return made(op, operand(a), operand(b))
  end
end
expression.min, expression.max = lesser "min", lesser "max"

--- Returns the expression as C code. That code calls the functions of
-- expression.code by the names bun_quotient, bun_rest, bun_least and bun_most.
function expression.c(x)
  if math.type(x) == "integer" then return ("INT64_C(%d)"):format(x) end
  if x.op == "leaf" then return x.a end
  local a, b = expression.c(x.a), expression.c(x.b)
  local f = ({["//"] = "quotient", ["%"] = "rest", min = "least",
              max = "most"})[x.op]
  if f then return ("%s(%s, %s)"):format(f, a, b) end
  return ("(%s %s %s)"):format(a, x.op, b)
end

--- C functions for `//`, `%`, min and max. A quotient by 0 is 0.
expression.code = {
  quotient = [[
static int64_t quotient(int64_t a, int64_t b) {
  if (!b) return 0;
  int64_t q = a / b;
  return q * b == a || (a < 0) == (b < 0) ? q : q - 1;
}
]],
  rest = [[
static int64_t rest(int64_t a, int64_t b) {
  if (!b) return 0;
  int64_t r = a % b;
  return r && (r < 0) != (b < 0) ? r + b : r;
}
]],
  least = [[
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
]],
  most = [[
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
]]}

-- Returns the value of an expression; values[text] is the value of a leaf.
local function value(x, values)
  if math.type(x) == "integer" then return x end
  if x.op == "leaf" then return values[x.a] end
  local a, b = value(x.a, values), value(x.b, values)
  if x.op == "+" then return a + b
  elseif x.op == "-" then return a - b
  elseif x.op == "*" then return a * b
  elseif x.op == "min" then return math.min(a, b)
  elseif x.op == "max" then return math.max(a, b)
  elseif b == 0 then return 0 end
  return x.op == "//" and a // b or a % b
end
expression.value = value

return expression
-- SPDX-License-Identifier: MIT
