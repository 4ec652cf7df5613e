--- The first and the last kernel of kernels/attention_bwd_sm90. They run before
-- and after the main kernel, with a block for each tile of rows.
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
-- of a head in one batch or, with cu, in all sequences.
local function find(o, cu, place, b, X)
  if not cu then
    return sequences.part(nil, b, cute.size(X, 1)), place
  end
  return sequences.find(cu, place, cute.size(X, 0), o.tile[1])
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
    local part, m = find(o, cu_q, place, b, O)
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

--- Returns the function of the last kernel, (acc, dQ, scale, cu_q). It converts
-- the accumulators acc to dQ.
function edges.behind(o)
  local M, D = o.tile[1], o.head // o.slices
  local mma, l = parts.mmas(o).dq, parts.layouts(o)
  local is_turned = o.divided == "turned"
  return function(acc, dQ, scale, cu_q)
    local tid = cute.arch.thread_idx()
    local place, h, b = cute.arch.block_idx()
    local part, m = find(o, cu_q, place // o.slices, b, dQ)
    local slice = place % o.slices
    local rows, heads = cute.arch.grid_dim()
    local s = cute.make_smem_tensor(o.dtype, l.dq, 1024)
    local sums = cute.make_rmem_tensor(
      mma:partition_shape_C(parts.extents(o)), cute.f32)
    local runs = parts.runs(o, acc(cute._, cute._,
      ((b * heads + h) * rows + place) * o.pieces), tid, 1)(cute._, cute._, 0)
    cute.autovec_copy(runs, cute.make_tensor(sums.iterator,
                                             cute.make_layout(runs.shape)))
    local out = cute.make_fragment_like(sums, o.dtype)
    out:store((sums:load() * scale):to(o.dtype))
    local atom = cute.make_copy_atom(is_turned and "SM90_U16x8_STSM_T"
      or "SM90_U32x4_STSM_N", o.dtype)
    local r2s = cute.make_tiled_copy_C(atom, mma):get_slice(tid)
    local to = is_turned and parts.view(s, l.turned.dq) or s
    cute.copy(atom, r2s:retile(out), r2s:partition_D(to)(cute._, cute._,
                                                         cute._, 0))
    cute.arch.sync_threads()
    local wide = D // 8
    local X = flash.head(dQ, part.b, h, cu_q, true)
    local from = cute.zipped_divide(s(cute._, cute._, 0), {1, 8})
    for i = 0, M * wide // (128 * o.sharers) - 1 do
      local e = i * 128 * o.sharers + tid
      local at, vector = e // wide, e % wide
      local row = m * M + at
      cute.when(cute.lt(row, cute.size(X, 0)), function()
        local r = cute.make_rmem_tensor({8}, o.dtype)
        cute.autovec_copy(from(cute._, {at, vector}), r)
        cute.autovec_copy(r, cute.local_tile(X(row, cute._), {8},
                                             {slice * wide + vector}))
      end)
    end
  end
end

return edges
-- SPDX-License-Identifier: MIT
