--- Reductions of tensors with any strides: ops.reduce.
--
-- Reduced modes and kept modes are sorted by stride, separately. The vectors
-- that a thread loads run along the contiguous mode. This can be a reduced mode
-- (sums of rows) or a kept mode (sums of columns); see
-- kernels/reduce_tensor.lua. If there would be too few blocks, several blocks
-- share a result, and further kernels reduce their partial results.
local calls = require "cute.ops.calls"
local core = require "cute.core"
local elementwise = require "cute.ops.elementwise"
local cute = require "cute"
local reduce_tensor = require "kernels.reduce_tensor"
local sign = require "cute.lang.signature"
local modes = require "cute.ops.modes"
local operand = require "cute.ops.operand"
local tensor_op = require "cute.ops.tensor_op"

local reduce = {}

local PLACES = {argmax = true, argmin = true}
local OPS = {argmax = true, argmin = true}
for name in pairs(reduce_tensor.OPS) do OPS[name] = true end
local FLOATS = {mean = true, norm = true, rms = true}

local fail = tensor_op.failing "ops.reduce"

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

-- Returns the set of modes to reduce, counted from 1. `by` is "row" (reduces
-- each row to one result), "column", "all", or a list of modes.
local function gone_of(x, by)
  local rank, gone = cute.rank(x), {}
  if by == "all" then
    for m = 1, rank do gone[m] = true end
  elseif by == "row" or by == "column" then
    local m = by == "row" and rank or rank - 1
    if m < 1 then
      fail("x is %s; %s needs two modes", x.layout, by)
    end
    gone[m] = true
  elseif type(by) == "table" then
    for _, m in ipairs(by) do
      if math.type(m) ~= "integer" or m < 0 or m >= rank or gone[m + 1] then
        fail("by = %s; a mode of x, %s, is needed: 0 to %d, each at most "
          .. "once", core.show(m),
             x.layout, rank - 1)
      end
      gone[m + 1] = true
    end
    if next(gone) == nil then fail("by = {}; at least one mode to reduce is "
      .. "needed") end
  else
    sign.unknown("way 'by'", by, {row = true, column = true, all = true},
                 "ops.reduce")
  end
  return gone
end

-- Returns the accumulator type of an operation, and the default type of the
-- result.
local function types_of(op, dtype, count)
  if PLACES[op] then
    return nil, count < 1 << 31 and cute.i32 or cute.i64
  elseif dtype.is_float or FLOATS[op] then
    local t = dtype == cute.f64 and cute.f64 or cute.f32
    return t, t
  end
  local bits = dtype.bits
  if op == "sum" or op == "prod" then
    local safe = op == "sum" and bits < 32 and count << bits < 1 << 31
    return safe and cute.i32 or cute.i64, cute.i64
  end
  if op == "amax" then
    return bits == 64 and cute.u64 or cute.u32, cute["u" .. bits]
  end
  if bits == 64 or dtype == cute.u32 then return dtype, dtype end
  return cute.i32, dtype
end

