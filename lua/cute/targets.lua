--- Resources of multiprocessors (SMs): one table for all modules that predict
-- how a kernel runs on a GPU that is not present.
--
-- The limits come from three sources. One is NVIDIA's own occupancy calculation
-- (cuda_occupancy.h of CUDA 13.0; of 13.5 for sm_103 and sm_107). Another is
-- the technical specifications in "CUDA C++ Programming Guide". The number of
-- threads of sm_107 comes from ptxas 13.5. core/ir/target.h defines how much
-- shared memory a block can have, and which instructions exist.
local core = require "cute.core"

local targets = {}

local KIB, MIB = 1 << 10, 1 << 20

-- Limits of an SM, by the number of its architecture: threads, blocks, KiB of
-- shared memory, and barriers (absent before sm_90, where their number is not
-- limited).
local LIMITS = {}
for _, row in ipairs {
  {70, 2048, 32, 96}, {72, 2048, 32, 96}, {75, 1024, 16, 64},
  {80, 2048, 32, 164}, {86, 1536, 16, 100}, {87, 1536, 16, 164},
  {88, 1536, 16, 164}, {89, 1536, 24, 100}, {90, 2048, 32, 228, 64},
  {100, 2048, 32, 228, 64}, {103, 2048, 32, 228, 32},
  {107, 1024, 16, 328, 16}, {110, 1536, 24, 228, 24}, {120, 1536, 24, 100, 24},
  {121, 1536, 24, 100, 24},
} do
  local new = row[1] >= 80
  LIMITS[row[1]] = {sm = row[1], threads = row[2], blocks = row[3],
    shared = row[4] * KIB, barriers = row[5], reserved = new and KIB or 0,
    shared_unit = new and 128 or 256, registers = 65536, register_unit = 256,
    thread_registers = 255, block_threads = 1024, quarters = 4}
end

--- Returns the limits of an SM as a table. Its fields threads, blocks, shared
-- (bytes), barriers (nil: no limit) and registers are maxima for an SM.
-- `reserved` is the number of bytes of shared memory that the system reserves
-- for each block. `shared_unit` is the allocation unit of shared memory in
-- bytes; `register_unit` is that of a warp's registers. `thread_registers` is
-- the maximum number of registers of a thread. `block_threads` is the maximum
-- number of threads of a block.
---@param sm integer such as 80 or 90
---@return table
function targets.limits(sm)
  return LIMITS[sm]
    or core.fail("wrong-arch", ("the limits of sm_%s are "
      .. "unknown"):format(tostring(sm)))
end

--- Returns the number of multiprocessors of the GPU that the simulator models.
---@param sm integer
---@return integer
function targets.sms(sm)
  local card = targets.blackwell(sm)
  return card and card.sms or sm < 90 and 108 or 132
end

-- An H100 and an H200 consist of groups with these numbers of SMs. All blocks
-- of a cluster run in one group, and a group runs as many whole clusters as
-- fit. The last four groups run clusters of 1 or 2 blocks only. This rule
-- reproduces all 41 numbers that the driver returned for 1, 2 and 8 blocks per
-- SM.
local GROUPS, GROUPED = {18, 18, 16, 16, 16, 16, 16, 8, 2, 2, 2, 2}, 132

--- Returns the number of clusters that run at once on a GPU that is not
-- present.
---@param sms integer number of multiprocessors; less than the card's number if
-- only some of them take part
---@param size integer number of blocks of a cluster
---@param blocks? integer number of blocks of an SM, 1 if absent
---@return integer
function targets.clusters(sms, size, blocks)
  blocks = blocks or 1
  local all = sms * blocks // size
  if size == 1 or sms > GROUPED then return all end
  local most = 0
  for _, g in ipairs(GROUPS) do
    if g >= size then most = most + g * blocks // size end
  end
  return math.min(most, all)
end

--- The GPU that the simulator models for Hopper targets.
targets.H100 = {arch = "sm_90a", sms = 132, l2_bytes = 50 * MIB}

-- Blackwell's GPUs: published figures, not measured. `fmas` is the number of
-- dense multiply-adds per cycle of an SM, for operands of 16 bits with f32
-- accumulators. `clock` is the clock in Hz at which `fmas` yields the published
-- rates. `times` has the ratios of other operands' rates to that of 16 bits. If
-- the GPU has no i8 MMA, `i8` is absent. `dram` is in bytes per second.
-- Sources: "NVIDIA Blackwell Architecture Technical Brief" and the data sheets
-- of HGX B200 (2.25 PFLOP/s of bf16, 1.1 of tf32, 4.5 of 8 bits, 9 of e2m1; 7.7
-- TB/s) and of HGX B300 (14 PFLOP/s of e2m1); "NVIDIA RTX Blackwell GPU
-- Architecture" (GeForce RTX 5090: 209.5 TFLOP/s of bf16, 419 of 8-bit floats,
-- 838 TOP/s of i8, 1676 TFLOP/s of e2m1; 1.792 TB/s, 96 MiB of L2); "Blackwell
-- Tuning Guide" of CUDA 13.0 (126 MB of L2).
targets.B200 = {arch = "sm_100a", sms = 148, l2_bytes = 126 * MIB,
  clock = 1.855e9, fmas = 4096, dram = 7.7e12,
  times = {tf32 = 0.5, bits8 = 2, i8 = 2, bits4 = 4}}
