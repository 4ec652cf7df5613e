--- The options of kernels/gemm_sm90 with their defaults, and derived values.
local rules = require "kernels.operand_rules"
local block_scales = require "kernels.gemm_sm90.block_scales"
local cute = require "cute"
local wrong = require "kernels.gemm_sm90.option_rules"

local options = {}

local WARPGROUP = 128

local DEFAULTS = {
  tile = {128, 128, 64}, stages = 4, cluster = {1, 1}, consumers = 2,
  schedule = "cooperative", dtype = cute.bf16,
  epi_stages = 2, swizzle = 8, raster_along_m = false, pdl = false,
  a_major = "k", b_major = "k", d_major = "n", split = 1, least = 4,
  scheduler = "static", persistent = true, min_blocks = 1, epi_loop = false,
}

-- The widest tile, and the largest number of consumers, for which a thread has
-- registers for its sums and two sets of accumulators.
local MOST_OVERLAPPED, MOST_CONSUMERS = 128, 2

-- Reports whether the products of a stage run while those of the preceding
-- stage are added to the sums.
local function overlapped(o)
  return o.promote == 1 and o.rows == 64 and o.tile[2] <= MOST_OVERLAPPED
    and o.consumers <= MOST_CONSUMERS and o.stages > 1
end

-- Returns the number of accumulators of a thread. With the option `promote`, a
-- thread has the sums of its tile and, in addition, accumulators for 64 rows,
-- or two sets of them.
local function sums_of(o)
  local more = o.overlapped and 128 or o.promote and 64 or 0
  return (o.rows + more) * o.tile[2] // WARPGROUP
end

-- The most accumulators that fit into a thread's registers, by the number of
-- consumers. With three or four consumers, ptxas rejects kernels with more.
local MOST_SUMS = {216, 216, 96, 64}

-- Returns the register counts of threads, {producer, consumer}. Returns nil if
-- all threads have the same number; the producer is then a single warp. With
-- many accumulators, a warpgroup of producers releases registers to the
-- consumers. Producers that keep only 24 registers spill a few. If there are
-- three consumers, each thread has 128 registers at first.
local function registers(o)
  if o.sums <= (o.consumers < 3 and 128 or 72) then return nil end
  if o.consumers == 3 then return {producer = 40, consumer = 152} end
  if o.sums <= 200 or o.promote then return {producer = 40, consumer = 232} end
  return {producer = 24, consumer = 240}
end

-- The names of all options.
local NAMES = "epi epilogue name a_dtype b_dtype d_dtype promote equal a_hint "
  .. "b_hint d_hint l2_promotion ahead gated batches blocks sources "
  .. "source_stages groups"
for name in pairs(DEFAULTS) do NAMES = NAMES .. " " .. name end

-- Returns the number of columns that are stored at once: those in 128 or 64
-- bytes of D's rows, otherwise all columns of a tile. An epilogue function
-- needs additional registers. With one, only 32 columns are stored at once if
-- the tile is a multiple of 32 columns.
local function run_of(o)
  local run = 1024 // o.d_dtype.bits
  if o.epilogue and o.columns % 32 == 0 then return 32 end
  if o.columns % run == 0 then return run end
  if o.d_major == "m" then return o.columns end
  if o.columns % (run // 2) == 0 then return run // 2 end
  for n = 128, 32, -8 do
    if o.epilogue and o.columns % n == 0 then return n end
  end
  return o.columns
end

--- Returns all options: those in `given`, defaults for all missing ones, and
-- values derived from both. `sure` skips the checks of options known to be
-- valid.
---@param given table
---@param sure? boolean
---@return table
function options.complete(given, sure)
  local o = {kernel = "gemm_sm90"}
  if not sure then rules.options("gemm_sm90", given, NAMES) end
  for k, v in pairs(DEFAULTS) do o[k] = v end
  for k, v in pairs(given) do o[k] = v end
  if not sure then wrong.options(o) end
  o.a_dtype, o.b_dtype = o.a_dtype or o.dtype, o.b_dtype or o.dtype
  o.acc = o.a_dtype.is_integer and cute.i32 or cute.f32
  o.d_dtype = o.d_dtype or o.a_dtype.bits == 8 and (o.a_dtype.is_integer
    and cute.i32 or cute.bf16) or o.dtype
  o.pingpong = o.schedule == "pingpong"
  if o.blocks then
    o.promote, o.factor_bytes = o.promote or 1, block_scales.bytes(o)
  end
  o.rows = o.pingpong and o.tile[1] or o.tile[1] // o.consumers
  o.overlapped = overlapped(o)
  o.sums = sums_of(o)
  o.most_sums = MOST_SUMS[o.consumers]
  o.registers = registers(o)
  o.clustered = o.cluster[1] * o.cluster[2] > 1
  o.producer_threads = o.registers and WARPGROUP or o.blocks and 64 or 32
  o.block = o.consumers * WARPGROUP + o.producer_threads
  o.stream, o.dynamic = o.split == "stream", o.scheduler == "dynamic"
  o.shares = o.stream or o.dynamic or o.groups ~= nil
  if o.stream then o.split = 1 end
  -- The number of columns of D that a block stores.
  o.columns = o.tile[2] // o.split // (o.gated and 2 or 1)
  if o.split > 1 then o.persistent = false end
  -- Whether each block has one tile, and blocks form runs along one mode
  -- (model.run). Consecutive runs are neighbours along the other mode.
  o.blocked = not o.persistent and o.split == 1
    and not (o.batches or o.clustered)
  -- Whether each block has one tile, and consecutive blocks have consecutive
  -- tiles along N.
  o.turned = not o.persistent and o.raster_along_m and not o.clustered
  wrong.together(o)
  o.epi = o.epi or {64, run_of(o)}
  -- The epilogue uses its buffers in turn. The number of a tile's parts must
  -- therefore be a multiple of the number of buffers.
  local stores = o.rows // 64 * (o.columns // o.epi[2])
  while stores % o.epi_stages ~= 0 do o.epi_stages = o.epi_stages - 1 end
  o.source_stages = o.source_stages or o.pingpong and 4 or 2
  while stores % o.source_stages ~= 0 do
    o.source_stages = o.source_stages - 1
  end
  -- If o.apart is true, warpgroups synchronize twice for each part of a tile:
  -- just before they write the part to a buffer, and when the buffer is full.
  -- Otherwise they synchronize once for both purposes.
  o.apart = o.persistent or o.epi_stages == 1
  return o
end

return options
-- SPDX-License-Identifier: MIT
