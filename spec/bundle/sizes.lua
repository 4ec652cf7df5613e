-- The script of a bundle whose functions take ranges of sizes. With the
-- argument "gpu" it launches each size on a GPU.
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"

local gpu = arg[1] == "gpu"
local kept = {}

-- Returns memory of zeros on the device, which stays alive.
local function empty(shape, dtype)
  local t = cute.zeros(shape, dtype)
  kept[#kept + 1] = gpu and t:to "gpu" or t
  return kept[#kept]
end

local function add(name, f, config)
  if not gpu then return cute.bundle.add(name, f, config) end
  local first, last, step = table.unpack(config.sizes)
  for m = first, last, step do f(table.unpack(config.arguments(m))) end
end

-- Each block handles a row of a matrix (m,32), whose row stride is 2 m + 32.
-- The grid grows by one block for 3 rows.
local rows = cute.kernel("rows", function(x, y, n)
  local i, j = cute.arch.block_idx(), cute.arch.thread_idx()
  local at = i * 64 + j
  for _ in cute.when(j:lt(n)) do y[at] = x[at] + 1 end
end)
add("rows", function(x, y, n)
  local m = cute.size(x, 0)
  rows(cute.make_tensor(x.iterator, cute.make_layout {3200}),
       cute.make_tensor(y.iterator, cute.make_layout {3200}), n)
    :launch {grid = {(m + 2) // 3, 1, 1}, block = 32}
end, {sizes = {3, 48, 3}, examples = {9}, arguments = function(m)
  local memory = empty({3200}, cute.f32)
  local layout = cute.make_layout({m, 32}, {2 * m + 32, 1})
  return {cute.make_tensor(memory.iterator, layout), empty({3200}, cute.f32),
          gpu and 20 or cute.bundle.number("n", 20)}
end})

local k = gemm_sm90 {name = "hopper", tile = {128, 64, 64}, stages = 2}
local B = empty({64, 64}, cute.bf16)
add("hopper", function(A, b, D)
  local m = cute.size(A, 0)
  local list = k.arguments(A, b, D)
  k.kernel(table.unpack(list, 1, list.n)):launch {grid = k.grid(m, 64),
    block = k.block, cluster = k.cluster}
end, {sizes = {8, 128, 8}, arguments = function(m)
  return {empty({m, 64}, cute.bf16), B, empty({m, 64}, cute.bf16)}
end})

-- A sum whose workspace depends on the number of elements.
add("total", function(x, y) cute.ops.reduce(x, "sum", {out = y}) end,
  {sizes = {100000, 101000, 1000}, arguments = function(m)
    return {empty({m}, cute.f32), empty({1}, cute.f32)}
  end})
-- SPDX-License-Identifier: MIT
