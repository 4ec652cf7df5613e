#!/bin/sh
# Shows that NVRTC's option --Ofast-compile=max makes some compilations slower.
#
# Hypothesis before the run: a program compiles faster with --Ofast-compile=max
# than without it, at the expense of its speed. NVRTC's documentation says that
# the option reduces the time to compile. The option would then fit a first,
# quick version of a kernel, such as attention with its many small functions.
#
# Result, NVRTC 13.0.88 and 13.5.37, sm_90: a kernel that calls a small
# __forceinline__ function 500, 1000, 2000 times takes 0.05, 0.07, 0.14 s of
# processor time without the option, and 0.4, 2.9, 15 s with it. The time grows
# at least with the square of the number of calls, and the machine code is eight
# to ten times as large. A loop that NVRTC would unroll does compile faster with
# the option, because it stays a loop. The value mid has no such cost.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  nvidia-cuda-nvrtc=="${NVRTC:-13.0.88}"
lib=$(find "$work/venv" -name 'libnvrtc.so.13')
cat >"$work/fast.py" <<'EOF'
import ctypes, sys, time
lib = ctypes.CDLL(sys.argv[1])

def kernel(calls):
    lines = ["static __device__ __forceinline__ float f(float a, float b) {",
             "  return a * 0.5f + b;", "}",
             'extern "C" __global__ void k(const float *a, float *o) {',
             "  float v0 = a[threadIdx.x], v1 = a[threadIdx.x + 256];"]
    for i in range(2, calls + 2):
        lines.append("  float v%d = f(v%d, v%d);" % (i, i - 1, i - 2))
    return "\n".join(lines + ["  o[threadIdx.x] = v%d;" % (calls + 1), "}"])

def compile(source, *options):  # seconds of processor time, bytes of code
    options = [b"--gpu-architecture=sm_90", b"--no-cache"] + list(options)
    program, n = ctypes.c_void_p(), ctypes.c_size_t()
    lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0,
                           None, None)
    array = (ctypes.c_char_p * len(options))(*options)
    start = time.process_time()
    assert lib.nvrtcCompileProgram(program, len(options), array) == 0
    seconds = time.process_time() - start
    lib.nvrtcGetCUBINSize(program, ctypes.byref(n))
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return seconds, n.value

compile(kernel(1))
ratios = []
for calls in 500, 1000, 2000:
    plain = min(compile(kernel(calls)) for _ in range(2))
    fast = compile(kernel(calls), b"--Ofast-compile=max")
    ratios.append(fast[0] / plain[0])
    print("%4d calls: %.2f s, %d bytes; with --Ofast-compile=max %.2f s, "
          "%d bytes: %.1f times the time" % (calls, *plain, *fast, ratios[-1]))
middle = compile(kernel(2000), b"--Ofast-compile=mid")[0]
print("2000 calls with --Ofast-compile=mid: %.2f s" % middle)
sys.exit(not (ratios[2] > 2 * ratios[0] and ratios[2] > 10))
EOF
"$work/venv/bin/python" "$work/fast.py" "$lib"
# SPDX-License-Identifier: MIT
