--- The producer warps of kernels/attention_bwd_sm90. A thread of one warp loads
-- K, V, Q and dO by TMA. One or two further threads, in other warps, add tiles
-- of dQ to global memory.
local cute = require "cute"

local _ = cute._
local cpasync = cute.nvgpu.cpasync

local producer = {}

--- Returns a function that loads or stores a tile of operand x, a table with
-- `atom`, `coords` and `smem`. The function's arguments are the stage in shared
-- memory, a barrier or nil, the tile's two indices, and further coordinates.
function producer.mover(x, store)
  local s = x.smem
  local g = cute.local_tile(x.coords, {cute.size(s, 0), cute.size(s, 1)},
                            x.modes or {_, _, _, _})
  local near, far = cpasync.tma_partition(x.atom, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
  return function(stage, bar, ...)
    local options = {tma_bar_ptr = bar, cache_policy = x.policy}
    if store then
      cute.copy(x.atom, near(_, stage), far(_, ...), options)
    else
      cute.copy(x.atom, far(_, ...), near(_, stage), options)
    end
  end
end

-- Makes a function that issues the loads of a tile of operand x, and of its row
-- values x.numbers (LSE or delta), into the next stage.
local function filler(x)
  local request = producer.mover(x)
  local atom = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)
  local state = x.pipe:make_producer_state()
  local M = cute.size(x.smem, 0)
  return function(m, h, b)
    x.pipe:producer_acquire(state)
    local bar = x.pipe:producer_get_barrier(state)
    request(state.index, bar, m, 0, h, b)
    local from = cute.local_tile(x.numbers(_, h, b), {M}, {m})
    cute.copy(atom, from, x.near(_, state.index), {mbar_ptr = bar})
    state:advance()
  end
end

--- Loads the tiles of a block: K and V, then tiles of Q and dO with their rows'
-- LSE and delta.
---@param ready any barriers of K and V
---@param each fun(f: function) calls f(m, h, b) for each tile of rows
function producer.load(x, ready, at, each)
  local ask_q, ask_g = filler(x.q), filler(x.g)
  for i, t in ipairs {x.k, x.v} do
    ready:arrive_and_expect_tx(i - 1, t.atom.tx_bytes)
    producer.mover(t)(0, ready:get_barrier(i - 1), at.n, 0, at.k, at.b)
  end
  each(function(m, h, b)
    ask_q(m, h, b)
    ask_g(m, h, b)
  end)
end

--- Adds the tiles of dQ, which consumers store to shared memory, to the
-- accumulators in global memory. One thread calls this function. With `turns`,
-- two threads call it and alternate. While one thread waits until its addition
-- is complete, and then permits the next block to add, the other thread adds
-- the next tile.
---@param turns? table wait(m, tile) returns when it is this block's turn to add
-- to a tile. It returns whether this block is the first one, which stores
-- instead of adding, and `step`. pass(tile, step) begins the next block's turn.
-- pair: the order of the two threads (pipeline.PipelineOrder). Without turns,
-- the accumulators are 0 at first, and all blocks add.
function producer.add(x, each, turns)
  local add = producer.mover(x.acc, true)
  local store = turns and producer.mover(x.first, true)
  local full = x.acc.pipe:make_consumer_state()
  local read = x.acc.pipe:make_consumer_state()
  -- Releases the oldest stage of shared memory that is in use. It waits until
  -- at most the last `pending` copies may still read shared memory.
  local function release(pending)
    cute.arch.cp_async_bulk_wait_group(pending, true)
    x.acc.pipe:consumer_release(read)
    read:advance()
  end
  local n = x.acc.slices * x.acc.pieces
  local function put(m, h, before)
    local tile, first, step = x.acc.tile(m, h), nil, nil
    if turns then
      first, step = turns.wait(m, tile, before)
      turns.pair:wait()
    end
    for i = 0, n - 1 do
      x.acc.pipe:consumer_wait(full)
      local function by(copy) copy(full.index, nil, 0, 0, tile * n + i) end
      if turns then
        cute.when(first, function() by(store) end, function() by(add) end)
      else
        by(add)
      end
      cute.arch.cp_async_bulk_commit_group()
      full:advance()
      -- The previous piece of the slice has been read from its stage, so this
      -- stage is released. At the end of a slice, the stage of the last piece
      -- is released, too.
      if i % x.acc.pieces > 0 then release(1) end
      if (i + 1) % x.acc.pieces == 0 then release(0) end
    end
    if turns then
      turns.pair:arrive()
      cute.arch.cp_async_bulk_wait_group(0)
      turns.pass(tile, step)
    end
  end
  if not turns then
    each(function(m, h) put(m, h) end)
    cute.arch.cp_async_bulk_wait_group(0)
    return
  end
  local nth = 0
  each(function(m, h, _, before)
    cute.when(cute.eq(nth % 2, turns.pair.group_id),
              function() put(m, h, before) end,
              function()
                for _ = 1, n do
                  full:advance()
                  read:advance()
                end
              end)
    nth = nth + 1
  end)
end

return producer
-- SPDX-License-Identifier: MIT
