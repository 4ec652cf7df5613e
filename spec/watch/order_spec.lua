-- Tests the simulator's memory order inside a block against the PTX memory
-- model. cute.arch has many ways to pass data between threads. With each of
-- them, the complete kernel must have no reports in any schedule. If an
-- operation is missing, every schedule must report the two lines that race.
local support = require "spec.support"
local cute = require "cute"
local order = require "spec.watch.order"
local ACQ, REL, RLX, BOTH, FENCES, line, smem, zeroed, flags, poll, warp,
  lane0, run, found, whole, broken, one_store, one_poll, all_poll, all_add =
  order.ACQ, order.REL, order.RLX, order.BOTH, order.FENCES, order.line,
  order.smem, order.zeroed, order.flags, order.poll, order.warp, order.lane0,
  order.run, order.found, order.whole, order.broken, order.one_store,
  order.one_poll, order.all_poll, order.all_add
local arch = cute.arch

describe("release and acquire", function()
  -- By PTX, a release synchronises with an acquire that reads its value.
  -- Lane 0's release covers the other lanes' writes only after a
  -- bar.warp.sync. Other lanes see the data that lane 0 acquires only after
  -- a bar.warp.sync.
  it("by one lane for its warp", function()
    whole(one_store(REL), one_poll(ACQ))
    whole(one_store(REL), all_poll(ACQ, 1))
    broken(one_store(RLX), one_poll(ACQ))
    broken(one_store(REL), one_poll(RLX))
    broken(one_store(REL, false), one_poll(ACQ))
    broken(one_store(REL), one_poll(ACQ, false))
  end)

  it("of any scope: a block is part of each", function()
    for _, scope in ipairs {"cta", "cluster", "gpu", "sys"} do
      whole(one_store({sem = "release", scope = scope}),
            one_poll({sem = "acquire", scope = scope}))
    end
  end)

  it("fences order relaxed accesses", function()
    for _, fence in ipairs(FENCES) do
      whole(one_store(RLX, true, fence), one_poll(RLX, true, fence))
      whole(one_store(RLX, true, fence), one_poll(ACQ))
      whole(one_store(REL), one_poll(RLX, true, fence))
      broken(one_store(RLX, true, fence), one_poll(RLX))
      broken(one_store(RLX), one_poll(RLX, true, fence))
      broken(one_store(RLX, false, fence), one_poll(RLX, true, fence))
    end
  end)

  it("a fence on the wrong side of the flag does nothing", function()
    local fence = arch.fence_acq_rel_cta
    broken(function(f)
      arch.sync_warp()
      lane0(function()
        arch.store(f.iterator, 1, RLX)
        fence()
      end)
    end, one_poll(RLX, true, fence))
    broken(one_store(REL), function(f)
      lane0(function()
        fence()
        poll(f.iterator, 1, RLX)
      end)
      arch.sync_warp()
    end)
  end)

  it("a fence covers what came before it only", function()
    local lines = support.recorder()
    local text = found(function(a)
      local tid, f, s = arch.thread_idx(), flags(1), smem(2)
      cute.when(tid:eq(0), function()
        s[0] = 1
        arch.fence_acq_rel_cta()
        lines[1] = line() + 1
        s[1] = 2
        arch.store(f.iterator, 1, RLX)
      end)
      cute.when(tid:eq(32), function()
        poll(f.iterator, 1, ACQ)
        a[0] = s[0]
        lines[2] = line() + 1
        a[1] = s[1]
      end)
    end, 64, cute.zeros({2}, cute.i32))
    assert.equal(("race %d %d"):format(lines[1], lines[2]), text)
  end)

  it("what follows a release is not released", function()
    for _, how in ipairs {function(p) arch.store(p, 1, REL) end,
                          function(p) arch.atomic_add(p, 1, BOTH) end} do
      local lines = support.recorder()
      local text = found(function(a)
        local tid, s, f = arch.thread_idx(), zeroed(1), flags(1)
        cute.when(tid:eq(0), function()
          how(f.iterator)
          lines[1] = line() + 1
          s[0] = 1
        end)
        cute.when(tid:eq(32), function()
          poll(f.iterator, 1, ACQ)
          lines[2] = line() + 1
          a[0] = s[0]
        end)
      end, 64, cute.zeros({1}, cute.i32))
      assert.equal(("race %d %d"):format(lines[1], lines[2]), text)
    end
  end)

  it("a relaxed read counts after an acquire of the same address", function()
    assert.equal("", (found(function(a)
      local tid, f, s = arch.thread_idx(), flags(1), smem(32)
      warp(0, function()
        s[tid] = tid
        one_store(REL)(f)
      end)
      warp(1, function()
        arch.barrier(1, 64)
        cute.when(tid:eq(32), function() arch.store(f.iterator, 2, RLX) end)
        arch.barrier(2, 64)
      end)
      warp(2, function()
        poll(f.iterator, 1, RLX)
        arch.barrier(1, 64)
        arch.barrier(2, 64)
        poll(f.iterator, 2, ACQ)
        a[tid] = s[95 - tid]
      end)
    end, 96, cute.zeros({96}, cute.i32))))
  end)
end)

