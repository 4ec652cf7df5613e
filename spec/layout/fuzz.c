// libFuzzer target for the parser and the algebra of layouts. The input is text
// of the form "op;layout;layout", or bytes that choose an operation and build
// its operands. Errors are fine; crashes, leaks and silent overflow are not.
// Accepted results are checked by evaluation where that is cheap.
//
// Built and run by spec/fuzz/layout.lua (`make fuzz`).
#include "layout/inside.h"
#include "layout/algebra.h"
#include "layout/composed.h"
#include "layout/notation.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Run {
  jmp_buf out;
  ErrKind kind;
} Run;

static void failed(Ctx *cx, ErrKind kind, const char *msg) {
  Run *r = cx->ud;
  r->kind = kind;
  if (kind == ERR_INTERNAL || !msg[0]) abort();
  longjmp(r->out, 1);
}

// ---- operands from bytes ----

typedef struct Bytes {
  const uint8_t *p, *end;
} Bytes;

static int byte(Bytes *b) { return b->p < b->end ? *b->p++ : 0; }

static void shape_from(Ctx *cx, TupB *t, Bytes *b, int depth) {
  static const int64_t extents[] = {1, 2, 2, 3, 4, 4, 5, 6, 8, 16, 0, 32};
  int k = byte(b);
  if (depth == 0 || k % 3 != 0) {
    tupb_leaf(cx, t, dim_int(cx, extents[(size_t)k / 3 % 12]));
    return;
  }
  tupb_open(cx, t);
  for (int n = 1 + k / 3 % 3; n > 0; n--) shape_from(cx, t, b, depth - 1);
  tupb_close(cx, t);
}

static Tup tup_from(Ctx *cx, Bytes *b) {
  TupB t = {0};
  shape_from(cx, &t, b, 3);
  return tupb_done(cx, &t);
}

static Layout plain_from(Ctx *cx, Bytes *b) {
  static const int64_t strides[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, -1, -4,
                                    (int64_t)1 << 40, DIM_MAX, -DIM_MAX};
  Tup s = tup_from(cx, b);
  size_t n = tup_leaves(s);
  Dim *d = NEW(cx, Dim, n + 1);
  if (byte(b) % 2) return layout_compact(cx, s);
  bool xored = byte(b) % 8 == 1;
  for (size_t i = 0; i < n; i++)
    d[i] = xored ? dim_xor(cx, byte(b)) : dim_int(cx, strides[byte(b) % 14]);
  return layout_make(cx, s, tup_like(cx, s, d));
}

static Layout layout_from(Ctx *cx, Bytes *b) {
  Layout l = plain_from(cx, b);
  for (int n = byte(b) % 4; n == 0 || n == 1; n = byte(b) % 4) {
    Dim offset = {byte(b) % 64};
    if (n == 0) {
      int x = byte(b);
      Swizzle w = swizzle_make(cx, x % 4, x / 4 % 4, byte(b) % 9 - 4);
      l = layout_swizzled(cx, w, offset, l);
    } else {
      l = layout_composed(cx, plain_from(cx, b), offset, l);
    }
    if (b->p == b->end) break;
  }
  return l;
}

static Tiler tiler_from(Ctx *cx, Bytes *b, int depth) {
  int k = byte(b);
  if (k % 5 == 0) return (Tiler){.kind = TILER_ANY, .n = 1};
  if (depth == 0 || k % 5 == 1) return tiler_layout(layout_from(cx, b));
  if (k % 5 == 2) return tiler_tup(cx, tup_from(cx, b));
  int n = 1 + k / 5 % 3;
  Tiler *m = NEW(cx, Tiler, (size_t)n);
  for (int i = 0; i < n; i++) m[i] = tiler_from(cx, b, depth - 1);
  return (Tiler){.kind = TILER_TUPLE, .n = n, .mode = m};
}

// ---- checks ----

