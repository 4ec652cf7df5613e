--- cute.utils: shared memory by the piece, canonical shared layouts, atoms
-- chosen by types, what the hardware is, layouts as LaTeX; tile schedulers are
-- cute.schedule's, what makes tensor maps in kernels cute.tensormaps's.
local sign = require "cute.lang.sign"
local core = require "cute.core"

local utils = {}

---------------------------------------------------------------------------
-- Shared memory
---------------------------------------------------------------------------

--- Bytes of shared memory that a block may have.
---@param arch? string "sm_80", "sm_90a", ...; "sm_90a" when absent
---@return integer
function utils.get_smem_capacity_in_bytes(arch)
  return core.smem_budget(require "cute.lang.kernel".device(
    "sim:" .. (arch or "sm_90a")).sm)
end

--- Bytes of shared memory of a kernel that was traced or prepared.
---@param program table of call:trace, call:compile or cute.compile
---@return integer
function utils.get_kernel_smem_size(program)
  return (program.program or program).info.smem
end

local Allocator = {}
Allocator.__index = Allocator

--- Gives out shared memory of the kernel being traced; what it gives out is
-- counted against the budget, and checked access by access.
function utils.SmemAllocator() return setmetatable({}, Allocator) end

local function check_count(n)
  if math.type(n) == "integer" and n >= 1 then return n end
  core.fail("bad-argument", ("allocate: %s elements"):format(core.show(n)))
end

--- n bytes, one element of a type, or a structure (cute.struct): a pointer,
-- or the structure's fields as pointers.
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

--- A pointer to n elements.
---@param dtype cute.DType
---@param n? integer 1 when absent
---@param byte_alignment? integer
function Allocator:allocate_array(dtype, n, byte_alignment)
  return require "cute.arch".alloc_smem(dtype, check_count(n or 1),
                                        byte_alignment), self
end

--- A tensor with this layout, swizzled when a swizzle is given.
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

-- The widest swizzle that the contiguous extent fills.
local function swizzle_kind(bits)
  for _, kind in ipairs {{1024, "SW128"}, {512, "SW64"}, {256, "SW32"}} do
    if bits % kind[1] == 0 then return kind[2] end
  end
  if bits % 128 == 0 then return "INTER" end
  core.fail("shape-mismatch", ("a contiguous extent of %d bits is no "
    .. "multiple of 128"):format(bits))
end

--- The layout atom for an operand whose contiguous mode is `major`, and the
-- name of its swizzle: the widest that the extent allows.
---@param major "K"|"MN"
---@param dtype cute.DType
---@param smem_shape_mn_k integer[] {M or N, K} of the tile
---@return cute.Layout atom, string kind
function utils.get_smem_layout_atom_ab(major, dtype, smem_shape_mn_k)
  local bits = bits_of(dtype)
  local kind = swizzle_kind(major_extent(major, smem_shape_mn_k) * bits)
  return require "cute.smem".atom(major, kind, bits), kind
end

-- Row-major C is K-like (its second mode is contiguous).
local MAJOR_OF = {row = "K", col = "MN"}

local function epi_major(layout)
  if MAJOR_OF[layout] then return MAJOR_OF[layout] end
  core.fail("unknown-name", ("no layout '%s' (row or col)"):format(
    tostring(layout)))
end

--- The layout atom for a tile of the result.
---@param layout "row"|"col" the contiguous mode of C: its second, its first
---@param dtype cute.DType
---@param epi_tile integer[] {M, N}
---@return cute.Layout atom, string kind
function utils.get_smem_layout_atom_epi(layout, dtype, epi_tile)
  return utils.get_smem_layout_atom_ab(epi_major(layout), dtype, epi_tile)
end

--- (M or N, K, stages): the atom repeated over a tile and its stages.
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

--- The shared layout of operand A of a tile: (M, K, stages).
---@param tiled_mma table
---@param mma_tiler_mnk integer[]
---@param dtype cute.DType
---@param num_stages integer
---@param opts? {is_k_major: boolean} true when absent
---@return cute.Layout
utils.make_smem_layout_a = operand_layout(1)

--- The same of operand B: (N, K, stages).
utils.make_smem_layout_b = operand_layout(2)

--- The shared layout of tiles of the result: (M, N, stages).
---@param dtype cute.DType
---@param layout "row"|"col"
---@param epi_tile integer[] {M, N}
---@param epi_stage integer
---@return cute.Layout
function utils.make_smem_layout_epi(dtype, layout, epi_tile, epi_stage)
  return utils.make_smem_layout(epi_major(layout), epi_tile, dtype, epi_stage)
