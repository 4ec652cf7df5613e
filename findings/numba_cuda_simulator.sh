#!/bin/sh
# Shows that numba-cuda's simulator gives other values than its compiler.
#
# With NUMBA_ENABLE_CUDASIM=1, kernels run as Python on NumPy's numbers.
# cuda.compile_ptx compiles the same function without a GPU.
#
# Hypothesis before the run: the simulator computes in the types that Numba
# infers for the compiler: an element of i32 times a literal in i64, elements of
# u8 and u32 in i64 or u64, an element of f32 times 0.1 in f64, math.sqrt of an
# f32 in f32. cuda.fma rounds once.
#
# Result, numba-cuda 0.30.4, Numba 0.68.1, NumPy 2.4.6: none of these. NumPy 2
# keeps the type of the array's element beside a Python number. Therefore,
# 4 x (2^31 - 1) is -4 (compiler: 8589934588), 200 + 100 is 44 (300), 1 - 2 is
# 4294967295 (-1), and 1 x 0.1 is rounded to f32 (f64). math.sqrt gives an f64
# (f32). cuda.fma multiplies, rounds, and adds: (1 + 2^-12)^2 - (1 + 2^-11) is 0
# (2^-24).
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/v"
"$work/v/bin/pip" -q install --disable-pip-version-check \
  numba-cuda==0.30.4 numba==0.68.1 numpy==2.4.6 llvmlite==0.50.0 \
  nvidia-nvvm==13.0.88 nvidia-cuda-nvrtc==13.0.88
cat >"$work/kernel.py" <<'PY'
import math
from numba import cuda


def k(i, b, u, f, whole, real):
    whole[0] = i[0] * 4
    whole[1] = b[0] + b[1]
    whole[2] = u[0] - u[1]
    real[0] = f[0] * 0.1
    real[1] = math.sqrt(f[1])
    real[2] = cuda.fma(f[2], f[2], f[3])
PY
cat >"$work/simulated.py" <<'PY'
import numpy as np
from numba import cuda
from kernel import k
whole, real = np.zeros(3, np.int64), np.zeros(3)
cuda.jit(k)[1, 1](
    np.array([2**31 - 1], np.int32), np.array([200, 100], np.uint8),
    np.array([1, 2], np.uint32),
    np.array([1, 2, 1 + 2**-12, -1 - 2**-11], np.float32), whole, real)
print(*whole, *(float(x) for x in real))
PY
cat >"$work/compiled.py" <<'PY'
from numba import cuda, float32, float64, int32, int64, uint8, uint32
from kernel import k
text = cuda.compile_ptx(k, (int32[:], uint8[:], uint32[:], float32[:],
                            int64[:], float64[:]), cc=(9, 0))[0]
stores = text.count("st.u64") + text.count("st.global.u64")
print("mul.wide.s32" in text, "mul.f64" in text, "sqrt.rn.f32" in text,
      "fma.rn.f32" in text, "add.s64" in text, "sub.s64" in text, stores)
PY
cd "$work"
status=0
# expect NAME WANTED GOT
expect() {
  echo "$1: $3"
  if [ "$2" != "$3" ]; then
    echo "  expected $2"
    status=1
  fi
}
expect simulator "-4 44 4294967295 0.10000000149011612 1.4142135623730951 0.0" \
  "$(NUMBA_ENABLE_CUDASIM=1 "$work/v/bin/python" -W ignore simulated.py)"
# Instructions: i32 x 4 in i64; f32 x 0.1 in f64; square root in f32; one fma;
# sums and differences in i64; three stores of 64 bits.
expect compiler "True True True True True True 3" \
  "$("$work/v/bin/python" -W ignore compiled.py)"
exit $status
# SPDX-License-Identifier: MIT
