// Vector code of tile.c, tile8.c and tile16.c, for LANES lanes. Each of these
// files includes this header once, after it has defined
// - FUNCTIONS: the name of its table of functions;
// - TARGET: an attribute that its functions have;
// - LOAD_QUAD(p): a VF with copies of the four floats at p;
// - MAX_SHORTS(a, b): the larger of the 16-bit integers of two VI;
// - ANY_NEGATIVE(v): whether a lane of a VI is negative;
// - TRUNCATED(v), if the processor has it: a VI as VF, rounded toward zero.
// Names in this header have no prefix.
//
// A vector has LANES / 4 rows of D and, in each row, four columns: 0 2 4 6 of a
// block of eight columns, or 1 3 5 7. This is the order of a warp's accumulator
// registers (mma_place), so accumulators need no conversion. The product of two
// operands of at most 12 significand bits is exact in f32. Multiplied by
// 2^(F-e) and converted to an integer toward zero, it is the truncated term.
//
// Exponents have a bias of 127, as in the bits of floats. They have 16 bits, so
// that a lane holds the exponents of two products. Lanes whose e is outside
// [E_LOW, E_HIGH] are computed again by mma_sum. Either f32 cannot represent
// their products or results, or an operand is a NaN or an infinity, and e is at
// least E_SPECIAL + E_ZERO. Products may underflow although e is in this range.
// This is harmless, because they would be truncated to zero: 2^(e-F) is at
// least 2^-125.

#include <string.h>

#define E_ZERO (-8000)
#define E_SPECIAL 16000
#define E_LOW (27)
#define E_HIGH (245)
// No sum of two exponents is this small unless one of the operands is zero.
#define E_NONE (-2000)
#define LEAST_F16 (113)  // smallest exponent of an f16

#define INLINE TARGET static inline __attribute__((always_inline))

typedef float VF __attribute__((vector_size(4 * LANES)));
typedef int32_t VI __attribute__((vector_size(4 * LANES)));
typedef uint32_t VU __attribute__((vector_size(4 * LANES)));
typedef int16_t VS __attribute__((vector_size(4 * LANES)));
typedef int32_t HI __attribute__((vector_size(2 * LANES)));
typedef float HF __attribute__((vector_size(2 * LANES)));
typedef double HD __attribute__((vector_size(4 * LANES)));
typedef int64_t HL __attribute__((vector_size(4 * LANES)));
// vectors of four quads (16 lanes)
typedef float Square __attribute__((vector_size(64)));
typedef int32_t SquareI __attribute__((vector_size(64)));
// vectors in memory, which may be unaligned
typedef VF MF __attribute__((aligned(4), may_alias));
typedef VI MI __attribute__((aligned(4), may_alias));
typedef union Halves {
  VI i;
  VF f;
  HI hi[2];
  HF hf[2];
} Halves;

#define QUADS (LANES / 4)             // rows in a vector
#define GROUPS (MMA_ROWS / QUADS)  // vectors that hold a column of the tile
// number of products whose sum, with an accumulator, fits in 32 bits
#define CHUNK 8
// Number of vectors that are computed together, so that their latencies
// overlap. With four lanes, the number is 1, because such targets, for example
// WebAssembly, have few registers.
#define TOGETHER (LANES == 4 ? 1 : 4)

// Unrolls the following loop, so that gcc keeps arrays of vectors in registers.
#if defined(__clang__)
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

#define SPLAT(x) ((VI){0} + (x))
// A mask of the negative lanes. A comparison would be slower, because gcc
// computes it lane by lane.
#define NEGATIVE(v) ((v) >> 31)

#if LANES == 4
#define EACH_QUAD(a, b, c, d) a, b, c, d
#elif LANES == 8
#define EACH_QUAD(a, b, c, d) a, b, c, d, a + 4, b + 4, c + 4, d + 4
#else
#define EACH_QUAD(a, b, c, d) \
  a, b, c, d, a + 4, b + 4, c + 4, d + 4, \
  a + 8, b + 8, c + 8, d + 8, a + 12, b + 12, c + 12, d + 12
#endif
// Permutes the lanes of each quad of v.
#if defined(__clang__)
#define PERMUTE(v, a, b, c, d) \
  __builtin_shufflevector(v, v, EACH_QUAD(a, b, c, d))
