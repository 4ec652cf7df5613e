--- Checks the operands of a product and converts them to the layouts that
-- kernels accept. Also determines their types and device.
--
-- In users' tensors batch modes come first, (...,M,K). Kernels accept one batch
-- mode, which is last, (M,K,L). An extent of 1 broadcasts.
local core = require "cute.core"
local cute = require "cute"
local devices = require "cute.lang.devices"
local modes = require "cute.ops.modes"
local report = require "cute.lang.report"
local sign = require "cute.lang.signature"
local tiles = require "cute.tiles"

local operand = {}

--- Raises an error about a call's arguments.
function operand.fail(text, ...)
  core.fail("bad-argument", text:format(...))
end
local fail = operand.fail

--- Raises an error unless each of the last `own` modes of tensor t has a single
-- stride. For a matrix these modes are its rows and columns, for a vector its
-- elements.
---@param own integer the number of these modes: 2 or 1
function operand.check_strides(name, t, own)
  local rank, l = cute.rank(t), t.layout
  if l.is_composed then
    fail("%s is %s; a layout without swizzle or composition is needed", name, l)
  end
  local shape = l.shape
  for i = rank - own + 1, rank do
    if type(shape) == "table" and type(shape[i]) == "table" then
      fail("%s is %s; %s must have a single stride", name, l, own == 1
        and "its elements" or "its rows, and its columns,")
    end
  end
end

--- Raises an error unless t is a tensor of two modes or more.
function operand.check(name, t)
  if core.typename(t) ~= "tensor" or t.memspace == "coord" then
    fail("%s is %s; a tensor is needed", name, core.show(t))
  elseif cute.rank(t) < 2 then
    fail("%s is %s; modes (..., rows, columns) are needed", name, core.show(t))
  end
  operand.check_strides(name, t, 2)
end

--- Raises an error unless the elements of output t all have different
-- addresses.
function operand.check_apart(name, t)
  local l = t.layout
  for _, d in ipairs(cute.flatten_to_tuple(l.stride)) do
    if d < 0 then
      fail("%s is %s; strides of 0 or more are needed", name, l)
    end
  end
  local loops = modes.loops({{name = name, l = l}}, modes.extents(l))
  modes.sort(loops, 1, 1)
  if not modes.injective(loops, 1) then
    fail("%s is %s: several of its elements have the same address", name, l)
  end
end

-- Reports whether elements of x and D never overlap. `from` and `to` are the
-- positions of their first elements, in bytes from the beginning of the buffer
-- that holds both. If all strides are multiples of some g, it suffices that the
-- addresses modulo g differ, as for different columns of one matrix.
local function never_meet(x, from, D, to)
  local lists = {{t = x, first = from}, {t = D, first = to}}
  -- Considers the bytes of tensor s modulo g. Returns the position of the first
  -- byte, and the distance from it to the last byte.
  local function rest(s, g)
    local bytes = s.t.element_type.bits // 8
    local shape = cute.flatten_to_tuple(s.t.shape)
    local last = bytes - 1
    for i, d in ipairs(cute.flatten_to_tuple(s.t.stride)) do
      if d * bytes % g ~= 0 then last = last + (shape[i] - 1) * d * bytes end
    end
    return s.first % g, last
  end
  for _, s in ipairs(lists) do
    for _, d in ipairs(cute.flatten_to_tuple(s.t.stride)) do
      local g = d * s.t.element_type.bits // 8
      if g > 1 then
        local a, a_last = rest(lists[1], g)
        local b, b_last = rest(lists[2], g)
        if (b - a) % g > a_last and (a - b) % g > b_last then return true end
      end
    end
  end
  return false
end

--- Raises an error if output D shares memory with operand x. `alike` says that
-- an element of x is read only to compute the element of D at the same
-- position. x may then have the same layout and address as D.
---@param name string the name of x
---@param what string the name of D
function operand.check_shared(name, x, D, what, alike)
  local _, _, _, together = core.kind({x, D, n = 2}, 0)
  if not together then return end
  local v = core.launch_values {x, D, n = 2}
  local one = rawequal(v[1][1], v[2][1])
  if one and (alike and v[1][2] == v[2][2]
    and tostring(x.layout) == tostring(D.layout)
    or never_meet(x, v[1][2], D, v[2][2])) then
    return
  end
  fail("%s shares memory with %s", what, name)
end

-- Returns the batch modes of an operand: all modes except the last two.
local function batch_modes(t)
  return {table.unpack(t.shape, 1, cute.rank(t) - 2)}
end

