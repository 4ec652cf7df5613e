-- The example of the error kind `bad-ptx` in docs/errors.md.
-- expect: cutelua: line 7: 'add.rna.f32' is not modelled: modifier .rna
--   [bad-ptx]
local cute = require "cute"

local op = "add.rna.f32"     -- add has no .rna  -- wrong
-- mend: local op = "add.rn.f32"
local text = ([[
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .f32 x;
  mov.f32 x, 0f3F800000;
  OP x, x, x;
  ret;
}
]]):gsub("OP", op)
local out = cute.zeros({1}, cute.f32)
cute.ptx(text):kernel "k"(out):trace {block = 32}
