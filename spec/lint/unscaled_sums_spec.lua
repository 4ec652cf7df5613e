-- Tests that correct online softmaxes cause no notes. Wrong ones, which do, are
-- in spec/faults/notes/.
local cute = require "cute"
local notes = require "spec.notes"
local arch = cute.arch
local f32 = cute.f32

local told, quiet = notes.told, notes.quiet

local function rand(...) return cute.rand({...}, f32) end
local function zeros(...) return cute.zeros({...}, f32) end

describe("a note tells of", function()
  it("accumulators in registers without a new scale", function()
    local said = told(function(s, v, o)
      local t, m = arch.thread_idx(), -math.huge
      local acc = cute.make_rmem_tensor({2}, f32)
      acc:fill(0)
      for k in cute.range(16) do
        m = cute.max(m, s[{t, k}])
        local p = cute.exp(s[{t, k}] - m)
        for d = 0, 1 do acc[d] = acc[d] + p * v[{k, d}] end
      end
      for d = 0, 1 do o[{t, d}] = acc[d] end
    end, {grid = 1, block = 32}, rand(32, 16), rand(16, 2), zeros(32, 2))
    assert.equal(1, #said)
    assert.matches("unscaled_sums_spec.lua:22: this line adds exponentials",
                   said[1])
  end)

  it("scores that no iteration clears", function()
    local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", {1, 1, 1},
                                    {16, 16, 16})
    local function scores(clear)
      return function(q, k, o)
        local thr = mma:get_slice((arch.thread_idx()))
        local to = thr:partition_C(o)
        local rq = thr:make_fragment_A(thr:partition_A(q))
        cute.autovec_copy(thr:partition_A(q), rq)
        local s, sum = thr:make_fragment_C(to), thr:make_fragment_C(to)
        sum:fill(0)
        s:fill(0)
        for j in cute.range(2) do
          local gk = thr:partition_B(cute.local_tile(k, {16, 16}, {j, 0}))
          local rk = thr:make_fragment_B(gk)
          cute.autovec_copy(gk, rk)
          if clear then s:fill(0) end
          cute.gemm(mma, s, rq, rk, s)
          for i = 0, cute.size(s) - 1 do sum[i] = sum[i] + cute.exp(s[i]) end
        end
        cute.autovec_copy(sum, to)
      end
    end
    local function arguments()
      return cute.rand({16, 16}, cute.bf16), cute.rand({32, 16}, cute.bf16),
        zeros(16, 16)
    end
    local said = told(scores(false), {grid = 1, block = 32}, arguments())
    assert.equal(1, #said)
    assert.matches("this MMA adds to the sums of the iteration before", said[1])
    quiet(scores(true), {grid = 1, block = 32}, arguments())
  end)
end)

describe("no note tells of", function()
  it("an online softmax, or one of two passes", function()
    quiet(function(s, o)
      local t, m, l = arch.thread_idx(), -math.huge, 0.0
      for k in cute.range(16) do
        local most = cute.max(m, s[{t, k}])
        l = l * cute.exp(m - most) + cute.exp(s[{t, k}] - most)
        m = most
      end
      o[t] = m + cute.log(l)
    end, {grid = 1, block = 32}, rand(32, 16), zeros(32))
    quiet(function(s, o)
      local t, m, l = arch.thread_idx(), -math.huge, 0.0
      for k in cute.range(16) do m = cute.max(m, s[{t, k}]) end
      for k in cute.range(16) do l = l + cute.exp(s[{t, k}] - m) end
      o[t] = m + cute.log(l)
    end, {grid = 1, block = 32}, rand(32, 16), zeros(32))
  end)

  it("sums that only a larger maximum rescales", function()
    quiet(function(s, o)
      local t, m, l = arch.thread_idx(), -1e30, 0.0
      for k in cute.range(16) do
        cute.when(s[{t, k}]:gt(m), function()
          l = l * cute.exp(m - s[{t, k}])
          m = s[{t, k}]
        end)
        l = l + cute.exp(s[{t, k}] - m)
      end
      o[t] = m + cute.log(l)
    end, {grid = 1, block = 32}, rand(32, 16), zeros(32))
  end)

  it("rows one after the other, each with a maximum of its own", function()
    quiet(function(s, o)
      local t, total = arch.thread_idx(), 0.0
      for row in cute.range(4) do
        local m = -math.huge
        for k in cute.range(8) do m = cute.max(m, s[{t, row * 8 + k}]) end
        total = total + cute.exp(s[{t, row * 8}] - m)
      end
      o[t] = total
    end, {grid = 1, block = 32}, rand(32, 32), zeros(32))
  end)

  it("sums of lanes after a common maximum", function()
    quiet(function(s, o)
      local t, row = arch.thread_idx(), arch.block_idx()
      local m, l = -math.huge, 0.0
      for k in cute.range(t, 128, 32) do m = cute.max(m, s[{row, k}]) end
      m = arch.warp_reduction_max(m)
      for k in cute.range(t, 128, 32) do l = l + cute.exp(s[{row, k}] - m) end
      l = arch.warp_reduction_sum(l)
      cute.when(t:eq(0), function() o[row] = m + cute.log(l) end)
    end, {grid = 2, block = 32}, rand(2, 128), zeros(2))
  end)
end)
-- SPDX-License-Identifier: MIT
