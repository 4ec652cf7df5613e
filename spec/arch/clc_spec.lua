-- Tests cluster launch control: a running cluster cancels the launch of another
-- one and computes its tile. Each tile must be computed once, as a count of
-- visits shows. Mistakes must be reported at their lines.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local arch, raises = cute.arch, support.raises

local ARCHS = {"sm_100a", "sm_100f", "sm_103a", "sm_110a", "sm_120a"}

-- Returns a kernel whose clusters visit their own blocks and those of clusters
-- that they cancel. count (X,Y,Z): visits of each block; who: its last visitor.
-- wait = false and fence = false omit steps; shift misaligns the response.
local function visits(o)
  return cute.kernel("visits", function(count, who)
    local answer = arch.alloc_smem(cute.i32, 8, 16) + (o.shift or 0)
    local bar = arch.alloc_smem(cute.i64, 1)
    local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
    local own = arch.cluster_idx()
    cute.when(cute.eq(tid, 0), function()
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init_fence()
    end)
    arch.cluster_arrive()
    arch.cluster_wait()
    local bx, by, bz = arch.block_idx()
    local x, y, z, valid, phase = bx - rank, by, bz, cute.ge(bx, 0), 0
    cute.loop(function() return valid end, function()
      cute.when(cute.eq(tid, 0), function()
        arch.mbarrier_arrive_and_expect_tx(bar, 16)
        count[{x + rank, y, z}] = count[{x + rank, y, z}] + 1
        who[{x + rank, y, z}] = own
      end)
      arch.cluster_arrive()
      arch.cluster_wait()
      cute.when(cute.eq(tid, 0) & cute.eq(rank, 0), function()
        arch.issue_clc_query(bar, answer)
      end)
      if o.wait ~= false then arch.mbarrier_wait(bar, phase) end
      local nx, ny, nz, ok = arch.clc_response(answer)
      if o.fence ~= false then arch.fence_view_async_shared() end
      arch.cluster_arrive()
      arch.cluster_wait()
      x, y, z, valid, phase = nx, ny, nz, cute.ne(ok, 0), phase ~ 1
    end)
  end)
end

-- Runs the kernel. Returns the numbers of visits, and the clusters that ran.
local function run(grid, cluster, options)
  local count = cute.zeros(grid, cute.i32)
  local who = cute.zeros(grid, cute.i32)
  local o = {grid = grid, block = 32, cluster = cluster,
             device = "sim:sm_100a"}
  for k, v in pairs(options or {}) do o[k] = v end
  visits {}(count, who):launch(o)
  local counts, owners = {}, {}
  for i = 0, cute.size(count) - 1 do
    counts[i + 1], owners[i + 1] = count[i], who[i]
  end
  return counts, owners
end

local function different(list)
  local seen, n = {}, 0
  for _, v in ipairs(list) do
    if not seen[v] then seen[v], n = true, n + 1 end
  end
  return n
end

describe("cluster launch control", function()
  for _, case in ipairs {{{40, 1, 1}, {1, 1, 1}}, {{12, 2, 3}, {2, 1, 1}},
                         {{1, 1, 1}, {1, 1, 1}}, {{4, 3, 5}, {4, 1, 1}}} do
    local grid, cluster = case[1], case[2]
    it(("visits each of %s blocks once"):format(table.concat(grid, "x")),
       function()
      for seed = 0, 9 do
        local counts = run(grid, cluster, {seed = seed})
        for i, n in ipairs(counts) do
          assert.equal(1, n, ("block %d, seed %d"):format(i - 1, seed))
        end
      end
    end)
  end

  it("cancels some clusters, and at some time cancels no more", function()
    local few, many = false, false
    for seed = 0, 9 do
      local _, owners = run({40, 1, 1}, {1, 1, 1}, {seed = seed})
      local n = different(owners)
      assert.is_true(n > 1 and n < 40, n)
      few, many = few or n < 10, many or n > 10
    end
    assert.is_true(few and many)
  end)

  it("gives one result with any number of threads", function()
    local _, one = run({40, 1, 1}, {1, 1, 1}, {threads = 1})
    local _, four = run({40, 1, 1}, {1, 1, 1}, {threads = 4})
    assert.same(one, four)
  end)

  it("compiles for every target that has it", function()
    local p = visits {}(cute.zeros({4, 1, 1}, cute.i32),
      cute.zeros({4, 1, 1}, cute.i32)):trace {block = 32, cluster = {2, 1, 1}}
    if not kernels.compiles(p, ARCHS) then pending "needs NVRTC" end
    local lacks = {sm_90a = "sm_100a or newer", sm_100 = "sm_100a"}
    for target, what in pairs(lacks) do
      local _, err = pcall(p.compile, p, target)
      assert.matches("clusterlaunchcontrol .- needs " .. what, err)
    end
  end)
end)

