-- Tests bit operations, products and arithmetic under the Python DSL's names,
-- on edge values and random ones. Plain Lua computes the expected results.
local core = require "cute.core"
local cute = require "cute"
local arch = cute.arch
local T = require "spec.values"
local support = require "spec.support"
local raises, f32 = support.raises, support.f32

local function single(f) return function(a) return f(a) end end

-- Compares f(x, y) with want(x, y) on all pairs of u32 words. The words are Lua
-- integers from 0 to 2^32 - 1; the result of want() is truncated to 32 bits.
local function words(f, want, cast)
  local x, y = T.pairs32()
  local got = T.map({x, y}, function(a, b)
    if cast then a, b = a:to(cute[cast]), b:to(cute[cast]) end
    return {(f(a, b):to(cute.u32))}
  end, "u32", "u32")
  for i = 1, #x do
    local w = want(x[i], y[i]) & 0xffffffff
    if got[1][i] ~= w then
      error(("%x, %x: %x instead of %x"):format(x[i], y[i], got[1][i], w))
    end
  end
end

local function s32(x) return x >= 1 << 31 and x - (1 << 32) or x end
local function s24(x)
  x = x & 0xffffff
  return x >= 1 << 23 and x - (1 << 24) or x
end

local function popc(x)
  local n = 0
  for k = 0, 63 do n = n + (x >> k & 1) end
  return n
end

local function highest(x)
  for k = 63, 0, -1 do if x >> k & 1 == 1 then return k end end
  return -1
end

local function reverse(x)
  local r = 0
  for k = 0, 31 do r = r << 1 | x >> k & 1 end
  return r
end

-- Computes bfe (bit field extract) by PTX's definition, bit by bit.
local function field(a, pos, len, signed)
  pos, len = pos & 255, len & 255
  local top = 0
  if signed and len > 0 then top = a >> math.min(pos + len - 1, 31) & 1 end
  local d = 0
  for i = 0, 31 do
    local bit = top
    if i < len and pos + i <= 31 then bit = a >> (pos + i) & 1 end
    d = d | bit << i
  end
  return d
end

local function insert(f, base, pos, len)
  for i = 0, 31 do
    if i < len & 255 and (pos & 255) + i <= 31 then
      local at = (pos & 255) + i
      base = base & ~(1 << at) | (f >> i & 1) << at
    end
  end
  return base
end

