-- Fault: two warpgroups use a named barrier of the same number.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/barrier-mismatch/shared_barrier_number.lua:35 in main
--   chunk
-- expect: shared_barrier_number.lua:26: nothing orders this arrival at barrier
--   1 after the barrier's previous phase: that phase may count it instead of
--   another arrival [barrier-mismatch]
-- expect: the other: shared_barrier_number.lua:30
-- expect: at least 160 threads arrive at barrier 1, which counts 128: name the
--   number of all of them, or give each role, such as producers, a barrier of
--   its own
-- expect: 7 more may follow from it
local cute = require "cute"
local arch = cute.arch

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local k = cute.kernel("faulty", function(y)
  local t = arch.thread_idx()
  local s = smem(256)
  local group = t // 128
  for k in cute.range(3) do
    s[t] = t:to(cute.f32) + k:to(cute.f32)
    arch.barrier {barrier_id = 1,  -- wrong
    -- mend: arch.barrier {barrier_id = group + 1,
                  number_of_threads = 128}
    y[t] = s[group * 128 + (127 - t % 128)]
    arch.barrier {barrier_id = 1,  -- wrong
    -- mend: arch.barrier {barrier_id = group + 1,
                  number_of_threads = 128}
  end
end)
k(cute.zeros({256}, cute.f32)):launch {grid = 1, block = 256,
  device = "sim:sm_90a", seed = 1}
