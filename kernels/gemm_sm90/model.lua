--- How long a product will take by choices of kernels/gemm_sm90.
--
-- Beside its first tiles and last results it is bound by one of four things;
-- where two are near they add up:
--
--   cycles  waves of tiles: each a step for every tile along K, which the
--           tensor cores need or shared memory's filling, and an epilogue that
--           nothing covers, unless warpgroups take turns: a round for each
--           buffer, and D's bytes. A step takes no less than its share of the
--           ring's latency. TMA is slow with rows that are not there: those of
--           tiles that reach past M or N
--   energy  a card at its power limit runs at the clock that this leaves: an
--           operation costs what the tensor cores take, and its share of what
--           is brought to shared memory and through L2
--   memory  A, B and D once; what is small stays in L2
--   L2      what all tiles read, and what those side by side do
--
-- Constants are those of an H200, fitted by tools/fit.lua to what was measured
-- there; what is compared is time on one card, so others rank alike.
local C = require "kernels.gemm_sm90.constants"

local STAYS = 16 << 20  -- bytes that L2 still has when the next product begins

local function ceil_div(a, b) return (a + b - 1) // b end

-- Of bounds that hold at once: the largest, and a little of the others.
local function together(...)
  local sum = 0
  for _, t in ipairs {...} do sum = sum + t ^ 6 end
  return sum ^ (1 / 6)
end

local model = {}

local WIDTHS = {8, 16, 32, 64, 96, 128, 160, 192, 208}

-- Widths that are told apart.
local function class_of(n)
  for _, w in ipairs(WIDTHS) do
    if n <= w then return w end
  end
  return 256
end

--- The name in C.good of a tile and what is made of it.
---@param o table complete options
---@return string
function model.kind(o)
  return ("%dx%d%s%s"):format(o.tile[1], class_of(o.tile[2]),
    o.pingpong and " turns" or o.equal and " parts" or o.split > 1 and " halves"
    or o.min_blocks > 1 and " two" or "",
    o.cluster[1] * o.cluster[2] > 1 and " cluster" or "")
end

-- Rows of operands that blocks side by side read, so many of which ask L2 for
-- them together: of tiles that follow each other, `count` of them, and of the
-- others.
local function beside(rows, count, others)
  return math.min(C.together, count) * rows
    + math.max(C.together / count, 1) * others
end

--- Should blocks with a tile each follow each other along N? Those that stay
-- take `swizzle` of them before the next row.
---@return boolean turned
---@return number rows that those side by side read then
function model.turned(o, m, n)
  local bm, bn = o.tile[1], o.tile[2]
  local most = o.shares and o.swizzle or math.huge
  local along_m = beside(bm, math.min(ceil_div(m, bm), most), bn)
  local along_n = beside(bn, math.min(ceil_div(n, bn), most), bm)
  local turned = along_n < along_m and not o.clustered
  return turned, turned and along_n or along_m
end

-- Rows that those side by side read, of blocks that stay: `swizzle` tiles of a
-- mode follow each other, then the next of the other one.
local function in_turn(o, tiles_m, tiles_n)
  local bm, bn = o.tile[1] / o.cluster[2], o.tile[2] / o.cluster[1]
  if o.raster_along_m then
    return beside(bn, math.min(tiles_n, o.swizzle), bm)
  end
  return beside(bm, math.min(tiles_m, o.swizzle), bn)
end

local MOST = 65535  -- of a grid's second and third extent

--- How many tiles of the mode that blocks of one tile follow lie in a run, so
-- that blocks side by side read the fewest rows: a divisor of that mode's
-- tiles, `first`; the other mode has `second`.
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

-- What the last tile of a mode with so many lacks of its rows, all of them
-- where a cluster's last blocks have none: cycles of a step for what is not
-- there, which grow with the blocks that ask for such rows at once; how many
-- tiles with that a block has, of `waves`: each, where one block has the last
-- tile of the mode each time; else its share, and one more.
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

--- How much longer L2 takes for rows so many elements apart: those that begin
-- inside lines of memory are asked for in two parts.
---@param elements integer
---@param bits integer of an element
---@return number 1: no longer
function model.cut(elements, bits)
  local pitch = elements * bits // 8
  return C.cut[math.min(pitch & -pitch, 128)] or 1
end

