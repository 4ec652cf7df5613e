-- Measures the time from the start of a script to its first launch, with
-- several states of the cache. Compares it with another build:
--   cutelua spec/bench/cold.lua [FOLDER [ROUNDS [MILLISECONDS]]]
-- FOLDER is a checkout with another build/cutelua. No GPU is needed: the driver
-- is spec/gpu/fakecuda.c, which ends a process at its first launch. Creating a
-- context takes 0 or MILLISECONDS (250 when absent). If MILLISECONDS is "gpu",
-- the driver is the GPU's own, and spec/gpu/firstlaunch.c ends a process when
-- its first kernel has run. Processes of both builds alternate.
local core = require "cute.core"
local fake = require "spec.gpu.fake"
local measure = require "spec.measure"

-- Goal: the median time is at most this fraction of the other build's.
local TARGET = 0.55

local OPS = [[
local cute = require "cute"
local ops, N = cute.ops, 2048
local A, B = cute.randn({N, N}, cute.bf16), cute.randn({N, N}, cute.bf16)
local bias, r = cute.randn({N}, cute.f32), cute.randn({N, N}, cute.bf16)
ops.gemm(A, B, {epilogue = function(acc, at)
  return ops.silu(acc + at:col(bias)) + at:tile(r)
end})
]]

local probe, why = require "cute.jit".compile("__global__ void k() {}",
                                              {arch = "sm_90a"})
if not probe or not fake.there then
  return print("cold starts not measured: " .. (why or "no C compiler"))
end

local other, rounds = arg[1], tonumber(arg[2] or 5)
local real = arg[3] == "gpu"
local slow = not real and tonumber(arg[3] or 250)

-- Returns the milliseconds until the first launch of the script in `words`. The
-- fake driver takes `context` milliseconds to create a context.
local function first(folder, cache, words, context)
  local driver = ("LD_LIBRARY_PATH=%s FAKE_STOP=1 FAKE_CONTEXT=%d "
    .. "FAKE_MEMORY=%d"):format(fake.folder, context or 0, 1 << 36)
  if real then driver = ("LD_PRELOAD=%s/first.so"):format(fake.folder) end
  local line = ("cd '%s' && XDG_CACHE_HOME=%s %s CUTELUA_NO_CUDA=0 "
    .. "build/cutelua %s >/dev/null 2>&1"):format(folder, cache, driver, words)
  local start = core.clock()
  assert(os.execute(line), line)
  return (core.clock() - start) * 1e3
end

fake.build "-DFAKE_CLUSTERS"
if real then
  assert(os.execute(("cc -shared -fPIC -o %s/first.so "
    .. "spec/gpu/firstlaunch.c"):format(fake.folder)))
end
local script = fake.folder .. "/ops.lua"
do
  local f <close> = assert(io.open(script, "w"))
  f:write(OPS)
end

local t
local folders = {".", other}

-- Adds the rows of one script to the table. `state` is the state of the cache
-- before each process: "empty", "other kernels" (it has the records of NVRTC
-- and of the GPU, but not the script's kernel) or "full".
local function add(name, words, context, state)
  local times = {{}, {}}
  for i = state == "empty" and 1 or 0, rounds do
    measure.progress(("%s, round %d of %d"):format(name, i, rounds))
    for k, folder in ipairs(folders) do
      local cache = ("%s/cache%d"):format(fake.folder, k)
      if state == "empty" then os.execute("rm -rf " .. cache) end
      if state == "other kernels" then
        os.execute(("find %s -type f ! -name 'gpu-*' ! -name 'nvrtc-*' -delete")
          :format(cache))
      end
      times[k][i] = first(folder, cache, words, context)
    end
  end
  local what = ("%s; cache: %s"):format(name, state)
  if context then
    what = ("%s, a context takes %d ms"):format(what, context)
  end
  local theirs = other and measure.stats(times[2]).median
  t:add(what, times[1], "ms", theirs and state ~= "full" and TARGET * theirs)
  if other then t:add("  the other build", times[2], "ms") end
end

for _, case in ipairs {
  {"gemm3stage, 2048^3", "scripts/gemm3stage.lua --rounds 0"},
  {"gemm_hopper, 2048^3", "scripts/gemm_hopper.lua --rounds 0"},
  {"ops.gemm with SiLU and a residual, 2048^3", script},
} do
  t = measure.table "From a script's start to its first launch"
  if not real then add(case[1], case[2], 0, "empty") end
  for _, state in ipairs {"empty", "other kernels", "full"} do
    add(case[1], case[2], slow, state)
  end
  t:print()
end
fake.remove()
-- SPDX-License-Identifier: MIT
