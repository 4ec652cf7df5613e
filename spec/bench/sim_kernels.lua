-- Measures the processor time of launches of five kernels on the simulator,
-- with all checks and one thread. Compares this time with another program's:
--   cutelua spec/bench/sim_kernels.lua OTHER [ROUNDS]
-- Each launch has its own process. Processes of both programs alternate.
local core = require "cute.core"
local cute = require "cute"
local measure = require "spec.measure"

local ITSELF = "spec/bench/sim_kernels.lua"
local TARGET = "sim:sm_90a"
local N = 1024

-- Returns a row-major tensor, of normal numbers if it has a seed, else zeros.
local function tensor(dtype, shape, seed)
  local n, stride = 1, {}
  for i = #shape, 1, -1 do
    stride[i] = n
    n = n * shape[i]
  end
  local b = core.buffer(dtype, n)
  if seed then b:fill_normal(seed) else b:fill(0) end
  return cute.make_tensor(b, cute.make_layout(shape, stride))
end

local function prepare(kernel, options, ...)
  local args = table.pack(...)
  options.device, options.threads = TARGET, 1
  args[args.n + 1] = options
  return cute.compile(kernel, table.unpack(args, 1, args.n + 1))
end

-- Prepares a launch of a lesson's GEMM of n^3.
local function gemm(path, n)
  local s = require "spec.lesson"(path)
  if s.choose then s = s.choose(n, n, n) end
  local A, B = tensor("bf16", {n, n}, 1), tensor("bf16", {n, n}, 2)
  local C = tensor("bf16", {n, n})
  local grid = s.grid and s.grid(n, n, n) or
    -(n // -s.tile[1]) * -(n // -s.tile[2])
  local o = {grid = grid, block = s.block, cluster = s.cluster}
  if not s.arguments then return prepare(s.kernel, o, A, B, C) end
  return prepare(s.kernel, o, s.arguments(A, B, C, 1, 0))
end

local CASES = {
  {"gemm3stage, 1024^3", function()
    return gemm("scripts/gemm3stage.lua", N)
  end},
  {"gemm_hopper, 1024^3", function()
    return gemm("scripts/gemm_hopper.lua", N)
  end},
  {"attention, 1024 rows and keys, 2 heads of 64", function()
    local k = require "kernels.attention" {head = 64}
    local function x(seed) return tensor("bf16", {1, N, 2, 64}, seed) end
    return prepare(k.kernel, {grid = k.grid(N, 2, 1), block = k.block}, x(1),
                   x(2), x(3), x(), tensor("f32", {1, 2, N}), 1 / 8)
  end},
  {"sum of 2^22 f32", function()
    local k = require("kernels.reduce").all {op = "sum", n = 1 << 22,
                                             dtype = cute.f32}
    return prepare(k.kernel, {grid = k.grid, block = k.block},
                   tensor("f32", {1 << 22}, 1), tensor("f32", {1}),
                   tensor("f32", {k.grid}), tensor("u32", {1}))
  end},
  {"check of gemm_ws, 128^3", function()
    local launch = gemm("scripts/gemm_ws.lua", 128)
    return {launch = function()
      return {ok = launch:check().verdict == "ok"}
    end}
  end},
}

if arg[1] == "case" then
  local launch = CASES[tonumber(arg[2])][2]()
  local start = os.clock()
  assert(launch:launch().ok)
  print(os.clock() - start)
  return
end

local other, rounds = arg[1], tonumber(arg[2] or 5)
local own = measure.program
local t = measure.table "Processor time of a simulated launch"
for k, case in ipairs(CASES) do
  local times = {[own] = {}, [other or own] = {}}
  for i = 1, rounds do
    for program, list in pairs(times) do
      measure.progress(("%s, round %d of %d"):format(case[1], i, rounds))
      measure.program = program
      list[#list + 1] = tonumber(
        (measure.child {ITSELF, "case", tostring(k)}):match "%S+")
    end
  end
  t:add(case[1], times[own], "s")
  if other then t:add("  the other program", times[other], "s") end
end
t:print()
-- SPDX-License-Identifier: MIT
