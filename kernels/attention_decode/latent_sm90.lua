--- The kernel of kernels/attention_decode for latent heads (MLA) on wgmma: a
-- tile has 64 rows, one for each head of Q and each new query.
--
-- Two warpgroups share each tile of keys. Both compute all scores and their
-- exponentials, which stay in registers. Each warpgroup multiplies the
-- exponentials by its half of the columns of the values, so that the warpgroups
-- need not exchange data. Meanwhile cp.async loads the next tile of keys.
local cute = require "cute"
local flash = require "kernels.flash"
local part = require "kernels.attention_decode.part"

local _ = cute._
local warpgroup = cute.nvgpu.warpgroup

local WARPGROUP = 128

local latent = {}

-- Returns the layout of tiles in shared memory, (rows,D,PIPE). It consists of
-- blocks with 128 bytes of each row, one block after the other.
local function stages(dtype, rows, D, count)
  return cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128", dtype),
                            {rows, D, count}, {0, 1, 2})
end

-- Makes the products of this thread's warpgroup: scores(stage) issues s = Q
-- K^T, and weigh(stage) issues acc += p V for the warpgroup's columns of V.
local function products(o, dtype, thread, group, sQ, sK)
  local M, N, half = o.tile[1], o.tile[2], o.value // 2
  local times_k = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(dtype, cute.f32,
    {M, N, 16}, "SMEM", "K", "K"))
  local times_v = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(dtype, cute.f32,
    {M, half, 16}, "RMEM", "K", "MN"))
  local thr_s, thr_o = times_k:get_slice(thread), times_v:get_slice(thread)
  local Q = times_k:make_fragment_A(thr_s:partition_A(sQ))
  local K = times_k:make_fragment_B(thr_s:partition_B(sK))
  local s = cute.make_rmem_tensor(times_k:partition_shape_C {M, N}, cute.f32)
  local acc = cute.make_rmem_tensor(times_v:partition_shape_C {M, half},
                                    cute.f32)
  local p = cute.make_rmem_tensor({{2, 2, 2}, 1, N // 16}, dtype)
  -- The registers of s, in the order of the operand p.
  local powers = cute.make_tensor(s.iterator, p.layout)
  -- A view of the warpgroup's columns of V, which are in sK. The iterator
  -- contains the swizzle.
  local turned = cute.make_layout({{64, half // 64}, N}, {{1, 64 * N}, 64})
  times_k:set(warpgroup.Field.ACCUMULATE, false)
  local function places(thr, columns)
    return flash.by_rows(thr:partition_C(cute.make_identity_tensor {M,
                                                                    columns}))
  end
  return {s = s, acc = acc, places = places(thr_s, N),
    out = places(thr_o, half),
    scores = function(stage)
      warpgroup.fence()
      cute.gemm(times_k, s, Q(_, _, _, 0), K(_, _, _, stage), s)
      warpgroup.commit_group()
      warpgroup.wait_group(0)
    end,
    weigh = function(stage)
      p:store(powers:load():to(dtype))
      local V = times_v:make_fragment_B(thr_o:partition_B(cute.make_tensor(
        sK.iterator + (stage * (N * o.head) + group * (N * half)), turned)))
      warpgroup.fence()
      cute.gemm(times_v, acc, p, V, acc)
      warpgroup.commit_group()
      warpgroup.wait_group(0)
    end}
end

--- The kernel. It has the arguments of part.kernel, and does not use V.
function latent.kernel(o, mQ, mK, _V, _O, _LSE, mParts, mLogs, scale, lengths,
                       cache, ...)
  part.begin(o)
  local N, more, dtype = o.tile[2], cache or {}, mQ.element_type
  local pages = more.pages
  local e = part.extents(o, mQ, mK, pages)
  mParts, mLogs = cute.undefined_ok(mParts), cute.undefined_ok(mLogs)
  local work = part.share(o, e, lengths, mParts)

  local tid = cute.arch.thread_idx()
  local group = cute.arch.make_warp_uniform(cute.arch.warp_idx()) // 4
  local team = {tid = tid, threads = 2 * WARPGROUP, dtype = dtype}
  local sK = cute.make_smem_tensor(dtype, stages(dtype, N, o.head, o.stages),
                                   1024)
  local sQ = cute.make_smem_tensor(dtype, stages(dtype, o.tile[1], o.head, 1),
                                   1024)
  local P = products(o, dtype, tid % WARPGROUP, group, sQ, sK)
  local f, done = part.functions(o, ...)
  -- Makes shared memory that each thread has written visible to the wgmmas of
  -- all threads.
  local function meet()
    cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()
  end

  local function one(b, row, first, last, place)
    local T = work:keys(b)
    local at = {b = b, g = 0, m = row, R = e.R, S = e.S, T = T}
    -- After this barrier, no warp still reads sQ and sK for the previous part.
    cute.arch.sync_threads()
    if more.k and e.count == 1 then
      part.append(o, more.k(b, _, 0, _), e.S, T, first * N, last * N,
                  part.row_of(mK, b, 0, pages), tid, 1.0)
      cute.arch.sync_threads()
    end
    local load = part.loader(o, team, mK, sK, at, pages)
    P.acc:fill(0)
    local state = flash.softmax(2, (f and 1.0 or scale) * flash.LOG2E, true)
    local per_page = pages and cute.size(mK, 1) // N
    part.walk(o, first, last, load, function(block)
      return pages and pages[{b, block // per_page}] or b
    end, meet, function()
      part.load_rows(o, team, mQ, sQ, at)
    end, function(block, stage)
      P.scores(stage)
      part.alter(o, f, P.s, P.places, block, scale, at, more.tree)
      local rose = state:rise(P.s)
      state:powers(P.s)
      state:rescale(P.acc, rose)
      P.weigh(stage)
    end)
    part.store(o, P.out, state:finish(P.acc), P.acc, mParts, mLogs, place, at,
               nil, cute.eq(group, 0), function(d)
        return group * (o.value // 2) + d
      end)
  end
  part.each(work, one)
  if done then done() end
end

return latent
-- SPDX-License-Identifier: MIT
