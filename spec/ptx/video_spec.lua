-- Tests PTX's instructions on the halves and bytes of a word, and comparisons
-- of packed pairs whose results are masks. Formulas in Lua give the expected
-- results, for edge cases and random words.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"

local HEAD = [[
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc,
  .param .u64 pd) {
.reg .b64 a, b, c, d, u; .reg .b32 t, x, y, z, r;
ld.param.u64 a, [pa]; ld.param.u64 b, [pb]; ld.param.u64 c, [pc];
ld.param.u64 d, [pd];
mov.u32 t, %ctaid.x; mad.lo.u32 t, t, 128, %tid.x; mul.wide.u32 u, t, 4;
add.s64 a, a, u; add.s64 b, b, u; add.s64 c, c, u; add.s64 d, d, u;
ld.global.b32 x, [a]; ld.global.b32 y, [b]; ld.global.b32 z, [c];
]]

local EDGES = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x80007fff,
               0x7f80ff01, 0xffffffff, 0x80808080, 0x7f7f7f7f}
local N = 256

local function random_words(seed)
  math.randomseed(seed)
  local t = core.buffer(cute.u32, N)
  for i = 0, N - 1 do
    local at = (seed == 1 and i // #EDGES or i) % #EDGES + 1
    t[i] = i < #EDGES * #EDGES and EDGES[at] or math.random(0, 0xffffffff)
  end
  return t
end

local A, B, C = random_words(1), random_words(2), random_words(3)

local function tensor(buffer) return cute.make_tensor(buffer, {N}) end

-- Compares instruction `op` with f(a, b, c) for all words of the inputs.
local function compare(op, f)
  local d = core.buffer(cute.u32, N)
  cute.ptx(HEAD .. op .. " r, x, y" .. (op:find "^set" and "" or ", z") .. ";\n"
    .. "st.global.b32 [d], r; ret;\n}\n"):kernel "k"(tensor(A), tensor(B),
      tensor(C), tensor(d)):launch {grid = N // 128, block = 128,
      device = "sim:sm_90a"}
  for i = 0, N - 1 do
    local want = f(A[i], B[i], C[i]) & 0xffffffff
    if d[i] ~= want then
      error(("%s %08x, %08x, %08x: %08x, not %08x"):format(op, A[i], B[i], C[i],
        d[i], want))
    end
  end
end

local function lane(w, k, bits, sign)
  local v = w >> k * bits & (1 << bits) - 1
  return sign and v >= 1 << bits - 1 and v - (1 << bits) or v
end

local OPS = {
  vadd = function(a, b) return a + b end,
  vsub = function(a, b) return a - b end,
  vmin = math.min, vmax = math.max,
  vabsdiff = function(a, b) return math.abs(a - b) end,
  ["vset.eq"] = function(a, b) return a == b and 1 or 0 end,
  ["vset.ne"] = function(a, b) return a ~= b and 1 or 0 end,
  ["vset.lt"] = function(a, b) return a < b and 1 or 0 end,
  ["vset.le"] = function(a, b) return a <= b and 1 or 0 end,
  ["vset.gt"] = function(a, b) return a > b and 1 or 0 end,
  ["vset.ge"] = function(a, b) return a >= b and 1 or 0 end}

-- Compares an operation on lanes of `bits` bits with Lua. d, a and b say
-- whether the result and the operands are signed ("s") or unsigned ("u"). how:
-- "", "sat" or "add".
local function check(name, bits, d, a, b, how)
  local set = name:match "^vset(%..*)"
  local op = (set and "vset" or name) .. 32 // bits
    .. (set and "" or (".%s32"):format(d)) .. (".%s32.%s32"):format(a, b)
    .. (set or "") .. (how == "" and "" or "." .. how)
  local least = d == "s" and -(1 << bits - 1) or 0
  local most = least + (1 << bits) - 1
  compare(op, function(x, y, z)
    local all = how == "add" and z or 0
    for k = 0, 32 // bits - 1 do
      local v = OPS[name](lane(x, k, bits, a == "s"), lane(y, k, bits,
        b == "s"))
      if how == "add" then all = all + v goto next end
      if how == "sat" then v = math.max(least, math.min(most, v)) end
      all = all | (v & (1 << bits) - 1) << k * bits
      ::next::
    end
    return all
  end)
end

describe("a PTX instruction on the lanes of a word", function()
  for name in pairs(OPS) do
    local one = name == "vadd" or name == "vset.lt"
    it("computes " .. name .. (one and "" or " #long"), function()
      local wide = name == "vadd" or name == "vsub"
      local set = name:find "^vset"
      -- The name of a comparison has no letter for the type of its result.
      for types = 0, 7, set and 2 or 1 do
        local function letter(k) return types >> k & 1 == 1 and "s" or "u" end
        local d, a, b = letter(0), letter(1), letter(2)
        for _, bits in ipairs {8, 16} do
          check(name, bits, d, a, b, "")
          if not set then check(name, bits, d, a, b, "sat") end
          if not wide then check(name, bits, d, a, b, "add") end
        end
      end
    end)
  end

  it("compares pairs of floats to masks", function()
    local function f16(bits)
      local e, m = bits >> 10 & 31, bits & 1023
      if e == 31 then return m == 0 and (bits >> 15 == 1 and -1 or 1) / 0
                             or 0 / 0 end
      local v = e == 0 and m * 2.0 ^ -24 or (1024 + m) * 2.0 ^ (e - 25)
      return bits >> 15 == 1 and -v or v
    end
    for name, test in pairs {
      eq = function(a, b) return a == b end,
      lt = function(a, b) return a < b end,
      neu = function(a, b) return a ~= b end} do
      compare(("set.%s.u32.f16x2"):format(name), function(x, y)
        local all = 0
        for k = 0, 1 do
          if test(f16(lane(x, k, 16)), f16(lane(y, k, 16))) then
            all = all | 0xffff << 16 * k
          end
        end
        return all
      end)
    end
  end)

  it("is rejected in forms whose sums are not known", function()
    assert.matches("'vadd2.u32.u32.u32.add' is not modelled: modifier .add",
      support.message(function()
        compare("vadd2.u32.u32.u32.add", function() return 0 end)
      end), 1, true)
    assert.matches("sums of saturated lanes", support.message(function()
      compare("vmin4.s32.s32.s32.sat.add", function() return 0 end)
    end), 1, true)
    assert.matches("a comparison such as .lt is missing", support.message(
      function() compare("vset2.u32.u32", function() return 0 end) end), 1,
      true)
  end)
end)
-- SPDX-License-Identifier: MIT
