#!/bin/sh
# Shows what numcodecs' filter BitRound, which Zarr and xarray users apply to
# fields before compression, makes of NaNs and of the largest numbers.
#
# Hypothesis before the run: a NaN stays a NaN, whatever its bits are, as in
# netCDF-C's quantization. Numbers that would round up beyond the range become
# infinity.
#
# Result, numcodecs 0.16.6: the codec rounds the bits of a NaN like those of a
# number.
#  0x7fffffff   the NaN that NVIDIA GPUs compute in f32 becomes -0.0, for all
#               numbers of bits. 0x7fff in f16 becomes -0.0, too. xarray then
#               counts missing values as zeros.
#  0x7f800001   NaNs whose payload is in dropped bits become infinity.
#  0x7fc00000   the NaN of NumPy and of x86 stays a NaN.
# netCDF-C 4.9 (netCDF4 1.7.5) keeps the bits of all NaNs.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  numcodecs==0.16.6 netCDF4==1.7.5.1.post1 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import os
import sys

import netCDF4
import numcodecs
import numpy as np

NANS = {np.float16: [0x7e00, 0x7fff, 0x7c01, 0xfe00],
        np.float32: [0x7fc00000, 0x7fffffff, 0x7f800001, 0xffc00000],
        np.float64: [0x7ff8 << 48, (1 << 63) - 1, (0x7ff << 52) + 1]}


def show(name, values):
    print("%-22s" % name, *("%g" % v for v in values))


for dtype, bits in NANS.items():
    size = np.dtype(dtype).itemsize
    x = np.array(bits, "u%d" % size).view(dtype)
    assert np.isnan(x).all()
    for keep in (1, 7):
        y = numcodecs.BitRound(keepbits=keep).encode(x.copy())
        show("%s, %d bits" % (np.dtype(dtype).name, keep),
             np.frombuffer(y, dtype))
most = np.array([np.finfo(np.float32).max], np.float32)
show("largest float32, 7 bits", np.frombuffer(
    numcodecs.BitRound(keepbits=7).encode(most.copy()), np.float32))

path = os.path.join(sys.argv[1], "x.nc")
x = np.array(NANS[np.float32], np.uint32).view(np.float32)
with netCDF4.Dataset(path, "w") as file:
    file.createDimension("n", len(x))
    v = file.createVariable("v", "f4", ("n",), zlib=True, fill_value=False,
                            significant_digits=7, quantize_mode="BitRound")
    v.set_auto_mask(False)
    v[:] = x
with netCDF4.Dataset(path) as file:
    v = file["v"]
    v.set_auto_mask(False)
    show("netCDF4 BitRound", v[:])
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" "$work" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
float16, 1 bits        nan -0 inf nan
float16, 7 bits        nan -0 inf nan
float32, 1 bits        nan -0 inf nan
float32, 7 bits        nan -0 inf nan
float64, 1 bits        nan -0 inf
float64, 7 bits        nan -0 inf
largest float32, 7 bits inf
netCDF4 BitRound       nan nan nan nan
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
