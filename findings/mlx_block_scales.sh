#!/bin/sh
# Shows what MLX's quantize, with the modes "mxfp4", "mxfp8" and "nvfp4", makes
# of blocks with a NaN, an infinity or very small numbers, on the CPU.
#
# Hypothesis before the run: the scale factor of an MX block is 2 to the floor
# of log2 of the largest number, as in the example of the OCP's specification. A
# block with a NaN becomes NaN (the factor's code 255). Very small numbers, and
# blocks of an NVFP4 factor that rounds to 0, become 0.
#
# Result, mlx 0.32.4 (CPU):
#  7           mxfp4 divides 7 by 6 and rounds the power to the nearest: the
#              factor is 2 where the OCP's example has 1. The results are 6 with
#              both.
#  NaN, inf    mxfp4 and nvfp4 make the whole block 0, mxfp8 makes all numbers
#              of the block 896. No result is NaN or infinite.
#  below 2.5e-38  the code of the factor of an mxfp4 block wraps below 0: a
#              block whose largest number is 1e-38, a normal number of f32 and
#              bf16, becomes infinite, and 1e-40 becomes 1.06e+37. An mxfp8
#              block does the same below 1.9e-36.
#  0.001       the nvfp4 block becomes 0, as expected: its factor is below the
#              smallest e4m3.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  mlx==0.32.4 mlx-cpu==0.32.4 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import mlx.core as mx
import numpy as np

mx.set_default_device(mx.cpu)
NAN, INF = float("nan"), float("inf")
MODES = {"mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}


def show(mode, values, dtype=mx.float32):
    size, bits = MODES[mode]
    x = np.zeros((1, 64), np.float32)
    x[0, :len(values)] = values
    w, s = mx.quantize(mx.array(x).astype(dtype), group_size=size, bits=bits,
                       mode=mode)
    y = mx.dequantize(w, s, group_size=size, bits=bits, mode=mode)
    y = np.array(y.astype(mx.float32))[0, :len(values)]
    print("%-6s %-22s code %3d ->" % (mode, " ".join("%g" % v for v in values),
                                      int(np.array(s)[0, 0])),
          *("%.3g" % v for v in y))


for mode in MODES:
    for values in ([7.0], [6.0, 1.0], [NAN, 6.0, 1.0], [6.0, INF, 1.0],
                   [1e-3], [3e-38], [1e-38], [1e-40]):
        show(mode, values)
show("mxfp4", [1e-38], mx.bfloat16)
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
mxfp4  7                      code 128 -> 6
mxfp4  6 1                    code 127 -> 6 1
mxfp4  nan 6 1                code 128 -> 0 0 0
mxfp4  6 inf 1                code 128 -> 0 0 0
mxfp4  0.001                  code 115 -> 0.000977
mxfp4  3e-38                  code   0 -> 3.53e-38
mxfp4  1e-38                  code 255 -> inf
mxfp4  1e-40                  code 248 -> 1.06e+37
mxfp8  7                      code 121 -> 7
mxfp8  6 1                    code 121 -> 6 1
mxfp8  nan 6 1                code 128 -> 896 896 896
mxfp8  6 inf 1                code 128 -> 896 896 896
mxfp8  0.001                  code 109 -> 0.000977
mxfp8  3e-38                  code 250 -> inf
mxfp8  1e-38                  code 248 -> inf
mxfp8  1e-40                  code 242 -> 1.2e+37
nvfp4  7                      code  57 -> 6.75
nvfp4  6 1                    code  56 -> 6 1
nvfp4  nan 6 1                code 126 -> 0 0 0
nvfp4  6 inf 1                code 126 -> 0 0 0
nvfp4  0.001                  code   0 -> 0
nvfp4  3e-38                  code   0 -> 0
nvfp4  1e-38                  code   0 -> 0
nvfp4  1e-40                  code   0 -> 0
mxfp4  1e-38                  code 255 -> inf
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
