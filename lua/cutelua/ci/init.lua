--- `cutelua ci PATH...`: checks all scripts and captured launches below paths,
-- each in a separate process (cutelua.mcp.calls), and writes reports for code
-- hosts. docs/ci.md is the user's guide.
local calls = require "cutelua.mcp.calls"
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local find = require "cutelua.ci.find"
local findings = require "cutelua.findings"
local json = require "cutelua.text.json"
local output = require "cutelua.text.output"
local plural = require "cute.lang.report".plural
local records = require "cutelua.findings.record"
local report = require "cutelua.ci.report"
local rpc = require "cutelua.mcp.rpc"
local tell = require "cute.lang.report".tell
local verdicts = require "cutelua.ci.verdicts"

local ci = {}

local SPEC = {
  name = "ci", script = "ci",
  about = "Checks every schedule of all launches of the scripts and captured "
    .. "launches in folders, without a GPU, and writes reports for code hosts. "
    .. "Exit code: 0 all ok, 1 a bug, an error or no launch, 2 a wrong command "
    .. "line, 3 a part was not covered, 130 interrupted.",
  args = {name = "PATH", many = true, help = "a folder, in "
    .. "which scripts that require cute are checked, a script, or a folder of "
    .. "a captured launch"},
  options = {
    {"--sarif", "file", help = "writes all findings as SARIF 2.1.0"},
    {"--gitlab", "file", help = "writes a Code Quality report of GitLab"},
    {"--badge", "file", help = "writes a badge: .svg, or .json for shields.io"},
    {"--cache", "file", place = "DIR",
     help = "keeps a script's verdict until a file that it reads changes"},
    {"--add", "file", help = "also reports the findings of this file, which "
      .. "--format json or pytest wrote"},
    {"--seconds", "number", min = 0.1, max = 86400, default = 60,
     help = "the longest check of a script"},
    {"--orders", "int", min = 1, help = "the most runs of one launch"},
    {"--strict", "flag", help = "as for `cutelua check`"},
    rpc.OPTIONS.memory, rpc.OPTIONS.jobs},
}

-- A check that reaches its time limit stops and reports what it covered. It may
-- exceed the limit by GRACE (a fraction of the limit) plus LEAST seconds.
local GRACE, LEAST = 0.2, 2
-- LARGEST: largest size in bytes of a record that --add reads. OUTPUT: largest
-- number of bytes of a check's output that is kept for a message.
local LARGEST, OUTPUT = 64 << 20, 4096
-- Verdicts that a record can have.
local KNOWN = {ok = true, bug = true, incomplete = true, error = true}

