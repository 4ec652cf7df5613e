--- `cutelua learn`: a lesson in the terminal. It shows the text piece by piece
-- and runs its Lua code. At an exercise it writes a file and waits for an
-- answer: a typed line of Lua, or the file after the learner has changed it.
local cli = require "cutelua.program.cli"
local complete = require "cutelua.program.complete"
local core = require "cute.core"
local drawn = require "cutelua.draw.text"
local files = require "cute.lang.files"
local folders = require "cutelua.program.folders"
local learn = require "cutelua.learn"
local reader = require "cutelua.program.reader"

local main = {}

local SPEC = {
  name = "learn", script = "learn",
  about = "The tutorial: lessons with pictures and exercises that the "
    .. "simulator checks. Without a lesson it lists them. Solved exercises "
    .. "are recorded in cutelua/learned in $XDG_STATE_HOME.",
  args = {name = "LESSON", help = "its number or name"},
  options = {
    {"--check", "file", help = "checks that file as the answer to --exercise, "
      .. "and stops; exit code 0: right, 1: not yet"},
    {"--exercise", "string", help = "the exercise of the lesson (default "
      .. "the first)"},
    {"--print", "flag", help = "prints the whole lesson as markdown"},
  },
}

-- ---- progress ----

-- The largest size of the progress file in bytes.
local MOST = 1 << 20

local function learned()
  local folder, set = folders.state(), {}
  local text = folder and files.read(folder .. "/learned", MOST, "plain")
  for line in (text or ""):gmatch "[^\n]+" do set[line] = true end
  return set
end

