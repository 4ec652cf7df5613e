#!/bin/sh
# Shows //, % and float32 sums of kernels that Pythran compiles, and the same
# functions run by Python and NumPy. Needs a C++ compiler.
#
# Hypotheses before the run: compiled functions return NumPy's results for //,
# %, np.unique and sums, also with NaNs. After the run of int32 arrays: // and %
# of Python's integers and floats are right.
#
# Result, Pythran 0.19.0: // and % are wrong for negative divisors, of Python's
# integers, too. 7 // -2 is -5 instead of -4, 6 // -2 is -4 instead of -3, and
# 7 // -7 is -2 instead of -1. -7 % -2 is -3, which is not a remainder. // of
# floats is right, and % of floats is wrong. int32's -2^31 // 3 is positive.
# np.remainder of int32 has the sign of the dividend. The float32 sum of ones
# stops at 2^24, so that their mean is 0.839. np.unique of an array with a NaN
# loses numbers.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  pythran==0.19.0 numpy==2.4.6
cat >"$work/kernels.py" <<'EOF_PY'
import numpy as np


# pythran export scalars(int, int)
# pythran export scalars(float, float)
def scalars(a, b):
    return a // b, a % b


# pythran export arrays(int32[], int32[])
def arrays(a, b):
    return a // b, a % b, np.remainder(a, b)


# pythran export reduced(float32[])
def reduced(x):
    return np.sum(x), np.mean(x)


# pythran export unique(float32[])
def unique(x):
    return np.unique(x)
EOF_PY
cat >"$work/run.py" <<'EOF_PY'
import importlib.util
import sys
from importlib.metadata import version

import numpy as np


def load(path):
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def show(name, *results):
    print("  %-15s" % name, *(" ".join("%5.4g" % v for v in np.ravel(r))
                              for r in results))


A = [-7, 7, -7, 7, 6, 7, -2 ** 31]
B = [2, 2, -2, -2, -2, -7, 3]
print("Pythran", version("pythran"))
show("dividend", A)
show("divisor", B)
for name, path in ("Pythran", sys.argv[1]), ("NumPy", sys.argv[2]):
    print(name)
    f = load(path)
    for kind in int, float:
        pairs = [f.scalars(kind(a), kind(b)) for a, b in zip(A, B)]
        for op, results in zip(("//", "%"), zip(*pairs)):
            show(f"{kind.__name__} {op}", results)
    results = f.arrays(np.array(A, np.int32), np.array(B, np.int32))
    for op, result in zip(("//", "%", "remainder"), results):
        show(f"int32 {op}", result)
    show("sum, mean", f.reduced(np.ones(20_000_000, np.float32)))
    show("unique", f.unique(np.array([np.nan, 4, 3, 2, 1], np.float32)))
EOF_PY
"$work/venv/bin/pythran" -O1 "$work/kernels.py" -o "$work/kernels.so" \
  >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/venv/bin/python" -W ignore "$work/run.py" "$work/kernels.so" \
  "$work/kernels.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
Pythran 0.19.0
  dividend           -7     7    -7     7     6     7 -2.147e+09
  divisor             2     2    -2    -2    -2    -7     3
Pythran
  int //             -4     3     3    -5    -4    -2 -7.158e+08
  int %               1     1    -3     1     0     0     1
  float //           -4     3     3    -4    -3    -1 -7.158e+08
  float %             1     1    -3     1     0     0     1
  int32 //           -4     3     3    -5    -4    -2 7.158e+08
  int32 %             1     1    -3     1     0     0     1
  int32 remainder    -1     1    -1     1     0     0    -2
  sum, mean       1.678e+07 0.8389
  unique            nan
NumPy
  int //             -4     3     3    -4    -3    -1 -7.158e+08
  int %               1     1    -1    -1     0     0     1
  float //           -4     3     3    -4    -3    -1 -7.158e+08
  float %             1     1    -1    -1    -0    -0     1
  int32 //           -4     3     3    -4    -3    -1 -7.158e+08
  int32 %             1     1    -1    -1     0     0     1
  int32 remainder     1     1    -1    -1     0     0     1
  sum, mean       2e+07     1
  unique              1     2     3     4   nan
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
