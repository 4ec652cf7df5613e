--- The report of a run on the simulator. The package cutelua formats the faults
-- and notes of a report (cutelua.text.faults).
--
-- A report is the table that a launch on the simulator returns:
-- ok: true if no fault was found.
-- reports: the list of faults; the fields of a fault are listed below.
-- lines: memory traffic by source line, each {file=, line=, op=, shared=,
--   global=, out= (from shared memory to global), count=, wavefronts=,
--   conflicts=, requests=, sectors=, least_sectors=, bytes=}.
-- instructions, mmas, ctas, seconds, output (of printf), stopped.
-- requests: recorded accesses to shared memory, if the launch has record
--   = true.
-- fidelity: how the results compare with a GPU's, if the launch has fidelity =
--   true (cutelua.text.fidelity). tostring(fidelity) prints it.
-- granules: the largest number of granules (units of memory in which accesses
-- are tracked) that one cluster needed.
-- relies: a list like `reports`, of places where the kernel relies on behaviour
--   of GPUs that PTX does not guarantee.
-- gaps: the parts of arguments that the launch never read or stored, each
--   {tensor=, file=, line=, stored=, map=, all=, few=, rank=, none=, size=,
--   modes=}: see SimGap in core/sim/sim.h.
-- skipped: the same for parts of inputs that the kernel may omit on purpose.
-- unread: the shared tensors with elements that the launch stored but never
--   read, each {name=, layout=, file=, line=, whole=, count=, n=, first=}: see
--   SimUnread in core/sim/sim.h.
-- nonfinite: set if an output has a NaN or infinity that the launch made from
--   finite inputs. It describes the operation: {op=, to=, operands..., result=,
--   nan=, file=, line=, block=, thread=, count=}: see SimNonfinite in
--   core/sim/sim.h.
-- twins: set if blocks store equal sums to different elements, because they
--   load the same elements. {block=, other=, file=, line=}: two of the blocks,
--   and the line of the store.
-- wrong: set if an output is not the sum or product of inputs that the shapes
--   suggest. It describes one element: {out=, at=, a=, a_at=, b=, b_at=, got=,
--   want=, copies=, scaled=, shifted=, tile=, file=, line=}: see SimWrongSum in
--   core/sim/sim.h.
-- inexact: the first result that its type cannot represent, with the fields of
--   `nonfinite`, and key, the key of its note in cutelua.text.notes.
-- signs: program.starts lists reductions (maxima, minima, products) that start
-- at 0. For each, {below =, above =} says whether the arguments that it reduces
-- have elements below 0, and above 0.
-- empty: whether the grid has no blocks, although no argument is empty. file,
--   line: the script's line of the launch.
-- notes(): sentences on behaviour that is no fault but hardly intended.
--
-- A fault has these fields, where they apply:
-- kind, message, count; file, line, line2 (of the other access); tensor,
--   layout, offset, coord; thread, block.
-- facts: the values that the message names (cute.lang.kinds).
-- lack: the missing operation.
-- leads: the number of the fault from which this fault may follow.
-- way: for a race, the path through the program from the other access to this
--   one: "straight"; "again", to a line that an unrolled loop repeats; or
--   "loop", through the end of a loop.
-- loop_file, loop: the line of a loop that has no barrier at its back edge.
-- wait_file, wait: the line of a wait at an mbarrier that passed too early.
-- outside: true if the missing barrier has to be outside of a branch.
-- twins: the texts of two coordinates that the layout maps to the element.
-- elsewhere: the coordinate of the element at the same position in another
-- stage of the pipeline. If `ready` is true, a wait completed the copy to that
-- stage, but nothing has read the stage. If `strays` is "write" or "read", this
-- access came after a wait for that stage.
-- strays: also "released", if the thread released the stage before its read.
-- same: true if the group that a wait left pending also copies to that stage.
-- open: true if the copy to that stage is in no group (cp.async without a
-- commit).
-- idle: true if no group was committed since the previous wait.
-- pair: true if the kernel allocates tensor memory for pairs of blocks.
-- before: if lack is "wait", whether the thread waited for the preceding phase
--   or, if nothing wrote the element, at any mbarrier.
-- refill: true if a cp.async fills a stage that was just read.
-- counter, counter_at, counter_value: for a race of blocks, a tensor of
--   counters, its first element that is not 0 when the launch begins, and the
--   value of this element.
-- shared: for a race of blocks on memory that two arguments have in common, the
--   names of these arguments.
-- reach: for an access outside of a tensor, how far the coordinates of its line
--   reach in the launch, without regard to conditions. Its fields are:
--   most: the largest coordinate of each mode, -1 if unknown.
--   modes: {{block=, thread=}, ...}: for each mode, masks of the axes of the
--     block and thread indices on which it depends; bit 0 is x.
--   grid, block: the extents of the grid and of the block.
--   other_grid, other_block: like `most`, if the axes x and y of the grid, or
--     of the block, were exchanged.
--   file, line: the line of an atomic on whose result a coordinate depends.
--   guarded: whether conditions with < or > surround the accesses of the line.
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
  "conflicts find_swizzle followers json notes total traffic")

local function at(file, line)
  if not line then return nil end
  return ("%s:%d"):format(source.short(file or "?"), line)
end
simreport.at = at

