--- The prompt: reads Lua, runs it, prints values, and continues after errors.
--
-- A local that is declared outside of every block would be lost at the end of
-- its input, so it becomes a global of the prompt (`repl.globalize`). Inside
-- functions and blocks, a local stays a local. The text of every input is kept
-- under its chunk name "=(prompt):N", where the tracer and reports can read it.
local cli = require "cutelua.program.cli"
local complete = require "cutelua.program.complete"
local core = require "cute.core"
local files = require "cute.lang.files"
local folders = require "cutelua.program.folders"
local tokens = require "cutelua.text.tokens"
local reader = require "cutelua.program.reader"
local errors = require "cutelua.text.errors"
local nils = require "cutelua.text.nils"
local report = require "cute.lang.report"
local runs = require "cute.lang.history"
local script = require "cutelua.program.script"
local show = require "cutelua.program.show"
local source = require "cute.lang.source"

local has_sys, sys = pcall(require, "cute.sys")

local repl = {}
repl.__index = repl

local HISTORY_SIZE = 2000
-- The largest history entry in bytes. It is limited because the line editor's
-- search takes quadratic time.
local LONGEST = 4096
local HELP = [[
Type Lua; values are printed. An unfinished input continues in the next line.
Ctrl-C drops the input, or stops the running code; Ctrl-D or `exit` leaves.
A `local` typed at the prompt becomes a global of the prompt; `ans` is the
last value that was printed.
Set: cute = require "cute", _ = cute._, X = cute.X.
  cute.make_layout({8, 4}, {1, 8})         a layout, printed as (8,4):(1,8)
  cute.layout "(8,(8,8)):(8,(1,64))"       the same from CuTe notation
  k(A):profile{grid = 8, block = 128}      a kernel's report without a GPU:
                                           :traffic(), :conflicts(), and
                                           :find_swizzle() to remove these
  k(A):preflight {block = 128}             the targets that it runs on
  %time k(A):launch {grid = 8, block = 32} measures the time of that
  ?make_layout, help(x)                    describes a name or a value;
                                           ?cute.arch lists a module,
                                           name?? shows a function's source
  ?race, ?shared memory                    lists the errors, names and
                                           documents that contain a word]]

--- Returns the text of a chunk by its name; "=(prompt):3" is the third input.
repl.source = source.text

-- ---- locals at the prompt ----

local OPENS = {["function"] = 1, ["do"] = 1, ["if"] = 1, ["repeat"] = 1,
  ["end"] = -1, ["until"] = -1}

