-- Tests composed layouts, in which a swizzle, a layout or a composed layout is
-- applied to another layout's values. Each random composed layout is made
-- together with the Lua function that it represents. The results of the algebra
-- are compared with that function.
local cute = require "cute"
local oracle = require "spec.layout.oracle"
local support = require "spec.support"
local try = support.try
local ANY, L = cute._, cute.layout
local raises = support.raises

local EXTENTS = {1, 2, 2, 3, 4, 4, 5, 8}

local function fail(fmt, ...)
  local t = {...}
  for i = 1, #t do t[i] = tostring(t[i]) end
  error(fmt:format(table.unpack(t)), 2)
end

local function plain(r, depth)
  local shape = r:shape(depth or 2, EXTENTS)
  while oracle.size(shape) > 64 do shape = r:shape(depth or 2, EXTENTS) end
  local d = r:compact(shape, r:below(3) == 0)
  local l = cute.make_layout(shape, d)
  return l, function(c) return oracle.eval(shape, d, c) end
end

-- Returns a random left side (the outer function), a layout or a swizzle, and
-- the Lua function of integers that it represents.
local function left(r)
  if r:below(3) > 0 then return plain(r) end
  local b, m, s = 1 + r:below(2), r:below(3), 2 + r:below(2)
  if r:below(3) == 0 then s = -s end
  return cute.make_swizzle(b, m, s),
         function(x) return oracle.swizzle(b, m, s, x) end
end

-- Returns a random composed layout of 1 to 3 left sides. Also returns the
-- function that it computes, its right side, its expected text, and the
-- function of the left sides alone.
local function composed(r, depth)
  local l, f = plain(r, depth)
  local right, text, lead = l, tostring(l), function(x) return x end
  for _ = 1, 1 + r:below(3) do
    local a, g = left(r)
    local o = r:below(2) == 0 and 0 or r:below(12)
    l = cute.make_composed_layout(a, o, l)
    text = ("%s o %d o %s"):format(a, o, text)
    local inner = lead
    lead = function(x) return g(o + inner(x)) end
  end
  return l, function(c) return lead(f(c)) end, right, text, lead
end

-- Fails unless x(i) == f(i) for all i of x.
local function same(what, x, f, n)
  n = n or cute.size(x)
  if cute.size(x) ~= n then fail("%s: %s has not %d elements", what, x, n) end
  for i = 0, n - 1 do
    if x(i) ~= f(i) then
      fail("%s: %s is %s at %d, not %s", what, x, x(i), i, f(i))
    end
  end
end

local function repeated(n, at_least, f)
  local r, got = oracle.random(n), 0
  for _ = 1, n do if f(r) then got = got + 1 end end
  assert.is_true(got >= at_least, ("only %d of %d"):format(got, n))
end

