-- Tests scalar instructions of PTX. Instructions with surprising rules must
-- give results that were measured on an H100. Roundings are compared with exact
-- arithmetic in double precision.
local cute = require "cute"
local raises = require "spec.support".raises
local variants = require "spec.golden.ptx"

-- ---- rules ----

-- {PTX, types of its operands, types of its results, cases ...}. A case is a
-- text: the words of the operands, ">", and the words of the results.
local RULES = {
  {"mul.rn.f32 d0, a0, a1;", "f32 f32", "f32",
   "00800000 3f7fffff > 00800000", "7fc12345 3f800000 > 7fffffff"},
  {"mul.rn.ftz.f32 d0, a0, a1;", "f32 f32", "f32",
   "00800000 3f7fffff > 00000000", "00000001 bf800000 > 80000000"},
  {"add.rn.sat.f32 d0, a0, a1;", "f32 f32", "f32",
   "7fc00000 3f800000 > 00000000", "80000000 80000000 > 00000000",
   "3f800000 3f800000 > 3f800000"},
  {"add.rm.f32 d0, a0, a1;", "f32 f32", "f32",
   "3f800000 bf800000 > 80000000", "3f800000 00000001 > 3f800000"},
  {"add.rp.f32 d0, a0, a1;", "f32 f32", "f32",
   "3f800000 00000001 > 3f800001"},
  {"add.f64 d0, a0, a1;", "f64 f64", "f64",
   "7ff8000000000111 fff0000000000222 > fff8000000000222"},
  {"add.f16 d0, a0, a1;", "f16 f16", "f16", "3c00 1000 > 3c00",
   "7c00 fc00 > 7fff"},
  {"fma.rn.oob.bf16 d0, a0, a1, a2;", "bf16 bf16 bf16", "bf16",
   "7ff7 7f80 3f80 > 0000", "3f80 3f80 7ff7 > 7fff"},
  {"neg.f16 d0, a0;", "f16", "f16", "7e01 > 7fff", "0000 > 8000"},
  {"neg.f64 d0, a0;", "f64", "f64",
   "7ff0000000000333 > 7ff8000000000333"},
  {"min.xorsign.abs.f32 d0, a0, a1;", "f32 f32", "f32",
   "ffc00000 3f800000 > bf800000"},
  {"testp.normal.f32 d0, a0;", "f32", "pred", "80000000 > 1",
   "00000001 > 0"},
  {"setp.lt.and.f32 d0|d1, a0, a1, a2;", "f32 f32 pred", "pred pred",
   "7fc00000 3f800000 1 > 0 1"},
  {"div.approx.f32 d0, a0, a1;", "f32 f32", "f32",
   "7f800000 7f000000 > 7fffffff", "3f800000 7f000000 > 00000000"},
  {"mov.f64 d0, 0dFFF0000000000222;", "f64", "f64",
   "0000000000000000 > fff0000000000222"},
  {"shl.b32 d0, a0, 32; shr.s32 d1, a0, 99;", "b32", "b32 b32",
   "80000001 > 00000000 ffffffff"},
  {"rcp.approx.ftz.f64 d0, a0;", "f64", "f64",
   "4008000000000000 > 3fd5555500000000",
   "7ff0000000000000 > 0000000000000000"},
  {"rsqrt.approx.f64 d0, a0;", "f64", "f64",
   "4010000000000000 > 3fe0000000000000",
   "bff0000000000000 > fff8000000000000"},
  {"sub.cc.u32 d0, a0, a1; addc.u32 d1, 0, 0;", "u32 u32", "u32 u32",
   "00000001 00000001 > 00000000 00000001",
   "00000000 00000001 > ffffffff 00000000"},
  {"bfe.u64 d0, a0, a1, a2;", "u64 u32 u32", "u64",
   "0070bcb02079e030 00000000 00000100 > 0070bcb02079e030"},
  {"fns.b32 d0, a0, a1, a2;", "b32 u32 s32", "b32",
   "0000000a 00000002 00000001 > 00000003",
   "0000000a 00000002 00000000 > ffffffff"},
  {"bmsk.clamp.b32 d0, a0, a1;", "u32 u32", "b32",
   "0000001e 00000020 > c0000000", "00000020 00000001 > 00000000"},
  {"div.s32 d0, a0, a1;", "s32 s32", "s32", "80000000 ffffffff > 80000000",
   "fffffff9 00000002 > fffffffd"},
  {"cvt.rzi.s8.f64 d0, a0;", "f64", "s32", "7ff8000000000000 > ffffff80"},
  {"cvt.rn.ftz.f16.f32 d0, a0;", "f32", "f16", "33800000 > 0001"},
  {"cvt.rna.satfinite.tf32.f32 d0, a0;", "f32", "tf32",
   "7f800000 > 7f7fe000"},
  {"cvt.rn.satfinite.e4m3x2.f32 d0, a0, a1;", "f32 f32", "e4m3x2",
   "7f800000 3f800000 > 7e38"},
  {"cvt.pack.sat.u8.s32.b32 d0, a0, a1, a2;", "s32 s32 b32", "b32",
   "ffffffff 00000100 12345678 > 567800ff"},
  {"prmt.b32.rc16 d0, a0, a1, a2;", "b32 b32 b32", "b32",
   "44332211 88776655 00000001 > 44334433"},
  {"dp4a.s32.u32 d0, a0, a1, a2;", "b32 b32 b32", "b32",
   "ff01ff01 02020202 00000000 > 00000000"}}

