--- Describes in words the order in which a candidate accumulates. If two
-- candidates for one problem have the same description, their results have the
-- same bits.
--
-- The description says how many products an instruction adds at once, and which
-- bits it truncates. It also says where K is divided into parts whose partial
-- sums are added. It omits what has no effect on the bits: tiles of M and N,
-- their order, stages, which operand comes first (tensor cores compute the same
-- sums for both), and zeros after the end of K.
local families = require "cute.ops.families"
local tiles = require "cute.tiles"

local sum_order = {}

-- Returns the family whose kernel candidate c uses.
local function kernel_of(c)
  local family = families.of(c.base)
  return family.kernel or family
end

-- Returns a phrase that says that K is divided into parts of `each` elements,
-- or "" if K is not divided.
local function cut_in(k, each)
  return each < k and (", in parts of %d of K"):format(each) or ""
end

--- Returns the text `words`, extended by a phrase that says that K is divided
-- into parts of `each` elements. Their partial sums are added in f32 or f64.
function sum_order.in_parts(words, k, each) return words .. cut_in(k, each) end

local function parts(p, c)
  local o, k = c.options, p.k
  if o.split == "stream" then
    return (", in parts of K by the place of tiles of %dx%d%s%s"):format(
      o.tile[1], o.tile[2], c.swap and ", turned around" or "",
      o.cluster and (" in clusters of %dx%d"):format(o.cluster[1],
                                                     o.cluster[2]) or "")
  elseif o.split == 2 then
    local at = tiles.count(k, o.tile[3]) // 2 * o.tile[3]
    return 2 * at >= k and cut_in(k, at)
      or (", in two parts of K cut at %d"):format(at)
  elseif o.split and o.split > 2 then
    return (", in %d parts of K by the columns of tiles of %dx%dx%d%s"):format(
      o.split, o.tile[1], o.tile[2], o.tile[3],
      c.swap and ", turned around" or "")
  elseif o.splits then
    return cut_in(k, tiles.count(tiles.count(k, c.tile[3]), o.splits)
      * c.tile[3])
  end
  return ""
end

local ADDED = {sum = true, mean = true, rms = true}

-- Returns a phrase for the order in which an epilogue's reduction adds the
-- elements of a row, or "" without such a reduction.
local function of_rows(p, c)
  local o, family = c.options, kernel_of(c)
  for i = 2, #(p.results or {}) do
    local r = p.results[i]
    if r.kind == "row" and ADDED[r.op] then
      return ("; rows by %s%s of %d columns"):format(family.name,
        c.swap and ", turned around," or "",
        family.columns and family.columns(o) or c.tile[c.swap and 1 or 2])
        .. (o.atoms and (", %dx%d"):format(o.atoms[2], o.permutation[2]) or "")
    end
  end
  return ""
end

--- Describes the order in which candidate c for problem p accumulates (see
-- cute.ops.choose). If c.order is set, returns c.order.
---@return string
function sum_order.of(p, c)
  if p.sums.is_integer then return "whole numbers, in any order" end
  if c.order then return c.order .. of_rows(p, c) end
  local words, whole = kernel_of(c).order(p, c.options)
  return words .. (whole and "" or parts(p, c)) .. of_rows(p, c)
end

return sum_order
-- SPDX-License-Identifier: MIT
