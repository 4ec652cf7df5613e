--- Products by kernels/gemm_sm100 whose operands are repacked first.
return require "cute.ops.family.repack"("moved_sm100",
  require "cute.ops.family.sm100",
  "Blackwell tensor cores, after operands are repacked for TMA")
-- SPDX-License-Identifier: MIT
