// saxpy for sm_80, by cutelua. Compile with --fmad=false.
extern "C" __global__ void __launch_bounds__(128)
saxpy(float a,
      const float *mX,
      float *__restrict__ mY,
      int n) {
  // golden_kernels.lua:11
  const int block_x = blockIdx.x;
  // golden_kernels.lua:12
  const int tid = threadIdx.x;
  const int i = block_x * 128 + tid;
  // golden_kernels.lua:13
  if (i < n) {
    // golden_kernels.lua:14
    mY[i] = fmaf(a, mX[i], mY[i]);
  }
}
