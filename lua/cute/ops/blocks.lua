--- Time estimates and split-K candidates for kernels whose blocks load their
-- own tiles: kernels with mma.sync and kernels with FMA units.
--
-- A multiprocessor runs as many blocks at once as fit, while memory delivers
-- the operands. Time is limited by the tensor cores, or by the latency from one
-- tile along K to the next. Concurrent blocks wait for this latency at the same
-- time. Each launch has constant costs at its start and end. In split-K, the
-- blocks that share a tile exchange partial sums. The constants are those of an
-- H200, fitted by tools/fit.lua.
local constants = require "kernels.gemm_sm90.constants"
local core = require "cute.core"
local cute = require "cute"
local model = require "kernels.gemm_sm90.model"
local tiles = require "cute.tiles"

local blocks = {}

blocks.constants = {
  memory = 4038,   -- bytes per ns from memory
  l2 = 11908,      -- bytes per ns from L2
  -- If two activities that take the times a and b overlap, both together take
  -- (a^near + b^near)^(1 / near).
  near = 3.77,
  -- Constant costs of a launch in ns: the first tiles are loaded and D is
  -- stored, without overlap with computation.
  start = 2200,
  latency = 816,   -- ns to load a tile from memory
  close = 561,     -- ns to load a tile from L2
  -- Additional ns for a tile of D that several blocks compute (split-K).
  share = 661,
  meet = 59.7,     -- bytes of partial sums per ns that a tile's blocks exchange
  -- L2 keeps KEPT bytes of partial sums. Partial sums beyond are written to
  -- memory and read again at this rate, in bytes per ns.
  passed = 5657,
  drain = 66.8,    -- bytes of D per ns that a block stores
  ask = 10,        -- loads of less than 16 bytes each that a block starts per
                   -- ns
  single = 1183,   -- ns that one round of loads of single elements from L2
                   -- takes
  far = 1500,      -- ns that one round of loads of single elements from memory
                   -- takes
  -- Operations per ns of a multiprocessor, by the bits of an element.
  rate = {[64] = 250, [32] = 1900, [16] = 4000, [8] = 7500, [4] = 15000},
  -- Fraction of `rate` that an output tile of M x N elements reaches.
  good = {
    ["128x256"] = 1, ["128x128"] = 0.76, ["128x64"] = 0.484,
    ["64x128"] = 0.5, ["64x64"] = 0.561, ["32x64"] = 0.433,
    ["16x128"] = 0.208, ["128x16"] = 0.337},
}
local C = blocks.constants

