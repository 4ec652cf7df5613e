--- Checks every launch that a host program in another language makes in its
-- tests.
local check = require "cutelua.check"
local core = require "cute.core"
local findings = require "cutelua.findings"
local kernel = require "cute.lang.kernel"
local report = require "cute.lang.report"

local watch = {}

-- The texts of the faults and notes that the checks found since the watch
-- began.
local found = {}

-- The collector of findings. All watches with the option `mend` add to it.
local collector

local function collected()
  collector = collector or findings.new("pytest", "pytest")
  return collector
end

-- Checks a launch and adds the verdict to the collected findings if opts.mend
-- is set. Returns the verdict.
local function checked(program, launch, opts)
  local v = check.launch(program, launch, opts)
  if opts.mend then
    collected().nth = collected().nth + 1
    v.launch = collected().nth
    collected():verdict(v, program, launch)
  end
  return v
end

-- Returns the text about a verdict that found a bug, did not cover all
-- schedules, or has notes; nil for other verdicts.
local function finding(v)
  if v.verdict == "bug" then
    local text = tostring(v)
    if v.report then text = text .. "\n" .. v.report:details() end
    return text
  elseif v.verdict == "incomplete" then
    return ("kernel %s: %s"):format(v.kernel, tostring(v))
  elseif v.notes[1] then
    return ("kernel %s: %s"):format(v.kernel, table.concat(v.notes, "\n"))
  end
end

--- Begins to check each simulated launch like call:check with the options
-- `opts`. With `mend`, the checks also search for repairs, and collect all
-- findings for watch.watch_findings. Without `opts`, stops checking and returns
-- the faults and notes found so far as a list of texts.
---@param opts? {seconds: number?, orders: integer?, mend: boolean?}
---@return string[]?
function watch.watch_launches(opts)
  if not opts then
    kernel.runner = nil
    return found
  end
  found = {}
  kernel.runner = {run = function(program, launch)
    found[#found + 1] = finding(checked(program, launch, opts))
    return core.sim_run(program.fn, launch)
  end}
end

--- Adds an error of a script to the collected findings, unless the error
-- reports a fault that the findings already contain.
---@param text string the error with its position, kind and details
---@param file? string file of the script
---@param line? integer
function watch.watch_error(text, file, line)
  local parts = report.parse(text)
  collected():add_error {kind = parts.kind, message = parts.sentence,
    text = text, chunk = file and "@" .. file, line = line}
end

--- Returns the collected findings as text, and begins a new collection.
---@param format "json"|"sarif"
---@param code integer the exit code of the tests
---@param folder string paths in this folder become relative to it
---@return string
function watch.watch_findings(format, code, folder)
  local record = collected():record(code)
  collector = nil
  findings.make_relative(record, folder)
  return findings.text(record, format)
end

return watch
-- SPDX-License-Identifier: MIT
