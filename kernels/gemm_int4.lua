--- C = A W^T with 16-bit floats and 4-bit weights, for few rows of A. Reading
-- the weights dominates the time.
--
--     local k = gemm_int4 {m = 16, n = 4096, k = 4096, group = 128}
--     local W = gemm_int4.pack(q)      -- of the host: (N,K), 0 to 15
--     k.kernel(A, W, S, C):launch {grid = k.grid(m), block = k.block,
--                                  cluster = k.cluster}
--
-- A (M,K) and C (M,N) are row-major bf16 or f16. A 4-bit integer q represents
-- the weight (q - 8) s. Each scale s applies to `group` consecutive elements of
-- K of one row of W: S is (K/group,N). Without `group`, a scale applies to a
-- whole row: S is (1,N). With zeros = true a weight is (q - z) s. The zero
-- points Z, u8 of the same shape as S, then follow S in the arguments. The f32
-- accumulators of a group are multiplied by its scale, so no weight is rounded.
--
-- Weights are the operand of mma.sync with 16 rows; A is the operand with 8
-- columns. A packed word is a thread's part of a 16x16 block of weights. Each
-- cp.async copies 16 bytes, the thread's parts of four such blocks along K. The
-- thread that copies the bytes also reads them. Warps divide K. Each warp has
-- separate tiles of A and of scales, and runs independently until the partial
-- sums are combined. The width of tiles is chosen to give one block to each
-- multiprocessor. If N is too small for that, several blocks, with different
-- block indices z, divide K.
local core = require "cute.core"
local cute = require "cute"
local splitk_skinny = require "kernels.splitk_skinny"
local options = require "kernels.operand_rules".options
local tiles = require "cute.tiles"
local sign = require "cute.lang.signature"
local utils = require "cute.utils"
local _ = cute._

-- The elements of K in 16 bytes of W, which are 4 words of a thread, one for
-- each of four 16x16 blocks.
local UNIT = 64
local AND_OR = 0xea
-- The number of tiles to load ahead, if shared memory has a stage for every
-- tile.
local AHEAD = 3

-- The 16-bit patterns of two floats, called `base`, for a weight q in bits 0 to
-- 3 ([0]) and in bits 4 to 7 ([1]). With q inserted at these bits, the float is
-- base + q: 128 + q for bf16; 1024 + q or 64 + q for f16.
local BASES = {bf16 = {[0] = 0x4300, 0x4300}, f16 = {[0] = 0x6400, 0x5400}}

---------------------------------------------------------------------------
-- Weights on the host
---------------------------------------------------------------------------

