-- The example of the error kind `loop-exit` in docs/errors.md.
-- expect: cutelua: break, return or goto out of a traced loop: its body is
--   traced once for all iterations [loop-exit]
-- expect: spec/faults/loop-exit/example.lua:18 in kernel k
-- expect: cute.break_if(condition) leaves the loop
-- expect: hint: use cute.loop(cond, body), or cute.when around the rest of the
--   body
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX, n)
  for k in cute.range(n) do
    if k then break end  -- wrong
    -- mend: cute.break_if(mX[{k, 0}]:ne(0))
  end
end, X, 4)
