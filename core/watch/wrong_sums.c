// Finds outputs that are not the sums that the shapes of the arguments suggest.
// If a kernel only multiplies and adds elements (lint/plain_sums.c) of A (M,K)
// and B (N,K), and stores C (M,N), then C must be the product of A and B.
// Several products may be possible, for example if N equals K. The output is
// reported if it differs from each of them at some of its elements.
//
// A possible product assigns an index to each mode. Each mode of the output has
// its own index. A mode of an input has the index of a mode of the output with
// the same extent, or SUMMED if the product sums over it. Each index of the
// output must occur in an input. If there are two inputs, SUMMED must occur
// once in each of them.
//
// An output with the right sums in another order, such as from the last to the
// first, is not reported. The only exception are exchanged coordinates of
// tiles, which are reported in a square output or in a copy.
//
// The launch must have read all elements of the inputs and stored all elements
// of the output. cover.c reports missing parts.
#include "lint/plain_sums.h"
#include "watch/cover.h"
#include "watch/meant.h"
#include "watch/wrong_sums.h"

#include <math.h>
#include <string.h>

enum { MODES = 3, SUMMED = MODES, MOST = 64, WORK = 1 << 16,
       PERMUTED = 1 << 24 };

typedef struct Tensor {
  const LaunchArg *arg;
  DType type;
  SimShape s;
  int n, mode[MODES];       // mode: the n modes with more than one coordinate
} Tensor;

// A possible product. index[i][k] is the index (see the file's comment) that
// mode k of input i has in the product.
typedef struct Product { int8_t index[2][MODES]; } Product;

typedef struct Search {
  Tensor out, in[2];
  int n;                    // number of inputs
  PlainSums sums;
  Product possible[MOST];
  int count;
  // factor by which the kernel multiplies the sums, as the last comparison
  // found it
  double scale;
} Search;

// ---- possible products ----

static bool find_tensor(Ctx *cx, SimProg *p, int32_t arg, Tensor *t) {
  int32_t mem = meant_shape(cx, p, arg, &t->s);
  if (mem < 0 || !cover_complete(p, arg)) return false;
  t->arg = &p->launch->arg[arg];
  t->type = p->fn->mem.p[mem].type;
  for (int k = 0; k < t->s.rank; k++) {
    if (t->s.size[k] == 1) continue;
    if (t->n == MODES) return false;
    t->mode[t->n++] = k;
  }
  return true;
}

static int64_t extent(const Tensor *t, int k) { return t->s.size[t->mode[k]]; }

// Returns the number of terms of each sum of product q, or 0 if q is not
// possible.
static int64_t terms_of(const Search *s, const Product *q) {
  int64_t terms = 0;
  int found = 0, sums[2] = {0};
  for (int i = 0; i < s->n; i++) {
    int64_t own = 1;
    for (int k = 0; k < s->in[i].n; k++) {
      int index = q->index[i][k];
      if (index != SUMMED) found |= 1 << index;
      else own *= extent(&s->in[i], k), sums[i]++;
    }
    if (i && own != terms) return 0;
    terms = own;
  }
  if (found != (1 << s->out.n) - 1 || !sums[0] != s->sums.copies) return 0;
  return s->n == 2 && (sums[0] > 1 || sums[1] > 1) ? 0 : terms;
}

// Adds all products that assign the same indices as q to the modes before mode
// k of input i.
static void add_products(Search *s, Product *q, int i, int k) {
  while (i < s->n && k == s->in[i].n) i++, k = 0;
  if (i == s->n) {
    if (terms_of(s, q) && s->count < MOST) s->possible[s->count++] = *q;
    return;
  }
  for (int index = 0; index <= SUMMED; index++) {
    bool twice = false;
    if (index < SUMMED && (index >= s->out.n ||
        extent(&s->out, index) != extent(&s->in[i], k))) continue;
    for (int j = 0; j < k; j++)
      twice |= q->index[i][j] == index && index != SUMMED;
    if (twice) continue;
    q->index[i][k] = (int8_t)index;
    add_products(s, q, i, k + 1);
  }
}

// ---- elements ----

