#!/bin/sh
# Shows what Paddle's operations return for float32 tensors with one NaN.
#
# Hypothesis before the run: max propagates a NaN. softmax keeps it, too, unless
# it is among the elements after the last whole vector, and so do log_softmax
# and cross_entropy.
#
# Result, paddlepaddle 3.3.1 (CPU with AVX2): the length and the place decide.
#  softmax        of 7 numbers is NaN. Of 8 numbers it is about 0 for the NaN,
#                 and right for the others. If the NaN is the first of 8, it is
#                 0.125 for all, whatever the others are. Of 9 numbers, it is
#                 NaN if the NaN is the first or the last.
#  cross_entropy  is computed from softmax, and finite in the same cases.
#                 log_softmax is NaN.
#  max_pool1d     ignores the NaN and the numbers before it.
#  adaptive_max_pool1d ignores it.
#  logcumsumexp   ignores it, and starts with -3.4e38 if it is the first.
#  relu           returns 0, although relu6 and leaky_relu return NaN.
# A training whose numbers have become NaN can thus report a finite loss.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  paddlepaddle==3.3.1 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import numpy as np
import paddle
import paddle.nn.functional as F

nan = float("nan")


def show(name, values):
    print("%-31s" % name, *("%8.3g" % v for v in np.ravel(values)))


def places(name, f, n, nans):
    """Prints f of n - 1, n - 2, ..., 0, one of which becomes NaN."""
    results = []
    for place in nans:
        x = np.arange(n, dtype=np.float32)[::-1].reshape(1, 1, n).copy()
        x[..., place] = nan
        results.append(f(paddle.to_tensor(x)).numpy().ravel()[0])
    show(name, results)


label = paddle.to_tensor([1])
for n in (7, 8, 9):
    nans = (0, 2, n - 1)
    show("%d numbers, NaN is number" % n, [place + 1 for place in nans])
    places("  softmax, second element", lambda x: F.softmax(x)[..., 1], n, nans)
    places("  cross_entropy, label 1", lambda x: F.cross_entropy(
        x.reshape([1, -1]), label), n, nans)
    places("  log_softmax, second element",
           lambda x: F.log_softmax(x)[..., 1], n, nans)
    places("  max", paddle.max, n, nans)
    places("  max_pool1d", lambda x: F.max_pool1d(x, n), n, nans)
    places("  adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 1), n,
           nans)
for x in ([nan, 1, 2], [1, nan, 2]):
    show("logcumsumexp of %s" % " ".join("%g" % v for v in x),
         paddle.logcumsumexp(paddle.to_tensor(x)).numpy())
for f in (F.relu, F.relu6, F.leaky_relu):
    show(f.__name__ + " of nan", f(paddle.to_tensor([nan])).numpy())
EOF
"$work/venv/bin/python" -W ignore "$work/run.py" 2>"$work/log" >"$work/seen" ||
  { cat "$work/log"; exit 1; }
cat "$work/seen"
cat >"$work/want" <<'EOF'
7 numbers, NaN is number               1        3        7
  softmax, second element            nan      nan      nan
  cross_entropy, label 1             nan      nan      nan
  log_softmax, second element        nan      nan      nan
  max                                nan      nan      nan
  max_pool1d                           5        3      nan
  adaptive_max_pool1d                  5        6        6
8 numbers, NaN is number               1        3        8
  softmax, second element          0.125    0.254    0.233
  cross_entropy, label 1            2.08     1.37     1.46
  log_softmax, second element        nan      nan      nan
  max                                nan      nan      nan
  max_pool1d                           6        4      nan
  adaptive_max_pool1d                  6        7        7
9 numbers, NaN is number               1        3        9
  softmax, second element            nan    0.254      nan
  cross_entropy, label 1             nan     1.37      nan
  log_softmax, second element        nan      nan      nan
  max                                nan      nan      nan
  max_pool1d                           7        5      nan
  adaptive_max_pool1d                  7        8        8
logcumsumexp of nan 1 2         -3.4e+38        1     2.31
logcumsumexp of 1 nan 2                1     1.69     2.55
relu of nan                            0
relu6 of nan                         nan
leaky_relu of nan                    nan
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
