--- Divides a Lua text into statements and calls. It also measures how closely
-- its statements are related to a given line by the names that they define and
-- use.
--
-- A statement begins at the first token of a line. It is {first =, last =
-- indices of tokens, line =, last_line =, defines = set of names, uses = set of
-- names}. Statements within it, such as those of a function, are not part of
-- it.
--
-- A call is {name = the last name before the bracket, chain = the whole
-- expression before it, first =, last = indices of the brackets, arguments =
-- {{first, last}, ...}, index = true for x[i], statement =}. Tables, and
-- brackets around expressions, are also calls, with the names "{" and "(".
local changes = require "cutelua.findings.changes"
local tokens = require "cutelua.text.tokens"

local code = {}

local OPENS = {["("] = true, ["{"] = true, ["["] = true}
local CLOSES = {[")"] = true, ["}"] = true, ["]"] = true}
-- Tokens that continue the statement of the previous line if they begin a line.
local CONTINUES = {["and"] = true, ["or"] = true, ["then"] = true,
                   ["do"] = true}
-- Tokens that a statement cannot end with, so it continues in the next line.
local OPEN_ENDED = {["and"] = true, ["or"] = true, ["not"] = true,
                    ["return"] = true, ["local"] = true, ["in"] = true}
local BEGINS = {["function"] = true, ["do"] = true, ["then"] = true,
                ["repeat"] = true, ["else"] = true}
local ENDS = {["end"] = true, ["until"] = true, ["elseif"] = true,
              ["else"] = true}

local function is_operator(text)
  return text:find "^[^%w_\"]" and not CLOSES[text] and text ~= "..."
end

-- Reports whether a statement begins at token i, the first of its line.
local function begins(list, i)
  local before, text = list[i - 1], list[i].text
  if not before then return true end
  if before.line == list[i].line or CONTINUES[text] or is_operator(text)
    and text ~= "(" or CLOSES[text] then return false end
  return not (OPEN_ENDED[before.text] or is_operator(before.text))
end

