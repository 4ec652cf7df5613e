--- `cutelua check SCRIPT`: every launch of a script on the simulator is checked
-- before it runs, once for each grid and each set of numbers that it is given.
local check = require "cute.check"
local cli = require "cute.program.cli"
local compare = require "cute.check.compare"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local json = require "cute.json"
local kernel = require "cute.lang.kernel"
local lessonlib = require "cute.bench.lessonlib"
local memory = require "cute.lang.memory"
local schedule = require "cute.check.schedule"
local sizes = require "cute.check.sizes"
local sys = require "cute.sys"

local main = {}

main.HELP = [==[
usage: cutelua check [options] script [arguments]
Runs a script on the simulator and looks at every schedule that each of its
launches could have: "ok", "bug" with a schedule that shows it, or "incomplete"
with what was not covered. What is ok is compared with the GPU, if there is one;
what a lesson's reference says is right, with the results.

  --orders N     runs of one launch at most (2000)
  --seconds S    and so long at most (60)
  --kernel NAME  of this kernel only
  --surgeon      of what is ok: which barriers, waits and fences are needed, and
                 what weaker would do; of a bug: a line that mends it
  --sizes        lessons: at sizes around their own, too (1, ragged, a tile
                 less, a tile more); what a kernel refuses is no bug
  --no-gpu       compares with no GPU
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
  ["--sizes"] = "sizes",
  ["--no-gpu"] = "no_gpu", ["--help"] = "help", ["-h"] = "help"}
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
  if opt.no_gpu then opt.gpu = false end
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
                          worst = 0, stop = {}, out = io.stdout, last = {}},
                         Session)
  if opt.replay then
    local kept, why = read_schedule(opt.replay)
    if not kept then return nil, why end
    s.kept = kept
  end
  if opt.json then s.out = assert(sys.divert()) end
  devices.simulates, lessonlib.session = true, s
  kernel.runner = {run = function(program, launch)
    s:watch(program, launch)
    s:note(program, launch)
    return core.sim_run(program.fn, launch)
  end}
  return s
end

-- Launches that differ in this are checked each: not in what memory holds.
local function key_of(program, launch)
  local words = {tostring(program.fn), table.concat(launch.grid, ",")}
  for _, v in ipairs(launch.args) do
    local held = core.typename(v[1]) == "buffer"
    words[#words + 1] = held and tostring(v[3]) or tostring(v[2])
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
local WORDS = {[0] = "ok", [1] = "bug", [3] = "incomplete"}

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
  self:count(v.verdict)
  self.why, self.compared = v.not_compared, self.compared or v.gpu
  if v.verdict ~= "bug" then return end
  if self.opt.save and v.schedule then self:save(v) end
  error(self.stop, 0)  -- what follows is of no use
end

function Session:count(verdict)
  local code = CODES[verdict]
  if self.worst ~= 1 and code ~= 0 then self.worst = code end
end

--- The script ends: something of it went wrong.
function Session:fail()
  self.worst = 1
  error(self.stop, 0)
end

-- Keeps the launch that writes a buffer last, and what was there before it.
function Session:note(program, launch)
  local last
  for i, v in ipairs(launch.args) do
    if program.info.args[i].written then
      last = last or {program = program, launch = launch,
                      restore = memory.keep(program, launch.args)}
      self.last[v[1]] = {last = last, i = i}
    end
  end
end

--- The sizes of a lesson's run (cute.bench.lessonlib).
function Session:sizes(list, tile)
  if not self.opt.sizes then return list end
  self.tried = {}
  return sizes.around(list[1], tile)
end

--- Runs one of them: a bug there does not end the others.
function Session:attempt(size, f)
  if not self.tried then return f() end
  local worst = self.worst
  self.worst = 0
  local ok, why = pcall(f)
  local one = {size = size, verdict = WORDS[self.worst]}
  if not ok and why ~= self.stop then
    one.verdict, one.why = "refused", sizes.refusal(why)
  end
  self.tried[#self.tried + 1] = one
  self.worst = worst
  if ok or why == self.stop then self:count(one.verdict) end
end

-- What a lesson's reference says of its results.
local Verified = {}
Verified.__index = Verified

function Verified:__tostring()
  local text = {("check: reference: %s: %s"):format(self.verdict,
    self.wrong or self.how)}
  for _, c in ipairs(self.compared) do
    for _, line in ipairs(c.count > 0 and compare.told(c) or {}) do
      text[#text + 1] = "  " .. line
    end
  end
  return core.visible(table.concat(text, "\n"), true)
end

function Verified:json()
  local list = {}
  for i, c in ipairs(self.compared) do list[i] = compare.plain(c) end
  return json.encode {form = 1, kind = "reference", verdict = self.verdict,
                      message = self.wrong or self.how, compared = list}
end

--- A lesson looked at its results: {ok =, how =, wrong =, compared =}.
function Session:verified(o)
  setmetatable(o, Verified)
  o.verdict = o.ok and "ok" or "bug"
  for _, c in ipairs(o.compared) do
    local known = self.last[c.buffer]
    c.buffer = nil
    if known and c.first then
      local l = known.last
      compare.add_writer(c, l.restore, l.program, l.launch, known.i, c.first.at)
    end
  end
  self:tell(o)
  self:count(o.verdict)
end

--- The exit code, and what there was nothing of.
---@param code integer of the script
---@param message? string its error
function Session:finish(code, message)
  kernel.runner, devices.simulates, lessonlib.session = nil, nil, nil
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
  if self.tried and self.opt.json then
    self.out:write(json.encode {form = 1, kind = "sizes", sizes = self.tried},
      "\n")
  end
  for _, line in ipairs(self.tried and not self.opt.json
    and sizes.told(self.tried) or {}) do
    self.out:write("check: ", line, "\n")
  end
  if self.why and not self.compared and not self.opt.json then
    self.out:write("check: the GPU was not compared: ", self.why, "\n")
  end
  if self.opt.json then self.out:close() end
  return code ~= 0 and code or self.worst
end

return main
