--- D = A B^T of 16-bit floats for few rows of A: what takes time is reading B,
-- the weights.
--
--     local k = gemm_skinny {m = 8, n = 4096, k = 4096}
--     k.kernel(A, B, D):launch {grid = k.grid(m), block = k.block}
--
-- A (M,K) and B (N,K) have rows at multiples of 16 bytes, K a multiple of 8; D
-- (M,N) is any. Batches are a third mode, as gemm_sm80 has them.
--
-- Nothing goes through shared memory but sums. A thread loads 16 bytes of a
-- row, and so do its neighbours in the fragment: 4 threads have a run of 32
-- elements, which two MMAs of mma.sync take, each two pairs of every thread.
-- That this is not the order of K does not matter, for A and B are permuted
-- alike. B is the first operand of the MMA (side = "a": 16 rows at once, the
-- result is D^T) or the second one ("b": 8 rows).
--
-- A warp has a chunk of `unroll` runs under way. Chunks of K are shared out in
-- turn to the warps of a block, and of blocks (z).
--
-- The order of sums: a warp's, MMA by MMA as K goes on, MMA s of a run having
-- elements 8 t + 4 s + {0, 1, 2, 3} of threads t = 0 to 3; then those of a
-- block's warps, the first first; then those of blocks, by z. It does not
-- depend on M, nor on a row's place.
local cute = require "cute"
local check = require "kernels.check"
local join = require "kernels.join"
local meet = require "kernels.meet"
local tiles = require "cute.tiles"
local _ = cute._

local RUN = 32    -- of K, that 4 threads load together
local VECTOR = 8  -- elements of 16 bytes

local ATOMS = {f16 = "SM80_16x8x16_F32F16F16F32_TN",
               bf16 = "SM80_16x8x16_F32BF16BF16F32_TN"}

---------------------------------------------------------------------------
-- Operands
---------------------------------------------------------------------------

