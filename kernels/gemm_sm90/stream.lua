--- Stream-K for kernels/gemm_sm90: parts of tiles that are split along K. A
-- block without a tile's first step stores its partial sums in a workspace. The
-- block with the first step adds them to its accumulators.
--
-- Partial sums are loaded like operands. After its last step, the producer
-- waits until the other blocks have stored them, and loads them into the ring
-- by bulk copies. Consumers read them from a stage as they read A and B.
-- Therefore the loads overlap with the last products, and need no registers.
local cute = require "cute"

local _ = cute._
local cpasync = cute.nvgpu.cpasync

local WARPGROUP = 128

local RELAXED = {sem = "relaxed", scope = "gpu"}
local ACQUIRE = {sem = "acquire", scope = "gpu"}
local RELEASE = {op = "add", sem = "release", scope = "gpu"}

local Parts = {}
Parts.__index = Parts

-- The workspace `work` has a slot for each block. A slot's `sums` are partial
-- sums, in pieces of 16 bytes; the pieces of neighbouring threads are adjacent.
-- The slot's entry in `turns` counts the warpgroups that have stored their
-- sums. The block that loads the sums resets the entry to 0.
local function make_parts(o, work, a, b)
  local threads = o.consumers * WARPGROUP
  local p = setmetatable({o = o, work = work, threads = threads,
    pieces = o.rows * o.tile[2] // WARPGROUP // 4,
    load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), o.acc)}, Parts)
  -- p.room is the number of pieces of partial sums that a stage holds, in the
  -- memory of A's elements and of B's. An operand's memory is not used if other
  -- blocks of the cluster also write it, because this block would have to
  -- release it to those blocks.
  p.stage, p.room = {}, 0
  for i, s in ipairs {a, b} do
    local elements = o.tile[i] * o.tile[3]
    local n = elements * s.element_type.bits // 8 // (16 * threads)
    if o.cluster[3 - i] == 1 then
      table.insert(p.stage, {s = s, elements = elements, pieces = n})
      p.room = p.room + n
    end
  end
  while p.pieces % p.room ~= 0 do p.room = p.room - 1 end  -- whole stages
  return p
end

-- Returns the index of the slot of the block that computes range number `range`
-- of the steps, and that has the same position in its cluster as this block.
function Parts:slot(range)
  local cluster = self.o.cluster
  return range * (cluster[1] * cluster[2]) + cute.arch.block_idx_in_cluster()
end

-- Calls f(slot) for each slot with partial sums of w's tile from another block,
-- in the order of K.
function Parts:each(work, w, f)
  local from = w.range + 1
  cute.loop(function()
    return cute.eq(w.k_first, 0) & work:has_part(from, w)
  end, function()
    f(self:slot(from))
    from = from + 1
  end)
end

-- Returns a view of n pieces of the partial sums of a slot, from piece `first`
-- on: (4,threads,pieces).
function Parts:sums(slot, first, n)
  local all = self.pieces * self.threads * 4
  return cute.make_tensor(self.work.sums.iterator + (slot * all
    + first * self.threads * 4), cute.make_layout {4, self.threads, n})
end

-- Returns a view of n pieces in stage `index`. `part`, an entry of self.stage,
-- selects the memory of A's or B's elements.
function Parts:staged(part, index, n)
  local at = cute.recast_ptr(part.s + index * part.elements, self.o.acc)
  return cute.make_tensor(at, cute.make_layout {4, self.threads, n})
end

-- Distributes the pieces that fit into a stage, from piece `first` on, over the
-- memory of A and of B. Calls f(part, first piece, count) for each of the two.
-- `part` is the memory of A or B in the stage.
function Parts:of_stage(first, f)
  local rest = self.room
  for _, part in ipairs(self.stage) do
    local n = math.min(part.pieces, rest)
    if n > 0 then f(part, first + (self.room - rest), n) end
    rest = rest - n
  end
end

-- Stores the partial sums of this warpgroup in a slot. The leader thread then
-- counts the warpgroup in the slot's entry of `turns`.
function Parts:leave(sums, slot, barrier, leader)
  local tid = cute.arch.thread_idx()
  local mine = cute.make_tensor(sums.iterator,
                                cute.make_layout {4, self.pieces})
  cute.autovec_copy(mine, self:sums(slot, 0, self.pieces)(_, tid, _))
  barrier:arrive_and_wait()
  cute.when(leader, function()
    cute.arch.red(self.work.turns.iterator + slot, 1, RELEASE)
  end)
end

-- Makes the producer load a slot's partial sums into the ring, after all of
-- them have been stored.
function Parts:fetch(pipe, write, slot)
  local turn = self.work.turns.iterator + slot
  cute.loop(function()
    return cute.ne(cute.arch.load(turn, nil, ACQUIRE), self.o.consumers)
  end, function() end)
  cute.arch.store(turn, 0, RELAXED)
  -- A proxy fence is needed, because threads wrote the sums, and bulk copies
  -- (the async proxy) read them.
  cute.arch.fence_proxy "async.global"
  for first in cute.range(0, self.pieces, self.room) do
    pipe:producer_acquire(write, nil, self.room * self.threads * 16)
    local how = {mbar_ptr = pipe:producer_get_barrier(write)}
    self:of_stage(first, function(part, piece, n)
      local from, to = cpasync.group_bulk_copy_modes(
        self:sums(slot, piece, n), self:staged(part, write.index, n))
      cute.copy(self.load, from, to, how)
    end)
    write:advance()
  end
end

-- Adds a slot's partial sums to the consumers' accumulators.
function Parts:add(pipe, read, sums)
  local tid = cute.arch.thread_idx()
  for first = 0, self.pieces - 1, self.room do
    pipe:consumer_wait(read)
    self:of_stage(first, function(part, piece, count)
      local staged = self:staged(part, read.index, count)
      for i = 0, count - 1 do
        local got = cute.make_rmem_tensor({4}, self.o.acc)
        cute.autovec_copy(staged(_, tid, i), got)
        for e = 0, 3 do
          local at = (piece + i) * 4 + e
          sums[at] = sums[at] + got[e]
        end
      end
    end)
    -- A proxy fence is needed, because threads read the stage, and bulk copies
    -- (the async proxy) fill it again.
    cute.arch.fence_view_async_shared()
    cute.arch.sync_warp()
    pipe:consumer_release(read)
    read:advance()
  end
end

return make_parts
-- SPDX-License-Identifier: MIT
