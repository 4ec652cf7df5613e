-- Tests layouts in Lua: notation, values, convenience functions, and the
-- messages of errors. property_spec.lua tests the laws of the algebra.
local cute = require "cute"
local support = require "spec.support"
local ANY, X = cute._, cute.X
local message, raises = support.message, support.raises

local L = cute.layout

describe("notation", function()
  it("reads back all that is printed", function()
    for _, s in ipairs {"8:1", "(8):(1)", "():()", "(2,(3,4)):(1,(2,6))",
                        "(4,4):(-1,0)", "(2,2):(1@0,3@1)", "4:1@0@1",
                        "Sw<2,1,-3> o 7 o (4,4):(1,4)"} do
      assert.equal(s, tostring(L(s)))
    end
    for _, s in ipairs {"5", "(1,(2,_))", "_", "()", "Sw<3,4,3>", "2@1"} do
      assert.equal(s, tostring(cute.parse(s)))
    end
  end)

  it("accepts blanks, and CuTe's mark of static integers", function()
    assert.equal("(8,4):(1,8)", tostring(L " ( _8 , 4 ) : ( _1 , 8 ) "))
    assert.equal("Sw<3,3,3> o 0 o 8:1", tostring(L "Sw<3,3,3> o 8:1"))
  end)

  it("is made of a shape and one stride", function()
    raises("bad argument #3 to 'cute.make_layout' (no argument after shape "
      .. "and stride expected, got 2)", cute.make_layout, {8, 4}, {1, 8}, 2)
  end)

  it("reads tilers as tables", function()
    local t = cute.parse "(3:1,(2,_),4)"
    assert.equal("3:1", tostring(t[1]))
    assert.equal(2, t[2][1])
    assert.is_true(t[2][2] == ANY)
    assert.equal(4, t[3])
  end)

  it("of a shape alone is the compact layout", function()
    for _, text in ipairs {"8", "(8,(2,4))", "((3,5),1,2)", "()"} do
      assert.equal(cute.make_layout(cute.shape(L(text))), L(text))
    end
    assert.equal(L "(8,(2,4)):(1,(8,16))", L " ( 8, (2,4) )")
  end)

  it("shows the position of an error", function()
    assert.equal("cute.layout: expected ',' or ')' at position 7 "
                 .. "[bad-notation]\n  (8,(8 8):(8,1)\n        ^",
                 message(L, "(8,(8 8):(8,1)"))
    raises("expected an integer, `_` or '(' at position 1", L, "x")
    raises("at position 4", L, "(8,,8):(1,2)")
    raises("text after the end of the notation", L, "8:1 8")
    raises("a ',' outside of parentheses at position 2", L, "4,2")
    raises("expected an integer", L, "8:")
    raises("beyond 2^60", L, "8:99999999999999999999")
    raises("[bad-notation]", L, "")
    raises("cannot be read from text", L, "?:1")
    raises("layout notation expected, got nil", L, nil)
    raises("4 levels", L, "2:1@0@0@0@0@0")
    raises("does not have the nesting", L, "(2,2):1")
    raises("nest at most 32 deep", L, ("("):rep(100) .. "1" .. (")"):rep(100))
    raises("shift of 1 is smaller", L, "Sw<3,0,1> o 8:1")
  end)
end)

describe("make_layout", function()
  it("accepts tables, integers, constants and layouts", function()
    assert.equal("8:1", tostring(cute.make_layout(8)))
    assert.equal("(8):(1)", tostring(cute.make_layout {8}))
    assert.equal("(2,1,4):(1,0,2)", tostring(cute.make_layout {2, 1, 4}))
    assert.equal("(2,(3,4)):(12,(4,1))",
                 tostring(cute.make_layout({2, {3, 4}}, cute.LayoutRight)))
    assert.equal("(4,4):(0,-1)",
                 tostring(cute.make_layout({4, 4}, {0, -1})))
    assert.equal("(4,4):(1@1,1@0)",
                 tostring(cute.make_layout({4, 4}, {cute.E(1), cute.E(0)})))
    assert.equal("4:1", tostring(cute.make_layout(128 / 32)))
    assert.equal("(8):(1)", tostring(cute.make_layout(L "8:1")))
  end)

  it("rejects values that are no layout", function()
    raises("got 8.5", cute.make_layout, 8.5)
    raises("holds integers and tuples, not \"8\"", cute.make_layout, {"8"})
    raises("entry 2 of a tuple of 3 is nil", cute.make_layout, {8, nil, 8})
    raises("has the key x", cute.make_layout, {x = 8})
    raises("integer or tuple expected, got no value", cute.make_layout)
    raises("integer or tuple expected, got true", cute.make_layout, true)
    raises("not a FILE*", cute.make_layout, {io.stdout})
    raises("integer of at least 0, not -2", cute.make_layout, {4, -2})
    raises("integer of at least 0, not _", cute.make_layout, {4, ANY})
    raises("shape (4,4) and stride (1,(1)) differ", cute.make_layout, {4, 4},
           {1, {1}})
    raises("`_` is not a stride", cute.make_layout, {4, 4}, {1, X})
    raises("[overflow]", cute.make_layout, {1 << 40, 1 << 40, 2})
    raises("[overflow]", cute.make_layout, math.maxinteger)
    local deep = 1
    for _ = 1, 40 do deep = {deep} end
    raises("nest at most 32 deep", cute.make_layout, deep)
    local wide = {}
    for i = 1, 3000 do wide[i] = 1 end
    raises("at most 2047 modes", cute.make_layout, wide)
    local loop = {}
    loop[1] = loop
    raises("nest at most 32 deep", cute.make_layout, loop)
  end)
end)

