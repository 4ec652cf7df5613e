// Checks whether the arguments of a launch fit the argument key of a compiled
// program. Numbers and addresses may differ. Dynamic extents and strides may
// differ within their declared limits. For any other difference, raises an
// error that names the argument.
#include "bind/argkey.h"

#include <stdio.h>
#include <math.h>
#include <string.h>

#include "bind/laylib.h"

// State of a comparison between the words of given arguments and of a stored
// key.
typedef struct Fit {
  Ctx *cx;
  const ArgKey *k;
  const uint64_t *given, *want;  // next words
  const Leaf *leaf;              // next leaf of the given arguments
  Leaf *out;
  size_t n;
  int argument, depth;
  const uint64_t *key[ARG_DEPTH];
} Fit;

// ---- words ----

Dim argmatch_dim(uint64_t word) {
  Dim d;
  memcpy(&d, &word, sizeof d);
  return d;
}

ArgLayout argmatch_layout(const uint64_t **at, bool dynamic) {
  ArgLayout v = {.n = (size_t)**at, .shape = *at + 1};
  for (size_t i = 0; i < v.n; i++)
    v.leaves += dim_kind(argmatch_dim(v.shape[i])) != DIM_TUP;
  v.stride = v.shape + v.n;
  if (dynamic) {
    v.shape_div = v.stride + v.leaves;
    v.stride_div = v.shape_div + v.leaves;
  }
  *at = v.stride + v.leaves * (dynamic ? 3 : 1);
  return v;
}

size_t argmatch_words(const uint64_t *at) {
  switch ((int)ARG_TAG(*at)) {
  case ARG_INT: case ARG_FLOAT: case ARG_OBJECT: return 2;
  case ARG_STRING: case ARG_TMA: return 1 + (ARG_MORE(*at) + 7) / 8;
  case ARG_CONST: return 3;
  default: return 1;
  }
}

// Prints a string up to its first 0 byte. In a composed layout, ids of Lua
// functions follow this byte. Messages must not show them.
static void print_string(Fit *f, const uint64_t *at, Buf *b) {
  int n = (int)ARG_MORE(*at);
  buf_printf(f->cx, b, "%.*s", n < 120 ? n : 120, (const char *)(at + 1));
}

static void print_dim(Fit *f, uint64_t word, uint64_t div, Buf *b) {
  Dim d = argmatch_dim(word);
  if (div > 1) buf_printf(f->cx, b, "?{div=%lld}", (long long)div);
  else if (div) buf_puts(f->cx, b, "?");
  else buf_puts(f->cx, b, tup_text(f->cx, &d));
}

// Prints a tuple with the nesting of v's shape. Its leaves are `words` or, if
// `words` is NULL, the extents of the shape. *at and *leaf are the indices of
// the next word of the shape and of the next leaf.
static void print_tuple(Fit *f, const ArgLayout *v, const uint64_t *words,
                        const uint64_t *div, size_t *at, size_t *leaf,
                        Buf *b) {
  Dim d = argmatch_dim(v->shape[(*at)++]);
  if (dim_kind(d) != DIM_TUP) {
    uint64_t word = words ? words[*leaf] : (uint64_t)d.w;
    print_dim(f, word, div ? div[*leaf] : 0, b);
    ++*leaf;
    return;
  }
  buf_puts(f->cx, b, "(");
  for (int i = 0; i < (int)d.tup.rank; i++) {
    if (i) buf_puts(f->cx, b, ",");
    print_tuple(f, v, words, div, at, leaf, b);
  }
  buf_puts(f->cx, b, ")");
}

static void print_layout(Fit *f, const uint64_t *at, uint64_t flags, Buf *b) {
  if (flags & ARG_COMPOSED) {
    print_string(f, at, b);
    return;
  }
  ArgLayout v = argmatch_layout(&at, flags & ARG_DYNAMIC);
  size_t word = 0, leaf = 0;
  print_tuple(f, &v, NULL, v.shape_div, &word, &leaf, b);
  buf_puts(f->cx, b, ":");
  word = leaf = 0;
  print_tuple(f, &v, v.stride, v.stride_div, &word, &leaf, b);
}

