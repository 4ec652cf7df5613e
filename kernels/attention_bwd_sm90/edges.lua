--- The kernels of kernels/attention_bwd_sm90 that run before and after the main
-- kernel, with a block for each tile of rows (or of keys, for dK and dV).
local cute = require "cute"
local flash = require "kernels.flash"
local parts = require "kernels.attention_bwd_sm90.parts"
local sequences = require "kernels.attention_bwd_sm90.sequences"

local edges = {}

-- Returns this lane's part of the sum of O dO of a row. `lanes` lanes share the
-- row.
local function product(O, dO, row, lane, lanes)
  local function vectors(t) return cute.zipped_divide(t(row, cute._), {8}) end
  local a, b, sum = vectors(O), vectors(dO), 0.0
  for i = 0, cute.size(a, 1) // lanes - 1 do
    local function part(t)
      return t(cute._, i * lanes + lane):load():to(cute.f32)
    end
    sum = sum + (part(a) * part(b)):reduce("add", 0.0)
  end
  return sum
end

-- The number of threads in a block of the first kernel.
edges.THREADS = 256

-- Sets a tile of dQ's f32 accumulators in global memory to 0.
local function clear(acc, tid)
  local four = cute.make_rmem_tensor({4}, cute.f32)
  four:fill(0)
  local runs = cute.zipped_divide(acc, {4})  -- (4,runs)
  for i = 0, cute.size(runs, 1) // edges.THREADS - 1 do
    cute.autovec_copy(four, runs(cute._, i * edges.THREADS + tid))
  end
end

-- Returns two values: this block's sequence (sequences.part), and the index of
-- the block's tile in the sequence. `place` is the tile's index among the tiles
-- of a head in one batch or, with cu, in all sequences. A tile has `size` rows.
local function find(cu, place, b, X, size)
  if not cu then
    return sequences.part(nil, b, cute.size(X, 1)), place
  end
  return sequences.find(cu, place, cute.size(X, 0), size)
end

