--- Prepares the modes of element-wise operands: broadcasts them, sorts them by
-- their order in memory, and merges them.
--
-- A loop stands for one mode: {n = extent, mode = number of the mode in the
-- shape, stride of operand 1, stride of operand 2, ...}. A list of loops visits
-- every element of the shape once; the first loop is the innermost.
local core = require "cute.core"
local cute = require "cute"

local modes = {}

-- Returns the extents and the strides of the leaves (undivided parts) of one
-- mode, in colexicographic order. Omits leaves of extent 1 in a nested mode.
local function leaves(extent, stride)
  if math.type(extent) then return {extent}, {stride} end
  local n, d = cute.flatten_to_tuple(extent), cute.flatten_to_tuple(stride)
  local e, s = {}, {}
  for i = 1, #n do
    if n[i] ~= 1 then e[#e + 1], s[#s + 1] = n[i], d[i] end
  end
  return e, s
end

-- Returns the top-level modes of a layout. A layout that is a single leaf has
-- one mode.
local function top(l)
  local shape, stride = l.shape, l.stride
  if math.type(shape) then return {shape}, {stride} end
  return shape, stride
end

--- Returns the extents of a layout's modes.
function modes.extents(l)
  local list = {}
  for i = 1, cute.rank(l) do list[i] = cute.size(l, i - 1) end
  return list
end

--- Reports whether the modes of a layout have these extents.
---@param l any
---@param extents integer[]
---@return boolean
function modes.has(l, extents)
  local own = modes.extents(l)
  if #own ~= #extents then return false end
  for i, n in ipairs(own) do
    if n ~= extents[i] then return false end
  end
  return true
end

--- Returns the shape to which all layouts broadcast by NumPy's rule: modes are
-- matched from the last one, and their extents are equal, 1, or missing.
---@param list table[] {name =, l = layout}
---@param fail fun(text: string, ...)
---@return integer[]
function modes.shape(list, fail)
  local rank = 0
  for _, x in ipairs(list) do rank = math.max(rank, cute.rank(x.l)) end
  local shape, owner = {}, {}
  for i = 1, rank do shape[i] = 1 end
  for _, x in ipairs(list) do
    local own = modes.extents(x.l)
    for i, n in ipairs(own) do
      local at = rank - #own + i
      if shape[at] == 1 then
        shape[at], owner[at] = n, n ~= 1 and x or owner[at]
      elseif n ~= 1 and n ~= shape[at] then
        fail("%s is %s and %s is %s: modes of extents %d and %d do not "
          .. "broadcast",
             owner[at].name, owner[at].l, x.name, x.l, shape[at], n)
      end
    end
  end
  return shape
end

-- Adds the loops for mode `m` of the shape, whose extent is n. If an operand's
-- mode is nested, splits the mode so that each loop lies within one leaf
-- (undivided part) of every operand.
local function cut(loops, list, m, n, rank, fail)
  local own = {}
  for i, x in ipairs(list) do
    local shape, stride = top(x.l)
    local at = m - (rank - #shape)
    local e, s = {n}, {0}
    if at >= 1 and cute.size(x.l, at - 1) ~= 1 then
      e, s = leaves(shape[at], stride[at])
    end
    own[i] = {e = e, s = s, at = 1, left = e[1], stride = s[1]}
  end
  while n > 1 do
    local step = n
    for _, c in ipairs(own) do step = math.min(step, c.left) end
    local loop = {n = step, mode = m}
    for i, c in ipairs(own) do
      if c.left % step ~= 0 then
        fail("mode %d of %s, whose layout is %s, is divided differently from "
          .. "the same mode of the other operands", m - 1, list[i].name,
             tostring(list[i].l))
      end
      loop[i] = c.stride
      c.left, c.stride = c.left // step, c.stride * step
      if c.left == 1 then
        c.at = c.at + 1
        c.left, c.stride = c.e[c.at] or 1, c.s[c.at]
      end
    end
    loops[#loops + 1] = loop
    n = n // step
  end
end

--- Returns the loops over a shape as a list, the innermost loop first. The
-- innermost loops belong to the last mode (row-major order). A mode has several
-- loops if an operand nests it (see cut).
---@param list table[] {name =, l = layout}, which broadcast to the shape
---@param shape integer[]
---@param fail fun(text: string, ...)
---@return table[]
function modes.loops(list, shape, fail)
  local loops = {}
  for m = #shape, 1, -1 do cut(loops, list, m, shape[m], #shape, fail) end
  return loops
end

--- Sorts loops in place by the strides of operand `lead`, the smallest first.
-- If these strides are equal, the strides of the next operand decide. A stride
-- of 0 counts as the largest.
---@param loops table[]
---@param lead integer
---@param count integer number of operands
function modes.sort(loops, lead, count)
  for i, loop in ipairs(loops) do loop.was = i end
  local function far(s) return s == 0 and math.huge or s end
  table.sort(loops, function(a, b)
    for k = 0, count - 1 do
      local i = (lead - 1 + k) % count + 1
      local x, y = far(a[i]), far(b[i])
      if x ~= y then return x < y end
    end
    return a.was < b.was
  end)
end

--- Merges neighbouring loops across which every operand is contiguous.
---@param loops table[]
---@param count integer number of operands
---@return table[]
function modes.coalesce(loops, count)
  local out = {}
  for _, loop in ipairs(loops) do
    local last, one = out[#out], #out > 0
    for i = 1, one and count or 0 do
      one = one and loop[i] == last[i] * last.n
    end
    if one then
      last.n = last.n * loop.n
    else
      local new = {n = loop.n, mode = loop.mode}
      for i = 1, count do new[i] = loop[i] end
      out[#out + 1] = new
    end
  end
  if #out == 0 then
    out[1] = {n = 1, mode = 1}
    for i = 1, count do out[1][i] = 1 end
  end
  return out
end

--- Returns two lists: the extents of loops, and the strides of operand i.
function modes.column(loops, i)
  local e, s = {}, {}
  for k, loop in ipairs(loops) do e[k], s[k] = loop.n, loop[i] end
  return e, s
end

--- Returns the number of elements of operand i that one vector access can move
-- along the first loop (or loop `along`): a power of two, at most `most`. The
-- alignment of the memory, the strides of the other loops and, if there are
-- several loops, the extent of the loop are multiples of this vector. The
-- result 1 means that no vectors are possible.
---@param loops table[]
---@param i integer
---@param bits integer bits of an element
---@param alignment integer the memory's alignment in bytes
---@param most integer
---@return integer
function modes.width(loops, i, bits, alignment, most, along)
  along = along or 1
  local loop, w = loops[along], most
  if loop[i] ~= 1 then return 1 end
  while w > 1 do
    local fits = alignment * 8 % (w * bits) == 0 and loop.n >= w
      and (#loops == 1 or loop.n % w == 0)
    for k, other in ipairs(loops) do
      fits = fits and (k == along or other[i] % w == 0)
    end
    if fits then break end
    w = w // 2
  end
  return w
end

--- Reports whether different coordinates always have different addresses. The
-- loops must be sorted by operand i's strides. Returns false also if it cannot
-- decide.
function modes.injective(loops, i)
  local reach = 0
  for _, loop in ipairs(loops) do
    if loop.n > 1 then
      if loop[i] <= reach then return false end
      reach = reach + loop[i] * (loop.n - 1)
    end
  end
  return true
end

---------------------------------------------------------------------------
-- Overlap of operands in memory
---------------------------------------------------------------------------

-- Returns a tensor's buffer, and the byte offsets in it at which the tensor's
-- elements begin and end.
local function span(t)
  local v = core.launch_values {t, n = 1}[1]
  return v[1], v[2], v[2] + v[3]
end

--- Returns how operands i and j overlap in memory: nil (not at all), "same"
-- (each element has the same address in both), "apart" (their elements
-- alternate without overlap, like columns of one matrix), or "mixed"
-- (otherwise).
---@param loops table[] with the strides of both operands
---@param a any the tensor of operand i
---@param b any the tensor of operand j
function modes.meet(loops, i, a, j, b)
  local one, from, to = span(a)
  local two, first, last = span(b)
  if not rawequal(one, two) or to <= first or last <= from then return nil end
  local ba, bb = a.element_type.bits, b.element_type.bits
  local same = from == first and ba == bb
  local pitch = 0
  for _, loop in ipairs(loops) do
    same = same and (loop[i] == loop[j])
    if loop[i] * ba == loop[j] * bb then
      pitch = math.max(pitch, loop[i] * ba // 8)
    end
  end
  if same then return "same" end
  if pitch == 0 then return "mixed" end
  -- x and y are the numbers of bytes that elements of operands i and j span
  -- within one pitch, the largest stride that both have.
  local x, y = ba // 8, bb // 8
  for _, loop in ipairs(loops) do
    if loop[i] * ba ~= loop[j] * bb or loop[i] * ba // 8 < pitch then
      x = x + (loop.n - 1) * (loop[i] * ba // 8)
      y = y + (loop.n - 1) * (loop[j] * bb // 8)
    end
  end
  local apart = (first - from) % pitch
  return apart >= x and apart + y <= pitch and "apart" or "mixed"
end

return modes
-- SPDX-License-Identifier: MIT
