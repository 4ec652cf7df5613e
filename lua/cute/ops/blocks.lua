--- How long kernels take whose blocks fetch their own tiles, and where K may be
-- shared out: those of mma.sync and of FMA units.
--
-- A multiprocessor works on as many blocks at once as it has room for, while
-- memory brings the operands: the tensor cores bound them, or the time from one
-- tile along K to the next, which blocks side by side do not add to. A launch
-- begins and ends, and blocks that share a tile send each other their sums.
-- Constants are those of an H200, fitted by tools/fit.lua.
local constants = require "kernels.gemm_sm90.constants"
local model = require "kernels.gemm_sm90.model"
local tiles = require "cute.tiles"

local blocks = {}

blocks.constants = {
  memory = 4038,   -- bytes a ns
  l2 = 11908,      -- bytes a ns of operands that stay in L2
  near = 3.34,     -- how little of the lesser bound counts: a power
  start = 2200,    -- ns of a block's first tiles and last sums
  latency = 574,   -- ns from asking for a tile to having it
  share = 476,     -- ns of blocks that share a tile, besides
  meet = 55.2,     -- bytes a ns of what blocks exchange
  drain = 78.2,    -- bytes a ns of a tile of D
  ask = 10,        -- pieces a ns that threads ask for, of less than 16 bytes
  single = 600,    -- ns of elements that threads bring one by one
  far = 1500,      -- the same from memory
  -- operations a ns
  rate = {[64] = 250, [32] = 1900, [16] = 4000, [8] = 7500},
  good = {  -- the share of them that a tile reaches
    ["128x256"] = 1, ["128x128"] = 0.9, ["128x64"] = 0.506,
    ["64x128"] = 0.713, ["64x64"] = 0.502, ["32x64"] = 0.375,
    ["16x128"] = 0.307, ["128x16"] = 0.297},
}
local C = blocks.constants

--- How well a tile {BM, BN} uses its units.
function blocks.good(t)
  return t.good or C.good[("%dx%d"):format(t[1], t[2])]
end

-- Rows of a matrix, or those that a group is expected to have.
local function rows(p) return p.expected or p.m end

-- Bytes that are read once.
local function read(p)
  return (rows(p) * p.a.bits + p.n * p.b.bits) * p.k / 8 * p.batches
end

local STAYS = 16 << 20  -- bytes that L2 still has when the next product begins

--- Bytes a ns, where so many are read.
function blocks.rate(bytes) return bytes < STAYS and C.l2 or C.memory end

--- Nanoseconds of reading the operands and writing D once.
---@param p table a problem of cute.ops.choose
function blocks.memory(p)
  return (read(p) + rows(p) * p.columns * p.d.bits / 8 * p.batches)
    / blocks.rate(read(p))
end

local ROOM = 227 * 1024  -- bytes of shared memory of a multiprocessor

-- Elements of K in a tile, as the constants were fitted.
local function along(tile) return tile.timed or tile[3] end

-- Nanoseconds of `steps` along K of so many tiles beside each other, one on its
-- way less than there are stages; none is where threads bring elements, by
-- `tile.single` turns. `tile.asked` pieces come for each element of K.
local function along_k(p, tile, stages, rate, steps, beside)
  local step = ((2 * tile[1] * tile[2] / rate) ^ C.near
    + ((tile.asked or 0) / C.ask) ^ C.near) ^ (1 / C.near)
    * along(tile) * beside
  return steps * math.max(step, C.latency / math.min(stages - 1, steps),
                          (tile.single or 0)
                            * (read(p) < STAYS and C.single or C.far))
    + beside * tile[1] * tile[2] * p.d.bits / 8 / C.drain
end

-- Bytes of so many rows of an operand that L2 is asked for: as many more as it
-- takes longer where they begin inside lines of memory; 0 where they do not.
local function cut_bytes(t, bits, count, k)
  local pitch = t.stride[2] == 1 and t.stride[1] or t.stride[2]
  local by = math.type(pitch) == "integer" and model.cut(pitch, bits) or 1
  return by > 1 and by * count * k * bits / 8 or 0
end

--- Nanoseconds of a problem in tiles {BM, BN, BK} with K in `splits`.
---@param p table
---@param tile integer[]
---@param stages integer
---@param rate number operations a ns of a multiprocessor
---@param splits integer
function blocks.time(p, tile, stages, rate, splits)
  local count = tiles.count(rows(p), tile[1]) * tiles.count(p.n, tile[2])
    * p.batches * splits
  local steps = tiles.count(tiles.count(p.k, along(tile)), splits)
  local bytes = (tile[1] * p.a.bits + tile[2] * p.b.bits) * along(tile) // 8
  local room = math.max(1, ROOM // (stages * bytes + 1024))
  local each = tiles.count(count, p.sms)
  local work = each // room * along_k(p, tile, stages, rate, steps, room)
    + (each % room > 0
       and along_k(p, tile, stages, rate, steps, each % room) or 0)
  local meet = splits > 1
    and C.share + tile[1] * tile[2] * p.sums.bits / 8 * (splits + 1) / C.meet
    or 0
  local cut = (cut_bytes(p.A, p.a.bits, tile[1], p.k)
    + cut_bytes(p.B, p.b.bits, tile[2], p.k)) * count / splits
    / (constants.l2 * 1e-9)
  return (work ^ C.near + blocks.memory(p) ^ C.near + cut ^ C.near)
    ^ (1 / C.near) + C.start + meet
end

-- In how many parts K is tried.
local SPLITS = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}

--- Candidates of a list of tiles, with K shared out where that helps.
---@param p table
---@param family string
---@param list table[] of tiles
---@param make fun(t: table, splits: integer): table, table, number a tile's
-- options, {BM, BN, BK}, operations a ns of a multiprocessor
---@return table[] as families list them (cute.ops.choose)
function blocks.candidates(p, family, list, make)
  local out = {}
  local can = p.batches == 1 and not p.sums.is_integer and not p.gated
    and not p.group and not p.ragged
  for _, t in ipairs(list) do
    for _, splits in ipairs(p.splits and {p.splits} or SPLITS) do
      local o, tile, rate = make(t, splits)
      local alone = splits == 1
      if alone or can and splits <= tiles.count(p.k, along(tile)) // 2 then
        o.splits = not alone and splits or nil
        out[#out + 1] = {
          family = alone and family or "gemm_splitk", options = o, tile = tile,
          stages = o.stages, split = splits,
          ns = blocks.time(p, tile, o.stages, rate * blocks.good(t), splits)}
      end
    end
  end
  return out
end

return blocks
