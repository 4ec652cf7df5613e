--- Attention of one query to many keys, on mma.sync: the keys of a head are
-- split among blocks, and a second kernel combines the results.
--
--     local k = attention_decode {head = 128, group = 8}
--     local n = k.splits(T, G, B)
--     -- parts (n,B,H,D) and logs (n,B,H) of f32
--     for _, l in ipairs(k) do
--       l.kernel(Q, K, V, O, LSE, parts, logs, scale, lengths, cache):launch {
--         grid = l.grid(n, H, B), block = l.block}
--     end
--
-- Q and O are (B,1,H,D), K and V (B,T,G,D), of bf16 or f16; LSE is (B,H,1) of
-- f32. lengths, (B) of i32, gives each batch's number of keys; without it,
-- every batch has T keys.
--
-- cache has further tensors, all optional. pages (B,n) of i32: K and V are
-- pages (P,page,G,D), and the keys of batch b are those of the pages pages[b].
-- k and v (B,1,G,D): the last key and value of each batch, which the kernel
-- first stores in K and V.
--
-- A block is a warp. The rows of its tile are the `group` heads that share
-- keys, so that each key is read once. Reading the keys dominates the time.
local core = require "cute.core"
local rules = require "kernels.operand_rules"
local cute = require "cute"
local flash = require "kernels.flash"
local tiles = require "cute.tiles"
local _ = cute._

-- Returns the range of this block's tiles of keys: the index of the first, and
-- one past the last.
local function share(T, N)
  local split = cute.arch.block_idx()
  local all = cute.ceil_div(T, N)
  local each = cute.ceil_div(all, (cute.arch.grid_dim()))
  return split * each, cute.min(split * each + each, all)
end

-- Stores the new row x (D) as the last of the T rows, if this block reads it.
-- row(i) returns row i of the keys or values.
local function append(o, T, x, row)
  local BN, lane = o.tile[2], cute.arch.lane_idx()
  local first, last = share(T, BN)
  local mine = cute.gt(last, first) & cute.eq(last, cute.ceil_div(T, BN))
  cute.when(mine & cute.lt(lane * 8, o.head), function()
    local held = cute.make_rmem_tensor({8}, x.element_type)
    local at = {lane}
    cute.autovec_copy(cute.local_tile(x, {8}, at), held)
    cute.autovec_copy(held, cute.local_tile(row(T - 1), {8}, at))
  end)
end

local function walk(o, team, T, Q, K, V, state, acc)
  local BM, BN = o.tile[1], o.tile[2]
  local first, last = share(T, BN)
  local sight, places = flash.sight(BM, T), team:places(BM, BN)
  local function load(kb, stage, inner)
    K.load(kb, stage, inner)
    V.load(kb, stage, inner)
  end
  flash.walk(first, last, load, cute.arch.sync_warp, function(kb, stage)
    local s = team:zeros(BM, BN)
    K.times(stage, s, Q.block)
    cute.when(cute.gt((kb + 1) * BN, T), function()
      sight:hide(s, places, 0, kb * BN, -math.huge)
    end)
    V.times(stage, acc, state:take(s, acc, team.dtype))
  end)
  cute.arch.cp_async_wait_group(0)
end

