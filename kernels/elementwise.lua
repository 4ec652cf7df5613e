--- Applies a function to the elements of tensors with any layouts.
--
--     local k = elementwise {f = function(a, b, s) return a * s + b end,
--                            inputs = {cute.bf16, cute.f32}, scalars = 1,
--                            n = 4096 * 4096}
--     k.kernel(A, B, C, 2.0):launch {grid = k.grid, block = k.block}
--
-- The kernel's arguments are the inputs, then the results, then the scalars.
-- The arguments of f are a vector of elements of each input, converted to f32
-- if the input is a narrower float, and then the scalars. f returns a vector
-- for each result; the kernel rounds it to the result's type. Arithmetic on
-- vectors works element by element.
--
-- With the option `n`, the tensors have n contiguous elements, in any shape.
-- With the option `extents`, the tensors have modes with these extents, the
-- first one fastest. Each entry of `inputs` and `outputs` is then a table
-- {dtype = type, stride = {a stride for each mode}, width = number of elements
-- that can be accessed at once along the first mode, 1 when absent}. The option
-- `index` lists a stride for each mode. f then has one more argument after the
-- scalars: the offset of each element under these strides. With as_is = true, f
-- returns its only input, and the bits are copied without arithmetic.
--
-- With nonfinite = true, the simulator does not report NaNs and infinities in
-- results (cute.nonfinite_ok).
--
-- With dynamic = true, the kernel's last arguments are the extents of the
-- modes, which replace those of `extents`. No input may be turned (see below).
--
-- Threads process vectors along the first mode, called B, which is contiguous
-- in memory. Inputs with turned = true are contiguous along another mode,
-- called A. The option `across` is the number of mode A. Tiles of turned inputs
-- go through shared memory, where they are (B,A) with B contiguous. A thread
-- loads vectors along A, at as many adjacent indices of B as fill 32 bits. For
-- each index of A it writes one 32-bit word. The position of a 16-byte chunk is
-- swizzled by its vector's index along A. Therefore accesses to shared memory
-- have no bank conflicts, and accesses to global memory have 16 bytes.
--
-- Rows of an input with shifted = true begin at any address; the tensor itself
-- begins at a multiple of 16 bytes. The 16-byte chunks that a tile touches are
-- copied to shared memory row by row. In shared memory, each row keeps its
-- offset within a chunk, and a thread reads single elements. A chunk can also
-- contain elements of other tiles. If a chunk could extend beyond the tensor,
-- its elements are loaded one by one.
local core = require "cute.core"
local cute = require "cute"
local l2_priority = require "kernels.l2_priority"
local rules = require "kernels.operand_rules"
local _ = cute._

local function up(a, b) return (a + b - 1) // b end

---------------------------------------------------------------------------
-- Vectors
---------------------------------------------------------------------------

local function widened(v)
  local d = v.dtype
  return d.is_float and d.bits < 32 and v:to(cute.f32) or v
end

-- Returns the number of whole vectors of `width` elements in a tensor.
local function vectors_in(extents, width)
  local count = extents[1] // width
  for i = 2, #extents do count = count * extents[i] end
  return count
end

-- Returns the bytes of operand x of p, 0 if it is broadcast along a mode.
local function bytes_of(p, x)
  local broadcast = math.min(table.unpack(x.stride)) == 0
  return broadcast and 0
    or vectors_in(p.extents, p.width) * p.width * x.dtype.bits // 8
end

-- Returns the L2 priority of loads of input x of p.
local function priority_of(p, x)
  return not p.dynamic and l2_priority(bytes_of(p, x)) or nil
end

-- priority: the L2 priority of the lines, or nil (kernels/l2_priority.lua).
local function load(view, priority)
  local held = cute.make_rmem_tensor(view.shape, view.element_type)
  if priority then
    cute.copy(cute.make_copy_atom("DefaultCopy", view.element_type,
      {level2_eviction_priority = priority}), view, held)
  else
    cute.autovec_copy(view, held)
  end
  return held
