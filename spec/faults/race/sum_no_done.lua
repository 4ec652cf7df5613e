-- Sums the values of a block as a tree. Fault: no barrier precedes the last
-- read.
-- expect: cutelua: simulator: kernel sum: 1 fault [kernel-fault]
-- expect: spec/faults/race/sum_no_done.lua:35 in main chunk
-- expect: sum_no_done.lua:33: read of an element that another warp writes, with
--   no barrier between the two lines: element 0 of shared tensor 's' [race]
-- expect: first access: sum_no_done.lua:28, thread 0
-- expect: put sync_threads() between the two lines, outside of the branch
local cute = require "cute"
local arch, _ = cute.arch, cute._

local X, Y = cute.zeros({128}, cute.f32), cute.zeros({1}, cute.f32)
local k = cute.kernel("sum", function(x, y)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(128))
  s[tid] = x[tid]
  arch.sync_threads()
  for _, n in ipairs {64, 32} do
    cute.when(tid:lt(n), function()
      s[tid] = s[tid] + s[tid + n]
    end)
    arch.sync_threads()
  end
  cute.when(tid:lt(32), function()
    for _, n in ipairs {16, 8, 4, 2, 1} do
      local v = s[tid] + s[tid + n]
      arch.sync_warp()
      s[tid] = v
      arch.sync_warp()
    end
  end)
  -- mend: arch.sync_threads()
  cute.when(tid:eq(127), function() y[0] = s[0] end)
end)
k(X, Y):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
