-- Tests attention of e4m3 by wgmma on the simulator, and ops.attention with
-- scales. Plain Lua computes the expected results in f64. The kernel rounds the
-- exponentials of the scores to e4m3, with a relative error of up to 2^-4.
-- Therefore O may differ by 3.5 % in the norm. If each row sees a single key,
-- or weights all keys equally, the results are exact. The simulator must detect
-- the removal of a wait, a fence or a barrier.
local attention = require "kernels.attention_sm90"
local compiled = require "spec.kernels".compiled
local cute = require "cute"
local oracle = require "spec.attention"
local support = require "spec.support"

local ops = cute.ops

local function problem(o)
  o.dtype = cute.e4m3
  local p = oracle.problem(o)
  p.scale = o.scale or p.scale
  if o.causal then p.right = 0 end
  p.O = cute.full({p.b, p.s, p.h, p.d}, 0 / 0, o.out or cute.f32)
  return p
end

local function made(make, o)
  local all = {head = o.d, causal = o.causal, dtype = "e4m3",
               out = o.out or "f32", window = o.window}
  for name, x in pairs(o.with or {}) do all[name] = x end
  return make(all)
end

-- Runs a problem with a maker's kernel. Returns the report and the problem.
local function run(make, o, seed)
  local p = problem(o)
  local launch = made(make, o).prepare(p.Q, p.K, p.V, p.O, p.LSE, {
    scale = p.scale, device = "sim:sm_90a", sms = o.sms, more = o.more,
    strict = true})
  return support.report(launch:launch {faults = "return", seed = seed}), p
end

local function near(p, O, LSE, bound)
  local out, lse = oracle.forward(p)
  local mean, most = oracle.distance(O, out)
  bound = bound or 0.035
  assert.is_true(mean < bound and most < 10 * bound,
                 ("%g, %g"):format(mean, most))
  assert.is_true(select(2, oracle.distance(LSE, lse)) < 1e-3)
end

local function check(o)
  local r, p = run(attention, o)
  assert.is_true(r.ok, tostring(r))
  p.modify = o.modify
  near(p, p.O, p.LSE, o.bound)
  return r, p
end

describe("attention_sm90 of e4m3", function()
  for _, d in ipairs {64, 128, 256} do
    it(("is right with heads of %d #long"):format(d), function()
      check {s = 100, t = 330, d = d, causal = true, out = cute.f16}
      check {s = 70, t = 300, d = d, h = 2, g = 1, sms = 1, out = cute.bf16}
      check {s = 70, t = 290, d = d, left = 40, right = 10, window = {40, 10}}
    end)
  end

  it("pairs each weight with its key, and each sum with its column #long",
     function()
    local _, p = run(attention, {s = 192, t = 192, d = 64, scale = 1e9})
    local out = oracle.forward(p)
    assert.is_true(oracle.distance(p.O, out) < 1e-6)
  end)

  it("computes scores again if a power is too large #long", function()
    for _, scale in ipairs {1, 10, 1e4} do
      check {s = 70, t = 330, d = 128, scale = scale,
             with = {tile = {128, 64}}}
      check {s = 70, t = 330, d = 64, scale = scale,
             with = {tile = {64, 96}, rises = true}}
    end
  end)

  it("takes functions of scores #long", function()
    local function slope(s, at) return s + 0.1 * (at.k - at.q):to(cute.f32) end
    local function third(at) return (at.k % 3):ne(0) end
    check {s = 130, t = 130, causal = true, d = 64, with = {tile = {128, 64},
             modify = function() return slope, third, function() end end},
           modify = function(s, _, _, q, k)
             return k % 3 == 0 and -math.huge or s + 0.1 * (k - q)
           end}
  end)

  it("gives zeros and -inf to rows that attend to nothing #long", function()
    local _, p = run(attention, {s = 240, t = 70, d = 64, causal = true,
                                 with = {tile = {64, 32}}})
    for i = 0, 169 do
      assert.equal(-math.huge, p.LSE(0, 0, i))
      for j = 0, 63 do assert.equal(0, p.O(0, i, 0, j)) end
    end
    assert.is_true(p.LSE(0, 0, 170) > -math.huge)
  end)

  it("is right in all schedules #long", function()
    for _, o in ipairs {{s = 128, t = 80, causal = true, sms = 1},
                        {s = 190, t = 70, h = 2, g = 1, sms = 1},
                        {s = 70, t = 70, with = {tile = {64, 32},
                                                 v_stages = 1}}} do
      o.d, o.with = 64, o.with or {tile = {128, 32}}
      local p, k = problem(o), made(attention, o)
      local a = k.arguments(p.Q, p.K, p.V, p.O, p.LSE, p.scale,
                            k.share(p.Q, p.K))
      local v = k.kernel(table.unpack(a, 1, a.n)):check {
        grid = k.grid(p.s, p.h, p.b, o.sms), block = k.block, gpu = false}
      assert.equal("ok", v.verdict, tostring(v))
    end
  end)

  it("has no bank conflict in shared memory #long", function()
    for _, d in ipairs {64, 128, 256} do
      local r = check {s = 128, t = 128, d = d, with = {tile = {128, 64}}}
      for _, l in ipairs(r.lines) do assert.equal(0, l.conflicts) end
    end
  end)

  for i, c in ipairs {{128}, {64}, {64, true}, {128, true}, {256},
                      {256, true}} do
    it(("multiplies without waiting, heads of %d%s%s"):format(c[1],
       c[2] and ", causal" or "", support.long(i)), function()
      local p = problem {s = 512, d = c[1]}
      local k = attention {head = c[1], causal = c[2], dtype = "e4m3",
                           out = "f32"}
      local a = k.arguments(p.Q, p.K, p.V, p.O, p.LSE, 1.0,
                            k.share(p.Q, p.K))
      local built = compiled(k.kernel(table.unpack(a, 1, a.n)):trace {
        block = k.block}, "sm_90a")
      if built then
        assert.is_nil(built.log:find("serialized", 1, true))
      end
    end)
  end
end)

