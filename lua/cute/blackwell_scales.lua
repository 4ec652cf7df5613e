--- Functions of cute.utils.blackwell_helpers that divide the scale factors of
-- mma.sync on sm_120 among threads.
--
-- A tensor of scale factors has the modes (M,K) or (N,K) of its operand.
-- Strides of 0 along K repeat the factor of a block. The lanes of a warp divide
-- the rows of an MMA atom, and a lane holds the factors of its row.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local scales = {}

local _ = core._

-- The layouts of scale factors for operands A and B. `mode` is the index of M
-- or N in the MMA's shape. `lanes` is the layout from a lane to its row in an
-- atom. `thr` is the index of M or N among the modes of thr_layout_vmnk.
local OPERAND = {
  A = {mode = 1, thr = 1, lanes = {{2, 2, 8}, {8, 0, 1}}},
  B = {mode = 2, thr = 2, lanes = {{4, 8}, {0, 1}}},
}

-- Returns the layout of an atom from (lane,value) to its tile (rows,K).
local function atom_layout(op, o, mma)
  local rows, k = mma.shape_mnk[o.mode], mma.shape_mnk[3]
  if k ~= 32 and k ~= 64 then
    core.fail("bad-argument", ("%s: an atom with scale factors has K = 32 or "
      .. "64, not %s"):format(op, core.show(k)))
  end
  -- For K = 32 there is one block. The mode of K still has a second part, of
  -- extent 1, so that it has the same number of parts as for K = 64.
  local values = k == 32 and core.make_layout({k, 1}, {rows, 0})
    or core.make_layout(k, rows)
  return core.make_layout(core.make_layout(table.unpack(o.lanes)), values)
end

-- Returns the MMA's tile along a mode: an extent, or a layout if the MMA
-- permutes this mode.
local function tile_of(mma, mode)
  local given = mma.permutation_mnk and mma.permutation_mnk[mode]
  if given and given ~= core._ then return given end
  return mma.shape_mnk[mode] * core.size(mma.thr_layout_vmnk, mode)
end

-- Divides a layout of scale factors (rows,K) among threads and their values.
-- The result is ((lanes,(warps,warps of K)),(values,(rest,rest of K))).
local function divided(op, o, layout, mma)
  local tiles = core.logical_divide(layout, {tile_of(mma, o.mode),
                                             tile_of(mma, 3)})
  local atoms = core.zipped_divide(tiles, {mma.shape_mnk[o.mode],
                                           mma.shape_mnk[3]})
  local tv = core.composition(core.get(atoms, 0), atom_layout(op, o, mma))
  local rest = core.get(atoms, 1)
  local thr = mma.thr_layout_vmnk
  local mn = core.logical_divide(core.get(rest, 0),
                                 core.make_layout(core.size(thr, o.thr)))
  local k = core.logical_divide(core.get(rest, 1),
                                core.make_layout(core.size(thr, 3)))
  local function half(i)
    return core.make_layout(core.get(tv, i),
                            core.make_layout(core.get(mn, i), core.get(k, i)))
  end
  return core.make_layout(half(0), half(1))
end

local function thrfrg(letter)
  local op, o = "thrfrg_SF" .. letter, OPERAND[letter]
  return function(tensor, tiled_mma)
    if core.typename(tensor) == "layout" then
      return divided(op, o, tensor, tiled_mma)
    end
    return core.make_tensor(tensor.iterator,
                            divided(op, o, tensor.layout, tiled_mma))
  end
end

--- Divides the scale factors of A among threads. The result is ((lanes,(warps
-- of M,warps of K)),(values,(rest of M,rest of K))).
---@param sfa_tensor cute.Tensor|cute.Layout (M,K)
---@param tiled_mma cute.TiledMma of an atom with scale factors
---@return cute.Tensor|cute.Layout a tensor or layout, as the first argument
scales.thrfrg_SFA = thrfrg "A"

--- Divides the scale factors of B among threads, like thrfrg_SFA.
scales.thrfrg_SFB = thrfrg "B"

