--- Functions of cute.utils.blackwell_helpers for element types and layouts of
-- the sparse operands of tcgen05.mma (sm_100a and its family).
--
-- Sparse operand A stores 2 of every 4 elements along K; for tf32, 1 of every
-- 2. All layouts count the elements of the dense A, so `sparsity` neighbouring
-- offsets along K share a stored element. E is the metadata, which says which
-- elements are stored. The element types of A and E (cute.sparse_elem) convert
-- a layout to one that counts stored elements:
--
--     local a, e = make_sparse_a_dtype(cute.f16), make_sparse_e_dtype(cute.f16)
--     local sA = cute.make_smem_tensor(a.elem_type, a:stored(layout_a), 1024)
--     local tCtE = cute.make_tensor(ptr, e:stored(layout_e))  -- bytes
--     cute.gemm(mma, acc, {tCrA, tCtE}, tCrB, acc)
local sign = require "cute.lang.signature"
local blackwell = require "cute.blackwell"
local core = require "cute.core"
local tcgen05 = require "cute.nvgpu.sm100.tcgen05"
local sparse_elem = require "cute.sparse_elem"
local tmem = require "cute.nvgpu.sm100.tmem"

local sparse = {}

local function refuse(op, text, ...)
  core.fail("bad-argument", op .. ": " .. text:format(...))
end

local function dtype_of(x) return type(x) == "string" and core[x] or x end

sparse.make_sparse_smem_layout_atom = tcgen05.make_sparse_smem_layout_atom

---------------------------------------------------------------------------
-- Element types
---------------------------------------------------------------------------

-- The number of elements of the dense A that one byte of metadata describes.
local PER_BYTE = {e2m1 = 16, f16 = 8, bf16 = 8, i8 = 8, u8 = 8, e4m3 = 8,
                  e5m2 = 8, tf32 = 4, f32 = 4}

--- Returns the element type of a sparse A. The stored elements are those of A,
-- or bytes that hold two e2m1.
---@param a_raw_dtype cute.DType
---@return cute.SparseElemType
function sparse.make_sparse_a_dtype(a_raw_dtype)
  local dtype = dtype_of(a_raw_dtype)
  if tostring(dtype) == "e2m1" then
    return sparse_elem.get_sparse_elem_type(4, 1, core.u8)
  end
  return sparse_elem.get_sparse_elem_type(2, 1, dtype)
end

--- Returns the element type of the metadata of a sparse A: bytes.
---@param a_raw_dtype cute.DType of A
---@return cute.SparseElemType
function sparse.make_sparse_e_dtype(a_raw_dtype)
  local name = tostring(dtype_of(a_raw_dtype))
  if not PER_BYTE[name] then
    refuse("make_sparse_e_dtype", "no metadata for %s", name)
  end
  return sparse_elem.get_sparse_elem_type(PER_BYTE[name], 1, core.u8)
end

