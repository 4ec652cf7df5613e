--- The options of kernels/gemm_sm100 with their defaults, their checks, and
-- derived values.
local block_scaled = require "kernels.block_scaled"
local rules = require "kernels.operand_rules"
local core = require "cute.core"
local cute = require "cute"
local tma_rules = require "kernels.gemm_sm90.tma_rules"

local scale_factors = require "kernels.gemm_sm100.scale_factors"

local options = {ROWS = 128}  -- the rows of a tile, which are the lanes of
                              -- tensor memory

local WARPGROUP, WARP = 128, 32
local COLUMNS = 512           -- the columns of tensor memory

local DEFAULTS = {
  stages = 4, cluster = {1, 1}, dtype = cute.bf16,
  epi_stages = 2, swizzle = 8, raster_along_m = false, pdl = false,
  a_major = "k", b_major = "k", d_major = "n", persistent = true,
  epi_loop = false,
}

-- The names of all options.
local NAMES = "tile epi epilogue name a_dtype b_dtype d_dtype a_hint b_hint "
  .. "d_hint l2_promotion gated batches groups scales"
for name in pairs(DEFAULTS) do NAMES = NAMES .. " " .. name end

local function check_scales(o)
  local sf, vs = table.unpack(o.scales)
  local a, b = o.a_dtype or o.dtype, o.b_dtype or o.dtype
  local known = block_scaled.of(a, sf, vs) and block_scaled.of(b, sf, vs)
  rules.need(known and a.bits == b.bits and a.bits ~= 6, o.kernel, "no two "
    .. "formats have elements of %s by %s with scales = {%s, %s}; formats are "
    .. "8-bit floats with {ue8m0, 32}, and e2m1 with {ue8m0, 32} or {e4m3, 16}",
    tostring(a), tostring(b), tostring(sf), tostring(vs))
  rules.need(o.tile[2] % options.ROWS == 0
    and o.tile[3] % (4 * vs) == 0, o.kernel, "tile = {%d, %d, %d} with scales; "
    .. "a multiple of %d columns and of %d elements of K, whole chunks of "
    .. "factors, is needed", o.tile[1], o.tile[2], o.tile[3], options.ROWS,
    4 * vs)
  for _, name in ipairs {"a_major", "b_major"} do
    rules.need(o[name] == "k", o.kernel, "%s = %s with scales; rows of A and "
      .. "B must be contiguous", name, core.show(o[name]))
  end
  rules.need(not o.groups, o.kernel, "scales cannot be combined with groups")
end

local function check_tile(o)
  rules.list_of_integers(o.kernel, "tile", o.tile, 3)
  local bm, bn, bk = table.unpack(o.tile)
  rules.need(bm == options.ROWS and bn % 16 == 0 and bn <= 256, o.kernel,
    "tile = {%d, %d, %d}; %d rows, and a multiple of 16 columns, at most 256, "
    .. "are needed", bm, bn, bk, options.ROWS)
  tma_rules.depth(o)
end

local function check_cluster(o)
  rules.list_of_integers(o.kernel, "cluster", o.cluster, 2)
  local cm, cn = o.cluster[1], o.cluster[2]
  rules.need(cm * cn <= 16 and o.tile[1] % (8 * cn) == 0
    and o.tile[2] % (8 * cm) == 0, o.kernel, "cluster = {%d, %d} with tile = "
    .. "{%d, %d, ...}; at most 16 blocks, whose parts of shared tiles have a "
    .. "multiple of 8 rows, are needed", cm, cn, o.tile[1], o.tile[2])
end

