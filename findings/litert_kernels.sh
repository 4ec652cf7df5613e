#!/bin/sh
# Shows what LiteRT (TensorFlow Lite) makes of models of one operator on the
# CPU, with its three sets of kernels: XNNPACK (the default), the built-in ones
# and the reference ones.
#
# Hypothesis before the run: the three agree on EXP. Max pooling drops a NaN.
# QUANTIZE saturates. It rounds ties to even in XNNPACK, and away from 0 in the
# others. CAST to float16 rounds to nearest even.
#
# Result, ai-edge-litert 2.3.0 (CPU with AVX-512): they disagree.
#  SIN, COS   XNNPACK's sine of 1e9 is wrong in the third digit, that of 1e10 is
#             -4891, and that of 1e20 is NaN.
#  EXP        XNNPACK's of NaN is 0, and that of 88.5 is infinite.
#  RSQRT      XNNPACK's of 0 is NaN.
#  QUANTIZE   to int8: 2^31 and more, and infinity, become -128 without XNNPACK.
#             NaN becomes 127 with XNNPACK, and -128 without it. To int16, all
#             three turn infinity into -32768. Ties are rounded to even by
#             XNNPACK, away from 0 by the reference kernels, and by the built-in
#             ones to even, but away from 0 in elements after the last vector.
#  MAX_POOL   a NaN in the first place: -inf by XNNPACK, 3 by the others
#  REDUCE_MIN of -2, NaN, 3, 4 is 3, by the reference kernels -2.
#  CAST       from float64 to float16 rounds to float32 first (all three).
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

KERNELS = (("XNNPACK", OpResolverType.BUILTIN),
           ("built-in", OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES),
           ("reference", OpResolverType.BUILTIN_REF))
nan, inf = float("nan"), float("inf")


