--- Scans Lua text. Finds its tokens, and the names that each line assigns.
local lex = {}

--- Lua's keywords, as a set.
lex.KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in
  local nil not or repeat return then true until while]]):gmatch "%S+" do
  lex.KEYWORDS[word] = true
end

local STOPS = {}
for word in ([[if then and or not return while until do end local else elseif
  function repeat for in = , ; ]]):gmatch "%S+" do STOPS[word] = true end

local function skip_long(s, i)
  local eq = s:match("^%[(=*)%[", i)
  if not eq then return nil end
  local _, e = s:find("]" .. eq .. "]", i + #eq + 2, true)
  return (e or #s) + 1
end

local function newlines(s, i, j)
  local n, at = 0, s:find("\n", i, true)
  while at and at < j do
    n, at = n + 1, s:find("\n", at + 1, true)
  end
  return n
end

-- Returns the position after the string or comment that starts at i, or nil if
-- none starts there.
local function skip_text(s, i)
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

-- Returns "string", "long" or "comment" if the string or comment that begins at
-- i is unterminated. `to` is the position at which skip_text ended it.
local function open_kind(s, i, to)
  local dashes = s:byte(i) == 45
  local equals = s:match("^%[(=*)%[", dashes and i + 2 or i)
  if equals then
    local closed = s:sub(to - #equals - 2, to - 1) == "]" .. equals .. "]"
    return not closed and (dashes and "comment" or "long")
  end
  return dashes and to > #s and "comment" or not dashes and to > #s + 1
    and "string"
end

--- Returns the start and the kind ("string", "long" or "comment") of an
-- unterminated string or comment in a text, or nil if there is none.
---@param s string
---@return integer? from, string? kind
function lex.unfinished(s)
  local i = 1
  while true do
    i = s:find("[%-\"'%[]", i)
    if not i then return nil end
    local to = skip_text(s, i)
    if to then
      local quoted = s:find("^[\"']", i)
      local line_end = quoted and s:find("\n", i, true)
      if line_end and line_end < to then
        -- An unterminated string ends with its line.
        to = line_end
      elseif open_kind(s, i, to) then
        return i, open_kind(s, i, to)
      end
    end
    i = to or i + 1
  end
end

--- Returns the tokens of a Lua text, each {text =, from =, line =, name =
-- boolean}. Comments are left out, strings become '""', and keywords are not
-- names.
---@param s string
---@return table[]
function lex.tokens(s)
  local out, i, line = {}, s:find "%S" or #s + 1, 1
  line = line + newlines(s, 1, i)
  while i <= #s do
    local to, text, name = skip_text(s, i), '""', nil
    if not to then
      name = s:match("^[%a_][%w_]*", i)
      text = name or s:match("^%.?%d[%w%.]*", i) or s:match("^[=~<>]=", i)
        or s:match("^%.%.%.?", i) or s:sub(i, i)
      to = i + #text
    end
    if to > #s + 1 or s:byte(i) ~= 45 or text ~= '""' then
      out[#out + 1] = {text = text, from = i, line = line,
                       name = name and not STOPS[name]}
    end
    local next_i = s:find("%S", to) or #s + 1
    if next_i > to or not name then line = line + newlines(s, i, next_i) end
    i = next_i
  end
  return out
end

-- Adds to `names` the variables that an `=` assigns. `before` is the text in
-- front of it, such as "local a, b ".
local function add_assigned(before, names)
  local back, i = before:reverse(), 1
  repeat
    local name, to = back:match("^%s*([%w_]+)%s*()", i)
    name = name and name:reverse()
    if not name or STOPS[name] or name:find "^%d" then return end
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
  -- The text of the current statement so far is `before` .. s:sub(from).
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
      local to = skip_text(s, at)
      before = to and c == 45 and before .. s:sub(from, at - 1) .. " " or ""
      if to then line, i = line + newlines(s, at, to), to end
      from = i
    end
  end
end

return lex
-- SPDX-License-Identifier: MIT
