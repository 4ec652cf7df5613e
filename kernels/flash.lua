--- The common parts of the attention kernels: tiles of rows of D elements in
-- shared memory, their products on mma.sync, and the ranges of keys that a row
-- sees.
--
--     local team = flash.team(cute.bf16, 4)   -- 4 warps, 16 rows at a time
--     local sK = team:tile(64, D, 2)                          -- (64,D,PIPE)
--     local load = team:rows(K, sK)           -- rows of K (T keys, D)
--     load(block, stage)
--     local scores = team:times(sK)
--     scores(stage, s, take_Q)                -- s += Q K^T
--
-- The left operand of a product is passed as a function of k. It returns the
-- fragment (MMA,M) of elements 16 k to 16 k + 15 of each row. The rows of a
-- product are distributed over the warps so that the four lanes of a quad hold
-- a row. In the softmax, the "power" of a score is its exponential, which is
-- computed as a power of 2.
local core = require "cute.core"
local cute = require "cute"
local sign = require "cute.lang.signature"
local kept = require "kernels.kept"
local tiles = require "cute.tiles"
local rules = require "kernels.operand_rules"
local _ = cute._

local flash = {}

flash.LOG2E = 1.4426950408889634

--- Computes 2^x. Results below 2^-126 become zero, which saves an instruction
-- for each score.
function flash.exp2(x) return cute.arch.approx("ex2.approx.ftz.f32", x) end

---------------------------------------------------------------------------
-- Options
---------------------------------------------------------------------------

--- The names of the options that all attention kernels accept.
flash.OPTIONS = "name head causal window tile warps held"

--- Returns the parameters of an attention kernel as a table, with defaults
-- filled in. Its fields are head, tile, warps, held (whether Q stays in
-- registers), and the window's limits `left` and `right` (see flash.sight).
-- known[head] = {tile, warps, held} has the defaults for this head size.
function flash.options(what, o, known)
  local k = known[o.head]
  if not k then
    core.fail("bad-argument", ("%s: head = %s; 32, 64, 96, 128, 192 or "
      .. "256 elements are needed"):format(what, core.show(o.head)))
  end
  local p = {head = o.head, tile = o.tile or k[1], warps = o.warps or k[2],
             held = k[3]}
  rules.integers(what, p, {"warps"}, 1, 32)
  local M, N = p.tile[1], p.tile[2]
  rules.need(M % (16 * p.warps) == 0 and N % 16 == 0 and M > 0 and N > 0, what,
    "tile = {%s, %s}; multiples of %d (16 for each warp) and 16 are needed",
    M, N, 16 * p.warps)
  if o.held ~= nil then p.held = o.held end
  for i, side in ipairs {"left", "right"} do
    p[side] = rules.window(what, o, i)
  end
  if o.causal then p.right = 0 end
  return p
end

--- Checks that the operands, a table {NAME = tensor}, have rows of `head`
-- contiguous elements. If `group` is given, that many heads of Q must share a
-- head of K.
function flash.check(what, head, operands, group)
  for _, name in ipairs {"Q", "K", "V", "O", "dO", "dQ", "dK", "dV"} do
    local t = operands[name] or operands.Q
    local rank = cute.rank(t)
    rules.same(what, "a head", head, "a row of " .. name, t.shape[rank])
    local stride = t.stride[rank]
    rules.need(not math.type(stride) or stride == 1, what,
      "the stride in a row of %s is %s; 1 is needed", name, stride)
  end
  local h = operands.Q.shape[cute.rank(operands.Q) - 1]
  local g = operands.K.shape[cute.rank(operands.K) - 1]
  if not (math.type(h) and math.type(g)) then return end
  rules.need(h % g == 0 and (not group or h == group * g), what,
    "Q has %d heads and K has %d; Q needs %s", h, g,
    group and group .. " heads for each head of K" or "a multiple of K's")
end

---------------------------------------------------------------------------
-- Accumulators
---------------------------------------------------------------------------

--- Returns a view of accumulators (MMA,M,N) with two modes, rows and columns:
-- ((2,M),(2,N)). The accumulators of a wgmma, ((2,2,n),M,N), become
-- ((2,M),(2,n,N)).
function flash.by_rows(acc)
  local flat = cute.flatten(acc.layout)
  local modes = cute.rank(flat) > 4 and cute.select(flat, 1, 3, 0, 2, 4)
    or cute.select(flat, 1, 2, 0, 3)
  return cute.make_tensor(acc.iterator, cute.group(cute.group(modes, 0, 2), 1,
                                                   cute.rank(flat) - 1))
end

