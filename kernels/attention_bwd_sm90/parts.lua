--- The layouts and MMAs of kernels/attention_bwd_sm90.
--
-- The consumers divide dQ among them in one of three ways (o.divided): by rows;
-- by elements of D ("columns"); or, transposed, by elements of D ("turned").
local cute = require "cute"

local warpgroup = cute.nvgpu.warpgroup

local parts = {}

-- Returns the widest swizzle for rows of `columns` elements that are divided
-- into `shares` equal parts.
local function swizzle(columns, shares)
  local n = columns // shares
  return n % 64 == 0 and "SW128" or n % 32 == 0 and "SW64" or "SW32"
end

-- Returns the layout of tiles (rows,columns,PIPE) with contiguous rows.
local function stages(o, rows, columns, count, shares)
  local kind = "K_" .. swizzle(columns, shares)
  return cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, o.dtype),
                            {rows, columns, count}, {0, 1, 2})
end

-- Returns the layout of stages() with transposed modes: (columns,rows,PIPE).
local function turned(o, rows, columns, count, shares)
  local kind = "MN_" .. swizzle(columns, shares)
  return cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, o.dtype),
                            {columns, rows, count}, {1, 0, 2})
end

--- Returns the layouts of the tiles in shared memory, by field:
-- - k, also for v: (N,D,1)
-- - q, and g for dO: (M,D,PIPE)
-- - s for P and dS: (M,N,PIPE), or (N,M,PIPE) for wide heads
-- - dq for the part of dQ that one reduction adds: (M,D,1)
-- - acc for the accumulators of that part: (256,n,PIPE)
-- The field `turned` has the same layouts with transposed modes.
function parts.layouts(o)
  local M, N, D = o.tile[1], o.tile[2], o.head
  -- If consumers divide dQ by columns, each multiplies a part of each row of K.
  local shares = o.divided == "columns" and o.sharers or 1
  local function both(make)
    return {k = make(o, N, D, 1, shares * o.slices),
      q = make(o, M, D, o.stages, 1), g = make(o, M, D, o.do_stages, 1),
      dq = make(o, M, D // o.slices, 1, shares),
      s = make(o, o.wide and N or M, o.wide and M or N, o.ds_stages, 1)}
  end
  local l = both(stages)
  l.turned = both(turned)
  l.acc = cute.make_layout {256, M * D // o.slices // 256 // o.pieces,
                            o.sum_stages}
  return l
end

--- Returns a view of tiles s in shared memory with another layout. Both layouts
-- have the same swizzle, which s's iterator contains.
function parts.view(s, layout)
  return cute.make_tensor(s.iterator, cute.get_nonswizzle_portion(layout))
end

-- Returns the MMAs for wide heads, like parts.mmas.
local function wide_mmas(o, mma)
  local n = o.sharers
  return {scores = mma(o.tile[2] // n, "SMEM", "K", "K", {1, n, 1}),
    keys = mma(o.tile[2], "SMEM", "MN", "K", {n, 1, 1}),
    dq = mma(o.head // o.slices // n, "SMEM", "MN", "MN", {1, n, 1})}
end

--- Returns the MMAs by name: scores, keys (the gradients of K and V), and dq.
function parts.mmas(o)
  local M, D, n = o.tile[1], o.head, o.sharers
  local function mma(columns, source, a, b, groups)
    return cute.make_tiled_mma(warpgroup.MmaF16BF16Op(o.dtype, cute.f32,
      {64, columns, 16}, source, a, b), cute.make_layout(groups))
  end
  local m = o.wide and wide_mmas(o, mma)
    or {scores = mma(M, "SMEM", "K", "K", {n, 1, 1}),
        keys = mma(math.min(D, 128), "RMEM", "K", "MN", {n, 1, 1}),
        dq = o.divided == "rows" and mma(D, "SMEM", "K", "MN", {n, 1, 1})
          or o.divided == "columns"
            and mma(D // o.slices // n, "SMEM", "K", "MN", {1, n, 1})
          or mma(M, "SMEM", "MN", "K", {n, 1, 1})}
  return m
end

--- Makes accumulators of a product of M rows and N columns.
function parts.accumulators(mma, M, N)
  return cute.make_rmem_tensor(mma:partition_shape_C {M, N}, cute.f32)
end

--- Issues the product of a and b as a separate wgmma group. Returns acc, the
-- accumulators.
function parts.request(mma, acc, a, b)
  warpgroup.fence()
  cute.gemm(mma, acc, a, b, acc)
  warpgroup.commit_group()
  return acc
end

--- Returns the extents of a product that computes a slice of dQ: {M, D}, or {D,
-- M} if it is transposed.
function parts.extents(o)
  if o.divided == "turned" then return {o.head, o.tile[1]} end
  return {o.tile[1], o.head // o.slices}
end

--- Returns the extents of the products for dK and dV: {N, D}, or {D, N} if they
-- are transposed.
function parts.key_extents(o)
  if o.wide then return {o.head, o.tile[2]} end
  return {o.tile[2], o.head}
end

--- Returns a view of f32 accumulators: (4,threads,R,2 count) for dK and dV of
-- `count` tiles of keys. A thread has R runs of four accumulators of each.
function parts.key_sums(o, t, count)
  local threads, size = 128 * o.sharers, o.tile[2] * o.head
  return cute.make_tensor(t.iterator, cute.make_layout(
    {4, threads, size // (4 * threads), 2 * count}, {1, 4, 4 * threads, size}))
end

--- Returns the part of t that belongs to this thread: (4,R,count), which is R
-- runs of four accumulators in each slice. t has `count` slices of accumulators
-- of dQ, or pieces of slices, one after another in shared or global memory. The
-- runs of neighbouring threads are adjacent.
---@param pieces? integer the number of pieces of a slice, 1 when absent
function parts.runs(o, t, tid, count, pieces)
  local threads = 128 * o.sharers
  local size = o.tile[1] * o.head // o.slices // (pieces or 1)
  local all = cute.make_tensor(t.iterator, cute.make_layout(
    {4, threads, size // (4 * threads), count}, {1, 4, 4 * threads, size}))
  return all(cute._, tid, cute._, cute._)
end

return parts
-- SPDX-License-Identifier: MIT
