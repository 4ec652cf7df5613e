--- Sets the limits of a worker of `cutelua mcp`, and the globals of its script.
--
-- A script gets globals without io, os, debug and package. It may require only
-- modules of cute, the library of kernels, and the harness of the lessons. If a
-- script still reaches a function that opens files, the operating system
-- rejects the call: the process's limit allows no further open files, sockets
-- and pipes.
local core = require "cute.core"
local learn = require "cutelua.learn"
local sys = require "cute.sys"

local guard = {}

local load, require = load, require

-- Globals of Lua that scripts do not get.
local HIDDEN = {io = true, os = true, debug = true, package = true,
                dofile = true, loadfile = true, load = true, require = true,
                _G = true}
-- Functions of os that change files, or run programs, without opening a file in
-- this process.
local REMOVED = {"execute", "remove", "rename", "tmpname"}

-- Modules of cute that scripts must not require.
local INNER = {core = true, lang = true, meta = true, sys = true}

local function may_require(name)
  local part = name:match "^cute%.([^.]+)"
  return name == "cute" or name:find "^kernels%."
    or name:find "^cutelua%.bench%." or part and not INNER[part]
end

-- Returns a copy of a library, so that a script cannot change the library
-- itself.
local function copied(v)
  if type(v) ~= "table" then return v end
  local out = {}
  for name, f in pairs(v) do out[name] = f end
  return out
end

-- Returns the globals of a script.
local function globals_of()
  local env = {}
  for k, v in pairs(_G) do
    if not HIDDEN[k] then env[k] = k == "arg" and v or copied(v) end
  end
  env._G = env
  function env.require(name)
    if type(name) == "string" and not may_require(name) then
      core.fail("bad-argument", ("require: scripts of cutelua mcp may load "
        .. "modules of cute and kernels, not '%s'; cutelua mcp --allow io "
        .. "lifts this limit"):format(core.visible(name)))
    end
    return require(name)
  end
  function env.load(chunk, name, _, own)
    return load(chunk, name, "t", own or env)
  end
  return setmetatable(env, {__index = function(_, k)
    if k ~= "io" and k ~= "os" then return nil end
    core.fail("bad-argument", ("scripts of cutelua mcp have no '%s'; cutelua "
      .. "mcp --allow io lifts this limit"):format(k))
  end})
end

local function limit(memory, files)
  local ok, why = sys.limit(memory, files)
  if not ok then error(("the limits cannot be set: %s [io]"):format(why), 0) end
end

--- Limits the memory of this process.
---@param memory integer bytes
function guard.memory(memory) limit(memory, true) end

--- Returns a function that prepares a script's main function f. Unless
-- `allowed` is true, it limits memory, open files and globals of the script.
---@param memory integer bytes
---@param allowed boolean
---@return fun(f: function): function
function guard.script(memory, allowed)
  return function(f)
    if allowed then return f end
    limit(memory, false)
    for _, name in ipairs(REMOVED) do rawset(os, name, nil) end
    debug.setupvalue(f, 1, globals_of())
    return f
  end
end

--- Makes code of a learner use the globals that guarded scripts get.
function guard.learner()
  for _, name in ipairs(REMOVED) do rawset(os, name, nil) end
  learn.globals = globals_of()
end

return guard
-- SPDX-License-Identifier: MIT
