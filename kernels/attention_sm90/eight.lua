--- Operands of e4m3 for kernels/attention_sm90.
--
-- A wgmma of 8-bit elements reads V with contiguous keys, but memory has
-- contiguous rows of D elements. Two warps of the producer transpose each tile
-- of V in shared memory. ldmatrix treats two adjacent elements of a key as one
-- element of 16 bits. Its transposed registers hold two elements of D for each
-- key. Byte permutations separate these elements, and stmatrix stores four keys
-- of each.
--
-- The transposition changes the order of keys and of elements of D. Within 32
-- keys, column 16 h + 4 t + j of a transposed tile is key 16 h + 8 (j // 2) + 2
-- t + j % 2. These are the columns whose scores a lane holds, so powers become
-- a left operand without an exchange between lanes. Within 16 elements of D,
-- row 8 e + g of a transposed tile is element 2 g + e. A lane thus holds four
-- adjacent elements of O.
local cute = require "cute"
local flash = require "kernels.flash"

local _ = cute._
local warpgroup = cute.nvgpu.warpgroup

local eight = {}

--- The number of warps that transpose V.
eight.WARPS = 2

--- Returns two MMAs. The first computes the scores from Q and K in shared
-- memory, the second O from powers in registers and transposed V.
function eight.mmas(o)
  local groups = cute.make_layout {o.consumers, 1, 1}
  local function mma(N, from)
    return cute.make_tiled_mma(warpgroup.MmaF8Op(o.dtype, o.dtype, cute.f32,
      {64, N, 32}, from), groups)
  end
  return mma(o.tile[2], "SMEM"), mma(o.value, "RMEM")
end

-- Returns a function (from, to) with which a warp transposes its part of a tile
-- of V. It reads stage `from` of v (N,D/2,PIPE), which holds pairs of elements
-- of D. It writes stage `to` of vt (D,N/2,PIPE), which holds pairs of keys.
-- early: whether the function loads 32 keys before it stores the previous 32,
-- which takes 8 more registers.
local function transposer(v, vt, part, early)
  local mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", {1, 1, 1},
                                  {16, 16, 16})
  local ldsm = cute.make_copy_atom("SM75_U16x8_LDSM_T", cute.f16)
  local stsm = cute.make_copy_atom("SM90_U32x4_STSM_N", cute.f16)
  local lane = cute.arch.lane_idx()
  local D, N = cute.size(vt, 0) // eight.WARPS, cute.size(v, 0)
  local src = cute.make_tiled_copy_B(ldsm, mma):get_slice(lane):partition_S(
    cute.local_tile(flash.turned(v), {D // 2, N, cute.size(v, 2)},
                    {part, 0, 0}))                 -- (CPY,D/32,N/16,PIPE)
  local dst = cute.make_tiled_copy_C(stsm, mma):get_slice(lane):partition_D(
    cute.local_tile(vt, {D, N // 2, cute.size(vt, 2)}, {part, 0, 0}))
                                                   -- (CPY,D/16,N/32,PIPE)
  local function registers()
    local r = cute.make_rmem_tensor({8}, cute.f16)
    return cute.make_tensor(r.iterator, cute.make_layout {{8, 1}}),
      cute.recast_tensor(r, cute.u32)
  end
  local across = D // 32
  -- Loads part n of a tile, which has 32 elements of D of 32 keys. Returns two
  -- sets of registers: [0] for the first 16 keys, [1] for the other 16 keys.
  -- Each set has two words for 16 elements of D.
  local function load(n, from)
    local given = {}
    for h = 0, 1 do
      local r, words = registers()
      cute.copy(ldsm, src(_, n % across, n // across * 2 + h, from), r)
      given[h] = words
    end
    return given
  end
  local function store(n, to, given)
    for half = 0, 1 do
      local r, words = registers()
      for h = 0, 1 do
        local low, high = given[h][2 * half], given[h][2 * half + 1]
        words[2 * h] = cute.arch.prmt(low, high, 0x6420)
        words[2 * h + 1] = cute.arch.prmt(low, high, 0x7531)
      end
      cute.copy(stsm, r, dst(_, n % across * 2 + half, n // across, to))
    end
  end
  return function(from, to)
    local parts = across * (N // 32)
    local given = early and load(0, from)
    for n = 0, parts - 1 do
      local next = early and n + 1 < parts and load(n + 1, from)
      store(n, to, given or load(n, from))
      given = next
    end
  end
end

--- Transposes the tiles of V, in the order in which they are loaded.
---@param part any 0 or 1, the part of the tiles that this warp transposes
---@param each fun(f: function) calls f(m, h, b, part) for each tile of rows
---@param sees function see producer.load
function eight.transpose(o, v, vt, part, each, sees)
  local copy = transposer(v.smem, cute.recast_tensor(vt.smem, cute.f16), part,
                          o.consumers < 3)
  local from, to = v.pipe:make_consumer_state(), vt.pipe:make_producer_state()
  each(function(...)
    local first, last = sees(...)
    for _ in cute.range(cute.max(last - first, 0)) do
      v.pipe:consumer_wait(from)
      vt.pipe:producer_acquire(to)
      copy(from.index, to.index)
      cute.arch.fence_view_async_shared()
      cute.arch.sync_warp()
      vt.pipe:producer_commit(to)
      v.pipe:consumer_release(from)
      from:advance()
      to:advance()
    end
  end)
end

-- Returns a function (q, k) that recomputes the scores s of the warp's rows
-- with mma.sync. q and k are the pipeline states of the tiles of Q and K. As
-- for V, ldmatrix treats two adjacent elements as one element of 16 bits.
local function scores_again(o, x, s)
  local M, N = o.tile[1], o.tile[2]
  local warps = flash.team(cute.f16, 4 * o.consumers)
  local mma = cute.make_tiled_mma("SM89_16x8x32_F32E4M3E4M3F32_TN",
    {4 * o.consumers, 1, 1}, {64 * o.consumers, 16, 32})
  local thr_a = cute.make_tiled_copy_A(warps.ldsm, warps.mma):get_slice(x.tid)
  local thr_b = cute.make_tiled_copy_B(warps.ldsm, warps.mma):get_slice(x.tid)
  local Q = thr_a:partition_S(cute.recast_tensor(x.q.smem, cute.f16))
  local K = thr_b:partition_S(cute.recast_tensor(x.k.smem, cute.f16))
  local a = warps.thr:partition_fragment_A(cute.make_identity_tensor {M, 16})
  local b = warps.thr:partition_fragment_B(cute.make_identity_tensor {16, 16})
  local part = warps.mma:partition_shape_C {M, 16}
  return function(q, k)
    s:fill(0)
    for step in cute.range(0, o.head // 32, 1, {unroll = 1}) do
      cute.copy(warps.ldsm, Q(_, _, step, q.index), thr_a:retile(a)(_, _, 0))
      for n = 0, N // 16 - 1 do
        local acc = cute.make_tensor(s.iterator + 8 * n, part)
        cute.copy(warps.ldsm, K(_, n, step, k.index),
                  thr_b:retile(b)(_, 0, 0))
        cute.gemm(mma, acc, cute.recast_tensor(a, o.dtype),
                  cute.recast_tensor(b, o.dtype), acc)
      end
    end
    cute.arch.fence_view_async_shared()
    cute.arch.sync_warp()
  end
end

--- Adds the functions again() and narrow() to products P, like `complete` of
-- kernels/attention_sm90/consumer.lua.
function eight.complete(o, x, P)
  local p, n32 = P.p, o.tile[2] // 32
  -- The registers of s, in the order of the operand p.
  local powers = cute.make_tensor(P.s.iterator, cute.make_layout(
    {{{2, 2}, 2, 2}, 1, n32}, {{{1, 4}, 2, 8}, 0, 16}))
  P.again = scores_again(o, x, P.s)
  function P.narrow(n, state)
    if state.rebase then state.rebase(n) end
    for k = 0, n32 - 1 do
      p(_, _, k):store(powers(_, _, k):load():reshape({{4, 2, 2}, 1}):to(
        o.dtype))
    end
  end
end

-- The largest value of e4m3. If a sum of powers (exponentials of scores) does
-- not exceed it, each of the powers fits into e4m3.
local MOST = 448.0

-- Exponents of powers. When a row's base (flash.softmax) changes, the row's
-- largest score gets the power 2^LIFT or 2^LOW_LIFT. The smallest normal e4m3
-- is 2^-6. LIFT is used if each block is searched for its largest score: powers
-- may then rise by 2^3. Otherwise LOW_LIFT is used: the sum of a thread's
-- powers in a block is at most MOST even if all scores are equal.
local LIFT, LOW_LIFT = 5.0, 2.0

--- Returns a table of the factors of a tile of rows of head h in batch b, from
-- the operands' scales in x.more. scale: the factor of the scores. of_v():
-- returns the factor of O. before(change): returns a function that applies the
-- scale of block n of keys and then `change` (from flash.altering), if given.
-- rebase(n), if present: rescales the accumulators of O to the scale of block n
-- of V. lift, most: see flash.softmax.
function eight.factors(o, x, P, h, b)
  local q, k, v = x.more.q_scale, x.more.k_scale, x.more.v_scale
  local g, scale = h // x.group, x.scale
  local lift = x.rises and LIFT or LOW_LIFT
  if q then scale = scale * q[h] end
  -- Returns the scale of block n of keys from the tensor of scales t.
  local function at(t, n)
    return t(b, cute.min(n * o.tile[2] // 128, cute.size(t, 1) - 1), g)
  end
  if not o.scaled then
    if k then scale = scale * k[g] end
    return {scale = scale, lift = lift, most = MOST,
            of_v = function() return v and v[g] end}
  end
  local unit = cute.make_rmem_tensor({1}, cute.f32)
  unit:fill(1)
  local function rebase(n)
    local new = at(v, n)
    local ratio = unit[0] / new
    unit[0] = new
    cute.when(cute.ne(ratio, 1), function()
      for i = 0, cute.size(P.acc) - 1 do P.acc[i] = P.acc[i] * ratio end
    end)
  end
  return {scale = scale, lift = lift, most = MOST,
    of_v = function() return unit[0] end, rebase = v and rebase,
    before = k and function(change)
      return function(n, near, take)
        local factor = at(k, n)
        for i = 0, cute.size(P.s) - 1 do P.s[i] = P.s[i] * factor end
        if change then
          change(n, near, take)
        elseif take then
          flash.each(P.s, take)
        end
      end
    end}
end

--- Returns the rows of O (S,D) of head h of a sequence.
function eight.rows(x, h, b, part)
  if not part.row then return x.more.O(b, _, h, _) end
  return flash.section(x.more.O(_, h, _), part.row, part.S)
end

--- Returns a function that stores a tile of O. Each thread stores four adjacent
-- elements at a time. The function also stores the logarithms of the rows' sums
-- to lse.
---@return function (state, row, S, lse, O, factors): O (S,D); factors: from
-- eight.factors
function eight.store(o, x, P)
  local out = cute.make_rmem_tensor({4}, o.out)
  local lane = cute.arch.lane_idx()
  return function(state, row, S, lse, O, factors)
    local logs = state:finish(P.acc, factors.of_v())
    x.q.pipe:consumer_release(x.q.state)
    local all = flash.by_rows(P.acc)
    for i = 0, state.rows - 1 do
      local at = row + P.places(i, 0)[1]
      cute.when(cute.lt(at, S), function()
        cute.when(cute.eq(lane % 4, 0), function() lse[at] = logs[i] end)
        for n = 0, o.value // 16 - 1 do
          for j = 0, 3 do
            out[j] = all(i, 4 * n + 2 * (j % 2) + j // 2):to(o.out)
          end
          cute.autovec_copy(out, cute.local_tile(O(at, _), {4},
                                                 {4 * n + lane % 4}))
        end
      end)
    end
  end
end

return eight
-- SPDX-License-Identifier: MIT
