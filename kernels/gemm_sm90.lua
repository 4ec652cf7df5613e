--- A persistent GEMM for Hopper: D = A B^T by TMA and wgmma.
--
--     local gemm = gemm_sm90 {tile = {128, 256, 64}, stages = 4,
--                             cluster = {2, 1}}
--     local run = gemm.prepare(A, B, D, {device = "gpu"})
--     run:launch()
--
-- A (M,K) and B (N,K) have contiguous K, or for 16-bit types M and N (a_major =
-- "m", b_major = "n"). D (M,N) has contiguous rows, or columns (d_major = "m").
-- Rows begin at multiples of 16 bytes, as TMA requires. M, N, K can have any
-- size. dtype is the type of A, B and D; a_dtype, b_dtype and d_dtype override
-- it for one matrix. A and B both have type bf16, f16 or f32 (multiplied as
-- tf32), or any two 8-bit floats (e4m3, e5m2), or any two 8-bit integers (i8,
-- u8). Integers have accumulators and D of i32. BK is a multiple of 64 bytes.
--
-- One thread, the producer, issues TMA loads of tiles of A and B along K, far
-- ahead of their use. Warpgroups, the consumers, multiply the tiles that have
-- arrived. Between them is a ring of `stages` tiles (cute.pipeline). The blocks
-- of a cluster load shared tiles together: each loads a part and multicasts it
-- to all.
--
-- schedule "cooperative": the consumers share a tile; they take turns with its
--   units of 64 rows.
-- "pingpong": each consumer has its own tile; while one multiplies, the other
--   writes its result. Tiles are consecutive in the ring.
--
-- Tiles are ordered in bands: `swizzle` tiles along M, then as many at the next
-- index along N, and so on. raster_along_m exchanges the roles of M and N.
--
-- With persistent = false, each block computes one tile, whose index is the
-- block's index. Use it for results with at most as many tiles as
-- multiprocessors, or twice as many with min_blocks = 2. Consecutive blocks
-- have tiles along M or, with raster_along_m and without clusters, along N.
-- They form runs, whose length (model.run) minimizes the rows of A and B that
-- concurrent blocks read.
--
-- ahead = "a" or "b" (together with pdl) states that no launch that may still
-- be running writes operand A or B. A block issues the loads of its first tiles
-- before it waits for the preceding launch, and lets the next launch do the
-- same.
--
-- With split = 2, two blocks of a cluster each compute half of K. This is for
-- products with few tiles and a large K. Each sends half of its accumulators to
-- the other and stores half of the tile. A block computes one tile.
--
-- With split = "stream", the last tiles are split along K so that all blocks
-- end at the same time (cute.utils.StreamKTileScheduler). A block without the
-- first step of such a tile stores its partial sums in a workspace; the block
-- with the first step loads them through the ring after its own operands. They
-- are added in the order of K: results depend on the grid, not on timing. Parts
-- of less than `least` steps are avoided. With equal = n, only the tiles that
-- remain after the full waves are split. Each of them is split into equal
-- parts: as many as there are blocks for, but at most n.
--
-- With scheduler "static", blocks take tiles in turn. With "dynamic", a block
-- that becomes idle draws the next tile from a counter in global memory
-- (cute.utils.DynamicPersistentTileScheduler).
--
-- a_hint, b_hint and d_hint (values of cpasync.CacheHint) tell L2 which data is
-- read again; d_hint also applies to the sources. l2_promotion (64, 128, 256)
-- is the number of bytes that L2 reads from memory at once.
--
-- Tensor cores accumulate 8-bit floats with fewer bits than f32 has. With
-- promote = n, the accumulators are added to f32 sums every n tiles along K, 64
-- rows at a time. While one warpgroup adds, the other multiplies; if the
-- warpgroups alternate, the tensor cores wait.
--
-- With blocks = 1 or 128, for 8-bit floats, the accumulators of each tile along
-- K, 128 elements, are scaled before they are added. The factors are SA
-- (M,K/128) and SB (N,K/128), the first arguments of the epilogue. Their modes
-- can be nested with strides of 0. A factor of SB covers `blocks` columns.
--
-- With batches = true, A (M,K,L), B (N,K,L) and D (M,N,L) hold the matrices of
-- L products. A matrix with stride 0 along L is the same for all products.
--
-- groups = "rows" or "masked": the device counts the rows of each group
-- (kernels.groups), and each group has its own B (N,K,G). With "rows", A is
-- (M,K) and D (M,N), and the kernel's last argument is {offsets = tensor}. With
-- "masked", A is (M,K,G) and D (M,N,G), and the last argument is {counts =
-- tensor}. With groups = "list", the groups are separate problems, and one of
-- them is passed to arguments(). The last argument is the result of list(), and
-- an epilogue gets only the accumulators. Tiles of the groups are consecutive.
-- A partial tile takes as long as a whole one, since blocks out of step would
-- read data that L2 no longer holds.
--
-- With gated = true, the product of A and the first half of B's rows gives
-- gates. The product of A and the second half gives the values that they gate.
-- The epilogue gets both, (gate, up, part, ...). D (M,N) has half as many
-- columns as B (2N,K) has rows; N must be a multiple of 8.
--
-- sources = {{dtype =, major = "n" or "m"}, ...} describes matrices with the
-- extents of D that the epilogue reads. The function arguments() takes them
-- after beta (and SA, SB), before the epilogue's own arguments. part.source(i,
-- dtype) returns the values of source i (from 1) at the accumulators'
-- positions. TMA loads `source_stages` parts of each warpgroup's tile ahead to
-- shared memory.
--
-- Accumulators are stored through shared memory. stmatrix writes them to
-- `epi_stages` buffers of 64 rows for each warpgroup, and of EN columns with
-- epi = {64, EN}, by default 128 bytes of a row. TMA stores a buffer while the
-- next is converted. With epi_loop = true the buffers are filled in a loop, so
-- that the code contains the epilogue's function once. This saves a third of
-- the first call's time. The kernel is as fast as without the loop if other
-- warpgroups multiply for long enough meanwhile.
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