// Returns the index of the element that has coordinate at[k] in each mode k.
static int64_t element_at(const Tensor *t, const int64_t at[MODES]) {
  int64_t x[COVER_MODES] = {0}, element = 0;
  for (int k = 0; k < t->n; k++) x[t->mode[k]] = at[k];
  for (int k = 0; k < t->s.n; k++)
    element += x[t->s.of[k]] / t->s.step[k] % t->s.extent[k] * t->s.stride[k];
  return element;
}

static double value_at(const Tensor *t, int64_t element) {
  size_t bytes = (size_t)dtype_bits(t->type) / 8;
  size_t from = (size_t)element * bytes;
  uint64_t raw = 0;
  if (from + bytes > t->arg->bytes) return NAN;
  memcpy(&raw, (const uint8_t *)t->arg->p + from, bytes);
  return dtype_to_double(t->type, raw);
}

// A sum, and its size: the root of the sum of the squares of its terms.
typedef struct Sum { double sum, size; } Sum;

// Returns an element's index in input i: the element that is in term number
// `term` of the sum at coordinate `at` of the output, according to product q.
static int64_t element_of(const Search *s, const Product *q, int i,
                          const int64_t at[MODES], int64_t term) {
  int64_t own[MODES] = {0};
  for (int k = 0; k < s->in[i].n; k++) {
    int index = q->index[i][k];
    own[k] = index == SUMMED ? term % extent(&s->in[i], k) : at[index];
    if (index == SUMMED) term /= extent(&s->in[i], k);
  }
  return element_at(&s->in[i], own);
}

// Returns the distance in input i between the elements of adjacent terms of a
// sum of product q, or 0 if this distance is not constant.
static int64_t step_of(const Search *s, const Product *q, int i) {
  const Tensor *t = &s->in[i];
  int mode = -1, leaf = -1;
  for (int k = 0; k < t->n; k++) {
    if (q->index[i][k] != SUMMED) continue;
    if (mode >= 0) return 0;
    mode = t->mode[k];
  }
  for (int k = 0; k < t->s.n; k++) {
    if (t->s.of[k] != mode || t->s.extent[k] == 1) continue;
    if (leaf >= 0) return 0;
    leaf = k;
  }
  return leaf < 0 ? 0 : t->s.stride[leaf];
}

// Returns the sum that product q implies for coordinate `at` of the output.
static Sum sum_at(const Search *s, const Product *q, const int64_t at[MODES]) {
  Sum sum = {0};
  int64_t terms = terms_of(s, q), first[2], step[2];
  for (int i = 0; i < s->n; i++) {
    first[i] = element_of(s, q, i, at, 0);
    step[i] = step_of(s, q, i);
  }
  for (int64_t term = 0; term < terms; term++) {
    double x = 1;
    for (int i = 0; i < s->n; i++)
      x *= value_at(&s->in[i], step[i] ? first[i] + term * step[i]
                                       : element_of(s, q, i, at, term));
    sum.sum += x;
    sum.size += x * x;
  }
  sum.size = sqrt(sum.size);
  return sum;
}

// ---- the comparison ----

// Returns the distance from 1 to the next number of float type t, or 0 if t is
// no float type.
static double epsilon(DType t) {
  if (!dtype_is_float(t)) return 0;
  for (double e = 0.5; e > 1e-17; e /= 2)
    if (dtype_to_double(t, dtype_from_double(t, 1 + e)) <= 1) return 2 * e;
  return 1e-17;
}

// An element of the output (got), and the sum that a product implies for it
// (want).
typedef struct Sample {
  int64_t at[MODES];
  double got;
  Sum want;
} Sample;

enum { SAMPLES = 16 };

// Chooses elements of the output that are spread over all modes. Returns their
// number.
static int choose(const Search *s, Sample *list) {
  uint64_t x = 0x9e3779b97f4a7c15u;
  int64_t terms = terms_of(s, &s->possible[0]);
  int n = terms > WORK / SAMPLES ? (int)(WORK / terms) : SAMPLES;
  if (n < 4) n = 4;
  for (int k = 0; k < n; k++) {
    list[k] = (Sample){0};
    for (int j = 0; j < s->out.n; j++) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      list[k].at[j] = (int64_t)((x >> 33) % (uint64_t)extent(&s->out, j));
    }
    list[k].got = value_at(&s->out, element_at(&s->out, list[k].at));
  }
  return n;
}

