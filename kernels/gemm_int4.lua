--- C = A W^T of 16-bit floats and 4-bit weights, for few rows of A: what takes
-- time is reading the weights.
--
--     local k = gemm_int4 {m = 16, n = 4096, k = 4096, group = 128}
--     local W = gemm_int4.pack(q)      -- of the host: (N,K), 0 to 15
--     local work, turns = k.scratch(m)
--     k.kernel(A, W, S, C, work, turns):launch {grid = k.grid(m),
--                                               block = k.block}
--
-- A (M,K) and C (M,N) are row-major bf16 or f16. A weight is (q - 8) s, with
-- one s for a column and `group` elements of K: S (K/group,N); without `group`
-- (1,N). With zeros = true it is (q - z) s, and Z, of u8 and as large as S,
-- follows S. Sums are f32, and each group's is scaled as a whole: no weight is
-- rounded.
--
-- Weights are the 16 rows of mma.sync, rows of A its 8 columns. A packed word
-- is what a thread has of a 16x16 block, 16 bytes of four such blocks along K:
-- cp.async brings them to where the same thread reads them, and only A and the
-- scales are shared. Warps along K, and blocks (z), share out the sum.
local core = require "cute.core"
local cute = require "cute"
local meet = require "kernels.meet"
local tiles = require "cute.tiles"
local _ = cute._

local UNIT = 64  -- of K, in a thread's 16 bytes
local AND_OR = 0xea

-- Numbers of these in whose low bits a nibble is added: 128, and 1024.
local MAGIC = {bf16 = 0x4300, f16 = 0x6400}

---------------------------------------------------------------------------
-- Weights of the host
---------------------------------------------------------------------------

