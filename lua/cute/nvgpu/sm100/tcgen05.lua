--- cute.nvgpu.tcgen05: MMAs with accumulators in tensor memory, and copies
-- between tensor memory and registers (sm_100a and its family).
--
-- One thread issues an MMA for its block. The MMA reads B from shared memory,
-- and A from shared memory or tensor memory, through descriptors as for wgmma.
-- The MMAs of a thread execute in order, asynchronously:
--
--     mma:set(tcgen05.Field.ACCUMULATE, k:gt(0))  -- D = A * B, then D += A * B
--     cute.gemm(mma, acc, tCrA(_, _, _, stage), tCrB(_, _, _, stage), acc)
--     tcgen05.commit(bar)    -- arrives at an mbarrier when they have completed
--
-- Threads that wait at the mbarrier may load the accumulators. Warp w of a
-- warpgroup accesses lanes 32 w to 32 w + 31:
--
--     local load = tcgen05.make_tmem_copy(cute.make_copy_atom(
--       tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cute.f32), tAcc)
--     cute.copy(load, thr:partition_S(tAcc), rAcc)
--     cute.arch.fence_view_async_tmem_load()
local core = require "cute.core"
local descriptor = require "cute.nvgpu.sm100.descriptor"
local sign = require "cute.lang.signature"
local smem = require "cute.smem"
local tmem = require "cute.nvgpu.sm100.tmem"

local tcgen05 = {}

local function dtype_of(x)
  return type(x) == "string" and core.find_dtype(x)
    or type(x) ~= "string" and x
    or core.fail("unknown-name", ("no element type '%s'"):format(x))
end

local function refuse(op, text, ...)
  core.fail("bad-argument", ("%s: "):format(op) .. text:format(...))
end

local function enum(names)
  local t = {}
  for name in names:gmatch "%S+" do t[name] = name end
  return t
end

tcgen05.OperandMajorMode = enum "MN K"
tcgen05.OperandSource = enum "TMEM SMEM"
--- The number of blocks that execute an MMA together: one block, or a pair of
-- blocks of a cluster.
tcgen05.CtaGroup = {ONE = 1, TWO = 2}
tcgen05.SparseMetadataFormat = enum "TID"
tcgen05.Field = enum "ACCUMULATE SFA SFB"
tcgen05.Pack = enum "NONE PACK_16b_IN_32b"
tcgen05.Unpack = enum "NONE UNPACK_32b_IN_16b"
--- The number of times that a copy repeats its shape (lanes x bits) along the
-- columns.
tcgen05.Repetition = {x1 = 1, x2 = 2, x4 = 4, x8 = 8, x16 = 16, x32 = 32,
                      x64 = 64, x128 = 128}
--- The kinds of canonical layouts, as for wgmma. SW128_32B swizzles units of 32
-- bytes, for MN-major tf32.
tcgen05.SmemLayoutAtomKind = enum [[MN_INTER MN_SW32 MN_SW64 MN_SW128
  MN_SW128_32B K_INTER K_SW32 K_SW64 K_SW128]]

--- Returns the smallest tile of a canonical layout of shared memory, for
-- cute.tile_to_shape; see cute.nvgpu.warpgroup.make_smem_layout_atom.
---@param kind string from SmemLayoutAtomKind
---@param element_type cute.DType
---@return cute.Layout (rows,k)
function tcgen05.make_smem_layout_atom(kind, element_type)
  local major, swizzle = kind:match "^(%u+)_(%u+.*)$"
  if not tcgen05.SmemLayoutAtomKind[kind] then
    core.fail("unknown-name", ("no shared-memory layout '%s' (%s)"):format(
      kind, "K_ or MN_ and INTER, SW32, SW64, SW128"))
  end
  return smem.atom(major, swizzle, dtype_of(element_type).bits)
end

