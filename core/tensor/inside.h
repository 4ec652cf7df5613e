// Functions that copy() and gemm() use: they count the values of a layout, and
// compute the offset of a value.
#ifndef CUTE_TENSORINSIDE_H
#define CUTE_TENSORINSIDE_H

#include "tensor/tiled.h"

static inline int64_t count(Ctx *cx, Layout l, const char *what) {
  if (!tup_static(l.shape))
    ctx_fail(cx, ERR_STATIC, "%s needs static shapes, got %s", what,
             layout_text(cx, l));
  return dim_value(layout_size(cx, l));
}

// Returns the offset of the value with linear index i in layout l.
static inline Dim at(Ctx *cx, Layout l, int64_t i) {
  return layout_eval_at(cx, l, dim_int(cx, i));
}

#endif
// SPDX-License-Identifier: MIT
