--- Rotary position embedding: rotates pairs of elements of each head by angles
-- that grow with the position.
--
--     local k = rope {dtype = cute.bf16, m = tokens, heads = 32, d = 128,
--                     positions = 4096}
--     k.kernel(X, Cos, Sin, Y):launch {grid = k.grid, block = k.block}
--
-- X and Y are (M,H,D), row-major, Cos and Sin (positions, D/2) of f32 or of X's
-- type. Token m is at position m % positions, or with at = true at P[m], i32,
-- the kernel's last argument. Element i is paired with i + D/2, or with
-- interleaved = true 2i with 2i + 1: y = (a c - b s, b c + a s). inverse = true
-- rotates back, which is the gradient.
local cute = require "cute"
local rules = require "kernels.operand_rules"

local function vector(t, at, width)
  local v = cute.make_tensor(t.iterator + at, cute.make_layout({width}))
  local held = cute.make_rmem_tensor({width}, t.element_type)
  cute.autovec_copy(v, held)
  return held:load():to(cute.f32)
end

local function put(t, at, value)
  local width = #value
  local held = cute.make_rmem_tensor({width}, t.element_type)
  held:store(value:to(t.element_type))
  cute.autovec_copy(held, cute.make_tensor(t.iterator + at,
                                           cute.make_layout({width})))
end

-- Rotates `width` pairs of the halves: elements j and j + D/2.
local function halves(o, X, Y, from, j, width, c, s)
  local a = vector(X, from + j, width)
  local b = vector(X, from + j + o.d // 2, width)
  put(Y, from + j, a * c - b * s)
  put(Y, from + j + o.d // 2, b * c + a * s)
end

-- Rotates `width` pairs of neighbours, from pair j on.
local function neighbours(_, X, Y, from, j, width, c, s)
  local x = vector(X, from + 2 * j, 2 * width)
  local y = cute.make_rmem_tensor({2 * width}, cute.f32)
  for i = 0, width - 1 do
    local a, b = x[2 * i], x[2 * i + 1]
    y[2 * i] = a * c[i] - b * s[i]
    y[2 * i + 1] = b * c[i] + a * s[i]
  end
  put(Y, from + 2 * j, y:load())
end

--- Returns a kernel of (X, Cos, Sin, Y[, P]) and its launch parameters.
---@param o table {dtype: any, m: integer, heads: integer, d: integer,
-- positions: integer, interleaved: boolean?, inverse: boolean?, at: boolean?,
-- block: integer?}
return function(o)
  rules.options("rope", o,
    "dtype m heads d positions interleaved inverse at block")
  rules.given("rope", o, "dtype", "m", "heads", "d", "positions")
  rules.integers("rope", o, {"block"}, 1, 1024)
  rules.need(o.d % 2 == 0, "rope", "heads of %d elements; an even number is "
    .. "needed", o.d)
  local pairs_of = o.d // 2
  local width = rules.widest(o.dtype.bits * (o.interleaved and 2 or 1),
                             pairs_of)
  local along, block = pairs_of // width, o.block or 256
  local total = o.m * o.heads * along
  local turn = o.interleaved and neighbours or halves
  return {grid = (total + block - 1) // block, block = block,
          kernel = cute.kernel("rope", {fmad = true},
                               function(X, Cos, Sin, Y, P)
    rules.dense("rope", "X", X, o.m * o.heads * o.d)
    rules.dense("rope", "Cos", Cos, o.positions * pairs_of)
    rules.dense("rope", "Sin", Sin, o.positions * pairs_of)
    rules.dense("rope", "Y", Y, o.m * o.heads * o.d)
    rules.need(not o.at == not P, "rope", "operand P and at = true go together")
    local i = (cute.arch.block_idx()) * block + (cute.arch.thread_idx())
    local function body()
      local j, head = i % along * width, i // along
      local token = head // o.heads
      local place = P and P[token] or token % o.positions
      local c = vector(Cos, place * pairs_of + j, width)
      local s = vector(Sin, place * pairs_of + j, width)
      turn(o, X, Y, head * o.d, j, width, c, o.inverse and -s or s)
    end
    if total % block == 0 then body()
    else cute.when(cute.lt(i, total), body) end
  end)}
end
-- SPDX-License-Identifier: MIT
