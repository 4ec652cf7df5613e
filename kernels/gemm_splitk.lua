--- A GEMM whose sums are split along K: for few tiles and a long K, where the
-- tiles alone would leave most multiprocessors idle.
--
--     local k = gemm_splitk {splits = 8}
--     local work, turns = k.scratch(m, n)
--     k.kernel(A, B, C, work, turns):launch {grid = k.grid(m, n, K),
--                                            block = k.block}
--
-- Blocks (x, z) sum a part of K each, tile by tile, and put their accumulators
-- into `work`. The last of a tile's blocks, by a count in `turns`, adds them up
-- in the order of z, so that results do not depend on who was last, and goes
-- on as gemm_sm80 does. It leaves the count at 0 for the next launch.
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local tiles = require "cute.tiles"
local _ = cute._

-- A thread's accumulators in `work`: (V, threads, splits, tiles), in pieces of
-- 16 bytes that lie side by side for neighbouring threads.
local function shared_sums(work, acc, threads, splits)
  local V = cute.size(acc)
  return cute.make_tensor(work.iterator, cute.make_layout(
    {{4, V // 4}, threads, splits, cute.size(work) // (V * threads * splits)},
    {{1, 4 * threads}, 4, V * threads, V * threads * splits}))
end

-- Gathers the sums of tile `at` in C.acc; true in the block that has all.
local function meet(C, work, turns, at, splits, threads)
  local tid, z = cute.arch.thread_idx(), select(3, cute.arch.block_idx())
  local W = shared_sums(work, C.acc, threads, splits)
  local acc = cute.coalesce(C.acc)
  cute.autovec_copy(acc, W(_, tid, z, at))
  local turn = cute.make_smem_tensor(cute.i32, cute.make_layout(1))
  cute.arch.sync_threads()
  cute.when(cute.eq(tid, 0), function()  -- what all wrote, and others did
    turn[0] = cute.arch.atomic_add(turns.iterator + at, 1,
                                   {sem = "acq_rel", scope = "gpu"})
  end)
  cute.arch.sync_threads()
  local last = cute.eq(turn[0], splits - 1)
  cute.when(last, function()
    acc:fill(0)
    for other in cute.range(splits) do
      local part = cute.make_fragment_like(acc)
      cute.autovec_copy(W(_, tid, other, at), part)
      acc:store(acc:load() + part:load())
    end
    cute.when(cute.eq(tid, 0), function() turns[at] = 0 end)
  end)
  return last
end

--- A kernel of (A, B, C, work, turns [, alpha, beta]), or (..., turns, ...)
-- with an epilogue; scratch(m, n) makes work and turns of the host, which may
-- be copied to a GPU: f32, and i32 zeros.
---@param o? {splits: integer?} and what kernels.gemm_sm80 takes
return function(o)
  local p = {splits = 4, name = "gemm_splitk"}
  for k, v in pairs(o or {}) do p[k] = v end
  local gemm = gemm_sm80(p)
  local BM, BN, BK = table.unpack(gemm.tile)
  local out = {tile = gemm.tile, block = gemm.block}

  -- Tiles of K that a block sums, and how many blocks do then.
  local function parts(k)
    local all = tiles.count(k, BK)
    local each = tiles.count(all, p.splits)
    return each, tiles.count(all, each), all
  end

  function out.grid(m, n, k)
    local _, splits = parts(k)
    return gemm.grid(m, n, splits)
  end

  function out.scratch(m, n)
    local count = tiles.count(m, BM) * tiles.count(n, BN)
    return cute.empty({count * p.splits * BM * BN}, cute.f32),
           cute.zeros({count}, cute.i32)
  end

  out.kernel = cute.kernel(p.name, {min_blocks = p.min_blocks},
    function(mA, mB, mC, work, turns, ...)
      local each, splits, all = parts(cute.size(mA, 1))
      local from = select(3, cute.arch.block_idx()) * each
      gemm.run(mA, mB, mC, {from = from,
        k_tiles = cute.min(all - from, each),
        meet = function(C, at)
          return meet(C, work, turns, at, splits, gemm.block)
        end}, ...)
    end)
  return out
end
