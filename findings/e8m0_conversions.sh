#!/bin/sh
# Shows how ml_dtypes, onnx.reference and PyTorch convert f32 to scale factors
# of type e8m0 (powers of two). The packages need 6 GB of disk, since PyPI's
# torch includes CUDA.
#
# Hypotheses before the run: ml_dtypes rounds ties to the even code, so that 3
# becomes 2, as for its other types; zero and negative numbers become NaN there.
# PyTorch and ONNX round ties up; zero becomes 2^-127, the least value, and
# negative numbers lose their sign. Values of e8m0 are converted to themselves.
#
# Result, ml_dtypes 0.6.0, onnx 1.22.0, torch 2.15.0: all three round ties up
# (3 becomes 4). In ml_dtypes, zero and negative numbers become NaN; in the two
# others, zero becomes 2^-127 and -1 becomes 1. In onnx.reference, 2^-127, the
# least value of e8m0 itself, becomes 2^-126 with round_mode "up" (the default),
# and so does every smaller positive number, but zero does not.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  torch==2.15.0 onnx==1.22.0 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/e8m0.py" <<'PY'
import sys

import ml_dtypes
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

x = np.array([1.4999, 1.5, 3, 0, -1, 2.0**-127, 2.0**-149, np.inf],
             np.float32)


def reference(mode):
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0,
                            round_mode=mode)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, [len(x)])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT8E8M0,
                                       [len(x)])])
    model = helper.make_model(graph,
                              opset_imports=[helper.make_opsetid("", 24)])
    return np.asarray(ReferenceEvaluator(model).run(None, {"x": x})[0])


def codes(y):
    return y.view(np.uint8).tolist()


e8m0 = torch.float8_e8m0fnu
cases = {
    "ml_dtypes": (codes(x.astype(ml_dtypes.float8_e8m0fnu)),
                  [127, 128, 129, 255, 255, 0, 0, 255]),
    "torch": (torch.from_numpy(x).to(e8m0).view(torch.uint8).tolist(),
              [127, 128, 129, 0, 127, 0, 0, 255]),
    "onnx, up": (codes(reference("up")), [128, 128, 129, 0, 127, 1, 1, 255]),
    "onnx, nearest": (codes(reference("nearest")),
                      [127, 128, 129, 0, 127, 0, 0, 255]),
    "onnx, down": (codes(reference("down")),
                   [127, 127, 128, 0, 127, 0, 0, 255])}
print(f"ml_dtypes {ml_dtypes.__version__}, onnx {onnx.__version__}, "
      f"torch {torch.__version__}; codes of", *x)
status = 0
for name, (got, want) in cases.items():
    print(f"{name:15}", *got)
    if got != want:
        print("  expected      ", *want)
        status = 1
sys.exit(status)
PY
"$work/venv/bin/python" "$work/e8m0.py"
# SPDX-License-Identifier: MIT
