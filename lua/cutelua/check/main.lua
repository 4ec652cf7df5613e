--- `cutelua check SCRIPT`: checks every launch of a script on the simulator
-- before the launch runs. A launch is checked again only if its grid, its
-- numeric arguments, or the contents of its integer tensors change.
local check = require "cutelua.check"
local cli = require "cutelua.program.cli"
local compare = require "cutelua.check.compare"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local fidelity = require "cutelua.program.fidelity"
local findings = require "cutelua.findings"
local json = require "cutelua.text.json"
local kernel = require "cute.lang.kernel"
local lessonlib = require "cutelua.bench.lessonlib"
local literal = require "cutelua.text.literal"
local memory = require "cutelua.program.memory"
local repair = require "cutelua.check.repair"
local report = require "cute.lang.report"
local warp_schedule = require "cutelua.check.warp_schedule"
local sign = require "cute.lang.signature"
local faults = require "cutelua.text.faults"
local sizes = require "cutelua.check.sizes"
local sys = require "cute.sys"

local main = {}

--- If true, cutelua.program.main tries edits of the script after a bug.
main.repairs = true

main.HELP = [==[
usage: cutelua check [options] script [arguments]
Runs a script on the simulator and checks every possible schedule of each of
its launches. The verdict is "ok", "bug" with a schedule that shows it, or
"incomplete" with the parts that were not covered. Results of a launch that is
ok are compared with the GPU's, if there is one. A lesson's results are also
compared with its reference.

  --orders N     the most runs of one launch (default 2000)
  --seconds S    ends the check of all launches after S seconds (default: 60
                 for each launch)
  --kernel NAME  checks this kernel only
  --surgeon      if ok: reports the barriers, waits and fences that are needed,
                 and weaker ones that suffice; for a bug: proposes a repair
  --sizes        lessons: also checks other problem sizes (1, a tile less, a
                 tile more, no multiple of the tile); a size that a kernel
                 rejects is no bug
  --strict       notes about behaviour that cards have and PTX does not
                 guarantee are bugs
  --fidelity     also prints which operations a GPU computes with the same bits
                 (docs/simulator.md); with --json as a line of its own
  --no-gpu       does not compare with a GPU
  --json         prints verdicts as JSON, one a line, on standard output; the
                 script's output goes to standard error
  --format FORM  text, json or sarif (text); json and sarif print one record of
                 all findings, with repairs (docs/findings.md)
  --save FILE    writes the schedule of a bug
  --replay FILE  runs only the launch of that schedule, in that schedule
  --help         prints this text and stops

A kernel's launches are checked once for each grid, each set of numbers as
arguments, and each set of initial values of integer tensors (up to 16 sets).

Exit code: 0 all ok, 1 a bug, an error or no launch, 2 a wrong command line,
3 a part was not covered, 130 interrupted.
]==]

local VALUED = {["--orders"] = "orders", ["--seconds"] = "seconds",
  ["--kernel"] = "kernel", ["--save"] = "save", ["--replay"] = "replay",
  ["--format"] = "format"}
local FLAGS = {["--json"] = "json", ["--surgeon"] = "surgeon",
  ["--sizes"] = "sizes", ["--strict"] = "strict",
  ["--fidelity"] = "fidelity", ["--no-gpu"] = "no_gpu",
  ["--help"] = "help", ["-h"] = "help"}
local COUNTS = {orders = literal.whole, seconds = literal.decimal}

--- Parses the arguments after `check`. Returns the options, in which `script`
-- is the index of the script's name. Returns nil and a message if an argument
-- is invalid.
function main.options(words)
  local opt, i = {}, 1
  while words[i] and words[i]:sub(1, 1) == "-" do
    local a, value = words[i]:match "^(%-%-%l+)=(.*)$"
    a = a or words[i]
    if FLAGS[a] then
      opt[FLAGS[a]] = true
    elseif VALUED[a] then
      if not value then i, value = i + 1, words[i + 1] end
      if not value or value == "" then
        return nil, ("'%s' needs an argument"):format(a)
      end
      local name = VALUED[a]
      local read = COUNTS[name]
      opt[name] = not read and value or read(value)
      if read and not (opt[name] and opt[name] > 0) then
        return nil, ("%s: a %snumber above 0 is needed, got '%s'"):format(a,
          read == literal.whole and "whole " or "", core.visible(value))
      end
    else
      return nil, ("unknown option '%s'; check --help lists them"):format(a)
    end
    i = i + 1
  end
  if not words[i] and not opt.help then return nil, "check: the script is "
    .. "missing" end
  if opt.no_gpu then opt.gpu = false end
  if opt.format then
    local format, why = findings.format(opt.format)
    if not format then return nil, "check: " .. why end
    if opt.json then return nil, "check: --json and --format exclude each "
      .. "other" end
  end
  opt.script = i
  return opt
