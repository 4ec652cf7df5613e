// Vector code of tile.c and tile16.c, for LANES lanes. Each of these files
// includes this header once. Names here have no prefix.
//
// It multiplies LANES rows of A with one row of B at a time. The product of two
// operands of at most 12 significand bits is exact in f32. Multiplied by
// 2^(F-e) and converted to an integer toward zero, it is the truncated term.
// Lanes whose e is outside [E_LOW, E_HIGH] are computed again by simmma_sum.
// Either f32 cannot represent their products or results, or they have NaNs or
// infinities, whose exponent is E_SPECIAL. Products that underflow although e
// is in this range are truncated to zero anyway, because 2^(e-F) is at least
// 2^-125.

#define E_ZERO (-5000)
#define E_SPECIAL 20000
#define E_LOW (-100)
#define E_HIGH 118

#define HALF (LANES / 2)

typedef float VF __attribute__((vector_size(4 * LANES)));
typedef int32_t VI __attribute__((vector_size(4 * LANES)));
typedef uint32_t VU __attribute__((vector_size(4 * LANES)));
typedef int32_t HI __attribute__((vector_size(2 * LANES)));
typedef float HF __attribute__((vector_size(2 * LANES)));
typedef double HD __attribute__((vector_size(4 * LANES)));
typedef int64_t HL __attribute__((vector_size(4 * LANES)));
typedef union Halves {
  VI i;
  VF f;
  HI hi[2];
  HF hf[2];
  int64_t q[LANES / 2];
} Halves;

// Vectors are passed by pointer. Passed by value, their calling convention
// would depend on the target.
#define INLINE static inline __attribute__((always_inline))
#define SPLAT(x) ((VI){0} + (x))
// A mask of the negative lanes. gcc would compute a comparison lane by lane.
#define NEGATIVE(v) ((v) >> 31)

// Set each lane of a to max(a, b) or to min(a, b). The differences must not
// overflow.
INLINE void raise_to(VI *a, const VI *b) {
  VI d = *a - *b;
  *a = *b + (d & ~NEGATIVE(d));
}

INLINE void lower_to(VI *a, const VI *b) {
  VI d = *a - *b;
  *a = *b + (d & NEGATIVE(d));
}

// Computes the exponents of the elements of x, as the rule defines them.
INLINE void exponents(VI *e, const VF *x, int emin) {
  VI u = (VI)*x & 0x7fffffff, least = SPLAT(emin);
  VI zero = NEGATIVE(u - 1), special = NEGATIVE(0x7f7fffff - u);
  *e = (u >> 23) - 127;
  raise_to(e, &least);
  *e = (*e & ~(zero | special)) | (zero & E_ZERO) | (special & E_SPECIAL);
}

INLINE bool any(const VI *m) {
  Halves h = {.i = *m};
  int64_t s = 0;
  for (int i = 0; i < LANES / 2; i++) s |= h.q[i];
  return s != 0;
}

// Adds the lower half of the lanes of s to sums[0], and the upper half to
// sums[1].
INLINE void add_lanes(HD *sums, const VU *s) {
  Halves h = {.i = (VI)*s};
  sums[0] += __builtin_convertvector(h.hi[0], HD);
  sums[1] += __builtin_convertvector(h.hi[1], HD);
}

// A block of LANES rows of A in K-major order, with the exponents of its
// elements.
typedef struct Block {
  VF a[SIM_TILE_K];
  VI ea[SIM_TILE_K];
} Block;

// Converts sums * down, where `sums` are exact integers, to f32, truncated
// toward zero to `keep` fraction bits, or to f16, rounded to nearest even.
INLINE void round_lanes(const SimRule *r, VF *d, const HD *sums,
                        const VF *down) {
  Halves h;
  if (!r->half) {
    int64_t kept = (int64_t)(~0ull << (52 - r->keep));
    for (int i = 0; i < 2; i++)
      h.hf[i] = __builtin_convertvector((HD)((HL)sums[i] & kept), HF);
    *d = h.f * *down;
    return;
  }
  for (int l = 0; l < LANES; l++) {
    double x = sums[l / HALF][l % HALF] * (double)(*down)[l];
    // Adding 0 turns -0 into +0.
    (*d)[l] = dtype_to_float(DT_F16, dtype_from_double(DT_F16, x)) + 0.0f;
  }
}

