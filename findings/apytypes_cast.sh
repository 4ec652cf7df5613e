#!/bin/sh
# Shows how APyTypes, which simulates the arithmetic of hardware, casts numbers
# between the largest subnormal and the smallest normal number of a float type.
#
# Hypothesis before the run: from_float, cast and the arithmetic round once, as
# IEEE 754 demands. After a first look at one midpoint in f16, which cast turns
# into 0: products are right.
#
# Result, APyTypes 0.5.1: cast returns 0 if the result should round up to the
# smallest normal number, for scalars and arrays. All tested types and rounding
# modes that round such a number up have this error. In f16, 6.102e-5 becomes 0
# instead of 6.104e-5. Of all f16 numbers, 256 become 0 in e4m3 in this way.
# from_float is right for the same numbers, and so are all products of e4m3.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  apytypes==0.5.1 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
from importlib.metadata import version

import apytypes as apy
import ml_dtypes
import numpy as np


def show(name, values):
    print("%-22s" % name, *("%6.4g" % v for v in values))


print("APyTypes", version("apytypes"))
print("e4m3, from 7/8 to 1 of the smallest normal number:")
smallest = 2.0 ** -6
x = np.array([0.875, 0.89, 0.93, 0.9375, 0.95, 0.99, 1])
show("x", x)
wide = apy.APyFloatArray.from_float(x * smallest, 11, 52)
show("from_float",
     apy.APyFloatArray.from_float(x * smallest, 4, 3).to_numpy() / smallest)
for mode in "TIES_EVEN TIES_AWAY TO_POS TO_AWAY TO_ZERO".split():
    result = wide.cast(4, 3, quantization=apy.QuantizationMode[mode])
    show("cast, " + mode, result.to_numpy() / smallest)
show("cast, scalars", (float(apy.APyFloat.from_float(v, 11, 52).cast(4, 3))
                       / smallest for v in x * smallest))
value = apy.APyFloat.from_float(6.102e-5, 8, 23)
print("6.102e-5 in f16: cast %.4g, from_float %.4g" % (
    value.cast(5, 10), apy.APyFloat.from_float(6.102e-5, 5, 10)))


def wrong(seen, right):
    return np.sum((seen != right) & ~(np.isnan(seen) & np.isnan(right)))


# All f16 numbers, and all products of two e4m3 numbers. The type has infinity.
half = np.arange(65536, dtype=np.uint16).view(np.float16).astype(float)
with np.errstate(all="ignore"):
    for bits, kind in (((4, 3), ml_dtypes.float8_e4m3),
                       ((5, 2), ml_dtypes.float8_e5m2),
                       ((3, 4), ml_dtypes.float8_e3m4)):
        seen = apy.APyFloatArray.from_float(half, 5, 10).cast(*bits).to_numpy()
        print("f16 to e%dm%d: %d of 65536 wrong" % (
            *bits, wrong(seen, half.astype(kind).astype(float))))
    codes = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3)
    a, b = (v.ravel() for v in np.meshgrid(codes, codes))
    seen = (apy.APyFloatArray.from_float(a.astype(float), 4, 3) *
            apy.APyFloatArray.from_float(b.astype(float), 4, 3)).to_numpy()
    print("products of e4m3: %d of 65536 wrong" % wrong(
        seen, (a * b).astype(float)))
EOF
"$work/venv/bin/python" "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
APyTypes 0.5.1
e4m3, from 7/8 to 1 of the smallest normal number:
x                       0.875   0.89   0.93 0.9375   0.95   0.99      1
from_float              0.875  0.875  0.875      1      1      1      1
cast, TIES_EVEN         0.875  0.875  0.875      0      0      0      1
cast, TIES_AWAY         0.875  0.875  0.875      0      0      0      1
cast, TO_POS            0.875      0      0      0      0      0      1
cast, TO_AWAY           0.875      0      0      0      0      0      1
cast, TO_ZERO           0.875  0.875  0.875  0.875  0.875  0.875      1
cast, scalars           0.875  0.875  0.875      0      0      0      1
6.102e-5 in f16: cast 0, from_float 6.104e-05
f16 to e4m3: 256 of 65536 wrong
f16 to e5m2: 256 of 65536 wrong
f16 to e3m4: 128 of 65536 wrong
products of e4m3: 0 of 65536 wrong
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
