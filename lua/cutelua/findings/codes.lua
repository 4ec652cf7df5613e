--- The stable codes of findings, such as race/smem/missing-barrier.
-- cute.lang.kinds defines the codes. A code belongs to a kind, which has a
-- section in docs/errors.md.
local kinds = require "cute.lang.kinds"
local notes = require "cutelua.text.notes"
local report = require "cute.lang.report"

local codes = {}

--- Returns the code of an error by its kind.
---@param kind string? nil if the user interrupted the run
---@return string
function codes.of_error(kind)
  local family = report.world[kind] and "environment" or "script"
  return ("error/%s/%s"):format(family, kind or "interrupted")
end

-- Adds a code to the list, unless the set `known` contains it.
local function add(list, known, code, kind, about)
  if known[code] then return end
  known[code] = true
  list[#list + 1] = {code = code, kind = kind, about = about}
end

--- Returns all codes, sorted: {code =, kind = section of docs/errors.md, about
-- = the meaning, for codes of errors and notes}.
---@return table[]
function codes.list()
  local list, known = {}, {}
  kinds.each_code(function(code, kind) add(list, known, code, kind) end)
  for _, row in ipairs(kinds.ERRORS) do
    add(list, known, codes.of_error(row.kind), row.kind, row.about)
  end
  for _, row in pairs(notes.ROWS) do
    add(list, known, row[1], "json-reports", row[2])
  end
  for _, row in ipairs(kinds.OTHERS) do
    add(list, known, table.unpack(row))
  end
  table.sort(list, function(a, b) return a.code < b.code end)
  return list
end

--- Returns the address, within the documentation, of the text that explains a
-- code's kind: a section of docs/errors.md, or a page.
---@param kind string
---@return string
function codes.page(kind)
  if kind:find "%.md$" then return "docs/" .. kind end
  return "docs/errors.md#" .. kind
end

return codes
-- SPDX-License-Identifier: MIT
