--- Tries edits of a script by running a command again on the changed texts,
-- each time in a copy of this process. Before the script runs, this process
-- forks a copy, which waits. For each trial, the waiting process forks a copy
-- of itself, in which no script has run yet.
local changes = require "cutelua.findings.changes"
local core = require "cute.core"
local json = require "cutelua.text.json"
local report = require "cute.lang.report"
local source = require "cute.lang.source"

local trials = {}

local Trials = {}
Trials.__index = Trials

-- A trial may take this many seconds longer than its command's time limit.
local GRACE = 1
-- A trial that waits instead of computing is ended after this many seconds.
local PATIENCE = 300

-- Makes Lua read the given texts instead of the files with these paths.
local function overlay(texts)
  local load, load_file = load, loadfile
  for path, text in pairs(texts) do source.add("@" .. path, text) end
  function _G.loadfile(path, mode, ...)
    if not texts[path] then return load_file(path, mode, ...) end
    return load(texts[path], "@" .. path, mode or "bt", ... or _G)
  end
  function _G.dofile(path) return assert(loadfile(path))() end
  table.insert(package.searchers, 2, function(name)
    local path = package.searchpath(name, package.path)
    if not (path and texts[path]) then return "\n\tno changed file" end
    return assert(load(texts[path], "@" .. path)), path
  end)
end

