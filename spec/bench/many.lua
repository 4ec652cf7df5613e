-- Measures how long it takes to compile 20 kernels with an empty cache of
-- compiled kernels. A script's launches compile them one after the other;
-- `cutelua compile` uses parallel processes.
--   cutelua spec/bench/many.lua [ROUNDS]
-- No GPU is needed: the driver is spec/gpu/fakecuda.c.
local core = require "cute.core"
local fake = require "spec.gpu.fake"
local measure = require "spec.measure"

local SCRIPT = [[
local cute = require "cute"
local ops = cute.ops
local FUNCTIONS = {ops.relu, ops.gelu, ops.silu,
  function(x) return x * 0.5 end, function(x) return x + 1.0 end}
for _, f in ipairs(FUNCTIONS) do
  for _, N in ipairs {512, 1024, 2048, 4096} do
    local A = cute.zeros({N, 1024}, cute.bf16)
    local B = cute.zeros({N, 1024}, cute.bf16)
    local bias = cute.zeros({N}, cute.f32)
    ops.gemm(A, B, {out = cute.zeros({N, N}, cute.bf16),
      epilogue = function(acc, at) return f(acc + at:col(bias)) end})
  end
end
]]

local probe, why = require "cute.jit".compile("__global__ void k() {}",
                                              {arch = "sm_90a"})
if not probe or not fake.there then
  return print("many kernels not measured: " .. (why or "no C compiler"))
end

-- Returns the seconds that a command takes, with an empty cache.
local function seconds(command)
  local took
  measure.with_folder(function(cache)
    local line = ("XDG_CACHE_HOME=%s %s >/dev/null 2>&1"):format(cache, command)
    local start = core.clock()
    assert(os.execute(line), line)
    took = core.clock() - start
  end)
  return took
end

fake.build "-DFAKE_CLUSTERS"
local script = fake.folder .. "/many.lua"
do
  local f <close> = assert(io.open(script, "w"))
  f:write(SCRIPT)
end
local ROWS = {
  {"one after the other", ("LD_LIBRARY_PATH=%s FAKE_MEMORY=%d "
    .. "CUTELUA_NO_CUDA=0 '%s' %s"):format(fake.folder, 1 << 36,
    measure.program, script)},
  {"cutelua compile", ("'%s' compile --arch sm_90a --sms 108 %s"):format(
    measure.program, script)},
}
local times = {{}, {}}
for i = 1, tonumber(arg[1] or 5) do
  for k, row in ipairs(ROWS) do
    measure.progress(("%s, round %d"):format(row[1], i))
    times[k][i] = seconds(row[2])
  end
end
fake.remove()

local t = measure.table "20 kernels of cute.ops.gemm for sm_90a"
local one = t:add(ROWS[1][1], times[1], "s")
t:add(ROWS[2][1], times[2], "s", 0.6 * one)
t:print()
-- SPDX-License-Identifier: MIT
