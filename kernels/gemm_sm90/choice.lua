--- Chooses options of kernels/gemm_sm90 for a product: lists the candidates,
-- and sets the options that follow from a product's sizes.
local cute = require "cute"
local model = require "kernels.gemm_sm90.model"
local options = require "kernels.gemm_sm90.options"
local smem = require "kernels.gemm_sm90.smem"

local Hint = cute.nvgpu.cpasync.CacheHint

local choice = {}

-- The emitted epilogue may be a loop over the parts of a tile. If K is at least
-- this large, the products of other warpgroups hide the cost of this loop.
local HIDDEN = 4096

-- Candidate tiles. Each entry has {BM, BN}, options (consumers, schedule, ...)
-- and conditions on the product:
-- bits: only for operands with this number of bits.
-- wide: only for a D with this number of bits.
-- promoted: only for promoted accumulators.
-- blocks: only with scale factors of blocks.
-- few: only for results as narrow as the tile, with one consumer (if not given)
--   and long tiles along K.
-- grouped: only for groups.
-- deep = n: a tile has n times the default extent along K.
-- min_blocks: the number of blocks on a multiprocessor, each with one tile.
local TILES = {
  {64, 8, few = true}, {64, 8, few = true, min_blocks = 2},
  {128, 16, few = true, consumers = 2, min_blocks = 2},
  {64, 16, few = true}, {64, 16, few = true, min_blocks = 2},
  {64, 16, few = true, split = 2},
  {64, 16, few = true, split = 2, min_blocks = 2},
  {64, 32, few = true, min_blocks = 2}, {64, 32, few = true, split = 2},
  {64, 32, few = true, split = 2, min_blocks = 2},
  {64, 64, few = true, min_blocks = 2}, {64, 64, few = true, split = 2},
  {64, 64, few = true, split = 2, min_blocks = 2},
  {64, 32, few = true, split = 4}, {64, 64, few = true, split = 4},
  {64, 64, few = true, split = 8},
  {64, 32, consumers = 1, deep = 2}, {64, 64, consumers = 1, deep = 2},
  {64, 32, consumers = 1, promoted = true},
  {64, 64, consumers = 1, promoted = true},
  {64, 64, consumers = 1, split = 2, blocks = true},
  {64, 128, consumers = 1, split = 2, blocks = true},
  {128, 64}, {64, 128, consumers = 1},
  {128, 128, schedule = "pingpong"},
  {128, 192, schedule = "pingpong", bits = 8},
  {64, 64, consumers = 1, split = 8},
  {64, 128, consumers = 1, split = 4}, {64, 128, consumers = 1, split = 8},
  {64, 256, consumers = 1, split = 4}, {128, 64, split = 4},
  {128, 128}, {128, 128, split = 2, epi_stages = 1},
  {128, 128, split = 4, epi_stages = 1}, {128, 128, split = 8, epi_stages = 1},
  {128, 192, split = 2, epi_stages = 1}, {128, 192, split = 3, epi_stages = 1},
  {128, 192, split = 4, epi_stages = 1},
  {128, 96}, {128, 160}, {128, 192}, {128, 192, cluster = {2, 1}},
  {128, 256}, {128, 256, cluster = {2, 1}},
  {128, 256, epi_stages = 4, wide = 32},
  {128, 256, epi_stages = 4, wide = 32, cluster = {2, 1}},
  {128, 256, epi_stages = 4, grouped = true, cluster = {1, 2}},
  {256, 128, promoted = true}, {128, 224, promoted = true},
  {128, 192, promoted = true},
  {128, 208, promoted = true, epi = {64, 208}, epi_stages = 1, wide = 16},
  {64, 64, consumers = 1, split = "stream", equal = 8},
  {64, 128, consumers = 1, split = "stream", equal = 8},
  {128, 128, split = "stream", equal = 8},
  {192, 128, consumers = 3, bits = 16}, {192, 160, consumers = 3, bits = 16},
  {192, 192, consumers = 3, bits = 16},
  {192, 192, consumers = 3, bits = 16, epi_stages = 1},
  {192, 192, consumers = 3, bits = 16, epi_stages = 1, cluster = {1, 2}},
  {256, 192, epi_stages = 1}, {256, 192, cluster = {1, 2}, epi_stages = 1},
  {256, 200, cluster = {1, 2}, epi_stages = 1},
  {256, 208, epi_stages = 1}, {256, 208, cluster = {1, 2}, epi_stages = 1},
}
-- The fields of TILES that are conditions. All other fields are options.
local ABOUT = {deep = true, bits = true, wide = true, promoted = true,
               blocks = true, few = true, grouped = true}

