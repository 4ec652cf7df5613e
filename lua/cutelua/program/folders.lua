--- Returns the folders of a user, according to the XDG Base Directory
-- Specification. Each function returns an absolute path, or nil if there is no
-- home folder. No folder is created.
local folders = {}

local function of(base, below)
  if not base or base:sub(1, 1) ~= "/" then
    local home = os.getenv "HOME"
    if not home or home:sub(1, 1) ~= "/" then return nil end
    base = home .. below
  end
  return base .. "/cutelua"
end

--- Returns the folder for measurements that the user keeps.
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
