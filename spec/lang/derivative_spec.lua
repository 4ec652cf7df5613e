-- Tests cute.derivative against difference quotients of the same formulas in
-- plain Lua. The formulas use functions, operators and branches of values, or
-- are random expressions. Also tests the errors for functions without a
-- derivative.
local cute = require "cute"
local support = require "spec.support"
local raises = support.raises

local POINTS = {-1.7, -0.6, 0.2, 0.9, 1.4, 2.3}

-- plain Lua's versions of cute's functions, by their names in cute
local plain = {exp2 = function(x) return 2 ^ x end,
  expm1 = function(x) return math.exp(x) - 1 end,
  log2 = function(x) return math.log(x, 2) end,
  log10 = function(x) return math.log(x, 10) end,
  log1p = function(x) return math.log(1 + x) end,
  rsqrt = function(x) return x ^ -0.5 end, rcp = function(x) return 1 / x end,
  sinh = function(x) return (math.exp(x) - math.exp(-x)) / 2 end,
  cosh = function(x) return (math.exp(x) + math.exp(-x)) / 2 end,
  asinh = function(x) return math.log(x + math.sqrt(x * x + 1)) end,
  atanh = function(x) return math.log((1 + x) / (1 - x)) / 2 end,
  cbrt = function(x) return x < 0 and -(-x) ^ (1 / 3) or x ^ (1 / 3) end,
  pow = function(x, y) return x ^ y end,
  fma = function(x, y, z) return x * y + z end, min = math.min, max = math.max,
  where = function(p, a, b) return p and a or b end,
  lt = function(a, b) return a < b end,
  erf = function(x)  -- Maclaurin series of erf
    local sum, term = 0, x
    for n = 0, 60 do
      sum = sum + term / (2 * n + 1)
      term = -term * x * x / (n + 1)
    end
    return sum * 2 / math.sqrt(math.pi)
  end}
function plain.tanh(x)
  local e = math.exp(2 * x)
  return (e - 1) / (e + 1)
end
for _, name in ipairs {"sqrt", "exp", "log", "sin", "cos", "tan", "atan", "abs",
                       "floor", "ceil"} do
  plain[name] = math[name]
end
local traced = setmetatable({lt = function(a, b) return cute.lt(a, b) end},
                            {__index = cute})

-- Returns the derivatives of f(m, x) at the points, computed by a kernel.
local function derivatives(f, points, o)
  local n = #points
  local X, Y = cute.tensor(points, cute.f32), cute.zeros({n}, cute.f32)
  cute.kernel("k", o, function(x, y)
    local i = cute.arch.thread_idx()
    local v = x[i] * 1.0
    y[i] = cute.derivative(f(traced, v), v)
  end)(X, Y):launch {grid = 1, block = n, device = "sim"}
  local list = {}
  for i = 1, n do list[i] = Y(i - 1) end
  return list
end

local function check(name, f, points, bound, o)
  for i, d in ipairs(derivatives(f, points, o or {})) do
    local x, e = points[i], 1e-6
    local want = (f(plain, x + e) - f(plain, x - e)) / 2 / e
    assert.is_true(math.abs(d - want) <= bound * math.max(1, math.abs(want)),
                   ("%s at %g: %g, not %g"):format(name, x, d, want))
  end
end

local POSITIVE = {sqrt = true, rsqrt = true, log = true, log2 = true,
                  log10 = true, log1p = true}

