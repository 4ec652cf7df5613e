--- The measuring part of cute.testing: timing, and selecting the fastest of
-- several configurations.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local report = require "cute.lang.report"

local testing = {}

---------------------------------------------------------------------------
-- Timing
---------------------------------------------------------------------------

-- Returns a function that runs the timed object: a prepared launch, or a
-- function.
local function launcher(x)
  if type(x) == "function" then return x end
  return function()
    local ok, message = x:launch()
    if ok == nil then report.raise(message) end
    return ok
  end
end

local function on_simulator(x)
  return type(x) == "table" and x.device and x.device.kind == "sim"
end

-- Returns the numbers of warm-up runs and of measured runs that the options
-- request.
local function counts(opts)
  local function count(name, default, least)
    local n = opts[name] or default
    if math.type(n) ~= "integer" or n < least then
      core.fail("bad-argument", ("benchmark: %s = %s; an integer of at least "
        .. "%d is needed"):format(name, core.show(n), least))
    end
    return n
  end
  return count("warmup_iterations", 10, 0), count("iterations", 100, 1)
end

local function time_on_gpu(x, opts, dev)
  local message
  if not dev then dev, message = core.gpu_open(opts.ordinal) end
  if not dev then return nil, message end
  local run, warm, n = launcher(x), counts(opts)
  for _ = 1, warm do run() end
  local from, to = assert(dev:event()), assert(dev:event())
  from:record()
  for _ = 1, n do run() end
  to:record()
  to:sync()
  return from:elapsed(to) * 1000 / n, "us"
end

local function time_on_host(run, opts)
  local warm, n = counts(opts)
  for _ = 1, warm do run() end
  local start = core.clock()
  for _ = 1, n do run() end
  return (core.clock() - start) * 1e6 / n, "us"
end

--- Measures one launch and returns the value and its unit. On a GPU:
-- microseconds of its clock, averaged. On the simulator: the instructions that
-- its warps execute (the same every time). For a function without a device:
-- microseconds of the host.
---@param x table|function a prepared launch (cute.compile), or a function
---@param opts? table {warmup_iterations: integer, iterations: integer,
---   device: string} 10 and 100 when absent; device: where a function runs,
---   the host when absent
---@return number|nil value
---@return string unit or message
function testing.benchmark(x, opts)
  core.outside()
  opts = opts or {}
  if on_simulator(x) then return launcher(x)().instructions, "instructions" end
  if type(x) ~= "function" then return time_on_gpu(x, opts) end
  local device, message = devices.device(opts.device or "host")
  if not device then return nil, message end
  if device.kind == "sim" then return time_on_host(x, opts) end
  return time_on_gpu(x, opts, device.dev)
end

--- Returns how many copies of the data launches should use in turn, so that L2
-- no longer holds a copy when it is used again. The copies take three times
-- L2's size, but there are at most as many as launches.
---@param one_workspace_bytes integer
---@param warmup_iterations integer
---@param iterations integer
---@param l2_bytes? integer of the GPU when absent
---@return integer|nil
---@return string|nil message
function testing.get_workspace_count(one_workspace_bytes, warmup_iterations,
                                     iterations, l2_bytes)
  if not l2_bytes then
    local info, message = require "cute.gpu".info()
    if not info then return nil, message end
    l2_bytes = info.l2
  end
  if one_workspace_bytes < 1 then
    core.fail("bad-argument", ("workspace_bytes = %d; 0 or more is needed")
      :format(one_workspace_bytes))
  end
  return math.min(l2_bytes * 3 // one_workspace_bytes + 1,
                  warmup_iterations + iterations)
end

---------------------------------------------------------------------------
-- Tuning
---------------------------------------------------------------------------

-- Returns all combinations of {name = {values}}, in order of names and values.
local function combinations(params)
  local names = {}
  for name in pairs(params) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  local list = {{}}
  for _, name in ipairs(names) do
    if type(params[name]) ~= "table" then
      core.fail("bad-argument", ("params.%s = %s; a list of values is needed")
        :format(tostring(name), core.show(params[name])))
    end
    local longer = {}
    for _, c in ipairs(list) do
      for _, value in ipairs(params[name]) do
        local d = {[name] = value}
        for k, v in pairs(c) do d[k] = v end
        longer[#longer + 1] = d
      end
    end
    list = longer
  end
  return list
end

--- Finds the fastest configuration: make(config) returns a prepared launch or a
-- function, for every combination of params ({name = {values}}). A
-- configuration that fails is skipped; if all fail, the last error is raised.
---@param make fun(config: table): any
---@param params table<string, any[]>
---@param opts? table of benchmark
---@return table config, number value, any made, string unit
function testing.tune(make, params, opts)
  local best, least, made, unit, last
  for _, config in ipairs(combinations(params)) do
    local ok, x = pcall(make, config)
    local value, what
    if ok then ok, value, what = pcall(testing.benchmark, x, opts) end
    if not ok then
      last = value or x
    elseif not value then
      last = what
    elseif not least or value < least then
      best, least, made, unit = config, value, x, what
    end
  end
  if not best and last then error(last, 0) end
  if not best then
    core.fail("bad-argument", "testing.tune: params = " .. core.show(params)
      .. ": there is no combination to try")
  end
  return best, least, made, unit
end

--- Makes a function that tunes itself. When opts.key(arguments...) returns a
-- new string, the function tries all configurations of make(config,
-- arguments...) and keeps the fastest for that string. It then launches the
-- result of make for the fastest configuration and these arguments. Without
-- opts.key, the string is the key by which a kernel finds the compiled program
-- for its arguments.
---@param params table<string, any[]>
---@param make fun(config: table, ...): any
---@param opts? {key: fun(...): string} and those of benchmark
---@return fun(...): any
function testing.autotune_jit(params, make, opts)
  local kept, key, timed = {}, core.kind_text, {}
  for name, v in pairs(opts or {}) do
    if name == "key" then key = v else timed[name] = v end
  end
  return function(...)
    local k, args = key(...), table.pack(...)
    kept[k] = kept[k] or testing.tune(function(config)
      return make(config, table.unpack(args, 1, args.n))
    end, params, timed)
    return launcher(make(kept[k], ...))()
  end
end

return sign.public("testing.", testing, [[
  benchmark(x: prepared|launch|blas|function,
    opts?: {device iterations ordinal warmup_iterations})
  get_workspace_count(one_workspace_bytes: integer, warmup_iterations: integer,
    iterations: integer, l2_bytes?: integer)
  tune(make: function, params: table,
    opts?: {device iterations ordinal warmup_iterations})
  autotune_jit(params: table, make: function,
    opts?: {device iterations key ordinal warmup_iterations})
]])
-- SPDX-License-Identifier: MIT
