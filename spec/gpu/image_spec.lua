-- Tests the read-only cache of a container image. Also tests this cache and the
-- user's cache with concurrent and with killed processes, and with a full disk.
local nvrtcs = require "spec.gpu.nvrtcs"
local ops = require "spec.ops"
local support = require "spec.support"

if not nvrtcs.there then
  describe("the image's cache", function() pending "needs a C compiler" end)
  return
end

local dir, library

-- Compiles SOURCES in its own process. For each, prints the fake compiler's
-- words, the place of the result ("image", "own", "compiled"), and the notes.
local CODE = [[
local core = require "cute.core"
for _, source in ipairs(SOURCES) do
  local out, why = core.jit_compile(source, "sm_90a", nil, false, nil, nil, nil,
                                    INTO)
  print(out and out.cubin:match "cubin (%S+ %S+ %x+)" or why, out and
        (out.image and "image" or out.cached and "own" or "compiled"))
  for _, note in ipairs(out and out.notes or {}) do print("note", note) end
end]]

local function environment(more)
  local env = {XDG_CACHE_HOME = dir .. "/own", CUTELUA_NVRTC = library,
               CUTELUA_NO_CUDA = "0", FAKE_LOG = dir .. "/log",
               LUA_PATH = package.path, LUA_CPATH = package.cpath}
  for k, v in pairs(more or {}) do env[k] = v end
  return env
end

local function code(sources, into)
  local list = {}
  for i, s in ipairs(sources) do list[i] = ("%q"):format(s) end
  return ("SOURCES = {%s} INTO = %s\n"):format(table.concat(list, ","),
    into and ("%q"):format(into) or "nil") .. CODE
end

local function run(source, more, into)
  local out, err = support.exec({support.lua, "-e",
    code(type(source) == "table" and source or {source}, into)},
    {env = environment(more)})
  assert.equal("", err)
  return out
end

local function sh(line, more)
  local out, err, status = support.exec({"sh", "-c", line},
    {env = environment(more)})
  assert.equal(0, status, err)
  return out
end

-- Returns where a result came from, such as "image", and the text of its CUBIN.
local function from(out) return out:match "\t(%l+)\n", (out:match "^[^\t]*") end

local function compiles()
  local _, n = (support.read(dir .. "/log") or ""):gsub("\n", "")
  return n
end

local function image(more)
  local env = {CUTELUA_CACHE_IMAGE = dir .. "/image"}
  for k, v in pairs(more or {}) do env[k] = v end
  return env
end

local function before()
  dir = support.folder()
  library = nvrtcs.make(dir .. "/lib", "13.9")
end
local function after() support.remove(dir) end

teardown(function() nvrtcs.remove() end)

describe("the image's cache", function()
  before_each(before)
  after_each(after)

  it("serves a process without NVRTC and without its own cache",
      function()
    local _, bytes = from(run("one", nil, dir .. "/image"))
    assert.equal("755 directory\n644 regular file\n", sh("cd " .. dir
      .. "; stat -c '%a %F' image image/*.jit"))
    sh("rm -r " .. dir .. "/own")
    local out = run("one", image {CUTELUA_NO_CUDA = "1"})
    assert.equal(bytes .. "\timage\n", out)
    assert.is_nil(support.read(dir .. "/own/cutelua"))
    assert.equal("", sh("ls " .. dir .. "/own 2>/dev/null || true"))
    -- The image lacks the kernel "two". Without NVRTC, that kernel is an
    -- error. With NVRTC, it is compiled and then found in the user's own
    -- cache.
    out = run("two", image {CUTELUA_NO_CUDA = "1"})
    assert.truthy(out:find "^NVRTC was not found")
    assert.equal("compiled", (from(run("two", image()))))
    assert.equal("own", (from(run("two", image()))))
  end)

  it("is used before the user's cache, with any NVRTC", function()
    run("one", nil, dir .. "/image")
    library = nvrtcs.make(dir .. "/newer", "13.98")
    local where, bytes = from(run "one")
    assert.equal("compiled", where)
    assert.truthy(bytes:find "^13.98")
    where, bytes = from(run("one", image()))
    assert.equal("image", where)
    assert.truthy(bytes:find "^13.9 ")
    assert.equal("own", (from(run("one", image {CUTELUA_CACHE_IMAGE = ""}))))
    assert.equal("compiled", (from(run("one", image {CUTELUA_CACHE = "0"}))))
  end)

  it("is never written, and nothing is evicted from it", function()
    run({"BIG 1", "BIG 2", "BIG 3"}, nil, dir .. "/image")
    local list = "ls -la --time-style=full-iso " .. dir .. "/image"
    sh("touch -d '40 days ago' " .. dir .. "/image/*; chmod 500 " .. dir
      .. "/image")
    local was = sh(list)
    local out = run({"BIG 1", "BIG 2", "BIG 4", "BIG 5"},
      image {CUTELUA_CACHE_MB = "1"})
    assert.equal("image image compiled compiled ",
      (out:gsub("[^\t]*\t(%l+)\n", "%1 ")))
    assert.equal(was, sh(list))
    assert.equal(0, select(2, sh("ls " .. dir .. "/image"):gsub("%.lock", "")))
  end)

end)

