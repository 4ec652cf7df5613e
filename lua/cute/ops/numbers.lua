--- Numbers of a call as arguments of its kernel.
local calls = require "cute.ops.calls"
local cute = require "cute"

local numbers = {}

--- Appends an argument to {n =, ...}.
function numbers.add(list, x)
  list[list.n + 1], list.n = x, list.n + 1
end

--- Appends a number; Lua's floats are f32 there, and with `wide` f64, which go
-- as their two halves. It is number `nth` of the call's argument `at`.
function numbers.push(list, x, wide, at, nth)
  if wide and math.type(x) == "float" then
    local low, high = string.unpack("<i4i4", string.pack("<d", x))
    numbers.add(list, low)
    calls.mark(list, at, nth, 1)
    numbers.add(list, high)
    calls.mark(list, at, nth, 2)
  else
    numbers.add(list, x)
    if math.type(x) then calls.mark(list, at, nth) end
  end
end

--- In the kernel, what follows the first n arguments, one by one: next(wide,
-- is_float).
function numbers.reader(args, n)
  return function(wide, is_float)
    n = n + 1
    if not (wide and is_float) then return args[n] end
    local low, high = args[n]:to(cute.u32), args[n + 1]
    n = n + 1
    return (high:to(cute.i64) << 32 | low:to(cute.i64)):bitcast(cute.f64)
  end
end

return numbers
