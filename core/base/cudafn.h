// CUDA's float functions (expf, sinf, powf ...), bit-exact. NVRTC replaces a
// call of such a function by a sequence of f32 instructions, and the functions
// here execute the same sequence. The sequences are those of NVRTC 13.0. They
// are the same for sm_80 and sm_90a, with and without contraction
// (--fmad=false).
//
// A NaN result has an arbitrary sign and payload here, but is always 0x7fffffff
// on the GPU. CUDA's other functions are not listed. They are single
// instructions (exp2f is ex2.approx.f32, rsqrtf is rsqrt.approx.f32), or exact
// as in C (sqrtf, fmodf, roundf ...).
#ifndef CUTE_CUDAFN_H
#define CUTE_CUDAFN_H

float cudafn_exp(float x);
float cudafn_expm1(float x);
float cudafn_log(float x);
float cudafn_log2(float x);
float cudafn_log10(float x);
float cudafn_log1p(float x);
float cudafn_sinh(float x);
float cudafn_cosh(float x);
float cudafn_tanh(float x);
float cudafn_asinh(float x);
float cudafn_acosh(float x);
float cudafn_atanh(float x);
float cudafn_erf(float x);
float cudafn_erfc(float x);
float cudafn_cbrt(float x);
float cudafn_pow(float x, float y);
// cudatrig.c
float cudafn_sin(float x);
float cudafn_cos(float x);
float cudafn_tan(float x);
float cudafn_asin(float x);
float cudafn_acos(float x);
float cudafn_atan(float x);
float cudafn_atan2(float y, float x);

#endif
// SPDX-License-Identifier: MIT
