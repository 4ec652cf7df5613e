-- Tests the note that the program prints, once per line, if modes with equal
-- strides overlap.
local support = require "spec.support"

local function notes(text)
  local dir = support.folder()
  support.write(dir .. "/a.lua", "local cute = require 'cute'\n", text)
  local _, err, code = support.run({dir .. "/a.lua"})
  support.remove(dir)
  assert.equal(0, code, err)
  return (err:gsub("[^ ]*a%.lua", "a.lua"))
end

describe("modes of the same order", function()
  it("are noted if they overlap, once per line", function()
    assert.equal("cutelua: note: a.lua:3: make_ordered_layout: modes of the "
      .. "same order overlap in (4,8):(1,1) (order (0,0))\n", notes [[
for _ = 1, 3 do
  local _ = cute.make_ordered_layout({4, 8}, {0, 0})
end]])
    assert.equal("cutelua: note: a.lua:2: tile_to_shape: modes of the same "
      .. "order overlap in ((2,2),(2,3)):((1,4),(2,4)) (order (1,1))\n",
      notes [[
local _ = cute.tile_to_shape(cute.layout "(2,2):(1,2)", {4, 6}, {1, 1})]])
  end)

  it("are not noted if one of them has one element", function()
    assert.equal("", notes [[
local _ = cute.make_ordered_layout({4, 1, {2, 3}}, {0, 0, 1})
_ = cute.make_ordered_layout({4, 8})
_ = cute.make_ordered_layout({4, 8}, cute.LayoutRight)
_ = cute.tile_to_shape(cute.layout "(2,2):(1,2)", {4, 2}, {1, 1})]])
  end)
end)
-- SPDX-License-Identifier: MIT
