-- Tests layouts with an extent of 0: their properties, the operations that
-- accept them, and the errors of all other operations, which must name the
-- extent. Strides must equal those of torch.zeros(shape).
local cute = require "cute"
local support = require "spec.support"
local raises = support.raises

local L = cute.layout

describe("layouts without elements", function()
  it("have the strides that PyTorch gives them", function()
    -- torch.zeros(shape).stride()
    for shape, want in pairs {
      ["(0,8)"] = "(0,8):(8,1)", ["(8,0)"] = "(8,0):(1,1)",
      ["(0)"] = "(0):(1)", ["0"] = "0:1", ["(2,0,3)"] = "(2,0,3):(3,3,1)",
      ["(0,0)"] = "(0,0):(1,1)", ["(4,3,0)"] = "(4,3,0):(3,1,1)"} do
      local l = cute.make_layout(cute.parse(shape), cute.LayoutRight)
      assert.equal(want, tostring(l))
      assert.equal(0, cute.size(l))
      assert.equal(0, cute.cosize(l))
      assert.equal(want, tostring(L(want)))
    end
    -- An extent of 0 counts as 1 in the strides of the other modes.
    assert.equal("(0,8):(1,1)", tostring(cute.make_layout {0, 8}))
    assert.equal("(2,0,3):(1,2,2)", tostring(cute.make_layout {2, 0, 3}))
    assert.equal("(4,0,3):(3,3,1)",
                 tostring(cute.make_ordered_layout({4, 0, 3}, {2, 1, 0})))
    assert.equal("((0,3),4):((1,1),3)",
                 tostring(cute.make_layout {{0, 3}, 4}))
  end)

  it("are inspected, and their modes rearranged", function()
    local l = L "(2,0,3):(3,3,1)"
    assert.equal("(0,3):(3,1)", tostring(cute.take(l, 1, 3)))
    assert.equal("(3,2):(1,3)", tostring(cute.select(l, {2, 0})))
    assert.equal("(2,(0,3)):(3,(3,1))", tostring(cute.group(l, 1, 3)))
    assert.equal(0, cute.size(cute.coalesce(l)))
    assert.equal(0, cute.size(cute.filter(L "(0,4):(0,1)")))
    assert.equal("(0,4):(0,1)", tostring(cute.filter_zeros(L "(0,4):(0,1)")))
    assert.equal("(0,0,0)", tostring(cute.coshape(
      cute.make_identity_layout {2, 0, 3})))
    assert.equal("(0,8):(1@0,1@1)", tostring(cute.make_identity_layout {0, 8}))
    assert.is_true(L "(0,8):(8,1)":equals(L "0:1"))
    assert.is_true(L "(0,8):(8,1)" == L "(0,8):(8,1)")
    assert.is_false(L "(0,8):(8,1)":equals(L "1:0"))
    assert.equal(0, cute.cosize(L "(0,8):(-8,1)"))
    assert.equal(0, cute.cosize(L "Sw<1,2,1> o 0 o (0,8):(8,1)"))
  end)

  it("have no tiles along a mode of extent 0", function()
    assert.equal("((4,4),(0,2)):((8,1),(32,4))",
                 tostring(cute.zipped_divide(L "(0,8):(8,1)", {4, 4})))
    assert.equal("(4,0):(1,4)", tostring(cute.logical_divide(L "0:1", 4)))
    assert.equal("((4,0)):((1,4))",
                 tostring(cute.logical_divide(L "(0):(1)", {4})))
    assert.equal("0", tostring(cute.ceil_div(0, 4)))
  end)

  it("are rejected in some operations, with the extent", function()
    local l, m = L "(0,8):(8,1)", L "(4,4):(1,4)"
    for name, call in pairs {
      composition = function() return cute.composition(l, L "4:1") end,
      logical_divide = function() return cute.logical_divide(l, 4) end,
      logical_product = function() return cute.logical_product(l, 4) end,
      complement = function() return cute.complement(l, 64) end,
      right_inverse = function() return cute.right_inverse(l) end,
      left_inverse = function() return cute.left_inverse(l) end,
      nullspace = function() return cute.nullspace(l) end,
      blocked_product = function() return cute.blocked_product(l, m) end,
      tile_to_shape = function() return cute.tile_to_shape(l, {16, 16}) end,
      domain_distribute = function() return cute.domain_distribute({0, 8}, 4)
      end,
      greatest_common_domain = function()
        return cute.greatest_common_domain(l, m)
      end} do
      local why = support.message(call)
      assert.truthy(why:find(name .. ": an extent of 0 leaves no elements",
                             1, true), name .. ": " .. tostring(why))
      assert.truthy(why:find("[shape-mismatch]", 1, true))
    end
    raises("an extent of 0", cute.get_hier_coord, l, 3)
  end)

  it("go on beyond their elements, as if 0 were 1", function()
    assert.equal(3, L "(0,8):(8,1)"(3))
    assert.equal(10, L "(4,0):(2,5)"(8))
    assert.equal(16, L "(0,8):(8,1)"(2, 0))
  end)

  it("are composed if nothing is divided", function()
    assert.equal("(0,8):(6,2)", tostring(cute.composition(L "64:2",
                                                          L "(0,8):(3,1)")))
    assert.equal("4:6", tostring(cute.composition(L "0:2", L "4:3")))
  end)
end)
-- SPDX-License-Identifier: MIT
