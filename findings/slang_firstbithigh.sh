#!/bin/sh
# Shows what Slang's firstbithigh returns for unsigned and signed integers when
# it is compiled to CUDA and to C++.
#
# Hypothesis before the run: both targets follow HLSL. For an unsigned integer
# the result is the position of the highest bit that is 1; for a negative signed
# integer it is the position of the highest bit that is 0.
#
# Result, Slang 2026.14.1 (slangtorch 1.3.22), CUDA by NVRTC 13.0.88: CUDA
# treats unsigned integers as signed. 0x80000000 gives 30 for 31, and 0xffffffff
# gives -1 for 31. C++ has two functions, and all eight results are right. A
# logarithm of a hash, or of a size from 2^31 on, is thus wrong on CUDA alone.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
pip="$work/venv/bin/pip -q install --disable-pip-version-check --no-deps"
$pip slangtorch==1.3.22
$pip nvidia-cuda-nvrtc==13.0.88
bin=$(find "$work/venv/lib" -path '*slangtorch/bin')
cat >"$work/k.slang" <<'EOF'
RWStructuredBuffer<int> o;
static const uint U[4] = {1, 0x7fffffff, 0x80000000u, 0xffffffffu};
static const int I[4] = {1, 0x7fffffff, -1, -2};
[numthreads(1, 1, 1)] [shader("compute")] void k() {
  [unroll] for (int i = 0; i < 4; i++) o[i] = int(firstbithigh(U[i]));
  [unroll] for (int i = 0; i < 4; i++) o[4 + i] = int(firstbithigh(I[i]));
}
EOF
for target in cuda cpp; do
  LD_LIBRARY_PATH=$bin "$bin/slangc" "$work/k.slang" -target $target \
    -entry k -stage compute -o "$work/k.$target"
done

# CUDA: NVRTC folds the constants, so the PTX has the results as immediates.
cat >"$work/ptx.py" <<'EOF'
import ctypes, glob, re, sys

lib = ctypes.CDLL(glob.glob(sys.prefix + "/lib/python3*/site-packages/nvidia/"
                            "cu13/lib/libnvrtc.so.13")[0])
program, size = ctypes.c_void_p(), ctypes.c_size_t()
with open(sys.argv[1], "rb") as f:
    lib.nvrtcCreateProgram(ctypes.byref(program), f.read(), b"k.cu", 0, None,
                           None)
options = [b"--gpu-architecture=compute_90", b"-DSLANG_CUDA_RTC",
           b"-default-device", b"-w"]
assert lib.nvrtcCompileProgram(
    program, len(options), (ctypes.c_char_p * len(options))(*options)) == 0
lib.nvrtcGetPTXSize(program, ctypes.byref(size))
ptx = ctypes.create_string_buffer(size.value)
lib.nvrtcGetPTX(program, ptx)
register, stored = {}, {}
for line in ptx.value.decode().splitlines():
    if m := re.search(r"mov\.\w+\s+(%r\d+), (-?\d+);", line):
        register[m[1]] = m[2]
    if m := re.search(r"st\.global\.\w+\s+"
                      r"\[%rd\d+(?:\+(\d+))?\], (%r\d+);", line):
        stored[int(m[1] or 0) // 4] = register[m[2]]
print("CUDA unsigned", *(stored[i] for i in range(4)))
print("CUDA signed  ", *(stored[i] for i in range(4, 8)))
EOF
"$work/venv/bin/python" "$work/ptx.py" "$work/k.cuda" >"$work/seen"

# C++: the emitted text is compiled with a main that calls the kernel.
cat >>"$work/k.cpp" <<'EOF'
#include <stdio.h>
int main() {
  int o[8];
  GlobalParams_0 params = {};
  params.o_0.data = o;
  params.o_0.count = 8;
  ComputeVaryingInput input = {};
  input.endGroupID = uint3(1, 1, 1);
  k(&input, NULL, &params);
  printf("C++ unsigned  %d %d %d %d\n", o[0], o[1], o[2], o[3]);
  printf("C++ signed    %d %d %d %d\n", o[4], o[5], o[6], o[7]);
}
EOF
g++ -std=c++17 -w -o "$work/k" "$work/k.cpp"
"$work/k" >>"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
CUDA unsigned 0 30 30 -1
CUDA signed   0 30 -1 0
C++ unsigned  0 30 31 31
C++ signed    0 30 -1 0
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
