--- The options of kernels/attention_sm90 with their defaults: tiles by head
-- size, registers, shared memory.
local core = require "cute.core"
local cute = require "cute"
local eight = require "kernels.attention_sm90.eight"
local rules = require "kernels.operand_rules"
local tiles = require "cute.tiles"

local options = {}

local WHAT = "attention_sm90"
local WARPGROUP = 128
local MOST = 227 * 1024 - 1024  -- bytes of shared memory, not counting barriers

local MOST_ROWS = (1 << 31) - 1

-- The names of all options.
local NAMES = "name head value dtype causal window rows tile stages q_stages "
  .. "ordered modify list ragged rises out scaled"
  .. " v_stages early around"

-- Lists of tiles {rows, keys, time, time with a causal mask} by head size. Each
-- list has the fastest tile that registers and shared memory allow for each
-- number of rows. The times are for one score, relative to the first tile of
-- the list without a mask. They were measured for 512 to 16384 rows on an H100
-- and an H200. A time is infinite if ptxas serializes the wgmmas of the tile.
local TILES = {
  [64] = {{192, 128, 1}, {192, 96, math.huge, 0.96}, {128, 128, 1.2},
          {64, 128, 1.6}},
  [96] = {{192, 80, 1}, {128, 128, 1.1}},
  [128] = {{128, 128, 1}, {64, 128, 1.4}},
  [192] = {{128, 112, 1}}, [256] = {{128, 64, 1}, {128, 80, 1.06}},
}
-- The tiles for heads whose keys have 192 elements and whose values have 128.
local SHORT = {{128, 128, 1}}

-- Lists of tiles for elements of e4m3, measured for 16384 rows on an H200.
-- EIGHT is for full attention, MASKED for causal masks and windows, and SCALED
-- for scales of 128 keys.
local EIGHT = {[64] = {{192, 160, 1}, {128, 128, 1.1}},
               [128] = {{128, 224, 1}, {128, 160, 1.03}},
               [256] = {{128, 96, 1}}}
local MASKED = {[64] = EIGHT[64], [128] = {{128, 192, 1}}, [256] = EIGHT[256]}
local SCALED = {[64] = {{192, 128, 1}}, [128] = {{128, 128, 1}},
                [256] = {{128, 64, 1}}}

-- Returns the list of tiles from which `fastest` selects one, or nil for a head
-- size without tiles. narrow: whether the elements are of e4m3.
local function tiles_of(o, narrow)
  if narrow then
    local masked = o.causal or o.window or o.left or o.right
    return (o.scaled and SCALED or masked and MASKED or EIGHT)[o.head]
  end
  if o.value and o.value < o.head then return SHORT end
  return TILES[o.head]
end

-- Registers of a thread by the number of consumers: {producer, consumer}. With
-- one consumer, threads have enough registers without setmaxregister.
local REGISTERS = {{}, {40, 232}, {32, 160}}

--- Returns the bytes of shared memory that the stages of Q, K and V need.
function options.bytes(o)
  local M, N = o.tile[1], o.tile[2]
  -- With e4m3, shared memory contains two forms of V: as loaded, and
  -- transposed.
  local raw = o.dtype.bits == 8 and o.v_stages * N * o.value + 2560 or 0
  return (o.q_stages * M * o.head + o.stages * N * (o.head + o.value) + raw)
    * o.dtype.bits // 8
end

