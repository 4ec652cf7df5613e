#!/bin/sh
# Shows how TVM's LLVM target converts float32 to bfloat16 and 8-bit floats, and
# how it reads 8-bit floats.
#
# Hypothesis before the run: numbers round to nearest even, a number beyond the
# range becomes NaN or infinity, and a NaN stays NaN. Each of the 256 codes is
# read as ml_dtypes reads it.
#
# Result, apache-tvm 0.27.0.post1: conversions shift the bits of float32.
#  read   subnormal codes are read as normal numbers: in e4m3fn the code 0 is
#         0.0078125, not 0, and NaN is 480. In e5m2 infinity is 65536.
#  write  numbers beyond the range wrap around, with any sign: in e4m3fn 500
#         becomes -0, 57344 becomes -0.875, and subnormal numbers become 0.
#  NaN    becomes an infinity or -0 in bfloat16, if its low bits are set:
#         0x7fffffff, the NaN that NVIDIA GPUs compute, becomes -0.
#  fused  in float32 -> bfloat16 or float8 -> float32 within a function, the
#         tensor in between keeps float32: nothing is rounded. float16 is.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  apache-tvm==0.27.0.post1 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import ml_dtypes
import numpy as np
import tvm
from tvm import te


def run(values, *names):
    """Returns the values cast to the type of each name, one after another."""
    stages = [te.placeholder((len(values),), str(values.dtype), "s0")]
    for name in names:
        source = stages[-1]
        stages.append(te.compute((len(values),),
                                 lambda j: source[j].astype(name), "s"))
    f = tvm.compile(te.create_prim_func([stages[0], stages[-1]]),
                    target={"kind": "llvm", "mcpu": "x86-64"})
    result = tvm.runtime.empty((len(values),), names[-1])
    f(tvm.runtime.tensor(values), result)
    got = result.numpy()
    return got if got.dtype == np.float32 else got.view(
        getattr(ml_dtypes, names[-1])).astype(np.float32)


def show(name, values):
    print("%-23s" % name, *("%.6g" % v for v in values))


x = np.array([0, 1.1, 0.004, 448, 500, 57344, 1e6], np.float32)
show("float32", x)
for name in ("float8_e4m3fn", "float8_e5m2"):
    dtype = getattr(ml_dtypes, name)
    show(name + " written", run(x, name))
    show("  by ml_dtypes", x.astype(dtype).astype(np.float32))
    codes = np.array([0, 1, 8, 0x7c, 0x7e, 0x7f], np.uint8)
    show(name + " read", run(codes.view(dtype), "float32"))
    show("  by ml_dtypes", codes.view(dtype).astype(np.float32))
nan = np.array([0x7fc00000, 0x7f800001, 0x7fffffff, 0xffffffff], np.uint32)
show("bfloat16 of four NaNs", run(nan.view(np.float32), "bfloat16"))
x = np.array([1.01, 65519, 1e-9], np.float32)
show("float32", x)
for name in ("float16", "bfloat16", "float8_e4m3fn"):
    show(name + " and back", run(x, name, "float32"))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
float32                 0 1.1 0.004 448 500 57344 1e+06
float8_e4m3fn written   0 1.125 0 448 -0 -0.875 -15
  by ml_dtypes          0 1.125 0.00390625 448 nan nan nan
float8_e4m3fn read      0.0078125 0.00878906 0.015625 384 448 480
  by ml_dtypes          0 0.00195312 0.015625 384 448 nan
float8_e5m2 written     0 1 0.00390625 448 512 57344 -0.000244141
  by ml_dtypes          0 1 0.00390625 448 512 57344 inf
float8_e5m2 read        3.05176e-05 3.8147e-05 0.00012207 65536 98304 114688
  by ml_dtypes          0 1.52588e-05 0.00012207 inf nan nan
bfloat16 of four NaNs   nan inf -0 0
float32                 1.01 65519 1e-09
float16 and back        1.00977 65504 0
bfloat16 and back       1.01 65519 1e-09
float8_e4m3fn and back  1.01 65519 1e-09
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
