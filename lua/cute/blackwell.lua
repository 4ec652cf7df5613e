--- cute.utils.blackwell_helpers: shared-memory layouts, MMAs, epilogue tiles
-- and scale factors of a GEMM for datacenter Blackwell (sm_100a).
--
-- Every tiled MMA here executes tcgen05.mma for one CTA or for a pair of CTAs.
-- mma_tiler_mnk is the tile that the one or two CTAs compute together. Layouts
-- of operands in shared memory have the modes ((MMA_MN,MMA_K),MN,K,stages).
local sign = require "cute.lang.signature"
local core = require "cute.core"
local smem = require "cute.smem"
local tcgen05 = require "cute.nvgpu.sm100.tcgen05"
local tmem = require "cute.nvgpu.sm100.tmem"

local blackwell = {}

local function dtype_of(x) return type(x) == "string" and core[x] or x end

local function refuse(op, text, ...)
  core.fail("bad-argument", op .. ": " .. text:format(...))
end

blackwell.make_smem_layout_atom = tcgen05.make_smem_layout_atom
blackwell.tile_to_mma_shape = tcgen05.tile_to_mma_shape
blackwell.is_tmem_load = tcgen05.is_tmem_load
blackwell.get_tmem_copy_properties = tcgen05.get_tmem_copy_properties

---------------------------------------------------------------------------
-- Operands in shared memory
---------------------------------------------------------------------------

--- Returns the kind of layout atom for make_smem_layout_atom: the one with the
-- widest swizzle whose span divides the contiguous extent.
---@param major_mode "K"|"MN"
---@param element_type cute.DType
---@param smem_shape_mn_k integer[] {M or N, K} of the tile
---@return string kind such as "K_SW128" or "MN_SW128_32B"
function blackwell.get_smem_layout_atom_ab(major_mode, element_type,
                                           smem_shape_mn_k)
  local bits = dtype_of(element_type).bits
  local extent = core.size(smem_shape_mn_k[major_mode == "K" and 2 or 1])
  local kind = smem.widest(extent * bits)
  if major_mode == "MN" and bits == 32 and kind == "SW128" then
    kind = "SW128_32B"
  end
  return major_mode .. "_" .. kind
end

-- Returns whether operand A (1) or B (2) of an MMA is K-major.
local function is_k_major(tiled_mma, which)
  local a, b = tiled_mma.name:match ",(%u+),(%u+)>$"
  return (which == 1 and a or b) == "K"
end

-- Returns the shared-memory layout, with stages, of an operand whose partition
-- has this shape.
local function staged(shape, element_type, num_stages, k_major)
  local first = core.get(shape, 0)
  local extent = {}
  for i = 0, 1 do
    extent[i + 1] = core.size(core.get(first, i))
      * core.size(core.get(shape, i + 1))
  end
  local kind = blackwell.get_smem_layout_atom_ab(k_major and "K" or "MN",
                                                 element_type, extent)
  local atom = tcgen05.make_smem_layout_atom(kind, element_type)
  return blackwell.tile_to_mma_shape(atom,
    {first, core.get(shape, 1), core.get(shape, 2), num_stages},
    k_major and {1, 2, 3} or {2, 1, 3})
end

local function operand(which, letter)
  return function(tiled_mma, mma_tiler_mnk, element_type, num_stages, opts)
    local k_major = is_k_major(tiled_mma, which)
    if opts and opts.is_k_major ~= nil then k_major = opts.is_k_major end
    local shape = tiled_mma["partition_shape_" .. letter](tiled_mma,
      {mma_tiler_mnk[which], mma_tiler_mnk[3]})
    return staged(shape, element_type, num_stages, k_major)
  end
end

--- Returns the layout of operand A of one CTA: ((MMA_M,MMA_K),M,K,stages).
---@param tiled_mma cute.TiledMma
---@param mma_tiler_mnk integer[]
---@param a_dtype cute.DType
---@param num_stages integer
---@param opts? {is_k_major: boolean} if absent, as in the MMA
---@return cute.Layout
blackwell.make_smem_layout_a = operand(1, "A")

--- Returns the layout of operand B of one CTA: ((MMA_N,MMA_K),N,K,stages).
blackwell.make_smem_layout_b = operand(2, "B")

--- Returns the layout of one CTA's part of a matrix C that an epilogue reads:
-- ((MMA_M,MMA_N),M,N,stages).
---@param tiled_mma cute.TiledMma
---@param mma_tiler_mnk integer[]
---@param c_dtype cute.DType
---@param num_stages integer
---@param is_m_major boolean whether M is contiguous
---@return cute.Layout
function blackwell.make_smem_layout_c(tiled_mma, mma_tiler_mnk, c_dtype,
                                      num_stages, is_m_major)
  local shape = tiled_mma:partition_shape_C {mma_tiler_mnk[1],
                                             mma_tiler_mnk[2]}
  return staged(shape, c_dtype, num_stages, not is_m_major)