--- Returns the smallest tile of a canonical layout of a sparse operand in
-- shared memory, for tile_to_mma_shape. The swizzle of the result counts
-- elements of the dense operand.
---@param kind string from SmemLayoutAtomKind, such as "K_SW128"
---@param element_type cute.DType
---@param sparsity? integer number of dense elements for each stored one, 2 when
-- absent
---@return cute.Layout
function tcgen05.make_sparse_smem_layout_atom(kind, element_type, sparsity)
  sparsity = sparsity or 2
  local op, bits = "make_sparse_smem_layout_atom", dtype_of(element_type).bits
  local major, swizzle = kind:match "^(%u+)_(%u+.*)$"
  if math.type(sparsity) ~= "integer" or sparsity < 1
    or sparsity & sparsity - 1 ~= 0 or bits % sparsity ~= 0 then
    refuse(op, "a sparsity of %s; 2 and 4 exist", core.show(sparsity))
  elseif not major then
    refuse(op, "no kind %s", core.show(kind))
  end
  local dense = core.get_nonswizzle_portion(smem.atom(major, swizzle, bits))
  local l = core.blocked_product(core.make_layout {1, sparsity}, dense)
  local sw, own = smem.swizzle(swizzle), bits // sparsity
  sw = own >= 8 and core.upcast(sw, own // 8) or core.downcast(sw, 8 // own)
  return core.composition(sw, l)
end

--- Makes the shared-memory layout of an operand's tile by repeating a layout
-- atom. The first mode of the result is the part that one MMA instruction
-- reads.
---@param atom cute.Layout a result of make_smem_layout_atom
---@param mma_tile_shape table ((MMA_MN,MMA_K),MN,K,Rest...), such as
-- tiled_mma:partition_shape_A(tile)
---@param order? table the order in which modes are filled, as in
-- cute.tile_to_shape
---@return cute.Layout ((MMA_MN,MMA_K),MN,K,Rest...)
function tcgen05.tile_to_mma_shape(atom, mma_tile_shape, order)
  local first = type(mma_tile_shape) == "table" and mma_tile_shape[1]
  if type(first) ~= "table" or #first ~= 2 then
    core.bad_argument(2, "a shape ((M,K),M,K)", mma_tile_shape)
  end
  local l = descriptor.tile_to_mma_shape(atom, mma_tile_shape, order)
  local plain = core.get_nonswizzle_portion(l)
  local modes = {core.get(plain, 0)}
  for i = 1, core.rank(plain) - 1 do
    modes[i + 1] = core.coalesce(core.get(plain, i))
  end
  return core.composition(core.get_swizzle(l),
                          core.make_layout(table.unpack(modes)))
end

---------------------------------------------------------------------------
-- MMAs
---------------------------------------------------------------------------

local CUTE = {bf16 = "bfloat16_t", f16 = "half_t", f32 = "float",
              i8 = "int8_t", u8 = "uint8_t", e4m3 = "float_e4m3_t",
              e5m2 = "float_e5m2_t", e3m2 = "float_e3m2_t",
              e2m3 = "float_e2m3_t", e2m1 = "float_e2m1_t"}

local function one_of(op, what, dtype, names)
  local name = tostring(dtype_of(dtype))
  if not (" " .. names .. " "):find(" " .. name .. " ", 1, true) then
    refuse(op, "%s is %s; it may be %s", what, name,
           (names:gsub(" ", ", ")))
  end
  return CUTE[name]
end

-- Checks an instruction's shape (M,N,K) and returns M and N.
local function extents(op, shape, k, cta_group)
  local m, n = shape[1], shape[2]
  local pair = cta_group == 2
  local step = (pair or m == 128) and 16 or 8
  local least = pair and 32 or step
  local good = pair and (m == 128 or m == 256) or not pair
    and (m == 64 or m == 128)
  if not good or math.type(n) ~= "integer" or n % step ~= 0 or n < least
    or n > 256 or (shape[3] or k) ~= k then
    refuse(op, "no instruction of shape %s for %s: M must be %s, N a multiple "
      .. "of %s from %d to 256, K %d", core.show(shape),
      pair and "a pair of CTAs" or "one CTA", pair and "128 or 256"
      or "64 or 128", pair and "16" or "8 (M = 64) or 16 (M = 128)", least, k)
  end
  return m, n
end

local function check_source(op, cta_group, a_src)
  if cta_group ~= 1 and cta_group ~= 2 then
    refuse(op, "cta_group must be CtaGroup.ONE or TWO, not %s",
           core.show(cta_group))
  elseif a_src ~= "SMEM" and a_src ~= "TMEM" then
    refuse(op, "A must come from SMEM or TMEM, not %s", core.show(a_src))
  end
end

-- Raises an error if elements of A have 6 or 4 bits and are in tensor memory.
-- PTX does not document which bits of a byte hold such an element.
local function check_bytes(op, a_src, a)
  if a_src == "TMEM" and a ~= CUTE.e4m3 and a ~= CUTE.e5m2 then
    refuse(op, "A of %s must come from SMEM", a)
  end
end

-- Makes the MMA atom of a family of names, such as "F16BF16".
-- - extents_: the function that checks an instruction's shape.
-- - vs: the block size of the scale factors as the name contains it, such as
--   "16,".
-- - form: "_SPARSE", or nil for a dense A.
local function atom(op, family, types, k, shape, cta_group, a_src, a_major,
                    b_major, extents_, vs, form)
  cta_group, a_src = cta_group or 1, a_src or "SMEM"
  check_source(op, cta_group, a_src)
  local m, n = (extents_ or extents)(op, shape, k, cta_group)
  for _, major in ipairs {a_major or "K", b_major or "K"} do
    if major ~= "K" and major ~= "MN" then
      refuse(op, "the major mode must be K or MN, not %s", core.show(major))
    end
  end
  if a_src == "TMEM" and a_major == "MN" then
    refuse(op, "A in tensor memory must be K-major")
  end
  return core.make_mma_atom(("SM100_MMA_%s%s_%s%s<%s,%d,%d,%s%s,%s>"):format(
    family, cta_group == 2 and "_2x1SM" or "", a_src == "SMEM" and "SS"
    or "TS", form or "", types, m, n, vs or "", a_major or "K", b_major or "K"))
end

--- Makes an MMA of f16 or bf16 with K = 16. Accumulators are f32; with operands
-- of f16 also f16. With CtaGroup.TWO, M is 128 or 256, and each CTA of the pair
-- has half of A's rows and half of B's.
---@param ab_dtype cute.DType
---@param acc_dtype cute.DType
---@param instruction_shape integer[] {64 or 128, N, 16}; for a pair {128 or
-- 256, N, 16}
---@param cta_group? integer from CtaGroup, ONE when absent
---@param a_src? string from OperandSource, SMEM when absent
---@param a_major_mode? string from OperandMajorMode, K when absent
---@param b_major_mode? string
---@return cute.MmaAtom for cute.make_tiled_mma
function tcgen05.MmaF16BF16Op(ab_dtype, acc_dtype, instruction_shape, cta_group,
                              a_src, a_major_mode, b_major_mode)
  local op = "MmaF16BF16Op"
  local ab = one_of(op, "the operands' type", ab_dtype, "f16 bf16")
  local acc = one_of(op, "the accumulators' type", acc_dtype,
                     ab == "half_t" and "f32 f16" or "f32")
  return atom(op, "F16BF16", ("%s,%s,%s"):format(ab, ab, acc), 16,
              instruction_shape, cta_group, a_src, a_major_mode, b_major_mode)
end

--- Makes an MMA of tf32 with K = 8 and f32 accumulators. Shared memory may hold
-- f32.
---@param instruction_shape integer[] {64 or 128, N, 8}; for a pair {128 or
-- 256, N, 8}
---@param cta_group? integer
---@param a_src? string
---@param a_major_mode? string
---@param b_major_mode? string
---@return cute.MmaAtom
function tcgen05.MmaTF32Op(instruction_shape, cta_group, a_src, a_major_mode,
                           b_major_mode)
  return atom("MmaTF32Op", "TF32", "tfloat32_t,tfloat32_t,float", 8,
              instruction_shape, cta_group, a_src, a_major_mode, b_major_mode)
end

--- Makes an MMA of 8-bit floats, e4m3 or e5m2, with K = 32. Accumulators are
-- f32 or f16. With CtaGroup.TWO, each CTA of a pair has half of A's rows and
-- half of B's.
---@param ab_dtype cute.DType
---@param acc_dtype cute.DType
---@param instruction_shape integer[] {64 or 128, N, 32}; for a pair {128 or
-- 256, N, 32}
---@return cute.MmaAtom
function tcgen05.MmaFP8Op(ab_dtype, acc_dtype, instruction_shape, cta_group,
                          a_src, a_major_mode, b_major_mode)
  local op = "MmaFP8Op"
  local ab = one_of(op, "the operands' type", ab_dtype, "e4m3 e5m2")
  local acc = one_of(op, "the accumulators' type", acc_dtype, "f32 f16")
  return atom(op, "F8F6F4", ("%s,%s,%s"):format(ab, ab, acc), 32,
              instruction_shape, cta_group, a_src, a_major_mode, b_major_mode)
end

--- Makes an MMA of 8-, 6- and 4-bit floats in any combination, with K = 32.
-- Accumulators are f32 or f16.
---@return cute.MmaAtom
function tcgen05.MmaF8F6F4Op(a_dtype, b_dtype, acc_dtype, instruction_shape,
                             cta_group, a_src, a_major_mode, b_major_mode)
  local op, all = "MmaF8F6F4Op", "e4m3 e5m2 e3m2 e2m3 e2m1"
  local a = one_of(op, "A's type", a_dtype, all)
  local b = one_of(op, "B's type", b_dtype, all)
  local acc = one_of(op, "the accumulators' type", acc_dtype, "f32 f16")
  check_bytes(op, a_src, a)
  return atom(op, "F8F6F4", ("%s,%s,%s"):format(a, b, acc), 32,
              instruction_shape, cta_group, a_src, a_major_mode, b_major_mode)
end

--- Makes an MMA of i8 or u8 with K = 32 and i32 accumulators.
---@return cute.MmaAtom
function tcgen05.MmaI8Op(ab_dtype, instruction_shape, cta_group, a_src,
                         a_major_mode, b_major_mode)
  local op = "MmaI8Op"
  local ab = one_of(op, "the operands' type", ab_dtype, "i8 u8")
  return atom(op, "S8", ("%s,%s,int32_t"):format(ab, ab), 32,
              instruction_shape, cta_group, a_src, a_major_mode, b_major_mode)
end

-- Checks the shape (M,N,K) of an MMA whose CTAs compute 128 rows each. For a
-- pair of CTAs, M is 256, or also `least` if given. Returns M and N.
local function wide_extents(op, shape, k, cta_group, least)
  local m, n, pair = shape[1], shape[2], cta_group == 2
  local step = pair and 16 or 8
  if m ~= (pair and 256 or 128) and not (pair and m == least)
    or math.type(n) ~= "integer"
    or n % step ~= 0 or n < step or n > 256 or (shape[3] or k) ~= k then
    refuse(op, "no instruction of shape %s for %s: M must be %s, N a multiple "
      .. "of %d up to 256, K %d", core.show(shape),
      pair and "a pair of CTAs" or "one CTA",
      not pair and "128" or least and "128 or 256" or "256", step, k)
  end
  return m, n
end

local function scaled_extents(op, shape, k, cta_group)
  return wide_extents(op, shape, k, cta_group, 128)
end

-- Makes an MMA with a sparse A. The metadata of these types can only have the
-- format TID.
local function sparse(op, family, types, k, shape, cta_group, a_src, a_major,
                      b_major, metadata)
  if metadata and metadata ~= "TID" then
    refuse(op, "the metadata must have the format TID, not %s",
           core.show(metadata))
  end
  return atom(op, family, types, k, shape, cta_group, a_src, a_major, b_major,
              wide_extents, nil, "_SPARSE")
end

--- Makes an MMA of f16 or bf16 with a sparse A and K = 32. A stores 2 of every
-- 4 elements along K. The metadata is in tensor memory:
--
--     cute.gemm(mma, acc, {tCrA, tCtE}, tCrB, acc)
---@param ab_dtype cute.DType
---@param acc_dtype cute.DType f32, or f16 for operands of f16
---@param instruction_shape integer[] {128, N, 32}; {256, N, 32} for a pair
---@param cta_group? integer from CtaGroup, ONE when absent
---@param a_src? string from OperandSource, SMEM when absent
---@param a_major_mode? string from OperandMajorMode, K when absent
---@param b_major_mode? string
---@param sparse_metadata_format? string from SparseMetadataFormat: TID
---@return cute.MmaAtom
function tcgen05.MmaF16BF16SparseOp(ab_dtype, acc_dtype, instruction_shape,
    cta_group, a_src, a_major_mode, b_major_mode, sparse_metadata_format)
  local op = "MmaF16BF16SparseOp"
  local ab = one_of(op, "the operands' type", ab_dtype, "f16 bf16")
  local acc = one_of(op, "the accumulators' type", acc_dtype,
                     ab == "half_t" and "f32 f16" or "f32")
  return sparse(op, "F16BF16", ("%s,%s,%s"):format(ab, ab, acc), 32,
                instruction_shape, cta_group, a_src, a_major_mode,
                b_major_mode, sparse_metadata_format)
end

--- Makes an MMA of 8-bit floats, e4m3 or e5m2, with a sparse A and K = 64, like
-- MmaF16BF16SparseOp. cute.make_mma_atom makes other sparse MMAs, such as
-- "SM100_MMA_S8_SS_SPARSE<int8_t,int8_t,int32_t,128,64,K,K>".
---@param ab_dtype cute.DType
---@param acc_dtype cute.DType f32 or f16
---@param instruction_shape integer[] {128, N, 64}; {256, N, 64} for a pair
---@return cute.MmaAtom
function tcgen05.MmaFP8SparseOp(ab_dtype, acc_dtype, instruction_shape,
    cta_group, a_src, a_major_mode, b_major_mode, sparse_metadata_format)
  local op = "MmaFP8SparseOp"
  local ab = one_of(op, "the operands' type", ab_dtype, "e4m3 e5m2")
  local acc = one_of(op, "the accumulators' type", acc_dtype, "f32 f16")
  return sparse(op, "F8F6F4", ("%s,%s,%s"):format(ab, ab, acc), 64,
                instruction_shape, cta_group, a_src, a_major_mode,
                b_major_mode, sparse_metadata_format)
end

-- Makes an MMA with scale factors of type `sf`. The block size `vs` is passed
-- to `atom`.
local function scaled(op, family, types, sf, k, shape, cta_group, a_src,
                      a_major, b_major, vs)
  return atom(op, family, ("%s,float,float_%s_t"):format(types, sf), k, shape,
              cta_group, a_src, a_major, b_major, scaled_extents, vs)
end

--- Makes an MMA of 8-bit floats, e4m3 or e5m2, with K = 32 and f32
-- accumulators. 32 elements of a row share a scale factor of ue8m0. The scale
-- factors are in tensor memory, and cute.gemm takes them with the operands:
--
--     cute.gemm(mma, acc, {tCrA, tCtSFA}, {tCrB, tCtSFB}, acc)
---@param ab_dtype cute.DType
---@param instruction_shape integer[] {128, N, 32}; for a pair also {256, N, 32}
---@param cta_group? integer from CtaGroup, ONE when absent
---@param a_src? string from OperandSource, SMEM when absent
---@param a_major_mode? string from OperandMajorMode, K when absent
---@param b_major_mode? string
---@return cute.MmaAtom
function tcgen05.MmaMXF8Op(ab_dtype, instruction_shape, cta_group, a_src,
                           a_major_mode, b_major_mode)
  local ab = one_of("MmaMXF8Op", "the operands' type", ab_dtype, "e4m3 e5m2")
  return scaled("MmaMXF8Op", "MXF8F6F4", ab .. "," .. ab, "ue8m0", 32,
                instruction_shape, cta_group, a_src, a_major_mode,
                b_major_mode)
end

--- Makes an MMA of 8-, 6- and 4-bit floats in any combination, like MmaMXF8Op.
-- Each element has a byte in shared memory.
---@return cute.MmaAtom
function tcgen05.MmaMXF8F6F4Op(a_dtype, b_dtype, instruction_shape, cta_group,
                               a_src, a_major_mode, b_major_mode)
  local op, all = "MmaMXF8F6F4Op", "e4m3 e5m2 e3m2 e2m3 e2m1"
  local a = one_of(op, "A's type", a_dtype, all)
  local b = one_of(op, "B's type", b_dtype, all)
  check_bytes(op, a_src, a)
  return scaled(op, "MXF8F6F4", a .. "," .. b, "ue8m0", 32, instruction_shape,
                cta_group, a_src, a_major_mode, b_major_mode)
end

local E2M1 = CUTE.e2m1 .. "," .. CUTE.e2m1

--- Makes an MMA of packed e2m1 with K = 64 and f32 accumulators. 32 elements of
-- a row share a scale factor of ue8m0. Operands are K-major.
---@param instruction_shape integer[] {128, N, 64}; for a pair also {256, N, 64}
---@param cta_group? integer from CtaGroup, ONE when absent
---@param a_src? string from OperandSource, SMEM when absent
---@return cute.MmaAtom
function tcgen05.MmaMXF4Op(instruction_shape, cta_group, a_src)
  return scaled("MmaMXF4Op", "MXF4", E2M1, "ue8m0", 64, instruction_shape,
                cta_group, a_src, "K", "K", "32,")
end

--- Makes an MMA like MmaMXF4Op, but with one scale factor for 16 elements. The
-- factors are e4m3 without sign (this is NVFP4), or ue8m0.
---@param sf_dtype cute.DType e4m3 or ue8m0
---@param instruction_shape integer[] {128, N, 64}; for a pair also {256, N, 64}
---@param cta_group? integer from CtaGroup, ONE when absent
---@param a_src? string from OperandSource, SMEM when absent
---@return cute.MmaAtom
function tcgen05.MmaMXF4NVF4Op(sf_dtype, instruction_shape, cta_group, a_src)
  local op = "MmaMXF4NVF4Op"
  one_of(op, "the scale factors' type", sf_dtype, "e4m3 ue8m0")
  local sf = tostring(dtype_of(sf_dtype)) == "ue8m0" and "ue8m0" or "ue4m3"
  return scaled(op, "MXF4", E2M1, sf, 64, instruction_shape, cta_group, a_src,
                "K", "K", "16,")
end

--- Makes the mbarrier count one arrival when all MMAs and copies that this
-- thread issued so far have completed. mask selects the blocks of the cluster
-- whose mbarriers count the arrival.
---@param mbar_ptr table pointer to an i64 in shared memory
---@param mask? any an integer; only this block when absent
---@param cta_group? integer from CtaGroup
function tcgen05.commit(mbar_ptr, mask, cta_group)
  core.umma_commit(mbar_ptr, mask, cta_group == 2)
end

---------------------------------------------------------------------------
-- Copies
---------------------------------------------------------------------------

-- Defines a function that makes the operation of a load or store. A copy atom
-- is then made from this operation. lanes, bits: the shape of the copy.
local function copy_op(store, lanes, bits, name)
  local most = lanes == 16 and bits > 32 and 8192 or 4096
  return function(repeats, pack)
    repeats = repeats or 1
    if math.type(repeats) ~= "integer" or repeats < 1 or repeats > 128
      or repeats & repeats - 1 ~= 0 or repeats * bits > most then
      refuse(name, "no copy with Repetition.x%s: a power of two up to x%d",
             core.show(repeats), most // bits)
    end
    local packs = store and "UNPACK_32b_IN_16b" or "PACK_16b_IN_32b"
    if pack and pack ~= "NONE" and pack ~= packs then
      refuse(name, "%s is no %s; NONE and %s are", core.show(pack),
             store and "Unpack" or "Pack", packs)
    end
    return {atom = ("SM100_TMEM_%s_%ddp%db%dx%s"):format(
      store and "STORE" or "LOAD", lanes, bits, repeats,
      pack == packs and "_16b" or "")}
  end
end

for _, shape in ipairs {{"32x32b", 32, 32}, {"16x64b", 16, 64},
                        {"16x128b", 16, 128}, {"16x256b", 16, 256},
                        {"16x32bx2", 16, 32}} do
  for _, way in ipairs {"Ld", "St"} do
    local name = way .. shape[1] .. "Op"
    tcgen05[name] = copy_op(way == "St", shape[2], shape[3], name)
  end
end

-- Returns the name of a copy atom, of a tiled copy or of an operation.
local function name_of(x)
  if type(x) == "table" then return x.atom end
  local kind = core.typename(x)
  return (kind:find "atom" or kind:find "tiled") and x.name or ""
end

--- Reports whether an atom loads from tensor memory.
---@return boolean
function tcgen05.is_tmem_load(atom_)
  return (name_of(atom_) or ""):find "TMEM_LOAD" ~= nil
end

--- Reports whether an atom stores to tensor memory.
---@return boolean
function tcgen05.is_tmem_store(atom_)
  return (name_of(atom_) or ""):find "TMEM_STORE" ~= nil
end

--- Returns the shape of a copy of tensor memory (lanes, bits, repetitions).
-- `pack` is "NONE" unless the copy packs two 16-bit values into a register.
---@return integer lanes, integer bits, integer repetitions, string pack
function tcgen05.get_tmem_copy_properties(atom_)
  local lanes, bits, times, pack =
    (name_of(atom_) or ""):match "_(%d+)dp(%d+)b(%d+)x(_?1?6?b?)"
  if not lanes then
    core.fail("bad-argument", ("get_tmem_copy_properties: %s does not copy "
      .. "tensor memory"):format(core.show(atom_)))
  end
  return tonumber(lanes), tonumber(bits), tonumber(times),
    pack == "" and "NONE" or "PACK_16b_IN_32b"
end

--- Makes a tiled copy of a tensor in tensor memory, such as an accumulator
-- (128,N), by four warps. The tile of the copy consists of all 128 lanes (64
-- for atoms of 16 lanes) and of the columns of one instruction.
---@param copy_atom cute.CopyAtom of an operation such as Ld32x32bOp
---@param tmem_tensor cute.Tensor|cute.Layout
---@return cute.TiledCopy of 128 threads
function tcgen05.make_tmem_copy(copy_atom, tmem_tensor)
  -- This call raises an error if the atom does not copy tensor memory.
  tcgen05.get_tmem_copy_properties(copy_atom)
  return tmem.make_copy(copy_atom, core.typename(tmem_tensor) == "layout"
    and tmem_tensor or tmem_tensor.layout)
end

--- Returns the number of columns of tensor memory that a tensor spans.
---@param tmem_tensor cute.Tensor
---@return integer
function tcgen05.find_tmem_tensor_col_offset(tmem_tensor)
  local per = 32 // tmem_tensor.element_type.bits
  local last = core.cosize(tmem_tensor.layout) - 1
  return (last // per & 0xffff) + 1
end

---------------------------------------------------------------------------
-- Copies from shared to tensor memory
---------------------------------------------------------------------------

-- Defines a function that makes an operation of tcgen05.cp. A copy atom is then
-- made from this operation. `factor` says how often each value is copied, each
-- time to another group of 32 lanes.
local function cp_op(name, shape, factor)
  return function(cta_group)
    check_source(name, cta_group, "SMEM")
    return {atom = ("SM100_UTCCP_%s_%dcta"):format(shape, cta_group),
            broadcast_factor = factor}
  end
end

--- Makes the operation that copies 128 lanes of 256 bits from shared to tensor
-- memory. As for all copies of tcgen05.cp, one thread calls cute.copy, and
-- tcgen05.commit follows. cta_group: from CtaGroup.
tcgen05.Cp128x256bOp = cp_op("Cp128x256bOp", "128dp256bit", 1)
--- Makes the operation that copies 128 lanes of 128 bits.
tcgen05.Cp128x128bOp = cp_op("Cp128x128bOp", "128dp128bit", 1)
--- Makes the operation that copies 4 lanes of 256 bits: lanes 0, 32, 64 and 96
-- of a tensor of 128 lanes.
tcgen05.Cp4x256bOp = cp_op("Cp4x256bOp", "4dp256bit", 1)
--- Makes the operation that copies 32 lanes of 128 bits four times, so that
-- every warp's 32 lanes of tensor memory have a copy.
tcgen05.Cp4x32x128bOp = cp_op("Cp4x32x128bOp", "4x32dp128bit", 4)
--- Makes the operation that copies 64 lanes of 128 bits twice: the first 32
-- lanes to those of warps 0 and 2, the others to those of warps 1 and 3.
tcgen05.Cp2x64x128b0213Op = cp_op("Cp2x64x128b0213Op", "2x64dp128bitlw0213", 2)
--- Makes the operation that copies 64 lanes of 128 bits twice: the first 32
-- lanes to those of warps 0 and 1, the others to those of warps 2 and 3.
tcgen05.Cp2x64x128b0123Op = cp_op("Cp2x64x128b0123Op", "2x64dp128bitlw0123", 2)

--- Makes a tiled copy, by one thread, from shared memory to a tensor in tensor
-- memory. First removes the modes of the tensor that have stride 0.
---@param copy_atom cute.CopyAtom of an operation such as Cp4x32x128bOp
---@param tmem_tensor cute.Tensor
---@return cute.TiledCopy of 1 thread; for a pair of CTAs of 2, which copy the
-- same
function tcgen05.make_s2t_copy(copy_atom, tmem_tensor)
  if not name_of(copy_atom):find "UTCCP" then
    refuse("make_s2t_copy", "%s does not copy shared to tensor memory",
           core.show(copy_atom))
  end
  local values = core.coalesce(core.upcast(tmem.bits_of(copy_atom.name),
                                           copy_atom.value_type.bits))
  return core.make_cotiled_copy(copy_atom,
    core.make_layout(core.make_layout(core.size(copy_atom.thr_id), 0), values),
    core.filter_zeros(tmem_tensor.layout))
end

-- Returns the layout of an instruction's source. It maps (row, element of the
-- row) to the index of the value. The atom's layout_tmem has a mode for rows, a
-- mode for the bits of a row, and further modes. A further mode with source
-- offset 0 describes copies of the same rows; any other further mode adds rows.
-- For a copy of 4 lanes, the layout has values for all 128 lanes, but the copy
-- writes only every 32nd lane.
local function source_rows(copy_atom)
  local op = core.make_copy_atom(copy_atom.name, core.b1)
  local src, to = core.get(op.layout_src_tv, 1), op.layout_tmem
  local n, bits = core.size(to, 0), core.size(to, 1)
  local rows = core.rank(src) > 1 and core.size(src, 0) or n
  local shape, stride, step = {rows}, {n // rows}, n * bits
  local per = bits // copy_atom.value_type.bits
  for i = 2, core.rank(to) - 1 do
    if src(step) ~= 0 then
      shape[i], stride[i] = core.size(to, i), step // bits * per
    end
    step = step * core.size(to, i)
  end
  return core.make_layout({shape, per}, {stride, n})
end

--- Makes descriptors of a copy's source in shared memory, for cute.copy. An
-- instruction reads 4 to 128 rows of 16 or 32 bytes. Their layout must be
-- canonical: either a swizzle, or groups of 8 rows with 16 contiguous bytes of
-- each row.
---@param tiled_copy cute.TiledCopy a result of make_s2t_copy
---@param smem_partition cute.Tensor (V,Rest...), a result of tiled_copy's
-- partition_S
---@return cute.Tensor of descriptors (1,Rest...)
function tcgen05.get_s2t_smem_desc_tensor(tiled_copy, smem_partition)
  local name = "get_s2t_smem_desc_tensor"
  if not name_of(tiled_copy):find "UTCCP" then
    refuse(name, "%s does not copy shared to tensor memory",
           core.show(tiled_copy))
  end
  local op = core.make_copy_atom(tiled_copy.name, tiled_copy.value_type)
  -- The swizzle is part of the iterator, so the layout is used without it.
  local plain = core.get_nonswizzle_portion(smem_partition.layout)
  local v = core.composition(core.get(plain, 0), source_rows(op))
  return core.umma_descriptors(name, op.name, core.make_tensor(
    smem_partition.iterator, core.replace(plain, 0, v)), false)
end

--- Moves 8 columns of 32 lanes of tensor memory by one lane (tcgen05.shift of
-- sm_100a, sm_103a and sm_110a). Lane r + 1 gets the values of lane r; the
-- first lane keeps its values. One thread issues the shift. The tensor cores
-- execute it after MMAs that the thread issued before, and before later MMAs.
---@param tmem_ptr cute.Tensor pointer to the first column, at a lane that is
-- a multiple of 32
---@param cta_group? integer from CtaGroup, ONE when absent; for TWO, the
-- columns of both CTAs of a pair move
function tcgen05.shift(tmem_ptr, cta_group)
  cta_group = cta_group or 1
  if cta_group ~= 1 and cta_group ~= 2 then
    refuse("shift", "cta_group must be CtaGroup.ONE or TWO, not %s",
           core.show(cta_group))
  end
  core.effect(cta_group == 2 and "tmem_shift_pair" or "tmem_shift", nil,
              core.tmem_address(tmem_ptr))
end

---------------------------------------------------------------------------
-- Descriptors of shared memory
---------------------------------------------------------------------------

--- Makes the descriptor of the part of an operand in shared memory that one
-- instruction reads. The layout must be canonical, as from tile_to_mma_shape
-- and make_smem_layout_atom.
---@param src cute.Tensor pointer to shared memory, with its swizzle
---@param layout cute.Layout (MN,K) of elements
---@param major string from OperandMajorMode: the contiguous mode
---@param next_src? cute.Tensor the second buffer of an instruction with K = 96
---@return cute.Tensor of one descriptor: (1,1), for cute.gemm
function tcgen05.make_umma_smem_desc(src, layout, major, next_src)
  local op = "make_umma_smem_desc"
  if major ~= "K" and major ~= "MN" then
    refuse(op, "the major mode must be K or MN, not %s", core.show(major))
  elseif next_src then
    refuse(op, "a second buffer is for MMAs with K = 96, which cannot execute")
  elseif core.rank(layout) ~= 2 then
    refuse(op, "%s is not a layout (MN,K)", tostring(layout))
  end
  local t = core.make_tensor(src, core.make_layout(layout,
                                                   core.make_layout(1, 0)))
  return core.umma_descriptors(op, "tcgen05.mma", t, major == "MN")
end

--- Returns the bits of a descriptor. For a tensor of several descriptors,
-- returns those of the first one.
---@param desc cute.Tensor a result of make_umma_smem_desc or make_fragment_A
---@return cute.Value u64
function tcgen05.smem_descriptor_to_int(desc)
  return core.descriptor_bits(desc)
end

--- Makes a descriptor from its bits.
---@param i integer|cute.Value
---@param element_type? cute.DType the operand's type, which cute.gemm checks;
-- f16 when absent
---@return cute.Tensor of one descriptor: (1,1)
function tcgen05.int_to_smem_descriptor(i, element_type)
  return core.descriptor_of(i, dtype_of(element_type or core.f16))
end

--- Adds a mode of stride 0 to the rows of a tensor in shared memory, for a copy
-- that writes each value several times (to several groups of 32 lanes). The
-- mode's extent is the number of copies.
---@param op table such as Cp4x32x128bOp(1)
---@param smem_tensor cute.Tensor ((MN,K),Rest...)
---@return cute.Tensor (((MN,factor),K),Rest...); smem_tensor itself if the
-- factor is 1
function tcgen05.append_s2t_broadcast_mode(op, smem_tensor)
  local name = "append_s2t_broadcast_mode"
  if type(op) ~= "table" or not op.broadcast_factor then
    refuse(name, "%s does not copy shared to tensor memory", core.show(op))
  elseif op.broadcast_factor == 1 then
    return smem_tensor
  end
  local l = smem_tensor.layout
  local first = core.get(l, 0)
  if core.rank(l) < 2 or core.rank(first) ~= 2 then
    refuse(name, "%s is not a layout ((MN,K),Rest...)", tostring(l))
  end
  local mn, rows = core.get(first, 0), {}
  for i = 0, core.rank(mn) - 1 do rows[i + 1] = core.get(mn, i) end
  rows[#rows + 1] = core.make_layout(op.broadcast_factor, 0)
  local modes = {core.make_layout(core.make_layout(table.unpack(rows)),
                                  core.get(first, 1))}
  for i = 1, core.rank(l) - 1 do modes[i + 1] = core.get(l, i) end
  return core.make_tensor(smem_tensor.iterator,
                          core.make_layout(table.unpack(modes)))
end

return sign.public("cute.nvgpu.tcgen05.", tcgen05, [[
  make_smem_layout_atom(kind: string, element_type: dtype|string)
  MmaF16BF16Op(ab_dtype: dtype|string, acc_dtype: dtype|string,
    instruction_shape: table, cta_group?: integer, a_src?: string,
    a_major_mode?: string, b_major_mode?: string)
  MmaTF32Op(instruction_shape: table, cta_group?: integer, a_src?: string,
    a_major_mode?: string, b_major_mode?: string)
  MmaFP8Op(ab_dtype: dtype|string, acc_dtype: dtype|string,
    instruction_shape: table, cta_group?: integer, a_src?: string,
    a_major_mode?: string, b_major_mode?: string)
  MmaF8F6F4Op(a_dtype: dtype|string, b_dtype: dtype|string,
    acc_dtype: dtype|string, instruction_shape: table, cta_group?: integer,
    a_src?: string, a_major_mode?: string, b_major_mode?: string)
  MmaI8Op(ab_dtype: dtype|string, instruction_shape: table,
    cta_group?: integer, a_src?: string, a_major_mode?: string,
    b_major_mode?: string)
  MmaF16BF16SparseOp(ab_dtype: dtype|string, acc_dtype: dtype|string,
    instruction_shape: table, cta_group?: integer, a_src?: string,
    a_major_mode?: string, b_major_mode?: string,
    sparse_metadata_format?: string)
  MmaFP8SparseOp(ab_dtype: dtype|string, acc_dtype: dtype|string,
    instruction_shape: table, cta_group?: integer, a_src?: string,
    a_major_mode?: string, b_major_mode?: string,
    sparse_metadata_format?: string)
  MmaMXF8Op(ab_dtype: dtype|string, instruction_shape: table,
    cta_group?: integer, a_src?: string, a_major_mode?: string,
    b_major_mode?: string)
  MmaMXF8F6F4Op(a_dtype: dtype|string, b_dtype: dtype|string,
    instruction_shape: table, cta_group?: integer, a_src?: string,
    a_major_mode?: string, b_major_mode?: string)
  MmaMXF4Op(instruction_shape: table, cta_group?: integer, a_src?: string)
  MmaMXF4NVF4Op(sf_dtype: dtype|string, instruction_shape: table,
    cta_group?: integer, a_src?: string)
  commit(mbar_ptr: tensor, mask?, cta_group?: integer)
  Ld32x32bOp(repeats?: integer, pack?: string)
  Ld16x64bOp(repeats?: integer, pack?: string)
  Ld16x128bOp(repeats?: integer, pack?: string)
  Ld16x256bOp(repeats?: integer, pack?: string)
  Ld16x32bx2Op(repeats?: integer, pack?: string)
  St32x32bOp(repeats?: integer, unpack?: string)
  St16x64bOp(repeats?: integer, unpack?: string)
  St16x128bOp(repeats?: integer, unpack?: string)
  St16x256bOp(repeats?: integer, unpack?: string)
  St16x32bx2Op(repeats?: integer, unpack?: string)
  is_tmem_load(atom) is_tmem_store(atom) get_tmem_copy_properties(atom)
  make_tmem_copy(copy_atom, tmem_tensor: tensor|layout)
  find_tmem_tensor_col_offset(tmem_tensor: tensor)
  make_sparse_smem_layout_atom(kind: string, element_type: dtype|string,
    sparsity?: integer)
  tile_to_mma_shape(atom: layout, mma_tile_shape, order?)
  Cp128x256bOp(cta_group: integer) Cp128x128bOp(cta_group: integer)
  Cp4x256bOp(cta_group: integer) Cp4x32x128bOp(cta_group: integer)
  Cp2x64x128b0213Op(cta_group: integer) Cp2x64x128b0123Op(cta_group: integer)
  make_s2t_copy(copy_atom, tmem_tensor: tensor)
  get_s2t_smem_desc_tensor(tiled_copy: tiled, smem_partition: tensor)
  append_s2t_broadcast_mode(op, smem_tensor: tensor)
  shift(tmem_ptr: tensor, cta_group?: integer)
  make_umma_smem_desc(src: tensor, layout: layout, major: string,
    next_src?: tensor)
  smem_descriptor_to_int(desc: tensor)
  int_to_smem_descriptor(i: integer|value, element_type?: dtype|string)
]])
-- SPDX-License-Identifier: MIT
