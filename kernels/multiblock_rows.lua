--- Distributes long rows over several blocks, for kernels that also sum along
-- columns. A single block would have too few registers for the column sums of a
-- long row.
--
-- The blocks that share rows form a group; each has a part of every row of the
-- group. Sums along a row are combined through words of global memory: a block
-- sends its sums to all blocks of the row, and receives the sums of these
-- blocks. It sends the sums of the next row before it receives those of the
-- current one, so that waits are short.
local cute = require "cute"
local rows = require "kernels.rows"
local sign = require "cute.lang.signature"

local multiblock = {}

local WARP = 32
-- The largest number of blocks of a row. A warp has one lane for each block.
multiblock.MOST = WARP

-- `state` is an array of u64 words that are 0 before and after a launch. The
-- first word counts the blocks that have begun. The other words are mailboxes
-- for the blocks that share a row. They form an array (sum,from,to,row), in
-- which the first index varies fastest: block `from` sends sum number `sum` to
-- block `to`. A message is the flag SAID and the bits of an f32. The receiver
-- resets the word to 0.
local RELAXED = {sem = "relaxed", scope = "gpu"}
local SAID = 1 << 32

--- Returns the number of words of `state` for m rows with `sums` sums each.
-- Returns 0 if each row belongs to a single block.
---@param plan table
---@param m integer
---@param sums integer
---@return integer
function multiblock.states(plan, m, sums)
  if plan.blocks == 1 then return 0 end
  return 1 + m * sums * plan.blocks * plan.blocks
end

--- Returns the plan with this block's position among the blocks that share
-- rows. Blocks that share rows are numbered in the order in which they begin.
-- Therefore a block waits only for blocks that have begun or will begin next.
---@param plan table
---@param state any
---@return table plan
function multiblock.join(plan, state)
  if plan.blocks == 1 then return plan end
  local taken = cute.make_smem_tensor(cute.i32, cute.make_layout {1})
  local blocks = (cute.arch.grid_dim())
  cute.when(cute.eq((cute.arch.thread_idx()), 0), function()
    local at = cute.arch.atomic_add(state.iterator, 1):to(cute.i32)
    -- The last block to begin resets the count for the next launch.
    cute.when(cute.eq(at, blocks - 1), function()
      cute.arch.store(state.iterator, 0, RELAXED)
    end)
    taken[0] = at
  end)
  cute.arch.sync_threads()
  local at = taken[0]
  return setmetatable({state = state, piece = at % plan.blocks,
    first = at // plan.blocks, walking = blocks // plan.blocks},
    {__index = plan})
end

-- Returns the word in which block `from` sends sum i of `sums` of a row to
-- block `to`.
local function word(plan, row, sums, i, to, from)
  local at = (row * plan.blocks + to) * plan.blocks + from
  return plan.state.iterator + (1 + at * sums + (i - 1))
end

-- Adds up this block's share of each of the sums of row `at`. If the row exists
-- (`there`), sends the results to all blocks that share the row, including this
-- one. `values` is this thread's share of each sum.
local function say(plan, at, there, values)
  local tid, parts = (cute.arch.thread_idx()), {}
  for i, v in ipairs(values) do parts[i] = plan:warp(v, rows.add) end
  local out, warps = plan:exchange(parts, at.turn)
  cute.when(there & cute.lt(tid, WARP), function()
    for i, v in ipairs(out) do
      local sum = cute.arch.warp_reduction(v, rows.add, warps)
      cute.when(cute.lt(tid, plan.blocks), function()
        cute.arch.store(word(plan, at.row, #values, i, tid, plan.piece),
          sum:bitcast(cute.u32):to(cute.u64) | SAID, RELAXED)
      end)
    end
  end)
end

-- Loads the words that the row's blocks send to this block. Lane i loads the
-- word from block i, which is 0 if block i has not sent it yet.
local function ask(plan, at, sums)
  local tid, words = (cute.arch.thread_idx()), {}
  for i = 1, sums do
    local w = cute.var(0, cute.u64)
    words[i] = {var = w, take = function()
      w.value = cute.arch.atomic_exch(
        word(plan, at.row, sums, i, plan.piece, tid), 0)
    end}
    cute.when(cute.lt(tid, plan.blocks), words[i].take)
  end
  return words
end

-- Waits until all words have arrived, and stores the totals in `heard`,
-- (SUM,TURN). All threads may read the totals after the next barrier.
local function hear(plan, words, heard, turn)
  local tid = (cute.arch.thread_idx())
  cute.when(cute.lt(tid, WARP), function()
    for i, w in ipairs(words) do
      cute.loop(function()
        return cute.lt(tid, plan.blocks) & cute.eq(w.var.value, 0)
      end, w.take)
      local sum = cute.arch.warp_reduction(
        w.var.value:to(cute.u32):bitcast(cute.f32), rows.add)
      cute.when(cute.eq(tid, 0), function() heard[{i - 1, turn}] = sum end)
    end
  end)
end

local function relay(plan, m, sources, sums, part, use)
  local heard = cute.make_smem_tensor(cute.f32, cute.make_layout {sums, 2})
  local function place(row, slot, turn)
    return {row = row, slot = slot, turn = turn, seen = {}, held = {}}
  end
  local function later(row, slot)
    local at = place(row, slot)
    at.inside = cute.lt(row, m)
    return at
  end
  -- Returns a list with this thread's share of each of the row's sums. If the
  -- row does not exist, the list has zeros.
  local function parts(at, there)
    local values = {}
    for i = 1, sums do values[i] = cute.var(0, cute.f32) end
    cute.when(there, function()
      for i, v in ipairs(part(at)) do values[i].value = v end
    end)
    for i, v in ipairs(values) do values[i] = v.value end
    return values
  end
  for s = 0, plan.stages - 1 do
    local at = later(plan.first + s * plan.walking, s)
    for _, source in ipairs(sources) do source:open(at) end
  end
  local slot, turn = 0, 0
  local first = place(plan.first, slot, turn)
  say(plan, first, cute.lt(first.row, m), part(first))
  for row in cute.range(plan.first, m, plan.walking) do
    local this = place(row, slot, turn)
    slot, turn = (slot + 1) % plan.stages, 1 - turn
    local next = place(row + plan.walking, slot, turn)
    local there = cute.lt(next.row, m)
    local words = ask(plan, this, sums)
    local values = parts(next, there)
    hear(plan, words, heard, this.turn)
    say(plan, next, there, values)
    this.arrived = true
    this.next = later(row + plan.stages * plan.walking, this.slot)
    local all = {}
    for i = 1, sums do all[i] = heard[{i - 1, this.turn}] end
    use(this, all)
  end
end

--- Iterates over this block's share of m rows, with two passes over each row.
-- part(at) returns a list with this thread's share of each of the `sums` sums
-- along the row. use(at, list) gets the complete sums. `at` describes the row,
-- as in Plan:each.
---@param plan table
---@param m any
---@param sources table[]
---@param sums integer
---@param part function
---@param use function
function multiblock.sweep(plan, m, sources, sums, part, use)
  if plan.blocks > 1 then return relay(plan, m, sources, sums, part, use) end
  plan:each(m, sources, function(at)
    use(at, plan:sums(part(at), at.turn))
  end)
end

return sign.module("kernels.multiblock_rows", multiblock)
-- SPDX-License-Identifier: MIT
