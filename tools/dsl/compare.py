#!/usr/bin/env python3
"""Compares kernels of the CuTe DSL, run by cutelua, with NumPy.

    python3 tools/dsl/compare.py [--cutelua build/cutelua] [--seeds N] [NAME...]

Compiles the kernels of kernels.py, runs each with several sizes and seeds, and
prints a table. Then plants faults in the PTX. Exits with 1 if a result is wrong,
a run of a correct kernel has a report, or less than 98 % of the faults are
reported at their line.
"""
# SPDX-License-Identifier: MIT
import glob
import os
import sys
import warnings

import numpy as np

import faults

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "ptx"))
import seeds


def normal(rng, *shape, dtype=np.float16):
    return rng.standard_normal(shape).astype(dtype)


def add(rng, n):
    x, y = normal(rng, n, dtype=np.float32), normal(rng, n, dtype=np.float32)
    return ({"x": x, "y": y, "out": np.zeros_like(x)}, ["x", "y", "out"],
            {"out": x.astype(float) + y})


def row_sum(rng, m, n):
    x = normal(rng, m, n)
    return ({"x": x, "out": np.zeros(m, np.float32)}, ["x", "out", 0.5],
            {"out": x.astype(float).sum(1) / 2})


def attention(rng, heads, m, n):
    q, k, v = (normal(rng, heads, r, 64) for r in (m, n, n))
    s = q.astype(float) @ k.astype(float).transpose(0, 2, 1) / 8
    p = np.exp(s - s.max(2, keepdims=True))
    want = p / p.sum(2, keepdims=True) @ v.astype(float)
    return ({"q": q, "k": k, "v": v, "out": np.zeros(q.shape, np.float32)},
            ["q", "k", "v", "out", 0.125], {"out": want})


def gemm80(rng, m, n, k, *more):
    a, b = normal(rng, m, k), normal(rng, n, k)
    return ({"a": a, "b": b, "c": np.zeros((m, n), np.float32)},
            ["a", "b", "c", *more], {"c": a.astype(float) @ b.astype(float).T})


def blend(rng, n):
    x, y = normal(rng, n), normal(rng, n)
    want = 0.25 * x.astype(float) + 0.75 * y.astype(float)
    return ({"x": x, "y": y, "out": np.zeros_like(x)}, ["x", "y", "out", 0.25],
            {"out": want})


def rms_norm(rng, m, n):
    x, w = normal(rng, m, n), normal(rng, n)
    wide = x.astype(float)
    want = wide / np.sqrt((wide ** 2).mean(1, keepdims=True) + 1e-5) * w
    return ({"x": x, "w": w, "out": np.zeros_like(x)}, ["x", "w", "out"],
            {"out": want})


def gemm80_relu(rng, m, n, k):
    a, b = normal(rng, m, k), normal(rng, n, k)
    bias = normal(rng, n, dtype=np.float32)
    want = a.astype(float) @ b.astype(float).T + bias
    return ({"a": a, "b": b, "bias": bias, "c": np.zeros((m, n), np.float16)},
            ["a", "b", "bias", "c"], {"c": np.maximum(want, 0)})


def smooth(rng, n, steps):
    x = normal(rng, n, dtype=np.float32)
    want = x.astype(float)
    for _ in range(2 * steps):
        wide = np.pad(want, 1, "edge")
        want = (wide[:-2] + wide[1:-1] + wide[2:]) / 3
    return ({"x": x, "y": np.zeros_like(x)}, ["x", "y", steps], {"x": want})


def tree(rng, n):
    x = normal(rng, n, dtype=np.float32)
    return ({"x": x, "out": np.zeros(1, np.float32)}, ["x", "out"],
            {"out": x.astype(float).sum()})


# The values of e2m1 by their bits.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])


