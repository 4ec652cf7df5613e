--- Collects what a command finds in one record. The record is the output of
-- `--format json` and `--format sarif` of cutelua run, check, explain, profile
-- and estimate, and of the tools of `cutelua mcp`. docs/findings.md describes
-- the record, and docs/findings.schema.json is its schema.
--
-- A record is {form = 1, kind = "findings", tool = {name =, version =},
-- command =, script =, arguments =, verdict = "ok", "bug", "incomplete" or
-- "error", exit_code =, findings = see cutelua.findings.record, checked =
-- {{launch =, kernel =, grid =, block =, count =, ...}, ...}, not_checked =
-- {{what =, text =, kernel =, file =, line =}, ...}, results = {{kind =, ...},
-- ...}}.
local core = require "cute.core"
local changes = require "cutelua.findings.changes"
local errors = require "cutelua.text.errors"
local json = require "cutelua.text.json"
local kernel = require "cute.lang.kernel"
local likely = require "cutelua.findings.likely"
local record = require "cutelua.findings.record"
local report = require "cute.lang.report"
local sarif = require "cutelua.findings.sarif"
local simreport = require "cute.lang.simreport"

local findings = {}

-- The largest numbers of findings and of launches in one record.
local MOST = 200

findings.FORMATS = {text = true, json = true, sarif = true}

--- If set, this function is called with a sentence after each launch, and
-- regularly while a launch runs.
---@type fun(text: string)?
findings.launched = nil

-- Seconds between two calls of findings.launched during a launch.
local TICK = 0.5

--- Returns the value of --format, or nil and a message.
---@param value string?
---@return string? format
---@return string? message
function findings.format(value)
  if findings.FORMATS[value] then return value end
  return nil, ("--format must be text, json or sarif, not %s"):format(
    core.show(value))
end

--- Reports whether a finding says that a script launched nothing. This is no
-- fault if the script is a module.
---@param f table
---@return boolean
function findings.is_idle(f)
  return f.message:find "launched nothing$" ~= nil
end

