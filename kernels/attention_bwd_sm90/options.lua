--- The options of kernels/attention_bwd_sm90 with their defaults: tiles by head
-- size, registers, shared memory.
local core = require "cute.core"
local cute = require "cute"
local order = require "kernels.attention_bwd_sm90.order"
local rules = require "kernels.operand_rules"

local options = {}

local WHAT = "attention_bwd_sm90"
local WARPGROUP = 128
local MOST = 227 * 1024 - 1024  -- bytes of shared memory, not counting barriers

-- The names of all options.
local NAMES = "name head dtype causal window tile stages do_stages ds_stages "
  .. "sum_stages rounded deterministic pieces ragged list modify rows keys "
  .. "heads group sms splits tasks"

-- The default {tile, stages, do_stages, ds_stages} by head size. MASKED
-- replaces some defaults for kernels with a mask, and CHANGED for kernels with
-- score_mod or mask_mod.
local DEFAULTS = {
  [64] = {{128, 128}, 2, 2, 2}, [96] = {{64, 128}, 2, 2, 2},
  [128] = {{80, 128}, 2, 2, 2}, [192] = {{64, 96}, 2, 1, 1},
  [256] = {{64, 80}, 2, 1, 1},
}
local MASKED = {[128] = {{64, 128}, 2, 2, 2}}
local CHANGED = {[64] = {{64, 128}, 2, 2, 2}, [128] = {{64, 128}, 2, 2, 2}}

-- The defaults for consumers with different tasks (tasks.lua).
local TASKS = {{64, 64}, 2, 1, 1}

-- Registers per thread, {producer, consumer}, by the number of consumers.
-- TASKS_REGISTERS: the registers of a producer thread, and of a consumer thread
-- for each of the three tasks.
local REGISTERS = {{}, {24, 240}, {32, 160}}
local TASKS_REGISTERS = {32, {208, 208, 64}}

--- Reports whether there is a tile for heads of `head` elements.
function options.has(head) return DEFAULTS[head] ~= nil end

--- Returns the bytes of shared memory of a block's tiles.
function options.bytes(o)
  local M, N = o.tile[1], o.tile[2]
  local elements = 2 * N * o.head + (o.stages + o.do_stages) * M * o.head
    + o.ds_stages * M * N * ((o.tasks or o.wide and not o.shared) and 2 or 1)
  local sums = o.head // o.slices * o.sum_stages // o.pieces
  return elements * o.dtype.bits // 8
    + 4 * M * (sums + o.stages + o.do_stages)
end

-- Sets the number of consumers for heads of more than 128 elements, and the
-- number of slices of dQ.
local function divide_wide(o)
  local M, N = o.tile[1], o.tile[2]
  o.consumers = o.head == 192 and 3 or 2
  o.slices, o.divided = o.head // 64 // o.consumers, "columns"
  o.sharers = o.consumers
  o.shared = o.slices == 2 and o.ds_stages == 1  -- P and dS use the same memory
  rules.need(M == 64 and math.type(N) == "integer" and N >= 16 and N <= 256
    and N % 16 == 0 and N % (8 * o.consumers) == 0, WHAT, "tile = {%s, %s} "
    .. "with heads of %d; 64 rows, and a multiple of %d up to 256 keys are "
    .. "needed", core.show(M), core.show(N), o.head,
    o.consumers == 3 and 48 or 16)
end

-- With the option `tasks`: sets the number of consumers, which have different
-- tasks, and the number of slices of dQ, which one of the consumers computes.
local function divide_tasks(o)
  rules.need(o.head == 256 and o.tile[1] == 64 and o.tile[2] == 64
    and o.ds_stages == 1, WHAT, "tasks = true with heads of %d, tile = {%s, "
    .. "%s} and ds_stages = %d; 256, {64, 64} and 1 are needed", o.head,
    core.show(o.tile[1]), core.show(o.tile[2]), o.ds_stages)
  o.consumers, o.sharers, o.slices, o.divided = 3, 1, o.head // 64, "columns"
  o.pieces, o.sum_stages = o.pieces or 2, o.sum_stages or 6
