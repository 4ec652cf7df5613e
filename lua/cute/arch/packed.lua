--- The functions of cute.arch for several narrow numbers in one register:
-- arithmetic on two floats at once, and conversions of 4-bit and 8-bit integers
-- to floats. Conversion instructions are slow. The conversions here therefore
-- combine the integers' bits with the bits of known floats (magic numbers).
--
-- Packed functions accept packed words (u32), pairs {x, y}, or vectors. A word
-- contains two values of 16 bits, four of 8 bits, or eight of 4 bits, with the
-- first value in the low bits. The result has the form of the argument. If the
-- result consists of several words, the function returns each word as a
-- separate result. All results are exact, or rounded once to nearest even. If
-- one argument is a word, other arguments may be pairs such as {s, s} or Lua
-- integers, which are converted to words. If one argument is a vector, other
-- arguments may be numbers, which belong to each element.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local packed = {}

local function is_word(x)
  return core.typename(x) == "value" and x.dtype == core.u32
end

local function is_vector(x) return core.typename(x) == "vector" end

local function bad(name, want, x)
  core.fail("bad-argument", ("%s: %s expected, got %s"):format(name, want,
    core.typename(x) == "value" and "a value of type " .. x.dtype.name
      or core.typename(x)))
end

-- Returns the low n bits of x, as u32.
local function word_of(x, n)
  local unsigned = core["u" .. n]
  if x.dtype.is_float then return x:bitcast(unsigned):to(core.u32) end
  return x:to(core.u32) & ((1 << n) - 1)
end

