--- The texts of errors and notes. An error of cutelua is the string "file:line:
-- sentence [kind]\noperands". The package cutelua formats errors for users
-- (cutelua.text.errors). A note is a sentence about a likely mistake.
local core = require "cute.core"

local report = {}

--- A function keep(error, kernel), or nil. It is called before a pcall discards
-- an error, and stores the stack of the error. cutelua.text.errors sets it.
report.keep = nil

--- Kinds of errors that report a failure of the environment and not a mistake
-- in the script. Each is printed as one plain sentence without source lines.
-- For a failure of the GPU, the position in the script is added.
report.world = {
  ["io"] = true, ["no-gpu"] = true, ["no-nvrtc"] = true,
  ["compile-failed"] = true, ["driver-error"] = true,
  ["out-of-memory"] = true,
}

--- Returns a count with its noun: "1 fault", "2 faults".
---@param n integer
---@param one string the singular
---@param many? string the plural, where it is not `one` with an s
---@return string
function report.plural(n, one, many)
  return ("%d %s"):format(n, n == 1 and one or many or one .. "s")
end

--- Writes a text to standard error, after flushing standard output.
---@param text string
function report.tell(text)
  io.stdout:flush()
  io.stderr:write(core.message(text), "\n")
end

-- The notes written so far, as a set of texts. Some numbers are removed from
-- the texts: numbers of elements, and coordinates of elements that were never
-- read or stored. Notes that differ only in such numbers therefore count as
-- one.
local noted = {}

--- Returns a note as a line and marks it as written. Returns nil if it was
-- already written.
---@param text string
---@return string? line
function report.new_note(text)
  local key = text:gsub(": (%l+) %d+ of ", ": %1 of ")
  if key:find "%f[%a]w[ae][sr]e? never" then
    local place, rest = key:match "^(.-:%d+: )(.*)$"
    if place then key = place .. rest:gsub("%d+", "") end
  end
  if noted[key] then return nil end
  noted[key] = true
  return "cutelua: note: " .. text
end

--- A function that is called with the text of each note that report.note
-- writes, or nil.
---@type fun(text: string)?
report.noted = nil

--- Writes a note to standard error, once.
---@param text string
function report.note(text)
  local line = report.new_note(text)
  if not line then return end
  report.tell(line)
  if report.noted then report.noted(text) end
end

--- Splits the text of an error into its parts: file, line, sentence, kind and
-- the lines that follow.
---@return table parts with file, line, sentence, kind and rest (lines)
function report.parse(message)
  local first, rest = message:match "^([^\n]*)\n?(.*)$"
  local parts = {rest = {}}
  local file, line, tail = first:match "^(.-):(%d+): (.*)$"
  if file then
    parts.file, parts.line, first = file, math.tointeger(line), tail
  end
  local sentence, kind = first:match "^(.*) %[([%l][%l-]*)%]$"
  parts.sentence, parts.kind = sentence or first, kind
  for text in rest:gmatch "[^\n]+" do
    parts.rest[#parts.rest + 1] = text
  end
  return parts
end

--- Returns an error's text without its position if it is a failure of the
-- environment or of a kernel, or nil if it is misuse.
---@return string? message "sentence [kind]", and lines
function report.outcome(raised)
  if type(raised) ~= "string" then return nil end
  local parts = report.parse(raised)
  if not (report.world[parts.kind] or parts.kind == "kernel-fault") then
    return nil
  end
  return parts.line and raised:match "^[^\n]-:%d+: (.*)$" or raised
end

--- Raises an error for a failure of the environment. `message` is "sentence
-- [kind]", followed by lines of details.
---@param message string
function report.raise(message)
  local parts = report.parse(message)
  core.fail(parts.kind or "internal", parts.sentence
    .. (message:match "^[^\n]*(\n.*)$" or ""))
end

return report
-- SPDX-License-Identifier: MIT