end

-- Sets how consumers divide dQ among them (see parts.lua).
local function divide(o)
  local M, N, D = o.tile[1], o.tile[2], o.head
  rules.need(math.type(N) == "integer" and N % 64 == 0 and N >= 64 and N <= 192
    and math.type(M) == "integer" and M % 16 == 0 and M >= 16 and M <= 256,
    WHAT, "tile = {%s, %s}; a multiple of 16 up to 256 rows, and 64, 128 or "
    .. "192 keys are needed", core.show(M), core.show(N))
  local n = N // 64
  o.consumers, o.slices, o.sharers = n, 1, n
  o.divided = M % (64 * n) == 0 and "rows"
    or M == 64 and D % (16 * n) == 0 and "columns" or D == 64 * n and "turned"
  rules.need(o.divided, WHAT, "tile = {%d, %d} with heads of %d; %d "
    .. "warpgroups cannot divide dQ", M, N, D, n)
end

-- Checks that the tile is valid and that its stages fit in shared memory.
local function check(o)
  rules.integers(WHAT, o, {"stages", "do_stages"}, 1, 8)
  rules.integers(WHAT, o, {"ds_stages"}, 1, 2)
  rules.integers(WHAT, o, {"sum_stages", "pieces"}, 1, 8)
  o.wide = o.head > 128 and not o.tasks
  local part = o.tasks and divide_tasks or o.wide and divide_wide or divide
  part(o)
  -- Two slices of dQ pass through the same shared memory, so each slice is
  -- divided into pieces.
  o.pieces = o.pieces or o.slices == 2 and 4 or 1
  o.sum_stages = o.sum_stages or o.pieces
  local runs = o.tile[1] * o.head // o.slices // (4 * WARPGROUP * o.sharers)
  rules.need(runs % o.pieces == 0, WHAT, "pieces = %d; a divisor of %d is "
    .. "needed", o.pieces, runs)
  rules.need(options.bytes(o) <= MOST, WHAT, "tile = {%d, %d} with %d stages "
    .. "of Q, %d of dO and %d of dS needs %d bytes of shared memory; a block "
    .. "has %d", o.tile[1], o.tile[2], o.stages, o.do_stages, o.ds_stages,
    options.bytes(o), MOST)
end

-- Returns the tile of full attention with heads of 256. It is the default tile,
-- or a tile of 64 keys if all blocks then finish earlier. A block with 64 keys
-- takes 0.92 of the time of a default block.
local function fewer_keys(o, given)
  if o.head ~= 256 or o.left or o.right or o.ragged then return o.tile end
  local function time(N, block)
    local blocks = (given.keys + N - 1) // N * given.heads
    return math.ceil(blocks / given.sms) * block
  end
  return time(64, 0.92) < time(o.tile[2], 1) and {64, 64} or o.tile
end

-- The estimated speed of a block, in floating-point operations per
-- microsecond; the microseconds before a block's first tile and after its last
-- tile; the bandwidth at which accumulators of dK and dV are written and read
-- again, in bytes per microsecond; that of one block of the kernel that adds
-- them, which reads one share after the other; and the microseconds for the
-- launch of this kernel. In twelve problems on an H200, the estimate selects a
-- number of blocks that takes at most 1.02 of the shortest time.
local SPEED, START, BANDWIDTH, ONE_BLOCK, LAUNCH = 4.5e6, 3, 2.6e6, 1e5, 3

-- With more than BLOCKS blocks for each multiprocessor, `splits` is not
-- increased: this many blocks keep all multiprocessors busy. The limit also
-- bounds the memory for the accumulators, to 138 MB on an H200 with D = 128.
local BLOCKS = 8

-- The largest value of `splits`.
local MOST_SPLITS = 1024

