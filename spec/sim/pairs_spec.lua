-- Tests pairs of CTAs (cta_group::2) on the simulator: MMAs of all kinds and
-- shapes against sums on the host. Values are small integers, so results must
-- be equal. NVRTC must compile each kernel.
local block = require "spec.tensor_block"
local cute = require "cute"
local oracle = require "cutelua.bench.oracle"
local support = require "spec.support"
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._
local helpers = cute.utils.blackwell_helpers

local DEVICE = "sim:sm_100a"
local PAIR, BOTH = tcgen05.CtaGroup.TWO, 3

-- Returns a kernel that multiplies one tile of m x n x k by a pair.
local function product(o)
  local mma, acc = cute.make_tiled_mma(o.op), cute[o.acc]
  local dtype, b_dtype, columns = cute[o.type], cute[o.b_type or o.type], 32
  local load = cute.make_copy_atom(o.load or tcgen05.Ld32x32bOp(8), acc)
  local tile = {o.m, o.n, o.k}
  local tm, tn = mma:get_tile_size(0), mma:get_tile_size(1)
  while columns < o.n * o.m // tm do columns = columns * 2 end
  return cute.kernel("product", function(A, B, C)
    local rank = arch.block_idx_in_cluster()
    local sA = cute.make_smem_tensor(dtype,
      helpers.make_smem_layout_a(mma, tile, dtype, 1), 1024)
    local sB = cute.make_smem_tensor(b_dtype,
      helpers.make_smem_layout_b(mma, tile, b_dtype, 1), 1024)
    local go = block.begin_pair(columns, acc)
    local thr = mma:get_slice(rank)
    block.copy_in(sA, thr:partition_A(A))
    block.copy_in(sB, thr:partition_B(B))
    local ptr, bar = go()
    local a, b = mma:make_fragment_A(sA), mma:make_fragment_B(sB)
    local part = thr:partition_C(C)
    local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
    cute.when(rank:eq(0) & arch.thread_idx():eq(0), function()
      mma:set(tcgen05.Field.ACCUMULATE, false)
      cute.gemm(mma, sums, a(_, _, _, 0), b(_, _, _, 0), sums)
      tcgen05.commit(bar, BOTH, PAIR)
    end)
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    for m = 0, o.m // tm - 1 do
      for n = 0, o.n // tn - 1 do
        block.copy_out(load, sums({_, _}, m, n), part({_, _}, m, n))
      end
    end
    block.finish_pair(ptr, columns)
  end)
end

local LAUNCH = {grid = 2, block = 128, cluster = 2, device = DEVICE}

-- Returns row i of a matrix as a list.
local function row(t, i)
  local list = {}
  for k = 0, cute.size(t, 1) - 1 do list[k + 1] = t(i, k) end
  return list
end

-- Checks that C is A B^T.
local function check_product(A, B, C)
  local dot, rows = oracle.products(cute.size(A, 1)), {}
  for j = 0, cute.size(C, 1) - 1 do rows[j] = row(B, j) end
  for i = 0, cute.size(C, 0) - 1 do
    local own = row(A, i)
    for j = 0, cute.size(C, 1) - 1 do
      local s = dot(own, rows[j])
      if s ~= C(i, j) then
        assert.equal(s, C(i, j), ("C(%d,%d)"):format(i, j))
      end
    end
  end
end

-- Runs a kernel, which must have no reports, and compares C with A B^T.
local function compare(kernel, A, B, C)
  local call = kernel(A, B, C)
  local report = support.report(call:launch(LAUNCH))
  assert.same({}, report:notes())
  check_product(A, B, C)
  return call
end

local F16, TF32, FP8 = tcgen05.MmaF16BF16Op, tcgen05.MmaTF32Op, tcgen05.MmaFP8Op
local MIXED = tcgen05.MmaF8F6F4Op
-- A copy of f16 accumulators from tensor memory that packs pairs of them.
local LdPack = tcgen05.Ld32x32bOp(8, tcgen05.Pack.PACK_16b_IN_32b)

