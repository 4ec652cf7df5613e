-- Tests estimates. Counted bytes are compared with the bytes that are
-- necessary, and times with those computed by hand for simple kernels. The
-- model must rank many GEMMs as the times measured on an H200 do.
local assert = require "luassert"
local cute = require "cute"
local gemms = require "spec.gemms"
local support = require "spec.support"
local cards = require "cutelua.profile.cards"

local H200 = cards.card "h200"
-- registers per thread; because they are given, the estimate needs no compiler
local REGISTERS = 64

local function zeros(n, dtype) return cute.zeros({n}, dtype or cute.f32) end

local function estimate(k, grid, block, more, ...)
  local o = {grid = grid, block = block, registers = REGISTERS}
  for name, v in pairs(more or {}) do o[name] = v end
  return k(...):estimate(o)
end

-- Returns the cycles that the model estimates for `warps` warps of n FMAs each.
-- With `chain`, each FMA depends on the one before; otherwise there are eight
-- independent chains.
local function cycles(n, warps, chain)
  local k = cute.kernel("sums", function(Y, x)
    local t, acc = cute.arch.thread_idx(), {}
    for i = 1, 8 do acc[i] = t:to(cute.f32) + i end
    for i = 1, n do
      local j = chain and 1 or i % 8 + 1
      acc[j] = acc[j] * x
    end
    local sum = acc[1]
    for i = 2, 8 do sum = sum + acc[i] end
    Y[t] = sum
  end)
  return estimate(k, 1, 32 * warps, nil, zeros(32 * warps), 3.0).cycles
end