static void print_tensor(Fit *f, const uint64_t *at, Buf *b) {
  uint64_t flags = ARG_MORE(*at);
  int64_t align = (int64_t)at[1];
  at += 2;
  if (flags & ARG_COORD) {
    buf_puts(f->cx, b, "the coordinates ");
    print_string(f, at, b);
    buf_puts(f->cx, b, " o ");
    at += argmatch_words(at);
    print_layout(f, at, flags, b);
    return;
  }
  buf_printf(f->cx, b, "a tensor of %s, ", dtype_name((DType)(flags & 255)));
  print_layout(f, at, flags, b);
  buf_printf(f->cx, b, ", aligned to %lld bytes%s", (long long)align,
             flags & ARG_WIDE ? ", with offsets of 64 bits" : "");
}

static void print_value(Fit *f, const uint64_t *at, Buf *b) {
  Ctx *cx = f->cx;
  size_t more = ARG_MORE(*at);
  double x;
  switch (ARG_TAG(*at)) {
  case ARG_NIL: buf_puts(cx, b, "nil"); break;
  case ARG_FALSE: buf_puts(cx, b, "false"); break;
  case ARG_TRUE: buf_puts(cx, b, "true"); break;
  case ARG_NUMBER:
    buf_printf(cx, b, "a number (%s)", dtype_name((DType)more));
    break;
  case ARG_INT:
    buf_printf(cx, b, "the constant %lld", (long long)at[1]);
    break;
  case ARG_FLOAT:
    memcpy(&x, at + 1, sizeof x);
    buf_printf(cx, b, "the constant %.17g%s", x, x == floor(x) &&
               fabs(x) < 1e15 ? ".0" : "");
    break;
  case ARG_STRING:
    buf_puts(cx, b, "'");
    print_string(f, at, b);
    buf_puts(cx, b, "'");
    break;
  case ARG_DTYPE: buf_puts(cx, b, dtype_name((DType)more)); break;
  case ARG_CONST: buf_puts(cx, b, "a constant of cute"); break;
  case ARG_OBJECT: buf_printf(cx, b, "object 0x%llx",
                              (unsigned long long)at[1]); break;
  case ARG_TABLE:
    buf_printf(cx, b, "a table of %zu field%s", more, more == 1 ? "" : "s");
    break;
  case ARG_SAME: buf_puts(cx, b, "a table that occurred before"); break;
  case ARG_LAYOUT:
    buf_puts(cx, b, "the layout ");
    print_layout(f, at + 1, more, b);
    break;
  case ARG_TENSOR: print_tensor(f, at, b); break;
  case ARG_TMA: buf_puts(cx, b, "a TMA atom"); break;
  case ARG_CODE: case ARG_STREAM: case ARG_OVERLAP: break;
  }
}

// ---- paths ----

static void print_path(Fit *f, Buf *b) {
  if (f->k->name) buf_printf(f->cx, b, "kernel %s: ", f->k->name);
  buf_printf(f->cx, b, "argument %d", f->argument);
  for (int i = 0; i < f->depth; i++) {
    const uint64_t *k = f->key[i];
    if (ARG_TAG(*k) == ARG_STRING) {
      const char *text = (const char *)(k + 1);
      bool name = argkey_is_name(text, ARG_MORE(*k));
      buf_puts(f->cx, b, name ? "." : "[\"");
      print_string(f, k, b);
      if (!name) buf_puts(f->cx, b, "\"]");
    } else if (ARG_TAG(*k) == ARG_INT) {
      buf_printf(f->cx, b, "[%lld]", (long long)k[1]);
    } else {
      buf_puts(f->cx, b, ARG_TAG(*k) == ARG_TRUE ? "[true]" : "[false]");
    }
  }
}

