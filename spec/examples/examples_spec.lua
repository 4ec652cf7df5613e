-- Builds and runs each program of examples/ without a GPU. Bundles run on a
-- fake driver that executes one kernel, libcutelua and Python on the simulator,
-- and container images in folders. spec/library/library_spec.lua runs
-- examples/library.
local fake = require "spec.gpu.fake"
local image = require "spec.examples.image"
local made = require "spec.bundle.made"
local nvrtcs = require "spec.gpu.nvrtcs"
local support = require "spec.support"
local core = require "cute.core"

local must = support.must
local build = support.absolute(os.getenv "CUTE_BUILD" or "build")
local sanitized = os.getenv "CUTE_SANITIZED" ~= nil

local dir
setup(function() dir = support.folder() end)
teardown(function() support.remove(dir) end)

describe("examples/README.md", function()
  it("has a row of each example", function()
    local text, n = support.read "examples/README.md", 0
    for name in support.exec {"ls", "examples"}:gmatch "[^\n]+" do
      if name ~= "README.md" then
        n = n + 1
        assert.truthy(text:find(("\n| [%s](%s) |"):format(name, name), 1, true),
                      name)
      end
    end
    assert.is_true(n >= 5)
  end)
end)

describe("the example of a bundle", function()
  it("runs in C without Lua #noasan", function()
    if not core.nvrtc_version() then return pending "needs NVRTC" end
    local _, err, code = made.bundle("--arch sm_80,sm_90a -o " .. dir,
                                     "examples/bundle/axpy.lua")
    assert(code == 0, err)
    local driver = made.driver()
    made.must("cc -std=c11 -Wall -Wextra -Wconversion -Werror -I" .. dir,
      "examples/bundle/main.c", dir .. "/axpy.c -L" .. driver,
      "-l:libcuda.so.1 -ldl -pthread -o " .. dir .. "/main")
    for card, name in pairs {["90"] = "sm_90a", ["86"] = "sm_80"} do
      local out
      out, err, code = made.run(driver, dir .. "/main", {FAKE_CC = card})
      assert(code == 0, err .. out)
      assert.equal("axpy: tensors x and y share memory\n"
        .. "y[999] = 2998, by the code for " .. name .. "\n", out)
    end
    local out = made.run(driver, dir .. "/main", {FAKE_CC = "75"})
    assert.truthy(out:find("code for sm_90a sm_80", 1, true), out)
    support.remove(driver)
  end)
end)

describe("the example of an application with its own Lua", function()
  it("requires cutelua as a module #noasan", function()
    if not support.lua_headers then
      return pending "needs the headers of Lua"
    end
    local path = dir .. "/host"
    must {"cc", "-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror",
      "-I/usr/include/lua5.4", "examples/lua/host.c", "-Wl,-E",
      "-l:liblua5.4.a", "-lm", "-ldl", "-o", path}
    local env = {CUTELUA_NO_CUDA = "1", LUA_CPATH = build .. "/?.so",
                 LUA_PATH = "lua/?.lua;lua/?/init.lua;./?.lua"}
    assert.equal("8.0\n", must({path, "examples/lua/app.lua"},
                                {env = env}))
    local wrong = support.write(dir .. "/wrong.lua",
      "require('cute').ones({2}, 'f99')")
    local _, err, code = support.exec({path, wrong}, {env = env})
    assert.equal(1, code)
    assert.truthy(err:find("f99", 1, true), err)
  end)
end)

