---@meta cute
-- Documents the functions on numbers, traced scalars and vectors.
-- Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- Mathematics
---------------------------------------------------------------------------

---The mathematical functions under the Python DSL's names: cute.math.exp is
---cute.exp, and so on.
cute.math = nil

---Returns the absolute value, in the type of x.
---
---     cute.abs(-3)  --> 3
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.abs(x) end

cute.absf = cute.abs

cute.absi = cute.abs

---Returns the smallest argument; for tuples, the smallest leaf. In a kernel,
---the minimum of a NaN and a number is the number.
---
---     cute.min(3, 1.5)  --> 1.5
---     cute.min({2, {3, 4}})  --> 2
---@param x any
---@param ... any
---@return any
function cute.min(x, ...) end

---Returns the largest argument; for tuples, the largest leaf. In a kernel, the
---maximum of a NaN and a number is the number.
---
---     cute.max({2, {3, 4}})  --> 4
---@param x any
---@param ... any
---@return any
function cute.max(x, ...) end

---Returns the derivative of y with respect to x, two floats of a kernel. Emits
---the instructions that compute it, by the chain rule. Values of memory,
---integers and conditions count as constants. Raises an error for functions
---whose derivative it does not know, such as `atan2`, and for values that pass
---through variables of a loop or a branch, or through registers.
---
---     local slope = cute.derivative(30 * cute.tanh(s / 30), s)
---@param y number|cute.Value
---@param x cute.Value
---@return number|cute.Value
function cute.derivative(y, x) end

---Computes a * b + c with one rounding.
---
---     cute.fma(2, 3, 4)  --> 10.0
---@param a any
---@param b any
---@param c any
---@return number|cute.Value|cute.Vector
function cute.fma(a, b, c) end

---Returns a where the condition is true and b elsewhere. Both values are
---computed. For vectors, selects element by element. If a and b are plain
---numbers, their type is that of the value with which the result is combined,
---else i32 or f32.
---
---     cute.where(true, 1, 2)  --> 1
---@param cond any a boolean, a traced one, or a vector of them
---@param a any
---@param b any
---@return any
function cute.where(cond, a, b) end

---Reports whether any of a vector's booleans is true.
---@param x cute.Vector
---@return cute.Value
function cute.any_(x) end

---Reports whether all of a vector's booleans are true.
---@param x cute.Vector
---@return cute.Value
function cute.all_(x) end

---Reports whether a and b are equal. For traced operands the result is a traced
---boolean, or a vector of booleans. Lua's `==` cannot compare traced values,
---because it needs the result at trace time.
---
---     cute.eq(1, 1.0)  --> true
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.eq(a, b) end

---Reports whether a and b differ. The types of results are those of eq.
---
---     cute.ne(1, 2)  --> true
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.ne(a, b) end

---Reports whether a is less than b. The types of results are those of eq. Use
---the result as a condition of cute.when, for example.
---
---     cute.lt(1, 2)  --> true
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.lt(a, b) end

---Reports whether a is at most b. The types of results are those of eq.
---
---     cute.le(2, 2)  --> true
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.le(a, b) end

---Reports whether a is greater than b. The types of results are those of eq.
---
---     cute.gt(1, 2)  --> false
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.gt(a, b) end

---Reports whether a is at least b. The types of results are those of eq.
---
---     cute.ge(2, 2)  --> true
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.ge(a, b) end

---Returns the square root. Narrow floats are computed in f32 and converted
---back.
---
---     cute.sqrt(4)  --> 2.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.sqrt(x, opts) end

---Returns 1 / sqrt(x). Narrow floats are computed in f32 and converted back.
---
---     cute.rsqrt(4)  --> 0.5
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.rsqrt(x, opts) end

---Returns 1 / x. Narrow floats are computed in f32 and converted back.
---
---     cute.rcp(4)  --> 0.25
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.rcp(x, opts) end

---Returns e to the power of x. Narrow floats are computed in f32 and converted
---back.
---
---     cute.exp(0)  --> 1.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.exp(x, opts) end

---Returns 2 to the power of x. Narrow floats are computed in f32 and converted
---back.
---
---     cute.exp2(3)  --> 8.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.exp2(x, opts) end

