#!/bin/sh
# Shows that ptxas serializes wgmmas if a group is in flight when a loop begins
# its next iteration, and uses more registers for four arrays of accumulators
# than for two.
#
# Hypotheses before the run:
# 1. A loop issues products to two arrays of accumulators in turn, and reads an
#    array only after wgmma.wait_group 1 has completed its group. ptxas then
#    does not serialize the wgmmas, also if the other array's group is in flight
#    at the end of an iteration.
# 2. If at most two arrays of accumulators are alive at a time, four arrays,
#    used one after the other, need as many registers as two arrays.
#
# Result, ptxas of NVRTC 13.0.88 and 13.5.37, sm_90a: both are wrong.
# 1. With a group in flight over the loop's back edge, ptxas reports C7514
#    (wgmma.mma_async instructions are serialized, because other instructions
#    read accumulator registers). If each iteration ends with wait_group 0, it
#    does not.
# 2. Four arrays take 253 registers, two arrays take 228.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  nvidia-cuda-nvrtc==13.5.37
lib=$(find "$work/venv" -name 'libnvrtc.so.13')
cat >"$work/edge.py" <<'EOP'
import ctypes, re, sys
lib = ctypes.CDLL(sys.argv[1])

def log(source):
    program, n = ctypes.c_void_p(), ctypes.c_size_t()
    lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0,
                           None, None)
    options = (ctypes.c_char_p * 2)(b"--gpu-architecture=sm_90a",
                                    b"--ptxas-options=-v")
    assert lib.nvrtcCompileProgram(program, 2, options) == 0
    lib.nvrtcGetProgramLogSize(program, ctypes.byref(n))
    text = ctypes.create_string_buffer(n.value)
    lib.nvrtcGetProgramLog(program, text)
    return text.value.decode()

TEXT = r'''
#define IN static __device__ __forceinline__
IN void mma(float *d, unsigned long long a, unsigned long long b, int add) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {@R}, %64, %65, p, 1,"
    " 1, 0, 0; }" : @O : "l"(a), "l"(b), "r"(add));
}
IN void start(float *d, unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  mma(d, a, b, 0);
  mma(d, a + 2, b + 2, 1);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template<int LATER>
IN void finish(float *sums, float *d, const float *scale, unsigned m) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LATER) : "memory");
  asm volatile("" : @O :: "memory");
  if (threadIdx.x % 32 == 0)
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(m) : "memory");
  for (int i = 0; i < 64; ++i) sums[i] += d[i] * scale[(i + m / 8) % 64];
}
extern "C" __global__ void __launch_bounds__(128)
k(float *out, unsigned long long a, unsigned long long b, int steps,
  unsigned m) {
  __shared__ float scale[64];
  float sums[64] = {};
  scale[threadIdx.x % 64] = out[threadIdx.x];
  __syncthreads();
  @BODY
  for (int i = 0; i < 64; ++i) out[threadIdx.x * 64 + i] = sums[i];
}'''
BODIES = {
  "in flight over the back edge": '''float x[64], y[64];
  start(x, a, b);
  #pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    start(y, a + 64, b + 64);
    finish<1>(sums, x, scale, m);
    start(x, a + 128, b + 128);
    finish<1>(sums, y, scale, m + 8);
  }
  finish<0>(sums, x, scale, m);''',
  "no group at the back edge": '''float x[64], y[64];
  #pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    start(x, a, b);
    start(y, a + 64, b + 64);
    finish<1>(sums, x, scale, m);
    finish<0>(sums, y, scale, m + 8);
  }'''}
for name, arrays in ("two arrays", "xyxy"), ("four arrays", "xyzw"):
    p, q, r, s = arrays
    BODIES[name] = f'''
  #pragma unroll 1
  for (int i = 0; i < steps; ++i) {{
    float {", ".join(c + "[64]" for c in sorted(set(arrays)))};
    start({p}, a, b);
    start({q}, a + 64, b + 64);
    finish<1>(sums, {p}, scale, m);
    start({r}, a + 128, b + 128);
    finish<1>(sums, {q}, scale, m + 8);
    start({s}, a + 192, b + 192);
    finish<1>(sums, {r}, scale, m + 16);
    finish<0>(sums, {s}, scale, m + 24);
  }}'''
for name, body in BODIES.items():
    words = {"R": ", ".join(f"%{i}" for i in range(64)), "BODY": body,
             "O": ", ".join(f'"+f"(d[{i}])' for i in range(64))}
    text = log(re.sub("@([A-Z]+)", lambda m: words[m[1]], TEXT))
    spilt = int(re.search(r"(\d+) bytes spill stores", text)[1])
    print(f"{name}: {re.search(r'Used ([0-9]+)', text)[1]} registers,",
          "spills," if spilt else "no spills,",
          " ".join(sorted(set(re.findall(r"C75\d\d", text)))) or "no warning")
EOP
"$work/venv/bin/python" "$work/edge.py" "$lib" | tee "$work/seen"
cat >"$work/want" <<'EOF2'
in flight over the back edge: 228 registers, no spills, C7514
no group at the back edge: 229 registers, no spills, no warning
two arrays: 228 registers, no spills, no warning
four arrays: 253 registers, no spills, no warning
EOF2
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
