-- Tests the functions of cute.testing.
local core = require "cute.core"
local cute = require "cute"
local arch, testing = cute.arch, cute.testing
local T = require "spec.values"
local raises = require "spec.support".raises
local launch = T.launch
local _ = cute._

describe("testing.assert_close", function()
  local close = testing.assert_close
  local function tensor(list, dtype)
    return cute.tensor(list, dtype or cute.f32)
  end
  local X = tensor {{1, 2, 3}, {4, 5, 6}}

  it("accepts what is within the tolerance of the type", function()
    close(X, tensor {{1, 2, 3}, {4, 5, 6}})
    close(X, {{1, 2, 3 + 1e-6}, {4, 5, 6}})
    raises("1 of 6 elements differ", close, X, {{1, 2, 3 + 3e-5}, {4, 5, 6}})
    close(tensor({1, 2}, cute.bf16), {1.01, 2.03})
    raises("2 of 2 elements differ", close, tensor({1, 2}, cute.bf16),
      {1.02, 2.06})
    close(X, {{1, 2, 3}, {4, 5, 6.5}}, {atol = 0.5, rtol = 0})
    close(X, {{1, 2, 3}, {4, 5, 8}}, {rtol = 0.25, atol = 0})
    raises("1 of 6", close, X, {{1, 2, 3}, {4, 5, 8.1}}, {rtol = 0.25,
                                                          atol = 0})
    raises("1 of 2", close, tensor({1, 2}, cute.i32), tensor({1, 3}, cute.i32))
    raises("1 of 1 element differs", close, tensor({math.maxinteger}, cute.i64),
      tensor({math.maxinteger - 1}, cute.i64))
    close(cute.zeros({0, 3}, cute.f32), cute.zeros({0, 3}, cute.f32))
  end)

  it("reports the first difference by rows, and the largest ones", function()
    local Y = tensor {{1, 2, 3.5}, {4.75, 5, 6}}
    raises("testing.assert_close: 2 of 6 elements differ: rtol = 0, atol = "
      .. "0.25; the first is (0,2): got 3, want 3.5 [lua]\n  largest absolute "
      .. "difference 0.75 at (1,0), largest relative difference 0.158 at (1,0)",
      close, X, Y, {rtol = 0, atol = 0.25})
    local small = tensor {{1e-9, 2, 3.5}, {4.75, 5, 6}}
    raises("largest absolute difference 1 at (0,0), largest relative "
      .. "difference 0.158 at (1,0)", close, X, small, {rtol = 0, atol = 0.25})
    raises("largest relative difference 1e+09 at (0,0)", close, X, small,
      {rtol = 0.25, atol = 0})
    -- A column-major tensor equals a row-major one with the same elements.
    local turned = cute.make_tensor(tensor({1, 4, 2, 5, 3, 6}).iterator,
                                    cute.make_layout({2, 3}, {1, 2}))
    close(turned, X)
    raises("the first is (0,2): got 3, want 3.5", close, turned, Y)
    local nested = cute.make_tensor(X.iterator,
                                    cute.layout "((2,1),3):((3,0),1)")
    close(nested, nested)
  end)

  it("never accepts a NaN, unless both are and equal_nan is set", function()
    local nan = tensor {1, 0 / 0, 3}
    raises("1 of 3 elements differ: rtol = 1, atol = inf; the first is (1)",
      close, nan, tensor {1, 2, 3}, {rtol = 1, atol = math.huge})
    raises("NaN: 0 of got, 1 of want", close, tensor {1, 2, 3}, nan,
      {equal_nan = true})
    raises("NaN: 1 of got, 1 of want; a NaN differs from everything without "
      .. "equal_nan = true", close, nan, nan)
    close(nan, nan, {equal_nan = true})
    local inf = tensor {math.huge}
    close(inf, inf)
    raises("got inf, want -inf", close, inf, tensor {-math.huge},
      {rtol = math.huge})
    raises("got inf, want 1", close, inf, tensor {1}, {rtol = math.huge})
  end)

  it("compares shapes and types, and checks its options", function()
    raises("got has shape (2,3), but want has shape (3,2) [shape-mismatch]",
      close, X, cute.zeros({3, 2}, cute.f32))
    raises("got has type f32, want has type f64", close, X,
      tensor({{1, 2, 3}, {4, 5, 6}}, cute.f64))
    close(X, tensor({{1, 2, 3}, {4, 5, 6}}, cute.i8), {check_dtype = false})
    for _, v in ipairs {-1, 0 / 0, "1"} do
      raises("atol = " .. core.show(v) .. "; a number of at least 0 is needed",
        close, X, X, {atol = v})
    end
    raises("no option 'rto' (did you mean rtol?)", close, X, X, {rto = 1})
    raises("a tensor in memory is needed", close,
      cute.make_identity_tensor {2, 3}, X)
  end)
end)

