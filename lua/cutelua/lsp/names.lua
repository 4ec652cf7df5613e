--- Finds what names in a document mean, without running it. It knows the
-- modules of cute that locals hold, and the declarations of locals and
-- functions.
local complete = require "cutelua.program.complete"
local cute = require "cute"
local lex = require "cute.lang.lex"
local scopes = require "cutelua.text.scopes"
local sys = require "cute.sys"
local tokens = require "cutelua.text.tokens"

local names = {}

-- LONGEST: longest line that is searched for declarations. NEAR: longest
-- distance, in bytes, between the words of an expression. Both bound the time
-- of pattern searches, which could otherwise take minutes.
local LONGEST, NEAR = 1000, 200
-- Largest number of names in a path; a.b.c has three.
local MOST_NAMES = 6

--- Returns the name of the module that a call of `require` loads, and the
-- offset after it; nil if the name is not a constant. `from` is the offset
-- after the word `require`.
---@param text string
---@param from integer
---@return string? name, integer? to
function names.required(text, from)
  local name, to = text:sub(from, from + NEAR):match(
    "^%s*%(?%s*[\"']([%w_.]+)[\"']()")
  return name, name and from + to - 1
end

--- Reports whether a name is "cute", or the name of a module of cute or of the
-- library of kernels.
---@param name string
---@return boolean
function names.is_ours(name)
  return ((name .. "."):find "^cute%." or name:find "^kernels%.") ~= nil
end

--- Reports whether a text is a script that uses cute: it requires a module of
-- cute or a kernel of the library.
---@param text string
---@return boolean
function names.is_script(text)
  for from in text:gmatch "%f[%w_]require%f[^%w_]()" do
    local name = names.required(text, from)
    if name and names.is_ours(name) then return true end
  end
  return false
end

local modules

-- Returns the value of module `name` if the module belongs to cute or to the
-- library of kernels. Returns nil for other names, and for modules that cannot
-- be loaded.
local function module(name)
  if not modules then
    modules = {}
    for _, one in ipairs(sys.modules()) do modules[one] = true end
  end
  if not modules[name] or not names.is_ours(name) then return nil end
  local ok, value = pcall(require, name)
  return ok and value or nil
end

-- Returns the value of an expression, given as text: a required module, a local
-- in `env`, or a field of either. Returns nil for other expressions.
local function value_of(text, env)
  local name, rest = text:match(
    "^require%s*%(?%s*[\"']([%w_.]+)[\"']%s*%)?(.*)$")
  local path = rest and rest:match "^%.([%a_][%w_.]*)%s*$"
  if name then
    local value = module(name)
    if value == nil or not path then return value end
    return complete.value("m." .. path, {m = value})
  end
  path = text:match "^([%a_][%w_]*[%w_.]*)%s*$"
  local first = path and path:match "^[%w_]+"
  return first and env[first] ~= nil and complete.value(path, env) or nil
end

--- Returns the locals of a text whose values are known without running it, by
-- name. For a local in `facts`, the value is a sample of the local's type.
---@param text string
---@param facts table[] tensors and layouts of the records of cutelua.page
---@return table<string, any>
function names.environment(text, facts)
  local env = {}
  for _, fact in ipairs(facts) do
    if fact.kind == "tensor" then env[fact.name] = names.sample()
    elseif fact.kind == "layout" then env[fact.name] = cute.make_layout(1) end
  end
  for line in text:gmatch "[^\r\n]+" do
    local left, right
    if #line <= LONGEST then
      left, right = line:match "%f[%w_]local%s+([%a_][%w_, ]-)%s*=%s*(.*)"
    end
    local values = {}
    for one in ((right or ""):gsub("%s*%-%-.*$", "") .. ","):gmatch
      "%s*([^,]*)," do
      values[#values + 1] = one
    end
    local i = 0
    for name in (left or ""):gmatch "[%a_][%w_]*" do
      i = i + 1
      local value = values[i] and value_of(values[i], env)
      if value ~= nil then env[name] = value end
    end
  end
  return env
end

local sample

--- Returns a sample tensor, which has the methods of every tensor.
---@return any
function names.sample()
  sample = sample or cute.zeros({1}, cute.f32)
  return sample
end

--- Returns the path of names up to and including the name at an offset, such as
-- "arch.popc" or "x:fill". Also returns the offset of the last name, and the
-- offset after the path. Returns nil if there is no name.
---@param text string
---@param offset integer
---@return string? path, integer? from, integer? to
function names.at(text, offset)
  local from = offset
  while from > 1 and text:find("^[%w_]", from - 1) do from = from - 1 end
  local to = text:match("^[%a_][%w_]*()", from)
  if not to or to < offset then return nil end
  local head = text:sub(math.max(1, from - NEAR), from - 1)
  local owner = head:match "[%a_][%w_.]*[.:]$"
  return (owner or "") .. text:sub(from, to - 1), from, to
end

---------------------------------------------------------------------------
-- Definitions
---------------------------------------------------------------------------

--- Returns the offset at which a text declares a field or a global function:
-- `function M.name`, `M.name =`, `function name`, or `name =` in a table.
---@param text string
---@param name string
---@param list? table[] the text's tokens
---@return integer?
function names.field(text, name, list)
  local best
  list = list or tokens.of(text)
  for i, t in ipairs(list) do
    if t.text == name then
      local before = list[i - 1] and list[i - 1].text
      local after = list[i + 1] and list[i + 1].text
      local k = i
      while k > i - 2 * MOST_NAMES and list[k - 1]
        and (list[k - 1].text == "." or list[k - 1].text == ":") do
        k = k - 2
      end
      if list[k - 1] and list[k - 1].text == "function" then return t.from end
      if after == "=" and (before == "." or before == "{" or before == ",") then
        best = best or t.from
      end
    end
  end
  return best
end

--- Returns the offset of the declaration of the name at `offset`. If the name
-- is a field of a module that the text requires, returns nil, the module and
-- the field.
---@param text string
---@param offset integer
---@return integer? offset
---@return string? module
---@return string? field nil if the name stands for the module itself
function names.definition(text, offset)
  local first = math.max(1, offset - NEAR)
  for from in text:sub(first, offset):gmatch "%f[%w_]require()" do
    local name, to = names.required(text, first + from - 1)
    if name and to >= offset then return nil, name end
  end
  local path, from = names.at(text, offset)
  if not path then return nil end
  local owner, field = path:match "^([%w_]+).*[.:]([%w_]+)$"
  if not owner then
    local list = tokens.of(text)
    local found = scopes.declaration(list, path, from)
    if found then return found end
    return not lex.STOPS[path] and names.field(text, path, list) or nil
  end
  for stop in text:gmatch("%f[%w_]" .. owner .. "()%f[^%w_]") do
    local to = text:sub(stop, stop + NEAR):match "^%s*=%s*require()"
    local required = to and names.required(text, stop + to - 1)
    if required then return nil, required, field end
  end
  return names.field(text, field)
end

return names
-- SPDX-License-Identifier: MIT
