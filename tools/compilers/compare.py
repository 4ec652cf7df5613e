#!/usr/bin/env python3
"""Compares kernels of several compilers, run by cutelua, with NumPy.

    python3 tools/compilers/compare.py [--cutelua build/cutelua] [--seeds N]
                                       [NAME...]

A NAME is that of a compiler or of a kernel, such as `numba` or `nvcc_ring`. Runs
each kernel with several sizes and seeds, and prints a table. Then plants faults
in the PTX. Exits with 1 if a result is wrong, a run of a correct kernel has a
report, or less than 98 % of the faults are reported at their line. nvcc and
clang are left out if they are not installed.
"""
# SPDX-License-Identifier: MIT
import os
import shutil
import subprocess
import sys

import numpy as np

import faults

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "ptx"))
import from_compilers
import seeds
from trial import PROGRAM, array

TOOLKIT = "/usr/local/cuda/include"
CUDA = os.path.join(HERE, "kernels.cu")
CUTE = os.path.join(HERE, "cute.cu")
CUTE90 = os.path.join(HERE, "cute90.cu")
NUMBA = os.path.join(os.path.dirname(HERE), "ptx", "from_numba.py")


# ---- problems: fields of the case, tensors, arguments and results ----

def floats(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def blocks(n):
    return -(-n // 128)


def row_sums(rng, m, n, **fields):
    x = floats(rng, m, n)
    return ({"grid": m, "block": 128, **fields},
            {"x": x, "y": np.zeros(m, np.float32)}, ["x", "y", n],
            {"y": x.astype(float).sum(1)})


def dynamic_row_sums(rng, m, n):
    return row_sums(rng, m, n, smem=512)


def transpose(rng, m, n):
    x = floats(rng, m, n)
    return ({"grid": [-(-n // 16), -(-m // 16)], "block": [16, 16]},
            {"x": x, "y": np.zeros((n, m), np.float32)}, ["x", "y", m, n],
            {"y": x.T})


def scan(rng, n):
    x = rng.integers(-9, 9, n).astype(np.int32)
    want = np.concatenate([x[i:i + 128].cumsum() for i in range(0, n, 128)])
    return ({"grid": blocks(n), "block": 128}, {"x": x, "y": np.zeros_like(x)},
            ["x", "y", n], {"y": want})


def stencil(rng, n):
    x = floats(rng, n)
    wide = np.pad(x.astype(float), 1)
    return ({"grid": blocks(n), "block": 128}, {"x": x, "y": np.zeros_like(x)},
            ["x", "y", n], {"y": (wide[:-2] + wide[1:-1] + wide[2:]) / 3})


def histogram(rng, n):
    x = rng.integers(0, 32, n).astype(np.int32)
    return ({"grid": 2, "block": 128},
            {"x": x, "y": np.zeros(32, np.int32)}, ["x", "y", n],
            {"y": np.bincount(x, minlength=32)})


def last_block(rng, n):
    x = floats(rng, n)
    return ({"grid": 3, "block": 128},
            {"x": x, "part": np.zeros(3, np.float32),
             "ticket": np.zeros(1, np.int32), "y": np.zeros(1, np.float32)},
            ["x", "part", "ticket", "y", n], {"y": x.astype(float).sum()})


def pair_sums(rng, m, n):
    x = floats(rng, m, n)
    wide = np.zeros((m, -(-n // 128) * 128))
    wide[:, :n] = x
    want = wide.reshape(m // 2, -1, 128).sum(1)
    return ({"grid": m, "block": 128, "cluster": 2},
            {"x": x, "y": np.zeros((m // 2, 128), np.float32)},
            ["x", "y", n], {"y": want})


def stages(rng, rows):
    x = floats(rng, rows, 128)
    return ({"grid": 1, "block": 128},
            {"x": x, "y": np.zeros(128, np.float32)}, ["x", "y", rows],
            {"y": x.astype(float).sum(0)})


def ring(rng, rows):
    x = floats(rng, rows, 256)
    return ({"grid": 2, "block": 160}, {"x": x, "y": np.zeros_like(x)},
            ["x", "y", rows], {"y": 2 * x.astype(float)})


def tiles(rng, m, n, k):
    a, b = floats(rng, m, k, dtype="f2"), floats(rng, k, n, dtype="f2")
    return ({"grid": [n // 8, m // 16], "block": 32},
            {"a": a, "b": b, "c": np.zeros((m, n), np.float32)},
            ["a", "b", "c", n, k], {"c": a.astype(float) @ b.astype(float)})


def product(rng, m, n, k):
    a, b = floats(rng, m, k, dtype="f2"), floats(rng, n, k, dtype="f2")
    return ({"grid": [m // 64, n // 64], "block": 128, "device": "sim:sm_80"},
            {"a": a, "b": b, "c": np.zeros((m, n), np.float32)},
            ["a", "b", "c", m, n, k],
            {"c": a.astype(float) @ b.astype(float).T})


def hopper(rng, m, n, k):
    a, b = floats(rng, m, k, dtype="f2"), floats(rng, n, k, dtype="f2")
    return ({"grid": [-(-m // 64), -(-n // 64)], "block": 128, "smem": 16384},
            {"a": a, "b": b, "c": np.zeros((m, n), np.float32)},
            [{"map": "a", "box": [64, 64]}, {"map": "b", "box": [64, 64]}, "c",
             m, n, k],
            {"c": a.astype(float) @ b.astype(float).T})


def numba(problem, *order):
    """Returns a problem whose arguments are Numba's arrays, in this order."""
    def other(rng, *size):
        fields, tensors, _, want = problem(rng, *size)
        args = []
        for n in order:
            args += array((n, tensors[n]))
        return fields, tensors, args, want
    return other


def scale(rng, n):
    x, y = floats(rng, n), floats(rng, n)
    return ({"grid": blocks(n), "block": 128}, {"x": x, "y": y},
            array(("y", y)) + array(("x", x)) + [0.5],
            {"y": x.astype(float) / 2 + y})


def axpy(rng, n):
    x, y = floats(rng, n), floats(rng, n)
    return ({"grid": blocks(n), "block": 128},
            {"x": x, "y": y, "z": np.zeros_like(x)}, ["x", "y", "z"],
            {"z": 2 * x.astype(float) + y})


def tile_product(rng, m, n, k):
    a, b = floats(rng, m, k, dtype="f2"), floats(rng, k, n, dtype="f2")
    return ({"grid": [-(-n // 64), -(-m // 64)], "block": 128, "smem": 16384,
             "device": "sim:sm_80"},
            {"a": a, "b": b, "c": np.zeros((m, n), np.float32)},
            ["a", "b", "c"], {"c": a.astype(float) @ b.astype(float)})


ROWS, LINES = [(1, 1), (5, 77), (3, 300)], [(1,), (127,), (1000,)]

# For each kernel: function that makes a problem, sizes, largest relative error.
CASES = {
    "nvcc_row_sums": (row_sums, ROWS, 1e-6),
    "nvcc_transpose": (transpose, [(1, 1), (17, 33), (50, 31)], 0),
    "nvcc_scan": (scan, LINES, 0),
    "nvcc_stencil": (stencil, LINES, 1e-6),
    "nvcc_histogram": (histogram, LINES, 0),
    "nvcc_last_block": (last_block, LINES, 1e-6),
    "nvcc_pair_sums": (pair_sums, [(2, 1), (4, 300), (6, 129)], 1e-6),
    "nvcc_stages": (stages, [(1,), (7,), (40,)], 1e-6),
    "nvcc_ring": (ring, [(1,), (7,), (20,)], 0),
    "nvcc_tiles": (tiles, [(16, 8, 16), (32, 24, 48), (48, 16, 80)], 1e-6),
    "nvrtc_row_sums": (row_sums, ROWS, 1e-6),
    "nvrtc_scan": (scan, LINES, 0),
    "nvrtc_ring": (ring, [(1,), (7,), (20,)], 0),
    "cutlass_product": (product, [(64, 64, 32), (128, 64, 96),
                                  (64, 192, 160)], 1e-6),
    "cutlass90_hopper": (hopper, [(1, 1, 8), (65, 130, 72), (128, 64, 200)],
                         1e-6),
    "clang_row_sums": (dynamic_row_sums, ROWS, 1e-6),
    "numba_scale": (scale, LINES, 1e-7),
    "numba_transpose": (numba(transpose, "y", "x"), [(1, 1), (17, 33)], 0),
    "numba_row_sums": (numba(dynamic_row_sums, "y", "x"), ROWS, 1e-6),
    "tilelang_axpy": (axpy, [(1000,)], 1e-6),
    "tilelang_product": (tile_product, [(100, 72, 136)], 1e-6),
}


# ---- compilers ----

def tool(name):
    path = os.pathsep.join([os.environ["PATH"], "/usr/local/cuda/bin"])
    found = shutil.which(name, path=path)
    if not found:
        print(f"{name} is not installed", file=sys.stderr)
    return found


def call(folder, *words):
    subprocess.run(words, cwd=folder, check=True)


def by_nvcc(folder, source, ptx, arch, *more):
    nvcc = tool("nvcc")
    if nvcc:
        call(folder, nvcc, "-ptx", "-arch=" + arch, "-lineinfo", "-std=c++17",
             *more, source, "-o", ptx)


def by_nvrtc(folder, ptx):
    call(folder, PROGRAM, os.path.join(HERE, "nvrtc.lua"), CUDA, ptx,
         "compute_90a", "-I" + TOOLKIT, f"-I{TOOLKIT}/cccl", "-std=c++17")


def by_clang(folder, ptx):
    clang, source = tool("clang"), os.path.join(folder, "clang.cu")
    with open(source, "w") as f:
        f.write(from_compilers.CLANG)
    if clang:
        words = list(from_compilers.LLVM[1:-3])
        call(folder, clang, *words, source, "-o", ptx)


def by_cutlass(folder, ptx, source=CUTE, arch="sm_80"):
    import tilelang  # has CUTLASS's headers
    root = os.path.dirname(tilelang.__file__)
    by_nvcc(folder, source, ptx, arch, "--expt-relaxed-constexpr",
            "-diag-suppress=20012,1444,445,550,177",
            "-I" + os.path.join(root, "3rdparty", "cutlass", "include"))


def by_cutlass90(folder, ptx):
    by_cutlass(folder, ptx, CUTE90, "sm_90a")


def by_numba(folder, names):
    import from_numba as own
    from numba import cuda, float32, void
    row, plane = float32[::1], float32[:, ::1]
    types = {"scale": (row, row, float32), "transpose": (plane, plane),
             "row_sums": (row, plane)}
    for name in names:
        text, _ = cuda.compile_ptx(getattr(own, name), void(*types[name]),
                                   cc=own.CC, lineinfo=True)
        with open(os.path.join(folder, f"numba_{name}.ptx"), "w") as f:
            f.write(text)


def by_tilelang(folder, names):
    import from_tilelang as own
    made = {"axpy": (own.axpy(1000), "sm_90a"),
            "product": (own.product(100, 72, 136), "sm_80")}
    for name in names:
        place = os.path.join(folder, "tilelang_" + name)
        os.makedirs(place, exist_ok=True)
        shutil.copy(own.ptx(place, *made[name]), place + ".ptx")


class Compilers(seeds.Compiler):
    folder = None

    def compile_all(self, folder, names):
        self.folder = folder
        wanted = {}
        for key in CASES:
            compiler, kernel = key.split("_", 1)
            if not names or key in names or compiler in names:
                wanted.setdefault(compiler, []).append(kernel)
        made = {}
        for compiler, kernels in wanted.items():
            one = compiler not in ("numba", "tilelang")
            ptx = os.path.join(folder, compiler + ".ptx")
            if compiler == "nvcc":
                by_nvcc(folder, CUDA, ptx, "sm_90a")
            elif one:
                globals()["by_" + compiler](folder, ptx)
            else:
                globals()["by_" + compiler](folder, kernels)
            for k in kernels:
                key = compiler + "_" + k
                file = ptx if one else os.path.join(folder, key + ".ptx")
                if os.path.exists(file):
                    made[key] = file
        return made

    def ptx_of(self, file):
        return file

    def source(self, key):
        compiler, kernel = key.split("_", 1)
        if compiler == "tilelang":
            return os.path.join(self.folder, key, "k.cu")
        return {"nvcc": CUDA, "nvrtc": CUDA, "cutlass": CUTE,
                "cutlass90": CUTE90, "numba": NUMBA,
                "clang": os.path.join(self.folder, "clang.cu")}[compiler]

    def group(self, key):
        return key.split("_", 1)[0].removesuffix("90")

    def span(self, key, text):
        kernel = key.split("_", 1)[1]
        if text.count(".entry ") == 1:
            return 0, len(text)
        begin = text.index(f".entry {kernel}(")
        end = text.find(".entry ", begin + 1)
        return begin, len(text) if end < 0 else end

    def limits(self, key):
        return CASES[key][1:]

    def problem(self, key, size):
        rng = np.random.default_rng(sum(size))
        fields, tensors, args, want = CASES[key][0](rng, *size)
        compiler, kernel = key.split("_", 1)
        entry = kernel + ("_kernel" if compiler == "tilelang" else "")
        return {"device": "sim:sm_90a", **fields, "entry": entry,
                "args": args}, tensors, want


if __name__ == "__main__":
    sys.exit(seeds.main(Compilers("ptx", faults.FAULTS)))
