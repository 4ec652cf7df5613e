--- Estimates the time of a product for options of kernels/gemm_sm90.
--
-- The first tiles and the last results of a launch take a fixed time. The rest
-- of the time has four limits: cycles, energy, memory and L2. The largest of
-- these times determines the estimate; if several are of similar size, the
-- estimate is larger than each of them.
--
-- cycles: the time of the waves of tiles. A tile has a step for each tile along
-- K, limited by the tensor cores or by the loads into shared memory. The
-- epilogue takes a fixed time for each buffer, and the time of the stores of D.
-- Nothing overlaps with the epilogue, unless warpgroups alternate. A step takes
-- at least the latency of a load divided by the number of stages. TMA is slow
-- for missing rows, which are rows of tiles beyond M or N.
--
-- energy: a GPU at its power limit lowers its clock. An operation needs the
-- energy of the tensor cores, and of its share of the transfers to shared
-- memory and through L2.
--
-- memory: A, B and D are transferred once; small operands stay in L2.
--
-- L2: the reads of all tiles, and those reads that neighbouring tiles do at the
-- same time.
--
-- The constants are those of an H200, fitted by tools/fit.lua to measurements.
-- Only times on one card are compared, so other cards give the same ranking.
local C = require "kernels.gemm_sm90.constants"
local cluster_splitk = require "kernels.gemm_sm90.cluster_splitk"
local targets = require "cute.targets"

-- Operands with fewer bytes in total stay in L2 until the next product begins.
local STAYS = 16 << 20

local function ceil_div(a, b) return (a + b - 1) // b end

-- Returns the time that results from several limits. It is slightly above the
-- largest one.
local function together(...)
  local sum = 0
  for _, t in ipairs {...} do sum = sum + t ^ 6 end
  return sum ^ (1 / 6)
end

local model = {}

local WIDTHS = {8, 16, 32, 64, 96, 128, 160, 192, 208}

-- Returns the width class of tiles with n columns: the smallest of WIDTHS that
-- is at least n.
local function class_of(n)
  for _, w in ipairs(WIDTHS) do
    if n <= w then return w end
  end
  return 256
end

--- Returns the key of table C.good (constants.lua) for the tile and kind of o.
---@param o table complete options
---@return string
function model.kind(o)
  return ("%dx%d%s%s"):format(o.tile[1], class_of(o.tile[2]),
    o.pingpong and " turns" or o.equal and " parts" or o.split > 2 and " split"
    or o.split == 2 and " halves" or o.min_blocks > 1 and " two" or "",
    o.cluster[1] * o.cluster[2] > 1 and " cluster" or "")
    .. (o.b_major ~= "k" and o.tile[2] > 64 and o.tile[2] % 64 ~= 0 and " runs"
        or "")
end

-- Returns the number of rows of A and B that neighbouring blocks (C.together of
-- them) read from L2. Their tiles are in runs: `count` tiles of `rows` rows
-- each are consecutive along one mode. Along the other mode, tiles have
-- `others` rows. If the blocks of a cluster divide K among them, they read the
-- rows of one tile, but share no elements.
local function beside(o, rows, count, others)
  local tiles = C.together / o.split
  return o.split * (math.min(tiles, count) * rows
    + math.max(tiles / count, 1) * others)
end

--- Reports whether consecutive blocks should have consecutive tiles along N
-- instead of M, if each block computes one tile. A persistent block processes
-- `swizzle` tiles along a mode before the next row of tiles.
---@return boolean turned
---@return number rows that neighbouring blocks then read
function model.turned(o, m, n)
  local bm, bn = o.tile[1], o.tile[2]
  local most = o.shares and o.swizzle or math.huge
  local along_m = beside(o, bm, math.min(ceil_div(m, bm), most), bn)
  local along_n = beside(o, bn, math.min(ceil_div(n, bn), most), bm)
  local turned = along_n < along_m and not o.clustered
  return turned, turned and along_n or along_m
end

