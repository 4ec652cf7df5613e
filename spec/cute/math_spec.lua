-- Tests cute.math: its names, and the effect of {fastmath = ...} on one call.
-- Errors must stay within the bounds of docs/simulator.md.
local cute = require "cute"
local support = require "spec.support"
local raises = support.raises

-- The names that cute.math has in the Python DSL.
local NAMES = [[abs absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil
  clamp copysign cos cosh erf erfc exp exp2 expm1 floor fma fpowi ipowi isfinite
  isinf isnan isnormal log log10 log1p log2 max min pow rem round roundeven
  rsqrt sin sincos sinh sqrt tan tanh trunc]]

-- Each row has the name of a function of cute.math, then text that its CUDA C
-- for f32 contains: without fastmath, and with fastmath. If the third element
-- is absent, fastmath changes nothing.
local FAST = {
  {"sqrt", "sqrtf", "sqrt_approx"}, {"rsqrt", "rsqrtf", "rsqrt_approx"},
  {"rcp", "1.0f /", "rcp_approx"}, {"exp", "expf", "ex2_approx"},
  {"exp2", "exp2f", "ex2_approx"}, {"log", "logf", "lg2_approx"},
  {"log2", "log2f", "lg2_approx"}, {"log10", "log10f", "lg2_approx"},
  {"sin", "sinf", "sin_approx"}, {"cos", "cosf", "cos_approx"},
  {"tan", "tanf", "div_full"}, {"tanh", "tanhf", "tanh_approx"},
  {"expm1", "expm1f"}, {"log1p", "log1pf"}, {"asin", "asinf"},
  {"acos", "acosf"}, {"atan", "atanf"}, {"sinh", "sinhf"}, {"cosh", "coshf"},
  {"asinh", "asinhf"}, {"acosh", "acoshf"}, {"atanh", "atanhf"},
  {"erf", "erff"}, {"erfc", "erfcf"}, {"cbrt", "cbrtf"}}

-- Returns the emitted CUDA C of o = f(x) for a type, without the helper
-- functions that precede the kernel.
local function text_of(f, dtype, opts)
  local x, o = cute.zeros({1}, dtype), cute.zeros({1}, dtype)
  local source = cute.kernel("k", opts or {}, function(a, b)
    b[0] = f(a[0], a[0])
  end)(x, o):trace {block = 1}.source
  return source:match 'extern "C".*'
end

local ON, OFF = {fastmath = true}, {fastmath = false}

describe("cute.math", function()
  it("has the Python DSL's names", function()
    for name in NAMES:gmatch "%w+" do
      assert.equal(cute[name], cute.math[name], name)
    end
    raises("cute.math has no 'expo' [unknown-name]", function()
      return cute.math.expo
    end)
  end)

  for _, c in ipairs(FAST) do
    it("takes fastmath in one call: " .. c[1], function()
      local f = cute.math[c[1]]
      local function with(opts) return function(x) return f(x, opts) end end
      local has = function(text, word)
        assert.is_truthy(text:find(word, 1, true), text)
      end
      local plain, fast = c[2], c[3] or c[2]
      has(text_of(with(), cute.f32), plain)
      has(text_of(with(OFF), cute.f32), plain)
      has(text_of(with(ON), cute.f32), fast)
      has(text_of(with(), cute.f32, ON), fast)
      has(text_of(with(OFF), cute.f32, ON), plain)
      assert.equal(text_of(with(), cute.f64), text_of(with(ON), cute.f64))
      has(text_of(with(ON), cute.bf16), fast)
    end)
  end

  it("takes fastmath with two arguments, and for one call only", function()
    local function both(x, y)
      return cute.math.pow(x, y, ON) + cute.math.pow(x, y)
        + cute.math.div(x, y, ON) + x / y + cute.math.sincos(x, ON)
    end
    local text = text_of(both, cute.f32)
    for _, word in ipairs {"ex2_approx(", "powf(", "div_full(", " / ",
        "sin_approx("} do
      assert.is_truthy(text:find(word, 1, true), word .. text)
    end
    text = text_of(both, cute.f64)
    assert.is_nil(text:find("approx", 1, true) or text:find("full", 1, true))
  end)

  it("computes vectors as values, element by element", function()
    local x, o = cute.zeros({8}, cute.f32), cute.zeros({2, 8}, cute.f32)
    for i = 0, 7 do x[i] = i * 0.4 + 0.1 end
    cute.kernel("k", function(a, b)
      local v = a:load()
      b(0, cute._):store(cute.math.tanh(v, ON) + cute.math.log(v))
      for i = 0, 7 do
        b[{1, i}] = cute.math.tanh(a[i], ON) + cute.math.log(a[i])
      end
    end)(x, o):launch {grid = 1, block = 1, device = "sim"}
    for i = 0, 7 do assert.equal(o(1, i), o(0, i)) end
  end)

  it("reports wrong options", function()
    raises("exp: no option 'fast' (did you mean fastmath?)", cute.exp, 1,
           {fast = true})
    raises("fastmath = 3: a boolean is needed", cute.exp, 1, {fastmath = 3})
    raises("use cute.floor(x)", cute.floor, 1.5, ON)
    raises("mul: no option 'fastmath'", cute.mul, 1.5, 2.0, ON)
    assert.equal(math.exp(1), cute.math.exp(1, ON))
  end)
end)

