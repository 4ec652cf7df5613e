// Helper functions of emitted kernels for memory, threads and barriers, in
// blocks like those of prelude.cu.

// ---- atomics and places ----

//: atomic_add_f16
static __device__ __forceinline__ unsigned short atomic_add_f16(
    unsigned short *p, unsigned short x) {
  unsigned short r;
  asm volatile("atom.add.noftz.f16 %0, [%1], %2;"
      : "=h"(r) : "l"(p), "h"(x) : "memory");
  return r;
}

//: atomic_add_bf16
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ unsigned short atomic_add_bf16(
    unsigned short *p, unsigned short x) {
  unsigned short r;
  asm volatile("atom.add.noftz.bf16 %0, [%1], %2;"
      : "=h"(r) : "l"(p), "h"(x) : "memory");
  return r;
}
#endif

//: atomic_min
static __device__ __forceinline__ float atomic_min(float *p, float x) {
  int old = *(volatile int *)p, seen;
  do {
    seen = old;
    old = atomicCAS((int *)p, seen,
        __float_as_int(fminf(__int_as_float(seen), x)));
  } while (old != seen);
  return __int_as_float(old);
}

//: atomic_max
static __device__ __forceinline__ float atomic_max(float *p, float x) {
  int old = *(volatile int *)p, seen;
  do {
    seen = old;
    old = atomicCAS((int *)p, seen,
        __float_as_int(fmaxf(__int_as_float(seen), x)));
  } while (old != seen);
  return __int_as_float(old);
}

//: lane_id
static __device__ __forceinline__ int lane_id() {
  int r;
  asm("mov.u32 %0, %%laneid;" : "=r"(r));
  return r;
}

//: warp_id
static __device__ __forceinline__ int warp_id() {
  return (threadIdx.x + blockDim.x *
      (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
}

//: sm_id
static __device__ __forceinline__ int sm_id() {
  int r;
  asm("mov.u32 %0, %%smid;" : "=r"(r));
  return r;
}

// ---- what comes to L2 with a load, and what stays there ----

//: ld_l2
template <int bytes, typename T>  // so many of memory come to L2 with it
static __device__ __forceinline__ T ld_l2(const T *p) {
  T x;
  if constexpr (sizeof(T) == 16) {
    uint4 &v = *(uint4 *)&x;
    asm volatile("ld.global.L2::%5B.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(p), "n"(bytes) : "memory");
  } else if constexpr (sizeof(T) == 8) {
    uint2 &v = *(uint2 *)&x;
    asm volatile("ld.global.L2::%3B.v2.u32 {%0, %1}, [%2];"
        : "=r"(v.x), "=r"(v.y) : "l"(p), "n"(bytes) : "memory");
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("ld.global.L2::%2B.u32 %0, [%1];"
        : "=r"(*(unsigned *)&x) : "l"(p), "n"(bytes) : "memory");
  } else if constexpr (sizeof(T) == 2) {
    asm volatile("ld.global.L2::%2B.u16 %0, [%1];"
        : "=h"(*(unsigned short *)&x) : "l"(p), "n"(bytes) : "memory");
  } else {
    unsigned v;
    asm volatile("ld.global.L2::%2B.u8 %0, [%1];"
        : "=r"(v) : "l"(p), "n"(bytes) : "memory");
    *(unsigned char *)&x = (unsigned char)v;
  }
  return x;
}

//: l2_policy
// last: whether L2 evicts the lines last, not first
static __device__ __forceinline__ unsigned long long l2_policy(bool last) {
  unsigned long long r;
  if (last)
    asm("createpolicy.fractional.L2::evict_last.b64 %0;" : "=l"(r));
  else
    asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(r));
  return r;
}

//: ld_policy
template <bool last, typename T>
static __device__ __forceinline__ T ld_policy(const T *p) {
  T x;
  if constexpr (sizeof(T) == 16) {
    uint4 &v = *(uint4 *)&x;
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(p), "l"(l2_policy(last)) : "memory");
  } else if constexpr (sizeof(T) == 8) {
    uint2 &v = *(uint2 *)&x;
    asm volatile("ld.global.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
        : "=r"(v.x), "=r"(v.y) : "l"(p), "l"(l2_policy(last)) : "memory");
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;"
        : "=r"(*(unsigned *)&x) : "l"(p), "l"(l2_policy(last)) : "memory");
  } else if constexpr (sizeof(T) == 2) {
    asm volatile("ld.global.L2::cache_hint.u16 %0, [%1], %2;"
        : "=h"(*(unsigned short *)&x) : "l"(p), "l"(l2_policy(last))
        : "memory");
  } else {
    unsigned v;
    asm volatile("ld.global.L2::cache_hint.u8 %0, [%1], %2;"
        : "=r"(v) : "l"(p), "l"(l2_policy(last)) : "memory");
    *(unsigned char *)&x = (unsigned char)v;
  }
  return x;
}

