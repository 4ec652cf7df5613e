-- Measures on a GPU the cost of graphs, of the memory pool and of copies.
local core = require "cute.core"
local cute = require "cute"
local measure = require "spec.measure"

local device = measure.gpu_device()
if not device then return end
local dev = device.dev
local arch = cute.arch

-- Returns microseconds of host time per call of f, with n calls queued at a
-- time.
local function host_us(f, n)
  return measure.host_us(device, function()
    for _ = 1, n do f() end
  end, n)
end

-- Returns microseconds per call of f, measured by the GPU's events.
local function gpu_us(f, n)
  local from, to, list = cute.event(), cute.event(), {}
  for i = 1, 21 do
    from:record()
    for _ = 1, n do f() end
    to:record()
    to:sync()
    list[i] = from:elapsed(to) * 1e3 / n
  end
  return list
end

local function each(list, n)
  for i, x in ipairs(list) do list[i] = x / n end
  return list
end

local function kernel(name, pdl)
  return cute.kernel(name, function(a, b, n, s)
    local i = arch.thread_idx()
    if pdl then arch.griddepcontrol_wait() end
    cute.when(i:lt(n), function() b[i] = a[i] * s end)
    if pdl then arch.griddepcontrol_launch_dependents() end
  end)
end
local x = cute.zeros({32}, cute.f32, {device = "gpu"})
local y = cute.zeros({32}, cute.f32, {device = "gpu"})
local plain, early = kernel("plain"), kernel("early", true)
local run = assert(cute.compile(plain, x, y, 32, 2.0, {grid = 1, block = 32}))

local t = measure.table("Graphs of 20 launches on " .. device.name
  .. ", a launch")
t:add("alone, host", host_us(function() run:launch() end, 200), "us")
t:add("alone, GPU", gpu_us(function() run:launch() end, 200), "us")
local has_pdl = core.has(device.sm, "griddepcontrol")
for _, k in ipairs {plain, has_pdl and early or nil} do
  local what = k == early and ", pdl" or ""
  local function steps(s)
    for _ = 1, 20 do
      k(x, y, 32, s):launch {grid = 1, block = 32,
                             pdl = k == early or nil}
    end
  end
  local g = cute.graph(function() steps(2.0) end)
  t:add("in a graph, host" .. what,
        each(host_us(function() g:launch() end, 20), 20), "us")
  t:add("in a graph, GPU" .. what,
        each(gpu_us(function() g:launch() end, 20), 20), "us")
  t:add("its capture" .. what, each(host_us(function()
    cute.graph(function() steps(3.0) end)
  end, 1), 20), "us")
  t:add("its update" .. what, each(host_us(function()
    g:update(function() steps(4.0) end)
  end, 1), 20), "us")
end
t:print()

t = measure.table "Memory: a tensor made and closed"
local place = {device = "gpu"}
for _, c in ipairs {{"1 KiB", 1 << 10}, {"1 MiB", 1 << 20},
                    {"64 MiB", 64 << 20}} do
  local function make()
    core.param_memory(cute.empty({c[2]}, cute.u8, place)):close()
  end
  t:add(c[1] .. " of the pool", host_us(make, 500), "us")
  t:add(c[1] .. " left to the collector", host_us(function()
    cute.empty({c[2]}, cute.u8, place)
  end, 200), "us")
  t:add(c[1] .. " of the driver", host_us(function()
    make()
    dev:trim()
  end, 5), "us")
end
t:print()

t = measure.table "Copies of 256 MiB"
local n = 256 << 20
local there = cute.empty({n}, cute.u8, {device = "gpu"})
local s = cute.stream()
for _, pinned in ipairs {true, false} do
  local here = cute.zeros({n}, cute.u8, {pinned = pinned})
  local what = pinned and "pinned" or "pageable"
  local function speed(to, from)
    local list = {}
    for i = 0, 9 do
      local start = core.clock()
      to:copy_from(from, {stream = s})
      s:sync()
      list[i] = n / (core.clock() - start) * 1e-9
    end
    return list  -- The first measurement is a warm-up and is dropped.
  end
  t:add("to the GPU, " .. what, speed(there, here), "GB/s")
  t:add("to the host, " .. what, speed(here, there), "GB/s")
end
t:print()
-- SPDX-License-Identifier: MIT
