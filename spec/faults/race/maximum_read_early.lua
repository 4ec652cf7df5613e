-- Fault: no barrier separates atomics from the read of their maximum.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/maximum_read_early.lua:26 in main chunk
-- expect: maximum_read_early.lua:24: read of an element that another warp
--   writes, with no barrier between the two lines: element 0 of shared tensor
--   's' [race]
-- expect: first access: maximum_read_early.lua:22, thread 32
-- expect: put sync_threads() between the two lines
local cute = require "cute"
local arch = cute.arch

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local k = cute.kernel("faulty", function(x, y)
  local t, s = arch.thread_idx(), smem(1, cute.i32)
  thread0(function() s[0] = -1 end)
  arch.sync_threads()
  arch.atomic_max(s.iterator, x[t])
  -- mend: arch.sync_threads()
  y[t] = x[t] - s[0]
end)
k(cute.zeros({64}, cute.i32), cute.zeros({64}, cute.i32)):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
