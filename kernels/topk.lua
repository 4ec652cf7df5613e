--- Finds the k largest (or smallest) elements of each row, sorted, with their
-- indices.
--
--     local k = topk {dtype = cute.bf16, n = 4096, k = 8}
--     k.kernel(X, Y, I):launch {grid = k.grid(m), block = k.block}
--
-- X is a matrix of M rows and N columns. Y (M,k), of X's type, gets the k
-- elements, and I (M,k), of i32, their indices; k is at most 64. Of several
-- equal elements, the first one is treated as the largest (with smallest =
-- true: as the smallest). NaN is larger than all numbers.
--
-- A warp keeps a sorted list of the best 32 or 64 elements so far, distributed
-- over its lanes. It appends each element that is better than the k-th one in
-- this list to a queue. Every 32 elements of the queue are sorted and merged
-- into the list. On random data, k log(n / k) elements of a row reach the
-- queue. Several warps can share a row; they merge their lists at the end.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local rows = require "kernels.rows"

local WARP = 32

local Top = {}
Top.__index = Top

---------------------------------------------------------------------------
-- Keys. A key is an element and its index as one number, larger for a better
-- element, never 0
---------------------------------------------------------------------------

function Top:key(x, at)
  local word = self.bits == 16 and cute.u16 or cute.u32
  local bits, top = (x + 0.0):bitcast(word), 1 << (self.bits - 1)
  local negative = cute.ne(bits & top, 0)
  local all = (1 << self.bits) - 1
  local ordered = cute.where(negative, bits ~ all, bits | top)
  ordered = cute.where(cute.ne(x, x), all, ordered)
  if self.smallest then ordered = ordered ~ all end
  local key = ordered:to(self.type) << self.bits
  return key | (all - at:to(self.type))
end

function Top:place(key)
  local all = (1 << self.bits) - 1
  return (all - (key & all)):to(cute.i32)
end

---------------------------------------------------------------------------
-- Bitonic sorting over the lanes of a warp
---------------------------------------------------------------------------

-- Exchanges x between two lanes that are d apart. One lane keeps the larger
-- value, the other one the smaller value. `larger` is true in the lane that
-- keeps the larger value.
local function exchange(x, d, larger)
  local y = cute.arch.shuffle_sync_bfly(x, d)
  return cute.where(cute.eq(larger, cute.gt(y, x)), y, x)
end

local function bit(lane, d) return cute.eq(lane & d, 0) end

-- Sorts a bitonic sequence, one value for each lane of a warp, in descending
-- order.
local function merged(x, lane)
  for _, d in ipairs {16, 8, 4, 2, 1} do x = exchange(x, d, bit(lane, d)) end
  return x
end

-- Sorts 32 values, one for each lane of a warp, in ascending order.
local function ascending(x, lane)
  local n = 2
  while n <= WARP do
    local d = n // 2
    while d > 0 do
      local up = n < WARP and bit(lane, n) or true
      x = exchange(x, d, cute.ne(bit(lane, d), up))
      d = d // 2
    end
    n = n * 2
  end
  return x
end

-- Merges 32 keys, which ascend over the lanes, into the list. Surplus keys are
-- dropped from the end of the list. list[r] holds the r-th 32 keys, in
-- descending order over the lanes.
function Top:take(list, keys, lane)
  local m = merged(cute.max(list[self.lists], keys), lane)
  for r = self.lists - 1, 1, -1 do
    local turned = cute.arch.shuffle_sync_bfly(m, WARP - 1)
    local more, less = cute.max(list[r], turned), cute.min(list[r], turned)
    list[r + 1], m = merged(less, lane), merged(more, lane)
  end
  list[1] = m
end

