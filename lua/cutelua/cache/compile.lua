--- `cutelua compile SCRIPT`: compiles the kernels that a script launches, ahead
-- of time and without a GPU.
--
-- The script runs on a driver without a GPU (core.dry_gpu), on which launches
-- do nothing. Each kernel that the script launches becomes a job. Parallel
-- processes (cutelua.cache.pool) compile the jobs while the script goes on, and
-- store the results in the cache.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local exit = require "cutelua.program.exit"
local gpu = require "cute.gpu"
local jit = require "cute.jit"
local literal = require "cutelua.text.literal"
local pool = require "cutelua.cache.pool"
local report = require "cute.lang.report"
local sys = require "cute.sys"

local main = {}

main.HELP = [==[
usage: cutelua compile [options] script [arguments]
Compiles the kernels that a script launches on a GPU, and stores them in the
cache of compiled kernels. No GPU is needed: the script runs on a driver whose
launches do nothing, so that the results of its kernels are zeros.

  --arch LIST    the GPUs' architectures, separated by commas, such as
                 sm_80,sm_90a (default: the architecture of the GPU here)
  --sms N        the GPUs' number of multiprocessors (default 132)
  --card NAME    the GPUs' name, such as "NVIDIA H200", by which cute.ops finds
                 tables of `cutelua tune`
  --into DIR     stores the kernels in this folder, too: the read-only cache of
                 a container image (CUTELUA_CACHE_IMAGE)
  --jobs N       the number of processes that compile (default: all cores)
  --help         prints this text and stops

Exit code: 0 all kernels are stored, 1 an error, or the script launched
nothing, 2 a wrong command line, 130 interrupted.
]==]

local VALUED = {["--arch"] = "archs", ["--sms"] = "sms", ["--into"] = "into",
                ["--jobs"] = "jobs", ["--card"] = "card"}
local COUNTS = {sms = 4096, jobs = 256}

