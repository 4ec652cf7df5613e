#!/bin/sh
# Shows how tinygrad's max and argmax treat a NaN.
#
# Hypothesis before the run: one rule, whatever the position of the NaN. Either
# the maximum is NaN and argmax returns its index, as in NumPy and PyTorch, or
# a NaN is ignored, as by fmaxf of CUDA.
#
# Result, tinygrad 0.14.0 (devices CPU and PYTHON): the position decides. max is
# NaN if the NaN comes first, and ignores a NaN that comes later. argmax of
# three elements of which the first is NaN is 3, an index out of range:
# apparently it looks for an element that equals the maximum, and NaN equals
# none. Of four elements of which the first is NaN it is the index of the
# largest number.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  tinygrad==0.14.0 numpy==2.4.6
command -v clang >/dev/null || { echo "needs clang" >&2; exit 1; }
cat >"$work/run.py" <<'EOF'
import numpy as np
from tinygrad import Tensor, dtypes

nan = float("nan")
for values in ([nan, 1, 2], [1, nan, 2], [2, 1, nan], [nan] * 4,
               [nan, 1, 3, 2]):
    t = Tensor(values, dtype=dtypes.float32)
    print(*values, " max", t.max().item(), "argmax", t.argmax().item(),
          " NumPy", np.max(values), np.argmax(values))
EOF
DEV=CPU CACHELEVEL=0 "$work/venv/bin/python" "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
nan 1 2  max nan argmax 3  NumPy nan 0
1 nan 2  max 2.0 argmax 2  NumPy nan 1
2 1 nan  max 2.0 argmax 0  NumPy nan 2
nan nan nan nan  max nan argmax 4  NumPy nan 0
nan 1 3 2  max nan argmax 2  NumPy nan 0
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
