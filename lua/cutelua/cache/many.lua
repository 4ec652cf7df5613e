--- Prepares many launches at once: their kernels are compiled in parallel
-- processes.
local core = require "cute.core"
local devices = require "cute.lang.devices"
local report = require "cute.lang.report"
local source = require "cute.lang.source"

local many = {}

-- Returns the options of a launch, without launch[1], the call.
local function options_of(launch)
  local o = {}
  for k, v in pairs(launch) do
    if k ~= 1 then o[k] = v end
  end
  return o
end

local function place_of(call, o)
  local ok, values = pcall(core.launch_values, call)
  return (devices.pick(ok and values or nil, o, "auto"))
end

-- Returns the job {source, name, arch, options} that compiles the kernel of a
-- launch for a GPU, or nil if nothing has to be compiled.
local function job_of(call, o)
  local k = call.kernel
  local device = place_of(rawget(k, "source") and call.values or call, o)
  if not device or device.kind ~= "gpu" then return nil end
  if rawget(k, "source") then
    return not k.cubins[device.arch] and {source = k.source, name = k.name,
      arch = device.arch, options = k.options} or nil
  end
  local program = call:trace {block = o.block, cluster = o.cluster,
    fmad = o.fmad, fastmath = o.fastmath, arch = device.arch}
  if program.cubins[device.arch] then return nil end
  local text, _, _, options = program:cuda(device.arch)
  return {source = source.without_comments(text), name = k.name,
          arch = device.arch, options = options}
end

-- Returns a pool that compiles kernels into the cache in parallel processes.
-- Returns nil if there are no processes or no cache; each launch then compiles
-- its own kernel.
local function new_pool(n)
  local there, sys = pcall(require, "cute.sys")
  if n == 1 or not there or not sys.spawn or
     os.getenv "CUTELUA_CACHE" == "0" then
    return nil
  end
  return require "cutelua.cache.pool".new(n)
end

--- Prepares many launches. A launch is a table with a call of a kernel and the
-- options of call:compile. Parallel processes, one for each core of the
-- computer, compile the kernels and store them in the cache of compiled
-- kernels. A kernel is compiled while further kernels are traced. Returns the
-- prepared launches in the same order.
--
--     k = cute.kernel(function(x) x[0] = x[0] + 1 end)
--     x = cute.zeros({1}, cute.f32)
--     runs = cute.compile_all {{k(x), grid = 1, block = 1, device = "sim"}}
--     runs[1]:launch()
--     x(0)  --> 1.0
---@param launches table[] {{call, grid = g, block = b, ...}, ...}
---@param opts? {jobs: integer} the number of processes
---@return table[] prepared
function many.compile_all(launches, opts)
  local n = opts and opts.jobs
  if n ~= nil and (math.type(n) ~= "integer" or n < 1 or n > 256) then
    core.fail("bad-argument", ("compile_all: jobs = %s; an integer from 1 to "
      .. "256 is needed"):format(core.show(n)))
  end
  local pool <close> = #launches > 1 and new_pool(n)
  local known = {}
  for i, launch in ipairs(launches) do
    local call = type(launch) == "table" and launch[1]
    if type(call) ~= "table" or not rawget(call, "kernel") then
      core.fail("bad-argument", ("compile_all: launch %d is %s; {call, grid = "
        .. "g, block = b} is needed"):format(i, core.show(launch)))
    end
    local job = job_of(call, options_of(launch))
    local key = job and table.concat({job.source, job.arch,
      table.unpack(job.options or {})}, "\0")
    if pool and key and not known[key] then
      known[key] = true
      pool:add(job)
    end
  end
  -- A compiler that crashed in a child would also end this process, so that
  -- launch raises an error. Other errors occur again below, where each launch
  -- compiles its kernel and explains them.
  if pool then
    pool:finish(function(job)
      if job.died then
        core.fail("compile-failed", ("compile_all: kernel %s for %s: %s")
          :format(job.name, job.arch, job.failed))
      end
    end)
  end
  local out = {}
  for i, launch in ipairs(launches) do
    local p, why = launch[1]:compile(options_of(launch))
    if not p then report.raise(why) end
    out[i] = p
  end
  return out
end

return many
-- SPDX-License-Identifier: MIT
