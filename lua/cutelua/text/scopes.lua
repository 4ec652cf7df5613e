--- Finds the local variables that are visible at a position of a Lua text.
local tokens = require "cutelua.text.tokens"

local scopes = {}

local OPENS = {["do"] = true, ["then"] = true, ["repeat"] = true}
local CLOSES = {["end"] = true, ["until"] = true, ["elseif"] = true,
                ["else"] = true}

--- Returns the offset of the local declaration of `name` that is visible at
-- `offset`; nil if there is none. Parameters and the variables of `for` loops
-- count as locals.
---@param list table[] the tokens, from cutelua.text.tokens.of
---@param name string
---@param offset integer
---@return integer?
function scopes.declaration(list, name, offset)
  local open, waiting = {{}}, nil
  local i = 1
  local function declare(scope, stop)
    -- Declares the names before the token `stop`, such as a and b in `local a
    -- <const>, b`.
    while list[i] and list[i].text ~= stop do
      local t = list[i]
      if t.name then scope[t.text] = t.from end
      local after = list[i + 1] and list[i + 1].text
      if not stop and after == "<" then i = i + 3 end
      after = list[i + 1] and list[i + 1].text
      if not stop and after ~= "," then return end
      i = i + (stop and 1 or 2)
    end
  end
  while list[i] and list[i].from <= offset do
    local text = list[i].text
    if text == "function" then
      local scope = {}
      local before = list[i - 1]
      if before and before.text == "local" and list[i + 1] then
        open[#open][list[i + 1].text] = list[i + 1].from
      end
      while list[i] and list[i].text ~= "(" do i = i + 1 end
      i = i + 1
      declare(scope, ")")
      open[#open + 1] = scope
    elseif text == "local" and list[i + 1] and list[i + 1].name then
      i = i + 1
      declare(open[#open])
    elseif text == "for" then
      waiting, i = {}, i + 1
      while list[i] and list[i].text ~= "=" and list[i].text ~= "in" do
        if list[i].name then waiting[list[i].text] = list[i].from end
        i = i + 1
      end
    else
      if CLOSES[text] and open[2] then open[#open] = nil end
      if OPENS[text] or text == "else" then
        open[#open + 1] = text == "do" and waiting or {}
        if text == "do" then waiting = nil end
      end
    end
    i = i + 1
  end
  for k = #open, 1, -1 do
    if open[k][name] then return open[k][name] end
  end
end

--- Returns a function that reports whether a local variable is visible at the
-- beginning of a line. Its arguments are the line number and the variable's
-- name. Its first call tokenizes the text.
---@param lines string[]
---@return fun(n: integer, name: string): boolean
function scopes.visible(lines)
  local list
  return function(n, name)
    list = list or tokens.of(table.concat(lines, "\n"))
    local offset = 0
    for k = 1, n - 1 do offset = offset + #lines[k] + 1 end
    return scopes.declaration(list, name, offset) ~= nil
  end
end

return scopes
-- SPDX-License-Identifier: MIT
