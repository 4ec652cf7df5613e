--- The folders of one user, after the XDG Base Directory Specification:
-- absolute paths, or nil where there is no home. No folder is created.
local folders = {}

local function of(base, below)
  if not base or base:sub(1, 1) ~= "/" then
    local home = os.getenv "HOME"
    if not home or home:sub(1, 1) ~= "/" then return nil end
    base = home .. below
  end
  return base .. "/cutelua"
end

--- Returns the folder for measurements to keep.
---@return string?
function folders.data()
  return of(os.getenv "XDG_DATA_HOME", "/.local/share")
end

--- Returns the folder for state that the program keeps between runs.
---@return string?
function folders.state()
  return of(os.getenv "XDG_STATE_HOME", "/.local/state")
end

return folders
-- SPDX-License-Identifier: MIT
