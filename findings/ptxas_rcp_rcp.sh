#!/bin/sh
# Shows which approximate operations ptxas cancels against their inverse, and
# which operations of a value with itself (sm_90a, default optimisation).
#
# Hypothesis before the run: none. `.approx` names the unit MUFU, whose rounding
# and flushing would be lost, and min of a value with itself makes a NaN
# canonical (0x7fffffff), like min of two values.
#
# Result, ptxas 13.0.88: wrong for the first and the fifth.
#  rcp.approx.ftz of rcp.approx.ftz  no instruction: the result is the operand.
#      An operand of 1e-41 stays 1e-41 and does not become 0, as on an H200.
#  rcp.approx of rcp.approx          two MUFU.RCP
#  rcp.approx.ftz with neg between   two MUFU.RCP
#  ex2.approx.ftz of lg2.approx.ftz  MUFU.LG2, MUFU.EX2
#  min of x and x                    no instruction: a NaN keeps its bits
#  max.NaN of x and x                FMNMX.NAN
#  neg under a predicate             FSEL with a negated operand: a NaN keeps
#      its bits, which neg without a predicate (FADD) makes canonical
# With -O0, all of these are the instructions of the text.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  nvidia-cuda-nvcc==13.0.88 nvidia-cuda-nvdisasm==13.5.37
bin=$work/venv/lib/python3*/site-packages/nvidia
ptxas=$(find $bin -type f -name ptxas)
nvdisasm=$(find $bin -type f -name nvdisasm)
"$ptxas" --version | grep '^Build'

failed=0
# seen LEVEL NAME BODY WANT: compares the operations among BODY's instructions.
seen() {
  cat >"$work/k.ptx" <<EOF
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 o, .param .u32 n) {
  .reg .f32 %x, %z;
  .reg .b32 %n;
  .reg .b64 %from, %to;
  .reg .pred %p;
  ld.param.u64 %from, [a];
  ld.param.u64 %to, [o];
  ld.param.u32 %n, [n];
  setp.ne.u32 %p, %n, 0;
  ld.global.f32 %x, [%from];
  ld.global.f32 %z, [%from+4];
  $3
  st.global.f32 [%to], %z;
  ret;
}
EOF
  "$ptxas" "-O$1" -arch=sm_90a -o "$work/k.cubin" "$work/k.ptx"
  got=$("$nvdisasm" -c "$work/k.cubin" |
    grep -oE '(MUFU|FADD|FMNMX|FSEL)[.A-Z0-9]*' | tr '\n' ' ' | sed 's/ $//')
  printf '%-14s -O%s  %s\n' "$2" "$1" "${got:-none}"
  if [ "$got" != "$4" ]; then
    echo "                    was: $4" >&2
    failed=1
  fi
}
twice='rcp.approx.ftz.f32 %z, %x; rcp.approx.ftz.f32 %z, %z;'
seen 3 rcp_rcp_ftz "$twice" ''
seen 0 rcp_rcp_ftz "$twice" 'MUFU.RCP MUFU.RCP'
seen 3 rcp_rcp 'rcp.approx.f32 %z, %x; rcp.approx.f32 %z, %z;' \
  'FSEL FSEL MUFU.RCP FSEL FSEL MUFU.RCP'
seen 3 rcp_neg_rcp 'rcp.approx.ftz.f32 %z, %x; neg.f32 %z, %z;
  rcp.approx.ftz.f32 %z, %z;' 'MUFU.RCP MUFU.RCP'
seen 3 ex2_lg2_ftz 'lg2.approx.ftz.f32 %z, %x; ex2.approx.ftz.f32 %z, %z;' \
  'MUFU.LG2 MUFU.EX2'
seen 3 min_x_x 'min.f32 %z, %x, %x;' ''
seen 0 min_x_x 'min.f32 %z, %x, %x;' FMNMX
seen 3 max_nan_x_x 'max.NaN.f32 %z, %x, %x;' FMNMX.NAN
seen 3 neg 'neg.f32 %z, %x;' FADD
seen 3 neg_predicate '@%p neg.f32 %z, %x;' FSEL
seen 0 neg_predicate '@%p neg.f32 %z, %x;' 'FADD FSEL'
exit $failed
# SPDX-License-Identifier: MIT
