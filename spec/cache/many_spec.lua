-- Tests cute.compile_all, with a fake NVRTC and a fake driver.
local cute = require "cute"
local fake = require "spec.gpu.fake"
local nvrtcs = require "spec.gpu.nvrtcs"
local support = require "spec.support"

if not nvrtcs.there then
  describe("cute.compile_all", function() pending "needs a C compiler" end)
  return
end

local dir, library

local SCRIPT = [[
local cute = require "cute"
local x = cute.zeros({32}, cute.f32, {device = DEVICE})
local launches = {}
for i = 1, 6 do
  local k = cute.kernel("k" .. (i < 6 and i or 1), function(y)
    y[cute.arch.thread_idx()] = i < 6 and i or 1
  end)
  launches[i] = {k(x), grid = i, block = 32}
end
local raw = cute.raw_kernel('extern "C" __global__ void raw(float *x) {}')
if DEVICE then launches[7] = {raw(x), grid = 7, block = 32} end
local runs = cute.compile_all(launches, OPTIONS)
assert(#runs == #launches)
for _, run in ipairs(runs) do run:launch() end
cute.synchronize()
print(DEVICE or x(3))
]]

-- Runs the script; returns the lines that the fake compiler wrote, and the
-- number of different processes among them.
local function run(head, more)
  local path = support.write(dir .. "/script.lua", head .. SCRIPT)
  os.remove(dir .. "/log")
  local env = {XDG_CACHE_HOME = dir .. "/own", CUTELUA_NVRTC = library,
    CUTELUA_NO_CUDA = "0", FAKE_LOG = dir .. "/log", FAKE_PID = "1",
    FAKE_MS = "100", LD_LIBRARY_PATH = fake.folder}
  for k, v in pairs(more or {}) do env[k] = v end
  local out, err, status = support.run({path}, {env = env})
  assert.same({"", 0}, {err, status})
  local lines = support.lines(support.read(dir .. "/log") or "")
  local pids, n = {}, 0
  for _, line in ipairs(lines) do
    local pid = line:match "%d+$"
    n = n + (pids[pid] and 0 or 1)
    pids[pid] = true
  end
  return lines, n, out
end

-- Returns the output of a script that launches a list of kernels. Each kernel
-- stores its number, and the Lua code `inside` runs in its trace.
local function several(names, inside)
  local path = support.write(dir .. "/several.lua", ([[
    local cute = require "cute"
    local x = cute.zeros({32}, cute.f32, {device = "gpu"})
    local launches = {}
    for i, name in ipairs {%s} do
      launches[i] = {cute.kernel(name, function(y)
        %s
        y[cute.arch.thread_idx()] = i
      end)(x), grid = 1, block = 32}
    end
    for _, run in ipairs(cute.compile_all(launches, {jobs = 2})) do
      run:launch()
    end
    cute.synchronize()
    print "done"
  ]]):format(names, inside or ""))
  local out, err, status = support.run({path}, {env = {
    XDG_CACHE_HOME = dir .. "/own", CUTELUA_NVRTC = library,
    CUTELUA_NO_CUDA = "0", FAKE_LOG = dir .. "/log", FAKE_PID = "1",
    FAKE_MS = "100", LD_LIBRARY_PATH = fake.folder}})
  return out, err, status, #support.lines(support.read(dir .. "/log") or "")
end

-- Sets and removes the fake libraries around the tests of a group.
local function with_fakes()
  before_each(function()
    dir = support.folder()
    library = nvrtcs.make(dir .. "/lib", "13.9", "80,90")
  end)
  after_each(function() support.remove(dir) end)
  setup(function() fake.build "-DFAKE_CLUSTERS" end)
  teardown(function()
    fake.remove()
    nvrtcs.remove()
  end)
end

describe("cute.compile_all", function()
  with_fakes()

  it("compiles each kernel once, in several processes #long", function()
    local head = 'local DEVICE, OPTIONS = "gpu", {jobs = 3}\n'
    local lines, processes = run(head)
    assert.equal(6, #lines)
    assert.equal(3, processes)
    assert.equal(0, #(run(head)))
    -- Without the cache, other processes could not pass on compiled kernels, so
    -- only the script's process compiles.
    lines, processes = run(head, {CUTELUA_CACHE = "0"})
    assert.same({7, 1}, {#lines, processes})
    support.exec {"rm", "-r", dir .. "/own"}
    lines, processes = run 'local DEVICE, OPTIONS = "gpu", {jobs = 1}\n'
    assert.same({6, 1}, {#lines, processes})
  end)

  it("prepares launches on the simulator without a compiler", function()
    local lines, _, out = run("local DEVICE, OPTIONS\n", {
      CUTELUA_NO_CUDA = "1", CUTELUA_NVRTC = "/nowhere"})
    assert.equal(0, #lines)
    assert.equal("1.0\n", out)
  end)

  it("works in the library, which has no processes", function()
    local head = 'local DEVICE, OPTIONS = "gpu"\n'
    os.remove(dir .. "/log")
    local path = support.write(dir .. "/script.lua", head .. SCRIPT)
    local out, err, status = support.run_lua({path}, {
      XDG_CACHE_HOME = dir .. "/own", CUTELUA_NVRTC = library,
      CUTELUA_NO_CUDA = "0", FAKE_LOG = dir .. "/log",
      LD_LIBRARY_PATH = fake.folder})
    assert.same({"gpu\n", "", 0}, {out, err, status})
    assert.equal(6, #support.lines(support.read(dir .. "/log")))
  end)

  it("names what is no launch", function()
    if cute.device "gpu" then return pending "needs a host without GPU" end
    local k = cute.kernel("k", function(x) x[0] = 1 end)
    local x = cute.zeros({1}, cute.f32)
    support.raises("compile_all: launch 1 is 3; {call, grid = g, block = b} is "
      .. "needed [bad-argument]", cute.compile_all, {3})
    support.raises("compile_all: launch 2 is", cute.compile_all,
      {{k(x), grid = 1, block = 1}, {grid = 1}})
    support.raises("compile_all: jobs = 0; an integer from 1 to 256 is needed",
      cute.compile_all, {{k(x), grid = 1, block = 1}}, {jobs = 0})
    support.raises("no option 'blok' (did you mean block?)", cute.compile_all,
      {{k(x), grid = 1, blok = 1}})
    support.raises("no option 'job'", cute.compile_all,
      {{k(x), grid = 1, block = 1}}, {job = 2})
  end)
end)

describe("a process of cute.compile_all", function()
  with_fakes()

  it("compiles a kernel while the next one is traced", function()
    local out, err, status = several('"one", "two"', ([[
      local stop = os.time() + 20
      while name == "two" and not io.open %q do
        if os.time() > stop then error "nothing was compiled" end
      end]]):format(dir .. "/log"))
    assert.same({"done\n", "", 0}, {out, err, status})
  end)

  it("names kernels that the compiler rejects or crashes on", function()
    local _, err, status = several '"one", "BAD", "two"'
    assert.equal(1, status)
    assert.truthy(err:find("BAD.cu:1: error: BAD", 1, true), err)
    _, err, status = several '"one", "CRASH", "two"'
    assert.equal(1, status)
    assert.truthy(err:find("compile_all: kernel CRASH for sm_90a: the process "
      .. "that compiled it ended: signal 6", 1, true), err)
  end)

  it("compiles again what a killed process left", function()
    -- The first process that compiles is killed while it works.
    local out, err, status, compiled = several('"one", "two"', ([[
      local f = name == "two" and not package.loaded.killed and io.open %q
      local stop = os.time() + 20
      while name == "two" and not f do
        f = io.open %q
        if os.time() > stop then error "nothing was compiled" end
      end
      if f then
        package.loaded.killed = true
        local pid
        repeat
          f:seek "set"
          pid = f:read "a":match "(%%d+)\n"
        until pid
        assert(os.execute("kill -9 " .. pid))
      end]]):format(dir .. "/log", dir .. "/log"))
    assert.same({"done\n", "", 0, 3}, {out, err, status, compiled})
  end)
end)
-- SPDX-License-Identifier: MIT