-- The positions of elements 0 to 7 of a thread's part of a 16x16 block. shift:
-- the position in the packed word. row, col: the position in the block,
-- relative to the lane's first element.
local PLACES = {}
for e = 0, 7 do
  local pair, upper = e // 2, e % 2
  PLACES[e + 1] = {shift = 4 * pair + 16 * upper, row = pair % 2 * 8,
                   col = pair // 2 * 8 + upper}
end

--- Packs weights, (N,K) numbers from 0 to 15, in the order of the MMA's
-- fragments. Returns a tensor of u32, (N/16, K/64, 32, 4). The kernel also
-- accepts i32. q can be a tensor or a function.
---@param q any
---@param n? integer extents (n,k) of the weights, if q is a function
---@param k? integer
local function pack(q, n, k)
  if type(q) ~= "function" then n, k = q.shape[1], q.shape[2] end
  if n % 16 ~= 0 or k % UNIT ~= 0 then
    core.fail("bad-argument", ("gemm_int4.pack: weights (%d,%d); (N,K) must "
      .. "be multiples of (16,%d)"):format(n, k, UNIT))
  end
  local b, at = core.buffer(cute.u32, n * k // 8), 0
  for row = 0, n - 1, 16 do
    for col = 0, k - 1, UNIT do
      for lane = 0, 31 do
        local r, c = row + lane // 4, col + lane % 4 * 2
        for step = 0, UNIT - 1, 16 do
          local w = 0
          for e = 1, 8 do
            local p = PLACES[e]
            local x = math.tointeger(q(r + p.row, c + step + p.col))
            if not x or x < 0 or x > 15 then
              core.fail("bad-argument", ("gemm_int4.pack: weight (%d,%d) is "
                .. "%s, not 0 to 15"):format(r + p.row, c + step + p.col,
                tostring(q(r + p.row, c + step + p.col))))
            end
            w = w | x << p.shift
          end
          b[at], at = w, at + 1
        end
      end
    end
  end
  return cute.make_tensor(b, cute.make_layout({n // 16, k // UNIT, 32, 4},
                                              cute.LayoutRight))
end

---------------------------------------------------------------------------
-- Operands of a block
---------------------------------------------------------------------------

-- Copies 16 contiguous bytes with one access.
local function vector_copy(atom, from, to, pred)
  local one = cute.make_layout {cute.size(from), 1}
  cute.copy(atom, cute.make_tensor(from.iterator, one),
            cute.make_tensor(to.iterator, one), pred)
end

-- Makes the operand W. load(k_tile, stage) loads a tile. words(stage, i, u)
-- returns the four packed words of row block i and unit u (64 elements of K) in
-- this warp's part of K.
local function weights(p, W, at, bn)
  local units, MT, lane = p.slice // UNIT, p.MT, cute.arch.lane_idx()
  W = cute.recast_tensor(W, cute.u32)
  -- Shared memory, divided into pieces of 16 bytes. Only the thread that copies
  -- a piece reads it. The partial sums (kernels.splitk_skinny) later use the
  -- same memory.
  local s = cute.make_smem_tensor(cute.u32, cute.make_layout(
    {4, p.block, MT * math.max(units * p.stages, p.tile[2] // 8)}), 128)
  local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL", cute.u32,
                                   128)
  local rows, along = W.shape[1], W.shape[2]
  if p.gated then rows = rows // 2 end
  local high = p.columns // 16
  local out = {pieces = s}
  local function piece(stage, i, u)
    return s(_, at.tid, (stage * MT + i) * units + u)
  end
  function out.load(k_tile, stage)
    for i = 0, MT - 1 do
      local first = i * p.warps[1]
      local row = bn * high + first % high + at.wn
      for u = 0, units - 1 do
        local col = k_tile * units + u
        local pred
        if p.ragged then
          pred = cute.make_rmem_tensor({1}, cute.Boolean)
          pred[0] = cute.lt(row, rows) & cute.lt(col, along)
        end
        vector_copy(atom, W(row + first // high * rows, col, lane, _),
                    piece(stage, i, u), pred)
      end
    end
  end
  function out.words(stage, i, u)
    local r = cute.make_rmem_tensor({4}, cute.u32)
    cute.autovec_copy(piece(stage, i, u), r)
    return r
  end
  return out
end

-- Makes the operand t, which is the scales or the zero points. load(k_tile,
-- stage) loads the values for a tile. get(stage, group) returns the values of a
-- group for the rows of this thread's accumulators, ((1,2),MT,1).
local function by_groups(p, t, at, bn, slice)
  local BN, rows, side = p.tile[1], p.groups, 32 * p.warps[1]
  local s = cute.make_smem_tensor(t.element_type, cute.make_layout(
    {rows, BN, p.stages * p.warps[2]}, {BN, 1, rows * BN}), 128)
  local width = 128 // t.element_type.bits
  local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL",
                                   t.element_type, 128)
  local across, columns = BN // width, t.shape[2] // width
  -- The number of 16-byte pieces of a tile's row that belong to gates, if gated
  -- is set.
  local high = across
  if p.gated then high, columns = high // 2, columns // 2 end
  local out = {}
  function out.load(k_tile, stage)
    local first = p.group and k_tile * p.slice // p.group or 0
    for v = 0, rows * across - 1, side do
      local row, col = (at.side + v) // across, (at.side + v) % across
      local from, pred = bn * high + (p.gated and col % high or col), nil
      if p.ragged then
        pred = cute.make_rmem_tensor({1}, cute.Boolean)
        pred[0] = cute.lt(first + row, t.shape[1])
          & cute.lt(from, columns)
      end
      if p.gated then from = from + col // high * columns end
      local function copy()
        vector_copy(atom, cute.local_tile(t, {1, width}, {first + row, from}),
          cute.local_tile(s(_, _, stage), {1, width}, {row, col}), pred)
      end
      if v + side <= rows * across then copy()
      else cute.when(cute.lt(at.side + v, rows * across), copy) end
    end
  end
  function out.get(stage, group)
    local row = cute.make_tensor(s(group, _, stage).iterator,
      cute.make_layout({BN, p.tile[2]}, {1, 0}))
    local part = slice:partition_C(row)                      -- ((2,2),MT,NT)
    local r = cute.make_rmem_tensor({{1, 2}, p.MT, 1}, t.element_type)
    for i = 0, p.MT - 1 do
      for h = 0, 1 do r[{{0, h}, i, 0}] = part[{{0, h}, i, 0}] end
    end
    return r
  end
  return out
end

-- Returns a word with the 16-bit number x in both halves.
local function twice(x) return x * 0x10001 end

-- Returns a word with the float base + z in both halves (see BASES), for a zero
-- point z. Subtracting this float from base + q gives q - z.
local function zero_of(z, h, dtype)
  local at = dtype == cute.f16 and 4 * h or 0
  return twice(z << at | BASES[dtype.name][h])
end

-- Fills the fragment `frag` with the eight weights of the packed word w, minus
-- the zero points of the two rows to which the weights belong. A bf16 has only
-- 7 bits of fraction, too few for a weight in bits 4 to 7. Such a weight is
-- first moved to bits 0 to 3, by an FMA in f16.
local function dequantise(w, frag, zeros, dtype)
  local words = cute.recast_tensor(frag, cute.u32)
  local less = cute.arch["sub_packed_" .. dtype.name .. "x2"]
  for k = 0, 3 do
    local h = k % 2
    if k == 2 then w = w >> 8 end
    local x = cute.arch.lop3(w, twice(0xf << 4 * h),
                             twice(BASES[dtype.name][h]), AND_OR)
    -- As an f16, x is 3.5 + q / 32. The FMA computes 3.5 + q / 512, which has q
    -- in bits 0 to 3.
    if h == 1 and dtype == cute.bf16 then
      x = cute.arch.fma_packed_f16x2(x, twice(0x2c00), twice(0x4290))
    end
    words[k] = less(x, zeros[h])
  end
end

---------------------------------------------------------------------------
-- The kernel
---------------------------------------------------------------------------

-- Multiplies this warp's part of the tile in `stage`.
local function multiply(p, b, acc, stage)
  local dtype, steps = b.dtype, p.run // 16
  local per = UNIT // 16
  local frag = cute.make_rmem_tensor({{2, 2, 2}, p.MT}, dtype)
  local words, zeros = {}, nil
  for step = 0, p.slice // 16 - 1 do
    local q = step // steps
    if step % steps == 0 then
      b.part:fill(0)
      zeros = b.Z and b.Z.get(b.slot(stage), q)
    end
    b.A.fetch(b.slot(stage), step)
    local x = b.A.block(step)
    for i = 0, p.MT - 1 do
      if step % per == 0 then words[i] = b.W.words(stage, i, step // per) end
      local zero = {}
      for h = 0, 1 do
        zero[h] = zero_of(zeros and zeros[{{0, h}, i, 0}]:to(cute.u32) or 8, h,
                          dtype)
      end
      dequantise(words[i][step % per], frag(_, i), zero, dtype)
    end
    cute.gemm(b.mma, b.part, frag, x, b.part)
    if step % steps == steps - 1 then
      local s = b.S.get(b.slot(stage), q):load():to(cute.f32)
      acc:store(cute.fma(b.part:load(), s, acc:load()))
    end
  end
end

-- Makes the operand A. Each warp along K has separate stages. A warp may also
-- load tiles after the last one; these are filled with zeros.
local function rows_of(p, mA, mma, at, bm)
  local function valid()
    return function(k) return cute.lt(k, p.k) end
  end
  return tiles.operand(mA, {of = mma, which = "B", thread = at.side,
    valid = p.k % p.tile[3] ~= 0 and valid or nil,
    tile = {p.tile[2], p.slice}, at = bm, stages = p.stages * p.warps[2],
    slots = 1, atom = cute.make_copy_atom(p.tile[2] % 16 == 0
      and "SM75_U32x4_LDSM_N" or "SM75_U32x2_LDSM_N", mA.element_type)})
end

-- Returns the index of this block's first tile of K, and the number of its
-- tiles.
local function share(p, at)
  local all, each = tiles.count(p.k, p.tile[3]), p.each
  local first = at.z * each
  return first, all % each == 0 and each or cute.min(all - first, each)
end

-- Waits until at most `pending` groups of this thread's copies are pending.
-- Also synchronizes with the other warps that copy for the same part of K.
local function landed(p, at, pending)
  cute.arch.cp_async_wait_group(pending)
  if p.warps[1] == 1 then cute.arch.sync_warp()
  elseif p.warps[2] == 1 then cute.arch.sync_threads()
  else cute.arch.barrier(1 + at.wk, 32 * p.warps[1]) end
end

-- Loads the first `count` tiles. With `ahead`, loads the weights before it
-- waits for the preceding launch, because no running launch writes them. The
-- next launch may then start at the same time. A is loaded after the wait.
local function begin(p, count, load)
  if not p.ahead then
    for k = 0, count - 1 do load(k, k) end
    return
  end
  for k = 0, count - 1 do load(k, k, "weights") end
  cute.arch.griddepcontrol_launch_dependents()
  cute.arch.griddepcontrol_wait()
  for k = 0, count - 1 do load(k, k, "rows") end
end

-- Iterates over a warp's tiles: calls use(stage) for each tile and, some tiles
-- earlier, load(k, stage). If there are at least as many stages as tiles, the
-- loop is unrolled.
local function walk(p, at, k_tiles, load, use)
  local few = math.type(k_tiles) and k_tiles <= p.stages
  local ahead = few and math.min(p.MT > 2 and AHEAD - 1 or AHEAD, k_tiles)
    or p.stages - 1
  begin(p, ahead, load)
  if few then
    for k = 0, k_tiles - 1 do
      landed(p, at, math.min(ahead, k_tiles - k) - 1)
      if k + ahead < k_tiles then load(k + ahead, k + ahead) end
      use(k)
    end
    return
  end
  local stage, write = 0, ahead
  for k in cute.range(k_tiles) do
    landed(p, at, ahead - 1)
    load(k + ahead, write)
    use(stage)
    stage, write = (stage + 1) % p.stages, stage
  end
end

local function body(p, mA, mW, mS, mZ, mC, ...)
  local BM, stages = p.tile[2], p.stages
  local at = splitk_skinny.place(p)
  local bn, bm = at.bn, at.bm
  local dtype = mA.element_type
  local mma = cute.make_tiled_mma(p.atom(dtype), {p.warps[1], 1, 1},
    {16 * p.warps[1], BM % 16 == 0 and 16 or 8, 16})
  local slice = mma:get_slice(at.side)
  local first, k_tiles = share(p, at)
  local W = weights(p, mW, at, bn)
  local A = rows_of(p, mA, mma, at, bm)
  local S = by_groups(p, mS, at, bn, slice)
  local Z = mZ and by_groups(p, mZ, at, bn, slice)
  local sums = cute.make_rmem_tensor({{2, 2}, p.MT, p.NT}, cute.f32)
  sums:fill(0)

  local function slot(stage) return at.wk * stages + stage end
  -- `part` selects the operands to load: "weights", "rows" (A), or nil for all
  -- of them.
  local function load(k, stage, part)
    cute.when(cute.lt(k, k_tiles), function()
      local tile = (first + k) * p.warps[2] + at.wk
      if part ~= "rows" then W.load(tile, stage) end
      if part ~= "weights" then A.load(tile, slot(stage)) end
      if part ~= "rows" then S.load(tile, slot(stage)) end
      if Z and part ~= "rows" then Z.load(tile, slot(stage)) end
    end)
    if part ~= "weights" then cute.arch.cp_async_commit_group() end
  end
  local parts = {mma = mma, dtype = dtype, at = at, A = A, W = W, S = S,
                 Z = Z, part = cute.make_fragment_like(sums), slot = slot}
  walk(p, at, k_tiles, load, function(stage)
    multiply(p, parts, sums, stage)
  end)

  if p.pdl and not p.ahead then
    cute.arch.griddepcontrol_launch_dependents()
  end
  splitk_skinny.leave(p, at, sums, mC,
                      cute.recast_tensor(W.pieces, cute.f32), ...)
end

---------------------------------------------------------------------------
-- Configurations
---------------------------------------------------------------------------

local BLOCKS = 132  -- the number of blocks to aim for: one for each SM of an
                    -- H200
-- The number of warps in a block. It is doubled if a tile has 8 rows of A.
local WARPS = 8
-- If several blocks compute a tile together, each has at least this number of
-- elements of K.
local SHARE = 4096

local function check(p)
  local function bad(what, ...)
    core.fail("bad-argument", "gemm_int4: " .. what:format(...))
  end
  if p.n % 16 ~= 0 or p.k % UNIT ~= 0 then
    bad("n = %d and k = %d must be multiples of 16 and %d", p.n, p.k, UNIT)
  end
  local g = p.group
  if g and (g < 16 or g & (g - 1) ~= 0 or p.k % g ~= 0
      or p.tile[3] % g ~= 0 and g % p.tile[3] ~= 0) then
    bad("groups of %d elements with K = %d; a power of two of at least 16 that "
      .. "divides K is needed", g,
        p.k)
  end
  if p.ahead and not p.pdl then
    bad("ahead = true needs pdl = true")
  end
  if p.warps[1] > 1 and p.warps[2] > 15 then
    bad("warps = {%d, %d}; at most 15 along K are possible, because each needs "
      .. "a barrier",
        p.warps[1], p.warps[2])
  end
end

-- Returns the number of warps along N, and the number of units of 16 columns
-- for each warp. They are the smallest for which all thread blocks run at once,
-- or in as few rounds as possible. A thread has at most 128 accumulators in
-- registers. The number of warps along N is limited so that each thread has a
-- 16-byte load of A to issue for each tile.
local function spread(o, m, rows)
  local all = tiles.count(o.n, 16) * tiles.count(m, rows)
  local most = math.min(7, 128 // rows)
  local widest = math.min(8, rows * (o.slice or 128) // 256)
  local rounds = tiles.count(all, BLOCKS * most * widest)
  local each = tiles.count(all, BLOCKS * rounds)
  local across = 1
  while each > across * most do across = 2 * across end
  across = o.warps and o.warps[1] or across
  return across, o.columns or tiles.count(each, across)
end

-- Returns the bytes of shared memory that a plan with `stages` stages needs.
local function bytes(p, stages)
  local tile = p.tile[1] * p.tile[2] * 4
  local scales = p.tile[1] * p.groups * p.warps[2] * (p.zeros and 3 or 2)
  return math.max(p.tile[1] * p.tile[3] // 2 * stages, tile * p.warps[2])
    + (p.tile[2] * p.tile[3] * 2 + scales) * stages
    + (p.splits == 1 and 0 or p.cluster and tile or 512)
end

-- Sets the tile of plan p such that each warp multiplies `slice` elements of K
-- of each tile. Uses as many stages as fit. Returns whether at least two stages
-- fit, or one tile is all of K.
local function stage(p, o, slice)
  local room = utils.get_smem_capacity_in_bytes(o.arch)
  -- If busy is true, the block gets twice as many warps: they can divide the
  -- partial sums, and there are enough registers.
  local busy = p.NT == 1 and p.warps[1] == 1 and p.MT <= 4 and p.MT ~= 3
  local along = o.warps and o.warps[2]
    or math.max(1, (busy and 2 or 1) * WARPS // p.warps[1])
  while not o.warps and along > 1 and slice * along > p.k do
    along = along // 2
  end
  p.slice, p.warps[2] = slice, along
  p.tile[3] = slice * along
  p.run = math.min(p.group or slice, slice)
  p.groups = p.group and math.max(1, slice // p.group) or 1
  local all = tiles.count(p.k, p.tile[3])
  p.each = tiles.count(all, math.min(all, p.splits))
  p.stages = o.stages or 8
  while not o.stages and p.stages > 1 and bytes(p, p.stages) > room do
    p.stages = p.stages - 1
  end
  p.stages = math.min(p.stages, p.each)
  return p.stages > 1 or p.each == 1
end

-- Sets the extent of tiles along K. Tiles are short if each warp has several
-- units of 16 columns and there is a stage for each tile. Otherwise, tiles are
-- as long as two stages in shared memory allow.
local function tile_of(p, o)
  if o.slice then return stage(p, o, o.slice) end
  if p.MT > 1 and stage(p, o, UNIT) and p.stages == p.each then return end
  if not stage(p, o, math.min(2 * UNIT, o.k)) then stage(p, o, UNIT) end
end

-- Returns the fraction of multiprocessors that are busy on average, if BLOCKS
-- blocks run at a time.
local function fill(o, m, rows)
  local across, columns = spread(o, m, rows)
  local blocks = tiles.count(o.n, 16 * across * columns) * tiles.count(m, rows)
  return blocks / (tiles.count(blocks, BLOCKS) * BLOCKS)
end

-- Returns the number of rows of A in a tile: 64 at most, fewer if there would
-- be few blocks.
local function rows_of_tile(o, m)
  if m <= 8 then return 8 end
  if m <= 16 or 2 * tiles.count(o.n, 16) <= BLOCKS then return 16 end
  return m > 32 and fill(o, m, 64) > 0.75 and 64 or 32
end

local OPTIONS = "n k m group zeros rows columns warps slice stages splits "
  .. "cluster name arch min_blocks epilogue gated pdl ahead"

-- Makes the plan of a problem: how warps and blocks divide the work.
local function plan(o)
  options("gemm_int4", o, OPTIONS)
  local m = o.m or 16
  local rows = o.rows or rows_of_tile(o, m)
  local across, columns = spread(o, m, rows)
  if o.gated then columns = tiles.count(columns, 2) * 2 end
  local p = {name = o.name or "gemm_int4", n = o.n, k = o.k, group = o.group,
             zeros = o.zeros, epilogue = o.epilogue, gated = o.gated, m = m,
             pdl = o.pdl, ahead = o.ahead, min_blocks = o.min_blocks,
             cluster = o.cluster,
             turned = true, warps = {across}, MT = columns, NT = rows // 8,
             tile = {16 * columns * across, rows}}
  local blocks = tiles.count(p.n, p.tile[1]) * tiles.count(m, rows)
  p.splits = o.splits or math.max(1, math.min(BLOCKS // blocks,
    o.k // SHARE, o.cluster and 2 or BLOCKS))
  tile_of(p, o)
  p.stages = math.max(p.stages, math.min(2, p.each))
  p.block = 32 * p.warps[1] * p.warps[2]
  check(p)
  p.splits = tiles.count(tiles.count(p.k, p.tile[3]), p.each)
  p.ragged = p.n % p.tile[1] ~= 0 or p.k % p.tile[3] ~= 0
  function p.atom(dtype)
    return dtype == cute.f16 and "SM80_16x8x16_F32F16F16F32_TN"
      or "SM80_16x8x16_F32BF16BF16F32_TN"
  end
  splitk_skinny.plan(p)
  return p
end

local gemm_int4 = {pack = pack}

--- Returns weight (n, k), an integer from 0 to 15, of packed weights in host
-- memory. `along` is the extent K of the weights.
---@param words any a buffer
---@param along integer K
function gemm_int4.weight(words, along, n, k)
  local lane = n % 8 * 4 + k % 8 // 2
  local block = (n // 16 * (along // UNIT) + k // UNIT) * 32 + lane
  local shift = n // 8 % 2 * 4 + k // 8 % 2 * 8 + k % 2 * 16
  return words[block * 4 + k // 16 % 4] >> shift & 15
end

--- Returns a kernel with arguments (A, W, S, [Z,] C, [work, turns,] ...), for
-- weights (n,k); see splitk_skinny.launches.
---@param o table {n: integer, k: integer, m: integer?, group: integer?,
-- zeros: boolean?, rows: integer?, columns: integer?, warps: integer[]?,
-- slice: integer?, stages: integer?, splits: integer?, cluster: boolean?,
-- name: string?, arch: string?, min_blocks: integer?, epilogue: function?,
-- gated: boolean?, pdl: boolean?, ahead: boolean?}
-- m: the intended number of rows of A (16 when absent), from which the default
-- of `rows` follows, the rows of A in a tile; columns: number of units of 16
-- columns for each warp; warps: {number along N, number along K}; slice:
-- elements of K that a warp multiplies of each tile; splits:
-- number of blocks that share K, through their shared memory if `cluster`
-- (sm_90); arch: the target whose shared memory limits the stages (sm_90a);
-- epilogue: like that of gemm_sm80, for the transposed product C^T (N,M);
-- gated: as there, with n rows of W; pdl: for dependent launches
setmetatable(gemm_int4, {__call = function(_, o)
  local p = plan(o)
  return splitk_skinny.launches(p, function(A, W, S, ...)
    if p.pdl and not p.ahead then cute.arch.griddepcontrol_wait() end
    if p.zeros then return body(p, A, W, S, ...) end
    body(p, A, W, S, nil, ...)
  end)
end})

return sign.module("kernels.gemm_int4", gemm_int4)
-- SPDX-License-Identifier: MIT