static void evaluate(Ctx *cx, Layout l) {
  Dim n = layout_size(cx, l);
  int64_t step = n.w / 64 + 1;
  for (int64_t i = 0; i < n.w; i += step) {
    Dim c = {i};
    layout_eval_tup(cx, l, &c);
  }
  const char *s = layout_text(cx, l);
  size_t len = strlen(s);
  if (len < 390 && !layout_eq(layout_parse(cx, s, len), l)) {
    fprintf(stderr, "%s is read as %s\n", s,
            layout_text(cx, layout_parse(cx, s, len)));
    abort();
  }
}

static _Noreturn void wrong(Ctx *cx, const char *op, Layout a, Layout b,
                            Layout r) {
  fprintf(stderr, "%s of %s and %s: %s\n", op, layout_text(cx, a),
          layout_text(cx, b), layout_text(cx, r));
  abort();
}

// Checks r(i) == a(b(i)).
static void composed(Ctx *cx, Layout a, Layout b, Layout r) {
  Dim n = layout_size(cx, b);
  if (n.w != layout_size(cx, r).w) wrong(cx, "composition", a, b, r);
  if (n.w > 4096) return;
  for (int64_t i = 0; i < n.w; i++) {
    Dim x = layout_eval_at(cx, b, (Dim){i});
    if (x.w < 0) return;
    if (layout_eval_at(cx, a, x).w != layout_eval_at(cx, r, (Dim){i}).w)
      wrong(cx, "composition", a, b, r);
  }
}

static void slice(Ctx *cx, Bytes *b, Layout l) {
  int n = layout_rank(l);
  if (tup_is_leaf(l.shape) || tup_empty(l.shape)) return;
  Dim *c = NEW(cx, Dim, (size_t)n + 1), *full = NEW(cx, Dim, (size_t)n + 1);
  for (int i = 0; i < n; i++) {
    Dim size = layout_size(cx, layout_mode(cx, l, i));
    full[i] = (Dim){byte(b) % size.w};
    c[i] = byte(b) % 2 ? dim_any() : full[i];
  }
  Dim off, want = layout_eval(cx, l, tup_of(cx, full, (size_t)n));
  Layout s = layout_slice(cx, l, tup_of(cx, c, (size_t)n), &off);
  size_t k = 0;
  for (int i = 0; i < n; i++)
    if (dim_kind(c[i]) == DIM_ANY) full[k++] = full[i];
  if (k == 0) return;
  Dim got = layout_eval(cx, s, tup_of(cx, full, k));
  if (off.w + got.w != want.w) wrong(cx, "slice", l, s, l);
}

// Checks (a + b)(i) == a(i) + b(i).
static void sum(Ctx *cx, Layout a, Layout b) {
  Layout r = layout_add(cx, a, b);
  Dim n = layout_size(cx, r);
  if (n.w != layout_size(cx, a).w) wrong(cx, "layout_add", a, b, r);
  for (Dim i = {0}; i.w < n.w && n.w <= 4096; i.w++)
    if (layout_eval_at(cx, a, i).w + layout_eval_at(cx, b, i).w !=
        layout_eval_at(cx, r, i).w)
      wrong(cx, "layout_add", a, b, r);
}

// ---- the operations ----

