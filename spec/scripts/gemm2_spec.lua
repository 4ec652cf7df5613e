-- Tests split-K and grouped GEMMs based on gemm_sm80. Operands are small whole
-- numbers, so that results must equal sums on the host exactly. The simulator
-- must detect the removal of any barrier or fence.
local core = require "cute.core"
local cute = require "cute"
local gemm_grouped = require "kernels.gemm_grouped"
local gemm_splitk = require "kernels.gemm_splitk"
local kernels = require "spec.kernels"
local support = require "spec.support"
local read, change = support.read, support.change

local DEVICE = "sim:sm_90a"
local SMALL = {tile = {64, 64, 32}, atoms = {2, 2, 1},
               permutation = {32, 32, 16}}

local function small(more)
  local o = {}
  for _, t in ipairs {SMALL, more} do
    for k, v in pairs(t) do o[k] = v end
  end
  return o
end

-- Returns a row-major tensor of whole numbers from -2 to 2, and their list.
local function numbers(dtype, seed, ...)
  local n = 1
  for _, extent in ipairs {...} do n = n * extent end
  local b, list = core.buffer(dtype, n):fill_int(seed, -2, 2), {}
  for i = 0, n - 1 do list[i] = b[i] end
  return cute.make_tensor(b, cute.make_layout({...}, cute.LayoutRight)), list
end

-- Returns the dot product of row i of a and row j of b, from `at` on.
local function product(a, b, K, i, j, at)
  local sum = 0
  for k = 0, K - 1 do sum = sum + a[i * K + k] * b[(at or 0) + j * K + k] end
  return sum
end

-- Returns gemm_splitk with a change of its split-K reduction.
local function changed(f)
  local path = "kernels/splitk_reduce.lua"
  local kept = package.loaded["kernels.splitk_reduce"]
  package.loaded["kernels.splitk_reduce"] = assert(load(
    change(read(path), f[1], f[2], f[3] or ""), "@" .. path))()
  local out = dofile "kernels/gemm_splitk.lua"
  package.loaded["kernels.splitk_reduce"] = kept
  return out
end