-- Returns four values: the shape of the result; the number of elements of x
-- that each element of the result combines; the loops (cute.ops.modes) over
-- kept modes; and the loops over reduced modes. The loops have three operands:
-- x, the result, and the index within the reduced modes.
local function loops_of(x, gone, out)
  local shape, count, kept = modes.extents(x.layout), 1, {}
  for m, n in ipairs(shape) do
    if gone[m] then count = count * n else kept[#kept + 1] = n end
  end
  if #kept == 0 then kept[1] = 1 end
  if out and not modes.has(out.layout, kept) then
    fail("out is %s, but the result has extents (%s)", out.layout,
         table.concat(kept, ","))
  end
  -- The layouts of the result and of the index have as many modes as x. Modes
  -- of x that the result (or the index) does not have get extent 1.
  local y = out and out.layout or cute.make_layout(kept, cute.LayoutRight)
  local yshape, ystride, ishape, istride, at = {}, {}, {}, {}, 0
  local index = 1
  for m = #shape, 1, -1 do
    ishape[m], istride[m] = gone[m] and shape[m] or 1, gone[m] and index or 0
    index = gone[m] and index * shape[m] or index
  end
  for m = 1, #shape do
    if gone[m] then
      yshape[m], ystride[m] = 1, 0
    else
      at = at + 1
      yshape[m], ystride[m] = y.shape[at], y.stride[at]
    end
  end
  local all = modes.loops({{name = "x", l = x.layout},
    {name = "out", l = cute.make_layout(yshape, ystride)},
    {name = "index", l = cute.make_layout(ishape, istride)}}, shape, fail)
  local lists = {[true] = {}, [false] = {}}
  for _, loop in ipairs(all) do
    table.insert(lists[gone[loop.mode] or false], loop)
  end
  for _, list in pairs(lists) do modes.sort(list, 1, 3) end
  local stay = lists[false]
  local own = table.move(stay, 1, #stay, 1, {})
  table.sort(own, function(a, b) return a[2] < b[2] end)
  if out and not modes.injective(own, 2) then
    fail("out is %s: several of its elements have the same address", out.layout)
  end
  return kept, count, modes.coalesce(stay, 3), modes.coalesce(lists[true], 3)
end

---------------------------------------------------------------------------
-- Work distribution
---------------------------------------------------------------------------

local function up(a, b) return (a + b - 1) // b end

-- Returns the least power of 2 that is at least n.
local function power(n)
  local p = 1
  while p < n do p = 2 * p end
  return p
end

-- RESIDENT is the approximate number of threads that a multiprocessor runs at
-- once. STEPS is the largest number of vectors that a thread loads at once.
-- BLOCK is the number of threads of a block.
local RESIDENT, STEPS, BLOCK, WARP = 2048, 8, 256, 32
-- The number of waves of blocks in a launch. A multiprocessor starts a new
-- block whenever one ends, so several waves compensate for blocks of different
-- duration.
local WAVES = 8
-- The largest number of elements that a thread holds at once during argmax and
-- argmin, which need more registers for each element. A thread holds half as
-- many if each element belongs to a different result.
local HELD = 64

-- If there are at most FEW rows, one thread may reduce all of them. The blocks
-- then have ALONE threads.
local FEW, ALONE = 4, 128
local INDEX = 64  -- bits of an index, the result of argmax and argmin

-- Returns the number of blocks that share a result, so that every
-- multiprocessor has blocks, if possible. `rounds` is the number of loop
-- iterations that a thread executes if one block computes the result. If blocks
-- share the result, a thread still executes at least 2 iterations.
local function splits_for(p, blocks, rounds)
  local want = p.sms * (RESIDENT // BLOCK) * WAVES
  if 2 * blocks > want then return 1 end
  return math.max(1, math.min(up(want, blocks), rounds // 2))
end

-- Returns the kernel for reductions whose vectors run along the reduced modes.
local function along(p, o, vectors)
  -- The number of elements of a row after its last vector. Each is loaded by a
  -- different thread.
  local rest = o.folded.extents[1] % o.width
  -- The number of threads for the vectors of a row. Each thread loads about two
  -- vectors.
  local few = vectors > 2 and up(vectors, 2) or vectors
  o.threads = math.min(power(math.max(few, rest)), WARP)
  while o.threads < BLOCK and vectors > o.threads * STEPS do
    o.threads = 2 * o.threads
  end
  o.block = math.max(BLOCK, o.threads)
  o.steps = math.min(STEPS, power(up(vectors, o.threads)))
  if o.index then o.steps = math.max(1, math.min(o.steps, HELD // o.width)) end
  o.splits = o.splits or splits_for(p, up(o.places * o.threads, o.block),
                                    up(vectors, o.threads * o.steps))
  return reduce_tensor.along(o)
end

local function across(p, o, rows)
  -- One thread reduces all rows if the rows are few and the results many.
  local alone = rows <= FEW and o.places >= p.sms * ALONE * o.width
  -- Such a thread stores at most 16 bytes of indices. With more, the stores of
  -- a warp would not be contiguous.
  if alone and o.index then o.width = math.min(o.width, 128 // INDEX) end
  local wide = o.places // o.width
  o.block, o.lanes = BLOCK, math.min(power(wide), WARP)
  local deep = o.block // o.lanes
  while deep > 1 and deep > rows do deep = deep // 2 end
  if alone then o.lanes, deep = ALONE, 1 end
  o.block = math.max(WARP, deep * o.lanes)
  deep = o.block // o.lanes
  o.steps = math.min(STEPS, power(up(rows, deep)))
  if o.index then o.steps = math.max(1, math.min(o.steps, HELD // 2 // o.width))
  end
  o.splits = o.splits or splits_for(p, up(wide, o.lanes),
                                    up(rows, deep * o.steps))
  return reduce_tensor.across(o)
end

-- Returns the kernel of a reduction. `stay` has the loops over kept modes,
-- `gone` the loops over reduced modes.
local function kernel_of(p, o, stay, gone, dtype, alignment)
  local function column(loops, i)
    local e, s = modes.column(loops, i)
    return {extents = e, stride = s}
  end
  o.dtype, o.kept, o.folded = dtype, column(stay, 1), column(gone, 1)
  o.stride, o.places = column(stay, 2).stride, 1
  for _, n in ipairs(o.kept.extents) do o.places = o.places * n end
  local vectors = 1
  for _, n in ipairs(o.folded.extents) do vectors = vectors * n end
  local most = 128 // dtype.bits
  -- Returns the number of elements of a vector along the loop first[1]. The
  -- memory is also accessed along the other loops of `first` and along the
  -- loops `rest`.
  local function width(first, rest)
    local all = table.move(first, 1, #first, 1, {})
    for _, loop in ipairs(rest) do if loop.n > 1 then
      all[#all + 1] = loop
    end end
    return modes.width(all, 1, dtype.bits, alignment, most)
  end
  local down, side = width(gone, stay), width(stay, gone)
  -- If rows are contiguous, the elements after a row's last vector are loaded
  -- one by one, so the extent need not be a multiple of the vector.
  if #gone == 1 and gone[1][1] == 1 then
    local w = most
    local function odd()
      if alignment * 8 % (w * dtype.bits) ~= 0 or gone[1].n < w then
        return true
      end
      for _, loop in ipairs(stay) do
        if loop.n > 1 and loop[1] % w ~= 0 then return true end
      end
    end
    while w > 1 and odd() do w = w // 2 end
    down = w
  end
  local function near(loops)
    local s = loops[1].n > 1 and loops[1][1] or 0
    return s == 0 and math.huge or s
  end
  if near(stay) < near(gone) then
    o.width = stay[1].n % side == 0 and side or 1
    return across(p, o, vectors)
  end
  o.width = down
  return along(p, o, up(vectors, down))
end

---------------------------------------------------------------------------
-- Plans
---------------------------------------------------------------------------

-- A NaN with sign bit 0: on x86-64, the sign bit of 0 / 0 itself is 1.
local NAN = -(0 / 0)
-- Results of reductions over no elements, as in NumPy and PyTorch.
local NOTHING = {sum = 0, prod = 1, norm = 0, mean = NAN, rms = NAN}

--- Returns the result of operation `op` over no elements. Raises an error if
-- this result is undefined.
---@param raise fun(text: string, ...)
---@param op string
---@param x string describes the reduced operand, such as "x is (0,8):(8,1)"
function reduce.of_nothing(raise, op, x)
  return NOTHING[op] or raise("%s: %s over no elements is undefined", x, op)
end

local function part_view(work, at, n, dtype)
  local t = cute.make_tensor(work.iterator + at, cute.make_layout {n})
  if dtype == cute.f32 then return t end
  return cute.make_tensor(cute.recast_tensor(t, dtype).iterator,
                          cute.make_layout {n * 32 // dtype.bits})
end

-- Returns the launches of a reduction: the first kernel and, if several blocks
-- share a result, the kernels that reduce their partial results.
local function steps_of(p, o, x, stay, gone)
  local list, at, before = {}, 0, {}
  local dtype, alignment = p.dtype, x.alignment
  -- The loops over kept modes for the next launch, whose operand 1 has the
  -- partial results. There, consecutive results are adjacent.
  local places, reach = {}, 1
  for i, loop in ipairs(stay) do
    places[i] = {n = loop.n, [1] = reach, [2] = loop[2], [3] = 0}
    reach = reach * loop.n
  end
  places = modes.coalesce(places, 3)
  local function views(parts, work)
    local out = {}
    for i, q in ipairs(parts) do
      out[i] = part_view(work, q.at, q.n, q.dtype)
    end
    return out
  end
  repeat
    local made = kernel_of(p, o, stay, gone, dtype, alignment)
    local from, parts = before, {}
    for i, t in ipairs(o.splits > 1 and made.types or {}) do
      local n = o.places * o.splits * t.bits // 32
      parts[i] = {at = at, n = n, dtype = t}
      at = at + up(n, 64) * 64
    end
    list[#list + 1] = {kernel = made.kernel, grid = made.grid,
      block = made.block, ready = {}, pdl = p.pdl,
      arguments = function(call, out, work)
        local first = from[1] and views(from, work) or call.operands
        local args = {first[1], out[1], first[2]}
        for _, t in ipairs(views(parts, work)) do args[#args + 1] = t end
        args.n = #args
        return args
      end}
    before, stay, dtype, alignment = parts, places, made.types[1], 256
    gone = {{n = o.splits, [1] = o.places, [2] = 0, [3] = 0}}
    o = {op = o.op, sums = o.sums, count = o.count, wide = o.wide,
         pdl = p.pdl, of_parts = true, name = "reduce_" .. o.op .. "_parts",
         from = p.dtype}
  until #parts == 0
  p.floats = at > 0 and at or nil
  return list
end

local function plan_of(op, call)
  local x, o = call.operands[1], call.o
  tensor_op.check(fail, "x", x)
  if call.out[1] then tensor_op.check(fail, "out", call.out[1]) end
  if call.out[2] then fail "out 2 is given, but there is only one result" end
  local gone = gone_of(x, o.by or "all")
  local kept, count, stay, go = loops_of(x, gone, call.out[1])
  local dtype = operand.plain(x.element_type)
  if dtype == cute.boolean then
    fail("x has booleans: convert them to numbers with ops.convert")
  end
  local sums, usual = types_of(op, dtype, count)
  local p = {dtype = dtype, floats = nil}
  p.device, p.place, p.pdl = tensor_op.device({x, call.out[1]}, o)
  p.sms = p.device.info and p.device.info.sms or 132
  local first = {op = op, sums = sums, count = count, wide = count >= 1 << 31,
                 pdl = p.pdl, name = "reduce_" .. op}
  if PLACES[op] then
    first.index = select(2, modes.column(go, 3))
    first.ordered = modes.injective(go, 3)
  end
  local result = tensor_op.dtype("ops.reduce", o) or usual
  local plan = {device = p.device, place = p.place, steps = {}, anew = true,
                results = {{shape = kept, dtype = result}}}
  if count == 0 then
    local value = reduce.of_nothing(fail, op, ("x is %s"):format(x.layout))
    local dst = call.out[1] or calls.empty(kept, result, p.place)
    plan.steps = elementwise.filling(dst, value, sums, o)
    return plan
  elseif cute.product(kept) == 0 then
    return plan
  end
  local steps = steps_of(p, first, x, stay, go)
  return {device = p.device, place = p.place, floats = p.floats, steps = steps,
    results = {{shape = kept, dtype = result}},
    check = function(now, out)
      local _, _, _, together = core.kind({now.operands[1], out[1], n = 2}, 0)
      if together then fail "out shares memory with x" end
    end}
end

---------------------------------------------------------------------------
-- Calls
---------------------------------------------------------------------------

local NONE = {}
local OPTIONS = {by = "string table"}
local known = calls.new()

local function arguments(x, op, o)
  local stream, by = o.stream, o.by
  if type(by) == "table" then
    local words = {}
    for i, m in ipairs(sign.list("by", by)) do words[i] = tostring(m) end
    by = table.concat(words, ",")
  end
  return x, op, by, o.out, o.dtype, o.device, o.arch,
    type(stream) == "table" and tostring(stream) or stream
end

local function run(x, op, o, plan)
  tensor_op.options("ops.reduce", o, OPTIONS)
  if not OPS[op] then sign.unknown("operation", op, OPS, "ops.reduce") end
  local call = {operands = {x}, o = o, out = tensor_op.outputs(o)}
  if not plan then
    plan = plan_of(op, call)
    known:add(plan, arguments(x, op, o))
  end
  return tensor_op.run(plan, call, function(ready)
    known:ready(ready, arguments(x, op, o))
  end)
end

local function finish(x, op, o, launched, ...)
  if not launched then return run(x, op, o, ...) end
  return calls.results(o.out, ...)
end

--- Reduces modes of x by an operation such as "sum". See docs/ops.md.
---@param x any
---@param op string sum mean prod max min amax norm rms
-- argmax argmin
---@param o? {by: string|integer[], out: any, dtype: any}
function reduce.reduce(x, op, o)
  o = o or NONE
  return finish(x, op, o, known(arguments(x, op, o)))
end

return reduce
-- SPDX-License-Identifier: MIT
