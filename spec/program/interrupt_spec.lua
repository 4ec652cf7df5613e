-- Tests Ctrl-C in the real program, on a terminal.
local nvrtcs = require "spec.gpu.nvrtcs"
local support = require "spec.support"

-- A script in which coroutines of Lua and of the program call each other, and
-- the script's output.
local COROUTINES = [[
local function show(...)
  local t = table.pack(...)
  for i = 1, t.n do t[i] = tostring(t[i]):gsub("0x%x+", "ADDRESS") end
  print(table.concat(t, " "))
end
local function closing(f)
  return setmetatable({}, {__close = f})
end
local co = coroutine.create(function(a, b)
  local c = coroutine.yield(a + b, nil)
  error {c}
end)
show(coroutine.resume(co, 1, 2))
local ok, e = coroutine.resume(co, 5)
show(ok, e[1], coroutine.resume(co))
show(pcall(coroutine.resume))
show(pcall(coroutine.wrap, 1))
local w = coroutine.wrap(function()
  local x <close> = closing(function() show "closed" end)
  error "boom"
end)
show(pcall(w))
show(pcall(w))
show(pcall(coroutine.wrap(function()
  local x <close> = closing(function() error "in close" end)
  error "boom"
end)))
show(pcall(coroutine.wrap(function() error(nil) end)))
show(coroutine.resume(coroutine.running()))
show(pcall(coroutine.wrap(function()
  return pcall(coroutine.resume, coroutine.running())
end)))
local function deep(n)
  return n == 0 and 0 or 1 + coroutine.wrap(deep)(n - 1)
end
show(deep(150))
show(select("#", coroutine.resume(coroutine.create(function()
  return table.unpack({}, 1, 200000)
end))))
show(coroutine.resume(coroutine.create(function(...)
  return select("#", ...)
end), table.unpack({}, 1, 200000)))
for a, b in coroutine.wrap(function()
  for i = 1, 3 do coroutine.yield(i, -i) end
end) do show(a, b) end
]]

local dir