describe("release and acquire", function()
  it("order each lane alone, on its own flag", function()
    local function store(how)
      return function(f)
        arch.store(f.iterator + arch.lane_idx(), 1, how)
      end
    end
    local function wait(from)
      return function(f) poll(f.iterator + from(arch.lane_idx()), 1, ACQ) end
    end
    local function mirror(l) return 31 - l end
    local function same(l) return l end
    whole(store(REL), wait(mirror), 32)
    broken(store(RLX), wait(mirror), 32)
    broken(store(REL), wait(same), 32)  -- lane l waits for its own flag, but
                                        -- reads data that lane 31 - l wrote
  end)

  it("counters: read-modify-writes pass on what was released", function()
    for _, how in ipairs {REL, BOTH} do
      whole(all_add(how), all_poll(ACQ, 32))
    end
    whole(all_add(RLX, arch.fence_acq_rel_cta), all_poll(ACQ, 32))
    whole(all_add(nil, arch.fence_acq_rel_cta),
          all_poll(RLX, 32, arch.fence_acq_rel_cta))
    broken(all_add(nil), all_poll(ACQ, 32))
    broken(all_add(ACQ), all_poll(ACQ, 32))
    broken(all_add(REL), all_poll(RLX, 32))
  end)

  it("exchange, compare and swap, and polling by atomics", function()
    local function exch(how)
      return function(f)
        arch.sync_warp()
        lane0(function() arch.atomic_exch(f.iterator, 1, how) end)
      end
    end
    local function cas(how)
      return function(f)
        arch.sync_warp()
        lane0(function()
          arch.atomic_cas(f.iterator, {cmp = 0, val = 1, sem = how.sem,
                                       scope = how.scope})
        end)
      end
    end
    local function poll_add(how)
      return function(f)
        cute.loop(function()
          return arch.atomic_add(f.iterator, 0, how):eq(0)
        end, function() end)
      end
    end
    local function poll_cas(how)
      return function(f)
        cute.loop(function()
          return arch.atomic_cas(f.iterator, {cmp = 7, val = 7,
            sem = how.sem, scope = how.scope}):eq(0)
        end, function() end)
      end
    end
    whole(exch(REL), poll_add(ACQ))
    whole(exch(BOTH), poll_add(BOTH))
    whole(cas(REL), poll_cas(ACQ))
    broken(exch(RLX), poll_add(ACQ))
    broken(exch(REL), poll_add(REL))
    broken(cas(ACQ), poll_cas(ACQ))
    broken(cas(REL), poll_cas(RLX))
  end)

  it("flags in global memory order shared memory, too", function()
    local function handed(how, seen, fence)
      local lines = support.recorder()
      local text = found(function(g)
        local tid, s = arch.thread_idx(), smem(32)
        warp(0, function()
          lines[1] = line() + 1
          s[tid] = tid
          if fence then fence() end
          arch.atomic_add(g.iterator, 1, how)
        end)
        warp(1, function()
          cute.loop(function()
            return (arch.load(g.iterator, nil, seen) % 32):ne(0)
              | arch.load(g.iterator, nil, seen):eq(0)
          end, function() end)
          lines[2] = line() + 1
          g[tid] = s[63 - tid]
        end)
        arch.sync_threads()
        cute.when(tid:eq(0), function() g[0] = 0 end)
      end, 64, cute.zeros({64}, cute.i32))
      return text, ("race %d %d"):format(lines[1] or 0, lines[2] or 0)
    end
    local gpu = {sem = "acquire"}
    assert.equal("", (handed({sem = "release"}, gpu)))
    assert.equal("", (handed(nil, gpu, arch.fence_acq_rel_gpu)))
    local text, want = handed(nil, gpu)
    assert.equal(want, text)
    text, want = handed({sem = "release"}, {sem = "relaxed"})
    assert.equal(want, text)
  end)
end)

