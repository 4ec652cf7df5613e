-- The simulator's idea of order inside a block: lanes that meet, named
-- barriers, cp.async. See sim_order_spec.lua.
local cute = require "cute"
local order = require "spec.order"
local ACQ, REL, RLX, line, smem, zeroed, flags, poll, warp, lane0, found,
  whole, broken, one_store = order.ACQ, order.REL, order.RLX, order.line,
  order.smem, order.zeroed, order.flags, order.poll, order.warp, order.lane0,
  order.found, order.whole, order.broken, order.one_store
local arch = cute.arch

describe("a part of a warp", function()
  -- Lanes 0 to 15 write and release; one lane acquires for its warp.
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
    local lines = {}
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

describe("lanes that meet", function()
  local function halves(meet)
    local lines = {}
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

  it("so do votes and shuffles of a part", function()
    for _, meet in ipairs {
      function() arch.vote_sync_op(arch.lane_idx():lt(3), "ballot", 0xffff) end,
      function() arch.match_sync(0xffff, arch.lane_idx()) end,
      function() arch.shuffle_sync_bfly(arch.lane_idx(), 1, 32, 0xffff) end,
      function() arch.vote_ballot_sync(arch.lane_idx():lt(3), 0xffff) end} do
      assert.equal("", (halves(function(tid)
        cute.when(tid:lt(16), meet)
        return cute.where(tid:lt(16), 15 - tid, tid)
      end)))
      local text, want = halves(function(tid)
        cute.when(tid:lt(16), meet)
        return cute.where(tid:lt(16), 31 - tid, tid)
      end)
      assert.equal(want, text)
    end
  end)

  it("hand on what one of them acquired", function()
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
    local lines = {}
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
    local lines = {}
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
      local lines = {}
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
      local lines = {}
      local text = found(function(a)
        local tid, s = arch.thread_idx(), smem(32)
        local lane, sum = tid % 32, cute.var(0)
        warp(0, function()
          for k in cute.range(6) do
            if empty then arch.barrier(2, 64) end
            lines[1] = line() + 1
            s[lane] = k + lane
            if full then arch.barrier_arrive(1, 64) end
          end
        end)
        warp(1, function()
          for _ in cute.range(6) do
            if empty then arch.barrier_arrive(2, 64) end
            if full then arch.barrier(1, 64) end
            lines[2] = line() + 1
            sum:set(sum:get() + s[31 - lane])
          end
          a[tid] = sum:get()
        end)
      end, 64, A)
      return text, ("race %d %d"):format(lines[1], lines[2])
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
    local A, lines = cute.ones({128}, cute.f32), {}
    local text = found(function(a)
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
        a[tid] = s[127 - tid]
      end)
    end, 64, A)
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
