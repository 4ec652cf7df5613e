-- Tests the functions that epilogues may call. In f32 their error against plain
-- Lua must stay within a bound. They must also accept other types and plain
-- numbers.
local cute = require "cute"
local ops = cute.ops

local function sigmoid(x) return 1 / (1 + math.exp(-x)) end

-- Returns Phi(x): by the series of erf for small x, else by the continued
-- fraction of the tail.
local function phi(x)
  local a = math.abs(x)
  local density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
  local tail
  if a < 2.5 then
    local term, sum = a, a
    for n = 1, 80 do
      term = term * a * a / (2 * n + 1)
      sum = sum + term
    end
    tail = 0.5 - density * sum
  else
    local f = a
    for n = 60, 1, -1 do f = a + n / f end
    tail = density / f
  end
  return x > 0 and 1 - tail or tail
end

-- Returns e^x - 1: by its series for small x.
local function expm1(x)
  if math.abs(x) > 1 then return math.exp(x) - 1 end
  local term, sum = x, x
  for n = 2, 25 do
    term = term * x / n
    sum = sum + term
  end
  return sum
end

-- Returns log(1 + x). The second factor corrects the error of the rounded sum
-- (Kahan).
local function log1p(x)
  local y = 1 + x
  return y == 1 and x or math.log(y) * (x / (y - 1))
end

local EXACT = {
  sigmoid = sigmoid,
  silu = function(x) return x * sigmoid(x) end,
  gelu = function(x) return x * phi(x) end,
  gelu_tanh = function(x)
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3))
  end,
  relu = function(x) return math.max(x, 0) end,
  expm1 = expm1,
  elu = function(x) return x > 0 and x or expm1(x) end,
  softplus = function(x)
    return math.max(x, 0) + log1p(math.exp(-math.abs(x)))
  end,
  selu = function(x)
    return 1.0507009873554805 * (x > 0 and x or 1.6732632423543772 * expm1(x))
  end,
}

-- {value at minus infinity, slope for large arguments} of functions. A function
-- without an entry has 0 and 1. sigmoid and expm1 have no slope.
local LIMITS = {sigmoid = {0}, expm1 = {-1}, elu = {-1, 1},
                selu = {-1.0507009873554805 * 1.6732632423543772,
                        1.0507009873554805}}

-- Returns f of each element of a list, computed by a kernel in type `dtype`: on
-- vectors of `vectors` elements, or on single values if `vectors` is nil.
local function values(f, list, dtype, vectors)
  local n, each = #list, vectors or 1
  local x, y = cute.tensor(list, dtype), cute.zeros({n}, dtype)
  cute.kernel("f", function(a, b)
    local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
    if not vectors then
      b[i] = f(a[i])
      return
    end
    local function part(t)
      return cute.make_tensor(t.iterator + i * each, cute.make_layout {each})
    end
    part(b):store(f(part(a):load()))
  end)(x, y):launch {grid = n // (32 * each), block = 32,
                     device = "sim:sm_90a"}
  local out = {}
  for i = 1, n do out[i] = y(i - 1) end
  return out
end

local function range(from, to, n)
  local list = {}
  for i = 1, n do
    list[i] = string.unpack("f", string.pack("f",
      from + (to - from) * (i - 0.5) / n))
  end
  return list
end

