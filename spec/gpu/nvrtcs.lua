-- Libraries that pretend to be NVRTC (spec/gpu/fakenvrtc.c), for specs of
-- caches and of the choice among several NVRTCs.
local support = require "spec.support"

local nvrtcs = {}
local cc = os.getenv "CC" or "cc"

nvrtcs.there = support.read "spec/gpu/fakenvrtc.c" and
  select(3, support.exec {cc, "--version"}) == 0

-- Folder of each library that was built, by version and targets.
local built = {}

--- Makes folder/libnvrtc.so.MAJOR of a version such as "13.9", and its builtins
-- library, whose name contains the version.
---@param folder string created with its parents
---@param version string
---@param archs? string the targets that the library knows
---@param told? string the version in the names of both libraries, if it
-- differs
---@return string path
function nvrtcs.make(folder, version, archs, told)
  archs = archs or "75,80,86,89,90,100,120"
  local key = version .. " " .. archs
  if not built[key] then
    local dir = support.folder()
    local _, err, code = support.exec {cc, "-shared", "-fPIC", "-Icore", "-g",
      "-DVERSION=" .. version:gsub("%.", ","), "-DARCHS=" .. archs,
      "-o", dir .. "/lib.so", "spec/gpu/fakenvrtc.c"}
    assert(code == 0, err)
    built[key] = dir
  end
  local path = ("%s/libnvrtc.so.%s"):format(folder,
    (told or version):match "^%d+")
  support.exec {"mkdir", "-p", folder}
  support.exec {"cp", built[key] .. "/lib.so", path}
  support.write(("%s/libnvrtc-builtins.so.%s"):format(folder, told or version),
    "")
  return path
end

--- Removes the folders of libraries that were built.
function nvrtcs.remove()
  for _, dir in pairs(built) do support.remove(dir) end
  built = {}
end

return nvrtcs
-- SPDX-License-Identifier: MIT