end

-- Stores x, a vector or a register tensor, to `view`. Registers are copied
-- without conversion.
local function store(view, x)
  local held = x
  if core.typename(x) == "vector" then
    held = cute.make_rmem_tensor(view.shape, view.element_type)
    held:store(x:to(view.element_type))
  end
  cute.autovec_copy(held, view)
end

-- Returns the layout of vectors of `width` elements along the first mode,
-- (W,VECTORS). The mode VECTORS has the nested modes `extents`, the first one
-- divided by `width`.
local function vectors(extents, stride, width)
  local shape, strides = {extents[1] // width}, {stride[1] * width}
  for i = 2, #extents do shape[i], strides[i] = extents[i], stride[i] end
  return cute.make_layout({width, shape}, {stride[1], strides})
end

-- Returns a list with a function for each input. That function loads the
-- input's elements at a position into registers, and returns them. at(t, op)
-- returns a function that maps a position to a view of t's elements. If the
-- second result of `at` is true, that function returns registers instead of a
-- view. `priorities` lists the inputs' arguments of load().
local function reads(tensors, ops, width, at, priorities)
  local list = {}
  for i, t in ipairs(tensors) do
    local view, is_read = at(t, ops[i])
    list[i] = is_read and view
      or ops[i].stride[1] ~= 0 and function(...)
        return load(view(...), priorities and priorities[i])
      end
      -- A stride of 0 repeats one element: it is loaded once and broadcast.
      or function(...)
        local one = cute.make_tensor(view(...).iterator, cute.make_layout {1})
        local held = cute.make_rmem_tensor({width}, one.element_type)
        held:fill(load(one)[0])
        return held
      end
  end
  return list
end

-- Returns a list of the results of o.f at the position `...`. `ins` is the list
-- of functions from reads(). index(...), if given, returns the offset for the
-- last argument of o.f.
local function compute(o, ins, scalars, index, width, ...)
  local args, n = {}, #ins
  for i, read in ipairs(ins) do
    args[i] = read(...)
    if not o.as_is then args[i] = widened(args[i]:load()) end
  end
  for i = 1, o.scalars do args[n + i] = scalars[i] end
  n = n + o.scalars
  if index then
    local first = index(...)
    local r = cute.make_rmem_tensor({width}, o.wide and cute.i64 or cute.i32)
    for w = 0, width - 1 do
      local at = first + w * o.index[1]
      r[w] = math.type(at) and at or at:to(r.element_type)
    end
    args[n + 1], n = r:load(), n + 1
  end
  local results = {o.f(table.unpack(args, 1, n))}
  rules.need(#results == #o.outputs, "elementwise",
    "f returned %d results, not %d", #results, #o.outputs)
  return results
end

---------------------------------------------------------------------------
-- Straight: inputs that are contiguous along the first mode
---------------------------------------------------------------------------

-- Makes two functions for vectors of `width` elements. Vector 0 begins at
-- element `from` of the first mode. get(v) returns the results of f for vector
-- v, and put(results, v) stores them.
local function walker(o, inputs, outputs, scalars, width, from)
  local function view(t, op)
    return cute.make_tensor(t.iterator + from * op.stride[1],
      cute.coalesce(vectors(o.extents, op.stride, width), {1, 1}))
  end
  local function at(t, op)
    local g = view(t, op)
    return function(v) return g(_, v) end
  end
  local ins, outs = reads(inputs, o.inputs, width, at, o.priorities), {}
  for i, t in ipairs(outputs) do outs[i] = view(t, o.outputs[i]) end
  local l = o.index and vectors(o.extents, o.index, width)
  local function index(v)
    local i = l(0, v)
    return (o.wide and i:to(cute.i64) or i) + from * o.index[1]
  end
  local function get(v)
    return compute(o, ins, scalars, l and index, width, v)
  end
  return get, function(results, v)
    for i, t in ipairs(outs) do store(t(_, v), results[i]) end
  end
end

-- Processes o.steps vectors of this thread. If all vectors of the block exist,
-- the thread issues all loads before its first store. Elements that remain
-- after the last whole vector are processed one by one.
local function straight(o, inputs, outputs, scalars)
  local tid, block = (cute.arch.thread_idx()), (cute.arch.block_idx())
  local get, put = walker(o, inputs, outputs, scalars, o.width, 0)
  local at = not o.dynamic and o.count >= 1 << 31 and block:to(cute.i64)
    or block
  local first = at * (o.block * o.steps) + tid
  local function whole()
    local results = {}
    for s = 0, o.steps - 1 do results[s] = get(first + s * o.block) end
    if o.early then cute.arch.griddepcontrol_launch_dependents() end
    for s = 0, o.steps - 1 do put(results[s], first + s * o.block) end
  end
  local wholes = o.count // (o.block * o.steps)
  if not o.dynamic and wholes == o.grid then return whole() end
  local rest = o.extents[1] % o.width
  local last = o.dynamic and cute.arch.grid_dim() or o.grid
  cute.when(cute.lt(block, wholes), whole, function()
    for s = 0, o.steps - 1 do
      local v = first + s * o.block
      cute.when(cute.lt(v, o.count), function() put(get(v), v) end)
    end
    if math.type(rest) and rest == 0 then return end
    local one, put_one = walker(o, inputs, outputs, scalars, 1,
                                o.extents[1] - rest)
    cute.when(cute.eq(block, last - 1) & cute.lt(tid, rest), function()
      put_one(one(tid), tid)
    end)
  end)
end

---------------------------------------------------------------------------
-- Turned: inputs that are transposed through shared memory
---------------------------------------------------------------------------

-- Returns the layout of an operand with three modes: vectors (W,VECTORS) along
-- mode `first`; mode `second`; all other modes together.
local function modes(o, stride, first, second, width)
  local e, shape, strides = o.extents, {}, {}
  for i = 2, #e do
    if i ~= o.across then
      shape[#shape + 1], strides[#strides + 1] = e[i], stride[i]
    end
  end
  if #shape == 0 then shape, strides = {1}, {0} end
  return cute.make_layout({{width, e[first] // width}, e[second], shape},
    {{stride[first], stride[first] * width}, stride[second], strides})
end

-- Returns a tile in shared memory, (B,A), for an input t that is contiguous
-- along mode A. Also returns bring(guard), which loads the tile into registers,
-- and pass(), which writes it from there to shared memory. With `guard`,
-- elements outside t are not loaded.
local function turn(o, t, op, at)
  local bits, TB, TA = op.dtype.bits, o.tile[1], o.tile[2]
  local V, P, w = 128 // bits, math.max(1, 32 // bits), op.width
  local g = cute.make_tensor(t.iterator, modes(o, op.stride, o.across, 1, w))
  local function log2(n) return math.tointeger(math.log(n, 2)) end
  local S = cute.make_smem_tensor(op.dtype, cute.composition(
    cute.make_swizzle(3, log2(V), log2(TB)), cute.make_layout({TB, TA})), 128)
  cute.partial_ok(S)  -- outputs may end before the end of the tile
  local words = cute.make_tensor(S.iterator,
    cute.make_layout({{P, TB // P}, TA}, {{1, P}, TB}))
  local tid = (cute.arch.thread_idx())
  local lane, warp, warps = tid % 32, tid // 32, TA // V // 8
  local va = warp % warps * 8 + lane % 8  -- index along A of this lane's vector
  -- index along B of this lane's group of words
  local gb = warp // warps * 4 + lane // 8
  local reach = o.block // 32 // warps * 4
  local steps = TB // P // reach
  local held = cute.make_rmem_tensor({w, V // w, P, steps}, op.dtype)
  -- Whether elements have at least 32 bits and rows can begin inside a 128-byte
  -- cache line. If so, the loads ask L2 to prefetch pairs of lines.
  local cut = bits >= 32 and op.stride[1] * bits % 1024 ~= 0
  local atom = cute.make_copy_atom("DefaultCopy", op.dtype,
    {level_prefetch_size = cut and "size_256b" or nil,
     level2_eviction_priority = not cut and priority_of(o, op) or nil})
  local function bring(guard)
    if guard then held:fill(0) end
    for k = 0, steps - 1 do
      for p = 0, P - 1 do
        local b = at.b + (gb + k * reach) * P + p
        for j = 0, V // w - 1 do
          local a = at.a // w + va * (V // w) + j
          local function get()
            cute.copy(atom, g({_, a}, b, at.batch), held(_, j, p, k))
          end
          if guard then
            cute.when(cute.lt(a, o.extents[o.across] // w)
                      & cute.lt(b, o.extents[1]), get)
          else
            get()
          end
        end
      end
    end
  end
  local function pass()
    for k = 0, steps - 1 do
      for v = 0, V - 1 do
        local word = cute.make_rmem_tensor({P}, op.dtype)
        for p = 0, P - 1 do word[p] = held[{v % w, v // w, p, k}] end
        cute.autovec_copy(word, words({_, gb + k * reach}, va * V + v))
      end
    end
  end
  return S, bring, pass
end

-- Returns three functions for an input t whose rows begin at any address, with
-- A contiguous. bring(guard) copies the 16-byte chunks that the tile's rows
-- touch to shared memory. pass() waits for these copies. read(a) returns this
-- thread's W elements at index a along A. In shared memory, groups of W rows
-- begin 4 banks apart. Lanes that read W rows each, at four neighbouring
-- positions along A, then have no bank conflicts.
local function shift(o, t, op, at)
  local TB, TA, W = o.tile[1], o.tile[2], o.width
  local V = 128 // op.dtype.bits
  local l, e = modes(o, op.stride, 1, o.across, 1), o.extents
  local B, A = e[1], e[o.across]
  local memory = cute.make_tensor(t.iterator,
    cute.make_layout({V, up(cute.cosize(l), V)}, {1, V}))
  local pitch, along = TA + V, TA // V
  local group = W * pitch + (W > 1 and V or 0)
  local S = cute.make_smem_tensor(op.dtype, cute.make_layout(
    {{W, TB // W}, pitch}, {{pitch, group}, 1}), 16)
  local chunks = cute.make_tensor(S.iterator, cute.make_layout(
    {V, along + 1, {W, TB // W}}, {1, V, {pitch, group}}))
  local tid = (cute.arch.thread_idx())
  local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", op.dtype,
    {num_bits_per_copy = 128, level_prefetch_size = "size_128b"})
  local wide = cute.cosize(l) >= 1 << 31 and cute.i64 or cute.i32
  -- Returns the index in t of the tile's first element in row b.
  local function first(b)
    return l({0, (at.b + b):to(wide)}, at.a:to(wide), at.batch:to(wide))
  end
  local function copy(from, j, b)
    cute.copy(atom, memory(_, from), chunks(_, j, b))
  end
  local lane, row = tid % along, tid // along
  local function bring(guard)
    if not guard then
      for k = 0, TB * along // o.block - 1 do
        local b = row + k * (o.block // along)
        copy(first(b) // V + lane, lane, b)
      end
      for k = 0, up(TB, o.block) - 1 do
        local b = tid + k * o.block
        local from = first(b)
        local ok = cute.ne(from % V, 0)
        if (k + 1) * o.block > TB then ok = ok & cute.lt(b, TB) end
        cute.when(ok, function() copy(from // V + along, along, b) end)
      end
    else
      local all = TB * (along + 1)
      for u in cute.range(tid, all, o.block) do
        local b, j = u // (along + 1), u % (along + 1)
        cute.when(cute.lt(at.b + b, B), function()
          local from = first(b)
          -- the coordinate along A of the chunk's first element
          local a = at.a - (from % V):to(cute.i32) + j * V
          cute.when(cute.ge(a, 0) & cute.le(a + V, A), function()
            copy(from // V + j, j, b)
          end, function()
            for v = 0, V - 1 do
              cute.when(cute.ge(a + v, 0) & cute.lt(a + v, A), function()
                chunks[{v, j, b}] = memory({v, from // V + j})
              end)
            end
          end)
        end)
      end
    end
    cute.arch.cp_async_commit_group()
  end
  local function pass() cute.arch.cp_async_wait_group(0) end
  local begins = {}
  for w = 0, W - 1 do
    local b = at.lane * W + w
    begins[w] = cute.crd2idx({b, 0}, S.layout) + (first(b) % V):to(cute.i32)
  end
  local flat = cute.make_tensor(S.iterator, cute.make_layout {cute.cosize(
    S.layout)})
  local function read(a)
    local held = cute.make_rmem_tensor({W}, op.dtype)
    for w = 0, W - 1 do held[w] = flat(begins[w] + a) end
    return held
  end
  return read, bring, pass
end

-- Distributes the threads of a block over a tile (B,A). Up to `most` lanes of a
-- warp have adjacent vectors along B; the other lanes differ in their
-- coordinates along A. Returns a thread's vector index along B, its first
-- coordinate along A, and the step to its next coordinate along A.
local function spread(o, most)
  local along, warps = o.tile[1] // o.width, o.block // 32
  local lanes = math.min(along, most)
  while along // lanes > warps do lanes = 2 * lanes end
  local tid, groups = (cute.arch.thread_idx()), along // lanes
  local warp = tid // 32
  return warp % groups * lanes + tid % lanes,
    warp // groups * (32 // lanes) + tid % 32 // lanes,
    warps // groups * (32 // lanes)
end

-- Processes a tile. Inputs that are contiguous along A (turned) go through
-- shared memory, all other inputs do not.
local function turned(o, inputs, outputs, scalars)
  local TB, TA, W = o.tile[1], o.tile[2], o.width
  local B, A, block = o.extents[1], o.extents[o.across], cute.arch.block_idx()
  local nb, na, shifted = up(B, TB), up(A, TA), false
  for _, op in ipairs(o.inputs) do shifted = shifted or op.shifted end
  local b, first, step = spread(o, shifted and 8 or 32)
  local at = {b = block % nb * TB, a = block // nb % na * TA,
              batch = block // nb // na, lane = b}
  local brings, passes = {}, {}
  local function view(t, op)
    return cute.make_tensor(t.iterator, modes(o, op.stride, 1, o.across, W))
  end
  local ins = reads(inputs, o.inputs, W, function(t, op)
    if not op.turned then
      local g = view(t, op)
      return function(a) return g({_, at.b // W + b}, at.a + a, at.batch) end
    end
    local S
    S, brings[#brings + 1], passes[#passes + 1]
      = (op.shifted and shift or turn)(o, t, op, at)
    if op.shifted then return S, true end
    local s = cute.make_tensor(S.iterator,
      cute.make_layout({{W, TB // W}, TA}, {{1, W}, TB}))
    return function(a) return s({_, b}, a) end
  end)
  local l = o.index and modes(o, o.index, 1, o.across, W)
  local function index(a) return l({0, at.b // W + b}, at.a + a, at.batch) end
  local outs = {}
  for i, t in ipairs(outputs) do outs[i] = view(t, o.outputs[i]) end
  local whole = B % TB == 0 and A % TA == 0
  local inside = whole or cute.le(at.b + TB, B) & cute.le(at.a + TA, A)
  local free = inside  -- whether elements outside the tile may be read
  if shifted then free = cute.le(at.b + TB, B) & cute.gt(at.a, 0)
    & cute.le(at.a + TA + 16, A) end
  local function each(list, guard)
    for _, f in ipairs(list) do f(guard) end
  end
  cute.when(free, function() each(brings) end, (shifted or not whole)
            and function() each(brings, true) end or nil)
  each(passes)
  cute.arch.sync_threads()
  local function finish(guard)
    for k = 0, up(TA, step) - 1 do
      local a = first + k * step
      local function put()
        local results = compute(o, ins, scalars, l and index, W, a)
        for i, t in ipairs(outs) do
          store(t({_, at.b // W + b}, at.a + a, at.batch), results[i])
        end
      end
      local ok = guard and cute.lt(at.b // W + b, B // W)
        & cute.lt(at.a + a, A)
      -- If the tile is narrower along A than the distance that the block covers
      -- at once, some threads are outside the tile.
      if TA < step then
        ok = ok and ok & cute.lt(a, TA) or cute.lt(a, TA)
      end
      if ok then cute.when(ok, put) else put() end
    end
  end
  cute.when(inside, finish, not whole and function() finish(true) end or nil)
end

---------------------------------------------------------------------------
-- Kernels
---------------------------------------------------------------------------

-- Returns how many elements of the narrowest operand type fit into 16 bytes.
local function widest(o)
  local bits = 128
  for _, list in ipairs {o.inputs, o.outputs} do
    for _, t in ipairs(list) do bits = math.min(bits, t.bits) end
  end
  return 128 // bits
end

-- Completes p for operands of n contiguous elements: replaces the lists of
-- operand types by lists of operands with strides and widths.
local function side_by_side(o, p)
  for _, name in ipairs {"inputs", "outputs"} do
    for i, dtype in ipairs(p[name]) do
      rules.need(core.typename(dtype) == "dtype", "elementwise",
        "%s[%d] = %s; a type is needed, such as cute.bf16", name, i,
        core.show(dtype))
    end
  end
  p.width, p.extents = o.width or widest(p), {o.n}
  while p.width > o.n do p.width = p.width // 2 end
  for _, name in ipairs {"inputs", "outputs"} do
    local list = {}
    for i, dtype in ipairs(p[name]) do
      list[i] = {dtype = dtype, stride = {1}, width = p.width}
    end
    p[name] = list
  end
end

-- Returns the number of blocks. Unless `across` is set (some inputs are
-- turned), also returns the number of whole vectors.
local function sizes(p)
  if p.across then
    local blocks = up(p.extents[1], p.tile[1])
      * up(p.extents[p.across], p.tile[2])
    for i = 2, #p.extents do
      if i ~= p.across then blocks = blocks * p.extents[i] end
    end
    return blocks
  end
  p.count = vectors_in(p.extents, p.width)
  local rest = p.extents[1] % p.width > 0 and 1 or 0
  return up(p.count + rest, p.block * p.steps), p.count
end

-- Sets p.block, p.steps (the number of vectors of each thread), p.priorities
-- (see reads) and p.early. If p.early is true, a block lets the next launch
-- begin when it has loaded its vectors, not when it ends. The numbers are times
-- on an H200.
-- - With several inputs, blocks of 256 threads with one vector each are the
--   fastest: addition of 2^22 f16 takes 3.25 us, and 3.63 with 128 threads of
--   two vectors. With one input and vectors of 8 elements, two vectors are
--   faster if f has many instructions: the sine of 2^28 f16 takes 271 us
--   instead of 315, and negation 250.5 us instead of 249.3. So are two vectors
--   of 16 elements: equality of two times 2^23 f16 takes 5.6 us instead of 7.6.
--   Kernels for any size always use two.
-- - The next launch begins early if a launch has at most FEW blocks for each
--   input, or exceeds L2 (STAYS bytes): addition of 2^18 f16 takes 0.84 us,
--   otherwise 0.93. In launches of a size between these, the signals of many
--   short blocks cost time: negation of 2^22 f16 takes 2.84 us, and 3.03 us
--   with signals.
local FEW, STAYS = 256, 40 << 20

local function distribute(o, p)
  local all, inputs = 0, 0
  for _, list in ipairs {p.inputs, p.outputs} do
    for _, x in ipairs(list) do all = all + bytes_of(p, x) end
  end
  p.priorities = {}
  for i, x in ipairs(p.inputs) do
    inputs = inputs + (bytes_of(p, x) > 0 and 1 or 0)
    p.priorities[i] = priority_of(p, x)
  end
  local blocks = up(vectors_in(p.extents, p.width), 256)
  local few = blocks <= FEW * inputs
  local two = p.width > 4
    and (o.dynamic or p.width > 8 or not few and inputs < 2)
  p.steps = o.steps or two and 2 or 1
  p.block = o.block or (p.across or p.steps == 1) and 256 or 128
  p.early = o.pdl and not o.dynamic and (few or all > STAYS)
end

-- Returns p with other extents, which are the kernel's arguments from
-- args[from] on.
local function with_extents(p, args, from)
  local e = table.move(args, from, from + #p.extents - 1, 1, {})
  return setmetatable({extents = e, count = vectors_in(e, p.width)},
                      {__index = p})
end

--- Returns a kernel with the inputs, the results and the scalars as arguments,
-- and its launch parameters.
---@param o table {f: function, n: integer?, inputs: any[], outputs: any[]?,
-- scalars: integer?, steps: integer?, block: integer?, width: integer?,
-- fastmath: boolean?, name: string?, extents: integer[]?, index: integer[]?,
-- across: integer?, tile: integer[]?, pdl: boolean?, as_is: boolean?}
-- outputs: descriptions of the results, like `inputs`; when absent, there is
-- one result like the first input; steps: number of vectors of each thread;
-- width: elements of a vector; tile: its extents {along the first mode, along
-- mode `across`}; pdl: waits for the preceding launch (dependent launch)
---@return {kernel: any, grid: integer, block: integer, share: integer?} share:
-- the number of elements of each block; nil if `across` is set
return function(o)
  rules.options("elementwise", o, "f n inputs outputs scalars steps block "
    .. "width fastmath name extents index across tile pdl as_is wide "
    .. "dynamic nonfinite")
  if not o.extents then rules.given("elementwise", o, "n") end
  rules.integers("elementwise", o, {"block"}, 1, 1024)
  rules.integers("elementwise", o, {"steps", "width"}, 1, 1024)
  local p = setmetatable({outputs = o.outputs or {o.inputs[1]},
    scalars = o.scalars or 0}, {__index = o})
  if not o.extents then side_by_side(o, p) end
  distribute(o, p)
  p.grid = sizes(p)
  return {block = p.block, grid = p.grid,
    share = not p.across and p.width * p.block * p.steps or nil,
    kernel = cute.kernel(
    o.name or "elementwise", {fastmath = o.fastmath ~= false},
    function(...)
      local args = {...}
      local ins, outs, more = #p.inputs, #p.outputs, {}
      for i = 1, o.n and ins + outs or 0 do
        rules.dense("elementwise", i, args[i], o.n)
      end
      table.move(args, ins + outs + 1, #args, 1, more)
      for i = 1, ins + outs do
        local op = p.inputs[i] or p.outputs[i - ins]
        local own = args[i].element_type
        if op.dtype ~= own then
          rules.need(op.dtype.bits == own.bits and not op.dtype.is_float,
            "elementwise", "argument %d is %s; %s is needed", i, own.name,
            op.dtype.name)
          args[i] = cute.recast_tensor(args[i], op.dtype)
        end
        if p.nonfinite and i > ins then cute.nonfinite_ok(args[i]) end
      end
      if p.pdl then cute.arch.griddepcontrol_wait() end
      local body = p.across and turned or straight
      local own = p.dynamic and with_extents(p, args, ins + outs + p.scalars
        + 1) or p
      body(own, {table.unpack(args, 1, ins)},
           {table.unpack(args, ins + 1, ins + outs)}, more)
    end)}
end
-- SPDX-License-Identifier: MIT