// Returns the factor between the samples and the sums that a product implies
// for them. It is 1 unless the kernel scales its sums.
static double factor_of(const Search *s, const Sample *list, int n) {
  double top = 0, low = 0;
  for (int k = 0; k < n; k++) {
    top += list[k].got * list[k].want.sum;
    low += list[k].want.sum * list[k].want.sum;
  }
  return s->sums.scaled && low > 0 ? top / low : 1;
}

// Computes the sums that product q implies, and compares them with the samples.
// Returns the index of the first sample that is too far from its sum, or n if
// there is none. Returns -1 if a number is not finite.
static int compare(Search *s, const Product *q, Sample *list, int n) {
  for (int k = 0; k < n; k++) {
    list[k].want = sum_at(s, q, list[k].at);
    if (!isfinite(list[k].got) || !isfinite(list[k].want.sum)) return -1;
  }
  double scale = s->scale = factor_of(s, list, n);
  double sums = epsilon(s->sums.narrowest), each = epsilon(s->sums.rounded);
  bool exact = !dtype_is_float(s->out.type) && !s->sums.scaled;
  int64_t terms = terms_of(s, q);
  // A sum in a type narrower than f32 may lose all terms that are small
  // compared with the sum.
  double all = epsilon(s->out.type) +
               sums * (sums > 1e-6 ? (double)terms : sqrt((double)terms));
  int wrong = n;
  for (int k = n - 1; k >= 0; k--) {
    double want = scale * list[k].want.sum;
    double size = fabs(scale) * list[k].want.size;
    double most = size / 100 + 4 * (each + all) * size + 4 * all * fabs(want);
    if (exact) most = 0.5;
    if (fabs(list[k].got - want) > most) wrong = k;
  }
  return wrong;
}

static bool is_near(double got, double want, double size) {
  return fabs(got - want) <= 0.01 * (fabs(want) + fabs(size));
}

// Reports whether all samples exceed their sums by the same amount. The samples
// must have several different sums, because any output satisfies this
// otherwise.
static bool is_shifted(const Sample *list, int n) {
  enum { LEAST = 3 };
  double shift = list[0].got - list[0].want.sum;
  int different = 0;
  for (int k = 0; k < n; k++) {
    if (fabs(list[k].got - list[k].want.sum - shift) > 1e-2 * fabs(shift))
      return false;
    int j = 0;
    while (j < k && list[j].want.sum != list[k].want.sum) j++;
    different += j == k;
  }
  return different >= LEAST;
}

// Returns the extent of tiles whose coordinates in the first two modes are
// exchanged: each sample then has the sum of the element at the exchanged tile
// coordinates. Returns 0 if there is no such extent.
static int64_t swapped_tile(const Search *s, const Product *q,
                            const Sample *list, int n) {
  Sample other[SAMPLES];
  if (s->out.n < 2 || extent(&s->out, 0) != extent(&s->out, 1)) return 0;
  for (int64_t tile = 4; tile < extent(&s->out, 0); tile *= 2) {
    int m = 0;
    for (int k = 0; k < n; k++) {
      Sample x = list[k];
      x.at[0] = list[k].at[1] / tile * tile + list[k].at[0] % tile;
      x.at[1] = list[k].at[0] / tile * tile + list[k].at[1] % tile;
      if (x.at[0] >= extent(&s->out, 0) || x.at[1] >= extent(&s->out, 0))
        continue;
      x.want = sum_at(s, q, x.at);
      other[m++] = x;
    }
    double scale = factor_of(s, other, m);
    bool all = m > 0;
    for (int k = 0; k < m && all; k++)
      all = is_near(other[k].got, scale * other[k].want.sum,
                    scale * other[k].want.size);
    if (all) return tile;
  }
  return 0;
}