local function check(o)
  local what = o.kernel
  rules.integers(what, o, {"stages", "epi_stages"}, 1, 32)
  rules.integers(what, o, {"swizzle"}, 1, 1 << 20)
  rules.one_of(what, o, "a_major", "k", "m")
  rules.one_of(what, o, "b_major", "k", "n")
  rules.one_of(what, o, "d_major", "n", "m")
  for _, name in ipairs {"pdl", "persistent", "raster_along_m", "epi_loop"} do
    rules.one_of(what, o, name, true, false)
  end
  tma_rules.dtypes(o)
  local a, b = o.a_dtype or o.dtype, o.b_dtype or o.dtype
  rules.need(o.scales or tma_rules.multiplied(o) ~= "bytes" or a == b, what,
    "A has type %s, B %s; tcgen05.mma needs the same type of integers",
    tostring(a), tostring(b))
  rules.need(a.bits < 32 or o.a_major == "k" and o.b_major == "k", what,
    "a_major = %s, b_major = %s of f32; tf32 with contiguous M or N needs a "
    .. "swizzle that TMA lacks", core.show(o.a_major), core.show(o.b_major))
  if o.groups ~= nil then
    tma_rules.groups(o)
    rules.need(o.groups ~= "list" and not o.batches and o.persistent, what,
      "groups = %s; \"rows\" or \"masked\", without batches and persistent = "
      .. "false, is needed", core.show(o.groups))
  end
  tma_rules.hints(o)
  check_tile(o)
  check_cluster(o)
  if o.scales then check_scales(o) end
end

-- Returns the number of columns of D that are stored at once. They fill 128
-- bytes of a row, but are at most 64, because a thread holds the accumulators
-- of all of them. An epilogue needs more registers; with one, at most 32
-- columns are stored at once.
local function run_of(o)
  local most = math.min(1024 // o.d_dtype.bits, 64)
  if o.epilogue or o.gated then most = 32 end
  return core.gcd(o.columns, most)
end

--- Returns all options: those in `given`, defaults for all missing ones, and
-- values derived from both. `sure` skips the checks of options known to be
-- valid.
---@param given table
---@param sure? boolean
---@return table
function options.complete(given, sure)
  local o = {kernel = "gemm_sm100", split = 1, consumers = 1, min_blocks = 1}
  if not sure then rules.options(o.kernel, given, NAMES) end
  for k, v in pairs(DEFAULTS) do o[k] = v end
  for k, v in pairs(given) do o[k] = v end
  -- By default, rows of a tile have 128 bytes.
  local a = o.a_dtype or o.dtype
  o.tile = o.tile or {options.ROWS, 128,
    core.typename(a) == "dtype" and 1024 // a.bits or 64}
  if not sure then check(o) end
  o.a_dtype, o.b_dtype = o.a_dtype or o.dtype, o.b_dtype or o.dtype
  o.acc = o.a_dtype.is_integer and cute.i32 or cute.f32
  o.d_dtype = o.d_dtype or o.a_dtype.bits <= 8 and (o.a_dtype.is_integer
    and cute.i32 or cute.bf16) or o.dtype
  o.clustered = o.cluster[1] * o.cluster[2] > 1
  o.block = WARPGROUP + 2 * WARP
  o.rows = o.tile[1]
  o.shares = o.groups ~= nil
  o.columns = o.tile[2] // (o.gated and 2 or 1)
  -- blocked: whether each block has one tile. turned: whether consecutive
  -- blocks have consecutive tiles along N. See kernels/gemm_sm90/options.lua.
  o.blocked = not o.persistent and not (o.batches or o.clustered)
  o.turned = not o.persistent and o.raster_along_m and not o.clustered
  o.epi = o.epi or {o.rows, run_of(o)}
  local stores = o.columns // o.epi[2]
  while stores % o.epi_stages ~= 0 do o.epi_stages = o.epi_stages - 1 end
  o.apart = o.persistent or o.epi_stages == 1
  local factors = 0    -- columns of tensor memory for the factors of a stage
  if o.scales then
    o.sf, o.vs = table.unpack(o.scales)
    o.factor_bytes = scale_factors.bytes(o.tile, o.vs)
    factors = scale_factors.columns(o.tile, o.vs)
  end
  -- The number of sets of accumulators in tensor memory. One set belongs to the
  -- tile that is being multiplied. If there are enough columns, a second set
  -- belongs to the tile that is being stored.
  o.parts = o.persistent
    and 2 * o.tile[2] + o.stages * factors <= COLUMNS and 2 or 1
  local columns = o.parts * o.tile[2] + o.stages * factors
  if not sure then
    rules.need(columns <= COLUMNS, o.kernel, "tile = {%d, %d, %d} with %d "
      .. "stages of factors needs %d columns of tensor memory; there are %d",
      o.tile[1], o.tile[2], o.tile[3], o.stages, columns, COLUMNS)
  end
  o.tmem = 32
  while o.tmem < columns do o.tmem = 2 * o.tmem end
  return o
end

return options
-- SPDX-License-Identifier: MIT
