--- Counter-based random bits, Philox4x32-10. An element's bits depend only on
-- its position and the seed, for all devices and kernels.
local core = require "cute.core"
local cute = require "cute"

local philox = {}

local ROUNDS = 10
local M0, M1 = 0xD2511F53, 0xCD9E8D57  -- multipliers
local W0, W1 = 0x9E3779B9, 0xBB67AE85  -- key increments

-- Returns the high and the low word of the product of x, a u32, and a constant.
local function product(x, by)
  local wide = x:to(cute.u64) * by
  return (wide >> 32):to(cute.u32), wide:to(cute.u32)
end

--- Returns four random words for a counter of four u32 and a key of two u32.
-- Counter and key consist of scalars or vectors. The rounds stay a loop,
-- because NVRTC took seconds to compile unrolled rounds.
function philox.four(c0, c1, c2, c3, k0, k1)
  for _ in cute.range(0, ROUNDS, 1, {unroll = 1}) do
    local h0, l0 = product(c0, M0)
    local h1, l1 = product(c2, M1)
    c0, c1, c2, c3 = h1 ~ c1 ~ k0, l1, h0 ~ c3 ~ k1, l0
    k0, k1 = k0 + W0, k1 + W1
  end
  return c0, c1, c2, c3
end

--- Returns the two words of the Philox key for a seed. The seed is a Lua
-- integer, a traced integer, or a tensor that has it as element 0.
function philox.key(seed)
  if math.type(seed) then
    local x = math.tointeger(seed)
    if not x then
      core.fail("bad-argument", ("the seed must be an integer, not %s")
        :format(seed))
    end
    local function word(w)
      local r = cute.make_rmem_tensor({1}, cute.u32)
      r[0] = w & 0xffffffff
      return r[0]
    end
    return word(x), word(x >> 32)
  end
  if core.typename(seed) == "tensor" then seed = seed[0] end
  if not seed.dtype.is_integer then
    core.fail("bad-argument", ("the seed must be an integer, not %s")
      :format(tostring(seed)))
  end
  local wide = seed:to(cute.i64)
  return wide:to(cute.u32), (wide >> 32):to(cute.u32)
end

-- Returns a view of n elements of a fragment, which are `step` apart and begin
-- with element `from`.
local function some(r, from, n, step)
  return cute.make_tensor(r.iterator + from, cute.make_layout({n}, {step}))
end

-- The number of Philox blocks that `words` computes at once: AT_ONCE[1] without
-- `paired`, AT_ONCE[2] with it. More blocks, in addition to the accumulators,
-- would need too many registers.
local AT_ONCE = {4, 2}

--- Returns a random word for each element of a matrix. `rows` and `cols` are
-- vectors of the elements' rows and columns. The word is number column % 4 of
-- the four words for the Philox counter (column / 4, row, batch, 0).
---@param paired? boolean says that elements 2 i and 2 i + 1 are in columns 2 j
-- and 2 j + 1 of a row, so that they share a counter
function philox.words(rows, cols, batch, seed, paired)
  local k0, k1 = philox.key(seed)
  local step = paired and 2 or 1
  local row = cute.make_rmem_tensor(rows.shape, cute.i32)
  local col = cute.make_rmem_tensor(rows.shape, cute.i32)
  local out = cute.make_rmem_tensor(rows.shape, cute.u32)
  row:store(rows)
  col:store(cols)
  local all, at_once = cute.size(rows.shape), AT_ONCE[step]
  for from = 0, all - 1, step * at_once do
    local n = math.min(at_once, (all - from) // step)
    local at = some(col, from, n, step):load()
    local zero = (at * 0):to(cute.u32)
    local a, b, c, d = philox.four((at // 4):to(cute.u32),
      some(row, from, n, step):load():to(cute.u32),
      math.type(batch) and zero or zero + batch:to(cute.u32), zero, k0, k1)
    local which = at % 4
    local low = which:lt(2)
    if paired then
      some(out, from, n, 2):store(cute.where(low, a, c))
      some(out, from + 1, n, 2):store(cute.where(low, b, d))
    else
      local odd = (which % 2):eq(1)
      some(out, from, n, 1):store(cute.where(low, cute.where(odd, b, a),
                                             cute.where(odd, d, c)))
    end
  end
  return out:load()
end

--- Returns a random number between 0 and 1 (exclusive) for position `row`. It
-- is made from the first word for the Philox counter (row, 0, 0, 0).
---@param row any a traced i32
---@param seed any
function philox.uniform(row, seed)
  local k0, k1 = philox.key(seed)
  local c, zero = row:to(cute.u32), (row * 0):to(cute.u32)
  return philox.open((philox.four(c, zero, zero, zero, k0, k1)))
end

--- Converts random words to f32 between 0 and 1. The results are never 0 or 1.
function philox.open(word)
  local x = ((word >> 8):to(cute.f32) + 0.5) * 2.0 ^ -24
  return cute.min(x, 1 - 2.0 ^ -24)
end

-- Reports whether x is a Lua number or a traced scalar.
local function is_number(x)
  return math.type(x) ~= nil or core.typename(x) == "value"
end

--- Raises an error unless the arguments of at:dropout(x, p, seed) are valid.
function philox.check(x, p, seed)
  local wrong
  if core.typename(x) ~= "vector" then
    wrong = ("a vector is needed, not %s"):format(core.show(x))
  elseif not is_number(p) then
    wrong = ("the probability must be a number, not %s"):format(core.show(p))
  elseif not is_number(seed) and core.typename(seed) ~= "tensor" then
    wrong = ("the seed must be an integer, not %s"):format(core.show(seed))
  end
  if wrong then core.fail("bad-argument", "at:dropout: " .. wrong) end
end

--- Returns x / (1 - p) where the random word of x is at least p 2^32, else 0.
function philox.dropout(x, words, p)
  local least, scale = p * 4294967296.0, 1.0 / (1.0 - p)
  if math.type(p) then
    if not (p >= 0 and p < 1) then
      core.fail("bad-argument", ("dropout probability %s; a number from 0 to "
        .. "less than 1 is needed")
        :format(p))
    end
    least = math.tointeger(least // 1)
  else
    least = least:to(cute.u32)
  end
  return cute.where(words:ge(least), x * scale, 0)
end

return philox
-- SPDX-License-Identifier: MIT