describe("functions of epilogues", function()
  for name, exact in pairs(EXACT) do
    it(name .. " is near in f32, vectors and values", function()
      local f = ops[name]
      for _, r in ipairs {{-4, 8, 2 ^ -19}, {-12, -4, 2 ^ -16}} do
        local list = range(r[1], r[2], 4096)
        local got, again = values(f, list, cute.f32), values(f, list, cute.f32,
                                                             4)
        for i, x in ipairs(list) do
          local want = exact(x)
          assert.is_true(math.abs(got[i] - want) <= r[3] * math.abs(want)
            + 2 ^ -120, ("%s(%.9g) is %.9g, not %.9g"):format(name, x, got[i],
                                                              want))
          assert.equal(got[i], again[i])
        end
      end
    end)

    it(name .. " has limits, and passes NaN on", function()
      local big = {math.huge, 2.0 ^ 100, 100.0, -100.0, -2.0 ^ 100, 0 / 0, 0.0}
      local list = table.move(range(-1, 1, 32), 1, 32, 1, {})
      for i, x in ipairs(big) do list[i] = x end
      local got = values(ops[name], list, cute.f32)
      local low, factor = table.unpack(LIMITS[name] or {0, 1})
      local function near(want, x)
        assert.is_true(x == want or math.abs(x - want)
          <= 2 ^ -22 * math.abs(want) + 2 ^ -100, x)
      end
      for i = 1, 3 do
        near(name == "sigmoid" and 1 or factor and factor * list[i]
          or math.huge, got[i])
      end
      for i = 4, 5 do near(low, got[i]) end
      if name == "relu" then assert.equal(0.0, got[6])
      else assert.is_true(got[6] ~= got[6]) end
      if name == "softplus" then near(math.log(2), got[7])
      else assert.equal(name == "sigmoid" and 0.5 or 0.0, got[7]) end
    end)

    it(name .. " is there for f64 and bf16", function()
      local list = range(-3, 3, 128)
      for _, t in ipairs {{cute.f64, 1e-12}, {cute.bf16, 2 ^ -5}} do
        for i, y in ipairs(values(ops[name], list, t[1])) do
          local want = exact(list[i])
          assert.is_true(math.abs(y - want) <= t[2] * math.max(math.abs(want),
            0.25), ("%s(%.9g) is %.9g, not %.9g"):format(name, list[i], y,
                                                         want))
        end
      end
    end)
  end

  it("softplus takes integers", function()
    for name, list in pairs {u8 = {0, 2, 255}, i8 = {-128, -3, 127},
                             u32 = {0, 2, 90}, i32 = {-2 ^ 31, -3, 90}} do
      local x = cute.zeros({32}, cute[name])
      for i, v in ipairs(list) do x[i] = v // 1 | 0 end
      local y = ops.elementwise(ops.softplus, x, {dtype = "f32"})
      for i, v in ipairs(list) do
        local want = EXACT.softplus(v)
        assert.is_true(math.abs(y(i) - want) <= 1e-6 * want + 2 ^ -126, y(i))
      end
    end
  end)

  it("give the same for long vectors, with few copies of long text",
     function()
    local list = range(-8, 8, 64 * 32)
    local want = values(ops.gelu, list, cute.f32)
    for _, each in ipairs {8, 16, 32, 64} do
      assert.same(want, values(ops.gelu, list, cute.f32, each), each)
    end
    local function unrolled(name, n)
      local x = cute.zeros({n}, cute.f32)
      local text = cute.kernel("f", function(a)
        a:store(ops[name](a:load()))
      end)(x):trace {block = 32}:cuda()
      return text:match "#pragma unroll (%d+)\n[^\n]*\n[^}]*ex2_approx"
    end
    assert.equal("16", unrolled("gelu", 64))
    assert.equal("40", unrolled("gelu", 40))
    assert.equal("64", unrolled("silu", 64))
  end)

  it("take two of the special function unit, and do not divide", function()
    local kernel = cute.kernel("f", function(a, b)
      b[0] = ops.gelu(a[0]) + ops.silu(a[1]) + ops.gelu_tanh(a[2])
    end)
    local t = cute.zeros({4}, cute.f32)
    local text = kernel(t, t):trace {block = 32}:cuda()
    assert.is_nil(text:match "1%.0f /")
    -- each name must occur 4 times: in its definition and in three calls
    for _, name in ipairs {"rcp", "ex2"} do
      assert.equal(4, select(2, text:gsub(name .. "_approx_ftz_f32%(", "")))
    end
  end)
end)

describe("logarithms", function()
  for name, exact in pairs {log = math.log, log1p = log1p} do
    it(name .. " is near in f32, and there for other types", function()
      local at_1 = name == "log" and 1 or 0  -- where the result is 0
      local lists = {range(at_1 - 0.9, at_1 + 4, 8192)}
      for i, e in ipairs {-0.3, 0.3, 1e-3, 1e-6} do
        lists[1 + i] = range(at_1 - e, at_1 + e, 1024)
      end
      lists[6] = {}
      for i = 1, 224 do
        lists[6][i] = name == "log" and 2.0 ^ (i - 113) * 1.4 or 2.0 ^ (i - 97)
      end
      for _, list in ipairs(lists) do
        for i, y in ipairs(values(ops[name], list, cute.f32, 1)) do
          local want = exact(list[i])
          assert.is_true(math.abs(y - want) <= 2 ^ -19 * math.abs(want),
            ("%s(%.9g) is %.9g, not %.9g"):format(name, list[i], y, want))
        end
        for i, y in ipairs(values(ops[name], list, cute.f64)) do
          local want = exact(list[i])
          assert.is_true(math.abs(y - want) <= 1e-14 * math.abs(want), y)
        end
      end
    end)

    it(name .. " has limits, and passes NaN on", function()
      local at_1, list = name == "log" and 1 or 0, range(1, 2, 32)
      list[1], list[2], list[3], list[4] = at_1, math.huge, at_1 - 1, at_1 - 2
      list[5] = 0 / 0
      local got = values(ops[name], list, cute.f32)
      assert.equal(0, got[1])
      assert.equal(math.huge, got[2])
      assert.equal(-math.huge, got[3])
      assert.is_true(got[4] ~= got[4] and got[5] ~= got[5])
    end)
  end

  it("log takes subnormal numbers", function()
    local list = {}
    for i = 1, 32 do list[i] = 2.0 ^ (-149 + i % 23) end
    for i, y in ipairs(values(ops.log, list, cute.f32)) do
      local want = math.log(list[i])
      assert.is_true(math.abs(y - want) <= 2 ^ -19 * math.abs(want), y)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
