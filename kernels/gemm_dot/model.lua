--- Estimates the time of a product for a configuration of kernels/gemm_dot.
--
-- One of three limits determines the time: reading B; the loads, of which each
-- warp has a limited number in flight; or the instructions. The constants are
-- fitted to 27 products on an H200.
local tiles = require "cute.tiles"

local model = {}

model.constants = {
  launch = 1.59e-6,  -- seconds to start and finish a kernel
  latency = 3.8e-7,  -- seconds from the request of a chunk until it arrives
                     -- from memory
  hit = 2.1e-7,      -- seconds from the request of a chunk until it arrives
                     -- from L2
  rows = 1.06e-7,    -- seconds to load the elements of A for a run, for one row
  more = 0.62,       -- factor on `rows`: (number of rows) ^ more
  join = 1.5e-8,     -- seconds to add the partial sums of one warp
  lanes = 3.4e-9,    -- seconds to add one sum of all lanes of a warp
  memory = 4.52e12,  -- bytes per second from memory
  l2 = 1.1e13,       -- bytes per second from L2, for operands that fit in L2
  clock = 9.3e8,     -- steps per second of FMA units and L1 (see `steps` below)
}
local C = model.constants

local THREADS, REGISTERS = 2048, 65536  -- per multiprocessor
-- Operands with fewer bytes in total stay in L2 until the next product begins.
local STAYS = 16 << 20

-- Returns how many blocks of a configuration p fit on a multiprocessor.
local function room(p)
  local registers = math.min(255, 44 + p.count * p.rows
    + 4 * p.count * p.unroll + 4 * math.min(p.rows, 4) + p.rows)
  return math.max(1, math.min(THREADS, REGISTERS // registers) // p.block)
end

--- Returns the estimated seconds of a product with a configuration p of
-- gemm_dot.
---@param p table
---@param batches integer
---@param sms integer
---@return number
function model.time(p, batches, sms)
  local high = tiles.count(p.m, p.rows)
  local blocks = high * tiles.count(p.n, p.tile[2]) * batches
  local bytes = 4.0 * (p.n + p.m) * p.k * batches
  local stays = bytes < STAYS
  local each = tiles.count(blocks, sms)
  local waves = tiles.count(each, room(p))
  local runs = tiles.count(tiles.count(p.k, p.run), p.warps[2])
  local memory = bytes / (stays and C.l2 or C.memory)
  local chain = tiles.count(runs, p.unroll) * ((stays and C.hit or C.latency)
    + p.unroll * C.rows * p.rows ^ C.more)
  -- The time of a run in steps, where C.clock is the number of steps per
  -- second. In one step, each of 4 warps executes a multiply-add, so a run
  -- takes count * rows steps. A warp's load from L1 takes 4 steps.
  local steps = math.max(p.count * p.rows, 4 * (p.count + p.rows))
  local busy = each * p.warps[1] * p.warps[2] * runs * steps / C.clock
  return C.launch + C.join * p.warps[2] + waves * C.lanes * p.count * p.rows
    + (memory ^ 4 + (waves * chain) ^ 4 + busy ^ 4) ^ (1 / 4)
end

return model
-- SPDX-License-Identifier: MIT
