// The arithmetic of tcgen05.mma. Most kinds use the sums of mma.h, which tile.c
// computes. This file computes the sums of the 4-bit kinds (mxf4, mxf4nvf4).
#include "hardware/ummamath.h"

#include <math.h>
#include <string.h>

#include "hardware/mma.h"
#include "hardware/tile.h"

// MOST: maximum number of stored elements of a row. STRIP: number of rows of B
// that are multiplied at once with a row of a sparse A.
enum { MOST = SIM_TILE_K, STRIP = 16 };

// ---- kinds ----

static bool is_small(UmmaKind kind) {
  return kind == UMMA_MXF4 || kind == UMMA_MXF4NVF4;
}

static bool is_f8f6f4(DType t) {
  return t == DT_E4M3 || t == DT_E5M2 || t == DT_E2M3 || t == DT_E3M2 ||
         t == DT_E2M1;
}

static bool is_byte(DType t) { return t == DT_I8 || t == DT_U8; }

bool ummamath_known(const SimUmma *u) {
  bool plain = u->scale == DT_NONE && u->scales == 0;
  bool ue8m0 = u->scale == DT_UE8M0, both = u->a == u->b;
  bool half = u->d == DT_F16, word = u->d == DT_F32;
  bool e2m1 = both && u->a == DT_E2M1 && word;
  switch (u->kind) {
    case UMMA_TF32: return both && u->a == DT_TF32 && word && plain;
    case UMMA_F16:
      return both && plain && ((u->a == DT_F16 && (word || half)) ||
                               (u->a == DT_BF16 && word));
    case UMMA_F8F6F4:
      return is_f8f6f4(u->a) && is_f8f6f4(u->b) && (word || half) && plain;
    case UMMA_I8:
      return is_byte(u->a) && is_byte(u->b) && u->d == DT_I32 && plain;
    case UMMA_MXF8F6F4:
      return is_f8f6f4(u->a) && is_f8f6f4(u->b) && word && ue8m0 &&
             u->scales == 1;
    case UMMA_MXF4: return e2m1 && ue8m0 && u->scales == 2;
    case UMMA_MXF4NVF4:
      return e2m1 && ((ue8m0 && (u->scales == 2 || u->scales == 4)) ||
                      (u->scale == DT_E4M3 && u->scales == 4));
    case UMMA_KIND_COUNT: break;
  }
  return false;
}

// ---- sums of mma.h ----

static SimRule rule_of(const SimUmma *u, int k) {
  return (SimRule){.f = 25, .step = k, .keep = 23, .half = u->d == DT_F16,
                   .emin_a = mma_least_exponent(u->a),
                   .emin_b = mma_least_exponent(u->b),
                   .floor = mma_floor(u->a)};
}

static int32_t exponent_of(uint8_t ue8m0) {
  return ue8m0 == 0xff ? SIM_SCALE_NAN : ue8m0 - 127;
}

static void fused_tile(const SimUmma *u, const SimUmmaTile *t, int k) {
  SimRule r = rule_of(u, k);
  int32_t ea[SIM_UMMA_MOST] = {0}, eb[SIM_UMMA_MOST] = {0};
  if (u->scales) {
    for (int i = 0; i < t->m; i++) ea[i] = exponent_of(t->sfa[i]);
    for (int j = 0; j < t->n; j++) eb[j] = exponent_of(t->sfb[j]);
    r.scale_a = ea;
    r.scale_b = eb;
  }
  mma_tile_by(&r, t->m, t->n, k, t->a, t->b, t->d, t->d);
}

// ---- e2m1 with scale factors ----

// An e2m1 is an integer times 1/2. Its mask is 1 << exponent, with exponent 0,
// 1 or 2. The mask of 0 is 0. The product of two masks is the mask of the
// product, and the bitwise or of masks has the largest exponent as its top bit.
enum { LANES = 8, K = 64, GROUPS = 4, QUADS = 16, NEVER = -100000 };
typedef int16_t Lanes __attribute__((vector_size(2 * LANES)));

// The elements of LANES rows, in K-major order.
typedef struct Rows { Lanes value[K], mask[K]; } Rows;

static void load_e2m1(const float *from, int rows, Rows *to) {
  int16_t *value = (int16_t *)to->value, *mask = (int16_t *)to->mask;
  memset(to, 0, sizeof *to);
  for (int l = 0; l < rows; l++)
    for (int k = 0; k < K; k++) {
      int16_t v = (int16_t)(from[l * K + k] * 2);
      int mag = v < 0 ? -v : v;
      value[k * LANES + l] = v;
      mask[k * LANES + l] = mag == 0 ? 0 : mag < 4 ? 1 : mag < 8 ? 2 : 4;
    }
}

// Sums for one element of D in each lane. quad: sums of 4 products, in units of
// 1/4. mask: bitwise ORs of the masks of 16 products.
typedef struct Sums { Lanes quad[QUADS], mask[GROUPS]; } Sums;