describe("the image's cache", function()
  before_each(before)
  after_each(after)

  it("uses no entry that others could have written; warns once",
      function()
    run("one", nil, dir .. "/image")
    local folder = dir .. "/image"
    local entry = sh("ls " .. folder .. "/*.jit"):match "%S+"
    local NOTE = "note\tthe kernels of CUTELUA_CACHE_IMAGE are not used: "
    for mode, trusted in pairs {["700"] = true, ["755"] = true, ["775"] = false,
        ["757"] = false, ["777"] = false, ["1777"] = false} do
      sh(("chmod %s %s"):format(mode, folder))
      local out = run("one", image())
      assert.equal(trusted, from(out) == "image", mode)
      assert.equal(not trusted, out:find(NOTE .. "cannot use a cache folder "
        .. "that others can write to, " .. folder, 1, true) ~= nil, out)
    end
    sh("chmod 755 " .. folder)
    for mode, trusted in pairs {["600"] = true, ["644"] = true, ["664"] = false,
        ["646"] = false} do
      sh(("chmod %s %s"):format(mode, entry))
      assert.equal(trusted, from(run("one", image())) == "image", mode)
    end
    sh("chmod 644 " .. entry)
    -- Symbolic links are not followed, even if their targets are valid.
    sh(("ln -s image %s/linked; mv %s %s.good; ln -s %s.good %s"):format(dir,
      entry, entry, entry, entry))
    assert.not_equal("image", (from(run("one", image()))))
    sh(("mv %s.good %s"):format(entry, entry))
    assert.equal("image", (from(run("one", image()))))
    local out = run("one", {CUTELUA_CACHE_IMAGE = dir .. "/linked"})
    assert.truthy(out:find("cannot use a symbolic link as the cache folder", 1,
      true), out)
    for _, wrong in ipairs {"image", dir .. "/none", entry} do
      out = run("one", {CUTELUA_CACHE_IMAGE = wrong})
      assert.truthy(out:find(NOTE, 1, true), out)
    end
    -- Without NVRTC, the error says why the image was not used.
    out = run("one", {CUTELUA_CACHE_IMAGE = dir .. "/none",
                      CUTELUA_NO_CUDA = "1"})
    assert.truthy(out:find("^NVRTC was not found .*; the kernels of "
      .. "CUTELUA_CACHE_IMAGE are not used: cannot open the cache folder"), out)
    -- Each process prints the warning only once.
    local _, err = support.run_lua({"-e", [[local jit = require "cute.jit"
      for i = 1, 3 do jit.compile("text " .. i, {arch = "sm_90a"}) end]]},
      environment {CUTELUA_CACHE_IMAGE = dir .. "/none"})
    assert.equal(1, select(2, err:gsub("warning: the kernels of "
      .. "CUTELUA_CACHE_IMAGE are not used", "")), err)
  end)

  it("belongs to root or to the user", function()
    if sh "id -u" ~= "0\n" then return pending "needs root" end
    run("one", nil, dir .. "/image")
    sh("chown nobody " .. dir .. "/image")
    local out = run("one", image())
    assert.truthy(out:find("cannot use the cache folder of another user,", 1,
      true), out)
    sh(("chown root %s/image; chown nobody %s/image/*"):format(dir, dir))
    assert.not_equal("image", (from(run("one", image()))))
    -- An image that root owns serves other users; an image of another owner
    -- serves only that user.
    sh(("chown root %s/image/*; chmod 755 %s %s/lib; mkdir %s/theirs; "
      .. "chown nobody %s/theirs"):format(dir, dir, dir, dir, dir))
    sh("chmod -R a+rX " .. dir)
    local line = "setpriv --reuid=65534 --clear-groups " .. support.lua
      .. ' -e "$0"'
    if select(3, support.exec {"sh", "-c", "setpriv --reuid=65534 "
        .. "--clear-groups " .. support.lua .. " -v"}) ~= 0 then
      return pending "needs setpriv"
    end
    out = support.exec({"sh", "-c", line, code {"one"}},
      {env = environment(image {HOME = dir .. "/theirs", CUTELUA_NO_CUDA = "1",
        XDG_CACHE_HOME = dir .. "/theirs"})})
    assert.equal("image", (from(out)), out)
  end)

  it("contains no code that the driver cannot load", function()
    local fake = require "spec.gpu.fake"
    fake.build()
    run("one", nil, dir .. "/image")
    local open = "require 'cute.gpu'.open() " .. code {"one"}
    for cuda, where in pairs {["13000"] = "image", ["12080"] = "own"} do
      local out = support.run_lua({"-e", open}, environment(image {
        FAKE_CUDA = cuda, LD_LIBRARY_PATH = fake.folder}))
      assert.equal(where, (from(out)), out)
    end
    fake.remove()
  end)
end)

