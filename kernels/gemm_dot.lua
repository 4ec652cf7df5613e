--- D = A B^T in f32 without tensor cores, for few rows of A. Reading B
-- dominates the time.
--
--     local k = gemm_dot {m = 8, n = 4096, k = 4096}
--     k.kernel(A, B, D):launch {grid = k.grid(m), block = k.block}
--
-- The rows of A (M,K) and B (N,K) begin at multiples of 16 bytes, and K is a
-- multiple of 4. With b_major = "n", the columns of B begin at multiples of 16
-- bytes instead of the rows, and N is a multiple of 4. D (M,N) has any layout.
-- Batches are a third mode of these matrices.
--
-- A warp computes the products of `count` rows of B and `rows` rows of A. Its
-- lanes divide K: each lane loads 4 consecutive elements of each row, and keeps
-- separate sums. The 128 elements of all lanes are a "run". If the columns of B
-- are contiguous, 4 groups of 8 lanes divide K instead. Each lane then loads 4
-- elements of each of 4 columns of B. Thus a group loads 32 rows of B, and a
-- run has 16 elements of K. A warp has `unroll` runs of B in flight; rows of A
-- come from L1. K is divided into chunks of `unroll` runs, which are assigned
-- round-robin to the warps of a block.
--
-- Products are added in a fixed order. First, each lane adds its products along
-- K. Then the sums of lanes 16, 8, 4, 2 and 1 apart are added (with b_major =
-- "n", 16 and 8 apart), then the sums of warps. The order does not depend on M,
-- nor on the position of a row.
local core = require "cute.core"
local cute = require "cute"
local model = require "kernels.gemm_dot.model"
local rules = require "kernels.operand_rules"
local sign = require "cute.lang.signature"
local tiles = require "cute.tiles"
local _ = cute._

local FMA = "UniversalFMA<float>"
local LANES, EACH = 32, 4  -- EACH: elements in the 16 bytes that a lane loads
-- The number of rows of A that are multiplied at once. With more rows, the
-- registers for the elements of A would reduce the number of resident warps.
local GROUP = 4

