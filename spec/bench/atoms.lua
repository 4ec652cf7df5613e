-- Measures atoms in three ways: the time to load `cute` with all tables of
-- atoms; the time from trace to CUDA C of a kernel with an atom of each kind;
-- and the simulator's speed of MMAs.
local core = require "cute.core"
local cute = require "cute"
local measure = require "spec.measure"

local ITSELF = "spec/bench/atoms.lua"
local SF = "<float_e2m1_t,float_e2m1_t,float,float_ue4m3_t,16>"
local MMAS = {
  "UniversalFMA<float>", "SM61_DP4A", "SM61_DP2A", "SM100_2x1x1_F32F32F32F32",
  "SM70_8x8x4_F32F16F16F32_TN", "SM75_16x8x8_F32F16F16F32_TN",
  "SM80_16x8x16_F16F16F16F16_TN", "SM80_16x8x16_F32BF16BF16F32_TN",
  "SM80_16x8x8_F32TF32TF32F32_TN", "SM80_8x8x4_F64F64F64F64_TN",
  "SM80_8x8x4_C64C64C64C64_TN", "SM80_16x8x32_S32S8S8S32_TN",
  "SM80_16x8x64_S32U4U4S32_TN_SATURATE",
  "SM80_16x8x256_S32U1U1S32_TN_XORPOPC", "SM89_16x8x32_F32E4M3E5M2F32_TN",
  "SM90_16x8x16_F64F64F64F64_TN",
  "SM120_16x8x32_TN<float_e2m3_t,float_e2m1_t,float>",
  "SM120::SPARSE::SM120_SPARSE_16x8x64_TN<float_e4m3_t,float_e4m3_t,float>",
  "SM120::BLOCKSCALED::SM120_16x8x64_TN_VS" .. SF}
local MATRICES = {
  {"SM75_U32x4_LDSM_N", 8}, {"SM75_U16x8_LDSM_T", 8},
  {"SM90_U32x4_STSM_N", 8, true}, {"SM90_U16x4_STSM_T", 4, true}}

local function multiply(name)
  local mma = cute.make_tiled_mma(name)
  local M, N, K = table.unpack(mma.shape_mnk)
  local a, b = mma:partition_fragment_A {M, K}, mma:partition_fragment_B {N, K}
  local c = mma:partition_fragment_C {M, N}
  c:fill(0)
  if name:find "BLOCKSCALED" then
    local s = cute.make_rmem_tensor({4, 1, 1}, cute.u8)
    cute.gemm(mma, c, {a, s}, {b, s}, c)
  elseif name:find "SPARSE" then
    local half = cute.make_rmem_tensor({16, 1, 1}, cute.e4m3)
    local e = cute.make_rmem_tensor({1, 1, 1}, cute.u32)
    cute.gemm(mma, c, {half, e}, b, c)
  else
    cute.gemm(mma, c, a, b, c)
  end
end

-- One kernel with an atom of each kind.
local function all_kinds(mA, mB)
  local tid = cute.arch.thread_idx()
  for _, name in ipairs(MMAS) do multiply(name) end
  local s = cute.make_smem_tensor(cute.f16,
    cute.make_layout({32, 8}, {8, 1}), 128)
  local row = cute.local_tile(s, {1, 8}, {tid, 0})(0, cute._)
  cute.copy(cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.f16),
            mA(tid, cute._), row)
  cute.arch.cp_async_commit_group()
  cute.arch.cp_async_wait_group(0)
  cute.arch.sync_threads()
  for _, m in ipairs(MATRICES) do
    local r = cute.make_rmem_tensor({m[2]}, cute.f16)
    local atom = cute.make_copy_atom(m[1], cute.f16)
    if m[3] then cute.copy(atom, r, row) else cute.copy(atom, row, r) end
  end
  local x, y = cute.make_rmem_tensor({4}, cute.f16),
               cute.make_rmem_tensor({4}, cute.f16)
  cute.copy(cute.make_copy_atom("SM50_Shuffle_U32_2x2Trans_XOR1", cute.f16),
            x, y)
  cute.copy(cute.make_copy_atom("SM75_U32x1_MOVM_T", cute.f16),
            cute.local_tile(x, {2}, {0}), cute.local_tile(y, {2}, {0}))
  local w = cute.make_rmem_tensor({8}, cute.f32)
  cute.copy(cute.make_copy_atom("SM100_LOAD_256bit_CACHE_NOALLOCATION",
                                cute.f32), mB(tid, cute._), w)
  cute.copy(cute.make_copy_atom("UniversalCopy", cute.f32, 128),
            cute.local_tile(w, {4}, {0}),
            cute.local_tile(mB(tid, cute._), {4}, {1}))
  cute.copy(cute.make_copy_atom("AutoVectorizingCopy", cute.f32), w,
            mB(tid, cute._))
end

local A = cute.zeros(cute.make_layout({32, 8}, {8, 1}), cute.f16)
local B = cute.zeros(cute.make_layout({32, 8}, {8, 1}), cute.f32)

local function trace()
  local wall, cpu = core.clock(), os.clock()
  local program = cute.kernel("kinds", all_kinds)(A, B):trace {block = 32}
  program:cuda "sm_120a"
  return (core.clock() - wall) * 1e3, (os.clock() - cpu) * 1e3
end

if arg[1] == "trace" then
  print(trace())
  return
end

-- Returns the multiply-adds per second that the simulator computes for one
-- instruction in a kernel's loop, on one core.
local function rate(name)
  local N = 20000
  local mma = cute.make_tiled_mma(name)
  local M, n, K = table.unpack(mma.shape_mnk)
  local d = cute.zeros({M, n}, cute.f32)
  local run = cute.compile(cute.kernel("mma", function(mD)
    local a, b = mma:partition_fragment_A {M, K},
                 mma:partition_fragment_B {n, K}
    local c = mma:partition_fragment_C {M, n}
    a:fill(1.5)
    b:fill(0.75)
    c:fill(0)
    for _ in cute.range(N) do cute.gemm(mma, c, a, b, c) end
    mD[0] = c[0]:to(cute.f32)
  end), d, {grid = 1, block = 32, device = "sim:sm_90a", threads = 1})
  local list = {}
  for i = 1, 5 do
    local start = core.clock()
    assert(run:launch().ok)
    list[i] = N * M * n * K / (core.clock() - start) * 1e-6
  end
  return list
end

local function children(words, n)
  local wall, cpu = {}, {}
  for i = 1, n do
    local out = measure.child(words)
    local w, c = out:match "(%S+)%s+(%S+)"
    wall[i], cpu[i] = tonumber(w), tonumber(c)
  end
  return wall, cpu
end

local LOAD = [[
local start = os.clock()
local cute = require "cute"
print((os.clock() - start) * 1e3, 0)]]

local t = measure.table "Atoms"
t:add("require \"cute\"", (children({"-e", LOAD}, 15)), "ms", 10)
local wall, cpu = children({ITSELF, "trace"}, 9)
t:add("trace + emit, an atom of each kind, first", wall, "ms", 50)
t:add("  the same, cpu", cpu, "ms", 50)
local again = {}
for i = 1, 9 do again[i] = trace() end
t:add("  again in the same process", again, "ms", 50)
for _, name in ipairs {
  "SM80_16x8x16_F32BF16BF16F32_TN", "SM80_16x8x16_F32F16F16F32_TN",
  "SM80_16x8x8_F32TF32TF32F32_TN"} do
  t:add(name, rate(name), "million multiply-adds/s",
        name:find "BF16" and {least = 200})
end
t:print()
-- SPDX-License-Identifier: MIT
