-- The script of the bundle that the specs compile. With the argument "gpu" it
-- launches the same kernels on a GPU, so that the specs can compare what the
-- driver gets.
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local ops = cute.ops

local gpu = arg[1] == "gpu"

-- Tensors that stay alive, so that each has memory of its own.
local kept = {}

-- Moves tensors to the GPU, in the order in which the bundle's test program
-- writes them.
local function there(...)
  local list = {...}
  for i, t in ipairs(list) do
    list[i] = gpu and t:to "gpu" or t
    kept[#kept + 1] = list[i]
  end
  return table.unpack(list)
end

-- Adds f to the bundle or, with the argument "gpu", calls it.
local function add(name, f, config)
  if gpu then f(table.unpack(config)) else cute.bundle.add(name, f, config) end
end

local function rand(...) return cute.rand({...}, cute.bf16) end

for _, n in ipairs {512, 256} do
  local a, b, v, d = there(rand(256, 128), rand(n, 128),
    cute.rand({n}, cute.f32), cute.zeros({256, n}, cute.bf16))
  add("linear", function(A, B, bias, D, alpha)
    ops.gemm(A, B, {alpha = alpha, out = D, epilogue = function(acc, at)
      return ops.relu(acc + at:col(bias))
    end})
  end, {a, b, v, d, cute.bundle.number("alpha", 0.5)})
end

do
  local k = gemm_sm90 {name = "hopper", tile = {128, 256, 64}, stages = 4,
                       cluster = {2, 1}}
  local a, b, d = there(rand(256, 128), rand(512, 128),
                        cute.zeros({256, 512}, cute.bf16))
  add("hopper", function(A, B, D)
    local list = k.arguments(A, B, D)
    k.kernel(table.unpack(list, 1, list.n)):launch {grid = k.grid(256, 512),
      block = k.block, cluster = k.cluster}
  end, {a, b, d})
end

do
  local v, sum = there(cute.rand({100000}, cute.f32),
                       cute.zeros({1}, cute.f32))
  add("total", function(x, y) ops.reduce(x, "sum", {out = y}) end, {v, sum})
end

local axpy = cute.kernel("axpy", function(x, y, a)
  local i = cute.arch.block_idx() * 128 + cute.arch.thread_idx()
  for _ in cute.when(i:lt(cute.size(x, 0))) do y[i] = a * x[i] + y[i] end
end)

local function vector(n) return cute.rand({n}, cute.f32) end
local function any(div)
  return cute.symbolic {dtype = cute.f32, shape = {"n%" .. div}, align = 16}
end

if gpu then
  local run = cute.compile(axpy, any(4), any(4), 2.0, {block = 128,
                                                       device = "gpu"})
  for _, n in ipairs {1000, 76} do
    local x, y = there(vector(n), vector(n))
    run(x, y, 3.0, {grid = (n + 127) // 128})
  end
else
  cute.bundle.add("axpy", axpy, {any(4), any(4), 2.0, block = 128,
    grid = function(x) return cute.bundle.ceil_div(x[1], 128) end,
    examples = {{vector(1000), vector(1000), 3.0},
                {vector(76), vector(76), 3.0}}})
end

-- The kernel accepts a matrix with any number of rows and any row stride.
local scale = cute.kernel("scale", function(x, factor, n)
  local i, j = cute.arch.block_idx(), cute.arch.thread_idx()
  for _ in cute.when(j:lt(n)) do x[{i, j}] = x[{i, j}] * factor end
end)
local sheet = cute.symbolic {dtype = cute.f32, shape = {"rows", 32},
                             stride = {"pitch%4", 1}, align = 16}
local part = cute.make_tensor(vector(7 * 40).iterator,
                              cute.make_layout({7, 32}, {40, 1}))
if gpu then
  local run = cute.compile(scale, sheet, 2.0, 20, {block = 32, device = "gpu"})
  local all = there(vector(7 * 40))
  run(cute.make_tensor(all.iterator, cute.make_layout({7, 32}, {40, 1})), 1.5,
      20, {grid = {7, 1, 1}})
else
  cute.bundle.add("scale", scale, {sheet, 2.0, 20, block = 32,
    grid = function(x) return {x[1], 1, 1} end, names = {"sheet"},
    examples = {{part, 1.5, 20}}})
end

-- A launch outside of an added function becomes a function of the bundle.
local x, y = there(vector(256), vector(256))
axpy(x, y, 1.5):launch {grid = 2, block = 128, pdl = true}
-- SPDX-License-Identifier: MIT
