--- Which choices of kernels/gemm_sm90 suit a product: what is tried, and how
-- long each will take, by a rule.
--
-- A product is bound by one of four things; where two are near they add up:
--
--   cycles  waves of tiles: each a step for every tile along K, which the
--           tensor cores need or shared memory's filling, and an epilogue that
--           nothing covers, unless warpgroups take turns: a round for each
--           buffer, and D's bytes
--   energy  a card at its power limit runs at the clock that this leaves: an
--           operation costs what the tensor cores take, and its share of what
--           is brought to shared memory and through L2
--   memory  A, B and D once
--   launch  what begins and ends each kernel
--
-- Constants are those of an H200 (docs/performance.md has what they were
-- fitted to); what is compared is time on one card, so others rank alike.
local cute = require "cute"
local options = require "kernels.gemm_sm90.options"
local smem = require "kernels.gemm_sm90.smem"

local Hint = cute.nvgpu.cpasync.CacheHint

local choice = {}

local CLOCK = 1.85e9     -- without a power limit
local FMAS = 2048        -- of 16 bits, a cycle and multiprocessor
local FILL = 64          -- bytes into shared memory, a cycle
local MEMORY = 4.2e12    -- bytes a second
local LAUNCH = 2.2e-6    -- begin and end of a kernel
local FIRST = 1500       -- cycles until the first tiles are there
local CLUSTER = 0.5e-6   -- clusters begin together
local NEAR = 20          -- waves: past them clusters share little, and lose
local APART = 1.02       -- this (measured at 16384)
local EXCHANGE = 3000    -- cycles until two halves of K have met
local LEAVE, PART = 1500, 2000  -- to leave sums for others, to wait for a part
-- Seconds of an operation at the power limit, and of each part of it by what a
-- tile's step brings (elements by operation) to shared memory and through L2;
-- by bits of an element.
local ENERGY = {[8] = {0.64e-15, 0.38e-14, 0.1e-14},
                [16] = {1.1e-15, 0.8e-14, 1.6e-14},
                [32] = {1.81e-15, 6.4e-14, 1.0e-14}}
local DRAIN = 24         -- bytes of D a cycle, a third more with four buffers
local ROUND = 300        -- cycles to fill a buffer and hand it on
-- Sums that are added to others: cycles while nobody multiplies, and energy.
local ADD, BY_ADDING = 146, 0.066
local SUMS = 216         -- that a thread can have: more leave no registers

-- Tiles (BM, BN), consumers, schedule; of those that a wide one fits for.
-- bits, wide, promoted: only for operands, for D of so many bits, for sums that
-- are added to others; few: only for results as narrow, with one consumer and
-- deep steps; min_blocks: so many of a multiprocessor, each with one tile.
local TILES = {
  {64, 8, few = true}, {64, 8, few = true, min_blocks = 2},
  {64, 16, few = true}, {64, 16, few = true, min_blocks = 2},
  {64, 16, few = true, split = 2},
  {64, 16, few = true, split = 2, min_blocks = 2},
  {64, 32, few = true, min_blocks = 2}, {64, 32, few = true, split = 2},
  {64, 32, few = true, split = 2, min_blocks = 2},
  {64, 64, few = true, min_blocks = 2}, {64, 64, few = true, split = 2},
  {64, 64, few = true, split = 2, min_blocks = 2},
  {64, 32, consumers = 1, deep = 2}, {64, 64, consumers = 1, deep = 2},
  {64, 32, consumers = 1, promoted = true},
  {64, 64, consumers = 1, promoted = true},
  {128, 64}, {64, 128, consumers = 1},
  {128, 128, schedule = "pingpong", raster_along_m = true},
  {128, 192, schedule = "pingpong", bits = 8},
  {128, 128}, {128, 128, split = 2, epi_stages = 1},
  {128, 96}, {128, 160}, {128, 192}, {128, 192, cluster = {2, 1}},
  {128, 256}, {128, 256, cluster = {2, 1}},
  {128, 256, epi_stages = 4, wide = 32},
  {128, 256, epi_stages = 4, wide = 32, cluster = {2, 1}},
  {256, 128, promoted = true}, {128, 224, promoted = true},
  {128, 192, promoted = true},
  {128, 208, promoted = true, epi = {64, 208}, epi_stages = 1, wide = 16},
  {64, 64, consumers = 1, split = "stream", equal = 8},
  {64, 128, consumers = 1, split = "stream", equal = 8},
  {128, 128, split = "stream", equal = 8},
  {256, 192, epi_stages = 1}, {256, 192, cluster = {1, 2}, epi_stages = 1},
  {256, 200, cluster = {1, 2}, epi_stages = 1},
  {256, 208, epi_stages = 1}, {256, 208, cluster = {1, 2}, epi_stages = 1},
}
-- What says of a tile when it is meant, and what it is made of, no choice.
local ABOUT = {deep = true, bits = true, wide = true, promoted = true,
               few = true}

