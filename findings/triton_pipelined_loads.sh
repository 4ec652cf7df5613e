#!/bin/sh
# Shows what Triton drops from a load in a pipelined loop: volatile, the cache
# modifier ".cv", and the eviction policy.
#
# Hypotheses before the run: if num_stages=3 turns tl.load into cp.async, the
# copy keeps the load's eviction policy, since cp.async takes the same policies.
# A load with volatile=True or ".cv" is not turned into cp.async, because it
# must not be executed iterations ahead.
#
# Result, sm_80 and sm_90: with num_stages=1, the loads are ld.volatile and
# ld.global.cv, and have the policy. With num_stages=3, Triton 3.8.0 and 3.9.0
# make an ordinary cp.async of the volatile load and of the load with ".cv", two
# iterations ahead, without a warning. Triton 3.8.0 drops the policy, too (3.4.0
# to 3.7.1 as well). Triton 3.9.0 keeps it for sm_90 (and has a ptxas without
# the fault in ptxas_cp_async_policy.sh), but not for sm_80.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/loads.py" <<'PY'
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a, b, c, K, N: tl.constexpr, P: tl.constexpr, M: tl.constexpr,
            V: tl.constexpr):
    m = tl.arange(0, N)
    pa = a + m[:, None] * K + m[None, :]
    pb = b + m[:, None] + m[None, :] * K
    acc = tl.zeros((N, N), tl.float32)
    for i in range(0, K, N):
        x = tl.load(pa, eviction_policy=P, cache_modifier=M, volatile=V)
        y = tl.load(pb, eviction_policy=P, cache_modifier=M, volatile=V)
        acc += tl.dot(x, y)
        pa += N
        pb += N
    tl.store(c + m[:, None] * N + m[None, :], acc)


def loads(arch, stages, policy, modifier, volatile):
    source = ASTSource(
        product, signature={"a": "*fp16", "b": "*fp16", "c": "*fp32",
                            "K": "i32", **dict.fromkeys("NPMV", "constexpr")},
        constexprs={"N": 64, "P": policy, "M": modifier, "V": volatile},
        attrs={(i,): [["tt.divisibility", 16]] for i in range(4)})
    kernel = triton.compile(source, target=GPUTarget("cuda", arch, 32),
                            options={"num_stages": stages, "num_warps": 4})
    ops = set(re.findall(r"\b(?:cp\.async\.c[ag]|ld\.[a-z.]*global)[\w.:]*",
                         kernel.asm["ptx"]))
    return " ".join(sorted(ops))


status = 0
HINT = "L2::cache_hint"
for arch in 80, 90:
    kept = arch == 90 and sys.argv[1] == "kept"
    for case, one, many in (
            (("evict_last", "", False), HINT, HINT if kept else None),
            (("", ".cv", False), ".cv", None),
            (("", "", True), "volatile", None)):
        for stages, want in (1, one), (3, many):
            ops = loads(arch, stages, *case)
            print(f"Triton {triton.__version__}, sm_{arch}, {stages} stages,",
                  *filter(None, case[:2]), "volatile:" if case[2] else ":",
                  ops)
            plain = ops == "cp.async.cg.shared.global"
            if plain if want else not plain:
                print(f"  expected {want or 'a plain cp.async'}")
                status = 1
            elif want and want not in ops:
                print(f"  expected {want}")
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
    "$work/loads.py" "${pair#*:}" 2>"$work/log" ||
    { status=1; cat "$work/log"; }
done
exit $status
# SPDX-License-Identifier: MIT
