#!/bin/sh
# Shows what Halide's cast from float32 to bfloat16 and float16 makes of NaNs.
#
# Hypothesis before the run: a NaN stays a NaN, for all targets.
#
# Result, halide 21.0.0, x86-64, also with the feature strict_float: the cast to
# bfloat16 rounds the bits of a NaN like those of a number. 0x7fffffff, the NaN
# that NVIDIA GPUs compute, becomes -0, and 0x7f800001 becomes infinity. The
# cast to float16 makes every NaN an infinity if the target has no f16c. With
# f16c, a NaN stays a NaN. All other tested numbers (those of float16, and the
# middles between two numbers of bfloat16) are rounded to nearest even.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  halide==21.0.0 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import halide as hl
import ml_dtypes
import numpy as np

TYPES = {"bfloat16": (hl.BFloat(16), ml_dtypes.bfloat16),
         "float16": (hl.Float(16), np.float16)}
TARGET = "x86-64-linux-strict_float"


def cast(x, name, target):
    """Returns the numbers x of float32 cast by Halide to the type `name`."""
    i, source, f = hl.Var("i"), hl.ImageParam(hl.Float(32), 1), hl.Func("f")
    f[i] = hl.reinterpret(hl.UInt(16), hl.cast(TYPES[name][0], source[i]))
    source.set(hl.Buffer(x))
    bits = np.array(f.realize([len(x)], hl.Target(target)))
    return bits.view(TYPES[name][1]).astype(np.float32)


nan = np.array([0x7fc00000, 0xffc00000, 0x7f800001, 0x7fffffff, 0xffffffff],
               np.uint32)
print("NaNs".ljust(23), *("%x" % v for v in nan))
halves = np.arange(65536, dtype=np.uint32)
numbers = np.concatenate([
    halves.astype(np.uint16).view(np.float16).astype(np.float32),
    (halves << 16 | 0x8000).view(np.float32)])
numbers = numbers[~np.isnan(numbers)]
for name in TYPES:
    for features in ("", "-avx-f16c-sse41"):
        print("%-23s" % (name + features), *("%g" % v for v in cast(
            nan.view(np.float32), name, TARGET + features)))
    with np.errstate(all="ignore"):
        right = numbers.astype(TYPES[name][1]).astype(np.float32)
    print("  other numbers that differ",
          np.sum(cast(numbers, name, TARGET) != right))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" | grep -v ^Warning: \
  >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
NaNs                    7fc00000 ffc00000 7f800001 7fffffff ffffffff
bfloat16                nan nan inf -0 0
bfloat16-avx-f16c-sse41 nan nan inf -0 0
  other numbers that differ 0
float16                 inf -inf inf inf -inf
float16-avx-f16c-sse41  nan nan nan nan nan
  other numbers that differ 0
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