--- Seconds of a product with complete options `o` (options of gemm_sm90), on
-- `sms` multiprocessors; waves of tiles, as a number: 2.4 take the time of 3.
---@return number seconds
---@return number waves
---@return integer parts of the tiles that equal ones are made of
function model.time(o, m, n, k, sms)
  local bm, bn, bk = table.unpack(o.tile)
  local bits, wide = o.a_dtype.bits, o.d_dtype.bits
  local cm, cn = o.cluster[1], o.cluster[2]
  local tiles_m, tiles_n = ceil_div(m, bm), ceil_div(n, bn)
  local slots = sms * o.min_blocks // (cm * cn * o.split)
  local waves = ceil_div(tiles_m, cm) * ceil_div(tiles_n, cn) / slots
  local steps = ceil_div(ceil_div(k, bk), o.split)

  local pieces = bk * bits / 1024  -- of 128 bytes in a row
  local cut_a = model.cut(o.a_major == "k" and k or m, bits)
  local cut_b = model.cut(o.b_major == "k" and k or n, bits)
  local issued = (bm / cn * cut_a + bn / cm * cut_b) / C.cut_fill
  local step = math.max(bm * bn * bk / C.fmas * bits / 16,
    pieces * math.max(bm + bn, issued) * 128 / C.fill)
  if o.promote then step = step + C.add * o.rows / 64 / o.promote end
  -- Fitted to parts of D's rows that swizzles take; whole rows are no slower.
  local part = o.epi[2]
  if o.d_major == "n" and not o.promote then part = part & -part end
  local epilogue = C.round * (o.rows // 64) * (o.columns // part)
    + bm * o.columns * wide / 8 / C.drain * (o.epi_stages < 4 and 1 or 0.7)
  local stays = (m + n) * k * bits / 8 < STAYS
  local abreast = math.max(1, math.ceil(math.min(waves, 1) * o.min_blocks))
  local pace = math.max(step * abreast,
    (stays and C.hit or C.latency) / math.min(o.stages, steps))
  local main = steps * pace
  -- What tiles that lack rows take more.
  local gone_m, more_m, count_m = lacking(o, 1, m, tiles_m, tiles_n, waves,
                                          slots)
  local gone_n, more_n, count_n = lacking(o, 2, n, tiles_n, tiles_m, waves,
                                          slots)
  local function slow(gone, more, count)
    return count * steps * math.max(0, pieces * ((bm + bn - gone) * 128 / C.fill
      + more) - pace)
  end
  local slower = count_m > 0 and count_n > 0 and waves <= 1
    and slow(gone_m + gone_n, more_m + more_n, 1)
    or slow(gone_m, more_m, count_m) + slow(gone_n, more_n, count_n)
  -- What begins and ends a block's tile, beside which nothing is loaded.
  local edges = epilogue + (o.split > 1 and C.exchange or 0)
  local tile = o.pingpong and math.max(main, (main + epilogue) / 2)
    or main + edges
  local cycles = math.ceil(waves) * tile - (o.pingpong and 0 or edges) + slower
  local busy, late = math.min(waves / math.ceil(waves), 1), 0
  local single = waves <= 1 and not o.pingpong
  local parts = 1  -- of the tiles past whole waves
  if o.equal then
    local whole = waves // 1
    local rest = math.floor((waves - whole) * slots + 0.5)
    parts = rest > 0 and math.min(o.equal, slots // rest, steps) or 1
    if parts > 1 then
      cycles = whole * tile + ceil_div(steps, parts) * pace + slower / parts
      waves, busy = whole + 1 / parts, 1
      late = C.leave + (parts - 1) * (C.part + bm * bn * 4 / C.fill)
    end
  end

  local alone, filling, l2 = table.unpack(C.energy[bits])
  local near = waves <= C.near and 1 or 0
  local energy = 2.0 * m * n * k * (alone + filling * (1 / bm + 1 / bn)
      + l2 * (1 / bm / cn ^ near + 1 / bn / cm ^ near))
    * (o.promote and 1 + C.by_adding * o.rows / 64 or 1) / busy ^ 0.5

  -- What is read by blocks far from each other comes twice, in part.
  local turned, rows = model.turned(o, m, n)
  local along_m = o.raster_along_m
  if single then along_m = not turned end
  local apart = along_m and (tiles_n > 1 and m or 0) or tiles_m > 1 and n or 0
  local memory = ((m + n + C.far * apart) * k * bits + m * n * wide) / 8
    / (stays and C.l2 or C.memory)
  local rest = waves % 1
  if waves > 1 then memory = memory * (1 + C.uneven / waves) end
  if o.split > 1 and o.min_blocks == 1 then  -- who leaves asks for nothing
    memory = memory + (math.ceil(waves) - 1) * (C.first + edges) / C.clock
  end
  if waves > 1 and rest > 0 then  -- few blocks ask for less than there is
    memory = memory * (1 - rest / waves)
      + math.max(memory * rest / waves, tile / C.clock)
  end
  local read = tiles_m * tiles_n * (bm / cn * cut_a + bn / cm * cut_b)
    * k * bits / 8 / C.l2
  if single then
    read = math.max(read, busy * o.min_blocks * rows * k / (o.split * parts)
      * bits / 8 / C.group)
  elseif not o.shares then
    read = math.max(read, waves * in_turn(o, tiles_m, tiles_n) * k * bits / 8
      / C.steady)
  end
  local good = bits == 16 and C.good[model.kind(o)] or 1
  local seconds = C.launch + (C.first + edges + late) / C.clock
    + together(good * cycles / C.clock, good * energy, memory, read)
  if o.pingpong and waves <= 1 then seconds = seconds * C.alone end
  -- The larger operand is better asked for first.
  if single and m < n then seconds = seconds * C.second end
  if cm * cn > 1 then
    seconds = seconds * C.apart ^ (1 - near) + C.cluster
  end
  return seconds, waves, parts
end

return model
