--- Records the functions of a bundle while a script runs on the simulator, for
-- one architecture.
--
-- Each launch outside of cute.bundle.add becomes a function with the kernel's
-- name. The result is a list of functions: {name, variants = {{tensors,
-- numbers, apart, equal, steps, work, tests, checks}}}, see describe.lua.
local any = require "cutelua.bundle.any"
local check = require "cutelua.check"
local core = require "cute.core"
local cute = require "cute"
local describe = require "cutelua.bundle.describe"
local devices = require "cute.lang.devices"
local expression = require "cutelua.bundle.expression"
local kernel = require "cute.lang.kernel"
local range = require "cutelua.bundle.range"
local state = require "cutelua.bundle.state"
local targets = require "cute.targets"

local record = {}

local fail = describe.fail

local Session = {}
Session.__index = Session

-- The largest size of the tensors' data in one test, in bytes.
local LARGEST = 256 << 20

---------------------------------------------------------------------------
-- Launches
---------------------------------------------------------------------------

-- Returns the elements of a buffer that contain n bytes from byte `at` on. The
-- results are the index of the first element, the number of elements, and the
-- position of byte `at` in them.
local function elements(buffer, at, n)
  local bits = buffer.dtype.bits
  local first = at * 8 // bits
  local last = ((at + n) * 8 + bits - 1) // bits
  return first, last - first, at - first * bits // 8
end

-- Returns n bytes of a buffer from byte `at` on.
local function bytes_at(buffer, at, n)
  local first, count, skip = elements(buffer, at, n)
  return buffer:bytes(first, count):sub(skip + 1, skip + n)
end

