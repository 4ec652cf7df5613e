--- The oracle of specs of the layout algebra: an independent implementation of
-- layouts as nested tables, evaluated mode by mode. Also makes random layouts
-- from a seed.
local oracle = {}

-- ---- evaluation ----

local function size(shape)
  if type(shape) ~= "table" then return shape end
  local n = 1
  for _, s in ipairs(shape) do n = n * size(s) end
  return n
end
oracle.size = size

-- Splits index c into the coordinate in a mode of n elements, and the index for
-- the modes after it. Division rounds toward zero, as in C, so results for -c
-- mirror those for c.
local function split(c, n)
  local own = math.fmod(c, n)
  return own, (c - own) // n
end

-- Returns the number of the last mode that has leaves. That mode gets the rest
-- of an index as its coordinate, even if the rest exceeds its extent.
local function last_mode(shape)
  for i = #shape, 1, -1 do
    local s = shape[i]
    if type(s) ~= "table" or last_mode(s) then return i end
  end
  return nil
end

--- Returns the offset of coordinate c. An integer c is an index in
-- colexicographic order. The last mode's coordinate may exceed its extent.
function oracle.eval(shape, stride, c)
  if type(shape) ~= "table" then return c * stride end
  local sum, last = 0, last_mode(shape)
  for i, s in ipairs(shape) do
    local own
    if type(c) == "table" then
      own = c[i]
    elseif i == last then
      own = c
    else
      own, c = split(c, size(s))
    end
    sum = sum + oracle.eval(s, stride[i], own)
  end
  return sum
end

--- Returns the hierarchical coordinate of index i. The last mode's coordinate
-- may exceed its extent.
function oracle.coord(shape, i)
  if type(shape) ~= "table" then return i end
  local c, last = {}, last_mode(shape)
  for k, s in ipairs(shape) do
    local own = i
    if k ~= last then own, i = split(i, size(s)) end
    c[k] = oracle.coord(s, own)
  end
  return c
end

local function leaves(t, list)
  list = list or {}
  if type(t) ~= "table" then
    list[#list + 1] = t
  else
    for _, x in ipairs(t) do leaves(x, list) end
  end
  return list
end
oracle.leaves = leaves

--- Returns a function that maps 1-D coordinates of a layout to its offsets.
function oracle.reader(l)
  local s, d = leaves(l.shape), leaves(l.stride)
  local n = #s
  return function(i)
    local sum = 0
    for k = 1, n - 1 do
      local own
      own, i = split(i, s[k])
      sum = sum + own * d[k]
    end
    return sum + i * d[n]
  end
end

--- Returns all offsets of a layout userdata, computed from its shape and stride
-- alone. Indices start at 0.
function oracle.table(l)
  local t, s, d = {[0] = 0}, leaves(l.shape), leaves(l.stride)
  local n = 1
  for k = 1, #s do
    for i = n, n * s[k] - 1 do t[i] = t[i % n] + i // n * d[k] end
    n = n * s[k]
  end
  return t
end

-- ---- whether a layout exists at all ----

-- Reports whether the values f(0), f(1), .. f(n - 1) are those of some layout
-- of any shape. Tries every extent s of its first mode; then f(s), f(2 s), ...
-- must be the values of the other modes.
local function one_mode(f, n)
  if n == 1 then return f(0) == 0 end
  for s = 2, n do
    local fits = n % s == 0
    for i = 0, fits and n - 1 or -1 do
      fits = fits and f(i) == i % s * f(1) + f(i // s * s)
    end
    if fits and one_mode(function(i) return f(i * s) end, n // s) then
      return true
    end
  end
  return false
end

--- Reports whether f(0), f(1), .. are the values of a layout of this shape, or
-- of a shape that splits its extents further.
function oracle.is_layout(f, shape)
  local below = 1
  local modes = {}
  for _, n in ipairs(leaves(shape)) do
    local step = below
    if not one_mode(function(i) return f(i * step) end, n) then return false end
    modes[#modes + 1] = {n, step}
    below = below * n
  end
  for i = 0, below - 1 do  -- f(i) must be a sum of one value per mode.
    local sum = 0
    for _, m in ipairs(modes) do sum = sum + f(i // m[2] % m[1] * m[2]) end
    if sum ~= f(i) then return false end
  end
  return true
end

-- ---- swizzle by its definition ----

function oracle.swizzle(b, m, s, x)
  local y = x >> (m + math.max(s, 0)) & ((1 << b) - 1)
  return x ~ y << (m - math.min(s, 0))
end

-- ---- random layouts ----

local Random = {}
Random.__index = Random

function oracle.random(seed)
  return setmetatable({state = seed}, Random)
end

function Random:below(n)  -- xorshift64*
  local x = self.state * 0x2545F4914F6CDD1D + 0x9E3779B97F4A7C15
  x = x ~ (x >> 12)
  x = x ~ (x << 25)
  x = x ~ (x >> 27)
  self.state = x
  return (x >> 11) % n
end

function Random:pick(list) return list[self:below(#list) + 1] end

local EXTENTS = {1, 2, 2, 2, 3, 4, 4, 5, 6, 8}

--- Returns a random shape, nested to `depth`. Its leaves are drawn from
-- `extents`.
function Random:shape(depth, extents)
  if depth == 0 or self:below(3) == 0 then
    return self:pick(extents or EXTENTS)
  end
  local t = {}
  for i = 1, 1 + self:below(3) do t[i] = self:shape(depth - 1, extents) end
  return t
end

local function fill(shape, list, at)
  at = at or {0}
  if type(shape) ~= "table" then
    at[1] = at[1] + 1
    return list[at[1]]
  end
  local t = {}
  for i, s in ipairs(shape) do t[i] = fill(s, list, at) end
  return t
end

--- Returns strides of a compact layout whose modes have a random order in
-- memory. With `holes`, some strides are multiplied by 2, 3 or 4, which leaves
-- gaps.
function Random:compact(shape, holes)
  local s = leaves(shape)
  local order, d, cur = {}, {}, 1
  for i = 1, #s do table.insert(order, 1 + self:below(#order + 1), i) end
  for _, i in ipairs(order) do
    if holes and self:below(4) == 0 then cur = cur * self:pick {2, 3, 4} end
    d[i] = cur
    cur = cur * s[i]
  end
  return fill(shape, d)
end

--- Returns random strides, which may be zero, negative or coprime to the shape.
function Random:strides(shape)
  local s, d = leaves(shape), {}
  for i = 1, #s do
    d[i] = self:pick {0, 1, 1, 2, 3, 4, 5, 6, 8, 12, 16, -1, -2, -8}
  end
  return fill(shape, d)
end

function Random:stride(shape)
  local k = self:below(4)
  if k == 0 then return self:strides(shape) end
  return self:compact(shape, k == 1)
end

return oracle
-- SPDX-License-Identifier: MIT
