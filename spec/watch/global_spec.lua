-- Tests global memory that threads of one block, or blocks of one cluster,
-- share. As in shared memory, a missing barrier must be reported whatever the
-- schedule. With the barrier there must be no report.
local cute = require "cute"
local order = require "spec.watch.order"
local seeds = require "spec.seeds"
local arch, _ = cute.arch, cute._
local found, line, warp, lane0 = order.found, order.line, order.warp,
  order.lane0

local function zeros(n, dtype) return cute.zeros({n}, dtype or cute.i32) end

local function nothing() end

-- Runs f(meet, x, y) in a block of n threads, twice. If `meet` does nothing,
-- there must be a fault of this kind at the two lines that f returns. If `meet`
-- is `sync`, there must be no report.
local function needs(sync, kind, n, f, ...)
  local at
  local args = {...}
  local function kernel(meet)
    return function(...) at = f(meet, ...) end
  end
  local text = found(kernel(nothing), n, table.unpack(args))
  assert.equal(("%s %d %d"):format(kind, at[1], at[2]), text)
  assert.equal("", (found(kernel(sync), n, table.unpack(args))))
end

describe("one block in global memory", function()
  it("reads what another warp stored", function()
    local function turned(meet, x, y)
      local t, a = arch.thread_idx(), line() + 1
      x[t] = t
      meet()
      y[t] = x[(t + 96) % 128]
      return {a, a + 2}
    end
    local x, y = zeros(128), zeros(128)
    needs(arch.sync_threads, "race", 128, turned, x, y)
    for t = 0, 127 do assert.equal((t + 96) % 128, y[t]) end
    for _, dtype in ipairs {cute.bf16, cute.i8, cute.f64} do
      needs(arch.sync_threads, "race", 128, function(meet, a, b)
        local t, at = arch.thread_idx(), line() + 1
        a[t] = t:to(dtype)
        meet()
        b[t] = a[(t + 96) % 128]
        return {at, at + 2}
      end, zeros(128, dtype), zeros(128, dtype))
    end
  end)

  it("shifts in place", function()
    needs(arch.sync_threads, "race", 64, function(meet, x)
      local t, a = arch.thread_idx(), line() + 1
      local v = x[(t + 32) % 64]
      meet()
      x[t] = v
      return {a, a + 2}
    end, zeros(64))
    needs(arch.sync_warp, "warp-race", 32, function(meet, x)
      local t, a = arch.thread_idx(), line() + 1
      local v = x[t + 1]
      meet()
      x[t] = v
      return {a, a + 2}
    end, zeros(33))
  end)

  it("copies vectors", function()
    needs(arch.sync_threads, "race", 64, function(meet, x, y)
      local t = arch.thread_idx()
      local vx = cute.zipped_divide(x, {4})
      local vy = cute.zipped_divide(y, {4})
      local a = line() + 1
      cute.autovec_copy(vy(_, t), vx(_, t))
      meet()
      cute.autovec_copy(vx(_, 63 - t), vy(_, t))
      return {a, a + 2}
    end, zeros(256, cute.f32), zeros(256, cute.f32))
  end)

  it("counts without an atomic", function()
    local at
    local text = found(function(x)
      at = line() + 1
      x[0] = x[0] + 1
    end, 64, zeros(1))
    assert.equal(("race %d %d"):format(at, at), text)
    assert.equal("", (found(function(x)
      arch.atomic_add(x.iterator, 1)
    end, 64, zeros(1))))
  end)

  it("two warps store two values at one place, or the same", function()
    local at
    assert.equal("", (found(function(x) x[0] = 7 end, 128, zeros(1))))
    local text = found(function(x)
      at = line() + 1
      x[0] = arch.warp_idx()
    end, 128, zeros(1))
    assert.equal(("race %d %d"):format(at, at), text)
    assert.equal("", (found(function(x)
      local s = order.smem(1)
      s[0] = 7
      arch.sync_threads()
      x[0] = s[0]
    end, 128, zeros(1))))
  end)

  it("a thread that stored the same value may read it", function()
    local function kernel(all)
      return function(x, y)
        cute.when(all or arch.warp_idx():lt(2), function() x[0] = 7 end)
        y[arch.thread_idx()] = x[0]
      end
    end
    assert.equal("", (found(kernel(true), 128, zeros(1), zeros(128))))
    assert.matches("^race %d+ %d+$",
                   found(kernel(false), 128, zeros(1), zeros(128)))
  end)
end)

