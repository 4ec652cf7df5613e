--- Tiles of a GEMM. Copies operands of any order, size and alignment from
-- global memory through shared memory to the fragments of an MMA, and stores
-- the accumulators.
--
--     local A = tiles.operand(mA, {of = mma, which = "A", tile = {BM, BK},
--                                  at = bm, stages = 3})
--     A.load(k_tile, stage)       -- global to shared memory, zeros outside
--     A.fetch(stage, k_block)     -- shared memory to A.frag(_, _, k_block)
--
-- An operand is (M,K) or (N,K). Its modes can be nested, or a function can
-- compute its addresses (tiles.matrix). At trace time its layout decides three
-- things. First, the order of elements in shared memory (K or M contiguous, as
-- in global memory). Second, the widest copy that rows and extents allow: 16
-- bytes and cp.async at best, single elements through registers at worst.
-- Third, whether tiles can extend beyond the operand. (No predicates are needed
-- if the extents are multiples of the tile.)
local core = require "cute.core"
local sign = require "cute.lang.signature"
local cute = require "cute"
local _ = cute._

local tiles = {}

---------------------------------------------------------------------------
-- Properties of extents
---------------------------------------------------------------------------

local function positive(x)
  if math.type(x) and x < 1 then
    core.fail("bad-argument", ("an extent is %s; 1 or more is needed")
      :format(x))
  end
  return x
end

local function divisor(x)
  return math.type(x) and math.tointeger(x) or cute.get_divisibility(x)
end

--- Reports whether `by` certainly divides an extent, given what is known at
-- trace time.
function tiles.divides(by, extent)
  return divisor(extent) % positive(by) == 0
end

--- Returns the number of tiles of an extent.
function tiles.count(extent, tile)
  positive(tile)
  if math.type(extent) then return (extent + tile - 1) // tile end
  return cute.ceil_div(extent, tile)
end

-- Tells the compiler that `at`, the position of a block's tile, is less than n.
-- Offsets then need only 32 bits.
local function within(at, n)
  if math.type(n) and n > 0 and not math.type(at) then
    core.assume(at, 0, n - 1, 1)
  end
end

local function is_one(x) return math.type(x) == "integer" and x == 1 end

local function is_plain(t) return not t.layout.is_composed end

local function zeros(shape)
  if type(shape) ~= "table" then return 0 end
  local out = {}
  for i, x in ipairs(shape) do out[i] = zeros(x) end
  return out
end

--- Returns the tensor as a matrix of two integer modes. Each nested mode, such
-- as those of an im2col view ((Q,P,N),(C,S,R)), becomes one mode, whose
-- coordinates the layout maps to the nested ones. A third mode is unchanged.
function tiles.matrix(t)
  local shape = t.shape
  if type(shape[1]) ~= "table" and type(shape[2]) ~= "table" then return t end
  local whole = {cute.size(t, 0), cute.size(t, 1), shape[3]}
  return cute.make_tensor(t.iterator, cute.make_composed_layout(t.layout,
    zeros(whole), cute.make_identity_layout(whole)))
end

-- Returns an operand (M,(BK,k)), whose K is divided into tiles of BK, as
-- (M,BK,k). Other operands are unchanged.
local function in_tiles(t, BK)
  local K, stride = t.shape[2], is_plain(t) and t.stride
  if not stride or type(K) ~= "table" or #K ~= 2 or K[1] ~= BK then
    return t
  end
  return cute.make_tensor(t.iterator, cute.make_layout(
    {t.shape[1], BK, K[2]}, {stride[1], stride[2][1], stride[2][2]}))
end

-- Returns the coordinate after coordinate k in a shape. The first mode varies
-- fastest; the last one has no bound.
local function after(k, shape)
  if type(shape) ~= "table" then return k + 1 end
  local out, up = {}, 1
  for i, extent in ipairs(shape) do
    local x = k[i] + up
    local full = i < #shape and cute.eq(x, extent)
    out[i], up = cute.where(full, 0, x), cute.where(full, 1, 0)
  end
  return out
end

