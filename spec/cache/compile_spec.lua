-- Tests `cutelua compile`, with a fake NVRTC.
local cute = require "cute"
local fake = require "spec.gpu.fake"
local nvrtcs = require "spec.gpu.nvrtcs"
local support = require "spec.support"

if not nvrtcs.there then
  describe("cutelua compile", function() pending "needs a C compiler" end)
  return
end

local dir, library

local function environment(more)
  local env = {XDG_CACHE_HOME = dir .. "/own", CUTELUA_NVRTC = library,
               CUTELUA_NO_CUDA = "0", FAKE_LOG = dir .. "/log"}
  for k, v in pairs(more or {}) do env[k] = v end
  return env
end

local SCRIPT = [[
local cute = require "cute"
local function kernel(name, n)
  return cute.kernel(name, function(x)
    local i = cute.arch.thread_idx()
    x[i] = x[i] + n
  end)
end
local x = cute.zeros({64}, cute.f32, {device = "gpu"})
for i, name in ipairs {NAMES} do
  kernel(name, i)(x):launch {grid = 1, block = 64}
end
print("sum", x:to "host"(0))
]]

local function script(names, more)
  local text = SCRIPT:gsub("NAMES", names or '"one", "two"')
  return support.write(dir .. "/script.lua", text .. (more or ""))
end

local function compile(words, more)
  return support.run({"compile", table.unpack(words)},
                     {env = environment(more)})
end

-- Returns the lines that the fake compiler wrote, sorted.
local function compiled()
  local list = support.lines(support.read(dir .. "/log") or "")
  table.sort(list)
  return table.concat(list, ", ")
end

local function before()
  dir = support.folder()
  library = nvrtcs.make(dir .. "/lib", "13.9", "80,90,100")
end
local function after() support.remove(dir) end

teardown(function() nvrtcs.remove() end)

