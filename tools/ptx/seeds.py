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

    `name` is the function of cutelua that reads a kernel's file, and `faults`
    the list of faults: rows of kernel, size, name of the fault, pattern of the
    PTX, (first occurrence, last occurrence) from 0, text in their place, kinds
    of reports that are right for the first report (None: all), and texts of
    lines of the source, one of which the first report must name.
    """

    def __init__(self, name, faults):
        self.name, self.faults = name, faults

    def compile_all(self, folder, names):
        """Returns the file of each kernel that cutelua reads, by key."""
        raise NotImplementedError

    def ptx_of(self, file):
        """Returns the path of the PTX beside a kernel's file."""
        raise NotImplementedError

    def source(self, key):
        """Returns the path of the source that reports about a kernel name."""
        raise NotImplementedError

    def group(self, key):
        """Returns the name of a kernel's compiler in the table of faults."""
        return self.name

    def span(self, key, text):
        """Returns where the text of a kernel begins and ends in its PTX."""
        return 0, len(text)

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


def plant(text, span, pattern, occurrences, new):
    """Replaces occurrences of a pattern, from 0; raises if there is none."""
    first, last = occurrences
    found = list(re.compile(pattern).finditer(text, *span))
    chosen = found[first:None if last is None else last + 1]
    if not chosen:
        raise ValueError(f"{len(found)} places match {pattern!r}")
    for m in reversed(chosen):
        text = text[:m.start()] + m.expand(new) + text[m.end():]
    return text


def judge(report, path, kinds, lines):
    """Returns what is wrong with the report of a planted fault, or None."""
    name = re.escape(os.path.basename(path))
    heads = list(re.finditer(name + r":(\d+): [^\n]*\[([\w-]+)\]", report))
    tops = [h for h in heads if report[h.start() - 1] == "\n"] or heads
    if not heads:
        return "no report"
    if kinds and heads[0][2] not in kinds:
        return "kind " + heads[0][2]
    with open(path) as f:
        source = f.read().split("\n")
    first = report[heads[0].start():tops[1].start() if tops[1:] else None]
    for line in re.findall(name + r":(\d+)|of line (\d+)", first):
        if any(t in source[int(line[0] or line[1]) - 1] for t in lines):
            return None
    return "line " + heads[0][1]


def plant_all(program, compiler, made, seeds, folder, record):
    """Plants all faults; returns whether less than 98 % are reported."""
    bad = planted = 0
    for key, size, what, *change, kinds, lines in compiler.faults:
        if key not in made:
            continue
        base = os.path.join(folder, "planted")
        file = base + os.path.splitext(made[key])[1]
        shutil.copy(made[key], file)
        with open(compiler.ptx_of(made[key])) as f:
            text = f.read()
        with open(base + ".ptx", "w") as f:
            f.write(plant(text, compiler.span(key, text), *change))
        _, count, first = run(program, compiler, file, key, size, seeds, folder)
        path = compiler.source(key)
        why = judge(first, path, kinds, lines)
        bad += why is not None
        planted += 1
        head = next((l for l in first.split("\n")
                     if os.path.basename(path) + ":" in l), first[:90])
        print(f"{key:24} {what:38} {count}/{seeds}  "
              f"{why or 'reported'}: {head.strip()[:90]}", flush=True)
        if record:
            with open(record, "a") as f:
                f.write("\t".join([compiler.group(key), key, what,
                                   why or "reported"]) + "\n")
    return bad > 0.02 * planted


def run_all(compiler, made, opt, kept):
    """Runs all kernels and prints a table; returns whether one is wrong.

    The cases are written to folders of `kept`.
    """
    failed, runs = False, 0
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
    return failed


def main(compiler):
    """Runs the command line of compare.py; returns whether anything failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cutelua", default="build/cutelua")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--folder",
                        help="keeps the compiler's files and the cases there")
    parser.add_argument("--sizes", type=int, default=9,
                        help="the most sizes of a kernel")
    parser.add_argument("--planted", metavar="FILE",
                        help="only plants faults; adds a row for each to FILE")
    parser.add_argument("names", nargs="*")
    opt = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        kept = os.path.abspath(opt.folder or folder)
        os.makedirs(kept, exist_ok=True)
        made = compiler.compile_all(kept, opt.names)
        if not opt.planted:
            failed = run_all(compiler, made, opt, kept)
        failed = plant_all(opt.cutelua, compiler, made, opt.seeds, folder,
                           opt.planted) or failed
    return failed
