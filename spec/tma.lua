--- Helpers for specs of TMA: kernels that copy tiles through tensor maps, and
-- comparisons of their results, element by element.
local core = require "cute.core"
local cute = require "cute"

local tma = {}

local _ = cute._
local cpasync = cute.nvgpu.cpasync
tma.THREADS = 128

-- Returns the shared tile with all its modes grouped into mode 0.
local function flat(s) return cute.group_modes(s, 0, cute.rank(s)) end

-- Divides a tensor of coordinates into boxes, which are tiles.
local function tiles_of(coords, tile)
  return cute.zipped_divide(coords, tile)
end

-- Makes an mbarrier with `count` arrivals in shared memory. One thread
-- initializes it, and all threads wait for the initialization.
local function barrier(count)
  local bar = cute.arch.alloc_smem(cute.i64, 1)
  cute.when(cute.arch.thread_idx():eq(0), function()
    cute.arch.mbarrier_init(bar, count)
    cute.arch.mbarrier_init_fence()
  end)
  cute.arch.sync_threads()
  return bar
end

--- Returns the function of a kernel with the arguments (atom, coords, out).
-- Each block loads the tile with the block's number into shared memory, and
-- copies it to column `block` of out.
---@param tile integer[]
---@param layout table the layout of the tile in shared memory
function tma.load(tile, layout)
  return function(atom, coords, out)
    local tid, block = cute.arch.thread_idx(), cute.arch.block_idx()
    local s = cute.make_smem_tensor(out.dtype, layout, 1024)
    local bar = barrier(1)
    local ts, tg = cpasync.tma_partition(atom, 0, cute.make_layout(1), flat(s),
                                         tiles_of(coords, tile))
    cute.when(tid:eq(0), function()
      cpasync.prefetch_descriptor(atom)
      cute.arch.mbarrier_arrive_and_expect_tx(bar, atom.tx_bytes)
      cute.copy(atom, tg(_, block), ts, {tma_bar_ptr = bar})
    end)
    cute.arch.mbarrier_wait(bar, 0)
    for i in cute.range(tid, cute.size(layout), tma.THREADS) do
      out[{i, block}] = s(i)
    end
  end
end

