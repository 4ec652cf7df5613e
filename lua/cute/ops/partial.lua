--- Computes reductions of an epilogue over the elements of a tile, always in
-- the same order.
--
-- Each thread reduces its elements of a row (or of a column, or of the whole
-- tile). Lanes with elements of the same row combine their values by shuffles.
-- Warps and blocks store partial results side by side in memory, and a second
-- kernel reduces them. No atomics are used.
local cute = require "cute"
local operations = require "kernels.reduce_tensor"
local tiles = require "cute.tiles"

local partial = {}

partial.OPS = operations.OPS
partial.NAMES = "sum mean prod max min amax norm rms"

---------------------------------------------------------------------------
-- Elements of threads
---------------------------------------------------------------------------

-- Describes which elements of an MMA's tile each thread has. `values` has the
-- coordinates of a thread's elements relative to its first one. `bits` has an
-- entry for each bit of the thread index, which says how the first element
-- moves if the bit is set: "row" (within the same row), "col" (within the same
-- column), or "far" (to another row and column). `even` is true if the first
-- elements of all threads are in even columns.
local function spread(mma, tile)
  local id = cute.make_identity_tensor {tile[1], tile[2]}
  local function part(t) return tiles.partition_C(mma, t)(id) end
  local mine = part(0)
  local base, out = mine[0], {values = {}, bits = {}}
  out.even = base[2] % 2 == 0
  for i = 0, cute.size(mine) - 1 do
    local c = mine[i]
    out.values[i] = {c[1] - base[1], c[2] - base[2]}
  end
  local bit = 0
  while 1 << bit < mma:size() do
    local c = part(1 << bit)[0]
    out.bits[bit] = c[1] == base[1] and "row" or c[2] == base[2] and "col"
      or "far"
    out.even = out.even and c[2] % 2 == 0
    bit = bit + 1
  end
  return out
end

local function mates(way, kind) return kind == "all" or way == kind end

-- Returns the number of warps that share each row of a tile (each column for
-- "col", the whole tile for "all").
local function warps(s, kind)
  local n = 1
  for bit, k in pairs(s.bits) do
    if bit >= 5 and mates(k, kind) then n = 2 * n end
  end
  return n
end

--- Returns the extents of the memory for a reduction's partial results: the
-- number of results, and the number of partial results of each.
---@param how {mma: any, tile: integer[], m: integer, n: integer, l: integer} m,
-- n and l are the extents of the kernel's result
---@param kind string "row", "col" or "all" of the kernel's result, which may be
-- D^T
function partial.extents(how, kind)
  local each = warps(spread(how.mma, how.tile), kind)
  local tm = tiles.count(how.m, how.tile[1])
  local tn = tiles.count(how.n, how.tile[2])
  if kind == "row" then return how.m, tn * each end
  if kind == "col" then return how.n, tm * each end
  return 1, tm * tn * each
end

--- Returns the coordinates of a thread's elements in the kernel's result, as a
-- tensor (MMA,M,N). C is an object of tiles.result.
function partial.coordinates(C)
  return tiles.partition_C(C.mma, C.thread)(cute.local_tile(
    cute.make_identity_tensor {C.tensor.shape[1], C.tensor.shape[2]}, C.tile,
    C.at))
end

--- Reports whether elements 2 i and 2 i + 1 of a thread are always in columns 2
-- j and 2 j + 1 of the same row.
function partial.paired(C)
  local s = spread(C.mma, C.tile)
  local even = s.even and C.tile[2] % 2 == 0 and #s.values % 2 == 1
  for i = 0, #s.values - 1, 2 do
    local a, b = s.values[i], s.values[i + 1]
    even = even and a[2] % 2 == 0 and b[1] == a[1] and b[2] == a[2] + 1
  end
  return even
end

---------------------------------------------------------------------------
-- In the kernel
---------------------------------------------------------------------------