static SimWrongSum describe(const SimProg *p, const Search *s,
                            const Sample *list, int n, int wrong,
                            const Product *q) {
  const Sample *x = &list[wrong];
  SimWrongSum w = {.src = ir_get(p->fn, s->sums.store)->src,
                   .out = s->sums.out, .modes = s->out.n,
                   .n = s->n,
                   .got = x->got, .want = x->want.sum,
                   .copies = s->sums.copies, .scaled = s->sums.scaled,
                   .shifted = !s->sums.scaled && !s->sums.copies &&
                              is_shifted(list, n)};
  memcpy(w.at, x->at, sizeof x->at);
  for (int i = 0; i < s->n; i++) {
    w.in[i] = s->sums.in[i];
    w.inmodes[i] = s->in[i].n;
    for (int k = 0; k < s->in[i].n; k++) {
      int index = q->index[i][k];
      w.inat[i][k] = index == SUMMED ? -1 : x->at[index];
    }
  }
  if (!w.shifted) w.tile = swapped_tile(s, q, list, n);
  return w;
}

// Reports whether the output has the right sums in another order. With one
// input, each sample must equal one of the sums. With two inputs, each sample
// must equal the sum at the opposite end of some modes.
static bool is_permuted(const Search *s, const Product *q, const Sample *list,
                        int n) {
  int64_t size = 1, at[MODES] = {0};
  bool any = s->n == 1;
  for (int k = 0; k < s->out.n; k++) size *= extent(&s->out, k);
  if (any && size * terms_of(s, q) > PERMUTED) return true;
  int64_t places = any ? size : (int64_t)1 << s->out.n;
  uint32_t found = 0;
  for (int64_t place = 0; place < places; place++) {
    Sum sum = {0};
    int64_t rest = place;
    for (int j = 0; j < s->out.n && any; j++) {
      at[j] = rest % extent(&s->out, j);
      rest /= extent(&s->out, j);
    }
    if (any) sum = sum_at(s, q, at);
    for (int k = 0; k < n; k++) {
      for (int j = 0; j < s->out.n && !any; j++)
        at[j] = place >> j & 1 ? extent(&s->out, j) - 1 - list[k].at[j]
                               : list[k].at[j];
      if (!any) sum = sum_at(s, q, at);
      if (is_near(list[k].got, s->scale * sum.sum, s->scale * sum.size))
        found |= 1u << k;
    }
  }
  return found == (n < 32 ? (1u << n) - 1 : UINT32_MAX);
}

// Finds the possible sums (with `copies`, the possible copies) and chooses
// samples of the output. Returns their number, or 0 if no sum is possible.
// Returns -1 if all samples agree with one sum, or if a number is not finite.
static int find_products(Search *s, bool copies, Sample *list) {
  Product q = {0};
  s->sums.copies = copies;
  s->count = 0;
  add_products(s, &q, 0, 0);
  if (!s->count) return 0;
  int n = choose(s, list);
  for (int k = 0; k < s->count; k++) {
    int wrong = compare(s, &s->possible[k], list, n);
    if (wrong < 0 || wrong == n) return -1;
  }
  return n;
}

void wrong_sums_find(Ctx *cx, SimProg *p, SimWrongSum *out) {
  Sample list[SAMPLES];
  Search *s = arena_zero(cx, &cx->scratch, sizeof *s);
  if (!plain_sums_arguments(p->fn, &s->sums)) return;
  s->n = s->sums.n;
  if (!find_tensor(cx, p, s->sums.out, &s->out)) return;
  for (int i = 0; i < s->n; i++)
    if (!find_tensor(cx, p, s->sums.in[i], &s->in[i])) return;
  // Compare before the function is analysed, because most outputs are right.
  s->sums.narrowest = s->sums.rounded = DT_F64;
  int n = find_products(s, false, list);
  if (n < 0) return;
  if (s->n == 1 && find_products(s, true, list) < 0) return;
  if (!n && !s->count) return;
  if (!plain_sums(cx, p->fn, &s->sums)) return;
  n = find_products(s, s->sums.copies, list);
  if (n <= 0) return;
  // the first possible product has the order of modes that CuTe uses: (M,K),
  // (N,K)
  SimWrongSum w = {0};
  bool permuted = s->sums.copies;
  for (int k = s->count - 1; k >= 0 && !w.shifted && !w.tile; k--) {
    int wrong = compare(s, &s->possible[k], list, n);
    w = describe(p, s, list, n, wrong, &s->possible[k]);
    permuted = permuted || is_permuted(s, &s->possible[k], list, n);
  }
  if (w.shifted || w.tile || !permuted) *out = w;
}
// SPDX-License-Identifier: MIT
