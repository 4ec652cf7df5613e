local cute = require "cute"
local _, X = cute._, cute.X

-- What a call raises, without position.
local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return (tostring(err):gsub("^[^\n]-:%d+: ", ""))
end

local function raises(want, f, ...)
  local got = message(f, ...)
  assert.is_truthy(got:find(want, 1, true),
    ("%q expected in %q"):format(want, got))
end

-- A host tensor of integers: element of offset k is k.
local function counting(layout, dtype)
  local t = cute.zeros(cute.cosize(layout), dtype or cute.i32)
  for k = 0, cute.cosize(layout) - 1 do t[k] = k end
  return cute.make_tensor(t.iterator, layout)
end

describe("host tensors", function()
  it("hold nested tables, last index fastest", function()
    local t = cute.tensor({{1, 2, 3}, {4, 5, 6}}, cute.f32)
    assert.equal("(2,3):(3,1)", tostring(t.layout))
    for i = 0, 1 do
      for j = 0, 2 do
        assert.equal(3 * i + j + 1, t(i, j))
        assert.equal(3 * i + j + 1, t[{i, j}])
      end
    end
    assert.equal(2, t[2])  -- one-dimensional coordinates are colexicographic
    assert.equal("(4):(1)", tostring(cute.tensor({1, 2, 3, 4}).layout)
      :gsub("^4:1$", "(4):(1)"))
  end)

  it("refuse ragged and empty tables", function()
    raises("ragged", cute.tensor, {{1, 2}, {3}})
    raises("ragged", cute.tensor, {{1, 2}, 3})
    raises("empty", cute.tensor, {})
    raises("cannot be a string", cute.tensor, {1, "x"})
  end)

  it("round to the element type", function()
    local t = cute.zeros({4}, cute.bf16)
    t[0], t[1], t[2] = 1.0, 1 + 2 ^ -9, 3.14159
    assert.equal(1.0, t[0])
    assert.equal(1.0, t[1])
    assert.equal(3.140625, t[2])
    local e = cute.zeros({2}, cute.e4m3)
    e[0] = 1000
    assert.equal(448.0, e[0])
    local i = cute.zeros({2}, cute.i8)
    i[0], i[1] = -5, 300
    assert.equal(-5, i[0])
    assert.equal(127, i[1])
    local b = cute.zeros({2}, "boolean")
    b[0] = true
    assert.is_true(b[0])
    assert.is_false(b[1])
  end)

  it("pack elements of less than a byte", function()
    local t = cute.zeros({8}, cute.i4)
    for k = 0, 7 do t[k] = k - 4 end
    for k = 0, 7 do assert.equal(k - 4, t[k]) end
  end)

  it("keep 64-bit integers whole", function()
    local t = cute.zeros({2}, cute.i64)
    t[0], t[1] = math.maxinteger, math.mininteger
    assert.equal(math.maxinteger, t[0])
    assert.equal(math.mininteger, t[1])
  end)

  it("share their memory with slices", function()
    local t = cute.zeros({4, 6}, cute.i32)
    local row = t(2, _)
    for j = 0, 5 do row[j] = 10 + j end
    for i = 0, 3 do
      for j = 0, 5 do assert.equal(i == 2 and 10 + j or 0, t(i, j)) end
    end
    row:fill(7)
    assert.equal(7, t(2, 5))
    assert.equal(0, t(3, 0))
  end)

  it("are iterated in colexicographic order", function()
    local t = counting(cute.make_layout({2, 3}, {3, 1}))
    local seen = {}
    for i, v in t:elements() do seen[i + 1] = v end
    assert.same({0, 3, 1, 4, 2, 5}, seen)
  end)

  it("tell what they are", function()
    local t = cute.zeros({4, 6}, cute.bf16)
    assert.equal("ptr[bf16,host] o (4,6):(6,1)", tostring(t))
    assert.equal("ptr[bf16,host]+12 o (6):(1)",
      (tostring(t(2, _)):gsub("o 6:1", "o (6):(1)")))
    assert.equal(cute.bf16, t.element_type)
    assert.equal("host", t.memspace)
    assert.same({4, 6}, t.shape)
    assert.same({6, 1}, t.stride)
    assert.equal(24, cute.size(t))
    raises("no field 'foo'", function() return t.foo end)
  end)

  it("refuse coordinates that do not fit", function()
    local t = cute.zeros({4, 6}, cute.f32)
    raises("outside of the 4 elements in mode 0", function() return t(4, 0) end)
    raises("outside of the 24 elements", function() return t[24] end)
    raises("is negative in mode 1", function() return t(0, -1) end)
    raises("has 3 modes instead of 2", function() return t(0, 0, 0) end)
    raises("mode 1 of the coordinate is nil", function() return t(0, nil) end)
    raises("(4,6):(6,1)", function() return t(4, 0) end)
    raises("outside of the 6 elements in mode 1",
      function() return t(_, 6) end)
    raises("[bad-argument]", function() t[{0, 6}] = 1 end)
  end)

  it("are views of buffers that are large enough", function()
    local b = cute.zeros({8}, cute.f32)
    raises("too small", function()
      cute.make_tensor(
        require "cute.core".buffer("f32", 8), cute.make_layout({3, 3}))
    end)
    raises("outside of the buffer", function()
      return cute.make_tensor(b.iterator, cute.make_layout({3, 3}))(2, 2)
    end)
  end)
end)

