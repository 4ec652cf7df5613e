#!/bin/sh
# Shows how ptxas converts f32 to bf16 for four spellings of one value (sm_90a).
#
# Hypothesis before the run: the spelling does not matter. Rounding is the same
# instruction, F2FP.BF16.F32.PACK_AB. Two conversions whose results become the
# halves of a word are one instruction, whether they are cvt.rn.bf16.f32 or
# cvt.rn.bf16x2.f32 with a half of zero.
#
# Result, ptxas 13.0.88: only scalar conversions are paired.
#  halves  two cvt.rn.bf16.f32, then mov.b32 {lo, hi}    one F2FP
#  zeros   two cvt.rn.bf16x2.f32 of (0, x), then prmt    two F2FP and a PRMT
#  stored  one cvt.rn.bf16.f32, stored as 16 bits        one F2FP
#  widened one cvt.rn.bf16.f32, shifted left by 16       one F2F.BF16.F32
# A value that is rounded to bf16 and used as f32 gets another instruction than
# a stored one. Spelling it as the x2 form to avoid that costs two instructions
# wherever the value is half of a word.
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
# seen NAME BODY WANT: compares the conversions among the instructions of BODY.
seen() {
  cat >"$work/k.ptx" <<EOF
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 o) {
  .reg .f32 %x, %y;
  .reg .b16 %lo, %hi;
  .reg .b32 %w, %v, %r;
  .reg .b64 %from, %to;
  ld.param.u64 %from, [a];
  ld.param.u64 %to, [o];
  ld.global.f32 %x, [%from];
  ld.global.f32 %y, [%from+4];
  $2
  ret;
}
EOF
  "$ptxas" -arch=sm_90a -o "$work/k.cubin" "$work/k.ptx"
  got=$("$nvdisasm" -c "$work/k.cubin" | grep -oE '(F2FP?|PRMT)[.A-Z0-9_]*' |
    tr '\n' ' ' | sed 's/ $//')
  printf '%-8s %s\n' "$1" "$got"
  if [ "$got" != "$3" ]; then
    echo "         was: $3" >&2
    failed=1
  fi
}
pack=F2FP.BF16.F32.PACK_AB
seen halves 'cvt.rn.bf16.f32 %lo, %x; cvt.rn.bf16.f32 %hi, %y;
  mov.b32 %r, {%lo, %hi}; st.global.u32 [%to], %r;' "$pack"
seen zeros 'cvt.rn.bf16x2.f32 %w, 0f00000000, %x;
  cvt.rn.bf16x2.f32 %v, 0f00000000, %y;
  prmt.b32 %r, %w, %v, 0x5410; st.global.u32 [%to], %r;' "$pack $pack PRMT"
seen stored 'cvt.rn.bf16.f32 %lo, %x; st.global.u16 [%to], %lo;' "$pack"
seen widened 'cvt.rn.bf16.f32 %lo, %x; cvt.u32.u16 %w, %lo;
  shl.b32 %r, %w, 16; st.global.u32 [%to], %r;' F2F.BF16.F32
exit $failed
# SPDX-License-Identifier: MIT
