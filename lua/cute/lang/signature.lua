--- Signatures of the public functions of lua/cute: the number and the types of
-- each function's arguments. This module also raises the errors for names that
-- do not exist.
--
-- A module ends with the signatures of its functions:
--
--     sign.public("testing.", testing, [[
--       assert_(cond, text?: string)
--       convert(src: tensor, dst: tensor)
--     ]])
--
-- An optional parameter ends in `?`, and one that ends in `...` takes the rest.
-- A type is a Lua type, a name that cute.core's typename returns, a class (see
-- sign.class) or `integer`; `|` separates alternatives. Every function of the
-- table needs a signature. Each function is wrapped in a check, and errors
-- inside it are reported as errors of the call (core/bind/arglib.c).
local core = require "cute.core"
local lua_errors = require "cute.lang.lua_errors"
local xpcall = xpcall

local sign = {}

-- Returns a function's results if ok is true, or raises the error that
-- lua_errors.handler made. The caller writes all(f(...)) instead of a tail call
-- of f, so that the caller stays on the stack, where errors look up its name.
local function all(ok, ...)
  if not ok then error((...), 0) end
  return ...
end

-- The metatable of all functions, unless a script has set another one. Its
-- field `members` maps a function to the fields of that function. For example,
-- cute.struct has the field MemRange. There is only one such table, even if
-- this file is loaded twice.
local indexed = debug.getmetatable(print) or {members = setmetatable({},
                                                {__mode = "k"})}
local members = indexed.members or {}

--- Gives a function fields that users can read. If sign.public wraps the
-- function, the wrapper has the fields, too.
---@param f function
---@param fields table<string, any>
---@return function f
function sign.with(f, fields)
  members[f] = fields
  return f
end

-- The public functions that call a user's function, such as a loop body. The
-- user's function may call the same public functions again.
local nesting = setmetatable({}, {__mode = "k"})

--- Marks f as a function that calls a user's function. Its calls may
-- nest, so they use no pcall: each level of C calls takes part of a small
-- stack.
---@param f function
---@return function f
function sign.nests(f)
  nesting[f] = true
  return f
end

--- Returns f wrapped in a check of its arguments. The signature is like
-- "gpu.open(ordinal?: integer)" or, for a method, "State:clone()". For a
-- method, `class` is the metatable of the receiver.
---@param signature string
---@param f function
---@param class? table
---@return function
function sign.guard(signature, f, class)
  local check = core.checker(signature, class)
  local guarded = core.name(nesting[f] and function(...)
    check(...)
    return all(true, f(...))
  end or function(...)
    check(...)
    return all(xpcall(f, lua_errors.handler, ...))
  end, signature)
  members[guarded] = members[f]
  return guarded
end

--- Iterates over the signatures in a text. Each step returns the name and the
-- signature of a function.
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

--- Makes the functions of a module public. `prefix` is the text that users
-- write before the function's name. Reading a field that does not exist raises
-- an error.
---@param prefix string "cute.arch."
---@param module table
---@param text string signatures
---@return table module
function sign.public(prefix, module, text)
  return sign.module(prefix:sub(1, -2), guard_all(prefix, module, text))
end

--- Makes the methods of a class public. The class is a metatable that is its
-- own __index. Reading a field that its objects do not have raises an error,
-- too.
---@param name string "PipelineState"
---@param class table
---@param text string signatures, without the receiver
---@param fields? string names that may be absent
---@return table class
function sign.class(name, class, text, fields)
  guard_all(name .. ":", class, text, class)
  return sign.strict(name, class, fields)
end

---------------------------------------------------------------------------
-- Names that the package cutelua adds
---------------------------------------------------------------------------

-- The tables to which the package cutelua adds names. The value is the prefix
-- of these names in the package's table (lua/cutelua/init.lua), which is loaded
-- when a name is missing.
local OPEN = {cute = "cute.", ["cute.utils"] = "cute.utils.",
  ["cute.ops"] = "ops.",
  ["cute.gpu"] = "gpu.", gpu = "gpu.", ["cute.jit"] = "jit.", jit = "jit.",
  call = "call:", prepared = "prepared:", report = "report:",
  workshop = "workshop."}