def nvfp4(rng, rows, k):
    """Returns numbers, two in a byte, their factors, and the products of both.

    128 rows with 4 factors each are 512 bytes: row r % 32, then r // 32.
    """
    codes = rng.integers(0, 16, (rows, k), np.uint8)
    factors = rng.integers(0x30, 0x40, (rows, k // 16), np.uint8)  # e4m3
    exponent, fraction = factors // 8, factors % 8
    scale = 2.0 ** (exponent.astype(int) - 7) * (1 + fraction / 8)
    stored = np.zeros((-(-rows // 128), -(-k // 64), 32, 4, 4), np.uint8)
    r, j = np.indices(factors.shape)
    stored[r // 128, j // 4, r % 32, r // 32 % 4, j % 4] = factors
    return (codes[:, 0::2] | codes[:, 1::2] << 4, stored.reshape(-1),
            E2M1[codes] * np.repeat(scale, 16, 1))


def gemm_nvfp4(rng, m, n, k):
    a, fa, x = nvfp4(rng, m, k)
    b, fb, y = nvfp4(rng, n, k)
    return ({"a": a, "b": b, "fa": fa, "fb": fb,
             "c": np.zeros((m, n), np.float32)},
            ["a", "b", "fa", "fb", "c"], {"c": x @ y.T})


# For each kernel: function that makes a problem, sizes, largest relative error.
# A problem has tensors by name, arguments, and results in f64 by name.
CASES = {
    "add": (add, [(1,), (127,), (1000,)], 1e-7),
    "row_sum": (row_sum, [(1, 1), (5, 77), (3, 1001)], 1e-6),
    "attention": (attention, [(1, 1, 1), (2, 7, 13), (1, 33, 65)], 1e-6),
    "gemm80": (gemm80, [(1, 1, 32), (65, 63, 64), (130, 70, 160)], 1e-6),
    "gemm90": (gemm80, [(1, 1, 8, 1), (129, 65, 72, 3), (200, 100, 136, 2),
                        (300, 130, 320, 5)], 1e-6),
    "blend": (blend, [(8,), (1000,), (2056,)], 1e-3),
    "rms_norm": (rms_norm, [(1, 8), (3, 1000), (5, 1024)], 1e-3),
    "gemm80_relu": (gemm80_relu, [(1, 8, 32), (65, 72, 64), (130, 136, 160)],
                    1e-3),
    "smooth": (smooth, [(1, 1), (129, 2), (1000, 3)], 1e-6),
    "tree": (tree, [(1,), (2,), (1000,)], 1e-6),
    "flash80": (attention, [(1, 1, 1), (2, 65, 63), (1, 130, 200)], 1e-3),
    "flash90": (attention, [(1, 1, 1), (2, 65, 63), (1, 130, 200)], 1e-3),
    "gemm100": (gemm80, [(1, 1, 8), (129, 65, 72), (200, 100, 136),
                         (300, 130, 320)], 1e-6),
    "gemm100_nvfp4": (gemm_nvfp4, [(1, 1, 32), (129, 65, 96), (200, 100, 544),
                                   (300, 260, 1056)], 1e-6),
}

# Kernels for another target than sm_90a.
ARCHS = {"gemm100": "sm_100a", "gemm100_nvfp4": "sm_100a"}


class Dsl(seeds.Compiler):
    def compile_all(self, folder, names):
        os.environ.update(CUTE_DSL_ARCH="sm_90a", CUTE_DSL_KEEP="ptx,ir",
                          CUTE_DSL_LINEINFO="1", CUTE_DSL_DUMP_DIR=folder,
                          CUTE_DSL_NO_CACHE="1")
        warnings.simplefilter("ignore")
        import blackwell
        import flash
        import kernels
        import more
        made = {}
        for name, function in {**kernels.COMPILE, **more.COMPILE,
                               **flash.COMPILE, **blackwell.COMPILE}.items():
            if not names or name in names:
                function()
                made[name], = glob.glob(
                    os.path.join(folder, f"cute_dsl_cutlass_{name}_*.mlir"))
        return made

    def ptx_of(self, file):
        folder, name = os.path.split(file)
        name = name[len("cute_dsl_"):-len("_clean.mlir")]
        arch = ARCHS.get(name.split("_")[1], "sm_90a")
        return os.path.join(folder, f"{name}.{arch}.ptx")

    def source(self, key):
        import blackwell
        import flash
        import more
        file = "flash" if key in flash.COMPILE else \
            "more" if key in more.COMPILE else \
            "blackwell" if key in blackwell.COMPILE else "kernels"
        return os.path.join(HERE, file + ".py")

    def limits(self, key):
        return CASES[key][1:]

    def problem(self, key, size):
        rng = np.random.default_rng(sum(size))
        tensors, args, want = CASES[key][0](rng, *size)
        device = "sim:" + ARCHS.get(key, "sm_90a")
        return {"args": args, "device": device}, tensors, want


if __name__ == "__main__":
    sys.exit(seeds.main(Dsl("dsl", faults.FAULTS)))
