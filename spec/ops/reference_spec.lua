-- Tests cute.ops.reference against values computed by hand and against
-- identities that hold for each operation. Invalid calls must raise errors.
local cute = require "cute"
local support = require "spec.support"
local reference, raises = cute.ops.reference, support.raises

local function matrix(rows) return cute.tensor(rows, cute.f32) end

-- Asserts that a tensor of f64 has exactly these elements, or with `bound`,
-- elements that differ by at most `bound`.
local function is(want, t, bound)
  assert.equal(cute.f64, t.dtype)
  cute.testing.assert_close(t, want, {rtol = 0, atol = bound or 0,
                                      equal_nan = true})
end

describe("reference.gemm", function()
  local A = matrix {{1, 2, 3}, {4, 5, 6}}
  local B = matrix {{1, 0, -1}, {2, 2, 2}}

  it("multiplies rows, with factors and C", function()
    is({{-2, 12}, {-2, 30}}, reference.gemm(A, B))
    is({{-1, 34}, {-1, 70}}, reference.gemm(A, B, matrix {3, 10},
      {alpha = 2, beta = 1}))
    is({{-2.5, 12.5}, {-1.5, 30.5}}, reference.gemm(A, B,
      matrix {{-1, 1}, {1, 1}}, {beta = 0.5}))
    is({{-2, 12}, {-2, 30}}, reference.gemm(A, B,
      cute.full({2, 2}, 0 / 0, cute.f32), {beta = 0}))
    is({{-10, 120}, {-20, 600}}, reference.gemm(A, B, {
      scale_a = matrix {5, 10}, scale_b = matrix {1, 2}}))
    is({{-4, 24}, {-4, 60}}, reference.gemm(A, B, {scale_a = 2}))
  end)

  it("broadcasts batches and reads any layout", function()
    local many = cute.tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}, cute.bf16)
    local one = matrix {{1, 1}, {1, -1}}
    is({{{3, -1}, {7, -1}}, {{11, -1}, {15, -1}}}, reference.gemm(many, one))
    is({{{3, 7}, {-1, -1}}, {{11, 15}, {-1, -1}}}, reference.gemm(one, many))
    local turned = cute.make_tensor(matrix({1, 2, 3, 4}).iterator,
                                    cute.make_layout({2, 2}, {1, 2}))
    is({{4, -2}, {6, -2}}, reference.gemm(turned, one))
    is({{0, 0}}, reference.gemm(cute.zeros({1, 0}, cute.f32),
                                cute.zeros({2, 0}, cute.f32)))
  end)

  it("rejects what does not fit", function()
    raises("ops.reference.gemm: A is (2,3):(3,1) and B is (2,2):(2,1); "
      .. "(...,M,K) and (...,N,K) are needed", reference.gemm, A,
      matrix {{1, 2}, {3, 4}})
    raises("C: (2,2) and (3,2) do not broadcast", reference.gemm, A, B,
      matrix {{1, 2}, {3, 4}, {5, 6}})
    raises("no option 'alfa'", reference.gemm, A, B, {alfa = 1})
    raises("alpha = \"x\": a number is needed", reference.gemm, A, B,
      {alpha = "x"})
  end)
end)

describe("reference of rows", function()
  it("computes softmax and cross entropy", function()
    local X = matrix {{0, 0, 0, 0}, {0, math.log(3), -math.huge, -math.huge}}
    is({{0.25, 0.25, 0.25, 0.25}, {0.25, 0.75, 0, 0}}, reference.softmax(X),
      1e-7)
    local nan = reference.softmax(cute.full({1, 2}, -math.huge, cute.f32))
    is({{0 / 0, 0 / 0}}, nan)
    -- Large elements must not overflow.
    is({{0.5, 0.5}}, reference.softmax(matrix {{1e30, 1e30}}))
    local loss, lse = reference.cross_entropy(X, cute.tensor({3, -100},
      cute.i32))
    is({math.log(4), 0}, loss, 1e-12)
    is({math.log(4), math.log(4)}, lse, 1e-7)
    loss = reference.cross_entropy(X, cute.tensor({4, 1}, cute.i64))
    is({0 / 0, math.log(4 / 3)}, loss, 1e-7)
  end)

  it("normalizes", function()
    local X, W = matrix {{3, 4}, {0, 0}}, matrix {2, 10}
    local r = math.sqrt(12.5)
    is({{6 / r, 40 / r}, {0, 0}}, reference.rmsnorm(X, W, {eps = 1e-30}),
      1e-12)
    is({{-1, 1}}, reference.layernorm(matrix {{3, 5}}, {eps = 0.0}))
    is({{-2 + 7, 10 + 8}}, reference.layernorm(matrix {{3, 5}}, W,
      matrix {7, 8}, {eps = 0.0}))
    local Y, H, Mean, Rstd = reference.layernorm(matrix {{1, 2}}, nil, nil, {
      residual = matrix {{2, 3}}, save = true, eps = 3.0})
    is({{-0.5, 0.5}}, Y)
    is({{3, 5}}, H)
    is({4}, Mean)
    is({0.5}, Rstd)
  end)

  it("reduces any modes", function()
    local X = cute.tensor({{{1, 2}, {3, 4}}, {{5, -6}, {7, 8}}}, cute.f32)
    is({{3, 7}, {-1, 15}}, reference.reduce(X, "sum", {by = "row"}))
    is({{4, 6}, {12, 2}}, reference.reduce(X, "sum", {by = "column"}))
    is({16, 8}, reference.reduce(X, "sum", {by = {0, 1}}))
    is({-40320}, reference.reduce(X, "prod"))
    is({8}, reference.reduce(X, "max"))
    is({-6}, reference.reduce(X, "min"))
    is({{2, 4}, {6, 8}}, reference.reduce(X, "amax", {by = {2}}))
    is({math.sqrt(5)}, reference.reduce(matrix {1, 2}, "norm"), 1e-12)
    is({math.sqrt(2.5)}, reference.reduce(matrix {1, 2}, "rms"), 1e-12)
    is({1.5}, reference.reduce(matrix {1, 2}, "mean"))
    is({3}, reference.reduce(matrix {0 / 0, 3}, "max"))
    raises("no operation 'summ' (did you mean sum?)", reference.reduce, X,
      "summ")
    raises("by = {3}: X has no mode 3; it has modes 0 to 2", reference.reduce,
      X, "sum", {by = {3}})
  end)

  it("applies functions to elements", function()
    local X = matrix {{-1, 2}, {3, -4}}
    is({{10, 22}, {13, 20}}, reference.elementwise(function(x, y, z)
      return cute.max(x, 0) + y * z
    end, X, matrix {1, 2}, 10.0))
    is({{0, 1}, {1, 0}}, reference.elementwise(function(x) return x > 0 end, X))
    raises("the function returns nil; a number is needed",
      reference.elementwise, function() end, X)
  end)
end)

