--- The report of a run on the simulator, and its notes. The package cutelua
-- formats its faults (cutelua.text.faults).
--
-- A report is the table that a launch on the simulator returns:
-- ok: true if no fault was found.
-- reports: the faults, each {kind=, message=, file=, line=, line2=, tensor=,
--   offset=, coord=, layout=, thread=, block=, count=, lack= (the missing
--   operation, where known), leads= (number of the fault that this one may
--   follow from), way= (of a race: the path through the program from the other
--   access to this one: "straight", "again", to a line of an unrolled loop, or
--   "loop", through its end), loop_file=, loop= (that loop; else one that leads
--   back with no barrier), outside= (the barrier has to be outside of a
--   branch)}.
-- lines: memory traffic by source line, each {file=, line=, op=, shared=,
--   global=, out= (from shared memory to global), count=, wavefronts=,
--   conflicts=, requests=, sectors=, least_sectors=, bytes=}.
-- instructions, mmas, ctas, seconds, output (of printf), stopped.
-- requests: recorded accesses to shared memory, if the launch has record
--   = true.
-- granules: largest number of memory granules that a cluster tracked.
-- relies: list, like `reports`: where the kernel relies on behaviour of GPUs
--   that PTX does not guarantee.
-- few: set if the grid seems too small for an output: see core/sim/left.c.
-- notes(): sentences on behaviour that is no fault but hardly intended.
--
-- tostring(report) prints the leading faults, report:details() all of them,
-- report:traffic() the table of lines, report:json() everything for programs.
local core = require "cute.core"
local sign = require "cute.lang.signature"
local source = require "cute.lang.source"
local words = require "cute.lang.report"

local simreport = {}

local Report = {}
Report.__index = Report
simreport.Report = sign.extensible("report", Report,
  "conflicts find_swizzle json total traffic")

local function at(file, line)
  if not line then return nil end
  return ("%s:%d"):format(source.short(file or "?"), line)
end
simreport.at = at

--- Returns two values: a list with, for each leading fault, the number of other
-- faults that may follow from it; and the number of leading faults.
---@return integer[] followers
---@return integer leaders
function simreport.followers(report)
  local count, leaders = {}, 0
  for _, r in ipairs(report.reports) do
    if r.leads then count[r.leads] = (count[r.leads] or 0) + 1
    else leaders = leaders + 1 end
  end
  return count, leaders
end

Report.followers = simreport.followers

-- Adds a note for each line whose TMA stores wrote nothing, because all their
-- boxes are outside of the tensor.
local function stores_outside(lines, add)
  local known, list = {}, {}
  for _, s in ipairs(lines) do
    if s.op == "tma.store" then
      local place = at(s.file, s.line)
      local one = known[place or "?"]
      if not one then
        one = {place = place, tensor = s.global, count = 0, sectors = 0}
        known[place or "?"], list[#list + 1] = one, one
      end
      one.count, one.sectors = one.count + s.count, one.sectors + s.sectors
    end
  end
  for _, one in ipairs(list) do
    if one.count > 0 and one.sectors == 0 then
      add(one.place, ("all boxes of this TMA store lie outside tensor '%s': "
        .. "nothing is stored"):format(one.tensor))
    end
  end
end

--- Returns notes on a run without faults. They are sentences about behaviour
-- that was probably not intended, with source lines.
---@return string[]
function Report:notes()
  local list = {}
  local function add(place, text)
    list[#list + 1] = core.visible(("%s: %s"):format(place or "?", text))
  end
  local program = self.program
  if not self.ok or self.stopped or not program then return list end
  for i, r in ipairs(self.relies or {}) do
    local text = sign.workshop.reliance
    list[i] = text and text(r) or r.message
  end
  stores_outside(self.lines, add)
  program.unread = program.unread or core.sim_unread(program.fn)
  for _, o in ipairs(program.unread) do
    add(at(o.file, o.line), ("shared tensor '%s' is written here but never "
      .. "read"):format(o.name))
  end
  local f = self.few
  if f then
    add(at(f.file, f.line), ("%d of %d elements of global tensor '%s' were "
      .. "never written: the stores along mode %d end at %d of %d, %d for each "
      .. "block; is the grid too small?"):format(f.none, f.all, f.tensor,
      f.mode, f.from, f.extent, f.each))
  end
  return list
end

--- Returns a kernel's note as it is printed and marks it as written. Returns
-- nil if it was already written.
---@param kernel string
---@param text string
---@return string? note as printed
function simreport.new_note(kernel, text)
  return words.new_note(("kernel %s: %s"):format(kernel, text))
end

--- Writes the notes of a run to standard error, each once.
function Report:tell_notes()
  for _, text in ipairs(self:notes()) do
    words.note(("kernel %s: %s"):format(self.kernel, text))
  end
end

local function told(self, all)
  if #self.reports > 0 and sign.workshop.faults then
    return sign.workshop.faults(self, all)
  end
  local text = {("simulator: kernel %s: %s"):format(self.kernel or "?",
    self.reports[1] and "faults" or self.stopped and "stopped"
    or "nothing to report")}
  for _, r in ipairs(self.reports) do
    text[#text + 1] = ("%s: %s [%s]"):format(at(r.file, r.line) or "?",
                                             r.message, r.kind)
  end
  for _, note in ipairs(self:notes()) do text[#text + 1] = "note: " .. note end
  return core.visible(table.concat(text, "\n"), true)
end

function Report:__tostring() return told(self, false) end

--- Returns the text of all faults, including those that may follow from another
-- one.
---@return string
function Report:details() return told(self, true) end

--- Converts the table that core.sim_run returns to a report of a program.
function simreport.attach(report, program)
  report.kernel = report.kernel or (program and program.info.name)
  report.program = program
  return setmetatable(report, Report)
end

return simreport
-- SPDX-License-Identifier: MIT
