-- Tests the errors for invalid layouts: ill-formed notation, tables with holes,
-- values of other types, extents of 0, numbers that are too large. Also tests
-- drawings in colour.
local cute = require "cute"
local draw = require "cutelua.draw.print"
local support = require "spec.support"
local L = cute.layout
local message, raises = support.message, support.raises

describe("ill-formed notation", function()
  -- {text, the part of the text before the mistake, a part of the message}
  local CASES = {
    {"(8,4:(1,8)", "(8,4", "(is a ')' missing before the ':'?)"},
    {"(8,4):(1,8", "(8,4):(1,8", "expected ',' or ')'"},
    {"(8,4):(1,8,2)", "(8,4):", "(1,8,2) does not have the nesting of"},
    {"(8,(4)):(1,8)", "(8,(4)):", "does not have the nesting of shape"},
    {"8:(1)", "8:", "stride (1) does not have the nesting of shape 8"},
    {" -8", " ", "an integer of at least 0 as extent"},
    {"(8,1@0)", "(8,", "an integer of at least 0 as extent"},
    {"_", "", "an integer of at least 0 as extent"},
    {"", "", "expected an integer"},
    {"8:1:2", "8:1", "a second ':' after shape and stride"},
    {"8:1 x", "8:1 ", "text after the end of the notation"},
    {"(8,4):(1,8))", "(8,4):(1,8)", "this ')' closes no '('"},
    {"8:_", "8:", "`_` is not a stride"},
    {"(8,4):(1,_)", "(8,4):(1,", "`_` is not a stride"},
    {"(8,_):(1,8)", "(8,", "an integer of at least 0 as extent"},
    {"(2,(4,-3)):(1,(2,8))", "(2,(4,", "an integer of at least 0 as extent"},
    {"8:1@", "8:1@", "expected a mode number"},
    {"8:1@64", "8:1@", "modes 0 to 63"},
    {"8:1@1@1@1@1@1", "8:1@1@1@1@1", "at most 4 levels of '@'"},
    {"8:3000000000@1", "8:", "a basis value beyond 32 bits"},
    {"8:x", "8:", "expected an integer, `_` or '('"},
    {"8.5:1", "8", "text after the end of the notation"},
    {"(8,,4):(1,8)", "(8,", "expected an integer"},
    {"(8,4,):(1,8)", "(8,4,", "expected an integer"},
    {"(8 4):(1 8)", "(8 ", "expected ',' or ')'"},
    {"?:1", "", "a traced extent"},
    {"((8:1),4):(1,8)", "((8:1),4)", "a layout has no stride"},
    {"(8,4):(1,8:1)", "(8,4):", "expected strides, not layouts"},
    {"(2:1,3:2)", "", "a tuple of layouts is a tiler"},
    {"1152921504606846976:1", "", "a number beyond 2^60"},
    {"Sw<3,3,3", "Sw<3,3,3", "expected '>'"},
    {"Sw<3,3>", "Sw<3,3", "expected ','"},
    {"Sw<3,3,3>", "Sw<3,3,3>", "expected 'o' and a layout"},
    {"Sw<3,3,3> o 8", "Sw<3,3,3> o 8", "expected ':' and a stride"},
    {"Sw<3,3,3> o _ o 8:1", "Sw<3,3,3> o ", "expected an integer as offset"},
    {"Sw<3,3,3> o 0 o", "Sw<3,3,3> o 0 o", "expected an integer"},
    {("("):rep(40), ("("):rep(32), "tuples nest at most 32 deep"},
    {"8:1\n\t\1", "8:1\n\t", "text after the end of the notation"},
  }

  it("is shown with a caret under what is wrong", function()
    for _, case in ipairs(CASES) do
      local text, before, why = table.unpack(case)
      local lines = {}
      for line in (message(L, text) .. "\n"):gmatch "(.-)\n" do
        lines[#lines + 1] = line
      end
      assert.equal(3, #lines, text)
      assert.is_truthy(lines[1]:find(why, 1, true), lines[1])
      assert.is_truthy(lines[1]:find("at position " .. #before + 1, 1, true),
                       lines[1])
      assert.equal("  " .. text:gsub("%c", " "), lines[2])
      assert.equal((" "):rep(#before + 2) .. "^", lines[3])
    end
  end)

  it("is shown where it is in a long text", function()
    local long = "(" .. ("8,"):rep(60) .. "x):1"
    local got = message(L, long)
    local line, caret = got:match "\n(.-)\n(.-)$"
    assert.is_truthy(got:find("at position 122", 1, true), got)
    assert.equal("x", line:sub(#caret, #caret))
    assert.is_true(#line <= 78)
  end)

  it("does not include swizzles as the Python DSL prints them", function()
    assert.equal("Sw<3,4,3> o 0 o (8,64):(64,1)",
                 tostring(L "S<3,4,3> o 0 o (8,64):(64,1)"))
  end)
end)

describe("tables", function()
  it("have no holes, and no other keys", function()
    raises("entry 2 of a tuple of 3 is nil", cute.make_layout, {8, nil, 4})
    raises("has the key 3", cute.make_layout, {8, [3] = 4})
    raises("has the key x", cute.make_layout, {8, 4, x = 3})
    raises("has the key a", cute.make_layout, {a = 1})
    raises("a tiler is a list such as", cute.logical_divide, L "8:1",
           {2, x = 1})
    raises("entry 1 of a tiler of 2 is nil", cute.composition, L "(4,4):(1,4)",
           {nil, 2})
    assert.equal("(8,4):(1,8)", tostring(cute.make_layout(table.pack(8, 4))))
  end)

  it("name modes for functions that take them", function()
    assert.same({1, 3}, cute.select({1, 2, 3}, {mode = {0, 2}}))
    assert.equal(8, cute.size(L "(4,8):(1,4)", {mode = {1}}))
  end)

  it("that hold themselves end in an error", function()
    local t = {}
    t[1] = t
    for _, f in ipairs {cute.make_layout, cute.tuple, cute.size,
                        cute.flatten} do
      raises("[limit]", f, t)
    end
    raises("[limit]", cute.transform_leaf, function(x) return x end, t)
    raises("[limit]", cute.logical_divide, L "8:1", t)
    raises("[limit]", cute.ceil_div, 8, t)
  end)
end)

describe("foreign values", function()
  it("are named", function()
    raises("not a FILE*", cute.make_layout, {io.stdout})
    raises("got a FILE*", cute.composition, io.stdout, L "8:1")
    raises("not \"a\"", L "8:1", "a")
    raises("not \"4\"", cute.composition, L "(4,4):(1,4)", {"4"})
    raises("not true", L "(8,2):(1,8)", 1, true)
    raises("a layout has no field 'coalesc'", function()
      return L "8:1":coalesc()
    end)
    raises("a layout has no field 1", function() return L "8:1"[1] end)
  end)

  it("of callbacks are named, too", function()
    raises("find_if takes a function and a tuple", cute.find_if, {1}, 1)
    raises("returned a number for 1, not a tuple", cute.filter_tuple, {1, 2},
           function(x) return x end)
    raises("differ in nesting", cute.transform_leaf,
           function(a, b) return a * b end, {1, {2, 3}}, {4, {5}})
    assert.equal(1, cute.find_if(function(x) return x == 2 end, {1, 2}))
    assert.same({{1}, {2}},
                cute.filter_tuple(function(x) return {{x}} end, {1, 2}))
  end)
end)

describe("extents", function()
  it("are not negative", function()
    raises("not -3 in (-3)", cute.make_layout, {-3})
    raises("the cotarget 0 for the complement of 8:1", cute.complement,
           L "8:1", 0)
    raises("the cotarget (2,-1)", cute.complement, L "8:1", {2, -1})
    raises("must be positive, not 0", cute.logical_divide, L "8:1", 0)
    raises("0 to 2047 modes, not -1", cute.repeat_as_tuple, 1, -1)
  end)

  it("stay below 2^60, and so do their products", function()
    local big = 1 << 40
    raises("[overflow]", cute.make_layout, 1 << 61)
    raises("[overflow]", cute.make_layout, {big, big, 2})
    raises("size: 1099511627776 * 1099511627776 does not fit", function()
      return (cute.size(cute.make_layout({big, big}, {1, 1})))
    end)
    raises("[overflow]", cute.cosize, L "(1073741824,2):(1073741824,1)"
           :composition(2):append(L "1073741824:1073741824"))
  end)
end)

describe("cute.assume", function()
  it("checks plain integers", function()
    assert.equal(8, cute.assume(8, 4))
    assert.equal(8, cute.assume(8, {div = 4}))
    assert.equal(8, cute.assume(8, 0, 9, 4))
    raises("7 is not divisible by 4", cute.assume, 7, 4)
    raises("10 is not in [0,9] and divisible by 5", cute.assume, 10, 0, 9, 5)
    raises("must be a positive integer, not 0", cute.assume, 8, 0)
    raises("integer or traced value expected", cute.assume, "x", 2)
  end)

  it("adds facts about traced integers", function()
    local known = {}
    local k = cute.kernel("k", function(A, n)
      known[1] = cute.get_divisibility(cute.assume(n, 4))
      known[2] = cute.get_divisibility(cute.assume(n, 6))
      A:set(0, n)
    end)
    local A = cute.zeros({1}, cute.i32)
    k(A, 24):launch {grid = 1, block = 1, device = "sim"}
    assert.same({4, 12}, known)
    assert.equal(24, A(0))
  end)
end)

describe("negative strides", function()
  -- Returns the sorted values of a layout.
  local function values(l)
    local list = {}
    for i = 0, cute.size(l) - 1 do list[i + 1] = l(i) end
    table.sort(list)
    return list
  end

  it("have a complement that is disjoint, ordered and complete", function()
    for _, s in ipairs {"4:-1", "(2,2):(-1,4)", "(3,2):(-2,-12)", "8:-3",
                        "(2,(2,3)):(-24,(1,-4))"} do
      local a = L(s)
      local c = cute.complement(a, 96)
      local seen, last = {}, -1
      for j = 0, cute.size(c) - 1 do
        assert.is_true(c(j) > last, s)
        last = c(j)
        for i = 0, cute.size(a) - 1 do
          assert.is_nil(seen[a(i) + c(j)], s)
          seen[a(i) + c(j)] = true
        end
      end
      assert.is_true(cute.size(a) * cute.size(c) >= 96 // 3, s)
    end
    raises("the modes overlap", cute.complement, L "(4,4):(-1,2)", 32)
  end)

  it("may be in the block of a product", function()
    assert.equal("(8,2):(-1,8)", tostring(cute.logical_product(L "8:-1", 2)))
    local t = cute.tile_to_shape(L "(2,2):(-2,-1)", {4, 4})
    assert.equal(16, #values(t))
    for i, v in ipairs(values(t)) do assert.equal(i - 4, v) end
  end)

  it("are ordered by their magnitude", function()
    assert.equal("(4,8):(8,1)",
                 tostring(cute.make_layout_like(L "(4,8):(-8,-1)")))
    raises("stride -1 leads below offset 0", cute.left_inverse, L "8:-1")
  end)
end)

describe("common layouts of swizzled ones", function()
  it("are as long as the swizzles agree", function()
    local l = L "(8,8):(1,8)"
    local a = cute.composition(cute.make_swizzle(2, 1, 3), l)
    local b = cute.composition(cute.make_swizzle(2, 2, 3), l)
    assert.equal("64:1", tostring(cute.max_common_layout(a, a)))
    assert.equal("2:1", tostring(cute.max_common_layout(a, b)))
    for _, pair in ipairs {{a, a}, {a, b}, {a, l}, {l, b}} do
      assert.equal(cute.max_common_vector(pair[1], pair[2]),
                   cute.size(cute.max_common_layout(pair[1], pair[2])))
    end
  end)
end)

describe("drawing", function()
  local PLAIN = "\27%[[%d;]*m"

  it("in colour has the same text", function()
    for _, l in ipairs {L "(4,8):(8,1)", L "6:2", L "(2,2):(1@0,1@1)",
                        L "Sw<1,0,1> o 0 o (2,4):(4,1)"} do
      local plain, coloured = draw.layout_text(l), draw.layout_text(l, true)
      assert.is_nil(plain:find "\27")
      assert.equal(plain, (coloured:gsub(PLAIN, "")))
      assert.equal(not cute.coshape or type(cute.coshape(l)) ~= "table",
                   coloured:find "\27" ~= nil)
    end
    local t = cute.tensor({{0, -1.5}, {2, 1 / 0}}, cute.f32)
    local coloured = draw.tensor_text(t, true)
    assert.equal(draw.tensor_text(t), (coloured:gsub(PLAIN, "")))
    assert.equal("\27[2m   0.00e+00\27[0m\27[31m  -1.50e+00\27[0m",
                 coloured:match "\n([^\n]+)\n")
  end)

  it("gives one background to offsets that are equal modulo 8", function()
    local back = {}
    for code, v in draw.layout_text(L "(4,8):(8,1)", true)
      :gmatch "48;5;(%d+)m%s*(%d+)" do
      v = tonumber(v) % 8
      assert.equal(back[v] or code, code)
      back[v] = code
    end
    assert.is_not.equal(back[0], back[1])
  end)

  it("is plain in a pipe, coloured on a terminal", function()
    local program = os.getenv "CUTELUA"
    if not program then pending "needs the program" return end
    local code = [[require('cute').print_layout(]]
      .. [[require('cute').layout '(2,2):(1,2)')]]
    local pipe = io.popen(('%s -e "%s"'):format(program, code))
    assert.is_nil(pipe:read "a":find "\27")
    pipe:close()
    if not os.execute "command -v script >/dev/null 2>&1" then return end
    for _, case in ipairs {{"TERM=xterm", true}, {"TERM=dumb", false},
                           {"TERM=xterm NO_COLOR=1", false}} do
      pipe = io.popen(([[%s script -qec "%s -e \"%s\"" /dev/null]])
        :format(case[1], program, code))
      assert.equal(case[2], pipe:read "a":find "\27%[30" ~= nil, case[1])
      pipe:close()
    end
  end)
end)
-- SPDX-License-Identifier: MIT
