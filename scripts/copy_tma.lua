-- A copy by TMA loads and TMA stores, without data in registers (sm_90).
--
-- One thread of a block issues the load of a box of A, through a tensor map
-- that the host created. It waits on an mbarrier for the bytes, and then issues
-- the store of the box of B. Threads compute no addresses. Parts of a box
-- outside the matrix are neither read nor written, so no predicates are needed.
--
-- With one block per box of 2 KiB, the speed is 1.00 of the driver's copy (1
-- GiB on an H200). Many small blocks overlap without a pipeline, as in
-- copy_tile.lua. Boxes of 1 KiB give 0.79, and boxes of 4 to 64 KiB give 0.97
-- to 0.98. A pipeline of stages in longer-running blocks gives 0.96 to 0.98.
-- Sharing tiles in a cluster gives 0.84, because blocks wait for each other and
-- no block needs data that another block loads.
--   cutelua scripts/copy_tma.lua --help
local copylesson = require "cutelua.bench.copylesson"
local copytile = require "kernels.copytile"
local core = require "cute.core"
local cute = require "cute"
local lib = require "cutelua.bench.lessonlib"
local report = require "cute.lang.report"
local tiles = require "cute.tiles"

local _, arch, cpasync = cute._, cute.arch, cute.nvgpu.cpasync
local TILE, THREADS, TILES, STAGES = {4, 256}, 32, 1, 1
local WIDE = {32, 256}  -- tile of the variants in the comparison table

local LOAD = cpasync.CopyBulkTensorTileG2SOp()
local MULTICAST = cpasync.CopyBulkTensorTileG2SMulticastOp()
local STORE = cpasync.CopyBulkTensorTileS2GOp()

-- Returns a kernel with a pipeline of `stages` tiles in shared memory. Each
-- stage has an mbarrier. A block copies n adjacent tiles.
local function ring(tile, n, stages)
  local sA_layout = cute.make_ordered_layout({tile[1], tile[2], stages},
                                             {1, 0, 2})         -- (BM,BN,PIPE)
  return cute.kernel("copy_tma", function(load, mA, store, mB)
    local whole = {tile[1], tile[2] * n}
    local at = copytile.by_rows(mA, whole)                 -- this block's tiles
    local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 128)
    local full = arch.alloc_smem(cute.i64, stages)
    local function tiles_of(t)                               -- ((BM,BN),tiles)
      return cute.group_modes(cute.local_tile(cute.local_tile(t, whole, at),
        tile, {0, _}), 0, 2)
    end
    local one = cute.make_layout(1)
    local sA_tiles = cute.group_modes(sA, 0, 2)
    local tAsA, tAgA = cpasync.tma_partition(load, 0, one, sA_tiles,
      tiles_of(mA))                                               -- (TMA,PIPE)
    local tBsA, tBgB = cpasync.tma_partition(store, 0, one, sA_tiles,
      tiles_of(mB))                                              -- (TMA,tiles)

    local function fetch(k)
      local bar = full + k % stages
      arch.mbarrier_arrive_and_expect_tx(bar, load.tx_bytes)
      cute.copy(load, tAgA(_, k), tAsA(_, k % stages),
                {tma_bar_ptr = bar})
    end

    cute.when(arch.thread_idx():eq(0), function()
      cpasync.prefetch_descriptor(load)
      cpasync.prefetch_descriptor(store)
      for s = 0, stages - 1 do arch.mbarrier_init(full + s, 1) end
      arch.mbarrier_init_fence()
      for k = 0, math.min(stages, n) - 1 do fetch(k) end
      for k = 0, n - 1 do
        arch.mbarrier_wait(full + k % stages, k // stages % 2)
        cute.copy(store, tBsA(_, k % stages), tBgB(_, k))
        arch.cp_async_bulk_commit_group()
        if k + stages < n then
          -- Wait until the store has read this stage.
          arch.cp_async_bulk_wait_group(0, true)
          fetch(k + stages)
        end
      end
      arch.cp_async_bulk_wait_group(0, true)  -- the stores have read all stages
    end)
  end)
end

