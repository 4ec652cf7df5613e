--- Estimates the time of a product for a configuration of kernels/gemm_skinny.
--
-- One of two limits determines the time: reading B, or the latency of loads. A
-- warp processes its runs of K in sequence, with `unroll` of them in flight.
-- The blocks on a multiprocessor work at the same time. Partial sums are
-- reduced in shared memory, also across a cluster. The constants are those of
-- an H200, fitted by tools/fit.lua.
local tiles = require "cute.tiles"

local model = {}

model.constants = {
  launch = 1.2e-6,    -- seconds to start and finish a kernel
  cluster = 7.68e-7,  -- seconds to combine the sums of a tile's blocks
  latency = 5.89e-7,  -- seconds from the request of a load until it arrives
                      -- from memory
  hit = 5.8e-7,       -- seconds from the request of a load until it arrives
                      -- from L2
  ask = 4.86e-9,      -- seconds to issue the loads of 32 or 64 elements of K
  run = 1.22e-7,      -- seconds of a warp's work on 32 or 64 elements of K
  join = 3.78e-8,     -- seconds to add the partial sums of one warp
  each = 7.92e10,     -- bytes per second that one multiprocessor can request
  memory = 4.59e12,   -- bytes per second from memory
  l2 = 1.89e13,       -- bytes per second from L2, for operands that fit in L2
  -- The time of memory accesses is multiplied by 1 + beside * m / count. m is
  -- the number of rows of A, and count the number of tiles of B of a warp.
  beside = 0.002,
}
local C = model.constants

local THREADS, REGISTERS = 2048, 65536  -- per multiprocessor
-- Operands with fewer bytes in total stay in L2 until the next product begins.
local STAYS = 16 << 20

--- Returns how many blocks of a configuration p fit on a multiprocessor.
---@param p table
---@return integer
function model.room(p)
  local of_a = p.side == "b" and p.m <= 8 and 16 or 8
  local fragments = p.count * p.high // 8 + p.rows // of_a
  local registers = tiles.count(16 + 7 * fragments * (2 + p.unroll) // 2, 8) * 8
  return math.max(1, math.min(THREADS, REGISTERS // registers) // p.block)
end

--- Returns the estimated seconds of a product with a configuration p of
-- gemm_skinny.
---@param p table
---@param batches integer
---@param sms integer
---@return number
function model.time(p, batches, sms)
  local row, of_a = p.k * p.b_dtype.bits // 8, 2 * p.k  -- bytes
  local blocks = tiles.count(p.n, p.tile[1]) * tiles.count(p.m, p.tile[2])
    * batches * p.splits
  local bytes = (row * p.n + of_a * p.m) * batches
  local stays = bytes < STAYS
  local latency = stays and C.hit or C.latency
  local memory = bytes / (stays and C.l2 or C.memory)
    * (1 + C.beside * p.m / p.count)
  local each = tiles.count(blocks, sms)
  local read = each * (row * p.tile[1] + of_a * math.min(p.m, p.tile[2]))
    / p.splits / C.each
  local runs = tiles.count(tiles.count(p.k, p.run), p.warps[2] * p.splits)
  local chain = C.ask * p.unroll + math.max(latency + runs * C.run,
    tiles.count(runs, p.unroll) * latency)
  local waves = tiles.count(each, model.room(p))
  return C.launch + (p.splits > 1 and C.cluster or 0) + C.join * p.warps[2]
    + (memory ^ 4 + read ^ 4 + (waves * chain) ^ 4) ^ (1 / 4)
end

return model
-- SPDX-License-Identifier: MIT
