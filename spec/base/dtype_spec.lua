local core = require "cute.core"

local to_bits, from_bits = core.to_bits, core.from_bits
local sim = require "spec.hardware.units"

-- Fields of a format: bits, the number of bits; m, the bits of the mantissa;
-- bias, the bias of the exponent; top, the code of the largest finite number;
-- inf, the code of infinity; sat, true if conversions saturate at top; nan, the
-- code that a NaN converts to.
local FORMATS = {
  f16 = {bits = 16, m = 10, bias = 15, top = 0x7bff, inf = 0x7c00,
         nan = 0x7fff},
  bf16 = {bits = 16, m = 7, bias = 127, top = 0x7f7f, inf = 0x7f80,
          nan = 0x7fff},
  e4m3 = {bits = 8, m = 3, bias = 7, top = 0x7e, sat = true, nan = 0x7f},
  e5m2 = {bits = 8, m = 2, bias = 15, top = 0x7b, inf = 0x7c, sat = true,
          nan = 0x7f},
  e2m1 = {bits = 4, m = 1, bias = 1, top = 0x7, sat = true, nan = 0x7},
  e2m3 = {bits = 6, m = 3, bias = 1, top = 0x1f, sat = true, nan = 0x1f},
  e3m2 = {bits = 6, m = 2, bias = 3, top = 0x1f, sat = true, nan = 0x1f},
}

local function is_nan(x) return x ~= x end

-- Returns the value of a finite code without sign, by definition.
local function value_of(f, code)
  local e, man = code >> f.m, code & ((1 << f.m) - 1)
  if e == 0 then return man * 2.0 ^ (1 - f.bias - f.m) end
  return ((1 << f.m) + man) * 2.0 ^ (e - f.bias - f.m)
end

-- Returns the next double above x, for a finite x > 0.
local function next_up(x)
  return (string.unpack("d", string.pack("i8",
    string.unpack("i8", string.pack("d", x)) + 1)))
end

local function next_down(x)
  return (string.unpack("d", string.pack("i8",
    string.unpack("i8", string.pack("d", x)) - 1)))
end

describe("small floats", function()
  for name, f in pairs(FORMATS) do
    local sign = 1 << (f.bits - 1)

    it(name .. ": every code has its value", function()
      local bad = 0
      for code = 0, sign - 1 do
        local x, y = from_bits(name, code), from_bits(name, code | sign)
        if code <= f.top then
          local v = value_of(f, code)
          if x ~= v or y ~= -v or 1 / y ~= 1 / -v then bad = bad + 1 end
        elseif code == f.inf then
          if x ~= math.huge or y ~= -math.huge then bad = bad + 1 end
        elseif not is_nan(x) or not is_nan(y) then
          bad = bad + 1
        end
      end
      assert.equal(0, bad)
    end)

    it(name .. ": values, midpoints and their neighbours round", function()
      local bad = 0
      local function check(x, code)
        if to_bits(name, x) ~= code then bad = bad + 1 end
        if to_bits(name, -x) ~= code | sign then bad = bad + 1 end
      end
      for code = 0, f.top do
        local x = value_of(f, code)
        check(x, code)
        if code < f.top then
          -- The midpoint of two neighbouring values is exact in a double.
          local mid = (x + value_of(f, code + 1)) / 2
          check(mid, code % 2 == 0 and code or code + 1)
          check(next_up(mid), code + 1)
          check(next_down(mid), code)
        end
      end
      assert.equal(0, bad)
    end)

    it(name .. ": overflow, infinity, NaN, the smallest doubles", function()
      local top = value_of(f, f.top)
      local half = (top - value_of(f, f.top - 1)) / 2
      local past = f.sat and f.top or f.inf
      assert.equal(f.top, to_bits(name, next_down(top + half)))
      -- The number top + half is a tie, which rounds to the even code. In a
      -- format with infinities, top's code is odd, so the result is the next
      -- code, which is infinity. A format that saturates converts the tie to
      -- top.
      assert.equal(past, to_bits(name, top + half))
      assert.equal(past, to_bits(name, 1e300))
      assert.equal(past | sign, to_bits(name, -1e300))
      assert.equal(past, to_bits(name, math.huge))
      assert.equal(past | sign, to_bits(name, -math.huge))
      assert.equal(f.nan, to_bits(name, 0 / 0))
      assert.equal(f.nan, to_bits(name, -(0 / 0)))
      assert.equal(0, to_bits(name, 0x0.1p-1022))
      assert.equal(sign, to_bits(name, -0.0))
      assert.equal(sign, to_bits(name, -1e-300))
    end)
  end

  it("starts from f32 as from double", function()
    local lows = {0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff}
    for _, name in ipairs {"f16", "bf16"} do
      local bad = 0
      for high = 0, 0xffff, 3 do
        for _, low in ipairs(lows) do
          local u = high << 16 | low
          local x = string.unpack("<f", string.pack("<I4", u))
          if sim.float_to_bits(name, u) ~= to_bits(name, x) then
            bad = bad + 1
          end
        end
      end
      assert.equal(0, bad)
      for u = 0, 0xffff do  -- the conversion back to f32
        local w = sim.bits_to_float(name, u)
        local x = string.unpack("<f", string.pack("<I4", w))
        local y = from_bits(name, u)
        if x ~= y and not (is_nan(x) and is_nan(y)) then bad = bad + 1 end
      end
      assert.equal(0, bad)
    end
  end)
end)

