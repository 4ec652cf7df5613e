--- The producer warps of kernels/attention_sm90. A thread of one warp loads Q,
-- K and V by TMA, and a thread of another warp stores O.
local cute = require "cute"
local flash = require "kernels.flash"

local _ = cute._
local cpasync = cute.nvgpu.cpasync

local producer = {}

-- Returns this block's parts of an operand for TMA copies: (TMA,PIPE) of shared
-- memory, and (TMA,tiles of both modes,h,b) of coordinates, from row `first`
-- on.
local function copies(x, first)
  local s, g = x.smem, x.coords
  if first then
    g = cute.domain_offset(x.turned and {0, first, 0, 0} or {first, 0, 0, 0}, g)
  end
  g = cute.local_tile(g, {cute.size(s, 0), cute.size(s, 1)}, {_, _, _, _})
  return cpasync.tma_partition(x.atom, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
end

-- Returns a function (first) for operand x, where `first` is a sequence's first
-- row. That function returns a function (n, h, b), which loads tile n of the
-- sequence into the next stage of x.
local function filler(x)
  local state = x.pipe:make_producer_state()
  return function(first)
    local into, from = copies(x, first)
    return function(n, h, b)
      x.pipe:producer_acquire(state)
      local box = x.turned and from(_, 0, n, h, b) or from(_, n, 0, h, b)
      cute.copy(x.atom, box, into(_, state.index), {
        tma_bar_ptr = x.pipe:producer_get_barrier(state)})
      state:advance()
    end
  end
end

--- Loads the tiles of Q, K and V in the order in which the consumers use them:
-- Q, the last block of K, then each block of K before the V of the block after
-- it.
---@param each fun(f: function) calls f(m, h, b, part) for each tile; part is
-- its sequence
---@param sees function (m, h, b, part) returns the index of the first block of
-- keys and one past the last. With a block mask, the fifth result is a function
-- that converts such an index to the index of a listed block
function producer.load(q, k, v, group, each, sees)
  local fill_q, fill_k, fill_v = filler(q), filler(k), filler(v)
  each(function(m, h, b, part)
    local first, last, _, _, at = sees(m, h, b, part)
    local g, seq = h // group, part.batch or b
    local ask_q, ask_k, ask_v = fill_q(part.row), fill_k(part.key),
      fill_v(part.key)
    ask_q(m, h, seq)
    cute.when(cute.gt(last, first), function()
      -- the index of the block of keys whose V is loaded next
      local held = last - 1
      if at then held = (at(held)) end
      ask_k(held, g, seq)
      for i in cute.range(last - 2, first - 1, -1) do
        local n = i
        if at then n = (at(i)) end
        ask_k(n, g, seq)
        ask_v(at and held or n + 1, g, seq)
        held = n
      end
      ask_v(at and held or first, g, seq)
    end)
  end)
end

--- Stores the tiles of O, which overwrite Q in shared memory, and releases that
-- memory. One lane of a warp stores a tile by TMA. If the next sequence begins
-- within the tile, all lanes store only the rows of the tile's own sequence.
---@param ready any barriers that complete when a stage holds its tile of O
---@param rows? fun(m: any, h: any, part: table): any the rows of O of a tile,
-- if another sequence may follow
function producer.store(q, o, ready, each, rows)
  local M = cute.size(o.smem, 0)
  local state = q.pipe:make_consumer_state()
  each(function(m, h, b, part)
    local from, to = copies(o, part.row)
    ready:wait(state.index, state.phase)
    local function box()
      cute.when(cute.arch.lane_idx():eq(0), function()
        cute.copy(o.atom, from(_, state.index), to(_, m, 0, h, part.batch or b))
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, true)
        q.pipe:consumer_release(state)
      end)
    end
    if rows then
      cute.when(cute.le(m * M + M, part.S), box, function()
        flash.store_rows(o.smem(_, _, state.index), rows(m, h, part), 0, 1)
        cute.arch.sync_warp()
        cute.when(cute.arch.lane_idx():eq(0), function()
          q.pipe:consumer_release(state)
        end)
      end)
    else
      box()
    end
    state:advance()
  end)
end

return producer
-- SPDX-License-Identifier: MIT