describe("testing", function()
  it("asserts, on the host and in kernels", function()
    local O = cute.zeros({32}, "i32")
    local function kernel(limit)
      return function(out)
        local t = arch.thread_idx()
        testing.assert_(t:lt(limit), "t is small")
        out[t] = t
      end
    end
    assert.is_true(launch(kernel(32), {O}).ok)
    local r = launch(kernel(9), {O})
    assert.equal("assertion", r.reports[1].kind)
    assert.equal(9, r.reports[1].thread[1])
    assert.is_truthy(r.reports[1].message:find("t is small", 1, true))
    testing.assert_(true)
    raises("assertion failed: no", testing.assert_, false, "no")
  end)

  it("pads rows, and columns", function()
    for _, stride in ipairs {{5, 1}, {1, 7}} do
      local x = cute.make_tensor(core.buffer("f32", 35),
        cute.make_layout({7, 5}, stride))
      for i = 0, 6 do
        for j = 0, 4 do x[{i, j}] = 10 * i + j end
      end
      local p = testing.padded(x)
      assert.equal(stride[1] == 1 and "(7,5):(1,12)" or "(7,5):(12,1)",
                   tostring(p.layout))
      for i = 0, 6 do
        for j = 0, 4 do assert.equal(10 * i + j, p[{i, j}]) end
      end
    end
    assert.equal("(3,2,4):(1,32,64)", tostring(testing.padded(
      cute.zeros(cute.make_layout({3, 2, 4}, {1, 3, 6}), "u8")).layout))
    raises("a shape (integer, integer ...) is needed", testing.padded,
           cute.zeros({{2, 2}, 3}, "f32"))
  end)

  it("converts tensors", function()
    local a, b = cute.zeros({4, 8}, "f32"), cute.zeros({4, 8}, "bf16")
    for i = 0, 31 do a[i] = i * 1.001 end
    assert.equal(b, testing.convert(a, b))
    for i = 0, 31 do assert.equal(core.bf16 and a[i]:to(cute.bf16), b[i]) end
    raises("[shape-mismatch]", testing.convert, a, cute.zeros({3}, "f32"))
  end)

  -- Returns a prepared launch of a kernel whose loop has n iterations.
  local function looping(n)
    local k = cute.kernel("k", function(out)
      local s = core.cvt(0, cute.i32)
      for i in cute.range(n) do s = s + i * arch.thread_idx() end
      out[arch.thread_idx()] = s
    end)
    return cute.compile(k, cute.zeros({32}, "i32"),
                        {grid = 1, block = 32, device = "sim"})
  end

  it("measures times and counts", function()
    local few, unit = testing.benchmark(looping(4))
    assert.equal("instructions", unit)
    assert.is_true(testing.benchmark(looping(40)) > 2 * few)
    local us, what = testing.benchmark(function() end, {iterations = 3})
    assert.is_true(us >= 0)
    assert.equal("us", what)
    raises("no device 'row'", testing.benchmark, print, {device = "row"})
    raises("benchmark: iterations = 0; an integer of at least 1 is needed "
      .. "[bad-argument]", testing.benchmark, print, {iterations = 0})
    raises("warmup_iterations = -1", testing.benchmark, print,
           {warmup_iterations = -1})
    assert.equal(4, testing.get_workspace_count(1 << 20, 5, 50, 1 << 20))
    assert.equal(15, testing.get_workspace_count(1, 5, 10, 1 << 20))
  end)

  it("finds the fastest candidate, and keeps it", function()
    local tried = {}
    local best, value, made, unit = testing.tune(function(c)
      tried[#tried + 1] = c.n .. c.x
      if c.n == 9 then error "too odd" end
      return looping(c.n)
    end, {n = {9, 8, 2, 30}, x = {"a", "b"}})
    assert.equal(8, #tried)
    assert.equal(2, best.n)
    assert.equal("instructions", unit)
    assert.equal(value, made:launch().instructions)
    raises("too odd", testing.tune, function() error "too odd" end, {n = {1}})
    local calls = 0
    local run = testing.autotune_jit({n = {3, 5}}, function(c, extra)
      calls = calls + 1
      return looping(c.n + extra)
    end)
    local function instructions(n) return looping(n):launch().instructions end
    assert.equal(instructions(4), run(1).instructions)
    -- the kernel ran once for each of two candidates and once for the launch
    -- itself
    assert.equal(3, calls)
    assert.equal(instructions(5), run(2).instructions)
    -- run(2) reuses the configuration that run(1) chose: one more launch
    assert.equal(4, calls)
  end)
end)

---------------------------------------------------------------------------
-- SPDX-License-Identifier: MIT
