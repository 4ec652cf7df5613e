-- Tests IntTuples as Lua tables. Plain Lua computes the expected values for
-- random tuples. docs/layouts.md has one example of each function.
local cute = require "cute"
local oracle = require "spec.layout.oracle"
local support = require "spec.support"
local raises = support.raises

local function map(f, t)
  if type(t) ~= "table" then return f(t) end
  local r = {}
  for i, x in ipairs(t) do r[i] = map(f, x) end
  return r
end

local function each(n, f)
  local r = oracle.random(n)
  for _ = 1, n do f(r) end
end

describe("an IntTuple", function()
  it("prints, compares and is a plain table", function()
    local t = cute.tuple {1, {2, 3}}
    assert.equal("(1,(2,3))", tostring(t))
    assert.equal(2, #t)
    assert.is_true(t == cute.tuple {1, {2, 3}})
    assert.is_false(t == cute.tuple {1, {2, 4}})
    assert.equal("t: (1,(2,3))", "t: " .. t)
    assert.is_nil(t.x)
  end)

  it("adds up like coordinates", function()
    local t = cute.tuple {1, {2, 3}} + cute.tuple {10, {20}}
    assert.equal("(11,(22,3))", tostring(t))
    assert.equal("(1,(2,5))", tostring(cute.tuple {1, {2, 3}} +
                                       2 * cute.E(1, 1)))
    raises("do not match", function() return cute.tuple {1} + 5 end)
  end)

  it("folds and maps leaf by leaf", function()
    each(300, function(r)
      local t = r:shape(3)
      local list = oracle.leaves(t)
      local sum, most, least, product = 0, list[1], list[1], 1
      for _, x in ipairs(list) do
        sum, product = sum + x, product * x
        most, least = math.max(most, x), math.min(least, x)
      end
      assert.equal(sum, cute.sum(t))
      assert.equal(most, cute.max(t))
      assert.equal(least, cute.min(t))
      assert.equal(product, cute.size(t))
      assert.same(list, cute.flatten_to_tuple(t))
      assert.same(t, cute.unflatten(list, t))
      assert.same(map(function() return 7 end, t), cute.repeat_like(t, 7))
      assert.same(map(function(x) return x + 1 end, t),
                  cute.transform_leaf(function(x) return x + 1 end, t))
      assert.is_true(cute.congruent(t, cute.repeat_like(t, 1)))
      assert.is_true(cute.compatible(cute.size(t), t))
      assert.is_true(cute.weakly_congruent(1, t))
    end)
  end)

  it("splits and combines coordinates", function()
    each(300, function(r)
      local shape = r:shape(3)
      local i = r:below(oracle.size(shape))
      local c = cute.idx2crd(i, shape)
      assert.same(oracle.coord(shape, i), c)
      assert.equal(i, cute.crd2idx(c, shape))
      local stride = r:strides(shape)
      assert.equal(oracle.eval(shape, stride, c),
                   cute.crd2idx(c, shape, stride))
      assert.equal(oracle.eval(shape, stride, i),
                   cute.crd2idx(i, shape, stride))
    end)
  end)

  it("steps through a shape in colexicographic order #long", function()
    each(60, function(r)
      local shape = r:shape(2)
      local c = cute.idx2crd(0, shape)
      for i = 0, oracle.size(shape) - 1 do
        assert.same(oracle.coord(shape, i), c)
        c = cute.increment_coord(c, shape)
      end
      -- At the index after the last one, the last leaf is its extent.
      assert.same(oracle.coord(shape, oracle.size(shape)), c)
    end)
  end)

  it("has compact strides in both directions and any order", function()
    each(200, function(r)
      local shape = r:shape(3)
      local left = cute.compact_col_major(shape)
      local list, cur = {}, 1
      for i, s in ipairs(oracle.leaves(shape)) do
        list[i] = s == 1 and 0 or cur
        cur = cur * s
      end
      assert.same(list, cute.flatten_to_tuple(left))
      assert.same(oracle.leaves(cute.compact_row_major(shape)),
                  oracle.leaves(cute.compact_order(shape, cute.LayoutRight)))
    end)
    assert.equal("(16,1,8)", tostring(cute.compact_order({4, 8, 2},
                                                         {2, 0, 1})))
  end)

  it("compares in three orders", function()
    each(400, function(r)
      local function coord()
        return {r:below(3), {r:below(3), r:below(2)}}
      end
      local a, b = coord(), coord()
      local x, y = oracle.leaves(a), oracle.leaves(b)
      local lex, colex, elem = false, false, true
      for i = 1, 3 do
        if x[i] ~= y[i] then lex = x[i] < y[i] break end
      end
      for i = 3, 1, -1 do
        if x[i] ~= y[i] then colex = x[i] < y[i] break end
      end
      for i = 1, 3 do elem = elem and x[i] < y[i] end
      assert.equal(lex, cute.lex_less(a, b))
      assert.equal(colex, cute.colex_less(a, b))
      assert.equal(elem, cute.elem_less(a, b))
      assert.equal(not lex, cute.lex_geq(a, b))
      assert.equal(not colex, cute.colex_geq(a, b))
      assert.equal(not elem, cute.elem_geq(a, b))
      assert.equal(cute.lex_less(b, a), cute.lex_gtr(a, b))
      assert.equal(not cute.elem_less(b, a), cute.elem_leq(a, b))
    end)
  end)
end)

describe("an IntTuple", function()
  it("divides", function()
    each(300, function(r)
      local a, b = 1 + r:below(64), 1 + r:below(16)
      local up = (a + b - 1) // b
      assert.equal(up, cute.ceil_div(a, b))
      assert.equal(up * b, cute.round_up(a, b))
      if a % b == 0 or b % a == 0 then
        assert.equal(up, cute.shape_div(a, b))
      else
        raises("neither of", cute.shape_div, a, b)
      end
    end)
  end)

  it("accepts any number of tuples", function()
    each(100, function(r)
      local n, rank, t, want = 2 + r:below(4), 1 + r:below(4), {}, {}
      for j = 1, rank do want[j] = {} end
      for i = 1, n do
        t[i] = {}
        for j = 1, rank do
          t[i][j] = r:shape(1)
          want[j][i] = t[i][j]
        end
      end
      assert.same(want, cute.zip(table.unpack(t)))
      assert.same(want, cute.zip(t))
      local seen = {}
      cute.filter_tuple(function(...)
        seen[#seen + 1] = {...}
        return {}
      end, table.unpack(t))
      assert.same(want, seen)
    end)
    local l = cute.layout
    assert.equal("((2,5,7),(3,6,8)):((1,8,1),(2,9,4))", tostring(cute.zip(
      l "(2,3):(1,2)", l "(5,6):(8,9)", l "(7,8):(1,4)")))
    raises("differ in rank", cute.zip, {1, 2}, {3, 4}, {5})
    raises("differ in rank", cute.filter_tuple, function() end, {1, 2}, {3})
  end)

  it("computes products of modes", function()
    each(200, function(r)
      local shape = r:shape(3)
      local modes = type(shape) == "table" and shape or {shape}
      local want = {}
      for i, s in ipairs(modes) do want[i] = oracle.size(s) end
      assert.same(want, cute.product_each(shape))
      assert.equal(oracle.size(shape), cute.coalesce(shape))
    end)
    assert.equal(1, cute.coalesce {})
    assert.equal("()", tostring(cute.product_each {}))
  end)

  it("rejects arguments that do not fit", function()
    raises("do not match", cute.shape_div, {4, 4}, {2, 2, 2})
    raises("do not match", cute.inner_product, {1, 2}, {1, {2}})
    raises("do not match", cute.elem_less, {1, 2}, 3)
    raises("do not match", cute.idx2crd, {1, 2}, 8)
    raises("division by zero", cute.ceil_div, 8, 0)
    raises("max of the empty tuple", cute.max, {})
    raises("unflatten: (1,2) has 2 modes", cute.unflatten, {1, 2}, {1, 1, 1})
    raises("no mode 3", cute.remove, {1, 2}, 3)
    raises("no position 4", cute.insert, {1, 2}, 4, 5)
    raises("has rank 3 already", cute.append, {1, 2, 3}, 0, 2)
    raises("names modes 0 to 63", cute.E, 99)
    raises("4 levels", cute.E, 0, 0, 0, 0, 0)
    raises("[overflow]", cute.size, {1 << 30, 1 << 30, 1 << 30})
    raises("is nil", cute.sum, {1, nil, 3})
  end)
end)

-- Functions that edit the modes of a tuple must treat a layout in the tuple as
-- a leaf, like a number.
describe("a tuple of layouts", function()
  local function numbered(r, depth, count)
    if depth == 0 or r:below(3) == 0 then
      count[1] = count[1] + 1
      return count[1]
    end
    local t = {}
    for i = 1, 1 + r:below(3) do t[i] = numbered(r, depth - 1, count) end
    return t
  end

  it("has its modes rearranged like any tuple #long", function()
    each(200, function(r)
      local t, count, layouts = {}, {0}, {}
      for i = 1, 2 + r:below(3) do t[i] = numbered(r, 2, count) end
      for i = 1, count[1] do
        local shape = r:shape(1)
        layouts[i] = r:below(3) > 0
                     and cute.make_layout(shape, r:compact(shape)) or i
      end
      layouts[77] = cute.layout "7:7"
      local function put(x)
        return map(function(k) return layouts[k] or k end, x)
      end
      local tiler, n = put(t), #t
      local calls = {
        {"get", r:below(n)}, {"select", r:below(n), r:below(n)},
        {"take", 0, 1 + r:below(n)}, {"group", 0, n}, {"flatten"},
        {"flatten_to_tuple"}, {"reverse"}, {"wrap"}, {"front"}, {"back"},
        {"append", 77}, {"prepend", 77}, {"replace", r:below(n), 77},
        {"insert", r:below(n), 77}, {"remove", r:below(n)}, {"get_leaves"},
        {"tuple"}, {"unwrap"}, {"repeat_as_tuple", 3}}
      for _, c in ipairs(calls) do
        local a = {table.unpack(c, 2)}
        local b = {table.unpack(a)}
        for k, v in ipairs(b) do if v == 77 then b[k] = layouts[77] end end
        local got = cute[c[1]](tiler, table.unpack(b))
        local want = put(cute[c[1]](t, table.unpack(a)))
        assert.equal(tostring(cute.tuple(want)), tostring(got), c[1])
        assert.is_true(cute.tuple(want) == cute.tuple(got))
      end
      local shape = map(function(x)
        return type(x) == "userdata" and x.shape or x
      end, tiler)
      assert.equal(tostring(cute.tuple(shape)), tostring(cute.shape(tiler)))
      for _, f in ipairs {"size", "rank", "depth", "product_each"} do
        assert.equal(tostring(cute[f](shape)), tostring(cute[f](tiler)))
      end
      assert.is_true(cute.is_static(tiler))
    end)
  end)

  it("is followed into its layouts", function()
    local t = {4, cute.layout "(2,(3,5)):(1,(2,6))"}
    assert.equal("5:6", tostring(cute.get(t, 1, 1, 1)))
    assert.equal(5, cute.size(t, 1, 1, 1))
    assert.equal("(4:2,(3,5:1))", tostring(cute.parse "(4:2,(3,5:1))"))
    assert.equal(1, cute.find({4, cute.layout "2:1"}, cute.layout "2:1"))
    raises("no mode 2 in (4,(2,(3,5)):(1,(2,6)))", cute.get, t, 2)
    raises("no mode 2 in (2,(3,5))", cute.get, t, 1, 2)
    raises("not layout (2,(3,5))", cute.sum, t)
    raises("not layout (2,(3,5))", cute.make_layout, t)
    local static
    cute.kernel("k", function(_, n)
      static = cute.is_static {2, cute.make_layout({n})}
    end)(cute.zeros({1}, cute.i32), 3):trace {block = 1}
    assert.is_false(static)
  end)
end)

describe("a basis", function()
  it("scales and sums", function()
    local e = cute.E(1)
    assert.equal("6@1", tostring(2 * e * 3))
    assert.equal("(5,6)", tostring(5 * cute.E(0) + 6 * e))
    assert.equal("(0,1)", tostring(0 * cute.E(0) + e))
    assert.is_true(e == cute.E(1))
    assert.is_false(e == cute.E(0))
    assert.equal(6, cute.basis_value(6 * e))
    assert.equal(1, cute.E())  -- without modes, E() is the number 1
  end)
end)
describe("cute.transform_apply", function()
  it("applies a function to all results of another", function()
    local function list(...) return {...} end
    local function sum(...)
      local s = 0
      for _, x in ipairs {...} do s = s + x end
      return s
    end
    local function double(x) return 2 * x end
    assert.equal(12, cute.transform_apply({1, 2, 3}, double, sum))
    assert.same({4, 6}, cute.transform_apply({1, 2}, {3, 4},
      function(x, y) return x + y end, list))
    assert.same({{1, 3, 5}}, cute.transform_apply({1}, {3}, {5}, list, list))
    assert.equal(14, cute.transform_apply(7, double, sum))  -- one mode
    raises("differ in rank", cute.transform_apply, {1, 2}, {3}, list, list)
    raises("tuples and two functions", cute.transform_apply, {1, 2}, list)
  end)
end)
-- SPDX-License-Identifier: MIT