-- Returns the time in which `sms` multiprocessors process `count` blocks of
-- each of the given times, in descending order. Each multiprocessor takes the
-- next block when it has finished one.
local function makespan(times, count, sms)
  local ends = {}  -- the times at which multiprocessors are free, ascending
  for i = 1, sms do ends[i] = 0 end
  for _, time in ipairs(times) do
    for _ = 1, count do
      local now, i = table.remove(ends, 1) + time, 1
      while ends[i] and ends[i] < now do i = i + 1 end
      table.insert(ends, i, now)
    end
  end
  return ends[sms]
end

-- Returns the number of blocks that share the heads of Q of a tile of keys:
-- the divisor of `group` with the shortest estimated time.
local function splits_for(o, given)
  for name in ("rows keys heads group sms"):gmatch "%S+" do
    if (given[name] or 0) == 0 then return 1 end
  end
  local M, N, S, T = o.tile[1], o.tile[2], given.rows, given.keys
  local blocks = (T + N - 1) // N * given.heads
  local most = math.min(given.group, BLOCKS * given.sms // blocks, MOST_SPLITS)
  if most < 2 then return 1 end
  local tile = 10 * M * N * o.head / SPEED
  local share = 2 * N * o.head * 4  -- bytes of a block's accumulators
  local seen = {}  -- for each tile of keys, the number of tiles of rows
  for n = 0, (T + N - 1) // N - 1 do
    local first, last = order.rows(o, n, S, T)
    seen[n + 1] = last - first
  end
  table.sort(seen, function(a, b) return a > b end)
  local best, least = 1, math.huge
  for s = 1, most do
    if given.group % s == 0 then
      local times = {}
      for i, n in ipairs(seen) do
        times[i] = n * (given.group // s) * tile + START
      end
      local time = makespan(times, given.heads * s, given.sms)
      if s > 1 then
        time = time + LAUNCH + share * s * math.max(2 * blocks / BANDWIDTH,
                                                    0.5 / ONE_BLOCK)
      end
      if time < least then best, least = s, time end
    end
  end
  return best
end

--- Returns all options: the given ones, and defaults for all missing ones.
---@param given table
---@return table
function options.complete(given)
  rules.options(WHAT, given, NAMES)
  local known = DEFAULTS[given.head]
  rules.need(known, WHAT, "head = %s; 64, 96, 128, 192 or 256 is needed",
             core.show(given.head))
  local dtype = given.dtype or "bf16"
  local o = {head = given.head, rounded = given.rounded,
    dtype = type(dtype) == "string" and core.find_dtype(dtype) or dtype,
    left = rules.window(WHAT, given, 1), right = rules.window(WHAT, given, 2),
    deterministic = given.deterministic ~= false}
  if given.causal then o.right = 0 end
  o.ragged, o.modify, o.list = given.ragged, given.modify, given.list
  o.tasks = given.tasks
  if o.tasks == nil then
    o.tasks = o.head == 256 and not (o.deterministic or o.ragged or o.modify
      or given.tile or given.ds_stages)
  end
  known = o.tasks and TASKS or o.modify and CHANGED[given.head]
    or (o.left or o.right or o.ragged) and MASKED[given.head] or known
  o.sum_stages, o.pieces = given.sum_stages, given.pieces
  for i, name in ipairs {"tile", "stages", "do_stages", "ds_stages"} do
    o[name] = given[name] or known[i]
  end
  rules.need(o.dtype == cute.bf16 or o.dtype == cute.f16, WHAT,
    "elements of %s; bf16 or f16 is needed", core.show(given.dtype))
  if given.keys and not (given.tile or o.tasks) then
    o.tile = fewer_keys(o, given)
  end
  check(o)
  if o.rounded == nil then o.rounded = o.divided == "turned" end
  o.rounded = o.rounded or o.tasks  -- Shared memory contains P in 16 bits.
  o.producer_registers, o.registers = table.unpack(
    o.tasks and TASKS_REGISTERS or REGISTERS[o.consumers])
  o.block = (o.consumers + 1) * WARPGROUP
  rules.integers(WHAT, given, {"splits"}, 1, MOST_SPLITS)
  o.splits = given.splits or splits_for(o, given)
  return o
end

return options
-- SPDX-License-Identifier: MIT
