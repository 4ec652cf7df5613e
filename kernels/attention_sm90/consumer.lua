--- The consumer warpgroups of kernels/attention_sm90: the products and the
-- softmax of a tile of rows, 64 for each warpgroup.
--
-- The "power" of a score is its exponential, computed as a power of 2. A
-- warpgroup issues the product for the scores of the next keys before the
-- product of the previous powers with V. While the second product runs, the
-- warpgroup computes the powers of the new scores, relative to the largest of
-- the earlier scores. If a power is too large, the warpgroup computes the
-- scores again and searches for the largest one. Powers stay in registers,
-- because accumulators are distributed over the threads like a left operand.
-- Warpgroups issue products alternately, so that one warpgroup computes powers
-- while another one multiplies.
local cute = require "cute"
local eight = require "kernels.attention_sm90.eight"
local flash = require "kernels.flash"

local _ = cute._
local pipeline, warpgroup = cute.pipeline, cute.nvgpu.warpgroup

local WARPGROUP = 128

local consumer = {}

--- Returns two MMAs. The first computes the scores from Q and K in shared
-- memory, the second O from powers in registers and V.
function consumer.mmas(o)
  local groups = cute.make_layout {o.consumers, 1, 1}
  local scores = warpgroup.MmaF16BF16Op(o.dtype, cute.f32,
    {64, o.tile[2], 16}, "SMEM", "K", "K")
  local out = warpgroup.MmaF16BF16Op(o.dtype, cute.f32, {64, o.value, 16},
                                     "RMEM", "K", "MN")
  return cute.make_tiled_mma(scores, groups), cute.make_tiled_mma(out, groups)
end

-- Returns the functions by which warpgroups take turns: wait() returns when it
-- is this warpgroup's turn, and pass() begins the turn of the next warpgroup.
-- tail() must be called once at the end. Warpgroup g waits at named barrier g +
-- 1.
local function turns(o, group)
  if not o.ordered then
    local function nothing() end
    return {wait = nothing, pass = nothing, tail = nothing}
  end
  local n = o.consumers
  local function barrier(g)
    return pipeline.NamedBarrier {barrier_id = g + 1,
                                  num_threads = 2 * WARPGROUP}
  end
  local mine = barrier(group)
  local others = barrier(cute.where(cute.eq(group, n - 1), 0, group + 1))
  cute.when(cute.eq(group, n - 1), function() others:arrive() end)
  return {
    wait = function() mine:arrive_and_wait() end,
    pass = function() others:arrive() end,
    -- The last warpgroup has passed a turn to the first one. The first
    -- warpgroup waits for it, so that no arrival is left at the barrier.
    tail = function()
      cute.when(cute.eq(group, 0), function() mine:arrive_and_wait() end)
    end}
end

