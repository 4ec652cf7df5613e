--- A GEMM for Hopper: D = A B^T by TMA and wgmma, in blocks that stay.
--
--     local gemm = gemm_sm90 {tile = {128, 256, 64}, stages = 4,
--                             cluster = {2, 1}}
--     local run = gemm.prepare(A, B, D, {device = "gpu"})
--     run:launch()
--
-- A (M,K) and B (N,K) have K contiguous, or of 16 bits M and N (a_major = "m",
-- b_major = "n"), D (M,N) its rows, or its columns (d_major = "m"); rows begin
-- at multiples of 16 bytes, which TMA asks for. Any M, N, K. dtype is the type
-- of all three, a_dtype, b_dtype and d_dtype that of one: bf16 and f16; e4m3
-- and e5m2; f32, multiplied as tf32; i8 and u8, with sums and D of i32. BK is
-- 128 bytes, or more of them.
--
-- One thread, the producer, asks for tiles of A and B along K and is far ahead;
-- warpgroups, the consumers, multiply what has come. Between them is a ring of
-- `stages` tiles (cute.pipeline). A cluster's blocks work side by side: each
-- loads its part of what they share for all of them.
--
--   schedule "cooperative": the consumers share a tile, 64 rows each in turn
--            "pingpong": each has a tile of its own; while one multiplies the
--            other writes its result. Tiles follow each other in the ring.
--
-- Tiles follow each other in bands: `swizzle` of them side by side along M,
-- then the next along N; with raster_along_m along N, then the next along M.
--
-- persistent = false: a block has one tile, whose place is the block's; for
-- results of no more tiles than there are multiprocessors, or twice as many
-- where min_blocks = 2 of them share one. With raster_along_m, and without
-- clusters, blocks side by side have tiles along N, else along M: in runs of so
-- many that these and the next runs read the fewest rows together.
--
-- ahead = "a" or "b", with pdl: that operand is written by nobody who may still
-- run: a block asks for its first tiles before it waits for the launch in
-- front, and lets the next one do so.
--
-- split = 2: two blocks of a cluster have a half of K each, for few tiles and
-- much K. Each sends half of its sums to the other and stores half of the tile;
-- a block has one tile.
--
-- split = "stream": the last tiles are divided along K so that all blocks end
-- at the same time (cute.utils.StreamKTileScheduler). Who has not the first
-- step of such a tile leaves its sums in a workspace; the one who has loads
-- them through the ring behind its own operands. They are added in the order of
-- K: results depend on the grid, not on who came when. Parts of less than
-- `least` steps are not worth it. With equal = n only the tiles past whole
-- waves are divided, in as many equal parts as there are blocks for, n at most.
--
-- scheduler "static": blocks take turns at tiles; "dynamic": whoever is free
-- draws the next from a counter (cute.utils.DynamicPersistentTileScheduler).
--
-- a_hint, b_hint, d_hint (of cpasync.CacheHint; the last is of D and of what is
-- read like it) tell L2 what is read again, l2_promotion (64, 128, 256) how
-- many bytes it reads of memory at once.
--
-- Tensor cores keep sums of 8-bit floats with fewer bits than f32 has: with
-- promote = n these are added to others, in f32, every n tiles along K, those
-- of 64 rows at a time. While one warpgroup adds, the other multiplies; with
-- turns nobody does.
--
-- blocks = 1 or 128, of 8-bit floats: sums of a tile along K, 128 elements,
-- have factors before they are added up: SA (M,K/128) and SB (N,K/128), whose
-- modes may be nested with strides of 0; a factor of SB is of so many columns.
-- They are the first of the epilogue's arguments; false: none.
--
-- batches = true: A (M,K,L), B (N,K,L) and D (M,N,L), matrices of L products; a
-- stride of 0 there is one matrix for all.
--
-- groups = "rows" or "masked": of groups of rows, which the device counts
-- (kernels.groups), each with its own of B (N,K,G); A (M,K) and D (M,N), masked
-- A (M,K,G) and D (M,N,G). The last argument is {offsets =} or {counts =}.
-- "list": of problems of their own, of which arguments() is given one; the last
-- argument is what list() gives, an epilogue has the sums alone.
-- Tiles of the groups follow each other; all take the same time, also those
-- that are not full: blocks out of step read what L2 holds no more.
--
-- gated = true: the first half of B's rows makes gates, the second what passes
-- them; the epilogue gets both, (gate, up, part, ...), and D (M,N) has half as
-- many columns as B (2N,K) rows, a multiple of 8.
--
-- sources = {{dtype =, major = "n" or "m"}, ...}: matrices like D that an
-- epilogue reads, its first arguments; place.source(i, dtype) is what one has
-- where the sums are. TMA brings them ahead of time into shared memory,
-- `source_stages` parts of each warpgroup's tile.
--
-- Sums leave through shared memory: stmatrix puts them into `epi_stages`
-- buffers of 64 rows a warpgroup (epi = {64, EN}: and EN columns, 128 bytes of
-- a row when absent), from which TMA stores them while the next are converted.
-- epi_loop = true: in a loop, so that an epilogue's function stands in the text
-- once; a first call takes two thirds of its time, the kernel as long as before
-- where other warpgroups multiply meanwhile for long enough.
local rules = require "kernels.operand_rules"
local choice = require "kernels.gemm_sm90.choice"
local core = require "cute.core"
local cute = require "cute"
local groups = require "kernels.groups"
local make_kernel = require "kernels.gemm_sm90.kernel"
local model = require "kernels.gemm_sm90.model"
local options = require "kernels.gemm_sm90.options"
local sign = require "cute.lang.signature"
local smem = require "kernels.gemm_sm90.smem"
local targets = require "cute.targets"
local wrong = require "kernels.gemm_sm90.option_rules"

