--- Lists, for each block of rows of attention's scores, the blocks of keys that
-- a mask does not hide.
--
--     local k = block_mask {rows = S, keys = T, block = {128, 128},
--                           modify = modify}
--     k.kernel(blocks, bits):launch {grid = k.grid(H, B), block = k.block}
--
-- `blocks` is a tensor (B,H,n,1+m) of i32, for B sequences, H heads, n blocks
-- of rows and m blocks of keys. `rows` and `keys` are the numbers of rows (S)
-- and of keys (T). `blocks` has a list for each block of rows. A list begins
-- with the number of its entries. The entries follow in ascending order: one
-- for each block of keys with a visible score. The entry is 2 i, where i is the
-- index (from 0) of the block of keys. It is 2 i + 1 if the mask hides some of
-- the block's scores, or if the block extends beyond the last key.
-- kernels/attention.lua describes `modify`. Only its mask is used here.
--
-- `bits` is nil or a tensor (B,H,n,m,block[1],block[2]/32) of u32, for which a
-- block has a multiple of 128 keys. It holds a bit for each score of a block, 1
-- if the score is visible. A word has the bits of the scores that a lane of an
-- MMA holds: in word 4 c + t of a row, bit 2 i + j is for key 128 c + 8 i + 2 t
-- + j of the block.
--
-- A warp evaluates the mask for all scores of a block. A thread then appends
-- the results of all warps to the list.
local cute = require "cute"
local kept = require "kernels.kept"
local rules = require "kernels.operand_rules"
local tiles = require "cute.tiles"

local WHAT, WARPS, AT_ONCE = "block_mask", 8, 4

-- Evaluates the mask for the block of scores that begins at (row, col). Returns
-- whether some score is visible, and whether all scores are visible. Keys after
-- the last one count as hidden. bits: the block's words (M,N/32), or nil.
local function evaluate(o, mask, row, col, b, h, bits)
  local M, N = o.block[1], o.block[2]
  local some, all = cute.ne(row, row), cute.eq(row, row)
  local lane = cute.arch.lane_idx()
  local whole, high = tiles.divides(M, o.rows), cute.min(o.rows - row, M)
  for c = 0, N - 1, 32 do
    local k = col + c + lane
    -- the key whose bit this lane computes: a word holds the bits of 32 keys in
    -- the order of flash.bits
    if bits then
      k = col + (c // 128 * 128 + c % 128 // 16) + lane // 2 * 8 + lane % 2
    end
    local exists = cute.lt(k, o.keys)
    local key = tiles.divides(N, o.keys) and k or cute.min(k, o.keys - 1)
    local function seen(q)
      local x = mask(kept.at(b, h, q, key)) & exists
      some, all = some | x, all & x
      return x
    end
    if bits then
      -- Lane r stores the word with the bits of row r of each group of 32 rows.
      -- Rows after the last one get the bits of the last row.
      for first in cute.range(0, M, 32) do
        local word = 0
        for r in cute.range(0, 32, 1, {unroll = AT_ONCE}) do
          local q = row + first + r
          local ballot = cute.arch.vote_ballot_sync(
            seen(whole and q or cute.min(q, o.rows - 1)))
          word = cute.where(lane:eq(r), ballot, word)
        end
        bits[{first + lane, c // 32}] = word
      end
    else
      for r in cute.range(0, whole and M or high, 1, {unroll = AT_ONCE}) do
        seen(row + r)
      end
    end
  end
  return cute.arch.vote_any_sync(some), cute.arch.vote_all_sync(all)
end

local function kernel(o, blocks, bits, ...)
  local _, mask, done = o.modify(...)
  local m, h, b = cute.arch.block_idx()
  local warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
  local count = tiles.count(o.keys, o.block[2])
  local found = cute.make_smem_tensor(cute.i32, cute.make_layout {WARPS})
  local list = blocks(b, h, m, cute._)
  local first = cute.arch.thread_idx():eq(0)
  local n = 0
  for base in cute.range(0, count, WARPS) do
    local at = base + warp
    local state = -1
    cute.when(cute.lt(at, count), function()
      local some, all = evaluate(o, mask, m * o.block[1], at * o.block[2], b, h,
        bits and bits(b, h, m, at, cute._, cute._))
      state = cute.where(some, 2 * at + cute.where(all, 0, 1), -1)
    end)
    cute.when(cute.arch.lane_idx():eq(0), function() found[warp] = state end)
    cute.arch.sync_threads()
    cute.when(first, function()
      for i = 0, WARPS - 1 do
        local entry = found[i]
        cute.when(cute.ge(entry, 0), function()
          n = n + 1
          list[n] = entry
        end)
      end
    end)
    cute.arch.sync_threads()
  end
  cute.when(first, function() list[0] = n end)
  done()
end

--- Returns a kernel with arguments (blocks, bits[, captured values]), and its
-- launch parameters.
---@param o table {rows: integer, keys: integer, block: integer[],
-- modify: function}
---@return {kernel: any, block: integer, grid: function}
-- grid(H, B)
return function(o)
  rules.options(WHAT, o, "rows keys block modify")
  return {
    kernel = cute.kernel(WHAT, {block = 32 * WARPS},
                         function(...) kernel(o, ...) end),
    block = 32 * WARPS,
    grid = function(H, B)
      return {tiles.count(o.rows, o.block[1]), H, B}
    end,
  }
end
-- SPDX-License-Identifier: MIT
