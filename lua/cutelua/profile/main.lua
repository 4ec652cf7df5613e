--- `cutelua profile SCRIPT`: prints the memory traffic and the bank conflicts
-- of a script's launches on the simulator, each kernel and grid once.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local kernel = require "cute.lang.kernel"
local report = require "cute.lang.report"
local sign = require "cute.lang.signature"
local simreport = require "cute.lang.simreport"

local main = {}

main.HELP = [==[
usage: cutelua profile [options] script [arguments]
       cutelua profile [options] FILE.ptx|FILE.cu --launch LAUNCH
Runs a script on the simulator and prints, for each kernel and grid, the memory
traffic of each line, and the lanes that conflict in shared memory with a
layout that avoids it. docs/profile.md explains the figures.

  --kernel NAME  this kernel only
  --help         prints this text and stops

Exit code: 0 success, 1 an error or no launch, 2 a wrong command line, 130
interrupted.
]==]

--- Parses the words after `profile`. Returns the options, in which `script` is
-- the index of the script's word; nil and a message for invalid words.
---@param words string[]
function main.options(words)
  local opt, i = {}, 1
  while words[i] and words[i]:sub(1, 1) == "-" do
    local a = words[i]
    if a == "--help" or a == "-h" then
      opt.help = true
      return opt
    elseif a ~= "--kernel" then
      return nil, ("unknown option '%s'; profile --help lists them"):format(a)
    elseif (words[i + 1] or "") == "" then
      return nil, ("'%s' needs an argument"):format(a)
    end
    opt.kernel, i = words[i + 1], i + 2
  end
  if not words[i] then return nil, "profile: which script?" end
  opt.script = i
  return opt
end

local Session = {}
Session.__index = Session

--- Starts a session that records the launches until finish().
---@param opt table
function main.start(opt)
  local s = setmetatable({opt = opt, seen = {}, names = {}, n = 0}, Session)
  devices.simulates = true
  kernel.runner = {run = function(program, launch)
    return s:run(program, launch)
  end}
  return s
end

-- Prints the figures of a launch: memory traffic and bank conflicts.
local function show(found, program, launch)
  found.kernel, found.sm = program.info.name, launch.sm
  local r = simreport.attach(found, program)
  print(("kernel %s, grid %s, block %s: %d instructions of warps"):format(
    program.info.name, table.concat(launch.grid, " x "),
    table.concat(launch.block, " x "), found.instructions))
  print(r:traffic())
  local list = r:conflicts()
  for _, c in ipairs(list) do print(c) end
  if #list > 0 then
    local layouts = r:find_swizzle()
    if #layouts > 0 then print(layouts) end
  end
end

--- Runs a launch, and prints its figures unless the same kernel and grid were
-- printed before.
function Session:run(program, launch)
  local name = program.info.name
  local key = ("%s %s"):format(program.fn, table.concat(launch.grid, ","))
  self.names[name] = true
  local wanted = not self.seen[key] and (self.opt.kernel or name) == name
  launch.record = wanted or launch.record
  local found = core.sim_run(program.fn, launch)
  if wanted and #found.reports == 0 then
    self.seen[key], self.n = true, self.n + 1
    show(found, program, launch)
  end
  return found
end

--- Ends the session; returns the exit code.
---@param code integer the script's exit code
function Session:finish(code)
  kernel.runner, devices.simulates = nil, nil
  if code ~= 0 or self.n > 0 then return code end
  local why = "the script launched nothing"
  if next(self.names) then
    why = sign.no_such("kernel launched", self.opt.kernel, self.names)
  end
  report.tell("cutelua: profile: " .. why)
  return 1
end

return main
-- SPDX-License-Identifier: MIT