local ABSENT = "\n  the workshop is not installed: Lua module cutelua"
-- The table of package cutelua, after it was loaded; false if the package is
-- not installed.
local workshop

--- Returns descriptions of the names that the package cutelua adds to a
-- namespace or class.
---@param full string the name under which users know the table: "cute", "call"
---@return table<string, table> rows {module =, signature =, whole =} by name
function sign.added(full)
  if not OPEN[full] then return {} end
  if workshop == nil then
    local ok, found = pcall(require, "cutelua")
    if not ok and not found:find("^module 'cutelua' not found") then
      error(found, 0)
    end
    workshop = ok and found
  end
  return workshop and workshop[OPEN[full]] or {}
end

-- Returns the value that the package cutelua provides for field `name` of t,
-- and stores it in t. Returns nil if cutelua has no such name.
local function addition(full, t, name)
  local row = sign.added(full)[name]
  if not row then return end
  local v = require(row.module)
  if row.whole then v = sign.namespace(v, row.whole) else v = v[name] end
  if row.signature and not core.signature(v) then
    v = sign.guard(OPEN[full] .. row.signature, v,
                   OPEN[full]:find ":$" and t or nil)
  end
  rawset(t, name, v)
  return v
end

local function absent(full)
  return OPEN[full] and workshop == false and ABSENT or ""
end

--- Adds to table t all names that the package cutelua has for it. t is a class
-- or a namespace.
---@param full string
---@param t table
function sign.add_all(full, t)
  for name in pairs(sign.added(full)) do
    if rawget(t, name) == nil then addition(full, t, name) end
  end
end

--- Makes a table to which the package cutelua can add functions. Other fields
-- may be absent.
---@param full string
---@param t table
---@param names string names of the functions
---@return table t
function sign.extensible(full, t, names)
  local open = {}
  for name in names:gmatch "%S+" do open[name] = true end
  return setmetatable(t, {__index = function(_, name)
    local v = open[name] and addition(full, t, name)
    if v or not open[name] then return v or nil end
    core.fail("unknown-name", ("%s has no '%s'%s"):format(full, name, ABSENT))
  end})
end

--- Functions of the package cutelua that the language itself calls, such as
-- those that explain errors. A field is nil if the package is not installed.
sign.workshop = setmetatable({}, {__index = function(t, name)
  return addition("workshop", t, name)
end})

-- Makes the tracer call sign.workshop.compared_type when a script compares an
-- element type with a string.
core.vm_advise(function()
  local check = sign.workshop.compared_type
  if check then check() end
end)

---------------------------------------------------------------------------
-- Missing names
---------------------------------------------------------------------------

--- Returns the name in a list that is most similar to `name`, or nil if none is
-- similar.
---@type fun(name: string, list: string[]): string?
sign.nearest = core.nearest