local function talk(steps)
  table.insert(steps, 1, {"", "> "})
  steps[#steps + 1] = {"\4", ""}
  return support.terminal(steps, {TERM = "xterm", XDG_STATE_HOME = dir,
    XDG_CACHE_HOME = dir})
end

-- Defines a function that runs a long compilation. In its first run, NVRTC
-- installs a signal handler of its own.
local LONG = [[jit = require "cute.jit" function compile(n)
  local s = {}
  for i = 1, n do s[i] = ("__device__ int f%d(int x) { return x * %d; }\n")
    :format(i, i) end
  s[n + 1] = 'extern "C" __global__ void k(int *p) { p[0] = 1; }'
  jit.compile(table.concat(s), {arch = "sm_80", cache = false})
end
]]

describe("Ctrl-C", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  -- Types the code, waits for the "go" that it prints, and interrupts it with
  -- one Ctrl-C. Then the prompt must still work.
  local function stops(code)
    local out, status = talk {{"function go() print('g'..'o') end\n", "> "},
      {code .. "\n", "go\r\n"}, {"\3", "\r\n> "}, {"6 * 7\n", "42\r\n> "}}
    assert.truthy(out:find("interrupted\n", 1, true), out)
    assert.is_nil(out:find("once more", 1, true), out)
    assert.equal(0, status)
  end

  it("stops a loop in a coroutine, however it was started", function()
    stops [[coroutine.wrap(function() go() while true do end end)()]]
    stops [[coroutine.resume(coroutine.create(function() go()
      while true do end end))]]
    stops [[for _ in coroutine.wrap(function() coroutine.yield(1) go()
      while true do end end) do end]]
  end)

  it("stops nested coroutines, and code that resumes dead ones #long",
      function()
    stops [[local w = coroutine.wrap(function()
      local c = coroutine.create(function() go() while true do end end)
      while true do coroutine.resume(c) end
    end) w()]]
    stops [[go() while true do
      local c = coroutine.create(function() for i = 1, 1000 do end end)
      coroutine.resume(c)
    end]]
    stops [[local c = coroutine.wrap(function()
      while true do coroutine.yield() end end)
      go() while true do c() end]]
  end)

  it("is not held up by a pcall #long", function()
    stops "go() while true do pcall(function() while true do end end) end"
    stops [[coroutine.wrap(function() go()
      while true do
        pcall(coroutine.wrap(function() while true do end end))
      end
    end)()]]
  end)

  it("closes to-be-closed variables", function()
    local out = talk {{"T = setmetatable({}, {__close = function()\n", ">> "},
      {"for i = 1, 10000 do N = i end end})\n", "> "},
      {"do local t <close> = T print('g'..'o') while true do end end\n",
       "go\r\n"}, {"\3", "\r\n> "}, {"N\n", "10000\r\n> "}}
    assert.truthy(out:find("interrupted\n", 1, true), out)
  end)

  local MAKE = "t = cute.make_tensor(cute.buffer('i32', 32), "
    .. "cute.make_layout({32})) s = {grid = {64}, block = {32}, "
    .. "budget = 1 << 60}\n"

  it("stops a trace #long", function()
    for _, body in ipairs {"for i = 1, 1e12 do end",
        "pcall(function() while true do end end)",
        "coroutine.wrap(function() while true do end end)()"} do
      stops(MAKE .. "k = cute.kernel('k', function(m) go() " .. body
        .. " end) while true do pcall(function() k(t):launch(s) end) end")
    end
  end)

  it("stops the simulator", function()
    stops(MAKE .. [[k = cute.kernel('k', function(m)
      for i in cute.range(1000000000) do m[0] = i end end)
      go() k(t):launch(s)]])
  end)

  it("stops a launch with very many faults", function()
    -- Each of 4000 lines has a fault: it reads what another warp writes, or
    -- what nothing has written.
    local path = support.write(dir .. "/many.lua", [[
      local cute = require "cute"
      local text = {"local cute = ... return function(y)",
        "local t = cute.arch.thread_idx()",
        "local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64))",
        "for _ = 1, 1 do"}
      for i = 1, 4000 do
        text[#text + 1] = ("s[%d] = s[%d] + t"):format(i % 64, (7 * i + 1) % 64)
      end
      text[#text + 1] = "end y[t] = s[t % 64] end"
      local f = load(table.concat(text, "\n"), "=many")(cute)
      local k = cute.kernel("k", f)
      local y = cute.zeros({256}, cute.i32)
      k(y):launch {grid = 400, block = 256, device = "sim"}
    ]])
    local began = os.time()
    local _, err, code = support.exec {"timeout", "-s", "INT", "2",
      support.program, path}
    -- Either the launch ended before the signal, or the signal interrupted it.
    assert.truthy(code == 1 and err:find("kernel k: 1 fault", 1, true)
      or err:find("interrupted", 1, true), err)
    assert.truthy(os.time() - began <= 10)
  end)

  for i = 1, 3 do
    it(("stops code that runs NVRTC, after %d ms"):format(50 * i)
      .. support.long(i), function()
      if not require "cute.jit".version() then return pending "needs NVRTC" end
      local out, status = talk {{LONG:gsub("\n", " ") .. "\n", "> "},
        {"print('g'..'o') for _ = 1, 100 do compile(3000) end\n", "go\r\n"},
        {"\3", "\r\n> ", 50 * i}, {"6 * 7\n", "42\r\n> "}}
      assert.truthy(out:find("interrupted\n", 1, true), out)
      assert.equal(0, status)
    end)
  end
end)

describe("Ctrl-C", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  for i = 1, 3 do
    it(("ends a script in NVRTC with its own exit code, after %d ms #long")
       :format(50 * i), function()
      if not require "cute.jit".version() then return pending "needs NVRTC" end
      local path = support.write(dir .. "/s.lua", LONG .. [[
        jit.version()
        os.execute(("(sleep 0.%s; kill -%s %d) >/dev/null 2>&1 &"):format(
          arg[1], arg[2], io.open "/proc/self/stat":read "n"))
        for i = 1, 100 do compile(3000) end]])
      local pause = ("%03d"):format(i * 50)
      local _, err, code = support.run {path, pause, "INT"}
      assert.truthy(err:find("cutelua: interrupted", 1, true), err)
      assert.equal(130, code)
      _, _, code = support.run {path, pause, "TERM"}
      assert.equal(128 + 15, code)
    end)
  end

  it("is kept while NVRTC ignores it for a moment", function()
    if not nvrtcs.there then return pending "needs a C compiler" end
    nvrtcs.make(dir, "13.9")
    local path = support.write(dir .. "/s.lua", [[
      require "cute.jit".compile("// CTRL-C", {arch = "sm_80", cache = false})
      print "compiled"]])
    local out, err, code = support.run({path}, {env = {CUTELUA_NVRTC = dir}})
    nvrtcs.remove()
    assert.truthy(err:find("cutelua: interrupted", 1, true), err)
    assert.same({"", 130}, {out, code})
  end)

  it("ends the wait for another process's compile #long", function()
    if not require "cute.jit".version() then return pending "needs NVRTC" end
    local code = [[require "cute.jit".compile('extern "C" __global__ void '
      .. 'k() {}', {arch = "sm_80"})]]
    local env = {XDG_CACHE_HOME = dir}
    support.run({"-e", code}, {env = env})
    local out = support.exec {"sh", "-c", "ls " .. dir .. "/cutelua/*.jit"}
    local entry = out:gsub("\n", "")
    os.remove(entry)
    local path = support.write(dir .. "/hold.py", [[
import fcntl, os, signal, subprocess, sys, time
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
p = subprocess.Popen(sys.argv[2:])
folder = "/proc/%d/fd/" % p.pid
def waits():
    try:
        return any(os.readlink(folder + n).endswith(".lock")
                   for n in os.listdir(folder))
    except OSError:
        return False
while p.poll() is None and not waits():
    time.sleep(0.01)
p.send_signal(signal.SIGINT)
sys.exit(p.wait(60))
]])
    local _, err, status = support.exec({"python3", path,
      (entry:gsub("jit$", "lock")), support.program, "-e", code}, {env = env})
    assert.truthy(err:find("cutelua: interrupted", 1, true), err)
    assert.equal(130, status)
  end)

  it("between two inputs does nothing", function()
    local steps = {}
    for _ = 1, 8 do
      steps[#steps + 1] = {"x = 1\n\3\3\3", "> "}
      steps[#steps + 1] = {"6 * 7\n", "42\r\n> "}
    end
    local _, status = talk(steps)
    assert.equal(0, status)
  end)

  it("leaves coroutines intact", function()
    local path = support.write(dir .. "/s.lua", COROUTINES)
    local want, err = support.exec {"lua5.4", path}
    assert.equal("", err)
    assert.equal(want, (support.run {path}))
  end)
end)

describe("a hook of debug.sethook", function()
  it("that raises does not end the prompt, and is dropped", function()
    local out, _, code = support.run({}, {stdin = [[
debug.sethook(function() error "hooked" end, "l")
1 + 1
6 * 7
]]})
    assert.equal("42\n", out)
    assert.equal(1, code)
    dir = support.folder()
    out, code = support.terminal({{"", "> "},
      {"debug.sethook(function() error 'hooked' end, 'l')\n", "> "},
      {"1 + 1\n", "> "}, {"6 * 7\n", "42\r\n> "}, {"\4", ""}},
      {TERM = "xterm", XDG_STATE_HOME = dir})
    support.remove(dir)
    assert.truthy(out:find("hooked", 1, true))
    assert.equal(0, code)
  end)

  it("lasts from one input to the next", function()
    local out = support.run({}, {stdin = [[
n = 0
debug.sethook(function() n = n + 1 end, "l")
n = 0
n > 0
]]})
    assert.equal("true\n", out)
  end)

  it("does not hide a script's error", function()
    local _, err, code = support.run {"-e",
      "debug.sethook(function() error 'hooked' end, 'l')\nlocal x = 1"}
    assert.truthy(err:find("^cutelua: hooked %[lua%]\n"), err)
    assert.equal(1, code)
  end)
end)
-- SPDX-License-Identifier: MIT
