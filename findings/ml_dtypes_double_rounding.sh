#!/bin/sh
# Shows that ml_dtypes and XLA round float64 twice on its way to narrow floats.
#
# Hypothesis before the run: a conversion of a float64 rounds once, to nearest
# even, as NumPy's conversion to float16 does. The numbers of the test are
# slightly larger than the middle of two neighbours, so all of them round up.
#
# Result, ml_dtypes 0.6.0: half of these numbers round down, for bfloat16 and
# all tested 8-, 6- and 4-bit floats: float64 is rounded to float32 first, which
# drops what is beyond the middle, and then to even. jax 0.10.2 (CPU) does so
# for bfloat16, but rounds once to float8 and float4; two conversions of one
# program that differ are thus both in use.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  ml_dtypes==0.6.0 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import jax
import ml_dtypes
import numpy as np

jax.config.update("jax_enable_x64", True)
TYPES = [("bfloat16", ml_dtypes.bfloat16, 7),
         ("float8_e4m3fn", ml_dtypes.float8_e4m3fn, 3),
         ("float8_e5m2", ml_dtypes.float8_e5m2, 2),
         ("float6_e3m2fn", ml_dtypes.float6_e3m2fn, 2),
         ("float4_e2m1fn", ml_dtypes.float4_e2m1fn, 1),
         ("float16", np.float16, 10)]
print("%-14s %8s %9s %4s" % ("wrong", "of", "ml_dtypes", "jax"))
for name, dtype, bits in TYPES:
    k = np.arange(1 << bits)
    x = 1 + (2 * k + 1) * 2.0 ** -(bits + 1) + 2.0 ** -45
    want = 1 + (k + 1) * 2.0 ** -bits

    def wrong(y):
        return np.sum(np.asarray(y).astype(np.float64) != want)
    by_jax = "-"  # XLA has no float6
    if "float6" not in name:
        by_jax = wrong(jax.jit(lambda v: v.astype(dtype))(x))
    print("%-14s %8d %9d %4s" % (name, len(k), wrong(x.astype(dtype)), by_jax))
EOF
JAX_PLATFORMS=cpu "$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
wrong                of ml_dtypes  jax
bfloat16            128        64   64
float8_e4m3fn         8         4    0
float8_e5m2           4         2    0
float6_e3m2fn         4         2    -
float4_e2m1fn         2         1    0
float16            1024         0    0
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
