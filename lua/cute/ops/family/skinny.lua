--- Products of few rows of A (kernels/gemm_skinny).
local cute = require "cute"
local gemm_skinny = require "kernels.gemm_skinny"
local types = require "cute.ops.family.types"

local skinny = {name = "gemm_skinny"}

local MOST = 32  -- rows

-- Are t's rows in pieces of 16 bytes? A sentence where not.
local function rows_refuse(name, t)
  local each = 128 // t.element_type.bits
  local steps = cute.flatten_to_tuple(t.stride[3] or {0})
  if t.shape[1] > 1 then steps[#steps + 1] = t.stride[1] end
  local whole = t.stride[2] == 1 and t.alignment % 16 == 0
  for _, far in ipairs(steps) do whole = whole and far % each == 0 end
  if not whole then
    return ("gemm_skinny wants rows at multiples of 16 bytes, %s is %s")
      :format(name, t.layout)
  end
end

function skinny.takes(p)
  if p.m > MOST or p.ragged
    or not (types.same(p, "bf16") or types.same(p, "f16")) then
    return false
  elseif p.gated then return "gemm_skinny has no gates"
  elseif p.group then return "gemm_skinny has no factors for blocks of K"
  elseif p.k % 8 ~= 0 then
    return ("gemm_skinny wants K in pieces of 8, not %d"):format(p.k)
  end
  return rows_refuse("A", p.A) or rows_refuse("B", p.B)
end

function skinny.list(p)
  local out = {}
  for _, c in ipairs(gemm_skinny.candidates(p.m, p.n, p.k,
      {dtype = p.a, sms = p.sms, batches = p.batches,
       clusters = p.sm >= 90})) do
    local o = c.options
    out[#out + 1] = {family = "gemm_skinny", options = o, tile = c.tile,
      stages = o.unroll, split = o.splits, swap = o.side == "a",
      ns = 1e9 * c.seconds}
  end
  return out
end

return skinny
