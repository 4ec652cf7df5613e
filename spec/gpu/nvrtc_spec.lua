-- Tests which NVRTC is chosen among several libraries.
local cute = require "cute"
local fake = require "spec.gpu.fake"
local nvrtcs = require "spec.gpu.nvrtcs"
local support = require "spec.support"

if not nvrtcs.there then
  describe("the choice of NVRTC", function() pending "needs a C compiler" end)
  return
end

local home

-- Returns the library folder of a Python package below the home folder.
local function package(name)
  return ("%s/.local/lib/python3.11/site-packages/nvidia/%s/lib"):format(home,
    name)
end

local CODE = [[
local core = require "cute.core"
local list, driver = core.nvrtc_list(ARCH)
print("driver", driver)
for _, v in ipairs(list) do
  if v.path:find(HOME, 1, true) then
    print(v.version, v.chosen and "chosen" or v.why or "older", v.path)
  end
end]]

local function environment(more)
  local env = {HOME = home, XDG_CACHE_HOME = home .. "/cache",
               CUTELUA_NO_CUDA = "0",
               CUDA_HOME = "", CUDA_PATH = "", VIRTUAL_ENV = "",
               CONDA_PREFIX = ""}
  for k, v in pairs(more or {}) do env[k] = v end
  return env
end

-- Returns a table of the versions found below the home folder, with the text
-- printed for each, and the driver's version.
local function found(more, arch)
  local code = ("HOME = %q ARCH = %s\n"):format(home,
    arch and ("%q"):format(arch) or "nil") .. CODE
  local out, err = support.run_lua({"-e", code}, environment(more))
  assert.equal("", err)
  local said = {}
  for version, what in out:gmatch "\n(%S+)\t([^\t]*)\t" do
    said[version] = what
  end
  return said, out:match "^driver\t(%S+)"
end

local COMPILE = [[
local core = require "cute.core"
local out, why = core.jit_compile(SOURCE or "text", ARCH)
print(out and out.cubin:match "cubin (%S+ %S+)" or why)
print(out and out.cached)
for _, note in ipairs(out and out.notes or {}) do print(note) end]]

local function compiled(more, arch)
  local code = ("ARCH = %q\n"):format(arch or "sm_90a") .. COMPILE
  local out, err = support.run_lua({"-e", code}, environment(more))
  assert.equal("", err)
  return out
end

local function driver(cuda)
  return {LD_LIBRARY_PATH = fake.folder, FAKE_CUDA = cuda}
end

setup(function() fake.build() end)
teardown(function()
  fake.remove()
  nvrtcs.remove()
end)

describe("the choice of NVRTC", function()
  before_each(function() home = support.folder() end)
  after_each(function() support.remove(home) end)

  it("is the newest without a driver #long", function()
    if cute.device "gpu" then return pending "needs a host without GPU" end
    nvrtcs.make(package "cuda_nvrtc", "12.9")
    nvrtcs.make(package "cu13", "13.99")
    local said, cuda = found()
    assert.is_nil(cuda ~= "nil" and cuda or nil)
    assert.same({["13.99"] = "chosen", ["12.9"] = "older"}, said)
    assert.equal("13.99 sm_90a\nfalse\n", compiled())
  end)

  it("is the newest whose code the driver loads", function()
    nvrtcs.make(package "cuda_nvrtc", "12.99")
    nvrtcs.make(package "cu13", "13.99")
    local said, cuda = found(driver "12080")
    assert.equal("12.8", cuda)
    assert.same({["12.99"] = "chosen", ["13.99"] = "its code needs a driver "
      .. "for CUDA 13; this driver is for CUDA 12.8"}, said)
    assert.equal("12.99 sm_90a\nfalse\n", compiled(driver "12080"))
    -- A driver loads code of a later NVRTC with the same major version.
    assert.equal("chosen", found(driver "13000")["13.99"])
  end)

  it("changes after the driver has changed", function()
    nvrtcs.make(package "cuda_nvrtc", "12.99")
    nvrtcs.make(package "cu13", "13.99")
    local code = 'ARCH = "sm_90a" require "cute.gpu".open()\n' .. COMPILE
    for _, case in ipairs {{"13000", "13.99"}, {"12080", "12.99"},
        {"12090", "12.99"}} do
      local out, err = support.run_lua({"-e", code},
                                       environment(driver(case[1])))
      assert.same({case[2], ""}, {out:match "^(%S+) sm_90a\n", err})
    end
  end)

  it("warns that the driver may reject the code of all versions", function()
    local path = nvrtcs.make(home .. "/own", "13.99")
    local more = driver "12040"
    more.CUTELUA_NVRTC = path
    local code = 'ARCH = "sm_90a" require "cute.gpu".open()\n' .. COMPILE
    local out = support.run_lua({"-e", code}, environment(more))
    assert.equal("13.99 sm_90a\nfalse\nNVRTC 13.99 is newer than the driver, "
      .. "which is for CUDA 12.4 and may reject its code\n", out)
  end)

  it("is an older one for a target that the newest does not know #long",
     function()
    nvrtcs.make(package "cuda_nvrtc", "12.99", "70,75,80,90")
    nvrtcs.make(package "cu13", "13.99", "75,80,90,100")
    assert.equal("12.99 sm_70\nfalse\n", compiled(nil, "sm_70"))
    assert.equal("13.99 sm_90a\nfalse\n", compiled(nil, "sm_90a"))
    assert.equal("13.99 sm_100a\nfalse\n", compiled(nil, "sm_100a"))
    -- No library knows the target, so the newest library reports the error.
    assert.equal("13.99 sm_99\nfalse\n", compiled(nil, "sm_99"))
  end)

  it("is what CUTELUA_NVRTC names", function()
    nvrtcs.make(package "cu13", "13.99")
    local path = nvrtcs.make(home .. "/own/lib", "12.3")
    local tree = nvrtcs.make(home .. "/target/nvidia/cuda_nvrtc/lib", "12.4")
    nvrtcs.make(home .. "/env/lib/python3.12/site-packages/nvidia/cu13/lib",
      "13.98")
    for named, version in pairs {[path] = "12.3", [home .. "/own"] = "12.3",
        [home .. "/own/lib"] = "12.3", [home .. "/target"] = "12.4",
        [tree] = "12.4", [home .. "/env"] = "13.98"} do
      assert.same({[version] = "chosen"}, found {CUTELUA_NVRTC = named}, named)
    end
    for _, wrong in ipairs {"own", home .. "/none", home .. "/own/none",
        "/etc"} do
      assert.equal(("NVRTC was not found: CUTELUA_NVRTC=%s is not the absolute "
        .. "path of a libnvrtc.so or of a folder with one [no-nvrtc]\nnil\n")
        :format(wrong), compiled {CUTELUA_NVRTC = wrong})
    end
    local text = support.write(home .. "/libnvrtc.so.13", "no library")
    assert.equal(("no NVRTC can be used: %s: the loader cannot open it "
      .. "[no-nvrtc]\nnil\n"):format(text), compiled {CUTELUA_NVRTC = text})
  end)
end)