local CASES = {
  {"bf16, M = 256", type = "bf16", acc = "f32", m = 256, n = 64, k = 32,
   op = F16("bf16", "f32", {256, 64, 16}, PAIR)},
  {"bf16, M = 128", type = "bf16", acc = "f32", m = 128, n = 64, k = 32,
   op = F16("bf16", "f32", {128, 64, 16}, PAIR)},
  {"four tiles of f16", type = "f16", acc = "f32", m = 512, n = 64, k = 64,
   op = F16("f16", "f32", {256, 32, 16}, PAIR)},
  {"four tiles of bf16, M = 128", type = "bf16", acc = "f32", m = 256, n = 64,
   k = 32, op = F16("bf16", "f32", {128, 32, 16}, PAIR)},
  {"bf16, MN-major", type = "bf16", acc = "f32", m = 256, n = 128, k = 32,
   op = F16("bf16", "f32", {256, 128, 16}, PAIR, "SMEM", "MN", "MN")},
  {"tf32", type = "tf32", acc = "f32", m = 256, n = 32, k = 16,
   op = TF32({256, 32, 8}, PAIR)},
  {"e4m3, M = 128", type = "e4m3", acc = "f32", m = 128, n = 32, k = 64,
   op = FP8("e4m3", "f32", {128, 32, 32}, PAIR)},
  {"i8", type = "i8", acc = "i32", m = 256, n = 32, k = 64,
   op = tcgen05.MmaI8Op("i8", {256, 32, 32}, PAIR)},
  {"u8, M = 128", type = "u8", acc = "i32", m = 128, n = 32, k = 32, least = 0,
   op = tcgen05.MmaI8Op("u8", {128, 32, 32}, PAIR)},
  {"f16 with sums in f16", type = "f16", acc = "f16", m = 256, n = 64, k = 32,
   op = F16("f16", "f16", {256, 64, 16}, PAIR), load = LdPack},
  {"f16 with sums in f16, M = 128", type = "f16", acc = "f16", m = 128, n = 64,
   k = 32, op = F16("f16", "f16", {128, 64, 16}, PAIR), load = LdPack},
  {"e5m2 with sums in f16", type = "e5m2", acc = "f16", m = 256, n = 32, k = 64,
   op = FP8("e5m2", "f16", {256, 32, 32}, PAIR), load = LdPack},
  {"e4m3 by e5m2", type = "e4m3", b_type = "e5m2", acc = "f32", m = 256, n = 64,
   k = 64, op = MIXED("e4m3", "e5m2", "f32", {256, 64, 32}, PAIR)},
  {"e5m2 by e4m3, M = 128", type = "e5m2", b_type = "e4m3", acc = "f32",
   m = 128, n = 64, k = 32,
   op = MIXED("e5m2", "e4m3", "f32", {128, 64, 32}, PAIR)},
}

