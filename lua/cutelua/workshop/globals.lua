--- Gives every run of a script fresh globals, although all runs share one Lua
-- state. When a script ends, its changes to Lua's libraries are undone, because
-- the workshop needs the libraries. The globals that the script added, and the
-- modules that it loaded from files, remain available in the prompt until the
-- next run.
local next, pcall, rawequal, rawset = next, pcall, rawequal, rawset
local require, type = require, type
local find, getmetatable, setmetatable = string.find, debug.getmetatable,
                                         debug.setmetatable
local sethook = debug.sethook

local globals = {}

local LIBRARIES = {_G, string, table, math, io, os, coroutine, utf8, debug,
                   package, package.loaded, getmetatable ""}

-- The state before the script ran: a list of {table, copy of the table,
-- metatable}.
local before

local function copy(t)
  local out = {}
  for k, v in next, t do out[k] = v end
  return out
end

--- Records the state of globals and libraries before a script runs. Does
-- nothing if the state is recorded already.
function globals.keep()
  if before then return end
  before = {}
  for i, t in next, LIBRARIES do
    before[i] = {t, copy(t), getmetatable(t)}
  end
end

--- Reports whether a global of this name existed before the script ran.
---@param name string
---@return boolean
function globals.had(name)
  return (before and before[1][2] or LIBRARIES[1])[name] ~= nil
end

--- Restores the globals and library functions that a script changed. Removes
-- debug hooks.
---@return table changed the values that the script assigned to existing
-- globals, by name
function globals.mend()
  local changed = {}
  sethook()
  for _, one in next, before or {} do
    local t = one[1]
    setmetatable(t, one[3])
    for k, v in next, one[2] do
      if not rawequal(t[k], v) then
        if t == LIBRARIES[1] then changed[k] = t[k] end
        rawset(t, k, v)
      end
    end
  end
  return changed
end

-- Returns the set of modules that are built into the program. These modules
-- stay loaded, because they do not hold values of a script.
local function ours()
  local set, ok, sys = {}, pcall(require, "cute.sys")
  for _, name in next, ok and sys.modules() or {} do set[name] = true end
  return set
end

--- Restores the recorded state. Also removes everything that a script added.
function globals.restore()
  globals.mend()
  local own
  for _, one in next, before or {} do
    local t, was = one[1], one[2]
    for k in next, copy(t) do
      if was[k] == nil then
        own = own or ours()
        if not (t == package.loaded and (own[k] or type(k) == "string"
            and find(k, "^cute%f[%.\0]"))) then rawset(t, k, nil) end
      end
    end
  end
  before = nil
end

return globals
-- SPDX-License-Identifier: MIT