-- Checks that the tile is valid and that its stages fit in shared memory.
local function check(o)
  local M, N = o.tile[1], o.tile[2]
  rules.integers(WHAT, o, {"stages", "q_stages", "v_stages"}, 1, 8)
  rules.need(math.type(M) == "integer" and M % 64 == 0 and M >= 64
    and M <= 192 and math.type(N) == "integer" and N % 16 == 0 and N >= 16
    and N <= 256, WHAT, "tile = {%s, %s}; 64, 128 or 192 rows, and a multiple "
    .. "of 16 up to 256 keys are needed", core.show(M), core.show(N))
  rules.need(options.bytes(o) <= MOST, WHAT, "tile = {%d, %d} with %d stages "
    .. "of Q and %d of K and V needs %d bytes of shared memory; a block has %d",
    M, N, o.q_stages, o.stages, options.bytes(o), MOST)
  rules.need(not o.narrow or N % 32 == 0, WHAT, "tile = {%d, %d} with elements "
    .. "of e4m3; a multiple of 32 keys is needed", M, N)
  rules.need(not o.scaled or 128 % N == 0, WHAT, "tile = {%d, %d} with scales "
    .. "of 128 keys; a divisor of 128 is needed", M, N)
end

-- Returns the number of scores that tiles of M rows and N keys compute for a
-- sequence of `rows` rows and the same number of keys. All scores of a tile
-- count. With causal = true, only tiles count in which some row sees a key.
local function scores(rows, M, N, causal)
  local n, keys = 0, tiles.count(rows, N) * N
  for i = 1, tiles.count(rows, M) do
    n = n + M * (causal and math.min(tiles.count(i * M, N) * N, keys) or keys)
  end
  return n
end

-- Returns the tile of `known` that takes the least time for sequences of `rows`
-- rows. Returns the first tile if the number of rows is not known.
local function fastest(known, rows, causal)
  local best, least
  -- Above 65536 rows, the same tile stays the fastest.
  rows = rows and math.min(rows, 1 << 16)
  for _, t in ipairs(known) do
    local time = (causal and t[4] or t[3])
      * (rows and scores(rows, t[1], t[2], causal) or 1)
    if not least or time < least then best, least = t, time end
  end
  return {best[1], best[2]}
end

-- Returns the fastest tile of `known` that divides the blocks of a block mask.
local function dividing(known, list)
  for _, t in ipairs(known) do
    local M, N = t[1], t[2]
    while list[2] % N ~= 0 do N = N - 16 end
    if list[1] % M == 0 then return {M, N} end
  end
end

-- Returns the element type x, which may be given by name.
local function type_of(x)
  return type(x) == "string" and core.find_dtype(x) or x
end

-- Sets the options ordered, rises and early, which choose how a consumer
-- processes a block of keys. An absent option gets the value that was measured
-- to be the fastest.
local function complete_steps(o, given)
  local masked, many = o.left or o.right, o.consumers > 1
  o.ordered, o.early = given.ordered, given.early
  if o.ordered == nil then
    o.ordered = many and not (o.narrow and o.head == 64 and not masked)
  end
  if given.around and o.list then o.rises = true end
  if o.rises == nil and o.narrow then
    o.rises = masked ~= nil or o.head == 256
  end
  if o.early == nil then
    o.early = not o.narrow and o.head == 128 and o.tile[1] == 128
      and o.tile[2] <= 128 and not (o.modify and o.list)
  end
end

