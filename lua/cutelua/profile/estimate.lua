--- Estimates how long a launch takes on a GPU, and its bottleneck. The GPU need
-- not be present.
--
--     print(k(A, B, C):estimate {grid = 256, block = 128, card = "h200"})
--
-- The simulator runs one cluster (or one block, if there are no clusters) and
-- logs the events of its warps. A model of an SM (core/timing/cost_model.c)
-- replays the log for all clusters that one SM executes, as many at a time as
-- fit on the SM. The number of registers comes from NVRTC for the GPU's
-- architecture, if NVRTC is installed.
--
-- The fields of an estimate:
--   card, seconds, cycles
--   occupancy   from targets.occupancy
--   registers (nil if unknown), shared, threads
--   unmeasured  true if estimates for the card were never compared with
--               measurements
--   waves       number of waves of blocks; 2.4 waves take the time of 3
--   tail        fraction of the SMs' capacity that the last wave uses
--   flops, bytes = {shared =, l2 =, dram =}, of the whole grid
--   busy        {issue =, fma =, alu =, special =, f64 =, tensor =, shared =,
--               l1 =, memory =, fill =, peer =}: the fraction of the time in
--               which each pipe is busy
--   bound       the busiest pipe, or "launch" if the GPU is starting blocks
--               during the whole time
--   roof        for each pipe, the seconds that it alone would need with all
--               SMs always busy; also for l2, and for dram (each tensor once)
--   lines       {{file =, line =, slots =, flops =, shared =, l2 =, stall =},
--               ...}: for one cluster, the instructions issued, the operations,
--               the bytes, and the fraction of its warps' time spent waiting at
--               the line
--
-- docs/estimate.md lists the limitations of estimates.
local core = require "cute.core"
local cards = require "cutelua.profile.cards"
local columns = require "cutelua.text.columns"
local memory = require "cutelua.program.memory"
local simreport = require "cute.lang.simreport"
local source = require "cute.lang.source"
local targets = require "cute.targets"

local estimate = {}

local Estimate = {__closed = true}  -- traces do not record its fields
Estimate.__index = Estimate

local SECTOR, WAVEFRONT, MOST_STEPS = 32, 128, 1 << 24

local function ceil_div(a, b) return (a + b - 1) // b end

local function product(t) return t[1] * t[2] * t[3] end

---------------------------------------------------------------------------
-- Requirements of a launch
---------------------------------------------------------------------------

-- Returns the registers and barriers of the kernel that the compiler reports.
-- Without a compiler, or for PTX that has no CUDA C, returns a table that has
-- only the reason, `why`.
local function resources(p, arch)
  local has_cuda = require "cute.lang.kernel".has_cuda
  if p.program.info.ptx and not has_cuda(p.program, arch) then
    return {why = "the PTX has no CUDA C"}
  end
  local out, message = p.program:compile(arch)
  if out then return out.resources end
  if message:find("no-nvrtc", 1, true) then return {why = "no NVRTC"} end
  require "cute.lang.report".raise(message)
end

-- Returns the total number of bytes of the buffers of the kernel's tensors.
-- Each buffer counts once.
local function footprint(p)
  local seen, bytes = {}, 0
  for i, v in ipairs(p.values) do
    if p.program.info.args[i].pointer and not seen[v[1]] then
      seen[v[1]] = true
      bytes = bytes + v[1].nbytes
    end
  end
  return bytes
end

---------------------------------------------------------------------------
-- The model
---------------------------------------------------------------------------

local RATES = {"mma", "mma_again", "wgmma", "mma_f4", "tcgen05", "tcgen05_i8",
  "tcgen05_f4", "f64", "integer", "special", "copy",
  "fill", "peer", "atomic", "cas", "alu", "shared", "matrix", "tensor",
  "l1_hit", "tma", "far_shared", "swapped", "barrier", "meet", "round",
  "cluster", "loop", "fence_cta", "fence_cta_each", "fence", "fence_each",
  "fence_sys", "fence_sys_each", "fence_async", "cluster_each", "start"}

-- Returns the model of an SM of the GPU. far: fraction of the bytes from L2
-- that come from DRAM. busy: number of SMs that share the bandwidth of L2 and
-- DRAM.
local function machine(card, far, busy, l1)
  local m = {l1 = l1, steps = MOST_STEPS}
  for _, name in ipairs(RATES) do m[name] = card[name] end
  local dram = card.dram / card.clock / busy
  for _, name in ipairs {"l2", "bulk", "store"} do
    local rate = math.min(card.l2_most, card[name] * card.sms / busy)
    m[name] = far > 0 and math.min(rate, dram / far) or rate
  end
  m.global = card.global + far * card.far
  return m
