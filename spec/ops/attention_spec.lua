-- Tests cute.ops.attention, its gradients and its decoding against plain Lua in
-- f64. Cases: masks, heads that share keys, views, sequences, rows without
-- keys. Invalid calls must raise errors.
local cute = require "cute"
local oracle = require "spec.attention"
local support = require "spec.support"
local ops, raises = cute.ops, support.raises

local SIM = {device = "sim"}
local BOUND = {bf16 = {6e-3, 3e-2}, f16 = {8e-4, 4e-3}}
local GRADIENT = {bf16 = {1.2e-2, 0.15}, f16 = {2e-3, 1e-2}}

local function near(t, want, bound)
  local mean, most = oracle.distance(t, want)
  assert.is_true(mean < bound[1] and most < bound[2],
                 ("%g, %g"):format(mean, most))
end

-- Runs forward and backward passes of a problem on a device.
local function check(o, device)
  if o.causal then o.right = 0 end
  local p = oracle.problem(o)
  local options = {device = device, causal = o.causal,
                   window = o.window, scale = o.scale}
  p.scale = o.scale or p.scale
  local O, L = ops.attention(p.Q, p.K, p.V, options)
  local out, lse = oracle.forward(p)
  near(O, out, BOUND[p.dtype.name])
  assert.is_true(select(2, oracle.distance(L, lse)) < 2e-6)
  options.deterministic = o.deterministic
  local dQ, dK, dV = ops.attention_backward(p.dO, p.Q, p.K, p.V, O, L, options)
  local q, k, v = oracle.backward(p)
  near(dQ, q, GRADIENT[p.dtype.name])
  near(dK, k, GRADIENT[p.dtype.name])
  near(dV, v, GRADIENT[p.dtype.name])
end

local function with(o, more)
  local all = {}
  for k, v in pairs(o) do all[k] = v end
  for k, v in pairs(more) do all[k] = v end
  return all
end