-- Returns the statements in a list of tokens. Sets the field `statement` of
-- each token.
local function statements_of(list)
  local out, open, depth = {}, {}, 0
  local now
  for i, t in ipairs(list) do
    if ENDS[t.text] and open[1] then
      local outer = table.remove(open)
      depth, now = outer.depth, outer.statement
    end
    if depth == 0 and begins(list, i) and not ENDS[t.text] then
      now = {first = i, last = i, line = t.line, defines = {}, uses = {}}
      out[#out + 1] = now
    end
    t.statement = now
    if now then now.last, now.last_line = i, t.line end
    if OPENS[t.text] then depth = depth + 1
    elseif CLOSES[t.text] then depth = math.max(depth - 1, 0)
    elseif BEGINS[t.text] then
      open[#open + 1] = {depth = depth, statement = now}
      -- Open brackets around the block, such as those of a call, do not count
      -- inside the block.
      depth = 0
    end
  end
  return out
end

-- Sets the names that a statement defines and uses.
local function set_names(s, list)
  local target = list[s.first].text == "local" or list[s.first].text == "for"
  for i = s.first, s.last do
    local t = list[i]
    if t.statement == s and t.name then
      local before = list[i - 1] and list[i - 1].text
      local field = before == "." or before == ":"
      local after = list[i + 1] and list[i + 1].text
      if not field and (after ~= "=" or i == s.first) then
        s.uses[t.text] = true
      end
    end
  end
  -- The names before the `=` of an assignment, or after `local` or `for`, are
  -- defined.
  local i = s.first + (target and 1 or 0)
  if list[i] and list[i].text == "function" then
    if list[i + 1] then s.defines[list[i + 1].text] = true end
    return
  end
  while list[i] and i <= s.last and (list[i].name or list[i].text == ","
    or list[i].text == "<" or list[i].text == ">") do
    if list[i].name then s.defines[list[i].text] = true end
    i = i + 1
  end
  if not target and not (list[i] and list[i].text == "=") then
    s.defines = {}
  end
end

-- Returns the index of the first token of the expression that ends before the
-- bracket at index i, such as `cute.arch.f`; nil if there is none.
local function chain_start(list, i)
  local k = i - 1
  if not (list[k] and list[k].name) then return nil end
  while list[k - 1] and (list[k - 1].text == "." or list[k - 1].text == ":")
    and list[k - 2] and list[k - 2].name do
    k = k - 2
  end
  return k
end

local function calls_of(list, text)
  local out, open = {}, {}
  local function argument(c, from, to)
    if to >= from then table.insert(c.arguments, {from, to}) end
  end
  for i, t in ipairs(list) do
    if OPENS[t.text] then
      local from = chain_start(list, i)
      local before = list[i - 1] and list[i - 1].text
      local c = {first = i, arguments = {}, at = i + 1, statement = t.statement}
      if from and before ~= "function" and list[from - 1]
        and list[from - 1].text == "function" then
        c.parameters = true
      elseif from then
        c.name, c.index = before, t.text == "["
        c.chain = text:sub(list[from].from, list[i - 1].to)
      elseif t.text ~= "[" then
        c.name, c.chain = t.text, t.text
      end
      open[#open + 1] = c
    elseif t.text == "," and open[1]
      and t.statement == open[#open].statement then
      local c = open[#open]
      argument(c, c.at, i - 1)
      c.at = i + 1
    elseif CLOSES[t.text] and open[1] then
      local c = table.remove(open)
      argument(c, c.at, i - 1)
      c.last = i
      if c.name and not c.parameters then out[#out + 1] = c end
    end
  end
  table.sort(out, function(a, b) return a.first < b.first end)
  return out
end

local Code = {}
Code.__index = Code

--- Returns the text of tokens i to k.
function Code:text_of(i, k)
  return self.text:sub(self.tokens[i].from, self.tokens[k].to)
end

--- Returns the change that replaces tokens i to k by a text.
function Code:change(i, k, text)
  local from, to = self.tokens[i], self.tokens[k]
  local function column(line, at)
    local head = self.text:sub(self.starts[line], at - 1)
    return (utf8.len(head) or #head) + 1
  end
  return {file = changes.file(self.chunk), text = text,
    start = {line = from.line, column = column(from.line, from.from)},
    stop = {line = to.line, column = column(to.line, to.to + 1)}}
end

--- Returns the statement that begins or continues in line n; nil if there is
-- none.
function Code:statement_at(n)
  local best
  for _, s in ipairs(self.statements) do
    if s.line <= n and n <= s.last_line
      and not (best and best.line > s.line) then best = s end
  end
  return best
end

-- Distances between statements that share a name. DEFINES: from a statement
-- that uses a name to one that defines it. USES: to another statement that uses
-- it.
local DEFINES, USES = 3, 6

--- Returns, for each statement, its distance from the given lines. A statement
-- that defines a name is near to lines that use the name. Statements that share
-- no names with the lines, directly or through other statements, are absent.
---@param from table<integer, number> the lines, each with its initial distance
---@return table<table, number>
function Code:distances(from)
  local far, due = {}, {}
  for n, d in pairs(from) do
    local s = self:statement_at(n)
    if s and d < (far[s] or math.huge) then
      far[s] = d
      due[#due + 1] = s
    end
  end
  local defining, using = {}, {}
  for _, s in ipairs(self.statements) do
    for name in pairs(s.defines) do
      defining[name] = defining[name] or {}
      table.insert(defining[name], s)
    end
    for name in pairs(s.uses) do
      using[name] = using[name] or {}
      table.insert(using[name], s)
    end
  end
  local function reach(list, d)
    -- Names that very many statements use, such as `cute`, do not relate
    -- statements.
    for _, s in ipairs(list and #list <= 20 and list or {}) do
      if d < (far[s] or math.huge) then
        far[s] = d
        due[#due + 1] = s
      end
    end
  end
  local i = 1
  while due[i] do
    local s = due[i]
    for name in pairs(s.uses) do
      reach(defining[name], far[s] + DEFINES)
      if far[s] < 2 * USES then reach(using[name], far[s] + USES) end
    end
    i = i + 1
  end
  return far
end

--- Returns the statements and calls of a chunk.
---@param chunk string
---@return table {chunk =, lines =, text =, starts = offsets of the lines,
-- tokens =, statements =, calls =}
function code.of(chunk)
  local lines = changes.lines(chunk)
  local text = table.concat(lines, "\n")
  local list = tokens.of(text)
  local starts = {1}
  for i, line in ipairs(lines) do starts[i + 1] = starts[i] + #line + 1 end
  local c = setmetatable({chunk = chunk, lines = lines, text = text,
    starts = starts, tokens = list, statements = statements_of(list),
    calls = calls_of(list, text)}, Code)
  for _, s in ipairs(c.statements) do set_names(s, list) end
  return c
end

return code
-- SPDX-License-Identifier: MIT
