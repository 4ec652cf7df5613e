--- The functions of cute.utils: allocation of shared memory, canonical
-- shared-memory layouts, atoms chosen by types, properties of the hardware, and
-- layouts as LaTeX. cute.persistent_schedulers has tile schedulers, and
-- cute.tensormaps has functions that make tensor maps in a kernel.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local blackwell = require "cute.blackwell"
local hopper = require "cute.hopper"
local smem = require "cute.smem"

local utils = {}

---------------------------------------------------------------------------
-- Shared memory
---------------------------------------------------------------------------

--- Returns the bytes of shared memory that a block can allocate.
---@param arch? string such as "sm_80"; "sm_90a" if absent
---@return integer
function utils.get_smem_capacity_in_bytes(arch)
  return core.smem_budget(require "cute.lang.kernel".device(
    "sim:" .. (arch or "sm_90a")).sm)
end

--- Returns the bytes of shared memory of a traced or prepared kernel.
---@param program table from call:trace, call:compile or cute.compile
---@return integer
function utils.get_kernel_smem_size(program)
  return (program.program or program).info.smem
end

local Allocator = {}
Allocator.__index = Allocator

--- Makes an allocator of shared memory for the kernel being traced. Allocations
-- count against the device's limit, and the simulator checks every access to
-- them.
function utils.SmemAllocator() return setmetatable({}, Allocator) end

local function check_count(n)
  if math.type(n) == "integer" and n >= 1 then return n end
  core.fail("bad-argument", ("allocate: %s elements"):format(core.show(n)))
end

--- Allocates n bytes, one element of a type, or a structure (cute.struct).
-- Returns a pointer or, for a structure, pointers to its fields.
---@param what integer|cute.DType|table
---@param byte_alignment? integer
function Allocator:allocate(what, byte_alignment)  -- luacheck: ignore self
  local arch = require "cute.arch"
  local structs = require "cute.smemstruct"
  if structs.is(what) then
    check_count(what.size)
    return what:allocate(byte_alignment)
  end
  if core.typename(what) == "dtype" then
    return arch.alloc_smem(what, 1, byte_alignment)
  end
  return arch.alloc_smem(core.u8, check_count(what), byte_alignment)
end

--- Allocates n elements, and returns a pointer to them.
---@param dtype cute.DType
---@param n? integer 1 if absent
---@param byte_alignment? integer
function Allocator:allocate_array(dtype, n, byte_alignment)
  return require "cute.arch".alloc_smem(dtype, check_count(n or 1),
                                        byte_alignment), self
end

--- Allocates a tensor with this layout. If a swizzle is given, the tensor is
-- swizzled.
---@param dtype cute.DType
---@param layout cute.Layout
---@param byte_alignment? integer
---@param swizzle? table
function Allocator:allocate_tensor(dtype, layout, byte_alignment, swizzle)
  if swizzle then layout = core.composition(swizzle, layout) end
  return core.make_smem_tensor(dtype, layout, byte_alignment), self
end

---------------------------------------------------------------------------
-- Canonical shared layouts
---------------------------------------------------------------------------

local function bits_of(dtype)
  return type(dtype) == "string" and core[dtype].bits or dtype.bits
end

local function major_extent(major, shape)
  if major ~= "K" and major ~= "MN" then
    core.fail("unknown-name", ("no major '%s' (K or MN)"):format(
      tostring(major)))
  end
  return core.size(shape[major == "K" and 2 or 1])
end

--- Returns the layout atom in shared memory for an operand with contiguous mode
-- `major`. Also returns the name of the atom's swizzle, which is the widest
-- that the extent allows.
---@param major "K"|"MN"
---@param dtype cute.DType
---@param smem_shape_mn_k integer[] {M or N, K} of the tile
---@return cute.Layout atom, string kind
function utils.get_smem_layout_atom_ab(major, dtype, smem_shape_mn_k)
  local bits = bits_of(dtype)
  local kind = smem.widest(major_extent(major, smem_shape_mn_k) * bits)
  return smem.atom(major, kind, bits), kind
