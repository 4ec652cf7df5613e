-- Tests all functions of layouts except composition, complement and inverses,
-- which property_spec tests. Random layouts with empty modes, and with zero and
-- negative strides, are compared with tables of values. Traced extents and
-- strides must give the same values.
local cute = require "cute"
local oracle = require "spec.layout.oracle"
local try = require "spec.support".try
local size, eval = oracle.size, oracle.eval

local EXTENTS = {1, 1, 2, 2, 3, 4, 4, 5, 8}

local function shape(r, deep, extents)
  if deep == 0 or r:below(4) == 0 then return r:pick(extents or EXTENTS) end
  local t = {}
  for i = 1, r:below(4) do t[i] = shape(r, deep - 1, extents) end
  return t
end

-- Returns a random shape and strides. If `rank` is given, the shape has at
-- least that many modes.
local function plain(r, rank, extents)
  local s = shape(r, 3, extents)
  while size(s) > 300 or (rank and (type(s) ~= "table" or #s < rank)) do
    s = shape(r, 3, extents)
  end
  return s, r:stride(s)
end

local function layout(r, rank, extents)
  return cute.make_layout(plain(r, rank, extents))
end

local function text(t)
  return type(t) == "table" and table.concat(t, " ", 0) or tostring(t)
end

local function expect(got, want, fmt, ...)
  if text(got) == text(want) then return end
  local t = {...}
  for i = 1, #t do
    t[i] = type(t[i]) == "table" and tostring(cute.tuple(t[i]))
           or tostring(t[i])
  end
  error(fmt:format(table.unpack(t)) .. " is " .. text(got) .. ", not "
        .. text(want), 2)
end

local function values(l) return oracle.table(l) end

local function repeated(n, at_least, f)
  local r, got = oracle.random(n), 0
  for _ = 1, n do
    if f(r) ~= false then got = got + 1 end
  end
  assert.is_true(got >= at_least, ("only %d of %d cases"):format(got, n))
end

-- Returns one function of a coordinate for each mode. The layout's value is the
-- sum of these functions.
local function modes_of(s, d)
  local list = {}
  for i, x in ipairs(s) do
    list[i] = function(c) return eval(x, d[i], c) end
  end
  return list
end

describe("laws of layouts:", function()
  it("values, of any nesting #long", function()
    repeated(400, 400, function(r)
      local s, d = plain(r)
      local l = cute.make_layout(s, d)
      for i = -20, size(s) + 20 do
        expect(l(i), eval(s, d, i), "%s at %s", l, i)
        expect(cute.crd2idx(oracle.coord(s, i), l), eval(s, d, i),
               "%s at %s", l, i)
      end
      local t = values(l)
      local low, high = 0, 0
      for k, x in ipairs(oracle.leaves(s)) do
        local v = (x - 1) * oracle.leaves(d)[k]
        low, high = low + math.min(v, 0), high + math.max(v, 0)
      end
      expect(cute.cosize(l), high - low + 1, "cosize of %s", l)
      expect(cute.size(l), #t + 1, "size of %s", l)
    end)
  end)

  it("moved modes keep their function", function()
    repeated(600, 600, function(r)
      local s, d = plain(r, 2)
      local l, n = cute.make_layout(s, d), #s
      local f = modes_of(s, d)
      local x = layout(r)
      local at = {}
      for i = 1, n do at[i] = r:below(30) - 10 end
      local c = r:below(30) - 10
      local fx = eval(x.shape, x.stride, c)
      local i, j = 1 + r:below(n), 1 + r:below(n)
      local all = 0
      for k = 1, n do all = all + f[k](at[k]) end
      expect(cute.get(l, i - 1)(at[i]), f[i](at[i]), "get %s %s", l, i)
      expect(cute.select(l, i - 1, j - 1)(at[i], at[j]),
             f[i](at[i]) + f[j](at[j]), "select %s %s %s", l, i, j)
      expect(cute.append(l, x)(table.unpack(
        table.move({c}, 1, 1, n + 1, {table.unpack(at)}))), all + fx,
        "append %s %s", l, x)
      expect(cute.prepend(l, x)(c, table.unpack(at)), all + fx,
             "prepend %s %s", l, x)
      local other = {table.unpack(at)}
      other[i] = c
      expect(cute.replace(l, i - 1, x)(table.unpack(other)),
             all - f[i](at[i]) + fx, "replace %s %s %s", l, i, x)
      local b, e = math.min(i, j), math.max(i, j)
      local g = cute.group_modes(l, b - 1, e)
      local inner = table.move(at, b, e, 1, {})
      local outer = table.move(at, 1, b - 1, 1, {})
      outer[b] = inner
      table.move(at, e + 1, n, b + 1, outer)
      expect(cute.crd2idx(outer, g), all, "group %s %s %s", l, b, e)
      local sum = 0
      for k = b, e do sum = sum + f[k](at[k]) end
      expect(cute.crd2idx(inner, cute.take(l, b - 1, e)), sum,
             "take %s %s %s", l, b, e)
      expect(cute.unflatten(cute.flatten(l), s) == l, true, "unflatten %s", l)
      expect(cute.make_layout(l, x)(l.shape and at, c), all + fx,
             "make_layout %s %s", l, x)
    end)
  end)

  it("profiles: coalesce, filter, filter_zeros", function()
    repeated(600, 600, function(r)
      local s, d = plain(r, 1)
      local l, by = cute.make_layout(s, d), {}
      for i = 1, 1 + r:below(#s) do by[i] = 1 end
      local got = cute.coalesce(l, by)
      expect(values(got), values(l), "coalesce %s by %s", l, by)
      for i = 1, #by do
        expect(cute.get(got, i - 1), cute.coalesce(cute.get(l, i - 1)),
               "coalesce %s by %s", l, by)
        expect(cute.get(cute.filter(l, by), i - 1),
               cute.filter(cute.get(l, i - 1)), "filter %s by %s", l, by)
      end
      local z = cute.filter_zeros(l)
      for k, x in ipairs(oracle.leaves(z.shape)) do
        expect(x, oracle.leaves(d)[k] == 0 and 1 or oracle.leaves(s)[k],
               "filter_zeros %s", l)
      end
      local null = cute.nullspace(l)
      for _, x in pairs(values(null)) do
        expect(eval(s, d, x), 0, "nullspace %s", l)
      end
      expect(cute.size(null) * cute.size(z), cute.size(l), "nullspace %s", l)
    end)
  end)
end)

describe("laws of layouts:", function()
  it("slices and offsets", function()
    repeated(600, 600, function(r)
      local s, d = plain(r, 2)
      local l, c, kept, cut = cute.make_layout(s, d), {}, {}, {}
      local f, off = modes_of(s, d), 0
      for i = 1, #s do
        c[i] = r:below(2) == 0 and cute._ or r:below(20) - 5
        if c[i] == cute._ then
          kept[#kept + 1] = i
        else
          cut[#cut + 1] = i
          off = off + f[i](c[i])
        end
      end
      if #cut == #s then return end
      local part, at = cute.slice_and_offset(c, l)
      expect(at, off, "slice %s %s", c, l)
      expect(cute.rank(part), #kept, "slice %s %s", c, l)
      for k, i in ipairs(kept) do
        expect(cute.get(part, k - 1), cute.get(l, i - 1), "slice %s %s", c, l)
      end
      local rest = cute.dice(c, l)
      for k, i in ipairs(cut) do
        expect(cute.get(rest, k - 1), cute.get(l, i - 1), "dice %s %s", c, l)
      end
      local whole = {}
      for i = 1, #s do whole[i] = r:below(9) end
      local moved, by = cute.domain_offset(whole, l)
      local sum = 0
      for i = 1, #s do sum = sum + f[i](whole[i]) end
      expect(by, sum, "domain_offset %s %s", whole, l)
      expect(moved, l, "domain_offset %s %s", whole, l)
    end)
  end)

  it("compact layouts and the coordinates at their offsets #long", function()
    repeated(300, 300, function(r)
      local s = plain(r)
      local l = cute.make_layout(s, r:compact(s))
      for _, x in pairs(values(l)) do
        local i = cute.get_1d_coord(l, x)
        expect(l(i), x, "get_1d_coord %s %s", l, x)
        expect(cute.crd2idx(cute.get_hier_coord(l, x), l), x,
               "get_hier_coord %s %s", l, x)
        expect(cute.crd2idx(cute.get_flat_coord(l, x), l), x,
               "get_flat_coord %s %s", l, x)
      end
      local like = cute.make_layout_like(l)
      expect(values(like), values(l), "make_layout_like %s", l)
      local e = layout(r)
      if not tostring(e.stride):find "[-0]" then
        local k = cute.make_layout_like(e)
        local seen = {}
        for _, x in pairs(values(k)) do
          expect(x >= 0 and x < cute.size(k) and not seen[x], true,
                 "make_layout_like %s", e)
          seen[x] = true
        end
      end
    end)
  end)

  it("wider and narrower elements", function()
    local got = 0
    repeated(800, 800, function(r)
      local l, n = layout(r, nil, {1, 2, 4, 8}), r:pick {2, 4}
      local down = try(cute.downcast, l, n)
      -- Element x of l consists of the narrow elements x * n to x * n + n -
      -- 1.
      if down and not tostring(l.stride):find "-" then
        local narrow, wide = {}, {}
        for _, x in pairs(values(l)) do
          for k = 0, n - 1 do wide[x * n + k] = true end
        end
        for _, x in pairs(values(down)) do narrow[x] = true end
        local ones = 0
        for k, x in ipairs(oracle.leaves(l.stride)) do
          if x == 1 and oracle.leaves(l.shape)[k] > 1 then ones = ones + 1 end
        end
        if ones == 1 then
          for x in pairs(wide) do
            expect(narrow[x], true, "downcast %s %s at %s", l, n, x)
          end
          expect(cute.upcast(down, n), l, "upcast of downcast %s %s", l, n)
          expect(cute.recast_layout(32, 32 * n, l), down, "recast %s", l)
          got = got + 1
        end
      end
    end)
    assert.is_true(got > 150, got)
  end)

  it("common parts of two layouts", function()
    repeated(1500, 1500, function(r)
      local a, b = layout(r, nil, {1, 2, 2, 4}), layout(r, nil, {1, 2, 2, 4})
      if r:below(2) == 0 then
        b = cute.make_layout(b.shape)
        a = cute.make_layout(b.shape, r:compact(b.shape))
      end
      local c = cute.max_common_layout(a, b)
      for i, x in pairs(values(c)) do
        expect(a(x), i, "max_common_layout %s %s = %s at", a, b, c)
        expect(b(x), i, "max_common_layout %s %s = %s at", a, b, c)
      end
      expect(cute.max_common_vector(a, b), cute.size(c), "%s %s", a, b)
    end)
  end)
end)

describe("laws of layouts:", function()
  it("divides and products follow their definitions", function()
    repeated(2500, 1200, function(r)
      local l, t = layout(r, nil, {1, 2, 2, 3, 4}), layout(r, nil, {1, 2, 3})
      if cute.size(t) > 24 then return false end
      local d, used = try(cute.logical_divide, l, t), false
      local rest = try(cute.complement, t, cute.coalesce(l).shape)
      local both = rest and try(cute.composition, l, cute.make_layout(t, rest))
      if d and both then
        expect(values(d), values(both), "%s divided by %s", l, t)
        used = true
      end
      local p = try(cute.logical_product, l, t)
      local room = try(cute.complement, l, cute.size(l) * cute.cosize(t))
      local laid = room and try(cute.composition, room, t)
      if p and laid then
        expect(values(p), values(cute.make_layout(l, laid)), "%s times %s",
               l, t)
        expect(cute.get(p, 0), l, "%s times %s", l, t)
        used = true
      end
      return used
    end)
  end)
end)

-- ---- traced ----

-- Compares traced layouts with plain ones. f(make, i) makes layouts by
-- make(shape, stride), and returns a list of integers computed from them. For
-- all seeds i, the list must be the same with both kinds of layouts.
local function agree(seeds, f)
  local LOW, HIGH = -8, 16
  local pool = {}
  for v = LOW, HIGH do pool[#pool + 1] = v end
  local want, n, known = {}, 0, 0
  for seed = 1, seeds do
    want[seed] = try(f, cute.make_layout, seed) or {}
    n = n + #want[seed]
  end
  local out = cute.zeros({n + 1}, cute.i32)
  local done = {}
  cute.kernel("laws", function(mOut, ...)
    local traced, at = {...}, 0
    local function mix(r, t)
      if type(t) == "table" then
        local list = {}
        for i, x in ipairs(t) do list[i] = mix(r, x) end
        return list
      end
      local v = t <= HIGH and traced[t - LOW + 1]
      if not v or t == 0 or r:below(2) == 0 then return t end
      return t > 0 and cute.assume(v, 1, HIGH, 1) or v
    end
    for seed = 1, seeds do
      local r = oracle.random(seed)
      local got = try(f, function(s, d)
        return cute.make_layout(mix(r, s), mix(r, d))
      end, seed)
      done[seed] = got and #got == #want[seed] and at
      if done[seed] then
        known = known + 1
        for _, v in ipairs(got) do
          mOut[at] = v
          at = at + 1
        end
      end
    end
  end)(out, table.unpack(pool)):launch {grid = 1, block = 1,
                                        device = "sim:sm_90a"}
  assert.is_true(known > seeds // 2, known)
  for seed = 1, seeds do
    for k, w in ipairs(done[seed] and want[seed] or {}) do
      local got = out[done[seed] + k - 1]
      if got ~= w then
        error(("seed %d, value %d is %d, not %d"):format(seed, k, got, w), 2)
      end
    end
  end
end

local COORDS = {-7, -1, 0, 1, 2, 3, 5, 11, 23, 40}

local function sample(l)
  local list = {cute.size(l)}
  for i, c in ipairs(COORDS) do list[i + 1] = l(c) end
  return list
end

describe("laws of traced layouts:", function()
  for name, f in pairs {
    values = function(l) return l end,
    flatten = function(l) return cute.flatten(l) end,
    -- Coalescing may change the values outside the domain, but not inside it.
    coalesce = function(l, n)
      local list, c = {cute.size(l)}, cute.coalesce(l)
      for i = 0, n - 1, math.max(n // 8, 1) do list[#list + 1] = c(i) end
      return list
    end,
    by_profile = function(l)
      return cute.coalesce(l, {1})(0, table.unpack({0, 0, 0}, 1,
                                                   cute.rank(l) - 1))
    end,
    group = function(l) return cute.group_modes(l, 0, 1) end,
    reverse = function(l)
      return cute.rank(l) > 1 and cute.select(l, 1, 0) or cute.select(l, 0)
    end,
    append = function(l) return cute.append(l, cute.layout "3:7") end,
    zip = function(l) return cute.zip(cute.make_layout(l, l)) end,
    replace = function(l) return cute.replace(l, 0, cute.layout "2:5") end,
    idx2crd = function(l)
      local list = {}
      for _, i in ipairs(COORDS) do
        list[#list + 1] = l(cute.idx2crd(i, l.shape))
      end
      return list
    end,
    slice = function(l)
      if cute.rank(l) < 2 then return l end
      local c = {3, cute._, 1, 2}
      return l(table.unpack(c, 1, cute.rank(l)))
    end,
    cosize = function(l) return {cute.cosize(l)} end,
  } do
    it(name, function()
      agree(60, function(make, seed)
        local s, d = plain(oracle.random(seed), 1)
        local got = f(make(s, d), size(s))
        return type(got) == "table" and got or type(got) == "userdata"
               and cute.rank(got) and sample(got) or {got}
      end)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
