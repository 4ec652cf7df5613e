-- Tests that the simulator computes approximate functions with the bits of an
-- H200. The GPU's results are recorded as hashes over many inputs; one of the
-- hashes is over all 2^32 inputs.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"
local T = require "spec.values"
local softmax = require "kernels.softmax"
local arch = cute.arch

-- For each PTX instruction, two hashes of its results on a GPU, as sum_of
-- computes them: one over 2^17 input words, and one over all 2^32 input words.
local SUMS = {
  {"ex2.approx.f32", "7a3c550fa809099e", "b7a2a06dad9e0e76"},
  {"ex2.approx.ftz.f32", "5667f4cc8ad26628", "1d1556d350d539a8"},
  {"lg2.approx.f32", "3430f91c43260552", "765fc04c907d90f8"},
  {"lg2.approx.ftz.f32", "fb79e6b6a99d2528", "53f137d4cc010e6a"},
  {"rcp.approx.f32", "6036b5d4c548d177", "ad74bac43e8ae00c"},
  {"rcp.approx.ftz.f32", "cf1a4f444755dc4e", "35d36c4288d43917"},
  {"sqrt.approx.f32", "e8d98913ae20989f", "61613748506b974f"},
  {"sqrt.approx.ftz.f32", "be6b81a94f0e4478", "c852b1922498e7b8"},
  {"rsqrt.approx.f32", "5b98a4f2c2d4e7e1", "4b21108f6f9efc73"},
  {"rsqrt.approx.ftz.f32", "e5b20e06b0b0606b", "3ea18cd0b81b4a79"},
  {"sin.approx.f32", "25ea270a33e29384", "7300159050ecc442"},
  {"sin.approx.ftz.f32", "25ea270a33e29384", "7300159050ecc442"},
  {"cos.approx.f32", "a6abb49b5f9b09e7", "ad55be0040afe73e"},
  {"cos.approx.ftz.f32", "a6abb49b5f9b09e7", "ad55be0040afe73e"},
  {"tanh.approx.f32", "c9aff5bcac77e937", "7b3d8084ead5bfdf"},
  {"ex2.approx.f16x2", "6ef3da5b54b5a3be", "b794374183853ee2"},
  {"ex2.approx.ftz.bf16x2", "e95d0cf2fe6ccbb9", "3deb57a0e9a723cf"},
  {"tanh.approx.f16x2", "f41d2ff0fd2260ba", "49d4459fa0bc5639"},
  {"tanh.approx.bf16x2", "dd02a9280f6b690a", "539e551bbed27319"},
}

local function mix(z)
  z = (z ~ z >> 30) * 0xbf58476d1ce4e5b9
  z = (z ~ z >> 27) * 0x94d049bb133111eb
  return z ~ z >> 31
end

-- Returns a function of a u32 word, which holds the bits of the operand. The
-- function applies the PTX instruction and returns the bits of the result.
local function of_words(instruction)
  if instruction:find "x2$" then
    return function(x) return arch.approx(instruction, x) end
  end
  return function(x)
    return arch.approx(instruction, x:bitcast(cute.f32)):bitcast(cute.u32)
  end
end

-- Returns a hash of the results f(x) of an instruction: the sum of mix(x << 32
-- | f(x)) over the input words x = stride * i with 0 <= i < threads * count.
local function sum_of(instruction, threads, count, stride, device)
  local f = of_words(instruction)
  local sum = cute.zeros({1}, cute.u64)
  cute.kernel("total", function(s, n)
    local t = (arch.block_idx() * 256 + arch.thread_idx()):to(cute.u32)
    local h = (t * 0):to(cute.u64)
    for i in cute.range(n) do
      local x = (t + i:to(cute.u32) * threads) * stride
      h = h + mix(x:to(cute.u64) << 32 | f(x):to(cute.u64))
    end
    arch.atomic_add(s.iterator, h)
  end)(sum, count):launch {grid = threads // 256, block = 256,
                           device = device}
  return ("%016x"):format(sum(0))
end

