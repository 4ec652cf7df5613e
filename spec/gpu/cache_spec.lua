local jit = require "cute.jit"
local support = require "spec.support"

local source = 'extern "C" __global__ void k(int *p) { *p = 7; }\n'

-- Compiles SOURCE in its own process. Prints the result, and whether the
-- process opened NVRTC.
local child = [[
local jit = require "cute.jit"
local out, message = jit.compile(SOURCE, {arch = "sm_80"})
if not out then print("error", message) os.exit(1) end
local maps <close> = io.open "/proc/self/maps"
print(out.cached, maps:read "a":find "libnvrtc" and "nvrtc" or "none",
      #out.cubin, out.resources.registers)
]]

local function list(dir)
  local names = {}
  local p <close> = io.popen("ls -A '" .. dir .. "/cutelua' 2>/dev/null")
  for name in p:lines() do names[#names + 1] = name end
  return names
end

local function only(dir, suffix)
  local found = {}
  for _, name in ipairs(list(dir)) do
    if name:sub(-#suffix) == suffix then found[#found + 1] = name end
  end
  return found
end

local function environment(dir, more)
  local env = {XDG_CACHE_HOME = dir, LUA_PATH = package.path,
               LUA_CPATH = package.cpath}
  for k, v in pairs(more or {}) do env[k] = v end
  return env
end

local function run(dir, more, text)
  local code = ("SOURCE = %q\n"):format(text or source) .. child
  return support.exec({support.lua, "-e", code}, {env = environment(dir, more)})
end

local function words(out)
  return out:match "^(%S+)\t(%S+)\t(%d+)\t(%d+)\n$"
end

if not jit.version() then
  describe("the compile cache", function() pending "needs NVRTC" end)
  return
end

local dir

local function entry()
  local found = only(dir, ".jit")
  assert.equal(1, #found)
  return dir .. "/cutelua/" .. found[1]
end

-- ---- files that somebody else may have created ----

local function sh(line)
  local _, err, code = support.exec({"sh", "-c", line})
  assert.equal(0, code, err)
end

local function modes(pattern)
  local out = support.exec {"sh", "-c", "stat -c '%a %F' " .. pattern}
  return out
end

-- Asserts that the old file is a miss, that a new entry replaces it, and that
-- the folder has no further file.
local function replaces(what)
  local out, err = run(dir)
  assert.equal("", err, what)
  assert.equal("false", (words(out)), what)
  assert.equal("true", (words((run(dir)))), what)
  assert.equal("600 regular file\n", modes(entry()), what)
  assert.same({}, only(dir, ".tmp"))
  assert.same({}, only(dir, ".lock"))
end

describe("the compile cache", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("returns the same bytes to a second process, without NVRTC", function()
    local first = run(dir)
    local cached, nvrtc, bytes, registers = words(first)
    assert.same({"false", "nvrtc"}, {cached, nvrtc})
    assert.equal(("true\tnone\t%s\t%s\n"):format(bytes, registers),
                 (run(dir)))
    assert.same({}, only(dir, ".lock"))
    assert.same({}, only(dir, ".tmp"))
  end)

  it("distinguishes sources, options and architectures", function()
    run(dir)
    run(dir, nil, source .. "\n")
    assert.equal(2, #only(dir, ".jit"))
    local code = [[
      local jit = require "cute.jit"
      local s = ]] .. ("%q"):format(source) .. [[
      for _, o in ipairs {{arch = "sm_80"}, {arch = "sm_90a"},
                          {arch = "sm_80", options = {"-lineinfo"}},
                          {arch = "sm_80", options = {"-lineinfo", "-G"}},
                          {arch = "compute_80"}} do
        io.write(tostring(jit.compile(s, o).cached), " ")
      end]]
    local out = support.exec({support.lua, "-e", code},
                             {env = environment(dir)})
    assert.equal("true false false false false ", out)
    assert.equal(6, #only(dir, ".jit"))
  end)

  it("replaces any broken entry #long", function()
    local want = words(run(dir)) and entry()
    local good = support.read(want)
    local damaged = {"", "x", good:sub(1, 40), good:sub(1, #good // 2),
                     good:sub(1, -2), good .. "x", good:rep(2),
                     ("\0"):rep(#good)}
    for _, at in ipairs {1, 9, 13, 17, 33, 41, 65, 73, 90, #good // 2,
                         #good} do
      damaged[#damaged + 1] = good:sub(1, at - 1) ..
        string.char(good:byte(at) ~ 4) .. good:sub(at + 1)
    end
    for i, text in ipairs(damaged) do
      support.write(want, text)
      local out, err = run(dir)
      assert.equal("", err)
      assert.equal("false", (words(out)), "damage " .. i)
      -- The damaged file is rewritten. The new file may differ only in the
      -- digits of ptxas's compile time in the log.
      assert.is_true(math.abs(#good - #support.read(want)) < 8)
      assert.equal("true", (words((run(dir)))))
    end
  end)

  it("does not use an entry under another entry's name", function()
    run(dir)
    local one = entry()
    run(dir, nil, source .. "// two\n")
    for _, name in ipairs(only(dir, ".jit")) do
      local path = dir .. "/cutelua/" .. name
      if path ~= one then support.write(path, support.read(one)) end
    end
    assert.equal("false", (words((run(dir, nil, source .. "// two\n")))))
  end)

  it("compiles once for several processes with the same source", function()
    local code = ("SOURCE = %q\n"):format(source .. ([[
      extern "C" __global__ void f%d(float *p) {
        #pragma unroll
        for (int i = 0; i < 200; i++) p[i] = p[i + 1] * p[i] + 1;
      }
    ]]):rep(6, ""):gsub("%%d", (function()
      local n = 0
      return function() n = n + 1 return tostring(n) end
    end)())) .. child
    local path = support.write(dir .. "/child.lua", code)
    local line = ("for i in 1 2 3 4; do %s %s & done; wait")
      :format(support.lua, path)
    local out, err = support.exec({"sh", "-c", line},
                                  {env = environment(dir)})
    assert.equal("", err)
    local cached, compiled = 0, 0
    for answer in out:gmatch "(%S+)\t%S+\t%d+\t%d+\n" do
      if answer == "true" then cached = cached + 1
      else compiled = compiled + 1 end
    end
    assert.same({3, 1}, {cached, compiled})
    assert.same({}, only(dir, ".lock"))
    assert.same({}, only(dir, ".tmp"))
  end)

  it("does not wait for locks of a process that ended", function()
    run(dir)
    local path = entry()
    os.remove(path)
    support.write((path:gsub("jit$", "lock")), "")
    support.write(dir .. "/cutelua/nvrtc-old.0123.tmp", "half")
    support.exec {"touch", "-d", "2 hours ago",
                  dir .. "/cutelua/nvrtc-old.0123.tmp"}
    assert.equal("false", (words((run(dir)))))
    assert.equal("true", (words((run(dir)))))
    assert.same({}, only(dir, ".lock"))
    assert.same({}, only(dir, ".tmp"))
  end)
end)

describe("the compile cache", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("warns once if it cannot write, and compiles #long", function()
    local file = support.write(dir .. "/file", "mine")
    for _, place in ipairs {file, "/dev/null/x", "/proc"} do
      local code = ("SOURCE = %q\n"):format(source) .. child .. child
      local out, err = support.exec({support.lua, "-e", code},
                                    {env = environment(place)})
      local _, answers = out:gsub("false\tnvrtc\t%d+\t%d+\n", "")
      assert.equal(2, answers)
      local _, warnings = err:gsub("cutelua: warning: kernels are not " ..
        "cached: cannot make the cache folder [^\n]*\n", "")
      assert.equal(1, warnings)
      assert.equal("mine", support.read(file))
    end
  end)

  it("leaves no partial files when the disk is full", function()
    local line = "trap '' XFSZ; ulimit -f 1; exec " .. support.lua
      .. ' -e "$0"'
    local code = ("SOURCE = %q\n"):format(source) .. child
    local out, err = support.exec({"sh", "-c", line, code},
                                  {env = environment(dir)})
    assert.equal("false", (words(out)))
    assert.truthy(err:find("cannot write to the cache folder", 1, true))
    assert.same({}, only(dir, ".jit"))
    assert.same({}, only(dir, ".tmp"))
    assert.same({}, only(dir, ".lock"))
  end)

  it("is off with CUTELUA_CACHE=0", function()
    for _ = 1, 2 do
      local out, err = run(dir, {CUTELUA_CACHE = "0"})
      assert.equal("", err)
      assert.equal("false", (words(out)))
    end
    assert.same({}, list(dir))
  end)

  it("compiles again if the compiler changed #long", function()
    run(dir)
    local memo
    for _, name in ipairs(list(dir)) do
      if name:find "^nvrtc%-" then memo = dir .. "/cutelua/" .. name end
    end
    local text = support.read(memo)
    -- The memo file caches NVRTC's version. If the library's modification time
    -- differs from that in the memo, cutelua must ask NVRTC again.
    support.write(memo, (text:gsub("^(%S+ %S+ )%d+", "%11")))
    local cached, nvrtc = words((run(dir)))
    assert.same({"true", "nvrtc"}, {cached, nvrtc})
    assert.equal(text, support.read(memo))
    -- If the memo has another version than NVRTC, cutelua must ask NVRTC again.
    support.write(memo, (text:gsub("^%S+", "9.9")))
    cached, nvrtc = words((run(dir)))
    assert.same({"true", "nvrtc"}, {cached, nvrtc})
    assert.equal(text, support.read(memo))
    for _, broken in ipairs {"", "13", "x\n"} do
      support.write(memo, broken)
      assert.equal("true", (words((run(dir)))))
      assert.equal(text, support.read(memo))
    end
  end)

  it("removes the oldest entries beyond the size limit", function()
    support.exec {"mkdir", "-p", dir .. "/cutelua"}
    for i = 1, 5 do
      local path = ("%s/cutelua/%032d.jit"):format(dir, i)
      support.write(path, ("x"):rep(300 * 1024))
      support.exec {"touch", "-d", (6 - i) .. " days ago", path}
    end
    run(dir, {CUTELUA_CACHE_MB = "1"})
    local left = {}
    for _, name in ipairs(only(dir, ".jit")) do
      left[#left + 1] = name:match "^0*(%d)%.jit$" or "new"
    end
    table.sort(left)
    assert.same({"4", "5", "new"}, left)
  end)
end)

describe("the compile cache", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  local STRANGE = {
    fifo = "mkfifo %s", socket = "python3 -c \"import socket; "
      .. "socket.socket(socket.AF_UNIX).bind('%s')\"",
    link = "ln -s %s.good %s", dangling = "ln -s /nowhere/at/all %s",
    terminal = "ln -s /dev/tty %s", zero = "ln -s /dev/zero %s"}

  it("replaces a pipe, link or socket in place of an entry #long",
      function()
    run(dir)
    local path = entry()
    for what, how in pairs(STRANGE) do
      sh("mv " .. path .. " " .. path .. ".good")
      sh(how:gsub("%%s", path))
      local good = support.read(path .. ".good")
      replaces(what)
      assert.equal(good, support.read(path .. ".good"), what)
      os.remove(path .. ".good")
    end
  end)

  it("replaces a pipe, link or socket in place of a lock #long", function()
    run(dir)
    local path = entry()
    local lock = path:gsub("jit$", "lock")
    local victim = support.write(dir .. "/victim", "precious")
    STRANGE.victim = "ln -s " .. victim .. " %s"
    for what, how in pairs(STRANGE) do
      os.remove(path)
      sh(how:gsub("%%s", lock))
      replaces(what)
      assert.equal("precious", support.read(victim))
    end
  end)

  it("replaces them in place of the compiler's version #long", function()
    for what, how in pairs(STRANGE) do
      run(dir)
      local memo = dir .. "/cutelua/" .. list(dir)[#list(dir)]
      assert.truthy(memo:find("/nvrtc-", 1, true))
      os.remove(memo)
      sh(how:gsub("%%s", memo))
      local out, err = run(dir)
      assert.equal("", err)
      assert.equal("true", (words(out)), what)
      assert.equal("600 regular file\n", modes(memo), what)
    end
  end)

  it("compiles if a folder has the name of an entry #long", function()
    run(dir)
    local path = entry()
    os.remove(path)
    sh("mkdir " .. path)
    local out, err = run(dir)
    assert.equal("false", (words(out)))
    assert.truthy(err:find("cannot write to the cache folder", 1, true))
    sh("rmdir " .. path .. " && mkdir " .. path:gsub("jit$", "lock"))
    out, err = run(dir)
    assert.equal("false", (words(out)))
    assert.truthy(err:find("cannot write to the cache folder", 1, true))
  end)

  it("uses no entry that other users could have written #long", function()
    for _, mode in ipairs {"620", "602", "666"} do
      run(dir)
      sh("chmod " .. mode .. " " .. entry())
      replaces(mode)
      os.remove(entry())
    end
  end)
end)

describe("the compile cache", function()
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  it("makes files that only this user can read, with any umask",
      function()
    for _, umask in ipairs {"000", "022", "777"} do
      local home = dir .. "/" .. umask
      sh("mkdir " .. home)
      local code = ("SOURCE = %q\n"):format(source) .. child
      local line = "umask " .. umask .. "; exec " .. support.lua .. ' -e "$0"'
      local env = environment(home .. "/new")
      for _, cached in ipairs {"false", "true"} do
        local out, err = support.exec({"sh", "-c", line, code}, {env = env})
        assert.equal("", err)
        assert.equal(cached, (words(out)), umask)
      end
      assert.equal("700 directory\n700 directory\n600 regular file\n"
        .. "600 regular file\n", modes(home .. "/new " .. home
        .. "/new/cutelua " .. home .. "/new/cutelua/*"))
    end
  end)

  it("empties a folder that others can write to, and warns once #long",
     function()
    local folder, kept = dir .. "/cutelua", dir .. "/kept"
    run(dir)
    sh(("cp -p %s %s; ls %s > %s.names"):format(entry(), kept, folder, kept))
    for _, mode in ipairs {"0777", "0720", "0702", "1777", "1700"} do
      sh(("cp -p %s %s; touch %s/nvrtc-planted; chmod %s %s"):format(kept,
        entry(), folder, mode, folder))
      local out, err = run(dir)
      assert.equal("false", (words(out)), mode)
      assert.equal(("cutelua: warning: other users could write to the cache "
        .. "folder %s (mode %s): its mode is 0700 now, and its 1 entry was "
        .. "removed\n"):format(folder, mode), err)
      assert.equal("700 directory\n", modes(folder))
      assert.equal(support.read(kept .. ".names"),
                   (support.exec {"ls", folder}))
      out, err = run(dir)
      assert.equal("true", (words(out)), mode)
      assert.equal("", err)
    end
  end)

  it("warns that a folder was emptied even if compilation fails", function()
    sh("mkdir -m 0770 " .. dir .. "/cutelua")
    local out, err = run(dir, nil, "no C")
    assert.equal("error", out:match "^error")
    assert.truthy(err:find(dir .. "/cutelua (mode 0770): its mode is 0700 now, "
      .. "and its 0 entries were removed\n", 1, true), err)
    sh("chmod 0750 " .. dir .. "/cutelua")
    replaces "a folder that others can read"
  end)

  it("uses no folder that is a symbolic link", function()
    sh(("mkdir %s/mine; touch -d '1 day ago' %s/mine/old.tmp; "
      .. "ln -s mine %s/cutelua"):format(dir, dir, dir))
    local out, err = run(dir)
    assert.equal("false", (words(out)))
    assert.truthy(err:find("kernels are not cached: cannot use a symbolic link "
      .. "as the cache folder " .. dir .. "/cutelua", 1, true), err)
    assert.equal("old.tmp\n", (support.exec {"ls", dir .. "/mine"}))
  end)

  it("uses no folder and no entry of another user", function()
    local _, _, code = support.exec {"sh", "-c", "test $(id -u) = 0"}
    if code ~= 0 then return pending "needs root" end
    run(dir)
    sh("chown nobody " .. entry())
    replaces "an entry of nobody's"
    sh("touch " .. entry():gsub("jit$", "lock") .. "; chown nobody "
      .. entry():gsub("jit$", "lock") .. "; rm " .. entry())
    replaces "a lock of nobody's"
    sh("chown nobody " .. dir .. "/cutelua; chmod 777 " .. dir .. "/cutelua")
    local out, err = run(dir)
    assert.equal("false", (words(out)))
    assert.truthy(err:find("kernels are not cached: cannot use the cache "
      .. "folder of another user,", 1, true), err)
  end)

  it("accepts any size limit #long", function()
    for _, mb in ipairs {"17592186044416", "99999999999999999999", "-1", "x",
        ""} do
      run(dir, {CUTELUA_CACHE_MB = mb})
      run(dir, {CUTELUA_CACHE_MB = mb}, source .. "//" .. mb .. "\n")
      assert.equal("true", (words((run(dir)))), mb)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
