-- The example of the error kind `misaligned` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 2 faults [kernel-fault]
-- expect: spec/faults/misaligned/report.lua:13 in run
-- expect: report.lua:18: a value that was assumed to be divisible by 4 is 2
--   [assertion]
-- expect: report.lua:21: read of 16 bytes not aligned to its width: element 2
--   of global tensor 'mX' [misaligned]
-- expect: use a narrower copy, or pad the layout so that every vector starts at
--   a multiple of its size
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local x = cute.make_tensor(mX.iterator, cute.make_layout {1024})
  local at = cute.assume(cute.arch.thread_idx() * 2, 0, 62, 4)  -- no  -- wrong
  -- mend: local at = cute.assume(cute.arch.thread_idx() * 4, 0, 124, 4)
  local v = cute.make_rmem_tensor({4}, cute.f32)
  cute.autovec_copy(cute.local_tile(cute.domain_offset({at}, x), {4}, {0}), v)
  cute.autovec_copy(v, cute.local_tile(x, {4}, {128 + cute.arch.thread_idx()}))
end, X)