-- Returns edits {from, to, text} that turn a local declaration into an
-- assignment to globals. Token i is its `local`. Returns no edits for a <close>
-- variable, which has to stay local.
local function local_edits(list, i)
  local at = list[i].from
  local edits = {{at, at + 4, (" "):rep(5)}}
  local function text(k) return list[k] and list[k].text end
  if text(i + 1) == "function" then return edits end
  -- Position where the declaration's last name, or the attribute of this name,
  -- ends.
  local last
  repeat
    i = i + 1
    if not (list[i] and list[i].name) then return {} end
    last = list[i].from + #list[i].text - 1
    if text(i + 1) == "<" then
      if not list[i + 3] or text(i + 2) == "close" then return {} end
      local from = list[i + 1].from
      last, i = list[i + 3].from, i + 3
      edits[#edits + 1] = {from, last, (" "):rep(last - from + 1)}
    end
    i = i + 1
  until text(i) ~= ","
  if text(i) ~= "=" then edits[#edits + 1] = {last + 1, last, " = nil"} end
  return edits
end

--- Turns locals outside of every block into globals. Line and column numbers
-- stay the same. Text that is not complete Lua is returned unchanged.
---@param text string
---@return string
function repl.globalize(text)
  local list, depth, edits = tokens.of(text), 0, {}
  for i, token in ipairs(list) do
    local before = list[i - 1] and list[i - 1].text
    if before ~= "." and before ~= ":" then
      depth = depth + (OPENS[token.text] or 0)
      if token.text == "local" and depth == 0 then
        table.move(local_edits(list, i), 1, 9999, #edits + 1, edits)
      end
    end
  end
  local out, at = {}, 1
  for _, e in ipairs(edits) do
    out[#out + 1] = text:sub(at, e[1] - 1) .. e[3]
    at = e[2] + 1
  end
  return table.concat(out) .. text:sub(at)
end

-- ---- values ----

--- Returns a value as the prompt prints it, in lines of the terminal's width.
---@return string
function repl.show(v)
  return show.text(v, has_sys and sys.columns() or nil)
end

-- ---- history ----

local function encode(entry)
  return (entry:gsub("\\", "\\\\"):gsub("\n", "\\n"))
end

local function decode(line)
  return (line:gsub("\\(.)", function(c) return c == "n" and "\n" or c end))
end

local function read_history(path)
  local list = {}
  local f <close> = path and core.open_input(path, "private")
  if not f then return list end
  for line in f:lines() do
    local entry = #line <= 2 * LONGEST and decode(line) or ""
    if entry ~= "" and #entry <= LONGEST then list[#list + 1] = entry end
  end
  return list
end

-- Adds an entry to the history file. Reads the file again first, so that two
-- prompts that run at the same time do not delete each other's entries. Does
-- nothing if the folder cannot be written.
local function write_history(path, entry)
  local list = read_history(path)
  if list[#list] == entry then return end
  list[#list + 1] = entry
  local out = {}
  for i = math.max(1, #list - HISTORY_SIZE + 1), #list do
    out[#out + 1] = encode(list[i]) .. "\n"
  end
  cli.write_private(path, table.concat(out))
end

-- ---- the loop ----

--- Prints a failure, in the form of errors.capture.
---@param failure table
function repl:tell(failure)
  self.failed = true
  report.tell(errors.format(failure, self.opt))
end

-- Calls f so that Ctrl-C can interrupt it, prints a failure of f, and returns
-- f's results.
function repl:call(f, ...)
  local call = has_sys and sys.call or xpcall
  local out = table.pack(call(f, errors.capture, ...))
  if not out[1] then self:tell(out[2]) end
  return table.unpack(out, 1, out.n)
end

--- Makes a prompt. Its own globals take precedence over Lua's.
---@param opt? {traceback: boolean?}
function repl.new(opt)
  local self = setmetatable({opt = opt or {}, count = 0, failed = false,
    changed = {}, programs = {}, seen = setmetatable({}, {__mode = "k"})}, repl)
  -- self.last is the value of `ans`, unless the user sets a global `ans`.
  self.last = setmetatable({}, {__index = _G})
  self.env = setmetatable({}, {__index = self.last})
  self.env.help = setmetatable({}, {__tostring = function() return HELP end,
    __call = function(_, x)
      if x == nil then print(HELP) else require "cutelua.doc".doc(x) end
    end})
  return self
end

-- Sets the prompt's globals cute, _ (cute._) and X (cute.X). If cute cannot be
-- loaded, the prompt works without them.
function repl:preset()
  local ok, cute = self:call(require, "cute")
  if not ok then return end
  local env = self.env
  for name, value in pairs {cute = cute, _ = cute._, X = cute.X} do
    if env[name] == nil then env[name] = value end
  end
end

--- Compiles an input: as an expression if possible, else as statements. The
-- chunk of an expression returns nil before the values. A call in it is
-- therefore no tail call and stays in the traceback.
---@return function? chunk
---@return string? message
---@return boolean? unfinished
---@return integer? first index of the first value to print
function repl:compile(text)
  text = text:gsub("^%s*%%time%f[%W]", function(s) return (" "):rep(#s) end)
  local chunk = ("=(prompt):%d"):format(self.count + 1)
  local expression = text:gsub("^%s*=", "")
  local f, why = script.compile("return nil, " .. expression, chunk, self.env)
  if f then return f, nil, nil, 2 end
  local g, message = script.compile(repl.globalize(text), chunk, self.env)
  if g then return g, nil, nil, 1 end
  local unfinished = message:find "near '?<eof>'?$"
    or why:find "near '?<eof>'?$"
  return nil, message, unfinished ~= nil
end

-- Reports whether a kernel was typed at the prompt or is in a file of the user,
-- rather than in a module of cute.
local function is_users(kernel)
  return debug.getinfo(kernel.func, "S").source:find "^[@=][^%[]"
end

-- Records a kernel that was launched. If an earlier kernel had the same name,
-- tell_changes later compares the two.
function repl:note_run(program)
  local name, kernel = program.info.name, program.kernel
  local before = self.programs[name]
  if not self.seen[kernel] and is_users(kernel) then
    self.seen[kernel] = true
    if before then
      self.changed[#self.changed + 1] = {before, program}
    end
  end
  if self.seen[kernel] then self.programs[name] = program end
end

-- Prints the differences of redefined kernels after their first run.
function repl:tell_changes()
  local changed = self.changed
  self.changed = {}
  for _, pair in ipairs(changed) do
    self:call(function()
      print(require "cutelua.program.diff".diff(pair[1], pair[2]))
    end)
  end
end

-- Prints the documentation of a name: that of the user's variable, if there is
-- one, else that of the public name.
function repl:answer(name, code)
  return (self:call(function()
    require "cutelua.doc".answer(name, complete.value(name, self.env), code)
  end))
end

-- Times a chunk and prints the result.
function repl:time(f)
  local timing, watcher = require "cutelua.program.timing", runs.watcher
  local ok, found = self:call(timing.measure, f)
  runs.watcher = watcher
  if ok then print(timing.text(found)) end
  self:tell_changes()
  return ok
end

-- Inputs that leave the prompt, unless the user has a variable of that name.
local LEAVES = {exit = true, quit = true}

--- Reports whether an input leaves the prompt: it is `exit` or `quit`, with or
-- without parentheses.
---@param text string
---@return boolean
function repl:leaves(text)
  local name = text:match "^%s*(%a+)%s*;?%s*$"
    or text:match "^%s*(%a+)%s*%(%s*%)%s*;?%s*$"
  return LEAVES[name] == true and self.env[name] == nil
end

--- Runs one complete input and prints its results. Returns false if it failed.
---@param text string
---@return boolean ok
function repl:eval(text)
  if text:find "^%s*%?%s*%?[%s?]*$" then
    print(HELP)
    return true
  elseif text:find("?", 1, true) then
    local name, code = require "cutelua.doc".asked(text)
    if name then return self:answer(name, code) end
  end
  local timed = text:match "^%s*%%(%a*)"
  if timed and not text:find "^%s*%%time%s+%S" then
    self:tell {message = timed == "time"
      and "%time CODE: the code is missing [bad-argument]"
      or ("no %%%s; the prompt has %%time CODE, which measures how long code "
          .. "takes [unknown-name]"):format(timed), frames = {}}
    return false
  end
  local f, message, _, first = self:compile(text)
  self.count = self.count + 1
  local chunk = ("(prompt):%d"):format(self.count)
  source.add("=" .. chunk, text)
  if not f then
    self:tell {message = message, frames = {}}
    return false
  end
  if timed then return self:time(f) end
  local out = table.pack(self:call(f))
  if out[1] and out.n > first then
    if out[first + 1] ~= nil then self.last.ans = out[first + 1] end
    self:call(function()
      for i = first + 1, out.n do out[i] = repl.show(out[i]) end
      print(table.concat(out, "\t", first + 1, out.n))
    end)
  end
  for _, note in ipairs(out[1] and nils.notes(f, chunk, text) or {}) do
    report.tell("note: " .. note)
  end
  self:tell_changes()
  return out[1]
end

-- Reads lines until they form a complete input. Returns nil at the end of
-- input, and false if Ctrl-C discarded the input.
function repl:input(read)
  self.begun = ""
  local text = read "> "
  while text do
    local f, _, unfinished = self:compile(text)
    if f or not unfinished or #text > files.MOST then return text end
    self.begun = text .. "\n"
    local more = read ">> "
    if more == nil then return text end
    text = more and text .. "\n" .. more
  end
  return text
end

-- Reads and runs inputs. Returns true if an input leaves the prompt, and nil at
-- the end of input.
function repl:loop(read, remember)
  while true do
    local text = self:input(read)
    if text == nil then return end
    if text and text:find "%S" then
      if #text <= LONGEST then remember(text) end
      if self:leaves(text) then return true end
      self:eval(text)
    end
  end
end

--- Reads and runs inputs until the end of input. Returns an exit code: 1 if
-- anything failed and input does not come from a terminal, else 0.
---@return integer
function repl:run()
  local lines = reader.new(nil, function() return self.begun, self.env end)
  self:preset()
  self.failed = false
  if lines.terminal then
    runs.watcher = function(p) self:note_run(p.program) end
    print(("cutelua %s (%s): `help` explains, `exit` leaves")
      :format(sys.version, _VERSION))
  end
  local folder = lines.editor and folders.state()
  local path = folder and sys.mkdirs(folder) and folder .. "/history"
  for _, entry in ipairs(read_history(path)) do lines:add(entry) end
  local left = self:loop(function(prompt) return lines:read(prompt) end,
    function(text)
      lines:add(text)
      if path then write_history(path, text) end
    end)
  if lines.terminal and not left then print() end
  lines:close()
  return not lines.terminal and self.failed and 1 or 0
end

return repl
-- SPDX-License-Identifier: MIT
