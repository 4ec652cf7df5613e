--- The child process of the tuner. It compiles or measures candidates.
--
-- Requests and answers are lines of words that are separated by tabs
-- (cutelua.tune.child):
--
--     card                              card NAME ARCH SMS
--     compile PROBLEM ARCH SMS NAME     done, or fail NAME WHY
--     measure PROBLEM ROUNDS WARM HOT COLD NAME...
--                                       begin NAME before each candidate is
--                                       prepared; then time NAME HOT COLD for
--                                       each (microseconds), and done;
--                                       or fail NAME WHY
--
-- PROBLEM is a class of cute.ops.tuned followed by M, N and K, or a problem of
-- cutelua.tune.attention. If the class has an epilogue, the argument of main is
-- the epilogue's name or file (cutelua.tune.epilogues).
local attention = require "cutelua.tune.attention"
local child = require "cutelua.tune.child"
local cute = require "cute"
local devices = require "cute.lang.devices"
local epilogues = require "cutelua.tune.epilogues"
local gemm = require "cute.ops.gemm"
local gpu = require "cute.gpu"
local timer = require "cutelua.bench.measure"
local operands = require "cutelua.tune.operands"
local plans = require "cute.ops.plan"

local choose = require "cute.ops.choose"

local worker = {}

-- The number of milliseconds that a GPU needs until its clock is stable at the
-- power limit.
local SETTLE = 150

local function answer(...)
  io.stdout:write(child.MARK, table.concat({...}, "\t"), "\n")
  io.stdout:flush()
end

--- Returns a device object of an architecture, for compiling. The GPU need not
-- exist.
---@param arch string
---@param sms integer
function worker.device(arch, sms)
  local d = {info = {sms = sms}}
  for name, v in next, cute.device("sim:" .. arch) do d[name] = v end
  return setmetatable(d, devices.Device)
end

-- The epilogue of main's argument: the function that creates it, and its name.
local make, named

-- Returns a table of the candidates for a set of operands, by name. The table
-- also has two other fields: `p` is the problem, and `call` is the ops.gemm
-- call.
local function offers_of(set, device)
  if not set.offers then
    set.options.device = device
    local p, list, call = gemm.offers(set.A, set.B, set.options, set.C)
    set.offers = {p = p, call = call}
    for _, c in ipairs(list) do set.offers[choose.name(c)] = c end
  end
  return set.offers
end

-- Returns the launch plan of the candidate `name`, and the ops.gemm call.
local function plan_of(set, device, name)
  local offers = offers_of(set, device)
  if not offers[name] then
    error(("no configuration is called '%s'"):format(name), 0)
  end
  return plans.new(offers.p, offers[name], offers.call), offers.call
end

-- Raises an error if the epilogue's file has changed since the run started.
local function check_class(problem)
  local class = problem:match "^(.-) %d+ %d+ %d+$"
  if make and operands.class(problem, make, named) ~= class then
    error(("the epilogue '%s' has changed since the run "
      .. "started"):format(named), 0)
  end
end

-- The operands of the problem that was compiled last.
local asked = {}

local function is_attention(problem) return problem:find "^attention " end

local function compile(problem, arch, sms, name)
  worker.now = name
  if is_attention(problem) then
    attention.compile(problem, worker.device(arch,
                                             math.tointeger(tonumber(sms))),
                      name)
    return answer "done"
  end
  if asked.problem ~= problem then
    check_class(problem)
    asked = operands.without_memory(problem, make)
    asked.problem = problem
    asked.device = worker.device(arch, math.tointeger(tonumber(sms)))
  end
  local plan, call = plan_of(asked, asked.device, name)
  local made, why = plan:trace(call):compile()
  if not made then error(why, 0) end
  answer "done"
end

--- Returns an object whose launch method runs the prepared launches `runs` in
-- turn, one per call. Each of them has its own set of operands.
---@param runs table[]
function worker.in_turn(runs)
  if #runs == 1 then return runs[1] end
  local at = 0
  local function launch()
    at = at % #runs + 1
    runs[at]:launch()
  end
  return {launch = launch, launch_n = function(_, n)
    for _ = 1, n do launch() end
  end}
end

-- Returns an object that runs and times a candidate, for the benchmark. On the
-- first call for a candidate, prepares its launches and checks its results.
local function contestant(o, name)
  if o.contestant then return o:contestant(name) end
  if o.ready[name] then return o.ready[name] end
  local plan = plan_of(o.sets[1], "gpu", name)
  local runs = {}
  for i, set in ipairs(o.sets) do
    local call = offers_of(set, "gpu").call
    -- All candidates write to the same result tensors.
    set.out = set.out or plan:outputs(call)
    runs[i] = plan:prepare(call, set.out)
  end
  o:spoil()
  runs[1]:launch()
  cute.synchronize "gpu"
  local why = o:wrong()
  if why then error(why, 0) end
  o.ready[name] = {name = name, launch = worker.in_turn(runs)}
  return o.ready[name]
end

local function measure(problem, rounds, warm, hot, cold, ...)
  local o = is_attention(problem) and attention.of(problem)
    or operands.of(problem, make)
  local list = {}
  for i, name in ipairs {...} do
    worker.now = name
    answer("begin", name)
    list[i] = contestant(o, name)
  end
  local part = operands.warmth(o.flops)
  local results = assert(timer.bench(list, {
    rounds = math.tointeger(tonumber(rounds)), warm_ms = part * warm,
    settle_ms = part == 1 and #list > 1 and SETTLE or nil,
    hot_ms = part * hot, cold = cold == "true", progress = false}))
  for _, r in ipairs(results) do
    answer("time", r.name, ("%.2f"):format(r.hot.median * 1e3),
           r.cold and ("%.2f"):format(r.cold.median * 1e3) or "-")
  end
  answer "done"
end

local VERBS = {compile = compile, measure = measure}

function VERBS.card()
  local info, why = gpu.info()
  if not info then error(why, 0) end
  answer("card", info.name, info.arch, info.sms)
end

--- Reads requests from standard input and answers them, until the end of the
-- input.
---@param epilogue? string the epilogue's name or file
function worker.main(epilogue)
  if epilogue then named, make = assert(epilogues.load(epilogue)) end
  for line in io.lines() do
    local words = child.fields(line)
    worker.now = ""
    local ok, why = pcall(VERBS[words[1]], table.unpack(words, 2))
    if not ok then
      answer("fail", worker.now, (tostring(why):gsub("%s+", " ")))
    end
  end
end

return worker
-- SPDX-License-Identifier: MIT