end

--- Returns the layout atom in shared memory for a tile of the result.
---@param layout "row"|"col" says which mode of C is contiguous: the second or
-- the first
---@param dtype cute.DType
---@param epi_tile integer[] {M, N}
---@return cute.Layout atom, string kind
function utils.get_smem_layout_atom_epi(layout, dtype, epi_tile)
  return utils.get_smem_layout_atom_ab(smem.major(layout), dtype, epi_tile)
end

--- Repeats the layout atom over a tile and its stages. Returns the layout (M or
-- N, K, stages).
---@param leading_mode "K"|"MN"
---@param smem_tile_shape integer[] {M or N, K}
---@param dtype cute.DType
---@param num_stages integer
---@return cute.Layout
function utils.make_smem_layout(leading_mode, smem_tile_shape, dtype,
                                num_stages)
  local atom = utils.get_smem_layout_atom_ab(leading_mode, dtype,
                                             smem_tile_shape)
  local order = leading_mode == "K" and {0, 1, 2} or {1, 0, 2}
  return core.tile_to_shape(atom, {smem_tile_shape[1], smem_tile_shape[2],
                                   num_stages}, order)
end

local function operand_layout(mode)
  return function(_, mma_tiler_mnk, dtype, num_stages, opts)
    local major = opts and opts.is_k_major == false and "MN" or "K"
    local tile = {mma_tiler_mnk[mode], mma_tiler_mnk[3]}
    return utils.make_smem_layout(major, tile, dtype, num_stages)
  end
end

--- Returns the shared-memory layout of operand A of a tile: (M, K, stages).
---@param tiled_mma table
---@param mma_tiler_mnk integer[]
---@param dtype cute.DType
---@param num_stages integer
---@param opts? {is_k_major: boolean} true if absent
---@return cute.Layout
utils.make_smem_layout_a = operand_layout(1)

--- Returns the shared-memory layout of operand B of a tile: (N, K, stages).
utils.make_smem_layout_b = operand_layout(2)

--- Returns the shared-memory layout of tiles of the result: (M, N, stages).
---@param dtype cute.DType
---@param layout "row"|"col"
---@param epi_tile integer[] {M, N}
---@param epi_stage integer
---@return cute.Layout
function utils.make_smem_layout_epi(dtype, layout, epi_tile, epi_stage)
  return utils.make_smem_layout(smem.major(layout), epi_tile, dtype, epi_stage)
end

---------------------------------------------------------------------------
-- Atoms by types
---------------------------------------------------------------------------

local SHORT = {f16 = "F16", bf16 = "BF16", tf32 = "TF32", f32 = "F32",
               e4m3 = "E4M3", e5m2 = "E5M2", i8 = "S8", u8 = "U8",
               i32 = "S32", f64 = "F64"}

local function short(dtype)
  local name = SHORT[tostring(dtype)]
  return name or core.fail("type-mismatch", "tensor cores do not support "
    .. tostring(dtype))
end

-- Returns the name of sm_80's mma.sync atom for these types. The atom's K
-- covers 256 bits of elements (128 for tf32).
local function warp_atom(a, b, acc)
  local k = 256 // a.bits
  local m, n = 16, 8
  if tostring(a) == "f64" then m, n, k = 8, 8, 4 end
  local s = short(acc)
  return ("SM80_%dx%dx%d_%s%s%s%s_TN"):format(m, n, k, s, short(a), short(b),
                                              s)
end