-- Returns a kernel in which the two blocks of a cluster share a tile. Each
-- block loads one half of its rows into the shared memory of both, and stores
-- the other half.
local function shared(tile)
  local half = {tile[1] // 2, tile[2]}
  local sA_layout = cute.make_ordered_layout(tile, {1, 0})          -- (BM,BN)
  return cute.kernel("copy_multicast", function(load, mA, store, mB)
    local tid, block = arch.thread_idx(), (arch.block_idx())
    local rank = arch.block_idx_in_cluster()
    local along = tiles.count(cute.size(mA, 1), tile[2])
    local at = {block // 2 // along, block // 2 % along}
    local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 128)     -- (BM,BN)
    local full = arch.alloc_smem(cute.i64, 1)
    local function whole(t) return cute.group_modes(t, 0, 2) end
    local tAsA, tAgA = cpasync.tma_partition(load, rank, cute.make_layout(2),
      whole(sA), whole(cute.local_tile(mA, tile, at)))                 -- (TMA)
    local other = 1 - rank
    local tBsA, tBgB = cpasync.tma_partition(store, 0, cute.make_layout(1),
      whole(cute.local_tile(sA, half, {other, 0})),
      whole(cute.local_tile(cute.local_tile(mB, tile, at), half, {other, 0})))

    cute.when(tid:eq(0), function()
      arch.mbarrier_init(full, 1)
      arch.mbarrier_init_fence()
    end)
    arch.cluster_arrive()  -- both blocks have initialized `full`
    arch.cluster_wait()
    cute.when(tid:eq(0), function()
      -- Expect the bytes of both halves.
      arch.mbarrier_arrive_and_expect_tx(full, load.tx_bytes)
      cute.copy(load, tAgA, tAsA, {tma_bar_ptr = full, mcast_mask = 3})
      arch.mbarrier_wait(full, 0)
      cute.copy(store, tBsA, tBgB)
      arch.cp_async_bulk_commit_group()
      arch.cp_async_bulk_wait_group(0, true)
    end)
  end)
end

-- Returns the launch arguments for matrices A and B: for each matrix, the TMA
-- atom and the tensor of coordinates.
local function arguments(load, store, tile, half, ctas)
  local list = {}
  for i, of in ipairs {{"A", load, tile, ctas}, {"B", store, half, 1}} do
    local function made(t)
      return cpasync.make_tiled_tma_atom(of[2], t,
        cute.make_ordered_layout(of[3], {1, 0}), of[3], of[4])
    end
    list[2 * i - 1] = {of[1], function(t) return (made(t)) end}
    list[2 * i] = {of[1], function(t) return select(2, made(t)) end}
  end
  return list
end

local function ring_case(name, tile, n, stages)
  return {name = name, kernel = ring(tile, n, stages), block = THREADS,
          tile = {tile[1], tile[2] * n},
          args = arguments(LOAD, STORE, tile, tile, 1)}
end

local function multicast_case(tile)
  local half = {tile[1] // 2, tile[2]}
  return {name = "multicast", kernel = shared(tile), block = THREADS,
          cluster = 2, args = arguments(MULTICAST, STORE, tile, half, 2),
          grid = function(m, n)
            return 2 * tiles.count(m, tile[1]) * tiles.count(n, tile[2])
          end}
end

-- Returns the reason why TMA cannot copy a problem, or nil. The device may lack
-- TMA, or the matrix may violate a rule of tensor maps.
local function refuses(p)
  if p.sm and not core.has(p.sm, "a bulk copy") then
    return ("sm_%d has no TMA, sm_90 has"):format(p.sm)
  end
  local ok, why = pcall(cpasync.make_tiled_tma_atom, LOAD, p.tensors.A,
    cute.make_ordered_layout(TILE, {1, 0}), TILE)
  return not ok and report.parse(why).sentence or nil
end

local spec = ring_case("copy_tma", TILE, TILES, STAGES)
spec.about = "Copies a bf16 matrix by TMA alone."
spec.compare = {multicast_case(WIDE), ring_case("ring", WIDE, 8, 4)}
spec.refuses = refuses
spec.instead = {"copy_tile", assert(lib.script_spec(
  lib.folder() .. "copy_tile.lua", "cutelua.bench.copylesson", "run"))}
copylesson.run(arg, spec)
-- SPDX-License-Identifier: MIT