-- Runs one trial in this process, and then ends the process.
local function attempt(sys, socket, run, request)
  sys.mute()
  -- All limits count processor time, so that other programs cannot change a
  -- verdict.
  core.clock = os.clock
  sys.limit_processor(math.ceil(request.seconds + GRACE))
  overlay(request.texts)
  local ok, verdict, sizes = pcall(run, request)
  for i = 1, ok and math.max(#sizes, #request.sizes) or 0 do
    -- If the edit changed a launch's size, the script solves another problem.
    local size = request.sizes[i]
    if size and sizes[i] ~= size or not size and sizes[i] == "empty" then
      ok = false
    end
  end
  socket:send(("%s %.3f"):format(ok and verdict or "error", os.clock()))
  sys.leave(0)
end

-- Answers requests until the parent ends. A request is a line of JSON: {texts =
-- by path, seconds = of processor time, patience = seconds of waiting, sizes =,
-- notes =, modules = names of modules to load first}. An answer is a line with
-- the verdict of the record, "noted", "error" or "late" (see Trials:try), and
-- the processor time of the trial in seconds. For "late", the time is
-- `patience`.
local function serve(sys, socket, run)
  local bytes = ""
  while true do
    local line, rest = bytes:match "^(.-)\n(.*)$"
    if not line then
      local more = socket:receive()
      if not more then sys.leave(0) end
      bytes = bytes .. more
    else
      bytes = rest
      local request = json.decode(line)
      for _, name in ipairs(request.modules) do pcall(require, name) end
      local process, is_copy = sys.fork()
      if is_copy then attempt(sys, process, run, request) end
      local answer = "error 0"
      if process then
        answer = ("late %g"):format(request.patience)
        if sys.poll({process}, request.patience + GRACE) then
          answer = process:receive() or ("error %g"):format(request.seconds)
        end
        process:close()
      end
      socket:send(answer .. "\n")
    end
  end
end

--- Makes the copy of this process that waits for trials. Returns nil if the
-- system cannot copy processes.
---@param run fun(request: table): string, string[] runs the command on
-- request.texts in at most request.seconds, in a copy; returns the verdict of
-- its record, and the sizes of its launches (cutelua.findings)
---@return table?
function trials.start(run)
  local ok, sys = pcall(require, "cute.sys")
  if not (ok and sys.fork) then return nil end
  local process, is_copy = sys.fork()
  if is_copy then
    pcall(serve, sys, process, run)
    sys.leave(1)
  end
  return process and setmetatable({process = process, sys = sys}, Trials)
end

--- Runs the command on changed texts. Returns the verdict of its record, or
-- one of three other words. "noted" means that the verdict is "ok", but there
-- is a note that the unchanged script does not have. "error" is returned after
-- an error, a crash, or too much processor time. "late" is returned after
-- `patience` seconds. Returns nil if no further trial is possible.
---@param texts table<string, string> changed texts by path
---@param seconds number limit of processor time
---@param patience number
---@return string? verdict
---@return number? time processor time in seconds
function Trials:try(texts, seconds, patience)
  local ok = self.process:send(json.encode {texts = texts, seconds = seconds,
    patience = patience, sizes = self.sizes, notes = self.notes,
    modules = self.modules} .. "\n")
  self.modules = {}
  local bytes = ""
  local till = core.clock() + patience + 2 * GRACE
  while ok and not bytes:find "\n$" do
    if not self.sys.poll({self.process}, till - core.clock()) then break end
    local more = self.process:receive()
    if not more then break end
    bytes = bytes .. more
  end
  local verdict, time = bytes:match "^(%l+) (%S+)\n$"
  -- Without an answer, end the trials: a late answer would be taken for the
  -- next trial's answer.
  self.over = not verdict
  return verdict, tonumber(time)
end

-- - SECONDS: processor time for the trials of all edits.
-- - ONE: the most processor time for one trial.
-- - MOST: the search ends after this many successful edits.
-- - MORE: once an edit with a note succeeded, processor time for the search for
--   an edit without a note.
local SECONDS, ONE, MOST, MORE = 30, 10, 3, 3

-- Returns the texts of an edit's files after its changes, by path. Returns nil
-- if the text of a file is unknown, or does not compile after the changes.
local function changed_texts(edit)
  local by, texts = {}, {}
  for _, c in ipairs(edit.changes) do
    by[c.file] = by[c.file] or {changes = {}}
    table.insert(by[c.file].changes, c)
  end
  for file, one in pairs(by) do
    local text = source.text("@" .. file)
    texts[file] = text and changes.applied(text, one)
    if not (texts[file] and load(texts[file], "=edit", "t")) then return nil end
  end
  return texts
end

-- Returns the names of cutelua's modules that the script has loaded. The copy
-- of the process loads them before its first trial.
local function loaded()
  local list = {}
  for name in pairs(package.loaded) do
    if name:find "^cute" then list[#list + 1] = name end
  end
  table.sort(list)
  return list
end

--- Tries edits in their order, and returns those after which the command finds
-- nothing wrong. An edit is put last and marked `unchecked` if it causes a note
-- that the original script lacks, or if the command could not check everything.
-- If no edit succeeds, returns edits that were not tried, marked `unchecked`.
-- The search for further edits takes at most as long as the search for the
-- first (MORE longer, if that has a note). Edits given without `unchecked` come
-- from cutelua.check.repair; if one of them succeeds, other edits are omitted.
---@param list table[]
---@param sizes string[] sizes of the launches up to the finding; an edit must
-- not change them
---@param notes table<string, boolean> messages of the script's notes
---@param limit? number a time of core.clock at which the trials end
---@return table[] edits
---@return table result for the record
function Trials:sift(list, sizes, notes, limit)
  local began, used, most = core.clock(), 0, SECONDS
  local clean, noted, partly, rest, n, sure = {}, {}, {}, {}, 0, false
  limit, self.modules = limit or math.huge, loaded()
  self.sizes, self.notes = sizes, notes
  for i, edit in ipairs(list) do
    local left = limit - core.clock()
    if clean[MOST] or used >= most or left <= 0 or self.over then
      rest = table.move(list, i, #list, 1, {})
      break
    end
    local verdict, time
    local texts = not (sure and edit.unchecked) and changed_texts(edit)
    if texts then
      verdict, time = self:try(texts, math.min(ONE, left),
                               math.min(PATIENCE, left))
    end
    if verdict then n, used = n + 1, used + time end
    if verdict == "ok" then
      sure = sure or not edit.unchecked
      edit.unchecked = nil
      clean[#clean + 1] = edit
      most = math.min(most, 2 * used)
    elseif verdict == "noted" then
      noted[#noted + 1] = edit
      most = math.min(most, 2 * used + MORE)
    elseif verdict == "incomplete" then
      partly[#partly + 1] = edit
    end
  end
  local result = {kind = "repairs", tried = n, clean = #clean, left = #rest,
                  seconds = core.clock() - began}
  local edits = table.move(noted, 1, #noted, #clean + 1, clean)
  table.move(partly, 1, #partly, #edits + 1, edits)
  if not edits[1] then edits = table.move(rest, 1, MOST, 1, {}) end
  for i = result.clean + 1, #edits do edits[i].unchecked = true end
  return edits, result
end

--- Returns a result of Trials:sift as a sentence.
---@param result table
---@return string
function Trials.told(result)
  return ("check: repairs: %s of the script tried in %.1f s; %s it ok%s")
    :format(report.plural(result.tried, "edit"), result.seconds,
    result.clean == 1 and "1 makes" or result.clean .. " make",
    result.left > 0 and result.clean == 0
      and ("; %d were left"):format(result.left) or "")
end

--- Ends the trials.
function Trials:close() self.process:close() end

return trials
-- SPDX-License-Identifier: MIT
