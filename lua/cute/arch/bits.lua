--- The arithmetic functions of cute.arch: operations on bits, wide products,
-- carries, and special registers.
--
-- Operands are traced i32, u32, i64 or u64 values; plain numbers take the type
-- of the traced operands. Results have the type of the first operand unless
-- noted.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local bits = {}

local function intrin(name, ...) return core.intrin(name, 0, ...) end

---------------------------------------------------------------------------
-- Bits
---------------------------------------------------------------------------

--- Returns the number of bits set (an i32).
---@param value any a 32- or 64-bit integer
function bits.popc(value) return intrin("popc", value) end

--- Returns the number of zero bits above the highest set bit, as an i32. For
-- the value 0, returns the width of the type in bits.
---@param value any a 32- or 64-bit integer
function bits.clz(value) return intrin("clz", value) end

--- Reverses the order of the bits.
---@param value any a 32- or 64-bit integer
function bits.brev(value) return intrin("brev", value) end

--- Returns the position of the highest set bit as an i32, or -1 if no bit is
-- set. For a signed value, returns the position of the highest bit that differs
-- from the sign bit.
---@param value any a 32- or 64-bit integer
function bits.bfind(value) return intrin("bfind", value) end

--- Returns log2 of a power of two (an i32).
---@param value any a 32-bit integer
function bits.log2_of_pow2_int(value)
  return intrin("clz", intrin("brev", value))
end

--- Extracts `length` bits of `value`, from bit `start` upwards. The result is
-- sign-extended if the type is signed, otherwise zero-extended.
---@param value any a 32- or 64-bit integer
---@param start any 0 to 255
---@param length any 0 to 255
function bits.bfe(value, start, length)
  return intrin("bfe", value, start, length)
end

--- Replaces `length` bits of `value`, from bit `start` upwards, by the low bits
-- of `replacement`.
---@param replacement any a 32- or 64-bit integer
---@param value any of the same type
---@param start any 0 to 255
---@param length any 0 to 255
function bits.bfi(replacement, value, start, length)
  local at = (start & 255) | (length & 255) << 8
  if core.typename(at) == "value" then at = at:to(core.u32) end
  return intrin("bfi", replacement, value, at)
end

--- Returns a word of four bytes. Each byte is selected from the eight bytes of
-- a (bytes 0 to 3) and b (bytes 4 to 7). Nibble i of `selector` is the number
-- of the byte to copy to byte i of the result. If bit 3 of the nibble is set,
-- the sign of the selected byte is replicated instead.
---@param a any a 32-bit integer
---@param b any a 32-bit integer
---@param selector any
function bits.prmt(a, b, selector) return intrin("prmt", a, b, selector) end

--- Computes any bitwise function of three inputs. `lut` is its truth table: bit
-- 4*a + 2*b + c is the result for input bits a, b, c.
---@param a any a 32-bit integer
---@param b any a 32-bit integer
---@param c any a 32-bit integer
---@param lut integer 0 to 255, known at trace time
function bits.lop3(a, b, c, lut)
  if math.type(lut) ~= "integer" or lut < 0 or lut > 255 then
    core.fail("needs-static", "lop3: the table must be a Lua integer from 0 to "
      .. "255, not " .. tostring(lut))
  end
  return core.intrin("lop3", lut, a, b, c)
end

--- Shifts the 64-bit value with upper half b and lower half a. Kind "l" returns
-- the upper half of the value shifted left, kind "r" the lower half of the
-- value shifted right. Both shift by shift % 32 bits. "clamp_left" and
-- "clamp_right" do the same, but shift by min(shift, 32) bits.
---@param a any a 32-bit integer, the lower half
---@param b any a 32-bit integer, the upper half
---@param shift any
---@param kind? "l"|"r"|"clamp_left"|"clamp_right" "l" if absent
function bits.shf(a, b, shift, kind)
  kind = kind or "l"
  sign.one_of("shf", "kind", kind, "l r clamp_left clamp_right")
  return intrin("shf." .. kind, a, b, shift)
end

---------------------------------------------------------------------------
-- Products
---------------------------------------------------------------------------

--- Returns the upper half of the product a * b.
---@param a any a 32- or 64-bit integer
---@param b any of the same type
function bits.mul_hi(a, b) return intrin("mul_hi", a, b) end

--- Returns the whole product a * b, in the type twice as wide.
---@param a any a 16- or 32-bit integer
---@param b any of the same type
function bits.mul_wide(a, b) return intrin("mul_wide", a, b) end

