--- Calls the program's commands and reports their errors. With `--format json`
-- and `--format sarif`, it writes the record of cutelua.findings to standard
-- output. All other output, including the script's, then goes to standard
-- error.
local errors = require "cutelua.text.errors"
local exit = require "cutelua.program.exit"
local libraries = require "cutelua.text.libraries"
local report = require "cute.lang.report"
local sys = require "cute.sys"

local collected = {}

--- A function that receives the record; if nil, the record is written to
-- standard output.
---@type fun(record: table)?
collected.sink = nil

-- Writes a record to a file; returns the exit code.
local function write(out, text, code)
  local ok, why = out:write(text)
  if ok then ok, why = out:close() end
  if ok then return code end
  report.tell(("cutelua: cannot write standard output: %s [io]"):format(why))
  return code ~= 0 and code or 1
end

--- Calls f. An error of f is reported and passed to opt.collector. Returns an
-- exit code, and the error's message.
---@param opt table options of the program
---@param f function
---@param ... any arguments of f
---@return integer code
---@return string? message
function collected.call(opt, f, ...)
  local ok, failure = sys.call(f, errors.capture, ...)
  libraries.restore()
  if ok or opt.stop and failure.value == opt.stop then return 0 end
  local collector = opt.collector
  if collector then
    if failure.value == exit.STOP then return collector.exit end
    collector:failed(failure)
  end
  report.tell(errors.format(failure, {prefix = "cutelua: ",
    traceback = opt.traceback}))
  return errors.exit_code(failure), type(failure) == "table"
    and failure.message or nil
end

--- Calls f, which runs the script words[at] for a command and returns the exit
-- code. With the formats json and sarif, opt.collector collects the findings of
-- the command while f runs, and the error of f.
---@param opt table options of the program
---@param format string? text when nil
---@param command string
---@param words string[]
---@param at integer
---@param f fun(): integer
---@return integer code
function collected.run(opt, format, command, words, at, f)
  if not format or format == "text" then return f() end
  local sink, out, why = collected.sink, nil, nil
  if not sink then out, why = sys.divert() end
  if not (sink or out) then
    report.tell(("cutelua: cannot write standard output: %s [io]"):format(why))
    return 1
  end
  -- The modules for records are loaded only here, because most runs need no
  -- record.
  local findings = require "cutelua.findings"
  local c = findings.new(command, words[at],
                         table.move(words, at + 1, #words, 1, {}))
  opt.collector = c
  exit.watch(function(code) c.exit = code end)
  report.noted = function(text) c:noted(text) end
  local result
  local code = collected.call(opt, function() result = f() end)
  if code == 0 then code = result or 0 end
  report.noted = nil
  exit.unwatch()
  if sink then
    sink(c:record(code))
    return code
  end
  return write(out, findings.text(c:record(code), format), code)
end

return collected
-- SPDX-License-Identifier: MIT
