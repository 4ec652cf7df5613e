--- Emits notes on undefined names that a script stores in table fields, such as
-- True in {causal = True}. In Lua such a name is a global with the value nil,
-- so the field is absent.
local bytecode = require "cute.lang.bytecode"
local core = require "cute.core"
local tokens = require "cutelua.text.tokens"

local nils = {}

-- Constants of other languages, and the Lua constants to write instead.
local CONSTANTS = {True = "true", False = "false", None = "nil", NULL = "nil",
                   null = "nil", nullptr = "nil"}

local function field(t, name) return t[name] end

-- Returns names that could be meant instead of the undefined `name`: all names
-- in a Lua text except `name`, `key` and keywords.
local function names_of(text, name, key)
  local list, seen = {}, {[name] = true, [key] = true}
  for _, token in ipairs(tokens.of(text)) do
    local n = token.name and token.text
    if n and not seen[n] and not tokens.KEYWORDS[n] then
      seen[n], list[#list + 1] = true, n
    end
  end
  return list
end

--- Returns a note for each undefined name that a chunk reads. Constants of
-- other languages, such as True, always get a note. Other names get a note only
-- if the chunk stores their value in a field and the text contains a similar
-- name. The chunk must have run already, so that its globals are defined.
---@param chunk function
---@param file string the name of the chunk's file
---@param text string
---@return string[]
function nils.notes(chunk, file, text)
  local name, env = debug.getupvalue(chunk, 1)
  local reads = name == "_ENV" and bytecode.globals(chunk)
  local notes, seen = {}, {}
  for _, r in ipairs(reads or {}) do
    local ok, value = pcall(field, env, r.name)
    local meant = CONSTANTS[r.name]
    local mine = type(r.name) == "string" and (meant or r.field)
      and not reads.assigned[r.name] and ok and value == nil
      and not seen[r.name]
    local near = mine and (meant or core.nearest(r.name,
      names_of(text, r.name, r.field or r.name)))
    if near then
      seen[r.name] = true
      notes[#notes + 1] = ("%s:%d: '%s' is nil: no local or global has that "
        .. "name%s"):format(file, r.line, r.name, meant and ": write " .. meant
        or " (did you mean " .. near .. "?)")
    end
  end
  return notes
end

return nils
-- SPDX-License-Identifier: MIT
