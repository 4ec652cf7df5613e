--- The products of kernels/attention_bwd_sm90 for heads of more than 128
-- elements. For scores, consumers divide the keys; for gradients, they divide
-- the elements of heads.
--
-- For each tile of rows, S = Q K^T and dP = dO V^T become P = 2^(c S - log) and
-- dS = P (dP - delta). P and dS are stored to shared memory, as operands of
-- dV^T += dO^T P, dK^T += Q^T dS and dQ = dS K. If registers do not suffice for
-- a tile of dQ, it is computed in two slices. In that case, P and dS can use
-- the same memory, so that a second tile of Q fits.
local cute = require "cute"
local flash = require "kernels.flash"
local parts = require "kernels.attention_bwd_sm90.parts"

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
  local Q = scores:make_fragment_A(s1:partition_A(x.q.smem))
  local G = scores:make_fragment_A(s1:partition_A(x.g.smem))
  local K = scores:make_fragment_B(s1:partition_B(x.k.smem))
  local V = scores:make_fragment_B(s1:partition_B(x.v.smem))
  local Qt = keys:make_fragment_A(k1:partition_A(x.q.turned))
  local Gt = keys:make_fragment_A(k1:partition_A(x.g.turned))
  local P = keys:make_fragment_B(k1:partition_B(x.p.smem))
  local dS = keys:make_fragment_B(k1:partition_B(x.ds.smem))
  local left = dq:make_fragment_A(d1:partition_A(x.ds.turned))
  local Kt = {}
  for i = 0, o.slices - 1 do
    Kt[i] = dq:make_fragment_B(d1:partition_B(cute.local_tile(x.k.turned,
      {D // o.slices, N, 1}, {i, 0, 0})))
  end
  local it = {dk = parts.accumulators(keys, D, N),
              dv = parts.accumulators(keys, D, N)}
  function it.scores(stage)
    return parts.request(scores, parts.accumulators(scores, M, N),
                         Q(_, _, _, stage), K(_, _, _, 0))
  end
  function it.gradients(stage)
    return parts.request(scores, parts.accumulators(scores, M, N),
                         G(_, _, _, stage), V(_, _, _, 0))
  end
  function it.to_dv(stage, s)
    parts.request(keys, it.dv, Gt(_, _, _, stage), P(_, _, _, s))
  end
  function it.to_dk(stage, s)
    parts.request(keys, it.dk, Qt(_, _, _, stage), dS(_, _, _, s))
  end
  -- Issues the product for half of the rows of dK.
  function it.to_half_dk(half, stage, s)
    local function rows(t)  -- returns half of (MMA,M,K): (MMA,M/2,K)
      return cute.local_tile(t, {cute.size(t, 0), cute.size(t, 1) // 2,
                                 cute.size(t, 2)}, {0, half, 0})
    end
    parts.request(keys, rows(it.dk), rows(Qt(_, _, _, stage)), dS(_, _, _, s))
  end
  function it.to_dq(slice, s)
    return parts.request(dq, parts.accumulators(dq,
      table.unpack(parts.extents(o))), left(_, _, _, s), Kt[slice](_, _, _, 0))
  end
  return it
end

-- Returns a function that stores scores, in 16 bits, to tiles t
-- (rows,keys,PIPE).
local function saver(o, x, t)
  local atom = cute.make_copy_atom("SM90_U16x4_STSM_T", o.dtype)
  local r2s = cute.make_tiled_copy_C(atom, x.mma.scores):get_slice(x.tid)
  local to = r2s:partition_D(t)
  return function(s, stage)
    local out = cute.make_fragment_like(s, o.dtype)
    out:store(s:load():to(o.dtype))
    cute.copy(atom, r2s:retile(out), to(_, _, _, stage))
  end
end

--- Returns the accumulators of dK and dV, and the function step(m, masked, r),
-- see transposed.lua.
return function(o, x, hidden)
  local P, c = products(o, x), x.scale * flash.LOG2E
  local q, g, stage = x.q.state, x.g.state, 0
  local places = flash.by_rows(x.mma.scores:get_slice(x.tid):partition_C(
    cute.make_identity_tensor(o.tile)))
  local save_p, save_ds = saver(o, x, x.p.turned), saver(o, x, x.ds.turned)

  -- Returns the row values t.near (LSE or delta) of this thread's two rows.
  local function numbers(t, index)
    return {[0] = t.near(places(0, 0)[1], index),
            t.near(places(1, 0)[1], index)}
  end

  local function hide(s, row, masked, value)
    if hidden then
      cute.when(masked, function()
        x.sight:hide(s, places, row, x.n * o.tile[2], value)
      end)
    end
  end

  -- Replaces scores s by the weights P.
  local function powers(s, row, masked)
    hide(s, row, masked, -math.huge)
    local all, log = flash.by_rows(s), numbers(x.q, q.index)
    for i = 0, 1 do
      for j = 0, cute.size(all, 1) - 1 do
        local power = cute.fma(all(i, j), c, -log[i])
        all[{i, j}] = flash.exp2(x.bounded and cute.min(power, 1.0) or power)
      end
    end
  end

  -- Applies score_mod and mask_mod to s, and replaces s by the weights P.
  -- Returns P times the derivatives of the scores.
  local function changed_powers(s, row, masked, r)
    local N = o.tile[2]
    local derivatives = flash.change {score = x.score, mask = x.mask,
      scale = x.score and x.scale, b = x.b, h = x.at.g * x.heads + r,
      tile = o.tile, rows = x.S, columns = x.T,
      single = N // o.consumers % 16 ~= 0}(s, places, row, x.n * N, true)
    local all, log = flash.by_rows(s), numbers(x.q, q.index)
    local product = derivatives or s
    local to = flash.by_rows(product)
    for i = 0, 1 do
      for j = 0, cute.size(all, 1) - 1 do
        local power = flash.exp2(cute.fma(all(i, j),
          x.score and flash.LOG2E or c, -log[i]))
        all[{i, j}] = power
        if derivatives then
          -- The derivative of a score that the mask hides may be NaN. Its
          -- weight is 0, so the product is set to 0.
          to[{i, j}] = cute.where(cute.eq(power, 0), 0.0, power * to(i, j))
        end
      end
    end
    hide(s, row, masked, 0.0)
    if derivatives then hide(product, row, masked, 0.0) end
    return product
  end

  local function slopes(s, dp)
    local all, to = flash.by_rows(s), flash.by_rows(dp)
    local delta = numbers(x.g, g.index)
    for i = 0, 1 do
      for j = 0, cute.size(all, 1) - 1 do
        to[{i, j}] = all(i, j) * (to(i, j) - delta[i])
      end
    end
  end

  -- Stores P and dS to separate memory, and issues the products for dV, dK and
  -- the first slice of dQ. product: P times the derivatives of the scores.
  local function apart(s, dp, product)
    if o.ds_stages == 1 then x.meet:arrive_and_wait() end
    save_p(s, stage)
    warpgroup.wait_group(0)
    slopes(product, dp)
    save_ds(dp, stage)
    cute.arch.fence_view_async_shared()
    x.meet:arrive_and_wait()
    P.to_dv(g.index, stage)
    P.to_dk(q.index, stage)
    local sums = P.to_dq(0, stage)
    warpgroup.wait_group(2)
    x.g.pipe:consumer_release(g)
    warpgroup.wait_group(1)
    x.q.pipe:consumer_release(q)
    warpgroup.wait_group(0)
    x.leave(sums)
    if o.slices == 2 then
      sums = P.to_dq(1, stage)
      warpgroup.wait_group(0)
      x.leave(sums)
    end
    if o.ds_stages == 2 then stage = 1 - stage end
  end

  -- Like apart(), except that P and dS use the same memory: dS overwrites P
  -- after the product for dV has read P.
  local function shared(s, dp, product)
    -- Waits until all consumers have read dS of the previous tile.
    x.meet:arrive_and_wait()
    save_p(s, 0)
    cute.arch.fence_view_async_shared()
    x.meet:arrive_and_wait()
    P.to_dv(g.index, 0)
    warpgroup.wait_group(1)
    slopes(product, dp)
    -- Orders the reads of delta before TMA overwrites delta.
    cute.arch.fence_view_async_shared()
    warpgroup.wait_group(0)
    x.meet:arrive_and_wait()  -- wait until all consumers have read P and delta
    x.g.pipe:consumer_release(g)
    save_ds(dp, 0)
    cute.arch.fence_view_async_shared()
    x.meet:arrive_and_wait()
    -- While half of the product for dK runs, another thread adds a slice of dQ
    -- to global memory.
    for slice = 0, 1 do
      local sums = P.to_dq(slice, 0)
      P.to_half_dk(slice, q.index, 0)
      warpgroup.wait_group(1)
      x.leave(sums)
    end
    warpgroup.wait_group(0)
    x.q.pipe:consumer_release(q)
  end

  return P.dk, P.dv, function(m, masked, r)
    x.q.pipe:consumer_wait(q)
    local s = P.scores(q.index)
    x.g.pipe:consumer_wait(g)
    local dp = P.gradients(g.index)
    warpgroup.wait_group(1)
    local row, product = m * o.tile[1], s
    if o.modify then
      product = changed_powers(s, row, masked, r)
    else
      powers(s, row, masked)
    end
    local rest = o.shared and shared or apart
    rest(s, dp, product)
    q:advance()
    g:advance()
  end
end
-- SPDX-License-Identifier: MIT