// ---- cp.async ----

//: cp_async_ca4
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca4(
    unsigned dst, const void *src) {
  asm volatile("cp.async.ca.shared.global [%0 + %2], [%1 + %3], 4;"
      :: "r"(dst), "l"(src), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca8
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca8(
    unsigned dst, const void *src) {
  asm volatile("cp.async.ca.shared.global [%0 + %2], [%1 + %3], 8;"
      :: "r"(dst), "l"(src), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca16
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca16(
    unsigned dst, const void *src) {
  asm volatile("cp.async.ca.shared.global [%0 + %2], [%1 + %3], 16;"
      :: "r"(dst), "l"(src), "n"(to), "n"(from) : "memory");
}

//: cp_async_cg16
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_cg16(
    unsigned dst, const void *src) {
  asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %3], 16;"
      :: "r"(dst), "l"(src), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca4_zfill
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca4_zfill(
    unsigned dst, const void *src, bool p) {
  asm volatile("cp.async.ca.shared.global [%0 + %3], [%1 + %4], 4, %2;"
      :: "r"(dst), "l"(src), "r"(p ? 4 : 0), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca8_zfill
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca8_zfill(
    unsigned dst, const void *src, bool p) {
  asm volatile("cp.async.ca.shared.global [%0 + %3], [%1 + %4], 8, %2;"
      :: "r"(dst), "l"(src), "r"(p ? 8 : 0), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca16_zfill
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca16_zfill(
    unsigned dst, const void *src, bool p) {
  asm volatile("cp.async.ca.shared.global [%0 + %3], [%1 + %4], 16, %2;"
      :: "r"(dst), "l"(src), "r"(p ? 16 : 0), "n"(to), "n"(from) : "memory");
}

//: cp_async_cg16_zfill
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_cg16_zfill(
    unsigned dst, const void *src, bool p) {
  asm volatile("cp.async.cg.shared.global [%0 + %3], [%1 + %4], 16, %2;"
      :: "r"(dst), "l"(src), "r"(p ? 16 : 0), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca_l2
template <int l2, int n, int to = 0, int from = 0>  // l2: bytes that come there
static __device__ __forceinline__ void cp_async_ca_l2(
    unsigned dst, const void *src, bool p = true) {
  asm volatile("cp.async.ca.shared.global.L2::%5B [%0 + %3], [%1 + %4], %6, %2;"
      :: "r"(dst), "l"(src), "r"(p ? n : 0), "n"(to), "n"(from), "n"(l2), "n"(n)
      : "memory");
}

//: cp_async_cg_l2
template <int l2, int n, int to = 0, int from = 0>  // l2: bytes that come there
static __device__ __forceinline__ void cp_async_cg_l2(
    unsigned dst, const void *src, bool p = true) {
  asm volatile("cp.async.cg.shared.global.L2::%5B [%0 + %3], [%1 + %4], %6, %2;"
      :: "r"(dst), "l"(src), "r"(p ? n : 0), "n"(to), "n"(from), "n"(l2), "n"(n)
      : "memory");
}

// ---- mbarriers ----

//: map_copy
static __device__ __forceinline__ void map_copy(void *dst, const void *map) {
  for (int k = 0; k < 16; ++k)
    ((unsigned long long *)dst)[k] = ((const unsigned long long *)map)[k];
}

//: map_address
#if __CUDA_ARCH__ == 900 || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
static __device__ __forceinline__ void map_address(
    void *map, const void *tensor) {
  asm volatile("tensormap.replace.tile.global_address.b1024.b64 [%0], %1;"
      :: "l"(map), "l"(tensor) : "memory");
}
#endif

//: map_extent
#if __CUDA_ARCH__ == 900 || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
template <int mode>
static __device__ __forceinline__ void map_extent(void *map, unsigned n) {
  asm volatile("tensormap.replace.tile.global_dim.b1024.b32 [%0], %2, %1;"
      :: "l"(map), "r"(n), "n"(mode) : "memory");
}
#endif

//: map_stride
#if __CUDA_ARCH__ == 900 || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
template <int mode>
static __device__ __forceinline__ void map_stride(
    void *map, unsigned long long bytes) {
  asm volatile("tensormap.replace.tile.global_stride.b1024.b64 [%0], %2, %1;"
      :: "l"(map), "l"(bytes), "n"(mode - 1) : "memory");
}
#endif

//: map_acquire
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void map_acquire(const void *map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;"
      :: "l"(map) : "memory");
}
#endif

//: map_publish
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void map_publish(
    void *dst, const void *src) {
  unsigned long long from;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(from) : "l"(src));
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta"
      ".tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
      :: "l"(dst), "r"((unsigned)from) : "memory");
}
#endif

//: mbar_init
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mbar_init(
    unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
      :: "r"(bar), "r"(count) : "memory");
}
#endif

//: mbar_inval
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mbar_inval(unsigned bar) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];"
      :: "r"(bar) : "memory");
}
#endif

//: mbar_cp_async
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mbar_cp_async(unsigned bar) {
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];"
      :: "r"(bar) : "memory");
}
#endif

//: mbar_cp_async_noinc
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mbar_cp_async_noinc(unsigned bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
      :: "r"(bar) : "memory");
}
#endif

