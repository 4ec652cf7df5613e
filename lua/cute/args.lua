--- The public functions of lua/cute: how many arguments each takes, and what
-- they are.
--
-- A module ends with the signatures of its functions:
--
--     args.public("testing.", testing, [[
--       assert_(cond, text?: string)
--       convert(src: tensor, dst: tensor)
--     ]])
--
-- A parameter that may be left out ends in `?`, one in `...` takes the rest;
-- types are Lua's and those of cute.core's typename, with `|` between them,
-- and `integer`. Every function of the table has to be there. Each is put
-- behind a check, and errors below it are told as its own (core/arglib.c).
local core = require "cute.core"

local args = {}

-- A call that is not the last keeps its caller on the stack, where errors
-- look for the name.
local function all(...) return ... end

--- f behind the check of its signature, "gpu.open(ordinal?: integer)", or
-- "State:clone()" with the metatable of its receiver.
---@param signature string
---@param f function
---@param class? table
---@return function
function args.guard(signature, f, class)
  local check = core.checker(signature, class)
  return core.name(function(...)
    check(...)
    return all(f(...))
  end, signature)
end

-- "name(...)" of a text, by name; in order.
local function signatures(text)
  local list = {}
  for name, rest in text:gmatch "([%w_]+)(%b())" do
    list[#list + 1] = name
    list[name] = name .. rest:gsub("%s+", " ")
  end
  return list
end

local function guard_all(prefix, t, text, class)
  local known = signatures(text)
  for name, f in pairs(t) do
    if type(f) == "function" and not name:find "^__" then
      local signature = known[name]
      if not signature then
        error(("no signature of %s%s"):format(prefix, name), 3)
      end
      if not core.signature(f) then
        t[name] = args.guard(prefix .. signature, f, class)
      end
    end
  end
  for _, name in ipairs(known) do
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
function args.public(prefix, module, text)
  return guard_all(prefix, module, text)
end

--- The same of the methods of a class: a metatable whose __index is itself.
-- Fields that its objects have not are an error too.
---@param name string "PipelineState"
---@param class table
---@param text string signatures, without the receiver
---@param fields? string names that may be absent
---@return table class
function args.class(name, class, text, fields)
  guard_all(name .. ":", class, text, class)
  return args.strict(name, class, fields)
end

--- Makes fields that a table has not an error.
---@param name string what it is
---@param t table
---@param fields? string names that may be absent
---@return table t
function args.strict(name, t, fields)
  local free = {}
  for field in (fields or ""):gmatch "[%w_]+" do free[field] = true end
  return setmetatable(t, {__index = function(_, key)
    if free[key] or type(key) ~= "string" or key:find "^__" then return end
    local known = {}
    for k, v in pairs(t) do
      if type(v) == "function" and not k:find "^__" then
        known[#known + 1] = k
      end
    end
    table.sort(known)
    local near = require "cute.cli".nearest(key, known)
    core.fail("unknown-name", ("a %s has no '%s'%s"):format(name, key,
      near and " (did you mean " .. near .. "?)" or ": it has "
      .. table.concat(known, " ")))
  end})
end

return args
