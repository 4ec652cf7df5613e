#!/bin/sh
# Shows what bitsandbytes' 8-bit blockwise quantization makes of 0, small
# numbers, NaN and infinity on the CPU. The packages need 6 GB of disk, since
# PyPI's torch includes CUDA.
#
# Hypothesis before the run: a number divided by the block's largest magnitude
# becomes the nearest entry of the table create_dynamic_map(), which includes 0.
# A NaN or an infinity makes the block NaN or infinite.
#
# Result, bitsandbytes 0.50.2 (CPU), f32 and bf16:
#  0          becomes 2.1e-5 times the largest magnitude. The entries of the
#             table from -7.75e-6 to 7.75e-6 are never used: a 1 and 4095 zeros
#             sum to 1.087.
#  NaN        becomes -0.993 times the largest magnitude of the others.
#  inf        becomes -inf, and the other numbers inf or -inf.
#  -1         becomes -0.993, the first entry of the table; 1 stays 1. A second
#             quantization changes all blocks whose largest magnitude is that of
#             a negative number, and some others.
# The 4-bit types nf4 and fp4 have 0 and NaN as expected; -inf becomes inf.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  bitsandbytes==0.50.2 torch==2.15.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import torch
from bitsandbytes import functional as F

NAN, INF = float("nan"), float("inf")
table = F.create_dynamic_map()
print("entries of the table that are 0:", (table == 0).sum().item())


def int8(x):
    return F.dequantize_blockwise(*F.quantize_blockwise(x, blocksize=256))


def nf4(x):
    return F.dequantize_4bit(*F.quantize_4bit(x, quant_type="nf4"))


def fp4(x):
    return F.dequantize_4bit(*F.quantize_4bit(x, quant_type="fp4"))


def nearest(x):
    """Returns the products of the largest magnitude and nearest entries."""
    largest = x.abs().max()
    return largest * table[(x[:, None] / largest - table).abs().argmin(1)]


for values in ([1, 0, 1e-6, -1e-6], [-1, 0, 1e-4, -1e-4], [2, NAN, 1, 0],
               [2, INF, -1, 0], [2, -INF, -1, 0]):
    for f, dtype in ((int8, torch.float32), (int8, torch.bfloat16),
                     (nearest, torch.float32), (nf4, torch.float32),
                     (fp4, torch.float32)):
        if f == nearest and values[1] != 0:
            continue
        x = torch.zeros(256, dtype=dtype)
        x[:4] = torch.tensor(values, dtype=dtype)
        print("%-19s %-7s %-8s %s" % (
            " ".join("%g" % v for v in values), f.__name__, str(dtype)[6:],
            " ".join("%.3g" % v for v in f(x).flatten()[:4])))

x = torch.zeros(4096)
x[0] = 1
print("sum of a 1 and 4095 zeros: %.3f" % F.dequantize_blockwise(
    *F.quantize_blockwise(x, blocksize=4096)).sum())
x = torch.zeros(512)
x[:256] = table
y = F.dequantize_blockwise(*F.quantize_blockwise(x, blocksize=512))
print("entries of the table that become others:",
      (y[:256] != table).sum().item())
torch.manual_seed(0)
x = torch.randn(4096, 256)
x[:, 0] = torch.where(torch.arange(4096) % 2 == 0, 9.0, -9.0)
y = int8(x)
changed = (int8(y) != y).any(1)
print("blocks changed by a second quantization, of 2048: largest > 0: %d,"
      " < 0: %d" % (changed[0::2].sum(), changed[1::2].sum()))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" 2>"$work/log" >"$work/seen" ||
  { cat "$work/log"; exit 1; }
cat "$work/seen"
cat >"$work/want" <<'EOF'
entries of the table that are 0: 1
1 0 1e-06 -1e-06    int8    float32  1 2.12e-05 2.12e-05 -2.12e-05
1 0 1e-06 -1e-06    int8    bfloat16 1 2.12e-05 2.12e-05 -2.12e-05
1 0 1e-06 -1e-06    nearest float32  1 0 5.5e-07 -5.5e-07
1 0 1e-06 -1e-06    nf4     float32  1 0 0 0
1 0 1e-06 -1e-06    fp4     float32  1 0 0 0
-1 0 0.0001 -0.0001 int8    float32  -0.993 2.12e-05 8.87e-05 -8.87e-05
-1 0 0.0001 -0.0001 int8    bfloat16 -0.992 2.12e-05 8.87e-05 -8.87e-05
-1 0 0.0001 -0.0001 nearest float32  -0.993 0 8.87e-05 -8.87e-05
-1 0 0.0001 -0.0001 nf4     float32  -1 0 0 0
-1 0 0.0001 -0.0001 fp4     float32  -1 0 0 0
2 nan 1 0           int8    float32  2 -1.99 1 4.25e-05
2 nan 1 0           int8    bfloat16 2 -1.98 1 4.24e-05
2 nan 1 0           nf4     float32  nan nan nan nan
2 nan 1 0           fp4     float32  nan nan nan nan
2 inf -1 0          int8    float32  inf -inf inf inf
2 inf -1 0          int8    bfloat16 inf -inf inf inf
2 inf -1 0          nf4     float32  nan inf nan nan
2 inf -1 0          fp4     float32  nan inf nan nan
2 -inf -1 0         int8    float32  inf -inf inf inf
2 -inf -1 0         int8    bfloat16 inf -inf inf inf
2 -inf -1 0         nf4     float32  nan inf nan nan
2 -inf -1 0         fp4     float32  nan inf nan nan
sum of a 1 and 4095 zeros: 1.087
entries of the table that become others: 9
blocks changed by a second quantization, of 2048: largest > 0: 128, < 0: 2048
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
