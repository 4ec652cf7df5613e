#!/bin/sh
# Shows what OpenVINO's CPU plugin returns for a Convert from float32 to a
# 16-bit or 8-bit float and back: of an input of static length, of an input
# whose length is dynamic, and of a constant.
#
# Hypothesis before the run: the three agree, and round to nearest even.
#
# Result, OpenVINO 2026.4.1 (CPU with AVX-512):
#  bf16    a static shape rounds to nearest even. With a dynamic shape or a
#          constant, half of the results are truncated: those whose last bit is
#          0. 1.1 (0x3f8ccccd) becomes 1.09375 (0x3f8c), not 1.1015625. A model
#          thus changes its results when reshape() makes its input static.
#  f16     inputs are not rounded: the two conversions are removed, so that
#          65519 stays 65519, and 1e6 stays 1e6. A constant is rounded.
#  f8e8m0  0 and -2.5 become 2^-127 as inputs, and 0 as constants. 3 becomes 2,
#          where ml_dtypes rounds to 4.
# f8e4m3 agrees with ml_dtypes on all three paths.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  openvino==2026.4.1 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import ml_dtypes
import numpy as np
import openvino
from openvino import opset13

X = {"bf16": [1.1, -1.1, 3.15, 0.001, 1e-5],
     "f16": [1.1, 65519, 1e6, 1e-9, 2e-6],
     "f8e4m3": [1.1, 464, 465, -500, 0.0155],
     "f8e8m0": [1.1, 3, 3.5, 0, -2.5]}
TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16,
         "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e8m0": ml_dtypes.float8_e8m0fnu}
core = openvino.Core()


def run(x, name, kind):
    """Returns x converted to the type `name` and back."""
    shape = {"static": [len(x)], "dynamic": openvino.PartialShape([-1]),
             "constant": [1]}[kind]
    given = opset13.parameter(shape, openvino.Type.f32)
    source = opset13.constant(x) if kind == "constant" else given
    back = opset13.convert(opset13.convert(source, name), "f32")
    model = core.compile_model(openvino.Model([back], [given]), "CPU",
                               {"INFERENCE_PRECISION_HINT": "f32"})
    return model([x[:1] if kind == "constant" else x])[0]


def show(name, values):
    print("%-10s" % name, *("%11.7g" % v for v in values))


for name, numbers in X.items():
    x = np.array(numbers, np.float32)
    show(name, x)
    for kind in ("static", "dynamic", "constant"):
        show("  " + kind, run(x, name, kind))
    with np.errstate(all="ignore"):
        show("  expected", x.astype(TYPES[name]).astype(np.float32))
x = np.arange(0x3f800000, 0x40000000, 77, np.uint32)
rule = x + ((x & 0x10000) >> 1) & 0xffff0000
for kind in ("static", "dynamic", "constant"):
    got = run(x.view(np.float32), "bf16", kind).view(np.uint32)
    print("bf16, %-8s add 0x8000 if the last bit is 1, then truncate:" % kind,
          (got == rule).all())
EOF
"$work/venv/bin/python" "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
bf16               1.1        -1.1        3.15       0.001       1e-05
  static      1.101562   -1.101562     3.15625 0.0009994507 1.001358e-05
  dynamic      1.09375    -1.09375     3.15625 0.0009994507 1.001358e-05
  constant     1.09375    -1.09375     3.15625 0.0009994507 1.001358e-05
  expected    1.101562   -1.101562     3.15625 0.0009994507 1.001358e-05
f16                1.1       65519     1000000       1e-09       2e-06
  static           1.1       65519     1000000       1e-09       2e-06
  dynamic          1.1       65519     1000000       1e-09       2e-06
  constant    1.099609       65504         inf           0 2.026558e-06
  expected    1.099609       65504         inf           0 2.026558e-06
f8e4m3             1.1         464         465        -500      0.0155
  static         1.125         448         nan         nan    0.015625
  dynamic        1.125         448         nan         nan    0.015625
  constant       1.125         448         nan         nan    0.015625
  expected       1.125         448         nan         nan    0.015625
f8e8m0             1.1           3         3.5           0        -2.5
  static             1           2           4 5.877472e-39 5.877472e-39
  dynamic            1           2           4 5.877472e-39 5.877472e-39
  constant           1           2           4           0           0
  expected           1           4           4         nan         nan
bf16, static   add 0x8000 if the last bit is 1, then truncate: False
bf16, dynamic  add 0x8000 if the last bit is 1, then truncate: True
bf16, constant add 0x8000 if the last bit is 1, then truncate: True
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
