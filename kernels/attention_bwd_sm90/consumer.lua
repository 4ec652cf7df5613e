--- The consumer warpgroups of kernels/attention_bwd_sm90: they compute the
-- gradients of a tile of keys, and the tile's contribution to dQ.
--
-- Heads of up to 128 elements use the products of transposed.lua. Longer heads
-- use those of wide.lua or, with the option `tasks`, those of tasks.lua.
local cute = require "cute"
local flash = require "kernels.flash"
local order = require "kernels.attention_bwd_sm90.order"
local parts = require "kernels.attention_bwd_sm90.parts"
local pipeline, warpgroup = cute.pipeline, cute.nvgpu.warpgroup
local producer = require "kernels.attention_bwd_sm90.producer"
local tasks = require "kernels.attention_bwd_sm90.tasks"
local tiles = require "cute.tiles"
local transposed = require "kernels.attention_bwd_sm90.transposed"
local wide = require "kernels.attention_bwd_sm90.wide"

local _ = cute._

local consumer = {}

-- Makes a function that copies accumulators of dQ to shared memory. A producer
-- thread then adds them to global memory (producer.add).
local function leaver(o, x)
  local runs = parts.runs(o, x.acc.smem, x.tid, o.sum_stages, o.pieces)
  local state = x.acc.pipe:make_producer_state()
  return function(sums)
    for i = 0, o.pieces - 1 do
      x.acc.pipe:producer_acquire(state)
      local to = runs(_, _, state.index)
      cute.autovec_copy(cute.make_tensor(sums.iterator + i * cute.size(to),
                                         cute.make_layout(to.shape)), to)
      cute.arch.fence_view_async_shared()
      cute.arch.sync_warp()
      x.acc.pipe:producer_commit(state)
      state:advance()
    end
  end
end

-- Stores dK and dV by TMA. They overwrite K and V in shared memory first. dk or
-- dv is nil if this warpgroup does not have these accumulators.
local function finish(o, x, dk, dv)
  local atom = cute.make_copy_atom(o.wide and "SM90_U16x8_STSM_T"
    or "SM90_U32x4_STSM_N", o.dtype)
  local r2s = cute.make_tiled_copy_C(atom, x.mma.keys):get_slice(x.tid)
  local out = cute.make_fragment_like(dk or dv, o.dtype)
  local function put(acc, factor, t)
    local sums = acc:load()
    out:store((factor and sums * factor or sums):to(o.dtype))
    local to = r2s:partition_D(o.wide and t.turned or t.smem)
    cute.copy(atom, r2s:retile(out), to(_, _, _, 0))
  end
  -- Waits until all consumers have read K and V, which dK and dV overwrite.
  x.meet:arrive_and_wait()
  local list = {}
  if dv then
    put(dv, nil, x.v)
    list[1] = x.dv
  end
  if dk then
    put(dk, x.scale, x.k)
    list[#list + 1] = x.dk
  end
  cute.arch.fence_view_async_shared()
  x.own:arrive_and_wait()
  local function boxes()
    cute.when(x.tid:eq(0), function()
      for _, t in ipairs(list) do
        producer.mover(t, true)(0, nil, x.n, 0, x.at.k, x.at.b)
      end
      cute.arch.cp_async_bulk_commit_group()
      cute.arch.cp_async_bulk_wait_group(0, true)
    end)
  end
  if not o.ragged then return boxes() end
  -- The next sequence may begin within the tile. TMA must not store to its
  -- rows.
  cute.when(cute.eq(cute.size(x.dk.rows, 0), o.tile[2]), boxes, function()
    for _, t in ipairs(list) do
      flash.store_rows(t.smem(cute._, cute._, 0), t.rows, x.tid // 32,
                       4 * (o.tasks and 1 or o.consumers))
    end
  end)
end

-- Stores the accumulators dk or dv, or both, of this block's share of the heads
-- of Q to global memory. The kernel edges.dkv adds the shares.
local function keep(x, dk, dv)
  local function put(acc, i)
    local to = x.parts(_, x.tid, _, 2 * x.part + i)
    cute.autovec_copy(cute.make_tensor(acc.iterator,
                                       cute.make_layout(to.shape)), to)
  end
  if dk then put(dk, 0) end
  if dv then put(dv, 1) end
end

--- Computes the gradients of a tile of keys, x.n. Each consumer warpgroup calls
-- this function.
---@param x table {k: table, v: table, q: table, g: table, p: table?, ds: table,
-- acc: table, dk: table, dv: table, ready: any, mma: table, scale: any,
-- tid: any, S: any, T: any, n: any, at: table, heads: any, rows: any[]}
-- rows: see order.rows
---@param task? integer with o.tasks, the task of this warpgroup: 1 to 3
function consumer.run(o, x, task)
  local from, to = table.unpack(x.rows, 3, 4)
  x.q.state, x.g.state = x.q.pipe:make_consumer_state(),
    x.g.pipe:make_consumer_state()
  x.meet = pipeline.NamedBarrier {barrier_id = 1,
                                  num_threads = 128 * o.consumers}
  x.own = task and pipeline.NamedBarrier {barrier_id = 1 + task,
                                          num_threads = 128} or x.meet
  x.leave = leaver(o, x)
  x.mma.scores:set(warpgroup.Field.ACCUMULATE, false)
  x.mma.dq:set(warpgroup.Field.ACCUMULATE, false)
  -- Keys after the last one are zeros. Their weights P have no effect, but must
  -- be finite, because P is multiplied by zeros.
  x.bounded = not from and not tiles.divides(o.tile[2], x.T)
  local make = task and tasks[task] or o.wide and wide or transposed
  local dk, dv, step = make(o, x, from ~= nil)
  if dk then dk:fill(0) end
  if dv then dv:fill(0) end
  x.ready:wait(0, 0)
  x.ready:wait(1, 0)
  -- With `tasks`, only the first task applies the mask.
  local asks = from and (task or 1) == 1
  order.walk(o, x, function(m, r)
    step(m, asks and cute.lt(m, from) | cute.ge(m, to) or nil, r)
  end)
  if x.parts then
    keep(x, dk, dv)
  elseif dk or dv then
    finish(o, x, dk, dv)
  else
    x.meet:arrive()
  end
end

return consumer
-- SPDX-License-Identifier: MIT
