#!/bin/sh
# Shows that ptxas 13.0 joins mul.rn.f32x2 and add.rn.f32x2 into one fma.
#
# Hypothesis before the run: as PTX's manual says, an addition with an explicit
# rounding modifier stays an addition, for pairs of f32 (sm_100 and later) as
# for single ones, and -fmad=false turns contraction off. NVIDIA's header says
# that each half of __fmul2_rn behaves as __fmul_rn, which is never merged.
#
# Result, ptxas 13.0.88, sm_100a: the pairs become FFMA2, which rounds once,
# with .rn, .rz, .rm or .ftz, and with -fmad=false. A fma.rn.f32x2 that adds
# -0, which rounds as a product does, is joined with the sum that follows, too.
# An `or.b64 d, d, 0` between the two prevents it, and costs no instruction.
# ptxas 13.5.37 keeps FMUL2 and FADD2.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/dis"
"$work/dis/bin/pip" -q install --disable-pip-version-check \
  nvidia-cuda-nvdisasm==13.5.37
nvdisasm=$(find "$work/dis" -name nvdisasm)
chmod +x "$nvdisasm"

# code VERSION PTX [OPTION...]: the arithmetic instructions that ptxas makes
code() {
  version=$1
  if [ ! -d "$work/$version" ]; then
    python3 -m venv "$work/$version"
    "$work/$version/bin/pip" -q install --disable-pip-version-check \
      nvidia-cuda-nvcc=="$version"
  fi
  ptxas=$(find "$work/$version" -name ptxas)
  chmod +x "$ptxas"
  cat >"$work/k.ptx" <<PTX
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 a, b, c, d, q; .reg .f32 x, y, z;
  ld.param.u64 q, [p];
  ld.global.v2.b64 {a, b}, [q];
  ld.global.b64 c, [q+16];
  $2
  st.global.b64 [q+24], d;
  ret;
}
PTX
  shift 2
  "$ptxas" -arch=sm_100a "$@" "$work/k.ptx" -o "$work/k.cubin"
  "$nvdisasm" "$work/k.cubin" |
    sed -n 's/.* \(F\(FMA\|MUL\|ADD\)2*[.A-Z]*\) R.*/\1/p' | tr '\n' ' '
}

status=0
# expect WANTED VERSION PTX [OPTION...]
expect() {
  wanted=$1
  shift
  got=$(code "$@")
  echo "ptxas $*: $got"
  if [ "$got" != "$wanted " ]; then
    echo "  expected $wanted"
    status=1
  fi
}

pair='mul.rn.f32x2 d, a, b; add.rn.f32x2 d, d, c;'
expect FFMA2 13.0.88 "$pair"
expect FFMA2 13.0.88 "$pair" -fmad=false
expect FFMA2.RZ 13.0.88 'mul.rz.f32x2 d, a, b; add.rz.f32x2 d, d, c;'
expect FFMA2 13.0.88 'mov.b64 d, 0x8000000080000000;
  fma.rn.f32x2 d, a, b, d; add.rn.f32x2 d, d, c;'
expect 'FMUL2 FADD2' 13.0.88 \
  'mul.rn.f32x2 d, a, b; or.b64 d, d, 0; add.rn.f32x2 d, d, c;'
expect 'FMUL FADD' 13.0.88 'mov.b64 {x, z}, a; mov.b64 {y, z}, b;
  mul.rn.f32 x, x, y; add.rn.f32 x, x, z; mov.b64 d, {x, x};'
expect 'FMUL2 FADD2' 13.5.37 "$pair"
exit $status
# SPDX-License-Identifier: MIT
