-- Tests the gradients of attention by TMA and wgmma on the simulator, against
-- plain Lua. Cases: head sizes, both types, masks, heads that share keys,
-- partial and tiny tiles, and all schedules. The removal of a wait, a fence or
-- a barrier must be detected.
local cute = require "cute"
local backward = require "kernels.attention_bwd_sm90"
local compiled = require "spec.kernels".compiled
local core = require "cute.core"
local oracle = require "spec.attention"
local support = require "spec.support"

local BOUND = {bf16 = {1e-2, 0.15}, f16 = {2e-3, 1e-2}}
local NAMES = {"dQ", "dK", "dV"}

-- Sets O and LSE of a problem.
local function solve(p)
  local out, lse = oracle.forward(p)
  for t, list in pairs {[p.O] = out, [p.LSE] = lse} do
    local b = core.param_memory(t)
    for i = 0, #list do b[i] = list[i] end
  end
  return p
end

local function problem(o)
  if o.causal then o.right = 0 end
  return solve(oracle.problem(o))
end

-- Returns a maker's kernels for a problem, with further options.
local function made(make, p, with)
  local all = {head = p.d, dtype = p.dtype,
               window = (p.left or p.right) and {p.left or false,
                                                 p.right or false} or nil}
  for name, x in pairs(with or {}) do all[name] = x end
  return make(all)
end

-- Runs all launches. Returns the report of the last one, or of the first faulty
-- one.
local function run(make, p, with, seed)
  local r
  for _, launch in ipairs(made(make, p, with).prepare(p.Q, p.K, p.V, p.O, p.dO,
    p.LSE, p.dQ, p.dK, p.dV, {scale = p.scale, device = "sim:sm_90a",
                              strict = true})) do
    r = support.report(launch:launch {faults = "return", seed = seed})
    if not r.ok then return r end
  end
  return r
end

local function check(o, with)
  local what = ("s=%d t=%d h=%d g=%d d=%d"):format(o.s, o.t or o.s, o.h or 1,
    o.g or o.h or 1, o.d)
  local p = problem(o)
  local r = run(backward, p, with, o.seed)
  assert.is_true(r.ok, what .. "\n" .. tostring(r))
  local bound = BOUND[p.dtype.name]
  for i, want in ipairs {oracle.backward(p)} do
    local mean, most = oracle.distance(p[NAMES[i]], want)
    assert.is_true(mean < bound[1] and most < bound[2],
      ("%s of %s: %g, %g"):format(NAMES[i], what, mean, most))
  end
  return p
end

