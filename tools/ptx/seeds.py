"""Runs a compiler's kernels with several seeds and compares them with NumPy.

compare.py of tools/triton and of tools/dsl call `main` with a Compiler. It prints
a table of the runs, and then plants faults in the PTX.
"""
# SPDX-License-Identifier: MIT
import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


class Compiler:
    """What `main` needs of a compiler.

    `name` is the function of cutelua that reads a kernel's file, `folder` that
    of kernels.py, and `faults` the module with FAULTS, edit(row) and judge().
    """

    def __init__(self, name, folder, faults):
        self.name, self.folder, self.faults = name, folder, faults

    def compile_all(self, folder, names):
        """Returns the file of each kernel that cutelua reads, by key."""
        raise NotImplementedError

    def ptx_of(self, file):
        """Returns the path of the PTX beside a kernel's file."""
        raise NotImplementedError

    def limits(self, key):
        """Returns the sizes of a kernel, and the largest relative error."""
        raise NotImplementedError

    def problem(self, key, size):
        """Returns fields of the case, tensors by name, and results by name."""
        raise NotImplementedError


def run(program, compiler, file, key, size, seeds, folder):
    """Runs a case; returns (relative error, runs with a report, the first).

    The case's files are written to `folder`; their paths are relative to it.
    """
    fields, tensors, want = compiler.problem(key, size)
    case = dict(fields, compiler=compiler.name,
                file=os.path.relpath(file, folder), seeds=seeds,
                tensors={n: n.split(":")[0] + ".npy" for n in tensors},
                outputs={n: n + ".out.npy" for n in want})
    os.makedirs(folder, exist_ok=True)
    for n, t in tensors.items():
        np.save(os.path.join(folder, case["tensors"][n]),
                t.view(f"V{t.itemsize}") if ":" in n else t)
    path = os.path.join(folder, "case.json")
    with open(path, "w") as f:
        json.dump(case, f)
    done = subprocess.run([program, os.path.join(HERE, "seeds.lua"), path],
                          capture_output=True, text=True)
    if done.returncode:
        return float("inf"), seeds, done.stderr
    error = 0
    for n, w in want.items():
        got = np.load(os.path.join(folder, case["outputs"][n])).astype(float)
        if np.isnan(got).any():
            error = float("inf")
        error = max(error, np.abs(got - w).max() / max(np.abs(w).max(), 1e-30))
    count, _, first = done.stdout.partition("\n")
    return error, int(count), first


def plant(text, pattern, first, last, new):
    """Replaces occurrences of a pattern, from 0; raises if there is none."""
    found = list(re.finditer(pattern, text))
    chosen = found[first:None if last is None else last + 1]
    if not chosen:
        raise ValueError(f"{len(found)} places match {pattern!r}")
    for m in reversed(chosen):
        text = text[:m.start()] + m.expand(new) + text[m.end():]
    return text


def plant_all(program, compiler, made, seeds, folder):
    """Plants all faults; returns the number that went wrong."""
    bad = 0
    with open(os.path.join(compiler.folder, "kernels.py")) as f:
        source = f.read().split("\n")
    for row in compiler.faults.FAULTS:
        key, size = row[:2]
        if key not in made:
            continue
        base = os.path.join(folder, "planted")
        file = base + os.path.splitext(made[key])[1]
        shutil.copy(made[key], file)
        title, *change = compiler.faults.edit(row)
        with open(compiler.ptx_of(made[key])) as f:
            text = plant(f.read(), *change)
        with open(base + ".ptx", "w") as f:
            f.write(text)
        _, count, first = run(program, compiler, file, key, size, seeds, folder)
        why = compiler.faults.judge(row, first, source)
        bad += why is not None
        head = next((l for l in first.split("\n") if "kernels.py:" in l), "")
        print(f"{key:24} {title:38} {count}/{seeds}  "
              f"{why or 'reported'}: {head.strip()[:90]}", flush=True)
    return bad


def main(compiler):
    """Runs the command line of compare.py; returns whether anything failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cutelua", default="build/cutelua")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--folder", help="keeps the compiler's files and the cases there")
    parser.add_argument("--sizes", type=int, default=9,
                        help="the most sizes of a kernel")
    parser.add_argument("names", nargs="*")
    opt = parser.parse_args()
    failed, runs = False, 0
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.abspath(opt.folder or folder)
        os.makedirs(kept, exist_ok=True)
        made = compiler.compile_all(kept, opt.names)
        print(f"{'kernel':26}{'size':18}{'error':>9}{'runs':>6}{'reports':>9}"
              f"{'s':>7}")
        for key, file in made.items():
            sizes, most = compiler.limits(key)
            for size in sizes[:opt.sizes]:
                start = time.monotonic()
                numbers = [str(n) for n in size]
                error, count, first = run(
                    opt.cutelua, compiler, file, key, size, opt.seeds,
                    os.path.join(kept, "cases", "-".join([key, *numbers])))
                took = time.monotonic() - start
                good = error <= max(most, 1e-7) and count == 0
                failed = failed or not good
                runs += opt.seeds
                print(f"{key:26}{' x '.join(numbers):18}{error:9.1e}"
                      f"{opt.seeds:6}{count:9}{took:7.1f}"
                      f"{'' if good else '  WRONG'}", flush=True)
                if first:
                    print("    " + first.strip().replace("\n", "\n    "))
        print(f"{runs} runs\n\nplanted faults")
        failed = plant_all(opt.cutelua, compiler, made, opt.seeds, folder) > 0 \
            or failed
    return failed