local function half(name, hi) return hi and name .. ".hi" or name end

--- Multiplies the low 24 bits of a and b. Returns bits 0 to 31 of the product,
-- or bits 16 to 47 if `hi` is true.
---@param a any i32 or u32
---@param b any of the same type
---@param hi? boolean
function bits.mul24(a, b, hi) return intrin(half("mul24", hi), a, b) end

--- Computes mul24(a, b, hi) + c.
---@param a any i32 or u32
---@param b any of the same type
---@param c any of the same type
---@param hi? boolean
function bits.mad24(a, b, c, hi) return intrin(half("mad24", hi), a, b, c) end

---------------------------------------------------------------------------
-- The carry flag of the latest carry-chain instruction (a _cc function, addc,
-- subc or madc) is an ordinary traced value. It is stored here.
---------------------------------------------------------------------------

-- The carry flag of the latest instruction of a carry chain: {value =, borrow
-- =}, or nil. `borrow` says whether that instruction was a subtraction.
local carry

local function unsigned(a, like)
  if core.typename(a) == "value" then
    local t = core.dtype_of(a)
    return a:to(t.bits == 64 and core.u64 or core.u32), t
  end
  local t = core.dtype_of(like)
  return core.cvt(a, t):to(t.bits == 64 and core.u64 or core.u32), t
end

-- Returns both operands as unsigned values, and their original type. The result
-- of the operation has this type.
local function operands(a, b)
  if core.typename(a) ~= "value" and core.typename(b) ~= "value" then
    core.fail("bad-argument", ("a carry chain needs a traced operand, got %s "
      .. "and %s"):format(core.show(a), core.show(b)))
  end
  local x, t = unsigned(a, b)
  local y = unsigned(b, a)
  return x, y, t
end

local function flag(name, borrow, t)
  if not carry or carry.borrow ~= borrow then
    core.fail("bad-argument", ("%s: no previous %s sets the carry flag")
      :format(name, borrow and "sub_cc" or "add_cc or mad_cc"))
  end
  return carry.value:to(t)
end

local function keep(value, borrow) carry = {value = value, borrow = borrow} end

--- Computes a + b, and stores the carry for the next addc.
function bits.add_cc(a, b)
  local x, y, t = operands(a, b)
  local sum = x + y
  keep(sum:lt(x):to(core.u32), false)
  return sum:to(t)
end

--- Computes a + b plus the stored carry, and stores the new carry.
function bits.addc(a, b)
  local x, y, t = operands(a, b)
  local sum = x + y
  local all = sum + flag("addc", false, core.dtype_of(sum))
  keep((sum:lt(x) | all:lt(sum)):to(core.u32), false)
  return all:to(t)
end

--- Computes a - b, and stores the borrow for the next subc.
function bits.sub_cc(a, b)
  local x, y, t = operands(a, b)
  keep(x:lt(y):to(core.u32), true)
  return (x - y):to(t)
end

--- Computes a - b minus the stored borrow, and stores the new borrow.
function bits.subc(a, b)
  local x, y, t = operands(a, b)
  local d = x - y
  local borrow = flag("subc", true, core.dtype_of(d))
  keep((x:lt(y) | d:lt(borrow)):to(core.u32), true)
  return (d - borrow):to(t)
end

--- Returns the low half of a * b + c, and stores the carry for the next madc or
-- addc.
function bits.mad_cc(a, b, c)
  local x, y, t = operands(a, b)
  return bits.add_cc(x * y, (unsigned(c, a))):to(t)
end

--- Returns the low half of a * b + c plus the stored carry, and stores the new
-- carry.
function bits.madc(a, b, c)
  local x, y, t = operands(a, b)
  return bits.addc(x * y, (unsigned(c, a))):to(t)
end

--- Returns a + b of two i32, or the nearest i32 if the sum overflows.
function bits.add_sat_int(a, b) return intrin("add.sat", a, b) end

--- Returns a - b of two i32, or the nearest i32 if the difference overflows.
function bits.sub_sat_int(a, b) return intrin("sub.sat", a, b) end

---------------------------------------------------------------------------
-- Floats
---------------------------------------------------------------------------

local TINY = 2.0 ^ -126

-- Returns x, or a zero with the sign of x if x is subnormal.
local function flush(x)
  return core.where(core.abs(x):lt(TINY), core.copysign(0.0, x), x)
end

