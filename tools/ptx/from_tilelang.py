"""Checks kernels of tilelang against NumPy, without a GPU.

    python3 -m venv DIR
    DIR/bin/pip install tilelang==0.1.15 numpy==2.4.6
    DIR/bin/python tools/ptx/from_tilelang.py

tilelang writes CUDA C; nvcc makes PTX of it with tilelang's own headers.
"""
import os
import shutil
import subprocess
import tempfile

import numpy as np
import tilelang
import tilelang.language as T
from tilelang import tvm

from trial import run



def target(arch):
    return tvm.target.Target({"kind": "cuda", "arch": arch})


def axpy(n):
    @T.prim_func
    def axpy(x: T.Tensor((n,), "float32"), y: T.Tensor((n,), "float32"),
             z: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as b:
            for i in T.Parallel(128):
                z[b * 128 + i] = x[b * 128 + i] * 2.0 + y[b * 128 + i]
    return axpy


def product(m, n, k):
    @T.prim_func
    def product(a: T.Tensor((m, k), "float16"), b: T.Tensor((k, n), "float16"),
                c: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=128) as (
                bx, by):
            sa = T.alloc_shared((64, 32), "float16")
            sb = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for q in T.Pipelined(T.ceildiv(k, 32), num_stages=2):
                T.copy(a[by * 64, q * 32], sa)
                T.copy(b[q * 32, bx * 64], sb)
                T.gemm(sa, sb, acc)
            T.copy(acc, c[by * 64, bx * 64])
    return product


def ptx(folder, kernel, arch="sm_90a"):
    """Writes the PTX of a kernel, and returns the file's path."""
    with target(arch):  # lower() needs the target as context, too
        text = tilelang.lower(kernel, target=target(arch)).kernel_source
    root = os.path.dirname(tilelang.__file__)
    with open(os.path.join(folder, "k.cu"), "w") as f:
        f.write(text)
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    subprocess.run(
        [nvcc, "-ptx", "-std=c++17", "-arch=" + arch, "-lineinfo",
         "--expt-relaxed-constexpr", "-diag-suppress=20012,1444",
         "-I" + os.path.join(root, "src"),
         "-I" + os.path.join(root, "3rdparty", "cutlass", "include"),
         "k.cu", "-o", "k.ptx"], cwd=folder, check=True)
    return os.path.join(folder, "k.ptx")


def main(folder):
    rng = np.random.default_rng(1)
    for n in 1, 127, 1000:
        x, y = rng.standard_normal((2, n)).astype("f4")
        run(f"tilelang axpy {n}", ptx(folder, axpy(n)),
            {"grid": -(-n // 128), "block": 128, "args": ["x", "y", "z"]},
            {"x": x, "y": y, "z": np.zeros(n, "f4")}, {"z": 2 * x + y}, 1e-6)
    for m, n, k in (1, 8, 8), (33, 72, 40), (100, 72, 136):
        a = rng.standard_normal((m, k)).astype("f2")
        b = rng.standard_normal((k, n)).astype("f2")
        want = (a.astype("f8") @ b.astype("f8")).astype("f4")
        run(f"tilelang product {m} x {n} x {k}",
            ptx(folder, product(m, n, k), "sm_80"),
            {"grid": [-(-n // 64), -(-m // 64)], "block": 128, "smem": 16384,
             "args": ["a", "b", "c"]},
            {"a": a, "b": b, "c": np.zeros((m, n), "f4")}, {"c": want}, 1e-5)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(made)
# SPDX-License-Identifier: MIT
