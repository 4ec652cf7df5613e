-- Tests notes on maxima, minima and products that start at 0, on sums that
-- start at another number, and on maxima that never recover from an infinity.
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

local N = 8
local count = 0

-- Runs y[t] = f(x, t) with 32 threads, where x is a matrix of 32 rows with
-- elements sign * (1 + column). Returns the messages.
local function told(f, sign)
  local x, y = cute.zeros({32, N}, cute.f32), cute.zeros({32}, cute.f32)
  for r = 0, 31 do
    for c = 0, N - 1 do x[{r, c}] = (sign or -1) * (1 + c) end
  end
  count = count + 1  -- Each kernel name gets a note only once.
  local k = cute.kernel("k" .. count, function(a, b)
    local t = arch.thread_idx()
    b[t] = f(a, t)
  end)
  local said, r = support.told(function()
    return support.report(k(x, y):launch {grid = 1, block = 32,
      device = "sim", faults = "return"})
  end)
  assert.is_true(r.ok, tostring(r))
  return said
end

-- Returns a function that reduces row t by step(result, x, t, column), from the
-- initial value `start`.
local function loop(start, step)
  return function(x, t)
    local m = start
    for i in cute.range(N) do m = step(m, x, t, i) end
    return m
  end
end

local function max(m, x, t, i) return cute.max(m, x[{t, i}]) end
local function min(m, x, t, i) return cute.min(m, x[{t, i}]) end

local MEANT = ". If 0 is intended, combine the result with 0 after the loop"

