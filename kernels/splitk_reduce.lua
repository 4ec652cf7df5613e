--- Adds the partial sums of several blocks. The block that arrives last adds
-- them.
--
-- Each block stores its fragment in `work` and increments a count in `turns`.
-- The last block adds the fragments in the order of z, so results do not depend
-- on which block was last. The last block also resets the count to 0 for the
-- next launch.
local cute = require "cute"
local _ = cute._

-- A thread loads at most SOME registers of a block's part at once, of UNROLL
-- blocks. If a thread loaded all parts at once, registers would spill.
local SOME, UNROLL = 32, 4

-- Returns a view of the threads' fragments in `work`: (V, threads, splits,
-- tiles). A fragment is stored in pieces of 16 bytes; the pieces of
-- neighbouring threads are adjacent.
local function all_sums(work, V, threads, splits)
  local n = 128 // work.element_type.bits
  return cute.make_tensor(work.iterator, cute.make_layout(
    {{n, V // n}, threads, splits, cute.size(work) // (V * threads * splits)},
    {{1, n * threads}, n, V * threads, V * threads * splits}))
end

--- Adds up the fragments that the blocks of tile o.at have computed. In the
-- block that arrives last, stores the sums in `acc` and returns true.
---@param acc any a fragment
---@param o table {work: any, turns: any, at: any, splits: integer,
-- threads: integer, of: any?, few: boolean?}
-- work: elements of acc's type, for all fragments of all blocks; turns: i32,
-- one for each tile; threads: the number of threads with fragments, which are
-- the first threads of the block; of: whether this thread has a fragment, nil
-- if all threads have one; few: loads less at once, for kernels whose
-- accumulators leave few registers
return function(acc, o)
  local tid, z = cute.arch.thread_idx(), select(3, cute.arch.block_idx())
  local sums = cute.coalesce(acc)
  local W = all_sums(o.work, cute.size(acc), o.threads, o.splits)
  local at, turns = o.at, o.turns
  local function mine(f) if o.of then cute.when(o.of, f) else f() end end
  mine(function() cute.autovec_copy(sums, W(_, tid, z, at)) end)
  local turn = cute.make_smem_tensor(cute.i32, cute.make_layout(1))
  cute.arch.sync_threads()
  -- The atomic has the order acq_rel, so that a block that sees the count also
  -- sees the sums.
  cute.when(cute.eq(tid, 0), function()
    turn[0] = cute.arch.atomic_add(turns.iterator + at, 1,
                                   {sem = "acq_rel", scope = "gpu"})
  end)
  cute.arch.sync_threads()
  local last = cute.eq(turn[0], o.splits - 1)
  cute.when(last, function()
    mine(function()
      sums:fill(0)
      local n = cute.size(sums)
      local size = o.few and n // 4 or SOME * 32 // sums.element_type.bits
      if n % size ~= 0 then size = n end
      -- The compiler would replace a loop of at most UNROLL iterations by
      -- straight code, and load all parts at once.
      local unroll = o.few and o.splits <= UNROLL
        and math.max(o.splits // 2, 1) or UNROLL
      for i = 0, n // size - 1 do
        local function some(t) return cute.local_tile(t, {size}, {i}) end
        local sum = some(sums)
        for other in cute.range(0, o.splits, 1, {unroll = unroll}) do
          local part = cute.make_fragment_like(sum)
          cute.autovec_copy(some(W(_, tid, other, at)), part)
          sum:store(sum:load() + part:load())
        end
      end
    end)
    cute.when(cute.eq(tid, 0), function() turns[at] = 0 end)
  end)
  return last
end
-- SPDX-License-Identifier: MIT
