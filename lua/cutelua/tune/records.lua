--- The journal of a tuner: a line for each thing that was measured, written
-- when it is known, so that a run goes on where another one ended, however it
-- ended. Several processes may add lines to one.
--
--     # cutelua tune 1, CARD, ARCH, SMS
--     PROBLEM STAGE HOT COLD CHOICE         (a tab between any two)
--
-- HOT and COLD are microseconds; STAGE is "look", a short look at a candidate,
-- "final", one of the best measured against each other, or "failed": then HOT
-- is in its place what happened.
local core = require "cute.core"
local files = require "cute.lang.files"

local records = {}

local HEAD = "# cutelua tune 1"

local Records = {}
Records.__index = Records

local function note(self, problem, stage, hot, cold, choice)
  local of = self.known[problem] or {look = {}, final = {}, failed = {}}
  self.known[problem] = of
  local time = tonumber(hot)
  if stage == "failed" then of.failed[choice] = hot
  elseif of[stage] and time and time > 0 and time < math.huge then
    of[stage][choice] = {time, tonumber(cold)}
  end
end

--- What is known of problems: known[problem][stage][choice] = {hot, cold} or
-- what happened; the words of its head; lines that are none are passed over,
-- and so is one that has no end.
---@param path string
---@return table? records nil: there is no such file, or its head has no end
---@return string? why it is none of the tuner's
---@return string? begun what there is of its head
function records.read(path)
  if core.file_kind(path) ~= "file" then return nil end
  local text, wrong = files.read(path, nil, "plain")
  if not text then return nil, ("%s: %s"):format(path, wrong) end
  local head, lines = text:match "^([^\n]*)\n(.*)$"
  if not head and HEAD:sub(1, #text) == text:sub(1, #HEAD) then
    return nil, nil, text
  elseif not head or head:sub(1, #HEAD) ~= HEAD then
    return nil, ("%s is no journal of cutelua tune"):format(path)
  end
  local self = setmetatable({path = path, known = {}, head = head:sub(#HEAD
    + 2), torn = text:sub(-1) ~= "\n"}, Records)
  for line in lines:gmatch "([^\n]*)\n" do
    local problem, stage, hot, cold, choice = line:match
      "^([^\t]*)\t(%l+)\t([^\t]*)\t([^\t]*)\t([^\t]+)$"
    if problem then note(self, problem, stage, hot, cold, choice) end
  end
  return self
end

--- The journal at `path`, begun where there is none.
---@param path string
---@param head string the card's name, architecture, multiprocessors
---@return table? records
---@return string? why
function records.open(path, head)
  local self, why, begun = records.read(path)
  local first = ("%s\t%s\n"):format(HEAD, head)
  begun = begun or ""
  if begun ~= first:sub(1, #begun) then
    why = ("%s is no journal of cutelua tune"):format(path)
  end
  if why then return nil, why end
  if self and self.head ~= head then
    return nil, ("%s is of %s, this is %s"):format(path,
      self.head:gsub("\t", ", "), (head:gsub("\t", ", ")))
  end
  local f, wrong = io.open(path, "ab")
  if not f then return nil, ("cannot write %s"):format(wrong) end
  if not self then
    self = setmetatable({path = path, known = {}, head = head}, Records)
    f:write(first:sub(#begun + 1))
  elseif self.torn then
    f:write "\n"
  end
  f:flush()
  self.file = f
  return self
end

--- What is known of a problem: {look =, final =, failed =}.
function Records:of(problem)
  return self.known[problem] or {look = {}, final = {}, failed = {}}
end

--- Adds a line: one write, so that those of two processes do not mix.
function Records:add(problem, stage, hot, cold, choice)
  note(self, problem, stage, hot, cold, choice)
  self.file:write(table.concat({problem, stage, hot, cold, choice}, "\t"), "\n")
  self.file:flush()
end

return records
