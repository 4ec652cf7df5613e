--- Chooses options of kernels/gemm_sm100 for a product. The kernel was never
-- measured: the estimated times come from published rates of tensor cores.
--
-- In each step, the tensor cores execute bm * bn * bk multiply-adds, and TMA
-- fills shared memory meanwhile. A step takes at least the latency of a load
-- divided by the number of stages. If there are two sets of accumulators, the
-- products of a tile overlap with the stores of the previous tile. The stores
-- of the last tile overlap with nothing. Memory moves A, B and D once. The
-- bandwidths of memory and L2, and the latencies, are those of an H200. The
-- times are compared with those of other kernels, whose model is for an H200
-- (kernels/gemm_sm90/model.lua).
local C = require "kernels.gemm_sm90.constants"
local options = require "kernels.gemm_sm100.options"
local settle = require "kernels.gemm_sm90.choice".settle
local smem = require "kernels.gemm_sm90.smem"
local targets = require "cute.targets"

local choice = {}

-- The largest number of stages to use. More stages do not hide more latency.
local MOST = 8
local CLUSTERS = {{1, 1}, {2, 1}}

local function ceil_div(a, b) return (a + b - 1) // b end

-- Returns the number of multiply-adds per cycle of an SM of `card` for options
-- o.
local function rate(o, card)
  local a = o.a_dtype
  local times = a.is_integer and card.times.i8 or a.bits == 4
    and card.times.bits4 or a.bits == 8
    and card.times.bits8 or a.bits == 32 and card.times.tf32 or 1
  return card.fmas * times
end

--- Returns the estimated seconds of a product, and the number of waves of
-- tiles.
---@param o table complete options
---@param card table of cute.targets
---@return number seconds
---@return number waves
function choice.time(o, m, n, k, sms, card)
  local bm, bn, bk = table.unpack(o.tile)
  local bits, cm, cn = o.a_dtype.bits, o.cluster[1], o.cluster[2]
  local blocks = ceil_div(ceil_div(m, bm), cm) * ceil_div(ceil_div(n, bn), cn)
    * cm * cn
  local waves = blocks / (targets.clusters(sms, cm * cn) * cm * cn)
  local steps = ceil_div(k, bk)
  local pace = math.max(bm * bn * bk / rate(o, card),
    (bm / cn + bn / cm) * bk * bits / 8 / C.fill,
    C.latency / math.min(o.stages, steps))
  local stores = C.round * (o.columns // o.epi[2])
    + bm * o.columns * o.d_dtype.bits / 8 / C.drain
  local tiles = math.ceil(waves)
  local hidden = o.parts > 1 and steps * pace or 0
  local cycles = C.first + tiles * steps * pace
    + (tiles - 1) * math.max(0, stores - hidden) + stores
  local memory = ((m + n) * k * bits + m * n * o.d_dtype.bits) / 8 / C.memory
  return C.launch + (cm * cn > 1 and C.cluster or 0)
    + math.max(cycles / card.clock, memory), waves
end

-- Returns the widths of tiles to try. They are multiples of 16, and not larger
-- than n requires. With gates, half of a tile's width must be a multiple of 16.
-- With scales, a tile has whole chunks of factors.
local function widths(o, n, cluster)
  local unit, list = o.scales and options.ROWS or o.gated and 32 or 16, {}
  for width = unit, math.min(256, ceil_div(n, unit) * unit), unit do
    if width % (8 * cluster[1]) == 0 then list[#list + 1] = width end
  end
  return list
end

--- Returns a list of the candidates for a product of (m,k) and (n,k), sorted by
-- estimated time. Each is {options =, seconds =, waves =, blocks =}, with
-- options for gemm_sm100.
---@param m integer
---@param n integer
---@param k integer
---@param o? table options that all candidates have (dtype, d_major, epilogue
-- ...); sms: multiprocessors; card: figures of cute.targets, those of a B200
-- when absent
---@return table[]
function choice.candidates(m, n, k, o)
  local fixed, list = {}, {}
  for name, v in pairs(o or {}) do fixed[name] = v end
  local card = fixed.card or targets.B200
  local sms = fixed.sms or card.sms
  fixed.sms, fixed.card = nil, nil
  local base = options.complete(fixed)
  for _, cluster in ipairs(base.groups and {CLUSTERS[1]} or CLUSTERS) do
    for _, width in ipairs(widths(base, n, cluster)) do
      local c = {}
      for name, v in pairs(fixed) do c[name] = v end
      c.tile = {options.ROWS, width, 1024 // base.a_dtype.bits}
      c.cluster = cluster[1] > 1 and cluster or nil
      local full = options.complete(c, true)
      local rest, stage = smem.room(full)
      c.stages = math.min((smem.share(1) - rest) // stage, MOST)
      full.stages = c.stages
      local seconds, waves = choice.time(full, m, n, k, sms, card)
      settle(c, full, m, n, k, waves)
      list[#list + 1] = {options = c, seconds = seconds, waves = waves,
        blocks = ceil_div(m, full.tile[1]) * ceil_div(n, width)}
    end
  end
  -- If two estimates are equal, the wider tile is preferred, because it reads
  -- less.
  table.sort(list, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds < b.seconds end
    local wide, other = a.options.tile[2], b.options.tile[2]
    if wide ~= other then return wide > other end
    return not a.options.cluster and b.options.cluster ~= nil
  end)
  return list
end

--- Chooses the options of gemm_sm100 for a product. Returns the options of the
-- best candidate, and the list of all candidates.
---@return table options
---@return table[] candidates
function choice.choose(m, n, k, o)
  local list = choice.candidates(m, n, k, o)
  return list[1].options, list
end

return choice
-- SPDX-License-Identifier: MIT
