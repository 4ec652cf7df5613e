-- Tests `cutelua cache`, with a fake NVRTC.
local nvrtcs = require "spec.gpu.nvrtcs"
local support = require "spec.support"

if not nvrtcs.there then
  describe("cutelua cache", function() pending "needs a C compiler" end)
  return
end

local dir, library

local function environment(more)
  local env = {XDG_CACHE_HOME = dir .. "/own", CUTELUA_NVRTC = library,
               CUTELUA_NO_CUDA = "0"}
  for k, v in pairs(more or {}) do env[k] = v end
  return env
end

local function cache(words, more)
  return support.run({"cache", table.unpack(words)}, {env = environment(more)})
end

local SOURCE = 'extern "C" __global__ void __launch_bounds__(64) %s(int *p) {}'

local function fill(names, into)
  local code = {'local core = require "cute.core"'}
  for _, name in ipairs(names) do
    code[#code + 1] = ("assert(core.jit_compile(%q, 'sm_90a', {'--fmad=false'},"
      .. "false, nil, nil, nil, %s))"):format(SOURCE:format(name),
      into and ("%q"):format(into) or "nil")
  end
  local _, err, status = support.run_lua({"-e", table.concat(code, "\n")},
                                         environment())
  assert.same({"", 0}, {err, status})
end

local function entries()
  local out = support.exec {"sh", "-c", "ls -tr " .. dir
    .. "/own/cutelua/*.jit"}
  return support.lines(out)
end

local function before()
  dir = support.folder()
  library = nvrtcs.make(dir .. "/lib", "13.9")
end
local function after() support.remove(dir) end

teardown(function() nvrtcs.remove() end)

