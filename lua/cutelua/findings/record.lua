--- Makes findings: records of the faults, errors and notes of a command, in the
-- form that docs/findings.md describes. cutelua.findings collects them.
--
-- A finding is {code =, kind =, severity = "error", "warning" or "note",
-- message =, advice =, kernel =, launch =, count =, follows = number of the
-- finding that this one may follow from, places = {{role =, file =, line =,
-- column =, end_column =, text =, cuda =}, ...}, operands = {tensor =, layout
-- =, offset =, coordinate =}, counterexample = {block =, thread =,
-- other_thread =, coordinate =, values =, schedule =}, edits = see
-- cutelua.findings.changes}.
local changes = require "cutelua.findings.changes"
local codes = require "cutelua.findings.codes"
local core = require "cute.core"
local edits = require "cutelua.findings.edits"
local faults = require "cutelua.text.faults"
local kinds = require "cute.lang.kinds"
local likely = require "cutelua.findings.likely"
local notes = require "cutelua.text.notes"
local source = require "cute.lang.source"

local record = {}

---------------------------------------------------------------------------
-- Places
---------------------------------------------------------------------------

-- Returns a function that maps a line of the script to the first line of CUDA C
-- that was emitted for it. The CUDA C is emitted on the first call.
local function cuda_lines(program, sm)
  local first
  return function(chunk, line)
    if not first then
      first = {}
      local ok, text, places = pcall(program.fn.emit, program.fn, sm or 80)
      local n = 0
      for one in (ok and text or ""):gmatch "([^\n]*)\n" do
        n = n + 1
        local at = places[n]
        local key = at and at[1] .. ":" .. at[2]
        if key and not first[key] and not one:find "^%s*//" then
          first[key] = {line = n, text = core.visible(one:match "^%s*(.-)%s*$")}
        end
      end
    end
    return first[chunk .. ":" .. line]
  end
end

