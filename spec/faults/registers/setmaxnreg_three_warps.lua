-- Fault: one of the loader's warps skips the branch with setmaxnreg.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/registers/setmaxnreg_three_warps.lua:20 in main chunk
-- expect: setmaxnreg_three_warps.lua:16: warp 3 exited without executing the
--   setmaxnreg for 40 registers that warp 0 executed: all warps of a warpgroup
--   (0 to 3) must execute it [registers]
-- expect: all four warps of a warpgroup must execute the same setmaxnreg: put
--   it outside the branch, or branch by warpgroup (warp_idx() // 4)
local cute = require "cute"
local arch = cute.arch
local when = cute.when

local k = cute.kernel("faulty", function(y)
  when(arch.warp_idx():lt(3), function()  -- wrong
  -- mend: when(arch.warp_idx():lt(4), function()
    arch.setmaxregister_decrease(40)
  end)
  y[arch.thread_idx()] = 1
end)
k(cute.zeros({128}, cute.f32)):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
