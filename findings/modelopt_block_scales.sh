#!/bin/sh
# Shows what NVIDIA's Model Optimizer makes of blocks of zeros, of NaNs and of
# ties, in FP8, NVFP4, MXFP4 and MXFP8, on the CPU. The packages need 6 GB of
# disk, since PyPI's torch includes CUDA.
#
# Hypothesis before the run: zeros stay zeros, with their sign. e2m1 rounds ties
# to even, in MXFP4 and NVFP4. A block with a NaN becomes NaN.
#
# Result, nvidia-modelopt 0.47.0 (CPU):
#  zeros, FP8    a block of zeros becomes NaN by mtq.compress, and with it all
#                results of the layer, or those of the row. mtq.quantize, which
#                the user tests, has no NaNs.
#  zeros, NVFP4  a tensor of zeros becomes NaN.
#  MXFP4         rounds ties toward zero: 3.5, 1.75 and 0.75 become 3, 1.5 and
#                0.5. NVFP4 rounds them to even. 0 becomes -0.
#  NaN, inf      a block of MXFP4 becomes -0. In MXFP8, the NaN stays, and the
#                other numbers of the block become 2.6e-36.
#  INT4, f16     the stored factor is 7 / maximum, in f16: a block whose maximum
#                is below 1.07e-4 becomes 0.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  nvidia-modelopt==0.47.0 huggingface_hub==2.4.0 requests==2.34.2 \
  torch==2.15.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import contextlib
import sys

import modelopt.torch.quantization as mtq
import torch
from modelopt.torch.quantization.qtensor import (
    INT4QTensor, MXFP4QTensor, NVFP4QTensor)
from modelopt.torch.quantization.qtensor.mxfp8_tensor import MXFP8QTensor

NAN, INF = float("nan"), float("inf")


def nvfp4(x):
    q, s, g = NVFP4QTensor.quantize(x, 16)
    return q.dequantize(scale=s, double_scale=g, block_sizes={-1: 16})


def mxfp4(x):
    q, s = MXFP4QTensor.quantize(x, 32)
    return q.dequantize(scale=s, block_sizes={-1: 32})


def mxfp8(x):
    q, s = MXFP8QTensor.quantize(x)
    return q.dequantize(scale=s)


def int4(x):
    q, s = INT4QTensor.quantize(x, 32)
    return q.dequantize(scale=s, block_sizes={-1: 32})


torch.manual_seed(0)
x = torch.randn(4, 256)
print("NaNs of 512 results".ljust(45), "quantize compress")
for name, config in (
        ("blocks of 128x128", mtq.FP8_2D_BLOCKWISE_WEIGHT_ONLY_CFG),
        ("tensor", mtq.FP8_DEFAULT_CFG),
        ("channels", mtq.FP8_PER_CHANNEL_PER_TOKEN_CFG)):
    for zeros, rows, columns in (("no zeros", 0, 0), ("a block", 128, 128),
                                 ("a row", 1, 256), ("all", 128, 256)):
        layer = torch.nn.Linear(256, 128, bias=False)
        layer.weight.data[:rows, :columns] = 0
        model = torch.nn.Sequential(layer)
        with contextlib.redirect_stdout(sys.stderr):
            mtq.quantize(model, config, lambda m: m(x))
            before = model(x).isnan().sum()
            mtq.compress(model)
            after = model(x).isnan().sum()
        print("FP8 of %-17s zero weights: %-8s %8d %8d" % (
            name, zeros, before, after))

ties = [6, 5, 3.5, 2.5, 1.75, 1.25, 0.75, 0.25]
print("%-16s %s" % ("", " ".join("%g" % v for v in ties)))
for f in (mxfp4, nvfp4):
    x = torch.zeros(1, 32)
    x[0, :8] = torch.tensor(ties)
    print("%-16s %s" % (f.__name__, " ".join("%g" % v for v in f(x)[0, :9])))
for f, dtype, values in (
        (nvfp4, "float32", [0, 0]), (mxfp4, "float32", [0, 0]),
        (mxfp4, "float32", [NAN, 6, 1]), (mxfp8, "float32", [NAN, 6, 1]),
        (mxfp4, "float32", [6, INF, 1]), (int4, "float16", [1.1e-4, -5e-5]),
        (int4, "float16", [1e-4, -5e-5]), (int4, "float32", [1e-4, -5e-5])):
    x = torch.zeros(1, 32, dtype=getattr(torch, dtype))
    x[0, :len(values)] = torch.tensor(values).to(x.dtype)
    with contextlib.redirect_stdout(sys.stderr):
        y = f(x)
    print("%-8s %-7s %-14s -> %s" % (f.__name__, dtype, *(
        " ".join("%.3g" % v for v in row)
        for row in (values, y[0, :len(values)]))))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" 2>"$work/log" >"$work/seen" ||
  { cat "$work/log"; exit 1; }
cat "$work/seen"
cat >"$work/want" <<'EOF'
NaNs of 512 results                           quantize compress
FP8 of blocks of 128x128 zero weights: no zeros        0        0
FP8 of blocks of 128x128 zero weights: a block         0      512
FP8 of blocks of 128x128 zero weights: a row           0        0
FP8 of blocks of 128x128 zero weights: all             0      512
FP8 of tensor            zero weights: no zeros        0        0
FP8 of tensor            zero weights: a block         0        0
FP8 of tensor            zero weights: a row           0        0
FP8 of tensor            zero weights: all             0      512
FP8 of channels          zero weights: no zeros        0        0
FP8 of channels          zero weights: a block         0        0
FP8 of channels          zero weights: a row           0        4
FP8 of channels          zero weights: all             0      512
                 6 5 3.5 2.5 1.75 1.25 0.75 0.25
mxfp4            6 4 3 2 1.5 1 0.5 0 -0
nvfp4            6 4 4 2 2 1 1 0 0
nvfp4    float32 0 0            -> nan nan
mxfp4    float32 0 0            -> -0 -0
mxfp4    float32 nan 6 1        -> -0 -0 -0
mxfp8    float32 nan 6 1        -> nan 2.63e-36 2.63e-36
mxfp4    float32 6 inf 1        -> -0 -0 -0
int4     float16 0.00011 -5e-05 -> 0.00011 -4.71e-05
int4     float16 0.0001 -5e-05  -> 0 -0
int4     float32 0.0001 -5e-05  -> 0.0001 -5.71e-05
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
