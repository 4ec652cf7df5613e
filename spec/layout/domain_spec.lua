-- Tests domains and codomains of layouts: sums of layouts, the common domain of
-- two layouts, and complements, divides and products with basis strides.
-- Results are checked by evaluation at every coordinate.
local cute = require "cute"
local oracle = require "spec.layout.oracle"
local support = require "spec.support"
local try = support.try
local L, raises = cute.layout, support.raises

local function fail(fmt, ...)
  local t = {...}
  for i = 1, #t do t[i] = tostring(t[i]) end
  error(fmt:format(table.unpack(t)), 2)
end

local function repeated(n, at_least, f)
  local r, got = oracle.random(n), 0
  for _ = 1, n do if f(r) then got = got + 1 end end
  assert.is_true(got >= at_least, ("only %d of %d"):format(got, n))
end

-- Returns a random layout whose values are coordinates with `axes` components.
-- Each component has a compact layout of its own; the modes of all these
-- layouts are in random order.
local function based(r, axes, holes)
  local shape, stride = {}, {}
  for k = 0, axes - 1 do
    local cur = 1
    for _ = 1, 1 + r:below(2) do
      if holes and r:below(3) == 0 then cur = cur * r:pick {2, 3} end
      local s = r:pick {1, 2, 2, 3, 4}
      local at = 1 + r:below(#shape + 1)
      table.insert(shape, at, s)
      table.insert(stride, at, cur * cute.E(k))
      cur = cur * s
    end
  end
  return cute.make_layout(shape, stride)
end

local function add(a, b)
  if type(a) ~= "table" and type(b) ~= "table" then return a + b end
  if type(a) ~= "table" then a, b = b, a end
  if type(b) ~= "table" then assert(b == 0) return a end
  local t = {}
  for i = 1, math.max(#a, #b) do t[i] = add(a[i] or 0, b[i] or 0) end
  return t
end

-- Returns a coordinate of `axes` modes as text. Missing modes count as 0.
local function key(c, axes)
  if type(c) ~= "table" then c = {c} end
  local t = {}
  for i = 1, axes do t[i] = c[i] or 0 end
  return table.concat(t, ",")
end

-- Reports whether s elements at stride d stay within one leaf of the shape. An
-- integer is a shape with one leaf.
local function aligned(shape, d, s)
  local from = 1
  for _, e in ipairs(oracle.leaves(shape)) do
    if d % from == 0 and from * e % (d * s) == 0 then return true end
    from = from * e
  end
  return false
end

describe("greatest_common_domain", function()
  it("has all factors by which both shapes count, and no others", function()
    repeated(600, 600, function(r)
      local a, b = r:shape(2), r:shape(2)
      if r:below(2) == 0 then a, b = {a, 6}, {6, b} end
      local g = cute.greatest_common_domain(a, b)
      assert.equal(g, cute.greatest_common_domain(b, a))
      local s, d = g.shape, g.stride
      for k = 1, #s do
        if s[k] > 1 and not (aligned(a, d[k], s[k]) and
                             aligned(b, d[k], s[k])) then
          fail("%s of %s and %s", g, cute.tuple {a}, cute.tuple {b})
        end
      end
      local n = math.min(oracle.size(a), oracle.size(b))
      for at = 1, math.min(n, 200) do
        for _, p in ipairs {2, 3, 5} do
          if aligned(a, at, p) and aligned(b, at, p) then
            local has = false
            for k = 1, #s do
              has = has or d[k] > 0 and at % d[k] == 0 and
                    d[k] * s[k] % (at * p) == 0
            end
            if not has then
              fail("%s of %s and %s lacks %s:%s", g, cute.tuple {a},
                   cute.tuple {b}, p, at)
            end
          end
        end
      end
      return true
    end)
  end)

  it("accepts values with a shape", function()
    assert.equal("(3,7):(1,30)", tostring(
      cute.greatest_common_domain(L "(6,35):(35,1)", {15, 14})))
    assert.equal("(1):(0)", tostring(
      cute.greatest_common_domain({5, 3}, {3, 5})))
    assert.equal("(10):(1)", tostring(cute.greatest_common_domain(10, 10)))
    cute.kernel("k", function(_, n)
      raises("positive and static", cute.greatest_common_domain, {n}, 4)
    end)(cute.zeros({1}, cute.i32), 3):trace {block = 1}
  end)
end)

describe("layout_add", function()
  it("is the sum at every index", function()
    repeated(1500, 500, function(r)
      local x = r:shape(2)
      local y = r:below(2) == 0 and x or {r:pick {2, 3, 4, 6}, 0}
      if y ~= x then
        if oracle.size(x) % y[1] ~= 0 then return false end
        y[2] = oracle.size(x) // y[1]
      end
      local a = cute.make_layout(x, r:stride(x))
      local b = cute.make_layout(y, r:stride(y))
      local sum = try(cute.layout_add, a, b)
      if not sum then return false end
      assert.equal(sum, cute.layout_add(b, a))
      assert.equal(cute.size(a), cute.size(sum))
      if cute.size(a) > 2000 then return false end
      local p, q = oracle.table(a), oracle.table(b)
      for i, v in pairs(oracle.table(sum)) do
        if v ~= p[i] + q[i] then fail("%s + %s = %s at %s", a, b, sum, i) end
      end
      return true
    end)
  end)

  it("rejects values that are no layout", function()
    raises("differ in size", cute.layout_add, L "4:1", L "5:1")
    raises("domain is (1):(0)", cute.layout_add, L "(2,3):(3,1)",
           L "(3,2):(2,1)")
    raises("no single stride can represent (2,1)", cute.layout_add,
           L "(2,3):(1@0,1@1)", L "6:1@0")
    raises("cannot be added", cute.layout_add, L "8:1 o 0 o 4:1", L "4:1")
    assert.equal("(2,3):(3@0,1@1)", tostring(cute.layout_add(
      L "(2,3):(1@0,1@1)", L "(2,3):(2@0,0)")))
  end)
end)

describe("coprofile", function()
  it("is congruent with the values", function()
    for text, want in pairs {
      ["(4,5):(1,4)"] = "0", ["(4,5):(1@0,1@1)"] = "(0,0)", ["4:0"] = "0",
      ["(4,(2,3)):(1@0,(1@0@1,1@1@1))"] = "(0,(0,0))",
      ["(4,5):(1@0,1@1) o 2 o 8:1"] = "(0,0)", ["4:1@1"] = "(0,0)",
      ["(4,5):(5,1) o 0 o (2,3):(1@0,1@1)"] = "0",
      ["Sw<1,1,1> o 0 o 8:1"] = "0",
    } do
      assert.equal(want, tostring(cute.coprofile(L(text))), text)
    end
    assert.equal("(0,0)", tostring(cute.coprofile(
      cute.make_identity_tensor({4, 8}))))
  end)
end)

describe("a composition of coordinates", function()
  it("is checked where modes may carry", function()
    repeated(1500, 500, function(r)
      local a, shape = based(r, 2), r:shape(1)
      local b = cute.make_layout(shape, r:strides(shape))
      local ok, c = pcall(cute.composition, a, b)
      if not ok then
        assert.is_truthy(tostring(c):find("[inadmissible]", 1, true), c)
        return false
      end
      for i = 0, cute.size(b) - 1 do
        local x = b(i)
        if x >= 0 and key(cute.crd2idx(x, a), 2) ~= key(cute.crd2idx(i, c), 2)
        then
          fail("%s o %s = %s at %s", a, b, c, i)
        end
      end
      return true
    end)
  end)
end)

describe("a complement of coordinates", function()
  it("is disjoint, and complete if the extent divides #long", function()
    repeated(300, 100, function(r)
      local axes = 1 + r:below(3)
      local l = based(r, axes, true)
      local box, room, want = cute.wrap(cute.coshape(l)), {}, 1
      for k = 1, axes do
        room[k] = box[k] * r:pick {1, 2, 3}
        want = want * room[k]
      end
      local c = try(cute.complement, l, room)
      if not c then return false end
      local seen, n = {}, cute.size(l) * cute.size(c)
      if n > 3000 then return false end
      for i = 0, cute.size(l) - 1 do
        for j = 0, cute.size(c) - 1 do
          local at = add(cute.crd2idx(i, l), cute.crd2idx(j, c))
          local text = key(at, axes)
          if seen[text] then fail("%s and %s meet at %s", l, c, text) end
          seen[text] = true
          for k, x in ipairs(cute.wrap(at)) do
            if n == want and x >= room[k] then fail("%s, %s", l, c) end
          end
        end
      end
      -- The complement may have more elements than needed, because an extent is
      -- rounded up if the gaps do not divide the codomain.
      if n < want then fail("%s and %s do not fill %s", l, c, want) end
      return n == want
    end)
    assert.equal("(1,1):(4@0,5@1)",
                 tostring(cute.complement(L "(4,5):(1@0,1@1)")))
    assert.equal("((2,2),2):((1@0,8@0),5@1)", tostring(
      cute.complement(L "(4,5):(2@0,1@1)", {16, 10})))
    raises("fewer modes than the coordinates", cute.complement,
           L "(4,5):(1@0,1@1)", 8)
    raises("cannot be added", cute.complement, L "(4,5):(1@0,1)", {8, 8})
    raises("the modes overlap", cute.complement, L "(4,5):(1@0,2@0)", {16})
  end)

  it("divides layouts by tiles of coordinates #long", function()
    repeated(600, 200, function(r)
      local t = based(r, 2)
      local box, shape = cute.coshape(t), {}
      for k = 1, 2 do shape[k] = box[k] * r:pick {1, 2, 3} end
      local l = r:below(2) == 0 and cute.make_identity_layout(shape)
                or cute.make_layout(shape, r:compact(shape))
      local d = try(cute.logical_divide, l, t)
      if not d or cute.size(l) > 3000 then return false end
      local rest, seen = cute.complement(t, shape), {}
      assert.equal(cute.size(l), cute.size(d))
      for i = 0, cute.size(t) - 1 do
        for j = 0, cute.size(rest) - 1 do
          local at = add(t(i), rest(j))
          local want, got = l(at), d(i, j)
          if key(want, 2) ~= key(got, 2) then
            fail("%s by %s = %s at %s", l, t, d, cute.tuple {i, j})
          end
          seen[key(got, 2)] = true
        end
      end
      local n = 0
      for _ in pairs(seen) do n = n + 1 end
      assert.equal(cute.size(l), n)
      return true
    end)
  end)

  it("multiplies disjoint blocks of coordinates", function()
    repeated(500, 300, function(r)
      local l = based(r, 2, true)
      local t = r:below(2) == 0 and based(r, 2) or cute.make_layout(4)
      local p = try(cute.logical_product, l, t)
      if cute.size(l) * cute.size(t) > 3000 then return false end
      local box = cute.coshape(l)
      local room = cute.complement(l, {box[1] * 64, box[2] * 64})
      if not p or not try(cute.composition, room, t) then return false end
      assert.equal(l, cute.get(p, 0))
      local seen = {}
      for i = 0, cute.size(l) - 1 do
        for j = 0, cute.size(t) - 1 do
          local at = key(p(i, j), 2)
          if seen[at] then fail("%s x %s = %s meets at %s", l, t, p, at) end
          seen[at] = true
        end
      end
      return true
    end)
    assert.equal("((4,5),(2,3)):((1@0,1@1),(4@0,5@1))", tostring(
      cute.logical_product(L "(4,5):(1@0,1@1)", L "(2,3):(1@0,1@1)")))
    assert.equal("((4,2),(5,3)):((1@0,4@0),(1@1,5@1))", tostring(
      cute.blocked_product(L "(4,5):(1@0,1@1)", L "(2,3):(1@0,1@1)")))
  end)
end)
-- SPDX-License-Identifier: MIT
