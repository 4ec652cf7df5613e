-- Copies a matrix with one block for each of its rows. Fault: the input is
-- passed transposed.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: transposed.lua:13: read outside global tensor 'A': coordinate …
--   of (32,24) [out-of-bounds]
-- expect: the coordinates of this line reach 24 x 32, but 'A' is 32 x 24: are
--   the two coordinates exchanged, or is the tensor passed transposed?
local cute = require "cute"
local A, B = cute.zeros({32, 24}, cute.f32), cute.zeros({24, 32}, cute.f32)
local k = cute.kernel("k", function(A, B)
  local row = cute.arch.block_idx()
  for i in cute.range(cute.arch.thread_idx(), 32, 16) do
    B[{row, i}] = A[{row, i}]
  end
end)
-- mend: A = cute.zeros({24, 32}, cute.f32)
k(A, B):launch {grid = 24, block = 16, device = "sim", seed = 1}
