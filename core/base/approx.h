// The approximate functions of the special function unit, bit-exact with an
// H200. docs/simulator.md describes how they are computed, and how that was
// proved.
#ifndef CUTE_APPROX_H
#define CUTE_APPROX_H

#include <stdbool.h>
#include <stdint.h>

// The instructions {ex2 lg2 rcp sqrt rsqrt sin cos tanh}.approx.f32 of PTX.
// Arguments and results are the bits of an f32. `ftz` selects the .ftz
// instruction, which treats subnormal inputs and outputs as zeros of the same
// sign. A NaN result is 0x7fffffff.
uint32_t approx_ex2(uint32_t x, bool ftz);
// Computes approx_ex2(x[k], true) for each of n numbers.
void approx_ex2_all(const uint32_t *x, int n, uint32_t *out);
uint32_t approx_lg2(uint32_t x, bool ftz);
uint32_t approx_rcp(uint32_t x, bool ftz);
uint32_t approx_sqrt(uint32_t x, bool ftz);
uint32_t approx_rsqrt(uint32_t x, bool ftz);
// Sin and cos have no `ftz`, since .ftz does not change their results.
uint32_t approx_sin(uint32_t x);
uint32_t approx_cos(uint32_t x);
uint32_t approx_tanh(uint32_t x);

// div.full.f32
uint32_t approx_div(uint32_t x, uint32_t y);

// The PTX instructions rcp.approx.ftz.f64, rsqrt.approx.f64 and
// rsqrt.approx.ftz.f64, on the bits of an f64.
uint64_t approx_rcp_f64(uint64_t x);
uint64_t approx_rsqrt_f64(uint64_t x, bool ftz);

// The PTX instructions ex2.approx.f16, ex2.approx.ftz.bf16, tanh.approx.f16 and
// tanh.approx.bf16, on 16 bits.
uint32_t approx_ex2_f16(uint32_t x);
uint32_t approx_ex2_bf16(uint32_t x);
uint32_t approx_tanh_f16(uint32_t x);
uint32_t approx_tanh_bf16(uint32_t x);

#endif
// SPDX-License-Identifier: MIT