-- Returns matrix t as vectors of EACH elements along mode `lead`.
local function vectors_of(t, lead)
  local shape, stride = {t.shape[1], t.shape[2]}, {t.stride[1], t.stride[2]}
  shape[lead], stride[lead] = {EACH, shape[lead] // EACH}, {1, EACH}
  return cute.make_tensor(t.iterator, cute.make_layout(shape, stride))
end

-- Calls copy(), which loads this lane's elements of a run into `to`. With
-- `guard`, the run may extend past K; missing elements are then 0.
local function guarded(p, to, piece, guard, copy)
  if not guard then return copy() end
  to:fill(0)
  cute.when(cute.lt(piece, p.k // EACH), copy)
end

-- Returns a function load(to, run, guard) for `count` rows of matrix t from row
-- `first` on. It loads this lane's elements of a run of each row into the
-- registers `to`, (4,count). The rows belong to a tile of `tile` rows.
local function rows_of(p, t, first, count, tile, prefetch)
  local vectors, rows, at = vectors_of(t, 2), t.shape[1], {}
  local atom = cute.make_copy_atom("DefaultCopy", t.element_type,
                                   {level_prefetch_size = prefetch})
  for i = 0, count - 1 do
    -- If a row is after the last one, the last row is read instead. The sums of
    -- such rows are not stored.
    at[i] = tiles.divides(tile, rows) and first + i
      or cute.min(first + i, rows - 1)
  end
  return function(to, run, guard)
    local piece = run * p.lanes + p.lane
    guarded(p, to, piece, guard, function()
      for i = 0, count - 1 do
        cute.copy(atom, vectors(at[i], {_, piece}), to(_, i))
      end
    end)
  end
end

-- Like rows_of, but for a B with contiguous columns: returns a function that
-- loads 4 rows of B from row `first` on. `to`: (4 rows,4 elements of K).
local function columns_of(p, t, first)
  local vectors, piece = vectors_of(t, 1), first // EACH
  local atom = cute.make_copy_atom("DefaultCopy", t.element_type,
                                   {level_prefetch_size = "size_128b"})
  if not tiles.divides(p.tile[2], p.n) then
    piece = cute.min(piece, p.n // EACH - 1)
  end
  return function(to, run, guard)
    local column = run * p.lanes + p.lane
    guarded(p, to, column, guard, function()
      for i = 0, EACH - 1 do
        cute.copy(atom, vectors({_, piece}, column * EACH + i), to(_, i))
      end
    end)
  end
end

-- Adds the products of this warp's runs of K to `sums`, (1,count,rows). `party`
-- is the warp's index among the warps that divide K. `x` is a list of
-- functions, each of which loads GROUP rows of A. `w` is the function that
-- loads the rows of B.
local function walk(p, party, x, w, sums)
  local chunk, step, some = p.unroll, p.warps[2], math.min(p.rows, GROUP)
  local held = cute.make_rmem_tensor({EACH, p.count, chunk}, cute.f32)
  cute.partial_ok(held)  -- If K is small, not all of this array is used.
  local mma = cute.make_tiled_mma(FMA)
  local function fragment(t, count, stride)
    return cute.make_tensor(t.iterator, cute.make_layout({1, count, EACH},
                                                         stride))
  end
  local along = {0, EACH, 1}
  local function load(slot, c, guard)
    w(held(_, _, slot), c * chunk + slot, guard)
  end
  local function multiply(slot, c, guard)
    local b = fragment(held(_, _, slot), p.count,
                       p.b_major == "n" and {0, 1, EACH} or along)
    for i, rows in ipairs(x) do
      local few = cute.make_rmem_tensor({EACH, some}, cute.f32)
      rows(few, c * chunk + slot, guard)
      local part = cute.make_tensor(sums.iterator + (i - 1) * some * p.count,
        cute.make_layout {1, p.count, some})
      cute.gemm(mma, part, b, fragment(few, some, along), part)
    end
  end
  local full = p.k // (p.run * chunk)
  local function all()
    for slot = 0, chunk - 1 do load(slot, party) end
    for c in cute.range(party + step, full, step) do
      for slot = 0, chunk - 1 do
        multiply(slot, c - step)
        load(slot, c)
      end
    end
    local last = party + (full - 1 - party) // step * step
    for slot = 0, chunk - 1 do multiply(slot, last) end
  end
  if full >= step then all()
  elseif full > 0 then cute.when(cute.lt(party, full), all) end
  -- The remaining runs do not fill a chunk, and the last one may extend past K.
  local left = tiles.count(p.k % (p.run * chunk), p.run)
  if left > 0 then
    cute.when(cute.eq(party, full % step), function()
      for slot = 0, left - 1 do load(slot, full, slot == left - 1) end
      for slot = 0, left - 1 do multiply(slot, full, slot == left - 1) end
    end)
  end
end

-- Adds the partial sums v[1], v[2] ... over the lanes that divide K. The number
-- of sums is a power of two. Lanes exchange halves of the list, so that each
-- lane ends with the complete sums of a part of it. Returns that part, and the
-- index (from 0) of its first sum.
local function across_lanes(p, v)
  local lane, n, first, apart = cute.arch.lane_idx(), #v, 0, LANES
  while apart > LANES // p.lanes do
    apart = apart // 2
    if n == 1 then
      v[1] = v[1] + cute.arch.shuffle_sync_bfly(v[1], apart)
    else
      local upper = cute.ne(lane & apart, 0)
      n = n // 2
      for i = 1, n do
        local own = cute.where(upper, v[i + n], v[i])
        local other = cute.where(upper, v[i], v[i + n])
        v[i] = own + cute.arch.shuffle_sync_bfly(other, apart)
      end
      first = first + cute.where(upper, n, 0)
    end
  end
  return table.move(v, 1, n, 1, {}), first
end

-- Adds the sums of the block's warps that divide K, and stores the results to
-- D, optionally through the epilogue.
local function leave(p, at, sums, D, ...)
  local v, count = {}, p.count
  for i = 0, count * p.rows - 1 do
    v[i + 1] = sums[{0, i % count, i // count}]
  end
  local columns = p.tile[2]
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(
    {columns, p.rows, p.warps[2]}))
  local own, first = across_lanes(p, v)
  local function put()
    for i, x in ipairs(own) do
      local index = first + (i - 1)
      s[{at.column + index % count, index // count, at.wk}] = x
    end
  end
  -- If there are fewer sums than lanes, several lanes have the same sum, and
  -- one of them stores it.
  if #v < p.lanes then
    cute.when(cute.eq(p.lane % (p.lanes // #v), 0), put)
  else
    put()
  end
  cute.arch.sync_threads()
  local C = tiles.result(D, p.out, {p.rows, columns}, {at.bm, at.bn},
                         at.tid % p.out:size())
  C.batch, C.l = at.batch, at.l
  local more = table.pack(...)
  local function store()
    local high = p.out:size() // columns
    for i = 0, p.rows // high - 1 do
      local row, column = at.tid // columns + i * high, at.tid % columns
      local sum = s[{column, row, 0}]
      for w = 1, p.warps[2] - 1 do sum = sum + s[{column, row, w}] end
      C.acc[i] = sum
    end
    if not p.epilogue then return C.store() end
    C.put(tiles.applied(C, function(acc)
      return p.epilogue(acc, C, table.unpack(more, 1, more.n))
    end))
  end
  if p.out:size() == p.block then store()
  else cute.when(cute.lt(at.tid, p.out:size()), store) end
end

local function body(p, mA, mB, mD, ...)
  local tid = (cute.arch.thread_idx())
  local block, l = cute.arch.block_idx()
  local warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
  local lane = cute.arch.lane_idx()
  local function batch(t) return tiles.batch(t, l) end
  local A, B, D = batch(mA), batch(mB), batch(mD)
  rules.same("gemm_dot", "N of B", B.shape[1], "of the kernel", p.n)
  rules.same("gemm_dot", "K of B", B.shape[2], "of the kernel", p.k)
  rules.same("gemm_dot", "K of A", A.shape[2], "of the kernel", p.k)
  rules.same("gemm_dot", "M of A", A.shape[1], "of D", D.shape[1])
  rules.same("gemm_dot", "N of B", p.n, "of D", D.shape[2])
  -- Consecutive blocks have the same rows of B, as far as possible.
  local high, beside = tiles.count(A.shape[1], p.rows), LANES // p.lanes
  p.lane = lane // beside  -- this lane's index among those that divide K
  local wn = warp % p.warps[1]
  local at = {tid = tid, l = l, batch = batch, bm = block % high,
    bn = block // high, wk = warp // p.warps[1],
    column = (wn * beside + lane % beside) * p.count}
  local sums = cute.make_rmem_tensor({1, p.count, p.rows}, cute.f32)
  sums:fill(0)
  local x, some = {}, math.min(p.rows, GROUP)
  for first = 0, p.rows - 1, some do
    x[#x + 1] = rows_of(p, A, at.bm * p.rows + first, some, p.rows)
  end
  local row = at.bn * p.tile[2] + at.column
  walk(p, at.wk, x, p.b_major == "n" and columns_of(p, B, row)
    or rows_of(p, B, row, p.count, p.tile[2], "size_128b"), sums)
  leave(p, at, sums, D, ...)
end

---------------------------------------------------------------------------
-- Configurations
---------------------------------------------------------------------------

-- The largest number of rows of A in a tile.
local MOST_ROWS = 16

local OPTIONS = "n k m b_major count rows warps unroll name min_blocks "
  .. "epilogue pdl"

local function is_power(n) return n & (n - 1) == 0 end

-- Returns the number of rows of A in a tile for m rows.
local function rows_for(m)
  local rows = 1
  while rows < math.min(m, MOST_ROWS) do rows = 2 * rows end
  return rows
end

local function plan(o)
  local p = {name = "gemm_dot", m = 8, b_major = "k", count = 4, warps = {1, 8},
             unroll = 2}
  rules.options("gemm_dot", o, OPTIONS)
  for name, v in pairs(o) do p[name] = v end
  rules.given("gemm_dot", p, "m", "n", "k")
  rules.integers("gemm_dot", p, {"count", "unroll"}, 1, 16)
  rules.need(p.b_major == "k" or p.b_major == "n", "gemm_dot",
    "b_major = %s; \"k\" or \"n\" is needed", core.show(p.b_major))
  local by_columns = p.b_major == "n"
  rules.need(p.k % EACH == 0, "gemm_dot", "K is %d; multiples of %d are needed",
             p.k, EACH)
  rules.need(not by_columns or p.n % EACH == 0 and p.count == EACH, "gemm_dot",
    "N is %d and count %d with b_major = \"n\"; a multiple of 4, and 4 are "
    .. "needed", p.n, p.count)
  -- `lanes` is the number of lanes that divide K, and `run` the number of
  -- elements of K in a run.
  p.lanes = by_columns and 4 or LANES
  p.run = p.lanes * EACH
  p.rows = p.rows or rows_for(p.m)
  rules.integers("gemm_dot", p, {"rows"}, 1, MOST_ROWS)
  rules.need(is_power(p.rows) and is_power(p.count), "gemm_dot",
    "rows = %d and count = %d; powers of 2 are needed", p.rows, p.count)
  local across, along = p.warps[1], p.warps[2]
  p.block = LANES * across * along
  rules.need(is_power(across) and is_power(along) and p.block <= 1024,
    "gemm_dot", "warps = {%d, %d}; powers of 2 are needed, at most 32 warps",
    across, along)
  p.tile = {p.rows, across * p.count * LANES // p.lanes}
  -- Arranges the threads that store D so that neighbouring threads have
  -- neighbouring columns.
  local high = math.min(p.rows, p.block // p.tile[2])
  p.out = cute.make_tiled_mma(FMA, cute.make_layout({high, p.tile[2], 1},
                                                    {p.tile[2], 1, 0}))
  return p
end

local gemm_dot = {}

-- Configurations {count, warps along N, warps along K, unroll}, measured on an
-- H200. Each is the fastest for some problem.
local CHOICES = {
  {2, 1, 8, 4}, {4, 1, 8, 1}, {4, 1, 8, 2}, {4, 1, 16, 1}, {8, 1, 4, 1},
  {8, 1, 8, 1}, {8, 2, 4, 1},
}
-- For B with contiguous columns: the best number of runs that a warp keeps in
-- flight, by the number of rows of A.
local UNROLL = {[1] = 2, [2] = 2, [4] = 1, [8] = 2, [16] = 1}

-- Returns the configurations for `rows` rows of A.
local function choices(rows, b_major)
  if b_major == "n" then return {{4, 1, 16, UNROLL[rows]}} end
  return CHOICES
end

--- Returns the candidates for a product (m,k) x (n,k)^T: a list of {options,
-- tile, seconds = time estimated for an H200}.
---@param m integer
---@param n integer
---@param k integer
---@param o {sms: integer, batches: integer?, b_major: string?}
function gemm_dot.candidates(m, n, k, o)
  local list = {}
  for _, choice in ipairs(choices(rows_for(m), o.b_major)) do
    local count, across, along, unroll = table.unpack(choice)
    local options = {m = m, n = n, k = k, b_major = o.b_major, count = count,
                     warps = {across, along}, unroll = unroll}
    local p = plan(options)
    list[#list + 1] = {tile = p.tile, options = options,
      seconds = model.time(p, o.batches or 1, o.sms)}
  end
  return list
end

--- Returns a kernel with arguments (A, B, D, ...) for a matrix B of (n,k), as a
-- table with the fields plan, kernel, block, mma, tile, grid(m, batches).
---@param o table {n: integer, k: integer, m: integer?, b_major: string?,
-- count: integer?, rows: integer?, warps: integer[]?, unroll: integer?,
-- name: string?, min_blocks: integer?, epilogue: function?, pdl: boolean?}
-- m: the intended number of rows of A; b_major: "k" (when absent), or "n" if
-- the columns of B are contiguous; rows: rows of A in a block, a power of
-- 2 (the least for m, at most 16, when absent); count: rows of B for each warp,
-- a power of 2; warps: {number along N, number along K}; unroll: see above;
-- epilogue: like that of gemm_sm80; pdl: for dependent launches
setmetatable(gemm_dot, {__call = function(_, o)
  local p = plan(o)
  return {plan = p, block = p.block, mma = p.out, tile = p.tile,
    scratch = function() end,
    grid = function(m, batches)
      return {tiles.count(m or p.m, p.rows) * tiles.count(p.n, p.tile[2]),
              batches or 1, 1}
    end,
    kernel = cute.kernel(p.name, {min_blocks = p.min_blocks},
      function(A, B, D, ...)
        if p.pdl then cute.arch.griddepcontrol_wait() end
        body(p, A, B, D, ...)
      end)}
end})

return sign.module("kernels.gemm_dot", gemm_dot)
-- SPDX-License-Identifier: MIT
