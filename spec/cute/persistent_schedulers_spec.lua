-- Tests that tile schedulers return every tile once, in the requested order.
local core = require "cute.core"
local cute = require "cute"
local brute = require "spec.raster".brute
local arch = cute.arch
local support = require "spec.support"
local pipeline, utils = cute.pipeline, cute.utils

-- Launches a scheduler. Returns how often each tile was taken (count[tile]),
-- and the position of each tile in the sequence of tiles that its cluster took.
-- If `traced` is true, the extents are arguments of the kernel. If it is
-- "argument", the scheduler's parameter object is an argument.
local function run(tiles, cluster, opts, most, traced)
  local host = utils.PersistentTileSchedulerParams(tiles, cluster, opts)
  local grid = host:get_grid_shape(most)
  local m, n, l = tiles[1], tiles[2], tiles[3] or 1
  local room = (m + 3) * (n + 3) * l
  local count = cute.zeros({room}, cute.i32)
  local place = cute.zeros({room}, cute.i32)
  local k = cute.kernel("walks", function(C, P, order, tm, tn, tl, given)
    local shape = traced and {tm, tn, tl} or {m, n, l}
    local o = {}
    for name, v in pairs(opts or {}) do o[name] = v end
    if o.order then o.order = order end
    local params = given
      or utils.PersistentTileSchedulerParams(shape, cluster, o)
    local walk = utils.StaticPersistentTileScheduler(params)
    cute.loop(function() return walk:is_valid() end, function()
      local t = walk:get_current_work().tile_idx
      local i = t[1] + (m + 3) * (t[2] + (n + 3) * t[3])
      cute.when(arch.thread_idx():eq(0), function()
        arch.atomic_add(C.iterator + i, 1)
        P[i] = walk.current_work_linear_idx
      end)
      walk:advance_to_next_work()
    end)
  end)
  local order = opts and opts.order or count
  assert(k(count, place, order, m, n, l, traced == "argument" and host or nil)
    :launch {grid = grid, block = 32, device = "sim"})
  return count, place, function(x, y, z)
    return x + (m + 3) * (y + (n + 3) * z)
  end
end

-- Launches a StreamKTileScheduler. It divides the steps of all tiles into
-- ranges, one for each cluster. Returns four tables. steps[tile * k + i]: how
-- many clusters computed step i of the tile; ends[tile]: how many clusters
-- finished the tile; left[range]: 1 + the tile whose partial sums the range
-- stored; got[range]: 1 + the tile to which these partial sums were added.
local function stream(tiles, k, clusters, opts, traced)
  local m, n = tiles[1], tiles[2]
  local room = {steps = m * n * k, ends = m * n, left = clusters + 1,
                got = clusters + 1}
  local t = {}
  for name, n_of in pairs(room) do t[name] = cute.zeros({n_of}, cute.i32) end
  local kernel = cute.kernel("stream", function(T, tm, tn, tk, given)
    if not traced then tm, tn, tk = m, n, k end
    local walk = utils.StreamKTileScheduler(given
      or utils.PersistentTileSchedulerParams({tm, tn, 1}), tk, opts)
    local one = arch.thread_idx():eq(0)
    cute.loop(function() return walk:is_valid() end, function()
      local w = walk:get_current_work()
      local at = w.tile_idx[1] * n + w.tile_idx[2]
      cute.when(one, function()
        for i in cute.range(w.k_first, w.k_first + w.k_count) do
          arch.atomic_add(T.steps.iterator + (at * k + i), 1)
        end
        cute.when(cute.eq(w.k_first, 0), function()
          arch.atomic_add(T.ends.iterator + at, 1)
          local from = w.range + 1
          cute.loop(function() return walk:has_part(from, w) end, function()
            T.got[from] = at + 1
            from = from + 1
          end)
        end, function()
          arch.atomic_add(T.left.iterator + w.range, at + 1)
        end)
      end)
      walk:advance_to_next_work()
    end)
  end)
  local given = traced == "argument"
    and utils.PersistentTileSchedulerParams {m, n, 1} or nil
  assert(kernel(t, m, n, k, given):launch {
    grid = {1, 1, clusters}, block = 32, device = "sim"})
  return t
end

