--- The debugger's prompt, which reads one command per line; and the command
-- `cutelua debug SCRIPT`.
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local debugger = require "cutelua.debug"
local files = require "cute.lang.files"
local report = require "cute.lang.report"

local has_sys, sys = pcall(require, "cute.sys")

local prompt = {}

local HELP = [[
  step [N], s        goes to the next line of the warp in focus
  stepi [N], si      goes to its next instruction
  back [N], b        goes to the previous line
  backi [N], bi      goes to the previous instruction
  continue, c        goes to the next breakpoint, change or fault
  reverse, rc        goes to the last breakpoint or change before here
  goto N, g          goes to step N of the run
  break [FILE:]LINE [block B] [warp W], br
                     stops at the start of that line
  watch sA(3,5), w   stops when that element changes or is stored
  delete [N], d      deletes breakpoint N, or all
  info, i            lists breakpoints and watched elements
  print NAME, p      prints a local, a field, a tensor or an element of it:
                     p k   p smem.A   p sA   p sA(3,5)   p tCrA((0,1),2,0)
  last sA(3,5), l    shows the last change of that element and its thread
  block B, warp W, lane L
                     sets the focus; blocks in the order of the grid
  where, list, warps, bars
                     show the position; nearby lines; warps; all barriers
  locals             lists the names in scope
  quit, q            leaves; memory is restored to its state before the launch
An empty line repeats the last command.]]

-- ---- commands ----

local commands = {}

local function count(text)
  if text == "" then return 1 end
  local n = cli.whole(text)
  if not n or n < 1 then
    core.fail("bad-argument", ("'%s'; a count of at least 1 is needed")
      :format(text))
  end
  return n
end

local function moving(name, nowhere)
  return function(s, text)
    local moved = s[name](s, count(text))
    print((moved and "" or nowhere .. "\n") .. s:where())
  end
end

commands.step = moving("step", "the end is reached")
commands.stepi = moving("stepi", "the end is reached")
commands.back = moving("back", "nothing was before")
commands.backi = moving("backi", "nothing was before")
commands["continue"] = moving("continue", "the end is reached")
commands.reverse = moving("reverse", "nothing stopped before here")

commands["goto"] = function(s, text)
  s:go(count(text))
  print(s:where())
end

commands["break"] = function(s, text)
  local place, rest = text:match "^(%S+)%s*(.*)$"
  local file, line = (place or ""):match "^(.-):?(%d+)$"
  if not line then
    core.fail("bad-argument", "break [FILE:]LINE [block B] [warp W]")
  end
  local where = {file = file ~= "" and file or nil,
                 cta = math.tointeger(tonumber(rest:match "block%s+(%d+)")),
                 warp = math.tointeger(tonumber(rest:match "warp%s+(%d+)"))}
  print(("breakpoint %d"):format(s:breakpoint(math.tointeger(tonumber(line)),
    where)))
end

function commands.watch(s, text)
  print(("watchpoint %d"):format(s:watch(text)))
end

function commands.delete(s, text)
  if not s:delete(text ~= "" and count(text) or nil) then
    core.fail("bad-argument", ("there is no breakpoint %s"):format(text))
  end
end

function commands.info(s)
  if #s.breaks == 0 then print "no breakpoints, nothing is watched" end
  for _, b in ipairs(s.breaks) do
    print(("%3d  %s%s%s"):format(b.number,
      b.text or ("%s:%d"):format(require "cute.lang.source".short(b.file),
      b.line), not b.text and b.cta and " block " .. b.cta or "",
      not b.text and b.warp and " warp " .. b.warp or ""))
  end
end

function commands.print(s, text) print(s:print(text)) end

function commands.last(s, text)
  local at = s:last(text)
  if not at then
    print(("%s did not change before here"):format(text))
    return
  end
  local show = require "cutelua.debug.show"
  print(("%s changed before step %d: %s, %s"):format(text, at.step,
    show.place(at), show.who(at)))
end

local function looks(i)
  return function(s, text)
    local n = text == "0" and 0 or count(text)
    local eye = {}
    eye[i] = n
    s:look(eye[1], eye[2], eye[3])
    print(s:source(0))
  end
end

commands.block, commands.warp, commands.lane = looks(1), looks(2), looks(3)
function commands.where(s) print(s:where()) end
function commands.list(s, text)
  print(s:source(text ~= "" and count(text) or nil))
