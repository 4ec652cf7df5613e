--- Products by kernels/gemm_sm90 whose operands are repacked first.
return require "cute.ops.family.repack"("moved",
  require "cute.ops.family.sm90",
  "Hopper tensor cores, after operands are repacked for TMA and wgmma")
-- SPDX-License-Identifier: MIT
