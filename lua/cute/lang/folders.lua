--- The folders of one user, by XDG's base directories: absolute, or nil where
-- there is no home. Nothing is made.
local folders = {}

local function of(base, below)
  if not base or base:sub(1, 1) ~= "/" then
    local home = os.getenv "HOME"
    if not home or home:sub(1, 1) ~= "/" then return nil end
    base = home .. below
  end
  return base .. "/cutelua"
end

--- What was measured here and is to be kept.
---@return string?
function folders.data()
  return of(os.getenv "XDG_DATA_HOME", "/.local/share")
end

--- What the program remembers from one run to the next.
---@return string?
function folders.state()
  return of(os.getenv "XDG_STATE_HOME", "/.local/state")
end

return folders
