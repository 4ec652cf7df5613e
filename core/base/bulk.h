// Operations on whole arrays: filling, converting, comparing, and the CPU
// matrix product that results are compared with.
#ifndef CUTE_BULK_H
#define CUTE_BULK_H

#include "base/dtype.h"

// Host memory: `count` packed elements of type t. In Lua it is a buffer
// (MT_BUFFER in core/bind). Sub-byte types are packed, low bits first, so bytes
// = (count * bits + 7) / 8. A binding checks hostbuf_open before it accesses
// the memory.
typedef struct HostBuf HostBuf;
struct HostBuf {
  DType t;
  size_t count, bytes;
  void *p;       // first element, aligned to HOSTBUF_ALIGN; NULL if freed
  void *raw;     // allocation returned by base_realloc; NULL if another buffer
                 // owns the memory
  size_t mapped;  // bytes of a file's mapping at `raw` (platform_map), or 0
  bool closed;   // whether close() was called, so that calls reject the buffer
  bool kept;     // whether a CUDA graph copies the memory, so close() keeps it
  // Whether the whole buffer was written at least once (filled, copied to or
  // set from a string). In other buffers, the simulator reports reads of
  // undefined elements.
  bool defined;
  uint64_t serial;  // number of the buffer, in the order of creation
  bool readonly;  // whether the memory belongs to another library, which allows
                  // only reads
  // Counts the owners of the memory at `raw`; NULL: only this buffer owns it.
  struct Shared *shared;
  void (*unpin)(HostBuf *b);  // unpins pinned memory before it is freed
  // The GPU for which the memory is pinned, and the `epoch` of the GPU's
  // context at that time.
  struct Gpu *gpu;
  unsigned epoch;
};

#define HOSTBUF_ALIGN 256

static inline bool hostbuf_open(const HostBuf *b) { return !b->closed; }

// dst[at + i] = src[from + i] for i < n, converted from type s to type t with
// one rounding. The ranges must not overlap unless the types are equal.
void bulk_convert(DType t, void *dst, size_t at, DType s, const void *src,
                  size_t from, size_t n);

// Transposes a row-major matrix: dst[j * rows + i] = src[i * cols + j].
void bulk_transpose(DType t, void *dst, const void *src, size_t rows,
                    size_t cols);
void bulk_fill(DType t, void *p, size_t at, size_t n, uint64_t bits);

// Fills p with samples of a normal distribution. Every type gets the samples of
// the same f64 sequence, rounded to f32 and then to t if t is narrower.
void bulk_normal(DType t, void *p, size_t n, uint64_t seed, double mean,
                 double sd);

// Fills p with uniform numbers in [0, 1). Every float type gets the same
// sequence, truncated to the type's precision.
void bulk_uniform(DType t, void *p, size_t n, uint64_t seed);

// Fills p with uniform integers in lo .. hi.
void bulk_ints(DType t, void *p, size_t n, uint64_t seed, int64_t lo,
               int64_t hi);

// Clears the `bits` lowest bits of n 32-bit words. With 13 bits, an f32 becomes
// the tf32 that a tensor core reads.
void bulk_cut(void *p, size_t n, int bits);

// The elementwise difference of a and b. A NaN on either side makes every
// measure infinite, so that no tolerance accepts it.
typedef struct BulkDiff {
  double max_abs;    // max |a - b|
  double max_rel;    // max |a - b| / |b|
  double max_scaled; // max |a - b| / max |b|, over all elements
  double frobenius;  // |a - b| / |b| in the Frobenius norm
  size_t worst;      // index of the difference max_abs, or of the first NaN
  size_t nans;
  size_t count;      // elements compared
  double sum_d, sum_b, max_b;  // sums of squares of a - b and of b; largest |b|
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
// double in the order of k, then rounds once to d's type. Returns false if
// memory is exhausted.
bool bulk_gemm(const BulkMat *a, const BulkMat *b, const BulkMat *d, size_t m,
               size_t n, size_t k);

// Reads elements [from, from + n) of row i as doubles.
void bulk_row(const BulkMat *x, size_t i, size_t from, size_t n, double *out);

// Calls run(arg) on all host cores at once and waits for all calls.
void bulk_parallel(void (*run)(void *arg), void *arg);

#endif
// SPDX-License-Identifier: MIT
