-- Tests tile schedulers of grouped problems against lists of tiles that plain
-- loops make.
local core = require "cute.core"
local cute = require "cute"
local brute = require "spec.raster".brute
local kernels = require "spec.kernels"
local support = require "spec.support"
local arch, utils = cute.arch, cute.utils

local function ceil(a, b) return (a + b - 1) // b end

local function numbers(list)
  local t = cute.zeros({#list}, cute.i32)
  for i, n in ipairs(list) do t[i - 1] = n end
  return t
end

-- Returns a tensor (G,4) with {M, N, K, 1} of each group of a case.
local function shapes_of(groups)
  local t = cute.zeros({#groups, 4}, cute.i32)
  for g, shape in ipairs(groups) do
    for i = 1, 3 do t[{g - 1, i - 1}] = shape[i] end
    t[{g - 1, 3}] = 1
  end
  return t
end

local ROOM = 16  -- maximum number of tiles of a group along M, and along N

-- Launches a grouped scheduler. For each tile (group, m, n), the kernel records
-- how often the tile was taken, the position of its cluster in the order of all
-- clusters, and its number of K tiles.
local function grouped_run(case, traced)
  local groups, cluster, tile, opts, most = table.unpack(case)
  local total, places = 0, {}
  for g, shape in ipairs(groups) do
    local cm, cn = ceil(shape[1], tile[1]), ceil(shape[2], tile[2])
    for _, at in ipairs(brute(cm, cn, opts.swizzle_size or 1,
                              opts.raster_along_m ~= false)) do
      for x = 0, cluster[1] - 1 do
        for y = 0, cluster[2] - 1 do
          places[((g - 1) * ROOM + at[1] * cluster[1] + x) * ROOM
            + at[2] * cluster[2] + y] = total
        end
      end
      total = total + 1
    end
  end
  local n = #groups * ROOM * ROOM
  local out = {}
  for i = 1, 3 do out[i] = cute.zeros({n}, cute.i32) end
  local function params(l)
    return utils.PersistentTileSchedulerParams({cluster[1], cluster[2], l},
                                               cluster, opts)
  end
  local k = cute.kernel("groups", function(C, P, K, shapes, count, l)
    local walk = utils.StaticPersistentGroupTileScheduler(
      params(traced and l or total), nil, nil, tile,
      utils.create_initial_search_state(), traced and count or #groups, shapes)
    cute.loop(function() return walk:is_valid() end, function()
      local work = walk:get_current_work()
      local r = work.group_search_result
      local i = (r.group_idx * ROOM + r.cta_tile_idx_m) * ROOM
        + r.cta_tile_idx_n
      cute.when(arch.thread_idx():eq(0) & work.is_valid_tile, function()
        arch.atomic_add(C.iterator + i, 1)
        P[i] = work.tile_idx[3]
        K[i] = r.cta_tile_count_k * 1000 + r.problem_shape_m
          + r.problem_shape_n + r.problem_shape_k
      end)
      walk:advance_to_next_work()
    end)
  end)
  local call = k(out[1], out[2], out[3], shapes_of(groups), #groups, total)
  assert(call:launch {grid = params(total):get_grid_shape(most),
                      cluster = cluster, block = 32, device = "sim:sm_90a"})
  if traced then kernels.compiles(call:trace {block = 32}, {"sm_90a"}) end
  return out, places
end

describe("groups with extents of their own", function()
  local cases = {
    {{{64, 64, 32}}, {1, 1, 1}, {64, 64, 32}, {}, 4},
    {{{100, 70, 33}, {1, 1, 1}, {64, 200, 64}}, {1, 1, 1}, {32, 32, 16}, {}, 3},
    {{{100, 70, 5}, {0, 64, 8}, {64, 200, 64}, {64, 0, 7}, {3, 90, 1}},
      {1, 1, 1}, {32, 32, 16}, {raster_along_m = false}, 5},
    {{{130, 70, 5}, {90, 200, 8}}, {2, 1, 1}, {64, 32, 16},
      {swizzle_size = 2}, 2},
    {{{130, 150, 5}, {90, 200, 8}, {1, 1, 1}}, {1, 2, 1}, {32, 64, 16},
      {swizzle_size = 3, raster_along_m = false}, 132},
  }
  for number, case in ipairs(cases) do
    it("have each tile worked on once, in order, case " .. number, function()
      for _, traced in ipairs {false, true} do
        local out, places = grouped_run(case, traced)
        local groups, tile = case[1], case[3]
        for i = 0, #groups * ROOM * ROOM - 1 do
          local shape = groups[i // (ROOM * ROOM) + 1]
          assert.equal(places[i] and 1 or 0, out[1][i])
          assert.equal(places[i] or 0, out[2][i])
          assert.equal(places[i] and ceil(shape[3], tile[3]) * 1000 + shape[1]
            + shape[2] + shape[3] or 0, out[3][i])
        end
      end
    end)
  end

  it("are found without their tiles: K of each place", function()
    local groups = {{100, 70, 33}, {0, 9, 500}, {64, 200, 64}, {9, 9, 9}}
    local tile, want = {32, 32, 16}, {}
    for g, s in ipairs(groups) do
      for _ = 1, ceil(s[1], 32) * ceil(s[2], 32) do
        want[#want + 1] = {ceil(s[3], 16), g - 1}
      end
    end
    local count = cute.zeros({#want}, cute.i32)
    local group = cute.zeros({#want}, cute.i32)
    local k = cute.kernel("counts", function(C, G, shapes)
      local helper = utils.GroupedGemmTileSchedulerHelper(#groups,
        utils.PersistentTileSchedulerParams {1, 1, #want}, tile,
        utils.create_initial_search_state())
      local i = arch.block_idx()
      for _ in cute.range(3) do
        cute.when(core.lt(i, #want), function()
          C[i], G[i] = helper:search_cluster_tile_count_k({0, 0, i}, shapes)
        end)
        i = i + 9
      end
    end)
    assert(k(count, group, shapes_of(groups)):launch {grid = 9, block = 1,
                                                      device = "sim"})
    assert.equal(27, #want)
    for i, w in ipairs(want) do
      assert.same(w, {count[i - 1], group[i - 1]})
    end
  end)
end)

-- Launches a scheduler of groups that follow one another along N. Only the
-- kernel computes the group of a tile. Returns three values for each tile {m,
-- start of n}: how often it was taken, its group, and how many of the group's
-- columns remain.
local function contiguous_run(sizes, clusters_m, tile, blocks)
  local ends, all = {0}, 0
  for i, n in ipairs(sizes) do
    all = all + n
    ends[i + 1] = all
  end
  local count = cute.zeros({clusters_m * all}, cute.i32)
  local group = cute.zeros({clusters_m * all}, cute.i32)
  local left = cute.zeros({clusters_m * all}, cute.i32)
  local k = cute.kernel("runs", function(C, G, D, cumsum)
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(4), 16)
    local walk = utils.StaticPersistentRuntimeTileScheduler(
      utils.PersistentTileSchedulerParams {clusters_m, 1, 1}, nil, nil, 0)
    local state = utils.create_initial_contiguous_group_search_state()
    local work = walk:initial_work_tile_info()
    assert(work.is_valid_tile == true)
    local more = cute.var(true)
    cute.loop(function() return more.value end, function()
      local at = walk:get_current_work().tile_idx
      utils.contiguous_group_search(tile, #sizes, at[2], state, cumsum, 1)
      arch.sync_threads()
      cute.when(arch.thread_idx():eq(0), function()
        s[0], s[1] = at[1], state.cur_start
        s[2], s[3] = state.cur_group_idx - 1,
          state.cur_boundary - state.cur_start
      end)
      arch.sync_threads()
      local info = utils.make_contiguous_group_work_tile_info(#sizes, s)
      more.value = info.is_valid_tile
      cute.when(more.value & arch.thread_idx():eq(1), function()
        local i = info.cta_coord_m * all + info.coord_n
        arch.atomic_add(C.iterator + i, 1)
        G[i], D[i] = info.group_idx, info.distance_to_boundary
      end)
      walk:advance_to_next_work()
    end)
  end)
  assert(k(count, group, left, numbers(ends)):launch {
    grid = {1, 1, blocks}, block = 32, device = "sim"})
  return count, group, left, all
end

describe("concatenated groups", function()
  for number, case in ipairs {
    {{10, 20, 30}, 1, 8, 3}, {{1, 1, 1, 64}, 3, 16, 7}, {{0, 5, 0, 0, 40}, 2,
      32, 2}, {{128}, 5, 64, 132}, {{33, 0}, 2, 32, 1}} do
    it("have each tile worked on once, case " .. number, function()
      local sizes, clusters_m, tile, blocks = table.unpack(case)
      local count, group, left, all = contiguous_run(sizes, clusters_m,
        {64, tile, 32}, blocks)
      local start = 0
      for g, n in ipairs(sizes) do
        for at = 0, n - 1 do
          for m = 0, clusters_m - 1 do
            local i = m * all + start + at
            local begins = at % tile == 0
            assert.equal(begins and 1 or 0, count[i])
            if begins then
              assert.same({g - 1, n - at}, {group[i], left[i]})
            end
          end
        end
        start = start + n
      end
    end)
  end
end)

describe("a walk without an end", function()
  it("goes along the inner mode first", function()
    for inner = 0, 1 do
      local out = cute.zeros({4 * 3 * 5}, cute.i32)
      local k = cute.kernel("endless", function(O)
        local params = utils.PersistentTileSchedulerParams({6, 5, 1}, {2, 1, 1})
        local walk = utils.StaticPersistentRuntimeTileScheduler(params, nil,
                                                                nil, inner)
        for _ in cute.range(5) do
          local at = walk:get_current_work().tile_idx
          O[walk.current_work_linear_idx] = at[1] * 100 + at[2]
          walk:advance_to_next_work()
        end
      end)
      assert(k(out):launch {grid = {2, 1, 12}, cluster = {2, 1, 1}, block = 1,
                            device = "sim:sm_90a"})
      for i = 0, 59 do
        assert.equal(inner == 0 and i % 3 * 100 + i // 3
          or i // 5 * 100 + i % 5, out[i])
      end
    end
  end)

  it("names unsupported options", function()
    local params = utils.PersistentTileSchedulerParams {1, 1}
    support.raises("inner_mode = 2; 0 (M) or 1 (N) is needed",
      utils.StaticPersistentRuntimeTileScheduler, params, {0, 0, 0}, {1, 1, 1},
      2)
    support.raises("cluster_tile_shape_mnk = {64, 0, 1}; 3 integers of 1 or "
      .. "more are needed", utils.GroupedGemmTileSchedulerHelper, 1, params,
      {64, 0, 1}, utils.create_initial_search_state())
    support.raises("search_mode = 2", utils.contiguous_group_search, {1, 1, 1},
      1, 0, utils.create_initial_contiguous_group_search_state(),
      numbers {0, 1}, 2)
    support.raises("has 3 numbers, not 4",
      utils.make_contiguous_group_work_tile_info, 1, numbers {0, 1, 2})
  end)
end)
-- SPDX-License-Identifier: MIT
