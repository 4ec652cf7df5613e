-- Measures every script of the GEMM ladder at 256^3 and of the copy ladder at
-- 256 x 256. It measures the times of tracing, of NVRTC, and of the simulator
-- on one core. On a GPU it measures the time from the call to the result with
-- nothing cached. Each number is measured in a process of its own.
local core = require "cute.core"
local cute = require "cute"
local lesson = require "cutelua.bench.lesson"
local lib = require "cutelua.bench.lessonlib"
local measure = require "spec.measure"

local ITSELF, TURNS, N = "spec/bench/scripts.lua", 5, 256
local GEMMS = {"gemm_simt", "sgemm", "gemm_base", "gemm2stage",
  "gemm_l2swizzle", "gemm3stage", "gemm_sm80_best", "gemm_wgmma",
  "gemm_tf32", "gemm_f64",
  "gemm_int8", "gemm_fp8_sm89", "gemm_sm70"}
local COPIES = {"copy_basic", "copy_vector", "copy_async", "copy_swizzled",
  "copy_tile", "transpose"}

-- ---- child processes ----

-- Returns a script's kernel with its arguments (A, B for the copy ladder; A, B,
-- C for the GEMM ladder) and its launch options without the device.
local function copy_of(script)
  local spec = assert(lib.script_spec(script, "cutelua.bench.copylesson",
                                      "run"))
  local case = setmetatable(spec.cases and spec.cases[1] or {},
                            {__index = spec})
  local t = {}
  for i = 1, 2 do
    local b = core.buffer(case.dtype or cute.bf16, N * N):fill_normal(i)
    t[i] = cute.make_tensor(b, cute.make_layout({N, N}, {N, 1}))
  end
  local tile = case.tile
  return case.kernel, t, {grid = N // tile[1] * (N // tile[2]),
                          block = case.block}
end

local function gemm_of(script)
  local rung = require "spec.lesson" (script)
  local p = lesson.problem(rung, {N, N, N})
  return rung.kernel, {p.A, p.B, p.C}, {grid = rung.grid(N, N, N),
                                        block = rung.block}
end

local function load(script)
  local path = "scripts/" .. script .. ".lua"
  return (script:find "gemm" and gemm_of or copy_of)(path)
end

local function prepare(kernel, t, opts)
  local words = {table.unpack(t)}
  words[#words + 1] = opts
  return cute.compile(kernel, table.unpack(words))
end

-- Prints the milliseconds of tracing, verification and emission, the
-- milliseconds of NVRTC, and the seconds of the simulator.
local function host(script)
  local kernel, t, opts = load(script)
  local start = core.clock()
  local program = kernel(table.unpack(t)):trace {block = opts.block,
                                                 arch = "sm_90a"}
  program:cuda "sm_90a"
  local traced = core.clock()
  local out, why = program:compile "sm_90a"
  local compiled = core.clock()
  if not out and not why:find("no-nvrtc", 1, true) then error(why, 0) end
  opts.device, opts.threads = "sim:sm_90a", 1
  local run = prepare(kernel, t, opts)
  local report = run:launch()
  assert(report.ok, tostring(report))
  print((traced - start) * 1e3, out and (compiled - traced) * 1e3 or "-",
        report.seconds)
end

-- Prints the milliseconds from the call to the result, after context and data
-- are set up.
local function gpu(script)
  local kernel, t, opts = load(script)
  local device = assert(cute.device "gpu")
  for i = 1, #t do
    t[i] = core.on_device(t[i],
      assert(device.dev:buffer((core.param_memory(t[i])))))
  end
  assert(device.dev:sync())
  opts.device = device
  local start = core.clock()
  local run = assert(prepare(kernel, t, opts))
  run:launch()
  assert(device.dev:sync())
  print((core.clock() - start) * 1e3)
end

if arg[1] then return ({host = host, gpu = gpu})[arg[1]](arg[2]) end

-- ---- the tables ----

local function children(kind, script)
  local lists = {}
  for i = 1, TURNS do
    measure.progress(("%s, %s, %d of %d"):format(script, kind, i, TURNS))
    local out = measure.child({ITSELF, kind, script}, {CUTELUA_CACHE = "0"})
    local k = 0
    for x in out:gmatch "%S+" do
      k = k + 1
      lists[k] = lists[k] or {}
      lists[k][i] = tonumber(x)
    end
  end
  return lists
end

local titles = {
  measure.table "trace + verify + emit, first in a process",
  measure.table "NVRTC for sm_90a, nothing cached",
  measure.table "simulator (sm_90a), one thread, all checks on",
}
local cold = measure.table "cold to result on the GPU, beyond the context"
local device = cute.device "gpu"
for _, list in ipairs {COPIES, GEMMS} do
  for _, script in ipairs(list) do
    local lists = children("host", script)
    titles[1]:add(script, lists[1], "ms", 50)
    if #lists[2] > 0 then titles[2]:add(script, lists[2], "ms") end
    titles[3]:add(script, lists[3], "s", 2)
    if device then
      cold:add(script, children("gpu", script)[1], "ms", 500)
    end
  end
end
for _, t in ipairs(titles) do t:print() end
if device then cold:print() end
-- SPDX-License-Identifier: MIT
