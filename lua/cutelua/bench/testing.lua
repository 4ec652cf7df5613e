--- cute.testing: assertions, comparison and conversion of tensors, timing, and
-- selecting the fastest of several configurations.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local cute = require "cute"
local devices = require "cute.lang.devices"
local faults = require "cutelua.text.faults"
local pattern = require "cutelua.bench.pattern"
local report = require "cute.lang.report"
local unused = require "cute.lang.unused"

local testing = {}

---------------------------------------------------------------------------
-- Assertions and conversions
---------------------------------------------------------------------------

--- Stops the kernel if the condition is false: the simulator reports the line
-- and the text, a GPU traps. On the host it acts as Lua's assert.
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

--- Copies every element of src to dst, which has the same size, and rounds it
-- to dst's type. The copy runs on dst's device; for types of less than 8 bits
-- it runs on the host. Returns dst.
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
-- Comparing tensors
---------------------------------------------------------------------------

-- Relative and absolute tolerance by element type: a few rounding errors of
-- the type. Types that are not listed must be equal.
local TOLERANCE = {f64 = {1e-7, 1e-7}, f32 = {1.3e-6, 1e-5},
  tf32 = {1e-3, 1e-5}, f16 = {1e-3, 1e-5}, bf16 = {1.6e-2, 1e-5},
  e4m3 = {0.13, 2e-3}, e5m2 = {0.25, 1e-4}}
local EXACT = {0, 0}

local function fail(kind, text, ...)
  core.fail(kind, "assert_close: " .. text:format(...))
end

local function check_tensor(name, t)
  if t.memspace == "coord" then
    fail("bad-argument", "%s is %s; a tensor in memory is needed", name,
      tostring(t))
  end
end

-- Returns the extents of a tensor's modes, without nesting.
local function extents(t)
  local list = {}
  for i, n in ipairs(cute.flatten_to_tuple(t.shape)) do list[i] = n end
  return list
end

local function check_shapes(got, want)
  local a, b = extents(got), extents(want)
  local same = #a == #b
  for i = 1, #a do same = same and a[i] == b[i] end
  if not same then
    fail("shape-mismatch", "got has shape %s, but want has shape %s", got.shape,
      want.shape)
  end
  return a
end

local function check_types(got, want, opts)
  if opts.check_dtype ~= false and got.dtype ~= want.dtype then
    fail("type-mismatch", "got has type %s, want has type %s; with check_dtype "
      .. "= false only the values are compared", got.dtype, want.dtype)
  end
end

-- Returns a tolerance: the option `name`, else the larger of both types'
-- defaults.
local function tolerance(name, i, got, want, opts)
  local v = opts[name]
  if v == nil then
    return math.max((TOLERANCE[got.dtype.name] or EXACT)[i],
      (TOLERANCE[want.dtype.name] or EXACT)[i])
  elseif type(v) ~= "number" or v ~= v or v < 0 then
    fail("bad-argument", "%s = %s; a number of at least 0 is needed", name,
      core.show(v))
  end
  return v
end

-- Returns the coordinate of element i as text, where i counts with the first
-- mode fastest.
local function place(shape, i)
  local c = {}
  for k, n in ipairs(shape) do c[k], i = i % n, i // n end
  return "(" .. table.concat(c, ",") .. ")"
end

-- Returns the number of element i, counted with the last mode fastest.
local function row_major(shape, i)
  local nth, step = 0, 1
  for k = 2, #shape do step = step * shape[k] end
  for k, n in ipairs(shape) do
    nth, i = nth + i % n * step, i // n
    step = step // (shape[k + 1] or 1)
  end
  return nth
end

-- Returns |a - b| of two numbers. Integers of 64 bits are subtracted exactly.
local function distance(a, b)
  if math.type(a) == "integer" and math.type(b) == "integer" then
    local d = a < b and b - a or a - b
    return d < 0 and d + 2.0 ^ 64 or d
  end
  return math.abs(a - b)
end

