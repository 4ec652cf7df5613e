// CuTe notation: printing and parsing of dims, tuples, layouts, tilers.
#include "layout.h"

#include <stdio.h>
#include <string.h>

// ---- printing ----

// A traced value: `?`, with its divisibility while its kernel is traced.
static void print_dyn(Ctx *cx, Dim d, Buf *out) {
  Ref r = dim_getref(d);
  int64_t div = cx->fn && r < cx->fn->ins.n ? ir_fact(cx->fn, r).div : 1;
  if (div > 1)
    buf_printf(cx, out, "?{div=%lld}", (long long)div);
  else
    buf_puts(cx, out, "?");
}

static void print_int(Ctx *cx, int64_t v, Buf *out) {
  char s[24], *p = s + sizeof s;
  uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  do *--p = (char)('0' + u % 10);
  while (u /= 10);
  if (v < 0) *--p = '-';
  buf_add(cx, out, p, (size_t)(s + sizeof s - p));
}

void dim_print(Ctx *cx, Dim d, Buf *out) {
  int path[DIM_LEVELS];
  int n = dim_basis_path(d, path);
  Dim v = dim_basis_value(d);
  if (dim_kind(v) == DIM_DYN)
    print_dyn(cx, v, out);
  else if (dim_kind(v) == DIM_ANY)
    buf_puts(cx, out, "_");
  else
    print_int(cx, v.w, out);
  for (int i = n - 1; i >= 0; i--) buf_printf(cx, out, "@%d", path[i]);
}

// t's profile with the leaves from d (NULL: t's own).
static const Dim *print_tup(Ctx *cx, Tup t, const Dim *d, Buf *out) {
  if (tup_is_leaf(t)) {
    dim_print(cx, d ? *d : *t, out);
    return d ? d + 1 : NULL;
  }
  buf_puts(cx, out, "(");
  Tup m = tup_first(t);
  for (int i = 0, n = tup_rank(t); i < n; i++, m = tup_next(m)) {
    if (i) buf_puts(cx, out, ",");
    d = print_tup(cx, m, d, out);
  }
  buf_puts(cx, out, ")");
  return d;
}

void tup_print(Ctx *cx, Tup t, Buf *out) { print_tup(cx, t, NULL, out); }

void layout_print(Ctx *cx, Layout l, Buf *out) {
  if (l.composed) {
    buf_printf(cx, out, "Sw<%d,%d,%d> o ", l.sw.b, l.sw.m, l.sw.s);
    dim_print(cx, l.offset, out);
    buf_puts(cx, out, " o ");
  }
  tup_print(cx, l.shape, out);
  buf_puts(cx, out, ":");
  print_tup(cx, l.shape, l.stride, out);
}

void tiler_print(Ctx *cx, Tiler t, Buf *out) {
  if (t.kind == TILER_ANY) {
    buf_puts(cx, out, "_");
  } else if (t.extent) {
    tup_print(cx, t.l.shape, out);
  } else if (t.kind == TILER_LAYOUT) {
    layout_print(cx, t.l, out);
  } else {
    buf_puts(cx, out, "(");
    for (int i = 0; i < t.n; i++) {
      if (i) buf_puts(cx, out, ",");
      tiler_print(cx, t.mode[i], out);
    }
    buf_puts(cx, out, ")");
  }
}

// Moves what was printed into scratch; long texts are cut for messages.
static const char *keep(Ctx *cx, Buf *b) {
  if (b->n > 400) memcpy(b->p + 397, "...", 4);
  const char *s = arena_printf(cx, &cx->scratch, "%s", b->p ? b->p : "");
  buf_free(b);
  return s;
}

const char *layout_text(Ctx *cx, Layout l) {
  Buf b = {0};
  layout_print(cx, l, &b);
  return keep(cx, &b);
}

const char *tup_text(Ctx *cx, Tup t) {
  Buf b = {0};
  tup_print(cx, t, &b);
  return keep(cx, &b);
}

