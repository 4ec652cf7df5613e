-- The example of the error kind `kernel-fault` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/kernel-fault/example.lua:12 in run
-- expect: example.lua:19: read of an element that another lane of the warp
--   writes, with no __syncwarp between the two lines: element 31 of shared
--   tensor 's' [warp-race]
-- expect: first access: example.lua:18, thread 31
-- expect: put cute.arch.sync_warp() between the two lines
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local tid = cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {32})
  s[tid] = mX[{tid, 0}]
  mX[{tid, 1}] = s[31 - tid]      -- nothing waits for the other threads  -- wrong
  -- mend: cute.arch.sync_threads()
  -- mend: mX[{tid, 1}] = s[31 - tid]
end, X)
