--- Edits of a script's text. An edit is {description =, changes = {...}}. A
-- change is {file =, start = {line =, column =}, stop = {line =, column =},
-- text =}: `text` replaces the characters from `start` up to, but not
-- including, `stop`. Lines and columns count from 1; columns count characters.
local source = require "cute.lang.source"

local changes = {}

--- The largest number of lines of one statement.
changes.LONGEST = 12

--- Returns the lines of a chunk; none if its text is unknown.
---@param chunk string
---@return string[]
function changes.lines(chunk)
  local list = {}
  for line in ((source.text(chunk) or "") .. "\n"):gmatch "(.-)\r?\n" do
    list[#list + 1] = line
  end
  return list
end

--- Returns the blanks at the beginning of a line.
---@param line string
---@return string
function changes.indent(line) return line:match "^%s*" end

--- Returns the file of a chunk as reports name it: its path, or the name of an
-- embedded module in brackets.
---@param chunk string
---@return string
function changes.file(chunk) return (chunk:gsub("^[@=]", "")) end

local function characters(text) return utf8.len(text) or #text end

--- Returns the change that replaces bytes `from` to `to` of a line.
---@param chunk string
---@param n integer
---@param line string
---@param from integer
---@param to integer
---@param text string
---@return table
function changes.replacement(chunk, n, line, from, to, text)
  return {file = changes.file(chunk), text = text,
          start = {line = n, column = characters(line:sub(1, from - 1)) + 1},
          stop = {line = n, column = characters(line:sub(1, to)) + 1}}
end

--- Returns the change that adds a line before line n.
---@param chunk string
---@param n integer
---@param text string
---@return table
function changes.added(chunk, n, text)
  return {file = changes.file(chunk), text = text .. "\n",
          start = {line = n, column = 1}, stop = {line = n, column = 1}}
end

--- Searches the lines from `first` to `last`, upwards if `last` is less than
-- `first`. Returns the number of the first line before which the statement
-- `text` can be inserted without a syntax error; nil if there is none.
---@param lines string[]
---@param text string
---@param first integer
---@param last integer
---@return integer?
function changes.fitting(lines, text, first, last)
  for n = first, last, last < first and -1 or 1 do
    local all = table.move(lines, 1, #lines, 1, {})
    table.insert(all, n, text)
    if load(table.concat(all, "\n"), "=edit", "t") then return n end
  end
end

--- Returns the text of a file after an edit.
---@param text string
---@param edit table
---@return string
function changes.applied(text, edit)
  local starts, at = {1}, 1
  for line in text:gmatch "[^\n]*\n" do
    at = at + #line
    starts[#starts + 1] = at
  end
  local function byte(p)
    local from = starts[p.line] or #text + 1
    return utf8.offset(text, p.column, from) or #text + 1
  end
  local list = table.move(edit.changes, 1, #edit.changes, 1, {})
  table.sort(list, function(a, b)
    return byte(a.start) > byte(b.start)
  end)
  for _, c in ipairs(list) do
    text = text:sub(1, byte(c.start) - 1) .. c.text .. text:sub(byte(c.stop))
  end
  return text
end

return changes
-- SPDX-License-Identifier: MIT
