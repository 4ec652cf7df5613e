--- The epilogue of kernels/gemm_sm90 and kernels/gemm_sm100: applies alpha and
-- beta or a function to the accumulators, and stores them through shared
-- memory.
local core = require "cute.core"
local cute = require "cute"
local groups = require "kernels.groups"
local tiles = require "cute.tiles"

local _ = cute._
local cpasync, pipeline = cute.nvgpu.cpasync, cute.pipeline
local tcgen05 = cute.nvgpu.tcgen05

local WARPGROUP = 128

local store_tile = {}

-- Returns the copy atom that stores accumulators of wgmma. For 16-bit types it
-- is stmatrix of four 8x8 matrices, or of two if a part is not a multiple of 16
-- columns. For wider types it is a plain store of pairs or of single elements.
local function wgmma_atom(o)
  if o.d_dtype.bits ~= 16 then
    return cute.make_copy_atom("UniversalCopy", o.d_dtype,
                               o.d_dtype.bits * (o.d_major == "m" and 1 or 2))
  end
  local x = o.epi[2] % 16 == 0 and 2 or 1
  local name = o.d_major == "m" and ("SM90_U16x%d_STSM_T"):format(4 * x)
    or ("SM90_U32x%d_STSM_N"):format(2 * x)
  return cute.make_copy_atom(name, o.d_dtype)
end

-- Returns the tiled copy of a part's elements to a buffer. After a load from
-- tensor memory, a thread has all columns of one row.
local function copy_of(o, mma)
  if not tcgen05.is_tmem_load(mma) then
    return cute.make_tiled_copy_C(wgmma_atom(o), mma)
  end
  local bits = o.d_dtype.bits
  local width = o.d_major == "m" and bits or core.gcd(o.epi[2] * bits, 128)
  return cute.make_tiled_copy_D(
    cute.make_copy_atom("UniversalCopy", o.d_dtype, width), mma)
end

--- Makes the object that stores a warpgroup's accumulators.
---@param x table {mma: any, atom: any, coords: any, smem: any, group: any,
-- thread: any, rank: any, sources: any?, D: any, alpha: any, beta: any,
-- more: any[], atoms: any[]?, maps: any?}
-- mma: an MMA, or a copy of tensor memory, of o.epi rows and columns; atom,
-- coords: for D's tensor map; smem: the buffers; group, thread: index of the
-- warpgroup, and of the thread in it; rank: index of the part of a tile's
-- columns that this block stores (option split); sources: this warpgroup's
-- sources; D, alpha, beta, more: the kernel's arguments; atoms, maps: see
-- groups.map
function store_tile.new(o, x)
  local r2s = copy_of(o, x.mma)
  local slice = r2s:get_slice(x.thread)
  local part = cute.make_rmem_tensor(tiles.partition_C(x.mma, x.thread)(
    cute.make_identity_tensor(o.epi)).shape, o.d_dtype)
  local matrices = cute.rank(x.coords) > 2
  local function partition(coords)
    local gD = cute.local_tile(coords, o.epi,                -- (EM,EN,m,n,l)
                               matrices and {_, _, _} or {_, _})
    return gD, cpasync.tma_partition(x.atom, 0, cute.make_layout(1),
      cute.group_modes(x.smem, 0, 2), cute.group_modes(gD, 0, 2))
  end
  local gD, tma, all = partition(x.coords)
  -- Returns the destination in global memory of part `at` of work tile w.
  local function to(at, w)
    local gmem = all
    if o.groups then
      gmem = select(3, partition(groups.from(x.coords, w)))
    end
    if matrices then return gmem(_, at[1], at[2], w.tile_idx[3]) end
    return gmem(_, at[1], at[2])
  end
  return {
    part = part, r2s = r2s, retiled = slice:retile(part),
    parts = x.smem, smem = slice:partition_D(x.smem), group = x.group,
    tma = tma, to = to, atom = x.atom,
    count = {cute.size(gD, 2), cute.size(gD, 3)},
    rank = x.rank, leader = x.thread:eq(0), thread = x.thread,
    mma = x.mma, sources = x.sources, D = x.D, alpha = x.alpha, beta = x.beta,
    more = x.more, atoms = x.atoms, maps = x.maps,
    pipe = pipeline.PipelineTmaStore {
      num_stages = o.apart and o.epi_stages or o.epi_stages - 1},
    barrier = pipeline.NamedBarrier {barrier_id = x.group + 1,
                                     num_threads = WARPGROUP},
    -- Returns the index in the tile of this warpgroup's i-th unit of 64 rows.
    row = function(i)
      return o.pingpong and i or i * o.consumers + x.group
    end}
end

