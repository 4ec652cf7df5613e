--- `cutelua explain SCRIPT -o k.html`: writes a page about a script's launches
-- on the simulator. Each kernel is shown once for each grid.
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local findings = require "cutelua.findings"
local link = require "cutelua.page.link"
local page = require "cutelua.page"
local report = require "cute.lang.report"
local sign = require "cute.lang.signature"
local source = require "cute.lang.source"
local sys = require "cute.sys"
local watch = require "cutelua.page.watch"

local main = {}

main.HELP = [==[
usage: cutelua explain [options] script [arguments] -o FILE
Runs a script on the simulator and writes a page of its kernels: Lua beside
CUDA C, PTX and SASS, with the cost of each line, the layout of each tensor,
and the reports of the simulator and the compiler. The file is self-contained;
docs/explain.md describes it.

  -o FILE        the file to write; "-" is standard output. This option stands
                 at the end of the line, or before the script
  --kernel NAME  this kernel only
  --format FORM  text, json or sarif (text): docs/findings.md; the record has
                 the lines with their costs, and -o may be left out
  --workshop ADDRESS  the workshop that the page's button opens (default
                 $CUTELUA_WORKSHOP, else the address of cutelua web)
  --help         prints this text and stops

PTX and registers come from NVRTC, SASS from nvdisasm, if they are installed.
Exit code: 0 success, 1 an error (the page shows it, if a kernel was launched
before) or no launch, 2 a wrong command line, 130 interrupted.
]==]

--- Parses the arguments after `explain`. Returns the options, in which `script`
-- is the index of the script's name. Returns nil and a message if an argument
-- is invalid. Removes `-o FILE` after the script's arguments from the list.
---@param words string[]
function main.options(words)
  local opt, i = {}, 1
  local named = {["-o"] = "output", ["--kernel"] = "kernel",
                 ["--workshop"] = "workshop", ["--format"] = "format"}
  while words[i] and words[i]:sub(1, 1) == "-" do
    local a = words[i]
    if a == "--help" or a == "-h" then
      opt.help = true
      return opt
    elseif not named[a] then
      return nil, ("unknown option '%s'; explain --help lists them"):format(a)
    elseif (words[i + 1] or "") == "" and a ~= "--workshop" then
      return nil, ("'%s' needs an argument"):format(a)
    end
    opt[named[a]] = words[i + 1]
    i = i + 2
  end
  if not words[i] then return nil, "explain: which script?" end
  local n = #words
  if not opt.output and n > i + 1 and words[n - 1] == "-o" then
    opt.output, words[n], words[n - 1] = words[n], nil, nil
  end
  local format, why = findings.format(opt.format or "text")
  if not format then return nil, "explain: " .. why end
  if format ~= "text" and opt.output == "-" then
    return nil, "explain: -o - and --format both write standard output"
  elseif format == "text" and (opt.output or "") == "" then
    return nil, "explain: no output file: write -o FILE after the "
      .. "script's arguments"
  end
  opt.address, why = link.address(opt.workshop)
  if why then return nil, "explain: " .. why end
  opt.script, opt.name = i, words[i]
  opt.words = table.move(words, i + 1, #words, 1, {})
  return opt
end

local function unwritten(why)
  return ("cannot write standard output: %s [io]"):format(why)
end

local Session = {}
Session.__index = Session

--- Starts a session that watches launches. On failure, returns nil, a message
-- and an exit code.
---@param opt table
function main.start(opt)
  local s = setmetatable({opt = opt, page = page.new()}, Session)
  if opt.output and opt.output ~= "-" then
    local ok, why = cli.writable(opt.output)
    if not ok then return nil, "explain: " .. why, 1 end
  end
  if opt.output == "-" then
    local out, why = sys.divert()
    if not out then
      return nil, "explain: " .. unwritten(why), 1
    end
    s.out = out
  end
  s.watch = watch.start(s.page, opt.kernel)
  s.stop = s.watch.stop
  return s
end

function Session:write(text)
  if not self.out then return cli.write_file(self.opt.output, text) end
  local ok, why = self.out:write(text)
  if ok then ok, why = self.out:close() end
  return ok, not ok and unwritten(why) or nil
end

-- Returns the script in the form that a link to the workshop takes; nil if the
-- script's text cannot be read again.
local function in_workshop(opt)
  local text = source.text("@" .. opt.name)
  return text and {address = opt.address, script = {
    name = source.short(opt.name), text = text, words = opt.words}}
end

--- Writes the page; returns the exit code.
---@param code integer the script's exit code
---@param message? string the script's error
function Session:finish(code, message)
  code = self.watch.code or code
  if code == 130 then message = nil end
  local kernels = self.page.kernels
  local launched = #kernels > 0
  self.watch:finish(message, message and report.parse(message).line)
  if code == 130 then return code end
  if message and not launched then
    if self.opt.output then
      report.tell("cutelua: explain: nothing was launched before this error; "
        .. "nothing was written")
    end
    return code
  elseif not launched then
    local why = "the script launched nothing"
    if next(self.watch.names) then
      why = sign.no_such("kernel launched", self.opt.kernel, self.watch.names)
    end
    report.tell(("cutelua: explain: %s; nothing was written"):format(why))
    if self.opt.findings then self.opt.findings:fail(why) end
    return code ~= 0 and code or 1
  end
  if self.watch.left > 0 then
    table.insert(kernels[1].missing, report.plural(self.watch.left,
      "more launch is", "more launches are")
      .. " left out: --kernel NAME chooses")
  end
  if self.opt.findings then
    for _, one in ipairs(self.page:explained()) do
      one.kind = "explain"
      self.opt.findings:measure(one)
    end
  end
  if not self.opt.output then return code end
  local text = self.page:html(source.short(self.opt.name),
                              in_workshop(self.opt))
  local ok, why = self:write(text)
  if not ok then
    report.tell("cutelua: explain: " .. (why or "cannot write"))
    return 1
  end
  if not self.out then
    print(("wrote %s: %s, %d KB"):format(core.visible(self.opt.output),
      report.plural(#kernels, "kernel"), #text // 1024))
  end
  return code
end

return main
-- SPDX-License-Identifier: MIT
