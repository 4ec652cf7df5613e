--- Compares results of the simulator with those of a GPU, and with a reference
-- in plain Lua.
--
-- A comparison is a table:
-- with: the origin of the expected values, "reference" or "GPU".
-- tensor: name of the result.
-- most: the largest relative error allowed (0: bits must be equal).
-- of: number of elements that were compared.
-- count: number of wrong elements.
-- error: the greatest relative error.
-- low, high: corners of the bounding box of all wrong elements.
-- first: the first wrong element: coord, got, want. If its writer is known, it
--   also has file, line, block, threads, and the name and value of the
--   registers that were stored.
-- pattern: sentences on the positions and values of wrong elements
--   (cutelua.bench.pattern).
local core = require "cute.core"
local cute = require "cute"
local devices = require "cute.lang.devices"
local faults = require "cutelua.text.faults"
local kernel = require "cute.lang.kernel"
local memory = require "cutelua.program.memory"
local pattern = require "cutelua.bench.pattern"
local source = require "cute.lang.source"

local compare = {}

--- The largest relative error that counts as rounding, by the result's element
-- type.
compare.TOLERANCE = {bf16 = 5e-3, f16 = 1e-3, f32 = 1e-5, f64 = 1e-12,
                     e4m3 = 8e-2, e5m2 = 1.6e-1}

---------------------------------------------------------------------------
-- Numbers
---------------------------------------------------------------------------

--- Returns the difference of two numbers, relative to |want| or to `scale`,
-- whichever is larger.
function compare.distance(got, want, scale)
  if got == want or got ~= got and want ~= want then return 0 end
  local d = math.abs(got - want)
  if d ~= d or d == math.huge then return math.huge end
  return d / math.max(math.abs(want), scale)
end

--- Returns the root mean square of n numbers. Infinities and NaNs are left out.
---@param n integer
---@param at fun(i: integer): number returns number i, from 0 to n - 1
function compare.scale(n, at)
  local sum, count = 0, 0
  for i = 0, n - 1 do
    local x = at(i)
    if x - x == 0 then sum, count = sum + x * x, count + 1 end
  end
  return count > 0 and math.sqrt(sum / count) or 0
end

---------------------------------------------------------------------------
-- Comparisons
---------------------------------------------------------------------------

--- Returns a comparison that has no elements yet. `with` says what the result
-- `tensor` is compared with, such as "reference". `most` is the largest allowed
-- error.
---@param with string
---@param tensor string
---@param most number
function compare.begin(with, tensor, most)
  return {with = with, tensor = tensor, most = most, of = 0, count = 0,
          error = 0}
end

local function widen(c, coord)
  c.low, c.high = c.low or {table.unpack(coord)}, c.high or {}
  for k, x in ipairs(coord) do
    c.low[k] = math.min(c.low[k], x)
    c.high[k] = math.max(c.high[k] or x, x)
  end
end

--- Adds the next element to a comparison, and counts it as wrong if it differs.
---@param c table of compare.begin
---@param at integer index in its buffer
---@param coord fun(): integer[]
---@param bits? boolean true if the bits differ but must be equal
function compare.note(c, at, coord, got, want, scale, bits)
  c.of = c.of + 1
  local d = compare.distance(got, want, scale)
  c.error = math.max(c.error, d)
  if d <= c.most and not bits then return end
  c.count = c.count + 1
  local where = coord()
  widen(c, where)
  c.first = c.first or {at = at, coord = where, got = got, want = want}
end

local EXACT = 1e-6  -- tolerance for pattern rules that require equal values

--- Adds sentences on how the wrong elements differ to a finished comparison.
---@param c table
---@param shape integer[]
---@param got fun(at: integer): number the element with row-major number `at`
---@param want fun(at: integer): number
---@param scale number as in compare.note
function compare.describe(c, shape, got, want, scale)
  if c.count == 0 then return end
  c.pattern = pattern.told {shape = shape, got = got, want = want,
    differs = function(a, b) return compare.distance(a, b, scale) > c.most end,
    close = function(a, b)
      return compare.distance(a, b, scale) <= math.max(c.most, EXACT)
    end,
    names = {got = "result", want = c.with}}
  if c.with == "reference" then faults.add_skipped(c.pattern) end
end

