--- Notes on variables outside of a kernel that its function assigns, although
-- a local of the kernel was probably meant. Lua runs the function once, to
-- trace it, so such an assignment takes place once, on the host.
local bytecode = require "cute.lang.bytecode"
local core = require "cute.core"
local words = require "cute.lang.report"
local at = require "cute.lang.simreport".at

local strays = {}

-- Calls each(kind, n, key, table) for each variable that func may assign by
-- mistake. kind "local": upvalue n, a number that func also reads. kind
-- "global": the field `key` of the table, which is upvalue n, _ENV.
local function each_stray(func, each)
  for n, use in pairs(bytecode.upvalues(func) or {}) do
    local name, value = debug.getupvalue(func, n)
    if use.set and use.whole and math.type(value) then
      each("local", n, value)
    elseif name == "_ENV" and type(value) == "table" then
      for key, only_read in pairs(use.keys) do
        if not only_read and rawget(value, key) == nil then
          each("global", n, key, value)
        end
      end
    end
  end
end

local function tell(kernel, func, n, key, text)
  local line = bytecode.assigned(func, n, key)
  local info = debug.getinfo(func, "S")
  words.note(core.visible(("kernel %s: %s: %s"):format(kernel,
    at(info.source, line or info.linedefined), text)))
end

-- Reports a local of the script that the trace changed.
local function tell_local(kernel, func, n, before)
  local name, now = debug.getupvalue(func, n)
  local traced = core.typename(now) == "value"
  if not traced and (math.type(now) == nil or now == before) then return end
  if name == "(no name)" then return end
  -- The text has no numbers, so that it is written once.
  tell(kernel, func, n, nil, (traced
    and "the kernel assigns a traced value to '%s', a local of the script, "
      .. "where no later code can use it; declare the local in the kernel"
    or "'%s' is a local of the script: the kernel changed it once, on the "
      .. "host, when it was traced, not in each thread or launch; declare it "
      .. "in the kernel, or count in a tensor by cute.arch.atomic_add")
    :format(name))
end

-- Reports a global that the kernel makes. Tables and functions may be meant to
-- be shared, such as a table of results. The value may be nil again, because
-- loops restore what they change.
local function tell_global(kernel, func, n, key, env)
  local kind = type(rawget(env, key))
  if kind == "table" or kind == "function" or kind == "string" then return end
  tell(kernel, func, n, key, ("the kernel assigns the global '%s', which it "
    .. "shares with the script and all kernels; write `local %s = ...`")
    :format(key, key))
end

--- Looks at the variables outside of a kernel that its function assigns, before
-- the function is traced. Returns a function that tells of mistakes after the
-- trace, or nil if none is possible.
---@param kernel string name of the kernel
---@param func function
---@return fun()?
function strays.strays(kernel, func)
  local found = {}
  each_stray(func, function(...) found[#found + 1] = {...} end)
  if not found[1] then return nil end
  return function()
    for _, s in ipairs(found) do
      local kind, n, key, env = table.unpack(s)
      if kind == "local" then
        tell_local(kernel, func, n, key)
      else
        tell_global(kernel, func, n, key, env)
      end
    end
  end
end

return strays
-- SPDX-License-Identifier: MIT
