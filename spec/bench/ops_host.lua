-- Measures on a GPU the host's time for calls of cute.ops, and the time that
-- dependent launches save. `cutelua spec/bench/ops_host.lua first NAME`
-- measures the first call of one configuration, in a process of its own.
local core = require "cute.core"
local cute = require "cute"
local measure = require "spec.measure"

local device = measure.gpu_device()
if not device then return end
local ops, arch = cute.ops, cute.arch
local there = {device = "gpu"}

local function new(dtype, ...) return cute.zeros({...}, dtype, there) end

-- Configurations. make(first) returns a call of cute.ops that launches
-- `launches` kernels. The problem is small for repeated calls. If `first` is
-- set, it is large, for the first call.
local CASES = {}

local function case(name, launches, make, small, large)
  CASES[#CASES + 1] = {name = name, launches = launches,
    make = function(first)
      return make(table.unpack(first and large or small))
    end}
end

local function plain(dtype, d)
  return function(M, N, K)
    local A, B, D = new(dtype, M, K), new(dtype, N, K), new(d or dtype, M, N)
    local o = {out = D}
    return function() return ops.gemm(A, B, o) end
  end
end
local SMALL, LARGE = {256, 256, 256}, {4096, 4096, 4096}

case("gemm_sm90", 1, plain "bf16", SMALL, LARGE)
case("gemm_sm90, D^T = B A^T", 1, plain "bf16", {16, 512, 512},
     {16, 4096, 4096})