//: map_shared
// Where another CTA of the cluster has what this one has at p.
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void *map_shared(const void *p, int rank) {
  void *r;
  asm("mapa.u64 %0, %1, %2;" : "=l"(r) : "l"(p), "r"(rank));
  return r;
}
#endif

// ---- tensor memory ----

//: tmem_alloc
#if __CUDA_ARCH__ >= 1000
template <int group>
static __device__ __forceinline__ void tmem_alloc(
    unsigned to, unsigned columns) {
  asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 "
               "[%0], %1;" :: "r"(to), "r"(columns), "n"(group) : "memory");
}
#endif

//: tmem_dealloc
#if __CUDA_ARCH__ >= 1000
template <int group>
static __device__ __forceinline__ void tmem_dealloc(
    unsigned tmem, unsigned columns) {
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;"
      :: "r"(tmem), "r"(columns), "n"(group) : "memory");
}
#endif

//: tmem_shift
#if __CUDA_ARCH__ >= 1000
template <int group>
static __device__ __forceinline__ void tmem_shift(unsigned address) {
  asm volatile("tcgen05.shift.cta_group::%1.down [%0];"
      :: "r"(address), "n"(group) : "memory");
}
#endif

//: umma_commit
#if __CUDA_ARCH__ >= 1000
template <int group>
static __device__ __forceinline__ void umma_commit(unsigned bar) {
  asm volatile("tcgen05.commit.cta_group::%1.mbarrier::arrive::one"
               ".shared::cluster.b64 [%0];"
      :: "r"(bar), "n"(group) : "memory");
}
#endif

//: umma_commit_multicast
// Arrives at the mbarriers at the same place in all CTAs of `ctas`.
#if __CUDA_ARCH__ >= 1000
template <int group>
static __device__ __forceinline__ void umma_commit_multicast(
    unsigned bar, unsigned ctas) {
  asm volatile("tcgen05.commit.cta_group::%2.mbarrier::arrive::one"
               ".shared::cluster.multicast::cluster.b64 [%0], %1;"
      :: "r"(bar), "h"((unsigned short)ctas), "n"(group) : "memory");
}
#endif

// ---- warpgroups ----

//: smem_desc
// What lies at a shared address as wgmma and tcgen05.mma read it: 16 bytes are
// one.
static __device__ __forceinline__ unsigned long long smem_desc(
    unsigned addr, unsigned long long bits) {
  return bits | (addr & 0x3ffffu) >> 4;
}