end

-- The largest number of simulator runs that check a launch when an edit of the
-- script is tried.
local TRIED = 200

local Session = {}
Session.__index = Session

local function unwritten(why)
  return ("check: cannot write standard output: %s [io]"):format(why)
end

-- The largest size of a schedule file in bytes.
local LARGEST = 64 << 20

local function read_schedule(name)
  local text, why = cli.read_plain(name, LARGEST)
  if not text then return nil, why end
  return warp_schedule.parse(text, core.visible(name))
end

--- Starts a session that checks the launches of a script. On failure, returns
-- nil, a message and an exit code.
function main.start(opt)
  local s = setmetatable({opt = opt, nth = 0, checked = 0,
                          worst = 0, stop = {}, out = io.stdout, last = {},
                          names = {}, held = {}, left = {}}, Session)
  if opt.trial then
    opt.seconds, opt.orders = opt.trial, math.min(opt.orders or TRIED, TRIED)
    opt.gpu = false
  end
  if opt.seconds then s.limit = core.clock() + opt.seconds end
  opt.limit = s.limit
  opt.mend = opt.findings and not opt.trial
  if opt.replay then
    local kept, why = read_schedule(opt.replay)
    if not kept then return nil, why end
    s.kept = kept
  end
  if opt.save then
    local ok, why = cli.writable(opt.save)
    if not ok then return nil, "check: " .. why, 1 end
  end
  if opt.json then
    local out, why = sys.divert()
    if not out then return nil, unwritten(why), 1 end
    s.out = out
  end
  devices.simulates, lessonlib.session = true, s
  lessonlib.brief = opt.trial ~= nil
  kernel.runner = {run = function(program, launch)
    s:watch(program, launch)
    s:note(program, launch)
    return s:run(program, launch)
  end, fidelity = function() s:print_fidelity() end}
  if opt.fidelity then s:print_fidelity() end
  return s
end

-- A launch may exceed the time limit by this fraction of the limit.
local GRACE = 0.1

--- Runs a launch for the script after its check. If the check kept the results
-- of a run, restores these results instead of running again.
function Session:run(program, launch)
  launch.fidelity = self.show_fidelity and true or nil
  local known = self.found
  self.found = nil
  if known and not launch.fidelity and not launch.record then
    known.redo()
    return known
  end
  local found = self:run_limited(program, launch)
  if self.show_fidelity then self.show_fidelity(program, launch, found) end
  return found
end

-- Makes the session print, after each later verdict, how closely the simulator
-- models the launch's operations (cutelua.text.fidelity).
function Session:print_fidelity()
  self.show_fidelity = self.show_fidelity or fidelity.printer(
    self.opt.json and "json" or "text", self.out)
end

-- Runs a launch within the time limit.
function Session:run_limited(program, launch)
  if not self.limit then return core.sim_run(program.fn, launch) end
  local found = core.sim_run(program.fn, check.until_time(launch,
    self.limit + GRACE * self.opt.seconds))
  if found.stopped and not found.reports[1] then self:late() end
  return found
end

-- Reports that the time limit was reached before the script ended. Then ends
-- the script.
function Session:late()
  self:count "incomplete"
  if self.told_late then error(self.stop, 0) end
  self.told_late = true
  local part = ("everything after launch %d: the limit is seconds = %g"):format(
    self.nth, self.opt.seconds)
  local text = "not covered: " .. part
  if self.opt.findings then self.opt.findings:late("seconds", part) end
  if self.opt.json then
    self:write(json.encode {form = 1, kind = "late", launches = self.nth,
                            message = text}, "\n")
  else
    self:write("check: ", text, "\n")
  end
  error(self.stop, 0)
end

-- The largest number of different contents of integer tensors with which one
-- launch is checked.
local MOST = 16
local INTEGER = "^[iu]%d"

