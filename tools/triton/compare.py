#!/usr/bin/env python3
"""Compares kernels of Triton, run by cutelua, with NumPy.

    python3 tools/triton/compare.py [--cutelua build/cutelua] [--seeds N] [NAME...]

Compiles the kernels of kernels.py, runs each with several sizes and seeds, and
prints a table. Then plants faults in the PTX. Exits with 1 if a result is wrong,
a run of a correct kernel has a report, or less than 98 % of the faults are
reported at their line.
"""
# SPDX-License-Identifier: MIT
import os
import sys

import numpy as np

import faults
import kernels
from cases import CASES

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "ptx"))
import seeds


class Triton(seeds.Compiler):
    def compile_all(self, folder, names):
        return kernels.compile_all(folder, names)

    def ptx_of(self, file):
        return file[:-len("json")] + "ptx"

    def source(self, key):
        return os.path.join(HERE, "kernels.py")

    def limits(self, key):
        return CASES[key.rsplit("_sm", 1)[0]][1:]

    def problem(self, key, size):
        name, arch = key.rsplit("_sm", 1)
        rng = np.random.default_rng(len(key) + sum(size))
        tensors, args, grid, want = CASES[name][0](rng, *size)
        device = "sim:sm_" + arch + ("" if arch == "80" else "a")
        return {"args": args, "grid": grid, "device": device}, tensors, want


if __name__ == "__main__":
    sys.exit(seeds.main(Triton("triton", faults.FAULTS)))
