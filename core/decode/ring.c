// Finds rings of stages. A tensor in shared memory is a ring if the last mode
// of its layout has 2 to 8 coordinates and the largest stride.
#include "decode/ring.h"

#include "layout/notation.h"

#include <string.h>

enum { MOST_STAGES = 8 };

// Returns the index of the last mode with more than one coordinate, or -1.
static int last_mode(const Dim *shape, size_t n) {
  while (n && dim_is(shape[n - 1], 1)) n--;
  return (int)n - 1;
}

void ring_find(Ctx *cx, const Fn *fn, const Mem *m, SimMem *s) {
  const char *text = ir_str(fn, m->layout);
  if (!*text || strchr(text, '?') || strchr(text, '_')) return;
  Layout l = layout_parse(cx, text, strlen(text));
  if ((l.outer && !layout_swizzle(l)) || !layout_static(l)) return;
  size_t n = tup_leaves(l.shape);
  Dim *shape = NEW(cx, Dim, n);
  tup_collect(l.shape, shape);
  int last = last_mode(shape, n);
  if (last < 1) return;
  int64_t stages = dim_value(shape[last]), stride = dim_value(l.stride[last]);
  if (stages > MOST_STAGES) return;
  for (int k = 0; k < last; k++)
    if (dim_value(shape[k]) > 1 && dim_value(l.stride[k]) >= stride) return;
  s->stages = (int)stages;
  s->stage = stride * s->own / 8;
}
// SPDX-License-Identifier: MIT
