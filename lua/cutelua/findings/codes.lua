--- The stable codes of findings, such as race/smem/missing-barrier. A code
-- belongs to one of the kinds of docs/errors.md, whose section explains it.
-- cute.lang.kinds has the codes of faults.
local kinds = require "cute.lang.kinds"
local report = require "cute.lang.report"

local codes = {}

-- Rows of findings that are neither faults nor errors: {code, section of
-- docs/errors.md or a page, meaning}.
local OTHERS = {
  {"result/reference/wrong", "kernel-fault",
    "results differ from a reference"},
  {"result/gpu/wrong", "kernel-fault", "results differ from the GPU's"},
  {"error/script/interrupted", "lua", "the user interrupted the script"},
  {"performance/smem/bank-conflict", "profile.md",
    "lanes of a warp are served one after the other"},
}

-- Rows of notes on runs without faults: {pattern of the note, code, meaning}.
-- The first row that fits a note gives its code.
local NOTES = {
  {"PTX does not guarantee", "note/run/unguaranteed",
    "the run relies on behaviour that PTX does not guarantee"},
  {"NaN or infinity", "note/run/nonfinite",
    "a NaN or infinity was made from finite inputs"},
  {"TMA store lie outside", "note/run/stored-outside",
    "a TMA store stores nothing"},
  {"written here but never read", "note/run/never-read",
    "shared memory is written and never read"},
  {"were never", "note/run/left-out",
    "a part of a tensor was never read or stored"},
  {"sum", "note/run/lost-sum", "a part of a sum is lost or counted twice"},
  {"", "note/run/unlikely", "behaviour that is no fault but hardly meant"},
}

--- Returns the code of a note on a run without faults.
---@param text string
---@return string
function codes.of_note(text)
  for _, row in ipairs(NOTES) do
    if text:find(row[1]) then return row[2] end
  end
end

--- Returns the code of an error by its kind.
---@param kind string? nil if the user interrupted the run
---@return string
function codes.of_error(kind)
  local family = report.world[kind] and "environment" or "script"
  return ("error/%s/%s"):format(family, kind or "interrupted")
end

-- Adds a code once.
local function add(list, known, code, kind, about)
  if known[code] then return end
  known[code] = true
  list[#list + 1] = {code = code, kind = kind, about = about}
end

--- Returns all codes, sorted: {code =, kind = section of docs/errors.md, about
-- = meaning, of errors and notes}.
---@return table[]
function codes.list()
  local list, known = {}, {}
  kinds.each_code(function(code, kind) add(list, known, code, kind) end)
  for _, row in ipairs(kinds.ERRORS) do
    add(list, known, codes.of_error(row.kind), row.kind, row.about)
  end
  for _, row in ipairs(NOTES) do
    add(list, known, row[2], "json-reports", row[3])
  end
  for _, row in ipairs(OTHERS) do add(list, known, table.unpack(row)) end
  table.sort(list, function(a, b) return a.code < b.code end)
  return list
end

--- Returns the address, within the documentation, that explains a code's kind:
-- a section of docs/errors.md, or a page.
---@param kind string
---@return string
function codes.page(kind)
  if kind:find "%.md$" then return "docs/" .. kind end
  return "docs/errors.md#" .. kind
end

return codes
-- SPDX-License-Identifier: MIT