#define SHUFFLE_SQUARE(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#else
#define PERMUTE(v, a, b, c, d) __builtin_shuffle(v, (VI){EACH_QUAD(a, b, c, d)})
#define SHUFFLE_SQUARE(v, ...) __builtin_shuffle(v, (SquareI){__VA_ARGS__})
#endif

// ---- operands ----

// Sets e, of type V, to the biased exponents of the elements of x, at least
// emin + 127. The exponent of a zero is E_ZERO; of an infinity or NaN,
// E_SPECIAL.
#define EXPONENTS(e, x, emin, V) \
  do { \
    V mag = (V)(x) & 0x7fffffff, least = (V){0} + ((emin) + 127); \
    V zero = NEGATIVE(mag - 1), special = NEGATIVE(0x7f7fffff - mag); \
    V above = (mag >> 23) - least; \
    above = (above & ~NEGATIVE(above)) + least; \
    e = (above & ~(zero | special)) | (zero & E_ZERO) | (special & E_SPECIAL); \
  } while (0)

// Returns the exponent of an element with exponent e after multiplication by
// 2^scale. Zeros and special values, whose |e| is at least 1000, keep their e.
INLINE int scaled(int e, int scale) {
  if (scale > SIM_SCALE_NAN / 2) return E_SPECIAL;
  return e > -1000 && e < 1000 ? e + scale : e;
}

// Loads four elements along K of each of QUADS rows, from row `at` on. Elements
// of rows beyond the first n are zero.
INLINE void load_quads(VF *x, const float *A, int at, int n, int K) {
  float t[LANES];
  for (int i = 0; i < QUADS; i++) {
    if (at + i < n) memcpy(t + 4 * i, A + (at + i) * K, 16);
    else memset(t + 4 * i, 0, 16);
  }
  memcpy(x, t, sizeof t);
}

// Writes a prepared A. For each group of QUADS rows, writes a vector for each
// k, in which the element of a row fills four lanes. Then writes K / 2 vectors
// of pairs of exponents.
INLINE void rows_body(const SimRule *r, int n, int K, const float *A,
                      float *to) {
  MI *e = (MI *)(void *)(to + MMA_ROWS * 4 * K);
  MF *a = (MF *)(void *)to;
  for (int g = 0; g < GROUPS; g++)
    for (int k = 0; k < K; k += 4, a += 4, e += 2) {
      VF x;
      VI u;
      load_quads(&x, A + k, g * QUADS, n, K);
      a[0] = PERMUTE(x, 0, 0, 0, 0);
      a[1] = PERMUTE(x, 1, 1, 1, 1);
      a[2] = PERMUTE(x, 2, 2, 2, 2);
      a[3] = PERMUTE(x, 3, 3, 3, 3);
      EXPONENTS(u, x, r->emin_a, VI);
      for (int l = 0; r->scale_a && l < LANES; l++)
        u[l] = scaled(u[l], r->scale_a[g * QUADS + l / 4]);
      u = (u & 0xffff) | PERMUTE(u, 1, 1, 3, 3) << 16;
      e[0] = PERMUTE(u, 0, 0, 0, 0);
      e[1] = PERMUTE(u, 2, 2, 2, 2);
    }
}

// Writes a prepared B: for each block of eight columns and each half of it
// (columns 0 2 4 6, and 1 3 5 7), K quads of elements and K / 2 quads of pairs
// of exponents.
INLINE void columns_body(const SimRule *r, int n, int K, const float *B,
                         float *to) {
  for (int j = 0; j < n; j += MMA_COLUMNS)
    for (int p = 0; p < 2; p++, to += 6 * K)
      for (int k = 0; k < K; k += 4) {
        // four columns of four elements
        Square x = {0};
        SquareI e;
        for (int c = 0; c < 4; c++)
          if (j + 2 * c + p < n)
            memcpy((float *)&x + 4 * c, B + (j + 2 * c + p) * K + k, 16);
        EXPONENTS(e, x, r->emin_b, SquareI);
        e -= 127 & ~NEGATIVE(e);
        for (int l = 0; r->scale_b && l < 16; l++)
          e[l] = scaled(e[l], r->scale_b[j + 2 * (l / 4) + p]);
        x = SHUFFLE_SQUARE(x, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11,
                           15);
        memcpy(to + 4 * k, &x, sizeof x);
        SquareI even = SHUFFLE_SQUARE(e, 0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0,
                                      0, 0, 0, 0);
        SquareI odd = SHUFFLE_SQUARE(e, 1, 5, 9, 13, 3, 7, 11, 15, 0, 0, 0, 0,
                                     0, 0, 0, 0);
        e = (even & 0xffff) | odd << 16;
        memcpy(to + 4 * K + 2 * k, &e, sizeof e / 2);
      }
}

