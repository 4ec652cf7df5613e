-- The example of the error kind `smem-budget` in docs/errors.md.
-- expect: cutelua: shared memory of 262144 bytes is over the budget of any GPU,
--   232448 bytes (227 KiB) [smem-budget]
-- expect: spec/faults/smem-budget/example.lua:16 in kernel k
-- expect: #0 bf16 (128,128,8):(1,128,16384) 262144 bytes
-- expect: total, aligned 262144 bytes
-- expect: fewer stages or a smaller tile would fit
local cute = require "cute"
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function()
  local STAGES = 8                -- 8 x 32 KiB  -- wrong
  -- mend: local STAGES = 3
  cute.make_smem_tensor(cute.bf16, cute.make_layout {128, 128, STAGES})
end)
