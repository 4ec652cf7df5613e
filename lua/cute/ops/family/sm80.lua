--- Products by mma.sync (kernels/gemm_sm80): the supported problems, and the
-- tiles.
local prepared = require "cute.ops.family.prepared"
local core = require "cute.core"
local blocks = require "cute.ops.blocks"
local cute = require "cute"
local tiles = require "cute.tiles"
local types = require "cute.ops.family.types"

local UPPER = {i8 = "S8", u8 = "U8", e4m3 = "E4M3", e5m2 = "E5M2"}

local F16, BF16 = "SM80_16x8x16_F32F16F16F32_TN",
  "SM80_16x8x16_F32BF16BF16F32_TN"

-- Returns the 16-bit type in which two operands of different types are
-- multiplied, after at least one of them is converted. Returns nil if there is
-- none. Both 16-bit types represent all 8-bit types exactly.
local function converted(a, b)
  local wide, narrow = a, b
  if a.bits < b.bits then wide, narrow = b, a end
  if narrow.bits ~= 8 then return nil end
  if wide == cute.bf16 or wide == cute.f16 then return wide end
  return types.fp8(a) and types.fp8(b) and cute.f16 or nil
end

-- Returns the MMA atom of sm_120 for the formats of problem p, and the atom's
-- extent along K. Returns nil and the reason if there is no atom.
local function atom_of_formats(p)
  local a, b, f = p.a, p.b, p.format
  if p.sm < 120 or not p.arch:find "[af]$" then
    return nil, ("mma.sync with scale factors needs sm_120a or its family, but "
      .. "the device is %s"):format(p.arch)
  elseif not (types.fp8(a) and types.fp8(b)) and not types.same(p, "e2m1") then
    return nil, ("gemm_sm80 does not multiply %s by %s"):format(f.a, f.b)
  elseif p.gated then
    return nil, "gemm_sm80 does not support gated = true with formats"
  end
  local k = a.bits == 8 and 32 or 64
  return ("SM120::BLOCKSCALED::SM120_16x8x%d_TN_VS<float_%s_t,float_%s_t,float,"
    .. "float_%s_t,%d>"):format(k, a.name, b.name, f.factor == cute.ue8m0
    and "ue8m0" or "ue4m3", f.size), k
end

-- Returns the MMA atom for the types of problem p, the atom's extent along K,
-- and the type to which operands are converted, if any. Returns nil and the
-- reason if there is no atom.
local function atom_of(p)
  local a, b = p.a, p.b
  if types.too_old(p) then return nil, types.too_old(p) end
  if p.format then return atom_of_formats(p) end
  if types.same(p, "bf16") then return BF16, 16 end
  if types.same(p, "f16") then return F16, 16 end
  if types.same(p, "f64") then
    if p.sm >= 90 then return "SM90_16x8x8_F64F64F64F64_TN", 8 end
    return "SM80_8x8x4_F64F64F64F64_TN", 4
  end
  if types.same(p, "f32") and p.tf32 then
    return "SM80_16x8x8_F32TF32TF32F32_TN", 8
  end
  if types.byte(a) and types.byte(b) then
    return ("SM80_16x8x32_S32%s%sS32_TN"):format(UPPER[a.name], UPPER[b.name]),
           32
  end
  if types.fp8(a) and types.fp8(b) and p.sm >= 89 then
    return ("SM89_16x8x32_F32%s%sF32_TN"):format(UPPER[a.name], UPPER[b.name]),
           32
  end
  local as = converted(a, b)
  if as then return as == cute.bf16 and BF16 or F16, 16, as end
  if types.same(p, "f32") then
    return nil, "tensor cores do not support f32: tf32 = true rounds it to tf32"
  end
  return nil, ("mma.sync does not multiply %s by %s"):format(a, b)
end

-- Arrangements of warps in a block. `atoms` is the number of warps along M, N
-- and K. `each` is the part of a tile along M and N that all these warps cover
-- with one instruction each.
local FOUR = {atoms = {2, 2, 1}, each = {32, 32}}
local EIGHT = {atoms = {2, 4, 1}, each = {32, 64}}
local HIGH = {atoms = {4, 2, 1}, each = {64, 32}}
local SIXTEEN = {atoms = {4, 4, 1}, each = {64, 64}}

