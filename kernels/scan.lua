--- Computes prefix sums, products, maxima and minima, either along the rows of
-- a matrix or, in one pass over memory, of one long row.
--
--     local k = scan {dtype = cute.f32, n = 4096}
--     k.kernel(X, Y):launch {grid = k.grid(m), block = k.block}
--
-- X and Y are row-major matrices (M,N), here with N = 4096, and Y[i,j] = X[i,0]
-- + ... + X[i,j]. Elements of less than 32 bits are added in f32 or i32, other
-- elements in their own type. A block processes a row, one tile after the
-- other.
--
--     local k = scan {dtype = cute.f32, n = 1 << 28, one_pass = true}
--     local state = cute.zeros({k.states}, cute.u64)
--     k.kernel(X, Y, state):launch {grid = k.grid(), block = k.block}
--
-- The one-pass kernel scans N elements, one row, with all blocks at once. Each
-- block reads its tiles, publishes their totals, looks back at the totals of
-- other blocks, and writes its results (after Merrill and Garland, Single-pass
-- Parallel Prefix Scan with Decoupled Look-back, 2016). `state` must be zero
-- before the first launch. Afterwards it can be reused by any sequence of
-- launches. The rounding of float sums depends on timing.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local rows = require "kernels.rows"

local WARP = 32
-- The number of elements that a multiprocessor has in flight in the one-pass
-- scan.
local HELD = 16384

local OPS = {
  add = {f = function(a, b) return a + b end, none = function() return 0 end},
  mul = {f = function(a, b) return a * b end, none = function() return 1 end},
  max = {f = cute.max, none = function(t)
    if t.is_float then return -math.huge end
    return t.name:find "^u" and 0 or -1 << (t.bits - 1)
  end},
  min = {f = cute.min, none = function(t)
    if t.is_float then return math.huge end
    return (t.name:find "^u" and 2 or 1) * (1 << (t.bits - 1)) - 1
  end},
}

local function up(a, b) return (a + b - 1) // b end

local Scan = {}
Scan.__index = Scan

---------------------------------------------------------------------------
-- A tile: warp w has `steps` times 32 adjacent vectors, of which each lane has
-- every 32nd
---------------------------------------------------------------------------

