--- Describes in words the order in which a candidate accumulates. If two
-- candidates for one problem have the same description, they give the same
-- bits.
--
-- The description says how many products an instruction adds at once, which
-- bits it truncates, and where K is divided into parts whose partial sums are
-- added. It omits what has no effect on the bits: tiles of M and N, their
-- order, stages, which operand comes first (tensor cores give the same sums for
-- both), and zeros after the end of K.
local cute = require "cute"
local tiles = require "cute.tiles"
local types = require "cute.ops.family.types"

local sum_order = {}

--- Accumulation orders of Hopper's tensor cores: for 16-bit floats, and for
-- 8-bit floats, whose sums continue in f32 after %d products.
sum_order.SIXTEEN = "16 products at once"
sum_order.EIGHT = "32 products at once, kept to 13 bits; those of %d in f32"

-- For each family, a function that returns the order in which its instructions
-- add products, in words.
local STEPS = {}

-- Returns the family whose kernel multiplies the operands of candidate c. This
-- is c.base, except if operands are repacked for the kernel of another family.
local function kernel_of(c)
  return c.base == "moved" and c.family or c.base
end

local function factors(p)
  return p.group and (", with the factors of each %d"):format(p.group) or ""
end

function STEPS.gemm_sm90(p, o)
  if types.fp8(p.a) then
    return sum_order.EIGHT:format(o.promote * o.tile[3])
  end
  return (p.a.bits == 32 and "8 products at once" or sum_order.SIXTEEN)
    .. factors(p)
end

function STEPS.gemm_sm80(p, o)
  if p.sums == cute.f64 then return STEPS.gemm_simt() end
  return o.permutation[3] .. " products at once"
    .. (o.as and p.a.bits == 8 and p.b.bits == 8 and ", as " .. o.as.name or "")
    .. factors(p)
end

function STEPS.gemm_simt() return "one product after the other" end

function STEPS.gemm_int4(_, o)
  return ("16 products at once, by warps that share K as suits %d rows"):format(
    o.m)
end

function STEPS.gemm_skinny(p, o)
  local each = 128 // p.b.bits
  return ("16 products at once, %d elements of K apart by fours%s; chunks of "
    .. "%d of K by %d warps in turn%s"):format(each,
    p.group and ", with the factors of each " .. 4 * each or "",
    4 * each * o.unroll, o.warps[2],
    o.splits > 1 and (", of %d blocks"):format(o.splits) or "")
end

-- Returns a phrase for the user: K is divided into parts of `each` elements.
local function cut_in(k, each)
  return each < k and (", in parts of %d of K"):format(each) or ""
end

--- Returns the text `words` extended by a phrase: K is divided into parts whose
-- partial sums are added in f32 or f64.
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
  elseif o.splits and c.base ~= "gemm_skinny" then
    return cut_in(k, tiles.count(tiles.count(k, c.tile[3]), o.splits)
      * c.tile[3])
  end
  return ""
end

local ADDED = {sum = true, mean = true, rms = true}

-- Returns a phrase for the order in which an epilogue adds the elements of a
-- row, if it has such a reduction.
local function of_rows(p, c)
  local o, base = c.options, kernel_of(c)
  for i = 2, #(p.results or {}) do
    local r = p.results[i]
    if r.kind == "row" and ADDED[r.op] then
      local epi = o.epi and o.epi[2] or 0
      return ("; rows by %s%s of %d columns"):format(base,
        c.swap and ", turned around," or "",
        base == "gemm_sm90" and (epi > 0 and epi or o.tile[2])
        or c.tile[c.swap and 1 or 2])
        .. (o.atoms and (", %dx%d"):format(o.atoms[2], o.permutation[2]) or "")
    end
  end
  return ""
end

--- Returns the order in which candidate c for problem p accumulates (see
-- cute.ops.choose). If c.order is set, returns that.
---@return string
function sum_order.of(p, c)
  if p.sums.is_integer then return "whole numbers, in any order" end
  return (c.order or STEPS[kernel_of(c)](p, c.options) .. parts(p, c))
    .. of_rows(p, c)
end

return sum_order
-- SPDX-License-Identifier: MIT
