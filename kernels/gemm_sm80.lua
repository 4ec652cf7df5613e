--- A pipelined GEMM for mma.sync: C = alpha A B^T + beta C.
--
--     local k = gemm_sm80 {name = "gemm", tile = {128, 128, 64}, stages = 3,
--                          mma = "SM80_16x8x16_F32BF16BF16F32_TN",
--                          atoms = {2, 2, 1}, permutation = {32, 32, 16}}
--     k.kernel(A, B, C):launch {grid = k.grid(m, n), block = k.block}
--
-- A (M,K), B (N,K) and C (M,N) have any order of modes, any size and any
-- alignment. Modes can be nested, or a function can compute addresses (im2col):
-- see cute.tiles. The third mode of (M,K,L) counts batches. If an operand lacks
-- this mode, or the mode has extent 1 or stride 0, all batches use the same
-- matrix. cp.async fills a ring of `stages` tiles in shared memory. Within a
-- tile, the fragments of the next block of K are loaded while the current block
-- is multiplied.
--
-- An epilogue is a function that transforms the accumulators, and receives the
-- further arguments of the kernel. part.load(t[, dtype]) returns the values of
-- another matrix, or of a vector with one value for each column, at the
-- accumulators' positions:
--
--     epilogue = function(acc, part, bias, residual)
--       return cute.max(acc + part.load(bias), 0) + part.load(residual)
--     end
--     k.kernel(A, B, C, bias, residual):launch { ... }
--
-- With gated = true, the product of A and the first half of B's rows gives the
-- gates. The product of A and the second half gives the values that they gate.
-- The epilogue gets both, (gate, up, part, ...), and C (M,N) has half as many
-- columns as B (2N,K) has rows. In a tile, groups of rows of the two halves
-- alternate, so that each thread holds gates and the matching values.
--
-- With blocks = n, the accumulators of each n elements of K are scaled before
-- they are added to the sum. The kernel's arguments are (A, B, C, SA, SB, ...)
-- with scale factors SA (M,K/n) and SB (N,K/n), one of which can be nil. The
-- modes of SA and SB can be nested with strides of 0, so that several rows
-- share a factor.
--
-- With as = type, A and B are converted to this type for the MMA.
--
-- If the MMA has scale factors (sm_120), the kernel's arguments are (A, B, C,
-- SA, SB, ...), where SA and SB are the tensors of
-- kernels/gemm_sm80/scale_factors.lua.
local cute = require "cute"
local scale_factors = require "kernels.gemm_sm80.scale_factors"
local tiles = require "cute.tiles"
local rules = require "kernels.operand_rules"
local _ = cute._

-- Returns the shared memory of operand X's stages if a tile of C fits into it;
-- otherwise returns false. size: the number of elements of the tile.
local function room_in(X, C, size)
  local s = X.smem
  return X.k_leads and cute.cosize(s.layout) * s.element_type.bits
    >= size * C.tensor.element_type.bits and s
end

-- Stores C through shared memory. A fragment has pairs of adjacent elements,
-- which would allow only 4-byte stores. After the rearrangement in shared
-- memory, threads store whole rows with 16-byte stores, if the rows' alignment
-- allows it. The store reuses the memory of an operand's stages, after all
-- threads have read them. each_part(f) calls f(part, fragment, n) for adjacent
-- parts of C.
local function store_rows(C, mma, tile, at, stages, each_part)
  local tid, dtype = cute.arch.thread_idx(), C.tensor.element_type
  local layout = tiles.smem_layout(dtype.bits, {tile[1], tile[2]}, 1, 1)
  local sC = cute.make_tensor(cute.recast_ptr(stages.iterator, dtype),
    cute.get_nonswizzle_portion(layout))(_, _, 0)         -- (BM,BN)
  -- The main loop has waited for all copies, so no copy is in flight, and the
  -- stages can be overwritten.
  cute.arch.sync_threads()
  local atom = cute.make_copy_atom("UniversalCopy", dtype,
                                   C.pair * dtype.bits)
  local r2s = cute.make_tiled_copy_C(atom, mma):get_slice(tid)
  each_part(function(part, out, n)
    local to = cute.local_tile(sC, part.tile, {0, n})
    cute.copy(atom, r2s:retile(out), r2s:partition_D(to))
  end)
  cute.arch.sync_threads()
  tiles.put_rows(sC, C.tensor, {tile[1], tile[2]}, at, mma:size())
