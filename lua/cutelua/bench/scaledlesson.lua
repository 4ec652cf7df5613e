--- Lessons on products with block scales: C = A B^T, where `vs` numbers of a
-- row of A or B share a scale factor.
--
--     harness.run(arg, scaledlesson.lesson {about =, arch =, dtype =, sf =,
--       tile = {BM, BN, BK}, vs =, step =, scale_layout =, make =})
--
-- scaledlesson.lesson returns a lesson for cutelua.bench.harness. Fields:
-- about, tile, arch, make: as in the harness. The operands of `make` are a,
--   sfa, b, sfb and c.
-- dtype, sf: names of the type of A and B, and of the type of scale factors.
-- step: k must be a multiple of this number.
-- scale_layout: function(rows, k) -> the layout of the scale factors of `rows`
--   rows, from (row,i) to an index, where i counts blocks of vs elements.
local core = require "cute.core"
local cute = require "cute"
local sign = require "cute.lang.signature"
local tiles = require "cute.tiles"

local scaledlesson = {}

-- Returns how to fill scale factors: integers, or powers of two for ue8m0.
local function fill(spec)
  if spec.sf ~= "ue8m0" then return {1, 9} end
  return function(buffer, seed)
    for i = 0, #buffer - 1 do
      seed = seed * 1103515245 + 12345 & 0x7fffffff
      buffer[i] = 2.0 ^ (seed >> 16 & 3)
    end
    return buffer
  end
end

local function operands(spec)
  return function(p)
    if p.k % spec.step > 0 then
      error(("--k %d: k must be a multiple of %d"):format(p.k, spec.step), 0)
    end
    local function factors(rows)
      return {cute.size(spec.scale_layout(rows, p.k))}
    end
    return {{"a", {p.m, p.k}, dtype = spec.dtype},
      {"sfa", factors(p.m), dtype = spec.sf, fill = fill(spec)},
      {"b", {p.n, p.k}, dtype = spec.dtype},
      {"sfb", factors(p.n), dtype = spec.sf, fill = fill(spec)},
      {"c", {p.m, p.n}, out = true}}
  end
end

-- Returns `count` rows of an operand, from row `first` on, multiplied by their
-- scale factors. The operand is called `name` and has `rows` rows. The products
-- are exact.
local function scaled(spec, p, name, rows, first, count)
  local layout, out = spec.scale_layout(rows, p.k),
                      core.buffer("f64", count * p.k)
  local elements, factors, vs = p[name], p["sf" .. name], spec.vs
  for row = first, first + count - 1 do
    for i = 0, tiles.count(p.k, vs) - 1 do
      local factor = factors[layout(row, i)]
      for k = i * vs, math.min(i * vs + vs, p.k) - 1 do
        out[(row - first) * p.k + k] = elements[row * p.k + k] * factor
      end
    end
  end
  return out
end

-- Returns a function that computes a row of C in double precision.
local function reference(spec)
  return function(p, row)
    p.scaled_b = p.scaled_b or scaled(spec, p, "b", p.n, 0, p.n)
    local sums = core.gemm_reference(scaled(spec, p, "a", p.m, row, 1),
      p.scaled_b, core.buffer("f64", p.n), 1, p.n, p.k)
    local c = {}
    for col = 1, p.n do c[col] = sums[col - 1] end
    return {c = c}
  end
end

--- Returns a lesson on a product with block scales.
---@param spec table see above
---@return table for harness.run
function scaledlesson.lesson(spec)
  return {
    about = spec.about, arch = spec.arch, tile = spec.tile, make = spec.make,
    dims = {{"m", "rows of A and C"}, {"n", "rows of B, columns of C"},
            {"k", ("columns of A and B, a multiple of %d"):format(spec.step)}},
    dtypes = {"bf16", "f32"},
    sim = {{128, 256, 384}}, gpu = {{4096, 4096, 4096}},
    operands = operands(spec), reference = reference(spec),
    flops = function(p) return 2.0 * p.m * p.n * p.k end,
    pieces = function(p) return p.m end,
    look = 1 << 12,
  }
end

return sign.public("cutelua.bench.scaledlesson.", scaledlesson, [[
  lesson(spec: {about arch tile dtype sf vs step scale_layout make})
]])
-- SPDX-License-Identifier: MIT
