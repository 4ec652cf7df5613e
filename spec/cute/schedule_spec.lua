-- Tile schedulers: every tile once, in the order that was asked for.
local core = require "cute.core"
local cute = require "cute"
local brute = require "spec.raster".brute
local arch = cute.arch
local support = require "spec.support"
local utils = cute.utils

-- What the blocks of a launch did: count[tile], and the place of each tile in
-- its cluster's walk. traced: extents are arguments of the kernel.
local function run(tiles, cluster, opts, most, traced)
  local host = utils.PersistentTileSchedulerParams(tiles, cluster, opts)
  local grid = host:get_grid_shape(most)
  local m, n, l = tiles[1], tiles[2], tiles[3] or 1
  local room = (m + 3) * (n + 3) * l
  local count = cute.zeros({room}, cute.i32)
  local place = cute.zeros({room}, cute.i32)
  local k = cute.kernel("walks", function(C, P, order, tm, tn, tl)
    local shape = traced and {tm, tn, tl} or {m, n, l}
    local o = {}
    for name, v in pairs(opts or {}) do o[name] = v end
    if o.order then o.order = order end
    local params = utils.PersistentTileSchedulerParams(shape, cluster, o)
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
  assert(k(count, place, order, m, n, l):launch {
    grid = grid, block = 32, device = "sim"})
  return count, place, function(x, y, z)
    return x + (m + 3) * (y + (n + 3) * z)
  end
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
        for _, traced in ipairs {false, true} do
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

  it("say how many tiles they have gone through", function()
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
      assert.is_true(apart <= 1)  -- one diagonal step, where extents are odd
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

  it("name what they cannot do", function()
    local make = utils.PersistentTileSchedulerParams
    support.raises("M of 0: an integer of 1 or more is needed", make, {0, 1})
    support.raises("swizzle_size of 0", make, {1, 1}, nil, {swizzle_size = 0})
    support.raises("one block along K, not 2", make, {1, 1}, {1, 1, 2})
    support.raises("0 x 4 tiles", utils.hilbert_tile_order, 0, 4)
    assert.same({2, 1, 3}, make({5, 1}, {2, 1, 1}):get_grid_shape(66))
    assert.equal("i32", tostring(core.i32))
  end)
end)
