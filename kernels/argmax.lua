--- Where the largest (or smallest) element of each row is.
--
--     local k = argmax {dtype = cute.bf16, n = 4096}
--     k.kernel(X, I):launch {grid = k.grid(m), block = k.block}
--
-- X is (M,N), I (M) of i32 or i64. Of equal elements the first counts, and a
-- NaN is larger (with smallest = true: smaller) than all numbers.
local cute = require "cute"
local check = require "kernels.check"
local rows = require "kernels.rows"

local NONE = -1 << 31

-- An i32 that is ordered as the numbers are, with -0 as 0 and NaN above all.
local function key(x)
  local bits = (x + 0.0):bitcast(cute.i32)
  return cute.where(cute.ne(x, x), 0x7fffffff,
                    bits ~ ((bits >> 31) & 0x7fffffff))
end

-- The better of two pairs: key and index.
local function better(a, b)
  local take = cute.gt(b[1], a[1])
    | cute.eq(b[1], a[1]) & cute.lt(b[2], a[2])
  return {cute.where(take, b[1], a[1]), cute.where(take, b[2], a[2])}
end

local function over_lanes(pair, width)
  local d = width // 2
  while d > 0 do
    pair = better(pair, {cute.arch.shuffle_sync_bfly(pair[1], d),
                         cute.arch.shuffle_sync_bfly(pair[2], d)})
    d = d // 2
  end
  return pair
end

--- A kernel of (X, I) and what its launch needs.
---@param o {n: integer, dtype: any, smallest: boolean?} and what
-- kernels/rows.lua takes
return function(o)
  local plan = rows.plan(o)
  local name = o.smallest and "argmin" or "argmax"
  check.need(o.dtype.is_float and o.dtype.bits <= 32, name,
    "elements are floats of at most 32 bits, not %s", o.dtype.name)
  local worst = o.smallest and math.huge or -math.huge
  return {plan = plan, block = plan.block,
          grid = function(m) return plan:grid(m, o.resident) end,
          kernel = cute.kernel(name, function(X, I)
    rows.check(plan, name, X)
    local sources = plan:sources({X}, worst)
    plan:each(X.shape[1], sources, function(at)
      local best, where = cute.var(NONE, cute.i32), cute.var(0, cute.i32)
      plan:chunk(function(chunk)
        local x = sources[1]:get(at, chunk, "last")
        if o.smallest then x = -x end
        for s = 0, plan.steps - 1 do
          local first = plan:index(s, chunk)
          local inside = plan:has(s, chunk)
          for w = 0, plan.width - 1 do
            local k = key(x[{w, s}])
            local more = cute.gt(k, best.value)
            if inside then more = more & inside end
            best.value = cute.where(more, k, best.value)
            where.value = cute.where(more, first + w, where.value)
          end
        end
      end)
      local pair = over_lanes({best.value, where.value},
                              math.min(plan.threads, 32))
      local all, warps = plan:exchange(pair, at.turn)
      pair = over_lanes(all, warps)
      plan:first(at, function() I[at.row] = pair[2]:to(I.element_type) end)
    end)
  end)}
end