describe("tf32", function()
  it("rounds to ten fraction bits, ties to even", function()
    assert.equal(0x3f800000, to_bits("tf32", 1))
    assert.equal(0x3f800000, to_bits("tf32", 1 + 2.0 ^ -11))
    assert.equal(0x3f802000, to_bits("tf32", 1 + 2.0 ^ -11 + 2.0 ^ -40))
    assert.equal(0x3f804000, to_bits("tf32", 1 + 3 * 2.0 ^ -11))
    assert.equal(0xbf804000, to_bits("tf32", -1 - 3 * 2.0 ^ -11))
    assert.equal(0x7f800000, to_bits("tf32", 3.5e38))
    assert.equal(0x00002000, to_bits("tf32", 2.0 ^ -136))
    assert.equal(0x7fffffff, to_bits("tf32", 0 / 0))
  end)
  it("reads only its 19 bits", function()
    assert.equal(1.0, from_bits("tf32", 0x3f801fff))
  end)
end)

describe("f32 and f64", function()
  it("f32 rounds once", function()
    assert.equal(0x3f800000, to_bits("f32", 1 + 2.0 ^ -24))
    assert.equal(0x3f800001, to_bits("f32", next_up(1 + 2.0 ^ -24)))
    assert.equal(0x7fffffff, to_bits("f32", 0 / 0))
    assert.equal(0x7f800000, to_bits("f32", 1e39))
  end)
  it("f64 is itself", function()
    assert.equal(0x3ff0000000000000, to_bits("f64", 1))
    assert.equal(-2.5, from_bits("f64", to_bits("f64", -2.5)))
  end)
end)

describe("ue8m0", function()
  it("holds powers of two", function()
    for code = 0, 254 do
      assert.equal(2.0 ^ (code - 127), from_bits("ue8m0", code))
      assert.equal(code, to_bits("ue8m0", 2.0 ^ (code - 127)))
    end
    assert.is_true(is_nan(from_bits("ue8m0", 255)))
  end)
  -- PyTorch 2.15, ml_dtypes 0.6 and onnx.reference 1.22 (with round_mode =
  -- "nearest", without its fault at 2^-127) return the same codes.
  it("rounds to the nearest, half way up", function()
    for x, code in pairs {[1.4999] = 127, [1.5] = 128, [2.9999] = 128,
                          [3] = 129, [6] = 130, [0.75] = 127,
                          [1.5 * 2.0 ^ -126] = 2,
                          [1.5 * 2.0 ^ -127] = 1, [1.4999 * 2.0 ^ -127] = 0,
                          [2.0 ^ -128] = 0, [2.0 ^ -149] = 0, [-3] = 129} do
      assert.equal(code, to_bits("ue8m0", x), x)
    end
    assert.equal(254, to_bits("ue8m0", 1e300))
    assert.equal(0, to_bits("ue8m0", 0))
    assert.equal(255, to_bits("ue8m0", 0 / 0))
  end)
end)

