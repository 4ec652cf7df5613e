--- Gives advice on out-of-bounds accesses. It reports whether two coordinates,
-- or two axes of the grid or block, are probably swapped. It also reports where
-- a wrong index comes from. The simulator reports the largest coordinates that
-- the line of the access computes (field `reach`, see cute.lang.simreport).
local simreport = require "cute.lang.simreport"

local outside = {}

-- Returns the coordinates of the faulting access as a list of numbers.
local function coordinate(r)
  if not r.facts.extent then return {r.offset} end
  local list = {}
  for n in r.coord:gmatch "%-?%d+" do list[#list + 1] = math.tointeger(n) end
  return list
end

-- Reports whether all coordinates of a list are known and within the extents.
local function fits(list, extents)
  for k, n in ipairs(extents) do
    if not list or not list[k] or list[k] < 0 or list[k] >= n then
      return false
    end
  end
  return true
end

-- Reports whether the coordinates depend on both axis x and axis y of the index
-- named `index` ("thread" or "block").
local function has_both(modes, index)
  local mask = 0
  for _, m in ipairs(modes) do mask = mask | m[index] end
  return mask & 3 == 3
end

-- Returns the text "the axes x and y of the grid, 3 x 4" if swapping these axes
-- would move all accesses inside the tensor. Otherwise returns nil. Checks the
-- block first, then the grid.
local function exchanged_axes(t, extents)
  local function text(what, size)
    return ("the axes x and y of the %s, %d x %d"):format(what, size[1],
      size[2])
  end
  if has_both(t.modes, "thread") and t.block[1] ~= t.block[2]
    and fits(t.other_block, extents) then
    return text("block", t.block)
  end
  if has_both(t.modes, "block") and t.grid[1] ~= t.grid[2]
    and fits(t.other_grid, extents) then
    return text("grid", t.grid)
  end
end

-- Returns the numbers of two modes whose coordinates are probably swapped in a
-- line; nil if there are none. `most` has the maximum of each coordinate. One
-- of these maxima must equal the last index of the other mode. `at` has the
-- coordinates of the faulting access.
local function exchanged_modes(most, extents, at)
  for k, n in ipairs(extents) do
    for other, m in ipairs(extents) do
      if n ~= m and most[k] + 1 == m and most[k] >= n and at[other] < n
        and most[other] + 1 ~= m then
        return math.min(k, other), math.max(k, other)
      end
    end
  end
end

-- Returns advice on an access whose condition is true for a coordinate outside
-- of the tensor.
local function condition(at, extents)
  for k, n in ipairs(at) do
    if n >= extents[k] then
      local mode = #extents == 1 and ""
        or (" of mode %d (%d elements)"):format(k - 1, extents[k])
      return ("the condition around this access is true for coordinate %d%s: "
        .. "is its bound, or the coordinate, wrong?"):format(n, mode)
    end
  end
end

-- Returns extents as text: "48 x 64".
local function size(list) return table.concat(list, " x ") end

--- Returns advice on an out-of-bounds access. Returns nil if there is none.
---@param r table an element of report.reports
---@return string?
function outside.advice(r)
  local t, at = r.reach, coordinate(r)
  local extents = r.facts.extent or {r.facts.count}
  if r.facts.box then return end
  for k, n in ipairs(at) do
    if n < 0 and r.facts.extent then
      return ("coordinate %d of mode %d is below 0: predicate the access with "
        .. "i:ge(0), too"):format(n, k - 1)
    end
  end
  if not t or #extents ~= #t.most or #at ~= #extents then return end
  local axes = exchanged_axes(t, extents)
  local one, other = exchanged_modes(t.most, extents, at)
  if one then
    local ends = {}
    for k in ipairs(at) do ends[k] = math.max(t.most[k], at[k]) + 1 end
    return ("the coordinates of this line reach %s, but '%s' is %s: are the "
      .. "%s exchanged%s, or is the tensor passed transposed?"):format(
      size(ends), r.tensor or "?", size(extents), #at == 2
      and "two coordinates"
      or ("coordinates of modes %d and %d"):format(one - 1, other - 1),
      axes and ", or " .. axes or "")
  elseif axes then
    return ("the coordinates would all be inside if %s, were exchanged: are "
      .. "the results of %s() in the order x, y, z?"):format(axes,
      axes:find "block" and "thread_idx" or "block_idx")
  elseif t.line then
    return ("the index comes from the atomic in %s, whose result grows each "
      .. "time that a thread executes it: does one thread reserve the elements "
      .. "of all, and should it alone execute the atomic?"):format(
      simreport.at(t.file, t.line))
  elseif t.guarded then
    return condition(at, extents)
  end
end

return outside
-- SPDX-License-Identifier: MIT
