--- Repairs of a bug as edits of a script's text. An edit is {description =,
-- changes = {{file =, start = {line =, column =}, stop = {line =, column =},
-- text =}, ...}}: `text` replaces the characters from `start` up to, but not
-- including, `stop`. Lines and columns count from 1; columns count characters.
local source = require "cute.lang.source"

local edits = {}

-- The largest number of edits of a finding.
local MOST = 8
-- The largest number of lines of one statement.
local LONGEST = 12

local function lines_of(chunk)
  local list = {}
  for line in ((source.text(chunk) or "") .. "\n"):gmatch "(.-)\r?\n" do
    list[#list + 1] = line
  end
  return list
end

local function indent_of(line) return line:match "^%s*" end

--- Returns the file of a chunk as reports name it: its path, or the name of an
-- embedded module in brackets.
---@param chunk string
---@return string
function edits.file(chunk) return (chunk:gsub("^[@=]", "")) end

local function characters(text) return utf8.len(text) or #text end

-- Returns the change that replaces bytes `from` to `to` of a line.
local function replacement(chunk, n, line, from, to, text)
  return {file = edits.file(chunk), text = text,
          start = {line = n, column = characters(line:sub(1, from - 1)) + 1},
          stop = {line = n, column = characters(line:sub(1, to)) + 1}}
end

-- Returns the lines with one more line before line n.
local function with_line(lines, n, text)
  local out = table.move(lines, 1, #lines, 1, {})
  table.insert(out, n, text)
  return out
end

local function compiles(lines)
  return load(table.concat(lines, "\n"), "=edit", "t") ~= nil
end

-- Returns the number of the line before which a new statement can stand: line
-- n, or the first line of the statement that contains it.
local function statement(lines, n, text)
  for k = n, math.max(1, n - LONGEST), -1 do
    if compiles(with_line(lines, k, text)) then return k end
  end
end

-- Returns the number of the line that closes the block which line n opens: the
-- next line with the same indentation that begins with `end`.
local function closing(lines, n)
  local indent = lines[n] and indent_of(lines[n])
  for k = n + 1, #lines do
    if indent_of(lines[k]) == indent and lines[k]:find "^%s*end%f[%W]" then
      return k
    end
  end
end

-- Returns the number of the line that ends the kernel around line n.
local function kernel_end(lines, n)
  for k = n, 1, -1 do
    if lines[k] and lines[k]:find "kernel%s*%(" then
      return closing(lines, k)
    end
  end
end

-- Returns the expression that counts the executions of line n: the variable of
-- the loop around a line with that indentation, or 0.
local function counter(lines, n, indent)
  for k = n - 1, 1, -1 do
    local line = lines[k]
    if line:find "%S" and #indent_of(line) < indent then
      indent = #indent_of(line)
      local name = line:match "^%s*for%s+([%a_][%w_]*)%s+in%s+cute%.range%("
        or line:match "^%s*for%s+([%a_][%w_]*)%s*=%s*0%s*,"
      if name then return name end
      if line:find "kernel%s*%(" then break end
    end
  end
  return "0"
end

-- Returns the words of an operation on a ring of mbarriers as a statement, at
-- line n; words of other operations unchanged, and nil if the script does not
-- name the ring as the words do. In the words, n counts executions.
local function statement_of(words, lines, n, indent)
  local code, lane = words:match "^(.-), where n counts its executions,(.*)$"
  code = code or words
  if lane then
    local ring = code:match "%(([%a_][%w_]*)"
    if not table.concat(lines, "\n"):find("%f[%w_]" .. ring .. "%f[^%w_]") then
      return nil
    end
    local count = counter(lines, n, indent)
    code = code:gsub(" %+ n %% 1%f[%D]", ""):gsub("n // 1%f[%D]", "n")
      :gsub("%f[%w_]n%f[^%w_]", count)
    if lane == " by one lane" then
      code = ("cute.when((cute.arch.thread_idx() %% 32):eq(0), function() "
        .. "%s end)"):format(code)
    end
  end
  if code:find("...", 1, true) or not load(code, "=words", "t") then
    return nil
  end
  return code
end

-- Returns the change that inserts an operation at a place of
-- cutelua.check.repair; nil if the text of the operation is no statement, or
-- the script has no such line.
local function insertion(place, words)
  local lines, n = lines_of(place.file), place.line
  if place.last then n = kernel_end(lines, n)
  elseif place.ends then n = closing(lines, n) end
  if not n or not lines[n] then return nil end
  local inside = n ~= place.line and lines[n - 1] or lines[n]
  local indent = indent_of(inside)
  local code = statement_of(words, lines, n, #indent)
  local text = code and indent .. code
  n = text and statement(lines, n, text)
  if not n then return nil end
  return {file = edits.file(place.file), text = text .. "\n",
          start = {line = n, column = 1}, stop = {line = n, column = 1}}
end

-- Returns the lines of a call that begins in a place's line: {{number, text},
-- ...}, up to the line in which its brackets are closed.
local function call_lines(place)
  local list, open = {}, 0
  for n = place.line, place.line + LONGEST do
    local line = source.line(place.file, n)
    if not line then break end
    list[#list + 1] = {n, line}
    local _, opening = line:gsub("[({]", "")
    local _, closed = line:gsub("[)}]", "")
    open = open + opening - closed
    if open <= 0 then break end
  end
  return list
end

-- Returns the change that replaces what a pattern captures in the call at a
-- place by a text, or by what a function returns for the capture; nil if the
-- pattern matches no line. The pattern has position captures around the text.
local function captured(place, pattern, with)
  for _, one in ipairs(call_lines(place)) do
    local n, line = table.unpack(one)
    local from, to = line:match(pattern)
    if from then
      local text = type(with) == "string" and with
        or with(line:sub(from, to - 1))
      return replacement(place.file, n, line, from, to - 1, text)
    end
  end
end

-- Returns the change in which the call of the function that `old` calls, or of
-- a variant of it such as cluster_arrive_relaxed, is replaced by `words`.
local function other_call(place, words, old)
  local name = old:match "([%w_]+)%("
  if not name then return nil end
  name = "()[%w_.]*%f[%w_]" .. name
  return captured(place, name .. "%s*%b()()", words)
    or captured(place, name .. "_%l+%s*%b()()", words)
end

-- Returns the change in which the option `name = value` of a call is set:
-- another value replaces the old one, or the option is added.
local function option(place, name, value)
  local new = ("%s = %s"):format(name, value)
  return captured(place, "()%f[%w_]" .. name .. "%s*=%s*[\"'][^\"']*[\"']()",
                  new)
    or captured(place, "(){%s*}()", ("{%s}"):format(new))
    or captured(place, "()()}[^{}]*$", ", " .. new)
    or captured(place, "()()%)%s*$", (", {%s}"):format(new))
end

-- Repairs whose words are no text of a script: {pattern of the words, pattern
-- of the text to replace, or a function that returns the new text}. Without a
-- function, the first capture of the words is the new text.
local REWRITTEN = {
  {"^mbarrier_init%(%.%.%., (%d+)%)$",
   "mbarrier_init%s*%(.*,%s*()[^,()]+()%)"},
  {"^(%d+) bytes expected$", "expect_tx%s*%(.*,%s*()[^,()]+()%)"},
  {"^the other parity of mbarrier_wait$",
   "mbarrier_wait%s*%([^,]+,%s*()[^,(){}]+()%s*[,)]", function(parity)
     return parity == "0" and "1" or parity == "1" and "0"
       or ("1 - (%s)"):format(parity)
   end},
}

-- Returns the change that a repair names by its words; nil if it is no edit of
-- the script's text.
local function changed_line(place, words)
  for _, row in ipairs(REWRITTEN) do
    local new = words:match(row[1])
    if new then return captured(place, row[2], row[3] or new) end
  end
  local name, value = words:match '^(%l+) = ("%l[%w_]*")$'
  if name then return option(place, name, value) end
  local new, old = words:match "^(.-) in place of (.+)$"
  local line = source.line(place.file, place.line)
  new = line and statement_of(new or words, lines_of(place.file), place.line,
                              #indent_of(line))
  return new and other_call(place, new, old or new)
end

-- Adds the edit of a repair that replaces operations, at all of its places
-- together.
local function add_changed(list, m)
  local changes = {}
  for _, p in ipairs(m.places) do
    local change = changed_line(p, p.words or m.words)
    if not change then return end
    changes[#changes + 1] = change
  end
  list[#list + 1] = {description = m.words, changes = changes}
end

-- Returns the edits of a repair, the best first.
local function proposed(m)
  local list = {}
  if m.stands then
    add_changed(list, m)
    for _, o in ipairs(m.others or {}) do add_changed(list, o) end
    return list
  end
  for _, p in ipairs(m.places) do
    local change = insertion(p, m.words)
    if change and #list < MOST then
      list[#list + 1] = {description = ("insert %s"):format(m.words),
                         changes = {change}}
    end
  end
  return list
end

--- Returns the edits of a repair, the best first. Each leaves a script that
-- compiles.
---@param m table of cutelua.check.repair.mend
---@return table[]
function edits.of(m)
  local text, list = source.text(m.places[1].file), {}
  for _, e in ipairs(text and proposed(m) or {}) do
    if load(edits.applied(text, e), "=edit", "t") then list[#list + 1] = e end
  end
  return list
end

--- Returns a text with the changes of an edit, of one file.
---@param text string
---@param edit table
---@return string
function edits.applied(text, edit)
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

return edits
-- SPDX-License-Identifier: MIT
