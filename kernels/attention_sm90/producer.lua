--- The producer warps of kernels/attention_sm90: a thread of one warp loads Q,
-- K and V by TMA, a thread of another warp stores O.
local cute = require "cute"

local _ = cute._
local cpasync = cute.nvgpu.cpasync

local producer = {}

--- Returns this block's copies of an operand: (TMA,PIPE) of shared memory, and
-- (TMA,tiles of both modes,h,b) of coordinates.
local function copies(x)
  local s = x.smem
  local g = cute.local_tile(x.coords, {cute.size(s, 0), cute.size(s, 1)},
                            {_, _, _, _})
  return cpasync.tma_partition(x.atom, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
end

-- Makes a function that requests a box for the next stage of an operand.
local function filler(x)
  local into, from = copies(x)
  local state = x.pipe:make_producer_state()
  return function(...)
    x.pipe:producer_acquire(state)
    cute.copy(x.atom, from(_, ...), into(_, state.index), {
      tma_bar_ptr = x.pipe:producer_get_barrier(state)})
    state:advance()
  end
end

--- Loads the tiles of Q, K and V, in the order in which they are multiplied:
-- Q, the last K, and then each K before the V of the keys after it.
---@param each fun(f: function) calls f(m, h, b) for each tile
---@param sees fun(m: any, h: any, b: any): any, any, any, any, function?
-- the first block of keys, and one past the last; the fifth result returns the
-- index of such a block, if they are listed
function producer.load(q, k, v, group, each, sees)
  local ask_q, ask_k, ask_v = filler(q), filler(k), filler(v)
  each(function(m, h, b)
    local first, last, _, _, at = sees(m, h, b)
    local g = h // group
    ask_q(m, 0, h, b)
    cute.when(cute.gt(last, first), function()
      local held = last - 1  -- the block whose V is not requested yet
      if at then held = (at(held)) end
      ask_k(held, 0, g, b)
      for i in cute.range(last - 2, first - 1, -1) do
        local n = i
        if at then n = (at(i)) end
        ask_k(n, 0, g, b)
        ask_v(0, at and held or n + 1, g, b)
        held = n
      end
      ask_v(0, at and held or first, g, b)
    end)
  end)
end

--- Stores the tiles of O, which take the place of Q in shared memory, and
-- releases that memory: by one lane of a warp.
---@param ready any barriers: a stage has its tile of O
function producer.store(q, o, ready, each)
  local from, to = copies(o)
  local state = q.pipe:make_consumer_state()
  each(function(m, h, b)
    ready:wait(state.index, state.phase)
    cute.when(cute.arch.lane_idx():eq(0), function()
      cute.copy(o.atom, from(_, state.index), to(_, m, 0, h, b))
      cute.arch.cp_async_bulk_commit_group()
      cute.arch.cp_async_bulk_wait_group(0, true)
      q.pipe:consumer_release(state)
    end)
    state:advance()
  end)
end

return producer
-- SPDX-License-Identifier: MIT