---------------------------------------------------------------------------
-- Faults
---------------------------------------------------------------------------

local E = "attention_sm90/eight"

describe("attention_sm90 of e4m3", function()
  for i, f in ipairs {{E, "v.pipe:consumer_wait(from)", 1},
                      {E, "vt.pipe:producer_acquire(to)", 1},
                      {E, "vt.pipe:producer_commit(to)", 1},
                      {E, "v.pipe:consumer_release(from)", 1},
                      {E, "cute.arch.fence_view_async_shared()", 1},
                      {E, "cute.arch.fence_view_async_shared()", 2},
                      {E, "cute.arch.sync_warp()", 1},
                      {E, "cute.arch.sync_warp()", 2},
                      {E, "x.q.pipe:consumer_release(x.q.state)", 1},
                      {E, "cute.when(cute.lt(at, S),", 1, "cute.when(true,"}} do
    it("without it fails: " .. oracle.title(f) .. support.long(i),
       function()
      local make = oracle.changed("attention_sm90", table.unpack(f, 1, 4))
      local ok, r = pcall(run, make, {s = 70, t = 200, h = 2, d = 64, sms = 1,
        scale = 3, with = {tile = {64, 32}}})
      assert.is_false(ok and r.ok)
    end)
  end
end)

---------------------------------------------------------------------------
-- ops.attention
---------------------------------------------------------------------------

local SIM = "sim:sm_90a"