local function words(text)
  local list = {}
  for w in text:gmatch "%S+" do list[#list + 1] = w end
  return list
end

local function variant(rule)
  local v = {op = rule[1], text = rule[1], ["in"] = words(rule[2]),
             out = words(rule[3]), cases = {}, results = {}}
  for k = 4, #rule do
    local from, to = rule[k]:match "^(.-) > (.*)$"
    v.cases[#v.cases + 1], v.results[#v.results + 1] = words(from), words(to)
  end
  return v
end

describe("a scalar instruction of PTX", function()
  for _, rule in ipairs(RULES) do
    it("computes what an H100 does: " .. rule[1], function()
      assert.same({true}, {variants.check(variant(rule))})
    end)
  end
end)

-- ---- roundings ----

local function float(u) return (string.unpack("<f", string.pack("<I4", u))) end

-- Returns the f32 next to the one with bits u: the next larger magnitude if
-- `step` is 1, the next smaller one if it is -1.
local function beside(u, step)
  return float(u + step)
end

-- Returns the bits of a random f32 with an exponent from -n to n.
local function random(n)
  return math.random(0, 1) << 31 | (127 + math.random(-n, n)) << 23
         | math.random(0, 0x7fffff)
end

-- Reports whether an exact number, rounded in mode `mode`, has the f32 bits u.
-- compare(r) is the sign of the exact number minus r.
local function is_rounded(mode, u, compare)
  local r = float(u)
  local c = compare(r)
  if c == 0 then return true end
  local away = math.abs(r) > 0 and (c > 0) == (r > 0)
  local other = beside(u, away and 1 or -1)  -- the neighbour of r on the other
                                             -- side of the exact number
  if compare(other) * c > 0 then return false end
  if mode == "rz" then return away end
  if mode == "rm" then return c > 0 end
  if mode == "rp" then return c < 0 end
  return compare((r + other) / 2) * c <= 0
end

local function sign(x) return x > 0 and 1 or x < 0 and -1 or 0 end

-- For each operation: PTX, and a comparison of a float with the exact result.
local OPS = {
  add = {"%s.f32 d0, a0, a1;", 10, function(a, b)
    return function(r) return sign(a + b - r) end
  end},
  mul = {"%s.f32 d0, a0, a1;", 40, function(a, b)
    return function(r) return sign(a * b - r) end
  end},
  div = {"%s.f32 d0, a0, a1;", 30, function(a, b)
    return function(r) return sign(a - r * b) * sign(b) end
  end},
  sqrt = {"%s.f32 d0, a0;", 60, function(a)
    a = math.abs(a)
    return function(r) return sign(a - r * r) end
  end}}

local function computed(text, cases)
  local v = {op = text, text = text, ["in"] = {"f32", "f32"}, out = {"f32"},
             cases = cases, results = {}}
  for k = 1, #cases do v.results[k] = {"0"} end
  return variants.results(v)
end

describe("a float of PTX", function()
  for name, op in pairs(OPS) do
    for _, mode in ipairs {"rn", "rz", "rm", "rp"} do
      it("is rounded as " .. name .. "." .. mode .. " says", function()
        math.randomseed(7)
        local cases = {}
        for k = 1, 128 do
          local a, b = random(op[2]), random(op[2])
          if name == "sqrt" then a = a & 0x7fffffff end
          cases[k] = {("%08x"):format(a), ("%08x"):format(b)}
        end
        local got = computed(op[1]:format(name .. "." .. mode), cases)
        for k, case in ipairs(cases) do
          local a, b = tonumber(case[1], 16), tonumber(case[2], 16)
          assert(is_rounded(mode, got[k], op[3](float(a), float(b))),
                 ("%s %s: %08x"):format(case[1], case[2], got[k]))
        end
      end)
    end
  end

  it("is the same with .ftz where nothing is subnormal", function()
    math.randomseed(8)
    local cases = {}
    for k = 1, 128 do
      cases[k] = {("%08x"):format(random(20)), ("%08x"):format(random(20))}
    end
    for _, op in ipairs {"add", "sub", "mul"} do
      assert.same(computed(op .. ".rn.f32 d0, a0, a1;", cases),
                  computed(op .. ".rn.ftz.f32 d0, a0, a1;", cases))
    end
  end)
end)

-- ---- two f32 ----

-- Launches a kernel of one thread that computes `text` with the 64-bit
-- registers a, b and c. Returns the two f32 of register d.
local function two_floats(text, values, target)
  local x = cute.zeros({8}, "f32")
  for i, v in ipairs(values) do x[i - 1] = v end
  local code = ([[
.version 9.0
.target %s
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 at, a, b, c, d;
  ld.param.u64 at, [p];
  ld.global.b64 a, [at];
  ld.global.b64 b, [at+8];
  ld.global.b64 c, [at+16];
  %s
  st.global.b64 [at+24], d;
  ret;
}]]):format(target, text)
  cute.ptx(code):kernel "k"(x):launch {grid = 1, block = 1,
                                       device = "sim:" .. target}
  return x[6], x[7]
end

describe("two f32", function()
  it("are computed at once for targets from sm_100 on", function()
    local tiny = 2.0 ^ -24
    local values = {1.0, -3.0, tiny, 5.0, 0.5, 2.0 ^ -149}
    for _, target in ipairs {"sm_100", "sm_103a", "sm_120f"} do
      local function check(text, x, y)
        assert.same({x, y}, {two_floats(text, values, target)}, text)
      end
      check("add.rn.f32x2 d, a, b;", 1.0, 2.0)
      check("add.rp.f32x2 d, a, b;", 1 + 2 * tiny, 2.0)
      check("sub.rz.f32x2 d, a, b;", 1 - tiny, -8.0)
      check("sub.f32x2 d, a, b;", 1 - tiny, -8.0)
      check("mul.rm.f32x2 d, b, c;", tiny / 2, 5 * 2.0 ^ -149)
      check("mul.ftz.f32x2 d, b, c;", tiny / 2, 0.0)
      check("fma.rm.f32x2 d, a, b, c;", 0.5 + tiny, -15.0)
      check("fma.rn.ftz.f32x2 d, c, b, a;", 1.0, -3.0)
    end
    raises(".sat is not valid", two_floats, "add.sat.f32x2 d, a, b;", values,
           "sm_100")
    raises("min.f32x2", two_floats, "min.f32x2 d, a, b;", values, "sm_100")
  end)
end)

-- Returns the value that an instruction on three f32 stores.
local function three_floats(text, values)
  local x, out = cute.zeros({3}, cute.f32), cute.zeros({1}, cute.f32)
  for i = 0, 2 do x[i] = values[i + 1] end
  cute.ptx(([[
.version 8.8
.target sm_100
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q) {
  .reg .b64 at, to; .reg .f32 a, b, c, d;
  ld.param.u64 at, [p]; ld.param.u64 to, [q];
  ld.global.f32 a, [at]; ld.global.f32 b, [at+4]; ld.global.f32 c, [at+8];
  %s
  st.global.f32 [to], d;
  ret;
}]]):format(text)):kernel "k"(x, out):launch {grid = 1, block = 1,
                                               device = "sim:sm_100"}
  return out[0]
