--- cute.testing: assertions in a kernel, conversion of tensors, timing, and
-- selecting the fastest of several configurations.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local report = require "cute.lang.report"

local testing = {}

---------------------------------------------------------------------------
-- Assertions and conversions
---------------------------------------------------------------------------

--- Stops the kernel if the condition is false. The simulator then reports the
-- line and the text; a GPU traps. On the host it is Lua's assert.
---@param cond any
---@param text? string
function testing.assert_(cond, text)
  if core.typename(cond) == "value" then
    core.trap(cond, text or "")
  elseif not cond then
    core.fail("bad-argument", ("assertion failed%s: the condition is %s")
      :format(text and ": " .. text or "", tostring(cond)))
  end
end

--- Copies every element of src to dst, of the same size, rounded to dst's type.
-- The copy runs on dst's device (types of less than 8 bits: on the host).
-- Returns dst.
---@param src table
---@param dst table
function testing.convert(src, dst)
  local n = core.size(src)
  if n ~= core.size(dst) then
    core.fail("shape-mismatch", ("convert: %s to %s"):format(
      tostring(core.shape(src)), tostring(core.shape(dst))))
  end
  if dst.device ~= "host" and dst.dtype.bits >= 8 and src.dtype.bits >= 8
    and require "cute.ops.elementwise".move(dst, src:to(dst.device)) then
    return dst
  end
  local here = dst:to "host"
  for i, x in src:to "host":elements() do here[i] = x end
  if here ~= dst then dst:copy_from(here) end
  return dst
end

--- Copies a tensor to the host and leaves a gap after each row of its fastest
-- mode. A gap has 16 bytes or more and ends at a multiple of 16 bytes. On the
-- simulator a kernel must not access the gaps. Without gaps, an access beyond
-- the end of a row would reach the next row unnoticed. The shape must consist
-- of integers.
---@param t table
---@return table
function testing.padded(t)
  local bits, order, stride = t.dtype.bits, {}, {}
  for i = 1, core.rank(t) do
    order[i] = i
    if not (math.type(t.shape[i]) and math.type(t.stride[i])) then
      core.fail("bad-argument", "padded: a shape (integer, integer ...) is "
        .. "needed, not the shape of " .. tostring(t))
    end
  end
  table.sort(order, function(i, j)
    return t.stride[i] < t.stride[j] or (t.stride[i] == t.stride[j] and i < j)
  end)
  -- Number of elements in 16 bytes.
  local unit = math.max(128 // bits, 1)
  local size = 1
  for k, i in ipairs(order) do
    stride[i], size = size, size * t.shape[i]
    if k == 1 then size = (size + unit - 1) // unit * unit + unit end
  end
  local buffer = core.buffer(t.dtype, size)
  buffer:fill(0)
  return core.make_tensor(buffer, core.make_layout(t.shape, stride))
    :copy_from(t:to "host")
end

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

--- Measures one launch and returns the measured value and its unit. On a GPU
-- the value is the average number of microseconds, by the GPU's clock. On the
-- simulator it is the number of instructions that the warps execute, the same
-- every time. For a function without a device it is the number of microseconds
-- of the host.
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
  assert_(condition, text?: string) convert(src: tensor, dst: tensor)
  padded(t: tensor)
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
