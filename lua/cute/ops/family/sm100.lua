--- Products by tcgen05.mma with operands loaded by TMA (kernels/gemm_sm100):
-- the supported problems, and the suitable candidates for each.
local core = require "cute.core"
local formats = require "cute.ops.formats"
local gemm_sm100 = require "kernels.gemm_sm100"
local targets = require "cute.targets"
local tma = require "cute.ops.family.tma"
local types = require "cute.ops.family.types"

local sm100 = {name = "gemm_sm100", why = "Blackwell tensor cores with TMA",
               formats = true}

-- TMA lacks the swizzle that tcgen05.mma needs for tf32 with contiguous M or N.
tma.layouts(sm100, function(dtype) return dtype.bits <= 16 end)

-- Reports whether tcgen05.mma multiplies the types of problem p. Integers need
-- the targets sm_100a or sm_110a (target_need in core/ir/target.c).
local function multiplies(p)
  if p.format then
    return types.fp8(p.a) and types.fp8(p.b) or types.same(p, "e2m1")
  end
  if types.byte(p.a) then
    return p.a == p.b and p.sm ~= 103 and p.arch:find "a$" ~= nil
  end
  return types.same(p, "bf16") or types.same(p, "f16")
    or types.same(p, "f32") and p.tf32 or types.fp8(p.a) and types.fp8(p.b)
end

function sm100.takes(p)
  if p.sm < 100 then return false end
  if not core.has(p.sm, "tcgen05") or not p.arch:find "[af]$" then
    return ("tcgen05 needs sm_100a or its family, but the device is "
      .. "%s"):format(p.arch)
  end
  if not multiplies(p) then
    local f = p.format
    return ("tcgen05.mma of %s does not multiply %s by %s%s"):format(p.arch,
      f and f.a or p.a, f and f.b or p.b, types.same(p, "f32")
      and " (tf32 = true rounds them to tf32)" or "")
  end
  if p.group then
    return "gemm_sm100 does not support scale factors for blocks of K"
  end
  return tma.form(sm100, p)
end

-- Returns the suitable candidates of kernels/gemm_sm100. With swap, returns the
-- candidates that compute D^T = B A^T.
local function candidates(p, swap)
  local o, out = tma.options(sm100, p, swap), {}
  o.card = targets.blackwell(p.sm)
  if p.fused then o.epilogue = tma.LATER end
  if p.format then o.scales = {p.format.factor, p.format.size} end
  local rows, n = tma.extents(p, swap, 128)
  for _, c in ipairs(gemm_sm100.candidates(rows, n, p.k, o)) do
    local chosen = c.options
    out[#out + 1] = {family = sm100.name, options = chosen, tile = chosen.tile,
      stages = chosen.stages, cluster = chosen.cluster, swap = swap, split = 1,
      ns = 1e9 * c.seconds * tma.padded(p, chosen)
        + (p.format and formats.ns(p) or 0)}
  end
  return out
end

function sm100.list(p)
  local out = candidates(p, false)
  -- Candidates that compute D^T are listed only without scale factors. With
  -- scale factors, the tiles of D^T have the same extents as those of D.
  if p.gated or p.ragged or p.format then return out end
  local turned = candidates(p, true)
  return table.move(turned, 1, #turned, #out + 1, out)
end

--- Returns a description of the accumulation order. Blackwell's tensor cores
-- add as many products at once as Hopper's, but truncate the sums at other
-- bits.
function sm100.order(_, o)
  return ("%d products at once on Blackwell"):format(256 // o.a_dtype.bits)
end

--- Returns the number of adjacent columns that an epilogue's reduction adds in
-- a fixed order.
function sm100.columns(o)
  return o.epi and o.epi[2] > 0 and o.epi[2] or o.tile[2]
end

function sm100.make(p, c) return tma.make(gemm_sm100, p, c) end

return sm100
-- SPDX-License-Identifier: MIT
