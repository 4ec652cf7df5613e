--- The products of kernels/attention_bwd_sm90 with the option `tasks`: heads of
-- 256 elements, 64 keys, three warpgroups with different tasks.
--
-- For each tile of rows, the first warpgroup computes S^T = K Q^T, the weights
-- P^T = 2^(c S^T - log) and dV += P^T dO. The second one computes dP^T = V
-- dO^T, loads P^T from shared memory, and computes dS^T = P^T (dP^T - delta)
-- and dK += dS^T Q. The third one reads dS from shared memory, and computes dQ
-- = dS K in slices of 64 elements. P^T and dS^T are left operands in registers
-- for dV and dK. The warpgroups may process different tiles of rows at the same
-- time.
local cute = require "cute"
local parts = require "kernels.attention_bwd_sm90.parts"
local weights = require "kernels.attention_bwd_sm90.weights"

local _ = cute._
local warpgroup = cute.nvgpu.warpgroup

local tasks = {}

local ALL = 1 << 16  -- registers of a multiprocessor

-- Returns a function (stage) that issues the product of s, a tile of K or V,
-- and a tile of Q or dO (a stage of t). The function returns the accumulators:
-- transposed scores or gradients.
local function scores_product(o, x, s, t)
  local mma = x.mma.scores
  local slice = mma:get_slice(0)
  local A = mma:make_fragment_A(slice:partition_A(s.smem))
  local B = mma:make_fragment_B(slice:partition_B(t.smem))
  return function(stage)
    return parts.request(mma, parts.accumulators(mma, o.tile[2], o.tile[1]),
                         A(_, _, _, 0), B(_, _, _, stage))
  end
end

-- Returns a function (left, stage) that multiplies a left operand by a tile of
-- Q or dO (a stage of t). It adds the product to the accumulators of dK or dV.
-- Also returns these accumulators.
local function keys_product(o, x, t)
  local mma = x.mma.keys
  local B = mma:make_fragment_B(mma:get_slice(0):partition_B(t.turned))
  local acc = parts.accumulators(mma, o.tile[2], o.head)
  return function(left, stage)
    parts.request(mma, acc, left, B(_, _, _, stage))
  end, acc
end

-- Returns this thread's part (8,k) of P^T in shared memory. Each thread of the
-- first warpgroup stores the part that one thread of the second warpgroup
-- loads.
local function shared_weights(o, x)
  local n = o.tile[1] * o.tile[2] // 1024
  return cute.make_tensor(x.p.smem.iterator, cute.make_layout(
    {8, 128, n}, {1, 8, 1024}))(_, x.tid, _)
end

--- Calls f(task) in the warpgroup of each task, with the task's registers.
function tasks.split(o, warp, f)
  local function task(i)
    local n = o.registers[i]
    local change = n > ALL // o.block and "increase" or "decrease"
    cute.arch["setmaxregister_" .. change](n)
    f(i)
  end
  cute.when(warp:lt(4), function() task(1) end, function()
    cute.when(warp:lt(8), function() task(2) end, function() task(3) end)
  end)
end

--- Makes the tile of P^T, and the pipelines of P^T and dS.
function tasks.prepare(o, x, loader)
  local pipeline = cute.pipeline
  local warps = pipeline.CooperativeGroup(pipeline.Agent.Warp, 4)
  x.p = {smem = cute.make_smem_tensor(o.dtype, cute.make_layout {
    o.tile[1] * o.tile[2]}, 128)}
  for _, t in ipairs {x.p, x.ds} do
    t.pipe = pipeline.PipelineAsync {num_stages = 1, producer_group = warps,
      consumer_group = warps, maker = loader, defer_sync = true}
  end
end

