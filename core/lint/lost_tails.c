// Finds loops over whole tiles that omit the rest of a row. Each iteration
// reads the next tile of a row, and the number of iterations is constant. One
// more tile would extend beyond the row's end, so the loop omits the elements
// after the last whole tile.
//
// The omission is reported as a mistake if another line reads the whole row. It
// is assumed to be intended if a line reads only the rest, or if the analysis
// cannot determine which elements a line reads.
#include "lint/lost_tails.h"

#include <stdio.h>

#include "lint/index_values.h"

enum { BUDGET = 1 << 18, WARP = 32 };

// The rows of a tensor: their length, and the distance between adjacent rows,
// both in elements.
typedef struct Rows { int64_t extent, pitch; } Rows;

static bool rows_of(const Fn *fn, const Mem *m, Rows *rows) {
  long long n[2], d[2];
  const char *text = ir_str(fn, m->layout);
  if (sscanf(text, "(%lld,%lld):(%lld,%lld)", &n[0], &n[1], &d[0], &d[1]) == 4)
    *rows = (Rows){n[1], d[0]};
  else if (sscanf(text, "(%lld):(%lld)", &n[0], &d[1]) == 2)
    *rows = (Rows){n[0], n[0]};
  else
    return false;
  return d[1] == 1 && rows->pitch >= rows->extent;
}

typedef struct Search {
  const Fn *fn;
  IndexValues v;
} Search;

// Finds the first and the last column that the threads of a block read at
// offset `off`, in the block and iteration that s->v selects. The row of a warp
// is that of its first lane. A column may be beyond the row's end, because
// conditions around the load are ignored. Returns false if the columns are
// unknown.
static bool columns(Search *s, Ref off, const Rows *rows, int64_t *first,
                    int64_t *last) {
  const int64_t *at = index_values(&s->v, off);
  if (!at) return false;
  for (int32_t t = 0; t < s->v.n; t++) {
    int64_t lane = at[t - t % WARP];
    int64_t column = at[t] - (lane - lane % rows->pitch);
    if (lane < 0) return false;
    if (t == 0 || column < *first) *first = column;
    if (t == 0 || column > *last) *last = column;
  }
  return true;
}

static void set(Search *s, Ref loop, int64_t k, bool last) {
  s->v.loop = loop;
  s->v.k = k;
  s->v.last = last;
  index_values_forget(&s->v);
}

// Reports whether the columns at offset `off` may depend on the index of the
// block.
static bool moves(Search *s, Ref off, const Rows *rows) {
  int64_t first, last;
  bool found = false;
  for (int k = 0; k < 3; k++) {
    s->v.block[k] = 1;
    set(s, 0, 0, false);
    found |= !columns(s, off, rows, &first, &last) || first != 0;
    s->v.block[k] = 0;
  }
  return found;
}

// Reports whether load r, in a loop with a constant number of iterations, reads
// the next whole tile of a row in each iteration. Sets *n to the number of
// elements of a row that the loop reads.
static bool reads_tiles(Search *s, Ref r, const Rows *rows, int64_t *n) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  Ref loop = ir_loop_around(fn, r);
  const Ins *l = ir_get(fn, loop);
  int64_t from, end, step, first[2], last[2];
  if (!loop || l->op != OP_FOR || !ir_const(fn, l->a[0], &from) ||
      !ir_const(fn, l->a[1], &end) || !ir_const(fn, l->a[2], &step) ||
      from || step != 1 || end < 2)
    return false;
  for (int k = 0; k < 2; k++) {
    set(s, loop, k, false);
    if (!columns(s, i->a[1], rows, &first[k], &last[k])) return false;
  }
  int64_t tile = last[0] + 1;
  *n = end * tile;
  return first[0] == 0 && first[1] == tile && last[1] == 2 * tile - 1 &&
         *n < rows->extent && *n + tile > rows->extent &&
         !moves(s, i->a[1], rows);
}

// Reports whether another load of the same tensor reads whole rows, and no load
// reads only elements from n on.
static bool is_read(Search *s, Ref r, const Rows *rows, int64_t n) {
  const Fn *fn = s->fn;
  Ref mem = ir_get(fn, r)->a[0];
  bool whole = false;
  for (Ref o = 1; o < fn->ins.n; o++) {
    const Ins *i = ir_get(fn, o);
    int64_t first, last, other;
    if (i->op != OP_LD || i->a[0] != mem || o == r) continue;
    set(s, 0, 0, true);
    if (!columns(s, i->a[1], rows, &other, &last)) return false;
    set(s, 0, 0, false);
    if (!columns(s, i->a[1], rows, &first, &other) || first >= n) return false;
    whole |= first == 0 && last >= n;
  }
  return whole;
}

void lost_tails(Ctx *cx, const Fn *fn,
                void (*found)(void *ud, const LostTail *t), void *ud) {
  if (!ir_threads(fn) || ir_has_addresses(fn)) return;
  Search s = {.fn = fn};
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    Rows rows;
    int64_t n;
    if (i->op != OP_LD || ir_get(fn, i->a[0])->op != OP_GMEM) continue;
    const Mem *m = ir_memof(fn, i->a[0]);
    if (!s.v.n) s.v = index_values_at(cx, fn, BUDGET);
    if (!rows_of(fn, m, &rows) || !reads_tiles(&s, r, &rows, &n) ||
        !is_read(&s, r, &rows, n))
      continue;
    found(ud, &(LostTail){.at = r, .mem = m, .n = n, .extent = rows.extent});
  }
}
// SPDX-License-Identifier: MIT
