--- The kernel of kernels/attention_decode for latent heads (MLA): all heads of
-- Q share one head of keys, whose first `value` elements are the values. A tile
-- of keys is loaded once, for both products.
--
-- The warps of a block are divided by rows and by columns. Each warp computes
-- the scores of its 16 rows and its keys. Warps exchange the rows' largest
-- scores and the exponentials of the scores through shared memory. Each warp
-- then multiplies all exponentials of its rows by its columns of the values.
local cute = require "cute"
local flash = require "kernels.flash"
local part = require "kernels.attention_decode.part"
local _ = cute._

local latent = {}

--- Returns how many warps divide the rows of a tile, and how many divide its
-- columns.
function latent.warps(o)
  local M = o.tile[1]
  return M // 16, M == 64 and 2 or 4
end

-- Returns a function (values, combine) for the warps that share rows. It
-- combines values[i], a thread's value for row i, over the lanes of a quad and
-- over these warps.
local function exchange(o, places, rows)
  local _, columns = latent.warps(o)
  local column = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    // (o.tile[1] // 16)
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(
    {o.tile[1], columns}, {columns, 1}), 16)
  local first = cute.eq(cute.arch.lane_idx() % 4, 0)
  return function(values, combine)
    for i = 0, rows - 1 do values[i] = flash.quad(combine, values[i]) end
    cute.when(first, function()
      for i = 0, rows - 1 do s[{places(i, 0)[1], column}] = values[i] end
    end)
    cute.arch.sync_threads()
    for i = 0, rows - 1 do
      local x
      for j = 0, columns - 1 do
        local y = s(places(i, 0)[1], j)
        x = x and combine(x, y) or y
      end
      values[i] = x
    end
  end, column
end

-- Makes the object for the online softmax of a thread's rows. take(s, acc)
-- replaces the scores s by their exponentials, and rescales acc, the earlier
-- exponentials times values. finish(acc) divides acc by the rows' sums of
-- exponentials, and returns the logarithms of these sums.
local function softmax(rows, c, share)
  local top = cute.make_rmem_tensor({rows}, cute.f32)
  local sum = cute.make_rmem_tensor({rows}, cute.f32)
  top:fill(-math.huge)
  sum:fill(0)
  local function scale(t, i, by)
    for j = 0, cute.size(t, 1) - 1 do t[{i, j}] = t(i, j) * by end
  end
  local function take(s, acc)
    local sr, ar, best = flash.by_rows(s), flash.by_rows(acc), {}
    for i = 0, rows - 1 do
      best[i] = sr(i, 0)
      for j = 1, cute.size(sr, 1) - 1 do
        best[i] = cute.max(best[i], sr(i, j))
      end
    end
    share(best, cute.max)
    local fixes, some = {}, nil
    for i = 0, rows - 1 do
      local now = cute.max(top[i], best[i])
      local base = cute.where(cute.eq(now, -math.huge), 0.0, now) * c
      local fix = flash.exp2(cute.fma(top[i], c, -base))
      top[i], sum[i] = now, sum[i] * fix
      for j = 0, cute.size(sr, 1) - 1 do
        local x = flash.exp2(cute.fma(sr(i, j), c, -base))
        sr[{i, j}], sum[i] = x, sum[i] + x
      end
      fixes[i] = fix
      local grows = cute.ne(fix, 1.0)
      some = some and some | grows or grows
    end
    cute.when(cute.arch.vote_any_sync(some), function()
      for i = 0, rows - 1 do scale(ar, i, fixes[i]) end
    end)
  end
  return take, function(acc)
    local ar, all, logs = flash.by_rows(acc), {}, {}
    for i = 0, rows - 1 do all[i] = sum[i] end
    share(all, cute.add)
    for i = 0, rows - 1 do
      local some = cute.ne(all[i], 0)  -- true for NaN, too
      scale(ar, i, cute.where(some, 1 / all[i], 0.0))
      logs[i] = cute.where(some, cute.fma(top[i], c, cute.log2(all[i]))
        / flash.LOG2E, -math.huge)
    end
    return logs
  end
