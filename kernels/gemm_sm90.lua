--- A GEMM for Hopper: D = A B^T by TMA and wgmma, in blocks that stay.
--
--     local gemm = gemm_sm90 {tile = {128, 256, 64}, stages = 4,
--                             cluster = {2, 1}}
--     local run = gemm.prepare(A, B, D, {device = "gpu"})
--     run:launch()
--
-- A (M,K) and B (N,K) have K contiguous, or of 16 bits M and N (a_major = "m",
-- b_major = "n"), D (M,N) either mode; rows begin at multiples of 16 bytes,
-- which TMA asks for. Any M, N, K. dtype is the type of
-- all three, a_dtype, b_dtype and d_dtype that of one: bf16 and f16; e4m3 and
-- e5m2; f32, multiplied as tf32; i8 and u8, with sums and D of i32. BK is 128
-- bytes, or more of them.
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
-- persistent = false: a block has one tile, whose place is the block's; for
-- results of no more tiles than there are multiprocessors.
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
-- a_hint, b_hint (of cpasync.CacheHint) tell L2 which operand is read again,
-- l2_promotion (64, 128, 256) how many bytes it reads of memory at once.
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
-- gated = true: the first half of B's rows makes gates, the second what passes
-- them; the epilogue gets both, (gate, up, part, ...), and D (M,N) has half as
-- many columns as B (2N,K) rows, a multiple of 8.
--
-- Sums leave through shared memory: stmatrix puts them into `epi_stages`
-- buffers of 64 rows a warpgroup (epi = {64, EN}: and EN columns, 128 bytes of
-- a row when absent), from which TMA stores them while the next are converted.
local check = require "kernels.check"
local cute = require "cute"
local core = require "cute.core"
local tiles = require "cute.tiles"
local factors_of = require "kernels.gemm_sm90_factors"
local wrong = require "kernels.gemm_sm90_check"
local choice = require "kernels.gemm_sm90_choice"
local make_parts = require "kernels.gemm_sm90_parts"
local _ = cute._

local cpasync, warpgroup = cute.nvgpu.cpasync, cute.nvgpu.warpgroup
local pipeline, utils = cute.pipeline, cute.utils
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

local WARPGROUP = 128

---------------------------------------------------------------------------
-- What is chosen
---------------------------------------------------------------------------

local DEFAULTS = {
  tile = {128, 128, 64}, stages = 4, cluster = {1, 1}, consumers = 2,
  schedule = "cooperative", dtype = cute.bf16,
  epi_stages = 2, swizzle = 8, raster_along_m = false, pdl = false,
  a_major = "k", b_major = "k", d_major = "n", split = 1, least = 4,
  scheduler = "static", persistent = true,
}

-- Sums that a thread holds: of its tile and, where these are added to others,
-- of 64 rows more.
local function sums_of(o)
  local rows = o.pingpong and o.tile[1] or o.tile[1] // o.consumers
  return (rows + (o.promote and 64 or 0)) * o.tile[2] // WARPGROUP
end

-- Registers of a thread: all have the same when there is one producer warp;
-- past this many sums the producers are a warpgroup that gives its own away.
-- It spills a few with 24.
local function registers(o)
  local sums = sums_of(o)
  if sums <= 128 then return nil end
  if sums <= 200 or o.promote then return {producer = 40, consumer = 232} end
  return {producer = 24, consumer = 240}
end

local FURTHER = {epi = true, epilogue = true, name = true, a_dtype = true,
                 b_dtype = true, d_dtype = true, promote = true, equal = true,
                 a_hint = true, b_hint = true, l2_promotion = true,
                 gated = true, batches = true, blocks = true}