targets.B300 = {arch = "sm_103a", sms = 148, l2_bytes = 126 * MIB,
  clock = 1.855e9, fmas = 4096, dram = 7.7e12,
  times = {tf32 = 0.5, bits8 = 2, bits4 = 56 / 9}}
targets.RTX5090 = {arch = "sm_120a", sms = 170, l2_bytes = 96 * MIB,
  clock = 2.407e9, fmas = 256, dram = 1.792e12,
  times = {tf32 = 0.5, bits8 = 2, i8 = 4, bits4 = 8}}

--- Returns the GPU whose figures represent a Blackwell target, or nil for other
-- targets.
---@param sm integer
---@return table?
function targets.blackwell(sm)
  if sm >= 120 then return targets.RTX5090 end
  if sm == 103 then return targets.B300 end
  return sm >= 100 and targets.B200 or nil
end

local function round_up(x, unit) return (x + unit - 1) // unit * unit end

--- Returns a table {blocks =, by = {"registers", ...}, limits = {registers =,
-- shared =, threads =, blocks =, barriers =}}. `blocks` is the number of blocks
-- that an SM holds at once; it is 0 if not even one block fits. `limits` has
-- the number of blocks that each limit alone would allow, and `by` lists the
-- limits that determine `blocks`.
---@param sm integer
---@param block table {threads: integer, registers: integer?, shared: integer?,
-- barriers: integer?}; `registers` is per thread (nil if not known), `shared`
-- the bytes of a block
---@return table
function targets.occupancy(sm, block)
  local t = targets.limits(sm)
  local warps = (block.threads + 31) // 32
  local limits = {blocks = t.blocks,
                  threads = block.threads <= t.block_threads
                    and t.threads // 32 // warps or 0}
  local shared = block.shared or 0
  local taken = round_up(shared + t.reserved, t.shared_unit)
  if shared > core.smem_budget(sm) then limits.shared = 0
  elseif taken > 0 then limits.shared = t.shared // taken end
  if block.registers then
    local warp = round_up(math.max(block.registers, 1) * 32, t.register_unit)
    -- Number of warps that fit in the registers of one quarter of an SM.
    local quarter = t.registers // t.quarters // warp
    limits.registers = quarter * t.quarters // warps
    if warp * round_up(warps, t.quarters) > t.registers
      or block.registers > t.thread_registers then
      limits.registers = 0
    end
  end
  if t.barriers and (block.barriers or 0) > 0 then
    limits.barriers = t.barriers // block.barriers
  end
  local blocks, by = math.huge, {}
  for _, n in pairs(limits) do blocks = math.min(blocks, n) end
  for name, n in pairs(limits) do
    if n == blocks then by[#by + 1] = name end
  end
  table.sort(by)
  return {blocks = blocks, by = by, limits = limits}
end

--- Raises an error if a cooperative launch has more blocks than can run at once
-- on the GPU that the simulator models. Considers all limits except registers.
---@param p table the prepared launch
---@param grid integer[]
function targets.check_resident(p, grid)
  local sm, block, info = p.device.sm, p.block, p.program.info
  local threads = block[1] * block[2] * block[3]
  local found = targets.occupancy(sm, {threads = threads, shared = info.smem,
                                       barriers = info.barriers})
  local blocks, sms = grid[1] * grid[2] * grid[3], targets.sms(sm)
  local c = p.program.cluster
  local size = c[1] * c[2] * c[3]
  local most = targets.clusters(sms, size, found.blocks) * size
  if blocks <= most then return end
  core.fail("bad-launch", ("kernel %s: a cooperative grid of %d blocks, of %d "
    .. "threads with %d bytes of shared memory each, is more than sm_%d can "
    .. "run at once\n  let each block do more work: at most %d blocks run%s, "
    .. "%d on a multiprocessor, limited by "
    .. "%s"):format(info.name, blocks, threads,
    info.smem, sm, most, size > 1 and (" in %d clusters of %d"):format(
    most // size, size) or "", found.blocks, table.concat(found.by, " and ")))
end

return targets
-- SPDX-License-Identifier: MIT