describe("local_tile", function()
  it("is element bm * BM + i, bn * BN + j", function()
    local t = counting(cute.make_layout({12, 20}, {20, 1}))
    for bm = 0, 2 do
      for bn = 0, 3 do
        local g = cute.local_tile(t, {4, 5}, {bm, bn})
        assert.same({4, 5}, g.shape)
        for i = 0, 3 do
          for j = 0, 4 do
            assert.equal((4 * bm + i) * 20 + 5 * bn + j, g(i, j))
          end
        end
      end
    end
  end)

  it("keeps modes of the coordinate that are `_`", function()
    local t = counting(cute.make_layout({12, 20}, {20, 1}))
    local g = cute.local_tile(t, {4, 5}, {1, _})
    assert.same({4, 5, 4}, g.shape)
    assert.equal((4 + 3) * 20 + 5 * 2 + 1, g(3, 1, 2))
  end)

  it("drops modes of tiler and coordinate by the projection", function()
    local mA = counting(cute.make_layout({12, 20}, {20, 1}))
    local mB = counting(cute.make_layout({14, 20}, {20, 1}))
    local mC = counting(cute.make_layout({12, 14}, {14, 1}))
    local tiler, coord = {4, 7, 5}, {2, 1, _}
    local gA = cute.local_tile(mA, tiler, coord, {1, X, 1})
    local gB = cute.local_tile(mB, tiler, coord, {X, 1, 1})
    local gC = cute.local_tile(mC, tiler, coord, {1, 1, X})
    assert.same({4, 5, 4}, gA.shape)
    assert.same({7, 5, 4}, gB.shape)
    assert.same({4, 7}, gC.shape)
    assert.equal((8 + 1) * 20 + 5 * 3 + 2, gA(1, 2, 3))
    assert.equal((7 + 6) * 20 + 5 * 3 + 2, gB(6, 2, 3))
    assert.equal((8 + 3) * 14 + 7 + 6, gC(3, 6))
  end)

  it("agrees with indexing for random shapes and strides", function()
    local seed = 1
    local function rnd(n)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return seed // 65536 % n
    end
    for case = 1, 200 do
      seed = seed + case
      local B = {1 + rnd(4), 1 + rnd(4)}
      local R = {1 + rnd(4), 1 + rnd(4)}
      local M, N = B[1] * R[1], B[2] * R[2]
      local stride = rnd(2) == 0 and {N + rnd(3), 1} or {1, M + rnd(3)}
      local t = counting(cute.make_layout({M, N}, stride))
      local bm, bn = rnd(R[1]), rnd(R[2])
      local i, j = rnd(B[1]), rnd(B[2])
      local want = t(bm * B[1] + i, bn * B[2] + j)
      assert.equal(want, cute.local_tile(t, B, {bm, bn})(i, j))
      assert.equal(want, cute.local_tile(t, B, {_, bn})(i, j, bm))
      assert.equal(want, cute.local_tile(t, B, {_, _})(i, j, bm, bn))
      assert.equal(want, cute.local_tile(t, B, bm + R[1] * bn)(i, j))
      assert.equal(want, cute.outer_partition(t, B, {i, j})(bm, bn))
    end
  end)

  it("refuses what does not fit", function()
    local t = cute.zeros({12, 20}, cute.f32)
    raises("more modes than the tensor", cute.local_tile, t, {4, 5, 6},
      {0, 0, 0})
    raises("does not have the 2 modes", cute.local_tile, t, {4, 5}, {0, 0},
      {1, X, 1})
    raises("outside of the 3 elements", cute.local_tile, t, {4, 5}, {3, 0})
  end)
end)

