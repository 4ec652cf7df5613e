-- Measures the steps from an edit to a running kernel: tracing, NVRTC, the disk
-- cache.
--
-- The measured kernels are the one of scripts/gemm3stage.lua and, with several
-- configurations, the one of kernels/gemm_sm90.lua. "First" is the first time
-- in a fresh process, with a process for each number. "Again" is a later time
-- in one process, with a newly made kernel each time. "cpu" is processor time,
-- which also makes sense on a busy machine.
local core = require "cute.core"
local cute = require "cute"
local jit = require "cute.jit"
local gemm_sm90 = require "kernels.gemm_sm90"
local measure = require "spec.measure"
local load_script = require "spec.lesson"

local SCRIPT, ARCHS = "scripts/gemm3stage.lua", {"sm_80", "sm_90a"}
-- NVRTC's milliseconds for a mock kernel with 59 KB of CUDA C and no
-- headers
local MOCK_MS = 276
-- Limits in milliseconds for the Hopper kernel: HOPPER_MS for tracing it and
-- emitting CUDA C, HOPPER_NVRTC_MS for compiling that text by NVRTC
local HOPPER_MS, HOPPER_NVRTC_MS = 30, 550
local OPTIONS = {"--fmad=false"}
local REFERENCE = os.getenv "CUTELUA_REFERENCE_DIR"

local function tensors(size)
  local function matrix()
    local b = core.buffer("bf16", size * size)
    return cute.make_tensor(b, cute.make_layout({size, size}, {size, 1}))
  end
  return matrix(), matrix(), matrix()
end

local A, B, C = tensors(256)

-- Returns f's result, and the milliseconds that f took: wall-clock and
-- processor time.
local function timed(f)
  local wall, cpu = core.clock(), os.clock()
  local value = f()
  return value, (core.clock() - wall) * 1e3, (os.clock() - cpu) * 1e3
end

-- Loads the script anew, traces its kernel and emits CUDA C. Returns the
-- program, wall-clock milliseconds and processor milliseconds.
local function trace(arch)
  local script = load_script(SCRIPT)
  return timed(function()
    local program = script.kernel(A, B, C):trace {block = script.block}
    program:cuda(arch or "sm_80")
    return program
  end)
end

local HOPPER = {
  {"128x256, cluster 2x1", tile = {128, 256, 64}, stages = 4,
   cluster = {2, 1}},
  {"256x208, cluster 1x2", tile = {256, 208, 64}, stages = 3,
   cluster = {1, 2}, epi_stages = 1},
  {"128x128, in turns", tile = {128, 128, 64}, stages = 6,
   schedule = "pingpong", swizzle = 16},
  {"128x128, K in halves", tile = {128, 128, 64}, stages = 5, split = 2,
   epi_stages = 1}}

-- Traces the Hopper kernel with configuration number i and emits CUDA C.
-- Returns the program, wall-clock milliseconds and processor milliseconds.
local function trace_hopper(i)
  local choices = {}
  for k, v in pairs(HOPPER[i]) do if k ~= 1 then choices[k] = v end end
  local gemm = gemm_sm90(choices)
  local list = gemm.arguments(A, B, C)
  return timed(function()
    local program = gemm.kernel(table.unpack(list, 1, list.n)):trace {
      block = gemm.block, cluster = gemm.cluster}
    program:cuda()
    return program
  end)
end

local function compile(text, arch, name)
  return timed(function()
    local out, message = jit.compile(text, {arch = arch, cache = false,
                                            name = name or "gemm3stage",
                                            options = OPTIONS})
    if not out then error(message, 0) end
  end)
end

local function reference()
  local f <close> = REFERENCE and
    io.open(REFERENCE .. "/gemm_sm80_128x256.cu")
  return f and f:read "a"
end

-- ---- child processes, which print two times ----

local child = {}

function child.trace() return select(2, trace()) end

function child.nvrtc(arch, what)
  local text = what == "reference" and reference() or trace(arch).source
  return select(2, compile(text, arch))
end

function child.hopper(i) return select(2, trace_hopper(tonumber(i))) end

function child.hopper_nvrtc(i)
  local text = trace_hopper(tonumber(i)).source
  return select(2, compile(text, "sm_90a", "gemm_sm90"))
