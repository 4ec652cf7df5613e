-- Tests mbarriers in the simulator. If a warp correctly passes data to another
-- warp, no schedule may have a report. If an operation is missing or wrong, the
-- fault must be reported with its lines.
local support = require "spec.support"
local cute = require "cute"
local seeds = require "spec.seeds"
local arch = cute.arch

local SEEDS = seeds.COUNT

local function line() return debug.getinfo(2, "l").currentline end

local launch, found = seeds.with {grid = 1, block = 64}

local function clean(f, opts, ...)
  assert.equal("", (found(f, opts, ...)))
end

---------------------------------------------------------------------------
-- Rings whose mbarriers expect more or fewer arrivals than there are
---------------------------------------------------------------------------

-- Returns a kernel in which four warps read data that a fifth warp writes to
-- two stages, `rounds` times. The counts are the arrival counts of the
-- mbarriers "full" and "empty".
local function readers(full_count, empty_count, rounds, lines)
  return function(y)
    local t, lane = arch.thread_idx(), arch.lane_idx()
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout {32, 2}, 16)
    local full, empty = arch.alloc_smem(cute.i64, 2),
      arch.alloc_smem(cute.i64, 2)
    cute.when(t:eq(0), function()
      for k = 0, 1 do
        arch.mbarrier_init(full + k, full_count)
        arch.mbarrier_init(empty + k, empty_count)
      end
    end)
    arch.sync_threads()
    cute.when(arch.warp_idx():eq(4), function()
      for k in cute.range(rounds) do
        arch.mbarrier_wait(empty + k % 2, 1 - k // 2 % 2)
        s[{lane, k % 2}] = k
        lines.fill = line() + 1
        arch.mbarrier_arrive(full + k % 2)
      end
    end, function()
      local sum = 0
      for k in cute.range(rounds) do
        arch.mbarrier_wait(full + k % 2, k // 2 % 2)
        sum = sum + s[{31 - lane, k % 2}]
        arch.sync_warp()
        lines.free = line() + 2
        cute.when(lane:eq(0), function()
          arch.mbarrier_arrive(empty + k % 2)
        end)
      end
      y[t] = sum
    end)
  end
end

describe("a ring whose mbarriers count", function()
  -- Runs the kernel of readers() under many seeds. Returns a list with the line
  -- and the text of each seed's first report, and the lines of the kernel's
  -- calls.
  local function first(full, empty, rounds)
    local lines, told = support.recorder(), {}
    for seed = 1, SEEDS do
      local r = launch(readers(full, empty, rounds, lines), {seed = seed,
        block = 160}, cute.zeros({128}, cute.i32))
      local f = r.reports[1]
      told[seed] = f and ("%d %s"):format(f.line, f.message) or ""
    end
    return told, lines
  end
  local function all(want, told)
    for _, text in ipairs(told) do assert.equal(want, text) end
  end

  it("the threads that arrive is right #long", function()
    for _, rounds in ipairs {1, 2, 3, 9} do
      all("", (first(32, 4, rounds)))
    end
  end)

  it("too few is reported in its first phase, for any number of tiles #long",
    function()
    for rounds = 1, 2 do
      for few = 1, 3 do
        local told, at = first(32, few, rounds)
        for _, text in ipairs(told) do
          assert.matches(("^%d mbarrier 'empty'%%[0%%] counts %d arrivals? a "
            .. "phase; nothing orders this arrival after the end of phase %%d: "
            .. "that phase may count it instead of another arrival$")
            :format(at.free, few), text)
        end
      end
    end
    -- The mbarrier "empty" counts 3 arrivals a phase instead of 4, so one
    -- reader may miss a phase.
    for _, rounds in ipairs {3, 4, 6, 7, 16} do
      for _, text in ipairs((first(32, 3, rounds))) do
        assert.not_equal("", text)
      end
    end
    local r = launch(readers(32, 3, 2, {}), {block = 160},
                     cute.zeros({128}, cute.i32))
    assert.matches("initialize the mbarrier with the number of all arrivals in "
      .. "a phase",
                   tostring(r))
  end)

  it("too many is reported though no thread waits for the end #long", function()
    for rounds = 1, 2 do
      local told, at = first(32, 5, rounds)
      all(at.free .. " mbarrier 'empty'[0] is still in phase 0 at the end of "
        .. "the kernel: 1 of 5 arrivals are missing, so its phases get fewer "
        .. "or more arrivals than it counts", told)
    end
    for _, text in ipairs((first(32, 5, 3))) do
      assert.matches("no warp can go on", text)
    end
  end)

  it("fewer than the threads of a warp is reported at the arrival #long",
     function()
    local told, at = first(31, 4, 4)
    for _, text in ipairs(told) do
      assert.matches("^" .. at.fill .. " mbarrier 'full'%[0%] counts 31 "
        .. "arrivals", text)
    end
  end)
end)

it("an mbarrier is invalidated after all uses", function()
  local function kernel(sync)
    return function(y)
      local bar = arch.alloc_smem(cute.i64, 1)
      local t = arch.thread_idx()
      cute.when(t:eq(0), function() arch.mbarrier_init(bar, 64) end)
      arch.sync_threads()
      arch.mbarrier_arrive(bar)
      arch.mbarrier_wait(bar, 0)
      if sync then arch.sync_threads() end
      cute.when(t:eq(0), function() arch.mbarrier_inval(bar) end)
      y[t] = 1
    end
  end
  clean(kernel(true), {}, cute.zeros({64}, cute.i32))
  for seed = 1, SEEDS do
    local r = launch(kernel(false), {seed = seed}, cute.zeros({64}, cute.i32))
    assert.matches("mbarrier 'bar'%[0%] is .*inval", r.reports[1].message)
  end
end)

describe("an mbarrier's memory", function()
  -- Returns a kernel in which f(words, t) accesses the memory of an mbarrier in
  -- each thread, after the mbarrier was used.
  local function kernel(inval, f)
    return function(y)
      local t, s = arch.thread_idx(),
        cute.make_smem_tensor(cute.i64, cute.make_layout(6), 128)
      local bar = s.iterator + 2
      cute.when(t:eq(0), function() arch.mbarrier_init(bar, 64) end)
      arch.sync_threads()
      arch.mbarrier_arrive(bar)
      arch.mbarrier_wait(bar, 0)
      arch.sync_threads()
      cute.when(t:eq(0), function()
        if inval then arch.mbarrier_inval(bar) end
        f(s, y)
      end)
    end
  end
  local load = cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkG2SOp(),
    cute.i64)
  local CASES = {
    ["that is written"] = {"stores", function(s) s[2] = 0 end},
    ["that is read"] = {"reads", function(s, y) y[1] = s[2] end},
    ["that a wider vector reaches"] = {"stores", function(s)
      cute.recast_tensor(s, cute.i32)[5] = 0
    end},
    ["that is counted by an atomic"] = {"stores", function(s)
      arch.atomic_add(s.iterator + 2, 1)
    end},
    ["that a copy fills"] = {"stores", function(s, y)
      local bar = arch.alloc_smem(cute.i64, 1)
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init_fence()
      arch.mbarrier_arrive_and_expect_tx(bar, 32)
      local from, to = cute.nvgpu.cpasync.group_bulk_copy_modes(
        cute.local_tile(y, {4}, {0}), cute.make_tensor(s.iterator + 0,
        cute.make_layout(4)))
      cute.copy(load, from, to, {mbar_ptr = bar})
      arch.mbarrier_wait(bar, 0)
    end},
  }
  for name, c in pairs(CASES) do
    it("is no data: " .. name, function()
      local o = {device = "sim:sm_90a"}
      local r = launch(kernel(false, c[2]), o, cute.zeros({64}, cute.i64))
      assert.equal("mbarrier", r.reports[1].kind, tostring(r))
      assert.equal(("this %s data in memory where mbarrier 's'[2] is in use")
        :format(c[1]), r.reports[1].message)
      assert.truthy(tostring(r):find("cannot hold data before "
        .. "mbarrier_inval", 1,
        true))
      r = launch(kernel(true, function(s, y)
        if name == "that is read" or name:find "atomic" then s[2] = 0 end
        c[2](s, y)
      end), o, cute.zeros({64}, cute.i64))
      assert.is_true(r.ok, tostring(r))
    end)
  end

  it("may lie beside other mbarriers", function()
    clean(kernel(false, function(s, y)
      s[1], s[3] = 4, 5
      y[1] = s[1] + s[3]
    end), {}, cute.zeros({64}, cute.i64))
  end)
end)

-- Here a barrier, not a wait at the mbarrier, ensures that all threads have
-- arrived.
it("arrivals of two phases, with a barrier between, are right", function()
  clean(function(y)
    local bar = arch.alloc_smem(cute.i64, 1)
    cute.when(arch.thread_idx():eq(0), function()
      arch.mbarrier_init(bar, 64)
    end)
    arch.sync_threads()
    for _ = 1, 3 do
      arch.mbarrier_arrive(bar)
      arch.sync_threads()
    end
    y[arch.thread_idx()] = 1
  end, {}, cute.zeros({64}, cute.i32))
  assert.matches("instead of another arrival", (found(function(y)
    local bar = arch.alloc_smem(cute.i64, 1)
    cute.when(arch.thread_idx():eq(0), function()
      arch.mbarrier_init(bar, 64)
    end)
    arch.sync_threads()
    for _ = 1, 3 do arch.mbarrier_arrive(bar) end
    y[arch.thread_idx()] = 1
  end, {}, cute.zeros({64}, cute.i32))))
end)

---------------------------------------------------------------------------
-- A ring of stages between two warps
---------------------------------------------------------------------------

local STAGES, ROUNDS = 3, 8
local at = support.recorder()  -- records the lines of ring()'s calls

-- Returns a function that polls by `ask`, which is try_wait or test_wait.
local function asking(ask)
  return function(bar, parity)
    local done = cute.var(ask(bar, parity))
    cute.loop(function() return ~done:get() end, function()
      done:set(ask(bar, parity))
    end)
  end
end

-- Returns a kernel with a ring of stages. `o` names parts to omit or to change.
local function ring(o)
  local wait = o.wait or arch.mbarrier_wait
  local stages, rounds = o.stages or STAGES, o.of or ROUNDS
  local function one_lane(bar, lane)
    if not o.no_sync_warp then arch.sync_warp() end
    at.release = line() + 1
    cute.when(lane:eq(0), function() arch.mbarrier_arrive(bar) end)
  end
  local function produce(s, full, empty, lane)
    for k in cute.range(o.rounds or rounds) do
      local stage, turn = k % stages, k // stages % 2
      at.empty = line() + 1
      if not o.no_empty then wait(empty + stage, 1 - turn) end
      at.store = line() + 1
      s[{lane, stage}] = lane * 10 + k
      at.arrive = line() + 2
      if o.one then one_lane(full + stage, lane)
      else arch.mbarrier_arrive(full + stage, nil, o.times) end
    end
  end
  local function consume(s, full, empty, lane, out)
    local sum = 0
    for k in cute.range(rounds) do
      local stage, turn = k % stages, k // stages % 2
      local parity = o.wrong and 1 - turn or o.first and 0 or turn
      at.full = line() + 1
      wait(full + stage, parity)
      at.load = line() + 1
      sum = sum + s[{31 - lane, stage}]
      if not o.keep then one_lane(empty + stage, lane) end
    end
    out[lane] = sum
  end
  return function(out)
    local lane = arch.lane_idx()
    local full = arch.alloc_smem(cute.i64, stages)
    local empty = arch.alloc_smem(cute.i64, stages)
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout({32, stages}))
    cute.when(arch.thread_idx():eq(0), function()
      for k = 0, stages - 1 do
        at.init = line() + 1
        arch.mbarrier_init(full + k, o.count or o.one and 1 or 32)
        arch.mbarrier_init(empty + k, 1)
      end
      at.again = line() + 1
      if o.again then arch.mbarrier_init(full, 7) end
    end)
    if not o.no_sync then arch.sync_threads() end
    cute.when(arch.warp_idx():eq(0), function()
      produce(s, full, empty, lane)
    end, function()
      consume(s, full, empty, lane, out)
    end)
  end