end

-- Returns the extents of an epilogue tile. The tile's modes are integers or
-- layouts.
local function tile_extents(epi_tile)
  return {core.size(epi_tile[1]), core.size(epi_tile[2])}
end

-- Returns how many elements of an epilogue tile are contiguous in the CTA's
-- tile, along M and along N.
local function contiguous(epi_tile)
  local list = {}
  for i = 1, 2 do
    local mode = epi_tile[i]
    if core.typename(mode) == "layout" then
      local whole = core.coalesce(core.right_inverse(mode))
      list[i] = core.size(whole, 0)
    else
      list[i] = core.size(mode)
    end
  end
  return list
end

--- Returns the kind of layout atom for an epilogue's tile of C or D.
---@param layout "row"|"col"
---@param element_type cute.DType
---@param epi_tile table {M, N}: integers or layouts
---@return string kind
function blackwell.get_smem_layout_atom_epi(layout, element_type, epi_tile)
  return blackwell.get_smem_layout_atom_ab(smem.major(layout), element_type,
                                           contiguous(epi_tile))
end

--- Returns the layout of an epilogue's tiles of C or D: (M, N, stages).
---@param epi_dtype cute.DType
---@param epi_layout "row"|"col"
---@param epi_tile table {M, N}: integers or layouts
---@param epi_stage integer
---@return cute.Layout
function blackwell.make_smem_layout_epi(epi_dtype, epi_layout, epi_tile,
                                        epi_stage)
  local kind = blackwell.get_smem_layout_atom_epi(epi_layout, epi_dtype,
                                                  epi_tile)
  local m, n = table.unpack(tile_extents(epi_tile))
  return core.tile_to_shape(tcgen05.make_smem_layout_atom(kind, epi_dtype),
    {m, n, epi_stage},
    smem.major(epi_layout) == "K" and {0, 1, 2} or {1, 0, 2})
end

---------------------------------------------------------------------------
-- MMAs
---------------------------------------------------------------------------

local SMALL = {e4m3 = true, e5m2 = true, e3m2 = true, e2m3 = true,
               e2m1 = true}

--- Makes an MMA for these types. K is that of one instruction.
---@param a_dtype cute.DType
---@param b_dtype cute.DType
---@param a_leading_mode "K"|"MN"
---@param b_leading_mode "K"|"MN"
---@param acc_dtype cute.DType
---@param cta_group integer from tcgen05.CtaGroup
---@param mma_tiler_mn integer[] {M, N} of the instruction
---@param a_source? string from tcgen05.OperandSource, SMEM if absent
---@return cute.TiledMma
function blackwell.make_trivial_tiled_mma(a_dtype, b_dtype, a_leading_mode,
    b_leading_mode, acc_dtype, cta_group, mma_tiler_mn, a_source)
  local a, b = tostring(dtype_of(a_dtype)), tostring(dtype_of(b_dtype))
  local shape = {mma_tiler_mn[1], mma_tiler_mn[2]}
  local rest = {shape, cta_group, a_source, a_leading_mode, b_leading_mode}
  local atom
  if SMALL[a] and SMALL[b] then
    atom = tcgen05.MmaF8F6F4Op(a, b, acc_dtype, table.unpack(rest, 1, 5))
  elseif a ~= b then
    refuse("make_trivial_tiled_mma", "no instruction multiplies %s and %s", a,
           b)
  elseif a == "tf32" then
    atom = tcgen05.MmaTF32Op(table.unpack(rest, 1, 5))
  elseif a == "i8" or a == "u8" then
    atom = tcgen05.MmaI8Op(a, table.unpack(rest, 1, 5))
  else
    atom = tcgen05.MmaF16BF16Op(a, acc_dtype, table.unpack(rest, 1, 5))
  end
  return core.make_tiled_mma(atom)
end