--- Returns the number of bytes that one load of an operand along a contiguous
-- mode moves, at most 16. If `lead` is absent, returns the bytes of one
-- element.
---@param t any (M,K[,L])
---@param lead? integer|false
---@return integer
function blocks.piece(t, lead)
  local bits = t.element_type.bits
  if not lead then return bits // 8 end
  local apart = core.gcd(t.shape[lead], t.stride[3 - lead])
  for _, far in ipairs(cute.flatten_to_tuple(t.stride[3] or {0})) do
    apart = core.gcd(apart, far)
  end
  return core.gcd(apart * bits // 8, t.alignment, 16)
end

-- Returns the number of rows of A. For grouped products, returns the expected
-- number of rows of a group, if known.
local function rows(p) return p.expected or p.m end

-- Returns the number of bytes of A and B of all batches.
local function read(p)
  return (rows(p) * p.a.bits + p.n * p.b.bits) * p.k / 8 * p.batches
end

-- Operands of fewer bytes than this in total stay in L2 until the next product.
local STAYS = 16 << 20

--- Returns the bandwidth in bytes per ns at which operands of this many bytes
-- are read: L2's for small operands, which stay in L2, else memory's.
function blocks.rate(bytes) return bytes < STAYS and C.l2 or C.memory end

--- Returns the ns that memory needs to read the operands and write D once.
---@param p table a problem of cute.ops.choose
function blocks.memory(p)
  return (read(p) + rows(p) * p.columns * p.d.bits / 8 * p.batches)
    / blocks.rate(read(p))
end

-- Bytes of a multiprocessor's shared memory that hold the stages of its blocks.
local ROOM = 227 * 1024

-- Returns a tile's extent along K for the time model: tile[3], or tile.timed if
-- the constants were fitted with another extent.
local function along(tile) return tile.timed or tile[3] end

-- Returns the ns in which `beside` concurrent blocks each compute `steps` tiles
-- along K and store D. While one tile is computed, stages - 1 tiles are being
-- loaded. If threads load single elements, a block waits for at least
-- `tile.single` rounds of loads for each tile. `tile.asked` is the number of
-- loads of less than 16 bytes for each element of K.
local function along_k(p, tile, stages, rate, steps, beside)
  if tile.lone then
    rate = rate * (1 - (1 - tile.lone) * (tile.room - beside) / (tile.room - 1))
  end
  local step = ((2 * tile[1] * tile[2] / rate) ^ C.near
    + ((tile.asked or 0) / C.ask) ^ C.near) ^ (1 / C.near)
    * along(tile) * beside
  local near = read(p) < STAYS
  local wait = tile.waits and tile.waits[near and 1 or 2]
    or math.max((near and C.close or C.latency) / math.min(stages - 1, steps),
                (tile.single or 0) * (near and C.single or C.far))
  step = (step ^ C.near + wait ^ C.near) ^ (1 / C.near)
  return steps * step
    + beside * tile[1] * tile[2] * p.d.bits / 8 / C.drain
end

-- Returns the bytes of additional L2 traffic of an operand whose rows begin in
-- the middle of memory lines. Returns 0 if all rows begin at the start of a
-- line.
local function cut_bytes(t, bits, count, k)
  local pitch = t.stride[2] == 1 and t.stride[1] or t.stride[2]
  local by = math.type(pitch) == "integer" and model.cut(pitch, bits) or 1
  return by > 1 and by * count * k * bits / 8 or 0
end

-- The number of bytes of partial sums that L2 keeps until they are added.
local KEPT = 8 << 20

-- Returns the number of blocks of a launch: the number of tiles {BM, BN} times
-- the number of parts of split-K.
local function blocks_of(p, tile, splits)
  return tiles.count(rows(p), tile[1]) * tiles.count(p.n, tile[2])
    * p.batches * splits
end

-- Returns the size of a block's accumulators in bytes.
local function sums_of(p, tile) return tile[1] * tile[2] * p.sums.bits // 8 end

-- Returns the ns in which the blocks that share a tile (split-K) exchange
-- partial sums.
local function meeting(p, tile, splits)
  if splits == 1 then return 0 end
  local bytes = sums_of(p, tile)
  return C.share + bytes * (splits + 1) / C.meet
    + 2 * math.max(0, blocks_of(p, tile, splits) * bytes - KEPT) / C.passed
end

-- Returns the number of blocks that fit on a multiprocessor.
local function room_of(p, tile, stages)
  local bytes = (tile[1] * p.a.bits + tile[2] * p.b.bits) * along(tile) // 8
  return math.min(tile.room or 32,
                  math.max(1, ROOM // (stages * bytes + 1024)))
end

--- Returns the estimated ns of a product in tiles {BM, BN, BK} with K split
-- into `splits` parts.
---@param p table
---@param tile table {BM, BN, BK, good, lone, waits, room, ...}. `good` is the
-- fraction of `rate` that the tile reaches (if absent, C.good of its size).
-- `lone` is the fraction of this rate that a block alone on a multiprocessor
-- reaches (1 if absent); between one and `room` blocks, the rate is
-- interpolated. `waits` has the ns that a step along K waits for its
-- operands, from L2 and from memory (if absent, computed from `close`,
-- `latency` and the stages). `room` is the largest number of blocks per
-- multiprocessor, in addition to the limit by shared memory
---@param stages integer
---@param rate number operations per ns of a multiprocessor
---@param splits integer
function blocks.time(p, tile, stages, rate, splits)
  rate = rate * (tile.good or C.good[("%dx%d"):format(tile[1], tile[2])])
  local count = blocks_of(p, tile, splits)
  local steps = tiles.count(tiles.count(p.k, along(tile)), splits)
  local room = room_of(p, tile, stages)
  local each = tiles.count(count, p.sms)
  local work = each // room * along_k(p, tile, stages, rate, steps, room)
    + (each % room > 0
       and along_k(p, tile, stages, rate, steps, each % room) or 0)
  local cut = (cut_bytes(p.A, p.a.bits, tile[1], p.k)
    + cut_bytes(p.B, p.b.bits, tile[2], p.k)) * count / splits
    / (constants.l2 * 1e-9)
  return (work ^ C.near + blocks.memory(p) ^ C.near + cut ^ C.near)
    ^ (1 / C.near) + C.start + meeting(p, tile, splits)
end

-- The numbers of split-K parts for which candidates are made.
local SPLITS = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}

-- Returns the numbers of split-K parts to consider: SPLITS, and the largest
-- number for which all blocks run at once.
local function splits_of(p, tile, stages)
  local whole = room_of(p, tile, stages) * p.sms // blocks_of(p, tile, 1)
  local list = {}
  for _, splits in ipairs(SPLITS) do
    if whole > (list[#list] or 0) and whole < splits then
      list[#list + 1] = whole
    end
    list[#list + 1] = splits
  end
  return list
end

-- The largest number of bytes of partial sums that blocks may exchange. Larger
-- candidates were never the fastest, and their partial sums would take memory
-- from other tensors.
local MOST = 256 << 20

-- Reports whether problem p allows K to be divided into this number of parts.
local function can_share(p, tile, splits)
  return p.batches == 1 and not p.sums.is_integer and not p.gated
    and not p.group and not p.format and not p.ragged
    and splits <= tiles.count(p.k, along(tile)) // 2
    and (p.splits or blocks_of(p, tile, splits) * sums_of(p, tile) <= MOST)
end

--- Returns the candidates for each tile of a list: one with undivided K, and
-- one for each possible number of split-K parts.
---@param p table
---@param family string
---@param list table[] of tiles
---@param make fun(t: table, splits: integer): table, table, number returns the
-- options of a tile, {BM, BN, BK}, and operations per ns of a multiprocessor
---@return table[] in the form of family lists (cute.ops.choose)
function blocks.candidates(p, family, list, make)
  local out = {}
  for _, t in ipairs(list) do
    local first, of = make(t, 1)
    for _, splits in ipairs(p.splits and {p.splits}
                            or splits_of(p, of, first.stages)) do
      local o, tile, rate = make(t, splits)
      local alone = splits == 1
      if alone or can_share(p, tile, splits) then
        o.splits = not alone and splits or nil
        out[#out + 1] = {
          family = alone and family or "gemm_splitk", options = o, tile = tile,
          stages = o.stages, split = splits, rate = rate,
          ns = blocks.time(p, tile, o.stages, rate, splits)}
      end
    end
  end
  return out
end

return blocks
-- SPDX-License-Identifier: MIT