-- Returns a key for a launch, and a checksum of the integer tensors that the
-- launch reads. Launches with different keys or checksums are checked
-- separately. Integer tensors hold indices, counters and flags, which control a
-- kernel; contents of float tensors are ignored.
local function key_of(program, launch)
  local words, sum, nth = {tostring(program.fn), tostring(launch.pdl),
    table.concat(launch.grid, ","), table.concat(launch.block, ",")}, 0, {}
  for i, v in ipairs(launch.args) do
    local word = tostring(v[2])
    if core.typename(v[1]) == "buffer" then
      local arg = program.info.args[i]
      nth[v[1]] = nth[v[1]] or i
      word = ("%d+%s:%s"):format(nth[v[1]], word, v[3])
      if arg.read and tostring(arg.dtype):find(INTEGER) then
        sum = core.buffer_sum(v[1], sum)
      end
    end
    words[#words + 1] = word
  end
  return table.concat(words, ";"), sum
end

-- Writes to the standard output that the session had at its start.
-- Session:finish reports a failure to write.
function Session:write(...)
  local ok, why = self.out:write(...)
  if ok then ok, why = self.out:flush() end
  if not ok then self.unwritten = why end
end

function Session:tell(verdict)
  for _, note in ipairs(verdict.notes or {}) do
    -- new_note marks the note as printed, so that the launch does not print it
    -- again.
    faults.new_note(verdict.kernel, note)
  end
  self:write(self.opt.json and verdict:json() or tostring(verdict), "\n")
end

function Session:save(verdict)
  local ok, why = cli.write_file(self.opt.save,
    warp_schedule.text(verdict.schedule, self.nth))
  if not ok then report.tell("cutelua: check: " .. why) end
end

local CODES = {ok = 0, incomplete = 3, bug = 1}
local WORDS = {[0] = "ok", [1] = "bug", [3] = "incomplete"}

function Session:replay(program, launch)
  if self.nth ~= self.kept.nth then return end
  if program.info.name ~= self.kept.kernel then
    core.fail("bad-argument", ("the schedule in %s is for launch %d of kernel "
      .. "%s, but here that launch is of kernel %s"):format(self.opt.replay,
      self.nth, self.kept.kernel, program.info.name))
  end
  return check.replay(program, launch, self.kept)
end

-- Reports whether to check a launch. A launch with a known key (see key_of) is
-- checked again only for new integer contents, at most MOST times.
function Session:wants(program, launch)
  local name = program.info.name
  self.names[name] = true
  if self.opt.kernel and self.opt.kernel ~= name then return false end
  local key, sum = key_of(program, launch)
  local held = self.held[key] or {n = 0}
  self.held[key] = held
  if held[sum] then return false end
  if held.n == MOST then
    self.left[name] = (self.left[name] or 0) + 1
    return false
  end
  held[sum], held.n = true, held.n + 1
  return true
end

-- Returns the options for check.launch: the options of the command; `limit`,
-- the time at which the check ends; and `early`, which gets the verdict on a
-- bug before its repair is known.
function Session:bounds(program, launch)
  local found = self.opt.findings
  return setmetatable({limit = self.limit, early = found and function(v)
    found:early(v, program, launch)
  end or nil}, {__index = self.opt})
end

function Session:watch(program, launch)
  if not self:wants(program, launch) then return end
  if self.limit and core.clock() > self.limit then self:late() end
  self.nth = self.nth + 1
  launch.strict = launch.strict or self.opt.strict
  local v
  if self.kept then v = self:replay(program, launch)
  else v = check.launch(program, launch, self:bounds(program, launch))
  end
  if not v then return end
  v.launch, self.checked, self.found = self.nth, self.checked + 1, v.found
  self:tell(v)
  if self.opt.findings then
    self.opt.findings:verdict(v, program, launch, v.schedule
      and warp_schedule.text(v.schedule, self.nth))
    if v.needs then
      self.opt.findings:measure {kind = "needs", kernel = v.kernel,
        launch = self.nth, needs = repair.plain(v.needs),
        together = v.needs.together and repair.plain(v.needs.together)}
    end
  end
  self:count(v.verdict)
  self.why, self.compared = v.not_compared, self.compared or v.gpu
  if v.verdict ~= "bug" then return end
  if self.opt.save and v.schedule then self:save(v) end
  -- A bug ends the script: no later launch is checked.
  error(self.stop, 0)
end

function Session:count(verdict)
  local code = CODES[verdict]
  if self.worst ~= 1 and code ~= 0 then self.worst = code end
end

--- Ends the script after an error of the script, and sets the session's exit
-- code to 1.
function Session:fail()
  self.worst = 1
  error(self.stop, 0)
end

-- For each buffer that a launch writes, records the launch and how to restore
-- the memory contents before it.
function Session:note(program, launch)
  local last
  for i, v in ipairs(launch.args) do
    if kernel.may_write(program.info, i) then
      last = last or {program = program, launch = launch,
                      restore = memory.keep(program, launch.args)}
      self.last[v[1]] = {last = last, i = i}
    end
  end
end

--- Returns the problem sizes at which a lesson, a demonstration script, runs
-- (cutelua.bench.lessonlib).
function Session:sizes(list, tile)
  if not self.opt.sizes then return list end
  self.tried = {}
  return sizes.around(list[1], tile)
end

--- Calls f, which runs a lesson at one size. After a bug at this size, the
-- lesson continues with the other sizes.
function Session:attempt(size, f)
  if not self.tried then return f() end
  local worst = self.worst
  self.worst = 0
  local ok, why = pcall(f)
  local one = {size = size, verdict = WORDS[self.worst]}
  if not ok and why ~= self.stop then
    one.verdict, one.why = "refused", sizes.refusal(why)
  end
  self.tried[#self.tried + 1] = one
  self.worst = worst
  if ok or why == self.stop then self:count(one.verdict) end
end

-- Metatable of verdicts on a lesson's results, which say whether the results
-- agree with the lesson's reference.
local Verified = {}
Verified.__index = Verified

function Verified:__tostring()
  local text = {("check: reference: %s: %s"):format(self.verdict,
    self.wrong or self.how)}
  for _, c in ipairs(self.compared) do
    for _, line in ipairs(c.count > 0 and compare.told(c) or {}) do
      text[#text + 1] = "  " .. line
    end
  end
  return core.visible(table.concat(text, "\n"), true)
end

function Verified:json()
  local list = {}
  for i, c in ipairs(self.compared) do list[i] = compare.plain(c) end
  return json.encode {form = 1, kind = "reference", verdict = self.verdict,
                      message = self.wrong or self.how, compared = list}
end

--- Records a verdict on a lesson's results: {ok =, how =, wrong =, compared =};
-- see lessonlib.verified.
function Session:verified(o)
  setmetatable(o, Verified)
  o.verdict = o.ok and "ok" or "bug"
  for _, c in ipairs(o.compared) do
    local known = self.last[c.buffer]
    c.buffer = nil
    if known and c.first then
      local l = known.last
      if c.count > 0 then o.program = o.program or l.program end
      compare.add_writer(c, l.restore, l.program, l.launch, known.i, c.first.at)
    end
  end
  self:tell(o)
  if self.opt.findings then self.opt.findings:verified(o) end
  self:count(o.verdict)
  if self.opt.trial and o.verdict == "bug" then error(self.stop, 0) end
end

-- Returns the reason why no launch of the script was checked.
function Session:nothing()
  if self.kept then
    return "check: the script has no launch " .. self.kept.nth
  end
  if not next(self.names) then return "check: the script launched nothing" end
  if not self.opt.kernel then return "check: no launch could be checked" end
  return sign.no_such("kernel launched", self.opt.kernel, self.names, "check")
end

-- Reports how many launches of each kernel were not checked because their
-- integer tensors had too many different contents.
function Session:tell_left()
  local names = {}
  for name in pairs(self.left) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    self:count "incomplete"
    local part = ("%s with other values of integer tensors than the first %d")
      :format(report.plural(self.left[name], "launch", "launches"), MOST)
    local text = ("kernel %s: not covered: %s"):format(name, part)
    if self.opt.findings then self.opt.findings:late("values", part, name) end
    if self.opt.json then
      self:write(json.encode {form = 1, kind = "left", kernel = name,
        count = self.left[name], message = text}, "\n")
    else
      self:write("check: ", text, "\n")
    end
  end
end

function Session:tell_sizes()
  if self.opt.findings then
    self.opt.findings:measure {kind = "sizes", sizes = self.tried}
  end
  if self.opt.json then
    return self:write(json.encode {form = 1, kind = "sizes",
                                   sizes = self.tried}, "\n")
  end
  for _, line in ipairs(sizes.told(self.tried)) do
    self:write("check: ", line, "\n")
  end
end

--- Ends the session: returns the exit code and reports launches that were not
-- checked.
---@param code integer the script's exit code
---@param message? string its error
function Session:finish(code, message)
  kernel.runner, devices.simulates, lessonlib.session = nil, nil, nil
  if code == 0 and self.checked == 0 then
    code, message = 1, self:nothing()
    report.tell("cutelua: " .. message)
    if self.opt.findings then self.opt.findings:fail(message) end
  end
  if message and self.opt.json then
    self:write(json.encode {form = 1, kind = "error", message = message}, "\n")
  end
  self:tell_left()
  if self.tried then self:tell_sizes()
  elseif self.opt.sizes and code == 0 then
    report.note("--sizes: only lessons have other sizes, so only the script's "
      .. "own was checked; use the option `sizes` of k:check")
  end
  if self.why and not self.compared and not self.opt.json then
    self:write("check: the GPU was not compared: ", self.why, "\n")
  end
  if self.opt.json then
    local ok, why = self.out:close()
    if not ok then self.unwritten = why end
    if self.unwritten then
      report.tell("cutelua: " .. unwritten(self.unwritten))
      return code ~= 0 and code or 1
    end
  end
  return code ~= 0 and code or self.worst
end

return main
-- SPDX-License-Identifier: MIT
