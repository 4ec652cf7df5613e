-- Tests fill, clear, axpby, transform, reduce and all forms of gemm, against
-- plain Lua. Also checks that every function of atoms and tiled operations is
-- annotated.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local _ = cute._
local tensor, raises = kernels.tensor, support.raises

local function launch(f, ...)
  local call = cute.kernel("k", f)(...)
  call:launch {grid = 1, block = 1, device = "sim"}
  return call
end

local function list(t)
  local out = {}
  for i = 0, cute.size(t) - 1 do out[i + 1] = t[i] end
  return out
end

-- Functions that make a copy of a tensor in registers, shared or global memory.
local SPACES = {
  registers = function(t)
    local r = cute.make_fragment_like(t)
    cute.autovec_copy(t, r)
    return r
  end,
  shared = function(t)
    local s = cute.make_smem_tensor(t.dtype, t.layout)
    cute.autovec_copy(t, s)
    return s
  end,
  global = function(t) return t end,
}

describe("algorithms", function()
  for name, place in pairs(SPACES) do
    it("on " .. name, function()
      local x = tensor({12}, cute.bf16, function(i) return i - 4 end)
      local y = tensor({12}, cute.f32, function(i) return 100 * i end)
      local z = tensor({12}, cute.f32, function() return 7 end)
      local w = tensor({12}, cute.i32, function(i) return i end)
      local s = tensor({2}, cute.f32, function() return 0 end)
      launch(function(mX, mY, mZ, mW, mS)
        local a, b, c, d = place(mX), place(mY), place(mZ), place(mW)
        cute.axpby(2, a, 0.5, b)
        cute.transform(b, c, function(v) return v + 1 end)
        cute.transform(d, function(v) return v * v end)
        mS[0] = cute.reduce(b, 1.0)
        mS[1] = cute.reduce(d, 0, cute.max):to(cute.f32)
        for i, t in ipairs {b, c, d} do
          local to = ({mY, mZ, mW})[i]
          if to ~= t then cute.autovec_copy(t, to) end
        end
      end, x, y, z, w, s)
      local sum = 1
      for i = 0, 11 do
        local want = 2 * (i - 4) + 50 * i
        sum = sum + want
        assert.equal(want, y[i])
        assert.equal(want + 1, z[i])
        assert.equal(i * i, w[i])
      end
      assert.same({sum, 121}, list(s))
    end)
  end

  it("axpby takes predicates, and reads no y times zero", function()
    local x = tensor({8}, cute.f32, function(i) return i end)
    local y = tensor({8}, cute.f32, function() return 5 end)
    local u = cute.empty({8}, cute.f32)
    local v = tensor({2, 4}, cute.f32, function(i) return i end)
    local w = tensor({4, 2}, cute.f16, function(i) return 10 * i end)
    local was = list(w)
    launch(function(mX, mY, mU, mV, mW)
      local p = cute.make_rmem_tensor({8}, cute.Boolean)
      for i = 0, 7 do p[i] = i % 2 == 0 end
      cute.axpby(3, mX, 1, mY, p)
      cute.axpby(1, mX, 0, mU)  -- mU is undefined
      cute.axpby(1, mV, 1, mW)  -- W views V's memory with another shape.
    end, x, y, u, v, w)
    for i = 0, 7 do
      assert.equal(i % 2 == 0 and 3 * i + 5 or 5, y[i])
      assert.equal(i, u[i])
      assert.equal(was[i + 1] + v[i], w[i])
    end
  end)

  it("axpby reads no y times a traced zero", function()
    local k = cute.kernel("k", function(mX, mY, beta)
      local r = cute.make_fragment_like(mX)
      r:fill(6)
      cute.axpby(2, mX, beta, r)
      cute.axpby(2, mX, beta, mY)
      mX:store(r:load() - mY:load())
    end)
    for _, beta in ipairs {0.0, 0.5} do
      local x = tensor({8}, cute.f32, function(i) return i end)
      local y = beta == 0 and cute.empty({8}, cute.f32)  -- y is undefined
        or tensor({8}, cute.f32, function() return 6 end)
      k(x, y, beta):launch {grid = 1, block = 1, device = "sim"}
      for i = 0, 7 do
        assert.equal(2 * i + 6 * beta, y[i])
        assert.equal(0, x[i])
      end
    end
  end)

  it("fill and clear, transform of two", function()
    local x = tensor({6}, cute.i32, function(i) return i end)
    local y = tensor({6}, cute.i32, function() return 9 end)
    local z = tensor({6}, cute.i32, function() return 9 end)
    launch(function(mX, mY, mZ)
      cute.fill(mY, 4)
      cute.transform(mX, mY, mZ, function(a, b) return a * 10 + b end)
      cute.clear(mX)
    end, x, y, z)
    assert.same({0, 0, 0, 0, 0, 0}, list(x))
    assert.same({4, 4, 4, 4, 4, 4}, list(y))
    assert.same({4, 14, 24, 34, 44, 54}, list(z))
  end)

  it("reject operands that do not fit", function()
    local x, y = cute.zeros({8}, cute.f32), cute.zeros({6}, cute.f32)
    local function go(f)
      return function() cute.kernel("k", f)(x, y):trace {block = 1} end
    end
    raises({"axpby: the tensors have 8 and 6 elements", "[shape-mismatch]"},
      go(function(a, b) cute.axpby(1, a, 1, b) end))
    raises({"transform: the tensors have 8 and 6 elements"},
      go(function(a, b) cute.transform(a, b, function(v) return v end) end))
    raises({"the last argument must be a function", "[bad-argument]"},
      go(function(a, b) cute.transform(a, b) end))
    raises({"bad argument #1 to 'cute.fill' (tensor expected, got 3)",
            "[bad-argument]"},
      go(function(_, _) cute.fill(3, 4) end))
  end)
end)