describe("cute.derivative", function()
  it("supports the functions of one argument", function()
    for _, name in ipairs {"sqrt", "rsqrt", "rcp", "exp", "exp2", "expm1",
        "log", "log2", "log10", "log1p", "sin", "cos", "tan", "atan", "sinh",
        "cosh", "tanh", "asinh", "atanh", "erf", "cbrt", "abs", "floor",
        "ceil"} do
      local points = {}
      for i, x in ipairs(POINTS) do
        points[i] = POSITIVE[name] and math.abs(x) or name == "atanh" and x / 3
          or x
      end
      check(name, function(m, x) return m[name](x * 0.75 + 0.03) end, points,
            2e-5)
    end
  end)

  it("applies the rules of sums, products, quotients and choices", function()
    for name, f in pairs {
      product = function(_, x) return x * x * x - 3 * x end,
      quotient = function(m, x) return (1 - x) / (2 + m.exp(x)) end,
      power = function(m, x) return m.pow(m.exp(x), x * 0.5) end,
      fma = function(m, x) return m.fma(x, m.sin(x), -x) end,
      extremes = function(m, x)
        return m.min(x * x, 1.5 - x) + m.max(x, 0.1)
      end,
      choice = function(m, x)
        return m.where(m.lt(x, 0.5), x * x, m.sqrt(x + 1))
      end,
      constant = function(_, x) return x * 0 + 3 end,
      nested = function(m, x) return 5 * m.tanh(m.sin(x * x) / 5) + x end,
    } do
      check(name, f, POINTS, 2e-5)
    end
  end)

  -- Returns a random expression of x, as a function of (m, x).
  local function expression(depth)
    local kind = depth == 0 and math.random(1, 2) or math.random(1, 9)
    if kind == 1 then return function(_, x) return x end end
    if kind == 2 then
      local k = math.random(-20, 20) / 8
      return function(_, x) return x * 0.5 + k end
    end
    local a, b = expression(depth - 1), expression(depth - 1)
    return ({[3] = function(m, x) return a(m, x) + b(m, x) end,
      [4] = function(m, x) return a(m, x) - b(m, x) end,
      [5] = function(m, x) return a(m, x) * b(m, x) * 0.25 end,
      [6] = function(m, x) return a(m, x) / (2 + b(m, x) * b(m, x)) end,
      [7] = function(m, x) return m.sin(a(m, x)) end,
      [8] = function(m, x) return m.tanh(a(m, x)) + b(m, x) end,
      [9] = function(m, x) return m.exp(-a(m, x) * a(m, x)) end})[kind]
  end

  for _, o in ipairs {{}, {fmad = true}, {fastmath = true}} do
    local name = next(o) or "plain rounding"
    it("equals differences of random expressions with " .. name, function()
      math.randomseed(7)
      for n = 1, 40 do
        check("expression " .. n, expression(4), POINTS,
              o.fastmath and 2e-2 or 1e-3, o)
      end
    end)
  end

  it("treats memory, integers and conditions as constants", function()
    local Y = cute.zeros({3}, cute.f32)
    cute.kernel("k", function(x, y)
      local v = x[0]
      y[0] = cute.derivative(x[1] * v, v)
      y[1] = cute.derivative(v:to(cute.i32):to(cute.f32) + v, v)
      y[2] = cute.derivative(3, v)
    end)(cute.tensor({5, 4}, cute.f32), Y):launch {grid = 1, block = 1,
                                                   device = "sim"}
    assert.same({4, 1, 0}, {Y(0), Y(1), Y(2)})
  end)

  it("rejects what has no derivative", function()
    local X = cute.zeros({4}, cute.f32)
    for said, f in pairs {
      ["the derivative of 'atan2' is not known"] = function(v)
        return cute.derivative(cute.atan2(v, 2.0), v)
      end,
      ["the values have types f32 and i32; floats are needed"] = function(v)
        return cute.derivative(v, v:to(cute.i32))
      end,
      ["the derivative of 'get' is not known"] = function(v)
        local sum = 0.0
        for _ in cute.range((cute.arch.thread_idx())) do sum = sum + v end
        return cute.derivative(sum, v)
      end,
      ["the derivative of 'ld' is not known"] = function(v)
        local r = cute.make_rmem_tensor({2}, cute.f32)
        r:fill(0)
        r[0] = v * 2
        return cute.derivative(r[0] + v, v)
      end,
      ["more than 4096 operations lead from one value to the other; a "
        .. "derivative needs at most 4096"] = function(v)
        local y = v
        for _ = 1, 4100 do y = y * v end
        return cute.derivative(y, v)
      end,
    } do
      raises(said, function()
        cute.kernel("k", function(x) x[1] = f(x[0]) end)(X):trace {block = 4}
      end)
    end
    raises("derivative", function() return cute.derivative(1, 2) end)
  end)
end)
-- SPDX-License-Identifier: MIT
