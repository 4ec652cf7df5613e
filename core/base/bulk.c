// Fills, converts, transposes, compares and multiplies arrays in host memory.
#define _POSIX_C_SOURCE 200809L
#include "base/bulk.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/guard.h"
#include "base/platform.h"
// ---- loads and stores of consecutive elements ----

#define RUN 256  // elements that are converted at a time in a local buffer

// Reports whether f32 represents every value of type t exactly.
static bool fits_f32(DType t) {
  return dtype_is_float(t) ? dtype_bits(t) <= 32 : dtype_bits(t) <= 16;
}

static float bf16_value(uint16_t u) {
  return bits_float((uint32_t)u << 16);
}

static void load_f32(DType t, const void *p, size_t at, size_t n, float *out) {
  if (t == DT_F32) {
    memcpy(out, (const float *)p + at, n * sizeof *out);
  } else if (t == DT_BF16) {
    const uint16_t *s = (const uint16_t *)p + at;
    for (size_t i = 0; i < n; i++) out[i] = bf16_value(s[i]);
  } else {
    for (size_t i = 0; i < n; i++)
      out[i] = dtype_to_float(t, dtype_load(t, p, at + i));
  }
}

// Converts x to bf16, rounding to nearest even. NaNs become the canonical NaN.
static uint16_t bf16_bits(float x) {
  uint32_t w = float_bits(x);
  if ((w & 0x7fffffff) > 0x7f800000) return (uint16_t)dtype_from_float(
    DT_BF16, x);
  return (uint16_t)((w + 0x7fff + ((w >> 16) & 1)) >> 16);
}

static void store_f32(DType t, void *p, size_t at, size_t n, const float *x) {
  if (t == DT_F32) {
    memcpy((float *)p + at, x, n * sizeof *x);
  } else if (t == DT_F64) {
    for (size_t i = 0; i < n; i++) ((double *)p)[at + i] = (double)x[i];
  } else if (t == DT_BF16) {
    uint16_t *s = (uint16_t *)p + at;
    for (size_t i = 0; i < n; i++) s[i] = bf16_bits(x[i]);
  } else {
    for (size_t i = 0; i < n; i++)
      dtype_store(t, p, at + i, dtype_from_float(t, x[i]));
  }
}

static void load_f64(DType t, const void *p, size_t at, size_t n,
                     double *out) {
  if (t == DT_F64) {
    memcpy(out, (const double *)p + at, n * sizeof *out);
  } else if (t == DT_F32) {
    for (size_t i = 0; i < n; i++) out[i] = (double)((const float *)p)[at + i];
  } else if (t == DT_BF16) {
    const uint16_t *s = (const uint16_t *)p + at;
    for (size_t i = 0; i < n; i++) out[i] = (double)bf16_value(s[i]);
  } else {
    for (size_t i = 0; i < n; i++)
      out[i] = dtype_to_double(t, dtype_load(t, p, at + i));
  }
}

static double value(DType t, const void *p, size_t i) {
  double x;
  load_f64(t, p, i, 1, &x);
  return x;
}

void bulk_convert(DType t, void *dst, size_t at, DType s, const void *src,
                  size_t from, size_t n) {
  size_t bits = (size_t)dtype_bits(t);
  if (t == s && bits % 8 == 0) {
    size_t e = bits / 8;
    memmove((char *)dst + at * e, (const char *)src + from * e, n * e);
    return;
  }
  if (t == s) {
    for (size_t i = 0; i < n; i++)
      dtype_store(t, dst, at + i, dtype_load(s, src, from + i));
    return;
  }
  bool narrow = fits_f32(s);
  for (size_t i = 0; i < n; i += RUN) {
    size_t k = n - i < RUN ? n - i : RUN;
    float f[RUN];
    double d[RUN];
    if (narrow) {
      load_f32(s, src, from + i, k, f);
      store_f32(t, dst, at + i, k, f);
    } else {
      load_f64(s, src, from + i, k, d);
      for (size_t j = 0; j < k; j++)
        dtype_store(t, dst, at + i + j, dtype_from_double(t, d[j]));
    }
  }
}

void bulk_cut(void *p, size_t n, int bits) {
  uint32_t *u = p, keep = ~(((uint32_t)1 << bits) - 1);
  for (size_t i = 0; i < n; i++) u[i] &= keep;
}

// ---- filling ----

// Transposes one tile, rows [i, i + n) and columns [j, j + m).
static void turn_tile(size_t size, char *dst, const char *src, size_t rows,
                      size_t cols, size_t i, size_t n, size_t j, size_t m) {
  for (size_t c = j; c < j + m; c++)
    for (size_t r = i; r < i + n; r++)
      memcpy(dst + (c * rows + r) * size, src + (r * cols + c) * size, size);
}

