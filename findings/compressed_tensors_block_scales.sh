#!/bin/sh
# Shows what compressed-tensors, the library of the quantized files of vLLM,
# makes of f16 weights and of NaNs in NVFP4, MXFP4 and MXFP8. The packages need
# 6 GB of disk, since PyPI's torch includes CUDA.
#
# Hypothesis before the run: f16 weights have the results of the same numbers in
# f32 or bf16, up to rounding. Finite blocks stay finite. A block with a NaN
# becomes NaN, in the file (compress, decompress) as in the calibration
# (fake_quantize).
#
# Result, compressed-tensors 0.20.1 (CPU):
#  NVFP4, f16    the global scale is 2688 / maximum, in f16. It overflows if the
#                maximum is below 0.041, as that of many weights, and is then
#                replaced by 1: weights with the standard deviation 0.005 have
#                the error 0.14 instead of 0.10, and 0.002 the error 0.96.
#  MX, f16       a block with 57344 or more is NaN in the calibration and
#                0 in the file. A block below 4.5e-5 is 0.
#  MX, NaN, inf  the block is NaN in the calibration. In the file, the factor is
#                1, and the numbers are 0. Only MXFP8 keeps the NaN itself.
# Of NVFP4, the block with a NaN is NaN also in the file.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  compressed-tensors==0.20.1 torch==2.15.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import torch
from compressed_tensors.compressors.mxfp4.base import MXFP4PackedCompressor
from compressed_tensors.compressors.mxfp8.base import (
    MXFP8QuantizationCompressor)
from compressed_tensors.compressors.nvfp4.base import NVFP4PackedCompressor
from compressed_tensors.quantization.lifecycle.forward import fake_quantize
from compressed_tensors.quantization.quant_scheme import preset_name_to_scheme
from compressed_tensors.quantization.utils.helpers import (
    calculate_qparams, generate_gparam)

NAN, INF = float("nan"), float("inf")
COMPRESSORS = {"NVFP4": NVFP4PackedCompressor, "MXFP4": MXFP4PackedCompressor,
               "MXFP8": MXFP8QuantizationCompressor}


def quantize(x, name):
    """Returns x after fake quantization and from the file; the global scale."""
    scheme = preset_name_to_scheme(name, ["Linear"])
    args, compressor = scheme.weights, COMPRESSORS[name]
    blocks = x.view(len(x), -1, args.group_size)
    g = generate_gparam(x.amin(), x.amax()) if name == "NVFP4" else None
    s, zero = calculate_qparams(blocks.amin(-1), blocks.amax(-1), args, g)
    state = {"weight": x, "weight_scale": s}
    if g is not None:
        state["weight_global_scale"] = g
    state = compressor.compress(state, scheme)
    factor = state["weight_scale"][0, :1]
    factor = (factor if name == "NVFP4" else
              factor.view(torch.float8_e8m0fnu)).float().item()
    state = compressor.decompress(state, scheme)
    return fake_quantize(x, s, zero, args, g), state["weight"], g, factor


torch.manual_seed(0)
for sd in (0.02, 0.005, 0.002):
    numbers = torch.randn(256, 256) * sd
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = numbers.to(dtype)
        fake, stored, g, factor = quantize(x, "NVFP4")
        print("NVFP4 %-8s N(0, %-5g) maximum %.3f global %6d error %.2f" % (
            str(dtype)[6:], sd, numbers.abs().max(), g,
            (stored.float() - x.float()).norm() / x.float().norm()))
print("%-13s %-13s %-17s %-8s %s" % (
    "", "numbers", "calibration", "factor", "file"))
for name, dtype, values in (
        ("MXFP4", "float16", [57000, 1000]),
        ("MXFP4", "float16", [60000, 1000]),
        ("MXFP8", "float16", [60000, 1000]),
        ("MXFP8", "float32", [60000, 1000]),
        ("MXFP4", "float16", [5e-5, 1e-5]),
        ("MXFP4", "float16", [4e-5, 1e-5]),
        ("MXFP8", "float16", [4e-5, 1e-5]),
        ("MXFP8", "float32", [4e-5, 1e-5]),
        ("MXFP4", "float32", [NAN, 6, 1]), ("MXFP4", "float32", [6, INF, 1]),
        ("MXFP8", "float32", [NAN, 6, 1]), ("MXFP8", "float32", [6, INF, 1]),
        ("NVFP4", "float32", [NAN, 6, 1])):
    x = torch.zeros(1, 64, dtype=getattr(torch, dtype))
    x[0, :len(values)] = torch.tensor(values).to(x.dtype)
    fake, stored, g, factor = quantize(x, name)
    values, fake, stored = (" ".join("%.3g" % v for v in row[:len(values)])
                            for row in (values, fake[0], stored[0]))
    print("%-5s %-7s %-13s %-17s %-8.3g %s" % (
        name, dtype, values, fake, factor, stored))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" 2>"$work/log" >"$work/seen" ||
  { cat "$work/log"; exit 1; }
cat "$work/seen"
cat >"$work/want" <<'EOF'
NVFP4 float32  N(0, 0.02 ) maximum 0.091 global  29456 error 0.10
NVFP4 bfloat16 N(0, 0.02 ) maximum 0.091 global  29440 error 0.10
NVFP4 float16  N(0, 0.02 ) maximum 0.091 global  29456 error 0.10
NVFP4 float32  N(0, 0.005) maximum 0.022 global 121686 error 0.10
NVFP4 bfloat16 N(0, 0.005) maximum 0.022 global 121856 error 0.10
NVFP4 float16  N(0, 0.005) maximum 0.022 global      1 error 0.14
NVFP4 float32  N(0, 0.002) maximum 0.009 global 288521 error 0.10
NVFP4 bfloat16 N(0, 0.002) maximum 0.009 global 286720 error 0.10
NVFP4 float16  N(0, 0.002) maximum 0.009 global      1 error 0.96
              numbers       calibration       factor   file
MXFP4 float16 5.7e+04 1e+03 4.92e+04 0        8.19e+03 4.92e+04 0
MXFP4 float16 6e+04 1e+03   nan nan           1        0 0
MXFP8 float16 6e+04 1e+03   nan nan           1        0 0
MXFP8 float32 6e+04 1e+03   6.14e+04 1.02e+03 256      6.14e+04 1.02e+03
MXFP4 float16 5e-05 1e-05   4.58e-05 7.63e-06 1.53e-05 4.58e-05 7.63e-06
MXFP4 float16 4e-05 1e-05   0 0               1        0 0
MXFP8 float16 4e-05 1e-05   0 0               1        0 0
MXFP8 float32 4e-05 1e-05   3.81e-05 9.54e-06 1.19e-07 3.81e-05 9.54e-06
MXFP4 float32 nan 6 1       nan nan nan       1        0 0 0
MXFP4 float32 6 inf 1       nan nan nan       1        0 0 0
MXFP8 float32 nan 6 1       nan nan nan       1        nan 0 0
MXFP8 float32 6 inf 1       nan nan nan       1        0 nan 0
NVFP4 float32 nan 6 1       nan nan nan       nan      nan nan nan
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
