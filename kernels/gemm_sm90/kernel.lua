--- The kernel of kernels/gemm_sm90: its shared memory and barriers, and the
-- roles of its warps.
local core = require "cute.core"
local cute = require "cute"
local block_scales = require "kernels.gemm_sm90.block_scales"
local store_tile = require "kernels.gemm_sm90.store_tile"
local cluster_splitk = require "kernels.gemm_sm90.cluster_splitk"
local ragged = require "kernels.groups"
local mainloop = require "kernels.gemm_sm90.mainloop"
local make_parts = require "kernels.gemm_sm90.stream"
local producer = require "kernels.gemm_sm90.producer"
local tile_order = require "kernels.gemm_sm90.tile_order"
local smem = require "kernels.gemm_sm90.smem"
local sources = require "kernels.gemm_sm90.sources"
local tiles = require "cute.tiles"

local _ = cute._
local cpasync, pipeline = cute.nvgpu.cpasync, cute.pipeline
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

local WARPGROUP = 128

-- Splits the kernel's further arguments. Returns four values: the epilogue's
-- arguments, the tensor maps of its sources, the data that blocks of the launch
-- share, and the scale factors of blocks of K.
local function further(o, ...)
  local more, maps, space, SA, SB = table.pack(...), {}, nil, nil, nil
  if o.shares then
    space, more.n = more[more.n], more.n - 1
    if type(space) ~= "table" then
      core.fail("bad-argument", "gemm_sm90: with split = \"stream\" or "
        .. "scheduler = \"dynamic\" the last argument must be a workspace; "
        .. "with groups it must be {offsets =} or {counts =}")
    end
  end
  if o.blocks then
    SA, SB = more[1] or nil, more[2] or nil
    table.move(more, 3, more.n, 1)
    more.n = more.n - 2
  end
  for i = 1, #(o.sources or {}) do
    maps[i] = {atom = more[1], coords = more[2]}
    table.move(more, 3, more.n, 1)
    more.n = more.n - 2
  end
  return more, maps, space, SA, SB
end

-- Makes the ring of stages through which the producer passes operand tiles to
-- the consumers.
local function make_ring(o, bytes, maker)
  -- The number of warpgroups that compute a tile together.
  local groups = o.pingpong and 1 or o.consumers
  return pipeline.PipelineTmaAsync {
    num_stages = o.stages, tx_count = bytes,
    producer_group = Group(Agent.Thread),
    consumer_group = Group(Agent.Warp, 4 * groups),
    cluster_shape_mn = o.cluster, maker = maker, defer_sync = true}
end

-- Makes the object with which warpgroups take turns in multiplying.
local function make_turns(o, warp, maker)
  return pipeline.PipelineOrder {
    depth = 1, length = o.consumers, group_id = warp // 4,
    producer_group = Group(Agent.Warp, 4), maker = maker, defer_sync = true}
end

-- Returns the number of steps of k_tiles tiles along K. All tiles of a step
-- have the same scale factors.
local function steps_of(o, k_tiles) return tiles.count(k_tiles, o.promote) end

