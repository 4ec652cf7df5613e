--- Scale factors of formats such as NVFP4 in kernels for tcgen05: their memory,
-- their loads by TMA, and their copies to tensor memory.
--
-- In global memory, the factors of 128 rows for 4 blocks of K are a chunk of
-- 512 bytes (cute.utils.tile_atom_to_shape_SF). TMA loads a chunk as 256 words.
-- tcgen05.cp copies it to 4 columns of each warp's 32 lanes. The tensor cores
-- execute the copy before MMAs that the same thread issues later. Each stage
-- has separate columns, because PTX does not order the copy after earlier MMAs.
local cute = require "cute"
local tiles = require "cute.tiles"

local _ = cute._
local cpasync, tcgen05 = cute.nvgpu.cpasync, cute.nvgpu.tcgen05
local utils = cute.utils

local ROWS, BLOCKS = 128, 4      -- rows and blocks of K of a chunk
local WORDS = ROWS * BLOCKS // 2

local scale_factors = {}

--- Returns the number of bytes of scale factors in a stage, for both operands
-- together.
---@param tile integer[] {BM, BN, BK}
---@param vs integer elements of K that share a factor
---@return integer
function scale_factors.bytes(tile, vs)
  local rows = tiles.count(tile[1], ROWS) + tiles.count(tile[2], ROWS)
  return rows * ROWS * tile[3] // vs
end

--- Returns how many columns of tensor memory the scale factors of a stage need,
-- for both operands together.
---@param tile integer[] {BM, BN, BK}
---@param vs integer elements of K that share a factor
---@return integer
function scale_factors.columns(tile, vs)
  return scale_factors.bytes(tile, vs) // (ROWS * BLOCKS) * BLOCKS
end

-- Makes a table that describes the scale factors of one operand.
-- - smem: their layout in shared memory, (SF,M,K,PIPE).
-- - tmem: their layout in tensor memory.
-- - columns: the number of columns of tensor memory for all stages.
local function operand(mma, tile, stages, sf, smem_of, tmem_of)
  local vs = mma.sf_vec_size
  local layout = smem_of(mma, tile, vs, stages)
  local one = tmem_of(mma, tile, vs, layout(_, _, _, 0))
  local columns = utils.compute_tmem_cols_from_layout(one, sf)
  return {smem = layout, columns = stages * columns,
          tmem = cute.append(one, cute.make_layout(stages, 4 * columns))}
end

--- Returns the layouts of the factors of A and of B: {smem, tmem, columns}.
---@param mma any
---@param tile integer[]
---@param stages integer
---@param sf cute.DType
---@return table a, table b
function scale_factors.layouts(mma, tile, stages, sf)
  return operand(mma, tile, stages, sf, utils.make_smem_layout_sfa,
                 utils.make_tmem_layout_sfa),
    operand(mma, tile, stages, sf, utils.make_smem_layout_sfb,
            utils.make_tmem_layout_sfb)
end

-- Returns the shape of a tile of `rows` rows in words: (words of a chunk,
-- chunks along K, chunks along M or N).
local function shape_of(tile, rows, vs)
  return {WORDS, tile[3] // (BLOCKS * vs), tiles.count(rows, ROWS)}
end

--- Returns the factors of an operand with m rows and k columns as words
-- (chunk,K chunks,row chunks[,L]).
---@param F any a tensor that begins with the factors; with batches (count,L)
---@param m integer
---@param k integer
---@param vs integer
function scale_factors.words(F, m, k, vs)
  local shape = {WORDS, tiles.count(k, BLOCKS * vs), tiles.count(m, ROWS)}
  local stride = {1, WORDS, WORDS * shape[2]}
  local words = cute.recast_tensor(F, cute.u16)
  if cute.rank(F) > 1 then shape[4], stride[4] = F.shape[2], words.stride[2] end
  return cute.make_tensor(words.iterator, cute.make_layout(shape, stride))
end

--- Returns the TMA atom and the coordinates of an operand's factors, as
-- scale_factors.words returns them.
---@param words any
---@param tile integer[]
---@param rows integer the number of rows of a tile
---@param vs integer
function scale_factors.atom(words, tile, rows, vs)
  local box = shape_of(tile, rows, vs)
  return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), words,
                                     cute.make_layout(box), box)
end

--- Partitions scale factors for a TMA copy, like cpasync.tma_partition. Returns
-- two tensors: the words of all stages in shared memory, and the words of
-- global memory in tiles along K. at: the index of the tile along the operand's
-- rows; l: the index of the matrix in the batch.
---@param how table {atom: any, coords: any, smem: any, tile: integer[],
-- rows: integer, vs: integer}
function scale_factors.partition(how, at, l)
  local shape = shape_of(how.tile, how.rows, how.vs)
  local words = cute.make_tensor(cute.recast_ptr(how.smem.iterator, nil,
    cute.u16), cute.make_layout {shape[1], shape[2], shape[3],
                                 cute.size(how.smem, 3)})
  local coords = how.coords
  if cute.rank(coords) > 3 then coords = coords(_, _, _, l) end
  return cpasync.tma_partition(how.atom, 0, cute.make_layout(1),
    cute.group_modes(words, 0, 3), cute.group_modes(
      cute.local_tile(coords, shape, {0, _, at}), 0, 3))
end

--- Returns a function (stage) that copies the stage's factors from shared
-- memory s to tensor memory t.
function scale_factors.copier(s, t)
  local op = tcgen05.Cp4x32x128bOp(tcgen05.CtaGroup.ONE)
  local from, to = cute.filter_zeros(s), cute.filter_zeros(t)
  local copy = tcgen05.make_s2t_copy(cute.make_copy_atom(op, t.element_type),
                                     to(_, _, _, 0))
  local thr = copy:get_slice(0)
  local rows = tcgen05.get_s2t_smem_desc_tensor(copy,           -- (1,M,K,PIPE)
    thr:partition_S(tcgen05.append_s2t_broadcast_mode(op, from)))
  local columns = thr:partition_D(to)                       -- (CP,1,M,K,PIPE)
  return function(stage)
    cute.copy(copy, rows(_, _, _, _, stage), columns(_, _, _, _, stage))
  end
end

return scale_factors
-- SPDX-License-Identifier: MIT
