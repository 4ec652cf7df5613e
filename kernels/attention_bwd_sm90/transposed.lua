--- The products of kernels/attention_bwd_sm90 for heads of up to 128 elements:
-- each consumer has 64 keys.
--
-- For each tile of rows, S^T = K Q^T and dP^T = V dO^T become P^T = 2^(c S^T -
-- log) and dS^T = P^T (dP^T - delta). P^T and dS^T stay in registers, as left
-- operands of dV += P^T dO and dK += dS^T Q. dS is also stored to shared
-- memory, because dQ = dS K needs the keys of all consumers.
local cute = require "cute"
local parts = require "kernels.attention_bwd_sm90.parts"
local weights = require "kernels.attention_bwd_sm90.weights"

local _ = cute._
local warpgroup = cute.nvgpu.warpgroup

-- Returns the products of this thread's warpgroup as functions. Each function
-- issues one product as a separate wgmma group.
local function products(o, x)
  local M, N, D = o.tile[1], o.tile[2], o.head
  local scores, keys, dq = x.mma.scores, x.mma.keys, x.mma.dq
  -- All threads of a warpgroup use the descriptors of its first thread.
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
  P.p, P.left_p = weights.narrowed(o, scores)
  P.ds, P.left_ds = weights.narrowed(o, scores)
  -- These products get new accumulators in each step. If a product overwrote
  -- its old accumulators, the compiler would keep them allocated until the
  -- product starts.
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

--- Returns the accumulators of dK and dV, and step(m, masked, r), which adds
-- the products of tile m of rows. r is the index of the rows' head among the
-- heads of Q that share a head of K. hidden: whether the kernel has a mask.
-- masked, used only with `hidden`: whether the mask hides scores of this tile.
return function(o, x, hidden)
  local P = products(o, x)
  local weigh, deltas = weights.weigher(o, x, hidden, P.p, P.left_p),
    weights.numbers(o, x.g.near)
  local save = weights.saver(o, x, P.ds)
  local q, g, stage = x.q.state, x.g.state, 0

  -- Converts the weights P^T (s) and their gradients dp to the operands P^T and
  -- dS^T.
  local function slopes(s, dp)
    for k = 0, cute.size(s) // 4 - 1 do
      local a, b = deltas(g.index, k)
      for e = 4 * k, 4 * k + 3 do
        local power = o.rounded and not o.modify and P.p(e):to(cute.f32) or s(e)
        dp[e] = power * (dp(e) - (e % 2 == 0 and a or b))
      end
      if k % 2 == 1 then
        if not (o.rounded or o.modify) then
          weights.narrow(s, P.left_p, k // 2, o.dtype)
        end
        weights.narrow(dp, P.left_ds, k // 2, o.dtype)
      end
    end
  end

  return P.dk, P.dv, function(m, masked, r)
    x.q.pipe:consumer_wait(q)
    local s = P.scores(q.index)
    x.g.pipe:consumer_wait(g)
    local dp = P.gradients(g.index)
    warpgroup.wait_group(1)
    weigh(s, m * o.tile[1], masked, r)
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
