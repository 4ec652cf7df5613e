-- Tests faults planted in a GEMM of Hopper's components (kernels/gemm_sm90 with
-- cute.pipeline). Whatever the schedule, the cluster and the seed, the
-- simulator's first report must be the planted fault, with its message and
-- lines.
local core = require "cute.core"
local cute = require "cute"
local hopper = require "spec.hopper"
local kernels = require "spec.kernels"
local planted = require "spec.planted"
local support = require "spec.support"
local arch, _ = cute.arch, cute._
local cpasync, warpgroup = cute.nvgpu.cpasync, cute.nvgpu.warpgroup
local pipeline = cute.pipeline
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup
local told = planted.told

local SIZE, SEEDS = {260, 136, 264}, 2
-- text of the kernel's line that starts a copy
local COPY = "cute.copy(X.atom, from[i]"

describe("a GEMM of Hopper's parts in which #long", function()
  it("there is no fault is right", function()
    local gemm = planted.kernel {}
    for name, choice in pairs(planted.CHOICES) do
      local r, x = planted.run(gemm(choice), SIZE, 1)
      assert.is_true(r.ok, name .. "\n" .. tostring(r))
      assert.is_nil(planted.differs(x), name)
    end
  end)

  for number, fault in ipairs(planted.FAULTS) do
    local what, changes, where = table.unpack(fault)
    it(what .. " is reported", function()
      local gemm, texts = planted.kernel(changes)
      -- Here each fault runs with only one configuration; spec/fuzz/hopper.lua
      -- runs all.
      local name = where[number % #where + 1]
      local r = planted.run(gemm(planted.CHOICES[name]), SIZE, number)
      assert.is_nil(planted.untold(fault, r, texts),
                    ("%s, seed %d\n%s"):format(name, number, tostring(r)))
    end)
  end

  it("sums are read too early is rejected by the trace", function()
    for _, c in ipairs {
      {"warpgroup.wait_group(0)", "", "is used while the MMA of line %d+ is "
       .. "still in flight"},
      {"warpgroup.wait_group(0)", "warpgroup.wait_group(1)",
       "is used while the MMA of line %d+ is still in flight"},
      {"warpgroup.commit_group()", "", "is used while the MMA of line %d+ is "
       .. "still in flight"},
      {"warpgroup.fence()", "", "no fence is between this MMA and register 0 "
       .. "of acc"}} do
      local gemm = planted.kernel {{"mainloop", c[1], c[2]}}
      local ok, why = pcall(planted.run, gemm(planted.CHOICES.whole), SIZE, 1)
      assert.is_false(ok)
      assert.matches(c[3], why)
      assert.matches("%[in%-flight%]", why)
    end
  end)

  it("no thread waits for the preceding launch is reported", function()
    local late, texts = planted.kernel {{"kernel",
      "cute.arch.griddepcontrol_wait()", ""}}
    local choice = planted.CHOICES.overlap
    local whole = planted.kernel {}(choice)
    for seed = 1, SEEDS do
      for _, g in ipairs {whole, late(choice)} do
        local r, x = planted.run(whole, {200, 128, 136}, seed)
        assert.is_true(r.ok, tostring(r))
        r = planted.run(g, {200, 72, 128}, seed, x)
        assert.equal(g == whole, r.ok)
        if not r.ok then
          assert.is_nil(planted.untold({nil, nil, nil, "dependent%-launch: %w+ "
            .. "of memory that the previous launch writes, with no "
            .. "griddepcontrol_wait%(%) in between", {COPY}}, r, texts))
        end
      end
    end
  end)

  it("an operand's memory is freed is rejected", function()
    local g = planted.kernel {}(planted.CHOICES.whole)
    local r, x = planted.run(g, {128, 64, 64}, 1)
    assert.is_true(r.ok)
    core.param_memory(x.B):close()
    support.raises("closed", x.run.launch, x.run)
  end)
end)

---------------------------------------------------------------------------
-- Consumers that read with their own threads
---------------------------------------------------------------------------

local BM, BN, BK, STAGES = 64, 64, 64, 2
local K_ROWS = warpgroup.make_smem_layout_atom("K_SW128", cute.bf16)
local sA_layout = cute.tile_to_shape(K_ROWS, {BM, BK, STAGES})  -- (BM,BK,PIPE)
local sB_layout = cute.tile_to_shape(K_ROWS, {BN, BK, STAGES})  -- (BN,BK,PIPE)
local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", {2, 2, 1},
                                {32, 32, 16})
