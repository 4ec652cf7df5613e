-- Fault: a pointer is recast to a type for which its address is not aligned.
-- expect: cutelua: cute.recast_ptr: the offset is not a multiple of 32 bits
--   [misaligned]
-- expect: spec/faults/misaligned/recast_pointer.lua:13 in kernel k
-- expect: ptr[f16,gmem]+1 o 1:1
-- expect: use an offset that is a multiple of 2 elements
local cute = require "cute"
local X, Y = cute.zeros({256}, cute.f16), cute.zeros({32}, cute.f32)
cute.kernel("k", function(x, y)
  local t = cute.arch.thread_idx()
  local at = x.iterator + 1  -- wrong
  -- mend: local at = x.iterator + 2
  local words = cute.make_tensor(cute.recast_ptr(at, cute.f32),
                                 cute.make_layout(32))
  y[t] = words[t]
end)(X, Y):launch {grid = 1, block = 32, device = "sim"}
