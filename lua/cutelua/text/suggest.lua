--- Suggests corrections for lines that Lua rejects. It covers undefined names,
-- missing fields and modules, and syntax of other languages. Error reports
-- print the suggestion below Lua's message.
local core = require "cute.core"
local foreign = require "cutelua.text.foreign"
local source = require "cute.lang.source"
local tokens = require "cutelua.text.tokens"

local suggest = {}

---------------------------------------------------------------------------
-- Values
---------------------------------------------------------------------------

-- Returns the variables of the function at a stack level. The results are the
-- set of locals and upvalues, their values, and the table of globals.
local function variables(level)
  local known, held, env = {}, {}, nil
  for i = 1, math.huge do
    local name, value = debug.getlocal(level + 1, i)
    if not name then break end
    known[name], held[name] = true, value
  end
  local f = debug.getinfo(level + 1, "f").func
  for i = 1, math.huge do
    local name, value = debug.getupvalue(f, i)
    if not name then break end
    if name == "_ENV" then env = value
    elseif not known[name] then known[name], held[name] = true, value end
  end
  return known, held, type(env) == "table" and env or nil
end

-- Returns a line without its comment and with empty strings.
local function bare(text)
  return (text:gsub("%-%-.*", ""):gsub("%b\"\"", ' "" '):gsub("%b''", " '' "))
end

