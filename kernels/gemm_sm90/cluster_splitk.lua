--- Divides K among the blocks of a cluster in kernels/gemm_sm90 (split = 2, 3,
-- ...). Each block multiplies its part of K for the whole tile. Then block r
-- adds up the r-th part of the tile's columns: the other blocks send their
-- accumulators of these columns to block r.
local cute = require "cute"

local WARPGROUP = 128

local cluster_splitk = {}

-- Returns the number of accumulators that a block receives from each of the
-- other blocks.
local function part_of(o) return o.tile[1] * o.tile[2] // o.split end

--- Returns the bytes of shared memory for the accumulators of other blocks. The
-- result is 0 if one block multiplies all of K.
function cluster_splitk.bytes(o)
  return (o.split - 1) * part_of(o) * o.acc.bits // 8
end

--- Makes the mailbox of a block: memory for the accumulators of the other
-- blocks, and the mbarrier that counts their bytes.
---@param maker any true in the thread that initializes the mbarrier
function cluster_splitk.mail(o, maker)
  local sums = cute.arch.alloc_smem(o.acc, (o.split - 1) * part_of(o), 16)
  local came = cute.arch.alloc_smem(cute.i64, 1)
  cute.when(maker, function()
    cute.arch.mbarrier_init(came, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.mbarrier_arrive_and_expect_tx(came, cluster_splitk.bytes(o))
  end)
  return {sums = sums, came = came}
end

--- Divides k_tiles tiles along K among the blocks. Returns the first tile of
-- the block of this rank, and the number of its tiles.
function cluster_splitk.range(o, k_tiles, rank)
  local first = k_tiles * rank // o.split
  return first, k_tiles * (rank + 1) // o.split - first
end

--- Returns the sums of all parts of K for the columns of the block of this
-- rank. The terms are added in this order: the block's own part, then the parts
-- of the blocks with the next ranks, cyclically.
function cluster_splitk.exchange(o, mail, acc, rank)
  local tid, threads = cute.arch.thread_idx(), o.consumers * WARPGROUP
  -- `all` is the number of accumulators that a thread has for each 64 rows.
  local all = o.tile[2] * 64 // WARPGROUP
  local n = all // o.split
  local own = cute.make_rmem_tensor({n, o.rows // 64}, o.acc)
  -- Calls f(i, v, offset) for each four accumulators of one part. `offset` is
  -- their position in the mailbox, in which each of the other blocks has a
  -- slot. i is the index of the 64 rows, and v that of the first of the four.
  local function each(slot, f)
    for i = 0, o.rows // 64 - 1 do
      for v = 0, n - 1, 4 do
        f(i, v, slot * part_of(o) + ((i * n + v) // 4 * threads + tid) * 4)
      end
    end
  end
  for to = 0, o.split - 1 do
    local function four(i, v)
      local list = {}
      for e = 0, 3 do list[e + 1] = acc[i * all + to * n + v + e] end
      return list
    end
    cute.when(cute.eq(rank, to), function()
      each(0, function(i, v)
        for e, x in ipairs(four(i, v)) do own[{v + e - 1, i}] = x end
      end)
    end, function()
      local slot = (rank + (o.split - 1 - to)) % o.split
      each(slot, function(i, v, offset)
        cute.arch.store_async_dsmem(mail.sums + offset, four(i, v), mail.came,
                                    to)
      end)
    end)
  end
  cute.arch.mbarrier_wait(mail.came, 0)
  for slot = 0, o.split - 2 do
    each(slot, function(i, v, offset)
      local got = cute.make_rmem_tensor({4}, o.acc)
      cute.autovec_copy(cute.make_tensor(mail.sums + offset,
                                         cute.make_layout(4)), got)
      for e = 0, 3 do own[{v + e, i}] = own[{v + e, i}] + got[e] end
    end)
  end
  return own
end

return cluster_splitk
-- SPDX-License-Identifier: MIT
