-- Tests layouts with XORed strides (F2) against carry-less products that this
-- spec computes.
local cute = require "cute"
local oracle = require "spec.layout.oracle"
local support = require "spec.support"
local ANY, L, raises = cute._, cute.layout, support.raises

local function clmul(a, b)
  local x = 0
  while a > 0 do
    if a & 1 == 1 then x = x ~ b end
    a, b = a >> 1, b << 1
  end
  return x
end

local function eval(shape, stride, i)
  local x = 0
  for k, s in ipairs(shape) do
    local c = k < #shape and i % s or i
    x = x ~ clmul(c, stride[k])
    i = i // s
  end
  return x
end

-- Returns a layout with XORed strides, and a function of an index to its value.
local function xored(r, extents)
  local shape, stride, f2 = {}, {}, {}
  for k = 1, 1 + r:below(3) do
    shape[k] = r:pick(extents or {1, 2, 3, 4, 4, 5, 8})
    stride[k] = r:below(3) == 0 and r:below(64) or 1 << r:below(6)
    f2[k] = cute.F2(stride[k])
  end
  return cute.make_layout(shape, f2),
         function(i) return eval(shape, stride, i) end
end

local POWERS = {1, 2, 4, 8}

-- Returns a layout whose columns (strides in F2) are linearly independent, so
-- that it is bijective.
local function one_to_one(r)
  local shape, cols = {}, {}
  local n = 2 + r:below(5)
  for k = 1, n do cols[k] = 1 << (k - 1) end
  for _ = 1, 12 do
    local a, b = 1 + r:below(n), 1 + r:below(n)
    if a ~= b then cols[a] = cols[a] ~ cols[b] end
  end
  for k = 1, n do shape[k] = 2 end
  local stride = {}
  for k = 1, n do stride[k] = cute.F2(cols[k]) end
  return cute.make_layout(shape, stride)
end

local function same(what, x, f, n)
  assert.equal(n or cute.size(x), cute.size(x), what)
  for i = 0, cute.size(x) - 1 do
    if x(i) ~= f(i) then
      error(("%s: %s is %s at %d, not %s"):format(what, x, x(i), i, f(i)))
    end
  end
end

local function repeated(n, f)
  local r = oracle.random(n)
  for _ = 1, n do f(r) end
end

