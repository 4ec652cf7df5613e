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
-- Expected results, computed in plain Lua
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

-- Returns the code of x in the 16-bit float format f, rounded to nearest even.
-- A NaN becomes 0x7fff.
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

-- Returns a * b + c with one rounding. The product is exact in a double, and
-- the sum of the product and c is rounded to odd.
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

-- Returns n words of two 16-bit halves. The first words have all pairs of edge
-- values of both formats; the other words are random.
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

  it("work in tables and vectors, too", function()
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
    raises("write an operation for each element", call.launch, call,
           {grid = 1, block = 32, device = "sim:sm_90a"})
    kernels.compiles(call:trace {block = 32, arch = "sm_100a"}, {"sm_100a"})
  end)
end)

---------------------------------------------------------------------------
-- Pairs of f32
---------------------------------------------------------------------------

local TARGETS = {"sm_100a", "sm_100f", "sm_103a", "sm_110a", "sm_120a"}
local MODES = {"rn", "rz", "rm", "rp"}

local function number(u) return (string.unpack("<f", string.pack("<I4", u))) end

-- Returns the f32 bits of the exact sum s + err, rounded once in the PTX
-- rounding mode `mode`. err is less than half an ulp of the double s.
local function to_f32(s, err, mode)
  if s ~= s then return 0x7fffffff end
  local sign = (s < 0 or 1 / s < 0) and 0x80000000 or 0
  s, err = math.abs(s), sign ~= 0 and -err or err
  if s == math.huge then return sign | 0x7f800000 end
  if mode == "rm" or mode == "rp" then
    mode = (mode == "rp") == (sign == 0) and "up" or "rz"
  end
  local m, e = T.frexp(s)
  if m == 0.5 and err < 0 then e = e - 1 end
  local q = 2.0 ^ math.max(e - 24, -149)
  local n = s // q
  local rest = s / q - n
  if rest == 0 and err < 0 then n, rest = n - 1, 1 end
  local half = rest - 0.5
  if half == 0 then half = err end
  local up = rest == 1 and mode ~= "rn" and mode ~= "rz"
    or mode == "up" and (rest > 0 or err > 0)
    or mode == "rn" and (half > 0 or half == 0 and n % 2 == 1)
  n = up and n + 1 or n
  local x = n * q
  if x >= 2.0 ^ 128 then
    return sign | (mode == "rz" and 0x7f7fffff or 0x7f800000)
  end
  return sign | string.unpack("<I4", string.pack("<f", x))
end

-- Returns x + y rounded to a double, and the exact rounding error: the exact
-- sum minus that double.
local function two_sum(x, y)
  local s = x + y
  if s ~= s or s == math.huge or s == -math.huge then return s, 0 end
  local b = s - x
  return s, (x - (s - b)) + (y - b)
end

-- Returns the f32 bits of a * b + c, rounded once in this mode. If c is nil,
-- returns the bits of a * b.
local function fused(a, b, c, mode)
  local p = a * b
  if not c then return to_f32(p, 0, mode) end
  local s, err = two_sum(p, c)
  -- If the exact sum is zero, it is -0 when the mode rounds down. Otherwise it
  -- is -0 only if both terms are -0.
  if s == 0 and (p ~= 0 or 1 / p ~= 1 / c) then s = mode == "rm" and -0.0 or 0.0
  end
  return to_f32(s, err, mode)
end

local EXACT = {
  add = function(a, b, _, mode) return fused(a, 1.0, b, mode) end,
  sub = function(a, b, _, mode) return fused(a, 1.0, -b, mode) end,
  mul = function(a, b, _, mode) return fused(a, b, nil, mode) end,
  fma = fused,
}

local function tiny(u) return u & 0x7fffffff < 0x800000 end
local function flushed(u) return tiny(u) and u & 0x80000000 or u end