--- Returns the function of a kernel in which each cluster of two CTAs loads one
-- tile: each CTA multicasts one half to both. Each CTA then copies the tile to
-- out(_, cluster, rank).
function tma.multicast(tile, layout, mask)
  return function(atom, coords, out)
    local tid, block = cute.arch.thread_idx(), cute.arch.block_idx()
    local rank = cute.arch.block_idx_in_cluster()
    local s = cute.make_smem_tensor(out.dtype, layout, 1024)
    local bar = barrier(1)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    local ts, tg = cpasync.tma_partition(atom, rank, cute.make_layout(2),
      flat(s), tiles_of(coords, tile))
    cute.when(tid:eq(0), function()
      cute.arch.mbarrier_arrive_and_expect_tx(bar, atom.tx_bytes)
      cute.copy(atom, tg(_, block // 2), ts,
                {tma_bar_ptr = bar, mcast_mask = mask or 3})
    end)
    cute.arch.mbarrier_wait(bar, 0)
    for i in cute.range(tid, cute.size(layout), tma.THREADS) do
      out[{i, block // 2, rank}] = s(i)
    end
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
  end
end

--- Returns the function of a kernel in which each block copies from(_, block)
-- to shared memory, and stores it as its tile of a tensor.
function tma.store(tile, layout, fence)
  return function(atom, coords, from)
    local tid, block = cute.arch.thread_idx(), cute.arch.block_idx()
    local s = cute.make_smem_tensor(from.dtype, layout, 1024)
    for i in cute.range(tid, cute.size(layout), tma.THREADS) do
      s[i] = from(i, block)
    end
    if fence ~= false then cute.arch.fence_view_async_shared() end
    cute.arch.sync_threads()
    local ts, tg = cpasync.tma_partition(atom, 0, cute.make_layout(1), flat(s),
                                         tiles_of(coords, tile))
    cute.when(tid:eq(0), function()
      cute.copy(atom, ts, tg(_, block))
      cute.arch.cp_async_bulk_commit_group()
      cute.arch.cp_async_bulk_wait_group(0)
    end)
  end
end

-- Calls f(coordinate, position in the tile, block) for all elements of all
-- tiles, with the first mode fastest. A coordinate may be out of bounds.
local function each(shape, tile, f)
  local at, c, block = {}, {}, 0
  local function inside(j, place, step)
    if j > #shape then return f(c, place, block) end
    for k = 0, tile[j] - 1 do
      c[j] = at[j] + k
      inside(j + 1, place + k * step, step * tile[j])
    end
  end
  local function blocks(i)
    if i == 0 then
      inside(1, 0, 1)
      block = block + 1
      return
    end
    for from = 0, shape[i] - 1, tile[i] do
      at[i] = from
      blocks(i - 1)
    end
  end
  blocks(#shape)
end

--- Cases {shape, tile} for ranks 1 to 5, with whole tiles and partial ones.
tma.CASES = {
  {{512}, {128}}, {{200}, {64}}, {{64, 48}, {32, 16}}, {{72, 45}, {32, 16}},
  {{64, 10, 6}, {32, 4, 3}}, {{40, 7, 5}, {16, 4, 2}},
  {{24, 5, 4, 3}, {16, 2, 2, 2}}, {{24, 5, 3, 2, 3}, {16, 2, 2, 1, 2}},
}

function tma.blocks(shape, tile)
  local n = 1
  for i = 1, #shape do n = n * ((shape[i] + tile[i] - 1) // tile[i]) end
  return n
end

--- Returns a tensor of this shape. Mode 0 is contiguous, and rows begin at
-- multiples of 16 bytes.
function tma.tensor(shape, dtype, f)
  local stride, n, pad = {}, 1, 128 // dtype.bits
  for i, extent in ipairs(shape) do
    stride[i] = n
    n = n * extent
    if i == 1 and #shape > 1 then n = (n + pad - 1) // pad * pad end
  end
  local buffer = cute.zeros({n}, dtype)
  local t = cute.make_tensor(buffer.iterator, cute.make_layout(shape, stride))
  if f then for i = 0, cute.size(t) - 1 do t[i] = f(i) end end
  return t
end

local function inside(c, shape)
  for i, x in ipairs(c) do if x >= shape[i] then return false end end
  return true
end

--- Returns the number of elements of `out` that differ from the tiles of x, and
-- the first one.
function tma.load_faults(x, out, shape, tile)
  local wrong, first = 0, nil
  each(shape, tile, function(c, place, block)
    local want = inside(c, shape) and x(table.unpack(c)) or 0
    if out[{place, block}] ~= want then
      wrong = wrong + 1
      first = first or ("%s of block %d: %s, not %s"):format(
        table.concat(c, ","), block, out[{place, block}], want)
    end
  end)
  return wrong, first
end

--- Returns the number of elements of y that are wrong after a store, and the
-- first one. f combines the previous value of an element (`was`) and the stored
-- value.
function tma.store_faults(y, from, shape, tile, f)
  local wrong, first = 0, nil
  each(shape, tile, function(c, place, block)
    if not inside(c, shape) then return end
    local want = f(c, from[{place, block}])
    local got = y(table.unpack(c))
    if got ~= want then
      wrong = wrong + 1
      first = first or ("%s of block %d: %s, not %s"):format(
        table.concat(c, ","), block, got, want)
    end
  end)
  return wrong, first
end

--- Returns the function of a kernel with bulk copies without a tensor map: it
-- copies rows of a matrix to shared memory, to the other CTA of the cluster,
-- and back to global memory.
---@param n integer the number of f32 in a row
---@param rows integer the number of rows of a block
function tma.runs(n, rows)
  local load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)
  local send = cute.make_copy_atom(cpasync.CopyBulkS2SOp(), cute.f32)
  local store = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.f32)
  return function(x, y)
    local tid, block = cute.arch.thread_idx(), (cute.arch.block_idx())
    local rank = cute.arch.block_idx_in_cluster()
    local layout = cute.make_layout {n, rows}
    local a = cute.make_smem_tensor(cute.f32, layout, 128)
    local b = cute.make_smem_tensor(cute.f32, layout, 128)
    local came, sent = barrier(1), barrier(1)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    cute.when(tid:eq(0), function()
      cute.arch.mbarrier_arrive_and_expect_tx(came, 4 * n * rows)
      cute.arch.mbarrier_arrive_and_expect_tx(sent, 4 * n * rows)
      cute.copy(load, cute.local_tile(x, {n, rows}, {0, block}), a,
                {mbar_ptr = came})
      cute.arch.mbarrier_wait(came, 0)
      local from, to = cpasync.group_bulk_copy_modes(a, b)
      cute.copy(send, from, to, {mbar_ptr = sent, cta_rank = 1 - rank})
      cute.arch.mbarrier_wait(sent, 0)
      cute.copy(store, b, cute.local_tile(y, {n, rows}, {0, block}))
      cute.arch.cp_async_bulk_commit_group()
      cute.arch.cp_async_bulk_wait_group(0)
    end)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
  end
end

-- Cases of im2col. Each is {extents (C,W,..,N), padding before, padding after,
-- stride, filter, dilation, tile}. The five lists between extents and tile have
-- a number for each spatial mode.
tma.UNFOLDED = {
  {{32, 9, 3}, {1}, {1}, {1}, {3}, {1}, {8, 32}},
  {{64, 10, 7, 3}, {1, 1}, {1, 1}, {1, 1}, {3, 3}, {1, 1}, {32, 32}},
  {{32, 12, 11, 2}, {2, 1}, {1, 3}, {2, 3}, {3, 2}, {2, 1}, {16, 32}},
  {{32, 6, 5, 4, 2}, {1, 0, 1}, {0, 1, 1}, {1, 2, 1}, {2, 2, 3}, {1, 1, 1},
   {24, 16}},
}

-- Returns a case with the im2col corners that its filter implies. A store has a
-- filter of one element. Its corners are inside the image, as far from the
-- edges as the corners of a load are outside.
local function unfolded(case, store)
  local shape, before, behind, stride, filter, apart, tile = table.unpack(case)
  local c = {shape = shape, stride = stride, filter = {}, apart = apart,
             tile = tile, lower = {}, upper = {}}
  if not store then c.before, c.behind = before, behind end
  for i = 1, #filter do
    c.filter[i] = store and 1 or filter[i]
    c.lower[i] = store and before[i] or -before[i]
    c.upper[i] = store and -behind[i]
      or behind[i] - (filter[i] - 1) * apart[i]
  end
  return c
end

-- Calls f(value of the tile, block, coordinate) for all elements of the tiles.
-- The coordinate is nil outside of the image.
local function each_unfolded(c, down, along, f)
  local n, tile = #c.filter, c.tile
  for block = 0, down * along - 1 do
    for j = 0, tile[1] * tile[2] - 1 do
      local pixel = block % down * tile[1] + j % tile[1]
      local rest = block // down * tile[2] + j // tile[1]
      local at, within = {rest % c.shape[1]}, true
      rest = rest // c.shape[1]
      for i = 1, n do
        local places = (c.shape[i + 1] + c.upper[i] - c.lower[i] - 1)
          // c.stride[i] + 1
        at[i + 1] = c.lower[i] + pixel % places * c.stride[i]
          + rest % c.filter[i] * c.apart[i]
        within = within and at[i + 1] >= 0 and at[i + 1] < c.shape[i + 1]
        pixel, rest = pixel // places, rest // c.filter[i]
      end
      at[n + 2] = pixel
      f(j, block, within and pixel < c.shape[n + 2] and at or nil)
    end
  end
end

local function make_unfolding(op, c, t, layout, ctas)
  local atom, coords = cpasync.make_im2col_tma_atom(op, t, layout, c.tile,
    c.lower, c.upper, c.before, c.behind, c.stride, nil, c.apart, ctas)
  return atom, coords, (cute.size(coords, 0) + c.tile[1] - 1) // c.tile[1],
    cute.size(coords, 1) // c.tile[2]
end

-- Loads im2col tiles to a matrix. Returns the number of wrong elements. ctas:
-- the number of CTAs that share a tile.
function tma.try_unfold(case, dtype, layout, device, ctas)
  local c = unfolded(case)
  local x = tma.tensor(c.shape, dtype, function(i) return i % 113 + 1 end)
  local op = ctas and cpasync.CopyBulkTensorIm2ColG2SMulticastOp()
    or cpasync.CopyBulkTensorIm2ColG2SOp()
  local atom, coords, down, along = make_unfolding(op, c, x, layout, ctas)
  local out = cute.zeros({cute.size(layout), down * along, ctas}, dtype)
  cute.kernel("unfold", (ctas and tma.multicast or tma.load)(c.tile, layout))
    (atom, coords, out):launch {grid = down * along * (ctas or 1),
      block = tma.THREADS, cluster = ctas, device = device}
  local wrong, first = 0, nil
  for cta = 0, (ctas or 1) - 1 do
    local got = ctas and out(_, _, cta) or out
    each_unfolded(c, down, along, function(j, block, at)
      local want = at and x(table.unpack(at)) or 0
      if got(j, block) ~= want then
        wrong = wrong + 1
        first = first or ("%s: value %d of block %d is %s, not %s"):format(
          at and table.concat(at, ",") or "outside", j, block, got(j, block),
          want)
      end
    end)
  end
  return wrong, first
end

-- Stores the rows of a matrix as pixels of an image by im2col. Returns the
-- number of wrong elements.
function tma.try_fold(case, dtype, layout, device)
  local c = unfolded(case, true)
  local y = tma.tensor(c.shape, dtype, function() return 0.5 end)
  local atom, coords, down, along = make_unfolding(
    cpasync.CopyBulkTensorIm2ColS2GOp(), c, y, layout)
  local from = cute.zeros({cute.size(layout), down * along}, dtype)
  for i = 0, cute.size(from) - 1 do from[i] = i % 113 + 1 end
  cute.kernel("fold", tma.store(c.tile, layout))(atom, coords, from):launch {
    grid = down * along, block = tma.THREADS, device = device}
  local want, wrong, first = {}, 0, nil
  for i = 0, cute.size(y) - 1 do want[i] = 0.5 end
  local where = cute.make_layout(c.shape)
  each_unfolded(c, down, along, function(j, block, at)
    if at then want[where(table.unpack(at))] = from(j, block) end
  end)
  for i = 0, cute.size(y) - 1 do
    if y[i] ~= want[i] then
      wrong = wrong + 1
      first = first or ("element %d of the image is %s, not %s"):format(i, y[i],
        want[i])
    end
  end
  return wrong, first
end

-- Groups of rows of an f32 matrix. Each is {index of the first element, number
-- of rows, number of valid elements in a row}.
local GROUPS = {{0, 5, 24}, {1024, 16, 32}, {640, 1, 7}, {1600, 11, 13}}

--- Returns the function of a kernel. Each block copies a group from y to z
-- through two tensor maps that the block makes. One map is made in shared
-- memory and copied to global memory, the other is made in global memory.
---@param opts table what to leave out: release, publish, acquire
function tma.groups(opts)
  local tile, ld = {32, 16}, 32
  return function(load, mY, store, mZ, y, z, groups, maps)
    local tid, g = cute.arch.thread_idx(), cute.arch.block_idx()
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout(tile), 128)
    local map = cute.make_smem_tensor(cute.i64, cute.make_layout(16), 128)
    local from, to = maps(g, 0, _), maps(g, 1, _)
    local bar = barrier(1)
    local function group(t)
      return cute.make_tensor(t.iterator + groups(0, g), cute.make_layout(
        {groups(2, g), groups(1, g)}, {1, ld}))
    end
    if opts.mode then
      local maker = cute.utils.TensorMapManager(opts.mode, 128)
      local here = opts.mode == "SMEM" and map
      local other = here and cute.make_smem_tensor(cute.i64,
        cute.make_layout(16), 128)
      from, to = maker:get_tensormap_ptr(from), maker:get_tensormap_ptr(to)
      maker:init_tensormap_from_atom(load, here or from, 1)
      maker:init_tensormap_from_atom(store, other or to, 1)
      maker:fence_tensormap_initialization()
      cute.arch.sync_threads()
      maker:update_tensormap({group(y), group(z)}, {load, store}, {from, to},
                             2, here and {here, other} or nil)
    else cute.when(cute.arch.warp_idx():eq(0), function()
      cute.when(tid:eq(0), function()
        cpasync.copy_tensormap(load, map)
        cpasync.update_tma_descriptor(load, group(y), map)
        cpasync.copy_tensormap(store, to)
        cpasync.update_tma_descriptor(store, group(z), to)
        if opts.release ~= false then cpasync.fence_tma_desc_release() end
      end)
      cute.arch.sync_warp()
      cpasync.cp_fence_tma_desc_release(from, map)
    end) end
    cute.arch.sync_threads()
    local function part(atom, coords)
      return cpasync.tma_partition(atom, 0, cute.make_layout(1), flat(s),
                                   tiles_of(coords, tile))
    end
    local ts, tg = part(load, mY)
    local us, ug = part(store, mZ)
    cute.when(tid:eq(0), function()
      if opts.acquire ~= false then cpasync.fence_tma_desc_acquire(from) end
      cpasync.fence_tma_desc_acquire(to)
      cute.arch.mbarrier_arrive_and_expect_tx(bar, load.tx_bytes)
      cute.copy(load, tg(_, 0), ts, {tma_bar_ptr = bar, tma_desc_ptr = from})
      if opts.early then cpasync.copy_tensormap(load, from) end
      cute.arch.mbarrier_wait(bar, 0)
      cute.copy(store, us, ug(_, 0), {tma_desc_ptr = to})
      cute.arch.cp_async_bulk_commit_group()
      cute.arch.cp_async_bulk_wait_group(0)
    end)
  end
end

---------------------------------------------------------------------------
-- Whole launches
---------------------------------------------------------------------------

-- Copies f32 through tensor maps of tf32. Returns the number of loaded words
-- that are not rounded to nearest even, and the number of stored words that
-- changed.
function tma.try_tf32(device)
  local n, seed = 256, 12345
  local edges = {0x3f801000, 0x3f803000, 0x3f801001, 0x3f800fff, 0x7f7fffff,
                 0xfff, 0x1001, 0x7f800001, 0xffc00001, 0xff7ff000, 0x80000000}
  local x, y = cute.zeros({n}, cute.f32), cute.zeros({n}, cute.f32)
  local words = cute.recast_tensor(x, cute.u32)
  local function want(i)
    local u = words[i]
    if u & 0x7fffffff > 0x7f800000 then return 0x7fffe000 end
    local low, kept = u & 0x1fff, u & ~0x1fff
    local up = low > 0x1000 or low == 0x1000 and kept & 0x2000 ~= 0
    return kept + (up and 0x2000 or 0)
  end
  for i = 0, n - 1 do
    seed = (seed * 6364136223846793005 + 1442695040888963407) & math.maxinteger
    words[i] = edges[i + 1] or seed >> 20 & 0xffffffff
  end
  local box = cute.make_layout {n}
  local function made(op, t)
    return cpasync.make_tiled_tma_atom(op(), t, box, {n}, 1,
                                       {internal_type = cute.tf32})
  end
  local load, mX = made(cpasync.CopyBulkTensorTileG2SOp, x)
  local store, mY = made(cpasync.CopyBulkTensorTileS2GOp, y)
  local out = cute.zeros({n}, cute.u32)
  cute.kernel("tf32", function(from, cx, to, cy, given, got)
    local tid = cute.arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, box, 128)
    local u = cute.recast_tensor(s, cute.u32)
    local bar = barrier(1)
    local ts, tg = cpasync.tma_partition(from, 0, cute.make_layout(1), s,
                                         tiles_of(cx, {n}))
    local us, ug = cpasync.tma_partition(to, 0, cute.make_layout(1), s,
                                         tiles_of(cy, {n}))
    cute.when(tid:eq(0), function()
      cute.arch.mbarrier_arrive_and_expect_tx(bar, from.tx_bytes)
      cute.copy(from, tg(_, 0), ts, {tma_bar_ptr = bar})
    end)
    cute.arch.mbarrier_wait(bar, 0)
    for i in cute.range(tid, n, tma.THREADS) do
      got[i] = u[i]
      u[i] = given[i]
    end
    cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()
    cute.when(tid:eq(0), function()
      cute.copy(to, us, ug(_, 0))
      cute.arch.cp_async_bulk_commit_group()
      cute.arch.cp_async_bulk_wait_group(0)
    end)
  end)(load, mX, store, mY, words, out):launch {grid = 1, block = tma.THREADS,
                                                device = device}
  local loaded, stored, back = 0, 0, cute.recast_tensor(y, cute.u32)
  for i = 0, n - 1 do
    if out[i] ~= want(i) then loaded = loaded + 1 end
    if back[i] ~= words[i] then stored = stored + 1 end
  end
  return loaded, stored
