-- Tests tensor maps that a kernel writes to memory by any kind of store. Before
-- a copy uses such a map, a thread that has seen all the writes must release
-- them, and the copying block must acquire them. If one of these steps is
-- missing or unordered, it must be reported whatever the schedule.
local cute = require "cute"
local support = require "spec.support"
local tma = require "spec.tma"

local cpasync, arch, _ = cute.nvgpu.cpasync, cute.arch, cute._
local TILE = {32, 16}
local RELEASE, ACQUIRE = {sem = "release"}, {sem = "acquire"}
local SEEDS = 2

local function line() return debug.getinfo(2, "l").currentline end
local function when(...) return cute.when(...) end
local function lane0(f) when(arch.lane_idx():eq(0), f) end
local function warp(n, f) when(arch.warp_idx():eq(n), f) end
local function thread0(f) when(arch.thread_idx():eq(0), f) end
local release = cpasync.fence_tma_desc_release
local acquire = cpasync.fence_tma_desc_acquire

-- Ways in which warp 0 writes a tensor map to the memory `map`. `here` is a
-- buffer in shared memory.
local WRITE = {
  whole = function(atom, _, map)
    lane0(function() cpasync.copy_tensormap(atom, map) end)
  end,
  words = function(atom, here, map)  -- Each lane writes one word of the map.
    lane0(function() cpasync.copy_tensormap(atom, here) end)
    arch.sync_warp()
    local lane = arch.lane_idx()
    when(lane:lt(16), function() map[lane] = here[lane] end)
  end,
  vectors = function(atom, here, map)
    lane0(function()
      cpasync.copy_tensormap(atom, here)
      cute.autovec_copy(here, map)
    end)
  end,
}

-- Runs a block that copies a box by a tensor map. Warp 0 writes the map by
-- o.write. All threads then call o.hand(map). Warp o.by calls o.before(map) and
-- copies. Returns the report.
local function report(o, at, seed)
  local x = tma.tensor({40, 20}, cute.f32, function(i) return i end)
  local out, maps = cute.zeros({512}, cute.f32), cute.zeros({16}, cute.i64)
  local atom, coords = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout(TILE), TILE)
  local blocks = o.blocks or 1
  local k = cute.kernel("k", function(a, c, y, map, flag)
    local tid, lane = arch.thread_idx(), arch.lane_idx()
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout(TILE), 128)
    local here = cute.make_smem_tensor(cute.i64, cute.make_layout(16), 128)
    local bar = arch.alloc_smem(cute.i64, 1)
    thread0(function()
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init_fence()
    end)
    arch.sync_threads()
    local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.zipped_divide(c, TILE))
    local function make()
      warp(0, function()
        at.write = line() + 1
        o.write(a, here, map)
        if o.after then o.after(map) end
      end)
    end
    local function copy()
      warp(o.by or 1, function()
        if o.before then o.before(map) end
        when(arch.elect_one(), function()
          arch.mbarrier_arrive_and_expect_tx(bar, a.tx_bytes)
          at.copy = line() + 1
          cute.copy(a, tg(_, 0), ts, {tma_bar_ptr = bar, tma_desc_ptr = map})
        end)
        arch.mbarrier_wait(bar, 0)
        for i = 0, 15 do y[lane + 32 * i] = s[{lane, i}] end
      end)
    end
    if o.blocks then
      when(arch.block_idx():eq(0), function()
        make()
        o.tell(map, flag.iterator)
      end, function()
        o.hear(map, flag.iterator)
        copy()
      end)
    else
      make()
      if o.hand then o.hand(map) end
      copy()
    end
    if o.cluster then
      arch.cluster_arrive()
      arch.cluster_wait()
    end
    return tid
  end)
  local r = support.report(k(atom, coords, out, maps,
    cute.zeros({1}, cute.i32)):launch {grid = blocks, cluster = o.cluster or 1,
    block = 64, device = "sim:sm_90a", seed = seed, faults = "return"})
  return r, out
end