-- Reports whether a tile suits groups. Groups often fill 256 rows only in part.
-- Of the tiles with 256 columns, the one whose cluster shares A (`grouped`) was
-- the fastest.
local function for_groups(t, o)
  return not t.split and not t.min_blocks
    and (t[1] < 256 or o.promote) and (t[2] < 256 or t.grouped)
    and not (o.groups == "list" and t.schedule == "pingpong")
end

-- Reports whether entry t of TILES suits the complete options o and results of
-- (m,n). An entry does not suit if most rows of its tile would be outside the
-- result.
local function meant(t, o, m, n)
  return (t[1] < 128 or 4 * m > t[1])
    and (not t.bits or t.bits == o.a_dtype.bits)
    and (not t.few or n <= t[2]
         and t[2] <= math.max(2 * n, 16, 8 * (t.split or 1)))
    and (not t.wide or t.wide == o.d_dtype.bits)
    and (not t.promoted or o.promote) and (not t.blocks or o.blocks)
    -- If B's columns are contiguous, TMA copies runs of gcd(columns, 64)
    -- elements. Runs of only 8 elements make a step 1.5 times as long.
    and (o.b_major == "k" or t[2] < 64 or t[2] % 16 == 0)
    -- With the option `epi`, all columns of a tile are stored at once. With
    -- gates, D has only half of the tile's columns.
    and not (t.epi and o.gated)
    and not (t.split == "stream" and (o.promote or o.gated))
    and not (t.split and o.blocks and o.promote > 1)
    -- Three consumers have no registers for the sums of promoted accumulators.
    and not (t.consumers == 3 and o.promote)
    and (not o.groups or for_groups(t, o))
    -- Of the products with groups or batches, 32 of 256^3 were measured with
    -- tiles of 192 rows. They took 1.8 times as long as with 128 rows.
    and not (t[1] == 192 and (o.groups or o.batches))
    and (not t.grouped or o.groups)
end

local function ceil_div(a, b) return (a + b - 1) // b end

