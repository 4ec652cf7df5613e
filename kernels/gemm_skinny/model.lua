--- How long a product will take by choices of kernels/gemm_skinny.
--
-- It is bound by reading B, or by what warps can have under way: a warp goes
-- through its runs of K one after the other, `unroll` of them on their way at
-- once. Beside it work the other blocks that a multiprocessor has room for;
-- sums meet in shared memory, and in a cluster's. Constants are those of an
-- H200, fitted by tools/fit.lua.
local tiles = require "cute.tiles"

local model = {}

model.constants = {
  launch = 1.2e-6,    -- begin and end of a kernel
  cluster = 7.68e-7,  -- until the sums of its blocks have met
  latency = 5.89e-7,  -- from asking memory for a run to having it,
  hit = 5.8e-7,       -- and L2
  ask = 4.86e-9,      -- for each of those on their way at once
  run = 1.22e-7,      -- of a warp, for what it has
  join = 3.78e-8,     -- for each warp whose sums are added
  each = 7.92e10,     -- bytes a second that a multiprocessor can ask for
  memory = 4.59e12,   -- bytes a second
  l2 = 1.89e13,       -- bytes a second of operands that stay in L2
  beside = 0.0103,    -- a row of A read beside a tile of B, of what that takes
}
local C = model.constants

local THREADS, REGISTERS = 2048, 65536  -- of a multiprocessor
local STAYS = 16 << 20  -- bytes that L2 still has when the next product begins

--- Blocks of a plan that a multiprocessor has room for.
---@param p table
---@return integer
function model.room(p)
  local of_a = p.side == "b" and p.m <= 8 and 16 or 8
  local fragments = p.count * p.high // 8 + p.rows // of_a
  local registers = tiles.count(16 + 7 * fragments * (2 + p.unroll) // 2, 8) * 8
  return math.max(1, math.min(THREADS, REGISTERS // registers) // p.block)
end

--- Seconds of a product by a plan of gemm_skinny.
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
