-- One block counts all elements in shared memory.
local cute = require "cute"
local arch = cute.arch

local histogram = cute.kernel("histogram", function(X, H, n, bins)
  local t = arch.thread_idx()
  local count = cute.make_smem_tensor(cute.i32, cute.make_layout(256))
  for b in cute.range(t, bins, 128) do count[b] = 0 end
  arch.sync_threads()
  -- wrong: arch.sync_warp()
  for i in cute.range(t, n, 128) do
    arch.atomic_add(count.iterator + X[i], 1)
    -- wrong: count[X[i]] = count[X[i]] + 1
  end
  arch.sync_threads()
  for b in cute.range(t, bins, 128) do H[b] = count[b] end
  -- wrong: for b in cute.range(t, bins - 1, 128) do H[b] = count[b] end
end)

return function(a)
  histogram(a.X, a.H, a.N, a.B):launch {grid = 1, block = 128}
end
-- SPDX-License-Identifier: MIT