---------------------------------------------------------------------------

describe("the caches", function()
  before_each(before)
  after_each(after)

  it("return no wrong bytes if any byte of an entry is damaged", function()
    local pick = ops.random(7)
    run("one", nil, dir .. "/image")
    for _, folder in ipairs {"image", "own/cutelua"} do
      local entry = sh(("ls %s/%s/*.jit"):format(dir, folder)):match "%S+"
      local good = support.read(entry)
      local cuts, where = {}, folder == "image" and "image" or "own"
      for i = 1, 24 do
        local at = 1 + pick(#good)
        local byte = string.char(good:byte(at) ~ (1 << pick(8)))
        cuts[i] = i % 4 == 0 and good:sub(1, at - 1)
          or i % 4 == 1 and good:sub(1, at) .. good:sub(at)
          or good:sub(1, at - 1) .. byte .. good:sub(at + 1)
      end
      -- One process reads all damaged entries.
      local text = {}
      for i, cut in ipairs(cuts) do
        text[i] = ("put(%q, %q)\nread(%d)"):format(entry, cut, i)
      end
      text = [[
        local core = require "cute.core"
        local function put(path, text)
          local f <close> = io.open(path, "wb")
          f:write(text)
        end
        local function read(i)
          local c = core.cache_list(IMAGE, true)
          local state = c[1].state
          local out = core.jit_compile("one", "sm_90a")
          local came = out.image and "image" or out.cached and "own" or "new"
          print(i, state, came, out.cubin:match "cubin (%S+ %S+ %x+)")
        end
      ]] .. table.concat(text, "\n")
      local out, err = support.run_lua({"-e", ("IMAGE = %s\n"):format(
        where == "image") .. text}, environment(image {
          CUTELUA_CACHE_IMAGE = where == "image" and dir .. "/image" or ""}))
      assert.equal("", err)
      local n, bytes = 0, nil
      for i, state, came, got in out:gmatch "(%d+)\t(%l+)\t(%l+)\t([^\n]+)" do
        n = n + 1
        bytes = bytes or got
        assert.equal(bytes, got)
        assert.truthy(state == "broken" or state == "old", i .. " " .. state)
        assert.not_equal(where == "image" and "image" or "own", came, i)
      end
      assert.equal(24, n)
      support.write(entry, good)
    end
  end)

  it("use no damaged entry, under the sanitizers #long", function()
    local program = dir .. "/fuzz"
    local words = {os.getenv "CC" or "cc", "-g", "-O1", "-Icore",
      "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o",
      program, "spec/gpu/cachefuzz.c"}
    for _, file in ipairs {"gpu/cache", "base/base", "base/heap",
        "base/platform", "base/signals"} do
      words[#words + 1] = ("core/%s.c"):format(file)
    end
    table.move({"-lpthread", "-ldl"}, 1, 2, #words + 1, words)
    local _, err, status = support.exec(words)
    if status ~= 0 and err:find "sanitize" then
      return pending "needs the sanitizers"
    end
    assert.equal(0, status, err)
    local out
    out, err, status = support.exec({program, "1", "10000"},
                                    {env = environment()})
    assert.same({"ok\n", "", 0}, {out, err, status})
  end)

  it("compile once for 64 processes with the same source", function()
    local path = support.write(dir .. "/child.lua", code {"one", "two"})
    local out = sh(("for i in $(seq 64); do %s %s & done; wait"):format(
      support.lua, path), {FAKE_MS = "100"})
    assert.equal(2, compiles())
    local _, answers = out:gsub("13%.9 sm_90a %x+\t%l+\n", "")
    assert.equal(128, answers)
    assert.equal(2, select(2, out:gsub("compiled\n", "")))
    assert.equal("", sh("ls " .. dir .. "/own/cutelua | grep -v 'jit$' "
      .. "| grep -v ^nvrtc || true"))
  end)

  it("stay within their size while 24 processes fill them #long", function()
    local line = "for i in $(seq 24); do "
      .. '%s -e "$(sed s/NAME/$i/g %s)" & done; wait'
    local path = support.write(dir .. "/child.lua", code {"BIG NAME",
      "BIG a NAME", "BIG b NAME"})
    local out = sh(line:format(support.lua, path), {CUTELUA_CACHE_MB = "5"})
    assert.equal(72, select(2, out:gsub("13%.9 sm_90a %x+\t%l+\n", "")))
    local total = sh("cat " .. dir .. "/own/cutelua/*.jit | wc -c")
    assert.is_true(tonumber(total) <= 5 << 20, total)
    -- Processes that evict entries concurrently leave as much as one process.
    assert.is_true(tonumber(total) >= 2 << 20, total)
    local checked = support.run({"cache", "verify"}, {env = environment()})
    assert.truthy(checked:find " 0 not\n$", checked)
  end)
end)

describe("the caches", function()
  before_each(before)
  after_each(after)

  it("survive processes that are killed at any time", function()
    local path = support.write(dir .. "/child.lua", code {"BIG 1", "BIG 2",
      "BIG 3", "BIG 4"})
    local line = [[
      for round in 1 2 3 4 5 6; do
        rm -f %s/own/cutelua/*.jit
        pids=""
        for i in 1 2 3 4; do %s %s >/dev/null 2>&1 & pids="$pids $!"; done
        sleep 0.0$round
        kill -9 $pids 2>/dev/null
        wait 2>/dev/null
      done; true]]
    sh(line:format(dir, support.lua, path), {FAKE_MS = "5"})
    local out = support.run({"cache", "verify"}, {env = environment()})
    assert.truthy(out:find " 0 not\n$", out)
    out = run {"BIG 1", "BIG 2", "BIG 3", "BIG 4"}
    assert.equal(4, select(2, out:gsub("13%.9 sm_90a %x+\t%l+\n", "")))
    -- Files that killed processes left are removed once they are old, and by
    -- `cache clear`.
    sh("touch -d '2 minutes ago' " .. dir .. "/own/cutelua/*")
    support.run({"cache", "clear"}, {env = environment()})
    assert.equal("", sh("ls -A " .. dir .. "/own/cutelua"))
  end)

  it("work although the disk is full", function()
    local at = dir .. "/own"
    sh("mkdir " .. at)
    if select(3, support.exec {"sh", "-c", "mount -t tmpfs -o size=300k tmpfs "
        .. at .. " 2>/dev/null"}) ~= 0 then
      return pending "needs the right to mount"
    end
    local ok, failure = pcall(function()
      assert.equal("compiled", (from(run "small")))
      assert.equal("own", (from(run "small")))
      local out = run {"BIG", "small", "BIG"}
      assert.equal(2, select(2, out:gsub("\tcompiled\n", "")))
      assert.equal(1, select(2, out:gsub("\town\n", "")))
      assert.truthy(out:find("note\tkernels are not cached: cannot write to "
        .. "the cache folder " .. at .. "/cutelua: No space left on device",
        1, true), out)
      assert.equal("", sh("ls " .. at .. "/cutelua | grep tmp || true"))
      out = run("BIG", nil, dir .. "/own/image")
      assert.truthy(out:find "No space left on device %[io%]\t", out)
    end)
    sh("umount " .. at)
    if not ok then error(failure, 0) end
  end)

  it("keep the entries that were used last", function()
    run {"BIG 1", "BIG 2", "BIG 3"}
    local files = {}
    for _, name in ipairs {"BIG 1", "BIG 2", "BIG 3"} do
      sh("touch -r /etc/passwd " .. dir .. "/own/cutelua/*.jit")
      run(name)
      files[name] = sh("ls -t " .. dir .. "/own/cutelua/*.jit"):match "%S+"
    end
    for i, name in ipairs {"BIG 1", "BIG 2", "BIG 3"} do
      sh(("touch -d '%d hours ago' %s"):format(4 - i, files[name]))
    end
    run "BIG 1"
    run("BIG 4", {CUTELUA_CACHE_MB = "4"})
    local env = {CUTELUA_CACHE_MB = "4"}
    assert.equal("own", (from(run("BIG 1", env))))
    assert.equal("own", (from(run("BIG 3", env))))
    assert.equal("compiled", (from(run("BIG 2", env))))
  end)
end)
-- SPDX-License-Identifier: MIT