--- The first task computes dV. Returns nil, the accumulators of dV, and the
-- function step(m, masked, r), see transposed.lua.
tasks[1] = function(o, x, hidden)
  local times = scores_product(o, x, x.k, x.q)
  local add, acc = keys_product(o, x, x.g)
  local p, left = weights.narrowed(o, x.mma.scores)
  local weigh = weights.weigher(o, x, hidden, p, left)
  local to = shared_weights(o, x)
  local q, g, free = x.q.state, x.g.state, x.p.pipe:make_producer_state()
  return nil, acc, function(m, masked, r)
    x.q.pipe:consumer_wait(q)
    local s = times(q.index)
    warpgroup.wait_group(0)
    weigh(s, m * o.tile[1], masked, r)
    cute.arch.fence_view_async_shared()
    cute.arch.sync_warp()
    x.q.pipe:consumer_release(q)
    local out = p
    if o.modify then
      out = cute.make_fragment_like(s, o.dtype)
      out:store(s:load():to(o.dtype))
    end
    x.p.pipe:producer_acquire(free)
    cute.autovec_copy(cute.make_tensor(out.iterator,
                                       cute.make_layout(to.shape)), to)
    cute.arch.sync_warp()
    x.p.pipe:producer_commit(free)
    x.g.pipe:consumer_wait(g)
    add(left, g.index)
    warpgroup.wait_group(0)
    x.g.pipe:consumer_release(g)
    for _, state in ipairs {q, g, free} do state:advance() end
  end
end

--- The second task computes dK. Returns the accumulators of dK, nil, and the
-- function step.
tasks[2] = function(o, x)
  local times = scores_product(o, x, x.v, x.g)
  local add, acc = keys_product(o, x, x.q)
  local ds, left = weights.narrowed(o, x.mma.scores)
  local deltas, from = weights.numbers(o, x.g.near), shared_weights(o, x)
  local save = weights.saver(o, x, ds)
  local q, g = x.q.state, x.g.state
  local full, free = x.p.pipe:make_consumer_state(),
    x.ds.pipe:make_producer_state()
  return acc, nil, function()
    x.g.pipe:consumer_wait(g)
    local dp = times(g.index)
    x.p.pipe:consumer_wait(full)
    warpgroup.wait_group(0)
    local p = cute.make_rmem_tensor({8}, o.dtype)
    for k = 0, o.tile[1] // 8 - 1 do
      if k % 2 == 0 then cute.autovec_copy(from(_, k // 2), p) end
      local a, b = deltas(g.index, k)
      for e = 0, 3 do
        local i = 4 * k + e
        dp[i] = p(i % 8):to(cute.f32) * (dp(i) - (e % 2 == 0 and a or b))
      end
      if k % 2 == 1 then weights.narrow(dp, left, k // 2, o.dtype) end
    end
    cute.arch.fence_view_async_shared()
    cute.arch.sync_warp()
    x.p.pipe:consumer_release(full)
    x.g.pipe:consumer_release(g)
    x.ds.pipe:producer_acquire(free)
    save(0)
    cute.arch.fence_view_async_shared()
    cute.arch.sync_warp()
    x.ds.pipe:producer_commit(free)
    x.q.pipe:consumer_wait(q)
    add(left, q.index)
    warpgroup.wait_group(0)
    x.q.pipe:consumer_release(q)
    for _, state in ipairs {q, g, full, free} do state:advance() end
  end
end

--- The third task computes dQ. Returns nil, nil, and the function step.
tasks[3] = function(o, x)
  local mma, state = x.mma.dq, x.ds.pipe:make_consumer_state()
  local slice = mma:get_slice(0)
  local A = mma:make_fragment_A(slice:partition_A(x.ds.smem))
  return nil, nil, function()
    x.ds.pipe:consumer_wait(state)
    for i = 0, o.slices - 1 do
      local B = mma:make_fragment_B(slice:partition_B(cute.local_tile(
        x.k.turned, {o.head // o.slices, o.tile[2], 1}, {i, 0, 0})))
      local sums = parts.request(mma, parts.accumulators(mma,
        table.unpack(parts.extents(o))), A(_, _, _, 0), B(_, _, _, 0))
      warpgroup.wait_group(0)
      if i == o.slices - 1 then x.ds.pipe:consumer_release(state) end
      x.leave(sums)
    end
    state:advance()
  end
end

return tasks
-- SPDX-License-Identifier: MIT