-- Makes a second set of registers for exponentials, because products may still
-- read the left operand p. Returns {p = these registers, take = a function that
-- copies them to the operand p}.
local function spare(p, scale)
  local next = cute.make_fragment_like(p)
  local function words(t)
    return cute.make_tensor(cute.recast_tensor(t, cute.u32).iterator,
                            cute.make_layout {cute.size(t) // 2})
  end
  -- Adds a 0 whose value the compiler does not know. Without it, the compiler
  -- would use the registers of p for `next`, which would serialize the
  -- products.
  local zero = cute.where(cute.gt(scale, 0), 0, 1):to(cute.u32)
  local from, to = words(next), words(p)
  return {p = next, take = function()
    for i = 0, cute.size(from) - 1 do to[i] = from[i] + zero end
  end}
end

-- Adds two functions to P, the result of products(). They depend on the type of
-- Q's elements. again() recomputes the scores s without wgmma. narrow()
-- converts the powers in s to 16 bits in P.p.
local function complete(o, x, P)
  local M, N = o.tile[1], o.tile[2]
  local s, p, next = P.s, P.p, P.next
  -- The registers of s, in the order of the operand p.
  local powers = cute.make_tensor(s.iterator, p.layout)
  local warps = flash.team(o.dtype, 4 * o.consumers)
  -- Recomputes the scores of the warp's rows with mma.sync, which needs few
  -- registers for 16 keys at a time.
  function P.again(q, k)
    local part = warps.mma:partition_shape_C {M, 16}
    s:fill(0)
    -- This is a loop of the kernel, not of Lua: an unrolled loop would have
    -- more MMAs, and each takes the compiler milliseconds.
    for i in cute.range(o.head // 16) do
      local rows = cute.local_tile(x.q.smem(_, _, q.index), {M, 16}, {0, i})
      local left = warps:left(rows)(0)
      for n = 0, N // 16 - 1 do
        local keys = cute.local_tile(x.k.smem, {16, 16, o.stages}, {n, i, 0})
        warps:times(keys)(k.index,
          cute.make_tensor(s.iterator + 8 * n, part),
          function() return left end)
      end
    end
    -- After this fence, a lane may permit the next bulk copy to overwrite the
    -- keys.
    cute.arch.fence_view_async_shared()
    cute.arch.sync_warp()
  end
  P.pack = next and function() next.p:store(powers:load():to(o.dtype)) end
  P.narrow = next and next.take or function()
    p:store(powers:load():to(o.dtype))
  end
end

-- Returns the products of this thread's warpgroup. scores() issues s = Q K^T,
-- and weigh() issues acc += p V. complete() adds further functions.
local function products(o, x)
  local M, N = o.tile[1], o.tile[2]
  local times_k, times_v = x.mma_s, x.mma_o
  local thr_s, thr_o = times_k:get_slice(x.tid), times_v:get_slice(x.tid)
  local Q = times_k:make_fragment_A(thr_s:partition_A(x.q.smem))
  local K = times_k:make_fragment_B(thr_s:partition_B(x.k.smem))
  local V = times_v:make_fragment_B(thr_o:partition_B(x.v.smem))
  local s = cute.make_rmem_tensor(times_k:partition_shape_C {M, N}, cute.f32)
  local acc = cute.make_rmem_tensor(times_v:partition_shape_C {M, o.value},
                                    cute.f32)
  -- One wgmma reads 256 bits of each row of p.
  local width = 256 // o.dtype.bits
  local p = cute.make_rmem_tensor({{width // 8, 2, 2}, 1, N // width}, o.dtype)
  times_k:set(warpgroup.Field.ACCUMULATE, false)
  local P = {s = s, acc = acc, p = p, next = x.early and spare(p, x.scale),
    places = flash.by_rows(thr_s:partition_C(cute.make_identity_tensor {M, N})),
    scores = function(q, k)
      cute.gemm(times_k, s, Q(_, _, _, q.index), K(_, _, _, k.index), s)
      warpgroup.commit_group()
    end,
    weigh = function(v)
      cute.gemm(times_v, acc, p, V(_, _, _, v.index), acc)
      warpgroup.commit_group()
    end}
  local add = o.narrow and eight.complete or complete
  add(o, x, P)
  return P
end

-- Processes the blocks of keys that a tile of rows sees, from the last to the
-- first. `sees` is {first, last, from, to, at}, as for the function walk in
-- kernels/attention.lua. alter(masked) returns a function that changes the
-- scores of this tile (flash.altering). fetch(n), if given, loads the bits of
-- the block mask for block n.
local function mainloop(x, P, turn, state, sight, sees, alter, fetch)
  local first, last, from, to, at = table.unpack(sees, 1, 5)
  local k, v = x.k.state, x.v.state
  -- Returns the number of the ith visible block of keys, and whether a mask
  -- applies to it.
  local function block(i, masked)
    if not at then return i, masked end
    local n, partly = at(i, x.score or x.mask or to)
    if to then
      local beyond = cute.ge(n, to) | cute.lt(n, from)
      partly = partly and partly | beyond or beyond
    end
    return n, partly
  end
  -- Converts the scores of block n to their exponentials.
  local function take(change, n)
    if change then change(n) end
    local rose = state:rise(P.s)
    state:powers(P.s)
    return rose
  end
  local newest, edge = block(last - 1, to ~= nil)
  x.k.pipe:consumer_wait(k)
  turn.wait()
  warpgroup.fence()
  P.scores(x.q.state, k)
  turn.pass()
  if fetch then cute.when(edge, function() fetch(newest) end) end
  warpgroup.wait_group(0)
  x.k.pipe:consumer_release(k)
  k:advance()
  local rose = take(alter(edge), newest)
  -- Prepares the product of the last exponentials with V.
  local function settle()
    state:rescale(P.acc, rose)
    P.narrow(newest, state)
  end
  if not x.early then P.narrow(newest, state) end
  local function step(i, all_masked)
    local n, masked = block(i, all_masked)
    x.k.pipe:consumer_wait(k)
    turn.wait()
    warpgroup.fence()
    P.scores(x.q.state, k)
    if x.early then settle() end
    x.v.pipe:consumer_wait(v)
    warpgroup.fence()
    P.weigh(v)
    turn.pass()
    if fetch then cute.when(masked, function() fetch(n) end) end
    warpgroup.wait_group(1)
    local change = alter(masked)
    newest = n
    if all_masked or x.rises then
      rose = take(change, n)
    else
      rose = state:attempt(P.s, function() P.again(x.q.state, k) end, change, n,
                           x.near)
    end
    x.k.pipe:consumer_release(k)
    k:advance()
    warpgroup.wait_group(0)
    x.v.pipe:consumer_release(v)
    v:advance()
    if not x.early then settle() end
  end
  local i = last - 2
  -- Runs the main loop for blocks i down to `least`.
  local function run(least, masked)
    for _ in cute.range(cute.max(i + 1 - least, 0)) do
      step(i, masked)
      i = i - 1
    end
  end
  if not at and sight.right then run(cute.max(to, first), true) end
  run(not at and sight.left and cute.max(from, first) or first, false)
  if not at and sight.left then run(first, true) end
  if x.early then settle() end
  x.v.pipe:consumer_wait(v)
  warpgroup.fence()
  P.weigh(v)
  warpgroup.wait_group(0)
  x.v.pipe:consumer_release(v)
  v:advance()
end

-- Makes the function that stores a tile: O overwrites Q in shared memory, and
-- another thread copies O from there to global memory. Also stores the
-- logarithms of the rows' sums.
local function store(o, x, P, group)
  local atom = cute.make_copy_atom("SM90_U32x4_STSM_N", o.dtype)
  local r2s = cute.make_tiled_copy_C(atom, x.mma_o):get_slice(x.tid)
  local out = cute.make_fragment_like(P.acc, o.dtype)
  local from, to = r2s:retile(out), r2s:partition_D(x.o.smem)
  local meet = pipeline.NamedBarrier {num_threads = WARPGROUP,
    barrier_id = o.consumers + 1 + group}
  return function(state, row, S, lse)
    local logs = state:finish(P.acc)
    out:store(P.acc:load():to(o.dtype))
    -- Waits until the warpgroup has read its rows of Q, which the copy
    -- overwrites.
    meet:arrive_and_wait()
    cute.copy(atom, from, to(_, _, _, x.q.state.index))
    cute.arch.fence_view_async_shared()
    cute.arch.sync_warp()
    cute.when(cute.arch.lane_idx():eq(0), function()
      x.ready:arrive(x.q.state.index)
    end)
    cute.when(cute.eq(P.places(0, 0)[2], 0), function()
      for i = 0, state.rows - 1 do
        local at = row + P.places(i, 0)[1]
        cute.when(cute.lt(at, S), function() lse[at] = logs[i] end)
      end
    end)
  end
end

--- Computes O and LSE for each tile of rows that this block takes.
---@param x table {q: table, k: table, v: table, o: table, mma_s: any,
-- mma_o: any, ready: any, sees: function, tid: any, lse: any, scale: any,
-- sinks: any?, score: function?, mask: function?, near: boolean?,
-- rises: boolean?, more: table?, group: integer} lse: (B,H,S) or (H,rows);
-- score, mask, near: results of `modify`, see kernels/attention.lua; more: see
-- kernels/attention_sm90.lua; group: heads of Q that share one of K
---@param each fun(f: function) calls f(m, h, b) for each of these tiles
function consumer.run(o, x, each)
  local group = cute.arch.make_warp_uniform(cute.arch.warp_idx()) // 4
  for _, operand in ipairs {x.q, x.k, x.v} do
    operand.state = operand.pipe:make_consumer_state()
  end
  local P = products(o, x)
  local turn = turns(o, group)
  local leave = (o.narrow and eight.store or store)(o, x, P, group)
  each(function(m, h, b, part)
    local factors = o.narrow and eight.factors(o, x, P, h, b) or {}
    local scale = factors.scale or x.scale
    local sees, sight = {x.sees(m, h, b, part)}, part.sight
    local hidden = o.left or o.right or o.modify or not sight:whole(o.tile[2])
    local c = x.log2 and 1.0 or (x.score and 1.0 or scale) * flash.LOG2E
    local state = flash.softmax(2, c, hidden,
      x.sinks and x.sinks[h]:to(cute.f32), factors.lift, factors.most)
    state.rebase, state.pack = factors.rebase, P.pack
    local fetch, mask = nil, x.mask
    if x.more and x.more.bits and 128 % o.tile[2] == 0 then
      local row, M = m * o.tile[1], o.list[1]
      fetch, mask = flash.bits(x.more.bits(b, h, row // M, _, _, _), P.places,
                               row % M, o.tile[2], o.list[2])
    end
    local alter = flash.altering(o, {score = x.score, mask = mask, b = b,
      h = h, scale = x.score and scale, log2 = x.log2,
      by_rows = fetch ~= nil}, part.S, sight)
    P.acc:fill(0)
    x.q.pipe:consumer_wait(x.q.state)
    cute.when(cute.gt(sees[2], sees[1]), function()
      mainloop(x, P, turn, state, sight, sees, function(masked)
        local change = alter(P.s, P.places, m * o.tile[1], masked)
        return factors.before and factors.before(change) or change
      end, fetch)
    end)
    leave(state, m * o.tile[1], part.S, part.row
      and flash.section(x.lse(h, _), part.row, part.S) or x.lse(b, h, _),
      o.narrow and eight.rows(x, h, b, part), factors)
    x.q.state:advance()
  end)
  turn.tail()
end

return consumer
-- SPDX-License-Identifier: MIT
