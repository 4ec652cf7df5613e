-- Uses a little of each part of the library for `make memerr`, which runs this
-- file repeatedly. In each run, another allocation fails.
local cute = require "cute"

local l = cute.make_layout({8, {8, 8}}, {8, {1, 64}})
assert(tostring(l) == "(8,(8,8)):(8,(1,64))")
assert(cute.size(cute.logical_divide(l, {4, 8})) == 512)

local b = cute.buffer("f32", 64)
b:fill_normal(1)
local t = cute.make_tensor(b, cute.make_layout({8, 8}))
assert(t[{0, 0}] == b[0])

-- Traces a kernel with loops, branches and shared memory, prints it and runs it
-- on the simulator.
local k = cute.kernel("k", function(mA, mC, n)
  local tid = cute.arch.thread_idx()
  local sA = cute.make_smem_tensor(cute.f32, cute.make_layout {32})
  local sum, row = 0.0, mA(0, cute._)
  local r = cute.make_rmem_tensor({4}, cute.f32)
  r:fill(0)
  local acc = r:load()
  for i in cute.range(n) do
    sum = sum + row[tid]
    row = mA(i, cute._)
    acc = acc + sum
    cute.when(i:gt(1), function() sum = sum * 2 end)
  end
  sA[tid] = sum
  cute.arch.sync_threads()
  r:store(acc)
  mC[tid] = sA[31 - tid] + r[0]
end)
local A, C = cute.zeros({4, 32}, cute.f32), cute.zeros({32}, cute.f32)
local call = k(A:mark_layout_dynamic(), C, 4)
local p = call:trace {block = 32}
assert(#p.source > 100 and #p.ir > 100)
local report = call:launch {grid = 1, block = 32, device = "sim", threads = 1}
assert(report.ok and #report:traffic() > 10)
assert(not pcall(function()
  cute.kernel("bad", function(o) o[cute.arch.thread_idx()] = 1.0 end)(
    cute.zeros({4}, cute.f32)):launch {grid = 1, block = 32, device = "sim"}
end))

-- Runs warps that synchronize by a flag, and blocks that store to one address.
report = select(3, cute.kernel("flag", function(o)
  local arch, tid = cute.arch, cute.arch.thread_idx()
  local f = cute.make_smem_tensor(cute.i32, cute.make_layout {1})
  cute.when(tid:eq(0), function() f[0] = 0 end)
  arch.sync_threads()
  cute.when(tid:lt(32), function()
    arch.atomic_add(f.iterator, 1, {sem = "release"})
  end, function()
    cute.loop(function()
      return arch.load(f.iterator, nil, {sem = "acquire"}):lt(32)
    end, function() end)
    cute.when(tid:lt(40), function() arch.sync_warp(0xff) end)
  end)
  cute.when(tid:eq(0), function() o[0] = arch.block_idx() end)
end)(cute.zeros({1}, cute.i32)):launch {grid = 2, block = 64, device = "sim",
  threads = 1, faults = "return"})
assert(report.reports[1].kind == "block-race")

-- Runs two blocks that wait for each other.
report = cute.kernel("pair", function(o)
  local arch, gpu = cute.arch, {sem = "relaxed", scope = "gpu"}
  local at = arch.block_idx()
  arch.store(o.iterator + at, 1, gpu)
  cute.loop(function()
    return arch.load(o.iterator + (1 - at), nil, gpu):eq(0)
  end, function() end)
end)(cute.zeros({2}, cute.i32)):launch {grid = 2, block = 1, device = "sim",
  threads = 1}
assert(report.ok)

-- Runs blocks of a cluster that send values to each other.
report = select(3, cute.kernel("send", function(o)
  local arch, tid = cute.arch, cute.arch.thread_idx()
  local rank, bar = arch.block_idx_in_cluster(), arch.alloc_smem(cute.i64, 1)
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64})
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(bar, 1)
    arch.mbarrier_init_fence()
    arch.mbarrier_arrive_and_expect_tx(bar, 256)
  end)
  arch.cluster_arrive_relaxed()
  arch.cluster_wait()
  arch.store_async_dsmem(s.iterator + tid, tid, bar, 1 - rank)
  arch.mbarrier_wait(bar, 0)
  o[arch.block_idx() * 64 + tid] = s[63 - tid]
  arch.cluster_arrive()
  arch.cluster_wait()
  s[tid] = cute.make_tensor(arch.map_dsmem_ptr(s.iterator, 1 - rank),
    s.layout)[tid]
end)(cute.zeros({128}, cute.i32)):launch {grid = 2, cluster = 2, block = 64,
  device = "sim:sm_90a", threads = 1, faults = "return"})
assert(report.reports[1].kind == "race")

-- Runs a warpgroup's MMA in a loop that carries its ACCUMULATE field.
local warpgroup = cute.nvgpu.warpgroup
local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 8, 16}, "SMEM"))
local wgmma = cute.kernel("wgmma", function(mD)
  local tid = cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.bf16, cute.tile_to_shape(
    warpgroup.make_smem_layout_atom("K_INTER", "bf16"), {64, 16}), 1024)
  for i = 0, 7 do s[{i * 8 + tid // 16, tid % 16}] = 1 end
  cute.arch.fence_view_async_shared()
  cute.arch.sync_threads()
  local thr = mma:get_slice(tid)
  local a = mma:make_fragment_A(thr:partition_A(s))
  local rows = cute.local_tile(s, {8, 16}, {0, 0})
  local d = mma:make_fragment_B(thr:partition_B(rows))
  local acc = thr:partition_fragment_C(mD)
  mma:set(warpgroup.Field.ACCUMULATE, false)
  for _ in cute.range(2) do
    warpgroup.fence()
    cute.gemm(mma, acc, a, d, acc)
    mma:set(warpgroup.Field.ACCUMULATE, true)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
  end
  cute.autovec_copy(acc, thr:partition_C(mD))
end)
local D = cute.zeros({64, 8}, cute.f32)
wgmma(D):launch {grid = 1, block = 128, device = "sim:sm_90a", threads = 1}
assert(D[{7, 3}] == 32)

local made = p:compile "sm_90a"
assert(not made or made.cubin)

-- Counts bank conflicts, and searches for swizzles that avoid them.
report = cute.kernel("column", function(o)
  local tid = cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout({32, 32}, {32, 1}))
  for i = 0, 31 do s[{tid, i}] = 1.0 end
  o[tid] = s[{tid, 31}]
end)(cute.zeros({32}, cute.f32)):profile {grid = 1, block = 32}
assert(#tostring(report:conflicts()[1]) > 100)
assert(report:find_swizzle()[1].cured)
-- SPDX-License-Identifier: MIT