static Layout binary(Ctx *cx, int op, Layout a, Bytes *b) {
  switch (op) {
  case 0: {
    Layout r = layout_from(cx, b), c = layout_compose(cx, a, r);
    composed(cx, a, r, c);
    return c;
  }
  case 1: return layout_compose_tiler(cx, a, tiler_from(cx, b, 2));
  case 2: return layout_logical_divide(cx, a, tiler_from(cx, b, 2));
  case 3: return layout_zipped_divide(cx, a, tiler_from(cx, b, 2));
  case 4: return layout_tiled_divide(cx, a, tiler_from(cx, b, 2));
  case 5: return layout_flat_divide(cx, a, tiler_from(cx, b, 2));
  case 6: return layout_logical_product(cx, a, tiler_from(cx, b, 2));
  case 7: return layout_flat_product(cx, a, tiler_from(cx, b, 2));
  case 8: return layout_blocked_product(cx, a, layout_from(cx, b));
  case 9: return layout_raked_product(cx, a, layout_from(cx, b));
  case 10: return layout_tile_to_shape(cx, a, tup_from(cx, b), NULL);
  case 11: return layout_complement(cx, a, tup_from(cx, b));
  case 12: return layout_with_shape(cx, a, tup_from(cx, b));
  case 13: return layout_max_common_layout(cx, a, layout_from(cx, b));
  case 14: return layout_coalesce_by(cx, a, tup_from(cx, b));
  case 15: return layout_filter_by(cx, a, tup_from(cx, b));
  case 16: return layout_ordered(cx, a.shape, tup_from(cx, b));
  case 17: {
    Layout l[2] = {a, layout_from(cx, b)};
    return layout_zip_of(cx, l, 2);
  }
  case 18: return layout_unflatten(cx, a, tup_from(cx, b));
  default: return layout_append(cx, a, layout_from(cx, b));
  }
}

static Layout unary(Ctx *cx, int op, Layout a, Bytes *b) {
  switch (op) {
  case 0: return layout_coalesce(cx, a);
  case 1: return layout_filter(cx, a);
  case 2: return layout_right_inverse(cx, a);
  case 3: return layout_left_inverse(cx, a);
  case 4: return layout_nullspace(cx, a);
  case 5: return layout_like(cx, a);
  case 6: return layout_fragment_like(cx, a);
  case 7: return layout_identity(cx, a.shape);
  case 8: return layout_upcast(cx, a, 1 + byte(b) % 16);
  case 9: return layout_downcast(cx, a, 1 + byte(b) % 16);
  case 10: return layout_recast(cx, a, 1 + byte(b), 1 + byte(b));
  case 11: return layout_group(cx, a, byte(b) % 4, byte(b) % 4);
  case 12: return layout_complement(cx, a, NULL);
  case 13: layout_max_alignment(cx, a); return a;
  case 14: slice(cx, b, a); return a;
  case 16: return layout_greatest_common_domain(cx, a.shape, tup_from(cx, b));
  case 17: sum(cx, a, layout_from(cx, b)); return a;
  case 15: return layout_mode(cx, a, byte(b) % 4);
  default: return layout_domain_distribute(cx, a.shape, 1 + byte(b));
  }
}

static void algebra(Ctx *cx, Bytes b) {
  int op = byte(&b);
  Layout a = layout_from(cx, &b);
  // Applies up to three operations, each to the previous result.
  for (int i = 0; i < 3; i++) {
    a = op % 2 ? binary(cx, op / 2 % 20, a, &b) : unary(cx, op / 2 % 19, a, &b);
    evaluate(cx, a);
    if (b.p == b.end || layout_has_basis(a)) break;
    op = byte(&b);
  }
}

static void text(Ctx *cx, const char *s, size_t n) {
  Notation v = note_parse(cx, s, n);
  if (v.kind == NOTE_LAYOUT && !layout_has_basis(v.l)) {
    evaluate(cx, v.l);
    layout_coalesce(cx, v.l);
    layout_right_inverse(cx, v.l);
    layout_complement(cx, v.l, NULL);
  } else if (v.kind == NOTE_TUP) {
    size_t len = strlen(tup_text(cx, v.t));
    if (len < 390 && !tup_eq(note_parse(cx, tup_text(cx, v.t), len).t, v.t))
      abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Run run;
  Ctx cx = {.fail = failed, .ud = &run};
  if (size && setjmp(run.out) == 0) {
    if (data[0] % 4 == 0)
      text(&cx, (const char *)data + 1, size - 1);
    else
      algebra(&cx, (Bytes){data + 1, data + size});
  }
  arena_free(&cx.scratch);
  return 0;
}
// SPDX-License-Identifier: MIT