end

-- Loads tile k of the operands, and their scale factors, into a stage.
local function load(list, k, stage, first)
  tiles.load(list, k, stage, first)
  for _, X in ipairs(list) do
    if X.load_factors then X.load_factors(k, stage) end
  end
end

-- Loads tile k of the operands into a stage. Omits operands whose loads pass
-- through registers in halves (take and put).
local function ask(list, walk, k, stage)
  local direct = {}
  for _, X in ipairs(list) do
    if not X.halves then direct[#direct + 1] = X end
  end
  if not direct[1] then return end
  cute.when(walk.has(k), function() load(direct, k, stage) end)
end

-- Calls f with each operand whose loads pass through registers in halves, if
-- tile k exists.
local function each_half(operands, walk, k, f)
  if not (operands[1].halves or operands[2].halves) then return end
  cute.when(walk.has(k), function()
    for _, X in ipairs(operands) do
      if X.halves then f(X) end
    end
  end)
end

-- Iterates over the tiles along K, with an unrolled loop over the blocks of K
-- in each tile. k is the first tile that is not loaded yet. Stage `at` is being
-- multiplied, stage `read` is the next to be multiplied, and stage `write` is
-- free. The loads of A and B are issued in different iterations of the unrolled
-- loop, because loads of fragments queue behind earlier copies; with `both`, in
-- the same iteration. Loads through registers are issued before the barrier at
-- the end of a tile, as soon as the registers have been stored: the compiler
-- moves loads down as far as the next barrier, and all products of a tile hide
-- their latency. passed(k_tile), if given, is called after each tile.
local function main_loop(mma, A, B, C, stages, walk, k, both, passed)
  local at, read, write = 0, 0, stages - 1
  local list = {A, B}
  each_half(list, walk, k, function(X) X.take(k) end)
  cute.arch.cp_async_wait_group(stages - 2)
  cute.arch.sync_threads()
  A.fetch(at, 0)
  B.fetch(at, 0)

  local last = A.k_blocks - 1
  assert(last > 0 or not (A.halves or B.halves), "halves of one k-block")
  -- Returns the iteration in which to issue the loads of an operand. It is kb,
  -- but at most the last iteration but one, because the last iteration waits
  -- for the next tile.
  local function early(kb) return math.max(math.min(kb, last - 1), 0) end
  local ask_a, ask_b = early(1), early(both and 1 or 2)
  local function fetch(kb)
    A.fetch(at, kb)
    B.fetch(at, kb)
  end
  -- Makes the next tile, if there is one, the current tile. Waits for its
  -- copies.
  local function on(k_tile)
    at = cute.where(cute.lt(k_tile + 1, A.k_tiles), read, at)
    cute.arch.cp_async_wait_group(stages - 2)
    cute.arch.sync_threads()
  end
  for k_tile in cute.range(A.k_tiles) do
    local asked  -- index of the stage that this iteration loads
    for kb = 0, last do
      if kb == last and last > 0 then
        for _, X in ipairs(list) do
          if X.halves then X.put(asked) end
        end
        k = walk.next(k)
        each_half(list, walk, k, function(X) X.take(k) end)
        on(k_tile)
      end
      if last > 0 then fetch((kb + 1) % A.k_blocks) end
      if kb == 0 then
        asked, write, read = write, read, (read + 1) % stages
      end
      if kb == ask_a then
        ask(both and {A, B} or {A}, walk, k, asked)
      end
      if kb == ask_b then
        if not both then ask({B}, walk, k, asked) end
        cute.arch.cp_async_commit_group()
      end
      cute.gemm(mma, C.acc, A.block(kb), B.block(kb), C.acc)
      -- With only one block of K in a tile, the next tile becomes the current
      -- one here, after the products.
      if last == 0 then
        k = walk.next(k)
        on(k_tile)
        fetch(0)
      end
    end
    if passed then passed(k_tile) end
  end
end

-- Returns the distance in columns between a thread's first and second fragment
-- along N. This is the number of columns that one fragment of each thread
-- covers.
local function group_of(mma, tile)
  local part = mma:get_slice(0):partition_C(
    cute.make_identity_tensor {tile[1], tile[2]})
  return part(0, 0, 1)[2] - part(0, 0, 0)[2]
end

-- Returns a view of B (2N,K) in which groups of rows of its two halves
-- alternate. If N is not a multiple of a group, also returns a function that
-- makes the predicate of the existing rows.
local function in_turn(mB, group)
  local n, stride = mB.shape[1] // 2, mB.stride
  local view = cute.make_tensor(mB.iterator, cute.make_layout(
    {{group, 2, tiles.count(n, group)}, mB.shape[2]},
    {{stride[1], n * stride[1], group * stride[1]}, stride[2]}))
  if tiles.divides(group, n) then return view end
  return view, function(rows)
    local inside = {}
    for i, row in ipairs(rows) do
      inside[i] = cute.lt(row // (2 * group) * group + row % group, n)
    end
    return function(_, i) return inside[i] end
  end
end

-- Returns the accumulators of gates and of gated values, each in C's layout.
local function halves(acc, C)
  local out, shape = {}, C.acc.shape
  for first = 0, 1 do
    local r = cute.make_fragment_like(C.acc)
    for n = 0, cute.size(shape[3]) - 1 do
      cute.autovec_copy(acc(_, _, 2 * n + first), r(_, _, n))
    end
    out[first + 1] = r:load()
  end
  return table.unpack(out)
end

-- Divides C into parts of `columns` columns, and calls f(part, sums, n) for the
-- parts that are inside C. The generated code contains f once, in a loop. After
-- each pass the accumulators are shifted, so that those of the next part are
-- always in the same registers.
local function each_part(C, columns, sums, f)
  local tile, at = C.tile, C.at
  local count = tile[2] // columns
  if count == 1 then return f(C, sums, 0) end
  local size, N = cute.size(sums), C.tensor.shape[2]
  local each = size // count
  local all = cute.make_tensor(sums.iterator, cute.make_layout(size))
  for n in cute.range(0, count, 1, {unroll = 1}) do
    local place = at[2] * count + n
    local function pass()
      f(tiles.result(C.tensor, C.mma, {tile[1], columns}, {at[1], place}),
        sums, n)
    end
    if not C.crd then pass()
    else cute.when(cute.lt(place, tiles.count(N, columns)), pass) end
    for i in cute.range(size - each, {unroll = math.min(size - each, 1024)}) do
      all[i] = all[i + each]
    end
  end
end

-- Returns two functions that scale accumulators by SA and SB. The first is
-- called after each tile along K. When a block of o.blocks elements of K is
-- complete, it multiplies C's accumulators by the block's factors and adds them
-- to separate sums. The second is called at the end, and copies the sums to the
-- accumulators.
local function scaler(o, C, SA, SB, from)
  local M, N = C.tensor.shape[1], C.tensor.shape[2]
  local per = o.blocks // o.tile[3]
  local sums = cute.make_fragment_like(C.acc)
  sums:fill(0)
  local function factors(S, at, row)
    local v = S(_, at)
    local shape, stride = v.shape[1], v.stride[1]
    return C.load(cute.make_tensor(v.iterator, row
      and cute.make_layout({shape, N}, {stride, 0})
      or cute.make_layout({M, shape}, {0, stride})))
  end
  local function add(at)
    local by = SA and factors(SA, at, true) or factors(SB, at, false)
    if SA and SB then by = by * factors(SB, at, false) end
    sums:store(cute.fma(C.acc:load(), by, sums:load()))
    C.acc:fill(0)
  end
  return function(k_tile)
    k_tile = k_tile + (from or 0)
    if per == 1 then return add(k_tile) end
    cute.when(cute.eq((k_tile + 1) % per, 0), function()
      add(k_tile // per)
    end)
  end, function(k_tiles)  -- adds the accumulators of a partial last block of K
    if per > 1 then
      cute.when(cute.ne(k_tiles % per, 0), function() add(k_tiles // per) end)
    end
    C.acc:store(sums:load())
  end
end

-- The largest number of cp.async per thread and tile for which the loop over
-- the first tiles is unrolled.
local FEW = 16

-- Reports whether to wait for the copies of A and B together instead of
-- separately. If elements are copied one by one and there are enough registers,
-- the kernel with one wait is up to 1.3 times as fast.
local function waits_once(mA, mB, C, async, way, o)
  return not (async or o.halves or way.at or way.from or o.gated)
    and mA.element_type.bits == 16 and mB.element_type.bits == 16
    and C.crd ~= nil and cute.size(C.acc) <= 64
end

-- Returns A and B of this block's tile {bm, bn}, as operands of cute.tiles.
-- They include the scale factors SA and SB if the MMA has them. Also returns
-- the number of stages, and two booleans: whether cp.async copies A, and
-- whether it copies B. Without cp.async there are two stages: loads through
-- registers arrive one tile later, so further stages would stay empty.
local function operands(o, mma, mA, mB, at, way, valid_b, SA, SB)
  local function of(t, which, rows, i, more)
    local fetch = type(o.fetch) == "function" and o.fetch(t.element_type)
      or o.fetch
    local x = {of = mma, which = which, tile = {rows, o.tile[3]}, at = at[i],
      piece = o.piece, atom = fetch, lead = o.lead, slots = o.slots,
      plain = o.plain, halves = o.halves, from = way.from,
      k_tiles = way.k_tiles, as = o.as}
    for name, v in pairs(more) do x[name] = v end
    return x, tiles.is_async(t, x)
  end
  local of_A, async_a = of(mA, "A", o.tile[1], 1, {valid = way.valid,
                                                   cached = way.cached})
  local of_B, async_b = of(mB, "B", o.tile[2], 2, {valid = valid_b,
                                                   in_parts = true})
  local stages = (async_a or async_b) and o.stages or 2
  of_A.stages, of_B.stages = stages, stages
  local A, B = tiles.operand(mA, of_A), tiles.operand(mB, of_B)
  if mma.sf_vec_size then
    scale_factors.add(A, SA, of_A)
    scale_factors.add(B, SB, of_B)
  end
  return A, B, stages, async_a, async_b
end

-- Loads the first tiles, one for each stage but the last. Returns the index of
-- the next tile to load. The loop is unrolled, unless the generated code would
-- be long.
local function ask_first(A, B, walk, stages, few)
  local k = walk.first
  local function request(stage)
    cute.when(walk.has(k), function() load({A, B}, k, stage, true) end)
    cute.arch.cp_async_commit_group()
    k = walk.next(k)
  end
  if few then
    for stage = 0, stages - 2 do request(stage) end
  else
    for stage in cute.range(stages - 1) do request(stage) end
  end
  return k
end

-- Stores D, through shared memory if `room` is given. finish(C, like, sums)
-- returns the fragment to store, in the layout of `like` (C's own layout if
-- nil).
local function leave(o, mma, D, acc, tile, at, room, finish)
  local columns = o.epilogue and o.columns or tile[2]
  -- Calls f(part, fragment, n) for all parts of D. With in_rows, a fragment
  -- keeps the order of the MMA's accumulators, as store_rows needs it.
  local function each(in_rows, f)
    each_part(D, columns, acc, function(part, sums, n)
      local own = part.acc
      if not o.gated then
        part.acc = cute.make_tensor(sums.iterator, own.layout)
      end
      f(part, finish(part, in_rows and own or nil, o.gated and sums or nil), n)
    end)
  end
  if room then
    store_rows(D, mma, tile, at, room, function(f) each(true, f) end)
  else
    each(false, function(part, out) part.put(out) end)
  end
end

-- Computes and stores a tile. finish(C[, like]) returns the fragment to store.
-- way: see the function `run` of the returned kernel.
local function pipelined(o, mma, mA, mB, mC, finish, way, SA, SB)
  local BM, BN = o.tile[1], o.tile[2]
  local block = (cute.arch.block_idx())
  local valid_b
  if o.gated then mB, valid_b = in_turn(mB, group_of(mma, o.tile)) end
  local bm, bn
  if way.at then bm, bn = table.unpack(way.at)
  else
    bm, bn = tiles.raster(block, tiles.count(cute.size(mC, 0), BM),
      tiles.count(cute.size(mB, 0), BN), o.group or 8)
  end
  local at = {bm, bn}
  local A, B, stages, async_a, async_b = operands(o, mma, mA, mB, at, way,
                                                  valid_b, SA, SB)
  local tile = {BM, o.gated and BN // 2 or BN}
  local C = tiles.result(mC, mma, tile, at)
  local D = C
  if o.gated then
    C = {acc = cute.make_rmem_tensor(mma:partition_shape_C {BM, BN},
                                     C.acc.element_type)}
  end
  C.acc:fill(0)

  local walk = tiles.walk(A, B)
  -- The loop over the first tiles is unrolled if there is only one tile, or if
  -- there are few cp.async. For loads through registers, which wait for their
  -- data, unrolling would not help.
  local k = ask_first(A, B, walk, stages, stages == 2
    or async_a and async_b and A.moves + B.moves <= FEW)
  local passed, done
  if o.blocks then passed, done = scaler(o, C, SA, SB, way.from) end
  main_loop(mma, A, B, C, stages, walk, k,
            waits_once(mA, mB, D, async_a or async_b, way, o), passed)
  if done then done(A.k_tiles) end
  if o.renamed then C.acc:store(C.acc:load() + 0) end

  local size = tile[1] * tile[2]
  local room = o.rows and tiles.is_rows(mC)
    and (room_in(B, D, size) or room_in(A, D, size))
  local function out()
    leave(o, mma, D, C.acc, tile, at, room, finish)
  end
  if way.meet then cute.when(way.meet(C, block), out) else out() end
end

local DEFAULT = {stages = 3, group = 8, tile = {128, 128, 64},
  mma = "SM80_16x8x16_F32BF16BF16F32_TN", atoms = {2, 2, 1},
  permutation = {32, 32, 16}}

-- Returns the given tensors without their batch mode: the matrices of batch z,
-- where z is the block's index along z. Without batches, returns the arguments.
local function of_batch(...)
  local at, out = select(3, cute.arch.block_idx()), {}
  for i, t in ipairs {...} do out[i] = tiles.batch(t, at) end
  return table.unpack(out)
end

-- Returns the function that computes the fragment to store. It applies alpha
-- and beta, or the epilogue with its further arguments.
local function finisher(o, way, ...)
  local more = table.pack(...)
  if not o.epilogue then
    local alpha, beta = ...
    return function(C, like) return tiles.scaled(C, alpha, beta, like) end
  end
  local function apply(C, ...)
    local part = setmetatable({batch = way.batch or of_batch, l = way.l,
                               load = function(t, dtype)
      if not way.batch then t = of_batch(t) end
      rules.same("gemm_sm80", "N", C.tensor.shape[2], "an epilogue loads of",
                 t.shape[cute.rank(t)])
      return C.load(t, dtype)
    end}, {__index = C})
    local sums = table.pack(...)
    sums[sums.n + 1] = part
    table.move(more, 1, more.n, sums.n + 2, sums)
    return o.epilogue(table.unpack(sums, 1, sums.n + 1 + more.n))
  end
  return function(C, like, acc)
    if not acc then
      return tiles.applied(C, function(x) return apply(C, x) end, like)
    end
    local gate, up = halves(acc, C)
    return tiles.applied(C, function() return apply(C, gate, up) end, like)
  end
end

--- Returns a kernel with arguments (A, B, C [, alpha, beta]), or (A, B, C, ...)
-- with an epilogue (acc, part, ...), and its launch parameters. With pdl the
-- kernel is for dependent launches: it waits for the preceding kernel. The next
-- kernel begins when the blocks of this kernel are complete, because blocks
-- that begin earlier would slow them down. run(A, B, C, way, ...) is the work
-- of one block, for use in other kernels. Fields of way:
-- valid: the existing elements of A (tiles.inside).
-- cached: loads A through L1.
-- at: the tile {bm, bn}.
-- from, k_tiles: the first tile of K, and the number of tiles.
-- meet: function(C, block), called before C is stored; returns whether this
--   block stores it.
-- batch(t), l: replace part.batch and part.l of an epilogue. Without them,
--   part.batch selects batch z, the block's index along z.
---@param o? table {name: string?, tile: integer[]?, stages: integer?,
-- group: integer?, mma: string?, atoms: integer[]?, permutation: integer[]?,
-- rows: boolean?, epilogue: function?, columns: integer?, gated: boolean?,
-- piece: integer?,
-- fetch: any?, blocks: integer?, as: any?,
-- lead: integer?, slots: integer?, plain: boolean?, halves: boolean?,
-- min_blocks: integer?, pdl: boolean?, renamed: boolean?}
-- group: number of tiles of M that blocks process together; rows: stores C
-- through shared memory; columns: columns of C to which the epilogue is applied
-- at a time, in whole permutations (all of the tile when absent); piece, fetch,
-- lead, slots, plain, halves: see cute.tiles (fetch: its atom, or a function
-- that returns it for an operand's type); min_blocks: number of blocks that
-- must fit on a multiprocessor, which limits the registers; renamed: adds 0 to
-- the sums after the loop, so that ptxas chooses registers for the loop alone
-- (a sum of -0 becomes +0)
---@return table {kernel: any, run: function, grid: function, tile: integer[],
-- block: integer, mma: any, min_blocks: integer?}
return function(o)
  rules.options("gemm_sm80", o or {}, rules.GEMM)
  local p = setmetatable({}, {__index = DEFAULT})
  for k, v in pairs(o or {}) do p[k] = v end
  rules.integers("gemm_sm80", p, {"stages"}, 2, 32)
  rules.need(not p.blocks or p.blocks % p.tile[3] == 0, "gemm_sm80",
    "blocks = %s; a multiple of %d, the K of a tile, is needed", p.blocks,
    p.tile[3])
  local mma = cute.make_tiled_mma(p.mma, p.atoms, p.permutation)
  local gemm = {tile = p.tile, block = mma:size(), mma = mma,
                min_blocks = p.min_blocks}
  if p.gated then
    gemm.tile = {p.tile[1], p.tile[2] // 2, p.tile[3]}  -- of C
  end
  function gemm.grid(m, n, batches)
    return {tiles.count(m, gemm.tile[1]) * tiles.count(n, gemm.tile[2]), 1,
            batches or 1}
  end
  local function run(mA, mB, mC, way, SA, SB, ...)
    way = way or {}
    local finish = finisher(p, way, ...)
    mA, mB, mC = of_batch(mA, mB, mC)
    local a, b, c = mA.shape, mB.shape, mC.shape
    rules.same("gemm_sm80", "M of A", a[1], "of C", c[1])
    rules.same("gemm_sm80", "N of B", b[1], "of C",
               p.gated and math.type(c[2]) and 2 * c[2] or c[2])
    rules.same("gemm_sm80", "K of A", a[2], "of B", b[2])
    if SA then SA = of_batch(SA) end
    if SB then SB = of_batch(SB) end
    pipelined(p, mma, mA, mB, mC, finish, way, SA, SB)
  end
  function gemm.run(mA, mB, mC, way, ...)
    if p.blocks or mma.sf_vec_size then return run(mA, mB, mC, way, ...) end
    return run(mA, mB, mC, way, nil, nil, ...)
  end
  gemm.kernel = cute.kernel(p.name or "gemm_sm80", {min_blocks = p.min_blocks},
    function(mA, mB, mC, ...)
      if p.pdl then cute.arch.griddepcontrol_wait() end
      gemm.run(mA, mB, mC, nil, ...)
    end)
  return gemm
end
-- SPDX-License-Identifier: MIT