local _ = cute._
local cpasync, utils = cute.nvgpu.cpasync, cute.utils

local gemm_sm90 = {candidates = choice.candidates, choose = choice.choose}

-- B (2N,K[,L]) with 8 rows of either half in turn: a thread's sums of wgmma are
-- those of every eighth column.
local function in_turn(B)
  local shape, stride = B.shape, B.stride
  local n, d = shape[1] // 2, stride[1]
  shape[1], stride[1] = {8, 2, n // 8}, {d, n * d, 8 * d}
  return cute.make_tensor(B.iterator, cute.make_layout(shape, stride))
end

-- Clusters of so many blocks that run at once on `sms` multiprocessors: as the
-- driver says where operands are on a GPU, else by the table.
local function at_once(sms, size, place)
  local most = targets.clusters(sms, size)
  local gpu = size > 1 and place and place:match "^gpu:?(%d*)$"
  if not gpu then return math.max(most, 1) end
  local said = require "cute.gpu".clusters(size, tonumber(gpu) or 0)
  return math.max(said and math.min(said, sms // size) or most, 1)
end

local function make(given)
  local o = options.complete(given)
  local bm, bn, bk = table.unpack(o.tile)
  local made = make_kernel(o)
  local self = {block = o.block, options = o, epi_mma = made.epi_mma,
                cluster = {o.cluster[1] * o.split, o.cluster[2], 1}}
  self.kernel = cute.kernel(given.name or "gemm_sm90",
    {block = o.block, min_blocks = o.min_blocks}, made.f)

  --- TMA atoms and coordinates of A, B, D.
  function self.atoms(A, B, D)
    local function load(X, layout, rows, ctas)
      local kind = ctas > 1 and cpasync.CopyBulkTensorTileG2SMulticastOp()
        or cpasync.CopyBulkTensorTileG2SOp()
      return cpasync.make_tiled_tma_atom(kind, X, layout(_, _, 0), {rows, bk},
                                         ctas, {l2_promotion = o.l2_promotion})
    end
    local a, cA = load(A, made.a, bm, o.cluster[2])
    local b, cB = load(o.gated and in_turn(B) or B, made.b, bn, o.cluster[1])
    local d, cD = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileS2GOp(), D, made.d(_, _, 0, 0), o.epi)
    return a, cA, b, cB, d, cD
  end

  -- The first arguments of an epilogue, a list {n =}: maps of its sources.
  local function with_maps(more)
    local list, out, at = o.sources or {}, {n = 0}, o.blocks and 2 or 0
    local function push(x) out.n, out[out.n + 1] = out.n + 1, x end
    for i = 1, math.max(more.n, #list > 0 and at + #list or 0) do
      local s = list[i - at]
      if s then
        wrong.source(o, i - at, more[i])
        local atom, coords = cpasync.make_tiled_tma_atom(
          cpasync.CopyBulkTensorTileG2SOp(), more[i], smem.parts(o, s.dtype,
          s.major, 1)(_, _, 0, 0), o.epi)
        push(atom)
        push(coords)
      else
        push(more[i])
      end
    end
    return out
  end

  local function count(m, n)
    if o.gated then n = 2 * n end
    return (m + bm - 1) // bm, (n + bn - 1) // bn
  end

  --- All arguments of the kernel: for D = A B^T, with alpha or beta for
  -- D = alpha A B^T + beta D; more are the epilogue's. With split = "stream" a
  -- workspace is the last.
  function self.arguments(A, B, D, alpha, beta, ...)
    wrong.operands(o, A, B, D)
    local why = wrong.reach(o, A, B, D)
    rules.need(not why, "gemm_sm90", "%s (gemm_sm80 takes any)", why)
    local m, n = count(D.shape[1], D.shape[2])
    local k = (A.shape[2] + bk - 1) // bk
    if k < o.split then
      core.fail("bad-argument", ("gemm_sm90: K of %d is one tile of %d, which "
        .. "cannot be split"):format(A.shape[2], bk))
    end
    local list = table.pack(self.atoms(A, B, D))
    list[7], list[8], list[9], list.n = m, n, k, 9
    if o.shares then list.n = 12 end
    if not (alpha or beta or o.epilogue or o.blocks or o.groups) then
      return list
    end
    list[10], list[11], list[12] = D, alpha or 1.0, beta or 0.0
    if o.groups == "list" then list[10] = nil end
    if not (alpha or beta) then list[11], list[12] = nil, nil end
    local more = with_maps(table.pack(...))
    list.n = 12 + more.n
    return table.move(more, 1, more.n, 13, list)
  end

  --- Arguments as these, for others of the same types and layouts, and sources:
  -- a launch of what is known.
  function self.with(list, A, B, D, ...)
    local out = table.move(list, 1, list.n, 1, {n = list.n})
    if o.gated then B = in_turn(B) end
    out[1], out[3] = core.tma_rebind(list[1], A), core.tma_rebind(list[3], B)
    out[5] = core.tma_rebind(list[5], D)
    if list[10] then out[10] = D end
    for i = 1, select("#", ...) do
      local at = 11 + 2 * i + (o.blocks and 2 or 0)
      out[at] = core.tma_rebind(list[at], (select(i, ...)))
    end
    return out
  end

  --- The last argument for a list of problems {A, B, D}, for blocks of a grid,
  -- where operands are; the others are those of any of them. like: what was
  -- given for problems of the same types and layouts.
  function self.list(problems, grid, place, like)
    local space = {a = {}, b = {}, d = {}, shapes = like and like.shapes}
    local shapes = not like and core.buffer("i32", 3 * #problems)
    for g, x in ipairs(problems) do
      local A, B, D = table.unpack(x)
      if like then
        if o.gated then B = in_turn(B) end
        space.a[g] = core.tma_rebind(like.a[g], A)
        space.b[g] = core.tma_rebind(like.b[g], B)
        space.d[g] = core.tma_rebind(like.d[g], D)
      else
        local a, _, b, _, d = self.atoms(A, B, D)
        space.a[g], space.b[g], space.d[g] = a, b, d
        shapes[3 * g - 3], shapes[3 * g - 2] = A.shape[1], B.shape[1]
        shapes[3 * g - 1] = A.shape[2]
      end
    end
    space.shapes = space.shapes or cute.make_tensor(shapes,
      cute.make_layout({#problems, 3}, {3, 1})):to(place or "host")
    space.maps = cute.empty(cute.make_layout {16, #problems, 2 + o.consumers,
      grid[1] * grid[2] * grid[3]}, cute.i64, {device = place})
    return space
  end

  --- Does TMA take these? Rows at multiples of 16 bytes: true, or
  -- false and why not.
  ---@return boolean, string?
  function self.takes(A, B, D)
    local why = wrong.reach(o, A, B, D)
    return not why, why
  end

  --- The grid for results of (m,n), with `sms` multiprocessors; batches: how
  -- many, or how many groups; place: where operands are, "host" when absent.
  -- Blocks that stay are no more than run at once.
  function self.grid(m, n, sms, batches, place)
    rules.integers("gemm_sm90", {sms = sms}, {"sms"}, 1, 1 << 20)
    local tm, tn = count(m, n)
    if o.groups then
      local cm = o.cluster[1]
      tm, batches = groups.most(o.groups, m, batches, bm * cm) * cm, 1
    end
    if o.turned then tm, tn = tn, tm end
    if o.split > 1 then return {o.split, tm, tn} end
    if o.blocked then
      local run = model.run(o, tm, tn)
      return {run, tn, tm // run}
    elseif not o.persistent then
      local cm, cn = o.cluster[1], o.cluster[2]
      return {(tm + cm - 1) // cm * cm, (tn + cn - 1) // cn * cn,
              batches or 1}
    end
    local params = utils.PersistentTileSchedulerParams({tm, tn, batches or 1},
                                                       self.cluster)
    local most = at_once(sms or 132, o.cluster[1] * o.cluster[2], place)
    if o.stream then return {o.cluster[1], o.cluster[2], most} end
    return params:get_grid_shape(most)
  end

  --- What blocks of a grid share, for one launch at a time: with split =
  -- "stream" {sums =, turns =}, of o.acc and of i32 zeros, for parts of tiles;
  -- with scheduler = "dynamic" {counter =}, an i32 of 0.
  ---@param grid integer[]
  ---@param place? string where operands are, "host" when absent
  function self.workspace(grid, place)
    local blocks = grid[1] * grid[2] * grid[3]
    local function space(n, dtype)
      return cute.zeros({n}, dtype, {device = place})
    end
    if o.dynamic then return {counter = space(1, cute.i32)} end
    return {sums = space(blocks * bm * bn, o.acc),
            turns = space(blocks, cute.i32)}
  end

  --- A launch made ready; opts: those of a launch, alpha, beta, sms, and the
  -- workspace of split = "stream", its own when absent.
  function self.prepare(A, B, D, opts)
    opts = opts or {}
    local args = self.arguments(A, B, D, opts.alpha, opts.beta)
    local all = {grid = self.grid(D.shape[1], D.shape[2], opts.sms,
      o.batches and cute.size(D, 2) or B.shape[3] or 1, D.device),
                 cluster = self.cluster, pdl = o.pdl or nil}
    for k, v in pairs(opts) do all[k] = v end
    all.sms, all.alpha, all.beta, all.workspace = nil, nil, nil, nil
    if o.shares then
      args.n = args.n + 1
      args[args.n] = opts.workspace
        or self.workspace(all.grid, D.device)
    end
    return self.kernel(table.unpack(args, 1, args.n)):compile(all)
  end
  return self
end

--- gemm_sm90(options): a GEMM with these choices; see above. Fields: kernel,
-- block, cluster, atoms(A, B, D), arguments(A, B, D), grid(m, n),
-- prepare(A, B, D, opts).
setmetatable(gemm_sm90, {__call = function(_, given)
  return make(given)
end})

return sign.module("kernels.gemm_sm90", gemm_sm90)