end

-- Fields of the model with the cost of a fence per warp. All SMs send their
-- fences to L2, so a card's costs hold if all SMs run as many warps as the
-- replayed SM. `crowd` reduces the costs for launches with fewer blocks.
local FENCES = {"fence_each", "fence_sys_each", "cluster_each"}

local function crowd(m, x)
  local share = x.clusters * x.ncta
    / (x.card.sms * math.min(x.each, x.resident))
  for _, name in ipairs(FENCES) do
    m[name] = x.card[name] * math.min(share, 1)
  end
end

-- Replays `clusters` clusters of a launch on an SM. Afterwards it restores
-- memory, and the simulator's record of the previous launch, so that every
-- replay starts from the same state.
local function play(p, m, clusters, resident, unit)
  m.clusters, m.resident = clusters, math.min(resident, clusters)
  local _, found = memory.untouched(p.restore, core.sim_run, p.program.fn,
    {grid = p.grid, block = p.block, args = p.values, sm = p.device.sm,
     seed = p.seed, budget = p.budget, pdl = p.pdl, machine = m, unit = unit,
     progress = p.progress})
  simreport.attach(found, p.program)
  if found.stopped and not found.reports[1] then
    core.fail("limit", ("kernel %s: the estimate was stopped"):format(
      p.program.info.name))
  end
  if found.timing.full then
    core.fail("limit", ("kernel %s: a cluster executes more than %d "
      .. "instructions; estimate a smaller problem"):format(
      p.program.info.name, MOST_STEPS))
  end
  if not found.ok then
    core.fail("kernel-fault", ("the launch has a fault (%s, found when one "
      .. "cluster ran alone) and is not estimated\n  %s"):format(
      found.reports[1].kind, tostring(found)))
  end
  return found
end

-- Returns the number of cycles that an SM takes for `each` clusters, of which
-- `resident` run at a time. Also returns the report of the replay. If there are
-- many clusters, it replays a few and extrapolates.
local function cycles_of(p, m, each, resident, unit)
  local some = math.min(each, 4 * resident)
  local found = play(p, m, some, resident, unit)
  found.played = some
  local cycles = found.timing.cycles
  if each > some then
    local half = play(p, m, 2 * resident, resident, unit).timing.cycles
    cycles = cycles + (cycles - half) / (some - 2 * resident) * (each - some)
  end
  return cycles, found
end

local function sums(found)
  local shared, l2, flops = 0, 0, 0
  for _, c in ipairs(found.timing.costs) do
    shared = shared + c.passes * WAVEFRONT
    l2 = l2 + c.missed * SECTOR
    flops = flops + c.flops
  end
  return shared, l2, flops
end

local function lines_of(found, cycles, warps)
  local out = {}
  for i, c in ipairs(found.timing.costs) do
    out[i] = {file = c.file, line = c.line, slots = c.slots, flops = c.flops,
              shared = c.passes * WAVEFRONT, l2 = c.missed * SECTOR,
              stall = c.stall / (cycles * warps)}
  end
  table.sort(out, function(a, b) return a.stall > b.stall end)
  return out
end

-- Returns, for each pipe, the seconds that it needs for `blocks` blocks if it
-- is busy all the time on all SMs. found.played clusters were replayed; their
-- times are scaled to all blocks.
local function roofs(card, found, blocks)
  local out = {}
  for _, name in ipairs {"issue", "fma", "alu", "special", "f64", "tensor",
                         "shared", "l1", "fill", "peer"} do
    out[name] = found.timing.busy[name] / found.played * blocks / card.sms
      / card.clock
  end
  return out
end

local function busiest(busy)
  local name, most
  for k, x in pairs(busy) do
    if not most or x > most or x == most and k < name then name, most = k, x end
  end
  return name
end

estimate.OPTIONS = {card = "string", cold = "boolean", registers = "integer",
                    at = "integer"}

