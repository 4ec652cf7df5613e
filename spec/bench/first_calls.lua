-- Measures the parts of first calls with nothing compiled, without the time to
-- load the driver; no GPU is needed. For cute.ops.gemm on an H200 it measures
-- configuration and tracing, emission of CUDA C, and NVRTC. For each kernel of
-- the library, with the default options of its lesson, it measures NVRTC. All
-- times are seconds of CPU time.
local cute = require "cute"
local gemm = require "cute.ops.gemm"
local measure = require "spec.measure"
local worker = require "cutelua.tune.worker"

local ITSELF, BAR = "spec/bench/first_calls.lua", 0.5
local ops = cute.ops

---------------------------------------------------------------------------
-- Products
---------------------------------------------------------------------------

-- Returns an operand for a call that is only traced. Its buffer has one
-- element, since no kernel reads it.
local function new(dtype, shape, stride)
  return cute.make_tensor(cute.empty({1}, dtype).iterator,
                          cute.make_layout(shape, stride or cute.LayoutRight))
end

local CASES = {}

-- Adds a case: dtype is the type of A and B, d the type of D (`dtype` when
-- absent). o(M, N, K) returns further options of the product.
local function case(name, M, N, K, dtype, d, o)
  CASES[#CASES + 1] = {name = name, make = function()
    local options = o and o(M, N, K) or {}
    options.out = options.out or new(d or dtype, {M, N})
    return new(dtype, {M, K}), new(dtype, {options.gated and 2 * N or N, K}),
      options
  end}
end

local function epilogue(f)
  return function(M, N)
    local bias, residual = new("f32", {N}), new("bf16", {M, N})
    return {epilogue = f(bias, residual)}
  end
end
local gelu = epilogue(function(bias)
  return function(acc, at) return ops.gelu(acc + at:col(bias)) end
end)
local residual = epilogue(function(bias, r)
  return function(acc, at)
    return ops.silu(acc + at:col(bias)) + at:tile(r)
  end
end)
local function gates()
  return {gated = true,
          epilogue = function(gate, up) return ops.silu(gate) * up end}
end
local function tf32() return {tf32 = true} end

case("bf16 4096^3", 4096, 4096, 4096, "bf16")
case("bf16 16x4096x4096", 16, 4096, 4096, "bf16")
case("bf16 1x1024x8192", 1, 1024, 8192, "bf16")
case("bf16, GELU", 4096, 4096, 4096, "bf16", nil, gelu)
case("bf16, SiLU, residual", 4096, 4096, 4096, "bf16", nil, residual)
case("bf16, gates", 4096, 4096, 4096, "bf16", nil, gates)
case("e4m3, factors of blocks", 4096, 4096, 4096, "e4m3", "bf16",
  function(M, N, K)
    return {scale_a = new("f32", {M, K // 128}),
            scale_b = new("f32", {N // 128, K // 128})}
  end)
case("tf32 1024^3", 1024, 1024, 1024, "f32", nil, tf32)
case("i8 1024^3", 1024, 1024, 1024, "i8", "i32")
case("f64 1024^3", 1024, 1024, 1024, "f64")
case("f32 1024^3", 1024, 1024, 1024, "f32")
case("f32 1023^3", 1023, 1023, 1023, "f32")
case("f32 1023^3, GELU", 1023, 1023, 1023, "f32", nil, gelu)
case("bf16 1024x1024x1023", 1024, 1024, 1023, "bf16")
case("bf16 1023^3", 1023, 1023, 1023, "bf16")
case("bf16 1023^3, GELU", 1023, 1023, 1023, "bf16", nil, gelu)
case("bf16 1023^3, SiLU, residual", 1023, 1023, 1023, "bf16", nil, residual)
case("bf16 1023^3, gates", 1023, 1023, 1023, "bf16", nil, gates)
case("bf16 4095^3", 4095, 4095, 4095, "bf16")
case("bf16 4095^3, GELU", 4095, 4095, 4095, "bf16", nil, gelu)
case("bf16 16x64x4095", 16, 64, 4095, "bf16")
case("tf32 1023^3", 1023, 1023, 1023, "f32", nil, tf32)
case("i8 1023^3", 1023, 1023, 1023, "i8", "i32")
case("e4m3 1023^3", 1023, 1023, 1023, "e4m3", "bf16")

-- Prints, for a first call of cute.ops.gemm with the operands of case c, the
-- CPU time of each part: configuration and tracing, emission of CUDA C, and
-- NVRTC.
local function first(c)
  local A, B, o = c.make()
  o.device = worker.device("sm_90a", 132)
  o.device.info.name = "NVIDIA H200"
  local at = {os.clock()}
  local program = gemm.explain(A, B, o).trace()
  at[2] = os.clock()
  local text = program:cuda()
  at[3] = os.clock()
  assert(program:compile())
  at[4] = os.clock()
  print(at[2] - at[1], at[3] - at[2], at[4] - at[3], #text)
end

---------------------------------------------------------------------------
-- The library
---------------------------------------------------------------------------

local LESSONS = {"argmax", "attention", "attention_backward",
  "attention_decode", "conv2d", "elementwise", "gemm_epilogue",
  "gemm_grouped", "gemm_hopper", "gemm_int4", "gemm_sm80_best", "gemm_splitk",
  "histogram", "layernorm", "reduce", "rmsnorm", "rmsnorm_backward", "rope",
  "scan", "selective_scan", "softmax", "softmax_backward", "topk", "transpose"}

-- Prints NVRTC's time for a lesson's kernels.
local function lesson(name)
  local jit, total, text = require "cute.jit", 0, 0
  local compile = jit.compile
  function jit.compile(source, ...)
    local start = os.clock()
    local made, why = compile(source, ...)
    total, text = total + os.clock() - start, text + #source
    return made, why
  end
  local script = "scripts/" .. name .. ".lua"
  _G.arg = {[0] = script, "--emit", "ptx"}
  dofile(script)
  print(("\n%s %d"):format(total, text))
end

if arg and arg[1] == "first" then return first(CASES[tonumber(arg[2])]) end
if arg and arg[1] == "lesson" then return lesson(arg[2]) end

---------------------------------------------------------------------------

-- Returns the numbers in the last line that a child process prints.
local function numbers(...)
  local out = measure.child({ITSELF, ...}, {CUTELUA_CACHE = "0"})
  local list = {}
  for x in out:match "([^\n]*)\n$":gmatch "%S+" do
    list[#list + 1] = tonumber(x)
  end
  return table.unpack(list)
end

local probe, why = require "cute.jit".compile("__global__ void k() {}",
                                              {arch = "sm_90a"})
if not probe then return print("first calls not measured: " .. why) end

local t = measure.table "First calls of cute.ops.gemm, compiled for an H200"
for i, c in ipairs(CASES) do
  measure.progress(c.name)
  local trace, emit, nvrtc, bytes = numbers("first", tostring(i))
  t:add(c.name, trace + emit + nvrtc, "s", BAR,
    ("%.0f + %.0f + %.0f ms, %.0f KB"):format(trace * 1e3, emit * 1e3,
                                              nvrtc * 1e3, bytes / 1e3))
end
t:print()

t = measure.table "NVRTC on the library's kernels with default options"
for _, name in ipairs(LESSONS) do
  measure.progress(name)
  local nvrtc, bytes = numbers("lesson", name)
  t:add(name, nvrtc, "s", BAR, ("%.0f KB"):format(bytes / 1e3))
end
t:print()
-- SPDX-License-Identifier: MIT
