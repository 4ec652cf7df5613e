-- Tests the option `gradients` of ops.attention_backward. The gradients of
-- sinks and of tensors that score_mod reads are compared with difference
-- quotients of the loss sum(O dO), which plain Lua computes.
local core = require "cute.core"
local cute = require "cute"
local oracle = require "spec.attention"
local support = require "spec.support"
local ops, raises = cute.ops, support.raises

local B, S, T, H, G, D = 2, 21, 27, 4, 2, 32
local STEP = 1e-4

-- Returns the derivative of sum(O dO) with respect to element i of a list that
-- p.modify or p.sinks reads.
local function slope(p, list, i)
  local was, loss = list[i], {}
  for n, step in ipairs {-STEP, STEP} do
    list[i] = was + step
    local out, sum = oracle.forward(p), 0.0
    for e = 0, #p.go do sum = sum + out[e] * p.go[e] end
    loss[n] = sum
  end
  list[i] = was
  return (loss[2] - loss[1]) / (2 * STEP)
end

-- Compares elements of the gradient g with the derivatives that slope()
-- returns. elements: {[index in g] = index in the list}.
local function compare(what, p, g, list, elements)
  local off, all = 0.0, 0.0
  local got = core.param_memory(g:to "host")
  for i, at in pairs(elements) do
    local want = slope(p, list, at)
    off, all = off + (got[i] - want) ^ 2, all + want ^ 2
  end
  local e = math.sqrt(off / all)
  assert.is_true(all > 0 and e < 1e-2, ("%s: %g"):format(what, e))
end

local function floats(n, seed, dtype)
  local t = cute.randn({n}, dtype or cute.f32, {seed = seed})
  local list = {}
  for i = 0, n - 1 do list[i] = t(i) end
  return t, list
end

-- Runs both passes of a problem, and returns the results of the backward pass.
local function run(p, o)
  local all = {}
  for name, x in pairs(o) do
    if name ~= "gradients" and name ~= "deterministic" then all[name] = x end
  end
  local O, L = ops.attention(p.Q, p.K, p.V, all)
  return {ops.attention_backward(p.dO, p.Q, p.K, p.V, O, L, o)}, O, L
end

local function problem(d, s)
  return oracle.problem {b = B, s = s or S, t = T, h = H, g = G, d = d or D,
                         dtype = cute.f16}
end

