-- Compares two ways to simulate a kernel: directly, and through the PTX that
-- NVRTC compiles from the kernel's CUDA C. Compares the times, which alternate
-- in one process, and the memory. First checks that the results have the same
-- bits. Also measures the PTX parser and the translation to IR.
local core = require "cute.core"
local cute = require "cute"
local measure = require "spec.measure"
local through = require "spec.ptx.through"
local unused = require "cute.lang.unused"
local warpgroup = cute.nvgpu.warpgroup
local _ = cute._

local ITSELF = "spec/bench/ptx.lua"
local ARCH, DEVICE = "sm_90a", "sim:sm_90a"
local LIMIT, ROUNDS = 1.5, 9

---------------------------------------------------------------------------
-- Kernels
---------------------------------------------------------------------------

local function matrix(rows, columns, dtype, seed)
  local b = core.buffer(dtype, rows * columns)
  if seed then b:fill_normal(seed) end
  return cute.make_tensor(b, cute.make_layout({rows, columns}, {columns, 1})), b
end

-- Returns the call of the kernel of scripts/`name`.lua for size x size
-- matrices, its launch options, and the buffer of C.
local function lesson(name, size)
  local s = require "spec.lesson" (("scripts/%s.lua"):format(name))
  local A, B = matrix(size, size, "bf16", 1), matrix(size, size, "bf16", 2)
  local C, out = matrix(size, size, "bf16")
  local args = s.arguments and table.pack(s.arguments(A, B, C))
    or table.pack(A, B, C)
  local grid = s.grid and s.grid(size, size)
    or (size // s.tile[1]) * (size // s.tile[2])
  return s.kernel(table.unpack(args, 1, args.n)),
         {grid = grid, block = s.block, cluster = s.cluster}, out
end

-- A matrix product with 1,024 accumulators per thread: C (64,2048) = A B^T.
local WIDE, DEPTH = 2048, 32
local function wide_kernel()
  local atom = warpgroup.make_smem_layout_atom("K_SW64", "bf16")
  local a_layout = cute.tile_to_shape(atom, {64, DEPTH})
  local b_layout = cute.tile_to_shape(atom, {WIDE, DEPTH})
  local mma = cute.make_tiled_mma(
    warpgroup.MmaF16BF16Op("bf16", "f32", {64, 256, 16}, "SMEM"))
  local g2s = cute.make_tiled_copy(
    cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.bf16, 128),
    cute.make_layout({32, 4}, {4, 1}), cute.make_layout {1, 8})
  return cute.kernel("wide", function(mA, mB, mC)
    local tid = cute.arch.thread_idx()
    local sA = cute.make_smem_tensor(cute.bf16, a_layout, 1024)
    local sB = cute.make_smem_tensor(cute.bf16, b_layout, 1024)
    local gA = cute.local_tile(mA, {64, DEPTH}, {0, _})
    local gB = cute.local_tile(mB, {WIDE, DEPTH}, {0, _})
    local copy, thr = g2s:get_slice(tid), mma:get_slice(tid)
    local a, b = copy:partition_S(gA), copy:partition_S(gB)
    local to_a, to_b = copy:partition_D(sA), copy:partition_D(sB)
    local rA = mma:make_fragment_A(thr:partition_A(sA))
    local rB = mma:make_fragment_B(thr:partition_B(sB))
    local acc = thr:partition_fragment_C(mC)
    for k in cute.range(cute.size(gA, 2)) do
      cute.copy(g2s, a(_, _, _, k), to_a)
      cute.copy(g2s, b(_, _, _, k), to_b)
      cute.arch.cp_async_commit_group()
      cute.arch.cp_async_wait_group(0)
      cute.arch.fence_view_async_shared()
      cute.arch.sync_threads()
      warpgroup.fence()
      mma:set("ACCUMULATE", cute.gt(k, 0))
      cute.gemm(mma, acc, rA, rB, acc)
      warpgroup.commit_group()
      warpgroup.wait_group(0)
      cute.arch.sync_threads()
    end
    cute.autovec_copy(acc, thr:partition_C(mC))
  end)
end

