#!/bin/sh
# Shows how ncnn converts float32 to bfloat16, float16 and int8: a number alone,
# and the same number at the start of 33.
#
# Hypothesis before the run: bfloat16 truncates. float16 rounds to nearest, and
# flushes subnormal numbers to 0 in scalar code. A NaN stays NaN. int8 rounds
# ties away from 0.
#
# Result, ncnn 1.0.20261020 (CPU with AVX-512): the elements that are left over
# after the last whole vector are converted by other rules.
#  bfloat16  ties are rounded to even in a vector, and away from 0 in the rest.
#            There, the NaN 0x7fffffff becomes -0, and 0x7f800001 infinity.
#  float16   the same of ties, and subnormal numbers become 0 in the rest: all
#            below 6.1e-5.
#  int8      2^31 and more becomes -127, infinity, too. 0.49999997 becomes 1 in
#            a vector.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  ncnn==1.0.20261020 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import ml_dtypes
import ncnn
import numpy as np

option = ncnn.Option()
one = ncnn.Mat(np.ones(1, np.float32)).clone()
OPS = {"bfloat16": (ncnn.cast_float32_to_bfloat16,
                    ncnn.cast_bfloat16_to_float32),
       "float16": (ncnn.cast_float32_to_float16, ncnn.cast_float16_to_float32),
       "int8": (lambda m: ncnn.quantize_to_int8(m, one, option),)}


def convert(name, x):
    m = ncnn.Mat(x).clone()
    for f in OPS[name]:
        m = f(m)
    return np.array(m)


def show(name, title, x, right):
    print(name, "of", title)
    print("  %-9s" % "right", *("%9.5g" % v for v in right))
    for kind, length in (("alone", 1), ("among 33", 33)):
        print("  %-9s" % kind, *(
            "%9.5g" % convert(name, np.resize(v, length))[0] for v in x))


nan = np.array([0x7fc00000, 0x7f800001, 0x7fffffff, 0xffffffff], np.uint32)
title = " ".join("%x" % v for v in nan)
nan = nan.view(np.float32)
for name, dtype, x in (
        ("bfloat16", ml_dtypes.bfloat16,
         [1 + 2 ** -8, 1 + 3 * 2 ** -8, -1 - 2 ** -8, 2.1]),
        ("float16", np.float16, [2049, 2051, 6e-5, 1e-6])):
    x = np.array(x, np.float32)
    show(name, " ".join("%.8g" % v for v in x), x, x.astype(dtype))
    show(name, title, nan, nan.astype(dtype))
x = np.array([0.49999997, 300, 2 ** 31 - 128, 2 ** 31, np.inf, -np.inf],
             np.float32)
show("int8", " ".join("%.10g" % v for v in x), x,
     np.clip(np.rint(x), -127, 127))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
bfloat16 of 1.0039062 1.0117188 -1.0039062 2.0999999
  right             1    1.0156        -1    2.0938
  alone        1.0078    1.0156   -1.0078    2.0938
  among 33          1    1.0156        -1    2.0938
bfloat16 of 7fc00000 7f800001 7fffffff ffffffff
  right           nan       nan       nan       nan
  alone           nan       inf        -0         0
  among 33        nan       nan       nan       nan
float16 of 2049 2051 5.9999998e-05 1e-06
  right          2048      2052 6.0022e-05 1.0133e-06
  alone          2050      2052         0         0
  among 33       2048      2052 6.0022e-05 1.0133e-06
float16 of 7fc00000 7f800001 7fffffff ffffffff
  right           nan       nan       nan       nan
  alone           nan       nan       nan       nan
  among 33        nan       nan       nan       nan
int8 of 0.4999999702 300 2147483520 2147483648 inf -inf
  right             0       127       127       127       127      -127
  alone             0       127       127      -127      -127      -127
  among 33          1       127       127      -127      -127      -127
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