--- Analyzes a program once: searches for values that it computes but never
-- uses, and for similar waste. Sets the fields unread, parts, results, lost,
-- iterations, loads, lanes, repeated, starts, unscaled, partial, overlaps,
-- blocks, steps and tails, which are lists.
---@param program table
function simreport.find_losses(program)
  if program.lanes then return end
  program.unread = core.lint_unread(program.fn)
  program.parts = core.lint_unread_parts(program.fn)
  program.results = core.lint_unread_results(program.fn)
  program.starts = core.lint_zero_starts(program.fn)
  program.unscaled = core.lint_unscaled_sums(program.fn)
  program.partial = core.lint_partial_sums(program.fn)
  program.overlaps = core.lint_overlapping_steps(program.fn)
  program.blocks = core.lint_block_steps(program.fn)
  program.steps = core.lint_shared_steps(program.fn)
  program.tails = core.lint_lost_tails(program.fn)
  program.lost = core.lint_lost_sums(program.fn)
  program.iterations = core.lint_lost_iterations(program.fn)
  program.loads = core.lint_unused_loads(program.fn)
  program.lanes = core.lint_lost_lanes(program.fn)
  program.repeated = core.lint_repeated_sums(program.fn)
end

-- Reports whether a run has notes.
local function has_notes(report)
  local program = report.program
  if not report.ok or report.stopped or not program then return false end
  simreport.find_losses(program)
  if report.empty or report.nonfinite or report.inexact or report.twins
      or report.scale or report.wrong then
    return true
  end
  for _, list in ipairs {report.gaps, report.unread, program.unread,
      program.parts, program.results, program.starts, program.unscaled,
      program.partial, program.overlaps,
      program.blocks, program.steps, program.tails, program.lost,
      program.iterations, program.loads, program.lanes, program.repeated,
      report.relies or {}} do
    if list[1] then return true end
  end
  for _, s in ipairs(report.lines) do
    if s.op == "tma.store" and s.sectors == 0 then return true end
  end
  return false
end

-- Returns the notes of a run; none if the package cutelua is not installed.
local function notes_of(report)
  local notes = has_notes(report) and sign.workshop.notes
  return notes and notes(report) or {}
end

--- Writes the notes of a run to standard error, each once.
function Report:tell_notes()
  for _, text in ipairs(notes_of(self)) do
    local line = words.new_note(("kernel %s: %s"):format(self.kernel, text))
    if line then words.tell(line) end
  end
end

local function told(self, all)
  if #self.reports > 0 and sign.workshop.faults then
    return sign.workshop.faults(self, all)
  end
  local profiled = self.ok and self.requests and sign.workshop.profiled
  local text = {("simulator: kernel %s: %s"):format(self.kernel or "?",
    self.reports[1] and "faults" or self.stopped and "stopped"
    or profiled and "profile" or "nothing to report")}
  if profiled then text[2] = profiled(self) end
  for _, r in ipairs(self.reports) do
    text[#text + 1] = ("%s: %s [%s]"):format(at(r.file, r.line) or "?",
                                             r.message, r.kind)
  end
  for _, note in ipairs(notes_of(self)) do
    text[#text + 1] = "note: " .. note
  end
  return core.visible(table.concat(text, "\n"), true)
end

function Report:__tostring() return told(self, false) end

--- Returns the text of all faults, including faults that another fault may have
-- caused.
---@return string
function Report:details() return told(self, true) end

local Fidelity = {__tostring = function(f)
  return sign.workshop.fidelity and sign.workshop.fidelity(f) or "fidelity"
end}

--- Returns the sentence of a fault.
---@param r table an element of report.reports
---@return string
function simreport.sentence(r)
  return require "cute.lang.kinds".sentence(r)
end

-- For each race of blocks on an argument, sets the field `shared` if another
-- argument has the same memory. It holds the names of both arguments.
local function find_shared(report, values)
  local args = report.program.info.args
  for _, r in ipairs(report.reports) do
    for i, a in ipairs(r.kind == "block-race" and args or {}) do
      for j, b in ipairs(args) do
        local one, two = values[i] and values[i][1], values[j] and values[j][1]
        if i ~= j and a.name == r.tensor and one ~= nil and rawequal(one, two)
          and core.typename(one) == "buffer" then
          r.shared = {a.name, b.name}
        end
      end
    end
  end
end

-- Finds whether maxima, minima and products that start at 0 reduce elements
-- below 0, or above 0. Sets report.signs.
local function find_signs(report, values)
  simreport.find_losses(report.program)
  local signs = {}
  for i, o in ipairs(report.program.starts) do
    local below, above = false, false
    for n, v in ipairs(values) do
      if o.args >> n - 1 & 1 == 1 and core.typename(v[1]) == "buffer" then
        local has_below, has_above = core.buffer_signs(v[1], v[2], v[3])
        below, above = below or has_below, above or has_above
      end
    end
    signs[i] = {below = below, above = above}
  end
  report.signs = signs
end

--- Converts the table that core.sim_run returns to a report of a program.
---@param report table
---@param program? table
---@param values? table[] the arguments of the launch
function simreport.attach(report, program, values)
  for _, list in ipairs {report.reports, report.relies} do
    for _, r in ipairs(list) do r.message = simreport.sentence(r) end
  end
  report.kernel = report.kernel or (program and program.info.name)
  report.program = program
  if report.ok and program and values then find_signs(report, values) end
  if program and values then find_shared(report, values) end
  if report.fidelity then
    report.fidelity.kernel = report.kernel
    setmetatable(report.fidelity, Fidelity)
  end
  return setmetatable(report, Report)
end

return simreport
-- SPDX-License-Identifier: MIT
