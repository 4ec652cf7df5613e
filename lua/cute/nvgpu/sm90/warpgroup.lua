--- cute.nvgpu.warpgroup: MMAs of a warpgroup (wgmma of sm_90a). A warpgroup is
-- four consecutive warps, the first of which has an index that is a multiple of
-- four.
--
-- An MMA of a warpgroup reads B from shared memory, and A too if a_src is SMEM.
-- It reads them through descriptors of shared memory; make_fragment_A and
-- make_fragment_B of the tiled MMA return tensors of descriptors. The MMA
-- executes asynchronously:
--
--     warpgroup.fence()           -- orders earlier register accesses
--     tiled_mma:set(Field.ACCUMULATE, k:gt(0))  -- D = A * B, then D += A * B
--     cute.gemm(tiled_mma, acc, tCrA(_, _, kb, stage), tCrB(_, _, kb, stage),
--               acc)
--     warpgroup.commit_group()
--     warpgroup.wait_group(0)     -- acc may be read, shared memory written
--
-- ACCUMULATE is true when a kernel begins. In a gemm over several blocks of K,
-- its value applies to the first block only; the others accumulate. If threads
-- wrote the shared memory that an MMA reads, they must call
-- cute.arch.fence_view_async_shared() before the MMA, and a barrier must follow
-- the call.
local core = require "cute.core"
local sign = require "cute.lang.signature"
local smem = require "cute.smem"

local warpgroup = {}

local function dtype_of(x)
  return type(x) == "string" and core.find_dtype(x)
    or type(x) ~= "string" and x
    or core.fail("unknown-name", ("no element type '%s'"):format(x))
end

local function enum(names)
  local t = {}
  for name in names:gmatch "%S+" do t[name] = name end
  return t
end

warpgroup.OperandMajorMode = enum "MN K"
warpgroup.OperandSource = enum "RMEM SMEM"
warpgroup.Field = enum "ACCUMULATE"
--- The kinds of canonical layouts. The name gives the contiguous mode and the
-- bytes of the swizzle (INTER: 16 bytes, no swizzle).
warpgroup.SmemLayoutAtomKind = enum [[MN_INTER MN_SW32 MN_SW64 MN_SW128
  K_INTER K_SW32 K_SW64 K_SW128]]

--- Returns the smallest tile of a canonical layout of shared memory, for
-- cute.tile_to_shape. The memory must be aligned to the size of 8 rows: 1024
-- bytes for SW128, 512 for SW64, 256 for SW32. make_smem_tensor aligns it so.
---@param kind string from SmemLayoutAtomKind
---@param element_type cute.DType
---@return cute.Layout (rows,k)
function warpgroup.make_smem_layout_atom(kind, element_type)
  local major, swizzle = kind:match "^(%u+)_(%u+%d*)$"
  if not warpgroup.SmemLayoutAtomKind[kind] then
    core.fail("unknown-name", ("no shared-memory layout '%s' (%s)"):format(
      kind, "K_ or MN_ and INTER, SW32, SW64, SW128"))
  end
  return smem.atom(major, swizzle, dtype_of(element_type).bits)
end

-- ---- operations ----

local TOKEN = {bf16 = "BF16", f16 = "F16", f32 = "F32", tf32 = "TF32",
               e4m3 = "E4M3", e5m2 = "E5M2", i8 = "S8", u8 = "U8",
               i32 = "S32"}

local function refuse(op, text, ...)
  core.fail("bad-argument", ("%s: "):format(op) .. text:format(...))
end

local function one_of(op, what, dtype, names)
  local name = tostring(dtype_of(dtype))
  if not (" " .. names .. " "):find(" " .. name .. " ", 1, true) then
    refuse(op, "%s is %s; it may be %s", what, name,
           (names:gsub(" ", ", ")))
  end
  return TOKEN[name]
end

-- Checks an instruction's shape (64,N,K) and returns N.
local function width(op, shape, k)
  local m, n = shape[1], shape[2]
  if m ~= 64 or math.type(n) ~= "integer" or n % 8 ~= 0 or n < 8 or n > 256
    or (shape[3] or k) ~= k then
    refuse(op, "no instruction of shape %s: M must be 64, N a multiple of 8 up "
      .. "to 256, K %d", core.show(shape), k)
  end
  return n
end

