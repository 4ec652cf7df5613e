-- Tests fmad and fastmath, which are options of a kernel and of a launch. The
-- emitted text and the simulator must treat them alike.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"

local T = 2.0 ^ -12
-- (1 + T)^2 is 1 + 2T + T^2, which f32 rounds to 1 + 2T. So A A - C is 0 with
-- two roundings, but T^2 if one FMA computes it.
local A, C = 1 + T, 1 + 2 * T

local function vector(t, dtype)
  local x = cute.zeros({#t}, dtype or cute.f32)
  for i, v in ipairs(t) do x[i - 1] = v end
  return x
end

-- {form of a sum with a product, a function that computes it from a and c, the
-- function's result at a = A and c = C if an FMA computes product and sum}
local FORMS = {
  {"a * b + c", function(a, c) return a * a + -c end, T * T},
  {"c + a * b", function(a, c) return -c + a * a end, T * T},
  {"a * b - c", function(a, c) return a * a - c end, T * T},
  {"c - a * b", function(a, c) return c - a * a end, -T * T},
  {"a * b + d * e, the left product", function(a, c)
    return a * a + c * -1.0 end, T * T},
  {"a * b - d * e, the left product", function(a, c)
    return a * a - c * c * 0.0 - c end, 0},
}

local function run(form, how, opts, dtype)
  local x, y = vector({A, C}, dtype), cute.zeros({1}, dtype or cute.f32)
  local function body(a, b) b[0] = form(a[0], a[1]) end
  local k = how and cute.kernel("k", how, body) or cute.kernel("k", body)
  local launch = {grid = 1, block = 1, device = "sim"}
  for name, v in pairs(opts or {}) do launch[name] = v end
  k(x, y):launch(launch)
  return y[0], (k(x, y):trace {block = 1, fmad = opts and opts.fmad,
                               fastmath = opts and opts.fastmath}:cuda())
end

describe("fmad", function()
  for _, form in ipairs(FORMS) do
    it("makes one FMA of " .. form[1], function()
      local value, text = run(form[2], {fmad = true})
      assert.equal(form[3], value)
      assert.is_truthy(text:find("fmaf(", 1, true), text)
      value, text = run(form[2])
      assert.equal(0, value)
      assert.is_nil(text:find("fma[_f(]"), text)
    end)
  end

  it("is the launch's, else the kernel's, else fastmath's", function()
    local form = FORMS[1][2]
    assert.equal(T * T, (run(form, nil, {fmad = true})))
    assert.equal(0, (run(form, {fmad = true}, {fmad = false})))
    assert.equal(T * T, (run(form, {fmad = false}, {fmad = true})))
    assert.equal(T * T, (run(form, nil, {fastmath = true})))
    assert.equal(0, (run(form, {fmad = false}, {fastmath = true})))
    assert.equal(0, (run(form, {fastmath = true}, {fastmath = false})))
  end)

  it("affects only sums of products of floats", function()
    local value, text = run(function(a, c)
      local i = a:to(cute.i32)
      return (i * i + i):to(cute.f32) + c
    end, {fmad = true})
    assert.equal(2 + C, value)
    assert.is_nil(text:find("fma[_f(]"))
  end)

  it("rounds f64, f16 and bf16 once, too", function()
    for name, bits in pairs {f64 = 52, f16 = 10, bf16 = 7} do
      -- (1 + u)^2 is 1 + 2u + u^2. u^2 is less than half an ulp of 1, so it is
      -- lost if the product is rounded.
      local u = 2.0 ^ -(bits // 2 + 1)
      local x, y = vector({1 + u, 1 + 2 * u}, cute[name]),
        cute.zeros({2}, cute[name])
      local k = cute.kernel("k", function(a, b)
        b[0] = a[0] * a[0] - a[1]
      end)
      k(x, y):launch {grid = 1, block = 1, device = "sim", fmad = true}
      assert.equal(u * u, y[0], name)
      k(x, y):launch {grid = 1, block = 1, device = "sim"}
      assert.is_true(y[0] == 0 or y[0] == 2 * u * u, name)
      assert.is_true(y[0] ~= u * u, name)
    end
  end)

  it("with its default value is the same program", function()
    local traced = {n = 0}
    local k = cute.kernel("k", function(x)
      traced.n = traced.n + 1
      x[0] = x[0] * x[0] + 1
    end)
    local x = vector {1, 2}
    for _, fmad in ipairs {false, true, false, true} do
      k(x):trace {block = 1, fmad = fmad}
      k(x):trace {block = 1}
    end
    assert.equal(2, traced.n)
  end)
end)

-- {the helper function that the text contains with fastmath, the function, its
-- reference, the range of inputs, the hardware's allowed relative error, its
-- allowed absolute error}
local FAST = {
  {"div_full", function(x) return x / 3.7 end, function(x) return x / 3.7 end},
  {"sqrt_approx", cute.sqrt, math.sqrt}, {"rsqrt_approx", cute.rsqrt,
    function(x) return x ^ -0.5 end},
  {"rcp_approx", cute.rcp, function(x) return 1 / x end},
  {"ex2_approx", cute.exp, math.exp},
  {"ex2_approx", cute.exp2, function(x) return 2 ^ x end},
  {"lg2_approx", cute.log, math.log},
  {"lg2_approx", cute.log2, function(x) return math.log(x, 2) end},
  {"lg2_approx", cute.log10, function(x) return math.log(x, 10) end},
  {"sin_approx", cute.sin, math.sin}, {"cos_approx", cute.cos, math.cos},
  {"sin_approx", cute.tan, math.tan},
  {"tanh_approx", cute.tanh, function(x)
    local e = math.exp(2 * x)
    return (e - 1) / (e + 1)
  end},
  {"ex2_approx", function(x) return cute.pow(x, 2.5) end,
    function(x) return x ^ 2.5 end}}

local function fast_kernel(x, y)
  local t = cute.arch.thread_idx()
  for i, f in ipairs(FAST) do y[t * #FAST + i - 1] = f[2](x[t]) end
end

local function fast_input()
  local t = {}
  for i = 1, 32 do t[i] = i * 0.09 end
  return vector(t)
end

describe("fastmath", function()
  it("uses the hardware's f32 approximations", function()
    for _, f in ipairs(FAST) do
      local function one(x, y) y[0] = f[2](x[0]) end
      local args = {vector {1, 2}, vector {0}}
      local k = cute.kernel("k", one)
      local fast = k(table.unpack(args)):trace {block = 1, fastmath = true}
      assert.is_truthy(fast:cuda():find(f[1] .. "(", 1, true), fast:cuda())
      local plain = k(table.unpack(args)):trace {block = 1}
      assert.is_nil(plain:cuda():find("approx", 1, true))
      assert.is_nil(plain:cuda():find("div_full", 1, true))
    end
  end)

  local function answers(device)
    local x, y = fast_input(), cute.zeros({32 * #FAST}, cute.f32)
    cute.kernel("k", {fastmath = true}, fast_kernel)(x, y):launch {
      grid = 1, block = 32, device = device}
    return x, y
  end

  -- The bounds are relative to the result, but absolute for results below
  -- 1.
  it("is within the hardware's bounds", function()
    local x, y = answers "sim"
    for t = 0, 31 do
      for i, f in ipairs(FAST) do
        local want, got = f[3](x[t]), y[t * #FAST + i - 1]
        local size = math.max(1, math.abs(want))
        if f[2] == cute.tan then size = (1 + size) ^ 2 end  -- a quotient
        if f[2] == cute.tanh then size = 2.0 ^ 3.6 end
        assert.is_true(math.abs(got - want) <= 2.0 ^ -20.5 * size,
          ("%s of %s: %s, not %s"):format(f[1], x[t], got, want))
      end
    end
  end)

  it("is the same in the simulator and on a GPU #gpu", function()
    local x, y = answers "sim"
    local _, z = answers "gpu"
    for t = 0, 31 do
      for i, f in ipairs(FAST) do
        local at = t * #FAST + i - 1
        assert.equal(y[at], z[at], ("%s of %s"):format(f[1], x[t]))
      end
    end
  end)

  it("leaves f64 and narrow floats as they are", function()
    local k = cute.kernel("k", {fastmath = true}, function(x, h)
      x[0] = cute.sqrt(x[0]) / x[1]
      h[0] = h[0] / h[1]
    end)
    local text = k(vector({1, 2}, cute.f64), vector({1, 2}, cute.f16)):trace {
      block = 1}:cuda()
    assert.is_truthy(text:find("sqrt(x[0]) / x[1]", 1, true), text)
    assert.is_nil(text:find("approx", 1, true))
    assert.is_nil(text:find("div_full", 1, true))
  end)

  it("compiles", function()
    local p = cute.kernel("k", {fastmath = true}, fast_kernel)(fast_input(),
      cute.zeros({32 * #FAST}, cute.f32)):trace {block = 32}
    if not kernels.compiles(p, {"sm_75", "sm_80", "sm_90a", "sm_100a"}) then
      pending "needs NVRTC"
    end
  end)
end)

describe("options of numbers", function()
  local k = cute.kernel("k", function(x) x[0] = x[0] * x[0] + 1 end)

  it("are true or false", function()
    support.raises({"kernel k: fmad = 1; true or false", "[bad-argument]"},
      cute.kernel, "k", {fmad = 1}, print)
    support.raises({"fastmath of \"yes\": a boolean is needed", "[bad-launch]"},
      function()
        k(vector {1}):launch {grid = 1, block = 1, fastmath = "yes"}
      end)
    support.raises("did you mean fastmath?", function()
      k(vector {1}):launch {grid = 1, block = 1, fastmaths = true}
    end)
  end)

  it("are decided when a launch is prepared", function()
    local launch = cute.compile(k, vector {1}, {grid = 1, block = 1,
      device = "sim", fmad = true})
    launch:launch {fmad = true}
    support.raises({"fmad = false, but this launch was compiled with fmad = "
      .. "true",
                    "[bad-launch]"}, launch.launch, launch, {fmad = false})
  end)

  it("and so are its block, device and architecture", function()
    local x = vector {1}
    local stores = cute.kernel("k", function(t) t[0] = 1 end)
    local launch = cute.compile(stores, x, {grid = 1, block = {8, 2},
                                            device = "sim:sm_80"})
    launch:launch {block = {8, 2}, device = "sim", arch = "sm_80"}
    launch(x, {block = {8, 2, 1}, device = "sim:sm_80"})
    launch:launch {device = "auto"}
    launch:launch {device = cute.device "sim:sm_80"}
    for want, opts in pairs {
      ["block = 16 x 1 x 1, but this launch was compiled with block = 8 x 2 x "
        .. "1"]
        = {block = 16},
      ["device = gpu, but this launch was compiled with device = sim"]
        = {device = "gpu"},
      ["device = sim:sm_90a, but this launch was compiled with device = "
        .. "sim:sm_80"]
        = {device = "sim:sm_90a"},
      ["this launch was compiled with device = simulator (sm_80)"]
        = {device = cute.device "sim"},
      ["arch = sm_90a, but this launch was compiled with arch = sm_80"]
        = {arch = "sm_90a"},
      ["block = 0; one to three integers of at least 1 are "
        .. "needed"] = {block = 0}} do
      support.raises({want, "[bad-launch]"}, launch.launch, launch, opts)
      support.raises({want, "[bad-launch]"}, launch, x, opts)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