local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16)
local s2r_A, s2r_B = cute.make_tiled_copy_A(ldsm, mma),
  cute.make_tiled_copy_B(ldsm, mma)
local at = support.recorder()  -- records line numbers
local function line() return debug.getinfo(2, "l").currentline end

-- Returns the parts of a block's TMA load of an operand, which `ctas` blocks
-- share by multicast.
local function loads(tma, coords, s, rows, tile, ctas, place, mask)
  local into, from = cpasync.tma_partition(tma, ctas > 1 and place or 0,
    cute.make_layout(ctas), cute.group_modes(s, 0, 2),
    cute.group_modes(cute.local_tile(coords, {rows, BK}, {tile, _}), 0, 2))
  return {tma = tma, into = into, from = from, mask = ctas > 1 and mask or nil}
end

local function produce(pipe, A, B, k_tiles)
  local write = pipe:make_producer_state()
  for k in cute.range(k_tiles) do
    pipe:producer_acquire(write)
    local full = pipe:producer_get_barrier(write)
    cute.copy(A.tma, A.from(_, k), A.into(_, write.index), {tma_bar_ptr = full,
      mcast_mask = A.mask})
    at.copy_B = line() + 1
    cute.copy(B.tma, B.from(_, k), B.into(_, write.index), {tma_bar_ptr = full,
      mcast_mask = B.mask})
    write:advance()
  end
  pipe:producer_tail(write)
end

-- Loads fragments by ldmatrix; a stage is released once they are in registers.
local function consume(pipe, sA, sB, tCgC, k_tiles)
  local tid = arch.thread_idx()
  local thr, ta, tb = mma:get_slice(tid), s2r_A:get_slice(tid),
    s2r_B:get_slice(tid)
  local rA = thr:partition_fragment_A(sA(_, _, 0))
  local rB = thr:partition_fragment_B(sB(_, _, 0))
  local tXsA, tXsB = ta:partition_S(sA), tb:partition_S(sB)
  local acc = mma:make_fragment_C(tCgC)
  acc:fill(0)
  local read = pipe:make_consumer_state()
  for _k in cute.range(k_tiles) do  -- luacheck: ignore _k
    pipe:consumer_wait(read)
    cute.copy(s2r_A, tXsA(_, _, _, read.index), ta:retile(rA))
    at.load_B = line() + 1
    cute.copy(s2r_B, tXsB(_, _, _, read.index), tb:retile(rB))
    arch.sync_warp()
    pipe:consumer_release(read)
    for kb = 0, BK // 16 - 1 do
      cute.gemm(mma, acc, rA(_, _, kb), rB(_, _, kb), acc)
    end
    read:advance()
  end
  cute.autovec_copy(acc, tCgC)
end

-- Computes C = A B^T by mma.sync; o: options of the pipeline.
local function by_threads(o)
  return cute.kernel("gemm", function(tA, cA, tB, cB, mC)
    local bm, bn = arch.block_idx()
    local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
    local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 1024)
    local pipe = pipeline.PipelineTmaAsync {
      num_stages = STAGES, tx_count = tA.tx_bytes + tB.tx_bytes,
      producer_group = Group(Agent.Thread), consumer_group = o.group,
      cluster_shape_mn = o.cluster, scope = o.scope}
    local vmnk = cute.make_layout {1, o.cluster[1], o.cluster[2], 1}
    local m, n = arch.block_in_cluster_idx()
    local function mask(mode)
      return cpasync.create_tma_multicast_mask(vmnk, {0, m, n, 0}, mode)
    end
    local A = loads(tA, cA, sA, BM, bm, o.cluster[2], n, mask(2))
    local B = loads(tB, cB, sB, BN, bn, o.cluster[1], m, mask(1))
    local k_tiles = cute.size(A.from, 1)
    cute.when(arch.warp_idx():eq(4), function()
      cute.when(arch.elect_one(), function() produce(pipe, A, B, k_tiles) end)
    end, function()
      local gC = cute.local_tile(mC, {BM, BN}, {bm, bn})
      consume(pipe, sA, sB, mma:get_slice((arch.thread_idx())):partition_C(gC),
              k_tiles)
    end)
  end)