local function expect(text, ...)
  local said = told(...)
  assert.equal(1, #said)
  assert.matches("^cutelua: note: kernel k%d+: zero_starts_spec.lua:%d+: "
    .. text .. "$", said[1])
end

describe("a note tells of", function()
  it("a maximum or minimum that starts at 0", function()
    local most = "this maximum starts at 0, so it is 0 if all elements are "
      .. "below 0; start it at %-math.huge, or at the first element" .. MEANT
    expect(most, loop(0.0, max))
    expect(most, loop(0.0, function(m, x, t, i)
      cute.when(i:ge(2), function() m = cute.max(m, x[{t, i}] * 2) end)
      return m
    end))
    expect(most, loop(0.0, function(m, x, t, i)
      return cute.where(x[{t, i}]:gt(m), x[{t, i}], m)
    end))
    expect(most, loop(0.0, function(m, x, t, i)
      cute.when(x[{t, i}]:gt(m), function() m = x[{t, i}] end)
      return m
    end))
    expect(most, function(x, t)
      local m = cute.make_rmem_tensor({2}, cute.f32)
      m:fill(0)
      for i in cute.range(N) do m[1] = cute.max(m[1], x[{t, i}]) end
      return m[1]
    end)
    expect(most, function(x, t)
      local m, r = 0.0, cute.make_rmem_tensor({N}, cute.f32)
      for i = 0, N - 1 do r[i] = x[{t, i}] end
      for i = 0, N - 1 do m = cute.max(r[i], m) end
      return m
    end)
    expect(most, function(x, t)
      local r = cute.make_rmem_tensor({N}, cute.f32)
      cute.autovec_copy(x(t, cute._), r)
      return r:load():reduce("max", 0.0)
    end)
    expect("this minimum starts at 0, so it is 0 if all elements are above 0; "
      .. "start it at math.huge, or at the first element" .. MEANT,
      loop(0.0, min), 1)
  end)

  it("a product that starts at 0", function()
    expect("this product starts at 0, so it is always 0; start it at 1",
      loop(0.0, function(m, x, t, i) return m * x[{t, i}] end))
  end)

  it("a maximum over lanes in which lanes without elements have 0", function()
    local mask = "this maximum takes 0 in place of elements that a condition "
      .. "excludes, so it is 0 if all others are below 0; use %-math.huge in "
      .. "their place"
    expect(mask, function(x, t)
      local v = 0.0
      cute.when(t:lt(20), function() v = x[{t, 3}] end)
      return arch.warp_reduction_max(v)
    end)
    expect(mask, function(x, t)
      return arch.warp_reduction_max(cute.where(t:lt(20), x[{t, 3}], 0))
    end)
  end)

  it("a sum that starts at a constant other than 0", function()
    local sum = "this sum of elements starts at %s; start it at 0%%. If %s is "
      .. "a part of the result, add it after the sum"
    local one = sum:format("1", "1")
    expect(one, loop(1.0, function(s, x, t, i) return s + x[{t, i}] end))
    expect(sum:format("0.5", "0.5"), loop(0.5, function(s, x, t, i)
      return s + x[{t, i}] * x[{t, i}]
    end))
    expect(one, loop(1.0, function(s, x, t, i)
      cute.when(i:lt(7), function() s = s + x[{t, i}] end)
      return s
    end))
    expect(one, function(x, t)
      local s = cute.make_rmem_tensor({1}, cute.f32)
      s:fill(1)
      for i in cute.range(N) do s[0] = s[0] + x[{t, i}] end
      return s[0]
    end)
    expect(one, function(x, t)
      local s = 1.0
      for i = 0, N - 1 do s = s + x[{t, i}] * x[{i, t % N}] end
      return s
    end)
    expect(one, function(x, t)
      local m, l = -math.huge, 1.0
      for i in cute.range(N) do m = cute.max(m, x[{t, i}]) end
      for i in cute.range(N) do l = l + cute.exp(x[{t, i}] - m) end
      return l
    end)
  end)

  it("a maximum that includes a register which nothing updates", function()
    expect("this maximum includes 'm', which keeps the infinity it was filled "
      .. "with; should the loop store the new maximum to it%?", function(x, t)
      local m = cute.make_rmem_tensor({1}, cute.f32)
      m:fill(-math.huge)
      local s = 0.0
      for i in cute.range(N) do s = s + cute.max(m[0], x[{t, i}]) end
      return s
    end)
  end)
end)

describe("no note tells of", function()
  local function quiet(...) assert.same({}, told(...)) end

  it("maxima whose elements are not below 0", function()
    quiet(loop(0.0, max), 1)
    quiet(loop(0.0, min), -1)
    for _, f in ipairs {cute.abs, cute.exp,
        function(x) return x * x end, function(x) return cute.max(x, 0) end} do
      quiet(loop(0.0, function(m, x, t, i)
        return cute.max(m, f(x[{t, i}]))
      end))
    end
    quiet(loop(0.0, function(m, x, t, i)
      return cute.max(m, x[{t, i}] * x[{t, i}])
    end))
  end)

  it("unrolled maxima of which 0 is the last operand", function()
    quiet(function(x, t)
      local m = -math.huge
      for i = 0, N - 1 do m = cute.max(m, x[{t, i}]) end
      return cute.max(m, 0.0)
    end)
    quiet(function(x, t)
      local m = -math.huge
      for i = 0, N - 1 do m = cute.max(m, cute.max(x[{t, i}], 0)) end
      return m
    end)
    quiet(function(x, t)
      local m = 0.0
      for i = 0, N - 1 do m = cute.max(m, cute.abs(x[{t, i}])) end
      return m
    end)
  end)

  it("sums with a small start, or a first term before the loop", function()
    quiet(loop(1e-5, function(s, x, t, i) return s + x[{t, i}] * x[{t, i}] end))
    quiet(function(x, t)
      local m, l = x[{t, 0}], 1.0
      for i in cute.range(1, N) do
        local most = cute.max(m, x[{t, i}])
        l = l * cute.exp(m - most) + cute.exp(x[{t, i}] - most)
        m = most
      end
      return l
    end)
    quiet(function(x, t)
      local l = 1.0
      for i in cute.range(1, N) do l = l + cute.exp(x[{t, i}] - x[{t, 0}]) end
      return l
    end)
    quiet(function(x, t)
      -- the softmax starts with a score of its own, whose exponential is 1
      local m, l = x[{t, 0}], 1.0
      for i in cute.range(N) do
        local most = cute.max(m, x[{t, i}])
        l = l * cute.exp(m - most) + cute.exp(x[{t, i}] - most)
        m = most
      end
      return l
    end)
  end)

  it("polynomials, series, and counters that start at 1", function()
    quiet(function(x, t)
      local v = x[{t, 0}]
      return 1.0 + v * (1.0 + v * (0.5 + v * (0.25 + v)))
    end)
    quiet(function(x, t)
      local s, term, v = 1.0, 1.0, x[{t, 0}]
      for i in cute.range(8) do
        term = term * v / (i + 1):to(cute.f32)
        s = s + term
      end
      return s
    end)
    quiet(function(x, t)
      local n = cute.var(1, cute.i32)
      for i in cute.range(N) do
        cute.when(x[{t, i}]:gt(x[{t, 0}]), function() n.value = n.value + 1 end)
      end
      return n.value:to(cute.f32)
    end)
  end)

  it("right starts, limits, or sums that start at 0", function()
    quiet(loop(-math.huge, max))
    quiet(loop(math.huge, min))
    quiet(loop(0.0, function(m, x, t, i) return m + cute.max(x[{t, i}], 0) end))
    quiet(function(x, t)
      local m = x[{t, 0}]
      for i in cute.range(1, N) do m = cute.max(m, x[{t, i}]) end
      return m
    end)
    quiet(function(x, t)
      local v = -math.huge
      cute.when(t:lt(20), function() v = x[{t, 3}] end)
      return arch.warp_reduction_max(v)
    end)
    quiet(function(x, t)
      local m = cute.make_rmem_tensor({1}, cute.f32)
      m:fill(-math.huge)
      for i in cute.range(N) do m[0] = cute.max(m[0], x[{t, i}]) end
      return m[0]
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