describe("gemm_splitk", function()
  local function problem(M, N, K, splits, o, make)
    local A, a = numbers("bf16", 1, M, K)
    local B, b = numbers("bf16", 2, N, K)
    local C = cute.zeros({M, N}, o and o.rows and cute.bf16 or cute.f32)
    local gemm = (make or gemm_splitk)(small {splits = splits,
      rows = o and o.rows, epilogue = o and o.epilogue})
    local work, turns = gemm.scratch(M, N)
    local function launch(seed, ...)
      return support.report(gemm.kernel(A, B, C, work, turns, ...):launch {
        grid = gemm.grid(M, N, K), block = gemm.block, device = DEVICE,
        seed = seed, faults = "return"})
    end
    return launch, C, function(i, j) return product(a, b, K, i, j) end, gemm
  end

  for n, c in ipairs {{70, 65, 300, 3}, {64, 64, 256, 4}, {64, 128, 160, 4},
                      {1, 1, 33, 8}, {64, 64, 32, 4}} do
    it(("is right: %dx%dx%d in %d"):format(table.unpack(c)) .. support.long(n),
       function()
      local M, N, K, splits = table.unpack(c)
      local launch, C, want, gemm = problem(M, N, K, splits)
      local parts = gemm.grid(M, N, K)[3]
      assert.is_true(parts <= splits and parts >= 1)
      -- The first launch must leave the counters at 0 for the second.
      for seed = 1, 2 do
        local r = launch(seed)
        assert.is_true(r.ok, tostring(r))
        for i = 0, M - 1 do
          for j = 0, N - 1 do
            assert.equal(want(i, j), C(i, j))
            C[{i, j}] = -1
          end
        end
      end
    end)
  end

  it("accepts epilogues like gemm_sm80", function()
    local launch, C, want = problem(64, 72, 128, 2)
    for i = 0, 63 do for j = 0, 71 do C[{i, j}] = i end end
    assert.is_true(launch(1, 2.0, 3.0).ok)
    for i = 0, 63 do
      for j = 0, 71 do assert.equal(want(i, j) * 2 + i * 3, C(i, j)) end
    end
    local bias = numbers("f32", 3, 72)
    launch, C, want = problem(64, 72, 128, 3, {rows = true,
      epilogue = function(acc, part, x) return acc + part.load(x) end})
    assert.is_true(launch(2, bias).ok)
    for i = 0, 63 do
      for j = 0, 71 do assert.equal(want(i, j) + bias(j), C(i, j)) end
    end
  end)

  it("keeps its sums and the parts that it adds in registers", function()
    local M, N, K = 136, 72, 400
    local gemm = gemm_splitk {splits = 16, rows = true}
    local work, turns = gemm.scratch(M, N)
    local program = gemm.kernel(cute.zeros({M, K}, cute.bf16),
      cute.zeros({N, K}, cute.bf16), cute.zeros({M, N}, cute.bf16), work,
      turns):trace {grid = gemm.grid(M, N, K), block = gemm.block}
    for _, arch in ipairs {"sm_80", "sm_90a"} do
      local out = kernels.compiled(program, arch)
      assert.equal(0, out and out.resources.spill_stores or 0, arch)
    end
  end)

  -- The list does not contain the barrier before the counter. The simulator
  -- cannot detect its removal, because it does not track which threads'
  -- accesses a release covers.
  for _, f in ipairs {
    {'sem = "acq_rel"', 1, 'sem = "relaxed"'},
    {'sem = "acq_rel"', 1, 'sem = "release"'},
    {'scope = "gpu"', 1, 'scope = "cta"'}, {"cute.arch.sync_threads()", 2},
    {"sums:fill(0)", 1}} do
    it(("needs %s%s"):format(f[1], f[3] and ", not " .. f[3] or ""), function()
      local told = false
      for seed = 1, 4 do
        local launch, C, want = problem(64, 64, 256, 4, nil,
          changed(f))
        told = told or not launch(seed).ok or not launch(seed + 1).ok
          or C(3, 5) ~= want(3, 5)
      end
      assert.is_true(told)
    end)
  end
end)

describe("gemm_grouped", function()
  local function run(list, N, K, o, ...)
    local G, M, at = #list, 0, {0}
    for g, rows in ipairs(list) do
      M = M + rows
      at[g + 1] = M
    end
    local A, a = numbers("bf16", 1, math.max(M, 1), K)
    local B, b = numbers("bf16", 2, G, N, K)
    local C = cute.full({math.max(M, 1), N}, -99,
                        o and o.rows and cute.bf16 or cute.f32)
    local gemm = gemm_grouped(small(o or {}))
    local offsets = cute.tensor(at, cute.i32)
    gemm.kernel(A, cute.select(B, {1, 2, 0}), C, offsets, ...):launch {
      grid = gemm.grid(M, N, G), block = gemm.block, device = DEVICE}
    local row = 0
    for g, rows in ipairs(list) do
      for _ = 1, rows do
        for j = 0, N - 1 do
          assert.equal(product(a, b, K, row, j, (g - 1) * N * K)
            + (o and o.epilogue and row or 0), C(row, j))
        end
        row = row + 1
      end
    end
    return C
  end

  it("is right for groups of any size #long", function()
    run({64, 128}, 64, 64)
    run({3, 0, 70, 64, 1, 0}, 72, 40)
    run({0, 0, 5}, 8, 16)
    run({130}, 65, 33)
    run({20, 100, 9}, 64, 64, {rows = true})
  end)

  it("leaves other memory unchanged", function()
    assert.equal(-99, run({0, 0}, 8, 16)(0, 3))
  end)
end)
-- SPDX-License-Identifier: MIT
