// Compares a matrix product with its f64 reference, with the error bound of
// gemmcheck.h.
#include "base/gemmcheck.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/guard.h"

#define PIECE 256  // elements of a row that a local buffer holds
#define ROWS 16    // rows that a thread checks at a time

// ---- types ----

typedef struct Format {
  // unit: half an ulp of 1. least, most: smallest and largest positive number
  // of the type.
  double unit, least, most;
} Format;

static Format format_of(DType t) {
  switch ((int)t) {
    case DT_F16: return (Format){0x1p-11, 0x1p-24, 65504};
    case DT_BF16: return (Format){0x1p-8, 0x1p-133, 0x1.fep127};
    case DT_F32: return (Format){0x1p-24, 0x1p-149, (double)FLT_MAX};
    case DT_F64: return (Format){0x1p-53, 0x1p-1074, DBL_MAX};
    default: return (Format){0, 0, INFINITY};
  }
}

bool gemmcheck_type(DType t) {
  return dtype_is_int(t) || isfinite(format_of(t).most);
}

// ---- one element ----

typedef struct Rules {
  const GemmCheck *g;
  // gamma is gamma_n of gemmcheck.h, for n roundings. floor is n times the
  // smallest positive number of the accumulators' type.
  double gamma, floor;
  Format out, sum;
} Rules;

static Rules rules_of(const GemmCheck *g) {
  double n = (double)g->k + 3, nu = n * g->unit;
  Rules r = {.g = g, .out = format_of(g->d->t), .sum = format_of(g->sums)};
  r.gamma = nu < 1 ? nu / (1 - nu) : INFINITY;
  r.floor = n * r.sum.least;
  return r;
}

// Stores the error bound of an element of D (gemmcheck.h) in *bound. Returns
// error / bound, which is at most 1 for a correct element.
static double measure(const Rules *r, double got, double want, double norms,
                      double c0, double *bound) {
  double size = fabs(r->g->alpha) * norms + fabs(r->g->beta * c0);
  double e = (size > 0 ? r->gamma * size : 0) + r->floor;
  *bound = e + r->out.unit * (fabs(want) + e) + r->out.least / 2;
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  if (isinf(want)) return got == want ? 0 : INFINITY;
  if (isnan(got) || isinf(got)) {
    // A partial sum may have overflowed. In this case, an infinity or NaN is
    // correct.
    if (size + e > r->sum.most) return 0;
    bool over = fabs(want) + *bound > r->out.most;
    return over && isinf(got) && (got > 0) == (want > 0) ? 0 : INFINITY;
  }
  double x = fabs(got - want);
  return x == 0 ? 0 : x / *bound;
}

// ---- a part of the matrix ----

typedef struct Part {
  double worst, sum_d, sum_w;
  GemmVerdict v;
} Part;

static void add(Part *p, const Rules *r, size_t i, size_t j, double got,
                double sum, double norms, double c0) {
  double bound, want = r->g->alpha * sum;
  if (r->g->c0) want += r->g->beta * c0;
  double x = measure(r, got, want, norms, c0, &bound);
  p->v.count++;
  if (!(x <= 1)) p->v.wrong++;
  if (isnan(want)) p->v.nans++;
  if (isfinite(want) && isfinite(got)) {
    p->sum_d += (got - want) * (got - want);
    p->sum_w += want * want;
  } else if (x > 1) {
    p->sum_d = INFINITY;
  }
  if (x <= p->worst && p->v.count > 1) return;
  p->worst = x;
  p->v.row = i, p->v.col = j;
  p->v.got = got, p->v.want = want, p->v.bound = bound;
}

// Merges the result for some rows of D into the result so far. Calls must come
// in the order of the rows.
static void join(Part *all, const Part *p) {
  GemmVerdict keep = all->v;
  if (!keep.count || p->worst > all->worst) {
    all->worst = p->worst;
    all->v = p->v;
  }
  all->v.count = keep.count + p->v.count;
  all->v.wrong = keep.wrong + p->v.wrong;
  all->v.nans = keep.nans + p->v.nans;
  all->sum_d += p->sum_d;
  all->sum_w += p->sum_w;
}

static double dot(const BulkMat *a, size_t i, const BulkMat *b, size_t j,
                  size_t k) {
  double sum = 0, x[PIECE], y[PIECE];
  for (size_t c = 0; c < k; c += PIECE) {
    size_t w = k - c < PIECE ? k - c : PIECE;
    bulk_row(a, i, c, w, x);
    bulk_row(b, j, c, w, y);
    for (size_t q = 0; q < w; q++) sum += x[q] * y[q];
  }
  return sum;
}

