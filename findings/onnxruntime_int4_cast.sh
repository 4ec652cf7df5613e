#!/bin/sh
# Shows how ONNX Runtime's Cast rounds float32 to 2-, 4- and 8-bit integers.
#
# Hypothesis before the run: one rule for all integer types. A cast to int8
# truncates toward zero, as in C and NumPy, so a cast to int4 does, too, and
# 7.5 becomes 7. That is what onnx.reference returns.
#
# Result, onnxruntime 1.32.0 (CPU), onnx 1.23.2: 8-bit types truncate; 2- and
# 4-bit types round to nearest with ties away from zero and then keep the low
# bits. A number whose truncation fits can change its sign: 7.5 becomes -8 in
# int4, 1.5 becomes -2 in int2, and -0.5 becomes 15 in uint4.
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
x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 6.5, 7.5, -8.5], np.float32)
print("%-12s" % "float32", *("%5g" % v for v in x))
for name in ("INT8", "INT4", "UINT4", "INT2"):
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Cast", ["x"], ["y"],
                              to=getattr(TensorProto, name)),
             helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT)],
            "cast",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None])],
            [helper.make_tensor_value_info("z", TensorProto.FLOAT, [None])]),
        opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), quiet, providers=["CPUExecutionProvider"])
    print("%-12s" % name, *("%5g" % v for v in session.run(None, {"x": x})[0]))
    reference = ReferenceEvaluator(model).run(None, {"x": x})[0]
    print("%-12s" % "  reference", *("%5g" % v for v in reference))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
float32        0.5   1.5   2.5  -0.5  -1.5   6.5   7.5  -8.5
INT8             0     1     2     0    -1     6     7    -8
  reference      0     1     2     0    -1     6     7    -8
INT4             1     2     3    -1    -2     7    -8     7
  reference      0     1     2     0    -1     6     7    -8
UINT4            1     2     3    15    14     7     8     7
  reference      0     1     2     0    15     6     7     8
INT2             1    -2    -1    -1    -2    -1     0    -1
  reference      0     1    -2     0    -1    -2    -1     0
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
