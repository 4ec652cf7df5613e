--- Methods that the package cutelua adds to the simulator's report.
local core = require "cute.core"
local columns = require "cutelua.text.columns"
local faults = require "cutelua.text.faults"
local simreport = require "cute.lang.simreport"
local source = require "cute.lang.source"

local Report = {}

local function recorded(report)
  if report.requests then return end
  core.fail("bad-argument", "this report has no recorded accesses: launch with "
    .. "record = true, or call k(...):profile {...}")
end

--- Returns notes on a run without faults: see cutelua.text.faults.
---@return string[]
function Report:notes()
  return (faults.notes(self))
end

--- Returns, for each leading fault, how many faults may follow from it: see
-- cutelua.text.faults.
---@return integer[] followers
---@return integer leaders
function Report:followers()
  local followers, leaders = faults.followers(self)
  return followers, leaders
end

--- Returns the lines with bank conflicts, the worst first, for a report with
-- recorded accesses: see cutelua.profile.conflict.
---@return table[]
function Report:conflicts()
  recorded(self)
  return require "cutelua.profile.conflict".list(self)
end

-- Returns a picture of the accesses to one of the report's shared tensors;
-- cute.draw calls it.
function Report:__draw(opts)
  recorded(self)
  return require "cutelua.profile.conflict".picture(self, opts)
end

--- Finds layouts for the shared tensors that have conflicts, or only for the
-- tensor called `name`: see cutelua.profile.swizzle.
---@param name? string
---@return table[]
function Report:find_swizzle(name)
  recorded(self)
  return require "cutelua.profile.swizzle".of_report(self, name)
end

-- Fields of a fault that Report.plain copies unchanged.
local FIELDS = {"kind", "message", "line", "line2", "tensor", "offset",
  "coord", "layout", "block", "thread", "other", "count", "lack", "leads",
  "way", "loop", "wait", "outside"}

--- Returns a fault in the form that docs/errors.md describes for programs.
---@param r table an element of report.reports
---@return table
function Report.plain(r)
  local out = {advice = faults.advice(r),
               file = r.file and source.short(r.file),
               file2 = r.file2 and source.short(r.file2),
               loop_file = r.loop_file and source.short(r.loop_file),
               wait_file = r.wait_file and source.short(r.wait_file)}
  for _, k in ipairs(FIELDS) do out[k] = r[k] end
  return out
end

--- Returns the report as JSON: docs/errors.md describes its form.
---@return string
function Report:json()
  local out = {form = 1, kind = "simulator", kernel = self.kernel,
               ok = self.ok, stopped = self.stopped, faults = {}, lines = {},
               instructions = self.instructions, blocks = self.ctas,
               seconds = self.seconds}
  for i, r in ipairs(self.reports) do out.faults[i] = Report.plain(r) end
  if self.fidelity then
    out.fidelity = require "cutelua.text.fidelity".plain(self.fidelity)
  end
  local notes = self:notes()
  out.notes = notes[1] and notes or nil
  for i, s in ipairs(self.lines) do
    local line = {file = source.short(s.file or "?")}
    for k, v in pairs(s) do line[k] = line[k] or v end
    out.lines[i] = line
  end
  return require "cutelua.text.json".encode(out)
end

local function ratio(a, b)
  return b > 0 and ("%.2f"):format(a / b) or "-"
end

--- Returns the memory traffic of each source line as a table in text form.
---@return string
function Report:traffic()
  local rows = {{"line", "op", "tensors", "count", "wavefronts", "conflicts",
                 "sectors/request", "efficiency"}}
  for _, s in ipairs(self.lines) do
    local tensors = s.shared or s.global or ""
    if s.shared and s.global then
      tensors = ("%s > %s"):format(s.out and s.shared or s.global,
                                   s.out and s.global or s.shared)
    end
    rows[#rows + 1] = {
      simreport.at(s.file, s.line) or "?", s.op, tensors, tostring(s.count),
      s.wavefronts > 0 and tostring(s.wavefronts) or "-",
      s.wavefronts > 0 and tostring(s.conflicts) or "-",
      ratio(s.sectors, s.requests),
      s.sectors > 0 and ("%d%%"):format(s.least_sectors * 100 // s.sectors)
        or "-"}
  end
  return core.visible(columns.table(rows, 3), true)
end

--- Returns the sum of a field of `lines` over the lines whose op matches a
-- pattern, or over all lines.
---@param field string
---@param op? string
function Report:total(field, op)
  local n = 0
  for _, s in ipairs(self.lines) do
    if not op or s.op:find(op) then n = n + s[field] end
  end
  return n
end

return Report
-- SPDX-License-Identifier: MIT
