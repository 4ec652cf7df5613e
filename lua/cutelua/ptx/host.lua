--- Executes the host function in the IR of the CuTe DSL, to find its launches:
-- grid, block, cluster, and the values of the kernel's parameters. If the
-- result of an operation cannot be computed, it is {unknown = the operation's
-- name}. Only a launch that needs this value fails.
local core = require "cute.core"
local mlir = require "cutelua.ptx.mlir"

local host = {}

-- Returns a list with {n = i} for each integer i of `list`.
local function numbers(list)
  local out = {}
  for i, v in ipairs(list) do out[i] = {n = v} end
  return out
end

-- Ends the execution of an instruction: its results are unknown for the reason
-- `why`.
local function give_up(why) error({unknown = why}, 0) end

local function leaf_values(v)
  local out = {}
  for i, leaf in ipairs(mlir.leaves(v)) do
    if not leaf.n then give_up "a value that is not a number" end
    out[i] = leaf.n
  end
  return out
end

local function product(list)
  local p = 1
  for _, v in ipairs(list) do p = p * v end
  return p
end

local function floordiv(a, b) return a // b end

-- Divides integers as C does: the quotient is truncated towards 0.
local function truncated(a, b)
  local q = math.abs(a) // math.abs(b)
  return (a < 0) ~= (b < 0) and -q or q
end

