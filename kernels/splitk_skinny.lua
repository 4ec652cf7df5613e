--- Divides K among the warps of a block, and among blocks (z), for products
-- with few rows. First, the partial sums of warps are added in shared memory.
-- Then the partial sums of blocks are added. If the blocks form a cluster, its
-- first block adds them in its shared memory. Otherwise, the last block to
-- arrive adds them in global memory (kernels.splitk_reduce).
--
-- A plan describes the division. Its fields:
-- n, m: the numbers of rows of B and of A.
-- tile: {rows of B, rows of A}.
-- warps: {along N, along K}.
-- block: the number of threads of a block.
-- splits: the number of blocks that share K.
-- cluster: whether these blocks form a cluster.
-- MT, NT: the numbers of MMAs of a warp.
-- turned: whether D^T = B A^T is computed.
-- epilogue: the epilogue's function.
-- gated: whether the first half of B's rows are gates of the second half. The
--   same holds for the rows of a tile. A gated plan is turned; its MT is even.
local rules = require "kernels.operand_rules"
local core = require "cute.core"
local cute = require "cute"
local splitk_reduce = require "kernels.splitk_reduce"
local sign = require "cute.lang.signature"
local tiles = require "cute.tiles"
local _ = cute._

local splitk_skinny = {}

local CLUSTER = 8  -- the number of blocks in a cluster that every device
                   -- supports
-- All MMAs of this size have accumulators with the same layout.
local ATOM = "SM80_16x8x16_F32F16F16F32_TN"

---------------------------------------------------------------------------
-- Plans
---------------------------------------------------------------------------

