--- The common code of operations that process each row of a tensor separately:
-- norms, softmax, cross entropy, the k largest elements, rotations.
--
-- Operands (...,N) become matrices (M,N) with contiguous, equally spaced rows.
-- If an operand has another layout, it is first copied to such a matrix.
local calls = require "cute.ops.calls"
local capture = require "cute.ops.capture"
local core = require "cute.core"
local cute = require "cute"
local elementwise = require "cute.ops.elementwise"
local modes = require "cute.ops.modes"
local operand = require "cute.ops.operand"
local tensor_op = require "cute.ops.tensor_op"

local rowwise = {}

local FLOATS = {bf16 = true, f16 = true, f32 = true}

--- Merges the first n modes of layout `l` into one mode, and returns its extent
-- and stride. Returns nil if the elements of these modes are not equally
-- spaced.
function rowwise.leading(l, n)
  local shape, stride = {}, {}
  for i = n, 1, -1 do
    shape[#shape + 1], stride[#stride + 1] = l.shape[i], l.stride[i]
  end
  if #shape == 0 then return 1, 0 end
  local all = cute.coalesce(cute.make_layout(shape, stride))
  if cute.rank(all) > 1 then return nil end
  return all.shape, all.stride
end

-- Returns the extent and the stride of the last mode of a layout. They may be
-- tuples.
local function last(l)
  local shape, stride, rank = l.shape, l.stride, cute.rank(l)
  if type(shape) ~= "table" then return shape, stride end
  return shape[rank], stride[rank]
end

--- Returns a tensor (...,N) as a matrix (M,N) whose rows are contiguous.
-- Returns nil if the tensor's layout does not allow it.
---@return any?
function rowwise.matrix(t)
  local n, step = last(t.layout)
  if type(n) == "table" or n ~= 1 and step ~= 1 then return nil end
  local m, apart = rowwise.leading(t.layout, cute.rank(t) - 1)
  if not m or type(apart) == "table" or m > 1 and apart < 0 then return nil end
  return cute.make_tensor(t.iterator, cute.make_layout({m, n},
    {m > 1 and apart or n, 1}))
end

--- Reports whether no two elements of t share an address.
function rowwise.injective(t)
  local loops = modes.loops({{name = "out", l = t.layout}},
                            modes.extents(t.layout))
  modes.sort(loops, 1, 1)
  return modes.injective(loops, 1)
end

--- Reports whether t can be viewed as a matrix of contiguous rows that share no
-- elements.
function rowwise.apart(t)
  local a = rowwise.matrix(t)
  return a and (a.shape[1] == 1 or a.stride[1] >= a.shape[2])
end

--- Returns four values: a tensor's extents; the extents of all modes but the
-- last one ({1} if there are none); the number of rows; the length of a row.
---@return integer[] shape
---@return integer[] rows
---@return integer m
---@return integer n
function rowwise.extents(t)
  local shape = modes.extents(t.layout)
  local rows = table.move(shape, 1, #shape - 1, 1, {})
  if #rows == 0 then rows[1] = 1 end
  return shape, rows, cute.product(rows), shape[#shape]
end

-- Reports whether t is compact: its elements are contiguous in memory in
-- row-major order.
local function dense(t)
  local a = rowwise.matrix(t)
  return a and (a.shape[1] == 1 or a.stride[1] == a.shape[2])
end

--- Returns the step (a launch of a plan, see cute.ops.tensor_op) that runs
-- kernel k.
---@param k table {kernel, block, cluster?}
---@param grid integer[]
---@param arguments fun(call: table, out: table, work: any, turns: any): table
function rowwise.step(k, grid, arguments)
  return {kernel = k.kernel, grid = grid, block = k.block, ready = {},
          cluster = k.cluster, arguments = arguments}
end

-- A block of a cluster gets at least this many bytes of a row.
local EACH = 8 << 10

--- Returns the number of blocks of a cluster that share a row (`cluster` of
-- kernels/rows.lua), so that m rows keep the multiprocessors busy. The number
-- is 1 if there are many rows, if rows are short, or if the device has no
-- clusters.
---@param m integer
---@param n integer
---@param dtype any
---@return integer
function rowwise.cluster_for(device, m, n, dtype)
  if not core.has(device.sm, "a cluster of blocks") then return 1 end
  local sms, blocks = device.info and device.info.sms or 132, 1
  while blocks < 8 and 2 * blocks * m <= sms
    and n * dtype.bits // 8 >= 2 * blocks * EACH do blocks = 2 * blocks end
  return blocks
end

--- Returns a tensor t with contiguous elements as a vector. Returns nil for
-- nil.
function rowwise.vector(t)
  return t and cute.make_tensor(t.iterator, cute.make_layout {cute.size(t)})
end

-- Returns the number of elements of the widest vector with which every row of
-- these matrices can be accessed. An element has `bits` bits.
local function width_of(list, n, bits)
  local w = core.gcd(128 // bits, n)
  for _, t in ipairs(list) do
    local bytes = t.element_type.bits // 8
    w = core.gcd(w, math.max(1, t.alignment // bytes))
    if t.shape[1] > 1 and t.stride[1] > 0 then w = core.gcd(w, t.stride[1]) end
  end
  return w
end

--- Returns the options {n, dtype, width} of a row kernel (kernels/rows.lua).
---@param tensors any[] the operands and given results of the call, with nil for
-- absent ones
---@param count integer length of the list `tensors`
---@param types any[] the element types of the new results
---@return table
function rowwise.shape_of(tensors, count, types)
  local list, dtype = {}, nil
  for i = 1, count do
    local t = tensors[i]
    if t ~= nil then
      list[#list + 1] = rowwise.matrix(t)
      types[#types + 1] = operand.plain(t.element_type)
    end
  end
  for _, t in ipairs(types) do
    if not dtype or t.bits > dtype.bits then dtype = t end
  end
  local n = list[1].shape[2]
  return {n = n, dtype = dtype, width = width_of(list, n, dtype.bits)}
end

-- The bytes of shared memory that a row kernel may need in addition to its
-- rows.
local SMALL = 1 << 10

--- Returns the options of shape_of, and the shared memory available on a
-- device.
---@return table
function rowwise.options_of(device, tensors, count, types)
  local o = rowwise.shape_of(tensors, count, types)
  o.smem = core.smem_budget(device.sm) - SMALL
  return o
end

---------------------------------------------------------------------------
-- Operations
---------------------------------------------------------------------------

-- Methods of the object `call` that the function `plan` of an operation
-- receives.
local Call = {}
Call.__index = Call

--- Makes a plan (see cute.ops.tensor_op) that has no steps (launches) yet.
-- `results` is a list of {shape =, dtype =}.
---@param count integer number of the call's operands, some nil
function Call:start(count, results)
  local tensors, n = {}, 0
  for i = 1, count do
    if self.operands[i] ~= nil then
      n = n + 1
      tensors[n] = self.operands[i]
    end
  end
  tensors[n + 1] = self.out[1]
  local p = {steps = {}, results = results}
  p.device, p.place, p.pdl = tensor_op.device(tensors, self.o)
  return p
end

--- Returns the type of the first result: the type of the tensor `out`, the
-- option `dtype` or, without both, the type of x.
function Call:dtype(what, x)
  return tensor_op.dtype(what, self.o)
    or self.out[1] and core.typename(self.out[1]) == "tensor"
    and self.out[1].element_type or operand.plain(x.element_type)
end

--- Raises an error about the arguments of this call.
function Call:fail(text, ...) self.raise(text, ...) end

--- Raises an error unless t has elements of a type that row kernels process.
function Call:floats(name, t)
  if not FLOATS[operand.plain(t.element_type).name] then
    self:fail("%s has elements of type %s; bf16, f16 or f32 is needed", name,
              t.element_type)
  end
end

--- Raises an error unless t has the extents of x.
function Call:same(name, t, as, x)
  if not modes.has(t.layout, modes.extents(x.layout)) then
    self:fail("%s is %s, but %s is %s; equal shapes are needed", name, t.layout,
              as, x.layout)
  end
end

--- Raises an error unless t is a vector of n elements.
function Call:vector(name, t, n)
  if cute.rank(t) ~= 1 or cute.size(t) ~= n then
    self:fail("%s is %s; a vector of %d elements is needed", name, t.layout, n)
  end
end

-- Returns operand t itself if fits(t), else a copy in a new contiguous tensor.
-- The second result is true if the tensor is new. If `idle` is true, nothing is
-- copied and the new tensor stays undefined.
local function packed(t, fits, o, idle)
  if fits(t) then return t, false end
  local rows = calls.empty(modes.extents(t.layout), t.element_type, t.device)
  if idle then return rows, true end
  return elementwise.copy(t, rows, {device = o.device, stream = o.stream}), true
end

-- Checks the operands of a call. If the kernel does not accept the layout of an
-- operand, copies the operand, and keeps the original in call.copied by its
-- name. Returns true if an operand was copied. If `idle` is true, allocates the
-- copies but launches no kernel.
local function prepare(call, names, spec, idle)
  local copied = false
  for i, name in ipairs(names) do
    local t = call.operands[i]
    if t ~= nil then
      tensor_op.check(call.raise, name, t, spec.narrow)
      if cute.size(t) > 0 then
        local anew
        local flat = (" " .. (spec.flat or "") .. " "):find(" " .. name .. " ",
                                                            1, true)
        call.operands[i], anew = packed(t, flat and dense or spec.fits
          or rowwise.matrix, call.o, idle)
        if anew then call.copied[name], copied = t, true end
      end
    end
    call[name] = call.operands[i]
  end
  return copied
end

-- Checks the tensors that a call gives for the results.
local function check_outputs(call, plan, spec)
  for i in pairs(call.out) do
    if i > #plan.results then
      call:fail("out %d is given, but there %s", i, #plan.results == 1
        and "is only one result" or ("are %d results"):format(#plan.results))
    end
  end
  for i, r in ipairs(plan.results) do
    local t, name = call.out[i], i == 1 and "out" or "out " .. i
    if t then
      tensor_op.check(call.raise, name, t, spec.narrow)
      if not modes.has(t.layout, r.shape) then
        call:fail("%s is %s, but the result has extents (%s)", name, t.layout,
                  table.concat(r.shape, ","))
      elseif t.element_type ~= r.dtype then
        call:fail("%s has elements of type %s, but the result has %s", name,
                  t.element_type, r.dtype)
      elseif cute.size(t) > 0 and not (spec.apart or rowwise.apart)(t) then
        call:fail("%s is %s; contiguous, evenly spaced rows that do not "
          .. "overlap are needed", name, t.layout)
      end
    end
  end
end

-- MOST_KEYS limits the number of nodes of the tree in keys(), where a path of
-- option values leads to a text. MISSING represents an absent option in the
-- tree. TEXT is the key under which a node holds its text.
local MOST_KEYS, MISSING, TEXT = 4096, {}, {}

-- Makes a function that returns the values of the options `scalars` as a text.
-- Calls with the same text can use the same plan. It takes microseconds to make
-- a text, so a tree with a level for each option caches the texts.
local function keys(scalars)
  local root, count, n = {}, 0, #scalars
  local function word(v)
    return type(v) == "table" and ("{%s,%s}"):format(v[1], v[2]) or tostring(v)
  end
  local function text(o)
    local words = {}
    for i, name in ipairs(scalars) do words[i] = word(o[name]) end
    return table.concat(words, " ")
  end
  return function(o)
    local node = root
    for i = 1, n do
      local v = o[scalars[i]]
      if v == nil then
        v = MISSING
      elseif type(v) == "table" or math.type(v) == "float" then
        -- Keys 1.0 and 1 of a Lua table are equal, so a float is replaced by
        -- its text.
        v = word(v)
      end
      local next_ = node[v]
      if not next_ then
        next_, count = {}, count + 1
        node[v] = next_
      end
      node = next_
    end
    if not node[TEXT] then
      node[TEXT] = text(o)
      if count > MOST_KEYS then root, count = {}, 0 end
    end
    return node[TEXT]
  end
end

-- Returns the operands of a call as a list, and its options: the last argument
-- if it is a table of options, else {}.
local function split(...)
  local list, n = {...}, select("#", ...)
  while n > 0 and list[n] == nil do n = n - 1 end
  if n == 0 or not tensor_op.is_options(list[n]) then return list, {} end
  local o = list[n]
  list[n] = nil
  return list, o
end

-- Makes the launches of a plan programmatic dependent launches
-- (cute.ops.calls): their kernels begin with a wait for the launches before
-- them. A kernel lets the next launch begin only after this wait. If the next
-- launch began earlier, many of its blocks would share the first
-- multiprocessors that become free, which cost a fifth of the time of a
-- decoder's step.
local function depend(plan)
  for _, step in ipairs(plan.pdl and plan.steps or {}) do
    local k = step.kernel
    if not step.pdl then
      step.pdl = true
      step.kernel = cute.kernel(k.name, {block = k.block, fmad = k.fmad,
        fastmath = k.fastmath, min_blocks = k.min_blocks}, function(...)
          cute.arch.griddepcontrol_wait()
          cute.arch.griddepcontrol_launch_dependents()
          k.func(...)
        end)
    end
  end
end

--- Makes an operation from its description, a table with these fields:
-- names: names of the operands, in order. An operand whose name ends in "?" may
--   be absent.
-- tensors: options that are tensors, appended to the operands.
-- flat: names of operands whose elements must be contiguous, in one string.
-- fits(t): reports whether a kernel accepts the layout of an operand that is
--   not in `flat` (if absent: a matrix of contiguous rows). Others are copied.
-- apart(t): reports whether a kernel accepts the layout of a result (if absent:
--   equally spaced rows).
-- narrow: whether elements may have less than 8 bits.
-- options: types of further options, by name.
-- traced(o, list): returns the function that kernels trace, or nil. `o` has the
--   options, `list` the operands, which are not checked yet. call.captured then
--   has the function's captures (cute.ops.capture), and call.at is its position
--   among the arguments that identify a call (cute.ops.calls).
-- captured: types of the options that only the traced function depends on, by
--   name.
-- dependent: false to disable programmatic dependent launches, except those
--   that the plan requests.
-- plan(call): returns a plan of cute.ops.tensor_op, made by call:start;
--   call[name] is an operand and call.o has the options.
---@param what string the name of the operation, such as "ops.softmax"
---@param spec table
---@return function
---@return fun(...): table, table # returns the plan of a call, and the call,
-- without launching
function rowwise.operation(what, spec)
  local raise, known = tensor_op.failing(what), calls.new()
  local names, optional = {}, {}
  for i, name in ipairs(spec.names) do
    names[i] = name:gsub("%?$", "")
    optional[i] = name:find "%?$" ~= nil
  end
  local given = #names
  local types, scalars = {}, {}
  for name, type_name in pairs(spec.options or {}) do
    types[name] = type_name
    scalars[#scalars + 1] = name
  end
  table.sort(scalars)
  for name, type_name in pairs(spec.captured or {}) do
    types[name] = type_name
  end
  for _, name in ipairs(spec.tensors or {}) do
    names[#names + 1], types[name] = name, "tensor"
  end

  local at, key_of = #names, keys(scalars)
  local count = at + 6 + (spec.traced and 1 or 0)
  local function arguments(list, o, f)
    local stream = o.stream
    -- The constructor lists all slots, so that Lua allocates the array once.
    local all = {list[1], list[2], list[3], nil, nil, nil, nil, nil, nil, nil,
                 nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}
    for i = 4, given do all[i] = list[i] end
    for i = given + 1, at do all[i] = o[names[i]] end
    all[at + 1], all[at + 2] = key_of(o), o.out
    all[at + 3], all[at + 4] = o.dtype, o.device
    all[at + 5] = o.arch
    all[at + 6] = type(stream) == "table" and tostring(stream) or stream
    all[at + 7] = f
    return table.unpack(all, 1, count)
  end

  -- Checks the arguments of a call, and returns an object with the call's
  -- operands.
  local function begin(list, o, f)
    tensor_op.options(what, o, types)
    for i = 1, given do
      if list[i] == nil and not optional[i] then
        raise("%s is missing; a tensor is needed", names[i])
      end
    end
    local call = setmetatable({o = o, out = tensor_op.outputs(o), raise = raise,
      operands = {}, copied = {}, captured = f and capture.of(f),
      at = #names + 7}, Call)
    for i = 1, given do call.operands[i] = list[i] end
    for i = given + 1, #names do call.operands[i] = o[names[i]] end
    return call
  end

  local function planned(call)
    local plan = spec.plan(call)
    check_outputs(call, plan, spec)
    if spec.dependent ~= false then depend(plan) end
    return plan
  end

  local function run(list, o, f, plan)
    local call = begin(list, o, f)
    local copied = prepare(call, names, spec)
    if spec.check then spec.check(call) end
    if not plan or copied then
      plan = planned(call)
      plan.anew = plan.anew or copied
      if not plan.anew then known:add(plan, arguments(list, o, f)) end
    end
    -- If a launch fails, the counters that blocks share may not be 0 and are
    -- discarded.
    local _ <close> = plan.counts and setmetatable({}, {__close = function(_, e)
      if e ~= nil then calls.failed(plan.place) end
    end}) or nil
    return tensor_op.run(plan, call, function(ready)
      known:ready(ready, arguments(list, o, f))
    end)
  end

  local function finish(list, o, f, launched, ...)
    if not launched then return run(list, o, f, ...) end
    return calls.results(o.out, ...)
  end

  return function(...)
    local list, o = split(...)
    local f = spec.traced and spec.traced(o, list)
    return finish(list, o, f, known(arguments(list, o, f)))
  end, function(...)
    local list, o = split(...)
    local call = begin(list, o, spec.traced and spec.traced(o, list))
    prepare(call, names, spec, true)
    return planned(call), call
  end
end

return rowwise
-- SPDX-License-Identifier: MIT
