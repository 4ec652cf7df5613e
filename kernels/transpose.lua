--- Transposes matrices whose rows begin at any element.
--
--     local k = transpose {dtype = cute.u16, extents = {B, A, L},
--                          from = {A, 1, B * A}, to = {1, B, B * A},
--                          tile = {128, 128}}
--     k.kernel(X, Z):launch {grid = k.grid, block = k.block}
--
-- X and Z are tensors of L matrices with the modes B and A, possibly with
-- further modes; `from` and `to` are the strides of X and of Z. A is contiguous
-- in X, B in Z. Both tensors begin at multiples of 16 bytes; their rows may
-- begin at any element.
--
-- Writing a part of a 32-byte sector costs as much as writing two sectors. A
-- tile of B x A can split a sector at each end of its rows. Therefore each row
-- of Z has its own window in each tile. The window begins at a multiple of
-- `whole` bytes in memory, less than `whole` bytes before the tile. A block
-- loads the 16-byte chunks of X's rows that its windows touch, row by row. A
-- thread reads single elements from each row, and stores 16 bytes. The chunks
-- also contain elements of other tiles. If a chunk could extend beyond the
-- tensor, its elements are loaded one by one.
--
-- With maps = true (Hopper), TMA loads the rows. Rows begin at any element, but
-- tensor maps need multiples of 16 bytes. If 16 bytes hold V elements, rows
-- that are V apart begin at the same offset within a chunk. Therefore X is
-- treated as V matrices, each with every Vth row, and each matrix has a tensor
-- map. The strides of the modes of L must then be multiples of 16 bytes;
-- k.arguments(X, Z) returns all arguments of the kernel.
local cute = require "cute"
local l2_priority = require "kernels.l2_priority"
local rules = require "kernels.operand_rules"

local cpasync = cute.nvgpu.cpasync

-- The number of lanes of a warp along B. The other lanes, and the warps, are
-- along A.
local LANES = 8

local function up(a, b) return (a + b - 1) // b end