-- Returns the part of an MMA atom's name that describes A and B: "SS<K,MN>" or
-- "RS<K,K>"; "SS_TN" or "RS_TN" if only K-major operands are possible.
local function source(op, a_src, a_major, b_major, only_k)
  a_major, b_major = a_major or "K", b_major or "K"
  if a_src ~= "SMEM" and a_src ~= "RMEM" then
    refuse(op, "A must come from SMEM or RMEM, not %s", core.show(a_src))
  end
  for _, major in ipairs {a_major, b_major} do
    if major ~= "K" and major ~= "MN" then
      refuse(op, "the major mode must be K or MN, not %s", core.show(major))
    end
  end
  if only_k and (a_major ~= "K" or b_major ~= "K") then
    refuse(op, "operands of this type must be K-major")
  end
  if a_src == "RMEM" and a_major ~= "K" then
    refuse(op, "A in registers must be K-major")
  end
  local letters = a_src == "SMEM" and "SS" or "RS"
  if only_k then return letters .. "_TN" end
  return ("%s<%s,%s>"):format(letters, a_major, b_major)
end

-- Makes the MMA atom of a wgmma. `k` is the extent of K of a dense instruction;
-- a sparse instruction has twice this extent. `selector` says which two of each
-- four lanes hold the metadata of a sparse A: 0 for the first two, 1 for the
-- last two, nil for all lanes.
local function atom(n, k, types, how, sparse, selector)
  if not sparse then
    return core.make_mma_atom(("SM90_64x%dx%d_%s_%s"):format(n, k, types, how))
  end
  local name = ("SM90::GMMA::SPARSE::GMMA_64x%dx%d_%s_%s"):format(n, 2 * k,
    types, how)
  if selector == 1 then
    name = how:find ">$" and name:gsub(">$", ",One>") or name .. "<One>"
  end
  return core.make_mma_atom(name)
end

-- Checks the selector, which says which two of each four lanes hold the
-- metadata of a sparse A. Returns the selector, or 0 when absent.
local function selected(op, selector)
  selector = selector or 0
  if selector ~= 0 and selector ~= 1 then
    refuse(op, "the selector must be 0 (lanes 0 and 1 of four have metadata) "
      .. "or 1 (lanes 2 and 3), not %s", core.show(selector))
  end
  return selector
end

-- Each of the next functions returns a function that makes one kind of MMA,
-- dense or sparse. A sparse MMA has twice the K of the dense one.
local function f16_bf16(op, sparse)
  return function(ab_dtype, acc_dtype, instruction_shape, a_src, a_major_mode,
                  b_major_mode, selector)
    local ab = one_of(op, "the operands' type", ab_dtype, "f16 bf16")
    local acc = one_of(op, "the accumulators' type", acc_dtype,
                       ab == "BF16" and "f32" or "f32 f16")
    return atom(width(op, instruction_shape, sparse and 32 or 16), 16,
                acc .. ab .. ab,
                source(op, a_src, a_major_mode, b_major_mode), sparse,
                selected(op, selector))
  end
end

-- Defines a function that makes MMAs on 8-bit elements. `types` lists the
-- possible types of A and B, and `sums` those of the accumulators. legal(n)
-- checks N; if it is absent, every N is possible.
local function of_bytes(types, sums, legal)
  return function(op, sparse)
    return function(a_dtype, b_dtype, acc_dtype, instruction_shape, a_src,
                    a_major_mode, b_major_mode)
      local a = one_of(op, "A's type", a_dtype, types)
      local b = one_of(op, "B's type", b_dtype, types)
      local acc = one_of(op, "the accumulators' type", acc_dtype, sums)
      local n = width(op, instruction_shape, sparse and 64 or 32)
      if legal then legal(op, n) end
      return atom(n, 32, acc .. a .. b,
                  source(op, a_src, a_major_mode, b_major_mode, true), sparse)
    end
  end
end

local f8 = of_bytes("e4m3 e5m2", "f32 f16")
local i8 = of_bytes("i8 u8", "i32", function(op, n)
  if n % 16 ~= 0 and n ~= 8 and n ~= 24 then
    refuse(op, "N must be 8, 24 or a multiple of 16, not %d", n)
  end
end)

local function tf32(op, sparse)
  return function(instruction_shape, a_src, selector)
    return atom(width(op, instruction_shape, sparse and 16 or 8), 8,
                "F32TF32TF32", source(op, a_src, nil, nil, true), sparse,
                selected(op, selector))
  end
end

--- Makes an MMA of f16 or bf16 with K = 16. Accumulators are f32; with operands
-- of f16 also f16.
---@param ab_dtype cute.DType
---@param acc_dtype cute.DType f32, or f16 for operands of f16
---@param instruction_shape integer[] {64, N, 16}
---@param a_src string from OperandSource
---@param a_major_mode? string from OperandMajorMode, K when absent
---@param b_major_mode? string
---@return cute.MmaAtom for cute.make_tiled_mma
warpgroup.MmaF16BF16Op = f16_bf16 "MmaF16BF16Op"

