-- copy_async.lua with another thread layout for the stores, and with a swizzle.
--
-- For the stores, the threads form 128 rows of two. Two vectors are a whole
-- sector of global memory. Shared memory serves eight threads in one pass, and
-- these need two vectors of each of four rows. In rows of 128 bytes, all four
-- pairs are in the same banks, so one pass becomes four ("conflicts" in the
-- simulator's table). The swizzle moves each of the four rows to other banks:
--   BITS 2: four positions; M 4: 16 elements (two vectors) stay together;
--   SHIFT 2: offset bits 6-7 (the row's lowest) are XORed into bits 4-5.
-- DRAM hides the conflicts: the speed is 0.95 of the driver's copy with and
-- without the swizzle at 1 GiB on an H200. At 64 MiB it is 0.92 with the
-- swizzle and 0.90 without. The stores of copy_async.lua write whole lines of
-- DRAM and reach 0.97. In transpose.lua conflicts cost up to 29 % of the speed.
--   cutelua scripts/copy_swizzled.lua --help
local cute = require "cute"
local copytile = require "kernels.copytile"

local TILE, THREADS = {128, 64}, 256

local threads_in = cute.make_layout({32, 8}, {8, 1})
local threads_out = cute.make_layout({128, 2}, {2, 1})
local values = cute.make_layout({1, 8})
local plain = cute.make_layout(TILE, {64, 1})                      -- (BM,BN)
local swizzled = cute.composition(cute.make_swizzle(2, 4, 2), plain)

local function kernel(name, sA_layout)
  return cute.kernel(name, function(mA, mB)
    local n = cute.size(mA, 1)
    local copy_in = cute.make_tiled_copy(
      copytile.async_atom(cute.bf16, n), threads_in, values)
    local copy_out = cute.make_tiled_copy(cute.make_copy_atom("UniversalCopy",
      cute.bf16, copytile.bits(cute.bf16, n)), threads_out, values)

    local tid = cute.arch.thread_idx()
    local at = copytile.by_rows(mA, TILE)                 -- this block's tile
    local gA = cute.local_tile(mA, TILE, at)                       -- (BM,BN)
    local gB = cute.local_tile(mB, TILE, at)                       -- (BM,BN)
    local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 128)    -- (BM,BN)

    local thr_in, thr_out = copy_in:get_slice(tid), copy_out:get_slice(tid)
    local tAgA = thr_in:partition_S(gA)                   -- (CPY,CPY_M,CPY_N)
    local tAsA = thr_in:partition_D(sA)                   -- (CPY,CPY_M,CPY_N)
    local tBsA = thr_out:partition_S(sA)                  -- (CPY,CPY_M,CPY_N)
    local tBgB = thr_out:partition_D(gB)                  -- (CPY,CPY_M,CPY_N)
    local in_A = copytile.inside(thr_in, mA, TILE, at)  -- (atoms,CPY_M,CPY_N)
    local in_B = copytile.inside(thr_out, mB, TILE, at) -- (atoms,CPY_M,CPY_N)

    cute.copy(copy_in, tAgA, tAsA, {pred = in_A})
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    cute.copy(copy_out, tBsA, tBgB, {pred = in_B})
  end)
end

require "cutelua.bench.copylesson".run(arg, {
  kernel = kernel("copy_swizzled", swizzled), tile = TILE, block = THREADS,
  compare = {{name = "unswizzled", kernel = kernel("copy_unswizzled", plain)}},
  about = "Copies a bf16 matrix through swizzled shared memory.",
})
-- SPDX-License-Identifier: MIT