-- What a thread has of an operand: load(slot, run, guard) brings its pieces of
-- all rows, at(slot, s) is the fragment of MMA s of that run. o: {first: is it
-- the MMA's first operand? count: of its tiles, across: those that lie beside
-- each other in a block, row(i): the first of tile i, slots, k}.
local function operand(t, o)
  local halves, high = o.first and 2 or 1, o.first and 16 or 8
  local lane = cute.arch.lane_idx()
  local rows, last = {}, t.shape[1] - 1
  for i = 0, o.count - 1 do
    for h = 0, halves - 1 do
      local row = o.row(i) + lane // 4 + 8 * h
      -- rows behind the last are read as the last one: nobody takes their sums
      if not tiles.divides(high * o.across, last + 1) then
        row = cute.min(row, last)
      end
      rows[#rows + 1] = row
    end
  end
  local pieces = o.k // VECTOR
  local vectors = cute.make_tensor(t.iterator, cute.make_layout(
    {last + 1, {VECTOR, pieces}}, {t.stride[1], {1, VECTOR}}))
  local held = cute.make_rmem_tensor({VECTOR, halves * o.count, o.slots},
                                     t.element_type)
  local out = {}
  function out.load(slot, run, guard)
    local piece = run * (RUN // VECTOR) + lane % 4
    local function copy()
      for i, row in ipairs(rows) do
        cute.autovec_copy(vectors(row, {_, piece}), held(_, i - 1, slot))
      end
    end
    if not guard then return copy() end
    held(_, _, slot):fill(0)
    cute.when(cute.lt(piece, pieces), copy)
  end
  local values = o.first and {{2, 2, 2}, {1, VECTOR, 2}} or {{2, 2}, {1, 2}}
  function out.at(slot, s)
    return cute.make_tensor(held(_, _, slot).iterator + 4 * s, cute.make_layout(
      {values[1], o.count}, {values[2], VECTOR * halves}))
  end
  return out
end

---------------------------------------------------------------------------
-- The kernel
---------------------------------------------------------------------------

-- Goes through this warp's chunks of K, from number `party` on: each run of the
-- next one is asked for as soon as its like in this one is multiplied.
local function walk(p, party, X, W, sums)
  local chunk = RUN * p.unroll
  local full, step = p.k // chunk, p.warps[2] * p.splits
  local function load(slot, c, guard)
    W.load(slot, c * p.unroll + slot, guard)
    X.load(slot, c * p.unroll + slot, guard)
  end
  local function multiply(slot)
    for s = 0, 1 do
      local a, b = W.at(slot, s), X.at(slot, s)
      if p.side == "b" then a, b = b, a end
      cute.gemm(p.mma, sums, a, b, sums)
    end
  end
  cute.when(cute.lt(party, full), function()
    for slot = 0, p.unroll - 1 do load(slot, party) end
    for c in cute.range(party + step, full, step) do
      for slot = 0, p.unroll - 1 do
        multiply(slot)
        load(slot, c)
      end
    end
    for slot = 0, p.unroll - 1 do multiply(slot) end
  end)
  local left = tiles.count(p.k % chunk, RUN)
  if left > 0 then  -- piece by piece
    cute.when(cute.eq(party, full % step), function()
      for slot = 0, left - 1 do load(slot, full, true) end
      for slot = 0, left - 1 do multiply(slot) end
    end)
  end
end

-- Where this thread works: its tile (bn, bm), the matrices of the batch, its
-- warp along N and along K.
local function place(p)
  local tid = (cute.arch.thread_idx())
  local block, l, z = cute.arch.block_idx()
  local across, side = tiles.count(p.n, p.tile[1]), 32 * p.warps[1]
  return {tid = tid, block = block, l = l, z = z, bn = block % across,
    bm = block // across, wn = tid // 32 % p.warps[1], wk = tid // side,
    side = tid % side, across = across,
    batch = function(t) return tiles.batch(t, l) end}
end

-- The sums of a cluster's blocks, in the order of z, from their shared memory;
-- true in the block that has all. `mine`: has this thread some? nil: all have.
local function gather(acc, splits, at, threads, mine)
  local sums = cute.coalesce(acc)
  local all = cute.make_smem_tensor(cute.f32, cute.make_layout(
    {{4, cute.size(sums) // 4}, threads}, {{1, 4 * threads}, 4}))
  local function some(f) if mine then cute.when(mine, f) else f() end end
  local function meet_all()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
  end
  some(function() cute.autovec_copy(sums, all(_, at.tid)) end)
  meet_all()
  local first = cute.eq(at.z, 0)
  some(function()
    cute.when(first, function()
      local part = cute.make_fragment_like(sums)
      for other = 1, splits - 1 do
        local there = all(_, at.tid)
        cute.autovec_copy(cute.make_tensor(cute.arch.map_dsmem_ptr(
          there.iterator, other), there.layout), part)
        sums:store(sums:load() + part:load())
      end
    end)
  end)
  meet_all()  -- nobody's memory goes before it was read
  return first
end

-- The sums of all that share K, and what becomes of them.
local function leave(p, at, sums, D, work, turns, ...)
  local to, tile, crd = D, {p.tile[2], p.tile[1]}, {at.bm, at.bn}
  if p.side == "a" then
    to = cute.make_tensor(D.iterator, cute.make_layout(
      {D.shape[2], D.shape[1]}, {D.stride[2], D.stride[1]}))
    tile, crd = p.tile, {at.bn, at.bm}
  end
  local threads = p.out:size()
  local C = tiles.result(to, p.out, tile, crd, at.tid % threads)
  C.batch, C.l = at.batch, at.l
  local s = p.warps[2] > 1 and cute.make_smem_tensor(cute.f32,
    cute.make_layout {4, p.block, cute.size(sums) // 4})
  join.run(sums, C.acc, s, {warps = p.warps[2], warp = at.wk,
    side = 32 * p.warps[1], at = at.side, tid = at.tid, wm = p.wm, wn = p.wn})
  local mine = threads < p.block and cute.lt(at.tid, threads)
  if p.cluster then
    local first = gather(C.acc, p.splits, at, threads, mine)
    mine = mine and mine & first or first
  elseif p.splits > 1 then
    local last = meet(C.acc, {work = work, turns = turns,
      at = at.block + at.l * (at.across * tiles.count(D.shape[1], p.tile[2])),
      splits = p.splits, threads = threads, of = mine or nil})
    mine = mine and mine & last or last
  end
  local more = table.pack(...)
  local function store()
    if not p.epilogue then return C.store() end
    C.put(tiles.applied(C, function(acc)
      return p.epilogue(acc, C, table.unpack(more, 1, more.n))
    end))
  end
  if mine then cute.when(mine, store) else store() end
end

local function body(p, mA, mB, mD, work, turns, ...)
  local at = place(p)
  local X, W, D = at.batch(mA), at.batch(mB), at.batch(mD)
  check.same("gemm_skinny", "N of B", W.shape[1], "of the kernel", p.n)
  check.same("gemm_skinny", "K of B", W.shape[2], "of the kernel", p.k)
  check.same("gemm_skinny", "K of A", X.shape[2], "of the kernel", p.k)
  check.same("gemm_skinny", "M of A", X.shape[1], "of D", D.shape[1])
  check.same("gemm_skinny", "N of B", p.n, "of D", D.shape[2])
  local a, across = p.side == "a", p.warps[1]
  local w = operand(W, {first = a, count = p.count, across = p.count * across,
    slots = p.unroll, k = p.k, row = function(i)
      return at.bn * p.tile[1] + (i * across + at.wn) * p.high
    end})
  local few = p.tile[2] // p.few
  local x = operand(X, {first = not a, count = few, across = few,
    slots = p.unroll, k = p.k, row = function(i)
      return at.bm * p.tile[2] + i * p.few
    end})
  local sums = cute.make_rmem_tensor({{2, 2}, p.MT, p.NT}, cute.f32)
  sums:fill(0)
  walk(p, at.z * p.warps[2] + at.wk, x, w, sums)
  if p.pdl then cute.arch.griddepcontrol_launch_dependents() end
  leave(p, at, sums, D, work, turns, ...)
end

---------------------------------------------------------------------------
-- Plans
---------------------------------------------------------------------------

local function plan(o)
  local p = {name = "gemm_skinny", m = 8, side = "a", count = 1,
             warps = {1, 8}, unroll = 4, splits = 1, dtype = cute.bf16}
  for name, v in pairs(o) do p[name] = v end
  check.given("gemm_skinny", p, "m", "n", "k")
  check.integers("gemm_skinny", p, {"count", "unroll"}, 1, 32)
  check.integers("gemm_skinny", p, {"splits"}, 1, 65535)
  check.need(p.k % VECTOR == 0, "gemm_skinny",
    "K is %d; multiples of %d are needed", p.k, VECTOR)
  local atom = ATOMS[tostring(p.dtype)]
  check.need(atom, "gemm_skinny", "%s; bf16 or f16 is needed", p.dtype)
  p.block = 32 * p.warps[1] * p.warps[2]
  check.need(p.block <= 1024, "gemm_skinny", "%d threads of a block", p.block)
  local a, w = p.side == "a", p.warps[1]
  p.high, p.few = a and 16 or 8, a and 8 or 16  -- rows of B, of A, of an MMA
  p.rows = p.rows or tiles.count(math.min(p.m, 32), p.few) * p.few
  p.tile = {w * p.count * p.high, p.rows}  -- of B and A
  p.MT, p.NT = p.count, p.rows // p.few
  if not a then p.MT, p.NT = p.NT, p.MT end
  p.wm, p.wn = join.shares(p.warps[2], p.MT, p.NT)
  p.mma = cute.make_tiled_mma(atom, a and {w, 1, 1} or {1, w, 1})
  -- of those that have the sums in the end: warps along N are neighbours
  p.out = cute.make_tiled_mma(atom, a and {w * p.wm, p.wn, 1}
    or cute.make_layout({p.wm, {w, p.wn}, 1}, {w, {1, w * p.wm}, 0}))
  p.cluster = p.cluster and p.splits > 1
  check.need(not p.cluster or p.splits <= 8, "gemm_skinny",
    "a cluster of %d blocks; there are 8 at most", p.splits)
  p.meets = p.splits > 1 and not p.cluster
  return p
end

local gemm_skinny = {}

---------------------------------------------------------------------------
-- What is tried
---------------------------------------------------------------------------

-- What an H200 showed: all are the best somewhere; clusters where N is small
-- and A has more rows than one or two. rate: beside others; most: rows.
local CHOICES = {
  {side = "a", warps = {1, 8}, unroll = 4, rate = 0.995},
  {side = "a", warps = {1, 4}, unroll = 8, rate = 0.998},
  {side = "a", warps = {1, 16}, unroll = 2},
  {side = "a", warps = {1, 16}, unroll = 4, rate = 0.997},
  {side = "a", warps = {1, 16}, unroll = 2, splits = 2},
  {side = "b", warps = {1, 16}, unroll = 4, rate = 0.99},
  {side = "b", warps = {1, 8}, unroll = 8, rate = 0.99},
  {side = "b", warps = {1, 16}, unroll = 8, rate = 0.98, most = 16},
}

local LAUNCH = 2.5e-6   -- seconds of a kernel's begin and end
local CLUSTER = 0.3e-6  -- until the sums of its blocks have met
local EACH = 90e9       -- bytes a second that a multiprocessor can ask for

-- Bytes a second that come, by the rows of A that are read beside them.
local function rate(m)
  return m <= 2 and 4.1e12 or m <= 8 and 4e12 or m <= 16 and 3.6e12 or 3.2e12
end

-- Seconds of a product by plan p, on so many multiprocessors.
local function time_of(p, choice, batches, sms)
  local m, bytes = p.m, 2 * p.k
  local blocks = tiles.count(p.n, p.tile[1]) * tiles.count(m, p.tile[2])
    * batches * p.splits
  local memory = bytes * p.n * batches / rate(m) / (choice.rate or 1)
  local each = tiles.count(blocks, sms) * bytes // p.splits
    * (p.tile[1] + math.min(m, p.tile[2])) / EACH
  return LAUNCH + (p.splits > 1 and CLUSTER or 0)
    + (memory ^ 6 + each ^ 6) ^ (1 / 6)
end

--- What there is to try for m rows of A, n and k: a list of {options, tile,
-- seconds = those that a rule expects on an H200}.
---@param o {dtype: any, sms: integer, batches: integer?, clusters: boolean?}
-- clusters: can blocks form some?
function gemm_skinny.candidates(m, n, k, o)
  local list = {}
  for _, choice in ipairs(CHOICES) do
    if (o.clusters or not choice.splits) and m <= (choice.most or m) then
      local options = {m = m, n = n, k = k, dtype = o.dtype, side = choice.side,
        warps = choice.warps, unroll = choice.unroll,
        splits = choice.splits or 1, cluster = choice.splits and true}
      local p = plan(options)
      list[#list + 1] = {options = options,
        tile = p.side == "a" and p.tile or {p.tile[2], p.tile[1]},
        seconds = time_of(p, choice, o.batches or 1, o.sms)}
    end
  end
  return list
end

--- A kernel of (A, B, D, ...) for n columns and k, with its cluster and
-- grid(m, batches). Where splits are of no cluster it is one of (A, B, D, work,
-- turns, ...), and scratch(m, batches) says how many f32 and counts these have.
---@param o {n: integer, k: integer, m: integer?, dtype: any?, side: string?,
-- count: integer?, rows: integer?, warps: integer[]?, unroll: integer?,
-- splits: integer?, name: string?, min_blocks: integer?,
-- cluster: boolean?, epilogue: function?, pdl: boolean?}
-- m: the rows that it is meant for; rows: of A, that a block has; count: tiles
-- of B's rows, 16 or 8, of a warp; warps: along N and along K;
-- splits: blocks that share K,
-- cluster: through their shared memory (sm_90);
-- epilogue: as gemm_sm80 has it, with side "a" of the product turned around;
-- pdl: for dependent launches
return setmetatable(gemm_skinny, {__call = function(_, o)
  local p = plan(o)
  local function blocks(m)
    return tiles.count(p.n, p.tile[1]) * tiles.count(m or p.m, p.tile[2])
  end
  return {plan = p, block = p.block, mma = p.out,
    cluster = p.cluster and {1, 1, p.splits} or nil, turned = p.side == "a",
    tile = p.side == "a" and p.tile or {p.tile[2], p.tile[1]},
    grid = function(m, batches)
      return {blocks(m), batches or 1, p.splits}
    end,
    scratch = function(m, batches)
      if not p.meets then return end
      local count = blocks(m) * (batches or 1)
      return count * p.splits * p.tile[1] * p.tile[2], count
    end,
    kernel = cute.kernel(p.name, {min_blocks = p.min_blocks},
      function(A, B, D, ...)
        if p.pdl then cute.arch.griddepcontrol_wait() end
        if p.meets then body(p, A, B, D, ...)
        else body(p, A, B, D, nil, nil, ...) end
      end)}
end})