local function clean(o)
  for seed = 1, SEEDS do
    local r, out = report(o, {}, seed)
    assert.is_true(r.ok, tostring(r))
    for i = 0, 511 do assert.equal(i % 32 + i // 32 * 40, out(i)) end
  end
end

local TOLD = {release = "this tensor map was changed but not released "
  .. "afterwards",
              acquire = "this tensor map was changed but not acquired "
                .. "afterwards"}

local function tells(what, o)
  for seed = 1, SEEDS do
    local at = support.recorder()
    local r = report(o, at, seed)
    local f = assert(r.reports[1], "nothing is told")
    assert.equal("tensor-map", f.kind, tostring(r))
    assert.equal(TOLD[what] .. ": element 0 of global tensor 'map'", f.message)
    assert.equal(at.copy, f.line)
  end
end

local function with(o, changes)
  local all = {}
  for name, v in pairs(o) do all[name] = v end
  for name, v in pairs(changes) do all[name] = v or nil end
  return all
end

describe("a tensor map in memory", function()
  for name, write in pairs(WRITE) do
    -- The correct order: the map is written, all lanes release the writes, a
    -- barrier follows, and the copying warp acquires.
    local right = {write = write,
      after = function() arch.sync_warp() release() end,
      hand = function() arch.sync_threads() end, before = acquire}

    local long = name == "words" and "" or " #long"
    it("is released and acquired: " .. name .. long, function()
      clean(right)
      tells("release", with(right, {after = false}))
      tells("acquire", with(right, {before = false}))
    end)

    it("is released behind all that was written: " .. name .. long, function()
      -- lane 31 alone releases, without a sync_warp before
      tells("release", with(right, {after = function()
        when(arch.lane_idx():eq(31), release)
      end}))
      clean(with(right, {after = function()
        arch.sync_warp()
        when(arch.lane_idx():eq(31), release)
      end}))
      -- after a barrier, warp 1 releases
      clean(with(right, {after = false, hand = function()
        arch.sync_threads()
        warp(1, release)
      end}))
      -- the map is written again after its release
      tells("release", with(right, {hand = function(map)
        lane0(function() warp(0, function() map[1] = map[1] + 0 end) end)
        arch.sync_threads()
      end}))
    end)

    it("is acquired behind the release, in front of the copy: " .. name
       .. long, function()
      tells("acquire", with(right, {before = false, hand = function(map)
        warp(1, function() acquire(map) end)  -- fault: does not see the release
        arch.sync_threads()
      end}))
      -- right: one lane acquires, and a sync_warp follows
      clean(with(right, {before = function(map)
        when(arch.lane_idx():eq(3), function() acquire(map) end)
        arch.sync_warp()
      end}))
      -- fault: one lane acquires, and no sync_warp follows
      tells("acquire", with(right, {before = function(map)
        when(arch.lane_idx():eq(3), function() acquire(map) end)
      end}))
      -- right: warp 0 acquires, and a barrier follows
      clean(with(right, {before = false, hand = function(map)
        arch.sync_threads()
        warp(0, function() acquire(map) end)
        arch.sync_threads()
      end}))
      tells("acquire", with(right, {before = false, hand = function(map)
        arch.sync_threads()
        warp(0, function() acquire(map) end)  -- fault: no barrier follows
      end}))
    end)
  end

  it("that a warp publishes needs no sync_warp before it is used", function()
    local function published(o)
      return {by = 0, write = function(atom, here, map)
        when(arch.elect_one(), function()
          cpasync.copy_tensormap(atom, here)
        end)
        if o.sync ~= false then arch.sync_warp() end
        cpasync.cp_fence_tma_desc_release(map, here)
      end, before = o.acquire ~= false and acquire or nil}
    end
    clean(published {})
    tells("acquire", published {acquire = false})
    for seed = 1, SEEDS do  -- The report must come in every schedule.
      local r = report(published {sync = false}, {}, seed)
      assert.equal("warp-race", r.reports[1].kind)
    end
  end)

  it("is changed again and again by one lane, with no sync_warp behind that "
    .. "publishing", function()
    clean {by = 0, write = function(atom, here, map)
      for _k = 1, 3 do  -- luacheck: ignore _k
        when(arch.elect_one(), function()
          cpasync.copy_tensormap(atom, here)
        end)
        arch.sync_warp()
        cpasync.cp_fence_tma_desc_release(map, here)
      end
    end, before = acquire}
  end)
end)

describe("a tensor map for another block", function()
  local function tell(f)
    return function(map, flag)
      warp(0, function()
        if f then f(map) end
        arch.sync_warp()
        lane0(function() arch.store(flag, 1, RELEASE) end)
      end)
    end
  end
  local function hear(f)
    return function(map, flag)
      warp(1, function()
        cute.loop(function()
          return arch.load(flag, nil, ACQUIRE):eq(0)
        end, function() end)
        if f then f(map) end
      end)
    end
  end

  it("is released there and acquired here #long", function()
    for _k, write in pairs(WRITE) do  -- luacheck: ignore _k
      local function o(first, second)
        return {blocks = 2, write = write, tell = tell(first),
                hear = hear(second)}
      end
      clean(o(function() arch.sync_warp() release() end, acquire))
      tells("release", o(nil, acquire))
      tells("acquire", o(function() arch.sync_warp() release() end))
      -- fault: the releasing block acquires, but the copying block does not
      tells("acquire", o(function(map)
        arch.sync_warp()
        release()
        acquire(map)
      end))
    end
  end)

  it("of a cluster, too", function()
    local function o(second)
      return {blocks = 2, cluster = 2, write = WRITE.whole,
        tell = function(map)
          warp(0, function()
            arch.sync_warp()
            release()
            acquire(map)
          end)
          arch.cluster_arrive()
          arch.cluster_wait()
        end, hear = function(map)
          arch.cluster_arrive()
          arch.cluster_wait()
          if second then warp(1, function() second(map) end) end
        end}
    end
    clean(o(acquire))
    tells("acquire", o())
  end)
end)
-- SPDX-License-Identifier: MIT
