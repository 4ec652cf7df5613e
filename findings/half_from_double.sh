#!/bin/sh
# Shows how NVIDIA Warp, Dr.Jit and Taichi convert float64 to float16 on the
# CPU, and which instructions Warp emits for GPUs.
#
# Hypothesis before the run: a conversion rounds once, to nearest even, as that
# of NumPy and as the instruction cvt.rn.f16.f64 of GPUs.
#
# Result, warp-lang 1.19.0, drjit 1.5.0, taichi 1.7.4: all three round to
# float32 first. The numbers of the test are slightly beyond the middle of two
# numbers of float16, so all of them should round away from 0. Half of them
# round toward 0, as their float32 is the middle, which rounds to even: 65488
# and a little more becomes 65472, not 65504. Warp's PTX for sm_90 has two
# conversions, too. From float32, all tested numbers are rounded correctly.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  warp-lang==1.19.0 drjit==1.5.0 taichi==1.7.4 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import glob
import re
import sys

import drjit.scalar
import numpy as np
import taichi as ti
import warp as wp

ti.init(arch=ti.cpu, log_level=ti.ERROR, offline_cache=False)
wp.config.quiet = True


@wp.kernel
def warp_f64(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float16)):
    y[wp.tid()] = wp.float16(x[wp.tid()])


@wp.kernel
def warp_f32(x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float16)):
    y[wp.tid()] = wp.float16(x[wp.tid()])


@ti.kernel
def taichi(x: ti.types.ndarray(), y: ti.types.ndarray(ti.f16, 1)):
    for i in x:
        y[i] = ti.cast(x[i], ti.f16)


def by_warp(x):
    y = wp.zeros(len(x), dtype=wp.float16, device="cpu")
    wp.launch(warp_f64 if x.dtype == np.float64 else warp_f32, len(x),
              [wp.array(x, device="cpu"), y], device="cpu")
    return y.numpy()


def by_drjit(x):
    source = (drjit.scalar.ArrayXf64 if x.dtype == np.float64 else
              drjit.scalar.ArrayXf)
    return np.array(drjit.scalar.ArrayXf16(source(x)))


def by_taichi(x):
    y = ti.ndarray(ti.f16, len(x))
    taichi(x, y)
    return y.to_numpy()


halves = np.arange(65536, dtype=np.uint16).view(np.float16)
halves = np.sort(halves[np.isfinite(halves)]).astype(np.float64)
middles = (halves[1:] + halves[:-1]) / 2
beyond = middles[middles != 0] * (1 + 1e-12)
numbers = np.concatenate([halves, middles]).astype(np.float32)
for name, convert in (("Warp", by_warp), ("Dr.Jit", by_drjit),
                      ("Taichi", by_taichi)):
    wrong = np.sum(convert(beyond) != beyond.astype(np.float16))
    print("%-7s of float64: %d of %d wrong, 65488 + 1e-7: %g, of float32: %d"
          % (name, wrong, len(beyond), convert(np.array([65488 + 1e-7]))[0],
             np.sum(convert(numbers) != numbers.astype(np.float16))))
wp.config.enable_backward = False
wp.compile_aot_module(warp_f64.module, arch=90, use_ptx=True,
                      module_dir=sys.path[0] + "/aot")
with open(glob.glob(sys.path[0] + "/aot/*.ptx")[0], errors="replace") as f:
    text = f.read()
text = text[text.index("entry warp_f64"):]
print("Warp's PTX of float64:", *sorted(set(re.findall(
    r"cvt\.rn\.f\d+\.f\d+", text[:text.index("ret;")]))))
EOF
HOME=$work "$work/venv/bin/python" -W ignore "$work/run.py" |
  grep 'of float64' >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
Warp    of float64: 31744 of 63486 wrong, 65488 + 1e-7: 65472, of float32: 0
Dr.Jit  of float64: 31744 of 63486 wrong, 65488 + 1e-7: 65472, of float32: 0
Taichi  of float64: 31744 of 63486 wrong, 65488 + 1e-7: 65472, of float32: 0
Warp's PTX of float64: cvt.rn.f16.f32 cvt.rn.f32.f64
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
