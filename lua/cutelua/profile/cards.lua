--- Rates and latencies of GPUs for the cost model. The GPUs need not be
-- present.
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

-- The numbers of a card. Unless stated otherwise, rates are bytes per cycle of
-- an SM, and times are cycles of `clock` (in Hz), the GPU's clock under full
-- load. (With little to do, an SM runs at 1.98 GHz and takes more cycles for
-- the same time.)
--
-- Per quarter of an SM:
--   mma, wgmma, tcgen05   16-bit multiply-adds per cycle
--   tcgen05_i8            multiply-adds of 8-bit integers per cycle
--   mma_f4, tcgen05_f4    multiply-adds of packed 4-bit floats per cycle; 0 if
--                         there is no such instruction
--   mma_again             time until the same warp can issue its next mma,
--                         relative to the time of one mma
--   f64, integer, special cycles of a warp's operation on f64, on integers
--                         (comparisons, 16-bit conversions), and on the special
--                         function unit
-- Memory:
--   l2, bulk, store  rates of threads' reads from L2, of TMA, and of writes,
--                    with all SMs active
--   l2_most          limit of each of these rates if few SMs are active
--   fill             rate of TMA into shared memory
--   peer             rate of another block's shared memory
--   copy             least cycles of a cp.async
--   atomic           time of an atomic relative to a store
--   cas              cycles of shared memory for an atomic that is implemented
--                    as a compare-and-swap loop
-- Latencies:
--   alu, shared, matrix  arithmetic, shared memory, ldmatrix
--   tensor               an mma
--   l1_hit, global       L1, L2
--   far, tma             time in addition to `global`: for memory, and for a
--                        bulk copy
--   far_shared, swapped  another block's shared memory, a compare-and-swap
-- Synchronisation:
--   barrier      time to continue after an mbarrier
--   meet, round  cost of a barrier per warp, and time to continue after the
--                last warp arrived
--   cluster      time to continue after a cluster's barrier
--   loop         least time of a loop iteration
--   fence_cta, fence, fence_sys  time to continue after a fence of block scope,
--                of cluster or GPU scope, and of system scope
--   fence_cta_each, fence_each, fence_sys_each  cost of such a fence per warp
--                if all warps of an SM execute one
--   cluster_each the same cost for releasing arrivals at a cluster's barrier
-- Starting:
--   start         time until a block starts where another one has ended
--   launch        seconds for a kernel's start and end
--   block, group  seconds to start a block, and additional seconds to start a
--                 cluster; the GPU starts blocks one after the other
local HOPPER = like(targets.H100, {clock = 1.755e9, l1_bytes = 256 * KIB,
  mma = 308, mma_again = 1.56,
  wgmma = 512, mma_f4 = 0, tcgen05 = 0, tcgen05_i8 = 0, tcgen05_f4 = 0,
  f64 = 1.75, integer = 1.75, special = 7.05, l2 = 42, bulk = 62,
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

-- Returns the table of a Blackwell card. It has the public figures of
-- cute.targets. All other numbers are those of the H200, and were never
-- measured on Blackwell.
local function blackwell(name, public, more)
  local quarter, times = public.fmas / 4, public.times
  return like(like(HOPPER, public), like({name = name,
    tcgen05 = quarter, tcgen05_i8 = quarter * (times.i8 or 0),
    tcgen05_f4 = quarter * times.bits4, unmeasured = true,
    source = "public figures of cute.targets; all else as the H200"}, more))
end

local CARDS = {
  b200 = blackwell("B200", targets.B200, {}),
  -- FP64: 1.2 TFLOP/s.
  b300 = blackwell("B300", targets.B300, {f64 = 58}),
  -- RTX 5090: tensor cores execute only mma.sync; FP64 has 1/64 of FP32's rate.
  rtx5090 = blackwell("RTX 5090", targets.RTX5090, {l1_bytes = 128 * KIB,
    mma = targets.RTX5090.fmas / 4, mma_again = 1, f64 = 64, tcgen05 = 0,
    tcgen05_i8 = 0, tcgen05_f4 = 0,
    mma_f4 = targets.RTX5090.fmas / 4 * targets.RTX5090.times.bits4}),
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

--- Returns the names of the cards, sorted.
---@return string[]
function cards.names()
  local names = {}
  for n in pairs(CARDS) do names[#names + 1] = n end
  table.sort(names)
  return names
end

--- Reports whether the cost model has the numbers of this GPU.
---@param name string
---@return boolean
function cards.known(name) return CARDS[name] ~= nil end

-- The card of each target.
local OF = {[80] = "a100", [89] = "l40s", [90] = "h200", [100] = "b200",
            [103] = "b300", [120] = "rtx5090"}

--- Returns the name of the card whose rates are used for a target; nil if there
-- is none.
---@param sm integer
---@return string?
function cards.of(sm) return OF[sm] end

--- Returns the table of the GPU with this name: "h200", "h100", "a100", "l40s",
-- "b200", "b300" or "rtx5090". Its fields are name, arch, sms, clock (Hz), dram
-- (bytes per second), l2_bytes, and the numbers described above HOPPER. The
-- field `source` names the origin of the numbers.
---@param name string
---@return table
function cards.card(name)
  local card = CARDS[name]
  if card then return card end
  core.fail("unknown-name", ("no card %s; known cards: %s"):format(
    core.show(name), table.concat(cards.names(), " ")))
end

--- Raises an error if a grid has no blocks, because there is nothing to time.
---@param name string the kernel's name
---@param grid integer[]
function cards.need_blocks(name, grid)
  if grid[1] * grid[2] * grid[3] == 0 then
    core.fail("bad-launch", ("kernel %s: a grid of %s has no blocks to time")
      :format(name, table.concat(grid, " x ")))
  end
end

return cards
-- SPDX-License-Identifier: MIT
