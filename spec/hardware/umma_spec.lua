-- Compares the arithmetic of tcgen05.mma with an oracle in Lua's integers,
-- written from the rules in core/hardware/ummamath.h. The inputs are random
-- tiles with special values. `make golden` compares the arithmetic with results
-- of a B200.
local sim = require "spec.hardware.units"

-- ---- the oracle ----

-- {exponent bits, fraction bits, bias, number of low bits to ignore, whether
-- the type has infinities, code of the NaN if it has none}
local FIELDS = {
  f32 = {8, 23, 127, 0, true}, tf32 = {8, 10, 127, 13, true},
  bf16 = {8, 7, 127, 0, true}, f16 = {5, 10, 15, 0, true},
  e5m2 = {5, 2, 15, 0, true}, e4m3 = {4, 3, 7, 0, false, 0x7f},
  e3m2 = {3, 2, 3, 0, false}, e2m3 = {2, 3, 1, 0, false},
  e2m1 = {2, 1, 1, 0, false},
}

-- Returns {sig =, x =, e =} for a finite number sig * 2^x; e is the exponent of
-- a normal number's leading bit. Returns {nan = true} or {inf = sign} for
-- others.
local function parse(name, u)
  local eb, mb, bias, low, inf, nan = table.unpack(FIELDS[name])
  u = u >> low
  local sign = u >> (eb + mb) & 1 == 1 and -1 or 1
  local e, sig = u >> mb & ((1 << eb) - 1), u & ((1 << mb) - 1)
  if inf and e == (1 << eb) - 1 then
    return sig == 0 and {inf = sign} or {nan = true}
  end
  if u & 0x7f == nan then return {nan = true} end
  if e == 0 then e = 1 else sig = sig | 1 << mb end
  return {sig = sign * sig, x = e - bias - mb, e = e - bias}
end

local function parse_scale(name, u)
  if name == "e4m3" then return parse("e4m3", u & 0x7f) end
  if u == 255 then return {nan = true} end
  return {sig = 1, x = u - 127, e = u - 127}
end

-- Returns sig * 2^x in units of 2^q, truncated toward zero.
local function cut(sig, x, q)
  local right, mag = q - x, math.abs(sig)
  if sig == 0 or right > 62 then return 0 end
  mag = right >= 0 and mag >> right or mag << -right
  return sig < 0 and -mag or mag
end

-- Returns sum * 2^q as the bits of an f32, truncated toward zero, or of an f16,
-- rounded to nearest even.
local function encode(sum, q, half)
  local mag, sign = math.abs(sum), sum < 0 and 1 or 0
  if mag == 0 then return 0 end
  local least, mb = -126, 23
  if half then least, mb = -14, 10 end
  local top = 0
  while mag >> (top + 1) ~= 0 do top = top + 1 end
  local e = math.max(top + q, least)
  local right = e - mb - q
  local sig = right > 62 and 0 or right >= 0 and mag >> right or mag << -right
  if half and right > 0 and right <= 62 then
    local rest, tie = mag & ((1 << right) - 1), 1 << (right - 1)
    if rest > tie or (rest == tie and sig & 1 == 1) then sig = sig + 1 end
  end
  local word = sig + (e - least << mb)
  word = math.min(word, half and 0x7c00 or 0x7f800000)
  if word == 0 then return 0 end
  return word | sign << (half and 15 or 31)
end

-- Returns the bits of a sum that has NaNs or infinities as terms; nil for a
-- finite sum.
local function special(terms, half)
  local nan, pos, neg = false, false, false
  for _, t in ipairs(terms) do
    nan = nan or t.nan
    if t.inf then pos, neg = pos or t.inf > 0, neg or t.inf < 0 end
  end
  if nan or (pos and neg) then return half and 0x7fff or 0x7fffffff end
  if pos then return half and 0x7c00 or 0x7f800000 end
  if neg then return half and 0xfc00 or 0xff800000 end
end