local function f32(x)
  if core.typename(x) ~= "value" then return core.cvt(x, core.f32) end
  return x:to(core.f32)
end

local function extreme(name, plain)
  return function(a, b, opts)
    opts = opts or {}
    a, b = f32(a), f32(b)
    if opts.ftz then a, b = flush(a), flush(b) end
    if not opts.nan and not opts.abs then return plain(a, b) end
    return intrin(name .. (opts.nan and ".nan" or "")
                  .. (opts.abs and ".abs" or ""), a, b)
  end
end

--- Returns the larger of two f32. Options: nan = true returns NaN if either
-- operand is NaN; abs = true compares magnitudes, and gives the result the sign
-- of the product a * b; ftz = true flushes subnormals to zero.
---@param a any
---@param b any
---@param opts? {nan: boolean, abs: boolean, ftz: boolean}
bits.fmax = extreme("fmax", core.max)

--- Returns the smaller of two f32, with the options of fmax.
---@param a any
---@param b any
---@param opts? {nan: boolean, abs: boolean, ftz: boolean}
bits.fmin = extreme("fmin", core.min)

--- Computes a * b + c in f16 with one rounding.
function bits.fma_f16(a, b, c) return core.fma(a, b, c) end

--- Computes a * b + c in bf16 with one rounding.
function bits.fma_bf16(a, b, c) return core.fma(a, b, c) end

--- Approximates 1 / x with the special function unit, within one ulp.
function bits.rcp_approx(x) return core.rcp_approx(x) end

local APPROX = {["tanh.approx.f32"] = core.tanh_approx}
for _, name in ipairs {"ex2", "lg2", "rcp", "sqrt", "rsqrt", "sin", "cos"} do
  local ftz = name .. ".approx.ftz.f32"
  APPROX[name .. ".approx.f32"] = core[name .. "_approx"]
  APPROX[ftz] = function(x) return intrin(ftz, x) end
end
for _, name in ipairs {"ex2.approx.f16x2", "ex2.approx.ftz.bf16x2",
                       "tanh.approx.f16x2", "tanh.approx.bf16x2"} do
  APPROX[name] = function(x) return intrin(name, x) end
end