-- Returns this thread's vectors, (W,S), of the tile that begins at element
-- `first` of t.
function Scan:part(t, first)
  local tid = (cute.arch.thread_idx())
  local at = (tid // WARP * (WARP * self.steps) + tid % WARP) * self.width
  return cute.make_tensor(t.iterator + (first + at), cute.make_layout(
    {self.width, self.steps}, {1, WARP * self.width})), at
end

-- Returns predicates (1,S) of the vectors of a tile: whether a vector is among
-- the `left` remaining elements. Returns nil for whole tiles.
function Scan:inside(at, left)
  if type(left) == "number" and left >= self.tile then return nil end
  local pred = cute.make_rmem_tensor({1, self.steps}, cute.boolean)
  for s = 0, self.steps - 1 do
    pred[{0, s}] = cute.lt(at + s * (WARP * self.width), left)
  end
  return pred
end

function Scan:atom(t)
  return cute.make_copy_atom("UniversalCopy", t.element_type,
                             self.width * t.element_type.bits)
end

function Scan:load(t, first, left)
  local part, at = self:part(t, first)
  local held = cute.make_rmem_tensor({self.width, self.steps}, t.element_type)
  local pred = self:inside(at, left)
  if pred then held:fill(self.op.none(t.element_type)) end
  cute.copy(self:atom(t), part, held, pred and {pred = pred})
  return held:load()
end

function Scan:store(t, first, left, x)
  local part, at = self:part(t, first)
  local held = cute.make_rmem_tensor({self.width, self.steps}, t.element_type)
  local pred = self:inside(at, left)
  held:store(x:load():to(t.element_type))
  cute.copy(self:atom(t), held, part, pred and {pred = pred})
end

---------------------------------------------------------------------------
-- Combining lanes and warps
---------------------------------------------------------------------------

-- Combines x over lanes, within groups of `width` lanes. Returns the result for
-- the lanes up to and including this one, and the result for the lanes before
-- this one.
function Scan:lanes(x, width)
  local lane, f, d = cute.arch.lane_idx() % width, self.op.f, 1
  while d < width do
    local y = cute.arch.shuffle_sync_up(x, d, width)
    x = cute.where(cute.ge(lane, d), f(y, x), x)
    d = d * 2
  end
  local before = cute.arch.shuffle_sync_up(x, 1, width)
  return x, cute.where(cute.eq(lane, 0), self.none, before)
end

-- Combines each element of the tile's vectors (W,S) with all previous elements
-- of this warp. Returns the vectors, and the result of the whole warp.
function Scan:warp_of(x)
  local f = self.op.f
  local r = cute.make_rmem_tensor({self.width, self.steps}, self.type)
  r:store(x:to(self.type))
  local sum = self.none
  for s = 0, self.steps - 1 do
    for v = 1, self.width - 1 do r[{v, s}] = f(r[{v - 1, s}], r[{v, s}]) end
    local all, before = self:lanes(r[{self.width - 1, s}], WARP)
    before = f(sum, before)
    if self.exclusive then
      for v = self.width - 1, 1, -1 do r[{v, s}] = f(before, r[{v - 1, s}]) end
      r[{0, s}] = before
    else
      for v = 0, self.width - 1 do r[{v, s}] = f(before, r[{v, s}]) end
    end
    sum = f(sum, cute.arch.shuffle_sync(all, WARP - 1))
  end
  return r, sum
end

-- Combines the results of the block's warps. Returns two values: the result of
-- all warps before this one, and the result of the whole block. `turn` must
-- alternate between 0 and 1 from tile to tile if no other barrier separates the
-- calls.
function Scan:block_of(sum, turn)
  local tid, warps = (cute.arch.thread_idx()), self.block // WARP
  if warps == 1 then return self.none, sum end
  local sums = cute.make_smem_tensor(self.type, cute.make_layout({warps, 2}))
  cute.when(cute.eq(tid % WARP, 0), function()
    sums[{tid // WARP, turn or 0}] = sum
  end)
  cute.arch.sync_threads()
  local all, before = self:lanes(sums[{tid % warps, turn or 0}], warps)
  return cute.arch.shuffle_sync(before, tid // WARP),
    cute.arch.shuffle_sync(all, warps - 1)
end

-- Returns a tile's vectors, the result of the warps before this one, and the
-- result of the tile.
function Scan:tile_of(x, turn)
  local r, sum = self:warp_of(x)
  return r, self:block_of(sum, turn)
end

local function put_before(f, before, r)
  for i = 0, cute.size(r) - 1 do r[i] = f(before, r[i]) end
end

---------------------------------------------------------------------------
-- The kernel for rows
---------------------------------------------------------------------------

local function by_rows(s, X, Y)
  rules.need(cute.rank(X) == 2 and cute.rank(Y) == 2, "scan",
    "matrices are needed, not %s and %s", tostring(X.layout),
    tostring(Y.layout))
  rows.check(s, "scan", X, Y)
  local row = (cute.arch.block_idx())
  local x, y = X(row, cute._), Y(row, cute._)
  local carry, turn, f = s.none, 0, s.op.f
  local next = s:load(x, 0, s.n)
  if s.n <= s.tile then
    local r, before = s:tile_of(next)
    put_before(f, before, r)
    return s:store(y, 0, s.n, r)
  end
  local ahead = cute.make_rmem_tensor({s.width, s.steps}, x.element_type)
  ahead:store(next)
  for first in cute.range(0, s.n, s.tile) do
    local now = ahead:load()
    cute.when(cute.lt(first + s.tile, s.n), function()
      ahead:store(s:load(x, first + s.tile, s.n - first - s.tile))
    end)
    local r, before, all = s:tile_of(now, turn)
    put_before(f, f(carry, before), r)
    s:store(y, first, s.n - first, r)
    carry, turn = f(carry, all), 1 - turn
  end
end

---------------------------------------------------------------------------
-- The one-pass kernel
---------------------------------------------------------------------------

-- The words of `state`. The first word has the number of the next tile in its
-- lower half and the number of previous launches in its upper half. One word
-- for each tile follows: the upper half is the launch's number (its round), the
-- lower half the tile's total. Blocks draw their tiles in order. Therefore all
-- earlier tiles have begun, regardless of how many blocks the device runs at
-- once. To compute the sum before a tile, a block reads the totals of all tiles
-- since the block's previous tile.
local FIRST = 1
local AHEAD = 2  -- tiles that a block draws in advance
local ROOM = 132  -- number of multiprocessors of an H200
local RELAXED = {sem = "relaxed", scope = "gpu"}

-- Draws the number of the next tile from the counter in `state`. Also returns
-- the number of the round. After all tiles, the last draw of a launch begins a
-- new round.
local function draw(state, tiles)
  local drawn = cute.arch.atomic_add(state.iterator, 1)
  local last = tiles + AHEAD * (cute.arch.grid_dim()) - 1
  cute.when(cute.eq(drawn:to(cute.u32), last), function()
    cute.arch.store(state.iterator, ((drawn >> 32) + 1) << 32, RELAXED)
  end)
  return drawn:to(cute.i32), (drawn >> 32):to(cute.u32) + 1
end

local function say(state, at, round, x)
  local high = round:to(cute.u64) << 32
  cute.arch.store(state.iterator + FIRST + at,
    high | x:bitcast(cute.u32):to(cute.u64), RELAXED)
end

-- Waits until tiles `from` to `at` - 1 have published their totals, and returns
-- the combination of these totals.
function Scan:between(state, from, at, round)
  local f, tid, sum = self.op.f, (cute.arch.thread_idx()), self.none
  local warps = self.block // WARP
  for i in cute.range(from + tid, at, self.block) do
    local high, value = round * 0, self.none
    cute.loop(function() return high:ne(round) end, function()
      local word = cute.arch.load(state.iterator + FIRST + i, nil, RELAXED)
      high = (word >> 32):to(cute.u32)
      value = word:to(cute.u32):bitcast(self.type)
    end)
    sum = f(sum, value)
  end
  for _, d in ipairs {1, 2, 4, 8, 16} do
    sum = f(sum, cute.arch.shuffle_sync_bfly(sum, d))
  end
  local sums = cute.make_smem_tensor(self.type, cute.make_layout {warps})
  cute.when(cute.eq(tid % WARP, 0), function() sums[tid // WARP] = sum end)
  cute.arch.sync_threads()
  sum = sums[0]
  for w = 1, warps - 1 do sum = f(sum, sums[w]) end
  return sum
end

-- Works on three tiles at once. The total of tile `last` is published, but its
-- results are not written. Tile `at` is being loaded. The number of tile `next`
-- is drawn. When tile `at` arrives, the block publishes its total, starts to
-- load tile `next`, and then writes tile `last`. At that time, other blocks
-- have usually published the totals of the tiles before `last`, so waits are
-- short.
local function one_pass(s, X, Y, state)
  local n, f, tid = s.n, s.op.f, (cute.arch.thread_idx())
  rules.dense("scan", "X", X, n)
  rules.dense("scan", "Y", Y, n)
  local tiles = up(n, s.tile)
  local drawn = cute.make_smem_tensor(cute.i32, cute.make_layout {AHEAD})
  local begun = cute.make_smem_tensor(cute.u32, cute.make_layout {1})
  cute.when(cute.eq(tid, 0), function()
    for i = 0, AHEAD - 1 do drawn[i], begun[0] = draw(state, tiles) end
  end)
  cute.arch.sync_threads()
  local at, next, round = drawn[0], drawn[1], begun[0]

  local coming = cute.make_rmem_tensor({s.width, s.steps}, X.element_type)
  local function fetch(i)
    cute.when(cute.lt(i, tiles), function()
      coming:store(s:load(X, i * s.tile, n - i * s.tile))
    end)
  end
  coming:fill(0)
  fetch(at)

  local held = cute.make_rmem_tensor({s.width, s.steps}, s.type)
  local last, last_before, last_all = -1, s.none, s.none
  -- `sum` is the total of all tiles before tile `from`.
  local from, sum = 0, s.none
  local function finish()
    local earlier = f(sum, s:between(state, from, last, round))
    put_before(f, f(earlier, last_before), held)
    cute.when(cute.ge(last, 0), function()
      s:store(Y, last * s.tile, n - last * s.tile, held)
    end)
    from, sum = last + 1, f(earlier, last_all)
  end
  held:fill(0)
  cute.loop(function() return cute.lt(at, tiles) end, function()
    local r, of_warp = s:warp_of(coming:load())
    local before, all = s:block_of(of_warp)
    cute.when(cute.eq(tid, 0), function()
      say(state, at, round, all)
      drawn[0] = draw(state, tiles)
    end)
    fetch(next)
    finish()
    held:store(r:load())
    last, last_before, last_all = at, before, all
    at, next = next, drawn[0]
  end)
  finish()
end

local function accumulator(t)
  if t.is_float and t.bits < 32 then return cute.f32 end
  if t.bits < 32 then return cute.i32 end
  return t
end

--- Returns a kernel with arguments (X, Y), or (X, Y, state) with the option
-- one_pass, and its launch parameters. X and Y can differ in type.
---@param o table {dtype: any, n: integer, op: string?, exclusive: boolean?,
-- one_pass: boolean?, values: integer?, block: integer?}
-- dtype: the widest of the operands; n: elements of a row; op: "add" "mul"
-- "max" "min"; exclusive: Y[j] excludes X[j]; values: elements of a thread
-- (16); block: threads, a power of two, in one pass at least 64 (512)
---@return table {kernel: any, grid: fun(m: integer?): integer, block: integer,
-- states: integer?}
return function(o)
  rules.options("scan", o, "dtype n op exclusive one_pass values block")
  local op = OPS[o.op or "add"]
  rules.need(op, "scan", "op must be add, mul, max or min, not "
    .. "%s", tostring(o.op))
  rules.given("scan", o, "n", "dtype")
  local least = o.one_pass and 2 * WARP or WARP
  rules.integers("scan", o, {"block"}, least, 1024, "power")
  rules.integers("scan", o, {"values"}, 1, 1024)
  local s = setmetatable({n = o.n, op = op, exclusive = o.exclusive,
    type = accumulator(o.dtype), width = rules.widest(o.dtype.bits, o.n)}, Scan)
  rules.need(not o.one_pass or s.type.bits == 32, "scan",
    "one_pass needs 32-bit sums, not %s", s.type.name)
  s.none = op.none(s.type)
  s.steps = math.max(1, (o.values or 16) // s.width)
  local most = o.block or o.n > 8192 and 512 or 256
  s.block = least
  while s.block < most and s.block * s.steps * s.width < o.n do
    s.block = s.block * 2
  end
  s.tile = s.block * s.steps * s.width
  if not o.one_pass then
    return {block = s.block, grid = function(m) return m end,
      kernel = cute.kernel("scan", function(X, Y) by_rows(s, X, Y) end)}
  end
  local tiles, held = up(o.n, s.tile), HELD
  if s.width * o.dtype.bits < 128 then held = HELD // 2 end  -- for predicates
  local blocks = math.max(1, math.min(held // s.tile, 1024 // s.block))
  return {block = s.block, states = tiles + FIRST,
    grid = function() return math.min(tiles, ROOM * blocks) end,
    kernel = cute.kernel("scan", {block = s.block, min_blocks = blocks},
      function(X, Y, state) one_pass(s, X, Y, state) end)}
end
-- SPDX-License-Identifier: MIT
