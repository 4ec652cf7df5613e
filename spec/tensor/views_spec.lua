-- Tests tensors viewed through layouts: tilers that are layouts, counting
-- iterators, host tensors with another element type, negative strides, and
-- errors for invalid arguments.
local cute = require "cute"
local support = require "spec.support"
local ANY = cute._
local L = cute.layout
local raises = support.raises

local function numbered(layout)
  local t = cute.zeros(layout, cute.f32)
  for i = 0, cute.size(layout) - 1 do t[i] = i end
  return t
end

local function values(t)
  local list = {}
  for _, x in t:elements() do list[#list + 1] = x end
  return list
end

describe("tilers", function()
  local T = numbered(L "(8,12):(12,1)")

  -- Computes the coordinate of an element by definition: in each mode, element
  -- (x..., y...) of a division is at tile(x) + rest(y).
  local function oracle(tiles, coord, inner)
    local modes = {}
    for m, tile in ipairs(tiles) do
      local n = cute.size(T, m - 1)
      tile = math.type(tile) and cute.make_layout(tile) or tile
      modes[m] = {tile = tile, rest = cute.complement(tile, n)}
    end
    local list, a, b = {}, modes[1], modes[2]
    local keep, drop = "tile", "rest"
    if not inner then keep, drop = "rest", "tile" end
    for j = 0, cute.size(b[keep]) - 1 do
      for i = 0, cute.size(a[keep]) - 1 do
        list[#list + 1] = T(a[keep](i) + a[drop](coord[1]),
                            b[keep](j) + b[drop](coord[2]))
      end
    end
    return list
  end

  it("may be layouts, mode by mode", function()
    for _, tiles in ipairs {{L "4:2", 3}, {L "2:4", L "3:4"}, {8, L "6:2"},
                            {L "(2,2):(1,4)", L "(3,2):(2,6)"}} do
      for c = 0, 1 do
        local coord = {c % (8 // cute.size(tiles[1])), c}
        assert.same(oracle(tiles, coord, true),
                    values(cute.local_tile(T, tiles, coord)))
        assert.same(oracle(tiles, coord, true),
                    values(cute.inner_partition(T, tiles, coord)))
        coord = {1, c}
        assert.same(oracle(tiles, coord, false),
                    values(cute.outer_partition(T, tiles, coord)))
      end
    end
  end)

  it("may be one layout over the whole tensor", function()
    local divided = cute.logical_divide(T.layout, L "(2,3):(4,8)")
    local tile = cute.local_tile(T, L "(2,3):(4,8)", 5)
    assert.equal(2, cute.rank(tile))
    local _, at = cute.slice_and_offset({ANY, 5}, divided)
    for i = 0, 5 do assert.equal(divided(i, 5), at + tile.layout(i)) end
    local row = cute.outer_partition(T, L "4:2", 1)
    assert.equal(T(2), row(0))
    assert.equal(T(3), row(1))
  end)

  it("may be nested if a mode is nested", function()
    local N = numbered(L "((4,2),6):((1,4),8)")
    local tile = cute.local_tile(N, {{2, 1}, 3}, {{1, 1}, 1})
    assert.equal("((2,1),3):((1,0),8)", tostring(tile.layout))
    assert.equal(N({2, 1}, 3), tile(0))
  end)

  it("choose modes with a projection", function()
    local a = cute.local_tile(T, {L "4:2", 99, 3}, {1, 0, ANY},
                              {1, cute.X, 1})
    assert.equal("(4,3,4):(24,1,3)", tostring(a.layout))
    assert.equal(T(1, 0), a(0))
  end)

  it("are rejected if they do not fit", function()
    raises("more modes than the tensor", cute.local_tile, T, {2, 2, 2}, 0)
    raises("(1,1,1) does not have the 2 modes of the tiler (4:2,4)",
           cute.local_tile, T, {L "4:2", 4}, {0, 0}, {1, 1, 1})
    raises("a tiler holds layouts, integers", cute.local_tile, T, {"4", 4},
           {0, 0})
    raises("entry 1 of a tiler of 2 is nil", cute.local_tile, T, {nil, 4},
           {0, 0})
    raises("the tiler (2,_) has more modes than the mode", cute.local_tile, T,
           {{2, ANY}, 4}, {0, 0})
    raises("no thread 8 in the thread layout (2,4):(4,1)",
           cute.local_partition, T, L "(2,4):(4,1)", 8)
    raises("no thread -1", cute.local_partition, T, L "(2,4):(4,1)", -1)
  end)
end)

describe("counting iterators", function()
  it("give coordinates, or integers", function()
    local t = cute.make_tensor({1, 2}, L "(4,4):(1@0,1@1)")
    assert.equal("(1,2) o (4,4):(1@0,1@1)", tostring(t))
    assert.same({4, 3}, t(3, 1))
    assert.same({1, 5}, t(ANY, 3)(0))
    assert.same({5, 7, 9, 11}, values(cute.make_tensor(5, L "4:2")))
    assert.same({3, 3}, cute.local_tile(t, {2, 2}, {1, 0})(0, 1))
  end)

  it("fit their layout", function()
    raises("coordinate 5 cannot be the origin of layout (4,4):(1@0,1@1)",
           cute.make_tensor, 5, L "(4,4):(1@0,1@1)")
    raises("coordinate (1,2) cannot be the origin of layout 4:1",
           cute.make_tensor, {1, 2}, L "4:1")
    raises("gives coordinates, not offsets into memory", cute.make_tensor,
           cute.buffer("f32", 4), L "4:1@0")
    raises("gives coordinates, not offsets into memory", cute.make_tensor,
           cute.zeros({4}, cute.f32).iterator, L "4:1@0")
  end)
end)

describe("host tensors of another type", function()
  local T = cute.tensor({{1, 2, 3, 4}, {-1, -2, -3, -4}}, cute.f32)

  it("show the same bits", function()
    local i = cute.recast_tensor(T, cute.i32)
    local h = cute.recast_tensor(T, cute.u16)
    local d = cute.recast_tensor(T, cute.u64)
    for m = 0, 1 do
      for n = 0, 3 do
        local bits = string.unpack("<i4", string.pack("<f", T(m, n)))
        assert.equal(bits, i(m, n))
        assert.equal(bits & 0xffff, h(m, 2 * n))
        assert.equal(bits >> 16 & 0xffff, h(m, 2 * n + 1))
        local two = string.unpack("<i8",
          string.pack("<ff", T(m, n // 2 * 2), T(m, n // 2 * 2 + 1)))
        assert.equal(two, d(m, n // 2))
      end
    end
  end)

  it("write to the same memory", function()
    local t = cute.zeros({2, 2}, cute.f32)
    cute.recast_tensor(t, cute.u32)[{1, 0}] = 0x40490fdb
    assert.is_true(math.abs(t(1, 0) - math.pi) < 1e-6)
    cute.recast_tensor(t, cute.u8):fill(0)
    assert.equal(0.0, t(1, 0))
  end)

  it("are kernel arguments", function()
    local out = cute.zeros({2, 8}, cute.f16)
    local copy = cute.kernel("copy", function(A, B)
      local i = cute.arch.thread_idx()
      for j = 0, 7 do B:set(i, j, A(i, j)) end
    end)
    local half = cute.recast_tensor(T, cute.f16)
    copy(half, out):launch {grid = 1, block = 2, device = "sim"}
    assert.same(values(half), values(out))
  end)

  it("are rejected if elements would be cut", function()
    raises("neither stride 3 nor factor 2 divides the other",
           cute.recast_tensor, cute.zeros(L "(2,2):(1,3)", cute.f32), cute.f64)
    raises("not a multiple of 64 bits", cute.recast_tensor,
           cute.make_tensor(T.iterator + 1, L "2:1"), cute.f64)
    raises("element 8 is outside of the buffer of 8",
           function() return (cute.make_tensor(
             cute.recast_tensor(T, cute.i32).iterator, L "9:1"))(8) end)
  end)
end)

describe("negative strides", function()
  it("of host tensors let element 0 lie later in memory", function()
    local t = cute.zeros(L "(2,4):(-4,-1)", cute.f32)
    assert.equal("ptr[f32,host]+7 o (2,4):(-4,-1)", tostring(t))
    t[{0, 0}], t[{1, 3}] = 7, 8
    assert.same({8, 0, 0, 0, 0, 0, 0, 7},
                values(cute.make_tensor(t.iterator + -7, 8)))
    local b = cute.buffer("f32", 8)
    raises("8:-1 reaches 7 elements before the buffer's first",
           cute.make_tensor,
           b, L "8:-1")
    local whole = cute.make_tensor(b, 8)
    for i = 0, 7 do whole[i] = i end
    assert.same({7, 6, 5, 4, 3, 2, 1, 0},
                values(cute.make_tensor(whole.iterator + 7, L "8:-1")))
  end)

  it("of shared memory and registers do, too", function()
    local A, B = numbered(L "(8,4):(4,1)"), cute.zeros({8, 4}, cute.f32)
    local turn = cute.kernel("turn", function(X, Y)
      local i = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, L "(8,4):(-4,-1)")
      local flat = cute.make_tensor(s.iterator + -31, 32)
      local r = cute.make_rmem_tensor(L "4:-1", cute.f32)
      for j = 0, 3 do r:set(j, X(i, j)) end
      for j = 0, 3 do s:set(i, j, r(j)) end
      cute.arch.sync_threads()
      for j = 0, 3 do Y:set(i, j, flat(4 * i + j)) end
    end)
    turn(A, B):launch {grid = 1, block = 8, device = "sim"}
    for i = 0, 7 do
      for j = 0, 3 do assert.equal(A(7 - i, 3 - j), B(i, j)) end
    end
  end)

  it("are rejected if the first address is unknown", function()
    local bad = cute.kernel("bad", function()
      cute.make_smem_tensor(cute.f32,
        cute.composition(cute.make_swizzle(1, 0, 1), L "8:-1"))
    end)
    raises("a swizzle needs strides >= 0", function()
      bad():launch {grid = 1, block = 1, device = "sim"}
    end)
    local one = cute.kernel("one", function(A) A:set(0, 1) end)
    raises("negative strides cannot be given to a kernel", function()
      one(cute.zeros(L "8:-1", cute.f32)):launch
        {grid = 1, block = 1, device = "sim"}
    end)
  end)
end)

-- An iterator of a swizzled tensor knows its position `place` in the tensor.
-- Its element k is at sw(place + k), from whichever slice it was taken.
describe("the iterator of a swizzled tensor", function()
  local R = math.random
  local raw = cute.zeros({512}, cute.i32)
  for i = 0, 511 do raw[i] = i end

  -- Returns a swizzled tensor of 16 x 16 over raw.
  local function swizzled()
    local sw = cute.make_swizzle(R(1, 3), R(0, 2), R(3, 4))
    local stride = R(2) == 1 and {16, 1} or {1, 16}
    return sw, cute.make_tensor(raw.iterator, cute.composition(sw,
      cute.make_layout({16, 16}, stride))), stride
  end

  it("is used with a new layout, on the host", function()
    math.randomseed(11)
    local decayed = 0
    for _ = 1, 400 do
      local sw, t, stride = swizzled()
      local at, v = 0, t
      -- Takes a tile, a tile of a tile, or neither.
      for _ = 1, R(0, 2) do
        local n = 1 << R(1, 3)
        local c = {R(0, 16 // n - 1), R(0, 16 // n - 1)}
        if cute.size(v, 0) < 16 then break end
        v = cute.local_tile(v, {n, n}, c)
        at = at + (c[1] * stride[1] + c[2] * stride[2]) * n
      end
      if R(2) == 1 then  -- Takes one row of the tile.
        local i = R(0, cute.size(v, 0) - 1)
        if i == 0 or v.layout.is_composed then
          v, at = v(i, ANY), at + i * stride[1]
        end
      end
      if not v.layout.is_composed then decayed = decayed + 1 end
      local n, by = R(0, 5), R(1, 9)
      local it = v.iterator
      if R(2) == 1 then it, at = it + n, at + n end
      local got = cute.make_tensor(it, cute.make_layout({4, 3}, {by, 40}))
      for i = 0, 3 do
        for j = 0, 2 do
          assert.equal(sw(at + i * by + j * 40), got(i, j))
        end
      end
    end
    assert.is_true(decayed > 20)
  end)

  it("is used in kernels, at traced positions", function()
    math.randomseed(12)
    for _ = 1, 20 do
      local sw, t, stride = swizzled()
      local out = cute.zeros({16, 4}, cute.i32)
      cute.kernel("places", function(mT, mOut, k)
        local i = cute.arch.thread_idx()
        local l = cute.make_layout({2, 3}, {5, 33})
        mOut[{i, 0}] = cute.make_tensor(mT(i % 8, ANY).iterator, l)(1, 2)
        mOut[{i, 1}] = cute.make_tensor(mT(3, ANY).iterator + i, l)(1, 1)
        local tile = cute.local_tile(mT, {4, 4}, {k, 1})
        mOut[{i, 2}] = cute.make_tensor(tile.iterator, l)(i % 2, i % 3)
        mOut[{i, 3}] = cute.make_tensor(
          cute.local_tile(mT, {4, 8}, {2, 1}).iterator, l)(i % 2, i % 3)
      end)(t, out, 2):launch {grid = 1, block = 16, device = "sim"}
      for i = 0, 15 do
        local l = i % 2 * 5 + i % 3 * 33
        assert.same({sw(i % 8 * stride[1] + 71), sw(3 * stride[1] + i + 38),
                     sw(8 * stride[1] + 4 * stride[2] + l),
                     sw(8 * stride[1] + 8 * stride[2] + l)},
                    {out(i, 0), out(i, 1), out(i, 2), out(i, 3)})
      end
    end
  end)

  it("is rejected if its position is not known", function()
    local t = cute.make_tensor(raw.iterator, cute.composition(
      cute.make_swizzle(2, 0, 3), cute.make_layout({8, 8}, {8, 1})))
    local row = t(3, ANY)
    assert.is_false(row.layout.is_composed)
    local it = cute.local_tile(row, {2}, {1}).iterator
    -- the iterator points to the swizzled position
    assert.equal(24 ~ 3 ~ 2, it(0))
    raises("the iterator's position in its swizzled tensor is no longer known",
           cute.make_tensor, it, L "4:1")
    assert.equal(26 ~ 3, cute.make_tensor(t.iterator + 26, L "4:1")(0))
  end)
end)

describe("calls that are nearly right", function()
  local X = numbered {8, 4}

  it("recast_ptr replaces the pointer's swizzle", function()
    local one, two = cute.make_swizzle(2, 4, 3), cute.make_swizzle(3, 4, 3)
    cute.kernel("k", function(y)
      local n = cute.make_layout(512)
      local function smem(layout)
        return cute.make_smem_tensor(cute.u8, layout, 1024)
      end
      local was = smem(cute.make_composed_layout(one, 0, n)).iterator
      local plain = smem(n).iterator
      for _, at in ipairs {0, 16, 256} do
        for _, dtype in ipairs {cute.u8, cute.u16} do
          local p = cute.recast_ptr(was + at, dtype, two)
          local q = cute.recast_ptr(plain + at, dtype, two)
          assert.equal(tostring(q), tostring(p))
          local s, t = cute.make_tensor(p, n), cute.make_tensor(q, n)
          assert.equal(tostring(t), tostring(s))
        end
      end
      local s = cute.make_tensor(cute.recast_ptr(was, two), n)
      local t = cute.make_tensor(was, n)
      for i = 0, 511 do s[i] = i % 256 end
      for i = 0, 511 do y[two(i)] = t[one(two(i))] end
    end)(cute.zeros({512}, cute.u8)):trace {block = 1}
  end)

  it("recast_ptr takes a type, a swizzle, or both in any order", function()
    local it, sw = X.iterator, cute.make_swizzle(1, 2, 3)
    local both = tostring(cute.recast_ptr(it, cute.bf16, sw))
    assert.equal(both, tostring(cute.recast_ptr(it, sw, cute.bf16)))
    assert.equal("bf16", cute.recast_ptr(it, nil, cute.bf16).element_type.name)
    assert.equal("f64", cute.recast_ptr(it, "f64").element_type.name)
    assert.equal(cute.f32, cute.recast_ptr(it, nil, sw).element_type)
    raises("bad argument #2 to 'cute.recast_ptr' (element type or swizzle "
      .. "expected, got 3)", cute.recast_ptr, it, 3)
    raises("bad argument #3 to 'cute.recast_ptr' (element type or swizzle "
      .. "expected, got f32)", cute.recast_ptr, it, cute.f32, cute.f32)
    raises("bad argument #1 to 'cute.recast_ptr' (tensor expected, got nil)",
      cute.recast_ptr, nil, cute.f32)
  end)

  it("a tuple has no index 0", function()
    local shape = X.shape
    assert.same({8, 4}, {shape[1], shape[2]})
    assert.is_nil(shape[3])
    assert.is_nil(shape.x)
    local n = 0
    for i, e in ipairs(shape) do n = n + i * e end
    assert.equal(16, n)
    for _, k in ipairs {0, -1, 0.0} do
      raises(("(8,4)[%d]: a tuple counts from 1, as Lua's tables do; modes in "
        .. "calls, such as size(x, 0), count from 0"):format(k),
        function() return shape[k] end)
    end
    raises("(2,3)[0]: a tuple counts", function()
      return L("((2,3),4):((1,2),6)").shape[1][0]
    end)
  end)

  it("a function of three values as a table's last item", function()
    local hint = "%s() returns x, y and z, and a table ends with all three"
    local function in_kernel(f)
      cute.kernel("k", f)(X):launch {grid = 1, block = 8, device = "sim"}
    end
    raises({"the coordinate (?,?,?) has 3 modes, but the tiles have 2",
            hint:format "thread_idx"}, in_kernel, function(x)
      return cute.local_tile(x, {8}, {cute.arch.thread_idx()})
    end)
    raises({"coordinate (0,?,?,?) of the tensor has 4 modes instead of 2",
            hint:format "block_idx"}, in_kernel, function(x)
      return x[{0, cute.arch.block_idx()}]
    end)
    in_kernel(function(x)
      local tile = cute.local_tile(x, {1}, {(cute.arch.thread_idx())})
      tile[{0, 0}] = 1
    end)
    raises("the coordinate (0,0,0) has 3 modes, but the tiles have 2",
      cute.local_tile, X, {8}, {0, 0, 0})
  end)
end)

describe("a single tile", function()
  it("of coordinates keeps its extent as step to the next one", function()
    local I = cute.make_identity_tensor
    for text, t in pairs {
      ["((8,4),(1,2)):((1@0,1@1),(8@0,4@1))"] =
        cute.zipped_divide(I {8, 8}, {8, 4}),
      ["((8,8),(1,1)):((1@0,1@1),(8@0,8@1))"] =
        cute.zipped_divide(I {5, 8}, {8, 8}),
      ["((4,1),(1,1)):((1@0,1@1),(4@0,1@1))"] =
        cute.zipped_divide(I {4, 1}, {4, 1}),
      ["((8),(1)):((1@0),(8@0))"] = cute.zipped_divide(I {8}, {8})} do
      assert.equal(text, tostring(t.layout))
    end
    assert.equal("((8,8),(1,1)):((1,8),(0,0))", tostring(
      -- (1,1) as the second mode is what CuTe prints.
      cute.zipped_divide(L "(8,8):(1,8)", {8, 8})))
  end)

  it("is the only one: a traced index beyond it is reported", function()
    local ways = {
      function(x, n) return cute.local_tile(x, {8, 1}, {0, n}) end,
      function(x, n) return cute.local_tile(x, {8, 1}, {n, 0}) end,
      function(x, n) return cute.zipped_divide(x, {8, 1})(ANY, {0, n}) end,
      function(x, n) return cute.zipped_divide(x, {8, 1})(ANY, n) end,
      function(_, n, y) return cute.local_tile(y, {8}, {n}) end,
      function(_, n, y) return cute.zipped_divide(y, {8})(ANY, n) end}
    for k, way in ipairs(ways) do
      local function run(n)
        return cute.kernel("k", function(x, y, i)
          way(x, i, y)[0] = 1.0
        end)(cute.zeros({8, 1}, cute.f32), cute.zeros({8}, cute.f32), n)
          :launch {grid = 1, block = 1, device = "sim", faults = "return"}
      end
      assert.truthy(run(0))
      local r, why = run(1)
      assert.is_nil(r, k)
      assert.matches("out%-of%-bounds", tostring(why))
    end
  end)
end)

describe("tensors like others", function()
  it("have the order of their strides", function()
    local t = cute.zeros(L "(4,6):(1,8)", cute.bf16)
    assert.equal("ptr[bf16,host] o (4,6):(1,4)", tostring(cute.ones_like(t)))
    assert.equal("ptr[i32,host] o (4,6):(1,4)",
                 tostring(cute.full_like(t, 3, cute.i32)))
    assert.equal(3, cute.full_like(t, 3, cute.i32)(3, 5))
    assert.equal(0.0, cute.zeros_like(t)(3, 5))
    assert.equal("(4,6):(6,1)", tostring(
      cute.ones_like(cute.zeros({4, 6}, cute.f32)).layout))
  end)

  it("count bytes, and have the functions as methods", function()
    local t = cute.zeros({4, 6}, cute.bf16)
    assert.equal(48, cute.size_in_bytes(t))
    assert.equal(48, cute.size_in_bytes(cute.bf16, {4, 6}))
    assert.equal(24, t:size())
    assert.equal("((2,3),(2,2)):((6,1),(12,3))",
                 tostring(t:zipped_divide({2, 3}).layout))
    raises("element type or tensor expected, got layout 8:1",
           cute.size_in_bytes, L "8:1", cute.bf16)
  end)
end)
-- SPDX-License-Identifier: MIT
