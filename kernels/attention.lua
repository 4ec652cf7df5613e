--- Attention on mma.sync: O = softmax(scale Q K^T) V, and the logarithm of each
-- row's sum of exponentials (FlashAttention 2).
--
--     local k = attention {head = 128, causal = true}
--     k.kernel(Q, K, V, O, LSE, scale):launch {
--       grid = k.grid(S, H, B), block = k.block}
--
-- Q and O are (B,S,H,D), K and V (B,T,G,D), of bf16 or f16, with contiguous
-- rows of D elements; LSE is (B,H,S) of f32. scale must be above 0, and H a
-- multiple of G: H/G heads of Q share each head of K and V. The last of the S
-- rows is aligned with the last of the T keys. For concatenated sequences of
-- different lengths, Q and O are (total,H,D), and LSE is (H,total). In this
-- case, two more arguments cu_q and cu_k (B + 1 of i32, "cu_seqlens") contain
-- the positions of the sequences: sequence b of Q consists of the rows from
-- cu_q[b] to cu_q[b + 1] - 1. The last argument is a table `more`, or nil. The
-- option `list` is the size {rows, keys} of a block of a block mask. With this
-- option, more.blocks contains the lists of visible blocks
-- (kernels/block_mask.lua). more.sinks (H), if given, has a score x for each
-- head. exp(x) is added to the sum of each row, as if a key without a value had
-- the score x. LSE includes exp(x).
--
-- The option `modify` is a function of all arguments after `more`. It returns
-- three functions and two booleans, all of which may be nil. score(s, at)
-- replaces the scaled score s of a row and a key; mask(at) reports whether the
-- row sees the key; done() is called after the trace. `at` has the indices from
-- 0 of the sequence (at.b), the head of Q (at.h), the row (at.q) and the key
-- (at.k). The first boolean says that `score` uses a cheaper formula if at.near
-- is set (flash.near). The second says that `score` returns log2(e) times the
-- score if at.log2 is set.
--
-- A block processes a tile of rows. The scores of these rows and a tile of keys
-- stay in registers. Their exponentials ("powers", computed as powers of 2) are
-- the left operand of the product with V. Meanwhile, cp.async loads the next
-- tile of keys.
local rules = require "kernels.operand_rules"
local cute = require "cute"
local flash = require "kernels.flash"
local tiles = require "cute.tiles"
local _ = cute._

-- Iterates over the tiles of keys, from the last to the first, for the block's
-- tile of rows. V is loaded while the scores are computed, and the next tile of
-- K while V is multiplied. `sees` is {first, last, from, to, at}: the four
-- results of Sight:blocks (kernels/flash.lua) and, with a block mask, the
-- function that flash.listed returns. alter(s, kb, hidden) changes the scores s
-- of tile kb. `hidden` is true if a row may not see all keys of the tile.
local function walk(o, team, sees, Q, K, V, state, acc, alter)
  local BM, BN = o.tile[1], o.tile[2]
  local arch = cute.arch
  local first, last, from, to, at = table.unpack(sees, 1, 5)
  local function tile(i) return at and (at(i)) or i end
  cute.when(cute.gt(last, first), function() K.load(tile(last - 1), 0) end)
  arch.cp_async_commit_group()
  if o.held then
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    Q.hold()
  end
  for i in cute.range(last - 1, first - 1, -1) do
    local kb, hidden = i, nil
    if at then kb, hidden = at(i, o.modify or to) end
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    V.load(kb, 0)
    arch.cp_async_commit_group()
    local s = team:zeros(BM, BN)
    K.times(0, s, Q.block)
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    cute.when(cute.gt(i, first), function() K.load(tile(i - 1), 0, not at) end)
    arch.cp_async_commit_group()
    if to then
      local edge = cute.ge(kb, to) | cute.lt(kb, from)
      hidden = hidden and hidden | edge or edge
    end
    alter(s, kb, hidden)
    V.times(0, acc, state:take(s, acc, team.dtype))
  end
  if not o.held then
    -- Without any tile of keys, the loop has not waited for the cp.async of Q.
    cute.when(cute.le(last, first), function()
      arch.cp_async_wait_group(0)
      arch.sync_threads()
    end)
  end
end