-- Parses a list of architectures separated by commas. Returns the names that
-- the driver uses for GPUs of these architectures, such as sm_90a for sm_90.
local function archs_of(text)
  local list, seen = {}, {}
  for word in (text .. ","):gmatch "([^,]*)," do
    local ok, sm = pcall(devices.sm, word)
    if not ok then return nil, (sm:gsub(" %[[%l-]+%]$", "")) end
    local name = ("sm_%d%s"):format(sm, sm >= 90 and "a" or "")
    if not seen[name] then list[#list + 1], seen[name] = name, true end
  end
  return list
end

--- Parses the arguments after `compile`. Returns the options, in which `script`
-- is the index of the script's name. Returns nil and a message if an argument
-- is invalid.
---@param words string[]
function main.options(words)
  local opt, i = {sms = 132, words = words}, 1
  while words[i] and words[i]:sub(1, 1) == "-" do
    local a, value = words[i]:match "^(%-%-%l+)=(.*)$"
    a = a or words[i]
    local name = VALUED[a]
    if a == "--help" or a == "-h" then
      opt.help = true
      return opt
    elseif not name then
      return nil, ("unknown option '%s'; compile --help lists them"):format(a)
    end
    if not value then i, value = i + 1, words[i + 1] end
    if (value or "") == "" then
      return nil, ("'%s' needs an argument"):format(a)
    end
    local most, n = COUNTS[name], literal.whole(value)
    if most and not (n and n >= 1 and n <= most) then
      return nil, ("%s: a whole number from 1 to %d is needed, got '%s'")
        :format(a, most, value)
    end
    opt[name] = most and n or value
    i = i + 1
  end
  if not words[i] then return nil, "compile: which script?" end
  opt.script = i
  if opt.archs then
    local why
    opt.archs, why = archs_of(opt.archs)
    if not opt.archs then return nil, "compile: --arch: " .. why end
  end
  return opt
end

-- Runs `cutelua compile` for one architecture in a child process, and prints
-- its output. Returns its exit code.
local function elsewhere(opt, arch)
  local words = {sys.program(), "compile", "--arch", arch, "--sms",
                 tostring(opt.sms)}
  for _, name in ipairs {"--into", "--jobs", "--card"} do
    local value = opt[VALUED[name]]
    if value then
      words[#words + 1] = name
      words[#words + 1] = tostring(value)
    end
  end
  table.move(opt.words, opt.script, #opt.words, #words + 1, words)
  local child <close>, why = sys.spawn(words, true)
  if not child then
    report.tell("cutelua: compile: cannot start a process: " .. why)
    return 1
  end
  child:finish()
  for text in child.receive, child do io.stdout:write(text) end
  local how, n = child:wait()
  if how == "signal" then
    report.tell(("cutelua: compile: the process for %s ended by signal %d")
      :format(arch, n))
    return 1
  end
  return n
end

--- Runs the command in one child process per architecture, because a process
-- has only one driver. Without --arch, compiles for this machine's GPU. Returns
-- the exit code, or nil if --arch names one architecture: no child is needed.
---@param opt table
---@return integer?
function main.whole(opt)
  if not opt.archs then
    local info, why = gpu.info()
    if not info then
      report.tell("cutelua: compile: name the architectures with --arch: "
        .. why)
      return 2
    end
    opt.archs, opt.sms = {info.arch}, info.sms
    opt.card = opt.card or info.name
  elseif #opt.archs == 1 then
    return nil
  end
  local worst = 0
  for _, arch in ipairs(opt.archs) do
    local code = elsewhere(opt, arch)
    if code == 130 then return code end
    worst = math.max(worst, code)
  end
  return worst
end

local Session = {}
Session.__index = Session

-- Metatable of a stand-in for a kernel that is not compiled yet. The fields
-- that Session:defer sets can be read. Reading another field (resources, ptx
-- ...) compiles the kernel at once.
local Stub = {}

-- Stands in for a CUBIN; the driver without a GPU does not read its bytes.
local CUBIN = "\x7fELF" .. ("\0"):rep(60)

function Stub.__index(t, k)
  if k == "loaded" then return nil end
  local session, job = t.session, t.job
  setmetatable(t, nil)
  devices.dry = nil
  local out, why = jit.compile(job.source, job.opts)
  devices.dry = session
  if not out then report.raise(why) end
  for name, v in pairs(out) do
    if t[name] == nil then t[name] = v end
  end
  return t[k]
end

-- Adds a job that compiles a kernel for a launch. Returns a Stub in place of
-- the compiled kernel. Returns nil if the kernel must not be cached or is for
-- another architecture, so that it is compiled at once.
function Session:defer(source, opts)
  if opts.cache == false or opts.arch ~= self.arch then return nil end
  local key = table.concat({source, table.unpack(opts.options or {})}, "\0")
  local job = self.known[key]
  if not job then
    job = {source = source, arch = opts.arch, options = opts.options,
           name = opts.name or "kernel", opts = opts}
    self.known[key] = job
    table.insert(self.jobs, job)
    self.pool:add(job)
  end
  return setmetatable({cubin = CUBIN, losses = {}, kernels = {},
                       arch = opts.arch, session = self, job = job}, Stub)
end

--- Starts a session that collects the kernels of launches until Session:finish.
-- On failure, returns nil, a message and an exit code.
---@param opt table
function main.start(opt)
  local arch = opt.archs[1]
  if os.getenv "CUTELUA_CACHE" == "0" then
    return nil, "compile: CUTELUA_CACHE=0 disables the cache that would "
      .. "receive the kernels", 2
  end
  local ok, why = core.dry_gpu(devices.sm(arch), opt.sms, opt.card)
  if not ok then return nil, "compile: " .. why, 1 end
  local s = setmetatable({opt = opt, arch = arch, known = {}, jobs = {},
                          pool = pool.new(opt.jobs, opt.into),
                          start = core.clock(), stop = exit.STOP}, Session)
  devices.dry = s
  exit.watch(function(code) s.code = code end)
  return s
end

local function row(job)
  local what = job.failed and "FAILED"
    or job.cached and "in the cache" or ("%.2f s"):format(job.seconds)
  print(("%-8s kernel %-40s %s"):format(job.arch, job.name, what))
  io.stdout:flush()
end

-- Prints why kernels failed to compile, and why results were not cached.
-- Returns the number of failures, and whether some results were not cached.
local function tell_failures(jobs)
  local failed, notes = 0, {}
  for _, job in ipairs(jobs) do
    if job.failed then
      failed = failed + 1
      -- Compiling again reports errors by lines of the script.
      local _, why
      if not job.died then _, why = jit.compile(job.source, job.opts) end
      report.tell(("cutelua: compile: kernel %s: %s"):format(job.name,
        why or job.failed))
    end
    for _, note in ipairs(job.notes or {}) do
      if not notes[note] then
        notes[note] = true
        report.tell("cutelua: compile: " .. note)
      end
    end
  end
  return failed, next(notes) ~= nil
end

--- Waits until the collected kernels are compiled; returns the exit code.
---@param code integer the script's exit code
function Session:finish(code)
  local _ <close> = self.pool
  exit.unwatch()
  devices.dry = nil
  if code == 130 then return code end
  code = self.code or code
  if #self.jobs == 0 then
    if code == 0 then
      report.tell("cutelua: compile: the script launched nothing on a GPU")
    end
    return 1
  end
  self.pool:finish(row)
  local failed, uncached = tell_failures(self.jobs)
  local hits = 0
  for _, job in ipairs(self.jobs) do hits = hits + (job.cached and 1 or 0) end
  print(("%s: %s in %.2f s, %d of them in the cache already, %d failed")
    :format(self.arch, report.plural(#self.jobs, "kernel"),
    core.clock() - self.start, hits, failed))
  if code ~= 0 then
    report.tell(("cutelua: compile: the script failed after %s: launches do "
      .. "nothing here, so results are zeros"):format(
      report.plural(#self.jobs, "kernel")))
  end
  return (failed > 0 or uncached or code ~= 0) and 1 or 0
end

return main
-- SPDX-License-Identifier: MIT