---Computes exp(x) - 1, accurate for small x. Narrow floats are computed in f32
---and converted back.
---
---     cute.expm1(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.expm1(x, opts) end

---Returns the natural logarithm. Narrow floats are computed in f32 and
---converted back.
---
---     cute.log(1)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.log(x, opts) end

---Returns the logarithm to base 2. Narrow floats are computed in f32 and
---converted back.
---
---     cute.log2(8)  --> 3.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.log2(x, opts) end

---Returns the logarithm to base 10. Narrow floats are computed in f32 and
---converted back.
---
---     cute.log10(1)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.log10(x, opts) end

---Computes log(1 + x), accurate for small x. Narrow floats are computed in f32
---and converted back.
---
---     cute.log1p(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.log1p(x, opts) end

---Returns the sine of an angle in radians. Narrow floats are computed in f32
---and converted back.
---
---     cute.sin(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.sin(x, opts) end

---Returns the cosine of an angle in radians. Narrow floats are computed in f32
---and converted back.
---
---     cute.cos(0)  --> 1.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.cos(x, opts) end

---Returns the tangent of an angle in radians. Narrow floats are computed in f32
---and converted back.
---
---     cute.tan(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.tan(x, opts) end

---Returns the angle, in radians, whose sine is x. Narrow floats are computed in
---f32 and converted back.
---
---     cute.asin(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.asin(x, opts) end

---Returns the angle, in radians, whose cosine is x. Narrow floats are computed
---in f32 and converted back.
---
---     cute.acos(1)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.acos(x, opts) end

---Returns the angle, in radians, whose tangent is x. Narrow floats are computed
---in f32 and converted back.
---
---     cute.atan(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.atan(x, opts) end

---Returns the hyperbolic sine. Narrow floats are computed in f32 and converted
---back.
---
---     cute.sinh(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.sinh(x, opts) end

---Returns the hyperbolic cosine. Narrow floats are computed in f32 and
---converted back.
---
---     cute.cosh(0)  --> 1.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.cosh(x, opts) end

---Returns the hyperbolic tangent. Narrow floats are computed in f32 and
---converted back.
---
---     cute.tanh(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.tanh(x, opts) end

---Returns the inverse of the hyperbolic sine. Narrow floats are computed in f32
---and converted back.
---
---     cute.asinh(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.asinh(x, opts) end

---Returns the inverse of the hyperbolic cosine, for x of at least 1. Narrow
---floats are computed in f32 and converted back.
---
---     cute.acosh(1)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.acosh(x, opts) end

---Returns the inverse of the hyperbolic tangent, for x between -1 and 1. Narrow
---floats are computed in f32 and converted back.
---
---     cute.atanh(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.atanh(x, opts) end

---Returns the error function. Narrow floats are computed in f32 and converted
---back.
---
---     cute.erf(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.erf(x, opts) end

---Computes 1 - erf(x), accurate for large x. Narrow floats are computed in f32
---and converted back.
---
---     cute.erfc(0)  --> 1.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.erfc(x, opts) end

---Returns the cube root. Narrow floats are computed in f32 and converted back.
---
---     cute.cbrt(8)  --> 2.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations, whatever the option of the kernel
---@return number|cute.Value|cute.Vector
function cute.cbrt(x, opts) end

---Returns x to the power of y.
---
---     cute.pow(2, 10)  --> 1024.0
---@param x number|cute.Value|cute.Vector
---@param y number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations
---@return number|cute.Value|cute.Vector
function cute.pow(x, y, opts) end

---Returns the angle, in radians, of the point with ordinate x and abscissa y,
---the argument order of C's atan2. Its tangent is x / y; the signs of x and y
---determine the quadrant.
---
---     cute.atan2(0, 1)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param y number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: use the hardware's f32
---approximations
---@return number|cute.Value|cute.Vector
function cute.atan2(x, y, opts) end

---Returns the magnitude of x with the sign of y.
---
---     cute.copysign(3, -1)  --> -3.0
---@param x number|cute.Value|cute.Vector
---@param y number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.copysign(x, y) end

---Returns x - n * y, where n is x / y truncated toward zero. It has x's sign.
---
---     cute.fmod(-7, 3)  --> -1.0
---@param x number|cute.Value|cute.Vector
---@param y number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.fmod(x, y) end

---Computes x / y with the hardware's div.full: f32, within 2 units in the last
---place.
---@param x number|cute.Value|cute.Vector
---@param y number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.div_full(x, y) end

---Rounds down to a whole number; the result is a float.
---
---     cute.floor(2.5)  --> 2.0
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.floor(x) end

---Rounds up to a whole number; the result is a float.
---
---     cute.ceil(2.5)  --> 3.0
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.ceil(x) end

---Rounds toward zero to a whole number; the result is a float.
---
---     cute.trunc(-2.5)  --> -2.0
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.trunc(x) end

---Rounds to the nearest whole number, halves away from zero; the result is a
---float.
---
---     cute.round(2.5)  --> 3.0
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.round(x) end

---Rounds to the nearest whole number, halves to even; the result is a float.
---
---     cute.roundeven(2.5)  --> 2.0
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.roundeven(x) end

---Returns 2 to the power of x with one hardware instruction, ex2.approx in f32.
---The simulator and plain Lua return the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.ex2_approx(x) end

---Returns the hyperbolic tangent with one hardware instruction, tanh.approx in
---f32. The simulator and plain Lua return the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.tanh_approx(x) end

---Returns 1 / x with one hardware instruction, rcp.approx in f32. The simulator
---and plain Lua return the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.rcp_approx(x) end

---Returns the sine with one hardware instruction, sin.approx in f32. The
---simulator and plain Lua return the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.sin_approx(x) end

---Returns the cosine with one hardware instruction, cos.approx in f32. The
---simulator and plain Lua return the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.cos_approx(x) end

---Returns the logarithm to base 2 with one hardware instruction, lg2.approx in
---f32. The simulator and plain Lua return the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.lg2_approx(x) end

---Returns the square root with one hardware instruction, sqrt.approx in f32.
---The simulator and plain Lua return the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.sqrt_approx(x) end

---Returns 1 / sqrt(x) with one hardware instruction, rsqrt.approx in f32. The
---simulator and plain Lua return the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.rsqrt_approx(x) end

return cute
-- SPDX-License-Identifier: MIT
