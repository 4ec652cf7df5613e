-- Measures on a GPU the host's cost of a prepared launch. Also compares the
-- time of scripts/gemm3stage.lua with that of cuBLAS, in the script's own
-- table.
local cute = require "cute"
local measure = require "spec.measure"

local device = measure.gpu_device()
if not device then return end
local dev = device.dev

local function host_us(f, n) return measure.host_us(device, f, n) end

local k = cute.kernel("small", function(a, b, n, s)
  local i = cute.arch.thread_idx()
  cute.when(i:lt(n), function() b[i] = a[i] * s end)
end)
local gx = cute.zeros({32}, cute.f32, {device = "gpu"})
local gy = gx:clone()
local function prepare(stream)
  local run = assert(cute.compile(k, gx, gy, 32, 2.0, {
    grid = 1, block = 32, device = device, stream = stream}))
  run:launch()
  return run
end
local run = prepare()
local streamed = prepare(assert(dev:stream()))

local t = measure.table("Prepared launches on " .. device.name
  .. ", four arguments")
t:add("run:launch()", host_us(function(n)
  for _ = 1, n do run:launch() end
end, 200), "us", 3)
t:add("run:launch() on a stream of its own", host_us(function(n)
  for _ = 1, n do streamed:launch() end
end, 200), "us", 3)
t:add("the driver's call alone (launch_n)", host_us(function(n)
  run.run:launch_n(n)
end, 200), "us")
t:add("the same on a stream", host_us(function(n)
  streamed.run:launch_n(n)
end, 200), "us")
t:add("run(x, y, 32, 2.0), other arguments", host_us(function(n)
  for _ = 1, n do run(gx, gy, 32, 2.0) end
end, 200), "us", 3)
t:add("kernel(...):launch {...}, all looked up again", host_us(function(n)
  for _ = 1, n do
    k(gx, gy, 32, 2.0):launch {grid = 1, block = 32, device = device}
  end
end, 20), "us")
t:print()

-- The kernel has three tensor maps as arguments, 128 bytes each. A prepared
-- launch packs them once.
if device.sm == 90 then
  local gemm_sm90 = require "kernels.gemm_sm90"
  local function matrix(rows)
    return cute.empty({rows, 64}, cute.bf16, {device = "gpu"})
  end
  t = measure.table("Prepared launches of kernels/gemm_sm90.lua, three tensor "
    .. "maps")
  for _, c in ipairs {
      {"blocks alone", {tile = {128, 64, 64}, stages = 2}},
      {"clusters of two", {tile = {128, 32, 64}, stages = 2,
                           cluster = {2, 1}}},
      {"dependent launches", {tile = {128, 64, 64}, stages = 2, pdl = true}}} do
    local made = assert(gemm_sm90(c[2]).prepare(matrix(256), matrix(64),
                                                matrix(256), {device = device}))
    t:add(c[1] .. ", run:launch()", host_us(function(n)
      for _ = 1, n do made:launch() end
    end, 200), "us", 3)
    t:add(c[1] .. ", the driver's call alone", host_us(function(n)
      made.run:launch_n(n)
    end, 200), "us")
  end
  t:print()
end

measure.progress("gemm3stage against cuBLAS")
for _, words in ipairs {{}, {"--rows"}, {"--dynamic"}} do
  print("scripts/gemm3stage.lua " .. table.concat(words, " "))
  print(measure.child {"scripts/gemm3stage.lua", table.unpack(words)})
end
-- SPDX-License-Identifier: MIT
