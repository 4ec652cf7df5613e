-- Tests notes on behaviour that GPUs have but PTX does not guarantee. Causes: a
-- wait for an MMA covers only the warp that waits; threads read through one
-- proxy, and copies write through another; loads complete at their mbarriers.
-- With `strict`, each note is a fault. Behaviour that PTX guarantees has no
-- note.
local cute = require "cute"
local ours = require "spec.ours"
local support = require "spec.support"
local words = require "cute.lang.report"
local warpgroup = cute.nvgpu.warpgroup
local arch, cpasync, _ = cute.arch, cute.nvgpu.cpasync, cute._

local DEVICE = "sim:sm_90a"
local SEEDS = 3

local function when(...) return cute.when(...) end
local function warp(n, f) when(arch.warp_idx():eq(n), f) end
local function line() return debug.getinfo(2, "l").currentline end
local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

-- Makes mbarriers with these arrival counts in shared memory.
local function barriers(counts)
  local all = arch.alloc_smem(cute.i64, #counts)
  thread0(function()
    for i, n in ipairs(counts) do arch.mbarrier_init(all + (i - 1), n) end
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  return all
end

-- Checks that each schedule has only the note `want`, {message, line, line2},
-- or none if `want` is nil.
local function notes(want, launch)
  for seed = 1, SEEDS do
    local r = launch {seed = seed, faults = "return", device = DEVICE}
    assert.is_true(r.ok, tostring(r))
    assert.equal(want and 1 or 0, #r.relies, tostring(r))
    if want then
      local f = r.relies[1]
      assert.truthy(f.message:find(want[1], 1, true), f.message)
      assert.same({want[2], want[3]}, {f.line, f.line2}, f.message)
      local text = r:notes()[1]
      assert.truthy(text:find("; PTX does not guarantee this: ", 1, true), text)
      assert.truthy(text:find(want[4], 1, true), text)
    end
  end
end

-- Checks that `check` has the same note, and its verdict with `strict`.
local function checks(want, call, opts)
  local function launch(more)
    local own = {device = DEVICE}
    for _k, t in ipairs {opts, more} do  -- luacheck: ignore _k
      for name, v in pairs(t) do own[name] = v end
    end
    return own
  end
  local v = call:check(launch {gpu = false})
  assert.equal("ok", v.verdict, tostring(v))
  assert.equal(want and 1 or 0, #v.notes, tostring(v))
  local json = require "cutelua.text.json".decode(v:json())
  if want then
    assert.truthy(tostring(v):find("\n  note: " .. v.notes[1], 1, true))
    assert.same(v.notes, json.notes)
  else
    assert.is_nil(json.notes)
  end
  v = call:check(launch {gpu = false, strict = true})
  assert.equal(want and "bug" or "ok", v.verdict, tostring(v))
  local _k, _m, r = call:launch(launch {strict = true,  -- luacheck: ignore
                                        faults = "return"})
  if not want then return end
  assert.is_false(r.ok)
  assert.truthy(r.reports[1].message:find(want[1], 1, true))
  assert.same({want[2], want[3]}, {r.reports[1].line, r.reports[1].line2})
end

-- ---- a warpgroup's wait ----

local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
local ROWS = cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128",
  "bf16"), {64, 64})

-- Returns a launch in which a warpgroup multiplies a tile by itself and calls
-- o.hand. Then TMA, or with o.by the threads of that warp, refills the tile.
-- o.more is the number of further warps, which are in no warpgroup.
local function refill(o)
  local X = cute.zeros({64, 64}, cute.bf16)
  local load, cX = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileG2SOp(), X, ROWS, {64, 64})
  local at = support.recorder()
  local call = cute.kernel("refill", function(a, c, mD)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.bf16, ROWS, 1024)
    local bar = barriers {1, 1, table.unpack(o.counts or {})}
    local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.group_modes(cute.local_tile(c, {64, 64},
      {0, 0}), 0, 2))
    local function ask(n)
      arch.mbarrier_arrive_and_expect_tx(bar + n, a.tx_bytes)
      at.write = line() + 1
      cute.copy(a, tg, ts, {tma_bar_ptr = bar + n})
    end
    thread0(function() ask(0) end)
    arch.mbarrier_wait(bar, 0)
    when(tid:lt(128), function()
      local thr = mma:get_slice(tid)
      local acc = thr:partition_fragment_C(cute.make_layout {64, 64})
      warpgroup.fence()
      mma:set("ACCUMULATE", false)
      at.read = line() + 1
      cute.gemm(mma, acc, mma:make_fragment_A(thr:partition_A(s)),
                mma:make_fragment_B(thr:partition_B(s)), acc)
      warpgroup.commit_group()
      warpgroup.wait_group(0)
      if o.waited then o.waited(bar + 2) end
      cute.autovec_copy(acc, thr:partition_C(mD))
    end)
    if o.hand then o.hand() end
    warp(o.by or 0, function()
      if o.before then o.before(bar + 2) end
      when(arch.lane_idx():eq(0), function()
        if not o.stores then return ask(1) end
        at.store = line() + 1
        s[{0, 0}] = 1
      end)
    end)
    if not o.stores then arch.mbarrier_wait(bar + 1, 0) end
  end)(load, cX, cute.zeros({64, 64}, cute.f32))
  local function launch(opts)
    opts.grid, opts.block = 1, 128 + 32 * (o.more or 0)
    return support.report(call:launch(opts))
  end
  return call, launch, at