-- Returns the k-th best key so far. Only better keys can enter the list.
function Top:bar(list)
  return cute.arch.shuffle_sync(list[(self.k - 1) // WARP + 1],
                                (self.k - 1) % WARP)
end

---------------------------------------------------------------------------
-- The kernel
---------------------------------------------------------------------------

-- Makes a warp's queue of keys: {count, slots, bar}. Keys must be better than
-- bar, the k-th best key so far.
function Top:queue(warp, none)
  local slots = cute.make_smem_tensor(self.type, cute.make_layout(
    {2 * WARP, self.block // WARP}))
  return {count = 0, slots = slots(cute._, warp), bar = none}
end

-- Appends the keys that are better than the bar to the queue. As soon as the
-- queue has 32 keys, merges them into the list. All lanes of the warp must call
-- this method.
function Top:offer(queue, list, key, lane)
  local better = cute.gt(key, queue.bar)
  local who = cute.arch.vote_ballot_sync(better)
  cute.when(cute.ne(who, 0), function()
    local before = cute.arch.popc(who & cute.arch.lanemask_lt()):to(cute.i32)
    cute.when(better, function() queue.slots[queue.count + before] = key end)
    queue.count = queue.count + cute.arch.popc(who):to(cute.i32)
    cute.when(cute.ge(queue.count, WARP), function()
      cute.arch.sync_warp()
      self:take(list, ascending(queue.slots[lane], lane), lane)
      queue.count, queue.bar = queue.count - WARP, self:bar(list)
      cute.when(cute.lt(lane, queue.count), function()
        queue.slots[lane] = queue.slots[lane + WARP]
      end)
      cute.arch.sync_warp()
    end)
  end)
end

-- Merges the keys that remain in the queue into the list.
function Top:drain(queue, list, lane)
  cute.arch.sync_warp()
  local key = cute.var(list[1] * 0, self.type)
  cute.when(cute.lt(lane, queue.count), function()
    key.value = queue.slots[lane]
  end)
  self:take(list, ascending(key.value, lane), lane)
end

-- Loads the vector of row x that begins at element `at`, or the last vector if
-- `at` is beyond it. Returns a function that returns the list of the elements'
-- keys (see Top:key); an element beyond the row has key 0.
function Top:keys(x, at)
  local atom = cute.make_copy_atom("UniversalCopy", x.element_type,
                                   self.width * x.element_type.bits)
  local held = cute.make_rmem_tensor({self.width}, x.element_type)
  local from = cute.min(at, self.n - self.width)
  cute.copy(atom, cute.make_tensor(x.iterator + from,
                                   cute.make_layout {self.width}), held)
  return function()
    local keys, inside = {}, cute.lt(at, self.n)
    for w = 0, self.width - 1 do
      keys[w + 1] = cute.where(inside, self:key(held[w], at + w), 0)
    end
    return keys
  end
end

-- Finds the best keys of a row. The row's vectors are assigned round-robin to
-- its warps, and each lane loads `unroll` vectors at once. Only a few vectors
-- contain a key for the list. A separate loop reloads these vectors, so that
-- the code stays short.
function Top:search(x, list, lane, warp)
  local none, of_warp = list[1], self.width * WARP
  local queue = self:queue(warp, none)
  local function place(chunk, u)
    return (chunk + u * self.warps) * of_warp + lane * self.width
  end
  local function offer(keys)
    for _, key in ipairs(keys) do self:offer(queue, list, key, lane) end
  end
  for chunk in cute.range(warp % self.warps, (self.n + of_warp - 1) // of_warp,
                          self.warps * self.unroll) do
    local loads, best, keys = {}, none, nil
    for u = 1, self.unroll do loads[u] = self:keys(x, place(chunk, u - 1)) end
    for u = 1, self.unroll do
      keys = loads[u]()
      for _, key in ipairs(keys) do best = cute.max(best, key) end
    end
    cute.when(cute.arch.vote_any_sync(cute.gt(best, queue.bar)), function()
      if self.unroll == 1 then return offer(keys) end
      for u in cute.range(self.unroll) do
        offer(self:keys(x, place(chunk, u))())
      end
    end)
  end
  self:drain(queue, list, lane)
end

-- Merges the lists of the row's other warps into the list of its first warp.
function Top:gather(list, lane, warp)
  local found = cute.make_smem_tensor(self.type, cute.make_layout(
    {WARP, self.lists, self.block // WARP}))
  for r = 1, self.lists do found[{lane, r - 1, warp}] = list[r] end
  cute.arch.sync_threads()
  cute.when(cute.eq(warp % self.warps, 0), function()
    for other in cute.range(1, self.warps) do
      for r = 1, self.lists do
        self:take(list, found[{WARP - 1 - lane, r - 1, warp + other}], lane)
      end
    end
  end)
end

function Top:run(X, Y, I)
  local tid = (cute.arch.thread_idx())
  local lane, warp = tid % WARP, tid // WARP
  local row = (cute.arch.block_idx()) * self.rows + warp // self.warps
  local none = (lane * 0):to(self.type)
  local list = {}
  for r = 1, self.lists do list[r] = none end
  local there = cute.lt(row, X.shape[1])
  cute.when(there, function()
    self:search(X(row, cute._), list, lane, warp)
  end)
  if self.warps > 1 then self:gather(list, lane, warp) end
  cute.when(there & cute.eq(warp % self.warps, 0), function()
    for r = 1, self.lists do
      local j = lane + (r - 1) * WARP
      cute.when(cute.lt(j, self.k), function()
        local at = self:place(list[r])
        Y[{row, j}], I[{row, j}] = X[{row, at}], at
      end)
    end
  end)
end

--- Returns a kernel with arguments (X, Y, I), and its launch parameters.
---@param o table {n: integer, dtype: any, k: integer, smallest: boolean?,
-- warps: integer?, block: integer?, width: integer?, unroll: integer?}
-- dtype: bf16, f16 (n up to 65535) or f32; warps: number of warps for each row
-- (when absent, one per 1024 elements, at most 8); block: number of threads
-- (128 when absent); width: elements of a vector; unroll: vectors that a lane
-- loads at once (1 when absent)
---@return table {kernel: any, grid: fun(m: integer): integer, block: integer}
return function(o)
  rules.options("topk", o, "n dtype k smallest warps block width unroll")
  rules.given("topk", o, "n", "dtype", "k")
  rules.integers("topk", o, {"warps"}, 1, 32, "power")
  rules.integers("topk", o, {"block"}, WARP, 1024, "power")
  local widest = rules.widest(o.dtype.bits, o.n)
  rules.integers("topk", o, {"width"}, 1, widest, "power")
  local t = setmetatable({n = o.n, k = o.k, smallest = o.smallest,
    bits = o.dtype.bits, width = o.width or widest,
    unroll = o.unroll or 1}, Top)
  rules.integers("topk", t, {"unroll"}, 1, 8)
  rules.need(o.dtype.is_float and (t.bits == 16 or t.bits == 32), "topk",
    "the element type must be bf16, f16 or f32, not %s", o.dtype.name)
  rules.need(o.k <= 64 and o.k <= o.n, "topk",
    "k must be from 1 to 64 and at most n = %d, not %d", o.n, o.k)
  rules.need(t.bits == 32 or o.n < 65536, "topk",
    "rows of 16-bit elements can have at most 65535 elements, not %d", o.n)
  t.type, t.lists = t.bits == 16 and cute.u32 or cute.u64, o.k > WARP and 2 or 1
  t.warps = o.warps or 1
  while not o.warps and t.warps < 8 and t.warps * 2048 <= o.n do
    t.warps = t.warps * 2
  end
  t.block = math.max(t.warps * WARP, o.block or 128)
  t.rows = t.block // WARP // t.warps
  return {block = t.block,
    grid = function(m) return (m + t.rows - 1) // t.rows end,
    kernel = cute.kernel("topk", function(X, Y, I)
      rows.check(t, "topk", X)
      rules.same("topk", "k", o.k, "a row of Y", Y.shape[2])
      rules.same("topk", "k", o.k, "a row of I", I.shape[2])
      t:run(X, Y, I)
    end)}
end
-- SPDX-License-Identifier: MIT
