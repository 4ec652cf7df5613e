// Whole arrays of elements at once: filling, converting, comparing, and the
// CPU's own matrix product that results are verified against.
#ifndef CUTE_BULK_H
#define CUTE_BULK_H

#include "base/dtype.h"

// Host memory: `count` packed elements of type t, the C side of MT_BUFFER.
// Sub-byte types are packed, low bits first, so bytes = (count * bits + 7) /
// 8. A face looks at hostbuf_open before it touches the memory.
typedef struct HostBuf HostBuf;
struct HostBuf {
  DType t;
  size_t count, bytes;
  void *p;       // first element, aligned to HOSTBUF_ALIGN; NULL when closed
  void *raw;     // what base_realloc gave
  bool closed;
  bool defined;  // the whole buffer was written at least once (fills, copies,
                 // strings); the simulator poisons buffers that were not
  void (*unpin)(HostBuf *b);  // of pinned memory: before it is freed
  struct Gpu *gpu;            // that it is pinned for, and its context then
  unsigned epoch;
};

#define HOSTBUF_ALIGN 256

static inline bool hostbuf_open(const HostBuf *b) { return !b->closed; }

// dst[at + i] = src[from + i] for i < n, converted from type s to type t with
// one rounding. The ranges must not overlap unless the types are equal.
void bulk_convert(DType t, void *dst, size_t at, DType s, const void *src,
                  size_t from, size_t n);

// dst[j * rows + i] = src[i * cols + j]: a row-major matrix turned.
void bulk_transpose(DType t, void *dst, const void *src, size_t rows,
                    size_t cols);
void bulk_fill(DType t, void *p, size_t at, size_t n, uint64_t bits);

// Samples of N(mean, sd): the same seed gives the same samples in every type,
// whole in f64, rounded to f32 and then to t in the others.
void bulk_normal(DType t, void *p, size_t n, uint64_t seed, double mean,
                 double sd);

// Numbers of [0, 1), uniformly: the same in every type of floats, cut off.
void bulk_uniform(DType t, void *p, size_t n, uint64_t seed);

// Integers lo .. hi, uniformly; hi - lo < 2^53.
void bulk_ints(DType t, void *p, size_t n, uint64_t seed, int64_t lo,
               int64_t hi);

// Clears the lowest bits of n words: what tensor cores take of an f32 as a
// tf32 (13 bits).
void bulk_cut(void *p, size_t n, int bits);

// How far a is from b, elementwise. A NaN on either side makes every measure
// infinite, so that no tolerance accepts it.
typedef struct BulkDiff {
  double max_abs;    // max |a - b|
  double max_rel;    // max |a - b| / |b|
  double max_scaled; // max |a - b| / max |b|
  double frobenius;  // |a - b| / |b| in the Frobenius norm
  size_t worst;      // index of max_abs, or of the first NaN
  size_t nans;
  size_t count;      // elements compared
  double sum_d, sum_b, max_b;  // running sums of squares, max |b|
} BulkDiff;
BulkDiff bulk_diff(DType ta, const void *a, DType tb, const void *b, size_t n);

// First index where the bits differ, or n.
size_t bulk_difference(DType t, const void *a, const void *b, size_t n);

// Element (i, j) of a matrix stands at p[i * stride[0] + j * stride[1]].
typedef struct BulkMat {
  DType t;
  void *p;
  size_t stride[2];
} BulkMat;

// d[m,n] = sum over k of a[m,k] * b[n,k], summed in double in the order of k,
// then rounded once to d's type; on all of the host's cores. False when
// memory ran out.
bool bulk_gemm(const BulkMat *a, const BulkMat *b, const BulkMat *d, size_t m,
               size_t n, size_t k);

// Elements [from, from + n) of row i, as doubles.
void bulk_row(const BulkMat *x, size_t i, size_t from, size_t n, double *out);

// Calls run(arg) on all of the host's cores at once, and waits for all.
void bulk_parallel(void (*run)(void *arg), void *arg);

#endif
