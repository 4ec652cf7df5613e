#!/bin/sh
# Shows ONNX operators in tract, an inference engine, and in ONNX's reference
# evaluator.
#
# Hypotheses before the run: tract agrees with the reference, also for NaNs in
# Max, ReduceMax, TopK and Relu. After a first look at Softplus of 8388609:
# Softplus is infinite from 89 on; ReduceLogSumExp of large numbers is right.
#
# Result, tract 0.23.9 (x86-64 with FMA), onnx 1.23.2:
#  ReduceLogSumExp  overflows: (100, 200) becomes infinity, and (-200, -201)
#                   -infinity.
#  Softplus         is infinite from 89 on (float16: from 12 on). From -17 on
#                   downwards, it is 0 instead of 4e-8 or less.
#  TopK             loses numbers after a NaN: the three largest of 5, 1, NaN,
#                   7, 9, 2 are 5, 1 and NaN.
#  NaN              Relu is 0, Sigmoid is 4e-7, Tanh is -1, and NaN times a
#                   constant 0 is 0. Max and ReduceMax ignore a NaN.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  tract==0.23.9 onnx==1.23.2 numpy==2.4.6
cat >"$work/run.py" <<'EOF_PY'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import tract
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def values(outputs):
    return [", ".join("%.3g" % v for v in np.ravel(x)) for x in outputs]


def show(op, *inputs, constants=(), outputs=1, **attributes):
    """Prints the results of op by tract and by the reference."""
    def info(name, x):
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        return helper.make_tensor_value_info(name, kind, x.shape)

    def model(infos):
        node = helper.make_node(op, names, results, **attributes)
        graph = helper.make_graph(
            [node], "g", [info(n, x) for n, x in zip(names, inputs)], infos,
            [numpy_helper.from_array(np.asarray(x), n)
             for n, x in zip(names[len(inputs):], constants)])
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    names = [f"i{i}" for i in range(len(inputs) + len(constants))]
    results = [f"o{i}" for i in range(outputs)]
    unknown = [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None)
               for n in results]
    reference = ReferenceEvaluator(model(unknown)).run(
        None, dict(zip(names, inputs)))
    onnx.save(model([info(n, np.asarray(x))
                     for n, x in zip(results, reference)]), sys.argv[1])
    engine = tract.onnx().load(sys.argv[1]).into_model().into_runnable()
    print(op, *map(str, attributes.values()), "of",
          "; ".join(values(list(inputs) + list(constants))))
    print("  tract     ", "; ".join(values(
        x.to_numpy() for x in engine.run(list(inputs)))))
    print("  reference ", "; ".join(values(reference)))


def f32(*x):
    return np.array(x, np.float32)


nan = np.nan
print(f"tract {version('tract')}, onnx {onnx.__version__}")
show("ReduceLogSumExp", f32(100, 200))
show("ReduceLogSumExp", f32(-200, -201))
show("Softplus", f32(88, 89, 1000, -10, -17, -20))
show("Softplus", np.array([11, 12], np.float16))
show("TopK", f32(5, 1, nan, 7, 9, 2), constants=[np.array([3])], outputs=2)
for op in "Relu", "Sigmoid", "Tanh":
    show(op, f32(nan, 0.5))
show("Mul", f32(nan, np.inf, 1), constants=[np.float32(0)])
show("Max", f32(nan, 1), f32(1, nan))
show("ReduceMax", f32(nan, 1, 2))
EOF_PY
"$work/venv/bin/python" -W ignore "$work/run.py" "$work/op.onnx" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
tract 0.23.9, onnx 1.23.2
ReduceLogSumExp of 100, 200
  tract      inf
  reference  200
ReduceLogSumExp of -200, -201
  tract      -inf
  reference  -200
Softplus of 88, 89, 1e+03, -10, -17, -20
  tract      88, inf, inf, 4.54e-05, 0, 0
  reference  88, 89, 1e+03, 4.54e-05, 4.14e-08, 2.06e-09
Softplus of 11, 12
  tract      11, inf
  reference  11, 12
TopK of 5, 1, nan, 7, 9, 2; 3
  tract      5, 1, nan; 0, 1, 2
  reference  nan, 9, 7; 2, 4, 3
Relu of nan, 0.5
  tract      0, 0.5
  reference  nan, 0.5
Sigmoid of nan, 0.5
  tract      4.47e-07, 0.622
  reference  nan, 0.622
Tanh of nan, 0.5
  tract      -1, 0.462
  reference  nan, 0.462
Mul of nan, inf, 1; 0
  tract      0, 0, 0
  reference  nan, nan, 0
Max of nan, 1; 1, nan
  tract      1, 1
  reference  nan, nan
ReduceMax of nan, 1, 2
  tract      2
  reference  nan
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
