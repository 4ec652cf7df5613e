local cute = require "cute"
local support = require "spec.support"
local _ = cute._
local f32, raises = support.f32, support.raises

local THREADS, LANES = 32, 4

-- Runs f(a, b, c) on vectors of LANES elements in each thread, loaded from
-- tensors of the types `types`. data[k](i) is element i of tensor k. Returns
-- the elements of the results in order.
local function run(types, data, f)
  local tensors = {}
  for k, dtype in ipairs(types) do
    tensors[k] = cute.zeros({THREADS * LANES}, dtype)
    for i = 0, THREADS * LANES - 1 do
      local src = data[k]
      if src then tensors[k][i] = src(i) end
    end
  end
  local k = cute.kernel("vectors", function(...)
    local tid = cute.arch.thread_idx()
    local parts = {}
    for i, t in ipairs {...} do
      parts[i] = cute.local_tile(t, {LANES}, {tid})
    end
    local out = table.remove(parts)
    for i, t in ipairs(parts) do parts[i] = t:load() end
    out:store(f(table.unpack(parts)))
  end)
  k(table.unpack(tensors)):launch {grid = 1, block = THREADS, device = "sim"}
  local out = {}
  for i, v in tensors[#tensors]:elements() do out[i] = v end
  return out
end

local function x(i) return f32((i - 60) * 0.37) end
local function y(i) return f32(1.5 + (i % 7) * 0.25) end

local function check(got, want, tolerance)
  for i = 0, THREADS * LANES - 1 do
    local w = want(i)
    if tolerance and got[i] ~= w then
      assert.is_true(math.abs(got[i] - w) <= tolerance * math.abs(w) + 1e-30,
        ("element %d: %.9g instead of %.9g"):format(i, got[i], w))
    else
      assert.equal(w, got[i])
    end
  end
end

local F3 = {cute.f32, cute.f32, cute.f32}

local function binary(f, want)
  check(run(F3, {x, y}, f), function(i) return f32(want(x(i), y(i))) end)
end

describe("vectors", function()
  it("add, subtract, multiply and divide with one rounding", function()
    binary(function(a, b) return a + b end, function(a, b) return a + b end)
    binary(function(a, b) return a - b end, function(a, b) return a - b end)
    binary(function(a, b) return a * b end, function(a, b) return a * b end)
    binary(function(a, b) return a / b end, function(a, b) return a / b end)
    binary(function(a) return -a end, function(a) return -a end)
  end)

  it("take numbers on either side", function()
    binary(function(a) return a + 1 end, function(a) return a + 1 end)
    binary(function(a) return 1 - a end, function(a) return 1 - a end)
    binary(function(_, b) return 2 / b end, function(_, b) return 2 / b end)
    binary(function(a) return a * 0.5 end, function(a) return a * 0.5 end)
  end)

  it("take traced scalars", function()
    check(run({cute.f32, cute.f32}, {x}, function(a)
      local tid = cute.arch.thread_idx()
      return a * tid:to(cute.f32)
    end), function(i) return f32(x(i) * (i // LANES)) end)
  end)

  it("floor in // and % of integers, as Lua does", function()
    local function n(i) return i - 50 end
    local I2 = {cute.i32, cute.i32}
    check(run(I2, {n}, function(a) return a // 7 end),
      function(i) return n(i) // 7 end)
    check(run(I2, {n}, function(a) return a % 7 end),
      function(i) return n(i) % 7 end)
    check(run(I2, {n}, function(a) return (a & 12) | (a ~ 3) end),
      function(i) return (n(i) & 12) | (n(i) ~ 3) end)
    check(run(I2, {n}, function(a) return ~a << 1 end),
      function(i) return ~n(i) << 1 end)
  end)

  it("convert element by element", function()
    check(run({cute.f32, cute.bf16}, {x},
      function(a) return a:to(cute.bf16) end), function(i)
        local t = cute.zeros({1}, cute.bf16)
        t[0] = x(i)
        return t[0]
      end)
    check(run({cute.f32, cute.i32}, {x},
      function(a) return a:to(cute.i32) end),
      function(i) local q = x(i); return q < 0 and -(-q // 1 | 0) or q // 1 | 0
      end)
    check(run({cute.f32, cute.u32}, {x},
      function(a) return a:bitcast(cute.u32) end),
      function(i) return (string.unpack("I4", string.pack("f", x(i)))) end)
  end)

  it("compare to booleans, and where selects by them", function()
    for name, want in pairs {
      lt = function(a, b) return a < b end,
      le = function(a, b) return a <= b end,
      gt = function(a, b) return a > b end,
      ge = function(a, b) return a >= b end,
      eq = function(a, b) return a == b end,
      ne = function(a, b) return a ~= b end,
    } do
      check(run(F3, {x, y}, function(a, b)
        return cute.where(a[name](a, b), a, b * 2)
      end), function(i)
        return want(x(i), y(i)) and x(i) or f32(y(i) * 2)
      end)
    end
    check(run(F3, {x, y}, function(a, b)
      return cute.where(a:lt(0) | ~b:lt(2), 1.0, a)
    end), function(i)
      return (x(i) < 0 or y(i) >= 2) and 1.0 or x(i)
    end)
  end)

  it("reduce in order", function()
    check(run({cute.f32, cute.f32}, {x}, function(a)
      local s = a:reduce("add", 0.0)
      return cute.full({LANES}, 0, cute.f32) + s
    end), function(i)
      local s, first = 0.0, i // LANES * LANES
      for k = first, first + LANES - 1 do s = f32(s + x(k)) end
      return s
    end)
    check(run({cute.f32, cute.f32}, {x}, function(a)
      return cute.full_like(a, a:reduce("max", -1e30)
        - a:reduce("min", 1e30))
    end), function(i)
      local first = i // LANES * LANES
      return f32(math.max(x(first), x(first + 3))
        - math.min(x(first), x(first + 3)))
    end)
  end)

  it("reduce the modes that a profile does not keep", function()
    check(run({cute.f32, cute.f32}, {x}, function(a)
      local m = cute.make_rmem_tensor({2, 2}, cute.f32)
      for i = 0, 3 do m[i] = a[i] end
      local rows = m:load():reduce("add", 0.0, {_, 1})   -- the sum of each row
      local columns = m:load():reduce("add", 0.0, {1, _})
      local out = cute.make_rmem_tensor({LANES}, cute.f32)
      for i = 0, 1 do
        out[i] = rows[i]
        out[2 + i] = columns[i]
      end
      return out:load()
    end), function(i)
      local f, k = i // LANES * LANES, i % LANES
      local pair = ({[0] = {0, 2}, {1, 3}, {0, 1}, {2, 3}})[k]
      return f32(x(f + pair[1]) + x(f + pair[2]))
    end)
  end)
end)

describe("vectors", function()
  it("have the float functions", function()
    local function near(f, want)
      check(run(F3, {x, y}, f), function(i) return f32(want(x(i), y(i))) end,
        3e-6)
    end
    near(function(_, b) return cute.sqrt(b) end,
      function(_, b) return b ^ 0.5 end)
    near(function(_, b) return cute.exp(b) end,
      function(_, b) return math.exp(b) end)
    near(function(a) return cute.exp2(a) end, function(a) return 2 ^ a end)
    near(function(_, b) return cute.log(b) end,
      function(_, b) return math.log(b) end)
    near(function(_, b) return cute.rsqrt(b) end,
      function(_, b) return b ^ -0.5 end)
    near(function(_, b) return cute.tanh(b) end, function(_, b)
      return (math.exp(2 * b) - 1) / (math.exp(2 * b) + 1)
    end)
    near(function(a) return cute.sin(a) end, function(a)
      return math.sin(a)
    end)
    near(function(a) return cute.floor(a) end,
      function(a) return math.floor(a) * 1.0 end)
  end)

  it("have max, min, abs and fma", function()
    binary(function(a, b) return cute.max(a, b, 0) end,
      function(a, b) return math.max(a, b, 0.0) end)
    binary(function(a, b) return cute.min(a, b) end,
      function(a, b) return math.min(a, b) end)
    binary(function(a) return cute.abs(a) end,
      function(a) return math.abs(a) end)
    -- In a double, the product of an f32 by 2 is exact, and so is the sum of
    -- this product and c.
    binary(function(a, b) return cute.fma(a, 2.0, b) end,
      function(a, b) return a * 2.0 + b end)
  end)

  it("are unchanged by registers and strided memory", function()
    local A = cute.zeros({16, 8}, cute.bf16)
    local C = cute.zeros({16, 8}, cute.bf16)
    for i = 0, 127 do A[i] = i end
    local k = cute.kernel("transposed", function(mA, mC)
      local tid = cute.arch.thread_idx()
      local row = mA(tid, _)                             -- (8)
      local r = cute.make_rmem_tensor_like(row)
      r:store(row:load())
      local c = cute.make_tensor(mC.iterator,
        cute.make_layout({16, 8}, {1, 16}))(tid, _)      -- (8)
      c:store(r:load())
    end)
    k(A, C):launch {grid = 1, block = 16, device = "sim"}
    local flat = cute.make_tensor(C.iterator, cute.make_layout {16, 8})
    for i = 0, 15 do
      for j = 0, 7 do assert.equal(A(i, j), flat(i, j)) end
    end
  end)

  it("reject unsupported operands", function()
    local function broken(want, f, ...)
      raises(want, run, F3, {x, y}, f, ...)
    end
    broken("[shape-mismatch]",
      function(a) return a + cute.full({3}, 1, cute.f32) end)
    broken(":to(cute.f32)", function(a) return a:to(cute.bf16) end)
    broken("[type-mismatch]", function(a) return a:to(cute.bf16) end)
    broken("[traced-in-lua]", function(a, b) return a < b end)
    broken("known while tracing", function(a)
      return a:reshape {2, 2}(cute.arch.thread_idx() & 1, _)
    end)
    broken("[bad-argument]", function(a) return a[4] end)
    broken("is immutable", function(a) a[0] = 1 return a end)
    broken("no field 'foo'", function(a) return a.foo end)
    broken("no reduction 'avg'", function(a) return a:reduce("avg", 0) end)
    broken("integers are needed", function(a, b) return a & b end)
    local kept
    run(F3, {x, y}, function(a) kept = a return a end)
    raises("outside of it", function() return kept + 1 end)
    broken("of another kernel", function() return kept end)
  end)
end)

describe("functions of plain numbers", function()
  it("are those of the C library", function()
    assert.equal(math.exp(1.5), cute.exp(1.5))
    assert.equal(2.0, cute.sqrt(4))
    assert.equal(8.0, cute.exp2(3))
    assert.equal(0.5, cute.rcp(2))
    assert.equal(8.0, cute.pow(2, 3))
    assert.equal(3, cute.max(1, 3, 2))
    assert.equal(1, cute.min(1, 3, 2))
    assert.equal(5, cute.abs(-5))
    assert.equal(7.0, cute.fma(2, 3, 1))
    assert.equal(2.0, cute.roundeven(2.5))
    assert.equal(3.0, cute.round(2.5))
  end)
end)
-- SPDX-License-Identifier: MIT
