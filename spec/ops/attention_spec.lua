-- cute.ops.attention, its gradients and decoding against plain Lua in f64:
-- masks, shared heads, views, sequences, rows without keys, rejected calls.
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
  local dQ, dK, dV = ops.attention_backward(p.dO, p.Q, p.K, p.V, O, L, options)
  local q, k, v = oracle.backward(p)
  near(dQ, q, GRADIENT[p.dtype.name])
  near(dK, k, GRADIENT[p.dtype.name])
  near(dV, v, GRADIENT[p.dtype.name])
end

-- Copies t into a tensor with one more mode, at position `at`. Returns the
-- slice of that tensor at index 1 of the mode.
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

describe("ops.attention", function()
  for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
    it("and its gradients are right on " .. device, function()
      check({s = 70, t = 90, d = 64, b = 2, h = 4, g = 2}, device)
      check({s = 33, t = 65, d = 32, causal = true, dtype = cute.f16}, device)
      check({s = 40, t = 40, d = 64, h = 2, g = 1, left = 9, right = 2,
             window = {9, 2}, scale = 0.1}, device)
    end)
  end

  it("takes views of one tensor, and copies others", function()
    local p = oracle.problem {s = 20, t = 20, d = 32, h = 2}
    local want = ops.attention(p.Q, p.K, p.V, SIM)
    -- 3: Q, K, V are packed side by side; 4: their elements are strided.
    for _, at in ipairs {3, 4} do
      local o = {device = "sim", out = cute.zeros({1, 20, 2, 32}, cute.bf16)}
      local O = ops.attention(view_of(p.Q, at), view_of(p.K, at),
                              view_of(p.V, at), o)
      assert.equal(o.out, O)
      for e = 0, 20 * 2 * 32 - 1 do assert.equal(want[e], O[e]) end
    end
  end)

  it("takes sequences of different lengths", function()
    local lengths, d = {{3, 5}, {0, 4}, {40, 40}}, 32
    local cu_q, cu_k = {0}, {0}
    for i, n in ipairs(lengths) do
      cu_q[i + 1], cu_k[i + 1] = cu_q[i] + n[1], cu_k[i] + n[2]
    end
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

describe("ops.attention", function()
  it("gives 0 and -inf to rows without keys", function()
    local p = oracle.problem {s = 5, t = 3, d = 32, causal = true}
    local O, L = ops.attention(p.Q, p.K, p.V, {device = "sim", causal = true})
    assert.equal(-math.huge, L(0, 0, 1))
    assert.equal(0, O(0, 1, 0, 7))
    assert.is_true(L(0, 0, 2) > -math.huge)
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
    raises("ops.attention: Q has 3 heads and K has 2; a multiple is needed",
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
    raises("ops.attention: no option 'mask'", function()
      return (ops.attention(p.Q, p.K, p.V, {mask = 1}))
    end)
    raises("ops.attention_backward: LSE is (3):(1) of f32; (1,3,5) of f32 is "
      .. "needed", function()
        return (ops.attention_backward(p.dO, p.Q, p.K, p.V, p.O,
          cute.zeros({3}, cute.f32), SIM))
      end)
    raises("ops.attention_decode: Q is (1,5,3,32):(0,96,32,1); one row for "
      .. "each batch, (B,1,H,D), is needed", function()
        return (ops.attention_decode(p.Q, p.K, p.V, SIM))
      end)
  end)
end)

describe("ops.attention_decode", function()
  it("is right for caches of different lengths", function()
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

describe("ops.attention on the GPU", function()
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
