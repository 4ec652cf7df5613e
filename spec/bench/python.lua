-- Measures the host's time for calls from Python, without a GPU: with a driver
-- that runs no kernels, and a library of tensors that takes no time.
-- CUTELUA_PYTHON names the Python; python3 if absent. The target is a call that
-- takes at most 6 us more than the same call in Lua.
local fake = require "spec.gpu.fake"
local measure = require "spec.measure"
local support = require "spec.support"

local library = measure.program:match "^(.*)/[^/]*$" .. "/libcutelua.so"
if not support.read(library) then
  print("Calls from Python not measured: there is no " .. library)
  return
end
fake.build "-O2"
local _, err, code = support.exec {os.getenv "CC" or "cc", "-O2", "-shared",
  "-fPIC", "-Icore", "-o", fake.folder .. "/tensors.so",
  "spec/bench/python_tensors.c"}
assert(code == 0, err)
local out, why, status = support.exec {"env", "CUTELUA_LIBRARY=" .. library,
  "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1", "CUTELUA_CACHE=0",
  "LD_LIBRARY_PATH=" .. fake.folder, os.getenv "CUTELUA_PYTHON" or "python3",
  "spec/bench/python.py", fake.folder}
fake.remove()
if status ~= 0 then
  print("Calls from Python not measured: " .. why)
  return
end
print "Calls from Python: host time in us, without the driver's work"
print(("%-28s %7s %7s %7s"):format("call", "Python", "in Lua", "beyond"))
for name, python, lua in out:gmatch "([^\t\n]+)\t(%S+)\t(%S+)\n" do
  local beyond = tonumber(python) - tonumber(lua)
  print(("%-28s %7s %7s %7.2f%s"):format(name, python, lua, beyond,
    beyond > 6 and "  target: 6" or ""))
end
-- SPDX-License-Identifier: MIT