-- Columns that leave at once: 128 or 64 bytes of D's rows, else all of a
-- tile's. What an epilogue computes has registers besides: fewer, if some go
-- into the tile without a rest.
local function run_of(o)
  local run = 1024 // o.d_dtype.bits
  if o.columns % run == 0 then return run end
  if o.d_major == "m" then return o.columns end
  if o.columns % (run // 2) == 0 then return run // 2 end
  for n = 128, 32, -8 do
    if o.epilogue and o.columns % n == 0 then return n end
  end
  return o.columns
end

local function complete(given)
  local o = {}
  check.need(type(given) == "table", "gemm_sm90", "%s; a table of choices is "
    .. "needed", core.show(given))
  for k, v in pairs(DEFAULTS) do o[k] = v end
  for k, v in pairs(given) do
    if o[k] == nil and not FURTHER[k] then
      core.fail("unknown-name", ("gemm_sm90: no option '%s'"):format(k))
    end
    o[k] = v
  end
  wrong.options(o)
  o.a_dtype, o.b_dtype = o.a_dtype or o.dtype, o.b_dtype or o.dtype
  o.acc = o.a_dtype.is_integer and cute.i32 or cute.f32
  o.d_dtype = o.d_dtype or o.a_dtype.bits == 8 and (o.a_dtype.is_integer
    and cute.i32 or cute.bf16) or o.dtype
  o.pingpong = o.schedule == "pingpong"
  o.registers = registers(o)
  o.clustered = o.cluster[1] * o.cluster[2] > 1
  o.producer_threads = o.registers and WARPGROUP or 32
  o.block = o.consumers * WARPGROUP + o.producer_threads
  o.rows = o.pingpong and o.tile[1] or o.tile[1] // o.consumers
  o.stream, o.dynamic = o.split == "stream", o.scheduler == "dynamic"
  o.shares = o.stream or o.dynamic
  if o.stream then
    o.split = 1
    if o.pingpong or o.cluster[1] > 1 and o.cluster[2] > 1 then
      core.fail("bad-argument", "gemm_sm90: split = \"stream\" is for "
        .. "consumers that share a tile, and clusters along one mode")
    end
  end
  o.columns = o.tile[2] // o.split // (o.gated and 2 or 1)  -- of D, of a block
  if o.split ~= 1 and (o.split ~= 2 or o.cluster[1] * o.cluster[2] > 1
      or o.pingpong) then
    core.fail("bad-argument", "gemm_sm90: split is 1 or, without clusters and "
      .. "turns, 2")
  end
  if o.split > 1 then o.persistent = false end
  if o.dynamic and (o.stream or not o.persistent) then
    core.fail("bad-argument", "gemm_sm90: scheduler = \"dynamic\" gives whole "
      .. "tiles to blocks that stay")
  end
  if o.pingpong and not o.persistent then
    core.fail("bad-argument", "gemm_sm90: warpgroups take turns in blocks that "
      .. "stay: persistent = false has one tile a block")
  end
  o.epi = o.epi or {64, run_of(o)}
  -- buffers go round: those of a tile are whole rounds
  local stores = o.rows // 64 * (o.columns // o.epi[2])
  while stores % o.epi_stages ~= 0 do o.epi_stages = o.epi_stages - 1 end
  -- Warpgroups that have a tile before them meet twice for each part of it: for
  -- its buffer, as late as can be, and when it is full. Else once for both.
  o.apart = o.persistent or o.epi_stages == 1
  return o
end

-- Swizzles by the bits of a run.
local KINDS = {[2048] = "SW128", [1024] = "SW128", [512] = "SW64",
               [256] = "SW32", [128] = "INTER"}

-- Layout of an operand's stages, (rows,K,stage): rows of 128 bytes, swizzled.
local function stages_layout(o, rows, dtype, major)
  if major ~= "k" then
    local run = core.gcd(rows, 1024 // dtype.bits)
    local atom = warpgroup.make_smem_layout_atom(
      "MN_" .. KINDS[run * dtype.bits], dtype)
    return cute.tile_to_shape(atom, {rows, o.tile[3], o.stages}, {1, 0, 2})
  end
  local span = 1024 // dtype.bits
  local kind = o.tile[3] % span == 0 and "K_SW128" or "K_SW64"
  local atom = warpgroup.make_smem_layout_atom(kind, dtype)
  return cute.tile_to_shape(atom, {rows, o.tile[3], o.stages}, {0, 1, 2})
end

-- Layout of the buffers that sums leave through, (64,columns,buffer,consumer).
-- What is no swizzled row lies as it does in D.
local function epi_layout(o)
  local bits, all = o.d_dtype.bits, o.epi[1] * o.epi[2]
  local run = o.epi[2] * bits
  if o.d_major == "n" and run % 1024 ~= 0 and run & (run - 1) ~= 0 then
    return cute.make_layout({o.epi[1], o.epi[2], o.epi_stages, o.consumers},
                            {o.epi[2], 1, all, all * o.epi_stages})
  end
  local kind
  if o.d_major == "m" then kind = "MN_" .. KINDS[64 * bits]
  else kind = "K_" .. KINDS[math.min(o.epi[2] * bits & -o.epi[2] * bits, 1024)]
  end
  local atom = warpgroup.make_smem_layout_atom(kind, o.d_dtype)
  return cute.tile_to_shape(atom, {o.epi[1], o.epi[2], o.epi_stages,
                                   o.consumers}, {0, 1, 2, 3})
end

---------------------------------------------------------------------------
-- The kernel
---------------------------------------------------------------------------

local function stage_of(layout) return layout(_, _, 0) end

-- Makes walks through the tiles of this block, in the order in which clusters
-- take them: the "producer" and the "consumer" have one each. `space` is what
-- blocks of a launch share, maker the thread that makes barriers.
local function tiles_of(o, tiles_m, tiles_n, tiles_l, k_tiles, space, maker)
  local x, y, z = cute.arch.block_idx()
  if not o.persistent then
    local tile = o.split > 1 and {y, z, 0} or {x, y, o.batches and z or 0}
    local work = {advance_to_next_work = function() end,
                  get_current_work = function()
                    return utils.WorkTileInfo(tile, true)
                  end}
    return function() return work end
  end
  local params = utils.PersistentTileSchedulerParams(
    {tiles_m, tiles_n, tiles_l}, {o.cluster[1], o.cluster[2], 1},
    {swizzle_size = o.swizzle, raster_along_m = o.raster_along_m})
  local grid = {cute.arch.grid_dim()}
  if o.dynamic then
    local shared = utils.DynamicPersistentTileScheduler(params, {
      counter = space.counter, maker = maker, defer_sync = true,
      consumer_group = Group(Agent.Warp, 4 * o.consumers)}, {x, y, z}, grid)
    return function(who) return shared[who](shared) end
  end
  return function()
    if o.stream then
      return utils.StreamKTileScheduler(params, k_tiles,
        {least = o.least, equal = o.equal}, {x, y, z}, grid)
    end
    return utils.StaticPersistentTileScheduler(params, {x, y, z}, grid)
  end
end

-- f for each tile of this block.
local function each_tile(o, work, f)
  if not o.persistent then return f() end
  cute.loop(function() return work:is_valid() end, f)
end

-- One thread: asks for A and B of each tile, along K.
local function produce(o, pipe, loads, work, first_k, k_tiles, parts)
  local write = pipe:make_producer_state()
  each_tile(o, work, function()
    local w = work:get_current_work()
    local at, from = w.tile_idx, {}
    local k_first = w.k_first or first_k
    for i, X in ipairs(loads) do
      if o.batches then from[i] = X.gmem(_, at[i], _, at[3])
      else from[i] = X.gmem(_, at[i], _) end
    end
    for k in cute.range(w.k_count or k_tiles) do
      pipe:producer_acquire(write)
      local how = {tma_bar_ptr = pipe:producer_get_barrier(write)}
      for i, X in ipairs(loads) do
        how.mcast_mask, how.cache_policy = X.mask, X.hint
        cute.copy(X.atom, from[i](_, k_first + k), X.smem(_, write.index), how)
      end
      write:advance()
    end
    if parts then
      parts:each(work, w, function(slot) parts:fetch(pipe, write, slot) end)
    end
    work:advance_to_next_work()
  end)
  if o.clustered then pipe:producer_tail(write) end
  if o.dynamic then work:tail() end
end

-- Products of one tile: acc = A B^T. The stage before is given back when the
-- products behind it are under way. issued() is called when all are.
local function multiply(mma, pipe, read, acc, tCrA, tCrB, k_tiles, issued)
  local before = read:clone()
  for k in cute.range(k_tiles) do
    pipe:consumer_wait(read)
    warpgroup.fence()
    mma:set(warpgroup.Field.ACCUMULATE, core.gt(k, 0))
    cute.gemm(mma, acc, tCrA(_, _, _, read.index), tCrB(_, _, _, read.index),
              acc)
    mma:set(warpgroup.Field.ACCUMULATE, true)
    warpgroup.commit_group()
    warpgroup.wait_group(1)
    cute.when(core.gt(k, 0), function() pipe:consumer_release(before) end)
    before.index = read.index
    read:advance()
  end
  issued()
  warpgroup.wait_group(0)
  pipe:consumer_release(before)
end

-- The same in sums of f32, to which acc, that of 64 rows of each warpgroup, is
-- added every `promote` tiles along K. tCrA is a list of such rows.
local function multiply_promoted(o, mma, pipe, read, acc, tCrA, tCrB, k_tiles,
                                 factors)
  local sums = cute.make_rmem_tensor(cute.size(acc) * #tCrA, o.acc)
  sums:fill(0)
  local function each(count, f)
    if o.promote == 1 then return f(0) end
    for k in cute.range(count) do f(k) end
  end
  for at in cute.range(tiles.count(k_tiles, o.promote)) do
    local count = cute.min(o.promote, k_tiles - at * o.promote)
    for i, rows in ipairs(tCrA) do
      local from = read:clone()
      local by = factors and factors(i - 1, at)
      each(count, function(k)
        pipe:consumer_wait(from)
        warpgroup.fence()
        mma:set(warpgroup.Field.ACCUMULATE, core.gt(k, 0))
        cute.gemm(mma, acc, rows(_, _, _, from.index),
                  tCrB(_, _, _, from.index), acc)
        mma:set(warpgroup.Field.ACCUMULATE, true)
        warpgroup.commit_group()
        from:advance()
      end)
      warpgroup.wait_group(0)
      if i == #tCrA then
        each(count, function()
          pipe:consumer_release(read)
          read:advance()
        end)
      end
      local part = cute.make_tensor(sums.iterator + (i - 1) * cute.size(acc),
                                    acc.layout)
      if by then acc:store(acc:load() * by:load()) end
      part:store(part:load() + acc:load())
    end
  end
  return sums
end

-- What leaves of the n-th 64 rows and o.epi[2] columns of sums, at tile `at` of
-- those, of matrix l: alpha D' + beta D, or what the epilogue makes of them.
local function finish(o, out, acc, n, at, l, part)
  local values = 64 * o.epi[2] // WARPGROUP
  local function place()
    if not o.batches then
      return tiles.result(out.D, out.mma, o.epi, at, out.thread)
    end
    local function batch(t) return tiles.batch(t, l) end
    local C = tiles.result(batch(out.D), out.mma, o.epi, at, out.thread)
    C.batch, C.l = batch, l
    return C
  end
  if o.gated then
    local function half(first)
      return cute.make_tensor(acc.iterator + n * 2 * values + first,
        cute.make_layout(part.shape, {{1, 2, 8}, 0, 0})):load()
    end
    part:store(o.epilogue(half(0), half(4), place(),
      table.unpack(out.more, 1, out.more.n)):to(o.d_dtype))
    return
  end
  local sums = cute.make_tensor(acc.iterator + n * values, part.layout):load()
  if o.epilogue then
    sums = o.epilogue(sums, place(), table.unpack(out.more, 1, out.more.n))
  elseif out.alpha then
    cute.when(cute.ne(out.beta, 0), function()
      local C = place()
      local was = C.load(C.batch and C.batch(out.D) or out.D)
      part:store((sums * out.alpha + was * out.beta):to(o.d_dtype))
    end, function() part:store((sums * out.alpha):to(o.d_dtype)) end)
    return
  end
  part:store(sums:to(o.d_dtype))
end

-- Sums of a tile to D: 64 rows and o.epi[2] columns at a time. A buffer is
-- filled anew when the leader, who stores, knows that it was read, and all have
-- met the leader.
local function store(o, out, acc, at, barrier)
  local part, columns, pipe, leader = out.part, o.epi[2], out.pipe, out.leader
  local atom, tma, gmem, group = out.atom, out.tma, out.gmem, out.group
  local parts = o.columns // columns
  local first, last = o.persistent and 0 or o.epi_stages, o.rows // 64 * parts
  local function free(n)  -- the buffer of part n; new ones are free
    if n < first or n == last then return end
    cute.when(leader, function() pipe:producer_acquire() end)
  end
  for n = 0, last - 1 do
    local i, j, buffer = n // parts, n % parts, n % o.epi_stages
    local place = {at[1] * (o.tile[1] // 64) + out.row(i),
                   (at[2] * o.split + out.half) * parts + j}
    if o.apart then
      free(n)
      if n >= first then barrier:arrive_and_wait() end
    end
    local inside = core.lt(place[1], out.count[1])
      & core.lt(place[2], out.count[2])
    local function put()
      finish(o, out, acc, n, place, at[3], part)
      cute.copy(out.r2s, out.retiled, out.smem(_, _, _, buffer, out.group))
      cute.arch.fence_view_async_shared()
    end
    -- of what lies outside there is nothing to load
    if o.epilogue or out.alpha then cute.when(inside, put) else put() end
    if not o.apart then free(n + 1) end
    barrier:arrive_and_wait()
    cute.when(leader, function()
      cute.when(inside, function()
        cute.copy(atom, tma(_, buffer, group), o.batches
          and gmem(_, place[1], place[2], at[3]) or gmem(_, place[1], place[2]))
      end)
      pipe:producer_commit()
    end)
  end
end

---------------------------------------------------------------------------
-- K in two halves
---------------------------------------------------------------------------

-- What one block of a pair gets from the other: half of a tile's sums, and the
-- mbarrier that counts their bytes.
local function make_mail(o, maker)
  local sums = o.tile[1] * o.columns
  local mail = cute.arch.alloc_smem(o.acc, sums, 16)
  local came = cute.arch.alloc_smem(cute.i64, 1)
  cute.when(maker, function()
    cute.arch.mbarrier_init(came, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.mbarrier_arrive_and_expect_tx(came, sums * o.acc.bits // 8)
  end)
  return {sums = mail, came = came}
end

-- The sums of this block's half of the columns, of both halves of K.
local function exchange(o, mail, acc, half)
  local tid, threads = cute.arch.thread_idx(), o.consumers * WARPGROUP
  local all = o.tile[2] * 64 // WARPGROUP           -- of 64 rows, a thread's
  local n = all // 2
  local own = cute.make_rmem_tensor({n, o.rows // 64}, o.acc)
  local first = cute.eq(half, 0)
  local function place(i, v) return ((i * n + v) // 4 * threads + tid) * 4 end
  for i = 0, o.rows // 64 - 1 do
    for v = 0, n - 1, 4 do
      local send = {}
      for e = 0, 3 do
        local low, high = acc[i * all + v + e], acc[i * all + n + v + e]
        send[e + 1] = cute.where(first, high, low)
        own[{v + e, i}] = cute.where(first, low, high)
      end
      cute.arch.store_async_dsmem(mail.sums + place(i, v), send, mail.came,
                                  1 - half)
    end
  end
  cute.arch.mbarrier_wait(mail.came, 0)
  for i = 0, o.rows // 64 - 1 do
    for v = 0, n - 1, 4 do
      local got = cute.make_rmem_tensor({4}, o.acc)
      cute.autovec_copy(cute.make_tensor(mail.sums + place(i, v),
                                         cute.make_layout(4)), got)
      for e = 0, 3 do own[{v + e, i}] = own[{v + e, i}] + got[e] end
    end
  end
  return own
end

-- The multiplication of n columns.
local function op_of(o, n)
  local a, b = o.a_dtype, o.b_dtype
  if a.bits == 32 then return warpgroup.MmaTF32Op({64, n, 8}, "SMEM") end
  if a.bits == 16 then
    return warpgroup.MmaF16BF16Op(a, o.acc, {64, n, 16}, "SMEM",
      o.a_major == "k" and "K" or "MN", o.b_major == "k" and "K" or "MN")
  end
  local make = a.is_integer and warpgroup.MmaI8Op or warpgroup.MmaF8Op
  return make(a, b, o.acc, {64, n, 32}, "SMEM")
end

-- stmatrix of four 8x8 matrices, or of two where 16 columns are no part; of
-- wider numbers pairs, or what lies alone.
local function store_atom(o)
  if o.d_dtype.bits ~= 16 then
    return cute.make_copy_atom("UniversalCopy", o.d_dtype,
                               o.d_dtype.bits * (o.d_major == "m" and 1 or 2))
  end
  local x = o.epi[2] % 16 == 0 and 2 or 1
  local name = o.d_major == "m" and ("SM90_U16x%d_STSM_T"):format(4 * x)
    or ("SM90_U32x%d_STSM_N"):format(2 * x)
  return cute.make_copy_atom(name, o.d_dtype)
end

local function build(o)
  local bm, bn, bk = table.unpack(o.tile)
  local consumers, cluster = o.consumers, o.cluster
  local groups = o.pingpong and 1 or consumers  -- that share a tile
  local layout_a = stages_layout(o, bm, o.a_dtype, o.a_major)
  local layout_b = stages_layout(o, bn, o.b_dtype, o.b_major)
  local layout_d = epi_layout(o)
  local mma = cute.make_tiled_mma(op_of(o, bn),
                                  cute.make_layout {groups, 1, 1})
  local epi_mma = cute.make_tiled_mma(op_of(o, o.epi[2]))
  local vmnk = cute.make_layout {1, cluster[1], cluster[2], 1}

  local function kernel(tma_a, cA, tma_b, cB, tma_d, cD, tiles_m, tiles_n,
                        k_tiles, D, alpha, beta, ...)
    local more, space = table.pack(...), nil
    if o.shares then
      space, more.n = more[more.n], more.n - 1
      if type(space) ~= "table" then
        core.fail("bad-argument", "gemm_sm90: with split = \"stream\" or "
          .. "scheduler = \"dynamic\" the last argument is a workspace")
      end
    end
    for _, count in ipairs {tiles_m, tiles_n, k_tiles} do
      cute.assume(count, 1, (1 << 31) - 1, 1)
    end
    local SA, SB
    if o.blocks then
      SA, SB = more[1] or nil, more[2] or nil
      table.move(more, 3, more.n, 1)
      more.n = more.n - 2
    end
    local tid = cute.arch.thread_idx()
    local warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    local loader = tid:eq(consumers * WARPGROUP)
    cute.when(loader, function()
      for _, atom in ipairs {tma_a, tma_b, tma_d} do
        cpasync.prefetch_descriptor(atom)
      end
    end)
    local sA = cute.arch.alloc_smem(o.a_dtype, cute.cosize(layout_a), 1024)
    local sB = cute.arch.alloc_smem(o.b_dtype, cute.cosize(layout_b), 1024)
    local parts = o.stream and make_parts(o, space, sA, sB)
    sA, sB = cute.make_tensor(sA, layout_a), cute.make_tensor(sB, layout_b)
    local sD = cute.make_smem_tensor(o.d_dtype, layout_d, 1024)
    local pipe = pipeline.PipelineTmaAsync {
      num_stages = o.stages, tx_count = tma_a.tx_bytes + tma_b.tx_bytes,
      producer_group = Group(Agent.Thread),
      consumer_group = Group(Agent.Warp, 4 * groups),
      cluster_shape_mn = cluster, maker = loader, defer_sync = true}
    local order = o.pingpong and pipeline.PipelineOrder {
      depth = 1, length = consumers, group_id = warp // 4,
      producer_group = Group(Agent.Warp, 4), maker = loader,
      defer_sync = true}
    local m, n = cute.arch.block_in_cluster_idx()
    local half, first_k, mail = 0, 0, nil
    if o.split > 1 then
      half, mail = m, make_mail(o, loader)
      local some = k_tiles // 2
      first_k, k_tiles = half * some,
        cute.where(cute.eq(half, 0), some, k_tiles - some)
      pipeline.pipeline_init_arrive(true, true)
    end
    local make_work = tiles_of(o, tiles_m, tiles_n,
      o.batches and cute.size(cD, 2) or 1, k_tiles, space, loader)
    -- The producer, who made the barriers, does not wait for the consumers, but
    -- for blocks that it loads for.
    local made = not o.clustered and pipeline.NamedBarrier {
      barrier_id = consumers + 1, num_threads = o.block}
    if not made then pipeline.agent_sync(true, true) end

    local function load_of(atom, coords, s, rows, shared_by, place, mode, hint)
      local g = cute.local_tile(coords, {rows, bk},        -- (rows,BK,tile,k,l)
                                o.batches and {_, _, _} or {_, _})
      local tile, from = cpasync.tma_partition(atom,
        shared_by > 1 and place or 0, cute.make_layout(shared_by),
        cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
      return {atom = atom, smem = tile, gmem = from, hint = hint,
              mask = shared_by > 1 and cpasync.create_tma_multicast_mask(vmnk,
                {0, m, n, 0}, mode) or nil}
    end

    cute.when(warp:ge(4 * consumers), function()
      if o.registers then
        cute.arch.setmaxregister_decrease(o.registers.producer)
      end
      if made then
        cute.arch.sync_warp()
        made:arrive()
      end
      if o.pdl then cute.arch.griddepcontrol_wait() end
      cute.when(loader, function()
        produce(o, pipe, {
          load_of(tma_a, cA, sA, bm, cluster[2], n, 2, o.a_hint),
          load_of(tma_b, cB, sB, bn, cluster[1], m, 1, o.b_hint)},
          make_work "producer", first_k, k_tiles, parts)
      end)
    end, function()
      if o.registers then
        cute.arch.setmaxregister_increase(o.registers.consumer)
      end
      if made then made:arrive_and_wait() end
      if o.pdl then cute.arch.griddepcontrol_wait() end
      local group = warp // 4
      local thr = mma:get_slice(o.pingpong and tid % WARPGROUP or tid)
      local rows = o.promote and 64 * groups or bm  -- multiplied at once
      local tCrA = {}
      for i = 1, bm // rows do
        tCrA[i] = mma:make_fragment_A(thr:partition_A(
          cute.local_tile(sA, {rows, bk}, {i - 1, 0})))
      end
      local tCrB = mma:make_fragment_B(thr:partition_B(sB))
      local acc = cute.make_rmem_tensor(mma:partition_shape_C {rows, bn}, o.acc)
      local read = pipe:make_consumer_state()
      local atom = store_atom(o)
      local r2s = cute.make_tiled_copy_C(atom, epi_mma)
      local slice = r2s:get_slice(tid % WARPGROUP)
      local part = cute.make_rmem_tensor(epi_mma:partition_shape_C(o.epi),
                                         o.d_dtype)
      local gD = cute.local_tile(cD, o.epi,                  -- (64,EN,m,n,l)
                                 o.batches and {_, _, _} or {_, _})
      local tma, gmem = cpasync.tma_partition(tma_d, 0, cute.make_layout(1),
        cute.group_modes(sD, 0, 2), cute.group_modes(gD, 0, 2))
      local out = {
        part = part, r2s = r2s, retiled = slice:retile(part),
        smem = slice:partition_D(sD), group = group,
        tma = tma, gmem = gmem, atom = tma_d,
        count = {cute.size(gD, 2), cute.size(gD, 3)},
        half = half, leader = (tid % WARPGROUP):eq(0), thread = tid % WARPGROUP,
        mma = epi_mma, D = D, alpha = alpha, beta = beta, more = more,
        pipe = pipeline.PipelineTmaStore {
          num_stages = o.apart and o.epi_stages or o.epi_stages - 1},
        -- wgmma's 64 rows i of a warpgroup, in those of the tile
        row = function(i)
          return o.pingpong and i or i * consumers + group
        end}
      local barrier = pipeline.NamedBarrier {barrier_id = group + 1,
                                             num_threads = WARPGROUP}
      local work = make_work "consumer"
      if o.pingpong then
        work:advance_to_next_work(group)
        read:advance(group * k_tiles)
      end
      each_tile(o, work, function()
        local w = work:get_current_work()
        if order then order:wait() end
        local function issued()
          if order then order:arrive() end
        end
        local sums, steps = acc, w.k_count or k_tiles
        if o.promote then
          sums = multiply_promoted(o, mma, pipe, read, acc, tCrA, tCrB, steps,
            o.blocks and factors_of(o, out, acc, w.tile_idx, SA, SB))
          issued()
        else
          multiply(mma, pipe, read, acc, tCrA[1], tCrB, steps, issued)
        end
        if mail then
          pipeline.pipeline_init_wait(true)
          sums = exchange(o, mail, sums, half)
        end
        if parts then
          parts:each(work, w, function() parts:add(pipe, read, sums) end)
          cute.when(cute.eq(w.k_first, 0), function()
            store(o, out, sums, w.tile_idx, barrier)
          end, function()
            parts:leave(sums, parts:slot(w.range), barrier, out.leader)
          end)
        else
          store(o, out, sums, w.tile_idx, barrier)
        end
        if o.pingpong then
          work:advance_to_next_work(consumers)
          read:advance((consumers - 1) * k_tiles)
        else
          work:advance_to_next_work()
        end
      end)
      -- Blocks of the next launch that wait earlier are in the way of these.
      if o.pdl then cute.arch.griddepcontrol_launch_dependents() end
      cute.when(out.leader, function() out.pipe:producer_tail() end)
    end)
  end
  return kernel, layout_a, layout_b, layout_d, epi_mma
end

---------------------------------------------------------------------------

local gemm_sm90 = {}

-- Shared memory that choices take besides their stages, and of a stage.
local function room(o)
  local buffers = o.epi[1] * o.epi[2] * o.epi_stages * o.consumers
    * o.d_dtype.bits // 8
  local mail = o.split > 1 and o.tile[1] * o.columns * o.acc.bits // 8 or 0
  local stage = (o.tile[1] * o.a_dtype.bits + o.tile[2] * o.b_dtype.bits)
    * o.tile[3] // 8
  return 1024 + buffers + mail, stage
end

local SHARED = 227 * 1024  -- bytes that a block can have
local SUMS = 216           -- of a thread: more leave no registers

--- The choices that can be for a product of (m,k) and (n,k), the best by rule
-- first: {options =, seconds =, waves =} each, options as gemm_sm90 takes them.
---@param m integer
---@param n integer
---@param k integer
---@param o? table options that all of them have (dtype, d_major, epilogue ...),
-- and sms: multiprocessors, 132 when absent
---@return table[]
function gemm_sm90.candidates(m, n, k, o)
  local fixed, sms, list = {}, 132, {}
  for name, v in pairs(o or {}) do
    if name == "sms" then sms = v else fixed[name] = v end
  end
  for _, options in ipairs(choice.list(fixed, complete(fixed))) do
    if fixed.batches then options.split = nil end
    local full = complete(options)
    local rest, stage = room(full)
    local stages = math.min((SHARED - rest) // stage, 8)
    if stages >= 3 and sums_of(full) <= SUMS
      and full.epi[2] >= 16  -- less leaves in rows too short
      and (full.acc ~= cute.i32 or full.tile[2] % 16 == 0)  -- wgmma's N
      and k > (full.split - 1) * full.tile[3] then
      local seconds, waves = choice.time(full, m, n, k, sms)
      options.stages = stages
      choice.settle(options, full, m, n, k, waves)
      list[#list + 1] = {options = options, seconds = seconds, waves = waves,
                         at = #list}
    end
  end
  table.sort(list, function(a, b)
    return a.seconds < b.seconds or a.seconds == b.seconds and a.at < b.at
  end)
  return list
end

--- The choices that gemm_sm90 should have for a product: the first of the
-- candidates, and all of them.
---@return table options
---@return table[] candidates
function gemm_sm90.choose(m, n, k, o)
  local list = gemm_sm90.candidates(m, n, k, o)
  return list[1].options, list
end

-- B (2N,K) with 8 rows of either half in turn: a thread's sums of wgmma are
-- those of every eighth column.
local function in_turn(B)
  local n, stride = B.shape[1] // 2, B.stride
  return cute.make_tensor(B.iterator, cute.make_layout(
    {{8, 2, n // 8}, B.shape[2]},
    {{stride[1], n * stride[1], 8 * stride[1]}, stride[2]}))
end

local function make(given)
  local o = complete(given)
  local bm, bn, bk = table.unpack(o.tile)
  local f, layout_a, layout_b, layout_d, epi_mma = build(o)
  local self = {block = o.block, options = o, epi_mma = epi_mma,
                cluster = {o.cluster[1] * o.split, o.cluster[2], 1}}
  self.kernel = cute.kernel(given.name or "gemm_sm90", {block = o.block,
                                                        min_blocks = 1}, f)

  --- TMA atoms and coordinates of A, B, D.
  function self.atoms(A, B, D)
    local function load(X, layout, rows, ctas)
      local kind = ctas > 1 and cpasync.CopyBulkTensorTileG2SMulticastOp()
        or cpasync.CopyBulkTensorTileG2SOp()
      return cpasync.make_tiled_tma_atom(kind, X, stage_of(layout), {rows, bk},
                                         ctas, {l2_promotion = o.l2_promotion})
    end
    local a, cA = load(A, layout_a, bm, o.cluster[2])
    local b, cB = load(o.gated and in_turn(B) or B, layout_b, bn, o.cluster[1])
    local d, cD = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileS2GOp(), D, layout_d(_, _, 0, 0), o.epi)
    return a, cA, b, cB, d, cD
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
    check.need(not why, "gemm_sm90", "%s (gemm_sm80 takes any)", why)
    local m, n = count(D.shape[1], D.shape[2])
    local k = (A.shape[2] + bk - 1) // bk
    if k < o.split then
      core.fail("bad-argument", ("gemm_sm90: K of %d is one tile of %d, which "
        .. "cannot be split"):format(A.shape[2], bk))
    end
    local list = table.pack(self.atoms(A, B, D))
    list[7], list[8], list[9], list.n = m, n, k, 9
    if o.shares then list.n = 12 end
    if not (alpha or beta or o.epilogue or o.blocks) then return list end
    list[10], list[11], list[12] = D, alpha or 1.0, beta or 0.0
    list.n = 12 + select("#", ...)
    table.move({...}, 1, select("#", ...), 13, list)
    return list
  end

  --- Arguments as these, for others of the same types and layouts: a launch of
  -- what is known.
  function self.with(list, A, B, D)
    local out = table.move(list, 1, list.n, 1, {n = list.n})
    if o.gated then B = in_turn(B) end
    out[1], out[3] = core.tma_rebind(list[1], A), core.tma_rebind(list[3], B)
    out[5] = core.tma_rebind(list[5], D)
    if list[10] then out[10] = D end
    return out
  end

  --- Does TMA take these? Rows at multiples of 16 bytes: true, or
  -- false and why not.
  ---@return boolean, string?
  function self.takes(A, B, D)
    local why = wrong.reach(o, A, B, D)
    return not why, why
  end

  --- The grid for results of (m,n), with `sms` multiprocessors.
  function self.grid(m, n, sms, batches)
    check.integers("gemm_sm90", {sms = sms}, {"sms"}, 1, 1 << 20)
    local tm, tn = count(m, n)
    if o.split > 1 then return {o.split, tm, tn} end
    if not o.persistent then
      local cm, cn = o.cluster[1], o.cluster[2]
      return {(tm + cm - 1) // cm * cm, (tn + cn - 1) // cn * cn,
              batches or 1}
    end
    local params = utils.PersistentTileSchedulerParams({tm, tn, batches or 1},
                                                       self.cluster)
    local most = math.max((sms or 132) // (o.cluster[1] * o.cluster[2]), 1)
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
                                  o.batches and cute.size(D, 2) or 1),
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
return setmetatable(gemm_sm90, {__call = function(_, given)
  return make(given)
end})
