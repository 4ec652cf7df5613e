--- Element-wise functions: ops.elementwise, and operations that only move or
-- convert elements (ops.copy, ops.convert, ops.transpose).
--
-- One planner serves all of these operations. It sorts the modes by the strides
-- of the first result, and merges modes that are contiguous for all operands.
-- It then compares each operand with the first result. Operands that are
-- contiguous along the same mode move in vectors. Operands that are contiguous
-- along another mode move in tiles through shared memory
-- (kernels/elementwise.lua).
local calls = require "cute.ops.calls"
local capture = require "cute.ops.capture"
local core = require "cute.core"
local cute = require "cute"
local elementwise = require "kernels.elementwise"
local modes = require "cute.ops.modes"
local numbers = require "cute.ops.numbers"
local operand = require "cute.ops.operand"
local philox = require "cute.philox"
local report = require "cute.lang.report"
local sign = require "cute.lang.signature"
local transpose = require "kernels.transpose"
local tensor_op = require "cute.ops.tensor_op"

local ops = {}

---------------------------------------------------------------------------
-- The function's arguments
---------------------------------------------------------------------------

local At = {}
At.__index = At

--- Returns the coordinates of each element: one vector for each mode of the
-- result. The coordinates have type i32, or i64 for a mode of more than 2^31
-- elements.
function At:coords()
  local rest, list = self.index, {}
  for m = #self.shape, 1, -1 do
    -- The divisions below need a divisor of at least 1, even for a mode of
    -- extent 0.
    local n = math.max(self.shape[m], 1)
    list[m] = m == 1 and rest or rest % n
    if n <= 1 << 31 then list[m] = list[m]:to(cute.i32) end
    rest = rest // n
  end
  return table.unpack(list)
end

