-- Tests notes on blocks that load the same elements and store equal sums.
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

-- Launches kernel f. Returns the notes that blocks compute the same.
local function said(grid, block, f, ...)
  local list = support.told(function(...)
    cute.kernel("k", f)(...):launch {grid = grid, block = block,
                                     device = "sim:sm_90a"}
  end, ...)
  local found = {}
  for _, text in ipairs(list) do
    if text:find "such a twin" then
      found[#found + 1] = text:match "lua:%d+: (blocks %S+ and %S+) load"
    end
  end
  return found
end

local function ones(...) return cute.ones({...}, cute.f32) end
local function zeros(...) return cute.zeros({...}, cute.f32) end

-- Returns the notes of a product of A (M,K) and B (N,K) by MMAs. Block (m,n)
-- uses row number at(m, n) of B's tiles.
local function by_mma(M, N, K, at)
  local mma = cute.make_tiled_mma("SM80_16x8x8_F32F16F16F32_TN", {2, 1, 1})
  return said({M // 32, N // 32}, 64, function(mA, mB, mC)
    local m, n = arch.block_idx()
    local gA = cute.local_tile(mA, {32, 8}, {m, cute._})
    local gB = cute.local_tile(mB, {32, 8}, {at(m, n), cute._})
    local thr = mma:get_slice(arch.thread_idx())
    local tA, tB = thr:partition_A(gA), thr:partition_B(gB)
    local tC = thr:partition_C(cute.local_tile(mC, {32, 32}, {m, n}))
    local _ = cute._
    local rA = thr:make_fragment_A(tA(_, _, _, 0))
    local rB = thr:make_fragment_B(tB(_, _, _, 0))
    local sums = thr:make_fragment_C(tC)
    sums:fill(0)
    for k in cute.range(K // 8) do
      cute.autovec_copy(tA(_, _, _, k), rA)
      cute.autovec_copy(tB(_, _, _, k), rB)
      cute.gemm(mma, sums, rA, rB, sums)
    end
    cute.autovec_copy(sums, tC)
  end, cute.ones({M, K}, "f16"), cute.ones({N, K}, "f16"), zeros(M, N))
end

-- Returns the notes of a product of A (M,K) and B (N,K) by a loop, for extents
-- that tiles need not divide. Consecutive blocks are neighbours along M. Block
-- (m,n) uses row number at(m, n) of B's tiles.
local function by_loop(M, N, K, at)
  local tiles = (M + 15) // 16
  return said(tiles * ((N + 15) // 16), {16, 16}, function(A, B, C)
    local b, j, i = arch.block_idx(), arch.thread_idx()
    local m, n = b % tiles, b // tiles
    local row, column = m * 16 + i, n * 16 + j
    local other = at(m, n) * 16 + j
    cute.when(row:lt(M) & column:lt(N) & other:lt(N), function()
      local sum = cute.var(0.0, cute.f32)
      for k in cute.range(K) do
        sum.value = sum.value + A[{row, k}] * B[{other, k}]
      end
      C[{row, column}] = sum.value
    end)
  end, ones(M, K), ones(N, K), zeros(M, N))
end

describe("a note tells of blocks that load the same elements", function()
  local function right(_, n) return n end
  local function wrong(m) return m end

  it("because B's tile has the row of the block", function()
    assert.same({}, by_mma(64, 64, 64, right))
    assert.same({"blocks (0,0,0) and (0,1,0)"}, by_mma(64, 64, 64, wrong))
    assert.same({}, by_loop(40, 40, 30, right))
    assert.same({"blocks (0,0,0) and (3,0,0)"}, by_loop(40, 40, 30, wrong))
  end)

  it("but not of some blocks at the end of a tensor", function()
    assert.same({}, by_mma(64, 128, 64, function(_, n)
      return cute.min(n, 2)
    end))
  end)

  -- Returns the notes of a kernel in which all blocks compute the same sums of
  -- x, and store f(sum, block, x, thread) to y.
  local function sums(f)
    return said(4, 32, function(x, y)
      local b, t = arch.block_idx(), arch.thread_idx()
      local sum = cute.var(0.0, cute.f32)
      for k in cute.range(4) do sum.value = sum.value + x[k * 32 + t] end
      y[b * 32 + t] = f(sum.value, b, x, t)
    end, ones(128), zeros(128))
  end

  it("but not of blocks whose sums differ otherwise", function()
    assert.same({"blocks (0,0,0) and (1,0,0)"}, sums(function(s) return s end))
    assert.same({}, sums(function(s, b) return s * b:to(cute.f32) end))
    assert.same({}, sums(function(s, b) return cute.where(b:eq(0), s, 0) end))
    assert.same({}, sums(function(s, b, x) return s + x[b] end))
    assert.same({}, sums(function(s, b, x)
      return s + x[x[0]:to(cute.i32) * 0 + b * 0]
    end))
    assert.same({}, sums(function(s, b)
      local v = cute.var(0.0, cute.f32)
      cute.when(b:gt(1), function() v.value = 1 end)
      return s + v.value
    end))
  end)

  it("but not of blocks whose indices select nothing to add", function()
    assert.same({}, said({4, 2}, 32, function(index, x, y)
      local b, c = arch.block_idx()
      local t, sum = arch.thread_idx(), cute.var(0.0, cute.f32)
      for k in cute.range(8) do
        cute.when(index[k]:eq(b), function()
          sum.value = sum.value + x[{k, c * 32 + t}]
        end)
      end
      y[{b, c * 32 + t}] = sum.value
    end, cute.ones({8}, cute.i32), ones(8, 64), zeros(4, 64)))
  end)

  it("but not of a tensor whose layout repeats elements", function()
    local function add_rows(x, y)
      local b, t = arch.block_idx(), arch.thread_idx()
      local sum = cute.var(0.0, cute.f32)
      for k in cute.range(4) do sum.value = sum.value + x[{b, k * 32 + t}] end
      y[{b, t}] = sum.value
    end
    local row = cute.make_tensor(cute.ones({128}, cute.f32).iterator,
                                 cute.make_layout({4, 128}, {0, 1}))
    assert.same({}, said(4, 32, add_rows, row, zeros(4, 32)))
    assert.same({}, said(4, 32, add_rows, row:mark_layout_dynamic(),
                         zeros(4, 32)))
  end)

  it("but not of a tensor that each block stores again", function()
    assert.same({}, said(4, 32, function(x, y)
      local b, t = arch.block_idx(), arch.thread_idx()
      for k in cute.range(4) do y[{b, k * 32 + t}] = x[k * 32 + t] + 1 end
    end, ones(128), zeros(4, 128)))
  end)
end)
-- SPDX-License-Identifier: MIT
