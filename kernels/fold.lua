--- Reductions of tensors of any strides: of the modes `folded`, for each place
-- of the modes `kept`.
--
--     local k = fold.along {op = "sum", dtype = cute.bf16, width = 8,
--                           kept = {extents = {100}, stride = {4096}},
--                           folded = {extents = {4096}, stride = {1}},
--                           stride = {1}, sums = cute.f32}
--     k.kernel(X, Y):launch {grid = k.grid, block = k.block}
--
-- along: vectors of `width` elements lie along the first folded mode, `threads`
-- of a block share a place; across: along the first kept mode, `lanes` vectors
-- of a block side by side, the other threads below each other. Either way a
-- thread asks for `steps` vectors at once. With `splits` several blocks share a
-- place, and leave what they found in parts, (PLACES,SPLITS), which another
-- reduction folds (kernels' last arguments). All is done in one order that the
-- numbers of a plan decide: the same operands give the same bits.
--
-- op: "sum" "mean" "prod" "max" "min" "amax" (of magnitudes) "norm" (root of
-- the sum of squares) "rms" (of their mean), or a table {of = function(a, b),
-- init = x, map =, after = function(x, count)}; "argmax" "argmin" give where
-- the largest or smallest element is: the first of equals, with `index` the
-- strides of the folded modes in what is given. max and min pass NaNs by; to
-- argmax and argmin a NaN goes before all numbers.
local cute = require "cute"
local core = require "cute.core"
local _ = cute._

local fold = {}

local WARP = 32

local function up(a, b) return (a + b - 1) // b end

---------------------------------------------------------------------------
-- Operations
---------------------------------------------------------------------------

local function add(a, b) return a + b end
local function square(x) return x * x end

fold.OPS = {
  sum = {of = add, init = 0},
  mean = {of = add, init = 0, after = function(x, n) return x / n end},
  prod = {of = function(a, b) return a * b end, init = 1},
  max = {of = cute.max, init = -math.huge},
  min = {of = cute.min, init = math.huge},
  amax = {of = cute.max, init = 0, map = cute.abs},
  norm = {of = add, init = 0, map = square,
          after = function(x) return cute.sqrt(x) end},
  rms = {of = add, init = 0, map = square,
         after = function(x, n) return cute.sqrt(x / n) end},
}

--- The operation of that name, or a table that is one.
---@param name any
---@return table
function fold.op(name)
  local op = fold.OPS[name] or name
  if type(op) ~= "table" then
    local names = {}
    for n in pairs(fold.OPS) do names[#names + 1] = n end
    table.sort(names)
    core.fail("unknown-name", ("reduce: no op '%s': %s, or a table {of =, "
      .. "init =}"):format(tostring(name), table.concat(names, ", ")))
  end
  return op
end

-- What sums hold is a list of values, or of vectors: of most operations one.
local function plain(op, sums)
  local init = op.init
  if sums.is_integer and math.type(init) == "float" then
    local signed = not sums.name:find "^u"
    local bits = sums.bits - (signed and 1 or 0)
    local most = bits == 64 and -1 or (1 << bits) - 1
    init = init > 0 and most or signed and -most - 1 or 0
  end
  return {types = {sums}, init = {init},
    take = function(x)
      x = x:to(sums)
      return {op.map and op.map(x) or x}
    end,
    join = function(a, b) return {op.of(a[1], b[1])} end}
end

-- An integer that is ordered as the numbers are, with -0 as 0 and NaN above
-- all.
local function key(x, smallest)
  if x.dtype.is_float then
    local wide = x.dtype.bits == 64
    local int, top = wide and cute.i64 or cute.i32, wide and 63 or 31
    local most = (1 << top) - 1
    if x.dtype.bits < 32 then x = x:to(cute.f32) end
    if smallest then x = -x end
    local bits = (x + 0.0):bitcast(int)
    return cute.where(cute.ne(x, x), most, bits ~ ((bits >> top) & most))
  end
  local d = x.dtype
  if d == cute.u64 then x = (x ~ (1 << 63)):bitcast(cute.i64)
  elseif d == cute.u32 then x = x:to(cute.i64)
  elseif d.bits < 32 then x = x:to(cute.i32) end
  return smallest and ~x or x
end

--- Of what elements of a type are ordered by the largest, and where it is:
-- {types, init, take = function(x, index), join = function(a, b)} of lists of
-- both. far: indices are i64.
function fold.place(dtype, far, smallest)
  local wide = dtype.bits == 64 or dtype == cute.u32
  local int = wide and cute.i64 or cute.i32
  local at = far and cute.i64 or cute.i32
  return {types = {int, at}, init = {wide and math.mininteger or -1 << 31,
                                     far and math.maxinteger or 0x7fffffff},
    take = function(x, i) return {key(x, smallest), i} end,
    join = function(a, b)
      local more = cute.gt(b[1], a[1])
        | cute.eq(b[1], a[1]) & cute.lt(b[2], a[2])
      return {cute.where(more, b[1], a[1]), cute.where(more, b[2], a[2])}
    end}
end

-- What a kernel does with vectors: o.op, or with o.parts what it left.
local function state_of(o)
  local s
  local from = o.from or o.dtype
  if o.op == "argmax" or o.op == "argmin" then
    s = fold.place(from, o.wide, o.op == "argmin")
  else
    local op = fold.op(o.op)
    s = plain(op, o.sums)
    s.after = op.after
  end
  if o.of_parts then
    function s.take(x, at) return {x, at} end
  end
  return s
end

-- A list of states folded pair by pair.
local function folded(join, list)
  while #list > 1 do
    local half = {}
    for i = 1, #list, 2 do
      half[#half + 1] = list[i + 1] and join(list[i], list[i + 1]) or list[i]
    end
    list = half
  end
  return list[1]
end

-- a state that is b's where ok
local function only(ok, b, a)
  local out = {}
  for i in ipairs(a) do out[i] = cute.where(ok, b[i], a[i]) end
  return out
end

-- Registers for a state of vectors.
local function registers(s, width)
  local list = {}
  for i, t in ipairs(s.types) do
    list[i] = cute.make_rmem_tensor({width}, t)
    list[i]:fill(s.init[i])
  end
  return list
end

local function held(regs)
  local out = {}
  for i, r in ipairs(regs) do out[i] = r:load() end
  return out
end

local function keep(regs, state)
  for i, r in ipairs(regs) do r:store(state[i]) end
end

---------------------------------------------------------------------------
-- The walk down what is folded
---------------------------------------------------------------------------

-- Where vectors of `width` of modes lie, (W,VECTORS).
local function vectors(modes, stride, width)
  local e, s = modes.extents, stride
  local shape, strides = {e[1] // width}, {s[1] * width}
  for i = 2, #e do shape[i], strides[i] = e[i], s[i] end
  return cute.make_layout({width, shape}, {s[1], strides})
end

-- A view of X: (W,FOLDED,KEPT), vectors along the first of either.
local function view_of(o, X, along)
  local f = vectors(o.folded, o.folded.stride, along and o.width or 1)
  local k = vectors(o.kept, o.kept.stride, along and 1 or o.width)
  local w = along and f or k
  local function mode(l)
    return cute.coalesce(cute.make_layout(l.shape[2], l.stride[2]))
  end
  f, k = mode(f), mode(k)
  return cute.make_tensor(X.iterator, cute.make_layout(
    {o.width, f.shape, k.shape}, {w.stride[1], f.stride, k.stride}))
end

-- Registers with the state of `n` vectors of the folded modes: those of this
-- thread, which is the one of `among`, and of its block's split. get(v) is a
-- view of vector v, where(v) the index of its first element.
local function walk(o, s, n, mine, among, split, get, where, also)
  local acc = registers(s, o.width)
  local tile = among * o.steps
  local function load(first, guard)
    local views, list = {}, {}
    for i = 0, o.steps - 1 do
      local v = first + i * among
      local ok = guard and cute.lt(v, n) or nil
      local from = cute.make_rmem_tensor({o.width}, o.dtype)
      local at = also and cute.make_rmem_tensor({o.width}, s.types[2])
      local function bring()
        cute.autovec_copy(get(v), from)
        if also then cute.autovec_copy(also(v), at) end
      end
      if ok then
        from:fill(0)
        if also then at:fill(0) end
        cute.when(ok, bring)
      else
        bring()
      end
      views[i + 1] = {from, v, ok, at}
    end
    for i, e in ipairs(views) do
      local x = s.take(e[1]:load(), e[4] and e[4]:load()
                       or where and where(e[2]))
      if where and core.typename(x[2]) ~= "vector" then
        local at = cute.make_rmem_tensor({o.width}, s.types[2])
        at:fill(x[2])
        x[2] = at:load()
      end
      if e[3] then keep(acc, only(e[3], s.join(held(acc), x), held(acc)))
      else list[i] = x end
    end
    if not guard then keep(acc, s.join(held(acc), folded(s.join, list))) end
  end
  local wholes = n // tile
  if wholes > 0 then
    for t in cute.range(split, wholes, o.splits) do
      if n >= 1 << 31 then t = t:to(cute.i64) end
      load(t * tile + mine)
    end
  end
  if n % tile > 0 then
    local function rest() load(mine + wholes * tile, true) end
    if o.splits == 1 then rest()
    else cute.when(cute.eq(split, wholes % o.splits), rest) end
  end
  return acc
end

-- Where parts have a second number: the tensor behind the result.
local function second(o, parts, view, at)
  if not (o.of_parts and parts[1]) then return nil end
  local other = cute.make_tensor(parts[1].iterator, view.layout)
  return function(v) return other(_, v, at) end
end

-- Which split this block has, and which of the blocks with others' places.
local function split_of(o)
  local block = (cute.arch.block_idx())
  if o.splits == 1 then return 0, block end
  return block % o.splits, block // o.splits
end

-- Strides of elements in the result.
local function results(o, Y, width)
  return cute.make_tensor(Y.iterator,
    cute.coalesce(vectors(o.kept, o.stride, width), {1, 1}))
end

-- Leaves a state, of vectors, of places from `at` on: the result, or parts.
local function leave(o, s, state, at, split, Y, parts)
  if o.splits > 1 then
    for i, P in ipairs(parts) do
      local r = cute.make_rmem_tensor({o.across and o.width or 1}, s.types[i])
      r:store(state[i])
      local w = o.across and o.width or 1
      cute.autovec_copy(r, cute.make_tensor(P.iterator, cute.make_layout(
        {w, o.places // w, o.splits}, {1, w, o.places}))(_, at, split))
    end
    return
  end
  local x = state[#state]
  if s.after then x = s.after(x, o.count) end
  local to = results(o, Y, o.across and o.width or 1)(_, at)
  local r = cute.make_rmem_tensor(to.shape, to.element_type)
  r:store(x:to(to.element_type))
  cute.autovec_copy(r, to)
end

---------------------------------------------------------------------------
-- Along
---------------------------------------------------------------------------

--- A state of values of all lanes of a group, by butterflies.
---@param s table
---@param state any[]
---@param lanes integer a power of two
function fold.over_lanes(s, state, lanes)
  local d = lanes // 2
  while d > 0 do
    local other = {}
    for i, x in ipairs(state) do
      other[i] = cute.arch.shuffle_sync_bfly(x, d)
    end
    state = s.join(state, other)
    d = d // 2
  end
  return state
end

-- The same of all threads of a place.
local function over_threads(o, s, state)
  local tid = (cute.arch.thread_idx())
  state = fold.over_lanes(s, state, math.min(o.threads, WARP))
  local warps = o.threads // WARP
  if warps <= 1 then return state end
  local shared = {}
  for i, t in ipairs(s.types) do
    shared[i] = cute.make_smem_tensor(t, cute.make_layout {o.block // WARP})
  end
  cute.when(cute.eq(tid % WARP, 0), function()
    for i, x in ipairs(state) do shared[i][tid // WARP] = x end
  end)
  cute.arch.sync_threads()
  local out = {}
  for i, m in ipairs(shared) do
    out[i] = m[tid // o.threads * warps + tid % warps]
  end
  return fold.over_lanes(s, out, warps)
end

-- A state of vectors as one of values; step: from element to element.
local function over_vector(s, state, width, step)
  local list = {}
  for w = 0, width - 1 do
    list[w + 1] = {}
    for i, x in ipairs(state) do
      list[w + 1][i] = i == 2 and x[w] + w * step or x[w]
    end
  end
  return folded(s.join, list)
end

local function as_vectors(s, state)
  local out = {}
  for i, x in ipairs(state) do
    local r = cute.make_rmem_tensor({1}, s.types[i])
    r[0] = x
    out[i] = r:load()
  end
  return out
end

local function smaller(a, b) return cute.min(a, b) end

--- A kernel whose threads' vectors lie along what is folded.
---@param o table the file's head; threads, block, steps, splits
function fold.along(o)
  local s = state_of(o)
  local places, rows = o.places, o.block // o.threads
  local n = o.folded.extents[1] // o.width
  for i = 2, #o.folded.extents do n = n * o.folded.extents[i] end
  local tail = o.folded.extents[1] % o.width
  return {block = o.block, grid = up(places, rows) * o.splits,
          types = s.types, kernel = cute.kernel(o.name or "fold_along",
  function(X, Y, ...)
    local tid, parts = (cute.arch.thread_idx()), {...}
    if o.pdl then cute.arch.griddepcontrol_wait() end
    local split, tile = split_of(o)
    local row, lane = tile * rows + tid // o.threads, tid % o.threads
    local inside = places % rows > 0 and cute.lt(row, places) or nil
    local at = inside and smaller(row, places - 1) or row
    local view = view_of(o, X, true)
    local index = o.index and vectors(o.folded, o.index, o.width)
    local acc = walk(o, s, n, lane, o.threads, split,
      function(v) return view(_, v, at) end,
      index and function(v) return index(0, v) end,
      second(o, parts, view, at))
    local step = o.index and o.index[1] or 0
    local state = over_vector(s, held(acc), o.width, step)
    if tail > 0 then
      local first = o.folded.extents[1] - tail
      local one = cute.make_tensor(X.iterator + first * o.folded.stride[1],
        view_of(setmetatable({width = 1}, {__index = o}), X, true).layout)
      local r = {}
      for i, x in ipairs(state) do r[i] = cute.var(x) end
      local mine = cute.lt(lane, tail)
      if o.splits > 1 then mine = mine & cute.eq(split, 0) end
      cute.when(mine, function()
        local x = cute.make_rmem_tensor({1}, o.dtype)
        cute.autovec_copy(one(_, lane, at), x)
        local p = o.of_parts and parts[1] and cute.make_tensor(
          parts[1].iterator + first, one.layout)(_, lane, at):load()
        local now = s.take(x:load(), p or o.index and (lane + first) * step)
        for i, e in ipairs(now) do
          if core.typename(e) == "vector" then now[i] = e[0] end
        end
        local was = {}
        for i, v in ipairs(r) do was[i] = v.value end
        for i, e in ipairs(s.join(was, now)) do r[i].value = e end
      end)
      for i, v in ipairs(r) do state[i] = v.value end
    end
    state = over_threads(o, s, state)
    local first = cute.eq(lane, 0)
    cute.when(inside and first & inside or first, function()
      leave(o, s, as_vectors(s, state), row, split, Y, parts)
    end)
  end)}
end

---------------------------------------------------------------------------
-- Across
---------------------------------------------------------------------------

--- A kernel whose threads' vectors lie along what is kept.
---@param o table the file's head; lanes, block, steps, splits
function fold.across(o)
  local s = state_of(o)
  o.across = true
  local n = 1
  for i = 1, #o.folded.extents do n = n * o.folded.extents[i] end
  local wide, rows = o.places // o.width, o.block // o.lanes
  return {block = o.block, grid = up(wide, o.lanes) * o.splits,
          types = s.types, kernel = cute.kernel(o.name or "fold_across",
  function(X, Y, ...)
    local tid, parts = (cute.arch.thread_idx()), {...}
    if o.pdl then cute.arch.griddepcontrol_wait() end
    local split, tile = split_of(o)
    local row, lane = tid // o.lanes, tid % o.lanes
    local column = tile * o.lanes + lane
    local inside = wide % o.lanes > 0 and cute.lt(column, wide) or nil
    local at = inside and smaller(column, wide - 1) or column
    local view = view_of(o, X, false)
    local index = o.index and vectors(o.folded, o.index, 1)
    local acc = walk(o, s, n, row, rows, split,
      function(v) return view(_, v, at) end,
      index and function(v) return index(0, v) end,
      second(o, parts, view, at))
    local state = held(acc)
    local shared = {}
    if rows > 1 then
      for i, t in ipairs(s.types) do
        shared[i] = cute.make_smem_tensor(t, cute.make_layout(
          {o.width, o.lanes, rows}), 16)
        cute.autovec_copy(acc[i], shared[i](_, lane, row))
      end
      cute.arch.sync_threads()
    end
    local first = cute.eq(row, 0)
    cute.when(inside and first & inside or first, function()
      for r = 1, rows - 1 do
        local other = registers(s, o.width)
        for i, m in ipairs(shared) do
          cute.autovec_copy(m(_, lane, r), other[i])
        end
        state = s.join(state, held(other))
      end
      leave(o, s, state, column, split, Y, parts)
    end)
  end)}
end

return fold
