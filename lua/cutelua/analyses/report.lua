--- The methods that the workshop adds to the simulator's report.
local core = require "cute.core"
local simreport = require "cute.lang.simreport"
local source = require "cute.lang.source"

local Report = {}

local function recorded(report)
  if report.requests then return end
  core.fail("bad-argument", "this report has no requests: launch with record = "
    .. "true, or call k(...):profile {...}")
end

--- The lines whose requests to shared memory are in conflict, the worst first,
-- of a report with its requests: see cutelua.profile.conflict.
---@return table[]
function Report:conflicts()
  recorded(self)
  return require "cutelua.profile.conflict".list(self)
end

-- What cute.draw makes of it: accesses to one of its shared tensors.
function Report:__draw(opts)
  recorded(self)
  return require "cutelua.profile.conflict".picture(self, opts)
end

--- Layouts for the shared tensors that have conflicts, or for the one of that
-- name: see cutelua.profile.swizzle.
---@param name? string
---@return table[]
function Report:find_swizzle(name)
  recorded(self)
  return require "cutelua.profile.swizzle".of_report(self, name)
end

--- The report as JSON: docs/errors.md has its form.
---@return string
function Report:json()
  local out = {form = 1, kind = "simulator", kernel = self.kernel,
               ok = self.ok, stopped = self.stopped, faults = {}, lines = {},
               instructions = self.instructions, blocks = self.ctas,
               seconds = self.seconds}
  for i, r in ipairs(self.reports) do out.faults[i] = simreport.plain(r) end
  local notes = self:notes()
  out.notes = notes[1] and notes or nil
  for i, s in ipairs(self.lines) do
    local line = {file = source.short(s.file or "?")}
    for k, v in pairs(s) do line[k] = line[k] or v end
    out.lines[i] = line
  end
  return require "cutelua.text.json".encode(out)
end

return Report
