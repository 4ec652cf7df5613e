--- Tiles of a GEMM: how the operands come from global memory through shared
-- memory into the fragments of an MMA, whatever their order, size and
-- alignment, and how the accumulators go back.
--
--     local A = tiles.operand(mA, {of = mma, which = "A", tile = {BM, BK},
--                                  at = bm, stages = 3})
--     A.load(k_tile, stage)       -- global to shared memory, zeros outside
--     A.fetch(stage, k_block)     -- shared memory to A.frag(_, _, k_block)
--
-- An operand is (M,K) or (N,K); modes may be nested, or go through a function
-- (tiles.matrix). What its layout says decides, while tracing: the order of
-- shared memory (K or M contiguous, as in global memory), the widest copy that
-- rows and extents allow (16 bytes and cp.async at best, single elements
-- through registers at worst), and whether tiles may cross an edge: where
-- extents are multiples of the tile no predicate is left.
local core = require "cute.core"
local sign = require "cute.lang.sign"
local cute = require "cute"
local _ = cute._

local tiles = {}

---------------------------------------------------------------------------
-- Facts of extents
---------------------------------------------------------------------------

local function positive(x)
  if math.type(x) and x < 1 then
    core.fail("bad-argument", ("an extent of %s; 1 or more is needed")
      :format(x))
  end
  return x
end

local function divisor(x)
  return math.type(x) and math.tointeger(x) or cute.get_divisibility(x)
end

--- Does `by` divide an extent, for all that is known while tracing?
function tiles.divides(by, extent)
  return divisor(extent) % positive(by) == 0
end

--- Tiles of an extent.
function tiles.count(extent, tile)
  positive(tile)
  if math.type(extent) then return (extent + tile - 1) // tile end
  return cute.ceil_div(extent, tile)
end

-- A block's place, of n: with it known, offsets need 32 bits only.
local function within(at, n)
  if math.type(n) and not math.type(at) then core.assume(at, 0, n - 1, 1) end
end

local function is_one(x) return math.type(x) == "integer" and x == 1 end

local function is_plain(t) return not t.layout.is_composed end

local function zeros(shape)
  if type(shape) ~= "table" then return 0 end
  local out = {}
  for i, x in ipairs(shape) do out[i] = zeros(x) end
  return out
end

--- The same tensor as a matrix of two modes that are integers: those of an
-- im2col view, ((Q,P,N),(C,S,R)), count as one each. Its layout goes through
-- the nested one then. A third mode stays as it is.
function tiles.matrix(t)
  local shape = t.shape
  if type(shape[1]) ~= "table" and type(shape[2]) ~= "table" then return t end
  local whole = {cute.size(t, 0), cute.size(t, 1), shape[3]}
  return cute.make_tensor(t.iterator, cute.make_composed_layout(t.layout,
    zeros(whole), cute.make_identity_layout(whole)))
end

-- An operand (M,(BK,k)), whose K is in tiles, as (M,BK,k); others as they are.
local function in_tiles(t, BK)
  local K, stride = t.shape[2], is_plain(t) and t.stride
  if not stride or type(K) ~= "table" or #K ~= 2 or K[1] ~= BK then
    return t
  end
  return cute.make_tensor(t.iterator, cute.make_layout(
    {t.shape[1], BK, K[2]}, {stride[1], stride[2][1], stride[2][2]}))
end

-- The place after k in a shape, the first coordinate fastest; the last one
-- only grows.
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

--- The way through the tiles of K of two operands: the first, next(k), and
-- has(k), which is false behind the last. Tiles are numbers, or coordinates
-- where both operands have the same.
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

--- One matrix of a batch (M,K,L); what has no third mode, or one of extent 1,
-- is the same for all.
function tiles.batch(t, l)
  if cute.rank(t) < 3 then return t end
  if is_one(t.shape[3]) then l = 0 end
  return t(_, _, l)
end

-- Which mode is contiguous: 1 (K) or 0 (M, N); where none is, elements come one
-- by one, along K.
local function leading(t)
  if not is_plain(t) then
    return core.run_along(t, 0) > core.run_along(t, 1) and 0 or 1
  end
  local stride = t.stride
  if is_one(stride[2]) then return 1 end
  if is_one(stride[1]) then return 0 end
  for i = 2, 1, -1 do  -- one element is contiguous
    if is_one(t.shape[i]) then return i - 1 end
  end
  return 1
