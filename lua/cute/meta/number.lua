---@meta cute
-- Comments of the functions of numbers, traced scalars and vectors.
-- Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- Mathematics
---------------------------------------------------------------------------

---The functions of numbers by the Python DSL's names, cute.math.exp and so on:
---each is that of cute.
cute.math = nil

---The absolute value, in the type of x.
---
---     cute.abs(-3)  --> 3
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.abs(x) end

cute.absf = cute.abs

cute.absi = cute.abs

---The least of its arguments; of tuples the least leaf. In a kernel NaN beside
---a number gives the number.
---
---     cute.min(3, 1.5)  --> 1.5
---     cute.min({2, {3, 4}})  --> 2
---@param x any
---@param ... any
---@return any
function cute.min(x, ...) end

---The largest of its arguments; of tuples the largest leaf. In a kernel NaN
---beside a number gives the number.
---
---     cute.max({2, {3, 4}})  --> 4
---@param x any
---@param ... any
---@return any
function cute.max(x, ...) end

---a * b + c with one rounding.
---
---     cute.fma(2, 3, 4)  --> 10.0
---@param a any
---@param b any
---@param c any
---@return number|cute.Value|cute.Vector
function cute.fma(a, b, c) end

---a where the condition is true, b elsewhere; both are computed. Vectors go
---element by element. Of two numbers it takes the type that it meets, as they
---would: i32 or f32 where it meets none.
---
---     cute.where(true, 1, 2)  --> 1
---@param cond any a boolean, a traced one, or a vector of them
---@param a any
---@param b any
---@return any
function cute.where(cond, a, b) end

---Is one of a vector's booleans true?
---@param x cute.Vector
---@return cute.Value
function cute.any_(x) end

---Are all of a vector's booleans true?
---@param x cute.Vector
---@return cute.Value
function cute.all_(x) end

---Are a and b equal? A boolean; a traced one, or a vector of them, where
---something is traced: `==` would need its answer while tracing.
---
---     cute.eq(1, 1.0)  --> true
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.eq(a, b) end

---Do a and b differ? As eq.
---
---     cute.ne(1, 2)  --> true
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.ne(a, b) end

---Is a less than b? As eq: the condition of cute.when.
---
---     cute.lt(1, 2)  --> true
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.lt(a, b) end

---Is a at most b? As eq.
---
---     cute.le(2, 2)  --> true
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.le(a, b) end

---Is a greater than b? As eq.
---
---     cute.gt(1, 2)  --> false
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.gt(a, b) end

---Is a at least b? As eq.
---
---     cute.ge(2, 2)  --> true
---@param a any
---@param b any
---@return boolean|cute.Value|cute.Vector
function cute.ge(a, b) end

---The square root. Narrow floats compute in f32 and come back.
---
---     cute.sqrt(4)  --> 2.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.sqrt(x, opts) end

---One over the square root. Narrow floats compute in f32 and come back.
---
---     cute.rsqrt(4)  --> 0.5
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.rsqrt(x, opts) end

---One over x. Narrow floats compute in f32 and come back.
---
---     cute.rcp(4)  --> 0.25
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.rcp(x, opts) end

---e to the power of x. Narrow floats compute in f32 and come back.
---
---     cute.exp(0)  --> 1.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.exp(x, opts) end

---2 to the power of x. Narrow floats compute in f32 and come back.
---
---     cute.exp2(3)  --> 8.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.exp2(x, opts) end

