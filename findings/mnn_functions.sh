#!/bin/sh
# Shows what MNN's expressions (MNN.expr) make of large numbers, small numbers,
# NaN and negative integers.
#
# Hypothesis before the run: exp(100) is infinite and exp(-inf) is 0. sigmoid
# and tanh of NaN are NaN, and relu drops it. softmax with a NaN, or of -inf
# alone, is NaN throughout. The length of the array does not matter.
#
# Result, MNN 3.6.1 (CPU, x86-64):
#  exp       stops at 87: exp(88) is 6.1e37, not 1.7e38, and exp(inf), too.
#  softplus  of 88, 100 and infinity is 87.
#  expm1     of 1e-8 is 0, log1p, too.
#  NaN       abs, softplus and relu return 0, exp 1.6e-38, sigmoid and tanh 1,
#            relu6 6.
#  softmax   of 16 numbers of which one is NaN: a distribution without it, or
#            1.6e-18 throughout if the NaN is the last. Of 4 numbers: NaN.
#            16 times -inf becomes 1.6e-18 throughout, also if one is +inf.
#  reduce_max is NaN if the first number is, and drops a later NaN.
#  mod       of float32 truncates, as documented, and that of int32 floors.
#            floormod of float32 floors, as documented, and that of int32
#            truncates.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  MNN==3.6.1 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import MNN.expr as F
import numpy as np

nan, inf = float("nan"), float("inf")


def run(f, *inputs, dtype=F.float, **more):
    kind = np.float32 if dtype == F.float else np.int32
    inputs = [np.array(x, kind) for x in inputs]
    result = f(*[F.const(x, list(x.shape), F.NCHW, dtype) for x in inputs],
               **more)
    return np.array(result.read())


def show(name, values):
    print("%-26s" % name, *("%8.3g" % v for v in np.ravel(values)))


def compare(f, right, x):
    with np.errstate(all="ignore"):
        y = right(np.array(x, np.float32).astype(float)).astype(np.float32)
    show(f.__name__, run(f, x))
    show("  right", y)


x = [86, 87.3, 88, 100, inf, -inf]
show("x", x)
compare(F.exp, np.exp, x)
compare(F.softplus, lambda v: np.logaddexp(v, 0), x)
x = [1e-3, 1e-5, 1e-7, 1e-8]
show("x", x)
compare(F.expm1, np.expm1, x)
compare(F.log1p, np.log1p, x)
for f in (F.abs, F.exp, F.relu, F.relu6, F.sigmoid, F.tanh, F.softplus):
    show(f.__name__ + " of nan", run(f, [nan]))
for n, place in ((4, 0), (16, 0), (16, 15)):
    x = np.zeros((1, n))
    x[0, place] = nan
    show("softmax, nan %2d. of %2d 0s" % (place + 1, n),
         run(F.softmax, x, axis=1)[0, [0, 1, n - 1]])
for last in (-inf, inf):
    show("softmax of 15 -inf and %+g" % last,
         run(F.softmax, [[-inf] * 15 + [last]], axis=1)[0, [0, 1, 15]])
for x in ([nan, 3, 2, 1], [4, nan, 2, 1], [4, 3, 2, nan]):
    show("reduce_max of %s" % " ".join("%g" % v for v in x),
         run(F.reduce_max, x))
a, b = [7, -7, 7, -7], [2, 2, -2, -2]
show("a", a)
show("b", b)
for f in (F.mod, F.floormod):
    for dtype, name in ((F.float, "float32"), (F.int, "int32")):
        show("%s(a, b), %s" % (f.__name__, name), run(f, a, b, dtype=dtype))
EOF
"$work/venv/bin/python" "$work/run.py" | grep -v '^The device ' >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
x                                86     87.3       88      100      inf     -inf
exp                        2.24e+37 6.08e+37 6.08e+37 6.08e+37 6.08e+37 1.65e-38
  right                    2.24e+37  8.2e+37 1.65e+38      inf      inf        0
softplus                         86       87       87       87       87        0
  right                          86     87.3       88      100      inf        0
x                             0.001    1e-05    1e-07    1e-08
expm1                         0.001    1e-05        0        0
  right                       0.001    1e-05    1e-07    1e-08
log1p                         0.001    1e-05 1.19e-07        0
  right                       0.001    1e-05    1e-07    1e-08
abs of nan                        0
exp of nan                 1.65e-38
relu of nan                       0
relu6 of nan                      6
sigmoid of nan                    1
tanh of nan                       1
softplus of nan                   0
softmax, nan  1. of  4 0s       nan      nan      nan
softmax, nan  1. of 16 0s   1.1e-39   0.0667   0.0667
softmax, nan 16. of 16 0s  1.65e-18 1.65e-18 1.65e-18
softmax of 15 -inf and -inf 1.65e-18 1.65e-18 1.65e-18
softmax of 15 -inf and +inf 1.65e-18 1.65e-18 1.65e-18
reduce_max of nan 3 2 1         nan
reduce_max of 4 nan 2 1           4
reduce_max of 4 3 2 nan           4
a                                 7       -7        7       -7
b                                 2        2       -2       -2
mod(a, b), float32                1       -1        1       -1
mod(a, b), int32                  1        1       -1       -1
floormod(a, b), float32           1        1       -1       -1
floormod(a, b), int32             1       -1        1       -1
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
