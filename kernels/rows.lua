--- Distributes rows of a matrix over threads: the common parts of kernels that
-- process each row as a unit (softmax, norms, sums along rows).
--
-- `threads` neighbouring threads, a power of two, share a row; a block has
-- `rows` rows. A row is divided into `chunks` chunks. A thread has `steps`
-- vectors (S) of `width` elements (W) of each chunk, in a fragment (W,S).
-- Vector s of thread t begins at element (s * threads + t) * width.
--
-- The length of a row decides where its elements are kept between the passes
-- over the row. A held row is one chunk, in registers. A staged row is in
-- shared memory, loaded by cp.async. A thread reads only elements that it
-- requested itself, so no barrier is needed. A walked row is not kept: each
-- pass reads the row again. The blocks of a cluster may share a row
-- (Plan:exchange_blocks). Blocks without a cluster may share rows, too: see
-- kernels/multiblock_rows.lua.
local core = require "cute.core"
local cute = require "cute"
local l2_priority = require "kernels.l2_priority"
local rules = require "kernels.operand_rules"
local sign = require "cute.lang.signature"
local _ = cute._

local rows = {}
local Plan, Source = {}, {}
Plan.__index, Source.__index = Plan, Source

local WARP, MOST = 32, 1024
-- The largest number of elements of a row for which a block can hold column
-- sums.
rows.KEPT = 1 << 14
-- The bytes of shared memory for rows on an sm_90 multiprocessor.
local SMEM = 226 << 10

local function up(a, b) return (a + b - 1) // b end

---------------------------------------------------------------------------
-- Plans
---------------------------------------------------------------------------

-- Returns the number of threads for a row. It is the smallest power of two such
-- that each thread has at most `steps` vectors, but at most MOST.
local function threads_for(vectors, steps)
  local threads = 1
  while threads < MOST and threads * steps < vectors do
    threads = threads * 2
  end
  return threads
end

-- Limits of rows in registers: HELD elements of a block; VALUES elements and
-- BITS bits of a thread; and at least LEAST threads, which read adjacent
-- vectors.
local HELD, VALUES, BITS, LEAST = 1 << 14, 64, 1024, 16

