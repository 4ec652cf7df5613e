-- Tests notes on loops that repeat work: their tiles overlap, or each block
-- repeats another block's iterations.
local cute = require "cute"
local notes = require "spec.notes"
local arch = cute.arch

local told, quiet = notes.told, notes.quiet

local function expect(text, ...)
  local said = told(...)
  assert.is_true(#said > 0)
  assert.matches("^cutelua: note: kernel k%d+: repeated_work_spec.lua:%d+: "
    .. text .. "$", said[1])
end

local function ones(...) return cute.ones({...}, cute.f32) end
local function zeros(...) return cute.zeros({...}, cute.f32) end

-- Adds up the sums s of the block's threads, and adds the result to y[0].
local function total(y, s)
  s = arch.warp_reduction_sum(s)
  cute.when((arch.thread_idx() % 32):eq(0), function()
    arch.atomic_add(y.iterator, s)
  end)
end

describe("a note tells of a loop whose tiles overlap", function()
  local function overlap(n, again, name, step)
    return ("each iteration of the loop adds %d elements of '%s' here, %d of "
      .. "which the iteration before added, too; is the loop's step, %d, "
      .. "smaller than the tile, or than the number of threads%%?"):format(n,
      name, again, step)
  end

  it("in sums of the threads", function()
    local function sum(step, f)
      return function(x, y)
        local tid, s = arch.thread_idx(), 0.0
        for i in cute.range(tid, 1024, step) do s = s + f(x[i]) end
        total(y, s)
      end
    end
    local function same(x) return x end
    local launch = {grid = 1, block = 128}
    expect(overlap(128, 64, "x", 64), sum(64, same), launch, ones(1024),
           zeros(1))
    expect(overlap(128, 96, "x", 32), sum(32, cute.exp), launch, ones(1024),
           zeros(1))
    quiet(sum(128, same), launch, ones(1024), zeros(1))
  end)

  it("in a product from shared memory", function()
    local T, K = 16, 64
    local function gemm(step)
      return function(a, b, c)
        local tx, ty = arch.thread_idx()
        local sA = cute.make_smem_tensor(cute.f32, cute.make_layout {T, T})
        local sB = cute.make_smem_tensor(cute.f32, cute.make_layout {T, T})
        local acc = 0.0
        for k in cute.range(0, K - T + 1, step) do
          sA[{ty, tx}] = a[{ty, k + tx}]
          sB[{ty, tx}] = b[{k + ty, tx}]
          arch.sync_threads()
          for j = 0, T - 1 do acc = acc + sA[{ty, j}] * sB[{j, tx}] end
          arch.sync_threads()
        end
        c[{ty, tx}] = acc
      end
    end
    local launch = {grid = 1, block = {T, T}}
    expect(overlap(256, 128, "a", 8), gemm(8), launch, ones(T, K), ones(K, T),
           zeros(T, T))
    quiet(gemm(T), launch, ones(T, K), ones(K, T), zeros(T, T))
  end)

  it("in a product of tensor cores", function()
    local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
    local function gemm(step)
      return function(a, b, c)
        local thr = mma:get_slice(arch.thread_idx())
        local C = thr:partition_C(c)
        local acc = thr:make_fragment_C(C)
        acc:fill(0)
        for k in cute.range(0, 49, step) do
          local A = thr:partition_A(cute.local_tile(
            cute.domain_offset({0, k}, a), {16, 16}, {0, 0}))
          local B = thr:partition_B(cute.local_tile(
            cute.domain_offset({0, k}, b), {8, 16}, {0, 0}))
          local rA, rB = thr:make_fragment_A(A), thr:make_fragment_B(B)
          cute.autovec_copy(A, rA)
          cute.autovec_copy(B, rB)
          cute.gemm(mma, acc, rA, rB, acc)
        end
        cute.autovec_copy(acc, C)
      end
    end
    local a, b = cute.ones({16, 64}, cute.bf16), cute.ones({8, 64}, cute.bf16)
    local launch = {grid = 1, block = 32}
    expect(overlap(256, 128, "a", 8), gemm(8), launch, a, b, zeros(16, 8))
    quiet(gemm(16), launch, a, b, zeros(16, 8))
  end)

  it("but not of windows, of which each sum has its own", function()
    -- no notes: a moving sum, a correlation, and a convolution with moving
    -- weights
    local launch = {grid = 1, block = 128}
    quiet(function(x, y)
      local tid, s = arch.thread_idx(), 0.0
      for i in cute.range(8) do s = s + x[tid + i] end
      y[tid] = s
    end, launch, ones(135), zeros(128))
    quiet(function(x, w, y)
      local tid, s = arch.thread_idx(), 0.0
      local own = w[tid]
      for i in cute.range(8) do s = s + x[tid + i] * own end
      total(y, s)
    end, launch, ones(135), ones(128), zeros(1))
    quiet(function(x, w, y)
      local tid, s = arch.thread_idx(), 0.0
      for i in cute.range(8) do s = s + x[tid + i] * w[i] end
      total(y, s)
    end, launch, ones(135), ones(8), zeros(1))
  end)

  it("but not of tiles with a halo", function()
    quiet(function(x, y)
      local tid, s = arch.thread_idx(), 0.0
      local t = cute.make_smem_tensor(cute.f32, 34)
      for i in cute.range(0, 128, 32) do
        t[tid] = x[i + tid]
        cute.when(tid:lt(2), function() t[32 + tid] = x[i + 32 + tid] end)
        arch.sync_threads()
        s = s + t[tid] + t[tid + 1] + t[tid + 2]
        arch.sync_threads()
      end
      total(y, s)
    end, {grid = 1, block = 32}, ones(130), zeros(1))
  end)
end)

describe("a note tells of blocks that repeat iterations", function()
  local function repeats(first, step)
    return ("blocks repeat each other's iterations of this loop: each begins "
      .. "%d after the block before it, and all continue in steps of %d; "
      .. "multiply the step by the number of blocks, grid_dim. If this is "
      .. "intended, let the loop count from 0 and add the beginning to its "
      .. "index"):format(first, step)
  end
  local launch = {grid = 4, block = 32}

  it("not if the loop counts from 0, as its advice says", function()
    quiet(function(x, y)
      local first = arch.block_idx() * 32 + arch.thread_idx()
      local s = 0.0
      for i in cute.range(0, 128 - first, 32) do s = s + x[first + i] end
      y[first] = s
    end, launch, ones(128), zeros(128))
  end)

  local function map(step)
    return function(x, y)
      local first = arch.block_idx() * 32 + arch.thread_idx()
      for i in cute.range(first, 512, step) do y[i] = x[i] * 2 end
    end
  end

  it("of a loop over elements, or over rows", function()
    expect(repeats(32, 32), map(32), launch, ones(512), zeros(512))
    expect(repeats(1, 1), function(x, y)
      local tid = arch.thread_idx()
      for r in cute.range((arch.block_idx()), 8, 1) do
        local s = arch.warp_reduction_sum(x[{r, tid}])
        cute.when(tid:eq(0), function() y[r] = s end)
      end
    end, launch, ones(8, 32), zeros(8))
    quiet(map(128), launch, ones(512), zeros(512))
    quiet(map(32), {grid = 1, block = 32}, ones(512), zeros(512))
  end)

  it("whose sums are added, or stored by each block", function()
    local function sum(step, own)
      return function(x, y)
        local s = 0.0
        local first = arch.block_idx() * 32 + arch.thread_idx()
        for i in cute.range(first, 512, step) do s = s + x[i] end
        if not own then return total(y, s) end
        s = arch.warp_reduction_sum(s)
        cute.when(arch.thread_idx():eq(0), function()
          y[(arch.block_idx())] = s
        end)
      end
    end
    expect(repeats(32, 32), sum(32), launch, ones(512), zeros(1))
    expect(repeats(32, 32), sum(32, true), launch, ones(512), zeros(4))
    quiet(sum(128), launch, ones(512), zeros(1))
    quiet(sum(128, true), launch, ones(512), zeros(4))
  end)

  it("but not of a triangle, of which each block has a row", function()
    quiet(function(x, y)
      local row, tid, s = (arch.block_idx()), arch.thread_idx(), 0.0
      for i in cute.range(row, 4, 1) do s = s + x[{row, tid}] * x[{i, tid}] end
      y[{row, tid}] = s
    end, launch, ones(4, 32), zeros(4, 32))
    quiet(function(x, y)
      local row, tid, s = (arch.block_idx()), arch.thread_idx(), 0.0
      for i in cute.range(row, 4, 1) do s = s + x[{i, tid}] end
      y[{row, tid}] = s
    end, launch, ones(4, 32), zeros(4, 32))
  end)
end)
-- SPDX-License-Identifier: MIT
