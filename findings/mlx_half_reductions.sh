#!/bin/sh
# Shows what MLX's softmax and cumulative maximum make of float16 and bfloat16,
# on the CPU.
#
# Hypothesis before the run: softmax adds in float32, so its results sum to 1
# within the rounding of the results. The option `precise` matters for the last
# bits. A NaN stays in cummax and cummin, as in those of float32.
#
# Result, mlx 0.32.4 (CPU): the sum of softmax is added in the type itself.
#  bfloat16  stops growing, so that the softmax of 10000 equal numbers sums to
#            39, and that of 1000 to 3.9. In float16 10000 numbers sum to 4.9.
#            softmax(precise=True) and scaled_dot_product_attention are right.
#  cummax    a NaN becomes 0 in both types, and the maximum starts anew after
#            it: 5, NaN, 1 gives 5, 0, 1. cummin gives 5, 0, 0.
#  to_fp8    a NaN becomes 448.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  mlx==0.32.4 mlx-cpu==0.32.4 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)


def show(name, values):
    print("%-26s" % name, *("%.3g" % v for v in values))


def total(a):
    return np.array(a.astype(mx.float32)).astype(np.float64).sum()


sizes = (100, 1000, 10000)
show("equal numbers", sizes)
for dtype in (mx.float32, mx.float16, mx.bfloat16):
    name = str(dtype).rpartition(".")[2]
    zeros = [mx.zeros((n,), dtype=dtype) for n in sizes]
    show("%s, sum of softmax" % name, [total(mx.softmax(a)) for a in zeros])
    show("  precise", [total(mx.softmax(a, precise=True)) for a in zeros])
    x = mx.array([5, float("nan"), 1, 2, 7]).astype(dtype)
    show("  cummax of 5 nan 1 2 7", mx.cummax(x).astype(mx.float32).tolist())
    show("  cummin", mx.cummin(x).astype(mx.float32).tolist())
show("to_fp8 of nan and 500", mx.from_fp8(
    mx.to_fp8(mx.array([float("nan"), 500])), dtype=mx.float32).tolist())
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
equal numbers              100 1e+03 1e+04
float32, sum of softmax    1 1 1
  precise                  1 1 1
  cummax of 5 nan 1 2 7    5 nan nan nan nan
  cummin                   5 nan nan nan nan
float16, sum of softmax    1 1 4.88
  precise                  1 1 1
  cummax of 5 nan 1 2 7    5 0 1 2 7
  cummin                   5 0 0 0 0
bfloat16, sum of softmax   1 3.91 39.1
  precise                  1 0.999 1
  cummax of 5 nan 1 2 7    5 0 1 2 7
  cummin                   5 0 0 0 0
to_fp8 of nan and 500      448 448
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
