-- The example of the error kind `needs-static` in docs/errors.md.
-- expect: cutelua: cute.make_rmem_tensor: make_rmem_tensor needs a static
--   layout, got (?):(1) [needs-static]
-- expect: spec/faults/needs-static/example.lua:13 in kernel k
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local n = cute.size(mX, 0)      -- X is marked dynamic  -- wrong
  local r = cute.make_rmem_tensor({n}, cute.f32)  -- wrong
  -- mend: local r = cute.make_rmem_tensor({8}, cute.f32)
end, X:mark_layout_dynamic())
