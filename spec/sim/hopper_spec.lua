-- Tests a GEMM made of Hopper's components in the simulator. Blocks of a
-- cluster load half of B for each other by TMA. One warp issues the loads, and
-- two warpgroups multiply by wgmma, with mbarriers between them. The complete
-- kernel must have no reports at any size and schedule. If a component is
-- missing or wrong, the report must name its lines.
local cute = require "cute"
local support = require "spec.support"
local arch, _ = cute.arch, cute._
local cpasync, warpgroup = cute.nvgpu.cpasync, cute.nvgpu.warpgroup

local BM, BN, BK = 128, 64, 64
local SWIZZLED = warpgroup.make_smem_layout_atom(
  warpgroup.SmemLayoutAtomKind.K_SW128, cute.bf16)
local LOAD, MULTICAST = cpasync.CopyBulkTensorTileG2SOp(),
  cpasync.CopyBulkTensorTileG2SMulticastOp()

local mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.bf16, cute.f32,
  {64, BN, 16}, warpgroup.OperandSource.SMEM), {2, 1, 1})

local at = support.recorder()  -- records line numbers
local function line() return debug.getinfo(2, "l").currentline end

-- Makes stages that have an mbarrier "full" and an mbarrier "empty" each. `o`
-- changes the number of stages and the arrival counts.
local function ring(o)
  local stages = o.stages or 3
  local r = {full = arch.alloc_smem(cute.i64, stages),
             empty = arch.alloc_smem(cute.i64, stages), stages = stages}
  cute.when(arch.thread_idx():eq(0), function()
    for k = 0, stages - 1 do
      arch.mbarrier_init(r.full + k, 1)
      arch.mbarrier_init(r.empty + k, o.count or 4)  -- warpgroups, blocks
    end
    if not o.no_fence then arch.mbarrier_init_fence() end
  end)
  if o.only_block then arch.sync_threads() else
    arch.cluster_arrive_relaxed()
    arch.cluster_wait()
  end
  function r.at(k) return k % stages, k // stages % 2 end
  return r
end

local function produce(r, o, x)
  local bytes = o.bytes or x.A.tx_bytes + x.B.tx_bytes
  for k in cute.range(x.k_tiles) do
    local stage, turn = r.at(k)
    if not o.no_empty then
      arch.mbarrier_wait(r.empty + stage, o.wrong and turn or 1 - turn)
    end
    arch.mbarrier_arrive_and_expect_tx(r.full + stage, bytes)
    at.copy_A = line() + 1
    cute.copy(x.A, x.tAg(_, k), x.tAs(_, stage), {tma_bar_ptr = r.full + stage})
    at.copy_B = line() + 1
    cute.copy(x.B, x.tBg(_, k), x.tBs(_, stage), {tma_bar_ptr = r.full + stage,
      mcast_mask = o.mask or 3})
  end
  if o.no_tail then return end
  for k in cute.range(x.k_tiles, x.k_tiles + r.stages) do
    local stage, turn = r.at(k)
    arch.mbarrier_wait(r.empty + stage, 1 - turn)
  end
end

local function consume(r, o, x)
  local tid = arch.thread_idx()
  local thr = mma:get_slice(tid)
  local tCrA = mma:make_fragment_A(thr:partition_A(x.sA))
  local tCrB = mma:make_fragment_B(thr:partition_B(x.sB))
  local tCgC = thr:partition_C(x.gC)
  local acc = mma:make_fragment_C(tCgC)
  local function release(stage)
    cute.when((tid % 128):lt(2), function()
      at.release = line() + 1
      arch.mbarrier_arrive(r.empty + stage, tid % 128)
    end)
  end
  for k in cute.range(x.k_tiles) do
    local stage, turn = r.at(k)
    at.full = line() + 1
    if not o.no_full then arch.mbarrier_wait(r.full + stage, turn) end
    warpgroup.fence()
    mma:set(warpgroup.Field.ACCUMULATE, cute.gt(k, 0))
    at.gemm = line() + 1
    cute.gemm(mma, acc, tCrA(_, _, _, stage), tCrB(_, _, _, stage), acc)
    warpgroup.commit_group()
    if o.early then release(stage) end
    warpgroup.wait_group(0)
    if not o.early then release(stage) end
  end
  cute.autovec_copy(acc, tCgC)
end