end

---------------------------------------------------------------------------
-- Atoms by types
---------------------------------------------------------------------------

local SHORT = {f16 = "F16", bf16 = "BF16", tf32 = "TF32", f32 = "F32",
               e4m3 = "E4M3", e5m2 = "E5M2", i8 = "S8", u8 = "U8",
               i32 = "S32", f64 = "F64"}

local function short(dtype)
  local name = SHORT[tostring(dtype)]
  return name or core.fail("type-mismatch", "no tensor core takes "
    .. tostring(dtype))
end

-- mma.sync of Ampere: K elements of 256 bits (128 for tf32).
local function warp_atom(a, b, acc)
  local k = 256 // a.bits
  local m, n = 16, 8
  if tostring(a) == "f64" then m, n, k = 8, 8, 4 end
  local s = short(acc)
  return ("SM80_%dx%dx%d_%s%s%s%s_TN"):format(m, n, k, s, short(a), short(b),
                                              s)
end

local function warpgroup_atom(a, b, a_major, b_major, acc, n, source)
  local k = 256 // a.bits
  local name = ("SM90_64x%dx%d_%s%s%s_%s"):format(n, k, short(acc), short(a),
    short(b), source == "rmem" and "RS" or "SS")
  if a.bits == 16 then return ("%s<%s,%s>"):format(name, a_major, b_major) end
  if a_major ~= "K" or b_major ~= "K" then
    core.fail("type-mismatch", ("operands of %s are K-major for warpgroups")
      :format(tostring(a)))
  end
  return name .. "_TN"
end

--- A TiledMMA for these types: warpgroup instructions of sm_90, or with
-- opts.arch = "sm_80" the warp-wide ones (whose operands are K-major).
---@param a_dtype cute.DType
---@param b_dtype cute.DType
---@param a_leading_mode "K"|"MN"
---@param b_leading_mode "K"|"MN"
---@param acc_dtype cute.DType
---@param atom_layout_mnk integer[]
---@param tiler_mn integer[]
---@param opts? {a_source: string, arch: string} "smem", "sm_90a" when absent
---@return table tiled_mma
function utils.make_trivial_tiled_mma(a_dtype, b_dtype, a_leading_mode,
                                      b_leading_mode, acc_dtype,
                                      atom_layout_mnk, tiler_mn, opts)
  opts = opts or {}
  local sm = tonumber((opts.arch or "sm_90a"):match "%d+")
  local name
  if not core.has(sm, "wgmma") then
    if a_leading_mode ~= "K" or b_leading_mode ~= "K" then
      core.fail("type-mismatch", "warp-wide MMAs take K-major operands")
    end
    name = warp_atom(a_dtype, b_dtype, acc_dtype)
  else
    name = warpgroup_atom(a_dtype, b_dtype, a_leading_mode, b_leading_mode,
                          acc_dtype, tiler_mn[2], opts.a_source or "smem")
  end
  return core.make_tiled_mma(core.make_mma_atom(name), atom_layout_mnk)
end

--- The atom that stores accumulators to shared memory: stmatrix for 16-bit
-- results (transposed where the first mode is contiguous), else elements.
---@param layout_d "row"|"col"
---@param elem_ty_d cute.DType
---@param elem_ty_acc? cute.DType
---@return table copy_atom
function utils.get_smem_store_op(layout_d, elem_ty_d, elem_ty_acc)
  local major = epi_major(layout_d)
  if elem_ty_acc and elem_ty_acc.bits < elem_ty_d.bits then
    core.fail("type-mismatch", ("%s is stored from the narrower %s"):format(
      tostring(elem_ty_d), tostring(elem_ty_acc)))
  end
  if elem_ty_d.bits == 16 then
    return core.make_copy_atom(major == "K" and "SM90_U32x4_STSM_N"
      or "SM90_U16x8_STSM_T", elem_ty_d)
  end
  return core.make_copy_atom("UniversalCopy", elem_ty_d)
end

--- The tile in which a Hopper GEMM writes its result, unless one is given.
---@param tile_shape_mnk integer[]
---@param element_type cute.DType
---@param is_cooperative? boolean two warpgroups share a tile
---@param epi_tile_override? integer[]
---@return integer[]
function utils.compute_tile_shape_or_override(tile_shape_mnk, element_type,
                                              is_cooperative,
                                              epi_tile_override)
  if epi_tile_override then return epi_tile_override end
  local m, n = is_cooperative and 128 or 64, 32
  if not is_cooperative and bits_of(element_type) == 8 then n = 64 end
  return {math.min(m, core.size(tile_shape_mnk[1])),
          math.min(n, core.size(tile_shape_mnk[2]))}