describe("tcgen05.mma of a pair on the simulator", function()
  for _, o in ipairs(CASES) do
    it("is exact: " .. o[1], function()
      local least = o.least or -2
      local A = block.small(cute.zeros({o.m, o.k}, o.type), 7, least)
      local B = block.small(cute.zeros({o.n, o.k}, o.b_type or o.type), 3,
                            least)
      block.compile(compare(product(o), A, B, cute.zeros({o.m, o.n}, o.acc)),
                    "sm_100a", 2)
    end)
  end

  -- With M = 128, a CTA has 64 rows of A, and lanes 64 to 127 need a copy of
  -- these rows.
  for m = 128, 256, 128 do
    it("takes A from tensor memory, M = " .. m, function()
      local mma = cute.make_tiled_mma(F16("bf16", "f32", {m, 64, 16}, PAIR,
                                          tcgen05.OperandSource.TMEM))
      local store = cute.make_copy_atom(tcgen05.St32x32bOp(8), cute.bf16)
      local load = cute.make_copy_atom(tcgen05.Ld32x32bOp(16), cute.f32)
      local layout = helpers.make_smem_layout_b(mma, {m, 64, 16}, cute.bf16, 1)
      local kernel = cute.kernel("ts", function(A, B, C)
        local rank, tid = arch.block_idx_in_cluster(), arch.thread_idx()
        local sB = cute.make_smem_tensor(cute.bf16, layout, 1024)
        local go = block.begin_pair(128, cute.f32)
        local thr = mma:get_slice(rank)
        block.copy_in(sB, thr:partition_B(B))
        local ptr, bar = go()
        local part = thr:partition_C(C)
        local sums = cute.make_tensor(ptr, mma:make_fragment_C(part).layout)
        local a = cute.make_tensor(cute.recast_ptr(ptr + 64, cute.bf16),
          mma:make_fragment_A(mma:partition_shape_A {m, 16}).layout)
        local to = a({_, _}, 0, 0)
        local put = tcgen05.make_tmem_copy(store, to)
        local mine = put:get_slice(tid)
        local own = mine:partition_S(cute.make_identity_tensor {128, 16})
        local r = cute.make_rmem_tensor(own.shape, cute.bf16)
        for k = 0, 15 do r[k] = A[{rank * (m // 2) + tid % (m // 2), k}] end
        cute.copy(put, r, mine:partition_D(to))
        arch.fence_view_async_tmem_store()
        block.sync_pair()
        cute.when(rank:eq(0) & tid:eq(0), function()
          mma:set(tcgen05.Field.ACCUMULATE, false)
          cute.gemm(mma, sums, a, mma:make_fragment_B(sB)(_, _, _, 0), sums)
          tcgen05.commit(bar, BOTH, PAIR)
        end)
        arch.mbarrier_wait(bar, 0)
        arch.tcgen05_after_thread_sync()
        block.copy_out(load, sums({_, _}, 0, 0), part({_, _}, 0, 0))
        block.finish_pair(ptr, 128)
      end)
      compare(kernel, block.small(cute.zeros({m, 16}, cute.bf16), 7, -2),
              block.small(cute.zeros({64, 16}, cute.bf16), 3, -2),
              cute.zeros({m, 64}, cute.f32))
    end)
  end
end)

describe("a kernel with pairs", function()
  local o = CASES[1]
  local function call(kernel)
    return (kernel or product(o))(cute.zeros({o.m, o.k}, o.type),
      cute.zeros({o.n, o.k}, o.type), cute.zeros({o.m, o.n}, o.acc))
  end

  it("is compiled for all targets that have tcgen05", function()
    if not cute.jit.version() then pending "needs NVRTC" return end
    for _, target in ipairs {"sm_100f", "sm_103a", "sm_103f", "sm_110a",
                             "sm_110f"} do
      block.compile(call(), target, 2)
    end
  end)

  it("is rejected for targets without it", function()
    for _, target in ipairs {"sm_90a", "sm_120a", "sm_100"} do
      support.raises("tcgen05", function()
        call():launch {grid = 2, block = 128, cluster = 2,
                       device = "sim:" .. target}
      end)
    end
  end)

  it("needs clusters of whole pairs", function()
    for _, cluster in ipairs {1, 3} do
      support.raises("clusters of an even number of blocks", function()
        call():launch {grid = 6, block = 128, cluster = cluster,
                       device = DEVICE}
      end)
    end
  end)

  it("has one cta_group", function()
    local kernel = cute.kernel("mixed", function(X)
      local bar = arch.alloc_smem(cute.i64, 1)
      arch.relinquish_tmem_alloc_permit()
      tcgen05.commit(bar, nil, PAIR)
      X[0] = 1
    end)
    support.raises("all tcgen05 instructions of a kernel have the same "
      .. "cta_group", function()
      kernel(cute.zeros({1}, cute.f32)):launch {grid = 2, block = 32,
        cluster = 2, device = DEVICE}
    end)
  end)

  it("has only shapes of instructions", function()
    support.raises("M must be 128 or 256", F16, "bf16", "f32", {64, 64, 16},
                   PAIR)
    support.raises("a multiple of 16 from 32", F16, "bf16", "f32",
                   {256, 24, 16}, PAIR)
    support.raises("cta_group must be CtaGroup.ONE or TWO", F16, "bf16", "f32",
                   {256, 64, 16}, 3)
  end)
end)

-- Returns a kernel C = A B^T by clusters of `blocks` blocks, with tiles of 256
-- x 64 in bf16 and multicasts. Also returns its launch.
local function clustered(blocks, C)
  local cpasync, pipeline = cute.nvgpu.cpasync, cute.pipeline
  local mma = cute.make_tiled_mma(F16("bf16", "f32", {256, 64, 16}, PAIR))
  local tile, Group = {256, 64, 32}, pipeline.CooperativeGroup
  local layout = cute.tiled_divide(cute.make_layout(blocks), {mma.thr_id})
  local sA_layout = helpers.make_smem_layout_a(mma, tile, cute.bf16, 2)
  local sB_layout = helpers.make_smem_layout_b(mma, tile, cute.bf16, 2)
  local m, n = cute.size(layout, 1), cute.size(layout, 2)
  local load = cute.make_copy_atom(tcgen05.Ld32x32bOp(16), cute.f32)
  local kernel = cute.kernel("clustered", function(tma_a, cA, tma_b, cB, mC)
    local bx, by = arch.block_idx()
    local at = layout:get_flat_coord(arch.block_idx_in_cluster())
    local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
    local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 1024)
    local pipe = pipeline.PipelineTmaUmma {num_stages = 2,
      tx_count = 2 * (tma_a.tx_bytes + tma_b.tx_bytes),
      producer_group = Group("thread"), cta_layout_vmnk = layout,
      consumer_group = Group("thread", m + n - 1), defer_sync = true}
    local ptr, bar = block.begin_pair(64, cute.f32)()
    local thr = mma:get_slice(at[1])
    local gA = thr:partition_A(cute.local_tile(cA, {256, 32}, {bx // 2, _}))
    local gB = thr:partition_B(cute.local_tile(cB, {64, 32}, {by, _}))
    local gC = thr:partition_C(cute.local_tile(mC, {256, 64}, {bx // 2, by}))
    local sums = cute.make_tensor(ptr, mma:make_fragment_C(gC).layout)
    local a, b = mma:make_fragment_A(sA), mma:make_fragment_B(sB)
    local function share(tma, mode, s, g)
      local x, y = cpasync.tma_partition(tma, at[mode + 1],
        cute.make_layout(cute.size(layout, mode)), cute.group_modes(s, 0, 3),
        cute.group_modes(g, 0, 3))
      local mask = cute.size(layout, mode) > 1
        and cpasync.create_tma_multicast_mask(layout, at, mode) or nil
      return function(bar_, k, stage)
        cute.copy(tma, y(_, k), x(_, stage),
                  {tma_bar_ptr = bar_, mcast_mask = mask})
      end
    end
    cute.when(arch.thread_idx():eq(0), function()
      local load_a, load_b = share(tma_a, 2, sA, gA), share(tma_b, 1, sB, gB)
      local write = pipe:make_producer_state()
      for k in cute.range(cute.size(gA, 3)) do
        pipe:producer_acquire(write)
        load_a(pipe:producer_get_barrier(write), k, write.index)
        load_b(pipe:producer_get_barrier(write), k, write.index)
        write:advance()
      end
      pipe:producer_tail(write)
    end)
    cute.when(pipe.is_leader_cta & arch.thread_idx():eq(32), function()
      local read = pipe:make_consumer_state()
      for k in cute.range(cute.size(gA, 3)) do
        pipe:consumer_wait(read)
        mma:set(tcgen05.Field.ACCUMULATE, cute.gt(k, 0))
        cute.gemm(mma, sums, a(_, _, _, read.index), b(_, _, _, read.index),
                  sums)
        pipe:consumer_release(read)
        read:advance()
      end
      tcgen05.commit(bar, BOTH << arch.block_idx_in_cluster(), PAIR)
    end)
    arch.sync_warp()
    arch.mbarrier_wait(bar, 0)
    arch.tcgen05_after_thread_sync()
    block.copy_out(load, sums({_, _}, 0, 0), gC({_, _}, 0, 0))
    block.finish_pair(ptr, 64)
  end)
  local utils = cute.utils
  local function arguments(A, B)
    local ta, cA = cute.nvgpu.make_tiled_tma_atom_A(
      utils.cluster_shape_to_tma_atom_A(blocks, mma.thr_id), A, sA_layout, tile,
      mma, layout.shape)
    local tb, cB = cute.nvgpu.make_tiled_tma_atom_B(
      utils.cluster_shape_to_tma_atom_B(blocks, mma.thr_id), B, sB_layout, tile,
      mma, layout.shape)
    return ta, cA, tb, cB, C
  end
  return kernel, arguments, {
    grid = {cute.size(C, 0) // 128, cute.size(C, 1) // 64, 1}, block = 128,
    cluster = blocks, device = DEVICE}
end

describe("pairs in a cluster", function()
  for n, blocks in ipairs {{4, 2, 1}, {2, 1, 1}, {4, 1, 1}, {2, 4, 1}} do
    it("share loads: " .. table.concat(blocks, " x ") .. support.long(n),
       function()
      local M, N = 128 * blocks[1], 64 * blocks[2]
      local A = block.small(cute.zeros({M, 96}, cute.bf16), 7, -2)
      local B = block.small(cute.zeros({N, 96}, cute.bf16), 3, -2)
      local C = cute.zeros({M, N}, cute.f32)
      local kernel, arguments, launch = clustered(blocks, C)
      for seed = 1, 2 do
        launch.seed = seed
        local report = support.report(kernel(arguments(A, B)):launch(launch))
        assert.same({}, report:notes())
        check_product(A, B, C)
      end
    end)
  end
end)

describe("make_tiled_tma_atom_A", function()
  it("shares a tile only if its operation is a multicast", function()
    local mma = cute.make_tiled_mma(F16("bf16", "f32", {256, 64, 16}, PAIR))
    local tile, A = {256, 64, 32}, cute.zeros({256, 32}, cute.bf16)
    local layout = helpers.make_smem_layout_a(mma, tile, cute.bf16, 2)
    for multicast, ctas in pairs {[false] = 1, [true] = 4} do
      local op = cute.utils.get_tma_atom_kind(multicast, true, true)
      local atom = cute.nvgpu.make_tiled_tma_atom_A(op, A, layout, tile, mma,
                                                    {2, 1, 4, 1})
      assert.equal(ctas, atom.num_multicast)
      assert.equal(128 * 32 * 2, atom.tx_bytes)
    end
  end)
end)

describe("tcgen05.cp of a pair", function()
  it("copies in both blocks from their own shared memory", function()
    local rows = cute.make_layout({{8, 16}, 4}, {{4, 32}, 1})
    local cp = cute.make_copy_atom(tcgen05.Cp128x128bOp(PAIR), cute.f32)
    local load = cute.make_copy_atom(tcgen05.Ld32x32bOp(4), cute.f32)
    local kernel = cute.kernel("cp", function(A, C)
      local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
      local s = cute.make_smem_tensor(cute.f32, rows, 1024)
      local go = block.begin_pair(32, cute.f32)
      for k = 0, 3 do s[{tid, k}] = A[{rank * 128 + tid, k}] end
      local ptr, bar = go()
      local t = cute.make_tensor(ptr, cute.make_layout({128, 4}, {1 << 16, 1}))
      local s2t = tcgen05.make_s2t_copy(cp, t)
      local thr = s2t:get_slice(0)
      local from = tcgen05.get_s2t_smem_desc_tensor(s2t, thr:partition_S(s))
      cute.when(rank:eq(0) & tid:eq(0), function()
        cute.copy(s2t, from, thr:partition_D(t))
        tcgen05.commit(bar, BOTH, PAIR)
      end)
      arch.mbarrier_wait(bar, 0)
      arch.tcgen05_after_thread_sync()
      block.copy_out(load, t, cute.local_tile(C, {128, 4}, {rank, 0}))
      block.finish_pair(ptr, 32)
    end)
    local A = block.small(cute.zeros({256, 4}, cute.f32), 7, -2)
    local C = cute.zeros({256, 4}, cute.f32)
    local call = kernel(A, C)
    assert.same({}, support.report(call:launch(LAUNCH)):notes())
    for k = 0, cute.size(A) - 1 do assert.equal(A[k], C[k], k) end
    block.compile(call, "sm_100a", 2)
  end)
end)

-- Returns a kernel of a pair. Warps 0 to 3 of both CTAs fill the stages and
-- load the accumulators. Warp 4 of the leading CTA issues the MMAs.
local function filled_by_threads()
  local pipeline = cute.pipeline
  local mma = cute.make_tiled_mma(F16("bf16", "f32", {256, 64, 16}, PAIR))
  local tile, Group = {256, 64, 16}, pipeline.CooperativeGroup
  local layout = cute.tiled_divide(cute.make_layout {2, 1, 1}, {mma.thr_id})
  local load = cute.make_copy_atom(tcgen05.Ld32x32bOp(16), cute.f32)
  return cute.kernel("filled", function(A, B, C)
    local rank, warp = arch.block_idx_in_cluster(), arch.warp_idx()
    local sA = cute.make_smem_tensor(cute.bf16,
      helpers.make_smem_layout_a(mma, tile, cute.bf16, 2), 1024)
    local sB = cute.make_smem_tensor(cute.bf16,
      helpers.make_smem_layout_b(mma, tile, cute.bf16, 2), 1024)
    local pipe = pipeline.PipelineAsyncUmma {num_stages = 2,
      producer_group = Group("warp", 8), consumer_group = Group("thread"),
      cta_layout_vmnk = layout, defer_sync = true}
    local acc = pipeline.PipelineUmmaAsync {num_stages = 1,
      producer_group = Group("thread"), consumer_group = Group("warp", 8),
      cta_layout_vmnk = layout, defer_sync = true}
    local tmem = cute.utils.TmemAllocator(nil, {is_two_cta = true,
      barrier_for_retrieve = pipeline.NamedBarrier {barrier_id = 1,
                                                    num_threads = 160}})
    tmem:allocate(64)
    tmem:relinquish_alloc_permit()
    tmem:wait_for_alloc()
    block.sync_pair()
    local thr = mma:get_slice(rank)
    local gA, gB = thr:partition_A(A), thr:partition_B(B)
    local gC, ptr = thr:partition_C(C), tmem:retrieve_ptr()
    local sums = cute.make_tensor(ptr, mma:make_fragment_C(gC).layout)
    cute.when(warp:lt(4), function()
      local write = pipe:make_producer_state()
      for k = 0, 3 do
        pipe:producer_acquire(write)
        block.copy_in(sA(_, 0, 0, write.index), gA(_, 0, k))
        block.copy_in(sB(_, 0, 0, write.index), gB(_, 0, k))
        arch.fence_view_async_shared()
        arch.sync_warp()
        pipe:producer_commit(write)
        write:advance()
      end
      pipe:producer_tail(write)
    end)
    cute.when(warp:eq(4) & rank:eq(0) & arch.elect_one(), function()
      local a, b = mma:make_fragment_A(sA), mma:make_fragment_B(sB)
      local read, part = pipe:make_consumer_state(), acc:make_producer_state()
      acc:producer_acquire(part)
      for k = 0, 3 do
        pipe:consumer_wait(read)
        mma:set(tcgen05.Field.ACCUMULATE, k > 0)
        cute.gemm(mma, sums, a(_, _, _, read.index), b(_, _, _, read.index),
                  sums)
        pipe:consumer_release(read)
        read:advance()
      end
      acc:producer_commit(part)
      part:advance()
      acc:producer_tail(part)
    end)
    cute.when(warp:lt(4), function()
      local part = acc:make_consumer_state()
      acc:consumer_wait(part)
      arch.tcgen05_after_thread_sync()
      block.copy_out(load, sums({_, _}, 0, 0), gC({_, _}, 0, 0))
      arch.tcgen05_before_thread_sync()
      acc:consumer_release(part)
    end)
    block.sync_pair()
    tmem:free(ptr)
  end)
end

describe("pipelines of a pair", function()
  it("are filled by threads", function()
    local A = block.small(cute.zeros({256, 64}, cute.bf16), 7, -2)
    local B = block.small(cute.zeros({64, 64}, cute.bf16), 3, -2)
    local C = cute.zeros({256, 64}, cute.f32)
    local kernel = filled_by_threads()
    for seed = 1, 4 do
      local report = support.report(kernel(A, B, C):launch {grid = 2,
        block = 160, cluster = 2, device = DEVICE, seed = seed})
      assert.same({}, report:notes())
      check_product(A, B, C)
    end
  end)

  it("need the layout of a cluster of whole MMAs", function()
    local Group = cute.pipeline.CooperativeGroup
    local function trace(layout)
      cute.kernel("k", function()
        cute.pipeline.PipelineUmmaAsync {num_stages = 1,
          producer_group = Group("thread"), consumer_group = Group("thread"),
          cta_layout_vmnk = layout}
      end)():trace {block = 32, cluster = 2}
    end
    support.raises("a compact layout (V,M,N,1) with V = 1 or 2", trace,
                   cute.make_layout {2, 1})
    support.raises("cta_layout_vmnk = layout (4,1,1,1):(1,0,0,0)", trace,
                   cute.make_layout {4, 1, 1, 1})
  end)
end)

describe("scripts/gemm_2cta", function()
  for n, size in ipairs {{129, 136, 72}, {1, 8, 8}, {257, 264, 320},
                         {511, 120, 64}} do
    it("is right at " .. table.concat(size, " x ") .. support.long(n),
       function()
      local out, err, code = support.run {"scripts/gemm_2cta.lua",
        "--device", DEVICE, "--m", ("%d"):format(size[1]), "--n",
        ("%d"):format(size[2]), "--k", ("%d"):format(size[3]),
        "--seed", ("%d"):format(size[1])}
      assert.equal(0, code, err)
      assert.truthy(out:find("verified .*: ok\n"), out)
      assert.truthy(out:find("nothing to report", 1, true), out)
      assert.is_nil(out:find("instead", 1, true), out)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