-- Stores bytes in a buffer from byte `at` on.
local function put_bytes(buffer, at, bytes)
  local first, count, skip = elements(buffer, at, #bytes)
  local old = buffer:bytes(first, count)
  buffer:set_bytes(old:sub(1, skip) .. bytes .. old:sub(skip + #bytes + 1),
                   first)
end

-- Returns a record of a launch (see describe.lua). Buffers may be closed after
-- the launch, so the record contains the required data of each buffer.
local function recorded(program, launch, since, zeroed)
  local l = {program = program, launch = launch, origin = {},
             leaves = core.kind_leaves(program.kind)}
  for i in ipairs(l.leaves) do
    local v = launch.args[i]
    if core.typename(v[1]) == "buffer" then
      local serial, defined = core.buffer_origin(v[1])
      -- `fresh`: the call made this memory, or it is a counter that is 0. Other
      -- memory is an argument, whose contents do not matter.
      local fresh = defined and (serial > since or zeroed[v[1]])
      l.origin[i] = {serial = serial, defined = defined,
        bytes = (#v[1] * v[1].dtype.bits + 7) // 8,
        zero = fresh and not bytes_at(v[1], v[2], v[3]):find "[^%z]"}
    end
  end
  return l
end

-- Returns the verdict of `cutelua check` on a launch as text, or nil if the
-- session does not check.
function Session:verdict(program, launch)
  if not self.seconds then return nil end
  local v = check.launch(program, launch, {seconds = self.seconds, gpu = false})
  if v.verdict == "bug" then
    self.bug = tostring(v)
    fail(program.info.name, "the check found a fault\n%s", tostring(v))
  end
  local open = {}
  for i, o in ipairs(v.open) do open[i] = o.text end
  return {kernel = v.kernel, verdict = v.verdict, grid = launch.grid,
          orders = v.orders, runs = v.runs, blocks = v.blocks,
          turns = v.turns, open = open, notes = v.notes,
          results = v.results, sums = v.sums ~= nil}
end

-- Replaces the simulator's run function: records the launch, then runs it.
function Session:run(program, launch)
  local l = recorded(program, launch, self.since or math.maxinteger,
    self.zeroed)
  if self.dry then
    table.insert(self.replay or self.capture, l)
    return {ok = true, stopped = true, output = "", reports = {}, lines = {},
            relies = {}, seconds = 0, instructions = 0}
  elseif self.capture then
    l.check = self:verdict(program, launch)
    table.insert(self.capture, l)
    return core.sim_run(program.fn, launch)
  end
  return self:alone(l)
end

-- Returns the contents of each root as a list of strings, or nil if they are
-- too large for a test.
local function bytes_of(roots)
  local list, total = {}, 0
  for i, r in ipairs(roots) do
    total = total + r.bytes
    if total <= LARGEST then list[i] = bytes_at(r.buffer, r.offset, r.bytes) end
  end
  return total <= LARGEST and list or nil
end

-- Returns a test: the contents of the tensors before and after a call, and
-- whether a GPU may round results differently.
local function test_of(roots, before, numbers, launches)
  local after, values = bytes_of(roots), {}
  if not before or not after then return nil end
  for i, n in ipairs(numbers) do values[i] = n.value end
  local tensors = {}
  for i, r in ipairs(roots) do
    tensors[i] = {input = before[i], shape = r.shape, stride = r.stride,
                  expected = r.written and after[i] or nil}
  end
  local inexact = false
  for _, l in ipairs(launches) do
    local c = l.check or {}
    inexact = inexact or core.sim_inexact(l.program.fn) ~= nil
      or c.sums or (c.results or 1) > 1
  end
  return {tensors = tensors, numbers = values, inexact = inexact}
end

-- Records a launch that no call of cute.bundle.add made.
function Session:alone(l)
  local variant, roots = describe.variant(l.program.info.name, {l}, {})
  local before = self.tests and bytes_of(roots)
  l.check = self:verdict(l.program, l.launch)
  local found = core.sim_run(l.program.fn, l.launch)
  variant.checks = {l.check}
  variant.tests = {self.tests and test_of(roots, before, variant.numbers,
    {l})}
  variant.program = l.program
  self:keep(l.program.info.name, variant, true)
  return found
end

---------------------------------------------------------------------------
-- Functions
---------------------------------------------------------------------------

-- Returns a text of a variant's parameters, equal for all variants of one C
-- function.
local function signature(v)
  local out = {}
  for _, t in ipairs(v.tensors) do
    out[#out + 1] = ("%s:%s"):format(t.name, t.dtype)
  end
  for _, n in ipairs(v.numbers) do
    out[#out + 1] = ("%s=%s"):format(n.name, n.dtype)
  end
  return table.concat(out, " ")
end

-- Returns a list of numbers and formulas as text.
local function words(list)
  local out = {}
  for i, v in ipairs(list or {}) do
    out[i] = range.is_formula(v) and ("%d+%d*%d/%d"):format(v.a, v.b, v.c or 1,
      v.d) or v
  end
  return table.concat(out, ",")
end

-- Returns a text that describes the arguments that a variant accepts. Two
-- variants of a function must have different texts; otherwise a call could not
-- choose between them.
local function domain(v)
  local out = {}
  for i, t in ipairs(v.tensors) do
    out[i] = ("%s:%s/%s:%s"):format(words(t.shape), words(t.stride),
      words(t.shape_div), words(t.stride_div))
  end
  if v.size then out[#out + 1] = ("%d %d"):format(v.size.from, v.size.to) end
  return table.concat(out, " ")
end

local function same_steps(a, b)
  for i, s in ipairs(a.steps) do
    local t = b.steps[i]
    if not t or s.program ~= t.program
      or s.grid and t.grid and words(s.grid) ~= words(t.grid) then
      return false
    end
  end
  return #a.steps == #b.steps
end

-- Names that a parameter must not have: keywords of C and C++, and names that
-- the generated functions use.
local RESERVED = {}
for word in ([[auto bool break case catch char class const constexpr continue
  default delete do double else enum explicit export extern false float for
  friend goto if inline int long mutable namespace new operator private
  protected public register restrict return short signed sizeof static struct
  switch template this throw true try typedef typename union unsigned using
  virtual void volatile while work bytes stream version and or not xor asm
  launch workspace entries main linux unix NULL EOF THREAD FUNCTION FUNCTIONS
  bits_of_f32 bits_of_f64]]):gmatch "[%w_]+" do
  RESERVED[word] = true
end

-- Returns a function that converts a text to a C identifier that it has not
-- returned before.
local function namer()
  local used = {}
  return function(text)
    local name = tostring(text):gsub("[^%w_]", "_"):gsub("^(%d)", "_%1")
    if RESERVED[name] then name = name .. "_" end
    local own, n = name, 1
    while used[own] do n, own = n + 1, ("%s%d"):format(name, n + 1) end
    used[own] = true
    return own
  end
end

-- Names of functions and types that every bundle has.
local OWN = {}
for word in ([[stream tensor status status_name error arch archs careful load
  unload vector matrix dtype]]):gmatch "[%w_]+" do
  OWN[word] = true
end

-- Adds variant v to the function `name`. If a function of this name with other
-- parameters exists, raises an error or, with `free`, appends a number to the
-- name. free: true if the name comes from a kernel, not from the script.
function Session:keep(name, v, free)
  if OWN[name] or name:find "_v$" or name:find "_workspace$" then
    if not free then
      fail(name, "this name is reserved, because every bundle defines such a "
        .. "function: choose another name")
    end
    name = name .. "_kernel"
  end
  describe.place(v)
  local unique = namer()
  for _, t in ipairs(v.tensors) do t.name = unique(t.name) end
  for _, x in ipairs(v.numbers) do x.name = unique(x.name) end
  local parameters, takes = signature(v), domain(v)
  for n = 1, math.huge do
    local own = n == 1 and name or ("%s_%d"):format(name, n)
    local f = self.by_name[own]
    if not f then
      f = {name = own, signature = parameters, variants = {}, free = free}
      self.by_name[own] = f
      self.functions[#self.functions + 1] = f
    end
    local fits, twin = f.signature == parameters and f.free == free, nil
    for _, other in ipairs(f.variants) do
      if domain(other) == takes then twin = other end
    end
    if fits and twin and same_steps(twin, v) then return end
    if fits and not twin then
      f.variants[#f.variants + 1] = v
      return
    end
    if not free then
      fail(name, fits and "two calls with tensors of the same extents launch "
        .. "different kernels" or "a function of this name has other arguments "
        .. "(%s)", f.signature)
    end
  end
end

-- Returns the name of parameter i of a function; nil if the function has fewer
-- parameters or no debug information.
local function parameter(f, i)
  local name = debug.getlocal(f, i)
  return name ~= "(temporary)" and name or nil
end

-- Returns a copy of tensor t in new memory. (A tensor whose elements have less
-- than 8 bits is returned unchanged.) The copy's address is a multiple of
-- `align` bytes, but not of any larger power of two. moved[buffer] is the
-- tensor that received the contents of a buffer, from byte `align` on.
local function moved_tensor(t, align, moved)
  local buffer, offset = core.param_memory(t)
  local own, bits = buffer.dtype.bits, t.element_type.bits
  if own < 8 or bits < 8 then return t end
  if not moved[buffer] then
    local base = cute.zeros({#buffer + align * 8 // own}, buffer.dtype)
    moved[buffer] = base
    core.param_memory(base):set_bytes(buffer:bytes(), align * 8 // own)
  end
  local base = moved[buffer]
  if base.element_type ~= t.element_type then
    base = cute.recast_tensor(base, t.element_type)
  end
  return cute.make_tensor(base.iterator + (offset + align) * 8 // bits,
                          t.layout)
end

-- Copies contents back to the buffers from which moved_tensor took them.
local function move_back(moved, align)
  for buffer, base in pairs(moved) do
    buffer:set_bytes(core.param_memory(base):bytes(align * 8
      // buffer.dtype.bits, #buffer), 0)
  end
end

-- Returns the option `align` of the configuration `name`, or nil if it is
-- absent. Raises an error if it is not a power of two from 8 to 128.
local function align_of(name, config)
  local align = config.align
  if align ~= nil and (math.type(align) ~= "integer" or align < 8
    or align > 128 or align & align - 1 ~= 0) then
    fail(name, "align = %s; a power of two from 8 to 128 is needed",
         core.show(align))
  end
  return align
end

-- Returns the keys of a table that are strings or integers, sorted.
local function sorted_keys(t)
  local keys = {}
  for k in next, t do
    if type(k) == "string" or math.type(k) == "integer" then
      keys[#keys + 1] = k
    end
  end
  table.sort(keys, function(a, b)
    if math.type(a) == math.type(b) then return a < b end
    return math.type(a) ~= nil
  end)
  return keys
end

-- Returns the fields of a root (see describe.lua) for tensor t, without a name.
local function root_of(t)
  local buffer, offset, bytes = core.param_memory(t)
  local shape, stride = describe.modes(t, bytes)
  return {buffer = buffer, offset = offset, bytes = bytes,
          dtype = t.element_type, shape = shape, stride = stride}
end

-- Walks over the arguments of a function. Returns three results: a copy of the
-- arguments, in which values replace the results of cute.bundle.number; a list
-- of the tensors; a list of the replaced numbers. moved: see moved_tensor.
local function arguments_of(f, config, moved)
  local unique, tensors, numbers, seen = namer(), {}, {}, {}
  local names, at = config.names or {}, 0
  local function walk(v, name)
    local kind = core.typename(v)
    if kind == "tensor" then
      at = at + 1
      if config.align then v = moved_tensor(v, config.align, moved) end
      local root = root_of(v)
      root.name = unique(names[at] or name)
      tensors[#tensors + 1] = root
    elseif getmetatable(v) == state.Number then
      numbers[#numbers + 1] = {name = unique(v.name), value = v.value,
                               set = v}
      return v
    elseif type(v) == "table" and not seen[v] then
      -- Objects, such as masks, are not copied.
      local copy = not getmetatable(v) and {} or nil
      seen[v] = true
      for _, k in ipairs(sorted_keys(v)) do
        local x = walk(rawget(v, k), math.type(k) and name .. k or k)
        if copy then copy[k] = x end
      end
      seen[v] = nil
      return copy or v
    end
    return v
  end
  local list = {n = #config}
  for i = 1, #config do
    list[i] = walk(config[i], type(f) == "function" and parameter(f, i)
      or "arg" .. i)
  end
  return list, tensors, numbers
end

-- Returns a copy of arguments v in which values replace the results of
-- cute.bundle.number. With `other`, the values differ from those that the
-- script gave.
local function with_numbers(v, other)
  if getmetatable(v) == state.Number then
    local x = v.value
    if not other then return x end
    return math.type(x) == "integer" and x + 1 or x * 1.375 + 0.171875
  elseif type(v) == "table" and not getmetatable(v) then
    local copy = {}
    for k, x in pairs(v) do copy[k] = with_numbers(x, other) end
    return copy
  end
  return v
end

-- Appends the tensors that a function returned to `tensors`.
local function add_results(name, tensors, results, config)
  local taken = {}
  for _, t in ipairs(tensors) do taken[t.name] = true end
  local count, tensor_count = 0, 0
  for i = 1, results.n do
    if core.typename(results[i]) == "tensor" then
      tensor_count = tensor_count + 1
    end
  end
  for i = 1, results.n do
    local v = results[i]
    if core.typename(v) == "tensor" then
      count = count + 1
      local root, known = root_of(v), nil
      for _, t in ipairs(tensors) do
        known = known or t.buffer == root.buffer and t.offset == root.offset
      end
      if not known then
        local own = (config.results or {})[count] or tensor_count == 1 and "out"
          or "out" .. count
        while taken[own] do own = own .. "_" end
        taken[own], root.name = true, own
        tensors[#tensors + 1] = root
      end
    elseif v ~= nil then
      fail(name, "the function returned %s; only tensors are possible",
           core.show(v))
    end
  end
end

-- Finds the kernel arguments that come from cute.bundle.number. It compares a
-- call's launches with `others`, the launches of a call with other numbers.
-- Returns {list = the numbers, at = {[launch] = {[value] = index in list}}}.
local function find_numbers(name, numbers, launches, others)
  local list, at = {}, {}
  for i, n in ipairs(numbers) do
    list[i] = {name = n.name, value = n.value,
               dtype = math.type(n.value) == "integer" and "i32" or "f32"}
  end
  if #numbers > 0 and #launches ~= #others then
    fail(name, "the kernels that the function launches depend on the value of "
      .. "%s", numbers[1].name)
  end
  for k, l in ipairs(#numbers > 0 and launches or {}) do
    at[k] = {}
    local o = others[k]
    if o.program ~= l.program or words(o.launch.grid) ~= words(l.launch.grid)
    then
      fail(name, "the kernels that the function launches depend on the value "
        .. "of %s", numbers[1].name)
    end
    for i, d in ipairs(l.leaves) do
      local a, b = l.launch.args[i][2], o.launch.args[i][2]
      if d.kind == "number" and a ~= b then
        for j, n in ipairs(numbers) do
          local other = with_numbers(n.set, true)
          if a == n.value and b == other
            or core.to_bits(d.dtype, n.value) == core.to_bits(d.dtype, a)
            and core.to_bits(d.dtype, other) == core.to_bits(d.dtype, b) then
            at[k][i], list[j].dtype = j, d.dtype.name
          end
        end
        if not at[k][i] then
          fail(name, "the host computes argument %s of kernel %s from a "
            .. "number of the call; a number must be passed to the kernel "
            .. "unchanged",
               l.program.info.args[i].name, l.program.info.name)
        end
      end
    end
  end
  return {list = list, at = at}
end

-- Calls f and collects the launches that it makes in a list, self[field].
local function collect(self, field, f, ...)
  local list = {}
  self[field] = list
  local out = table.pack(pcall(f, ...))
  self[field] = nil
  if not out[1] then error(out[2], 0) end
  return list, table.pack(table.unpack(out, 2, out.n))
end

-- Writes saved bytes back to tensors.
local function put_back(tensors, bytes)
  for i, t in ipairs(tensors) do put_bytes(t.buffer, t.offset, bytes[i]) end
end

-- Calls f without running the kernels that it launches. Returns its first
-- result.
local function dry(self, f, ...)
  local was = self.dry
  self.dry = true
  local ok, result = pcall(f, ...)
  self.dry = was
  if not ok then error(result, 0) end
  return result
end

-- Makes a call whose kernels do not run, and returns its launches. other: true
-- to call with other values of the numbers.
local function dry_run(self, call, other)
  return dry(self, collect, self, "replay", call, other)
end

-- Raises an error if a function's launches depend on the contents of its
-- tensors. To find out, it repeats the call with zeros in the tensors and
-- without running kernels. Launches that differ show that the function reads
-- elements on the host.
local function check_steady(self, name, tensors, launches, call)
  local bytes, zeros = bytes_of(tensors), {}
  if not bytes then return end
  for i, b in ipairs(bytes) do zeros[i] = ("\0"):rep(#b) end
  put_back(tensors, zeros)
  local ok, others = pcall(dry_run, self, call, false)
  put_back(tensors, bytes)
  local same = ok and #others == #launches
  for k, l in ipairs(launches) do
    local o = same and others[k]
    same = o and o.program == l.program
      and words(o.launch.grid) == words(l.launch.grid)
    for i in ipairs(same and l.leaves or {}) do
      local a, b = l.launch.args[i], o.launch.args[i]
      same = same and (l.program.info.args[i].pointer or a[2] == b[2])
    end
  end
  if not same then
    fail(name, "the launches depend on elements of tensors: when these are "
      .. "zeros, the kernels or their arguments differ%s", ok and "" or ": "
      .. tostring(others))
  end
end

-- Returns a function that calls f with the arguments `list`. The returned
-- function has one parameter, which selects the values of the numbers (`other`
-- of with_numbers).
function Session:caller(f, list)
  return function(other)
    local own = {}
    for i = 1, list.n do own[i] = with_numbers(list[i], other) end
    if self.any then self.any:begin() end
    return f(table.unpack(own, 1, list.n))
  end
end

-- Returns the variant of a function of tensors with static extents. If the
-- session is dry, kernels do not run.
function Session:variant_of(name, f, config)
  local moved, align = {}, align_of(name, config)
  local list, tensors, numbers = arguments_of(f, config, moved)
  local given, since = #tensors, core.buffer_origin()
  local before = not self.dry and bytes_of(tensors)
  self.since = since
  local call = self:caller(f, list)
  local launches, results = collect(self, "capture", call, false)
  self.since = nil
  if #launches == 0 then
    fail(name, "the function launched no kernel")
  end
  if not self.dry then
    check_steady(self, name, table.move(tensors, 1, given, 1, {}), launches,
                 call)
  end
  add_results(name, tensors, results, config)
  local others = #numbers > 0 and dry_run(self, call, true) or {}
  local variant = describe.variant(name, launches, {roots = tensors,
    since = since, zeroed = self.zeroed,
    numbers = find_numbers(name, numbers, launches, others)})
  variant.checks, variant.tests = {}, {}
  for i, l in ipairs(launches) do variant.checks[i] = l.check end
  if self.tests and before then
    for i = given + 1, #tensors do
      before[i] = ("\xa5"):rep(tensors[i].bytes)
    end
    variant.tests[1] = test_of(tensors, before, variant.numbers, launches)
  end
  if not self.dry then move_back(moved, align) end
  return variant
end

-- Returns the arguments and their names for one size of a configuration.
local function at_size(name, config, size)
  local list = config.arguments(size)
  if type(list) ~= "table" then
    fail(name, "arguments(%d) returned %s; a list of arguments is needed", size,
         core.show(list))
  end
  local own = {}
  for k, v in pairs(list) do own[k] = v end
  own.names, own.results, own.align = config.names, config.results,
    config.align
  return own
end

-- The largest number of sizes in a range, and of specialisations for the range.
local MOST_SIZES, MOST_VARIANTS = 65536, 128

-- Checks the range of sizes of a configuration. Returns the first size, the
-- last size and the step.
local function sizes_of(name, config)
  local sizes = config.sizes
  local from, to, step
  if type(sizes) == "table" then
    from, to, step = sizes[1], sizes[2], sizes[3] or 1
    if to == "any" and math.type(from) == "integer"
      and math.type(step) == "integer" then
      to = from + step
    end
  end
  for _, n in ipairs {from or false, to or false, step or false} do
    if math.type(n) ~= "integer" or n < 1 then from = nil end
  end
  if not (from and to and step) or to < from or (to - from) % step ~= 0
    or (to - from) // step >= MOST_SIZES then
    fail(name, "sizes = %s; {first, last, step} is needed, with at most %d "
      .. "sizes or last = \"any\"", core.show(sizes), MOST_SIZES)
  elseif type(config.arguments) ~= "function" then
    fail(name, "sizes needs arguments = function(size) return {...} end")
  end
  return from, to, step
end

-- Returns a function from a step to the CUDA C of its kernel.
function Session:source()
  return function(step) return (step.program:cuda(self.arch)) end
end

-- Adds a function for a range of sizes. Records the launches of each size
-- without running them, and also runs the sizes that are examples.
function Session:add_range(name, f, config)
  local from, to, step = sizes_of(name, config)
  local list = {}
  dry(self, function()
    for size = from, to, step do
      local v = self:variant_of(name, f, at_size(name, config, size))
      list[#list + 1] = {size, v}
    end
  end)
  local merged = range.merge(list, step, self:source())
  if not merged then
    fail(name, "no extent of an argument grows with the size")
  elseif #merged > MOST_VARIANTS then
    fail(name, "the %d sizes need %d specialisations, because the kernels "
      .. "differ; at most %d are possible: choose fewer sizes, or a larger "
      .. "step such as a tile", #list, #merged, MOST_VARIANTS)
  end
  for _, size in ipairs(config.examples or {from}) do
    if size < from or size > to or (size - from) % step ~= 0 then
      fail(name, "examples has the size %d, which is not among the sizes",
           size)
    end
    local one = self:variant_of(name, f, at_size(name, config, size))
    for _, v in ipairs(merged) do
      local s = v.size or {from = size, to = size}
      if size >= s.from and size <= s.to then
        table.move(one.checks, 1, #one.checks, #v.checks + 1, v.checks)
        v.tests[#v.tests + 1] = one.tests[1]
        break
      end
    end
  end
  for _, v in ipairs(merged) do self:keep(name, v, false) end
end

-- Calls a function for a size without running kernels; self.any records its
-- launches.
function Session:watch(name, f, config, size)
  local list = arguments_of(f, at_size(name, config, size), {})
  local others = collect(self, "capture", self:caller(f, list), false)
  if others[1] then
    fail(name, "the function launches kernel %s itself, but only kernels of "
      .. "cute.ops can be traced for any size%s", others[1].program.info.name,
         any.REMEDY)
  end
  self.any:finish(size)
end

-- Records the launches of a function for any size: traces its kernels with
-- extents that are arguments of each launch. Returns the recorded variant.
function Session:any_variant(name, f, config, from, step)
  local sizes = any.sizes(from, step)
  self.any = any.new(name, from, step)
  local main = (config.examples or {})[1] or any.main(sizes)
  local list = {}
  dry(self, function()
    self:watch(name, f, config, main)
    for _, size in ipairs(sizes) do
      if size ~= main then self:watch(name, f, config, size) end
    end
    self.any:fit()
  end)
  local function at(size)
    local v = dry(self, self.variant_of, self, name, f,
                  at_size(name, config, size))
    self.any:grids(v)
    return {size, v}
  end
  for i, size in ipairs(sizes) do list[i] = at(size) end
  local v = any.merged(name, list, from, step, at, self:source())
  local last = any.last(v, from, step)
  v.size.from, v.size.least, v.size.to, v.size.most = from, from, last, last
  for _, t in ipairs(v.tensors) do t.wide = false end
  for _, size in ipairs(config.examples or {main}) do
    if size < from or size > last or (size - from) % step ~= 0 then
      fail(name, "examples has the size %d, which is not among the sizes %d "
        .. "to %d", size, from, last)
    end
    local one = self:variant_of(name, f, at_size(name, config, size))
    if size > 1 and not range.agrees(v, one, size) then
      fail(name, "the launches for size %d do not follow the formulas found "
        .. "from the sizes up to %d%s", size, sizes[#sizes], any.REMEDY)
    end
    table.move(one.checks, 1, #one.checks, #v.checks + 1, v.checks)
    v.tests[#v.tests + 1] = one.tests[1]
  end
  return v
end

-- Adds a function for any size of its arguments.
function Session:add_any(name, f, config)
  local from, _, step = sizes_of(name, config)
  local restore = any.patch(self)
  local ok, v = pcall(self.any_variant, self, name, f, config, from, step)
  self.any = nil
  restore()
  if not ok then error(v, 0) end
  self:keep(name, v, false)
end

-- Adds a function whose arguments are tensors.
function Session:add_function(name, f, config)
  if type(config.sizes) == "table" and config.sizes[2] == "any" then
    return self:add_any(name, f, config)
  elseif config.sizes then return self:add_range(name, f, config) end
  self:keep(name, self:variant_of(name, f, config), false)
end

---------------------------------------------------------------------------
-- Kernels
---------------------------------------------------------------------------

-- Sets the names of a variant's tensors to the names in a configuration.
local function name_tensors(variant, config)
  for i, t in ipairs(variant.tensors) do
    t.name = (config.names or {})[i] or t.name
  end
end

-- Gives numbers among a variant's arguments the names that the script passed to
-- cute.bundle.number.
local function name_numbers(variant, config)
  for _, n in ipairs(variant.numbers) do
    local given = config[n.argument]
    if getmetatable(given) == state.Number then n.name = given.name end
  end
end

-- Splits a configuration into the kernel's arguments and launch options.
local function split(config)
  local args, opts = {n = #config}, {}
  for k, v in pairs(config) do
    if math.type(k) then args[k] = with_numbers(v)
    elseif kernel.OPTIONS[k] then opts[k] = v end
  end
  return args, opts
end

-- Calls a grid function with expressions in place of the extents. Returns the
-- grid as expressions, and a list of their leaves: {argument, mode, C code}.
local function grid_function(f, roots, numbers, count)
  local by_argument = {}
  for _, r in ipairs(roots) do by_argument[r.argument] = r end
  local list, leaves = {}, {}
  for i = 1, count do
    local r = by_argument[i]
    if r then
      list[i] = {}
      for mode in ipairs(r.shape) do
        local text
        for at, x in ipairs(roots) do
          if x == r then
            text = ("t[%d]->extent[%d]"):format(at - 1, mode - 1)
          end
        end
        list[i][mode] = expression.leaf(text)
        leaves[#leaves + 1] = {i, mode, text}
      end
    end
    for at, n in ipairs(numbers) do
      if n.argument == i and not r then
        local whole = n.dtype == "i32" and "(int64_t)(int32_t)x[%d]"
          or "(int64_t)x[%d]"
        list[i] = expression.leaf(whole:format(at - 1))
        leaves[#leaves + 1] = {i, nil, list[i].a}
      end
    end
  end
  local grid = f(table.unpack(list, 1, count))
  if type(grid) ~= "table" or getmetatable(grid) then grid = {grid} end
  for i = 1, 3 do if grid[i] == nil then grid[i] = 1 end end
  return grid, leaves
end

-- Test values for expressions: small integers, powers of two and their
-- neighbours. check_grid compares the expressions with the function that made
-- them.
local TRIED = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65,
  100, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024, 1025,
  4095, 4096, 4097, 65535, 65536, 1 << 20}

-- Raises an error if a grid function, called with integers, returns a grid that
-- differs from the values of its expressions. Tries many integers.
local function check_grid(name, f, grid, leaves, count)
  local seed = 1
  for round = 1, 400 do
    local list, values = {}, {}
    for at, l in ipairs(leaves) do
      seed = (seed * 6364136223846793005 + 1442695040888963407)
      local pick = (seed >> 33) % #TRIED + 1
      if round <= #TRIED and at == 1 then pick = round end
      if round > 300 then pick = (round + at) % #TRIED + 1 end
      local x = TRIED[pick]
      values[l[3]] = x
      if l[2] then
        list[l[1]] = list[l[1]] or {}
        list[l[1]][l[2]] = x
      else
        list[l[1]] = x
      end
    end
    local out = f(table.unpack(list, 1, count))
    if type(out) ~= "table" then out = {out} end
    for i = 1, 3 do
      local want = out[i] == nil and 1 or out[i]
      if want ~= expression.value(grid[i], values) then
        fail(name, "the grid's function branches on its arguments: for some "
          .. "extents the function returns %s, but the expression traced from "
          .. "it yields %s",
             core.show(want), expression.value(grid[i], values))
      end
    end
  end
end

-- Runs a symbolic launch for the arguments of an example.
function Session:example(name, p, variant, grid, leaves, example)
  local roots, values, numbers = {}, {}, {}
  local by_argument = {}
  for i = 1, #example do
    local v = example[i]
    if core.typename(v) == "tensor" then by_argument[i] = root_of(v) end
  end
  for _, l in ipairs(leaves) do
    values[l[3]] = l[2] and by_argument[l[1]].shape[l[2]] or example[l[1]]
  end
  for i, t in ipairs(variant.roots) do
    roots[i] = by_argument[t.argument]
    if not roots[i] then
      fail(name, "an example has no tensor for argument %d", t.argument)
    end
    roots[i].written = t.written
  end
  for i, n in ipairs(variant.numbers) do
    numbers[i] = {value = example[n.argument]}
  end
  local own = {}
  for i = 1, 3 do own[i] = expression.value(grid[i], values) end
  local before = bytes_of(roots)
  local list = table.pack(table.unpack(example, 1, #example))
  list[list.n + 1] = {grid = own}
  local launches = collect(self, "capture", p, table.unpack(list, 1,
    list.n + 1))
  for _, l in ipairs(launches) do table.insert(variant.checks, l.check) end
  if self.tests then
    table.insert(variant.tests, test_of(roots, before, numbers, launches))
  end
end

-- Adds a kernel with symbolic arguments.
function Session:add_symbolic(name, k, args, opts, config)
  local grid_of = config.grid
  if type(grid_of) ~= "function" then
    fail(name, "a kernel with symbolic arguments needs a function that returns "
      .. "the grid: grid = function(X, ...) return {...} end")
  end
  local own = {}
  for o, v in pairs(opts) do if o ~= "grid" then own[o] = v end end
  own.device = "sim:" .. self.arch
  local p, why = k(table.unpack(args, 1, args.n)):compile(own)
  if not p then error(why, 0) end
  local grid, leaves
  local variant = describe.symbolic(name, p, function(roots, numbers)
    grid, leaves = grid_function(grid_of, roots, numbers, args.n)
    check_grid(name, grid_of, grid, leaves, args.n)
    return {expression.c(grid[1]), expression.c(grid[2]),
            expression.c(grid[3])}
  end)
  name_tensors(variant, config)
  name_numbers(variant, config)
  variant.checks, variant.tests, variant.roots = {}, {}, {}
  local leaf = core.kind_leaves(p.kind)
  for i, d in ipairs(leaf) do
    if d.kind == "tensor" then
      table.insert(variant.roots, {argument = d.argument,
                                   written = p.program.info.args[i].written})
    end
  end
  for _, example in ipairs(config.examples or {}) do
    self:example(name, p, variant, grid, leaves, example)
  end
  self:keep(name, variant, false)
end

-- Adds a kernel with tensors of static extents.
function Session:add_kernel(name, k, args, opts, config)
  local moved, align = {}, align_of(name, config)
  local launches, before = {}, {}
  for i, v in ipairs(align and args or {}) do
    if core.typename(v) == "tensor" then
      args[i] = moved_tensor(v, align, moved)
    end
  end
  -- The launch is described before it runs, because the test needs the contents
  -- that the tensors have before the launch.
  local variant, roots
  self.capture = setmetatable({}, {__newindex = function(_, _, l)
    variant, roots = describe.variant(name, {l}, {})
    before = bytes_of(roots)
    launches[1] = l
  end})
  local ok, why = pcall(function()
    k(table.unpack(args, 1, args.n)):launch(opts)
  end)
  self.capture = nil
  if not ok then error(why, 0) end
  if not variant then fail(name, "the launch has no blocks") end
  name_tensors(variant, config)
  name_numbers(variant, config)
  variant.checks = {launches[1].check}
  variant.tests = {self.tests and test_of(roots, before, variant.numbers,
    launches)}
  move_back(moved, align)
  self:keep(name, variant, false)
end

--- Records a function that the script passed to cute.bundle.add.
function Session:add(name, f, config)
  if self.capture or self.replay then
    fail(name, "the function calls cute.bundle.add while it is being recorded "
      .. "by cute.bundle.add")
  end
  if type(f) == "function" then return self:add_function(name, f, config) end
  local args, opts = split(config)
  local kind = core.kind({n = args.n, kernel = f,
                          table.unpack(args, 1, args.n)}, 0)
  if not kind.symbolic then
    return self:add_kernel(name, f, args, opts, config)
  elseif config.align then
    fail(name, "the option align cannot be combined with symbolic tensors, "
      .. "which have their own alignment")
  end
  self:add_symbolic(name, f, args, opts, config)
end

---------------------------------------------------------------------------
-- Sessions
---------------------------------------------------------------------------

-- Records in session.zeroed which buffers are counters of cute.ops: they are 0
-- between launches. Returns a function that ends the recording.
local function watch_counts(session)
  local calls = require "cute.ops.calls"
  local counts = calls.counts
  calls.counts = function(...)
    local t, alone = counts(...)
    session.zeroed[core.param_memory(t)] = true
    return t, alone
  end
  return function() calls.counts = counts end
end

-- Returns how many blocks of a step run at once on the simulated GPU. Returns 0
-- for kernels whose blocks cannot wait for each other: they have no load
-- ld.acquire, ld.relaxed or ld.cv from global memory.
local function together(step, text, sm)
  if not text:find "ld%.acquire[%w.]*%.global"
    and not text:find "ld%.relaxed[%w.]*%.global"
    and not text:find "ld%.global%.cv" then
    return 0
  end
  local b, c = step.block, step.cluster
  local size = c[1] * c[2] * c[3]
  local found = targets.occupancy(sm, {threads = b[1] * b[2] * b[3],
                                       shared = step.smem})
  return targets.clusters(targets.sms(sm), size, found.blocks) * size
end

-- Returns the compiled form of a step's program. known[CUDA C text] has the
-- forms that were compiled before.
local function compiled(step, arch, known)
  local program = step.program
  local text, _, symbol, options = program:cuda(arch)
  step.together = together(step, text, devices.sm(arch))
  local key = table.concat(options, " ") .. text
  if known[key] then return known[key] end
  local out, why = program:compile(arch)
  if not out then error(why, 0) end
  known[key] = {symbol = symbol, cubin = out.cubin, ptx = out.ptx,
                nvrtc = out.nvrtc, source = text,
                registers = out.resources.registers}
  return known[key]
end

--- Runs f, which runs the script, and returns the functions that it recorded.
---@param arch string
---@param o table {seconds = limit of each check, or nil for no checks; tests =
-- whether to keep data for tests}
---@param f fun()
---@return table[] functions
function record.run(arch, o, f)
  local s = setmetatable({arch = arch, seconds = o.seconds, tests = o.tests,
                          functions = {}, by_name = {}, zeroed = {}}, Session)
  devices.simulates, devices.ARCH = true, arch
  kernel.runner = {run = function(program, launch)
    return s:run(program, launch)
  end}
  state.session = s
  local restore = watch_counts(s)
  local result = f()
  restore()
  state.session, kernel.runner = false, nil
  if result ~= 0 then return nil, result end
  local known = {}
  for _, fn in ipairs(s.functions) do
    for _, v in ipairs(fn.variants) do
      v.roots, v.program = nil, nil
      for _, step in ipairs(v.steps) do
        if step.program then
          step.code = compiled(step, arch, known)
          step.program = nil
        end
      end
    end
  end
  return s.functions
end

return record
-- SPDX-License-Identifier: MIT