local function ceildiv(a, b) return -(-a // b) end

-- Operations on two integers, by their name in the IR.
local BINARY = {
  addi = function(a, b) return a + b end,
  subi = function(a, b) return a - b end,
  muli = function(a, b) return a * b end,
  divsi = truncated, divui = floordiv, floordivsi = floordiv,
  ceildivsi = ceildiv, ceildivui = ceildiv,
  remsi = math.fmod, remui = function(a, b) return a % b end,
  minsi = math.min, minui = math.min, maxsi = math.max, maxui = math.max,
  andi = function(a, b) return a & b end, ori = function(a, b) return a | b end,
  xori = function(a, b) return a ~ b end,
  shli = function(a, b) return a << b end,
  shrui = function(a, b) return a >> b end,
  shrsi = function(a, b) return a // (1 << b) end,
}

local COMPARE = {
  eq = function(a, b) return a == b end, ne = function(a, b) return a ~= b end,
  lt = function(a, b) return a < b end, le = function(a, b) return a <= b end,
  gt = function(a, b) return a > b end, ge = function(a, b) return a >= b end,
}

local DIVISIONS = {divsi = true, divui = true, floordivsi = true, remsi = true,
  remui = true, ceildivsi = true, ceildivui = true, tuple_div = true,
  tuple_mod = true, ceil_div = true}

-- Operations on the leaves of tuples, by their name in the IR.
local TUPLE = {tuple_add = BINARY.addi, tuple_sub = BINARY.subi,
  tuple_mul = BINARY.muli, tuple_div = truncated, tuple_mod = math.fmod,
  ceil_div = ceildiv}

-- Returns the mode of tuple v that the text "mode = [...]" selects.
local function mode_of(v, text)
  local list = text:match "mode = %[(.-)%]"
  for i in (list or ""):gmatch "%d+" do
    if v.n or v.basis then break end
    v = v[i + 1] or give_up "a mode that the tuple does not have"
  end
  return v
end

local function layout_of(v)
  if v.layout then return v.layout end
  if v.shape then return v end
  give_up "a layout that is not known"
end

-- Returns compact strides for a shape: the first mode is contiguous.
local function compact(shape)
  local list, step = {}, 1
  for i, leaf in ipairs(mlir.leaves(shape)) do
    list[i] = {n = step}
    step = step * leaf.n
  end
  return mlir.with_leaves(shape, list)
end

-- Returns a copy of a type's tuple in which the values in `list` replace the
-- dynamic leaves, in order.
local function filled(tuple, list)
  local at = 0
  local out = {}
  for i, leaf in ipairs(mlir.leaves(tuple)) do
    if leaf.dynamic then
      at = at + 1
      out[i] = list[at] or give_up "too few values"
    else
      out[i] = leaf
    end
  end
  return mlir.with_leaves(tuple, out)
end

-- Returns the number of dynamic leaves of a type's tuple.
local function dynamic_count(tuple)
  local n = 0
  for _, leaf in ipairs(tuple and mlir.leaves(tuple) or {}) do
    if leaf.dynamic then n = n + 1 end
  end
  return n
end

-- Returns the constant layout or tuple that an IR type denotes. Returns nil for
-- types with dynamic leaves, and for types of tensors and pointers.
local function constant(t)
  if not t then return nil end
  if t.name == "cute.memref" or t.name == "cute.ptr"
    or t.tuple and t.layout then
    return nil
  elseif t.layout then
    if not t.layout.stride or dynamic_count(t.layout.shape) > 0
      or dynamic_count(t.layout.stride) > 0 then return nil end
    return t.layout
  elseif t.tuple and dynamic_count(t.tuple) == 0 then
    return t.tuple
  end
end

---------------------------------------------------------------------------
-- Instructions
---------------------------------------------------------------------------

local run_body

-- Functions that execute an instruction, by its name. Each takes the state, the
-- instruction, its operands and the type of its first result, and returns the
-- results.
local RUN = {}

RUN["cute.size"] = function(_, i, a)
  local v = a[1]
  if not v.n and not v.basis and (v.layout or v.shape) then
    v = layout_of(v).shape
  end
  return {n = product(leaf_values(mode_of(v, i.text)))}
end

RUN["cute.cosize"] = function(_, _, a)
  local l = layout_of(a[1])
  local shape, stride = leaf_values(l.shape), leaf_values(l.stride)
  local last = 0
  for k, n in ipairs(shape) do last = last + (n - 1) * stride[k] end
  return {n = last + 1}
end

RUN["cute.get_layout"] = function(_, _, a) return layout_of(a[1]) end
RUN["cute.get_shape"] = function(_, _, a) return layout_of(a[1]).shape end
RUN["cute.get_stride"] = function(_, _, a) return layout_of(a[1]).stride end

RUN["cute.get_leaves"] = function(_, i, a)
  local list = mlir.leaves(a[1])
  if #list ~= #i.results then give_up "leaves" end
  return table.unpack(list)
end

RUN["cute.get_scalars"] = function(state, i, a)
  local list = mlir.leaves(a[1])
  if #list == #i.results then return table.unpack(list) end
  local t = mlir.type(i.text:match ":%s*(.*)$" or "", state.aliases)
  local types, out = t.tuple and mlir.leaves(t.tuple) or {}, {}
  for k, leaf in ipairs(types) do
    if leaf.dynamic then out[#out + 1] = list[k] end
  end
  if #out ~= #i.results then give_up "scalars" end
  return table.unpack(out)
end

local function fill(_, _, a, t)
  local list = {}
  for _, v in ipairs(a) do
    for _, leaf in ipairs(mlir.leaves(v)) do list[#list + 1] = leaf end
  end
  local leaves = t.tuple and mlir.leaves(t.tuple) or {}
  if #list == #leaves then return mlir.with_leaves(t.tuple, list) end
  return filled(t.tuple or give_up "a type without a tuple", list)
end
for name in ("make_int_tuple make_shape make_stride make_coord to_int_tuple")
    :gmatch "%S+" do
  RUN["cute." .. name] = fill
end

RUN["cute.make_layout"] = function(_, _, a)
  return {shape = a[1], stride = a[2] or compact(a[1])}
end

RUN["cute.make_identity_layout"] = function(_, _, a)
  return {shape = a[1], stride = {basis = "identity"}}
end

-- Returns the fields of tensor v that say where its elements are: `memory`, or
-- `coordinates` for a tensor of coordinates.
local function place_of(v)
  if not (v.memory or v.coordinates) then
    give_up "a pointer that is not known"
  end
  return {memory = v.memory, coordinates = v.coordinates}
end

RUN["cute.get_iter"] = function(_, _, a) return place_of(a[1]) end
RUN["cute.recast_iter"] = RUN["cute.get_iter"]

RUN["cute.make_arith_tuple_iter"] = function() return {coordinates = true} end

RUN["cute.make_view"] = function(_, _, a)
  local view = place_of(a[1])
  view.layout = layout_of(a[2])
  return view
end

RUN["cute.select"] = function(_, i, a)
  local function pick(tuple)
    local out = {}
    local list = i.text:match "^<%[(.-)%]>" or i.text:match "mode = %[(.-)%]"
    for k in (list or ""):gmatch "%d+" do out[#out + 1] = tuple[k + 1] end
    return out
  end
  if a[1].shape then
    return {shape = pick(a[1].shape), stride = pick(a[1].stride)}
  end
  return pick(a[1])
end

local function binary(f, op)
  return function(_, _, a)
    local x, y = a[1].n, a[2] and a[2].n
    if not (x and y) then give_up "a number that is not known" end
    if y == 0 and DIVISIONS[op] then give_up "a division by 0" end
    return {n = math.tointeger(f(x, y))}
  end
end
for op, f in pairs(BINARY) do RUN["arith." .. op] = binary(f, op) end

-- Rounds a number to f32, because the host function computes scales in f32.
local function rounded(x) return (("<f"):unpack(("<f"):pack(x))) end

local FLOAT = {
  addf = BINARY.addi, subf = BINARY.subi, mulf = BINARY.muli,
  divf = function(a, b) return a / b end,
  maximumf = math.max, minimumf = math.min,
  negf = function(a) return -a end, sitofp = function(a) return a + 0.0 end,
}
for op, f in pairs(FLOAT) do
  RUN["arith." .. op] = function(_, i, a)
    local x, y = a[1].n, a[2] and a[2].n
    if not x or a[2] and not y then give_up "a number that is not known" end
    if i.text:find "f64" then return {n = f(x, y)} end
    return {n = rounded(f(x, y))}
  end
end

for op, f in pairs(TUPLE) do
  RUN["cute." .. op] = function(_, _, a, t)
    local x, y = leaf_values(a[1]), leaf_values(a[2])
    local out = {}
    -- Missing modes of the divisor have extent 1.
    if op == "ceil_div" then
      for k = #y + 1, #x do y[k] = 1 end
    end
    if #x ~= #y then give_up "tuples of other profiles" end
    for k = 1, #x do
      if y[k] == 0 and DIVISIONS[op] then give_up "a division by 0" end
      out[k] = math.tointeger(f(x[k], y[k]))
    end
    if not t.tuple then return mlir.with_leaves(a[1], numbers(out)) end
    return mlir.with_leaves(t.tuple, numbers(out))
  end
end

-- Returns strides for a list of extents. The mode with the smallest number in
-- `order` has the stride `step`; the other modes follow it in the order of
-- their numbers.
local function ordered(extents, order, step)
  local modes, out = {}, {}
  for k = 1, #extents do modes[k] = k end
  table.sort(modes, function(x, y) return order[x] < order[y] end)
  for _, k in ipairs(modes) do
    out[k], step = step, step * extents[k]
  end
  return out
end

RUN["cute.make_ordered_layout"] = function(_, _, a)
  local stride = ordered(leaf_values(a[1]), leaf_values(a[2]), 1)
  return {shape = a[1], stride = mlir.with_leaves(a[1], numbers(stride))}
end

-- Repeats a block, whose elements are contiguous, until it covers a shape. Each
-- mode of the result consists of a mode of the block and the number of blocks
-- along it.
RUN["cute.tile_to_shape"] = function(_, _, a, t)
  local block, target, order = layout_of(a[1]), a[2], leaf_values(a[3])
  local shape, stride, count = {}, {}, {}
  -- last: the offset of the block's last element. size: its number of elements.
  local last, size = 0, 1
  for k, n in ipairs(leaf_values(block.shape)) do
    local step = leaf_values(block.stride)[k]
    last, size = last + (n - 1) * step, step == 0 and size or size * n
  end
  if size ~= last + 1 then give_up "a block with gaps" end
  for k, n in ipairs(target) do
    shape[k] = block.shape[k] or {n = 1}
    stride[k] = block.stride[k] or {n = 0}
    count[k] = ceildiv(product(leaf_values(n)), product(leaf_values(shape[k])))
  end
  for k, step in ipairs(ordered(count, order, size)) do
    shape[k] = {shape[k], {n = count[k]}}
    stride[k] = {stride[k], {n = step}}
  end
  if #mlir.leaves(shape) ~= #mlir.leaves(t.layout.shape) then
    give_up "modes that were merged"
  end
  return {shape = mlir.with_leaves(t.layout.shape, mlir.leaves(shape)),
          stride = mlir.with_leaves(t.layout.stride, mlir.leaves(stride))}
end

-- Returns one mode of a layout, that is, of its shape and its stride.
RUN["cute.get"] = function(_, i, a)
  if not a[1].shape then return mode_of(a[1], i.text) end
  return {shape = mode_of(a[1].shape, i.text),
          stride = mode_of(a[1].stride, i.text)}
end

-- Divides the modes of a flat layout by the extents of a tile.
RUN["cute.zipped_divide"] = function(_, _, a)
  local l, tile = layout_of(a[1]), mlir.leaves(a[2])
  local inner = {shape = {}, stride = {}}
  local rest = {shape = {}, stride = {}}
  for k = 1, #l.shape do
    local n, step = l.shape[k].n, l.stride[k].n
    if not (n and step) then give_up "a nested mode" end
    local size = tile[k] and (tile[k].n or give_up "a tile") or 1
    if k <= #tile then
      inner.shape[k], inner.stride[k] = {n = size}, {n = step}
    end
    rest.shape[k] = {n = ceildiv(n, size)}
    rest.stride[k] = {n = step * size}
  end
  return {memory = a[1].memory,
          layout = {shape = {inner.shape, rest.shape},
                    stride = {inner.stride, rest.stride}}}
end

-- Keeps the modes whose coordinate is `_`; other coordinates must be 0.
RUN["cute.slice"] = function(_, _, a)
  local function keep(tuple, coord, out)
    if coord.basis == "_" then
      out[#out + 1] = tuple
    elseif coord.n then
      if coord.n ~= 0 then give_up "a coordinate that is not 0" end
    else
      for k, c in ipairs(coord) do keep(tuple[k], c, out) end
    end
    return out
  end
  local l = layout_of(a[1])
  return {memory = a[1].memory, layout = {shape = keep(l.shape, a[2], {}),
                                          stride = keep(l.stride, a[2], {})}}
end

RUN["cute.make_tile"] = function() give_up "a tile" end

for op in ("extsi extui trunci index_cast index_castui"):gmatch "%S+" do
  RUN["arith." .. op] = function(_, _, a) return a[1] end
end

RUN["arith.cmpi"] = function(_, i, a)
  local x, y = a[1].n, a[2].n
  if not (x and y) then give_up "a number that is not known" end
  local how = i.text:match "^(%l+)"
  local f = COMPARE[how] or COMPARE[how:sub(2)] or give_up "a comparison"
  if how:find "^u" and (x < 0 or y < 0) then
    x, y = x ~ math.mininteger, y ~ math.mininteger
  end
  return {n = f(x, y) and 1 or 0}
end

RUN["arith.select"] = function(_, _, a)
  return a[1].n and a[1].n ~= 0 and a[2] or a[1].n and a[3]
    or give_up "a condition that is not known"
end

RUN["arith.constant"] = function(_, i)
  local all, count = i.text:match "^dense<(.-)>%s*:%s*vector<(%d+)xi%d+>"
  if all then
    local vector = {}
    for n in all:gmatch "-?%d+" do vector[#vector + 1] = tonumber(n) end
    for k = #vector + 1, tonumber(count) do vector[k] = vector[1] end
    return {vector = vector}
  end
  local word = i.text:match "^(%S+)"
  local n = word == "true" and 1 or word == "false" and 0 or tonumber(word)
  return {n = n or give_up("the constant " .. tostring(word))}
end

RUN["cute.kernel_smem_size"] = function(state, i)
  local k = state.module.kernels[i.text:match "::@([%w_%.$]+)"]
  return {n = k and mlir.shared_bytes(k, state.aliases)
    or give_up "the size of a kernel"}
end

-- Computes the struct for divisions by d: d, a multiplier, and two shifts. For
-- 32 bits, n / d = (((n - h) >> first) + h) >> second, where h is the high half
-- of n times the multiplier.
RUN["cute.fast_divmod.create_divisor"] = function(_, i, a)
  local d = a[1].n
  if not (d and d > 0 and i.text:find "divisor<32>") then
    give_up "a divisor"
  end
  local log = 0
  while 1 << log < d do log = log + 1 end
  local multiplier = ((1 << 32) * ((1 << log) - d)) // d + 1
  return {fields = {{n = d, bits = 32},
    {n = multiplier & 0xffffffff, bits = 32},
    {n = math.min(log, 1), bits = 8}, {n = math.max(log - 1, 0), bits = 8}}}
end

-- Returns an MMA atom, whose fields are the operands of the instruction.
RUN["cute.make_atom"] = function(_, i, a)
  local types = mlir.split(i.text:match ":%s*%((.-)%)%s*%->" or "")
  local fields = {}
  for k, v in ipairs(a) do
    local bits = tonumber(types[k]:match "^[if](%d+)$")
      or types[k]:find "^!cute%.ptr<.*[ts]mem" and 32
    if bits then fields[#fields + 1] = {n = v.n, bits = bits} end
    bits = tonumber(types[k]:match "^vector<%d+xi(%d+)>$")
    -- A vector is aligned to its size.
    for j, n in ipairs(bits and v.vector or {}) do
      fields[#fields + 1] = {n = n, bits = bits,
                             align = j == 1 and bits // 8 * #v.vector or nil}
    end
  end
  return {fields = fields}
end
for op in ("make_tiled_mma make_tiled_copy assume inttoptr"):gmatch "%S+" do
  RUN["cute." .. op] = function(_, _, a) return a[1] end
end

-- CU_TENSOR_MAP_DATA_TYPE by the IR's names: {value of the enumeration, bits of
-- an element}.
local MAP_TYPE = {U8 = {0, 8}, U16 = {1, 16}, U32 = {2, 32}, S32 = {3, 32},
  U64 = {4, 64}, S64 = {5, 64}, F16_RN = {6, 16}, F32_RN = {7, 32},
  F64_RN = {8, 64}, BF16_RN = {9, 16}, F32_FTZ_RN = {10, 32},
  TF32_RN = {11, 32}, TF32_FTZ_RN = {12, 32}, U4 = {13, 4}}

local function gcd(a, b)
  while b ~= 0 do a, b = b, a % b end
  return a
end

-- Returns the leaf of a tuple at a basis. The basis 1@2@0 is mode 2 of mode 0.
local function leaf_at(tuple, basis)
  local path = (basis or ""):match "^1(@[%d@]+)$" or give_up "a scaled basis"
  for mode in path:reverse():gmatch "(%d+)@" do
    tuple = tuple[mode:reverse() + 1] or give_up "a mode that is not there"
  end
  return tuple.n or give_up "a mode that is not a number"
end

-- Returns the extents, strides and box of a tensor map that moves boxes of a
-- tensor with this layout. The tensor's elements have `own` bits, and the map's
-- elements have `bits` bits. Each mode of the map traverses one or more modes
-- of the tensor. box.shape has the extents of a box; box.stride has the modes
-- of the tensor, as bases, that belong to each extent.
local function map_modes(layout, own, box, bits)
  local map = {rank = #box.shape, extent = {}, stride = {}, box = {}}
  for d = 1, #box.shape do
    -- extent and stride (in bits) of the map's mode
    local extent, stride = 1, 0
    for k, basis in ipairs(mlir.leaves(box.stride[d])) do
      local n = leaf_at(layout.shape, basis.basis)
      local step = leaf_at(layout.stride, basis.basis) * own
      -- The elements are contiguous, so count them in elements of the map.
      if d == 1 and k == 1 then
        if step ~= own or n * own % bits ~= 0 then give_up "a stride" end
        n, step = n * own // bits, bits
      end
      local common = gcd(stride, step)
      if common == 0 then
        extent = n
      else
        extent = (extent - 1) * (stride // common)
          + (n - 1) * (step // common) + 1
      end
      stride = common
    end
    map.extent[d], map.box[d] = extent, product(leaf_values(box.shape[d]))
    if d > 1 then map.stride[d - 1] = stride // 8 end
  end
  return map
end

-- Returns the map that moves boxes of a tensor: the parameters of
-- core.encode_tensor_map, and `memory`, the tensor. In the IR, tma_gbasis lists
-- the extents of the box, each with the mode of the tensor that it covers.
local function tensor_map(atom, t, smem, a, share)
  local boxes, how = atom:match 'tma_gbasis = <"(.-)">, tma_format = ([%w_]+)'
  local type, box = MAP_TYPE[how or ""], mlir.layout(boxes or "")
  local memory, own = a[1].memory, mlir.bits(t.element or "")
  if not (type and box and box.stride and memory and own) then
    give_up "a map"
  end
  local swizzle = smem.swizzle and (smem.swizzle:match "^(%d+),4,3$"
    or give_up("the swizzle " .. smem.swizzle))
  local map = map_modes(a[1].layout, own, box, type[2])
  map.memory, map.address = memory, memory.iterator.address
  map.type, map.sm100 = type[1], type[2] < 8
  map.swizzle = tonumber(swizzle or 0)
  map.l2, map.fill = 0, 0
  -- If CTAs share a tile, each CTA copies a part of it. The box is divided
  -- accordingly, the last mode first.
  for d = map.rank, 1, -1 do
    local n = map.box[d]
    map.box[d], share = ceildiv(n, share), ceildiv(share, n)
  end
  return map
end

local function tma(state, i, a)
  local given, made = i.text:match ":%s*%((.*)%)%s*%->%s*%((.*)%)$"
  local function type_at(list, k)
    return mlir.type(mlir.split(list or "")[k] or "", state.aliases)
  end
  local t = type_at(made, 2)
  if not t.layout then give_up "coordinates" end
  if a[1].unknown then give_up(a[1].unknown) end
  local layout = layout_of(a[1])
  local share = tonumber(i.text:match "num_multicast = (%d+)") or 1
  return {map = tensor_map(type_at(made, 1).text, type_at(given, 1),
                           type_at(given, 2), a, share)},
    {coordinates = true,
     layout = {shape = layout.shape, stride = t.layout.stride}}
end
for kind in ("load store reduce"):gmatch "%S+" do
  RUN["cute_nvgpu.atom.make_non_exec_tiled_tma_" .. kind] = tma
end

RUN["scf.if"] = function(state, i, a)
  if not a[1].n then give_up "a condition that is not known" end
  local body = i.regions[a[1].n ~= 0 and 1 or 2]
  return table.unpack(body and run_body(state, body) or {})
end

-- Returns the value of a name. The value may be {unknown}.
local function value_of(state, name)
  return state.values[name] or {unknown = "a value of another function"}
end

-- Returns the names of operands in a text, in order.
local function names_in(text)
  local list = {}
  for name in text:gmatch "%%[%w_%-]+#?%d*" do list[#list + 1] = name end
  return list
end

-- Returns the values of the operands that a text lists in parentheses after a
-- word. A value may be {unknown}.
local function numbers_of(state, text, word)
  local out = {}
  for _, name in ipairs(names_in(text:match(word .. "%s*(%b())") or "")) do
    out[#out + 1] = value_of(state, name)
  end
  return out
end

-- Attributes of a launch that are used: cutelua's names by the IR's names.
local ATTRIBUTES = {cooperative = "cooperative",
  programmatic_stream_serialization_allowed = "pdl"}

-- Records the launch that instruction i makes, or the launch attribute that i
-- sets. Reports whether i does either.
local function launch_of(state, i)
  local op = i.op:match "^cuda%.launch_cfg%.([%w_]+)$"
  if op == "create" then
    state.configs[i.results[1]] = {
      grid = numbers_of(state, i.text, "gridDim ="),
      block = numbers_of(state, i.text, "blockDim =")}
  elseif op then
    local c = state.configs[i.text:match "^%[(.-)%]" or ""]
    local names = names_in(i.text:match "^%b[]%s*(.-)%s+:" or "")
    if not c then return true end
    if op == "cluster_dim" then
      c.cluster = numbers_of(state, i.text, "^%b[]")
    elseif ATTRIBUTES[op] then
      c[ATTRIBUTES[op]] = value_of(state, names[1] or "")
    end
  elseif i.op:find "^cuda%.launch_ex" then
    local name, config, args = i.text:match
      "::@([%w_%.$]+)<(.-)>%s*(%b())"
    local l = setmetatable({kernel = name, args = {}},
                           {__index = state.configs[config or ""] or {}})
    for k, arg in ipairs(names_in(args or "")) do
      l.args[k] = value_of(state, arg)
    end
    state.launches[#state.launches + 1] = l
  else
    return false
  end
  return true
end

-- Executes instruction i and returns a list of the values of its results.
local function results_of(state, i)
  local operands = {}
  local before = i.text:match "^(.-)%s:%s" or i.text
  for k, name in ipairs(names_in(before)) do
    operands[k] = value_of(state, name)
  end
  local arrow = i.text:match "%->%s*(.*)$" or i.text:match "%sto%s+(!.*)$"
  local t = mlir.type(arrow or i.text:match "%s:%s+(.*)$"
    or i.text:match "^:%s*(.*)$" or "", state.aliases)
  local f = RUN[i.op]
  local why = i.op
  if f then
    for _, v in ipairs(operands) do
      if v.unknown and f ~= tma then f, why = nil, v.unknown end
    end
  end
  local out = f and table.pack(pcall(f, state, i, operands, t))
  if out and out[1] and out.n > 1 then return {table.unpack(out, 2)} end
  if out and not out[1] then
    if type(out[2]) ~= "table" then error(out[2], 0) end
    why = i.op .. ": " .. out[2].unknown
  end
  local known = (arrow or i.op:find "^cute%.make_") and constant(t)
  if known then return {known} end
  local list = {}
  for k = 1, #i.results do list[k] = {unknown = why} end
  return list
end

---------------------------------------------------------------------------
-- Loops
---------------------------------------------------------------------------

-- limit of the total number of iterations of a host function's loops
local MOST_TURNS = 4096

local function count_turn(state)
  state.turns = state.turns + 1
  if state.turns > MOST_TURNS then give_up "a loop of more than 4,096 turns" end
end

-- Returns the names %a and %b of a text "(%a = %x, %b = %y)", and the values of
-- %x and %y.
local function carried(state, text)
  local names, values = {}, {}
  for name, from in (text or ""):gmatch "(%%[%w_]+)%s*=%s*(%%[%w_%-]+#?%d*)" do
    names[#names + 1] = name
    values[#values + 1] = value_of(state, from)
  end
  return names, values
end

local function give(state, names, values)
  for k, name in ipairs(names or {}) do state.values[name] = values[k] end
end

-- Functions that run a loop and return its results, by the loop's name.
local LOOPS = {}

LOOPS["scf.for"] = function(state, i)
  local var, text = i.text:match "(%%[%w_]+)%s*=%s*(.*)$"
  local bounds = {}
  for k, name in ipairs(names_in(text)) do
    local v = value_of(state, name)
    if k > 3 then break end
    bounds[k] = v.n or give_up(v.unknown or "a bound")
  end
  local first, last, step = table.unpack(bounds)
  local names, values = carried(state, text:match "iter_args(%b())")
  if step < 1 then give_up "a step that is not positive" end
  for n = first, last - 1, step do
    count_turn(state)
    state.values[var] = {n = n}
    give(state, names, values)
    values = run_body(state, i.regions[1])
  end
  return values
end

LOOPS["scf.while"] = function(state, i)
  local names, values = carried(state, i.text:match "^(%b())")
  while true do
    count_turn(state)
    give(state, names, values)
    values = run_body(state, i.regions[1])
    local go = table.remove(values, 1) or {}
    if not go.n then give_up(go.unknown or "a condition") end
    if go.n == 0 then return values end
    give(state, i.regions[2].takes, values)
    values = run_body(state, i.regions[2])
  end
end

-- Executes a loop. If its number of iterations is unknown, its results are
-- unknown; if the loop contains a launch, this is an error.
local function loop(state, i)
  local ok, out = pcall(LOOPS[i.op], state, i)
  if ok then return out end
  if type(out) ~= "table" then error(out, 0) end
  for _, r in ipairs(i.regions) do
    mlir.each(r, function(x)
      if x.op:find "^cuda%.launch_ex" then
        core.fail("bad-argument", ("%s, line %d: the number of iterations "
          .. "of a loop with a launch depends on %s, which this reader of the "
          .. "IR does not compute"):format(state.path, x.line, out.unknown))
      end
    end)
  end
  local list = {}
  for k = 1, #i.results do list[k] = {unknown = out.unknown} end
  return list
end

-- Executes the instructions of a body. Returns the values that its last
-- instruction yields.
function run_body(state, body)
  for _, i in ipairs(body) do
    state.line = i.line
    if i.op == "scf.yield" or i.op == "scf.condition" then
      local out = {}
      for k, name in ipairs(names_in(i.text:match "^(.-)%s:" or i.text)) do
        out[k] = value_of(state, name)
      end
      return out
    end
    if not launch_of(state, i) then
      for k, v in ipairs((LOOPS[i.op] and loop or results_of)(state, i)) do
        if i.results[k] then state.values[i.results[k]] = v end
      end
    end
  end
  return {}
end

--- Executes the host function. Returns its launches as a list {kernel = name,
-- args, grid, block, cluster, pdl, cooperative}. Each number in them is a value
-- {n} or {unknown}.
---@param module table of mlir.read
---@param f table a function of module.hosts
---@param args table values of f's parameters
---@param path string names the file in errors
---@return table[] launches
function host.run(module, f, args, path)
  local state = {module = module, aliases = module.aliases, values = {},
                 configs = {}, launches = {}, path = path, turns = 0}
  for i, p in ipairs(f.parameters) do state.values[p.name] = args[i] end
  mlir.guard(function() run_body(state, f.body) end, function()
    return ("%s, line %d"):format(path, state.line)
  end)
  return state.launches
end

return host
-- SPDX-License-Identifier: MIT