end

--- Elements of a contiguous run that start at multiples of their length: the
-- widest access, at most 128 bits.
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

--- Has an operand contiguous rows of K in pieces of 16 bytes?
function tiles.has_rows(t)
  return (not is_plain(t) or is_one(t.stride[2]))
    and tiles.vector(t, 1) * t.element_type.bits == 128
end

---------------------------------------------------------------------------
-- Shared memory
---------------------------------------------------------------------------

local function log2(n)
  local i = 0
  while 1 << i < n do i = i + 1 end
  return i
end

--- Layout of a (rows, k, stages) tile whose contiguous runs are swizzled in
-- pieces of 16 bytes, so that 8 of them at the same place of 8 neighbouring
-- runs lie in different banks.
---@param lead integer the contiguous mode: 1 (k) or 0 (rows)
---@param piece? integer bytes that stay together: 16, or 32 for 8-byte loads
function tiles.smem_layout(bits, tile, stages, lead, piece)
  local unit = (piece or 16) * 8 // bits            -- elements of a piece
  local run = core.gcd(tile[lead + 1], 1024 // bits)  -- 128 bytes at most
  local b = log2(run // unit)
  local atom = lead == 1 and cute.make_layout({1 << b, run}, {run, 1})
    or cute.make_layout({run, 1 << b}, {1, run})
  -- 128 bytes pass all banks once; of shorter runs, several do together
  local s = log2(1024 // bits // unit)
  if b < s then
    atom = lead == 1 and cute.make_layout({1 << s, run}, {run, 1})
      or cute.make_layout({run, 1 << s}, {1, run})
  end
  return cute.tile_to_shape(
    cute.composition(cute.make_swizzle(b, log2(unit), s), atom),
    {tile[1], tile[2], stages})
end

-- Contiguous rows, not swizzled. Where they are written across, 16 bytes more
-- behind each of K keep the banks apart.
local function plain_layout(bits, tile, stages, turned)
  local run = tile[1] + (turned and 128 // bits or 0)
  return cute.make_layout({tile[1], tile[2], stages}, {1, run, run * tile[2]})
end

---------------------------------------------------------------------------
-- Global to shared memory
---------------------------------------------------------------------------

-- A tiled copy of `threads` over (rows, k), `width` elements at a time along
-- the contiguous mode.
local function tiled_copy(atom, tile, threads, lead, width, most)
  local along = math.min(tile[lead + 1] // width, threads, most or threads)
  local across = math.min(threads // along, tile[2 - lead])
  along = math.max(along, threads // across)
  if tile[lead + 1] % (along * width) ~= 0 or tile[2 - lead] % across ~= 0 then
    core.fail("shape-mismatch", ("a tile of %d x %d elements cannot be shared "
      .. "out to %d threads: %d x %d of them with %d each do not divide it")
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
  if not async or bits < 32 then
    return cute.make_copy_atom("UniversalCopy", dtype, bits), false
  end
  local through = bits == 128 and not cached and "GLOBAL" or "ALWAYS"
  return cute.make_copy_atom("SM80_CP_ASYNC_CACHE" .. through .. "_ZFILL",
                             dtype, bits), true
end

-- The tiles at a place of t: (BM,BK,k).
local function tiles_of(t, tile, at)
  return cute.local_tile(t, tile, cute.rank(t) > 2 and {at, 0, _} or {at, _})
end

--- Which pieces of a tile of t lie inside: a function of the tile's K index
-- that gives a predicate tensor for cute.copy, or nil where all always do.
---@param thr any this thread's slice of the copy
---@param t any the operand, (M,K) or (M,BK,k)
---@param at any the tile's row index
---@param valid? fun(rows: any[]): fun(k: any, i: integer): boolean|cute.Value
-- which elements of t there are: of some rows, the i-th at a column k, or in a
-- tile k
function tiles.inside(thr, t, tile, at, valid)
  local M, K = t.shape[1], t.shape[2]
  local rows = not tiles.divides(tile[1], M)
  local cols = not tiles.divides(tile[2], K)
  if not (rows or cols or valid) then return function() end end
  local crd = thr:partition_S(tiles_of(cute.make_identity_tensor(t.shape),
                                       tile, at))           -- (CPY,M,K,k)
  local shape = {cute.size(crd, 1), cute.size(crd, 2)}
  local m = {}
  for i = 1, shape[1] do m[i] = crd(0, i - 1, 0, zeros(crd.shape[4]))[1] end
  local there = valid and valid(m)
  return function(k_tile)
    local p = cute.make_rmem_tensor(shape, cute.Boolean)    -- (M,K)
    for j = 0, shape[2] - 1 do
      local c = crd(0, 0, j, k_tile)
      local k = c[3] or c[2]
      for i, row in ipairs(m) do
        local ok = true
        if rows then ok = cute.lt(row, M) end
        if cols then ok = ok & cute.lt(c[2], K) end
        if valid then ok = ok & there(k, i) end
        p[{i - 1, j}] = ok
      end
    end
    return p
  end
end

---------------------------------------------------------------------------
-- Shared memory to fragments
---------------------------------------------------------------------------

-- ldmatrix moves 8x8 matrices of 16 bits: elements of K at most 4 bytes wide
-- when K is contiguous, and 16 bits only when it transposes.
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

-- The way of t's tiles into shared memory s: load(k_tile, stage), and, where
-- they go through registers, its halves take(k_tile) and put(stage).
local function way_in(t, s, o, lead, turned)
  local g = tiles_of(t, o.tile, o.at)                         -- (BM,BK,k)
  -- something for each thread, where a tile has so much
  local width = core.gcd(tiles.vector(t, lead),
    math.max(o.tile[1] * o.tile[2] // o.of:size(), 1))
  local halves = turned and o.halves and width > 1
  if turned and not halves then width = 1 end
  local can = core.has(o.arch or 80, "cp.async")
  local atom, async = copy_atom(t.element_type, width, can and not halves,
                                o.cached)
  local g2s = tiled_copy(atom, o.tile, o.of:size(), lead, width,
    turned and 8)  -- 4 runs of 8 elements hit all banks
  local thr = g2s:get_slice(o.thread)
  local src, dst = thr:partition_S(g), thr:partition_D(s)     -- (CPY,M,K,..)
  local inside = tiles.inside(thr, t, o.tile, o.at, o.valid)
  local way = {k_tiles = o.k_tiles or cute.size(src, 3), halves = halves,
               k_shape = o.k_tiles or g.shape[3]}
  local function from(k_tile) return o.from and o.from + k_tile or k_tile end
  if async then
    function way.load(k_tile, stage)
      cute.copy(g2s, src(_, _, _, from(k_tile)), dst(_, _, _, stage),
                inside(from(k_tile)))
    end
    return way
  end
  -- what is between global and shared memory
  local held = cute.make_fragment_like(src(_, _, _, 0))       -- (CPY,M,K)
  function way.take(k_tile)
    local pred = inside(from(k_tile))
    if pred then held:fill(0) end
    cute.copy(g2s, src(_, _, _, from(k_tile)), held, pred)
  end
  function way.put(stage) cute.autovec_copy(held, dst(_, _, _, stage)) end
  function way.load(k_tile, stage)
    way.take(k_tile)
    way.put(stage)
  end
  return way
end

--- An operand's tiles: smem (rows,k,PIPE), frag (MMA,M,K), k_tiles, k_blocks
-- (the steps of fetch along K), load(k_tile, stage), fetch(stage, k_block),
-- and what that fetched: block(k_block), which is frag(_, _, k_block) where a
-- fetch brings what one MMA takes. Without cp.async load is take(k_tile),
-- to registers, and put(stage). Where K is (BK,k), a tile may be named by its
-- coordinates in k, of which there are k_shape.
---@param t any the matrix, (M,K) or (N,K)
---@param o {of: any, which: string, tile: integer[], at: any,
-- stages: integer, from: any?, k_tiles: any?, thread: any?, valid: function?,
-- cached: boolean?, arch: integer?, atom: any?, piece: any?, lead: integer?,
-- slots: integer?, plain: boolean?, halves: boolean?, as: any?}
-- from, k_tiles: the first tile of K, and how many (all); thread: this one's
-- index among those of the MMA; valid: of tiles.inside; cached: through L1,
-- for what is read again soon;
-- arch: 70 for a machine without cp.async and ldmatrix; atom: of fetch;
-- piece: of tiles.smem_layout; lead: 0 to have rows contiguous in shared
-- memory in any case, 1 for K; slots: fragments for so many blocks of K, in
-- turn (for all of a tile); plain: what is contiguous in M is padded at most,
-- not swizzled, for fetches that take whole runs of it at known offsets;
-- halves: what is turned comes in vectors through registers, by take and put,
-- not an element a cp.async; as: the MMA's type where it is not t's: fetch
-- converts.
function tiles.operand(t, o)
  t = tiles.matrix(in_tiles(t, o.tile[2]))
  o = setmetatable({thread = o.thread or (cute.arch.thread_idx())},
                   {__index = o})
  within(o.at, tiles.count(t.shape[1], o.tile[1]))
  local dtype, arch = t.element_type, o.arch or 80
  local lead, as = leading(t), o.as ~= t.element_type and o.as or nil
  -- Only 16-bit elements are transposed on their way to the fragments; the
  -- others are turned on their way into shared memory, one at a time.
  local s_lead = o.lead
    or dtype.bits == 16 and core.has(arch, "ldmatrix") and lead or 1
  local turned = s_lead ~= lead
  local s = cute.make_smem_tensor(dtype, o.plain and s_lead == 0
    and plain_layout(dtype.bits, o.tile, o.stages, turned)
    or tiles.smem_layout(dtype.bits, o.tile, o.stages, s_lead, o.piece),
    128)                                                      -- (BM,BK,PIPE)
  local A = way_in(t, s, o, lead, turned)

  local tid, mma = o.thread, o.of
  -- what is converted comes as the MMA wants it: in pairs along K
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
  local k = cute.size(frag, 2) // slots  -- MMAs of a block
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

--- Loads tile k_tile of a partition (MMA,M,K,k) of a matrix t into a fragment
-- (MMA,M,K), as wide as both allow; zeros outside of t.
---@param part any partition of t's tiles for this thread
---@param thr any this thread's slice of the MMA
---@param which string "A" or "B"
---@param tile integer[] of t
---@param at any the tile's row index
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

-- Which values of the accumulators lie inside of C, in groups of `width`
-- neighbours of the first mode; nil: all.
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

-- Neighbours along N in one thread that one access may move (`pair`: by the
-- partition, `width`: by t's rows, too), of t's part (MMA,M,N).
local function neighbours(t, part)
  if not is_plain(t) or not is_one(t.stride[2]) or cute.size(part, 0) % 2 ~= 0
    or not is_one(part.stride[1][1] or part.stride[1]) then
    return 1, 1
  end
  return 2, core.gcd(tiles.vector(t, 1), 2)
end

-- Moves what lies inside of C between a fragment and memory.
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

-- A vector's elements, for each column the same; a matrix as it is.
local function as_matrix(t, M)
  if cute.rank(t) > 1 then return tiles.matrix(t) end
  return cute.make_tensor(t.iterator, cute.make_layout(
    {M, t.shape[1] or t.shape}, {0, t.stride[1] or t.stride}))
end

--- This thread's part of C, and its accumulators: acc (MMA,M,N).
-- store(alpha, beta) writes C = alpha acc + beta C (alpha and beta nil: acc),
-- put(r) a fragment. load(t) gives what another matrix (M,N), or a vector (N),
-- has where the accumulators are, as a vector (MMA,M,N) of their type, or of
-- dtype, load(t, dtype); 0 outside. save(t, v) writes such a vector.
---@param t any C, (M,N)
---@param tile integer[] (BM,BN)
---@param at any[] the tile's place
---@param thread? any this one's index among those of the MMA
function tiles.result(t, mma, tile, at, thread)
  t = tiles.matrix(t)
  for i = 1, 2 do within(at[i], tiles.count(t.shape[i], tile[i])) end
  thread = thread or (cute.arch.thread_idx())
  local slice = mma:get_slice(thread)
  local part = slice:partition_C(cute.local_tile(t, tile, at))  -- (MMA,M,N)
  local acc = slice:make_fragment_C(part)                       -- (MMA,M,N)
  local C = {tensor = t, part = part, acc = acc, like = part, mma = mma,
             tile = tile, at = at, thread = thread}
  -- where an extent of 1 has stride 0, `part` says no order
  if is_plain(t) and (t.stride[1] == 0 or t.stride[2] == 0) then
    C.like = acc
  end
  C.pair, C.width = neighbours(t, part)
  if not (tiles.divides(tile[1], t.shape[1])
          and tiles.divides(tile[2], t.shape[2])) then
    C.crd = slice:partition_C(cute.local_tile(
      cute.make_identity_tensor(t.shape), tile, at))            -- (MMA,M,N)
  end
  function C.store(alpha, beta) tiles.store(C, alpha, beta) end
  function C.put(fragment) guarded(C, fragment, part) end
  local function other(x)
    local there = slice:partition_C(cute.local_tile(x, tile, at))
    local X = {tensor = x, crd = C.crd, acc = acc}
    X.pair, X.width = neighbours(x, there)
    return X, there
  end
  function C.load(x, dtype)
    x = as_matrix(x, t.shape[1])
    local X, from = other(x)
    local r = cute.make_rmem_tensor(acc.shape, x.element_type)
    if C.crd then r:fill(0) end
    guarded(X, from, r)
    return r:load():to(dtype or acc.element_type)
  end
  function C.save(x, v)
    local X, to = other(x)
    local r = cute.make_rmem_tensor(acc.shape, x.element_type)
    r:store(v:to(x.element_type))
    guarded(X, r, to)
  end
  return C
end

--- The accumulators of tiles.result, scaled, in C's type: (MMA,M,N). In the
-- order of `like`, C's part by default.
function tiles.scaled(C, alpha, beta, like)
  if not C.acc then
    core.fail("bad-argument", "scaled: what tiles.result gave is needed, not "
      .. core.show(C))
  end
  local dtype = C.tensor.element_type
  local out = cute.make_fragment_like(like or C.like, dtype)
  if alpha == nil then
    out:store(C.acc:load():to(dtype))
    return out
  end
  cute.when(cute.ne(beta, 0), function()  -- without it C may hold anything
    out:fill(0)
    guarded(C, C.part, out)
    local was = out:load():to(C.acc.element_type)
    out:store((C.acc:load() * alpha + was * beta):to(dtype))
  end, function()
    out:store((C.acc:load() * alpha):to(dtype))
  end)
  return out
end

--- What f makes of the accumulators of tiles.result, a vector (MMA,M,N), and
-- of C itself (its load, crd), in C's type.
---@param like? any as for tiles.scaled
function tiles.applied(C, f, like)
  local out = cute.make_fragment_like(like or C.like, C.tensor.element_type)
  out:store(f(C.acc:load(), C):to(C.tensor.element_type))
  return out
end

function tiles.store(C, alpha, beta)
  guarded(C, tiles.scaled(C, alpha, beta), C.part)
end

---------------------------------------------------------------------------
-- Where a block works
---------------------------------------------------------------------------

--- Block index to tile (m, n): columns of `group` tiles of M, so that blocks
-- at work at the same time share their tiles of A and B in L2. Group 1 goes
-- along the rows of C.
function tiles.raster(block, m_tiles, n_tiles, group)
  local some = positive(group) * positive(n_tiles)
  if math.type(some) and some < 1 then
    core.fail("overflow", ("%d groups of %d tiles"):format(group, n_tiles))
  end
  local first = block // some * group
  local rest = block % some
  local height = cute.min(group, m_tiles - first)
  return first + rest % height, rest // height
end

return sign.public("tiles.", tiles, [[
  divides(by: integer, extent: integer|value)
  count(extent: integer|value, tile: integer)
  vector(t: tensor, lead: integer) has_rows(t: tensor)
  smem_layout(bits: integer, tile: table, stages: integer, lead: integer,
    piece?: integer)
  walk(A: table, B: table)
  matrix(t: tensor) batch(t: tensor, l: integer|value)
  inside(thr: slice, t: tensor, tile: table, at, valid?: function)
  operand(t: tensor, options: table)
  loader(part: tensor, thr: slice, which: string, t: tensor, tile: table, at)
  result(t: tensor, mma: tiled, tile: table, at: table, thread?)
  applied(C: table, f: function, like?: tensor)
  scaled(C: table, alpha?: number|value, beta?: number|value, like?: tensor)
  store(C: table, alpha?: number|value, beta?: number|value)
  raster(block: integer|value, m_tiles: integer|value, n_tiles: integer|value,
    group: integer|value)
]])
