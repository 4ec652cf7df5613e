-- The example of the error kind `wrong-layout` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/wrong-layout/report.lua:11 in run
-- expect: report.lua:16: (32,32):(1,32) divided by 3:1 is (3,342):(1,3), but
--   was traced as ((3,1),(11,32)):((1,32),(3,32)), which has a different
--   offset at coordinate 11 in mode 1 [wrong-layout]
-- expect: make the extents multiples of the tile, keep the layout static, or
--   partition it mode by mode
local cute = require "cute"
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

local Y = cute.zeros(cute.layout "(32,32):(1,32)", cute.f32)
run(function(mY)                 -- tiles of all elements, or of columns?  -- wrong
  local tiles = cute.zipped_divide(mY, cute.layout "3:1")  -- wrong
-- mend: run(function(mY)
  -- mend: local tiles = cute.zipped_divide(mY, cute.layout "4:1")
  tiles[{0, 0}] = 1
end, Y:mark_layout_dynamic())
