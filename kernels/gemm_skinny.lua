--- D = A B^T with 16-bit floats, for few rows of A. Reading B, the weights,
-- dominates the time.
--
--     local k = gemm_skinny {m = 8, n = 4096, k = 4096}
--     k.kernel(A, B, D):launch {grid = k.grid(m), block = k.block}
--
-- The rows of A (M,K) and B (N,K) begin at multiples of 16 bytes, and K is a
-- multiple of 8. D (M,N) has any layout. Batches are a third mode of these
-- matrices, as in gemm_sm80. B can have elements of 8 bits, integers or floats,
-- which are converted in registers; K is then a multiple of 16. Scale factors S
-- (N,K/group), of any type, can follow B in the arguments. A factor multiplies
-- the sum over a group of elements of K.
--
-- Operands are loaded directly to registers; only sums go through shared
-- memory. The 4 threads that hold a row of a fragment each load 16 bytes of a
-- row of B, together a run of 32 or 64 elements. Each MMA of a run multiplies
-- two pairs of elements of every thread. So the elements of an MMA are not
-- consecutive along K. This does not change the sums, because A and B have the
-- same permutation. With side = "a", B is the first operand of the MMA (16 rows
-- at once, and the result is D^T). With side = "b", B is the second operand (8
-- rows at once).
--
-- K is divided into chunks of `unroll` runs (32 or 64 elements each), and a
-- warp has the loads of one chunk in flight. The chunks are assigned
-- round-robin to the warps of a block, and to the blocks that share K (z). A
-- run is half of a cache line; with `prefetch`, loads of B also prefetch the
-- other half into L2.
--
-- Products are added in a fixed order. First, each warp adds its own products,
-- MMA by MMA along K. MMA s of a run has elements 8 t + 4 s + {0, 1, 2, 3} of
-- threads t = 0 to 3 (for 8-bit B: 16 t + 4 s + {0, 1, 2, 3}). With factors,
-- each run is a separate sum. Second, the sums of a block's warps are added, in
-- order of the warps. Third, the sums of blocks are added, in order of z. The
-- order does not depend on M, nor on the position of a row.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local splitk_skinny = require "kernels.splitk_skinny"
local model = require "kernels.gemm_skinny.model"
local sign = require "cute.lang.signature"
local tiles = require "cute.tiles"
local _ = cute._

local ATOMS = {f16 = "SM80_16x8x16_F32F16F16F32_TN",
               bf16 = "SM80_16x8x16_F32BF16BF16F32_TN"}

---------------------------------------------------------------------------
-- Operands
---------------------------------------------------------------------------

-- Converts four elements of the 8-bit type t to two words of dtype.
local function converted(word, t, dtype)
  if t.is_integer then
    return cute.arch[("cvt_%sx4_to_%sx4"):format(t.name, dtype.name)](word)
  end
  local four = cute.make_rmem_tensor({4}, t)
  local wide = cute.make_rmem_tensor({4}, dtype)
  cute.recast_tensor(four, cute.u32)[0] = word
  wide:store(four:load():to(dtype))
  local words = cute.recast_tensor(wide, cute.u32)
  return words(0), words(1)
end

