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
---@param keys fun(m: any): any, any the first block of keys, and one past the
-- last
function producer.load(q, k, v, group, each, keys)
  local ask_q, ask_k, ask_v = filler(q), filler(k), filler(v)
  each(function(m, h, b)
    local first, last = keys(m)
    local g = h // group
    ask_q(m, 0, h, b)
    cute.when(cute.gt(last, first), function()
      ask_k(last - 1, 0, g, b)
      for n in cute.range(last - 2, first - 1, -1) do
        ask_k(n, 0, g, b)
        ask_v(0, n + 1, g, b)
      end
      ask_v(0, first, g, b)
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