local function sample(device)
  for _, row in ipairs(SUMS) do
    assert.equal(row[2], sum_of(row[1], 512, 256, 32771, device), row[1])
  end
end

describe("approximate functions", function()
  it("give an H200's bits in the simulator", function()
    sample "sim:sm_90a"
  end)

  it("give an H200's bits on this GPU #gpu", function()
    sample "gpu"
    for _, row in ipairs(SUMS) do
      assert.equal(row[3], sum_of(row[1], 1 << 20, 1 << 12, 1, "gpu"), row[1])
    end
  end)
end)

-- Returns the bytes of the softmax of m rows of normally distributed numbers.
local function softmax_of(dtype, m, n, device)
  local x, y = core.buffer(dtype, m * n), core.buffer(dtype, m * n)
  x:fill_normal(n)
  local rows = cute.make_layout({m, n}, cute.LayoutRight)
  local k = softmax {dtype = dtype, n = n}
  k.kernel(cute.make_tensor(x, rows), cute.make_tensor(y, rows)):launch {
    grid = k.grid(m), block = k.block, device = device}
  return y:bytes()
end

describe("softmax", function()
  it("is the same, bit for bit, in the simulator and on a GPU #gpu", function()
    for _, n in ipairs {1, 77, 1024, 20000} do
      for _, t in ipairs {"f32", "bf16", "f16"} do
        assert.is_true(softmax_of(cute[t], 12, n, "sim:sm_90a")
                       == softmax_of(cute[t], 12, n, "gpu"),
                       t .. " " .. n)
      end
    end
  end)
end)

---------------------------------------------------------------------------
-- Properties that need no GPU
---------------------------------------------------------------------------

local NAN, INF = 0x7fffffff, 0x7f800000
local SIGN = 0x80000000

-- Results from PTX's tables, for -inf, -subnormal, -0, +0, +subnormal, +inf,
-- NaN. A later test covers subnormals in the instructions without .ftz.
local SPECIALS = {
  ["ex2.approx.ftz.f32"] = {0, 0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000,
                            INF, NAN},
  ["lg2.approx.ftz.f32"] = {NAN, SIGN | INF, SIGN | INF, SIGN | INF,
                            SIGN | INF, INF, NAN},
  ["rcp.approx.ftz.f32"] = {SIGN, SIGN | INF, SIGN | INF, INF, INF, 0, NAN},
  ["sqrt.approx.ftz.f32"] = {NAN, SIGN, SIGN, 0, 0, INF, NAN},
  ["rsqrt.approx.ftz.f32"] = {NAN, SIGN | INF, SIGN | INF, INF, INF, 0, NAN},
  ["sin.approx.ftz.f32"] = {NAN, SIGN, SIGN, 0, 0, NAN, NAN},
  ["cos.approx.ftz.f32"] = {NAN, 0x3f800000, 0x3f800000, 0x3f800000,
                            0x3f800000, NAN, NAN},
  ["tanh.approx.f32"] = {0xbf800000, SIGN | 77, SIGN, 0, 77, 0x3f800000, NAN},
}
local SPECIAL_IN = {SIGN | INF, SIGN | 77, SIGN, 0, 77, INF, 0x7fc00001}

-- Each test of accuracy has a function, inputs of every magnitude, and the
-- error bound that PTX guarantees. The bound is absolute for lg2, sin and cos,
-- and relative for the others.
local function magnitudes(u)
  return 2.0 ^ (u * 200 - 100)
end
local function small(u) return u * 20 - 10 end
local BOUNDS = {
  {"ex2", function(x) return 2.0 ^ x end, small, 2.0 ^ -22, true},
  {"rcp", function(x) return 1 / x end, magnitudes, 2.0 ^ -23, true},
  {"sqrt", math.sqrt, magnitudes, 2.0 ^ -23, true},
  {"rsqrt", function(x) return 1 / math.sqrt(x) end, magnitudes,
   2.0 ^ -22.4, true},
  {"lg2", function(x) return math.log(x, 2) end,
   function(u) return 0.5 + u * 1.5 end, 2.0 ^ -22},
  {"sin", math.sin, function(u) return (u * 2 - 1) * math.pi end, 2.0 ^ -20.5},
  {"cos", math.cos, function(u) return (u * 2 - 1) * math.pi end, 2.0 ^ -20.5},
  {"tanh", function(x)
    local e = math.exp(2 * x)
    return (e - 1) / (e + 1)
  end, small, 2.0 ^ -11, true},
}