-- The tiles for types of 16 and 8 bits, and for tf32. If elements are loaded
-- one by one, a tile uses the first entry of `warps` for which each thread
-- loads at most MOST elements.
local MOST = 64
local TILES = {
  {128, 256, warps = {EIGHT}, stages = 3, group = 16},
  {128, 128, warps = {FOUR, EIGHT, SIXTEEN}, stages = 3},
  {128, 64, warps = {FOUR, HIGH, SIXTEEN}, stages = 3},
  {64, 128, warps = {FOUR, EIGHT, SIXTEEN}, stages = 3},
  {64, 64, warps = {FOUR, EIGHT}, stages = 4},
  {32, 64, warps = {FOUR}, stages = 4},
  {16, 128, warps = {{atoms = {1, 4, 1}, each = {16, 64}}}, stages = 4},
  {128, 16, warps = {{atoms = {4, 1, 1}, each = {64, 16}}}, stages = 4},
}
-- The tiles for f64 on Hopper and later. `good` is the rate that a tile
-- reaches, as a multiple of the tensor cores' rate with the small atoms of
-- sm_80. Hopper's larger atoms reach nearly twice that rate.
local TILES64_SM90 = {
  {128, 64, warps = {{atoms = {4, 2, 1}, each = {64, 16}}}, stages = 4,
   good = 1.84},
  {64, 64, warps = {{atoms = {2, 2, 1}, each = {32, 16}}}, stages = 4,
   good = 1.93},
  {32, 64, warps = {{atoms = {2, 2, 1}, each = {32, 16}}}, stages = 4,
   good = 1.51},
  {32, 32, warps = {{atoms = {2, 2, 1}, each = {32, 16}}}, stages = 4,
   good = 1.55},
}
local TILES64 = {
  {128, 64, warps = {{atoms = {4, 2, 1}, each = {32, 16}}}, stages = 4,
   good = 1.0},
  {64, 64, warps = {{atoms = {2, 2, 1}, each = {16, 16}}}, stages = 4,
   good = 0.9},
  {32, 32, warps = {{atoms = {2, 2, 1}, each = {16, 16}}}, stages = 4,
   good = 0.6},
}

-- Returns the ns that one step along K of an f64 product waits for its operands
-- of this many bytes: {from L2, from memory}. tools/fit.lua (its set f64)
-- fitted the constants.
local function waits_of(bytes) return {55 + bytes / 510, 55 + bytes / 77} end

-- Factors of the tensor cores' rate. BY_FACTORS applies if blocks of K have
-- scale factors. SQUARE applies in addition if the tile is square and has
-- registers for scaled sums. CONVERTED applies if an operand is converted.
local BY_FACTORS, SQUARE, CONVERTED = 0.6, 0.9, 0.5

