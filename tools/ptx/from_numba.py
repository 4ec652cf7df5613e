"""Checks kernels of Numba against NumPy, without a GPU (docs/producers.md).

    python3 -m venv DIR
    DIR/bin/pip install numba-cuda==0.30.4 numba==0.68.1 numpy==2.4.6
    DIR/bin/python tools/ptx/from_numba.py
"""
import os
import tempfile

import numpy as np
from numba import cuda, float32, int32, void

from trial import array, run

CC = (9, 0)


def scale(y, x, a):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


def transpose(y, x):
    tile = cuda.shared.array((16, 17), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * 16 + ty, cuda.blockIdx.x * 16 + tx
    if row < x.shape[0] and col < x.shape[1]:
        tile[ty, tx] = x[row, col]
    cuda.syncthreads()
    row, col = cuda.blockIdx.x * 16 + ty, cuda.blockIdx.y * 16 + tx
    if row < y.shape[0] and col < y.shape[1]:
        y[row, col] = tile[tx, ty]


def row_sums(y, x):
    part = cuda.shared.array(0, float32)  # dynamic: 4 bytes for each thread
    t, row = cuda.threadIdx.x, cuda.blockIdx.x
    s = float32(0)
    for i in range(t, x.shape[1], cuda.blockDim.x):
        s += x[row, i]
    part[t] = s
    cuda.syncthreads()
    d = cuda.blockDim.x // 2
    while d > 0:
        if t < d:
            part[t] += part[t + d]
        cuda.syncthreads()
        d //= 2
    if t == 0:
        y[row] = part[0]


def histogram(counts, x):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(counts, x[i], 1)


def main(folder):
    rng = np.random.default_rng(1)

    def ptx(kernel, *types):
        text, _ = cuda.compile_ptx(kernel, void(*types), cc=CC, lineinfo=True)
        path = os.path.join(folder, kernel.__name__ + ".ptx")
        with open(path, "w") as f:
            f.write(text)
        return path

    path = ptx(scale, float32[::1], float32[::1], float32)
    for n in 1, 127, 1000, 1025:
        x, y = rng.standard_normal((2, n)).astype("f4")
        run(f"numba scale {n}", path,
            {"grid": -(-n // 128), "block": 128,
             "args": array(("y", y)) + array(("x", x)) + [0.5]},
            {"x": x, "y": y}, {"y": np.float32(0.5) * x + y}, 1e-6)
    path = ptx(transpose, float32[:, ::1], float32[:, ::1])
    for m, n in (1, 1), (17, 33), (50, 31):
        x = rng.standard_normal((m, n)).astype("f4")
        y = np.zeros((n, m), "f4")
        run(f"numba transpose {m} x {n}", path,
            {"grid": [-(-n // 16), -(-m // 16)], "block": [16, 16],
             "args": array(("y", y)) + array(("x", x))},
            {"x": x, "y": y}, {"y": x.T.copy()}, 0)
    path = ptx(row_sums, float32[::1], float32[:, ::1])
    for m, n in (1, 1), (5, 77), (3, 300):
        x = rng.standard_normal((m, n)).astype("f4")
        y = np.zeros(m, "f4")
        run(f"numba row_sums {m} x {n}", path,
            {"grid": m, "block": 128, "smem": 512,
             "args": array(("y", y)) + array(("x", x))},
            {"x": x, "y": y}, {"y": x.astype("f8").sum(1).astype("f4")}, 1e-5)
    path = ptx(histogram, int32[::1], int32[::1])
    x = rng.integers(0, 7, 501).astype("i4")
    counts = np.zeros(7, "i4")
    run("numba histogram 501", path,
        {"grid": 4, "block": 128,
         "args": array(("counts", counts)) + array(("x", x))},
        {"x": x, "counts": counts},
        {"counts": np.bincount(x, minlength=7).astype("i4")}, 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(made)
# SPDX-License-Identifier: MIT
