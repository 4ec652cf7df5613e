#!/bin/sh
# Shows that NVRTC writes the accumulators of a wgmma between wgmma.fence and
# the wgmma.
#
# Hypothesis before the run: between inline PTX wgmma.fence and the next
# wgmma.mma_async, the compiled PTX writes no register of the accumulators,
# because PTX orders other accesses to these registers only by the fence.
#
# Result, NVRTC 13.0.88 and 13.5.37, sm_90a: the source of the kernel has four
# products in each iteration, in two arrays of accumulators in turn. The results
# of each are added to sums after wgmma.wait_group, before the same array's next
# fence. If the sums are scaled by factors that were loaded before the wait,
# NVRTC moves the additions of the first array behind the array's next
# wgmma.fence. The old accumulators are then alive, and NVRTC copies all of
# them, by mov.f32, between that fence and the wgmma.mma_async. With two
# products in each iteration there are no copies. ptxas accepts both.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  nvidia-cuda-nvrtc==13.5.37
lib=$(find "$work/venv" -name 'libnvrtc.so.13')
cat >"$work/moves.py" <<'EOP'
import ctypes, re, sys
lib = ctypes.CDLL(sys.argv[1])

def ptx(source):
    program, n = ctypes.c_void_p(), ctypes.c_size_t()
    lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0,
                           None, None)
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_90a")
    assert lib.nvrtcCompileProgram(program, 1, options) == 0
    lib.nvrtcGetPTXSize(program, ctypes.byref(n))
    text = ctypes.create_string_buffer(n.value)
    lib.nvrtcGetPTX(program, text)
    return text.value.decode()

TEXT = r'''
#define IN static __device__ __forceinline__
IN void mma(float *d, unsigned long long a, unsigned long long b, int add) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %@P, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n@Nk16.f32.f16.f16 {@R}, %@A, %@B, p, 1,"
    " 1, 0, 0; }" : @O : "l"(a), "l"(b), "r"(add));
}
IN void kept(float *d) { asm volatile("" : @O :: "memory"); }
IN void arrive(unsigned m) {
  if (threadIdx.x % 32 == 0)
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(m) : "memory");
}
IN void await(unsigned m) {
  asm volatile("{ .reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p,"
    " [%0], 0;\n@p bra D;\nbra W;\nD: }" :: "r"(m) : "memory");
}
IN void start(float *d, unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  mma(d, a, b, 0);
  mma(d, a + 2, b + 2, 1);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template<int LATER>
IN void finish(float *sums, float *d, const float *scale, unsigned m) {
  await(m + 64);
  int t = threadIdx.x;
  float row[2] = {scale[t % 64], scale[t % 64 + 8]}, column[@H];
  for (int i = 0; i < @H; ++i)
    column[i] = scale[64 + i / 4 * 8 + t % 4 * 2 + i % 2];
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LATER) : "memory");
  kept(d);
  arrive(m);
  for (int i = 0; i < @H; ++i)
    sums[i] = __fmaf_rn(d[i], row[i / 2 % 2] * column[i], sums[i]);
  __syncwarp();
  arrive(m + 128);
}
extern "C" __global__ void k(float *out, unsigned long long a,
                             unsigned long long b, int steps, unsigned m) {
  __shared__ float scale[256];
  float sums[@H] = {};
  scale[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  #pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    float x[@H], y[@H];
    start(x, a, b);
    start(y, a + 64, b + 64);
    finish<1>(sums, x, scale, m);
    if (@F) {
      start(x, a + 128, b + 128);
      finish<1>(sums, y, scale, m + 8);
      start(y, a + 192, b + 192);
      finish<1>(sums, x, scale, m + 16);
    }
    finish<0>(sums, y, scale, m + 24);
  }
  for (int i = 0; i < @H; ++i) out[threadIdx.x * @H + i] = sums[i];
}'''

def moves(n, four):
    half = n // 2
    words = {"N": n, "H": half, "A": half, "B": half + 1, "P": half + 2,
             "F": four, "R": ", ".join(f"%{i}" for i in range(half)),
             "O": ", ".join(f'"+f"(d[{i}])' for i in range(half))}
    found, between = 0, 0
    for line in ptx(re.sub("@([A-Z])", lambda m: str(words[m[1]]),
                           TEXT)).splitlines():
        if "wgmma.fence" in line:
            between = 0
        elif "wgmma.mma_async" in line:
            found, between = found + between, 0
        elif re.match(r"\s*mov\.(f32|b32)\s+%f", line):
            between += 1
    return found

for four in (0, 1):
    print("%d products:" % (4 if four else 2),
          *(f"n={n} {moves(n, four)}" for n in (16, 24, 32, 48)))
EOP
"$work/venv/bin/python" "$work/moves.py" "$lib" | tee "$work/seen"
cat >"$work/want" <<'EOF2'
2 products: n=16 0 n=24 0 n=32 0 n=48 0
4 products: n=16 8 n=24 12 n=32 16 n=48 24
EOF2
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
