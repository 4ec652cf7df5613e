-- The example of the error kind `misaligned` in docs/errors.md.
-- expect: cutelua: cute.copy: UniversalCopy<uint128_t> needs addresses that are
--   multiples of 16 bytes, but the destination is only known to be aligned to 4
--   [misaligned]
-- expect: spec/faults/misaligned/example.lua:25 in kernel k
-- expect: source ptr[f32,gmem]+32 o (4):(1)
-- expect: destination ptr[f32,smem]+7 o (4):(1)
-- expect: make the stride or the offset a multiple of 4 elements, declare more
--   alignment (assumed_align, a stride's divisibility), or use a copy atom of
--   32 bits
-- expect: hint: use a narrower copy, or pad the layout so that every vector
--   starts at a multiple of its size
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  -- rows of 7 f32 are 28 bytes: not a multiple of 16  -- wrong
  local s = cute.make_smem_tensor(cute.f32, cute.layout "(4,4):(7,1)")  -- wrong
  -- mend: local s = cute.make_smem_tensor(cute.f32, cute.layout "(4,4):(8,1)")
  local atom = cute.make_copy_atom("UniversalCopy", cute.f32, 128)
  local row = cute.local_tile(mX, {1, 4}, {1, 0})
  cute.copy(atom, row(0, cute._), s(1, cute._))
end, X)
