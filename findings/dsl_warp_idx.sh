#!/bin/sh
# Shows what cute.arch.warp_idx() of the CuTe DSL is in PTX (sm_90a).
#
# Hypothesis before the run: arithmetic on %tid (or %warpid), so that a call
# inside a branch for some lanes is as good as one before it.
#
# Result, nvidia-cutlass-dsl 4.8.1: a shfl.sync.idx of lane 0 with the mask of
# all 32 lanes. In a branch that only some lanes of a warp take, such as
# `if tidx < 5: ... warp_idx()`, the shuffle names lanes that do not execute it,
# which PTX leaves undefined (shfl.sync: each lane of membermask must execute
# the same shfl.sync). The DSL neither hoists the shuffle nor warns.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  nvidia-cutlass-dsl==4.8.1
mkdir "$work/dump"
cat >"$work/k.py" <<'EOF'
import cutlass, cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor

@cute.kernel
def few(out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    if t < 5:
        out[t] = cute.arch.warp_idx()

@cute.jit
def run(out: cute.Tensor):
    few(out).launch(grid=(1, 1, 1), block=(64, 1, 1))

cute.compile(run, make_fake_compact_tensor(cutlass.Int32, (64,)))
EOF
cd "$work"
CUTE_DSL_ARCH=sm_90a CUTE_DSL_KEEP=ptx CUTE_DSL_NO_CACHE=1 \
  CUTE_DSL_DUMP_DIR=$work/dump "$work/venv/bin/python" k.py
"$work/venv/bin/pip" list 2>/dev/null | grep nvidia-cutlass-dsl
ptx=$(find "$work/dump" -name '*.ptx')
body=$(grep -vE '^[[:space:]]*(\.loc|//|$)' "$ptx" | sed -n '/^{/,/^}/p')
echo "$body"
# The branch of the lanes from 5 on comes first, and the shuffle behind it.
echo "$body" | awk '
  /@.*bra/ { branch = NR }
  /shfl.sync.idx/ && / -1;/ { shuffle = NR }
  END { exit !(branch && shuffle > branch) }'
# SPDX-License-Identifier: MIT