-- Returns B (2N,K[,L]) with alternating groups of 8 rows from both halves. A
-- thread's wgmma accumulators are 8 columns apart, so it then holds the same
-- columns of both halves.
local function in_turn(B)
  local shape, stride = B.shape, B.stride
  local n, d = shape[1] // 2, stride[1]
  shape[1], stride[1] = {8, 2, n // 8}, {d, n * d, 8 * d}
  return cute.make_tensor(B.iterator, cute.make_layout(shape, stride))
end

-- Returns the number of clusters of `size` blocks that run at once on `sms`
-- multiprocessors: as the driver reports if the operands are on a GPU, else
-- from a table.
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

  --- Returns a TMA atom and a tensor of coordinates for each of A, B and D.
  function self.atoms(A, B, D)
    local function load(X, layout, rows, ctas)
      if wrong.is_view(X) then
        return X.load(layout(_, _, 0), {rows, bk}, ctas,
                      {l2_promotion = o.l2_promotion})
      end
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

  -- Returns the list `more` of an epilogue's arguments with the TMA atom and
  -- the coordinates of each source in place of its tensor.
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

  --- Returns all arguments of the kernel: for D = A B^T, or with alpha or beta
  -- for D = alpha A B^T + beta D; further arguments are the epilogue's. With
  -- split = "stream", the last is a workspace.
  function self.arguments(A, B, D, alpha, beta, ...)
    wrong.operands(o, A, B, D)
    local why = wrong.reach(o, A, B, D)
    rules.need(not why, "gemm_sm90", "%s (gemm_sm80 accepts any layout)", why)
    local m, n = count(D.shape[1], D.shape[2])
    local k = (B.shape[2] + bk - 1) // bk
    if k < o.split then
      core.fail("bad-argument", ("gemm_sm90: K = %d is a single tile of %d, "
        .. "which cannot be split"):format(B.shape[2], bk))
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

  --- Returns a copy of `list`, which self.arguments returned, with other
  -- operands and sources of the same types and layouts. The launch
  -- configuration can be reused.
  function self.with(list, A, B, D, ...)
    local out = table.move(list, 1, list.n, 1, {n = list.n})
    if o.gated then B = in_turn(B) end
    out[1] = core.tma_rebind(list[1], wrong.is_view(A) and A.tensor or A)
    out[3] = core.tma_rebind(list[3], B)
    out[5] = core.tma_rebind(list[5], D)
    if list[10] then out[10] = D end
    for i = 1, select("#", ...) do
      local at = 11 + 2 * i + (o.blocks and 2 or 0)
      out[at] = core.tma_rebind(list[at], (select(i, ...)))
    end
    return out
  end

  --- Returns the kernel's last argument for `problems`, a list of {A, B, D}. It
  -- has memory for the blocks of `grid`, on the operands' device `place`. The
  -- other arguments are those of any of the problems. like: an earlier result
  -- for problems of the same types and layouts.
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

  --- Reports whether TMA accepts these operands (rows at multiples of 16
  -- bytes): true, or false and the reason.
  ---@return boolean, string?
  function self.takes(A, B, D)
    local why = wrong.reach(o, A, B, D)
    return not why, why
  end

  --- Returns the grid for a D of (m,n) on a device with `sms` multiprocessors.
  -- `batches` is the number of batches or groups; `place` is the operands'
  -- device, "host" when absent. A persistent grid has at most as many blocks as
  -- run at once.
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

  --- Allocates the data that blocks of a grid share, for one launch at a time.
  -- With split = "stream" it is {sums =, turns =}: partial sums of type o.acc,
  -- and i32 zeros, for parts of tiles. With scheduler = "dynamic" it is
  -- {counter =}, an i32 of 0.
  ---@param grid integer[]
  ---@param place? string the operands' device, "host" when absent
  function self.workspace(grid, place)
    local blocks = grid[1] * grid[2] * grid[3]
    local function space(n, dtype)
      return cute.zeros({n}, dtype, {device = place})
    end
    if o.dynamic then return {counter = space(1, cute.i32)} end
    return {sums = space(blocks * bm * bn, o.acc),
            turns = space(blocks, cute.i32)}
  end

  --- Prepares a launch. opts: launch options, alpha, beta, sms, and the
  -- workspace of split = "stream", allocated when absent.
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

--- gemm_sm90(options): returns a GEMM with these options; see above. Fields of
-- the GEMM: kernel, block, cluster, atoms(A, B, D), arguments(A, B, D), grid(m,
-- n), prepare(A, B, D, opts).
setmetatable(gemm_sm90, {__call = function(_, given)
  return make(given)
end})

return sign.module("kernels.gemm_sm90", gemm_sm90)
-- SPDX-License-Identifier: MIT
