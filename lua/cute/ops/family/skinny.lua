--- Products in which A has few rows (kernels/gemm_skinny).
local scales = require "cute.ops.scales"
local prepared = require "cute.ops.family.prepared"
local early_b = require "cute.ops.family.early_b"
local cute = require "cute"
local gemm_skinny = require "kernels.gemm_skinny"
local types = require "cute.ops.family.types"

local skinny = {name = "gemm_skinny",
  why = "few rows: weights are loaded directly into registers"}

-- The largest number of rows of A for this family.
local MOST = 32

-- Checks whether rows of t consist of 16-byte pieces. If not, returns a
-- sentence with the reason, else nil.
local function rows_refuse(name, t)
  local each = 128 // t.element_type.bits
  local steps = cute.flatten_to_tuple(t.stride[3] or {0})
  if t.shape[1] > 1 then steps[#steps + 1] = t.stride[1] end
  local whole = t.stride[2] == 1 and t.alignment % 16 == 0
  for _, far in ipairs(steps) do whole = whole and far % each == 0 end
  if not whole then
    return ("gemm_skinny needs rows at multiples of 16 bytes, but %s is %s")
      :format(name, t.layout)
  end
end

function skinny.takes(p)
  local a, b = p.a, p.b
  if p.m > MOST or p.ragged or a ~= cute.bf16 and a ~= cute.f16
    or b ~= a and b.bits ~= 8 then
    return false
  end
  if types.too_old(p) then return types.too_old(p) end
  local piece = 128 // b.bits
  if p.scale_a == "blocks" then
    return "gemm_skinny does not support scale_a with factors for blocks of K"
  elseif p.group and p.group % (4 * piece) ~= 0 then
    return ("gemm_skinny needs scale factors for multiples of %d elements of "
      .. "K, not %d")
      :format(4 * piece, p.group)
  elseif p.k % piece ~= 0 then
    return ("gemm_skinny needs K to be a multiple of %d, but it is "
      .. "%d"):format(piece, p.k)
  end
  return rows_refuse("A", p.A) or rows_refuse("B", p.B)
end

function skinny.list(p)
  local out = {}
  for _, c in ipairs(gemm_skinny.candidates(p.m, p.n, p.k,
      {dtype = p.a, b_dtype = p.b, group = p.group, gated = p.gated,
       sms = p.sms, batches = p.batches, clusters = p.sm >= 90})) do
    local o = c.options
    o.ahead = p.constant and p.sm >= 90
      and early_b.pays(c.blocks * p.batches, c.room, p.sms) or nil
    out[#out + 1] = {family = "gemm_skinny", options = o, tile = c.tile,
      stages = o.unroll, split = o.splits, swap = o.side == "a",
      ns = 1e9 * c.seconds}
  end
  return out
end

-- Returns a description of the accumulation order. The second result is true:
-- the description includes the order in which the parts of K are added.
function skinny.order(p, o)
  local each = 128 // p.b.bits
  return ("16 products at once, %d elements of K apart by fours%s; chunks of "
    .. "%d of K by %d warps in turn%s"):format(each,
    p.group and ", with the factors of each " .. 4 * each or "",
    4 * each * o.unroll, o.warps[2],
    o.splits > 1 and (", of %d blocks"):format(o.splits) or ""), true
end

function skinny.make(p, c)
  return prepared.join(p, gemm_skinny(c.options),
    function(A, B, call)
      return {A, B, p.group and select(2, scales.blocks(p, call.o, p.batch))}
    end)
end

return skinny
-- SPDX-License-Identifier: MIT