describe("a layout", function()
  local l = L "(8,(8,8)):(8,(1,64))"

  it("has shape and stride as tables that print", function()
    assert.same({8, {8, 8}}, l.shape)
    assert.equal("(8,(1,64))", tostring(l.stride))
    assert.equal(8, l.shape[2][1])
    assert.is_true(l.shape == cute.tuple {8, {8, 8}})
    l.shape[1] = 99  -- a copy
    assert.equal(8, l.shape[1])
  end)

  it("is immutable", function()
    raises("layouts are immutable", function() l.shape = {4} end)
    raises("no field 'no_such_field'", function() return l.no_such_field end)
  end)

  it("has the functions as methods", function()
    assert.equal(512, l:size())
    assert.equal(64, l:size(1))
    assert.equal("8:1", tostring(l:get(1, 0)))
    assert.equal("(8,8,8):(8,1,64)", tostring(l:flatten()))
    assert.equal("(8,8,8):(8,1,64)", tostring(l:coalesce()))
    assert.equal(512, l:cosize())
    assert.equal("((4,2),(8,8)):((8,32),(1,64))",
                 tostring(l:logical_divide {4, ANY}))
  end)

  it("evaluates at coordinates of every kind", function()
    assert.equal(90, l(83))
    assert.equal(90, l(3, 10))
    assert.equal(90, l(3, {2, 1}))
    assert.equal(90, l {3, {2, 1}})
    assert.equal(-6, L "(4,4):(-1,-2)"(0, 3))
    -- coordinate 8 is the extent, one beyond the last element, which is allowed
    assert.equal(64, L "8:8"(8))
    raises("coordinate: (1,2,3) and (8,(8,8)) do not match", l, 1, 2, 3)
    raises("do not match", l, {1, 2}, 3)
    raises("a coordinate is missing", l)
    raises("coordinate 1 is nil", l, 1, nil)
    raises("got 1.5", l, 1.5, 2)
    raises("[overflow]", L "8:1152921504606846975", 2)
  end)

  it("can be concatenated to strings, and be a key in tables", function()
    assert.equal("l = (8,(8,8)):(8,(1,64))", "l = " .. l)
    local t = {[l] = l}
    assert.is_true(t[l] == l)
  end)

  it("compares by form with ==, by function with equals", function()
    assert.is_true(l == L "(8,(8,8)):(8,(1,64))")
    assert.is_false(l == L "(8,8,8):(8,1,64)")
    assert.is_true(l:equals(L "(8,8,8):(8,1,64)"))
    assert.is_false(l:equals(L "(8,8,8):(8,1,65)"))
    assert.is_false(l == 8)
    raises("layout expected, got 8", l.equals, l, 8)
  end)

  -- A leaf takes 16 bytes for its extent and stride, and a nested tuple 8
  -- bytes.
  it("uses less than 32 bytes of memory per leaf", function()
    local n, leaves, pairs_ = 500, 64, {}
    for i = 1, leaves / 2 do pairs_[i] = {2, 1} end
    local keep = {}
    for i = 1, n do keep[i] = false end
    local source = cute.make_layout(pairs_)
    collectgarbage()
    collectgarbage "stop"
    local before = collectgarbage "count"
    for i = 1, n do keep[i] = cute.get(source, 0) end
    local two = (collectgarbage "count" - before) * 1024 / n
    before = collectgarbage "count"
    for i = 1, n do keep[i] = cute.group_modes(source, 0, 2) end
    local many = (collectgarbage "count" - before) * 1024 / n
    collectgarbage "restart"
    assert.is_true(many - two < 32 * (leaves - 2), many - two)
    assert.is_true(two < 160, two)
    assert.equal(n, #keep)
  end)
end)

describe("the empty layout", function()
  local e = L "():()"

  it("counts as 1:0 when modes are combined", function()
    for name, want in pairs {coalesce = "1:0", filter = "1:0",
      right_inverse = "1:0", left_inverse = "1:0", nullspace = "1:0",
      flatten = "():()", filter_zeros = "():()", make_layout_like = "():()",
      max_alignment = "1", size = "1", cosize = "1", rank = "0"} do
      assert.equal(want, tostring(cute[name](e)), name)
    end
    assert.equal("(4,1):(1,0)",
                 tostring(cute.coalesce(L "(4,()):(1,())", {1, 1})))
    assert.equal("4:1", tostring(cute.complement(e, 4)))
    assert.equal("():()", tostring(cute.composition(L "4:1", e)))
    assert.equal("(2,1):(0,0)", tostring(cute.logical_divide(e, 2)))
    assert.equal(1, cute.max_common_vector(e, L "4:1"))
  end)

  it("uses no part of an index", function()
    local l = L "(4,(),(3,()),()):(1,(),(8,()),())"
    for i = -20, 20 do
      assert.equal(L "(4,3):(1,8)"(i), l(i))
      assert.equal(l(i), l(cute.idx2crd(i, l.shape)))
    end
    assert.equal(e(0), 0)
  end)
end)

describe("errors of inadmissible calls name the arguments", function()
  it("strides that are bases", function()
    local l = L "(4,6):(1@1,1@0)"
    raises("make_layout_like: strides that are bases cannot be ordered: (4,6)",
           cute.make_layout_like, l)
    raises("recast_layout: strides that are bases give coordinates, "
           .. "which have no element width", cute.recast_layout, 16, 32, l)
    raises("upcast: strides that are bases", cute.upcast, l, 2)
    raises("downcast: strides that are bases give", cute.downcast, l, 2)
    for _, name in ipairs {"get_1d_coord", "get_flat_coord",
                           "get_hier_coord"} do
      raises("gives coordinates, not offsets", cute[name], l, {1, 2})
    end
    for _, name in ipairs {"right_inverse", "left_inverse"} do
      raises("cannot be added", cute[name], L "(4,6):(1@0,1@0@0)")
      raises("cannot be added", cute[name], L "(4,6):(1,1@0)")
    end
  end)

  it("composition", function()
    assert.equal(
      "cute.composition: stride 6 is not divisible by extent 4 (3:6 on " ..
      "(4,6):(1,8)) in mode 1 [inadmissible]\n" ..
      "  left:  (4,6):(1,8)\n  right: (2,3):(1,6)\n" ..
      "  e.g. coordinate 2 of 3:6 is coordinate 12 of (4,6):(1,8): offset " ..
      "24, where equal steps of 10 would give 20",
      message(cute.composition, L "(4,6):(1,8)", L "(2,3):(1,6)"))
    -- A right side of one or two elements, or with a suitable stride, is
    -- accepted even if it does not meet the divisibility condition.
    assert.equal("2:10", tostring(cute.composition(L "(4,6):(1,8)", L "2:6")))
    assert.equal("1:5", tostring(cute.composition(L "(4,6,8):(2,3,5)",
                                                  L "1:5")))
    assert.equal("(2,2):(4,9)", tostring(cute.composition(L "(2,2):(1,3)",
                                                          L "4:3")))
    raises("e.g. coordinate 4 of 6:1", cute.composition, L "(4,6):(1,8)", 6)
    raises("in mode 1", cute.composition, L "(4,(4,3)):(1,(4,32))", {4, 6})
    raises("add up beyond an extent", cute.composition, L "(4,3):(1,8)",
           L "(3,3):(1,1)")
    raises("add up beyond an extent", cute.composition, L "(4,3):(1,8)",
           L "(2,2):(4,-1)")
    raises("too many elements to check", cute.composition,
           L "(4,1048576):(1,8)",
           L "(1048576,3,2):(4,1,2)")
    raises("strides 1@0 and 1 cannot be added", cute.composition,
           L "(4,3):(1,8)", L "(2,2):(1@0,1)")
    raises("the tiler has more modes", cute.composition, L "(4,4):(1,4)",
           {1, 2, 3})
  end)

  it("complement and inverses", function()
    local got = message(cute.complement, L "(4,4):(1,2)", 32)
    assert.is_truthy(got:find("the modes overlap: stride 2 lies inside the 4 "
                              .. "offsets", 1, true), got)
    assert.is_truthy(got:find("coordinates 2 and 4 are both at 2", 1, true))
    raises("left_inverse: stride 3 is not a multiple of 2", cute.left_inverse,
           L "(2,2,2):(2,3,16)")
    raises("the modes overlap", cute.left_inverse, L "(9,2,12):(1,1,32)")
    -- The modes of this layout overlap, but it still has a left inverse.
    assert.equal("(4,8):(1,8)",
                 tostring(cute.left_inverse(L "(8,8):(1,4)")))
  end)

  it("divides and products", function()
    raises({"logical_divide: the tiles do not cover all elements",
      "e.g. coordinate 8 (offset 12) is not a value of (2,4):(4,1), the tile "
            .. "and its rest"}, cute.logical_divide, L "(6,2):(1,10)", L "2:4")
    raises("coordinate 3 ", cute.logical_divide, L "12:1", L "(3,2):(1,4)")
    raises({"tile_to_shape: modes of the right layout add up beyond an extent",
            "e.g. coordinate 4 of (3,2):(1,3) is coordinate 4 of "
            .. "(4,2):(8,128): offset 128, where the modes add up to 32"},
           cute.tile_to_shape, L "(4,8):(32,1)", {12, 16})
    raises("with_shape: modes of the right layout add up", cute.with_shape,
           L "(6,2):(1,10)", {4, 2})
    raises("the tiler has more modes", cute.zipped_divide, L "4:1", {2, 2})
    raises("no tile and rest to separate", cute.zipped_divide,
           L "(4,4):(1,4)", {2, ANY})
    raises("right: (2,_)", cute.zipped_divide, L "(4,4):(1,4)", {2, ANY})
    raises("extent must be positive, not 0", cute.logical_divide, L "4:1", 0)
    raises("tile_to_shape: the block's extent 4 does not divide the shape's 9 "
      .. "in mode 1",
           cute.tile_to_shape, L "(2,4):(4,1)", {4, 9})
    raises("more modes than the shape", cute.tile_to_shape, L "(2,4):(4,1)", 8)
    for _, n in ipairs {-8, 0} do
      raises(("the shape (4,%d) has %d in mode 1; 1 or more is needed"):format(
        n, n), cute.tile_to_shape, L "(2,4):(4,1)", {4, n})
    end
  end)

  it("widths of modes of one element need no stride that divides", function()
    for text, want in pairs {["(1,8):(3,1)"] = "(1,4):(2,1)",
                             ["(1,8):(-3,1)"] = "(1,4):(-2,1)",
                             ["((1,1),4):((5,7),1)"] = "((1,1),2):((3,4),1)",
                             ["1:3"] = "1:2"} do
      assert.equal(want, tostring(cute.recast_layout(16, 8, L(text))))
      assert.equal(want, tostring(cute.upcast(L(text), 2)))
    end
  end)

  it("widths", function()
    raises("upcast: neither stride 3 nor factor 2 divides the other",
           cute.upcast, L "(3,6):(1,3)", 2)
    raises("no mode has stride 1", cute.downcast, L "4:2", 2)
    raises("must be positive, not 0", cute.upcast, L "4:1", 0)
  end)

  it("modes and arguments", function()
    raises("no mode 2 in (8,4) (modes 0 to 1)", cute.get, L "(8,4):(1,8)", 2)
    raises("modes count from 0", cute.get, L "(8,4):(1,8)", -1)
    raises("layout expected, got {8}", cute.composition, {8}, L "8:1")
    raises([[bad argument #1 to 'cute.coalesce' (layout expected, got "8:1")]],
           function() local _ = cute.coalesce "8:1" end)
    raises("tiler: a layout, an integer", cute.zipped_divide, L "8:1", "4")
    raises("no modes [1,3)", cute.take, L "(8,4):(1,8)", 1, 3)
    raises([[integer expected, got "4"]], cute.upcast, L "8:1", "4")
    raises("coordinate: (1,2,_) and (8,4) do not match",
           cute.slice_, {1, 2, ANY}, L "(8,4):(1,8)")
  end)
end)

describe("cute.explain", function()
  it("prints the steps and returns the results", function()
    local lines = {}
    local r = cute.explain(function()
      return cute.composition(L "(6,2):(8,2)", L "(4,3):(3,1)")
    end, function(line) lines[#lines + 1] = line end)
    assert.equal("((2,2),3):((24,2),8)", tostring(r))
    assert.same({"composition (6,2):(8,2) o (4,3):(3,1)",
                 "  4:3 of the right becomes (2,2):(24,2)",
                 "  3:1 of the right becomes 3:8",
                 "  result ((2,2),3):((24,2),8)",
                 "= ((2,2),3):((24,2),8)"}, lines)
  end)

  it("prints the steps of inverses and of coalesce", function()
    local lines = {}
    cute.explain(function()
      return cute.left_inverse(L "(4,8):(1,5)"),
             cute.coalesce(L "(2,(1,6)):(1,(6,2))")
    end, function(line) lines[#lines + 1] = line end)
    assert.same({"left_inverse of (4,8):(1,5)",
      "  mode 4:1: offsets in steps of 1, coordinates of stride 1",
      "  mode 8:5: offsets in steps of 5, coordinates of stride 4",
      "coalesce (2,(1,6)):(1,(6,2)): flattened, without extents of 1, "
        .. "contiguous modes joined: 12:1",
      "= (5,8):(1,4)", "= 12:1"}, lines)
  end)

  it("passes errors on, after the steps", function()
    local lines = {}
    raises("[inadmissible]", cute.explain, function()
      return cute.composition(L "(4,6):(1,8)", L "3:6")
    end, function(line) lines[#lines + 1] = line end)
    assert.equal("composition (4,6):(1,8) o 3:6", lines[1])
    raises("function expected, got 8", cute.explain, 8)
    -- After explain, this call must add no lines.
    cute.composition(L "(4,6):(1,8)", L "2:1")
    assert.is_true(#lines <= 2)
  end)
end)

describe("a tiler divides evenly", function()
  local function covers(shape, tile)
    local ok, l = pcall(cute.logical_divide, cute.make_layout(shape), tile)
    local n = cute.size(shape)
    local seen, size = {}, ok and cute.size(l) or 0
    if size ~= n then return false end
    for i = 0, n - 1 do seen[l(i)] = true end
    for i = 0, n - 1 do if not seen[i] then return false end end
    return true
  end

  it("if tiles and rest have each offset once", function()
    local yes = 0
    for n = 1, 36 do
      for s = 1, 9 do
        assert.equal(covers(n, s), cute.evenly_divides(n, s))
        for d = 1, 6 do
          local tile = cute.make_layout(s, d)
          local want = covers(n, tile)
          yes = yes + (want and 1 or 0)
          assert.equal(want, cute.evenly_divides(n, tile),
                       ("%d by %s"):format(n, tile))
        end
      end
    end
    assert.is_true(yes > 100)
    assert.is_false(cute.evenly_divides(32, cute.layout "8:3"))
    for _, n in ipairs {-2, 0} do
      raises(("evenly_divides: the cotarget %d for the complement of "
        .. "(4,2):(1,4) is not made of positive integers "
        .. "[shape-mismatch]"):format(n),
        cute.evenly_divides, n, cute.layout "(4,2):(1,4)")
    end
    assert.is_true(cute.evenly_divides({8, 12}, {cute.layout "2:4", 3}))
    assert.is_false(cute.evenly_divides({8, 12}, {cute.layout "2:3", 3}))
    assert.is_true(cute.evenly_divides({8, 12}, {4}))
    assert.is_false(cute.evenly_divides({8}, {4, 2}))
  end)

  it("mode by mode, where an integer is one mode", function()
    local yes, n = 0, 0
    local shapes = {16, {16}, {{16}}, 32, {16, 8}, {{16}, 8}, {{4, 2}, 8},
                    {{{4, 4}}}, {{2, 8}, {8}}, 7, {7, 16}}
    local tiles = {{16}, {4}, {3}, {{4}}, {{{8}}}, {4, 8}, {{4}, 8}, {{4}, {2}},
                   {L "8:1"}, {L "8:2"}, {L "8:3"}, {{L "4:4"}, 8},
                   {{4, 2}}, {{2, 2}, 4}, {{2, L "4:2"}}, {7}, {{7}, {4}},
                   {cute._}, {{4}, cute._}, {cute._, {4}}, {4, 4, 4}}
    for _, shape in ipairs(shapes) do
      for _, tile in ipairs(tiles) do
        local want = covers(shape, tile)
        yes, n = yes + (want and 1 or 0), n + 1
        assert.equal(want, cute.evenly_divides(shape, tile),
                     ("%s by tile %d"):format(cute.make_layout(shape), n))
      end
    end
    assert.is_true(yes > 60 and n - yes > 60)
    assert.is_true(cute.evenly_divides(16, {16}))
    assert.is_true(cute.evenly_divides({16, 8}, {{4}, 8}))
  end)
end)
-- SPDX-License-Identifier: MIT
