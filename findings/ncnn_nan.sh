#!/bin/sh
# Shows what layers of ncnn make of NaN, 0, infinity and large numbers.
#
# Hypothesis before the run: ReLU and max pooling drop a NaN, and softmax is NaN
# throughout. The place of the NaN does not matter. exp of infinity is infinite.
#
# Result, ncnn 1.0.20261020 (CPU with AVX-512): most layers lose a NaN.
#  Sigmoid, TanH  0 and -1
#  exp            2.4e38 in an array of 1 number, 0 in an array of 16
#  Softmax        1 for the NaN and 0 for the others. If the NaN is the last of
#                 15, NaN throughout.
#  Clip           the lower bound for 1 number, the upper one for 16
#  Pooling        the maximum of the numbers after the NaN, if there are any
#  BinaryOp max   the first operand or the second, as the length decides
# rsqrt and reciprocal of 0 and of infinity and atan of infinity are NaN. log
# of 0 is NaN, that of infinity 88.7, and sin of 1e10 is -inf.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  ncnn==1.0.20261020 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import sys

import ncnn
import numpy as np

FOLDER = sys.argv[1]
nan, inf = float("nan"), float("inf")


def run(layer, options, *inputs):
    """Returns what a net of one layer makes of its inputs."""
    names = ["in%d" % i for i in range(len(inputs))]
    count = len(names) + 1
    lines = ["7767517", "%d %d" % (count, count)]
    lines += ["Input %s 0 1 %s" % (name, name) for name in names]
    lines += ["%s layer %d 1 %s out %s" % (
        layer, len(names), " ".join(names), options)]
    with open(FOLDER + "/net.param", "w") as f:
        f.write("\n".join(lines) + "\n")
    with open(FOLDER + "/net.bin", "wb"):
        pass
    net = ncnn.Net()
    net.load_param(FOLDER + "/net.param")
    net.load_model(FOLDER + "/net.bin")
    extractor = net.create_extractor()
    for name, x in zip(names, inputs):
        extractor.input(name, ncnn.Mat(np.array(x, np.float32)).clone())
    return np.array(extractor.extract("out")[1])


def show(name, values):
    print("%-31s" % name, *("%8.3g" % v for v in values))


show("Sigmoid of nan", run("Sigmoid", "", [nan]))
show("TanH of nan", run("TanH", "", [nan]))
for place in (0, 14):
    x = np.zeros(15)
    x[place] = nan
    show("Softmax, nan in place %d of 15" % place,
         run("Softmax", "", x)[[0, 1, 14]])
show("Clip to [-1, 1] of nan", run("Clip", "0=-1 1=1", [nan]))
show("Clip to [-1, 1] of nan * 16", run("Clip", "0=-1 1=1", [nan] * 16)[:1])
for x in ([4, 3, 2, 1], [nan, 3, 2, 1], [4, nan, 2, 1], [4, 3, nan, 1],
          [4, 3, 2, nan]):
    show("Pooling, max. of %s" % " ".join("%g" % v for v in x),
         run("Pooling", "0=0 4=1", np.reshape(x, (1, 2, 2))).reshape(-1))
for n in (3, 16):
    show("max(nan, 1), max(1, nan) * %d" % n, [
        run("BinaryOp", "0=4", [a] * n, [b] * n)[0]
        for a, b in ((nan, 1), (1, nan))])
x = [0, inf, 1e10, nan]
show("UnaryOp of", x)
for name, op in (("exp", 7), ("log", 8), ("rsqrt", 6), ("reciprocal", 15),
                 ("atan", 14), ("sin", 9)):
    show("  " + name, [run("UnaryOp", "0=%d" % op, [v])[0] for v in x])
show("  exp, each * 16", [run("UnaryOp", "0=7", [v] * 16)[0] for v in x])
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" "$work" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
Sigmoid of nan                  4.16e-39
TanH of nan                           -1
Softmax, nan in place 0 of 15          1 4.16e-39 4.16e-39
Softmax, nan in place 14 of 15       nan      nan      nan
Clip to [-1, 1] of nan                -1
Clip to [-1, 1] of nan * 16            1
Pooling, max. of 4 3 2 1               4
Pooling, max. of nan 3 2 1             3
Pooling, max. of 4 nan 2 1             2
Pooling, max. of 4 3 nan 1             1
Pooling, max. of 4 3 2 nan           nan
max(nan, 1), max(1, nan) * 3           1      nan
max(nan, 1), max(1, nan) * 16        nan        1
UnaryOp of                             0      inf    1e+10      nan
  exp                                  1 2.41e+38 2.41e+38 2.41e+38
  log                                nan     88.7       23    -87.3
  rsqrt                              nan      nan    1e-05      nan
  reciprocal                         nan      nan    1e-10      nan
  atan                                 0      nan     1.57      nan
  sin                                  0      nan     -inf      nan
  exp, each * 16                       1 2.41e+38 2.41e+38        0
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
