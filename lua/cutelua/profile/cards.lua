--- Rates of GPUs that need not be present, for the cost model.
local core = require "cute.core"
local targets = require "cute.targets"

local cards = {}

local KIB, MIB = 1 << 10, 1 << 20

local function like(base, more)
  local t = {}
  for k, v in pairs(base) do t[k] = v end
  for k, v in pairs(more) do t[k] = v end
  return t
end

-- Rates are bytes a cycle of an SM, times are cycles of `clock`, a card's under
-- full load; an SM that runs faster (1.98 GHz with little to do) counts more.
--
-- A quarter of an SM: mma, wgmma: multiply-adds of 16 bits; mma_again: when the
-- same warp can issue its next mma, of one's time; f64, integer, special: of a
-- warp's operation on f64, on integers (comparisons, conversions of 16 bits),
-- of the unit for special functions.
-- Memory: l2, bulk, store: what threads read of L2, what TMA does, what is
-- written, by all SMs at once; l2_most: what few can have each; fill: by TMA,
-- into shared memory; peer: of another block's shared memory; copy: of a
-- cp.async at least; atomic: of an atomic, of a store's time; cas: of shared
-- memory, by an atomic that is a loop of compare-and-swap.
-- Until a result is there: of arithmetic, shared memory, ldmatrix, an mma, L1,
-- L2 (global), memory besides (far), a bulk copy besides (tma), another block's
-- shared memory (far_shared), a compare-and-swap (swapped).
-- Threads: on from an mbarrier (barrier), a barrier's share of each warp and on
-- from its last (meet, round), on from a cluster's (cluster); a pass of a loop
-- at least (loop); fences of the block, of cluster and card, of the system: on
-- from one, and each warp's share where all of an SM have one; cluster_each:
-- such a share of arrivals at a cluster's barrier that release.
-- start: of a block where one has ended. launch: seconds that a kernel begins
-- and ends in; block, group: seconds of a block, of a cluster besides, that all
-- SMs begin one after the other; clock: Hz.
local HOPPER = like(targets.H100, {clock = 1.755e9, l1_bytes = 256 * KIB,
  mma = 308, mma_again = 1.56,
  wgmma = 512, f64 = 1.75, integer = 1.75, special = 7.05, l2 = 42, bulk = 62,
  store = 20, l2_most = 64, fill = 64, peer = 19.1, copy = 6, atomic = 2.2,
  cas = 3.2, alu = 4, shared = 23, matrix = 33, tensor = 33, l1_hit = 33,
  global = 280, far = 380, tma = 150, far_shared = 177, swapped = 80,
  barrier = 26, meet = 1.77, round = 10.6, cluster = 64, loop = 23.5,
  fence_cta = 27, fence_cta_each = 3.7, fence = 616, fence_each = 28,
  fence_sys = 1290, fence_sys_each = 82, fence_async = 511, cluster_each = 34,
  start = 700, launch = 2.2e-6, block = 0.585e-9, group = 0.61e-9})

local AMPERE = like(HOPPER, {arch = "sm_80", sms = 108, clock = 1.41e9,
  l2_bytes = 40 * MIB, l1_bytes = 192 * KIB, mma = 256, mma_again = 1,
  wgmma = 512, f64 = 4, l2 = 32})

local CARDS = {
  h200 = like(HOPPER, {name = "H200", dram = 4.2e12, l2_bytes = 60 * MIB,
    fence = 269, fence_each = 10, fence_sys = 930, fence_sys_each = 53,
    fence_async = 160, cluster_each = 12,
    source = "measured: docs/estimate.md"}),
  h100 = like(HOPPER, {name = "H100 SXM", dram = 2.95e12,
    source = "measured: docs/estimate.md; what tensor cores and L2 do as the "
    .. "H200"}),
  a100 = like(AMPERE, {name = "A100 80GB", dram = 1.8e12, source = "\"NVIDIA "
    .. "A100 Tensor Core GPU Architecture\", 2 TB/s, 312 TFLOP/s; latencies "
    .. "as the H200's"}),
  l40s = like(AMPERE, {name = "L40S", arch = "sm_89", sms = 142,
    clock = 2.52e9, l2_bytes = 96 * MIB, l1_bytes = 128 * KIB, mma = 128,
    f64 = 64, dram = 0.78e12, source = "data sheet, 362 TFLOP/s of bf16, "
    .. "0.86 TB/s; latencies as the H200's"}),
}

--- Returns a GPU by its name ("h200", "h100", "a100", "l40s"): name, arch, sms,
-- clock (Hz), dram (bytes per second), l2_bytes, and rates as above; `source`
-- names the origin of its numbers.
---@param name string
---@return table
function cards.card(name)
  local card = CARDS[name]
  if card then return card end
  local names = {}
  for n in pairs(CARDS) do names[#names + 1] = n end
  table.sort(names)
  core.fail("unknown-name", ("no card %s: there are %s"):format(core.show(name),
    table.concat(names, " ")))
end

--- Raises where a grid has no blocks: there would be nothing to time.
---@param name string the kernel's name
---@param grid integer[]
function cards.need_blocks(name, grid)
  if grid[1] * grid[2] * grid[3] == 0 then
    core.fail("bad-launch", ("kernel %s: a grid of %s has no blocks to time")
      :format(name, table.concat(grid, " x ")))
  end
end

return cards