case("gemm_sm90, a new D", 1, function(M, N, K)
  local A, B = new("bf16", M, K), new("bf16", N, K)
  return function() return ops.gemm(A, B) end
end, SMALL, LARGE)
case("gemm_sm80", 1, plain "bf16", {256, 256, 255}, {1024, 1024, 1023})
case("gemm_simt", 1, plain "f32", SMALL, {1024, 1024, 1024})
case("gemm_splitk", 1, plain "bf16", {16, 64, 4095}, {16, 64, 4095})
case("batches", 1, function(M, N, K)
  local A, B = new("bf16", 4, M, K), new("bf16", 4, N, K)
  local o = {out = new("bf16", 4, M, N)}
  return function() return ops.gemm(A, B, o) end
end, SMALL, {1024, 1024, 1024})
case("bias, SiLU, residual", 1, function(M, N, K)
  local A, B, D = new("bf16", M, K), new("bf16", N, K), new("bf16", M, N)
  local bias, residual = new("f32", N), new("bf16", M, N)
  local o = {out = D, epilogue = function(acc, at)
    return ops.silu(acc + at:col(bias)) + at:tile(residual)
  end}
  return function() return ops.gemm(A, B, o) end
end, SMALL, LARGE)
case("bias, GELU, a function anew", 1, function(M, N, K)
  local A, B, D = new("bf16", M, K), new("bf16", N, K), new("bf16", M, N)
  local bias = new("f32", N)
  return function()
    return ops.gemm(A, B, {out = D, epilogue = function(acc, at)
      return ops.gelu(acc + at:col(bias))
    end})
  end
end, SMALL, LARGE)
case("a reduction of rows", 2, function(M, N, K)
  local A, B, D = new("bf16", M, K), new("bf16", N, K), new("bf16", M, N)
  local o = {out = {D, new("f32", M)}, epilogue = function(acc, at)
    return acc, at:row_reduce("rms", acc)
  end}
  return function() return ops.gemm(A, B, o) end
end, SMALL, LARGE)
case("gates", 1, function(M, N, K)
  local A, B, D = new("bf16", M, K), new("bf16", 2 * N, K), new("bf16", M, N)
  local o = {out = D, gated = true,
             epilogue = function(gate, up) return ops.silu(gate) * up end}
  return function() return ops.gemm(A, B, o) end
end, SMALL, LARGE)
case("e4m3, factors of blocks", 1, function(M, N, K)
  local A, B, D = new("e4m3", M, K), new("e4m3", N, K), new("bf16", M, N)
  local o = {out = D, scale_a = new("f32", M, K // 128),
             scale_b = new("f32", N // 128, K // 128)}
  return function() return ops.gemm(A, B, o) end
end, SMALL, LARGE)
case("int4", 1, function(M, N, K)
  local W = ops.int4(function() return 3 end, N, K):to "gpu"
  local S = cute.make_tensor(new("bf16", N * K // 128).iterator,
    cute.make_layout({N, K // 128}, {1, N}))
  local A, o = new("bf16", M, K), {out = new("bf16", M, N), scale_b = S}
  return function() return ops.gemm(A, W, o) end
end, {16, 256, 256}, {16, 2048, 2048})

if arg and arg[1] == "first" then
  local f = CASES[tonumber(arg[2])].make(true)
  device.dev:sync()
  local start = core.clock()
  f()
  print(core.clock() - start)
  return
end

---------------------------------------------------------------------------
-- The host
---------------------------------------------------------------------------

-- Returns microseconds per call, the mean of 10^5 calls including garbage
-- collection. Batches fit in the GPU's queue, so that the host never waits.
local function host_us(f)
  for _ = 1, 2000 do f() end
  collectgarbage()
  local total = 0
  for _ = 1, 200 do
    device.dev:sync()
    local start = core.clock()
    for _ = 1, 500 do f() end
    total = total + core.clock() - start
  end
  return total / 1e5 * 1e6
end

local kernel = cute.kernel("early", function(a, b, n, s)
  local i = arch.thread_idx()
  arch.griddepcontrol_wait()
  cute.when(i:lt(n), function() b[i] = a[i] * s end)
end)
local has_pdl = core.has(device.sm, "griddepcontrol")
if not has_pdl then
  kernel = cute.kernel("plain", function(a, b, n, s)
    local i = arch.thread_idx()
    cute.when(i:lt(n), function() b[i] = a[i] * s end)
  end)
end
local x, y = new("f32", 32), new("f32", 32)
local bare = assert(cute.compile(kernel, x, y, 32, 2.0,
  {grid = 1, block = 32, pdl = has_pdl or nil}))

local t = measure.table("Host time of calls of cute.ops on " .. device.name
  .. ", beyond their launches")
local alone = t:add("a prepared launch", host_us(function() bare:launch() end),
                    "us")
for _, c in ipairs(CASES) do
  t:add(c.name, host_us(c.make()) - c.launches * alone, "us", 5)
end
t:print()

t = measure.table "First calls, in processes that find nothing compiled"
for i, c in ipairs(CASES) do
  measure.progress(c.name)
  measure.with_folder(function(folder)
    local out = measure.child({"spec/bench/ops_host.lua", "first", tostring(i)},
                              {XDG_CACHE_HOME = folder})
    t:add(c.name, tonumber(out), "s", 0.5)
  end)
end
t:print()

---------------------------------------------------------------------------
-- Dependent launches
---------------------------------------------------------------------------

-- Runs n consecutive calls as a graph; returns GPU microseconds per call.
local function in_graph(n, f)
  f()
  local g = cute.graph(function()
    for i = 1, n do f(i) end
  end)
  local from, to, list = cute.event(), cute.event(), {}
  for i = 0, 20 do
    from:record()
    g:launch_n(4)
    to:record()
    to:sync()
    list[i] = from:elapsed(to) * 1e3 / n / 4
  end
  return list  -- The first measurement is a warm-up and is dropped.
end

-- Returns a function that calls ops.gemm for D = A B^T. Each call's A is the D
-- of the preceding call.
local function chain(c, place)
  local M, N, dtype = table.unpack(c)
  local X = {new(dtype, M, N), new(dtype, M, N)}
  local W = new(dtype, N, N)
  local at = 1
  return function()
    ops.gemm(X[at], W, {out = X[3 - at], device = place})
    at = 3 - at
  end
end

local CHAINS = {{512, 512, "bf16"}, {1, 4096, "bf16"}, {16, 4096, "bf16"},
                {2048, 2048, "bf16"}, {500, 501, "bf16"}, {256, 256, "f32"}}
t = measure.table "Calls in a row, each with the result of the one before"
local has = core.has
local function without(f)
  core.has = function(sm, what)
    return what ~= "griddepcontrol" and has(sm, what)
  end
  local list = in_graph(20, f)
  core.has = has
  return list
end
for _, c in ipairs(has_pdl and CHAINS or {}) do
  local name = ("%d x %d x %d %s"):format(c[1], c[2], c[2], c[3])
  t:add(name, without(chain(c, "gpu")), "us")
  t:add(name .. ", dependent", in_graph(20, chain(c)), "us")
end
for _, n in ipairs(has_pdl and {1 << 16, 1 << 22} or {}) do
  local X, Y = new("bf16", n), new("bf16", n)
  local function twice(place)
    return function()
      ops.elementwise(function(v) return v * 2.0 end, X,
                      {out = Y, device = place})
    end
  end
  t:add(("elementwise, %d"):format(n), without(twice "gpu"), "us")
  t:add(("elementwise, %d, dependent"):format(n), in_graph(20, twice()), "us")
end
t:print()
-- SPDX-License-Identifier: MIT