-- Returns the number of rows that neighbouring persistent blocks read together.
-- Their tiles are in bands: `swizzle` tiles along one mode come before those at
-- the next index along the other mode.
local function in_turn(o, tiles_m, tiles_n)
  local bm, bn = o.tile[1] / o.cluster[2], o.tile[2] / o.cluster[1]
  if o.raster_along_m then
    return beside(o, bn, math.min(tiles_n, o.swizzle), bm)
  end
  return beside(o, bm, math.min(tiles_m, o.swizzle), bn)
end

local MOST = 65535  -- maximum of gridDim.y and gridDim.z

--- Returns the length of a run, for blocks that compute one tile each. A run is
-- a number of tiles that are consecutive along the first mode (N if o.turned,
-- else M). The returned length minimizes the number of rows that neighbouring
-- blocks read. It divides `first`, the number of tiles along the first mode;
-- `second` is the number of tiles along the second mode.
---@return integer
function model.run(o, first, second)
  local rows, others = o.tile[1], o.tile[2]
  if o.turned then rows, others = others, rows end
  local best, least = first, math.huge
  for run = first, ceil_div(first, MOST), -1 do
    if first % run == 0 then
      local across = math.min(math.max(C.together / run, 1), second)
      local read = C.together / across * rows + across * others
      if read < least then best, least = run, read end
    end
  end
  return best
end

-- Returns three numbers about missing rows of a mode, which are rows of tiles
-- outside the tensor:
-- 1. The number of missing rows of the last tile (all rows, if a cluster's last
--    blocks have no rows).
-- 2. The cycles that these rows cost in a step. They grow with the number of
--    blocks that request such rows at once.
-- 3. The number of a block's `waves` tiles that have missing rows. It is
--    `waves` if the same block always has the mode's last tile. Otherwise, it
--    is the average number of such tiles plus one.
local function lacking(o, mode, size, tiles, others, waves, slots)
  local tile, cluster = o.tile[mode], o.cluster[mode]
  tiles = ceil_div(tiles, cluster) * cluster
  local gone = math.min(tiles * tile - size, tile)
  if gone == 0 then return 0, 0, 0 end
  local asking = math.min(others, slots * o.cluster[1] * o.cluster[2] / tiles)
    * o.split
  local count = math.ceil(waves)
  if waves > 1 and slots % tiles ~= 0 then
    count = math.min(count, C.wait * waves / tiles + 1)
  end
  local each = C.missing * asking ^ C.crowd * (o.clustered and C.sent or 1)
  return gone, gone * each, count
end

--- Returns the slowdown of L2 for rows that are `elements` elements apart. A
-- row that begins inside a cache line is requested in two parts.
---@param elements integer
---@param bits integer width of an element
---@return number 1: no slowdown
function model.cut(elements, bits)
  local pitch = elements * bits // 8
  return C.cut[math.min(pitch & -pitch, 128)] or 1
end

-- Returns a table that describes a product of (m,k) and (n,k) with the given
-- options:
-- `slots`: the number of clusters that run at once;
-- `waves`: the number of waves that the tiles form;
-- `steps`: the number of steps along K, in each of which a row has `pieces`
--   pieces of 128 bytes;
-- `cut_a`, `cut_b`: the slowdowns of loads of A and B (model.cut);
-- `busy`: `waves` divided by the next whole number of waves;
-- `single`: whether there is a single wave, in which blocks request operands in
--   the order of their tiles;
-- `abreast`: the number of blocks that run on a multiprocessor at once.
local function product(o, m, n, k, sms)
  local bits = o.a_dtype.bits
  local p = {m = m, n = n, k = k, bits = bits, wide = o.d_dtype.bits,
    tiles_m = ceil_div(m, o.tile[1]), tiles_n = ceil_div(n, o.tile[2]),
    pieces = o.tile[3] * bits / 1024, parts = 1, late = 0,
    cut_a = model.cut(o.a_major == "k" and k or m, bits),
    cut_b = model.cut(o.b_major == "k" and k or n, bits),
    stays = (m + n) * k * bits / 8 < STAYS}
  local cm, cn = o.cluster[1], o.cluster[2]
  p.slots = math.max(
    targets.clusters(sms, cm * cn * o.split, o.min_blocks), 1)
  p.waves = ceil_div(p.tiles_m, cm) * ceil_div(p.tiles_n, cn) / p.slots
  p.steps = ceil_div(ceil_div(k, o.tile[3]), o.split)
  p.busy = math.min(p.waves / math.ceil(p.waves), 1)
  p.single = p.waves <= 1 and not o.pingpong
  p.abreast = math.max(1, math.ceil(math.min(p.waves, 1) * o.min_blocks))
  return p
