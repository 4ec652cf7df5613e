--- `--fidelity`: prints for each launch which operations a GPU computes with
-- the same bits as the simulator. Each kernel is shown once for each grid.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local findings = require "cutelua.findings"
local json = require "cutelua.text.json"
local kernel = require "cute.lang.kernel"
local report = require "cute.lang.report"
local simreport = require "cute.lang.simreport"
local texts = require "cutelua.text.fidelity"

local fidelity = {}

fidelity.FORMATS = {text = true, json = true}

--- Returns a function that prints the fidelity of a launch, unless it printed
-- the same program and grid before.
---@param format string text or json
---@param out userdata a file
function fidelity.printer(format, out)
  local seen = {}
  return function(program, launch, found)
    local key = ("%s %s"):format(program.fn, table.concat(launch.grid, ","))
    if seen[key] or not found.fidelity then return end
    seen[key] = true
    local f = simreport.attach(found, program).fidelity
    out:write(format == "json" and json.encode(texts.plain(f))
      or texts.fidelity(f), "\n")
    out:flush()
  end
end

--- Makes all later launches run on the simulator, and prints how closely it
-- models them. If the current runner of launches has a function `fidelity`, as
-- in `cutelua check`, the runner prints this instead.
---@param format? string text (the default) or json; with json, the script's
-- output goes to standard error
---@return boolean? ok
---@return string? message
function fidelity.start(format)
  local runner = kernel.runner
  if runner and runner.fidelity then
    runner.fidelity()
    return true
  end
  local out, why = io.stdout, nil
  if format == "json" then out, why = require "cute.sys".divert() end
  if not out then
    return nil, ("cannot write standard output: %s [io]"):format(why)
  end
  local show = fidelity.printer(format or "text", out)
  local run = runner and runner.run or function(program, launch)
    return core.sim_run(program.fn, launch)
  end
  devices.simulates = true
  kernel.runner = {run = function(program, launch)
    launch.fidelity = true
    local found = run(program, launch)
    show(program, launch, found)
    return found
  end}
  return true
end

-- Parses --fidelity and --format at the beginning of the arguments after `run`.
-- Returns the index of the next word, whether --fidelity is given, and the
-- format; nil and a message for an invalid format.
local function options(words)
  local i, on, format = 1, false, nil
  while words[i] == "--fidelity" or words[i] == "--format" do
    if words[i] == "--fidelity" then
      on, i = true, i + 1
    else
      local why
      format, why = findings.format(words[i + 1])
      if not format then return nil, why end
      i = i + 2
    end
  end
  if on and format == "sarif" then
    return nil, "--format sarif has no place for the result of --fidelity"
  end
  return i, on, format
end

--- Removes --fidelity and --format from the beginning of the arguments after
-- `run`. Starts --fidelity if it is given. Returns the other arguments. If
-- --fidelity is not given, also returns the format of the findings. Reports
-- invalid arguments and returns nil.
---@param words string[]
---@return string[]?
---@return string? format
function fidelity.take(words)
  local i, on, format = options(words)
  local ok, why = i, on
  if ok and on then ok, why = fidelity.start(format) end
  if not ok then
    report.tell("cutelua: run: " .. why)
    return nil
  end
  words = table.move(words, i, #words, 1, {[0] = words[0]})
  if on then format = nil end
  return words, format
end

return fidelity
-- SPDX-License-Identifier: MIT
