#!/bin/sh
# Shows the distribution of jax.random's numbers in 8-bit and bfloat16 types.
#
# Hypothesis before the run: normal() draws float32 numbers and rounds them, so
# the mean is near 0 and the largest numbers are near 4.
#
# Result, jax 0.10.2 (CPU), 100000 numbers: the numbers come from a uniform
# number that has as many random bits as the type's mantissa.
#  e4m3  8 different numbers, the smallest -1.875, the largest 1.25, mean -0.14
#  e5m2  4 different numbers, the smallest -1.5, the largest 1, mean -0.21
#  bf16  128 different numbers, the smallest -2.89, the largest 2.52
# truncated_normal() in e4m3 is NaN throughout. A test that draws its operands
# in float8 thus sees few codes, no large number, and sums with a bias.
# normal(...).astype(jnp.float8_e4m3fn), drawn in float32, has none of this.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import jax
import jax.numpy as jnp
import numpy as np

key = jax.random.key(0)


def show(name, numbers):
    v = np.asarray(numbers).astype(np.float64)
    print("%-25s" % name, "NaN" if np.isnan(v).all() else
          "%d numbers from %g to %g, mean %.3f" % (
              len(np.unique(v)), v.min(), v.max(), v.mean()))


for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16"):
    dtype = getattr(jnp, name)
    for draw in ("normal", "uniform"):
        show(name + " " + draw,
             getattr(jax.random, draw)(key, (100000,), dtype))
    show(name + " truncated", jax.random.truncated_normal(
        key, -2, 2, (100000,), dtype))
    show(name + " of f32",
         jax.random.normal(key, (100000,), jnp.float32).astype(dtype))
EOF
JAX_PLATFORMS=cpu "$work/venv/bin/python" -W ignore "$work/run.py" \
  >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
float8_e4m3fn normal      8 numbers from -1.875 to 1.25, mean -0.141
float8_e4m3fn uniform     8 numbers from 0 to 0.875, mean 0.438
float8_e4m3fn truncated   NaN
float8_e4m3fn of f32      147 numbers from -4.5 to 4.5, mean -0.002
float8_e5m2 normal        4 numbers from -1.5 to 1, mean -0.208
float8_e5m2 uniform       4 numbers from 0 to 0.75, mean 0.376
float8_e5m2 truncated     4 numbers from -1.5 to 0.5, mean -0.404
float8_e5m2 of f32        123 numbers from -4 to 5, mean -0.002
bfloat16 normal           128 numbers from -2.89062 to 2.51562, mean -0.008
bfloat16 uniform          128 numbers from 0 to 0.992188, mean 0.497
bfloat16 truncated        128 numbers from -1.99219 to 1.86719, mean -0.013
bfloat16 of f32           2682 numbers from -4.3125 to 4.53125, mean -0.002
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