describe("a composed layout", function()
  it("applies its functions one after the other", function()
    repeated(400, 400, function(r)
      local l, f, right, text = composed(r, 3)
      assert.equal(text, tostring(l))
      assert.is_true(L(text) == l and l.is_composed)
      same("layout", l, f)
      for i = 0, cute.size(l) - 1 do
        assert.equal(f(i), l(oracle.coord(right.shape, i)))
      end
      assert.equal(tostring(right), tostring(l.outer))
      return true
    end)
  end)

  it("describes its parts", function()
    local l = L "(4,5):(1,4) o 2 o (2,3):(1,2)"
    assert.equal("(4,5):(1,4)", tostring(l.inner))
    assert.equal(2, l.offset)
    assert.equal("(2,3):(1,2)", tostring(l.outer))
    assert.is_nil(l.swizzle)
    assert.same({6, 2, 1, 8}, {cute.size(l), cute.rank(l), cute.depth(l),
                               cute.cosize(l)})
    local n = cute.make_composed_layout(cute.make_swizzle(1, 0, 1), 3, l)
    assert.equal("Sw<1,0,1>", tostring(cute.get_swizzle_portion(n)))
    assert.is_true(cute.get_nonswizzle_portion(n) == l)
    raises("has no strides", cute.stride, l)
    raises("[inadmissible]", function() return l.stride end)
    raises("swizzle, layout or function expected", cute.make_composed_layout,
           3, 0, l)
    raises("offset expected", cute.make_composed_layout, l, cute.E(0), l)
    raises("cannot be a mode", cute.make_layout, l, l)
    raises("no layout describes", cute.complement, l, 24)
  end)

  it("keeps its function when its modes move #long", function()
    repeated(800, 350, function(r)
      local l, f, right = composed(r)
      same("coalesce", cute.coalesce(l), f, cute.size(l))
      same("flatten", cute.flatten(l), f, cute.size(l))
      same("wrap", cute.unflatten(cute.flatten(l), right.shape), f)
      if type(right.shape) ~= "table" then return false end
      same("group", cute.group_modes(l, 0, cute.rank(l)), f)
      local k = r:below(cute.rank(l))
      local function at(i)
        local c = {}
        for m = 1, #right.shape do c[m] = m == k + 1 and i or 0 end
        return f(c)
      end
      same("get", cute.get(l, k), at)
      same("select", cute.select(l, k), at)
      same("take", cute.take(l, k, k + 1), at)
      local seen, cosize = 0, 0
      for i = 0, cute.size(l) - 1 do cosize = math.max(cosize, f(i) + 1) end
      if not l.swizzle then assert.equal(cosize, cute.cosize(l)) end
      for i = 0, cute.size(l) - 1 do seen = seen + (f(i) >= 0 and 1 or 0) end
      assert.equal(cute.size(l), seen)
      return true
    end)
  end)

  it("slices into its offset", function()
    repeated(900, 250, function(r)
      local l, f, right = composed(r)
      if type(right.shape) ~= "table" then return false end
      local c, rest = {}, {}
      for i, s in ipairs(right.shape) do
        local n = oracle.size(s)
        if r:below(2) == 0 then c[i] = ANY rest[#rest + 1] = n
        else c[i] = r:below(n) end
      end
      if #rest == 0 then return false end
      local part, off = cute.slice_and_offset(c, l)
      for i = 0, cute.size(part) - 1 do
        local full, at = {}, i
        for k = 1, #c do
          if c[k] == ANY then
            local n = oracle.size(right.shape[k])
            full[k], at = at % n, at // n
          else
            full[k] = c[k]
          end
        end
        if off + part(i) ~= f(full) then
          fail("%s at %s: %s + %s, wrong at %s", l, cute.tuple(c), off, part,
               i)
        end
      end
      return true
    end)
  end)
end)

describe("a composed layout", function()
  it("composes on either side", function()
    repeated(1500, 900, function(r)
      local l, f = composed(r)
      local b, g = plain(r)
      local lb = try(cute.composition, l, b)
      if lb then same("l o b", lb, function(i) return f(g(i)) end,
                      cute.size(b)) end
      local a, h = plain(r)
      local al = cute.composition(a, l)
      same("a o l", al, function(i) return h(f(i)) end, cute.size(l))
      local x, fx = composed(r)
      same("x o l", cute.composition(x, l), function(i) return fx(f(i)) end,
           cute.size(l))
      local sw = cute.make_swizzle(2, 1, 3)
      local as = cute.composition(a, sw)
      same("a o Sw", as, function(i) return h(oracle.swizzle(2, 1, 3, i)) end,
           cute.size(a))
      return lb ~= nil
    end)
    assert.equal(9, cute.composition(L "(2,4):(4,1)",
                                     L "Sw<2,1,3> o 0 o 16:1")(11))
    -- A swizzle of offsets that equals the composition is printed in CuTe's
    -- notation, Sw<B,M,S>.
    assert.equal("Sw<1,2,1> o 0 o (16,(2,8)):(1,(16,32))", tostring(
      cute.composition(L "(16,(2,8)):(1,(16,32))", cute.make_swizzle(1, 2, 1))))
    assert.equal("Sw<2,0,3> o 0 o 8:1", tostring(
      cute.composition(L "64:1", L "Sw<2,0,3> o 0 o 8:1")))
  end)

  it("divides and multiplies as its right side does", function()
    repeated(600, 400, function(r)
      local l, _, right, _, lead = composed(r)
      local shape = cute.wrap(right.shape)
      local tiler = {}
      for i, s in ipairs(shape) do
        local n = oracle.size(s)
        tiler[i] = n % 2 == 0 and r:pick {1, 2} or n
      end
      if type(right.shape) ~= "table" then tiler = tiler[1] end
      for _, op in ipairs {"logical_divide", "zipped_divide", "tiled_divide",
                           "flat_divide"} do
        local want, got = try(cute[op], right, tiler), try(cute[op], l, tiler)
        if (want == nil) ~= (got == nil) then fail("%s %s %s", op, l, got) end
        if want then
          same(op, got, function(i) return lead(want(i)) end, cute.size(want))
        end
      end
      local half = {2, cute.size(l) // 2}
      local s = half[2] > 0 and try(cute.with_shape, l, half)
      if s then
        local want = cute.with_shape(right, half)
        same("with_shape", s, function(i) return lead(want(i)) end)
      end
      local p, q = try(cute.logical_product, l, 3),
                   try(cute.logical_product, right, 3)
      assert.equal(tostring(q), tostring(p and p.outer))
      if p then same("product", p, function(i) return lead(q(i)) end) end
      return p ~= nil
    end)
  end)

  it("has inverses that invert, or none", function()
    local some = 0
    repeated(1200, 300, function(r)
      local l, f = composed(r)
      local R, n = try(cute.right_inverse, l), cute.size(l)
      if R then
        for i = 0, cute.size(R) - 1 do
          if R(i) < 0 or R(i) >= n or f(R(i)) ~= i then
            fail("right_inverse %s = %s at %s", l, R, i)
          end
        end
        some = some + (cute.size(R) > 1 and 1 or 0)
      end
      local back = try(cute.left_inverse, l)
      if not back then return false end
      for i = 0, n - 1 do
        if f(back(f(i))) ~= f(i) then
          fail("left_inverse %s = %s at %s", l, back, i)
        end
      end
      return true
    end)
    assert.is_true(some > 150, tostring(some))
    assert.equal("(3,2):(2,1) o 0 o 2:4", tostring(
      cute.right_inverse(L "(4,5):(5,1) o 0 o (2,3):(3,1)")))
    raises("the value at coordinate 0 is 2", cute.right_inverse,
           L "(4,5):(1,4) o 2 o (2,3):(1,2)")
  end)

  it("finds the coordinate of an offset", function()
    repeated(300, 300, function(r)
      local l, f = plain(r)
      for _ = 1, 2 do
        local shape = {cute.size(l), r:pick {1, 2, 3}}
        local d = r:compact(shape)
        local a, inner, o = cute.make_layout(shape, d), f, r:below(5)
        local sw = {r:below(2), r:below(2), 2}
        l = cute.make_composed_layout(cute.make_swizzle(table.unpack(sw)), o, l)
        l = cute.make_composed_layout(a, 0, l)
        f = function(c)
          return oracle.eval(shape, d, oracle.swizzle(sw[1], sw[2], sw[3],
                                                      o + inner(c)))
        end
      end
      for i = 0, cute.size(l) - 1 do
        -- The rightmost layout is compact, and the other layouts are compact on
        -- its offsets. Therefore an inverse exists.
        local x = f(i)
        local c = try(cute.get_1d_coord, l, x)
        if c and l(c) == x then return true end
      end
      return true
    end)
    local l = L "(4,5):(5,1) o 3 o Sw<1,0,1> o 0 o (2,4):(4,1)"
    for i = 0, 7 do assert.equal(i, cute.get_1d_coord(l, l(i))) end
  end)
end)

describe("a composed layout", function()
  it("can be recast if contiguous elements stay contiguous", function()
    repeated(1500, 100, function(r)
      local l, f = composed(r)
      local n = r:pick {2, 4}
      local down = try(cute.downcast, l, n)
      if down and type(l.outer.shape) ~= "table" and
         cute.size(down) == n * cute.size(l) then
        same("downcast", down, function(i) return f(i // n) * n + i % n end)
      end
      if type(l.outer.shape) == "table" or l.outer.stride ~= 1 then
        return false
      end
      local up = try(cute.upcast, l, n)
      if not up or cute.size(l) % n ~= 0 then return false end
      same("upcast", up, function(i) return f(i * n) // n end,
           cute.size(l) // n)
      return true
    end)
    raises("does not keep runs of 2 elements", cute.upcast,
           L "(4,5):(5,1) o 0 o 8:1", 2)
    raises("offset is not divisible by the factor", cute.upcast,
           L "8:1 o 1 o 4:1", 2)
  end)

  it("returns coordinates, and accepts them", function()
    local l = L "(4,5):(1@0,1@1) o 2 o (2,3):(1,2)"
    assert.equal("(3,1)", tostring(l(1, 2)))
    local m = L "(4,5):(5,1) o 0 o (3,2):(1@0,2@1)"
    for i = 0, 2 do
      for j = 0, 1 do assert.equal(i * 5 + j * 2, m(i, j)) end
    end
    assert.equal(5, L "(4,5):(5,1) o 0 o 3:1@0" (1))
    raises("cannot be added to coordinates", L "(4,5):(5,1) o 2 o 3:1@0", 1)
    assert.equal("(4,5):(5,1) o (1,0) o (2):(2@1)", tostring(m(1, ANY)))
    assert.equal(7, m(1, ANY)(1))
    assert.is_true(L(tostring(m)) == m)
  end)

  it("is rejected with a caret at the notation's error", function()
    for text, want in pairs {
      ["8:1 o 3 o Sw<1,1,1>"] = "expected 'o' and a layout",
      ["8:1 o"] = "expected an integer",
      ["8:1 o 3"] = "expected ':' and a stride",
      ["8:1 o (1,2) o 8:1"] = "expected an integer as offset",
      ["(Sw<1,1,1>,4)"] = "a swizzle alone is not a layout",
      ["3 o 8:1"] = "text after the end of the notation",
    } do
      raises(want, cute.layout, text)
    end
    raises("nest at most 32 deep", cute.layout, ("8:1 o "):rep(40) .. "8:1")
  end)
end)

-- ---- tensors ----

local function filled(l)
  local n = 0
  for i = 0, cute.size(l) - 1 do n = math.max(n, l(i) + 1) end
  local b = cute.buffer("i32", n)
  local flat = cute.make_tensor(b, cute.make_layout(n))
  for i = 0, n - 1 do flat[i] = 1000 + i end
  return cute.make_tensor(b, l)
end

local DEVICE = "sim:sm_90a"

describe("a tensor with a composed layout", function()
  it("reads and slices on the host", function()
    repeated(150, 150, function(r)
      local l, f = composed(r)
      local t = filled(l)
      for i = 0, cute.size(l) - 1 do assert.equal(1000 + f(i), t(i)) end
      if cute.rank(l) > 1 then
        local k = cute.size(l, 0) - 1
        local c = {k}
        for i = 2, cute.rank(l) do c[i] = ANY end
        local s = t(table.unpack(c))
        for i = 0, cute.size(s) - 1 do
          assert.equal(1000 + f(k + i * cute.size(l, 0)), s(i))
        end
      end
      local z = cute.zeros(l, cute.i32)
      for i = 0, cute.size(l) - 1 do z[i] = i end
      return true
    end)
  end)

  -- Tests global and shared memory, with traced coordinates, slices and tiles.
  it("reads and writes in kernels", function()
    repeated(24, 24, function(r)
      local shape = {r:pick {4, 8}, {r:pick {2, 4}, 2}}
      local right = cute.make_layout(shape, r:compact(shape))
      local n = cute.size(right)
      local wide = {r:pick {3, 5}, r:pick {2, 4}, 32}
      local A = cute.make_layout(wide, r:compact(wide))
      local l = cute.make_composed_layout(A, r:below(4), right)
      if r:below(2) == 0 then
        l = cute.make_composed_layout(cute.make_swizzle(2, 1, 3), 0, l)
      end
      local X = filled(l)
      local out = cute.zeros({n, 4}, cute.i32)
      cute.kernel("composed", function(mX, mOut)
        local t = cute.arch.thread_idx()
        local s = cute.make_smem_tensor(cute.i32, l)
        s[t] = mX[t] * 2
        cute.arch.sync_threads()
        local i, j = t % shape[1], t // shape[1]
        mOut[{t, 0}] = mX(ANY, j)[i]
        mOut[{t, 1}] = s(i, ANY)[j]
        mOut[{t, 2}] = cute.local_tile(mX, {2, 2}, {i // 2, j // 2})[
          {i % 2, j % 2}]
        local d = cute.zipped_divide(s, {2, 1})
        mOut[{t, 3}] = d[{i % 2, i // 2 + shape[1] // 2 * j}]
      end)(X, out):launch {grid = 1, block = n, device = DEVICE}
      for i = 0, n - 1 do
        local x = 1000 + l(i)
        assert.same({x, 2 * x, x, 2 * x},
                    {out(i, 0), out(i, 1), out(i, 2), out(i, 3)})
      end
      return true
    end)
  end)

  it("is copied with vectors that its functions keep contiguous", function()
    local seen = {}
    for _, text in ipairs {"(8,4):(1,16) o 0 o (8,4):(1,8)",
                           "(2,16):(1,4) o 0 o (8,4):(1,8)",
                           "(8,4):(1,16) o 2 o (4,4):(1,8)",
                           "Sw<1,2,3> o 0 o (8,4):(1,16) o 0 o (8,4):(1,8)"} do
      local l = L(text)
      local X, Y = filled(l), cute.zeros(l.outer.shape, cute.i32)
      local k = cute.kernel("wide", function(mX, mY)
        local s = cute.make_smem_tensor(cute.i32,
                                        cute.make_layout(l.outer.shape))
        cute.autovec_copy(mX, s)
        cute.arch.sync_threads()
        for i = 0, cute.size(l) - 1 do mY[i] = s[i] end
      end)(X, Y)
      local text_of = k:trace {block = 1, device = DEVICE}.source
      seen[#seen + 1] = text_of:find("int4", 1, true) and 4 or
                        text_of:find("int2", 1, true) and 2 or 1
      k:launch {grid = 1, block = 1, device = DEVICE}
      for i = 0, cute.size(l) - 1 do assert.equal(1000 + l(i), Y(i)) end
    end
    assert.same({4, 2, 2, 4}, seen)
  end)

  it("is carried by loops, with traced extents and offsets", function()
    local n = 24
    local X = cute.zeros({256}, cute.i32)
    for i = 0, 255 do X[i] = i end
    local out = cute.zeros({n, 3}, cute.i32)
    cute.kernel("loops", function(mX, mOut, m, o)
      local t = cute.arch.thread_idx()
      local A = cute.make_layout({m, 8}, {8, 1})
      local l = cute.make_composed_layout(A, o, cute.make_layout({4, 6}))
      raises("only if all its parts are static", cute.cosize, l)
      local x = cute.make_tensor(mX.iterator, l)
      mOut[{t, 0}] = x[t]
      mOut[{t, 1}] = l(t)
      local walk, sum = x(ANY, 0), cute.var(0)
      for _ in cute.range(3) do
        sum.value = sum.value + walk[t % 4]
        walk = cute.domain_offset({4}, walk)
      end
      mOut[{t, 2}] = sum.value
    end)(X, out, 5, 3):launch {grid = 1, block = n, device = DEVICE}
    local function f(i) return (i + 3) % 5 * 8 + (i + 3) // 5 end
    for t = 0, n - 1 do
      assert.equal(f(t), out(t, 0))
      assert.equal(f(t), out(t, 1))
      assert.equal(f(t % 4) + f(t % 4 + 4) + f(t % 4 + 8), out(t, 2))
    end
  end)
end)

describe("a tensor with a composed layout", function()
  it("has its coordinate in a report", function()
    local l = L "(4,5):(5,1) o 3 o (2,4):(4,1)"
    local k = cute.kernel("unwritten", function(mOut)
      local s = cute.make_smem_tensor(cute.i32, l)
      cute.when(cute.arch.thread_idx():ne(5), function()
        s[cute.arch.thread_idx()] = 1
      end)
      cute.arch.sync_threads()
      mOut[cute.arch.thread_idx()] = s[cute.arch.thread_idx()]
    end)
    local ok, err = pcall(function()
      return k(cute.zeros({8}, cute.i32)):launch {grid = 1, block = 8,
                                                  device = DEVICE}
    end)
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find("(1,2)", 1, true), tostring(err))
  end)

  it("is rejected where it has no meaning", function()
    raises("composed layout needs offsets >= 0", function()
      cute.kernel("below", function()
        cute.make_smem_tensor(cute.i32, L "8:-1 o 0 o 4:1")
      end)():trace {block = 1}
    end)
    raises("a register fragment cannot have", function()
      cute.kernel("registers", function()
        cute.make_rmem_tensor(L "8:1 o 0 o 4:1", cute.i32)
      end)():trace {block = 1}
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