// ---- sums ----

// Operands of TOGETHER vectors of D.
// - a, ea: elements and exponents of these vectors' rows in the prepared A,
//   from the current product on.
// - b, eb: elements and exponents of these vectors' columns in the prepared B.
// - K: the extent of K; the rows of vector i start at a[i * K] and ea[i * K /
//   2].
// - row, column: the first row and column, which select scale factors.
typedef struct Part {
  const MF *a;
  const MI *ea;
  const float *b, *eb;
  int K, row, column;
} Part;

// Returns the exponent of the scale factors of the products in lane l of vector
// i.
INLINE int scale_of(const SimRule *r, const Part *p, int i, int l) {
  if (!r->scale_a) return 0;
  return r->scale_a[p->row + i * QUADS + l / 4] +
         r->scale_b[p->column + 2 * (l % 4)];
}

// Sets e to the largest exponent among the n products of each lane.
INLINE void largest(const Part *p, int n, VI *e) {
  for (int k = 0; k < n / 2; k++) {
    VS eb = (VS)LOAD_QUAD(p->eb + k * 4);
    UNROLL for (int i = 0; i < TOGETHER; i++) {
      VI sum = (VI)((VS)p->ea[i * p->K / 2 + k] + eb);
      if (k) e[i] = MAX_SHORTS(e[i], sum);
      else e[i] = sum;
    }
  }
  UNROLL for (int i = 0; i < TOGETHER; i++) {
    VI swapped = (VI)((VU)e[i] << 16 | (VU)e[i] >> 16);
    e[i] = MAX_SHORTS(e[i], swapped) >> 16;
  }
}

// Sets each lane of *up to the power 2^(x - 127), where x is the lane's `field`
// plus the exponent of its scale factors.
TARGET __attribute__((noinline)) static void scale_up(
  const SimRule *r, const Part *p, int i, const VI *field, VF *up) {
  for (int l = 0; l < LANES; l++) {
    int u = (*field)[l] + scale_of(r, p, i, l);
    u = u < 1 ? 1 : u > 254 ? 254 : u;
    (*up)[l] = bits_float((uint32_t)u << 23);
  }
}

// Converts the sum of n chunks, multiplied by `down`: to f32, truncated toward
// zero to `keep` fraction bits, or to f16, rounded to nearest even.
INLINE void round_wide(const SimRule *r, const VI *s, int n, const VF *down,
                       VF *d) {
  HD sums[2] = {{0}, {0}};
  for (int i = 0; i < n; i++) {
    Halves h = {.i = s[i]};
    sums[0] += __builtin_convertvector(h.hi[0], HD);
    sums[1] += __builtin_convertvector(h.hi[1], HD);
  }
  if (r->half) {
    for (int l = 0; l < LANES; l++) {
      double x = sums[l / (LANES / 2)][l % (LANES / 2)] * (double)(*down)[l];
      // Adding 0 turns -0 into +0.
      (*d)[l] = dtype_to_float(DT_F16, dtype_from_double(DT_F16, x)) + 0.0f;
    }
    return;
  }
  Halves h;
  int64_t kept = (int64_t)(~0ull << (52 - r->keep));
  for (int i = 0; i < 2; i++)
    h.hf[i] = __builtin_convertvector((HD)((HL)sums[i] & kept), HF);
  *d = h.f * *down;
}

// Computes the same result as round_wide, but faster. If TRUNCATED is defined
// (see above), converts the sum of up to two vectors of s at once, because it
// rarely needs more than 32 bits.
INLINE void round_sums(const SimRule *r, const VI *s, int n, const VF *down,
                       VF *d) {
#if defined(TRUNCATED)
  VI sum = s[0], wide = {0};
  if (n > 1) {
    sum = (VI)((VU)sum + (VU)s[1]);
    wide = (s[0] ^ sum) & (s[1] ^ sum);
  }
  if (n <= 2 && !r->half && !ANY_NEGATIVE(wide)) {
    VI kept = SPLAT((int32_t)(~0u << (23 - r->keep)));
    *d = (VF)((VI)TRUNCATED(sum) & kept) * *down;
    return;
  }
#endif
  round_wide(r, s, n, down, d);
}