--- Returns accumulators (MMA,M,N) as the left operand of a product. Their
-- columns are the K of this product. The operand is a function of k that
-- returns a view of the registers of the k-th 16 columns.
function flash.left_operand(acc)
  local M, N = cute.size(acc, 1), cute.size(acc, 2)
  local view = cute.make_tensor(acc.iterator, cute.make_layout(
    {{2, 2, 2}, M, N // 2}, {{1, 2, 4 * M}, 4, 8 * M}))
  return function(k) return view(_, _, k) end
end

--- Reduces x with f over the four lanes of a quad. Together, these lanes hold a
-- row.
function flash.quad(f, x)
  x = f(x, cute.arch.shuffle_sync_bfly(x, 2))
  return f(x, cute.arch.shuffle_sync_bfly(x, 1))
end

---------------------------------------------------------------------------
-- Tiles of rows
---------------------------------------------------------------------------

local Team = {}
Team.__index = Team

local MMA = {bf16 = "SM80_16x8x16_F32BF16BF16F32_TN",
             f16 = "SM80_16x8x16_F32F16F16F32_TN"}

--- Makes a team, an object for the warps of a block that compute products
-- together: `warps` of them along the rows of a tile and `across` (1 when
-- absent) along its columns. Each warp has `each` columns at a time (16 when
-- absent). tid: the thread's index in the team, which is its index in the block
-- when absent.
function flash.team(dtype, warps, across, each, tid)
  across = across or 1
  if not MMA[dtype.name] then
    core.fail("bad-argument", ("attention: Q has type %s; bf16 or f16 is "
      .. "needed"):format(dtype.name))
  end
  local mma = cute.make_tiled_mma(MMA[dtype.name], {warps, across, 1},
    {16 * warps, (each or 16) * across, 16})
  tid = tid or cute.arch.thread_idx()
  return setmetatable({dtype = dtype, mma = mma, tid = tid,
    thr = mma:get_slice(tid), threads = 32 * warps * across,
    ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", dtype),
    ldsm_t = cute.make_copy_atom("SM75_U16x8_LDSM_T", dtype)}, Team)
end

--- Allocates shared memory for `stages` tiles: (rows,D,PIPE).
function Team:tile(rows, D, stages)
  return cute.make_smem_tensor(self.dtype, tiles.smem_layout(
    self.dtype.bits, {rows, D}, stages, 1), 128)
end

--- Returns a transposed view of tiles in shared memory: (D,rows,PIPE).
function flash.turned(s)
  local rows, D, stages = cute.size(s, 0), cute.size(s, 1), cute.size(s, 2)
  return cute.composition(s, cute.make_layout({D, rows, stages},
                                              {rows, 1, rows * D}))
end

--- Returns `count` rows of x from row `first` on. x is a matrix (S,D), or a
-- vector (S) with one value for each row.
function flash.section(x, first, count)
  local matrix = cute.rank(x) == 2
  local from = cute.domain_offset(matrix and {first, 0} or {first}, x)
  return cute.make_tensor(from.iterator, cute.make_layout(
    matrix and {count, cute.size(x, 1)} or {count}, x.stride))
end

--- Returns the first row of sequence b and its number of rows, from the offsets
-- `cu` at which B sequences begin. Offsets are limited to `total` rows. b = B
-- stands for the rows after the last sequence if `rest` is set. Without `rest`,
-- sequence B has no rows.
function flash.span(cu, b, total, rest)
  local last = cute.size(cu) - 1
  local from = cute.min(cute.max(cu[b], 0), total)
  local to = cute.min(cute.max(cu[cute.min(b + 1, last)], from), total)
  if rest then to = cute.where(cute.eq(b, last), total, to) end
  return from, to - from
end

local function sequence(x, b, cu, rest)
  if not cu then return x end
  return flash.section(x, flash.span(cu, b, cute.size(x, 0), rest))
end

--- Returns the rows of head h of sequence b as (S,D). t is (B,S,H,D), or
-- (total,H,D) if `cu` gives the offsets of the sequences. rest: see flash.span.
function flash.head(t, b, h, cu, rest)
  return sequence(cu and t(_, h, _) or t(b, _, h, _), b, cu, rest)
end

--- Returns a tensor (rows,H,D) of concatenated sequences as a single batch
-- (1,rows,H,D), and a tensor of four modes unchanged.
function flash.batched(t)
  if not t or cute.rank(t) == 4 then return t end
  local l = t.layout
  return cute.make_tensor(t.iterator, cute.make_layout(
    {1, table.unpack(l.shape)}, {0, table.unpack(l.stride)}))
end

--- Returns a vector (S) with one value for each row of head h of sequence b,
-- such as the LSE. t is (B,H,S), or (H,total) if `cu` gives the offsets of the
-- sequences. rest: see flash.span.
function flash.numbers(t, b, h, cu, rest)
  return sequence(cu and t(h, _) or t(b, h, _), b, cu, rest)
end

--- Returns the number of heads of Q that share one head of K.
function flash.group(Q, K)
  local mode = cute.rank(Q) - 2
  return cute.size(Q, mode) // cute.size(K, mode)
end

--- Returns the index of this block's tile of M rows in a sequence of S rows. If
-- `turned`, block 0 has the last tile. With `cu`, a block beyond the last tile
-- exits the kernel.
function flash.place(S, M, turned, cu)
  local at = cute.arch.block_idx()
  if cu then cute.return_if(cute.ge(at * M, S)) end
  return turned and tiles.count(S, M) - 1 - at or at
end

-- Makes the tiled copy with which all threads together copy rows of D elements.
-- Each thread copies 16 bytes, and one copy spans at most 128 bytes of a row.
function Team:copy(name, D)
  local along = core.gcd(D, 64) // 8
  return cute.make_tiled_copy(cute.make_copy_atom(name, self.dtype, 128),
    cute.make_layout({self.threads // along, along}, {along, 1}),
    cute.make_layout {1, 8})
end

--- Returns a function load(block, stage[, inner]) that loads tiles of a matrix
-- X (rows,D) into shared memory s by cp.async. It loads zeros for rows after
-- the last one. `inner` states that all rows of the tile exist.
function Team:rows(X, s)
  local rows, D = cute.size(s, 0), cute.size(s, 1)
  local g2s = self:copy("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL", D)
  local thr = g2s:get_slice(self.tid)
  local src = thr:partition_S(cute.local_tile(X, {rows, D}, {_, 0}))
  local dst = thr:partition_D(s)                           -- (CPY,M,K,..)
  return function(block, stage, inner)
    local inside = tiles.inside(thr, X, {rows, D}, block)
    cute.copy(g2s, src(_, _, _, block), dst(_, _, _, stage),
              not inner and inside(0) or nil)
  end
end

--- Calls f(tile, stage) for the tiles last - 1 down to first. Two stages of
-- shared memory alternate: the next tile is loaded while the current one is
-- processed. load(tile, stage, inner) loads a tile; `inner` is true for every
-- tile but tile last - 1. meet() synchronizes the threads that share the
-- stages. With a block mask, `at` is the function that flash.listed returns,
-- and `inner` is always false.
---@param f fun(tile: any, stage: any)
---@param at? function
function flash.walk(first, last, load, meet, f, at)
  local function tile_of(i) return at and (at(i)) or i end
  cute.when(cute.gt(last, first), function() load(tile_of(last - 1), 0) end)
  cute.arch.cp_async_commit_group()
  local stage = 0
  for i in cute.range(last - 1, first - 1, -1) do
    cute.arch.cp_async_wait_group(0)
    meet()
    cute.when(cute.gt(i, first), function()
      load(tile_of(i - 1), 1 - stage, not at)
    end)
    cute.arch.cp_async_commit_group()
    f(tile_of(i), stage)
    stage = 1 - stage
  end
end

--- Makes accumulators of a product of M rows and N columns, filled with zeros.
function Team:zeros(M, N)
  local acc = self.thr:partition_fragment_C(cute.make_identity_tensor {M, N})
  acc:fill(0)
  return acc
end

--- Returns the positions {row, column} of this thread's accumulators in a tile
-- of M rows and N columns.
function Team:places(M, N)
  return flash.by_rows(self.thr:partition_C(
    cute.make_identity_tensor {M, N}))
end

--- Returns two values for the matrix s (M,K) in shared memory. The first is the
-- left operand of a product, a function of k. The second is a function load().
-- Without `held`, the operand loads block k when it is called, and load() does
-- nothing. With `held`, load() loads all blocks into registers, where they
-- stay.
function Team:left(s, held)
  local thr = cute.make_tiled_copy_A(self.ldsm, self.mma):get_slice(self.tid)
  local frag = self.thr:partition_fragment_A(s)               -- (MMA,M,K)
  local from, to = thr:partition_S(s), thr:retile(frag)       -- (CPY,M,K)
  local function fetch(k) cute.copy(self.ldsm, from(_, _, k), to(_, _, k)) end
  local function load()
    if held then for k = 0, cute.size(frag, 2) - 1 do fetch(k) end end
  end
  return function(k)
    if not held then fetch(k) end
    return frag(_, _, k)
  end, load
end

--- Returns a function (stage, acc, A) that adds the product A s^T to acc, for
-- the tile in stage `stage` of s (N,K,PIPE). A(k) returns block k of the left
-- operand. With `turned`, s is a view by flash.turned, in which N is
-- contiguous. The fragment of the next 16 elements of K is loaded while the
-- current one is multiplied.
function Team:times(s, turned)
  local atom = turned and self.ldsm_t or self.ldsm
  local thr = cute.make_tiled_copy_B(atom, self.mma):get_slice(self.tid)
  local from = thr:partition_S(s)                             -- (CPY,N,K,PIPE)
  local block = cute.local_tile(s(_, _, 0), {cute.size(s, 0), 16}, {0, 0})
  local frag, to = {}, {}
  for i = 0, 1 do
    frag[i] = self.thr:partition_fragment_B(block)            -- (MMA,N,1)
    to[i] = thr:retile(frag[i])                               -- (CPY,N,1)
  end
  local steps = cute.size(from, 2)
  return function(stage, acc, A)
    local function fetch(k)
      cute.copy(atom, from(_, _, k, stage), to[k % 2](_, _, 0))
      return A(k)
    end
    local now = fetch(0)
    for k = 0, steps - 1 do
      local next_ = k + 1 < steps and fetch(k + 1)
      cute.gemm(self.mma, acc, now, frag[k % 2](_, _, 0), acc)
      now = next_
    end
  end
end

--- Stores accumulators as rows of X (S,D), through shared memory s (rows,D).
-- Each thread stores 16 bytes at a time. s must not be in use by other warps.
function Team:store(acc, s, X, block)
  local rows, D = cute.size(s, 0), cute.size(s, 1)
  local out = cute.make_fragment_like(acc, self.dtype)
  out:store(acc:load():to(self.dtype))
  local pair = cute.make_copy_atom("UniversalCopy", self.dtype, 32)
  local r2s = cute.make_tiled_copy_C(pair, self.mma):get_slice(self.tid)
  -- ldmatrix itself does not wait for other lanes to write the shared memory.
  cute.arch.sync_warp()
  cute.copy(pair, r2s:retile(out), r2s:partition_D(s))
  cute.arch.sync_threads()
  local s2g = self:copy("UniversalCopy", D)
  local thr = s2g:get_slice(self.tid)
  local src = thr:partition_S(s)
  local dst = thr:partition_D(cute.local_tile(X, {rows, D}, {block, 0}))
  local inside = tiles.inside(thr, X, {rows, D}, block)
  local r = cute.make_fragment_like(src)
  cute.copy(s2g, src, r)
  cute.copy(s2g, r, dst, inside(0))
end

--- Stores a tile s (M,D) in shared memory to the rows X (n,D) of global memory,
-- 16 bytes for each lane. Several warps share the rows. All lanes of each warp
-- call this function.
---@param warp any the index of this warp among them
---@param warps integer
function flash.store_rows(s, X, warp, warps)
  local along = core.gcd(cute.size(s, 1), 64) // 8
  local atom = cute.make_copy_atom("UniversalCopy", s.element_type, 128)
  local thr = cute.make_tiled_copy(atom,
    cute.make_layout({32 // along, along}, {along, 1}),
    cute.make_layout {1, 8}):get_slice(cute.arch.lane_idx())
  local from = thr:partition_S(s)                             -- (CPY,M,K)
  local to = thr:partition_D(cute.make_tensor(X.iterator, cute.make_layout(
    {cute.size(s, 0), cute.size(s, 1)}, X.stride)))
  local r = cute.make_fragment_like(from(_, 0, _))
  local row = cute.arch.lane_idx() // along
  for i in cute.range(warp, cute.size(from, 1), warps) do
    cute.when(cute.lt(i * (32 // along) + row, cute.size(X, 0)), function()
      cute.copy(atom, from(_, i, _), r)
      cute.copy(atom, r, to(_, i, _))
    end)
  end
end

---------------------------------------------------------------------------
-- Visibility of columns
---------------------------------------------------------------------------

local Sight = {}
Sight.__index = Sight

--- Makes a sight, an object that determines the keys (columns of the scores)
-- that each row sees. The scores have S rows and T columns. Row i sees the
-- columns from i + T - S - left to i + T - S + right. left = nil or right =
-- nil: no limit on that side.
function flash.sight(S, T, left, right)
  return setmetatable({T = T, off = T - S, left = left, right = right}, Sight)
end

--- Returns four block indices (first, last, from, to) for M rows from `row` on
-- and blocks of N columns. Some row sees a column of each of the blocks first
-- to last - 1. Every row sees all columns of the blocks `from` to to - 1;
-- `from` and `to` are nil if both ranges are always the same.
function Sight:blocks(row, M, N)
  local first, last = 0, tiles.count(self.T, N)
  local from, to = 0, last
  local ragged = not tiles.divides(N, self.T)
  if ragged then to = self.T // N end
  if self.right then
    local sees = row + (self.off + self.right + 1)
    last = cute.min(last, cute.ceil_div(cute.max(sees + (M - 1), 0), N))
    to = cute.min(to, cute.max(sees, 0) // N)
  end
  if self.left then
    local sees = row + (self.off - self.left)
    first = cute.max(sees, 0) // N
    from = cute.ceil_div(cute.max(sees + (M - 1), 0), N)
  end
  if not (ragged or self.left or self.right) then return first, last end
  return first, last, from, to
end

--- Reports whether every row sees every column and, in addition, N divides the
-- number of columns.
function Sight:whole(N)
  return not (self.left or self.right) and tiles.divides(N, self.T)
end

--- Replaces the scores of hidden columns by x. `row` and `col` are the first
-- row and column of the tile. take: see flash.change.
function Sight:hide(s, places, row, col, x, take)
  local all = flash.by_rows(s)
  for i = 0, cute.size(all, 0) - 1 do
    local at = row + places(i, 0)[1] + (self.off - col)
    local to = self.T - col
    if self.right then to = cute.min(to, at + (self.right + 1)) end
    for j = 0, cute.size(all, 1) - 1 do
      local c = places(i, j)[2]
      local seen = cute.lt(c, to)
      if self.left then seen = seen & cute.ge(c, at - self.left) end
      local y = cute.where(seen, all(i, j), x)
      if take then take(i, j, y) else all[{i, j}] = y end
    end
  end
end

--- Returns two values for the tiles of keys that a block mask
-- (kernels/block_mask.lua) lists for a block of rows. The first is the number
-- of tiles. The second is a function (i, ask) that returns the index of tile i
-- and, if `ask` is set, whether the mask hides some of its keys. A listed block
-- consists of `parts` tiles.
---@param list any (1+m) of i32
---@param parts integer tiles of a block
function flash.listed(list, parts)
  return list[0] * parts, function(i, ask)
    cute.assume(i, 0, (1 << 31) - 1, 1)
    local entry = list[1 + i // parts]
    return (entry >> 1) * parts + i % parts,
      ask and cute.ne(entry & 1, 0) or nil
  end
end

--- Returns two functions that test the bits of a block mask
-- (kernels/block_mask.lua). load(n) loads the bits of this thread's scores in
-- tile n of the keys. seen(at) reports whether the score of row at.i and column
-- at.j of the thread's accumulators is visible.
---@param bits any (m,rows,words) of u32, for a block of rows
---@param places any see flash.change
---@param row any the tile's first row in the block
---@param N integer the keys of a tile, a divisor of 128
---@param keys integer the keys of a block
function flash.bits(bits, places, row, N, keys)
  local rows, parts = cute.size(places, 0), keys // N
  local held = cute.make_rmem_tensor({rows}, cute.u32)
  local function load(n)
    -- the tile's first key, as an index within the block of the mask
    local first = n % parts * N
    local word = first // 128 * 4 + places(0, 0)[2] // 2
    for i = 0, rows - 1 do
      local x = bits(n // parts, row + places(i, 0)[1], word)
      held[i] = N == 128 and x or x >> (first % 128 // 4):to(cute.u32)
    end
  end
  return load, function(at) return (held[at.i] & (1 << at.j)):ne(0) end
end

---------------------------------------------------------------------------
-- Functions of scores
---------------------------------------------------------------------------

local MOST_BLOCK = 1024  -- maximum number of rows or keys of a mask's block

--- Makes a function that replaces the scores of a tile: change(s, places, row,
-- col[, sloped[, inner[, near[, take]]]]). Returns nil if o has neither score
-- nor mask. Arguments of change:
-- row, col: the first row and column of the tile among all scores.
-- sloped: change returns the derivatives of the new scores, if there is
--   o.score.
-- inner: the tile has no column beyond the last one.
-- near: a record of flash.near.
-- take: take(i, j, score) is called for each new score instead of storing it,
--   so that the compiler can overlap the computation of scores with their use.
-- Options o; `score` and `mask` get the indices of a thread's accumulators as
-- at.i and at.j:
-- score, mask: see kernels/attention.lua.
-- scale: a factor that is applied to the scores before `score` and `mask`; nil
--   for 1.
-- b, h: sequence and head.
-- rows, columns: the extents of all scores. `score` and `mask` get no index
--   beyond them.
-- turned: the rows of the scores are keys, their columns are queries.
-- single: a thread's columns do not begin at a multiple of 16, so at:kept
--   computes the random bits of each score separately.
-- draw: the function of kept.turned, if it was already made.
-- note: note(y) is called with each result of `score`. change then also returns
--   the results of note, by the indices [i][j] of a thread's accumulators.
-- by_rows: take() gets all scores of a row one after another; otherwise, all
--   scores of a column.
---@param o table {score: function?, mask: function?, scale: any, b: any,
-- h: any, tile: integer[], rows: any, columns: any, turned: boolean?,
-- single: boolean?, draw: function?, note: function?, log2: boolean?,
-- by_rows: boolean?}
---@return function?
function flash.change(o)
  if not o.score and not o.mask then return nil end
  local function inside(i, n, tile)
    return tiles.divides(tile, n) and i or cute.min(i, n - 1)
  end
  -- Declare the range of each index, so that the compiler can convert the index
  -- to a float by an addition. MOST_BLOCK is added because the last listed
  -- block may contain tiles after the last key (flash.listed).
  local function within(at, n)
    if math.type(n) and n > 0 and not math.type(at) then
      return cute.assume(at, 0, n + MOST_BLOCK, 1)
    end
    return at
  end
  return function(s, places, row, col, sloped, inner, near, take)
    local all = flash.by_rows(s)
    local slopes = sloped and o.score and cute.make_fragment_like(s)
    local slope = slopes and flash.by_rows(slopes)
    row, col = within(row, o.rows), within(col, o.columns)
    local draw = o.draw
    if not draw and not o.single then
      draw = (o.turned and kept.turned or kept.tile)(o, places, row, col)
    end
    local rows, columns, notes = {}, {}, o.note and {}
    -- Replaces the score in row i and column j of the thread's accumulators.
    local function one(i, j)
      rows[i] = rows[i] or inside(row + places(i, 0)[1], o.rows, o.tile[1])
      local q, k = rows[i], columns[j]
      if not k then
        k = col + places(i, j)[2]
        if not inner then k = inside(k, o.columns, o.tile[2]) end
        if take then columns[j] = k end
      end
      local at = kept.at(o.b, o.h, o.turned and k or q, o.turned and q or k)
      at.i, at.j = i, j
      if draw then
        function at.kept(_, p, seed) return draw(i, j, p, seed) end
      end
      at.near = near and near.note
      local x = all(i, j)
      at.raw, at.scale, at.log2 = x, o.scale or 1.0, o.log2
      if o.scale then x = x * o.scale end
      local y = o.score and o.score(x, at) or x
      if slope then slope[{i, j}] = cute.derivative(y, x) end
      if notes then
        notes[i] = notes[i] or {}
        notes[i][j] = o.note(y)
      end
      if o.mask then y = cute.where(o.mask(at), y, -math.huge) end
      if take then take(i, j, y) else all[{i, j}] = y end
    end
    local m, n = cute.size(all, 0), cute.size(all, 1)
    -- With `take`, scores are computed column by column, which saves registers,
    -- unless o.by_rows is set.
    local by_rows = o.by_rows or not take
    for x = 0, m * n - 1 do
      if by_rows then one(x // n, x % n) else one(x % m, x // m) end
    end
    return slopes, notes
  end
end

--- Calls take(i, j, score) for each of the scores s, row by row.
function flash.each(s, take)
  local all = flash.by_rows(s)
  for i = 0, cute.size(all, 0) - 1 do
    for j = 0, cute.size(all, 1) - 1 do take(i, j, all(i, j)) end
  end
end

-- The smallest factor that flash.near uses. f32 can represent the fourth power
-- of this number.
local LEAST_FACTOR = 2.0 ^ -15

--- Makes an object that records the arguments of at.near(x^2, factor), which a
-- score_mod calls. The call permits a cheaper formula that is accurate only for
-- |x| up to 1 / factor. far() reports whether some |x| may be larger, so that
-- the scores must be computed again without at.near. It tests the sum of the
-- fourth powers of x, because a sum takes less time than a maximum.
function flash.near()
  local sums, n = cute.make_rmem_tensor({5}, cute.f32), 0
  sums:fill(0)  -- sums[0] to sums[3] are independent sums; sums[4] is the
                -- fourth power of the factor.
  return {
    note = function(square, factor)
      n = n % 4 + 1
      sums[n - 1] = cute.fma(square, square, sums[n - 1])
      local f = cute.max(factor, LEAST_FACTOR)
      sums[4] = f * f * (f * f)
    end,
    far = function()
      return cute.gt((sums[0] + sums[1] + (sums[2] + sums[3])) * sums[4], 1)
    end}
end

--- Makes a function (s, places, row, masked) for a tile of scores s whose first
-- row is `row`. That function returns nil if nothing changes the scores.
-- Otherwise it returns a function (n[, near[, take]]). It applies score_mod to
-- the scores of block n of keys and, if the block is `masked`, hides keys.
-- `masked` may be a traced value. With a block mask (o.list), the mask applies
-- only where `masked` is true. take, by_rows: see flash.change.
---@param o table {tile: integer[], list: any}
---@param f table {score: function?, mask: function?, scale: any, b: any,
-- h: any, log2: boolean?, by_rows: boolean?}
---@param rows any the number of all rows
function flash.altering(o, f, rows, sight)
  local function change(mask)
    return flash.change {score = f.score, mask = mask, scale = f.scale, b = f.b,
      h = f.h, tile = o.tile, rows = rows, columns = sight.T, log2 = f.log2,
      by_rows = f.by_rows}
  end
  local N = o.tile[2]
  local edges = not sight:whole(N)
  local some, all = change(f.mask), change(not o.list and f.mask or nil)
  return function(s, places, row, masked)
    local function hide(n, take)
      if edges then sight:hide(s, places, row, n * N, -math.huge, take) end
    end
    local function whole(n, near, take)
      if all then
        all(s, places, row, n * N, false, true, near, take)
      elseif take then
        flash.each(s, take)
      end
    end
    local function partly(n, near, take)
      if some then
        some(s, places, row, n * N, false, false, near, not edges and take)
      end
      hide(n, take)
    end
    if core.typename(masked) ~= "value" then
      return masked and partly or all and whole
    elseif some or edges then
      return function(n, near, take)
        if not o.list and some then some(s, places, row, n * N) end
        cute.when(masked, function()
          if o.list then partly(n, near, take) else hide(n, take) end
        end, (o.list or take) and function()
          if o.list then whole(n, near, take) else flash.each(s, take) end
        end)
      end
    end
  end
end

---------------------------------------------------------------------------
-- Softmax, one block of columns at a time
---------------------------------------------------------------------------

local Softmax = {}
Softmax.__index = Softmax

-- The largest exponent that a power of 2 may have relative to a row's base. If
-- a score's exponent is larger, the row gets a new base and its sum is
-- rescaled (see flash.softmax).
local RISE = 8

-- If a sum of up to 64 powers is larger than MOST_SUM, one of the powers is
-- above 2^RISE, so the row needs a new base. If not, every power fits in f16.
local MOST_SUM = 2.0 ^ 15

-- The initial `low` (see flash.softmax) of a row that has seen no column. It
-- has the effect of a base of -2^126, which is below every score except -inf.
local NOTHING = 2.0 ^ 126

-- A limit for the product c s of the scale c and a score s. Above this limit,
-- rounding errors of the product are too large for an exponent. Different
-- scores of this size differ by 256 / c or more. Therefore, if the largest
-- score is subtracted before the product, all smaller scores get the weight 0.
local FAR = 2.0 ^ 31

--- Stops a kernel whose scale is not above 0. With such a scale, the power of a
-- hidden column, whose score is -inf, would not be 0. A kernel with
-- setmaxregister checks the scale on the host instead, because ptxas ignores
-- setmaxregister in kernels with warps that can stop.
function flash.check_scale(scale)
  cute.testing.assert_(cute.gt(scale, 0),
                       "the scale of attention must be above 0")
end

--- Makes the state of a thread's rows for the online softmax. It has each row's
-- base, which is its largest score or up to RISE below it, and the sum of its
-- powers. The power of a score s is 2^(c (s - base) + low). If a row has scores
-- beyond FAR, the field `base` holds the row's base, and `low` is 0. Otherwise,
-- `base` is 0, and `low` is -c times the row's base.
---@param rows integer
---@param c any above 0: hidden columns score -inf
---@param hidden boolean a row may see no column
---@param sink? any a number: e^sink is added to each row's sum
---@param lift? number added to `low` when a base changes (0): the largest score
-- then has the power 2^lift
---@param most? number the largest sum of powers that attempt() accepts (2^15)
function flash.softmax(rows, c, hidden, sink, lift, most)
  local low = cute.make_rmem_tensor({rows}, cute.f32)
  local sum = cute.make_rmem_tensor({rows}, cute.f32)
  local base = cute.make_rmem_tensor({rows}, cute.f32)
  local fix = cute.make_rmem_tensor({rows}, cute.f32)
  low:fill(sink and cute.min(sink * -flash.LOG2E, NOTHING) or NOTHING)
  -- The sums of a quad's four lanes are added later. Relative to the first
  -- base, the power of the sink is 1, so each lane starts with a quarter of it.
  sum:fill(sink and cute.where(cute.gt(sink, -math.huge), 0.25, 0.0) or 0)
  base:fill(0)
  fix:fill(1)
  return setmetatable({rows = rows, c = c, hidden = hidden, low = low,
    sum = sum, base = base, fix = fix, lift = lift,
    most = most or MOST_SUM}, Softmax)
end

-- If excess > 0, raises the base of row i to its largest score `best`. 2^excess
-- is the power of `best` with the old base. Returns the factor for the old sum.
function Softmax:recount(i, best, excess)
  local was, low = self.base[i], self.low[i]
  local far = cute.gt(cute.abs(best * self.c), FAR)
  local lift = self.lift
  local top = lift and cute.where(far, lift, lift - best * self.c)
    or cute.where(far, 0.0, -(best * self.c))
  local rises = cute.gt(excess, 0)
  self.low[i] = cute.where(rises, top, low)
  self.base[i] = cute.where(rises, cute.where(far, best, 0.0), was)
  local fall = cute.where(far | cute.ne(was, 0),
    lift and lift - excess or -excess, top - low)
  return flash.exp2(cute.where(rises, fall, 0.0))
end

-- Returns the largest of the n scores in row i. Four independent chains of
-- comparisons hide their latency.
local function largest(sr, i, n)
  local best = {}
  for j = 0, n - 1 do
    local k = j % 4
    best[k] = best[k] and cute.max(best[k], sr(i, j)) or sr(i, j)
  end
  return cute.max(cute.max(best[0], best[1]), cute.max(best[2], best[3]))
end

local function scale_row(ar, i, x)
  for j = 0, cute.size(ar, 1) - 1 do ar[{i, j}] = ar(i, j) * x end
end

--- Raises the bases of rows that have scores s more than RISE above them, and
-- scales the sums of these rows. In rows whose scores exceed FAR, subtracts the
-- base from the scores. Returns whether a base changed in any row of this warp.
-- In this case, `fix` holds the factors by which the rows' accumulators have to
-- be scaled.
function Softmax:rise(s)
  local sr = flash.by_rows(s)
  local best, excess, rose = {}, {}, nil
  for i = 0, self.rows - 1 do
    best[i] = flash.quad(cute.max, largest(sr, i, cute.size(sr, 1)))
    excess[i] = cute.fma(best[i] - self.base[i], self.c, self.low[i])
    local more = cute.gt(excess[i], RISE) | cute.ne(self.base[i], 0)
    rose = rose and rose | more or more
  end
  rose = cute.arch.vote_any_sync(rose)
  cute.when(rose, function()
    for i = 0, self.rows - 1 do
      local fix = self:recount(i, best[i], excess[i])
      self.fix[i], self.sum[i] = fix, self.sum[i] * fix
      for j = 0, cute.size(sr, 1) - 1 do
        sr[{i, j}] = sr(i, j) - self.base[i]
      end
    end
  end)
  return rose
end

--- If rise() returned true, scales acc, the accumulators of earlier blocks.
function Softmax:rescale(acc, rose)
  local ar = flash.by_rows(acc)
  cute.when(rose, function()
    for i = 0, self.rows - 1 do scale_row(ar, i, self.fix[i]) end
  end)
end

--- Replaces scores by their powers (exponentials, see the top of this file),
-- and adds the powers to the rows' sums.
function Softmax:powers(s)
  local sr = flash.by_rows(s)
  for i = 0, self.rows - 1 do
    for j = 0, cute.size(sr, 1) - 1 do
      local x = flash.exp2(cute.fma(sr(i, j), self.c, self.low[i]))
      sr[{i, j}], self.sum[i] = x, self.sum[i] + x
    end
  end
  if self.pack then self.pack() end
end

-- Replaces scores by their powers (exponentials, see the top of this file).
-- Returns each row's sum of powers. Also returns whether some row of the warp
-- needs a larger base or far() is true. If each(take) is given, it calls
-- take(i, j, score) for each score; otherwise, flash.each does.
function Softmax:guess(s, each, far)
  local sr, parts, over = flash.by_rows(s), {}, nil
  local function take(i, j, score)
    local low = self.low[i]
    -- If the scale c is 1, the compiler can add `low` in the last operation
    -- that computes the score.
    local x = flash.exp2(rawequal(self.c, 1.0) and score + low
                         or cute.fma(score, self.c, low))
    sr[{i, j}], parts[i] = x, parts[i] and parts[i] + x or x
  end
  if each then
    for i = 0, self.rows - 1 do parts[i] = 0.0 end
    each(take)
    if far then over = far() end
  end
  for i = 0, self.rows - 1 do
    if not each then
      for j = 0, cute.size(sr, 1) - 1 do take(i, j, sr(i, j)) end
    end
    local more = cute.gt(parts[i], self.most) | cute.ne(self.base[i], 0)
    over = over and over | more or more
  end
  if self.pack then self.pack() end
  return parts, cute.arch.vote_any_sync(over)
end

local function add_parts(self, parts)
  for i = 0, self.rows - 1 do self.sum[i] = self.sum[i] + parts[i] end
end

--- Replaces scores s by their powers and adds the powers to the sums. It does
-- not search for each row's largest score, which would cost a comparison for
-- each score. If a base turns out to be too small, it calls again(), which
-- restores the scores of the warp's rows, and then changes the bases. Returns
-- whether it changed bases. In this case, `fix` holds the factors for the rows'
-- accumulators. change(n), if given, is first applied to the scores of block n.
-- With `near`, `change` also gets a record of flash.near in the first attempt.
function Softmax:attempt(s, again, change, n, near)
  local record = near and flash.near()
  local parts, over = self:guess(s, change and function(take)
    change(n, record, take)
  end, near and record.far)
  local function repeated(block)
    again()
    if change then change(block) end
    -- rise() does not change the factors of rows whose bases are large enough,
    -- so they are first set to 1.
    if near then self.fix:fill(1) end
    self:rise(s)
    self:powers(s)
  end
  if not change then
    cute.when(over, repeated, function() add_parts(self, parts) end)
    return over
  end
  cute.when(over, function() end, function() add_parts(self, parts) end)
  -- The loop runs at most once, but the compiler does not know this. If it
  -- knew, it would compute common values of both calls of `change` only once,
  -- and keep them in registers.
  local more, block = over, n
  cute.loop(function() return more end, function()
    repeated(block)
    block = block - 1
    more = cute.arch.vote_any_sync(cute.lt(self.sum[0], 0))
  end)
  return over
end

--- Processes scores s (MMA,M,N): adds their powers to the sums and returns the
-- powers, in the operands' type, as a left operand (a function of the block's
-- index). acc contains the product of earlier powers with V. It is rescaled if
-- a base changes.
function Softmax:take(s, acc, dtype)
  self:rescale(acc, self:rise(s))
  local sr = flash.by_rows(s)
  local p = cute.make_fragment_like(s, dtype)
  local pr, left = flash.by_rows(p), flash.left_operand(p)
  return function(k)
    for i = 0, self.rows - 1 do
      for j = 4 * k, 4 * k + 3 do
        local x = flash.exp2(cute.fma(sr(i, j), self.c, self.low[i]))
        pr[{i, j}] = x:to(dtype)
        self.sum[i] = self.sum[i] + x
      end
    end
    return left(k)
  end
end

--- Divides acc by the sums, and multiplies it by `factor` if given. Returns the
-- logarithms of the rows' sums, a list with indices from 0. For rows that see
-- no column, the results are zero and the logarithm is -inf.
function Softmax:finish(acc, factor)
  local ar, logs = flash.by_rows(acc), {}
  for i = 0, self.rows - 1 do
    local sum = flash.quad(cute.add, self.sum[i])
    local some = self.hidden and cute.ne(sum, 0)  -- true for NaN, too
    local r = (factor or 1) / sum
    if some then r = cute.where(some, r, 0.0) end
    for j = 0, cute.size(ar, 1) - 1 do ar[{i, j}] = ar(i, j) * r end
    logs[i] = (cute.fma(self.base[i], self.c, cute.log2(sum) - self.low[i]))
      / flash.LOG2E
    if some then logs[i] = cute.where(some, logs[i], -math.huge) end
  end
  return logs
end

return sign.module("kernels.flash", flash)
-- SPDX-License-Identifier: MIT
