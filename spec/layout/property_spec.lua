-- Tests the laws of the layout algebra with random layouts from fixed seeds.
-- The layouts are nested to depth 3, have zero and negative strides, and
-- coprime and other extents. The result of an accepted operation must be right
-- at every coordinate. An error is always allowed, but enough cases must be
-- accepted.
local cute = require "cute"
local oracle = require "spec.layout.oracle"
local try = require "spec.support".try

local function layout(r, depth, extents)
  local shape = r:shape(depth or 3, extents)
  while oracle.size(shape) > 400 do shape = r:shape(depth or 3, extents) end
  return cute.make_layout(shape, r:stride(shape))
end

local POWERS = {1, 2, 2, 4, 4, 8, 16}

-- Runs f(random) n times. f returns true if the algebra accepted its case. At
-- least `at_least` of the n calls must return true.
local function repeated(n, at_least, f)
  local r, got = oracle.random(n), 0
  for _ = 1, n do
    if f(r) then got = got + 1 end
  end
  assert.is_true(got >= at_least,
    ("only %d of %d cases were admissible"):format(got, n))
end

local function fail(fmt, ...)
  local t = {...}
  for i = 1, #t do t[i] = tostring(t[i]) end
  error(fmt:format(table.unpack(t)), 2)
end

-- Reports whether l is regular: if its modes are sorted by stride, each stride
-- is a multiple of the previous mode's extent times its stride. Only then does
-- CuTe's complement fill all gaps.
local function regular(l)
  local f = cute.coalesce(cute.filter(l))
  local s, d = cute.wrap(f.shape), cute.wrap(f.stride)
  local modes = {}
  for i = 1, #s do modes[i] = {s[i], d[i]} end
  table.sort(modes, function(a, b) return a[2] < b[2] end)
  local last = 1
  for _, m in ipairs(modes) do
    if m[2] % last ~= 0 then return false end
    last = m[1] * m[2]
  end
  return true
end

local function same_list(a, b)
  if #a ~= #b then return false end
  for i = 1, #a do if a[i] ~= b[i] then return false end end
  return true
end

local function sorted(t)
  local list = {}
  for i = 0, #t do list[#list + 1] = t[i] end
  table.sort(list)
  return list
end

describe("random layouts", function()
  it("evaluate at 1-D, flat and hierarchical coordinates", function()
    repeated(120, 120, function(r)
      local l = layout(r)
      local shape, stride = l.shape, l.stride
      local n = oracle.size(shape)
      -- coordinates below, inside and beyond the domain
      for i = -n - 3, 2 * n + 3 do
        local want = oracle.eval(shape, stride, i)
        local c = oracle.coord(shape, i)
        if l(i) ~= want or l(c) ~= want then fail("%s at %s", l, i) end
        if cute.crd2idx(c, shape) ~= i then fail("%s at %s", c, i) end
        assert.equal(cute.tuple(c), cute.idx2crd(i, shape))
      end
      for i = 0, n - 1 do
        local want, c = l(i), oracle.coord(shape, i)
        if type(c) == "table" then
          local flat = {}
          for k, s in ipairs(shape) do
            local sum = 0
            for j, x in ipairs(oracle.leaves(c[k])) do
              local below = 1
              for q, e in ipairs(oracle.leaves(s)) do
                if q < j then below = below * e end
              end
              sum = sum + x * below
            end
            flat[k] = sum
          end
          if l(table.unpack(flat)) ~= want then fail("%s at %s", l, i) end
        end
      end
      return true
    end)
  end)

  it("parse from their printed form", function()
    repeated(250, 250, function(r)
      local l = layout(r)
      if cute.layout(tostring(l)) ~= l then fail("%s", l) end
      return true
    end)
  end)

  it("keep their function when coalesced and filtered", function()
    repeated(300, 300, function(r)
      local l = layout(r)
      local want, c = oracle.table(l), cute.coalesce(l)
      local got = oracle.table(c)
      for i = 0, #want do
        if got[i] ~= want[i] then fail("coalesce %s at %s", l, i) end
      end
      if #got ~= #want or cute.depth(c) > 1 then fail("coalesce %s", l) end
      local all, kept = {}, {}
      for i = 0, #want do all[want[i]] = true end
      for _, x in pairs(oracle.table(cute.filter(l))) do kept[x] = true end
      for x in pairs(all) do if not kept[x] then fail("filter %s", l) end end
      for x in pairs(kept) do if not all[x] then fail("filter %s", l) end end
      if not l:equals(c) then fail("%s equals %s", l, c) end
      return true
    end)
  end)

  it("compose as functions do", function()
    for _, extents in ipairs {false, POWERS} do
      repeated(1500, 315, function(r)
        local a, b = layout(r, 2, extents or nil), layout(r, 2, extents or nil)
        local c = try(cute.composition, a, b)
        if not c then return false end
        local at, want, read = oracle.table(b), oracle.table(c),
                               oracle.reader(a)
        for i = 0, #at do
          if read(at[i]) ~= want[i] then
            fail("%s o %s = %s, wrong at %s", a, b, c, i)
          end
        end
        if not cute.compatible(b.shape, c.shape) then
          fail("%s o %s = %s is not compatible", a, b, c)
        end
        return true
      end)
    end
  end)

  it("compose wherever a layout has the values", function()
    local rejected = 0
    for _, extents in ipairs {false, POWERS} do
      repeated(1500, 675, function(r)
        local a, b = layout(r, 2, extents or nil), layout(r, 1, extents or nil)
        local read, at = oracle.reader(a), oracle.reader(b)
        local c = try(cute.composition, a, b)
        if c then return true end
        rejected = rejected + 1
        if oracle.is_layout(function(i) return read(at(i)) end, b.shape) then
          fail("%s o %s was rejected", a, b)
        end
        return false
      end)
    end
    assert.is_true(rejected > 150, rejected)
  end)
end)