const char *tiler_text(Ctx *cx, Tiler t) {
  Buf b = {0};
  tiler_print(cx, t, &b);
  return keep(cx, &b);
}

void explain_say(Ctx *cx, const char *fmt, ...) {
  if (!cx->explain) return;
  Buf *out = cx->explain;
  char line[1200];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  buf_puts(cx, out, line);
  buf_puts(cx, out, "\n");
}

// ---- parsing ----

typedef struct Parser {
  Ctx *cx;
  const char *s, *at, *end;
  int depth;
} Parser;

static _Noreturn void bad(Parser *p, const char *want) {
  int pos = (int)(p->at - p->s), from = pos > 40 ? pos - 40 : 0;
  int len = (int)(p->end - p->s) - from;
  ctx_fail(p->cx, ERR_PARSE, "expected %s at position %d\n  %.*s\n  %*s^",
           want, pos + 1, len > 76 ? 76 : len, p->s + from, pos - from, "");
}

static void blanks(Parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' ||
                            *p->at == '\n' || *p->at == '\r'))
    p->at++;
}

static int peek(Parser *p) {
  blanks(p);
  return p->at < p->end ? (unsigned char)*p->at : 0;
}

static bool take(Parser *p, char c) {
  if (peek(p) != c) return false;
  p->at++;
  return true;
}

static bool digit(Parser *p) {
  return p->at < p->end && *p->at >= '0' && *p->at <= '9';
}

static int64_t number(Parser *p, const char *want) {
  blanks(p);
  const char *start = p->at;
  bool neg = p->at < p->end && *p->at == '-';
  if (neg) p->at++;
  if (!digit(p)) {
    p->at = start;
    bad(p, want);
  }
  int64_t v = 0;
  for (; digit(p); p->at++)
    if (__builtin_mul_overflow(v, 10, &v) ||
        __builtin_add_overflow(v, *p->at - '0', &v) || v > DIM_MAX)
      ctx_fail(p->cx, ERR_OVERFLOW, "number at position %d is beyond 2^60",
               (int)(start - p->s) + 1);
  return neg ? -v : v;
}

static Dim leaf(Parser *p) {
  if (peek(p) == '?')
    ctx_fail(p->cx, ERR_PARSE, "a traced extent (`?` at position %d) has no "
             "value to read", (int)(p->at - p->s) + 1);
  if (take(p, '_') && !digit(p)) return dim_any();  // `_8` is CuTe's static 8
  int64_t v = number(p, "an integer, `_` or '('");
  int path[DIM_LEVELS], n = 0;
  while (p->at < p->end && *p->at == '@') {
    if (n == DIM_LEVELS) bad(p, "at most 4 levels of '@'");
    p->at++;
    int64_t m = number(p, "a mode number");
    path[n++] = m < 0 || m > 63 ? -1 : (int)m;
  }
  for (int i = 0; i < n / 2; i++) {  // written innermost mode first
    int m = path[i];
    path[i] = path[n - 1 - i];
    path[n - 1 - i] = m;
  }
  return dim_basis(p->cx, (Dim){v}, path, n);
}

static Notation entry(Parser *p);

static Tiler as_tiler(Ctx *cx, Notation n) {
  if (n.kind == NOTE_TILER) return n.tiler;
  if (n.kind == NOTE_LAYOUT) return tiler_layout(n.l);
  return tiler_tup(cx, n.t);
}

