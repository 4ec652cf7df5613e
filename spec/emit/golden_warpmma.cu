// warpmma for sm_80, by cutelua. Compile with --fmad=false.
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_cg16(
    unsigned dst, const void *src) {
  asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %3], 16;"
      :: "r"(dst), "l"(src), "n"(to), "n"(from) : "memory");
}
static __device__ __forceinline__ void SM80_16x8x16_F32BF16BF16F32_TN(
    float *d, const unsigned *a, const unsigned *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <int at = 0>  // bytes beyond src
static __device__ __forceinline__ void SM75_U32x4_LDSM_N(
    unsigned *r, unsigned src) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
      "{%0, %1, %2, %3}, [%4 + %5];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(src), "n"(at)
      : "memory");
}
extern "C" __global__ void __launch_bounds__(32)
warpmma(const unsigned short *__restrict__ mA,
        const unsigned short *__restrict__ mB,
        float *__restrict__ mC) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const unsigned smem_addr = (unsigned)__cvta_generic_to_shared(smem);
  const unsigned sA_addr = smem_addr;
  // golden_kernels.lua:54
  const int tid = threadIdx.x;
  // golden_kernels.lua:58
  const int i0 = (tid & 1) * 8 + (tid >> 1) * 16;
  cp_async_cg16(sA_addr + i0 * 2u, mA + i0);
  // golden_kernels.lua:59
  asm volatile("cp.async.commit_group;" ::: "memory");
  // golden_kernels.lua:60
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  // golden_kernels.lua:61
  __syncthreads();
  // golden_kernels.lua:63
  const int i1 = tid >> 2;
  const int i2 = (tid & 3) * 2;
  const int i3 = i2 + i1 * 8;
  // golden_kernels.lua:64
  unsigned tCrA[4];
  // golden_kernels.lua:65
  const int i4 = i2 + i1 * 16;
  // golden_kernels.lua:66
  unsigned tCrB[2];
  // golden_kernels.lua:67
  __align__(16) float tCrC[4];
  // golden_kernels.lua:69
  SM75_U32x4_LDSM_N(&tCrA[0], sA_addr + ((tid & 15) * 16 + (tid >> 4) * 8) * 2u);
  // golden_kernels.lua:70
  tCrB[0] = *(const unsigned *)(mB + i4);
  tCrB[1] = *(const unsigned *)(mB + i4 + 8);
  // golden_kernels.lua:71
  #pragma unroll
  for (int j = 0; j < 4; ++j) tCrC[j] = 0.0f;
  // golden_kernels.lua:72
  SM80_16x8x16_F32BF16BF16F32_TN(&tCrC[0], &tCrA[0], &tCrB[0]);
  // golden_kernels.lua:73
  *(float2 *)(mC + i3) = *(const float2 *)&tCrC[0];
  *(float2 *)(mC + i3 + 64) = *(const float2 *)&tCrC[2];
}
