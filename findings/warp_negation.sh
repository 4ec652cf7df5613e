#!/bin/sh
# Shows that Warp's -x of 0 is +0 on the CPU.
#
# Hypothesis before the run: -x flips the sign bit of a float, as in Python,
# NumPy, C and CUDA; so does -v for the elements of a vector.
#
# Result, warp-lang 1.19.0: of all values of float16 that are not NaN, +0 alone
# keeps its sign, in float16, float32 and float64. 1 / -x is then +inf instead
# of -inf, and atan2(-x, -1) is pi instead of -pi. Vectors are right: the
# elements of -v are -0.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/v"
"$work/v/bin/pip" -q install --disable-pip-version-check \
  warp-lang==1.19.0 numpy==2.4.6
cat >"$work/negation.py" <<'PY'
import numpy as np
import warp as wp
wp.config.quiet = True
wp.init()


@wp.kernel
def minus(h: wp.array(dtype=wp.float16), f: wp.array(dtype=wp.float32),
          d: wp.array(dtype=wp.float64), oh: wp.array(dtype=wp.float16),
          of: wp.array(dtype=wp.float32), od: wp.array(dtype=wp.float64),
          ov: wp.array(dtype=wp.float32), at: wp.array(dtype=wp.float32)):
    i = wp.tid()
    oh[i] = -h[i]
    of[i] = -f[i]
    od[i] = -d[i]
    v = -wp.vec2(f[i], f[i])
    ov[i] = v[1]
    at[i] = wp.atan2(-f[i], -1.0)


def bits(x):
    return x.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[x.itemsize])


h = np.arange(65536, dtype=np.uint16).view(np.float16)
h = h[~np.isnan(h)]
f, d = h.astype(np.float32), h.astype(np.float64)
out = [wp.zeros(len(h), dtype=t, device="cpu")
       for t in (wp.float16, wp.float32, wp.float64, wp.float32, wp.float32)]
wp.launch(minus, dim=len(h), device="cpu",
          inputs=[wp.array(x, device="cpu") for x in (h, f, d)] + out)
got = [x.numpy() for x in out]
print(*(int((bits(x) != bits(-y)).sum()) for x, y in zip(got, (h, f, d, f))),
      bits(got[0])[0], got[4][0])
PY
got=$("$work/v/bin/python" "$work/negation.py" 2>/dev/null | grep -v ' took ' |
  tail -1)
echo "$got"
# Wrong negations of the three types and of vectors of float32, the bits of -0
# in float16, and atan2(-0, -1).
[ "$got" = "1 1 1 0 0 3.1415927" ]
# SPDX-License-Identifier: MIT