--- Makes the kernel for options with all defaults filled in (options.complete).
---@return table {f =, a =, b =, d =, epi_mma =}: a, b and d are layouts of
-- stages and buffers; epi_mma: a tiled MMA of 64 rows and o.epi[2] columns
return function(o)
  local bm, bn, bk = table.unpack(o.tile)
  local consumers = o.consumers
  local groups = o.pingpong and 1 or consumers
  local layout_a = smem.stages(o, bm, o.a_dtype, o.a_major)
  local layout_b = smem.stages(o, bn, o.b_dtype, o.b_major)
  local layout_d = smem.parts(o, o.d_dtype, o.d_major, o.epi_stages)
  local mma = cute.make_tiled_mma(mainloop.op(o, bn),
                                  cute.make_layout {groups, 1, 1})
  local epi_mma = cute.make_tiled_mma(mainloop.op(o, o.epi[2]))

  local function kernel(tma_a, cA, tma_b, cB, tma_d, cD, tiles_m, tiles_n,
                        k_tiles, D, alpha, beta, ...)
    local more, maps, space, SA, SB = further(o, ...)
    for _, count in ipairs {tiles_m, tiles_n, k_tiles} do
      cute.assume(count, 1, (1 << 31) - 1, 1)
    end
    if o.groups == "list" then
      cA, cB, cD = ragged.endless(cA), ragged.endless(cB),
        ragged.endless(cD)
    end
    local tid = cute.arch.thread_idx()
    local warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    local loader = tid:eq(consumers * WARPGROUP)
    local scaler = o.blocks and warp:eq(4 * consumers + 1)
    cute.when(loader, function()
      for _, atom in ipairs {tma_a, tma_b, tma_d} do
        cpasync.prefetch_descriptor(atom)
      end
      for _, x in ipairs(maps) do cpasync.prefetch_descriptor(x.atom) end
    end)
    local sA = cute.arch.alloc_smem(o.a_dtype, cute.cosize(layout_a), 1024)
    local sB = cute.arch.alloc_smem(o.b_dtype, cute.cosize(layout_b), 1024)
    local parts = o.stream and make_parts(o, space, sA, sB)
    sA, sB = cute.make_tensor(sA, layout_a), cute.make_tensor(sB, layout_b)
    local sD = cute.make_smem_tensor(o.d_dtype, layout_d, 1024)
    local pipe = make_ring(o, tma_a.tx_bytes + tma_b.tx_bytes, loader)
    local order = o.pingpong and make_turns(o, warp, loader)
    local ring = o.blocks and block_scales.ring(o, loader, SA, SB)
    local read_of = #maps > 0 and sources.new(o, maps, loader)
    local m, n = cute.arch.block_in_cluster_idx()
    local rank, first_k, mail = 0, 0, nil
    if o.split > 1 then
      rank, mail = m, cluster_splitk.mail(o, loader)
      first_k, k_tiles = cluster_splitk.range(o, k_tiles, rank)
      pipeline.pipeline_init_arrive(true, true)
    end
    -- Returns this block's copies of the tensor maps for a list of problems,
    -- else nil: of A (i = 0), of B (i = 1), or of D for each warpgroup (i = 2
    -- and later).
    local function maps_of(i)
      if o.groups ~= "list" then return nil end
      local cluster = select(3, cute.arch.block_idx())
      return space.maps(_, _, i, cute.arch.block_idx_in_cluster()
        + cluster * o.cluster[1] * o.cluster[2])
    end
    -- The number of rows of D: of all groups together or, if masked, of each
    -- group.
    local most = o.groups and D and D.shape[1]
    local walk = tile_order.walks(o, tiles_m, tiles_n, most
      or o.batches and cute.size(cD, 2) or 1, k_tiles, space, loader)
    -- Without clusters, the consumers must wait until the producer has
    -- initialized the mbarriers. The producer only arrives at this barrier,
    -- because it need not wait for the consumers.
    local made = not o.clustered and pipeline.NamedBarrier {
      barrier_id = consumers + 1, num_threads = o.block}
    if not made then pipeline.agent_sync(true, true) end

    local function produce()
      if o.registers then
        cute.arch.setmaxregister_decrease(o.registers.producer)
      end
      if made then
        cute.arch.sync_warp()
        if ring then
          cute.when(scaler, function() made:arrive_and_wait() end,
                    function() made:arrive() end)
        else
          made:arrive()
        end
      end
      if o.pdl and not o.ahead then cute.arch.griddepcontrol_wait() end
      cute.when(loader, function()
        local a = producer.load(o, {atom = tma_a, coords = cA, smem = sA,
          rows = bm, mode = 2, block = {m, n}, hint = o.a_hint,
          atoms = space and space.a, maps = maps_of(0)})
        local b = producer.load(o, {atom = tma_b, coords = cB, smem = sB,
          rows = bn, mode = 1, block = {m, n}, hint = o.b_hint,
          atoms = space and space.b, maps = maps_of(1)})
        producer.run(o, pipe, {a, b}, walk "producer", first_k, k_tiles, parts)
      end)
      if ring then
        cute.when(scaler, function()
          if o.ahead then cute.arch.griddepcontrol_wait() end
          block_scales.load(o, ring, walk "factors", first_k // o.promote,
                            steps_of(o, k_tiles))
        end)
      end
    end

    local function consume()
      if o.registers then
        cute.arch.setmaxregister_increase(o.registers.consumer)
      end
      if made then made:arrive_and_wait() end
      if o.pdl then cute.arch.griddepcontrol_wait() end
      local group = warp // 4
      local thr = mma:get_slice(o.pingpong and tid % WARPGROUP or tid)
      -- The number of rows of A that one call of the MMA multiplies.
      local rows = o.promote and 64 * groups or bm
      local tCrA = {}
      for i = 1, bm // rows do
        tCrA[i] = mma:make_fragment_A(thr:partition_A(
          cute.local_tile(sA, {rows, bk}, {i - 1, 0})))
      end
      local tCrB = mma:make_fragment_B(thr:partition_B(sB))
      local acc = cute.make_rmem_tensor(mma:partition_shape_C {rows, bn}, o.acc)
      local read = pipe:make_consumer_state()
      local out = store_tile.new(o, {mma = epi_mma, atom = tma_d, coords = cD,
        smem = sD, group = group, thread = tid % WARPGROUP, rank = rank, D = D,
        alpha = alpha, beta = beta, more = more, atoms = space and space.d,
        maps = maps_of(2 + group),
        sources = read_of and read_of:of(epi_mma, group, tid % WARPGROUP)})
      local factors = ring and block_scales.reader(o, ring, out, acc)
      local work = walk "consumer"
      -- Advances by `count` tiles, of which `others` belong to other
      -- warpgroups.
      local function advance(count, others)
        work:advance_to_next_work(count)
        read:advance(others * k_tiles)
        if factors then factors.skip(others * steps_of(o, k_tiles)) end
      end
      if o.pingpong then advance(group, group) end
      tile_order.each(o, work, function()
        local w = work:get_current_work()
        store_tile.ahead(o, out, w.tile_idx)
        if order then order:wait() end
        local function issued()
          if order then order:arrive() end
        end
        local sums, steps = acc, w.k_count or k_tiles
        if o.overlapped then
          sums = mainloop.multiply_overlapped(o, mma, pipe, read, acc, tCrA[1],
                                              tCrB, steps, factors)
          issued()
        elseif o.promote then
          sums = mainloop.multiply_promoted(o, mma, pipe, read, acc, tCrA, tCrB,
                                            steps, factors)
          issued()
        else
          mainloop.multiply(mma, pipe, read, acc, tCrA[1], tCrB, steps, issued)
        end
        if mail then
          pipeline.pipeline_init_wait(true)
          sums = cluster_splitk.exchange(o, mail, sums, rank)
        end
        if parts then
          parts:each(work, w, function() parts:add(pipe, read, sums) end)
          cute.when(cute.eq(w.k_first, 0), function()
            store_tile.store(o, out, sums, w)
          end, function()
            parts:leave(sums, parts:slot(w.range), out.barrier, out.leader)
          end)
        else
          store_tile.store(o, out, sums, w)
        end
        if o.pingpong then advance(consumers, consumers - 1)
        else work:advance_to_next_work() end
      end)
      -- Permits the next launch only here. If it started earlier, its waiting
      -- blocks would slow down the running blocks.
      if o.pdl and not o.ahead then
        cute.arch.griddepcontrol_launch_dependents()
      end
      cute.when(out.leader, function() out.pipe:producer_tail() end)
    end

    cute.when(warp:ge(4 * consumers), produce, consume)
  end
  return {f = kernel, a = layout_a, b = layout_b, d = layout_d,
          epi_mma = epi_mma}
end
-- SPDX-License-Identifier: MIT