describe("chains", function()
  -- Returns the reports of a chain: warp 0 writes data, warp 1 signals warp 2,
  -- and warp 2 reads the data.
  local function relay(middle)
    local lines = support.recorder()
    local text = found(function(a)
      local tid, f, s = arch.thread_idx(), flags(2), smem(32)
      warp(0, function()
        lines[1] = line() + 1
        s[tid] = tid
        one_store(REL)(f)
      end)
      warp(1, function() middle(f) end)
      warp(2, function()
        lane0(function() poll(f.iterator + 1, 1, ACQ) end)
        arch.sync_warp()
        lines[2] = line() + 1
        a[tid] = s[95 - tid]
      end)
    end, 96, cute.zeros({96}, cute.i32))
    return text, ("race %d %d"):format(lines[1], lines[2])
  end

  local function pass(how, seen)
    return relay(function(f)
      lane0(function()
        poll(f.iterator, 1, seen)
        arch.store(f.iterator + 1, 1, how)
      end)
    end)
  end

  it("causality is transitive", function()
    assert.equal("", (pass(REL, ACQ)))
    local text, want = pass(RLX, ACQ)
    assert.equal(want, text)
    text, want = pass(REL, RLX)
    assert.equal(want, text)
  end)

  -- In PTX, a release stays effective after another thread's atomic, but not
  -- after another thread's plain store.
  it("another thread's atomic keeps a release alive, its store does not",
     function()
    local function over(second)
      local lines = support.recorder()
      local text = found(function(a)
        local tid, f, s = arch.thread_idx(), flags(1), smem(32)
        warp(0, function()
          lines[1] = line() + 1
          s[tid] = tid
          one_store(REL)(f)
        end)
        cute.when(tid:eq(32), function()
          poll(f.iterator, 1, RLX)
          second(f.iterator)
        end)
        warp(1, function()
          arch.sync_warp()
          arch.barrier(1, 64)
        end)
        warp(2, function()
          arch.barrier(1, 64)
          poll(f.iterator, 2, ACQ)
          lines[2] = line() + 1
          a[tid] = s[95 - tid]
        end)
      end, 96, cute.zeros({96}, cute.i32))
      return text, ("race %d %d"):format(lines[1], lines[2])
    end
    assert.equal("", (over(function(p) arch.atomic_add(p, 1) end)))
    local text, want = over(function(p) arch.store(p, 2, RLX) end)
    assert.equal(want, text)
  end)

  it("the same thread's store does", function()
    whole(function(f)
      arch.sync_warp()
      lane0(function()
        arch.store(f.iterator, 1, REL)
        arch.store(f.iterator, 2, RLX)
      end)
    end, one_poll(ACQ))
    whole(function(f)
      arch.sync_warp()
      lane0(function()
        arch.store(f.iterator, 1, REL)
        arch.store(f.iterator, 2, RLX)
      end)
    end, all_poll(ACQ, 2))
  end)

  it("a barrier before the release counts, and one after the acquire",
     function()
    local function through(first, last)
      local lines = support.recorder()
      local text = found(function(a)
        local tid, s, f = arch.thread_idx(), zeroed(64), flags(1)
        cute.when(tid:lt(64), function()
          lines[1] = line() + 1
          s[tid] = tid
          if first then arch.barrier(1, 64) end
          cute.when(tid:eq(0), function() arch.store(f.iterator, 1, REL) end)
        end, function()
          cute.when(tid:eq(64), function() poll(f.iterator, 1, ACQ) end)
          if last then arch.barrier(2, 64) end
          lines[2] = line() + 1
          a[tid] = s[127 - tid]
        end)
      end, 128, cute.zeros({128}, cute.i32))
      return text, ("race %d %d"):format(lines[1], lines[2])
    end
    assert.equal("", (through(true, true)))
    local text, want = through(false, true)
    assert.equal(want, text)
    text, want = through(true, false)
    assert.equal(want, text)
  end)
end)