--- Makes a tiled MMA for these types. It uses warpgroup instructions of sm_90
-- or, with opts.arch = "sm_80", warp-wide instructions, which need K-major
-- operands.
---@param a_dtype cute.DType
---@param b_dtype cute.DType
---@param a_leading_mode "K"|"MN"
---@param b_leading_mode "K"|"MN"
---@param acc_dtype cute.DType
---@param atom_layout_mnk integer[]
---@param tiler_mn integer[]
---@param opts? {a_source: string, arch: string} "smem" and "sm_90a" if absent
---@return table tiled_mma
function utils.make_trivial_tiled_mma(a_dtype, b_dtype, a_leading_mode,
                                      b_leading_mode, acc_dtype,
                                      atom_layout_mnk, tiler_mn, opts)
  opts = opts or {}
  local sm = tonumber((opts.arch or "sm_90a"):match "%d+")
  if core.has(sm, "wgmma") then
    return hopper.make_trivial_tiled_mma(a_dtype, b_dtype, a_leading_mode,
      b_leading_mode, acc_dtype, atom_layout_mnk, tiler_mn,
      (opts.a_source or "smem"):upper())
  end
  if a_leading_mode ~= "K" or b_leading_mode ~= "K" then
    core.fail("type-mismatch", "warp-level MMAs need K-major operands")
  end
  return core.make_tiled_mma(core.make_mma_atom(
    warp_atom(a_dtype, b_dtype, acc_dtype)), atom_layout_mnk)
end

--- Functions of cute.utils.hopper_helpers.
utils.get_smem_store_op = hopper.get_smem_store_op
utils.compute_tile_shape_or_override = hopper.compute_tile_shape_or_override

--- Copies a tile with all threads of a block. Each thread copies its part of
-- both tensors.
---@param tiled_copy table
---@param src table
---@param dst table
function utils.block_copy(tiled_copy, src, dst)
  local thread = tiled_copy:get_slice((require "cute.arch".thread_idx()))
  core.copy(tiled_copy, thread:partition_S(src), thread:partition_D(dst))
end

---------------------------------------------------------------------------
-- TMA and epilogues of a GEMM
---------------------------------------------------------------------------

local function whole(what, n)
  if math.type(n) == "integer" and n >= 1 then return n end
  core.fail("bad-argument", ("%s must be an integer of 1 or more, not "
    .. "%s"):format(
    what, core.show(n)))
end

-- Returns the TMA load operation for one CTA or for a pair, with or without
-- multicast.
local function tma_op(mcast, pair)
  local cpasync = require "cute.nvgpu.sm90.cpasync"
  local group = pair and 2 or 1
  return mcast and cpasync.CopyBulkTensorTileG2SMulticastOp(group)
    or cpasync.CopyBulkTensorTileG2SOp(group)
end

--- Returns the TMA load operation for an operand, with or without multicast.
---@param mcast boolean
---@param use_2cta_instrs? boolean whether pairs of CTAs execute MMAs
---@param is_b? boolean whether the operand is B, the only one that the pair
-- loads together
---@return table op from cute.nvgpu.cpasync
function utils.get_tma_atom_kind(mcast, use_2cta_instrs, is_b)
  return tma_op(mcast, use_2cta_instrs and is_b)
end

-- Defines a function that returns the TMA load operation for an operand. CTAs
-- along N of a cluster share A, and MMAs along M share B. CTAs along M share
-- B's scale factors, even the two CTAs of one MMA.
local function operand_op(letter)
  return function(cluster_shape_mnk, atom_thr_id)
    local ctas = atom_thr_id and core.size(atom_thr_id) or 1
    for i, name in ipairs {"M", "N"} do
      whole("a cluster's " .. name, cluster_shape_mnk[i])
    end
    local m = cluster_shape_mnk[1]
    if m % ctas ~= 0 then
      core.fail("bad-argument", ("cluster_shape_to_tma_atom_%s: a cluster with "
        .. "%d CTAs along M is not divisible into MMAs of %d CTAs"):format(
        letter, m, ctas))
    end
    local mcast = letter == "A" and cluster_shape_mnk[2] > 1
      or letter == "B" and m > ctas or letter == "SFB" and m > 1
    return tma_op(mcast, ctas == 2)
  end
end

--- Returns the TMA load operation for A in a cluster {M, N, K}: multicast if
-- there are several CTAs along N. atom_thr_id is the layout of the CTAs of an
-- MMA: 2:1 for a pair; if absent, an MMA has one CTA.
---@param cluster_shape_mnk integer[]
---@param atom_thr_id? cute.Layout
---@return table op
utils.cluster_shape_to_tma_atom_A = operand_op "A"

