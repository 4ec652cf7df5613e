#!/bin/sh
# Shows that 16-byte stores after a loop make ptxas choose registers with bank
# conflicts inside the loop, and that adding 0 before the stores avoids them.
#
# On Hopper, registers with even and with odd numbers form two banks, which
# deliver one register per cycle each. An FMA reads three registers; the operand
# that the preceding FMA read in the same place (.reuse) needs no read.
#
# Hypothesis before the run: in a loop of 1024 FMAs whose 128 sums are stored
# 16 bytes at a time after the loop, an `add.rn.f32 x, x, 0` between loop and
# stores costs 128 additions and leaves the code of the loop as it is, except
# for the numbers of registers. A loop without a constant count has the same
# code as one with a constant count. A later ptxas does the same.
#
# Result, ptxas 13.0.88, sm_90a: without the additions, the first FMAs of each
# iteration move sums to other registers, and 15 FMAs (19 if the count is a
# parameter) read three registers of one bank. With the additions, which cost
# 128 instructions once, no FMA does. ptxas 13.5.37 emits the same numbers.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/dis"
"$work/dis/bin/pip" -q install --disable-pip-version-check \
  nvidia-cuda-nvdisasm==13.5.37
nvdisasm=$(find "$work/dis" -name nvdisasm)
chmod +x "$nvdisasm"

# Writes a kernel. The loop multiplies 8 values by 16 in each of 8 steps, and
# loads the values of the next step at the same time.
cat >"$work/kernel.py" <<'PY'
import sys
add, count = sys.argv[1] == "add", sys.argv[2]
out = ["""
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 count)
.maxntid 128 .minnctapersm 2 {
.reg .f32 c<128>, a<16>, b<32>; .reg .b32 s, t, u, n, x;
.reg .b64 q, w; .reg .pred z; .shared .align 16 .b8 m[24576];
ld.param.u64 q, [p]; cvta.to.global.u64 q, q; ld.param.u32 n, [count];
mov.u32 t, %tid.x; mov.u32 s, m; and.b32 u, t, 7; shl.b32 u, u, 4;
add.u32 u, u, s; shr.u32 x, t, 3; shl.b32 x, x, 4; add.u32 s, s, x;"""]


def load(step, slot):
    for name, at, n, base in ("a", "u", 8, 0), ("b", "s", 16, 8192):
        for i in range(0, n, 4):
            regs = ", ".join(f"{name}{slot * n + i + j}" for j in range(4))
            out.append(f"ld.shared.v4.f32 {{{regs}}}, "
                       f"[{at}+{base + step * 512 + i * 32}];")


out += [f"mov.f32 c{i}, 0f00000000;" for i in range(128)]
load(0, 0)
out.append("setp.eq.u32 z, n, 0;\n@z bra DONE;" if count == "parameter"
           else f"mov.u32 n, {count};")
out.append("LOOP:")
for step in range(8):
    if step == 7:
        out.append("bar.sync 0;")
    load((step + 1) % 8, (step + 1) % 2)
    slot = step % 2
    for j in range(16):
        for i in range(8) if j % 2 == 0 else range(7, -1, -1):
            c = f"c{i * 16 + j}"
            out.append(f"fma.rn.f32 {c}, a{slot * 8 + i}, b{slot * 16 + j}, "
                       f"{c};")
out += ["sub.u32 n, n, 1;", "setp.ne.u32 z, n, 0;", "@z bra LOOP;", "DONE:"]
if add:
    out += [f"add.rn.f32 c{i}, c{i}, 0f00000000;" for i in range(128)]
out.append("mul.wide.u32 w, t, 16; add.u64 q, q, w;")
for i in range(0, 128, 4):
    regs = ", ".join(f"c{i + j}" for j in range(4))
    out.append(f"st.global.v4.f32 [q+{i * 512}], {{{regs}}};")
print("\n".join(out) + "\nret; }")
PY

# Counts the FMAs of a disassembly that read three registers of one bank.
cat >"$work/banks.py" <<'PY'
import re
import sys
held, n, worst = {}, 0, 0
for line in sys.stdin:
    m = re.search(r"\*/\s+(?:@!?U?P\d+ )?\s*([A-Z0-9_.]+)\s*(.*?);", line)
    if not m:
        continue
    reads, now = set(), {}
    if m.group(1).startswith("FFMA"):
        n += 1
        for i, word in enumerate(m.group(2).split(",")[1:4]):
            r = re.match(r"\s*-?R(\d+)(\.reuse)?", word)
            if r and held.get(i) != r.group(1):
                reads.add(int(r.group(1)))
            if r and r.group(2):
                now[i] = r.group(1)
        odd = sum(r % 2 for r in reads)
        worst += max(odd, len(reads) - odd) == 3
    held = now
print(n, worst)
PY

status=0
# expect WANTED VERSION ADDITIONS COUNT
expect() {
  if [ ! -d "$work/$2" ]; then
    python3 -m venv "$work/$2"
    "$work/$2/bin/pip" -q install --disable-pip-version-check \
      nvidia-cuda-nvcc=="$2"
  fi
  ptxas=$(find "$work/$2" -name ptxas)
  chmod +x "$ptxas"
  python3 "$work/kernel.py" "$3" "$4" >"$work/k.ptx"
  "$ptxas" -arch=sm_90a "$work/k.ptx" -o "$work/k.cubin"
  got=$("$nvdisasm" -c "$work/k.cubin" | python3 "$work/banks.py")
  echo "ptxas $2, $3, count $4: FMAs, three reads of one bank: $got"
  if [ "$got" != "$1" ]; then
    echo "  expected $1"
    status=1
  fi
}

for version in 13.0.88 13.5.37; do
  expect '1024 15' $version none 256
  expect '1024 0' $version add 256
  expect '1024 19' $version none parameter
  expect '1024 0' $version add parameter
done
exit $status
# SPDX-License-Identifier: MIT
