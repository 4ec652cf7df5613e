--- Splits a Lua text into tokens, and finds unterminated strings and comments.
local lex = require "cute.lang.lex"

local tokens = {}

--- The set of Lua's keywords.
tokens.KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in
  local nil not or repeat return then true until while]]):gmatch "%S+" do
  tokens.KEYWORDS[word] = true
end

-- Returns the kind of an unterminated string or comment that begins at position
-- i: "string", "long" (a long string) or "comment". Returns nil if it is
-- terminated. `to` is the end position that lex.skip_text returned.
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

--- Returns the position and the kind ("string", "long" or "comment") of an
-- unterminated string or comment. Returns nil if there is none.
---@param s string
---@return integer? from, string? kind
function tokens.unfinished(s)
  local i = 1
  while true do
    i = s:find("[%-\"'%[]", i)
    if not i then return nil end
    local to = lex.skip_text(s, i)
    if to then
      local quoted = s:find("^[\"']", i)
      local line_end = quoted and s:find("\n", i, true)
      if line_end and line_end < to then
        -- An unterminated quoted string ends at the end of its line.
        to = line_end
      elseif open_kind(s, i, to) then
        return i, open_kind(s, i, to)
      end
    end
    i = to or i + 1
  end
end

--- Returns the tokens of a Lua text: {text =, from =, to =, line =, name =
-- boolean}. Comments are omitted. The text of a string is '""'. name is false
-- for keywords.
---@param s string
---@return table[]
function tokens.of(s)
  local out, i, line = {}, s:find "%S" or #s + 1, 1
  local line_end = s:find("\n", 1, true)
  while i <= #s do
    while line_end and line_end < i do
      line, line_end = line + 1, s:find("\n", line_end + 1, true)
    end
    local to, text, name = lex.skip_text(s, i), '""', nil
    if not to then
      name = s:match("^[%a_][%w_]*", i)
      text = name or s:match("^%.?%d[%w%.]*", i) or s:match("^[=~<>]=", i)
        or s:match("^%.%.%.?", i) or s:sub(i, i)
      to = i + #text
    end
    if to > #s + 1 or s:byte(i) ~= 45 or text ~= '""' then
      out[#out + 1] = {text = text, from = i, to = to - 1, line = line,
                       name = name and not lex.STOPS[name]}
    end
    i = s:find("%S", to) or #s + 1
  end
  return out
end

return tokens
-- SPDX-License-Identifier: MIT
