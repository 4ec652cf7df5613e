#!/bin/sh
# Shows the mean, the minimum and the maximum of narrow floats in TensorStore's
# downsampled views, also of a Zarr array.
#
# Hypotheses before the run: the mean of bfloat16, float16 and 8-bit floats is
# computed in f32 and rounded once; int4 works, too. After the run of e4m3fn and
# e5m2: the mean of the other 8-bit types and of e2m1 is 0, too, and the minimum
# and the maximum of e4m3fnuz are NaN.
#
# Result, TensorStore 0.1.86: bfloat16 and int4 are right. The mean of every
# 8-bit and 4-bit float type is 0, without an error. The minimum and the maximum
# of e4m3fn, e4m3fnuz, e4m3b11fnuz and e5m2fnuz are NaN; these types have no
# infinity. For e3m4, e5m2 and e2m1, they are right. A view that is converted to
# float32 before the downsampling is right, too. The median of complex64, which
# TensorStore does not support, is an error.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  tensorstore==0.1.86 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF_PY'
import sys
from importlib.metadata import version

import numpy as np
import tensorstore as ts

X = np.array([1, 2, 3, 2, -1, -2, -3, -2], np.float32)


def show(name, result):
    print("%-26s" % name, *("%4g" % v for v in result.astype(np.float64)))


def downsampled(store, method):
    return ts.downsample(store, [4], method=method).read().result()


print("TensorStore", version("tensorstore"))
show("values", X)
for name in ("int4 bfloat16 float8_e3m4 float8_e4m3fn float8_e4m3fnuz "
             "float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz "
             "float4_e2m1fn").split():
    store = ts.array(X.astype(ts.dtype(name).numpy_dtype))
    for method in ("mean", "min", "max"):
        show(f"{name} {method}", downsampled(store, method))
e4m3 = ts.float8_e4m3fn.numpy_dtype
zarr = ts.open({"driver": "zarr3",
                "kvstore": {"driver": "file", "path": sys.argv[1]}},
               create=True, dtype=ts.float8_e4m3fn, shape=X.shape).result()
zarr.write(X.astype(e4m3)).result()
for store, how in ((zarr, "e4m3fn"), (ts.cast(zarr, ts.float32), "float32")):
    for method in ("mean", "max"):
        show(f"Zarr as {how}, {method}", downsampled(store, method))
try:
    downsampled(ts.array(X.astype(np.complex64)), "median")
except ValueError as error:
    print(str(error).split("[")[0].strip())
EOF_PY
"$work/venv/bin/python" "$work/run.py" "$work/zarr" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
TensorStore 0.1.86
values                        1    2    3    2   -1   -2   -3   -2
int4 mean                     2   -2
int4 min                      1   -3
int4 max                      3   -1
bfloat16 mean                 2   -2
bfloat16 min                  1   -3
bfloat16 max                  3   -1
float8_e3m4 mean              0    0
float8_e3m4 min               1   -3
float8_e3m4 max               3   -1
float8_e4m3fn mean            0    0
float8_e4m3fn min           nan  nan
float8_e4m3fn max           nan  nan
float8_e4m3fnuz mean          0    0
float8_e4m3fnuz min         nan  nan
float8_e4m3fnuz max         nan  nan
float8_e4m3b11fnuz mean       0    0
float8_e4m3b11fnuz min      nan  nan
float8_e4m3b11fnuz max      nan  nan
float8_e5m2 mean              0    0
float8_e5m2 min               1   -3
float8_e5m2 max               3   -1
float8_e5m2fnuz mean          0    0
float8_e5m2fnuz min         nan  nan
float8_e5m2fnuz max         nan  nan
float4_e2m1fn mean            0    0
float4_e2m1fn min             1   -3
float4_e2m1fn max             3   -1
Zarr as e4m3fn, mean          0    0
Zarr as e4m3fn, max         nan  nan
Zarr as float32, mean         2   -2
Zarr as float32, max          3   -1
Downsample method "median" does not support data type "complex64"
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
