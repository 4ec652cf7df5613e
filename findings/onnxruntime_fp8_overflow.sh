#!/bin/sh
# Shows which float8 ONNX Runtime's Cast returns for numbers just above the
# largest finite float8, with saturate = 0.
#
# Hypothesis before the run: the result is that of onnx.reference. The table of
# the operator Cast says: a value whose rounding exceeds FLT_MAX becomes NaN in
# E4M3FN (FLT_MAX 448) and Inf in E5M2 (FLT_MAX 57344).
#
# Result, onnxruntime 1.32.0 (CPU), onnx 1.23.2: two intervals differ.
#  E4M3FN  464.5 to 480 NaN, 480 to below 496 the finite 448, from 496 NaN.
#          A larger number thus gives a smaller result.
#  E5M2    61440 to below 65536 NaN, from 65536 Inf. The reference has Inf in
#          all of it. 61440 is the first number that does not round to 57344.
# Float16 inputs behave alike. FNUZ types agree with the reference on all
# float16 values, and so do all four types with saturate = 1.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

quiet = onnxruntime.SessionOptions()
quiet.log_severity_level = 4


def cast(x, to, saturate):
    """Returns x after a Cast to `to` and back: by ONNX Runtime, by onnx."""
    source = helper.np_dtype_to_tensor_dtype(x.dtype)
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Cast", ["x"], ["y"], to=to, saturate=saturate),
             helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT)],
            "cast",
            [helper.make_tensor_value_info("x", source, [None])],
            [helper.make_tensor_value_info("z", TensorProto.FLOAT, [None])]),
        opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), quiet, providers=["CPUExecutionProvider"])
    with np.errstate(all="ignore"):
        return (session.run(None, {"x": x})[0],
                ReferenceEvaluator(model).run(None, {"x": x})[0])


def same(a, b):
    return (a == b) | (np.isnan(a) & np.isnan(b))


halves = np.arange(65536, dtype=np.uint16).view(np.float16)
for name in ("E4M3FN", "E4M3FNUZ", "E5M2", "E5M2FNUZ"):
    to = getattr(TensorProto, "FLOAT8" + name)
    ours, reference = cast(halves, to, 1)
    assert same(ours, reference).all(), name
    ours, reference = cast(halves, to, 0)
    differ = halves[~same(ours, reference)]
    print(f"{name:9}", len(differ), "float16 values differ", *(
        [] if len(differ) == 0 else
        ["between", float(abs(differ).min()), "and", float(abs(differ).max())]))

for name, values in (("E4M3FN", [464, 464.5, 479, 480, 495, 495.99, 496, 1e6]),
                     ("E5M2", [61439, 61440, 65504, 65535, 65536, 1e6])):
    ours, reference = cast(np.array(values, np.float32),
                           getattr(TensorProto, "FLOAT8" + name), 0)
    for row in zip(values, ours, reference):
        print(f"{name:9}%9g  ONNX Runtime %6g  reference %6g" % row)
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
E4M3FN    128 float16 values differ between 480.0 and 495.75
E4M3FNUZ  0 float16 values differ
E5M2      256 float16 values differ between 61440.0 and 65504.0
E5M2FNUZ  0 float16 values differ
E4M3FN         464  ONNX Runtime    448  reference    448
E4M3FN       464.5  ONNX Runtime    nan  reference    nan
E4M3FN         479  ONNX Runtime    nan  reference    nan
E4M3FN         480  ONNX Runtime    448  reference    nan
E4M3FN         495  ONNX Runtime    448  reference    nan
E4M3FN      495.99  ONNX Runtime    448  reference    nan
E4M3FN         496  ONNX Runtime    nan  reference    nan
E4M3FN       1e+06  ONNX Runtime    nan  reference    nan
E5M2         61439  ONNX Runtime  57344  reference  57344
E5M2         61440  ONNX Runtime    nan  reference    inf
E5M2         65504  ONNX Runtime    nan  reference    inf
E5M2         65535  ONNX Runtime    nan  reference    inf
E5M2         65536  ONNX Runtime    inf  reference    inf
E5M2         1e+06  ONNX Runtime    inf  reference    inf
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
