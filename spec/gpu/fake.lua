-- Loads a driver that records its calls (spec/gpu/fakecuda.c), for specs
-- without a GPU.
local support = require "spec.support"

local fake = {}
local cc = os.getenv "CC" or "cc"

fake.there = support.read "spec/gpu/fakecuda.c" and
  select(3, support.exec {cc, "--version"}) == 0

-- Code that precedes the code passed to `run`.
fake.HEAD = [[
  local core = require "cute.core"
  local gpu = require "cute.gpu"
  local dev = assert(gpu.open())
  local cubin = ("x"):rep(64)
  local function message(f, ...)
    local _, text = pcall(f, ...)
    return (text:gsub("^.-:%d+: ", ""))
  end
]]

--- Builds the fake driver. `flag` is a compiler flag.
function fake.build(flag)
  fake.folder = support.folder()
  local _, err, code = support.exec {
    cc, "-shared", "-fPIC", "-Icore", type(flag) == "string" and flag or "-g",
    "-o", fake.folder .. "/libcuda.so.1", "spec/gpu/fakecuda.c"}
  assert(code == 0, err)
end

function fake.remove() support.remove(fake.folder) end

--- Runs Lua in a process with the fake driver; returns its output and errors.
-- `lost` is the value of FAKE_LOST; `more` has further environment variables.
function fake.run(code, lost, more)
  code = fake.HEAD .. code
  local env = {LD_LIBRARY_PATH = fake.folder, FAKE_LOST = lost,
               CUTELUA_NO_CUDA = "0"}
  for name, value in pairs(more or {}) do env[name] = value end
  return support.run_lua({"-e", code}, env)
end

return fake
-- SPDX-License-Identifier: MIT
