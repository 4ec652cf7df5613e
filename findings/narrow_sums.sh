#!/bin/sh
# Shows the sum and the mean of 400 ones of narrow types in NumPy (ml_dtypes),
# JAX and ONNX's reference evaluator.
#
# Hypothesis before the run: reductions add in float32 and round once, as for
# float16 in NumPy and for bfloat16 in JAX. The mean of ones is 1.
#
# Result, ml_dtypes 0.6.0, NumPy 2.4.6, onnx 1.23.2: the sum is rounded to the
# type after each addition, and stops where a one is less than half a step: 256
# in bfloat16, 16 in e4m3, 8 in e5m2. The mean of 400 bfloat16 ones is 0.64.
# jax 0.10.2 (CPU) is right for bfloat16, but the mean of e4m3 ones is 0.56, and
# of e5m2 ones 0.16. It adds parts first, so that the limit is higher. a @ b of
# NumPy returns float32, and np.inner rounds only the result. With the option
# dtype=np.float32, sum and mean are right. The longer the array, the larger is
# the error of a reference result that mean() computes from narrow numbers.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6 onnx==1.23.2
cat >"$work/run.py" <<'EOF'
import jax.numpy as jnp
import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

N = 400


def reference(op, element):
    """Returns the result of ONNX's operator `op` of N ones, as float32."""
    model = helper.make_model(helper.make_graph(
        [helper.make_node("Cast", ["x"], ["h"], to=element),
         helper.make_node(op, ["h"], ["s"]),
         helper.make_node("Cast", ["s"], ["y"], to=TensorProto.FLOAT)],
        "sum", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [N])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]),
        opset_imports=[helper.make_opsetid("", 25)], ir_version=12)
    return ReferenceEvaluator(model).run(
        None, {"x": np.ones(N, np.float32)})[0].item()


def show(name, *values):
    print("  %-18s" % name, *("%.4g" % float(v) for v in values))


for name, element in (("float16", TensorProto.FLOAT16),
                      ("bfloat16", TensorProto.BFLOAT16),
                      ("float8_e4m3fn", None), ("float8_e5m2", None)):
    ones = jnp.ones(N, getattr(jnp, name))
    array = np.asarray(ones)
    print(name)
    show("NumPy sum, mean", array.sum(), array.mean())
    show("  float32", array.sum(dtype=np.float32), array.mean(dtype="f4"))
    show("  @, inner", array @ array, np.inner(array, array))
    show("JAX sum, mean", ones.sum(), ones.mean())
    show("  @", ones @ ones)
    if element:
        show("ONNX reference", reference("ReduceSum", element),
             reference("ReduceMean", element))
EOF
JAX_PLATFORMS=cpu "$work/venv/bin/python" -W ignore "$work/run.py" \
  >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
float16
  NumPy sum, mean    400 1
    float32          400 1
    @, inner         400 400
  JAX sum, mean      400 1
    @                400
  ONNX reference     400 1
bfloat16
  NumPy sum, mean    256 0.6406
    float32          400 1
    @, inner         400 400
  JAX sum, mean      400 1
    @                400
  ONNX reference     256 0.6406
float8_e4m3fn
  NumPy sum, mean    16 0.03906
    float32          400 1
    @, inner         400 384
  JAX sum, mean      208 0.5625
    @                384
float8_e5m2
  NumPy sum, mean    8 0.01953
    float32          400 1
    @, inner         400 384
  JAX sum, mean      64 0.1562
    @                384
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