-- Returns a copy of a list of tiles. Each tile keeps only those entries of
-- `warps` for which fit(tile, warps) is true.
local function fitting(list, fit)
  local out = {}
  for _, t in ipairs(list) do
    local warps = {}
    for _, w in ipairs(t.warps) do
      if fit(t, w) then warps[#warps + 1] = w end
    end
    if warps[1] then
      out[#out + 1] = setmetatable({warps = warps}, {__index = t})
    end
  end
  return out
end

-- Reports whether, for this tile and arrangement of warps, each thread has both
-- the gate and the up value of an element.
local function has_gates(t, w) return t[2] // 2 % w.each[2] == 0 end

-- Reports whether, for this tile and arrangement of warps, a thread has
-- registers for 64 bits per accumulator.
local function has_room(t, w)
  return t[1] * t[2] <= 64 * 32 * w.atoms[1] * w.atoms[2]
end

-- Reports whether the epilogue reads or writes a matrix of 64-bit elements.
local function is_wide(p)
  local wide = p.d.bits == 64
  for _, r in ipairs(p.results or {}) do
    wide = wide or r.kind == "tile" and r.dtype.bits == 64
  end
  for _, s in ipairs(p.sources or {}) do
    wide = wide or s.element_type.bits == 64
  end
  return wide
end

-- Reports whether M and N of a tile are at most 128. That is the number of rows
-- in a chunk of scale factors (kernels.gemm_sm80.scale_factors).
local function has_chunks(t) return t[1] <= 128 and t[2] <= 128 end

local function smem(arch)
  return core.smem_budget(cute.device("sim:" .. arch).sm)
end

local sm80 = {name = "gemm_sm80", any = true, formats = true,
              why = "tensor cores by mma.sync, any strides"}

function sm80.takes(p)
  local atom, why = atom_of(p)
  if not atom then return why end
  if p.group and p.sums ~= cute.f32 then
    return ("scale factors for blocks of K need f32 accumulators, not "
      .. "%s"):format(p.sums)
  end
  if p.group and (p.group < 16 or p.group & (p.group - 1) ~= 0) then
    return ("blocks of %d elements of K; a power of two of at least 16 is "
      .. "needed"):format(p.group)
  end
end

-- Returns the arrangement of warps for a tile whose threads load some elements
-- one by one. `single` is the number of these elements, divided by 32.
local function warps_of(t, single)
  for _, w in ipairs(t.warps) do
    if single <= MOST * w.atoms[1] * w.atoms[2] then return w end
  end
  return t.warps[#t.warps]
end

-- Returns 2 blocks per multiprocessor for tiles of 64 rows, if D consists of
-- whole tiles; else nil. With this minimum, ptxas knows how many registers
-- pending loads may use, and the kernel waits for the loads of A before those
-- of B. 1024 x 1024 x 1023 then takes 20 us instead of 29.
local function min_blocks(p, t, warps)
  local whole = p.m % t[1] == 0 and p.n % t[2] == 0
  return whole and warps == EIGHT and t[1] == 64 and not p.gated
    and p.a.bits == 16 and p.b.bits == 16 and 2 or nil
end

-- Returns the number of columns of D that one iteration of the epilogue's loop
-- processes, or nil for an epilogue without a loop. Only tiles of 256 columns
-- need the loop. Reductions exclude the loop, because they need whole tiles.
-- Matrices of D's shape also exclude it, because they load faster without it.
local function columns(p, t, warps)
  for _, r in ipairs(p.results or {}) do
    if r.kind ~= "tile" then return nil end
  end
  return t[2] >= 256 and #(p.sources or {}) == 0 and warps.each[2] or nil
end

-- Returns the number of bytes that one load of a matrix moves (see cute.tiles).
-- A load moves elements along K. If M or N is contiguous instead, it moves
-- elements of 16 and 64 bits along that mode.
local function piece(t)
  local bits = t.element_type.bits
  return blocks.piece(t, t.stride[2] == 1 and 2 or t.stride[1] == 1
    and (bits == 16 or bits == 64) and 1)
end

-- Returns the number of loads for `rows` rows and one element along K. Each
-- load moves `bytes` bytes. Returns 0 for 16 bytes, whose loads take no
-- additional time.
local function asked(rows, bits, bytes)
  return bytes < 16 and rows * bits / (8 * bytes) or 0
end

function sm80.list(p)
  local atom, k, as = atom_of(p)
  local bits, room = math.max(p.a.bits, p.b.bits, as and 16
                              or p.format and 4 or 8), smem(p.arch)
  local whole = bits == 64 and 16 or 1024 // bits
  if p.group then whole = core.gcd(whole, p.group) end
  local a_piece, b_piece = piece(p.A), piece(p.B)
  local a, b = a_piece < 4 and 1 or 0, b_piece < 4 and 1 or 0
  -- If threads load A and B element by element, tiles with half the extent
  -- along K need half the code and are as fast.
  local short = p.sums.is_integer and a + b == 2
  local bk = short and whole // 2 or whole
  local list = bits < 64 and TILES or p.sm < 90 and TILES64 or TILES64_SM90
  if p.gated then list = fitting(list, has_gates) end
  if p.format then list = fitting(list, has_chunks) end
  if is_wide(p) then list = fitting(list, has_room) end
  return blocks.candidates(p, p.ragged and "gemm_grouped" or "gemm_sm80", list,
    function(t, splits)
      local single = (a * t[1] + b * t[2]) * bk // 32
      local warps = warps_of(t, single)
      local bytes = (t[1] * p.a.bits + t[2] * p.b.bits) * whole // 8
      local stages = math.max(2, math.min(t.stages, room // bytes))
      local o = {name = p.ragged and "gemm_grouped" or "gemm_sm80",
        form = p.ragged, tile = {t[1], t[2], bk}, stages = stages,
        group = t.group, gated = p.gated, blocks = p.group, as = as,
        mma = atom, atoms = warps.atoms,
        permutation = {warps.each[1], warps.each[2], k},
        rows = p.d.bits <= 16 or nil, columns = columns(p, t, warps),
        min_blocks = splits == 1 and min_blocks(p, t, warps) or nil,
        piece = bits == 64 and 32 or nil}
      local timed = {t[1], t[2], bk, timed = whole,
        waits = bits == 64 and p.sm >= 90 and waits_of(bytes) or nil,
        asked = asked(t[1], p.a.bits, a_piece) + asked(t[2], p.b.bits, b_piece),
        single = tiles.count(single, MOST * cute.product(warps.atoms))}
      return o, setmetatable(timed, {__index = t}),
             blocks.constants.rate[bits]
               * (p.group and (t[1] * t[2] == 4096 and SQUARE or BY_FACTORS)
                  or 1)
               * (as and CONVERTED or 1)
    end)
end

function sm80.order(p, o)
  if p.sums == cute.f64 then return "one product after the other" end
  return o.permutation[3] .. " products at once"
    .. (o.as and p.a.bits == 8 and p.b.bits == 8 and ", as " .. o.as.name or "")
    .. types.factors(p)
end

sm80.make = prepared.tiles

return sm80
-- SPDX-License-Identifier: MIT