-- Multiplies element i of row s of head h in batch b by f(b, s, h).
local function scaled(list, rows, heads, d, f)
  for i = 0, #list do
    local r = i // d
    list[i] = list[i] * f(r // heads // rows, r // heads % rows, r % heads)
  end
end

local function vector(list)
  local t = cute.zeros({#list}, cute.f32)
  for i, x in ipairs(list) do t[i - 1] = x end
  return t
end

describe("ops.attention of e4m3", function()
  it("takes scales of heads #long", function()
    local p = problem {b = 2, s = 90, t = 200, h = 4, g = 2, d = 128,
                       causal = true}
    local O, LSE = ops.attention(p.Q, p.K, p.V, {device = SIM, causal = true,
      q_scale = vector {0.5, 1, 1.5, 2}, k_scale = vector {0.75},
      v_scale = vector {2, 3}})
    scaled(p.q, 90, 4, 128, function(_, _, h) return (h + 1) / 2 end)
    scaled(p.k, 200, 2, 128, function() return 0.75 end)
    scaled(p.v, 200, 2, 128, function(_, _, g) return 2 + g end)
    assert.equal(cute.bf16, O.element_type)
    near(p, O, LSE)
  end)

  for i, d in ipairs {64, 128, 256} do
    it(("takes scales of 128 keys, heads of %d #long"):format(d), function()
      local p = problem {b = 2, s = 60, t = 300, h = 4, g = 2, d = d}
      local ks = cute.zeros({2, 3, 2}, cute.f32)
      local vs = cute.zeros({2, 3, 2}, cute.f32)
      for j = 0, 11 do
        local b, n, g = j // 6, j // 2 % 3, j % 2
        ks:set(b, n, g, 0.5 + 0.1 * b + 0.3 * n + 0.2 * g)
        vs:set(b, n, g, 2.0 ^ (3 * n - 2 * g + b))
      end
      local O, LSE = ops.attention(p.Q, p.K, p.V, {device = SIM,
        k_scale = i ~= 2 and ks or nil, v_scale = vs, dtype = "f32"})
      if i ~= 2 then
        scaled(p.k, 300, 2, d, function(b, s, g) return ks(b, s // 128, g) end)
      end
      scaled(p.v, 300, 2, d, function(b, s, g) return vs(b, s // 128, g) end)
      assert.equal(cute.f32, O.element_type)
      near(p, O, LSE)
    end)
  end

  it("takes sequences of different lengths, masks and sinks #long", function()
    local p = problem {s = 200, t = 200, h = 2, d = 64}
    local function rows(t)
      return cute.make_tensor(t.iterator, cute.make_layout({200, 2, 64},
                                                           {128, 64, 1}))
    end
    local cu = cute.tensor({0, 70, 70, 200}, cute.i32)
    local O = ops.attention(rows(p.Q), rows(p.K), rows(p.V), {device = SIM,
      cu_q = cu, cu_k = cu, causal = true})
    for i, at in ipairs {{0, 70}, {70, 130}} do
      local function part(t)
        return cute.make_tensor(t.iterator + at[1] * 128, cute.make_layout(
          {1, at[2], 2, 64}, {0, 128, 64, 1}))
      end
      local want = ops.attention(part(p.Q), part(p.K), part(p.V), {
        device = SIM, causal = true})
      for r = 0, at[2] - 1, 7 do
        assert.equal(want(0, r, i - 1, 5), O(at[1] + r, i - 1, 5))
      end
    end
    local function near_keys(at) return (at.q - at.k):lt(40) end
    local mask = ops.block_mask(near_keys, {1, 1, 200, 200}, {device = SIM})
    p.left, p.sinks = 39, {0.5, -0.5}
    local O2, LSE = ops.attention(p.Q, p.K, p.V, {device = SIM,
      block_mask = mask, sinks = vector {0.5, -0.5}})
    near(p, O2, LSE)
  end)

  it("names what it cannot take", function()
    local Q = cute.zeros({1, 10, 2, 64}, cute.e4m3)
    local function raises(text, x, o)
      assert.error_matches(function() ops.attention(x, x, x, o) end, text, 1,
                           true)
    end
    raises("ops.attention: Q has elements of e4m3, which only the kernel for "
      .. "Hopper takes: wgmma needs sm_90a, but the device is sm_80", Q,
      {device = "sim:sm_80"})
    raises("O must have the type bf16, f16 or f32, not e4m3", Q,
      {device = SIM, dtype = "e4m3"})
    raises("k_scale is (3):(1) of f32; (1), (2) or (1,1,2) of f32 is needed",
      Q, {device = SIM, k_scale = vector {1, 1, 1}})
    raises("q_scale is (3):(1) of f32; (1) or (2) of f32 is needed", Q,
      {device = SIM, q_scale = vector {1, 1, 1}})
    raises("v_scale is given, but Q has elements of type bf16; e4m3 is needed",
      cute.zeros({1, 10, 2, 64}, cute.bf16), {device = SIM,
                                              v_scale = vector {1}})
    raises("heads of 96 elements of e4m3; 64, 128 or 256 are possible",
      cute.zeros({1, 10, 2, 96}, cute.e4m3), {device = SIM})
  end)
end)
-- SPDX-License-Identifier: MIT