-- Reports whether two elements agree. Returns their difference if both are
-- finite numbers.
local function agree(a, b, o)
  if a == b then return true, 0 end
  if a ~= a or b ~= b then return o.equal_nan and a ~= a and b ~= b end
  if type(a) ~= "number" or type(b) ~= "number" then return false end
  local d = distance(a, b)
  if d - d ~= 0 then return false end
  return d <= o.atol + o.rtol * math.abs(b), d
end

-- Updates r[name], the largest difference so far, and its coordinate.
local function largest(r, name, d, shape, i)
  if d > (r[name] and r[name].d or 0) then
    r[name] = {d = d, at = place(shape, i)}
  end
end

-- Compares all elements. The result has the number of differing elements
-- (`count`) and the numbers of NaN (got_nan, want_nan). It also has the first
-- differing element in row-major order, and the largest differences of finite
-- elements. Relative differences are computed only if |want| exceeds atol,
-- because they mean little for smaller numbers.
local function compare(got, want, shape, o)
  local r = {n = 0, count = 0, got_nan = 0, want_nan = 0}
  for i, a in got:elements() do
    local b = want[i]
    local ok, d = agree(a, b, o)
    r.n = r.n + 1
    if a ~= a then r.got_nan = r.got_nan + 1 end
    if b ~= b then r.want_nan = r.want_nan + 1 end
    if not ok then
      r.count = r.count + 1
      local nth = row_major(shape, i)
      if not r.first or nth < r.first.nth then
        r.first = {nth = nth, at = place(shape, i), got = a, want = b}
      end
    end
    if d and d > 0 then
      largest(r, "absolute", d, shape, i)
      local size = math.abs(b)
      if size > o.atol then largest(r, "relative", d / size, shape, i) end
    end
  end
  return r
end

-- Returns a function from an element's row-major number to the element. The
-- first call reads all elements.
local function by_rows(t, shape)
  local list
  return function(at)
    if not list then
      list = {}
      for i, x in t:elements() do list[row_major(shape, i)] = x end
    end
    return list[at]
  end
end

-- Returns the module whose field `session` is the session of `cutelua check`.
-- Returns an empty table to untrusted scripts, which cannot load the module.
local function session_of()
  local ok, lib = pcall(require, "cutelua.bench.lessonlib")
  return ok and lib or {}
end

-- Returns sentences on the places and values of the differing elements, and on
-- parts of inputs that were never read. Returns none in a trial of an edit
-- (lessonlib.brief), which does not print them.
local function pattern_of(a, b, shape, o)
  if session_of().brief then return {} end
  local function close(x, y) return (agree(x, y, o)) end
  local list = pattern.told {shape = shape, got = a, want = b, close = close,
    differs = function(x, y) return not close(x, y) end,
    names = {got = "got", want = "want"}}
  faults.add_skipped(list)
  return list
end

-- Passes a difference to the session of `cutelua check`, if one runs the
-- script. The session finds the store that wrote the first wrong element.
local function tell_check(got, a, b, shape, o, message, lines)
  local lib = session_of()
  if not lib.session then return end
  lib.verified(nil, false, nil, message, function()
    local check_compare = require "cutelua.check.compare"
    local c = check_compare.begin("reference", "got", math.huge)
    local buffer, offset = table.unpack(core.launch_values({got, n = 1})[1])
    for at = 0, cute.size(got) - 1 do
      local coord = pattern.coordinate(shape, at)
      local index = offset * 8 // got.dtype.bits
        + cute.crd2idx(coord, cute.flatten(got.layout))
      check_compare.note(c, index, function() return coord end, a(at), b(at), 1,
                         not agree(a(at), b(at), o))
    end
    c.most, c.buffer, c.pattern = o.rtol, buffer, lines
    return {c}
  end)
end

local function number(x)
  return math.type(x) == "float" and ("%.9g"):format(x) or tostring(x)
end

