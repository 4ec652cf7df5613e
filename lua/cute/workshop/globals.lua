--- Fresh globals for every run of a Lua state that lives on: what a script
-- changed of Lua's libraries, and the modules that it required from files, are
-- as they were when the next one begins.
local globals = {}

local LIBRARIES = {_G, string, table, math, io, os, coroutine, utf8, debug,
                   package, package.loaded}

local before  -- {{table, copy, metatable}, ...}

local function copy(t)
  local out = {}
  for k, v in next, t do out[k] = v end
  return out
end

-- Modules that the program carries stay: they hold nothing of a script.
local function is_ours(name)
  local ok, sys = pcall(require, "cute.sys")
  for _, own in ipairs(ok and sys.modules() or {}) do
    if own == name then return true end
  end
  return type(name) == "string" and name:find "^cute%f[%.\0]" ~= nil
end

--- Notes how all is before a script runs.
function globals.keep()
  before = {}
  for i, t in ipairs(LIBRARIES) do
    before[i] = {t, copy(t), debug.getmetatable(t)}
  end
end

--- Puts back what was when it was noted.
function globals.restore()
  for _, one in ipairs(before or {}) do
    local t, was = one[1], one[2]
    debug.setmetatable(t, one[3])
    for k in next, copy(t) do
      if was[k] == nil and not (t == package.loaded and is_ours(k)) then
        rawset(t, k, nil)
      end
    end
    for k, v in next, was do rawset(t, k, v) end
  end
  before = nil
  debug.sethook()
end

return globals
