--- Checks the documents of `cutelua lsp` in worker processes. Converts the
-- records of cutelua.findings to diagnostics of the protocol, repairs, facts
-- and hints.
--
-- After a pause in typing, a Lua document is checked in three steps: `check`,
-- then `profile` for bank conflicts, then `explain` for layouts. A change of
-- the document ends them. PTX and LAUNCH files have other steps (STEPS), with
-- the words in the document's `job` (cutelua.lsp.ptx).
--
-- Results are in the document's fields. `found` is a list of {diagnostic =,
-- edits = the finding's edits}. `facts` are the tensors in the last record of
-- `explain`. `traffic` are the hints from the last record of `profile`: {line
-- =, label =, tooltip =}.
local core = require "cute.core"
local document = require "cutelua.lsp.document"
local findings = require "cutelua.findings"
local json = require "cutelua.text.json"
local names = require "cutelua.lsp.names"
local ptx = require "cutelua.lsp.ptx"
local sys = require "cute.sys"
local uris = require "cutelua.text.uri"

local checks = {}

-- Seconds without a change after which a document's check starts.
local PAUSE = 0.01
-- The longest text that is checked, in bytes.
local MOST = 1 << 20
local STEPS = {script = {"check", "profile", "explain"},
               launch = {"check", "profile"}, ptx = {"ptx"}}
local SEVERITY = {error = 1, warning = 2, note = 3}

-- Returns the name under which a document is checked: its path, or
-- "untitled.lua".
local function name_of(doc)
  if doc.job then return doc.job.words[1] end
  local path = uris.path(doc.uri)
  return path and path:find "%.lua$" and path or "untitled.lua"
end

---------------------------------------------------------------------------
-- Diagnostics
---------------------------------------------------------------------------

local function range_of(doc, p)
  return {start = doc:place(p.line, p.column),
          ["end"] = doc:place(p.line, p.end_column)}
end

-- Returns the URI of a file that a finding names; nil for modules of cutelua.
local function uri_of(doc, file)
  if doc.job and doc.job.uris[file] then return doc.job.uris[file] end
  if file == name_of(doc) then return doc.uri end
  return file:find "^/" and uris.of_path(file) or nil
end

local START = {start = {line = 0, character = 0},
               ["end"] = {line = 0, character = 0}}

-- Returns the range of a place in another file, whose line is `p.text`.
local function other_range(p)
  local line = document.new("", 0, p.text or "")
  local function place(column)
    local at = p.text and line:place(1, column) or {character = column - 1}
    return {line = p.line - 1, character = at.character}
  end
  return {start = place(p.column), ["end"] = place(p.end_column)}
end

-- Returns a message without the path of the temporary folder for the document's
-- files.
local function without_folder(doc, message)
  if not doc.job then return message end
  return (message:gsub(doc.job.folder:gsub("%p", "%%%0") .. "/", ""))
end

local function diagnostic(doc, f)
  local d = {range = START, severity = SEVERITY[f.severity], code = f.code,
             source = "cutelua", message = f.message}
  if f.advice then d.message = d.message .. "\n" .. f.advice end
  d.message = without_folder(doc, d.message)
  local related, main = {}, nil
  for _, p in ipairs(f.places) do
    local uri = uri_of(doc, p.file)
    local own = uri == doc.uri
    if own and not main then
      main, d.range = p, range_of(doc, p)
    elseif uri then
      related[#related + 1] = {message = p.role, location = {uri = uri,
        range = own and range_of(doc, p) or other_range(p)}}
    end
  end
  d.relatedInformation = related[1] and related or nil
  return d
end

-- Adds the findings whose code matches the pattern `wanted` to a document. A
-- script that launches nothing gets no diagnostic, because it may be a module.
local function add(doc, record, wanted)
  for _, f in ipairs(record.findings) do
    if f.code:find(wanted) and not findings.is_idle(f) then
      table.insert(doc.found, {diagnostic = diagnostic(doc, f),
                               edits = f.edits or {}})
    end
  end
