-- B = A^T through swizzled shared memory, in bf16 and f32, with 16-byte
-- accesses to global memory for loads and stores.
--
-- The transposition is a layout. The tile is written to shared memory by rows,
-- and read through a view of the same memory with its modes exchanged. A thread
-- reads the W values of a vector of B one by one, down a column of the tile.
-- Eight adjacent threads read eight groups of W rows. Without a swizzle, these
-- rows are in the same banks. The swizzle moves the 16-byte chunks of each of
-- the eight groups to another position, so that reads and writes have no bank
-- conflicts. BITS is 3 for eight groups. M is log2 W, which keeps chunks whole.
-- SHIFT is log2 BN, so that the XOR uses the number of the group.
-- For 8192 x 8192 on an H200, this increases the speed from 0.68 to 0.96 of the
-- driver's copy in bf16, and from 0.92 to 0.97 in f32. Blocks go down the
-- columns of A, so that B is written in long contiguous runs. Blocks along the
-- rows reach 0.90 and 0.93.
--   cutelua scripts/transpose.lua --help
local cute = require "cute"
local copytile = require "kernels.copytile"

local THREADS = 512

-- Returns the kernel.
-- - W: the number of elements in 16 bytes.
-- - TILE: the tile (BM,BN) of A.
-- - swizzle: the swizzle described above, or nil.
local function transpose(name, dtype, W, TILE, swizzle)
  local BM, BN = TILE[1], TILE[2]
  local sA_layout = cute.make_layout({BM, BN}, {BN, 1})            -- (BM,BN)
  if swizzle then sA_layout = cute.composition(swizzle, sA_layout) end
  local sT_layout = cute.make_layout({BN, BM}, {1, BN})            -- (BN,BM)
  local threads_in = cute.make_layout({32, 16}, {16, 1})  -- over A's tile
  local threads_out = cute.make_layout({64, 8}, {8, 1})   -- over B's tile
  local values = cute.make_layout({1, W})

  return cute.kernel(name, function(mA, mB)               -- (M,N), (N,M)
    local function tiled(bits, threads)
      return cute.make_tiled_copy(
        cute.make_copy_atom("UniversalCopy", dtype, bits), threads, values)
    end
    local copy_in = tiled(copytile.bits(dtype, cute.size(mA, 1)), threads_in)
    -- Reads shared memory one element at a time.
    local read = tiled(dtype.width, threads_out)
    local write = tiled(copytile.bits(dtype, cute.size(mB, 1)), threads_out)

    local tid = cute.arch.thread_idx()
    local at = copytile.by_columns(mA, TILE)              -- {bm, bn}
    local turned, at_B = {BN, BM}, {at[2], at[1]}
    local gA = cute.local_tile(mA, TILE, at)                       -- (BM,BN)
    local gB = cute.local_tile(mB, turned, at_B)                   -- (BN,BM)
    local sA = cute.make_smem_tensor(dtype, sA_layout, 128)        -- (BM,BN)
    local sT = cute.make_tensor(sA.iterator, sT_layout)            -- (BN,BM)

    local thr_in = copy_in:get_slice(tid)
    local tAgA = thr_in:partition_S(gA)                   -- (CPY,CPY_M,CPY_N)
    local tAsA = thr_in:partition_D(sA)                   -- (CPY,CPY_M,CPY_N)
    cute.copy(copy_in, tAgA, tAsA,
      {pred = copytile.inside(thr_in, mA, TILE, at)})
    cute.arch.sync_threads()

    local thr_read, thr_write = read:get_slice(tid), write:get_slice(tid)
    local tBsT = thr_read:partition_S(sT)                 -- (CPY,CPY_N,CPY_M)
    local tBrB = cute.make_rmem_tensor_like(tBsT)         -- (CPY,CPY_N,CPY_M)
    local tBgB = thr_write:partition_D(gB)                -- (CPY,CPY_N,CPY_M)
    cute.copy(read, tBsT, tBrB,
      {pred = copytile.inside(thr_read, mB, turned, at_B)})
    cute.copy(write, thr_write:retile(tBrB), tBgB,
      {pred = copytile.inside(thr_write, mB, turned, at_B)})
  end)
end

local function case(dtype, W, tile, swizzle)
  return {dtype = dtype, tile = tile,
          kernel = transpose("transpose", dtype, W, tile, swizzle),
          compare = {{name = "unswizzled",
                      kernel = transpose("plain", dtype, W, tile)}}}
end

require "cutelua.bench.copylesson".run(arg, {
  block = THREADS, transpose = true,
  cases = {case(cute.bf16, 8, {64, 128}, cute.make_swizzle(3, 3, 7)),
           case(cute.f32, 4, {64, 64}, cute.make_swizzle(3, 2, 6))},
  about = "B = A^T through swizzled shared memory, in bf16 and f32.",
})
-- SPDX-License-Identifier: MIT