describe("an estimate", function()
  it("counts operations and bytes", function()
    local n = 1 << 14
    local axpy = cute.kernel("axpy", {fmad = true}, function(X, Y, a)
      local i = cute.arch.block_idx() * 128 + (cute.arch.thread_idx())
      Y[i] = a * X[i] + Y[i]
    end)
    local e = estimate(axpy, n // 128, 128, {cold = true}, zeros(n), zeros(n),
                       2.0)
    assert.equal(2.0 * n, e.flops)
    assert.equal(3 * 4 * n, e.bytes.l2)
    assert.equal(0, e.bytes.shared)
    assert.equal(2 * 4 * n, e.bytes.dram)  -- each tensor is transferred once
  end)

  it("counts operations of tensor cores", function()
    local g = gemms.list[1]
    local a, b, c = gemms.layouts(g, 256, 384, 192)
    local function tensor(l)
      return cute.make_tensor(zeros(cute.cosize(l), cute.bf16).iterator, l)
    end
    local p = g.make(tensor(a), tensor(b), tensor(c), {device = "sim"})
    local e = p:estimate {registers = 200}
    assert.equal(2.0 * 256 * 384 * 192, e.flops)
    local report = p:launch()
    assert.equal(report:total "wavefronts" * 128, e.bytes.shared)
    assert.equal(report:total "sectors" * 32, e.bytes.l2)
  end)

  it("models hits in L1", function()
    local function reads(at)
      local k = cute.kernel("reads", function(X, Y)
        local t = cute.arch.thread_idx()
        local sum = X[at(t, 0)]
        for i = 1, 7 do sum = sum + X[at(t, i)] end
        Y[t] = sum
      end)
      local e = estimate(k, 1, 64, nil, zeros(4096), zeros(64))
      return e.bytes.l2 - 64 * 4
    end
    -- In the first kernel, both warps read the same 128 bytes eight times. In
    -- the second one, each read of a warp reads other bytes.
    assert.equal(128, reads(function(t) return t % 32 end))
    assert.equal(8 * 256, reads(function(t, i) return t + 64 * i end))
  end)

  it("waits for results", function()
    local each = H200.alu + 1
    assert.near(400 * each, cycles(800, 1, true) - cycles(400, 1, true), 1)
    -- The four warps of each scheduler hide each other's latency.
    assert.near(400 * each, cycles(800, 16, true) - cycles(400, 16, true), 20)
  end)

  it("issues one instruction of a quarter at a time", function()
    assert.near(400, cycles(800, 1) - cycles(400, 1), 1)
    assert.near(400 * 2, cycles(800, 8) - cycles(400, 8), 20)
    assert.near(400 * 8, cycles(800, 32) - cycles(400, 32), 20)
  end)

  it("models waits at barriers", function()
    local function run(n, m, named)
      local k = cute.kernel("meet", function(Y, x)
        local t = cute.arch.thread_idx()
        local acc = cute.var(t:to(cute.f32))
        local function sums(many)
          local v = acc:get()
          for _ = 1, many do v = v * x end
          acc:set(v)
        end
        cute.when(t:lt(32), function() sums(n) end, function() sums(m) end)
        if named then cute.arch.sync_threads() end
        cute.when(t:lt(32), function() sums(m) end, function() sums(n) end)
        Y[t] = acc:get()
      end)
      return estimate(k, 1, 64, nil, zeros(64), 3.0).cycles
    end
    local each = H200.alu + 1
    local apart, together = run(600, 100, false), run(600, 100, true)
    -- without a barrier, each warp executes 600 + 100 operations; with one,
    -- each part takes as long as the slower warp's 600
    assert.near((2 * 600 - 700) * each + H200.barrier, together - apart, 30)
  end)

  it("brings memory no faster than there is #long", function()
    local n = 1 << 24
    local copy = cute.kernel("copy", function(X, Y)
      local i = cute.arch.block_idx() * 1024 + cute.arch.thread_idx() * 4
      local function four(T)
        return cute.make_tensor(T.iterator + i, cute.make_layout {4})
      end
      cute.autovec_copy(four(X), four(Y))
    end)
    local X = cute.zeros({n}, cute.f32)
    X = cute.make_tensor(X.iterator, cute.make_layout {n})
    local Y = cute.zeros({n}, cute.f32)
    local e = estimate(copy, n // 1024, 256, nil, X, Y)
    assert.near(2 * 4 * n / H200.dram, e.seconds, 0.15 * e.seconds)
    assert.equal("memory", e.bound)
  end)
end)

describe("an estimate", function()
  it("models one block, which may be chosen", function()
    local k = cute.kernel("more", function(Y)
      local b, t = cute.arch.block_idx(), cute.arch.thread_idx()
      local sum = cute.var(t:to(cute.f32))
      for _ in cute.range(b * 100) do sum:set(sum:get() * 3) end
      Y[b * 32 + t] = sum:get()
    end)
    local function of(at)
      return estimate(k, 8, 32, {at = at}, zeros(256)).cycles
    end
    local each = H200.alu + 1
    assert.near(300 * (each + 0), of(6) - of(3), 1200)
    assert.is_true(of(7) > of(0) + 700 * H200.alu)
  end)

  it("looks at the last block, too: a grid beyond the data", function()
    local function copy(guarded)
      return cute.kernel("copy", function(x, y)
        local i = cute.arch.block_idx() * 64 + cute.arch.thread_idx()
        if not guarded then y[i] = x[i] return end
        cute.when(i:lt(cute.size(x)), function() y[i] = x[i] end)
      end)
    end
    local NOTE = "note: the last of 5 clusters moves no data: is the grid "
      .. "larger than the data?"
    local function of(k, grid)
      return estimate(k, grid, 64, nil, zeros(256), zeros(256))
    end
    assert.truthy(tostring(of(copy(true), 5)):find(NOTE, 1, true))
    assert.is_nil(tostring(of(copy(true), 4)):find("note:", 1, true))
    assert.is_nil(tostring(of(copy(false), 4)):find("note:", 1, true))
    local ok, why = pcall(of, copy(false), 5)
    assert.is_false(ok)
    assert.matches("the launch has a fault .*read outside global tensor "
      .. "'x'", why)
  end)

  it("runs a launch twice, with the second one not dependent", function()
    local add = cute.kernel("add", function(x, y)  -- no griddepcontrol_wait
      local t = cute.arch.thread_idx()
      y[t] = y[t] + x[t]
    end)
    local function cycles_of(pdl, grid)
      return estimate(add, grid, 32, {pdl = pdl, device = "sim:sm_90a"},
                      zeros(32), zeros(32)).cycles
    end
    assert.equal(cycles_of(false, 1), cycles_of(true, 1))
  end)

  it("plays a launch twice with the memory of the first", function()
    -- The loop has c[0] iterations, and the kernel doubles c[0]. When the model
    -- runs the launch again, it must see the original value.
    local function cycles_of(writes)
      local k = cute.kernel("k", function(c, d, y)
        local t = cute.arch.thread_idx()
        for i in cute.range(c[0]) do y[t] = y[t] + i end
        local out = writes and c or d
        out[0] = 2 * c[0]
      end)
      local c = cute.tensor({100}, cute.i32)
      local e = estimate(k, 1, 1, {cold = true}, c, zeros(1, cute.i32),
                         zeros(32, cute.i32))
      assert.equal(100, c(0))
      return e.cycles
    end
    assert.is_true(math.abs(cycles_of(true) / cycles_of(false) - 1) < 0.1)
  end)

  it("has a last wave", function()
    local k = cute.kernel("one", function(Y) Y[cute.arch.block_idx()] = 1 end)
    local function waves(blocks)
      local e = estimate(k, blocks, 1024, {registers = 32}, zeros(blocks))
      return e.waves, e.tail, e.occupancy.blocks
    end
    assert.same({1.0, 1.0, 2}, {waves(264)})
    assert.same({1.5, 0.5, 2}, {waves(396)})
  end)

  it("reports that an empty kernel does nothing", function()
    local e = estimate(cute.kernel("none", function(_) end), 1, 32, nil,
                       zeros(4))
    assert.equal("launch", e.bound)
    local text = tostring(e)
    assert.is_nil(text:find("nan", 1, true), text)
    assert.is_truthy(text:find("busy: nothing", 1, true), text)
    assert.near(H200.launch, e.seconds, 1e-8)
  end)

  it("counts named barriers with given registers", function()
    local k = cute.kernel("b", function(Y, i)
      cute.arch.barrier {barrier_id = i[0], number_of_threads = 32}
      Y[cute.arch.thread_idx()] = 1
    end)
    local e = estimate(k, 1, 32, {registers = 16}, zeros(32),
                       cute.full({1}, 3, cute.i32))
    assert.same({4, {"barriers"}}, {e.occupancy.blocks, e.occupancy.by})
  end)

  it("has a wave more of clusters that do not fit", function()
    local k = cute.kernel("one", function(Y)
      local s = cute.make_smem_tensor(cute.u8, cute.make_layout {200 << 10})
      s[cute.arch.thread_idx()] = 1
      Y[cute.arch.block_idx()] = 1
    end)
    local function waves(blocks, cluster)
      return estimate(k, blocks, 32, {cluster = cluster, registers = 32},
                      zeros(blocks)).waves
    end
    assert.same({1.0, 1.0, 33 / 30, 16 / 15}, {waves(132), waves(132, 2),
      waves(132, 4), waves(128, 8)})
  end)
end)

describe("an estimate", function()
  it("leaves tensors unchanged", function()
    local k = cute.kernel("write", function(Y)
      Y[cute.arch.thread_idx()] = 1
    end)
    local Y = cute.full({64}, 7, cute.f32)
    estimate(k, 1, 64, nil, Y)
    for i = 0, 63 do assert.equal(7, Y(i)) end
    -- The estimate must leave unwritten memory marked as unwritten.
    local E, Z = cute.empty({64}, cute.f32), zeros(64)
    estimate(k, 1, 64, nil, E)
    local read = cute.kernel("read", function(X, O)
      O[cute.arch.thread_idx()] = X[cute.arch.thread_idx()]
    end)
    local report = support.report(read(E, Z):launch {grid = 1, block = 64,
      device = "sim", faults = "return"})
    assert.equal("uninitialised", report.reports[1].kind)
  end)

  it("reports by lines, in words", function()
    local e = estimate(cute.kernel("words", function(X, Y)
      local t = cute.arch.thread_idx()
      Y[t] = X[t] + X[t]
    end), 1, 64, nil, zeros(64), zeros(64))
    local text = tostring(e)
    assert.is_truthy(text:find(
      "kernel words on H200: ", 1, true), text)
    assert.is_truthy(text:find("blocks of an SM: 16, limited by registers "
      .. "(registers 16, shared 228, threads 32, blocks 32)", 1, true), text)
    assert.is_truthy(text:find("estimate_spec%.lua:%d+ "), text)
    local flops = 0
    for _, line in ipairs(e.lines) do flops = flops + line.flops end
    assert.equal(64.0, flops)
  end)
end)

describe("an estimate's memory", function()
  it("is that of a GPU, whatever the host allocated", function()
    local two = cute.kernel("two", function(x, y, z)
      local t = cute.arch.thread_idx()
      for _ = 1, 2 do
        for i in cute.range(0, 64) do
          z[t] = z[t] + x[i * 128 + t] + y[i * 128 + t]
        end
      end
    end)
    local first, held = nil, {}
    for i = 1, 4 do
      local x = cute.zeros({8192}, cute.f32)
      held[i] = cute.zeros({i * 1777}, cute.f32)
      local y, z = cute.zeros({8192}, cute.f32), cute.zeros({128}, cute.f32)
      local e = two(x, y, z):estimate {grid = 1, block = 128, card = "h200"}
      first = first or e.cycles
      assert.equal(first, e.cycles)
    end
    assert.equal(4, #held)
  end)
end)

describe("an estimate for Blackwell", function()
  local gemm_sm100 = require "kernels.gemm_sm100"

  -- Returns the estimate of a product of n x n matrices of a type.
  local function product(name, n, card)
    local dtype = cute[name]
    local d = dtype.is_integer and cute.i32 or cute.f32
    local function matrix(t)
      return cute.make_tensor(zeros(n * n, t).iterator,
                              cute.make_layout({n, n}, {n, 1}))
    end
    local g = gemm_sm100 {tile = {128, 128, 1024 // dtype.bits}, dtype = dtype,
                          d_dtype = d}
    return g.prepare(matrix(dtype), matrix(dtype), matrix(d),
      {device = "sim:sm_100a", output = false})
      :estimate {card = card, registers = REGISTERS}
  end

  -- the published rates in PFLOP/s, and the card
  for _, c in ipairs {{"bf16", 2.25}, {"f32", 1.125}, {"e4m3", 4.5},
                      {"i8", 4.5}, {"bf16", 2.25, "b300"}} do
    it(("has the tensor cores' rate of %s on %s"):format(c[1], c[3] or "b200"),
       function()
      local e = product(c[1], 256, c[3])
      assert.equal(2.0 * 256 ^ 3, e.flops)
      local roof = 2 * 256 ^ 3 / (c[2] * 1e15)
      assert.is_true(math.abs(e.roof.tensor / roof - 1) < 0.01)
    end)
  end

  it("is of the launch's card, and says that it is unmeasured", function()
    local e = product("bf16", 128)
    assert.equal("B200", e.card)
    assert.is_true(e.unmeasured)
    assert.matches("note: rates of B200 are public figures", tostring(e))
  end)

  it("waits at commits until the MMAs before them have ended", function()
    local one, four = product("bf16", 128), product("bf16", 512)
    -- K has 2 or 8 steps. A block needs 256 cycles for each of the 6
    -- additional steps of a tile.
    local least = 6 * 128 * 128 * 64 / 4096
    assert.is_true(four.cycles - one.cycles > least)
    assert.is_true(four.cycles - one.cycles < 8 * least)
  end)
end)

describe("an estimate rejects", function()
  local k = cute.kernel("k", function(Y) Y[cute.arch.thread_idx()] = 1 end)
  local function refused(text, o, Y)
    o.block, o.grid = o.block or 32, 1
    local ok, err = pcall(function() return k(Y or zeros(32)):estimate(o) end)
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find(text, 1, true), tostring(err))
  end

  it("cards that it does not know", function()
    refused("registers = 0: a thread has 1 to 255", {registers = 0})
    refused('no card "h20"; known cards: a100 b200 b300 h100 h200 l40s rtx5090',
            {card = "h20"})
  end)

  it("options that are none", function()
    refused("no option 'crad'", {crad = "h200"})
    refused("card of 7: a string is needed", {card = 7})
  end)

  it("clusters that are not there", function()
    refused("at = 1: the grid has 1 clusters, counted from 0", {at = 1})
  end)

  it("kernels at fault", function()
    refused("the launch has a fault", {block = 64,
      registers = 32})
  end)

  it("blocks that fit no SM", function()
    refused("a block of 1024 threads, 128 registers each", {block = 1024,
      registers = 128}, zeros(1024))
  end)

  it("features that the GPU lacks", function()
    local cluster = cute.kernel("c", function(Y)
      cute.arch.cluster_arrive()
      cute.arch.cluster_wait()
      Y[cute.arch.thread_idx()] = 1
    end)
    local ok, err = pcall(function()
      return cluster(zeros(32)):estimate {grid = 1, block = 32, card = "a100"}
    end)
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find("sm_80", 1, true), tostring(err))
  end)
end)

-- Returns the ranks of numbers; equal numbers share their mean rank.
local function ranks(list)
  local out = {}
  for i, x in ipairs(list) do
    local below, same = 0, 0
    for _, y in ipairs(list) do
      if y < x then below = below + 1 elseif y == x then same = same + 1 end
    end
    out[i] = below + (same + 1) / 2
  end
  return out
end

-- Returns Spearman's rank correlation.
local function spearman(x, y)
  local n, a, b = #x, ranks(x), ranks(y)
  local mean, ab, aa, bb = (n + 1) / 2, 0, 0, 0
  for i = 1, n do
    local p, q = a[i] - mean, b[i] - mean
    ab, aa, bb = ab + p * q, aa + p * p, bb + q * q
  end
  return ab / math.sqrt(aa * bb)
end

describe("the ranking of GEMM variants #long", function()
  -- Returns the measurements of products of n^3 in docs/measured/gemm_ways.tsv,
  -- by name: {us =, registers =}.
  local function measured(n)
    local out = {}
    for line in io.lines "docs/measured/gemm_ways.tsv" do
      local name, m, us, registers = line:match
        "^([^#\t]+)\t(%d+)\t%d+\t%d+\t([%d.]+)\t[%d.]+\t(%d+)$"
      if name and tonumber(m) == n then
        out[name] = {us = tonumber(us), registers = math.tointeger(registers)}
      end
    end
    return out
  end

  local n = 2048
  local x, y, kind = {}, {}, {}
  setup(function()
    local real = measured(n)
    for i, g in ipairs(gemms.list) do
      local a, b, c = gemms.layouts(g, n, n, n)
      local function tensor(l)
        local t = cute.zeros({cute.cosize(l)}, cute.bf16)
        return cute.make_tensor(t.iterator, l)
      end
      local p = g.make(tensor(a), tensor(b), tensor(c), {device = "sim"})
      local e = p:estimate {registers = real[g.name].registers}
      x[i], y[i], kind[i] = e.seconds * 1e6, real[g.name].us,
        g.name:match "^%a+"
    end
  end)

  it("is an H200's: Spearman of 0.9 or more, of 41", function()
    assert.equal(41, #x)
    assert.is_true(spearman(x, y) >= 0.9, spearman(x, y))
  end)

  it("agrees for mma.sync, and for wgmma", function()
    for _, k in ipairs {"mma", "wgmma"} do
      local p, q = {}, {}
      for i = 1, #x do
        if kind[i] == k then p[#p + 1], q[#q + 1] = x[i], y[i] end
      end
      assert.is_true(#p >= 16 and spearman(p, q) >= 0.8, spearman(p, q))
    end
  end)

  it("leaves a tuner the best in its first fifth", function()
    local at, best = {}, math.huge
    for i = 1, #x do at[i], best = i, math.min(best, y[i]) end
    table.sort(at, function(i, j) return x[i] < x[j] end)
    local found = math.huge
    for i = 1, #x // 5 do found = math.min(found, y[at[i]]) end
    assert.is_true(found <= 1.03 * best, found / best)
  end)

  it("comes with times that are near", function()
    local sum = 0
    for i = 1, #x do sum = sum + math.log(x[i] / y[i]) ^ 2 end
    assert.is_true(math.sqrt(sum / #x) < 0.2, math.sqrt(sum / #x))
  end)
end)
-- SPDX-License-Identifier: MIT