--- Returns the function of the first kernel: (O, dO, LSE, logs, delta, acc,
-- turns, cu_q). It stores each row's sum of O dO to delta, and its LSE in base
-- 2 to logs. For rows that see no key, and for rows after the last one, it
-- stores infinity to logs. If acc (the accumulators of dQ) or turns (the
-- counters of the blocks' turns) is given, the kernel sets it to 0.
function edges.before(o)
  local M = o.tile[1]
  local lanes = o.head == 96 and 4 or 8
  local at_once = edges.THREADS // lanes
  return function(O, dO, LSE, logs, delta, acc, turns, cu_q)
    local tid = cute.arch.thread_idx()
    local place, h, b = cute.arch.block_idx()
    local part, m = find(cu_q, place, b, O, M)
    local S, lane = part.rows, tid % lanes
    local one, other = flash.head(O, part.b, h, cu_q, true),
      flash.head(dO, part.b, h, cu_q, true)
    local lse = flash.numbers(LSE, part.b, h, cu_q, true)
    for i = 0, (M + at_once - 1) // at_once - 1 do
      local at = i * at_once + tid // lanes
      local row = m * M + at
      local sum, log = 0.0, math.huge
      cute.when(cute.lt(row, S) & cute.lt(at, M), function()
        sum = product(one, other, row, lane, lanes)
        local x = lse[row]
        log = cute.where(cute.eq(x, -math.huge), math.huge, x * flash.LOG2E)
      end)
      -- If the compiler knows that the row does not exist, the sum is still the
      -- Lua number 0 and needs no reduction.
      if type(sum) ~= "number" then
        for j = 0, lanes == 4 and 1 or 2 do
          sum = sum + cute.arch.shuffle_sync_bfly(sum, 1 << j)
        end
      end
      cute.when(cute.eq(lane, 0) & cute.lt(at, M), function()
        local to = {place * M + at, h, b}
        delta[to], logs[to] = sum, log
      end)
    end
    local rows, heads = cute.arch.grid_dim()
    local tile = (b * heads + h) * rows + place
    local n = o.slices * o.pieces
    for i = 0, acc and n - 1 or -1 do
      clear(cute.group_modes(acc(cute._, cute._, tile * n + i), 0, 2),
            tid)
    end
    if turns then
      cute.when(cute.eq(tid, 0), function()
        turns[tile + 1] = 0
        cute.when(cute.eq(tile, 0), function() turns[0] = 0 end)
      end)
    end
  end
end

-- Converts accumulators to 16 bits, and stores them to X (rows,D) from a row
-- and a column on. `sums` has this thread's accumulators of t, a tile of t.rows
-- rows and t.columns columns: the result of the product t.mma with the extents
-- t.extents. t.smem is the tile's layout in shared memory, and t.turned the
-- transposed one if the product is transposed.
local function store(o, t, tid, sums, X, row, column)
  local threads = 128 * o.sharers
  local s = cute.make_smem_tensor(o.dtype, t.smem, 1024)
  local out = cute.make_fragment_like(sums, o.dtype)
  out:store(sums:load():to(o.dtype))
  local atom = cute.make_copy_atom(t.turned and "SM90_U16x8_STSM_T"
    or "SM90_U32x4_STSM_N", o.dtype)
  local r2s = cute.make_tiled_copy_C(atom, t.mma):get_slice(tid)
  local to = t.turned and parts.view(s, t.turned) or s
  cute.copy(atom, r2s:retile(out), r2s:partition_D(to)(cute._, cute._, cute._,
                                                       0))
  cute.arch.sync_threads()
  local wide = t.columns // 8
  local from = cute.zipped_divide(s(cute._, cute._, 0), {1, 8})
  for i = 0, t.rows * wide // threads - 1 do
    local e = i * threads + tid
    local at, vector = e // wide, e % wide
    cute.when(cute.lt(row + at, cute.size(X, 0)), function()
      local r = cute.make_rmem_tensor({8}, o.dtype)
      cute.autovec_copy(from(cute._, {at, vector}), r)
      cute.autovec_copy(r, cute.local_tile(X(row + at, cute._), {8},
                                           {column // 8 + vector}))
    end)
  end
end

-- Returns registers for accumulators of the product t.mma (see store).
local function registers(t)
  return cute.make_rmem_tensor(t.mma:partition_shape_C(t.extents), cute.f32)
end

--- Returns the function of the third kernel, (acc, dQ, scale, cu_q). It
-- converts the accumulators acc to dQ.
function edges.dq(o)
  local l = parts.layouts(o)
  local t = {rows = o.tile[1], columns = o.head // o.slices, smem = l.dq,
             mma = parts.mmas(o).dq, extents = parts.extents(o),
             turned = o.divided == "turned" and l.turned.dq or nil}
  return function(acc, dQ, scale, cu_q)
    local tid = cute.arch.thread_idx()
    local place, h, b = cute.arch.block_idx()
    local part, m = find(cu_q, place // o.slices, b, dQ, t.rows)
    local rows, heads = cute.arch.grid_dim()
    local sums = registers(t)
    local runs = parts.runs(o, acc(cute._, cute._,
      ((b * heads + h) * rows + place) * o.pieces), tid, 1)(cute._, cute._, 0)
    cute.autovec_copy(runs, cute.make_tensor(sums.iterator,
                                             cute.make_layout(runs.shape)))
    sums:store(sums:load() * scale)
    store(o, t, tid, sums, flash.head(dQ, part.b, h, cu_q, true), m * t.rows,
          place % o.slices * t.columns)
  end
end

--- Returns the function of the fourth kernel, (sums, dK, dV, scale, cu_k). It
-- adds the accumulators `sums` (parts.key_sums) of the blocks that shared a
-- tile of keys, and converts them to dK and dV. Even blocks compute dK, and odd
-- blocks compute dV.
function edges.dkv(o)
  local l = parts.layouts(o)
  local t = {rows = o.tile[2], columns = o.head, smem = l.k,
             mma = parts.mmas(o).keys, extents = parts.key_extents(o),
             turned = o.wide and l.turned.k or nil}
  -- Adds and converts the accumulators first, first + 2, ... of `sums`. Stores
  -- the result to X (rows,D) from `row` on.
  local function convert(sums, first, factor, X, row)
    local tid = cute.arch.thread_idx()
    local all, one = registers(t), registers(t)
    all:fill(0)
    for i in cute.range(o.splits) do
      local from = sums(cute._, tid, cute._, first + 2 * i)
      cute.autovec_copy(from, cute.make_tensor(one.iterator,
                                               cute.make_layout(from.shape)))
      all:store(all:load() + one:load())
    end
    if factor then all:store(all:load() * factor) end
    store(o, t, tid, all, X, row, 0)
  end
  return function(sums, dK, dV, scale, cu_k)
    local place, g, b = cute.arch.block_idx()
    local count, heads = cute.arch.grid_dim()
    local n = place // 2
    local part, at = find(cu_k, n, b, dK, t.rows)
    local first = ((b * heads + g) * (count // 2) + n) * o.splits * 2
    local row = at * t.rows
    local function body()
      cute.when(cute.eq(place % 2, 0), function()
        convert(sums, first, scale, flash.head(dK, part.b, g, cu_k, true), row)
      end, function()
        convert(sums, first + 1, nil, flash.head(dV, part.b, g, cu_k, true),
                row)
      end)
    end
    if cu_k then cute.when(cute.lt(row, part.rows), body) else body() end
  end
end

return edges
-- SPDX-License-Identifier: MIT