end

-- Returns the milliseconds that program:compile takes until the compiled
-- machine code (cubin) is in memory.
function child.cubin(arch)
  local program = trace(arch)
  return select(2, timed(function()
    local out, message = program:compile(arch)
    if not out then error(message, 0) end
    assert(#out.cubin > 0)
  end))
end

if child[arg[1]] then
  print(child[arg[1]](table.unpack(arg, 2)))
  return
end

-- Measures the contestants {title, limit in ms, function}, and adds their
-- wall-clock and processor times to the table t. Each contestant runs n times,
-- and contestants alternate so that a busy machine affects all of them. Returns
-- the medians of the processor times.
local function rows(t, n, contestants)
  local wall, cpu, medians = {}, {}, {}
  for i = 1, n do
    for j, c in ipairs(contestants) do
      measure.progress(("%s, %d of %d"):format(c[1], i, n))
      wall[j], cpu[j] = wall[j] or {}, cpu[j] or {}
      wall[j][i], cpu[j][i] = c[3]()
    end
  end
  for j, c in ipairs(contestants) do
    t:add(c[1], wall[j], "ms", c[2])
    medians[j] = t:add(c[1] .. ", cpu", cpu[j], "ms", c[2])
  end
  return medians
end

local function in_child(env, ...)
  local words = {"spec/bench/iteration.lua", ...}
  return function()
    local out = measure.child(words, env)
    local wall, cpu = out:match "^(%S+)%s+(%S+)"
    return tonumber(wall), tonumber(cpu)
  end
end

-- ---- the tables ----

local t = measure.table "trace + verify + emit of gemm3stage's kernel"
rows(t, 15, {{"first", 20, in_child({}, "trace")},
             {"again", 20, function() return select(2, trace()) end}})
t:print()

-- Adds a row with one contestant per Hopper configuration: f(i) returns the
-- function to measure for configuration i.
local function hopper_rows(turns, bar, what, f)
  local list = {}
  for i, choices in ipairs(HOPPER) do
    list[i] = {choices[1] .. what, bar, f(i)}
  end
  rows(t, turns, list)
end

t = measure.table "trace + verify + emit of kernels/gemm_sm90.lua"
hopper_rows(7, HOPPER_MS, ", first", function(i)
  return in_child({}, "hopper", tostring(i))
end)
hopper_rows(15, HOPPER_MS, ", again", function(i)
  return function() return select(2, trace_hopper(i)) end
end)
t:print()

if not jit.version() then
  print "NVRTC is not available: nothing to compile with"
  return
end

local text, bar = trace().source, 1.3 * MOCK_MS
t = measure.table(("NVRTC %s, no cache: %.0f KB of C; the bar is 1.3 x %d ms")
  :format(jit.version(), #text / 1e3, MOCK_MS))
for _, arch in ipairs(ARCHS) do
  local list = {
    {arch .. ", first", bar, in_child({}, "nvrtc", arch)},
    {arch .. ", again", bar, function()
      return select(2, compile(text, arch))
    end}}
  if reference() then
    list[3] = {arch .. ", hand-written 128x256, first", nil,
               in_child({}, "nvrtc", arch, "reference")}
  end
  local m = rows(t, 5, list)
  if m[3] then
    t:add(arch .. ", first / hand-written, cpu", m[1] / m[3], "")
  end
end
t:print()

t = measure.table "NVRTC of kernels/gemm_sm90.lua for sm_90a, first, no cache"
hopper_rows(5, HOPPER_NVRTC_MS, "", function(i)
  return in_child({}, "hopper_nvrtc", tostring(i))
end)
t:print()

t = measure.table "A second process: from the call to the CUBIN's bytes"
measure.with_folder(function(folder)
  local env = {XDG_CACHE_HOME = folder}
  for _, arch in ipairs(ARCHS) do
    local run = in_child(env, "cubin", arch)
    rows(t, 1, {{arch .. ", cold cache", nil, run}})
    rows(t, 11, {{arch .. ", from the disk cache", 5, run}})
  end
end)
t:print()
-- SPDX-License-Identifier: MIT
