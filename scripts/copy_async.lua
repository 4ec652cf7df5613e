-- copy_vector.lua with cp.async: the loads bypass registers.
--
-- A thread issues its copies, and the hardware writes the data to shared memory
-- without L1. The thread can do other work until it waits. Here it has no other
-- work, and other blocks hide the latency already. The speed remains 0.97 of
-- the driver's copy (1 GiB on an H200). cp.async saves half of the load
-- instructions. In a GEMM the threads have other work (see gemm3stage.lua). A
-- pipeline of several stages reaches only 0.81 to 0.93 here.
--   cutelua scripts/copy_async.lua --help
local cute = require "cute"
local copytile = require "kernels.copytile"

local TILE, THREADS = {128, 64}, 256

-- Each warp copies four whole rows.
local threads = cute.make_layout({32, 8}, {8, 1})
local sA_layout = cute.make_layout(TILE, {64, 1})                  -- (BM,BN)

local copy_async = cute.kernel("copy_async", function(mA, mB)
  local n = cute.size(mA, 1)
  local atom = cute.make_copy_atom("UniversalCopy", cute.bf16,
    copytile.bits(cute.bf16, n))
  local copy_in = cute.make_tiled_copy(copytile.async_atom(cute.bf16, n),
    threads, cute.make_layout({1, 8}))
  local copy_out = cute.make_tiled_copy(atom, threads,
    cute.make_layout({4, 8}, {8, 1}))

  local tid = cute.arch.thread_idx()
  local at = copytile.by_rows(mA, TILE)                   -- this block's tile
  local gA = cute.local_tile(mA, TILE, at)                         -- (BM,BN)
  local gB = cute.local_tile(mB, TILE, at)                         -- (BM,BN)
  local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 128)      -- (BM,BN)

  local thr_in, thr_out = copy_in:get_slice(tid), copy_out:get_slice(tid)
  local tAgA = thr_in:partition_S(gA)                     -- (CPY,CPY_M,CPY_N)
  local tAsA = thr_in:partition_D(sA)                     -- (CPY,CPY_M,CPY_N)
  local tBsA = thr_out:partition_S(sA)                    -- (CPY,CPY_M,CPY_N)
  local tBgB = thr_out:partition_D(gB)                    -- (CPY,CPY_M,CPY_N)
  local in_A = copytile.inside(thr_in, mA, TILE, at)    -- (atoms,CPY_M,CPY_N)
  local in_B = copytile.inside(thr_out, mB, TILE, at)   -- (atoms,CPY_M,CPY_N)

  cute.copy(copy_in, tAgA, tAsA, {pred = in_A})
  cute.arch.cp_async_commit_group()
  cute.arch.cp_async_wait_group(0)   -- waits for this thread's copies
  cute.arch.sync_threads()           -- waits for the copies of all threads
  cute.copy(copy_out, tBsA, tBgB, {pred = in_B})
end)

require "cutelua.bench.copylesson".run(arg, {
  kernel = copy_async, tile = TILE, block = THREADS,
  about = "Copies a bf16 matrix through shared memory with cp.async.",
})
-- SPDX-License-Identifier: MIT
