local core = require "cute.core"
local golden = require "spec.golden"
local sim = require "spec.hardware.units"

-- ---- an oracle in Lua integers, from raw bits ----

-- {exponent bits, fraction bits, bias, number of low bits to ignore}
local FIELDS = {
  f32 = {8, 23, 127, 0}, f16 = {5, 10, 15, 0}, bf16 = {8, 7, 127, 0},
  tf32 = {8, 10, 127, 13}, e4m3 = {4, 3, 7, 0}, e5m2 = {5, 2, 15, 0},
}

-- Parses the bits u of a number. Returns {nan = true}, {sign =, inf = true}, or
-- {sign =, sig = the significand as an integer, exp =, frac = the fraction bits
-- of the significand}.
local function parse(name, u)
  local f = FIELDS[name]
  local eb, mb, bias = f[1], f[2], f[3]
  u = u >> f[4]
  local sign = u >> (eb + mb) & 1 == 1 and -1 or 1
  local e, man = u >> mb & ((1 << eb) - 1), u & ((1 << mb) - 1)
  if e == (1 << eb) - 1 and not (name == "e4m3" and man ~= 7) then
    if man ~= 0 then return {nan = true} end
    return {sign = sign, inf = true, sig = 1}
  end
  if e == 0 then e = 1 else man = man | 1 << mb end
  return {sign = sign, sig = man, exp = e - bias, frac = mb}
end

local function pack_f32(x) return string.unpack("<I4", string.pack("<f", x)) end

-- Rounds sum * 2^unit to f32 toward zero, with `keep` fraction bits.
local function to_f32(sum, unit, keep)
  local mag, top = math.abs(sum), 0
  if mag == 0 then return 0 end
  while mag >> (top + 1) ~= 0 do top = top + 1 end
  local quantum = math.max(top + unit, -126) - keep
  if quantum > unit then
    local n = quantum - unit
    mag = n > 62 and 0 or mag >> n << n
  end
  if mag == 0 then return 0 end
  if top + unit > 127 then return sum < 0 and 0xff800000 or 0x7f800000 end
  -- Scaling is exact, because mag has at most 24 significant bits. Two
  -- multiplications keep the power of two in range.
  local half = unit // 2
  return pack_f32((sum < 0 and -mag or mag) * 2.0 ^ half * 2.0 ^ (unit - half))
end