-- Divides the accumulators of MT x NT MMAs among `warps` warps. Returns the
-- numbers of warps along M and along N.
local function shares(warps, MT, NT)
  local wm = core.gcd(MT, warps)
  return wm, core.gcd(NT, warps // wm)
end

--- Adds fields to plan p that follow from its other fields. wm and wn are the
-- numbers of warps along the two modes of D that hold the final sums. `out` is
-- the tiled MMA of these warps. `meets` tells whether blocks reduce in global
-- memory. `columns` is the number of columns of a tile of D.
function splitk_skinny.plan(p)
  local w = p.warps[1]
  p.columns = p.gated and p.tile[1] // 2 or p.tile[1]
  p.wm, p.wn = shares(p.warps[2], p.gated and p.MT // 2 or p.MT, p.NT)
  -- Consecutive warps have neighbouring columns.
  p.out = cute.make_tiled_mma(ATOM, p.turned and {w * p.wm, p.wn, 1}
    or cute.make_layout({p.wm, {w, p.wn}, 1}, {w, {1, w * p.wm}, 0}))
  p.cluster = p.cluster and p.splits > 1
  rules.need(not p.cluster or p.splits <= CLUSTER, p.name,
    "a cluster of %d blocks; at most %d are possible", p.splits, CLUSTER)
  p.meets = p.splits > 1 and not p.cluster
end

--- Returns a kernel that calls f(A, B, ...), and its launch parameters for plan
-- p. They are a table with the fields plan, kernel, block, cluster, mma, tile,
-- turned, grid(m, batches) and scratch(m, batches). scratch returns two
-- numbers: how many f32, and how many i32 zeros, the blocks share. If there are
-- any, f gets these arrays (work, turns) after D.
function splitk_skinny.launches(p, f)
  local function blocks(m)
    return tiles.count(p.n, p.tile[1]) * tiles.count(m or p.m, p.tile[2])
  end
  return {plan = p, block = p.block, mma = p.out, turned = p.turned,
    cluster = p.cluster and {1, 1, p.splits} or nil,
    tile = p.turned and {p.columns, p.tile[2]} or {p.tile[2], p.columns},
    grid = function(m, batches) return {blocks(m), batches or 1, p.splits} end,
    scratch = function(m, batches)
      if not p.meets then return end
      local count = blocks(m) * (batches or 1)
      return count * p.splits * p.tile[1] * p.tile[2], count
    end,
    kernel = cute.kernel(p.name, {min_blocks = p.min_blocks}, f)}
end

---------------------------------------------------------------------------
-- The reduction in a kernel
---------------------------------------------------------------------------

-- Returns the shared memory in which a cluster's first block receives the
-- partial sums of the other blocks. It is a table {sums =
-- ((4,n),threads,others), came = the mbarrier that counts the bytes of the
-- sums, others = the number of other blocks}.
local function received(p, tid, z)
  local arch, others, threads = cute.arch, p.splits - 1, p.out:size()
  local each = p.MT // p.wm * (p.NT // p.wn)
  local sums = cute.make_smem_tensor(cute.f32, cute.make_layout(
    {{4, each}, threads, others},
    {{1, 4 * threads}, 4, 4 * each * threads}))
  local came = arch.alloc_smem(cute.i64, 1)
  cute.when(cute.eq(z, 0) & cute.eq(tid, 0), function()
    arch.mbarrier_init(came, 1)
    arch.mbarrier_init_fence()
    arch.mbarrier_arrive_and_expect_tx(came, 4 * cute.size(sums))
  end)
  arch.cluster_arrive_relaxed()
  return {sums = sums, came = came, others = others}
end

--- Returns the position of this thread as a table. Its fields are: bn, bm, the
-- coordinates of its tile; l, its batch; batch(t), the matrix of batch l of t;
-- z, the block's part of K; wn, wk, the indices of its warp along N and along
-- K; side, its index among the block's threads with the same wk; tid and block,
-- its index and the block's; across, the number of tiles along N.
function splitk_skinny.place(p)
  local tid = (cute.arch.thread_idx())
  local block, l, z = cute.arch.block_idx()
  local across, side = tiles.count(p.n, p.tile[1]), 32 * p.warps[1]
  return {tid = tid, block = block, l = l, z = z, bn = block % across,
    bm = block // across, wn = tid // 32 % p.warps[1], wk = tid // side,
    side = tid % side, across = across,
    parts = p.cluster and received(p, tid, z),
    batch = function(t) return tiles.batch(t, l) end}
end

-- Reduces the partial sums of all warps, (4,MT,NT) each. The first wm * wn
-- warps get the results: each thread's share, (4,MT/wm,NT/wn), is stored in
-- `out`. `s` is shared memory of f32, (4,block,MT*NT).
local function of_warps(p, at, sums, out, s)
  if p.warps[2] == 1 then
    out:store(sums:load())
    return
  end
  local MT, NT, wm, wn = p.MT, p.NT, p.wm, p.wn
  for j = 0, NT - 1 do
    for i = 0, MT - 1 do
      cute.autovec_copy(cute.coalesce(sums(_, i, j)),
                        s(_, at.tid, j * MT + i))
    end
  end
  cute.arch.sync_threads()
  local function reduce()
    for j = 0, NT // wn - 1 do
      for i = 0, MT // wm - 1 do
        local parts = {}
        for w = 0, p.warps[2] - 1 do
          parts[w] = cute.make_rmem_tensor({4}, cute.f32)
          cute.autovec_copy(s(_, w * 32 * p.warps[1] + at.side,
            (j * wn + at.wk // wm) * MT + i * wm + at.wk % wm), parts[w])
        end
        local sum = parts[0]:load()
        for w = 1, p.warps[2] - 1 do sum = sum + parts[w]:load() end
        cute.coalesce(out(_, i, j)):store(sum)
      end
    end
  end
  if wm * wn == p.warps[2] then reduce()
  else cute.when(cute.lt(at.wk, wm * wn), reduce) end
end

-- Reduces the partial sums of a cluster's blocks, in the order of z. The other
-- blocks send their sums to the first block. Returns true in the first block.
-- `mine`: whether this thread has partial sums; nil means that all threads have
-- some.
local function of_cluster(acc, at, mine)
  local parts, sums, arch = at.parts, cute.coalesce(acc), cute.arch
  local function some(f) if mine then cute.when(mine, f) else f() end end
  -- Waits until the cluster's first block has initialized its mbarrier.
  arch.cluster_wait()
  local first = cute.eq(at.z, 0)
  some(function()
    cute.when(first, function()
      arch.mbarrier_wait(parts.came, 0, {scope = "cluster"})
      local part = cute.make_fragment_like(sums)
      for other = 0, parts.others - 1 do
        cute.autovec_copy(parts.sums(_, at.tid, other), part)
        sums:store(sums:load() + part:load())
      end
    end, function()
      local there = parts.sums(_, at.tid, at.z - 1)
      for i = 0, cute.size(sums) - 1, 4 do
        arch.store_async_dsmem(there.iterator + there.layout(i),
          {sums(i), sums(i + 1), sums(i + 2), sums(i + 3)}, parts.came, 0)
      end
    end)
  end)
  return first
end

-- Returns the sums (4,M,N) of gates and of gated values.
local function halves(acc)
  local half = cute.size(acc, 1) // 2
  local function of(first)
    local r = cute.make_rmem_tensor({{2, 2}, half, cute.size(acc, 2)}, cute.f32)
    for i = 0, half - 1 do
      cute.autovec_copy(acc(_, first + i, _), r(_, i, _))
    end
    return r:load()
  end
  return of(0), of(half)
end

--- Adds the sums of all warps and blocks that divide K, and stores the result
-- to D (M,N), optionally through the epilogue.
---@param p table
---@param at table
---@param sums any (4,MT,NT), those of this warp
---@param D any
---@param s any? shared memory of f32, (4,block,MT*NT); allocated if nil
---@param ... any f32 and counts that blocks share, if p.meets; then the
-- epilogue's arguments
function splitk_skinny.leave(p, at, sums, D, s, ...)
  local to, tile, crd = D, {p.tile[2], p.columns}, {at.bm, at.bn}
  if p.turned then
    to = cute.make_tensor(D.iterator, cute.make_layout(
      {D.shape[2], D.shape[1]}, {D.stride[2], D.stride[1]}))
    tile, crd = {p.columns, p.tile[2]}, {at.bn, at.bm}
  end
  local more, own = table.pack(...), p.meets and 3 or 1
  local threads = p.out:size()
  local C = tiles.result(to, p.out, tile, crd, at.tid % threads)
  C.batch, C.l = at.batch, at.l
  local acc = p.gated and cute.make_rmem_tensor(
    {{2, 2}, p.MT // p.wm, p.NT // p.wn}, cute.f32) or C.acc
  if not s and p.warps[2] > 1 then
    s = cute.make_smem_tensor(cute.f32,
      cute.make_layout {4, p.block, p.MT * p.NT})
  end
  of_warps(p, at, sums, acc, s)
  local mine = threads < p.block and cute.lt(at.tid, threads)
  if p.splits > 1 then
    local last
    if p.cluster then last = of_cluster(acc, at, mine)
    else
      last = splitk_reduce(acc, {work = more[1], turns = more[2],
        at = at.block + at.l * (at.across * tiles.count(D.shape[1], p.tile[2])),
        splits = p.splits, threads = threads, of = mine or nil})
    end
    mine = mine and mine & last or last
  end
  local function store()
    if not p.epilogue then return C.store() end
    C.put(tiles.applied(C, function(x)
      if not p.gated then
        return p.epilogue(x, C, table.unpack(more, own, more.n))
      end
      local gate, up = halves(acc)
      return p.epilogue(gate, up, C, table.unpack(more, own, more.n))
    end))
  end
  if mine then cute.when(mine, store) else store() end
end

return sign.module("kernels.splitk_skinny", splitk_skinny)
-- SPDX-License-Identifier: MIT
