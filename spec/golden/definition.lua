--- Checks operations on layouts against their definitions, by brute force:
-- products, tile_to_shape, with_shape and divides of layouts with integer
-- strides. The definitions do not depend on a swizzle, so for a swizzled layout
-- the layout without its swizzle is checked.
local core = require "cute.core"

local definition = {}

local function is_layout(x) return core.typename(x) == "layout" end

local function is_tuple(x)
  return type(x) == "table" or core.typename(x) == "tuple"
end

local function plain(x)
  local ok, l = pcall(core.get_nonswizzle_portion, x)
  return ok and l or x
end

local function values_of(l)
  local list = {}
  for i = 0, core.size(l) - 1 do
    local v = l(i)
    if math.type(v) ~= "integer" then return nil end
    list[i + 1] = v
  end
  return list
end

-- Appends to `list`, for each mode of l, {mode, the tiler's element for this
-- mode}. If the tiler has no element for a mode, it appends {mode}.
local function pairs_of(l, tiler, list)
  list = list or {}
  if is_layout(tiler) then
    list[#list + 1] = {l, tiler}
  elseif math.type(tiler) == "integer" then
    list[#list + 1] = {l, core.make_layout(tiler)}
  elseif is_tuple(tiler) then
    for i = 0, core.rank(l) - 1 do
      local own = i < core.rank(tiler) and core.get(tiler, i) or core._
      pairs_of(core.get(l, i), own, list)
    end
  else
    list[#list + 1] = {l}
  end
  return list
end

-- Returns all sums that take one value from each list.
local function sums(lists)
  local all = {0}
  for _, list in ipairs(lists) do
    local next_ = {}
    for _, v in ipairs(list) do
      for _, s in ipairs(all) do next_[#next_ + 1] = s + v end
    end
    all = next_
  end
  return all
end

local function counts(list)
  local n = {}
  for _, v in ipairs(list) do n[v] = (n[v] or 0) + 1 end
  return n
end

-- Reports whether the layout has exactly the values of the list `want`, in any
-- order; a value that occurs twice must occur twice.
local function has_values(out, want)
  local have = values_of(out)
  if not have or #have ~= #want then return false end
  local n, m = counts(have), counts(want)
  for v, k in pairs(n) do if m[v] ~= k then return false end end
  return true
end

-- Checks a product by its definition: product(A, B)(i, j) = A(i) +
-- complement(A, size(A) cosize(B))(B(j)).
local function product(l, tiler, out)
  local lists = {}
  for _, p in ipairs(pairs_of(l, tiler)) do
    lists[#lists + 1] = values_of(p[1])
    if p[2] then
      local room = core.size(p[1]) * core.cosize(p[2])
      local free, at = core.complement(p[1], room), {}
      for j = 0, core.size(p[2]) - 1 do at[j + 1] = free(p[2](j)) end
      lists[#lists + 1] = at
    end
  end
  return has_values(out, sums(lists))
end

local function tile_to_shape(block, shape, order, out)
  local l = core.append(block, nil, core.rank(core.wrap(shape)))
  local times = core.ceil_div(core.product_each(shape),
                              core.product_each(l.shape))
  local tiler = core.make_layout(times, order ~= nil and
                                 order == core.LayoutRight and order or nil)
  if is_tuple(order) then
    tiler = core.make_ordered_layout(times, order)
  end
  return product(l, tiler, out)
end

local function with_shape(l, _, out)
  for i = 0, core.size(out) - 1 do
    if out(i) ~= l(i) then return false end
  end
  return true
end

-- Reports whether a divide's result has each offset of l, and at least as many
-- times as l.
local function divide(l, _, out)
  local n = counts(values_of(out))
  for v, k in pairs(counts(values_of(l))) do
    if (n[v] or 0) < k then return false end
  end
  return true
end

local checks = {tile_to_shape = tile_to_shape, with_shape = with_shape}
for name in ([[logical zipped tiled flat blocked raked]]):gmatch "%a+" do
  checks[name .. "_product"] = product
end
for name in ([[logical zipped tiled flat]]):gmatch "%a+" do
  checks[name .. "_divide"] = divide
end

--- Reports whether `out` is op's result for these arguments. Returns nil if
-- this file has no definition of op.
---@param op string
---@param args table decoded arguments
---@param out any
---@return boolean?
function definition.holds(op, args, out)
  local check = checks[op]
  out = plain(out)
  if not check or not is_layout(out) then return nil end
  local l = plain(args[1])
  local ok, holds
  if op == "tile_to_shape" then
    ok, holds = pcall(check, l, args[2], args[3], out)
  else
    ok, holds = pcall(check, l, args[2], out)
  end
  if ok then return holds end
  return nil
end

return definition
-- SPDX-License-Identifier: MIT
