"""Calls functions of gelu.lua on the simulator, with Python's arrays.

    pip install --no-index build/wheel/cutelua-*.whl
    python gelu.py
"""
import array
import os

import cutelua

script = cutelua.load(os.path.join(os.path.dirname(__file__), "gelu.lua"))


def main():
    x = array.array("f", [-1, 0, 3])
    print([round(v, 4) for v in script.gelu(x).tolist()])
    print(script.add(x, x).tolist())
    try:
        script.add(x, array.array("f", [1]))
    except cutelua.Error as e:  # the simulator finds the access out of bounds
        print(e.kind, os.path.basename(e.file), e.line)


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: MIT