static const char *kept(Fit *f, Buf *b) {
  const char *s = arena_printf(f->cx, &f->cx->scratch, "%s", b->p);
  buf_free(b);
  return s;
}

static const char *text_of(Fit *f, const uint64_t *at) {
  Buf b = {0};
  print_value(f, at, &b);
  return kept(f, &b);
}

static const char *path_of(Fit *f) {
  Buf b = {0};
  print_path(f, &b);
  return kept(f, &b);
}

static _Noreturn void differ(Fit *f, const uint64_t *given,
                             const uint64_t *want, const char *more) {
  const char *is = text_of(f, given), *takes = text_of(f, want);
  ctx_fail(f->cx, ERR_LAUNCH, "%s is %s; this launch takes %s%s%s",
           path_of(f), is, strcmp(is, takes) ? "" : "a different one, ", takes,
           more);
}

// ---- numbers ----

static void take(Fit *f, Leaf l) { f->out[f->n++] = l; }

static void fit_number(Fit *f) {
  DType want = (DType)ARG_MORE(*f->want), given = DT_NONE;
  if (ARG_TAG(*f->given) == ARG_NUMBER) given = (DType)ARG_MORE(*f->given);
  if (given != want && !(given == DT_I32 && want == DT_I64))
    differ(f, f->given, f->want, "");
  Leaf l = *f->leaf++;
  if (given != want) l.bits = (uint64_t)l.number;
  l.type = want;
  take(f, l);
  f->given++, f->want++;
}

// ---- layouts ----

// Computes the extents and strides of the given layout v. Takes dynamic extents
// and strides from the leaves of the arguments.
static void given_numbers(Fit *f, const ArgLayout *v, Dim *shape, Dim *stride) {
  for (size_t i = 0, leaf = 0; i < v->n; i++) {
    Dim d = argmatch_dim(v->shape[i]);
    if (dim_kind(d) == DIM_TUP) continue;
    if (v->shape_div && v->shape_div[leaf]) d.w = f->leaf++->number;
    shape[leaf++] = d;
  }
  for (size_t i = 0; i < v->leaves; i++) {
    stride[i] = argmatch_dim(v->stride[i]);
    if (v->stride_div && v->stride_div[i]) stride[i].w = f->leaf++->number;
  }
}

// Adds the value d of a dynamic extent or stride to the values that the launch
// passes. Returns false if it is unknown, less than `least`, not a multiple of
// `div`, or too large for the type.
static bool take_number(Fit *f, Dim d, int64_t div, DType type, int64_t least) {
  int64_t v = d.w;
  if (!dim_static(d) || v % div || v < least ||
      (type == DT_I32 && v != (int32_t)v))
    return false;
  take(f, (Leaf){.type = type, .number = v, .argument = f->argument,
                 .bits = type == DT_I32 ? (uint32_t)v : (uint64_t)v});
  return true;
}

