--- cute.nvgpu.sparse: matrices with the 2:4 structured sparsity of tensor
-- cores. Of every four adjacent elements of a row at most two are stored (tf32:
-- one of two). An MMA with a sparse A reads (M,K/2) stored elements and (M,W)
-- words of metadata. A word has 16 bits and describes four groups of a row.
--
--     local values, metadata = sparse.compress(A)
--
-- This call compresses the whole matrix A. The following kernel code copies the
-- metadata and multiplies:
--
--     local tCrA = mma:make_fragment_A(thr:partition_A(sA))  -- the values
--     local tCgE = thr:partition_E(gE)                       -- the metadata
--     local tCrE = mma:make_fragment_E(tCgE)
--     cute.autovec_copy(tCgE, tCrE)
--     cute.gemm(mma, acc, {tCrA, tCrE}, tCrB, acc)
--
-- The second mode of B has the extent K, that of A's stored values K/2, and
-- that of the metadata W.
local core = require "cute.core"
local sign = require "cute.lang.signature"

local sparse = {}

-- Returns the positions in a group of the elements that are stored: the nonzero
-- elements and, if they are too few, the first zeros.
local function kept(A, row, first, group)
  local half, list = group // 2, {}
  for i = 0, group - 1 do
    if A[{row, first + i}] ~= 0 then list[#list + 1] = i end
  end
  if #list > half then
    core.fail("bad-argument", ("compress: elements %d to %d of row %d: %d of "
      .. "%d are not 0, but at most %d may be "
      .. "nonzero"):format(first, first + group - 1,
      row, #list, group, half))
  end
  for i = 0, group - 1 do
    local at = 1
    while list[at] and list[at] < i do at = at + 1 end
    if #list < half and list[at] ~= i then table.insert(list, at, i) end
  end
  return list
end

--- Compresses a matrix in host memory to its stored values and their positions.
---@param A cute.Tensor (M,K) of 8-bit or 16-bit elements, at most two nonzero
-- in each four neighbours along K; or of f32 or tf32, one of two
---@return cute.Tensor values (M,K/2) of A's type
---@return cute.Tensor metadata u16: (M,K/16), for f32 and tf32 (M,K/8)
function sparse.compress(A)
  local bits = A.element_type.bits
  local group = bits == 32 and 2 or 4
  local rows, depth = A.shape[1], A.shape[2]
  if math.type(rows) ~= "integer" or math.type(depth) ~= "integer"
    or A.shape[3] then
    core.fail("shape-mismatch", ("compress: a matrix (M,K) is needed, got %s")
      :format(A))
  end
  if bits ~= 8 and bits ~= 16 and bits ~= 32 then
    core.fail("bad-argument", ("compress: elements of %s have %d bits, not 8, "
      .. "16 or 32"):format(A, bits))
  end
  if depth % (4 * group) ~= 0 then
    core.fail("bad-argument", ("compress: rows of %d elements; for %s a "
      .. "multiple of %d is needed\n  "
      .. "%s"):format(depth, A.element_type, 4 * group,
      A))
  end
  local values = core.zeros({rows, depth // 2}, A.element_type)
  local metadata = core.zeros({rows, depth // (4 * group)}, core.u16)
  for m = 0, rows - 1 do
    for g = 0, depth // group - 1 do
      local list = kept(A, m, g * group, group)
      for i, from in ipairs(list) do
        values[{m, g * group // 2 + i - 1}] = A[{m, g * group + from}]
      end
      local i, j = list[1], list[2]
      if group == 2 then i, j = 2 * i, 2 * i + 1 end
      metadata[{m, g // 4}] = metadata[{m, g // 4}]
        | (i | j << 2) << 4 * (g % 4)
    end
  end
  return values, metadata
end

return sign.public("cute.nvgpu.sparse.", sparse, [[
  compress(A: tensor)
]])
-- SPDX-License-Identifier: MIT
