--- Reads folders of launches that libcutecapture recorded (see docs/ptx.md).
local core = require "cute.core"

local capture = {}

--- The version of the folders' format that this program reads.
capture.FORMAT = 1

local function fail(...) core.fail("bad-launch", string.format(...)) end

-- Returns the number of bytes of a file; nil if the file cannot be opened.
local function size_of(path)
  local f = io.open(path, "rb")
  if not f then return nil end
  local n = f:seek "end"
  f:close()
  return n
end

-- Raises an error if a file of the folder does not have the size that it had
-- when the folder was recorded.
local function check_files(folder, files)
  local names = {}
  for name in pairs(files) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    if name:find("/", 1, true) then
      fail("%s: LAUNCH.json names the file %s outside the folder", folder,
           core.show(name))
    end
    local n = size_of(folder .. "/" .. name)
    if not n and name == "module.ptx" then
      fail("%s has no module.ptx, the PTX of the recorded program: record the "
        .. "launch again", folder)
    elseif n ~= files[name] then
      fail("%s is cut short: %s has %s bytes, not %s", folder, name,
           n or "no", core.show(files[name]))
    end
  end
end

--- Reads a folder's LAUNCH.json, and checks the sizes of the folder's files.
---@param ptx string FOLDER/module.ptx
---@param path string FOLDER/LAUNCH.json
---@return table a LAUNCH
function capture.read(ptx, path)
  local folder = path:match "^(.*)/"
  if not size_of(path) then
    local one = size_of(folder .. "/1/LAUNCH.json") and folder .. "/1"
    fail("%s is a folder without LAUNCH.json: %s", folder, one
      and "it has a folder for each launch, such as " .. one
      or "name a script, or a folder that libcutecapture wrote")
  end
  local spec = require "cutelua.ptx.launch".read(path)
  if spec.capture ~= capture.FORMAT then
    fail("%s: LAUNCH.json has version %s of the format; this cutelua reads "
      .. "version %d", folder, spec.capture == nil and "no"
      or core.show(spec.capture), capture.FORMAT)
  end
  local files = type(spec.files) == "table" and spec.files or {}
  if not files["module.ptx"] and not size_of(ptx) then
    files["module.ptx"] = 0
  end
  check_files(folder, files)
  for _, list in ipairs {spec.memory or {}, spec.expect or {}} do
    for _, t in pairs(list) do
      if type(t) == "table" and type(t.npy) == "string" then
        t.npy = folder .. "/" .. t.npy
      end
    end
  end
  return spec
end

return capture
-- SPDX-License-Identifier: MIT