// Compares a given layout with the layout of the key. `given` and `want` are
// their head words. Takes a leaf for each dynamic extent and stride. Returns
// false if the layouts do not fit.
static bool fit_layout(Fit *f, uint64_t given, uint64_t want) {
  if ((given ^ want) & ARG_COMPOSED) return false;
  if (given & ARG_COMPOSED) {
    size_t n = argmatch_words(f->given);
    if (*f->given != *f->want ||
        memcmp(f->given, f->want, n * sizeof *f->given) != 0)
      return false;
    f->given += n, f->want += n;
    return true;
  }
  ArgLayout g = argmatch_layout(&f->given, given & ARG_DYNAMIC);
  ArgLayout v = argmatch_layout(&f->want, want & ARG_DYNAMIC);
  if (g.n != v.n || g.leaves != v.leaves) return false;
  Dim *shape = NEW(f->cx, Dim, g.leaves), *stride = NEW(f->cx, Dim, g.leaves);
  DType type = want & ARG_WIDE ? DT_I64 : DT_I32;
  given_numbers(f, &g, shape, stride);
  for (size_t i = 0, leaf = 0; i < v.n; i++) {
    bool tup = dim_kind(argmatch_dim(v.shape[i])) == DIM_TUP;
    bool dynamic = !tup && v.shape_div && v.shape_div[leaf];
    Dim d = tup ? argmatch_dim(g.shape[i]) : shape[leaf];
    int64_t div = dynamic ? (int64_t)v.shape_div[leaf] : 0;
    if (dynamic ? !take_number(f, d, div, DT_I32, 0)
                : d.w != (int64_t)v.shape[i])
      return false;
    leaf += !tup;
  }
  for (size_t i = 0; i < v.leaves; i++) {
    int64_t div = v.stride_div ? (int64_t)v.stride_div[i] : 0;
    bool any = dim_is(shape[i], 1);
    if (!div && !any && stride[i].w != (int64_t)v.stride[i]) return false;
    if (div && !take_number(f, any ? dim_int(f->cx, 0) : stride[i], div, type,
                            INT64_MIN))
      return false;
    if (div) f->out[f->n - 1].free = any;
  }
  return true;
}

static void fit_tensor(Fit *f) {
  const uint64_t *given = f->given, *want = f->want;
  uint64_t g = ARG_MORE(*given), v = ARG_MORE(*want);
  uint64_t must = 255 | ARG_COORD | ARG_COMPOSED;
  if (ARG_TAG(*given) != ARG_TENSOR || ((g ^ v) & must))
    differ(f, given, want, "");
  if (g & ~v & ARG_WIDE)
    differ(f, given, want, "\n  cute.sym_int(64) declares strides of tensors "
           "that reach beyond 2^31 elements");
  f->given += 2, f->want += 2;
  if (v & ARG_COORD) {
    size_t n = argmatch_words(f->want);
    if (*f->given != *f->want ||
        memcmp(f->given, f->want, n * sizeof *f->want) != 0)
      differ(f, given, want, "");
    f->given += n, f->want += n;
  } else {
    Leaf l = *f->leaf++;
    int64_t align = (int64_t)want[1], bits = dtype_bits(l.type);
    int64_t at = l.host || l.dev ? dim_value(l.t->off) * bits : 0;
    bool known = (int64_t)given[1] >= align;
    if (!known && (l.t->l.outer || at % (8 * align)))
      differ(f, given, want, "");
    take(f, l);
  }
  if (!fit_layout(f, g, v)) differ(f, given, want, "");
}

static void fit_tma(Fit *f) {
  size_t n = argmatch_words(f->want);
  if (*f->given != *f->want ||
      memcmp(f->given, f->want, n * sizeof *f->want) != 0)
    differ(f, f->given, f->want, "\n  of the same operation, type, box and "
           "swizzle, with its modes in the same order");
  take(f, *f->leaf++);
  f->given += n, f->want += n;
}

// ---- tables ----

static void fit_value(Fit *f);

static void fit_table(Fit *f) {
  const uint64_t *given = f->given, *want = f->want;
  if (*given != *want) differ(f, given, want, "");
  if (given[1] != want[1])
    ctx_fail(f->cx, ERR_LAUNCH, "%s has another metatable than when this "
             "launch was compiled", path_of(f));
  f->given += 2, f->want += 2;
  size_t n = ARG_MORE(*want);
  f->depth++;
  for (size_t i = 0; i < n; i++) {
    size_t k = argmatch_words(f->want);
    f->key[f->depth - 1] = f->given;
    if (argmatch_words(f->given) != k ||
        memcmp(f->given, f->want, k * sizeof *f->want) != 0) {
      const char *is = path_of(f);
      f->key[f->depth - 1] = f->want;
      ctx_fail(f->cx, ERR_LAUNCH, "%s was given, but this launch was compiled "
               "for %s", is, path_of(f));
    }
    f->given += k, f->want += k;
    fit_value(f);
  }
  f->depth--;
}