void bulk_transpose(DType t, void *dst, const void *src, size_t rows,
                    size_t cols) {
  enum { TILE = 32 };
  size_t bits = (size_t)dtype_bits(t);
  for (size_t i = 0; i < rows; i += TILE)
    for (size_t j = 0; j < cols; j += TILE) {
      size_t n = rows - i < TILE ? rows - i : TILE;
      size_t m = cols - j < TILE ? cols - j : TILE;
      if (bits == 16) turn_tile(2, dst, src, rows, cols, i, n, j, m);
      else if (bits == 32) turn_tile(4, dst, src, rows, cols, i, n, j, m);
      else if (bits % 8 == 0)
        turn_tile(bits / 8, dst, src, rows, cols, i, n, j, m);
      else
        for (size_t r = i; r < i + n; r++)
          for (size_t c = j; c < j + m; c++)
            dtype_store(t, dst, c * rows + r, dtype_load(t, src, r * cols + c));
    }
}

void bulk_fill(DType t, void *p, size_t at, size_t n, uint64_t bits) {
  int w = dtype_bits(t);
  if (w == 32) {
    for (size_t i = 0; i < n; i++) ((uint32_t *)p)[at + i] = (uint32_t)bits;
  } else if (w == 16) {
    for (size_t i = 0; i < n; i++) ((uint16_t *)p)[at + i] = (uint16_t)bits;
  } else if (w == 8) {
    memset((char *)p + at, (int)bits, n);
  } else {
    for (size_t i = 0; i < n; i++) dtype_store(t, p, at + i, bits);
  }
}

// Tables of the ziggurat method for normally distributed numbers. 256 layers of
// equal area zig_v cover the area under the density. Layer i is x[i] wide.
// Layer 0 includes the tail beyond zig_r. The first ratio[i] of layer i's width
// is entirely under the curve.
#define LAYERS 256
typedef struct Zig {
  double x[LAYERS + 1], ratio[LAYERS];
} Zig;
static const double zig_r = 3.6541528853610088, zig_v = 0.00492867323399;

static void zig_init(Zig *z) {
  double f = exp(-0.5 * zig_r * zig_r);
  z->x[0] = zig_v / f;
  z->x[1] = zig_r;
  z->x[LAYERS] = 0;
  for (int i = 2; i < LAYERS; i++) {
    z->x[i] = sqrt(-2 * log(zig_v / z->x[i - 1] + f));
    f = exp(-0.5 * z->x[i] * z->x[i]);
  }
  for (int i = 0; i < LAYERS; i++) z->ratio[i] = z->x[i + 1] / z->x[i];
}

// Returns a uniform number in (0, 1).
static double uniform(uint64_t *seed) {
  return ((double)(base_random(seed) >> 11) + 0.5) * 0x1p-53;
}

static double zig_tail(uint64_t *seed) {
  double x, y;
  do {
    x = -log(uniform(seed)) / zig_r;
    y = -log(uniform(seed));
  } while (y + y < x * x);
  return zig_r + x;
}

static double zig_sample(const Zig *z, uint64_t *seed) {
  for (;;) {
    uint64_t r = base_random(seed);
    size_t i = r & (LAYERS - 1);
    double u = (double)(int64_t)(r & ~(uint64_t)0x7ff) * 0x1p-63;  // (-1, 1)
    double x = u * z->x[i];
    if (fabs(u) < z->ratio[i]) return x;
    if (i == 0) return u < 0 ? -zig_tail(seed) : zig_tail(seed);
    double f0 = exp(-0.5 * (z->x[i] * z->x[i] - x * x));
    double f1 = exp(-0.5 * (z->x[i + 1] * z->x[i + 1] - x * x));
    if (f1 + uniform(seed) * (f0 - f1) < 1) return x;
  }
}

void bulk_normal(DType t, void *p, size_t n, uint64_t seed, double mean,
                 double sd) {
  Zig z;
  zig_init(&z);
  if (t == DT_F64) {
    double *x = p;
    for (size_t i = 0; i < n; i++) x[i] = mean + sd * zig_sample(&z, &seed);
    return;
  }
  for (size_t i = 0; i < n; i += RUN) {
    size_t k = n - i < RUN ? n - i : RUN;
    float f[RUN];
    for (size_t j = 0; j < k; j++)
      f[j] = (float)(mean + sd * zig_sample(&z, &seed));
    store_f32(t, p, i, k, f);
  }
}

// Returns the largest k for which type t holds 1 - 2^-k exactly.
static int precision(DType t) {
  int k = 1;
  while (k < 53) {
    double x = 1 - ldexp(1, -k - 1);
    if (dtype_to_double(t, dtype_from_double(t, x)) != x) break;
    k++;
  }
  return k;
}

