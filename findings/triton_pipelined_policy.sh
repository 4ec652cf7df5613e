#!/bin/sh
# Shows that Triton drops the eviction policy of a load in a pipelined loop.
#
# Hypothesis before the run: tl.load(..., eviction_policy="evict_last") keeps
# its policy if the compiler turns the load into cp.async (num_stages=3), since
# cp.async takes the same policies as a load.
#
# Result: with num_stages=1, the loads have the policy. With num_stages=3,
# Triton 3.4.0, 3.6.0, 3.7.1 and 3.8.0 make cp.async without it, for sm_80 and
# sm_90, without a warning. Triton 3.9.0 keeps it for sm_90 (and has a ptxas
# that is free of the fault in ptxas_cp_async_policy.sh), but not for sm_80.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/policy.py" <<'PY'
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a, b, c, K, N: tl.constexpr, P: tl.constexpr):
    m = tl.arange(0, N)
    pa = a + m[:, None] * K + m[None, :]
    pb = b + m[:, None] + m[None, :] * K
    acc = tl.zeros((N, N), tl.float32)
    for i in range(0, K, N):
        x = tl.load(pa, eviction_policy=P)
        y = tl.load(pb, eviction_policy=P)
        acc += tl.dot(x, y)
        pa += N
        pb += N
    tl.store(c + m[:, None] * N + m[None, :], acc)


status = 0
for arch, stages, want in ((80, 1, True), (90, 1, True), (80, 3, False),
                           (90, 3, sys.argv[1] == "kept")):
    source = ASTSource(
        product, signature={"a": "*fp16", "b": "*fp16", "c": "*fp32",
                            "K": "i32", "N": "constexpr", "P": "constexpr"},
        constexprs={"N": 64, "P": "evict_last"},
        attrs={(i,): [["tt.divisibility", 16]] for i in range(4)})
    kernel = triton.compile(source, target=GPUTarget("cuda", arch, 32),
                            options={"num_stages": stages, "num_warps": 4})
    ops = set(re.findall(r"\b(?:cp\.async\.c[ag]|ld\.global)[\w.:]*",
                         kernel.asm["ptx"]))
    hinted = any("cache_hint" in op for op in ops)
    print(f"Triton {triton.__version__}, sm_{arch}, num_stages={stages}:",
          *sorted(ops))
    if hinted != want:
        print(f"  expected a policy: {want}")
        status = 1
sys.exit(status)
PY
status=0
for pair in 3.8.0:dropped 3.9.0:kept; do
  version=${pair%:*}
  python3 -m venv "$work/$version"
  "$work/$version/bin/pip" -q install --disable-pip-version-check \
    triton=="$version" setuptools
  TRITON_CACHE_DIR=$work/cache "$work/$version/bin/python" \
    "$work/policy.py" "${pair#*:}" 2>"$work/log" ||
    { status=1; cat "$work/log"; }
done
exit $status
# SPDX-License-Identifier: MIT
