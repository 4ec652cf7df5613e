--- The globals of a candidate, and a record of its forbidden attempts.
--
-- A candidate gets views of cute's modules that it cannot change. It gets no
-- function that opens files, reads a clock, or makes a stream. Each attempt to
-- use such a function is recorded under the name of the cheat that it would
-- serve, even if the candidate catches the error.
local core = require "cute.core"

local guard = {}

local PATCH, STREAM = "patched timers", "unjoined streams"
local COPY, HELD = "output copied from the reference",
  "reading held-back data"
local EXPECTED = "writing the expected buffer"

-- Globals of Lua that a candidate does not get, each with the cheat that it
-- would serve.
local GLOBALS = {os = PATCH, io = HELD, debug = HELD, package = HELD,
  dofile = HELD, loadfile = HELD, load = HELD, arg = HELD}

-- Functions and modules of cute that a candidate does not get, each with the
-- cheat that it would serve.
local FIELDS = {}
for cheat, names in pairs {
  [STREAM] = "stream external_stream with_stream event graph",
  [PATCH] = "gpu testing",
  [COPY] = "gemm_reference gemm_check ops.reference",
  [HELD] = "npy npz safetensors gguf from_dlpack python triton dsl bundle core "
    .. "sys embedding jit lang",
} do
  for name in names:gmatch "%S+" do FIELDS["cute." .. name] = cheat end
end

-- Globals of Lua that a candidate gets.
local PLAIN = {}
for name in ([[assert error ipairs next pairs pcall print rawequal rawget rawlen
    rawset select tonumber tostring type _VERSION]]):gmatch "%S+" do
  PLAIN[name] = true
end
local LIBRARIES = {"string", "table", "math", "utf8", "coroutine"}

local require, setmetatable, type = require, setmetatable, type
local raw_meta = getmetatable

local Guard = {}
Guard.__index = Guard

--- Returns a guard without recorded attempts.
---@return table
function guard.new()
  return setmetatable({attempts = {}, views = {}, metas = {}}, Guard)
end

--- Records a forbidden attempt, and raises an error.
---@param cheat string
---@param text string what the candidate did
function Guard:refuse(cheat, text)
  if #self.attempts < 20 then
    self.attempts[#self.attempts + 1] = {cheat = cheat, text = text}
  end
  core.fail("bad-argument", ("a candidate %s"):format(text))
end

-- Reports whether a value is a module or a table of functions, but not an
-- object.
local function is_module(v)
  if type(v) ~= "table" then return false end
  local meta = raw_meta(v)
  return not meta or rawget(meta, "lazy") ~= nil
end

-- Returns a view of a module: its fields can be read but not changed.
local function view(self, module, name)
  local known = self.views[module]
  if known then return known end
  local out = setmetatable({}, {
    __index = function(_, k)
      local whole = name .. "." .. tostring(k)
      if FIELDS[whole] then
        self:refuse(FIELDS[whole], "may not use " .. whole)
      end
      local v = module[k]
      if is_module(v) and next(v) ~= nil then return view(self, v, whole) end
      return v
    end,
    __newindex = function(_, k)
      self:refuse(PATCH, ("may not change %s.%s"):format(name, tostring(k)))
    end,
    __metatable = false})
  self.views[module] = out
  return out
end

-- Reports whether a candidate may load a module.
local function may_load(name)
  return name == "cute" or name:find "^kernels%."
    or name:find "^cute%.[%a_]+$" and not FIELDS[name]
end

local function loader(self)
  return function(name)
    if type(name) ~= "string" or not may_load(name) then
      local text = core.show(name)
      local cheat = text:find "reference" or text:find "bench"
        or text:find "oracle" or text:find "testing"
      self:refuse(cheat and COPY or HELD, ("may not load %s"):format(text))
    end
    local module = require(name)
    return is_module(module) and view(self, module, name) or module
  end
end

-- Replaces setmetatable and getmetatable by functions that accept only the
-- candidate's own tables.
local function metatables(self, env)
  function env.setmetatable(t, meta)
    if raw_meta(t) and not self.metas[t] then
      self:refuse(PATCH, "may not change metatables of cute")
    end
    self.metas[t] = true
    return setmetatable(t, meta)
  end
  function env.getmetatable(t)
    return type(t) == "table" and self.metas[t] and raw_meta(t) or nil
  end
end

local function copied(t)
  local out = {}
  for k, v in pairs(t) do out[k] = v end
  return out
end

--- Returns the globals of a candidate.
---@return table
function Guard:globals()
  local env = {}
  setmetatable(self.metas, {__mode = "k"})
  for name in pairs(PLAIN) do env[name] = _G[name] end
  for _, library in ipairs(LIBRARIES) do
    env[library] = copied(_G[library])
  end
  env.string.dump = nil
  env.require, env._G = loader(self), env
  metatables(self, env)
  return setmetatable(env, {__index = function(_, k)
    if GLOBALS[k] then
      self:refuse(GLOBALS[k], ("has no '%s'"):format(k))
    end
  end})
end

--- Returns the table that a candidate's function gets: the task's arguments and
-- sizes by name.
---@param fields table
---@return table
function Guard:arguments(fields)
  return setmetatable({}, {
    __index = function(_, k)
      local v = fields[k]
      if v == nil then
        self:refuse(EXPECTED, ("gets no '%s': the task has no such argument or "
          .. "size"):format(tostring(k)))
      end
      return v
    end,
    __newindex = function(_, k)
      self:refuse(EXPECTED, ("may not replace the argument '%s'"):format(
        tostring(k)))
    end,
    __pairs = function() return next, copied(fields) end,
    __metatable = false})
end

return guard
-- SPDX-License-Identifier: MIT
