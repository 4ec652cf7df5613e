-- Tests narrow numbers packed in registers. For pairs of 16-bit floats, plain
-- Lua computes the expected results in f32, with one rounding. Conversions of
-- 4- and 8-bit integers to floats are tested with all values.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local T = require "spec.values"
local arch = cute.arch
local raises = support.raises

---------------------------------------------------------------------------
-- The oracle
---------------------------------------------------------------------------

local FORMATS = {bf16 = {mantissa = 7, bias = 127, most = 255},
                 f16 = {mantissa = 10, bias = 15, most = 31}}

local function decode(f, u)
  local sign = u >> 15 == 1 and -1.0 or 1.0
  local e = u >> f.mantissa & f.most
  local m = u & (1 << f.mantissa) - 1
  if e == f.most then return m == 0 and sign * math.huge or 0 / 0 end
  if e == 0 then return sign * m * 2.0 ^ (1 - f.bias - f.mantissa) end
  return sign * (1 + m * 2.0 ^ -f.mantissa) * 2.0 ^ (e - f.bias)
end

-- Encodes x, rounded to nearest even. A NaN becomes 0x7fff.
local function encode(f, x)
  if x ~= x then return 0x7fff end
  local sign = (x < 0 or 1 / x < 0) and 0x8000 or 0
  x = math.abs(x)
  local infinity = f.most << f.mantissa
  if x == math.huge then return sign | infinity end
  local _, e = T.frexp(x)
  e = math.max(e - 1, 1 - f.bias)
  local n = x / 2.0 ^ (e - f.mantissa)
  local low = n // 1
  local rest = n - low
  if rest > 0.5 or rest == 0.5 and low % 2 == 1 then low = low + 1 end
  local u = math.tointeger(low)
  if u >= 1 << f.mantissa then u = u + (e + f.bias - 1 << f.mantissa) end
  return sign | math.min(u, infinity)
end

-- Returns a * b + c with one rounding: the product is exact in a double, and
-- its sum with c is rounded to odd.
local function fma(a, b, c)
  local p = a * b
  local s = p + c
  if s ~= s or s == math.huge or s == -math.huge then return s end
  local bb = s - p
  local err = (p - (s - bb)) + (c - bb)
  local u = string.unpack("<i8", string.pack("<d", s))
  if err ~= 0 and u & 1 == 0 then
    u = (err > 0) == (s > 0) and u | 1 or u - 1
  end
  return (string.unpack("<d", string.pack("<i8", u)))
end

local WANT = {
  add = function(a, b) return a + b end,
  sub = function(a, b) return a - b end,
  mul = function(a, b) return a * b end,
  fma = fma,
}

