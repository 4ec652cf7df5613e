"""Tests of gelu.lua that need no GPU.

    pip install pytest
    python -m pytest test_gelu.py
"""
import array
import math

import cutelua
from gelu import script


def floats(n):
    return array.array("f", [(i - n // 2) / 8 for i in range(n)])


@cutelua.checked(seconds=5)
def test_gelu():
    x = floats(64)
    for value, got in zip(x, script.gelu(x).tolist()):
        want = value * (1 + math.erf(value / math.sqrt(2))) / 2
        assert abs(got - want) < 1e-5


@cutelua.checked(seconds=5)
def test_add():
    x = floats(300)
    assert script.add(x, x).tolist() == [2 * v for v in x]
# SPDX-License-Identifier: MIT
