// Prints and parses CuTe notation: integers, tuples, layouts, tilers.
#include "layout/notation.h"

#include <stdio.h>
#include <string.h>

#include "layout/composed.h"

// ---- printing ----

// Prints a traced value as `?`, followed by its divisor if its kernel is still
// being traced.
static void print_dyn(Ctx *cx, Dim d, Buf *out) {
  Ref r = dim_getref(d);
  const Fn *fn = ir_fn(cx);
  int64_t div = fn && r < fn->ins.n ? ir_fact(fn, r).div : 1;
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
  if (dim_kind(d) == DIM_LAYOUT) {
    layout_print(cx, *dim_getlayout(d), out);
    return;
  }
  if (dim_kind(d) == DIM_XOR) {
    buf_printf(cx, out, "F%lld", (long long)dim_xor_value(d));
    return;
  }
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

// Prints a tuple with t's nesting and the leaves d (NULL: t's own leaves).
// Returns the position in d after these leaves.
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

// Prints "f o offset o " for every outer function f of l, starting with the one
// that applies last.
static void print_outer(Ctx *cx, Layout l, Buf *out) {
  const Outer *f = l.outer;
  if (!f) return;
  print_outer(cx, f->l, out);
  if (f->kind == OUTER_LAYOUT)
    layout_print(cx, layout_inner(f->l), out);
  else if (f->kind == OUTER_FN)
    buf_puts(cx, out, f->fn->name);
  else
    buf_printf(cx, out, "Sw<%d,%d,%d>", f->sw.b, f->sw.m, f->sw.s);
  buf_puts(cx, out, " o ");
  tup_print(cx, l.at ? l.at : &l.offset, out);
  buf_puts(cx, out, " o ");
}

void layout_print(Ctx *cx, Layout l, Buf *out) {
  print_outer(cx, l, out);
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

// Moves the printed text to cx->scratch. Text for messages is cut after 400
// characters.
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
  Buf *out = explain_on(cx);
  if (!out) return;
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

// Fails with the message `what`, the parsed text, and a caret under position
// `at`.
static _Noreturn void fail_at(Parser *p, ErrKind kind, const char *at,
                              const char *what) {
  int pos = (int)(at - p->s), from = pos > 40 ? pos - 40 : 0;
  int len = (int)(p->end - p->s) - from;
  char text[80];
  if (len > 76) len = 76;
  for (int i = 0; i < len; i++) {
    unsigned char c = (unsigned char)p->s[from + i];
    text[i] = c < ' ' || c == 127 ? ' ' : (char)c;
  }
  ctx_fail(p->cx, kind, "%s at position %d\n  %.*s\n  %*s^", what, pos + 1,
           len, text, pos - from, "");
}

static _Noreturn void bad(Parser *p, const char *want) {
  fail_at(p, ERR_PARSE, p->at,
          arena_printf(p->cx, &p->cx->scratch, "expected %s", want));
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
      fail_at(p, ERR_OVERFLOW, start, "a number beyond 2^60");
  return neg ? -v : v;
}

static bool begins(const Parser *p, const char *word) {
  size_t n = strlen(word);
  return (size_t)(p->end - p->at) >= n && memcmp(p->at, word, n) == 0;
}

static Dim leaf(Parser *p) {
  if (peek(p) == '?')
    fail_at(p, ERR_PARSE, p->at,
            "a traced extent (`?`) cannot be read from text");
  const char *start = p->at;
  // CuTe writes a static 8 as `_8`.
  if (take(p, '_') && !digit(p)) return dim_any();
  if (begins(p, "F") && p->at + 1 < p->end && p->at[1] >= '0' &&
      p->at[1] <= '9') {
    p->at++;
    return dim_xor(p->cx, number(p, "an integer"));
  }
  int64_t v = number(p, "an integer, `_` or '('");
  int path[DIM_LEVELS], n = 0;
  while (p->at < p->end && *p->at == '@') {
    if (n == DIM_LEVELS) bad(p, "at most 4 levels of '@'");
    const char *mode = ++p->at;
    int64_t m = number(p, "a mode number");
    if (m < 0 || m > 63)
      fail_at(p, ERR_LIMIT, mode, "a basis names modes 0 to 63 only,");
    path[n++] = (int)m;
  }
  if (n && v != (int32_t)v)
    fail_at(p, ERR_OVERFLOW, start, "a basis value beyond 32 bits");
  for (int i = 0; i < n / 2; i++) {  // The text names the innermost mode first.
    int m = path[i];
    path[i] = path[n - 1 - i];
    path[n - 1 - i] = m;
  }
  return dim_basis(p->cx, dim_int(p->cx, v), path, n);
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
    fail_at(p, ERR_LIMIT, p->at - 1,
            arena_printf(p->cx, &p->cx->scratch,
                         "tuples nest at most %d deep", TUP_DEPTH_MAX));
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
    peek(p);
    const char *at = p->at;
    m[n] = entry(p);
    if (m[n].kind == NOTE_SWIZZLE)
      fail_at(p, ERR_PARSE, at, "a swizzle alone is not a layout,");
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

// Returns the position of leaf k of the tuple whose text starts at `at`.
static const char *leaf_at(const char *at, size_t k) {
  for (bool in = false;; at++) {
    bool sep = strchr("(), \t\r\n", *at) != NULL;
    if (!sep && !in && k-- == 0) return at;
    in = !sep;
  }
}

static void check_extents(Parser *p, const char *at, Tup shape) {
  size_t n = tup_words(shape), leaf = 0;
  for (size_t i = 0; i < n; i++) {
    if (!tup_is_leaf(shape + i)) continue;
    if (dim_kind(shape[i]) != DIM_INT || shape[i].w < 0)
      fail_at(p, ERR_PARSE, leaf_at(at, leaf),
              "expected an integer of at least 0 as extent");
    leaf++;
  }
}

static void check_strides(Parser *p, const char *colon, const char *at,
                          Tup shape, Tup stride) {
  Arena *a = &p->cx->scratch;
  if (!tup_congruent(shape, stride)) {
    bool open = p->depth > 0 && tup_is_leaf(shape) && !tup_is_leaf(stride);
    fail_at(p, ERR_PARSE, open ? colon : at, arena_printf(
      p->cx, a, "stride %s does not have the nesting of shape %s%s",
      tup_text(p->cx, stride), tup_text(p->cx, shape),
      open ? " (is a ')' missing before the ':'?)" : ""));
  }
  size_t n = tup_words(stride), leaf = 0;
  for (size_t i = 0; i < n; i++) {
    if (dim_kind(stride[i]) == DIM_ANY)
      fail_at(p, ERR_PARSE, leaf_at(at, leaf), "`_` is not a stride");
    leaf += tup_is_leaf(stride + i);
  }
}

// Parses an integer, a tuple or a tiler, or a layout shape:stride.
static Notation atom_layout(Parser *p) {
  peek(p);
  const char *start = p->at;
  Notation a = atom(p);
  if (peek(p) != ':') return a;
  if (a.kind != NOTE_TUP) bad(p, "',' or ')' (a layout has no stride)");
  check_extents(p, start, a.t);
  const char *colon = p->at++;
  peek(p);
  const char *strides = p->at;
  Notation d = atom(p);
  if (d.kind != NOTE_TUP)
    fail_at(p, ERR_PARSE, strides, "expected strides, not layouts,");
  check_strides(p, colon, strides, a.t, d.t);
  return (Notation){.kind = NOTE_LAYOUT,
                    .l = layout_make(p->cx, a.t, d.t)};
}

// Parses Sw<b,m,s>, which the Python DSL writes as S<b,m,s>.
static Notation swizzle(Parser *p) {
  p->at = (const char *)memchr(p->at, '<', 3) + 1;
  int64_t b = number(p, "an integer");
  if (!take(p, ',')) bad(p, "','");
  int64_t m = number(p, "an integer");
  if (!take(p, ',')) bad(p, "','");
  int64_t s = number(p, "an integer");
  if (!take(p, '>')) bad(p, "'>'");
  return (Notation){.kind = NOTE_SWIZZLE, .sw = swizzle_make(p->cx, b, m, s)};
}

static Notation function(Parser *p) {
  peek(p);
  return begins(p, "Sw<") || begins(p, "S<") ? swizzle(p) : atom_layout(p);
}

static bool all_integers(Tup t) {
  for (size_t i = 0, n = tup_words(t); i < n; i++)
    if (tup_is_leaf(t + i) && !dim_static(t[i])) return false;
  return true;
}

static Layout under(Ctx *cx, Notation f, Tup offset, Layout l) {
  Outer own = {.kind = f.kind == NOTE_SWIZZLE ? OUTER_SWIZZLE : OUTER_LAYOUT,
               .sw = f.sw, .l = f.l};
  return layout_led(cx, own, offset, l);
}

// Parses one notation, or a chain "f o g" or "f o offset o g". In a chain, f is
// a layout or swizzle, and g is a layout or again a chain.
static Notation entry(Parser *p) {
  Notation f = function(p);
  if (peek(p) != 'o' || (f.kind != NOTE_SWIZZLE && f.kind != NOTE_LAYOUT))
    return f;
  if (++p->depth > TUP_DEPTH_MAX)
    fail_at(p, ERR_LIMIT, p->at,
            arena_printf(p->cx, &p->cx->scratch, "compositions `o` and tuples "
                         "nest at most %d deep", TUP_DEPTH_MAX));
  p->at++;
  peek(p);
  const char *start = p->at;
  Notation x = entry(p);
  Dim zero = {0};
  Tup offset = &zero;
  const char *first = start;
  if (peek(p) == 'o') {
    if (x.kind != NOTE_TUP || !all_integers(x.t))
      fail_at(p, ERR_PARSE, start, "expected an integer as offset");
    offset = x.t;
    p->at++;
    peek(p);
    start = p->at;
    x = entry(p);
  }
  p->depth--;
  if (x.kind == NOTE_TUP) bad(p, "':' and a stride");
  if (x.kind == NOTE_SWIZZLE) bad(p, "'o' and a layout");
  if (x.kind != NOTE_LAYOUT) fail_at(p, ERR_PARSE, start, "expected a layout");
  if (!tup_is_leaf(offset) && (x.l.outer || !layout_has_basis(x.l)))
    fail_at(p, ERR_PARSE, first, "expected an integer as offset");
  x.l = under(p->cx, f, offset, x.l);
  return x;
}

// Fails because text follows the notation, which ends before p->at.
static _Noreturn void trailing(Parser *p, bool layout) {
  int c = peek(p);
  fail_at(p, ERR_PARSE, p->at,
          c == ')'   ? "this ')' closes no '('"
          : c == ',' ? "a ',' outside of parentheses"
          : c == ':' && layout
            ? "a second ':' after shape and stride"
            : "text after the end of the notation");
}

static Notation parse(Parser *p) {
  blanks(p);
  Notation r = entry(p);
  if (peek(p) || p->at < p->end) trailing(p, r.kind == NOTE_LAYOUT);
  return r;
}

Notation note_parse(Ctx *cx, const char *s, size_t n) {
  Parser p = {.cx = cx, .s = s, .at = s, .end = s + n};
  return parse(&p);
}

Layout layout_parse(Ctx *cx, const char *s, size_t n) {
  Parser p = {.cx = cx, .s = s, .at = s, .end = s + n};
  blanks(&p);
  const char *start = p.at;
  Notation r = parse(&p);
  if (r.kind == NOTE_TUP) {
    check_extents(&p, start, r.t);
    return layout_compact(cx, r.t);
  }
  if (r.kind == NOTE_SWIZZLE) bad(&p, "'o' and a layout");
  if (r.kind == NOTE_TILER)
    fail_at(&p, ERR_PARSE, s, "a tuple of layouts is a tiler, not a layout,");
  return r.l;
}
// SPDX-License-Identifier: MIT