--- Returns the TMA load operation for B in a cluster {M, N, K}: multicast if
-- there are several MMAs along M.
utils.cluster_shape_to_tma_atom_B = operand_op "B"

--- Returns the TMA load operation for B's scale factors in a cluster {M, N, K}:
-- multicast if there are several CTAs along M.
utils.cluster_shape_to_tma_atom_SFB = operand_op "SFB"

--- Reports whether an MMA's tile has M = 64 or 128 for each CTA. If pairs of
-- CTAs execute MMAs, also requires that the cluster consists of whole pairs.
---@param mma_tiler_mnk integer[]
---@param cluster_shape_mn integer[]
---@param use_2cta_instrs? boolean
---@return boolean
function utils.is_valid_mma_tiler_and_cluster_shape(mma_tiler_mnk,
                                                    cluster_shape_mn,
                                                    use_2cta_instrs)
  local ctas = use_2cta_instrs and 2 or 1
  local m = whole("the tile's M", mma_tiler_mnk[1])
  return whole("the cluster's M", cluster_shape_mn[1]) % ctas == 0
    and (m == 64 * ctas or m == 128 * ctas)
end

-- Reports whether the contiguous extent of matrix `name` is a multiple of 16
-- bytes, as TMA requires.
local function rows_fit(problem, name, modes)
  local dtype, major = problem[name .. "_dtype"], problem[name .. "_major"]
  if core.typename(dtype) ~= "dtype" then
    core.fail("bad-argument", ("is_valid_tensor_alignment: %s_dtype must be a "
      .. "type, not %s"):format(name, core.show(dtype)))
  end
  if major ~= modes[1] and major ~= modes[2] then
    core.fail("unknown-name", ("is_valid_tensor_alignment: %s_major must be "
      .. "'%s' or '%s', not "
      .. "%s"):format(name, modes[1], modes[2], core.show(major)))
  end
  return whole(major:upper(), problem[major]) * dtype.bits % 128 == 0
end

--- Reports whether TMA can read A (M,K) and B (N,K) and write C (M,N). Each
-- matrix is contiguous along its major mode "m", "n" or "k". The extent of this
-- mode must be a multiple of 16 bytes.
---@param problem table {m: integer, n: integer, k: integer,
-- a_dtype: cute.DType, b_dtype: cute.DType, c_dtype: cute.DType,
-- a_major: string, b_major: string, c_major: string}
---@return boolean
function utils.is_valid_tensor_alignment(problem)
  local a = rows_fit(problem, "a", {"m", "k"})
  local b = rows_fit(problem, "b", {"n", "k"})
  return rows_fit(problem, "c", {"m", "n"}) and a and b
end

--- Partitions the store of accumulators to shared memory for thread tidx.
-- Returns the tiled copy, the registers that it reads, and the part of sC that
-- it writes.
---@param tiled_mma table the MMA of the accumulators
---@param tRS_rC table the accumulators in registers, in sC's type
---@param tidx integer|cute.Value
---@param sC table (EM,EN,stages...) in shared memory
---@param layout_c "row"|"col" the layout of sC
---@return table tiled_copy_r2s, table tRS_rC, table tRS_sC
function utils.epilog_smem_copy_and_partition(tiled_mma, tRS_rC, tidx, sC,
                                              layout_c)
  local r2s = core.make_tiled_copy_C(
    utils.get_smem_store_op(layout_c, sC.element_type), tiled_mma)
  local thread = r2s:get_slice(tidx)
  return r2s, thread:retile(tRS_rC), thread:partition_D(sC)
end

