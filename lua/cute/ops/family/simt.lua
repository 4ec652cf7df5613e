--- Products on FMA units (kernels/gemm_simt): the supported problems, and the
-- tiles.
local prepared = require "cute.ops.family.prepared"
local blocks = require "cute.ops.blocks"
local tiles = require "cute.tiles"

-- The tiles {M, N}. `good` is the fraction of the peak rate that the tile
-- reaches. `whole`, `turned` and `single` are factors of the rate for the ways
-- to load an operand (see `way`). `room` is the number of blocks per
-- multiprocessor for which there are enough registers. `lone` is a factor of
-- the rate if a multiprocessor runs only one block of 4 warps. The numbers were
-- fitted to measurements on an H200 (the sets f32 and sgemm of
-- docs/measured/gemm_choices.tsv).
local TILES = {
  {128, 128, stages = 6, good = 0.823, lone = 0.768, room = 2, whole = 1,
   turned = 0.978, single = 0.8},
  {128, 64, stages = 6, good = 0.795, lone = 0.905, room = 4, whole = 1,
   turned = 0.96, single = 0.85},
  {64, 64, stages = 6, good = 0.731, lone = 0.936, room = 5, whole = 1,
   turned = 0.93, single = 0.94},
}
-- The latency in ns of a tile that is loaded through registers, while no other
-- tile is being loaded: {from L2, from memory}. The loads of pieces ("turned")
-- are issued earlier than those of single elements.
local WAITS = {turned = {200, 427}, single = {380, 640}}

-- The only tile for f64: larger tiles need too many registers.
local TILES64 = {{64, 64, stages = 6, good = 0.82, room = 4, whole = 1,
                  turned = 0.955, single = 0.94}}

local simt = {name = "gemm_simt", why = "FMA units, any strides",
              any = true}

local FMA = {f32 = true, f64 = true, f16 = true, bf16 = true, i32 = true}

function simt.takes(p)
  for _, t in ipairs {p.a, p.b} do
    if not FMA[t.name] then
      return ("FMA units do not multiply %s"):format(t)
    end
  end
  if p.gated then return "gemm_simt does not support gated = true" end
  if p.ragged then return "gemm_simt does not support groups" end
  if p.group then return "gemm_simt does not support scale_a and scale_b "
    .. "with factors for blocks of K" end
  if p.a ~= p.b and (p.a.bits > 32 or p.b.bits > 32 or p.sums.is_integer) then
    return ("FMA units do not multiply %s by %s"):format(p.a, p.b)
  end
end

-- Returns 8 warps if each multiprocessor has at most one block, and no operand
-- is turned: f32 768x2816x9216 (nt) then takes 788 us instead of 827. Otherwise
-- returns nil (4 warps), which is 2 to 9 % faster.
local function warps_of(p, t, splits, a, b)
  if a == "turned" or b == "turned" then return nil end
  local count = tiles.count(p.m, t[1]) * tiles.count(p.n, t[2])
    * p.batches * splits
  return t[1] == 128 and count <= p.sms and 8 or nil
end

-- Returns how a kernel copies an operand to shared memory, where M or N is
-- contiguous. "whole" copies pieces of 16 bytes unchanged. "turned" copies
-- pieces along K, and transposes them in registers. "single" copies element by
-- element. The second result is its latency if the operand passes through
-- registers.
local function way(t)
  local lead = t.stride[1] == 1 and t.stride[2] ~= 1 and 1
    or t.stride[2] == 1 and 2
  if blocks.piece(t, lead) < 16 then
    return "single", t.element_type.bits < 32 and WAITS.single or nil
  end
  if lead == 2 then return "turned", WAITS.turned end
  return "whole"
end

function simt.list(p)
  local a, waits_a = way(p.A)
  local b, waits_b = way(p.B)
  local waits = waits_a == WAITS.single and waits_a or waits_b or waits_a
  return blocks.candidates(p, "gemm_simt",
    p.sums.bits == 64 and TILES64 or TILES, function(t, splits)
    local o = {name = "gemm_simt", tile = {t[1], t[2], 8}, stages = t.stages,
               sums = p.sums, a_dtype = p.a, b_dtype = p.b,
               warps = warps_of(p, t, splits, a, b)}
    return o, {t[1], t[2], 8, good = t.good, room = t.room,
               lone = not o.warps and t.lone or nil, waits = waits},
           (p.sums.bits == 64 and 200 or 500) * t[a] * t[b]
  end)
end

function simt.order() return "one product after the other" end

simt.make = prepared.tiles

return simt
-- SPDX-License-Identifier: MIT
