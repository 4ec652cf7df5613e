-- Tests the lists of blocks that ops.block_mask returns against plain Lua. Also
-- tests attention that skips blocks by these lists, in both kernels.
local cute = require "cute"
local oracle = require "spec.attention"
local support = require "spec.support"
local ops, raises = cute.ops, support.raises

local NONE = -math.huge

-- Returns the entries of a list of blocks: {2 * key block + partial, ...}.
local function entries(m, b, h, i)
  local list = {}
  for j = 1, m.blocks(b, h, i, 0) do list[j] = m.blocks(b, h, i, j) end
  return list
end

-- Computes the expected entries in plain Lua. seen(b, h, q, k) is the mask.
local function expected(seen, m, b, h, i)
  local list, M, N = {}, m.block[1], m.block[2]
  local S, T = m.shape[3], m.shape[4]
  for j = 0, (T + N - 1) // N - 1 do
    local some, all = false, true
    for q = i * M, math.min(i * M + M, S) - 1 do
      for k = j * N, j * N + N - 1 do
        local x = k < T and seen(b, h, q, k)
        some, all = some or x, all and x
      end
    end
    if some then list[#list + 1] = 2 * j + (all and 0 or 1) end
  end
  return list
end

local parts = {}
for i = 0, 299 do parts[i + 1] = i // 110 end
local HOST = cute.tensor(parts, cute.i32)
local documents = HOST  -- HOST, or its copy on the call's device

-- {name, mask_mod, the same mask in plain Lua, B and H of the mask}
local CASES = {
  {"causal", function(at) return at.k:le(at.q) end,
   function(_, _, q, k) return k <= q end, 1, 1},
  {"documents", function(at)
    return documents[at.q]:eq(documents[at.k])
  end, function(_, _, q, k) return q // 110 == k // 110 end, 1, 1},
  {"a window for each head", function(at)
    return (at.q - at.k):lt(100 * at.h + 50) & at.k:le(at.q)
  end, function(_, h, q, k) return k <= q and q - k < 100 * h + 50 end, 1, 2},
  {"other keys in each batch", function(at)
    return (at.k // 130):eq(at.b) & at.q:ne(3)
  end, function(b, _, q, k) return k // 130 == b and q ~= 3 end, 2, 1},
}

-- Compares attention with a block mask against plain Lua. p.want keeps the
-- results of plain Lua for the next device.
local function check(device, case, p, o)
  local function place(t) return device == "gpu" and t:to "gpu" or t end
  documents = place(HOST)
  local m = ops.block_mask(case[2], {case[4], case[5], p.s, p.t}, o)
  p.modify = function(s, b, h, q, k)
    return case[3](b, h, q, k) and s or NONE
  end
  local O, L = ops.attention(place(p.Q), place(p.K), place(p.V),
                             {device = device, block_mask = m})
  p.want = p.want or {oracle.forward(p)}
  local mean, most = oracle.distance(O:to "host", p.want[1])
  assert.is_true(mean < 6e-3 and most < 5e-2, ("%g, %g"):format(mean, most))
  assert.is_true(select(2, oracle.distance(L:to "host", p.want[2])) < 1e-4)
  return O, L, m
end

describe("ops.block_mask", function()
  for i, case in ipairs(CASES) do
    it("lists the blocks of " .. case[1] .. support.long(i), function()
      documents = HOST
      for _, shape in ipairs {{case[4], case[5], 150, 300},
                              {case[4], case[5], 256, 128}} do
        for _, block in ipairs {{128, 128}, {256, 64}} do
          local m = ops.block_mask(case[2], shape, {device = "sim",
                                                    block = block})
          for b = 0, case[4] - 1 do
            for h = 0, case[5] - 1 do
              for r = 0, cute.size(m.blocks, 2) - 1 do
                assert.same(expected(case[3], m, b, h, r), entries(m, b, h, r))
              end
            end
          end
        end
      end
    end)

    it("skips the hidden blocks of " .. case[1] .. " on the GPU #gpu",
       function()
      for _, d in ipairs {32, 64, 128, 192, 256} do
        local p = oracle.problem {b = 2, s = 200, t = 300, h = 2, g = 1, d = d}
        check("gpu", case, p, {device = "gpu"})
      end
    end)
  end

end)

-- Compares the gradients of attention with a block mask against plain Lua.
local function check_gradients(device, case, p, o, with)
  local O, L, m = check(device, case, p, o)
  local function place(t) return device == "gpu" and t:to "gpu" or t end
  local all = {device = device, block_mask = m}
  for name, x in pairs(with or {}) do all[name] = x end
  local got = {ops.attention_backward(place(p.dO), place(p.Q), place(p.K),
                                      place(p.V), O, L, all)}
  p.gradients = p.gradients or {oracle.backward(p)}
  for i, want in ipairs(p.gradients) do
    local mean, most = oracle.distance(got[i]:to "host", want)
    assert.is_true(mean < 6e-3 and most < 8e-2, ("%g, %g"):format(mean, most))
  end
end

describe("block_mask_rows", function()
  -- Fills the lists of a block mask at random. Returns the lists as a tensor,
  -- and a table: state[i][j] is 1 if the mask hides some scores of block (i,j),
  -- 0 if it hides none, and nil if it hides all.
  local function random_mask(rows, columns)
    local blocks, state = cute.zeros({1, 1, rows, 1 + columns}, cute.i32), {}
    for i = 0, rows - 1 do
      local n = 0
      state[i] = {}
      for j = 0, columns - 1 do
        local x = math.random(-2, 1)
        if x >= 0 then
          n, state[i][j] = n + 1, x
          blocks[{0, 0, i, n}] = 2 * j + x
        end
      end
      blocks[{0, 0, i, 0}] = n
    end
    return blocks, state
  end

  it("lists the visible rows for each tile of keys", function()
    math.randomseed(7)
    for _, c in ipairs {{700, 900, {128, 128}, {64, 80}},
                        {300, 200, {256, 64}, {128, 192}},
                        {5000, 130, {128, 192}, {64, 128}},
                        {64, 1000, {128, 64}, {32, 16}}} do
      local S, T, block, tile = table.unpack(c)
      local blocks, state = random_mask((S + block[1] - 1) // block[1],
                                        (T + block[2] - 1) // block[2])
      local k = require "kernels.block_mask_rows" {rows = S, keys = T,
                                                   block = block, tile = tile}
      local lists = cute.zeros(k.shape(1, 1), cute.i32)
      local before = cute.zeros(k.shape(1, 1), cute.i32)
      k.kernel(blocks, lists, before):launch {grid = k.grid(1, 1),
                                              block = k.block, device = "sim"}
      local last = {}  -- for each tile of rows, 1 + the last tile of keys that
                       -- it sees
      for n = 0, (T - 1) // tile[2] do
        local count = 0
        for m = 0, (S - 1) // tile[1] do
          local some, all = false, true
          for key = n * tile[2], math.min((n + 1) * tile[2], T) - 1 do
            local x = state[m * tile[1] // block[1]][key // block[2]]
            some, all = some or x ~= nil, all and x == 0
          end
          if some then
            count = count + 1
            assert.equal(2 * m + (all and 0 or 1), lists(0, 0, n, count))
            assert.equal(last[m] or 0, before(0, 0, n, count))
            last[m] = n + 1
          end
        end
        assert.equal(count, lists(0, 0, n, 0))
      end
    end
  end)
end)

describe("attention with a block mask and its gradients", function()
  for i, case in ipairs(CASES) do
    it("are right for " .. case[1] .. support.long(i), function()
      local p = oracle.problem {b = 2, s = 140, t = 210, h = 2, g = 1, d = 64}
      check_gradients("sim:sm_80", case, p, {device = "sim"})
      check_gradients("sim:sm_90a", case, p, {device = "sim",
                                              block = {256, 64}})
    end)

    it("are right for " .. case[1] .. " on the GPU #gpu", function()
      for k, d in ipairs {64, 128, 256} do
        local p = oracle.problem {b = case[4], s = 140, t = 210, h = 2, g = 1,
                                  d = d}
        check_gradients("gpu", case, p, {device = "gpu"},
                        {deterministic = (k + i) % 2 == 0})
      end
    end)
  end

  it("are right for all head sizes, in any order, causal #long", function()
    for n, d in ipairs {32, 64, 96, 128, 192, 256} do
      local p = oracle.problem {s = 140, t = 210, h = 2, g = 1, d = d,
                                right = 0}
      for way, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
        local case = {"parts", function(at)
          return ((at.q // 64 + at.k // 64 + at.h) % 2):eq(0)
        end, function(_, h, q, k)
          return (q // 64 + k // 64 + h) % 2 == 0
        end, 1, 2}
        p.modify = function(s, b, h, q, k)
          return case[3](b, h, q, k) and s or NONE
        end
        local m = ops.block_mask(case[2], {1, 2, 140, 210}, {
          device = "sim", block = {128, 64}})
        local O, L = ops.attention(p.Q, p.K, p.V, {device = device,
          causal = true, block_mask = m})
        local got = {ops.attention_backward(p.dO, p.Q, p.K, p.V, O, L, {
          device = device, causal = true, block_mask = m,
          deterministic = (n + way) % 2 == 0})}
        p.gradients = p.gradients or {oracle.backward(p)}
        for i, want in ipairs(p.gradients) do
          assert.is_true(oracle.distance(got[i], want) < 6e-3)
        end
      end
    end
  end)

  it("have the values of mask_mod alone, and load no hidden block #long",
    function()
      local function mask(at) return at.k:lt(100) & at.q:lt(70) end
      for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
        local p = oracle.problem {s = 300, t = 384, d = 64}
        local m = ops.block_mask(mask, {1, 1, 300, 384}, {device = device})
        local O, L = ops.attention(p.Q, p.K, p.V, {device = device,
                                                   block_mask = m})
        local function gradients(o)
          o.device = device
          return {ops.attention_backward(p.dO, p.Q, p.K, p.V, O, L, o)}
        end
        local all = gradients {mask_mod = mask}
        for e = 0, 63 do
          p.V[{0, 300, 0, e}], p.Q[{0, 290, 0, e}] = 0 / 0, 0 / 0
        end
        local some = gradients {block_mask = m}
        for i = 1, 3 do
          for e = 0, cute.size(all[i]) - 1 do
            assert.equal(all[i][e], some[i][e])
          end
        end
      end
    end)
end)

-- Reports whether block mask m lets row q see key k, by the mask's bits.
local function bit(m, b, h, q, k)
  local M, N = m.block[1], m.block[2]
  local at = k % N
  local word = m.bits(b, h, q // M, k // N, q % M,
                      at // 128 * 4 + at % 8 // 2)
  return word >> (at % 128 // 8 * 2 + at % 2) & 1 == 1
end

describe("the bits of a block mask", function()
  it("are those of the mask, and 0 after the last key #long", function()
    documents = HOST
    for _, case in ipairs(CASES) do
      local S, T = 150, 280
      for _, block in ipairs {{128, 128}, {256, 256}} do
        local m = ops.block_mask(case[2], {case[4], case[5], S, T},
          {device = "sim", block = block, bits = true})
        for q = 0, S - 1, 7 do
          for k = 0, 383 do
            local b, h = k % case[4], q % case[5]
            assert.equal(k < T and case[3](b, h, q, k), bit(m, b, h, q, k))
          end
        end
      end
    end
  end)

  for _, d in ipairs {64, 128, 256} do
    it(("replace the mask in attention with heads of %d #long"):format(d),
       function()
      local device = "sim:sm_90a"
      local p = oracle.problem {s = 140, t = 300, h = 2, d = d}
      local function attend(o)
        o.device = "sim"
        local m = ops.block_mask(CASES[3][2], {1, 2, 140, 300}, o)
        return m, ops.attention(p.Q, p.K, p.V, {device = device,
                                                block_mask = m})
      end
      local _, O, L = attend {}
      for _, block in ipairs {{128, 128}, {256, 256}} do
        local m, out, logs = attend {bits = true, block = block}
        for e = 0, cute.size(O) - 1 do assert.equal(O[e], out[e]) end
        for e = 0, cute.size(L) - 1 do assert.equal(L[e], logs[e]) end
        m.bits:fill(0)
        logs = select(2, ops.attention(p.Q, p.K, p.V, {device = device,
                                                       block_mask = m}))
        for q = 0, 139 do assert.equal(NONE, logs(0, 0, q)) end
      end
    end)
  end
end)

describe("attention with a block mask", function()
  it("has the bits of mask_mod alone, and loads fewer keys #long", function()
    local p = oracle.problem {s = 140, t = 384, d = 64}
    local function mask(at) return at.k:lt(100) & at.q:ne(5) end
    for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
      local m = ops.block_mask(mask, {1, 1, 140, 384}, {device = device})
      local O, L = ops.attention(p.Q, p.K, p.V, {device = device,
                                                 block_mask = m})
      local all, logs = ops.attention(p.Q, p.K, p.V, {device = device,
                                                      mask_mod = mask})
      for i = 0, cute.size(O) - 1 do assert.equal(all[i], O[i]) end
      for i = 0, cute.size(L) - 1 do assert.equal(logs[i], L[i]) end
      assert.equal(NONE, L(0, 0, 5))
      -- V of hidden blocks is not read, so a NaN there has no effect.
      for e = 0, 63 do p.V[{0, 300, 0, e}] = 0 / 0 end
      local again = ops.attention(p.Q, p.K, p.V, {device = device,
                                                  block_mask = m})
      for i = 0, cute.size(O) - 1 do assert.equal(O[i], again[i]) end
      for e = 0, 63 do p.V[{0, 300, 0, e}] = 0 end
    end
  end)

  it("gives 0 and -inf where all blocks are hidden #long", function()
    local p = oracle.problem {s = 256, t = 256, d = 64}
    local m = ops.block_mask(function(at) return at.q:ge(128) end,
                             {1, 1, 256, 256}, {device = "sim"})
    for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
      local O, L = ops.attention(p.Q, p.K, p.V, {device = device,
                                                 block_mask = m})
      for _, q in ipairs {0, 77, 127} do
        for e = 0, 63 do assert.equal(0, O(0, q, 0, e)) end
        assert.equal(NONE, L(0, 0, q))
      end
      assert.is_true(L(0, 0, 128) > NONE)
    end
  end)

  it("may have no keys", function()
    local m = ops.block_mask(function(at) return at.k:lt(9) end, {1, 1, 5, 0},
                             {device = "sim"})
    assert.equal(0, m.blocks(0, 0, 0, 0))
    local p = oracle.problem {s = 5, d = 64}
    local none = cute.zeros({1, 0, 1, 64}, cute.bf16)
    for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
      local O, L = ops.attention(p.Q, none, none, {device = device,
        block_mask = m, sinks = cute.tensor({0.5}, cute.f32)})
      assert.equal(0, O(0, 4, 0, 63))
      assert.is_true(math.abs(L(0, 0, 4) - 0.5) < 1e-6)
    end
  end)

  it("combines with causal, windows, score_mod and every head size #long",
     function()
    for i, d in ipairs {32, 64, 96, 128, 192, 256} do
      local p = oracle.problem {s = 200, t = 330, h = 2, d = d, right = 0,
                                left = i % 2 == 0 and 90 or nil}
      local m = ops.block_mask(function(at) return (at.k % 256):lt(130) end,
                               {1, 1, 200, 330}, {device = "sim"})
      p.modify = function(s, _, _, q, k)
        return k % 256 < 130 and s + 0.01 * (k - q) or NONE
      end
      local want = oracle.forward(p)
      for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
        local O = ops.attention(p.Q, p.K, p.V, {device = device, causal = true,
          window = p.left and {p.left, false}, block_mask = m,
          score_mod = function(s, at)
            return s + 0.01 * (at.k - at.q):to(cute.f32)
          end})
        assert.is_true(oracle.distance(O, want) < 6e-3)
      end
    end
  end)

  it("rejects other arguments, in one sentence", function()
    local function mask(at) return at.k:le(at.q) end
    local p = oracle.problem {s = 5, t = 40, d = 32}
    local m = ops.block_mask(mask, {1, 3, 5, 40}, {device = "sim"})
    local function attend(o)
      return function()
        o.device = "sim"
        return (ops.attention(p.Q, p.K, p.V, o))
      end
    end
    for said, f in pairs {
      ["ops.attention: block_mask was made for scores of shape (1,3,5,40), but "
        .. "the scores of Q and K have the shape (1,1,5,40)"]
        = attend {block_mask = m},
      ["ops.attention: block_mask is {}; a result of ops.block_mask is needed"]
        = attend {block_mask = {}},
      ["ops.attention: block_mask and mask_mod are given together; block_mask "
        .. "has its own mask"] = attend {block_mask = m, mask_mod = mask},
      ["ops.block_mask: block = {64, 128}; a multiple of 128 rows and of 64 "
        .. "keys, up to 1024, is needed"] = function()
          ops.block_mask(mask, {1, 1, 5, 40}, {block = {64, 128}})
        end,
      ["ops.block_mask: bits = true with blocks of 64 keys; a multiple of 128 "
        .. "is needed"] = function()
          ops.block_mask(mask, {1, 1, 5, 40}, {block = {128, 64}, bits = true})
        end,
      ["ops.block_mask: shape[4] is nil; the extents {B, H, S, T}"] =
        function() ops.block_mask(mask, {1, 1, 5}) end,
      ["ops.block_mask: mask_mod returns 1; a boolean is needed"] = function()
        ops.block_mask(function() return 1 end, {1, 1, 5, 5}, {device = "sim"})
      end,
    } do
      raises(said, f)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