end

local function try(o) return found(ring(o), {}, cute.zeros({32}, cute.i32)) end

describe("an mbarrier", function()
  it("passes data in both directions", function()
    for _, o in ipairs {{}, {one = true}, {wait = asking(
        arch.mbarrier_try_wait)}, {wait = asking(arch.mbarrier_test_wait),
        one = true}} do
      local t = cute.zeros({32}, cute.i32)
      clean(ring(o), {}, t)
      for l = 0, 31 do
        assert.equal(ROUNDS * 10 * (31 - l) + ROUNDS * (ROUNDS - 1) // 2, t(l))
      end
    end
  end)

  it("does so for any number of stages and rounds #long", function()
    for _, case in ipairs {{1, 0}, {1, 1}, {1, 7}, {2, 1}, {2, 2}, {2, 5},
        {3, 2}, {3, 13}, {4, 4}, {4, 9}, {5, 3}, {7, 29}} do
      local stages, rounds = table.unpack(case)
      local t = cute.zeros({32}, cute.i32)
      clean(ring {stages = stages, of = rounds, one = rounds % 2 == 0}, {}, t)
      assert.equal(rounds * 310 + rounds * (rounds - 1) // 2, t(0))
    end
  end)

  it("orders all lanes' writes only if they met the arriving lane",
    function()
    local text, some = try {one = true, no_sync_warp = true}
    assert.equal(SEEDS, some)
    assert.matches(("%d race: read after a write"):format(at.load), text)
    assert.matches(("%d race: write after a read"):format(at.store), text)
    text, some = try {no_sync_warp = true}
    assert.equal(SEEDS, some)
    assert.not_matches("read after a write", text)
    assert.matches(("%d race: write after a read"):format(at.store), text)
  end)

  it("must be waited for before its stage is written again", function()
    local text, some = try {no_empty = true}
    assert.equal(SEEDS, some)
    assert.matches(("%d race: write after a read"):format(at.store), text)
  end)

  it("explains a wait for the wrong parity", function()
    local text, some = try {wrong = true}
    assert.equal(SEEDS, some)
    assert.matches(("%d uninitialised"):format(at.load), text)
    assert.matches(("%d deadlock: no warp can go on: 1 warp waits %%(warp 1%%) "
      .. "at mbarrier 'full'%%[0%%] for the end of phase 0 %%(parity 0%%), "
      .. "which lacks 32 of 32 arrivals"):format(at.full), text)
  end)

  it("explains a wait that is right only in the first phase",
    function()
    local text, some = try {first = true, wait = asking(
      arch.mbarrier_try_wait)}
    assert.equal(SEEDS, some)
    assert.matches("mbarrier 'full'%[0%] for the end of phase 2 %(parity 0%)",
      text)
  end)

  it("explains arrivals that are missing, and who has ended #long", function()
    local text, some = try {count = 33}
    assert.equal(SEEDS, some)
    assert.equal(([[
%d deadlock: no warp can go on: 1 warp waits (warp 0) at mbarrier 'empty'[0] ]]
      .. [[for the end of phase 0 (parity 0), which lacks 1 of 1 arrival
%d deadlock: no warp can go on: 1 warp waits (warp 1) at mbarrier 'full'[0] ]]
      .. [[for the end of phase 0 (parity 0), which lacks 1 of 33 arrivals]])
      :format(at.empty, at.full), text)
    text = try {rounds = 4}
    assert.equal(("%d deadlock: no warp can go on: 1 warp waits (warp 1) at "
      .. "mbarrier 'full'[1] for the end of phase 1 (parity 1), which lacks 32 "
      .. "of 32 arrivals; 1 warp exited without "
      .. "arriving"):format(at.full), text)
    text = try {keep = true}
    assert.equal(([[
%d deadlock: no warp can go on: 1 warp waits (warp 0) at mbarrier 'empty'[0] ]]
      .. [[for the end of phase 0 (parity 0), which lacks 1 of 1 arrival
%d deadlock: no warp can go on: 1 warp waits (warp 1) at mbarrier 'full'[0] ]]
      .. [[for the end of phase 1 (parity 1), which lacks 32 of 32 arrivals]])
      :format(at.empty, at.full), text)
  end)

  it("explains the same for a loop of try_wait", function()
    local text, some = try {rounds = 4, wait = asking(arch.mbarrier_test_wait)}
    assert.equal(SEEDS, some)
    assert.matches("mbarrier 'full'%[1%] for the end of phase 1 %(parity 1%)",
      text)
  end)

  it("takes no more arrivals than it was made for", function()
    local text, some = try {count = 31}
    assert.equal(SEEDS, some)
    assert.equal(("%d mbarrier: mbarrier 'full'[0] counts 31 arrivals a phase; "
      .. "32 arrivals come at once when 31 are missing"):format(at.arrive),
      text)
    text = try {count = 1}
    assert.matches("counts 1 arrival a phase; 32 arrivals come at once when 1 "
      .. "is missing", text)
    text = try {times = 2}
    assert.matches("counts 32 arrivals a phase; 64 arrivals come at once when "
      .. "32 are missing", text)
  end)
end)

describe("an mbarrier", function()
  it("may be invalidated, and initialized for other threads #long", function()
    -- Returns a kernel that uses an mbarrier of 64 arrivals, and then one of 32
    -- arrivals at the same address. `o` names parts to omit.
    local function twice(o)
      return function(out)
        local bar, tid = arch.alloc_smem(cute.i64, 1), arch.thread_idx()
        local function make(n)
          cute.when(tid:eq(0), function()
            at.make = line() + 1
            arch.mbarrier_init(bar, n)
          end)
          arch.sync_threads()
        end
        make(64)
        for _ = 0, 2 do
          arch.mbarrier_arrive(bar)
          arch.mbarrier_wait(bar, _ % 2)
        end
        if not o.no_sync then arch.sync_threads() end
        cute.when(tid:eq(o.by or 0), function()
          at.inval = line() + 1
          if not o.no_inval then arch.mbarrier_inval(bar) end
        end)
        if o.use then
          at.use = line() + 1
          arch.mbarrier_arrive(bar)
        end
        if o.sync then arch.sync_threads() end
        make(32)
        cute.when(tid:lt(32), function() arch.mbarrier_arrive(bar) end)
        arch.mbarrier_wait(bar, 0)
        out[tid] = tid
      end
    end
    local function tried(o)
      return found(twice(o), {}, cute.zeros({64}, cute.i32))
    end
    assert.equal("", (tried {}))
    assert.equal("", (tried {by = 40, sync = true}))
    local text, some = tried {no_inval = true}
    assert.equal(SEEDS, some)
    assert.equal(("%d mbarrier: mbarrier 'bar'[0] is initialized a second "
      .. "time, for 32 arrivals, with no mbarrier_inval "
      .. "between"):format(at.make), text)
    text, some = tried {use = true}
    assert.equal(SEEDS, some)
    -- The report names the later event: the use or the invalidation.
    for told in text:gmatch "[^\n]+" do
      local after = ("%d mbarrier: mbarrier 'bar'[0] is used after its "
        .. "mbarrier_inval"):format(at.use)
      local before = ("%d mbarrier: mbarrier 'bar'[0] is invalidated with "
        .. "nothing that orders an earlier use before the "
        .. "mbarrier_inval"):format(at.inval)
      assert.truthy(told == after or told == before, told)
    end
    text, some = tried {by = 40}
    assert.equal(SEEDS, some)
    for told in text:gmatch "[^\n]+" do
      assert.truthy(told:find("is initialized again with nothing that orders "
        .. "its mbarrier_inval before that", 1, true)
        or told:find("is initialized a second time", 1, true), told)
    end
    -- Here the mbarrier is invalidated before all threads pass its last phase.
    text, some = tried {no_sync = true}
    assert.equal(SEEDS, some)
    for told in text:gmatch "[^\n]+" do
      assert.truthy(told:find("is invalidated while threads wait", 1, true)
        or told:find("nothing that orders an earlier use before", 1, true)
        or told:find("is used after its mbarrier_inval", 1, true)
        or told:find("nothing that orders its mbarrier_init before", 1, true),
        told)
    end
    -- The mbarrier is invalidated while a copy's bytes are pending.
    local report = launch(function(x)
      local bar = arch.alloc_smem(cute.i64, 1)
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64}, 16)
      cute.when(arch.thread_idx():eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        cute.copy(cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkG2SOp(),
          cute.i32), x, s, {mbar_ptr = bar})
        arch.mbarrier_inval(bar)
      end)
    end, {block = 32}, cute.zeros({64}, cute.i32))
    assert.matches("is invalidated while threads wait for it or bytes are in "
      .. "flight", report.reports[1].message)
  end)

  it("is initialized once, by one thread, before others use it", function()
    local text, some = try {again = true}
    assert.equal(SEEDS, some)
    assert.equal(("%d mbarrier: mbarrier 'full'[0] is initialized a second "
      .. "time, for 7 arrivals, with no mbarrier_inval "
      .. "between"):format(at.again), text)
    text, some = try {no_sync = true}
    assert.equal(SEEDS, some)
    assert.matches("%[0%] is used with nothing that orders its mbarrier_init "
      .. "before", text)
    for told in text:gmatch "[^\n]+" do
      assert.truthy(told:find("is used with nothing that orders", 1, true),
                    told)
    end
    local report = launch(function(_, n)
      arch.mbarrier_init(arch.alloc_smem(cute.i64, 32) + arch.lane_idx(), n)
    end, {block = 32}, cute.zeros({1}, cute.i32), 0)
    assert.matches("is initialized for 0 arrivals; the count must be 1 to "
      .. "1048575",
      report.reports[1].message)
  end)

  it("is bounded like other shared memory", function()
    local report = launch(function(_, n)
      local bar = arch.alloc_smem(cute.i64, 2)
      arch.mbarrier_init(bar + n, 1)
    end, {block = 1}, cute.zeros({1}, cute.i32), 2)
    assert.equal("out-of-bounds", report.reports[1].kind)
  end)