-- Returns words whose halves are edge values of either format, then random
-- ones.
local function words(n, salt)
  local edges = {0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3ff, 0x400, 0x3f80, 0x3c00,
                 0x7f7f, 0x7f80, 0xff80, 0x7fc1, 0x7bff, 0x7c00, 0xfc00,
                 0x7c01, 0x7fff, 0xffff, 0x3f81, 0xbf80, 0x0100}
  local list = {}
  for i = 1, n do
    local lo, hi = T.random() & 0xffff, T.random() & 0xffff
    if i <= #edges * #edges then
      lo = edges[(i - 1) // salt % #edges + 1]
      if i % 3 == 0 then hi = edges[i % #edges + 1] end
    end
    list[i] = lo | hi << 16
  end
  return list
end

describe("pairs of 16-bit floats", function()
  for name, f in pairs(FORMATS) do
    it("of " .. name .. " are rounded as one element is", function()
      local a, b, c = words(2048, 1), words(2048, 23), words(2048, 5)
      local order = {"add", "sub", "mul", "fma"}
      local got = T.map({a, b, c}, function(x, y, z)
        local r = {}
        for i, op in ipairs(order) do
          r[i] = arch[op .. "_packed_" .. name .. "x2"](x, y,
            op == "fma" and z or nil)
        end
        return r
      end, "u32", "u32")
      for k, op in ipairs(order) do
        for i = 1, #a do
          for shift = 0, 16, 16 do
            local function half(w) return decode(f, w >> shift & 0xffff) end
            local want = encode(f, WANT[op](half(a[i]), half(b[i]),
                                            half(c[i])))
            if want ~= got[k][i] >> shift & 0xffff then
              error(("%s.%s of %08x, %08x, %08x: %08x, not %04x"):format(op,
                name, a[i], b[i], c[i], got[k][i], want))
            end
          end
        end
      end
    end)
  end

  it("stand in tables and vectors, too", function()
    local function pair(x) return {x:to(cute.bf16), (x + 1):to(cute.bf16)} end
    local got = T.map({{1, 2, 3}}, function(x)
      local p = arch.fma_packed_bf16x2(pair(x), pair(x * 2), {0.5, 8})
      local v = cute.full(4, 3, cute.f16)
      local s = arch.sub_packed_f16x2(v, x:to(cute.f16))
      local w = arch.cvt_f32x2_bf16x2 {x, 1}
      local two = arch.cvt_f32x2_bf16x2(cute.full(2, 1.5, cute.f32))
      return {p[1]:to(cute.f32), p[2]:to(cute.f32), s[3]:to(cute.f32),
              (w & 0xffff):to(cute.f32), (w >> 16):to(cute.f32),
              two[1]:to(cute.f32)}
    end, "f32", "f32")
    assert.same({2.5, 8.5, 18.5}, got[1])
    assert.same({14, 23, 36}, got[2])
    assert.same({2, 1, 0}, got[3])
    assert.same({0x3f80, 0x4000, 0x4040}, got[4])
    assert.same({0x3f80, 0x3f80, 0x3f80}, got[5])
    assert.same({1.5, 1.5, 1.5}, got[6])
  end)

  it("of f32 require sm_100 or newer", function()
    local x = cute.zeros({64}, cute.f32)
    local call = cute.kernel("k", function(y)
      local t = arch.thread_idx()
      local p = {y[t], y[t + 32]}
      p = arch.fma_packed_f32x2(arch.add_packed_f32x2(p, {1, 2}), p, {0.5, 4})
      p = arch.sub_packed_f32x2(arch.mul_packed_f32x2(p, {2, 3}), {1, 0})
      y[t], y[t + 32] = p[1], p[2]
    end)(x)
    for i = 0, 63 do x[i] = i end
    call:launch {grid = 1, block = 32, device = "sim:sm_100a"}
    for i = 0, 31 do
      assert.equal(((i + 1) * i + 0.5) * 2 - 1, x[i])
      assert.equal(((i + 34) * (i + 32) + 4) * 3, x[i + 32])
    end
    raises("add.f32x2 (line", call.launch, call,
           {grid = 1, block = 32, device = "sim:sm_90a"})
    kernels.compiles(call:trace {block = 32, arch = "sm_100a"}, {"sm_100a"})
  end)
end)

---------------------------------------------------------------------------
-- Floats of 8 bits
---------------------------------------------------------------------------

local QUARTERS = {e4m3 = {mantissa = 3, bias = 7, most = 0x7e},
                  e5m2 = {mantissa = 2, bias = 15, most = 0x7b}}

-- Returns the value of an 8-bit float without its sign, or nil for a NaN.
local function quarter(f, code)
  if code > f.most then
    return f.mantissa == 2 and code == 0x7c and math.huge or nil
  end
  local e, m = code >> f.mantissa, code & (1 << f.mantissa) - 1
  if e == 0 then return m * 2.0 ^ (1 - f.bias - f.mantissa) end
  return (1 + m * 2.0 ^ -f.mantissa) * 2.0 ^ (e - f.bias)
end

-- Returns the finite code whose value is nearest to x; on a tie, the even code.
local function nearest(f, x)
  if x ~= x then return 0x7f end
  local sign = (x < 0 or 1 / x < 0) and 0x80 or 0
  x = math.abs(x)
  local lo, hi = 0, f.most
  if x >= quarter(f, hi) then return sign | hi end
  while hi - lo > 1 do
    local mid = (lo + hi) // 2
    if quarter(f, mid) <= x then lo = mid else hi = mid end
  end
  local below, above = x - quarter(f, lo), quarter(f, hi) - x
  local up = above < below or above == below and lo & 1 == 1
  return sign | (up and hi or lo)
end

describe("pairs of 8-bit floats", function()
  for name, f in pairs(QUARTERS) do
    it("of " .. name .. " are f16 for all codes", function()
      local codes = {}
      for i = 0, 255 do codes[i + 1] = i | (i * 37 + 11 & 255) << 8 end
      local got = T.map({codes}, function(x)
        return {core.intrin("cvt.f16x2." .. name .. "x2", 0,
                            x:to(cute.u16))}
      end, "u32", "u32")[1]
      for i, pair in ipairs(codes) do
        for k = 0, 1 do
          local code = pair >> (8 * k) & 255
          local x = quarter(f, code & 127)
          local want = x and encode(FORMATS.f16, code > 127 and -x or x)
            or 0x7fff
          assert.equal(want, got[i] >> (16 * k) & 0xffff)
        end
      end
    end)

    it("of " .. name .. " are rounded of all f16, and of f32", function()
      local halves, floats = {}, {}
      for i = 1, 32768 do
        halves[i] = (i - 1) | (i * 40503 + 77 & 0xffff) << 16
        floats[i] = T.random() & 0xffffffff
      end
      -- Inputs are midpoints of neighbouring codes, and numbers near them.
      for i = 1, 2048 do
        local x = quarter(f, i % f.most) or 1
        x = (x + quarter(f, i % f.most + 1)) / 2
        local bits = string.unpack("<I4", string.pack("<f", x))
        floats[i] = bits + i % 3 - 1 | (i & 4) << 29
      end
      local got = T.map({halves, floats}, function(h, u)
        return {
          core.intrin("cvt." .. name .. "x2.f16x2", 0, h):to(cute.u32),
          core.intrin("cvt." .. name .. "x2", 0, u:bitcast(cute.f32),
                      (u ~ 0x80000000):bitcast(cute.f32)):to(cute.u32)}
      end, "u32", "u32")
      for i, h in ipairs(halves) do
        local lo = nearest(f, decode(FORMATS.f16, h & 0xffff))
        local hi = nearest(f, decode(FORMATS.f16, h >> 16))
        if got[1][i] ~= lo | hi << 8 then
          error(("%s of %08x: %04x, not %04x"):format(name, h, got[1][i],
            lo | hi << 8))
        end
        local x = string.unpack("<f", string.pack("<I4", floats[i]))
        lo = nearest(f, x)
        hi = nearest(f, -x)
        if got[2][i] ~= lo | hi << 8 then
          error(("%s of %a: %04x, not %04x"):format(name, x, got[2][i],
            lo | hi << 8))
        end
      end
    end)
  end
end)

---------------------------------------------------------------------------
-- Integers
---------------------------------------------------------------------------

local function signed(x, n) return x >= 1 << (n - 1) and x - (1 << n) or x end

-- Returns every value of n bits at every position of a word, with random other
-- bits.
local function all_values(n)
  local list = {}
  for at = 0, 32 - n, n do
    for x = 0, (1 << n) - 1 do
      local w = T.random() & ~((1 << n) - 1 << at)
      list[#list + 1] = w | x << at
    end
  end
  return list
end

describe("integers as floats", function()
  for _, n in ipairs {4, 8} do
    it(("of %d bits are exact"):format(n), function()
      local list = all_values(n)
      for name, f in pairs {bf16 = FORMATS.bf16, f16 = FORMATS.f16} do
        for sort, value in pairs {
          i = signed, u = function(x) return x end} do
          local per = 32 // n
          local convert = arch[("cvt_%s%dx%d_to_%sx%d"):format(sort, n, per,
                                                               name, per)]
          for _, zero in ipairs(n == 4 and {0, 3, 15} or {0}) do
            local got = T.map({list}, function(w)
              return {convert(w, n == 4 and zero or nil)}
            end, "u32", "u32")
            assert.equal(per // 2, #got)
            for i, w in ipairs(list) do
              for k = 0, per - 1 do
                local half = got[k // 2 + 1][i] >> (k % 2 * 16) & 0xffff
                local want = value(w >> (k * n) & (1 << n) - 1, n) - zero
                if decode(f, half) ~= want then
                  error(("%s%d of %08x, element %d: %g, not %d"):format(sort,
                    n, w, k, decode(f, half), want))
                end
              end
            end
          end
        end
      end
    end)
  end

  it("stand in vectors of elements", function()
    for _, n in ipairs {4, 8} do
      local count = 12
      local x = cute.zeros({count}, "i" .. n)
      local b, h = cute.zeros({count}, "bf16"), cute.zeros({count}, "f16")
      local f = cute.zeros({count}, "f32")
      for i = 0, count - 1 do x[i] = signed(i * 37 % (1 << n), n) end
      cute.kernel("k", function(from, bs, hs, fs)
        local v = from:load()
        if n == 4 then
          bs:store(arch.cvt_i4_bf16_intrinsic(v, count))
          hs:store(arch.cvt_i4x4_to_f16x4(v, 1) + 1)
          fs:store(arch.cvt_i4x2_to_bf16x2(v):to(cute.f32))
        else
          bs:store(arch.cvt_i8_bf16_intrinsic(v))
          hs:store(arch.cvt_i8x4_to_f16x4(v))
          fs:store(arch.cvt_i8x4_to_f32x4(v))
        end
      end)(x, b, h, f):launch {grid = 1, block = 1, device = "sim"}
      for i = 0, count - 1 do
        for _, t in ipairs {b, h, f} do assert.equal(x[i], t[i]) end
      end
    end
  end)

  it("take few instructions, for all targets", function()
    local function operations(convert)
      local program = cute.kernel("k", function(x, o)
        local t = arch.thread_idx()
        for i, w in ipairs {convert(x[t])} do o[{t, i - 1}] = w end
      end)(cute.zeros({32}, "u32"), cute.zeros({32, 4}, "u32"))
        :trace {block = 32}
      kernels.compiles(program, {"sm_80", "sm_90a"})
      local body = program.source:match "__global__.*"
      local function count(pattern)
        return select(2, body:gsub(pattern, ""))
      end
      return count "[%w_]+%([%w_]" + count " [%^>-]+ " - count "__[a-z_]+%(" - 1
    end
    assert.equal(13, operations(arch.cvt_i4x8_to_bf16x8))
    assert.equal(13, operations(arch.cvt_i4x8_to_f16x8))
    assert.equal(13, operations(arch.cvt_u4x8_to_f16x8))
    assert.equal(11, operations(arch.cvt_i8x4_to_bf16x4))
    assert.equal(4, operations(arch.cvt_u8x4_to_f16x4))
  end)

  it("reject unsupported types", function()
    local function refuses(want, f)
      raises(want, T.map, {{1}}, function(x) return {f(x)} end, "u32", "u32")
    end
    refuses("cvt_i4x8_to_bf16x8: a word (u32), or a vector of 8 i4 or a "
      .. "multiple of that expected, got a value of type i32",
      function(x) return (arch.cvt_i4x8_to_bf16x8(x:to(cute.i32))) end)
    refuses("the zero point must be a Lua integer from 0 to 15, not 16",
      function(x) return (arch.cvt_u4x8_to_f16x8(x, 16)) end)
    refuses("add_packed_bf16x2: a pair {x, y} of bf16, a word (u32), or a "
      .. "vector expected, got number",
      function(x) return (arch.add_packed_bf16x2(x, 1.5)) end)
  end)
end)
-- SPDX-License-Identifier: MIT
