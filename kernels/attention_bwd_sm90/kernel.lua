--- The main kernel of kernels/attention_bwd_sm90: shared memory, barriers, and
-- the roles of its warps.
local cute = require "cute"
local consumer = require "kernels.attention_bwd_sm90.consumer"
local order = require "kernels.attention_bwd_sm90.order"
local parts = require "kernels.attention_bwd_sm90.parts"
local producer = require "kernels.attention_bwd_sm90.producer"
local tiles = require "cute.tiles"

local _ = cute._
local cpasync, pipeline = cute.nvgpu.cpasync, cute.pipeline
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

-- Returns the place of this block's tile: its index, or the next number of the
-- shared counter, which is left in shared memory for all threads.
local function ticket(turns)
  if not turns then return (cute.arch.block_idx()) end
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout {1})
  cute.when(cute.arch.thread_idx():eq(0), function()
    s[0] = cute.arch.atomic_add(turns.iterator, 1)
  end)
  cute.arch.sync_threads()
  return s[0]
end

-- Makes the waits for this block's turn to add to tiles of dQ: see
-- producer.add. A counter has the number of blocks that have added to a tile.
local function queue(o, turns, x)
  if not turns then return nil end
  return {
    late = o.late,
    wait = function(m, tile)
      local mine = order.turn(o, x.sight, x.n, m * o.tile[1])
      local at = turns.iterator + tile + 1
      local now = cute.arch.load(at, cute.i32, {sem = "acquire", scope = "gpu"})
      cute.loop(function() return cute.ne(now, mine) end, function()
        now = cute.arch.load(at, cute.i32, {sem = "acquire", scope = "gpu"})
      end)
      cute.arch.fence_proxy "async.global"
      return cute.eq(mine, 0)
    end,
    pass = function(tile)
      cute.arch.atomic_add(turns.iterator + tile + 1, 1,
                           {sem = "release", scope = "gpu"})
    end}
end

-- The operands with TMA atoms.
local NAMES = {"q", "k", "v", "g", "dk", "dv", "acc", "first"}

--- Makes the kernel of complete options. Its arguments are, for each of NAMES,
-- the TMA atom and its coordinates, then logs, delta (rows,H,B), scale, the
-- heads of a section and, if the order of sums is fixed, the counters. acc adds
-- tiles of dQ, first stores them.
---@return function
return function(o)
  local M, N = o.tile[1], o.tile[2]
  local l, mma = parts.layouts(o), parts.mmas(o)

  return function(...)
    local maps, logs, delta, scale, section, turns = {},
      select(2 * #NAMES + 1, ...)
    for i, name in ipairs(NAMES) do maps[name] = {select(2 * i - 1, ...)} end
    local tid = cute.arch.thread_idx()
    local warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    local first = o.consumers * 128  -- index of the first producer thread
    local loader = tid:eq(first)
    cute.when(loader, function()
      for _, name in ipairs(NAMES) do
        cpasync.prefetch_descriptor(maps[name][1])
      end
    end)
    local function operand(name, as)
      local s = cute.make_smem_tensor(o.dtype, l[as], 1024)
      return {atom = maps[name][1], coords = maps[name][2], smem = s,
              turned = parts.view(s, l.turned[as])}
    end
    local warps = Group(Agent.Warp, 4 * o.consumers)
    local function stream(name, values)
      local t = operand(name, name)
      local count = cute.size(t.smem, 2)
      t.numbers = values
      t.near = cute.make_smem_tensor(cute.f32, cute.make_layout {M, count}, 128)
      t.pipe = pipeline.PipelineTmaAsync {
        num_stages = count, tx_count = t.atom.tx_bytes + 4 * M, maker = loader,
        producer_group = Group(Agent.Thread), consumer_group = warps,
        defer_sync = true}
      return t
    end
    local function square()  -- P or dS
      local s = cute.make_smem_tensor(o.dtype, l.s, 1024)
      return {smem = s, turned = parts.view(s, l.turned.s)}
    end
    local x = {k = operand("k", "k"), v = operand("v", "k"),
               q = stream("q", logs), g = stream("g", delta), mma = mma,
               p = o.wide and square() or nil, ds = square(), scale = scale,
               tid = tid}
    x.dk = {atom = maps.dk[1], coords = maps.dk[2], smem = x.k.smem}
    x.dv = {atom = maps.dv[1], coords = maps.dv[2], smem = x.v.smem}
    local S, H = cute.size(maps.q[2], 0), cute.size(maps.q[2], 2)
    local T, G, B = cute.size(maps.k[2], 0), cute.size(maps.k[2], 2),
      cute.size(maps.k[2], 3)
    x.acc = {atom = maps.acc[1], coords = maps.acc[2], modes = {_, _, _},
      smem = cute.make_smem_tensor(cute.f32, l.acc, 128),
      policy = cpasync.CacheHint.EVICT_LAST,
      tile = function(m, h, b) return (b * H + h) * tiles.count(S, M) + m end,
      slices = o.slices,
      pipe = pipeline.PipelineAsync {num_stages = 1, producer_group = warps,
        consumer_group = Group(Agent.Thread), maker = loader,
        defer_sync = true}}
    if turns then
      x.first = {atom = maps.first[1], coords = maps.first[2],
                 modes = x.acc.modes, smem = x.acc.smem, policy = x.acc.policy}
    end
    x.ready = pipeline.MbarrierArray {num_stages = 2, arrivals = 1,
                                      maker = loader}
    pipeline.agent_sync()
    local n, g, b = order.place(o, ticket(turns), tiles.count(T, N), G, B,
                                section)
    x.S, x.T, x.n, x.at, x.heads = S, T, n, {n = n, g = g, b = b}, H // G
    x.sight = order.sight(o, S, T)
    x.rows = {order.rows(o, n, S, T)}
    local function each(f)
      for r in cute.range(x.heads) do
        for m in cute.range(x.rows[1], x.rows[2]) do
          f(m, g * x.heads + r, b)
        end
      end
    end

    cute.when(warp:ge(4 * o.consumers), function()
      if o.registers then
        cute.arch.setmaxregister_decrease(o.producer_registers)
      end
      cute.when(loader, function() producer.load(x, x.ready, x.at, each) end)
      cute.when(tid:eq(first + 32), function()
        producer.add(x, each, queue(o, turns, x))
      end)
    end, function()
      if o.registers then cute.arch.setmaxregister_increase(o.registers) end
      consumer.run(o, x)
    end)
  end
end
-- SPDX-License-Identifier: MIT
