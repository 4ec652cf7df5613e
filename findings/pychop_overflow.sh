#!/bin/sh
# Shows how Pychop, which simulates narrow float types in NumPy, rounds numbers
# just above the largest number of a type.
#
# Hypothesis before the run: Chop(exp_bits, sig_bits) returns the numbers that
# NumPy and ml_dtypes return, and infinity above the largest number. After the
# first look at 464 in e4m3, which becomes 0: all rounding modes have the gap.
#
# Result, Pychop 0.6.2 (NumPy): Chop returns 0 for numbers from P up to 2 * P,
# where P is the power of two that follows the largest number of the type. In
# f16, 65536 to 131071 become 0, and larger numbers become infinity. 65520 to
# 65535 become 65536, which f16 does not have. The other tested types and all
# tested rounding modes have the same gap. Rounding toward zero returns infinity
# from 131072 on. FaultChop, another class of the library, is right.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  pychop==0.6.2 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
from importlib.metadata import version

import numpy as np
import pychop

pychop.backend("numpy")


def show(name, x):
    print("%-14s" % name, *("%7.7g" % v for v in x))


print("Pychop", version("pychop"))
x = np.array([65504, 65519, 65520, 65536, 65537, 131071, 131072, -1e5])
show("x", x)
with np.errstate(over="ignore"):
    show("NumPy f16", x.astype(np.float16))
show("FaultChop, h", pychop.FaultChop("h")(x))
names = {1: "nearest even", 2: "up", 3: "down", 4: "toward zero",
         7: "ties to zero", 8: "ties to away"}
for mode, name in names.items():
    show(name, pychop.Chop(5, 10, rmode=mode)(x))
print("factors of the largest number:")
factors = np.array([1, 1.25, 1.5, 1.75, 2, 2.5])
show("factor", factors)
for exponent, mantissa in (2, 1), (3, 2), (4, 3), (5, 2), (8, 7):
    largest = (2 - 2.0 ** -mantissa) * 2.0 ** (2 ** (exponent - 1) - 1)
    rounded = pychop.Chop(exponent, mantissa)(largest * factors)
    show(f"e{exponent}m{mantissa}", rounded / largest)
EOF
"$work/venv/bin/python" "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
Pychop 0.6.2
x                65504   65519   65520   65536   65537  131071  131072 -100000
NumPy f16        65504   65504     inf     inf     inf     inf     inf    -inf
FaultChop, h     65504   65504     inf     inf     inf     inf     inf    -inf
nearest even     65504   65504   65536       0       0       0     inf       0
up               65504   65536   65536       0       0       0     inf       0
down             65504   65504   65504       0       0       0     inf       0
toward zero      65504   65504   65504       0       0       0     inf       0
ties to zero     65504   65504   65504       0       0       0     inf       0
ties to away     65504   65504   65536       0       0       0     inf       0
factors of the largest number:
factor               1    1.25     1.5    1.75       2     2.5
e2m1                 1 1.333333       0       0       0       0
e3m2                 1       0       0       0       0     inf
e4m3                 1       0       0       0       0     inf
e5m2                 1       0       0       0       0     inf
e8m7                 1       0       0       0       0     inf
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