describe("a layout of XORed strides", function()
  it("is evaluated, printed, compared and rearranged", function()
    repeated(400, function(r)
      local l, f = xored(r)
      same("layout", l, f)
      assert.is_true(L(tostring(l)) == l)
      same("coalesce", cute.coalesce(l), f, cute.size(l))
      same("flatten", cute.flatten(l), f)
      same("group", cute.group_modes(l, 0, cute.rank(l)), f)
      same("filter_zeros", cute.with_shape(l, {cute.size(l)}), f)
      local most = 0
      for i = 0, cute.size(l) - 1 do most = math.max(most, f(i)) end
      assert.equal(most + 1, cute.cosize(l))
      assert.is_true(l:equals(cute.coalesce(l)))
    end)
    assert.equal("F15", tostring(3 * cute.F2(5)))
    assert.equal("F4", tostring(cute.F2(5) + cute.F2(1)))
    assert.equal(9, cute.F2(9).value)
    assert.is_true(cute.F2(9) == cute.parse "F9")
    assert.equal(0, cute.F2(0))
  end)

  it("slices", function()
    repeated(300, function(r)
      local l, f = xored(r)
      if cute.rank(l) < 2 then return end
      local k = r:below(cute.size(l, 0))
      local n = cute.size(l) // cute.size(l, 0)
      local c = {k}
      for i = 2, cute.rank(l) do c[i] = ANY end
      local part, off = cute.slice_and_offset(c, l)
      for i = 0, n - 1 do
        assert.equal(f(k + i * cute.size(l, 0)), off + part(i))
      end
    end)
  end)

  it("composes on either side, and is divided", function()
    repeated(400, function(r)
      local l, f = xored(r)
      local shape = r:shape(1)
      local d = r:compact(shape)
      local b = cute.make_layout(shape, d)
      same("l o b", cute.composition(l, b),
           function(i) return f(oracle.eval(shape, d, i)) end, cute.size(b))
      same("b o l", cute.composition(b, l),
           function(i) return oracle.eval(shape, d, f(i)) end, cute.size(l))
      local x, g = xored(r)
      same("x o l", cute.composition(x, l), function(i) return g(f(i)) end,
           cute.size(l))
      local p, q = xored(r, POWERS)
      local half = cute.size(p) // 2
      if half > 0 then
        same("divide", cute.logical_divide(p, half), q, cute.size(p))
      end
    end)
  end)

  it("has inverses", function()
    repeated(300, function(r)
      local l = one_to_one(r)
      local n = cute.size(l)
      local R, back = cute.right_inverse(l), cute.left_inverse(l)
      assert.equal(n, cute.size(R))
      for i = 0, n - 1 do
        assert.equal(i, l(R(i)))
        assert.equal(i, back(l(i)))
        assert.equal(i, cute.get_1d_coord(l, l(i)))
      end
      local m, f = xored(r, POWERS)
      R, back = cute.right_inverse(m), cute.left_inverse(m)
      for i = 0, cute.size(R) - 1 do assert.equal(i, f(R(i))) end
      for i = 0, cute.size(m) - 1 do assert.equal(f(i), f(back(f(i)))) end
    end)
  end)

  it("equals a swizzle of a compact layout", function()
    for b = 1, 3 do
      local s = cute.composition(cute.make_swizzle(b, 0, 3), L "(8,8):(1,8)")
      local f = cute.make_layout({8, 1 << b, 8 >> b}, {
        cute.F2(1), cute.F2(9), cute.F2(8 << b)})
      assert.is_true(s:equals(f))
    end
  end)

  it("is a layout of tensors, at traced coordinates too", function()
    repeated(8, function(r)
      local l = one_to_one(r)
      local n = cute.size(l)
      local X, out = cute.zeros(l, cute.i32), cute.zeros({n, 3}, cute.i32)
      for i = 0, n - 1 do X[i] = 100 + i end
      cute.kernel("xored", function(mX, mOut)
        local t = cute.arch.thread_idx()
        local s = cute.make_smem_tensor(cute.i32, l)
        s[t] = mX[t] * 2
        cute.arch.sync_threads()
        mOut[{t, 0}] = mX[t]
        mOut[{t, 1}] = s[t]
        mOut[{t, 2}] = l(t)
      end)(X, out):launch {grid = 1, block = n, device = "sim:sm_90a"}
      for i = 0, n - 1 do
        assert.same({100 + i, 200 + 2 * i, l(i)},
                    {out(i, 0), out(i, 1), out(i, 2)})
      end
    end)
  end)
end)

describe("a layout of XORed strides", function()
  it("is rejected where it has no meaning", function()
    local l = L "(8,8):(F1,F9)"
    raises("cannot mix strides that add up", L "(4,4):(F1,2)", 3)
    raises("cannot mix strides that add up", L "(4,4):(F1,1@0)", 3)
    raises("has no complement", cute.complement, l, 64)
    raises("has no complement", cute.logical_product, l, 3)
    raises("XORed strides cannot be scaled", cute.upcast, l, 2)
    raises("powers of two", cute.left_inverse, L "(3,8):(F1,F9)")
    raises("cannot be ordered", cute.make_layout_like, l)
    raises("cannot be added", cute.layout_add, l, l)
    raises("from 0 to 2^59 - 1", cute.F2, -1)
    raises("must be an integer of at least 0, not F4", cute.make_layout,
           {cute.F2(4)})
    raises("expected an integer of at least 0", cute.layout, "F4:1")
    raises("[overflow]", L "(4,1024):(F1,F288230376151711744)", 5, 1000)
    raises("operator '*' is not defined for -1 and F3",
           function() return -1 * cute.F2(3) end)
    raises("operator '*' is not defined for -1 and F", l, -1, 0)
  end)
end)
-- SPDX-License-Identifier: MIT