// ---- values ----

// Returns "kernel k: ", or "" if the kernel has no name.
static const char *of_kernel(Ctx *cx, const ArgKey *k) {
  return k->name ? arena_printf(cx, &cx->scratch, "kernel %s: ", k->name) : "";
}

static void fit_value(Fit *f) {
  const uint64_t *given = f->given, *want = f->want;
  switch ((int)ARG_TAG(*want)) {
  case ARG_NUMBER: fit_number(f); return;
  case ARG_TABLE: fit_table(f); return;
  case ARG_TENSOR: fit_tensor(f); return;
  case ARG_TMA: fit_tma(f); return;
  case ARG_LAYOUT:
    if (ARG_TAG(*given) != ARG_LAYOUT ||
        (ARG_MORE(*given) & ~ARG_MORE(*want) & ARG_WIDE))
      differ(f, given, want, "");
    f->given++, f->want++;
    if (!fit_layout(f, ARG_MORE(*given), ARG_MORE(*want)))
      differ(f, given, want, "");
    return;
  }
  size_t n = argmatch_words(want);
  if (*given != *want || memcmp(given, want, n * sizeof *want) != 0)
    differ(f, given, want, "");
  f->given += n, f->want += n;
}

// Rejects arguments that share memory if they did not at compilation. The
// program may use a value that it loaded before a store through another
// argument.
static void check_overlap(Ctx *cx, const ArgKey *k, const Leaf *l) {
  int *group = NEW(cx, int, k->nleaf + 1);
  if (!argkey_overlaps(cx, l, k->nleaf, group)) return;
  for (size_t i = 0; i < k->nleaf; i++)
    for (size_t j = 0; j < i; j++)
      if (group[i] && group[i] == group[j] &&
          (!k->group[i] || k->group[i] != k->group[j]))
        ctx_fail(cx, ERR_LAUNCH, "%sarguments %d and %d share memory, but "
                 "this launch was compiled for arguments that do not\n"
                 "  compile another launch for arguments that share memory",
                 of_kernel(cx, k), l[j].argument, l[i].argument);
}

static void check_symbols(Ctx *cx, const ArgKey *k, const Leaf *l) {
  for (size_t i = 0; i < k->nleaf; i++)
    for (size_t j = 0; k->symbol[i] && j < i; j++)
      if (k->symbol[i] == k->symbol[j] && l[i].number != l[j].number &&
          !l[i].free && !l[j].free)
        ctx_fail(cx, ERR_LAUNCH, "%sthe same cute.sym_int is %lld in "
                 "argument %d and %lld in argument %d", of_kernel(cx, k),
                 (long long)l[j].number, l[j].argument,
                 (long long)l[i].number, l[i].argument);
}

const Leaf *argmatch_fit(const Walk *w, const ArgKey *k) {
  if (w->argument != k->arguments)
    ctx_fail(w->cx, ERR_LAUNCH, "%sthis launch takes %d argument%s, got %d",
             of_kernel(w->cx, k), k->arguments,
             k->arguments == 1 ? "" : "s", w->argument);
  const Leaf *leaf = w->leaf;
  if (w->n != k->n || memcmp(w->w, k->w, k->n * sizeof *k->w) != 0) {
    Fit f = {.cx = w->cx, .k = k, .given = w->w + 1, .want = k->w + 1,
             .leaf = w->leaf, .out = NEW(w->cx, Leaf, k->nleaf + 1)};
    while (f.argument < k->arguments) {
      f.argument++;
      fit_value(&f);
    }
    leaf = f.out;
    check_overlap(w->cx, k, leaf);
  }
  if (k->symbolic) check_symbols(w->cx, k, leaf);
  return leaf;
}
// SPDX-License-Identifier: MIT
