--- Finds the index of the largest (or smallest) element of each row.
--
--     local k = argmax {dtype = cute.bf16, n = 4096}
--     k.kernel(X, I):launch {grid = k.grid(m), block = k.block}
--
-- X is a matrix (M,N). I is a vector (M) of i32 or i64, for the index in each
-- row. Of several equal elements, the first one is chosen. NaN is larger than
-- every number or, with smallest = true, smaller.
--
-- With sample = true the kernel's arguments are (X, I, Seed, by). The kernel
-- finds the largest element of X * by + G, where G are independent Gumbel
-- random numbers. This draws index i with a probability proportional to e^(X[i]
-- * by) (E. J. Gumbel, 1954). Seed is one i64 in global memory. cute.philox
-- computes the random word of an element from the seed and the element's row
-- and column.
local cute = require "cute"
local philox = require "cute.philox"
local rules = require "kernels.operand_rules"
local reduce_tensor = require "kernels.reduce_tensor"
local rows = require "kernels.rows"

-- Returns Gumbel random numbers, a vector (plan.width,plan.steps), for this
-- thread's elements of a chunk of row at.row.
local function gumbel(plan, at, chunk, seed)
  local shape = cute.make_layout {plan.width, plan.steps}
  local row = cute.make_rmem_tensor(shape, cute.i32)
  local col = cute.make_rmem_tensor(shape, cute.i32)
  row:fill(at.row)
  for s = 0, plan.steps - 1 do
    local first = plan:index(s, chunk)
    for w = 0, plan.width - 1 do col[{w, s}] = first + w end
  end
  local words = philox.words(row:load(), col:load(), 0, seed)
  return -cute.log(-cute.log(philox.open(words)))
end

--- Returns a kernel of (X, I) or (X, I, Seed, by), and its launch parameters.
---@param o {n: integer, dtype: any, smallest: boolean?, sample: boolean?} and
-- the options of kernels/rows.lua
return function(o)
  rules.options("argmax", o, "smallest sample " .. rows.OPTIONS)
  local plan = rows.plan(o)
  local name = o.smallest and "argmin" or o.sample and "sample" or "argmax"
  rules.need(o.dtype.is_float and o.dtype.bits <= 32, name,
    "the element type must be a float of at most 32 bits, not %s", o.dtype.name)
  local worst = o.smallest and math.huge or -math.huge
  return {plan = plan, block = plan.block,
          grid = function(m) return plan:grid(m, o.resident) end,
          kernel = cute.kernel(name, function(X, I, Seed, by)
    rows.check(plan, name, X)
    local sources = plan:sources({X}, worst)
    plan:each(X.shape[1], sources, function(at)
      local place = reduce_tensor.place(cute.f32, false, o.smallest)
      local best = cute.var(place.init[1], cute.i32)
      local where = cute.var(0, cute.i32)
      plan:chunk(function(chunk)
        local x = sources[1]:get(at, chunk, "last")
        if o.sample then x = x * by + gumbel(plan, at, chunk, Seed) end
        for s = 0, plan.steps - 1 do
          local first = plan:index(s, chunk)
          local inside = plan:has(s, chunk)
          for w = 0, plan.width - 1 do
            local k = place.take(x[{w, s}])[1]
            local more = cute.gt(k, best.value)
            if inside then more = more & inside end
            best.value = cute.where(more, k, best.value)
            where.value = cute.where(more, first + w, where.value)
          end
        end
      end)
      local pair = reduce_tensor.over_lanes(place, {best.value, where.value},
                                   math.min(plan.threads, 32))
      local all, warps = plan:exchange(pair, at.turn)
      pair = reduce_tensor.over_lanes(place, all, warps)
      plan:first(at, function() I[at.row] = pair[2]:to(I.element_type) end)
    end)
  end)}
end
-- SPDX-License-Identifier: MIT