--- Returns a place of a finding: its file, its line and its role, as a table.
-- Returns nil if the line is unknown.
---@param role string
---@param chunk string?
---@param line integer?
---@param cuda? fun(chunk: string, line: integer): table?
---@return table?
function record.place(role, chunk, line, cuda)
  if not (chunk and line) or line < 1 then return nil end
  local text = source.line(chunk, line)
  local column = text and #text:match "^%s*" + 1 or 1
  return {role = role, file = changes.file(chunk), line = line, column = column,
          end_column = text and math.max((utf8.len(text) or #text) + 1, column)
            or column,
          text = text and core.visible(text), cuda = cuda and cuda(chunk, line)}
end

---------------------------------------------------------------------------
-- Faults
---------------------------------------------------------------------------

-- Returns the places of a fault: the access, and the lines that explain it.
local function places_of(r, cuda)
  local _, second = faults.advice(r)
  local list, own = {}, kinds.FAULTS[r.kind].own
  for _, row in ipairs {{r.line2 and own or "access", r.file, r.line},
      {second or "other access", r.file2, r.line2},
      {kinds.waited(r), r.wait_file, r.wait}, {"loop", r.loop_file, r.loop}} do
    list[#list + 1] = record.place(row[1], row[2], row[3], cuda)
  end
  return list
end

-- Returns table t, or nil if t is empty.
local function filled(t) return next(t) and t or nil end

-- Returns the schedule of a bug: its turns and their lines, and `replay`, the
-- text of the file that `cutelua check --replay` runs.
local function schedule_of(s, replay)
  local out = {turns = {}, lines = {}, cluster = s.cluster, replay = replay}
  for i, turn in ipairs(s.turns) do
    out.turns[i] = turn[2] > 0 and turn[1] .. ":" .. turn[2] or "" .. turn[1]
    local at = s.path[i] or {}
    out.lines[i] = at.line and ("%s:%d"):format(changes.file(at.file or "?"),
                                                at.line) or "?"
  end
  return out
end

--- Returns the finding of a fault that the simulator reported.
---@param r table an element of report.reports
---@param cuda? fun(chunk: string, line: integer): table?
---@return table
function record.fault(r, cuda)
  return {code = kinds.code(r), kind = r.kind, severity = "error",
    message = core.visible(r.message), advice = faults.advice(r),
    count = r.count, follows = r.leads, places = places_of(r, cuda),
    operands = filled {tensor = r.tensor, layout = r.layout,
                       offset = r.offset, coordinate = r.coord},
    counterexample = filled {block = r.block, thread = r.thread,
                             other_thread = r.other, coordinate = r.coord}}
end

---------------------------------------------------------------------------
-- Launches and verdicts
---------------------------------------------------------------------------

-- Adds the findings of a report's faults to `list`. The field `follows` of a
-- finding is the index in `list` of the fault that may have caused it.
local function add_faults(list, reports, cuda, more)
  local base = #list
  for i, r in ipairs(reports) do
    local f = record.fault(r, cuda)
    f.follows = f.follows and base + f.follows
    for k, v in pairs(more) do f[k] = v end
    list[base + i] = f
  end
end

local function note(text, code, kernel, chunk)
  local file, line, sentence = text:match "^([^:]*):(%d+): (.*)$"
  return {code = code, kind = "note", severity = "note",
    message = sentence or text, kernel = kernel,
    places = {file and record.place("note", chunk(file),
                                    math.tointeger(line))}}
end

--- Returns the finding of a note that has the form "kernel K: FILE:LINE:
-- SENTENCE", "FILE:LINE: SENTENCE" or "SENTENCE".
---@param text string
---@param script string the script's name
---@return table
function record.script_note(text, script)
  local kernel, rest = text:match "^kernel ([%w_.]+): (.*)$"
  local f = note(rest or text, notes.ROWS.script[1], kernel, function(name)
    local is_script = name == source.short("@" .. script)
    return "@" .. (is_script and script or name)
  end)
  f.kernel = kernel or f.message:match "^kernel ([%w_.]+) "
  return f
end

-- Returns a function that maps the short name of a program's file to its full
-- name, "@" and the path. It returns nil for names of other files.
local function chunks_of(program)
  local known
  return function(name)
    if not known then
      known = {}
      local ok, _, places = pcall(program.fn.emit, program.fn, 80)
      for _, at in pairs(ok and places or {}) do
        known[source.short(at[1])] = at[1]
      end
    end
    return known[name]
  end
end

--- Adds to `list` the findings of a launch on the simulator: its faults and
-- notes.
---@param list table[]
---@param report table of the simulator, with a program
---@param nth integer number of the launch
---@param sm integer? target
function record.add_launch(list, report, nth, sm)
  local program = report.program
  add_faults(list, report.reports, cuda_lines(program, sm),
             {kernel = report.kernel, launch = nth})
  local chunk = chunks_of(program)
  local texts, note_codes = faults.notes(report)
  for i, text in ipairs(texts) do
    list[#list + 1] = note(text, note_codes[i], report.kernel, chunk)
    list[#list].launch = nth
  end
end

-- Returns the finding of a result that differs from that of a reference or a
-- GPU.
local function wrong_result(c, kernel, nth)
  local f = c.first
  local gpu = c.with == "GPU"
  return {code = gpu and "result/gpu/wrong" or "result/reference/wrong",
    kind = "wrong-results", severity = "error", kernel = kernel, launch = nth,
    message = ("%d of %d elements of %s differ from the %s"):format(c.count,
      c.of, c.tensor, c.with),
    advice = c.pattern and c.pattern[1] and table.concat(c.pattern, "; "),
    places = {record.place("store", f.file, f.line)},
    operands = {tensor = c.tensor},
    counterexample = {coordinate = "(" .. table.concat(f.coord, ",") .. ")",
      block = f.block, threads = f.threads,
      values = {got = tostring(f.got), want = tostring(f.want)}}}
end

-- Returns the lines that a program executes: a set of line numbers for each
-- chunk.
local function executed_by(program, sm)
  local all = {}
  local function add(chunk, line)
    if not chunk then return end
    all[chunk] = all[chunk] or {}
    all[chunk][line] = true
  end
  for _, s in ipairs(core.sim_sites(program.fn)) do add(s.file, s.line) end
  local ok, _, places = pcall(program.fn.emit, program.fn, sm or 80)
  for _, at in pairs(ok and places or {}) do add(at[1], at[2]) end
  return all
end

-- Returns a fault at the line that stored the first wrong result.
local function fault_of(compared)
  for _, c in ipairs(compared) do
    if c.count > 0 then
      return {kind = "wrong-results", file = c.first.file, line = c.first.line}
    end
  end
  return {kind = "wrong-results"}
end

--- Adds the findings of a verdict of cutelua.check to `list`. If there are any,
-- returns the first finding, and a function that returns possible edits for it.
---@param list table[]
---@param v table
---@param program table
---@param sm integer? target
---@param replay string? text of the schedule's file
---@return table? first
---@return (fun(): table[])? edits_of
function record.add_verdict(list, v, program, sm, replay)
  local first = #list + 1
  if v.fault then
    local reports = v.report and v.report.reports or {v.fault}
    add_faults(list, reports, cuda_lines(program, sm),
               {kernel = v.kernel, launch = v.launch})
    local f = list[first]
    f.counterexample = f.counterexample or {}
    f.counterexample.schedule = v.schedule and schedule_of(v.schedule, replay)
  end
  for _, c in ipairs(v.compared or {}) do
    if c.count > 0 then
      list[#list + 1] = wrong_result(c, v.kernel, v.launch)
    end
  end
  if not list[first] then return end
  return list[first], function()
    local executed = executed_by(program, sm)
    return likely.edits(v.fault or fault_of(v.compared), executed,
                        v.mend and edits.of(v.mend, executed) or {})
  end
end

--- Returns the finding of a line whose accesses to shared memory have bank
-- conflicts.
---@param c table of cutelua.profile.conflict
---@param kernel string
---@param layouts table[] of cutelua.profile.swizzle: layouts with fewer
-- conflicts
---@return table
function record.conflict(c, kernel, layouts)
  local advice, edit
  for _, l in ipairs(layouts) do
    if l.tensor == c.tensor and l.lua then
      advice = ("with this layout of %s, %d conflicts become %d: %s"):format(
        l.tensor, l.was.conflicts, l.now.conflicts, l.lua)
      edit = l.file and edits.layout(l.file, l.line, l.lua)
    end
  end
  return {code = "performance/smem/bank-conflict", kind = "bank-conflict",
    severity = "warning", kernel = kernel, count = c.conflicts,
    message = ("%s: %d conflicts in %d requests of shared tensor '%s': %d "
      .. "passes where %d would do"):format(c.op, c.conflicts, c.count,
      c.tensor, c.passes, c.least),
    advice = advice, places = {record.place("access", c.file, c.line)},
    operands = {tensor = c.tensor, layout = c.layout},
    edits = edit and {edit} or nil}
end

--- Returns the finding of results that differ from a lesson's reference. If the
-- program that stored the results is known, also returns a function that
-- returns possible edits.
---@param o table {wrong = message?, compared = comparisons, program =
-- table?}
---@return table finding
---@return (fun(): table[])? edits_of
function record.wrong(o)
  local found
  for _, c in ipairs(o.compared) do
    if not found and c.count > 0 and c.first then found = wrong_result(c) end
  end
  return found or {code = "result/reference/wrong", kind = "wrong-results",
                   severity = "error", message = o.wrong, places = {}},
    o.program and function()
      return likely.edits(fault_of(o.compared), executed_by(o.program), {})
    end
end

-- The number of lines before a line of an error's traceback in which the
-- error's cause is searched.
local AROUND = 40

-- Returns the lines of the user's modules: the set of all lines for each chunk.
-- A chunk counts if it defines a function in a loaded module, or in the
-- module's tables or metatables.
local function own_modules()
  local all = {}
  local function look(v, deep)
    local chunk = type(v) == "function" and debug.getinfo(v, "S").source
    if chunk and chunk:find "^@" and not core.own_source(chunk)
      and not all[chunk] then
      all[chunk] = {}
      for n in ipairs(changes.lines(chunk)) do all[chunk][n] = true end
    end
    if type(v) ~= "table" or deep == 0 then return end
    for _, field in next, v do look(field, deep - 1) end
    look(debug.getmetatable(v), deep - 1)
  end
  for name, module in pairs(package.loaded) do
    if not name:find "^cute" then look(module, 3) end
  end
  return all
end

-- Returns the lines that may have caused an error, as a set for each chunk.
local function suspected(told)
  local all = own_modules()
  all[told.chunk] = all[told.chunk] or {}
  for _, at in ipairs {told, table.unpack(told.frames or {})} do
    local chunk = at.chunk or at.source
    if chunk:find "^@" and not at.own then
      all[chunk] = all[chunk] or {}
      for n = at.line - AROUND, at.line + AROUND // 4 do
        all[chunk][n] = true
      end
    end
  end
  return all
end

-- The longest message of an error, and the longest text of its details, in
-- bytes. A script may raise errors of any length.
local MESSAGE, DETAILS = 4096, 65536

-- Returns the first bytes of a text, without an incomplete character at the
-- end.
local function shortened(text, most)
  if not text or #text <= most then return text end
  return text:sub(1, most):gsub("[\192-\255][\128-\191]*$", "") .. "..."
end

--- Returns the finding of an error. If the error's line is known, also returns
-- a function that returns possible edits.
---@param told table of cutelua.text.errors.told; frames = the frames of the
-- failure
---@return table finding
---@return (fun(): table[])? edits_of
function record.failure(told)
  local message = shortened(told.message, MESSAGE)
  local place = {kind = told.kind, file = told.chunk, line = told.line,
                 frames = told.frames, message = message, details = told.text}
  return {code = codes.of_error(told.kind), kind = told.kind or "interrupted",
    severity = "error", message = message, advice = told.hint,
    details = shortened(told.text, DETAILS),
    places = {record.place("line", told.chunk, told.line)}},
    place.file and place.line and function()
      return likely.edits(place, suspected(told), {})
    end
end

return record
-- SPDX-License-Identifier: MIT