--- Partitions the store of a result to global memory, in tiles of shape
-- epi_tile. For a TMA atom, returns the atom's parts of sC and of the
-- coordinates gC, ((TMA,TMA_Iter),rest...). For a TiledCopy, returns thread
-- tidx's registers of one tile and its parts of gC, (CPY,CPY_M,CPY_N,rest...).
---@param tidx integer|cute.Value
---@param atom table a TMA atom for stores, or a TiledCopy
---@param gC table (M,N,...)
---@param epi_tile any {EM, EN}
---@param sC? table (EM,EN,stages...), for TMA
---@return table atom, table source, table destination
function utils.epilog_gmem_copy_and_partition(tidx, atom, gC, epi_tile, sC)
  local tiles = core.flat_divide(gC, epi_tile)     -- (EM,EN,m,n,...)
  if core.typename(atom) == "tiled" then
    local part = atom:get_slice(tidx):partition_D(tiles)
    local first = {core._, core._, core._}
    for i = 4, core.rank(part) do first[i] = 0 end
    return atom, core.make_fragment_like(part(table.unpack(first))), part
  end
  if not sC then
    core.fail("bad-argument", "epilog_gmem_copy_and_partition: sC is nil; a "
      .. "TMA store needs the tensor in shared memory")
  end
  local s, g = require "cute.nvgpu.sm90.cpasync".tma_partition(atom, 0,
    core.make_layout(1), core.group_modes(sC, 0, 2),
    core.group_modes(tiles, 0, 2))
  return atom, s, g
end

---------------------------------------------------------------------------
-- The hardware
---------------------------------------------------------------------------

local Info = {}
Info.__index = Info

-- Returns the properties of the GPU that the simulator models.
local function simulated()
  local targets = require "cute.targets"
  local card = targets.H100
  return {name = "simulator", arch = card.arch, sms = card.sms,
          l2 = card.l2_bytes}
end

--- Returns information about the GPU. On a machine without a GPU, returns
-- information about an H100, which the simulator models, and the reason why
-- there is no GPU. Returns nil and a message if there are GPUs, but none with
-- this number.
---@param device_id? integer 0 if absent
---@return table|nil
---@return string|nil message
function utils.HardwareInfo(device_id)
  local gpu, id = require "cute.gpu", device_id or 0
  local info, message = gpu.info(id)
  if not info and id ~= 0 and gpu.available() then return nil, message end
  return setmetatable({info = info or simulated(), device = info and id},
                      Info), message
end

--- Returns the number of bytes of the GPU's L2 cache.
function Info:get_l2_cache_size_in_bytes() return self.info.l2 end
--- Returns the number of the GPU's multiprocessors.
function Info:get_device_multiprocessor_count() return self.info.sms end
--- Returns the GPU's architecture, such as "sm_90a".
function Info:get_arch() return self.info.arch end

--- Returns how many clusters of this size the GPU runs at once, with one block
-- on each multiprocessor, as the driver reports. Without a GPU, returns the
-- number for an H100. Returns nil and a message if the GPU does not support
-- such clusters.
---@param cluster_size integer number of blocks, 1 to 16
---@return integer?
---@return string? message
function Info:get_max_active_clusters(cluster_size)
  require "cute.lang.kernel".cluster(cluster_size)
  if self.device then
    return require "cute.gpu".clusters(cluster_size, self.device)
  end
  return require "cute.targets".clusters(self.info.sms, cluster_size)
end

function Info:__tostring()
  return ("%s (%s): %d multiprocessors"):format(self.info.name,
    self.info.arch, self.info.sms)
end

sign.class("SmemAllocator", Allocator, [[
  allocate(what: integer|dtype|struct, byte_alignment?: integer)
  allocate_array(dtype: dtype|string, n?: integer, byte_alignment?: integer)
  allocate_tensor(dtype: dtype|string, layout, byte_alignment?: integer,
    swizzle?)
]])
sign.class("HardwareInfo", Info, [[
  get_l2_cache_size_in_bytes() get_device_multiprocessor_count() get_arch()
  get_max_active_clusters(cluster_size: integer)
]])

for _, part in ipairs {"cute.persistent_schedulers",
                       "cute.clc_schedulers", "cute.grouped",
                       "cute.tmem_allocator", "cute.mixed_input",
                       "cute.tensormaps"} do
  for name, f in pairs(require(part)) do utils[name] = f end
