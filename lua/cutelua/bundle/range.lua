--- Merges the variants of a function for many sizes to variants for ranges of
-- sizes.
--
-- A size is one integer, such as the number of rows. The launches of a function
-- were recorded for each size of a range. Consecutive sizes share a variant if
-- they differ only in numbers (extents, strides, grids, kernel arguments); the
-- code of their kernels must be the same.
--
-- Each number that differs must be a formula a + b ceil(c size / d) that gives
-- the recorded number for every size. c is 1 (nil) unless the caller provides
-- the formula. So the merged variant makes, for each size, exactly the launches
-- that were recorded.
local range = {}

-- The largest divisor d that is tried for a formula.
local MOST = 2048

local Formula = {}

--- Reports whether v is a formula, not a plain number.
function range.is_formula(v) return getmetatable(v) == Formula end

--- Turns table t = {a, b, d}, which may come from a file, into a formula, and
-- returns it.
function range.restore(t) return setmetatable(t, Formula) end

-- Returns the value of a formula for a size.
local function value(f, size)
  return f.a + f.b * (((f.c or 1) * size + f.d - 1) // f.d)
end

--- Returns the value of a formula for a size, or v itself if it is a number.
function range.value(v, size)
  return range.is_formula(v) and value(v, size) or v
end

-- Calls f(list, key) for each number of a variant that a formula may replace.
-- plain: true to omit grids that already are formulas.
local function each_number(v, f, plain)
  for _, t in ipairs(v.tensors) do
    for i in ipairs(t.shape) do f(t.shape, i) end
    for i in ipairs(t.stride) do f(t.stride, i) end
  end
  for _, s in ipairs(v.steps) do
    for i = 1, s.grid and 3 or 0 do
      if not (plain and range.is_formula(s.grid[i])) then f(s.grid, i) end
    end
    for _, x in ipairs(s.values or {}) do
      if x.kind == "CONSTANT" then f(x, "n") end
      if x.map ~= 0 then
        for i in ipairs(x.map.extent) do f(x.map.extent, i) end
        for i in ipairs(x.map.stride) do f(x.map.stride, i) end
      end
    end
  end
end

-- Appends value v as text to the list `out`. The keys of a table are sorted.
local function spell(v, out)
  if type(v) ~= "table" then
    out[#out + 1] = tostring(v)
    return
  end
  local keys = {}
  for k in pairs(v) do keys[#keys + 1] = tostring(k) end
  table.sort(keys)
  local own = {}
  for k, x in pairs(v) do own[tostring(k)] = x end
  out[#out + 1] = "{"
  for _, k in ipairs(keys) do
    out[#out + 1] = k .. "="
    spell(own[k], out)
    out[#out + 1] = ","
  end
  out[#out + 1] = "}"
end

-- Returns the list of all numbers in a variant, and a text of everything else.
-- Variants that differ only in numbers have equal texts. source(step) returns
-- the code of a step's kernel.
local function split(v, source)
  local numbers, places = {}, {}
  each_number(v, function(list, key)
    numbers[#numbers + 1], places[#places + 1] = list[key], {list, key}
  end, true)
  for i, p in ipairs(places) do p[1][p[2]] = "?" .. i end
  local out = {}
  for _, s in ipairs(v.steps) do
    if s.program then out[#out + 1] = source(s) end
  end
  for _, field in ipairs {"tensors", "numbers", "apart"} do
    for _, t in ipairs(v[field]) do
      local copy = {}
      for k, x in pairs(t) do
        if k ~= "align" and k ~= "value" then copy[k] = x end
      end
      spell(copy, out)
    end
  end
  for _, s in ipairs(v.steps) do
    local copy = {}
    -- A step that clears memory (kernel == -1) has an offset `at` and a size
    -- `n`. The text omits them, because variants that differ in them can be
    -- merged.
    for k, x in pairs(s) do
      if k ~= "program" and not (s.kernel == -1 and (k == "at" or k == "n"))
      then
        copy[k] = x
      end
    end
    spell(copy, out)
  end
  out[#out + 1] = "regions " .. #v.regions
  for i, p in ipairs(places) do p[1][p[2]] = numbers[i] end
  return numbers, table.concat(out)
end

local function ceil_div(m, d) return (m + d - 1) // d end

-- Returns the formula with divisor d whose value is `was` for each size in the
-- range `from` to `to`, and is q for the next size m. Returns nil if no such
-- formula exists.
local function fit(from, to, was, m, q, d)
  local first, last = ceil_div(from, d), ceil_div(m, d)
  if ceil_div(to, d) ~= first or last == first
    or (q - was) % (last - first) ~= 0 then
    return nil
  end
  local b = (q - was) // (last - first)
  return range.restore {a = was - b * first, b = b, d = d}
end

-- The state of one number while sizes are added to a group of variants. It has
-- the number's value at the first size and, once it varies, the formulas that
-- give all values so far.
local Slot = {}
Slot.__index = Slot

-- Returns the formulas that remain possible if the number's value at size m is
-- q, or nil if none remains. Returns an empty list if q equals all earlier
-- values.
function Slot:after(sizes, m, q)
  local list = {}
  if self.formulas then
    for _, f in ipairs(self.formulas) do
      if value(f, m) == q then list[#list + 1] = f end
    end
  elseif q == self.value then
    return list
  else
    for d = 1, MOST do
      list[#list + 1] = fit(sizes[1], sizes[#sizes], self.value, m, q, d)
    end
  end
  return list[1] and list or nil
end

-- Starts a group of variants with the variant of one size.
local function start(m, v, numbers, text)
  local slots = {}
  for i, q in ipairs(numbers) do
    slots[i] = setmetatable({value = q}, Slot)
  end
  return {sizes = {m}, variant = v, slots = slots, text = text}
end

-- Adds size m to group g. Returns false, without a change, if no formulas give
-- the numbers of this size, too.
local function extend(g, m, v, numbers, text)
  if text ~= g.text then return false end
  local next_formulas = {}
  for i, q in ipairs(numbers) do
    local list = g.slots[i]:after(g.sizes, m, q)
    if not list then return false end
    next_formulas[i] = list
  end
  for i, s in ipairs(g.slots) do
    s.formulas = next_formulas[i][1] and next_formulas[i] or nil
  end
  g.sizes[#g.sizes + 1] = m
  local own = g.variant
  for i, bytes in ipairs(v.regions) do
    own.regions[i] = math.max(own.regions[i], bytes)
  end
  for i, s in ipairs(v.steps) do
    local mine = own.steps[i]
    if s.kernel == -1 then mine.n = math.max(mine.n, s.n) end
  end
  for i, t in ipairs(v.tensors) do
    own.tensors[i].align = math.max(own.tensors[i].align, t.align)
  end
  return true
end

-- Returns the tensor and the mode whose extent is the size itself.
local function size_of(g)
  local found
  for i, t in ipairs(g.variant.tensors) do
    for j, f in ipairs(t.shape) do
      if not found and range.is_formula(f) and f.a == 0 and f.b == 1
        and f.d == 1 then
        found = {tensor = i - 1, mode = j - 1}
      end
    end
  end
  return found
end

-- Ends a group: stores the formulas in its variant. If several formulas fit a
-- number, uses the first one and appends all of them to `open` as a list.
local function finish(g, step, least, most, open)
  local i = 0
  each_number(g.variant, function(list, key)
    i = i + 1
    local s = g.slots[i]
    if s.formulas then list[key] = s.formulas[1] end
    if s.formulas and s.formulas[2] then open[#open + 1] = s.formulas end
  end, true)
  local v = g.variant
  if #g.sizes > 1 then
    v.size = size_of(g)
    if not v.size then return nil end
    v.size.from, v.size.to = g.sizes[1], g.sizes[#g.sizes]
    v.size.step, v.size.least, v.size.most = step, least, most
  end
  return v
end

--- Reports whether the formulas of variant v, evaluated for `size`, give the
-- numbers of variant `one`, which was recorded for `size`.
function range.agrees(v, one, size)
  local wanted = {}
  each_number(v, function(list, key)
    wanted[#wanted + 1] = range.value(list[key], size)
  end)
  local i, same = 0, true
  each_number(one, function(list, key)
    i = i + 1
    same = same and list[key] == wanted[i]
  end)
  return same and i == #wanted
end

--- Returns the variants for ranges of sizes. list: {{size, variant}, ...}, in
-- ascending order of size, with sizes `step` apart. Returns nil if no extent of
-- a tensor equals the size.
---@return table[]? variants
---@return table[]? open for each ambiguous number, a list of the formulas that
-- fit it
function range.merge(list, step, source)
  local out, open, group = {}, {}, nil
  local least, most = list[1][1], list[#list][1]
  local function close()
    local v = finish(group, step, least, most, open)
    out[#out + 1] = v
    return v ~= nil
  end
  for _, row in ipairs(list) do
    local numbers, text = split(row[2], source)
    if not group then
      group = start(row[1], row[2], numbers, text)
    elseif not extend(group, row[1], row[2], numbers, text) then
      if not close() then return nil end
      group = start(row[1], row[2], numbers, text)
    end
  end
  if not close() then return nil end
  return out, open
end

-- Returns how many formulas have a value for this size that differs from the
-- most frequent value.
local function told(formulas, size)
  local count, most = {}, 0
  for _, f in ipairs(formulas) do
    local x = value(f, size)
    count[x] = (count[x] or 0) + 1
    most = math.max(most, count[x])
  end
  return #formulas - most
end

-- Returns the size that distinguishes the formulas best: most of them differ
-- there from the most frequent value. Returns nil if all agree. Tries sizes up
-- to `last` steps after the first one, and stops at a size for which half of
-- the formulas differ.
local function best_of(formulas, from, step, last)
  local best, most = nil, 0
  for n = 1, last do
    local score = told(formulas, from + n * step)
    if score > most then best, most = from + n * step, score end
    if 2 * most >= #formulas then break end
  end
  return best
end

--- Returns a size for which the formulas of one of the lists `open` differ, or
-- nil if they give the same numbers for all sizes. With sizes that are
-- multiples of s, divisors d and d + 1 give different values at s (d + 1) or
-- before.
---@param open table[]
---@param from integer the first size
---@param step integer
---@return integer?
function range.telling(open, from, step)
  for _, formulas in ipairs(open) do
    local size = best_of(formulas, from, step, 2 * MOST // step)
      or best_of(formulas, from, step, 2 * MOST)
    if size then return size end
  end
end

return range
-- SPDX-License-Identifier: MIT