-- Returns the widths to try for an entry of TILES, for m rows and n columns.
-- They are the entry's width and some narrower ones. A narrower width must give
-- the same number of tiles, or tiles that fill a whole number of waves. TMA is
-- slow for columns outside the tensor, and a last wave of few tiles takes as
-- long as a whole wave.
local WAVES = 4
local function widths(t, o, m, n, sms)
  local whole = t[2]
  local list = {whole}
  if o.b_major ~= "k" or o.groups or o.gated or t.epi then return list end
  local cm, cn = table.unpack(t.cluster or {1, 1})
  local split = t.split ~= "stream" and t.split or 1
  local unit = (o.epilogue and 32 or 8) * cm * split
  local function add(count)
    local width = ceil_div(ceil_div(n, count), unit) * unit
    if width < whole and 2 * width >= whole then list[#list + 1] = width end
  end
  add(ceil_div(n, whole))
  local rows = ceil_div(m, t[1] * cm) * cm
  local plain = o.a_dtype.bits == 16 and not o.epilogue
    -- Narrower tiles were measured only for plain products.
    and t.split ~= "stream"
  for wave = 1, plain and WAVES or 0 do
    local tiles = wave * sms * (t.min_blocks or 1) // split
    add(math.max(tiles // rows // cn * cn, 1))
  end
  return list
end

-- Converts an entry of TILES, with the given width, to a table of options.
local function options_of(t, width, fixed, o)
  local c = {}
  for name, v in pairs(fixed) do c[name] = v end
  for name, v in pairs(t) do
    if type(name) == "string" and not ABOUT[name] then c[name] = v end
  end
  if t.few then c.consumers = t.consumers or 1 end
  if c.min_blocks then c.persistent = false end
  if fixed.batches then c.split = nil end
  -- A step with scale factors is one tile along K.
  local deep = not o.blocks and (t.deep or t.few and 2) or 1
  c.tile = {t[1], width, 1024 // o.a_dtype.bits * deep}
  return c
end

-- Returns the candidate's options as a string, which is different for each
-- candidate.
local function words(c)
  local list = {table.concat(c.tile, "x"), table.concat(c.cluster or {}, "x")}
  for i, name in ipairs {"consumers", "schedule", "split", "min_blocks",
                         "epi_stages"} do
    list[i + 2] = tostring(c[name])
  end
  return table.concat(list, " ")
end

-- Reports whether integer wgmma supports n columns.
local function has_integer_mma(n) return n % 16 == 0 or n == 8 or n == 24 end

-- Returns the candidates for m rows and n columns. A candidate is a table of
-- options that gemm_sm90 accepts, without the number of stages. `fixed` has the
-- given options; `o` has the given options and the defaults of all others.
local function listed(fixed, o, m, n, sms)
  local list, there = {}, {}
  for _, t in ipairs(TILES) do
    for _, width in ipairs(meant(t, o, m, n) and widths(t, o, m, n, sms)
                               or {}) do
      local c = options_of(t, width, fixed, o)
      local name = words(c)
      if not there[name] then
        list[#list + 1], there[name] = c, true
      end
    end
  end
  return list
end

-- The value of `swizzle` for groups: the number of tiles along M that come
-- before the tiles at the next index along N. It exceeds the number of tiles of
-- most groups, so that B is read from memory once.
local BANDS = 32

--- Sets options that follow from a product's tiles, but leaves given options
-- unchanged. o: the options with defaults, of gemm_sm90 or gemm_sm100. A single
-- wave needs no persistent blocks. An epilogue of many parts becomes a loop if
-- long products run at the same time. If one row or column of tiles covers the
-- result, L2 keeps the small operand. The other operand is read once, in long
-- runs, with the hint "evict first".
function choice.settle(chosen, o, m, n, k, waves)
  local function say(name, v)
    if chosen[name] == nil then chosen[name] = v end
  end
  local stays = o.pingpong or o.shares
  if waves <= 1 and not stays then say("persistent", false) end
  if waves <= 1 and not o.pingpong and model.turned(o, m, n) then
    say("raster_along_m", true)
  end
  -- A block with one tile needs no more stages than the tile has steps along K.
  if chosen.persistent == false then
    local steps = ceil_div(ceil_div(k, o.tile[3]), o.split)
    chosen.stages = math.min(chosen.stages, math.max(steps, 2))
  end
  if o.groups then
    say("swizzle", BANDS)
  elseif (o.cluster[2] > 1 or o.pingpong) and m >= n then
    say("raster_along_m", true)
  end
  if o.epilogue and o.pingpong and not o.groups and k > HIDDEN - o.tile[3]
    and o.rows // 64 * (o.columns // o.epi[2]) > 4 then
    say("epi_loop", true)
  end
  local row = ceil_div(m, o.tile[1]) <= o.cluster[1]
  local column = ceil_div(n, o.tile[2]) <= o.cluster[2]
  if row == column then return end
  say("l2_promotion", 256)
  say("a_hint", row and Hint.EVICT_LAST or Hint.EVICT_FIRST)
  say("b_hint", row and Hint.EVICT_FIRST or Hint.EVICT_LAST)
end

--- Returns a list of the candidates for a product of (m,k) and (n,k), sorted by
-- estimated time. Each is {options =, seconds =, waves =, blocks =, room =
-- number of blocks that fit on a multiprocessor}, with options for gemm_sm90.
---@param m integer
---@param n integer
---@param k integer
---@param o? table options that all candidates have (dtype, d_major, epilogue
-- ...), and sms: multiprocessors, 132 when absent
---@return table[]
function choice.candidates(m, n, k, o)
  local fixed, sms, list = {}, 132, {}
  for name, v in pairs(o or {}) do
    if name == "sms" then sms = v else fixed[name] = v end
  end
  for _, c in ipairs(listed(fixed, options.complete(fixed), m, n, sms)) do
    if c.split == "stream" then c.sources = nil end
    local full = options.complete(c, true)
    local rest, stage = smem.room(full)
    local stages = math.min((smem.share(full.min_blocks) - rest) // stage, 8)
    if stages >= 3 and full.sums <= full.most_sums
      -- epi[2] is the number of columns of D that are stored at once.
      and (full.epi[2] >= 16 or full.d_major == "m")
      and (full.acc ~= cute.i32 or has_integer_mma(full.tile[2])
           and has_integer_mma(full.epi[2]))
      and k > (full.split - 1) * full.tile[3] then
      c.stages, full.stages = stages, stages
      local seconds, waves, parts = model.time(full, m, n, k, sms)
      choice.settle(c, full, m, n, k, waves)
      -- The option `equal` makes no difference if no tile is split, so such a
      -- candidate is omitted.
      if not c.equal or parts > 1 then
        list[#list + 1] = {options = c, seconds = seconds, waves = waves,
          at = #list, room = smem.blocks(rest + c.stages * stage),
          blocks = ceil_div(m, full.tile[1]) * ceil_div(n, full.tile[2])
            * full.split}
      end
    end
  end
  table.sort(list, function(a, b)
    return a.seconds < b.seconds or a.seconds == b.seconds and a.at < b.at
  end)
  return list
end

--- Chooses the options of gemm_sm90 for a product. Returns the options of the
-- best candidate, and the list of all candidates.
---@return table options
---@return table[] candidates
function choice.choose(m, n, k, o)
  local list = choice.candidates(m, n, k, o)
  return list[1].options, list
end

return choice
-- SPDX-License-Identifier: MIT
