#!/bin/sh
# Shows how IREE's CPU compiler converts float32 to float16 and to 8-bit floats
# (arith.truncf), and how it reads 8-bit floats (arith.extf).
#
# Hypothesis before the run: numbers round to nearest even, subnormal ones, too.
# NaN stays NaN. The target processor does not change the results.
#
# Result, iree-base-compiler 3.13.0, target llvm-cpu on x86-64:
#  float16  subnormal numbers become 0 for the processor "generic", the default:
#           everything below 6.1e-5. x86-64-v3 has an instruction, and is right.
#  float8   numbers that should round up to the smallest normal number become 0,
#           for all processors: in E4M3FN from 0.0147 to 0.0156, although
#           smaller numbers are right.
#  E4M3FN   -465 rounds to the NaN with the code 0xff, which is read as -480.
#  E8M0FNU  1.9 becomes 1, 0 becomes 2^-127, and -2.5 becomes 2. The code 0 is
#           read as 0.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 ml_dtypes==0.6.0 \
  numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import iree.compiler
import iree.runtime
import ml_dtypes
import numpy as np

TYPES = {"f16": np.float16, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
         "f8E5M2": ml_dtypes.float8_e5m2, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu}


def run(x, ops, processor):
    """Returns what a function of the operations `(name, type)` makes of x."""
    n = len(x)
    now = {4: "f32", 2: "i16", 1: "i8"}[x.itemsize]
    text, first = "", now
    for i, (op, to) in enumerate(ops):
        text += (f"%{i + 1} = arith.{op} %{i} : "
                 f"tensor<{n}x{now}> to tensor<{n}x{to}>\n")
        now = to
    module = iree.compiler.compile_str(
        f"func.func @f(%0: tensor<{n}x{first}>) -> tensor<{n}x{now}> {{\n"
        f"{text}return %{len(ops)} : tensor<{n}x{now}>\n}}",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=" + processor])
    loaded = iree.runtime.load_vm_flatbuffer(module, driver="local-task")
    return loaded["f"](x).to_host()


def show(name, values):
    print("%-24s" % name, *("%.4g" % v for v in values))


def write(numbers, to, processor="generic"):
    x = np.array(numbers, np.float32)
    bits = "i%d" % (8 * np.dtype(TYPES[to]).itemsize)
    got = run(x, [("truncf", to), ("bitcast", bits)], processor)
    return got.view(TYPES[to]).astype(np.float32)


for to, x in (("f16", [2 ** -24, 1e-6, 6e-5, 2 ** -14]),
              ("f8E4M3FN", [0.005, 0.0137, 0.0147, 0.0155, 2 ** -6])):
    show("f32", x)
    for processor in ("generic", "x86-64-v3"):
        show(to + ", " + processor, write(x, to, processor))
show("f8E5M2 of 5.3e-5 5.4e-5", write([5.3e-5, 5.4e-5], "f8E5M2"))
show("f8E8M0FNU of 1.9 0 -2.5", write([1.9, 0, -2.5], "f8E8M0FNU"))
for to in ("f8E4M3FN", "f8E5M2", "f8E8M0FNU"):
    codes = np.arange(256, dtype=np.uint8)
    got = run(codes.view("i1"), [("bitcast", to), ("extf", "f32")], "generic")
    right = codes.view(TYPES[to]).astype(np.float32)
    differ = ~((got == right) | (np.isnan(got) & np.isnan(right)))
    print("read %-10s" % to, "differs at", *(
        "0x%02x: %g" % v for v in zip(codes[differ], got[differ])))
show("465, -465 by f8E4M3FN", run(
    np.array([465, -465], np.float32),
    [("truncf", "f8E4M3FN"), ("extf", "f32")], "generic"))
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
f32                      5.96e-08 1e-06 6e-05 6.104e-05
f16, generic             0 0 0 6.104e-05
f16, x86-64-v3           5.96e-08 1.013e-06 6.002e-05 6.104e-05
f32                      0.005 0.0137 0.0147 0.0155 0.01562
f8E4M3FN, generic        0.005859 0.01367 0 0 0.01562
f8E4M3FN, x86-64-v3      0.005859 0.01367 0 0 0.01562
f8E5M2 of 5.3e-5 5.4e-5  4.578e-05 0
f8E8M0FNU of 1.9 0 -2.5  1 5.877e-39 2
read f8E4M3FN   differs at 0xff: -480
read f8E5M2     differs at
read f8E8M0FNU  differs at 0x00: 0
465, -465 by f8E4M3FN    nan -480
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