--- Returns how many elements a thread holds at most, for `sources` rows.
function rows.most(dtype, sources)
  return math.min(VALUES, BITS // dtype.bits) // (sources or 1)
end

-- Returns the number of threads, and of vectors of each thread, for a row in
-- registers: those that leave the fewest threads without their last vector.
-- `steps` is the preferred number of vectors. Returns nil if the row does not
-- fit. On an H200, RMSNorm of rows of 5120 bf16 takes 252 us with 128 threads
-- of 5 vectors, and 316 us with 512 threads, of which 384 have one vector and
-- 128 have two.
local function held_by(vectors, steps, width, o)
  local most = rows.most(o.dtype, o.sources)
  local threads, best, each_of, least = threads_for(vectors, steps), nil, nil,
                                        math.huge
  while threads >= 1 do
    local each = up(vectors, threads)
    local fits = each <= steps or each * width <= most and threads >= LEAST
      and threads < MOST and threads * each * width <= HELD
    if fits and threads * each < least then
      best, each_of, least = threads, each, threads * each
    end
    threads = threads // 2
  end
  return best, each_of
end

-- Returns the bytes of shared memory for the chunks of a staged plan.
local function stage_bytes(p, o)
  return p.chunks * p.steps * p.block * p.width * (o.dtype.bits // 8)
    * (o.sources or 1) * p.stages
end

-- Sets the fields of plan p that follow from `steps`, the maximum number of
-- vectors of a chunk for each thread, and from `threads`, if it is given.
local function spread(p, o, steps, threads)
  local vectors, blocks = up(o.n, p.width), p.blocks * p.cluster
  p.threads = threads or threads_for(up(vectors, blocks), steps)
  p.all = p.threads * blocks  -- threads of all blocks that share a row
  p.steps = math.min(steps, up(vectors, p.all))
  p.chunks = up(vectors, p.steps * p.all)
  p.block = blocks > 1 and p.threads or math.max(p.threads, o.block or 128)
  p.rows = p.block // p.threads
  return p
end

--- The names of the options that all row kernels accept.
rows.OPTIONS = "n dtype values threads block width staged min_blocks smem "
  .. "persistent blocks stages resident cluster"

--- Plans the distribution of rows of n elements over threads. n, `dtype` and
-- `sources` (the number of rows that a kernel reads more than once) determine
-- the plan, the fastest one that was measured on an H200. These options
-- override it:
-- - values: the number of elements of a chunk for each thread.
-- - threads: the number of threads of a row.
-- - block: the number of threads of a block.
-- - width: the number of elements of a vector (1 if rows begin at any element).
-- - staged: whether rows are kept in shared memory.
-- - min_blocks: the number of blocks that must fit on a multiprocessor.
-- - smem: the bytes of shared memory of a multiprocessor, if it is not an
--   sm_90.
-- - persistent: whether blocks iterate over rows, and stage the next row while
--   they write the current one.
-- - blocks: the number of blocks that share a row (1 when absent). Each has
--   `threads` threads, and keeps the copies of `stages` rows (2 when absent) in
--   flight.
-- - cluster: the number of blocks of a cluster that share a row (1 when
--   absent), each with `threads` threads. It cannot be combined with `blocks`.
---@param o table {n: integer, dtype: any, sources: integer?, values: integer?,
-- threads: integer?, block: integer?, staged: boolean?, min_blocks: any?,
-- smem: integer?, persistent: boolean?, width: integer?, blocks: integer?,
-- stages: integer?, cluster: integer?}
---@return table
function rows.plan(o)
  rules.given("rows", o, "n", "dtype")
  rules.integers("rows", o, {"threads"}, 1, MOST, "power")
  rules.integers("rows", o, {"block"}, WARP, MOST, "power")
  rules.integers("rows", o, {"values"}, 1, MOST)
  rules.integers("rows", o, {"blocks"}, 1, WARP)
  rules.integers("rows", o, {"stages"}, 2, 8)
  rules.integers("rows", o, {"cluster"}, 1, 8, "power")
  local widest = rules.widest(o.dtype.bits, o.n)
  rules.integers("rows", o, {"width"}, 1, widest, "power")
  local p = setmetatable({n = o.n, persistent = o.persistent,
    blocks = o.blocks or 1, cluster = o.cluster or 1,
    min_blocks = o.min_blocks or nil}, Plan)
  p.stages = p.blocks > 1 and (o.stages or 2) or 1
  p.width = o.width or widest
  local steps = math.max(1, (o.values or 256 // o.dtype.bits) // p.width)
  local given = o.threads or o.values or o.staged or o.persistent
    or p.blocks * p.cluster > 1
  local threads, each
  if not given then
    threads, each = held_by(up(o.n, p.width), steps, p.width, o)
  end
  spread(p, o, each or steps, o.threads or threads)
  local smem = o.smem or SMEM
  local can = p.width * o.dtype.bits >= 32 and stage_bytes(p, o) <= smem
  p.staged = can and (o.staged or o.staged == nil and p.chunks > 1)
  rules.need(p.blocks == 1 or p.staged and p.persistent and p.threads > WARP,
    "rows", "rows of %d elements of %s cannot be divided among %d blocks of %d "
    .. "threads with %d stages", o.n, tostring(o.dtype), p.blocks,
    p.threads, p.stages)
  rules.need(p.cluster == 1 or p.blocks == 1 and not p.persistent
    and p.threads >= WARP, "rows", "rows of %d elements cannot be divided "
    .. "among a cluster of %d blocks of %d threads", o.n, p.cluster, p.threads)
  if p.staged and p.block == MOST and 2 * stage_bytes(p, o) <= smem
      and o.min_blocks == nil then
    -- With two blocks of 1024 threads, a thread has at most 32 registers.
    p.min_blocks = 2
  elseif p.chunks > 1 and not p.staged and not o.values then
    spread(p, o, 2 * steps, o.threads)
  end
  return p
end

--- Reports whether the threads of a row can keep a column sum for each element
-- of the row in registers.
function Plan:fits()
  return (self.chunks == 1 or self.staged)
    and self.n <= rows.KEPT * self.blocks
end

--- Returns the number of blocks for m rows. Persistent blocks are limited to
-- `resident` blocks, if this is given.
---@param m integer
---@param resident? integer
function Plan:grid(m, resident)
  local tiles = up(m, self.rows)
  local most = resident and math.max(1, resident // self.blocks) or tiles
  return (self.persistent and math.min(tiles, most) or tiles) * self.blocks
    * self.cluster
end

--- Returns the first row of this thread, and the distance to its next row. The
-- distance is the number of rows that all blocks process at once.
function Plan:walk()
  if self.blocks > 1 then return self.first, self.walking end
  return (cute.arch.block_idx()) // self.cluster * self.rows + self:row(),
    (cute.arch.grid_dim()) // self.cluster * self.rows
end

--- Returns the index of this thread's row in the block. Plan:lane returns the
-- thread's index in the row.
function Plan:row()
  if self.rows == 1 then return 0 end
  return (cute.arch.thread_idx()) // self.threads
end

function Plan:lane()
  local tid = (cute.arch.thread_idx())
  if self.blocks > 1 then
    rules.need(self.piece, "rows", "blocks = %d, but this kernel does not "
      .. "support rows divided among blocks", self.blocks)
    return self.piece * self.threads + tid
  elseif self.cluster > 1 then
    return (cute.arch.block_in_cluster_idx()) * self.threads + tid
  end
  return self.rows == 1 and tid or tid % self.threads
end

--- Calls f(at) for each of m rows that this thread processes. Fields of `at`:
-- row, the row's index; inside, whether the row exists (nil if all rows exist);
-- turn, alternately 0 and 1, for persistent blocks. `sources` is the list of
-- Plan:sources for the tensors that f reads.
---@param m any
---@param sources table[]
---@param f function
function Plan:each(m, sources, f)
  local block, mine = (cute.arch.block_idx()), self:row()
  local function place(tile)
    local row = tile * self.rows + mine
    return {row = row, inside = self.rows > 1 and cute.lt(row, m) or nil,
            seen = {}, held = {}}
  end
  local function open(at)
    for _, s in ipairs(sources) do s:open(at) end
    return at
  end
  if not self.persistent then
    return f(open(place(block // self.cluster)))
  end
  local turn, tiles = 0, up(m, self.rows)
  local grid = (cute.arch.grid_dim())
  if self.staged then open(place(block)) end
  for tile in cute.range(block, tiles, grid) do
    local at = place(tile)
    at.turn = turn
    if self.staged then
      at.next = place(tile + grid)
      at.next.inside = at.next.inside or cute.lt(tile + grid, tiles)
    else
      open(at)
    end
    f(at)
    turn = 1 - turn
  end
end

--- Calls f(chunk) for each chunk of a row. If there is only one chunk, calls
-- f() without an argument.
function Plan:chunk(f)
  if self.chunks == 1 then return f() end
  if self.staged then
    for chunk = 0, self.chunks - 1 do f(chunk) end
  else
    for chunk in cute.range(self.chunks) do f(chunk) end
  end
end

---------------------------------------------------------------------------
-- Vectors
---------------------------------------------------------------------------

--- Returns this thread's vectors (W,S) of a chunk of a row. `t` is (M,N), or
-- (N) if `row` is nil.
function Plan:part(t, row, chunk)
  local of = row and t(row, _) or t
  return cute.make_tensor(of.iterator + self:index(0, chunk), cute.make_layout(
    {self.width, self.steps}, {1, self.all * self.width}))
end

--- Returns the index in the row at which this thread's vector s of a chunk
-- begins.
function Plan:index(s, chunk)
  local of_chunk = (chunk or 0) * (self.all * self.steps)
  return (self:lane() + s * self.all + of_chunk) * self.width
end

--- Reports whether vector s of a chunk is inside the row. Returns nil if the
-- vectors of all threads are inside.
function Plan:has(s, chunk)
  local last = math.type(chunk or 0) and chunk or self.chunks - 1
  local reach = ((last or 0) * self.steps + s + 1) * self.all * self.width
  if reach <= self.n then return nil end
  return cute.lt(self:index(s, chunk), self.n)
end

--- Returns the number of elements of a row that this thread has.
function Plan:count()
  local vectors = self.n // self.width
  if vectors % self.all == 0 then return vectors // self.all * self.width end
  return ((vectors + self.all - 1 - self:lane()) // self.all * self.width)
    :to(cute.f32)
end

-- Returns predicates (1,S) that are true for vectors inside the row, or nil if
-- all vectors are inside. `inside`: whether the row exists, nil if all rows
-- exist.
function Plan:inside(inside, chunk)
  local list, all = {}, not inside
  for s = 0, self.steps - 1 do
    local has = self:has(s, chunk)
    all = all and not has
    list[s] = has and inside and has & inside or has or inside or true
  end
  if all then return nil end
  local pred = cute.make_rmem_tensor({1, self.steps}, cute.boolean)
  for s = 0, self.steps - 1 do pred[{0, s}] = list[s] end
  return pred
end

function Plan:fragment(dtype)
  return cute.make_rmem_tensor({self.width, self.steps}, dtype)
end

-- Copies the vectors that are inside the row. `priority` is the L2 priority of
-- the source's lines (kernels/l2_priority.lua), `name` the copy's atom.
local function copy(plan, from, to, pred, priority, name)
  local t = from.element_type
  cute.copy(cute.make_copy_atom(name or "UniversalCopy", t, {
    num_bits_per_copy = plan.width * t.bits,
    level2_eviction_priority = priority}), from, to, pred and {pred = pred})
end

local function to_registers(plan, from, pred, other, priority)
  local held = plan:fragment(from.element_type)
  if pred then held:fill(other) end
  copy(plan, from, held, pred, priority)
  return held:load()
end

--- Loads this thread's elements of row at.row of t (or of t itself if `at` is
-- nil). Returns a vector (W,S) of t's type, with the value `other` where the
-- row has no element. `priority` is that of the row's lines in L2, or nil.
function Plan:load(t, at, other, chunk, priority)
  return to_registers(self, self:part(t, at and at.row, chunk),
                      self:inside(at and at.inside, chunk), other, priority)
end

--- Stores a vector (W,S), rounded to t's type, to row at.row of t.
function Plan:store(t, at, vector, chunk)
  local held = self:fragment(t.element_type)
  held:store(vector:to(t.element_type))
  copy(self, held, self:part(t, at.row, chunk), self:inside(at.inside, chunk))
end

--- Returns the vector (W,S) of this thread's elements. Elements that lie beyond
-- the end of the row are replaced by `other`.
function Plan:only(vector, other, chunk)
  local pred = self:inside(nil, chunk)
  if not pred then return vector end
  local held = self:fragment(vector.dtype)
  for s = 0, self.steps - 1 do
    for w = 0, self.width - 1 do
      held[{w, s}] = cute.where(pred[{0, s}], vector[{w, s}], other)
    end
  end
  return held:load()
end

--- Calls f in one thread of each existing row.
function Plan:first(at, f)
  local first = cute.eq(self:lane(), 0)
  cute.when(at.inside and first & at.inside or first, f)
end

---------------------------------------------------------------------------
-- Sources: tensors whose rows are read more than once
---------------------------------------------------------------------------

-- Returns the L2 priority of loads of the rows of t.
local function priority_of(plan, t)
  local n = t.shape[1]
  return math.type(n) and l2_priority(n * plan.n * t.element_type.bits // 8)
    or nil
end

--- Returns a list of sources, one for each tensor. A source reads the rows of
-- its tensor chunk by chunk. source:get(at, chunk[, "last"]) returns an f32
-- vector (W,S), with `other` where the row has no elements. "last" means that
-- the kernel does not read the chunk again, so that the copy of the next row
-- can replace it. All sources of a kernel are made at once, in one list.
---@param tensors any[]
---@param other number
---@return table[]
function Plan:sources(tensors, other)
  local list = {}
  for i, t in ipairs(tensors) do
    local s = setmetatable({plan = self, t = t, other = other, place = i,
                            all = list, priority = priority_of(self, t)},
                           Source)
    if self.staged then
      local step = self.width * self.block
      s.slots = cute.make_smem_tensor(t.element_type, cute.make_layout(
        {self.width, self.steps, self.block, self.chunks, self.stages},
        {1, step, self.width, step * self.steps,
         step * self.steps * self.chunks}), 128)  -- (W,S,THR,CHUNK,STAGE)
    end
    list[i] = s
  end
  return list
end

function Source:slot(at, chunk)
  return self.slots(_, _, (cute.arch.thread_idx()), chunk, at.slot or 0)
end

-- Starts the copy of a chunk of a row to shared memory. The copies of all
-- sources form one cp.async group.
function Source:ask(at, chunk)
  local plan, t = self.plan, self.t
  local wide = plan.width * t.element_type.bits == 128
  copy(plan, plan:part(t, at.row, chunk), self:slot(at, chunk),
    plan:inside(at.inside, chunk),
    nil,
    wide and "SM80_CP_ASYNC_CACHEGLOBAL" or "SM80_CP_ASYNC_CACHEALWAYS")
  if self.place == #self.all then cute.arch.cp_async_commit_group() end
end

-- Starts the copy of a row of a staged source, or loads a row of a held source.
function Source:open(at)
  local plan = self.plan
  if plan.staged then
    if self.place < #self.all then return end
    for chunk = 0, plan.chunks - 1 do
      for _, s in ipairs(self.all) do s:ask(at, chunk) end
    end
  elseif plan.chunks == 1 then
    at.held[self] = plan:load(self.t, at, self.other, nil, self.priority)
  end
end

function Source:get(at, chunk, last)
  local plan = self.plan
  if at.held[self] then return at.held[self]:to(cute.f32) end
  if not plan.staged then
    return plan:load(self.t, at, self.other, chunk, self.priority):to(cute.f32)
  end
  chunk = chunk or 0
  if not (at.arrived or at.seen[chunk]) then
    at.seen[chunk] = true
    -- the maximum number of later rows whose copies may be in flight
    local later = math.max(0, plan.stages - 2)
    local groups = later * plan.chunks + plan.chunks - 1 - chunk
    cute.arch.cp_async_wait_group(groups)
  end
  local v = to_registers(plan, self:slot(at, chunk),
                         plan:inside(at.inside, chunk), self.other)
  if last and at.next then self:ask(at.next, chunk) end
  return v:to(cute.f32)
end

---------------------------------------------------------------------------
-- Reductions
---------------------------------------------------------------------------

--- Reduces a vector (W,S) by "add", "max", ... It first reduces across its
-- vectors, to avoid one long chain of dependent operations.
function rows.fold(vector, op, init)
  return vector:reduce(op, init, {_, 1}):reduce(op, init)
end

--- Returns the number of lanes of a warp that share a row. Plan:warp(x, f)
-- reduces x over these lanes by f.
function Plan:lanes() return math.min(self.threads, WARP) end

function Plan:warp(value, f)
  return cute.arch.warp_reduction(value, f, self:lanes())
end

--- Exchanges values among the warps of a row: each thread gets the values of
-- warp number lane % warps. A reduction over `warps` lanes then gives the
-- result for the row.
---@param values any[] of a warp: equal in all its lanes
---@param turn? any alternately 0 and 1, because other warps may still read
-- the previous values
---@return any[] values
---@return integer warps number of warps of a row; if 1, `values` is unchanged
function Plan:exchange(values, turn)
  local warps = self.threads // WARP
  if warps <= 1 then return values, 1 end
  local tid, at, s = (cute.arch.thread_idx()), turn or 0, {}
  local shape = cute.make_layout({self.rows * warps, turn and 2 or 1})
  for i, v in ipairs(values) do s[i] = cute.make_smem_tensor(v.dtype, shape) end
  cute.when(cute.eq(tid % WARP, 0), function()
    for i, v in ipairs(values) do s[i][{tid // WARP, at}] = v end
  end)
  cute.arch.sync_threads()
  local out, from = {}, self:row() * warps + tid % warps
  for i in ipairs(values) do out[i] = s[i][{from, at}] end
  return out, warps
end

--- Exchanges f32 values among the blocks of a cluster that share a row: each
-- thread gets the values of block number lane % (number of blocks). A reduction
-- over `blocks` lanes then gives the result for the row. A kernel may call this
-- method once.
---@param values any[] of a block: equal in all its threads
---@return any[] values
---@return integer blocks if 1, `values` is unchanged
function Plan:exchange_blocks(values)
  local blocks, arch = self.cluster, cute.arch
  if blocks == 1 then return values, 1 end
  local tid, rank, s = (arch.thread_idx()), (arch.block_in_cluster_idx()), {}
  for i in ipairs(values) do
    s[i] = cute.make_smem_tensor(cute.f32, cute.make_layout {blocks})
  end
  -- Waits until the other blocks of the cluster have begun. Only then may their
  -- shared memory be written.
  arch.cluster_arrive_relaxed()
  arch.cluster_wait()
  cute.when(cute.lt(tid, blocks), function()
    for i, v in ipairs(values) do
      cute.make_tensor(arch.map_dsmem_ptr(s[i].iterator + rank, tid),
                       cute.make_layout {1})[0] = v
    end
  end)
  arch.cluster_arrive()
  arch.cluster_wait()
  local out = {}
  for i in ipairs(values) do out[i] = s[i][tid % blocks] end
  return out, blocks
end

--- Reduces with f over all threads of a row. All threads get the result.
function Plan:reduce(value, f, turn)
  local out, warps = self:exchange({self:warp(value, f)}, turn)
  local all, blocks = self:exchange_blocks {cute.arch.warp_reduction(out[1], f,
                                                                     warps)}
  return cute.arch.warp_reduction(all[1], f, blocks)
end

function rows.add(a, b) return a + b end

--- Sums each value over all threads of a row. All threads get the sums.
---@param values any[] values of this thread
function Plan:sums(values, turn)
  local parts = {}
  for i, v in ipairs(values) do parts[i] = self:warp(v, rows.add) end
  local out, warps = self:exchange(parts, turn)
  for i, v in ipairs(out) do
    out[i] = cute.arch.warp_reduction(v, rows.add, warps)
  end
  return out
end

--- Checks tensors of rows, or of one row. They must be row-major, with rows of
-- n elements, and the distance between rows must be a multiple of the vector.
---@param plan {n: integer, width: integer}
---@param what string the kernel
function rows.check(plan, what, ...)
  for i = 1, select("#", ...) do
    local t = select(i, ...)
    rules.need(core.typename(t) == "tensor", what,
      "operand %d is %s; a tensor is needed", i, core.show(t))
    local rank = #t.shape
    local n, stride = t.shape[rank], t.stride[rank]
    local m, apart = t.shape[1], rank > 1 and t.stride[1] or 0
    local one = math.type(m) and m == 1
    rules.need(n == plan.n and (stride == 1 or n == 1), what, "operand %d is "
      .. "%s; rows of %d contiguous elements are needed", i,
      tostring(t.layout), plan.n)
    rules.need(one or not math.type(apart) or apart % plan.width == 0, what,
      "operand %d is %s; rows at multiples of %d elements are needed",
      i, tostring(t.layout), plan.width)
  end
end

return sign.module("kernels.rows", rows)
-- SPDX-License-Identifier: MIT