local function wide()
  local K = 16 * DEPTH
  local A, B = matrix(64, K, "bf16", 1), matrix(WIDE, K, "bf16", 2)
  local C, out = matrix(64, WIDE, "f32")
  return wide_kernel()(A, B, C), {grid = 1, block = 128}, out
end

-- Returns a PTX text in whose main loop each thread also stores and loads one
-- byte per iteration.
local function with_bytes(text)
  local n
  text, n = text:gsub("(\n%.visible %.entry)",
    "\n.shared .align 1 .b8 flags[1024];%1", 1)
  assert(n == 1, "no entry")
  text, n = text:gsub("\n(%s*wgmma%.commit_group)", [[

{ .reg .b32 fa, fb; .reg .b16 fc;
mov.u32 fa, %%tid.x; mov.u32 fb, flags; add.u32 fa, fa, fb; mov.u16 fc, 1;
st.shared.u8 [fa], fc;
ld.shared.u8 fc, [fa]; }
%1]])
  assert(n > 0, "no commit_group")
  return text
end

local CASES = {
  {"gemm3stage, 512^3", function() return lesson("gemm3stage", 512) end},
  {"gemm_tma, 512^3", function() return lesson("gemm_tma", 512) end},
  {"gemm_ws, 512^3", function() return lesson("gemm_ws", 512) end},
  {"gemm_tma, 512^3, bytes in the PTX alone",
   function() return lesson("gemm_tma", 512) end, with_bytes},
  {"gemm_ws, 512^3, bytes in the PTX alone",
   function() return lesson("gemm_ws", 512) end, with_bytes},
  {"1,024 accumulators a thread, 64x2048x512", wide}}

---------------------------------------------------------------------------
-- Time and memory of a case
---------------------------------------------------------------------------

-- Compiles a call for a simulated device, as a prepared launch.
local function prepared(call, opts)
  local all = {device = DEVICE, threads = 1}
  for k, v in pairs(opts) do all[k] = v end
  return call:compile(all)
end

-- Returns the PTX that NVRTC compiles from a call's kernel, and its bytes of
-- dynamic shared memory. The case's third element, if present, is a function
-- that changes the PTX.
local function ptx_of(case, call, opts)
  local text, smem = through.call(call, opts, ARCH)
  return case[3] and case[3](text) or text, smem
end

-- Returns a call of the kernel in a PTX text. Its arguments are the values that
-- `call`, the call of the original kernel, passes.
local function rerouted(call, text, smem)
  local k = through.kernel(text, smem)
  return k(through.arguments(core.launch_values(call)))
end

local function seconds(run)
  local start = core.clock()
  assert(run:launch().ok)
  return core.clock() - start
end