end

local function multiply(o, seed)
  local m, n, k = 256, 128, 328
  local A, B = hopper.matrix(m, k, 1), hopper.matrix(n, k, 2)
  local C = hopper.matrix(m, n, nil, "f32")
  local function map(X, layout, rows, ctas)
    return cpasync.make_tiled_tma_atom(ctas > 1
      and cpasync.CopyBulkTensorTileG2SMulticastOp()
      or cpasync.CopyBulkTensorTileG2SOp(), X, layout(_, _, 0), {rows, BK},
      ctas)
  end
  local a, cA = map(A, sA_layout, BM, o.cluster[2])
  local b, cB = map(B, sB_layout, BN, o.cluster[1])
  local r = support.report(by_threads(o)(a, cA, b, cB, C):launch {
    grid = {m // BM, n // BN}, cluster = o.cluster, block = 160,
    device = "sim:sm_90a", seed = seed, faults = "return"})
  return r, r.ok and hopper.differs(C, hopper.product(A, B))
end

describe("PipelineTmaAsync, whose readers are threads, #long", function()
  local WARPS, THREADS = Group(Agent.Warp, 4), Group(Agent.Thread, 128)

  it("releases stages of other blocks with cluster scope", function()
    for i, o in ipairs {
      {cluster = {2, 1}, group = WARPS}, {cluster = {1, 2}, group = THREADS},
      {cluster = {2, 2}, group = WARPS}, {cluster = {4, 1}, group = THREADS},
      {cluster = {1, 1}, group = WARPS}} do
      o.scope = "cluster"
      local r, wrong = multiply(o, i)
      assert.is_true(r.ok, tostring(r))
      assert.is_nil(wrong)
    end
    -- in clusters of one block, block scope suffices
    local o = {cluster = {1, 1}, group = WARPS}
    assert.is_true(multiply(o, 1).ok)
  end)

  it("is reported if it releases stages like wgmma's readers", function()
    for seed = 1, 4 do
      for _, scope in ipairs {"cta", false} do
        local r = multiply({cluster = {2, 1}, group = WARPS,
                            scope = scope or nil}, seed)
        local f = r.reports[1]
        assert.equal("race", f.kind)
        assert.matches("^write after a read by a thread of another block with "
          .. "nothing that orders them at cluster scope: .* 'sB'$", f.message)
        assert.equal(at.copy_B, f.line)
        assert.equal(at.load_B, f.line2)
        assert.truthy(tostring(r):find('PipelineTmaAsync {scope = "cluster"}',
                                       1, true), tostring(r))
      end
    end
  end)

  it("is emitted in PTX's syntax", function()
    local A, C = hopper.matrix(64, 64, 1), hopper.matrix(64, 64, nil, "f32")
    local t, c = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileG2SMulticastOp(), A, sB_layout(_, _, 0),
      {BN, BK}, 2)
    local a, cA = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(),
      A, sA_layout(_, _, 0), {BM, BK})
    local program = by_threads {cluster = {2, 1}, group = WARPS,
      scope = "cluster"}(a, cA, t, c, C):trace {block = 160, cluster = {2, 1}}
    local text = program:cuda "sm_90a"
    assert.matches("mbarrier%.arrive%.release%.cluster", text)
    assert.matches("try_wait%.parity%.acquire%.cluster", text)
    return kernels.compiles(program, {"sm_90a"}) or pending "needs NVRTC"
  end)

  it("reports an invalid scope", function()
    support.raises('PipelineTmaAsync: scope = "gpu"; "cta" or "cluster" is '
      .. 'needed [unknown-name]', pipeline.PipelineTmaAsync,
      {num_stages = 1, tx_count = 8, scope = "gpu"})
  end)
