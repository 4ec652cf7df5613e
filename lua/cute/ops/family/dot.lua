--- Products of f32 in which A has few rows (kernels/gemm_dot).
local cute = require "cute"
local gemm_dot = require "kernels.gemm_dot"
local prepared = require "cute.ops.family.prepared"
local types = require "cute.ops.family.types"

local dot = {name = "gemm_dot",
  why = "few rows of f32: weights are loaded directly into registers"}

-- The largest number of rows of A for this family.
local MOST = 32

-- Returns the contiguous mode of B: "k", or "n" if K is not contiguous.
local function major(p)
  return p.B.stride[2] ~= 1 and p.B.stride[1] == 1 and "n" or "k"
end

-- Checks that each row of t (column, if `lead` is 1) is contiguous and begins
-- at a multiple of 16 bytes. Returns nil if so, else a sentence with the
-- reason.
local function refuses(name, t, lead)
  local steps = cute.flatten_to_tuple(t.stride[3] or {0})
  if t.shape[3 - lead] > 1 then steps[#steps + 1] = t.stride[3 - lead] end
  local whole = t.stride[lead] == 1 and t.alignment % 16 == 0
  for _, far in ipairs(steps) do
    whole = whole and math.type(far) == "integer" and far % 4 == 0
  end
  if not whole then
    return ("gemm_dot needs %s at multiples of 16 bytes, but %s is "
      .. "%s"):format(lead == 2 and "rows" or "columns", name, t.layout)
  end
end

function dot.takes(p)
  if p.m > MOST or p.ragged or p.gated or p.group or p.tf32
    or not types.same(p, "f32") or p.sums ~= cute.f32 then
    return false
  end
  if p.k % 4 ~= 0 then
    return ("gemm_dot needs K to be a multiple of 4, but it is %d"):format(p.k)
  elseif major(p) == "n" and p.n % 4 ~= 0 then
    return ("gemm_dot needs N to be a multiple of 4, but it is %d"):format(p.n)
  end
  return refuses("A", p.A, 2) or refuses("B", p.B, major(p) == "n" and 1 or 2)
end

function dot.list(p)
  local out = {}
  for _, c in ipairs(gemm_dot.candidates(p.m, p.n, p.k,
      {sms = p.sms, batches = p.batches, b_major = major(p)})) do
    out[#out + 1] = {family = "gemm_dot", options = c.options, tile = c.tile,
                     stages = c.options.unroll, split = 1, ns = 1e9 * c.seconds}
  end
  return out
end

-- Returns a description of the accumulation order. The second result is true:
-- the description includes the order in which the warps' parts of K are added.
function dot.order(_, o)
  local by_columns = o.b_major == "n"
  local run = by_columns and 16 or 128
  return ("one product after the other by each of %d lanes, for 4 of each %d "
    .. "of K; lanes %s apart; chunks of %d of K by %d warps in turn"):format(
    by_columns and 4 or 32, run, by_columns and "16 and 8"
      or "16, 8, 4, 2 and 1", run * o.unroll, o.warps[2]), true
end

function dot.make(p, c)
  return prepared.join(p, gemm_dot(c.options), function(A, B) return {A, B} end)
end

return dot
-- SPDX-License-Identifier: MIT