end
function commands.warps(s) print(s:warps()) end
function commands.bars(s) print(s:bars()) end
function commands.help() print(HELP) end
function commands.quit(s) s:quit() end

function commands.locals(s)
  local _, names = s:names()
  print(#names > 0 and table.concat(names, " ") or "none")
end

local SHORT = {s = "step", si = "stepi", b = "back", bi = "backi",
  c = "continue", rc = "reverse", g = "goto", br = "break", w = "watch",
  d = "delete", i = "info", p = "print", l = "last", q = "quit", h = "help"}

local function command_of(word)
  word = SHORT[word] or word
  if commands[word] then return commands[word] end
  local names = {}
  for name in pairs(commands) do names[#names + 1] = name end
  local near = core.nearest(word, names)
  core.fail("unknown-name", ("no command '%s'%s; help lists them"):format(word,
    near and (" (did you mean %s?)"):format(near) or ""))
end

-- ---- reading ----

local function reader()
  local terminal = has_sys and core.isatty(0)
  local editor = terminal and sys.editor()
  if editor then
    return function()
      local line = editor:read "(debug) "
      if line and line:find "%S" then editor:add(line) end
      return line
    end
  end
  return function()
    if terminal and not sys.ask "(debug) " then return false end
    return files.line()
  end
end

--- Reads commands and executes them in a session until the session ends.
-- cute.debug uses this prompt if it gets no function.
---@param session table
function prompt.run(session)
  local read, last = reader(), ""
  print(("kernel %s; `help` lists the commands\n%s"):format(session.name,
    session:where()))
  while true do
    local line = read()
    -- The end of the input ends the prompt; the launch then runs to its end.
    if line == nil then return end
    line = line and line:match "^%s*(.-)%s*$" or ""
    if line == "" then line = last end
    last = line
    local word, rest = line:match "^(%S+)%s*(.*)$"
    if word == "quit" or word == "q" then session:quit() end
    if word then
      local ok, why = pcall(function() command_of(word)(session, rest) end)
      if not ok then
        print((tostring(why):gsub("^[^\n:]+:%d+: ", "", 1)))
      end
    end
  end
end

---------------------------------------------------------------------------
-- cutelua debug SCRIPT
---------------------------------------------------------------------------

local SPEC = {
  name = "debug", script = "debug",
  about = "Runs a script and stops in the first launch of a kernel on the "
    .. "simulator. Steps forward and back, breakpoints, all locals. "
    .. "Commands come from standard input; help lists them.",
  args = {name = "SCRIPT", help = "the script, followed by its arguments"},
  options = {
    {"--kernel", "string", place = "NAME", help = "the kernel to stop in"},
    {"--launch", "int", min = 1, default = 1, place = "N",
     help = "stops in its N-th launch"},
  }}

--- Runs `cutelua debug ...` with these words; run(script, arguments) runs the
-- script. Returns an exit code.
---@param words string[]
---@param run fun(words: string[])
---@return integer
function prompt.main(words, run)
  local own, n = {}, 1
  while words[n] and words[n]:sub(1, 1) == "-" and words[n] ~= "-" do
    own[#own + 1] = words[n]
    if not words[n]:find "=" and words[n] ~= "--help" and words[n] ~= "-h" then
      n = n + 1
      own[#own + 1] = words[n]
    end
    n = n + 1
  end
  own[#own + 1] = words[n]
  local opt = cli.parse(own, SPEC)
  if not words[n] then
    report.tell "debug: a script is needed; --help says more"
    return 2
  end
  local devices = require "cute.lang.devices"
  local left, launches = opt.launch, 0
  devices.simulates = true
  local quit = debugger.during(prompt.run, function(name)
    if opt.kernel and name ~= opt.kernel then return false end
    launches = launches + 1
    left = left - 1
    return left == 0
  end, run, table.move(words, n, #words, 1, {}))
  devices.simulates = nil
  if not quit and left > 0 then
    report.tell(("debug: %s launched %s on the simulator %d times, not %d")
      :format(words[n], opt.kernel and "'" .. opt.kernel .. "'" or "kernels",
              launches, opt.launch))
    return 1
  end
  return 0
end

return prompt
-- SPDX-License-Identifier: MIT
