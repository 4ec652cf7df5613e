// rowsum for sm_80, by cutelua. Compile with --fmad=false.
static __device__ __forceinline__ float bf16_to_f32(unsigned short x) {
  return __uint_as_float((unsigned)x << 16);
}
static __device__ __forceinline__ int lane_id() {
  int r;
  asm("mov.u32 %0, %%laneid;" : "=r"(r));
  return r;
}
extern "C" __global__ void __launch_bounds__(128)
rowsum(const unsigned short *__restrict__ mX,
       float *__restrict__ mSum) {
  // golden_kernels.lua:24
  const int warp = threadIdx.x / 32;
  const int lane = lane_id();
  // golden_kernels.lua:25
  const int block_x = blockIdx.x;
  const int row = block_x * 4 + warp;
  // golden_kernels.lua:26
  const int i0 = row * 1024;
  // golden_kernels.lua:28
  float sum = 0.0f;
  for (int tile = 0; tile < 4; ++tile) {
    // golden_kernels.lua:30
    __align__(16) unsigned r[4];
    *(uint4 *)&r[0] = *(const uint4 *)(mX + (i0 + tile * 256 + lane * 8));
    // golden_kernels.lua:31
    const float sum_1 = sum + bf16_to_f32((unsigned short)r[0]);
    const float sum_2 = sum_1 + bf16_to_f32((unsigned short)(r[0] >> 16));
    const float sum_3 = sum_2 + bf16_to_f32((unsigned short)r[1]);
    const float sum_4 = sum_3 + bf16_to_f32((unsigned short)(r[1] >> 16));
    const float sum_5 = sum_4 + bf16_to_f32((unsigned short)r[2]);
    const float sum_6 = sum_5 + bf16_to_f32((unsigned short)(r[2] >> 16));
    const float sum_7 = sum_6 + bf16_to_f32((unsigned short)r[3]);
    // golden_kernels.lua:28
    sum = sum_7 + bf16_to_f32((unsigned short)(r[3] >> 16));
  }
  // golden_kernels.lua:35
  const float x0 = __shfl_xor_sync(0xffffffff, sum, 16);
  const float sum_8 = sum + x0;
  const float x1 = __shfl_xor_sync(0xffffffff, sum_8, 8);
  const float sum_9 = sum_8 + x1;
  const float x2 = __shfl_xor_sync(0xffffffff, sum_9, 4);
  const float sum_10 = sum_9 + x2;
  const float x3 = __shfl_xor_sync(0xffffffff, sum_10, 2);
  const float sum_11 = sum_10 + x3;
  const float x4 = __shfl_xor_sync(0xffffffff, sum_11, 1);
  const float sum_12 = sum_11 + x4;
  // golden_kernels.lua:38
  if (lane == 0) {
    mSum[row] = sum_12;
  }
}
