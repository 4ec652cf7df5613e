--- Dropout of scores. In score_mod and mask_mod, at:kept(p, seed) decides by
-- random bits whether a score is kept.
--
-- A block of Philox4x32-10 has 16 random bytes, one for each score that a
-- thread holds in a tile of 16 rows and 32 keys. The block for row q and key k
-- of head h in sequence b has the Philox key `seed` and the counter (k // 32 *
-- 4 + k % 8 // 2, q // 16 * 8 + q % 8, h, b). The score's byte is byte k % 2 *
-- 2 + q % 16 // 8 of the block's word k % 32 // 8.
local core = require "cute.core"
local cute = require "cute"
local philox = require "cute.philox"

local kept = {}

-- Returns how many of the 256 values of a random byte keep a score.
local function limit(p)
  if math.type(p) then
    if p >= 0 and p < 1 then return math.floor((1 - p) * 256 + 0.5) end
  elseif core.typename(p) == "value" then
    return ((1 - p) * 256 + 0.5):to(cute.u32)
  end
  core.fail("bad-argument", ("at:kept: probability %s; a number from 0 to less "
    .. "than 1 is needed"):format(core.show(p)))
end

-- Returns words 0 and 1 of the Philox counter for row q and key k, as the head
-- of this file defines them. Words 2 and 3 are h and b.
local function counter(q, k)
  return (k // 32 * 4 + k % 8 // 2):to(cute.u32),
    (q // 16 * 8 + q % 8):to(cute.u32)
end

-- Returns words[i + 1]. i is a traced i32 from 0 to 3.
local function pick(words, i)
  local odd = (i % 2):eq(1)
  return cute.where(i:lt(2), cute.where(odd, words[2], words[1]),
                    cute.where(odd, words[4], words[3]))
end

local function as_word(x)
  return math.type(x) and x or x:to(cute.u32)
end

-- Implements at:kept(p, seed): returns whether the score at `at` is kept.
local function one(at, p, seed)
  local c0, c1 = counter(at.q, at.k)
  local zero = (at.q * 0):to(cute.u32)
  local words = {philox.four(c0, c1, zero + as_word(at.h), zero + as_word(at.b),
                             philox.key(seed))}
  local byte = (at.k % 2 * 2 + at.q % 16 // 8) * 8
  return ((pick(words, at.k % 32 // 8) >> byte:to(cute.u32)) & 255):lt(limit(p))
end

--- Returns the argument `at` of score_mod and mask_mod, which contains a
-- score's indices.
function kept.at(b, h, q, k)
  return {b = b, h = h, q = q, k = k, kept = one}
end

-- Computes n Philox blocks, of four random words each, for head o.h of sequence
-- o.b. place(i) returns the row and the key of block i. Returns four vectors in
-- a list: the first words of all n blocks, their second words, and so on.
local function blocks(o, n, place, seed)
  local c0 = cute.make_rmem_tensor({n}, cute.u32)
  local c1 = cute.make_rmem_tensor({n}, cute.u32)
  for i = 0, n - 1 do c0[i], c1[i] = counter(place(i)) end
  local zero = c0:load() * 0
  local words = {philox.four(c0:load(), c1:load(), zero + as_word(o.h),
                             zero + as_word(o.b), philox.key(seed))}
  for w = 1, 4 do
    local r = cute.make_rmem_tensor({n}, cute.u32)
    r:store(words[w])
    words[w] = r
  end
  return words
end

--- Returns a function (i, j, p, seed) that returns whether a score of a tile is
-- kept. i and j are the score's row and column among the thread's accumulators.
-- `places` gives the accumulators' positions in the tile: a thread has two rows
-- 8 apart, and two adjacent columns in each 8 columns. `row` and `col` are the
-- first row and column of the tile among all scores.
---@param o table {b: any, h: any, tile: integer[]}
function kept.tile(o, places, row, col)
  -- There is a Philox block for each pair of this thread's rows and each 32
  -- columns. If 32 does not divide the tile, there is one for each 16 columns.
  local wide = o.tile[2] % 32 == 0
  local step = wide and 8 or 4
  local pairs_, parts = cute.size(places, 0) // 2, cute.size(places, 1) // step
  local words, of
  return function(i, j, p, seed)
    if not rawequal(of, seed) then
      words = blocks(o, pairs_ * parts, function(n)
        return row + places(n // parts * 2, 0)[1],
          col + places(0, n % parts * step)[2]
      end, seed)
      of = seed
    end
    local at, n = i // 2 * parts + j // step, j % step // 2 + 1
    local word = words[n][at]
    if not wide then
      local k = col + places(0, step * (j // step))[2]
      word = cute.where((k % 32):lt(16), word, words[n + 2][at])
    end
    local shift = (j % 2 * 2 + i % 2) * 8
    if shift == 24 then return (word >> 24):lt(limit(p)) end
    return (word & (255 << shift)):lt(limit(p) << shift)
  end
end

--- Returns a function like that of kept.tile for transposed scores, whose rows
-- are keys. A thread has two keys 8 apart, and two adjacent columns in each 8
-- columns. A thread needs a Philox block for each 4 of its scores.
function kept.turned(o, places, row, col)
  local keys, columns = cute.size(places, 0) // 2, cute.size(places, 1)
  -- The number of Philox blocks for each pair of keys: two for each 16 columns.
  local parts = (columns + 3) // 4 * 2
  local words, of
  return function(i, j, p, seed)
    if not rawequal(of, seed) then
      words = blocks(o, keys * parts, function(n)
        return col + places(0, n % parts // 2 * 4 + n % 2)[2],
          row + places(n // parts * 2, 0)[1]
      end, seed)
      of = seed
    end
    local key = row + places(i // 2 * 2, 0)[1]
    local at = i // 2 * parts + j // 4 * 2 + j % 2
    local word = cute.where((key % 32):lt(16), words[1 + i % 2][at],
                            words[3 + i % 2][at])
    local shift = (key % 2 * 2 + j % 4 // 2) * 8
    return ((word >> shift:to(cute.u32)) & 255):lt(limit(p))
  end
end

return kept
-- SPDX-License-Identifier: MIT
