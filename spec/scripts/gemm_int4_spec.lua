-- Tests gemm_int4, with weights of 4 bits: few and many rows, all group sizes,
-- zero points. Results must equal sums on the host exactly. Also tests the
-- packing of weights. The simulator must detect the removal of any barrier,
-- wait or predicate. NVRTC must compile the kernel's CUDA C without spills.
local core = require "cute.core"
local cute = require "cute"
local gemm_int4 = require "kernels.gemm_int4"
local harness = require "cutelua.bench.harness"
local kernels = require "spec.kernels"
local lessonlib = require "cutelua.bench.lessonlib"
local support = require "spec.support"

local DEVICE = "sim:sm_80"

-- Returns a matrix of whole numbers from lo to hi.
local function numbers(dtype, seed, lo, hi, rows, cols)
  return kernels.row_major(
    core.buffer(dtype, rows * cols):fill_int(seed, lo, hi), rows, cols)
end

-- Returns a tensor of positive and negative powers of two, which keep products
-- exact.
local function scales(dtype, rows, cols)
  return kernels.tensor({rows, cols}, dtype, function(i)
    return (i % 5 == 0 and -1 or 1) * 2.0 ^ (i % 3 - 1)
  end)
end

-- Makes a problem from {M, N, K, and fields: group (absent: a whole column),
-- zeros, dtype ...}. Returns launch(seed, device), and check(), which reports
-- whether C is right.
local function problem(o, make)
  local M, N, K = o[1], o[2], o[3]
  local dtype = o.dtype or cute.bf16
  local G = o.group and K // o.group or 1
  local k = (make or gemm_int4)(setmetatable({m = M, n = N, k = K},
                                             {__index = o}))
  local A, q = numbers(dtype, 1, -3, 3, M, K), numbers("u8", 2, 0, 15, N, K)
  local S = scales(dtype, G, N)
  local Z = o.zeros and numbers("u8", 3, 0, 15, G, N)
  local C = cute.zeros({M, N}, o.out or cute.f32)
  local sums, counts = k.scratch(M)
  local turns = cute.zeros({counts or 1}, cute.i32)
  local args = {A, gemm_int4.pack(q), S}
  if Z then args[4] = Z end
  args[#args + 1] = C
  if sums then
    args[#args + 1], args[#args + 2] = cute.empty({sums}, cute.f32), turns
  end
  local p = {C = C, made = k, turns = turns}
  function p.launch(seed, device)
    return k.kernel(table.unpack(args)):launch {grid = k.grid(M),
      block = k.block, cluster = k.cluster, seed = seed,
      device = device or (k.cluster and "sim:sm_90a") or DEVICE,
      faults = "return"}
  end
  function p.check()
    local each, want = K // G, cute.zeros({1}, o.out or cute.f32)
    local a = {}
    for i = 0, M - 1 do
      a[i] = {}
      for j = 0, K - 1 do a[i][j] = A(i, j) end
    end
    for n = 0, N - 1 do
      local b = {}
      for j = 0, K - 1 do
        local g = j // each
        b[j] = (q(n, j) - (Z and Z(g, n) or 8)) * S(g, n)
      end
      for i = 0, M - 1 do
        local sum, row = 0, a[i]
        for j = 0, K - 1 do sum = sum + row[j] * b[j] end
        want[0] = sum
        if want(0) ~= C(i, n) then return false, i, n, want(0), C(i, n) end
      end
    end
    return true
  end
  return p
end

local function words(o)
  local list = {}
  for k, v in pairs(o) do
    list[#list + 1] = ("%s = %s"):format(k, core.show(v))
  end
  table.sort(list)
  return table.concat(list, ", ")
end

local F16, BF16 = cute.f16, cute.bf16
local CASES = {
  {1, 64, 128, group = 128, out = BF16}, {5, 80, 192, group = 64, zeros = true,
   warps = {4, 2}, columns = 2},
  {16, 192, 512, group = 32, dtype = F16, out = F16},
  {16, 256, 256, zeros = true, splits = 1},
  {33, 64, 320, group = 32, zeros = true, dtype = F16, columns = 2},
  {70, 144, 128, group = 128, splits = 3},
  {16, 64, 512, group = 256, slice = 64, warps = {2, 4}, columns = 1},
  {16, 64, 512, group = 16, warps = {1, 2}, columns = 4, stages = 2},
  {9, 64, 512, group = 128, rows = 8, stages = 3, warps = {4, 1}},
  {16, 48, 1152, group = 64, columns = 3, warps = {1, 4}, stages = 2},
  {9, 80, 1024, group = 128, columns = 4, warps = {1, 2}, splits = 4,
   cluster = true, zeros = true, out = BF16},
  {3, 144, 704, group = 64, columns = 2, warps = {2, 2}, splits = 3, slice = 64,
   cluster = true, dtype = F16},
}

describe("gemm_int4", function()
  for i, o in ipairs(CASES) do
    it("is right: " .. words(o) .. support.long(i, 4), function()
      local p = problem(o)
      -- The first launch must leave the counters at 0 for the second.
      for seed = 1, 2 do
        local report = support.report(p.launch(seed))
        assert.is_true(report.ok, tostring(report))
        assert.is_true(p.check())
        p.C:fill(-1)
      end
    end)
  end

  it("packs weights so that each is found", function()
    local q = numbers("u8", 5, 0, 15, 32, 128)
    local W = core.param_memory(gemm_int4.pack(q))
    local f = core.param_memory(gemm_int4.pack(q, 32, 128))
    assert.equal(W:bytes(), f:bytes())
    for n = 0, 31 do
      for k = 0, 127 do
        assert.equal(q(n, k), gemm_int4.weight(W, 128, n, k))
      end
    end
  end)

  it("rejects unsupported options", function()
    local function refused(text, f, ...)
      local ok, err = pcall(f, ...)
      assert.is_false(ok)
      assert.truthy(tostring(err):find(text, 1, true), err)
    end
    refused("weights (8,64); (N,K) must be multiples of (16,64)",
            gemm_int4.pack, cute.zeros({8, 64}, cute.u8))
    refused("weight (3,5) is 16, not 0 to 15", gemm_int4.pack,
            function(n, k) return n == 3 and k == 5 and 16 or 0 end, 16, 64)
    refused("n = 72 and k = 128 must be multiples of 16 and 64", gemm_int4,
            {n = 72, k = 128})
    refused("groups of 96 elements with K = 192", gemm_int4,
            {n = 64, k = 192, group = 96})
  end)

  local lesson = lessonlib.script_spec("scripts/gemm_int4.lua",
                                       "cutelua.bench.harness", "run")
  local function run(size, o, device)
    local p = harness.problem(lesson, size, o)
    local ok, reports, wrong = harness.try(p, device)
    assert.is_true(ok, wrong or tostring(reports[1]))
    return p
  end

  it("is a lesson", function()
    run(lesson.sim[1], nil, DEVICE)
    run({5, 64, 192}, {dtype = "f16", opt = {group = 0, zeros = true}}, DEVICE)
  end)

  local LARGE = {{{16, 4096, 4096}, {stages = 3}},
                 {{1, 4096, 4096}, {zeros = true}},
                 {{16, 8192, 8192}, {group = 32}}, {{64, 4096, 4096}, {}},
                 {{64, 4096, 4096}, {zeros = true, group = 32}}}

  it("is accepted by NVRTC, without spills", function()
    for i, arch in pairs {"sm_80", "sm_90a", [5] = "sm_90a"} do
      local p = harness.problem(lesson, LARGE[i][1], {opt = LARGE[i][2],
        bare = true, dtype = i == 2 and "f16" or "bf16"})
      local l = harness.launches(p, lesson.make)[1]
      local made = kernels.compiled(l.kernel(table.unpack(l.args)):trace {
        block = l.block, arch = arch}, arch)
      if not made then return end
      assert.equal(0, made.resources.spill_stores)
    end
  end)

  it("keeps the multiprocessors of a large GPU busy", function()
    local function blocks(o)
      local g = gemm_int4(o).grid(o.m)
      return g[1] * g[3]
    end
    for _, m in ipairs {1, 16} do
      for _, n in ipairs {4096, 6144, 8192, 10240, 13824, 57344} do
        local all = blocks {m = m, n = n, k = 4096, group = 128}
        assert.is_true(all >= 120 and all <= 132, tostring(all))
      end
    end
  end)

  it("splits a long K among blocks if there are few columns", function()
    local function parts(k, cluster)
      local made = gemm_int4 {m = 16, n = 1024, k = k, group = 128,
                              cluster = cluster}
      return made.plan.splits, made.cluster, made.scratch(16) ~= nil
    end
    assert.same({1, nil, false}, {parts(4096, true)})
    assert.same({2, {1, 1, 2}, false}, {parts(8192, true)})
    assert.same({2, {1, 1, 2}, false}, {parts(32768, true)})
    assert.same({2, nil, true}, {parts(8192)})
  end)

  it("equals the simulator on a GPU #gpu", function()
    local device = assert(cute.device "gpu")
    for _, o in ipairs(CASES) do
      local p = problem(o)
      p.launch(1, device)
      assert.is_true(p.check())
    end
    for _, c in ipairs(LARGE) do run(c[1], {opt = c[2]}, device) end
  end)
end)

describe("gemm_int4's faults are reported #long:", function()
  local RAGGED = {5, 80, 448, group = 64, zeros = true, splits = 2,
                  warps = {4, 2}, columns = 2}
  local ALONG = {16, 144, 1088, group = 32, splits = 2, warps = {1, 4},
                 columns = 1, rows = 8, slice = 64, stages = 2}
  local ACROSS = {16, 128, 512, group = 128, splits = 1, warps = {4, 1},
                  stages = 2}
  local ALL = {16, 64, 512, group = 128, splits = 1, warps = {4, 1}}
  local SYNC = "cute.arch.sync_threads()"
  local WAIT = "landed(p, at, ahead - 1)"
  for _, f in ipairs {
    {SYNC, "", file = "splitk_skinny"}, {SYNC, "", of = ACROSS},
    {"cute.arch.sync_warp()", "", of = ALONG},
    {"cute.arch.barrier(1 + at.wk, 32 * p.warps[1])", ""},
    {WAIT, "", of = ALONG}, {WAIT, "landed(p, at, ahead)", of = ALONG},
    {"k_tiles - k) - 1)", "k_tiles - k))", of = ALL},
    {"cute.arch.cp_async_commit_group()", "", of = ALL},
    {"cute.arch.cp_async_commit_group()", "", of = ALONG},
    {"piece(stage, i, u), pred)", "piece(stage, i, u))"},
    {"{row, col}), pred)", "{row, col}))"},
    {"cute.lt(first + row, t.shape[1])", "cute.ge(row, 0)"},
    {"cute.lt(from, columns)", "cute.ge(col, 0)"},
    {"cute.lt(row, rows) &", "cute.ge(row, 0) &"},
    {"& cute.lt(col, along)", ""},
    {"cute.lt(k, p.k)", "cute.ge(k, 0)", of = {1, 16, 192, slice = 64,
     warps = {1, 2}}},
    {"cute.lt(at.side + v, rows * across)", "cute.ge(at.side, 0)"},
    {"cute.when(cute.lt(k, k_tiles), function()",
     "cute.when(cute.ge(k, 0), function()", of = ACROSS},
    {"cute.when(cute.lt(at.wk, wm * wn), reduce)", "reduce()", of = ALONG,
     file = "splitk_skinny"},
    {"and cute.lt(at.tid, threads)", "and cute.ge(at.tid, 0)", of = ALONG,
     file = "splitk_skinny"},
    {"sums:fill(0)", ""}, {"b.part:fill(0)", ""},
    {"if o.of then", "if false then", file = "splitk_reduce", of = ALONG},
    {"cute.when(last, function()", "cute.when(cute.ge(at, 0), function()",
     file = "splitk_reduce"},
    {SYNC, "", file = "splitk_reduce", nth = 2},
  } do
    it(("%s -> %s"):format(f[1], f[2]), function()
      local make, told = kernels.changed("gemm_int4", f), false
      for seed = 1, 3 do
        local p = problem(f.of or RAGGED, make)
        told = told or not support.report(p.launch(seed)).ok or not p.check()
      end
      assert.is_true(told)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
