--- Notes on names without a value that a script stores in fields, such as True
-- in {causal = True}. To Lua they are globals that are nil, so that the field
-- stays absent, as if it had not been written.
local bytecode = require "cute.lang.bytecode"
local core = require "cute.core"
local tokens = require "cutelua.text.tokens"

local nils = {}

-- Constants of other languages, and what to write instead.
local CONSTANTS = {True = "true", False = "false", None = "nil", NULL = "nil",
                   null = "nil", nullptr = "nil"}

local function field(t, name) return t[name] end

-- Returns the names in a Lua text among which the one nearest to `name` is
-- looked for: all except `name`, `key` and keywords.
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

--- Returns a note for each name that a chunk reads although no local or global
-- has it: constants of other languages such as True and, if the text has a
-- similar name, names whose value is only stored in a field. The chunk has run
-- already, so its globals have their values.
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
