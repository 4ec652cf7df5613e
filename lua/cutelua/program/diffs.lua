--- `cutelua diff BEFORE AFTER`: runs two versions of a script on the simulator
-- and compares their kernels by name (cute.diff).
local cli = require "cutelua.program.cli"
local collected = require "cutelua.program.collected"
local devices = require "cute.lang.devices"
local diff = require "cutelua.program.diff"
local history = require "cute.lang.history"
local report = require "cute.lang.report"

local diffs = {}

local SPEC = {
  name = "diff", script = "diff",
  about = "Runs two versions of a script on the simulator, and shows for each "
    .. "kernel, by its name, what changed: CUDA C, instructions, registers, "
    .. "shared memory, counters. Exit code: 0 compared, 1 a script has an "
    .. "error or a fault, or the second one launched nothing, 2 a wrong "
    .. "command line, 130 interrupted.",
  args = {name = "BEFORE AFTER [arguments]", many = true,
          help = "the two scripts, and the arguments of both"},
  options = {
    {"--format", "choice", choices = {"text", "json", "sarif"},
     default = "text", help = "docs/findings.md"},
  },
}

-- Divides the command's words into its options, and the two scripts with their
-- arguments.
local function divide(words)
  local i = 1
  while (words[i] or ""):find "^%-." do
    i = i + (words[i] == "--format" and 2 or 1)
  end
  return table.move(words, 1, i - 1, 1, {}), table.move(words, i, #words, 1, {})
end

-- Runs a script. Returns its exit code, its programs by kernel name, and the
-- kernel names in the order of launches.
local function programs_of(opt, run, words)
  local by, names = {}, {}
  history.watcher = function(p)
    local name = p.program.info.name
    if not by[name] then names[#names + 1] = name end
    by[name] = by[name] or p.program
  end
  local code = collected.call(opt, run, words)
  history.watcher = nil
  return code, by, names
end

-- Prints the differences of two versions of a script. Adds them to the record,
-- if there is a collector.
local function compare(before, now, names, collector)
  for _, name in ipairs(names) do
    local d = before[name] and diff.diff(before[name], now[name])
    local text = d and tostring(d)
      or ("kernel %s is only in the second version"):format(name)
    print(text)
    if collector then
      collector:measure {kind = "diff", kernel = name, text = text,
        cuda = d and d.cuda or nil, new = not d or nil,
        before = d and before[name].runs.last, now = now[name].runs.last}
    end
  end
end

-- Runs both versions and compares them; returns an exit code.
local function both(opt, run, words)
  local collector = opt.collector
  if collector then collector:watch() end
  devices.simulates = true
  local function of(script)
    return programs_of(opt, run,
                       table.move(words, 3, #words, 2, {script}))
  end
  local code, before, was = of(words[1])
  local now, names
  if code == 0 then code, now, names = of(words[2]) end
  devices.simulates = nil
  if code ~= 0 then return code end
  for _, name in ipairs(was) do
    if not now[name] then
      print(("kernel %s is only in the first version"):format(name))
    end
  end
  if not names[1] then
    local why = "the second script launched nothing"
    report.tell("cutelua: diff: " .. why)
    if collector then collector:fail(why) end
    return 1
  end
  compare(before, now, names, collector)
  return 0
end

--- Runs `cutelua diff` with these words; returns its exit code.
---@param words string[]
---@param run fun(words: string[]) runs the script words[1]
---@param opt table of the program
---@return integer
function diffs.main(words, run, opt)
  local options, scripts = divide(words)
  local own = cli.parse(options, SPEC)
  if not scripts[2] then
    report.tell "cutelua: diff: which two scripts?"
    return 2
  end
  return collected.run(opt, own.format, "diff", scripts, 1, function()
    return both(opt, run, scripts)
  end)
end

return diffs
-- SPDX-License-Identifier: MIT
