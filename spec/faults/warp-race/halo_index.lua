-- Thread 0 stores two elements beyond those of the warp. Fault: the index of
-- the first one is too small by 1, so that thread 31 stores there, too.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/warp-race/halo_index.lua:28 in main chunk
-- expect: halo_index.lua:20: write after a write by another lane of the warp
--   with no __syncwarp in between: element 32 of shared tensor 's' [warp-race]
-- expect: first access: halo_index.lua:18, thread 31
-- expect: both lines store to this element: is an index wrong? If both stores
--   are meant, put cute.arch.sync_warp() between the two lines, outside of the
--   branch
local cute = require "cute"
local Y = cute.zeros({32}, cute.i32)
local k = cute.kernel("k", function(y)
  local s = cute.make_smem_tensor(cute.i32, {35})
  local t = cute.arch.thread_idx()

  s[0] = 0
  s[t + 1] = t
  cute.when(t:eq(0), function()
    s[32] = -1  -- wrong
    -- mend: s[33] = -1
    s[34] = -2
  end)
  cute.arch.sync_threads()
  y[t] = s[t + 1] + s[33] + s[34]
end)

k(Y):launch {grid = 1, block = 32, device = "sim"}
-- SPDX-License-Identifier: MIT