describe("local_partition", function()
  it("gives thread idx every element of its place in the tile", function()
    local t = counting(cute.make_layout({8, 12}, {1, 8}))
    local thr = cute.make_layout({2, 4}, {4, 1})
    local seen = {}
    for idx = 0, 7 do
      local p = cute.local_partition(t, thr, idx)
      assert.same({4, 3}, p.shape)
      local m, n = idx // 4, idx % 4
      for i = 0, 3 do
        for j = 0, 2 do
          assert.equal(t(m + 2 * i, n + 4 * j), p(i, j))
          seen[p(i, j)] = true
        end
      end
    end
    for k = 0, 95 do assert.is_true(seen[k]) end
  end)
end)

describe("identity tensors", function()
  it("give the coordinate, through tiles and slices too", function()
    local c = cute.make_identity_tensor {12, 20}
    assert.equal("(0,0) o (12,20):(1@0,1@1)", tostring(c))
    assert.same({3, 7}, c(3, 7))
    local g = cute.local_tile(c, {4, 5}, {2, _})
    for i = 0, 3 do
      for j = 0, 4 do
        for k = 0, 3 do assert.same({8 + i, 5 * k + j}, g(i, j, k)) end
      end
    end
    assert.same({8, 10}, g(_, _, 2)(0, 0))
    assert.same({11, 3}, cute.domain_offset({11, 3}, c)(0, 0))
  end)
end)

describe("domain_offset", function()
  it("moves where element 0 is", function()
    local t = counting(cute.make_layout({8, 8}, {8, 1}))
    local d = cute.domain_offset({2, 3}, t)
    assert.equal(t(2, 3), d(0, 0))
    assert.equal(t(5, 4), d(3, 1))
  end)
end)

describe("marks", function()
  it("check what they promise", function()
    local t = cute.zeros({64, 96}, cute.bf16)
    assert.equal(t, t:mark_layout_dynamic())
    t:mark_layout_dynamic {leading_dim = 1, divisibility = 32}
    raises("does not have stride 1", t.mark_layout_dynamic, t,
      {leading_dim = 0})
    raises("extent 96 of mode 1 is not a multiple of 64",
      t.mark_layout_dynamic, t, {divisibility = {64, 64}})
    raises("no option 'leading'", t.mark_layout_dynamic, t, {leading = 1})
    t:mark_compact_shape_dynamic {mode = 1, divisibility = 16}
    raises("needs a mode of 0 to 1", t.mark_compact_shape_dynamic, t, {})
    local s = cute.make_tensor(t.iterator, cute.make_layout({8, 8}, {1, 1}))
    raises("both have stride 1", s.mark_layout_dynamic, s)
  end)
end)

describe("print_tensor", function()
  it("shows rows, and matrices of further modes below each other", function()
    local draw = require "cute.draw"
    local t = counting(cute.make_layout({2, 3, 2}, {1, 2, 6}))
    assert.equal(table.concat({
      "ptr[i32,host] o (2,3,2):(1,2,6):",
      "    0    2    4",
      "    1    3    5",
      "---------------",
      "    6    8   10",
      "    7    9   11", ""}, "\n"), draw.tensor_text(t))
  end)
end)