--- Makes the paths in a record relative to a folder if they are inside it,
-- because code hosts show only relative paths.
---@param found table
---@param folder string an absolute path
function findings.make_relative(found, folder)
  local head = folder:gsub("/*$", "/")
  local function shorten(t)
    if type(t.file) == "string" and #head > 1
      and t.file:sub(1, #head) == head then
      t.file = t.file:sub(#head + 1)
    end
  end
  for _, f in ipairs(found.findings) do
    for _, p in ipairs(f.places) do shorten(p) end
    for _, e in ipairs(f.edits or {}) do
      for _, c in ipairs(e.changes) do shorten(c) end
    end
  end
end

local Collector = {}
Collector.__index = Collector

--- Returns a new collector for a command, with the script's name and arguments.
---@param command string
---@param name string the script's name
---@param words? string[] the script's arguments
---@return table
function findings.new(command, name, words)
  return setmetatable({command = command, name = name, words = words or {},
    list = {}, checked = {}, uncovered = {}, results = {}, known = {},
    sizes = {}, nth = 0}, Collector)
end

---------------------------------------------------------------------------
-- Adding
---------------------------------------------------------------------------

-- Returns a text by which repeated findings are recognised.
local function identity(f)
  local p = f.places[1] or {}
  return ("%s %s %s:%s %s"):format(f.kernel, f.code, p.file, p.line, f.message)
end

-- Removes findings from index `from` on if they repeat earlier findings or
-- exceed the largest number.
local function trim(self, from)
  for i = #self.list, from, -1 do
    if self.known[identity(self.list[i])] or i > MOST then
      table.remove(self.list, i)
      self.truncated = self.truncated or i > MOST
    end
  end
  for i = from, #self.list do
    self.known[identity(self.list[i])] = true
  end
end

--- Adds an entry to `not_checked`: something that was not checked.
---@param what string
---@param text string
---@param more? table kernel =, file = a chunk, line =
function Collector:leave(what, text, more)
  more = more or {}
  local key = ("%s %s %s"):format(what, text, more.kernel)
  if self.known[key] then return end
  self.known[key] = true
  table.insert(self.uncovered, {what = what, text = text,
    kernel = more.kernel, line = more.line,
    file = more.file and changes.file(more.file)})
end

-- Adds to `not_checked` the first float function in a program for which a GPU
-- may return other bits than the simulator.
local function leave_inexact(self, program)
  local name, file, line = core.sim_inexact(program.fn)
  if name then
    self:leave("instructions", ("%s: a GPU need not give the same bits")
      :format(name), {kernel = program.info.name, file = file, line = line})
  end
end

-- Returns a text that is equal for launches of the same program and grid.
local function launch_key(program, launch)
  return ("%s %s"):format(program.fn, table.concat(launch.grid, ","))
end

-- Returns the entry of `checked` for a launch, and whether the entry is new.
-- Launches of the same program and grid share an entry.
local function entry(self, program, launch)
  local key = launch_key(program, launch)
  local e = self.known[key]
  if e then
    e.count = e.count + 1
    return e, false
  end
  e = {kernel = program.info.name, launch = self.nth, grid = launch.grid,
       block = launch.block, count = 1}
  self.known[key] = e
  if #self.checked < MOST then table.insert(self.checked, e) end
  return e, true
end

--- Adds a launch that ran on the simulator: its faults and notes.
---@param program table
---@param launch table as core.sim_run takes it
---@param found table of core.sim_run
function Collector:launched(program, launch, found)
  local r = simreport.attach(found, program, launch.args)
  r.kernel = program.info.name
  local from = #self.list + 1
  self.nth = self.nth + 1
  local e, new = entry(self, program, launch)
  if new and not e.verdict then
    e.verdict = #r.reports > 0 and "bug" or r.stopped and "incomplete"
      or "ok"
    e.schedules, e.blocks, e.instructions = 1, found.ctas, found.instructions
    leave_inexact(self, program)
    self:leave("schedules", "one schedule was run: cutelua check runs all",
               {kernel = r.kernel})
    self:leave("sizes", "only the sizes that the script launches were run",
               {kernel = r.kernel})
  end
  record.add_launch(self.list, r, self.nth, launch.sm)
  trim(self, from)
  if findings.launched then
    findings.launched(("launch %d: kernel %s"):format(self.nth, r.kernel))
  end
end

local EXTENT = {"verdict", "blocks", "turns", "orders", "runs", "results",
                "seconds", "gpu", "not_compared", "inexact"}

-- Returns the name of a kernel and the numbers of elements of its arguments as
-- text, or "empty" if the grid has no blocks. An edit that changes this text
-- changes the problem size, and so repairs nothing.
local function size_of(program, launch)
  if kernel.empty(launch.grid) then return "empty" end
  local words = {program.info.name}
  for _, v in ipairs(launch.args) do
    words[#words + 1] = core.typename(v[1]) == "buffer" and v[1].count or "-"
  end
  return table.concat(words, " ")
end

--- Adds a verdict of cutelua.check.
---@param v table
---@param program table
---@param launch table
---@param replay? string the text of the schedule's file
function Collector:verdict(v, program, launch, replay)
  local from = #self.list + 1
  -- The checked launch itself adds 1 later, so the count begins at 0.
  local e = {kernel = v.kernel, launch = v.launch, grid = launch.grid,
             block = launch.block, count = 0}
  for _, k in ipairs(EXTENT) do e[k] = v[k] end
  e.schedules, e.orders = e.orders, nil
  if #self.checked < MOST then table.insert(self.checked, e) end
  self.known[launch_key(program, launch)] = e
  table.insert(self.sizes, size_of(program, launch))
  for _, o in ipairs(v.open) do
    self:leave(o.why, o.text, {kernel = v.kernel, file = o.file, line = o.line})
    self.partly = true
  end
  self:leave("sizes", "only the sizes that the script launches were checked",
             {kernel = v.kernel})
  leave_inexact(self, program)
  self:lead(record.add_verdict(self.list, v, program, launch.sm, replay))
  trim(self, from)
  if findings.launched then
    findings.launched(("check of launch %d: kernel %s: %s"):format(v.launch,
      v.kernel, v.verdict))
  end
end

--- Passes the findings of a bug to findings.early, if it is set. This happens
-- before a repair is known.
---@param v table of cutelua.check
---@param program table
---@param launch table
function Collector:early(v, program, launch)
  if not findings.early then return end
  local list = table.move(self.list, 1, #self.list, 1, {})
  record.add_verdict(list, v, program, launch.sm)
  findings.early(list)
end

--- Adds the verdict on the results of a lesson, which is a demonstration
-- script.
---@param o table of cutelua.check.main
function Collector:verified(o)
  if o.ok then return end
  local f, edits_of = record.wrong(o)
  table.insert(self.list, f)
  self:lead(f, edits_of)
end

--- Adds an entry to `not_checked` about launches that were not checked. Either
-- the time limit was reached, or integer tensors had too many different
-- contents.
---@param what string
---@param text string
---@param kernel_name? string
function Collector:late(what, text, kernel_name)
  self.partly = true
  self:leave(what, text, {kernel = kernel_name})
end

--- Adds an error, unless it only reports faults that the record already has.
---@param told table of cutelua.text.errors.told
function Collector:add_error(told)
  local last = self.list[#self.list]
  if told.kind == "kernel-fault" and last and last.severity == "error" then
    return
  end
  self.error = true
  -- An error in PTX names the line of the file in its message.
  local line = told.kind == "bad-ptx" and not told.line
    and self.name:find "%.ptx$" and told.message:match "%f[%w]line (%d+)"
  if line then
    told.chunk, told.line = "@" .. self.name, math.tointeger(line)
  end
  local f, edits_of = record.failure(told)
  table.insert(self.list, f)
  self:lead(f, edits_of)
end

--- Adds a note on the script, as cute.lang.report.note writes it.
---@param text string
function Collector:noted(text)
  local from = #self.list + 1
  self.list[from] = record.script_note(text, self.name)
  trim(self, from)
end

--- Adds the error that ended the script.
---@param failure table of cutelua.text.errors.capture
function Collector:failed(failure)
  -- If memory is exhausted, the failure is only a message, without a stack.
  if type(failure) ~= "table" then
    failure = {message = failure .. " [out-of-memory]", frames = {}}
  end
  local told = errors.told(failure)
  told.frames = failure.frames
  self:add_error(told)
end

--- Adds the error with which the reader of PTX rejects a file.
---@param message string
---@param line integer?
---@param chunk? string "@" and the path of the PTX file; the script itself when
-- absent
function Collector:rejected(message, line, chunk)
  self.error = true
  table.insert(self.list, (record.failure {message = message, kind = "bad-ptx",
    text = message, line = line, chunk = chunk and chunk:find "^@" and chunk
      or "@" .. self.name}))
end

--- Adds an error that has no file and line.
---@param message string
function Collector:fail(message)
  self.error = true
  table.insert(self.list, (record.failure {message = message, kind = "lua",
                                           text = message}))
end

--- Adds a table of numbers that were measured or estimated for a launch. Its
-- field `kind` names what they are.
---@param result table plain data
function Collector:measure(result) table.insert(self.results, result) end

-- Returns a copy of a table without functions and metatables, and with file
-- names in place of chunk names.
local function plain(t)
  local out = {}
  for k, v in pairs(t) do
    if type(v) == "table" then v = plain(v) end
    if k == "file" then v = changes.file(v) end
    if type(v) ~= "function" and type(v) ~= "userdata" and v == v then
      out[k] = v
    end
  end
  return out
end

--- Adds the memory traffic of a launch, line by line, and its bank conflicts,
-- as findings.
---@param r table a report with recorded accesses
---@param conflicts table[] of cutelua.profile.conflict
---@param layouts table[] of cutelua.profile.swizzle
function Collector:profiled(r, conflicts, layouts)
  local lines = {}
  for i, s in ipairs(r.lines) do lines[i] = plain(s) end
  self:measure {kind = "profile", kernel = r.kernel, lines = lines,
                instructions = r.instructions}
  for _, c in ipairs(conflicts) do
    table.insert(self.list, record.conflict(c, r.kernel, layouts))
  end
end

local ESTIMATE = {"card", "seconds", "cycles", "registers", "shared", "threads",
  "waves", "tail", "flops", "bytes", "busy", "bound", "roof", "lines"}

--- Adds the estimate of a launch.
---@param e table of cutelua.profile.estimate
function Collector:estimated(e)
  local out = {}
  for _, k in ipairs(ESTIMATE) do out[k] = e[k] end
  out = plain(out)
  out.kind, out.kernel = "estimate", e.name
  self:measure(out)
end

-- Returns a function for the field `progress` of a launch. It reports to
-- findings.launched that the launch is still running.
local function ticking(progress, name)
  local last = core.clock()
  return function(done)
    local now = core.clock()
    if findings.launched and now - last > TICK then
      last = now
      findings.launched(("kernel %s runs"):format(name))
    end
    return progress and progress(done)
  end
end

--- Makes the collector add all later launches on the simulator. If another
-- runner is set (kernel.runner), it still executes the launches.
function Collector:watch()
  local runner = kernel.runner or {}
  local run = runner.run or function(program, launch)
    return core.sim_run(program.fn, launch)
  end
  kernel.runner = setmetatable({run = function(program, launch)
    launch.progress = ticking(launch.progress, program.info.name)
    local found = run(program, launch)
    self:launched(program, launch, found)
    return found
  end}, {__index = runner})
end

---------------------------------------------------------------------------
-- Repairs
---------------------------------------------------------------------------

-- Stores the first finding, and a function that returns edits for it. Only Lua
-- scripts get edits, not PTX files.
function Collector:lead(f, edits_of)
  if f and edits_of and not self.first and not self.name:find "%.ptx$" then
    self.first = {finding = f, edits_of = edits_of}
  end
end

--- Adds edits to the first finding. With trials (cutelua.findings.trials),
-- these are only edits after which the command finds nothing wrong. Without
-- trials, they are the most likely edits.
---@param trials table?
---@param limit number? a time of core.clock at which the trials end
function Collector:repair(trials, limit)
  local first = self.first
  self.first = nil
  if not first then return end
  local list = first.edits_of()
  if trials and first.finding.code ~= "error/script/interrupted" then
    local result
    local notes = {}
    for _, f in ipairs(self.list) do
      if f.severity == "note" then notes[f.message] = true end
    end
    list, result = trials:sift(list, self.sizes, notes, limit)
    self:measure(result)
    report.tell(trials.told(result))
  else
    list = table.move(list, 1, likely.MOST, 1, {})
  end
  first.finding.edits = list[1] and list or first.finding.edits
end

---------------------------------------------------------------------------
-- The record
---------------------------------------------------------------------------

local function verdict_of(self)
  for _, f in ipairs(self.list) do
    if f.severity == "error" and not f.code:find "^error/" then return "bug" end
  end
  return self.error and "error" or self.partly and "incomplete" or "ok"
end

--- Returns the record.
---@param code integer the exit code
---@return table
function Collector:record(code)
  local ok, sys = pcall(require, "cute.sys")
  local verdict = verdict_of(self)
  self:repair()
  if verdict == "ok" and code ~= 0 then verdict = "error" end
  -- A launch whose check found a bug does not run, but counts as one launch.
  for _, e in ipairs(self.checked) do e.count = math.max(e.count, 1) end
  return {form = 1, kind = "findings",
    tool = {name = "cutelua", version = ok and sys.version or "0"},
    command = self.command, script = self.name, arguments = self.words,
    verdict = verdict, exit_code = code, findings = self.list,
    truncated = self.truncated, checked = self.checked,
    not_checked = self.uncovered, results = self.results[1] and self.results}
end

--- Returns a record as text in a format: json or sarif.
---@param found table
---@param format string
---@return string
function findings.text(found, format)
  return json.encode(format == "sarif" and sarif.of(found) or found) .. "\n"
end

return findings
-- SPDX-License-Identifier: MIT
