--- The main kernel of kernels/attention_bwd_sm90: shared memory, barriers, and
-- the roles of its warps.
local cute = require "cute"
local consumer = require "kernels.attention_bwd_sm90.consumer"
local flash = require "kernels.flash"
local order = require "kernels.attention_bwd_sm90.order"
local parts = require "kernels.attention_bwd_sm90.parts"
local producer = require "kernels.attention_bwd_sm90.producer"
local sequences = require "kernels.attention_bwd_sm90.sequences"
local tasks = require "kernels.attention_bwd_sm90.tasks"
local tiles = require "cute.tiles"

local _ = cute._
local cpasync, pipeline = cute.nvgpu.cpasync, cute.pipeline
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

-- Returns a function that returns this block's position in the order of tiles.
-- The position is the block's index or, with `turns`, the next number of a
-- counter in global memory. Threads must synchronize before they call the
-- function.
local function draw(turns)
  if not turns then return cute.arch.block_idx end
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout {1})
  cute.when(cute.arch.thread_idx():eq(0), function()
    s[0] = cute.arch.atomic_add(turns.iterator, 1)
  end)
  return function() return s[0] end
end

-- Returns an object that orders the additions of blocks to dQ (the argument
-- `turns` of producer.add). Its function `wait` waits until this block may add
-- to a tile of dQ; its function `pass` permits the next block to add. The
-- counter of a tile holds the number of blocks that have added to the tile.
-- With a block mask, it holds one more than the index of the last tile of keys
-- that was added.
local function queue(o, turns, x)
  if not turns then return nil end
  return {pair = x.acc.pair,
    wait = function(m, tile, before)
      local mine = before and before()
        or order.turn(o, x.sight, x.n, m * o.tile[1])
      local at = turns.iterator + tile + 1
      local now = cute.arch.load(at, cute.i32, {sem = "acquire", scope = "gpu"})
      cute.loop(function() return cute.ne(now, mine) end, function()
        now = cute.arch.load(at, cute.i32, {sem = "acquire", scope = "gpu"})
      end)
      cute.arch.fence_proxy "async.global"
      return cute.eq(mine, 0), before and x.n + 1 - mine or 1
    end,
    pass = function(tile, step)
      cute.arch.atomic_add(turns.iterator + tile + 1, step,
                           {sem = "release", scope = "gpu"})
    end}
end

-- The operands that have TMA atoms. g is dO. `first` and `acc` belong to the
-- accumulators of dQ: `first` overwrites them with the first sums, and `acc`
-- adds to them.
local NAMES = {"q", "k", "v", "g", "dk", "dv", "acc", "first"}

-- Returns a table of the operands by name, with their tiles in shared memory.
local function operands(o, l, maps)
  local function tile(as)
    local s = cute.make_smem_tensor(o.dtype, l[as], 1024)
    return {smem = s, turned = parts.view(s, l.turned[as])}
  end
  local x = {k = tile "k", v = tile "k", q = tile "q", g = tile "g",
             ds = tile "s"}
  x.p = o.shared and x.ds or o.wide and tile "s" or nil
  x.dk, x.dv = {smem = x.k.smem}, {smem = x.v.smem}
  if o.splits > 1 then
    -- If no row sees a block's keys, nothing reads its tiles of K and V.
    for _, t in ipairs {x.k, x.v} do cute.partial_ok(t.smem) end
  end
  local sums = cute.make_smem_tensor(cute.f32, l.acc, 128)
  local function part()
    return {smem = sums, modes = {_, _, _}, slices = o.slices,
            pieces = o.pieces, policy = cpasync.CacheHint.EVICT_LAST}
  end
  x.acc, x.first = part(), part()
  for i, name in ipairs(NAMES) do
    x[name].atom, x[name].coords = maps[2 * i - 1], maps[2 * i]
  end
  return x
end