describe("approximate functions", function()
  it("of special values follow PTX", function()
    for name, want in pairs(SPECIALS) do
      local got = T.map({SPECIAL_IN}, function(x)
        return {of_words(name)(x)}
      end, "u32", "u32")
      assert.same(want, got[1], name)
    end
  end)

  it("are within PTX's bounds", function()
    for _, b in ipairs(BOUNDS) do
      local x, n = {}, 4096
      for i = 1, n do x[i] = support.f32(b[3]((i - 0.5) / n)) end
      local y = T.map({x}, function(v)
        return {arch.approx(b[1] .. ".approx.f32", v)}
      end, "f32", "f32")[1]
      for i = 1, n do
        local want = b[2](x[i])
        local size = b[5] and math.abs(want) or 1
        if y[i] ~= y[i] or math.abs(y[i] - want) > b[4] * size then
          error(("%s of %a: %a, not %a"):format(b[1], x[i], y[i], want))
        end
      end
    end
  end)

  it("keep subnormals without .ftz", function()
    local got = T.map({{1, 0x7fffff}}, function(x)
      return {of_words "lg2.approx.f32"(x), of_words "sqrt.approx.f32"(x),
              of_words "rsqrt.approx.f32"(x), of_words "rcp.approx.f32"(x)}
    end, "u32", "u32")
    -- the f32 bits of -149.0 and -126.0
    assert.same({0xc3150000, 0xc2fc0000}, got[1])
    assert.same({0x1a3504f3, 0x1fffffff}, got[2])
    assert.same({0x64b504f2, 0x5f000000}, got[3])
    assert.same({INF, 0x7e800001}, got[4])
  end)

  it("of constants and of plain numbers are the same", function()
    for _, row in ipairs(SUMS) do
      local pair = row[1]:find "x2$"
      local word = pair and 0x3f2cbe61 or 0x3fb0a3d7
      local got = T.map({{word}}, function(x)
        local f = of_words(row[1])
        return {f(x), f(core.cvt(word, cute.u32))}
      end, "u32", "u32")
      assert.equal(got[1][1], got[2][1], row[1])
    end
    local x = support.f32(0.7371)
    for _, b in ipairs(BOUNDS) do
      local f = cute[b[1] .. "_approx"]
      local y = T.map({{x}}, function(v) return {f(v)} end, "f32", "f32")
      assert.equal(y[1][1], f(x), b[1])
    end
    assert.equal(T.map({{x}}, function(v) return {cute.div_full(v, 3.0)} end,
                       "f32", "f32")[1][1], cute.div_full(x, 3))
  end)

  it("agree with CUDA's exp2f and rsqrtf", function()
    local x = {}
    for i = 1, 512 do x[i] = support.f32(i * 0.0371) end
    local y = T.map({x}, function(v)
      return {cute.exp2(v), cute.ex2_approx(v), cute.rsqrt(v),
              cute.rsqrt_approx(v)}
    end, "f32", "f32")
    assert.same(y[2], y[1])
    assert.same(y[4], y[3])
  end)

  it("accept only f32, and raise an error if they do not exist", function()
    local function of_f64()
      T.map({{1.0}}, function(x) return {cute.ex2_approx(x)} end, "f64", "f64")
    end
    support.raises({"ex2.approx of f64: the operand must be f32",
      "[type-mismatch]"}, of_f64)
    support.raises({'no approximate function "exp.approx.f32"',
                    "[bad-argument]"}, arch.approx, "exp.approx.f32", 1.0)
  end)
end)
-- SPDX-License-Identifier: MIT