--- Returns the extents of the batch modes to which all operands broadcast. The
-- last mode comes first.
function operand.batch(list)
  local out, owner = {}, {}
  for _, x in ipairs(list) do
    local own = batch_modes(x.t)
    -- Batch modes are compared from the last one on.
    for i = 1, #own do
      local extent, have = cute.size(own[#own + 1 - i]), out[i] or 1
      if have ~= 1 and extent ~= 1 and extent ~= have then
        fail("%s is %s and %s is %s: their batch modes do not "
          .. "match", owner[i].name,
             owner[i].t.layout, x.name, x.t.layout)
      end
      if out[i] == nil or have == 1 then out[i], owner[i] = extent, x end
    end
  end
  return out
end

--- Reports whether x has the modes of `batch`, followed by `own` other modes.
function operand.has_batch(x, batch, own)
  local lead = batch and #batch or 0
  if lead == 0 or cute.rank(x) ~= lead + own then return false end
  -- Batch modes are listed from the last one on.
  for i, n in ipairs(batch) do
    local extent = cute.size(x, lead - i)
    if extent ~= 1 and extent ~= n then return false end
  end
  return true
end

-- Returns the strides of the last two modes, rows and columns. A single row or
-- column has a stride without effect. If the other stride is 1 or also without
-- effect, replaces the stride without effect by one that every kernel accepts.
local function strides_of(shape, stride, rank)
  local m, n, ds, dn = shape[rank - 1], shape[rank], stride[rank - 1],
    stride[rank]
  -- 32 elements have 16 bytes or more. A multiple of 32 therefore satisfies the
  -- alignment of every kernel.
  if m == 1 and (dn == 1 or n == 1) then return tiles.count(n, 32) * 32, 1 end
  if n == 1 and ds == 1 then return ds, tiles.count(m, 32) * 32 end
  return ds, dn
end

-- Merges the batch modes of layout l and its rows into one mode. Returns
-- {extent, stride} of this mode, or nil if the rows are not equally spaced. If
-- l has only one matrix, returns the extent and stride of its rows.
local function rows_of_all(l, batch)
  local rank, n, step = cute.rank(l), nil, nil
  local shape, stride = l.shape, l.stride
  local own = true
  for i = 1, rank - 2 do own = own and cute.size(shape[i]) == 1 end
  if own then return {shape[rank - 1], stride[rank - 1]} end
  for i = 0, #batch do  -- rows first
    local mode = rank - 1 - i
    local extent = i == 0 and shape[mode] or batch[i]
    if type(extent) == "table" then return nil end
    local apart = mode > 0 and cute.size(shape[mode]) ~= 1 and stride[mode] or 0
    if extent ~= 1 and type(apart) == "table" or n and extent ~= 1
      and apart ~= n * step then
      return nil
    elseif extent ~= 1 then
      n, step = (n or 1) * extent, step or apart
    end
  end
  return {n, step}
end

--- Merges the batch into rows, if the matrices of A, and of all operands with
-- D's shape, form the rows of one product. Returns {folded =, rows =}, or nil
-- if they do not.
---@param batch table from operand.batch
---@param list any[] tensors: A, D, ...
---@param B any
---@return table?
function operand.folded(batch, list, B)
  if cute.product(batch) == 1 or cute.product(batch_modes(B)) > 1 then
    return nil
  end
  local rows
  for _, t in ipairs(list) do
    if cute.rank(t) < 2 then return nil end
    local all = rows_of_all(t.layout, batch)
    rows = rows or all and all[1]
    if not all or all[1] ~= rows then return nil end
  end
  return {folded = batch, rows = rows}
end

--- Returns a layout in the form that kernels accept: (rows, columns) or, with
-- batches, (rows, columns, L), where the last batch mode varies fastest in L.
-- `batch` is the result of operand.batch or operand.folded. Broadcast modes
-- have stride 0, or a stride without effect.
function operand.layout(l, batch)
  local rank = cute.rank(l)
  local shape, stride = l.shape, l.stride
  if batch.folded then
    local rows = rows_of_all(l, batch.folded)
    shape, stride, rank = {rows[1], shape[rank]}, {rows[2], stride[rank]}, 2
    batch = {}
  end
  local by_row, by_column = strides_of(shape, stride, rank)
  if cute.product(batch) == 1 then
    return cute.make_layout({shape[rank - 1], shape[rank]},
                            {by_row, by_column})
  end
  local extents, strides = {}, {}
  for i, extent in ipairs(batch) do
    local mode = rank - 1 - i
    local own = mode >= 1 and cute.size(shape[mode]) ~= 1
    extents[i] = own and shape[mode] or extent
    strides[i] = own and stride[mode] or 0
  end
  local L = cute.coalesce(cute.make_layout(extents, strides))
  return cute.make_layout({shape[rank - 1], shape[rank], L.shape},
                          {by_row, by_column, L.stride})
end

--- Returns tensor t in the layout that kernels accept, and without dynamic
-- extents. A tf32 tensor becomes f32, its type in memory.
function operand.matrix(t, batch)
  if t.element_type == cute.tf32 then t = cute.recast_tensor(t, cute.f32) end
  return cute.make_tensor(t.iterator, operand.layout(t.layout, batch))
end

--- Reports whether t consists of matrices whose K is empty.
function operand.is_flat(t)
  return core.typename(t) == "tensor" and t.memspace ~= "coord"
    and cute.rank(t) >= 2 and cute.size(t, cute.rank(t) - 1) == 0
end

--- Returns a tensor of zeros with K = 16 that replaces t, whose K is empty. The
-- product stays 0. If t has elements of 4 bits, the zeros are bf16, because no
-- kernel multiplies 4-bit elements without scale factors.
function operand.deep(t)
  local shape = modes.extents(t.layout)
  -- Every kernel accepts this extent of K.
  shape[#shape] = 16
  return cute.zeros(shape, t.element_type.bits < 8 and cute.bf16
    or t.element_type, {device = t.device})
end

--- Returns a matrix with its first two modes exchanged.
function operand.turned(t)
  return cute.make_tensor(t.iterator, cute.select(t.layout,
    cute.rank(t) > 2 and {1, 0, 2} or {1, 0}))
end

--- Returns a vector (..., n) as a matrix that repeats it: `other` equal columns
-- (if by_row) or `other` equal rows.
function operand.spread(v, other, by_row)
  local shape, stride = v.shape, v.stride
  if type(shape) ~= "table" then shape, stride = {shape}, {stride} end
  local s, d, rank = {}, {}, #shape
  for i = 1, rank - 1 do s[i], d[i] = shape[i], stride[i] end
  s[rank], s[rank + 1] = shape[rank], other
  d[rank], d[rank + 1] = stride[rank], 0
  if not by_row then
    s[rank], s[rank + 1] = s[rank + 1], s[rank]
    d[rank], d[rank + 1] = d[rank + 1], d[rank]
  end
  return cute.make_tensor(v.iterator, cute.make_layout(s, d))
end

--- Returns a vector (..., n) as (n, l), where mode l merges all batch modes.
function operand.flat(v, batches)
  local n = cute.size(v) // batches
  if batches == 1 or cute.rank(v) == 1 then
    return cute.make_tensor(v.iterator, cute.make_layout({n, 1},
      {cute.flatten_to_tuple(v.stride)[cute.rank(v)], 0}))
  end
  local rank, shape, stride, l = cute.rank(v), v.shape, v.stride, {{}, {}}
  for i = rank - 1, 1, -1 do
    table.insert(l[1], shape[i])
    table.insert(l[2], stride[i])
  end
  return cute.make_tensor(v.iterator, cute.make_layout({shape[rank], l[1]},
                                                       {stride[rank], l[2]}))
end

---------------------------------------------------------------------------
-- Options, types, devices
---------------------------------------------------------------------------

--- Raises an error unless all options are known and have the right types.
---@param what string the operation: "ops.gemm"
---@param known table<string, string> types by option name
---@param o table
function operand.check_options(what, known, o)
  for name, v in pairs(o) do
    local want = known[name]
    if math.type(name) then
      fail("the list %s is not a tensor: write cute.tensor(list, cute.f32)",
        core.show(o))
    end
    if not want then sign.unknown("option", name, known, what) end
    local t = type(v) == "number" and "number" or core.typename(v)
    local fits = false
    for w in want:gmatch "%a+" do
      fits = fits or w == t or w == "integer" and math.type(v) == "integer"
    end
    if not fits then
      operand.fail("%s = %s: %s %s is needed", name, core.show(v),
                   want:find "^[aeiou]" and "an" or "a",
                   (want:gsub(" ", " or ")))
    end
  end
end

--- Returns the type of D that a call's options name, or nil. Raises an error if
-- the tensor `out` has another type.
---@param o table
---@param out any a tensor, or nil
function operand.dtype(o, out)
  local dtype = o.dtype and core.find_dtype(tostring(o.dtype))
  if o.dtype and not dtype then
    fail("dtype = %s; this type does not exist", core.show(o.dtype))
  elseif dtype and out
    and operand.plain(out.element_type) ~= operand.plain(dtype) then
    fail("dtype = %s, but out has type %s", dtype, out.element_type)
  end
  return dtype
end

--- Returns the accumulator type, and the default type of D, for operand types a
-- and b.
function operand.sums_of(a, b)
  if a.name == "f64" or b.name == "f64" then return cute.f64, cute.f64 end
  if a.is_integer and b.is_integer then return cute.i32, cute.i32 end
  if a.bits <= 8 then return cute.f32, cute.bf16 end
  return cute.f32, a.bits >= b.bits and a or b
end

--- Returns the type in which memory holds elements of type dtype: f32 for tf32.
function operand.plain(dtype)
  return dtype == cute.tf32 and cute.f32 or dtype
end

--- Returns the properties of an operand by which families choose kernels:
-- layout, type, alignment.
function operand.facts(l, dtype, alignment)
  return {layout = l, shape = l.shape, stride = l.stride, element_type = dtype,
          alignment = alignment}
end

--- Returns the device of a call: the device named in its options, else A's.
function operand.device(A, o)
  local device, why = devices.pick(core.launch_values {A, n = 1}, o, "auto")
  if not device then report.raise(why) end
  return device
end

return operand
-- SPDX-License-Identifier: MIT