-- Returns a table that describes how a launch is distributed on a GPU. Among
-- its fields are:
--   resident  number of blocks per SM
--   clusters  total number of clusters
--   places    number of clusters that run at once with one block on each SM
--   each      number of clusters that run at each place, one after the other
local function on_card(p, opts)
  local own = p.device.sm >= 100 and cards.of(p.device.sm)
  local card = cards.card(opts.card or own or "h200")
  local sm = tonumber(card.arch:match "%d+")
  p.program.fn:check_smem(sm)
  p.program.fn:check_arch(sm, card.arch)
  if opts.registers and (opts.registers < 1 or opts.registers > 255) then
    core.fail("bad-argument", ("registers = %d: a thread has 1 to 255"):format(
      opts.registers))
  end
  local r = opts.registers and {registers = opts.registers,
    barriers = p.program.info.barriers} or resources(p, card.arch)
  local x = {card = card, registers = r.registers, why = r.why,
             at = opts.at or 0, threads = product(p.block),
             shared = p.program.info.smem,
             ncta = product(p.program.cluster), bytes = footprint(p)}
  x.occupancy = targets.occupancy(sm, {threads = x.threads, shared = x.shared,
    registers = r.registers, barriers = r.barriers})
  x.resident = x.occupancy.blocks
  if x.resident < 1 then
    core.fail("bad-launch", ("kernel %s: a block of %d threads, %s registers "
      .. "each, and %d bytes of shared memory does not fit on an SM of "
      .. "%s"):format(
      p.program.info.name, x.threads, r.registers or "unknown", x.shared,
      card.name))
  end
  x.clusters = product(p.grid) // x.ncta
  x.places = math.max(targets.clusters(card.sms, x.ncta), 1)
  x.room = math.max(targets.clusters(card.sms, x.ncta, x.resident), 1)
  x.each = ceil_div(x.clusters, x.places)
  cards.need_blocks(p.program.info.name, p.grid)
  if x.at >= x.clusters then
    core.fail("bad-launch", ("at = %d: the grid has %d clusters, counted from "
      .. "0")
      :format(x.at, x.clusters))
  end
  return x
end

-- Returns the number of bytes that a run reads from and writes to global
-- memory.
local function moved(found)
  local n = 0
  for _, s in ipairs(found.lines) do n = n + (s.global and s.bytes or 0) end
  return n
end

-- Reports whether the last cluster moves no data although the representative
-- one does. This suggests that the grid is too large. If the last cluster has a
-- fault, an error is raised.
local function is_idle(p, x, found, with)
  if x.clusters == 1 or moved(found) == 0 then return false end
  return moved(play(p, with(0), 1, 1, x.clusters - 1)) == 0
end

-- Replays the launch. Returns the fraction of the bytes from L2 that come from
-- DRAM, the cycles that an SM takes, and the simulator's report.
local function run(p, x, cold, events)
  local busy = math.min(x.clusters, x.places) * x.ncta
  local l1 = (x.card.l1_bytes - x.resident * x.shared) // x.resident
  local function with(far)
    local m = machine(x.card, far, busy, math.max(l1, 0))
    crowd(m, x)
    m.events = events
    return m
  end
  local one = play(p, with(0), 1, 1, x.at)
  x.idle = is_idle(p, x, one, with)
  if not cold and x.bytes <= 0.7 * x.card.l2_bytes then
    return 0, cycles_of(p, with(0), x.each, x.resident, x.at)
  end
  local _, l2 = sums(one)
  local far = l2 > 0 and math.min(x.bytes / (l2 * x.clusters), 1) or 0
  return far, cycles_of(p, with(far), x.each, x.resident, x.at)
end

-- Returns the number of cycles that the GPU needs to start all blocks, if
-- nothing else delays them.
local function begin_of(x)
  local all = x.clusters * (x.ncta * x.card.block
    + (x.ncta > 1 and x.card.group or 0))
  return all * x.card.clock
end

