--- One run of the tuner. Several child processes compile candidates, and one
-- child process measures them. It measures each candidate briefly, and then the
-- fastest candidates of a problem against each other.
--
-- A failing candidate affects only its child process. If a candidate faults,
-- hangs or computes wrong results, the run records the failure and starts a new
-- child.
local child = require "cutelua.tune.child"
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local records = require "cutelua.tune.records"
local sys = require "cute.sys"
local tables = require "cutelua.tune.tables"

-- If the hot times of candidates differ by at most this factor, their cold
-- times are compared instead.
local DEAD_BAND = 1.01

local Run = {}
Run.__index = Run

---------------------------------------------------------------------------
-- Messages
---------------------------------------------------------------------------

local function stop(text) error({tune = text}, 0) end

-- Shows a status line on a terminal. It replaces the previous status line.
function Run:show(text)
  if not self.terminal then return end
  io.stderr:write("\r\27[K", text or "")
  io.stderr:flush()
end

local function tflops(o, us) return o.flops / us * 1e-6 end

function Run:progress()
  if not self.terminal then return end
  local x = self.now
  if not x then return end
  local best = x.best and ("; best %.1f us, %.1f TFLOP/s, %s"):format(
    x.known.look[x.best][1], tflops(x.o, x.known.look[x.best][1]), x.best)
    or ""
  self:show(("tune %d/%d %s: %d/%d measured, %d to compile%s"):format(x.number,
    #self.problems, x.o.title, x.done, #x.names, #self.to_compile, best))
end

---------------------------------------------------------------------------
-- Children
---------------------------------------------------------------------------

local function start(job)
  local c, why = child.new(job.worker, job.epilogue)
  if not c then stop("cannot start a process: " .. why) end
  return c
end

-- Returns the GPU that a child process reports. Stops the run with a message if
-- there is no GPU.
local function card_of(c, seconds)
  c:ask("card", seconds, "card")
  local answers = {}
  while not answers[1] do
    if sys.poll({c.process}, 1) then
      answers = c:answers()
      if not answers then stop("no GPU to measure on: " .. c:close()) end
    elseif os.time() > c.deadline then
      c:kill()
      stop "no GPU to measure on: the process that opens it does not answer"
    end
  end
  c:rest()
  local what, name, arch, sms = table.unpack(answers[1])
  if what ~= "card" then stop("no GPU to measure on: " .. arch) end
  return {name = name, arch = arch, sms = math.tointeger(tonumber(sms))}
end

-- Returns the child process that measures. Starts it if it is not running.
function Run:measurer()
  if not self.measuring then
    self.measuring = start(self.job)
    self.card = card_of(self.measuring, self.job.limit + 60)
  end
  return self.measuring
end

-- Handles a child process that terminated or exceeded its deadline: the request
-- that it worked on has failed.
function Run:lost(c, what)
  local job = c.job
  if c == self.measuring then self.measuring = nil end
  for i, other in ipairs(self.compilers) do
    if other == c then table.remove(self.compilers, i) end
  end
  if job then
    self:failed(job, job.at or job.name or job.x.finalists[1], what)
  end
end

---------------------------------------------------------------------------
-- Problems
---------------------------------------------------------------------------

-- Counts a candidate of problem x whose brief measurement ended or failed.
-- Updates x.best, the fastest candidate so far.
local function looked(x, name)
  x.done = x.done + 1
  local t = x.known.look[name]
  if t and (not x.best or t[1] < x.known.look[x.best][1]) then x.best = name end
end

function Run:new_problem(problem, number)
  local subject = self.job.subject
  local x = {problem = problem, number = number, done = 0, ready = {}, open = 0,
             o = subject.parse(problem, self.job.make),
             known = self.records:of(problem)}
  x.names, x.why = subject.names(problem, self.card, self.job)
  if self.job.again then
    x.known = {look = {}, final = {}, failed = {}}
    self.records.known[problem] = x.known
  end
  for _, name in ipairs(x.names) do
    if x.known.look[name] or x.known.failed[name] then
      looked(x, name)
    else
      x.open = x.open + 1
      table.insert(self.to_compile, {kind = "compile", x = x, name = name})
    end
  end
  if x.open == 0 and next(x.known.final) then self:finish(x) end
  return x
end

function Run:failed(job, name, what)
  local x = job.x
  what = what:gsub("%s+", " ")
  self.records:add(x.problem, "failed", what, "-", name)
  x.known = self.records:of(x.problem)
  if self.job.verbose then
    print(("  %s: %s: %s"):format(x.o.title, name, what))
  end
  if job.kind == "final" then
    -- The finalists are selected again, without the failed candidate.
    x.finalists = nil
  else
    x.open = x.open - 1
    looked(x, name)
  end
end

-- Returns the finalists of problem x, fastest first. These are the candidates
-- whose brief measurement is within the factor job.near of the fastest, at most
-- job.finalists.
local function finalists(x, job)
  local list = {}
  for _, name in ipairs(x.names) do
    local t = x.known.look[name]
    if t and not x.known.failed[name]
      and t[1] <= x.known.look[x.best][1] * job.near then
      list[#list + 1] = name
    end
  end
  table.sort(list, function(a, b)
    local ta, tb = x.known.look[a][1], x.known.look[b][1]
    return ta < tb or ta == tb and a < b
  end)
  return table.move(list, 1, math.min(#list, job.finalists), 1, {})
end

-- Returns the fastest candidate of the final measurement, or nil.
local function winner(x)
  local least, best = math.huge, nil
  for _, t in pairs(x.known.final) do least = math.min(least, t[1]) end
  for _, name in ipairs(x.names) do
    local t = x.known.final[name]
    if t and t[1] <= least * DEAD_BAND and not x.known.failed[name] then
      local b = best and x.known.final[best]
      if not b or (t[2] or t[1]) < (b[2] or b[1]) then best = name end
    end
  end
  return best
end

-- Finishes a problem. Prints its result and adds it to the rows of the table.
function Run:finish(x)
  x.finished = true
  local best = winner(x)
  self:show()
  if not best then
    print(("%-20s nothing could be measured%s"):format(x.o.title,
      x.why and ": " .. x.why or ""))
    return
  end
  local t = x.known.final[best]
  print(("%-20s %9.2f us %7.1f TFLOP/s  %s"):format(x.o.title, t[1],
    tflops(x.o, t[1]), best))
  io.stdout:flush()
  self.count = self.count + 1
  local class = x.o.class
  self.rows[class] = self.rows[class] or {}
  local row = table.move(x.o.sizes, 1, #x.o.sizes, 1, {})
  table.move({t[1], t[2] or t[1], best}, 1, 3, #row + 1, row)
  table.insert(self.rows[class], row)
  self.unwritten = true
end

---------------------------------------------------------------------------
-- The table
---------------------------------------------------------------------------

-- Returns the table in the file, or a new table if there is no file. Stops the
-- run with a message if the file is invalid or is for another GPU.
function Run:old_table()
  local t, wrong = tables.read(self.table)
  if wrong then
    stop(wrong .. "\n  The file is unchanged: move it away, or name another "
      .. "one with --out")
  end
  local card = self.card
  if t and (t.card ~= card.name or t.arch ~= card.arch) then
    stop(("%s was measured on %s (%s), but this GPU is %s: name another file "
      .. "with --out"):format(
      self.table, t.card, t.arch, card.name))
  end
  return t or {format = tables.FORMAT, card = card.name, arch = card.arch,
               sms = card.sms, gemm = {}}
end

--- Adds the new results to the table's file. Reads, merges and writes the file
-- under a lock.
function Run:write()
  if not self.unwritten then return end
  local lock <close>, why = sys.lock(self.journal)
  if not lock then stop(("cannot lock %s: %s"):format(self.journal, why)) end
  local t = self:old_table()
  tables.merge(t, self.rows, self.job.subject.section)
  local ok, message = cli.write_file(self.table, tables.text(t))
  if not ok then stop(message) end
  self.unwritten = false
end

---------------------------------------------------------------------------
-- Main loop
---------------------------------------------------------------------------

-- Sends requests to idle child processes: candidates to compile and candidates
-- to measure.
function Run:hand_out()
  local job = self.job
  while #self.to_compile > 0 and #self.compilers < job.jobs do
    table.insert(self.compilers, start(job))
  end
  for _, c in ipairs(self.compilers) do
    if not c.job and #self.to_compile > 0 then
      local request = table.remove(self.to_compile, 1)
      c:ask(request, job.limit + 120, "compile", request.x.problem,
            self.card.arch, self.card.sms, request.name)
    end
  end
  local x = self.now
  if x.finished or self.measuring and self.measuring.job then return end
  local name = table.remove(x.ready, 1)
  if name then
    self:measurer():ask({kind = "look", x = x, name = name}, job.limit,
      "measure", x.problem, "1", job.look / 2, job.look, "false", name)
  elseif x.open == 0 and not x.finalists then
    x.finalists = x.best and finalists(x, job) or {}
    if #x.finalists == 0 then return self:finish(x) end
    self:measurer():ask({kind = "final", x = x}, job.limit * 2, "measure",
      x.problem, job.rounds, job.warm, job.hot, "true",
      table.unpack(x.finalists))
  end
end

function Run:answer(c, a)
  local job = c.job
  if not job then return end
  local x = job.x
  if a[1] == "begin" then
    job.at = a[2]
  elseif a[1] == "time" then
    self.records:add(x.problem, job.kind, a[3], a[4], a[2])
    x.known = self.records:of(x.problem)
  elseif a[1] == "fail" then
    c:rest()
    self:failed(job, a[2] ~= "" and a[2] or job.name, a[3])
    -- The state of the child is unknown, so a new child handles the next
    -- request.
    if c == self.measuring then
      c:kill()
      self.measuring = nil
    end
  elseif a[1] == "done" then
    c:rest()
    if job.kind == "compile" then
      table.insert(x.ready, job.name)
    elseif job.kind == "look" then
      x.open = x.open - 1
      looked(x, job.name)
    else
      self:finish(x)
    end
  end
end

-- Waits at most one second for answers of child processes, and handles the
-- answers. Kills children that exceeded their deadline.
function Run:wait()
  local children, processes = {}, {}
  for _, c in ipairs(self.compilers) do children[#children + 1] = c end
  children[#children + 1] = self.measuring
  for i, c in ipairs(children) do processes[i] = c.process end
  local i = sys.poll(processes, 1)
  local c = i and children[i]
  if c then
    local answers = c:answers()
    if not answers then
      self:lost(c, "it ended: " .. c:close())
    else
      for _, a in ipairs(answers) do self:answer(c, a) end
    end
  end
  local now = os.time()
  for _, late in ipairs(children) do
    if late ~= c and late.deadline and now > late.deadline then
      late:kill()
      self:lost(late, ("no answer in %d s"):format(self.job.limit))
    end
  end
end

-- The number of later problems whose candidates are compiled in advance.
local AHEAD = 4

-- Selects the next unfinished problem to measure. Queues the candidates of
-- later problems for compilation.
function Run:next_problem()
  while self.now and self.now.finished do
    self:write()
    self.at = self.at + 1
    self.now = self.queue[self.at]
  end
  while #self.queue < #self.problems and #self.queue < self.at + AHEAD do
    local n = #self.queue + 1
    self.queue[n] = self:new_problem(self.problems[n], n)
  end
  self.now = self.queue[self.at]
end

-- Opens the table and the journal. The default is the user's files for this
-- GPU; --out names other files.
function Run:open()
  local card = self.card
  self.table = self.job.out
  if not self.table then
    local folder = tables.folder()
    if not folder then stop("no folder for tables was found: name a file with "
      .. "--out") end
    local made, wrong = sys.mkdirs(folder)
    if not made then stop("cannot make " .. wrong) end
    self.table = ("%s/%s.lua"):format(folder, tables.card(card.name))
  end
  self:old_table()
  local ok, why = cli.writable(self.table)
  if not ok then stop(why) end
  self.journal = self.table:gsub("%.lua$", "") .. ".tsv"
  self.records, why = records.open(self.journal, table.concat({card.name,
    card.arch, card.sms}, "\t"))
  if not self.records then stop(why) end
end

--- Runs the tuner. The fields of job are:
--
--     subject     cutelua.tune.products or cutelua.tune.attention
--     problems    the problems, as texts that the subject parses
--     out         the file of the table (by default the user's own)
--     jobs        number of children that compile
--     look, warm, hot   milliseconds of the brief measurement, of the warm-up,
--                 and of a hot measurement
--     rounds      number of rounds of the final measurement
--     finalists   maximum number of finalists
--     near        maximum time of a finalist, relative to the fastest one
--     slack       maximum predicted time of a candidate, relative to the lowest
--     most        maximum number of candidates per problem
--     limit       maximum seconds to measure a candidate
--     time        maximum total seconds
--     worker      the module that the children run
--     epilogue    the epilogue's name or file (cutelua.tune.epilogues)
--     make        the function that creates the epilogue
---@param job table
---@return table run table = the file written, count = number of problems with
-- a result
return function(job)
  local self = setmetatable({job = job, problems = job.problems, queue = {},
    at = 1, count = 0, compilers = {}, to_compile = {}, rows = {},
    terminal = core.isatty(2)}, Run)
  self:measurer()
  self:open()
  local ends = job.time and os.time() + job.time or math.huge
  self:next_problem()
  while self.now and os.time() < ends do
    self:hand_out()
    if not self.now.finished then
      self:wait()
      self:progress()
    end
    if self.now.finished then self:next_problem() end
  end
  self:show()
  self:write()
  for _, c in ipairs(self.compilers) do c:kill() end
  if self.measuring then self.measuring:kill() end
  return self
end
-- SPDX-License-Identifier: MIT
