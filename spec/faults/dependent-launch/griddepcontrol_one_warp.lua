-- Fault: only the loading warp waits for the preceding launch.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/dependent-launch/griddepcontrol_one_warp.lua:24 in main
--   chunk
-- expect: griddepcontrol_one_warp.lua:22: read of memory that the previous
--   launch writes, with no griddepcontrol_wait() in between: element 32 of
--   global tensor 'x' [dependent-launch]
-- expect: call cute.arch.griddepcontrol_wait() before the first access to
--   memory that the launches share
local cute = require "cute"
local arch = cute.arch
local when = cute.when

local x, y = cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32)
cute.kernel("front", function(a)
  a[arch.thread_idx()] = 1
end)(x):launch {grid = 1, block = 64, device = "sim:sm_90a"}
local k = cute.kernel("faulty", function(x, y)
  local t = arch.thread_idx()
  when(arch.warp_idx():eq(0), arch.griddepcontrol_wait)
  -- mend: arch.sync_threads()
  y[t] = x[t]
end)
k(x, y):launch {grid = 1, block = 64, pdl = true,
  device = "sim:sm_90a", seed = 1}
