#!/bin/sh
# Shows that Triton uses registers of tcgen05.ld before tcgen05.wait::ld.
#
# Hypothesis before the SASS was read: PTX's manual requires the wait before the
# first use, but ptxas makes the first use wait for the load anyway.
#
# Result, triton 3.9.0 and its ptxas 13.1: the accumulators of tl.dot are
# converted and stored to shared memory before tcgen05.wait::ld, which comes
# after the last use. The first use waits for the scoreboard of LDTM, the load's
# instruction, so that the kernel is right. nvidia-cutlass-dsl 4.8.1 emits no
# tcgen05.wait::ld at all for a cute.copy from tensor memory to registers.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check triton==3.9.0
cat >"$work/k.py" <<'PY'
import re, subprocess, sys, triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def product(a, b, c, K):
    acc = tl.zeros((128, 128), tl.float32)
    for k in range(0, K, 64):
        acc = tl.dot(a.load([0, k]), b.load([k, 0]), acc)
    c.store([0, 0], acc.to(tl.float16))

types = {"a": "tensordesc<fp16[128, 64]>", "b": "tensordesc<fp16[64, 128]>",
         "c": "tensordesc<fp16[128, 128]>", "K": "i32"}
made = triton.compile(ASTSource(product, types, {}, {}),
                      target=GPUTarget("cuda", 100, 32))
ptx = made.asm["ptx"]
load = ptx.index("tcgen05.ld.sync")
first = re.search(r"%r\d+", ptx[load:])[0]
wait = ptx.index("tcgen05.wait::ld", load)
between = ptx[ptx.index(";", load):wait]
uses = len(re.findall(re.escape(first) + r"\b", between))
stores = between.count("st.shared")
print(f"between tcgen05.ld and tcgen05.wait::ld: {uses} use of {first}, "
      f"{stores} stores to shared memory")

open(sys.argv[1] + "/k.cubin", "wb").write(made.asm["cubin"])
text = subprocess.run([sys.argv[2], "-hex", "-c", sys.argv[1] + "/k.cubin"],
                      capture_output=True, text=True, check=True).stdout
# An instruction has 128 bits. From bit 105 on: 4 bits for the stall, 1 to
# yield, 3 for the scoreboard that it sets when it has written its result, 3 for
# the one when it has read its operands, 6 for those that it waits for.
lines = re.findall(r"\*/\s+(.*?);\s+/\* 0x[0-9a-f]+ \*/\n\s+/\* (0x\w+) \*/",
                   text)
code = [(t.strip(), int(h, 16) >> 41) for t, h in lines]
at = next(i for i, (t, _) in enumerate(code) if t.startswith("LDTM"))
board = code[at][1] >> 5 & 7
use = next(i for i in range(at + 1, len(code)) if code[i][0].startswith("F2FP"))
waits = any(c >> 11 & 1 << board for _, c in code[at + 1:use + 1])
print(f"{code[at][0]} sets scoreboard {board}; {code[use][0]} comes after a "
      f"wait for it: {waits}")
sys.exit(not (uses and stores and board < 6 and waits))
PY
nvdisasm=$(find "$work/venv" -name nvdisasm | head -1)
TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" "$work/k.py" "$work" \
  "$nvdisasm"
# SPDX-License-Identifier: MIT