-- Returns the argument `part` of an epilogue for part n of work tile w (see
-- tiles.result). `at` is the part's position in its own matrix D.
local function result_of(o, out, at, w, n)
  -- For a list of separate problems, an epilogue can use only the accumulators.
  if out.maps then return {l = w.group} end
  local function batch(t)
    -- Rows outside all groups may have undefined elements.
    if o.groups then return groups.view(cute.undefined_ok(t), w) end
    return o.batches and tiles.batch(t, w.tile_idx[3]) or t
  end
  local C = tiles.result(batch(out.D), out.mma, o.epi, at, out.thread)
  if o.batches or o.groups then C.batch, C.l = batch, w.tile_idx[3] end
  function C.source(i, dtype) return out.sources:load(i, n, dtype) end
  return C
end

-- Computes the values of a part, which has o.epi rows and columns, and stores
-- them to the fragment `part`. The values are alpha times the sums plus beta D,
-- or the result of the epilogue. place() returns the argument `part` of the
-- epilogue for these values (see result_of).
local function finish(o, out, sums, place, part)
  if o.gated then
    -- Gates and the values that they gate alternate every 8 columns. Of each 8
    -- columns, a thread has 8 elements of a row, or 2 elements of each of 2
    -- rows.
    local run = tcgen05.is_tmem_load(out.mma) and 8 or 4
    local function half(first)
      return cute.make_tensor(sums.iterator + first, cute.composition(
        cute.make_layout({run, cute.size(part) // run}, {1, 2 * run}),
        cute.make_layout(part.shape))):load()
    end
    part:store(o.epilogue(half(0), half(run), place(),
      table.unpack(out.more, 1, out.more.n)):to(o.d_dtype))
    return
  end
  sums = cute.make_tensor(sums.iterator, part.layout):load()
  if o.epilogue then
    sums = o.epilogue(sums, place(), table.unpack(out.more, 1, out.more.n))
  elseif out.alpha then
    cute.when(cute.ne(out.beta, 0), function()
      local C = place()
      local was = C.load(C.batch and C.batch(out.D) or out.D)
      part:store((sums * out.alpha + was * out.beta):to(o.d_dtype))
    end, function() part:store((sums * out.alpha):to(o.d_dtype)) end)
    return
  end
  part:store(sums:to(o.d_dtype))
end

-- Returns the position of part n of tile `at` in D, in units of parts.
local function place_of(o, out, at, n)
  local parts = o.columns // o.epi[2]
  return {at[1] * (o.tile[1] // o.epi[1]) + out.row(n // parts),
          (at[2] * o.split + out.rank) * parts + n % parts}
end

-- Issues the loads of the sources for part n of a tile. A part beyond D must
-- not be loaded: its coordinates belong to another part, which another block
-- may be storing at the same time.
local function ask(o, out, at, n)
  local place, inside = place_of(o, out, at, n), nil
  local rows, columns = out.count[1], out.count[2]
  local cluster = o.cluster or {1, 1}
  if rows % (o.tile[1] // o.epi[1] * cluster[1]) ~= 0
    or columns % (o.columns // o.epi[2] * o.split * cluster[2]) ~= 0 then
    inside = core.lt(place[1], rows) & core.lt(place[2], columns)
  end
  out.sources:ask(n, place, at[3], inside)
end

--- Starts the epilogue's first loads for a tile, ahead of its products.
function store_tile.ahead(o, out, at)
  if not out.sources then return end
  for n = 0, o.source_stages - 1 do ask(o, out, at, n) end
end

-- Returns two values about part n of work tile w, at position `at` in D:
-- whether some of it is inside D, and whether all its rows belong to the group.
-- For a list of problems, the tensor map of a problem covers only the rows of
-- this problem.
local function parts_inside(o, out, at, w, n)
  local rows, columns = out.count[1], out.count[2]
  if out.maps then
    rows = tiles.count(w.rows, o.epi[1])
    columns = tiles.count(w.columns, o.epi[2])
  end
  local inside = core.lt(at[1], rows) & core.lt(at[2], columns)
  if not o.groups or out.maps then return inside, inside end
  local row = out.row(n // (o.columns // o.epi[2]))
  local left = w.rows - (w.tile_idx[1] * o.tile[1] + row * o.epi[1])
  return inside & core.gt(left, 0), inside & core.ge(left, o.epi[1])
end

-- Stores a buffer that is only partly inside tensor t. Stores only the rows
-- inside t.
local function put_rows(o, out, t, place, buffer)
  local from, tile = out.parts(_, _, buffer, out.group), o.epi
  if o.d_major == "m" then
    from, t = cute.select(from, {1, 0}), cute.select(t, {1, 0})
    tile, place = {tile[2], tile[1]}, {place[2], place[1]}
  end
  tiles.put_rows(from, t, tile, place, WARPGROUP, out.thread)
end

-- Calls f(n, sums) for the parts of a tile, with their accumulators. `acc` are
-- the accumulators of the tile, or a function that loads those of part n. With
-- epi_loop the generated code contains f once, in a loop. Each pass selects the
-- accumulators of part n by branches, because register indices must be known at
-- compile time.
local function each_part(o, acc, count, f)
  if type(acc) == "function" then
    if o.epi_loop then
      for n in cute.range(0, count, 1, {unroll = 1}) do f(n, acc(n)) end
      return
    end
    for n = 0, count - 1 do f(n, acc(n)) end
    return
  end
  local size = cute.size(acc) // count
  local function part(n)
    return cute.make_tensor(acc.iterator + n * size, cute.make_layout(size))
  end
  if not o.epi_loop then
    for n = 0, count - 1 do f(n, part(n)) end
    return
  end
  for n in cute.range(0, count, 1, {unroll = 1}) do
    local sums = cute.make_rmem_tensor({size}, acc.element_type)
    local function take(first, last)
      if first == last then return cute.autovec_copy(part(first), sums) end
      local middle = (first + last) // 2
      cute.when(core.le(n, middle), function() take(first, middle) end,
                function() take(middle + 1, last) end)
    end
    take(0, count - 1)
    f(n, sums)
  end
end

-- Stores the accumulators of a tile to D, in parts of o.epi rows and columns.
-- The leader thread stores a buffer by TMA, and waits until TMA has read it.
-- Threads fill the buffer again after they have synchronized with the leader.
-- If only some rows of a part belong to the group, the threads store these rows
-- themselves.
local function store(o, out, acc, w)
  local part, pipe, leader, barrier = out.part, out.pipe, out.leader,
    out.barrier
  local atom, tma, group, at = out.atom, out.tma, out.group, w.tile_idx
  local parts, map = o.columns // o.epi[2], nil
  if out.maps then
    map = out.maps(_, w.group)
    cute.when(leader, function()
      groups.map(out.atoms, out.maps, w.group, w.new)
    end)
  end
  local first, last = o.persistent and 0 or o.epi_stages,
    o.rows // o.epi[1] * parts
  -- Waits until the buffer for part n of a tile is free. The first parts of the
  -- first tile use buffers that are initially free.
  local function free(n, met)
    local function wait()
      cute.when(leader, function() pipe:producer_acquire() end)
      if met then barrier:arrive_and_wait() end
    end
    if not math.type(n) then
      cute.when(core.ge(n, first) & core.lt(n, last), wait)
    elseif n >= first and n < last then
      wait()
    end
  end
  each_part(o, acc, last, function(n, sums)
    local buffer, place = n % o.epi_stages, place_of(o, out, at, n)
    -- In a loop, the wait for the buffer cannot overlap with work of another
    -- iteration. Therefore an iteration first computes the values and then
    -- waits.
    local late = o.apart and o.epi_loop
    if o.apart and not late then free(n, true) end
    local inside, whole = parts_inside(o, out, place, w, n)
    local function result() return result_of(o, out, place, w, n) end
    local function put()
      finish(o, out, sums, result, part)
      if late then free(n, true) end
      cute.copy(out.r2s, out.retiled, out.smem(_, _, _, buffer, out.group))
      cute.arch.fence_view_async_shared()
    end
    if out.sources then out.sources:wait(n) end
    -- If a part is outside D, its epilogue and the epilogue's loads are
    -- skipped.
    if o.epilogue or out.alpha or o.groups then cute.when(inside, put)
    else put() end
    if not o.apart then free(n + 1) end
    barrier:arrive_and_wait()
    cute.when(leader, function()
      cute.when(whole, function()
        cute.copy(atom, tma(_, buffer, group), out.to(place, w),
                  {cache_policy = o.d_hint, tma_desc_ptr = map})
      end)
      pipe:producer_commit()
    end)
    if o.groups and not out.maps then
      cute.when(inside & ~whole, function()
        put_rows(o, out, result().tensor, place, buffer)
      end)
    end
    if out.sources then
      local next_one = n + o.source_stages
      cute.when(core.lt(next_one, last), function()
        ask(o, out, at, next_one)
      end)
    end
  end)
  if out.sources then out.sources:done(last) end
end

--- Stores the accumulators of a tile to D.
---@param acc any a fragment, or a function that loads the accumulators of part
-- n
---@param w table work tile
function store_tile.store(o, out, acc, w)
  cute.arch.range("epilogue", store, o, out, acc, w)
end

return store_tile
-- SPDX-License-Identifier: MIT
