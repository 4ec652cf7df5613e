-- The script of a bundle of many operations. With the argument "gpu" it calls
-- them on a GPU.
local cute = require "cute"
local core = require "cute.core"
local ops = cute.ops

local gpu = arg[1] == "gpu"
local kept = {}

-- Returns a copy of v with its tensors on the GPU, and keeps these tensors
-- alive.
local function there(v)
  if core.typename(v) == "tensor" then
    kept[#kept + 1] = v:to "gpu"
    return kept[#kept]
  elseif type(v) ~= "table" or getmetatable(v) then
    return v
  end
  local copy = {}
  for k, x in pairs(v) do copy[k] = there(x) end
  return copy
end

local function add(name, f, list)
  if not gpu then return cute.bundle.add(name, f, list) end
  kept[#kept + 1] = table.pack(f(table.unpack(there(list))))
end

local function rand(dtype, ...) return cute.rand({...}, dtype) end
local function bf16(...) return rand(cute.bf16, ...) end
local function f32(...) return rand(cute.f32, ...) end

add("gemm_f32", ops.gemm, {f32(64, 96), f32(80, 96)})
add("gemm_batch", ops.gemm, {bf16(3, 64, 64), bf16(3, 128, 64)})
add("gemm_c", function(A, B, C) return ops.gemm(A, B, C, {beta = 0.5}) end,
  {bf16(64, 64), bf16(128, 64), bf16(64, 128)})
add("gemm_sums", function(A, B)
  return ops.gemm(A, B, {epilogue = function(acc, at)
    return acc, at:row_reduce("sum", acc)
  end})
end, {bf16(256, 64), bf16(256, 64)})
add("gemm_fp8", ops.gemm, {rand(cute.e4m3, 64, 128), rand(cute.e4m3, 128, 128),
  {scale_a = f32(64), scale_b = f32(128)}})
add("gemm_odd", ops.gemm, {bf16(65, 33), bf16(17, 33)})
add("gemm_tall", ops.gemm, {bf16(4, 4096), bf16(256, 4096)})
add("rmsnorm", ops.rmsnorm, {bf16(16, 512), bf16(512)})
add("softmax", ops.softmax, {f32(16, 1000)})
add("topk", function(X) return ops.topk(X, 5) end, {f32(4, 1000)})
add("scale", function(x, y)
  return ops.elementwise(function(a, b) return a * b + 1 end, x, y)
end, {f32(1000), f32(1000)})
add("transpose", ops.transpose, {f32(100, 60)})
add("attention", ops.attention, {bf16(1, 128, 4, 64), bf16(1, 128, 4, 64),
  bf16(1, 128, 4, 64)})
add("backward", ops.attention_backward, {bf16(1, 128, 2, 64),
  bf16(1, 128, 2, 64), bf16(1, 128, 2, 64), bf16(1, 128, 2, 64),
  bf16(1, 128, 2, 64), f32(1, 2, 128)})
add("decode", ops.attention_decode, {bf16(2, 1, 8, 128), bf16(2, 512, 2, 128),
  bf16(2, 512, 2, 128)})
add("embedding", ops.embedding, {cute.zeros({16}, cute.i32), bf16(100, 64)})
add("grouped", ops.grouped_gemm, {bf16(256, 64), bf16(2, 128, 64),
  cute.tensor({0, 100, 256}, cute.i32)})

-- A convolution by a tensor map in im2col mode.
local conv = require "kernels.conv2d_sm90" {padding = 1, stride = 2,
                                            tile = {128, 64, 64}}
local image, filter = bf16(2, 9, 9, 64), bf16(64, 3, 3, 64)
local result = cute.zeros(conv.shape(image, filter), cute.bf16)
add("convolution", function(x, w, y)
  local list = conv.arguments(x, w, y)
  conv.kernel(table.unpack(list, 1, list.n)):launch {grid = conv.grid(y),
    block = conv.block, cluster = conv.cluster}
end, {image, filter, result})
-- SPDX-License-Identifier: MIT