--- Makes an MMA with scale factors and f32 accumulators. If both operands are
-- e2m1, they are packed, and K is 64. Otherwise operands of 8, 6 and 4 bits
-- occupy a byte for each element, K is 32, and 32 elements share a scale factor
-- of ue8m0.
---@param a_dtype cute.DType
---@param b_dtype cute.DType
---@param a_leading_mode "K"|"MN"
---@param b_leading_mode "K"|"MN"
---@param sf_dtype cute.DType ue8m0; e4m3 for NVFP4
---@param sf_vec_size integer elements that share a scale factor: 32 or 16
---@param cta_group integer from tcgen05.CtaGroup
---@param mma_tiler_mn integer[] {M, N} of the instruction
---@return cute.TiledMma
function blackwell.make_blockscaled_trivial_tiled_mma(a_dtype, b_dtype,
    a_leading_mode, b_leading_mode, sf_dtype, sf_vec_size, cta_group,
    mma_tiler_mn)
  local op = "make_blockscaled_trivial_tiled_mma"
  local a, b = tostring(dtype_of(a_dtype)), tostring(dtype_of(b_dtype))
  local sf = tostring(dtype_of(sf_dtype))
  if not SMALL[a] or not SMALL[b] then
    refuse(op, "no instruction scales blocks of %s and %s", a, b)
  end
  local packed = a == "e2m1" and b == "e2m1"
  local good = sf == "ue8m0" and (sf_vec_size == 32
                                  or packed and sf_vec_size == 16)
    or packed and sf == "e4m3" and sf_vec_size == 16
  if not good then
    refuse(op, "no instruction for %s and %s has a scale factor of %s for %s "
      .. "elements; they have %s", a, b, sf, core.show(sf_vec_size), packed
      and "ue8m0 for 32 or 16 elements, or e4m3 for 16"
      or "ue8m0 for 32 elements")
  end
  if packed and (a_leading_mode ~= "K" or b_leading_mode ~= "K") then
    refuse(op, "packed e2m1 must be K-major")
  end
  local shape, atom = {mma_tiler_mn[1], mma_tiler_mn[2]}
  if not packed then
    atom = tcgen05.MmaMXF8F6F4Op(a, b, shape, cta_group, "SMEM",
                                 a_leading_mode, b_leading_mode)
  elseif sf_vec_size == 32 then
    atom = tcgen05.MmaMXF4Op(shape, cta_group)
  else
    atom = tcgen05.MmaMXF4NVF4Op(sf, shape, cta_group)
  end
  return core.make_tiled_mma(atom)
end

--- Makes an MMA of packed e2m1 with scale factors and K = 96, for Blackwell
-- Ultra (sm_103a). The MMA only describes layouts: cute.gemm rejects it.
---@param sf_dtype cute.DType ue8m0; for 16 elements also e4m3
---@param sf_vec_size integer elements that share a scale factor: 32 or 16
---@param cta_group integer from tcgen05.CtaGroup
---@param mma_tiler_mn integer[] {M, N} of the instruction
---@param a_source? string from tcgen05.OperandSource: SMEM
---@return cute.TiledMma
function blackwell.sm103_make_blockscaled_trivial_tiled_mma(sf_dtype,
    sf_vec_size, cta_group, mma_tiler_mn, a_source)
  local op = "sm103_make_blockscaled_trivial_tiled_mma"
  local sf = tostring(dtype_of(sf_dtype))
  local m, n = mma_tiler_mn[1], mma_tiler_mn[2]
  local pair = cta_group == tcgen05.CtaGroup.TWO
  local step = pair and 16 or 8
  if not (sf == "ue8m0" and (sf_vec_size == 32 or sf_vec_size == 16)
          or sf == "e4m3" and sf_vec_size == 16) then
    refuse(op, "no instruction has a scale factor of %s for %s elements: ue8m0 "
      .. "for 32, ue8m0 or e4m3 for 16", sf, core.show(sf_vec_size))
  elseif not pair and cta_group ~= tcgen05.CtaGroup.ONE then
    refuse(op, "cta_group must be CtaGroup.ONE or TWO, not %s",
           core.show(cta_group))
  elseif a_source and a_source ~= "SMEM" then
    refuse(op, "A must come from SMEM")
  elseif not (m == 128 or pair and m == 256) or math.type(n) ~= "integer"
    or n % step ~= 0 or n < step or n > 256 then
    refuse(op, "no instruction of shape %s: M must be %s, N a multiple of %d "
      .. "up to 256", core.show(mma_tiler_mn), pair and "128 or 256" or "128",
      step)
  end
  return core.make_tiled_mma(core.make_mma_atom(("SM103::SM103_MXF4_ULTRA_"
    .. "%sSS_VS<float_e2m1_t,float_e2m1_t,float,float_%s_t,%d,%d,%d,K,K>")
    :format(pair and "2x1SM_" or "", sf == "e4m3" and "ue4m3" or sf, m, n,
            sf_vec_size)))
end

---------------------------------------------------------------------------
-- Scale factors
---------------------------------------------------------------------------

--- Returns the smallest tile of scale factors: 128 rows with 4 blocks of K
-- each, in 512 contiguous bytes. Its fields are sf_vec_size, major_mode and
-- layout.
---@param sf_vec_size integer elements that share a scale factor
---@param major_mode? "K"|"MN" K if absent; MN exchanges the modes
---@return table
function blackwell.BlockScaledBasicChunk(sf_vec_size, major_mode)
  local rows = core.make_layout({32, 4}, {16, 4})
  local blocks = core.make_layout({sf_vec_size, 4}, {0, 1})
  major_mode = major_mode or "K"
  local layout = major_mode == "K" and core.make_layout(rows, blocks)
    or core.make_layout(blocks, rows)
  return {sf_vec_size = sf_vec_size, major_mode = major_mode, layout = layout}
end

