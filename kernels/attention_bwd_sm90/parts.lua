--- The layouts and MMAs of kernels/attention_bwd_sm90.
--
-- Scores and their gradients are transposed, (keys,rows): each consumer has 64
-- keys. The powers P^T and the gradients dS^T are left operands in registers of
-- the products with dO and Q. dQ is divided among the consumers: by rows, by
-- elements of D, or transposed.
local cute = require "cute"

local warpgroup = cute.nvgpu.warpgroup

local parts = {}

-- Returns the widest swizzle for rows of `columns` elements that are divided
-- into `shares`.
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

--- Returns the layouts in shared memory: k and v (N,D,1); q and g, of dO,
-- (M,D,PIPE); s, of dS, (M,N,PIPE); acc, of a tile of dQ. turned has those with
-- transposed modes.
function parts.layouts(o)
  local M, N, D = o.tile[1], o.tile[2], o.head
  -- Consumers that divide D multiply parts of rows of K.
  local shares = o.divided == "columns" and o.consumers or 1
  local function both(make)
    return {k = make(o, N, D, 1, shares), q = make(o, M, D, o.stages, 1),
            g = make(o, M, D, o.do_stages, 1), dq = make(o, M, D, 1, shares),
            s = make(o, M, N, o.ds_stages, 1)}
  end
  local l = both(stages)
  l.turned = both(turned)
  l.acc = cute.make_layout {256, M * D // 256, 1}
  return l
end

--- Returns a view of tiles s in shared memory with another layout. Both layouts
-- have the same swizzle, which s's iterator contains.
function parts.view(s, layout)
  return cute.make_tensor(s.iterator, cute.get_nonswizzle_portion(layout))
end

--- Returns the MMAs of the scores, of the gradients of K and V, and of dQ.
function parts.mmas(o)
  local M, D, n = o.tile[1], o.head, o.consumers
  local function mma(columns, source, a, b, groups)
    return cute.make_tiled_mma(warpgroup.MmaF16BF16Op(o.dtype, cute.f32,
      {64, columns, 16}, source, a, b), cute.make_layout(groups))
  end
  local m = {scores = mma(M, "SMEM", "K", "K", {n, 1, 1}),
             keys = mma(D, "RMEM", "K", "MN", {n, 1, 1})}
  if o.divided == "rows" then
    m.dq = mma(D, "SMEM", "K", "MN", {n, 1, 1})
  elseif o.divided == "columns" then
    m.dq = mma(D // n, "SMEM", "K", "MN", {1, n, 1})
  else
    m.dq = mma(M, "SMEM", "MN", "K", {n, 1, 1})
  end
  return m
end

--- Returns the extents of dQ's product: {M, D}, or {D, M} if it is transposed.
function parts.extents(o)
  if o.divided == "turned" then return {o.head, o.tile[1]} end
  return {o.tile[1], o.head}
end

--- Returns this thread's part of a tile of accumulators of dQ, in shared or
-- global memory: (4,R) for R runs of four. Runs of a warp are consecutive.
function parts.runs(o, t, tid)
  local threads = 128 * o.consumers
  local all = cute.make_tensor(t.iterator, cute.make_layout(
    {4, threads, o.tile[1] * o.head // (4 * threads)}, {1, 4, 4 * threads}))
  return all(cute._, tid, cute._)
end

return parts
-- SPDX-License-Identifier: MIT
