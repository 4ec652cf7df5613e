#!/bin/sh
# Shows two faults of NVRTC that make kernels wrong without a message, in four
# versions (sm_90a). Needs build/cutelua.
#
# Hypothesis before the run: 13.5, the newest, has corrected faults that 13.0
# has.
#
# Result, NVRTC 12.8.93, 12.9.86, 13.0.88 and 13.5.37: all four have both.
#  select  p ? constant[i] : written[j] becomes one ld.global.nc, at an address
#          that selp chose, although the kernel has just written there
#  shift   of four stores of v << n with n = 30 ... 33, the last two disappear
#          from the PTX; for a variable n, the hardware stores 0
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/ptx.lua" <<'LUA'
local core = require "cute.core"
local SELECT = [[
extern "C" __global__ void k(const float *__restrict__ x,
    float *__restrict__ y, float *__restrict__ z) {
  int t = threadIdx.x;
  y[16 * t + 7] = x[8 * t + 3] + 1.0f;
  z[t] = x[8 * t] < x[8 * t + 1] ? x[8 * t + 7] : y[16 * t + 7];
}]]
local SHIFT = [[
extern "C" __global__ void k(unsigned *y) {
  unsigned v = threadIdx.x + 1;
  #pragma unroll
  for (int n = 30; n < 34; n++) y[n] = v << n;
}]]
local function ptx(text)
  local out, why = core.jit_compile(text, "sm_90a", nil, true)
  return out and out.ptx or error(why, 0), out and out.nvrtc
end
local text, version = ptx(SELECT)
local chosen = text:match "selp%.b64%s+(%%rd%d+)"
local merged = chosen and text:find("ld.global.nc.f32 \t%%f%d+, %["
  .. chosen:gsub("%%", "%%%%") .. "%]") ~= nil
local _, stores = ptx(SHIFT):gsub("st%.global", "")
print(version, merged and "merged" or "apart", stores .. " stores")
if not merged or stores ~= 2 then
  print "the behaviour has changed"
  os.exit(1)
end
LUA
for package in nvidia-cuda-nvrtc-cu12==12.8.93 nvidia-cuda-nvrtc-cu12==12.9.86 \
    nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-nvrtc==13.5.37; do
  python3 -m pip -q install --disable-pip-version-check --no-deps \
    --root-user-action=ignore --target "$work/$package" "$package"
  CUTELUA_NVRTC="$work/$package" build/cutelua "$work/ptx.lua"
  rm -r "$work/$package"
done
# SPDX-License-Identifier: MIT