static Notation parens(Parser *p) {
  Notation *m = NULL;
  size_t n = 0, cap = 0;
  bool layouts = false;
  if (++p->depth > TUP_DEPTH_MAX)
    ctx_fail(p->cx, ERR_LIMIT, "tuples nest at most %d deep", TUP_DEPTH_MAX);
  while (!take(p, ')')) {
    if (n && !take(p, ',')) bad(p, "',' or ')'");
    if (n == TUP_RANK_MAX)
      ctx_fail(p->cx, ERR_LIMIT, "a tuple has at most %d modes",
               TUP_RANK_MAX);
    if (n == cap) {
      Notation *w = NEW(p->cx, Notation, cap = cap ? cap * 2 : 8);
      if (n) memcpy(w, m, n * sizeof *w);
      m = w;
    }
    m[n] = entry(p);
    layouts = layouts || m[n].kind != NOTE_TUP;
    n++;
  }
  p->depth--;
  if (layouts) {
    Tiler *t = NEW(p->cx, Tiler, n);
    for (size_t i = 0; i < n; i++) t[i] = as_tiler(p->cx, m[i]);
    return (Notation){.kind = NOTE_TILER,
                      .tiler = {.kind = TILER_TUPLE, .n = (int)n, .mode = t}};
  }
  Tup *t = NEW(p->cx, Tup, n + 1);
  for (size_t i = 0; i < n; i++) t[i] = m[i].t;
  return (Notation){.kind = NOTE_TUP, .t = tup_pack(p->cx, t, (int)n)};
}

static Notation atom(Parser *p) {
  if (take(p, '(')) return parens(p);
  return (Notation){.kind = NOTE_TUP, .t = tup_leaf(p->cx, leaf(p))};
}

// atom, or shape:stride
static Notation entry(Parser *p) {
  Notation a = atom(p);
  if (peek(p) != ':') return a;
  if (a.kind != NOTE_TUP) bad(p, "',' or ')' (a layout has no stride)");
  p->at++;
  Notation d = atom(p);
  if (d.kind != NOTE_TUP) bad(p, "strides before this");
  return (Notation){.kind = NOTE_LAYOUT,
                    .l = layout_make(p->cx, a.t, d.t)};
}

// Sw<b,m,s>, alone or followed by "o [offset o] layout".
static Notation swizzled(Parser *p) {
  p->at += 3;
  int64_t b = number(p, "an integer");
  if (!take(p, ',')) bad(p, "','");
  int64_t m = number(p, "an integer");
  if (!take(p, ',')) bad(p, "','");
  int64_t s = number(p, "an integer");
  if (!take(p, '>')) bad(p, "'>'");
  Swizzle sw = swizzle_make(p->cx, b, m, s);
  if (peek(p) != 'o') return (Notation){.kind = NOTE_SWIZZLE, .sw = sw};
  p->at++;
  Notation x = entry(p);
  Dim offset = {0};
  if (peek(p) == 'o') {
    if (x.kind != NOTE_TUP || !tup_is_leaf(x.t) || !dim_static(*x.t))
      bad(p, "an integer offset before this");
    offset = *x.t;
    p->at++;
    x = entry(p);
  }
  if (x.kind != NOTE_LAYOUT) bad(p, "a layout before this");
  x.l.sw = sw;
  x.l.offset = offset;
  x.l.composed = true;
  return x;
}

Notation note_parse(Ctx *cx, const char *s, size_t n) {
  Parser p = {.cx = cx, .s = s, .at = s, .end = s + n};
  blanks(&p);
  bool sw = p.end - p.at >= 3 && memcmp(p.at, "Sw<", 3) == 0;
  Notation r = sw ? swizzled(&p) : entry(&p);
  if (peek(&p) || p.at < p.end) bad(&p, "the end");
  return r;
}

Layout layout_parse(Ctx *cx, const char *s, size_t n) {
  Notation r = note_parse(cx, s, n);
  if (r.kind != NOTE_LAYOUT)
    ctx_fail(cx, ERR_PARSE, "a layout shape:stride was expected, not %.*s",
             (int)(n > 60 ? 60 : n), s);
  return r.l;
}

Tup tup_parse(Ctx *cx, const char *s, size_t n) {
  Notation r = note_parse(cx, s, n);
  if (r.kind != NOTE_TUP)
    ctx_fail(cx, ERR_PARSE, "a tuple was expected, not %.*s",
             (int)(n > 60 ? 60 : n), s);
  return r.t;
}
