--- Appends scalar arguments, such as alpha and beta, to the arguments of a
-- kernel.
local calls = require "cute.ops.calls"
local cute = require "cute"

local numbers = {}

--- Appends an argument x, which may be nil, to a list {n =, ...}.
function numbers.push(list, x)
  list[list.n + 1], list.n = x, list.n + 1
end
local push = numbers.push

--- Appends a number x to a list of kernel arguments. A Lua float becomes f32
-- or, if the kernel computes in f64, two 32-bit halves. Records that x is the
-- nth number in argument `at` of the call.
---@param list table
---@param x any
---@param as any the type in which the kernel computes
---@param at? integer
---@param nth? integer
function numbers.pass(list, x, as, at, nth)
  if as == cute.f64 and math.type(x) == "float" then
    local low, high = string.unpack("<i4i4", string.pack("<d", x))
    push(list, low)
    calls.mark(list, at, nth, 1)
    push(list, high)
    calls.mark(list, at, nth, 2)
  else
    push(list, x)
    if math.type(x) then calls.mark(list, at, nth) end
  end
end

--- Returns two functions that read the arguments of a kernel one after another,
-- from argument n + 1 on. The first returns the next argument. The second, (as,
-- is_float), returns the next number that numbers.pass appended; for an f64 it
-- reads two arguments.
---@param args any[]
---@param n? integer
function numbers.reader(args, n)
  local at = n or 0
  local function next_one()
    at = at + 1
    return args[at]
  end
  local function number(as, is_float)
    if as ~= cute.f64 or not is_float then return next_one() end
    local low, high = next_one():to(cute.u32), next_one()
    return (high:to(cute.i64) << 32 | low:to(cute.i64)):bitcast(cute.f64)
  end
  return next_one, number
end

return numbers
-- SPDX-License-Identifier: MIT