-- Returns the function partition_fragment_SFA (letter "A") or
-- partition_fragment_SFB (letter "B").
local function fragment(letter)
  local op, o = "partition_fragment_SF" .. letter, OPERAND[letter]
  return function(tensor, thr_mma, tidx)
    local all = core.make_tensor(tensor.iterator,
                                 divided(op, o, tensor.layout, thr_mma))
    local at = core.idx2crd(tidx, thr_mma.thr_layout_vmnk.shape,
                            thr_mma.thr_layout_vmnk.stride)
    local own = all({at[1], {at[o.thr + 1], at[4]}}, {_, _})
    local rest = core.get(own.layout, 1)
    return core.make_fragment_like(core.make_tensor(own.iterator,
      core.make_layout(core.get(own.layout, 0), core.get(rest, 0),
                       core.get(rest, 1))))
  end
end

--- Makes registers for a thread's scale factors of A: (values,M,K). Values that
-- share a factor have stride 0. cute.gemm takes the fragment:
--
--     local tiled = cute.make_tiled_copy(cute.make_copy_atom(
--       cute.nvgpu.CopyUniversalOp(), cute.ue8m0),
--       helpers.get_layoutSFA_TV(mma), {tile_m, tile_k})
--     local thr = tiled:get_slice(tid)
--     local r = helpers.partition_fragment_SFA(sSFA, mma:get_slice(tid), tid)
--     cute.copy(tiled, cute.filter_zeros(thr:partition_S(sSFA)),
--               cute.filter_zeros(thr:retile(r)))
--     cute.gemm(mma, acc, {tCrA, r}, {tCrB, rb}, acc)
--
-- {tile_m, tile_k}: the MMA's permutation_mnk, else the tile of all its warps.
---@param sfa_tensor cute.Tensor (M,K)
---@param thr_mma cute.TiledMma
---@param tidx any index of the thread
---@return cute.Tensor
scales.partition_fragment_SFA = fragment "A"

--- Makes registers for a thread's scale factors of B: (values,N,K), like
-- partition_fragment_SFA.
---@param sfb_tensor cute.Tensor (N,K)
---@param thr_mma cute.TiledMma
---@param tidx any index of the thread
---@return cute.Tensor
scales.partition_fragment_SFB = fragment "B"

-- Returns the function get_layoutSFA_TV (letter "A") or get_layoutSFB_TV
-- (letter "B"). That function returns the layout of the scale factors from
-- (thread,value) to the tile of the MMA.
local function tv_layout(letter)
  local op, o = "get_layoutSF" .. letter .. "_TV", OPERAND[letter]
  return function(tiled_mma)
    if not tiled_mma.sf_vec_size then
      core.bad_argument(1, "an MMA with scale factors", tiled_mma)
    end
    local thr = tiled_mma.thr_layout_vmnk
    local tile = core.make_layout {core.size(tile_of(tiled_mma, o.mode)),
                                   core.size(tile_of(tiled_mma, 3))}
    local frg = divided(op, o, tile, tiled_mma)
    local lanes = core.get(frg, 0)
    -- Replaces the modes (V,(M,K)) of threads by (V,M,N,K). Warps along the
    -- mode that the operand lacks (N for A, M for B) have the same factors.
    local own = core.get(core.get(lanes, 1), 0)
    local other = core.make_layout(core.size(thr, 3 - o.thr), 0)
    local vmnk = core.make_layout(core.get(lanes, 0),
      o.thr == 1 and own or other, o.thr == 1 and other or own,
      core.get(core.get(lanes, 1), 1))
    return core.make_layout(core.composition(vmnk, core.right_inverse(thr)),
                            core.get(frg, 1))
  end
end

--- Returns the layout of A's scale factors from (thread,value) to the MMA's
-- tile (M,K).
---@param tiled_mma cute.TiledMma of an atom with scale factors
---@return cute.Layout
scales.get_layoutSFA_TV = tv_layout "A"

--- Returns the layout of B's scale factors from (thread,value) to the MMA's
-- tile (N,K).
scales.get_layoutSFB_TV = tv_layout "B"

return sign.public("utils.blackwell_helpers.", scales, [[
  thrfrg_SFA(sfa_tensor: tensor|layout, tiled_mma: tiled)
  thrfrg_SFB(sfb_tensor: tensor|layout, tiled_mma: tiled)
  partition_fragment_SFA(sfa_tensor: tensor, thr_mma, tidx)
  partition_fragment_SFB(sfb_tensor: tensor, thr_mma, tidx)
  get_layoutSFA_TV(tiled_mma: tiled) get_layoutSFB_TV(tiled_mma: tiled)
]])
-- SPDX-License-Identifier: MIT
