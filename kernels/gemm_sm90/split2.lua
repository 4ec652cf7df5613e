--- K in two halves in kernels/gemm_sm90 (split = 2): two blocks of a cluster
-- exchange halves of their accumulators.
local cute = require "cute"

local WARPGROUP = 128

local split2 = {}

--- Makes the mailbox of one block of a pair: memory for half of a tile's
-- accumulators from the other block, and the mbarrier that counts their bytes.
---@param maker any true in the thread that initializes the mbarrier
function split2.mail(o, maker)
  local sums = o.tile[1] * o.tile[2] // 2
  local mail = cute.arch.alloc_smem(o.acc, sums, 16)
  local came = cute.arch.alloc_smem(cute.i64, 1)
  cute.when(maker, function()
    cute.arch.mbarrier_init(came, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.mbarrier_arrive_and_expect_tx(came, sums * o.acc.bits // 8)
  end)
  return {sums = mail, came = came}
end

--- Returns the sums of both halves of K for this block's half of the columns.
function split2.exchange(o, mail, acc, half)
  local tid, threads = cute.arch.thread_idx(), o.consumers * WARPGROUP
  -- number of accumulators that a thread has for each 64 rows
  local all = o.tile[2] * 64 // WARPGROUP
  local n = all // 2
  local own = cute.make_rmem_tensor({n, o.rows // 64}, o.acc)
  local first = cute.eq(half, 0)
  local function place(i, v) return ((i * n + v) // 4 * threads + tid) * 4 end
  for i = 0, o.rows // 64 - 1 do
    for v = 0, n - 1, 4 do
      local send = {}
      for e = 0, 3 do
        local low, high = acc[i * all + v + e], acc[i * all + n + v + e]
        send[e + 1] = cute.where(first, high, low)
        own[{v + e, i}] = cute.where(first, low, high)
      end
      cute.arch.store_async_dsmem(mail.sums + place(i, v), send, mail.came,
                                  1 - half)
    end
  end
  cute.arch.mbarrier_wait(mail.came, 0)
  for i = 0, o.rows // 64 - 1 do
    for v = 0, n - 1, 4 do
      local got = cute.make_rmem_tensor({4}, o.acc)
      cute.autovec_copy(cute.make_tensor(mail.sums + place(i, v),
                                         cute.make_layout(4)), got)
      for e = 0, 3 do own[{v + e, i}] = own[{v + e, i}] + got[e] end
    end
  end
  return own
end

return split2
-- SPDX-License-Identifier: MIT