--- Makes an MMA of e4m3 and e5m2 in any combination, with K = 32. Operands are
-- K-major; accumulators are f32 or f16.
---@return cute.MmaAtom
warpgroup.MmaF8Op = f8 "MmaF8Op"

--- Makes an MMA of i8 and u8 in any combination, with K = 32. Operands are
-- K-major; accumulators are i32. N is 8, 24 or a multiple of 16.
---@return cute.MmaAtom
warpgroup.MmaI8Op = i8 "MmaI8Op"

--- Makes an MMA of tf32 with K = 8. Operands are K-major; accumulators are f32.
-- Shared memory may hold f32.
---@return cute.MmaAtom
warpgroup.MmaTF32Op = tf32 "MmaTF32Op"

-- ---- sparse: cute.nvgpu.sparse describes A and its metadata ----

--- Makes an MMA of f16 or bf16 with a sparse A. K is 32; A stores 16 elements
-- of each row.
---@param selector? integer which two of each four lanes hold the metadata; 0:
-- the first two, 1: the last two
---@return cute.MmaAtom its gemm takes {A, metadata} for A
warpgroup.MmaF16BF16SparseOp = f16_bf16("MmaF16BF16SparseOp", true)

--- Makes an MMA of e4m3 and e5m2 with a sparse A and K = 64.
---@return cute.MmaAtom
warpgroup.MmaF8SparseOp = f8("MmaF8SparseOp", true)

--- Makes an MMA of i8 and u8 with a sparse A and K = 64.
---@return cute.MmaAtom
warpgroup.MmaI8SparseOp = i8("MmaI8SparseOp", true)

--- Makes an MMA of tf32 with a sparse A and K = 16. A stores one of each two
-- elements.
---@return cute.MmaAtom
warpgroup.MmaTF32SparseOp = tf32("MmaTF32SparseOp", true)

-- ---- order ----

--- Orders accesses of threads to registers before later MMAs. Call it before
-- the first MMA, and again whenever threads have accessed registers that a
-- later MMA uses.
function warpgroup.fence() core.effect "wgmma_fence" end

--- Ends a group that contains the MMAs issued since the last group.
function warpgroup.commit_group() core.effect "wgmma_commit" end

--- Waits until at most `group` groups of the warpgroup's MMAs are pending. Then
-- the accumulators of the completed groups may be read, and their operands
-- overwritten.
---@param group integer
function warpgroup.wait_group(group)
  if math.type(group) ~= "integer" or group < 0 or group > 7 then
    core.fail("needs-static", ("wait_group: the number of pending groups must "
      .. "be a Lua integer from 0 to 7, not %s"):format(core.show(group)))
  end
  core.effect("wgmma_wait", group)
end

return sign.public("cute.nvgpu.warpgroup.", warpgroup, [[
  make_smem_layout_atom(kind: string, element_type: dtype|string)
  MmaF16BF16Op(ab_dtype: dtype|string, acc_dtype: dtype|string,
    instruction_shape: table, a_src: string, a_major_mode?: string,
    b_major_mode?: string)
  MmaF8Op(a_dtype: dtype|string, b_dtype: dtype|string,
    acc_dtype: dtype|string, instruction_shape: table, a_src: string,
    a_major_mode?: string, b_major_mode?: string)
  MmaI8Op(a_dtype: dtype|string, b_dtype: dtype|string,
    acc_dtype: dtype|string, instruction_shape: table, a_src: string,
    a_major_mode?: string, b_major_mode?: string)
  MmaTF32Op(instruction_shape: table, a_src: string)
  MmaF16BF16SparseOp(ab_dtype: dtype|string, acc_dtype: dtype|string,
    instruction_shape: table, a_src: string, a_major_mode?: string,
    b_major_mode?: string, selector?: integer)
  MmaF8SparseOp(a_dtype: dtype|string, b_dtype: dtype|string,
    acc_dtype: dtype|string, instruction_shape: table, a_src: string,
    a_major_mode?: string, b_major_mode?: string)
  MmaI8SparseOp(a_dtype: dtype|string, b_dtype: dtype|string,
    acc_dtype: dtype|string, instruction_shape: table, a_src: string,
    a_major_mode?: string, b_major_mode?: string)
  MmaTF32SparseOp(instruction_shape: table, a_src: string, selector?: integer)
  fence() commit_group() wait_group(group)
]])
-- SPDX-License-Identifier: MIT
