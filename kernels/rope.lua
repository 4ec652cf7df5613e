--- Rotary position embedding: rotates pairs of elements of each head by angles
-- that grow with the position.
--
--     local k = rope {dtype = cute.bf16, m = tokens, heads = 32, d = 128,
--                     positions = 4096}
--     k.kernel(X, Cos, Sin, Y):launch {grid = k.grid, block = k.block}
--
-- X and Y are (M,H,D), for M tokens and H contiguous heads of D elements. Cos
-- and Sin are (positions, D/2) of f32 or of X's type, row-major. Token m is at
-- position m % positions or, with at = true, at position P[m]. P, i32, is the
-- kernel's last argument. Element i is paired with i + D/2 or, with interleaved
-- = true, element 2i with 2i + 1. A pair (a, b) becomes (a c - b s, b c + a s),
-- where c and s are the elements of Cos and Sin for the position and the pair.
-- inverse = true rotates by the negative angles, as the gradient requires.
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

-- Lets the next launch begin. This block has issued its loads, so the next
-- launch cannot delay them.
local function loaded(o)
  if o.pdl then cute.arch.griddepcontrol_launch_dependents() end
end

-- Rotates `width` pairs of a head, from pair j on. Pair j consists of element j
-- of the first half and element j + D/2. The head begins at element x of X and
-- y of Y.
local function halves(o, X, Y, x, y, j, width, c, s)
  local a = vector(X, x + j, width)
  local b = vector(X, x + j + o.d // 2, width)
  loaded(o)
  put(Y, y + j, a * c - b * s)
  put(Y, y + j + o.d // 2, b * c + a * s)
end

-- Rotates `width` pairs of a head, from pair j on. A pair consists of two
-- neighbouring elements.
local function neighbours(o, X, Y, x, y, j, width, c, s)
  local from = vector(X, x + 2 * j, 2 * width)
  loaded(o)
  local to = cute.make_rmem_tensor({2 * width}, cute.f32)
  for i = 0, width - 1 do
    local a, b = from[2 * i], from[2 * i + 1]
    to[2 * i] = a * c[i] - b * s[i]
    to[2 * i + 1] = b * c[i] + a * s[i]
  end
  put(Y, y + 2 * j, to:load())
end

-- Returns a function that maps the number of a head, counted over all tokens,
-- to the index of the head's first element in t.
local function head_of(o, name, t)
  local shape, stride = t.shape, t.stride
  rules.need(type(shape) == "table" and #shape == 3
    and shape[1] == o.m and shape[2] == o.heads and shape[3] == o.d
    and (o.d == 1 or stride[3] == 1), "rope",
    "operand %s is %s; (%d,%d,%d) with contiguous heads is needed", name,
    tostring(t.layout), o.m, o.heads, o.d)
  return function(head)
    if stride[1] == o.heads * stride[2] then return head * stride[2] end
    return head // o.heads * stride[1] + head % o.heads * stride[2]
  end
end

--- Returns a kernel with arguments (X, Cos, Sin, Y[, P]), and its launch
-- parameters.
---@param o table {dtype: any, m: integer, heads: integer, d: integer,
-- positions: integer, interleaved: boolean?, inverse: boolean?, at: boolean?,
-- block: integer?, pdl: boolean?}
return function(o)
  rules.options("rope", o,
    "dtype m heads d positions interleaved inverse at block pdl")
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
    if o.pdl then cute.arch.griddepcontrol_wait() end
    local x_of, y_of = head_of(o, "X", X), head_of(o, "Y", Y)
    rules.dense("rope", "Cos", Cos, o.positions * pairs_of)
    rules.dense("rope", "Sin", Sin, o.positions * pairs_of)
    -- Cos and Sin may have more rows than there are tokens; the remaining rows
    -- are not read.
    if o.m < o.positions then
      cute.partial_ok(Cos)
      cute.partial_ok(Sin)
    end
    rules.need(not o.at == not P, "rope", o.at and "at = true needs operand P"
      or "operand P needs at = true")
    local i = (cute.arch.block_idx()) * block + (cute.arch.thread_idx())
    local function body()
      local j, head = i % along * width, i // along
      local token = head // o.heads
      local place = P and P[token] or token % o.positions
      local c = vector(Cos, place * pairs_of + j, width)
      local s = vector(Sin, place * pairs_of + j, width)
      turn(o, X, Y, x_of(head), y_of(head), j, width, c, o.inverse and -s or s)
    end
    if total % block == 0 then body()
    else cute.when(cute.lt(i, total), body) end
  end)}
end
-- SPDX-License-Identifier: MIT
