-- Tests TMA on the simulator: the data that it loads and stores, and the report
-- for each possible mistake, with its lines.
local cute = require "cute"
local support = require "spec.support"
local tma = require "spec.tma"

local cpasync, arch, _ = cute.nvgpu.cpasync, cute.arch, cute._
local LOAD, STORE = cpasync.CopyBulkTensorTileG2SOp(),
  cpasync.CopyBulkTensorTileS2GOp()
local MULTICAST = cpasync.CopyBulkTensorTileG2SMulticastOp()
local TILE = {32, 16}  -- a tile has 2048 bytes of f32

-- Launches f(it) on tile 0 of a tensor, and returns the report. If `op` is a
-- multicast, two CTAs share the tile. `it` has the fields atom, ts, tg, bar, s,
-- out, and tid. `shift` moves tile 0 by that many elements.
local function report(op, f, seed, shift)
  local ctas = op == MULTICAST and 2 or 1
  local x = tma.tensor({40, 20}, cute.f32, function(i) return i end)
  local atom, coords = cpasync.make_tiled_tma_atom(op, x,
    cute.make_layout(TILE), TILE, ctas)
  local out = cute.zeros({512}, cute.f32)
  local k = cute.kernel("k", function(a, c, o)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout(TILE), 128)
    local bar = arch.alloc_smem(cute.i64, 1)
    cute.when(tid:eq(0), function()
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init_fence()
    end)
    arch.sync_threads()
    local ts, tg = cpasync.tma_partition(a,
      ctas > 1 and arch.block_idx_in_cluster() or 0, cute.make_layout(ctas),
      cute.group_modes(s, 0, 2),
      cute.zipped_divide(shift and cute.domain_offset(shift, c) or c, TILE))
    f {atom = a, ts = ts, tg = tg, bar = bar, s = s, out = o, tid = tid}
  end)
  local r = support.report(k(atom, coords, out):launch {
    grid = ctas, block = 64, cluster = ctas, device = "sim",
    faults = "return", seed = seed or 1})
  return r, out
end

