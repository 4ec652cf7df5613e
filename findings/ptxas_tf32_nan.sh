#!/bin/sh
# Shows what cvt.rna.tf32.f32 makes of a NaN, without and with .satfinite, for
# sm_90a. ptxas folds the conversion of a constant, so no GPU is needed.
#
# Hypothesis before the run: a NaN stays a NaN, whatever its payload, and with
# .satfinite the result is never infinite.
#
# Result, ptxas 13.0.88: the conversion is integer arithmetic on the bits.
#  .rna            clears the 13 low bits. A NaN whose payload is there becomes
#                  infinity: 0x7f800001 gives 0x7f800000.
#  .rna.satfinite  then subtracts 0x2000 from everything that is not finite.
#                  The same NaN becomes the largest finite number, 0x7f802000
#                  becomes infinity, and the quiet NaN 0x7fc00000 becomes a
#                  signaling one.
# For operands that are no constants, ptxas emits the same steps (FSETP, IADD,
# LOP3, VIADD), which this script also checks. cvt.rn.tf32.f32 has an
# instruction.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check --no-deps \
  nvidia-cuda-nvcc==13.0.88 nvidia-cuda-nvdisasm==13.5.37
bin=$work/venv/lib/python3*/site-packages/nvidia
ptxas=$(find $bin -type f -name ptxas)
nvdisasm=$(find $bin -type f -name nvdisasm)
"$ptxas" --version | grep '^Build'

# sass BODY: the instructions of a kernel that stores %r.
sass() {
  cat >"$work/k.ptx" <<EOF
.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 o) {
  .reg .f32 %a;
  .reg .b32 %r;
  .reg .b64 %to;
  ld.param.u64 %to, [o];
  $1
  st.global.u32 [%to], %r;
  ret;
}
EOF
  "$ptxas" -arch=sm_90a -o "$work/k.cubin" "$work/k.ptx"
  "$nvdisasm" -c "$work/k.cubin"
}

for mode in rna rna.satfinite; do
  for bits in 7f7fffff 7f800000 7f800001 7f802000 7fc00000; do
    printf '%-13s %s %s\n' $mode 0x$bits \
      "$(sass "mov.b32 %a, 0f$bits; cvt.$mode.tf32.f32 %r, %a;" |
         grep -oE 'MOV(\.U32)? [^;]*, 0x7[0-9a-f]{7} ' |
         grep -oE '0x[0-9a-f]+')"
  done
done >"$work/seen"
for mode in rna rna.satfinite rn; do
  printf '%-13s %s\n' $mode "$(
    sass "ld.global.f32 %a, [%to]; cvt.$mode.tf32.f32 %r, %a;" |
      grep -oE 'FSETP|IADD|LOP3|VIADD|F2FP' | tr '\n' ' ' | sed 's/ $//')"
done >>"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
rna           0x7f7fffff 0x7f800000
rna           0x7f800000 0x7f800000
rna           0x7f800001 0x7f800000
rna           0x7f802000 0x7f802000
rna           0x7fc00000 0x7fc00000
rna.satfinite 0x7f7fffff 0x7f7fe000
rna.satfinite 0x7f800000 0x7f7fe000
rna.satfinite 0x7f800001 0x7f7fe000
rna.satfinite 0x7f802000 0x7f800000
rna.satfinite 0x7fc00000 0x7fbfe000
rna           FSETP IADD LOP3
rna.satfinite FSETP IADD LOP3 FSETP VIADD
rn            F2FP
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