// Sets in *odd the lanes in which vector code cannot compute the sum of c and
// the products. *e is the largest exponent of these terms. In lanes without
// nonzero terms, sets *e to E_LOW.
INLINE void classify(const VF *c, VI *e, const VI *products, VI *odd) {
  VI none = NEGATIVE(*products - E_NONE) & NEGATIVE(((VI)*c & 0x7fffffff) - 1);
  *odd = (NEGATIVE(E_HIGH - *e) | NEGATIVE(*e - E_LOW)) & ~none;
  *e = (*e & ~none) | (none & E_LOW);
}

// Computes d again from the accumulators c, by mma_sum, in those lanes of
// vector i that are set in `odd`. Returns whether a result is a NaN or an
// infinity.
TARGET static bool mend(const SimRule *r, const Part *p, int i, int n,
                        const VF *c, VF *d, const VI *odd) {
  bool special = false;
  for (int l = 0; l < LANES; l++) {
    if (!(*odd)[l]) continue;
    float a[SIM_TILE_K], b[SIM_TILE_K];
    for (int k = 0; k < n; k++) {
      a[k] = p->a[i * p->K + k][l];
      b[k] = p->b[k * 4 + l % 4];
    }
    float x = mma_sum(r, n, a, b, scale_of(r, p, i, l), (*c)[l]);
    (*d)[l] = x;
    special |= !(x - x == 0);
  }
  return special;
}

// Adds n products to the accumulators c of TOGETHER vectors. Returns whether a
// result is a NaN or an infinity.
INLINE bool sum_part(const SimRule *r, const Part *p, int n, VF *c) {
  enum { MOST = SIM_TILE_K / CHUNK };
  VI e[TOGETHER], products[TOGETHER], s[TOGETHER][MOST], outside = {0};
  VF up[TOGETHER], down[TOGETHER];
  largest(p, n, products);
  UNROLL for (int i = 0; i < TOGETHER; i++) {
    VI field = (VI)((VU)c[i] << 1 >> 24);
    if (r->half) {
      VI d = field - LEAST_F16;
      field = (LEAST_F16 + (d & ~NEGATIVE(d))) & NEGATIVE(0 - field);
    }
    VI d = products[i] - field;
    e[i] = field + (d & ~NEGATIVE(d));
    outside |= (e[i] - E_LOW) | (E_HIGH - e[i]);
  }
  bool mended = ANY_NEGATIVE(outside), special = false;
  VI odd[TOGETHER];
  for (int i = 0; mended && i < TOGETHER; i++)
    classify(&c[i], &e[i], &products[i], &odd[i]);
  UNROLL for (int i = 0; i < TOGETHER; i++) {
    VI scale = r->f + 254 - e[i];
    up[i] = (VF)((VU)scale << 23);
    down[i] = (VF)((VU)(254 - scale) << 23);
    // Lanes in `odd` may overflow here. mend computes them again.
    s[i][0] = __builtin_convertvector(c[i] * up[i], VI);
    if (r->scale_a) {
      VF of_products;
      VI field = scale;
      scale_up(r, p, i, &field, &of_products);
      up[i] = of_products;
    }
  }
  UNROLL for (int k0 = 0; k0 < n; k0 += CHUNK) {
    VI sum[TOGETHER];
    UNROLL for (int i = 0; i < TOGETHER; i++) sum[i] = k0 ? SPLAT(0) : s[i][0];
    int end = n < k0 + CHUNK ? n : k0 + CHUNK;
    for (int k = k0; k < end; k++) {
      VF b = LOAD_QUAD(p->b + k * 4);
      UNROLL for (int i = 0; i < TOGETHER; i++)
        sum[i] = (VI)((VU)sum[i] + (VU)__builtin_convertvector(
                        p->a[i * p->K + k] * b * up[i], VI));
    }
    UNROLL for (int i = 0; i < TOGETHER; i++) s[i][k0 / CHUNK] = sum[i];
  }
  UNROLL for (int i = 0; i < TOGETHER; i++) {
    VF d;
    round_sums(r, s[i], (n + CHUNK - 1) / CHUNK, &down[i], &d);
    if (mended) special |= mend(r, p, i, n, &c[i], &d, &odd[i]);
    c[i] = d;
  }
  return special;
}

