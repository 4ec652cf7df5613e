-- The example of the error kind `traced-in-lua` in docs/errors.md.
-- expect: cutelua: '==' or '~=' beside a traced value is always false or true
--   in Lua [traced-in-lua]
-- expect: spec/faults/traced-in-lua/example.lua:13 in kernel k
-- expect: write a:eq(x) or a:ne(x), and cute.when(...) to branch on it
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX, n)
  if cute.arch.thread_idx() == 0 then     -- always false in Lua  -- wrong
    for i = 0, n - 1 do mX[{i, 0}] = 1 end  -- wrong
  end  -- wrong
  -- mend: cute.when(cute.arch.thread_idx():eq(0), function()
    -- mend: for i in cute.range(n) do mX[{i, 0}] = 1 end
  -- mend: end)
end, X, 4)
