--- Sessions of `cutelua profile` and `cutelua estimate`, which run a script on
-- the simulator and print figures of its launches. Each kernel is shown once
-- for each grid.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local findings = require "cutelua.findings"
local kernel = require "cute.lang.kernel"
local report = require "cute.lang.report"
local sign = require "cute.lang.signature"

local session = {}

-- Returns the value of an option that is given by word w; or nil and a message.
local function value_of(name, kind, w)
  if (w or "") == "" then
    return nil, ("'%s' needs an argument"):format(name)
  end
  if kind == "string" then return w end
  local n = w:find "^%d+$" and math.tointeger(tonumber(w))
  if n then return n end
  return nil, ("%s: a whole number is needed, got '%s'"):format(name, w)
end

--- Parses the arguments after a command. `known` has the kind of each option:
-- flag, string or integer. --format and --help are options of all commands.
-- Returns the options by their names without dashes, with `script` set to the
-- index of the script's name. Returns nil and a message if an argument is
-- invalid.
---@param command string
---@param words string[]
---@param known table<string, string>
function session.options(command, words, known)
  local opt, i = {}, 1
  while words[i] and words[i]:sub(1, 1) == "-" do
    local a = words[i]
    local kind, key = known[a], a:gsub("^%-+", "")
    kind = a == "--format" and "string" or kind
    if a == "--help" or a == "-h" then
      opt.help = true
      return opt
    elseif not kind then
      local names = {"--help", "--format"}
      for name in pairs(known) do names[#names + 1] = name end
      local near = core.nearest(a, names)
      return nil, ("unknown option '%s'%s; %s --help lists them"):format(a,
        near and (" (did you mean %s?)"):format(near) or "", command)
    elseif kind == "flag" then
      opt[key], i = true, i + 1
    else
      local why
      opt[key], why = value_of(a, kind, words[i + 1])
      if not why and a == "--format" then
        why = select(2, findings.format(opt.format))
      end
      if why then return nil, why end
      i = i + 2
    end
  end
  if not words[i] then return nil, command .. ": which script?" end
  opt.script = i
  return opt
end

local Session = {}
Session.__index = Session

--- Starts a session. For each launch it calls look(program, launch, opt), which
-- runs the launch, prints its figures and returns the simulator's report.
---@param command string
---@param opt table
---@param look fun(program: table, launch: table, opt: table): table
function session.start(command, opt, look)
  local s = setmetatable({command = command, opt = opt, look = look, seen = {},
                          names = {}, n = 0}, Session)
  devices.simulates = true
  kernel.runner = {run = function(program, launch)
    return s:run(program, launch)
  end}
  return s
end

--- Runs a launch, and prints its figures unless those of the same kernel and
-- grid were printed before.
function Session:run(program, launch)
  local name = program.info.name
  local key = ("%s %s"):format(program.fn, table.concat(launch.grid, ","))
  self.names[name] = true
  if self.seen[key] or (self.opt.kernel or name) ~= name then
    return core.sim_run(program.fn, launch)
  end
  local found = self.look(program, launch, self.opt)
  if #found.reports == 0 then self.seen[key], self.n = true, self.n + 1 end
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
  report.tell(("cutelua: %s: %s"):format(self.command, why))
  if self.opt.findings then self.opt.findings:fail(why) end
  return 1
end

return session
-- SPDX-License-Identifier: MIT
