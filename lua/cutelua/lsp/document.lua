--- A document that an editor has opened: its text, and positions in it.
--
-- A position of the protocol is {line =, character =}, which count from 0;
-- `character` counts UTF-16 units. Offsets count bytes from 1.
local document = {}

local Document = {}
Document.__index = Document

-- Matches a character in UTF-8, or a stray byte.
local CHARACTER = "[%z\1-\127\192-\255][\128-\191]*"

--- Returns a new document.
---@param uri string
---@param version integer
---@param text string
---@return table
function document.new(uri, version, text)
  return setmetatable({uri = uri, version = version, text = text}, Document)
end

-- Returns the offsets at which the lines begin. Lines end with \n, \r\n or \r.
local function starts(self)
  if self.starts then return self.starts end
  local list, at, text = {1}, 1, self.text
  while true do
    local stop = text:find("[\r\n]", at)
    if not stop then break end
    at = stop + (text:sub(stop, stop + 1) == "\r\n" and 2 or 1)
    list[#list + 1] = at
  end
  self.starts = list
  return list
end

--- Returns the number of lines.
---@return integer
function Document:count() return #starts(self) end

--- Returns a line's text without its end, and its offset; nil if there is no
-- such line.
---@param n integer from 0
---@return string? text, integer? offset
function Document:line(n)
  local list = starts(self)
  local from = list[n + 1]
  if not from then return nil end
  local line = self.text:sub(from, (list[n + 2] or #self.text + 1) - 1)
  return line:match "^[^\r\n]*", from
end

-- Returns the number of UTF-16 units of a text.
local function units(text)
  if not text:find "[\128-\255]" then return #text end
  local _, characters = text:gsub("[^\128-\191]", "")
  local _, pairs_ = text:gsub("[\240-\255]", "")
  return characters + pairs_
end

--- Returns the offset of position p. If p is beyond the end of its line or of
-- the text, returns the offset of that end.
---@param p {line: integer, character: integer}
---@return integer
function Document:offset(p)
  local line, from = self:line(p.line)
  if not line then return #self.text + 1 end
  if not line:find "[\128-\255]" then return from + math.min(p.character, #line)
  end
  local n, at = 0, 1
  while at <= #line and n < p.character do
    local _, stop = line:find("^" .. CHARACTER, at)
    stop = stop or at
    n = n + (line:byte(at) >= 240 and 2 or 1)
    if n > p.character then break end
    at = stop + 1
  end
  return from + at - 1
end

--- Returns the position of an offset.
---@param offset integer
---@return {line: integer, character: integer}
function Document:position(offset)
  local list = starts(self)
  local low, high = 1, #list
  while low < high do
    local middle = (low + high + 1) // 2
    if list[middle] <= offset then low = middle else high = middle - 1 end
  end
  return {line = low - 1,
          character = units(self.text:sub(list[low], offset - 1))}
end

--- Returns the position for the line and column of a finding. Both count from
-- 1, and columns count characters.
---@param line integer
---@param column integer
---@return {line: integer, character: integer}
function Document:place(line, column)
  local text = self:line(line - 1)
  if not text then return self:position(#self.text + 1) end
  local at = not text:find "^[\128-\191]" and utf8.offset(text, column)
  return {line = line - 1,
          character = units(text:sub(1, (at or #text + 1) - 1))}
end

--- Replaces the text of a range, or the whole text.
---@param range {start: table, ["end"]: table}?
---@param text string
function Document:change(range, text)
  if range then
    local from = self:offset(range.start)
    local to = math.max(self:offset(range["end"]), from)
    text = self.text:sub(1, from - 1) .. text .. self.text:sub(to)
  end
  self.text, self.starts = text, nil
end

return document
-- SPDX-License-Identifier: MIT
