#!/bin/sh
# Shows how two libraries for vector search store f32 numbers in narrow types:
# NumKong (astype) and Faiss (the quantizer QT_bf16).
#
# Hypotheses before the run: both round to nearest even, as NumKong documents.
# A NaN stays a NaN in bf16, e4m3 and e5m2.
#
# Result, NumKong 7.8.6, Faiss 1.15.1 (x86-64):
#  NumKong  The result of a NaN depends on the processor. With AVX2, a NaN
#           becomes 448 in e4m3 and infinity in e5m2. Without AVX2 ("serial"),
#           it stays a NaN. The sum of such a tensor is thus 451 or NaN.
#  bf16     Both libraries round the bits of a NaN like a number. The NaN that
#           an NVIDIA GPU computes (0x7fffffff) becomes -0.0.
#  Faiss    QT_bf16 rounds ties up, not to even: 1.00390625 becomes 1.0078125.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  numkong==7.8.6 faiss-cpu==1.15.1 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
from importlib.metadata import version

import faiss
import numkong as nk
import numpy as np

# 1 + 2^-8 and 1 + 3 * 2^-8 are midpoints of two bf16 numbers.
NANS = np.array([0x7fc00000, 0x7fffffff], np.uint32).view(np.float32)
X = np.append(np.float32([1 + 2 ** -8, 1 + 3 * 2 ** -8]), NANS)


def show(name, x):
    print("%-14s" % name, *("%12.10g" % v for v in x))


def disable(keep):
    """Turns off NumKong's code for all processors but those in keep."""
    for name, enabled in nk.get_capabilities().items():
        if enabled and name not in keep:
            nk.disable_capability(name)


assert nk.get_capabilities()["haswell"], "this script needs AVX2"
show("f32", X)
print("%-14s" % "bits", *("  0x%08x" % b for b in X.view(np.uint32)))
print("NumKong", version("numkong"))
for name, keep in ("AVX2", ["serial", "haswell"]), ("serial", ["serial"]):
    disable(keep)
    for kind in "bfloat16", "e4m3", "e5m2":
        narrow = nk.astype(X, kind)
        show(f"{kind} {name}", np.asarray(nk.astype(narrow, "float32")))
    vector = nk.astype(np.float32([1, 2, np.nan]), "e4m3")
    print("sum of 1, 2 and NaN in e4m3, %s: %g" % (name, nk.sum(vector)))
print("Faiss", version("faiss-cpu"))
quantizer = faiss.ScalarQuantizer(1, faiss.ScalarQuantizer.QT_bf16)
show("QT_bf16", quantizer.decode(quantizer.compute_codes(X[:, None])).ravel())
EOF
"$work/venv/bin/python" "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
f32              1.00390625   1.01171875          nan          nan
bits             0x3f808000   0x3f818000   0x7fc00000   0x7fffffff
NumKong 7.8.6
bfloat16 AVX2             1     1.015625          nan           -0
e4m3 AVX2                 1            1          448          448
e5m2 AVX2                 1            1          inf          inf
sum of 1, 2 and NaN in e4m3, AVX2: 451
bfloat16 serial            1     1.015625          nan           -0
e4m3 serial               1            1          nan          nan
e5m2 serial               1            1          nan          nan
sum of 1, 2 and NaN in e4m3, serial: nan
Faiss 1.15.1
QT_bf16           1.0078125     1.015625          nan           -0
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
