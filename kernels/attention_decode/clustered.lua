--- The kernel of kernels/attention_decode that needs no second launch. The
-- blocks of a cluster divide the keys of one tile of rows of Q, and exchange
-- their results through shared memory.
--
-- Each warp of the cluster works separately and processes every nth tile of
-- keys, where n is the number of the cluster's warps. Each block combines the
-- results of all warps for D / (blocks of the cluster) columns of O.
local cute = require "cute"
local flash = require "kernels.flash"
local part = require "kernels.attention_decode.part"
local turned = require "kernels.attention_decode.turned"
local tiles = require "cute.tiles"
local _ = cute._

local clustered = {}

-- The number of elements that a thread copies at once.
local EACH = 8

-- Returns three functions, each for this thread's share of the rows of Q.
-- early() reads data that no launch writes, and sets the rows of sQ (rows,D)
-- after the last one to zero. load() requests the elements of Q. store() stores
-- them to sQ.
local function queries(o, mQ, sQ, at, tid, angles)
  local each, threads, R = o.head // EACH, 32 * o.warps, at.R
  local function pieces(first, count, f)
    for i = 0, tiles.count(count, threads) - 1 do
      local n = first + tid + i * threads
      local function one() f(n // each, n % each, i) end
      if (i + 1) * threads <= count then one()
      else cute.when(cute.lt(n, first + count), one) end
    end
  end
  local function put(row, place, x)
    cute.autovec_copy(x, cute.local_tile(sQ(row, _), {EACH}, {place}))
  end
  local list = {}
  for i = 0, tiles.count(R * each, threads) - 1 do
    list[i] = turned.piece(o.head, mQ.element_type, angles)
  end
  return function()
    local zero = cute.make_rmem_tensor({EACH}, mQ.element_type)
    zero:fill(0)
    pieces(R * each, (o.tile[1] - R) * each, function(row, place)
      put(row, place, zero)
    end)
    pieces(0, R * each, function(row, place, i)
      list[i].early(at.T - at.S + row // o.group, place)
    end)
  end, function()
    pieces(0, R * each, function(row, place, i)
      list[i].load(mQ(at.b, row // o.group, at.g * o.group + row % o.group, _),
                   place)
    end)
  end, function()
    pieces(0, R * each, function(row, place, i)
      put(row, place, list[i].get(place))
    end)
  end
end

-- Appends the new keys and values to the cache, and to this warp's tile `top`
-- in stage `stage` of sK and sV. If tile `top` has no new keys, does nothing.
local function append(o, mK, mV, sK, sV, at, top, stage, lane, cache, angles)
  local first, BN = at.T - at.S, o.tile[2]
  local list = {}
  for i, x in ipairs {{cache.k, mK, sK}, {cache.v, mV, sV}} do
    list[i] = {x = x[1](at.b, _, at.g, _), s = x[3],
      row = part.row_of(x[2], at.b, at.g, cache.pages),
      piece = turned.piece(o.head, x[1].element_type, i == 1 and angles or nil)}
  end
  cute.when(cute.gt((top + 1) * BN, first) & cute.lt(top * BN, at.T), function()
    for j = 0, at.S - 1 do
      local key = first + j
      local mine = cute.ge(key, cute.max(top * BN, 0))
        & cute.lt(key, (top + 1) * BN) & cute.lt(lane, o.head // EACH)
      cute.when(mine, function()
        for _i, l in ipairs(list) do
          l.piece.early(key, lane)
          l.piece.load(l.x(j, _), lane)
        end
      end)
      if j == 0 then cute.arch.cp_async_wait_group(o.stages - 2) end
      cute.arch.sync_warp()
      cute.when(mine, function()
        for _i, l in ipairs(list) do
          local held = l.piece.get(lane)
          cute.autovec_copy(held, cute.local_tile(l.s(key - top * BN, _, stage),
                                                  {EACH}, {lane}))
          cute.autovec_copy(held, cute.local_tile(l.row(key), {EACH}, {lane}))
        end
      end)
    end
  end)
end

-- Sends this warp's results to the blocks of the cluster. Each block receives
-- the sums of its columns, as ((width,parts,rows)), and the logarithms, as
-- ((parts,rows)).
local function send(o, acc, logs, places, lane, index, R, sums, logs_of)
  local rows, width = flash.by_rows(acc), o.head // o.cluster
  local pair = cute.make_rmem_tensor({2}, cute.f32)
  local function there(t, to, at)
    return cute.arch.map_dsmem_ptr(t.iterator + t.layout(at), to)
  end
  for i = 0, (R > 8 and 2 or 1) - 1 do
    local row = places(i, 0)[1]
    cute.when(cute.lt(row, R), function()
      for j = 0, o.head // 8 - 1 do
        pair[0], pair[1] = rows(i, 2 * j), rows(i, 2 * j + 1)
        local column = 8 * j % width + 2 * (lane % 4)
        cute.autovec_copy(pair, cute.make_tensor(
          there(sums, 8 * j // width, {column, index, row}),
          cute.make_layout {2}))
      end
      for first = 0, o.cluster - 1, 4 do
        local to = first + lane % 4
        local function one()
          cute.make_tensor(there(logs_of, to, {index, row}),
                           cute.make_layout {1})[0] = logs[i]
        end
        if first + 4 <= o.cluster then one()
        else cute.when(cute.lt(to, o.cluster), one) end
      end
    end)
  end
end

-- Combines the results that this block has received, and stores this block's
-- columns of O. The first block stores LSE.
local function combine(o, mO, mL, at, rank, warp, lane, parts, sums, logs)
  local width = o.head // o.cluster
  -- The number of columns of O that a warp combines at once.
  local across = math.min(width, 32)
  local groups, group = 32 // across, lane // across
  for row in cute.range(warp, at.R, o.warps) do
    local function reduce(init, f, combined)
      local x = init
      for i = 0, parts - 1, 32 do
        local n = cute.min(lane + i, parts - 1)
        local log = logs[{n, row}]
        if i + 32 > parts then
          log = cute.where(cute.lt(lane + i, parts), log, -math.huge)
        end
        x = f(x, log)
      end
      return cute.arch.warp_reduction(x, combined)
    end
    local weight, sum, lse = part.weights(reduce)
    local some = cute.ne(sum, 0)  -- true for NaN, too
    local h, s = at.g * o.group + row % o.group, row // o.group
    for first = 0, width - 1, across do
      local column, x = first + lane % across, 0.0
      for i = 0, parts - 1, groups do
        local n = i + group
        x = x + sums[{column, n, row}] * weight(logs[{n, row}])
      end
      local step = across
      while step < 32 do
        x = x + cute.arch.shuffle_sync_bfly(x, step)
        step = 2 * step
      end
      cute.when(cute.eq(group, 0), function()
        mO[{at.b, s, h, rank * width + column}] =
          (x * cute.where(some, 1 / sum, 0.0)):to(mO.element_type)
      end)
    end
    cute.when(cute.eq(lane, 0) & cute.eq(rank, 0), function()
      mL[{at.b, h, s}] = lse(some)
    end)
  end
end

--- The function of the kernel. Its arguments are those of part.kernel.
function clustered.kernel(o, mQ, mK, mV, mO, mL, _parts, _logs, scale, lengths,
                          cache, ...)
  local arch, more = cute.arch, cache or {}
  local tid = (arch.thread_idx())
  local lane, warp = arch.lane_idx(), arch.warp_idx()
  local rank, job = arch.block_idx()
  arch.cluster_arrive_relaxed()
  if not o.early then part.begin(o) end
  flash.check("attention_decode", o.head, {Q = mQ, K = mK, V = mV}, o.group)
  local BM, BN, D, pages = o.tile[1], o.tile[2], o.head, more.pages
  local e = part.extents(o, mQ, mK, pages)
  local parts = o.cluster * o.warps
  -- The index of this warp's results among the results of the cluster.
  local index = rank * o.warps + warp
  local b, g = job // e.G, job % e.G
  local T = lengths and lengths[b] or e.T
  local at = {b = b, g = g, m = 0, R = e.R, S = e.S, T = T}

  local team = flash.team(mQ.element_type, 1, nil, nil, lane)
  local sK = team:tile(BN, D, o.stages * o.warps)
  local sV = team:tile(BN, D, o.stages * o.warps)
  local scores, weigh = team:times(sK), team:times(flash.turned(sV), true)
  local sQ = team:tile(BM, D, 1)
  local block_of_Q, hold = team:left(sQ(_, _, 0), o.held)
  local sums = cute.make_smem_tensor(cute.f32, cute.make_layout(
    {D // o.cluster, parts, e.R}), 16)
  local all_logs = cute.make_smem_tensor(cute.f32, cute.make_layout(
    {parts, e.R}), 16)
  flash.check_scale(scale)
  local f, done = part.functions(o, ...)
  local angles = turned.angles(more)

  local n = tiles.count(T, BN)
  local count = cute.max(tiles.count(n - index, parts), 0)
  local function tile(i) return index + i * parts end
  -- Describes the keys in the cache before the new keys are appended.
  local old = {b = b, g = g, T = more.k and cute.max(T - e.S, 0) or T}
  local load_K = part.loader(o, team, mK, sK, old, pages)
  local load_V = part.loader(o, team, mV, sV, old, pages)
  local acc = team:zeros(BM, D)                               -- (MMA,M,N)
  local state = flash.softmax(2 * cute.size(acc, 1),
                              (f and 1.0 or scale) * flash.LOG2E, true)
  local per_page = pages and cute.size(mK, 1) // BN
  local early, load_Q, store_Q = queries(o, mQ, sQ(_, _, 0), at, tid, angles)
  local first = warp * o.stages
  part.walk(o, 0, count, function(i, page, stage, inner)
    local function load()
      load_K(tile(i), page, first + stage, inner)
      load_V(tile(i), page, first + stage, inner)
    end
    if inner then load() else cute.when(cute.gt(count, 0), load) end
  end, function(i)
    local t = cute.max(cute.min(tile(i), n - 1), 0)
    return pages and pages[{b, t // per_page}] or b
  end, arch.sync_warp, function()
    early()
    if o.early then part.begin(o) end
    load_Q()
    if more.k then
      append(o, mK, mV, sK, sV, at, tile(count - 1), first, lane, more, angles)
    end
    store_Q()
    arch.sync_threads()
    hold()
  end, function(i, stage)
    local s = team:zeros(BM, BN)
    scores(first + stage, s, block_of_Q)
    part.alter(o, f, s, team:places(BM, BN), tile(i), scale, at, more.tree)
    weigh(first + stage, acc, state:take(s, acc, team.dtype))
  end)
  local logs = state:finish(acc)
  -- Waits until all blocks of the cluster run, because `send` writes to their
  -- shared memory.
  arch.cluster_wait()
  send(o, acc, logs, team:places(BM, D), lane, index, e.R, sums, all_logs)
  arch.cluster_arrive()
  arch.cluster_wait()
  combine(o, mO, mL, at, rank, warp, lane, parts, sums, all_logs)
  if done then done() end
end

return clustered
-- SPDX-License-Identifier: MIT