describe("bits", function()
  it("count, find and reverse", function()
    words(single(arch.popc), popc)
    words(single(arch.clz), function(x) return 31 - highest(x) end)
    words(single(arch.bfind), highest)
    words(single(arch.bfind), function(x)
      return highest(x >> 31 == 1 and ~x & 0xffffffff or x)
    end, "i32")
    words(single(arch.brev), reverse)
    words(single(arch.brev), reverse, "i32")
  end)

  it("are extracted and inserted as in PTX", function()
    for _, at in ipairs {{0, 0}, {0, 32}, {3, 7}, {31, 1}, {20, 20}, {31, 9},
        {32, 4}, {40, 3}, {255, 255}, {256, 8}} do
      words(function(a) return arch.bfe(a, at[1], at[2]) end,
            function(a) return field(a, at[1], at[2]) end)
      words(function(a) return arch.bfe(a, at[1], at[2]) end,
            function(a) return field(a, at[1], at[2], true) end, "i32")
      words(function(a, b) return arch.bfi(a, b, at[1], at[2]) end,
            function(a, b) return insert(a, b, at[1], at[2]) end)
    end
    words(function(a, b) return arch.bfe(a, b & 31, b >> 5 & 31) end,
          function(a, b) return field(a, b & 31, b >> 5 & 31) end)
    words(function(a, b) return arch.bfi(a, ~a, b & 63, b >> 6 & 63) end,
          function(a, b)
            return insert(a, ~a & 0xffffffff, b & 63, b >> 6 & 63)
          end)
  end)

  it("are permuted, combined and shifted", function()
    words(function(a, b) return arch.prmt(a, b, 0x0735) end, function(a, b)
      local bytes = b << 32 | a
      return (bytes >> 40 & 255) | (bytes >> 24 & 255) << 8
        | (bytes >> 56 & 255) << 16 | (bytes & 255) << 24
    end)
    words(function(a, b) return arch.prmt(a, b, b) end, function(a, b)
      local d, bytes = 0, b << 32 | a
      for k = 0, 3 do
        local s = b >> 4 * k & 15
        local byte = bytes >> 8 * (s & 7) & 255
        if s >= 8 then byte = byte >= 128 and 255 or 0 end
        d = d | byte << 8 * k
      end
      return d
    end)
    words(function(a, b) return arch.lop3(a, b, a >> 3, 0x96) end,
          function(a, b) return a ~ b ~ a >> 3 end)
    words(function(a, b) return arch.lop3(a, b, b << 1, 0xca) end,
          function(a, b) return a & b | ~a & (b << 1) end)
    words(function(a, b) return arch.shf(a, b, b & 63) end,
          function(a, b)
            local n = b & 31
            return ((b << 32 | a) << n) >> 32
          end)
    words(function(a, b) return arch.shf(a, b, b & 63, "r") end,
          function(a, b) return (b << 32 | a) >> (b & 31) end)
    words(function(a, b) return arch.shf(a, b, b & 63, "clamp_right") end,
          function(a, b) return (b << 32 | a) >> math.min(b & 63, 32) end)
    words(function(a, b) return arch.shf(a, b, b & 63, "clamp_left") end,
          function(a, b)
            local n = math.min(b & 63, 32)
            return n == 32 and a or ((b << 32 | a) << n) >> 32
          end)
  end)

  it("of 64-bit integers work the same", function()
    local x = T.words64()
    local got = T.map({x}, function(a)
      return {arch.popc(a):to(cute.u64), arch.clz(a):to(cute.u64),
              arch.brev(arch.brev(a)), arch.bfind(a):to(cute.u64),
              arch.bfe(a, 5, 40), arch.bfi(a, ~a, 7, 50), a << 9, a >> 17,
              arch.mul_hi(a, a)}
    end, "u64", "u64")
    for i, a in ipairs(x) do
      assert.equal(popc(a), got[1][i])
      assert.equal(63 - highest(a), got[2][i])
      assert.equal(a, got[3][i])
      assert.equal(highest(a), got[4][i])
      assert.equal(a >> 5 & (1 << 40) - 1, got[5][i])
      local mask = (1 << 50) - 1 << 7
      assert.equal(~a & ~mask | a << 7 & mask, got[6][i])
      assert.equal(a << 9, got[7][i])
      assert.equal(a >> 17, got[8][i])
      local lo, hi = a & 0xffffffff, a >> 32
      local mid = (lo * lo >> 32) + 2 * (hi * lo & 0xffffffff)
      assert.equal(hi * hi + 2 * (hi * lo >> 32) + (mid >> 32), got[9][i])
    end
  end)

  it("of constants are folded; of variables they have bounds", function()
    local k = cute.kernel("k", function(o)
      o[0] = arch.popc(core.cvt(0xff00, cute.i32))
      assert.same({lo = 0, hi = 32, div = 1}, core.fact(arch.clz(o[1])))
      local bits5 = arch.bfe(o[1]:to(cute.u32), 3, 5)
      assert.same({lo = 0, hi = 31, div = 1}, core.fact(bits5))
    end)
    local program = k(cute.zeros({2}, "i32")):trace {block = 1}
    assert.is_truthy(program.source:find("o[0] = 8;", 1, true))
    assert.is_nil(program.source:find("__popc", 1, true))
  end)
end)

