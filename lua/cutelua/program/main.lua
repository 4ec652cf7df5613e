--- The command line of the `cutelua` program.
local collected = require "cutelua.program.collected"
local core = require "cute.core"
local files = require "cute.lang.files"
local kinds = require "cutelua.ptx.kinds"
local report = require "cute.lang.report"
local script = require "cutelua.program.script"
local source = require "cute.lang.source"
local sys = require "cute.sys"

local program = {}
local protected = collected.call

local HELP = [==[
usage: cutelua [options] [script [arguments]]
       cutelua COMMAND ...     (COMMAND --help lists its options)
Runs a Lua 5.4 script with `require "cute"` built in. Without a script and
without -e it starts an interactive prompt.

COMMANDS

  -e CODE        runs CODE (may be given more than once)
  -l MODULE      requires MODULE into a global of that name
  -i             starts the prompt after the script or -e
  -              runs standard input as a script
  --watch        runs the script again whenever it, or one of its modules, is
                 saved, and shows the differences from the previous run
  --traceback    shows Lua's traceback under an error
  --version      prints the version and stops
  --help         prints this text and stops
  --             ends the options

The script reads its arguments from `arg` and `...`, as in stock lua.
Exit code: 0 success, 1 an error, 2 a wrong command line, 130 interrupted.
]==]

local VALUED = {["-e"] = true, ["-l"] = true}
local FLAGS = {["-i"] = "interactive", ["--watch"] = "watch",
  ["--traceback"] = "traceback",
  ["--version"] = "version", ["-v"] = "version", ["--help"] = "help",
  ["-h"] = "help"}

