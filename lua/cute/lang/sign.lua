--- The public functions of lua/cute: how many arguments each takes, and what
-- they are.
--
-- A module ends with the signatures of its functions:
--
--     sign.public("testing.", testing, [[
--       assert_(cond, text?: string)
--       convert(src: tensor, dst: tensor)
--     ]])
--
-- A parameter that may be left out ends in `?`, one in `...` takes the rest;
-- types are Lua's, those of cute.core's typename, classes (see sign.class) and
-- `integer`, with `|` between them. Every function of the table has to be
-- there. Each is put behind a check, and errors below it are told as its own
-- (core/bind/arglib.c).
local core = require "cute.core"

local sign = {}

-- A call that is not the last keeps its caller on the stack, where errors
-- look for the name.
local function all(...) return ... end

--- f behind the check of its signature, "gpu.open(ordinal?: integer)", or
-- "State:clone()" with the metatable of its receiver.
---@param signature string
---@param f function
---@param class? table
---@return function
function sign.guard(signature, f, class)
  local check = core.checker(signature, class)
  return core.name(function(...)
    check(...)
    return all(f(...))
  end, signature)
end

--- The signatures of a text: name, signature.
---@param text string
---@return fun(): string, string
function sign.signatures(text)
  local next_one = text:gmatch "([%w_]+)(%b())"
  return function()
    local name, rest = next_one()
    if name then return name, name .. rest:gsub("%s+", " ") end
  end
end

local function guard_all(prefix, t, text, class)
  local known = {}
  for name, signature in sign.signatures(text) do known[name] = signature end
  for name, f in pairs(t) do
    if type(f) == "function" and not name:find "^__" then
      local signature = known[name]
      if not (signature or core.signature(f)) then
        error(("no signature of %s%s"):format(prefix, name), 3)
      end
      if signature then
        t[name] = sign.guard(prefix .. signature, f, class)
      end
    end
  end
  for name in pairs(known) do
    if t[name] == nil then
      error(("no function %s%s"):format(prefix, name), 3)
    end
  end
  return t
end

--- Makes the functions of a module public: `prefix` is what their users write
-- in front of the name.
---@param prefix string "cute.arch."
---@param module table
---@param text string signatures
---@return table module
function sign.public(prefix, module, text)
  return guard_all(prefix, module, text)
end

--- The same of the methods of a class: a metatable whose __index is itself.
-- Fields that its objects have not are an error too.
---@param name string "PipelineState"
---@param class table
---@param text string signatures, without the receiver
---@param fields? string names that may be absent
---@return table class
function sign.class(name, class, text, fields)
  guard_all(name .. ":", class, text, class)
  return sign.strict(name, class, fields)
end

-- Is it lua/cute itself that reads a field of t? It looks for what may be
-- absent. Level 3 is the caller of a metatable's __index.
local function ours(t)
  local info = debug.getinfo(3, "Sf")
  if info and info.func == rawget(t, "__index") then
    info = debug.getinfo(4, "S")
  end
  return info and (info.what == "C" or core.own_source(info.source))
end

--- Makes fields that a table has not an error for those who are not lua/cute.
---@param name string what it is
---@param t table
---@param fields? string names that may be absent for all
---@return table t
function sign.strict(name, t, fields)
  local free = {}
  for field in (fields or ""):gmatch "[%w_]+" do free[field] = true end
  t.__name = name
  return setmetatable(t, {__index = function(_, key)
    if free[key] or type(key) ~= "string" or key:find "^__" or ours(t) then
      return
    end
    local known = {}
    for k, v in pairs(t) do
      if type(v) == "function" and not k:find "^__" then
        known[#known + 1] = k
      end
    end
    table.sort(known)
    local near = require "cute.program.cli".nearest(key, known)
    core.fail("unknown-name", ("a %s has no '%s'%s"):format(name, key,
      near and " (did you mean " .. near .. "?)" or known[1] and ": it has "
      .. table.concat(known, " ") or ""))
  end})
end

return sign
