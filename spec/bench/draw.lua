-- Measures how long drawings take: `cutelua spec/bench/draw.lua`.
local cute = require "cute"
local measure = require "spec.measure"

local TV = cute.layout "((4,8,4),(2,2,2,8)):((256,1,32),(128,8,16,1024))"
local MMA = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", {2, 2, 1},
                                {128, 64, 16})

local function times(x, opts)
  local list = {}
  for i = 1, 15 do
    local start = measure.clock()
    cute.draw(x, opts)
    list[i] = (measure.clock() - start) * 1e3
  end
  return list
end

local t = measure.table "Pictures"
for _, form in ipairs {"text", "svg", "latex", "html"} do
  t:add("thread-value layout of 128x64, " .. form,
        times(TV, {as = form, tile = {128, 64}}), "ms", 50)
end
t:add("the same in colour, 80 columns",
      times(TV, {as = "text", tile = {128, 64}, colour = true, width = 80}),
      "ms", 50)
t:add("TiledMMA of 128x64x16, svg", times(MMA, {as = "svg"}), "ms", 100)
t:print()
-- SPDX-License-Identifier: MIT
