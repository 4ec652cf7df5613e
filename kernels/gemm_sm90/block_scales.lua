--- Scale factors of blocks of K in kernels/gemm_sm90: they multiply the
-- accumulators of o.promote tiles along K before these are added to the sums.
--
-- A warp of the producer, the loader, copies the factors of a tile's rows and
-- columns to a ring of stages in shared memory, ahead of their use. Factors of
-- f32 are copied by cp.async. The consumers read them from there.
local core = require "cute.core"
local cute = require "cute"
local groups = require "kernels.groups"
local tile_order = require "kernels.gemm_sm90.tile_order"
local tiles = require "cute.tiles"

local _ = cute._
local pipeline = cute.pipeline
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

local WARP = 32

-- The largest number of accumulators and column factors of a thread with which
-- it reads the column factors before the products end. With more, it has too
-- few registers to keep them.
local MOST_HELD = 192

local block_scales = {}

-- Returns how many adjacent columns of any tile share a factor.
local function unit_of(o) return core.gcd(o.tile[2], o.blocks) end

--- Returns the bytes of a stage of factors.
function block_scales.bytes(o)
  return (o.tile[1] + o.tile[2] // unit_of(o)) * 4
end

--- Makes the ring of factors. SA (M,k) and SB (N,k) are the factors of rows and
-- of columns, or nil; those of groups are (N,k,G).
---@param maker any true in the thread that initializes the mbarriers
function block_scales.ring(o, maker, SA, SB)
  local function stages(count)
    return cute.make_smem_tensor(o.acc,
      cute.make_layout({count, o.stages}, {1, count}), 16)
  end
  local async = true
  for _, X in pairs {SA, SB} do
    async = async and X.element_type == cute.f32
  end
  return {SA = SA, SB = SB, unit = unit_of(o), async = async,
    rows = SA and stages(o.tile[1]),
    columns = SB and stages(o.tile[2] // unit_of(o)),
    pipe = pipeline.PipelineAsync {
      num_stages = o.stages, producer_group = Group(Agent.Thread, WARP),
      consumer_group = Group(Agent.Warp, 4 * (o.pingpong and 1 or o.consumers)),
      maker = maker, defer_sync = true, cp_async = async}}
end

-- Copies factors of step k from X (count,k) to `to`. The i-th factor is that of
-- row first + i * unit, or of the last row if there are fewer rows.
local function copy(ring, X, k, first, unit, to)
  local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 32)
  local count, lane = cute.size(to), cute.arch.lane_idx()
  for at = 0, count - 1, WARP do
    local i = lane + at
    local function one()
      local from = {cute.min(first + i * unit, cute.size(X, 0) - 1), k}
      if not ring.async then to[i] = X[from]:to(cute.f32) return end
      cute.copy(atom,
        cute.make_tensor(X.iterator + X.layout(from), cute.make_layout(1)),
        cute.make_tensor(to.iterator + i, cute.make_layout(1)))
    end
    if at + WARP <= count then one()
    else cute.when(cute.lt(i, count), one) end
  end
end

--- Copies the factors of all tiles of the iterator `work` to the ring. A tile
-- has `steps` steps, the first of which is step `first` of the factors. All
-- lanes of one warp call this function.
function block_scales.load(o, ring, work, first, steps)
  local write = ring.pipe:make_producer_state()
  tile_order.each(o, work, function()
    local w, SA, SB = work:get_current_work(), ring.SA, ring.SB
    local tile = w.tile_idx
    if o.groups then
      SA, SB = SA and groups.view(SA, w), SB and tiles.batch(SB, tile[3])
    end
    for k in cute.range(steps) do
      ring.pipe:producer_acquire(write)
      if SA then
        copy(ring, SA, first + k, tile[1] * o.tile[1], 1,
             ring.rows(_, write.index))
      end
      if SB then
        copy(ring, SB, first + k, tile[2] * o.tile[2], ring.unit,
             ring.columns(_, write.index))
      end
      ring.pipe:producer_commit(write)
      write:advance()
    end
    work:advance_to_next_work()
  end)
end

--- Returns an object with which a consumer reads the factors of its tiles:
-- take(i), for its i-th 64 rows (from 0), is called while their products are in
-- flight. by() then returns the factors of these rows, as a fragment with the
-- layout of acc. release() marks a step as read; skip(n) omits n steps.
---@param out table {thread, row} (kernels.gemm_sm90.store_tile)
function block_scales.reader(o, ring, out, acc)
  local pipe, unit = ring.pipe, ring.unit
  local read = pipe:make_consumer_state()
  local lane, warp = out.thread % WARP, out.thread // WARP
  local parts = o.tile[2] // 4   -- accumulators of a row
  local held = o.sums + parts <= MOST_HELD
  local rows = cute.make_rmem_tensor({2}, o.acc)
  local columns = cute.make_rmem_tensor(
    unit == 1 and {2, parts // 2} or {1, o.tile[2] // unit}, o.acc)
  local reader = {}

  -- Loads the column factors of accumulator e, if no earlier accumulator needs
  -- them. Returns the factor.
  local function column(e, there)
    local j = e // 4 * 8 // unit  -- each 4 accumulators have 8 columns
    if unit == 1 then j = e // 4 end
    if not there[j] then
      local from = ring.columns(_, read.index).iterator
        + (unit == 1 and j * 8 + lane % 4 * 2 or j)
      local n = unit == 1 and 2 or 1
      cute.autovec_copy(cute.make_tensor(from, cute.make_layout(n)),
                        columns(_, j))
      there[j] = true
    end
    return columns[{unit == 1 and e % 2 or 0, j}]
  end

  local kept
  function reader.take(i)
    if i == 0 then
      pipe:consumer_wait(read)
      kept = {}
      if ring.columns and held then
        for e = 0, cute.size(acc) - 1 do column(e, kept) end
      end
    end
    if not ring.rows then return end
    local row = out.row(i) * 64 + warp * 16 + lane // 4
    for v = 0, 1 do rows[v] = ring.rows[{row + 8 * v, read.index}] end
  end

  function reader.by()
    local by, there = cute.make_fragment_like(acc), held and kept or {}
    for e = 0, cute.size(acc) - 1 do
      local x = ring.rows and rows[e // 2 % 2]
      local y = ring.columns and column(e, there)
      by[e] = x and y and x * y or x or y
    end
    return by
  end

  function reader.release()
    cute.arch.sync_warp()
    pipe:consumer_release(read)
    read:advance()
  end

  function reader.skip(n) read:advance(n) end
  return reader
end

return block_scales
-- SPDX-License-Identifier: MIT
