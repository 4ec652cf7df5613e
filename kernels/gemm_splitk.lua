--- A split-K GEMM, C = A B^T, for problems with few tiles of C and a long K.
-- For such problems, one block for each tile would leave most multiprocessors
-- idle.
--
--     local k = gemm_splitk {splits = 8}
--     local work, turns = k.scratch(m, n)
--     k.kernel(A, B, C, work, turns):launch {grid = k.grid(m, n, K),
--                                            block = k.block}
--
-- The blocks (x, z) with the same x compute the same tile of C, each for
-- another part of K. They store their accumulators in `work`. A count in
-- `turns` determines the last of these blocks to finish. The last block adds
-- the accumulators in the order of z, so that results do not depend on which
-- block was last. It then stores the sums like gemm_sm80, and resets the count
-- to 0 for the next launch.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local splitk_reduce = require "kernels.splitk_reduce"
local tiles = require "cute.tiles"

--- Returns a kernel with arguments (A, B, C, work, turns [, alpha, beta]), or
-- (A, B, C, work, turns, ...) with an epilogue. scratch(m, n[, dtype]) makes
-- work and turns on the host, from where they can be copied to a GPU. work has
-- elements of dtype, the type of the accumulators (f32 when absent); turns has
-- i32 zeros.
---@param o? {splits: integer?} and the options of kernels.gemm_sm80
---@param base? string "gemm_simt" for that kernel's options
return function(o, base)
  local p, rest = rules.shared("gemm_splitk", o,
    {splits = 4, name = "gemm_splitk"}, "splits",
    base == "gemm_simt" and rules.SIMT or rules.GEMM)
  rules.integers("gemm_splitk", p, {"splits"}, 1, 65535)
  local gemm = require("kernels." .. (base or "gemm_sm80"))(rest)
  local BM, BN, BK = table.unpack(gemm.tile)
  local out = {tile = gemm.tile, block = gemm.block, mma = gemm.mma}

  -- Divides k among blocks. Returns the number of tiles along K of each block,
  -- the number of blocks that share a tile of C, and the number of all tiles
  -- along K.
  local function parts(k)
    local all = tiles.count(k, BK)
    local each = tiles.count(all, p.splits)
    return each, tiles.count(all, each), all
  end

  function out.grid(m, n, k)
    local _, splits = parts(k)
    return gemm.grid(m, n, splits)
  end

  function out.scratch(m, n, dtype)
    local count = tiles.count(m, BM) * tiles.count(n, BN)
    return cute.empty({count * p.splits * BM * BN}, dtype or cute.f32),
           cute.zeros({count}, cute.i32)
  end

  -- On FMA units, the accumulators of large tiles leave few registers for the
  -- addition of parts. Such kernels ask for one block less per multiprocessor.
  local fma = base == "gemm_simt"
  local large, blocks = fma and BM * BN // gemm.block > 32, gemm.min_blocks
  if large and blocks > 2 and not (p.min_blocks or p.epilogue) then
    blocks = blocks - 1
  end
  out.kernel = cute.kernel(p.name, {min_blocks = blocks},
    function(mA, mB, mC, work, turns, ...)
      if p.pdl then cute.arch.griddepcontrol_wait() end
      local each, splits, all = parts(cute.size(mA, 1))
      local from = select(3, cute.arch.block_idx()) * each
      -- Each block has at least one tile.
      gemm.run(mA, mB, mC, {from = from,
        k_tiles = cute.assume(cute.min(all - from, each), 1, 1 << 30, 1),
        meet = function(C, at)
          return splitk_reduce(C.acc, {work = work, turns = turns, at = at,
                              splits = splits, threads = gemm.block,
                              few = large or fma and splits > 4})
        end}, ...)
    end)
  return out
end
-- SPDX-License-Identifier: MIT
