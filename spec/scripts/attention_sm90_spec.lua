-- Tests attention by TMA and wgmma on the simulator, against plain Lua. Cases:
-- every head size, both types, masks, heads that share keys, partial and tiny
-- tiles, and all schedules. The simulator must detect the removal of a wait, a
-- fence or a barrier.
local cute = require "cute"
local attention = require "kernels.attention_sm90"
local compiled = require "spec.kernels".compiled
local oracle = require "spec.attention"
local order = require "kernels.attention_sm90.order"
local support = require "spec.support"

local BOUND = {bf16 = {6e-3, 4e-2}, f16 = {8e-4, 5e-3}}

-- Returns the kernel that `make` makes for a problem, with further options.
local function made(make, p, o)
  local all = {head = p.d, causal = o.causal, dtype = p.dtype,
               window = (p.left or o.window) and {p.left or false,
                                                  p.right or false} or nil}
  for name, x in pairs(o.with or {}) do all[name] = x end
  return make(all)
end

-- Returns lists of blocks in the form of kernels/block_mask, for one block of
-- rows and b * h heads. `entries` has the list for each head in turn.
local function lists(b, h, entries)
  local most = 0
  for _, e in ipairs(entries) do most = math.max(most, #e) end
  local t = cute.zeros({b, h, 1, 1 + most}, cute.i32)
  for i, e in ipairs(entries) do
    local at = t((i - 1) // h, (i - 1) % h, 0, cute._)
    at[0] = #e
    for j, x in ipairs(e) do at[j] = x end
  end
  return {blocks = t}
end

-- Runs a problem with the kernel of a maker. Returns the report.
local function run(make, o, seed)
  local p = oracle.problem(o)
  p.scale = o.scale or p.scale
  local launch = made(make, p, o).prepare(p.Q, p.K, p.V, p.O, p.LSE, {
    scale = p.scale, device = "sim:sm_90a", sms = o.sms, more = o.more,
    strict = true})
  return support.report(launch:launch {faults = "return", seed = seed}), p
end

-- Functions that change scores: {score_mod, mask_mod}, and the option `modify`
-- that does the same in plain Lua.
local function slope(s, at) return s + 0.1 * (at.k - at.q):to(cute.f32) end
local function third(at) return (at.k % 3):ne(0) end
local function modify() return slope, third, function() end end
local function sloped() return slope, nil, function() end end
local function modified(s, _, _, q, k)
  return k % 3 == 0 and -math.huge or s + 0.1 * (k - q)
end

local function check(o)
  local what = ("s=%d t=%d h=%d g=%d d=%d"):format(o.s, o.t or o.s, o.h or 1,
    o.g or o.h or 1, o.d)
  if o.causal then o.right = 0 end
  local r, p = run(attention, o, o.seed)
  assert.is_true(r.ok, what .. "\n" .. tostring(r))
  p.modify = o.modify
  local out, lse = oracle.forward(p)
  local mean, most = oracle.distance(p.O, out)
  local bound = BOUND[p.dtype.name]
  assert.is_true(mean < bound[1] and most < bound[2],
    ("%s: %g, %g"):format(what, mean, most))
  assert.is_true(select(2, oracle.distance(p.LSE, lse)) < 2e-6, what)
  return r
end

describe("attention_sm90 with the option around", function()
  it("begins with a tile's own block of keys #long", function()
    for middle, want in pairs {[5] = "5432876", [-1] = "2876543",
                               [20] = "8765432"} do
      local at, list = order.around(2, 9, middle), {}
      for i = 8, 2, -1 do list[#list + 1] = at(i) end
      assert.equal(want, table.concat(list))
    end
    for i, o in ipairs {{s = 100, t = 190}, {s = 190, t = 100},
                        {s = 150, t = 150, left = 70, right = 20}} do
      o.d, o.window, o.seed = 64, o.left ~= nil, i
      o.with = {tile = {64, 32}, around = true}
      check(o)
    end
  end)
end)

describe("attention_sm90", function()
  for i, d in ipairs {64, 96, 128, 192, 256} do
    it("is right with heads of " .. d .. support.long(i), function()
      check {s = 100, t = 230, d = d, causal = true, dtype = cute.f16}
      check {s = 256, t = 256, d = d, h = 2, g = 1, sms = 1}
    end)
  end

  -- The largest score of a row increases from each block of keys to the next.
  for i, d in ipairs {64, 96, 128, 192, 256} do
    it(("computes scores of heads of %d again if a power is too large #long")
       :format(d), function()
      for _, scale in ipairs {10, 1e4, 3e9} do
        check {s = 70, t = 330, d = d, scale = scale, seed = i}
        check {s = 70, t = 330, d = d, scale = scale, with = {rises = true}}
      end
      check {s = 70, t = 330, d = d, scale = 30, dtype = cute.f16, right = 100,
             left = 200, modify = modified, with = {modify = modify}}
    end)
  end

  for i, c in ipairs {{65, 63}, {1, 300}, {2, 64}, {1, 1}, {129, 1},
                      {200, 72}, {64, 200}} do
    it(("is right for %d rows and %d keys%s"):format(c[1], c[2],
       support.long(i)), function()
      check {s = c[1], t = c[2], d = 64, seed = i}
      check {s = c[1], t = c[2], d = 64, causal = true, seed = i,
             with = {tile = {64, 32}}}
    end)
  end

  for _, sms in ipairs {4, 1} do
    it(("takes batches and heads that share keys on %d multiprocessors #long")
       :format(sms), function()
      check {s = 140, t = 170, h = 4, g = 2, d = 64, causal = true, sms = sms,
             with = {tile = {64, 48}}}
      check {b = 2, s = 170, t = 140, h = 3, g = 1, d = 64, sms = sms,
             with = {tile = {128, 32}, q_stages = 1}}
    end)
  end

  it("takes windows #long", function()
    for _, w in ipairs {{0, 0}, {20, 0}, {100, 30}, {300, 0}, {nil, 70},
                        {50}} do
      check {s = 200, t = 230, d = 64, left = w[1], right = w[2],
             window = true, with = {tile = {128, 32}}}
    end
  end)

  it("takes functions of scores #long", function()
    for _, o in ipairs {{s = 130, t = 130, causal = true},
                        {s = 70, t = 256, h = 2, left = 90, window = true}} do
      o.d, o.modify = 64, modified
      o.with = {tile = {128, 64}, modify = modify}
      check(o)
    end
  end)

  it("multiplies the listed blocks of keys only #long", function()
    local o = {b = 2, s = 100, t = 90, h = 2, d = 64, sms = 1, scale = 10,
      with = {tile = {128, 16}, modify = modify, list = {128, 32}},
      more = lists(2, 2, {{1, 2, 5}, {}, {2}, {0, 5}})}
    local partly = {{[0] = true, false, true}, {}, {[1] = false},
                    {[0] = false, [2] = true}}
    function o.modify(s, b, h, q, k)
      local x = s + 0.1 * (k - q)
      local masked = partly[2 * b + h + 1][k // 32]
      if masked == nil or masked and k % 3 == 0 then return -math.huge end
      return x
    end
    check(o)
  end)

  it("gives zeros and -inf to rows that attend to nothing #long", function()
    local _, p = run(attention, {s = 240, t = 70, d = 64, causal = true,
                                 right = 0, with = {tile = {64, 32}}})
    for i = 0, 169 do
      assert.equal(-math.huge, p.LSE(0, 0, i))
      for j = 0, 63 do assert.equal(0, p.O(0, i, 0, j)) end
    end
    assert.is_true(p.LSE(0, 0, 170) > -math.huge)
  end)

  it("rescales when scores rise from tile to tile #long", function()
    local p = oracle.problem {s = 70, t = 300, d = 64}
    for j = 0, 299 do  -- this is the key that is processed first
      for c = 0, 63 do
        local x = p.k[j * 64 + c] * (300 - j) / 20
        p.K[{0, j, 0, c}] = x
        p.k[j * 64 + c] = p.K(0, j, 0, c)
      end
    end
    local k = attention {head = 64, tile = {128, 32}}
    local r = support.report(k.prepare(p.Q, p.K, p.V, p.O, p.LSE, {
      scale = p.scale, device = "sim:sm_90a"}):launch())
    assert.is_true(r.ok)
    local out, lse = oracle.forward(p)
    assert.is_true(oracle.distance(p.O, out) < 6e-3)
    assert.is_true(select(2, oracle.distance(p.LSE, lse)) < 2e-6)
  end)

  it("takes operands with other strides #long", function()
    local p = oracle.problem {b = 2, s = 90, t = 100, h = 2, d = 64}
    local function heads_first(t)  -- ordered (B,H,S,D)
      local b, s, h, d = table.unpack(t.shape)
      local new = cute.make_tensor(cute.zeros({b * s * h * d}, t.element_type)
        .iterator, cute.make_layout({b, s, h, d}, {h * s * d, d, s * d, 1}))
      for i = 0, cute.size(t) - 1 do new[i] = t[i] end
      return new
    end
    local Q, K, V, O = heads_first(p.Q), heads_first(p.K), heads_first(p.V),
      heads_first(p.O)
    local k = attention {head = 64, tile = {64, 32}}
    assert.is_true(support.report(k.prepare(Q, K, V, O, p.LSE, {
      scale = p.scale, device = "sim:sm_90a"}):launch()).ok)
    for i = 0, cute.size(O) - 1 do p.O[i] = O[i] end
    assert.is_true(oracle.distance(p.O, (oracle.forward(p))) < 6e-3)
  end)

end)

describe("attention_sm90", function()
  it("issues scores before it prepares the product of the last powers #long",
     function()
    for _, o in ipairs {{t = 170, causal = true}, {t = 90, scale = 10},
                        {t = 170, left = 30, right = 5, window = true},
                        {t = 170, causal = true, right = 0, modify = modified,
                         with = {tile = {128, 32}, modify = modify}}} do
      o.s, o.d, o.h, o.sms = 150, 64, 2, 1
      o.with = o.with or {tile = {128, 32}}
      o.with.early = true
      check(o)
    end
    check {s = 150, t = 300, d = 128, scale = 10, sms = 1}
  end)
end)

describe("attention_sm90", function()
  it("is right in all schedules #long", function()
    for _, o in ipairs {{s = 128, t = 48, right = 0, causal = true, sms = 1},
                        {s = 200, t = 40, h = 2, g = 1, sms = 1},
                        {s = 130, t = 60, sms = 1, causal = true, right = 0,
                         with = {tile = {128, 16}, early = true}},
                        {s = 192, t = 40, causal = true, right = 0, sms = 2,
                         with = {tile = {64, 16}}},
                        {s = 190, t = 40, sms = 1,
                         scale = 10, with = {tile = {128, 16},
                                             modify = modify}},
                        {s = 70, t = 90, h = 2, sms = 1,
                         more = lists(1, 2, {{1, 2, 5}, {}}),
                         with = {tile = {128, 16}, modify = modify,
                                 list = {128, 32}}}} do
      o.d, o.with = 64, o.with or {tile = {128, 16}}
      local p = oracle.problem(o)
      local k = made(attention, p, o)
      local v = k.kernel(table.unpack(k.arguments(p.Q, p.K, p.V, p.O, p.LSE,
        o.scale or p.scale, k.share(p.Q, p.K), o.more), 1, 12)):check {
          grid = k.grid(p.s, p.h, p.b, o.sms), block = k.block, gpu = false}
      assert.equal("ok", v.verdict, tostring(v))
    end
  end)

  it("is right in all schedules for sequences of different lengths #long",
     function()
    local Q = cute.randn({200, 1, 64}, cute.bf16)
    local K = cute.randn({60, 1, 64}, cute.bf16)
    local k = attention {head = 64, tile = {128, 16}, ragged = true}
    local more = {cu_q = cute.tensor({0, 30, 30, 200}, cute.i32),
                  cu_k = cute.tensor({0, 20, 20, 60}, cute.i32)}
    local O, LSE = cute.zeros(Q.shape, cute.bf16), cute.zeros({1, 200}, "f32")
    local a = k.arguments(Q, K, K, O, LSE, 0.1, k.share(Q, K), more)
    local v = k.kernel(table.unpack(a, 1, a.n)):check {
      grid = k.grid(200, 1, 3, 2), block = k.block, gpu = false}
    assert.equal("ok", v.verdict, tostring(v))
  end)

  it("has no bank conflict #long", function()
    for _, d in ipairs {64, 96, 128, 256} do
      local r = check {s = 128, t = 64, d = d}
      for _, l in ipairs(r.lines) do assert.equal(0, l.conflicts) end
    end
  end)

  it("keeps values in registers, and products apart #long", function()
    for _, c in ipairs {{128, false}, {64, true}, {256, true},
                        {64, false, sloped}, {128, true, modify}} do
      local p = oracle.problem {s = 512, d = c[1]}
      local k = attention {head = c[1], causal = c[2], modify = c[3]}
      local program = k.kernel(table.unpack(k.arguments(p.Q, p.K, p.V, p.O,
        p.LSE, 1.0, k.share(p.Q, p.K)), 1, 11)):trace {block = k.block}
      local built = compiled(program, "sm_90a")
      if built then
        -- The text contains the score functions twice, because the kernel may
        -- compute scores again.
        assert.is_true(built.resources.spill_stores <= (c[3] and 400 or 160))
        assert.is_nil(built.log:find("serialized", 1, true))
      end
    end
  end)

end)

describe("attention_sm90", function()
  it("has candidates that fit into registers and shared memory #long",
     function()
    local rule = require "kernels.attention_sm90.options"
    for _, o in ipairs {{head = 64}, {head = 128}, {head = 96, causal = true},
                        {head = 192}, {head = 192, value = 128}, {head = 256},
                        {head = 128, list = {128, 64}}} do
      local list, best = rule.candidates(o), attention(o).options.tile
      assert.same(best, list[1])
      assert.is_true(#list >= (o.head < 192 and 4 or 2))
      for i, tile in ipairs(list) do
        o.tile = tile
        assert.same(tile, attention(o).options.tile)
        assert.is_true(i == 1 or tile[1] ~= best[1] or tile[2] ~= best[2])
      end
    end
    local p = oracle.problem {s = 70, d = 64}
    local o = {device = "sim:sm_90a", tune = true}
    local e = cute.ops.explain_attention(p.Q, p.K, p.V, o)
    assert.same({128, 128}, e.tile)
    assert.is_true(oracle.distance(cute.ops.attention(p.Q, p.K, p.V, o),
                                   (oracle.forward(p))) < 6e-3)
  end)

  it("has tiles that waste few rows #long", function()
    for rows, want in pairs {[1] = 64, [64] = 64, [65] = 128, [128] = 128,
                             [129] = 192, [256] = 128, [512] = 192,
                             [16384] = 192} do
      assert.equal(want, attention {head = 64, rows = rows}.options.tile[1])
    end
    assert.same({64, 128}, attention {head = 128, rows = 60}.options.tile)
    assert.same({128, 128}, attention {head = 128, rows = 65}.options.tile)
    assert.same({128, 64}, attention {head = 256, rows = 1}.options.tile)
    assert.same({192, 96},
      attention {head = 64, rows = 4096, causal = true}.options.tile)
    check {s = 60, t = 200, d = 128, with = {rows = 60}, causal = true}
    check {s = 120, t = 200, d = 64, with = {rows = 120}}
  end)

  it("rejects options and operands that it does not have", function()
    for text, o in pairs {
      ["head = 80; 64, 96, 128, 192 or 256 is needed"] = {head = 80},
      ["head = nil"] = {},
      ["rows = 0; an integer from 1 to"] = {head = 64, rows = 0},
      ["a window of %-1 keys"] = {head = 64, window = {-1, 0}},
      ["elements of f32; bf16, f16 or e4m3"] = {head = 64, dtype = cute.f32},
      ["tile = {100, 64}; 64, 128 or 192 rows"] = {head = 64,
                                                   tile = {100, 64}},
      ["needs 327680 bytes of shared memory"] = {head = 256,
                                                 tile = {128, 128}},
      ["value = 64 with head = 128"] = {head = 128, value = 64},
    } do
      assert.error_matches(function() attention(o) end, text)
    end
    local p = oracle.problem {s = 64, h = 3, g = 2, d = 64}
    local k = attention {head = 64}
    local function arguments(Q, K, scale)
      return function() k.arguments(Q, K, p.V, p.O, p.LSE, scale) end
    end
    assert.error_matches(arguments(p.Q, p.K, 1.0), "Q has 3 heads and K has 2")
    assert.error_matches(arguments(p.Q, p.Q, 0.0), "scale = 0")
    assert.error_matches(arguments(p.Q, p.Q, 0 / 0), "scale = ")
    local odd = cute.make_tensor(cute.zeros({4, 68}, cute.bf16).iterator,
      cute.make_layout({1, 4, 1, 64}, {272, 68, 68, 1}))
    assert.same({false, "Q has rows that do not begin at multiples of "
                 .. "16 bytes"},
                {k.takes(odd, p.K, p.V, p.O)})
  end)
end)

---------------------------------------------------------------------------
-- Faults
---------------------------------------------------------------------------

local C, P = "attention_sm90/consumer", "attention_sm90/producer"
local WAIT_K, WAIT_V = "x.k.pipe:consumer_wait(k)", "x.v.pipe:consumer_wait(v)"
local FREE_K = "x.k.pipe:consumer_release(k)"
local FREE_V = "x.v.pipe:consumer_release(v)"
local FAULTS = {
  {C, WAIT_K, 1}, {C, WAIT_K, 2}, {C, WAIT_V, 1}, {C, WAIT_V, 2},
  {C, FREE_K, 1}, {C, FREE_K, 2}, {C, FREE_V, 1}, {C, FREE_V, 2},
  {C, "x.q.pipe:consumer_wait(x.q.state)", 1},
  {C, "warpgroup.fence()", 1}, {C, "warpgroup.fence()", 2},
  {C, "warpgroup.wait_group(0)", 1}, {C, "warpgroup.wait_group(0)", 2},
  {C, "warpgroup.wait_group(0)", 3}, {C, "warpgroup.wait_group(1)", 1},
  {C, "warpgroup.commit_group()", 1},
  {C, "turn.pass()", 1}, {C, "turn.pass()", 2}, {C, "turn.wait()", 1},
  {C, "mine:arrive_and_wait()", 2},
  {C, "meet:arrive_and_wait()", 1},
  {C, "cute.arch.fence_view_async_shared()", 1},
  {C, "cute.arch.sync_warp()", 1},
  {C, "cute.when(cute.lt(at, S),", 1, "cute.when(true,"},
  {P, "ready:wait(state.index, state.phase)", 1},
  {P, "cute.arch.cp_async_bulk_wait_group(0, true)", 1},
  {P, "q.pipe:consumer_release(state)", 1},
  {P, "x.pipe:producer_acquire(state)", 1},
}

describe("attention_sm90's faults are reported:", function()
  for i, f in ipairs(FAULTS) do
    it(oracle.title(f) .. support.long(i), function()
      local make = oracle.changed("attention_sm90", table.unpack(f, 1, 4))
      local ok, r = pcall(run, make, {s = 200, t = 200, d = 64, h = 2, sms = 1,
        scale = 10, with = {tile = {128, 32}}})
      assert.is_false(ok and r.ok)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