end

--- Copies a tile as a block: each thread its part of both tensors.
---@param tiled_copy table
---@param src table
---@param dst table
function utils.block_copy(tiled_copy, src, dst)
  local thread = tiled_copy:get_slice((require "cute.arch".thread_idx()))
  core.copy(tiled_copy, thread:partition_S(src), thread:partition_D(dst))
end

---------------------------------------------------------------------------
-- The hardware
---------------------------------------------------------------------------

local Info = {}
Info.__index = Info

--- What the GPU is; nil, message when there is none.
---@param device_id? integer 0 when absent
---@return table|nil
---@return string|nil message
function utils.HardwareInfo(device_id)
  local info, message = require "cute.gpu".info(device_id or 0)
  if not info then return nil, message end
  return setmetatable({info = info, device = device_id or 0}, Info)
end

function Info:get_l2_cache_size_in_bytes() return self.info.l2 end
function Info:get_device_multiprocessor_count() return self.info.sms end
function Info:get_arch() return self.info.arch end

--- Clusters of so many blocks that the GPU holds at a time, when each block
-- has a multiprocessor to itself; nil, message where it has no such clusters.
---@param cluster_size integer blocks, 1 to 16
---@return integer?
---@return string? message
function Info:get_max_active_clusters(cluster_size)
  local cluster = require "cute.lang.kernel".cluster(cluster_size)
  local dev, why = require "cute.gpu".open(self.device)
  if not dev then return nil, why end
  local made
  made, why = require "cute.jit".compile(
    'extern "C" __global__ void empty() {}',
    {arch = self.info.arch, name = "empty"})
  if not made then return nil, why end
  local f
  f, why = dev:load(made.cubin, "empty")
  if not f then return nil, why end
  local run
  run, why = f:prepare {grid = cluster, block = 128, cluster = cluster,
                        smem = self.info.smem}
  if not run then return nil, why end
  return run:max_active_clusters()
end

function Info:__tostring()
  return ("%s (%s): %d multiprocessors"):format(self.info.name,
    self.info.arch, self.info.sms)
end

---------------------------------------------------------------------------
-- Pictures
---------------------------------------------------------------------------

--- See cute.program.latex.
function utils.print_latex(...)
  return require "cute.program.latex".print_latex(...)
end

function utils.print_latex_tv(...)
  return require "cute.program.latex".print_latex_tv(...)
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

for _, part in ipairs {"cute.schedule", "cute.tensormaps"} do
  for name, f in pairs(require(part)) do utils[name] = f end
end

return sign.public("utils.", utils, [[
  get_smem_capacity_in_bytes(arch?: string)
  get_kernel_smem_size(program: program|prepared)
  SmemAllocator() HardwareInfo(device_id?: integer)
  get_smem_layout_atom_ab(major: string, dtype: dtype|string,
    smem_shape_mn_k: table)
  get_smem_layout_atom_epi(layout: string, dtype: dtype|string,
    epi_tile: table)
  make_smem_layout(leading_mode: string, smem_tile_shape: table,
    dtype: dtype|string, num_stages: integer)
  make_smem_layout_a(tiled_mma?, mma_tiler_mnk: table, dtype: dtype|string,
    num_stages: integer, opts?: table)
  make_smem_layout_b(tiled_mma?, mma_tiler_mnk: table, dtype: dtype|string,
    num_stages: integer, opts?: table)
  make_smem_layout_epi(dtype: dtype|string, layout: string, epi_tile: table,
    epi_stage: integer)
  make_trivial_tiled_mma(a_dtype: dtype, b_dtype: dtype, a_leading_mode: string,
    b_leading_mode: string, acc_dtype: dtype, atom_layout_mnk: table,
    tiler_mn: table, opts?: table)
  get_smem_store_op(layout_d: string, elem_ty_d: dtype, elem_ty_acc?: dtype)
  compute_tile_shape_or_override(tile_shape_mnk: table, element_type: dtype,
    is_cooperative?: boolean, epi_tile_override?: table)
  block_copy(tiled_copy: tiled, src: tensor, dst: tensor)
  print_latex(x, opts?: table)
  print_latex_tv(layout_tv: layout, tile_mn, opts?: table)
]])