describe("gemm", function()
  local NAME = "SM80_16x8x16_F32BF16BF16F32_TN"

  local function matrix(rows, cols, dtype, f)
    local t = cute.zeros(cute.make_layout({rows, cols}, {cols, 1}), dtype)
    for i = 0, rows - 1 do
      for j = 0, cols - 1 do t[{i, j}] = f(i, j) end
    end
    return t
  end

  -- Each form of gemm gives the same result with a tensor-core atom as without.
  it("of all ranks, with a tensor-core atom", function()
    local A = matrix(32, 32, cute.bf16, function(i, k)
      return (i * 3 + k * 5) % 7 - 3
    end)
    local B = matrix(16, 32, cute.bf16, function(j, k)
      return (j * 2 + k) % 5 - 2
    end)
    local mma = cute.make_tiled_mma(NAME)
    local forms = {
      ["(V,M,K) x (V,N,K)"] = function(c, a, b) cute.gemm(mma, c, a, b, c) end,
      ["(V,M) x (V,N)"] = function(c, a, b)
        for k = 0, 1 do
          cute.gemm(mma, c, a(_, _, k), b(_, _, k), c)
        end
      end,
      ["(V) x (V)"] = function(c, a, b)
        for m = 0, 1 do
          for n = 0, 1 do
            for k = 0, 1 do
              local d = c(_, m, n)
              cute.gemm(mma, d, a(_, m, k), b(_, n, k), d)
            end
          end
        end
      end,
    }
    for name, form in pairs(forms) do
      local C = matrix(32, 16, cute.f32, function() return 0 end)
      cute.kernel("k", function(mA, mB, mC)
        local thr = mma:get_slice(cute.arch.thread_idx())
        local rA = thr:partition_fragment_A(mA)
        local rB = thr:partition_fragment_B(mB)
        local rC = thr:partition_fragment_C(mC)
        cute.autovec_copy(thr:partition_A(mA), rA)
        cute.autovec_copy(thr:partition_B(mB), rB)
        cute.clear(rC)
        form(rC, rA, rB)
        cute.autovec_copy(rC, thr:partition_C(mC))
      end)(A, B, C):launch {grid = 1, block = 32, device = "sim"}
      for i = 0, 31 do
        for j = 0, 15 do
          local sum = 0
          for k = 0, 31 do sum = sum + A[{i, k}] * B[{j, k}] end
          assert.equal(sum, C[{i, j}], name)
        end
      end
    end
  end)

  it("of plain vectors and matrices, with multiply-adds", function()
    local fma = cute.make_mma_atom "UniversalFMA<float>"
    local x = tensor({4}, cute.f32, function(i) return i + 1 end)
    local y = tensor({3}, cute.f32, function(i) return 10 ^ i end)
    local c = cute.zeros({3, 4}, cute.f32)
    launch(function(mX, mY, mC)
      local d = cute.make_tensor(mC.iterator,
                                 cute.make_layout({4, 3}, {1, 4}))
      -- outer product (M) x (N) => (M,N), with all tensors in global memory
      cute.gemm(fma, d, mX, mY, d)
    end, x, y, c)
    for i = 0, 3 do
      for j = 0, 2 do assert.equal((i + 1) * 10 ^ j, c[{j, i}]) end
    end
  end)
end)

describe("lua/cute/meta/atom.lua", function()
  it("has every function of atoms and tiled operations, and no other",
  function()
    local said = {}
    for line in io.lines "lua/cute/meta/atom.lua" do
      local name = line:match "^function cute%.([%w_]+)" or
                   line:match "^cute%.([%w_]+) ="
      local owner, method = line:match "^function (%w+):([%w_]+)"
      if name then
        said[name] = true
        assert.equal("function", type(cute[name]), name)
      elseif owner then
        local one = owner == "TiledMma" and cute.make_tiled_mma
          "UniversalFMA<float>" or cute.make_tiled_copy(
          cute.make_copy_atom("UniversalCopy", cute.f32),
          cute.make_layout {4}, cute.make_layout {1})
        local slice = one:get_slice(0)
        assert.equal("function", type(slice[method]), method)
        said[owner .. method] = true
      end
    end
    for name in ([[make_mma_atom make_copy_atom make_tiled_mma make_tiled_copy
      make_tiled_copy_tv make_cotiled_copy make_tiled_copy_A make_tiled_copy_B
      make_tiled_copy_C make_tiled_copy_C_atom make_tiled_copy_S
      make_tiled_copy_D copy copy_atom_call copy_if autovec_copy basic_copy
      basic_copy_if gemm mma_atom_call atom_name]]):gmatch "%S+" do
      assert.is_true(said[name], name)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