-- Returns the command-line words of `cutelua check` for a path.
local function words_of(opt, path)
  local words = {"--format", "json", "--no-gpu", "--seconds",
                 ("%.17g"):format(opt.seconds)}
  if opt.orders then
    words[#words + 1] = "--orders"
    words[#words + 1] = tostring(opt.orders)
  end
  if opt.strict then words[#words + 1] = "--strict" end
  -- A name that begins with a dash must not become an option.
  words[#words + 1] = path:find "^%-" and "./" .. path or path
  return words
end

---------------------------------------------------------------------------
-- Results
---------------------------------------------------------------------------

-- Adds an error to a record.
local function fail(record, kind, message)
  record.findings[#record.findings + 1] = records.failure {kind = kind,
    text = message, message = message}
  record.verdict = "error"
end

local function empty_record(path)
  return findings.new("check", path):record(0)
end

-- Moves the first place of finding f that is in an existing file to the front,
-- because code hosts show only such places. Places in embedded PTX, or in
-- modules of cutelua, are in no file. If no place is in a file, adds the
-- script's first line.
local function move_place(item, f)
  for i, p in ipairs(f.places) do
    if core.file_kind(p.file) == "file" then
      return table.insert(f.places, 1, table.remove(f.places, i))
    end
  end
  table.insert(f.places, 1, {role = "script", file = item.path, line = 1,
                             column = 1, end_column = 1})
end

local function finish_places(item)
  findings.make_relative(item.record, os.getenv "PWD" or "/")
  for _, f in ipairs(item.record.findings) do move_place(item, f) end
end

-- Prints the findings of an item in the form of compiler messages.
local function print_item(item)
  if item.status == "ok" or item.status == "idle" then return end
  for _, f in ipairs(item.record.findings) do
    local p = f.places[1]
    for _, text in ipairs {f.message, f.advice} do
      print(core.visible(("%s:%d:%d: %s: %s [%s]"):format(p.file, p.line,
        p.column, text == f.message and f.severity or "note", text, f.code)))
    end
  end
  for _, o in ipairs(item.status == "incomplete" and item.record.not_checked
    or {}) do
    if o.what ~= "sizes" then
      print(core.visible(("%s:1:1: note: not covered: %s [incomplete]"):format(
        item.path, o.text)))
    end
  end
end

local function finish(item, status, record)
  item.status, item.record = status, record
  if status == "error" and not record.findings[1] then
    fail(record, "lua", ("%s ended with exit code %d"):format(
      record.command == "pytest" and "pytest" or "the script",
      record.exit_code))
  end
  finish_places(item)
  print_item(item)
end

-- Converts the outcome of a check (see cutelua.mcp.calls) to a status and a
-- record.
local function result_of(opt, item, outcome)
  local record = outcome.record or empty_record(item.path)
  local first = record.findings[1]
  if outcome.late then
    fail(record, "limit", ("the script did not end within %g s (--seconds)")
      :format(opt.seconds))
  elseif outcome.failed or not outcome.record then
    fail(record, "limit", "the check failed: " .. (outcome.failed
      or outcome.text))
  elseif first and findings.is_idle(first) then
    record.findings = {}
    return "idle", record
  end
  return record.verdict, record
end

---------------------------------------------------------------------------
-- Runs
---------------------------------------------------------------------------

-- Starts the check of a script or captured launch, unless its verdict is known.
local function begin(opt, all, kept, item)
  if item.unreadable then
    local record = empty_record(item.path)
    fail(record, "io", ("cannot read %s: %s"):format(core.visible(item.path),
                                                     item.unreadable))
    return finish(item, "error", record)
  end
  local status, record = kept:get(item.path)
  if status then
    item.known = true
    return finish(item, status, record)
  end
  all:add {seconds = opt.seconds, grace = LEAST + GRACE * opt.seconds,
    output = OUTPUT,
    request = {command = "check", words = words_of(opt, item.path),
      memory = opt.memory << 20, allow_io = true, reads = true},
    done = function(outcome)
      status, record = result_of(opt, item, outcome)
      kept:put(item.path, status, record, outcome.reads)
      finish(item, status, record)
    end}
end

-- Waits until all checks have ended.
local function wait(all)
  while all.running[1] do
    all:wait(all:patience(1))
    all:expire()
  end
end

local function are(kind, ...)
  for i = 1, select("#", ...) do
    if type((select(i, ...))) ~= kind then return false end
  end
  return true
end

-- Reports whether r is a record with all fields that this module uses.
local function is_record(r)
  if not (are("table", r) and r.kind == "findings" and KNOWN[r.verdict]
      and are("table", r.findings, r.checked, r.not_checked)
      and are("number", r.exit_code)) then
    return false
  end
  for _, f in ipairs(r.findings) do
    if not (are("table", f, f.places) and are("string", f.code, f.kind,
        f.message, f.severity)) then
      return false
    end
    for _, p in ipairs(f.places) do
      if not (are("table", p) and are("string", p.role, p.file)
          and are("number", p.line, p.column, p.end_column)) then
        return false
      end
    end
  end
  for _, o in ipairs(r.not_checked) do
    if not (are("table", o) and are("string", o.text)) then return false end
  end
  return true
end

-- Reads a record that another run wrote. Returns it in the form of a checked
-- script, or nil and a message.
local function added(path)
  local text, why = output.read_plain(path, LARGEST)
  if not text then return nil, why end
  local record = json.decode(text)
  if not is_record(record) then
    return nil, core.visible(path) .. " is no record of findings "
      .. "(docs/findings.md)"
  end
  return {path = record.script or path, status = record.verdict,
          record = record}
end

-- Prints how many scripts and captured launches have each status.
local function summarize(items, seconds)
  local counts, known, words = report.counts(items), 0, {}
  for _, row in ipairs(report.STATUSES) do
    if counts[row[1]] then
      words[#words + 1] = ("%d %s"):format(counts[row[1]], row[2])
    end
  end
  for _, item in ipairs(items) do
    known = known + (item.known and 1 or 0)
  end
  print(("cutelua ci: %s%s; %d known; %.1f s"):format(
    plural(#items, "script", "scripts"),
    words[1] and ": " .. table.concat(words, ", ") or "", known, seconds))
end

-- Writes the report files that the options name; reports whether that
-- succeeded.
local function write(opt, items)
  local record, good = report.record(items), true
  for _, row in ipairs {
      {opt.sarif, function() return findings.text(record, "sarif") end},
      {opt.gitlab, function() return report.gitlab(record) end},
      {opt.badge, function() return report.badge(items, opt.badge) end}} do
    local ok, why = true, nil
    if row[1] then ok, why = output.write_file(row[1], row[2]()) end
    if not ok then
      tell("cutelua: ci: " .. why)
      good = false
    end
  end
  return good
end

-- Returns the scripts to check, plus the record of --add; or nil and a message.
local function items_of(opt)
  local named = {}
  for _, path in ipairs {opt.sarif or false, opt.gitlab or false,
                         opt.badge or false} do
    local ok, why, name = true, nil, path and path:gsub("^%./+(.)", "%1")
    if name and named[name] then
      return nil, ("two options name the same file, %s"):format(
        core.visible(name))
    end
    if path then ok, why = output.writable(path) end
    named[name] = true
    if not ok then return nil, why end
  end
  local items, why = find.items(opt.args)
  if not items then return nil, why end
  local other
  if opt.add then
    other, why = added(opt.add)
    if not other then return nil, why end
  end
  if not (items[1] or other) then
    tell("cutelua: ci: no script that requires cute, and no captured launch, "
      .. "in " .. core.visible(table.concat(opt.args, " ")))
  end
  return items, other
end

--- Runs `cutelua ci` with these arguments. Returns the exit code.
---@param words string[]
---@return integer
function ci.main(words)
  local opt = cli.parse(words, SPEC)
  if not (opt.args[1] or opt.add) then
    tell "cutelua: ci: which folders or scripts?"
    return 2
  end
  local started = core.clock()
  local items, other = items_of(opt)
  if not items then
    tell("cutelua: ci: " .. other)
    return 1
  end
  local kept = verdicts.open(opt.cache, ("seconds %g orders %s strict %s "
    .. "memory %d path %s"):format(opt.seconds, opt.orders, opt.strict,
    opt.memory, package.path))
  local all = calls.new(opt.jobs)
  for _, item in ipairs(items) do begin(opt, all, kept, item) end
  wait(all)
  if other then
    table.insert(items, other)
    finish(other, other.status, other.record)
  end
  if kept.why then
    tell("cutelua: ci: note: verdicts are not kept: "
      .. core.visible(kept.why))
  end
  summarize(items, core.clock() - started)
  local good = write(opt, items)
  local _, worst = report.counts(items)
  return good and report.exit_code(worst) or 1
end

return ci
-- SPDX-License-Identifier: MIT
