#!/bin/sh
# Shows how two SPIR-V tools treat constants of 16 bits: glslang compiles
# constant expressions of float16_t, and spirv-opt folds OpQuantizeToF16.
#
# Hypotheses before the run: spirv-opt rounds to nearest even. glslang computes
# in double precision, and rounds the result to nearest even.
#
# Result, glslang 12.0.0 and SPIRV-Tools 2023.1 (Debian 12): both truncate.
# glslang writes the half constants 0.2998 for 0.3hf (nearest: 0.3000), 65504
# for float16_t(65520.0) (nearest: infinity) and 0 for 2.99e-8hf (nearest:
# 5.96e-8). It does not round a constant at all that becomes a float again:
# float(float16_t(2049.0)) is 2049, and float(60000.0hf * 2.0hf) is 120000.
# spirv-opt -O turns OpQuantizeToF16 of 0.3 into 0.2998, and of 65520 into
# 65504. Vulkan lets a device truncate, but a device that rounds to nearest even
# computes other results for variables than these tools do for constants. If the
# module demands RoundingModeRTE, spirv-opt does not fold the instruction.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get download -q glslang-tools=12.0.0-2 \
  spirv-tools=2023.1-2 >apt 2>&1) || { cat "$work/apt" >&2; exit 1; }
for package in "$work"/*.deb; do
  dpkg -x "$package" "$work"
done
PATH=$work/usr/bin:$PATH
cat >"$work/k.comp" <<'EOF'
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer A { float16_t h[]; };
layout(binding = 1) buffer B { float f[]; };
void main() {
  h[0] = 0.3hf;
  h[1] = float16_t(2051.0);
  h[2] = float16_t(65520.0);
  h[3] = 2.99e-8hf;
  f[0] = float(0.3hf);
  f[1] = float(float16_t(2049.0));
  f[2] = float(float16_t(65520.0));
  f[3] = float(60000.0hf * 2.0hf);
}
EOF
cat >"$work/quantize.spvasm" <<'EOF'
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %array ArrayStride 4
OpMemberDecorate %struct 0 Offset 0
OpDecorate %struct BufferBlock
OpDecorate %buffer DescriptorSet 0
OpDecorate %buffer Binding 0
%void = OpTypeVoid
%function = OpTypeFunction %void
%float = OpTypeFloat 32
%uint = OpTypeInt 32 0
%n = OpConstant %uint 5
%array = OpTypeArray %float %n
%struct = OpTypeStruct %array
%to_struct = OpTypePointer Uniform %struct
%to_float = OpTypePointer Uniform %float
%buffer = OpVariable %to_struct Uniform
%i0 = OpConstant %uint 0
%i1 = OpConstant %uint 1
%i2 = OpConstant %uint 2
%i3 = OpConstant %uint 3
%x0 = OpConstant %float 0.3
%x1 = OpConstant %float 2051
%x2 = OpConstant %float 65520
%x3 = OpConstant %float 2.99e-8
%main = OpFunction %void None %function
%begin = OpLabel
%p0 = OpAccessChain %to_float %buffer %i0 %i0
%q0 = OpQuantizeToF16 %float %x0
OpStore %p0 %q0
%p1 = OpAccessChain %to_float %buffer %i0 %i1
%q1 = OpQuantizeToF16 %float %x1
OpStore %p1 %q1
%p2 = OpAccessChain %to_float %buffer %i0 %i2
%q2 = OpQuantizeToF16 %float %x2
OpStore %p2 %q2
%p3 = OpAccessChain %to_float %buffer %i0 %i3
%q3 = OpQuantizeToF16 %float %x3
OpStore %p3 %q3
OpReturn
OpFunctionEnd
EOF
cat >"$work/stores.py" <<'EOF'
# Prints the constants that a module stores, and the nearest f16 numbers.
import re
import struct
import sys


def value(text):
    return (float.fromhex if "0x" in text else float)(text)


def half(x):
    try:
        return struct.unpack("e", struct.pack("e", float(x)))[0]
    except OverflowError:
        return float("inf")


right = [half(x) for x in (0.3, 2051, 65520, 2.99e-8)]
if len(sys.argv) > 1:
    right += [half(x) for x in (0.3, 2049, 65520, half(60000) * 2)]
constants = {}
stored = []
for line in sys.stdin:
    if m := re.match(r"\s*(%\w+) = OpConstant %\w+ (\S+)", line):
        constants[m[1]] = value(m[2])
    if m := re.match(r"\s*OpStore %\w+ (%\w+)", line):
        stored.append(constants[m[1]])
for x, y in zip(stored, right, strict=True):
    print("  %-8.6g nearest: %.6g" % (x, y))
EOF
{
  glslangValidator --version | sed -n 's/^Glslang Version: 11:/glslang /p'
  glslangValidator -V -o "$work/k.spv" "$work/k.comp" >/dev/null
  spirv-val "$work/k.spv"
  spirv-dis --raw-id "$work/k.spv" | python3 "$work/stores.py" glsl
  spirv-opt --version 2>&1 | head -n 1 | cut -d' ' -f1,2
  spirv-as --target-env spv1.0 -o "$work/q.spv" "$work/quantize.spvasm"
  spirv-val "$work/q.spv"
  spirv-opt -O -o "$work/folded.spv" "$work/q.spv"
  spirv-dis --raw-id "$work/folded.spv" | python3 "$work/stores.py"
  sed 's/^OpCapability.*/&\nOpCapability RoundingModeRTE\
OpExtension "SPV_KHR_float_controls"/
    s/^OpExecutionMode .*/&\nOpExecutionMode %main RoundingModeRTE 16/' \
    "$work/quantize.spvasm" >"$work/rte.spvasm"
  spirv-as --target-env spv1.0 -o "$work/q.spv" "$work/rte.spvasm"
  spirv-val "$work/q.spv"
  spirv-opt -O -o "$work/rte.spv" "$work/q.spv"
  for name in folded rte; do
    echo "OpQuantizeToF16 in $name.spv:" \
      "$(spirv-dis "$work/$name.spv" | grep -c OpQuantizeToF16)"
  done
} >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
glslang 12.0.0
  0.299805 nearest: 0.300049
  2050     nearest: 2052
  65504    nearest: inf
  0        nearest: 5.96046e-08
  0.3      nearest: 0.300049
  2049     nearest: 2048
  65520    nearest: inf
  120000   nearest: inf
SPIRV-Tools v2023.1
  0.299805 nearest: 0.300049
  2050     nearest: 2052
  65504    nearest: inf
  0        nearest: 5.96046e-08
OpQuantizeToF16 in folded.spv: 0
OpQuantizeToF16 in rte.spv: 4
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