end)

describe("an mbarrier", function()
  it("counts bytes, and says how many are missing", function()
    local function expects(first, second, count)
      return (found(function(_)
        local bar = arch.alloc_smem(cute.i64, 1)
        cute.when(arch.thread_idx():eq(0), function()
          arch.mbarrier_init(bar, count or 2)
          arch.mbarrier_arrive_and_expect_tx(bar, first)
          if second then arch.mbarrier_expect_tx(bar, second) end
          arch.mbarrier_arrive(bar)
        end)
        arch.sync_threads()
        arch.mbarrier_wait(bar, 0)
      end, {}, cute.zeros({1}, cute.i32)))
    end
    assert.equal("", expects(0))
    assert.matches("2 warps wait %(warp 0, 1%) at mbarrier 'bar'%[0%] for the "
      .. "end of phase 0 %(parity 0%), which lacks 4096 bytes", expects(4096))
    assert.matches("which lacks 4160 bytes", expects(4096, 64))
    assert.matches("which lacks 4094 of 4096 arrivals and 4096 bytes",
      -- the mistake: a byte count as the arrival count
      expects(4096, nil, 4096))
    assert.matches("expects 1048576 bytes; the maximum is 1048575",
      expects(1048575, 1))
  end)
end)

---------------------------------------------------------------------------
-- cp.async
---------------------------------------------------------------------------

