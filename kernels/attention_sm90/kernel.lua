--- The kernel of kernels/attention_sm90: shared memory, barriers, and the roles
-- of its warps.
local cute = require "cute"
local consumer = require "kernels.attention_sm90.consumer"
local eight = require "kernels.attention_sm90.eight"
local flash = require "kernels.flash"
local order = require "kernels.attention_sm90.order"
local producer = require "kernels.attention_sm90.producer"
local smem = require "cute.smem"

local _ = cute._
local cpasync, pipeline = cute.nvgpu.cpasync, cute.pipeline
local warpgroup = cute.nvgpu.warpgroup
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

-- Returns the layout of tiles in shared memory, (rows,D,PIPE), with the widest
-- swizzle that divides a row.
local function stages(dtype, rows, D, count)
  local kind = "K_" .. smem.widest(D * dtype.bits)
  return cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, dtype),
                            {rows, D, count}, {0, 1, 2})
end

-- Returns the layout of stages() with transposed modes: (D,rows,PIPE).
local function turned(dtype, rows, D, count)
  local kind = "MN_" .. smem.widest(D * dtype.bits)
  return cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, dtype),
                            {D, rows, count}, {1, 0, 2})
end

--- Makes the kernel of complete options.
---@return table {f = the kernel's function, q, k, v, o = the layouts of the
-- operands in shared memory}. The layouts are (rows,D,PIPE), but that of v is
-- (D,rows,PIPE). With o.narrow, v is (rows,D/2,PIPE) of pairs of elements, and
-- there is no field o.
return function(o)
  local M, N = o.tile[1], o.tile[2]
  local layout = {q = stages(o.dtype, M, o.head, o.q_stages),
                  k = stages(o.dtype, N, o.head, o.stages)}
  if o.narrow then
    layout.v = stages(cute.f16, N, o.value // 2, o.v_stages)
    layout.vt = stages(o.dtype, o.value, N, o.stages)
  else
    layout.v = turned(o.dtype, N, o.value, o.stages)
    layout.o = stages(o.dtype, M, o.value, o.q_stages)
  end
  local mma_s, mma_o = (o.narrow and eight or consumer).mmas(o)

  local function kernel(tma_q, cQ, tma_k, cK, tma_v, cV, tma_o, cO, LSE, scale,
                        share, more, ...)
    local tid = cute.arch.thread_idx()
    local warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    local first = o.consumers * 128  -- index of the first producer thread
    local loader = tid:eq(first)
    cute.when(loader, function()
      for _, atom in ipairs {tma_q, tma_k, tma_v, not o.narrow and tma_o
                             or nil} do
        cpasync.prefetch_descriptor(atom)
      end
    end)
    local function operand(atom, coords, l, count, readers, dtype)
      return {atom = atom, coords = coords,
        smem = cute.make_smem_tensor(dtype or o.dtype, l, 1024),
        pipe = pipeline.PipelineTmaAsync {
          num_stages = count, tx_count = atom.tx_bytes, maker = loader,
          producer_group = Group(Agent.Thread), consumer_group = readers,
          defer_sync = true}}
    end
    local warps = Group(Agent.Warp, 4 * o.consumers)
    local helpers = Group(Agent.Warp, eight.WARPS)
    local q = operand(tma_q, cQ, layout.q, o.q_stages,
                      o.narrow and warps or Group(Agent.Thread))
    local k = operand(tma_k, cK, layout.k, o.stages, warps)
    local v = operand(tma_v, cV, layout.v, o.v_stages,
                      o.narrow and helpers or warps, o.narrow and cute.f16)
    v.turned = not o.narrow
    local out, ready, vt
    if o.narrow then
      vt = {smem = cute.make_smem_tensor(o.dtype, layout.vt, 1024),
            pipe = pipeline.PipelineAsync {num_stages = o.stages,
              producer_group = helpers, consumer_group = warps,
              maker = loader, defer_sync = true}}
    else
      out = {atom = tma_o, coords = cO,
             smem = cute.local_tile(q.smem, {M, o.value, o.q_stages},
                                    {0, 0, 0})}
      ready = pipeline.MbarrierArray {num_stages = o.q_stages,
                                      arrivals = warps.size, maker = loader}
    end
    local S, H, B = cute.size(cQ, 0), cute.size(cQ, 2), cute.size(cQ, 3)
    local T = cute.size(cK, 0)
    local cu_q = o.ragged and more.cu_q
    if cu_q then B = cute.size(cu_q) - 1 end
    local walk = order.walks(o, S, H, B, share, loader, cu_q)
    pipeline.agent_sync()
    local edges = flash.sight(S, T, o.left, o.right)
    -- Returns a table about sequence b: {S = number of rows, sight = the keys
    -- that each row sees (flash.sight)}. For concatenated sequences, it also
    -- has {row = index of the sequence's first row, key = index of its first
    -- key}.
    local function part(b)
      if not cu_q then return {S = S, sight = edges} end
      local row, rows = flash.span(cu_q, b, S, true)
      local key, keys = flash.span(more.cu_k, b, T)
      return {batch = 0, row = row, key = key, S = rows,
              sight = flash.sight(rows, keys, o.left, o.right)}
    end
    local function each(who)
      local all = walk(who)
      return function(f)
        all(function(m, h, b) f(m, h, b, part(b)) end)
      end
    end
    local function sees(m, h, b, at)
      local all = {at.sight:blocks(m * M, M, N)}
      if o.list then
        all[1], all[2], all[5] = 0, flash.listed(
          more.blocks(b, h, m // (o.list[1] // M), _), o.list[2] // N)
      elseif o.around then
        all[5] = order.around(all[1], all[2],
                              (m * M + M // 2 + at.sight.off) // N)
      end
      return table.unpack(all, 1, 5)
    end
    local function rows(m, h, at)  -- returns the rows of O of a tile
      return flash.section(more.O(_, h, _), at.row + m * M, at.S - m * M)
    end
    local score, mask, done, near, log2
    if o.modify then score, mask, done, near, log2 = o.modify(...) end

    cute.when(warp:ge(4 * o.consumers), function()
      if o.registers then
        cute.arch.setmaxregister_decrease(o.producer_registers)
      end
      cute.when(loader, function()
        producer.load(q, k, v, H // cute.size(cK, 2), each "producer", sees)
      end)
      if o.narrow then
        local nth = warp - (4 * (o.consumers + 1) - eight.WARPS)
        cute.when(nth:ge(0), function()
          eight.transpose(o, v, vt, nth, each "consumer", sees)
        end)
        return
      end
      cute.when(warp:eq(4 * o.consumers + 1), function()
        producer.store(q, out, ready, each "consumer", cu_q and rows)
      end)
    end, function()
      if o.registers then cute.arch.setmaxregister_increase(o.registers) end
      consumer.run(o, {q = q, k = k, v = vt or v, o = out, mma_s = mma_s,
        mma_o = mma_o, ready = ready, sees = sees, tid = tid, lse = LSE,
        scale = scale, sinks = more and more.sinks, score = score,
        mask = mask, near = near, log2 = log2, rises = o.rises,
        early = o.early, more = more,
        group = H // cute.size(cK, 2)}, each "consumer")
    end)
    if done then done() end
  end
  layout.f = kernel
  return layout
end
-- SPDX-License-Identifier: MIT
