// saxpy for sm_80, by cutelua. Compile with --fmad=false.
extern "C" __global__ void __launch_bounds__(128)
saxpy(float a,
      const float *__restrict__ mX,
      float *__restrict__ mY,
      int n) {
  // emit_spec.lua:41
  const int block_x = blockIdx.x;
  // emit_spec.lua:42
  const int tid = threadIdx.x;
  const int i = block_x * 128 + tid;
  // emit_spec.lua:43
  if (i < n) {
    // emit_spec.lua:44
    mY[i] = fmaf(a, mX[i], mY[i]);
  }
}