static double element(const BulkMat *m, size_t i, size_t j) {
  double x;
  bulk_row(m, i, j, 1, &x);
  return x;
}

static void run_samples(const GemmCheck *g, Part *p) {
  Rules r = rules_of(g);
  uint64_t seed = g->seed;
  for (size_t s = 0; s < g->samples; s++) {
    size_t i = (size_t)(base_random(&seed) % g->m);
    size_t j = (size_t)(base_random(&seed) % g->n);
    double norms = sqrt(dot(g->a, i, g->a, i, g->k)) *
                   sqrt(dot(g->b, j, g->b, j, g->k));
    add(p, &r, i, j, element(g->d, i, j), dot(g->a, i, g->b, j, g->k), norms,
        g->c0 ? element(g->c0, i, j) : 0);
  }
}

// ---- all elements, on all cores ----

typedef struct Job {
  const GemmCheck *g;
  double *row, *col;  // Euclidean norms of the rows of A and of B
  Part *part;  // part[i] is the result of rows [i * ROWS, (i + 1) * ROWS) of D
  atomic_size_t next, next_a, next_b;
} Job;

static void norms_of(const BulkMat *x, size_t rows, size_t k, double *out,
                     atomic_size_t *next) {
  for (size_t at; (at = atomic_fetch_add(next, 1) * PIECE) < rows;) {
    size_t n = rows - at < PIECE ? rows - at : PIECE;
    if (!guard_spend(1 + n * k / 16)) return;
    if (x->stride[1] <= x->stride[0]) {
      for (size_t i = at; i < at + n; i++) out[i] = sqrt(dot(x, i, x, i, k));
      continue;
    }
    BulkMat t = *x;  // x is column-major, so read its transpose.
    t.stride[0] = x->stride[1], t.stride[1] = x->stride[0];
    double sum[PIECE] = {0}, v[PIECE];
    for (size_t c = 0; c < k; c++) {
      bulk_row(&t, c, at, n, v);
      for (size_t i = 0; i < n; i++) sum[i] += v[i] * v[i];
    }
    for (size_t i = 0; i < n; i++) out[at + i] = sqrt(sum[i]);
  }
}

static void norms(void *arg) {
  Job *job = arg;
  const GemmCheck *g = job->g;
  norms_of(g->a, g->m, g->k, job->row, &job->next_a);
  norms_of(g->b, g->n, g->k, job->col, &job->next_b);
}

static void run_row(const Job *job, const Rules *r, size_t i, Part *p) {
  const GemmCheck *g = job->g;
  for (size_t j = 0; j < g->n; j += PIECE) {
    size_t w = g->n - j < PIECE ? g->n - j : PIECE;
    double d[PIECE], s[PIECE], c[PIECE] = {0};
    bulk_row(g->d, i, j, w, d);
    bulk_row(g->ref, i, j, w, s);
    if (g->c0) bulk_row(g->c0, i, j, w, c);
    for (size_t q = 0; q < w; q++)
      add(p, r, i, j + q, d[q], s[q], job->row[i] * job->col[j + q], c[q]);
  }
}

static void rows(void *arg) {
  Job *job = arg;
  Rules r = rules_of(job->g);
  for (size_t n; (n = atomic_fetch_add(&job->next, 1)) * ROWS < job->g->m;) {
    Part p = {0};
    for (size_t i = n * ROWS; i < (n + 1) * ROWS && i < job->g->m; i++)
      if (guard_spend(1 + job->g->n / 4)) run_row(job, &r, i, &p);
    job->part[n] = p;
  }
}

static bool run_all(const GemmCheck *g, Part *all) {
  size_t parts = (g->m + ROWS - 1) / ROWS;
  Job job = {.g = g};
  job.row = base_realloc(NULL, (g->m + 1) * sizeof *job.row);
  job.col = base_realloc(NULL, (g->n + 1) * sizeof *job.col);
  job.part = base_realloc(NULL, (parts + 1) * sizeof *job.part);
  bool ok = job.row && job.col && job.part;
  if (ok) {
    bulk_parallel(norms, &job);
    bulk_parallel(rows, &job);
    for (size_t k = 0; k < parts; k++) join(all, &job.part[k]);
  }
  base_free(job.row);
  base_free(job.col);
  base_free(job.part);
  return ok;
}

bool gemmcheck_run(const GemmCheck *g, GemmVerdict *v) {
  Part all = {0};
  bool ok = true;
  if (g->ref) ok = run_all(g, &all);
  else run_samples(g, &all);
  *v = all.v;
  v->frobenius = all.sum_d == 0 ? 0 : sqrt(all.sum_d / all.sum_w);
  return ok;
}
// SPDX-License-Identifier: MIT
