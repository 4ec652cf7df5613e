"""Checks a kernel of nvcc, NVRTC and clang against NumPy, without a GPU.

docs/producers.md has the versions that were tried. A compiler that is not
installed is left out. NVRTC is called by cutelua itself.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from trial import run

CUDA = r"""
extern "C" __global__ void row_sums(const float *x, float *y, int n) {
  extern __shared__ float part[];
  int t = threadIdx.x;
  float s = 0;
  for (int i = t; i < n; i += blockDim.x) s += x[blockIdx.x * n + i];
  part[t] = s;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d) part[t] += part[t + d];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = part[0];
}
"""

# clang without headers of CUDA: the kernel uses clang's names
CLANG = r"""
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define blockDim_x __nvvm_read_ptx_sreg_ntid_x()
extern "C" __global__ void row_sums(const float *x, float *y, int n) {
  extern __shared__ float part[];
  int t = __nvvm_read_ptx_sreg_tid_x(), row = __nvvm_read_ptx_sreg_ctaid_x();
  float s = 0;
  for (int i = t; i < n; i += blockDim_x) s += x[row * n + i];
  part[t] = s;
  __syncthreads();
  for (int d = blockDim_x / 2; d > 0; d /= 2) {
    if (t < d) part[t] += part[t + d];
    __syncthreads();
  }
  if (t == 0) y[row] = part[0];
}
"""

NVCC = ["nvcc", "-ptx", "-arch=sm_90a", "-lineinfo", "k.cu", "-o", "k.ptx"]
LLVM = ["clang", "-x", "cuda", "-nocudainc", "-nocudalib",
        "--cuda-device-only", "--cuda-gpu-arch=sm_80", "-O2",
        "-gline-tables-only", "-Wno-unknown-cuda-version", "-S", "k.cu",
        "-o", "k.ptx"]


def check(what, kernel):
    rng = np.random.default_rng(1)
    for m, n in (1, 1), (5, 77), (3, 300):
        x = rng.standard_normal((m, n)).astype("f4")
        run(f"{what} row_sums {m} x {n}", kernel,
            {"entry": "row_sums", "grid": m, "block": 128, "smem": 512,
             "args": ["x", "y", n]},
            {"x": x, "y": np.zeros(m, "f4")},
            {"y": x.astype("f8").sum(1).astype("f4")}, 1e-5)


def main(folder):
    source = os.path.join(folder, "k.cu")
    path = os.pathsep.join([os.environ["PATH"], "/usr/local/cuda/bin"])
    for words, text in (NVCC, CUDA), (LLVM, CLANG):
        program = shutil.which(words[0], path=path)
        if not program:
            print(f"{words[0]} is not installed", file=sys.stderr)
            continue
        with open(source, "w") as f:
            f.write(text)
        subprocess.run([program, *words[1:]], cwd=folder, check=True)
        check(words[0], os.path.join(folder, "k.ptx"))
    with open(source, "w") as f:
        f.write(CUDA)
    check("NVRTC", source)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(made)
# SPDX-License-Identifier: MIT