local function forward(o, mQ, mK, mV, mO, mL, scale, cu_q, cu_k, more, ...)
  flash.check("attention", o.head, {Q = mQ, K = mK})
  flash.check("attention", o.value, {Q = mO, K = mV})
  local BM, BN, D, DV = o.tile[1], o.tile[2], o.head, o.value
  local h, b = select(2, cute.arch.block_idx())
  local g = h // flash.group(mQ, mK)
  local mQh = flash.head(mQ, b, h, cu_q, true)
  local mOh = flash.head(mO, b, h, cu_q, true)
  local mKg, mVg = flash.head(mK, b, g, cu_k), flash.head(mV, b, g, cu_k)
  local S, T = cute.size(mQh, 0), cute.size(mKg, 0)
  -- Here Q is (S,D) and K is (T,D). If later rows see more keys, blocks take
  -- the last tiles of rows first, because these take the most time.
  local bm = flash.place(S, BM, o.right, cu_q)

  local team = flash.team(mQ.element_type, o.warps)
  local sK, sV = team:tile(BN, D, 1), team:tile(BN, DV, 1)    -- (BN,D,1)
  local sQ = team:tile(BM, D, 1)                              -- (BM,D,1)
  local Q, K, V = {}, {}, {}
  Q.load = team:rows(mQh, sQ)
  Q.block, Q.hold = team:left(sQ(_, _, 0), o.held)
  K.load, K.times = team:rows(mKg, sK), team:times(sK)
  V.load, V.times = team:rows(mVg, sV), team:times(flash.turned(sV), true)

  local acc = team:zeros(BM, DV)                              -- (MMA,M,N)
  local sight = flash.sight(S, T, o.left, o.right)
  local hidden = o.left or o.right or not tiles.divides(BN, T)
  flash.check_scale(scale)
  local f, done = {b = b, h = h}, nil
  if o.modify then f.score, f.mask, done = o.modify(...) end
  if f.score then f.scale, scale = scale, 1.0 end
  hidden = hidden or done ~= nil
  local state = flash.softmax(2 * cute.size(acc, 1), scale * flash.LOG2E,
                              hidden, more and more.sinks
                              and more.sinks[h]:to(cute.f32))
  Q.load(bm, 0)
  local sees = {sight:blocks(bm * BM, BM, BN)}
  if o.list then
    sees[1], sees[2], sees[5] = 0, flash.listed(
      more.blocks(b, h, bm // (o.list[1] // BM), _), o.list[2] // BN)
  end
  local alter, at = flash.altering(o, f, S, sight), team:places(BM, BN)
  walk(o, team, sees, Q, K, V, state, acc, function(s, kb, masked)
    local change = alter(s, at, bm * BM, masked)
    if change then change(kb) end
  end)
  if done then done() end

  local logs = state:finish(acc)
  team:store(acc, cute.local_tile(sQ(_, _, 0), {BM, DV}, {0, 0}), mOh, bm)
  local places = team:places(BM, DV)
  local lse = flash.numbers(mL, b, h, cu_q, true)
  cute.when(cute.eq(places(0, 0)[2], 0), function()
    for i = 0, state.rows - 1 do
      local row = bm * BM + places(i, 0)[1]
      cute.when(cute.lt(row, S), function() lse[row] = logs[i] end)
    end
  end)
end

-- Default options by head size: the tile {rows, keys}, the number of warps, and
-- whether Q stays in registers.
local DEFAULT = {
  [32] = {{128, 64}, 4, true}, [64] = {{128, 64}, 4, true},
  [96] = {{128, 64}, 4}, [128] = {{128, 64}, 4},
  [192] = {{128, 64}, 8, true}, [256] = {{128, 32}, 8, true},
}

--- Returns a kernel of (Q, K, V, O, LSE, scale[, cu_q, cu_k[, more]]) and its
-- launch parameters.
---@param o table {head: integer, causal: boolean?, window: any[]?,
-- name: string?, tile: integer[]?, warps: integer?, held: boolean?,
-- modify: function?, list: integer[]?, value: integer?}
-- value: the size of a head of V and O, head when absent
-- causal: a row sees the keys up to its own position; window: {left, right},
-- the number of visible keys before and after it, false for all; held: Q stays
-- in registers
---@return {kernel: any, tile: integer[], block: integer, grid: function}
-- grid(S, H, B); for sequences S is the longest length
return function(o)
  rules.options("attention", o, "modify list value " .. flash.OPTIONS)
  local p = flash.options("attention", o, DEFAULT)
  p.modify, p.list, p.value = o.modify, o.list, o.value or o.head
  return {
    kernel = cute.kernel(o.name or "attention",
      {block = 32 * p.warps, fastmath = true},
      function(...) forward(p, ...) end),
    tile = p.tile, block = 32 * p.warps,
    grid = function(S, H, B) return {tiles.count(S, p.tile[1]), H, B} end,
  }
end
-- SPDX-License-Identifier: MIT