describe("products", function()
  it("have upper halves, full-width results and 24-bit forms", function()
    words(arch.mul_hi, function(a, b) return a * b >> 32 end)
    words(arch.mul_hi, function(a, b) return s32(a) * s32(b) >> 32 end, "i32")
    words(function(a, b) return arch.mul_wide(a, b) >> 16 end,
          function(a, b) return a * b >> 16 end)
    words(function(a, b) return arch.mul_wide(a, b) >> 16 end,
          function(a, b) return s32(a) * s32(b) >> 16 end, "i32")
    words(arch.mul24, function(a, b) return s24(a) * s24(b) end, "i32")
    words(arch.mul24, function(a, b)
      return (a & 0xffffff) * (b & 0xffffff)
    end)
    words(function(a, b) return arch.mul24(a, b, true) end,
          function(a, b) return s24(a) * s24(b) >> 16 end, "i32")
    words(function(a, b) return arch.mad24(a, b, a) end,
          function(a, b) return s24(a) * s24(b) + a end, "i32")
    words(function(a, b) return arch.mad24(a, b, b, true) end,
          function(a, b)
            return ((a & 0xffffff) * (b & 0xffffff) >> 16) + b
          end)
    words(function(a, b)
      return arch.mul_wide(a:to(cute.i16), b:to(cute.i16))
    end, function(a, b)
      local function s16(x) x = x & 0xffff
        return x >= 32768 and x - 65536 or x end
      return s16(a) * s16(b)
    end)
  end)

  it("and sums of several words propagate carries", function()
    local x, y = T.pairs32()
    -- the sum of the 96-bit numbers {a, b, a} and {b, a, 0} (lowest word
    -- first), the difference of {a, b} and {b, a}, and a * b + b
    local got = T.map({x, y}, function(a, b)
      local s0 = arch.add_cc(a, b)
      local s1 = arch.addc(b, a)
      local s2 = arch.addc(a, 0)
      local d0 = arch.sub_cc(a, b)
      local d1 = arch.subc(b, a)
      local m0 = arch.mad_cc(a, b, b)
      local m1 = arch.addc(arch.mul_hi(a, b), 0)
      return {s0, s1, s2, d0, d1, m0, m1}
    end, "u32", "u32")
    for i = 1, #x do
      local a, b = x[i], y[i]
      local low = a + b
      local mid = b + a + (low >> 32)
      assert.equal(low & 0xffffffff, got[1][i])
      assert.equal(mid & 0xffffffff, got[2][i])
      assert.equal(a + (mid >> 32) & 0xffffffff, got[3][i])
      assert.equal(a - b & 0xffffffff, got[4][i])
      assert.equal(b - a - (a < b and 1 or 0) & 0xffffffff, got[5][i])
      local p = a * b + b
      assert.equal(p & 0xffffffff, got[6][i])
      assert.equal(p >> 32, got[7][i])
    end
    raises("no previous sub_cc", function()
      cute.kernel("k", function(o)
        arch.add_cc(o[0], 1)
        o[0] = arch.subc(o[0], 1)
      end)(cute.zeros({1}, "i32")):trace {block = 1}
    end)
  end)
end)

---------------------------------------------------------------------------