describe("buffers that are used again", function()
  -- Returns the reports of a ring of two stages, whose flags "full" and "empty"
  -- count rounds.
  local function ring(release, acquire)
    local lines = support.recorder()
    local A = cute.zeros({32, 7}, cute.i32)
    local text = found(function(a)
      local tid, f, s = arch.thread_idx(), flags(4), smem(64)
      local lane = tid % 32
      for k in cute.range(7) do
        local stage, round = k % 2, k // 2
        local full, empty = f.iterator + stage, f.iterator + stage + 2
        warp(0, function()
          poll(empty, round, acquire)
          arch.sync_warp()
          lines[1] = line() + 1
          s[stage * 32 + lane] = k * 100 + lane
          arch.sync_warp()
          lane0(function() arch.store(full, round + 1, REL) end)
        end)
        warp(1, function()
          poll(full, round + 1, ACQ)
          lines[2] = line() + 1
          a[{lane, k}] = s[stage * 32 + 31 - lane]
          arch.sync_warp()
          lane0(function() arch.store(empty, round + 1, release) end)
        end)
      end
    end, 64, A)
    return text, ("race %d %d"):format(lines[1], lines[2]), A
  end

  it("a ring of stages", function()
    local text, _, A = ring(REL, ACQ)
    assert.equal("", text)
    for k = 0, 6 do
      for l = 0, 31 do assert.equal(k * 100 + 31 - l, A[{l, k}]) end
    end
  end)

  it("the reader must release a stage, the writer must acquire it", function()
    local text, want = ring(RLX, ACQ)
    assert.equal(want, text)
    text, want = ring(REL, RLX)
    assert.equal(want, text)
  end)

  it("a lock", function()
    local function locked(take, give)
      local lines = support.recorder()
      local A = cute.zeros({1}, cute.i32)
      local text = found(function(a)
        local tid, f, s = arch.thread_idx(), flags(1), smem(1)
        cute.when(tid:eq(0), function() s[0] = 0 end)
        arch.sync_threads()
        lane0(function()
          cute.loop(function()
            return arch.atomic_cas(f.iterator, {cmp = 0, val = 1, sem = take,
                                                scope = "cta"}):ne(0)
          end, function() end)
          lines[1] = line() + 1
          s[0] = s[0] + 1
          arch.atomic_exch(f.iterator, 0, {sem = give, scope = "cta"})
        end)
        arch.sync_threads()
        cute.when(tid:eq(0), function() a[0] = s[0] end)
      end, 128, A)
      return text, ("race %d %d"):format(lines[1], lines[1]), A
    end
    local text, _, A = locked("acquire", "release")
    assert.equal("", text)
    assert.equal(4, A[0])
    local want
    text, want = locked("relaxed", "release")
    assert.equal(want, text)
    text, want = locked("acquire", "relaxed")
    assert.equal(want, text)
  end)

  it("the flag itself may be reset by a plain store", function()
    for _, how in ipairs {{REL, ACQ}, {RLX, RLX}} do
      assert.equal("", (found(function(a)
        local tid, f = arch.thread_idx(), flags(1)
        cute.when(tid:eq(0), function()
          arch.store(f.iterator, 1, how[1])
        end)
        cute.when(tid:eq(32), function()
          poll(f.iterator, 1, how[2])
          a[0] = f[0]
          f[0] = 0
        end)
      end, 64, cute.zeros({1}, cute.i32))))
    end
  end)

  it("a plain read of a flag races, whatever strong reads follow", function()
    local lines = support.recorder()
    local text = found(function(a)
      local tid, f = arch.thread_idx(), flags(1)
      cute.when(tid:eq(0), function()
        lines[1] = line() + 1
        a[0] = f[0]
        a[1] = arch.load(f.iterator, nil, ACQ)
      end)
      cute.when(tid:eq(32), function()
        lines[2] = line() + 1
        arch.atomic_add(f.iterator, 1)
      end)
    end, 64, cute.zeros({2}, cute.i32))
    assert.equal(("race %d %d"):format(lines[1], lines[2]), text)
  end)
end)

describe("buffers that are used again", function()
  it("a plain store to a polled flag is a race", function()
    local lines = support.recorder()
    local text = found(function(a)
      local tid, f = arch.thread_idx(), flags(1)
      cute.when(tid:eq(0), function()
        lines[1] = line() + 1
        f[0] = 1
      end)
      cute.when(tid:eq(32), function()
        lines[2] = line() + 1
        a[0] = arch.load(f.iterator, nil, ACQ)
      end)
    end, 64, cute.zeros({1}, cute.i32))
    assert.equal(("race %d %d"):format(lines[1], lines[2]), text)
  end)
end)