-- Applies f to each element of a vector. For elements of 16 bits, f receives
-- two elements at a time, packed in one word.
local function each(f, v)
  local words = v.dtype.bits == 16
  local r = core.make_rmem_tensor({words and (#v + 1) // 2 * 2 or #v}, v.dtype)
  for i = 0, #v - 1 do r[i] = v[i] end
  if words and #v % 2 == 1 then r[#v] = 0 end
  local at = words and core.recast_tensor(r, core.u32) or r
  for i = 0, core.size(at) - 1 do at[i] = f(at[i]) end
  return core.make_tensor(r.iterator, {#v}):load():reshape(v.shape)
end

--- Calls an approximate function by its PTX name. An f32 x can be passed to
-- ex2, lg2, rcp, sqrt, rsqrt, sin or cos with .approx.f32 or .approx.ftz.f32,
-- and to tanh.approx.f32. A u32 that holds two 16-bit floats can be passed to
-- ex2.approx.f16x2, ex2.approx.ftz.bf16x2, tanh.approx.f16x2 and
-- tanh.approx.bf16x2. For a vector, computes the function of each element; the
-- packed functions also accept vectors of f16 or bf16. The simulator returns
-- the same bits as an H200.
---@param instruction string such as "ex2.approx.ftz.f32"
---@param x any
function bits.approx(instruction, x)
  local f = APPROX[instruction]
  if not f then
    core.fail("bad-argument", ("no approximate function %q; an example is " ..
                               "ex2.approx.f32"):format(instruction))
  end
  if core.typename(x) ~= "vector" then return f(x) end
  local two = instruction:match "(b?f16)x2$"
  local want = two and core[two] or core.f32
  if x.dtype ~= want and not (two and x.dtype == core.u32) then
    core.fail("type-mismatch", ("%s of a vector of %s: its elements must be "
      .. "%s"):format(instruction, x.dtype, want))
  end
  return each(f, x)
end

--- Converts f32 to bf16, rounded to nearest even.
function bits.cvt_f32_bf16(x) return f32(x):to(core.bf16) end

--- Converts f32 to tf32, rounded to nearest with ties away from zero. Returns
-- the bits that tensor cores read, as an i32. `x:to(cute.tf32)` rounds ties to
-- even.
function bits.cvt_f32_tf32(x)
  return intrin("tf32.rna", f32(x)):to(core.i32)
end

---------------------------------------------------------------------------
-- The multiprocessor and the device
---------------------------------------------------------------------------

--- Reads the multiprocessor's 32-bit clock anew in each call.
function bits.clock() return intrin "clock" end
--- Reads the multiprocessor's 64-bit clock anew in each call.
function bits.clock64() return intrin "clock64" end

--- Reads the device's 64-bit clock, in nanoseconds.
function bits.globaltimer() return intrin "globaltimer" end
--- Reads the low 32 bits of the device's clock in nanoseconds.
function bits.globaltimer_lo() return intrin "globaltimer_lo" end

--- Suspends this thread for up to 2 * ns nanoseconds; ns is at most 1000000.
-- While a polling thread sleeps, other threads can use the multiprocessor. In
-- the simulator the call takes no time.
---@param ns any integer
function bits.nanosleep(ns)
  if math.type(ns) and (ns < 0 or ns > 1000000) then
    core.fail("bad-argument", ("nanosleep of %s ns; 0 to 1000000 are possible")
      :format(ns))
  end
  intrin("nanosleep", ns)
end

--- Returns the identifier of the grid, which differs between launches
-- (%gridid).
function bits.gridid() return intrin "gridid" end

--- Returns one more than the largest possible smid().
function bits.nsmid() return intrin "nsmid" end
--- Returns one more than the largest possible physical_warp_id().
function bits.nwarpid() return intrin "nwarpid" end

--- Returns the index of the hardware's warp slot in the multiprocessor that
-- this warp occupies now. (warp_idx() is the warp's index in the block.)
function bits.physical_warp_id() return intrin "physical_warp_id" end

--- Returns the bytes of dynamic shared memory of the block.
function bits.dynamic_smem_size() return intrin "dynamic_smem_size" end
--- Returns the bytes of shared memory of the block, in the hardware's
-- allocation units.
function bits.total_smem_size() return intrin "total_smem_size" end
--- Returns the bytes of shared memory of the block, including those that the
-- system reserves (sm_90).
function bits.aggr_smem_size() return intrin "aggr_smem_size" end
bits.get_dyn_smem_size = bits.dynamic_smem_size

--- Returns the number of lanes of a warp: 32.
function bits.warpsize() return 32 end

return sign.public("cute.arch.", bits, [[
  popc(value: integer|value) clz(value: integer|value)
  brev(value: integer|value) bfind(value: integer|value)
  log2_of_pow2_int(value: integer|value)
  bfe(value: integer|value, start: integer|value, length: integer|value)
  bfi(replacement: integer|value, value: integer|value, start: integer|value,
    length: integer|value)
  prmt(a: integer|value, b: integer|value, selector: integer|value)
  lop3(a: integer|value, b: integer|value, c: integer|value, lut: integer)
  shf(a: integer|value, b: integer|value, shift: integer|value, kind?: string)
  mul_hi(a: integer|value, b: integer|value)
  mul_wide(a: integer|value, b: integer|value)
  mul24(a: integer|value, b: integer|value, hi?: boolean)
  mad24(a: integer|value, b: integer|value, c: integer|value, hi?: boolean)
  add_cc(a: integer|value, b: integer|value)
  addc(a: integer|value, b: integer|value)
  sub_cc(a: integer|value, b: integer|value)
  subc(a: integer|value, b: integer|value)
  mad_cc(a: integer|value, b: integer|value, c: integer|value)
  madc(a: integer|value, b: integer|value, c: integer|value)
  add_sat_int(a: integer|value, b: integer|value)
  sub_sat_int(a: integer|value, b: integer|value)
  fmax(a: number|value, b: number|value, opts?: {abs ftz nan})
  fmin(a: number|value, b: number|value, opts?: {abs ftz nan})
  fma_f16(a: number|value, b: number|value, c: number|value)
  fma_bf16(a: number|value, b: number|value, c: number|value)
  rcp_approx(x: number|value)
  approx(instruction: string, x: number|value|vector)
  cvt_f32_bf16(x: number|value)
  cvt_f32_tf32(x: number|value)
  clock() clock64() globaltimer() globaltimer_lo() nanosleep(ns: integer|value)
  gridid() nsmid() nwarpid()
  physical_warp_id() dynamic_smem_size() total_smem_size() aggr_smem_size()
  get_dyn_smem_size() warpsize()
]])
-- SPDX-License-Identifier: MIT