describe("the choice of NVRTC", function()
  before_each(function() home = support.folder() end)
  after_each(function() support.remove(home) end)

  it("skips files that are no library or have a wrong version", function()
    nvrtcs.make(package "cuda_nvrtc", "12.99")
    nvrtcs.make(package "cu13", "13.97")
    support.write(package "cu13" .. "/libnvrtc.so.13", "no library")
    local said = found {CUTELUA_NVRTC = home .. "/.local"}
    assert.same({["12.99"] = "chosen", ["13.97"] = "the loader cannot open it"},
                said)
    -- The name of the builtins file says 13.96, but the library's own version
    -- is 12.1, so it is older than the other library.
    nvrtcs.make(package "cu13", "12.1", nil, "13.96")
    os.remove(package "cu13" .. "/libnvrtc-builtins.so.13.97")
    said = found {CUTELUA_NVRTC = home .. "/.local"}
    assert.same({["12.99"] = "chosen", ["12.1"] = "older"}, said)
  end)

  it("notices a package that is installed later", function()
    nvrtcs.make(package "cuda_nvrtc", "13.97")
    assert.equal("13.97 sm_90a\nfalse\n", compiled())
    assert.equal("13.97 sm_90a\ntrue\n", compiled())
    nvrtcs.make(package "cu13", "13.98")
    assert.equal("13.98 sm_90a\nfalse\n", compiled())
    -- Replaces the package's library by another version.
    os.execute("rm " .. package "cu13" .. "/*")
    nvrtcs.make(package "cu13", "13.99")
    assert.equal("13.99 sm_90a\nfalse\n", compiled())
    os.execute("rm -r " .. package "cu13")
    assert.equal("13.97 sm_90a\ntrue\n", compiled())
  end)

  it("is shown by --version", function()
    if cute.device "gpu" then return pending "needs a host without GPU" end
    local one = nvrtcs.make(package "cu13", "13.99")
    local two = nvrtcs.make(package "cuda_nvrtc", "12.9")
    local out, err = support.run({"--version"}, {env = environment()})
    assert.equal("", err)
    local number = out:match(("\nNVRTC 13.99: %s %%(the newest of (%%d) that "
      .. "were found; there is no driver%%)\n"):format(
      (one:gsub("%p", "%%%0"))))
    assert.is_true(tonumber(number) >= 2, out)
    assert.truthy(out:find(("\n  not used: NVRTC 12.9: %s (older)\n")
      :format(two), 1, true), out)
    out = support.run({"--version"}, {env = environment(driver "12010")})
    assert.truthy(out:find "\nNVRTC 12.9: ", out)
    assert.truthy(out:find(("  not used: NVRTC 13.99: %s (its code needs a "
      .. "driver for CUDA 13; this driver is for CUDA 12.1)\n"):format(one), 1,
      true), out)
    out = support.run({"--version"}, {env = {CUTELUA_NO_CUDA = "1"}})
    assert.truthy(out:find "\nno NVRTC: NVRTC was not found %(looked for ", out)
    out = support.run({"--version"},
      {env = environment {CUTELUA_NVRTC = two}})
    assert.truthy(out:find(("\nNVRTC 12.9: %s (CUTELUA_NVRTC names it)\n")
      :format(two), 1, true), out)
  end)
end)
-- SPDX-License-Identifier: MIT
