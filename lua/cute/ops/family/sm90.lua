--- Products by wgmma with operands loaded by TMA (kernels/gemm_sm90): the
-- supported problems, and the suitable candidates for each.
local early_b = require "cute.ops.family.early_b"
local core = require "cute.core"
local gemm_sm90 = require "kernels.gemm_sm90"
local tma = require "cute.ops.family.tma"
local types = require "cute.ops.family.types"

local sm90 = {name = "gemm_sm90", why = "Hopper tensor cores with TMA"}

--- Descriptions of the accumulation orders of Hopper's tensor cores: for 16-bit
-- floats, and for 8-bit floats. With 8-bit floats, each sum of %d products is
-- added to the total in f32.
sm90.SIXTEEN = "16 products at once"
sm90.EIGHT = "32 products at once, kept to 13 bits; those of %d in f32"

-- wgmma reads operands whose M or N is contiguous only if they have 16 bits.
tma.layouts(sm90, function(dtype) return dtype.bits == 16 end)

function sm90.takes(p)
  if p.sm >= 100 then return false end
  if not core.has(p.sm, "wgmma") or p.arch ~= "sm_90a" then
    return ("wgmma needs sm_90a, but the device is %s"):format(p.arch)
  end
  local known = types.same(p, "bf16") or types.same(p, "f16")
    or types.same(p, "f32") and p.tf32
    or types.fp8(p.a) and types.fp8(p.b) or types.byte(p.a) and types.byte(p.b)
  if not known then
    return ("wgmma does not multiply %s by %s%s"):format(p.a, p.b,
      types.same(p, "f32") and " (tf32 = true rounds them to tf32)" or "")
  end
  if p.group and (p.gated or p.batches > 1 and not p.ragged
    or not (types.fp8(p.a) and p.group == 128
            or p.a.bits == 16 and p.group % 64 == 0 and p.group <= 256)) then
    return "gemm_sm90 supports scale factors for 128 elements of K with 8-bit "
      .. "floats, for 64, 128, 192 or 256 with 16-bit types, without gated = "
      .. "true and batches"
  end
  return tma.form(sm90, p)
end

-- For products of 8-bit floats: the number of tiles along K whose products the
-- tensor cores sum before this sum is added in f32. It is 1 as in cublasLt,
-- because tensor cores keep fewer bits than f32. A larger number would also
-- occupy more stages at the same time.
local PROMOTE = 1

-- Returns the number of tiles along K whose products the tensor cores sum
-- before this sum is added in f32. Returns nil if the tensor cores sum the
-- whole K.
local function promote(p)
  if types.fp8(p.a) then return p.group and 1 or PROMOTE end
  return p.group and p.group // 64 or nil
end

-- Reports whether a candidate's kernel can apply one scale factor for each
-- p.group elements of K.
local function has_factors(p, o)
  -- With 16-bit operands and scale factors, the option `epi`
  -- (kernels/gemm_sm90.lua) would make the kernel spill registers.
  if p.a.bits == 16 and o.epi then return false end
  return o.tile[3] * o.promote == p.group and o.stages > o.promote
end

-- Fractions of time that an epilogue adds, measured for products of several
-- waves and K = 4096 on an H200. They do not apply to the pingpong schedule,
-- where another warpgroup's MMAs run during the epilogue. GATED is for gates,
-- EXPOSED for other epilogues (also for C). READ is added if the epilogue reads
-- matrices.
local GATED, EXPOSED, READ = 0.09, 0.08, 0.08

local function exposed(p, c)
  local busy = p.fused or p.c
  if not busy or c.waves <= 1 or c.options.schedule == "pingpong" then
    return 1
  end
  return 1 + ((p.gated and GATED or EXPOSED)
    + (#(p.sources or {}) > 0 and READ or 0)) * 4096 / p.k
end

-- The fraction of time that scale factors add for 16-bit types on an H200, if a
-- tile has 128 columns or more. Narrower tiles and tiles of 256 rows need less.
local FACTORS = 0.3

local function by_factors(p, o)
  if not p.group or p.a.bits ~= 16 then return 1 end
  return 1 + FACTORS * math.min(o.tile[2], 128) / 128
    * (o.tile[1] == 256 and 0.7 or 1)
end

-- Reports whether a candidate leaves enough registers for an epilogue: its
-- threads have at most 128 accumulators each.
local function has_room(o)
  local groups = o.schedule == "pingpong" and 1 or o.consumers or 2
  return o.promote or o.tile[1] * o.tile[2] // (128 * groups) <= 128
end

-- Selects at most two of p.sources (matrices that epilogues read) that TMA can
-- load. Returns them, and a list of options for gemm_sm90 that describes them.
local function sources_of(p, swap)
  local list, told = {}, {}
  for _, s in ipairs(p.sources or {}) do
    local lead = s.stride[2] == 1 and 2 or 1
    local bits = s.element_type.bits
    if #list < 2 and (bits == 16 or bits == 32)
      and not tma.refuses("C", s, lead, "rows or columns") then
      list[#list + 1] = s
      told[#list] = {dtype = s.element_type,
                     major = (swap ~= (lead == 2)) and "n" or "m"}
    end
  end
  return list, #told > 0 and told or nil
end

-- Returns the suitable candidates of kernels/gemm_sm90. With swap, returns the
-- candidates that compute D^T = B A^T, whose tiles can be narrow along M.
local function candidates(p, swap)
  local o, out = tma.options(sm90, p, swap), {}
  o.promote = promote(p)
  o.blocks = p.group and (swap and p.blocks_a or p.blocks_b) or nil
  local sources, told = sources_of(p, swap)
  o.sources = told
  if p.fused or told then o.epilogue = tma.LATER end
  local rows, n, high = tma.extents(p, swap, 64)
  for _, c in ipairs(gemm_sm90.candidates(rows, n, p.k, o)) do
    local chosen = c.options
    if p.constant and (math.type(chosen.split) == "integer"
        or chosen.persistent == false)
      and early_b.pays(c.blocks, c.room, p.sms) then
      chosen.ahead = swap and "a" or "b"
    end
    if (not p.gated or chosen.tile[2] % 32 == 0)
      and (not o.epilogue or has_room(chosen))
      and (not o.batches or chosen.tile[1] <= high)
      and (not p.group or has_factors(p, chosen)) then
      out[#out + 1] = {family = "gemm_sm90", options = chosen,
        tile = chosen.tile, stages = chosen.stages, cluster = chosen.cluster,
        sources = chosen.sources and sources, swap = swap,
        ns = 1e9 * c.seconds * tma.padded(p, chosen) * exposed(p, c)
          * by_factors(p, chosen),
        split = chosen.equal and "equal parts" or chosen.split or 1}
    end
  end
  return out
end

function sm90.list(p)
  local out = candidates(p, false)
  -- Products of few rows with 16-bit types and scale factors use gemm_skinny.
  if p.gated or p.ragged or p.group and p.a.bits == 16 then return out end
  local turned = candidates(p, true)
  return table.move(turned, 1, #turned, #out + 1, out)
end

function sm90.order(p, o)
  if types.fp8(p.a) then
    return sm90.EIGHT:format(o.promote * o.tile[3])
  end
  return (p.a.bits == 32 and "8 products at once" or sm90.SIXTEEN)
    .. types.factors(p)
end

--- Returns the number of adjacent columns that an epilogue's reduction adds in
-- a fixed order.
function sm90.columns(o)
  return o.epi and o.epi[2] > 0 and o.epi[2] or o.tile[2]
end

function sm90.make(p, c) return tma.make(gemm_sm90, p, c) end

return sm90
-- SPDX-License-Identifier: MIT
