-- Tests operations on tensors without elements. The expected results are those
-- of NumPy and PyTorch.
local cute = require "cute"
local support = require "spec.support"

local ops = cute.ops
local SIM = {device = "sim"}

local function with(o)
  o.device = "sim"
  return o
end

-- Returns a text with the element type, the layout and the elements of a
-- tensor.
local function said(t)
  local words = {}
  for i = 0, cute.size(t) - 1 do words[#words + 1] = tostring(t(i)) end
  return ("%s %s %s"):format(t.element_type, t.layout,
                             table.concat(words, " "))
end

local function check(want, ...)
  local list = {}
  for i, t in ipairs {...} do list[i] = said(t) end
  assert.equal(want, table.concat(list, "; "))
end

local function fails(want, f, ...)
  local why = support.message(f, ...)
  assert.equal(want .. " [bad-argument]", (why:gsub("^.-:%d+: ", "")))
end

local function T(...) return cute.ones({...}, cute.bf16) end

describe("elementwise operations on empty tensors", function()
  local x = cute.zeros({0, 8}, cute.f32)

  it("launch nothing, and broadcast as numpy.add does", function()
    local function add(a, b) return a + b end
    check("f32 (0,8):(8,1) ", ops.elementwise(add, x, x, SIM))
    check("f32 (0,8):(8,1) ", ops.elementwise(add, x,
                                              cute.ones({1, 8}, cute.f32), SIM))
    check("f32 (0,8):(8,1) ", ops.elementwise(add, x, cute.ones({8}, cute.f32),
                                              SIM))
    check("f32 (0,0):(1,1) ", ops.elementwise(add, cute.zeros({0, 1}, cute.f32),
      cute.zeros({1, 0}, cute.f32), SIM))
    check("f32 (0,8):(8,1) ; f16 (0,8):(8,1) ", ops.elementwise(
      function(a, at)
        return a, at:dropout(a + at:coords(), 0.5, 7):to(cute.f16)
      end, x, SIM))
    fails("ops.elementwise: operand 1 is (0,8):(8,1) and operand 2 is "
      .. "(3,8):(8,1): modes of extents 0 and 3 do not broadcast",
      ops.elementwise, add, x, cute.ones({3, 8}, cute.f32), SIM)
  end)

  it("copy, convert and transpose", function()
    local out = cute.zeros({0, 8}, cute.f16)
    check("f32 (0,8):(8,1) ", ops.copy(x, SIM))
    assert.equal(out, ops.copy(x, out, SIM))
    check("i32 (0,8):(8,1) ", ops.convert(x, "i32", SIM))
    check("f32 (8,0):(1,1) ", ops.transpose(x, SIM))
    check("i8 (3,2,0):(2,1,1) ", ops.transpose(cute.zeros({2, 0, 3}, cute.i8),
                                               {2, 0, 1}, SIM))
  end)
end)

describe("reductions of empty tensors", function()
  it("are the identity, if the operation has one", function()
    -- Results of numpy.zeros((0, 3)).sum(0), .sum(), prod, mean and
    -- numpy.linalg.norm.
    for op, want in pairs {sum = "0.0", prod = "1.0", norm = "0.0",
                           mean = "nan", rms = "nan"} do
      for _, dtype in ipairs {cute.f32, cute.f64} do
        local x = cute.zeros({0, 3}, dtype)
        check(("%s (1):(0) %s"):format(dtype, want), ops.reduce(x, op, SIM))
        check(("%s (3):(1) %s %s %s"):format(dtype, want, want, want),
              ops.reduce(x, op, with {by = "column"}))
        check(("%s (0):(1) "):format(dtype), ops.reduce(x, op,
                                                        with {by = "row"}))
      end
    end
    local x = cute.zeros({2, 0, 3}, cute.i8)
    check("i64 (3):(1) 0 0 0", ops.reduce(x, "sum", with {by = {0, 1}}))
    check("i64 (2,3):(3,1) 1 1 1 1 1 1", ops.reduce(x, "prod", with {by = {1}}))
    check("i64 (2,0):(1,1) ", ops.reduce(x, "prod", with {by = {2}}))
  end)

  it("are written to out, each time", function()
    local x, out = cute.zeros({0, 3}, cute.f32), cute.full({3}, 7, cute.f16)
    for _ = 1, 2 do
      out:fill(7)
      assert.equal(out, ops.reduce(x, "sum", with {by = "column", out = out}))
      check("f16 (3):(1) 0.0 0.0 0.0", out)
    end
  end)

  it("are an error without an identity", function()
    -- NumPy's error is: "zero-size array to reduction operation maximum which
    -- has no identity".
    for _, op in ipairs {"max", "min", "amax", "argmax", "argmin"} do
      local x = cute.zeros({0, 3}, cute.f32)
      local why = "ops.reduce: x is (0,3):(3,1): " .. op .. " over no elements "
        .. "is undefined"
      fails(why, ops.reduce, x, op, SIM)
      fails(why, ops.reduce, x, op, with {by = "column"})
      fails("ops.reduce: x is (0,0):(1,1): " .. op .. " over no elements is "
        .. "undefined", ops.reduce, cute.zeros({0, 0}, cute.f32), op,
        with {by = {0}})
      local dtype = op:find "arg" and "i32" or "f32"
      check(dtype .. " (0):(1) ", ops.reduce(x, op, with {by = "row"}))
      check(dtype .. " (0,3):(3,1) ", ops.reduce(
        cute.zeros({2, 0, 3}, cute.f32), op, with {by = {0}}))
    end
  end)
end)

describe("ops.gemm of empty tensors", function()
  it("returns an empty D if M, N or a batch is 0", function()
    check("bf16 (0,4):(4,1) ", ops.gemm(T(0, 8), T(4, 8), SIM))
    check("bf16 (4,0):(1,1) ", ops.gemm(T(4, 8), T(0, 8), SIM))
    check("bf16 (0,0):(1,1) ", ops.gemm(T(0, 0), T(0, 0), SIM))
    check("bf16 (0,4,3):(12,3,1) ", ops.gemm(T(0, 4, 8), T(3, 8), SIM))
    check("bf16 (0,4,3):(12,3,1) ", ops.gemm(T(0, 4, 8), T(0, 3, 8), SIM))
    check("i32 (0,4):(4,1) ", ops.gemm(cute.zeros({0, 8}, cute.i8),
                                       cute.zeros({4, 8}, cute.i8), SIM))
    check("bf16 (4,0):(1,1) ", ops.gemm(T(4, 8), T(0, 8),
                                        cute.zeros({0}, cute.bf16), SIM))
    local out = cute.zeros({0, 4}, cute.f16)
    assert.equal(out, ops.gemm(T(0, 8), T(4, 8), with {out = out}))
    check("bf16 (0,6):(6,1) ", ops.gemm(T(0, 8), T(6, 8),
                                        with {like = "cublas"}))
    local W = ops.int4(function() return 3 end, 64, 128)
    check("bf16 (0,64):(64,1) ", ops.gemm(T(0, 128), W,
      with {scale_b = cute.full({64}, 0.5, cute.bf16)}))
  end)

  it("returns beta C, or zeros, if K is 0", function()
    -- Results of torch.addmm(C, A, B, beta=, alpha=) and torch.matmul.
    local A, B = T(2, 0), T(3, 0)
    local C = cute.tensor({{1, 2, 3}, {4, 5, 6}}, cute.bf16)
    check("bf16 (2,3):(3,1) 0.0 0.0 0.0 0.0 0.0 0.0", ops.gemm(A, B, SIM))
    check("bf16 (2,3):(3,1) 1.0 4.0 2.0 5.0 3.0 6.0", ops.gemm(A, B, C, SIM))
    check("bf16 (2,3):(3,1) 0.5 2.0 1.0 2.5 1.5 3.0",
          ops.gemm(A, B, C, with {beta = 0.5, alpha = 1 / 0}))
    check("bf16 (2,3):(3,1) 0.0 0.0 0.0 0.0 0.0 0.0",
          ops.gemm(A, B, cute.full({2, 3}, 0 / 0, cute.bf16), with {beta = 0}))
    local out = cute.full({2, 3}, 7, cute.f32)
    for _ = 1, 2 do
      ops.gemm(A, B, with {out = out, accumulate = true})
      check("f32 (2,3):(3,1) 7.0 7.0 7.0 7.0 7.0 7.0", out)
    end
    check("bf16 (2,1,2):(2,0,1) 0.0 0.0 0.0 0.0",
          ops.gemm(T(2, 1, 0), T(2, 2, 0), SIM))
    check("i32 (1,2):(0,1) 0 0", ops.gemm(cute.zeros({1, 0}, cute.i8),
                                          cute.zeros({2, 0}, cute.i8), SIM))
    check("f64 (1,2):(0,1) 0.0 0.0", ops.gemm(cute.zeros({1, 0}, cute.f64),
      cute.zeros({2, 0}, cute.f64), SIM))
    check("bf16 (1,2):(0,1) 0.0 0.0", ops.gemm(cute.zeros({1, 0}, cute.e4m3),
      cute.zeros({2, 0}, cute.e4m3), with {
      scale_a = cute.zeros({1, 0}, cute.f32),
      scale_b = cute.zeros({1, 0}, cute.f32)}))
    assert.truthy(tostring(ops.explain(A, B, SIM)):find "2 x 3")
  end)

  it("applies an epilogue to the sums", function()
    local bias = cute.tensor({1, 2, 3}, cute.f32)
    local function f(acc, at)
      local y = acc + at:col(bias)
      return y, at:row_reduce("sum", y), at:reduce("max", acc)
    end
    check("bf16 (2,3):(3,1) 1.0 1.0 2.0 2.0 3.0 3.0; f32 (2):(1) 6.0 6.0; "
      .. "f32 (1):(0) 0.0", ops.gemm(T(2, 0), T(3, 0), with {epilogue = f}))
    -- D has rows but no columns. A reduction along its rows thus has elements,
    -- each of which is the result for an empty set.
    check("bf16 (0,3):(3,1) ; f32 (0):(1) ; f32 (3):(1) 0.0 0.0 0.0; "
      .. "f32 (1):(0) 1.0; f16 (0,3):(3,1) ", ops.gemm(T(0, 8), T(3, 8),
      with {epilogue = function(acc, at)
        local row, col = at:coords()
        acc = at:dropout(acc + row + col + at:batch_index(), 0.5, 7)
        return acc, at:row_reduce("max", acc), at:col_reduce("sum", acc),
          at:reduce("prod", acc), acc:to(cute.f16)
      end}))
    fails("ops.gemm: D is (0,3): max over no elements is undefined", ops.gemm,
      T(0, 8), T(3, 8), with {epilogue = function(acc, at)
        return acc, at:col_reduce("max", acc)
      end})
    check("bf16 (2,1):(1,0) 1.0 1.0", ops.gemm(T(2, 0), T(2, 0),
      with {gated = true, epilogue = function(g, u) return g * u + 1 end}))
  end)

  it("has operands that agree all the same", function()
    fails("ops.gemm: A is (4,0):(1,1) and B is (3,8):(8,1): K is 0 in one and "
      .. "8 in the other", ops.gemm, T(4, 0), T(3, 8), SIM)
    fails("ops.gemm: A is (0,5):(5,1) and B is (3,8):(8,1): K is 5 in one and "
      .. "8 in the other", ops.gemm, T(0, 5), T(3, 8), SIM)
    fails("ops.explain: D is (0,3): it has no elements, and nothing is "
      .. "launched", ops.explain, T(0, 8), T(3, 8), SIM)
  end)
end)

describe("ops.grouped_gemm of empty groups", function()
  it("returns empty results, and zeros if K is 0", function()
    local where = cute.tensor({0, 1, 2}, cute.i32)
    check("bf16 (0,3):(3,1) ", ops.grouped_gemm(T(0, 8), T(2, 3, 8),
      cute.zeros({3}, cute.i32), SIM))
    check("bf16 (0,3):(3,1) ", ops.grouped_gemm(T(0, 8), T(0, 3, 8),
      cute.zeros({1}, cute.i32), SIM))
    check("bf16 (2,0):(1,1) ", ops.grouped_gemm(T(2, 8), T(2, 0, 8), where,
                                                SIM))
    check("bf16 (2,2):(2,1) 0.0 0.0 0.0 0.0", ops.grouped_gemm(T(2, 0),
      T(2, 2, 0), where, SIM))
    check("bf16 (2,0,3):(3,3,1) ", ops.grouped_gemm(T(2, 0, 8), T(2, 3, 8),
      cute.zeros({2}, cute.i32), SIM))
  end)

  it("keeps the order of a list with such problems", function()
    local out = cute.full({1, 2}, 7, cute.bf16)
    check("bf16 (0,2):(2,1) ; bf16 (1,2):(0,1) 16.0 16.0; bf16 (1,2):(0,1) "
      .. "0.0 0.0; bf16 (2,1):(1,0) 8.0 8.0", table.unpack(ops.grouped_gemm({
      {T(0, 8), T(2, 8)}, {T(1, 16), T(2, 16)}, {T(1, 0), T(2, 0), out},
      {T(2, 8), T(1, 8)}}, SIM)))
  end)
end)
-- SPDX-License-Identifier: MIT
