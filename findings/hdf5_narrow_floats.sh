#!/bin/sh
# Shows how HDF5 converts float32 to its float8, bfloat16 and float16 types, and
# how it reads float8.
#
# Hypothesis before the run: numbers round to nearest even, subnormal ones, too.
# F8E4M3 is IEEE-like: the codes 0x79 to 0x7f read as NaN, although ml_dtypes,
# PyTorch and GPUs store 288 to 448 and one NaN there.
#
# Result, HDF5 2.0.0 (in the wheel of h5py 3.16.0): F8E4M3 reads as expected,
# 0x78 (256) as infinity. The rounding is not to nearest even:
#  ties       go away from zero: 413 becomes 414 in bfloat16, not 412. A file
#             written by HDF5 differs from ml_dtypes' in 1 of 16 float16 values.
#  subnormal  a number that should round up to a power of 2 becomes half of it,
#             in bfloat16 and float8: with u the smallest number of the type,
#             1.75 u becomes u, 3.75 u becomes 2 u, and 7.75 u becomes 4 u.
#             float16, which the compiler's conversion serves, is right.
#  overflow   float16 becomes infinity from just above 65504 on; 65519 should
#             become 65504. In F8E5M2 all numbers between 57344 and 65536
#             become 57344, even those that are nearer to 65536.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  h5py==3.16.0 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import ctypes
import glob
import sys

import h5py
import ml_dtypes
import numpy as np

lib = ctypes.CDLL([p for p in glob.glob(
    sys.prefix + "/lib/python3*/site-packages/h5py.libs/libhdf5-*.so*")][0])
lib.H5open()
lib.H5Tconvert.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_size_t,
                           ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
TYPES = {"F8E4M3": ("H5T_FLOAT_F8E4M3_g", ml_dtypes.float8_e4m3fn),
         "F8E5M2": ("H5T_FLOAT_F8E5M2_g", ml_dtypes.float8_e5m2),
         "bfloat16": ("H5T_FLOAT_BFLOAT16LE_g", ml_dtypes.bfloat16),
         "float16": ("H5T_IEEE_F16LE_g", np.float16),
         "float32": ("H5T_NATIVE_FLOAT_g", np.float32)}


def convert(values, source, target):
    """Returns the array `values` of type `source` converted by HDF5."""
    name, dtype = TYPES[target]
    buffer = ctypes.create_string_buffer(4 * len(values))
    buffer[:values.nbytes] = values.tobytes()
    assert lib.H5Tconvert(
        ctypes.c_int64.in_dll(lib, TYPES[source][0]).value,
        ctypes.c_int64.in_dll(lib, name).value, len(values), buffer, None,
        0) == 0
    return np.frombuffer(buffer.raw, dtype, len(values))


def written(numbers, target):
    return convert(np.array(numbers, np.float32), "float32",
                   target).astype(np.float64)


def show(name, values):
    print("%-28s" % name, *("%g" % v for v in values))


print("HDF5", h5py.version.hdf5_version)
codes = np.array([0x77, 0x78, 0x79, 0x7e, 0x7f], np.uint8)
show("F8E4M3 0x77 78 79 7e 7f", convert(codes.view(ml_dtypes.float8_e4m3fn),
                                        "F8E4M3", "float32"))
show("bfloat16 of 411 413 415", written([411, 413, 415], "bfloat16"))
halves = np.arange(65536, dtype=np.uint16).view(np.float16)
halves = halves[np.isfinite(halves)].astype(np.float32)
show("  float16 values that differ", [np.sum(
    written(halves, "bfloat16")
    != halves.astype(ml_dtypes.bfloat16).astype(np.float64))])
UNITS = [1.25, 1.75, 2.75, 3.25, 3.75, 6.75, 7.25, 7.75]
show("units of the smallest number", UNITS)
for target, unit in (("bfloat16", 2 ** -133), ("F8E4M3", 2 ** -9),
                     ("F8E5M2", 2 ** -16), ("float16", 2 ** -24)):
    show("  " + target,
         written([u * unit for u in UNITS], target) / unit)
show("float16 of 65504 65505 65519", written([65504, 65505, 65519], "float16"))
show("F8E5M2 of 61441 65535 65536", written([61441, 65535, 65536], "F8E5M2"))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
HDF5 2.0.0
F8E4M3 0x77 78 79 7e 7f      240 inf nan nan nan
bfloat16 of 411 413 415      412 414 416
  float16 values that differ 4096
units of the smallest number 1.25 1.75 2.75 3.25 3.75 6.75 7.25 7.75
  bfloat16                   1 1 3 3 2 7 7 4
  F8E4M3                     1 1 3 3 2 7 7 4
  F8E5M2                     1 1 3 3 2 7 7 8
  float16                    1 2 3 3 4 7 7 8
float16 of 65504 65505 65519 65504 inf inf
F8E5M2 of 61441 65535 65536  57344 57344 inf
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
