local core = require "cute.core"
local support = require "spec.support"
local f32, raises = support.f32, support.raises

-- Returns the bf16 bits of an f32 value, rounded to nearest even on integers.
local function bf16_bits(x)
  local u = string.unpack("<I4", string.pack("<f", x))
  local low, high = u & 0xffff, u >> 16
  if low > 0x8000 or (low == 0x8000 and high & 1 == 1) then high = high + 1 end
  return high
end

describe("a buffer", function()
  it("holds elements of any type, 0-based", function()
    local b = core.buffer("f32", 4)
    assert.equal(4, #b)
    assert.equal(16, b.nbytes)
    assert.equal("f32", tostring(b.dtype))
    assert.equal(0.0, b[3])
    b[3] = 0.1
    assert.equal(f32(0.1), b:get(3))
    local i = core.buffer_from("i8", {1, -2, 127, -128, 3.0})
    assert.same({1, -2, 127, -128, 3}, {i[0], i[1], i[2], i[3], i[4]})
    local u = core.buffer_from("u64", {-1})
    assert.equal(-1, u[0])
    assert.equal(("\xff"):rep(8), u:bytes())
    local w = core.buffer_from("i64", {math.maxinteger, math.mininteger})
    assert.same({math.maxinteger, math.mininteger}, {w[0], w[1]})
    local p = core.buffer("boolean", 2)
    p[1] = true
    assert.same({false, true}, {p[0], p[1]})
    local nibble = core.buffer_from("i4", {1, -8, 7})
    assert.equal("\x81\x07", nibble:bytes())
    assert.same({1, -8, 7}, {nibble[0], nibble[1], nibble[2]})
  end)

  it("gives the values of a range as a list", function()
    for _, t in ipairs {"i4", "u8", "bool", "bf16", "f64", "i64"} do
      local b = core.buffer(t, 37):fill_int(1, 0, 1)
      local all = b:list()
      assert.equal(37, #all)
      for i = 0, 36 do assert.equal(b[i], all[i + 1], t) end
      assert.same({b[5], b[6], b[7]}, b:list(5, 3))
      assert.same({}, b:list(37))
    end
    local b = core.buffer("f32", 4):fill(0)
    raises("elements 2 to 6", function() b:list(2, 4) end)
    raises("elements 5 to", function() b:list(5) end)
  end)

  it("transposes a matrix", function()
    local rows, cols = 37, 65
    for _, t in ipairs {"i4", "u8", "bf16", "f32", "f64"} do
      local b = core.buffer(t, rows * cols):fill_int(1, 0, 7)
      local turned, wrong = b:transpose(rows, cols), 0
      for i = 0, rows - 1 do
        for j = 0, cols - 1 do
          if turned[j * rows + i] ~= b[i * cols + j] then wrong = wrong + 1 end
        end
      end
      assert.equal(0, wrong, t)
      assert.truthy(turned:transpose(cols, rows):equal(b))
    end
    assert.has_error(function() core.buffer("f32", 6):transpose(2, 4) end)
  end)

  it("rejects elements that do not exist and wrong values", function()
    local b = core.buffer("bf16", 4)
    raises("element 4 is outside of the buffer of 4",
      function() return b[4] end)
    raises("element -1 is outside of the buffer of 4", function() b[-1] = 0 end)
    raises("number expected", function() b[0] = "x" end)
    raises("elements 3 to 5", function() b:copy(core.buffer("f32", 2), 3) end)
    raises("elements 2 to 9", function()
      b:copy(core.buffer("f32", 4), 0, 2, 7)
    end)
    raises("3 bytes are not a whole number", function() b:set_bytes "abc" end)
    raises("elements 3 to 5", function() b:set_bytes("abcd", 3) end)
    raises("[bad-argument]", function() core.buffer("bf16", -1) end)
    raises("element type", function() core.buffer("bf17", 1) end)
    raises("too many", function() core.buffer("f64", math.maxinteger) end)
    raises("[out-of-memory]", function() core.buffer("u8", 1 << 50) end)
    raises("cannot have elements of", function()
      core.buffer("complex_f64", 1)
    end)
    raises("list item 2 is a string", function()
      core.buffer_from("f32", {1, "two"})
    end)
    raises("4 and 3 elements", function() b:diff(core.buffer("bf16", 3)) end)
    raises("bit by bit", function() b:equal(core.buffer("f16", 4)) end)
    raises("bounds 3 and 2: the first must not exceed",
      function() b:fill_int(0, 3, 2) end)
  end)

  it("can be closed any number of times", function()
    local b = core.buffer("f32", 4)
    do local _ <close> = b end
    b:close()
    assert.truthy(b.closed)
    assert.equal("buffer (closed)", tostring(b))
    raises("[closed]", function() return b[0] end)
    assert.falsy(pcall(b.fill, b, 0))
    assert.falsy(pcall(core.buffer("f32", 4).copy, core.buffer("f32", 4), b))
  end)

  it("frees its memory as garbage #long", function()
    local function resident()
      local f <close> = io.open "/proc/self/status"
      return tonumber(f:read "a":match "VmRSS:%s*(%d+)")
    end
    local before = resident()
    for _ = 1, 12 do core.buffer("u8", 64 << 20):fill(1) end
    -- The buffers that the collector may free have 768 MiB in all. The resident
    -- memory, in KiB, must grow by less than half of that.
    assert.truthy(resident() - before < 3 << 17)
  end)

  it("knows whether anything in it was written", function()
    assert.falsy(core.buffer("f32", 4).defined)
    assert.truthy(core.buffer("f32", 4):fill(0).defined)
    assert.truthy(core.buffer("f32", 4):fill_normal(0).defined)
    assert.truthy(core.buffer_from("f32", {1}).defined)
    assert.truthy(core.buffer("u8", 2):set_bytes("ab").defined)
    assert.truthy(core.buffer("u8", 2):set_bytes("a").defined)
    local one, part = core.buffer("f32", 4), core.buffer("f32", 4)
    one[2] = 1
    assert.truthy(one.defined)
    assert.truthy(part:copy(one, 0, 0, 2).defined)
    assert.falsy(core.buffer("f32", 4):to("bf16").defined)
    assert.falsy(core.buffer("u8", 2):copy(core.buffer("u8", 2)).defined)
  end)
end)

describe("a buffer", function()
  it("converts many elements as it converts one", function()
    local values = {0.0, -0.0, 1.0, -1.5, 1 / 3, 65504.0, 70000.0, 1e-8, 3e38,
                    1 / 0, -1 / 0, 448.0, 1e30, -200.7, 2 ^ -24, 2 ^ -133}
    for i = 1, 600 do
      values[#values + 1] = math.sin(i) * 2.0 ^ (i % 40 - 20)
    end
    for _, from in ipairs {"f32", "f64", "f16", "bf16", "e4m3", "i32"} do
      local src = core.buffer_from("f64", values):to(from)
      for _, to in ipairs {"f32", "f64", "f16", "bf16", "tf32", "e4m3",
                           "e5m2", "i8", "i32", "u8"} do
        local bulk, single = src:to(to), core.buffer(to, #values)
        local whole = single.dtype.is_integer
        for i = 0, #values - 1 do
          single[i] = whole and (src[i] + 0.0):to(to) or src[i]
        end
        assert.same({true}, {bulk:equal(single)}, from .. " to " .. to)
      end
    end
    local b = core.buffer_from("f32", values):to "bf16"
    for i, v in ipairs(values) do
      assert.equal(bf16_bits(v), (string.unpack("<I2", b:bytes(i - 1, 1))))
    end
    assert.equal(2, #core.buffer_from("f64", {0 / 0}):to("bf16"):bytes())
    local nan = core.buffer_from("f32", {0 / 0}):to "bf16"
    assert.truthy(nan[0] ~= nan[0])
  end)

  it("copies parts", function()
    local b = core.buffer_from("f32", {0, 1, 2, 3, 4, 5})
    local c = core.buffer("i16", 4):fill(-1)
    c:copy(b, 1, 3, 2)
    assert.same({-1, 3, 4, -1}, {c[0], c[1], c[2], c[3]})
    b:copy(b, 0, 2, 4)  -- source and destination overlap in one buffer
    assert.same({2, 3, 4, 5, 4, 5}, {b[0], b[1], b[2], b[3], b[4], b[5]})
    assert.equal(string.pack("<ff", 3, 4), b:bytes(1, 2))
    b:set_bytes(string.pack("<f", 9), 5)
    assert.equal(9.0, b[5])
  end)

  it("fills with the same normal samples in every type", function()
    local n = 1 << 20
    local b = core.buffer("f32", n):fill_normal(42)
    assert.truthy(b:equal(core.buffer("f32", n):fill_normal(42)))
    assert.falsy(b:equal(core.buffer("f32", n):fill_normal(43)))
    for _, t in ipairs {"bf16", "f16"} do
      assert.truthy(b:to(t):equal(core.buffer(t, n):fill_normal(42)))
    end
    local wide = core.buffer("f64", n):fill_normal(42)
    assert.truthy(wide:to "f32":equal(b))
    assert.falsy(wide:equal(b:to "f64"))
    -- Checks the mean and the variance. Also checks the fractions of numbers
    -- beyond 1, 2, 3 and 4 standard deviations: each fraction must be within
    -- five standard errors of the expected one.
    local m, v, beyond = 0, 0, {0, 0, 0, 0}
    for i = 0, n - 1 do
      local x, s = b[i], 1
      m, v = m + x, v + x * x
      while s <= 4 and (x > s or -x > s) do
        beyond[s], s = beyond[s] + 1, s + 1
      end
    end
    assert.truthy(math.abs(m) < 5 * n ^ 0.5)
    assert.truthy(math.abs(v - n) < 5 * (2 * n) ^ 0.5)
    local share = {0.31731050786291, 0.045500263896358, 0.0026997960632602,
                   6.334248366624e-05}
    for s = 1, 4 do
      assert.truthy(math.abs(beyond[s] - n * share[s]) <
                    5 * (n * share[s]) ^ 0.5)
    end
    local c = core.buffer("f64", 1000):fill_normal(1, 100, 0.5)
    for i = 0, 999 do assert.truthy(math.abs(c[i] - 100) < 3) end
  end)

  it("is filled by a thread with the samples of fill_normal", function()
    local n = 100000
    for _, t in ipairs {"bf16", "f32", "f64"} do
      local a, b = core.buffer(t, n), core.buffer(t, n)
      local first, second = core.begin_normal(a, 7), core.begin_normal(b, 8)
      first:wait()
      first:wait()
      assert.truthy(a.defined and a:equal(core.buffer(t, n):fill_normal(7)))
      second:wait()
      assert.truthy(b:equal(core.buffer(t, n):fill_normal(8)))
    end
    local closed = core.buffer("f32", n)
    core.begin_normal(closed, 1)
    closed:close()
    collectgarbage()
    raises("closed", core.begin_normal, closed, 1)
  end)

  it("fills with all of a range of integers", function()
    for _, hi in ipairs {2, 5000} do
      local b, seen = core.buffer("i32", 200000):fill_int(3, -2, hi), {}
      for i = 0, #b - 1 do seen[b[i]] = true end
      local count = 0
      for x in pairs(seen) do
        assert.truthy(x >= -2 and x <= hi)
        count = count + 1
      end
      assert.equal(hi + 3, count)
    end
  end)
end)

describe("comparing buffers", function()
  it("measures the difference", function()
    local a = core.buffer_from("bf16", {1, 2, 4, 0})
    local b = core.buffer_from("f64", {1, 2.5, 3, 0})
    local d = a:diff(b)
    assert.equal(1.0, d.max_abs)
    assert.equal(2, d.worst)
    assert.near(1 / 3, d.max_rel, 1e-15)
    assert.near(1 / 3, d.max_scaled, 1e-15)
    assert.near((1.25 / 16.25) ^ 0.5, d.frobenius, 1e-15)
    assert.equal(0, d.nans)
    local same = b:diff(b)
    assert.same({0.0, 0.0, 0.0},
                {same.max_abs, same.max_rel, same.frobenius})
  end)

  it("never lets a NaN or a lone infinity pass", function()
    local good = core.buffer_from("f32", {1, 2, 3})
    for _, x in ipairs {0 / 0, 1 / 0, -1 / 0} do
      local bad = core.buffer_from("f32", {1, x, 3})
      for _, d in ipairs {bad:diff(good), good:diff(bad)} do
        assert.falsy(d.max_abs <= 1e30)
        assert.falsy(d.max_rel <= 1e30)
        assert.falsy(d.max_scaled <= 1e30 and d.frobenius <= 1e30)
        assert.equal(1, d.worst)
      end
    end
    local nan = core.buffer_from("f32", {0 / 0})
    assert.falsy(nan:diff(nan).frobenius <= 1e30)
    assert.equal(1, nan:diff(nan).nans)
    local inf = core.buffer_from("f32", {1 / 0, 1})
    assert.equal(0.0, inf:diff(inf).max_rel)
    local zero = core.buffer_from("f32", {0})
    assert.falsy(core.buffer_from("f32", {1e-30}):diff(zero).max_rel <= 1)
  end)

  it("finds the first bit that differs", function()
    local a = core.buffer("bf16", 1000):fill_normal(1)
    local b = a:to "bf16"
    assert.same({true}, {a:equal(b)})
    for _, i in ipairs {999, 500, 1, 0} do
      b[i] = b[i] + 1
      assert.same({false, i}, {a:equal(b)})
    end
    local zero = core.buffer_from("f32", {0.0})
    assert.same({false, 0}, {zero:equal(core.buffer_from("f32", {-0.0}))})
    local x, y = core.buffer("i4", 5), core.buffer("i4", 5)
    y[4] = 1
    assert.same({false, 4}, {x:equal(y)})
    y[1] = 1
    assert.same({false, 1}, {x:equal(y)})
  end)
end)

describe("the reference product", function()
  local function naive(a, b, m, n, k)
    local d = {}
    for i = 0, m - 1 do
      for j = 0, n - 1 do
        local s = 0.0
        for c = 0, k - 1 do s = s + a[i * k + c] * b[j * k + c] end
        d[i * n + j + 1] = s
      end
    end
    return d
  end

  it("equals three loops, at every remainder", function()
    for _, s in ipairs {{1, 1, 1}, {4, 4, 8}, {5, 7, 3}, {3, 65, 300},
                        {67, 130, 257}, {2, 3, 0}} do
      local m, n, k = table.unpack(s)
      local a = core.buffer("bf16", m * k):fill_normal(1)
      local b = core.buffer("f16", n * k):fill_normal(2)
      local d = core.buffer("f64", m * n):fill(0 / 0)
      assert.equal(d, core.gemm_reference(a, b, d, m, n, k))
      local want = naive(a, b, m, n, k)
      for i = 1, m * n do assert.equal(want[i], d[i - 1]) end
    end
  end)

  it("takes any strides", function()
    local m, n, k = 5, 6, 7
    local a = core.buffer("f32", m * k):fill_normal(1)
    local b = core.buffer("f32", n * k):fill_normal(2)
    local at = core.buffer("f32", m * k)
    for i = 0, m - 1 do
      for c = 0, k - 1 do at[c * m + i] = a[i * k + c] end
    end
    local d, e = core.buffer("f64", m * n), core.buffer("f64", m * n)
    core.gemm_reference(a, b, d, m, n, k)
    local opts = {a = {1, m}, d = {1, m}}
    core.gemm_reference(at, b, e, m, n, k, opts)
    for i = 0, m - 1 do
      for j = 0, n - 1 do assert.equal(d[i * n + j], e[j * m + i]) end
    end
  end)

  it("refuses matrices that do not fit", function()
    local b = core.buffer("f32", 16)
    for _, s in ipairs {{5, 4, 4}, {4, 5, 4}, {4, 4, 5}} do
      assert.has_error(function()
        core.gemm_reference(b, b, core.buffer("f32", 16),
                            table.unpack(s))
      end)
    end
    assert.has_error(function()
      core.gemm_reference(b, b, b, 4, 4, 4, {a = {5, 1}})
    end)
    assert.has_error(function()
      core.gemm_reference(b, b, b, 4, 4, 4, {a = {"x", 1}})
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