local function flat(t, out)
  if type(t) ~= "table" then
    out[#out + 1] = t
    return out
  end
  for _, x in ipairs(t) do flat(x, out) end
  return out
end

-- Compares the elements of result r in two buffers, `got` and `want`.
local function buffers(with, r, got, want, most)
  local c = compare.begin(with, r.name, most)
  if most == 0 and got:equal(want) then
    c.of = r.n
    return c
  end
  local exact = most == 0 and with == "GPU"
  local scale = most == 0 and 1
    or compare.scale(r.n, function(i) return want[r.at(i)] end)
  for i = 0, r.n - 1 do
    local at = r.at(i)
    compare.note(c, at, function() return r.coord(i) end, got[at], want[at],
                 scale, exact and got:bytes(at, 1) ~= want:bytes(at, 1))
  end
  local function element(buffer)
    return function(at)
      local i, before = 0, 1
      for k, x in ipairs(pattern.coordinate(r.shape, at)) do
        i, before = i + x * before, before * r.shape[k]
      end
      return buffer[r.at(i)]
    end
  end
  compare.describe(c, r.shape, element(got), element(want), scale)
  return c
end

---------------------------------------------------------------------------
-- Finding an element's writer
---------------------------------------------------------------------------

local function threads_of(at)
  local list = {}
  for lane = 0, 31 do
    if at.lanes >> lane & 1 == 1 then list[#list + 1] = at.warp * 32 + lane end
  end
  return list
end

--- Finds what last wrote an element: a line of the script, and threads or an
-- asynchronous copy. Returns it as fields for c.first, where c is a comparison.
-- To find the writer, it runs the launch again, starting from the memory that
-- `restore` sets up.
---@param restore fun(): integer
---@param program table
---@param launch table as core.sim_run takes it
---@param i integer argument number i of the program
---@param at integer element of its buffer
function compare.writer(restore, program, launch, i, at)
  local now, value, ref = memory.keep(program, launch.args), launch.args[i], nil
  for _, m in ipairs(program.info.mems) do
    if m.arg == i then ref = ref or m.ref end
  end
  local buffer = value[1]
  local element = at - value[2] * 8 // buffer.dtype.bits
  local words = {}
  for k, v in pairs(launch) do words[k] = v end
  words.debug = function() return false end
  words.goal = {recall = true, changes = {{mem = ref, element = element}}}
  restore()
  local met = core.sim_run(program.fn, words).met
  now()
  if not met or not met.line then return {} end
  local name, first, count = core.sim_value(program.fn, met.ref)
  return {file = met.file, line = met.line, block = met.block,
          threads = met.warp >= 0 and threads_of(met) or nil,
          name = name ~= "" and name or nil,
          value = name and first + element % count}
end

--- Adds the writer of the first wrong element to a comparison.
function compare.add_writer(c, ...)
  for k, v in pairs(compare.writer(...)) do c.first[k] = v end
end

---------------------------------------------------------------------------
-- A launch
---------------------------------------------------------------------------

-- Returns four values for a layout that begins at byte `offset` of a buffer:
-- the number of elements; a function from an element's number to its index in
-- the buffer; a function from the number to the coordinate; the extents of the
-- coordinate. If the layout is unknown, the values describe the rest of the
-- buffer.
local function elements(layout, buffer, offset)
  local first = offset * 8 // buffer.dtype.bits
  local ok, n = pcall(function() return layout and cute.size(layout) end)
  if not (ok and math.type(n) == "integer") then
    return #buffer - first, function(i) return first + i end,
           function(i) return {i} end, {#buffer - first}
  end
  return n, function(i) return first + layout(i) end,
         function(i) return flat(cute.idx2crd(i, layout.shape), {}) end,
         flat(layout.shape, {})
end

-- Returns the layout of the tensor that is argument i of a launch. Returns nil
-- if the argument is not a tensor, or if its layout cannot be parsed.
local function layout_of(program, value, i)
  if value.tma then return core.tma_tensor(value.tma).layout end
  for _, m in ipairs(program.info.mems) do
    if m.arg == i then
      local ok, layout = pcall(cute.layout, m.layout)
      return ok and layout or nil
    end
  end
end

-- Returns a list of the tensors that a launch writes: {name =, buffer =, i =
-- index of the argument, written =, and the results of elements(): n =, at =,
-- coord =, shape =}. With `all`, the list also has tensors that the launch only
-- reads, because a reference may change them. Tensors in program.card.hidden
-- are left out, because on a GPU the driver provides their memory.
local function results_of(program, launch, all)
  local list, hidden = {}, program.card and program.card.hidden or {}
  for i, a in ipairs(program.info.args) do
    local v = launch.args[i]
    local written = kernel.may_write(program.info, i)
    if a.pointer and (written or all) and not hidden[a.name] then
      local r = {name = a.name, buffer = v[1], i = i, written = written}
      r.n, r.at, r.coord, r.shape = elements(layout_of(program, v, i), v[1],
                                             v[2])
      list[#list + 1] = r
    end
  end
  return list
end

--- Returns the GPU on which a program can run, or nil and the reason why there
-- is none.
function compare.gpu(program)
  local odd = program.card and program.card.why
  if odd then return nil, odd end
  local simulates = devices.simulates
  devices.simulates = nil
  local ok, device, why = pcall(devices.device, "gpu")
  devices.simulates = simulates
  why = not ok and tostring(device) or why
  if not ok or not device then return nil, why:match "^[^(%[\n]*[^(%[\n%s]" end
  return device
end

-- Returns the reason why a GPU's results may differ in some bits from the
-- simulator's; nil if they must be equal.
local function why_not_exact(program, v)
  if v.sums then return "the order of additions" end
  if program.card and program.card.contract then
    return "contraction of products and sums"
  end
  local name, file, line = core.sim_inexact(program.fn)
  return name and ("%s (%s:%d)"):format(name, source.short(file), line)
end

-- Runs the launch by calling f, copies the results and restores memory. Returns
-- the copies, or false and the error if f fails.
local function after(restore, results, f)
  local out = {}
  local _, failed = memory.untouched(restore, function()
    local ok, why = pcall(f)
    if not ok then return tostring(why) end
    for i, r in ipairs(results) do out[i] = r.buffer:to(r.buffer.dtype) end
  end)
  return not failed and out, failed
end

local function on_gpu(program, launch, device)
  local p = assert(kernel.elsewhere(program, launch, device))
  p.output = false
  p:launch()
  device.dev:sync()
end

-- Compares each result (got) with the same result of another run (want), and
-- adds the comparisons to v.compared. A difference sets the verdict to "bug".
local function add(v, with, results, got, want, most, writer)
  for i, r in ipairs(results) do
    local type_ = r.buffer.dtype.name
    local c = buffers(with, r, got[i], want[i],
                      most or compare.TOLERANCE[type_] or 0)
    if c.first then compare.add_writer(c, writer[1], writer[2], writer[3], r.i,
                                       c.first.at) end
    if r.written or c.count > 0 then v.compared[#v.compared + 1] = c end
    if c.count > 0 then v.verdict = "bug" end
  end
end

--- Compares a launch's results on the simulator with those of a GPU, if there
-- is one, and with a reference. Sets fields of the verdict v: `compared` is a
-- list of comparisons; `gpu` is the GPU's name; `not_compared` is the reason
-- why no GPU was used; `inexact` is the reason why the GPU's bits may differ.
---@param v table a verdict without a bug
---@param program table
---@param launch table as core.sim_run takes it
---@param o table {reference: function?, arguments: table?, tolerance: number?,
-- gpu: boolean?}
function compare.launch(v, program, launch, o)
  local device, why
  if o.gpu ~= false then device, why = compare.gpu(program) end
  if o.gpu and not device then core.fail("bad-launch", "check: " .. why) end
  if device and v.verdict ~= "ok" and not o.gpu then
    device, why = nil, "some schedules may not end (gpu = true compares anyway)"
  elseif device and v.results > 1 then
    device, why = nil, "the results depend on the schedule"
  end
  v.compared, v.not_compared = {}, not device and why or nil
  if not device and not o.reference then return end
  local all = o.reference ~= nil
  local restore = memory.keep(program, launch.args, all)
  local results, words = results_of(program, launch, all), {}
  for k, x in pairs(launch) do words[k] = x end
  words.sm = device and device.sm or launch.sm
  local writer = {restore, program, words}
  -- In this run, a try_wait fails only if its phase is not complete, never by
  -- chance. Explored schedules follow this rule, too.
  local decided = setmetatable({decided = true}, {__index = words})
  local stopped
  local ours = assert(after(restore, results, function()
    stopped = core.sim_run(program.fn, decided).stopped
  end))
  if stopped then
    v.verdict = "incomplete"
    v.open[#v.open + 1] = {why = "stopped", text = "results were not compared: "
      .. "a run was stopped"}
    return
  end
  if device then
    local theirs, failed = after(restore, results, function()
      on_gpu(program, words, device)
    end)
    v.gpu, v.inexact = device.name, why_not_exact(program, v)
    if theirs then
      add(v, "GPU", results, ours, theirs, not v.inexact and 0 or o.tolerance,
          writer)
    elseif failed:find("[wrong-arch]", 1, true)
      or failed:find("[no-nvrtc]", 1, true) then
      v.gpu, v.not_compared = nil, failed
    else
      v.verdict, v.failed = "bug", failed
    end
  end
  if o.reference then
    local theirs, failed = after(restore, results, function()
      o.reference(table.unpack(o.arguments, 1, o.arguments.n))
    end)
    if not theirs then error(failed, 0) end
    add(v, "reference", results, ours, theirs, o.tolerance, writer)
  end
end

--- Returns a function that runs a launch with the patches `edits` (see
-- core.sim_run) and reports whether the results agree with the reference.
---@param program table
---@param launch table as core.sim_run takes it
---@param o table {reference: function, arguments: table, tolerance: number?}
---@return fun(edits: table[]): boolean
function compare.judge(program, launch, o)
  local restore = memory.keep(program, launch.args, true)
  local results = results_of(program, launch, true)
  local theirs, failed = after(restore, results, function()
    o.reference(table.unpack(o.arguments, 1, o.arguments.n))
  end)
  if not theirs then error(failed, 0) end
  return function(edits)
    local words = setmetatable({decided = true, edits = edits},
                               {__index = launch})
    local ours = after(restore, results, function()
      core.sim_run(program.fn, words)
    end)
    for i, r in ipairs(ours and results or {}) do
      local most = o.tolerance or compare.TOLERANCE[r.buffer.dtype.name] or 0
      if buffers("reference", r, ours[i], theirs[i], most).count > 0 then
        return false
      end
    end
    return ours ~= false
  end
end

---------------------------------------------------------------------------
-- Messages
---------------------------------------------------------------------------

local function number(x)
  return math.type(x) == "float" and ("%.9g"):format(x) or tostring(x)
end

local function tuple(list) return ("(%s)"):format(table.concat(list, ",")) end

-- Returns text that names the writer of a wrong element: "written by thread 37
-- of block (0,0,0), value 5 of tCrC, at gemm.lua:31". Returns nil if the writer
-- is unknown.
local function by_whom(f)
  if not f.line then return nil end
  local who = "an asynchronous copy"
  if f.threads then
    who = ("thread%s %s of block %s"):format(#f.threads > 1 and "s" or "",
      table.concat(f.threads, ", "), tuple(f.block))
  end
  return ("written by %s%s%s, at %s:%d"):format(who,
    f.value and (", value %d"):format(f.value) or "",
    f.name and " of " .. f.name or "", source.short(f.file), f.line)
end

--- Returns a comparison as lines of text.
---@param c table
---@return string[]
function compare.told(c)
  if c.count == 0 then
    local how = c.most == 0 and "bit for bit"
      or ("relative error %.1e, at most %.1e"):format(c.error, c.most)
    return {("simulator = %s: %s, all %d elements, %s"):format(c.with, c.tensor,
      c.of, how)}
  end
  local f = c.first
  local how = c.with == "GPU" and "which must be equal bit for bit"
    or "which must be equal"
  if c.most > 0 then
    how = ("relative error %.1e, at most %.1e is "
      .. "allowed"):format(c.error, c.most)
  end
  local text = {("simulator and %s differ in %s: %d of %d elements, all in %s "
    .. "to %s, %s"):format(c.with, c.tensor, c.count, c.of, tuple(c.low),
    tuple(c.high), how)}
  text[2] = ("  first %s%s: %s on the simulator, %s by the %s"):format(c.tensor,
    tuple(f.coord), number(f.got), number(f.want), c.with)
  local who = by_whom(f)
  if who then text[3] = "  " .. who end
  for _, line in ipairs(c.pattern or {}) do text[#text + 1] = "  " .. line end
  return text
end

--- Returns a comparison as a plain table, for programs that read the report.
function compare.plain(c)
  local out = {}
  for k, v in pairs(c) do out[k] = v end
  if c.first then
    out.first = {}
    for k, v in pairs(c.first) do out.first[k] = v end
    out.first.file = c.first.file and source.short(c.first.file)
  end
  return out
end

return compare
-- SPDX-License-Identifier: MIT