// Adds the products of LANES rows of A and row l of B.
static void add_products(const Rows *a, const Rows *b, int l, Sums *s) {
  memset(s, 0, sizeof *s);
  for (int k = 0; k < K; k++) {
    s->quad[k / 4] += a->value[k] * b->value[k][l];
    s->mask[k / 16] |= a->mask[k] * b->mask[k][l];
  }
}

// A value sig * 2^exp.
typedef struct Term { int64_t sig; int exp; } Term;

// Decodes a scale factor. Returns false if it is a NaN.
static bool scale_of(DType type, uint8_t code, Term *out) {
  if (type == DT_UE8M0) {
    *out = (Term){1, code - 127};
    return code != 0xff;
  }
  int e = code >> 3 & 15, fraction = code & 7;
  *out = (Term){e ? fraction | 8 : fraction, (e ? e : 1) - 7};
  return (code & 0x7f) != 0x7f;
}

// Returns t, truncated toward zero, in units of 2^q.
static int64_t cut(Term t, int q) {
  int right = q - t.exp;
  if (!t.sig) return 0;
  if (right <= 0) return t.sig * ((int64_t)1 << -right);
  return right > 62 ? 0 : t.sig / ((int64_t)1 << right);
}

// The terms of an element: 4 groups with their scale factors, and C.
typedef struct Element {
  Term group[GROUPS], quad[QUADS];
  // scale: exponent of the group's scale factors. top: exponent of the group's
  // largest product, or NEVER if all its products are 0.
  int scale[GROUPS], top[GROUPS];
  Term c;
  int e;  // exponent of C, NEVER if it is 0
  int r, s;  // r: largest `top`. s: largest `scale`.
} Element;

static Term term_of_c(float c, int *e) {
  uint32_t u = float_bits(c);
  int field = (int)(u >> 23 & 0xff);
  int64_t sig = (u & 0x7fffff) | (field ? 0x800000 : 0);
  int exp = (field ? field : 1) - 127;
  *e = sig ? exp : NEVER;
  return (Term){u >> 31 ? -sig : sig, exp - 23};
}

// Sums the terms in units of 2^q. Truncates group g to a multiple of 2^fine[g].
// left_out: mask of the groups that are omitted.
static int64_t sum_groups(const Element *x, int q, const int *fine,
                          int left_out) {
  int64_t sum = cut(x->c, q);
  for (int g = 0; g < GROUPS; g++)
    if (!(left_out >> g & 1))
      sum += cut(x->group[g], fine[g]) * ((int64_t)1 << (fine[g] - q));
  return sum;
}

static float sum_ue8m0(const Element *x, int q) {
  int fine[GROUPS];
  for (int g = 0; g < GROUPS; g++) {
    bool coarse = x->e >= x->top[g] && x->e - 35 > q && x->top[g] != NEVER;
    fine[g] = coarse ? x->e - 35 : q;
  }
  float d = mma_round(sum_groups(x, q, fine, 0), q, 23);
  if (d == 0 || fabsf(d) >= 0x1p-126f) return d;
  int least = q > -174 ? q : -174, left_out = 0;
  for (int g = 0; g < GROUPS; g++)
    if (x->scale[g] < x->s &&
        fabs(ldexp((double)x->group[g].sig, x->group[g].exp - least)) < 1)
      left_out |= 1 << g;
  return mma_round(sum_groups(x, q, fine, left_out), q, 23);
}

static float sum_ue4m3(const Element *x, int q) {
  int64_t sum = cut(x->c, q);
  for (int k = 0; k < QUADS; k++) sum += cut(x->quad[k], q);
  return mma_round(sum, q, 23);
}

static float sum_element(const SimUmma *u, const Element *x, float c) {
  if (x->r == NEVER) return c == 0 ? 0 : c;
  if (x->e >= x->r) {
    int q = x->e - 35, fine[GROUPS] = {q, q, q, q};
    return mma_round(sum_groups(x, q, fine, 0), q, 23);
  }
  int q = x->s - 35;
  return u->scale == DT_UE8M0 ? sum_ue8m0(x, q) : sum_ue4m3(x, q);
}

// Returns an element of D from lane l of the sums.
static float scaled_element(const SimUmma *u, const Sums *sums, int l,
                            const uint8_t *sfa, const uint8_t *sfb, float c) {
  Element x = {.r = NEVER, .s = NEVER};
  int per = GROUPS / u->scales;
  bool bad = isnan(c);
  for (int g = 0; g < GROUPS; g++) {
    Term a, b;
    bad |= !scale_of(u->scale, sfa[g / per], &a);
    bad |= !scale_of(u->scale, sfb[g / per], &b);
    int64_t sig = a.sig * b.sig, sum = 0;
    // Each significand of a ue4m3 has 3 fraction bits.
    int exp = a.exp + b.exp, unit = exp - 2 - (u->scale == DT_UE8M0 ? 0 : 6);
    for (int k = 4 * g; k < 4 * g + 4; k++) {
      x.quad[k] = (Term){sums->quad[k][l] * sig, unit};
      sum += x.quad[k].sig;
    }
    x.group[g] = (Term){sum, unit};
    int mask = sig ? sums->mask[g][l] : 0;
    x.scale[g] = mask ? exp : NEVER;
    x.top[g] = mask ? exp + 31 - __builtin_clz((unsigned)mask) : NEVER;
    if (x.top[g] > x.r) x.r = x.top[g];
    if (x.scale[g] > x.s) x.s = x.scale[g];
  }
  if (bad) return bits_float(0x7fffffff);
  if (isinf(c)) return c;
  x.c = term_of_c(c, &x.e);
  return sum_element(u, &x, c);
}

