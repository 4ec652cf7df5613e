-- Fault: two reductions use the same buffer, with no barrier in between.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/second_reduction.lua:29 in main chunk
-- expect: second_reduction.lua:24: write after a read by another warp with no
--   barrier in between: element 0 of shared tensor 's' [race]
-- expect: first access: second_reduction.lua:21, thread 32
-- expect: put sync_threads() between the two lines, outside of the branch
local cute = require "cute"
local arch = cute.arch
local when = cute.when

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local k = cute.kernel("faulty", function(x, y)
  local t, w, s = arch.thread_idx(), arch.warp_idx(), smem(2)
  local v = x[t]
  when(arch.lane_idx():eq(0), function() s[w] = v end)
  arch.sync_threads()
  local top = cute.max(s[0], s[1])
  -- mend: arch.sync_threads()
  when(arch.lane_idx():eq(0), function()
    s[w] = v - top
  end)
  arch.sync_threads()
  y[t] = s[0] + s[1]
end)
k(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32)):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