-- Four warps pass a buffer to one another in random order. Each warp reads the
-- buffer in reverse order and writes it. In each step, one of the WAYS orders a
-- warp after the preceding one, so there are no reports. If one step lacks a
-- part of its way, there is a race.
describe("random relays", function()
  local fence = arch.fence_acq_rel_cta
  local function bar(f)
    return function(k) return function() f(k % 15 + 1, 64) end end
  end
  -- Each way: {publish, wait, publish, wait}; the second pair lacks a part.
  local WAYS = {
    {one_store(REL), one_poll(ACQ), one_store(RLX), one_poll(ACQ)},
    {one_store(REL), all_poll(ACQ, 1), one_store(REL), all_poll(RLX, 1)},
    {all_add(BOTH), all_poll(ACQ, 32), all_add(ACQ), all_poll(ACQ, 32)},
    {one_store(RLX, true, fence), one_poll(RLX, true, fence),
     one_store(RLX, true, fence), one_poll(RLX)},
    {all_add(nil, fence), all_poll(RLX, 32, fence),
     all_add(nil), all_poll(RLX, 32, fence)},
    {one_store(REL), one_poll(ACQ), one_store(REL, false), one_poll(ACQ)},
    {one_store(REL), one_poll(ACQ), one_store(REL), one_poll(ACQ, false)},
    {bar(arch.barrier_arrive), bar(arch.barrier),
     bar(function() end), bar(function() end)}}

  local function relay(rnd, steps, fault)
    local owner, way = {}, {}
    for k = 1, steps do
      repeat owner[k] = rnd(0, 3) until owner[k] ~= owner[k - 1]
      way[k] = rnd(#WAYS)
    end
    local A = cute.zeros({32}, cute.i32)
    for i = 0, 31 do A[i] = i end
    local text = {}
    for seed = 1, 3 do
      local r = run(seed, 128, function(a)
        local lane, s = arch.lane_idx(), zeroed(32)
        local f = flags(steps)
        local function hand(k, side)
          local x = WAYS[way[k]][side + (k == fault and 2 or 0)]
          if way[k] == #WAYS then x = x(k) end
          x {iterator = f.iterator + (k - 1)}
        end
        for k = 1, steps do
          warp(owner[k], function()
            if k > 1 then hand(k - 1, 2) end
            local x = k == 1 and a[lane] or s[31 - lane]
            arch.sync_warp()
            s[lane] = x + 1
            if k == steps then a[lane] = s[lane] else hand(k, 1) end
          end)
        end
      end, A)
      text[seed] = tostring(r)
      if fault then
        local seen = false
        for _, x in ipairs(r.reports) do seen = seen or x.kind == "race" end
        assert(seen, ("step %d, way %d: no race"):format(fault, way[fault]))
      else
        assert(r.ok, text[seed])
        for l = 0, 31 do
          local from = steps % 2 == 1 and l or 31 - l
          assert.equal(from + steps, A[l])
        end
        for i = 0, 31 do A[i] = i end
      end
    end
  end

  it("complete, and with one operation left out #long", function()
    local state = 1
    local function rnd(a, b)
      if not b then a, b = 1, a end
      state = (state * 6364136223846793005 + 1442695040888963407)
      return a + (state >> 33) % (b - a + 1)
    end
    for _ = 1, 25 do
      local steps = rnd(2, 9)
      local from = state
      relay(rnd, steps)
      state = from
      relay(rnd, steps, 1 + steps // 3)
    end
  end)
end)

describe("a part of a warp", function()
  -- Lanes 0 to 15 write data and release. One lane of the other warp acquires
  -- for its whole warp.
  it("acquired from, through meetings of all and of halves", function()
    for _, first in ipairs {true, false} do
      whole(function(f)
        cute.when(arch.lane_idx():lt(16), function()
          arch.atomic_add(f.iterator, 1, REL)
        end)
        arch.sync_warp()
        lane0(function() arch.atomic_add(f.iterator, 16, REL) end)
      end, function(f)
        lane0(function() poll(f.iterator, 32, ACQ) end)
        if first then arch.sync_warp() end
        cute.when(arch.lane_idx():lt(16), function()
          arch.sync_warp(0xffff)
        end, function() arch.sync_warp(0xffff0000) end)
        arch.sync_warp()
      end)
    end
    local lines = support.recorder()
    local function part(from)
      return found(function(a)
        local tid, s, f = arch.thread_idx(), zeroed(64), flags(1)
        local lane = tid % 32
        cute.when(tid:lt(16), function()
          s[tid] = tid
          arch.atomic_add(f.iterator, 1, REL)
        end)
        warp(1, function()
          lane0(function() poll(f.iterator, 16, ACQ) end)
          arch.sync_warp()
          lines[1] = line() + 1
          s[tid] = tid
          cute.when(lane:lt(16), function() arch.sync_warp(0xffff) end,
            function() arch.sync_warp(0xffff0000) end)
          lines[2] = line() + 1
          a[tid] = s[lane % 16] + s[from(lane)]
        end)
      end, 64, cute.zeros({64}, cute.i32))
    end
    assert.equal("", part(function(l) return l // 16 * 16 + 47 - l % 16 end))
    local text = part(function(l) return 63 - l end)
    assert.equal(("warp-race %d %d"):format(lines[1], lines[2]), text)
  end)
end)

describe("lanes that synchronize", function()
  local function halves(meet)
    local lines = support.recorder()
    local text = found(function(a)
      local tid, s = arch.thread_idx(), smem(32)
      lines[1] = line() + 1
      s[tid] = tid
      local from = meet(tid)
      lines[2] = line() + 1
      a[tid] = s[from]
    end, 32, cute.zeros({32}, cute.i32))
    return text, ("warp-race %d %d"):format(lines[1], lines[2])
  end

  local function both(mask)
    return function(tid)
      cute.when(tid:lt(16), function() arch.sync_warp(mask) end, function()
        arch.sync_warp(~mask & 0xffffffff)
      end)
    end
  end

  it("a mask orders its own lanes, and no others", function()
    local meet = both(0xffff)
    assert.equal("", (halves(function(tid)
      meet(tid)
      return tid // 16 * 16 + 15 - tid % 16
    end)))
    local text, want = halves(function(tid)
      meet(tid)
      return 31 - tid
    end)
    assert.equal(want, text)
    assert.equal("", (halves(function(tid)
      meet(tid)
      arch.sync_warp()
      return 31 - tid
    end)))
  end)

  it("votes and shuffles order no memory", function()
    for _, meet in ipairs {
      function() arch.vote_sync_op(arch.lane_idx():lt(3), "ballot", 0xffff) end,
      function() arch.match_sync(0xffff, arch.lane_idx()) end,
      function() arch.shuffle_sync_bfly(arch.lane_idx(), 1, 32, 0xffff) end,
      function() arch.vote_ballot_sync(arch.lane_idx():lt(3), 0xffff) end} do
      local text, want = halves(function(tid)
        cute.when(tid:lt(16), meet)
        return cute.where(tid:lt(16), 15 - tid, tid)
      end)
      assert.equal(want, text)
      assert.equal("", (halves(function(tid)
        cute.when(tid:lt(16), function()
          meet()
          arch.sync_warp(0xffff)
        end)
        return cute.where(tid:lt(16), 15 - tid, tid)
      end)))
    end
  end)

  it("pass on what one of them acquired", function()
    whole(one_store(REL), function(f)
      lane0(function() poll(f.iterator, 1, ACQ) end)
      cute.when(arch.lane_idx():lt(16), function() arch.sync_warp(0xffff) end,
        function() arch.sync_warp(0xffff0000) end)
      arch.sync_warp()
    end)
    broken(one_store(REL), function(f)
      lane0(function() poll(f.iterator, 1, ACQ) end)
      cute.when(arch.lane_idx():lt(16), function() arch.sync_warp(0xffff) end,
        function() arch.sync_warp(0xffff0000) end)
    end)
  end)
end)

describe("named barriers", function()
  it("do not cover what an arriving warp does afterwards", function()
    local lines = support.recorder()
    local text = found(function(a)
      local tid, s, f = arch.thread_idx(), zeroed(32), flags(1)
      warp(0, function()
        arch.barrier_arrive(1, 64)
        lines[1] = line() + 1
        s[tid] = tid
      end)
      warp(1, function()
        arch.barrier(1, 64)
        lines[2] = line() + 1
        a[tid] = s[63 - tid] + f[0]
      end)
    end, 64, cute.zeros({64}, cute.i32))
    assert.equal(("race %d %d"):format(lines[1], lines[2]), text)
  end)

  it("arriving does not order what comes after it", function()
    local lines = support.recorder()
    local text = found(function(a)
      local tid, s = arch.thread_idx(), smem(32)
      warp(0, function()
        lines[1] = line() + 1
        s[tid] = tid
        arch.barrier_arrive(1, 64)
        lines[2] = line() + 1
        a[tid] = s[31 - tid]
      end)
      warp(1, function() arch.barrier(1, 64) end)
    end, 64, cute.zeros({64}, cute.i32))
    assert.equal(("warp-race %d %d"):format(lines[1], lines[2]), text)
  end)

  it("pass on what their warps acquired", function()
    local function via(count)
      local lines = support.recorder()
      local text = found(function(a)
        local tid, s, f = arch.thread_idx(), zeroed(32), flags(1)
        warp(0, function()
          lines[1] = line() + 1
          s[tid] = tid
          one_store(REL)(f)
        end)
        warp(1, function()
          lane0(function() poll(f.iterator, 1, ACQ) end)
          arch.barrier_arrive(1, 64)
        end)
        warp(2, function()
          if count then arch.barrier(1, 64) else arch.barrier_arrive(1, 64) end
          lines[2] = line() + 1
          a[tid] = s[95 - tid]
        end)
      end, 96, cute.zeros({96}, cute.i32))
      return text, ("race %d %d"):format(lines[1], lines[2])
    end
    assert.equal("", (via(true)))
    local text, want = via(false)
    assert.equal(want, text)
  end)

  it("two of three stages by arrive and sync, many rounds", function()
    local A = cute.zeros({64}, cute.i32)
    local function rounds(full, empty)
      local lines = support.recorder()
      local text = found(function(a)
        local tid, s = arch.thread_idx(), smem(32)
        local lane, sum = tid % 32, cute.var(0)
        warp(0, function()
          for k in cute.range(6) do
            if empty then arch.barrier(2, 64) end
            lines.writes = line() + 1
            s[lane] = k + lane
            if full then arch.barrier_arrive(1, 64) end
          end
        end)
        warp(1, function()
          for _ in cute.range(6) do
            if empty then arch.barrier_arrive(2, 64) end
            if full then arch.barrier(1, 64) end
            lines.reads = line() + 1
            sum:set(sum:get() + s[31 - lane])
          end
          a[tid] = sum:get()
        end)
      end, 64, A)
      return text, ("race %d %d"):format(lines.writes, lines.reads)
    end
    assert.equal("", (rounds(true, true)))
    for l = 0, 31 do assert.equal(15 + 6 * (31 - l), A[32 + l]) end
    local text, want = rounds(true, false)
    assert.truthy(text:find(want, 1, true), text)
  end)
end)

describe("cp.async", function()
  local g2s = cute.make_tiled_copy(
    cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
    cute.make_layout {32}, cute.make_layout {4})

  local function brought(wait, sync, how)
    local A, lines = cute.ones({128}, cute.f32), support.recorder()
    local text = found(function(a, o)
      local tid, f = arch.thread_idx(), flags(1)
      local s, thr = smem(128, cute.f32), g2s:get_slice(tid % 32)
      warp(0, function()
        lines[1] = line() + 1
        cute.copy(g2s, thr:partition_S(a), thr:partition_D(s))
        arch.cp_async_commit_group()
        if wait then arch.cp_async_wait_group(0) end
        if sync then arch.sync_warp() end
        lane0(function() arch.store(f.iterator, 1, how) end)
      end)
      warp(1, function()
        poll(f.iterator, 1, ACQ)
        lines[2] = line() + 1
        o[tid] = s[127 - tid]
      end)
    end, 64, A, cute.zeros({128}, cute.f32))
    return text, ("%s %d %d"):format(wait and "race" or "async-in-flight",
                                     lines[1], lines[2])
  end

  it("wait, meet, release", function()
    assert.equal("", (brought(true, true, REL)))
    for _, x in ipairs {{false, true, REL}, {true, false, REL},
                        {true, true, RLX}} do
      local text, want = brought(table.unpack(x))
      assert.equal(want, text)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