describe("random layouts", function()
  it("compose with coordinates as functions do", function()
    repeated(2000, 180, function(r)
      local a = layout(r, 3, {1, 2, 2, 3, 4})
      if type(a.shape) ~= "table" then return false end
      -- The strides of b are basis strides: each mode of b moves along a random
      -- mode of a. Several modes of b may move along the same mode of a.
      local shape, stride = {}, {}
      for i = 1, 1 + r:below(3) do
        local m = r:below(#a.shape)
        local inner = a.shape[m + 1]
        local e = type(inner) == "table" and r:below(2) == 0
          and cute.E(m, r:below(#inner)) or cute.E(m)
        shape[i], stride[i] = r:pick {1, 2, 2, 3}, r:pick {1, 1, 2, -1, 4} * e
      end
      local b = cute.make_layout(shape, stride)
      local c = try(cute.composition, a, b)
      if not c then return false end
      for i = 0, cute.size(b) - 1 do
        -- at[m] is the sum of the offsets along mode m of a, over all modes of
        -- b.
        local at, inside = {}, true
        for k, x in ipairs(oracle.coord(shape, i)) do
          local mode, v = stride[k].mode, stride[k].value * x
          local t, s = at, a.shape
          for q = 1, #mode - 1 do
            t[mode[q] + 1] = t[mode[q] + 1] or {}
            t, s = t[mode[q] + 1], s[mode[q] + 1]
          end
          local m = mode[#mode] + 1
          assert(type(t[m] or 0) ~= "table")
          t[m] = (t[m] or 0) + v
          inside = inside and math.abs(t[m]) < oracle.size(s[m])
        end
        local function full(s, t)
          if type(t) ~= "table" then return t or 0 end
          local list = {}
          for k, e in ipairs(s) do list[k] = full(e, t[k]) end
          return list
        end
        local want = oracle.eval(a.shape, a.stride, full(a.shape, at))
        if inside and c(i) ~= want then
          fail("%s o %s = %s, wrong at %s", a, b, c, i)
        end
      end
      return true
    end)
  end)

  it("have complements that are disjoint, ordered and complete", function()
    repeated(1250, 225, function(r)
      local l, n = layout(r, 2), 1 + r:below(300)
      local c = try(cute.complement, l, n)
      if not c then return false end
      local t, taken = oracle.table(c), {}
      for _, x in pairs(oracle.table(l)) do taken[x] = true end
      for i = 1, #t do
        if t[i] <= t[i - 1] then fail("%s: %s is not ordered", l, c) end
        if taken[t[i]] then fail("%s: %s meets it at %s", l, c, t[i]) end
      end
      if regular(l) and (#t + 1) * cute.size(cute.filter(l)) < n then
        fail("%s: %s does not reach %s", l, c, n)
      end
      return true
    end)
  end)

  it("have inverses that invert", function()
    repeated(1250, 675, function(r)
      local l = layout(r, 2)
      local R, read = cute.right_inverse(l), oracle.reader(l)
      for i, x in pairs(oracle.table(R)) do
        if read(x) ~= i then
          fail("right_inverse %s = %s at %s", l, R, i)
        end
      end
      local L = try(cute.left_inverse, l)
      if not L then return false end
      local back = oracle.reader(L)
      for i, x in pairs(oracle.table(l)) do
        if read(back(x)) ~= x then
          fail("left_inverse %s = %s at %s", l, L, i)
        end
      end
      return true
    end)
  end)
end)

describe("random layouts", function()
  it("have inverses of coordinates", function()
    local rights, lefts = 0, 0
    repeated(1000, 675, function(r)
      local shape, stride = {}, {}
      for i = 1, 1 + r:below(4) do
        local m = r:below(3)
        shape[i] = r:pick {1, 2, 2, 3, 4, {2, 2}}
        local e = m == 0 and cute.E(0) or cute.E(1, m - 1)
        local v = r:pick {0, 1, 1, 2, 2, 3, 4, 6, 8}
        stride[i] = type(shape[i]) == "table" and {e, 2 * e} or v * e
      end
      local l = cute.make_layout(shape, stride)
      local R = try(cute.right_inverse, l)
      if not R then return false end
      local coordinates = cute.product_like(R.shape, cute.crd2idx(0, l))
      for i = 0, cute.size(R) - 1 do
        local c = cute.idx2crd(i, coordinates)
        if tostring(cute.crd2idx(R(c), l)) ~= tostring(c) then
          fail("right_inverse %s = %s at %s", l, R, c)
        end
      end
      if cute.size(R) > 1 then rights = rights + 1 end
      local L = try(cute.left_inverse, l)
      if not L then return true end
      for i = 0, cute.size(l) - 1 do
        local c = cute.crd2idx(i, l)
        if tostring(cute.crd2idx(L(c), l)) ~= tostring(c) then
          fail("left_inverse %s = %s at %s", l, L, i)
        end
      end
      lefts = lefts + 1
      return true
    end)
    assert.is_true(rights > 350 and lefts > 350, rights .. " " .. lefts)
    assert.equal("(5,4):(4,1)", tostring(cute.right_inverse(
      cute.layout "(4,5):(1@1,1@0)")))
  end)

  it("have complete inverses if they are injective and compact", function()
    repeated(250, 250, function(r)
      local shape = r:shape(2)
      local l = cute.make_layout(shape, r:compact(shape))
      assert.equal(oracle.size(shape), cute.size(cute.right_inverse(l)))
      assert.is_true(cute.right_inverse(l):equals(cute.left_inverse(l)))
      return true
    end)
  end)

  it("divide into all of their elements, once each", function()
    repeated(750, 110, function(r)
      local shape = r:shape(2)
      local l = cute.make_layout(shape, r:compact(shape, true))
      local t = layout(r, 1, {1, 2, 2, 3, 4})
      if cute.size(l) % cute.size(t) ~= 0 then return false end
      local d = try(cute.logical_divide, l, t)
      if not d or cute.size(d) ~= cute.size(l) then return false end
      assert.equal(2, cute.rank(d))
      local tile = try(cute.composition, l, t)
      if not tile then return false end
      assert.is_true(cute.get(d, 0):equals(tile))
      if not same_list(sorted(oracle.table(l)), sorted(oracle.table(d))) then
        fail("%s by %s = %s", l, t, d)
      end
      assert.equal(d, cute.zipped_divide(l, t))
      assert.is_true(d:equals(cute.tiled_divide(l, t)))
      assert.is_true(d:equals(cute.flat_divide(l, t)))
      return true
    end)
  end)

  it("keep their elements when tiles do not divide their extents", function()
    local rounded = 0
    repeated(2000, 900, function(r)
      -- Rounding up an extent adds elements. Some strides leave gaps, so that
      -- these elements do not coincide with others of the layout.
      local shape, stride, next_ = {}, {}, 1
      for i = 1, 1 + r:below(3) do
        shape[i], stride[i] = r:pick {2, 3, 4, 5, 6, 8, 9, 10}, next_
        next_ = next_ * shape[i] * r:pick {1, 1, 16}
      end
      local l, t = cute.make_layout(shape, stride), layout(r, 1)
      local d = try(cute.logical_divide, l, t)
      if not d then return false end
      local seen = {}
      for _, x in pairs(oracle.table(d)) do seen[x] = (seen[x] or 0) + 1 end
      local times = cute.size(t) // cute.size(cute.filter(t))
      for i, x in pairs(oracle.table(l)) do
        if seen[x] ~= times then
          fail("%s by %s = %s has element %s %s times", l, t, d, i, seen[x])
        end
      end
      if cute.size(d) > cute.size(l) * times then rounded = rounded + 1 end
      local rest = cute.complement(t, cute.coalesce(l).shape)
      local inside, read, n = oracle.reader(l), oracle.reader(d), cute.size(t)
      -- Only elements within the first mode of l are compared, because the
      -- result may round up extents.
      local first = cute.coalesce(l)
      first = cute.size(first, 0)
      for i = 0, cute.size(d) - 1 do
        local x = t(i % n) + rest(i // n)
        if x < first and read(i) ~= inside(x) then
          fail("%s by %s = %s, wrong at %s", l, t, d, i)
        end
      end
      return true
    end)
    assert.is_true(rounded > 150, rounded)
  end)
end)

describe("random layouts", function()
  it("divide mode by mode", function()
    repeated(750, 180, function(r)
      local l = layout(r, 2)
      if type(l.shape) ~= "table" then return false end
      local tiler = {}
      for i, s in ipairs(l.shape) do
        local n = oracle.size(s)
        tiler[i] = r:pick {1, n, n % 2 == 0 and 2 or 1}
      end
      local z = try(cute.zipped_divide, l, tiler)
      local d = try(cute.logical_divide, l, tiler)
      if not z or not d then return false end
      assert.equal(2, cute.rank(z))
      assert.equal(#tiler, cute.rank(d))
      for i in ipairs(tiler) do
        assert.equal(cute.get(d, i - 1, 0), cute.get(z, 0, i - 1))
        assert.equal(cute.get(d, i - 1, 1), cute.get(z, 1, i - 1))
        local own = cute.logical_divide(cute.get(l, i - 1), tiler[i])
        assert.equal(own, cute.get(d, i - 1))
      end
      return true
    end)
  end)

  it("multiply, are tiled and shaped by definition #long", function()
    local rejected = 0
    repeated(2500, 1350, function(r)
      local l, t = layout(r, 2), layout(r, 1)
      local room = cute.size(l) * cute.cosize(t)
      local free = try(cute.complement, l, room)
      if not free then return false end
      local skip, at = oracle.reader(free), oracle.reader(t)
      local p = try(cute.logical_product, l, t)
      if not p then
        rejected = rejected + 1
        if oracle.is_layout(function(i) return skip(at(i)) end, t.shape) then
          fail("%s times %s was rejected", l, t)
        end
        return false
      end
      local want, read, n = oracle.reader(l), oracle.reader(p), cute.size(l)
      local all = {}
      for i = 0, cute.size(p) - 1 do
        all[i] = want(i % n) + skip(at(i // n))
        if read(i) ~= all[i] then fail("%s x %s = %s at %s", l, t, p, i) end
      end
      for _, op in ipairs {"blocked_product", "raked_product"} do
        local q = try(cute[op], l, t)
        if q and not same_list(sorted(all), sorted(oracle.table(q))) then
          fail("%s of %s and %s = %s", op, l, t, q)
        end
      end
      return true
    end)
    assert.is_true(rejected > 50, rejected)
    repeated(1000, 675, function(r)
      local l, shape = layout(r, 2), r:shape(1)
      local w = try(cute.with_shape, l, shape)
      local read = oracle.reader(l)
      if not w then
        if oracle.is_layout(read, shape) then
          fail("%s with shape %s was rejected", l, cute.pretty_str(shape))
        end
        return false
      end
      for i, x in pairs(oracle.table(w)) do
        if read(i) ~= x then fail("%s as %s at %s", l, w, i) end
      end
      return true
    end)
  end)

  it("multiply by disjoint blocks", function()
    repeated(600, 105, function(r)
      local shape, times = r:shape(1), r:shape(1)
      local l = cute.make_layout(shape, r:compact(shape, true))
      local t = cute.make_layout(times, r:compact(times))
      local p = try(cute.logical_product, l, t)
      if not p then return false end
      assert.equal(l, cute.get(p, 0))
      assert.is_true(cute.compatible(t.shape, cute.get(p, 1).shape))
      local seen = {}
      for _, x in pairs(oracle.table(p)) do
        if seen[x] then fail("%s x %s = %s meets at %s", l, t, p, x) end
        seen[x] = true
      end
      for _, op in ipairs {"blocked_product", "raked_product"} do
        local q = try(cute[op], l, t)
        if q then
          assert.equal(cute.size(l) * cute.size(t), cute.size(q))
          if not same_list(sorted(oracle.table(p)), sorted(oracle.table(q)))
          then fail("%s %s %s = %s", op, l, t, q) end
        end
      end
      return true
    end)
  end)
end)

describe("random layouts", function()
  it("tile a shape with whole blocks", function()
    repeated(300, 135, function(r)
      local block = {r:pick {1, 2, 3, 4}, r:pick {1, 2, 4}}
      local holes = r:below(2) == 0
      local l = cute.make_layout(block, r:compact(block, holes))
      local n, m = 1 + r:below(4), 1 + r:below(4)
      local t = try(cute.tile_to_shape, l, {block[1] * n, block[2] * m},
                    r:below(2) == 0 and {0, 1} or {1, 0})
      if not t then return false end
      for i = 0, block[1] - 1 do
        for j = 0, block[2] - 1 do assert.equal(l(i, j), t(i, j)) end
      end
      local seen = sorted(oracle.table(t))
      for i, x in ipairs(seen) do
        if not holes then assert.equal(i - 1, x) end
        if x == seen[i - 1] then fail("%s = %s meets at %s", l, t, x) end
      end
      return true
    end)
  end)

  it("have fragments of their shape", function()
    repeated(300, 300, function(r)
      local l = layout(r, 2)
      local f = cute.make_fragment_like(l)
      if cute.rank(l) ~= 2 and cute.rank(l) ~= 1 then return true end
      if not cute.congruent(f.shape, l.shape) then fail("%s of %s", f, l) end
      return true
    end)
    -- The fragment of a compact layout contains each element once.
    repeated(150, 150, function(r)
      local shape = {r:pick {1, 2, 3, 4}, r:shape(1)}
      local f = cute.make_fragment_like(cute.make_layout(shape,
                                                         r:compact(shape)))
      for i, x in ipairs(sorted(oracle.table(f))) do
        if x ~= i - 1 then fail("%s of %s", f, cute.pretty_str(shape)) end
      end
      return true
    end)
  end)

  it("have slices that equal full indexing", function()
    repeated(750, 315, function(r)
      local l = layout(r)
      if type(l.shape) ~= "table" then return false end
      local full = oracle.coord(l.shape, r:below(cute.size(l)))
      -- Replaces random entries of the coordinate by `_`. Appends the replaced
      -- entries to `rest`, in order.
      local rest = {}
      local function mask(c, depth)
        if (type(c) ~= "table" or depth > 0) and r:below(2) == 0 then
          rest[#rest + 1] = c
          return cute._
        end
        if type(c) ~= "table" then return c end
        local t = {}
        for i, x in ipairs(c) do t[i] = mask(x, depth + 1) end
        return t
      end
      local coord = mask(full, 0)
      local s, off = cute.slice_and_offset(coord, l)
      assert.equal(#rest, cute.rank(s))
      if #rest == 0 then
        assert.equal(l(full), off)
      else
        assert.equal(l(full), off + s(rest))
        assert.equal(s, l(coord))
      end
      return true
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