-- Returns the names of the variables that a line reads. Fields, keys, keywords
-- and the contents of strings and comments are excluded.
local function names_of(text)
  local list = {}
  text = bare(text)
  for before, name, at in text:gmatch "([.:]?)%f[%w_]([%a_][%w_]*)()" do
    local assigned = text:find("^%s*=[^=]", at)
    if before == "" and not assigned then list[#list + 1] = name end
  end
  return list
end

local function field(t, name) return t[name] end

local function has(t, name)
  local ok, v = pcall(field, t, name)
  return not ok or v ~= nil
end

-- Returns the known name that is most similar to an undefined name, or nil.
local function other(name, known, env)
  if foreign.NAMES[name] then return foreign.NAMES[name] end
  local list, cute = {}, package.loaded.cute
  for n in pairs(known) do list[#list + 1] = n end
  local near = core.nearest(name, list)
  if near then return near end
  local ok, v = pcall(field, cute, name)
  if ok and v ~= nil then return "cute." .. name end
  ok, v = pcall(function() return cute.arch[name] end)
  if ok and v ~= nil then return "cute.arch." .. name end
  for n in pairs(env) do
    if type(n) == "string" then list[#list + 1] = n end
  end
  return core.nearest(name, list)
end

-- Reports whether a line declares a name. A line that creates a function also
-- counts if the name is a local of the file. A local that the function does not
-- use is not among its upvalues, so the local seems undefined.
local function declared(name, text, whole)
  local at = "%f[%w_]" .. name .. "%f[^%w_]"
  if text:find("%f[%w_]for%f[^%w_][^=]-" .. at)
    or text:find("%f[%w_]function[^()]*%([^()]*" .. at)
    or text:find("%f[%w_]local%f[^%w_][^=]-" .. at) then return true end
  return text:find "%f[%w_]function%f[^%w_]" and whole
    and whole:find("%f[%w_]local%f[^%w_][^=\n]-" .. at) ~= nil
end

-- Returns a sentence about an undefined global that a line reads, or nil.
local function undefined(message, text, vars)
  local of, only = message:match "%((%a+) '([%w_]+)'%)"
  if of and of ~= "global" then return end
  for _, name in ipairs(names_of(text)) do
    if (not only or name == only) and not vars.known[name]
      and not tokens.KEYWORDS[name] and not has(vars.env, name)
      and (only or not declared(name, text, vars.text)) then
      local near = other(name, vars.known, vars.env)
      return ("'%s' is nil: no local or global has that name%s"):format(name,
        near and " (did you mean " .. near .. "?)" or "")
    end
  end
end

-- Returns the value of a local, an upvalue or a global.
local function held(name, vars)
  if vars.known[name] then return vars.held[name] end
  return vars.env and rawget(vars.env, name)
end

-- Returns the names of a table's fields, including those of its class.
local function fields_of(value)
  local list = {}
  while type(value) == "table" do
    for name in next, value do
      if type(name) == "string" and not name:find "^__" then
        list[#list + 1] = name
      end
    end
    local mt = debug.getmetatable(value)
    value = mt and rawget(mt, "__index")
  end
  table.sort(list)
  return list
end

-- Returns three values for the first missing field of a path such as "k.grid".
-- These are the path of the table without the field, this table, and the
-- field's name. Returns nil if all fields exist.
local function broken(path, vars)
  local value, before
  for name in path:gmatch "[%a_][%w_]*" do
    if before then
      if type(value) == "string" then value = string end
      local ok, v = pcall(field, value, name)
      if not ok then return end
      if v == nil then return before, value, name end
      value, before = v, before .. "." .. name
    else
      value, before = held(name, vars), name
    end
    if value == nil then return end
  end
end

-- Returns a sentence about a missing field that a line reads, or nil. If Lua's
-- message names a field, as in "(field 'grdi')", the sentence is about that
-- field. For a bad argument, it may be about any field in the line.
local function missing(message, text, vars)
  local only = message:match "%(%a+ '([%a_][%w_]*)'%)"
  for path in bare(text):gmatch "%f[%w_][%a_][%w_]*[.:][%w_.:]+" do
    local of, value, name = broken(path, vars)
    if type(value) == "table" and (not only or only == name) then
      local list = fields_of(value)
      local near = #name > 1 and core.nearest(name, list)
      return ("'%s.%s' is nil: %s"):format(of, name, near
        and "did you mean " .. of .. "." .. near .. "?"
        or #list == 0 and of .. " has no fields with names"
        or #list <= 12 and of .. " has " .. table.concat(list, " ")
        or of .. " has no field of that name")
    end
  end
end

-- Returns a sentence about an index beyond the end of a list in the line
-- `text`, or nil.
local function beyond(text, vars)
  for path, at in bare(text):gmatch "%f[%w_.]([%a_][%w_]*)%[([%w_]+)%]" do
    local list, i = held(path, vars), tonumber(at) or held(at, vars)
    if type(list) == "table" and math.type(i) == "integer"
      and list[i] == nil then
      local n = rawlen(list)
      return ("'%s[%s]' is nil: %s"):format(path, at, n == 0
        and path .. " is no list" or ("a list counts from 1, and %s has %d")
          :format(path, n))
    end
  end
end

-- Returns a sentence about a local that is nil because a function failed to
-- read a file, or nil. Such functions, for example io.open, return nil and a
-- message.
local function failed(message, frame, vars)
  local name = message:match "%(%a+ '([%a_][%w_]*)'%)"
  if not name or not vars.known[name] or not vars.text then return end
  local call, n = nil, 0
  for text in vars.text:gmatch "([^\n]*)\n?" do
    n = n + 1
    if n >= frame.line then break end
    local names, f = bare(text):match "local%s+([%w_%s,]-)%s*=%s*([%w_.]+)%s*%("
    if f and (", " .. names .. ","):find("[%s,]" .. name .. "[%s,]") then
      call = (f:find "%.read$" or f == "io.open") and f or nil
    end
  end
  return call and ("'%s' is nil: %s returns nil and a message if it fails\n  "
    .. "write assert(%s(...)) to see the message"):format(name, call, call)
end

-- Returns advice if a `for` loop iterates over a value that is not an iterator,
-- or nil.
local function walked(message, text)
  if message:find "%(for iterator" or message:find "to 'for iterator'"
    or text:find "^%s*for%s.-%sin%s" and (message:find "coordinate is nil"
      or text:find "ipairs" and message:find "coordinate %d+ of the tensor")
  then
    return "write for i, v in ipairs(list) do; for a tensor's t[i], for i = 0, "
      .. "cute.size(t) - 1 do; in a kernel, for i in cute.range(n) do"
  end
end

--- Explains an error about nil. Names the missing global, field or element in
-- the line, and suggests a similar name. `level` is the stack level of the
-- function that contains the line.
---@param message string
---@param level integer
---@param frame table {source, line}
---@return string?
function suggest.value(message, level, frame)
  local text = source.line(frame.source, frame.line)
  local walk = text and (walked(message, text) or foreign.line(message, text))
  if walk or not text or not message:find "%f[%w]nil%f[%W]" then return walk end
  local vars = {text = source.text(frame.source)}
  vars.known, vars.held, vars.env = variables(level + 1)
  return vars.env and undefined(message, text, vars)
    or missing(message, text, vars)
    or beyond(text, vars) or failed(message, frame, vars)
end

---------------------------------------------------------------------------
-- Modules
---------------------------------------------------------------------------

-- Returns suggestions for a missing module. Returns all modules whose names
-- begin with `name`. If there are none, returns the most similar name, or else
-- all names with the same last component.
local function modules(name)
  local ok, sys = pcall(require, "cute.sys")
  local last, all, same, begin = name:match "[^.]+$", {}, {}, {}
  for _, module in ipairs(ok and sys.modules() or {}) do
    if not module:find "^cute%.meta%." then all[#all + 1] = module end
  end
  for _, module in ipairs(all) do
    if module:match "[^.]+$" == last then same[#same + 1] = module end
    if module:sub(1, #name) == name and not module:find(".", #name + 1, true)
    then begin[#begin + 1] = module end
  end
  if begin[1] then return begin end
  local near = core.nearest(name, all)
  return near and {near} or same
end

--- Replaces the list of folders in Lua's message about a missing module by a
-- suggestion. Returns other messages unchanged.
---@param message string
---@return string
function suggest.module(message)
  local head, name = message:match "^(.*module '([^'\n]+)' not found):\n"
  if not head then return message end
  local root, rest = name:match "^([^.]+)%.?(.*)$"
  if root == "cutlass" or root == "cutelua" then root = "cute" end
  if root == "cute" then
    local value = package.loaded.cute
    for part in rest:gmatch "[^.]+" do
      local ok, v = pcall(field, value, part)
      value = ok and v or nil
    end
    if value ~= nil then
      return ("%s\n  it is a field: local cute = require \"cute\", then cute%s")
        :format(head, rest == "" and "" or "." .. rest)
    end
  end
  local list = modules(name)
  if list[1] then
    return ("%s\n  nearest: %s"):format(head, table.concat(list, " "))
  end
  return ("%s\n  package.path and package.cpath have no file %s.lua")
    :format(head, (name:gsub("%.", "/")))
end

---------------------------------------------------------------------------
-- Other languages
---------------------------------------------------------------------------

-- Patterns for syntax of other languages, with the advice for each.
local FOREIGN = {
  {"%f[%w_]function[^()]*%([^()]*[%w_]%s*:", "parameters have no types: write "
    .. "function(x, n) ... end"},
  {"=>", "write function(x) return ... end"},
  {"%f[%w_]is%s+None", "write x == nil"},
  {"%f[%w_]is%s+not%s+None", "write x ~= nil"},
  {"[%w_]::[%w_]", "write cute.copy with a dot"},
  {"^%s*@", "Lua has no decorators: local k = cute.kernel(\"k\", "
    .. "function(x) ... end)"},
  {"^%s*def%s", "write local function f(x) ... end"},
  {"^%s*from%s.*%simport%s", "write local cute = require \"cute\""},
  {"^%s*import%s", "write local cute = require \"cute\""},
  {"%f[%w_]lambda%f[^%w_]", "write function(x) return ... end"},
  {"%f[%w_]elif%f[^%w_]", "write elseif condition then"},
  {"%f[%w_]continue%f[^%w_]", "Lua has no continue: put the rest of the body "
    .. "into an if, in a traced loop into cute.when"},
  {"^%s*if%s.*:%s*$", "write if condition then ... end"},
  {"^%s*else%s*:", "write else ... end"},
  {"^%s*for%s.*:%s*$", "write for i = 0, n - 1 do ... end, in a kernel "
    .. "for i in cute.range(n) do ... end"},
  {"^%s*while%s.*:%s*$", "write while condition do ... end"},
  {"^%s*for%s*%(", "write for i = 0, n - 1 do ... end"},
  {"launch%s*%(%s*[%a_][%w_]*%s*=", "options are a table: "
    .. "launch {grid = g, block = b}"},
  {"[%w_%])]%s*[%+%-%*/%%|&^]=", "Lua has no += or similar operators: write x "
    .. "= x + y"},
  {"%+%+", "write i = i + 1"}, {"%*%*", "write x ^ y"},
  {"^%s*try%s*:", "write local ok, message = pcall(f, ...)"},
  {"^%s*with%s.*:%s*$", "write local x <close> = ..."},
  {"!=", "write ~=, for traced values x:ne(y)"},
  {"&&", "write and, for traced values &"},
  {"||", "write or, for traced values |"},
  {"![%a_(]", "write not, for traced values ~"},
  {"[%w_%)]%s*@%s*[%a_]", "write cute.ops.gemm(A, B), which multiplies by B "
    .. "transposed"},
  {"^%s*//", "a comment begins with --"}, {"^%s*/%*", "a comment begins with "
    .. "--"}, {"^%s*#", "a comment begins with --"},
  {"[%(,]%s*&%s*[%a_]", "write t.iterator + i for the address of element i"},
  {"%?.+:", "write cute.where(condition, x, y)"},
  {"^%s*const%s", "write local x = ..."}, {"^%s*auto%s", "write local x = ..."},
  {"^%s*var%s", "write local x = ..."}, {"^%s*let%s", "write local x = ..."},
  {"^%s*int%s", "write local x = ..."}, {"^%s*float%s", "write local x = ..."},
  {"<<<.*>>>%s*%(", "write k(arguments...):launch {grid = g, block = b}"},
  {"%[[^%[%]\"']+,[^%[%]]*%]%s*%(", "write k(arguments...):launch {grid = g, "
    .. "block = b}"},
  {"%[[^%[%]\"']+,[^%[%]]*%]", "write t[{i, j}] for an element, t(i, _) for a "
    .. "part"},
  {"%[[^%[%]\"']*:[^%[%]]*%]", "a part of a tensor is t(i, _), a tile "
    .. "cute.local_tile(t, shape, coordinate)"},
  {"%)%s*=[^=]", "a call cannot be assigned to: write t[i] = x, t[{i, j}] = x"},
  {"{%s*[%a_\"'][%w_\"']*%s*:", "write {name = value}"},
  {"%([^()]*[%a_][%w_]*%s*=[^=]", "named arguments are a table: f {name = "
    .. "value}"},
}

local function other_language(sentence, text)
  local line = text:gsub("%b\"\"", '""'):gsub("%b''", "''")
  if sentence:find "near '%['$" and line:find "[=(,{]%s*%[" then
    return line:find "%[.*%sfor%s.*%sin%s" and "Lua has no comprehensions: "
      .. "fill a list in a loop" or "a list is {1, 2, 3}"
  end
  if sentence:find "^malformed number" then
    return "write numbers without a suffix such as f or u: 1.0, 0xff"
  end
  for _, row in ipairs(FOREIGN) do
    if line:find(row[1]) then return row[2] end
  end
end

--- Returns advice for a line with a syntax error, or nil.
---@param sentence string Lua's message: "syntax error near '+'"
---@param frame table {source, line}
---@return string?
function suggest.syntax(sentence, frame)
  if not sentence:find " near " then return end
  local eof = sentence:find "near <eof>$"
  for n = frame.line, eof and 1 or frame.line, -1 do
    local text = source.line(frame.source, n)
    local advice = text and other_language(sentence, text)
    if advice then
      return n == frame.line and advice or ("line %d: %s"):format(n, advice)
    end
  end
  return sentence:find "^'then'" and "write if condition then ... end"
    or sentence:find "^'do'"
      and "write for ... do ... end, while ... do ... end" or nil
end

return suggest
-- SPDX-License-Identifier: MIT
