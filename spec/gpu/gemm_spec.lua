-- Tests the kernel of scripts/gemm3stage.lua: C on the GPU must equal C on the
-- simulator bit for bit. This must also hold for a second launch, whatever C
-- contained before.
local core = require "cute.core"
local cute = require "cute"
local lesson = require "cutelua.bench.lesson"
local kernels = require "spec.kernels"
local load_script = require "spec.lesson"
local script

local function use(...)
  script = load_script("scripts/gemm3stage.lua", ...)
end
use()

-- Returns A, B, C in new buffers of N(0,1) data.
local function problem(m, n, k, dynamic)
  local p = {m = m, n = n, k = k}
  local function matrix(name, rows, cols, seed)
    local b = core.buffer("bf16", rows * cols)
    if seed then b:fill_normal(seed) end
    p[name:lower()] = b
    p[name] = kernels.row_major(b, rows, cols)
  end
  matrix("A", m, k, m + k)
  matrix("B", n, k, n * 3 + k)
  matrix("C", m, n)
  if dynamic then lesson.mark_dynamic(p, script.tile) end
  return p
end

local function launch(p, device, faults)
  local grid = p.m // script.tile[1] * (p.n // script.tile[2])
  return script.kernel(p.A, p.B, p.C):launch {
    grid = grid, block = script.block, device = device, faults = faults}
end

-- Sizes with one K tile, with two K tiles (fewer than the pipeline has stages)
-- and with more. Some sizes have one block, others many.
local SIZES = {{128, 128, 64}, {128, 128, 128}, {128, 256, 192},
               {256, 384, 192}, {512, 512, 512}, {1152, 128, 320}}

for _, form in ipairs {{"static layouts"}, {"dynamic layouts", dynamic = true},
    {"contiguous rows", "--rows"}} do
  local dynamic = form.dynamic

  describe("gemm3stage with " .. form[1], function()
    setup(function() use(form[2]) end)

    it("is without fault and close to a double-precision sum", function()
      for i = 1, 4 do
        local p = problem(SIZES[i][1], SIZES[i][2], SIZES[i][3], dynamic)
        local report = launch(p, "sim:sm_80", "return")
        assert.is_true(report.ok, tostring(report))
        local want = core.buffer("f64", p.m * p.n)
        core.gemm_reference(p.a, p.b, want, p.m, p.n, p.k)
        local v = core.gemm_check(p.a, p.b, p.c, p.m, p.n, p.k,
                                  {ref = want, unit = 2 * 2^-24})
        assert.is_true(v.ok and v.frobenius < 3e-3)
      end
    end)
  end)

  describe("gemm3stage with " .. form[1] .. " on a GPU #gpu", function()
    setup(function() use(form[2]) end)

    for _, size in ipairs(SIZES) do
      it(("equals the simulator bit for bit: %dx%dx%d"):format(
        table.unpack(size)), function()
        local m, n, k = table.unpack(size)
        local sim, gpu = problem(m, n, k, dynamic), problem(m, n, k, dynamic)
        local device = assert(cute.device "gpu")
        assert(launch(sim, "sim:" .. device.arch))
        for fill = 0, 1 do
          gpu.c:fill(fill == 0 and 0 / 0 or -1)
          assert.is_true(launch(gpu, device))
          local diff = gpu.c:diff(sim.c)
          assert.is_true(gpu.c:equal(sim.c), ("relative difference %.3g"):
            format(diff.frobenius))
        end
      end)
    end
  end)
end

-- Two products add up to the smallest f32, 2^-149. One is 2^(-149 - j). The
-- other is 2^j - 1 times as large; element j has the factors of 2^j - 1. A B200
-- and an H200 truncate products of bf16 and tf32 to multiples of 2^-158. If j >
-- 9, both truncated products together are less than 2^-149.
local FACTORS = {{1, 1}, {1, 3}, {1, 7}, {3, 5}, {1, 31}, {7, 9}, {1, 127},
  {15, 17}, {7, 73}, {11, 93}, {23, 89}, {63, 65}}
local FINEST = -158

-- Each function returns a function that launches C = A B^T.
local SUMS = {}
SUMS["mma.sync"] = function(dtype, device)
  local f32 = dtype == "f32"
  local k = f32 and 8 or 16
  local gemm = require "kernels.gemm_sm80" {tile = {64, 64, 32},
    permutation = {32, 32, k}, mma = f32 and "SM80_16x8x8_F32TF32TF32F32_TN"
      or "SM80_16x8x16_F32BF16BF16F32_TN"}
  return function(A, B, C)
    gemm.kernel(A, B, C):launch {grid = gemm.grid(64, 64), block = gemm.block,
                                 device = device}
  end
end
SUMS.wgmma = function(dtype, device)
  local gemm = require "kernels.gemm_sm90" {consumers = 1, stages = 2,
    tile = {64, 64, dtype == "f32" and 32 or 64}, dtype = cute[dtype],
    d_dtype = cute.f32}
  return function(A, B, C)
    gemm.prepare(A, B, C, {device = device}):launch()
  end
end

describe("a sum of tiny products", function()
  local function check(name, dtype, device)
    local multiply = SUMS[name](dtype, device)
    local operand = name == "mma.sync" and dtype == "f32" and "tf32" or dtype
    for j, f in ipairs(FACTORS) do
      local A, B = cute.zeros({64, 64}, cute[operand]),
        cute.zeros({64, 64}, cute[operand])
      local C = cute.zeros({64, 64}, cute.f32)
      local high = -74 - j // 2
      local low = -149 - j - high
      for i = 0, 1 do
        A[{0, i}] = (i == 0 and f[1] or 1) * 2.0 ^ high
        B[{0, i}] = (i == 0 and f[2] or 1) * 2.0 ^ low
      end
      multiply(A, B, C)
      assert.equal(-149 - j >= FINEST and 2.0 ^ -149 or 0, C(0, 0))
    end
  end
  for name in pairs(SUMS) do
    for _, dtype in ipairs {"bf16", "f32"} do
      local what = ("%s of %s"):format(name, dtype == "f32" and "tf32" or dtype)
      it("has the finest bit of a card in the simulator: " .. what, function()
        check(name, dtype, "sim:sm_90a")
      end)
      it("has the finest bit 2^-158 on a GPU: " .. what .. " #gpu", function()
        check(name, dtype, "gpu")
      end)
    end
  end
end)
-- SPDX-License-Identifier: MIT