local function one_sum(kind, f, keep, a, b, c, first, last)
  local terms, nan, pos, neg, e = {}, false, false, false, nil
  local function add(t) terms[#terms + 1] = t end
  local x = parse(kind.c, c)
  if x.nan then nan = true
  elseif x.inf then pos, neg = x.sign > 0, x.sign < 0
  elseif x.sig > 0 then add {x.sign, x.sig, x.exp, x.frac} end
  for i = first, last do
    local p, q = parse(kind.a, a[i]), parse(kind.b, b[i])
    if p.nan or q.nan then nan = true
    elseif p.inf or q.inf then
      if p.sig == 0 or q.sig == 0 then nan = true
      elseif p.sign == q.sign then pos = true
      else neg = true end
    elseif p.sig > 0 and q.sig > 0 then
      add {p.sign * q.sign, p.sig * q.sig, p.exp + q.exp, p.frac + q.frac}
    end
  end
  local half = kind.c == "f16"
  if nan or (pos and neg) then return half and 0x7fff or 0x7fffffff end
  if pos then return half and 0x7c00 or 0x7f800000 end
  if neg then return half and 0xfc00 or 0xff800000 end
  for _, t in ipairs(terms) do e = math.max(e or t[3], t[3]) end
  if not e then return 0 end
  local sum = 0
  for _, t in ipairs(terms) do
    local right = t[4] - f + e - t[3]
    local mag = right > 62 and 0 or
                (right >= 0 and t[2] >> right or t[2] << -right)
    sum = sum + t[1] * mag
  end
  if not half then return to_f32(sum, e - f, keep) end
  if sum == 0 then return 0 end
  local bits = core.to_bits("f16", sum * 2.0 ^ (e - f))
  return bits == 0x8000 and 0 or bits
end

local function oracle(kind, a, b, c)
  local fp8 = kind.a:sub(1, 1) == "e"
  local f = kind.arch < 75 and 23 or kind.arch < 90 and 24 or 25
  local keep, step = 23, kind.k
  local ampere = kind.arch >= 80 and kind.arch < 90
  if fp8 and (ampere or kind.wgmma) then f, keep = 13, 13 end
  if ampere and kind.k == (fp8 and 32 or kind.a == "tf32" and 8 or 16) then
    step = kind.k // 2
  end
  for first = 1, kind.k, step do
    c = one_sum(kind, f, keep, a, b, c, first, first + step - 1)
  end
  return c
end

-- ---- random operands ----

local BITS = {f32 = 32, f16 = 16, bf16 = 16, tf32 = 32, e4m3 = 8, e5m2 = 8}

local function draw(name, how)
  if how == "bits" then
    local u = math.random(0, (1 << BITS[name]) - 1)
    return name == "tf32" and u & ~0x1fff or u
  elseif how == "zeros" and math.random(3) > 1 then
    return math.random(0, 1) << (BITS[name] - 1)
  elseif how == "powers" then
    return core.to_bits(name, (math.random(2) * 2 - 3) *
                              2.0 ^ math.random(-6, 6))
  elseif how == "small" then
    local low = (name == "f16" or name == "e5m2") and -16 or
                name == "e4m3" and -8 or -128
    return core.to_bits(name, (math.random() - 0.5) *
                              2.0 ^ math.random(low, low + 6))
  elseif how == "wide" then
    return core.to_bits(name, (math.random() - 0.5) *
                              2.0 ^ math.random(-40, 40))
  end
  return core.to_bits(name, (math.random() - 0.5) * 4)
end

local KINDS = {
  {a = "bf16", b = "bf16", c = "f32", k = 16, arch = 90},
  {a = "bf16", b = "bf16", c = "f32", k = 16, arch = 80},
  {a = "f16", b = "f16", c = "f32", k = 16, arch = 90, wgmma = true},
  {a = "f16", b = "f16", c = "f16", k = 16, arch = 90},
  {a = "f16", b = "f16", c = "f16", k = 16, arch = 86},
  {a = "f16", b = "f16", c = "f32", k = 8, arch = 75},
  {a = "f16", b = "f16", c = "f32", k = 4, arch = 70},
  {a = "tf32", b = "tf32", c = "f32", k = 8, arch = 80},
  {a = "tf32", b = "tf32", c = "f32", k = 4, arch = 90},
  {a = "e4m3", b = "e5m2", c = "f32", k = 32, arch = 89},
  {a = "e5m2", b = "e5m2", c = "f16", k = 32, arch = 90, wgmma = true},
  {a = "e4m3", b = "e4m3", c = "f32", k = 32, arch = 90, wgmma = true},
  {a = "e4m3", b = "e4m3", c = "f32", k = 32, arch = 120},
}
local HOWS = {"normal", "bits", "zeros", "powers", "small", "wide"}

local function list(n, name, how)
  local t = {}
  for i = 1, n do t[i] = draw(name, how) end
  return t
end

local function row(t, i, k)
  return table.move(t, (i - 1) * k + 1, i * k, 1, {})
end

describe("tensor-core sums", function()
  for _, kind in ipairs(KINDS) do
    local name = ("%s %s %s k%d sm_%d%s"):format(kind.a, kind.b, kind.c,
      kind.k, kind.arch, kind.wgmma and " wgmma" or "")
    it("equal the rule, singly and in tiles: " .. name, function()
      math.randomseed(kind.arch * 1000 + kind.k)
      for _ = 1, 24 do
        local M, N = math.random(1, 18), math.random(1, 3)
        local how = HOWS[math.random(#HOWS)]
        local A = list(M * kind.k, kind.a, how)
        local B = list(N * kind.k, kind.b, how)
        local C = list(M * N, kind.c, HOWS[math.random(#HOWS)])
        local D = sim.mma_tile(kind, M, N, A, B, C)
        for m = 1, M do
          for n = 1, N do
            local at = (m - 1) * N + n
            local a, b = row(A, m, kind.k), row(B, n, kind.k)
            local want = oracle(kind, a, b, C[at])
            assert.equal(want, sim.mma_dot(kind, a, b, C[at]), how)
            assert.equal(want, D[at], how)
          end
        end
      end
    end)
  end

  it("have the same bits with the instructions of each processor", function()
    math.randomseed(11)
    for _, kind in ipairs(KINDS) do
      for _, how in ipairs(HOWS) do
        for _, c in ipairs {how, "normal", "zeros"} do
          local A = list(16 * kind.k, kind.a, how)
          local B = list(16 * kind.k, kind.b, how)
          local all = sim.mma_processors(kind, 16, A, B, list(256, kind.c, c))
          for k = 2, #all do
            assert.same(all[1], all[k], kind.a .. " " .. how .. " " .. c)
          end
        end
      end
    end
  end)

  -- The sum of 16 products of the largest significands needs more than 32 bits.
  it("hold sums of more than 32 bits", function()
    for _, kind in ipairs {{a = "f16", b = "f16", c = "f32", k = 16, arch = 90},
                           {a = "e4m3", b = "e4m3", c = "f32", k = 32,
                            arch = 120}} do
      local most, a = kind.a == "f16" and 0x3fff or 0x3f, {}
      for i = 1, 16 * kind.k do a[i] = most end
      local C = {}
      for i = 1, 256 do C[i] = 0x3f800000 end
      local want = oracle(kind, row(a, 1, kind.k), row(a, 1, kind.k), C[1])
      for _, D in ipairs(sim.mma_processors(kind, 16, a, a, C)) do
        for i = 1, 256 do assert.equal(want, D[i]) end
      end
    end
  end)

  -- Computes 1 + n * 2^-e as a sum of k products of f16.
  local function tail(arch, n, e, k)
    local a, b = {}, {}
    for i = 1, k do
      a[i] = i <= n and core.to_bits("f16", 2.0 ^ -(e - 12)) or 0
      b[i] = core.to_bits("f16", 2.0 ^ -12)
    end
    return sim.mma_dot({a = "f16", b = "f16", c = "f32", k = k, arch = arch},
                       a, b, 0x3f800000)
  end
  it("keep 25 bits on Hopper, 24 on Ampere, 23 on Volta", function()
    assert.equal(0x3f800001, tail(90, 4, 25, 8))
    assert.equal(0x3f800000, tail(80, 4, 25, 8))
    assert.equal(0x3f800001, tail(80, 2, 24, 8))
    assert.equal(0x3f800000, tail(70, 2, 24, 4))
    assert.equal(0x3f800001, tail(70, 1, 23, 4))
    assert.equal(0x3f800000, tail(120, 3, 25, 8))
  end)
  it("are two of half the length on Ampere at full K", function()
    local one = core.to_bits("f16", 2.0 ^ -12)
    local a, b = {}, {}
    for i = 1, 16 do a[i], b[i] = (i == 1 or i == 16) and one or 0, one end
    local kind = {a = "f16", b = "f16", c = "f32", k = 16, arch = 90}
    assert.equal(0x3f800001, sim.mma_dot(kind, a, b, 0x3f800000))
    kind.arch = 80
    assert.equal(0x3f800000, sim.mma_dot(kind, a, b, 0x3f800000))
  end)
  it("fp8 of mma.sync on Hopper: two f16 sums, then C", function()
    local kind = {a = "e5m2", b = "e5m2", c = "f32", k = 32, arch = 90}
    local one, a, b = core.to_bits("e5m2", 1), {}, {}
    for i = 1, 32 do a[i], b[i] = 0, one end
    a[1] = core.to_bits("e5m2", 1024)
    -- An ulp of 1024 is 2^-13. The exact sum is 1024 + 0.75 ulp, which is
    -- rounded up to the next f32.
    local c = core.to_bits("f32", 1.5 * 2.0 ^ -14)
    assert.equal(core.to_bits("f32", 1024 + 2.0 ^ -13),
                 sim.mma_dot(kind, a, b, c))
    assert.equal(core.to_bits("f32", 1024 + 2.0 ^ -13),
                 sim.mma_tile(kind, 1, 1, a, b, {c})[1])
  end)
  it("give NaN as 0x7fffffff and zero as +0", function()
    local kind = {a = "bf16", b = "bf16", c = "f32", k = 8, arch = 90}
    local a = {0x7f80, 0, 0, 0, 0, 0, 0, 0}
    local b = {0, 0, 0, 0, 0, 0, 0, 0}
    assert.equal(0x7fffffff, sim.mma_dot(kind, a, b, 0))
    assert.equal(0, sim.mma_dot(kind, b, b, 0x80000000))
    assert.equal(0x7fffffff, sim.mma_tile(kind, 1, 1, a, b, {0})[1])
    assert.equal(0, sim.mma_tile(kind, 1, 1, b, b, {0x80000000})[1])
  end)
end)

describe("other matrix instructions", function()
  local function both(kind, a, b, c)
    local d = sim.mma_dot(kind, a, b, c)
    assert.equal(d, sim.mma_tile(kind, 1, 1, a, b, {c})[1])
    return d
  end
  local function filled(n, x)
    local t = {}
    for i = 1, n do t[i] = x end
    return t
  end
  it("f64 is one FMA after the other", function()
    local kind = {a = "f64", b = "f64", c = "f64", k = 4, arch = 90}
    local function f(x) return core.to_bits("f64", x) end
    local e = 1 + 2.0 ^ -30
    local d = both(kind, {f(e), 0, 0, 0}, {f(e), 0, 0, 0}, f(-1 - 2.0 ^ -29))
    -- Each step is an FMA, with a single rounding.
    assert.equal(2.0 ^ -60, core.from_bits("f64", d))
    d = both(kind, {f(1), f(1), 0, 0}, {f(2.0 ^ 53), f(-2.0 ^ 53), 0, 0}, f(1))
    -- Products are added in order, so the 1 is lost in 2^53 + 1.
    assert.equal(0.0, core.from_bits("f64", d))
  end)
  it("integers wrap, or saturate with satfinite", function()
    local kind = {a = "i8", b = "u8", c = "i32", k = 32, arch = 80}
    local a, b = filled(32, 0x7f), filled(32, 0xff)
    assert.equal(32 * 127 * 255, both(kind, a, b, 0))
    assert.equal(0x7fffffff + 32 * 127 * 255, both(kind, a, b, 0x7fffffff))
    a = filled(32, 0x80)
    assert.equal((0x80000000 - 32 * 128 * 255) & 0xffffffff,
                 both(kind, a, b, 0x80000000))
    kind.sat = true
    assert.equal(0x80000000, both(kind, a, b, 0x80000000))
    assert.equal(0x7fffffff, both(kind, filled(32, 1), b, 0x7ffffff0))
    assert.equal(0x7ffffff0, both(kind, filled(32, 0), b, 0x7ffffff0))
  end)
  it("four-bit integers, signed and not", function()
    local kind = {a = "i4", b = "u4", c = "i32", k = 64, arch = 80}
    local d = both(kind, filled(64, 8), filled(64, 15), 5)
    assert.equal((5 - 64 * 8 * 15) & 0xffffffff, d)
  end)
  it("bits: population count of xor or and", function()
    math.randomseed(3)
    local a, b, xor, conj = {}, {}, 0, 0
    for i = 1, 256 do
      a[i], b[i] = math.random(0, 1), math.random(0, 1)
      xor, conj = xor + (a[i] ~ b[i]), conj + (a[i] & b[i])
    end
    local kind = {a = "b1", b = "b1", c = "i32", k = 256, op = "xor"}
    assert.equal(xor + 3, both(kind, a, b, 3))
    kind.op = "and"
    assert.equal(conj + 3, both(kind, a, b, 3))
  end)
  it("refuses what does not exist", function()
    assert.error_matches(function()
      sim.mma_dot({a = "f32", b = "i8", c = "f32", k = 8}, {}, {}, 0)
    end, "no such matrix instruction")
  end)
end)

describe("the golden runner", function()
  local dir
  before_each(function()
    local p <close> = io.popen "mktemp -d"
    dir = p:read "l"
  end)
  after_each(function() os.execute("rm -rf '" .. dir .. "'") end)

  local function write(name, ...)
    local f <close> = assert(io.open(dir .. "/" .. name, "w"))
    f:write(...)
  end
  local function run()
    local lines = {}
    local sum, message = golden.run(dir, function(s) lines[#lines + 1] = s end)
    return sum, lines, message
  end
  local function load_row(wavefronts)
    local t = {}
    for l = 0, 31 do t[l + 1] = l * 4 end
    return ('{"op":"ld.shared","width":4,"addr":[%s],"wavefronts":%d}\n')
      :format(table.concat(t, ","), wavefronts)
  end

  it("counts, prints failures in full, ends with the sums", function()
    local wrong = load_row(7)
    write("access.jsonl", load_row(1), wrong, load_row(1), "{broken\n", "\n",
          '{"op":"ld.nowhere","out":1}\n')
    write("strange.jsonl", '{"op":"x"}\n')
    local sum, lines = run()
    assert.same({2, 2, 2, 0}, {sum.passed, sum.failed, sum.not_run,
                               sum.flagged})
    assert.equal("2 passed, 2 failed", lines[#lines])
    local text = table.concat(lines, "\n")
    assert.truthy(text:find("access.jsonl:2: " .. wrong .. "  got 1", 1, true))
    assert.truthy(text:find("access.jsonl:4: {broken", 1, true))
    assert.truthy(text:find "strange +x +0 +0 +1")
  end)

  it("keeps inconsistent data apart, and survives a check that raises",
     function()
    finally(function() golden.ops.made_up = nil end)
    golden.ops.made_up = {
      f = function(case) return case.out == 1, 2 end,
      g = function() error "no" end,
      h = function() return nil end,
    }
    write("made_up.jsonl", '{"op":"f","out":1}\n{"op":"g"}\n{"op":"h"}\n',
          '{"op":"f","out":5,"self_consistent":false}\n',
          '{"op":"f","out":1,"self_consistent":false}\n',
          '{"op":"g","self_consistent":false}\n')
    local sum, lines = run()
    assert.same({1, 1, 1, 3}, {sum.passed, sum.failed, sum.not_run,
                               sum.flagged})
    assert.truthy(table.concat(lines, "\n"):find("got error: ", 1, true))
  end)

  it("says that there is no data", function()
    local sum, _, message = run()
    assert.is_nil(sum)
    assert.truthy(message:find(dir, 1, true))
  end)
end)
-- SPDX-License-Identifier: MIT