local function chunk(sf_vec_size)
  return blackwell.BlockScaledBasicChunk(sf_vec_size).layout
end

--- Returns the layout of an operand's scale factors in global memory:
-- ((32,4),rows), ((elements,4),blocks), batch. Rows and blocks are rounded up
-- to whole chunks (see BlockScaledBasicChunk).
---@param shape table (M or N, K, L) of the operand
---@param sf_vec_size integer elements that share a scale factor
---@return cute.Layout
function blackwell.tile_atom_to_shape_SF(shape, sf_vec_size)
  local whole = {core.round_up(shape[1], 128),
                 core.round_up(shape[2], 4 * sf_vec_size), shape[3]}
  return core.tile_to_shape(chunk(sf_vec_size), whole, {2, 1, 3})
end

-- Returns the shared-memory layout of scale factors for a tile of `rows` rows,
-- which `times` instructions together cover.
local function scale_layout(tiled_mma, rows, times, k, sf_vec_size, stages)
  local along_k = k // tiled_mma.shape_mnk[3]
  local tile = core.tile_to_shape(chunk(sf_vec_size), {rows, k}, {2, 1})
  local own = {rows // times, k // along_k}
  local parts = core.tiled_divide(tile, own)
  local l = core.logical_divide(parts, {{128, sf_vec_size}})
  return core.append(l, core.make_layout(stages,
                                         core.cosize(core.filter_zeros(l))))
end

--- Returns the layout of one CTA's scale factors of A in shared memory: (((128
-- rows,rows),(block,blocks)),M,K,stages).
---@param tiled_mma cute.TiledMma
---@param mma_tiler_mnk integer[]
---@param sf_vec_size integer
---@param num_stages integer
---@return cute.Layout
function blackwell.make_smem_layout_sfa(tiled_mma, mma_tiler_mnk, sf_vec_size,
                                        num_stages)
  local m = mma_tiler_mnk[1]
  return scale_layout(tiled_mma, m // core.size(tiled_mma.thr_id.shape),
    m // tiled_mma.shape_mnk[1], mma_tiler_mnk[3], sf_vec_size, num_stages)
end

--- Returns the layout of B's scale factors in shared memory. Each CTA stores
-- the factors of all N columns of the tile, rounded up to 128.
function blackwell.make_smem_layout_sfb(tiled_mma, mma_tiler_mnk, sf_vec_size,
                                        num_stages)
  local n = mma_tiler_mnk[2]
  return scale_layout(tiled_mma, core.round_up(n, 128),
    n // tiled_mma.shape_mnk[2], mma_tiler_mnk[3], sf_vec_size, num_stages)
end

-- Returns the layout (V,MN,K) of scale factors in tensor memory. smem_layout is
-- their layout in shared memory.
local function tmem_scales(_, _, sf_vec_size, smem_layout)
  local v = core.get(smem_layout, 0)
  local rows = core.size(core.get(v, 0))
  local blocks = core.size(core.get(v, 1)) // sf_vec_size
  return tmem.scale_factors {{rows, {sf_vec_size, blocks}},
    core.size(smem_layout, 1), core.size(smem_layout, 2)}
end

--- Returns the layout of A's scale factors in tensor memory.
---@param tiled_mma cute.TiledMma
---@param mma_tiler_mnk integer[]
---@param sf_vec_size integer
---@param smem_layout cute.Layout the result of make_smem_layout_sfa, without
-- its stages
---@return cute.Layout
blackwell.make_tmem_layout_sfa = tmem_scales
--- Returns the layout of B's scale factors in tensor memory.
blackwell.make_tmem_layout_sfb = tmem_scales

---------------------------------------------------------------------------
-- Tensor memory
---------------------------------------------------------------------------

local MOST_COLUMNS, LEAST_COLUMNS = 512, 32

--- Returns the number of columns of tensor memory that a layout spans.
---@param layout cute.Layout in tensor memory, in elements
---@param dtype cute.DType
---@return integer
function blackwell.compute_tmem_cols_from_layout(layout, dtype)
  local words = core.recast_layout(layout, dtype_of(dtype).bits, 32)
  return core.cosize(words) & 0xffff
end

--- Returns the number of columns to allocate for tensors in tensor memory.
---@param tmem_tensors cute.Tensor|cute.Tensor[]
---@param rounding? boolean true (the default) rounds up to a power of two of at
-- least 32, as an allocation needs
---@return integer
function blackwell.get_num_tmem_alloc_cols(tmem_tensors, rounding)
  local list = core.typename(tmem_tensors) == "tensor" and {tmem_tensors}
    or tmem_tensors
  local n = 0
  for _, t in ipairs(list) do
    n = n + blackwell.compute_tmem_cols_from_layout(t.layout, t.element_type)
  end
  if rounding ~= false then
    local power = LEAST_COLUMNS
    while power < n do power = power * 2 end
    n = power
  end
  if n > MOST_COLUMNS or n < LEAST_COLUMNS then
    refuse("get_num_tmem_alloc_cols", "%d columns; an allocation has %d to %d",
           n, LEAST_COLUMNS, MOST_COLUMNS)
  end
  return n
end

--- Returns the number of columns of tensor memory that the accumulators of one
-- stage occupy in each CTA.
---@param cta_tile_m integer number of rows of a CTA
---@param cta_tile_n integer number of columns of the tile
---@param use_2cta boolean whether a pair of CTAs executes an MMA
---@param mma_n integer N of an instruction
---@param transform_a_source_is_tmem boolean whether A is in tensor memory
---@return integer
function blackwell.compute_acc_tmem_cols_per_stage(cta_tile_m, cta_tile_n,
    use_2cta, mma_n, transform_a_source_is_tmem)
  local shape = {{cta_tile_m, mma_n}, 1, cta_tile_n // mma_n}
  local l = use_2cta and tmem.all_lanes(shape, 32)
    or tmem.accumulators(shape, 32, transform_a_source_is_tmem)
  return blackwell.compute_tmem_cols_from_layout(l, core.f32)
end

---------------------------------------------------------------------------
-- Epilogue
---------------------------------------------------------------------------

-- Returns the smallest N of an epilogue tile that TMA can store if this many
-- warps divide N. `bits` is the width of an element.
local function least_n(bits, m_major, warps)
  if m_major then return 8 * warps end
  return (bits == 6 and 128 or 128 // bits) * warps
end

--- Returns the extents of the tile that an epilogue processes at once: 32 lanes
-- for each warp, and as many columns as fit well in registers and shared
-- memory.
---@param cta_tile_m integer
---@param cta_tile_n integer
---@param use_2cta boolean
---@param elem_width_d integer bits of an element of D
---@param elem_width_c? integer bits of an element of a source C
---@param d_is_m_major? boolean true if absent
---@param c_is_m_major? boolean true if absent
---@return integer m, integer n
function blackwell.compute_epilogue_tile_size(cta_tile_m, cta_tile_n, use_2cta,
    elem_width_d, elem_width_c, d_is_m_major, c_is_m_major)
  local two = cta_tile_m == 64 and use_2cta
  local warp_m, warp_n = two and 2 or 4, two and 2 or 1
  local m = math.min(cta_tile_m, 32 * warp_m)
  local bits = math.max(elem_width_d, elem_width_c or 0)
  local n
  if not elem_width_c then
    n = (bits == 4 and 8192 or 4096) // m
  elseif bits == 32 then
    n = (cta_tile_m > 64 and cta_tile_n <= 128) and 16 or 32
  elseif bits == 16 then
    n = cta_tile_n <= 128 and 32 or 64
  else
    n = 64
  end
  while cta_tile_n % n ~= 0 do n = n // 2 end
  n = math.max(n, least_n(elem_width_d, d_is_m_major ~= false, warp_n),
               least_n(elem_width_c or 0, not elem_width_c
                       or c_is_m_major ~= false, warp_n))
  if n > cta_tile_n or cta_tile_n % n ~= 0 then n = cta_tile_n end
  return m, n
end

--- Returns the tile that an epilogue processes at once, as a tiler {M, N} of
-- layouts. If the warps divide N among them, the columns of this tile are not
-- contiguous in the CTA's tile.
---@param cta_tile_shape integer[] {M, N, ...}
---@param use_2cta_instrs boolean
---@param layout_d "row"|"col"
---@param elem_ty_d cute.DType
---@param opts? {layout_c: string, elem_ty_c: cute.DType} describes the source C
---@return table tiler
function blackwell.compute_epilogue_tile_shape(cta_tile_shape, use_2cta_instrs,
    layout_d, elem_ty_d, opts)
  opts = opts or {}
  local cta_m, cta_n = cta_tile_shape[1], cta_tile_shape[2]
  local d, c = dtype_of(elem_ty_d).bits, opts.elem_ty_c
  c = c and dtype_of(c).bits
  local d_m = smem.major(layout_d) == "MN"
  local c_m = not opts.layout_c or smem.major(opts.layout_c) == "MN"
  local m, n = blackwell.compute_epilogue_tile_size(cta_m, cta_n,
    use_2cta_instrs, d, c, d_m, c_m)
  local warp_n = cta_m == 64 and use_2cta_instrs and 2 or 1
  local least = math.max(least_n(d, d_m, warp_n),
                         least_n(c or 0, not c or c_m, warp_n))
  if cta_n < least then
    refuse("compute_epilogue_tile_shape", "a tile of %d columns is smaller "
      .. "than %d, the least that TMA stores", cta_n, least)
  end
  return {core.make_layout(m), core.coalesce(core.make_layout(
    {n // warp_n, warp_n}, {1, cta_n // warp_n}))}
end

---------------------------------------------------------------------------
-- Copies of an epilogue
---------------------------------------------------------------------------

-- Returns the shape of the load from tensor memory (lanes and bits) for a warp
-- with `lanes` lanes of an epilogue's tile, or nil if no load fits. acc and d
-- are the bits of an accumulator and of an element of D.
local function load_shape(lanes, acc, d, m_major)
  if acc == 16 and d == 16 then
    if lanes == 32 and not m_major then return 32, 32 end
    return 16, 128
  elseif acc ~= 32 then
    return nil
  elseif lanes == 32 then
    if m_major and (d == 16 or d == 8) then return 16, 256 end
    if d == 32 or d == 16 or d == 8 or d == 6 or d == 4 then return 32, 32 end
  elseif d == 32 then
    return 16, m_major and 256 or 128
  elseif d == 16 then
    return 16, 256
  elseif d == 8 then
    return 16, m_major and 256 or 32
  end
end

--- Returns the copy atom from tensor memory to registers for an epilogue's
-- tile. It has the largest number of repetitions that divides the tile's
-- columns. Accumulators of 16 bits are packed, two in a register.
---@param cta_tile_shape integer[] {M, N, ...} of one CTA
---@param layout_d "row"|"col"
---@param elem_ty_d cute.DType
---@param elem_ty_acc cute.DType f32, or f16 with a D of 16 bits
---@param epi_tile table {M, N}: integers or layouts
---@param use_2cta_instrs boolean
---@param opts? {tmem_warp_shape_mn: integer[]} warps along M and N: {2, 2} for
-- a pair of CTAs with M = 64, else {4, 1}
---@return cute.CopyAtom
function blackwell.get_tmem_load_op(cta_tile_shape, layout_d, elem_ty_d,
    elem_ty_acc, epi_tile, use_2cta_instrs, opts)
  local op = "get_tmem_load_op"
  local acc_type = dtype_of(elem_ty_acc)
  local acc, d = acc_type.bits, dtype_of(elem_ty_d).bits
  local warps = opts and opts.tmem_warp_shape_mn
    or cta_tile_shape[1] == 64 and use_2cta_instrs and {2, 2} or {4, 1}
  local m, n = table.unpack(tile_extents(epi_tile))
  local lanes = core.ceil_div(m, warps[1])
  if lanes ~= 16 and lanes ~= 32 then
    refuse(op, "a tile of %d rows has %d for each of %d warps; 16 or 32 are "
      .. "needed", m, lanes, warps[1])
  end
  local rows, bits = load_shape(lanes, acc, d, smem.major(layout_d) == "MN")
  if not rows then
    refuse(op, "no copy for accumulators of %s, a D of %s and %d lanes",
           tostring(acc_type), tostring(dtype_of(elem_ty_d)), lanes)
  end
  local own = core.ceil_div(n, warps[2]) * acc
  local unit = (rows == 16 and bits == 32) and 64 or bits
  local times = math.min(128, 8192 // unit)
  while times > 1 and own % (unit * times) ~= 0 do times = times // 2 end
  if own % unit ~= 0 then
    refuse(op, "%d bits of a lane are not a multiple of %d", own, unit)
  end
  return core.make_copy_atom(("SM100_TMEM_LOAD_%ddp%db%dx%s"):format(rows,
    bits, times, acc == 16 and "_16b" or ""), acc_type)
end

-- Returns how many 8x8 matrices one stmatrix stores, at most 4. `per` is the
-- number of matrices for each repetition of the load from tensor memory.
local function matrices(per, repetitions)
  return math.min(4, per * repetitions)
end

--- Returns the copy atom from registers to shared memory for values that
-- another copy loaded from tensor memory. It is stmatrix if the threads have
-- the right values for it.
---@param layout_d "row"|"col"
---@param elem_ty_d cute.DType
---@param elem_ty_acc cute.DType
---@param tiled_tmem_load cute.TiledCopy|cute.CopyAtom
---@return cute.CopyAtom
function blackwell.get_smem_store_op(layout_d, elem_ty_d, elem_ty_acc,
                                     tiled_tmem_load)
  local to = dtype_of(elem_ty_d)
  local acc, d = dtype_of(elem_ty_acc).bits, to.bits
  local name = "UniversalCopy"
  if tcgen05.is_tmem_load(tiled_tmem_load) then
    local m_major = smem.major(layout_d) == "MN"
    local lanes, bits, times, pack =
      tcgen05.get_tmem_copy_properties(tiled_tmem_load)
    local shape = ("%dx%d %d %d %s"):format(lanes, bits, acc, d,
                                            pack ~= "NONE" and "packed" or "")
    if shape == "16x128 32 32 " and not m_major or shape == "16x256 32 16 "
      or shape == "16x128 16 16 packed" then
      local n = matrices(2, times)
      name = m_major and ("SM90_U16x%d_STSM_T"):format(2 * n)
        or ("SM90_U32x%d_STSM_N"):format(n)
    elseif shape == "16x256 32 8 " and m_major then
      name = ("SM100_U8x%d_STSM_T"):format(4 * matrices(1, times))
    end
  end
  return core.make_copy_atom(name, to)
end

--- Returns the copy atom from registers to shared memory for accumulators of
-- mma.sync on sm_120. It is stmatrix of two matrices for 16-bit types.
---@param layout_d "row"|"col"
---@param elem_ty_d cute.DType
---@param elem_ty_acc cute.DType
---@return cute.CopyAtom
function blackwell.sm120_get_smem_store_op(layout_d, elem_ty_d,
                                           elem_ty_acc) -- luacheck: ignore
  local to = dtype_of(elem_ty_d)
  local m_major = smem.major(layout_d) == "MN"
  if to.bits ~= 16 then return core.make_copy_atom("UniversalCopy", to) end
  return core.make_copy_atom(m_major and "SM90_U16x4_STSM_T"
                             or "SM90_U32x2_STSM_N", to)
end

---------------------------------------------------------------------------
-- Checks
---------------------------------------------------------------------------

--- Raises an error for i8 and u8 on sm_107, which has no tcgen05.mma for them.
---@param ab_dtype cute.DType
---@param target_arch string such as "sm_100a"
function blackwell.check_int8_mma_arch(ab_dtype, target_arch)
  local name = tostring(dtype_of(ab_dtype))
  if (name == "i8" or name == "u8") and target_arch:find "^%s*[sS]?[mM]?_?107"
  then
    refuse("check_int8_mma_arch", "%s has no tcgen05.mma of %s", target_arch,
           name)
  end
end

--- Returns the number of elements in 16 bytes. The contiguous extent of a
-- tensor for TMA must be a multiple of this number.
---@param elem_ty cute.DType
---@return integer
function blackwell.get_tma_aligned_contiguous_elements(elem_ty)
  local bits = dtype_of(elem_ty).bits
  if bits == 6 then
    refuse("get_tma_aligned_contiguous_elements", "not known for 6-bit types")
  end
  return 128 // bits
end

--- Raises an error unless a contiguous extent is a multiple of 16 bytes.
---@param tensor_name string
---@param elem_ty cute.DType
---@param contiguous_dim_size integer
---@param contiguous_dim_name string
function blackwell.check_tma_tensor_alignment(tensor_name, elem_ty,
    contiguous_dim_size, contiguous_dim_name)
  local n = blackwell.get_tma_aligned_contiguous_elements(elem_ty)
  if contiguous_dim_size % n ~= 0 then
    refuse("check_tma_tensor_alignment", "%s: %s = %d is not a multiple of %d "
      .. "elements of %s (16 bytes)", tensor_name, contiguous_dim_name,
      contiguous_dim_size, n, tostring(dtype_of(elem_ty)))
  end
end

--- Raises an error unless TMA can copy the operands and the result of a GEMM.
---@param m integer
---@param n integer
---@param k integer
---@param a_dtype cute.DType
---@param b_dtype cute.DType
---@param d_dtype? cute.DType if nil, D is not checked
---@param a_major "m"|"k" the contiguous mode
---@param b_major "n"|"k"
---@param d_major? "m"|"n"
---@param output_tensor_name? string "D" if absent
function blackwell.check_gemm_tma_alignment(m, n, k, a_dtype, b_dtype, d_dtype,
    a_major, b_major, d_major, output_tensor_name)
  local size = {m = m, n = n, k = k}
  local function check(name, dtype, major, allowed)
    if not allowed:find(tostring(major), 1, true) then
      refuse("check_gemm_tma_alignment", "%s: the major mode is %s; it may be "
        .. "%s or %s", name, core.show(major), allowed:sub(1, 1),
        allowed:sub(2))
    end
    blackwell.check_tma_tensor_alignment(name, dtype, size[major],
                                         major:upper())
  end
  check("A", a_dtype, a_major, "mk")
  check("B", b_dtype, b_major, "nk")
  if d_dtype then
    check(output_tensor_name or "D", d_dtype, d_major, "mn")
  end
end

--- Returns the permutation for a tiled mma.sync with scale factors on sm_120.
---@param tile_shape_mnk integer[]
---@param sf_vec_size integer 16 or 32
---@param use_mxf8f6f4 boolean true if operands occupy a byte per element, so
-- that K is 32, not 64
---@return table {M, layout of N, K} for cute.make_tiled_mma
function blackwell.get_permutation_mnk(tile_shape_mnk, sf_vec_size,
                                       use_mxf8f6f4)
  if sf_vec_size ~= 16 and sf_vec_size ~= 32 then
    refuse("get_permutation_mnk", "sf_vec_size is %s; it may be 16 or 32",
           core.show(sf_vec_size))
  end
  return {math.min(tile_shape_mnk[1], 128),
          core.make_layout({8, 2, 2}, {1, 16, 8}), use_mxf8f6f4 and 32 or 64}
end

return sign.public("utils.blackwell_helpers.", blackwell, [[
  get_smem_layout_atom_ab(major_mode: string, element_type: dtype|string,
    smem_shape_mn_k: table)
  make_smem_layout_a(tiled_mma: tiled, mma_tiler_mnk: table,
    a_dtype: dtype|string, num_stages: integer, opts?: {is_k_major})
  make_smem_layout_b(tiled_mma: tiled, mma_tiler_mnk: table,
    b_dtype: dtype|string, num_stages: integer, opts?: {is_k_major})
  make_smem_layout_c(tiled_mma: tiled, mma_tiler_mnk: table,
    c_dtype: dtype|string, num_stages: integer, is_m_major: boolean)
  get_smem_layout_atom_epi(layout: string|LayoutEnum,
    element_type: dtype|string, epi_tile: table)
  make_smem_layout_epi(epi_dtype: dtype|string, epi_layout: string|LayoutEnum,
    epi_tile: table, epi_stage: integer)
  make_trivial_tiled_mma(a_dtype: dtype|string, b_dtype: dtype|string,
    a_leading_mode: string, b_leading_mode: string, acc_dtype: dtype|string,
    cta_group: integer, mma_tiler_mn: table, a_source?: string)
  make_blockscaled_trivial_tiled_mma(a_dtype: dtype|string,
    b_dtype: dtype|string, a_leading_mode: string, b_leading_mode: string,
    sf_dtype: dtype|string, sf_vec_size: integer, cta_group: integer,
    mma_tiler_mn: table)
  sm103_make_blockscaled_trivial_tiled_mma(sf_dtype: dtype|string,
    sf_vec_size: integer, cta_group: integer, mma_tiler_mn: table,
    a_source?: string)
  BlockScaledBasicChunk(sf_vec_size: integer, major_mode?: string)
  tile_atom_to_shape_SF(shape: table, sf_vec_size: integer)
  make_smem_layout_sfa(tiled_mma: tiled, mma_tiler_mnk: table,
    sf_vec_size: integer, num_stages: integer)
  make_smem_layout_sfb(tiled_mma: tiled, mma_tiler_mnk: table,
    sf_vec_size: integer, num_stages: integer)
  make_tmem_layout_sfa(tiled_mma: tiled, mma_tiler_mnk: table,
    sf_vec_size: integer, smem_layout: layout)
  make_tmem_layout_sfb(tiled_mma: tiled, mma_tiler_mnk: table,
    sf_vec_size: integer, smem_layout: layout)
  compute_tmem_cols_from_layout(layout: layout, dtype: dtype|string)
  get_num_tmem_alloc_cols(tmem_tensors: table|tensor, rounding?: boolean)
  compute_acc_tmem_cols_per_stage(cta_tile_m: integer, cta_tile_n: integer,
    use_2cta: boolean, mma_n: integer, transform_a_source_is_tmem: boolean)
  compute_epilogue_tile_size(cta_tile_m: integer, cta_tile_n: integer,
    use_2cta: boolean, elem_width_d: integer, elem_width_c?: integer,
    d_is_m_major?: boolean, c_is_m_major?: boolean)
  compute_epilogue_tile_shape(cta_tile_shape: table, use_2cta_instrs: boolean,
    layout_d: string|LayoutEnum, elem_ty_d: dtype|string,
    opts?: {layout_c elem_ty_c})
  get_tmem_load_op(cta_tile_shape: table, layout_d: string|LayoutEnum,
    elem_ty_d: dtype|string, elem_ty_acc: dtype|string, epi_tile: table,
    use_2cta_instrs: boolean, opts?: {tmem_warp_shape_mn})
  get_smem_store_op(layout_d: string|LayoutEnum, elem_ty_d: dtype|string,
    elem_ty_acc: dtype|string, tiled_tmem_load)
  sm120_get_smem_store_op(layout_d: string|LayoutEnum, elem_ty_d: dtype|string,
    elem_ty_acc: dtype|string)
  check_int8_mma_arch(ab_dtype: dtype|string, target_arch: string)
  get_tma_aligned_contiguous_elements(elem_ty: dtype|string)
  check_tma_tensor_alignment(tensor_name: string, elem_ty: dtype|string,
    contiguous_dim_size: integer, contiguous_dim_name: string)
  check_gemm_tma_alignment(m: integer, n: integer, k: integer,
    a_dtype: dtype|string, b_dtype: dtype|string, d_dtype?: dtype|string,
    a_major: string, b_major: string, d_major?: string,
    output_tensor_name?: string)
  get_permutation_mnk(tile_shape_mnk: table, sf_vec_size: integer,
    use_mxf8f6f4: boolean)
]])
-- SPDX-License-Identifier: MIT
