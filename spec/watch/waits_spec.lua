-- Tests reports of waits for groups of asynchronous operations that do not make
-- a read safe, and the advice in these reports. Cases: no barrier follows the
-- wait; the wait leaves the group pending; the waiting threads started no copy;
-- the wait covers only a store's reads.
local cute = require "cute"
local support = require "spec.support"

local arch = cute.arch
local cpasync, warpgroup = cute.nvgpu.cpasync, cute.nvgpu.warpgroup

local function report(f, o, ...)
  local launch = {grid = 1, block = 64, device = "sim:sm_90a",
                  faults = "return", output = false}
  for name, v in pairs(o) do launch[name] = v end
  return support.report(cute.kernel("k", f)(...):launch(launch))
end

-- Returns the fault's kind and what was missing (nil without a report), and the
-- report's text.
local function lack(...)
  local r = report(...)
  if r.ok then return nil, tostring(r) end
  return ("%s %s"):format(r.reports[1].kind, r.reports[1].lack), tostring(r)
end

-- Two warpgroups multiply with the tile A and wait by `wait`. Then all threads
-- fill A again.
local function products(wait)
  local atom = warpgroup.make_smem_layout_atom("K_SW128", cute.bf16)
  local whole = cute.tile_to_shape(atom, {128, 64})
  local half = cute.tile_to_shape(atom, {64, 64})
  local mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.bf16, cute.f32,
    {64, 64, 16}, "SMEM"), cute.make_layout {2, 1, 1})
  return lack(function(C)
    local tid = arch.thread_idx()
    local sA = cute.make_smem_tensor(cute.bf16, whole, 1024)
    local sB = cute.make_smem_tensor(cute.bf16, half, 1024)
    local function fill(s, n)
      for k = 0, n // 256 - 1 do s[tid + 256 * k] = 1.0 end
    end
    fill(sB, 64 * 64)
    local thr = mma:get_slice(tid)
    local A = mma:make_fragment_A(thr:partition_A(sA))
    local B = mma:make_fragment_B(thr:partition_B(sB))
    local acc = mma:make_fragment_C(cute.shape(thr:partition_C(C)))
    mma:set(warpgroup.Field.ACCUMULATE, false)
    for _ = 1, 2 do
      fill(sA, 128 * 64)
      arch.fence_view_async_shared()
      arch.sync_threads()
      warpgroup.fence()
      cute.gemm(mma, acc, A, B, acc)
      warpgroup.commit_group()
      wait(tid)
    end
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, thr:partition_C(C))
  end, {block = 256}, cute.empty({128, 64}, cute.f32))
end

-- Twice, all threads fill a buffer, one thread starts a bulk copy of it to
-- global memory, and all threads call `wait`.
local function stores(wait, seed)
  return lack(function(y)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 128)
    local atom = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.i32)
    for t = 0, 1 do
      s[tid] = 100 * t + tid
      arch.fence_view_async_shared()
      arch.sync_threads()
      cute.when(tid:eq(0), function()
        cute.copy(atom, s, cute.local_tile(y, {64}, {t}))
        arch.cp_async_bulk_commit_group()
      end)
      wait(tid)
    end
    cute.when(tid:eq(0), function() arch.cp_async_bulk_wait_group(0, true) end)
  end, {seed = seed}, cute.empty({128}, cute.i32))
end

-- One warp starts two groups of cp.async. After `wait`, the other warp reads
-- the data of the second group.
local function copies(wait)
  return lack(function(x, y)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64), 16)
    local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 32)
    cute.when(tid:lt(32), function()
      for t = 0, 1 do
        local at = {tid + 32 * t}
        local from = cute.local_tile(x, {1}, at)
        cute.copy(atom, from, cute.local_tile(s, {1}, at))
        arch.cp_async_commit_group()
      end
    end)
    wait(tid)
    cute.when(tid:ge(32), function() y[tid - 32] = s[95 - tid] end)
  end, {}, cute.randn({64}, cute.f32), cute.empty({32}, cute.f32))
end

local function first(tid, n, f) cute.when(tid:lt(n), f) end
local function other(tid, n, f) cute.when(tid:ge(n), f) end

