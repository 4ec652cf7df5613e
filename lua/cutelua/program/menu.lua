--- Implements the TAB key. The first press completes the common prefix of all
-- candidates. If this adds nothing, further presses show the candidates, one
-- terminal page per press, and then insert them into the line one after
-- another.
local complete = require "cutelua.program.complete"
local core = require "cute.core"

local menu = {}
menu.__index = menu

-- Least width, in columns, at which candidates are shown with their meanings.
-- Narrower terminals show only the names.
local LEAST = 24
-- The largest width of the column of names.
local WIDEST = 38
-- The least number of rows of a page.
local FEWEST = 4

--- Returns a new menu. Its state is kept between presses of TAB.
---@param find? function candidates for a text; complete.find when absent
---@return table
function menu.new(find)
  return setmetatable({find = find or complete.find}, menu)
end

-- ---- pages ----

local function width_of(text) return utf8.len(text) or #text end

local function padded(text, width)
  return text .. (" "):rep(width - width_of(text))
end

local function widest(list, from, to)
  local width = 0
  for i = from, to do width = math.max(width, width_of(list[i])) end
  return width
end

-- Returns lines with names from number `from` on, in columns that are read
-- downwards. Also returns the index of the last name shown.
local function in_columns(list, from, columns, rows)
  local width = widest(list, from, #list)
  local across = math.max(1, (columns + 1) // (width + 2))
  rows = math.min((#list - from + across) // across, rows)
  local last, out = math.min(#list, from - 1 + rows * across), {}
  for r = from, from + rows - 1 do
    local line = {}
    for i = r, last, rows do line[#line + 1] = padded(list[i], width) end
    out[#out + 1] = table.concat(line, "  "):gsub(" +$", "")
  end
  return out, last
end

local function cut(text, width)
  text = core.visible(text)
  if width_of(text) <= width then return text end
  return text:sub(1, (utf8.offset(text, width - 2) or width - 2) - 1) .. "..."
end

-- Returns lines that show one name and its meaning each, and the index of the
-- last name shown. Returns nil if no meaning is known.
local function with_meaning(list, about, from, columns, rows)
  local last = math.min(#list, from - 1 + rows)
  local width = math.min(widest(list, from, last), WIDEST)
  if columns - width - 2 < LEAST then return nil end
  local out, known = {}, false
  for i = from, last do
    local ok, text = pcall(about, list[i])
    text = ok and text or ""
    known = known or text ~= ""
    local head = padded(list[i], width) .. "  "
    out[#out + 1] = (head .. cut(text, columns - width_of(head) - 1))
      :gsub(" +$", "")
  end
  return known and out or nil, last
end

-- Returns the next page of candidates as text. If more candidates follow, its
-- last line shows their number.
local function page(self, columns, rows)
  rows = math.max(FEWEST, rows)
  local from, out, last = self.shown + 1, nil, nil
  -- Leave the last row for the number of names that follow.
  if #self.list - self.shown > rows then rows = rows - 1 end
  if self.about then
    out, last = with_meaning(self.list, self.about, from, columns, rows)
    if not out and from == 1 then self.about = nil end
  end
  if not out then out, last = in_columns(self.list, from, columns, rows) end
  self.shown = last
  if last < #self.list then
    out[#out + 1] = ("... %d more: TAB"):format(#self.list - last)
  end
  return table.concat(out, "\n") .. "\n"
end

-- ---- candidates ----

local function common(list)
  local first, last = list[1], list[#list]  -- sorted
  local n = 0
  while n < #first and first:byte(n + 1) == last:byte(n + 1) do n = n + 1 end
  return first:sub(1, n)
end

local function put_in(self, candidate)
  return candidate:sub(#self.word + 1) .. (self.place == "option" and " = "
    or "")
end

-- Replaces the candidate that was inserted last by the next candidate or, if
-- step is -1, by the previous one.
local function turn(self, text, step)
  local old = self.at and put_in(self, self.list[self.at]) or ""
  local n = #self.list
  self.at = self.at and (self.at - 1 + step) % n + 1 or step > 0 and 1 or n
  local new = put_in(self, self.list[self.at])
  self.text = text:sub(1, #text - #old) .. new
  return new, nil, utf8.len(old) or #old
end

--- Handles a press of TAB or Shift-TAB: returns the text to insert, the text to
-- show below the line, and the number of characters before the cursor that the
-- insertion replaces.
---@param text string text before the cursor, including lines of an unfinished
-- input
---@param env table the globals
---@param columns integer terminal width
---@param rows integer largest number of rows of a page
---@param back? boolean true for Shift-TAB, which inserts the previous candidate
---@return string? insert, string? show, integer? drop
function menu:press(text, env, columns, rows, back)
  if self.list and self.text == text then
    if not back and not self.at and self.shown < #self.list then
      return nil, page(self, columns, rows)
    end
    return turn(self, text, back and -1 or 1)
  end
  self.list = nil
  if back then return nil end
  if not text:match "[^\n]*$":find "%S" then return "  " end
  local list, word, place, about = self.find(text, env)
  if #list == 0 then return place == "string" and "\t" or nil end
  local all = common(list)
  if #list == 1 and place == "option" then all = all .. " = " end
  if #all > #word then return all:sub(#word + 1) end
  if #list == 1 then return nil end
  self.list, self.word, self.place, self.about = list, word, place, about
  self.text, self.at, self.shown = text, nil, 0
  return nil, page(self, columns, rows)
end

return menu
-- SPDX-License-Identifier: MIT