--- Returns an iterator over the K tiles of two operands, as a table. `first` is
-- the first tile. next(k) returns the tile after k. has(k) reports whether tile
-- k exists. A tile is given by its number or, if K of both operands is divided
-- into the same modes, by its coordinates.
function tiles.walk(A, B)
  local a, b = A.k_shape, B.k_shape
  local same = type(a) == "table" and type(b) == "table" and #a == #b
  for i = 1, same and #a or 0 do
    same = same and type(a[i]) ~= "table" and core.same(a[i], b[i])
  end
  local shape = same and a or A.k_tiles
  return {first = zeros(shape),
    next = function(k) return after(k, shape) end,
    has = function(k)
      if same then return cute.lt(k[#k], shape[#shape]) end
      return cute.lt(k, shape)
    end}
end

--- Returns matrix l of a batch (M,K,L). If the tensor has no third mode, or one
-- of extent 1, returns the same matrix for all l.
function tiles.batch(t, l)
  if cute.rank(t) < 3 then return t end
  if is_one(t.shape[3]) then l = 0 end
  return t(_, _, l)
end

-- Returns the contiguous mode of a matrix: 1 (K) or 0 (M or N). Returns 1 if no
-- mode is contiguous; elements are then copied one by one along K.
local function leading(t)
  if not is_plain(t) then
    return core.run_along(t, 0) > core.run_along(t, 1) and 0 or 1
  end
  local stride = t.stride
  if is_one(stride[2]) then return 1 end
  if is_one(stride[1]) then return 0 end
  -- A mode of one element counts as contiguous, whatever its stride.
  for i = 2, 1, -1 do
    if is_one(t.shape[i]) then return i - 1 end
  end
  return 1
end

--- Returns the number of elements of the widest possible access along mode
-- `lead`, at most 128 bits. Along this mode, runs of this length are contiguous
-- and aligned.
function tiles.vector(t, lead)
  local bits = t.element_type.bits
  local most = math.max(math.min(128, t.alignment * 8) // bits, 1)
  if not is_plain(t) then return core.gcd(core.run_along(t, lead), most) end
  if not (is_one(t.stride[lead + 1]) or is_one(t.shape[lead + 1])) then
    return 1
  end
  local unit = core.gcd(divisor(t.shape[lead + 1]),
                        divisor(t.stride[2 - lead]), most)
  local tiled = t.stride[3] and cute.flatten_to_tuple(t.stride[3]) or {}
  for _, stride in ipairs(tiled) do unit = core.gcd(unit, divisor(stride)) end
  return unit
end

--- Reports whether each row of a matrix is contiguous.
function tiles.is_rows(t)
  return not is_plain(t) or is_one(t.stride[2])
end

---------------------------------------------------------------------------
-- Shared memory
---------------------------------------------------------------------------

local function log2(n)
  local i = 0
  while 1 << i < n do i = i + 1 end
  return i
end

--- Returns the shared-memory layout of a (rows, k, stages) tile. The contiguous
-- runs of elements are swizzled in pieces of 16 bytes, which avoids bank
-- conflicts: the pieces at the same position of 8 neighbouring runs are in
-- different banks.
---@param lead integer the contiguous mode: 1 (k) or 0 (rows)
---@param piece? integer bytes that stay contiguous: 16, or 32 for 8-byte loads
function tiles.smem_layout(bits, tile, stages, lead, piece)
  -- The number of elements in a piece. The swizzle moves whole pieces.
  local unit = (piece or 16) * 8 // bits
  -- The number of elements in a contiguous run, which has at most 128 bytes.
  local run = core.gcd(tile[lead + 1], 1024 // bits)
  local b = log2(run // unit)
  local atom = lead == 1 and cute.make_layout({1 << b, run}, {run, 1})
    or cute.make_layout({run, 1 << b}, {1, run})
  -- A run of 128 bytes covers all banks once. If runs are shorter, the
  -- swizzle's atom contains several runs, which together cover all banks.
  local s = log2(1024 // bits // unit)
  if b < s then
    atom = lead == 1 and cute.make_layout({1 << s, run}, {run, 1})
      or cute.make_layout({run, 1 << s}, {1, run})
  end
  return cute.tile_to_shape(
    cute.composition(cute.make_swizzle(b, log2(unit), s), atom),
    {tile[1], tile[2], stages})
end

-- Returns a layout of contiguous rows without swizzle. If elements are
-- transposed on the way to shared memory (`turned`), 16 bytes of padding after
-- each row avoid bank conflicts.
local function plain_layout(bits, tile, stages, turned)
  local run = tile[1] + (turned and 128 // bits or 0)
  return cute.make_layout({tile[1], tile[2], stages}, {1, run, run * tile[2]})
end

---------------------------------------------------------------------------
-- Global to shared memory
---------------------------------------------------------------------------

-- Makes a tiled copy of (rows, k) by `threads` threads. Each thread moves
-- `width` elements at a time along the contiguous mode.
local function tiled_copy(atom, tile, threads, lead, width, most)
  local along = math.min(tile[lead + 1] // width, threads, most or threads)
  local across = math.min(threads // along, tile[2 - lead])
  along = math.max(along, threads // across)
  if tile[lead + 1] % (along * width) ~= 0 or tile[2 - lead] % across ~= 0 then
    core.fail("shape-mismatch", ("a tile of %d x %d elements cannot be divided "
      .. "among %d threads: %d x %d threads with %d elements each do not "
      .. "divide it")
      :format(tile[lead + 1], tile[2 - lead], threads, along, across, width))
  end
  if lead == 1 then
    return cute.make_tiled_copy(atom,
      cute.make_layout({across, along}, {along, 1}),
      cute.make_layout {1, width})
  end
  return cute.make_tiled_copy(atom, cute.make_layout {along, across},
                              cute.make_layout {width, 1})
end

local function copy_atom(dtype, width, async, cached)
  local bits = width * dtype.bits
  if not async then return cute.make_copy_atom("UniversalCopy", dtype, bits) end
  local through = bits == 128 and not cached and "GLOBAL" or "ALWAYS"
  return cute.make_copy_atom("SM80_CP_ASYNC_CACHE" .. through .. "_ZFILL",
                             dtype, bits)
end

-- Returns the atom that loads `width` elements to registers, in an operand
-- whose tiles have less than a line of memory in each row. The rest of the line
-- comes to L2 for the next tiles. Compilers do not move such a load across a
-- barrier, as they do with a plain load.
local function wide_atom(dtype, width)
  return cute.make_copy_atom("UniversalCopy", dtype,
    {num_bits_per_copy = width * dtype.bits, level_prefetch_size = "size_128b"})
end

-- Returns the tiles of t along K for the row of tiles `at`: (BM,BK,k).
local function tiles_of(t, tile, at)
  return cute.local_tile(t, tile, cute.rank(t) > 2 and {at, 0, _} or {at, _})
end

-- The numbers of elements that a thread loads to registers at the same time.
-- AT_ONCE is large enough to hide the latency of memory. FEW is used for the
-- first tile, whose latency occurs only once, and for tiles with a condition
-- for each element. LEAVE is used for stores. The numbers limit the unrolled
-- code, because a compiler needs half a millisecond for each element.
local AT_ONCE, FEW, LEAVE = 96, 48, 16

-- Divides a thread's partition x, (CPY,M,K,..), into n equal parts along M or
-- K, whichever is larger. Returns part i.
local function part_of(x, i, n)
  if n == 1 then return x end
  local mode = cute.size(x, 1) >= cute.size(x, 2) and 1 or 2
  local each = cute.size(x, mode) // n
  local at = {_, _, _, cute.rank(x) > 3 and _ or nil}
  at[mode + 1] = {_, i}
  return cute.logical_divide(x, mode == 1 and {_, each} or {_, _, each})(
    table.unpack(at))
end

-- Divides the partitions (CPY,M,K,..) in `list`, which a thread moves together,
-- into n parts, and calls f(i, n) for each part. A part has at most `most`
-- vectors, counted over all partitions.
local function in_parts(list, most, f)
  local n, count = 1, 0
  for _, x in ipairs(list) do
    count = count + cute.size(x, 1) * cute.size(x, 2)
  end
  local function divides(by)
    for _, x in ipairs(list) do
      if math.max(cute.size(x, 1), cute.size(x, 2)) % by ~= 0 then
        return false
      end
    end
    return true
  end
  while count // n > most and divides(2 * n) do n = 2 * n end
  if n == 1 then return f(0, 1) end
  for i in cute.range(n) do f(i, n) end
end

-- Reports whether a condition is known to be true. The condition is a Lua
-- boolean or a traced one.
local function is_true(ok)
  return ok == true or ok ~= false and core.known(ok) == true
end

-- Returns a function of a tile's K index that tests whether the pieces of the
-- tile (the vectors that a thread copies) are inside t. The function has three
-- results: a list of conditions for the pieces; the layout (M,K) of the list;
-- one condition common to all pieces. Conditions that are equal along a mode
-- are stored once. If the list or the common condition is always true, it is
-- nil. `part` is a function that selects a part of a partition (CPY,M,K,k).
-- With any_row, all rows count as inside t.
local function conditions(thr, t, tile, at, valid, part, any_row)
  local M, K = t.shape[1], t.shape[2]
  local rows = not any_row and not tiles.divides(tile[1], M)
  local cols = not tiles.divides(tile[2], K)
  if not (rows or cols or valid) then return function() end end
  local crd = thr:partition_S(tiles_of(cute.make_identity_tensor(t.shape),
                                       tile, at))           -- (CPY,M,K,k)
  if part then crd = part(crd) end
  local shape = {cute.size(crd, 1), cute.size(crd, 2)}
  local m, n = (rows or valid) and shape[1] or 1,
               (cols or valid) and shape[2] or 1
  local alike = cols and n == 1
  local row = {}
  for i = 1, m do row[i] = crd(0, i - 1, 0, zeros(crd.shape[4]))[1] end
  local there = valid and valid(row)
  return function(k_tile)
    local list, all = {}, true
    for j = 0, n - 1 do
      local c = crd(0, 0, j, k_tile)
      local k = c[3] or c[2]
      for i = 1, m do
        local ok = true
        if rows then ok = cute.lt(row[i], M) end
        if cols and not alike then ok = ok & cute.lt(c[2], K) end
        if valid then ok = ok & there(k, i) end
        list[j * m + i] = ok
        all = all and is_true(ok)
      end
    end
    local common
    if alike then common = cute.lt(crd(0, 0, 0, k_tile)[2], K) end
    if common ~= nil and is_true(common) then common = nil end
    return not all and list or nil,
      cute.make_layout(shape, {m > 1 and 1 or 0, n > 1 and m or 0}), common
  end
end

local function predicates(list, layout, common)
  if not list and common == nil then return nil end
  local p = cute.make_rmem_tensor(list and layout
    or cute.make_layout(layout.shape, {0, 0}), cute.Boolean)  -- (M,K)
  local flat = cute.make_tensor(p.iterator,
                                cute.make_layout(list and #list or 1))
  for i, ok in ipairs(list or {true}) do
    if common ~= nil then ok = ok & common end
    flat[i - 1] = ok
  end
  return p
end

-- If the condition `common` is true, calls f with a predicate tensor made from
-- `list`; otherwise calls `otherwise`.
local function guarded_by(list, layout, common, f, otherwise)
  local function run() f(predicates(list, layout)) end
  if common ~= nil then cute.when(common, run, otherwise) else run() end
end

--- Returns a function of a tile's K index. That function returns a predicate
-- tensor for cute.copy that selects the pieces of the tile inside t. It returns
-- nil if all pieces are inside.
---@param thr any this thread's slice of the copy
---@param t any the operand, (M,K) or (M,BK,k)
---@param at any the row of tiles
---@param valid? fun(rows: any[]): fun(k: any, i: integer): boolean|cute.Value
-- restricts the elements of t that exist: valid(rows)(k, i) is false if the
-- element in row rows[i] and column k (for K in tiles: tile k) does not exist
function tiles.inside(thr, t, tile, at, valid)
  local ask = conditions(thr, t, tile, at, valid)
  return function(k_tile) return predicates(ask(k_tile)) end
end

--- Copies a tile (BM,BN) from shared memory to its position in t, a matrix
-- (M,N) whose rows are contiguous. Accesses are as wide as the rows allow. Only
-- elements inside t are written.
---@param s any
---@param t any
---@param tile integer[]
---@param at any[] the position of the tile
---@param threads integer
---@param thread? any this thread's index among `threads`; if absent, its index
-- in the block
function tiles.put_rows(s, t, tile, at, threads, thread)
  local width = core.gcd(tiles.vector(t, 1), tile[1] * tile[2] // threads)
  local atom = copy_atom(t.element_type, width, false)
  local s2g = tiled_copy(atom, tile, threads, 1, width,
                         core.gcd(tile[2] // width, threads))
  local thr = s2g:get_slice(thread or (cute.arch.thread_idx()))
  local src = thr:partition_S(s)                            -- (CPY,M,N)
  local dst = thr:partition_D(cute.local_tile(t, tile, at))
  in_parts({src}, LEAVE, function(i, n)
    local function part(x) return part_of(x, i, n) end
    local list, layout, common = conditions(thr, t, tile, at[1], nil,
                                            part)(at[2])
    guarded_by(list, layout, common, function(pred)
      local r = cute.make_fragment_like(part(src))
      cute.copy(s2g, part(src), r)
      cute.copy(s2g, r, part(dst), pred)
    end)
  end)
end

---------------------------------------------------------------------------
-- Shared memory to fragments
---------------------------------------------------------------------------

-- Returns the copy atom that loads fragments from shared memory: ldmatrix if
-- possible, else plain loads. ldmatrix moves 8x8 matrices of 16 bits. If K is
-- contiguous, elements can have up to 4 bytes; if ldmatrix transposes, they
-- must have 16 bits.
local function fetch_atom(dtype, lead, arch)
  local matrices = core.has(arch, "ldmatrix")
  if matrices and lead == 1 and dtype.bits <= 32 then
    return cute.make_copy_atom("SM75_U32x4_LDSM_N", dtype)
  elseif matrices and lead == 0 and dtype.bits == 16 then
    return cute.make_copy_atom("SM75_U16x8_LDSM_T", dtype)
  end
  return cute.make_copy_atom("UniversalCopy", dtype, dtype.bits)
end

---------------------------------------------------------------------------
-- An operand
---------------------------------------------------------------------------

-- Returns a table that describes how operand t is copied to shared memory.
-- `lead` and `s_lead` are the contiguous modes in global and in shared memory.
-- `width` is the number of elements of a copy. `async` says whether cp.async is
-- used. `halves` says whether the copy is split into a load to registers and a
-- store.
local function passage(t, o)
  local bits, arch = t.element_type.bits, o.arch or 80
  local w = {lead = leading(t)}
  -- s_lead is the contiguous mode in shared memory. 16-bit elements keep their
  -- order from global memory: if necessary, ldmatrix transposes them when it
  -- loads the fragments. 64-bit elements also keep their order: they are loaded
  -- one by one, from any order. All other elements, if not contiguous along K,
  -- are transposed one at a time on the way into shared memory.
  w.s_lead = o.lead
    or (bits == 64 or bits == 16 and core.has(arch, "ldmatrix")) and w.lead
    or 1
  w.turned = w.s_lead ~= w.lead
  -- The width of a copy is limited so that each thread has at least one copy,
  -- if the tile is large enough.
  w.width = core.gcd(tiles.vector(t, w.lead),
    math.max(o.tile[1] * o.tile[2] // o.of:size(), 1))
  w.halves = w.turned and o.halves and w.width > 1
  if w.turned and not w.halves then w.width = 1 end
  w.async = core.has(arch, "cp.async") and not w.halves and w.width * bits >= 32
  return w
end

-- Returns the partition src (CPY,M,K,k) of t as a list of rows (CPY,K,k), in
-- which the last row replaces each row outside t. Products of such rows are not
-- stored, so loads need no condition.
local function rows_inside(thr, t, o, src)
  local M, list = t.shape[1], {}
  local crd = not tiles.divides(o.tile[1], M) and thr:partition_S(
    tiles_of(cute.make_identity_tensor(t.shape), o.tile, o.at))
  for m = 0, cute.size(src, 1) - 1 do
    local row = src(_, m, _, _)
    if crd then
      local at = crd(0, m, 0, zeros(crd.shape[4]))[1]
      row = cute.make_tensor(row.iterator
        + (cute.min(at, M - 1) - at) * t.stride[1], row.layout)
    end
    list[m + 1] = row
  end
  return list
end

-- Makes the object that copies tiles of t to shared memory s, with the method
-- load(k_tile, stage). If the copy passes through registers, the object also
-- has the two halves of load: take(k_tile) and put(stage).
local function way_in(t, s, o, w)
  local g = tiles_of(t, o.tile, o.at)                         -- (BM,BK,k)
  local atom = w.halves and wide_atom(t.element_type, w.width)
    or copy_atom(t.element_type, w.width, w.async, o.cached)
  local g2s = tiled_copy(atom, o.tile, o.of:size(), w.lead, w.width,
    -- For tiles that are transposed on the way to shared memory, at most 8
    -- threads copy along a contiguous run. A warp then covers 4 runs and
    -- thereby all banks.
    w.turned and 8)
  local thr = g2s:get_slice(o.thread)
  local src, dst = thr:partition_S(g), thr:partition_D(s)     -- (CPY,M,K,..)
  local way = {k_tiles = o.k_tiles or cute.size(src, 3), halves = w.halves,
               k_shape = o.k_tiles or g.shape[3],
               moves = cute.size(src, 1) * cute.size(src, 2)}
  local function from(k_tile) return o.from and o.from + k_tile or k_tile end
  if w.async then
    local inside = tiles.inside(thr, t, o.tile, o.at, o.valid)
    function way.load(k_tile, stage)
      cute.copy(g2s, src(_, _, _, from(k_tile)), dst(_, _, _, stage),
                inside(from(k_tile)))
    end
    return way
  end
  local all = cute.make_fragment_like(src(_, _, _, 0))
  if w.halves then all:fill(0) end
  local rows = w.halves and not o.valid and is_plain(t)
    and rows_inside(thr, t, o, src)
  -- Loads part i of n of a tile to registers (CPY,M,K): to the registers
  -- `held`, or to new ones if absent.
  local function take(k_tile, i, n, held)
    local function part(x) return part_of(x, i, n) end
    local at = from(k_tile)
    local from_tile = part(src)(_, _, _, at)
    held = held or cute.make_fragment_like(from_tile)
    local list, layout, common = conditions(thr, t, o.tile, o.at, o.valid,
                                            part, rows)(at)
    guarded_by(list, layout, common, function(pred)
      if pred then held:fill(0) end
      if not rows then return cute.copy(g2s, from_tile, held, pred) end
      for m, row in ipairs(rows) do
        cute.copy(g2s, row(_, _, at), held(_, m - 1, _),
                  pred and pred(m - 1, _))
      end
    end, function() held:fill(0) end)
    return held
  end
  local function put(held, stage, i, n)
    cute.autovec_copy(held, part_of(dst, i, n)(_, _, _, stage))
  end
  function way.take(k_tile) take(k_tile, 0, 1, all) end
  function way.put(stage) put(all, stage, 0, 1) end
  if not w.halves and (o.in_parts or not o.valid) then
    way.pieces = src
    way.sparse = o.valid ~= nil or not tiles.divides(o.tile[1], t.shape[1])
    function way.part(k_tile, i, n)
      local held = take(k_tile, i, n)
      return function(stage) put(held, stage, i, n) end
    end
  end
  function way.load(k_tile, stage)
    put(take(k_tile, 0, 1, w.halves and all or nil), stage, 0, 1)
  end
  return way
end

--- Loads tile k_tile of all operands into a stage. Operands that pass through
-- registers are loaded together, one part of each at a time. Set `first` for
-- the first tile of a loop, to use smaller parts.
---@param operands table[]
---@param first? boolean
function tiles.load(operands, k_tile, stage, first)
  local list, pieces, most = {}, {}, first and FEW or AT_ONCE
  for _, X in ipairs(operands) do
    if X.pieces then
      list[#list + 1], pieces[#pieces + 1] = X, X.pieces
      if X.sparse then most = FEW end
    else
      X.load(k_tile, stage)
    end
  end
  if #list == 0 then return end
  in_parts(pieces, most, function(i, n)
    local puts = {}
    for j, X in ipairs(list) do puts[j] = X.part(k_tile, i, n) end
    for _, put in ipairs(puts) do put(stage) end
  end)
end

--- Reports whether cp.async loads an operand. See tiles.operand.
function tiles.is_async(t, o)
  return passage(tiles.matrix(in_tiles(t, o.tile[2])), o).async
end

--- Makes the object that moves an operand's tiles. Its fields are the tensors
-- smem (rows,k,PIPE) and frag (MMA,M,K); k_tiles, the number of tiles along K;
-- k_blocks, the number of fetches along K for a tile; moves, the number of
-- copies that a thread makes for a tile. Its method load(k_tile, stage) copies
-- a tile to shared memory, and fetch(stage, k_block) loads a block of the tile
-- to registers. block(k_block) returns the fetched block, which is frag(_, _,
-- k_block) if a fetch serves one MMA. Without cp.async, load consists of
-- take(k_tile), which loads to registers, and put(stage). If K is (BK,k), a
-- tile can be given by its coordinates in k, whose shape is k_shape.
---@param t any the matrix, (M,K) or (N,K)
---@param o table {of: any, which: string, tile: integer[], at: any,
-- stages: integer, from: any?, k_tiles: any?, thread: any?, valid: function?,
-- cached: boolean?, arch: integer?, atom: any?, piece: any?, lead: integer?,
-- slots: integer?, plain: boolean?, halves: boolean?, as: any?,
-- in_parts: boolean?}
-- from, k_tiles: the first tile of K, and the number of tiles (default: all);
-- thread: this thread's index among the threads of the MMA; valid: see
-- tiles.inside;
-- cached: loads through L1, for data that is read again soon;
-- arch: 70 for a target without cp.async and ldmatrix;
-- atom: the copy atom of fetch;
-- piece: see tiles.smem_layout;
-- lead: the contiguous mode in shared memory, 0 (M or N) or 1 (K); if absent,
--   t's layout and type determine it;
-- slots: the number of blocks of K whose fragments are in registers at once, as
--   a ring (if absent, all blocks of a tile);
-- plain: data contiguous in M is at most padded, not swizzled, for fetches of
--   whole runs at known offsets;
-- halves: transposed data is loaded in vectors through registers, by take and
--   put, not by a cp.async for each element;
-- as: the MMA's type if it differs from t's: fetch converts;
-- in_parts: `valid` is cheap, and is called again for each part of a tile.
function tiles.operand(t, o)
  t = tiles.matrix(in_tiles(t, o.tile[2]))
  o = setmetatable({thread = o.thread or (cute.arch.thread_idx())},
                   {__index = o})
  within(o.at, tiles.count(t.shape[1], o.tile[1]))
  local dtype, arch = t.element_type, o.arch or 80
  local as, w = o.as ~= t.element_type and o.as or nil, passage(t, o)
  local s_lead = w.s_lead
  local s = cute.make_smem_tensor(dtype, o.plain and s_lead == 0
    and plain_layout(dtype.bits, o.tile, o.stages, w.turned)
    or tiles.smem_layout(dtype.bits, o.tile, o.stages, s_lead, o.piece),
    128)                                                      -- (BM,BK,PIPE)
  -- The last tiles are put twice; the copies are in stages that nothing reads.
  if w.halves then cute.partial_ok(s) end
  local A = way_in(t, s, o, w)

  local tid, mma = o.thread, o.of
  -- Elements that must be converted are loaded in pairs along K, if K is
  -- contiguous: a fragment of the MMA consists of such pairs.
  local s2r = cute["make_tiled_copy_" .. o.which](o.atom
    or as and cute.make_copy_atom("UniversalCopy", dtype,
                                  dtype.bits * (s_lead == 1 and 2 or 1))
    or fetch_atom(dtype, s_lead, arch), mma)
  local thr, slice = s2r:get_slice(tid), mma:get_slice(tid)
  local from = thr:partition_S(s)                             -- (CPY,M,K,PIPE)
  local k_blocks = cute.size(from, 2)
  local slots = o.slots and k_blocks % o.slots == 0 and o.slots or k_blocks
  local frag = slice["partition_fragment_" .. o.which](slice, cute.local_tile(
    s(_, _, 0), {o.tile[1], o.tile[2] // k_blocks * slots}, {0, 0}))
  local raw = as and cute.make_fragment_like(frag, dtype) or frag
  local to = thr:retile(raw)                                  -- (CPY,M,K)
  -- The number of MMAs along K that use the fragments of one fetch.
  local k = cute.size(frag, 2) // slots
  local whole = {cute.size(frag, 0), cute.size(frag, 1), k}
  A.smem, A.frag, A.k_blocks, A.k_leads = s, frag, k_blocks, s_lead == 1
  function A.fetch(stage, k_block)
    cute.copy(s2r, from(_, _, k_block, stage), to(_, _, k_block % slots))
    if as then
      local x = A.block(k_block, raw)
      A.block(k_block):store(x:load():to(as))
    end
  end
  function A.block(k_block, of)
    of = of or frag
    if k == 1 then return of(_, _, k_block % slots) end
    return cute.local_tile(of, whole, {0, 0, k_block % slots})
  end
  return A
end

---------------------------------------------------------------------------
-- Global memory to fragments
---------------------------------------------------------------------------

--- Returns a function (k_tile, frag) that loads tile k_tile of a matrix t into
-- a fragment (MMA,M,K), from this thread's partition (MMA,M,K,k). Accesses are
-- as wide as the matrix and the fragment allow. Elements outside t become 0.
---@param part any this thread's partition of the tiles of t
---@param thr any this thread's slice of the MMA
---@param which string "A" or "B"
---@param tile integer[] the extents of a tile of t
---@param at any the row of tiles
---@return fun(k_tile: any, frag: any)
function tiles.loader(part, thr, which, t, tile, at)
  local shape = t.shape
  if tiles.divides(tile[1], shape[1]) and tiles.divides(tile[2], shape[2]) then
    return function(k_tile, frag)
      cute.autovec_copy(part(_, _, _, k_tile), frag)
    end
  end
  local crd = thr["partition_" .. which](thr, cute.local_tile(
    cute.make_identity_tensor(shape), tile, {at, _}))          -- (MMA,M,K,k)
  return function(k_tile, frag)
    local pred = cute.make_rmem_tensor(frag.shape, cute.Boolean)
    for i = 0, cute.size(frag) - 1 do
      pred[i] = cute.elem_less(crd(_, _, _, k_tile)[i], shape)
    end
    frag:fill(0)
    cute.basic_copy_if(pred, part(_, _, _, k_tile), frag)
  end
end

---------------------------------------------------------------------------
-- Accumulators
---------------------------------------------------------------------------

-- Returns a predicate for each group of `width` neighbouring accumulators along
-- the first mode: true if the group is inside C. Returns nil if all
-- accumulators are inside.
local function inside_result(C, width)
  if not C.crd then return nil end
  local V, M, N = cute.size(C.acc, 0), cute.size(C.acc, 1), cute.size(C.acc, 2)
  local pred = cute.make_rmem_tensor({V // width, M, N}, cute.Boolean)
  for n = 0, N - 1 do
    for m = 0, M - 1 do
      for v = 0, V // width - 1 do
        pred[{v, m, n}] = cute.elem_less(C.crd(v * width, m, n),
                                         C.tensor.shape)
      end
    end
  end
  return pred
end

-- Returns how many elements of t, adjacent along N, a thread can move in one
-- access (1 or 2). `part` is the thread's partition (MMA,M,N) of t. The first
-- result considers only the partition (C.pair), the second also the alignment
-- of t's rows (C.width).
local function neighbours(t, part)
  if not is_plain(t) or not is_one(t.stride[2]) or cute.size(part, 0) % 2 ~= 0
    or not is_one(part.stride[1][1] or part.stride[1]) then
    return 1, 1
  end
  return 2, core.gcd(tiles.vector(t, 1), 2)
end

-- Copies the elements inside C from src to dst. One of them is a fragment, the
-- other is in memory.
local function guarded(C, src, dst)
  local pred = inside_result(C, C.width)
  if not pred then
    cute.autovec_copy(src, dst)
  elseif C.width == 1 then
    cute.basic_copy_if(pred, src, dst)
  else
    local dtype = C.tensor.element_type
    cute.copy(cute.make_copy_atom("UniversalCopy", dtype,
                                  C.width * dtype.bits), src, dst, pred)
  end
end

-- Returns t as a matrix. A vector (N) becomes a matrix with M equal rows.
local function as_matrix(t, M)
  if cute.rank(t) > 1 then return tiles.matrix(t) end
  return cute.make_tensor(t.iterator, cute.make_layout(
    {M, t.shape[1] or t.shape}, {0, t.stride[1] or t.stride}))
end

-- Loads x at the positions of C's accumulators, (MMA,M,N), if x is broadcast
-- along the rows or the columns. Loads each value only once. Returns nil for
-- any other x.
local function loaded_once(C, x, from)
  local by_row = is_plain(x) and x.stride[1] ~= 0
  local by_col = is_plain(x) and x.stride[2] ~= 0
  if by_row == by_col then return nil end
  local each = cute.filter_zeros(from)
  local l = cute.make_layout(each.shape)                    -- (MMA,M,N)
  local r = cute.make_rmem_tensor(l, x.element_type)
  if not C.crd then
    cute.autovec_copy(each, r)
  else
    local pred = cute.make_rmem_tensor(l, cute.Boolean)
    local mode = by_row and 1 or 2
    for i = 0, cute.size(l) - 1 do
      local at = cute.idx2crd(i, each.shape)
      for k, c in ipairs(at) do at[k] = cute.crd2idx(c, from.shape[k]) end
      pred[i] = cute.lt(C.crd(table.unpack(at))[mode], C.tensor.shape[mode])
    end
    r:fill(0)
    cute.basic_copy_if(pred, each, r)
  end
  return cute.make_tensor(r.iterator, cute.composition(
    cute.make_layout(from.shape, l.stride),
    cute.make_layout(C.acc.shape))):load()
end

--- Returns a function that partitions a tile. Its parts match the accumulators
-- of an MMA, or the destination of a copy from tensor memory. For such a copy,
-- columns of a row form pairs as in the fragments of MMAs.
---@param mma any a tiled MMA, or a tiled copy from tensor memory
---@param thread any the thread's index among the threads of the MMA or copy
---@return fun(x: any): any (MMA,M,N)
function tiles.partition_C(mma, thread)
  local slice = mma:get_slice(thread)
  if not cute.nvgpu.tcgen05.is_tmem_load(mma) then
    return function(x) return slice:partition_C(x) end
  end
  return function(x) return cute.logical_divide(slice:partition_D(x), {2}) end
end

--- Makes the object for this thread's part of a result C, with accumulators acc
-- (MMA,M,N). store(alpha, beta) writes C = alpha acc + beta C, or acc if both
-- are nil. put(r) writes a fragment. load(t[, dtype]) returns the values of
-- another matrix (M,N), or of a vector (N), at the accumulators' positions. The
-- values are a vector (MMA,M,N) of their type or of dtype, with 0 outside C.
-- save(t, v) writes such a vector to t.
---@param t any C, (M,N)
---@param tile integer[] (BM,BN)
---@param at any[] the position of the tile
---@param thread? any this thread's index among the threads of the MMA
-- mma: a tiled MMA, or a tiled copy that loads accumulators from tensor memory
function tiles.result(t, mma, tile, at, thread)
  t = tiles.matrix(t)
  for i = 1, 2 do within(at[i], tiles.count(t.shape[i], tile[i])) end
  thread = thread or (cute.arch.thread_idx())
  local partition = tiles.partition_C(mma, thread)
  local part = partition(cute.local_tile(t, tile, at))          -- (MMA,M,N)
  local acc = cute.nvgpu.tcgen05.is_tmem_load(mma)              -- (MMA,M,N)
    and cute.make_rmem_tensor(part.shape, mma.value_type)
    or mma:get_slice(thread):make_fragment_C(part)
  local C = {tensor = t, part = part, acc = acc, like = part, mma = mma,
             tile = tile, at = at, thread = thread}
  -- A mode of extent 1 may have stride 0. The strides of `part` then do not
  -- show which mode is contiguous.
  if is_plain(t) and (t.stride[1] == 0 or t.stride[2] == 0) then
    C.like = acc
  end
  C.pair, C.width = neighbours(t, part)
  if not (tiles.divides(tile[1], t.shape[1])
          and tiles.divides(tile[2], t.shape[2])) then
    C.crd = partition(cute.local_tile(
      cute.make_identity_tensor(t.shape), tile, at))            -- (MMA,M,N)
  end
  function C.store(alpha, beta) tiles.store(C, alpha, beta) end
  function C.put(fragment) guarded(C, fragment, part) end
  local function other(x)
    local there = partition(cute.local_tile(x, tile, at))
    local X = {tensor = x, crd = C.crd, acc = acc}
    X.pair, X.width = neighbours(x, there)
    return X, there
  end
  function C.load(x, dtype)
    x = as_matrix(x, t.shape[1])
    local X, from = other(x)
    local v = loaded_once(C, x, from)
    if not v then
      local r = cute.make_rmem_tensor(acc.shape, x.element_type)
      if C.crd then r:fill(0) end
      guarded(X, from, r)
      v = r:load()
    end
    return v:to(dtype or acc.element_type)
  end
  function C.save(x, v)
    local X, to = other(x)
    local r = cute.make_rmem_tensor(acc.shape, x.element_type)
    r:store(v:to(x.element_type))
    guarded(X, r, to)
  end
  return C
end

--- Returns alpha acc + beta C for C, an object of tiles.result with the
-- accumulators acc; or acc if alpha is nil. The result is a fragment (MMA,M,N)
-- of C's type, in the order of `like` (C's part if absent).
function tiles.scaled(C, alpha, beta, like)
  if not C.acc then
    core.fail("bad-argument", "scaled: C must be an object that tiles.result "
      .. "returned, not " .. core.show(C))
  end
  local dtype = C.tensor.element_type
  local out = cute.make_fragment_like(like or C.like, dtype)
  if alpha == nil then
    out:store(C.acc:load():to(dtype))
    return out
  end
  -- C is not read if beta is 0, because its elements may be undefined.
  cute.when(cute.ne(beta, 0), function()
    out:fill(0)
    guarded(C, C.part, out)
    local was = out:load():to(C.acc.element_type)
    out:store((C.acc:load() * alpha + was * beta):to(dtype))
  end, function()
    out:store((C.acc:load() * alpha):to(dtype))
  end)
  return out
end

--- Applies f to the accumulators of tiles.result, a vector (MMA,M,N). f also
-- receives C, so that it can use C.load and C.crd. Returns the result in C's
-- type.
---@param like? any as for tiles.scaled
function tiles.applied(C, f, like)
  local out = cute.make_fragment_like(like or C.like, C.tensor.element_type)
  local x = f(C.acc:load(), C)
  if core.typename(x) ~= "vector" then
    core.fail("bad-argument", ("tiles.applied: the function returned %s; it "
      .. "must return the vector to store"):format(core.show(x)))
  end
  out:store(x:to(C.tensor.element_type))
  return out
end

--- Stores the accumulators that tiles.scaled returns in the elements of C.
---@param C table from tiles.result
---@param alpha? any
---@param beta? any
function tiles.store(C, alpha, beta)
  guarded(C, tiles.scaled(C, alpha, beta), C.part)
end

--- Makes an object that stores accumulators to a tensor by TMA, through a ring
-- of buffers. Call `store(acc, {m, n}, f)` for each tile, and `tail()` after
-- the last one.
--
--     local leave = tiles.epilogue {mma = mma, atom = atom, coords = mD,
--                                   smem = sD}  -- (EM,EN,STAGES)
--     leave:store(acc, {m, n}, function(sums) return cute.max(sums, 0) end)
--     leave:tail()
--
-- EM is the number of rows of the MMA, and `atom` was made with the layout of
-- one buffer. Options: major = "m" if that layout is contiguous along M;
-- barrier, which synchronizes the MMA's threads (if absent, all threads of the
-- block); thread, this thread's index among them.
---@param options table {mma: any, atom: any, coords: any, smem: any,
-- thread: any?, barrier: any?, major: string?, cache_policy: any?}
function tiles.epilogue(options)
  return require "cute.store_epilogue".new(options)
end

---------------------------------------------------------------------------
-- Tile order
---------------------------------------------------------------------------

--- Maps a block index to a tile (m, n). Consecutive blocks compute `group`
-- tiles along M, then the same rows of tiles in the next column. Concurrent
-- blocks thus share tiles of A and B in L2. With group 1 the blocks follow the
-- rows of C.
function tiles.raster(block, m_tiles, n_tiles, group)
  local some = positive(group) * positive(n_tiles)
  if math.type(some) and some < 1 then
    core.fail("overflow", ("raster: %d x %d tiles; fewer than 2^63 are "
      .. "needed"):format(group, n_tiles))
  end
  local first = block // some * group
  local rest = block % some
  local height = cute.min(group, m_tiles - first)
  return first + rest % height, rest // height
end

return sign.public("tiles.", tiles, [[
  divides(by: integer, extent: integer|value)
  count(extent: integer|value, tile: integer)
  vector(t: tensor, lead: integer) is_rows(t: tensor)
  smem_layout(bits: integer, tile: table, stages: integer, lead: integer,
    piece?: integer)
  walk(A: table, B: table)
  matrix(t: tensor) batch(t: tensor, l: integer|value)
  inside(thr: slice, t: tensor, tile: table, at, valid?: function)
  put_rows(s: tensor, t: tensor, tile: table, at: table, threads: integer,
    thread?: integer|value)
  is_async(t: tensor, options: table) operand(t: tensor, options: table)
  load(operands: table, k_tile, stage, first?: boolean)
  loader(part: tensor, thr: slice, which: string, t: tensor, tile: table, at)
  partition_C(mma: tiled, thread: integer|value)
  result(t: tensor, mma: tiled, tile: table, at: table, thread?)
  applied(C: table, f: function, like?: tensor)
  scaled(C: table, alpha?: number|value, beta?: number|value, like?: tensor)
  store(C: table, alpha?: number|value, beta?: number|value)
  epilogue(options: {atom barrier cache_policy coords major mma smem thread})
  raster(block: integer|value, m_tiles: integer|value, n_tiles: integer|value,
    group: integer|value)
]])
-- SPDX-License-Identifier: MIT