describe("one block in global memory", function()
  it("passes data by flags, one for each lane", function()
    local ACQ, REL = order.ACQ, order.REL
    local function kernel(waits)
      return function(x, f, y)
        local t = arch.thread_idx()
        cute.when(t:lt(2), function() f[t] = 0 end)
        arch.sync_threads()
        warp(0, function()
          x[t] = t
          arch.sync_warp()
          lane0(function() arch.store(f.iterator, 1, REL) end)
        end)
        warp(1, function()
          lane0(function() arch.store(f.iterator + 1, 1, REL) end)
        end)
        warp(2, function()
          order.poll(f.iterator + waits, 1, ACQ)
          y[t] = x[t - 64]
        end)
      end
    end
    local function args() return zeros(32), zeros(2), zeros(96) end
    assert.equal("", (found(kernel(0), 96, args())))
    assert.matches("^race %d+ %d+$", (found(kernel(1), 96, args())))
  end)

  it("elements of half a byte", function()
    local at
    local function kernel(meet)
      return function(x, y)
        local t = arch.thread_idx()
        at = line() + 1
        x[t] = 3
        meet()
        y[t] = x[(t + 32) % 64]:to(cute.i32)
      end
    end
    assert.equal("", (found(kernel(arch.sync_threads), 64, zeros(64, cute.i4),
                            zeros(64))))
    assert.equal(("race %d %d"):format(at, at + 2),
      (found(kernel(nothing), 64, zeros(64, cute.i4), zeros(64))))
  end)

  it("names the element by its coordinate", function()
    local k = cute.kernel("k", function(x)
      cute.when(arch.lane_idx():eq(5), function()
        x[{2, 3}] = arch.warp_idx()
      end)
    end)
    local r = require "spec.support".report(k(cute.zeros({4, 8}, cute.i32))
      :launch {grid = 1, block = 64, device = "sim", faults = "return"})
    local f = r.reports[1]
    assert.equal("two warps write one element with no barrier in between: "
      .. "element 19 of global tensor 'x'", f.message)
    assert.equal("(2,3)", f.coord)
  end)
end)

describe("stores of one value", function()
  local WHERE = {
    {"lanes", {block = 32}, arch.lane_idx, "warp-race"},
    {"lanes, shared", {block = 32}, arch.lane_idx, "warp-race", true},
    {"warps", {block = 64}, arch.warp_idx, "race"},
    {"warps, shared", {block = 64}, arch.warp_idx, "race", true},
    {"blocks of a cluster", {grid = 2, cluster = 2, block = 1}, arch.block_idx,
     "race"},
    {"blocks", {grid = 2, block = 1}, arch.block_idx, "block-race"},
    {"blocks by turns", {grid = 2, block = 1}, arch.block_idx, "block-race",
     false, true}}
  for _, w in ipairs(WHERE) do
    it("are no race, others are: " .. w[1], function()
      local _, opts, who, kind, shared, turns = table.unpack(w)
      opts.grid = opts.grid or 1
      for _, same in ipairs {true, false} do
        local r = seeds.with(opts)(function(x, y)
          local s = cute.make_smem_tensor(cute.i32, cute.make_layout {4}, 16)
          local to = shared and s or x
          to[0] = same and 7 or (who())
          if turns then
            y[0] = arch.load(y.iterator + 1, nil, {sem = "acquire"}) * 0
          end
          arch.sync_threads()
          if shared then x[arch.thread_idx()] = s[0] end
        end, {}, zeros(64), zeros(2))
        assert.equal(same, r.ok, tostring(r))
        if not same then assert.equal(kind, r.reports[1].kind) end
      end
    end)
  end
end)

