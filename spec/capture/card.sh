#!/bin/sh
# card.sh BUILD: tries libcutecapture.so on a machine with a GPU, with a program
# of the CUDA runtime (needs nvcc) and with a kernel of Triton (needs python3
# with torch and triton). Prints a line for each; fails if one is wrong.
build=${1:-build}
here=$(pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# try NAME KERNEL COMMAND...: records a launch, and repeats it on the simulator
try() {
  name=$1 kernel=$2
  shift 2
  LD_PRELOAD="$here/$build/libcutecapture.so" CUTELUA_CAPTURE="$work/$name" \
    CUTELUA_CAPTURE_KERNEL="$kernel" CUTELUA_CAPTURE_AFTER=1 "$@" || bad=1
  if "$build/cutelua" run "$work/$name" && "$build/cutelua" check "$work/$name"
  then echo "ok      $name"
  else echo "FAILED  $name"; bad=1
  fi
}

cat >"$work/sum.cu" <<'END'
#include <cstdio>
__constant__ int weight[4];
__global__ void sums(int *out, const int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&out[i % 8], x[i] * weight[i & 3]);
}
int main() {
  int w[4] = {1, 2, 3, 4}, h[1000], got[8], *x, *out;
  for (int i = 0; i < 1000; i++) h[i] = i;
  cudaMalloc(&x, sizeof h);
  cudaMalloc(&out, sizeof got);
  cudaMemset(out, 0, sizeof got);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(weight, w, sizeof w);
  sums<<<8, 128>>>(out, x, 1000);
  cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  return cudaGetLastError() != cudaSuccess;
}
END
cat >"$work/graph.cu" <<'END'
#include <cstdio>
__global__ void scale(float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * a + 1;
}
int main() {
  float *x, got;
  cudaStream_t s;
  cudaGraph_t g;
  cudaGraphExec_t e;
  cudaMalloc(&x, 4000);
  cudaStreamCreate(&s);
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  cudaMemsetAsync(x, 0, 4000, s);
  scale<<<8, 128, 0, s>>>(x, 2, 1000);
  scale<<<8, 128, 0, s>>>(x, 3, 1000);
  cudaStreamEndCapture(s, &g);
  cudaGraphInstantiate(&e, g, 0);
  cudaGraphDestroy(g);
  for (int i = 0; i < 2; i++) cudaGraphLaunch(e, s);
  cudaMemcpyAsync(&got, x, 4, cudaMemcpyDeviceToHost, s);
  cudaStreamSynchronize(s);
  return cudaGetLastError() != cudaSuccess || got != 4;
}
END
cat >"$work/table.cu" <<'END'
__global__ void rows(float *const *table, float *out, int n) {
  int i = threadIdx.x;
  if (i < n) out[blockIdx.x * n + i] = 2 * table[blockIdx.x][i];
}
int main() {
  float *row[3], **table, *out, h[100];
  for (int i = 0; i < 100; i++) h[i] = i;
  for (int r = 0; r < 3; r++) {
    cudaMalloc(&row[r], 400);
    cudaMemcpy(row[r], h, 400, cudaMemcpyHostToDevice);
  }
  cudaMalloc(&table, sizeof row);
  cudaMalloc(&out, 1200);
  cudaMemcpy(table, row, sizeof row, cudaMemcpyHostToDevice);
  rows<<<3, 128>>>(table, out, 100);
  cudaDeviceSynchronize();
  return cudaGetLastError() != cudaSuccess;
}
END
if command -v nvcc >/dev/null; then
  for name in graph table; do
    nvcc -arch=compute_80 -o "$work/$name.out" "$work/$name.cu" &&
      CUTELUA_CAPTURE_POINTERS=1 try "$name" '*' "$work/$name.out"
  done
  for mode in none speed size; do
    nvcc -arch=compute_80 --compress-mode=$mode -o "$work/sum" "$work/sum.cu" &&
      try "runtime-$mode" '*sums*' "$work/sum"
  done
else
  echo "pending the CUDA runtime: needs nvcc"
fi

cat >"$work/add.py" <<'END'
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


x, y = torch.rand(1000, device="cuda"), torch.rand(1000, device="cuda")
out = torch.empty_like(x)
add[(8,)](x, y, out, 1000, BLOCK=128)
torch.cuda.synchronize()
assert torch.equal(out, x + y)
END
if python3 -c 'import torch, triton' 2>/dev/null; then
  TRITON_CACHE_DIR=$work/cache PYTORCH_NO_CUDA_MEMORY_CACHING=1 \
    try triton 'add' python3 "$work/add.py"
else
  echo "pending Triton: needs python3 with torch and triton"
fi
exit $bad
# SPDX-License-Identifier: MIT
