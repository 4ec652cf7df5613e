-- The example of the error kind `runaway-trace` in docs/errors.md.
-- expect: cutelua: this line traced over 131072 operations: Lua loops are
--   unrolled, and a `while` on a traced boolean never ends [runaway-trace]
-- expect: spec/faults/runaway-trace/example.lua:13 in kernel k
-- expect: write cute.range(n) or cute.loop(cond, body) for a loop of the kernel
local cute = require "cute"
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(n)
  local k = n
  while k:lt(100) do k = k + 1 end  -- wrong
  -- mend: cute.loop(function() return k:lt(100) end, function() k = k + 1 end)
end, 4)