end
for _, name in ipairs {"get_smem_layout_atom", "get_smem_store_op",
                       "make_smem_layout_a", "make_smem_layout_b",
                       "make_smem_layout_epi", "make_trivial_tiled_mma"} do
  utils["sm90_" .. name] = hopper[name]
end
for _, name in ipairs {
  "BlockScaledBasicChunk", "tile_atom_to_shape_SF", "make_smem_layout_sfa",
  "make_smem_layout_sfb", "make_tmem_layout_sfa", "make_tmem_layout_sfb",
  "make_blockscaled_trivial_tiled_mma", "get_num_tmem_alloc_cols",
  "compute_tmem_cols_from_layout", "compute_epilogue_tile_shape",
  "get_permutation_mnk", "get_tmem_load_op"} do
  utils[name] = blackwell[name]
end
for _, part in ipairs {"cute.blackwell_sparse", "cute.blackwell_scales"} do
  for name, f in pairs(require(part)) do blackwell[name] = f end
end
utils.blackwell_helpers = sign.namespace(blackwell,
                                         "cute.utils.blackwell_helpers")
--- The ways in which a mixed-input GEMM prepares A: it converts A, or converts
-- and scales it.
utils.TransformMode = {ConvertOnly = "ConvertOnly",
                       ConvertScale = "ConvertScale"}
utils.LayoutEnum = require "cute.layoutenum"
utils.hopper_helpers = sign.namespace(hopper, "cute.utils.hopper_helpers")

return sign.public("utils.", utils, [[
  get_smem_capacity_in_bytes(arch?: string)
  get_kernel_smem_size(program: program|prepared)
  SmemAllocator() HardwareInfo(device_id?: integer)
  get_smem_layout_atom_ab(major: string, dtype: dtype|string,
    smem_shape_mn_k: table)
  get_smem_layout_atom_epi(layout: string|LayoutEnum, dtype: dtype|string,
    epi_tile: table)
  make_smem_layout(leading_mode: string, smem_tile_shape: table,
    dtype: dtype|string, num_stages: integer)
  make_smem_layout_a(tiled_mma?: tiled, mma_tiler_mnk: table,
    dtype: dtype|string, num_stages: integer, opts?: {is_k_major})
  make_smem_layout_b(tiled_mma?: tiled, mma_tiler_mnk: table,
    dtype: dtype|string, num_stages: integer, opts?: {is_k_major})
  make_smem_layout_epi(dtype: dtype|string, layout: string|LayoutEnum,
    epi_tile: table, epi_stage: integer)
  make_trivial_tiled_mma(a_dtype: dtype, b_dtype: dtype, a_leading_mode: string,
    b_leading_mode: string, acc_dtype: dtype, atom_layout_mnk: table,
    tiler_mn: table, opts?: {a_source arch})
  block_copy(tiled_copy: tiled, src: tensor, dst: tensor)
  get_tma_atom_kind(mcast: boolean, use_2cta_instrs?: boolean, is_b?: boolean)
  cluster_shape_to_tma_atom_A(cluster_shape_mnk: table, atom_thr_id?: layout)
  cluster_shape_to_tma_atom_B(cluster_shape_mnk: table, atom_thr_id?: layout)
  cluster_shape_to_tma_atom_SFB(cluster_shape_mnk: table, atom_thr_id: layout)
  is_valid_mma_tiler_and_cluster_shape(mma_tiler_mnk: table,
    cluster_shape_mn: table, use_2cta_instrs?: boolean)
  is_valid_tensor_alignment(problem: {a_dtype a_major b_dtype b_major c_dtype
    c_major k m n})
  epilog_smem_copy_and_partition(tiled_mma: tiled, tRS_rC: tensor,
    tidx: integer|value, sC: tensor, layout_c: string|LayoutEnum)
  epilog_gmem_copy_and_partition(tidx: integer|value, atom: tma_atom|tiled,
    gC: tensor, epi_tile, sC?: tensor)
]])
-- SPDX-License-Identifier: MIT