describe("the example in Python #noasan", function()
  -- Unpacks the wheel, as pip does, and returns its environment.
  local function environment()
    must {"mkdir", "-p", dir .. "/wheel"}
    for _, name in ipairs {"libcutelua.so", "libcutecapture.so"} do
      must {"ln", "-sf", build .. "/" .. name, dir .. "/" .. name}
    end
    local path = must {"python3", "tools/wheel.py", dir, "1.0"}:match "^(%S+): "
    must {"python3", "-m", "zipfile", "-e", path, dir .. "/site"}
    return {PYTHONPATH = dir .. "/site:examples/python", CUTELUA_NO_CUDA = "1",
            PYTHONDONTWRITEBYTECODE = "1"}
  end

  it("runs with the files of the wheel, and its tests pass #long", function()
    local env = environment()
    assert.equal("[-0.1587, 0.0, 2.996]\n[-2.0, 0.0, 6.0]\n"
      .. "kernel-fault gelu.lua 13\n",
      must({"python3", "examples/python/gelu.py"}, {env = env}))
    assert.equal("passed\n", must({"python3", "-c", "import test_gelu as t\n"
      .. "t.test_gelu()\nt.test_add()\nprint('passed')"}, {env = env}))
    -- A kernel with a race must fail the check.
    support.write(dir .. "/race.lua", (support.read "examples/python/gelu.lua"
      :gsub("z%[i%] = x%[i%]", "z[0] = x[i]")))
    local _, err, code = support.exec({"python3", "-c",
      "import sys, cutelua, gelu\ngelu.script = cutelua.load(sys.argv[1])\n"
      .. "import test_gelu as t\nt.test_add()", dir .. "/race.lua"},
      {env = env})
    assert.equal(1, code)
    assert.truthy(err:find "race", err)
    local python = os.getenv "CUTELUA_PYTHON" or "python3"
    if select(3, support.exec {python, "-c", "import pytest"}) ~= 0 then
      return pending "needs pytest (CUTELUA_PYTHON names a Python that has it)"
    end
    assert.truthy(must({python, "-m", "pytest", "-q", "-p", "no:cacheprovider",
      "examples/python/test_gelu.py"}, {env = env}):find("2 passed", 1, true))
  end)
end)

describe("the images of examples/container #noasan", function()
  local program = support.absolute(support.program)
  local function make(name)
    local context = dir .. "/context"
    must {"mkdir", "-p", context}
    must {"sh", "-c", 'cp examples/container/* "$1" && cp "$2" "$1"/cutelua',
          "sh", context, program}
    local folder = ("%s/%s"):format(dir, name)
    return image.build(context .. "/" .. name, {context = context,
      folder = folder, program = program, installed = function(target)
        nvrtcs.make(target .. "/nvidia/cu13/lib", "13.0", "80,90")
      end})
  end
  local why = not image.possible() and "needs root, chroot and unshare"
    or not fake.there and "needs a C compiler" or sanitized and "is too large"

  it("run on the simulator without CUDA", function()
    if why then return pending(why) end
    local stage = make "Dockerfile"
    assert.equal("65534:65534", stage.user)
    assert.same({"sim\t9.0\n", "", 0}, {image.run(stage, stage.words)})
  end)

  it("run kernels that were compiled when the image was built #long", function()
    if why then return pending(why) end
    local stage = make "Dockerfile.cuda"
    nvrtcs.remove()
    -- The container image gets the driver from the host, as with a container
    -- runtime.
    fake.build "-DFAKE_CLUSTERS"
    must {"cp", fake.folder .. "/libcuda.so.1", stage.root .. "/lib64"}
    fake.remove()
    local env = {LD_LIBRARY_PATH = "/lib64"}
    -- The fake driver executes no kernel, so the output stays as it was.
    assert.same({"gpu\t3.0\n", "", 0}, {image.run(stage, stage.words, env)})
    -- The image contains no compiler, and the run wrote no file.
    assert.equal("", must {"find", stage.root, "-name", "*nvrtc*"})
    assert.equal("", must {"find", stage.root, "-user", "65534"})
    -- The program ignores the cache if other users can write to it.
    must {"chmod", "777", stage.root .. "/opt/app/kernels"}
    local _, err, code = image.run(stage, stage.words, env)
    assert.equal(1, code)
    assert.truthy(err:find("/opt/app/kernels", 1, true)
                  and err:find("[no-nvrtc]", 1, true), err)
  end)
end)
-- SPDX-License-Identifier: MIT