def model(op, options, x, shape, dtype, axis):
    """Returns a model of one operator of a tensor like x. An axis is a second,
    constant operand."""
    graph, result = schema.SubGraphT(), schema.ModelT()
    graph.tensors, result.buffers = [], [schema.BufferT()]
    for name, size, kind in (("x", x.shape, x.dtype), ("y", shape, dtype),
                             ("axis", (1,), "int32"))[:2 + (axis is not None)]:
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = name, list(size), 0
        tensor.type = getattr(schema.TensorType, np.dtype(kind).name.upper())
        if op == "QUANTIZE" and name == "y":
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = [1.0]
            tensor.quantization.zeroPoint = [0]
        graph.tensors.append(tensor)
    operator, code = schema.OperatorT(), schema.OperatorCodeT()
    operator.inputs, operator.outputs = [0], [1]
    if axis is not None:
        data = schema.BufferT()
        data.data = np.array([axis], np.int32).view(np.uint8)
        result.buffers.append(data)
        graph.tensors[2].buffer = 1
        operator.inputs.append(2)
    if options:
        name = type(options).__name__[:-1]
        operator.builtinOptions = options
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, name)
    code.builtinCode = getattr(schema.BuiltinOperator, op)
    code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
    graph.operators, graph.inputs, graph.outputs = [operator], [0], [1]
    result.version, result.subgraphs, result.operatorCodes = 3, [graph], [code]
    builder = flatbuffers.Builder(1024)
    builder.Finish(result.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def show(title, op, x, options=None, shape=None, dtype="float32", axis=None,
         source="float32", last=0):
    x = np.array(x, source)
    content = model(op, options, x, shape or x.shape, dtype, axis)
    print(title)
    for name, kind in KERNELS:
        interpreter = Interpreter(model_content=content, num_threads=1,
                                  experimental_op_resolver_type=kind)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        y = interpreter.get_tensor(
            interpreter.get_output_details()[0]["index"])
        print("  %-9s" % name, *("%9.6g" % v for v in np.ravel(y)[-last:]))


large = [[1e6, 1e8, 1e9, 1e10, 1e20]]
for op, f in (("SIN", np.sin), ("COS", np.cos)):
    show("%s of 1e6 1e8 1e9 1e10 1e20" % op, op, large)
    print("  right    ", *("%9.6g" % f(v) for v in np.float32(large[0]).astype(
        float)))
show("EXP of nan 88.5 1", "EXP", [[nan, 88.5, 1]])
show("RSQRT of 0 4", "RSQRT", [[0, 4]])
for dtype in ("int8", "int16"):
    show("QUANTIZE to %s of 300 2^31 inf -inf nan" % dtype, "QUANTIZE",
         [[300, 2 ** 31, inf, -inf, nan]], schema.QuantizeOptionsT(),
         dtype=dtype)
show("QUANTIZE to int8 of 17 times 2.5, the last four", "QUANTIZE",
     [[2.5] * 17], schema.QuantizeOptionsT(), dtype="int8", last=4)
pool = schema.Pool2DOptionsT()
pool.strideW = pool.strideH = pool.filterWidth = pool.filterHeight = 2
pool.padding = schema.Padding.VALID
for x in ([nan, 3, 2, 1], [4, nan, 2, 1]):
    show("MAX_POOL of %s" % " ".join("%g" % v for v in x), "MAX_POOL_2D",
         np.reshape(x, (1, 2, 2, 1)), pool, (1, 1, 1, 1))
for op, x in (("REDUCE_MIN", [-2, nan, 3, 4]), ("REDUCE_MAX", [1, 2, 3, nan])):
    show("%s of %s" % (op, " ".join("%g" % v for v in x)), op, [x],
         schema.ReducerOptionsT(), (1,), axis=1)
cast = schema.CastOptionsT()
cast.inDataType = schema.TensorType.FLOAT64
cast.outDataType = schema.TensorType.FLOAT16
x = [[2049 + 2 ** -30, 65519.9999999]]
show("CAST of 2049 + 2^-30 65519.9999999", "CAST", x, cast, dtype="float16",
     source="float64")
print("  right    ", *("%9.6g" % v for v in np.array(x[0]).astype(np.float16)))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" 2>"$work/log" >"$work/seen" ||
  { cat "$work/log"; exit 1; }
cat "$work/seen"
cat >"$work/want" <<'EOF'
SIN of 1e6 1e8 1e9 1e10 1e20
  XNNPACK   -0.349992   0.93158   0.54721  -4891.34       nan
  built-in  -0.349993  0.931639  0.545843 -0.487506  0.656577
  reference -0.349993  0.931639  0.545843 -0.487506  0.656577
  right     -0.349994  0.931639  0.545843 -0.487506  0.656577
COS of 1e6 1e8 1e9 1e10 1e20
  XNNPACK    0.936753 -0.363537  0.836995  -4901.76       nan
  built-in   0.936752 -0.363385  0.837887   0.87312  0.754259
  reference  0.936752 -0.363385  0.837887   0.87312  0.754259
  right      0.936752 -0.363385  0.837887   0.87312  0.754259
EXP of nan 88.5 1
  XNNPACK           0       inf   2.71828
  built-in        nan 2.72309e+38   2.71828
  reference       nan 2.72309e+38   2.71828
RSQRT of 0 4
  XNNPACK         nan       0.5
  built-in        inf       0.5
  reference       inf       0.5
QUANTIZE to int8 of 300 2^31 inf -inf nan
  XNNPACK         127       127       127      -128       127
  built-in        127      -128      -128      -128      -128
  reference       127      -128      -128      -128      -128
QUANTIZE to int16 of 300 2^31 inf -inf nan
  XNNPACK         300    -32768    -32768    -32768    -32768
  built-in        300    -32768    -32768    -32768    -32768
  reference       300    -32768    -32768    -32768    -32768
QUANTIZE to int8 of 17 times 2.5, the last four
  XNNPACK           2         2         2         2
  built-in          2         2         2         3
  reference         3         3         3         3
MAX_POOL of nan 3 2 1
  XNNPACK        -inf
  built-in          3
  reference         3
MAX_POOL of 4 nan 2 1
  XNNPACK           4
  built-in          4
  reference         4
REDUCE_MIN of -2 nan 3 4
  XNNPACK           3
  built-in          3
  reference        -2
REDUCE_MAX of 1 2 3 nan
  XNNPACK         nan
  built-in        nan
  reference         3
CAST of 2049 + 2^-30 65519.9999999
  XNNPACK        2048       inf
  built-in       2048       inf
  reference      2048       inf
  right          2050     65504
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
