-- Fault: the number of a named barrier is a string.
-- expect: cutelua: pipeline.NamedBarrier: barrier_id must be an integer from 0
--   to 15, got "1" [bad-argument]
-- expect: spec/faults/bad-argument/barrier_id_of_text.lua:9 in kernel k
local cute = require "cute"
local P = cute.pipeline
local Y = cute.zeros({128}, cute.f32)
cute.kernel("k", function(y)
  local b = P.NamedBarrier {barrier_id = "1", num_threads = 128}  -- wrong
  -- mend: local b = P.NamedBarrier {barrier_id = 1, num_threads = 128}
  b:arrive_and_wait()
  y[cute.arch.thread_idx()] = 1.0
end)(Y):launch {grid = 1, block = 128, device = "sim", seed = 1}
