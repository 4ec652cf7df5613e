#!/bin/sh
# Shows that ptxas before 13.4 leaves registers out of a cp.async with a cache
# policy, from sm_90 on.
#
# Hypothesis before the run: since a load with a cache policy works, a cp.async
# with the same policy works, too, and costs no more than one without.
#
# Result, ptxas 12.0.76 to 13.3.73: if the address in shared memory has a
# uniform part, the SASS instruction names UR0 and UR1 as the registers of
# that part and of the policy, whatever registers hold them. With code for
# sm_90a, an H200 (driver 580.159.04) raised an illegal instruction on
# 2026-11-30; the loads worked. ptxas 13.4.92 and 13.5.37 name the registers.
# For sm_80, and without a policy, ptxas 13.0.88 makes no instruction with a
# uniform part.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/dis"
"$work/dis/bin/pip" -q install --disable-pip-version-check \
  nvidia-cuda-nvdisasm==13.5.37
nvdisasm=$(find "$work/dis" -name nvdisasm)
chmod +x "$nvdisasm"

# code VERSION TARGET HINT OPERAND: the operands of the copy that ptxas makes
code() {
  if [ ! -d "$work/$1" ]; then
    python3 -m venv "$work/$1"
    case $1 in 12.*) package=nvidia-cuda-nvcc-cu12 ;;
    *) package=nvidia-cuda-nvcc ;; esac
    "$work/$1/bin/pip" -q install --disable-pip-version-check "$package==$1"
  fi
  ptxas=$(find "$work/$1" -name ptxas)
  chmod +x "$ptxas"
  cat >"$work/k.ptx" <<PTX
.version 8.0
.target $2
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb) {
  .shared .align 16 .b8 s[512];
  .reg .b32 t, d, v; .reg .b64 a, b, o, w;
  ld.param.u64 a, [pa];
  ld.param.u64 b, [pb];
  cvta.to.global.u64 a, a;
  cvta.to.global.u64 b, b;
  mov.u32 t, %tid.x;
  shl.b32 t, t, 4;
  cvt.u64.u32 w, t;
  add.s64 a, a, w;
  add.s64 b, b, w;
  mov.u32 d, s;
  add.u32 d, d, t;
  createpolicy.fractional.L2::evict_last.b64 o, 1.0;
  cp.async.cg.shared.global$3 [d], [a], 16$4;
  cp.async.wait_all;
  ld.shared.u32 v, [d];
  st.global.u32 [b], v;
  ret;
}
PTX
  "$ptxas" -arch="$2" "$work/k.ptx" -o "$work/k.cubin"
  "$nvdisasm" "$work/k.cubin" 2>/dev/null |
    sed -n 's/.*LDGSTS[.A-Z0-9]* \(\[.*\]\), *\(desc\[UR[0-9]*\]\).*/\1 \2/p'
}

status=0
# expect WANTED VERSION TARGET HINT OPERAND
expect() {
  wanted=$1
  shift
  got=$(code "$@")
  echo "ptxas $1, $2, hint '$3': $got"
  if [ "$got" != "$wanted" ]; then
    echo "  expected $wanted"
    status=1
  fi
}

hint=.L2::cache_hint
for version in 12.0.76 12.9.86 13.0.88 13.3.73; do
  expect '[R7+UR0] desc[UR1]' $version sm_90a $hint ', o'
done
for version in 13.4.92 13.5.37; do
  expect '[R7+UR4] desc[UR5]' $version sm_90a $hint ', o'
done
expect '[R7] desc[UR4]' 13.0.88 sm_80 $hint ', o'
expect '[R7] desc[UR6]' 13.0.88 sm_90a '' ''
exit $status
# SPDX-License-Identifier: MIT
