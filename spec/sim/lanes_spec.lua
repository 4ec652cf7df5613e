-- Tests lanes of a warp that wait for one another. They must run alternately,
-- keep their values, and reconverge. If no lane can end another lane's wait,
-- the simulator must report a deadlock.
local cute = require "cute"
local order = require "spec.watch.order"
local support = require "spec.support"
local arch = cute.arch
local smem, ACQ, REL = order.smem, order.ACQ, order.REL

local function tensor(n) return cute.zeros({n}, cute.i32) end

local function report(seed, block, f, ...)
  return support.report(cute.kernel("k", f)(...):launch {grid = 1,
    block = block, seed = seed, device = "sim:sm_90a", faults = "return",
    budget = 2000000})
end

-- Asserts that f has no reports under several seeds, and that x[i] is want(i)
-- after each run.
local function right(block, n, want, f)
  for seed = 1, 4 do
    local x = tensor(n)
    local r = report(seed, block, f, x)
    assert.is_true(r.ok, tostring(r))
    for i = 0, n - 1 do assert.equal(want(i), x[i], i) end
  end
end

local function locked(lock, f)
  cute.loop(function()
    return arch.atomic_cas(lock, {cmp = 0, val = 1, sem = "acquire"}):ne(0)
  end, function() end)
  f()
  arch.atomic_exch(lock, 0, {sem = "release"})
end

describe("lanes that wait for one another", function()
  it("take a lock by turns", function()
    for _, block in ipairs {5, 32, 96} do
      right(block, 2, function(i) return i * block end, function(x)
        locked(x.iterator, function() x[1] = x[1] + 1 end)
        arch.sync_threads()
      end)
    end
  end)

  it("wait for a neighbour on either side", function()
    for _, back in ipairs {false, true} do
      right(32, 32, function() return 1 end, function(x)
        local t = arch.lane_idx()
        local me = back and 31 - t or t
        cute.when(me:gt(0), function()
          order.poll(x.iterator + (me - 1), 1, {sem = "acquire"})
        end)
        arch.store(x.iterator + me, 1, {sem = "release"})
      end)
    end
  end)

  it("pass data both ways, each in its own loop", function()
    right(32, 64, function(i)
      return i < 10 and i * i + i or i >= 32 and 7 * (i - 32) or 0
    end, function(x)
      local t, s = arch.lane_idx(), smem(4)
      local mine = t * 7
      cute.when(t:lt(4), function() s[t] = 0 end)
      arch.sync_warp()
      cute.when(t:eq(9), function()
        for i in cute.range(10) do
          s[2] = i * i
          arch.store(s.iterator, i + 1, REL)
          order.poll(s.iterator + 1, i + 1, ACQ)
        end
      end, function()
        cute.when(t:eq(5), function()
          for i in cute.range(10) do
            order.poll(s.iterator, i + 1, ACQ)
            x[i] = s[2] + i
            arch.store(s.iterator + 1, i + 1, REL)
          end
        end)
      end)
      arch.sync_warp()
      x[32 + t] = mine
    end)
  end)

  it("meet again in each turn of a loop, with registers of their own",
     function()
    -- In iteration k, lane k waits until all other lanes have counted.
    right(32, 32, function(i) return 8 * i + 28 end, function(x)
      local t, s = arch.lane_idx(), smem(8)
      local r = cute.make_rmem_tensor({1}, cute.i32)
      r[0] = 0
      cute.when(t:lt(8), function() s[t] = 0 end)
      arch.sync_warp()
      for k in cute.range(8) do
        cute.when(t:eq(k), function()
          order.poll(s.iterator + k, 31, ACQ)
        end, function()
          arch.atomic_add(s.iterator + k, 1, order.BOTH)
        end)
        r[0] = r[0] + t + k
        arch.sync_warp()
      end
      x[t] = r[0]
    end)
  end)

  it("wait at an mbarrier", function()
    right(64, 2, function() return 42 end, function(x)
      local t = arch.thread_idx()
      local s, bar = smem(2), arch.alloc_smem(cute.i64, 2)
      local w = arch.warp_idx()
      cute.when(arch.lane_idx():eq(0), function()
        arch.mbarrier_init(bar + w, 1)
      end)
      arch.sync_warp()
      cute.when(arch.lane_idx():eq(0), function()
        arch.mbarrier_wait(bar + w, 0)
        x[w] = s[w]
      end, function()
        cute.when((t % 32):eq(7), function()
          s[w] = 42
          arch.mbarrier_arrive(bar + w)
        end)
      end)
    end)
  end)

  it("may end while others wait for them", function()
    right(32, 32, function(i) return i == 3 and 1 or 0 end, function(x)
      local t = arch.lane_idx()
      cute.when(t:eq(0), function()
        order.poll(x.iterator + 3, 1, {sem = "acquire"})
      end)
      cute.when(t:eq(3), function()
        arch.store(x.iterator + 3, 1, {sem = "release"})
      end)
    end)
  end)
end)

describe("lanes that wait for one another", function()
  it("are reported if one of them wrote with no release", function()
    local r = report(1, 32, function(x)
      local t, s = arch.lane_idx(), order.flags(2)
      cute.when(t:eq(0), function()
        order.poll(s.iterator, 1, ACQ)
        x[0] = s[1]
      end)
      cute.when(t:eq(3), function()
        s[1] = 1
        arch.store(s.iterator, 1, order.RLX)
      end)
    end, tensor(32))
    assert.equal("warp-race", r.reports[1].kind)
  end)
end)

describe("lanes that wait forever", function()
  local function stuck(message, f)
    for seed = 1, 4 do
      local r = report(seed, 64, f, tensor(64))
      assert.equal("deadlock", r.reports[1].kind)
      assert.matches(message, r.reports[1].message)
      assert.equal(1, #r.reports, tostring(r))
    end
  end

  it("at a flag, with the rest at a barrier", function()
    stuck("1 thread of warp 1 waits at element 30 of global tensor 'x', which "
      .. "is 0 and was never written", function(x)
      cute.when(arch.thread_idx():eq(40), function()
        order.poll(x.iterator + 30, 1, {sem = "acquire"})
      end)
      arch.sync_warp()
    end)
  end)

  it("each half at the other's flag", function()
    stuck("at element 3[01] of global tensor 'x', which is 0", function(x)
      local t = arch.lane_idx()
      local half = t // 16
      cute.when(arch.warp_idx():eq(0), function()
        order.poll(x.iterator + (31 - half), 1, {sem = "acquire"})
        arch.store(x.iterator + (30 + half), 1, {sem = "release"})
      end)
    end)
  end)

  it("at an mbarrier at which all would arrive later", function()
    stuck("'bar'%[0%] for the end of phase 0 .* which lacks 32 of 64",
          function(x)
      local t, bar = arch.thread_idx(), arch.alloc_smem(cute.i64, 1)
      cute.when(t:eq(0), function() arch.mbarrier_init(bar, 64) end)
      arch.sync_threads()
      cute.when(t:eq(1), function() arch.mbarrier_wait(bar, 0) end)
      arch.sync_warp()
      arch.mbarrier_arrive(bar)
      x[t] = 0
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