end

--- Returns a layout of shared memory with swizzled rows of 16 << bits bytes.
function tma.swizzled(tile, dtype, bits)
  local base = 0
  while dtype.bits << base < 128 do base = base + 1 end
  return cute.make_composed_layout(cute.make_swizzle(bits, base, 3), 0,
                                   cute.make_layout(tile))
end

-- Loads tiles. Returns 0 and nil, or the number of wrong elements and the first
-- one.
function tma.try_load(shape, tile, layout, dtype, device)
  local x = tma.tensor(shape, dtype, function(i) return i % 101 + 1 end)
  local atom, coords = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileG2SOp(), x, layout, tile)
  local blocks = tma.blocks(shape, tile)
  local out = cute.zeros({cute.size(layout), blocks}, dtype)
  cute.kernel("load", tma.load(tile, layout))(atom, coords, out):launch {
    grid = blocks, block = tma.THREADS, device = device}
  return tma.load_faults(x, out, shape, tile)
end

-- Stores tiles with the reduction `op`. Each element must become f(previous
-- value, stored value).
function tma.try_store(shape, tile, layout, dtype, op, f, device)
  local function seven(i) return i % 7 end
  local y, was = tma.tensor(shape, dtype, seven), tma.tensor(shape, dtype,
                                                             seven)
  local atom, coords = cpasync.make_tiled_tma_atom(op, y, layout, tile)
  local blocks = tma.blocks(shape, tile)
  local from = cute.zeros({cute.size(layout), blocks}, dtype)
  for i = 0, cute.size(from) - 1 do from[i] = i % 50 end
  cute.kernel("store", tma.store(tile, layout))(atom, coords, from):launch {
    grid = blocks, block = tma.THREADS, device = device}
  return tma.store_faults(y, from, shape, tile, function(c, x)
    return f(was(table.unpack(c)), x)
  end)