-- Returns the shape ((MMA_M,MMA_K),M,K) of A's partition, in elements of the
-- dense A.
local function dense_shape(tiled_mma, m, k)
  local shape = tiled_mma:partition_shape_A {m, k // 2}
  local first = core.get(shape, 0)
  return {{core.get(first, 0), core.size(core.get(first, 1)) * 2},
          core.get(shape, 1), core.get(shape, 2)}
end

--- Returns the shared-memory layout of one CTA's part of a sparse A:
-- ((MMA_M,MMA_K),M,K,stages).
---@param tiled_mma cute.TiledMma sparse
---@param mma_tiler_mnk integer[] K counts elements of the dense A
---@param a_raw_dtype cute.DType
---@param num_stages integer
---@param sparsity? integer 2 if absent
---@return cute.Layout
function sparse.make_sparse_smem_layout_a(tiled_mma, mma_tiler_mnk, a_raw_dtype,
                                          num_stages, sparsity)
  sparsity = sparsity or 2
  local major = tiled_mma.name:match ",(%u+),%u+>$"
  local shape = dense_shape(tiled_mma, mma_tiler_mnk[1], mma_tiler_mnk[3])
  local first, extent = core.get(shape, 0), {}
  for i = 0, 1 do
    extent[i + 1] = core.size(core.get(first, i))
      * core.size(core.get(shape, i + 1))
  end
  if major == "K" then extent[2] = extent[2] // sparsity end
  local kind = blackwell.get_smem_layout_atom_ab(major, a_raw_dtype, extent)
  return blackwell.tile_to_mma_shape(
    sparse.make_sparse_smem_layout_atom(kind, a_raw_dtype, sparsity),
    {first, core.get(shape, 1), core.get(shape, 2), num_stages},
    major == "K" and {1, 2, 3} or {2, 1, 3})
end

---------------------------------------------------------------------------
-- Metadata
---------------------------------------------------------------------------

-- The smallest tiles of metadata, (rows,K). KIND below maps A's type to one of
-- these names.
local E = {
  e2m1 = "(128,256):(256,1)",
  byte = "(128,128):(128,1)",
  half = "((8,2,8),(16,2,4)):((128,16,2048),(1,1024,32))",
  single = "((8,2,8),(8,2,4)):((64,8,1024),(1,512,16))",
}
local KIND = {e2m1 = "e2m1", i8 = "byte", u8 = "byte", e4m3 = "byte",
              e5m2 = "byte", f16 = "half", bf16 = "half", f32 = "single",
              tf32 = "single"}

--- Returns the smallest tile of metadata, (rows,K).
---@param a_raw_dtype cute.DType of A
---@return cute.Layout
function sparse.make_tensor_e_atom_layout(a_raw_dtype)
  local name = tostring(dtype_of(a_raw_dtype))
  if not KIND[name] then
    refuse("make_tensor_e_atom_layout", "no metadata for %s", name)
  end
  return core.layout(E[KIND[name]])
end

--- Returns the layout of metadata in global memory: ((tile,tiles),(tile,tiles),
-- L), rounded up to whole tiles.
---@param problem_shape_mnkl integer[] {M, N, K, L}
---@param a_raw_dtype cute.DType
---@return cute.Layout
function sparse.make_sparse_gmem_layout_e(problem_shape_mnkl, a_raw_dtype)
  local m, _, k, l = table.unpack(problem_shape_mnkl)
  local tile = sparse.make_tensor_e_atom_layout(a_raw_dtype)
  local tile_m, tile_k = core.size(tile, 0), core.size(tile, 1)
  m, k = core.round_up(m, tile_m), core.round_up(k, tile_k)
  return core.make_layout(
    core.make_layout(core.get(tile, 0),
                     core.make_layout(m // tile_m, core.cosize(tile))),
    core.make_layout(core.get(tile, 1),
                     core.make_layout(k // tile_k, m * tile_k)),
    core.make_layout(l, m * k))
end

--- Returns the shared-memory layout of one CTA's metadata:
-- ((MMA_M,MMA_K),M,K,stages). Rounds the rows and the elements of K up to whole
-- tiles of make_tensor_e_atom_layout, so M is 2 for an MMA of 64 rows.
---@param tiled_mma cute.TiledMma sparse
---@param mma_tiler_e_mnk integer[]
---@param a_raw_dtype cute.DType
---@param num_stages integer
---@return cute.Layout
function sparse.make_sparse_smem_layout_e(tiled_mma, mma_tiler_e_mnk,
                                          a_raw_dtype, num_stages)
  local shape = dense_shape(tiled_mma, mma_tiler_e_mnk[1], mma_tiler_e_mnk[3])
  local tile = sparse.make_tensor_e_atom_layout(a_raw_dtype)
  local first, times = core.get(shape, 0), {}
  for i = 0, 1 do
    local own = core.size(core.get(first, i))
    times[i + 1] = core.round_up(own * core.size(core.get(shape, i + 1)),
                                 core.size(tile, i)) // own
  end
  return blackwell.tile_to_mma_shape(tile,
    {first, times[1], times[2], num_stages}, {1, 2, 3})
end

--- Returns the layout of one CTA's metadata in tensor memory. An offset counts
-- elements of the dense A. Each element has 2 bits of metadata for tf32, half a
-- bit for e2m1, and 1 bit for other types. The layouts are those of CuTe C++.
-- The Python DSL 4.8.1 fails for tf32. For e2m1, the lanes of the DSL's layout
-- are 2^21 elements apart, which is half a lane; here the lanes are 2^22
-- elements apart.
---@param tmem_shape table the shape ((128,MMA_K),M,K...) of A's partition
---@param a_raw_dtype cute.DType
---@return cute.Layout
function sparse.make_sparse_tmem_layout_e(tmem_shape, a_raw_dtype)
  local bits = dtype_of(a_raw_dtype).bits
  local k = core.size(core.get(core.get(tmem_shape, 0), 1))
  local whole = ({[32] = 16, [16] = 32, [8] = 64, [4] = 128})[bits]
  if k ~= whole then
    refuse("make_sparse_tmem_layout_e", "K of an instruction is %d; %s needs "
      .. "%s", k, tostring(dtype_of(a_raw_dtype)), core.show(whole))
  end
  return tmem.metadata(tmem_shape, bits)
end

return sign.public("utils.blackwell_helpers.", sparse, [[
  make_sparse_smem_layout_a(tiled_mma: tiled, mma_tiler_mnk: table,
    a_raw_dtype: dtype|string, num_stages: integer, sparsity?: integer)
  make_sparse_a_dtype(a_raw_dtype: dtype|string)
  make_sparse_e_dtype(a_raw_dtype: dtype|string)
  make_tensor_e_atom_layout(a_raw_dtype: dtype|string)
  make_sparse_gmem_layout_e(problem_shape_mnkl: table,
    a_raw_dtype: dtype|string)
  make_sparse_smem_layout_e(tiled_mma: tiled, mma_tiler_e_mnk: table,
    a_raw_dtype: dtype|string, num_stages: integer)
  make_sparse_tmem_layout_e(tmem_shape: table, a_raw_dtype: dtype|string)
]])
-- SPDX-License-Identifier: MIT