-- Stores that an exercise of a lesson is solved. If this fails, the lesson
-- continues.
local function remember(lesson, name)
  local folder, set = folders.state(), learned()
  set[lesson.name .. "/" .. name] = true
  local has_sys, sys = pcall(require, "cute.sys")
  if not (folder and has_sys and sys.mkdirs(folder)) then return end
  local list = {}
  for line in pairs(set) do list[#list + 1] = line end
  table.sort(list)
  cli.write_file(folder .. "/learned", table.concat(list, "\n"), "\n")
end

local function exercises(lesson)
  local list = {}
  for _, block in ipairs(learn.blocks(lesson)) do
    if block.kind == "exercise" then list[#list + 1] = block end
  end
  return list
end

local function list_lessons()
  local done = learned()
  io.write "Lessons; cutelua learn NUMBER begins one.\n\n"
  for i, name in ipairs(learn.names) do
    local lesson = learn.lesson(name)
    local all, solved = exercises(lesson), 0
    for _, e in ipairs(all) do
      if done[name .. "/" .. e.name] then solved = solved + 1 end
    end
    io.write(("  %2d  %-12s  %-48s  %d of %d\n"):format(i, name, lesson.title,
      solved, #all))
  end
end

-- ---- a lesson ----

local function say(text, colour)
  if colour and drawn.coloured() then text = colour .. text .. "\27[0m" end
  io.write(text, "\n\n")
end
local BOLD, DIM, GREEN, RED = "\27[1m", "\27[36m", "\27[32m", "\27[31m"

-- Waits for Enter on a terminal; returns false if the learner leaves.
local function pause(lines)
  if not lines.terminal then return true end
  local line = lines:read "-- Enter goes on, q leaves -- "
  io.write "\n"
  return line and line ~= "q"
end

-- Returns the next typed line; asks again after Ctrl-C. Returns nil at the end
-- of the input.
local function ask(lines)
  while true do
    if not lines.terminal then io.write "learn> " end
    local line = lines:read "learn> "
    if line and line:find "%S" then lines:add(line) end
    if line ~= false then return line end
  end
end

local HELP = [[
Enter checks the file; a line of Lua is an answer, too. :hint shows a hint,
:solution shows a solution, :skip continues, :quit leaves, :help shows this.]]

-- Writes the initial text of an exercise to a file, unless the file exists
-- already; returns the path.
local function lay(lesson, block)
  local path = ("%s-%s.lua"):format(lesson.name, block.name)
  if core.file_kind(path) then
    io.write(("Your %s is there; edit it.\n"):format(path))
  else
    local ok, why = cli.write_file(path, block.text, "\n")
    if not ok then
      io.write(why, "\n")
      return nil
    end
    io.write(("It is in %s now; edit it.\n"):format(path))
  end
  return path
end

-- Checks an answer to an exercise: the typed line or, if the line is blank, the
-- file at `path`. Returns true if the answer is right, else nil and the reason.
local function answered(line, lesson, block, env, path)
  local text, chunk = line, "=(answer)"
  if not line:find "%S" then
    text, chunk = path and files.read(path), "@" .. (path or "")
  end
  if not text then return nil, "the file cannot be read" end
  return learn.check(lesson, block.name, text, env, chunk)
end

local COMMANDS = {[":hint"] = "gives a hint, the next one each time",
  [":solution"] = "shows a solution", [":skip"] = "goes on without an answer",
  [":quit"] = "leaves the lesson", [":help"] = "says what can be typed here"}

-- Completes the commands of a lesson. Other text is completed as at the prompt
-- of `cutelua`.
local function find(text, env)
  if not text:find "^:" then return complete.find(text, env) end
  local list = {}
  for name in pairs(COMMANDS) do
    if name:sub(1, #text) == text then list[#list + 1] = name end
  end
  table.sort(list)
  return list, text, "name", function(name) return COMMANDS[name] end
end

-- Asks for answers until the exercise is solved or skipped. Returns false if
-- the learner leaves the lesson.
local function exercise(lesson, block, env, lines)
  local e, hint = lesson.exercises[block.name], 0
  say("Exercise " .. block.name, BOLD)
  say(block.text, DIM)
  local path = lay(lesson, block)
  io.write(HELP, "\n")
  while true do
    local line = ask(lines)
    if not line or line == ":quit" then return false end
    if line == ":skip" then return true end
    if line == ":hint" then
      hint = math.min(hint + 1, #e.hints)
      say(e.hints[hint])
    elseif line == ":solution" then
      say(e.solution, DIM)
    elseif line == ":help" then
      say(HELP)
    elseif line:sub(1, 1) == ":" then
      say(("no command %s; :help lists them"):format(core.visible(line)))
    else
      local right, why = answered(line, lesson, block, env, path)
      if right then
        say("Right.", GREEN)
        remember(lesson, block.name)
        return true
      end
      say("Not yet: " .. core.visible(why, true), RED)
    end
  end
end

local function walk(lesson)
  local env = learn.env()
  local lines = reader.new(find, function() return "", env end)
  say(("%d. %s"):format(lesson.number, lesson.title), BOLD)
  for _, block in ipairs(learn.blocks(lesson)) do
    if block.kind == "exercise" then
      if not exercise(lesson, block, env, lines) then return end
    elseif block.kind == "lua" then
      say(learn.run(block, env), DIM)
      if not pause(lines) then return end
    elseif block.kind == "draw" then
      io.write(learn.draw(block, env, "text"), "\n")
    else
      say(block.text)
    end
  end
  local next_name = learn.names[lesson.number + 1]
  if next_name then
    io.write(("Next: cutelua learn %d, %s\n"):format(lesson.number + 1,
      next_name))
  end
end

-- Returns a sentence about an invalid option; nil if all options fit the
-- lesson.
local function wrong(lesson, opt)
  local name = opt.exercise
  if name and not lesson.exercises[name] then
    local names = {}
    for _, block in ipairs(exercises(lesson)) do
      names[#names + 1] = block.name
    end
    return ("no exercise '%s' in lesson %s: there %s %s"):format(name,
      lesson.name, #names == 1 and "is" or "are", table.concat(names, ", "))
  elseif name and not opt.check then
    return "--exercise says what --check FILE answers"
  elseif opt.check and opt.print then
    return "--check and --print are two things"
  end
end

local function check_file(lesson, opt)
  local name = opt.exercise or exercises(lesson)[1].name
  local text, why = files.read(opt.check)
  if not text then
    return 2, ("cannot read %s: %s [io]"):format(core.visible(opt.check), why)
  end
  local at
  for i, block in ipairs(learn.blocks(lesson)) do
    if block.name == name then at = i end
  end
  local right, message = learn.check(lesson, name, text,
                                     learn.before(lesson, at),
                                     "@" .. opt.check)
  if right then
    remember(lesson, name)
    return 0, "right"
  end
  return message:find "^interrupted" and 130 or 1, message
end

--- Runs `cutelua learn` with these words; returns its exit code.
---@param words string[]
---@return integer
function main.main(words)
  local opt = cli.parse(words, SPEC)
  if not opt.args[1] then
    if opt.check or opt.exercise or opt.print then
      io.stderr:write "cutelua learn: of which lesson?\n"
      return 2
    end
    list_lessons()
    return 0
  end
  local lesson, why = learn.lesson(opt.args[1])
  if not lesson then
    io.stderr:write("cutelua learn: ", core.message(core.visible(why)), "\n")
    return 2
  end
  why = wrong(lesson, opt)
  if why then
    io.stderr:write("cutelua learn: ", core.message(core.visible(why)), "\n")
    return 2
  end
  if opt.check then
    local code, message = check_file(lesson, opt)
    local out = code >= 2 and io.stderr or io.stdout
    out:write(core.message(message), "\n")
    return code
  elseif opt.print then
    io.write(learn.markdown(lesson))
    return 0
  end
  walk(lesson)
  return 0
end

return main
-- SPDX-License-Identifier: MIT