--- Returns the error message for an unknown option, or for an unknown name of
-- another `kind`. `of`, if given, comes first in the message; it is the name of
-- the function or object that has the option.
---@param kind string
---@param name any
---@param known table its keys are the existing names
---@param of? string
---@return string
function sign.no_such(kind, name, known, of)
  local names = {}
  for n in pairs(known) do names[#names + 1] = n end
  table.sort(names)
  local explain = kind == "option" and sign.workshop.option
  local advice = explain and explain(name, known)
  if advice then
    return ("%sno option '%s': %s"):format(of and of .. ": " or "", name,
      advice)
  end
  local near = type(name) == "string" and sign.nearest(name, names)
  return ("%sno %s %s%s: there %s %s"):format(
    of and of .. ": " or "", kind,
    type(name) == "string" and "'" .. name .. "'" or core.show(name),
    near and " (did you mean " .. near .. "?)" or "",
    #names > 1 and "are" or "is", table.concat(names, " "))
end

--- Raises the error for an unknown option from within lua/cute. The error's
-- position is the script's call.
function sign.unknown(kind, name, known, of)
  core.fail("unknown-name", sign.no_such(kind, name, known, of))
end

--- Raises an error unless `value` is one of the words in a list.
---@param what string the function
---@param kind string "kind", "rounding"
---@param value any
---@param words string "idx up down bfly"
function sign.one_of(what, kind, value, words)
  for word in words:gmatch "%S+" do
    if word == value then return end
  end
  core.fail("unknown-name", ("%s: no %s '%s' (%s)"):format(what, kind,
    tostring(value), (words:gsub("%s+", ", "))))
end

--- Returns t if it is a list. Raises an error for entries after a gap and for
-- named keys, which would be ignored.
---@param what string
---@param t table
---@return table t
function sign.list(what, t)
  local n = 0
  while rawget(t, n + 1) ~= nil do n = n + 1 end
  for k in next, t, n > 0 and n or nil do
    if math.type(k) == "integer" and k > n then
      core.fail("bad-argument", ("%s has an entry [%d] but no entry [%d]: a "
        .. "list must not have gaps"):format(what, k, n + 1))
    elseif math.type(k) ~= "integer" or k < 1 then
      core.fail("bad-argument", ("%s is a list, but has the key %s"):format(
        what, core.show(k)))
    end
  end
  return t
end

-- Raises the error for reading a field of a function, as in cute.size.x, if the
-- function has no such field. (Lua's own message does not name the function.)
local function no_member(f, key)
  local of = members[f] and members[f][key]
  if of ~= nil then return of end
  local explain = sign.workshop.no_field
  core.fail("unknown-name", explain and explain(f, key, members[f] or {})
    or "a function has no field " .. core.show(key))
end

if indexed.members then
  indexed.__index = no_member
  debug.setmetatable(print, indexed)
end

-- Returns advice on a name of the Python DSL, and whether a later version may
-- have this name. Returns nil for other names (see cutelua.text.mistakes).
local function python_name(name)
  local explain = sign.workshop.python_name
  if explain then return explain(name) end
end

-- Returns the source of the function that reads a missing field of t, if this
-- function may read absent fields. C functions and functions of lua/cute and
-- lua/cutelua may. For other functions, returns false or nil. Level 3 is the
-- caller of a metatable's __index.
local function ours(t)
  local info = debug.getinfo(3, "Sf")
  if info and info.func == rawget(t, "__index") then
    info = debug.getinfo(4, "S")
  end
  return info and (info.what == "C" or core.own_source(info.source))
    and info.source
end

--- Set of the metatables of all classes of lua/cute. No script changes them.
sign.classes = setmetatable({}, {__mode = "k"})

--- Makes reading a missing field of a table an error, except in code of
-- lua/cute. Use it for tables whose class is not documented.
---@param name string the name that errors use for the table
---@param t table
---@param fields? string names that any reader may find absent
---@return table t
function sign.closed(name, t, fields)
  local free = {}
  for field in (fields or ""):gmatch "[%w_]+" do free[field] = true end
  t.__name = name
  return setmetatable(t, {__index = function(_, key)
    if free[key] or type(key) ~= "string" or key:find "^__" then return end
    local reader = ours(t)
    if reader and not reader:find "cutelua" then return end
    local added = addition(name, t, key)
    if added ~= nil or reader then return added end
    sign.add_all(name, t)
    local known = {}
    for k, v in pairs(t) do
      if type(v) == "function" and not k:find "^__" then
        known[#known + 1] = k
      end
    end
    table.sort(known)
    local near, python, later = sign.nearest(key, known), python_name(key)
    core.fail("unknown-name", ("%s %s has no '%s'%s"):format(
      name:find "^[aeio]" and "an" or "a", name, key,
      not later and python or near and " (did you mean " .. near .. "?)"
      or known[1] and ": it has " .. table.concat(known, " ") or "")
      .. absent(name))
  end})
end

--- Makes the methods of a class report calls with a dot instead of a colon,
-- such as `at.col(bias)`.
---@param name string the users' name of an object: "at"
---@param class table metatable and methods of the objects
---@return table class
function sign.colons(name, class)
  for key, f in pairs(class) do
    if type(f) == "function" and not key:find "^__" then
      class[key] = function(self, ...)
        if getmetatable(self) ~= class then
          core.fail("bad-argument", ("'%s:%s' is a method, but was called "
            .. "with a dot, on %s\n  write %s:%s(...) with a colon"):format(
            name, key, core.show(self), name, key))
        end
        return f(self, ...)
      end
    end
  end
  return class
end

--- Makes reading a missing field of a documented class an error, like
-- sign.closed.
function sign.strict(name, t, fields)
  sign.classes[t] = true
  return sign.closed(name, t, fields)
end

-- Returns the name of another namespace that contains the name `name`, or nil.
local function elsewhere(name)
  local best
  for t, full in pairs(sign.namespaces) do
    local functions = sign.lazy(t)
    if full:find "^cute" and (rawget(t, name) ~= nil or functions[name]) then
      local found = full .. "." .. name
      if not best or #found < #best or #found == #best and found < best then
        best = found
      end
    end
  end
  return best
end

local function advice(name, names)
  local python, later = python_name(name)
  if python and not later then return python end
  local found = #name > 2 and elsewhere(name)
  if found then return "\n  write " .. found end
  local near = sign.nearest(name, names)
  near = near and "\n  nearest: " .. near or ""
  if not later and near == "" and #names <= 12 then
    return "\n  there are: " .. table.concat(names, " ")
  end
  return (python or "") .. near
end

-- Returns a function for __index. It raises an error that suggests the most
-- similar name of t. `load` may find further names.
local function no_name(t, full, load, more)
  return function(_, name)
    local v = load and load(name)
    if v == nil then v = addition(full, t, name) end
    if v ~= nil then
      t[name] = v
      return v
    end
    local names = {}
    for _, from in ipairs {t, sign.added(full), table.unpack(more or {})} do
      for known in pairs(from) do names[#names + 1] = tostring(known) end
    end
    table.sort(names)
    core.fail("unknown-name", ("%s has no '%s'%s"):format(full, tostring(name),
      advice(tostring(name), names)) .. absent(full))
  end
end

-- Returns a function for __call that raises the error for a call of the
-- namespace itself, as in cute.jit(f).
local function called(full)
  return function()
    local explain = sign.workshop.called_namespace
    core.fail("bad-argument", explain and explain(full)
      or full .. " is not a function")
  end
end

--- The names under which users reach namespaces. For example, the table of
-- cute.arch has the name "cute.arch".
sign.namespaces = setmetatable({}, {__mode = "k"})

--- Makes t a namespace that users reach through cute, such as cute.arch.
-- Reading a missing field raises an error with the most similar name.
---@param t table
---@param full string as users write it: "cute.arch"
---@param load? fun(name: string): any makes a field on first use
---@param more? table[] two tables whose keys are names that `load` knows:
-- functions, modules (see sign.lazy)
---@return table t
function sign.namespace(t, full, load, more)
  sign.namespaces[t] = full
  return setmetatable(t, {lazy = more, __index = no_name(t, full, load, more),
                          __call = called(full)})
end

--- Makes a namespace whose functions are loaded with their modules when they
-- are first used.
---@param t table
---@param full string as users write it: "cute.ops"
---@param prefix string prefix of signatures: "ops."
---@param parts table<string, string> signatures by module
---@param load? fun(name: string): any other names
---@param modules? table<string, string> names that `load` knows
---@return table t
function sign.parts(t, full, prefix, parts, load, modules)
  local lazy, signatures = {}, {}
  for module, text in pairs(parts) do
    for name, signature in sign.signatures(text) do
      lazy[name], signatures[name] = module, signature
    end
  end
  return sign.namespace(t, full, function(name)
    if not lazy[name] then return load and load(name) end
    return sign.guard(prefix .. signatures[name], require(lazy[name])[name])
  end, {lazy, modules})
end

--- Returns the names of a namespace that are loaded on first use, as two
-- tables: the module of each function by its name, and modules by their names.
---@return table<string, string> functions
---@return table<string, string> modules
function sign.lazy(t)
  local functions, modules = {}, {}
  local mt = debug.getmetatable(t)
  for i, from in ipairs(mt and rawget(mt, "lazy") or {}) do
    for name, module in pairs(from) do
      (i == 1 and functions or modules)[name] = module
    end
  end
  for name, row in pairs(sign.added(sign.namespaces[t])) do
    (row.whole and modules or functions)[name] = row.module
  end
  return functions, modules
end

--- Like sign.namespace, for the table of a module that users load with require.
---@param full string "kernels.norm"
---@param t table
---@return table t
function sign.module(full, t)
  local mt = getmetatable(t) or {}
  mt.__index = mt.__index or no_name(t, full)
  return setmetatable(t, mt)
end

return sign
-- SPDX-License-Identifier: MIT