// Computes a sum in each lane: adds to c the products k0 to k0+n-1 of the
// lane's row and the row b, whose exponents are eb. The scale factors of the
// products are 2^scale. Lanes in which `odd` is not 0 have no valid result.
INLINE void sum_lanes(const SimRule *r, const Block *p, const float *b,
                      const int32_t *eb, const VI *scale, int k0, int n, VF *c,
                      VI *odd) {
  VI e, top = SPLAT(E_ZERO), low = SPLAT(E_LOW), high = SPLAT(E_HIGH);
  exponents(&e, c, r->half ? -14 : -126);
  for (int k = k0; k < k0 + n; k++) {
    VI ek = p->ea[k] + eb[k];
    raise_to(&top, &ek);
  }
  top += *scale;
  raise_to(&e, &top);
  *odd = NEGATIVE(high - e) | NEGATIVE(e - low);
  // An exponent of -2000 or less means that all terms are 0.
  *odd &= NEGATIVE(-2000 - e);
  raise_to(&e, &low);
  lower_to(&e, &high);
  VF up = (VF)((r->f + 127 - e) << 23), down = (VF)((e - r->f + 127) << 23);
  VI field = r->f + 127 - e + *scale, least = SPLAT(1), most = SPLAT(254);
  raise_to(&field, &least);
  lower_to(&field, &most);
  VF up_product = (VF)(field << 23);
  // Lanes marked in `odd` may overflow. mend computes them again.
  VU s = (VU)__builtin_convertvector(*c * up, VI);
  HD sums[2] = {{0}, {0}};
  // the sum of 8 terms and c fits in 32 bits
  for (int k = k0; k < k0 + n; k += 8) {
    int end = k + 8 < k0 + n ? k + 8 : k0 + n;
    for (int i = k; i < end; i++)
      s += (VU)__builtin_convertvector(p->a[i] * b[i] * up_product, VI);
    add_lanes(sums, &s);
    s = (VU){0};
  }
  round_lanes(r, c, sums, &down);
}

// Computes d from the accumulators c in the lanes that vector code cannot
// compute (odd).
static void mend(const SimRule *r, const Block *p, const float *b,
                 const VI *scale, int k0, int n, const VF *c, VF *d,
                 const VI *odd) {
  for (int l = 0; l < LANES; l++) {
    if (!(*odd)[l]) continue;
    float a[SIM_TILE_K];
    for (int k = 0; k < n; k++) a[k] = p->a[k0 + k][l];
    (*d)[l] = simmma_sum(r, n, a, b + k0, (*scale)[l], (*c)[l]);
  }
}

INLINE void load_block(const SimRule *r, Block *p, const float *A, int rows,
                       int K) {
  float *t = (float *)p->a;
  if (rows < LANES) memset(t, 0, (size_t)K * sizeof(VF));
  for (int l = 0; l < rows; l++)
    for (int k = 0; k < K; k++) t[k * LANES + l] = A[l * K + k];
  for (int k = 0; k < K; k++) exponents(&p->ea[k], &p->a[k], r->emin_a);
}

// Computes the exponents of the K elements of a row of B.
INLINE void load_row(const SimRule *r, int32_t *eb, const float *b, int K) {
  for (int k = 0; k < K; k += LANES) {
    VF x = {0};
    VI e;
    memcpy(&x, b + k, sizeof(float) * (size_t)(K - k < LANES ? K - k : LANES));
    exponents(&e, &x, r->emin_b);
    memcpy(eb + k, &e, sizeof e);
  }
}

INLINE void tile_body(const SimRule *r, int M, int N, int K, const float *A,
                      const float *B, const float *C, float *D) {
  Block p;
  int32_t eb[SIM_TILE_K + LANES];
  for (int m0 = 0; m0 < M; m0 += LANES) {
    int rows = M - m0 < LANES ? M - m0 : LANES;
    load_block(r, &p, A + m0 * K, rows, K);
    VI scale_a = {0};
    for (int l = 0; r->scale_a && l < rows; l++)
      ((int32_t *)&scale_a)[l] = r->scale_a[m0 + l];
    for (int n = 0; n < N; n++) {
      const float *b = B + n * K;
      load_row(r, eb, b, K);
      VF c = {0}, d;
      VI odd, scale = scale_a + (r->scale_b ? r->scale_b[n] : 0);
      for (int l = 0; l < rows; l++) ((float *)&c)[l] = C[(m0 + l) * N + n];
      for (int k = 0; k < K; k += r->step) {
        d = c;
        sum_lanes(r, &p, b, eb, &scale, k, r->step, &d, &odd);
        if (any(&odd)) mend(r, &p, b, &scale, k, r->step, &c, &d, &odd);
        c = d;
      }
      for (int l = 0; l < rows; l++) D[(m0 + l) * N + n] = ((float *)&c)[l];
    }
  }
}
// SPDX-License-Identifier: MIT