void bulk_uniform(DType t, void *p, size_t n, uint64_t seed) {
  int k = precision(t);
  for (size_t i = 0; i < n; i++) {
    double x = ldexp((double)(base_random(&seed) >> (64 - k)), -k);
    dtype_store(t, p, i, dtype_from_double(t, x));
  }
}

// Returns the high 64 bits of a * b.
static uint64_t high_product(uint64_t a, uint64_t b) {
  uint64_t a0 = a & 0xffffffff, a1 = a >> 32;
  uint64_t b0 = b & 0xffffffff, b1 = b >> 32;
  uint64_t mid = a1 * b0 + (a0 * b0 >> 32);
  return a1 * b1 + (mid >> 32) + ((a0 * b1 + (mid & 0xffffffff)) >> 32);
}

static uint64_t of_int(DType t, int64_t x) {
  return dtype_is_int(t) ? (uint64_t)x : dtype_from_double(t, (double)x);
}

void bulk_ints(DType t, void *p, size_t n, uint64_t seed, int64_t lo,
               int64_t hi) {
  uint64_t first = (uint64_t)lo, table[1024];
  uint64_t span = (uint64_t)hi - first + 1;  // The value 0 stands for 2^64.
  bool small = span - 1 < 1024, few = span - 1 < (uint64_t)1 << 53;
  for (uint64_t i = 0; small && i < span; i++)
    table[i] = of_int(t, (int64_t)(first + i));
  for (size_t i = 0; i < n; i++) {
    uint64_t r = few ? (uint64_t)(uniform(&seed) * (double)span)
                     : base_random(&seed);
    if (few && r >= span) r = span - 1;
    if (!few && span != 0) r = high_product(r, span);
    dtype_store(t, p, i, small ? table[r] : of_int(t, (int64_t)(first + r)));
  }
}

// ---- comparing ----

static void diff_add(BulkDiff *d, size_t index, double a, double b) {
  d->count++;
  if (isnan(a) || isnan(b)) {
    if (d->nans++ == 0) d->worst = index;
    return;
  }
  double e = a == b ? 0 : fabs(a - b), m = fabs(b);
  double rel = e == 0 ? 0 : isinf(e) ? INFINITY : e / m;
  if (e > d->max_abs) {
    d->max_abs = e;
    if (!d->nans) d->worst = index;
  }
  if (rel > d->max_rel) d->max_rel = rel;
  if (m > d->max_b) d->max_b = m;
  d->sum_d += e * e;
  d->sum_b += isinf(m) ? 0 : m * m;
}

static void diff_end(BulkDiff *d) {
  d->frobenius = d->sum_d == 0 ? 0 : sqrt(d->sum_d / d->sum_b);
  d->max_scaled = d->max_abs == 0 ? 0
                : isinf(d->max_abs) ? INFINITY : d->max_abs / d->max_b;
  if (d->nans)
    d->max_abs = d->max_rel = d->max_scaled = d->frobenius = INFINITY;
}

BulkDiff bulk_diff(DType ta, const void *a, DType tb, const void *b,
                   size_t n) {
  BulkDiff d;
  memset(&d, 0, sizeof d);
  for (size_t i = 0; i < n; i += RUN) {
    double x[RUN], y[RUN];
    size_t k = n - i < RUN ? n - i : RUN;
    load_f64(ta, a, i, k, x);
    load_f64(tb, b, i, k, y);
    for (size_t j = 0; j < k; j++) diff_add(&d, i + j, x[j], y[j]);
  }
  diff_end(&d);
  return d;
}

size_t bulk_difference(DType t, const void *a, const void *b, size_t n) {
  size_t bits = (size_t)dtype_bits(t), i = 0;
  const unsigned char *x = a, *y = b;
  // Compare whole bytes first, then single elements of types below 8 bits.
  size_t bytes = n * bits / 8;
  if (memcmp(x, y, bytes) == 0) {
    i = bytes * 8 / bits;
  } else {
    size_t at = 0;
    while (x[at] == y[at]) at++;
    i = at * 8 / bits;
  }
  if (bits >= 8) return i < n ? i : n;
  while (i < n && dtype_load(t, a, i) == dtype_load(t, b, i)) i++;
  return i;
}

// ---- on all cores ----

typedef struct Call {
  void (*run)(void *arg);
  void *arg;
  Guard *guard;
} Call;

static void *call(void *p) {
  Call *c = p;
  guard_now = c->guard;
  c->run(c->arg);
  return NULL;
}