end

describe("min and max of three f32", function()
  it("ignore NaN, or return it", function()
    local nan, tiny = 0 / 0, 2.0 ^ -149
    assert.equal(3, three_floats("max.f32 d, a, b, c;", {1, 3, 2}))
    assert.equal(-4, three_floats("min.f32 d, a, b, c;", {1, 3, -4}))
    assert.equal(2, three_floats("max.f32 d, a, b, c;", {nan, nan, 2}))
    assert.equal(-1, three_floats("min.f32 d, a, b, c;", {-1, nan, 2}))
    for k = 1, 3 do
      local values = {1, 2, 3}
      values[k] = nan
      local v = three_floats("max.NaN.f32 d, a, b, c;", values)
      assert.is_true(v ~= v)
    end
    assert.equal(0, three_floats("max.ftz.f32 d, a, b, c;", {-1, -2, tiny}))
    raises("only f32 has three operands", three_floats,
           "{ .reg .s32 i; max.s32 i, i, i, i; }", {1, 2, 3})
    raises("one of its modifiers", three_floats,
           "max.xorsign.abs.f32 d, a, b, c;", {1, 2, 3})
  end)
end)

-- ---- forms that are not modelled ----

describe("a form that is not modelled", function()
  local function message(text, types)
    local v = {op = text, text = text, ["in"] = words(types), out = {"b32"},
               cases = {{"0", "0", "0"}}, results = {{"0"}}}
    return select(2, variants.check(v))
  end

  it("is rejected by name", function()
    assert.matches("'add.rn.f32x2' is not modelled: it needs .target sm_100",
                   message("add.rn.f32x2 d0, a0, a1;", "b64 b64"))
    assert.matches("'tcgen05.wait::ld.sync.aligned' needs sm_100",
                   message("tcgen05.wait::ld.sync.aligned;", "b32"))
    assert.matches("three operands need .target sm_100",
                   message("min.f32 d0, a0, a1, a2;", "f32 f32 f32"))
    assert.matches("modifier .rna", message("add.rna.f32 d0, a0, a1;",
                                            "f32 f32"))
    assert.matches("does not have this type",
                   message("sqrt.approx.f64 d0, a0;", "f64"))
  end)
end)
-- SPDX-License-Identifier: MIT
