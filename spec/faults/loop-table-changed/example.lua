-- The example of the error kind `loop-table-changed` in docs/errors.md.
-- expect: cutelua: field 'state.last' is nil before this loop and has a
--   value after it [loop-table-changed]
-- expect: spec/faults/loop-table-changed/example.lua:15 in kernel k
-- expect: give it a value before, or keep it in a local
-- expect: hint: make the table with all its fields before the loop or branch
local cute = require "cute"
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

local state = {phase = 0}  -- wrong
-- mend: local state = {phase = 0, last = 0}
run(function(n)
  for k in cute.range(n) do
    state.phase = 1 - state.phase
    state.last = k
  end
end, 4)