local function gemm(o)
  return function(A, cA, B, cB, mC)
    local bm, bn = arch.block_idx()
    local n = o.stages or 3
    local sA = cute.make_smem_tensor(cute.bf16,
      cute.tile_to_shape(SWIZZLED, {BM, BK, n}), 1024)  -- (BM,BK,PIPE)
    local sB = cute.make_smem_tensor(cute.bf16,
      cute.tile_to_shape(SWIZZLED, {BN, BK, n}), 1024)  -- (BN,BK,PIPE)
    local x = {A = A, B = B, sA = sA, sB = sB}
    x.gC = cute.local_tile(mC, {BM, BN}, {bm, bn})
    x.tAs, x.tAg = cpasync.tma_partition(A, 0, cute.make_layout(1),
      cute.group_modes(sA, 0, 2),
      cute.group_modes(cute.local_tile(cA, {BM, BK}, {bm, _}), 0, 2))
    x.tBs, x.tBg = cpasync.tma_partition(B, arch.block_idx_in_cluster(),
      cute.make_layout(2), cute.group_modes(sB, 0, 2),
      cute.group_modes(cute.local_tile(cB, {BN, BK}, {bn, _}), 0, 2))
    x.k_tiles = cute.size(x.tAg, 1)
    local r = ring(o)
    cute.when(arch.warp_idx():eq(8), function()
      cute.when(arch.elect_one(), function() produce(r, o, x) end)
    end)
    cute.when(arch.warp_idx():lt(8), function() consume(r, o, x) end)
  end
end

-- Returns a function of (i,k) or (j,k) that returns an element of A or B, an
-- integer from -2 to 2.
local function element(s)
  return function(i, k) return (i * 7 + k * 3 + s) % 5 - 2 end
end
local of_A, of_B = element(1), element(2)

local function operand(f, rows, K)
  local t = cute.zeros({rows, K}, cute.bf16)
  for i = 0, rows - 1 do
    for k = 0, K - 1 do t[{i, k}] = f(i, k) end
  end
  return t
end

local function operands(M, N, K)
  local A, B = operand(of_A, M, K), operand(of_B, N, K)
  local A_atom, cA = cpasync.make_tiled_tma_atom(LOAD, A,
    cute.tile_to_shape(SWIZZLED, {BM, BK}), {BM, BK})
  local B_atom, cB = cpasync.make_tiled_tma_atom(MULTICAST, B,
    cute.tile_to_shape(SWIZZLED, {BN, BK}), {BN, BK}, 2)
  local C = cute.make_tensor(cute.buffer("f32", M * N),
                             cute.make_layout({M, N}, {N, 1}))
  return C, A_atom, cA, B_atom, cB, C
end