end

-- Returns the number of rows of A and B that a tile loads from L2. The rows of
-- A are multiplied by the L2 slowdown of A, the rows of B by that of B.
local function asked(o, p)
  return o.tile[1] / o.cluster[2] * p.cut_a + o.tile[2] / o.cluster[1] * p.cut_b
end

-- Returns the cycles of a step along K. They are at least the ring's latency
-- divided by the number of its stages.
local function pace_of(o, p)
  local bm, bn, bk = table.unpack(o.tile)
  local step = math.max(bm * bn * bk / C.fmas * p.bits / 16,
    p.pieces * math.max(bm + bn, asked(o, p) / C.cut_fill) * 128 / C.fill)
  if o.promote then
    step = step + (o.overlapped and C.add_overlapped or C.add)
      * o.rows / 64 / o.promote
  end
  -- For 16-bit types, cute.ops.family.sm90 adds the time of scale factors.
  if o.blocks and p.bits == 8 then
    step = step + (o.blocks == 1 and C.scale_each or C.scale) * bn / 128
      * o.rows / 64 / o.promote
  end
  return math.max(step * p.abreast,
    (p.stays and C.hit or C.latency) / math.min(o.stages, p.steps))
end

-- Returns the cycles from the end of a tile's products to the end of its
-- epilogue.
local function ending(o, p)
  -- The constants were fitted for parts of D whose width is a power of 2, as
  -- swizzles require. Parts with whole rows of D are not slower.
  local part = o.epi[2]
  if o.d_major == "n" and not o.promote then part = part & -part end
  return C.round * (o.rows // 64) * (o.columns // part)
    + o.tile[1] * o.columns * p.wide / 8 / C.drain
      * (o.epi_stages < 4 and 1 or 0.7)
end

-- Returns the cycles in which the blocks of a cluster combine the sums of their
-- parts of K.
local function exchange_of(o)
  if o.split == 1 then return 0 end
  return C.exchange + cluster_splitk.bytes(o) / C.dsmem
end

-- Returns the additional cycles that tiles with missing rows take.
local function slower(o, p, pace)
  local bm, bn = o.tile[1], o.tile[2]
  local gone_m, more_m, count_m = lacking(o, 1, p.m, p.tiles_m, p.tiles_n,
                                          p.waves, p.slots)
  local gone_n, more_n, count_n = lacking(o, 2, p.n, p.tiles_n, p.tiles_m,
                                          p.waves, p.slots)
  local function slow(gone, more, count)
    return count * p.steps * math.max(0, p.pieces
      * ((bm + bn - gone) * 128 / C.fill + p.abreast * more) - pace)
  end
  if count_m > 0 and count_n > 0 and p.waves <= 1 then
    return slow(gone_m + gone_n, more_m + more_n, 1)
  end
  return slow(gone_m, more_m, count_m) + slow(gone_n, more_n, count_n)
end

-- Returns the cycles of all waves. Sets these fields of p:
-- tile: the cycles of a tile.
-- edges: the cycles of the beginning and end of a tile, without loads.
-- With o.equal: parts, the number of parts of each tile after the whole waves;
--   waves, including the parts; late, the delay of the last partial sums.
local function cycles_of(o, p)
  local pace, epilogue = pace_of(o, p), ending(o, p)
  local main, more = p.steps * pace, slower(o, p, pace)
  p.edges = epilogue + exchange_of(o)
  p.tile = o.pingpong and math.max(main, (main + epilogue) / 2)
    or main + p.edges
  local cycles = math.ceil(p.waves) * p.tile - (o.pingpong and 0 or p.edges)
    + more
  if not o.equal then return cycles end
  local whole = p.waves // 1
  local rest = math.floor((p.waves - whole) * p.slots + 0.5)
  p.parts = rest > 0 and math.min(o.equal, p.slots // rest, p.steps) or 1
  if p.parts > 1 then
    cycles = whole * p.tile + ceil_div(p.steps, p.parts) * pace + more / p.parts
    p.waves, p.busy = whole + 1 / p.parts, 1
    p.late = C.leave + (p.parts - 1) * (C.part + o.tile[1] * o.tile[2] * 4
                                        / C.fill)
  end
  return cycles
end

-- Returns the seconds that all operations take at a card's power limit. `near`
-- is 1 if the blocks of a cluster share L2 transfers, else 0.
local function energy_of(o, p, near)
  local bm, bn, cm, cn = o.tile[1], o.tile[2], o.cluster[1], o.cluster[2]
  local alone, filling, l2 = table.unpack(C.energy[p.bits])
  return 2.0 * p.m * p.n * p.k * (alone + filling * (1 / bm + 1 / bn)
      + l2 * (1 / bm / cn ^ near + 1 / bn / cm ^ near))
    * (o.promote and 1 + C.by_adding * o.rows / 64 or 1) / p.busy ^ 0.5
end

-- Returns the seconds of memory transfers. All data is transferred once. Data
-- that distant blocks read a second time is partly transferred again.
local function memory_of(o, p, turned)
  local m, n = p.m, p.n
  local along_m = o.raster_along_m
  if p.single then along_m = not turned end
  local apart = along_m and (p.tiles_n > 1 and m or 0) or p.tiles_m > 1 and n
    or 0
  local memory = ((m + n + C.far * apart) * p.k * p.bits + m * n * p.wide) / 8
    / (p.stays and C.l2 or C.memory)
  local rest = p.waves % 1
  if p.waves > 1 then memory = memory * (1 + C.uneven / p.waves) end
  -- The stores of a tile do not overlap with the loads of the next tile.
  if o.split > 1 and o.min_blocks == 1 then
    memory = memory
      + (math.ceil(p.waves) - 1) * (C.first + p.edges) / C.clock
  end
  -- The blocks of a last, partial wave are too few to use the whole bandwidth.
  if p.waves > 1 and rest > 0 then
    memory = memory * (1 - rest / p.waves)
      + math.max(memory * rest / p.waves, p.tile / C.clock)
  end
  return memory
end

-- Returns the seconds of L2 transfers, limited by the reads of all tiles and by
-- the reads of neighbouring tiles. The latter read `rows` rows together.
local function l2_of(o, p, rows)
  local read = p.tiles_m * p.tiles_n * asked(o, p) * p.k * p.bits / 8 / C.l2
  if p.single then
    return math.max(read, p.busy * o.min_blocks * rows * p.k
      / (o.split * p.parts) * p.bits / 8 / C.group)
  elseif not o.shares then
    return math.max(read, p.waves * in_turn(o, p.tiles_m, p.tiles_n) * p.k
      * p.bits / 8 / C.steady)
  end
  return read
end

--- Returns the estimated seconds of a product with complete options `o` (of
-- gemm_sm90), on `sms` multiprocessors. Also returns the waves of tiles as a
-- fraction: 2.4 waves take the time of 3.
---@return number seconds
---@return number waves
---@return integer parts number of equal parts of a split tile
function model.time(o, m, n, k, sms)
  local p = product(o, m, n, k, sms)
  local cycles = cycles_of(o, p)
  local near = p.waves <= C.near and 1 or 0
  local turned, rows = model.turned(o, m, n)
  local good = (p.bits > 8 or o.promote) and C.good[model.kind(o)
    .. (o.promote and p.bits == 8 and " promoted" or "")] or 1
  local seconds = C.launch + (C.first + p.edges + p.late) / C.clock
    + together(good * cycles / C.clock, good * energy_of(o, p, near),
               memory_of(o, p, turned), l2_of(o, p, rows))
  if o.pingpong and p.waves <= 1 then seconds = seconds * C.alone end
  -- Loading the larger operand first is faster, but the kernel always loads A
  -- first.
  if p.single and m < n then seconds = seconds * C.second end
  if o.cluster[1] * o.cluster[2] > 1 then
    seconds = seconds * C.apart ^ (1 - near) + C.cluster
  end
  return seconds, p.waves, p.parts
end

return model
-- SPDX-License-Identifier: MIT
