--- The journal of the tuner. Each measurement is written immediately as one
-- line, so that a run can continue after an earlier run ended or was killed.
-- Several processes may append to one journal.
--
--     # cutelua tune 1, CARD, ARCH, SMS
--     PROBLEM STAGE HOT COLD CHOICE         (a tab between any two)
--
-- HOT and COLD are times in microseconds. STAGE "look" is a brief measurement
-- of one candidate. STAGE "final" is a measurement of the fastest candidates
-- against each other. For STAGE "failed", the reason is in the place of HOT.
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

--- Reads a journal. The field known[problem][stage][choice] is {hot, cold}, or
-- the reason of a failure. The field head is the rest of the first line.
-- Invalid lines and an incomplete last line are skipped.
---@param path string
---@return table? records nil if the file does not exist, or if its first line
-- is incomplete
---@return string? why the reason why the file is not a journal
---@return string? begun the incomplete first line
function records.read(path)
  if core.file_kind(path) ~= "file" then return nil end
  local text, wrong = files.read(path, nil, "plain")
  if not text then return nil, ("%s: %s"):format(path, wrong) end
  local head, lines = text:match "^([^\n]*)\n(.*)$"
  if not head and HEAD:sub(1, #text) == text:sub(1, #HEAD) then
    return nil, nil, text
  elseif not head or head:sub(1, #HEAD) ~= HEAD then
    return nil, ("%s is not a journal of cutelua tune"):format(path)
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

--- Opens the journal at `path`. Creates the journal if it does not exist.
---@param path string
---@param head string the GPU's name, architecture and number of SMs
---@return table? records
---@return string? why
function records.open(path, head)
  local self, why, begun = records.read(path)
  local first = ("%s\t%s\n"):format(HEAD, head)
  begun = begun or ""
  if begun ~= first:sub(1, #begun) then
    why = ("%s is not a journal of cutelua tune"):format(path)
  end
  if why then return nil, why end
  if self and self.head ~= head then
    return nil, ("%s was recorded on %s, but this GPU is %s"):format(path,
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

--- Returns the recorded results of a problem: {look =, final =, failed =}.
function Records:of(problem)
  return self.known[problem] or {look = {}, final = {}, failed = {}}
end

--- Appends a line to the journal in a single write, so that the lines of two
-- processes do not interleave.
function Records:add(problem, stage, hot, cold, choice)
  note(self, problem, stage, hot, cold, choice)
  self.file:write(table.concat({problem, stage, hot, cold, choice}, "\t"), "\n")
  self.file:flush()
end

return records
-- SPDX-License-Identifier: MIT