describe("cutelua cache", function()
  before_each(before)
  after_each(after)

  it("lists what is in the caches, the last used first", function()
    fill {"first", "second"}
    fill({"third"}, dir .. "/image")
    local list = entries()
    for i, path in ipairs(list) do
      support.exec {"touch", "-d", ("2001-02-0%d 04:05"):format(i), path}
    end
    local out, err, status = cache {"list"}
    assert.same({"", 0}, {err, status})
    local names = {}
    for day, name in out:gmatch("2001%-02%-0(%d) 04:05  sm_90a    NVRTC 13.9 +"
        .. "%d+%.%d KB  (%l+)  %-%-fmad=false\n") do
      names[#names + 1] = day .. name
    end
    assert.same({"3third", "2second", "1first"}, names)
    assert.truthy(out:find("3 entries in " .. dir .. "/own/cutelua: %d+%.%d KB "
      .. "of at most 256 MB\n$"), out)
    out, err, status = cache({"list"}, {CUTELUA_CACHE_IMAGE = dir .. "/image",
      CUTELUA_CACHE_MB = "3"})
    assert.same({"", 0}, {err, status})
    assert.truthy(out:find("of at most 3 MB\n.* third  %-%-fmad=false\n"
      .. "1 entry in " .. dir .. "/image: %d+%.%d KB\n$"), out)
    assert.equal(dir .. "/own/cutelua\n", (cache {"path"}))
    assert.equal(("%s/own/cutelua\n%s/image\n"):format(dir, dir),
      (cache({"path"}, {CUTELUA_CACHE_IMAGE = dir .. "/image"})))
  end)

  it("finds what is damaged or not the user's", function()
    fill {"first", "second", "third", "fourth"}
    local out, err, status = cache {"verify"}
    assert.same({"", 0}, {err, status})
    assert.equal(dir .. "/own/cutelua: 4 entries good, 0 not\n", out)
    local list = entries()
    local text = support.read(list[1])
    support.write(list[1], text:sub(1, -2), string.char(text:byte(-1) ~ 1))
    support.exec {"chmod", "666", list[2]}
    -- Overwrites the file of one entry with the file of another.
    support.write(list[3], support.read(list[4]))
    out, err, status = cache {"verify"}
    assert.same({"", 1}, {err, status})
    assert.truthy(out:find(list[1] .. ": damaged\n", 1, true), out)
    assert.truthy(out:find(list[2] .. ": others could have written it\n", 1,
      true), out)
    assert.truthy(out:find(list[3] .. ": damaged\n", 1, true), out)
    assert.truthy(out:find("\n" .. dir .. "/own/cutelua: 1 entry good, 3 not\n",
      1, true), out)
    out = cache {"list"}
    assert.truthy(out:find(list[2]:match "[^/]+$" .. ": others could have "
      .. "written it", 1, true), out)
    -- Compiling replaces the damaged entries.
    fill {"first", "second", "third", "fourth"}
    assert.equal(dir .. "/own/cutelua: 4 entries good, 0 not\n",
                 (cache {"verify"}))
    support.exec {"chmod", "777", dir .. "/own"}
    fill({"third"}, dir .. "/image")
    support.exec {"chmod", "775", dir .. "/image"}
    local _
    _, err, status = cache({"verify"}, {CUTELUA_CACHE_IMAGE = dir .. "/image"})
    assert.equal(1, status)
    assert.truthy(err:find("cannot use a cache folder that others can write to",
      1, true), err)
  end)

end)

describe("cutelua cache", function()
  before_each(before)
  after_each(after)

  it("says that others could write to the folder", function()
    local said = ("cutelua: cache: other users could write to the cache folder "
      .. "%s/own/cutelua (mode 0772): its mode is 0700 now, and its 2 entries "
      .. "were removed\n"):format(dir)
    for words, want in pairs {list = {"", 0}, verify = {"", 1},
        clear = {"removed 0 entries, 0.0 KB\n", 0}} do
      fill {"first", "second"}
      support.exec {"chmod", "772", dir .. "/own/cutelua"}
      local out, err, status = cache {words}
      assert.same({said, want[2]}, {err, status})
      if want[1] ~= "" then assert.equal(want[1], out) end
      out, err, status = cache {"verify"}
      assert.same({dir .. "/own/cutelua: 0 entries good, 0 not\n", "", 0},
                  {out, err, status})
    end
  end)

  it("leaves files that are not its own, and what links name", function()
    fill {"first"}
    local folder, name = dir .. "/own/cutelua", ("0"):rep(32)
    local _, err, status = support.exec({"sh", "-c", [[
      mkdir ../kept $0$1.jit 1$1.lock
      for f in Cargo.lock x.jit x.0123.tmp ../kept/$1.jit ../kept/$1.lock; do
        echo kept >$f
        touch -d '90 days ago' $f
      done
      ln -s ../kept/$1.jit 2$1.jit
      ln -s ../kept/$1.lock 3$1.lock
      ln -s ../kept 4$1.jit
      ln ../kept/$1.jit 5$1.jit
      ln -s / nvrtc-root
      chmod 0777 .]], "6", name}, {cwd = folder})
    assert.same({"", 0}, {err, status})
    local out
    out, err = cache {"clear"}
    assert.equal("removed 0 entries, 0.0 KB\n", out)
    assert.truthy(err:find("mode is 0700 now, and its 2 entries were removed",
      1, true), err)
    assert.equal(table.concat({"1" .. name .. ".lock", "2" .. name .. ".jit",
      "3" .. name .. ".lock", "4" .. name .. ".jit", "6" .. name .. ".jit",
      "Cargo.lock", "nvrtc-root", "x.0123.tmp", "x.jit", ""}, "\n"),
      (support.exec {"env", "LC_ALL=C", "ls", "-A", folder}))
    assert.equal("kept\nkept\n", (support.exec {"sh", "-c",
      "cat " .. dir .. "/own/kept/*"}))
  end)

  it("clears all, or all but the last used", function()
    fill {"first", "second", "third", "BIG1", "BIG2"}
    local list = entries()
    for i, path in ipairs(list) do
      support.exec {"touch", "-d", (10 - i) .. " hours ago", path}
    end
    local out, err, status = cache {"clear", "--mb", "2000"}
    assert.same({"removed 0 entries, 0.0 KB\n", "", 0}, {out, err, status})
    out = cache {"clear", "--mb=2"}
    assert.truthy(out:find "^removed 4 entries, 1.%d MB\n$", out)
    assert.same({list[5]}, entries())
    fill({"first"}, dir .. "/image")
    fill {"second"}
    local name = dir .. "/own/cutelua/" .. ("0"):rep(32)
    support.write(name .. ".lock", "")
    support.write(name .. ".0123.tmp", "")
    support.exec {"touch", "-d", "1 hour ago", name .. ".0123.tmp"}
    local image = {CUTELUA_CACHE_IMAGE = dir .. "/image"}
    out, err, status = cache({"clear"}, image)
    assert.same({"", 0}, {err, status})
    assert.truthy(out:find "^removed %d entries, ", out)
    assert.equal("", (support.exec {"ls", "-A", dir .. "/own/cutelua"}))
    assert.truthy((cache({"verify"}, image)):find("image: 1 entry good, 0 not",
      1, true))
  end)

  it("names what it cannot do", function()
    for _, case in ipairs {
        {{}, "cache: list, verify, clear or path?"},
        {{"lits"}, "cache: list, verify, clear or path is needed, got 'lits'"},
        {{"list", "x"}, "cache: unexpected argument 'x'"},
        {{"clear", "x"}, "cache clear: the only option is --mb N"},
        {{"clear", "--mb", "1", "x"}, "cache clear: the only option is --mb N"},
        {{"clear", "--mb"}, "cache clear: the only option is --mb N"},
        {{"clear", "--mb", "-1"}, "cache clear: --mb: a whole number of MB is "
          .. "needed, got '-1'"}} do
      local _, err, status = cache(case[1])
      assert.same({"cutelua: " .. case[2] .. "\n", 2}, {err, status})
    end
    local _, err, status = cache({"list"}, {XDG_CACHE_HOME = "/proc"})
    assert.equal(1, status)
    assert.truthy(err:find("cutelua: cache: kernels are not cached: cannot "
      .. "make the cache folder /proc/cutelua", 1, true), err)
    for _, verb in ipairs {"list", "clear", "path"} do
      _, err = cache({verb}, {CUTELUA_CACHE = "0"})
      assert.truthy(err:find("the cache is disabled", 1, true), err)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
