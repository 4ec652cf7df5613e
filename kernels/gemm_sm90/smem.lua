--- Shared memory of kernels/gemm_sm90 and kernels/gemm_sm100: the layouts of
-- operand stages and result buffers, and their sizes.
local core = require "cute.core"
local cute = require "cute"
local cluster_splitk = require "kernels.gemm_sm90.cluster_splitk"

local warpgroup = cute.nvgpu.warpgroup

local smem = {MOST = 227 * 1024}  -- most bytes of shared memory that a block
                                  -- can have

--- Returns the bytes available to each of `blocks` blocks on a multiprocessor.
-- The system reserves 1 KiB for each block.
function smem.share(blocks)
  return (smem.MOST + 1024) // blocks // 1024 * 1024 - 1024
end

--- Returns a tensor or layout of 4-bit elements as one of bytes, because TMA
-- moves bytes. Elements of 8 bits or more are unchanged. dtype: the type of the
-- elements.
function smem.bytes(x, dtype)
  if dtype.bits >= 8 then return x end
  if core.typename(x) == "layout" then
    return cute.recast_layout(8, dtype.bits, x)
  end
  return cute.recast_tensor(x, cute.u8)
end

--- Returns the number of blocks that fit on a multiprocessor if each needs
-- `bytes` bytes.
function smem.blocks(bytes)
  return (smem.MOST + 1024) // (bytes + 1024)
end

-- Maps the size, in bits, of a layout's contiguous runs to the name of a
-- swizzle.
local KINDS = {[2048] = "SW128", [1024] = "SW128", [512] = "SW64",
               [256] = "SW32", [128] = "INTER"}

--- Returns the layout of an operand's stages, (rows,K,stage), with swizzled
-- rows of 128 bytes.
function smem.stages(o, rows, dtype, major)
  if major ~= "k" then
    local run = core.gcd(rows, 1024 // dtype.bits)
    local atom = warpgroup.make_smem_layout_atom(
      "MN_" .. KINDS[run * dtype.bits], dtype)
    return cute.tile_to_shape(atom, {rows, o.tile[3], o.stages}, {1, 0, 2})
  end
  local span = 1024 // dtype.bits
  local kind = o.tile[3] % span == 0 and "K_SW128" or "K_SW64"
  local atom = warpgroup.make_smem_layout_atom(kind, dtype)
  return cute.tile_to_shape(atom, {rows, o.tile[3], o.stages}, {0, 1, 2})
end

--- Returns the layout of the buffers of all consumers, `count` for each:
-- (64,columns,buffer,consumer). A buffer holds a part of a tile of D, or of a
-- matrix with D's extents. Buffers whose rows cannot be swizzled are ordered
-- like D.
function smem.parts(o, dtype, major, count)
  local bits, all = dtype.bits, o.epi[1] * o.epi[2]
  local run = o.epi[2] * bits
  if major == "n" and run % 1024 ~= 0 and run & (run - 1) ~= 0 then
    return cute.make_layout({o.epi[1], o.epi[2], count, o.consumers},
                            {o.epi[2], 1, all, all * count})
  end
  local kind
  if major == "m" then kind = "MN_" .. KINDS[64 * bits]
  else kind = "K_" .. KINDS[math.min(o.epi[2] * bits & -o.epi[2] * bits, 1024)]
  end
  local atom = warpgroup.make_smem_layout_atom(kind, dtype)
  return cute.tile_to_shape(atom, {o.epi[1], o.epi[2], count, o.consumers},
                            {0, 1, 2, 3})
end

--- Returns two numbers: the bytes of shared memory that the options need
-- without the stages, and the bytes of a stage.
function smem.room(o)
  local bits = o.epi_stages * o.d_dtype.bits
  for _, s in ipairs(o.sources or {}) do
    bits = bits + o.source_stages * s.dtype.bits
  end
  local buffers = o.epi[1] * o.epi[2] * o.consumers * bits // 8
  local stage = (o.tile[1] * o.a_dtype.bits + o.tile[2] * o.b_dtype.bits)
    * o.tile[3] // 8 + (o.factor_bytes or 0)
  return 1024 + buffers + cluster_splitk.bytes(o), stage
end

return smem
-- SPDX-License-Identifier: MIT