-- Returns a kernel body that loads tile number `tile` (default 0). The mbarrier
-- expects `bytes` bytes.
local function load(bytes, tile, wait)
  return function(x)
    cute.when(x.tid:eq(0), function()
      arch.mbarrier_arrive_and_expect_tx(x.bar, bytes or x.atom.tx_bytes)
      cute.copy(x.atom, x.tg(_, tile or 0), x.ts, {tma_bar_ptr = x.bar})
    end)
    if wait ~= false then arch.mbarrier_wait(x.bar, 0) end
    x.out[x.tid] = x.s(x.tid % 32, x.tid // 32)
  end
end

-- Returns a kernel body that stores tile 0. If opts.fence, sync, commit or wait
-- is false, the body omits that step. If opts.again is true, it writes shared
-- memory again after the copy.
local function store(opts)
  return function(x)
    for i = 0, 7 do x.s[x.tid + 64 * i] = 1.0 end
    if opts.fence ~= false then arch.fence_view_async_shared() end
    if opts.sync ~= false then arch.sync_threads() end
    cute.when(x.tid:eq(0), function()
      cute.copy(x.atom, x.ts, x.tg(_, 0))
      if opts.commit ~= false then arch.cp_async_bulk_commit_group() end
      if opts.wait ~= false then arch.cp_async_bulk_wait_group(0, true) end
    end)
    if opts.again then
      arch.sync_threads()
      x.s[x.tid] = 2.0
    end
  end
end

local function multicast(mask)
  return function(x)
    arch.cluster_arrive()
    arch.cluster_wait()
    cute.when(x.tid:eq(0), function()
      arch.mbarrier_arrive_and_expect_tx(x.bar, x.atom.tx_bytes)
      cute.copy(x.atom, x.tg(_, 0), x.ts, {tma_bar_ptr = x.bar,
                                          mcast_mask = mask})
    end)
    arch.mbarrier_wait(x.bar, 0)
    cute.when(arch.block_idx():eq(0), function()
      x.out[x.tid] = x.s(x.tid % 32, x.tid // 32)
    end)
    arch.cluster_arrive()
    arch.cluster_wait()
  end
end

-- Returns the line of this file with the nth occurrence of a text.
local function line(text, n)
  local k = 0
  for l in io.lines "spec/sim/tma_spec.lua" do
    k = k + 1
    if l:find(text, 1, true) then
      n = (n or 1) - 1
      if n == 0 then return k end
    end
  end
end

-- Each mistake is {name, operation, kernel, kind of the fault, words of the
-- message, text in the line of the fault, text in its other line, words of the
-- advice}.
local MISTAKES = {
  {"expects too many bytes", LOAD, load(4096), "deadlock",
   "2 warps wait (warp 0, 1) at mbarrier 'bar'[0] for the end of phase 0 "
   .. "(parity 0), which lacks 2048 bytes", "arch.mbarrier_wait(x.bar, 0)", nil,
   "tx_bytes of its atom"},
  {"expects too few bytes", LOAD, load(1024), "deadlock",
   "which lacks nothing; 1024 bytes arrived that no expect_tx announced",
   "arch.mbarrier_wait(x.bar, 0)", nil, "expect all of these bytes"},
  {"expects of a ragged tile what lies inside", LOAD, load(8 * 16 * 4, 1),
   "deadlock", "1536 bytes arrived that no expect_tx announced",
   "arch.mbarrier_wait(x.bar, 0)", nil, "including elements outside"},
  {"reads before the copy is there", LOAD, load(nil, 0, false),
   "async-in-flight", "read of shared memory while a bulk copy to it is in "
   .. "flight (wait missing: mbarrier 'bar'[0])", "x.out[x.tid] = x.s(x.tid",
   "cute.copy(x.atom, x.tg(_, tile", "wait for its mbarrier"},
  {"is at a coordinate that 32 bits do not hold", LOAD, function(x)
     load(nil, cute.var(1 << 31 - 5):get() << 5)(x)
   end, "index-overflow", "an index uses a product that overflows 32 bits: "
     .. "the access reaches",
   "cute.copy(x.atom, x.tg(_, tile"},
  {"starts it in all lanes", LOAD, function(x)
     cute.when(x.tid:lt(32), function()
       cute.copy(x.atom, x.tg(_, 0), x.ts, {tma_bar_ptr = x.bar})
     end)
   end, "warp-race", "write after a write by a bulk copy whose completion was "
   .. "not waited for: element 0 of shared tensor 's'",
   "cute.copy(x.atom, x.tg(_, 0), x.ts, {tma_bar_ptr = x.bar})",
   "cute.copy(x.atom, x.tg(_, 0), x.ts, {tma_bar_ptr = x.bar})",
   "let one lane start it"},
  {"stores without a fence of the proxies", STORE, store {fence = false},
   "race", "read by a bulk copy after a thread's write, with no "
   .. "fence_proxy(\"async\") in between",
   "cute.copy(x.atom, x.ts, x.tg(_, 0))", "x.s[x.tid + 64 * i] = 1.0",
   "call fence_view_async_shared()"},
  {"stores before a barrier", STORE, store {sync = false}, "race",
   "read by a bulk copy after a thread's write",
   "cute.copy(x.atom, x.ts, x.tg(_, 0))",
   "x.s[x.tid + 64 * i] = 1.0"},
  {"writes what a store still reads", STORE, store {wait = false,
                                                   again = true},
   "race", "write after a read by a bulk copy whose completion was not waited "
   .. "for",
   "x.s[x.tid] = 2.0", "cute.copy(x.atom, x.ts, x.tg(_, 0))",
   "cp_async_bulk_wait_group"},
  {"waits for a group that was not closed", STORE, store {commit = false,
                                                          again = true},
   "race", "write after a read by a bulk copy whose completion was not waited "
   .. "for",
   "x.s[x.tid] = 2.0", "cute.copy(x.atom, x.ts, x.tg(_, 0))"},
  {"ends while a store reads", STORE, store {wait = false}, "exited-block",
   "block (0,0,0) may exit before a copy to or from its shared memory "
   .. "completes",
   "cute.copy(x.atom, x.ts, x.tg(_, 0))"},
  {"gives a multicast to too few CTAs", MULTICAST, multicast(1), "deadlock",
   "at mbarrier 'bar'[0] for the end of phase 0 (parity 0), which lacks 2048 "
   .. "bytes", "arch.mbarrier_wait(x.bar, 0)"},
  {"gives a multicast to a CTA that is not there", MULTICAST, multicast(7),
   "out-of-bounds", "write outside shared tensor 's': block 2 of a "
   .. "cluster of 2",
   "cute.copy(x.atom, x.tg(_, 0), x.ts, {tma_bar_ptr = x.bar,"},
}

-- Reports whether one of the report's faults is that of the case.
local function found(r, case)
  for _, f in ipairs(r.reports) do
    if f.kind == case[4] and f.message:find(case[5], 1, true) then
      local at, other = false, case[7] == nil
      for n = 1, 2 do
        at = at or f.line == line(case[6], n)
        other = other or f.line2 == line(case[7], n)
      end
      return at and other
    end
  end
end

describe("TMA in the simulator", function()
  tma.suite(it, function(wrong, first) assert.equal(0, wrong, first) end,
            "sim")

  it("finds nothing where nothing is wrong, by any schedule", function()
    for seed = 1, 8 do
      for _, good in ipairs {{LOAD, load()}, {LOAD, load(nil, 3)},
                             {STORE, store {}}, {STORE, store {again = true}},
                             {MULTICAST, multicast(3)}} do
        local r = report(good[1], good[2], seed)
        assert.is_true(r.ok, tostring(r))
      end
    end
  end)

  for _, case in ipairs(MISTAKES) do
    it("tells who " .. case[1], function()
      for seed = 1, 4 do
        local r = report(case[2], case[3], seed)
        assert.is_true(found(r, case), tostring(r))
        if case[8] then
          assert.truthy(tostring(r):find(case[8], 1, true), tostring(r))
        end
      end
    end)
  end

  it("reports what is wrong with a tensor map that a kernel makes", function()
    local function says(opts)
      local r = support.report(select(2, tma.try_groups(opts, {
        device = "sim", faults = "return"})))
      if r.ok then return "nothing" end
      assert.equal("tensor-map", r.reports[1].kind)
      return tostring(r)
    end
    assert.equal("nothing", says {})
    for _, case in ipairs {
      {{release = false}, "this tensor map was changed but not released "
       .. "afterwards: element 16 of global tensor 'maps'",
       "fence_tma_desc_release() in the thread"},
      {{acquire = false}, "this tensor map was changed but not acquired "
       .. "afterwards: element 0 of global tensor 'maps'",
       "fence_tma_desc_acquire() in the thread"},
      {{early = true}, "this tensor map is changed while a copy that uses it "
       .. "is in flight: element 0 of global tensor 'maps'",
       "wait for the copies that use the map"}} do
      local text = says(case[1])
      assert.truthy(text:find(case[2], 1, true), text)
      assert.truthy(text:find(case[3], 1, true), text)
    end
  end)

  it("accepts no other numbers as a tensor map", function()
    local x = tma.tensor({32, 16}, cute.f32)
    local atom, coords = cpasync.make_tiled_tma_atom(LOAD, x,
      cute.make_layout(TILE), TILE)
    local function says(change)
      local maps = cute.zeros({16}, cute.i64)
      local k = cute.kernel("k", function(a, c, y, m)
        local s = cute.make_smem_tensor(cute.f32, cute.make_layout(TILE), 128)
        local bar = arch.alloc_smem(cute.i64, 1)
        local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
          cute.group_modes(s, 0, 2), cute.zipped_divide(c, TILE))
        cute.when(arch.thread_idx():eq(0), function()
          arch.mbarrier_init(bar, 1)
          arch.mbarrier_init_fence()
          change(a, y, m)
          cpasync.fence_tma_desc_release()
          cpasync.fence_tma_desc_acquire(m)
          arch.mbarrier_arrive_and_expect_tx(bar, a.tx_bytes)
          cute.copy(a, tg(_, 0), ts, {tma_bar_ptr = bar, tma_desc_ptr = m})
          arch.mbarrier_wait(bar, 0)
        end)
      end)
      return tostring(support.report(k(atom, coords, x, maps):launch {grid = 1,
        block = 32, device = "sim", faults = "return"}))
    end
    assert.truthy(says(function(a, _, m) cpasync.copy_tensormap(a, m) end)
      :find "nothing to report")
    assert.truthy(says(function() end):find("the memory holds no valid tensor "
      .. "map: element 0 of global tensor 'm'", 1, true))
    assert.truthy(says(function(a, _, m)
      cpasync.copy_tensormap(a, m)
      m[7] = m[7] + 1
    end):find("the memory holds no valid tensor map", 1, true))
    assert.truthy(says(function(a, y, m)
      cpasync.copy_tensormap(a, m)
      cpasync.update_tma_descriptor(a, cute.make_tensor(y.iterator + 4,
        cute.make_layout {32, 16}), m)
    end):find("this tensor map describes more elements than its tensor has",
      1, true))
  end)

  it("counts what it moves, by lines", function()
    local r = report(LOAD, load())
    local bytes
    for _, l in ipairs(r.lines) do
      if l.op == "tma.load" then bytes = l.bytes end
    end
    assert.equal(2048, bytes)
  end)
end)

describe("where a TMA box begins", function()
  -- Launches a copy of a box at `at`. Returns whether the report contains
  -- `text`. If it does not, there must be no fault.
  local function told(op, at, text)
    local r = report(op, op == LOAD and load() or store {}, 1, at)
    local there = tostring(r):find(text, 1, true) ~= nil
    assert.equal(not there, r.ok, tostring(r))
    return there
  end

  it("is a multiple of 16 bytes, even outside of the tensor", function()
    for op, verb in pairs {[LOAD] = "read", [STORE] = "write"} do
      for _, at in ipairs {{2, 0}, {4, 3}, {5, 1}, {8, 0}, {41, 0}, {44, 0},
                           {3, 20}} do
        local text = ("%s of a TMA box that does not begin at a multiple of 16 "
          .. "bytes: (%d,%d) of global tensor 'a'"):format(verb, at[1], at[2])
        assert.equal(at[1] % 4 ~= 0, told(op, at, text))
      end
    end
  end)

  it("is not negative if the box is stored", function()
    for _, op in ipairs {LOAD, STORE} do
      for _, at in ipairs {{-4, 0}, {4, -1}, {-8, -3}, {8, 3}, {36, 19}} do
        local text = ("write of a TMA box that begins at a negative "
          .. "coordinate: (%d,%d) of global tensor 'a', (40,20)"):format(
          at[1], at[2])
        local negative = math.min(table.unpack(at)) < 0
        assert.equal(op == STORE and negative, told(op, at, text))
      end
    end
  end)
end)

describe("TMA in the simulator", function()
  it("waits for the preceding launch", function()
    local x = tma.tensor({32, 16}, cute.f32)
    local out = cute.zeros({512}, cute.f32)
    local atom, coords = cpasync.make_tiled_tma_atom(LOAD, x,
      cute.make_layout(TILE), TILE)
    local fill = cute.kernel("fill", function(t)
      for i = 0, 15 do t[{(arch.thread_idx()), i}] = 1.0 end
    end)
    local function copy(wait)
      return cute.kernel("copy", function(a, c, o)
        if wait then arch.griddepcontrol_wait() end
        tma.load(TILE, cute.make_layout(TILE))(a, c, cute.make_tensor(
          o.iterator, cute.make_layout {512, 1}))
      end)(atom, coords, out)
    end
    local function launch(wait)
      fill(x):launch {grid = 1, block = 32, device = "sim"}
      return support.report(copy(wait):launch {grid = 1, block = tma.THREADS,
        device = "sim", pdl = true, faults = "return"})
    end
    assert.is_true(launch(true).ok)
    local r = launch(false)
    assert.equal("dependent-launch", r.reports[1].kind, tostring(r))
  end)

  it("fills elements outside of the tensor's only tile", function()
    for _, shape in ipairs {{32, 16}, {20, 16}, {32, 1}} do
      local x = tma.tensor(shape, cute.f32, function(i) return i + 1 end)
      local tile = {32, shape[2]}
      local atom, coords = cpasync.make_tiled_tma_atom(LOAD, x,
        cute.make_layout(tile), tile)
      local n = cute.size(tile)
      local out = cute.zeros({n, 3}, cute.f32)
      cute.kernel("beyond", tma.load(tile, cute.make_layout(tile)))(atom,
        coords, out):launch {grid = 3, block = tma.THREADS, device = "sim"}
      for b = 0, 2 do
        for i = 0, n - 1 do
          local row, col = i % 32, i // 32
          local inside = b == 0 and row < shape[1]
          assert.equal(inside and x(row, col) or 0.0, out(i, b))
        end
      end
    end
  end)

  it("rejects tensors whose memory was closed", function()
    local buffer = cute.buffer("f32", 512)
    local x = cute.make_tensor(buffer, cute.make_layout {32, 16})
    local atom, coords = cpasync.make_tiled_tma_atom(LOAD, x,
      cute.make_layout(TILE), TILE)
    local k = cute.kernel("k", function(a) cpasync.prefetch_descriptor(a) end)
    k(atom):launch {grid = 1, block = 32, device = "sim"}
    buffer:close()
    support.raises("closed", function()
      k(atom):launch {grid = 1, block = 32, device = "sim"}
    end)
    assert.truthy(coords)
  end)
end)
-- SPDX-License-Identifier: MIT