describe("integers", function()
  it("truncate toward zero and saturate", function()
    local cases = {
      {"i8", 127.9, 127}, {"i8", 128, 127}, {"i8", -128.9, 0x80},
      {"i8", -1e9, 0x80}, {"i8", -1.9, 0xff}, {"u8", 255.9, 255},
      {"u8", 300, 255}, {"u8", -0.5, 0}, {"u8", -7, 0},
      {"i16", -32769, 0x8000}, {"u16", 65536, 65535}, {"i32", 2.0 ^ 31,
      0x7fffffff}, {"i32", -2.0 ^ 31, 0x80000000}, {"i32", -1, 0xffffffff},
      {"u32", 2.0 ^ 32, 0xffffffff}, {"i64", 2.0 ^ 63, math.maxinteger},
      {"i64", -1e300, math.mininteger}, {"u64", 2.0 ^ 63, math.mininteger},
      {"u64", 1e300, -1}, {"i4", 9, 7}, {"i4", -9, 8}, {"i4", -1, 15},
      {"u4", 20, 15}, {"b1", 5, 1}, {"boolean", 0.25, 1}, {"boolean", 0, 0},
      {"i64", math.maxinteger, math.maxinteger},
    }
    for _, c in ipairs(cases) do
      assert.equal(c[3], to_bits(c[1], c[2]), c[1] .. " " .. c[2])
    end
  end)
  it("convert a NaN as cvt does", function()
    assert.equal(0x80000000, to_bits("i32", 0 / 0))  -- from f64
    assert.equal(0, sim.float_to_bits("i32", 0x7fc00000))
    assert.equal(math.mininteger, sim.float_to_bits("i64", 0x7fc00000))
  end)
  it("read with their sign", function()
    assert.equal(-1, from_bits("i8", 0xff))
    assert.equal(255, from_bits("u8", 0xff))
    assert.equal(-8, from_bits("i4", 8))
    assert.equal(math.mininteger, from_bits("i64", math.mininteger))
  end)
  it("64 bits to f32 in one rounding", function()
    -- 2^60 + 2^36 + 1: a conversion through double would lose the last 1 and
    -- round the tie down
    local f = sim.bits_to_float("i64", (1 << 60) + (1 << 36) + 1)
    assert.equal(0x5d800001, f)
  end)
end)

describe("packed arrays", function()
  -- Returns bytes as a list of bits, least significant first.
  local function bits_of(bytes)
    local out = {}
    for i = 1, #bytes do
      for k = 0, 7 do out[#out + 1] = bytes:byte(i) >> k & 1 end
    end
    return out
  end
  for name, width in pairs {b1 = 1, i4 = 4, e2m1 = 4, e2m3 = 6, u8 = 8,
                            bf16 = 16, f32 = 32, i64 = 64} do
    it(name .. ": low bits first", function()
      local words, seed = {}, 12345
      for i = 1, 37 do
        seed = seed * 6364136223846793005 + 1442695040888963407
        words[i] = width == 64 and seed or (seed >> 20) & ((1 << width) - 1)
      end
      local s = sim.pack(name, words)
      assert.equal((37 * width + 7) // 8, #s)
      local bits = bits_of(s)
      for i, w in ipairs(words) do
        for k = 0, width - 1 do
          assert.equal(w >> k & 1, bits[(i - 1) * width + k + 1])
        end
      end
      assert.same(words, sim.unpack(name, s, 37))
    end)
  end
end)

describe("names", function()
  it("knows CUTLASS's, the Python DSL's and C's", function()
    local aliases = {
      f32 = "Float32 float float32 f32", bf16 = "BFloat16 bfloat16_t",
      f16 = "Float16 half half_t float16", i8 = "Int8 int8_t int8",
      u8 = "Uint8 uint8", e4m3 = "Float8E4M3FN float_e4m3_t",
      e5m2 = "Float8E5M2 float_e5m2_t", f64 = "double Float64",
      boolean = "Boolean bool", tf32 = "TFloat32 tfloat32_t",
      i32 = "int Int32", i4 = "Int4 int4b_t", ue8m0 = "Float8E8M0FNU",
      e2m1 = "Float4E2M1FN", b1 = "uint1b_t",
    }
    for name, list in pairs(aliases) do
      for alias in list:gmatch "%S+" do
        assert.equal(name, tostring(core.find_dtype(alias)), alias)
      end
    end
    assert.is_nil(core.find_dtype "float17")
    assert.is_nil(core.find_dtype "")
  end)
end)
-- SPDX-License-Identifier: MIT
