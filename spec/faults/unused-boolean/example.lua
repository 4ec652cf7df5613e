-- The example of the error kind `unused-boolean` in docs/errors.md.
-- expect: cutelua: this comparison was never used: a traced boolean is always
--   true in Lua's if, and, or, not, while [unused-boolean]
-- expect: spec/faults/unused-boolean/example.lua:15 in kernel k
-- expect: branch with cute.when(cond, function() ... end), choose with
--   cute.where, combine with & | ~
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX, n)
  local tid = cute.arch.thread_idx()
  if tid:lt(n) then mX[{tid, 0}] = 1 end  -- wrong
  -- mend: cute.when(tid:lt(n), function() mX[{tid, 0}] = 1 end)
end, X, 4)