--- Returns all options: the given ones, and defaults for all missing ones.
---@param given table
---@return table
function options.complete(given)
  rules.options(WHAT, given, NAMES)
  rules.need(TILES[given.head], WHAT, "head = %s; 64, 96, 128, 192 or 256 is "
    .. "needed", core.show(given.head))
  local narrow = type_of(given.dtype or "bf16") == cute.e4m3
  local known = tiles_of(given, narrow)
  rules.need(known, WHAT, "head = %s with elements of e4m3; 64, 128 or 256 is "
    .. "needed", core.show(given.head))
  local o = {head = given.head, value = given.value or given.head,
             dtype = type_of(given.dtype or "bf16"), stages = given.stages or 2,
             rows = given.rows, modify = given.modify, list = given.list,
             ragged = given.ragged, rises = given.rises, narrow = narrow,
             around = given.around and not given.list,
             scaled = given.scaled,
             left = rules.window(WHAT, given, 1),
             right = rules.window(WHAT, given, 2)}
  rules.integers(WHAT, o, {"rows"}, 1, MOST_ROWS)
  if given.causal then o.right = 0 end
  o.out = type_of(given.out or (narrow and "bf16" or o.dtype))
  o.helpers = narrow and eight.WARPS or 1
  rules.need(o.dtype == cute.bf16 or o.dtype == cute.f16 or narrow, WHAT,
    "elements of %s; bf16, f16 or e4m3 is needed", core.show(given.dtype))
  rules.need(not narrow and o.out == o.dtype or narrow and (
    o.out == cute.bf16 or o.out == cute.f16 or o.out == cute.f32), WHAT,
    "out = %s with elements of %s; the same type, or for e4m3 bf16, f16 or "
    .. "f32, is needed", core.show(given.out), o.dtype)
  rules.need(o.value == o.head or o.value == 128 and o.head == 192
    and not narrow, WHAT,
    "value = %s with head = %d; the same, or 128 with head = 192, is needed",
    core.show(o.value), o.head)
  -- These options give tiles different run times, so blocks draw tiles at run
  -- time.
  o.dynamic = o.left ~= nil or o.right ~= nil or o.list ~= nil
    or o.ragged
  o.tile = given.tile or o.list and dividing(known, o.list)
    or fastest(known, o.rows, given.causal)
  rules.need(not o.list or o.list[1] % o.tile[1] == 0
    and o.list[2] % o.tile[2] == 0, WHAT, "blocks of %s rows and %s keys are "
    .. "listed; multiples of the tile's %d and %d are needed",
    o.list and o.list[1], o.list and o.list[2], o.tile[1], o.tile[2])
  o.q_stages = given.q_stages or 2
  o.v_stages = given.v_stages or o.stages
  if not given.q_stages and options.bytes(o) > MOST then o.q_stages = 1 end
  if not given.v_stages and options.bytes(o) > MOST then o.v_stages = 1 end
  check(o)
  o.consumers = o.tile[1] // 64
  complete_steps(o, given)
  o.producer_registers, o.registers = table.unpack(REGISTERS[o.consumers])
  o.block = (o.consumers + 1) * WARPGROUP
  return o
end

-- The largest number of registers of a thread for scores, their powers and O,
-- by the number of consumers.
local VALUES = {200, 200, 128}

-- The maximum number of candidates with the same number of rows, and the
-- maximum number of keys of a candidate.
local MOST_TILES, MOST_KEYS = 4, 176

--- Returns tiles {rows, keys} to measure: the default tile, then the other
-- tiles of its list, then tiles with the largest number of keys that registers
-- and shared memory allow.
---@param given table
---@return integer[][]
function options.candidates(given)
  local o = options.complete(given)
  local list, seen = {}, {}
  local function divides(M, N)
    return not o.list or o.list[1] % M == 0 and o.list[2] % N == 0
  end
  local function add(M, N)
    local name = ("%dx%d"):format(M, N)
    if not seen[name] and divides(M, N) then
      list[#list + 1], seen[name] = {M, N}, true
    end
  end
  add(o.tile[1], o.tile[2])
  for _, t in ipairs(tiles_of(o, o.narrow)) do add(t[1], t[2]) end
  for M = 192, 64, -64 do
    local n = 0
    for N = o.narrow and 256 or MOST_KEYS, 32, o.narrow and -32 or -16 do
      local t = {tile = {M, N}, head = o.head, value = o.value, dtype = o.dtype,
                 stages = o.stages, q_stages = 1, v_stages = 1}
      local held = o.narrow and 5 * N // 8 - 4 or 3 * N // 4
      if held + o.value // 2 <= VALUES[M // 64] and n < MOST_TILES
        and options.bytes(t) <= MOST and divides(M, N)
        and not (o.scaled and 128 % N ~= 0) then
        n = n + 1
        add(M, N)
      end
    end
  end
  return list
end

return options
-- SPDX-License-Identifier: MIT