-- Raises an error unless both runs write the same elements.
local function check(direct, ptx, out)
  seconds(direct)
  local want = core.buffer(out.dtype, #out):copy(out, 0, 0, #out)
  for i = 0, #out - 1 do out[i] = -1 end
  seconds(ptx)
  for i = 0, #out - 1 do
    if out[i] ~= want[i] then
      error(("element %d: %s through PTX, %s directly"):format(i, out[i],
                                                               want[i]), 0)
    end
  end
end

-- Returns, for each round, the time of the run through PTX divided by the time
-- of the direct run. Also returns the PTX text, and its bytes of dynamic shared
-- memory.
local function ratios(case)
  local call, opts, out = case[2]()
  local text, smem = ptx_of(case, call, opts)
  local direct = prepared(call, opts)
  local ptx = prepared(rerouted(call, text, smem), opts)
  check(direct, ptx, out)
  local list = {}
  for i = 1, ROUNDS do
    measure.progress(("%s, %d of %d"):format(case[1], i, ROUNDS))
    local a = seconds(direct)
    list[i] = seconds(ptx) / a
  end
  return list, text, smem
end

local function high_water()
  for line in io.lines "/proc/self/status" do
    local kb = line:match "^VmHWM:%s*(%d+) kB"
    if kb then return tonumber(kb) end
  end
end

-- Runs a case in this process, directly or through the PTX in a file. Prints by
-- how many KiB the run raised the peak of memory. The data and the loaded
-- program do not count.
local function child(number, path, smem)
  local call, opts = CASES[tonumber(number)][2]()
  local start = high_water()
  if path then
    unused.forget(call.kernel)
    call = rerouted(call, path, tonumber(smem))
  end
  seconds(prepared(call, opts))
  print(high_water() - start)
end

if arg[1] then return child(arg[1], arg[2], arg[3]) end

-- Measures case `number` in two child processes, and returns three numbers: the
-- peak memory of the run through PTX divided by that of the direct run, the
-- peak of the direct run in MiB, and the peak of the run through PTX in MiB.
local function memory(number, text, smem)
  local direct = tonumber(measure.child {ITSELF, tostring(number)})
  local ptx
  measure.with_folder(function(folder)
    local path = folder .. "/k.ptx"
    local f <close> = assert(io.open(path, "w"))
    f:write(text)
    f:close()
    ptx = tonumber(measure.child {ITSELF, tostring(number), path,
                                  tostring(smem)})
  end)
  return ptx / direct, direct / 1024, ptx / 1024
end

---------------------------------------------------------------------------
-- Parser and translation
---------------------------------------------------------------------------

local STEP = [[
ld.global.v4.f32 {f0, f1, f2, f3}, [b0];
add.u64 b0, b0, 16;
and.b32 a1, a0, 127;
shl.b32 a1, a1, 2;
add.u32 a1, a1, s;
st.shared.f32 [a1], f0;
bar.sync 0;
ld.shared.f32 f4, [a1];
fma.rn.f32 f5, f4, f1, f2;
mul.f32 f5, f5, f3;
setp.gt.f32 p0, f5, f0;
@p0 bra L%d;
add.rn.f32 f5, f5, f1;
xor.b32 a0, a0, 5;
L%d: selp.f32 f6, f5, f4, p0;
mad.lo.u32 a2, a0, 3, a1;
cvt.rn.f32.u32 f7, a2;
max.f32 f6, f6, f7;
shfl.sync.bfly.b32 a3, a2, 1, 31, -1;
st.global.f32 [b0+16], f6;
]]

-- Returns the text of an entry of about n instructions.
local function long(n)
  local list = {[[
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 px) {
.shared .align 16 .b8 sm[512];
.reg .b32 a<4>; .reg .f32 f<8>; .reg .b64 b<1>; .reg .pred p<1>; .reg .b32 s;
ld.param.u64 b0, [px];
mov.u32 s, sm;
mov.u32 a0, %tid.x;
]]}
  for k = 1, n // 20 do list[k + 1] = STEP:format(k, k) end
  list[#list + 1] = "ret;\n}\n"
  return table.concat(list)
end

-- Returns the milliseconds to parse a PTX text of `count` instructions and to
-- translate it to IR.
local function reading(text, count)
  local x = cute.zeros({1 << 16}, cute.f32)
  local parse, both = {}, {}
  for i = 1, 21 do
    local start = core.clock()
    local module = cute.ptx(text)
    parse[i] = (core.clock() - start) * 1e3
    module:kernel "k"(x):trace {block = 128, arch = ARCH}
    both[i] = (core.clock() - start) * 1e3
  end
  local n = 0
  for _, row in pairs(core.ptx_opcodes(cute.ptx(text).module, "k")) do
    n = n + row.count
  end
  assert(n >= count, n)
  return parse, both
end

if not core.jit_compile('extern "C" __global__ void k() {}', "compute_90a")
then
  print "PTX bench not run: it needs NVRTC"
  return
end

local t = measure.table "Kernels through PTX, beside direct runs"
for number, case in ipairs(CASES) do
  local times, text, smem = ratios(case)
  t:add(case[1] .. ", time", times, "of direct", LIMIT)
  local ratio, direct, ptx = memory(number, text, smem)
  t:add(case[1] .. ", memory", ratio, "of direct", LIMIT,
        ("%.1f, %.1f MiB"):format(direct, ptx))
end
local parse, both = reading(long(5000), 5000)
t:add("5,000 instructions parsed", parse, "ms")
t:add("5,000 instructions parsed and translated", both, "ms", 40)
t:print()
-- SPDX-License-Identifier: MIT
