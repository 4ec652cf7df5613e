-- Tests attention of one query on the simulator, against plain Lua. Cases:
-- heads that share keys in one tile, keys split among blocks, and sequence
-- lengths. The simulator must detect the removal of any wait or predicate.
local compiled = require "spec.kernels".compiled
local cute = require "cute"
local decode = require "kernels.attention_decode"
local oracle = require "spec.attention"
local support = require "spec.support"

-- Runs a problem with the keys divided into n parts. Returns the first report
-- that has a fault; otherwise the last report.
local function run(make, p, n, lengths, seed)
  local made = make {head = p.d, group = p.h // p.g, rows = p.s, least = 1}
  local blocks = made.plan(p.t, p.s, p.h, p.b)
  blocks.slots = blocks.slots - blocks.blocks + n
  blocks.blocks = n
  local parts = cute.full({blocks.slots, made.rows, p.d}, 0 / 0, cute.f32)
  local logs = cute.full({blocks.slots, made.rows}, 0 / 0, cute.f32)
  local report
  for _, k in ipairs(made) do
    report = support.report(k.kernel(p.Q, p.K, p.V, p.O, p.LSE, parts, logs,
      p.scale, lengths):launch {grid = k.grid(blocks, p.s, p.h, p.b),
      block = k.block, device = "sim:sm_80", faults = "return", seed = seed})
    if not report.ok then return report end
  end
  return report
end

local function check(o)
  local p = oracle.problem(o)
  local r = run(decode, p, o.n, nil, o.n)
  assert.is_true(r.ok, tostring(r))
  p.right = 0
  local out, lse = oracle.forward(p)
  assert.is_true(oracle.distance(p.O, out) < 6e-3)
  assert.is_true(select(2, oracle.distance(p.LSE, lse)) < 2e-6)
end

describe("attention of one query", function()
  for i, d in ipairs {32, 64, 96, 128, 192, 256} do
    it("is right with heads of " .. d .. support.long(i, 3), function()
      check {s = 1, t = 200, d = d, h = 4, g = 1, n = 2}
    end)
  end

  it("is right in any number of parts, of any size #long", function()
    for _, c in ipairs {{1, 1}, {1, 3}, {64, 1}, {300, 5}, {300, 9}} do
      check {s = 1, t = c[1], d = 32, n = c[2], h = 2, g = 2}
    end
  end)

  it("takes up to 64 heads together, and batches #long", function()
    check {b = 2, s = 1, t = 100, d = 32, h = 40, g = 2, n = 2}
    check {s = 1, t = 70, d = 64, h = 33, g = 1, n = 2, dtype = cute.f16}
  end)

  it("takes several rows of a sequence, in one tile or more #long", function()
    check {b = 2, s = 3, t = 100, d = 64, h = 4, g = 2, n = 3}
    check {s = 7, t = 90, d = 32, h = 30, g = 2, n = 4, dtype = cute.f16}
    check {s = 4, t = 4, d = 32, h = 2, g = 1, n = 2}
  end)

  it("takes lengths, and does not read beyond them #long", function()
    local lengths = {130, 1, 64}
    local p = oracle.problem {b = 3, s = 1, t = 200, d = 64, h = 2, g = 1}
    for b, n in ipairs(lengths) do
      for j = n, 199 do
        for d = 0, 63 do
          p.K[{b - 1, j, 0, d}], p.V[{b - 1, j, 0, d}] = 0 / 0, 0 / 0
        end
      end
    end
    assert.is_true(run(decode, p, 3, cute.tensor(lengths, cute.i32)).ok)
    for b, n in ipairs(lengths) do
      local one = setmetatable({b = 1, q = {}, k = {}, v = {}, t = n},
                               {__index = p})
      for i = 0, 2 * 64 - 1 do one.q[i] = p.q[(b - 1) * 128 + i] end
      for i = 0, n * 64 - 1 do
        one.k[i], one.v[i] = p.k[(b - 1) * 200 * 64 + i],
                             p.v[(b - 1) * 200 * 64 + i]
      end
      local out = oracle.forward(one)
      local got = cute.zeros({2, 64}, cute.bf16)
      for h = 0, 1 do
        for d = 0, 63 do got[{h, d}] = p.O(b - 1, 0, h, d) end
      end
      assert.is_true(oracle.distance(got, out) < 6e-3)
    end
  end)

  it("is right in all schedules", function()
    local p = oracle.problem {b = 2, s = 2, t = 80, d = 32, h = 2, g = 1}
    local made = decode {head = 32, group = 2, rows = 2, least = 1, pdl = true,
                         tile = {16, 16}}
    local parts = cute.zeros({3 + 2, 16, 32}, cute.f32)
    local logs = cute.zeros({3 + 2, 16}, cute.f32)
    for _, k in ipairs(made) do
      local v = k.kernel(p.Q, p.K, p.V, p.O, p.LSE, parts, logs, p.scale,
        cute.tensor({80, 9}, cute.i32), {k = cute.zeros({2, 2, 1, 32},
        cute.bf16), v = cute.zeros({2, 2, 1, 32}, cute.bf16)}):check {
          grid = k.grid({blocks = 3}, 2, 2, 2), block = k.block, gpu = false}
      assert.equal("ok", v.verdict, tostring(v))
    end
  end)

  for i, c in ipairs {{128, cute.bf16, 1}, {256, cute.bf16, 1},
                      {128, cute.e4m3, 4}} do
    local d, dtype, s = table.unpack(c)
    it(("keeps values in registers: heads of %d, %s%s"):format(d,
       tostring(dtype), support.long(i)), function()
      local made = decode {head = d, group = 8, rows = s, pdl = true,
                           bits = dtype.bits}
      local n = made.plan(4096, s, 8, 2)
      local Q, K = cute.zeros({2, s, 8, d}, cute.bf16),
                   cute.zeros({64, 64, 1, d}, dtype)
      for _, k in ipairs(made) do
        local built = compiled(k.kernel(Q, K, K, Q, cute.zeros({2, 8, s},
          cute.f32), cute.zeros({n.slots, made.rows, d}, cute.f32), cute.zeros(
          {n.slots, made.rows}, cute.f32), 1.0, cute.zeros({2}, cute.i32), {
          pages = cute.zeros({2, 64}, cute.i32)}):trace {block = k.block,
          arch = "sm_90a"}, "sm_90a")
        if built then assert.equal(0, built.resources.spill_stores) end
      end
    end)
  end

  it("divides keys equally among blocks", function()
    local k = decode {head = 128, group = 4}
    assert.same({blocks = 16, slots = 24}, k.plan(100, 1, 32, 1))
    assert.same({blocks = 528, slots = 536}, k.plan(65536, 1, 32, 1))
    assert.same({blocks = 528, slots = 528 + 1024}, k.plan(65536, 1, 32, 128))
    k = decode {head = 128, group = 4, batch_invariant = true}
    assert.same({blocks = 8, slots = 16}, k.plan(1024, 1, 32, 1))
    assert.same({blocks = 24, slots = 32}, k.plan(2049, 1, 32, 1))
  end)

  it("rejects groups without a tile", function()
    for _, group in ipairs {0, 1025, 1.5} do
      assert.has_error(function() decode {head = 64, group = group} end)
    end
    support.raises("attention_decode: tile = {any, 32}; a multiple of 64 keys, "
      .. "which the threads copy at once, is needed", decode, {head = 96,
        group = 64, bits = 8, tile = {16, 32}})
  end)
end)

-- Returns a call of the kernel for clusters, and its launch options. The
-- problem has one head of K and a cache of t keys. A cluster has 4 blocks by
-- default.
local function clustered(make, t, blocks)
  local p = oracle.problem {s = 1, t = t, d = 32, h = 2, g = 1}
  local made = make {head = 32, group = 2, cluster = blocks or 4, pdl = true,
                     early = true, tile = {16, 16}, stages = 3}
  local function angles() return cute.full({t, 16}, 0.5, cute.f32) end
  local new = cute.zeros({1, 1, 1, 32}, cute.bf16)
  local k = made[1]
  return k.kernel(p.Q, p.K, p.V, p.O, p.LSE, nil, nil, p.scale, cute.full({1},
    t, cute.i32), {k = new, v = new, cos = angles(), sin = angles()}),
    {grid = k.grid(nil, 1, 2, 1), block = k.block, cluster = k.cluster,
     device = "sim:sm_90a"}, p
end

local CLUSTERED = "attention_decode/clustered"

describe("attention of one query by a cluster", function()
  it("is right in all schedules", function()
    for _, c in ipairs {{275, 4}, {67, 1}} do
      local call, o = clustered(decode, table.unpack(c))
      o.gpu = false
      local v = call:check(o)
      assert.equal("ok", v.verdict, tostring(v))
    end
  end)

  for i, f in ipairs {
    {CLUSTERED, "arch.cluster_wait()", 1},
    {CLUSTERED, "arch.cluster_arrive()\n  arch.cluster_wait()", 1},
    {CLUSTERED, "cute.arch.cp_async_wait_group(o.stages - 2)", 1},
    {CLUSTERED, "arch.sync_threads()", 1},
  } do
    it("has its faults reported: " .. oracle.title(f) .. support.long(i),
       function()
      local call, o = clustered(oracle.changed("attention_decode",
        table.unpack(f, 1, 4)), 275)
      o.faults, o.seed = "return", 4
      assert.is_false(support.report(call:launch(o)).ok)
    end)
  end

  it("rejects heads and rows that a cluster does not take", function()
    support.raises("attention_decode: cluster = 4 with head = 96, 4 rows "
      .. "and 16 bits; 32, 64 or 128 elements of 16 bits, up to 16 rows, and "
      .. "no batch_invariant are needed", decode, {head = 96, group = 4,
        cluster = 4})
    support.raises("attention_decode: cluster = 8; 1, 2, 4, 8 or 16 blocks, "
      .. "with at least 8 of the 32 columns each, are needed", decode,
      {head = 32, cluster = 8})
  end)
end)

local PART = "attention_decode/part"
local COMMIT = "cute.arch.cp_async_commit_group()"
local FAULTS = {
  {PART, COMMIT, 1}, {PART, COMMIT, 2},
  {PART, "cute.arch.cp_async_wait_group(ahead - 1)", 1},
  {PART, "cute.when(cute.ge(block - ahead, first),", 1, "cute.when(true,"},
  {PART, "not inner and tiles", 1, "inner and tiles"},
  {PART, "meet()", 1}, {PART, "meet()", 4},
}

-- Runs attention of latent heads with the keys in two parts. By default, one
-- block computes both parts. Returns its report. With `verdict`, two blocks
-- compute them in all schedules. Then returns the verdict.
local function run_latent(make, opt, verdict)
  local p = oracle.problem {s = 1, t = opt.t, h = 4, g = 1, d = 576}
  local k = make {head = 576, group = 4, rows = 1, least = 1,
                  wgmma = opt.wgmma}
  local call = k[1].kernel(p.Q, p.K, p.K, p.O, p.LSE, cute.zeros({3, k.rows,
    512}, cute.f32), cute.zeros({3, k.rows}, cute.f32), p.scale)
  opt = {grid = {verdict and 2 or 1}, block = k[1].block,
         device = opt.wgmma and "sim:sm_90a" or "sim:sm_80"}
  if verdict then
    opt.gpu = false
    return call:check(opt)
  end
  opt.faults, opt.seed = "return", 4
  return support.report(call:launch(opt))
end

local LATENT, SYNC = "attention_decode/latent", "cute.arch.sync_threads()"

describe("attention of latent heads", function()
  it("is right in all schedules", function()
    for _, wgmma in ipairs {false, true} do
      local v = run_latent(decode, {t = 170, wgmma = wgmma}, true)
      assert.equal("ok", v.verdict, tostring(v))
    end
  end)

  local hopper = LATENT .. "_sm90"
  for i, f in ipairs {{LATENT, SYNC, 1}, {LATENT, SYNC, 3}, {hopper, SYNC, 1},
      {hopper, SYNC, 2},
      {hopper, "cute.arch.fence_view_async_shared()", 1}} do
    it("has its faults reported: " .. oracle.title(f) .. support.long(i),
       function()
      local make = oracle.changed("attention_decode", table.unpack(f, 1, 4))
      assert.is_false(run_latent(make, {t = 250, wgmma = f[1] == hopper}).ok)
    end)
  end
end)

describe("faults of attention of one query are reported:", function()
  for i, f in ipairs(FAULTS) do
    it(oracle.title(f) .. support.long(i), function()
      local make = oracle.changed("attention_decode",
        table.unpack(f, 1, 4))
      local p = oracle.problem {s = 1, t = 300, d = 32, h = 3, g = 1}
      assert.is_false(run(make, p, 2, nil, 4).ok)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