-- Is a tile of the list meant for these complete options, and n?
local function meant(t, o, n)
  return (not t.bits or t.bits == o.a_dtype.bits)
    and (not t.few or n <= t[2] and t[2] <= 2 * math.max(n, 8))
    and (not t.wide or t.wide == o.d_dtype.bits)
    and (not t.promoted or o.promote)
    and not (t.split == "stream" and (o.promote or o.gated))
end

-- Choices that gemm_sm90 takes, less stages, for n columns: with the options of
-- `fixed`, which are o when complete.
local function listed(fixed, o, n)
  local list = {}
  for _, t in ipairs(TILES) do
    if meant(t, o, n) then
      local c = {}
      for name, v in pairs(fixed) do c[name] = v end
      for name, v in pairs(t) do
        if type(name) == "string" and not ABOUT[name] then c[name] = v end
      end
      if t.few then c.consumers = 1 end
      if c.min_blocks then c.persistent = false end
      c.tile = {t[1], t[2], 1024 // o.a_dtype.bits
                * (t.deep or t.few and 2 or 1)}
      list[#list + 1] = c
    end
  end
  return list
end

local function ceil_div(a, b) return (a + b - 1) // b end

-- Of bounds that hold at once: the largest, and a little of the others.
local function together(...)
  local sum = 0
  for _, t in ipairs {...} do sum = sum + t ^ 6 end
  return sum ^ (1 / 6)
end

-- Seconds of a product with complete options `o` (options of gemm_sm90), on
-- `sms` multiprocessors; waves of tiles, as a number: 2.4 take the time of 3.
local function time_of(o, m, n, k, sms)
  local bm, bn, bk = table.unpack(o.tile)
  local bits, wide = o.a_dtype.bits, o.d_dtype.bits
  local cm, cn = o.cluster[1], o.cluster[2]
  local tiles_m, tiles_n = ceil_div(m, bm), ceil_div(n, bn)
  local slots = sms * o.min_blocks // (cm * cn * o.split)
  local waves = ceil_div(tiles_m, cm) * ceil_div(tiles_n, cn) / slots
  local steps = ceil_div(ceil_div(k, bk), o.split)

  local step = math.max(bm * bn * bk / FMAS * bits / 16,
                        (bm + bn) * bk * bits / 8 / FILL)
  if o.promote then step = step + ADD * o.rows / 64 / o.promote end
  -- Fitted to parts of D's rows that swizzles take; whole rows are no slower.
  local part = o.epi[2]
  if o.d_major == "n" and not o.promote then part = part & -part end
  local epilogue = ROUND * (o.rows // 64) * (o.columns // part)
    + bm * o.columns * wide / 8 / DRAIN * (o.epi_stages < 4 and 1 or 0.7)
  local main = steps * step * math.max(1, math.min(waves, 1) * o.min_blocks)
  local tile = o.pingpong and math.max(main, (main + epilogue) / 2)
    or main + epilogue
  if o.split > 1 then tile = tile + EXCHANGE end
  local cycles = FIRST + math.ceil(waves) * tile
    + (o.pingpong and epilogue or 0)
  local busy, late = math.min(waves / math.ceil(waves), 1), 0
  if o.equal then  -- whole waves, and parts of the tiles that are left
    local whole = waves // 1
    local rest = math.floor((waves - whole) * slots + 0.5)
    local parts = rest > 0 and math.min(o.equal, slots // rest, steps) or 1
    if parts > 1 then
      waves, busy = whole + 1 / parts, 1
      cycles = FIRST + whole * tile + ceil_div(steps, parts) * step + epilogue
      late = LEAVE + (parts - 1) * (PART + bm * bn * 4 / FILL)
    end
  end

  local alone, filling, l2 = table.unpack(ENERGY[bits])
  local near = waves <= NEAR and 1 or 0
  local energy = 2.0 * m * n * k * (alone + filling * (1 / bm + 1 / bn)
      + l2 * (1 / bm / cn ^ near + 1 / bn / cm ^ near))
    * (o.promote and 1 + BY_ADDING * o.rows / 64 or 1) / busy ^ 0.5

  local memory = ((m * k + n * k) * bits + m * n * wide) / 8 / MEMORY
  local rest = waves % 1
  if waves > 1 and rest > 0 then  -- few blocks ask for less than there is
    memory = memory * (1 - rest / waves)
      + math.max(memory * rest / waves, tile / CLOCK)
  end
  local seconds = LAUNCH + together(cycles / CLOCK, energy, memory)
    + late / CLOCK
  if cm * cn > 1 then
    seconds = seconds * APART ^ (1 - near) + CLUSTER
  end
  return seconds, waves
end

-- What follows for options from the tiles of a product: blocks need not stay
-- for a single wave; clusters go along the mode that they are narrow in, unless
-- it is the short one; what one row of tiles reads comes from memory once, in
-- long runs, and leaves L2 to the other operand.
-- What options say stays; o are the same, complete.
local function settle(chosen, o, m, n, k, waves)
  local function say(name, v)
    if chosen[name] == nil then chosen[name] = v end
  end
  local stays = o.pingpong or o.shares
  if waves <= 1 and not stays then say("persistent", false) end
  if chosen.persistent == false then  -- a ring for its one tile
    local steps = ceil_div(ceil_div(k, o.tile[3]), o.split)
    chosen.stages = math.min(chosen.stages, math.max(steps, 2))
  end
  if o.cluster[2] > 1 and m >= n then say("raster_along_m", true) end
  local row = ceil_div(m, o.tile[1]) <= o.cluster[1]
  local column = ceil_div(n, o.tile[2]) <= o.cluster[2]
  if row == column then return end
  say("l2_promotion", 256)
  say("a_hint", row and Hint.EVICT_LAST or Hint.EVICT_FIRST)
  say("b_hint", row and Hint.EVICT_FIRST or Hint.EVICT_LAST)
end

--- The choices that can be for a product of (m,k) and (n,k), the best by rule
-- first: {options =, seconds =, waves =} each, options as gemm_sm90 takes them.
---@param m integer
---@param n integer
---@param k integer
---@param o? table options that all of them have (dtype, d_major, epilogue ...),
-- and sms: multiprocessors, 132 when absent
---@return table[]
function choice.candidates(m, n, k, o)
  local fixed, sms, list = {}, 132, {}
  for name, v in pairs(o or {}) do
    if name == "sms" then sms = v else fixed[name] = v end
  end
  for _, c in ipairs(listed(fixed, options.complete(fixed), n)) do
    if fixed.batches then c.split = nil end
    if c.split == "stream" then c.sources = nil end
    local full = options.complete(c)
    local rest, stage = smem.room(full)
    local stages = math.min((smem.share(full.min_blocks) - rest) // stage, 8)
    if stages >= 3 and options.sums_of(full) <= SUMS
      and (full.epi[2] >= 16 or full.d_major == "m")  -- or in rows too short
      and (full.acc ~= cute.i32 or full.tile[2] % 16 == 0)  -- wgmma's N
      and k > (full.split - 1) * full.tile[3] then
      local seconds, waves = time_of(full, m, n, k, sms)
      c.stages = stages
      settle(c, full, m, n, k, waves)
      list[#list + 1] = {options = c, seconds = seconds, waves = waves,
                         at = #list}
    end
  end
  table.sort(list, function(a, b)
    return a.seconds < b.seconds or a.seconds == b.seconds and a.at < b.at
  end)
  return list
end

--- The choices that gemm_sm90 should have for a product: the first of the
-- candidates, and all of them.
---@return table options
---@return table[] candidates
function choice.choose(m, n, k, o)
  local list = choice.candidates(m, n, k, o)
  return list[1].options, list
end

return choice