-- Returns a list of n words, the bits of f32 numbers. The first 256 words cycle
-- through 16 edge values and repeat each `step` times. Then random numbers of
-- similar magnitude alternate with random words.
local function f32_words(n, step)
  local edges = {0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x00800000,
                 0x80800001, 0x3f800000, 0xbf800000, 0x3f800001, 0x4b000001,
                 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00001}
  local list = {}
  for i = 1, n do
    list[i] = i <= 256 and edges[(i - 1) // step % 16 + 1]
      or i % 2 == 0 and T.random() & 0x80ffffff | 0x3f000000
      or T.random() & 0xffffffff
  end
  return list
end

describe("pairs of f32", function()
  for op, exact in pairs(EXACT) do
    it("are rounded as rnd says: " .. op, function()
      local a, b, c = f32_words(600, 1), f32_words(600, 16), f32_words(600, 5)
      local got = T.map({a, b, c}, function(x, y, z)
        x, y, z = x:bitcast(cute.f32), y:bitcast(cute.f32), z:bitcast(cute.f32)
        local r = {}
        for _, ftz in ipairs {false, true} do
          for _, mode in ipairs(MODES) do
            local args = {{x, z}, {y, x}}
            if op == "fma" then args[3] = {z, y} end
            args[#args + 1] = {rnd = mode, ftz = ftz}
            local two = arch[op .. "_packed_f32x2"](table.unpack(args))
            r[#r + 1], r[#r + 2] = two[1]:bitcast(cute.u32),
              two[2]:bitcast(cute.u32)
          end
        end
        return r
      end, "u32", "u32", nil, "sim:sm_100a")
      for column, list in ipairs(got) do
        local mode, ftz = MODES[(column - 1) // 2 % 4 + 1], column > 8
        local first = column % 2 == 1
        for i, word in ipairs(list) do
          local u = first and {a[i], b[i], c[i]} or {c[i], a[i], b[i]}
          if ftz then for k = 1, 3 do u[k] = flushed(u[k]) end end
          local x, y, z = number(u[1]), number(u[2]), number(u[3])
          local want = exact(x, y, z, mode)
          -- In modes with .ftz, a result equal to the smallest normal number is
          -- not compared: the exact value may be a subnormal that was rounded
          -- up.
          local open = ftz and want & 0x7fffffff == 0x800000
          if ftz then want = flushed(want) end
          if want ~= word and not open then
            error(("%s.%s%s of %a, %a, %a: %08x, not %08x"):format(op, mode,
              ftz and ".ftz" or "", x, y, z, word, want))
          end
        end
      end
    end)
  end

  it("take 16-bit floats as first operands", function()
    for name, f in pairs(FORMATS) do
      local a, b, c = words(300, 1), f32_words(300, 16), f32_words(300, 5)
      local kin = "_packed_f32x2_" .. name .. "x2_f32x2"
      local got = T.map({a, b, c}, function(x, y, z)
        y, z = y:bitcast(cute.f32), z:bitcast(cute.f32)
        local halves = {(x & 0xffff):to(cute.u16):bitcast(cute[name]),
                        (x >> 16):to(cute.u16):bitcast(cute[name])}
        local r = {}
        for _, two in ipairs {
          arch["add" .. kin](x, {y, z}),
          arch["sub" .. kin](halves, {y, z}, {rnd = "rm"}),
          arch["fma" .. kin .. "_f32x2"](x, {y, y}, {z, z}, {rnd = "rp"})} do
          for k = 1, 2 do r[#r + 1] = two[k]:bitcast(cute.u32) end
        end
        return r
      end, "u32", "u32", nil, "sim:sm_100a")
      for i = 1, #a do
        local y, z = number(b[i]), number(c[i])
        local want = {}
        for k, x in ipairs {decode(f, a[i] & 0xffff), decode(f, a[i] >> 16)} do
          local other = k == 1 and y or z
          want[k] = EXACT.add(x, other, nil, "rn")
          want[k + 2] = EXACT.sub(x, other, nil, "rm")
          want[k + 4] = EXACT.fma(x, y, z, "rp")
        end
        for k = 1, 6 do assert.equal(want[k], got[k][i], kin .. i) end
      end
    end
  end)

end)

describe("operations on pairs of f32", function()
  it("take vectors, compile, and have powers of e and 2", function()
    local x = cute.zeros({32}, cute.f32)
    local o = cute.zeros({12}, cute.f32)
    for i = 0, 31 do x[i] = i / 8 end
    local call = cute.kernel("k", function(from, out)
      local v = cute.make_tensor(from.iterator, {4}):load()
      local w = arch.fma_packed_f32x2(v, v + 8, v, {rnd = "rz"})
      for i = 0, 3 do out[i] = w[i] end
      local e = arch.exp_packed_f32x2 {v[0], v[3]}
      local h = arch.exp2_packed_f16x2 {v[0]:to(cute.f16), 3}
      local b = arch.exp2_packed_bf16x2 {v[0]:to(cute.bf16), 3}
      for i = 1, 2 do
        out[3 + i] = e[i]
        out[5 + i], out[7 + i] = h[i]:to(cute.f32), b[i]:to(cute.f32)
      end
      local word = arch.exp2_packed_f16x2(from[8]:to(cute.u32) * 0x3c003c00)
      out[10] = (word & 0xffff):to(cute.f32)
      local mixed = arch.fma_packed_f32x2_bf16x2_f32x2_f32x2(b, e, e,
                                                            {ftz = true})
      out[11] = mixed[2]
      local scaled = arch.fma_packed_f32x2(2, v, v[3]):reduce("add", 0)
      out[0] = out[0] + scaled - arch.mul_packed_f32x2(v, 0.5)[3]
    end)(x, o)
    for _, target in ipairs(TARGETS) do
      call:launch {grid = 1, block = 1, device = "sim:" .. target}
      for i = 1, 3 do assert.equal(i / 8 * (i / 8 + 8) + i / 8, o[i]) end
      -- the sum of 2 v[i] + v[3] over i, minus v[3] / 2, where v[i] = i / 8
      assert.equal(2 * 6 / 8 + 4 * 3 / 8 - 3 / 16, o[0])
      assert.same({1, 8, 1, 8, 0x4000},
                  {o[6], o[7], o[8], o[9], o[10]})
      assert.is_true(o[4] == 1 and math.abs(o[5] - math.exp(3 / 8)) < 1e-6)
      assert.is_true(math.abs(o[11] - 9 * o[5]) < 1e-6)
    end
    return kernels.compiles(call:trace {block = 1}, TARGETS)
      or pending "needs NVRTC"
  end)

  it("reject other values and modes", function()
    local function refuses(want, f)
      raises(want, T.map, {{1}}, function(x)
        return {f(x:bitcast(cute.f32))[1]}
      end, "u32", "f32", nil, "sim:sm_100a")
    end
    refuses("no rnd 'up' (rn, rz, rm, rp, none)", function(x)
      return arch.add_packed_f32x2({x, x}, {x, x}, {rnd = "up"})
    end)
    refuses("a pair {x, y} of f32, or a vector expected, got", function(x)
      return arch.mul_packed_f32x2({x, x}, x)
    end)
    refuses("vectors of f32, all of one even size, or numbers expected, got "
      .. "vector", function(x)
      return arch.mul_packed_f32x2(cute.full(3, x, cute.f32),
                                   cute.full(3, x, cute.f32))
    end)
    refuses("fma_packed_f32x2: vectors of f32, all of one even size, or "
      .. "numbers expected, got table", function(x)
      return arch.fma_packed_f32x2(cute.full(4, x, cute.f32), {x, x}, 1)
    end)
    refuses("a pair {x, y} of bf16 or a word (u32) expected, got", function(x)
      return arch.exp2_packed_bf16x2(x)
    end)
    refuses("add_packed_f32x2: a pair {x, y} expected, got a list of 3",
      function(x) return arch.add_packed_f32x2({x, x}, {x, x, x}) end)
    refuses("cvt_f32x2_bf16x2: a pair {x, y} expected, got a list of 1",
      function(x) return {arch.cvt_f32x2_bf16x2 {x}} end)
    refuses("add_packed_f32x2_bf16x2_f32x2: a pair {x, y} expected, got a list",
      function(x)
        return arch.add_packed_f32x2_bf16x2_f32x2({x, x, x}, {x, x})
      end)
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

  it("work in vectors of elements", function()
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

---------------------------------------------------------------------------
-- Floats and integers of 4 bits
---------------------------------------------------------------------------

local E2M1 = {[0] = 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0}
local ALL_TARGETS = {"sm_80", "sm_90a", "sm_100", table.unpack(TARGETS)}

local function compiles(n, f)
  local program = cute.kernel("k", function(x, o)
    local t = arch.thread_idx()
    for i, w in ipairs {f(x[t])} do o[{t, i - 1}] = w end
  end)(cute.zeros({32}, "u32"), cute.zeros({32, n}, "u32")):trace {block = 32}
  return kernels.compiles(program, ALL_TARGETS) or pending "needs NVRTC"
end

describe("4-bit floats", function()
  it("are f16 for all pairs of codes at all positions", function()
    local list = {}
    for code = 0, 255 do
      for at = 0, 24, 8 do
        list[#list + 1] = T.random() & ~(255 << at) & 0xffffffff | code << at
      end
    end
    local got = T.map({list}, function(w)
      local r = {arch.cvt_f4e2m1x8_to_f16x8(w)}
      table.move({arch.cvt_f4e2m1x4_to_f16x4(w)}, 1, 2, 5, r)
      r[7] = arch.cvt_f4e2m1x2_to_f16x2(w)
      return r
    end, "u32", "u32")
    for i, w in ipairs(list) do
      for k = 0, 7 do
        local code = w >> 4 * k & 15
        local want = encode(FORMATS.f16, E2M1[code & 7])
          | code >> 3 << 15
        for first, count in pairs {[1] = 8, [5] = 4, [7] = 2} do
          local word = k < count and got[first + k // 2][i]
          if word and want ~= word >> k % 2 * 16 & 0xffff then
            error(("element %d of %08x: %08x, not %04x"):format(k, w, word,
              want))
          end
        end
      end
    end
  end)

  it("work in vectors and values, and compile for all targets", function()
    local x, o = cute.zeros({16}, "e2m1"), cute.zeros({48}, "f16")
    for i = 0, 15 do x[i] = E2M1[i & 7] * (i < 8 and 1 or -1) end
    cute.kernel("k", function(from, out)
      local v = from:load()
      local r = arch.cvt_f4e2m1x8_to_f16x8(v)
      local s = arch.cvt_f4e2m1x2_to_f16x2(v)
      for i = 0, 15 do
        out[i], out[16 + i] = r[i], s[i]
        out[32 + i] = arch.cvt_f4e2m1_f16(from[i])
      end
    end)(x, o):launch {grid = 1, block = 1, device = "sim:sm_100a"}
    for i = 0, 47 do assert.equal(x[i % 16], o[i]) end
    raises("a vector of 8 e2m1 or a multiple of that expected", T.map, {{1}},
      function(w) return {arch.cvt_f4e2m1x8_to_f16x8(w:to(cute.i32))} end,
      "u32", "u32")
    return compiles(4, arch.cvt_f4e2m1x8_to_f16x8)
  end)
end)

local ORDER = {[0] = 0, 2, 1, 3, 4, 6, 5, 7}

describe("4-bit integers", function()
  local list = all_values(4)

  it("are e4m3 codes, and i8 of bytes", function()
    local got = T.map({list}, function(w)
      local r = {arch.cvt_i4x8_to_mxf8x8(w)}
      r[3], r[4] = arch.cvt_i4x8_to_mxf8x8_impl(w)
      r[5] = arch.sext_unpacked_i4x4_to_i8x4(w)
      return r
    end, "u32", "u32")
    for i, w in ipairs(list) do
      for k = 0, 7 do
        local code = got[k // 4 + 1][i] >> k % 4 * 8 & 255
        local x = quarter(QUARTERS.e4m3, code & 127)
        assert.equal(signed(w >> 4 * k & 15, 4), code > 127 and -x or x)
        assert.is_true(code ~= 0x80)
      end
      assert.same({got[1][i], got[2][i]}, {got[3][i], got[4][i]})
      for k = 0, 3 do
        assert.equal(signed(w >> 8 * k & 15, 4) & 255,
                     got[5][i] >> 8 * k & 255)
      end
    end
  end)

  it("in shuffled order become bf16 in natural order", function()
    local got = T.map({list}, function(w)
      local r = {arch.cvt_i4_to_bf16_with_shuffle_impl(w, 8)}
      table.move({arch.cvt_i4x4_to_bf16x4(w, 0, {with_shuffle = true})}, 1, 2,
                 5, r)
      r[7] = arch.cvt_i4_to_bf16_with_shuffle_impl(w, 2)
      table.move({arch.cvt_i4_to_bf16_impl(w, 8)}, 1, 4, 8, r)
      return r
    end, "u32", "u32")
    for i, w in ipairs(list) do
      local function check(first, n, order)
        for k = 0, n - 1 do
          local word = got[first + k // 2][i]
          assert.equal(signed(w >> 4 * (order and ORDER[k] or k) & 15, 4),
                       decode(FORMATS.bf16, word >> k % 2 * 16 & 0xffff))
        end
      end
      check(1, 8, true)
      check(5, 4, true)
      check(7, 2)
      check(8, 8)
    end
  end)

  it("work in vectors, whose remainder is shuffled by fours", function()
    for n, rest in pairs {[8] = 0, [12] = 0, [14] = 2} do
      local x, b = cute.zeros({n}, "i4"), cute.zeros({n}, "bf16")
      for i = 0, n - 1 do x[i] = i * 7 % 16 - 8 end
      cute.kernel("k", function(from, bs)
        bs:store(arch.cvt_i4_bf16_intrinsic(from:load(), n,
                                            {with_shuffle = true}))
      end)(x, b):launch {grid = 1, block = 1, device = "sim:sm_103a"}
      for i = 0, n - 1 do
        local at = i < n - rest and i // 8 * 8 + ORDER[i % 8] or i
        assert.equal(x[at], b[i])
      end
    end
    local x, bytes = cute.zeros({16}, "i4"), cute.zeros({16}, "i8")
    local codes, raw = cute.zeros({16}, "e4m3"), cute.zeros({16}, "i8")
    for i = 0, 15 do
      x[i] = i * 7 % 16 - 8
      bytes[i] = x[i] & 15
    end
    cute.kernel("k", function(from, is, cs, rs)
      local v = from:load()
      is:store(arch.sext_unpacked_i4_i8_intrinsic(is:load(), 16))
      cs:store(arch.cvt_i4_mxf8_intrinsic(v, 16, cute.e4m3))
      rs:store(arch.cvt_i4_mxf8_intrinsic(v, 16, cute.i8))
    end)(x, bytes, codes, raw):launch {grid = 1, block = 1,
                                       device = "sim:sm_103a"}
    for i = 0, 15 do
      local u = raw[i] & 255
      local value = quarter(QUARTERS.e4m3, u & 127)
      for _, got in ipairs {bytes[i], codes[i], u > 127 and -value or value} do
        assert.equal(x[i], got)
      end
    end
  end)

  it("compile for all targets, and reject other arguments", function()
    raises("num_elts must be 2, 4 or 8, not 3", T.map, {{1}}, function(w)
      return {arch.cvt_i4_to_bf16_impl(w, 3)}
    end, "u32", "u32")
    raises("dst_type must be e4m3 or i8, not e5m2", T.map, {{1}}, function(w)
      return {arch.cvt_i4x8_to_mxf8x8(w, cute.e5m2)}
    end, "u32", "u32")
    return compiles(11, function(w)
      local a, b = arch.cvt_i4x8_to_mxf8x8(w)
      local c, d, e, f = arch.cvt_i4_to_bf16_with_shuffle_impl(w, 8)
      local s = arch.add_sat_int(w:to(cute.i32), c:to(cute.i32)):to(cute.u32)
      return a, b, c, d, e, f, arch.sext_unpacked_i4x4_to_i8x4(w), s
    end)
  end)
end)

describe("sums of i32", function()
  it("saturate", function()
    local x, y = T.pairs32()
    local got = T.map({x, y}, function(a, b)
      a, b = a:to(cute.i32), b:to(cute.i32)
      return {arch.add_sat_int(a, b):to(cute.u32),
              arch.sub_sat_int(a, b):to(cute.u32)}
    end, "u32", "u32")
    for i = 1, #x do
      local a, b = signed(x[i], 32), signed(y[i], 32)
      for k, sum in ipairs {a + b, a - b} do
        local want = math.max(math.min(sum, 0x7fffffff), -0x80000000)
        assert.equal(want & 0xffffffff, got[k][i])
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
