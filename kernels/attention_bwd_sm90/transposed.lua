--- The products of kernels/attention_bwd_sm90 for heads of up to 128 elements:
-- each consumer has 64 keys.
--
-- For each tile of rows, S^T = K Q^T and dP^T = V dO^T become P^T = 2^(c S^T -
-- log) and dS^T = P^T (dP^T - delta). Both stay in registers, as left operands
-- of dV += P^T dO and dK += dS^T Q. dS is stored to shared memory, too, because
-- dQ = dS K needs the keys of all consumers.
local cute = require "cute"
local flash = require "kernels.flash"
local kept = require "kernels.kept"
local parts = require "kernels.attention_bwd_sm90.parts"

local _ = cute._
local warpgroup = cute.nvgpu.warpgroup

-- Makes 16-bit registers for transposed scores. Returns them as accumulators,
-- and as the left operand of a product.
local function narrowed(o, mma)
  local M, N = o.tile[1], o.tile[2]
  local all = cute.make_rmem_tensor(mma:partition_shape_C {N, M}, o.dtype)
  return all, cute.make_tensor(all.iterator, cute.make_layout
    {{2, 2, 2}, 1, M // 16})
end

-- Returns the products of this thread's warpgroup as functions. Each function
-- issues one product as a separate wgmma group.
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
  local P = {dk = parts.accumulators(keys, N, D),
             dv = parts.accumulators(keys, N, D)}
  P.p, P.left_p = narrowed(o, scores)
  P.ds, P.left_ds = narrowed(o, scores)
  -- These products get new accumulators each time. Accumulators that a product
  -- overwrites would stay allocated until it starts.
  function P.scores(stage)
    return parts.request(scores, parts.accumulators(scores, N, M),
                         K(_, _, _, 0), Q(_, _, _, stage))
  end
  function P.gradients(stage)
    return parts.request(scores, parts.accumulators(scores, N, M),
                         V(_, _, _, 0), G(_, _, _, stage))
  end
  function P.to_dq(stage)
    local a = o.divided == "turned" and 0 or stage
    return parts.request(dq, parts.accumulators(dq,
      table.unpack(parts.extents(o))), A(_, _, _, a), B(_, _, _, stage - a))
  end
  function P.to_dv(stage)
    parts.request(keys, P.dv, P.left_p, Gt(_, _, _, stage))
  end
  function P.to_dk(stage)
    parts.request(keys, P.dk, P.left_ds, Qt(_, _, _, stage))
  end
  return P
end

-- Converts accumulators of 16 rows of Q, block k, to a left operand.
local function narrow(acc, to, k, dtype)
  local from = cute.make_tensor(acc.iterator, to.layout)(_, _, k)
  to(_, _, k):store(from:load():to(dtype))
end

-- Returns a function (stage, i) that loads two row values from `near` (LSEs or
-- deltas in shared memory). They belong to columns 2i and 2i + 1 of this
-- thread's scores, which are rows of Q.
local function numbers(o, near)
  local quad, n = cute.arch.lane_idx() % 4, o.tile[1] // 8
  local all = cute.make_tensor(near.iterator, cute.make_layout(
    {2, 4, n, cute.size(near, 1)}, {1, 2, 8, o.tile[1]}))
  return function(stage, i)
    local both = all(_, quad, i, stage):load()
    return both[0], both[1]
  end
end

-- Returns a function hide(s, row, value), which replaces hidden elements of
-- scores s by `value`. The columns of s are the rows of Q from `row` on.
local function hider(o, x)
  local off = x.T - x.S
  local places = flash.by_rows(x.mma.scores:get_slice(x.tid):partition_C(
    cute.make_identity_tensor {o.tile[2], o.tile[1]}))
  return function(s, row, value)
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
        all[{i, j}] = cute.where(seen, all(i, j), value)
      end
    end
  end
end

-- Returns a function that stores dS^T to shared memory.
local function saver(o, x, ds)
  local atom = cute.make_copy_atom("SM90_U16x8_STSM_T", o.dtype)
  local r2s = cute.make_tiled_copy_C(atom, x.mma.scores):get_slice(x.tid)
  local from, to = r2s:retile(ds), r2s:partition_D(x.ds.turned)
  return function(stage) cute.copy(atom, from, to(_, _, _, stage)) end
end

-- Returns a function (s, row, r) for kernels with functions of scores. That
-- function returns a function (k), which changes block k of s, the scores of 8
-- rows of Q. The latter returns the derivatives of the new scores, or nil if
-- there is no score_mod. r: the index of the head of Q among those that share a
-- head of K.
local function changer(o, x)
  local M, N = o.tile[1], o.tile[2]
  local places = flash.by_rows(x.mma.scores:get_slice(x.tid):partition_C(
    cute.make_identity_tensor {N, M}))
  return function(s, row, r)
    local given = {score = x.score, mask = x.mask, scale = x.score and x.scale,
      b = x.b, h = x.at.g * x.heads + r, tile = {N, M}, rows = x.T,
      columns = x.S, turned = true}
    local first = 0  -- the first column of a block
    local draw = kept.turned(given, places, x.n * N, row)
    function given.draw(i, j, p, seed) return draw(i, first + j, p, seed) end
    local change = flash.change(given)
    return function(k)
      first = 2 * k
      return change(cute.make_tensor(s.iterator + 4 * k, cute.make_layout
        {{2, 2, 1}, 1, 1}), function(i, j) return places(i, first + j) end,
        x.n * N, row, true)
    end
  end
end

--- Returns the accumulators of dK and dV, and step(m, masked, r), which adds
-- the products of tile m of rows. r is the index of its head among the heads of
-- Q that share a head of K. hidden: whether the kernel has a mask. masked: with
-- `hidden`, whether the mask hides scores of this tile.
return function(o, x, hidden)
  local P, c = products(o, x), x.scale * flash.LOG2E
  local logs, deltas = numbers(o, x.q.near), numbers(o, x.g.near)
  local hide, save = hidden and hider(o, x), saver(o, x, P.ds)
  local change = o.modify and changer(o, x)
  local q, g, stage = x.q.state, x.g.state, 0

  -- Replaces scores by P = 2^(c s - LSE).
  local function powers(s, row, masked)
    if hide then
      cute.when(masked, function() hide(s, row, -math.huge) end)
    end
    for k = 0, cute.size(s) // 4 - 1 do  -- 8 rows of Q
      local a, b = logs(q.index, k)
      for e = 4 * k, 4 * k + 3 do
        local power = cute.fma(s(e), c, -(e % 2 == 0 and a or b))
        s[e] = flash.exp2(x.bounded and cute.min(power, 1.0) or power)
      end
      if o.rounded and k % 2 == 1 then narrow(s, P.left_p, k // 2, o.dtype) end
    end
  end

  -- Applies the functions of scores, replaces scores s by P, and sets the left
  -- operand P^T. Then multiplies P in s by the derivatives of the scores.
  local function changed_powers(s, row, masked, r)
    local p = cute.make_fragment_like(s)
    local base = x.score and flash.LOG2E or c
    local change_block = change(s, row, r)
    for k = 0, cute.size(s) // 4 - 1 do
      local a, b = logs(q.index, k)
      local slope = change_block(k)
      for e = 4 * k, 4 * k + 3 do
        local power = flash.exp2(cute.fma(s(e), base, -(e % 2 == 0 and a or b)))
        p[e] = power
        -- The derivative of a hidden score may be no number.
        s[e] = slope and cute.where(cute.eq(power, 0), 0.0,
                                    power * slope(e - 4 * k)) or power
      end
      if k % 2 == 1 then narrow(p, P.left_p, k // 2, o.dtype) end
    end
    if hide then
      cute.when(masked, function()
        hide(s, row, 0.0)
        hide(P.p, row, 0.0)
      end)
    end
  end

  -- Converts P^T and its gradients dp to the operands P^T and dS^T.
  local function slopes(s, dp)
    for k = 0, cute.size(s) // 4 - 1 do
      local a, b = deltas(g.index, k)
      for e = 4 * k, 4 * k + 3 do
        local power = o.rounded and not change and P.p(e):to(cute.f32) or s(e)
        dp[e] = power * (dp(e) - (e % 2 == 0 and a or b))
      end
      if k % 2 == 1 then
        if not (o.rounded or change) then
          narrow(s, P.left_p, k // 2, o.dtype)
        end
        narrow(dp, P.left_ds, k // 2, o.dtype)
      end
    end
  end

  return P.dk, P.dv, function(m, masked, r)
    x.q.pipe:consumer_wait(q)
    local s = P.scores(q.index)
    x.g.pipe:consumer_wait(g)
    local dp = P.gradients(g.index)
    warpgroup.wait_group(1)
    local row = m * o.tile[1]
    if change then
      changed_powers(s, row, masked, r)
    else
      powers(s, row, masked)
    end
    warpgroup.wait_group(0)
    slopes(s, dp)
    P.to_dv(g.index)
    if o.ds_stages == 1 then x.meet:arrive_and_wait() end
    save(stage)
    cute.arch.fence_view_async_shared()
    x.meet:arrive_and_wait()
    local sums = P.to_dq(stage)
    P.to_dk(q.index)
    warpgroup.wait_group(2)
    x.g.pipe:consumer_release(g)
    g:advance()
    warpgroup.wait_group(1)
    x.leave(sums)
    warpgroup.wait_group(0)
    x.q.pipe:consumer_release(q)
    q:advance()
    if o.ds_stages == 2 then stage = 1 - stage end
  end
end
-- SPDX-License-Identifier: MIT
