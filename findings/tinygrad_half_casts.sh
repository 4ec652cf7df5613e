#!/bin/sh
# Shows what tinygrad computes for a cast from float32 to half and back.
#
# Hypothesis before the run: 65519 becomes 65504, 70000 becomes Inf, and
# 1 + 2^-11 becomes 1, whether or not the half tensor is stored in between.
#
# Result, tinygrad 0.14.0 (devices CPU and PYTHON): within one kernel the two
# casts are removed, and the numbers come back unchanged. If the half tensor is
# realized between the casts, its values are rounded. On CPU a product of two
# halves keeps the range of float32, too: 65504 * 2 gives 131008, and Inf if it
# is realized as half. A cast to bfloat16 and back rounds. A
# program that imitates half precision by casts thus measures no error at all.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  tinygrad==0.14.0 numpy==2.4.6
command -v clang >/dev/null || { echo "needs clang" >&2; exit 1; }
cat >"$work/run.py" <<'EOF'
from tinygrad import Tensor, dtypes

X = [65519.0, 70000.0, 1 + 2 ** -11]


def show(name, t):
    print("%-26s" % name, *("%.10g" % v for v in t.float().tolist()))


x = Tensor(X, dtype=dtypes.float32).realize()
show("half", x.cast(dtypes.half))
show("half, realized", x.cast(dtypes.half).realize())
show("half * 2", x.cast(dtypes.half) * 2)
show("half * 2, realized", (x.cast(dtypes.half) * 2).realize())
show("bfloat16", x.cast(dtypes.bfloat16))
EOF
DEV=CPU CACHELEVEL=0 "$work/venv/bin/python" "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
half                       65519 70000 1.000488281
half, realized             65504 inf 1
half * 2                   131008 inf 2
half * 2, realized         inf inf 2
bfloat16                   65536 70144 1
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