-- Returns a kernel that counts visits of tiles, which a tile scheduler hands
-- out. Each pipeline stage holds one response of cluster launch control. Warp 0
-- of the cluster's first block requests the next tile early, and all warps read
-- the response. If `pairs` is true, the cluster consists of pairs of blocks.
-- wrong = "acquire" omits producer_acquire; "both" lets all blocks request.
local function scheduled(tiles_mnl, cluster, stages, pairs, wrong)
  local params = cute.utils.ClcDynamicPersistentTileSchedulerParams(tiles_mnl,
    {cluster[1], cluster[2], 1})
  local Group, Agent = cute.pipeline.CooperativeGroup, cute.pipeline.Agent
  local vmnk = pairs and cute.tiled_divide(
    cute.make_layout {cluster[1], cluster[2], 1}, {cute.make_layout(2)})
  return cute.kernel("scheduled", function(count)
    local warp, lane = arch.warp_idx(), arch.lane_idx()
    local tiles = cute.utils.ClcDynamicPersistentTileScheduler(params, nil, nil,
      arch.alloc_smem(cute.i32, 4 * stages, 16))
    local pipe = cute.pipeline.PipelineClcFetchAsync {num_stages = stages,
      producer_group = Group(Agent.Thread), cta_layout_vmnk = vmnk or nil,
      cluster_shape_mn = not vmnk and cluster or nil,
      consumer_group = Group(Agent.Warp, 2)}
    local write, read = pipe:make_producer_state(), pipe:make_consumer_state()
    local asks = cute.eq(warp, 0) & cute.eq(lane, 0)
    if wrong ~= "both" then
      asks = asks & cute.eq(arch.block_idx_in_cluster(), 0)
    end
    local work = tiles:initial_work_tile_info()
    local m, n, l = table.unpack(work.tile_idx)
    local valid = work.is_valid_tile
    cute.loop(function() return valid end, function()
      cute.when(asks, function()
        if wrong ~= "acquire" then pipe:producer_acquire(write) end
        tiles:advance_to_next_work(pipe:producer_get_barrier(write),
                                   write.index)
      end)
      write:advance()
      cute.when(cute.eq(arch.thread_idx(), 0) & cute.lt(m, tiles_mnl[1])
        & cute.lt(n, tiles_mnl[2]), function()
        count[{m, n, l}] = count[{m, n, l}] + 1
      end)
      pipe:consumer_wait(read)
      local next_work = tiles:get_current_work(read.index)
      m, n, l = table.unpack(next_work.tile_idx)
      valid = next_work.is_valid_tile
      arch.sync_warp()
      pipe:consumer_release(read)
      read:advance()
    end)
    arch.cluster_arrive()
    arch.cluster_wait()
  end), params
end

describe("a scheduler by cluster launch control", function()
  for _, case in ipairs {{{5, 3, 2}, {1, 1}, 1}, {{5, 3, 2}, {2, 1}, 2},
                         {{4, 4, 1}, {2, 2}, 3}, {{1, 1, 1}, {1, 2}, 1},
                         {{6, 3, 1}, {2, 1}, 1, true},
                         {{8, 2, 1}, {4, 1}, 2, true}} do
    local shape, cluster, stages, pairs = table.unpack(case)
    it(("gives each of %s tiles to one block, %d stages%s"):format(
       table.concat(shape, "x"), stages, pairs and ", pairs" or ""), function()
      local kernel, params = scheduled(shape, cluster, stages, pairs)
      for seed = 0, 5 do
        local count = cute.zeros(shape, cute.i32)
        kernel(count):launch {grid = params:get_grid_shape(), block = 64,
          cluster = {cluster[1], cluster[2], 1}, device = "sim:sm_100a",
          seed = seed, strict = true}
        for i = 0, cute.size(count) - 1 do assert.equal(1, count[i]) end
      end
      local call = kernel(cute.zeros(shape, cute.i32))
      if not kernels.compiles(call:trace {block = 64,
        cluster = {cluster[1], cluster[2], 1}}, {"sm_100a"}) then
        pending "needs NVRTC"
      end
    end)
  end

  it("needs shared memory for answers", function()
    raises("a pointer to i32 of shared memory is needed", function()
      local params =
        cute.utils.ClcDynamicPersistentTileSchedulerParams {1, 1, 1}
      cute.utils.ClcDynamicPersistentTileScheduler(params, {0, 0, 0}, nil,
        cute.zeros({4}, cute.i32).iterator)
    end)
  end)
end)

describe("a mistake with cluster launch control", function()
  local function reported(o)
    local count = cute.zeros({8, 1, 1}, cute.i32)
    local who = cute.zeros({8, 1, 1}, cute.i32)
    local _, err = pcall(function()
      visits(o)(count, who):launch {grid = {8, 1, 1}, block = 32,
        device = "sim:sm_100a", strict = true}
    end)
    return tostring(err)
  end

  it("is an answer that is read without a wait", function()
    assert.matches("clc_spec.lua:40: read of shared memory while .- is in "
      .. "flight .wait missing: mbarrier 'bar'.-%[async%-in%-flight%]",
      reported {wait = false})
  end)

  it("is an answer overwritten without a fence", function()
    assert.matches('no fence_proxy%("async"%) in between', reported {
      fence = false})
  end)

  it("is an answer that is not aligned", function()
    assert.matches("%[misaligned%]", reported {shift = 2})
  end)

  -- Checks the advice on a mistake of a tile scheduler in clusters of 2 blocks.
  local function advises(wrong, advice)
    local kernel, params = scheduled({6, 3, 1}, {2, 1}, 1, true, wrong)
    local _, err = pcall(function()
      kernel(cute.zeros({6, 3, 1}, cute.i32)):launch {block = 64,
        grid = params:get_grid_shape(), cluster = {2, 1, 1}, seed = 1,
        device = "sim:sm_100a"}
    end)
    assert.truthy(tostring(err):find(advice, 1, true), err)
  end

  it("is a query of each block, or one that no thread announces", function()
    advises("both", "another block of the cluster has arrived in this phase: "
      .. "should only one block arrive, such as that of rank 0?")
    advises("acquire", "no thread fills the stage: does the producer call "
      .. "pipe:producer_acquire(state) before its query, for each stage?")
  end)

  it("is an answer outside shared memory", function()
    raises("the response needs 16 bytes of shared memory", function()
      cute.kernel("k", function(x)
        local bar = arch.alloc_smem(cute.i64, 1)
        arch.issue_clc_query(bar, x.iterator)
      end)(cute.zeros({4}, cute.i32)):trace {block = 32}
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
