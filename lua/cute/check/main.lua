--- `cutelua check SCRIPT`: every launch of a script on the simulator is checked
-- before it runs, once for each grid and each set of numbers that it is given.
local check = require "cute.check"
local cli = require "cute.program.cli"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local json = require "cute.json"
local kernel = require "cute.lang.kernel"
local schedule = require "cute.check.schedule"
local sys = require "cute.sys"

local main = {}

main.HELP = [==[
usage: cutelua check [options] script [arguments]
Runs a script on the simulator and looks at every schedule that each of its
launches could have: "ok", "bug" with a schedule that shows it, or "incomplete"
with what was not covered.

  --orders N     runs of one launch at most (2000)
  --seconds S    and so long at most (60)
  --kernel NAME  of this kernel only
  --surgeon      of what is ok: which barriers, waits and fences are needed, and
                 what weaker would do; of a bug: a line that mends it
  --json         verdicts as JSON, one a line, on standard output; what the
                 script prints goes to error output
  --save FILE    writes the schedule of a bug
  --replay FILE  runs the launch of that schedule by it, and no other
  --help         prints this text and stops

Exit code: 0 all ok, 1 a bug or an error, 2 a wrong command line, 3 something
was not covered, 130 interrupted.
]==]

local VALUED = {["--orders"] = "orders", ["--seconds"] = "seconds",
  ["--kernel"] = "kernel", ["--save"] = "save", ["--replay"] = "replay"}
local FLAGS = {["--json"] = "json", ["--surgeon"] = "surgeon",
  ["--help"] = "help", ["-h"] = "help"}
local COUNTS = {orders = math.tointeger, seconds = tonumber}

--- Reads the words behind `check`: options, with `script` the number of the
-- word that is the script; nil and a message.
function main.options(words)
  local opt, i = {}, 1
  while words[i] and words[i]:sub(1, 1) == "-" do
    local a, value = words[i]:match "^(%-%-%l+)=(.*)$"
    a = a or words[i]
    if FLAGS[a] then
      opt[FLAGS[a]] = true
    elseif VALUED[a] then
      if not value then i, value = i + 1, words[i + 1] end
      if not value then return nil, ("'%s' needs an argument"):format(a) end
      local name = VALUED[a]
      local read = COUNTS[name]
      opt[name] = not read and value or read(tonumber(value))
      if read and not (opt[name] and opt[name] > 0) then
        return nil, ("%s %s: a number above 0 is needed"):format(a, value)
      end
    else
      return nil, ("unknown option '%s'; check --help lists them"):format(a)
    end
    i = i + 1
  end
  if not words[i] and not opt.help then return nil, "check: which script?" end
  opt.script = i
  return opt
end

local Session = {}
Session.__index = Session

local function read_schedule(name)
  local f, why = core.open_input(name)
  if not f then return nil, ("cannot open %s: %s"):format(name, why) end
  local text = f:read "a"
  f:close()
  if not text then return nil, "cannot read " .. name end
  return schedule.parse(text, name)
end

--- A session of checks, which watches launches; nil and a message.
function main.start(opt)
  local s = setmetatable({opt = opt, known = {}, nth = 0, checked = 0,
                          worst = 0, stop = {}, out = io.stdout}, Session)
  if opt.replay then
    local kept, why = read_schedule(opt.replay)
    if not kept then return nil, why end
    s.kept = kept
  end
  if opt.json then s.out = assert(sys.divert()) end
  devices.simulates = true
  kernel.runner = {run = function(program, launch)
    s:watch(program, launch)
    return core.sim_run(program.fn, launch)
  end}
  return s
end

-- Launches that differ in this are checked each: not in what memory holds.
local function key_of(program, launch)
  local words = {tostring(program.fn), table.concat(launch.grid, ",")}
  for _, v in ipairs(launch.args) do
    local memory = core.typename(v[1]) == "buffer"
    words[#words + 1] = memory and tostring(v[3]) or tostring(v[2])
  end
  return table.concat(words, ";")
end

function Session:tell(verdict)
  self.out:write(self.opt.json and verdict:json() or tostring(verdict), "\n")
  self.out:flush()
end

function Session:save(verdict)
  local ok, why = cli.write_file(self.opt.save,
    schedule.text(verdict.schedule, self.nth))
  if not ok then error(why, 0) end
end

local CODES = {ok = 0, incomplete = 3, bug = 1}

function Session:replay(program, launch)
  if self.nth ~= self.kept.nth then return end
  if program.info.name ~= self.kept.kernel then
    core.fail("bad-argument", ("%s is of launch %d, kernel %s: here that is "
      .. "kernel %s"):format(self.opt.replay, self.nth, self.kept.kernel,
      program.info.name))
  end
  return check.replay(program, launch, self.kept)
end

function Session:watch(program, launch)
  local key = key_of(program, launch)
  local wanted = not self.opt.kernel or self.opt.kernel == program.info.name
  if self.known[key] or not wanted then return end
  self.known[key] = true
  self.nth = self.nth + 1
  local v
  if self.kept then v = self:replay(program, launch)
  else v = check.launch(program, launch, self.opt) end
  if not v then return end
  v.launch, self.checked = self.nth, self.checked + 1
  self:tell(v)
  local code = CODES[v.verdict]
  if self.worst ~= 1 and code ~= 0 then self.worst = code end
  if v.verdict ~= "bug" then return end
  if self.opt.save then self:save(v) end
  error(self.stop, 0)  -- what follows is of no use
end

--- The exit code, and what there was nothing of.
---@param code integer of the script
---@param message? string its error
function Session:finish(code, message)
  kernel.runner, devices.simulates = nil, nil
  if message and self.opt.json then
    self.out:write(json.encode {form = 1, kind = "error", message = message},
      "\n")
  end
  if code == 0 and self.checked == 0 then
    io.stderr:write("cutelua: check: ", self.kept
      and "the script has no launch " .. self.kept.nth
      or "the script launched nothing", "\n")
    code = self.kept and 1 or 0
  end
  if self.opt.json then self.out:close() end
  return code ~= 0 and code or self.worst
end

return main