-- Groups the n elements of a thread's vector by row, by column, or into one
-- group. Returns one list of element indices for each group.
local function groups_of(s, kind, n)
  local list, by = {}, {}
  for i = 0, n - 1 do
    local key = kind == "all" and 0 or s.values[i][kind == "row" and 1 or 2]
    if not by[key] then
      by[key] = {}
      list[#list + 1] = by[key]
    end
    table.insert(by[key], i)
  end
  return list
end

-- Returns the condition that element i is inside D along the reduced modes.
-- Returns nil if the condition always holds.
local function inside(C, crd, kind, i)
  local M, N = C.tensor.shape[1], C.tensor.shape[2]
  local ok
  if kind ~= "col" and not tiles.divides(C.tile[2], N) then
    ok = cute.lt(crd[i][2], N)
  end
  if kind ~= "row" and not tiles.divides(C.tile[1], M) then
    local below = cute.lt(crd[i][1], M)
    ok = ok and ok & below or below
  end
  return ok
end

-- Reduces the elements of one group (a row, a column, or all) over this thread
-- and all lanes that have elements of this group. Returns the result.
local function fold(C, s, crd, kind, op, r, group)
  local sum
  for _, i in ipairs(group) do
    local x = op.from and op.from(r[i], cute.f32) or r[i]
    if op.map then x = op.map(x) end
    local ok = inside(C, crd, kind, i)
    if ok then x = cute.where(ok, x, op.init) end
    sum = sum and op.of(sum, x) or x
  end
  for bit = 0, 4 do
    if mates(s.bits[bit], kind) then
      sum = op.of(sum, cute.arch.shuffle_sync_bfly(sum, 1 << bit))
    end
  end
  return sum
end

-- Returns the condition that this thread stores the result (it is the first of
-- the lanes that share the result), and the index of the partial result that it
-- stores. The third result is the number of tiles if kind is "all", else false.
local function part_of(C, s, kind)
  local tid, lanes, part, n = C.thread, 0, 0, 1
  for bit = 0, 31 do
    local k = s.bits[bit]
    if k and mates(k, kind) then
      if bit < 5 then lanes = lanes | 1 << bit
      else
        part = part + ((tid >> bit) & 1) * n
        n = 2 * n
      end
    end
  end
  local tm = tiles.count(C.tensor.shape[1], C.tile[1])
  local tn = tiles.count(C.tensor.shape[2], C.tile[2])
  local tile = kind == "row" and C.at[2] or kind == "col" and C.at[1]
    or C.at[2] * tm + C.at[1]
  return cute.eq(tid & lanes, 0), tile * n + part, kind == "all" and tm * tn
end

--- Stores the partial results of a reduction of vector x in P, an f32 tensor
-- (rows, parts, l) with the extents of partial.extents. C is the object of
-- tiles.result for this tile.
function partial.leave(C, kind, name, x, P, l)
  local op, s = partial.OPS[name], spread(C.mma, C.tile)
  local r = cute.make_rmem_tensor(x.shape, cute.f32)
  r:store(x:to(cute.f32))
  local crd = partial.coordinates(C)
  local first, part = part_of(C, s, kind)
  for _, group in ipairs(groups_of(s, kind, cute.size(x.shape))) do
    local sum = fold(C, s, crd, kind, op, r, group)
    local mode = kind == "row" and 1 or 2
    local row = kind == "all" and 0 or crd[group[1]][mode]
    local ok = first
    if kind ~= "all" and not tiles.divides(C.tile[mode], C.tensor.shape[mode])
    then
      ok = ok & cute.lt(row, C.tensor.shape[mode])
    end
    cute.when(ok, function() P[{row, part, l}] = sum end)
  end
end

---------------------------------------------------------------------------
-- Reducing the partial results
---------------------------------------------------------------------------

local BLOCK, MOST = 128, 64

-- Returns a kernel of (P, Y) that computes Y (rows, l): it reduces the partial
-- results P (rows, parts, l) with the operation `name`. `limit` is the number
-- of valid elements, if P has more. In the last step of a reduction, `n` is the
-- number of elements that each result combines. `pdl` is true for programmatic
-- dependent launches.
local function folder(name, limit, n, pdl)
  local op = partial.OPS[name]
  return cute.kernel("fold_" .. name, {block = BLOCK}, function(P, Y)
    if pdl then cute.arch.griddepcontrol_wait() end
    local block, l = cute.arch.block_idx()
    local rows = P.shape[1]
    local row = block * BLOCK + cute.arch.thread_idx()
    cute.when(cute.lt(row, rows), function()
      local sum = op.init + 0.0
      for i in cute.range(0, P.shape[2], 1, {unroll = 8}) do
        if limit then
          cute.when(cute.lt(i * rows + row, limit), function()
            sum = op.of(sum, P[{row, i, l}])
          end)
        else
          sum = op.of(sum, P[{row, i, l}])
        end
      end
      Y[{row, l}] = n and op.after and op.after(sum, n) or sum
    end)
  end)
end

--- Returns the steps (see cute.ops.calls) that reduce the partial results of a
-- result r {op, count, all, rows, parts}: a list of {kernel, P, Y, grid, block,
-- ready}. P and Y are layouts in the memory of the partial results. If Y is
-- nil, the step stores to the result itself, (rows, l). A reduction to one
-- number takes several steps that work in place, because in a single step few
-- threads would wait for many loads.
function partial.folds(r, batches, pdl)
  if not r.all then
    return {{kernel = folder(r.op, nil, r.count, pdl), block = BLOCK,
             ready = {}, pdl = pdl,
             P = cute.make_layout {r.rows, r.parts, batches},
             grid = {tiles.count(r.rows, BLOCK), batches, 1}}}
  end
  local n, list = r.parts * batches, {}
  repeat
    local rows = n > MOST and tiles.count(n, MOST) or 1
    local each = tiles.count(n, rows)
    list[#list + 1] = {block = BLOCK, grid = {tiles.count(rows, BLOCK), 1, 1},
      kernel = folder(r.op, each * rows > n and n, rows == 1 and r.count, pdl),
      ready = {}, pdl = pdl,
      P = cute.make_layout({rows, each, 1}, {1, rows, 0}),
      Y = rows > 1 and cute.make_layout({rows, 1}) or nil}
    n = rows
  until n == 1
  return list
end

return partial
-- SPDX-License-Identifier: MIT
