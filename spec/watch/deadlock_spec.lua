-- Tests that a deadlock's report names the right cause: the wait that no thread
-- can end, even if only some lanes of a warp wait there.
local cute = require "cute"
local source = require "cute.lang.source"
local support = require "spec.support"
local arch = cute.arch

local ROUNDS = 3

-- Runs f in blocks of two warps, with an array of `n` mbarriers for one arrival
-- each. Returns the message and line of the cause, and the messages of the
-- other reports.
local function deadlock(n, cluster, f)
  local kernel = cute.kernel("k", function()
    local bars, tid = {}, arch.thread_idx()
    for k = 1, n do bars[k] = arch.alloc_smem(cute.i64, 1) end
    cute.when(tid:eq(0), function()
      for k = 1, n do arch.mbarrier_init(bars[k], 1) end
      arch.mbarrier_init_fence()
    end)
    arch.cluster_arrive()
    arch.cluster_wait()
    f(tid, bars)
  end)
  local r = support.report(kernel():launch {grid = cluster, cluster = cluster,
    block = 64, device = "sim:sm_90a", seed = 1, faults = "return"})
  local others = {}
  for k = 2, #r.reports do
    assert.equal("deadlock", r.reports[k].kind)
    others[k - 1] = r.reports[k].message
  end
  table.sort(others)
  return r.reports[1].message, others, r.reports[1]
end

describe("the cause of a deadlock", function()
  it("is the wait of a warp's lane that nothing ends", function()
    local message, others, r = deadlock(2, 1, function(tid, bars)
      local empty, full = bars[1], bars[2]
      cute.when(tid:lt(32), function()
        for k in cute.range(ROUNDS) do
          cute.when(tid:eq(5), function()
            arch.mbarrier_wait(empty, 1 - k % 2)
            arch.mbarrier_arrive(full)
          end)
          arch.mbarrier_wait(full, k % 2)
          arch.sync_warp()
        end
      end)
      cute.when(tid:ge(32), function()
        for k in cute.range(ROUNDS) do
          arch.mbarrier_wait(full, k % 2)
          arch.sync_warp()
        end
      end)
    end)
    assert.equal("no warp can go on: 1 thread of warp 0 waits at mbarrier "
      .. "'empty'[0] for the end of phase 0 (parity 0), which lacks 1 of 1 "
      .. "arrival", message)
    assert.matches("mbarrier_wait%(empty,", source.line(r.file, r.line))
    assert.equal(5, r.thread[1])
    assert.same({"no warp can go on: 2 warps wait (warp 0, 1) at mbarrier "
      .. "'full'[0] for the end of phase 1 (parity 1), which lacks 1 of 1 "
      .. "arrival"}, others)
  end)

  -- Warp 0 of each block waits for warp 1 of its own block. Warp 1 arrives only
  -- in a branch, and warp 1 of block 1 never enters this branch.
  it("is a wait for a branch that the running threads never enter", function()
    local message, others, r = deadlock(2, 2, function(tid, bars)
      local full, ready = bars[1], bars[2]
      local rank = arch.block_idx_in_cluster()
      cute.when(tid:eq(0), function()
        for k in cute.range(ROUNDS) do
          arch.mbarrier_wait(full, k % 2)
          arch.mbarrier_arrive(ready, 1 - rank)
        end
      end)
      cute.when(tid:eq(32), function()
        for k in cute.range(ROUNDS) do
          cute.when(rank:eq(0), function() arch.mbarrier_arrive(full) end)
          arch.mbarrier_wait(ready, k % 2)
        end
      end)
    end)
    local where = "no warp can go on: 1 warp waits (warp %d) at mbarrier '%s'"
      .. "[0] for the end of phase %d (parity %d), which lacks 1 of 1 arrival"
    assert.equal(where:format(0, "full", 0, 0), message)
    assert.same({1, 0, 0}, r.block)
    assert.same({where:format(0, "full", 1, 1), where:format(1, "ready", 0, 0),
      where:format(1, "ready", 1, 1)}, others)
  end)
end)
-- SPDX-License-Identifier: MIT
