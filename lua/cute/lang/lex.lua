--- Finds the names that each line of a Lua text assigns. cutelua.text.tokens
-- finds all tokens.
local lex = {}

--- Words that end an expression or a list of names, as a set.
lex.STOPS = {}
for word in ([[if then and or not return while until do end local else elseif
  function repeat for in = , ; ]]):gmatch "%S+" do lex.STOPS[word] = true end

local function skip_long(s, i)
  local eq = s:match("^%[(=*)%[", i)
  if not eq then return nil end
  local _, e = s:find("]" .. eq .. "]", i + #eq + 2, true)
  return (e or #s) + 1
end

-- Returns the number of line ends in text s from position i to position j - 1.
local function newlines(s, i, j)
  return select(2, s:sub(i, j - 1):gsub("\n", ""))
end

--- Returns the position after the string or comment that starts at i, or nil if
-- none starts there.
function lex.skip_text(s, i)
  local first = s:byte(i)
  if first == 45 and s:byte(i + 1) == 45 then  -- two dashes
    return s:find("^%[=*%[", i + 2) and skip_long(s, i + 2)
      or s:find("\n", i, true) or #s + 1
  elseif first == 91 then  -- [
    return skip_long(s, i)
  elseif first == 34 or first == 39 then  -- quotes
    local q, j = string.char(first), i + 1
    while j <= #s and s:sub(j, j) ~= q do
      j = j + (s:sub(j, j) == "\\" and 2 or 1)
    end
    return j + 1
  end
end

-- Adds to `names` the variables that an `=` assigns. `before` is the text
-- before the `=`, such as "local a, b ".
local function add_assigned(before, names)
  local back, i = before:reverse(), 1
  repeat
    local name, to = back:match("^%s*([%w_]+)%s*()", i)
    name = name and name:reverse()
    if not name or lex.STOPS[name] or name:find "^%d" then return end
    names[#names + 1], i = name, to + 1
  until back:byte(i - 1) ~= 44  -- a comma
end

--- Returns the names that each line of a text assigns, {[line] = {name, ...}};
-- traced values get these names. Lines without assignments are absent. A trace
-- scans whole texts, so for speed only the relevant characters are examined.
---@param s string
---@return table<integer, string[]>
function lex.assigned(s)
  local lines, line, i = {}, 1, 1
  -- The text of the current statement, as far as it has been read, is `before`
  -- followed by s from position `from`.
  local before, from = "", 1
  while true do
    local at = s:find("[\n=%-\"'%[<>~]", i)
    if not at then return lines end
    local c = s:byte(at)
    i = at + 1
    if c == 10 then
      line = line + 1
    elseif c == 61 or c == 60 or c == 62 or c == 126 then  -- = < > ~
      if s:byte(i) == 61 then
        i = i + 1
      elseif c == 61 then
        lines[line] = lines[line] or {}
        add_assigned(before .. s:sub(from, at - 1), lines[line])
      end
      before, from = "", i
    else
      local to = lex.skip_text(s, at)
      before = to and c == 45 and before .. s:sub(from, at - 1) .. " " or ""
      if to then line, i = line + newlines(s, at, to), to end
      from = i
    end
  end
end

return lex
-- SPDX-License-Identifier: MIT