-- Returns a copy of t that is a slice of a larger tensor. The larger tensor has
-- one more mode, at position `at`, and the slice has index 1 in this mode.
local function view_of(t, at)
  local shape, u = {}, {}
  for i = 1, cute.rank(t) do
    if i == at then shape[#shape + 1], u[#u + 1] = 3, 1 end
    shape[#shape + 1], u[#u + 1] = t.shape[i], cute._
  end
  local view = cute.zeros(shape, t.element_type)(table.unpack(u))
  ops.copy(t, view, SIM)
  return view
end

-- Returns the first row and the first key of each sequence {rows, keys}.
local function positions(lengths)
  local cu_q, cu_k = {0}, {0}
  for i, n in ipairs(lengths) do
    cu_q[i + 1], cu_k[i + 1] = cu_q[i] + n[1], cu_k[i] + n[2]
  end
  return cu_q, cu_k
end

describe("ops.attention", function()
  for i, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
    it("and its gradients are right on " .. device .. support.long(i),
       function()
      check({s = 70, t = 90, d = 64, h = 4, g = 2}, device)
      check({s = 33, t = 65, d = 32, b = 2, causal = true, dtype = cute.f16},
            device)
      check({s = 40, t = 40, d = 64, h = 2, g = 1, left = 9, right = 2,
             window = {9, 2}, scale = 0.1, deterministic = false}, device)
    end)
  end

  for n, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
    it("takes views of one tensor, and copies others, on " .. device
       .. support.long(n), function()
      local p = oracle.problem {s = 20, t = 20, d = 64, h = 2}
      local want = ops.attention(p.Q, p.K, p.V, {device = device})
      -- Q, K and V are slices of a larger tensor, whose additional mode comes
      -- before the heads (3) or after them (4).
      for _, at in ipairs {3, 4} do
        local o = {device = device, out = cute.zeros({1, 20, 2, 64}, cute.bf16)}
        local O = ops.attention(view_of(p.Q, at), view_of(p.K, at),
                                view_of(p.V, at), o)
        assert.equal(o.out, O)
        for e = 0, 20 * 2 * 64 - 1 do assert.equal(want[e], O[e]) end
      end
    end)

    it("takes odd strides of modes of one element on " .. device
       .. support.long(n), function()
      local p = oracle.problem {s = 20, t = 20, d = 64}
      local function odd(t)
        return cute.make_tensor(t.iterator, cute.make_layout({1, 20, 1, 64},
                                                             {3, 64, 5, 1}))
      end
      near(ops.attention(odd(p.Q), odd(p.K), odd(p.V), {device = device}),
           oracle.forward(p), BOUND.bf16)
    end)
  end

  it("takes sequences of different lengths", function()
    local lengths, d = {{3, 5}, {0, 4}, {40, 40}}, 32
    local cu_q, cu_k = positions(lengths)
    local function all(n, heads)
      return cute.randn({n, heads, d}, cute.bf16)
    end
    local Q, K, V = all(cu_q[4], 2), all(cu_k[4], 1), all(cu_k[4], 1)
    local o = {device = "sim", causal = true,
               cu_q = cute.tensor(cu_q, cute.i32),
               cu_k = cute.tensor(cu_k, cute.i32)}
    local O, L = ops.attention(Q, K, V, o)
    local dO = all(cu_q[4], 2)
    local dQ, dK, dV = ops.attention_backward(dO, Q, K, V, O, L, o)
    for i, n in ipairs(lengths) do
      local function part(t, from, count)
        return cute.make_tensor(t.iterator + from * t.stride[1],
          cute.make_layout({1, count, t.shape[2], d},
                           {0, t.stride[1], t.stride[2], 1}))
      end
      if n[1] > 0 then
        local q, k = part(Q, cu_q[i], n[1]), part(K, cu_k[i], n[2])
        local v, g = part(V, cu_k[i], n[2]), part(dO, cu_q[i], n[1])
        local alone = {device = "sim", causal = true}
        local o1, l1 = ops.attention(q, k, v, alone)
        local q1, k1, v1 = ops.attention_backward(g, q, k, v, o1, l1, alone)
        for s = 0, n[1] - 1 do
          assert.equal(l1(0, 1, s), L(1, cu_q[i] + s))
          for e = 0, d - 1 do
            assert.equal(o1(0, s, 1, e), O(cu_q[i] + s, 1, e))
            assert.equal(q1(0, s, 1, e), dQ(cu_q[i] + s, 1, e))
          end
        end
        for t = 0, n[2] - 1 do
          for e = 0, d - 1 do
            assert.equal(k1(0, t, 0, e), dK(cu_k[i] + t, 0, e))
            assert.equal(v1(0, t, 0, e), dV(cu_k[i] + t, 0, e))
          end
        end
      end
    end
  end)

end)

describe("ops.attention of sequences", function()
  local d = 64
  local function rows(n, heads) return cute.randn({n, heads, d}, cute.bf16) end
  local function offsets(...) return cute.tensor({...}, cute.i32) end

  for n, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
    it("gives zeros to rows after the last sequence on " .. device
       .. support.long(n), function()
      local Q, K, V = rows(200, 2), rows(130, 1), rows(130, 1)
      local o = {device = device, cu_q = offsets(0, 70, 150),
                 cu_k = offsets(0, 60, 100)}
      local O, L = ops.attention(Q, K, V, o)
      local dQ, dK, dV = ops.attention_backward(Q, Q, K, V, O, L, o)
      assert.is_true(L(1, 149) > -math.huge and dK(99, 0, 3) ~= 0)
      for i = 150, 199 do
        assert.equal(-math.huge, L(1, i))
        for e = 0, d - 1, 7 do
          assert.equal(0, O(i, 1, e))
          assert.equal(0, dQ(i, 1, e))
        end
      end
      for i = 100, 129 do
        for e = 0, d - 1, 7 do assert.equal(0, dK(i, 0, e) + dV(i, 0, e)) end
      end
      o.cu_q, o.cu_k = offsets(0), offsets(0)
      O, L = ops.attention(Q, K, V, o)
      assert.equal(-math.huge, L(1, 199))
      assert.equal(0, O(199, 1, 63))
    end)

    it("rejects offsets that do not ascend on " .. device, function()
      for text, o in pairs {
        ["cu_q[2] = 60; an offset from 70 to the 100 rows is needed"] =
          {offsets(0, 70, 60), offsets(0, 1, 1)},
        ["cu_k[1] = 101; an offset from 0 to the 100 rows is needed"] =
          {offsets(0, 70), offsets(0, 101)},
        ["cu_q[0] = -1; 0 is needed"] = {offsets(-1, 70), offsets(0, 9)}} do
        local Q = rows(100, 1)
        raises("ops.attention: " .. text, function()
          return (ops.attention(Q, Q, Q, {device = device, cu_q = o[1],
                                          cu_k = o[2]}))
        end)
      end
    end)
  end

  -- The call cannot check offsets in the GPU's memory, so the kernels must
  -- clamp them.
  it("limits offsets in both kernels #long", function()
    local Q, K = rows(200, 1), rows(100, 1)
    local cu_q, cu_k = offsets(-5, 90, 300, 1000), offsets(-9, 150, 200, 70)
    local function results()
      return cute.full({200, 1, d}, 0 / 0, cute.bf16),
        cute.full({1, 200}, 0 / 0, cute.f32)
    end
    local want, log = ops.attention(Q, K, K, {device = "sim:sm_80",
      cu_q = offsets(0, 90, 200, 200), cu_k = offsets(0, 100, 100, 100)})
    local hopper = require "kernels.attention_sm90" {head = d, ragged = true}
    local O1, L1 = results()
    hopper.prepare(Q, K, K, O1, L1, {device = "sim:sm_90a", strict = true,
      more = {cu_q = cu_q, cu_k = cu_k}}):launch()
    local general = require "kernels.attention" {head = d}
    local O2, L2 = results()
    general.kernel(Q, K, K, O2, L2, 0.125, cu_q, cu_k):launch {
      grid = general.grid(200, 1, 4), block = general.block,
      device = "sim:sm_80", strict = true}
    for i = 0, 199 do
      for _, L in ipairs {L1, L2} do
        local x, y = log(0, i), L(0, i)
        assert.is_true(x == y or math.abs(x - y) < 1e-5)
      end
      for e = 0, d - 1, 5 do
        assert.equal(want(i, 0, e), O2(i, 0, e))
        assert.is_true(math.abs(want(i, 0, e) - O1(i, 0, e)) < 0.03)
      end
    end
  end)
end)

describe("ops.attention on Hopper", function()
  local HOPPER = {device = "sim:sm_90a"}

  it("uses attention_sm90 where TMA takes the operands #long", function()
    local p = oracle.problem {s = 5, t = 3, d = 128, h = 2, g = 1}
    local e = ops.explain_attention(p.Q, p.K, p.V, HOPPER)
    assert.equal("attention_sm90", e.kernel)
    assert.same({64, 128}, e.tile)
    assert.same({}, e.refused)
    assert.truthy(e:trace().source:find("wgmma", 1, true))
    assert.equal([[
1 x 5 rows, 3 keys, 2 heads of 128 that share 1, bf16, on sm_90a
  attention_sm90, tile 64x128, 2 stages, by rule]], tostring(e))
    e = ops.explain_attention(p.Q, p.K, p.V, {device = "sim:sm_80"})
    assert.equal("attention", e.kernel)
    assert.same({{"attention_sm90", "wgmma needs sm_90a, but the device is "
                  .. "sm_80"}}, e.refused)
    assert.truthy(e.text:find("\n  not attention_sm90: wgmma needs", 1, true))
    assert.is_nil(e:trace().source:find("wgmma", 1, true))
  end)

  it("uses the general kernel elsewhere", function()
    local function reason(X, o)
      o.device = "sim:sm_90a"
      local e = ops.explain_attention(X, X, X, o)
      assert.equal("attention", e.kernel)
      return e.refused[1][2]
    end
    assert.equal("it has no tile for heads of 32",
                 reason(cute.zeros({1, 5, 1, 32}, cute.bf16), {}))
  end)

  it("uses attention_bwd_sm90 for gradients where it has a tile #long",
     function()
    local function explained(p, o)
      o.device = o.device or "sim:sm_90a"
      return ops.explain_attention_backward(p.dO, p.Q, p.K, p.V, p.O, p.LSE, o)
    end
    local p = oracle.problem {s = 5, t = 3, d = 128, h = 2, g = 1}
    local slopes = cute.zeros({2}, cute.f32)
    local e = explained(p, {causal = true})
    assert.equal([[
1 x 5 rows, 3 keys, 2 heads of 128 that share 1, bf16, on sm_90a
  attention_bwd_sm90, tile 64x128, 2 stages]], tostring(e))
    assert.same({}, e.refused)
    local text = e:trace().source
    assert.truthy(text:find("wgmma", 1, true))
    assert.truthy(text:find("acquire", 1, true))
    assert.is_nil(explained(p, {deterministic = false}):trace().source:find(
      "acquire", 1, true))
    for reason, q in pairs {
      ["wgmma needs sm_90a, but the device is sm_80"] = {p, {device =
        "sim:sm_80"}},
      ["it has no tile for heads of 32"] = {oracle.problem {s = 5, d = 32}, {}},
      ["it does not compute gradients of captured tensors"] = {p, {
        alibi_slopes = slopes, gradients = {slopes}}},
    } do
      e = explained(q[1], q[2])
      assert.equal("attention_bwd", e.kernel)
      assert.same({{"attention_bwd_sm90", reason}}, e.refused)
    end
    e = explained(oracle.problem {s = 128, d = 128, h = 32, g = 1}, {})
    assert.equal(16, e.splits)
    assert.truthy(e.text:find(", 16 blocks for each tile of keys", 1, true))
    local none = cute.zeros({0, 5, 1, 64}, cute.bf16)
    raises("ops.explain_attention_backward: dQ has no elements: no kernel of "
      .. "attention is launched", function()
        return (ops.explain_attention_backward(none, none, none, none, none,
          cute.zeros({0, 1, 5}, cute.f32), HOPPER))
      end)
  end)

  it("takes no sequence, and heads of K that no row sees #long", function()
    local function x(...) return cute.full({...}, 1, cute.bf16) end
    local function cu(...) return cute.tensor({...}, cute.i32) end
    for _, c in ipairs {{cu(0), cu(0), 10, 10}, {cu(0, 0), cu(0, 50), 4, 50}} do
      local Q, K, dQ, dK = x(c[3], 8, 64), x(c[4], 1, 64), nil, nil
      local said = support.told(function()
        dQ, dK = ops.attention_backward(Q, Q, K, K, Q, cute.full({8, c[3]}, 1,
          cute.f32), {device = "sim:sm_90a", cu_q = c[1], cu_k = c[2]})
      end)
      assert.same({}, said)
      for _, t in ipairs {dQ, dK} do
        for i = 0, t.shape[1] - 1 do assert.equal(0, t(i, 0, 0)) end
      end
    end
  end)

  it("explains only calls that launch a kernel", function()
    local p = oracle.problem {s = 5, d = 64}
    local none = cute.zeros({1, 0, 1, 64}, cute.bf16)
    raises("ops.explain_attention: O has no elements, or there are no keys: no "
      .. "kernel of attention is launched", function()
        return (ops.explain_attention(p.Q, none, none, HOPPER))
      end)
  end)

  for i, d in ipairs {64, 128, 256} do
    it("is right with heads of " .. d .. support.long(i), function()
      local o = {s = 60, t = 75, d = d, b = 2, h = 4, g = 2, right = 0}
      for _, causal in ipairs {true, false} do
        o.right = causal and 0 or nil
        local p = oracle.problem(o)
        for _ = 1, 2 do  -- the second launch needs the tile counter, which the
                         -- first launch must reset to 0
          local O, L = ops.attention(p.Q, p.K, p.V, {device = "sim:sm_90a",
                                                     causal = causal})
          local out, lse = oracle.forward(p)
          near(O, out, BOUND.bf16)
          assert.is_true(select(2, oracle.distance(L, lse)) < 2e-6)
        end
      end
    end)
  end
end)

describe("ops.attention", function()
  it("gives 0 and -inf to rows without keys #long", function()
    local p = oracle.problem {s = 5, t = 3, d = 32, causal = true}
    local wide = oracle.problem {s = 5, t = 3, d = 64}
    local O, L
    for device, q in pairs {["sim:sm_80"] = p, ["sim:sm_90a"] = wide} do
      O, L = ops.attention(q.Q, q.K, q.V, {device = device, causal = true})
      assert.equal(-math.huge, L(0, 0, 1))
      assert.equal(0, O(0, 1, 0, 7))
      assert.is_true(L(0, 0, 2) > -math.huge)
    end
    local none = cute.zeros({1, 0, 1, 32}, cute.bf16)
    O, L = ops.attention(p.Q, none, none, SIM)
    for s = 0, 4 do
      assert.equal(-math.huge, L(0, 0, s))
      for e = 0, 31 do assert.equal(0, O(0, s, 0, e)) end
    end
    O, L = ops.attention(cute.zeros({0, 5, 1, 32}, cute.bf16),
      cute.zeros({0, 3, 1, 32}, cute.bf16),
      cute.zeros({0, 3, 1, 32}, cute.bf16), SIM)
    assert.equal("(0,5,1,32)", tostring(O.layout.shape and O.layout):match
      "^%b()")
    assert.equal(0, cute.size(L))
  end)

  it("takes a scale that is an integer #long", function()
    check({s = 5, t = 7, d = 32, scale = 1}, "sim:sm_80")
    local p = oracle.problem {s = 1, t = 7, d = 32}
    p.scale = 1
    near(ops.attention_decode(p.Q, p.K, p.V, {device = "sim", scale = 1}),
         oracle.forward(p), BOUND.bf16)
  end)

  it("gives NaN, not -inf, to rows with a score of NaN #long", function()
    local function attend(attention, p, device, key)
      p.K[{0, key, 0, 3}] = 0 / 0
      local O, L = attention(p.Q, p.K, p.V, {device = device})
      local x, log = O(0, 0, 0, 1), L(0, 0, 0)
      assert.is_true(x ~= x and log ~= log)
    end
    for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
      local function problem(d, h)
        return oracle.problem {s = 1, t = 70, h = h, g = 1, d = d}
      end
      attend(ops.attention, problem(64), device, 69)
      attend(ops.attention_decode, problem(64), device, 5)
      for _, h in ipairs {4, 20} do  -- with 4 heads the kernel uses mma.sync,
                                     -- with 20 wgmma
        local p = problem(576, h)
        p.V = nil
        attend(ops.attention_decode, p, device, 5)
      end
    end
  end)

  it("rejects what does not fit", function()
    local p = oracle.problem {s = 5, t = 3, d = 32, h = 3, g = 1}
    local function call(o, K, V)
      o.device = "sim"
      return function()
        return (ops.attention(o.Q or p.Q, K or p.K, V or p.V, {device = "sim",
          causal = o.causal, window = o.window, scale = o.scale,
          cu_q = o.cu_q}))
      end
    end
    raises("ops.attention: scale = 0; a finite number above 0 is needed",
           call {scale = 0})
    raises("ops.attention: window = {-1, nil}; for each side the number of "
      .. "visible keys, 0 or more, or false is needed", call {window = {-1}})
    raises("ops.attention: Q has 3 heads and K has 2; Q needs a multiple of",
      call({}, cute.zeros({1, 3, 2, 32}, cute.bf16),
           cute.zeros({1, 3, 2, 32}, cute.bf16)))
    raises("ops.attention: V is (1,4,1,32):(0,32,0,1), but K is "
      .. "(1,3,1,32):(0,32,0,1); equal shapes are needed",
      call({}, nil, cute.zeros({1, 4, 1, 32}, cute.bf16)))
    raises("ops.attention: K has elements of type f16, but Q has bf16",
      call({}, cute.zeros({1, 3, 1, 32}, cute.f16)))
    raises("ops.attention: Q is (2,3,32):(96,32,1); modes (batches, rows, "
      .. "heads, D) are needed",
      call {Q = cute.zeros({2, 3, 32}, cute.bf16)})
    raises("ops.attention: cu_q and cu_k must be given together",
      call {cu_q = cute.zeros({2}, cute.i32)})
    raises("heads of 40 elements; 32, 64, 96, 128, 192 or 256 are possible",
      call({Q = cute.zeros({1, 3, 1, 40}, cute.bf16)},
           cute.zeros({1, 3, 1, 40}, cute.bf16),
           cute.zeros({1, 3, 1, 40}, cute.bf16)))
    raises("ops.attention: sinks is (2):(1); a number for each of the 3 heads "
      .. "of Q is needed", function()
        return (ops.attention(p.Q, p.K, p.V, {device = "sim",
          sinks = cute.zeros({2}, cute.f32)}))
      end)
    raises("ops.attention_backward: sinks is (2):(1); a number for each of "
      .. "the 3 heads of Q is needed", function()
        return (ops.attention_backward(p.dO, p.Q, p.K, p.V, p.O, p.LSE,
          {device = "sim", sinks = cute.zeros({2}, cute.f32)}))
      end)
    raises("ops.attention: no option 'mask'", function()
      return (ops.attention(p.Q, p.K, p.V, {mask = 1}))
    end)
    raises("ops.attention_backward: LSE is (3):(1) of f32; (1,3,5) of f32 is "
      .. "needed", function()
        return (ops.attention_backward(p.dO, p.Q, p.K, p.V, p.O,
          cute.zeros({3}, cute.f32), SIM))
      end)
    raises("ops.attention_decode: tree is (5,4):(4,1) of i32; (5,5) or "
      .. "(1,5,5) of integers is needed", function()
        return (ops.attention_decode(p.Q, p.K, p.V, {device = "sim",
          tree = cute.zeros({5, 4}, cute.i32)}))
      end)
  end)
end)

describe("ops.attention", function()
  it("takes sequences of different lengths on wgmma #long", function()
    local lengths = {{70, 90}, {0, 4}, {3, 0}, {130, 40}, {64, 64}, {1, 70}}
    local cu_q, cu_k = positions(lengths)
    local all = oracle.problem {s = cu_q[7], t = cu_k[7], h = 2, g = 1, d = 64}
    local function rows(t)
      return cute.make_tensor(t.iterator, cute.make_layout(
        {table.unpack(t.shape, 2)}, {table.unpack(t.stride, 2)}))
    end
    local sinks = cute.tensor({0.5, 1}, cute.f32)
    local O, L = ops.attention(rows(all.Q), rows(all.K), rows(all.V), {
      device = "sim:sm_90a", causal = true, sinks = sinks,
      cu_q = cute.tensor(cu_q, cute.i32), cu_k = cute.tensor(cu_k, cute.i32),
      score_mod = function(s, at)
        return s + 0.01 * (at.q + at.b - at.k):to(cute.f32)
      end})
    for i, n in ipairs(lengths) do
      local p = {b = 1, s = n[1], t = n[2], h = 2, g = 1, d = 64, right = 0,
                 scale = all.scale, sinks = {0.5, 1}, q = {}, k = {}, v = {}}
      for j = 0, n[1] * 128 - 1 do p.q[j] = all.q[cu_q[i] * 128 + j] end
      for j = 0, n[2] * 64 - 1 do
        p.k[j], p.v[j] = all.k[cu_k[i] * 64 + j], all.v[cu_k[i] * 64 + j]
      end
      function p.modify(s, _, _, q, k) return s + 0.01 * (q + i - 1 - k) end
      local out, lse = oracle.forward(p)
      for q = 0, n[1] - 1 do
        for h = 0, 1 do
          assert.is_true(math.abs(L(h, cu_q[i] + q) - lse[h * n[1] + q]) < 1e-5)
          for e = 0, 63 do
            local x = out[(q * 2 + h) * 64 + e]
            assert.is_true(math.abs(O(cu_q[i] + q, h, e) - x) < 0.02)
          end
        end
      end
    end
  end)

  it("measures tiles #gpu", function()
    local p = oracle.problem {s = 300, t = 500, h = 2, d = 64, right = 0}
    for _ = 1, 2 do
      near(ops.attention(p.Q:to "gpu", p.K:to "gpu", p.V:to "gpu",
                         {causal = true, tune = true}):to "host",
           oracle.forward(p), BOUND.bf16)
    end
  end)

  it("multiplies heads of 192 with values of 128 #long", function()
    local p = oracle.problem {b = 2, s = 70, t = 140, h = 2, g = 1, d = 192,
                              right = 0}
    local V = cute.make_tensor(p.V.iterator, cute.make_layout(
      {2, 140, 1, 128}, p.V.stride))
    local out, lse = oracle.forward(p)
    for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
      local O, L = ops.attention(p.Q, p.K, V, {device = device, causal = true})
      assert.same({2, 70, 2, 128}, O.shape)
      assert.is_true(select(2, oracle.distance(L, lse)) < 1e-5)
      for i = 0, cute.size(p.LSE) - 1 do
        local b, s, h = i // 140, i // 2 % 70, i % 2
        for e = 0, 127 do
          local x = out[i * 192 + e]
          assert.is_true(math.abs(O(b, s, h, e) - x) < 0.02)
        end
      end
    end
    raises("ops.attention: V is (2,140,1,64):(26880,192,0,1), but K is "
      .. "(2,140,1,192):(26880,192,0,1); equal shapes are needed", function()
        return (ops.attention(p.Q, p.K, cute.make_tensor(p.V.iterator,
          cute.make_layout({2, 140, 1, 64}, p.V.stride)), SIM))
      end)
  end)

  it("adds sinks to the sums of rows #long", function()
    local list = {0.5, -30, 12, -math.huge}
    for i, d in ipairs {32, 64} do
      local p = oracle.problem {b = 2, s = 70, t = 90, h = 4, g = 2, d = d,
                                right = 0}
      p.sinks = list
      local device = ({"sim:sm_80", "sim:sm_90a"})[i]
      local O, L = ops.attention(p.Q, p.K, p.V, {device = device, causal = true,
        sinks = cute.tensor(list, i == 1 and cute.f32 or cute.bf16)})
      local out, lse = oracle.forward(p)
      assert.is_true(oracle.distance(O, out) < 6e-3)
      assert.is_true(select(2, oracle.distance(L, lse)) < 1e-5)
      local got = {ops.attention_backward(p.dO, p.Q, p.K, p.V, O, L,
                                          {device = device, causal = true})}
      for j, want in ipairs {oracle.backward(p)} do
        assert.is_true(oracle.distance(got[j], want) < 1.2e-2)
      end
    end
  end)

  it("gives the sink as LSE of rows without keys #long", function()
    local sinks = cute.tensor({0.5, -math.huge}, cute.f32)
    for _, d in ipairs {32, 64} do
      local p = oracle.problem {s = 5, t = 3, h = 2, d = d}
      local O, L = ops.attention(p.Q, p.K, p.V, {device = "sim:sm_90a",
                                                 causal = true, sinks = sinks})
      local none = cute.zeros({1, 0, 2, d}, cute.bf16)
      local _, all = ops.attention(p.Q, none, none, {device = "sim:sm_90a",
                                                     sinks = sinks})
      for s = 0, 1 do
        assert.equal(0, O(0, s, 0, 3))
        for _, t in ipairs {L, all} do
          assert.is_true(math.abs(t(0, 0, s) - 0.5) < 1e-6)
          assert.equal(-math.huge, t(0, 1, s))
        end
      end
    end
  end)
end)

describe("ops.attention_decode", function()
  it("is right for caches of different lengths #long", function()
    for _, c in ipairs {{1, 300, 2, 2, 64}, {3, 70, 4, 1, 32}} do
      local B, T, H, G, d = table.unpack(c)
      local p = oracle.problem {b = B, s = 1, t = T, h = H, g = G, d = d}
      local O, L = ops.attention_decode(p.Q, p.K, p.V, SIM)
      local out, lse = oracle.forward(p)
      near(O, out, BOUND.bf16)
      assert.is_true(select(2, oracle.distance(L, lse)) < 2e-6)
      local list = {}
      for b = 1, B do list[b] = b == 1 and T or 7 * (b - 2) end
      local lengths = cute.tensor(list, cute.i32)
      local O2, L2 = ops.attention_decode(p.Q, p.K, p.V, {device = "sim",
        lengths = lengths})
      for b = 0, B - 1 do
        local n = list[b + 1]
        local function some(t, count)
          return cute.make_tensor(t.iterator + b * t.stride[1],
            cute.make_layout({1, count, t.shape[3], d}, t.stride))
        end
        local o, l = ops.attention(some(p.Q, 1), some(p.K, n), some(p.V, n),
                                   SIM)
        for h = 0, H - 1 do
          local got, right = L2(b, h, 0), l(0, h, 0)
          assert.is_true(got == right or math.abs(got - right) < 2e-6)
          for e = 0, d - 1 do
            assert.is_true(math.abs(O2(b, 0, h, e) - o(0, 0, h, e)) < 2e-2)
          end
        end
      end
    end
  end)
end)

describe("ops.attention_decode of sequences of equal lengths", function()
  -- Returns the elements of a compact tensor as a list from index 0 on.
  local function elements(t)
    local list, memory = {}, require "cute.core".param_memory(t)
    for i = 0, cute.size(t) - 1 do list[i] = memory[i] end
    return list
  end

  -- Returns the results of a call, and for each of its launches the number of
  -- blocks in a cluster (0 without clusters).
  local function run(p, o)
    local calls = require "cute.ops.calls"
    local launch, sizes = calls.launch, {}
    function calls.launch(step, ...)
      sizes[#sizes + 1] = step.cluster and step.cluster[1] or 0
      return launch(step, ...)
    end
    local _ <close> = setmetatable({}, {__close = function()
      calls.launch = launch
    end})
    local O, L = ops.attention_decode(p.Q, p.K, p.V, o)
    return O, L, sizes
  end

  -- {sequences, heads of K and V, elements of a head, expected blocks of a
  -- cluster}
  for i, c in ipairs {{1, 2, 32, 4}, {4, 2, 128, 8}, {15, 2, 64, 4},
                      {20, 2, 32, 2}, {30, 2, 128, 2}, {52, 2, 128, 1},
                      {61, 4, 128, 1}} do
    local B, G, d, size = table.unpack(c)
    it(("takes clusters of %d blocks for %d heads%s"):format(size, B * G,
       support.long(i)), function()
        local p = oracle.problem {b = B, s = 1, t = 37, h = G, g = G, d = d}
        local list = {}
        for b = 1, B do list[b] = b % 4 == 3 and 37 - b % 38 or 37 end
        local o = {device = "sim:sm_90a", lengths = cute.tensor(list, cute.i32)}
        local O, L, sizes = run(p, o)
        assert.same(B == 1 and {size} or {0, 0}, sizes)
        o.even = true
        local O2, L2, sizes2 = run(p, o)
        assert.same({size}, sizes2)
        assert.is_true(select(2, oracle.distance(L2, elements(L))) < 2e-6)
        near(O2, elements(O), BOUND.bf16)
        local O3, L3, sizes3 = run(p, {device = "sim:sm_90a"})
        assert.same({size}, sizes3)
        if B < 5 then
          local out, lse = oracle.forward(p)
          near(O3, out, BOUND.bf16)
          assert.is_true(select(2, oracle.distance(L3, lse)) < 2e-6)
        end
      end)
  end

  it("takes parts if clusters would leave multiprocessors without work #long",
    function()
      -- Each case is {sequences, heads of K, rows of Q for each head of K}. The
      -- first has 70 heads, the second more than 16 rows. The third has 300
      -- heads, whose blocks would form two waves, the second of them short.
      for _, c in ipairs {{35, 2, 1}, {10, 2, 17}, {75, 4, 1}} do
        local B, G, rows = table.unpack(c)
        local p = oracle.problem {b = B, s = 1, t = 20, h = G * rows, g = G,
                                  d = 128}
        local _, _, sizes = run(p, {device = "sim:sm_90a"})
        assert.same({0, 0}, sizes)
      end
    end)
end)

-- Returns a view of t with `count` batches, all of which are the first batch of
-- t.
local function repeated(t, count)
  local list = {table.unpack(t.stride)}
  list[1] = 0
  return cute.make_tensor(t.iterator, cute.make_layout(
    {count, table.unpack(t.shape, 2)}, list))
end

describe("ops.attention_decode of equal sequences", function()
  it("gives them parts of equal lengths", function()
    local p = oracle.problem {b = 1, s = 1, t = 448, h = 2, g = 1, d = 64}
    local B = 3
    local o = with(SIM, {lengths = cute.full({B}, 448, cute.i32)})
    for _, options in ipairs {SIM, o} do
      local O, L = ops.attention_decode(repeated(p.Q, B), repeated(p.K, B),
                                        repeated(p.V, B), options)
      for b = 1, B - 1 do
        for h = 0, 1 do
          assert.equal(L(0, h, 0), L(b, h, 0))
          for d = 0, 63 do assert.equal(O(0, 0, h, d), O(b, 0, h, d)) end
        end
      end
    end
  end)

  it("reads a constant cache before the preceding launch ends #long", function()
    local p = oracle.problem {b = 3, s = 2, t = 140, h = 4, g = 2, d = 64}
    p.right = 0
    local want = oracle.forward(p)
    local function rows(t)  -- returns a copy of the last two rows (138 and 139)
                            -- of each batch
      local new = cute.zeros({3, 2, 2, 64}, cute.bf16)
      return ops.copy(cute.make_tensor(t.iterator + 138 * t.stride[2],
        cute.make_layout({3, 2, 2, 64}, t.stride)), new, SIM)
    end
    local k, v = rows(p.K), rows(p.V)
    local o = {device = "sim:sm_90a", constant = "cache", k = k, v = v,
               lengths = cute.full({3}, 140, cute.i32)}
    for _, x in ipairs {p.K, p.V} do  -- overwrites these rows in the cache: the
                                      -- call must store k and v there
      for b = 0, 2 do
        for s = 138, 139 do
          for g = 0, 1 do
            for d = 0, 63 do x[{b, s, g, d}] = 7 end
          end
        end
      end
    end
    near(ops.attention_decode(p.Q, p.K, p.V, o), want, BOUND.bf16)
    o.constant = "K"
    raises("ops.attention_decode: constant = \"K\"; only \"cache\" is possible",
      function() return (ops.attention_decode(p.Q, p.K, p.V, o)) end)
  end)
end)

-- Returns a tensor of numbers between -1 and 1, a pattern that depends on `by`.
local function noise(shape, by)
  local t = cute.zeros(shape, cute.bf16)
  for i = 0, cute.size(t) - 1 do t[i] = math.sin(3.7 * i + by) end
  return t
end

describe("ops.attention_decode of views", function()
  it("does not copy new keys and values of several batches #long", function()
    local elementwise = require "cute.ops.elementwise"
    local copy, copies = elementwise.copy, 0
    function elementwise.copy(...)
      copies = copies + 1
      return copy(...)
    end
    local _ <close> = setmetatable({}, {__close = function()
      elementwise.copy = copy
    end})
    local rows = noise({2, 1, 5, 32}, 1)  -- heads 0 to 2 are Q; head 3 is k;
                                          -- head 4 is v
    local function heads(first, count)
      return cute.make_tensor(rows.iterator + 32 * first, cute.make_layout(
        {2, 1, count, 32}, rows.stride))
    end
    ops.attention_decode(heads(0, 3), noise({2, 9, 1, 32}, 2),
      noise({2, 9, 1, 32}, 3), with(SIM, {k = heads(3, 1), v = heads(4, 1),
      lengths = cute.full({2}, 9, cute.i32)}))
    assert.equal(0, copies)
  end)
end)

describe("ops.attention_decode with angles", function()
  local B, T, G, d = 2, 150, 2, 64
  local Cos, Sin = cute.zeros({T, d // 2}, cute.f32),
                   cute.zeros({T, d // 2}, cute.f32)
  for i = 0, cute.size(Cos) - 1 do
    local angle = i // (d // 2) * 0.8 ^ (i % (d // 2))
    Cos[i], Sin[i] = math.cos(angle), math.sin(angle)
  end
  local lengths = cute.tensor({T, 33}, cute.i32)

  -- Compares a call that rotates S rows of Q and k itself with ops.rope.
  local function check_rotation(H, S, device)
    local Q, k, v = noise({B, S, H, d}, 1), noise({B, S, G, d}, 2),
                    noise({B, S, G, d}, 3)
    local at = cute.zeros({B, S}, cute.i32)
    for b = 0, B - 1 do
      for s = 0, S - 1 do at[{b, s}] = lengths[b] - S + s end
    end
    local sim = {device = device}
    local turn = with(sim, {positions = at})
    local caches, results = {}, {}
    for i, o in ipairs {{cos = Cos, sin = Sin, k = k},
                        {k = ops.rope(k, Cos, Sin, turn)}} do
      local K, V = noise({B, T, G, d}, 4), noise({B, T, G, d}, 5)
      caches[i] = {K, V}
      local q = i == 1 and Q or ops.rope(Q, Cos, Sin, turn)
      results[i] = ops.attention_decode(q, K, V, with(sim, with(o, {v = v,
        lengths = lengths, constant = "cache"})))
    end
    for i, t in ipairs {results[1], caches[1][1], caches[1][2]} do
      cute.testing.assert_close(t, ({results[2], caches[2][1], caches[2][2]})
        [i], {rtol = 0, atol = i == 3 and 0 or 4e-3})
    end
  end

  for _, device in ipairs {"sim:sm_90a", "sim:sm_80"} do
    it(("rotates queries and new keys on %s #long"):format(device), function()
      check_rotation(8, 1, device)
      check_rotation(4, 3, device)
    end)
  end

  it("rotates new keys that several tiles of queries read #long", function()
    check_rotation(28, 5, "sim:sm_90a")
  end)

  it("rejects tables that do not fit", function()
    local Q, K = noise({B, 1, 4, d}, 1), noise({B, T, G, d}, 4)
    local function call(more, D)
      return function()
        local q = D and cute.zeros({B, 1, 4, D}, cute.bf16) or Q
        local key = D and cute.zeros({B, T, 1, D}, cute.bf16) or K
        return (ops.attention_decode(q, key, not D and key or nil,
                                     with(SIM, more)))
      end
    end
    raises("ops.attention_decode: cos and sin must be given together",
      call {cos = Cos})
    raises("ops.attention_decode: sin is (32,150):(150,1) of f32; (150,32) of "
      .. "f32 is needed", call {cos = Cos, sin = cute.zeros({32, T}, cute.f32)})
    raises("ops.attention_decode: cos is (150,16):(16,1) of f32; (150,32) of "
      .. "f32 is needed", call {cos = cute.zeros({T, 16}, cute.f32), sin = Sin})
    raises("ops.attention_decode: sin is given; latent heads are not rotated",
      call({sin = Sin}, 576))
  end)
end)

-- A tree whose nodes are the new rows, numbered from 0. PARENTS[i] is the
-- parent of row i - 1; the root has the parent -1.
local PARENTS = {-1, 0, 0, 1, 1, 2}

-- Returns a list for each row i: element j is 1 if row j is row i or an
-- ancestor of it, else 0.
local function ancestors()
  local rows = {}
  for i, parent in ipairs(PARENTS) do
    rows[i] = table.move(rows[parent + 1] or {0, 0, 0, 0, 0, 0}, 1, 6, 1, {})
    rows[i][i] = 1
  end
  return rows
end

describe("ops.attention_decode of several rows", function()
  local S, T = #PARENTS, 150
  local function problem(H, d)
    local p = oracle.problem {b = 2, s = S, t = T, h = H, g = 2, d = d}
    p.right = 0
    return p
  end
  local function check_rows(p, o, bound)
    local O, L = ops.attention_decode(p.Q, p.K, p.V, with(SIM, o))
    local out, lse = oracle.forward(p)
    near(O, out, BOUND.bf16)
    assert.is_true(select(2, oracle.distance(L, lse)) < (bound or 2e-6))
    return O, L
  end

  it("masks the keys after a row #long", function()
    check_rows(problem(4, 64), {})
    check_rows(problem(26, 32), {batch_invariant = true})
  end)

  it("shares heads of K among more heads of Q than a tile has rows #long",
     function()
    for _, c in ipairs {{1, 71, 1, 64}, {2, 150, 2, 32}, {1, 65, 1, 128}} do
      local s, h, g, d = table.unpack(c)
      local p = oracle.problem {b = 2, s = s, t = 90, h = h, g = g, d = d}
      p.right = 0
      check_rows(p, {})
      check_rows(p, {batch_invariant = true})
    end
  end)

  it("has the same bits in any batch with batch_invariant = true #long",
    function()
      local p = oracle.problem {b = 3, s = 2, t = 1200, h = 2, g = 1, d = 32}
      local list = {40, 1200, 1100}
      local o = with(SIM, {batch_invariant = true})
      local O = ops.attention_decode(p.Q, p.K, p.V, with(o, {
        lengths = cute.tensor(list, cute.i32)}))
      for b = 0, 2 do
        local function some(t, count)
          return cute.make_tensor(t.iterator + b * t.stride[1],
            cute.make_layout({1, count, t.shape[3], 32}, t.stride))
        end
        local n = list[b + 1]
        local one = ops.attention_decode(some(p.Q, 2), some(p.K, n),
                                         some(p.V, n), o)
        local whole = some(O, 2)
        for i = 0, cute.size(one) - 1 do assert.equal(one[i], whole[i]) end
      end
    end)

  it("has rows without keys, and skips sequences without keys #long", function()
    local p = oracle.problem {b = 3, s = 3, t = 40, h = 4, g = 2, d = 32}
    local O, L = ops.attention_decode(p.Q, p.K, p.V, with(SIM, {
      lengths = cute.tensor({1, 0, 40}, cute.i32)}))
    for s = 0, 2 do
      assert.equal(-math.huge, L(1, 3, s))
      assert.equal(0, O(1, s, 3, 31))
      assert.equal(s < 2 and 0 or p.V(0, 0, 1, 31), O(0, s, 3, 31))
      assert.equal(s == 2, L(0, 3, s) > -math.huge)
    end
  end)

  it("takes trees, by a tensor or by mask_mod #long", function()
    local tree = cute.tensor(ancestors(), cute.i32)
    local p = problem(4, 64)
    function p.modify(s, _, _, q, k)
      return k - (T - S) >= 0 and tree(q, k - (T - S)) == 0 and -math.huge or s
    end
    local O, L = check_rows(p, {tree = tree})
    local O2, L2 = check_rows(p, {mask_mod = function(at)
      local new = at.k - (T - S)
      return new:lt(0) | tree(at.q, cute.max(new, 0)):ne(0)
    end})
    for i = 0, cute.size(O) - 1 do assert.equal(O[i], O2[i]) end
    for i = 0, cute.size(L) - 1 do
      assert.is_true(math.abs(L[i] - L2[i]) < 2e-6)
    end
    local both = cute.zeros({2, S, S}, cute.i8)
    for i = 0, S * S - 1 do
      both[{0, i // S, i % S}], both[{1, i // S, i % S}] = tree(i // S, i % S),
                                                           1
    end
    function p.modify(s, b, _, q, k)
      return b == 0 and k - (T - S) >= 0 and tree(q, k - (T - S)) == 0
        and -math.huge or s
    end
    check_rows(p, {tree = both})
  end)

  it("takes functions of scores #long", function()
    local p = problem(12, 32)
    local list = {}
    for h = 1, 12 do list[h] = h / 10 end
    local slope = cute.tensor(list, cute.f32)
    function p.modify(s, b, h, q, k)
      s = 2 - 4 / (math.exp(s) + 1)  -- s becomes 2 tanh(s / 2)
      return (k % 3 == 1 or b == 1) and s + slope(h) * (q + b) or -math.huge
    end
    check_rows(p, {softcap = 2, score_mod = function(s, at)
      return s + slope[at.h] * (at.q + at.b):to(cute.f32)
    end, mask_mod = function(at)
      return (at.k % 3):eq(1) | at.b:eq(1)
    end}, 1e-4)
  end)
end)

-- Rounds x, the elements of a tensor (B,T,G,d), to e4m3 times the scale of each
-- head. Returns the e4m3 tensor, whose last S rows are NaN, and a bf16 tensor
-- with these S rows unrounded.
local function narrowed(x, shape, S, scale)
  local B, T, G, d = table.unpack(shape)
  local narrow = cute.full(shape, 0 / 0, cute.e4m3)
  local last, one = cute.zeros({B, S, G, d}, cute.bf16),
                    cute.zeros({1}, cute.e4m3)
  for i = 0, #x do
    local b, t, g, e = i // (T * G * d), i // (G * d) % T, i // d % G, i % d
    local by = scale(cute.size(scale) == 1 and 0 or g)
    one[0] = x[i] / by
    if t >= T - S then
      last[{b, t - T + S, g, e}] = x[i]
    else
      narrow[{b, t, g, e}] = one[0]
    end
    x[i] = one[0] * by
  end
  return narrow, last
end

describe("ops.attention_decode of a tree", function()
  it("hides a first new key that ends a tile #long", function()
    local tree = cute.tensor({{0, 0}, {0, 1}}, cute.i32)
    for _, c in ipairs {{64, 4}, {576, 4}, {576, 20}} do
      local d, h = table.unpack(c)
      local p = oracle.problem {s = 2, t = 129, h = h, g = 1, d = d, right = 0}
      function p.modify(x, _, _, _, k) return k == 127 and -math.huge or x end
      local _, lse = oracle.forward(p)
      local _, L = ops.attention_decode(p.Q, p.K, d == 64 and p.V or nil,
        {device = "sim:sm_90a", tree = tree})
      assert.is_true(select(2, oracle.distance(L, lse)) < 2e-6)
    end
  end)
end)

describe("ops.attention_decode of e4m3", function()
  for i, c in ipairs {{1, 2, 100, 4, 2, 64}, {3, 2, 130, 8, 2, 128},
                      {2, 1, 70, 34, 1, 32}, {9, 1, 70, 8, 2, 96}} do
    it(("widens keys and values, and narrows new ones: %d of %d"):format(
      table.unpack(c, 1, 3)) .. support.long(i), function()
        local S, B, T, H, G, d = table.unpack(c)
        local p = oracle.problem {b = B, s = S, t = T, h = H, g = G, d = d}
        local by_k = cute.tensor(G == 2 and {0.5, 0.25} or {0.5}, cute.f32)
        local by_v = cute.tensor({2}, cute.f32)
        local K, k = narrowed(p.k, {B, T, G, d}, S, by_k)
        local V, v = narrowed(p.v, {B, T, G, d}, S, by_v)
        p.right = 0
        local O, L = ops.attention_decode(p.Q, K, V, with(SIM, {
          k_scale = by_k, v_scale = by_v, k = k, v = v,
          lengths = cute.full({B}, T, cute.i32)}))
        local out, lse = oracle.forward(p)
        near(O, out, BOUND.bf16)
        assert.is_true(select(2, oracle.distance(L, lse)) < 2e-6)
      end)
  end

  it("rejects other scales", function()
    local p = oracle.problem {b = 2, s = 1, t = 64, h = 2, g = 1, d = 32}
    raises("ops.attention_decode: v_scale is (3):(1) of f32; (1) or (1) of "
      .. "f32 is needed", function()
        return (ops.attention_decode(p.Q, p.K, p.V, with(SIM, {
          v_scale = cute.zeros({3}, cute.f32)})))
      end)
    raises("ops.attention_decode: V has elements of type bf16, but Q has f16",
      function()
        return (ops.attention_decode(cute.zeros({2, 1, 2, 32}, cute.f16),
          cute.zeros({2, 64, 1, 32}, cute.e4m3), p.V, SIM))
      end)
  end)
end)

-- Scatters the rows of a cache (B,T,G,d) into pages in random order. Returns
-- the pages (P,size,G,d) and the block table (B,T/size).
local function in_pages(t, size, seed)
  local B, T, G, d = table.unpack(t.shape)
  local n, order = T // size, {}
  math.randomseed(seed)
  for i = 0, B * n do  -- one page stays unused
    table.insert(order, math.random(#order + 1), i)
  end
  local pages = cute.full({B * n + 1, size, G, d}, 0 / 0, t.element_type)
  local rows = {}
  for b = 0, B - 1 do
    rows[b + 1] = {}
    for k = 0, n - 1 do
      local page = order[b * n + k + 1]
      rows[b + 1][k + 1] = page
      ops.copy(cute.make_tensor(t.iterator + (b * T + k * size) * G * d,
        cute.make_layout({size, G, d}, {G * d, d, 1})),
        pages(page, cute._, cute._, cute._), SIM)
    end
  end
  return pages, cute.tensor(rows, cute.i32)
end

-- Compares three kinds of calls: with a cache in pages, with the last keys and
-- values passed separately, and with contiguous keys.
local function check_pages(c, device)
  local B, T, H, G, d, size, S = table.unpack(c)
  local p = oracle.problem {b = B, s = S, t = T, h = H, g = G, d = d}
  local list = {}
  for b = 1, B do list[b] = math.max(S, T - 37 * (b - 1)) end
  local o = {device = device, lengths = cute.tensor(list, cute.i32)}
  local O, L = ops.attention_decode(p.Q, p.K, p.V, o)
  local K, table_ = in_pages(p.K, size, T)
  local V = in_pages(p.V, size, T)
  local new = {B, S, G, d}
  local k, v = cute.zeros(new, cute.bf16), cute.zeros(new, cute.bf16)
  local same = with(o, {block_table = table_})
  local O2, L2 = ops.attention_decode(p.Q, K, V, same)
  -- moves the last S rows of each batch from the caches to k and v
  for n = 0, B * S * G - 1 do
    local b, s, g = n // (S * G), n // G % S, n % G
    local i = list[b + 1] - S + s
    local page, at = table_(b, i // size), i % size
    for e = 0, d - 1 do
      k[{b, s, g, e}], v[{b, s, g, e}] = p.K(b, i, g, e), p.V(b, i, g, e)
      K[{page, at, g, e}], V[{page, at, g, e}] = 0 / 0, 0 / 0
      p.K[{b, i, g, e}], p.V[{b, i, g, e}] = 0 / 0, 0 / 0
    end
  end
  local O3, L3 = ops.attention_decode(p.Q, K, V, with(same, {k = k, v = v}))
  local O4, L4 = ops.attention_decode(p.Q, p.K, p.V, with(o, {k = k, v = v}))
  -- the two calls above must have stored k and v to the caches
  local O5 = ops.attention_decode(p.Q, K, V, same)
  for i = 0, cute.size(O) - 1 do
    for _, other in ipairs {O2, O3, O4, O5} do assert.equal(O[i], other[i]) end
  end
  for i = 0, cute.size(L) - 1 do
    for _, other in ipairs {L2, L3, L4} do assert.equal(L[i], other[i]) end
  end
end

-- Returns a problem of latent heads: V is the view of the first 512 elements of
-- the heads of K. Also returns O and LSE in plain Lua.
local function latent(b, s, h, t)
  local p = oracle.problem {b = b, s = s, t = t, h = h, g = 1, d = 576}
  p.right, p.v = 0, p.k
  p.V = cute.make_tensor(p.K.iterator, cute.make_layout({b, t, 1, 512},
                                                        p.K.stride))
  local out, lse = oracle.forward(p)
  local values = {}
  for i = 0, b * s * h * 512 - 1 do
    values[i] = out[i // 512 * 576 + i % 512]
  end
  return p, values, lse
end

describe("ops.attention_decode of latent heads", function()
  for i, c in ipairs {{2, 1, 16, 100, "sm_90a"}, {1, 2, 12, 70, "sm_80"},
                      {1, 2, 12, 70, "sm_90a"}, {1, 3, 23, 40, "sm_80"},
                      {1, 3, 23, 140, "sm_90a"}} do
    it(("reads keys once: %d x %d rows of %d heads, %d keys on %s"):format(
      table.unpack(c)) .. support.long(i), function()
        local p, out, lse = latent(table.unpack(c, 1, 4))
        local O, L = ops.attention_decode(p.Q, p.K, p.V,
                                          {device = "sim:" .. c[5]})
        near(O, out, BOUND.bf16)
        assert.is_true(select(2, oracle.distance(L, lse)) < 2e-6)
      end)
  end

  it("takes pages, and stores new keys #long", function()
    local p = latent(2, 2, 8, 128)
    local n = cute.tensor({128, 70}, cute.i32)
    local O, L = ops.attention_decode(p.Q, p.K, nil, with(SIM, {lengths = n}))
    local K, rows = in_pages(p.K, 64, 3)
    local k = cute.zeros({2, 2, 1, 576}, cute.bf16)
    for i = 0, 2 * 2 * 576 - 1 do
      local b, s, e = i // 1152, i // 576 % 2, i % 576
      local t = n[b] - 2 + s
      k[{b, s, 0, e}] = p.K(b, t, 0, e)
      K[{rows(b, t // 64), t % 64, 0, e}] = 0 / 0
    end
    local O2, L2 = ops.attention_decode(p.Q, K, nil, with(SIM, {lengths = n,
      k = k, block_table = rows}))
    for i = 0, cute.size(O) - 1 do assert.equal(O[i], O2[i]) end
    for i = 0, cute.size(L) - 1 do assert.equal(L[i], L2[i]) end
  end)

  it("rejects values of their own", function()
    local p = oracle.problem {s = 1, t = 9, h = 2, g = 1, d = 576}
    raises("ops.attention_decode: V is (1,9,1,576):(0,576,0,1) and K is "
      .. "(1,9,1,576):(0,576,0,1); a view of the first 512 elements of K's "
      .. "heads, or nil, is needed", function()
        return (ops.attention_decode(p.Q, p.K, p.V, SIM))
      end)
    raises("ops.attention_decode: V is missing; a tensor is needed, unless "
      .. "heads have 576 elements", function()
        return (ops.attention_decode(cute.zeros({1, 1, 2, 64}, cute.bf16),
          cute.zeros({1, 9, 1, 64}, cute.bf16), nil, SIM))
      end)
    raises("ops.attention_decode: Q is (1,1,2,576):(0,0,576,1) and K is "
      .. "(1,9,2,576):(0,1152,576,1); (B,S,H,576) and (B,T,1,576) are needed",
      function()
        return (ops.attention_decode(p.Q, cute.zeros({1, 9, 2, 576}, cute.bf16),
          nil, SIM))
      end)
  end)
end)

describe("ops.attention_decode with pages", function()
  for i, c in ipairs {{1, 320, 2, 2, 64, 64, 1}, {3, 192, 4, 1, 32, 64, 1},
                      {2, 256, 8, 2, 128, 128, 1}, {3, 192, 4, 1, 32, 64, 6},
                      {2, 256, 24, 2, 64, 128, 9}} do
    it(("equals the contiguous cache, bit for bit: %d x %d, %d new"):format(
      c[1], c[2], c[7]) .. support.long(i), function()
      check_pages(c, "sim")
    end)
  end

  it("rejects what does not fit", function()
    local p = oracle.problem {b = 2, s = 1, t = 64, h = 2, g = 1, d = 32}
    local n = cute.tensor({64, 64}, cute.i32)
    local function try(o, K)
      return function()
        return (ops.attention_decode(p.Q, K or p.K, p.V, with(SIM, o)))
      end
    end
    local row = cute.zeros({2, 1, 1, 32}, cute.bf16)
    raises("ops.attention_decode: k and v need the option lengths, the number "
      .. "of keys of each batch", try {k = row, v = row})
    raises("ops.attention_decode: k and v must be given together",
           try {k = row, lengths = n})
    raises("ops.attention_decode: v is (2,1,1,16):(16,0,0,1) of bf16; "
      .. "the shape (2,1,1,32) and the type bf16 are needed", try {
        k = row, lengths = n, v = cute.zeros({2, 1, 1, 16}, cute.bf16)})
    raises("ops.attention_decode: block_table is 2:1 of i32; (2,pages) of "
      .. "i32 is needed", try {lengths = n, block_table = n})
    local odd = oracle.problem {b = 3, s = 1, t = 48, h = 2, g = 1, d = 32}
    raises("ops.attention_decode: K is (3,48,1,32):(1536,32,0,1): pages of 48 "
      .. "keys; a multiple of 64 is needed", function()
        return (ops.attention_decode(p.Q, odd.K, odd.V, with(SIM, {lengths = n,
          block_table = cute.zeros({2, 1}, cute.i32)})))
      end)
    local wide = cute.zeros({2, 64, 1, 33}, cute.bf16)
    local view = cute.make_tensor(wide.iterator, cute.make_layout(
      {2, 64, 1, 32}, {64 * 33, 33, 33, 1}))
    raises("ops.attention_decode: K cannot be written in place: K has layout "
      .. "(2,64,1,32):(2112,33,33,1)",
      try({lengths = n, k = row, v = row}, view))
  end)

  it("reports a page that does not exist #long", function()
    local p = oracle.problem {b = 2, s = 1, t = 64, h = 2, g = 1, d = 32}
    local ok, why = pcall(ops.attention_decode, p.Q, p.K, p.V, with(SIM, {
      lengths = cute.tensor({64, 64}, cute.i32),
      block_table = cute.tensor({{0}, {2}}, cute.i32)}))
    assert.is_false(ok)
    assert.is_truthy(why:find("coordinate (2,0,0,0) of (2,64,1,32)", 1, true))
  end)
end)

-- The bound is larger here: a row that sees a single key is as large as V, so
-- bf16 rounds it by a larger amount.
local WIDE = {BOUND.bf16[1], 6e-2}

describe("ops.attention on the GPU", function()
  for _, d in ipairs {64, 128, 256} do
    it("is right with heads of " .. d .. " #gpu", function()
      for i, c in ipairs {{200, 333}, {333, 200, right = 0},
                          {260, 270, left = 70, right = 9}} do
        local p = oracle.problem {s = c[1], t = c[2], d = d, h = 4, g = 2,
          left = c.left, right = c.right, seed = i}
        local O, L = ops.attention(p.Q:to "gpu", p.K:to "gpu", p.V:to "gpu",
          {window = {p.left or false, p.right or false}})
        local out, lse = oracle.forward(p)
        near(O:to "host", out, WIDE)
        assert.is_true(select(2, oracle.distance(L:to "host", lse)) < 2e-6)
      end
    end)
  end

  it("can be captured in a graph #gpu", function()
    local p = oracle.problem {s = 700, t = 700, d = 64, h = 4, right = 0}
    local Q, K, V = p.Q:to "gpu", p.K:to "gpu", p.V:to "gpu"
    local o = {causal = true, out = {cute.zeros({1, 700, 4, 64}, cute.bf16,
      {device = "gpu"}), cute.zeros({1, 4, 700}, cute.f32, {device = "gpu"})}}
    local want = ops.attention(Q, K, V, {causal = true}):to "host"
    ops.attention(Q, K, V, o)
    local graph = cute.graph(function() ops.attention(Q, K, V, o) end)
    for _ = 1, 3 do
      o.out[1]:fill(0)
      graph:launch()
      local got = o.out[1]:to "host"
      for e = 0, cute.size(got) - 1, 7 do assert.equal(want[e], got[e]) end
    end
  end)

  it("agrees with the simulator, in later calls too #gpu", function()
    local p = oracle.problem {s = 300, t = 300, d = 64, b = 2, h = 4, g = 2}
    local o = {causal = true}
    local want, log = ops.attention(p.Q, p.K, p.V, {causal = true,
      device = "sim:sm_90a"})
    local Q, K, V = p.Q:to "gpu", p.K:to "gpu", p.V:to "gpu"
    for _ = 1, 3 do
      local O, L = ops.attention(Q, K, V, o)
      local dQ = ops.attention_backward(p.dO:to "gpu", Q, K, V, O, L, o)
      O, L, dQ = O:to "host", L:to "host", dQ:to "host"
      for e = 0, cute.size(L) - 1 do
        assert.is_true(math.abs(L[e] - log[e]) < 1e-5)
      end
      for e = 0, cute.size(O) - 1 do
        assert.is_true(math.abs(O[e] - want[e]) < 2e-2 and dQ[e] == dQ[e])
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