describe("tile schedulers", function()
  local cases = {
    {{4, 4}, {1, 1, 1}, {swizzle_size = 2}, 3},
    {{4, 4}, {1, 1, 1}, {swizzle_size = 2, raster_along_m = false}, 16},
    {{5, 3, 2}, {1, 1, 1}, {}, 4}, {{3, 5, 2}, {1, 1, 1},
      {raster_along_m = false}, 7},
    {{7, 9}, {2, 1, 1}, {swizzle_size = 4}, 5},
    {{7, 9, 3}, {1, 2, 1}, {swizzle_size = 3, raster_along_m = false}, 5},
    {{1, 1}, {1, 1, 1}, {swizzle_size = 8}, 132},
    {{6, 10}, {2, 2, 1}, {swizzle_size = 8}, 2},
  }
  for number, case in ipairs(cases) do
    it(("give each tile to one block, in the order asked for, case %d")
      :format(number), function()
        local tiles, cluster, opts, most = table.unpack(case)
        local cm = (tiles[1] + cluster[1] - 1) // cluster[1]
        local cn = (tiles[2] + cluster[2] - 1) // cluster[2]
        local list = brute(cm, cn, opts.swizzle_size or 1,
                           opts.raster_along_m ~= false)
        for _, traced in ipairs {false, true, "argument"} do
          local count, place, at = run(tiles, cluster, opts, most, traced)
          for z = 0, (tiles[3] or 1) - 1 do
            for i, c in ipairs(list) do
              for x = 0, cluster[1] - 1 do
                for y = 0, cluster[2] - 1 do
                  local t = at(c[1] * cluster[1] + x, c[2] * cluster[2] + y, z)
                  assert.equal(1, count[t])
                  assert.equal(i - 1 + z * #list, place[t])
                end
              end
            end
          end
        end
      end)
  end

  it("are one program for all extents, one for each shape of clusters",
    function()
    local traced, seen = {n = 0}, nil
    local k = cute.kernel("walk", function(C, params)
      traced.n = traced.n + 1
      seen = {math.type(params.swizzle_size), params.raster_along_m,
              math.type(params.cluster_shape[1]), params.tiles[1].dtype}
      local walk = utils.StaticPersistentTileScheduler(params)
      cute.loop(function() return walk:is_valid() end, function()
        local t = walk:get_current_work().tile_idx
        cute.when(arch.thread_idx():eq(0), function()
          arch.atomic_add(C.iterator + (t[1] * 9 + t[2]), 1)
        end)
        walk:advance_to_next_work()
      end)
    end)
    local call
    local function launch(m, n, cluster, swizzle)
      local C = cute.zeros({81}, cute.i32)
      local params = utils.PersistentTileSchedulerParams({m, n, 1}, cluster,
        {swizzle_size = swizzle})
      call = k(C, params)
      call:launch {grid = params:get_grid_shape(3), block = 32, device = "sim"}
      for i = 0, m - 1 do
        for j = 0, n - 1 do assert.equal(1, C[i * 9 + j]) end
      end
      return traced.n
    end
    assert.equal(1, launch(3, 4, {1, 1, 1}, 2))
    assert.same({"integer", true, "integer", cute.i32}, seen)
    assert.equal(1, launch(7, 2, {1, 1, 1}, 2))
    assert.equal(1, launch(1, 9, {1, 1, 1}, 2))
    assert.equal(2, launch(3, 4, {1, 1, 1}, 4))
    assert.equal(3, launch(4, 4, {2, 1, 1}, 2))
    assert.equal(3, launch(8, 2, {2, 1, 1}, 2))
    assert.equal(3, launch(7, 2, {1, 1, 1}, 4))
    require "spec.kernels".compiles(call:trace {block = 32}, {"sm_90a"})
  end)

  it("report their number of finished tiles", function()
    local o = cute.zeros({9}, cute.i32)
    cute.kernel("k", function(out)
      local walk = utils.StaticPersistentTileScheduler(
        utils.PersistentTileSchedulerParams({3, 5, 1}, {1, 1, 1}))
      local _, _, block = arch.block_idx()
      cute.loop(function() return walk:is_valid() end, function()
        out[block * 3] = walk.num_tiles_executed
        walk:advance_to_next_work()
      end)
      out[block * 3 + 1] = walk.num_tiles_executed
      walk:advance_to_next_work(4)
      out[block * 3 + 2] = walk.num_tiles_executed
    end)(o):launch {grid = {1, 1, 2}, block = 1, device = "sim"}
    assert.same({7, 8, 12, 6, 7, 11}, {o[0], o[1], o[2], o[3], o[4], o[5]})
  end)
end)

describe("tile schedulers", function()
  it("follow Hilbert's curve through rectangles", function()
    for _, extents in ipairs {{1, 1}, {4, 4}, {8, 8}, {5, 7}, {7, 5}, {13, 2},
                              {1, 9}, {12, 6}, {16, 33}} do
      local m, n = extents[1], extents[2]
      local order, seen, apart = utils.hilbert_tile_order(m, n), {}, 0
      local x0, y0
      for i = 0, m * n - 1 do
        local x, y = order[i] & 0xffff, order[i] >> 16
        assert.is_true(x < m and y < n and not seen[order[i]])
        seen[order[i]] = true
        if x0 then
          local step = math.abs(x - x0) + math.abs(y - y0)
          assert.is_true(step == 1 or step == 2)
          apart = apart + step - 1
        end
        x0, y0 = x, y
      end
      -- Consecutive tiles are neighbours. If an extent is odd, one step is
      -- diagonal.
      assert.is_true(apart <= 1)
      local count, place, at = run({m, n, 2}, {1, 1, 1}, {order = order}, 3)
      for z = 0, 1 do
        for i = 0, m * n - 1 do
          local t = at(order[i] & 0xffff, order[i] >> 16, z)
          assert.equal(1, count[t])
          assert.equal(i + z * m * n, place[t])
        end
      end
    end
  end)

  it("divide the last tiles along K among clusters", function()
    for i, c in ipairs {
      {{5, 2}, 8, 4, 1}, {{5, 2}, 8, 4, 3}, {{3, 4}, 8, 4, 1},  -- whole waves
      {{1, 1}, 16, 5, 1}, {{1, 2}, 3, 8, 1}, {{1, 1}, 4, 9, 1},
      {{2, 3}, 7, 5, 2}, {{2, 3}, 7, 5, 4}, {{7, 3}, 5, 6, 1},
      {{2, 2}, 16, 3, 9}, {{4, 5}, 1, 7, 1},
      {{5, 2}, 8, 4, nil, 2}, {{5, 2}, 8, 4, nil, 1}, {{3, 4}, 8, 4, nil, 2},
      {{5, 3}, 7, 6, nil, 4}, {{1, 2}, 5, 9, nil, 3}, {{1, 2}, 5, 9, nil, 8},
      {{1, 1}, 2, 9, nil, 8}, {{4, 5}, 1, 7, nil, 2},
    } do
      local tiles, k, clusters, least, equal = table.unpack(c, 1, 5)
      local t = stream(tiles, k, clusters, {least = least, equal = equal},
                       ({false, true, "argument"})[i % 3 + 1])
      for j = 0, tiles[1] * tiles[2] * k - 1 do
        assert.equal(1, t.steps[j], ("case %d, step %d"):format(i, j))
      end
      for j = 0, tiles[1] * tiles[2] - 1 do assert.equal(1, t.ends[j]) end
      local parts = 0
      for r = 0, clusters do
        assert.equal(t.left[r], t.got[r], ("case %d, range %d"):format(i, r))
        if t.left[r] > 0 then parts = parts + 1 end
      end
      if tiles[1] * tiles[2] % clusters == 0 then assert.equal(0, parts) end
      if least == 1 and tiles[1] * tiles[2] < clusters and k >= clusters then
        assert.equal(clusters - tiles[1] * tiles[2], parts)
      end
    end
  end)
end)

describe("tile schedulers", function()
  it("give clusters of a stream the same number of steps", function()
    -- Calls the scheduler on the host, which the scheduler also supports.
    local walk = utils.StreamKTileScheduler
    for _, c in ipairs {{320, 64, 132}, {80, 32, 132}, {7, 9, 5}} do
      local tiles, k, clusters = table.unpack(c)
      local params = utils.PersistentTileSchedulerParams {tiles, 1}
      local least, most = math.huge, 0
      for z = 0, clusters - 1 do
        local s, steps = walk(params, k, nil, {0, 0, z}, {1, 1, clusters}), 0
        while s:is_valid() do
          steps = steps + s:get_current_work().k_count
          s:advance_to_next_work()
        end
        least, most = math.min(least, steps), math.max(most, steps)
      end
      assert.is_true(most - least <= 1)
      assert.equal(tiles * k // clusters, least)
    end
  end)

  -- Draws tiles from a counter. Returns how often producers took each tile, how
  -- often consumers took each tile, the counter, and the simulator's report.
  -- With `broken`, the pipeline expects one consumer warp fewer than there are.
  local function draw(tiles, cluster, most, seed, broken)
    local host = utils.PersistentTileSchedulerParams(tiles, cluster)
    local m, n = tiles[1] + 3, tiles[2] + 3
    local given, taken = cute.zeros({m * n}, cute.i32),
      cute.zeros({m * n}, cute.i32)
    local counter = cute.zeros({1}, cute.i32)
    local k = cute.kernel("draws", function(G, T, count)
      local one = arch.lane_idx():eq(0)
      local walk = utils.DynamicPersistentTileScheduler(
        utils.PersistentTileSchedulerParams(tiles, cluster),
        {counter = count, consumer_group = pipeline.CooperativeGroup(
          pipeline.Agent.Warp, broken and 2 or 3)})
      local function note(work, by)
        local at = work:get_current_work().tile_idx
        arch.atomic_add(by.iterator + (at[1] * n + at[2]), 1)
      end
      local warp = arch.make_warp_uniform(arch.warp_idx())
      cute.when(warp:eq(3), function()
        cute.when(one, function()
          local work = walk:producer()
          cute.loop(function() return work:is_valid() end, function()
            note(work, G)
            work:advance_to_next_work()
          end)
          work:tail()
        end)
      end, function()
        local work = walk:consumer()
        local steps = cute.where(warp:eq(2), 2, 1)
        cute.loop(function() return work:is_valid() end, function()
          cute.when(one, function() note(work, T) end)
          work:advance_to_next_work(steps)
        end)
      end)
    end)
    local report = support.report(k(given, taken, counter):launch {
      grid = host:get_grid_shape(most), cluster = cluster, block = 128,
      device = "sim:sm_90a", seed = seed, faults = "return"})
    return given, taken, counter, report
  end

  it("draw tiles from a counter, each once, and reset it", function()
    for seed, c in ipairs {{{5, 7}, {1, 1, 1}, 4}, {{3, 2}, {1, 1, 1}, 9},
                           {{6, 5}, {2, 1, 1}, 4}, {{5, 4}, {2, 2, 1}, 3}} do
      local tiles, cluster, most = table.unpack(c)
      local given, taken, counter, report = draw(tiles, cluster, most, seed)
      assert.is_true(report.ok, tostring(report))
      local n, passed = tiles[2] + 3, 0
      for x = 0, tiles[1] - 1 do
        for y = 0, tiles[2] - 1 do
          assert.equal(1, given[x * n + y])
          -- Two of a block's three consumer warps take each tile of the block;
          -- the third one takes only every second tile.
          local count = taken[x * n + y]
          assert.is_true(count == 2 or count == 3)
          passed = passed + 3 - count
        end
      end
      assert.is_true(passed > 0 or most >= tiles[1] * tiles[2])
      assert.equal(0, counter[0])
    end
  end)

  it("report numbers that are sent before all threads have read", function()
    local told = 0
    for seed = 1, 5 do
      local _, _, _, report = draw({6, 5}, {1, 1, 1}, 2, seed, true)
      if not report.ok then told = told + 1 end
    end
    assert.is_true(told > 0)
  end)

  it("name unsupported options", function()
    local make = utils.PersistentTileSchedulerParams
    support.raises("M of 0; an integer of 1 or more is needed", make, {0, 1})
    support.raises("swizzle_size of 0", make, {1, 1}, nil, {swizzle_size = 0})
    support.raises("one block along K, not 2", make, {1, 1}, {1, 1, 2})
    support.raises("0 x 4 tiles", utils.hilbert_tile_order, 0, 4)
    assert.same({2, 1, 3}, make({5, 1}, {2, 1, 1}):get_grid_shape(66))
    assert.equal("i32", tostring(core.i32))
  end)
end)
-- SPDX-License-Identifier: MIT