static void small_tile(const SimUmma *u, const SimUmmaTile *t) {
  Rows a, b;
  Sums sums;
  float *d = t->d;
  for (int i = 0; i < t->m; i += LANES) {
    int rows = t->m - i < LANES ? t->m - i : LANES;
    load_e2m1((const float *)t->a + i * K, rows, &a);
    for (int j = 0; j < t->n; j++) {
      if (j % LANES == 0) {
        int left = t->n - j < LANES ? t->n - j : LANES;
        load_e2m1((const float *)t->b + j * K, left, &b);
      }
      add_products(&a, &b, j % LANES, &sums);
      for (int l = 0; l < rows; l++) {
        float *at = &d[(i + l) * t->n + j];
        *at = scaled_element(u, &sums, l, t->sfa + (i + l) * u->scales,
                             t->sfb + j * u->scales, *at);
      }
    }
  }
}

// ---- dense and sparse ----

static void dense_tile(const SimUmma *u, const SimUmmaTile *t) {
  int k = umma_kind(u->kind)->k;
  if (u->kind == UMMA_I8) {
    SimMma m = {.a = u->a, .b = u->b, .c = DT_I32, .k = k, .sat = u->sat};
    mma_tile_int(&m, t->m, t->n, t->a, t->b, t->d, t->d);
  } else if (is_small(u->kind)) {
    small_tile(u, t);
  } else {
    fused_tile(u, t, k);
  }
}

void ummamath_positions(UmmaKind kind, const uint32_t *meta, uint8_t *at) {
  int chunk = umma_kind(kind)->chunk, per = chunk / 2;
  for (int k = 0; k < umma_kind(kind)->k; k++) {
    int c = k / per, in = k % per;
    int nibble = (int)(meta[c / 8] >> (c % 8 * 4) & 15);
    // A nibble selects one of two elements, two of four elements, or two of
    // four pairs of elements.
    if (chunk == 2) in = nibble >> 1 & 1;
    else if (chunk == 4) in = nibble >> (2 * in) & 3;
    else in = (nibble >> (in / 2 * 2) & 3) * 2 + in % 2;
    at[k] = (uint8_t)(c * chunk + in);
  }
}

// Copies from each of `rows` rows of B the elements at positions `at`.
static void select_elements(const SimUmma *u, const void *from, int rows,
                            const uint8_t *at, void *to) {
  size_t size = u->kind == UMMA_I8 ? sizeof(int16_t) : sizeof(float);
  int k = umma_kind(u->kind)->k, wide = ummamath_k(u);
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < k; i++)
      memcpy((char *)to + (size_t)(r * k + i) * size,
             (const char *)from + (size_t)(r * wide + at[i]) * size, size);
}

// Each row of a sparse A selects other elements of B's rows. For each row,
// computes a dense product whose first operand is the selected elements, and
// whose second operand is the row of A.
static void sparse_tile(const SimUmma *u, const SimUmmaTile *t) {
  int k = umma_kind(u->kind)->k, wide = ummamath_k(u);
  size_t size = u->kind == UMMA_I8 ? sizeof(int16_t) : sizeof(float);
  SimUmma turned = *u;
  turned.a = u->b;
  turned.b = u->a;
  uint8_t at[MOST];
  float b[STRIP * MOST];
  for (int i = 0; i < t->m; i++) {
    ummamath_positions(u->kind, t->meta + i * umma_metadata_words(u->kind), at);
    for (int j = 0; j < t->n; j += STRIP) {
      int n = t->n - j < STRIP ? t->n - j : STRIP;
      select_elements(u, (const char *)t->b + (size_t)(j * wide) * size, n, at,
                      b);
      SimUmmaTile part = {
        .m = n, .n = 1, .a = b,
        .b = (const char *)t->a + (size_t)(i * k) * size,
        .d = (char *)t->d + (size_t)(i * t->n + j) * 4};
      if (u->scales) {
        part.sfa = t->sfb + j * u->scales;
        part.sfb = t->sfa + i * u->scales;
      }
      dense_tile(&turned, &part);
    }
  }
}

void ummamath_tile(const SimUmma *u, const SimUmmaTile *t) {
  if (u->sparse) sparse_tile(u, t);
  else dense_tile(u, t);
}
// SPDX-License-Identifier: MIT