local function product(p, q, scale)
  if p.nan or q.nan or scale.nan then return {nan = true} end
  if p.inf or q.inf then
    if p.sig == 0 or q.sig == 0 then return {nan = true} end
    local sign = (p.inf or p.sig) * (q.inf or q.sig)
    return {inf = sign < 0 and -1 or 1}
  end
  local own = p.e + q.e + scale.e
  return {sig = p.sig * q.sig * scale.sig, x = p.x + q.x + scale.x, e = own,
          scale = scale.e}
end

local function largest(list, field)
  local most = -math.huge
  for _, t in ipairs(list) do
    if t.sig ~= 0 then most = math.max(most, t[field]) end
  end
  return most
end

local function fused(kind, terms)
  local e = largest(terms, "e")
  if e == -math.huge then return 0 end
  if kind.a == "tf32" or kind.a == "bf16" then e = math.max(e, -133) end
  local sum = 0
  for _, t in ipairs(terms) do sum = sum + cut(t.sig, t.x, e - 25) end
  return encode(sum, e - 25, kind.d == "f16")
end

-- Returns the exact sum of each n consecutive products.
local function groups(terms, n)
  local list = {}
  for i = 1, #terms, n do
    local some = {table.unpack(terms, i, i + n - 1)}
    local x = terms[i].x  -- becomes the smallest exponent in the group
    for _, t in ipairs(some) do x = math.min(x, t.x) end
    local g = {sig = 0, x = x, e = largest(some, "e"),
               scale = largest(some, "scale")}
    for _, t in ipairs(some) do g.sig = g.sig + (t.sig << (t.x - x)) end
    list[#list + 1] = g
  end
  return list
end

local function grouped(kind, terms, c, c_word)
  local e = c.sig ~= 0 and c.e or -math.huge
  local r, s = largest(terms, "e"), largest(terms, "scale")
  if r == -math.huge then return c.sig == 0 and 0 or c_word end
  local function add(list, q, fine)
    local sum = cut(c.sig, c.x, q)
    for _, g in ipairs(list) do
      local f = fine and e >= g.e and e - 35 > q and e - 35 or q
      sum = sum + (cut(g.sig, g.x, f) << (f - q))
    end
    return encode(sum, q)
  end
  if e >= r then return add(groups(terms, 16), e - 35) end
  local q = math.max(r - 39, s - 35)
  if kind.scale == "e4m3" then return add(groups(terms, 4), q) end
  local list = groups(terms, 16)
  local word = add(list, q, true)
  if word & 0x7f800000 ~= 0 or word == 0 then return word end
  local kept, least = {}, math.max(q, -174)
  for _, g in ipairs(list) do
    if not (g.scale < s and cut(g.sig, g.x, least) == 0) then
      kept[#kept + 1] = g
    end
  end
  return add(kept, q, true)
end

-- Returns the uncompressed positions of the elements in a row of a sparse A.
local function positions(kind, meta)
  local chunk = kind.chunk
  local at, nibbles = {}, {}
  for _, w in ipairs(meta) do
    for k = 0, 28, 4 do nibbles[#nibbles + 1] = w >> k & 15 end
  end
  for c = 0, kind.k * 2 // chunk - 1 do
    local n = nibbles[c + 1]
    local lo, hi = n & 3, n >> 2
    local set = chunk == 2 and {n == 4 and 0 or 1} or chunk == 4 and {lo, hi}
      or {2 * lo, 2 * lo + 1, 2 * hi, 2 * hi + 1}
    for _, p in ipairs(set) do at[#at + 1] = c * chunk + p end
  end
  return at
end

local function signed(type, u)
  return type == "i8" and u >= 128 and u - 256 or u
end

local function element(kind, a, b, c, sfa, sfb)
  if kind.kind == "i8" then
    local sum = c >= 1 << 31 and c - (1 << 32) or c
    for i = 1, kind.k do
      sum = sum + signed(kind.a, a[i]) * signed(kind.b, b[i])
    end
    if kind.sat then
      sum = math.max(-(1 << 31), math.min((1 << 31) - 1, sum))
    end
    return sum & 0xffffffff
  end
  local terms, one = {}, {sig = 1, x = 0, e = 0}
  for i = 1, kind.k do
    local scale = one
    if kind.scale then
      local block = (i - 1) // (kind.k // kind.scales) + 1
      scale = product(parse_scale(kind.scale, sfa[block]),
                      parse_scale(kind.scale, sfb[block]), one)
    end
    terms[i] = product(parse(kind.a, a[i]), parse(kind.b, b[i]), scale)
  end
  local x = parse(kind.d, c)
  local half = kind.d == "f16"
  terms[#terms + 1] = x
  local word = special(terms, half)
  if word then return word end
  if kind.k < 64 then return fused(kind, terms) end
  terms[#terms] = nil
  return grouped(kind, terms, x, c)
end

-- ---- random tiles ----

local K = {tf32 = 8, f16 = 16, f8f6f4 = 32, i8 = 32, mxf8f6f4 = 32, mxf4 = 64,
           mxf4nvf4 = 64}
local CHUNK = {tf32 = 2, mxf4 = 8, mxf4nvf4 = 8}
local NIBBLES = {[2] = {4, 14}, [4] = {4, 8, 12, 9, 13, 14},
                 [8] = {4, 8, 12, 9, 13, 14}}
local BITS = {f32 = 32, tf32 = 32, bf16 = 16, f16 = 16, e5m2 = 8, e4m3 = 8,
              e3m2 = 6, e2m3 = 6, e2m1 = 4, i8 = 8, u8 = 8, i32 = 32}

-- Draws n words of a type. `how` selects numbers near 1 ("near", "cancel"),
-- numbers with products near the smallest f32 ("tiny"), mostly zeros ("zeros"),
-- or random bits.
local function draw(type, n, how)
  local list, f = {}, FIELDS[type]
  for i = 1, n do
    local u = math.random(0, (1 << BITS[type]) - 1)
    if (how == "near" or how == "tiny" or how == "cancel") and f and
       f[1] > 3 then
      local e = f[3] + math.random(-3, 3)
      if how == "tiny" then
        e = type == "f32" and math.random(0, 8) or f[3] * 5 // 11
      end
      local mb = f[2] + f[4]
      u = u & ~(((1 << f[1]) - 1) << mb) | e << mb
    end
    if how == "zeros" and math.random(3) > 1 then u = 0 end
    list[i] = u
  end
  return list
end

local function draw_scales(type, n, how)
  local list = {}
  for i = 1, n do
    local u = math.random(0, 255)
    if how == "near" then
      u = (type == "ue8m0" and 127 or 0x38) + math.random(-6, 6)
    end
    if type == "ue8m0" and how == "cancel" then
      u = 127 + math.random(-1, 1) * 10
    end
    if type == "ue8m0" and (how == "zeros" or how == "tiny") then
      u = math.random(30, 70)
    end
    list[i] = u
  end
  return list
end

local function draw_metadata(kind, n)
  local list, legal = {}, NIBBLES[kind.chunk]
  for i = 1, n do
    local w = 0
    for k = 0, 28, 4 do w = w | legal[math.random(#legal)] << k end
    list[i] = w
  end
  return list
end

local function row(list, i, n)
  return {table.unpack(list, i * n + 1, i * n + n)}
end

local function check(kind, M, N, how)
  kind.k, kind.chunk = K[kind.kind], CHUNK[kind.kind] or 4
  local wide = kind.sparse and 2 * kind.k or kind.k
  local words = 2 * kind.k // kind.chunk // 8
  local n = kind.scales or 0
  local a, b = draw(kind.a, M * kind.k, how), draw(kind.b, N * wide, how)
  local c = draw(kind.d, M * N, how)
  local sfa = draw_scales(kind.scale, M * n, how)
  local sfb = draw_scales(kind.scale, N * n, how)
  local meta = draw_metadata(kind, M * words)
  local function tile()
    return sim.umma_tile(kind, M, N, a, b, c, sfa, sfb, meta)
  end
  local got = tile()
  if how == "cancel" then
    -- Sets C to the negated result, so that the leading digits cancel and the
    -- new result depends on the last digits.
    for i, w in ipairs(got) do c[i] = w ~ 1 << BITS[kind.d] - 1 end
    got = tile()
  end
  for i = 0, M - 1 do
    local at = kind.sparse and positions(kind, row(meta, i, words))
    for j = 0, N - 1 do
      local own = row(b, j, wide)
      local chosen = own
      if at then
        chosen = {}
        for k, p in ipairs(at) do chosen[k] = own[p + 1] end
      end
      local want = element(kind, row(a, i, kind.k), chosen, c[i * N + j + 1],
                           row(sfa, i, n), row(sfb, j, n))
      assert.equal(("%08x"):format(want),
                   ("%08x"):format(got[i * N + j + 1]),
                   ("%s %s %s at (%d,%d)"):format(kind.kind, kind.a, how, i, j))
    end
  end
end

local function each_kind(f)
  local function plain(kind, a, b, d) f {kind = kind, a = a, b = b, d = d} end
  plain("tf32", "tf32", "tf32", "f32")
  plain("f16", "f16", "f16", "f32")
  plain("f16", "f16", "f16", "f16")
  plain("f16", "bf16", "bf16", "f32")
  plain("i8", "i8", "u8", "i32")
  f {kind = "i8", a = "u8", b = "u8", d = "i32", sat = true}
  local small = {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"}
  for i, a in ipairs(small) do
    local b = small[i % #small + 1]
    plain("f8f6f4", a, b, "f32")
    plain("f8f6f4", b, a, "f16")
    f {kind = "mxf8f6f4", a = a, b = b, d = "f32", scale = "ue8m0", scales = 1}
  end
  local function scaled(kind, scale, scales)
    f {kind = kind, a = "e2m1", b = "e2m1", d = "f32", scale = scale,
       scales = scales}
  end
  scaled("mxf4", "ue8m0", 2)
  scaled("mxf4nvf4", "ue8m0", 2)
  scaled("mxf4nvf4", "ue8m0", 4)
  scaled("mxf4nvf4", "e4m3", 4)
end

describe("the arithmetic of tcgen05.mma", function()
  for _, how in ipairs {"any", "near", "tiny", "cancel", "zeros"} do
    it("adds as the rules say, with numbers of kind " .. how, function()
      math.randomseed(7)
      each_kind(function(kind) check(kind, 9, 3, how) end)
    end)

    it("selects the elements of a sparse A, with numbers of kind " .. how,
      function()
        math.randomseed(8)
        each_kind(function(kind)
          kind.sparse = true
          check(kind, 3, 9, how)
        end)
      end)
  end

  it("truncates terms of bf16 and tf32 to multiples of 2^-158", function()
    local function word(x) return string.unpack("<I4", string.pack("<f", x)) end
    -- All terms are odd multiples of 2^-159, and their exact sum is 2^-149.
    -- With truncated terms, the sum is too small for f32.
    for type, k in pairs {bf16 = 16, tf32 = 8} do
      local low = 2.0 ^ -159 * k / 2.0 ^ -149
      local list = {}
      for i = 1, k do list[i] = 1 + low end
      list[k] = 1 - (k - 1) * low
      local one, shift = {}, type == "bf16" and 16 or 0
      for i = 1, k do
        list[i] = word(list[i] * 2.0 ^ -76) >> shift
        one[i] = word(2.0 ^ -73 / k) >> shift
      end
      local kind = {kind = type == "bf16" and "f16" or "tf32", a = type,
                    b = type, d = "f32"}
      assert.equal(0, sim.umma_tile(kind, 1, 1, list, one, {0})[1])
    end
  end)

  it("is rejected for combinations that no instruction has", function()
    for _, kind in ipairs {
      {kind = "tf32", a = "tf32", b = "tf32", d = "f16"},
      {kind = "f16", a = "bf16", b = "f16", d = "f32"},
      {kind = "i8", a = "i8", b = "i8", d = "f32"},
      {kind = "mxf4", a = "e2m1", b = "e2m1", d = "f32", scale = "e4m3",
       scales = 4},
      {kind = "mxf8f6f4", a = "e4m3", b = "e4m3", d = "f32"},
    } do
      assert.error_matches(function() sim.umma_tile(kind, 1, 1, {}, {}, {}) end,
                           "no such tcgen05.mma")
    end
  end)
end)
-- SPDX-License-Identifier: MIT