describe("attention_bwd_sm90", function()
  for i, d in ipairs {64, 96, 128, 192, 256} do
    it("is right with heads of " .. d .. support.long(i, 3), function()
      check {s = 90, t = 140, d = d, causal = true, dtype = cute.f16}
      check {s = 85, t = 85, d = d, h = 2, g = 1}
    end)
  end

  for i, with in ipairs {{deterministic = false}, {ds_stages = 1},
                         {stages = 3}, {rounded = true}, {sum_stages = 2},
                         {tile = {64, 64}, stages = 1, do_stages = 1}} do
    it("is right with other options, " .. i .. support.long(i, 2), function()
      check({s = 150, t = 140, d = 64, h = 2, g = 1, causal = true}, with)
      check({s = 70, t = 140, d = 64, b = 2}, with)
    end)
  end

  it("is right with heads of 256 and two tiles of dS #long", function()
    check({s = 100, t = 170, d = 256, causal = true}, {stages = 1,
                                                       ds_stages = 2})
  end)

  for i, c in ipairs {{65, 63}, {2, 300}, {2, 64}, {129, 2}, {200, 72},
                      {64, 200}} do
    it(("is right for %d rows and %d keys%s"):format(c[1], c[2],
       support.long(i, 2)), function()
      check {s = c[1], t = c[2], d = 64, seed = i}
      check({s = c[1], t = c[2], d = 64, causal = true, seed = i},
            {tile = {64, 64}})
    end)
  end

  it("takes batches and heads that share keys", function()
    check({b = 2, s = 70, t = 100, h = 4, g = 2, d = 64, causal = true},
          {tile = {64, 64}})
    check({b = 2, s = 35, t = 70, h = 6, g = 2, d = 64},
          {tile = {64, 64}, stages = 1})
  end)

  it("takes windows", function()
    for i, w in ipairs {{0, 5}, {20, 0}, {100, 30}, {nil, 70}, {50}} do
      check({s = 130, t = 150, d = 64, left = w[1], right = w[2], seed = i},
            {tile = {64, 64}})
    end
  end)

  it("gives zeros where rows see no key, and keys no row", function()
    local p = check({s = 240, t = 70, d = 64, causal = true}, {tile = {64, 64}})
    for i = 0, 169 do
      for e = 0, 63 do assert.equal(0, p.dQ(0, i, 0, e)) end
    end
    for _, fixed in ipairs {true, false} do
      p = check({s = 70, t = 240, d = 64, left = 10, right = 0},
                {tile = {64, 64}, deterministic = fixed})
      for j = 0, 159 do
        for e = 0, 63 do
          assert.equal(0, p.dK(0, j, 0, e))
          assert.equal(0, p.dV(0, j, 0, e))
        end
      end
    end
  end)

  it("keeps scores far below 0 apart from what follows the keys", function()
    for _, d in ipairs {64, 256} do
      local p = problem {s = 70, t = 70, d = d}
      for i = 0, cute.size(p.Q) - 1 do
        p.Q[i], p.K[i] = 8, -8  -- every score is -64 d
        p.q[i], p.k[i] = 8, -8
      end
      assert.is_true(run(backward, solve(p)).ok)
      local _, _, v = oracle.backward(p)
      assert.is_true(oracle.distance(p.dV, v) < 1e-2)
      for i = 0, cute.size(p.dQ) - 1 do
        assert.is_true(math.abs(p.dQ(i)) < math.huge)
      end
    end
  end)

  it("has the same bits in every order of blocks", function()
    local first
    for seed = 1, 4 do
      local p = problem {s = 70, t = 180, d = 64, h = 2, g = 1}
      assert.is_true(run(backward, p, {tile = {64, 64}}, seed).ok)
      first = first or p
      for _, name in ipairs(NAMES) do
        local a, b = core.param_memory(p[name]), core.param_memory(first[name])
        assert.is_true((a:equal(b)))
      end
    end
  end)

  it("takes operands with other strides", function()
    local p = problem {b = 2, s = 70, t = 80, h = 2, d = 64}
    local function heads_first(t)  -- in memory (B,H,S,D)
      local b, s, h, d = table.unpack(t.shape)
      local new = cute.make_tensor(cute.zeros({b * s * h * d}, t.element_type)
        .iterator, cute.make_layout({b, s, h, d}, {h * s * d, d, s * d, 1}))
      for i = 0, cute.size(t) - 1 do new[i] = t[i] end
      return new
    end
    local q = setmetatable({}, {__index = p})
    for _, name in ipairs {"Q", "K", "V", "O", "dO", "dQ", "dK", "dV"} do
      q[name] = heads_first(p[name])
    end
    assert.is_true(run(backward, q).ok)
    for i, want in ipairs {oracle.backward(p)} do
      local t = p[NAMES[i]]
      for e = 0, cute.size(t) - 1 do t[e] = q[NAMES[i]][e] end
      assert.is_true(oracle.distance(t, want) < 1e-2)
    end
  end)
end)

describe("attention_bwd_sm90", function()
  -- Returns the memory that the launches of kernels k share.
  local function memory(k, p)
    local m = {}
    for name, n in pairs(k.sizes(p.s, p.h, p.b)) do
      m[name] = cute.empty({n}, name == "turns" and cute.i32 or cute.f32)
    end
    return m
  end

  -- Runs all schedules of the launches of a problem.
  local function schedules(o, with)
    local p = problem(o)
    local k = made(backward, p, with)
    local m = memory(k, p)
    for i, s in ipairs(k.launches(p.s, p.t, p.h, p.g, p.b)) do
      local a = k.arguments(i, p, p.scale, m)
      local call = s.kernel(table.unpack(a, 1, a.n))
      local v = call:check {grid = s.grid, block = s.block, gpu = false}
      assert.equal("ok", v.verdict, tostring(v))
      call:launch {grid = s.grid, block = s.block, device = "sim:sm_90a"}
    end
  end

  it("is right in all schedules", function()
    schedules({s = 96, t = 130, d = 64, causal = true},
              {tile = {64, 64}, deterministic = false})
    schedules({s = 70, t = 100, d = 64}, {ds_stages = 1})
  end)

  it("is right in all schedules of blocks that wait #long", function()
    schedules({s = 100, t = 130, d = 64, causal = true, h = 2, g = 1},
              {tile = {64, 64}})
  end)

  for i, c in ipairs {{128, false, 500}, {128, true, 512}, {64, false, 512},
                      {64, true, 512}, {96, true, 500}, {192, true, 512},
                      {256, false, 512}, {256, true, 512}} do
    it(("keeps values in registers, and products apart, %d%s%s"):format(c[1],
       c[2] and " causal" or "", support.long(i, 8)), function()
      local p = oracle.problem {s = c[3], d = c[1]}
      local k = backward {head = c[1], causal = c[2]}
      local a = k.arguments(2, p, 1.0, memory(k, p))
      local built = compiled(k.kernel(table.unpack(a, 1, a.n)):trace {
        block = k.options.block}, "sm_90a")
      if built then
        assert.is_true(built.resources.spill_stores <= 64)
        assert.is_nil(built.log:find("serialized", 1, true))
      end
    end)
  end

  it("rejects options and operands that it does not have", function()
    for text, o in pairs {
      ["head = 80; 64, 96"] = {head = 80},
      ["head = nil"] = {},
      ["a window of %-1 keys"] = {head = 64, window = {-1, 0}},
      ["elements of f32; bf16 or f16"] = {head = 64, dtype = cute.f32},
      ["tile = {100, 64}; a multiple of 16"] = {head = 64, tile = {100, 64}},
      ["tile = {80, 128} with heads of 64; 2 warpgroups cannot divide dQ"] =
        {head = 64, tile = {80, 128}},
      ["needs 329728 bytes of shared memory"] = {head = 128,
                                                 tile = {128, 128}},
      ["tile = {64, 88} with heads of 256; 64 rows, and a multiple of 16"] =
        {head = 256, tile = {64, 88}},
    } do
      assert.error_matches(function() backward(o) end, text)
    end
    local p = oracle.problem {s = 64, d = 64}
    local k = backward {head = 64}
    assert.error_matches(function() k.arguments(1, p, 0.0) end, "scale = 0")
    local odd = cute.make_tensor(cute.zeros({4, 68}, cute.bf16).iterator,
      cute.make_layout({1, 4, 1, 64}, {272, 68, 68, 1}))
    assert.same({false, "Q has rows that do not begin at multiples of "
                 .. "16 bytes"}, {k.takes(odd, p.K, p.V, p.dO)})
  end)
end)