-- Sets fields of estimate e: busy, the load of each pipe; roof, the time that
-- each pipe alone needs; bound; lines, which say where warps waited.
local function loads(e, x, found)
  local card, timing = x.card, found.timing
  e.roof = roofs(card, found, x.clusters * x.ncta)
  e.roof.l2 = e.bytes.l2 / (card.l2 * card.sms * card.clock)
  e.roof.dram = x.bytes / card.dram
  e.busy = {}
  -- An empty kernel takes 0 cycles.
  local all = math.max(timing.cycles, 1)
  for k, cycles in pairs(timing.busy) do e.busy[k] = cycles / all end
  e.bound = e.begins and "launch" or busiest(e.busy)
  e.lines = lines_of(found, all, math.min(x.resident, x.each)
    * x.ncta * ((x.threads + 31) // 32))
end

--- Converts a launch that runs on the simulator to the form of a prepared
-- launch, which estimate.of takes.
---@param program table
---@param launch table
---@return table
function estimate.launched(program, launch)
  return {program = program, values = launch.args, grid = launch.grid,
    block = launch.block, device = {sm = launch.sm}, seed = launch.seed,
    budget = launch.budget, pdl = launch.pdl}
end

--- Estimates a prepared launch on the simulator.
---@param p any the result of call:compile
---@param opts? table {card: string?, cold: boolean?, registers: integer?, at:
-- integer?} card: a name of cutelua.profile.cards; when absent, the Blackwell
-- card that the launch simulates, else "h200". cold: L2 is empty at the start;
-- otherwise it holds the tensors if they fit. registers: per thread, instead of
-- NVRTC's number. at: number of the representative cluster, 0 when absent
---@param events? boolean
---@return table
---@return table found the simulator's report, with events if requested
function estimate.of(p, opts, events)
  require "cute.lang.kernel".check_options(opts, estimate.OPTIONS)
  opts = opts or {}
  local x = on_card(p, opts)
  local kept = setmetatable({restore = memory.keep(p.program, p.values)},
                            {__index = p})
  local far, cycles, found = run(kept, x, opts.cold, events)
  local begins = begin_of(x)
  local e = setmetatable({name = p.program.info.name, card = x.card.name,
    cycles = math.max(cycles, begins), launch = x.card.launch,
    begins = begins >= cycles or nil,
    seconds = x.card.launch + math.max(cycles, begins) / x.card.clock,
    occupancy = x.occupancy, registers = x.registers, why = x.why,
    shared = x.shared, threads = x.threads, waves = x.clusters / x.room,
    clusters = x.clusters, idle = x.idle, unmeasured = x.card.unmeasured},
    Estimate)
  e.tail = e.waves - math.ceil(e.waves) + 1
  local s, l2, flops = sums(found)
  e.flops = flops * x.clusters
  e.bytes = {shared = s * x.clusters, l2 = l2 * x.clusters,
             dram = far * l2 * x.clusters}
  loads(e, x, found)
  return e, found
end

---------------------------------------------------------------------------
-- Messages
---------------------------------------------------------------------------

local UNITS = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}

local function short(x, unit)
  for _, u in ipairs(UNITS) do
    if x >= u[1] then return ("%.3g %s%s"):format(x / u[1], u[2], unit) end
  end
  return ("%.3g %s"):format(x, unit)
end

local function limits_text(o)
  local parts = {}
  for _, name in ipairs {"registers", "shared", "threads", "blocks",
                         "barriers"} do
    if o.limits[name] then
      parts[#parts + 1] = ("%s %d"):format(name, o.limits[name])
    end
  end
  return table.concat(parts, ", ")
end

-- Returns text that lists the names in t with their numbers, multiplied by
-- `by`. The largest number comes first. Names with the number 0 are omitted.
local function by_size(t, by, format)
  local names = {}
  for name, x in pairs(t) do
    if x > 0 then names[#names + 1] = name end
  end
  if #names == 0 then return "nothing" end
  table.sort(names, function(a, b)
    return t[a] > t[b] or t[a] == t[b] and a < b
  end)
  for i, name in ipairs(names) do
    names[i] = format:format(name, by * t[name])
  end
  return table.concat(names, ", ")
end

function Estimate:__tostring()
  local text = {("kernel %s on %s: %.3g us (%.0f cycles)"):format(self.name,
    self.card, self.seconds * 1e6, self.cycles)}
  local function add(...) text[#text + 1] = "  " .. string.format(...) end
  add("blocks of an SM: %d, limited by %s (%s)", self.occupancy.blocks,
      table.concat(self.occupancy.by, " and "), limits_text(self.occupancy))
  add("registers %s, shared memory %d bytes, threads %d",
      self.registers or "unknown: " .. self.why, self.shared, self.threads)
  add("waves %.2f, the last one %.0f %% full", self.waves, 100 * self.tail)
  if self.unmeasured then
    add("note: rates of %s are public figures and an H200's; no estimate was "
      .. "compared with a measurement", self.card)
  end
  if self.idle then
    add("note: the last of %d clusters moves no data: is the grid larger than "
      .. "the data?", self.clusters)
  end
  add("%s, shared %s, L2 %s, memory %s", short(self.flops, "FLOP"),
      short(self.bytes.shared, "B"), short(self.bytes.l2, "B"),
      short(self.bytes.dram, "B"))
  add("alone, in us: %s", by_size(self.roof, 1e6, "%s %.3g"))
  add("busy: %s", by_size(self.busy, 100, "%s %.0f %%"))
  local rows = {{"line", "issued", "FLOP", "shared", "L2", "waits"}}
  for _, c in ipairs(self.lines) do
    if c.stall >= 0.005 or c.flops > 0 or c.shared + c.l2 > 0 then
      local at = c.line and source.short(c.file or "?") .. ":" .. c.line or "?"
      rows[#rows + 1] = {at, tostring(c.slots), short(c.flops, ""),
        short(c.shared, "B"), short(c.l2, "B"),
        ("%.0f %%"):format(100 * c.stall)}
    end
  end
  text[#text + 1] = columns.table(rows, 1)
  return core.visible(table.concat(text, "\n"), true)
end

return estimate
-- SPDX-License-Identifier: MIT