-- Packs elements of a vector into a word, beginning with element `at`. Each has
-- n bits. Pads with zeros after the vector's end.
local function word_at(v, at, n)
  local w
  for k = 0, math.min(32 // n, #v - at) - 1 do
    local x = word_of(v[at + k], n)
    w = w and w | x << (k * n) or x
  end
  return w
end

-- Converts a vector word by word. Packs the elements of v (`from` bits each)
-- into words, and calls f(word, number of elements), which returns words of
-- elements of type t. Returns these elements as a vector.
local function each_word(v, from, t, f)
  local per, n = 32 // from, #v
  local out = core.make_rmem_tensor({(n + per - 1) // per * per}, t)
  local words = core.recast_tensor(out, core.u32)
  for at = 0, n - 1, per do
    for k, w in ipairs {f(word_at(v, at, from), math.min(per, n - at))} do
      words[at * t.bits // 32 + k - 1] = t.bits == 32 and w:bitcast(core.u32)
        or w
    end
  end
  return core.make_tensor(out.iterator, {n}):load():reshape(v.shape)
end

---------------------------------------------------------------------------
-- Arithmetic on pairs
---------------------------------------------------------------------------

-- Raises an error unless a table has two elements.
local function check_pair(name, pair)
  if #pair ~= 2 then
    core.fail("bad-argument", ("%s: a pair {x, y} expected, got a list of %d"):
      format(name, #pair))
  end
end

-- Packs a pair of values of type t into one register.
local function join(name, pair, t)
  local wide = t.bits == 32 and core.u64 or core.u32
  local w
  check_pair(name, pair)
  for k = 1, 2 do
    local x = core.cvt(pair[k], t)
    if x.dtype ~= t then bad(name, "a pair of " .. t.name, x) end
    local bits = x:bitcast(t.bits == 32 and core.u32 or core.u16):to(wide)
    w = w and w | bits << t.bits or bits
  end
  return w
end

local function split(w, t)
  local narrow = t.bits == 32 and core.u32 or core.u16
  return {w:to(narrow):bitcast(t), (w >> t.bits):to(narrow):bitcast(t)}
end

-- The codes of the rounding modes, and the flag for ftz, in the immediate
-- operand of operations on two f32 (core/ir/intrin.h).
local ROUNDINGS = {none = 0, rn = 0, rz = 1, rm = 2, rp = 3}
local FTZ = 4

local function modifiers(name, opts)
  local rnd = opts and opts.rnd or "rn"
  sign.one_of(name, "rnd", rnd, "rn rz rm rp none")
  return ROUNDINGS[rnd] + (opts and opts.ftz and FTZ or 0)
end

local function is_number(x)
  return type(x) == "number" or core.typename(x) == "value"
end

-- Applies an operation on pairs of f32 to vectors and numbers. Elements 2k and
-- 2k + 1 form a pair. A number is an operand of each element.
local function each_pair(name, f, args, opts)
  local n, shape = 0, nil
  for _, v in ipairs(args) do
    if is_vector(v) then n, shape = #v, shape or v.shape end
  end
  for _, v in ipairs(args) do
    if not is_number(v) and (not is_vector(v) or v.dtype ~= core.f32
        or #v ~= n) or n % 2 == 1 then
      bad(name, "vectors of f32, all of one even size, or numbers", v)
    end
  end
  local out = core.make_rmem_tensor({n}, core.f32)
  for i = 0, n - 1, 2 do
    local two = {}
    for k, v in ipairs(args) do
      two[k] = is_number(v) and {v, v} or {v[i], v[i + 1]}
    end
    two[#args + 1] = opts
    local r = f(table.unpack(two))
    out[i], out[i + 1] = r[1], r[2]
  end
  return out:load():reshape(shape)
end

-- Defines the function op_packed_f32x2 for an operation such as "add".
local function arithmetic_f32(op, count)
  local name = op .. "_packed_f32x2"
  packed[name] = function(...)
    local args, opts = {...}, select(count + 1, ...)
    local vector = false
    for k = 1, count do vector = vector or is_vector(args[k]) end
    if vector then
      return each_pair(name, packed[name], {table.unpack(args, 1, count)}, opts)
    end
    for k = 1, count do
      if type(args[k]) ~= "table" then
        bad(name, "a pair {x, y} of f32, or a vector", args[k])
      end
      args[k] = join(name, args[k], core.f32)
    end
    return split(core.intrin(op .. ".f32x2", modifiers(name, opts),
                             table.unpack(args, 1, count)), core.f32)
  end
end

-- Defines the function op_packed_<type>x2 for an operation such as "add" and a
-- 16-bit type. For vectors, the function applies op to each element.
local function arithmetic(op, count, plain, t)
  local name, row = ("%s_packed_%sx2"):format(op, t.name), op .. "." .. t.name
  packed[name] = function(...)
    local args, vector, word = {...}, false, false
    for k = 1, count do
      vector = vector or is_vector(args[k])
      word = word or is_word(args[k])
    end
    if vector then return plain(...) end
    for k = 1, count do
      local x = args[k]
      if type(x) == "table" then
        args[k] = join(name, x, t)
      elseif not is_word(x) and math.type(x) ~= "integer" then
        bad(name, ("a pair {x, y} of %s, a word (u32), or a vector"):format(
          t.name), x)
      end
    end
    local w = core.intrin(row .. "x2", 0, table.unpack(args, 1, count))
    return word and w or split(w, t)
  end
end

local OPS = {
  add = {2, function(a, b) return a + b end},
  sub = {2, function(a, b) return a - b end},
  mul = {2, function(a, b) return a * b end},
  fma = {3, function(a, b, c) return core.fma(a, b, c) end},
}
for op, row in pairs(OPS) do
  arithmetic_f32(op, row[1])
  for _, t in ipairs {core.bf16, core.f16} do
    arithmetic(op, row[1], row[2], t)
  end
end

-- Defines add_packed_f32x2_bf16x2_f32x2 and similar functions, whose first
-- operand is a pair of 16-bit floats. The floats are converted to f32, which is
-- exact.
for _, op in ipairs {"add", "sub", "fma"} do
  for _, t in ipairs {core.bf16, core.f16} do
    local plain = packed[op .. "_packed_f32x2"]
    local name = ("%s_packed_f32x2_%sx2_f32x2%s"):format(op, t.name,
      op == "fma" and "_f32x2" or "")
    packed[name] = function(a, ...)
      if is_word(a) then a = split(a, t) end
      if type(a) ~= "table" then
        bad(name, ("a pair {x, y} of %s or a word (u32)"):format(t.name), a)
      end
      check_pair(name, a)
      local x, y = core.cvt(a[1], t), core.cvt(a[2], t)
      return plain({x:to(core.f32), y:to(core.f32)}, ...)
    end
  end
end

--- Approximates e^x for two f32: multiplies them by log2(e) and calls
-- ex2.approx for each product.
---@param a any a pair {x, y} of f32
---@return any pair
function packed.exp_packed_f32x2(a)
  local log2e = 1 / math.log(2)
  local r = packed.mul_packed_f32x2(a, {log2e, log2e})
  return {core.ex2_approx(r[1]), core.ex2_approx(r[2])}
end

-- Defines exp2_packed_bf16x2 and exp2_packed_f16x2.
for t, row in pairs {[core.bf16] = "ex2.approx.ftz.bf16x2",
                     [core.f16] = "ex2.approx.f16x2"} do
  local name = ("exp2_packed_%sx2"):format(t.name)
  packed[name] = function(a)
    if is_word(a) then return core.intrin(row, 0, a) end
    if type(a) ~= "table" then
      bad(name, ("a pair {x, y} of %s or a word (u32)"):format(t.name), a)
    end
    return split(core.intrin(row, 0, join(name, a, t)), t)
  end
end

--- Converts two f32, or a vector of f32, to bf16.
---@param src any a pair {x, y} or a vector
---@return any a word for a pair, a vector for a vector
function packed.cvt_f32x2_bf16x2(src)
  if is_vector(src) then return src:to(core.bf16) end
  if type(src) ~= "table" then
    bad("cvt_f32x2_bf16x2", "a pair {x, y} or a vector of f32", src)
  end
  check_pair("cvt_f32x2_bf16x2", src)
  return core.intrin("cvt.bf16x2", 0, core.cvt(src[1], core.f32),
                     core.cvt(src[2], core.f32))
end

---------------------------------------------------------------------------
-- Integers as floats
---------------------------------------------------------------------------

-- The truth tables of (a & b) | c and (a & b) ~ c for lop3.
local AND_OR, AND_XOR = 0xea, 0x6a

local function twice(x) return x << 16 | x end

-- For each type, the bits and the value of a float: the smallest float whose
-- lowest fraction bit is worth 1. Adding a whole number n below 16 (bf16) or
-- 1024 (f16) to the bits adds n to the value.
local MAGIC = {
  bf16 = {bits = 0x4300, value = 128.0}, f16 = {bits = 0x6400, value = 1024.0}}

-- Returns the bits of a float of type bf16 or f16.
local function float_bits(t, x)
  if t == core.bf16 then return string.unpack("<I4", string.pack("<f", x)) >> 16
  end
  local m, e = math.abs(x), 15
  while m >= 2 do m, e = m / 2, e + 1 end
  while m < 1 do m, e = m * 2, e - 1 end
  return (x < 0 and 0x8000 or 0) | e << 10 | math.tointeger((m - 1) * 1024)
end

-- Converts the eight nibbles of w to four words of type t, and subtracts `zero`
-- from each value. The conversion inverts the sign bit of signed nibbles, which
-- adds 8; the 8 is subtracted, too. In the first `shuffled` nibbles (0, 4 or
-- 8), each group of four contains the elements 0, 2, 1, 3 in this order. The
-- results have the order 0, 1, 2, 3.
local function nibbles(w, t, signed, zero, shuffled)
  local magic = MAGIC[t.name]
  local less = magic.value + (signed and 8 or 0) + zero
  local high = w >> 4
  local out = {}
  -- The even nibble 2k is the low half of byte k of w; the odd nibble 2k + 1 is
  -- the low half of byte k of w >> 4.
  for k = 0, 3 do
    local x
    if 2 * k < shuffled then
      x = core.intrin("prmt", 0, k % 2 == 0 and w or high, 0,
                      0x0100 + k // 2 * 0x0202)
    else
      x = core.intrin("prmt", 0, w, high, 0x0400 + k * 0x0101)
    end
    x = core.intrin("lop3", signed and AND_XOR or AND_OR, x, 0x000f000f,
                    twice(magic.bits | (signed and 8 or 0)))
    out[k + 1] = core.intrin("add." .. t.name .. "x2", 0, x,
                             twice(float_bits(t, -less)))
  end
  return table.unpack(out)
end

-- e4m3 codes of the integers 0 to 7, then of -8 to -1, four in each word.
local CODES = {{0x44403800, 0x4e4c4a48}, {0xcaccced0, 0xb8c0c4c8}}

-- Converts the eight signed nibbles of w to two words of e4m3.
local function nibbles_e4m3(w)
  local out = {}
  for k = 0, 1 do
    local half = w >> (16 * k)
    local from = half & 0x7777
    local plus = core.intrin("prmt", 0, CODES[1][1], CODES[1][2], from)
    local minus = core.intrin("prmt", 0, CODES[2][1], CODES[2][2], from)
    out[k + 1] = core.intrin("prmt", 0, plus, minus,
                             half >> 1 & 0x4444 | 0x3210)
  end
  return table.unpack(out)
end

-- Extends the sign of the low nibble of each byte of w to its high nibble.
local function extended(w)
  return (w & 0x08080808) * 30 | w & 0x0f0f0f0f
end

-- Converts the eight 4-bit floats of w to four words of f16.
local function quarters(w)
  local out = {}
  for k = 0, 3 do
    out[k + 1] = core.intrin("cvt.f16x2.e2m1x2", 0, k > 0 and w >> 8 * k or w)
  end
  return table.unpack(out)
end

-- Converts the four bytes of w to f32.
local function bytes_f32(w, signed)
  if signed then w = w ~ 0x80808080 end
  local less = 8388608.0 + (signed and 128 or 0)
  local out = {}
  for k = 0, 3 do
    local x = core.intrin("prmt", 0, w, 0x4b000000, 0x7440 + k)
    out[k + 1] = x:bitcast(core.f32) - less
  end
  return table.unpack(out)
end

-- Converts the four bytes of w to two words of type t.
local function bytes(w, t, signed)
  if t == core.f16 then
    if signed then w = w ~ 0x80808080 end
    local less = twice(float_bits(t, signed and -1152.0 or -1024.0))
    local x = core.intrin("prmt", 0, w, 0x64646464, 0x4140)
    local y = core.intrin("prmt", 0, w, 0x64646464, 0x4342)
    return core.intrin("add.f16x2", 0, x, less),
      core.intrin("add.f16x2", 0, y, less)
  end
  local a, b, c, d = bytes_f32(w, signed)
  return core.intrin("cvt.bf16x2", 0, a, b), core.intrin("cvt.bf16x2", 0, c, d)
end

-- Defines a conversion by f(word, number of elements, ...). The conversion's
-- argument is a word of `per` elements of type `from`, or a vector whose size
-- is a multiple of `per`. For integers, `from` is the signed type; also defines
-- the conversion of the unsigned type.
local function conversion(name, from, per, t, f)
  local words = math.max(per * t.bits // 32, 1)
  packed[name] = function(x, ...)
    if is_word(x) then return table.unpack({f(x, per, ...)}, 1, words) end
    if not is_vector(x) or x.dtype.bits ~= from.bits
      or x.dtype.is_float ~= from.is_float or #x % per ~= 0 then
      bad(name, ("a word (u32), or a vector of %d %s or a multiple of that")
        :format(per, from.name), x)
    end
    local more = {...}
    return each_word(x, from.bits, t, function(w, n)
      return f(w, n, table.unpack(more))
    end)
  end
end

local function check_zero(zero)
  zero = zero or 0
  if math.type(zero) == "integer" and zero >= 0 and zero < 16 then
    return zero
  end
  core.fail("bad-argument", "the zero point must be a Lua integer from 0 to "
    .. "15, not " .. tostring(zero)
    .. "\n  subtract a traced zero point with sub_packed_bf16x2")
end

-- Returns how many of n nibbles are in shuffled order.
local function shuffled(n, opts)
  return opts and opts.with_shuffle and n // 4 * 4 or 0
end

-- Defines cvt_i4x8_to_bf16x8(x, zero?, opts?), which converts x - zero, and
-- similar functions for other types, signs, widths and numbers of elements.
for _, t in ipairs {core.bf16, core.f16} do
  for _, sort in ipairs {"i", "u"} do
    local function four(w, n, zero, opts)
      return nibbles(w, t, sort == "i", check_zero(zero), shuffled(n, opts))
    end
    local function eight(w) return bytes(w, t, sort == "i") end
    local name = "cvt_" .. sort .. "%dx%d_to_" .. t.name .. "x%d"
    for _, per in ipairs {2, 4, 8} do
      conversion(name:format(4, per, per), core.i4, per, t, four)
    end
    for _, per in ipairs {2, 4} do
      conversion(name:format(8, per, per), core.i8, per, t, eight)
    end
  end
end
for _, per in ipairs {2, 4} do
  conversion(("cvt_i8x%d_to_f32x%d"):format(per, per), core.i8, per, core.f32,
    function(w) return bytes_f32(w, true) end)
  conversion(("cvt_u8x%d_to_f32x%d"):format(per, per), core.i8, per, core.f32,
    function(w) return bytes_f32(w, false) end)
end
for _, per in ipairs {2, 4, 8} do
  conversion(("cvt_f4e2m1x%d_to_f16x%d"):format(per, per), core.e2m1, per,
             core.f16, quarters)
end
conversion("sext_unpacked_i4x4_to_i8x4", core.i8, 4, core.i8, extended)
conversion("cvt_i4x8_to_mxf8x8_impl", core.i4, 8, core.e4m3, nibbles_e4m3)

--- Converts 8 signed 4-bit integers to e4m3, exactly. Also accepts a vector
-- whose size is a multiple of 8.
---@param x any a word (u32) with the first integer in its low bits, or a vector
---@param dst_type? table the type of a vector result: e4m3, or i8 for the bits
-- of e4m3
---@return any ... 2 words of four codes each, or a vector
function packed.cvt_i4x8_to_mxf8x8(x, dst_type)
  dst_type = dst_type or core.e4m3
  if dst_type ~= core.e4m3 and dst_type ~= core.i8 then
    core.fail("bad-argument", ("cvt_i4x8_to_mxf8x8: dst_type must be e4m3 or "
      .. "i8, not %s"):format(dst_type.name))
  end
  if is_word(x) then return packed.cvt_i4x8_to_mxf8x8_impl(x) end
  local v = packed.cvt_i4x8_to_mxf8x8_impl(x)
  return dst_type == core.i8 and v:bitcast(core.i8) or v
end

--- Converts a vector of i4 to e4m3, exactly. The vector's size must be a
-- multiple of 8.
---@param x any
---@param _ any the size, which is taken from the vector
---@param dst_type? table e4m3, or i8 for the bits of e4m3
function packed.cvt_i4_mxf8_intrinsic(x, _, dst_type)
  return packed.cvt_i4x8_to_mxf8x8(x, dst_type)
end

--- Extends the sign of the low 4 bits of each i8 of a vector to the high bits.
---@param x any a vector of i8 whose size is a multiple of 4
function packed.sext_unpacked_i4_i8_intrinsic(x)
  return packed.sext_unpacked_i4x4_to_i8x4(x)
end

-- Defines cvt_i4_to_bf16_impl and cvt_i4_to_bf16_with_shuffle_impl.
for _, with in ipairs {"", "_with_shuffle"} do
  local opts = {with_shuffle = with ~= ""}
  local own = "cvt_i4_to_bf16" .. with .. "_impl"
  packed[own] = function(w, num_elts)
    if num_elts ~= 2 and num_elts ~= 4 and num_elts ~= 8 then
      core.fail("bad-argument", ("%s: num_elts must be 2, 4 or 8, not %d")
        :format(own, num_elts))
    end
    return packed[("cvt_i4x%d_to_bf16x%d"):format(num_elts, num_elts)](w, 0,
                                                                      opts)
  end
end

local i4_bf16 = packed.cvt_i4x2_to_bf16x2
local i8_bf16 = packed.cvt_i8x2_to_bf16x2

--- Converts a vector of i4 to bf16, exactly. With with_shuffle = true, each 8
-- integers are in the order 0, 2, 1, 3, 4, 6, 5, 7 (a remainder of 4: 0, 2, 1,
-- 3). The results are in the natural order.
---@param x any
---@param _ any the size, which is taken from the vector
---@param opts? {with_shuffle: boolean}
function packed.cvt_i4_bf16_intrinsic(x, _, opts)
  if #x % 2 == 0 then return i4_bf16(x, 0, opts) end
  return x:to(core.bf16)
end
--- Converts a vector of i8 to bf16, exactly.
function packed.cvt_i8_bf16_intrinsic(x)
  return #x % 2 == 0 and i8_bf16(x) or x:to(core.bf16)
end
--- Converts an i4 to bf16, exactly.
function packed.cvt_i4_bf16(x) return x:to(core.bf16) end
--- Converts an i8 to bf16, exactly.
function packed.cvt_i8_bf16(x) return x:to(core.bf16) end
--- Converts a 4-bit float (e2m1) to f16, exactly.
function packed.cvt_f4e2m1_f16(x) return x:to(core.f16) end

-- Signatures of functions in this file. The signatures of most functions are
-- derived from their names (FORMS below).
local signatures = {
  "cvt_i4_bf16_intrinsic(x: vector, length?: integer, opts?: {with_shuffle})",
  "cvt_i8_bf16_intrinsic(x: vector, length?: integer)",
  "cvt_i4_mxf8_intrinsic(x: vector, length?: integer, dst_type?)",
  "sext_unpacked_i4_i8_intrinsic(x: vector, length?: integer)",
  "cvt_i4x8_to_mxf8x8(x: value|vector, dst_type?)",
  "cvt_i4_bf16(x: value)", "cvt_i8_bf16(x: value)", "cvt_f4e2m1_f16(x: value)",
  "cvt_f32x2_bf16x2(src: table|vector)"}
-- Parameter lists of all other functions: pairs of a pattern for the function's
-- name and the parameters.
local FORMS = {
  {"^exp2?_", "a"}, {"^fma_packed_f32x2", "a, b, c, opts?: {ftz rnd}"},
  {"_packed_f32x2", "a, b, opts?: {ftz rnd}"}, {"^fma", "a, b, c"},
  {"_packed", "a, b"}, {"_to_bf16.*_impl$", "x: value, num_elts: integer"},
  {"^cvt_[iu]4x%d_to_b?f16", "x: value|vector, zero?, opts?: {with_shuffle}"},
  {"x%d_to_", "x: value|vector"}}
local known = {}
for _, text in ipairs(signatures) do known[text:match "^[%w_]+"] = true end
for name in pairs(packed) do
  for _, form in ipairs(known[name] and {} or FORMS) do
    if name:find(form[1]) then
      signatures[#signatures + 1] = name .. "(" .. form[2] .. ")"
      break
    end
  end
end

return sign.public("cute.arch.", packed, table.concat(signatures, " "))
-- SPDX-License-Identifier: MIT