describe("advice on waits for groups", function()
  it("names the barrier that is missing after a right wait", function()
    local what, text = products(function() warpgroup.wait_group(0) end)
    assert.equal("race barrier", what)
    assert.matches("threads that issued it have waited for it; put "
      .. "sync_threads", text)
    assert.is_nil(text:find "wait_group")
    local seen = 0
    for seed = 1, 8 do  -- The report depends on whether thread 0 waits before
                        -- or after the write.
      what, text = stores(function(tid)
        arch.sync_threads()  -- the store has started, but is not complete
        first(tid, 1, function() arch.cp_async_bulk_wait_group(0, true) end)
      end, seed)
      assert.matches("^race ", what)
      if what == "race barrier" then
        seen = seen + 1
        assert.is_nil(text:find "wait_group")
      else
        assert.matches("cp_async_bulk_wait_group or .*then at a barrier", text)
      end
    end
    assert.is_true(seen > 0 and seen < 8)
    what, text = copies(function(tid)
      first(tid, 32, function() arch.cp_async_wait_group(0) end)
    end)
    assert.equal("race nil", what)
    assert.matches("put sync_threads%(%) between the two lines", text)
  end)

  it("names the smaller number if the group was left pending", function()
    local what, text = products(function()
      warpgroup.wait_group(1)
      arch.sync_threads()
    end)
    assert.equal("race pending", what)
    assert.matches("warpgroup.wait_group%(0%) waits for that group too", text)
    for n = 1, 3 do
      what, text = stores(function(tid)
        first(tid, 1, function() arch.cp_async_bulk_wait_group(n, true) end)
        arch.sync_threads()
      end)
      assert.equal("race pending", what)
      assert.matches("cp_async_bulk_wait_group%(0%) waits for that group", text)
      what, text = copies(function(tid)
        first(tid, 32, function() arch.cp_async_wait_group(n) end)
        arch.sync_threads()
      end)
      assert.equal("async-in-flight pending", what)
      assert.matches("cp_async_wait_group%(0%) waits for that group too", text)
      assert.matches("the preceding wait left " .. n .. " group", text)
    end
  end)

  it("says that a wait is only for the threads that started copies", function()
    local what, text = stores(function(tid)
      other(tid, 1, function() arch.cp_async_bulk_wait_group(0, true) end)
      arch.sync_threads()
    end)
    assert.equal("race issuer", what)
    assert.matches("a wait counts only for the threads that started the", text)
    what, text = copies(function(tid)
      other(tid, 32, function() arch.cp_async_wait_group(0) end)
      arch.sync_threads()
    end)
    assert.equal("async-in-flight issuer", what)
    assert.matches("a wait counts only for the threads that started the", text)
  end)

  -- Thread 0 stores y by a bulk copy, waits, and sets a flag. Another warp of
  -- the block (or, with two blocks, another block) waits for the flag and reads
  -- y.
  local function told(blocks, read)
    return lack(function(y, f, z)
      local tid, block = arch.thread_idx(), arch.block_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64), 128)
      local atom = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.i32)
      local how = {sem = "acquire", scope = "gpu"}
      local function put()
        s[tid] = 100 + tid
        arch.fence_view_async_shared()
        arch.sync_threads()
        cute.when(tid:eq(0), function()
          cute.copy(atom, s, y)
          arch.cp_async_bulk_commit_group()
          arch.cp_async_bulk_wait_group(0, read)
          arch.fence_proxy("async")
          arch.store(f.iterator, 1, {sem = "release", scope = "gpu"})
        end)
      end
      local function get()
        cute.loop(function()
          return arch.load(f.iterator, cute.i32, how):eq(0)
        end, function() end)
        z[tid] = y[63 - tid]
      end
      if blocks == 2 then cute.when(block:eq(0), put, get)
      else
        put()
        cute.when(tid:ge(32), get)
      end
    end, {grid = blocks}, cute.zeros({64}, cute.i32), cute.zeros({1}, cute.i32),
      cute.zeros({64}, cute.i32))
  end

  it("says that a wait for reads does not wait for writes", function()
    for blocks, kind in ipairs {"async-in-flight", "block-race"} do
      local what, text = told(blocks, true)
      assert.equal(kind .. " read", what)
      assert.matches("cp_async_bulk_wait_group%(n, true%) waits only until "
        .. "the source is read", text)
      assert.is_nil((told(blocks, false)))
    end
  end)
end)

describe("advice on waits for groups", function()
  it("is not given if the waits are right", function()
    assert.is_nil((products(function()
      warpgroup.wait_group(0)
      arch.sync_threads()
    end)))
    assert.is_nil((stores(function()
      arch.cp_async_bulk_wait_group(0, true)
      arch.sync_threads()
    end)))
    assert.is_nil((copies(function()
      arch.cp_async_wait_group(0)
      arch.sync_threads()
    end)))
  end)
end)
-- SPDX-License-Identifier: MIT