-- Returns a list of {name of a CUDA function, the bound of its error in ulp},
-- from the first numbers in the table of docs/simulator.md.
local function bounds()
  local list = {}
  local text = support.read "docs/simulator.md"
  text = text:match "## CUDA's functions.*"
  for name, ulp in text:gmatch "\n| (%w+) | ([%d.]+) |" do
    list[#list + 1] = {name, tonumber(ulp)}
  end
  return list
end

describe("the errors of docs/simulator.md", function()
  it("are listed for every function that is not exact", function()
    local has = {}
    for _, b in ipairs(bounds()) do has[b[1]] = true end
    for _, c in ipairs(FAST) do assert.is_true(has[c[1]], c[1]) end
  end)

  -- Returns N inputs of all magnitudes. Half of them have exponents near 0.
  local N = 4096
  local function inputs()
    local x = cute.zeros({N}, cute.f32)
    for i = 0, N - 1 do
      local m = 1 + (i * 2654435761 & 0x7fffff) / 0x800000
      local e = i % 2 == 0 and i // 2 % 8 - 5 or i // 2 % 60 - 30
      x[i] = (i // 64 % 2 == 0 and m or -m) * 2.0 ^ e
    end
    return x
  end

  -- Returns a tensor of the results of each function in the list, for the
  -- inputs x converted to a type.
  local function results(list, x, dtype, device)
    local o = cute.zeros({#list, N}, dtype)
    cute.kernel("k", function(a, b)
      local t = cute.arch.block_idx() * 256 + cute.arch.thread_idx()
      local v = a[t]:to(dtype)
      for j, f in ipairs(list) do
        b[{j - 1, t}] = cute[f[1]](v, f[1]:find "^pow$" and 2.5
          or (f[1] == "atan2" or f[1] == "fmod") and 0.75 or nil)
      end
    end)(x, o):launch {grid = N // 256, block = 256, device = device}
    return o
  end

  it("are the simulator's", function()
    local list, x = bounds(), inputs()
    local want = results(list, x, cute.f64, "sim")
    local got = results(list, x, cute.f32, "sim")
    for j, f in ipairs(list) do
      for i = 0, N - 1 do
        local a, b = want(j - 1, i), got(j - 1, i)
        local e = a == 0 and -126 or math.floor(math.log(math.abs(a), 2))
        local ulp = 2.0 ^ (math.max(e, -126) - 23)
        assert.is_true(support.same(support.f32(a), b)
          or math.abs(a - b) <= (f[2] + 0.01) * ulp,
          ("%s(%g): %.9g, not %.9g"):format(f[1], x(i), b, a))
      end
    end
  end)

  it("are a GPU's, bit for bit #gpu", function()
    if require "cute.jit".version() ~= "13.0" then
      pending "needs NVRTC 13.0"
      return
    end
    local list, x = bounds(), inputs()
    local want = results(list, x, cute.f32, "sim")
    local got = results(list, x, cute.f32, "gpu")
    for j, f in ipairs(list) do
      for i = 0, N - 1 do
        local a, b = want(j - 1, i), got(j - 1, i)
        assert.is_true(support.same(a, b),
          ("%s(%g): %.9g, not %.9g"):format(f[1], x(i), b, a))
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
