--- Products with keys and values of e4m3, for kernels/attention_decode.
-- Registers hold the elements as f16: one instruction converts two.
--
-- ldmatrix loads two adjacent e4m3 elements as one 16-bit element. This changes
-- the order of columns:
-- - A lane receives four adjacent elements of a row of K, but an f16 fragment
--   holds two pairs that are 8 elements apart. Therefore Q's columns are stored
--   in the order of K's columns (see put_row).
-- - For each row of V, a lane receives two adjacent columns. They belong to two
--   fragments, so the accumulators have O's columns in another order (see
--   column).
local cute = require "cute"
local flash = require "kernels.flash"

local _ = cute._

local narrow = {}

--- Returns K or V as pairs of elements: f16, with half of the columns.
function narrow.pairs_of(t) return cute.recast_tensor(t, cute.f16) end

--- Stores x, the elements 8 n to 8 n + 7 of a row of Q. Stores them in the
-- order in which ldmatrix distributes the elements of a key to lanes (see the
-- top of this file).
function narrow.put_row(row, n, x)
  local four = cute.make_rmem_tensor({4}, x.element_type)
  for i = 0, 1 do
    for j = 0, 3 do four[j] = x[j // 2 * 4 + 2 * i + j % 2] end
    cute.autovec_copy(four, cute.local_tile(row, {4}, {n // 2 * 4 + 2 * i
                                                       + n % 2}))
  end
end

--- Returns the column of O to which column x of the accumulators belongs.
function narrow.column(x)
  return x // 16 * 16 + x % 8 * 2 + x % 16 // 8
end

-- Returns a function each(stage, f) for tiles s (N,K,PIPE) whose elements are
-- pairs of e4m3. It iterates over the blocks of 16 pairs along K of one tile.
-- It calls f(k, words) with the fragment of block k as words of u32, two for
-- each 8 rows of N. The next fragment is loaded before each call.
local function walker(team, s, atom)
  local thr = cute.make_tiled_copy_B(atom, team.mma):get_slice(team.tid)
  local from = thr:partition_S(s)                             -- (CPY,N,K,PIPE)
  local block = cute.local_tile(s(_, _, 0), {cute.size(s, 0), 16}, {0, 0})
  local words, to = {}, {}
  for i = 0, 1 do
    local frag = team.thr:partition_fragment_B(block)         -- (MMA,N,1)
    to[i] = thr:retile(frag)
    words[i] = cute.make_tensor(cute.recast_tensor(frag, cute.u32).iterator,
                                cute.make_layout {cute.size(frag) // 2})
  end
  local steps = cute.size(from, 2)
  return function(stage, f)
    local function fetch(k)
      if k < steps then
        cute.copy(atom, from(_, _, k, stage), to[k % 2](_, _, 0))
      end
    end
    fetch(0)
    for k = 0, steps - 1 do
      fetch(k + 1)
      f(k, words[k % 2])
    end
  end
end

-- Makes the right operand of a product: a fragment (4,N) of f16. Also returns a
-- function that sets column n of the fragment from a u32 that holds four e4m3.
local function fragment(N)
  local frag = cute.make_rmem_tensor({{2, 2}, N}, cute.f16)
  local four = cute.make_rmem_tensor({4}, cute.e4m3)
  local word = cute.recast_tensor(four, cute.u32)
  return frag, function(n, x)
    word[0] = x
    cute.make_tensor(frag.iterator + 4 * n, cute.make_layout {4}):store(
      four:load():to(cute.f16))
  end
end

--- Returns a function that multiplies by tiles of keys s (BN,D/2,PIPE), like
-- Team:times.
function narrow.times_keys(team, s)
  local each, N = walker(team, s, team.ldsm), cute.size(s, 0) // 8
  return function(stage, acc, Q)
    each(stage, function(k, words)
      for half = 0, 1 do
        local B, set = fragment(N)
        for n = 0, N - 1 do set(n, words[2 * n + half]) end
        cute.gemm(team.mma, acc, Q(2 * k + half), B, acc)
      end
    end)
  end
end

--- Returns a function that multiplies by tiles of values s (BN,D/2,PIPE), like
-- Team:times.
function narrow.times_values(team, s)
  local each = walker(team, flash.turned(s), team.ldsm_t)
  local N = cute.size(s, 1) // 8
  return function(stage, acc, p)
    each(stage, function(k, words)
      local B, set = fragment(2 * N)
      for n = 0, N - 1 do
        local low, high = words[2 * n], words[2 * n + 1]
        set(2 * n, cute.arch.prmt(low, high, 0x6420))
        set(2 * n + 1, cute.arch.prmt(low, high, 0x7531))
      end
      cute.gemm(team.mma, acc, p(k), B, acc)
    end)
  end
end

return narrow
-- SPDX-License-Identifier: MIT