end

-- Returns a view of the tiles of keys s (BN,D,PIPE) as tiles of values
-- (value,BN,PIPE). A key's first elements are its value.
local function values_of(o, s)
  local rows, D, stages = cute.size(s, 0), cute.size(s, 1), cute.size(s, 2)
  return cute.composition(s, cute.make_layout({o.value, rows, stages},
                                              {rows, 1, rows * D}))
end

--- The kernel. It has the arguments of part.kernel, and does not use V.
function latent.kernel(o, mQ, mK, _V, _O, _LSE, mParts, mLogs, scale, lengths,
                       cache, ...)
  part.begin(o)
  local BM, BN, more, dtype = o.tile[1], o.tile[2], cache or {}, mQ.element_type
  local pages = more.pages
  local e = part.extents(o, mQ, mK, pages)
  mParts, mLogs = cute.undefined_ok(mParts), cute.undefined_ok(mLogs)
  local work = part.share(o, e, lengths, mParts)
  local rows, columns = latent.warps(o)
  local wide = BN // columns > 8

  local team = flash.team(dtype, rows, columns, wide and 16 or 8)
  local out = flash.team(dtype, rows, columns)
  local sK = team:tile(BN, o.head, o.stages)                  -- (BN,D,PIPE)
  local sQ, sP = team:tile(BM, o.head, 1), team:tile(BM, BN, 1)
  local block_of_Q, block_of_P = team:left(sQ(_, _, 0)), out:left(sP(_, _, 0))
  local right = flash.team(dtype, rows, columns, wide and 16 or 8)
  if not wide then
    right.ldsm = cute.make_copy_atom("SM75_U32x2_LDSM_N", dtype)
  end
  local times_K = right:times(sK)
  local times_V = out:times(values_of(o, sK), true)
  local places = team:places(BM, BN)
  local share, column = exchange(o, places, 2)
  local pair = cute.make_copy_atom("UniversalCopy", dtype, 32)
  local r2s = cute.make_tiled_copy_C(pair, team.mma):get_slice(team.tid)
  local to = r2s:partition_D(sP(_, _, 0))
  flash.check_scale(scale)
  local f, done = part.functions(o, ...)
  assert(cute.size(places, 0) == 2 and rows * 16 == BM)

  local function one(b, row, first, last, place)
    local T = work:keys(b)
    local at = {b = b, g = 0, m = row, R = e.R, S = e.S, T = T}
    -- finish() has synchronized the warps, so no warp still reads sQ and sK for
    -- the previous part.
    if more.k and e.count == 1 then
      part.append(o, more.k(b, _, 0, _), e.S, T, first * BN, last * BN,
                  part.row_of(mK, b, 0, pages), team.tid, 1.0)
      cute.arch.sync_threads()
    end
    local load = part.loader(o, team, mK, sK, at, pages)
    local acc = out:zeros(BM, o.value)
    local take, finish = softmax(2, (f and 1.0 or scale) * flash.LOG2E, share)
    local per_page = pages and cute.size(mK, 1) // BN
    part.walk(o, first, last, load, function(block)
      return pages and pages[{b, block // per_page}] or b
    end, cute.arch.sync_threads, function()
      part.load_rows(o, team, mQ, sQ, at)
    end, function(block, stage)
      local s = team:zeros(BM, BN)
      times_K(stage, s, block_of_Q)
      part.alter(o, f, s, places, block, scale, at, more.tree)
      take(s, acc)
      local p = cute.make_fragment_like(s, dtype)
      p:store(s:load():to(dtype))
      cute.copy(pair, r2s:retile(p), to)
      cute.arch.sync_threads()
      times_V(stage, acc, block_of_P)
    end)
    part.store(o, out:places(BM, o.value), finish(acc), acc, mParts, mLogs,
               place, at, nil, cute.eq(column, 0))
  end
  part.each(work, one)
  if done then done() end
end

return latent
-- SPDX-License-Identifier: MIT