end

local function named(n)
  arch.barrier {barrier_id = 1, number_of_threads = n}
end

describe("a warp's wait_group", function()
  local HANDED = {
    -- `told` is the number of the warp whose reads the report calls unordered.
    -- If it is absent, there must be no report.
    ["nothing"] = {told = 1},
    ["a store of one's own, of nothing else"] = {told = 1, stores = true},
    ["a barrier of one's own warp"] = {told = 1, hand = arch.sync_warp},
    ["sync_threads"] = {hand = arch.sync_threads},
    ["sync_threads, in front of stores"] = {hand = arch.sync_threads,
                                            stores = true},
    ["a named barrier of the warpgroup"] = {waited = function()
      named(128)
    end},
    ["a named barrier of two of its warps"] = {told = 2, waited = function()
      when(arch.warp_idx():lt(2), function() named(64) end)
    end},
    ["an mbarrier that all four arrive at"] = {counts = {4}, by = 4, more = 1,
      waited = function(bar)
        when(arch.lane_idx():eq(0), function() arch.mbarrier_arrive(bar) end)
      end, before = function(bar) arch.mbarrier_wait(bar, 0) end},
    ["an mbarrier that all threads arrive at"] = {counts = {128}, by = 4,
      more = 1, waited = arch.mbarrier_arrive,
      before = function(bar) arch.mbarrier_wait(bar, 0) end},
    ["an mbarrier that one warp arrives at"] = {told = 0, counts = {1}, by = 4,
      more = 1, waited = function(bar)
        when(arch.thread_idx():eq(64), function() arch.mbarrier_arrive(bar) end)
      end, before = function(bar) arch.mbarrier_wait(bar, 0) end},
    ["an mbarrier that three warps arrive at"] = {told = 3, counts = {3},
      by = 4, more = 1, waited = function(bar)
        when(arch.lane_idx():eq(0) & arch.warp_idx():lt(3), function()
          arch.mbarrier_arrive(bar)
        end)
      end, before = function(bar) arch.mbarrier_wait(bar, 0) end},
    ["a relay from warp to warp"] = {counts = {1, 1, 1, 1}, by = 4, more = 1,
      waited = function(bar)
        for k = 0, 3 do
          when(arch.warp_idx():eq(k), function()
            if k > 0 then arch.mbarrier_wait(bar + (k - 1), 0) end
            arch.sync_warp()
            when(arch.lane_idx():eq(0), function()
              arch.mbarrier_arrive(bar + k)
            end)
          end)
        end
      end, before = function(bar) arch.mbarrier_wait(bar + 3, 0) end},
  }
  local names = {}
  for name in pairs(HANDED) do names[#names + 1] = name end
  table.sort(names)
  for _k, name in ipairs(names) do  -- luacheck: ignore _k
    it("covers that warp only, with " .. name, function()
      local o = HANDED[name]
      local call, launch, at = refill(o)
      -- This launch records the line numbers in `at`.
      launch {grid = 1, device = DEVICE}
      local want = o.told and {("write after a read by wgmma, ordered after "
        .. "one warp's wait_group but not after that of warp %d: element ")
        :format(o.told), at.store or at.write, at.read, "PTX orders only this "
        .. "warp's reads; wait for the other warps' reads with a barrier or an "
        .. "mbarrier"}
      notes(want, launch)
      checks(want, call, {grid = 1, block = 128 + 32 * (o.more or 0)})
    end)
  end

  it("that no later warp is ordered after is a race nevertheless", function()
    local _k, launch = refill {by = 4, more = 1}  -- luacheck: ignore _k
    local r = launch {device = DEVICE, faults = "return"}
    assert.is_false(r.ok)
    assert.matches("^write after a read by wgmma whose completion was not "
      .. "waited for",
      r.reports[1].message)
    assert.same({}, r:notes())
  end)
end)

-- ---- reads, and what a copy writes over them ----

-- Returns a launch in which TMA loads tile 0 and threads of 4 warps read it.
-- Then warp 4, or one of the reading warps, loads tile 1 into the same memory.
local function again(o)
  local layout = cute.make_layout({32, 16}, {16, 1})
  local load, cX = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileG2SOp(), cute.zeros({32, 32}, cute.f32), layout,
    {32, 16})
  local at = support.recorder()
  local call = cute.kernel("again", function(a, c, y)
    local tid, lane = arch.thread_idx(), arch.lane_idx()
    local s = cute.make_smem_tensor(cute.f32, layout, 128)
    local other = cute.make_smem_tensor(cute.f32, cute.make_layout(128), 128)
    local bar = barriers {1, 1, o.count or 4}
    local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.zipped_divide(c, {32, 16}))
    local function ask(n)
      arch.mbarrier_arrive_and_expect_tx(bar + n, a.tx_bytes)
      at.write = line() + 1
      cute.copy(a, tg(_, n), ts, {tma_bar_ptr = bar + n})
    end
    thread0(function() ask(0) end)
    if o.reads then other[tid % 128] = 1 end
    when(tid:lt(128), function()
      arch.mbarrier_wait(bar, 0)
      at.read = line() + 1
      local v = o.reads and o.reads(s, other, tid) or s[{tid // 4, tid % 4}]
      y[tid] = v
      if o.fenced then o.fenced() end
      if not o.met then
        arch.sync_warp()
        when(lane:eq(0), function() arch.mbarrier_arrive(bar + 2) end)
      end
    end)
    if o.met then o.met() end
    when(tid:eq(o.by or 128), function()
      if not o.met then arch.mbarrier_wait(bar + 2, 0) end
      if o.before then o.before() end
      ask(1)
    end)
    arch.mbarrier_wait(bar + 1, 0)
  end)(load, cX, cute.zeros({128}, cute.f32))
  local function launch(opts)
    opts.grid, opts.block = 1, 160
    return support.report(call:launch(opts))
  end
  return call, launch, at
end

describe("a buffer that threads read and a copy refills", function()
  local fence = arch.fence_view_async_shared
  local CASES = {
    ["no fence"] = {told = true},
    ["no fence, behind sync_threads"] = {told = true, met = arch.sync_threads},
    ["no fence, by a thread that read"] = {told = true, by = 0,
                                           met = arch.sync_threads},
    ["a fence of the readers"] = {fenced = fence},
    ["a fence of the readers, then sync_threads"] = {fenced = fence,
      met = arch.sync_threads},
    ["a fence of one lane a warp"] = {told = true, fenced = function()
      when(arch.lane_idx():eq(0), fence)
    end},
    ["a fence of one lane a warp, behind sync_warp"] = {fenced = function()
      arch.sync_warp()
      when(arch.lane_idx():eq(0), fence)
    end},
    ["a fence of three warps"] = {told = true, fenced = function()
      when(arch.warp_idx():lt(3), fence)
    end},
    ["a fence for global memory"] = {told = true, fenced = function()
      arch.fence_proxy "async.global"
    end},
    ["a fence of what copies, behind its wait"] = {before = fence},
    ["a fence of what copies, for global memory"] = {told = true,
      before = function() arch.fence_proxy "async.global" end},
    ["a fence for both, of what copies"] = {before = function()
      arch.fence_proxy "async"
    end},
    ["reads of another buffer"] = {reads = function(_s, other, tid)
      arch.sync_warp()
      return other[tid]
    end},
  }
  local names = {}
  for name in pairs(CASES) do names[#names + 1] = name end
  table.sort(names)
  for _k, name in ipairs(names) do  -- luacheck: ignore _k
    it("has " .. name, function()
      local o = CASES[name]
      local call, launch, at = again(o)
      launch {device = DEVICE}
      local want = o.told and {"write by a bulk copy after a thread's read, "
        .. "with no fence_proxy(\"async\") in between: element ", at.write,
        at.read, "fence_view_async_shared() in the threads that read, before "
        .. "they arrive, or in the thread that copies, after its wait"}
      notes(want, launch)
      checks(want, call, {grid = 1, block = 160})
    end)
  end

  it("needs its fence, by the repair search", function()
    local call = again {fenced = fence}
    local v = call:check {grid = 1, block = 160, device = DEVICE, gpu = false,
                          surgeon = true}
    local needs = {}
    for _k, n in ipairs(v.needs) do  -- luacheck: ignore _k
      if n.words:find "fence" then needs[#needs + 1] = n.need end
    end
    assert.same({"needed", "needed"}, needs, tostring(v))
  end)

  it("by a ring of stages: PipelineTmaAsync's readers fence, too", function()
    local TILE, TILES, Group = {32, 16}, 5, cute.pipeline.CooperativeGroup
    local layout = cute.make_layout(TILE, {16, 1})
    local load, cX = cpasync.make_tiled_tma_atom(
      cpasync.CopyBulkTensorTileG2SOp(), cute.zeros({32, 16 * TILES}, cute.f32),
      layout, TILE)
    for _k, own in ipairs {false, true} do  -- luacheck: ignore _k
      local call = cute.kernel("ring", function(a, c, y)
        local tid = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.f32,
          cute.make_layout({32, 16, 2}, {16, 1, 512}), 128)
        local pipe = cute.pipeline.PipelineTmaAsync {num_stages = 2,
          tx_count = a.tx_bytes, producer_group = Group(
          cute.pipeline.Agent.Thread), consumer_group = Group(
          cute.pipeline.Agent.Warp, 4)}
        local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
          cute.group_modes(s, 0, 2), cute.group_modes(cute.local_tile(c, TILE,
          {0, _}), 0, 2))
        when(tid:eq(128), function()
          local write = pipe:make_producer_state()
          for t in cute.range(TILES) do
            pipe:producer_acquire(write)
            cute.copy(a, tg(_, t), ts(_, write.index),
              {tma_bar_ptr = pipe:producer_get_barrier(write)})
            write:advance()
          end
        end)
        when(tid:lt(128), function()
          local read = pipe:make_consumer_state()
          for t in cute.range(TILES) do
            pipe:consumer_wait(read)
            y[tid + t * 128] = s[{tid // 4, tid % 4, read.index}]
            if own then fence() end
            arch.sync_warp()
            pipe:consumer_release(read)
            read:advance()
          end
        end)
      end)(load, cX, cute.zeros({128 * TILES}, cute.f32))
      local r = support.report(call:launch {grid = 1, block = 160,
        device = DEVICE, faults = "return"})
      assert.is_true(r.ok, tostring(r))
      assert.equal(own and 0 or 1, #r.relies, tostring(r))
    end
  end)
end)

-- ---- tensor maps that change ----

-- Returns a launch that copies by a tensor map in memory, calls o.drain, and
-- then changes the map. The copy is a load or, with o.stores, a store.
local function remap(o)
  local layout = cute.make_layout({32, 16}, {16, 1})
  local x, y = cute.zeros({32, 16}, cute.f32), cute.zeros({32, 16}, cute.f32)
  local op = o.stores and cpasync.CopyBulkTensorTileS2GOp()
    or cpasync.CopyBulkTensorTileG2SOp()
  local atom, coords = cpasync.make_tiled_tma_atom(op, o.stores and y or x,
    layout, {32, 16})
  local at = support.recorder()
  local call = cute.kernel("remap", function(a, c, map, other)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, layout, 128)
    local bar = barriers {1}
    for i = 0, 15 do s[{tid, i}] = 1 end
    arch.fence_view_async_shared()
    thread0(function()
      cpasync.copy_tensormap(a, map)
      cpasync.fence_tma_desc_release()
      cpasync.fence_tma_desc_acquire(map)
    end)
    arch.sync_warp()
    local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.zipped_divide(c, {32, 16}))
    thread0(function()
      if o.stores then
        at.copy = line() + 1
        cute.copy(a, ts, tg(_, 0), {tma_desc_ptr = map})
      else
        arch.mbarrier_arrive_and_expect_tx(bar, a.tx_bytes)
        at.copy = line() + 1
        cute.copy(a, tg(_, 0), ts, {tma_bar_ptr = bar, tma_desc_ptr = map})
      end
      local function change() cpasync.update_tma_descriptor(a, other, map) end
      local function wait()
        if not o.stores then arch.mbarrier_wait(bar, 0) end
      end
      o.drain(change, wait)
      wait()
      if o.stores then arch.cp_async_bulk_wait_group(0) end
    end)
  end)(atom, coords, cute.zeros({16}, cute.i64), cute.zeros({32, 16}, cute.f32))
  local function launch(opts)
    opts.grid, opts.block = 1, 32
    return support.report(call:launch(opts))
  end
  return call, launch, at
end

local commit, group = arch.cp_async_bulk_commit_group,
  arch.cp_async_bulk_wait_group
local CHANGED = "this tensor map is changed while a copy that uses it is in "
  .. "flight"

-- Checks that `check` finds the fault CHANGED, in the line of the copy.
local function faulty(o)
  local call, launch, at = remap(o)
  launch {device = DEVICE, faults = "return"}
  local v = call:check {grid = 1, block = 32, device = DEVICE, gpu = false}
  assert.equal("bug", v.verdict, tostring(v))
  assert.equal(CHANGED .. ": element 0 of global tensor 'map'",
               v.fault.message)
  assert.equal(at.copy, v.fault.line)
end

describe("a tensor map changes", function()
  it("after a store's wait_group, with or without read", function()
    for _k, read in ipairs {true, false} do  -- luacheck: ignore _k
      local function drain(change)
        commit() group(0, read) change()
      end
      local call, launch = remap {stores = true, drain = drain}
      notes(nil, launch)
      checks(nil, call, {grid = 1, block = 32})
    end
  end)

  it("before it, or after a wait that leaves groups", function()
    faulty {stores = true, drain = function(change)
      commit() change() group(0, true)
    end}
    faulty {stores = true, drain = function(change)
      commit() change() group(0)
    end}
    faulty {stores = true, drain = function(change)
      commit() group(1, true) change()
    end}
    faulty {stores = true, drain = function(change)
      change() commit() group(0, true)
    end}
  end)

  it("after a load's mbarrier", function()
    local call, launch = remap {drain = function(change, wait)
      wait()
      change()
    end}
    notes(nil, launch)
    checks(nil, call, {grid = 1, block = 32})
  end)

  it("after commit and wait, CUTLASS's drain of loads", function()
    for _k, read in ipairs {true, false} do  -- luacheck: ignore _k
      local call, launch, at = remap {drain = function(change)
        commit() group(0, read) change()
      end}
      launch {device = DEVICE}
      local v = call:check {grid = 1, block = 32, device = DEVICE, gpu = false}
      assert.equal("ok", v.verdict, tostring(v))
      assert.equal(1, #v.notes, tostring(v))
      assert.equal(("relies_spec.lua:%d: %s, and its mbarrier was not waited "
        .. "for (commit_group and wait_group do not wait for bulk loads): "
        .. "element 0 of global tensor 'map'; PTX does not guarantee this: in "
        .. "PTX only its mbarrier signals the end of a bulk load: wait there "
        .. "before the map changes"):format(at.copy, CHANGED), v.notes[1])
      v = call:check {grid = 1, block = 32, device = DEVICE, gpu = false,
                      strict = true}
      assert.equal("bug", v.verdict)
    end
  end)

  it("while a load is neither waited for nor drained", function()
    faulty {drain = function(change) change() end}
    faulty {drain = function(change) change() commit() group(0, true) end}
    faulty {drain = function(change) commit() change() group(0, true) end}
    faulty {drain = function(change) group(0, true) change() end}
    faulty {drain = function(change) commit() group(1, true) change() end}
  end)
end)

it("kernels of this repository rely only on PTX #long", function()
  local said, tell = {}, words.tell
  words.tell = function(text)
    if text:find "PTX does not guarantee" then said[#said + 1] = text end
  end
  local ok, why = pcall(function()
    for i, k in ipairs(ours) do
      -- Every third kernel runs at a size that tiles of 64 divide, with seed
      -- 1.
      local size, nth = {300, 144, 320}, i
      if i % 3 == 0 then size, nth = {256, 256, 448}, 1 end
      assert.is_nil(k.wrong(size, nth))
    end
  end)
  words.tell = tell
  if not ok then error(why, 0) end
  assert.same({}, said)
end)
-- SPDX-License-Identifier: MIT