---exp(x) - 1, exact for small x. Narrow floats compute in f32 and come back.
---
---     cute.expm1(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.expm1(x, opts) end

---The natural logarithm. Narrow floats compute in f32 and come back.
---
---     cute.log(1)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.log(x, opts) end

---The logarithm to base 2. Narrow floats compute in f32 and come back.
---
---     cute.log2(8)  --> 3.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.log2(x, opts) end

---The logarithm to base 10. Narrow floats compute in f32 and come back.
---
---     cute.log10(1)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.log10(x, opts) end

---log(1 + x), exact for small x. Narrow floats compute in f32 and come back.
---
---     cute.log1p(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.log1p(x, opts) end

---The sine of an angle in radians. Narrow floats compute in f32 and come back.
---
---     cute.sin(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.sin(x, opts) end

---The cosine of an angle in radians. Narrow floats compute in f32 and come
---back.
---
---     cute.cos(0)  --> 1.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.cos(x, opts) end

---The tangent of an angle in radians. Narrow floats compute in f32 and come
---back.
---
---     cute.tan(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.tan(x, opts) end

---The angle, in radians, whose sine is x. Narrow floats compute in f32 and come
---back.
---
---     cute.asin(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.asin(x, opts) end

---The angle, in radians, whose cosine is x. Narrow floats compute in f32 and
---come back.
---
---     cute.acos(1)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.acos(x, opts) end

---The angle, in radians, whose tangent is x. Narrow floats compute in f32 and
---come back.
---
---     cute.atan(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.atan(x, opts) end

---The hyperbolic sine. Narrow floats compute in f32 and come back.
---
---     cute.sinh(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.sinh(x, opts) end

---The hyperbolic cosine. Narrow floats compute in f32 and come back.
---
---     cute.cosh(0)  --> 1.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.cosh(x, opts) end

---The hyperbolic tangent. Narrow floats compute in f32 and come back.
---
---     cute.tanh(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.tanh(x, opts) end

---The inverse of the hyperbolic sine. Narrow floats compute in f32 and come
---back.
---
---     cute.asinh(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.asinh(x, opts) end

---The inverse of the hyperbolic cosine, for x of at least 1. Narrow floats
---compute in f32 and come back.
---
---     cute.acosh(1)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.acosh(x, opts) end

---The inverse of the hyperbolic tangent, for x between -1 and 1. Narrow floats
---compute in f32 and come back.
---
---     cute.atanh(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.atanh(x, opts) end

---The error function. Narrow floats compute in f32 and come back.
---
---     cute.erf(0)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.erf(x, opts) end

---1 - erf(x), exact for large x. Narrow floats compute in f32 and come back.
---
---     cute.erfc(0)  --> 1.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.erfc(x, opts) end

---The cube root. Narrow floats compute in f32 and come back.
---
---     cute.cbrt(8)  --> 2.0
---@param x number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for
---f32, whatever the kernel's option says
---@return number|cute.Value|cute.Vector
function cute.cbrt(x, opts) end

---x to the power of y.
---
---     cute.pow(2, 10)  --> 1024.0
---@param x number|cute.Value|cute.Vector
---@param y number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for f32
---@return number|cute.Value|cute.Vector
function cute.pow(x, y, opts) end

---The angle, in radians, of the point (y, x): the one whose tangent is x / y,
---in the right quadrant.
---
---     cute.atan2(0, 1)  --> 0.0
---@param x number|cute.Value|cute.Vector
---@param y number|cute.Value|cute.Vector
---@param opts? {fastmath: boolean} true: approximations of the hardware for f32
---@return number|cute.Value|cute.Vector
function cute.atan2(x, y, opts) end

---The size of x with the sign of y.
---
---     cute.copysign(3, -1)  --> -3.0
---@param x number|cute.Value|cute.Vector
---@param y number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.copysign(x, y) end

---The remainder of x / y toward zero: its sign is that of x.
---
---     cute.fmod(-7, 3)  --> -1.0
---@param x number|cute.Value|cute.Vector
---@param y number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.fmod(x, y) end

---x / y by the hardware's div.full: f32, at most 2 units in the last place off.
---@param x number|cute.Value|cute.Vector
---@param y number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.div_full(x, y) end

---The next whole number down, a float.
---
---     cute.floor(2.5)  --> 2.0
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.floor(x) end

---The next whole number up, a float.
---
---     cute.ceil(2.5)  --> 3.0
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.ceil(x) end

---Without its fraction: the next whole number toward zero, a float.
---
---     cute.trunc(-2.5)  --> -2.0
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.trunc(x) end

---The nearest whole number, halves away from zero, a float.
---
---     cute.round(2.5)  --> 3.0
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.round(x) end

---The nearest whole number, halves to the even one, a float.
---
---     cute.roundeven(2.5)  --> 2.0
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.roundeven(x) end

---2 to the power of x by one instruction of the hardware, ex2.approx in f32.
---The simulator and plain Lua compute the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.ex2_approx(x) end

---The hyperbolic tangent by one instruction of the hardware, tanh.approx in
---f32. The simulator and plain Lua compute the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.tanh_approx(x) end

---One over x by one instruction of the hardware, rcp.approx in f32. The
---simulator and plain Lua compute the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.rcp_approx(x) end

---The sine by one instruction of the hardware, sin.approx in f32. The simulator
---and plain Lua compute the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.sin_approx(x) end

---The cosine by one instruction of the hardware, cos.approx in f32. The
---simulator and plain Lua compute the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.cos_approx(x) end

---The logarithm to base 2 by one instruction of the hardware, lg2.approx in
---f32. The simulator and plain Lua compute the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.lg2_approx(x) end

---The square root by one instruction of the hardware, sqrt.approx in f32. The
---simulator and plain Lua compute the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.sqrt_approx(x) end

---One over the square root by one instruction of the hardware, rsqrt.approx in
---f32. The simulator and plain Lua compute the same bits.
---@param x number|cute.Value|cute.Vector
---@return number|cute.Value|cute.Vector
function cute.rsqrt_approx(x) end

return cute