-- Computes the sizes of tiles, in elements. Rows of Z that are STEP, or HALO,
-- apart have windows with equal offsets.
-- - V: the number of elements in 16 bytes.
-- - HALO: the number of elements before a tile that its windows can include.
-- - ROWS: the rows of X for a tile, with the HALO.
-- - CHUNKS: the 16-byte chunks of a row.
-- - STEP: the distance between a thread's coordinates along A.
local function sizes(o)
  local s, bits = {TB = o.tile[1], TA = o.tile[2]}, o.dtype.bits
  s.V = 128 // bits
  s.HALO = o.whole * 8 // bits
  s.ROWS, s.CHUNKS = s.TB + s.HALO, s.TA // s.V + 1
  s.pitch = s.TA + s.V
  -- Distances in shared memory: from a row to the next row (near), and from a
  -- row to the row V rows later (far).
  s.near, s.far = s.pitch, s.V * s.pitch + s.V
  if o.maps then
    s.near = up(s.ROWS // s.V * s.pitch * bits, 1024) * 1024 // bits
    s.far = s.pitch
  end
  s.STEP = o.block // LANES
  rules.need(s.STEP % s.HALO == 0 and s.TA % s.STEP == 0, "transpose",
    "block = %d gives %d threads along A, for %d rows of a tile along A; with "
    .. "whole = %d the threads must be a multiple of %d, and the rows a "
    .. "multiple of the threads", o.block, s.STEP,
    s.TA, o.whole, s.HALO)
  s.nb = up(o.extents[1] + s.HALO - 1, s.TB)
  s.na = up(o.extents[2], s.TA)
  return s
end

-- Returns an operand's layout (B,A,L). Its third mode contains all further
-- modes.
local function matrices(o, stride)
  local shape, strides = {1}, {0}
  for i = 3, #o.extents do
    shape[i - 2], strides[i - 2] = o.extents[i], stride[i]
  end
  return cute.make_layout({o.extents[1], o.extents[2], shape},
                          {stride[1], stride[2], strides})
end

-- Returns a view of a tensor's whole memory, (V,CHUNKS), and the layout of the
-- tensor's elements in this memory.
local function memory(o, s, t, stride)
  local l = matrices(o, stride)
  local count = cute.cosize(l)
  local wide = count >= 1 << 31 and cute.i64 or cute.i32
  return cute.make_tensor(t.iterator,
    cute.make_layout({s.V, up(count, s.V)}, {1, s.V})),
    function(b, a, batch)
      return l({b:to(wide), a:to(wide), batch:to(wide)})
    end
end

local function narrow(x) return x:to(cute.i32) end

-- Returns the layout in shared memory of every Vth row of a tile of X: one box
-- of a tensor map.
local function box(s)
  return cute.make_layout({s.ROWS // s.V, s.pitch, 1}, {s.pitch, 1, 0})
end

-- Returns a list of V tensor maps. Map v covers row v and every Vth row below
-- it; these rows begin at the same offset within 16 bytes. The map's first
-- element is the first one of the 16 bytes in which row v begins. An entry of
-- the list is {atom, coordinates (ROWS,A,L)}.
local function maps_of(o, s, X)
  local list, l = {}, matrices(o, o.from)
  for v = 0, s.V - 1 do
    local skew = v * o.from[1] % s.V
    local rows = cute.make_tensor(X.iterator + (v * o.from[1] - skew),
      cute.make_layout({up(o.extents[1] - v, s.V), skew + o.extents[2],
                        l.shape[3]}, {s.V * o.from[1], 1, l.stride[3]}))
    list[v + 1] = table.pack(cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileG2SOp(), rows, box(s), box(s).shape))
  end
  return list
end

-- Issues the loads of a tile's rows by TMA. The mbarrier `full` counts their
-- bytes.
local function load_boxes(o, s, S, maps, full, at)
  local long = l2_priority(cute.product(o.extents) * o.dtype.bits // 8)
  local policy = long and cpasync.CacheHint.EVICT_LAST or nil
  cute.arch.mbarrier_init(full, 1)
  cute.arch.mbarrier_init_fence()
  cute.arch.mbarrier_arrive_and_expect_tx(full, s.V * maps[1][1].tx_bytes)
  for v = 0, s.V - 1 do
    local atom, coords = table.unpack(maps[v + 1])
    local to = cute.make_tensor(S.iterator + v * s.near, box(s))
    local from = cute.local_tile(cute.domain_offset(
      {(at.b - s.HALO) // s.V, at.a, at.batch}, coords), box(s).shape,
      {0, 0, 0})
    local tXsX, tXgX = cpasync.tma_partition(atom, 0, cute.make_layout(1),
      cute.group_modes(to, 0, 3), cute.group_modes(from, 0, 3))
    cute.copy(atom, tXgX, tXsX, {tma_bar_ptr = full, cache_policy = policy})
  end
end

-- Loads the rows of X into shared memory. Returns three values: a view of the
-- loaded memory; a function of r that gives the position, in this view, of the
-- tile's first element in row r; and a function that waits for the loads. To
-- avoid bank conflicts, vectors that lanes read in rows V apart are an odd
-- number of 16-byte units apart.
local function bring(o, s, X, at, maps)
  local V, B, A = s.V, o.extents[1], o.extents[2]
  local all, place = memory(o, s, X, o.from)
  local S = cute.make_smem_tensor(o.dtype, cute.make_layout(
    {{V, s.ROWS // V}, s.pitch}, {{s.near, s.far}, 1}), maps and 128 or 16)
  local chunks = cute.make_tensor(S.iterator, cute.make_layout(
    {V, s.CHUNKS, {V, s.ROWS // V}}, {1, V, {s.near, s.far}}))
  local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", o.dtype,
    {num_bits_per_copy = 128, level_prefetch_size = "size_128b"})
  local function fetch(u, guard)
    local r, j = u // s.CHUNKS, u % s.CHUNKS
    local b = at.b - s.HALO + r
    cute.when(cute.ge(b, 0) & cute.lt(b, B), function()
      local first = place(b, at.a, at.batch)
      local skew = narrow(first % V)
      local function copy()
        cute.copy(atom, all(cute._, first // V + j), chunks(cute._, j, r))
      end
      -- The last of a row's chunks is needed only if the row does not start at
      -- the beginning of its first chunk (skew > 0).
      if not guard then
        return cute.when(cute.gt(skew, 0) | cute.lt(j, s.CHUNKS - 1), copy)
      end
      -- the coordinate along A of the chunk's first element
      local a = at.a - skew + j * V
      cute.when(cute.ge(a, 0) & cute.le(a + V, A), copy, function()
        for v in cute.range(V) do
          cute.when(cute.ge(a + v, 0) & cute.lt(a + v, A), function()
            chunks[{v, j, r}] = all({v, first // V + j})
          end)
        end
      end)
    end)
  end
  local tid = (cute.arch.thread_idx())
  local function each(guard, opts)
    for u in cute.range(tid, s.ROWS * s.CHUNKS, o.block, opts) do
      fetch(u, guard)
    end
  end
  local full = maps and cute.arch.alloc_smem(cute.i64, 1)
  -- With maps, only tiles at the start of rows need guards: the elements before
  -- a row's first one belong to another row.
  if maps then
    cute.when(cute.gt(at.a, 0), function()
      cute.when(cute.eq(tid, 0), function()
        load_boxes(o, s, S, maps, full, at)
      end)
    end, function() each(true) end)
  else
    cute.when(cute.gt(at.a, 0) & cute.le(at.a + s.TA + V, A), function()
      each(false, {unroll = 4})
    end, function() each(true) end)
  end
  cute.arch.cp_async_commit_group()
  local flat = cute.make_tensor(S.iterator,
                                cute.make_layout {cute.cosize(S.layout)})
  return flat, function(r)
    -- Row at.b - HALO + r of X begins at the same offset within 16 bytes as row
    -- at.b + r, because HALO is a multiple of V.
    return cute.crd2idx({r, 0}, S.layout)
      + narrow(place(at.b + r, at.a, at.batch) % V)
  end, function()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    if not maps then return end
    cute.when(cute.gt(at.a, 0), function() cute.arch.mbarrier_wait(full, 0) end)
  end
end

-- Returns a rotation, in 32-bit words, that avoids bank conflicts. Each lane
-- along A starts to read its vector this many words later than the lane before
-- it, cyclically. The result is the smallest rotation for which the fewest rows
-- of a warp meet in one bank.
local function turn_of(o, s)
  if s.V < 4 then return 0 end
  local N, M, bits = o.from[1], o.to[2], o.dtype.bits
  local best, least = 0, math.huge
  for turn = 0, 3 do
    local worst = 0
    for first = 0, s.V - 1 do
      local rows = {}
      for lane = 0, 32 // LANES - 1 do
        local row = (turn * s.V // 4 - M) * lane % s.V
        local word = (first + lane + N * row) % s.V * bits // 32
        rows[word] = rows[word] or {n = 0}
        if not rows[word][row] then
          rows[word][row], rows[word].n = true, rows[word].n + 1
        end
        worst = math.max(worst, rows[word].n)
      end
    end
    if worst < least then best, least = turn, worst end
  end
  return best
end

-- Undoes the rotation of a vector. The lane has read the vector rotated by nth
-- * turn words (see turn_of), where nth is the lane's index along A.
local function turn_back(held, turn, nth)
  local words = cute.recast_tensor(held, cute.u32)
  for _, bit in ipairs {1, 2} do
    local by = bit * turn % 4
    if by > 0 then
      local on, was = cute.ne(nth & bit, 0), {}
      for i = 0, 3 do was[i] = words[i] end
      for i = 0, 3 do words[i] = cute.where(on, was[(i - by) % 4], was[i]) end
    end
  end
end

local function body(o, s, X, Z, maps)
  local V, B, A = s.V, o.extents[1], o.extents[2]
  local block = (cute.arch.block_idx())
  local at = {b = block % s.nb * s.TB, a = block // s.nb % s.na * s.TA,
              batch = block // s.nb // s.na}
  local flat, begin, wait = bring(o, s, X, at, maps)
  local all, place = memory(o, s, Z, o.to)
  local tid = (cute.arch.thread_idx())
  local lane, nth, turn = tid % LANES, tid % 32 // LANES, turn_of(o, s)
  local a = tid // LANES
  local skew = narrow(place(at.b, at.a + a, at.batch) % s.HALO)
  local function element(w) return begin(s.HALO - skew + w) + a end
  local begins = {}
  for w = 0, V - 1 do
    begins[w] = element((w + nth * (turn * V // 4)) % V) + lane * s.far
  end
  wait()
  local function put(more, rep)
    local v = lane + rep * LANES
    -- the coordinate along B of the vector's first element
    local b = at.b - skew + v * V
    local to = place(at.b, at.a + a + more, at.batch) - skew + v * V
    cute.when(cute.ge(b, 0) & cute.le(b + V, B), function()
      local held = cute.make_rmem_tensor({V}, o.dtype)
      for w = 0, V - 1 do
        held[w] = flat(begins[w] + rep * (LANES * s.far) + more)
      end
      if turn > 0 then turn_back(held, turn, nth) end
      cute.autovec_copy(held, all(cute._, to // V))
    end, function()
      for w in cute.range(V) do
        cute.when(cute.ge(b + w, 0) & cute.lt(b + w, B), function()
          all[{w, to // V}] = flat(element(w) + v * s.far + more)
        end)
      end
    end)
  end
  for more in cute.range(0, s.TA, s.STEP, {unroll = 4}) do
    cute.when(cute.lt(at.a + a + more, A), function()
      for rep = 0, s.TB // V // LANES - 1 do put(more, rep) end
    end)
  end
end

--- Returns a kernel with arguments (X, Z), and its launch parameters.
---@param o table {dtype = of unsigned integers, extents: integer[], from:
-- integer[], to: integer[], tile: integer[], block: integer?, whole: integer?,
-- name: string?, pdl: boolean?, maps: boolean?}
-- tile: its extents {along B, along A}; whole: alignment of windows in bytes,
-- 32 when absent; pdl: waits for the preceding launch (dependent launch)
---@return {kernel: any, grid: integer, block: integer, arguments: function}
return function(o)
  rules.options("transpose", o,
    "dtype extents from to tile block whole name pdl maps")
  rules.integers("transpose", o, {"block"}, 32, 1024)
  local p = setmetatable({block = o.block or 256, whole = o.whole or 32},
                         {__index = o})
  local s = sizes(p)
  local grid = s.nb * s.na
  for i = 3, #o.extents do grid = grid * o.extents[i] end
  local function bits_of(t) return cute.recast_tensor(t, p.dtype) end
  return {block = p.block, grid = grid,
    kernel = cute.kernel(o.name or "transpose", function(X, Z, ...)
      local given, maps = {...}, p.maps and {} or nil
      for i = 1, #given // 2 do maps[i] = {given[2 * i - 1], given[2 * i]} end
      if p.pdl then cute.arch.griddepcontrol_wait() end
      body(p, s, bits_of(X), bits_of(Z), maps)
    end),
    -- Returns all arguments of the kernel as a list {n =}.
    arguments = function(X, Z)
      local list = {X, Z, n = 2}
      for _, map in ipairs(p.maps and maps_of(p, s, bits_of(X)) or {}) do
        list[list.n + 1], list[list.n + 2] = map[1], map[2]
        list.n = list.n + 2
      end
      return list
    end}
end
-- SPDX-License-Identifier: MIT