-- Returns functions of K or V for this block's batch b and head g: the T rows
-- as one tensor (T,D), the tensor with a tile of rows and the tile's number in
-- it, and row i. With pages, the tensor (T,D) has the right extents, but not
-- the addresses of the rows.
local function rows_of(o, b, g, T, pages)
  local all, BN = cute._, o.tile[2]
  if not pages then
    local function rows(t) return flash.section(t(b, all, g, all), 0, T) end
    return rows, nil, function(t) return function(i) return rows(t)(i, all) end
    end
  end
  local function page_of(t, i)
    local size = cute.size(t, 1)
    return t(pages[{b, i // size}], all, g, all), i % size
  end
  return function(t) return flash.section(t(0, all, g, all), 0, T) end,
    function(t)
      local size = cute.size(t, 1)
      rules.need(size % BN == 0, "attention_decode", "pages of %s keys; a "
        .. "multiple of %d is needed", size, BN)
      return function(tile)
        local page, at = page_of(t, tile * BN)
        return page, at // BN
      end
    end,
    function(t)
      return function(i)
        local page, at = page_of(t, i)
        return page(at, all)
      end
    end
end

local function part(o, mQ, mK, mV, _, _, mParts, mLogs, scale, lengths, cache)
  flash.check("attention_decode", o.head, {Q = mQ, K = mK, V = mV}, o.group)
  local BM, BN, D, all = o.tile[1], o.tile[2], o.head, cute._
  local split, g, b = cute.arch.block_idx()
  local more = cache or {}
  local R, T = o.group, lengths and lengths[b]
    or cute.size(mK, 1) * (more.pages and cute.size(more.pages, 1) or 1)
  local function heads(t) return flash.section(t, g * R, R) end  -- (R,D)
  local keys, tile_of, row_of = rows_of(o, b, g, T, more.pages)
  if more.k then
    append(o, T, more.k(b, 0, g, all), row_of(mK))
    append(o, T, more.v(b, 0, g, all), row_of(mV))
    cute.arch.sync_warp()
  end

  local team = flash.team(mQ.element_type, 1)
  local sK, sV = team:tile(BN, D, 2), team:tile(BN, D, 2)     -- (BN,D,PIPE)
  local sQ = team:tile(BM, D, 1)                              -- (BM,D,1)
  local Q, K, V = {}, {}, {}
  Q.block = team:left(sQ(all, all, 0))
  K.load, K.times = team:rows(keys(mK), sK, tile_of and tile_of(mK)),
                    team:times(sK)
  V.load, V.times = team:rows(keys(mV), sV, tile_of and tile_of(mV)),
                    team:times(flash.turned(sV), true)
  local acc = team:zeros(BM, D)                               -- (MMA,M,N)
  flash.check_scale(scale)
  local state = flash.softmax(2 * cute.size(acc, 1), scale * flash.LOG2E, true)
  team:rows(heads(mQ(b, 0, all, all)), sQ)(0, 0)
  walk(o, team, T, Q, K, V, state, acc)

  local logs, places = state:finish(acc), team:places(BM, D)
  local out, rows = heads(mParts(split, b, all, all)), flash.by_rows(acc)
  for i = 0, state.rows - 1 do
    local row = places(i, 0)[1]
    cute.when(cute.lt(row, R), function()
      for j = 0, cute.size(rows, 1) - 1 do
        out[{row, places(i, j)[2]}] = rows(i, j)
      end
      cute.when(cute.eq(places(i, 0)[2], 0), function()
        mLogs[{split, b, g * R + row}] = logs[i]
      end)
    end)
  end
end

-- Combines the partial results of a head's splits, each weighted by its sum of
-- exponentials: one thread computes one element of a row.
local function together(_, _, _, _, mO, mL, mParts, mLogs)
  local d, all = cute.arch.thread_idx(), cute._
  local h, b = cute.arch.block_idx()
  local parts, logs = mParts(all, b, h, d), mLogs(all, b, h)  -- (n)
  local n, top = cute.size(logs), -math.huge
  for i in cute.range(n) do top = cute.max(top, logs[i]) end
  local base, sum, x = cute.where(cute.eq(top, -math.huge), 0.0, top), 0.0, 0.0
  for i in cute.range(n) do
    local w = flash.exp2((logs[i] - base) * flash.LOG2E)
    sum = sum + w
    x = x + w * parts[i]
  end
  local some = cute.gt(sum, 0)
  mO[{b, 0, h, d}] = cute.where(some, x / sum, 0.0):to(mO.element_type)
  cute.when(cute.eq(d, 0), function()
    mL[{b, h, 0}] = cute.where(some, base + cute.log2(sum) / flash.LOG2E,
                               -math.huge)
  end)
end

-- The default tile {heads, keys} by head size, for one warp.
local DEFAULT = {
  [32] = {{16, 64}, 1}, [64] = {{16, 64}, 1}, [96] = {{16, 32}, 1},
  [128] = {{16, 32}, 1}, [192] = {{16, 32}, 1}, [256] = {{16, 32}, 1},
}

-- blocks to aim for: 4 on each of an H200's 132 multiprocessors
local BLOCKS = 4 * 132

--- Returns both kernels in the order in which they run. Each kernel has a
-- function grid(n, H, B). splits(T, G, B) returns the number of parts into
-- which to split the keys.
---@param o {head: integer, group: integer?, tile: integer[]?}
-- group: heads of Q for each head of K and V, 1 when absent; tile: {any, keys}
return function(o)
  rules.options("attention_decode", o, "group " .. flash.OPTIONS)
  local p = flash.options("attention_decode", setmetatable(
    {tile = o.tile and {16, o.tile[2]}, warps = 1}, {__index = o}), DEFAULT)
  p.group = o.group or 1
  if math.type(p.group) ~= "integer" or p.group < 1 or p.group > 64 then
    core.fail("bad-argument", ("attention_decode: group = %s; 1 to 64 heads of "
      .. "Q can share a head of K"):format(core.show(p.group)))
  end
  p.tile = {(p.group + 15) // 16 * 16, p.tile[2]}
  local function made(name, f, block, grid)
    return {kernel = cute.kernel(name, {block = block, fastmath = true},
              function(...) f(p, ...) end), block = block, grid = grid}
  end
  return {
    made("attention_part", part, 32, function(n, H, B)
      return {n, tiles.count(H, p.group), B}
    end),
    made("attention_together", together, p.head, function(_, H, B)
      return {H, B}
    end),
    splits = function(T, G, B)
      local most = (T + 2 * p.tile[2] - 1) // (2 * p.tile[2])
      return math.max(1, math.min(most, BLOCKS // (G * B)))
    end,
  }
end
-- SPDX-License-Identifier: MIT
