#!/bin/sh
# Shows what torchao's prototype formats MXFP4, MXFP8 and NVFP4 make of zero
# weights, of blocks of small numbers, and of transposed or reshaped tensors, on
# the CPU. The packages need 6 GB of disk, since PyPI's torch includes CUDA.
#
# Hypothesis before the run: zeros stay zeros. The smallest factor of an NVFP4
# block is the smallest e4m3 number, 2^-9. MX factors stop at 2^-127, and the
# results of smaller numbers are near the numbers, or 0. A transposed copy or a
# view of a quantized tensor has the numbers of the same operation on the
# dequantized tensor, or the operation is rejected.
#
# Result, torchao 0.18.0 (CPU):
#  zero weight   a linear layer with NVFP4WeightOnlyConfig() returns NaNs: the
#                factor of the tensor is 0, and the factor of each block 0 / 0.
#  small blocks  without a factor of the tensor, the factor of a block is at
#                least 2^-6, the smallest normal e4m3. Weights with the standard
#                deviation 0.005 have a relative error of 0.45; with all e4m3
#                factors it would be 0.13.
#  tiny blocks   MX blocks with the factor 2^-127 become half of their numbers,
#                because the numbers are divided by 2^-126. With RCEIL, the
#                numbers become 0. With FLOOR, the limits are 4.7e-38 (e2m1)
#                and 3e-36 (e4m3).
#  t().contiguous()  of an MXTensor multiplies blocks by factors of other
#                blocks, silently; the result of MXFP4 has the wrong shape, too.
#  view          of a tensor with swizzled factors mixes up the factors.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  torch==2.15.0 torchao==0.18.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import torch
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.inference_workflow import (
    NVFP4WeightOnlyConfig)
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
from torchao.quantization import quantize_

FP4, FP8 = torch.float4_e2m1fn_x2, torch.float8_e4m3fn
torch.manual_seed(0)

for name, weight in (("zeros", torch.zeros(32, 64)),
                     ("random", torch.randn(32, 64))):
    layer = torch.nn.Linear(64, 32, bias=False, dtype=torch.bfloat16)
    layer.weight.data.copy_(weight)
    model = torch.nn.Sequential(layer)
    quantize_(model, NVFP4WeightOnlyConfig())
    y = model(torch.ones(4, 64, dtype=torch.bfloat16))
    print("NVFP4 linear, weight %-7s NaNs %3d of %d" % (
        name, y.isnan().sum(), y.numel()))


def all_factors(x):
    """Quantizes rows of 16, with the e4m3 factor nearest to maximum / 6."""
    s = (x.abs().amax(1, keepdim=True) / 6).to(FP8).float()
    codes = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6])
    nearest = codes[(x.abs() / s)[..., None].sub(codes).abs().argmin(-1)]
    return x.sign() * nearest * s


for sd in (0.05, 0.02, 0.01, 0.005):
    x = torch.randn(4096, 16) * sd
    lost = [((y - x).norm() / x.norm()).item() for y in (
        NVFP4Tensor.to_nvfp4(x).dequantize(), all_factors(x))]
    print("NVFP4 of N(0, %-5g) error %.2f, all factors %.2f" % (sd, *lost))

for name, dtype, powers in (("MXFP4", FP4, (-124, -125)),
                            ("MXFP8", FP8, (-118, -119))):
    for power in powers:
        x = torch.zeros(1, 32)
        x[0, 0] = 2.0 ** power
        print("%s of 2^%d, result / 2^%d:" % (name, power, power), *(
            "%s %g" % (mode.name, MXTensor.to_mx(x, dtype, 32, mode)
                       .dequantize(torch.float32)[0, 0] / x[0, 0])
            for mode in ScaleCalculationMode))

x = torch.randn(256, 256)
tensors = {
    "MXFP4": MXTensor.to_mx(x, FP4, 32),
    "MXFP8": MXTensor.to_mx(x, FP8, 32),
    "NVFP4": NVFP4Tensor.to_nvfp4(x),
    "MXFP8 swizzled": MXTensor.to_mx(x, FP8, 32, is_swizzled_scales=True),
    "NVFP4 swizzled": NVFP4Tensor.to_nvfp4(x, is_swizzled_scales=True)}
operations = {"t()": lambda t: t.t(),
              "t().contiguous()": lambda t: t.t().contiguous(),
              "view(-1, 128)": lambda t: t.view(-1, 128)}
print("%-15s" % "wrong numbers", *("%17s" % o for o in operations))
for name, t in tensors.items():
    row = []
    for f in operations.values():
        y, want = f(t).dequantize(torch.float32), f(t.dequantize())
        row.append("%d %%" % (100 * (y != want).float().mean())
                   if y.shape == want.shape
                   else "shape %s" % "x".join(map(str, y.shape)))
    print("%-15s" % name, *("%17s" % r for r in row))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" 2>"$work/log" >"$work/seen" ||
  { cat "$work/log"; exit 1; }
cat "$work/seen"
cat >"$work/want" <<'EOF'
NVFP4 linear, weight zeros   NaNs 128 of 128
NVFP4 linear, weight random  NaNs   0 of 128
NVFP4 of N(0, 0.05 ) error 0.10, all factors 0.10
NVFP4 of N(0, 0.02 ) error 0.13, all factors 0.10
NVFP4 of N(0, 0.01 ) error 0.23, all factors 0.13
NVFP4 of N(0, 0.005) error 0.45, all factors 0.13
MXFP4 of 2^-124, result / 2^-124: FLOOR 1 RCEIL 1 CEIL 1 EVEN 1
MXFP4 of 2^-125, result / 2^-125: FLOOR 0.5 RCEIL 0 CEIL 0.5 EVEN 0.5
MXFP8 of 2^-118, result / 2^-118: FLOOR 1 RCEIL 1 CEIL 1 EVEN 1
MXFP8 of 2^-119, result / 2^-119: FLOOR 0.5 RCEIL 0 CEIL 0.5 EVEN 0.5
wrong numbers                 t()  t().contiguous()     view(-1, 128)
MXFP4                         0 %     shape 128x512               0 %
MXFP8                         0 %              35 %               0 %
NVFP4                         0 %               0 %               0 %
MXFP8 swizzled                0 %              35 %              35 %
NVFP4 swizzled                0 %               0 %              82 %
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
