--- The consumer warpgroups of kernels/attention_bwd_sm90: they compute the
-- gradients of a tile of keys, and what the tile adds to dQ.
--
-- Heads of up to 128 elements use the products of transposed.lua, longer heads
-- those of wide.lua.
local cute = require "cute"
local flash = require "kernels.flash"
local order = require "kernels.attention_bwd_sm90.order"
local parts = require "kernels.attention_bwd_sm90.parts"
local pipeline, warpgroup = cute.pipeline, cute.nvgpu.warpgroup
local producer = require "kernels.attention_bwd_sm90.producer"
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

-- Stores dK and dV by TMA. They overwrite K and V in shared memory first.
local function finish(o, x, dk, dv)
  local atom = cute.make_copy_atom(o.wide and "SM90_U16x8_STSM_T"
    or "SM90_U32x4_STSM_N", o.dtype)
  local r2s = cute.make_tiled_copy_C(atom, x.mma.keys):get_slice(x.tid)
  local out = cute.make_fragment_like(dk, o.dtype)
  local function put(acc, factor, t)
    local sums = acc:load()
    out:store((factor and sums * factor or sums):to(o.dtype))
    local to = r2s:partition_D(o.wide and t.turned or t.smem)
    cute.copy(atom, r2s:retile(out), to(_, _, _, 0))
  end
  x.meet:arrive_and_wait()  -- all consumers have read K and V
  put(dv, nil, x.v)
  put(dk, x.scale, x.k)
  cute.arch.fence_view_async_shared()
  x.meet:arrive_and_wait()
  local function boxes()
    cute.when(x.tid:eq(0), function()
      for _, t in ipairs {x.dv, x.dk} do
        producer.mover(t, true)(0, nil, x.n, 0, x.at.g, x.at.b)
      end
      cute.arch.cp_async_bulk_commit_group()
      cute.arch.cp_async_bulk_wait_group(0, true)
    end)
  end
  if not o.ragged then return boxes() end
  -- The next sequence may begin within the tile, where TMA must not store.
  cute.when(cute.eq(cute.size(x.dk.rows, 0), o.tile[2]), boxes, function()
    for _, t in ipairs {x.dv, x.dk} do
      flash.store_rows(t.smem(cute._, cute._, 0), t.rows, cute.arch.warp_idx(),
                       4 * o.consumers)
    end
  end)
end

--- Computes the gradients of a tile of keys.
---@param x table {k: table, v: table, q: table, g: table, p: table?, ds: table,
-- acc: table, dk: table, dv: table, ready: any, mma: table, scale: any,
-- tid: any, S: any, T: any, n: any, at: table, heads: any, rows: any[]}
-- rows: see order.rows
function consumer.run(o, x)
  local from, to = table.unpack(x.rows, 3, 4)
  x.q.state, x.g.state = x.q.pipe:make_consumer_state(),
    x.g.pipe:make_consumer_state()
  x.meet = pipeline.NamedBarrier {barrier_id = 1,
                                  num_threads = 128 * o.consumers}
  x.leave = leaver(o, x)
  x.mma.scores:set(warpgroup.Field.ACCUMULATE, false)
  x.mma.dq:set(warpgroup.Field.ACCUMULATE, false)
  -- Keys after the last are zeros. Their P is not used, but must be finite.
  x.bounded = not from and not tiles.divides(o.tile[2], x.T)
  local dk, dv, step = (o.wide and wide or transposed)(o, x, from ~= nil)
  dk:fill(0)
  dv:fill(0)
  x.ready:wait(0, 0)
  x.ready:wait(1, 0)
  order.walk(o, x, function(m, r)
    step(m, from and cute.lt(m, from) | cute.ge(m, to) or nil, r)
  end)
  finish(o, x, dk, dv)
end

return consumer
-- SPDX-License-Identifier: MIT
