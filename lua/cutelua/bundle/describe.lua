--- Describes recorded launches as plain tables, from which C code is generated.
--
-- A recorded launch has these fields:
-- program    the traced kernel
-- launch     the argument of core.sim_run
-- leaves     the result of core.kind_leaves
-- origin[i]  the buffer of value i: {serial = its number, defined = whether the
--            host wrote it, bytes = its size, zero = whether the call made it
--            and it holds zeros}
--
-- A root is a tensor of the C function: {name, buffer, offset, bytes, dtype,
-- shape, stride}. The result is a variant. It has the tensors with everything
-- that the kernels assume about them, the numbers, and the steps; runtime.lua
-- explains the fields of each.
local core = require "cute.core"

local describe = {}

local RANK = 8

function describe.fail(name, text, ...)
  core.fail("bad-argument", ("bundle: %s: %s"):format(name,
    text:format(...)))
end
local fail = describe.fail

--- Returns extents and strides of all leaves of a tensor's layout. A composed
-- layout has no strides; it counts as one mode of all the tensor's bytes.
---@return integer[] shape
---@return integer[] stride
function describe.modes(t, bytes)
  if t.layout.is_composed then
    return {bytes * 8 // t.element_type.bits}, {1}
  end
  local shape, stride = {}, {}
  for i, l in ipairs(core.tma_leaves(t)) do
    shape[i], stride[i] = l.extent, l.stride
  end
  return shape, stride
end

-- Returns the parameters of a tensor map, except for its address.
local function map_of(atom, bits)
  local words = core.tma_words(atom, 0)
  local m = core.decode_tensor_map(string.pack("<" .. ("i8"):rep(16),
    table.unpack(words)))
  m.bits, m.mode = bits, {}
  m.dtype = nil
  for i = 1, 5 do m.mode[i] = -1 end
  return m
end

-- Returns the root (a tensor of the C function) that contains byte `at` of a
-- buffer. A root that begins at this byte is preferred.
local function root_of(roots, buffer, at)
  local found
  for i, r in ipairs(roots) do
    if r.buffer == buffer and at >= r.offset and at < r.offset + r.bytes then
      if at == r.offset then return i end
      found = found or i
    end
  end
  return found
end

-- Returns the roots (tensors of the C function) of launches outside of
-- cute.bundle.add. Each address at which an argument begins becomes a root.
local function own_roots(launches)
  local roots = {}
  for _, l in ipairs(launches) do
    for i, d in ipairs(l.leaves) do
      local v, a = l.launch.args[i], l.program.info.args[i]
      if a.pointer then
        local known
        for _, r in ipairs(roots) do
          known = known or r.buffer == v[1] and r.offset == v[2] and r
        end
        local shape, stride = d.shape, d.stride
        if d.kind == "map" then
          shape, stride = describe.modes(core.tma_tensor(v.tma), v[3])
        elseif not shape or d.shape_div then
          shape, stride = nil, nil
        end
        if known then known.bytes = math.max(known.bytes, v[3])
        else
          roots[#roots + 1] = {name = a.name, buffer = v[1], offset = v[2],
            bytes = v[3], dtype = a.dtype, shape = shape, stride = stride,
            leaf = d, launch = l, at = i}
        end
      end
    end
  end
  for _, r in ipairs(roots) do
    local d, args = r.leaf, r.launch.launch.args
    if d.shape_div and not r.shape then
      r.shape = table.move(d.shape, 1, #d.shape, 1, {})
      r.stride = table.move(d.stride, 1, #d.stride, 1, {})
      for i, e in ipairs(r.launch.leaves) do
        if e.of == r.at then
          (e.kind == "extent" and r.shape or r.stride)[e.mode] = args[i][2]
        end
      end
    elseif not r.shape then
      r.shape, r.stride = {r.bytes * 8 // r.dtype.bits}, {1}
    end
  end
  return roots
end

-- Returns the bits of number x of type dtype, as the driver gets them.
local function bits_of(dtype, x)
  if dtype.is_integer then return dtype.bits == 64 and x or x & 0xffffffff end
  return core.to_bits(dtype, x)
end

local ALIGNED = 256

-- State while a variant is built: its steps, and the memory that its launches
-- share.
local Work = {}
Work.__index = Work

-- Returns the index of the workspace region that replaces the buffer of value i
-- of launch l. Only buffers that are not arguments of the C function have one.
function Work:region(name, l, i)
  local v = l.launch.args[i]
  local buffer = v[1]
  local at = self.at[buffer]
  if at then return at end
  local origin, own = l.origin[i], self.zeroed[buffer]
  if not own and origin.serial <= self.since then
    fail(name, "kernel %s uses memory that is not an argument (%s): pass the "
      .. "tensor to the function", l.program.info.name,
         l.program.info.args[i].name)
  end
  table.insert(self.regions, origin.bytes)
  at = #self.regions
  self.at[buffer] = at
  if origin.defined then
    if not origin.zero then
      fail(name, "kernel %s reads memory that the host wrote during the call "
        .. "(%s); only zeros are possible: pass the tensor to the function",
           l.program.info.name, l.program.info.args[i].name)
    end
    table.insert(self.steps, {kernel = -1, region = at, at = v[2], n = v[3]})
  end
  return at
end

-- Returns the description of value i of launch l, if that value is an address
-- or a tensor map.
local function memory_value(name, roots, work, l, i)
  local v, a = l.launch.args[i], l.program.info.args[i]
  local root = root_of(roots, v[1], v[2])
  local value = {kind = root and "POINTER" or "WORK", of = 0, mode = 0, map = 0}
  if root then
    local r = roots[root]
    value.of, value.n = root - 1, v[2] - r.offset
    r.read, r.written = r.read or a.read or a.shared,
      r.written or a.written
    local align = v.tma and 16 or math.max(a.align, 1)
    r.align = math.max(r.align or 1, align)
  else
    value.region, value.n = work:region(name, l, i), v[2]
  end
  if v.tma then
    value.kind = root and "MAP" or "WORK_MAP"
    value.map = map_of(v.tma, a.dtype.bits)
  end
  return value
end

local function step_of(l, values)
  local launch, info = l.launch, l.program.info
  return {program = l.program, name = info.name, smem = info.smem,
          pdl = launch.pdl or nil, cooperative = launch.cooperative or nil,
          grid = table.move(launch.grid, 1, 3, 1, {}),
          block = table.move(launch.block, 1, 3, 1, {}),
          cluster = table.move(l.program.cluster, 1, 3, 1, {}),
          values = values}
end

-- Returns a list of the numbers that the C function takes besides its tensors.
-- This is `given.list` or, without `given`, all numbers that the launches pass.
-- Also returns a function number_of(launch, value): it returns the index of a
-- launch's value in the list, or nil if the list does not contain it.
local function numbers_of(launches, given)
  if given then
    return given.list, function(k, i)
      return given.at[k] and given.at[k][i]
    end
  end
  local list, at = {}, {}
  for k, l in ipairs(launches) do
    at[k] = {}
    for i, d in ipairs(l.leaves) do
      if d.kind == "number" then
        local a = l.program.info.args[i]
        list[#list + 1] = {name = a.name, dtype = a.dtype.name,
                           argument = d.argument,
                           value = l.launch.args[i][2]}
        at[k][i] = #list
      end
    end
  end
  return list, function(k, i) return at[k][i] end
end

-- Raises an error if a root has more modes, or other modes, than a tensor
-- descriptor of the bundle can have.
local function check_root(name, r)
  if #r.shape > RANK then
    fail(name, "tensor %s has %d modes; at most %d are possible", r.name,
         #r.shape, RANK)
  end
  for _, d in ipairs(r.stride) do
    if d < 0 then fail(name, "tensor %s has a negative stride", r.name) end
  end
end

-- Returns the tensors of a variant from its roots.
local function tensors_of(name, roots)
  local list = {}
  for i, r in ipairs(roots) do
    check_root(name, r)
    list[i] = {name = r.name, dtype = r.dtype.name, bits = r.dtype.bits,
               written = r.written or false, read = r.read or false,
               align = math.max(r.align or 1, math.max(1, r.dtype.bits // 8)),
               wide = r.wide or not r.shape_div,
               shape = r.shape, stride = r.stride, shape_div = r.shape_div,
               stride_div = r.stride_div}
  end
  return list
end

-- Returns the pairs of tensors that must not overlap. These are the pairs that
-- did not overlap in the recorded launches, and of which one tensor is written.
local function apart(roots)
  local list = {}
  for i, a in ipairs(roots) do
    for j = 1, i - 1 do
      local b = roots[j]
      local meet = a.buffer and a.buffer == b.buffer
        and a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes
      if (a.written or b.written) and not meet then
        list[#list + 1] = {j - 1, i - 1}
      end
    end
  end
  return list
end

--- Returns the variant of a function for recorded launches.
---@param name string
---@param launches table[]
---@param o table {roots = the tensors of the C function, or nil to take them
-- from the launches; numbers = {list =, at = {[launch] = {[value] = index in
-- list}}}, or nil for all numbers; since = the serial number of the newest
-- buffer before the call; zeroed = {[buffer] = true}}
---@return table variant
---@return table[] roots
function describe.variant(name, launches, o)
  local roots = o.roots or own_roots(launches)
  local work = setmetatable({regions = {}, at = {}, steps = {},
    since = o.since or 0, zeroed = o.zeroed or {}}, Work)
  local numbers, number_of = numbers_of(launches, o.numbers)
  for k, l in ipairs(launches) do
    if l.program.info.ptx or l.program.info.addresses then
      fail(name, "kernel %s %s, which bundles do not support",
           l.program.info.name, l.program.info.ptx and "is PTX"
           or "reads addresses from memory")
    end
    local values = {}
    for i in ipairs(l.leaves) do
      local v, a = l.launch.args[i], l.program.info.args[i]
      local number = number_of(k, i)
      if a.pointer then
        values[i] = memory_value(name, roots, work, l, i)
      elseif number then
        values[i] = {kind = "NUMBER", of = number - 1, mode = 0, map = 0, n = 0}
      else
        values[i] = {kind = "CONSTANT", of = 0, mode = 0, map = 0,
                     n = bits_of(a.dtype, v[2])}
      end
    end
    table.insert(work.steps, step_of(l, values))
  end
  return {tensors = tensors_of(name, roots), numbers = numbers,
          apart = apart(roots), steps = work.steps, regions = work.regions},
    roots
end

--- Places the regions of a variant's workspace one after the other, and
-- replaces region indices by offsets.
function describe.place(v)
  local at, bytes = {}, 0
  for i, n in ipairs(v.regions) do
    at[i] = bytes
    bytes = bytes + (n + ALIGNED - 1) // ALIGNED * ALIGNED
  end
  for _, s in ipairs(v.steps) do
    if s.region then s.at, s.region = s.at + at[s.region], nil end
    for _, x in ipairs(s.values or {}) do
      if x.region then x.n, x.region = x.n + at[x.region], nil end
    end
  end
  v.work, v.regions = bytes, nil
end

---------------------------------------------------------------------------
-- Dynamic extents
---------------------------------------------------------------------------

-- Returns a list of pairs of extents or strides that must be equal, because
-- they share a symbol. Also returns a table `derived`: derived[i] is the extent
-- or stride from which number i is computed.
local function symbols_of(leaves, root_at)
  local first, equal, derived = {}, {}, {}
  for i, d in ipairs(leaves) do
    if d.symbol and d.kind ~= "number" and d.of > 0 then
      local now = {root_at[d.of], d.mode - 1, d.kind == "stride" and 1 or 0}
      local was = first[d.symbol]
      if was then
        equal[#equal + 1] = {was[1] - 1, was[2], was[3], now[1] - 1, now[2],
                             now[3]}
      else
        first[d.symbol] = now
      end
    end
    if d.symbol and d.kind == "number" then derived[i] = d.symbol end
  end
  for i, symbol in pairs(derived) do derived[i] = first[symbol] end
  return equal, derived
end

-- Returns the tensors of a symbolic launch as a list {name, dtype, shape ...}.
-- Also returns root_at: root_at[i] is the list index of value i.
local function symbolic_roots(name, program, leaves)
  local roots, root_at = {}, {}
  for i, d in ipairs(leaves) do
    local a = program.info.args[i]
    if d.kind == "map" then
      fail(name, "kernel %s takes a TMA atom (%s) together with symbolic "
        .. "arguments: bundle a function of tensors with static extents",
           program.info.name, a.name)
    elseif a.pointer then
      if not d.shape then
        fail(name, "tensor %s has a composed layout, which has no strides",
             a.name)
      end
      roots[#roots + 1] = {name = a.name, dtype = d.dtype, shape = d.shape,
        stride = d.stride, shape_div = d.shape_div, stride_div = d.stride_div,
        wide = d.wide, align = math.max(a.align, 1), written = a.written,
        read = a.read, argument = d.argument}
      root_at[i] = #roots
    elseif d.of == 0 then
      fail(name, "kernel %s takes a layout with dynamic extents (%s); only "
        .. "tensors can have them", program.info.name, a.name)
    end
  end
  return roots, root_at
end

--- Returns the variant of a kernel that was compiled for symbolic arguments.
---@param name string
---@param p table the prepared launch
---@param grid_of fun(roots, numbers): table returns the grid as expressions
---@return table variant
function describe.symbolic(name, p, grid_of)
  local program, leaves = p.program, core.kind_leaves(p.kind)
  local roots, root_at = symbolic_roots(name, program, leaves)
  local equal, derived = symbols_of(leaves, root_at)
  local values, numbers = {}, {}
  for i, d in ipairs(leaves) do
    local a, v = program.info.args[i], {of = 0, mode = 0, map = 0, n = 0}
    values[i] = v
    if root_at[i] then v.kind, v.of = "POINTER", root_at[i] - 1
    elseif d.kind == "extent" or d.kind == "stride" then
      v.kind, v.of = d.kind:upper(), root_at[d.of] - 1
      v.mode = d.mode - 1
    elseif derived[i] then
      local at = derived[i]
      v.kind, v.of = at[3] == 1 and "STRIDE" or "EXTENT", at[1] - 1
      v.mode = at[2]
    else
      numbers[#numbers + 1] = {name = a.name, dtype = a.dtype.name,
                               argument = d.argument}
      v.kind, v.of = "NUMBER", #numbers - 1
    end
  end
  local grid = grid_of(roots, numbers)
  local launch = {grid = {1, 1, 1}, block = p.block, pdl = p.pdl,
                  cooperative = p.cooperative}
  local step = step_of({launch = launch, program = program}, values)
  step.grid = grid
  return {tensors = tensors_of(name, roots), numbers = numbers, equal = equal,
          apart = apart(roots), steps = {step}, regions = {}}
end

return describe
-- SPDX-License-Identifier: MIT
