-- Tests shapes of vectors: broadcasts, slices and reductions of random nested
-- shapes. The oracle loops over all coordinates of plain tables.
local cute = require "cute"
local random = require "spec.random"
local support = require "spec.support"
local _ = cute._
local raises = support.raises

local g = setmetatable({state = 20261122}, random.Gen)

-- Returns a random shape with extents 1 to 3, nested at most `depth` deep, with
-- at most `room` elements.
local function shape(room, depth)
  if depth == 0 or room < 4 or g:chance(35) then
    return g:r(math.min(room, 3) - 1) + 1
  end
  local t = {}
  for i = 1, g:r(3) do
    if room < 2 then break end
    t[i] = shape(room, depth - 1)
    room = room // cute.size(t[i])
  end
  return t
end

-- Returns all coordinates of a shape as nested lists, the first mode
-- fastest.
local function coords(s)
  if type(s) == "number" then
    local t = {}
    for i = 1, s do t[i] = i - 1 end
    return t
  end
  local list = {{}}
  for k = #s, 1, -1 do
    local longer = {}
    for _, tail in ipairs(list) do
      for _, c in ipairs(coords(s[k])) do
        longer[#longer + 1] = {c, table.unpack(tail)}
      end
    end
    list = longer
  end
  return list
end

-- Returns the index in shape s that corresponds to coordinate c of the
-- broadcast shape `all`. In s, modes may be missing or 1, and one number may
-- stand for several modes.
local function index_of(s, c, all)
  if s == 1 then return 0 end
  if type(all) == "number" then return c end
  if s == cute.size(all) then s = all end
  if type(s) == "number" then return index_of(s, c[1], all[1]) end
  local at, scale = 0, 1
  for k, mode in ipairs(s) do
    at = at + scale * index_of(mode, c[k], all[k])
    scale = scale * cute.size(mode)
  end
  return at
end

-- Returns two shapes that broadcast together to the shape s.
local function parts(s)
  if g:chance(20) then return s, 1 end
  if g:chance(20) then return 1, s end
  if type(s) == "number" or g:chance(10) then return s, s end
  if g:chance(20) then return s, cute.size(s) end
  local a, b = {}, {}
  for k, mode in ipairs(s) do a[k], b[k] = parts(mode) end
  for _, t in ipairs {a, b} do
    while #t > 1 and t[#t] == 1 and g:chance(50) do t[#t] = nil end
  end
  return a, b
end

-- Returns a random tree, nested at most like s. Its leaves are `_` or results
-- of `other`.
local function profile(s, other)
  if g:chance(35) then return _ end
  if type(s) == "number" or g:chance(15) then return other(s) end
  local t = {}
  for k, mode in ipairs(s) do t[k] = profile(mode, other) end
  return t
end

-- Splits coordinate c by a profile `by`. Appends the parts of c where `by` has
-- `_` to `kept`, and all other parts to `others`.
local function split(c, by, kept, others)
  if type(by) == "table" then
    for k, sub in ipairs(by) do split(c[k], sub, kept, others) end
  else
    local to = by == _ and kept or others
    to[#to + 1] = cute.pretty_str(c)
  end
end

local function key(c, by)
  local kept, others = {}, {}
  split(c, by, kept, others)
  return table.concat(kept, " "), table.concat(others, " ")
end

local function vector(x)
  local scalar = tostring(x):find "traced"
  return scalar and cute.full(1, x, cute.i32) or x
end

-- Calls f(case, iota) in a kernel for each case, where iota(shape, scale) is a
-- vector of 0, scale, 2 scale, ... Returns a tensor with the elements of the
-- vectors that f returns, and a list of their shapes.
local function run(cases, f)
  local out = cute.zeros({#cases, 128}, cute.i32)
  local x = cute.zeros({128}, cute.i32)
  for i = 0, 127 do x[i] = i end
  local shapes = {}
  cute.kernel("shapes", function(src, dst)
    local function iota(s, scale)
      local n = cute.size(s)
      return cute.local_tile(src, {n}, {0}):load():reshape(s) * scale
    end
    for k, case in ipairs(cases) do
      local v = f(case, iota)
      shapes[k] = cute.pretty_str(v.shape)
      cute.local_tile(dst(k - 1, _), {#v}, {0}):store(v)
    end
  end)(x, out):launch {grid = 1, block = 1, device = "sim"}
  return out, shapes
end

describe("shapes of vectors", function()
  it("broadcast mode by mode, at any depth", function()
    local cases = {}
    for k = 1, 120 do
      local s = shape(48, 3)
      local a, b = parts(s)
      cases[k] = {s = s, a = a, b = b}
    end
    local out, shapes = run(cases, function(case, iota)
      return iota(case.a, 1) + iota(case.b, 1000)
    end)
    local to, to_shapes = run(cases, function(case, iota)
      return iota(case.a, 1):broadcast_to(case.s)
    end)
    for k, case in ipairs(cases) do
      local what = ("case %d: %s + %s"):format(k, cute.pretty_str(case.a),
                                              cute.pretty_str(case.b))
      assert.equal(cute.pretty_str(case.s), to_shapes[k], what)
      local all = coords(case.s)
      assert.equal(#all, cute.size(case.s))
      for i, c in ipairs(all) do
        local a = index_of(case.a, c, case.s)
        local b = index_of(case.b, c, case.s)
        assert.equal(a + 1000 * b, out(k - 1, i - 1), what .. shapes[k])
        assert.equal(a, to(k - 1, i - 1), what)
      end
    end
  end)

  it("slice at any depth", function()
    local cases = {}
    for k = 1, 120 do
      local s = shape(48, 3)
      local all = coords(s)
      local at = all[g:r(#all)]
      -- Returns a random profile. Each leaf is either `_` or the coordinate's
      -- component, so that a slice by the profile contains the coordinate.
      local function here(mode, c)
        if g:chance(40) then return _ end
        if type(mode) == "number" then return c end
        local t = {}
        for i, m in ipairs(mode) do t[i] = here(m, c[i]) end
        return t
      end
      cases[k] = {s = s, by = here(s, at), at = at}
    end
    local out = run(cases, function(case, iota)
      local v = iota(case.s, 1)
      local x = v[case.by]
      return vector(x)
    end)
    for k, case in ipairs(cases) do
      local n, _, want = 0, key(case.at, case.by)
      for i, c in ipairs(coords(case.s)) do
        local _, others = key(c, case.by)
        if others == want then
          assert.equal(i - 1, out(k - 1, n), ("case %d: %s at %s"):format(k,
            cute.pretty_str(case.s), cute.pretty_str(case.by)))
          n = n + 1
        end
      end
    end
  end)

  it("reduce the modes that a profile does not keep, at any depth", function()
    local cases = {}
    for k = 1, 120 do
      local s = shape(48, 3)
      cases[k] = {s = s, by = profile(s, function() return g:r(2) - 1 end)}
    end
    local function sums(keep)
      return run(cases, function(case, iota)
        local v = iota(case.s, 1)
        local x = v:reduce("add", 7, case.by, keep and {keep = true} or nil)
        -- Adding v * 0 broadcasts x to v's shape.
        if keep then x = x + v * 0 end
        return vector(x)
      end)
    end
    local short, full = sums(false), sums(true)
    for k, case in ipairs(cases) do
      local what = ("case %d: %s by %s"):format(k, cute.pretty_str(case.s),
                                               cute.pretty_str(case.by))
      local want, order = {}, {}
      local all = coords(case.s)
      for i, c in ipairs(all) do
        local kept = key(c, case.by)
        if not want[kept] then order[#order + 1] = kept end
        want[kept] = (want[kept] or 7) + i - 1
      end
      for i, kept in ipairs(order) do
        assert.equal(want[kept], short(k - 1, i - 1), what)
      end
      for i, c in ipairs(all) do
        assert.equal(want[key(c, case.by)], full(k - 1, i - 1), what)
      end
    end
  end)
end)

describe("shapes of vectors", function()
  it("are those of the Python DSL", function()
    local seen = {}
    local function note(v) seen[#seen + 1] = tostring(v):match "%S+$" end
    run({{}}, function(_, iota)
      local v = iota({4, {5, 2}}, 1)
      note(v:reduce("add", 0, {cute._, 1}))
      note(v:reduce("add", 0, {cute._, {cute._, 1}}))
      note(v:reduce("add", 0, {cute._, 1}, {keep = true}))
      note(v:reduce("add", 0, 1, {keep = true}))
      note(v:reduce("max", 0, cute._))
      note(v - v:reduce("max", 0, {cute._, 1}))
      note(v - v:reduce("max", 0, {1, cute._}, {keep = true}))
      note(iota({3}, 1) + iota({1, 2}, 1))
      note(iota(4, 1) + iota({2, 2}, 1))
      note(cute.where(iota({2, 1}, 1):lt(1), iota({1, 3}, 1), 0))
      note(cute.max(iota({2}, 1), iota({1, 3}, 1)))
      note(iota({6}, 1):broadcast_to {{2, 3}, 2})
      return cute.add(iota({2, 1}, 1):to(cute.f32), iota({1, 3}, 1)
        :to(cute.f32), {rounding = "rz"}):to(cute.i32)
    end)
    assert.same({"(4)", "(4,5)", "(4,1)", "1", "(4,(5,2))", "(4,(5,2))",
                 "(4,(5,2))", "(3,2)", "(2,2)", "(2,3)", "(2,3)",
                 "((2,3),2)"}, seen)
  end)

  it("are both in the error if they do not fit", function()
    local function refuses(want, f)
      raises(want, run, {{}}, function(_, iota)
        return f(iota({4, 3}, 1), iota)
      end)
    end
    refuses("vectors of shape (4,3) and (3) cannot be broadcast together",
      function(v, iota) return v + iota({3}, 1) end)
    refuses("vectors of shape (4,3) and (2,(3,2)) cannot be broadcast together",
      function(v, iota)
        return cute.where(v:lt(2), iota({2, {3, 2}}, 1), 0)
      end)
    refuses("a vector of shape (4,3) cannot be broadcast to (4,1)",
      function(v) return v:broadcast_to {4, 1} end)
    refuses("a vector of shape (4,3) has 12 elements, but shape (5,2) "
      .. "has a different number of elements",
      function(v) return v:reshape {5, 2} end)
    refuses("coordinate (0,3) of the vector is outside of the 3 elements in "
      .. "mode 1 [bad-argument]\n  its shape is (4,3)",
      function(v) return v[{0, 3}] end)
    refuses("coordinate (_,0,0) of the vector has 3 modes instead of 2",
      function(v) return v(_, 0, 0) end)
    refuses("the reduction profile ((_,1),1) does not fit the shape (4,3)",
      function(v) return v:reduce("add", 0, {{_, 1}, 1}) end)
    refuses("no option 'kept': there",
      function(v) return v:reduce("add", 0, {_, 1}, {kept = true}) end)
    refuses("a vector of 6400 elements is too large", function(_, iota)
      return iota({80}, 1) + iota({1, 80}, 1)
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