--- Parses the command line. Returns a table: steps = {{"-e", code}, ...},
-- script = the index of the script's name in argv, and the flags by name.
---@param argv table argv[0] is the program
---@return table? options, string? message
function program.options(argv)
  local opt = {steps = {}}
  local i = 1
  while argv[i] do
    local a = argv[i]
    if a == "--" then
      i = i + 1
      break
    elseif a == "-" or a:sub(1, 1) ~= "-" then
      break
    elseif FLAGS[a] then
      opt[FLAGS[a]] = true
    elseif VALUED[a:sub(1, 2)] and a:sub(1, 2) ~= "--" then
      local value = a:sub(3)
      if value == "" then
        i = i + 1
        value = argv[i]
      end
      if not value then return nil, ("'%s' needs an argument"):format(a) end
      if a:sub(1, 2) == "-l" and not value:find "[^=]$" then
        return nil, ("-l: a module name is needed, got '%s'"):format(value)
      end
      opt.steps[#opt.steps + 1] = {a:sub(1, 2), value}
    else
      local advice = require "cutelua.text.foreign".lesson_option(a)
      return nil, advice or ("unknown option '%s'; --help lists them"):format(a)
    end
    i = i + 1
  end
  if argv[i] then opt.script = i end
  return opt
end

local function read_script(name)
  if name == "" then
    error("the script's name is empty: '' names no file [io]", 0)
  end
  local f, why = io.stdin, nil
  if name ~= "-" then f, why = core.open_input(name) end
  if not f then
    error(("cannot open %s: %s [io]"):format(core.visible(name), why), 0)
  end
  local text
  text, why = files.rest(f)
  if name ~= "-" then f:close() end
  if not text then
    error(("cannot read %s: %s [io]"):format(core.visible(name), why), 0)
  end
  return text
end

-- Makes `require` search the folder of the script first.
local function look_beside(name)
  local folder = name:match "^(.*/)" or "./"
  if name == "-" or folder:find "[;?]" then return end
  package.path = ("%s?.lua;%s?/init.lua;%s"):format(folder, folder,
    package.path)
end

local function script_function(opt, name, env)
  local text = opt.texts and opt.texts[name]
  if not text and kinds.of(name) then
    return function(...)
      return require "cutelua.ptx.launch".main(name, {...})
    end
  end
  look_beside(name)
  text = text or read_script(name)
  if text:sub(1, 1) == "\27" then return assert(load(text, "@" .. name)) end
  text = script.plain(text)
  local chunk = name == "-" and "=stdin" or "@" .. name
  if name == "-" or opt.guard or core.file_kind(name) ~= "file" then
    source.add(chunk, text)
  end
  local f = script.load(text, chunk, opt.interactive and env or nil)
  opt.chunk = {f, chunk:sub(2), text}
  return opt.guard and opt.guard(f) or f
end

local function set_arg(argv, at)
  local arg = {}
  for i = 0, #argv do arg[i - (at or 0)] = argv[i] end
  _G.arg = arg
  return arg
end

-- The largest number of notes about names that are nil.
local MOST_NILS = 5

-- Reports whether a script may read its arguments. It may if its text contains
-- `arg` or `...`, or if it requires a module of the user, which may read them.
local function reads_arguments(name)
  local text = name ~= "-" and files.read(name, nil, "plain")
  if not text or text:find "%f[%w_]arg%f[^%w_]"
    or text:find("...", 1, true) then
    return true
  end
  for module in text:gmatch "%f[%w_]require%s*%(?%s*[\"']([%w_]+)" do
    if module ~= "cute" and module ~= "cutelua" and module ~= "kernels" then
      return true
    end
  end
  return false
end

-- Options that only lessons (the scripts in scripts/) have, and how to get
-- their effect in other scripts.
local IN_SCRIPT = {
  device = "write device = \"sim\" or \"gpu\" in the launch's options",
  arch = "write device = \"sim:sm_80\" in the launch's options",
  seed = "write seed = 1 in the launch's options",
  emit = "print(k(x, y):trace {block = 128}.source) prints the CUDA C of a "
    .. "kernel",
}

-- Reports options that follow word number `at`, the name of a Lua script, if
-- the script reads no arguments and so ignores them.
local function note_ignored(opt, words, at)
  if not opt.chunk or reads_arguments(words[at]) then return end
  for i = at + 1, #words do
    local name = words[i]:match "^%-%-(%l[%l-]*)"
    local instead = name and IN_SCRIPT[name]
    if name then
      report.note(("--%s has no effect, because %s reads no arguments%s")
        :format(name, words[at], instead and ": " .. instead or ""))
    end
  end
end

-- Notes on calls that have no effect, by kind of call.
local NO_EFFECT = {
  called = "kernel NAME was called and never launched: write "
    .. "NAME(...):launch {grid = g, block = b}",
  compiled = "the launch of kernel NAME was prepared and never launched: call "
    .. "launch() of the result, or write NAME(...):launch {...}",
  discarded = "NAME returns a new tensor, which this statement discards: write "
    .. "local y = NAME(...), or name a tensor for the result, {out = y}",
}

-- Reports calls of a script that had no effect, and names without a value that
-- it stored in fields. In a session such as that of `cutelua check`, it reports
-- only calls of kernels: other calls may have a purpose there. If the script
-- failed (code), it reports calls only if a comparison found wrong results.
local function note_unlaunched(opt, code, session)
  local unused, notes = package.loaded["cute.lang.unused"], {}
  if code ~= 0 and not (unused and unused.wrong) then return end
  if unused then unused.wrong = false end
  for key, call in pairs(unused and unused.places or {}) do
    if session and call.kind ~= "called" then unused.places[key] = nil end
  end
  for _, call in pairs(unused and unused.places or {}) do
    local text = call.place .. ": "
      .. NO_EFFECT[call.kind]:gsub("NAME", call.name)
    if not notes[text] then notes[text], notes[#notes + 1] = true, text end
  end
  if unused then unused.places = {} end
  table.sort(notes)
  if opt.chunk then
    local nils = require "cutelua.text.nils"
    table.move(nils.notes(table.unpack(opt.chunk)), 1, MOST_NILS,
               1 + #notes, notes)
  end
  for _, text in ipairs(notes) do report.tell("cutelua: note: " .. text) end
end

local function run_steps(opt)
  for n, step in ipairs(opt.steps) do
    local code = protected(opt, function()
      if step[1] == "-l" then
        _G[step[2]:match "^[^=]+"] = require(step[2]:match "[^=]+$")
        return
      end
      local many = n > 1 and " " .. n or ""
      script.add(step[2], "=(command line" .. many .. ")")()
    end)
    if code ~= 0 then return code end
  end
  return 0
end

-- ---- commands ----

-- Returns a command that runs main(words, opt) of a module. main returns an
-- exit code.
local function plain(module)
  return function(opt, words)
    local result
    local code = protected(opt, function()
      result = require(module).main(words, opt)
    end)
    return code ~= 0 and code or result
  end
end

-- Runs the script whose name is words[at]. The elements after it are the
-- script's arguments.
local function run_script(opt, words, at)
  local arg = set_arg(words, at)
  return script_function(opt, words[at])(table.unpack(arg))
end

local RUN = [==[
usage: cutelua run [options] script [arguments]
       cutelua run [options] FILE.ptx|FILE.cu|NAME.json --launch LAUNCH
       cutelua run [options] FOLDER [--launch LAUNCH]
Runs a script, or launches PTX, CUDA C, or a kernel that Triton compiled (its
metadata NAME.json) as a LAUNCH file says. A folder has a kernel that the CuTe
DSL compiled, or a launch that libcutecapture recorded (docs/ptx.md).
Without options, the word `run` may be left out.

  --fidelity     runs on the simulator, and prints which operations a GPU
                 computes with the same bits (docs/simulator.md)
  --format FORM  text, json or sarif (text); json and sarif print what the
                 simulator found (docs/findings.md), or with --fidelity json its
                 result; the script's output then goes to standard error
  --help         prints this text and stops

Exit code: 0 success, 1 an error or a fault, 2 a wrong command line, 130
interrupted.
]==]

-- Runs a script and reports kernels that it never launched.
local function run_plain(opt, words)
  local first, format = words[1], nil
  if first and first:find "^%-%-f[io]" then
    words, format = require "cutelua.program.fidelity".take(words)
    if not words then return 2 end
    first = words[1]
  end
  if first == "--help" or first == "-h" then
    io.write(RUN)
    return 0
  elseif not first or first:find "^%-." then
    report.tell(first
      and ("cutelua: unknown option '%s'; run --help says more"):format(first)
      or "cutelua: run: which script?")
    return 2
  end
  return collected.run(opt, format, "run", words, 1, function()
    if opt.collector then opt.collector:watch() end
    local code = protected(opt, run_script, opt, words, 1)
    note_unlaunched(opt, code)
    if code == 0 then note_ignored(opt, words, 1) end
    return code
  end)
end

-- Returns a command that runs main(words, run, opt) of a module. main returns
-- an exit code. main calls run(words), perhaps several times, to run the script
-- words[1].
local function starter(module)
  return function(opt, words)
    local result
    local code = protected(opt, function()
      result = require(module).main(words, function(own)
        return run_script(opt, own, 1)
      end, opt)
    end)
    return code ~= 0 and code or result
  end
end

-- Reports arguments after the script's name that are options of the command, if
-- the script reads no arguments. They have no effect, because they count as
-- arguments of the script.
local function note_behind(help, words, at)
  if not words[at + 1] then return end
  local foreign = require "cutelua.text.foreign"
  if reads_arguments(words[at]) then return end
  for i = at + 1, #words do
    local name = words[i]:match "^%-%-%l[%l-]*"
    local launches = name and foreign.launch_option(name, help)
    if launches then
      report.note(launches)
    elseif name and help:find("\n  " .. name:gsub("%-", "%%-") .. "[ \n]") then
      report.note(("%s follows the script, which reads no arguments: write "
        .. "%s before the script"):format(name, name))
    end
  end
end

-- Returns the verdict of a record. If it is "ok" but the record has a note
-- whose message is not in the set `known`, returns "noted" instead.
local function verdict_of(record, known)
  for _, f in ipairs(record.verdict == "ok" and record.findings or {}) do
    if not known[f.message] then return "noted" end
  end
  return record.verdict
end

-- Runs a command on changed texts, for cutelua.findings.trials. Returns the
-- verdict of its record, and the sizes of its launches.
local function run_again(opt, command, words, request)
  local findings = require "cutelua.findings"
  local record
  function collected.sink(found) record = found end
  findings.early, findings.launched = nil, nil
  local own = {steps = {}, guard = opt.guard, trial = request.seconds,
    texts = setmetatable(request.texts, {__index = opt.texts})}
  command(own, words)
  return verdict_of(record, request.notes), own.collector.sizes
end

-- Returns the command of this name, which runs a script in a session. The
-- module has these functions:
--   options(words)  finds the script; or returns nil and a message
--   whole(own)      optional: may do everything and return the exit code
--   start(own)      makes the session; or returns nil, a message and an exit
--                   code
-- and the session has finish(code), which ends it. If the module's field
-- `repairs` is true, edits of the script are tried after a bug. own.trial is
-- the time limit of a trial, and nil outside of trials.
local function session(command, module)
  local function run(opt, own, words)
    local main = require(module)
    own.findings = opt.collector
    local started, message, code = main.start(own)
    if not started then
      report.tell("cutelua: " .. message)
      return code or 2
    end
    note_behind(main.HELP, words, own.script)
    opt.stop = started.stop
    if own.findings then own.findings:watch() end
    local result, text = protected(opt, run_script, opt, words, own.script)
    note_unlaunched(opt, result, true)
    return started:finish(result, text)
  end
  local function whole(opt, words)
    local main = require(module)
    local own, message = main.options(words)
    if not own then
      report.tell("cutelua: " .. message)
      return 2
    end
    if own.help then
      io.write(main.HELP)
      return 0
    end
    own.trial = opt.trial
    local done = main.whole and main.whole(own)
    if done then return done end
    return collected.run(opt, own.format, command, words, own.script, function()
      local trials = main.repairs and own.format and not opt.trial
        and require "cutelua.findings.trials".start(function(request)
          return run_again(opt, whole, words, request)
        end)
      local code = run(opt, own, words)
      if trials then
        opt.collector:repair(trials, own.limit)
        trials:close()
      end
      return code
    end)
  end
  return whole
end

-- Returns the command whose name is similar to a word, or nil.
local function nearest_command(word)
  local names = {}
  for i, row in ipairs(program.commands) do names[i] = row[1] end
  return core.nearest(word, names)
end

local function command_of(word)
  for _, row in ipairs(program.commands) do
    if row[1] == word then return row end
  end
end

--- Runs a command within this process; returns its exit code.
---@param opt table {texts: table<string, string>? texts of scripts by name, to
-- use instead of files; guard: fun(f: function): function? returns the function
-- to run instead of a script's main function}
---@param name string
---@param words string[] the words after the command's name
---@return integer
function program.run(opt, name, words)
  opt.steps = {}
  return command_of(name).run(opt, words)
end

local VERSION = [==[
usage: cutelua version
Prints the version, and the NVRTC libraries that compile kernels.
]==]

-- Runs `cutelua version`.
local function print_version(_, words)
  local first = words and words[1]
  if first == "--help" or first == "-h" then
    io.write(VERSION)
    return 0
  elseif first then
    report.tell(("cutelua: version: unexpected argument '%s'"):format(
      core.visible(first)))
    return 2
  end
  print(("cutelua %s (%s)"):format(sys.version, _VERSION))
  require "cutelua.cache.compilers".print()
  return 0
end

local HELP_OF = [==[
usage: cutelua help [COMMAND]
Prints the options of cutelua, or of a command.
]==]

-- Runs `cutelua help [COMMAND]`.
local function print_help(opt, words)
  local topic = words[1]
  if not topic then
    io.write(program.help())
    return 0
  elseif topic == "--help" or topic == "-h" then
    io.write(HELP_OF)
    return 0
  end
  local row = command_of(topic)
  if row then return row.run(opt, {"--help", [0] = words[0]}) end
  local near = nearest_command(topic)
  report.tell(("cutelua: help: there is no command '%s'%s"):format(
    core.visible(topic), near and ": did you mean " .. near .. "?"
    or "; cutelua help lists the commands"))
  return 2
end

--- Commands in the order of --help: name, arguments, effect, and the function
-- that runs them. A script whose name is that of a command must be written as
-- ./tune.
program.commands = {
  {"tune", "gemm --shapes M,N,K|FILE ...", "measures kernels for a product",
   run = plain "cutelua.tune"},
  {"run", "script [arguments]", "runs it, as without `run`",
   run = run_plain},
  {"debug", "script [arguments]", "steps forward and back",
   run = starter "cutelua.debug.prompt"},
  {"check", "[options] script [arguments]", "checks all schedules",
   run = session("check", "cutelua.check.main")},
  {"ci", "[options] PATH...", "checks folders, writes reports",
   run = plain "cutelua.ci"},
  {"profile", "[options] script [arguments]", "memory traffic, bank conflicts",
   run = session("profile", "cutelua.profile.main")},
  {"estimate", "[options] script [arguments]", "time and limits on a card",
   run = session("estimate", "cutelua.profile.estimates")},
  {"diff", "BEFORE AFTER [arguments]", "compares two versions",
   run = starter "cutelua.program.diffs"},
  {"draw", "[options] LAYOUT", "draws a layout",
   run = plain "cutelua.draw.main"},
  {"explain", "script [arguments] -o FILE", "writes a page of its kernels",
   run = session("explain", "cutelua.page.main")},
  {"compile", "[options] script [arguments]", "compiles ahead of time",
   run = session("compile", "cutelua.cache.compile")},
  {"cache", "list|verify|clear|path", "the cache of compiled kernels",
   run = plain "cutelua.cache.main"},
  {"bundle", "[options] script [arguments]", "writes its kernels as C",
   run = starter "cutelua.bundle.main"},
  {"learn", "[lesson]", "the tutorial, with exercises",
   run = plain "cutelua.learn.main"},
  {"task", "new|run|judge FOLDER", "tasks, and a judge of solutions",
   run = plain "cutelua.task"},
  {"mcp", "[options]", "serves programs that write kernels",
   run = plain "cutelua.mcp"},
  {"lsp", "[options]", "serves editors", run = plain "cutelua.lsp"},
  {"web", "[--port N]", "serves the workshop to a browser",
   run = plain "cutelua.program.web"},
  {"doc", "[names]", "describes names", run = plain "cutelua.doc"},
  {"ptx", "FILE", "lists kernels of PTX or CUDA C",
   run = plain "cutelua.ptx.list"},
  {"help", "[command]", "prints this text, or that command's",
   run = print_help},
  {"version", "", "prints the version", run = print_version},
}

--- Returns the text that --help prints.
---@return string
function program.help()
  local lines = {}
  for i, row in ipairs(program.commands) do
    lines[i] = ("  %-40s  %s"):format(row[1] .. " " .. row[2], row[3])
  end
  return (HELP:gsub("COMMANDS", (table.concat(lines, "\n"):gsub("%%", "%%%%"))))
end

-- If a word is neither a file nor a command, but resembles a command, reports
-- this command and returns an exit code. Returns nil if the word may be a
-- script.
local function reject_near(word)
  if not word:find "^%a+$" or core.file_kind(word) then return nil end
  local near = nearest_command(word)
  if not near then return nil end
  report.tell(("cutelua: there is no command or file '%s': did you mean "
    .. "`cutelua %s`?"):format(word, near))
  return 2
end

-- Runs `cutelua --watch ...`. The program is then run repeatedly, with the same
-- options except --watch.
local function watched(opt, argv)
  local name = opt.script and argv[opt.script]
  if not name or name == "-" or command_of(name) or opt.interactive then
    report.tell("cutelua: --watch needs a script and cannot be combined with a "
      .. "prompt")
    return 2
  end
  local options = {}
  for i = 1, opt.script - 1 do
    if argv[i] ~= "--watch" then options[#options + 1] = argv[i] end
  end
  return require "cutelua.program.watch".main(options,
    table.move(argv, opt.script, #argv, 1, {}))
end

--- Runs the program; returns its exit code.
---@param argv table
---@return integer
function program.main(argv)
  local opt, message = program.options(argv)
  if not opt then
    report.tell("cutelua: " .. message)
    return 2
  end
  if opt.help then
    io.write(program.help())
    return 0
  elseif opt.version then
    return print_version()
  end
  if opt.watch then return watched(opt, argv) end
  local command = opt.script and command_of(argv[opt.script])
  if command then
    local words = table.move(argv, opt.script + 1, #argv, 1, {[0] = argv[0]})
    return command.run(opt, words)
  end
  local mistaken = opt.script and reject_near(argv[opt.script])
  if mistaken then return mistaken end
  local arg = set_arg(argv, opt.script)
  local code = run_steps(opt)
  if code ~= 0 and not opt.interactive then return code end
  local prompt = opt.interactive or not opt.script and #opt.steps == 0
  local repl = prompt and require "cutelua.program.repl".new(opt)
  if opt.script then
    code = protected(opt, function()
      local env = repl and repl.env
      local f = script_function(opt, argv[opt.script], env)
      return f(table.unpack(arg))
    end)
    note_unlaunched(opt, code)
    if code == 0 then note_ignored(opt, argv, opt.script) end
  end
  if repl and not opt.script then look_beside "./" end
  if repl then return repl:run() end
  return code
end

return program
-- SPDX-License-Identifier: MIT
