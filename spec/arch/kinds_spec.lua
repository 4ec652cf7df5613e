-- Tests the names by which kernels use the rows of the IR's small tables
-- (core/ir/kinds.h): special registers, atomics, fences and hints.
local core = require "cute.core"
local cute = require "cute"

local function unknown(message, f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.equal(message, err)
end

describe("kinds", function()
  it("are known by their names, and unknown names are rejected", function()
    local k = cute.kernel("k", function(o)
      for _, name in ipairs {"tid.y", "ctaid.z", "laneid", "smid"} do
        o[0] = core.sreg(name)
      end
      unknown("no special register 'tid.w'", core.sreg, "tid.w")
      unknown("no fence 'warp'", core.fence, "warp")
      unknown("no atomic 'sub'", core.atomic, "sub", o.iterator, 1, nil, 0)
      local fact = core.fact(core.sreg "laneid")
      assert.same({0, 31}, {fact.lo, fact.hi})
      fact = core.fact(core.sreg "tid.x")
      assert.same({0, 7}, {fact.lo, fact.hi})
    end)
    k(cute.zeros({2}, "i32")):trace {block = 8}
  end)

  it("of hints are fields of their own", function()
    local all = 0
    for _, field in pairs(core.hints()) do
      local mine = 0
      for _, bits in pairs(field) do mine = mine | bits end
      assert.equal(0, all & mine)
      all = all | mine
    end
    assert.equal(0xfff, all & 0xfff)
  end)
end)
-- SPDX-License-Identifier: MIT