describe("gradients of captured tensors", function()
  local slopes, slope_list = floats(H, 1)
  local bias, bias_list = floats(S + T, 2, cute.bf16)

  for number, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
    it("are right for slopes and a relative bias on " .. device
       .. support.long(number), function()
      local p = problem(64)
      p.modify = function(s, _, h, q, k)
        return s * slope_list[h] + bias_list[k - q + S] * s
      end
      local got = run(p, {device = device, gradients = {bias, slopes},
        causal = true, score_mod = function(s, at)
          return s * slopes[at.h] + bias[at.k - at.q + S]:to(cute.f32) * s
        end})
      p.right = 0
      for i, want in ipairs {oracle.backward(p)} do
        assert.is_true(oracle.distance(got[i], want) < 2e-2)
      end
      assert.equal(cute.bf16, got[4].element_type)
      assert.equal("(4):(1)", tostring(got[5].layout))
      compare("slopes", p, got[5], slope_list, {[0] = 0, 1, 2, 3})
      compare("bias", p, got[4], bias_list, {[6] = 6, [S] = S, [25] = 25})
      -- the causal mask hides the scores of this element, so its gradient is 0
      assert.equal(0, got[4](S + T - 1))
    end)
  end

  it("are right for an element that several heads and batches read #long",
     function()
    local p = problem(D, 70)  -- 70 rows need two tiles
    local pair, list = floats(2, 3)
    p.modify = function(s, b, h) return s * list[h % 2] + s * list[b] end
    local o = {device = "sim", gradients = {pair}, deterministic = true,
      score_mod = function(s, at)
        return s * pair[at.h % 2] + s * pair[at.b]
      end}
    local got = run(p, o)
    compare("pair", p, got[4], list, {[0] = 0, 1})
    for _ = 1, 3 do  -- with a fixed order of sums, the bits are always the same
      local again = run(p, o)
      assert.equal(got[4](0), again[4](0))
      assert.equal(got[4](1), again[4](1))
    end
  end)

  it("are right for the options alibi_slopes and bias #long", function()
    local p = problem()
    local whole = cute.randn({1, H, 1, T}, cute.f32, {seed = 5})
    local list = {}
    for i = 0, H * T - 1 do list[i] = whole(0, i // T, 0, i % T) end
    p.modify = function(s, _, h, q, k)
      return s - slope_list[h] * math.abs(q + T - S - k) + list[h * T + k]
    end
    local got = run(p, {device = "sim", gradients = {slopes, whole},
                        alibi_slopes = slopes, bias = whole})
    assert.equal("(1,4,1,27)", tostring(got[5].layout):match "^[^:]*")
    compare("slopes", p, got[4], slope_list, {[0] = 0, 1, 2, 3})
    compare("bias", p, got[5], list, {[3] = 3, [40] = 40, [107] = 107})
  end)
end)

describe("gradients of captured tensors", function()
  local slopes, slope_list = floats(H, 1)
  local bias = floats(S + T, 2, cute.bf16)

  it("are stored to given tensors, of other strides, too #long", function()
    local p = problem()
    local columns = cute.randn({H, 3}, cute.f32, {seed = 6})
    local middle = columns(cute._, 1)
    local list = {}
    for h = 0, H - 1 do list[h] = columns(h, 1) end
    p.modify = function(s, _, h) return s * list[h] end
    local out = cute.full({H}, 7, cute.f32)
    local got = run(p, {device = "sim", score_mod = function(s, at)
      return s * middle[at.h]
    end})
    assert.is_nil(got[4])
    local O, L = ops.attention(p.Q, p.K, p.V, {device = "sim",
      score_mod = function(s, at) return s * middle[at.h] end})
    ops.attention_backward(p.dO, p.Q, p.K, p.V, O, L, {device = "sim",
      gradients = {middle}, out = {p.dQ, p.dK, p.dV, out},
      score_mod = function(s, at) return s * middle[at.h] end})
    compare("middle", p, out, list, {[0] = 0, 1, 2, 3})
  end)

  it("are right for sequences of different lengths #long", function()
    local p = problem()
    local function flat(t)
      return cute.make_tensor(t.iterator, cute.make_layout(
        {t.shape[1] * t.shape[2], t.shape[3], D}, cute.LayoutRight))
    end
    local q = {Q = flat(p.Q), K = flat(p.K), V = flat(p.V), dO = flat(p.dO)}
    local sinks, sink_list = floats(H, 4)
    p.sinks = {}
    for h = 0, H - 1 do p.sinks[h + 1] = sink_list[h] end
    p.modify = function(s, b, h) return s * slope_list[h] + s * b end
    local got = run(q, {device = "sim", gradients = {slopes, sinks},
      cu_q = cute.tensor({0, S, 2 * S}, cute.i32), sinks = sinks,
      cu_k = cute.tensor({0, T, 2 * T}, cute.i32), score_mod = function(s, at)
        return s * slopes[at.h] + s * at.b:to(cute.f32)
      end})
    compare("slopes", p, got[4], slope_list, {[0] = 0, 1, 2, 3})
    compare("sinks", p, got[5], p.sinks, {[0] = 1, 2, 3, 4})
  end)

  it("leave out rows after the last sequence #long", function()
    local d = 64
    local factors = floats(2, 5)
    local Q = cute.randn({90, 2, d}, cute.bf16)
    local K = cute.randn({70, 2, d}, cute.bf16)
    -- Returns the gradient of `factors` for these first rows of Q and K.
    local function gradient(rows, keys, device)
      local function first(x, n)
        return cute.make_tensor(x.iterator, cute.make_layout({n, 2, d},
                                                             x.stride))
      end
      local q, k = first(Q, rows), first(K, keys)
      return run({Q = q, K = k, V = k, dO = q}, {device = device,
        gradients = {factors}, cu_q = cute.tensor({0, 30, 60}, cute.i32),
        cu_k = cute.tensor({0, 20, 50}, cute.i32),
        score_mod = function(s, at) return s * factors[at.h] end})[4]
    end
    for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
      local all, exact = gradient(90, 70, device), gradient(60, 50, device)
      for h = 0, 1 do
        assert.is_true(exact(h) ~= 0)
        assert.equal(exact(h), all(h))
      end
    end
  end)

  it("demand tensors that score_mod reads", function()
    local p = problem()
    local function call(o)
      return function()
        o.device = "sim"
        o.score_mod = o.score_mod or function(s, at)
          return s + bias[at.k - at.q + S]:to(cute.f32)
        end
        return (ops.attention_backward(p.dO, p.Q, p.K, p.V, p.O, p.LSE, o))
      end
    end
    raises("gradients[1], a tensor of (4):(1), is neither sinks, alibi_slopes "
      .. "or bias, nor captured by score_mod", call {gradients = {slopes}})
    raises("gradients is true; a list of tensors is needed",
           call {gradients = true})
    raises("gradients[1] is 3; a tensor of floats is needed",
           call {gradients = {3}})
    raises("deterministic = true, but score_mod reads tensor 1 of the list "
      .. "gradients at indices that depend on at.q or at.k, and the gradient "
      .. "of such a tensor is summed in any order",
      call {gradients = {bias}, deterministic = true})
    raises("score_mod must read elements of gradients[1], whose gradient is "
      .. "requested", call {gradients = {slopes},
        score_mod = function(s, at)
          return cute.where(slopes[at.h]:gt(0), s, 2 * s)
        end})
  end)
end)

describe("gradients of sinks", function()
  it("are right for sequences of different lengths on wgmma #long", function()
    local p = problem(64, 150)  -- 150 rows of a sequence need two tiles
    local function flat(t)
      return cute.make_tensor(t.iterator, cute.make_layout(
        {t.shape[1] * t.shape[2], t.shape[3], 64}, cute.LayoutRight))
    end
    local q = {Q = flat(p.Q), K = flat(p.K), V = flat(p.V), dO = flat(p.dO)}
    local sinks, list = floats(H, 4)
    p.sinks = {list[0], table.unpack(list)}
    local o = {device = "sim:sm_90a", gradients = {sinks}, sinks = sinks,
      cu_q = cute.tensor({0, 150, 300}, cute.i32),
      cu_k = cute.tensor({0, T, 2 * T}, cute.i32)}
    local got, O, L = run(q, o)
    local plan = ops.explain_attention_backward(q.dO, q.Q, q.K, q.V, O, L, o)
    assert.equal("attention_bwd_sm90", plan.kernel)
    compare("sinks", p, got[4], p.sinks, {[0] = 1, 2, 3, 4})
  end)

  for i, d in ipairs {32, 64} do
    it("are right with heads of " .. d .. support.long(i), function()
      local p = problem(d)
      local sinks = floats(H, 7, i == 1 and cute.bf16 or cute.f32)
      sinks[1] = -math.huge
      p.sinks = {}
      for h = 0, H - 1 do p.sinks[h + 1] = sinks(h) end
      local o = {device = "sim:sm_90a", sinks = sinks, gradients = {sinks}}
      local got, O, L = run(p, o)
      for n, want in ipairs {oracle.backward(p)} do
        assert.is_true(oracle.distance(got[n], want) < 1e-2)
      end
      compare("sinks", p, got[4], p.sinks, {[0] = 1, [2] = 3, [3] = 4})
      assert.equal(0, got[4](1))
      local plan = ops.explain_attention_backward(p.dO, p.Q, p.K, p.V, O, L, o)
      assert.equal(d == 64 and "attention_bwd_sm90" or "attention_bwd",
                   plan.kernel)
      o.gradients = nil
      assert.equal(3, #run(p, o))
    end)
  end
end)

describe("gradients of attention on a GPU #gpu", function()
  -- Compares the gradients on the GPU with those on the simulator. options(on)
  -- returns the options of a call, where on(t) returns tensor t on the call's
  -- device.
  local function check(p, options)
    local function results(device)
      local function on(t) return device == "gpu" and t:to "gpu" or t end
      local o = options(on)
      o.device = device
      local q = {}
      for _, name in ipairs {"Q", "K", "V", "dO"} do q[name] = on(p[name]) end
      return (run(q, o))
    end
    local want = results("sim:" .. assert(cute.device "gpu").arch)
    for i, t in ipairs(results "gpu") do
      local b, list = core.param_memory(want[i]), {}
      for e = 0, #b - 1 do list[e] = b[e] end
      local mean = oracle.distance(t:to "host", list)
      assert.is_true(mean < 2e-3, ("gradient %d: %g"):format(i, mean))
    end
  end

  for _, d in ipairs {64, 128, 256} do
    it("are the simulator's with heads of " .. d, function()
      local slopes, sinks = floats(H, 1), floats(H, 2)
      local bias = floats(T + 150, 3)
      local p = problem(d, 150)
      check(p, function(on)
        local all = on(sinks)
        return {softcap = 5.0, causal = true, sinks = all, gradients = {all}}
      end)
      check(p, function(on)
        local one, two = on(slopes), on(bias)
        return {gradients = {one, two}, score_mod = function(s, at)
          return s * one[at.h] + two[at.k - at.q + 150]
        end}
      end)
      local q = {}
      for _, name in ipairs {"Q", "K", "V", "dO"} do
        local t = p[name]
        q[name] = cute.make_tensor(t.iterator, cute.make_layout(
          {t.shape[1] * t.shape[2], t.shape[3], d}, cute.LayoutRight))
      end
      check(q, function(on)
        return {causal = true, cu_q = on(cute.tensor({0, 170, 300}, cute.i32)),
                cu_k = on(cute.tensor({0, 20, 2 * T}, cute.i32))}
      end)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
