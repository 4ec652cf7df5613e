--- Compiles many kernels at once, in parallel processes. Each process takes the
-- next job when it is idle, and the results are in the caches on disk.
--
-- A child that dies, such as by a fault of the compiler, fails only its job: a
-- new child continues.
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

-- Gives jobs to idle children, and starts a child where there are too few.
local function hand_out(p)
  while p.next <= #p.jobs do
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
    local job = p.jobs[p.next]
    p.next = p.next + 1
    idle:ask(job, LIMIT, "compile", job.arch, worker.escape(p.into or ""),
      worker.escape(table.concat(job.options or {}, "\x1f")),
      worker.escape(job.source))
  end
end

local function done(p, c, a)
  local job = c.job
  c:rest()
  p.open = p.open - 1
  finish(job, a)
  p.tell(job)
end

-- Waits at most a second for answers, and handles them.
local function wait(p)
  local processes = {}
  for i, c in ipairs(p.children) do processes[i] = c.process end
  local i = sys.poll(processes, 1)
  local c = i and p.children[i]
  local answers = c and c:answers()
  if c and not answers then
    table.remove(p.children, i)
    local how = c:close()
    if c.job then
      c.job.died = true
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
end

--- Compiles jobs {source, arch, options} in at most n processes. Sets the
-- fields seconds, cached and notes of each job. If a job fails, sets its
-- field `failed` to the message instead, and `died` if the process that
-- compiled it has ended. Calls tell(job) after each.
---@param jobs table[]
---@param n? integer all cores when absent
---@param into? string folder of an image's cache
---@param tell? fun(job: table)
function pool.run(jobs, n, into, tell)
  tell = tell or function() end
  -- If others could write to the cache's folder, it is emptied here: a child
  -- could remove what another child has stored.
  local warning = core.cache_list(false).warning
  if warning then
    report.tell("cutelua: warning: " .. core.visible(warning))
  end
  local p = {jobs = jobs, most = math.min(n or child.cores(), #jobs), next = 1,
             open = #jobs, children = {}, into = into, tell = tell}
  while p.open > 0 do
    hand_out(p)
    wait(p)
  end
  for _, c in ipairs(p.children) do c:kill() end
end

return pool
-- SPDX-License-Identifier: MIT