void bulk_parallel(void (*run)(void *arg), void *arg) {
  Call c = {run, arg, guard_now};
  pthread_t t[64];
  int cores = platform_cores(), want = cores > 64 ? 64 : cores, got = 0;
  while (got < want - 1 && pthread_create(&t[got], NULL, call, &c) == 0) got++;
  run(arg);
  for (int i = 0; i < got; i++) pthread_join(t[i], NULL);
}

// ---- reference matrix product ----

#define COLS 64  // columns of d that a thread computes at a time
typedef double V4 __attribute__((vector_size(32)));

typedef struct GemmJob {
  const BulkMat *a, *b, *d;
  size_t m, n, k;
  atomic_size_t next;  // index of the next COLS columns to compute
  atomic_bool failed;
} GemmJob;

void bulk_row(const BulkMat *x, size_t i, size_t from, size_t n,
              double *out) {
  size_t at = i * x->stride[0] + from * x->stride[1], s = x->stride[1];
  if (s == 1) load_f64(x->t, x->p, at, n, out);
  else
    for (size_t q = 0; q < n; q++) out[q] = value(x->t, x->p, at + q * s);
}

// Loads the k elements of row i of a matrix as doubles to out[0], out[step],
// out[2 * step] ...
static void load_row(const BulkMat *x, size_t i, size_t k, double *out,
                     size_t step) {
  double run[RUN];
  for (size_t j = 0; j < k; j += RUN) {
    size_t c = k - j < RUN ? k - j : RUN;
    bulk_row(x, i, j, c, run);
    for (size_t q = 0; q < c; q++) out[(j + q) * step] = run[q];
  }
}

// Multiplies 4 rows of a by a panel of 4 rows of b: sum[r][c] is the sum over i
// < k of a[r * k + i] * b[4 * i + c].
static void kernel_4x4(const double *a, const double *b, size_t k,
                       V4 sum[4]) {
  V4 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (size_t i = 0; i < k; i++) {
    V4 v;
    memcpy(&v, b + 4 * i, sizeof v);
    s0 += a[i] * v;
    s1 += a[k + i] * v;
    s2 += a[2 * k + i] * v;
    s3 += a[3 * k + i] * v;
  }
  sum[0] = s0, sum[1] = s1, sum[2] = s2, sum[3] = s3;
}

// Computes columns [n0, n0 + cols) of d. `rows` and `panels` point to scratch
// memory of 4 * k and COLS * k doubles.
static void gemm_block(const GemmJob *g, size_t n0, size_t cols, double *rows,
                       double *panels) {
  const BulkMat *d = g->d;
  memset(panels, 0, COLS * g->k * sizeof *panels);
  // Panel j / 4 has rows n0 + j to n0 + j + 3 of b, interleaved: element 0 of
  // each row, then element 1 of each row ...
  for (size_t j = 0; j < cols; j++)
    load_row(g->b, n0 + j, g->k, panels + j / 4 * 4 * g->k + j % 4, 4);
  for (size_t i = 0; i < g->m && guard_spend(1 + cols * g->k / 4); i += 4) {
    size_t r = g->m - i < 4 ? g->m - i : 4;
    for (size_t q = 0; q < r; q++)
      load_row(g->a, i + q, g->k, rows + q * g->k, 1);
    for (size_t j = 0; j < cols; j += 4) {
      V4 sum[4];
      kernel_4x4(rows, panels + j * g->k, g->k, sum);
      for (size_t q = 0; q < r; q++)
        for (size_t c = 0; c < 4 && j + c < cols; c++)
          dtype_store(d->t, d->p, (i + q) * d->stride[0] +
                                    (n0 + j + c) * d->stride[1],
                      dtype_from_double(d->t, sum[q][c]));
    }
  }
}

static void gemm_thread(void *arg) {
  GemmJob *g = arg;
  size_t k = g->k ? g->k : 1;
  double *mem = base_realloc(NULL, (COLS + 4) * k * sizeof *mem);
  if (!mem) {
    atomic_store(&g->failed, true);
    return;
  }
  memset(mem, 0, 4 * k * sizeof *mem);
  size_t blocks = (g->n + COLS - 1) / COLS, i;
  while ((i = atomic_fetch_add(&g->next, 1)) < blocks) {
    size_t left = g->n - i * COLS;
    gemm_block(g, i * COLS, left < COLS ? left : COLS, mem, mem + 4 * k);
  }
  base_free(mem);
}

bool bulk_gemm(const BulkMat *a, const BulkMat *b, const BulkMat *d, size_t m,
               size_t n, size_t k) {
  GemmJob g = {.a = a, .b = b, .d = d, .m = m, .n = n, .k = k};
  bulk_parallel(gemm_thread, &g);
  return !atomic_load(&g.failed);
}
// SPDX-License-Identifier: MIT
