--- Describes completion candidates in one line: names of cute by their
-- comments, the user's values by their type. It runs no code of the user.
local comments = require "cutelua.doc.comments"
local core = require "cute.core"
local names = require "cutelua.doc.names"
local sign = require "cute.lang.signature"
local source = require "cute.lang.source"

local meaning = {}

local function summary(item)
  local text = item and item.doc and comments.summary(item.doc) or ""
  return text ~= "" and text or nil
end

--- Returns a one-line description of a public name that is given in full, such
-- as "cute.make_layout".
---@param name string
---@return string?
function meaning.of_name(name) return summary(names.exact(name)) end

-- Returns the name of the class of a value of cute, as comments use it:
-- "layout".
local function class_of(v)
  local mt = debug.getmetatable(v)
  local ours = mt and (type(v) == "userdata" or sign.classes[mt])
  local item = ours and names.of(v)
  return item and item.kind == "class" and item.name or nil
end

local function parameters(f)
  local list, info = {}, debug.getinfo(f, "u")
  for i = 1, info.nparams do list[i] = debug.getlocal(f, i) or "?" end
  if info.isvararg then list[#list + 1] = "..." end
  return table.concat(list, ", ")
end

--- Returns a short description of a value, such as the text of a number or the
-- parameters of a function. Returns nil if there is none.
---@param v any
---@return string?
function meaning.of_value(v)
  local kind, mt = type(v), debug.getmetatable(v)
  if kind == "number" or kind == "boolean" then
    return tostring(v)
  elseif kind == "string" then
    return '"' .. v:sub(1, 200):gsub("\n.*", "...") .. '"'
  elseif kind == "function" then
    if core.signature(v) then return summary(names.of(v)) end
    if debug.getinfo(v, "S").what == "C" then return nil end
    return ("function(%s)"):format(parameters(v))
  elseif sign.namespaces[v] then
    return meaning.of_name(sign.namespaces[v])
  elseif kind == "userdata" and mt and class_of(v) then
    return (tostring(v):gsub("\n.*", ""))
  elseif kind == "table" then
    local class = class_of(v)
    if class then return "a " .. class end
    return not mt and #v > 0 and ("a table of %d"):format(#v) or "a table"
  end
end

--- Describes v.name by the comments of v's module or class or, without
-- comments, by `value`.
---@param v any
---@param name string
---@param value any
---@return string?
function meaning.of_member(v, name, value)
  local owner = sign.namespaces[v]
  if owner then return meaning.of_name(owner .. "." .. name) end
  owner = class_of(v)
  return owner and (meaning.of_name(owner .. ":" .. name)
    or meaning.of_name(owner .. "." .. name)) or meaning.of_value(value)
end

--- Describes a module by its head comment, without loading it.
---@param name string "cute.pipeline"
---@return string?
function meaning.of_module(name)
  local chunk, head = name:find "^cute" and comments.chunk(name), {}
  for line in (chunk and source.text(chunk) or ""):gmatch "([^\n]*)\n" do
    if not line:find "^%-%-" then break end
    head[#head + 1] = line
  end
  return summary(comments.read(table.concat(head, "\n") .. "\n")[1])
end

return meaning
-- SPDX-License-Identifier: MIT
