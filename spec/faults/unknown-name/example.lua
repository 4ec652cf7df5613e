-- The example of the error kind `unknown-name` in docs/errors.md.
-- expect: cutelua: cute.make_tiled_mma: no MMA atom
--   'SM80_16x8x16_F32BF16BF16F32_NT' [unknown-name]
-- expect: spec/faults/unknown-name/example.lua:9 in main chunk
-- expect: nearest: SM80_16x8x16_F32BF16BF16F32_TN,
--   SM80_16x8x8_F32BF16BF16F32_TN, SM80_16x8x16_F32F16F16F32_TN
local cute = require "cute"

cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_NT", {2, 2, 1})  -- wrong
-- mend: cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", {2, 2, 1})