--- Returns x / (1 - p), or 0 with probability p, like at:dropout in epilogues
-- of ops.gemm. The last two modes of the result count as row and column, the
-- modes before them as batch.
function At:dropout(x, p, seed)
  philox.check(x, p, seed)
  local rank, shape = #self.shape, self.shape
  local n, m = math.max(shape[rank] or 1, 1), math.max(shape[rank - 1] or 1, 1)
  local column = (self.index % n):to(cute.i32)
  local row = (self.index // n % m):to(cute.i32)
  local batch = rank > 2 and (self.index // (n * m)):to(cute.i32) or 0
  return philox.dropout(x, philox.words(row, column, batch, seed), p)
end

sign.closed("at", sign.colons("at", At))

local function where_is(f)
  local i = debug.getinfo(f, "S")
  return ("the function at %s:%d"):format(i.short_src, i.linedefined)
end

-- Returns the number of parameters of a function, or nil if it is variadic.
local function takes(f)
  local i = debug.getinfo(f, "u")
  return not i.isvararg and i.nparams or nil
end

-- Returns two functions. kernels/elementwise.lua calls the first, which calls
-- the user's function f of problem p with its captured values. The second,
-- take(captured), replaces f by a function with the same code from another call
-- of the operation. `read` is the state that an earlier trace of f read.
local function bound(p, read)
  local f, clone, bind
  local function take(captured)
    f, bind = captured:clone()
    clone = capture.steady(f, read)
  end
  take(p.captured)
  return function(...)
    local args, list, values = {...}, {}, {}
    local n = #p.inputs
    local next_one, number = numbers.reader(args, n)
    for i, x in ipairs(p.operands) do
      if x.number then list[i] = number(p.sums, x.number == "float")
      else list[i] = args[x.input] end
    end
    for i, kind in ipairs(p.floats) do values[i] = number(p.sums, kind) end
    if p.at then
      list[#p.operands + 1] = setmetatable({index = next_one(), fail = p.fail,
                                            shape = p.shape}, At)
    end
    bind(values)
    local out = table.pack(clone(table.unpack(list, 1, #p.operands
                                              + (p.at and 1 or 0))))
    bind()
    if out.n == 0 then
      p.fail("%s returns nothing; a value is needed", where_is(f))
    end
    for i = 1, out.n do
      if core.typename(out[i]) ~= "vector" then
        p.fail("%s returns %s as result %d; a vector is needed", where_is(f),
               core.show(out[i]), i)
      end
    end
    return table.unpack(out, 1, out.n)
  end, take
end

-- Indices in the argument list of a call (the function `arguments` below): AT_F
-- is the index of f, and AT + i the index of operand i.
local AT_F, AT = 2, 7

-- Appends the numbers that a call passes to the kernel to `list`. The function
-- returned by `bound` reads them in the same order.
local function push_numbers(p, call, list)
  for i, x in ipairs(p.operands) do
    if x.number then
      numbers.pass(list, call.operands[i], p.sums, AT + i, 1)
    end
  end
  local nth = 0
  for _, v in ipairs(call.captured and call.captured.values or {}) do
    if math.type(v) then nth = nth + 1 end
    numbers.pass(list, v, p.sums, AT_F, nth)
  end
  return list
end

-- Traces f in a separate kernel. Returns the types of f's results, and the
-- state that the trace read.
local function look(p, call)
  local found
  local f = bound(p)
  local list = push_numbers(p, call, {n = 0})
  local program = cute.kernel("elementwise", function(...)
    local args = {}
    for i, x in ipairs(p.inputs) do
      local d = x.dtype
      if d.is_float and d.bits < 32 then d = cute.f32 end
      local r = cute.make_rmem_tensor({4}, d)
      r:fill(d == cute.boolean and false or 0)
      args[i] = r:load()
    end
    table.move({...}, 1, list.n, #args + 1, args)
    if p.at then
      local r = cute.make_rmem_tensor({4}, p.far and cute.i64 or cute.i32)
      r:fill(0)
      args[#args + 1] = r:load()
    end
    found = {f(table.unpack(args))}
    for i, x in ipairs(found) do found[i] = x.dtype end
  end)(table.unpack(list, 1, list.n)):trace {block = 32}
  p.captured:check_stores(program)
  return found, p.captured:reads(program)
end

---------------------------------------------------------------------------
-- Problems
---------------------------------------------------------------------------

-- Returns the default type of a result. `made` is the type that f returns. The
-- default is `made`, with one exception: if f returns f32 and all float inputs
-- have the same narrower type, the default is that type.
local function usual(p, made)
  if made ~= cute.f32 then return made end
  local like
  for _, x in ipairs(p.inputs) do
    if x.dtype.is_float then
      if like and like ~= x.dtype then return made end
      like = x.dtype
    end
  end
  return like and like.bits < 32 and like or made
end

-- Returns a compact layout whose modes have the order of the first input that
-- has the shape of the result. Returns nil if there is no such input; the
-- result is then row-major.
local function order_of(p)
  for _, x in ipairs(p.inputs) do
    local own = modes.extents(x.l)
    if modes.has(x.l, p.shape) then
      local far, by = {}, {}
      for i = 1, #own do
        local s = math.huge
        for _, loop in ipairs(p.loops) do
          if loop.mode == i and loop[x.at] > 0 then
            s = math.min(s, loop[x.at])
          end
        end
        far[i], by[i] = own[i] == 1 and -1 or s, i
      end
      table.sort(by, function(a, b)
        if far[a] ~= far[b] then return far[a] < far[b] end
        return a > b
      end)
      local order = {}
      for place, i in ipairs(by) do order[i] = place - 1 end
      return cute.make_ordered_layout(p.shape, order)
    end
  end
end

-- Checks the operands of a call. Puts the tensors among them into p.inputs.
local function operands_of(p, call)
  local tensors = {}
  for i, t in ipairs(call.operands) do
    if math.type(t) then
      p.operands[i] = {number = math.type(t)}
    else
      local name = p.names and p.names[i] or "operand " .. i
      tensor_op.check(p.fail, name, t)
      local x = {name = name, t = t, l = t.layout, input = #p.inputs + 1,
                 dtype = operand.plain(t.element_type)}
      p.operands[i], p.inputs[#p.inputs + 1] = x, x
      tensors[#tensors + 1] = t
      if x.dtype == cute.f64 then p.sums = x.dtype end
    end
  end
  if #tensors == 0 then
    p.fail("operand 1 is %s; at least one operand must be a tensor",
           core.show(call.operands[1]))
  end
  for i, t in ipairs(call.out) do
    tensor_op.check(p.fail, i == 1 and "out" or "out " .. i, t)
    tensors[#tensors + 1] = t
  end
  return tensors
end

-- Sets p.outputs to the results with their types and layouts. Tensors given as
-- `out` must have the results' shape.
local function outputs_of(p, call, made)
  for i = 1, math.max(#made, #call.out) do
    local t, name = call.out[i], i == 1 and p.out or "out " .. i
    if not made[i] then
      p.fail("%s is given, but there are %d results", name, #made)
    end
    local dtype = t and operand.plain(t.element_type)
      or i == 1 and p.dtype or usual(p, made[i])
    if t and not modes.has(t.layout, p.shape) then
      p.fail("%s is %s, but the %s extents (%s)", name, t.layout,
             #made == 1 and "result has" or "results have",
             table.concat(p.shape, ","))
    end
    p.outputs[i] = {name = name, t = t, dtype = dtype, l = t and t.layout
      or p.order or cute.make_layout(p.shape, cute.LayoutRight)}
  end
end

-- Sets p.loops to the loops (cute.ops.modes) of all operands, sorted and
-- merged. In each loop, loop[x.at] is the stride of operand x. loop[p.index] is
-- the stride of the element's row-major index.
local function loops_of(p)
  local list = {}
  for _, side in ipairs {p.outputs, p.inputs} do
    for _, x in ipairs(side) do
      list[#list + 1] = x
      x.at = #list
    end
  end
  if p.at then
    list[#list + 1] = {name = "index", l = cute.make_layout(p.shape,
                                                            cute.LayoutRight)}
    p.index = #list
  end
  p.loops = modes.loops(list, p.shape, p.fail)
  modes.sort(p.loops, 1, #list)
  for _, x in ipairs(p.outputs) do
    if x.t and not modes.injective(p.loops, x.at) then
      local own = {}
      for i, loop in ipairs(p.loops) do own[i] = loop end
      table.sort(own, function(a, b) return a[x.at] < b[x.at] end)
      if not modes.injective(own, x.at) then
        p.fail("%s is %s: several of its elements have the same "
          .. "address", x.name,
               x.t.layout)
      end
    end
  end
  p.loops = modes.coalesce(p.loops, #list)
end

---------------------------------------------------------------------------
-- Plans
---------------------------------------------------------------------------

-- The bytes of a multiprocessor's shared memory that all of its blocks together
-- may use for tiles.
local SHARED = 96 << 10

-- The tiles for transposing, by the number of bits of an element: the extent of
-- a tile along the result's contiguous mode, its extent along the input's
-- contiguous mode, and the number of threads of a block.
local TILES = {[8] = {256, 256, 256}, [16] = {256, 128, 256},
               [32] = {64, 64, 512}, [64] = {32, 32, 256}}
-- LARGE has larger tiles for a single operand whose rows begin in the middle of
-- memory lines: large tiles split fewer lines. A block with such a tile needs
-- ROOM bytes of shared memory. ONES has tiles for elements that are stored one
-- by one.
local LARGE, ROOM = {[8] = {512, 256, 512}, [16] = {256, 256, 512}}, 144 << 10
local ONES = {[16] = {256, 128, 256}}
local LINE = 1024  -- bits

-- Reports whether the threads of a block can divide a tile evenly among them.
-- `bits` is the size of an element.
local function fits(tile, bits)
  local warps, all = tile[2] * bits // 1024, tile[3] // 32
  if tile[1] * bits < 1024 or warps < 1 or all % warps ~= 0 then
    return false
  end
  return tile[1] * bits // 32 // math.max(1, bits // 32) % (all // warps * 4)
    == 0
end

-- Reports whether rows of operand x begin in the middle of 128-byte memory
-- lines.
local function cuts(p, x)
  for _, loop in ipairs(p.loops) do
    if loop[x.at] ~= 1 and loop[x.at] * x.dtype.bits % LINE ~= 0 then
      return true
    end
  end
  return false
end

-- Returns a tile for transposed inputs. `bits` is the size of the narrowest
-- input's elements, `all` the sum of the sizes over the inputs, and `input` one
-- of the inputs. The tile is halved repeatedly for small extents or many
-- inputs.
local function tile_for(p, bits, all, input)
  local tile, room = TILES[bits], SHARED
  if all == bits and core.smem_budget(p.device.sm) >= ROOM
    and (cuts(p, input) or cuts(p, p.outputs[1])) then
    local large = p.width == 1 and ONES[bits] or LARGE[bits]
    if large then tile, room = large, ROOM end
  end
  local extents = {p.loops[1].n, p.loops[p.across].n}
  for i = 2, 1, -1 do
    local function too_much()
      return tile[i] >= 2 * extents[i] or tile[1] * tile[2] * all > 8 * room
    end
    while too_much() do
      local half = {table.unpack(tile)}
      half[i] = tile[i] // 2
      if not fits(half, bits) then break end
      tile = half
    end
  end
  return tile
end

-- Returns the size in bits of the widest element type of a list of operands.
local function widest(list)
  local bits = 8
  for _, x in ipairs(list) do bits = math.max(bits, x.dtype.bits) end
  return bits
end

-- Returns the number of elements in a thread's vector. A vector has 16 bytes of
-- the widest result, so that a warp stores contiguous memory. It has at most 32
-- bytes of the widest input: a comparison of f32 that loads 64 bytes for 16
-- booleans takes 1.16 times as long as with 32 bytes (2048x4096 on an H200).
local function vector(p)
  local bits = math.max(widest(p.outputs), widest(p.inputs) // 2)
  local w = 16
  for _, x in ipairs(p.outputs) do
    w = math.min(w, modes.width(p.loops, x.at, x.dtype.bits,
      x.t and x.t.alignment or 256, 128 // bits))
  end
  while p.across and p.loops[1].n % w ~= 0 do w = w // 2 end
  return w
end

-- Selects the inputs that must be transposed, because they are contiguous along
-- another mode than the result. Sets p.across to that mode, and returns the
-- tile. Returns nil if there are no such inputs, or if that mode or the
-- result's contiguous mode is too short.
local function choose_turned(p)
  local first, most = p.loops[1], 0
  if first[1] ~= 1 then return nil end
  local function along(x)
    for k = 2, #p.loops do
      local loop = p.loops[k]
      if loop[x.at] == 1 and first[x.at] > 0
        and math.max(loop.n, first.n) < 1 << 31
        and math.min(loop.n, first.n) * x.dtype.bits >= 256 then return k end
    end
  end
  for _, x in ipairs(p.inputs) do
    local k = along(x)
    if k and x.dtype.bits > most then p.across, most = k, x.dtype.bits end
  end
  if not p.across then return nil end
  local bits, all, input = 64, 0, nil
  for _, x in ipairs(p.inputs) do
    x.turned = along(x) == p.across
    if x.turned then
      bits, all = math.min(bits, x.dtype.bits), all + x.dtype.bits
      x.width = modes.width(p.loops, x.at, x.dtype.bits, x.t.alignment,
                            128 // x.dtype.bits, p.across)
      input = x
    end
  end
  p.width = vector(p)
  local tile = tile_for(p, bits, all, input)
  for _, x in ipairs(p.inputs) do
    x.turned = x.turned and fits(tile, x.dtype.bits)
  end
  return tile
end

-- Reports whether the kernel loads rows of the transposed input x at any
-- alignment. It does so for narrow elements whose rows do not allow 16-byte
-- vectors.
local function shifts(x)
  return x.dtype.bits <= 16 and x.width * x.dtype.bits < 128
    and x.t.alignment >= 16
end

-- Returns the number of vectors of each thread if vectors are short, otherwise
-- nil: kernels/elementwise.lua then chooses the number.
local function steps_of(p, width)
  local bits = widest(p.outputs)
  if width == 1 then return bits < 32 and 8 or 4 end
  local steps = math.min(128 // (width * bits),
                         256 // (width * widest(p.inputs)))
  return steps > 1 and steps or nil
end

-- The configurations for transposing matrices whose rows have any alignment, by
-- the number of bits of an element: the tile, the number of threads of a block,
-- and the number of threads of a block that loads with tensor maps (TMA).
local ANYWHERE = {[8] = {{256, 128}, 256, 512}, [16] = {{128, 128}, 256, 512},
                  [32] = {{64, 128}, 512, 1024}, [64] = {{64, 64}, 512, 512}}

-- Reports whether tensor maps can describe the rows that the transposition with
-- options o reads.
local function mapped(p, o)
  if not core.has(p.device.sm, "a bulk copy") or #o.extents > 5 then
    return nil
  end
  for i = 3, #o.extents do
    if o.from[i] <= 0 or o.from[i] * o.dtype.bits % 128 ~= 0 then return nil end
  end
  for i, n in ipairs(o.extents) do
    if n >= 1 << 31 or o.from[i] >= 1 << 32 then return nil end
  end
  return true
end

-- Returns the transpose kernel for problem p, or nil if that kernel does not
-- support p. It supports plain transpositions of matrices that have at least
-- one tile, and whose rows do not allow 16-byte vectors.
local function anywhere(p)
  local x, y = p.inputs[1], p.outputs[1]
  local bits = y.dtype.bits
  if not (p.as_is and x.turned and math.min(x.width, p.width) * bits < 128)
    or x.t.alignment < 16 or y.t and y.t.alignment < 16 then return nil end
  local tile, block, by_maps = table.unpack(ANYWHERE[bits])
  if p.loops[1].n < tile[1] or p.loops[p.across].n < tile[2] then return nil end
  local o = {name = p.name, dtype = p.as_is, pdl = p.pdl, tile = tile,
             extents = {}, from = {}, to = {}}
  local order = {1, p.across}
  for i = 2, #p.loops do
    if i ~= p.across then order[#order + 1] = i end
  end
  for k, i in ipairs(order) do
    local loop = p.loops[i]
    if loop[x.at] < 0 then return nil end
    o.extents[k], o.from[k], o.to[k] = loop.n, loop[x.at], loop[y.at]
  end
  o.maps = mapped(p, o)
  o.block = o.maps and by_maps or block
  return transpose(o)
end

-- Returns the kernel for problem p; f is the user's function.
local function kernel_of(p, f)
  local tile = not calls.any and choose_turned(p) or nil
  local turn = tile and anywhere(p)
  if turn then return turn end
  local w = vector(p)
  local o = {f = f, name = p.name, width = w, fastmath = false, tile = tile,
    across = p.across, scalars = p.scalars or 0, as_is = p.as_is,
    block = tile and tile[3], wide = p.far, pdl = p.pdl,
    nonfinite = p.nonfinite, steps = steps_of(p, w),
    dynamic = calls.any or nil,
    index = p.index and select(2, modes.column(p.loops, p.index)) or nil}
  o.extents = modes.column(p.loops, 1)
  p.extents = calls.any and o.extents
  local function side(list)
    local out = {}
    for i, x in ipairs(list) do
      out[i] = {dtype = p.as_is or x.dtype, turned = x.turned or nil,
                stride = select(2, modes.column(p.loops, x.at))}
      if x.turned then
        out[i].width, out[i].shifted = x.width, shifts(x) or nil
      end
    end
    return out
  end
  o.inputs, o.outputs = side(p.inputs), side(p.outputs)
  return elementwise(o)
end

-- Returns a function that checks a call and its results before a new launch. A
-- result may overlap an operand only if element i of both has the same address,
-- for every i. `take` is the second function of `bound`.
local function checker(p, take)
  return function(call, out)
    if take then take(call.captured) end
    local tensors = {}
    for i, x in ipairs(p.operands) do
      if not x.number then
        tensors[#tensors + 1] = {x, call.operands[i], x.name}
      end
    end
    for i, x in ipairs(p.outputs) do
      for _, y in ipairs(tensors) do
        local how = modes.meet(p.loops, x.at, out[i], y[1].at, y[2])
        if how == "mixed" or how == "same" and y[1].out then
          p.fail("%s shares memory with %s", x.name, y[3])
        end
      end
      tensors[#tensors + 1] = {{at = x.at, out = true}, out[i], x.name}
    end
  end
end

-- Returns a function that computes the kernel's arguments from a call and its
-- results.
local function arguments_of(p, made)
  if made.arguments then
    return function(call, out)
      return made.arguments(call.operands[1], out[1])
    end
  end
  return function(call, out)
    local args = {n = 0}
    for i, x in ipairs(p.operands) do
      if not x.number then numbers.push(args, call.operands[i]) end
    end
    for _, t in ipairs(out) do numbers.push(args, t) end
    if p.f then args = push_numbers(p, call, args) end
    for _, n in ipairs(p.extents or {}) do numbers.push(args, n) end
    return args
  end
end

local function plan_of(p, call)
  local tensors = operands_of(p, call)
  p.device, p.place, p.pdl = tensor_op.device(tensors, call.o)
  local list = {}
  for i, x in ipairs(p.inputs) do list[i] = x end
  if p.to then list[#list + 1] = {name = p.out, l = call.out[1].layout} end
  p.shape = modes.shape(list, p.fail)
  p.far = cute.product(p.shape) >= 1 << 31
  -- types: the types of f's results. read: the state that a trace of f read.
  local types, read
  if p.f then
    local most = takes(p.f)
    p.at = most and most > #p.operands
    if p.at and most > #p.operands + 1 then
      p.fail("%s has %d parameters, but there %s; at most one more, `at`, "
        .. "is possible", where_is(p.f), most, #p.operands == 1
        and "is 1 operand" or ("are %d operands"):format(#p.operands))
    end
    if most and most > 0 and most < #p.operands then
      report.note(("ops.elementwise: %s has %d parameter%s, but there are %d "
        .. "operands: it does not get the last"):format(where_is(p.f), most,
        most == 1 and "" or "s", #p.operands))
    end
    p.captured, p.floats = call.captured, {}
    for i, v in ipairs(call.captured.values) do
      p.floats[i] = math.type(v) == "float"
    end
    types, read = look(p, call)
  else
    types = {p.dtype or p.inputs[1].dtype}
  end
  if not call.out[1] and not p.rows then
    p.loops = modes.loops(p.inputs, p.shape, p.fail)
    for i, x in ipairs(p.inputs) do x.at = i end
    p.order = order_of(p)
  end
  outputs_of(p, call, types)
  loops_of(p)
  local results = {}
  for i, x in ipairs(p.outputs) do
    results[i] = {shape = p.shape, order = p.order, dtype = x.dtype}
  end
  -- There are no elements, so nothing is launched.
  if cute.product(p.shape) == 0 then
    return {device = p.device, place = p.place, results = results, steps = {}}
  end
  local f, take = function(x) return x end, nil
  if p.f then f, take = bound(p, read) end
  if not p.f and p.inputs[1].dtype == p.outputs[1].dtype then
    -- The bits are copied without conversion, as integers of the same width.
    p.as_is = cute["u" .. p.inputs[1].dtype.bits]
  end
  p.scalars = p.f and push_numbers(p, call, {n = 0}).n or 0
  local made = kernel_of(p, f)
  -- The plan is reused for calls with other tensors, so it keeps no tensor of
  -- this call.
  p.f, p.captured = p.f and true, nil
  for _, x in ipairs(p.inputs) do x.t = nil end
  for _, x in ipairs(p.outputs) do x.t = nil end
  return {device = p.device, place = p.place, results = results,
    check = checker(p, take),
    steps = {{kernel = made.kernel, grid = made.grid, block = made.block,
              ready = {}, pdl = p.pdl, arguments = arguments_of(p, made),
              extents = p.extents and #p.extents, share = made.share}}}
end

---------------------------------------------------------------------------
-- Calls
---------------------------------------------------------------------------

local NONE = {}
local known = calls.new()

local function converting(src, dst, o)
  return plan_of({name = "convert", operands = {}, inputs = {}, outputs = {},
    out = "dst", to = true, names = {"src"},
    fail = tensor_op.failing "ops.convert"},
    {operands = {src}, o = o, out = {dst}}).steps[1]
end

--- Returns the step (see cute.ops.tensor_op) that converts src into dst, for
-- use in other operations. o may have device and arch.
function ops.converting(src, dst, o) return converting(src, dst, o or NONE) end

--- Returns a list of steps (launches of a plan, see cute.ops.tensor_op) that
-- set all elements of a result like dst to one number. The launches read the
-- number from a tensor of one element. Each call of the plan needs a new one,
-- so the plan must set `anew` (see tensor_op.run). o has the fields device and
-- arch.
function ops.filling(dst, value, dtype, o)
  if cute.size(dst) == 0 then return {} end
  -- A recorded graph keeps its tensor, so each call needs a new one.
  local function one()
    return cute.full({1}, value, dtype, {device = dst.device})
  end
  local step = converting(one(), dst, {device = o.device, arch = o.arch})
  local arguments = step.arguments
  function step.arguments(_, out)
    return arguments({operands = {one()}}, out)
  end
  return {step}
end

-- Returns the arguments that identify a call of an operation. Their order fixes
-- the indices AT_F (of f) and AT + i (of operand i); both of these may contain
-- numbers.
local function arguments(what, f, o, operands)
  local stream = o.stream
  return what, f, o.out, o.dtype, o.device, o.arch,
    type(stream) == "table" and tostring(stream) or stream,
    table.unpack(operands)
end

local function run(what, f, o, operands, more, plan)
  tensor_op.options(what:match "%S+", o)
  local seen = more and more.view and {more.view(operands[1])} or operands
  local call = {operands = seen, o = o, out = tensor_op.outputs(o),
                captured = f and capture.of(f)}
  if not plan then
    local name = what:match "%S+"
    local p = {name = name:sub(5), f = f, operands = {}, inputs = {},
               fail = tensor_op.failing(name), outputs = {}, out = "out",
               dtype = tensor_op.dtype(name, o)}
    for k, v in pairs(more or NONE) do p[k] = v end
    plan = plan_of(p, call)
    known:add(plan, arguments(what, f, o, operands))
  end
  return tensor_op.run(plan, call, function(ready)
    known:ready(ready, arguments(what, f, o, operands))
  end)
end

local function finish(what, f, o, operands, more, launched, ...)
  if not launched then return run(what, f, o, operands, more, ...) end
  return calls.results(o.out, ...)
end

local function start(what, f, o, operands, more)
  return finish(what, f, o, operands, more,
                known(arguments(what, f, o, operands)))
end

--- Applies f to each element of tensors that broadcast. See docs/ops.md.
---@param f function receives vectors and, with one more parameter, `at`
---@param ... any tensors, numbers, options
function ops.elementwise(f, ...)
  local list, n = {...}, select("#", ...)
  local o = NONE
  if tensor_op.is_options(list[n]) then o, list[n], n = list[n], nil, n - 1 end
  for i = 1, n do
    if list[i] == nil then
      tensor_op.failing "ops.elementwise"("operand %d is nil; a tensor or a "
        .. "number is needed", i)
    end
  end
  return start("ops.elementwise", f, o, list)
end

--- Applies an operator to tensors and numbers. Accepts NaNs and infinities in
-- the result without a report, because they follow from IEEE 754, as in x / 0.
---@param f function
---@param ... any tensors, numbers
function ops.operator(f, ...)
  return start("ops.elementwise", f, NONE, {...}, {nonfinite = true})
end

--- Returns a copy of src, or copies src into dst with conversion to dst's type.
---@param src any
---@param dst? any
---@param o? table
function ops.copy(src, dst, o)
  if tensor_op.is_options(dst) and o == nil then dst, o = nil, dst end
  if dst == nil then return start("ops.copy", nil, o or NONE, {src}, {
    names = {"src"}}) end
  return start("ops.copy", nil, tensor_op.with(o, {out = dst}), {src}, {
    names = {"src"}, out = "dst", to = true})
end

--- Queues the copy dst = src of two tensors of the same shape on the GPU that
-- holds them. Returns false if this is not possible, because a layout is
-- composed or because elements of dst share addresses.
---@param dst any
---@param src any
---@param stream? any
---@return boolean
function ops.move(dst, src, stream)
  local a, b = dst.layout, src.layout
  if a.is_composed or b.is_composed or cute.rank(a) ~= cute.rank(b) then
    return false
  end
  for m = 0, cute.rank(a) - 1 do
    if cute.size(a, m) ~= cute.size(b, m) then return false end
  end
  local loops = modes.loops({{name = "dst", l = a}, {name = "src", l = b}},
    modes.extents(a), tensor_op.failing "copy_from")
  modes.sort(loops, 1, 2)
  if not modes.injective(loops, 1) then return false end
  if modes.meet(loops, 1, dst, 2, src) == "mixed" then
    src = src:clone(stream and {stream = stream})
  end
  ops.copy(src, dst, {stream = stream})
  return true
end

--- Converts x to another type. cute.ops.convert also supports formats with
-- scale factors.
function ops.convert(x, dtype, o)
  return start("ops.convert", nil, tensor_op.with(o, {dtype = dtype}), {x}, {
    names = {"x"}})
end

-- Returns x with its modes permuted: mode perm[i] at position i. Without perm,
-- the last two modes are exchanged.
local function turned(x, perm, fail)
  tensor_op.check(fail, "x", x)
  local rank = cute.rank(x)
  if perm == nil then
    if rank < 2 then
      fail("x is %s; ops.transpose needs at least two modes", core.show(x))
    end
    perm = {}
    for i = 1, rank do perm[i] = i - 1 end
    perm[rank - 1], perm[rank] = rank - 1, rank - 2
  end
  local seen, good = {}, #perm == rank
  for _, i in ipairs(perm) do
    good = good and math.type(i) == "integer" and i >= 0 and i < rank
      and not seen[i]
    seen[i] = true
  end
  if not good then
    local words = {}
    for i, v in ipairs(perm) do words[i] = tostring(v) end
    fail("x is %s, but {%s} is not a permutation of its modes 0 to %d",
         x.layout, table.concat(words, ", "), rank - 1)
  end
  return cute.make_tensor(x.iterator, cute.select(x.layout, perm))
end

-- Returns a permutation as text, which becomes part of a call's name.
local function order(perm)
  local words = {"ops.transpose"}
  for i, v in ipairs(perm) do words[i + 1] = tostring(v) end
  return table.concat(words, " ")
end

--- Returns a new tensor: x with its last two modes exchanged, or with mode
-- perm[i] at position i.
---@param x any
---@param perm? integer[]
---@param o? table
function ops.transpose(x, perm, o)
  if o == nil and perm and perm[1] == nil then perm, o = nil, perm end
  return start(perm and order(perm) or "ops.transpose", nil, o or NONE, {x},
    {names = {"x"}, rows = true, view = function(t)
      return turned(t, perm, tensor_op.failing "ops.transpose")
    end})
end

return ops
-- SPDX-License-Identifier: MIT
