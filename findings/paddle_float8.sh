#!/bin/sh
# Shows how Paddle converts float32 and float64 to narrow floats (astype).
#
# Hypothesis before the run: a conversion from float64 rounds to float32 first,
# and a NaN stays NaN. (Numbers beyond the range were left open.)
#
# Result, paddlepaddle 3.3.1 (CPU): two rules in one type.
#  e4m3  saturates to 448, and NaN becomes 448, too, but the numbers between
#        464 and 480 become NaN.
#  e5m2  saturates to 57344 from 65536 on, and infinity becomes 57344, but the
#        numbers from 61440 to 65536 become infinity.
#  f64   is rounded to float32 first, for all four types: of the numbers of the
#        test, slightly beyond the middle of two, half are wrong.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  paddlepaddle==3.3.1 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import ml_dtypes
import numpy as np
import paddle

TYPES = {"float8_e4m3fn": ml_dtypes.float8_e4m3fn,
         "float8_e5m2": ml_dtypes.float8_e5m2,
         "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def cast(x, name):
    return paddle.to_tensor(x).astype(name).astype("float32").numpy()


def show(name, values):
    print("%-15s" % name, *("%8.6g" % v for v in values))


nan, inf = float("nan"), float("inf")
for name, x in (
        ("float8_e4m3fn", [464, 464.5, 479.9, 480, 1e30, inf, nan]),
        ("float8_e5m2", [61439, 61440, 65535, 65536, 1e30, inf, nan])):
    show("float32", x)
    show(name, cast(np.array(x, np.float32), name))

for name, dtype in TYPES.items():
    bits = 8 * np.dtype(dtype).itemsize
    codes = np.arange(1 << bits - 1).astype("uint%d" % bits)
    numbers = codes.view(dtype).astype(np.float64)
    numbers = numbers[np.isfinite(numbers) & (numbers > 1e-30)]
    low, high = numbers[:-1], numbers[1:]
    middle = (low + high) / 2
    for kind, f in (("float32", 2.0 ** -20), ("float64", 2.0 ** -40)):
        wrong = 0
        for x, right in ((middle * (1 + f), high), (middle * (1 - f), low)):
            wrong += np.sum(cast(x.astype(kind), name) != right)
        print(f"{name} of {kind}: {wrong} of {2 * len(middle)} are wrong")
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" 2>"$work/log" >"$work/seen" ||
  { cat "$work/log"; exit 1; }
cat "$work/seen"
cat >"$work/want" <<'EOF'
float32              464    464.5    479.9      480    1e+30      inf      nan
float8_e4m3fn        448      nan      nan      448      448      448      448
float32            61439    61440    65535    65536    1e+30      inf      nan
float8_e5m2        57344      inf      inf    57344    57344    57344      nan
float8_e4m3fn of float32: 0 of 250 are wrong
float8_e4m3fn of float64: 125 of 250 are wrong
float8_e5m2 of float32: 0 of 244 are wrong
float8_e5m2 of float64: 122 of 244 are wrong
bfloat16 of float32: 0 of 58296 are wrong
bfloat16 of float64: 29148 of 58296 are wrong
float16 of float32: 0 of 63484 are wrong
float16 of float64: 31742 of 63484 are wrong
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
