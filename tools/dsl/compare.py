#!/usr/bin/env python3
"""Compares kernels of the CuTe DSL, run by cutelua, with NumPy.

    python3 tools/dsl/compare.py [--cutelua build/cutelua] [--seeds N] [NAME...]

Compiles the kernels of kernels.py, runs each with several sizes and seeds, and
prints a table. Then plants faults in the PTX. Exits with 1 if a result is wrong,
a run of a correct kernel has a report, or a fault is not reported at its line.
"""
# SPDX-License-Identifier: MIT
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

import faults

HERE = os.path.dirname(os.path.abspath(__file__))


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


# Name: the function for one problem, which returns tensors by name, arguments
# and results in f64 by name; sizes; the largest relative error.
CASES = {
    "add": (add, [(1,), (127,), (1000,)], 1e-7),
    "row_sum": (row_sum, [(1, 1), (5, 77), (3, 1001)], 1e-6),
    "attention": (attention, [(1, 1, 1), (2, 7, 13), (1, 33, 65)], 1e-6),
    "gemm80": (gemm80, [(1, 1, 32), (65, 63, 64), (130, 70, 160)], 1e-6),
    "gemm90": (gemm80, [(1, 1, 8, 1), (129, 65, 72, 3), (200, 100, 136, 2),
                        (300, 130, 320, 5)], 1e-6),
}


def compile_all(folder, names):
    """Returns the IR of each kernel by name."""
    os.environ.update(CUTE_DSL_ARCH="sm_90a", CUTE_DSL_KEEP="ptx,ir",
                      CUTE_DSL_LINEINFO="1", CUTE_DSL_DUMP_DIR=folder,
                      CUTE_DSL_NO_CACHE="1")
    warnings.simplefilter("ignore")
    import kernels
    made = {}
    for name, function in kernels.COMPILE.items():
        if not names or name in names:
            function()
            made[name], = glob.glob(
                os.path.join(folder, f"cute_dsl_cutlass_{name}_*.mlir"))
    return made


def run(program, ir, name, size, seeds, folder):
    """Runs a case; returns (relative error, runs with a report, the first)."""
    tensors, args, want = CASES[name][0](np.random.default_rng(sum(size)), *size)
    case = {"ir": ir, "args": args, "seeds": seeds, "tensors": {}, "outputs": {}}
    for n, t in tensors.items():
        case["tensors"][n] = os.path.join(folder, n + ".npy")
        np.save(case["tensors"][n], t)
    for n in want:
        case["outputs"][n] = os.path.join(folder, n + ".out.npy")
    path = os.path.join(folder, "case.json")
    with open(path, "w") as f:
        json.dump(case, f)
    done = subprocess.run([program, os.path.join(HERE, "run.lua"), path],
                          capture_output=True, text=True)
    if done.returncode:
        return float("inf"), seeds, done.stderr
    error = 0
    for n, w in want.items():
        got = np.load(case["outputs"][n]).astype(float)
        if np.isnan(got).any():
            error = float("inf")
        error = max(error, np.abs(got - w).max() / max(np.abs(w).max(), 1e-30))
    count, _, first = done.stdout.partition("\n")
    return error, int(count), first


def ptx_of(ir):
    folder, name = os.path.split(ir)
    return os.path.join(folder, name[len("cute_dsl_"):-len("_clean.mlir")]
                        + ".sm_90a.ptx")


def plant_all(program, made, seeds, folder):
    """Plants the faults of faults.py; returns the number that went wrong."""
    bad = 0
    with open(os.path.join(HERE, "kernels.py")) as f:
        source = f.read().split("\n")
    for row in faults.FAULTS:
        name, size, what = row[:3]
        if name not in made:
            continue
        base = os.path.join(folder, "planted")
        shutil.copy(made[name], base + ".mlir")
        with open(ptx_of(made[name])) as f:
            text = f.read()
        with open(base + ".ptx", "w") as f:
            f.write(faults.plant(text, row))
        _, count, first = run(program, base + ".mlir", name, size, seeds, folder)
        why = faults.judge(row, first, source)
        bad += why is not None
        head = next((l for l in first.split("\n") if "kernels.py:" in l), "")
        print(f"{name:12}{what:34}{count}/{seeds}  "
              f"{why or 'reported'}: {head.strip()[:90]}", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cutelua", default="build/cutelua")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--folder", help="keeps the PTX and the IR there")
    parser.add_argument("names", nargs="*")
    opt = parser.parse_args()
    failed, runs = False, 0
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.abspath(opt.folder or folder)
        os.makedirs(kept, exist_ok=True)
        made = compile_all(kept, opt.names)
        print(f"{'kernel':12}{'size':18}{'error':>9}{'runs':>6}{'reports':>9}"
              f"{'s':>7}")
        for name, ir in made.items():
            _, sizes, most = CASES[name]
            for size in sizes:
                start = time.monotonic()
                error, count, first = run(opt.cutelua, ir, name, size, opt.seeds,
                                          folder)
                took = time.monotonic() - start
                good = error <= most and count == 0
                failed = failed or not good
                runs += opt.seeds
                print(f"{name:12}{' x '.join(map(str, size)):18}{error:9.1e}"
                      f"{opt.seeds:6}{count:9}{took:7.1f}"
                      f"{'' if good else '  WRONG'}", flush=True)
                if first:
                    print("    " + first.strip().replace("\n", "\n    "))
        print(f"{runs} runs\n\nplanted faults")
        failed = plant_all(opt.cutelua, made, opt.seeds, folder) > 0 or failed
    return failed


if __name__ == "__main__":
    sys.exit(main())
