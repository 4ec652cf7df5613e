--- The consumer warpgroups of kernels/attention_bwd_sm90: the products of a
-- tile of keys with tiles of rows, 64 keys for each warpgroup.
--
-- For each tile of rows, S^T = K Q^T and dP^T = V dO^T become P^T = 2^(c S^T -
-- log) and dS^T = P^T (dP^T - delta). Both stay in registers, as left operands
-- of dV += P^T dO and dK += dS^T Q. dS is stored to shared memory, too, because
-- dQ = dS K needs all keys. With `ahead`, the scores of the next rows are
-- requested before the last products of a tile, so that their powers are
-- computed meanwhile.
local cute = require "cute"
local flash = require "kernels.flash"
local parts = require "kernels.attention_bwd_sm90.parts"
local producer = require "kernels.attention_bwd_sm90.producer"

local _ = cute._
local pipeline, warpgroup = cute.pipeline, cute.nvgpu.warpgroup

local consumer = {}

-- Makes accumulators of a product of M rows and N columns.
local function accumulators(mma, M, N)
  return cute.make_rmem_tensor(mma:partition_shape_C {M, N}, cute.f32)
end

-- Makes 16-bit registers for transposed scores. Returns them as accumulators,
-- and as the left operand of a product.
local function narrowed(o, N, M, mma)
  local all = cute.make_rmem_tensor(mma:partition_shape_C {N, M}, o.dtype)
  return all, cute.make_tensor(all.iterator, cute.make_layout
    {{2, 2, 2}, 1, M // 16})
end

-- Makes the products of this thread's warpgroup. Each function requests one, as
-- a group of its own.
local function products(o, x)
  local M, N, D = o.tile[1], o.tile[2], o.head
  local scores, keys, dq = x.mma.scores, x.mma.keys, x.mma.dq
  -- The descriptors of a warpgroup are those of its first thread.
  local first = cute.arch.make_warp_uniform(cute.arch.warp_idx()) // 4 * 128
  local s1, k1, d1 = scores:get_slice(first), keys:get_slice(first),
    dq:get_slice(first)
  local K = scores:make_fragment_A(s1:partition_A(x.k.smem))
  local V = scores:make_fragment_A(s1:partition_A(x.v.smem))
  local Q = scores:make_fragment_B(s1:partition_B(x.q.smem))
  local G = scores:make_fragment_B(s1:partition_B(x.g.smem))
  local Qt = keys:make_fragment_B(k1:partition_B(x.q.turned))
  local Gt = keys:make_fragment_B(k1:partition_B(x.g.turned))
  local A, B
  if o.divided == "turned" then
    A = dq:make_fragment_A(d1:partition_A(x.k.turned))
    B = dq:make_fragment_B(d1:partition_B(x.ds.smem))
  else
    A = dq:make_fragment_A(d1:partition_A(x.ds.smem))
    B = dq:make_fragment_B(d1:partition_B(x.k.turned))
  end
  scores:set(warpgroup.Field.ACCUMULATE, false)
  dq:set(warpgroup.Field.ACCUMULATE, false)
  local P = {dk = accumulators(keys, N, D), dv = accumulators(keys, N, D)}
  local p, left_p = narrowed(o, N, M, scores)
  local ds, left_ds = narrowed(o, N, M, scores)
  P.p, P.ds = left_p, left_ds
  P.powers, P.slopes = p, ds  -- as accumulators
  -- Converts block k, 16 rows of Q, of accumulators to a left operand.
  function P.narrow(acc, to, k)
    local from = cute.make_tensor(acc.iterator, to.layout)(_, _, k)
    to(_, _, k):store(from:load():to(o.dtype))
  end
  local function request(mma, acc, a, b)
    warpgroup.fence()
    cute.gemm(mma, acc, a, b, acc)
    warpgroup.commit_group()
    return acc
  end
  -- The results of these are new registers: what a product overwrites would
  -- otherwise take registers until then.
  function P.scores(stage)
    return request(scores, accumulators(scores, N, M), K(_, _, _, 0),
                   Q(_, _, _, stage))
  end
  function P.gradients(stage)
    return request(scores, accumulators(scores, N, M), V(_, _, _, 0),
                   G(_, _, _, stage))
  end
  function P.to_dq(stage)
    local a = o.divided == "turned" and 0 or stage
    return request(dq, accumulators(dq, table.unpack(parts.extents(o))),
                   A(_, _, _, a), B(_, _, _, stage - a))
  end
  function P.to_dv(stage) request(keys, P.dv, left_p, Gt(_, _, _, stage)) end
  function P.to_dk(stage) request(keys, P.dk, left_ds, Qt(_, _, _, stage)) end
  return P
end

-- Makes a function that loads two numbers of a stage, one for each row of Q:
-- f(stage, i) returns those of columns 2i and 2i + 1 of this thread.
local function numbers(o, near)
  local quad, n = cute.arch.lane_idx() % 4, o.tile[1] // 8
  local all = cute.make_tensor(near.iterator, cute.make_layout(
    {2, 4, n, cute.size(near, 1)}, {1, 2, 8, o.tile[1]}))
  return function(stage, i)
    local both = all(_, quad, i, stage):load()
    return both[0], both[1]
  end
end

-- Makes a function that hides scores: hide(s, row) for rows of Q from `row` on.
local function hider(o, x, places)
  if not x.hidden then return end
  local off = x.T - x.S
  return function(s, row)
    local all = flash.by_rows(s)
    for i = 0, cute.size(all, 0) - 1 do
      local key = x.n * o.tile[2] + places(i, 0)[1]
      local from = o.right and key - (off + o.right) - row
      local to = o.left and key - (off - o.left) - row
      local inside = cute.lt(key, x.T)
      for j = 0, cute.size(all, 1) - 1 do
        local at, seen = places(i, j)[2], inside
        if from then seen = seen & cute.ge(at, from) end
        if to then seen = seen & cute.le(at, to) end
        all[{i, j}] = cute.where(seen, all(i, j), -math.huge)
      end
    end
  end
end

-- Makes the store of dS^T to shared memory.
local function saver(o, x, P)
  local atom = cute.make_copy_atom("SM90_U16x8_STSM_T", o.dtype)
  local r2s = cute.make_tiled_copy_C(atom, x.mma.scores):get_slice(x.tid)
  local to = r2s:partition_D(x.ds.turned)
  local from = r2s:retile(P.slopes)
  return function(stage) cute.copy(atom, from, to(_, _, _, stage)) end
end

-- Makes the main loop: step(i, more) processes tile i of rows; `more` says that
-- another tile follows.
local function steps(o, x, P, meet)
  local c = x.scale * flash.LOG2E
  local logs, deltas = numbers(o, x.q.near), numbers(o, x.g.near)
  local places = flash.by_rows(x.mma.scores:get_slice(x.tid):partition_C(
    cute.make_identity_tensor {o.tile[2], o.tile[1]}))
  local hide, save = hider(o, x, places), saver(o, x, P)
  local q, g, acc = x.q.state, x.g.state, x.acc.state
  local runs = parts.runs(o, x.acc.smem, x.tid)
  local stage = 0
  local self = {}

  -- Requests the scores of a tile of Q.
  local function request_scores(state)
    x.q.pipe:consumer_wait(state)
    return P.scores(state.index)
  end

  -- Requests the gradients of the powers of a tile.
  local function request_gradients()
    x.g.pipe:consumer_wait(g)
    return P.gradients(g.index)
  end

  -- Converts scores to powers.
  local function powers(s, state, row, masked)
    if hide then cute.when(masked, function() hide(s, row) end) end
    for k = 0, cute.size(s) // 4 - 1 do  -- 8 rows of Q
      local a, b = logs(state.index, k)
      for e = 4 * k, 4 * k + 3 do
        s[e] = flash.exp2(cute.fma(s(e), c, -(e % 2 == 0 and a or b)))
      end
      if o.rounded and k % 2 == 1 then P.narrow(s, P.p, k // 2) end
    end
  end

  -- Converts powers and their gradients dp to the operands P^T and dS^T.
  local function slopes(s, dp)
    for k = 0, cute.size(s) // 4 - 1 do
      local a, b = deltas(g.index, k)
      for e = 4 * k, 4 * k + 3 do
        local power = o.rounded and P.powers(e):to(cute.f32) or s(e)
        dp[e] = power * (dp(e) - (e % 2 == 0 and a or b))
      end
      if k % 2 == 1 then
        if not o.rounded then P.narrow(s, P.p, k // 2) end
        P.narrow(dp, P.ds, k // 2)
      end
    end
  end

  -- Requests dV and dQ of a tile.
  local function request_sums()
    P.to_dv(g.index)
    if o.ds_stages == 1 then meet:arrive_and_wait() end
    save(stage)
    cute.arch.fence_view_async_shared()
    meet:arrive_and_wait()
    local sums = P.to_dq(stage)
    if o.ds_stages == 2 then stage = 1 - stage end
    return sums
  end

  -- Leaves a tile of dQ for the thread that adds it.
  local function leave(sums)
    x.acc.pipe:producer_acquire(acc)
    cute.autovec_copy(cute.make_tensor(sums.iterator,
                                       cute.make_layout(runs.shape)), runs)
    cute.arch.fence_view_async_shared()
    cute.arch.sync_warp()
    x.acc.pipe:producer_commit(acc)
    acc:advance()
  end

  -- Waits for the product of dV, behind which `pending` groups were requested.
  local function release_g(pending)
    warpgroup.wait_group(pending)
    x.g.pipe:consumer_release(g)
    g:advance()
  end

  --- Processes a tile of rows from `row` on. masked: whether it has hidden
  -- scores.
  function self.step(row, masked)
    local s = request_scores(q)
    local dp = request_gradients()
    warpgroup.wait_group(1)
    powers(s, q, row, masked)
    warpgroup.wait_group(0)
    slopes(s, dp)
    local sums = request_sums()
    P.to_dk(q.index)
    release_g(2)
    warpgroup.wait_group(1)
    leave(sums)
    warpgroup.wait_group(0)
    x.q.pipe:consumer_release(q)
    q:advance()
  end

  if not o.ahead then return self end
  local ask = x.q.pipe:make_consumer_state()  -- of the next tile

  --- Computes the operands of the first tile.
  function self.begin(row, masked)
    local s = request_scores(ask)
    local dp = request_gradients()
    warpgroup.wait_group(1)
    powers(s, ask, row, masked)
    warpgroup.wait_group(0)
    slopes(s, dp)
    ask:advance()
  end

  --- Requests the products with a tile's operands, and computes those of the
  -- next tile, which has rows from `row` on.
  function self.advance(row, masked)
    local sums = request_sums()
    release_g(1)
    local s = request_scores(ask)
    P.to_dk(q.index)
    warpgroup.wait_group(2)
    leave(sums)
    local dp = request_gradients()
    warpgroup.wait_group(2)
    powers(s, ask, row, masked)
    warpgroup.wait_group(1)
    x.q.pipe:consumer_release(q)
    q:advance()
    warpgroup.wait_group(0)
    slopes(s, dp)
    ask:advance()
  end

  --- Requests the products with the last tile's operands.
  function self.finish()
    local sums = request_sums()
    P.to_dk(q.index)
    release_g(2)
    warpgroup.wait_group(1)
    leave(sums)
    warpgroup.wait_group(0)
  end
  return self
end

-- Stores the gradients of K and V, by TMA, through the memory of K and V.
local function finish(o, x, P, meet)
  local atom = cute.make_copy_atom("SM90_U32x4_STSM_N", o.dtype)
  local r2s = cute.make_tiled_copy_C(atom, x.mma.keys):get_slice(x.tid)
  local out = cute.make_fragment_like(P.dk, o.dtype)
  local function put(acc, factor, t)
    local sums = acc:load()
    out:store((factor and sums * factor or sums):to(o.dtype))
    cute.copy(atom, r2s:retile(out), r2s:partition_D(t.smem)(_, _, _, 0))
  end
  meet:arrive_and_wait()  -- all consumers have read K and V
  put(P.dv, nil, x.v)
  put(P.dk, x.scale, x.k)
  cute.arch.fence_view_async_shared()
  meet:arrive_and_wait()
  cute.when(x.tid:eq(0), function()
    for _, t in ipairs {x.dv, x.dk} do
      producer.mover(t, true)(0, nil, x.n, 0, x.at.g, x.at.b)
    end
    cute.arch.cp_async_bulk_commit_group()
    cute.arch.cp_async_bulk_wait_group(0, true)
  end)
end

--- Computes the gradients of a tile of keys.
---@param x table {k: table, v: table, q: table, g: table, ds: table,
-- acc: table, dk: table, dv: table, ready: any, mma: table, scale: any,
-- tid: any, S: any, T: any, n: any, at: table, heads: any, rows: any[]}
-- rows: see order.rows
function consumer.run(o, x)
  local first, last, from, to = table.unpack(x.rows, 1, 4)
  x.hidden = from ~= nil
  x.q.state, x.g.state = x.q.pipe:make_consumer_state(),
    x.g.pipe:make_consumer_state()
  x.acc.state = x.acc.pipe:make_producer_state()
  local meet = pipeline.NamedBarrier {barrier_id = 1,
                                      num_threads = 128 * o.consumers}
  local P = products(o, x)
  local work = steps(o, x, P, meet)
  P.dk:fill(0)
  P.dv:fill(0)
  x.ready:wait(0, 0)
  x.ready:wait(1, 0)
  local m = first
  local function with(f)
    f(m * o.tile[1], x.hidden and cute.lt(m, from) | cute.ge(m, to) or nil)
    m = m + 1
    m = cute.where(cute.eq(m, last), first, m)
  end
  local count = (last - first) * x.heads
  cute.when(cute.gt(count, 0), function()
    if not o.ahead then
      for _ in cute.range(count) do with(work.step) end
      return
    end
    with(work.begin)
    for _ in cute.range(count - 1) do with(work.advance) end
    work.finish()
  end)
  finish(o, x, P, meet)
end

return consumer
-- SPDX-License-Identifier: MIT
