-- Sums the values of a block as a tree. Fault: the lanes of a warp write one
-- element.
-- expect: cutelua: simulator: kernel sum: 1 fault [kernel-fault]
-- expect: spec/faults/warp-race/sum_lanes_write.lua:37 in main chunk
-- expect: sum_lanes_write.lua:34: two lanes of a warp write one element with no
--   __syncwarp in between: element 3 of shared tensor 's' [warp-race]
-- expect: first access: thread 0
-- expect: let one lane write it, or use an atomic; if one write must follow the
--   other, put cute.arch.sync_warp() in between
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
  arch.sync_threads()
  cute.when(tid:lt(32), function() s[3] = tid:to(cute.f32) y[0] = s[3] end)  -- wrong
  -- mend: cute.when(tid:eq(127), function() y[0] = s[0] end)
end)
k(X, Y):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
