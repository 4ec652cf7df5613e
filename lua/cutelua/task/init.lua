--- `cutelua task`: makes tasks, runs candidates on their public sizes, and
-- judges them. docs/tasks.md is the user's guide.
local calls = require "cutelua.mcp.calls"
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local errors = require "cutelua.text.errors"
local folder = require "cutelua.task.folder"
local gpu = require "cute.gpu"
local json = require "cutelua.text.json"
local referee = require "cutelua.task.referee"
local report = require "cute.lang.report"
local sys = require "cute.sys"
local template = require "cutelua.task.template"
local verdict = require "cutelua.task.verdict"

local task = {}

local HELP = [==[
usage: cutelua task new FOLDER
       cutelua task run FOLDER [CANDIDATE] [options]
       cutelua task judge FOLDER [CANDIDATE] [options]
new writes a task to start from: a task file and a solution. run runs a
candidate (FOLDER/solution.lua) on the task's public sizes. judge also runs it
on sizes and inputs that it draws from a secret, looks for cheats, and scores
its speed. A candidate is a Lua script, or PTX with a LAUNCH description in Lua
(docs/tasks.md).

  --launch FILE  the LAUNCH description of a candidate in PTX
  --card NAME    the card on which the score's shortest possible time and the
                 estimate are based (default h200)
  --held N       the number of secret sizes to draw (default 2)
  --secret HEX   repeats a judgement with its secret (default: a new one)
  --rival FILE   a candidate to time in turn with this one on a GPU (default:
                 the task's own solution)
  --no-gpu       estimates the speed, also if there is a GPU
  --seconds S    the time limit of each process, and of each call of the task
                 file's functions (default 60)
  --memory MB    the memory limit of both (default 4096)
  --format FORM  text or json (text): docs/task.schema.json
  --help         prints this text and stops

Exit code: 0 success, or the candidate is accepted; 1 it is rejected; 2 a wrong
command line; 3 the task or the candidate's file cannot be used; 130
interrupted.
]==]

local SPEC = {
  name = "task", script = "task",
  options = {
    {"--launch", "file"}, {"--card", "choice", default = "h200",
      choices = require "cutelua.profile.cards".names()},
    {"--held", "int", min = 1, max = 64, default = 2},
    {"--secret", "string", pattern = "^%x+$", want = "a hexadecimal number"},
    {"--rival", "file"}, {"--no-gpu", "flag"},
    {"--seconds", "number", min = 0.1, max = 86400, default = 60},
    {"--memory", "int", min = 256, max = 1 << 20, default = 4096},
    {"--format", "choice", choices = {"text", "json"}, default = "text"}},
  args = {name = "FOLDER", many = true},
}

-- Calls f and returns an exit code. An error is printed as one sentence; its
-- code is 3.
local function guarded(f)
  local ok, result = sys.call(f, errors.capture)
  if ok then return result end
  local told = type(result) == "table" and errors.told(result)
    or {message = tostring(result)}
  local message = folder.sentence(told)
  if message:find "interrupted" then error(result.value or message, 0) end
  report.tell("cutelua: task: " .. message)
  return 3
end

-- Reads a candidate: returns its name, its text, and its LAUNCH description.
local function read_candidate(path, launch)
  local c = {name = path, text = folder.text(path)}
  if launch then
    c.launch = folder.text(launch)
  elseif path:find "%.ptx$" then
    core.fail("bad-argument", ("%s is PTX: --launch must name its LAUNCH "
      .. "description"):format(path))
  end
  return c
end

local function secret_of(text)
  return tonumber(text or calls.nonce():sub(1, 16), 16)
end

-- Runs the command `task run` or `task judge`.
local function judge(opt, command)
  local path = opt.args[2]
  local memory = opt.memory << 20
  local t = folder.read(path, {seconds = opt.seconds, memory = memory})
  local solution = path .. "/solution.lua"
  local c = read_candidate(opt.args[3] or solution, opt.launch)
  local rival = opt.rival or core.file_kind(solution) and solution
  local v = referee.judge(t, c, {secret = secret_of(opt.secret),
    seconds = opt.seconds, memory = memory, card = opt.card,
    held = command == "judge" and opt.held or 0,
    device = not opt.no_gpu and gpu.available() and core.nvrtc_version()
      and "gpu" or nil,
    rival = rival and folder.text(rival)})
  local code = v.verdict == "accepted" and 0 or 1
  if opt.format == "json" then
    io.write(json.encode(verdict.plain(v, command, code)), "\n")
  else
    io.write(core.visible(verdict.text(v), true), "\n")
  end
  return code
end

local COMMANDS = {
  new = {2, function(opt) return template.write(opt.args[2]) end},
  run = {3, judge}, judge = {3, judge},
}

--- Runs `cutelua task` with these words; returns its exit code.
---@param words string[]
---@return integer
function task.main(words)
  -- The referee starts workers in this way.
  if words[1] == "--worker" then return require "cutelua.task.worker".main() end
  local opt, message = cli.try_parse(words, SPEC)
  if opt and opt.help then
    io.write(HELP)
    return 0
  end
  local command = opt and opt.args[1]
  local row = COMMANDS[command]
  if opt and not row then
    message = ("a command is needed: new, run or judge, not %s"):format(
      core.show(command))
  elseif opt and (not opt.args[2] or #opt.args > row[1]) then
    message = ("%s needs a folder%s"):format(command,
      row[1] == 3 and ", and perhaps a candidate" or "")
  end
  if message then
    report.tell("cutelua: task: " .. message)
    return 2
  end
  return guarded(function() return row[2](opt, command) end)
end

return task
-- SPDX-License-Identifier: MIT
