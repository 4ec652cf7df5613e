-- Tests notes on loops of which only the last iteration has an effect. Also
-- tests notes on lines that load several values of which only the last ones are
-- used.
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

local count = 0  -- numbers the kernels: a note is written once for each name

-- Runs a kernel f(x, y, t) of one warp, where x has 256 ones. Returns a word
-- for each note on loads: "lost" or "unused".
local function said(f, y)
  local x = cute.ones({256}, cute.f32)
  y = y or cute.zeros({32}, cute.f32)
  count = count + 1
  local list = support.told(function()
    local k = cute.kernel("k" .. count, function(X, Y)
      f(X, Y, arch.thread_idx())
    end)
    k(x, y):launch {grid = 1, block = 32, device = "sim:sm_90a"}
  end)
  local found = {}
  for _, text in ipairs(list) do
    if text:find "spec.lua:%d+: each iteration of the loop overwrites" then
      found[#found + 1] = "lost"
    elseif text:find "spec.lua:%d+: this line loads %d+ elements of 'X'" then
      found[#found + 1] = "unused"
    end
  end
  return found
end

local LOST, NONE = {"lost"}, {}

-- Runs a loop whose local s becomes next(s, value, i) in iteration i. Returns
-- the notes.
local function sum(next)
  return said(function(x, y, t)
    local s = 0.0
    for i in cute.range(8) do s = next(s, x[i * 32 + t], i) end
    y[t] = s
  end)
end

describe("a note tells of a loop of which the last iteration counts", function()
  it("that overwrites a local", function()
    assert.same(NONE, sum(function(s, v) return s + v end))
    assert.same(LOST, sum(function(_, v) return v end))
    assert.same(LOST, sum(function(_, v) return 0.0 + v * v end))
    -- no note: some iterations keep the previous value
    assert.same(NONE, sum(function(s, v) return cute.where(v:gt(2), v, s) end))
    assert.same(NONE, sum(function(s, v) return cute.max(s, v) end))
    -- no note: the loop loads nothing
    assert.same(NONE, sum(function(_, _, i) return i:to(cute.f32) end))
  end)

  -- Runs a loop that fills registers, shared memory or y, from which y is
  -- computed. Returns the notes.
  local function fills(make, at)
    return said(function(x, y, t)
      local s = make(y)
      for i in cute.range(4) do
        s[at(i, t)] = x[i * 32 + t] * 2
        s[at(i, t)] = s[at(i, t)] + x[i * 32 + t + 128]
      end
      if s ~= y then
        arch.sync_threads()
        y[t] = s[at(0, t)]
      end
    end, cute.zeros({128}, cute.f32))
  end

  it("that overwrites registers and shared memory", function()
    local function registers() return cute.make_rmem_tensor({4}, cute.f32) end
    local function shared() return cute.make_smem_tensor(cute.f32, 128) end
    assert.same(LOST, fills(registers, function() return 1 end))
    assert.same(LOST, fills(shared, function(_, t) return t end))
    assert.same(NONE, fills(shared, function(i, t) return i * 32 + t end))
  end)

  it("that stores to the same elements of an output", function()
    local function stores(at)
      return said(function(x, y, t)
        for i in cute.range(4) do y[at(i, t)] = x[i * 32 + t] end
      end, cute.zeros({128}, cute.f32))
    end
    assert.same(LOST, stores(function(_, t) return t end))
    assert.same(NONE, stores(function(i, t) return i * 32 + t end))
    -- no note: only some iterations store
    assert.same(NONE, said(function(x, y, t)
      for i in cute.range(4) do
        local v = x[i * 32 + t]
        cute.when(v:gt(2), function() y[t] = v end)
      end
    end))
    assert.same(NONE, said(function(x, y, t)
      for i in cute.range(4) do
        arch.atomic_add(y.iterator + t, x[i * 32 + t])
      end
    end))
  end)

  it("that resets a sum of an inner loop", function()
    local function nested(reset)
      return said(function(x, y, t)
        local s = 0.0
        for i in cute.range(4) do
          if reset then s = 0.0 end
          for j in cute.range(2) do s = s + x[i * 64 + j * 32 + t] end
        end
        y[t] = s
      end)
    end
    assert.same(LOST, nested(true))
    assert.same(NONE, nested(false))
  end)

  it("but not of one that ends early, or keeps the loads for the next",
     function()
    assert.same(NONE, said(function(x, y, t)
      local v, i = cute.var(0.0, cute.f32), cute.var(0, cute.i32)
      cute.loop(function() return i.value:lt(8) & v.value:lt(1) end, function()
        v.value = x[i.value * 32 + t]
        i.value = i.value + 1
      end)
      y[t] = v.value
    end))
    assert.same(NONE, said(function(x, y, t)
      local now, s = x[t], 0.0
      for i in cute.range(7) do
        s = s + now
        now = x[(i + 1) * 32 + t]
      end
      y[t] = s + now
    end))
    -- no note: the loop has a single iteration
    assert.same(NONE, said(function(x, y, t)
      local s = 0.0
      for i in cute.range(1) do s = x[i * 32 + t] end
      y[t] = s
    end))
  end)
end)

it("no note tells of a loop whose tiles another warp reads between barriers",
   function()
  local X, Y = cute.ones({256}, cute.f32), cute.zeros({32}, cute.f32)
  local k = cute.kernel("handed_over", function(x, y)
    local t = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, 32)
    cute.when(t:lt(32), function()
      for i in cute.range(8) do
        cute.when(cute.gt(i, 0), function() arch.barrier(2, 64) end)
        s[t] = x[i * 32 + t]
        arch.barrier_arrive(1, 64)
      end
    end, function()
      local all = 0.0
      for i in cute.range(8) do
        arch.barrier(1, 64)
        all = all + s[t - 32]
        cute.when(cute.lt(i, 7), function() arch.barrier_arrive(2, 64) end)
      end
      y[t - 32] = all
    end)
  end)
  assert.same({}, support.told(function()
    k(X, Y):launch {grid = 1, block = 64, device = "sim"}
  end))
  assert.equal(8, Y[31])
end)

it("a note tells of an unrolled loop that overwrites what it loads", function()
  local function unrolled(first, last, next)
    return said(function(x, y, t)
      local s = 0.0
      for i = first, last do s = next(s, x[i * 32 + t], i) end
      y[t] = s
    end)
  end
  assert.same({"unused"}, unrolled(0, 7, function(_, v) return v + 1 end))
  assert.same(NONE, unrolled(0, 7, function(s, v) return s + v end))
  -- no note: the loads of all iterations are one load of a vector
  assert.same(NONE, unrolled(0, 3, function(s, v, i)
    return i < 1 and v or s
  end))
end)

describe("no note tells of a loop", function()
  it("whose stores other warps read between named barriers", function()
    local list = support.told(function()
      cute.kernel("handshake", function(x, y)
        local tid = arch.thread_idx()
        local s = cute.make_smem_tensor(cute.f32, 32)
        cute.when(tid:lt(32), function()
          for k in cute.range(4) do
            cute.when(k:gt(0), function() arch.barrier(2, 64) end)
            s[tid] = x[k * 32 + tid]
            arch.barrier_arrive(1, 64)
          end
        end, function()
          local total = 0.0
          for k in cute.range(4) do
            arch.barrier(1, 64)
            total = total + s[tid - 32]
            cute.when(k:lt(3), function() arch.barrier_arrive(2, 64) end)
          end
          y[tid - 32] = total
        end)
      end)(cute.ones({128}, cute.f32), cute.zeros({32}, cute.f32))
        :launch {grid = 1, block = 64, device = "sim"}
    end)
    assert.same({}, list)
  end)
end)
-- SPDX-License-Identifier: MIT
