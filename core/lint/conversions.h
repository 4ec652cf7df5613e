// Finds operations whose results lose digits that a conversion was meant to
// keep (conversions.c).
#ifndef CUTE_CONVERSIONS_H
#define CUTE_CONVERSIONS_H

#include "ir/ir.h"

// WRAPS: a sum, difference or product of i32 from which a float is computed.
// FRACTION: the quotient of an integer sum that becomes a float. SCALE: the
// conversion of a quantization scale to a narrow float. Such a scale is the
// largest absolute value divided by a number.
typedef enum Loss { LOSS_NONE, LOSS_WRAPS, LOSS_FRACTION, LOSS_SCALE } Loss;

// Returns the Loss of each instruction's result; NULL if none has a Loss.
uint8_t *conversions(Ctx *cx, const Fn *fn);
// Returns a lower bound of the scale that conversion r converts, such as 1e-8 /
// 127 for max(largest, 1e-8) / 127. Returns 0 if the scale has no such bound.
double conversions_floor(const Fn *fn, Ref r);

#endif
// SPDX-License-Identifier: MIT
