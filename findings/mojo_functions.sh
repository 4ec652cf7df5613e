#!/bin/sh
# Shows exp, exp2, tanh and ** of Mojo's standard library on the CPU, for NaNs,
# large numbers and float16. The package needs 0.7 GB of disk.
#
# Hypotheses before the run: f32 results are within 2 units in the last place,
# for all f32 numbers and NaN, and f16 results are correctly rounded nearly
# always. After the run of f32: f64 is right, and float16 is wrong as f32 is.
# Values computed at compile time are the same.
#
# Result, Mojo 1.2.0, the same at compile time:
#  NaN    f32: exp is infinity, tanh is 1, exp2 is 2^126, and NaN ** 3.7 is
#         infinity. log and erf return NaN. f64 and float16 are wrong, too.
#  exp2   of f32 is 2^126 for everything from 126 on, infinity too, and 2^-126
#         for everything below -126. exp2 of an infinite f64 is 1.
#  exp    is infinite from 88.38 on in f32, and from 709.44 on in f64, for
#         results of more than 0.71 of the largest number.
#  tanh   of float16 decreases from 3.2 on: 0.989 for 4, 0.866 for 9 and more.
#         For 1e-5, it is 21 % too large.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check mojo==1.2.0
cat >"$work/run.mojo" <<'EOF_MOJO'
from std.math import erf, exp, exp2, log, tanh
from std.utils.numerics import inf, nan

comptime f16 = DType.float16
comptime f32 = DType.float32
comptime f64 = DType.float64


# Hides the value from the compiler.
@no_inline
def run[d: DType](x: Scalar[d]) -> Scalar[d]:
    return x


def main():
    print("NaN, f32: exp, tanh, exp2, ** 3.7, log, erf")
    var n = run(nan[f32]())
    print(" ", exp(n), tanh(n), exp2(n), n ** 3.7, log(n), erf(n))
    comptime e = exp(nan[f32]())
    comptime t = tanh(nan[f32]())
    comptime p = exp2(nan[f32]())
    print("  compile time:", e, t, p)
    print("NaN, f64 and f16: exp, tanh")
    print(" ", exp(run(nan[f64]())), tanh(run(nan[f64]())))
    print(" ", exp(run(nan[f16]())), tanh(run(nan[f16]())))
    print("exp2, f32: 126.5, 128, inf, -126.5, -140, -inf")
    print(" ", exp2(run(Float32(126.5))), exp2(run(Float32(128))),
          exp2(run(inf[f32]())))
    print(" ", exp2(run(Float32(-126.5))), exp2(run(Float32(-140))),
          exp2(run(-inf[f32]())))
    print("exp2, f64: inf, -inf")
    print(" ", exp2(run(inf[f64]())), exp2(run(-inf[f64]())))
    print("exp, f32: 88.37, 88.38, 88.7")
    print(" ", exp(run(Float32(88.37))), exp(run(Float32(88.38))),
          exp(run(Float32(88.7))))
    print("exp, f64: 709.43, 709.44, 709.7")
    print(" ", exp(run(Float64(709.43))), exp(run(Float64(709.44))),
          exp(run(Float64(709.7))))
    print("tanh, f16: 1e-5, 1, 3, 4, 6, 9, inf")
    print(" ", tanh(run(Float16(1e-5))), tanh(run(Float16(1))),
          tanh(run(Float16(3))), tanh(run(Float16(4))))
    print(" ", tanh(run(Float16(6))), tanh(run(Float16(9))),
          tanh(run(inf[f16]())))
EOF_MOJO
# A fixed target makes the result independent of the machine. Mojo keeps a cache
# in $HOME.
export HOME="$work"
"$work/venv/bin/mojo" build --target-cpu x86-64-v3 "$work/run.mojo" \
  -o "$work/run" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/venv/bin/mojo" --version 2>"$work/log" | cut -d' ' -f1-2 >"$work/seen"
"$work/run" >>"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
Mojo 1.2.0
NaN, f32: exp, tanh, exp2, ** 3.7, log, erf
  inf 1.0 8.507059e+37 inf nan nan
  compile time: inf 1.0 8.507059e+37
NaN, f64 and f16: exp, tanh
  inf 1.0
  inf 0.86621094
exp2, f32: 126.5, 128, inf, -126.5, -140, -inf
  8.507059e+37 8.507059e+37 8.507059e+37
  1.1754944e-38 1.1754944e-38 1.1754944e-38
exp2, f64: inf, -inf
  1.0 1.0
exp, f32: 88.37, 88.38, 88.7
  2.391137e+38 inf inf
exp, f64: 709.43, 709.44, 709.7
  1.263380870550932e+308 inf inf
tanh, f16: 1e-5, 1, 3, 4, 6, 9, inf
  1.21593475e-05 0.76171875 0.9916992 0.98876953
  0.95458984 0.86621094 0.86621094
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
