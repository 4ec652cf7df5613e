--- Products with weights of 4 bits (kernels/gemm_int4).
local scales = require "cute.ops.scales"
local prepared = require "cute.ops.family.prepared"
local blocks = require "cute.ops.blocks"
local cute = require "cute"
local gemm_int4 = require "kernels.gemm_int4"
local types = require "cute.ops.family.types"

local int4 = {name = "gemm_int4",
  why = "4-bit weights are converted in registers for tensor cores"}

function int4.takes(p)
  if p.b ~= cute.Int4 then return false
  elseif p.a ~= cute.bf16 and p.a ~= cute.f16 then
    return ("gemm_int4 needs A of bf16 or f16, not %s"):format(p.a)
  elseif p.batches > 1 or p.ragged then return "gemm_int4 does not support "
    .. "batches"
  elseif p.gated and p.n % 32 ~= 0 then
    return ("with gated = true gemm_int4 needs N to be a multiple of 16, but "
      .. "it is %d"):format(p.n // 2)
  elseif p.A.stride[2] ~= 1 then
    return ("gemm_int4 needs contiguous rows of A, but A is "
      .. "%s"):format(p.A.layout)
  end
  if p.scale_a == "blocks" then
    return "gemm_int4 does not support scale_a with factors for blocks of K"
  elseif p.scale_b ~= "blocks" and p.scale_b ~= "rows" then
    return "gemm_int4 needs scale_b, with one factor for each column or for "
      .. "each group of K"
  end
  return types.too_old(p)
end

-- With batch_invariant, the kernel is made for this number of rows, because
-- results must not depend on the actual number of rows.
local INT4_ROWS = 16

-- Weights of at least this many bytes are read before the previous launch ends.
-- If weights are smaller, their loads coincide with the previous launch's
-- stores of sums, and delay these stores.
local AHEAD = 8 << 20

function int4.list(p)
  local o = {n = p.n, k = p.k, m = p.batch_invariant and INT4_ROWS or p.m,
             zeros = p.zeros, arch = p.arch, gated = p.gated,
             cluster = p.sm >= 90,
             group = p.scale_b == "blocks" and p.group or nil}
  local plan = gemm_int4(o).plan
  o.ahead = p.constant and p.sm >= 90 and p.n * p.k // 2 >= AHEAD or nil
  return {{family = "gemm_int4", tile = plan.tile, stages = plan.stages,
           split = plan.splits, swap = true, options = o,
           ns = blocks.memory(p) + 3000}}
end

function int4.order(_, o)
  return ("16 products at once, by warps that share K as suits %d rows"):format(
    o.m)
end

function int4.make(p, c)
  return prepared.join(p, gemm_int4(c.options),
    function(A, _, call)
      local o = call.o
      return {A, call.B.packed, scales.turned(p, o.scale_b),
              o.zeros and scales.turned(p, o.zeros)}
    end)
end

return int4
-- SPDX-License-Identifier: MIT