---------------------------------------------------------------------------
-- Faults
---------------------------------------------------------------------------

local function file(name) return "attention_bwd_sm90/" .. name end
local C, T, W = file "consumer", file "transposed", file "wide"
local P, K = file "producer", file "kernel"
local FAULTS = {
  {C, "x.ready:wait(0, 0)", 1}, {C, "x.ready:wait(1, 0)", 1},
  {C, "x.acc.pipe:producer_acquire(state)", 1},
  {C, "x.acc.pipe:producer_commit(state)", 1},
  {C, "cute.arch.fence_view_async_shared()", 1},
  {C, "cute.arch.fence_view_async_shared()", 2},
  {C, "cute.arch.sync_warp()", 1},
  {C, "x.meet:arrive_and_wait()", 1}, {C, "x.meet:arrive_and_wait()", 2},
  {P, "x.pipe:producer_acquire(state)", 1},
  {P, "x.acc.pipe:consumer_wait(state)", 1},
  {P, "cute.arch.cp_async_bulk_wait_group(0, true)", 1},
  {P, "x.acc.pipe:consumer_release(state)", 1},
  {K, "pipeline.agent_sync()", 1},
  {file "parts", "warpgroup.fence()", 1},
  {file "parts", "warpgroup.commit_group()", 1},
}
-- The file, the head size, and lines with their numbers in the file.
for _, f in ipairs {
  {T, 64, {["x.q.pipe:consumer_wait(q)"] = {1},
    ["x.g.pipe:consumer_wait(g)"] = {1}, ["x.q.pipe:consumer_release(q)"] = {1},
    ["x.g.pipe:consumer_release(g)"] = {1},
    ["warpgroup.wait_group(1)"] = {1, 2},
    ["warpgroup.wait_group(0)"] = {1, 2}, ["x.meet:arrive_and_wait()"] = {2},
    ["cute.arch.fence_view_async_shared()"] = {1}}},
  {W, 192, {["x.q.pipe:consumer_release(q)"] = {1},
    ["x.g.pipe:consumer_release(g)"] = {1},
    ["warpgroup.wait_group(0)"] = {1, 2}, ["x.meet:arrive_and_wait()"] = {1, 2},
    ["cute.arch.fence_view_async_shared()"] = {1}}},
  {W, 256, {["x.q.pipe:consumer_wait(q)"] = {1},
    ["x.g.pipe:consumer_wait(g)"] = {1}, ["x.q.pipe:consumer_release(q)"] = {2},
    ["x.g.pipe:consumer_release(g)"] = {2},
    ["warpgroup.wait_group(1)"] = {2, 3, 5},
    ["warpgroup.wait_group(0)"] = {4, 5},
    ["x.meet:arrive_and_wait()"] = {3, 4, 5, 6},
    ["cute.arch.fence_view_async_shared()"] = {2, 3, 4}}}} do
  local lines = {}
  for line in pairs(f[3]) do lines[#lines + 1] = line end
  table.sort(lines)
  for _, line in ipairs(lines) do
    for _, n in ipairs(f[3][line]) do
      FAULTS[#FAULTS + 1] = {f[1], line, n, d = f[2]}
    end
  end
end

describe("attention_bwd_sm90's faults are reported:", function()
  local problems = {}
  for i, f in ipairs(FAULTS) do
    it(oracle.title(f) .. support.long(i, 3), function()
      local d = f.d or 64
      problems[d] = problems[d] or problem {s = 200, t = 90, d = d, h = 2,
                                            g = 1}
      local make = oracle.changed("attention_bwd_sm90", table.unpack(f, 1, 4))
      local ok, r = pcall(run, make, problems[d],
        {do_stages = 1, stages = d < 256 and 1 or 2, deterministic = f[1] == K})
      assert.is_false(ok and r.ok)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