describe("floats", function()
  local NAN, INF = 0.0 / 0.0, math.huge
  local VALUES = {0.0, -0.0, 1.0, -1.0, 2.5, -3.75, 2.0 ^ -126, 2.0 ^ -127,
                  -2.0 ^ -149, 3.4e38, INF, -INF, NAN, 0.1, 1e-30, 16777217.0}

  local function same(want, got, what)
    if want ~= want then assert.is_true(got ~= got, what)
    else
      assert.equal(want, got, what)
      assert.equal(1 / want, 1 / got, what)
    end
  end

  it("have a minimum and a maximum, by several rules", function()
    local x, y = {}, {}
    for _, a in ipairs(VALUES) do
      for _, b in ipairs(VALUES) do
        x[#x + 1], y[#y + 1] = f32(a), f32(b)
      end
    end
    local got = T.map({x, y}, function(a, b)
      return {arch.fmax(a, b), arch.fmin(a, b),
              arch.fmax(a, b, {nan = true}), arch.fmin(a, b, {nan = true}),
              arch.fmax(a, b, {ftz = true}), arch.fmax(a, b, {abs = true})}
    end, "f32", "f32")
    local function max(a, b)
      if a ~= a then return b end
      if b ~= b then return a end
      if a == b then return 1 / a > 0 and a or b end
      return math.max(a, b)
    end
    local function min(a, b) return -max(-a, -b) end
    local function flush(a) return math.abs(a) < 2.0 ^ -126 and a * 0.0 or a end
    for i, a in ipairs(x) do
      local b = y[i]
      local what = ("%g, %g"):format(a, b)
      same(max(a, b), got[1][i], what .. " max")
      same(min(a, b), got[2][i], what .. " min")
      same(a ~= a and a or b ~= b and b or max(a, b), got[3][i], what)
      same(a ~= a and a or b ~= b and b or min(a, b), got[4][i], what)
      same(max(flush(a), flush(b)), got[5][i], what .. " ftz")
      if a == a and b == b then
        local m = math.max(math.abs(a), math.abs(b))
        local negative = (a < 0 or 1 / a < 0) ~= (b < 0 or 1 / b < 0)
        same(negative and -m or m, got[6][i], what .. " abs")
      end
    end
  end)

  it("are classified", function()
    local x = {}
    for i, a in ipairs(VALUES) do x[i] = f32(a) end
    local got = T.map({x}, function(a)
      local function int(p) return p:to(cute.f32) end
      return {int(cute.isnan(a)), int(cute.isinf(a)), int(cute.isfinite(a)),
              int(cute.isnormal(a))}
    end, "f32", "f32")
    local function b(p) return p and 1.0 or 0.0 end
    for i, a in ipairs(x) do
      assert.equal(b(a ~= a), got[1][i])
      assert.equal(b(math.abs(a) == INF), got[2][i])
      assert.equal(b(math.abs(a) < INF), got[3][i])
      assert.equal(b(math.abs(a) >= 2.0 ^ -126 and math.abs(a) < INF),
                   got[4][i])
      assert.equal(a ~= a, cute.isnan(a))
    end
    raises("isnan of i32", function()
      cute.kernel("k", function(o) o[0] = cute.isnan(o[0]):to(cute.i32) end)(
        cute.zeros({1}, "i32")):trace {block = 1}
    end)
  end)

  it("round in the given direction", function()
    local x, y = {}, {}
    for i = 1, 200 do
      x[i] = f32((T.random() / 2.0 ^ 30 - 1) * 2.0 ^ (i % 40 - 20))
      y[i] = f32(T.random() / 2.0 ^ 31 + 0.25)
    end
    local ops = {"add", "mul", "div"}
    local got = T.map({x, y}, function(a, b)
      local r = {}
      for _, op in ipairs(ops) do
        for _, mode in ipairs {"rm", "rn", "rp", "rz"} do
          r[#r + 1] = cute[op](a, b, {rounding = mode})
        end
      end
      return r
    end, "f32", "f32")
    for i = 1, #x do
      -- For this test's x and y, the double result is almost exact: it must lie
      -- between the f32 result rounded down and the one rounded up.
      for k, exact in ipairs {x[i] + y[i], x[i] * y[i], x[i] / y[i]} do
        local at = (k - 1) * 4
        local down, near, up, zero = got[at + 1][i], got[at + 2][i],
          got[at + 3][i], got[at + 4][i]
        assert.is_true(down <= exact and exact <= up)
        assert.equal(f32(exact), near)
        assert.equal(exact >= 0 and down or up, zero)
        assert.is_true(up - down <= math.abs(exact) * 2.0 ^ -22)
      end
    end
    raises("no rounding 'xx'", function()
      cute.add(1.0, 2.0, {rounding = "xx"})
    end)
  end)
end)

describe("floats", function()
  it("convert to tensor-core types", function()
    local x = {}
    for i = 1, 300 do x[i] = f32((T.random() - 2.0 ^ 31) / 1000) end
    x[301], x[302] = 1 + 2.0 ^ -11, -(1 + 3 * 2.0 ^ -11)  -- ties
    local got = T.map({x}, function(a)
      return {arch.cvt_f32_tf32(a):bitcast(cute.f32),
              arch.cvt_f32_bf16(a):to(cute.f32)}
    end, "f32", "f32")
    for i, a in ipairs(x) do
      local _, e = T.frexp(a)
      local step = 2.0 ^ (e - 11)
      local n = math.abs(a) / step
      assert.equal(math.floor(n + 0.5) * step, math.abs(got[1][i]))
      local u = string.unpack("<I4", string.pack("<f", a))
      u = u + 0x7fff + (u >> 16 & 1) & 0xffff0000
      assert.equal((string.unpack("<f", string.pack("<I4", u))), got[2][i])
    end
  end)
end)

describe("arithmetic by name", function()
  it("equals the operators, and has remainders and powers", function()
    local x, y = {}, {}
    for a = -6, 6 do
      for b = -5, 5 do
        if b ~= 0 then x[#x + 1], y[#y + 1] = a, b end
      end
    end
    local got = T.map({x, y}, function(a, b)
      return {cute.add(a, b), cute.sub(a, b), cute.mul(a, b), cute.neg(a),
              cute.rem(a, b), cute.clamp(a, -2, 3), cute.absi(a),
              cute.ipowi(a, 5), cute.ipowi(a, b), cute.ipowi(a, -3),
              arch.log2_of_pow2_int(core.cvt(1, cute.i32) << (b & 7))}
    end, "i32", "i32")
    local function pow(a, n)
      if n < 0 then
        return a == 1 and 1 or a == -1 and (n % 2 == 0 and 1 or -1) or 0
      end
      local r = 1
      for _ = 1, n do r = r * a end
      return r
    end
    for i = 1, #x do
      local a, b = x[i], y[i]
      assert.same({a + b, a - b, a * b, -a, math.fmod(a, b),
                   math.max(-2, math.min(a, 3)), math.abs(a), pow(a, 5),
                   pow(a, b), pow(a, -3), b & 7},
        {got[1][i], got[2][i], got[3][i], got[4][i], got[5][i], got[6][i],
         got[7][i], got[8][i], got[9][i], got[10][i], got[11][i]})
    end
  end)

  it("of floats too, and of numbers", function()
    local x = {1.5, -2.25, 0.0, 3.0}
    local got = T.map({x}, function(a)
      local s, c = cute.sincos(a)
      return {cute.fpowi(a, 3), cute.fpowi(a, -2), cute.fpowi(a, 0),
              cute.rem(a, 2.0), s, c, cute.div(a, 4.0), cute.absf(a)}
    end, "f32", "f32")
    for i, a in ipairs(x) do
      assert.equal(a ^ 3, got[1][i])
      if a ~= 0 then assert.equal(f32(1 / (a * a)), got[2][i]) end
      assert.equal(1.0, got[3][i])
      assert.equal(math.fmod(a, 2.0), got[4][i])
      assert.is_true(math.abs(math.sin(a) - got[5][i]) < 1e-6)
      assert.is_true(math.abs(math.cos(a) - got[6][i]) < 1e-6)
      assert.equal(a / 4, got[7][i])
      assert.equal(math.abs(a), got[8][i])
    end
    assert.equal(8, cute.ipowi(2, 3))
    assert.equal(3, cute.clamp(9, 0, 3))
    assert.equal(-1.0, cute.rem(-7, 2))
  end)

  it("takes vectors element by element", function()
    local x = cute.zeros({32 * 4}, "f32")
    local o, n = cute.zeros({32 * 4, 7}, "f32"), cute.zeros({32 * 4}, "i32")
    for i = 0, 127 do x[i], n[i] = (i - 60) * 0.37, i - 64 end
    x[5], x[6] = 1 / 0, 0 / 0
    local r = cute.kernel("k", function(a, out, ints)
      local t = arch.thread_idx()
      local v = cute.local_tile(a, {4}, {t}):load()
      local k = cute.local_tile(ints, {4}, {t}):load()
      local one = cute.full_like(v, 1.0)
      for j, w in ipairs {
        cute.where(cute.isnan(v), one, v), cute.where(cute.isinf(v), one, 0.0),
        cute.where(cute.isfinite(v) & cute.isnormal(v), one, 0.0),
        cute.clamp(v, -1.0, 1.0), cute.add(v, one, {rounding = "rm"}),
        cute.fpowi(v, 2), cute.rem(k, 5):to(cute.f32)} do
        for i = 0, 3 do out[{t * 4 + i, j - 1}] = w[i] end
      end
    end)(x, o, n):launch {grid = 1, block = 32, device = "sim"}
    assert.is_true(r.ok)
    local function b(p) return p and 1.0 or 0.0 end
    for i = 0, 127 do
      local a = x[i]
      assert.equal(a ~= a and 1.0 or a, o(i, 0))
      assert.equal(b(a == math.huge), o(i, 1))
      assert.equal(b(a == a and a ~= math.huge and a ~= 0), o(i, 2))
      if a == a then
        assert.equal(math.max(-1.0, math.min(1.0, a)), o(i, 3))
        assert.is_true(o(i, 4) <= a + 1 and o(i, 4) >= f32(a + 1) - 1e-5
          or a == math.huge)
        assert.equal(f32(a * a), o(i, 5))
      end
      assert.equal(math.fmod(n[i], 5) * 1.0, o(i, 6))
    end
  end)

  it("divides by a prepared divisor", function()
    for _, d in ipairs {1, 2, 3, 7, 10, 641, 65535, 65536, 1000003,
        0x7fffffff} do
      local x = {0, 1, d - 1, d, d + 1, 2 * d - 1, 0x7fffffff, 0x7ffffffe}
      for i = 1, #x do x[i] = math.min(x[i], 0x7fffffff) end
      for i = 9, 64 do x[i] = T.random() >> 1 end
      local got = T.map({x}, function(a, n)
        local fast = cute.fast_divmod_create_divisor(n)
        local q, r = fast:divmod(a)
        return {a // fast, a % fast, q, r}
      end, "i32", "i32", d)
      for i, a in ipairs(x) do
        assert.equal(a // d, got[1][i], a .. " // " .. d)
        assert.equal(a % d, got[2][i])
        assert.equal(a // d, got[3][i])
        assert.equal(a % d, got[4][i])
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
