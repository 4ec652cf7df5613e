#!/bin/sh
# Shows what ONNX Runtime's reductions return for tensors with one NaN.
#
# Hypothesis before the run: a NaN is either the result, as in onnx.reference,
# or it is ignored, so that the result is the maximum of the other numbers.
#
# Result, onnxruntime 1.32.0 (CPU, x86-64): neither. The result depends on the
# position of the NaN, and numbers beside it can get lost, too.
#  ReduceMax      is 2 of 1, NaN, 2, 3, and NaN of NaN, 1, 2, 3
#  ReduceMin      is 3 of 3, NaN, 4, 1
#  GlobalMaxPool  is 2 of 3, 2, NaN, 1: the 3 before the NaN is lost
#  Hardmax        marks the 2 of 1, NaN, 2, 3, and nothing of NaN, 1, 2, 3
#  ArgMax         ignores a NaN, unless it is the first element
#  Unique         drops the NaN, or, if it is the first element, all numbers
# TopK agrees with onnx.reference. The maximum of a tensor with a NaN, from
# which a scale factor is computed, can thus be finite, and below the largest
# number.
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
nan = float("nan")


def run(op, x, element=TensorProto.FLOAT, **attributes):
    """Returns the result of `op` of x: by ONNX Runtime and by onnx."""
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node(op, ["x"], ["y"], **attributes)], op,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
            [helper.make_tensor_value_info("y", element, None)]),
        opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), quiet, providers=["CPUExecutionProvider"])
    return (session.run(None, {"x": x})[0],
            ReferenceEvaluator(model).run(None, {"x": x})[0])


def text(values):
    return " ".join("%g" % v for v in np.ravel(values))


for numbers in ([nan, 1, 2, 3], [1, nan, 2, 3], [3, 2, nan, 1],
                [3, nan, 4, 1]):
    x = np.array(numbers, np.float32)
    print(text(x))
    for op, result in (
            ("ReduceMax", run("ReduceMax", x)),
            ("ReduceMin", run("ReduceMin", x)),
            ("ArgMax", run("ArgMax", x, TensorProto.INT64, axis=0)),
            ("GlobalMaxPool", run("GlobalMaxPool", x.reshape(1, 1, 4))),
            ("Hardmax", run("Hardmax", x)),
            ("Unique", run("Unique", x))):
        print("  %-14s %-10s reference %s" % (op, *map(text, result)))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
nan 1 2 3
  ReduceMax      nan        reference nan
  ReduceMin      nan        reference nan
  ArgMax         0          reference 0
  GlobalMaxPool  3          reference nan
  Hardmax        0 0 0 0    reference 1 0 0 0
  Unique         nan        reference 1 2 3 nan
1 nan 2 3
  ReduceMax      2          reference nan
  ReduceMin      1          reference nan
  ArgMax         3          reference 1
  GlobalMaxPool  3          reference nan
  Hardmax        0 0 1 0    reference 0 1 0 0
  Unique         1 2 3      reference 1 2 3 nan
3 2 nan 1
  ReduceMax      3          reference nan
  ReduceMin      1          reference nan
  ArgMax         0          reference 2
  GlobalMaxPool  2          reference nan
  Hardmax        1 0 0 0    reference 0 0 1 0
  Unique         1 2 3      reference 1 2 3 nan
3 nan 4 1
  ReduceMax      4          reference nan
  ReduceMin      3          reference nan
  ArgMax         2          reference 1
  GlobalMaxPool  4          reference nan
  Hardmax        0 0 1 0    reference 0 1 0 0
  Unique         1 3 4      reference 1 3 4 nan
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