-- Where element e (0 to 7) of a thread's part of a 16x16 block lies in its
-- word, and in the block: row and column beside those of the lane.
local PLACES = {}
for e = 0, 7 do
  local pair, upper = e // 2, e % 2
  PLACES[e + 1] = {shift = 4 * pair + 16 * upper, row = pair % 2 * 8,
                   col = pair // 2 * 8 + upper}
end

--- Weights in the order of the fragments: of (N,K) numbers from 0 to 15 a
-- tensor of u32, (N/16, K/64, 32, 4); the kernel takes i32, too. q may be a
-- tensor or a function.
---@param q any
---@param n? integer its extents, where it is a function
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
-- What a block has
---------------------------------------------------------------------------

-- This thread's place: its warp along N and along K, its lane, and its index
-- among the threads that share a part of K.
local function place(p)
  local tid = cute.arch.thread_idx()
  local side = 32 * p.warps[1]
  return {tid = tid, lane = tid % 32, n = tid // 32 % p.warps[1],
          k = tid // side, side = tid % side}
end

-- Copies 16 bytes.
local function vector_copy(atom, from, to, pred)
  local one = cute.make_layout {cute.size(from), 1}
  cute.copy(atom, cute.make_tensor(from.iterator, one),
            cute.make_tensor(to.iterator, one), pred)
end

-- The weights: load(k_tile, stage), and words(stage, i, u), 4 of them, of
-- block of rows i and unit u of this warp's part of K.
local function weights(p, W, at, bn)
  local units, MT = p.slice // UNIT, p.columns
  W = cute.recast_tensor(W, cute.u32)
  local s = cute.make_smem_tensor(cute.u32, cute.make_layout(
    {4, p.block, MT * units, p.stages},
    {1, 4, 4 * p.block, 4 * p.block * MT * units}), 128)
  local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL", cute.u32,
                                   128)
  local rows, along = W.shape[1], W.shape[2]
  local ragged = not (tiles.divides(p.tile[1] // 16, rows)
    and tiles.divides(p.tile[3] // UNIT, along))
  local out = {}
  function out.load(k_tile, stage)
    for i = 0, MT - 1 do
      local row = (bn * MT + i) * p.warps[1] + at.n
      for u = 0, units - 1 do
        local col = (k_tile * p.warps[2] + at.k) * units + u
        local pred
        if ragged then
          pred = cute.make_rmem_tensor({1}, cute.Boolean)
          pred[0] = cute.lt(row, rows) & cute.lt(col, along)
        end
        vector_copy(atom, W(row, col, at.lane, _),
                    s(_, at.tid, i * units + u, stage), pred)
      end
    end
  end
  function out.words(stage, i, u)
    local r = cute.make_rmem_tensor({4}, cute.u32)
    cute.autovec_copy(s(_, at.tid, i * units + u, stage), r)
    return r
  end
  return out
end

-- Scales or zero points: load(k_tile, stage), and get(stage, group), those of
-- the rows of this thread's accumulators: ((1,2),MT,1).
local function by_groups(p, t, at, bn, slice)
  local BN, rows = p.tile[1], p.groups
  local s = cute.make_smem_tensor(t.element_type, cute.make_layout(
    {rows, BN, p.stages}, {BN, 1, rows * BN}), 128)
  local width = 128 // t.element_type.bits
  local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL",
                                   t.element_type, 128)
  local across = BN // width
  local out = {}
  function out.load(k_tile, stage)
    local first = p.group and k_tile * p.tile[3] // p.group or 0
    for v = 0, rows * across - 1, p.block do
      local row, col = (at.tid + v) // across, (at.tid + v) % across
      local pred = cute.make_rmem_tensor({1}, cute.Boolean)
      pred[0] = cute.lt(first + row, t.shape[1])
        & cute.lt(bn * across + col, t.shape[2] // width)
      local function copy()
        vector_copy(atom,
          cute.local_tile(t, {1, width}, {first + row, bn * across + col}),
          cute.local_tile(s(_, _, stage), {1, width}, {row, col}), pred)
      end
      if v + p.block <= rows * across then copy()
      else cute.when(cute.lt(at.tid + v, rows * across), copy) end
    end
  end
  function out.get(stage, group)
    local row = cute.make_tensor(s(group, _, stage).iterator,
      cute.make_layout({BN, p.tile[2]}, {1, 0}))
    local part = slice:partition_C(row)                      -- ((2,2),MT,NT)
    local r = cute.make_rmem_tensor({{1, 2}, p.columns, 1}, t.element_type)
    for i = 0, p.columns - 1 do
      for h = 0, 1 do r[{{0, h}, i, 0}] = part[{{0, h}, i, 0}] end
    end
    return r
  end
  return out
end

-- The fragment of eight weights in word w, less the zeros of their two rows.
local function dequantise(w, frag, low, high, dtype)
  local words = cute.recast_tensor(frag, cute.u32)
  local magic = MAGIC[dtype.name] * 0x10001
  local less = cute.arch["sub_packed_" .. dtype.name .. "x2"]
  for k = 0, 3 do
    local x = cute.arch.lop3(k == 0 and w or w >> 4 * k, 0x000f000f, magic,
                             AND_OR)
    words[k] = less(x, k % 2 == 0 and low or high)
  end
end

---------------------------------------------------------------------------
-- The kernel
---------------------------------------------------------------------------

-- Multiplies this warp's part of the tile in `stage`.
local function multiply(p, b, acc, stage)
  local dtype, steps = b.dtype, p.run // 16
  local per = UNIT // 16
  local frag = cute.make_rmem_tensor({{2, 2, 2}, p.columns}, dtype)
  local words, group, zeros = {}, nil, nil
  for step = 0, p.slice // 16 - 1 do
    local q = step // steps
    if step % steps == 0 then
      b.part:fill(0)
      group = p.groups == 1 and 0
        or (b.at.k * p.slice + q * p.run) // p.group
      zeros = b.Z and b.Z.get(stage, group)
    end
    local x = b.A(stage, step)
    for i = 0, p.columns - 1 do
      if step % per == 0 then words[i] = b.W.words(stage, i, step // per) end
      local zero = {}
      for h = 0, 1 do
        local z = zeros and zeros[{{0, h}, i, 0}]:to(cute.u32) or 8
        zero[h] = (z | MAGIC[dtype.name]) * 0x10001
      end
      dequantise(words[i][step % per], frag(_, i), zero[0], zero[1], dtype)
    end
    cute.gemm(b.mma, b.part, frag, x, b.part)
    if step % steps == steps - 1 then
      local s = b.S.get(stage, group):load():to(cute.f32)
      acc:store(cute.fma(b.part:load(), s, acc:load()))
    end
  end
end

-- The rows of A: load(k_tile, stage), and a function of stage and step (16 of
-- K) that gives the fragment of this warp's part.
local function rows_of(p, mA, mma, at, bm, first, k_tiles)
  local BM, BK = p.tile[2], p.tile[3]
  local dtype = mA.element_type
  local all = cute.make_tiled_mma(p.atom(dtype),
                                  {p.warps[1] * p.warps[2], 1, 1})
  local A = tiles.operand(mA, {of = all, which = "B", tile = {BM, BK}, at = bm,
    stages = p.stages, from = first, k_tiles = k_tiles,
    atom = cute.make_copy_atom("UniversalCopy", dtype, 16)})  -- not fetched
  local s2r = cute.make_tiled_copy_B(cute.make_copy_atom(BM % 16 == 0
    and "SM75_U32x4_LDSM_N" or "SM75_U32x2_LDSM_N", dtype), mma)
  local thr = s2r:get_slice(at.side)
  local function fetch(stage, step)
    local s = cute.local_tile(A.smem(_, _, stage), {BM, p.slice}, {0, at.k})
    local from = thr:partition_S(s)
    local frag = mma:get_slice(at.side):partition_fragment_B(
      cute.local_tile(s, {BM, 16}, {0, 0}))
    cute.copy(s2r, from(_, _, step), thr:retile(frag)(_, _, 0))
    return frag(_, _, 0)
  end
  return A, fetch
end

-- Sums of warps along K, in those of the first.
local function join(p, acc, at)
  if p.warps[2] == 1 then return end
  local side, V = 32 * p.warps[1], cute.size(acc)
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(
    {{4, V // 4}, side, p.warps[2] - 1},
    {{1, 4 * side}, 4, V * side}), 128)
  local mine = cute.coalesce(acc)
  cute.when(cute.gt(at.k, 0), function()
    cute.autovec_copy(mine, s(_, at.side, at.k - 1))
  end)
  cute.arch.sync_threads()
  cute.when(cute.eq(at.k, 0), function()
    for w = 0, p.warps[2] - 2 do
      local part = cute.make_fragment_like(mine)
      cute.autovec_copy(s(_, at.side, w), part)
      mine:store(mine:load() + part:load())
    end
  end)
end

-- This block's tiles of K: the first, and how many; and how many blocks share.
local function share(p)
  local all = tiles.count(p.k, p.tile[3])
  local each = tiles.count(all, p.splits)
  local first = select(3, cute.arch.block_idx()) * each
  return first, p.splits == 1 and all or cute.min(all - first, each)
end

local function body(p, mA, mW, mS, mZ, mC, work, turns)
  local BN, BM, stages = p.tile[1], p.tile[2], p.stages
  local block, at = (cute.arch.block_idx()), place(p)
  local across = tiles.count(p.n, BN)
  local bn, bm = block % across, block // across
  local dtype = mA.element_type
  local mma = cute.make_tiled_mma(p.atom(dtype), {p.warps[1], 1, 1},
    {16 * p.warps[1], BM % 16 == 0 and 16 or 8, 16})
  local slice = mma:get_slice(at.side)
  local first, k_tiles = share(p)
  local A, fetch = rows_of(p, mA, mma, at, bm, first, k_tiles)
  local W = weights(p, mW, at, bn)
  local S = by_groups(p, mS, at, bn, slice)
  local Z = mZ and by_groups(p, mZ, at, bn, slice)
  local turned = cute.make_tensor(mC.iterator, cute.make_layout(
    {mC.shape[2], mC.shape[1]}, {mC.stride[2], mC.stride[1]}))
  local C = tiles.result(turned, mma, {BN, BM}, {bn, bm}, at.side)
  C.acc:fill(0)

  local function load(k, stage)
    cute.when(cute.lt(k, k_tiles), function()
      A.load(k, stage)
      W.load(first + k, stage)
      S.load(first + k, stage)
      if Z then Z.load(first + k, stage) end
    end)
    cute.arch.cp_async_commit_group()
  end
  for stage = 0, stages - 2 do load(stage, stage) end
  local parts = {mma = mma, dtype = dtype, at = at, A = fetch, W = W, S = S,
                 Z = Z, part = cute.make_fragment_like(C.acc)}
  local stage, write = 0, stages - 1
  for k in cute.range(k_tiles) do
    cute.arch.cp_async_wait_group(stages - 2)
    cute.arch.sync_threads()
    load(k + stages - 1, write)
    multiply(p, parts, C.acc, stage)
    stage, write = (stage + 1) % stages, stage
  end

  join(p, C.acc, at)
  local leave = cute.eq(at.k, 0)
  if p.splits > 1 then
    leave = leave & meet(C.acc, {work = work, turns = turns, at = block,
      splits = p.splits, threads = 32 * p.warps[1], of = leave})
  end
  cute.when(leave, function() C.store() end)
end

---------------------------------------------------------------------------
-- Plans
---------------------------------------------------------------------------

local BLOCKS = 132  -- that keep a large GPU busy

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
    bad("groups of %d of K = %d; powers of two from 16 on that divide it", g,
        p.k)
  end
end

-- How a problem is spread over warps and blocks.
local function plan(o)
  local m = o.m or 16
  local rows = o.rows or m <= 8 and 8 or m <= 16 and 16 or m <= 32 and 32 or 64
  local p = {name = o.name or "gemm_int4", n = o.n, k = o.k, group = o.group,
             zeros = o.zeros, m = m, stages = o.stages or 4,
             warps = o.warps or rows <= 16 and {4, 2}
               or {rows == 32 and 4 or 8, 1},
             columns = o.columns or rows <= 32 and 2 or 1,
             slice = o.slice or 128}
  p.tile = {16 * p.columns * p.warps[1], rows, p.slice * p.warps[2]}
  p.block = 32 * p.warps[1] * p.warps[2]
  check(p)
  p.run = math.min(p.group or p.slice, p.slice)
  p.groups = p.group and math.max(1, p.tile[3] // p.group) or 1
  local all = tiles.count(p.k, p.tile[3])
  local blocks = tiles.count(p.n, p.tile[1]) * tiles.count(m, rows)
  local splits = o.splits or math.max(1, BLOCKS // blocks)
  p.splits = tiles.count(all, tiles.count(all, math.min(all, splits)))
  function p.atom(dtype)
    return dtype == cute.f16 and "SM80_16x8x16_F32F16F16F32_TN"
      or "SM80_16x8x16_F32BF16BF16F32_TN"
  end
  return p
end

local gemm_int4 = {pack = pack}

--- Weight (n, k) of packed ones in memory of the host, k of all: 0 to 15.
---@param words any a buffer
---@param along integer K
function gemm_int4.weight(words, along, n, k)
  local lane = n % 8 * 4 + k % 8 // 2
  local block = (n // 16 * (along // UNIT) + k // UNIT) * 32 + lane
  local shift = n // 8 % 2 * 4 + k // 8 % 2 * 8 + k % 2 * 16
  return words[block * 4 + k // 16 % 4] >> shift & 15
end

--- A kernel of (A, W, S, [Z,] C, work, turns), for n columns and k; grid(m)
-- and scratch(m), its work and turns, of the host: f32, and i32 zeros.
---@param o {n: integer, k: integer, m: integer?, group: integer?,
-- zeros: boolean?, rows: integer?, columns: integer?, warps: integer[]?,
-- slice: integer?, stages: integer?, splits: integer?, name: string?,
-- min_blocks: integer?}
-- m: the rows that it is meant for (16), which decide `rows`, those of a tile;
-- columns: 16-column blocks of a warp; warps: along N and along K; slice: of K,
-- that a warp multiplies of a tile; splits: blocks that share K
return setmetatable(gemm_int4, {__call = function(_, o)
  local p = plan(o)
  local function blocks(m)
    return tiles.count(p.n, p.tile[1]) * tiles.count(m or p.m, p.tile[2])
  end
  return {plan = p, block = p.block,
    grid = function(m) return {blocks(m), 1, p.splits} end,
    scratch = function(m)
      return cute.empty({blocks(m) * p.splits * p.tile[1] * p.tile[2]},
                        cute.f32), cute.zeros({blocks(m)}, cute.i32)
    end,
    kernel = cute.kernel(p.name, {min_blocks = o.min_blocks},
      function(A, W, S, ...)
        if p.zeros then body(p, A, W, S, ...)
        else body(p, A, W, S, nil, ...) end
      end)}
end})
