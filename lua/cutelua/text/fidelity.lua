--- Texts about the fidelity of a launch on the simulator: which of the executed
-- operations a GPU computes with the same bits, and where values that may
-- differ have an effect.
--
-- The field `fidelity` of a report is a table:
-- exact, measured, bounded, weaker: numbers of executions by warps. exact: PTX
--   and IEEE 754 specify the bits. measured: the bits are those of an H100 and
--   an H200. bounded: a GPU may return another value within a bound. weaker:
--   the simulator orders the access more weakly than PTX.
-- lines: list of {file=, line=, op=, class=, agreement=, why=, count=}. An
--   entry without op stands for all exact operations of its line.
-- reached: list of {kind=, file=, line=, op=, count=, from_file=, from_line=,
--   from_op=, from_class=}: places where a value that may differ is used for
--   control flow, an address, a selection or a synchronization.
local columns = require "cutelua.text.columns"
local core = require "cute.core"
local simreport = require "cute.lang.simreport"
local source = require "cute.lang.source"

local fidelity = {}

local WORDS = {"exact", "measured", "bounded", "weaker"}

local function place(file, line)
  return simreport.at(file, line) or "?"
end

-- Returns one row for each source line in f.lines.
-- - at: the line.
-- - what: the texts of its operations.
-- - exact, measured, bounded, weaker: how often the line executed operations of
--   this class (see above).
local function by_line(f)
  local list, of = {}, {}
  for _, e in ipairs(f.lines) do
    local at = place(e.file, e.line)
    local row = of[at]
    if not row then
      row = {at = at, what = {}}
      of[at], list[#list + 1] = row, row
    end
    row[e.agreement] = (row[e.agreement] or 0) + e.count
    if e.op then
      row.what[#row.what + 1] = ("%s (%s)"):format(e.op, e.class)
    end
  end
  return list
end

-- Returns one sentence for each class of operations that are not exact.
local function classes(f)
  local out, seen = {}, {}
  for _, e in ipairs(f.lines) do
    if e.class and not seen[e.class] then
      seen[e.class] = true
      out[#out + 1] = ("%s: %s (%s)"):format(e.class, e.why, e.agreement)
    end
  end
  return out
end

local function uses(f)
  if f.bounded == 0 then return {} end
  if not f.reached[1] then
    return {"No bounded value reached control flow, an address, a selection or "
      .. "a synchronization: results differ in rounding only."}
  end
  local out = {"Bounded values reached the following operations, so results "
    .. "may differ in more than rounding:"}
  for _, u in ipairs(f.reached) do
    out[#out + 1] = ("  %s: %s of %s (%d times), from %s of %s (%s)"):format(
      place(u.file, u.line), u.kind, u.op, u.count, u.from_op,
      place(u.from_file, u.from_line), u.from_class)
  end
  return out
end

--- Returns the fidelity of a launch as text.
---@param f table the field `fidelity` of a report
---@return string
function fidelity.fidelity(f)
  local out = {("fidelity: kernel %s on sm_%d: %d exact, %d measured, %d "
    .. "bounded, %d weaker operations of warps"):format(f.kernel or "?", f.sm,
    f.exact, f.measured, f.bounded, f.weaker)}
  local list = by_line(f)
  local rows, lines = {{"line", table.unpack(WORDS)}}, {}
  for i, r in ipairs(list) do
    rows[i + 1] = {r.at}
    for k, word in ipairs(WORDS) do
      rows[i + 1][k + 1] = tostring(r[word] or "-")
    end
  end
  for line in columns.table(rows, 1):gmatch "[^\n]+" do
    local what = list[#lines] and list[#lines].what or {}
    local text = ("  %s  %s"):format(line, table.concat(what, ", "))
    lines[#lines + 1] = text:gsub("%s+$", "")
  end
  table.move(lines, 1, #lines, #out + 1, out)
  for _, text in ipairs(classes(f)) do out[#out + 1] = text end
  for _, text in ipairs(uses(f)) do out[#out + 1] = text end
  return core.visible(table.concat(out, "\n"), true)
end

local function short(list)
  local out = {}
  for i, e in ipairs(list) do
    local copy = {}
    for k, v in pairs(e) do copy[k] = v end
    copy.file = e.file and source.short(e.file)
    copy.from_file = e.from_file and source.short(e.from_file)
    out[i] = copy
  end
  return out
end

--- Returns the fidelity of a launch as a table for json.encode.
---@param f table
---@return table
function fidelity.plain(f)
  local out = {form = 1, kind = "fidelity", kernel = f.kernel, sm = f.sm,
               lines = short(f.lines), reached = short(f.reached)}
  for _, word in ipairs(WORDS) do out[word] = f[word] end
  return out
end

return fidelity
-- SPDX-License-Identifier: MIT