-- Returns the row indices that this lane loads from an operand with n rows: a
-- list with an entry for each tile. For the MMA's first operand, a tile has a
-- second entry, for the row 8 below. An entry is false if the row exists for no
-- lane. o: {first: whether it is the first operand, count: the number of its
-- tiles, across: the number of tiles side by side in a block, row(i): the first
-- row of tile i, prefetch: bytes to prefetch into L2}.
local function rows_of(n, o)
  local rows, last, lane = {}, n - 1, cute.arch.lane_idx()
  local few = math.type(last) == "integer" and last < 8
  for i = 0, o.count - 1 do
    for h = 0, o.first and 1 or 0 do
      local row = o.row(i) + lane // 4 + 8 * h
      -- If a row is after the last one, the last row is read instead. The sums
      -- of such rows are not stored.
      if not tiles.divides((o.first and 16 or 8) * o.across, n) then
        row = cute.min(row, last)
      end
      rows[#rows + 1] = (h == 0 or not few) and row
    end
  end
  return rows
end

-- Returns two functions for a thread's part of an operand. load(slot, run,
-- guard) loads the thread's 16 bytes of each row of a run (32 or 64 elements of
-- K) into register slot `slot`. at(slot, s) returns the fragment for MMA s of
-- the run in that slot.
local function operand(p, t, o)
  local each, halves, own = p.each, o.first and 2 or 1, t.element_type
  local lane, rows = cute.arch.lane_idx(), rows_of(t.shape[1], o)
  local pieces = p.k // each
  local vectors = cute.make_tensor(t.iterator, cute.make_layout(
    {t.shape[1], {each, pieces}}, {t.stride[1], {1, each}}))
  local held = cute.make_rmem_tensor({each, #rows, p.unroll}, own)
  cute.partial_ok(held)  -- If K is small, not every slot gets a run.
  local atom = cute.make_copy_atom("DefaultCopy", own,
                                   {level_prefetch_size = o.prefetch})
  for i, row in ipairs(rows) do
    if not row then held(_, i - 1, _):fill(0) end
  end
  local out = {}
  function out.load(slot, run, guard)
    local piece = run * 4 + lane % 4
    local function copy()
      for i, row in ipairs(rows) do
        if row then
          cute.copy(atom, vectors(row, {_, piece}), held(_, i - 1, slot))
        end
      end
    end
    if not guard then return copy() end
    held(_, _, slot):fill(0)
    cute.when(cute.lt(piece, pieces), copy)
  end
  local shape = o.first and {2, 2, 2} or {2, 2}
  function out.at(slot, s)
    if own == p.dtype then
      local stride = o.first and {1, each, 2} or {1, 2}
      return cute.make_tensor(held(_, _, slot).iterator + 4 * s,
        cute.make_layout({shape, o.count}, {stride, each * halves}))
    end
    local frag = cute.make_rmem_tensor({shape, o.count}, p.dtype)
    local to = cute.recast_tensor(frag, cute.u32)
    local from = cute.recast_tensor(held(_, _, slot), cute.u32)
    for i = 0, #rows - 1 do
      local x, y = converted(from(s, i), own, p.dtype)
      local first = i // halves * 2 * halves + i % halves
      to[first], to[first + halves] = x, y
    end
    return frag
  end
  return out
end

-- Returns two functions for the scale factors S of B, (N,K/group) or
-- ((128,N/128),K/group), in the rows of this thread's accumulators. load(slot,
-- run) loads the factors of a run (32 or 64 elements of K). get(slot) returns
-- them, ((1,2),MT,1).
local function factors(p, S, o)
  local rows = rows_of(p.n, o)
  local held = cute.make_rmem_tensor({{1, 2}, p.MT, 1, p.unroll},
                                     S.element_type)
  local out = {}
  function out.load(slot, run)
    local group = run // (p.group // p.run)
    for i, row in ipairs(rows) do
      held[{{0, (i - 1) % 2}, (i - 1) // 2, 0, slot}] = S(row or 0, group)
    end
  end
  function out.get(slot) return held(_, _, _, slot):load():to(cute.f32) end
  return out
end

---------------------------------------------------------------------------
-- The kernel
---------------------------------------------------------------------------

-- Iterates over this warp's chunks of K, beginning with chunk number `party`.
-- As soon as a run (32 or 64 elements) of this chunk has been multiplied, the
-- same run of the next chunk is loaded. With `ahead`, the first chunk of B is
-- loaded before the wait for the preceding launch, and the next launch may do
-- the same.
local function walk(p, party, X, W, S, sums)
  local chunk = p.run * p.unroll
  local part = S and cute.make_fragment_like(sums) or sums
  local full, step = p.k // chunk, p.warps[2] * p.splits
  local function weights(slot, c, guard)
    W.load(slot, c * p.unroll + slot, guard)
    if S then S.load(slot, c * p.unroll + slot) end
  end
  local function rows(slot, c, guard)
    X.load(slot, c * p.unroll + slot, guard)
  end
  local function load(slot, c, guard)
    weights(slot, c, guard)
    rows(slot, c, guard)
  end
  local function each(f, c)
    for slot = 0, p.unroll - 1 do f(slot, c) end
  end
  local function multiply(slot)
    if S then part:fill(0) end
    for s = 0, p.run // 16 - 1 do
      local a, b = W.at(slot, s), X.at(slot, s)
      if p.side == "b" then a, b = b, a end
      cute.gemm(p.mma, part, a, b, part)
    end
    if S then
      sums:store(cute.fma(part:load(), S.get(slot), sums:load()))
    end
  end
  local function some(f)  -- Calls f if this warp has a chunk.
    if full >= step then f() else cute.when(cute.lt(party, full), f) end
  end
  if p.ahead then
    some(function() each(weights, party) end)
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()
  end
  some(function()
    each(p.ahead and rows or load, party)
    for c in cute.range(party + step, full, step) do
      for slot = 0, p.unroll - 1 do
        multiply(slot)
        load(slot, c)
      end
    end
    each(multiply)
  end)
  local left = tiles.count(p.k % chunk, p.run)
  -- The remaining runs of K (32 or 64 elements each) do not fill a chunk of
  -- `unroll` runs. They are processed one by one.
  if left > 0 then
    cute.when(cute.eq(party, full % step), function()
      for slot = 0, left - 1 do load(slot, full, true) end
      for slot = 0, left - 1 do multiply(slot) end
    end)
  end
end

local function body(p, mA, mB, mS, mD, ...)
  local at = splitk_skinny.place(p)
  local X, W, D = at.batch(mA), at.batch(mB), at.batch(mD)
  rules.same("gemm_skinny", "N of B", W.shape[1], "of the kernel", p.n)
  rules.same("gemm_skinny", "K of B", W.shape[2], "of the kernel", p.k)
  rules.same("gemm_skinny", "K of A", X.shape[2], "of the kernel", p.k)
  rules.same("gemm_skinny", "M of A", X.shape[1], "of D", D.shape[1])
  rules.same("gemm_skinny", p.gated and "half of B's N" or "N of B",
             p.gated and p.n // 2 or p.n, "of D", D.shape[2])
  local a, across = p.side == "a", p.warps[1]
  local of_w = {first = a, count = p.count, across = p.count * across,
    prefetch = p.prefetch,
    row = function(i)
      local first = i * across * p.high
      return at.bn * p.columns + first // p.columns * (p.n // 2)
        + first % p.columns + at.wn * p.high
    end}
  local few = p.tile[2] // p.few
  local of_x = {first = not a, count = few, across = few, row = function(i)
    return at.bm * p.tile[2] + i * p.few
  end}
  local sums = cute.make_rmem_tensor({{2, 2}, p.MT, p.NT}, cute.f32)
  sums:fill(0)
  walk(p, at.z * p.warps[2] + at.wk, operand(p, X, of_x), operand(p, W, of_w),
       mS and factors(p, at.batch(mS), of_w), sums)
  splitk_skinny.leave(p, at, sums, D, nil, ...)
end

---------------------------------------------------------------------------
-- Configurations
---------------------------------------------------------------------------

local OPTIONS = "n k m dtype b_dtype group side count rows warps unroll splits "
  .. "name min_blocks cluster epilogue gated prefetch pdl ahead"

local function plan(o)
  local p = {name = "gemm_skinny", m = 8, side = "a", count = 1,
             warps = {1, 8}, unroll = 4, splits = 1, dtype = cute.bf16,
             prefetch = "size_128b"}
  rules.options("gemm_skinny", o, OPTIONS)
  for name, v in pairs(o) do p[name] = v end
  rules.given("gemm_skinny", p, "m", "n", "k")
  rules.integers("gemm_skinny", p, {"count", "unroll"}, 1, 32)
  rules.integers("gemm_skinny", p, {"splits"}, 1, 65535)
  local atom = ATOMS[tostring(p.dtype)]
  rules.need(atom, "gemm_skinny", "dtype = %s; bf16 or f16 is needed", p.dtype)
  p.b_dtype = p.b_dtype or p.dtype
  rules.need(p.b_dtype == p.dtype or p.b_dtype.bits == 8, "gemm_skinny",
    "B has type %s and A has %s; B needs A's type, or one of 8 bits",
    p.b_dtype, p.dtype)
  -- elements of B in the 16 bytes that a thread loads at once
  p.each = 128 // p.b_dtype.bits
  p.run = 4 * p.each
  rules.need(p.k % p.each == 0, "gemm_skinny",
    "K is %d; multiples of %d are needed", p.k, p.each)
  rules.need(not p.group or p.side == "a" and p.group % p.run == 0,
    "gemm_skinny", "group = %s with side = %q; a multiple of %d and side = "
    .. "\"a\" are needed", p.group, p.side, p.run)
  p.block = 32 * p.warps[1] * p.warps[2]
  rules.need(p.block <= 1024, "gemm_skinny",
    "%d threads in a block; at most 1024 are possible", p.block)
  rules.need(not p.ahead or p.pdl, "gemm_skinny",
    "ahead = true needs pdl = true")
  rules.need(not p.gated or p.side == "a" and p.count % 2 == 0, "gemm_skinny",
    "gated = true with side = %q and count = %d; side = \"a\" and an even "
    .. "count are needed", p.side, p.count)
  local a, w = p.side == "a", p.warps[1]
  -- `high` is the number of rows of B that one MMA covers, and `few` the number
  -- of rows of A.
  p.high, p.few = a and 16 or 8, a and 8 or 16
  p.rows = p.rows or tiles.count(math.min(p.m, 32), p.few) * p.few
  -- The rows of B and the rows of A in a block's tile.
  p.tile = {w * p.count * p.high, p.rows}
  p.MT, p.NT = p.count, p.rows // p.few
  if not a then p.MT, p.NT = p.NT, p.MT end
  p.mma = cute.make_tiled_mma(atom, a and {w, 1, 1} or {1, w, 1})
  p.turned = a
  splitk_skinny.plan(p)
  return p
end

local gemm_skinny = {}

---------------------------------------------------------------------------
-- Candidates
---------------------------------------------------------------------------

-- Configurations measured on an H200. Each is the fastest for some problem, the
-- ones with clusters for small N and more than one or two rows of A. `most` is
-- the largest number of rows of A for which the configuration is a candidate.
local CHOICES = {
  {side = "a", warps = {1, 8}, unroll = 4},
  {side = "a", warps = {1, 4}, unroll = 8},
  {side = "a", warps = {1, 16}, unroll = 2},
  {side = "a", warps = {1, 16}, unroll = 4},
  {side = "a", warps = {1, 16}, unroll = 2, splits = 2},
  {side = "b", warps = {1, 16}, unroll = 4},
  {side = "b", warps = {1, 8}, unroll = 8},
  {side = "b", warps = {1, 16}, unroll = 8, most = 16},
  {side = "a", warps = {1, 16}, unroll = 8, most = 8},
}

--- Returns the candidates for a product (m,k) x (n,k)^T: a list of {options,
-- tile, seconds = time estimated for an H200, blocks = number of blocks for a
-- matrix, room = number of blocks that fit on a multiprocessor}.
---@param o table {dtype: any, b_dtype: any?, sms: integer, batches: integer?,
-- clusters: boolean?, gated: boolean?, group: integer?}
-- clusters: whether blocks can form clusters
function gemm_skinny.candidates(m, n, k, o)
  local list = {}
  for _, choice in ipairs(CHOICES) do
    if (o.clusters or not choice.splits) and m <= (choice.most or m)
      and (choice.side == "a" or not (o.gated or o.group)) then
      local options = {m = m, n = n, k = k, dtype = o.dtype,
        b_dtype = o.b_dtype, group = o.group, side = choice.side,
        warps = choice.warps, unroll = choice.unroll,
        splits = choice.splits or 1, cluster = choice.splits and true}
      -- With gates (two tiles of B) or a B that is converted, a warp needs more
      -- registers for each run, so `unroll` is smaller.
      if o.gated then
        options.gated, options.count = true, 2
        options.unroll = options.unroll // 2
      end
      if (o.b_dtype or o.dtype) ~= o.dtype
        and (m > 8 or choice.side == "b") then
        options.unroll = math.max(1, options.unroll // (m > 16 and 4 or 2))
      end
      local p = plan(options)
      list[#list + 1] = {options = options, room = model.room(p),
        blocks = tiles.count(n, p.tile[1]) * tiles.count(m, p.tile[2])
          * p.splits,
        tile = p.side == "a" and p.tile or {p.tile[2], p.tile[1]},
        seconds = model.time(p, o.batches or 1, o.sms)}
    end
  end
  return list
end

--- Returns a kernel with arguments (A, B, [S,] D, [work, turns,] ...), for a
-- matrix B of (n,k); see splitk_skinny.launches.
---@param o table {n: integer, k: integer, m: integer?, dtype: any?,
-- b_dtype: any?, group: integer?, side: string?, count: integer?,
-- rows: integer?, warps: integer[]?, unroll: integer?, splits: integer?,
-- name: string?, min_blocks: integer?, cluster: boolean?, epilogue: function?,
-- gated: boolean?, prefetch: string?, pdl: boolean?, ahead: boolean?}
-- m: the intended number of rows of A; dtype: the type of A, and of B unless
-- b_dtype is given; group: elements of K that share a factor of a row of B,
-- with side "a"; rows: number of rows of A in a block; count: number of tiles
-- of B's rows (16 each with side "a", 8 with "b") for each warp; warps: {number
-- along N, number along K}; unroll: see above; splits: number
-- of blocks that share K, through their shared memory if `cluster` (sm_90);
-- epilogue: like that of gemm_sm80, with side "a" for the transposed product;
-- gated: like that of gemm_sm80, with n rows of B; prefetch:
-- level_prefetch_size of loads of B; pdl: for dependent launches; ahead: no
-- running launch writes B and its factors, so they are read before the wait for
-- the preceding launch
setmetatable(gemm_skinny, {__call = function(_, o)
  local p = plan(o)
  return splitk_skinny.launches(p, function(A, B, ...)
    if p.pdl and not p.ahead then cute.arch.griddepcontrol_wait() end
    if p.group then body(p, A, B, ...)
    else body(p, A, B, nil, ...) end
  end)
end})

return sign.module("kernels.gemm_skinny", gemm_skinny)
-- SPDX-License-Identifier: MIT
