-- Fault: five warps use a named barrier that counts four.
-- expect: cutelua: simulator: kernel sums: 1 fault [kernel-fault]
-- expect: spec/faults/barrier-mismatch/too_few_counted.lua:26 in main chunk
-- expect: too_few_counted.lua:21: nothing orders this arrival at barrier 1
--   after the barrier's previous phase: that phase may count it instead of
--   another arrival [barrier-mismatch]
-- expect: the other: the same line
-- expect: at least 160 threads arrive at barrier 1, which counts 128: name the
--   number of all of them, or give each role, such as producers, a barrier of
--   its own
-- expect: 3 more may follow from it
local cute = require "cute"
local arch = cute.arch

local FOUR, FIVE = 128, 160

local k = cute.kernel("sums", function(X)
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(FIVE))
  local tid = arch.thread_idx()
  s[tid] = X[tid]
  arch.barrier {barrier_id = 1, number_of_threads = FOUR}  -- wrong
  -- mend: arch.barrier {barrier_id = 1, number_of_threads = FIVE}
  X[tid] = s[tid] + s[(tid + 32) % FIVE]
end)

k(cute.zeros({FIVE}, cute.f32)):launch {grid = 1, block = FIVE,
                                        device = "sim:sm_90a", seed = 1}
-- SPDX-License-Identifier: MIT