describe("cp.async that arrives at an mbarrier", function()
  -- Returns a kernel in which warp 0 copies by cp.async and warp 1 reads. The
  -- mbarrier expects `count` arrivals.
  local function copies(arrive, count)
    return function(x, out)
      local tid, lane = arch.thread_idx(), arch.lane_idx()
      local bar = arch.alloc_smem(cute.i64, 1)
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {128}, 16)
      local g2s = cute.make_tiled_copy(
        cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.i32, 128),
        cute.make_layout {32}, cute.make_layout {4})
      cute.when(tid:eq(0), function() arch.mbarrier_init(bar, count) end)
      arch.sync_threads()
      cute.when(arch.warp_idx():eq(0), function()
        local thr = g2s:get_slice(lane)
        cute.copy(g2s, thr:partition_S(x), thr:partition_D(s))
        arrive(bar)
      end, function()
        arch.mbarrier_wait(bar, 0)
        for k = 0, 3 do out[lane * 4 + k] = s[127 - lane * 4 - k] end
      end)
    end
  end

  it("passes the copied data", function()
    local x, y = cute.zeros({128}, cute.i32), cute.zeros({128}, cute.i32)
    for i = 0, 127 do x[i] = i * 3 end
    clean(copies(arch.cp_async_mbarrier_arrive_noinc, 32), {}, x, y)
    for i = 0, 127 do assert.equal((127 - i) * 3, y(i)) end
  end)

  it("does not if the thread arrives by itself", function()
    local x, y = cute.ones({128}, cute.i32), cute.zeros({128}, cute.i32)
    local text, some = found(copies(function(bar) arch.mbarrier_arrive(bar) end,
                                    32), {}, x, y)
    assert.equal(SEEDS, some)
    assert.matches("async%-in%-flight", text)
  end)

  it("counts the arrival of each lane", function()
    local x, y = cute.ones({128}, cute.i32), cute.zeros({128}, cute.i32)
    local text = found(copies(function(bar)
      cute.when(arch.lane_idx():lt(31), function()
        arch.cp_async_mbarrier_arrive_noinc(bar)
      end)
    end, 32), {}, x, y)
    assert.matches("which lacks 1 of 32 arrivals", text)
    text = found(copies(arch.cp_async_mbarrier_arrive_noinc, 31), {}, x, y)
    assert.matches("counts 31 arrivals a phase", text)
  end)