local function launch(kernel, M, N, seed, ...)
  return support.report(kernel(...):launch {grid = {M // BM, N // BN},
    cluster = {2, 1}, block = 288, device = "sim:sm_90a", seed = seed,
    faults = "return"})
end

local function check(C, M, N, K)
  for _, p in ipairs {{0, 0}, {M - 1, N - 1}, {M // 2 + 3, N // 2},
      {77, 13}} do
    local sum = 0
    for k = 0, K - 1 do sum = sum + of_A(p[1], k) * of_B(p[2], k) end
    assert.equal(sum, C(p[1], p[2]))
  end
end

local M, N, K = 256, 64, 5 * BK
local DATA = {operands(M, N, K)}

-- Reports whether a fault's "kind: message" matches one of the patterns.
local function matches(f, patterns)
  for _, p in ipairs(type(patterns) == "table" and patterns or {patterns}) do
    if (f.kind .. ": " .. f.message):find(p) then return true end
  end
  return false
end

local function tells(o, patterns, where, other)
  local kernel = cute.kernel("gemm", gemm(o))
  for seed = 1, 4 do
    local report = launch(kernel, M, N, seed, table.unpack(DATA, 2))
    local hit = false
    for _, f in ipairs(report.reports) do
      hit = hit or matches(f, patterns)
        and (not where or f.line == at[where])
        and (not other or f.line2 == at[other])
    end
    assert.truthy(hit, tostring(report))
  end
end

describe("a GEMM of Hopper's parts", function()
  it("is clean at any size, with any number of stages #long", function()
    for _, case in ipairs {{256, 64, 8, 1}, {256, 64, 64, 3}, {256, 64, 72, 3},
        {256, 128, 320, 2}, {512, 64, 200, 3}, {256, 64, 1000, 4},
        {256, 192, 136, 1}} do
      local m, n, k, stages = table.unpack(case)
      local kernel = cute.kernel("gemm", gemm {stages = stages})
      local data = {operands(m, n, k)}
      for seed = 1, 3 do
        local report = launch(kernel, m, n, seed, table.unpack(data, 2))
        assert.is_true(report.ok, tostring(report))
        check(data[1], m, n, k)
      end
    end
  end)

  it("must wait for a stage to be empty #long", function()
    -- The report is either a race of the copy's writes, or an mbarrier fault:
    -- the phase's last arrival comes before expect_tx.
    local over = "^mbarrier: mbarrier 'r_full'%[%d%] counts 1 arrival a phase; "
      .. "1 arrival comes when 0 are missing %(but %d+ bytes are%)"
    tells({no_empty = true}, {over, "^race: write after a [rw]%w+ by a bulk "
      .. "copy or wgmma whose completion was not waited for"})
    tells({wrong = true}, {over,
      "^deadlock: .*'r_empty'%[0%] for the end of phase 0"})
    tells({count = 2}, {over, "^race: write after a read by a bulk copy",
      "^mbarrier: mbarrier 'r_empty'%[%d%] counts 2 arrivals"})
    tells({count = 5}, "^deadlock: .*'r_empty'%[%d%].*which lacks 1 of 5 arr")
  end)

  it("must wait for a stage to be full", function()
    tells({no_full = true}, "^async%-in%-flight: ", "gemm")
    tells({bytes = BM * BK * 2}, {"^deadlock: .*'r_full'%[%d%].*, which lacks "
      .. "nothing; 8192 bytes arrived that no expect_tx announced",
      "^async%-in%-flight"})
    tells({mask = 1}, "^deadlock: .*'r_full'%[0%] for the end of phase 0 "
      .. "%(parity 0%), which lacks 8192 bytes", "full")
  end)

  it("must release a stage after wgmma has read it", function()
    tells({early = true}, "^race: write after a read by wgmma whose completion "
      .. "was not waited for", "copy_A", "gemm")
  end)

  it("must not end before data from other blocks arrive", function()
    tells({no_tail = true}, "^exited%-block: access to shared memory",
          "release")
  end)

  it("must make its barriers known to TMA and the cluster #long", function()
    tells({no_fence = true}, "^mbarrier: mbarrier 'r_%w+'%[0%] is ")
    tells({only_block = true}, "^mbarrier: mbarrier 'r_%w+'%[%d%] is used")
  end)
end)

---------------------------------------------------------------------------
-- cp.async has no proxy of its own
---------------------------------------------------------------------------

describe("data of cp.async that arrives at an mbarrier", function()
  local TILE = {32, 4}

  -- Returns a kernel in which warp 0 copies the data and a thread of warp 1
  -- stores it by TMA.
  local function pass(fence)
    return function(x, store, coords)
      local lane = arch.lane_idx()
      local bar = arch.alloc_smem(cute.i64, 1)
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout(TILE), 128)
      local flat = cute.make_tensor(s.iterator, cute.make_layout {128})
      local ts, tg = cpasync.tma_partition(store, 0, cute.make_layout(1),
        cute.group_modes(s, 0, 2), cute.zipped_divide(coords, TILE))
      cute.when(arch.thread_idx():eq(0), function()
        arch.mbarrier_init(bar, 32)
        arch.mbarrier_init_fence()
      end)
      arch.sync_threads()
      cute.when(arch.warp_idx():eq(0), function()
        local g2s = cute.make_tiled_copy(
          cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
          cute.make_layout {32}, cute.make_layout {4})
        local thr = g2s:get_slice(lane)
        cute.copy(g2s, thr:partition_S(x), thr:partition_D(flat))
        arch.cp_async_mbarrier_arrive_noinc(bar)
      end, function()
        cute.when(arch.elect_one(), function()
          arch.mbarrier_wait(bar, 0)
          if fence then arch.fence_view_async_shared() end
          cute.copy(store, ts, tg(_, 0))
          arch.cp_async_bulk_commit_group()
          arch.cp_async_bulk_wait_group(0)
        end)
      end)
    end
  end

  it("needs a fence before the async proxy reads it", function()
    local x, y = cute.zeros({128}, cute.f32), cute.zeros(TILE, cute.f32)
    for i = 0, 127 do x[i] = i end
    local store, coords = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileS2GOp(),
      cute.make_tensor(y.iterator, cute.make_layout(TILE)),
      cute.make_layout(TILE), TILE)
    for seed = 1, 4 do
      local function run(fence)
        return support.report(cute.kernel("k", pass(fence))(x, store, coords)
          :launch {grid = 1, block = 64, device = "sim:sm_90a", seed = seed,
                   faults = "return"})
      end
      local report = run(true)
      assert.is_true(report.ok, tostring(report))
      report = run(false)
      assert.equal("race", report.reports[1].kind)
      assert.matches("read by a bulk copy after a thread's write, "
        .. "with no fence_proxy", report.reports[1].message)
    end
    local flat = cute.make_tensor(y.iterator, cute.make_layout {128})
    for i = 0, 127 do assert.equal(i, flat(i)) end
  end)
end)
-- SPDX-License-Identifier: MIT
