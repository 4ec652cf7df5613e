// Functions that cudafn.c and cudatrig.c share: a polynomial, instructions of
// the special function unit on floats, and the attribute of functions that use
// fmaf.
#ifndef CUTE_CUDAPOLY_H
#define CUTE_CUDAPOLY_H

#include <math.h>

#include "base/approx.h"
#include "base/cudafn.h"
#include "base/dtype.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

// Marks a function that is compiled twice, the second time for processors with
// an FMA instruction. The loader chooses a version. The thread sanitizer does
// not support two versions, because the sanitizer is not initialized yet when
// the loader chooses.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define WITH_FMA __attribute__((target_clones("fma", "default")))
#else
#define WITH_FMA
#endif

// Evaluates a polynomial with one rounding for each power. The coefficients
// start with the highest power.
static inline float poly(float x, const float *c, int n) {
  float y = c[0];
  for (int i = 1; i < n; i++) y = fmaf(y, x, c[i]);
  return y;
}
#define POLY(x, ...) \
  poly(x, (const float[]){__VA_ARGS__}, \
       (int)(sizeof (const float[]){__VA_ARGS__} / sizeof(float)))

// ex2.approx.ftz.f32, rcp.approx.ftz.f32
static inline float unit_ex2(float x) {
  return bits_float(approx_ex2(float_bits(x), true));
}
static inline float unit_rcp(float x) {
  return bits_float(approx_rcp(float_bits(x), true));
}

#endif
// SPDX-License-Identifier: MIT