end)

---------------------------------------------------------------------------
-- Waits that may come one phase too late
---------------------------------------------------------------------------

describe("a wait that nothing orders before the next phase's end", function()
  local pipeline = cute.pipeline
  local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

  -- Returns a kernel in which one warp fills a ring of 3 stages 8 times, and
  -- another warp reads them. The filling warp ends with a wait for all stages;
  -- `tail` chooses the state with which it waits.
  local function ended(tail)
    return function(y)
      local warp, lane = arch.warp_idx(), arch.lane_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {32, 3})
      local pipe = pipeline.PipelineAsync {num_stages = 3,
        producer_group = Group(Agent.Thread, 32),
        consumer_group = Group(Agent.Thread, 32)}
      cute.when(warp:eq(0), function()
        local write = pipe:make_producer_state()
        for k in cute.range(8) do
          pipe:producer_acquire(write)
          s[{lane, write.index}] = k
          pipe:producer_commit(write)
          write:advance()
        end
        tail(pipe, write)
      end, function()
        local read = pipe:make_consumer_state()
        for k in cute.range(8) do
          pipe:consumer_wait(read)
          local v = s[{31 - lane, read.index}]
          pipe:consumer_release(read)
          read:advance()
          y[lane + 32 * k] = v
        end
      end)
    end
  end

  it("is reported in every run, also if it passed", function()
    local text, some = found(ended(function(pipe)
      pipe:producer_tail(pipe:make_producer_state())
    end), {}, cute.zeros({256}, cute.i32))
    assert.equal(SEEDS, some)
    assert.matches("mbarrier 'pipe_empty'%[0%]: nothing orders this wait for "
      .. "the end of phase 1 before the end of phase 2; after that it would "
      .. "wait for phase 3, which never ends", text)
  end)

  it("is not reported in a ring, or for the last phase", function()
    clean(ended(function(pipe, write) pipe:producer_tail(write) end), {},
          cute.zeros({256}, cute.i32))
    clean(ended(function() end), {}, cute.zeros({256}, cute.i32))
  end)

  -- Returns a kernel in which thread 0 completes two phases of an mbarrier, and
  -- warp 1 waits for the first one.
  local function twice(between, more)
    return function(y)
      local t = arch.thread_idx()
      local bar, back = arch.alloc_smem(cute.i64, 1),
        arch.alloc_smem(cute.i64, 1)
      cute.when(t:eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init(back, 32)
      end)
      arch.sync_threads()
      cute.when(t:eq(0), function()
        arch.mbarrier_arrive(bar)
        if between then arch.mbarrier_wait(back, 0) end
        arch.mbarrier_arrive(bar)
        if more then arch.mbarrier_arrive(bar) end
      end)
      cute.when(t:ge(32), function()
        arch.mbarrier_wait(bar, 0)
        if between then arch.mbarrier_arrive(back) end
        y[t] = 1
      end)
    end
  end

  it("is not reported if the wait is ordered first", function()
    local y = cute.zeros({64}, cute.i32)
    clean(twice(true, false), {}, y)
    -- the wait can end only after a third phase
    clean(twice(false, true), {}, y)
    local _, some = found(twice(false, false), {}, y)
    assert.equal(SEEDS, some)
  end)

  it("agrees with all schedules", function()
    for _, case in ipairs {{true, false, "ok"}, {false, true, "ok"},
                           {false, false, "bug"}} do
      local v = cute.kernel("k", twice(case[1], case[2]))(cute.zeros({64},
        cute.i32)):check {grid = 1, block = 64, gpu = false}
      assert.equal(case[3], v.verdict, tostring(v))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
