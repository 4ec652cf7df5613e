--- Compiles many kernels at once, in parallel processes. Each process takes the
-- next job when it is idle, and the results are in the caches on disk.
--
-- If a child process dies, a new child compiles its job once more. If that
-- child dies, too, for example because the compiler crashes, only this job
-- fails.
local child = require "cutelua.tune.child"
local core = require "cute.core"
local report = require "cute.lang.report"
local sys = require "cute.sys"
local worker = require "cutelua.cache.worker"

local pool = {}

-- Seconds after which a compilation counts as hung.
local LIMIT = 3600

local function finish(job, a)
  if a[1] == "done" then
    job.seconds, job.cached, job.notes = tonumber(a[2]), a[3] == "1", {}
    for note in worker.unescape(a[4]):gmatch "[^\n]+" do
      table.insert(job.notes, note)
    end
  else
    job.failed = worker.unescape(a[2])
  end
end

-- Gives waiting jobs to idle child processes. Starts a child if none is idle
-- and the pool has fewer than its maximum.
local function hand_out(p)
  while p.waiting[1] do
    local idle
    for _, c in ipairs(p.children) do
      if not c.job then idle = c end
    end
    if not idle and #p.children == p.most then return end
    if not idle then
      local why
      idle, why = child.new "cutelua.cache.worker"
      if not idle then
        error("cannot start a process: " .. why, 0)
      end
      table.insert(p.children, idle)
    end
    local job = table.remove(p.waiting, 1)
    idle:ask(job, LIMIT, "compile", job.arch, worker.escape(p.into or ""),
      worker.escape(table.concat(job.options or {}, "\x1f")),
      worker.escape(job.source))
  end
end

local function done(p, c, a)
  local job = c.job
  c:rest()
  finish(job, a)
  p.done[#p.done + 1] = job
end

-- Waits at most `seconds` for answers of child processes, and handles the
-- answers. Reports whether any arrived.
local function wait(p, seconds)
  local processes = {}
  for i, c in ipairs(p.children) do processes[i] = c.process end
  local i = sys.poll(processes, seconds)
  local c = i and p.children[i]
  local answers = c and c:answers()
  if c and not answers then
    table.remove(p.children, i)
    local how = c:close()
    local job = c.job
    if job and not job.again then
      job.again = true
      table.insert(p.waiting, 1, job)
    elseif job then
      job.died = true
      done(p, c, {"fail", "the process that compiled it ended: " .. how})
    end
  end
  for _, a in ipairs(answers or {}) do done(p, c, a) end
  for k = #p.children, 1, -1 do
    local late = p.children[k]
    if late.job and os.time() > late.deadline then
      late:kill()
      table.remove(p.children, k)
      late.job.died = true
      done(p, late, {"fail", ("no answer in %d s"):format(LIMIT)})
    end
  end
  return c ~= nil
end

local Pool = {}
Pool.__index = Pool

--- Returns a pool of at most n processes. Processes start when jobs arrive.
-- Closing the pool ends its processes.
---@param n? integer number of processes: one per core when absent
---@param into? string folder of an image's cache
function pool.new(n, into)
  return setmetatable({count = 0, waiting = {}, done = {}, children = {},
                       most = n or child.cores(), into = into}, Pool)
end

--- Adds a job {source, arch, options}. It starts as soon as a process is idle,
-- so the caller can trace further kernels in the meantime.
---@param job table
function Pool:add(job)
  -- Empties the cache's folder if other users could write to it. Children must
  -- not do this, because a child could remove entries that another child has
  -- stored.
  local warning = self.count == 0 and core.cache_list(false).warning
  if warning then
    report.tell("cutelua: warning: " .. core.visible(warning))
  end
  self.count = self.count + 1
  table.insert(self.waiting, job)
  while self.children[1] and wait(self, 0) do end
  hand_out(self)
end

--- Waits for all jobs. Sets the fields seconds, cached and notes of each job.
-- If a job fails, sets its field `failed` to the message instead, and `died` if
-- the process that compiled it has ended. Calls tell(job) for each job when it
-- ends.
---@param tell? fun(job: table)
function Pool:finish(tell)
  local told = 0
  repeat
    hand_out(self)
    if #self.done < self.count then wait(self, 1) end
    while told < #self.done do
      told = told + 1
      if tell then tell(self.done[told]) end
    end
  until told == self.count
end

function Pool:__close()
  for _, c in ipairs(self.children) do c:kill() end
  self.children = {}
end

return pool
-- SPDX-License-Identifier: MIT