// Returns the index of the accumulators of one vector: the rows of group g, and
// the even (p = 0) or odd (p = 1) columns of a block.
INLINE size_t accumulator(int p, int g) {
  int row = g * QUADS;
  return (size_t)((row / 8 * 2 + p) * 32 + row % 8 * 4);
}

// step: r->step, as a compile-time constant
INLINE bool multiply_body(const SimRule *r, int step, int N, int K,
                          const float *A, const float *B, const float *C,
                          float *D) {
  bool special = false;
  for (int j = 0; j < N; j += MMA_COLUMNS, C += 128, D += 128)
    for (int p = 0; p < 2; p++, B += 6 * K)
      for (int g = 0; g < GROUPS; g += TOGETHER) {
        VF c[TOGETHER];
        for (int i = 0; i < TOGETHER; i++)
          memcpy(&c[i], C + accumulator(p, g + i), sizeof *c);
        for (int k = 0; k < K; k += step) {
          const float *ea = A + MMA_ROWS * 4 * K;
          Part part = {(const MF *)(const void *)A + g * K + k,
                       (const MI *)(const void *)ea + (g * K + k) / 2,
                       B + k * 4, B + 4 * K + k * 2, K, g * QUADS, j + p};
          special |= sum_part(r, &part, step, c);
        }
        for (int i = 0; i < TOGETHER; i++)
          memcpy(D + accumulator(p, g + i), &c[i], sizeof *c);
      }
  if (!r->half) return special;
  for (int i = 0; i < N * MMA_ROWS; i++)
    special |= !(D[i - N * MMA_ROWS] - D[i - N * MMA_ROWS] == 0);
  return special;
}

// ---- f16 and bf16 to f32 ----

typedef uint16_t VH __attribute__((vector_size(2 * LANES)));

INLINE void widen_lanes(bool half, const VH *h, VF *to) {
  VI u = __builtin_convertvector(*h, VI);
  if (!half) {
    *to = (VF)(u << 16);
    return;
  }
  VI mag = u & 0x7fff, special = NEGATIVE(0x7bff - mag);
  VI x = (VI)((VF)(mag << 13) * 0x1p112f);
  *to = (VF)(x | (special & 0x7f800000) | ((u & 0x8000) << 16));
}

INLINE void widen_body(bool half, const char *src, size_t n, float *dst) {
  VH h;
  for (; n >= LANES; n -= LANES, src += sizeof h, dst += LANES) {
    memcpy(&h, src, sizeof h);
    VF x;
    widen_lanes(half, &h, &x);
    memcpy(dst, &x, sizeof x);
  }
  for (; n; n--, src += 2) {
    uint16_t u;
    memcpy(&u, src, 2);
    *dst++ = dtype_to_float(half ? DT_F16 : DT_BF16, u);
  }
}

// ---- the table ----

TARGET static void rows(const SimRule *r, int n, int K, const float *A,
                        float *to) {
  rows_body(r, n, K, A, to);
}

TARGET static void columns(const SimRule *r, int n, int K, const float *B,
                           float *to) {
  columns_body(r, n, K, B, to);
}

TARGET static bool multiply(const SimRule *r, int N, int K, const float *A,
                            const float *B, const float *C, float *D) {
  switch (r->step) {
    case 4: return multiply_body(r, 4, N, K, A, B, C, D);
    case 8: return multiply_body(r, 8, N, K, A, B, C, D);
    case 16: return multiply_body(r, 16, N, K, A, B, C, D);
    case 32: return multiply_body(r, 32, N, K, A, B, C, D);
    default: return multiply_body(r, 64, N, K, A, B, C, D);
  }
}

TARGET static void widen(bool half, const void *src, size_t n, float *dst) {
  if (half) widen_body(true, src, n, dst);
  else widen_body(false, src, n, dst);
}

const SimTileFns FUNCTIONS = {rows, columns, multiply, widen};
// SPDX-License-Identifier: MIT