local function differences(r, o)
  local out = {("%d of %s: rtol = %g, atol = %g; the first is %s: got %s, want "
    .. "%s"):format(r.count, report.plural(r.n, "element differs",
      "elements differ"), o.rtol, o.atol, r.first.at, number(r.first.got),
    number(r.first.want))}
  local parts = {}
  for _, name in ipairs {"absolute", "relative"} do
    local most = r[name]
    parts[#parts + 1] = most and ("largest %s difference %.3g at %s"):format(
      name, most.d, most.at)
  end
  if parts[1] then out[#out + 1] = table.concat(parts, ", ") end
  if r.got_nan + r.want_nan > 0 then
    out[#out + 1] = ("NaN: %d of got, %d of want%s"):format(r.got_nan,
      r.want_nan, o.equal_nan and "" or "; a NaN differs from everything "
      .. "without equal_nan = true")
  end
  return table.concat(out, "\n  ")
end

--- Raises an error unless |got - want| <= atol + rtol |want| for each element
-- of two tensors of the same shape and type. NaN differs from everything, also
-- from NaN unless equal_nan is true. Infinities must be equal. The tensors may
-- be on any device.
--
-- The error has the number of differing elements, the coordinate of the first
-- one, and the largest absolute and relative difference. It also names a
-- pattern if one is found, such as "all elements of column 3 differ, and no
-- others", and parts of inputs that a kernel never read. `cutelua check` adds
-- the line that stored the first differing element, and tries repairs.
--
--     local x = cute.tensor({1, 2, 3}, cute.f32)
--     cute.testing.assert_close(x, cute.tensor({1, 2, 3 + 1e-6}, cute.f32))
--
---@param got table a tensor
---@param want table a tensor, or nested lists of numbers
---@param opts? table {rtol: number, atol: number, equal_nan: boolean,
-- check_dtype: boolean} rtol and atol: a few rounding errors of the type when
-- absent (0 for integers); check_dtype = false: the types may differ
function testing.assert_close(got, want, opts)
  core.outside()
  opts = opts or {}
  check_tensor("got", got)
  if core.typename(want) ~= "tensor" then
    want = cute.tensor(want, cute.f64)
    opts = setmetatable({check_dtype = false}, {__index = opts})
  end
  check_tensor("want", want)
  local shape = check_shapes(got, want)
  check_types(got, want, opts)
  local o = {rtol = tolerance("rtol", 1, got, want, opts),
             atol = tolerance("atol", 2, got, want, opts),
             equal_nan = opts.equal_nan}
  got, want = got:to "host", want:to "host"
  local r = compare(got, want, shape, o)
  if r.count > 0 then
    local message = "testing.assert_close: " .. differences(r, o)
    unused.wrong = true
    local a, b = by_rows(got, shape), by_rows(want, shape)
    local lines = pattern_of(a, b, shape, o)
    tell_check(got, a, b, shape, o, message:match "[^\n]+", lines)
    unused.skipped = {}
    core.fail("lua", table.concat({message, table.unpack(lines)}, "\n  "))
  end
  unused.skipped = {}
end

---------------------------------------------------------------------------
-- Timing
---------------------------------------------------------------------------

-- Returns a function that runs the timed object x: a prepared launch, or a
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
-- the value is the average time in microseconds, by the GPU's clock. On the
-- simulator it is the number of instructions that the warps execute, the same
-- in every run. For a function without a device it is the time on the host in
-- microseconds.
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

--- Returns the number of copies of the data that successive launches should use
-- in turn, so that L2 no longer holds a copy when it is used again. The copies
-- take three times L2's size, but there are at most as many as launches.
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

--- Makes a function that tunes itself. On a call whose opts.key(arguments...)
-- returns a new string, it tries all configurations of make(config,
-- arguments...) and keeps the fastest for that string. It then launches the
-- result of make for the fastest configuration and these arguments. Without
-- opts.key, the string is the key by which a kernel finds the compiled program
-- for its arguments.
---@param params table<string, any[]>
---@param make fun(config: table, ...): any
---@param opts? {key: fun(...): string} and the options of benchmark
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
  assert_(condition, text?: string)
  assert_close(got: tensor, want: tensor|table,
    opts?: {atol check_dtype equal_nan rtol})
  convert(src: tensor, dst: tensor)
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
