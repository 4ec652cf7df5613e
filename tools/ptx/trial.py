"""Runs a kernel in PTX or CUDA C on the simulator and compares it with NumPy.

The scripts beside this file call `run` with kernels that they make by packages
of the versions that docs/producers.md names. CUTELUA names the program.
"""
import json
import os
import subprocess
import sys

import numpy as np

PROGRAM = os.path.abspath(os.environ.get("CUTELUA", "build/cutelua"))


def array(a):
    """Returns the seven arguments that a Numba kernel takes for an array.

    They are the parent, the meminfo, the number of elements, the bytes of an
    element, the data, the shape and the strides in bytes.
    """
    name, value = a
    return [0, 0, value.size, value.itemsize, name, *value.shape,
            *value.strides]


def run(what, kernel, launch, memory, expect, tolerance):
    """Launches `kernel` (a file) in its folder; exits if a result is wrong."""
    folder = os.path.dirname(os.path.abspath(kernel))
    launch = dict(launch, memory={}, expect={})
    for name, value in memory.items():
        np.save(os.path.join(folder, name + ".npy"), value)
        launch["memory"][name] = {"npy": name + ".npy"}
    for name, value in expect.items():
        np.save(os.path.join(folder, name + "_want.npy"), value)
        launch["expect"][name] = {"npy": name + "_want.npy",
                                  "tolerance": tolerance}
    with open(os.path.join(folder, "launch.json"), "w") as f:
        json.dump(launch, f, indent=1)
    for words in [], ["check"]:
        done = subprocess.run(
            [PROGRAM, *words, os.path.basename(kernel), "--launch",
             "launch.json"], cwd=folder, capture_output=True, text=True)
        said = (done.stdout + done.stderr).strip().split("\n")
        print(f"{what} {' '.join(words) or 'run'}: {said[0]}", flush=True)
        if done.returncode:
            sys.exit("\n".join(said))
# SPDX-License-Identifier: MIT