end

-- Adds a diagnostic for each part that an incomplete check did not cover. So a
-- document without diagnostics has passed its check completely.
local function add_uncovered(doc, record)
  for _, o in ipairs(record.verdict == "incomplete" and record.not_checked
    or {}) do
    if o.what ~= "sizes" then
      local own = o.line and uri_of(doc, o.file) == doc.uri
      table.insert(doc.found, {edits = {}, diagnostic = {
        range = own and range_of(doc, {line = o.line, column = 1,
                                       end_column = 1}) or START,
        severity = SEVERITY.note, source = "cutelua",
        message = without_folder(doc, "not covered: " .. o.text)}})
    end
  end
end

-- Returns the hints about a line's memory accesses: bank conflicts, and sectors
-- of global memory beyond the least number that the bytes need.
local function hints_of(s)
  local list = {}
  if s.conflicts > 0 then
    list[1] = {line = s.line,
      label = ("%s: %.3g passes a request in place of %.3g"):format(
        s.shared or "shared", s.wavefronts / s.count,
        (s.wavefronts - s.conflicts) / s.count),
      tooltip = ("%s: %d bank conflicts in %d requests"):format(s.op,
        s.conflicts, s.count)}
  end
  if s.least_sectors > 0 and s.sectors > s.least_sectors then
    list[#list + 1] = {line = s.line,
      label = ("%s: %.0f %% of the sectors' bytes are used"):format(
        s.global or "global", 100 * s.least_sectors / s.sectors),
      tooltip = ("%s: not coalesced: %d sectors in %d requests, where %d would "
        .. "do"):format(s.op, s.sectors, s.requests, s.least_sectors)}
  end
  return list
end

