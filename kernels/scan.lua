--- Running sums, products, maxima: along rows, or of one long row in one pass.
--
--     local k = scan {dtype = cute.f32, n = 4096}
--     k.kernel(X, Y):launch {grid = k.grid(m), block = k.block}
--
-- Y[i,j] = X[i,0] + ... + X[i,j], (M,N) and row-major, in f32 or in the
-- integers' own type. A block takes a row, a tile after the other.
--
--     local k = scan {dtype = cute.f32, n = 1 << 28, one_pass = true}
--     local state = cute.zeros({k.states}, cute.u64)
--     k.kernel(X, Y, state):launch {grid = k.grid(), block = k.block}
--
-- scans N elements, one row, by all blocks at once: each reads its tile, says
-- its total, looks back at what those before it said, and writes (Merrill and
-- Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016).
-- `state` is zero before the first launch, and then serves any launches that
-- come one after the other. Sums of floats are rounded as blocks come by.
local cute = require "cute"
local check = require "kernels.check"
local rows = require "kernels.rows"

local WARP = 32

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
-- A tile: warp w has `steps` times 32 vectors side by side, a vector a lane
---------------------------------------------------------------------------

-- This thread's vectors of a tile that begins at element `first`: (W,S).
function Scan:part(t, first)
  local tid = (cute.arch.thread_idx())
  local at = (tid // WARP * (WARP * self.steps) + tid % WARP) * self.width
  return cute.make_tensor(t.iterator + (first + at), cute.make_layout(
    {self.width, self.steps}, {1, WARP * self.width})), at
end

-- Which of them lie among the `left` elements: (1,S); nil for whole tiles.
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
  return held:load():to(self.type)
end

function Scan:store(t, first, left, x)
  local part, at = self:part(t, first)
  local held = cute.make_rmem_tensor({self.width, self.steps}, t.element_type)
  local pred = self:inside(at, left)
  held:store(x:load():to(t.element_type))
  cute.copy(self:atom(t), held, part, pred and {pred = pred})
end

---------------------------------------------------------------------------
-- Lanes, warps
---------------------------------------------------------------------------

-- Of the lanes up to this one, and of those before it; groups of `width`.
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

-- The tile's vectors (W,S), each element with all that come before it in this
-- warp; what comes before the warp in the block, and of all the block.
function Scan:tile_of(x, turn)
  local f, tid = self.op.f, (cute.arch.thread_idx())
  local r = cute.make_rmem_tensor({self.width, self.steps}, self.type)
  r:store(x)
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
  local warps = self.block // WARP
  if warps == 1 then return r, self.none, sum end
  local sums = cute.make_smem_tensor(self.type,
                                     cute.make_layout({warps, 2}))
  cute.when(cute.eq(tid % WARP, 0), function()
    sums[{tid // WARP, turn or 0}] = sum
  end)
  cute.arch.sync_threads()
  local all, before = self:lanes(sums[{tid % warps, turn or 0}], warps)
  return r, cute.arch.shuffle_sync(before, tid // WARP),
    cute.arch.shuffle_sync(all, warps - 1)
end

local function put_before(f, before, r)
  for i = 0, cute.size(r) - 1 do r[i] = f(before, r[i]) end
end

---------------------------------------------------------------------------
-- Rows
---------------------------------------------------------------------------

local function by_rows(s, X, Y)
  check.need(cute.rank(X) == 2 and cute.rank(Y) == 2, "scan",
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
  local ahead = cute.make_rmem_tensor({s.width, s.steps}, s.type)
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
-- One pass
---------------------------------------------------------------------------

-- Words of `state`: the next tile to be taken, with the round (the number of
-- the launch) above 32 bits; tiles that are done; and one for each tile: 2
-- round + (0: its total, 1: of all up to it) above 32 bits of value. In the
-- order in which tiles are taken, a block's predecessors have begun.
local FIRST = 2

local function word(round, whole, x)
  local high = (round * 2 + whole):to(cute.u64)
  return high << 32 | x:bitcast(cute.u32):to(cute.u64)
end

local function take(state)
  local taken = cute.make_smem_tensor(cute.u64, cute.make_layout {1})
  cute.when(cute.eq((cute.arch.thread_idx()), 0), function()
    taken[0] = cute.arch.atomic_add(state.iterator, 1)
  end)
  cute.arch.sync_threads()
  return taken[0]:to(cute.i32), (taken[0] >> 32):to(cute.u32) + 1
end

-- The last block begins a new round; by then all tiles have been taken.
local function leave(state, tiles, round)
  local order = {sem = "relaxed", scope = "gpu"}
  local done = cute.arch.atomic_add(state.iterator + 1, 1)
  cute.when(cute.eq(done, tiles - 1), function()
    cute.arch.store(state.iterator + 1, 0, order)
    cute.arch.store(state.iterator, round:to(cute.u64) << 32, order)
  end)
end

-- What comes before tile `at`: a warp looks at 32 words at a time, waits until
-- all of them say something, and is done at the first that has all before it.
function Scan:look_back(state, at, round)
  local f, lane = self.op.f, cute.arch.lane_idx()
  local before, from, done = self.none, at - 1 - lane, false
  cute.loop(function() return cute.eq(done, false) end, function()
    local high, value = round * 0, self.none
    cute.loop(function()
      return cute.arch.vote_any_sync((high // 2):ne(round))
    end, function()
      local outside = cute.lt(from, 0)
      local w = cute.arch.load(state.iterator + cute.max(from, 0) + FIRST, nil,
                               {sem = "relaxed", scope = "gpu"})
      high = cute.where(outside, round * 2 + 1, (w >> 32):to(cute.u32))
      value = cute.where(outside, self.none,
                         w:to(cute.u32):bitcast(self.type))
    end)
    local whole = cute.arch.vote_ballot_sync((high % 2):eq(1))
    local first = cute.arch.clz(cute.arch.brev(whole))  -- 32: none
    value = cute.where(cute.le(lane, first), value, self.none)
    -- The furthest comes first.
    for _, d in ipairs {1, 2, 4, 8, 16} do
      local far = cute.arch.shuffle_sync_down(value, d)
      value = cute.where(cute.lt(lane + d, WARP), f(far, value), value)
    end
    before = f(cute.arch.shuffle_sync(value, 0), before)
    from, done = from - WARP, whole:ne(0)
  end)
  return before
end

local function one_pass(s, X, Y, state)
  local n, f, tid = s.n, s.op.f, (cute.arch.thread_idx())
  check.dense("scan", "X", X, n)
  check.dense("scan", "Y", Y, n)
  local at, round = take(state)
  local first = at * s.tile
  local r, before, all = s:tile_of(s:load(X, first, n - first))
  local earlier = cute.make_smem_tensor(s.type, cute.make_layout {1})
  cute.when(cute.lt(tid, WARP), function()
    local mine = state.iterator + at + FIRST
    local order = {sem = "relaxed", scope = "gpu"}
    cute.when(cute.eq(tid, 0) & cute.gt(at, 0), function()
      cute.arch.store(mine, word(round, 0, all), order)
    end)
    local b = s:look_back(state, at, round)
    cute.when(cute.eq(tid, 0), function()
      cute.arch.store(mine, word(round, 1, f(b, all)), order)
      earlier[0] = b
      leave(state, up(n, s.tile), round)
    end)
  end)
  cute.arch.sync_threads()
  put_before(f, f(earlier[0], before), r)
  s:store(Y, first, n - first, r)
end

local function accumulator(t)
  if t.is_float and t.bits < 32 then return cute.f32 end
  if t.bits < 32 then return cute.i32 end
  return t
end

--- A kernel of (X, Y), or with one_pass of (X, Y, state), and what its launch
-- needs. X and Y may differ in type.
---@param o {dtype: any, n: integer, op: string?, exclusive: boolean?,
-- one_pass: boolean?, values: integer?, block: integer?}
-- dtype: the widest of the operands; n: elements of a row; op: "add" "mul"
-- "max" "min"; exclusive: Y[j] has what comes before X[j]; values: elements of
-- a thread (16, in one pass 32); block: threads, a power of two
---@return {kernel: any, grid: fun(m: integer?): integer, block: integer,
-- states: integer}
return function(o)
  local op = OPS[o.op or "add"]
  check.need(op, "scan", "op is add, mul, max or min, not %s", tostring(o.op))
  check.given("scan", o, "n", "dtype")
  check.integers("scan", o, {"block"}, WARP, 1024, "power")
  check.integers("scan", o, {"values"}, 1, 1024)
  local s = setmetatable({n = o.n, op = op, exclusive = o.exclusive,
    type = accumulator(o.dtype), width = check.widest(o.dtype.bits, o.n)}, Scan)
  check.need(not o.one_pass or s.type.bits == 32, "scan",
    "one pass is for sums of 32 bits, not of %s", s.type.name)
  s.none = op.none(s.type)
  s.steps = math.max(1, (o.values or o.one_pass and 32 or 16) // s.width)
  local most = o.block or not o.one_pass and o.n > 8192 and 512 or 256
  s.block = WARP
  while s.block < most and s.block * s.steps * s.width < o.n do
    s.block = s.block * 2
  end
  s.tile = s.block * s.steps * s.width
  local tiles = up(o.n, s.tile)
  return {block = s.block, states = tiles + FIRST,
    grid = function(m) return o.one_pass and tiles or m end,
    kernel = cute.kernel("scan", function(...)
      if o.one_pass then one_pass(s, ...) else by_rows(s, ...) end
    end)}
end