end

function tma.try_multicast(shape, tile, dtype, device)
  local layout = tma.swizzled(tile, dtype, 3)
  local x = tma.tensor(shape, dtype, function(i) return i % 101 + 1 end)
  local atom, coords = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileG2SMulticastOp(), x, layout, tile, 2)
  local blocks = tma.blocks(shape, tile)
  local out = cute.zeros({cute.size(layout), blocks, 2}, dtype)
  cute.kernel("multicast", tma.multicast(tile, layout))(atom, coords, out)
    :launch {grid = 2 * blocks, block = tma.THREADS, cluster = 2,
             device = device}
  local wrong, first = 0, nil
  for cta = 0, 1 do
    local n, at = tma.load_faults(x, out(cute._, cute._, cta), shape, tile)
    wrong, first = wrong + n, first or at
  end
  return wrong, first
end

-- Runs the kernel of tma.runs, which swaps the rows of the two blocks of each
-- pair. Returns the number of wrong elements.
function tma.try_runs(device)
  local n, rows, blocks = 64, 3, 4
  local function made(f)
    local t = cute.make_tensor(cute.zeros({80 * rows * blocks}, cute.f32)
      .iterator, cute.make_layout({n, rows * blocks}, {1, 80}))
    if f then for i = 0, cute.size(t) - 1 do t[i] = f(i) end end
    return t
  end
  local x, y = made(function(i) return i end), made()
  cute.kernel("runs", tma.runs(n, rows))(x, y):launch {grid = blocks,
    block = 32, cluster = 2, device = device}
  local wrong = 0
  for j = 0, rows * blocks - 1 do
    for i = 0, n - 1 do
      local from = (j // rows ~ 1) * rows + j % rows
      if y(i, j) ~= x(i, from) then wrong = wrong + 1 end
    end
  end
  return wrong
end

-- Runs the kernel of tma.groups. Returns the number of wrong elements, and the
-- results of launch().
function tma.try_groups(opts, launch)
  local n = 2048
  local y, z = cute.zeros({n}, cute.f32), cute.zeros({n}, cute.f32)
  local want, list = {}, cute.zeros({3, #GROUPS}, cute.i32)
  for i = 0, n - 1 do y[i], want[i] = i + 1, 0 end
  for g, group in ipairs(GROUPS) do
    for k = 1, 3 do list[{k - 1, g - 1}] = group[k] end
    for row = 0, group[2] - 1 do
      for i = group[1] + 32 * row, group[1] + 32 * row + group[3] - 1 do
        want[i] = i + 1
      end
    end
  end
  local tile = {32, 16}
  -- Only the box of the atom's map is used, so the atom is made from a tensor
  -- of one tile.
  local function made(op, t)
    return cpasync.make_tiled_tma_atom(op(), cute.make_tensor(t.iterator,
      cute.make_layout(tile)), cute.make_layout(tile), tile)
  end
  local load, mY = made(cpasync.CopyBulkTensorTileG2SOp, y)
  local store, mZ = made(cpasync.CopyBulkTensorTileS2GOp, z)
  local maps = cute.zeros({#GROUPS, 2, 16}, cute.i64)
  local o = {grid = #GROUPS, block = tma.THREADS}
  for k, v in pairs(launch) do o[k] = v end
  local r = table.pack(cute.kernel("groups", tma.groups(opts))(load, mY, store,
    mZ, y, z, list, maps):launch(o))
  local wrong = 0
  -- The tensor maps that the kernel made must equal those that the host makes.
  for g, group in ipairs(GROUPS) do
    for side = 0, 1 do
      local words = core.encode_tensor_map {type = 7, rank = 2, box = tile,
        address = maps(g - 1, side, 0), extent = {group[3], group[2]},
        stride = {128}, l2 = 2}
      for k = 1, 16 do
        if maps(g - 1, side, k - 1) ~= words[k] then wrong = wrong + 1 end
      end
    end
  end
  for i = 0, n - 1 do
    if z[i] ~= want[i] then wrong = wrong + 1 end
  end
  return wrong, table.unpack(r, 1, r.n)
end

--- Defines tests that load and store tiles on a device, by all functions above.
---@param it function busted's function `it`
---@param check fun(wrong: integer, first: string)
---@param device string
function tma.suite(it, check, device)
  it("loads tiles of 1 to 5 modes, zeros beyond the edges", function()
    for _, case in ipairs(tma.CASES) do
      for _, dtype in ipairs {cute.f32, cute.bf16, cute.u8} do
        local shape, tile = table.unpack(case)
        check(tma.try_load(shape, tile, cute.make_layout(tile), dtype, device))
      end
    end
  end)

  it("swizzles as the layouts do", function()
    for bits = 1, 3 do
      for _, dtype in ipairs {cute.f32, cute.bf16, cute.i8} do
        local tile = {(16 << bits) * 8 // dtype.bits, 24}
        check(tma.try_load({100, 45}, tile, tma.swizzled(tile, dtype, bits),
                           dtype, device))
      end
    end
  end)

  it("stores tiles, and combines them with the old values", function()
    for _, case in ipairs(tma.CASES) do
      local shape, tile = table.unpack(case)
      local layout = cute.make_layout(tile)
      check(tma.try_store(shape, tile, layout, cute.f32,
        cpasync.CopyBulkTensorTileS2GOp(), function(_, x) return x end,
        device))
      check(tma.try_store(shape, tile, layout, cute.f32,
        cpasync.CopyReduceBulkTensorTileS2GOp(),
        function(was, x) return was + x end, device))
    end
    for kind, f in pairs {min = math.min, max = math.max,
                          xor = function(a, b) return a ~ b end} do
      local tile = {32, 16}
      check(tma.try_store({72, 45}, tile, tma.swizzled(tile, cute.u32, 3),
        cute.u32, cpasync.CopyReduceBulkTensorTileS2GOp(kind), f, device))
    end
  end)

  it("shares tiles among the CTAs of a cluster", function()
    check(tma.try_multicast({200, 100}, {64, 32}, cute.bf16, device))
  end)

  it("copies rows of bytes without a tensor map", function()
    check(tma.try_runs(device))
  end)

  it("loads im2col tiles of images", function()
    for k, case in ipairs(tma.UNFOLDED) do
      check(tma.try_unfold(case, k % 2 == 0 and cute.bf16 or cute.f32,
                           cute.make_layout(case[7], cute.LayoutRight), device))
    end
    check(tma.try_unfold(tma.UNFOLDED[2], cute.f32, cute.make_composed_layout(
      cute.make_swizzle(3, 2, 3), 0, cute.make_layout({32, 32}, {32, 1})),
      device))
  end)

  it("multicasts im2col tiles to the CTAs of a cluster #long", function()
    for k, case in ipairs(tma.UNFOLDED) do
      local layout = cute.make_layout(case[7], cute.LayoutRight)
      check(tma.try_unfold(case, k % 2 == 0 and cute.bf16 or cute.f32, layout,
                           device, 2))
    end
  end)

  it("stores the pixels of images", function()
    for k, case in ipairs(tma.UNFOLDED) do
      check(tma.try_fold(case, k % 2 == 0 and cute.f32 or cute.bf16,
                         cute.make_layout(case[7], cute.LayoutRight), device))
    end
  end)

  it("rounds loads of tf32, not stores", function()
    local loaded, stored = tma.try_tf32(device)
    check(loaded, "loaded")
    check(stored, "stored")
  end)

  it("uses tensor maps that a kernel makes", function()
    for _, mode in ipairs {false, "SMEM", "GMEM"} do
      check((tma.try_groups({mode = mode}, {device = device})))
    end
  end)
end

return tma
-- SPDX-License-Identifier: MIT