-- Stores the hints from a record of `profile` in the document.
local function weigh(doc, record)
  doc.traffic, doc.weighed = {}, doc.version
  local name = name_of(doc)
  for _, r in ipairs(record.results or {}) do
    for _, s in ipairs(r.lines or {}) do
      local hints = s.file == name and hints_of(s) or {}
      table.move(hints, 1, #hints, #doc.traffic + 1, doc.traffic)
    end
  end
end

local function warn(doc, text)
  table.insert(doc.found, {edits = {}, diagnostic = {range = START,
    severity = SEVERITY.warning, source = "cutelua", message = text}})
end

local function publish(session, doc)
  local list = {}
  for i, one in ipairs(doc.found) do list[i] = one.diagnostic end
  session:notify("textDocument/publishDiagnostics",
    {uri = doc.uri, version = doc.version, diagnostics = list})
end

---------------------------------------------------------------------------
-- Calls
---------------------------------------------------------------------------

local run

-- Handles the outcome of step number `step` in the checks of a document.
local function take(session, doc, step, outcome)
  doc.call = nil
  local record = outcome.record
  if step == 1 then
    doc.found, doc.checked = {}, doc.version
    if record then
      add(doc, record, "")
      add_uncovered(doc, record)
    end
    if not record or outcome.failed then
      warn(doc, outcome.failed or "the check failed: " .. outcome.text)
    end
    publish(session, doc)
    if not record or #record.checked == 0 then return end
  elseif record and step == 2 then
    local before = #doc.found
    add(doc, record, "^performance/")
    if #doc.found > before then publish(session, doc) end
    weigh(doc, record)
  elseif record then
    doc.facts, doc.known = {}, doc.version
    for _, r in ipairs(record.results or {}) do
      table.move(r.tensors, 1, #r.tensors, #doc.facts + 1, doc.facts)
    end
    doc.env = nil
    session:refresh()
  end
  if doc.steps[step + 1] then run(session, doc, step + 1) end
end

-- Starts step number `step` of a document's checks.
function run(session, doc, step)
  local server, job, name = session.server, doc.job, name_of(doc)
  local words, command = {"--format", "json"}, doc.steps[step]
  if command == "check" then
    table.move({"--seconds", ("%.17g"):format(server.seconds), "--no-gpu"},
               1, 3, 3, words)
  end
  local given = job and job.words or {name}
  table.move(given, 1, #given, #words + 1, words)
  doc.call = {seconds = server.seconds, grace = 1, output = server.output,
    background = step > 1,
    request = {command = command, words = words, memory = server.memory,
      texts = job and json.object {} or {[name] = doc.text},
      files = job and job.files or json.object {}, allow_io = server.io},
    done = function(outcome) take(session, doc, step, outcome) end}
  -- Show a bug at once, and its repairs when the check ends.
  doc.call.early = command == "check" and function(record)
    doc.found = {}
    add(doc, record, "")
    publish(session, doc)
  end or nil
  if job then
    local made, why = sys.mkdirs(job.folder)
    if not made then return warn(doc, "no folder: " .. tostring(why)) end
    doc.call.temporary = {}
    for path in pairs(job.files) do table.insert(doc.call.temporary, path) end
    table.insert(doc.call.temporary, job.folder)
  end
  session.calls:add(doc.call)
end

--- Ends the checks of a document.
---@param session table
---@param doc table
function checks.stop(session, doc)
  if doc.call then session.calls:cancel(doc.call) end
  doc.call, session.due[doc] = nil, nil
end

--- Plans the check of a document that was opened or changed. Also plans the
-- checks of other documents that read it, such as the PTX of a LAUNCH file.
---@param session table
---@param doc table
function checks.plan(session, doc)
  for _, one in pairs(session.documents) do
    local has = one == doc
    for _, uri in pairs(one.job and one.job.uris or {}) do
      has = has or uri == doc.uri
    end
    if has then
      checks.stop(session, one)
      session.due[one] = core.clock() + PAUSE
    end
  end
end

--- Removes the diagnostics of a closed document from the editor.
---@param session table
---@param doc table
function checks.clear(session, doc)
  checks.stop(session, doc)
  doc.found, doc.version = {}, nil
  publish(session, doc)
end

-- Starts the check of a document that has not changed for PAUSE seconds.
local function start(session, doc)
  local path = uris.path(doc.uri)
  local other = path and ptx.takes(path)
  doc.job, doc.steps = nil, STEPS.script
  if other and #doc.text <= MOST then
    doc.job = ptx.job(session, path, doc.text, MOST)
    doc.steps = doc.job and doc.job.launches and STEPS.launch or STEPS.ptx
  end
  if doc.job
    or not other and #doc.text <= MOST and names.is_script(doc.text) then
    return run(session, doc, 1)
  end
  doc.found, doc.facts, doc.checked, doc.env = {}, {}, doc.version, nil
  if #doc.text > MOST then
    warn(doc, ("the text has %d bytes; at most %d are checked"):format(
      #doc.text, MOST))
  end
  publish(session, doc)
end

--- Starts the checks of all documents that have not changed for PAUSE seconds.
---@param session table
function checks.tick(session)
  local now = core.clock()
  for doc, at in pairs(session.due) do
    if at <= now then
      session.due[doc] = nil
      start(session, doc)
    end
  end
end

--- Returns the seconds until the next check starts, at most `most`.
---@param session table
---@param most number
---@return number
function checks.patience(session, most)
  local now = core.clock()
  for _, at in pairs(session.due) do most = math.min(most, at - now) end
  return math.max(most, 0)
end

--- Returns the changes of an edit by URI, in the form of the protocol.
---@param doc table
---@param edit table of cutelua.findings.changes
---@return table? changes nil if a change is in a module of cutelua
function checks.changes(doc, edit)
  local by = {}
  for _, c in ipairs(edit.changes) do
    if uri_of(doc, c.file) ~= doc.uri then return nil end
    by[#by + 1] = {newText = c.text, range = {
      start = doc:place(c.start.line, c.start.column),
      ["end"] = doc:place(c.stop.line, c.stop.column)}}
  end
  return {[doc.uri] = by}
end

checks.MOST = MOST

return checks
-- SPDX-License-Identifier: MIT