describe("reference.attention", function()
  local log2 = math.log(2)
  -- Returns a tensor with one head of one element per row, so the score of row
  -- i and key j is q[i] k[j].
  local function heads(list)
    local rows = {}
    for i, x in ipairs(list) do rows[i] = {{x}} end
    return cute.tensor({rows}, cute.f64)
  end
  local Q, K, V = heads {1, 1}, heads {0, log2, 0}, heads {4, 10, 100}

  local function values(t)
    local list = {}
    for i, x in t:elements() do list[i + 1] = x end
    return list
  end

  local function near(want, t)
    local got = values(t)
    assert.equal(#want, #got)
    for i, x in ipairs(want) do
      assert.is_true(math.abs(x - got[i]) <= 1e-6,
        ("%d: %s, not %s"):format(i, got[i], x))
    end
  end

  it("weights values by the exponentials of scores", function()
    local O, L = reference.attention(Q, K, V)
    near({31, 31}, O)  -- all scores are equal: (4 + 2 * 10 + 100) / 4
    near({math.log(4), math.log(4)}, L)
    near({8, 31}, (reference.attention(Q, K, V, {causal = true})))
    near({8, 40}, (reference.attention(Q, K, V, {window = {1, 0}})))
    near({124 / 5, 124 / 5}, (reference.attention(Q, K, V, {
      sinks = cute.tensor({0}, cute.f32)})))
    near({4, 4}, (reference.attention(Q, K, V, {mask_mod = function(at)
      return at.k == 0
    end})))
    near({144 / 6, 144 / 6}, (reference.attention(Q, K, V, {
      score_mod = function(s) return 2 * s end})))
    near({124 / 4, 124 / 4}, (reference.attention(Q, K, V, {scale = 1.0,
      bias = cute.full({1, 1, 1, 1}, 3, cute.f32)})))
    local slopes = cute.tensor({log2}, cute.f64)
    -- Row 0 is aligned with key 1, so its distances to the three keys are 1, 0,
    -- 1. Row 1 is aligned with key 2.
    near({(2 + 20 + 50) / 3, (1 + 10 + 100) / 2.25},
      (reference.attention(Q, K, V, {alibi_slopes = slopes})))
  end)

  it("takes nothing from keys that a row does not attend to", function()
    local odd = heads {4, 0 / 0, math.huge}
    local first = {mask_mod = function(at) return at.k == 0 end}
    near({4, 4}, (reference.attention(Q, K, odd, first)))
    local both = (reference.attention(Q, K, odd, {causal = true}))
    assert.is_true(both(0, 0, 0, 0) ~= both(0, 0, 0, 0))  -- key 1 is NaN
    near({0, 0}, (reference.attention_backward(Q, Q, K, odd, first)))
  end)

  it("has gradients that agree with differences", function()
    local o = {causal = true, softcap = 2.0}
    local dO = heads {1, -2}
    local function loss(q, k, v)
      local out = values((reference.attention(heads(q), heads(k), heads(v), o)))
      return out[1] - 2 * out[2]
    end
    local at = {{0.3, -0.7}, {0.2, 0.9, -0.4}, {1, 2, -3}}
    local got = {reference.attention_backward(dO, heads(at[1]), heads(at[2]),
                                              heads(at[3]), o)}
    for which, t in ipairs(got) do
      local slopes = {}
      for i in ipairs(at[which]) do
        local function moved(by)
          local all = {table.unpack(at)}
          all[which] = {table.unpack(at[which])}
          all[which][i] = all[which][i] + by
          return loss(table.unpack(all))
        end
        slopes[i] = (moved(1e-5) - moved(-1e-5)) / 2e-5
      end
      near(slopes, t)
    end
  end)

  it("rejects what does not fit", function()
    raises("ops.reference.attention: window = {1.5}; for each side a number of "
      .. "keys, or false, is needed", reference.attention, Q, K, V,
      {window = {1.5}})
    raises("sinks is (2):(1); a number for each of 1 heads is needed",
      reference.attention, Q, K, V, {sinks = cute.zeros({2}, cute.f32)})
    raises("Q (B,S,H,D) and K, V (B,T,G,D) are needed", reference.attention,
      Q, K, Q)
    raises("no option 'causl' (did you mean causal?)", reference.attention, Q,
      K, V, {causl = true})
    raises("score_mod returns nil; a number is needed", reference.attention, Q,
      K, V, {score_mod = function() end})
  end)
end)
-- SPDX-License-Identifier: MIT
