-- Fault: a function of cute.func calls itself, and no condition that Lua can
-- evaluate ends the recursion.
-- expect: cutelua: cute.func: this function called itself 256 times: a traced
--   condition never ends a recursion [limit]
-- expect: write cute.loop(cond, body), or end the recursion by a number that
--   Lua knows
local cute = require "cute"
local Y = cute.zeros({32}, cute.f32)
local half
half = cute.func(function(v)
  cute.return_if(v:lt(1.0), v)
  return half(v * 0.5)  -- wrong
  -- mend: return v * 0.5
end)
cute.kernel("k", function(y)
  y[0] = half(y[0])
end)(Y):launch {grid = 1, block = 1, device = "sim"}
