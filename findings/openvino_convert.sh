#!/bin/sh
# Shows what OpenVINO's CPU plugin returns for a Convert from float32 to a 4-bit
# or 8-bit integer and back: of an input whose length is dynamic, of an input of
# static length, and of a constant.
#
# Hypothesis before the run: the three agree, since the model is the same. A
# value of type i4 is between -8 and 7, and one of u4 is at most 15.
#
# Result, OpenVINO 2026.4.1 (CPU with AVX-512): three results.
#  dynamic   saturates to the range of 8 bits: u8 of 300 is 255, of -1 is 0.
#  static    keeps the low 8 bits: u8 of 300 is 44, of -1 is 255.
#  constant  keeps the low bits of the type: i4 of 100 is 4.
# With an input, 4-bit types have the range of 8 bits: i4 of 100 is 100. A
# quantized network thus changes its results when reshape() makes its input
# static, or when an input becomes a constant.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  openvino==2026.4.1 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import numpy as np
import openvino
import openvino.opset13 as ops

core = openvino.Core()
x = np.array([2.75, 8, -9, 15.5, 16, 100, 300, -1], np.float32)
print("%-14s" % "float32", *("%5g" % v for v in x))
for name in ("i4", "u4", "i8", "u8"):
    to = getattr(openvino.Type, name)
    for kind, length in (("dynamic", -1), ("static", len(x)),
                         ("constant", None)):
        if length is None:
            source = ops.constant(x, openvino.Type.f32)
        else:
            source = ops.parameter([length], openvino.Type.f32)
        model = openvino.Model([ops.convert(ops.convert(source, to), "f32")],
                               [] if length is None else [source])
        result = core.compile_model(model, "CPU")(
            [] if length is None else [x])[0]
        print("%-14s" % f"{name} {kind}", *("%5g" % v for v in result))
EOF
"$work/venv/bin/python" "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
float32         2.75     8    -9  15.5    16   100   300    -1
i4 dynamic         2     8    -9    15    16   100   127    -1
i4 static          2     8    -9    15    16   100    44    -1
i4 constant        2    -8     7    -1     0     4    -4    -1
u4 dynamic         2     8     0    15    16   100   255     0
u4 static          2     8   247    15    16   100    44   255
u4 constant        2     8     7    15     0     4    12    15
i8 dynamic         2     8    -9    15    16   100   127    -1
i8 static          2     8    -9    15    16   100    44    -1
i8 constant        2     8    -9    15    16   100    44    -1
u8 dynamic         2     8     0    15    16   100   255     0
u8 static          2     8   247    15    16   100    44   255
u8 constant        2     8   247    15    16   100    44   255
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
