--- Draws an index from the largest elements of each row.
--
--     local k = sample {k = 40, top_p = 0.9}
--     k.kernel(V, I, Out, Seed, 1 / temperature):launch {grid = k.grid(m), ...}
--
-- V (M,K) holds the largest elements of M rows in descending order, and I their
-- indices (kernels/topk.lua). Element j has the weight e^(V[j] / temperature).
-- top_p: an element can be drawn only if the weights of the elements before it
-- add up to less than top_p times the sum of all weights. Out (M) gets the
-- index that was drawn for each row. Seed is one i64 in global memory; the
-- random word of row m is word 0 of the Philox4x32-10 block with counter (m, 0,
-- 0, 0).
local cute = require "cute"
local philox = require "cute.philox"
local rules = require "kernels.operand_rules"

local BLOCK = 64

-- Calls f(j, weight) for each element j of v, the k largest elements of a row
-- in descending order. `by` is the inverse temperature.
local function weights(k, v, by, f)
  local most = v[0]:to(cute.f32)
  for j in cute.range(0, k, 1, {unroll = 4}) do
    f(j, cute.exp((v[j]:to(cute.f32) - most) * by))
  end
end

local function draw(o, V, I, Out, Seed, by)
  local row = (cute.arch.block_idx()) * BLOCK + (cute.arch.thread_idx())
  cute.when(cute.lt(row, V.shape[1]), function()
    local v = V(row, cute._)
    local sum = cute.var(0, cute.f32)
    weights(o.k, v, by, function(_, e) sum.value = sum.value + e end)
    local limit, kept = sum.value * o.top_p, cute.var(0, cute.f32)
    if o.top_p < 1 then
      local past = cute.var(0, cute.f32)
      weights(o.k, v, by, function(_, e)
        local counts = cute.lt(past.value, limit)
        kept.value = kept.value + cute.where(counts, e, 0)
        past.value = past.value + e
      end)
    else
      kept.value = sum.value
    end
    -- Draws an element: the first one for which the sum of the weights up to it
    -- exceeds a random fraction of the total.
    local part = philox.uniform(row, Seed) * kept.value
    local past, chosen = cute.var(0, cute.f32), cute.var(0, cute.i32)
    weights(o.k, v, by, function(j, e)
      local reached = cute.le(past.value, part)
      if o.top_p < 1 then reached = reached & cute.lt(past.value, limit) end
      chosen.value = cute.where(reached, j, chosen.value)
      past.value = past.value + e
    end)
    Out[row] = I[{row, chosen.value}]:to(Out.element_type)
  end)
end

--- Returns a kernel of (V, I, Out, Seed, inverse temperature) and its launch
-- parameters.
---@param o {k: integer, top_p: number?}
---@return table {kernel: any, grid: fun(m: integer): integer, block: integer}
return function(o)
  rules.options("sample", o, "k top_p")
  rules.given("sample", o, "k")
  local own = {k = o.k, top_p = o.top_p or 1}
  rules.need(own.top_p > 0 and own.top_p <= 1, "sample",
    "top_p = %s; more than 0 and at most 1 is needed", own.top_p)
  return {block = BLOCK,
          grid = function(m) return (m + BLOCK - 1) // BLOCK end,
          kernel = cute.kernel("sample", function(...) draw(own, ...) end)}
end
-- SPDX-License-Identifier: MIT