describe("a block that goes through much global memory", function()
  -- Launches a block that copies the tiles of x one after the other. In tile
  -- `bad`, each thread reads another warp's element without a barrier.
  local N, TILES = 128, 1200
  local function run(bad, met)
    local launch = seeds.with {grid = 1, block = N}
    return launch(function(x, y)
      local t = arch.thread_idx()
      for i in cute.range(TILES) do
        x[i * N + t] = i
        cute.when(cute.ne(i, bad), function() arch.sync_threads() end)
        y[i * N + t] = x[i * N + (t + 32) % N]
        if met then arch.sync_threads() end
      end
    end, {}, zeros(N * TILES), zeros(N * TILES))
  end

  it("drops the history of accesses that all threads know", function()
    local r = run(-1, true)
    assert.is_true(r.ok, tostring(r))
    assert.is_true(r.granules <= 1 << 17, r.granules)
    assert.is_true(2 * N * TILES > 1 << 18)
  end)

  it("gets reports of late faults", function()
    local r = run(TILES - 2, true)
    assert.equal("race", r.reports[1].kind)
    assert.matches("'x'", r.reports[1].message)
  end)
end)

describe("blocks of a cluster in global memory", function()
  local launch = seeds.with {grid = 2, cluster = 2, block = 32}

  it("need their barrier", function()
    local function kernel(meet)
      return function(x, y)
        local t, b = arch.thread_idx(), arch.block_idx()
        x[b * 32 + t] = t
        meet()
        y[b * 32 + t] = x[(1 - b) * 32 + t]
      end
    end
    local function run(meet)
      return launch(kernel(meet), {}, zeros(64), zeros(64))
    end
    local r = run(nothing)
    assert.equal("race", r.reports[1].kind)
    assert.matches("^read of an element that a thread of another block writes, "
      .. "with nothing that orders them at cluster scope: element %d+ of "
      .. "global tensor 'x'$",
      r.reports[1].message)
    assert.is_true(run(function()
      arch.cluster_arrive()
      arch.cluster_wait()
    end).ok)
  end)

  -- Returns the reports of a kernel in which block 0 passes x[0] to block 1 by
  -- a flag. `store` and `load` are the options of the flag's store and load.
  -- `before` is called before the store, and `behind` after the load.
  local function handed(store, load, before, behind)
    local r = launch(function(x, flag)
      local t, b = arch.thread_idx(), arch.block_idx()
      cute.when(t:eq(0), function()
        cute.when(b:eq(0), function()
          x[0] = 1
          if before then before() end
          arch.store(flag.iterator, 1, store)
        end, function()
          cute.loop(function()
            return arch.load(flag.iterator, nil, load):lt(1)
          end, nothing)
          if behind then behind() end
          x[1] = x[0]
        end)
      end)
    end, {}, zeros(2), zeros(1))
    local n = 0
    for _, f in ipairs(r.reports) do
      assert.equal("race", f.kind)
      n = n + (f.message:find "'x'" and 1 or 0)
    end
    return n
  end

  it("pass data by releases and acquires of cluster scope or wider", function()
    local scopes = {"cta", "cluster", "gpu"}
    for a, from in ipairs(scopes) do
      for b, to in ipairs(scopes) do
        local told = (a == 1 or b == 1) and 1 or 0
        assert.equal(told, handed({sem = "release", scope = from},
          {sem = "acquire", scope = to}), from .. " " .. to)
        local how = {sem = "relaxed", scope = "gpu"}
        assert.equal(told, handed(how, how, arch["fence_acq_rel_" .. from],
          arch["fence_acq_rel_" .. to]), "fence " .. from .. " " .. to)
      end
    end
  end)

  it("count by atomics of cluster scope or wider", function()
    for scope, told in pairs {cta = true, cluster = false, gpu = false} do
      local r = launch(function(x)
        arch.atomic_add(x.iterator, 1, {sem = "relaxed", scope = scope})
      end, {}, zeros(1))
      assert.equal(told, not r.ok, scope)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