describe("cutelua compile", function()
  before_each(before)
  after_each(after)

  it("compiles all kernels that a script launches, for each architecture #long",
      function()
    local path = script()
    local out, err, status = compile {"--arch", "sm_80,sm_90", path}
    assert.same({"", 0}, {err, status})
    assert.equal("13.9 sm_80, 13.9 sm_80, 13.9 sm_90a, 13.9 sm_90a", compiled())
    for _, arch in ipairs {"sm_80", "sm_90a"} do
      assert.truthy(out:find(("%s *kernel one +%%d+%%.%%d+ s\n"):format(arch)))
      assert.truthy(out:find(("%s *kernel two +%%d+%%.%%d+ s\n"):format(arch)))
      assert.truthy(out:find(arch .. ": 2 kernels in [%d.]+ s, 0 of them in "
        .. "the cache already, 0 failed\n"))
    end
    assert.equal(2, select(2, out:gsub("sum\t0.0\n", "")))
    -- A copy of the script with shifted lines finds its kernels in the cache.
    local moved = support.write(dir .. "/moved.lua", "\n\n\n"
      .. support.read(path))
    out, err, status = compile {"--arch=sm_80", "--arch=sm_90a", "--jobs=1",
      moved}
    assert.same({"", 0}, {err, status})
    assert.truthy(out:find "2 of them in the cache already")
    assert.equal(4, #support.lines(support.read(dir .. "/log")))
  end)

  it("fills what launches on a GPU look up, without NVRTC", function()
    fake.build "-DFAKE_CLUSTERS"
    local path, into = script(), dir .. "/image"
    local _, err, status = compile {"--arch", "sm_90a", "--into", into, path}
    assert.same({"", 0}, {err, status})
    local out
    out, err, status = support.run({path}, {env = environment {
      CUTELUA_CACHE_IMAGE = into, CUTELUA_NVRTC = "/nowhere",
      LD_LIBRARY_PATH = fake.folder, XDG_CACHE_HOME = dir .. "/none"}})
    assert.same({"sum\t0.0\n", "", 0}, {out, err, status})
    -- Without CUTELUA_CACHE_IMAGE, the launch must compile and finds no NVRTC.
    _, err, status = support.run({path}, {env = environment {
      CUTELUA_NVRTC = "/nowhere", LD_LIBRARY_PATH = fake.folder}})
    assert.equal(1, status)
    assert.truthy(err:find("[no-nvrtc]", 1, true), err)
    fake.remove()
  end)

  it("runs what scripts do on a GPU", function()
    local path = script(nil, [[
      local gpu = require "cute.gpu"
      assert(gpu.available() and gpu.info().sms == 77)
      assert(gpu.info().name == "NVIDIA H77")
      assert(cute.device().kind == "gpu")
      local raw = cute.raw_kernel('extern "C" __global__ void raw(float *x) {}')
      raw(x):launch {grid = 1, block = 32}
      local A = cute.zeros({256, 128}, cute.bf16, {device = "gpu"})
      local B = cute.zeros({192, 128}, cute.bf16, {device = "gpu"})
      cute.ops.gemm(A, B)
      cute.ops.reduce(x, "sum")
      local s = cute.stream()
      local three = cute.kernel("three", function(y)
        y[cute.arch.thread_idx()] = 3
      end)
      local graph = cute.graph(function()
        three(x):launch {grid = 1, block = 64}
      end)
      graph:launch()
      three(x):launch {grid = 2, block = 32, stream = s}
      local run = three(x):compile {grid = 1, block = 64}
      run:launch_n(10)
      cute.synchronize "gpu"
      local kept = cute.zeros({3}, cute.i32)
      for i = 0, 2 do kept[i] = 5 * i end
      local back = kept:to "gpu":to "host"
      assert(back[2] == 10)
      print(three(x):trace {block = 64}.resources)]])
    local out, err, status = compile {"--arch", "sm_90a", "--sms", "77",
      "--card", "NVIDIA H77", path}
    assert.same({"", 0}, {err, status}, out)
    -- The kernel `three` is launched with blocks of 64 and of 32 threads, which
    -- compile separately.
    for name, n in pairs {one = 1, two = 1, three = 2, raw = 1} do
      assert.equal(n, select(2, out:gsub("kernel " .. name .. " ", "")), out)
    end
    assert.truthy(out:find "kernel gemm", out)
    -- A launch on the simulator needs no compiler.
    path = script('"one"', [[
      local y = cute.zeros({64}, cute.f32)
      kernel("four", 1)(y):launch {grid = 1, block = 64, device = "sim"}
      print("simulated", y(3))]])
    out, err, status = compile {"--arch", "sm_90a", path}
    assert.same({"", 0}, {err, status})
    assert.truthy(out:find("simulated\t1.0\n", 1, true), out)
    assert.truthy(out:find "1 kernel in", out)
  end)
end)

describe("cutelua compile", function()
  before_each(before)
  after_each(after)

  it("reports kernels that fail, and compiles the others", function()
    for _, jobs in ipairs {"1", "2"} do
      local path = script '"one", "BAD", "two"'
      local out, err, status = compile {"--arch", "sm_90a", "--jobs", jobs,
        path}
      assert.equal(1, status)
      assert.truthy(out:find "kernel BAD +FAILED\n", out)
      assert.truthy(out:find "kernel two +[%di]", out)
      assert.truthy(err:find("cutelua: compile: kernel BAD: kernel 'BAD' does "
        .. "not compile for sm_90a", 1, true), err)
    end
    -- A crash of the compiler ends only the process that compiles.
    local path = script '"three", "CRASH", "four", "CHATTY"'
    local out, err, status = compile {"--arch", "sm_90a", "--jobs", "2", path}
    assert.equal(1, status, out .. err)
    assert.truthy(out:find "kernel CRASH +FAILED\n", out)
    for _, name in ipairs {"three", "four", "CHATTY"} do
      assert.truthy(out:find("kernel " .. name .. " +%d"), out)
    end
    assert.truthy(err:find("cutelua: compile: kernel CRASH: the process that "
      .. "compiled it ended: signal 6", 1, true), err)
  end)

  it("compiles what a failing script launched before #long", function()
    for more, said in pairs {
        ["error 'wrong result'"] = "wrong result",
        ["os.exit(3)"] = "the script failed after 2 kernels: launches do "
          .. "nothing here, so results are zeros",
        ["pcall(os.exit, false)"] = "the script failed after 2 kernels"} do
      local out, err, status = compile {"--arch", "sm_90a", script(nil, more)}
      assert.equal(1, status)
      assert.truthy(err:find(said, 1, true), err)
      assert.truthy(out:find "sm_90a: 2 kernels in ", out)
    end
    local out, err, status = compile {"--arch", "sm_90a",
      script(nil, "os.exit(true)")}
    assert.same({"", 0}, {err, status})
    assert.truthy(out:find "2 of them in the cache already", out)
    local _
    _, err, status = compile {"--arch", "sm_90a",
      support.write(dir .. "/none.lua", "print 'nothing'")}
    assert.same({"cutelua: compile: the script launched nothing on a GPU\n", 1},
                {err, status})
    _, err, status = compile {"--arch", "sm_80,sm_90a", dir .. "/absent.lua"}
    assert.equal(1, status)
    assert.equal(2, select(2, err:gsub("cannot open", "")), err)
  end)

  it("names what it cannot use", function()
    local path = script()
    for _, case in ipairs {
        {{}, "compile: which script?"},
        {{"--arch"}, "'--arch' needs an argument"},
        {{"--arch", "sm_9", path}, "compile: --arch: no architecture 'sm_9'"},
        {{"--arch", "sm_80,,sm_90", path},
          "compile: --arch: no architecture ''"},
        {{"--jobs", "0", path}, "--jobs: a whole number from 1 to 256 is "
          .. "needed, got '0'"},
        {{"--sms", "many", path}, "--sms: a whole number from 1 to 4096 is "
          .. "needed, got 'many'"},
        {{"--arhc", "sm_80", path}, "unknown option '--arhc'; compile --help"},
        not cute.device "gpu" and {{path}, "compile: name the "
          .. "architectures with --arch: "} or nil} do
      local _, err, status = compile(case[1])
      assert.equal(2, status)
      assert.truthy(err:find("cutelua: " .. case[2], 1, true), err)
    end
    local _, err, status = compile({"--arch", "sm_80", path},
                                   {CUTELUA_CACHE = "0"})
    assert.equal(2, status)
    assert.truthy(err:find("CUTELUA_CACHE=0 disables", 1, true), err)
    _, err, status = compile {"--arch", "sm_80", "--into", "/proc/here", path}
    assert.equal(1, status)
    assert.truthy(err:find("cannot make the folder /proc/here", 1, true), err)
    _, err, status = compile({"--arch", "sm_80", path},
                             {XDG_CACHE_HOME = "/proc"})
    assert.equal(1, status)
    assert.truthy(err:find("compile: kernels are not cached: cannot make", 1,
      true), err)
  end)

end)

describe("cutelua compile", function()
  before_each(before)
  after_each(after)

  it("stores all kernels in a folder that others could write to", function()
    support.exec {"mkdir", "-p", dir .. "/own/cutelua"}
    support.exec {"chmod", "777", dir .. "/own/cutelua"}
    local words = {"--arch", "sm_80", script '"one", "two", "three", "four"'}
    local _, err, status = compile(words)
    assert.equal(0, status)
    assert.equal(("cutelua: warning: other users could write to the cache "
      .. "folder %s/own/cutelua (mode 0777): its mode is 0700 now, and its 0 "
      .. "entries were removed\n"):format(dir), err)
    local out
    out, err, status = compile(words)
    assert.same({"", 0}, {err, status})
    assert.truthy(out:find "4 of them in the cache already")
  end)

  it("needs no /proc", function()
    local hidden = {"unshare", "-m", "sh", "-c",
                    'mount -t tmpfs none /proc && exec "$0" "$@"'}
    local function without_proc(words)
      local all = table.move(hidden, 1, #hidden, 1, {})
      return support.exec(table.move(words, 1, #words, #all + 1, all),
                          {env = environment()})
    end
    if select(3, without_proc {"true"}) ~= 0 then
      return pending "needs root and unshare"
    end
    local words = {support.program, "compile", "--arch", "sm_80,sm_90",
                   script()}
    local out, err, status = without_proc(words)
    assert.same({"", 0}, {err, status})
    assert.equal("13.9 sm_80, 13.9 sm_80, 13.9 sm_90a, 13.9 sm_90a", compiled())
    assert.equal(2, select(2, out:gsub("2 kernels in", "")))
    -- If the #! line of a script started the program, the operating system
    -- reports the path of the script, not of the program. The program then
    -- cannot find itself without /proc.
    local itself = support.write(dir .. "/itself", "#!" .. support.program
      .. "\n" .. [[
      local sys = require "cute.sys"
      print(sys.spawn {sys.program(), "--version"})
      print(sys.spawn {"/nowhere/program"})
    ]])
    support.exec {"chmod", "755", itself}
    out, err, status = without_proc {itself}
    assert.same({"nil\t/proc/self/exe: No such file or directory\n"
      .. "nil\t/nowhere/program: No such file or directory\n", "", 0},
      {out, err, status})
  end)
end)
-- SPDX-License-Identifier: MIT
