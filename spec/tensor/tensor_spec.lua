local cute = require "cute"
local support = require "spec.support"
local _, X = cute._, cute.X
local message, raises = support.message, support.raises

-- Returns a host tensor of integers: the element at offset k is k.
local function counting(layout, dtype)
  local t = cute.zeros(cute.cosize(layout), dtype or cute.i32)
  for k = 0, cute.cosize(layout) - 1 do t[k] = k end
  return cute.make_tensor(t.iterator, layout)
end

describe("host tensors", function()
  it("hold nested tables, with the last index fastest", function()
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

  it("reject tables with rows of different lengths", function()
    raises("ragged", cute.tensor, {{1, 2}, {3}})
    raises("ragged", cute.tensor, {{1, 2}, 3})
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
    i[0], i[1] = -5, 7.0
    assert.equal(-5, i[0])
    assert.equal(7, i[1])
    local b = cute.zeros({2}, "boolean")
    b[0] = true
    assert.is_true(b[0])
    assert.is_false(b[1])
  end)

  it("accept integers that fit, as kernels do", function()
    local core = require "cute.core"
    local ends = {i4 = {-8, 7}, u4 = {0, 15}, i8 = {-128, 127}, u8 = {0, 255},
                  i16 = {-32768, 32767}, u16 = {0, 65535},
                  i32 = {-(1 << 31), (1 << 31) - 1},
                  u32 = {-(1 << 31), (1 << 32) - 1}}
    for name, range in pairs(ends) do
      local t = cute[name] or name
      local x, b = cute.zeros({2}, t), core.buffer(name, 2)
      local stores = {
        function(v) x[0] = v end, function(v) x:fill(v) end,
        function(v) b[1] = v end, function(v) b:fill(v) end,
        function(v) return cute.full({2}, v, t) end,
        function(v) return cute.tensor({0, v}, t) end,
        function(v) return core.buffer_from(name, {v}) end,
        function(v)
          cute.kernel("k", function(o) o[0] = v end)(x):trace {block = 1}
        end}
      for i, store in ipairs(stores) do
        local kernel = i == #stores
        for _, v in ipairs {range[1], range[2], range[2] + 0.0} do store(v) end
        for _, v in ipairs {range[1] - 1, range[2] + 1, 1 << 40,
                            math.mininteger} do
          local text = support.message(function() store(v) end)
          assert.truthy(text:find(("%d does not fit in %s [type-mismatch]")
            :format(v, name), 1, true), text)
        end
        for _, v in ipairs {1.5, 1 / 0, 1e15, range[2] + 1.0} do
          local text = support.message(function() store(v) end)
          assert.truthy(text:find(("the number %g does not fit in %s%s")
            :format(v, name, kernel and ": write an"
              or " [type"), 1, true),
            text)
        end
        assert.truthy(support.message(function() store(0 / 0) end)
          :find("the number nan does not fit in " .. name, 1, true))
      end
      assert.equal(range[2], x(0))
    end
    support.raises("-1 does not fit in u8 [type-mismatch]", function()
      core.buffer("u8", 4):fill_int(1, -1, 5)
    end)
    support.raises("300 does not fit in i8 [type-mismatch]", function()
      core.buffer("i8", 4):fill_int(1, 0, 300)
    end)
    assert.same({2147483647, -2147483648, -1, 255}, {
      (1e10):to(cute.i32), (-1e10):to(cute.i32), (-1.9):to(cute.i32),
      (300.7):to(cute.u8)})
    support.raises("300 does not fit in i8", function()
      return (300):to(cute.i8), nil
    end)
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
end)

describe("host tensors", function()
  it("are filled whole, or not at all", function()
    local b = cute.zeros({8}, cute.f32)
    for _, text in ipairs {"(3,2):(1,6)", "9:1", "(2,2):(8,1)"} do
      local t = cute.make_tensor(b.iterator, cute.layout(text))
      raises("is outside of the buffer of 8", function() t:fill(1) end)
      for i = 0, 7 do assert.equal(0, b[i]) end
    end
    cute.make_tensor(b.iterator, cute.layout "(2,2):(4,1)"):fill(1)
    for i = 0, 7 do assert.equal(i % 4 < 2 and 1 or 0, b[i]) end
  end)

  it("are iterated in colexicographic order", function()
    local t = counting(cute.make_layout({2, 3}, {3, 1}))
    local seen = {}
    for i, v in t:elements() do seen[i + 1] = v end
    assert.same({0, 3, 1, 4, 2, 5}, seen)
  end)

  it("describe themselves", function()
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

  it("have elements at the offsets of their layout", function()
    local function of(text) return counting(cute.layout(text)) end
    local function backward(text)
      return cute.make_tensor(of "64:1".iterator + 63, cute.layout(text))
    end
    for _, t in ipairs {
        of "((3,4),5):((5,15),1)"(_, 2), of "(4,5,2):(1,0,4)", of "7:3",
        of "(7):(3)", of "(3,(2,2)):(4,(2,1))", of "(2,6):(6,1)"(1, _),
        backward "(4,5):(-1,-4)", of "S<2,0,3> o 0 o (8,8):(8,1)"} do
      local n, extent = cute.rank(t), {}
      for i = 1, n do extent[i] = cute.size(t, {i - 1}) end
      for at = 0, cute.size(t) - 1 do
        local c, rest = {}, at
        for i = 1, n do c[i], rest = rest % extent[i], rest // extent[i] end
        assert.equal(t[at], t(table.unpack(c)))
        assert.equal(t[0] + t.layout(at), t(table.unpack(c)))
      end
      for i = 1, n do
        for _, x in ipairs {-1, extent[i], 1 << 59} do
          local c = {}
          for j = 1, n do c[j] = j == i and x or 0 end
          local why = message(t, table.unpack(c))
          assert.matches(x < 0 and "negative" or "outside", why)
        end
      end
    end
    local t = cute.zeros({3}, cute.i32)
    for i = 0, 2 do t[i] = 10 + i end
    assert.same({10, 11, 12}, {t[{0}], t(1), t[2]})
    raises("coordinate", function() t[3] = 1 end)
  end)

  it("reject coordinates that do not fit", function()
    local t = cute.zeros({4, 6}, cute.f32)
    raises("outside of the 4 elements in mode 0", function() return t(4, 0) end)
    raises("coordinates count from 0", function() return t(4, 0) end)
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

  it("rejects arguments that do not fit", function()
    local t = cute.zeros({12, 20}, cute.f32)
    raises("more modes than the tensor", cute.local_tile, t, {4, 5, 6},
      {0, 0, 0})
    raises("does not have the 2 modes", cute.local_tile, t, {4, 5}, {0, 0},
      {1, X, 1})
    raises("outside of the 3 elements", cute.local_tile, t, {4, 5}, {3, 0})
  end)
end)

describe("local_partition", function()
  it("gives each thread the elements at its position in the tile", function()
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
  it("moves element 0", function()
    local t = counting(cute.make_layout({8, 8}, {8, 1}))
    local d = cute.domain_offset({2, 3}, t)
    assert.equal(t(2, 3), d(0, 0))
    assert.equal(t(5, 4), d(3, 1))
  end)
end)

describe("marks", function()
  it("are checked", function()
    local t = cute.zeros({64, 96}, cute.bf16)
    assert.equal(t, t:mark_layout_dynamic())
    t:mark_layout_dynamic {leading_dim = 1, divisibility = 32}
    raises("does not have stride 1", t.mark_layout_dynamic, t,
      {leading_dim = 0})
    raises("extent 96 of mode 1 is not a multiple of 64",
      t.mark_layout_dynamic, t, {divisibility = {64, 64}})
    raises("no option 'leading' (did you mean leading_dim?): there are "
           .. "leading_dim", t.mark_layout_dynamic, t, {leading = 1})
    t:mark_compact_shape_dynamic {mode = 1, divisibility = 16}
    raises("needs a mode of 0 to 1", t.mark_compact_shape_dynamic, t, {})
    local s = cute.make_tensor(t.iterator, cute.make_layout({8, 8}, {1, 1}))
    raises("both have stride 1", s.mark_layout_dynamic, s)
  end)
end)

-- Traces f with these tensors; returns the text of the IR.
local function ir(f, ...)
  return cute.kernel("k", f)(...):trace({block = 32}).ir
end

-- Returns how many moves of each width in bits a kernel has: {[bits] = count}.
local function moves(f, ...)
  local out = {}
  for bits in ir(f, ...):gmatch "copy (%d+) bits" do
    out[tonumber(bits)] = (out[tonumber(bits)] or 0) + 1
  end
  return out
end

local L = cute.make_layout

describe("copies of traced tensors", function()
  local function widths(dtype, src, dst)
    local t = cute.zeros(cute.cosize(src), dtype)
    return moves(function(m)
      local r = cute.make_rmem_tensor(dst, dtype)
      cute.autovec_copy(cute.make_tensor(m.iterator, src), r)
    end, t)
  end

  it("are as wide as both layouts allow, up to 128 bits", function()
    assert.same({[128] = 1}, widths(cute.bf16, L {8}, L {8}))
    assert.same({[128] = 4}, widths(cute.f32, L {16}, L {16}))
    assert.same({[64] = 3}, widths(cute.f32, L {6}, L {6}))
    assert.same({[32] = 5}, widths(cute.f32, L {5}, L {5}))
    assert.same({[128] = 2}, widths(cute.f64, L {4}, L {4}))
    -- Both sides have the same order, row-major or nested, so vectors have 128
    -- bits.
    assert.same({[128] = 4}, widths(cute.bf16, L({4, 8}, {8, 1}),
      L({4, 8}, {8, 1})))
    assert.same({[128] = 4}, widths(cute.bf16, L({4, {2, 4}}, {8, {4, 1}}),
      L({4, {2, 4}}, {8, {4, 1}})))
    -- The sides order their elements differently, so single elements are
    -- copied.
    assert.same({[16] = 32}, widths(cute.bf16, L({4, 8}, {8, 1}),
      L({4, 8}, {1, 4})))
    -- Pairs of elements are contiguous, as in an MMA's accumulators, so vectors
    -- have 32 bits.
    assert.same({[32] = 8}, widths(cute.bf16, L({{2, 2}, 4}, {{1, 64}, 8}),
      L({{2, 2}, 4}, {{1, 2}, 4})))
    -- An odd row pitch misaligns every second row, so single elements are
    -- copied.
    assert.same({[16] = 16}, widths(cute.bf16, L({8, 2}, {1, 9}),
      L {8, 2}))
  end)

  it("respect offsets and dynamic strides", function()
    local t = cute.zeros({16, 64}, cute.bf16)
    local function row(tile, at)
      return moves(function(m)
        local r = cute.make_rmem_tensor({8}, cute.bf16)
        local tid = cute.arch.thread_idx()
        cute.autovec_copy(cute.local_tile(cute.domain_offset({0, at},
          m)(tid, _), {tile}, {0}), r)
      end, t)
    end
    assert.same({[128] = 1}, row(8, 0))
    assert.same({[64] = 2}, row(8, 4))
    assert.same({[32] = 4}, row(8, 2))
    assert.same({[16] = 8}, row(8, 1))
    t:mark_layout_dynamic {divisibility = {1, 1}}
    assert.same({[16] = 8}, row(8, 0))
    t:mark_layout_dynamic {divisibility = {1, 4}}
    assert.same({[64] = 2}, row(8, 0))
    t:mark_layout_dynamic {divisibility = {1, 64}}
    assert.same({[128] = 1}, row(8, 0))
  end)

  it("respect the alignment of the memory", function()
    local function from(align)
      return moves(function()
        local s = cute.make_smem_tensor(cute.bf16, {8}, align)
        cute.autovec_copy(cute.make_rmem_tensor({8}, cute.bf16), s)
      end)
    end
    assert.same({[128] = 1}, from(16))
    assert.same({[64] = 2}, from(8))
    assert.same({[16] = 8}, from(2))
  end)

  it("respect what a loop adds to an offset", function()
    local function stepping(step)
      return moves(function(m)
        local r = cute.make_rmem_tensor({8}, cute.bf16)
        local p = cute.local_tile(m, {8}, {0})
        for _ in cute.range(4) do
          cute.autovec_copy(p, r)
          p = cute.domain_offset({step}, p)
        end
      end, cute.zeros({64}, cute.bf16))
    end
    assert.same({[128] = 1}, stepping(8))
    assert.same({[64] = 2}, stepping(4))
    assert.same({[16] = 8}, stepping(1))
  end)

  it("respect the swizzle's base", function()
    local function through(base)
      return moves(function()
        local s = cute.make_smem_tensor(cute.bf16, cute.composition(
          cute.make_swizzle(2, base, 3), L({8, 64}, {64, 1})))
        local r = cute.make_rmem_tensor({64}, cute.bf16)
        cute.autovec_copy(r, s(cute.arch.thread_idx(), _))
      end)
    end
    assert.same({[128] = 8}, through(3))
    assert.same({[64] = 16}, through(2))
    assert.same({[16] = 64}, through(0))
  end)
end)

describe("copies of traced tensors", function()
  it("move every element to its place, through swizzled memory", function()
    local atom = cute.composition(cute.make_swizzle(3, 3, 3),
      L({8, {8, 8}}, {8, {1, 64}}))
    local A, C = cute.zeros({64, 128}, cute.bf16),
      cute.zeros({128, 64}, cute.bf16)
    for i in A:elements() do A[i] = i % 251 end
    local k = cute.kernel("transpose", function(mA, mC)
      local tid = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.bf16,
        cute.tile_to_shape(atom, {64, 128}))                 -- (64,128)
      cute.autovec_copy(mA(tid, _), s(tid, _))
      cute.arch.sync_threads()
      for half = 0, 1 do
        local column = s(_, tid + 64 * half)                 -- (64)
        mC(tid + 64 * half, _):store(column:load())
      end
    end)
    k(A, C):launch {grid = 1, block = 64, device = "sim"}
    for i = 0, 63 do
      for j = 0, 127 do assert.equal(A(i, j), C(j, i)) end
    end
  end)

  it("agree with element-by-element moves for random layouts", function()
    local seed = 7
    local function rnd(n)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return seed // 65536 % n
    end
    -- Returns strides for these extents, in a random order and some with
    -- padding.
    local function strides(extents)
      local order, out, cur = {}, {}, 1
      for i = 1, #extents do table.insert(order, 1 + rnd(i), i) end
      for _, i in ipairs(order) do
        out[i] = cur
        cur = cur * extents[i] + (rnd(3) == 0 and 8 or 0)
      end
      return out
    end
    for _ = 1, 60 do
      local extents = {}
      for i = 1, 1 + rnd(3) do extents[i] = ({2, 3, 4, 8})[1 + rnd(4)] end
      local src = L(extents, strides(extents))
      local dst = L(extents, strides(extents))
      local n, dtype = cute.size(src), ({cute.bf16, cute.f32, cute.u8})[
        1 + rnd(3)]
      local shared = L(extents, strides(extents))
      if rnd(2) == 0 then
        shared = cute.composition(cute.make_swizzle(2, rnd(4), 2), shared)
      end
      local at = 4 * rnd(3)
      local A = cute.zeros(cute.cosize(src) + at, dtype)
      local C = cute.zeros(cute.cosize(dst), dtype)
      for i = 0, cute.size(A) - 1 do A[i] = i % 251 end
      local k = cute.kernel("moves", function(mA, mC)
        local s = cute.make_smem_tensor(dtype, shared)
        local r = cute.make_rmem_tensor(L(extents), dtype)
        local t = cute.make_rmem_tensor(L(extents), dtype)
        cute.autovec_copy(cute.make_tensor(mA.iterator + at, src), r)
        cute.autovec_copy(r, s)
        t:store(s:load())
        cute.autovec_copy(t, cute.make_tensor(mC.iterator, dst))
      end)
      k(A, C):launch {grid = 1, block = 1, device = "sim"}
      for i = 0, n - 1 do
        assert.equal(A[src(i) + at], C[dst(i)],
          ("%s -> %s -> %s"):format(src, shared, dst))
      end
    end
  end)

  it("are guarded by a predicate tensor", function()
    local A, C = cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32)
    for i = 0, 63 do A[i] = i + 1 end
    local k = cute.kernel("guarded", function(mA, mC)
      local tid = cute.arch.thread_idx()
      local a, c = cute.local_tile(mA, {4}, {tid}),
        cute.local_tile(mC, {4}, {tid})
      local p = cute.make_rmem_tensor({4}, "boolean")
      for i = 0, 3 do p[i] = (tid * 4 + i):lt(41) end
      cute.copy_if(p, a, c)
    end)
    k(A, C):launch {grid = 1, block = 16, device = "sim"}
    for i = 0, 63 do assert.equal(i < 41 and i + 1 or 0, C[i]) end
  end)

  it("reject arguments that do not fit", function()
    local t = cute.zeros({16, 64}, cute.bf16)
    raises("the source has 8 elements, the destination 4", ir, function(m)
      cute.autovec_copy(cute.local_tile(m, {1, 8}, {0, 0}),
        cute.make_rmem_tensor({4}, cute.bf16))
    end, t)
    raises("copy of bf16 elements to f32 elements", ir, function(m)
      cute.autovec_copy(cute.local_tile(m, {1, 8}, {0, 0}),
        cute.make_rmem_tensor({8}, cute.f32))
    end, t)
    t:mark_layout_dynamic()
    raises("[needs-static]", ir, function(m) m(0, _):load() end, t)
  end)
end)

describe("traced tensors", function()
  it("keep their elements through stores and loads", function()
    local A, C = cute.zeros({32}, cute.f32), cute.zeros({32}, cute.f32)
    for i = 0, 31 do A[i] = i * i end
    local k = cute.kernel("elements", function(mA, mC)
      local tid = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, {32})
      s[31 - tid] = mA[tid]
      cute.arch.sync_threads()
      mC:set(tid, s(tid) + 0.5)
    end)
    k(A, C):launch {grid = 1, block = 32, device = "sim"}
    for i = 0, 31 do assert.equal((31 - i) ^ 2 + 0.5, C[i]) end
  end)

  it("give coordinates that predicates are made of", function()
    local C = cute.zeros({8, 32}, cute.i32)
    local k = cute.kernel("coordinates", function(mC)
      local tid = cute.arch.thread_idx()
      local id = cute.make_identity_tensor {8, 32}
      local mine, c = id(_, tid), mC(_, tid)
      for i = 0, 7 do
        local at = mine(i)
        c[i] = at[1] * 100 + at[2]
      end
    end)
    k(C):launch {grid = 1, block = 32, device = "sim"}
    for i = 0, 7 do
      for j = 0, 31 do assert.equal(i * 100 + j, C(i, j)) end
    end
  end)

  it("accept only values of their type", function()
    raises("[type-mismatch]", ir, function()
      local r = cute.make_rmem_tensor({4}, cute.bf16)
      r[0] = cute.arch.thread_idx()
    end)
    raises("convert it with :to(cute.bf16)", ir, function()
      local r = cute.make_rmem_tensor({4}, cute.bf16)
      r:store(cute.full({4}, 0, cute.f32))
    end)
  end)

  it("print the budget if shared memory exceeds it", function()
    local got = message(ir, function()
      cute.make_smem_tensor(cute.f32, {128, 128})
      cute.make_smem_tensor(cute.bf16, {128, 1024})
    end)
    assert.is_truthy(got:find("[smem-budget]", 1, true))
    assert.is_truthy(got:find("327680 bytes", 1, true))
    assert.is_truthy(got:find("65536 bytes", 1, true))
    assert.is_truthy(got:find("262144 bytes", 1, true))
    assert.is_truthy(got:find("227 KiB", 1, true))
    local p = cute.kernel("large", function()
      cute.make_smem_tensor(cute.f32, {128, 256})[0] = 1.0
    end)():trace {block = 32}
    p:cuda "sm_80"
    raises("[smem-budget]", p.cuda, p, "sm_75")
    raises("64 KiB", p.cuda, p, "sm_75")
  end)

  it("are valid only in their kernel and loop", function()
    local kept
    ir(function() kept = cute.make_rmem_tensor({4}, cute.f32) end)
    raises("[foreign-value]", function() return kept:load() end)
    raises("[foreign-value]", ir, function() return kept:load() end)
    assert.equal("ptr[f32,rmem]", tostring(kept):match "^%S+")
    raises("[out-of-region]", ir, function()
      local held
      for k in cute.range(8) do
        held = cute.make_rmem_tensor({4}, cute.f32)
        held[0] = k:to(cute.f32)
      end
      held:fill(0)
    end)
  end)

  it("may remain in a local after their branch", function()
    local text = ir(function(m)
      local kept
      cute.when(cute.arch.thread_idx():lt(4), function()
        kept = cute.make_rmem_tensor({4}, cute.f32)
        kept:fill(1)
        m[0] = kept[0]
      end)
      m[1] = 2.0
    end, cute.zeros({4}, cute.f32))
    assert.is_truthy(text:find("fill 4", 1, true))
  end)

  it("can be viewed with another type", function()
    local A, C = cute.zeros({64}, cute.bf16), cute.zeros({32}, cute.u32)
    for i = 0, 63 do A[i] = i - 20 end
    local k = cute.kernel("recast", function(mA, mC)
      local tid = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({2}, cute.bf16)
      cute.autovec_copy(cute.local_tile(mA, {2}, {tid}), r)
      mC[tid] = cute.recast_tensor(r, cute.u32)[0]
    end)
    k(A, C):launch {grid = 1, block = 32, device = "sim"}
    local function bits(x) return string.unpack("I4", string.pack("f", x)) end
    for i = 0, 31 do
      assert.equal(bits(A[2 * i]) >> 16 | bits(A[2 * i + 1]), C[i])
    end
  end)

  it("are made only inside a kernel, host tensors only outside", function()
    raises("[not-tracing]", cute.make_rmem_tensor, {4}, cute.f32)
    raises("[not-tracing]", cute.make_smem_tensor, cute.f32, {4})
    raises("[inside-kernel]", ir, function() cute.zeros({4}, cute.f32) end)
    local h = cute.zeros({4}, cute.f32)
    raises("[inside-kernel]", ir, function() h[0] = 1 end)
    raises("as an argument", ir,
      function() return h[cute.arch.thread_idx()] end)
  end)
end)

describe("traced tensors", function()
  it("may read host tensors at constant coordinates", function()
    local h = cute.tensor({0.5, 1.5}, cute.f32)
    local C = cute.zeros({32}, cute.f32)
    local k = cute.kernel("constants", function(mC)
      mC[cute.arch.thread_idx()] = h[1]
    end)
    k(C):launch {grid = 1, block = 32, device = "sim"}
    assert.equal(1.5, C[7])
  end)

  it("are filled", function()
    local C = cute.zeros({32, 6}, cute.f32)
    local k = cute.kernel("fill", function(mC)
      local row = mC(cute.arch.thread_idx(), _)
      local r = cute.make_rmem_tensor_like(row)
      r:fill(2.5)
      row:store(r:load())
    end)
    k(C):launch {grid = 1, block = 32, device = "sim"}
    for i, v in C:elements() do assert.equal(2.5, v, i) end
  end)
end)

describe("the elements after an iterator", function()
  it("have its distance as their coordinate, like p[i] in C++", function()
    local t = counting(cute.make_layout {8})
    local p = t.iterator + 2
    assert.same({1, 2, 7}, {p[-1], p(0), p[5]})
    p[3], p[-2] = 50, 10
    p:set(4, 60)
    assert.same({50, 10, 60}, {t[5], t[0], t[6]})
    raises({"element 8 is outside of the buffer of 8 [bad-argument]"},
           function() return p[6] end)
    raises("element -1 is outside of the buffer of 8", function()
      p[-3] = 0
    end)
    raises("coordinate (1,2) of the tensor has 2 modes instead of 1",
           function() return p[{1, 2}] end)
    assert.equal("1:0", tostring(p(_).layout))
  end)

  it("have it in kernels, too, in each kind of memory", function()
    local k = cute.kernel("k", function(x, y)
      local t = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, {64})
      local r = cute.make_rmem_tensor({4}, cute.i32)
      s.iterator[63 - t] = x.iterator[t]
      cute.arch.sync_threads()
      for i in cute.range(4) do r.iterator[i] = s.iterator[t] + i end
      (y.iterator + 64)[t - 64] = r.iterator(3) * 2
    end)
    local x, y = counting(cute.make_layout {64}), cute.zeros({64}, cute.i32)
    k(x, y):launch {grid = 1, block = 64, device = "sim"}
    for i = 0, 63 do assert.equal((63 - i + 3) * 2, y[i]) end
    raises({"[kernel-fault]", "write outside global tensor 'a': element 64 of "
      .. "64"}, function()
      cute.kernel("k", function(a)
        a.iterator[cute.arch.thread_idx() + 1] = 0
      end)(y):launch {grid = 1, block = 64, device = "sim"}
    end)
  end)
end)

describe("print_tensor", function()
  it("shows rows, and matrices of further modes below each other", function()
    local draw = require "cutelua.draw.print"
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

describe("print_layout", function()
  it("draws the table of offsets as CuTe does", function()
    local draw = require "cutelua.draw.print"
    assert.equal(table.concat({
      "(2,3):(3,1)",
      "      0   1   2 ",
      "    +---+---+---+",
      " 0  | 0 | 1 | 2 |",
      "    +---+---+---+",
      " 1  | 3 | 4 | 5 |",
      "    +---+---+---+", ""}, "\n"),
      draw.layout_text(cute.make_layout({2, 3}, {3, 1})))
    raises("rank 1 or 2", draw.layout_text, cute.make_layout {2, 2, 2})
  end)

  it("limits the number of cells, like similar functions", function()
    local draw = require "cutelua.draw.print"
    local wide = cute.make_layout({100000, 100000})
    local function too_many(cells, name, f, ...)
      raises({name .. ": " .. cells .. " cells are too many; the limit is "
        .. "1048576 [limit]"}, f, ...)
    end
    too_many("100000 x 100000", "print_layout", draw.layout_text, wide)
    too_many("1048577 x 1", "print_layout", draw.layout_text,
      cute.make_layout({(1 << 20) + 1}))
    too_many("100000 x 100000", "print_tensor", draw.tensor_text,
      cute.make_identity_tensor {100000, 100000})
    too_many("1024 x 1024 x 2", "print_tensor", draw.tensor_text,
      cute.make_identity_tensor {1024, 1024, 2})
    too_many("100000 x 100000", "print_latex", draw.latex_text, wide)
    too_many("2147483648 x 2147483648", "print_latex", draw.latex_tv_text,
      cute.make_layout({32, 8}), {1 << 31, 1 << 31})
    too_many("2147483648 x 8", "print_latex", draw.latex_tv_text,
      cute.make_layout({1 << 31, 8}), {8, 8})
    local check = require "cutelua.draw.picture".check_cells
    assert.equal(1 << 20, check("print_layout", wide, {1 << 20, 1}))
    assert.equal(0, check("print_layout", wide, {0, 1 << 62}))
  end)
end)
-- SPDX-License-Identifier: MIT
