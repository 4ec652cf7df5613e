#!/usr/bin/env python3
"""Compares kernels of Triton, run by cutelua, with NumPy.

    python3 tools/triton/compare.py [--cutelua build/cutelua] [--seeds N] [NAME...]

Compiles the kernels of kernels.py, runs each with several sizes and seeds, and
prints a table. Then plants faults in the PTX. Exits with 1 if a result is wrong,
a run of a correct kernel has a report, or a fault is not reported at its line.
"""
# SPDX-License-Identifier: MIT
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import faults
import kernels
from cases import CASES

HERE = os.path.dirname(os.path.abspath(__file__))


def run(program, meta, key, size, seeds, folder):
    """Runs a case; returns (relative error, runs with a report, the first)."""
    name, arch = key.rsplit("_sm", 1)
    function, _, _ = CASES[name]
    rng = np.random.default_rng(len(key) + sum(size))
    tensors, args, grid, want = function(rng, *size)
    case = {"meta": meta, "grid": grid, "args": args, "seeds": seeds,
            "arch": arch + ("a" if arch == "90" else ""), "tensors": {},
            "outputs": {}}
    for n, t in tensors.items():
        case["tensors"][n] = os.path.join(folder, n.split(":")[0] + ".npy")
        np.save(case["tensors"][n], t.view(f"V{t.itemsize}") if ":" in n else t)
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


def plant_all(program, made, seeds, folder):
    """Plants the faults of faults.py; returns the number that went wrong."""
    bad = 0
    with open(os.path.join(HERE, "kernels.py")) as f:
        source = f.read().split("\n")
    for row in faults.FAULTS:
        key, size, pattern, nth, new = row[:5]
        if key not in made:
            continue
        base = os.path.join(folder, "planted")
        shutil.copy(made[key], base + ".json")
        with open(made[key][:-4] + "ptx") as f:
            text = f.read()
        with open(base + ".ptx", "w") as f:
            f.write(faults.plant(text, pattern, nth, new))
        _, count, first = run(program, base + ".json", key, size, seeds, folder)
        why = faults.judge(row, first, source)
        bad += why is not None
        head = next((l for l in first.split("\n") if "kernels.py:" in l), "")
        print(f"{key:24} {pattern[:34]!r:38} {count}/{seeds}  "
              f"{why or 'reported'}: {head.strip()[:90]}", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cutelua", default="build/cutelua")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--folder", help="keeps the PTX and the metadata there")
    parser.add_argument("--sizes", type=int, default=9,
                        help="the most sizes of a kernel")
    parser.add_argument("names", nargs="*")
    opt = parser.parse_args()
    failed, runs = False, 0
    with tempfile.TemporaryDirectory() as folder:
        kept = opt.folder or folder
        print(f"{'kernel':26}{'size':18}{'error':>9}{'runs':>6}{'reports':>9}"
              f"{'s':>7}")
        made = kernels.compile_all(kept, opt.names)
        for key, meta in made.items():
            name = key.rsplit("_sm", 1)[0]
            _, sizes, most = CASES[name]
            for size in sizes[:opt.sizes]:
                start = time.monotonic()
                error, count, first = run(opt.cutelua, meta, key, size,
                                          opt.seeds, folder)
                took = time.monotonic() - start
                good = error <= max(most, 1e-7) and count == 0
                failed = failed or not good
                runs += opt.seeds
                print(f"{key:26}{' x '.join(map(str, size)):18}{error:9.1e}"
                      f"{opt.seeds:6}{count:9}{took:7.1f}"
                      f"{'' if good else '  WRONG'}", flush=True)
                if first:
                    print("    " + first.strip().replace("\n", "\n    "))
        print(f"{runs} runs\n\nplanted faults")
        failed = plant_all(opt.cutelua, made, opt.seeds, folder) > 0 or failed
    return failed


if __name__ == "__main__":
    sys.exit(main())
