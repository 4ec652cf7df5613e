-- Tests records of the properties of GPUs (core/gpu/known.c) with a fake driver
-- whose cuInit takes a while. Each process prints "init" when cuInit returns.
local fake = require "spec.gpu.fake"
local support = require "spec.support"

local INIT = "150"  -- milliseconds of cuInit, in which a process prints a line

-- Prints the GPU's properties, then waits for the driver.
local LOOK = [[
  local info = dev:info()
  io.stderr:write(info.name, " ", info.sms, "\n")
  if not os.getenv "FAKE_FAIL" then dev:begin() end
  io.stderr:write("begun\n")
  local ok, why = pcall(dev.sync, dev)
  io.stderr:write(ok and "ready" or why, "\n")
]]

describe("a record of a GPU", function()
  if not fake.there then return pending "needs a C compiler" end
  local cache
  setup(function() fake.build() end)
  teardown(function() fake.remove() end)
  before_each(function() cache = support.folder() end)
  after_each(function() support.remove(cache) end)

  -- Runs LOOK in a process. Returns the lines of its errors.
  local function look(env)
    local all = {XDG_CACHE_HOME = cache, FAKE_INIT = INIT}
    for name, value in pairs(env or {}) do all[name] = value end
    local _, err = fake.run(LOOK, nil, all)
    return (err:gsub("^cutelua: ", ""))
  end

  local FIRST = "init\nFake 0\nbegun\nready\n"
  local LATER = "Fake 0\nbegun\ninit\nready\n"

  it("lets the next process continue while the driver starts", function()
    assert.equal(FIRST, look())
    assert.equal(LATER, look())
    -- One process asks for the properties alone.
    local out, err = fake.run("print(dev:info().sms)", nil,
                              {XDG_CACHE_HOME = cache, FAKE_INIT = INIT})
    assert.equal("0\n", out)
    assert.equal("", err)
  end)

  it("is not used if another GPU may be selected", function()
    look()
    for _, name in ipairs {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                           "NVIDIA_VISIBLE_DEVICES"} do
      for _, value in ipairs {"1", ""} do
        assert.equal(FIRST, look {[name] = value})
        assert.equal(LATER, look {[name] = value})
      end
    end
    assert.equal(FIRST, look {FAKE_CUDA = "12090"})
  end)

  it("is not used if it is damaged", function()
    look()
    local path = cache .. "/cutelua/gpu-0"
    local text = support.read(path)
    for _, bad in ipairs {"", "x", text:sub(1, 30), "1" .. text,
                          ("9"):rep(5000)} do
      support.write(path, bad)
      assert.equal(FIRST, look())
      assert.equal(text, support.read(path))
    end
  end)

  it("is removed if the GPU is another one, or gone", function()
    local MIB = 1 << 20
    look {FAKE_MEMORY = tostring(8 * MIB)}
    local err = look {FAKE_MEMORY = tostring(6 * MIB)}
    assert.matches("begun\ninit\n.*GPU 0 is a Fake of 0 multiprocessors "
      .. "and 6 MiB, but an earlier process found a Fake of 0 "
      .. "multiprocessors and 8 MiB: run the program again %[driver", err)
    assert.equal(FIRST, look {FAKE_MEMORY = tostring(6 * MIB)})
    err = look {FAKE_FAIL = "cuInit 1", FAKE_MEMORY = tostring(6 * MIB)}
    assert.matches("^Fake 0\nbegun\ninit\n.*cuInit: CUDA_ERROR_OTHER", err)
    assert.equal(FIRST, look {FAKE_MEMORY = tostring(6 * MIB)})
  end)

  it("is removed with the cache", function()
    look()
    support.exec({support.program, "cache", "clear"},
                 {env = {XDG_CACHE_HOME = cache}})
    assert.is_nil(support.read(cache .. "/cutelua/gpu-0"))
    assert.equal(FIRST, look())
  end)

  it("is not needed", function()
    assert.equal(FIRST, look {XDG_CACHE_HOME = "/proc/none"})
    assert.equal(FIRST, look {XDG_CACHE_HOME = "/proc/none"})
  end)
end)
-- SPDX-License-Identifier: MIT