-- Makes the barriers of the operands x. Also allocates the shared memory for
-- the row values (LSE and delta) that belong to tiles of Q and dO.
local function pipelines(o, x, logs, delta, loader)
  local readers = Group(Agent.Warp, 4 * (o.tasks and 2 or o.consumers))
  local adders = Group(Agent.Warp, 4 * o.sharers)
  if o.tasks then tasks.prepare(o, x, loader) end
  local one = Group(Agent.Thread)
  x.q.numbers, x.g.numbers = logs, delta
  for _, t in ipairs {x.q, x.g} do
    local count = cute.size(t.smem, 2)
    t.near = cute.make_smem_tensor(cute.f32,
                                   cute.make_layout {o.tile[1], count}, 128)
    t.pipe = pipeline.PipelineTmaAsync {num_stages = count,
      tx_count = t.atom.tx_bytes + 4 * o.tile[1], producer_group = one,
      consumer_group = readers, maker = loader, defer_sync = true}
  end
  x.acc.pipe = pipeline.PipelineAsync {num_stages = o.sum_stages,
    producer_group = adders, consumer_group = one, maker = loader,
    defer_sync = true}
  x.ready = pipeline.MbarrierArray {num_stages = 2, arrivals = 1,
                                    maker = loader}
end

-- Returns four values: this block's sequences of Q and of K (sequences.part);
-- its tile of keys {n = its index, g = its group of heads of Q, k = its head of
-- K, b = its batch}; and whether the tile exists. t: the block's position in
-- the order of tiles. A head of K has o.splits groups.
local function find(o, x, t, section, more)
  local S, T = cute.size(x.q.coords, 0), cute.size(x.k.coords, 0)
  local G, B = cute.size(x.k.coords, 2) * o.splits, cute.size(x.k.coords, 3)
  local M, N = o.tile[1], o.tile[2]
  if o.ragged then
    local k, n = sequences.find(more.cu_k, t // G, T, N)
    local g = t % G
    return sequences.part(more.cu_q, k.b, S, M), k,
      {n = n, g = g, k = g // o.splits, b = 0}, cute.lt(n * N, k.rows)
  end
  local n, g, b = order.place(t, tiles.count(T, N), G, B, section)
  return sequences.part(nil, b, S, M), sequences.part(nil, b, T, N),
    {n = n, g = g, k = g // o.splits, b = b}
end

-- Moves operands of concatenated sequences so that they begin at this block's
-- sequences q (for Q and dO) and k (for K, V, dK and dV).
local function move(o, x, q, k, more)
  local function by(t, first)
    t.coords = cute.domain_offset({first, 0, 0, 0}, t.coords)
  end
  for _, t in ipairs {x.q, x.g} do
    by(t, q.first)
    t.numbers = cute.domain_offset({q.tile * o.tile[1], 0, 0}, t.numbers)
  end
  for _, t in ipairs {x.k, x.v, x.dk, x.dv} do by(t, k.first) end
  local from = x.at.n * o.tile[2]
  local function rest(t)
    return flash.section(t(_, x.at.k, _), k.first + from,
                         cute.min(k.rows - from, o.tile[2]))
  end
  x.dk.rows, x.dv.rows = rest(more.dK), rest(more.dV)
end

-- Returns a function f(r) that lists visible tiles, for a block mask. f(r)
-- returns two values: the number of tiles of rows of head r that see this
-- block's keys, and a function at(i). at(i) returns the index of the ith of
-- these tiles, and a function that returns the tile's entry in more.before
-- (kernels/block_mask_rows.lua).
local function lister(x, more)
  return function(r)
    local b, h, n = x.at.b, x.at.g * x.heads + r, x.at.n
    local list = more.lists(b, h, n, _)
    return list[0], function(i)
      return list[1 + i] >> 1, function()
        return more.before[{b, h, n, 1 + i}]
      end
    end
  end
end

-- Sets the fields of x that depend on the block's tile of keys, at position t
-- in the order of tiles. Returns two values. The first is a function that calls
-- f(m, h, b) for each tile of rows that sees these keys. The second is whether
-- the tile of keys exists, or nil if it always does.
local function settle(o, x, t, section, sums, more)
  local S, H = cute.size(x.q.coords, 0), cute.size(x.q.coords, 2)
  local last = o.ragged and cute.size(more.cu_q) - 1
  local count = sequences.count(S, last, o.tile[1])
  local q, k, at, exists = find(o, x, t, section, more)
  x.at, x.n, x.b, x.S, x.T = at, at.n, k.b, q.rows, k.rows
  local G = cute.size(x.k.coords, 2)
  x.heads = H // (G * o.splits)
  x.sight = order.sight(o, x.S, x.T)
  x.rows = {order.rows(o, x.n, x.S, x.T)}
  function x.acc.tile(m, h) return (at.b * H + h) * count + q.tile + m end
  if sums then
    -- Only blocks whose tile of keys exists store accumulators.
    if o.ragged then cute.undefined_ok(sums) end
    local N = sequences.count(cute.size(x.k.coords, 0), last, o.tile[2])
    x.parts, x.part = sums, ((at.b * G + at.k) * N + k.tile + at.n)
      * o.splits + at.g % o.splits
  end
  if o.ragged then move(o, x, q, k, more) end
  x.listed = o.list and lister(x, more)
  return function(f)
    order.walk(o, x, function(m, r, before)
      f(m, at.g * x.heads + r, at.b, before)
    end)
  end, exists
end

--- Makes the kernel for complete options. Its arguments are:
-- the TMA atom and the coordinates of each of NAMES;
-- logs and delta (rows,H,B), scale, and the number of groups of heads of Q in
--   a section (order.lua);
-- the counters, if the order of sums is fixed, else nil;
-- the accumulators of dK and dV, if o.splits exceeds 1, else nil;
-- a table or nil: {cu_q, cu_k, dK, dV} for concatenated sequences, {lists,
--   before} with a block mask (kernels/block_mask_rows.lua);
-- the captured values for o.modify.
---@return function
return function(o)
  local l, mma = parts.layouts(o), parts.mmas(o)

  return function(...)
    local logs, delta, scale, section, turns, sums, more =
      select(2 * #NAMES + 1, ...)
    local done
    local tid = cute.arch.thread_idx()
    local warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    local first = o.consumers * 128  -- index of the first producer thread
    local loader = tid:eq(first)
    local x = operands(o, l, {...})
    cute.when(loader, function()
      for _, name in ipairs(NAMES) do
        cpasync.prefetch_descriptor(x[name].atom)
      end
    end)
    pipelines(o, x, logs, delta, loader)
    -- If blocks add in turn, two producer threads, in different warps, add
    -- tiles to dQ alternately.
    x.acc.pair = turns and pipeline.PipelineOrder {length = 2, maker = loader,
      group_id = warp - (4 * o.consumers + 1), defer_sync = true,
      producer_group = Group(Agent.Thread)}
    local drawn = draw(turns)
    pipeline.agent_sync()
    local each, exists = settle(o, x, (drawn()), section, sums, more)
    x.mma, x.scale, x.tid = mma, scale, tid
    if o.modify then
      x.score, x.mask, done = o.modify(select(2 * #NAMES + 8, ...))
    end
    -- Calls f if this block's tile of keys exists.
    local function when(f)
      if exists then cute.when(exists, f) else f() end
    end

    cute.when(warp:ge(4 * o.consumers), function()
      if o.registers then
        cute.arch.setmaxregister_decrease(o.producer_registers)
      end
      cute.when(loader, function()
        when(function() producer.load(x, x.ready, x.at, each) end)
      end)
      local adds = tid:eq(first + 32)
      if turns then adds = adds | tid:eq(first + 64) end
      cute.when(adds, function()
        when(function() producer.add(x, each, queue(o, turns, x)) end)
      end)
    end, function()
      if o.tasks then
        return tasks.split(o, warp, function(task)
          local own = setmetatable({tid = tid % 128}, {__index = x})
          when(function() consumer.run(o, own, task) end)
        end)
      end
      if o.registers then cute.arch.setmaxregister_increase(o.registers) end
      when(function() consumer.run(o, x) end)
    end)
    if done then done() end
  end
end
-- SPDX-License-Identifier: MIT
