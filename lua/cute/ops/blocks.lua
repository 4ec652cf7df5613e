--- How long kernels take whose blocks fetch their own tiles, and where K may be
-- shared out: those of mma.sync and of FMA units.
--
-- A multiprocessor works on its blocks one after the other, while memory brings
-- the operands; each launch begins and ends, and blocks that share a tile send
-- each other their sums. Constants are those of an H200, fitted by
-- tools/fit.lua.
local cute = require "cute"
local tiles = require "cute.tiles"

local blocks = {}

blocks.constants = {
  memory = 4284,   -- bytes a ns
  near = 3.2,      -- how little of the lesser bound counts: a power
  start = 4800,    -- ns of a block's first tiles and last sums
  meet = 29.4,     -- bytes a ns of what blocks exchange
  drain = 60,      -- bytes a ns of a tile of D
  rate = {[64] = 250, [32] = 1900, [16] = 4000, [8] = 7500},  -- operations a ns
  good = {  -- the share of them that a tile reaches
    ["128x256"] = 1, ["128x128"] = 0.9, ["128x64"] = 0.698,
    ["64x128"] = 0.798, ["64x64"] = 0.655, ["32x64"] = 0.4, ["16x128"] = 0.311,
    ["128x16"] = 0.289},
}
local C = blocks.constants

--- How well a tile {BM, BN} uses its units.
function blocks.good(t)
  return t.good or C.good[("%dx%d"):format(t[1], t[2])]
end

-- Rows of a matrix, or those that a group is expected to have.
local function rows(p) return p.expected or p.m end

--- Nanoseconds of reading the operands and writing D once.
---@param p table a problem of cute.ops.choose
function blocks.memory(p)
  local m = rows(p)
  return ((m * p.a.bits + p.n * p.b.bits) * p.k + m * p.columns * p.d.bits)
    / 8 * p.batches / C.memory
end

--- Nanoseconds of a problem in tiles {BM, BN, BK} with K in `splits`.
---@param p table
---@param tile integer[]
---@param rate number operations a ns of a multiprocessor
---@param splits integer
function blocks.time(p, tile, rate, splits)
  local count = tiles.count(rows(p), tile[1]) * tiles.count(p.n, tile[2])
    * p.batches * splits
  local along = tiles.count(tiles.count(p.k, tile[3]), splits) * tile[3]
  local each = 2 * tile[1] * tile[2] * along / rate
    + tile[1] * tile[2] * p.d.bits / 8 / C.drain
  local meet = splits > 1 and tile[1] * tile[2] * 4 * (splits + 1) / C.meet or 0
  local work = tiles.count(count, p.sms) * each
  return (work ^ C.near + blocks.memory(p) ^ C.near) ^ (1 / C.near) + C.start
    + meet
end

-- In how many parts K is tried.
local SPLITS = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}

--- Candidates of a list of tiles, with K shared out where that helps.
---@param p table
---@param family string
---@param list table[] of tiles
---@param make fun(t: table): table, table, number a tile's options, {BM, BN,
-- BK}, operations a ns of a multiprocessor
---@return table[] as families list them (cute.ops.choose)
function blocks.candidates(p, family, list, make)
  local out = {}
  local can = p.batches == 1 and p.sums == cute.f32 and not p.gated
    and not p.group and not p.ragged
  for _, t in ipairs(list) do
    for _, splits in ipairs(p.splits and {p.splits} or SPLITS) do
      local o, tile, rate = make(t)
      local alone = splits == 1
      if alone or can and splits <= tiles.count(p.k, tile[3]) // 2 then
        o.splits = not alone and splits or nil
        out[#out + 1] = {
          family = alone and family or "gemm_splitk", options = o, tile = tile,
          stages = o.stages, split = splits,
          ns = blocks.time(p, tile, rate * blocks.good(t), splits)}
      end
    end
  end
  return out
end

return blocks