end)

---------------------------------------------------------------------------
-- Producers that are threads
---------------------------------------------------------------------------

-- In this kernel, four warps convert X (64,K) from f32 to bf16 in shared
-- memory. A warpgroup multiplies the result by itself. `o` names the steps to
-- omit.
local wg = cute.make_tiled_mma(warpgroup.MmaF16BF16Op("bf16", "f32",
  {64, 64, 16}, "SMEM"))

local function converting(o)
  return function(X, D)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.bf16,
      cute.tile_to_shape(K_ROWS, {64, BK, STAGES}), 1024)  -- (64,BK,PIPE)
    local pipe = pipeline.PipelineAsync {num_stages = STAGES,
      producer_group = Group(Agent.Warp, 4),
      consumer_group = Group(Agent.Warp, 4)}
    local k_tiles = cute.size(X, 1) // BK
    cute.when(arch.warp_idx():ge(4), function()
      local write = pipe:make_producer_state()
      for k in cute.range(k_tiles) do
        if not o.acquire then pipe:producer_acquire(write) end
        for e in cute.range(64 * BK // 128) do
          local i = e * 128 + tid - 128
          local x = X[{i // BK, i % BK + k * BK}]:to(cute.bf16)
          at.put = line() + 1
          s[{i // BK, i % BK, write.index}] = x
        end
        if not o.fence then arch.fence_view_async_shared() end
        if not o.sync then arch.sync_warp() end
        if not o.commit then pipe:producer_commit(write) end
        write:advance()
      end
      pipe:producer_tail(write)
    end, function()
      local thr = wg:get_slice(tid)
      local a = wg:make_fragment_A(thr:partition_A(s))
      local b = wg:make_fragment_B(thr:partition_B(s))
      local acc = thr:partition_fragment_C(D)
      local read = pipe:make_consumer_state()
      for k in cute.range(k_tiles) do
        if not o.wait then pipe:consumer_wait(read) end
        warpgroup.fence()
        wg:set("ACCUMULATE", cute.gt(k, 0))
        at.gemm = line() + 1
        cute.gemm(wg, acc, a(_, _, _, read.index), b(_, _, _, read.index), acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        pipe:consumer_release(read)
        read:advance()
      end
      cute.autovec_copy(acc, thr:partition_C(D))
    end)
  end
end

describe("warps that fill stages for wgmma #long", function()
  local X, D = hopper.matrix(64, 5 * BK, 3, "f32"),
    hopper.matrix(64, 64, nil, "f32")
  local function run(o, seed)
    return support.report(cute.kernel("k", converting(o))(X, D):launch {
      grid = 1, block = 256, device = "sim:sm_90a", seed = seed,
      faults = "return"})
  end

  it("are right", function()
    for seed = 1, 4 do
      local r = run({}, seed)
      assert.is_true(r.ok, tostring(r))
    end
    assert.is_nil(hopper.differs(D, hopper.product(X, X)))
  end)

  local UNFENCED = "race: read by wgmma after a thread's write, with no "
    .. "fence_proxy%(\"async\"%) in between"
  for what, says in pairs {
    sync = {UNFENCED, "race: read after a write by another warp"},
    fence = UNFENCED,
    acquire = {"race: write after a read by wgmma whose completion was not "
               .. "waited",
               "race: read after a write by another warp", planted.EARLY},
    commit = "deadlock: .*'pipe_full'%[0%].*which lacks 4 of 4 arrivals",
    wait = {UNFENCED, "uninitialised: ",
            "race: read after a write by another warp",
            "race: write after a read by wgmma"}} do
    it("are reported without " .. what, function()
      for seed = 1, 4 do
        local r = run({[what] = true}, seed)
        local f = assert(r.reports[1], what)
        assert.is_true(told(f, says), tostring(r))
        if what == "sync" or what == "fence" then
          assert.same({at.gemm, at.put}, {f.line, f.line2})
        end
      end
    end)
  end
end)
-- SPDX-License-Identifier: MIT
