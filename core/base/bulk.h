// Operations on arrays in host memory: filling, converting, comparing, and the
// reference matrix product on the CPU.
#ifndef CUTE_BULK_H
#define CUTE_BULK_H

#include "base/dtype.h"

// Host memory: `count` packed elements of type t. In Lua it is a buffer
// (MT_BUFFER in core/bind). Elements below 8 bits are packed, low bits first,
// so bytes = (count * bits + 7) / 8. Call hostbuf_open before accessing the
// memory.
typedef struct HostBuf HostBuf;
struct HostBuf {
  DType t;
  size_t count, bytes;
  void *p;       // first element, aligned to HOSTBUF_ALIGN; NULL if freed
  void *raw;     // allocation returned by base_realloc; NULL if another buffer
                 // owns it
  // number of bytes if `raw` is the mapping of a file (platform_map), else 0
  size_t mapped;
  bool closed;   // whether close() was called; calls reject a closed buffer
  // whether a CUDA graph accesses the memory, so that close() must not free it
  bool kept;
  // Whether the whole buffer was written at least once (filled, copied to, or
  // set from a string). If not, the simulator reports reads of undefined
  // elements.
  bool defined;
  uint64_t serial;  // number of the buffer, in the order of creation
  bool readonly;  // whether another library owns the memory and allows only
                  // reads
  // counts the owners of the memory at `raw`; NULL: this buffer is the only one
  struct Shared *shared;
  void (*unpin)(HostBuf *b);  // unpins pinned memory before it is freed
  // The GPU for which the memory is pinned, and this GPU's `epoch` at that
  // time. A later epoch means that the CUDA context was replaced.
  struct Gpu *gpu;
  unsigned epoch;
};

#define HOSTBUF_ALIGN 256

static inline bool hostbuf_open(const HostBuf *b) { return !b->closed; }

// Sets dst[at + i], of type t, to src[from + i], of type s, for i < n. Rounds
// once. The ranges must not overlap unless the types are equal.
void bulk_convert(DType t, void *dst, size_t at, DType s, const void *src,
                  size_t from, size_t n);

// Transposes a row-major matrix: dst[j * rows + i] = src[i * cols + j].
void bulk_transpose(DType t, void *dst, const void *src, size_t rows,
                    size_t cols);
void bulk_fill(DType t, void *p, size_t at, size_t n, uint64_t bits);

// Fills p with samples of a normal distribution. The samples are the same for
// every type: f64 numbers, rounded to f32 and then to t if t is narrower.
void bulk_normal(DType t, void *p, size_t n, uint64_t seed, double mean,
                 double sd);

// Fills p with uniform numbers in [0, 1). The numbers are the same for every
// float type, truncated to the type's precision.
void bulk_uniform(DType t, void *p, size_t n, uint64_t seed);

// Fills p with uniform integers in lo .. hi.
void bulk_ints(DType t, void *p, size_t n, uint64_t seed, int64_t lo,
               int64_t hi);

// Clears the `bits` lowest bits of n 32-bit words. With 13 bits, an f32 becomes
// the tf32 that a tensor core reads.
void bulk_cut(void *p, size_t n, int bits);

// The elementwise difference of a and b. A NaN in a or b makes every measure
// infinite, so that no tolerance accepts it.
typedef struct BulkDiff {
  double max_abs;    // max |a - b|
  double max_rel;    // max |a - b| / |b|
  double max_scaled; // max |a - b| / max |b|, over all elements
  double frobenius;  // |a - b| / |b| in the Frobenius norm
  size_t worst;      // index of the difference max_abs, or of the first NaN
  size_t nans;
  size_t count;      // elements compared
  // sum_d, sum_b: sums of the squares of a - b and of b. max_b: largest |b|.
  double sum_d, sum_b, max_b;
} BulkDiff;
BulkDiff bulk_diff(DType ta, const void *a, DType tb, const void *b, size_t n);

// Returns the first index at which the bits of a and b differ, or n if none
// does.
size_t bulk_difference(DType t, const void *a, const void *b, size_t n);

// A strided matrix: element (i, j) is p[i * stride[0] + j * stride[1]].
typedef struct BulkMat {
  DType t;
  void *p;
  size_t stride[2];
} BulkMat;

// Computes d[m,n] = sum over k of a[m,k] * b[n,k] on all host cores. Adds in
// double precision in the order of k, then rounds once to d's type. Returns
// false if memory is exhausted.
bool bulk_gemm(const BulkMat *a, const BulkMat *b, const BulkMat *d, size_t m,
               size_t n, size_t k);

// Converts elements [from, from + n) of row i to doubles.
void bulk_row(const BulkMat *x, size_t i, size_t from, size_t n, double *out);

// Calls run(arg) once on each host core, all at the same time. Returns when all
// calls have returned.
void bulk_parallel(void (*run)(void *arg), void *arg);

#endif
// SPDX-License-Identifier: MIT
