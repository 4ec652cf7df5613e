-- Tests the gradients of attention by TMA and wgmma on the simulator, against
-- plain Lua. Cases: head sizes, both types, masks, heads that share keys,
-- partial and tiny tiles, and all schedules. The simulator must detect the
-- removal of a wait, a fence or a barrier.
local cute = require "cute"
local backward = require "kernels.attention_bwd_sm90"
local compiled = require "spec.kernels".compiled
local core = require "cute.core"
local oracle = require "spec.attention"
local support = require "spec.support"

local BOUND = {bf16 = {1e-2, 0.15}, f16 = {2e-3, 1e-2}}
local NAMES = {"dQ", "dK", "dV"}

-- Computes O and LSE of a problem in plain Lua, and stores them in its tensors.
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

-- Returns the kernels that `make` makes for a problem, with further options.
local function made(make, p, with)
  local all = {head = p.d, dtype = p.dtype,
               window = (p.left or p.right) and {p.left or false,
                                                 p.right or false} or nil}
  for name, x in pairs(with or {}) do all[name] = x end
  return make(all)
end

-- Runs all launches. Returns the report of the last launch, or of the first
-- faulty one.
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
    it("is right with heads of " .. d .. support.long(i), function()
      check {s = 90, t = 140, d = d, causal = true, dtype = cute.f16}
      check {s = 85, t = 85, d = d, h = 2, g = 1}
    end)
  end

  for i, with in ipairs {{deterministic = false}, {ds_stages = 1},
                         {stages = 3}, {rounded = true}, {sum_stages = 2},
                         {tile = {64, 64}, stages = 1, do_stages = 1}} do
    it(("is right with other options, %d #long"):format(i), function()
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
       support.long(i)), function()
      check {s = c[1], t = c[2], d = 64, seed = i}
      check({s = c[1], t = c[2], d = 64, causal = true, seed = i},
            {tile = {64, 64}})
    end)
  end

  it("takes batches and heads that share keys #long", function()
    check({b = 2, s = 70, t = 100, h = 4, g = 2, d = 64, causal = true},
          {tile = {64, 64}})
    check({b = 2, s = 35, t = 70, h = 6, g = 2, d = 64},
          {tile = {64, 64}, stages = 1})
  end)

  it("takes windows #long", function()
    for i, w in ipairs {{0, 5}, {20, 0}, {100, 30}, {nil, 70}, {50}} do
      check({s = 130, t = 150, d = 64, left = w[1], right = w[2], seed = i},
            {tile = {64, 64}})
    end
  end)

  it("gives zeros where rows see no key, and keys no row #long", function()
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

  it("keeps scores far below 0 apart from what follows the keys #long",
     function()
    for _, d in ipairs {64, 256} do
      local p = problem {s = 70, t = 70, d = d}
      for i = 0, cute.size(p.Q) - 1 do
        p.Q[i], p.K[i] = 8, -8  -- every score becomes -64 d
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

  it("has the same bits in every order of blocks #long", function()
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

  it("takes operands with other strides #long", function()
    local p = problem {b = 2, s = 70, t = 80, h = 2, d = 64}
    local function heads_first(t)  -- ordered (B,H,S,D)
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

describe("attention_bwd_sm90 with different tasks", function()
  it("is right with heads of 256 and 64 keys #long", function()
    check({s = 90, t = 140, d = 256, causal = true, h = 2, g = 1},
          {tasks = true})
    check({s = 130, t = 100, d = 256, dtype = cute.f16},
          {deterministic = false})
  end)
end)

---------------------------------------------------------------------------
-- Concatenated sequences of different lengths
---------------------------------------------------------------------------

-- Returns a problem whose batch consists of sequences with these lengths {rows,
-- keys}. Also returns the operands without their batch mode, and {cu_q =, cu_k
-- =}.
local function sequences(o, lengths)
  local cu = {cu_q = cute.zeros({#lengths + 1}, cute.i32),
              cu_k = cute.zeros({#lengths + 1}, cute.i32)}
  o.s, o.t = 0, 0
  for i, l in ipairs(lengths) do
    o.s, o.t = o.s + l[1], o.t + l[2]
    cu.cu_q[i], cu.cu_k[i] = o.s, o.t
  end
  local p = oracle.problem(o)
  for _, name in ipairs {"Q", "K", "V", "O", "dO", "dQ", "dK", "dV"} do
    p[name] = p[name](0, cute._, cute._, cute._)
  end
  p.LSE = p.LSE(0, cute._, cute._)
  return p, cu
end

-- Returns sequence i of a problem as a separate problem.
local function sequence(p, cu, i)
  local q, k = {cu.cu_q(i - 1), cu.cu_q(i)}, {cu.cu_k(i - 1), cu.cu_k(i)}
  local function part(x, range, heads)
    local list = {}
    for e = range[1] * heads * p.d, range[2] * heads * p.d - 1 do
      list[#list + (list[0] and 1 or 0)] = x[e]
    end
    return list
  end
  return {b = 1, s = q[2] - q[1], t = k[2] - k[1], h = p.h, g = p.g, d = p.d,
    left = p.left, right = p.right, scale = p.scale, dtype = p.dtype,
    modify = p.modify, q = part(p.q, q, p.h), k = part(p.k, k, p.g),
    v = part(p.v, k, p.g), go = part(p.go, q, p.h)}, q[1], k[1], part
end

-- Computes O and LSE of a problem of sequences, and stores them in its tensors.
local function solve_sequences(p, cu)
  local O, L, total = core.param_memory(p.O), core.param_memory(p.LSE), p.s
  for i = 1, cute.size(cu.cu_q) - 1 do
    local one, row = sequence(p, cu, i)
    local out, lse = oracle.forward(one)
    for e = 0, one.s * p.h * p.d - 1 do O[row * p.h * p.d + e] = out[e] end
    for h = 0, p.h - 1 do
      for r = 0, one.s - 1 do L[h * total + row + r] = lse[h * one.s + r] end
    end
  end
end

local function check_sequences(o, lengths, with)
  if o.causal then o.right = 0 end
  local p, cu = sequences(o, lengths)
  solve_sequences(p, cu)
  local all = {ragged = true}
  for name, x in pairs(with or {}) do all[name] = x end
  for _, launch in ipairs(made(backward, p, all).prepare(p.Q, p.K, p.V, p.O,
    p.dO, p.LSE, p.dQ, p.dK, p.dV, {scale = p.scale, device = "sim:sm_90a",
                                    strict = true, cu = cu})) do
    local r = support.report(launch:launch {faults = "return", seed = o.seed})
    assert.is_true(r.ok, tostring(r))
  end
  for i = 1, #lengths do
    local one, row, key, part = sequence(p, cu, i)
    for n, want in ipairs {oracle.backward(one)} do
      local heads, from, count = p.h, row, one.s
      if n > 1 then heads, from, count = p.g, key, one.t end
      if count > 0 then
        local list = part(core.param_memory(p[NAMES[n]]), {from, from + count},
                          heads)
        local copy = cute.zeros({count * heads * p.d}, p.dtype)
        for e = 0, #list do copy[e] = list[e] end
        local mean, most = oracle.distance(copy, want)
        assert.is_true(mean < 1e-2 and most < 0.2, ("%s of sequence %d: %g, "
          .. "%g"):format(NAMES[n], i, mean, most))
      end
    end
  end
end

describe("attention_bwd_sm90 with several blocks for a head of K", function()
  for i, d in ipairs {64, 96, 128, 192, 256} do
    it(("divides heads of Q of %d elements%s"):format(d,
       support.long(i)), function()
      check({b = 2, s = 70, t = 100, h = 4, g = 2, d = d, causal = true},
            {splits = 2})
      check({s = 40, t = 130, h = 6, g = 1, d = d},
            {splits = 3, deterministic = false})
    end)
  end

  it("divides heads of Q whose scores change #long", function()
    local function score(s, at) return s / (1 + at.h):to(cute.f32) end
    for i, c in ipairs {{64}, {256, false}, {256, true}} do
      local p, whole = problem {s = 70, t = 80, d = c[1], h = 4, g = 2,
                                seed = i}, {}
      for splits = 1, 2 do
        local r = run(backward, p, {deterministic = not c[2], tasks = c[2],
          splits = splits, modify = function() return score end})
        assert.is_true(r.ok, tostring(r))
        for _, name in ipairs(NAMES) do
          local t = p[name]
          if splits == 1 then
            whole[name] = {}
            for e = 0, cute.size(t) - 1 do
              whole[name][e] = core.param_memory(t)[e]
            end
          else
            local mean, most = oracle.distance(t, whole[name])
            assert.is_true(mean < 1e-3 and most < 0.05,
                           ("%s: %g, %g"):format(name, mean, most))
          end
        end
      end
    end
  end)
end)

describe("attention_bwd_sm90 of concatenated sequences", function()
  for i, d in ipairs {64, 128, 256, 96, 192} do
    it(("is that of each, with heads of %d #long"):format(d), function()
      for _, causal in ipairs {false, true} do
        check_sequences({h = 2, g = 1, d = d, causal = causal, seed = i},
                        {{5, 70}, {70, 130}, {64, 3}, {1, 100}})
      end
    end)
  end

  it("takes empty sequences, windows and any order of sums #long", function()
    check_sequences({h = 2, g = 2, d = 64, left = 30, right = 10},
      {{0, 0}, {64, 64}, {0, 20}, {20, 0}, {70, 80}}, {deterministic = false})
    check_sequences({h = 2, g = 1, d = 64, left = 30, right = 0},
      {{128, 128}, {0, 20}, {3, 1}, {20, 0}}, {tile = {64, 64}})
    check_sequences({h = 2, g = 1, d = 256, right = 0},
      {{5, 70}, {130, 130}, {64, 3}, {0, 9}, {1, 100}}, {tasks = true})
  end)

  it("divides the heads of Q among blocks #long", function()
    for i, c in ipairs {{64}, {256, true}, {192}} do
      check_sequences({h = 4, g = 1, d = c[1], right = 0, seed = i},
        {{5, 70}, {130, 130}, {0, 9}, {64, 3}},
        {splits = 2, tasks = c[2], deterministic = c[2] and false})
    end
  end)
end)

describe("attention_bwd_sm90", function()
  -- Returns the temporary memory that the kernels k share.
  local function memory(k, p)
    local m = {}
    for name, n in pairs(k.sizes(p.s, p.t, p.h, p.g, p.b)) do
      m[name] = cute.empty({n}, name == "turns" and cute.i32 or cute.f32)
    end
    return m
  end

  -- Checks the launches of kernels k under all schedules.
  local function verdicts(k, p, cu)
    local m = memory(k, p)
    local b = cu and cu.cu_q and cute.size(cu.cu_q) - 1 or p.b
    for i, s in ipairs(k.launches(p.s, p.t, p.h, p.g, b)) do
      local a = k.arguments(i, p, p.scale, m, cu)
      local call = s.kernel(table.unpack(a, 1, a.n))
      local v = call:check {grid = s.grid, block = s.block, gpu = false,
                            seconds = 600}
      assert.equal("ok", v.verdict, tostring(v))
      call:launch {grid = s.grid, block = s.block, device = "sim:sm_90a"}
    end
  end

  local function schedules(o, with)
    local p = problem(o)
    verdicts(made(backward, p, with), p)
  end

  local function sequence_schedules(o, lengths, with)
    if o.causal then o.right = 0 end
    local p, cu = sequences(o, lengths)
    solve_sequences(p, cu)
    p.b = #lengths
    verdicts(made(backward, p, {ragged = true,
      deterministic = with.deterministic}), p, cu)
  end

  it("is right in all schedules", function()
    schedules({s = 96, t = 130, d = 64, causal = true},
              {tile = {64, 64}, deterministic = false})
    schedules({s = 70, t = 100, d = 64}, {ds_stages = 1})
    schedules({s = 70, t = 60, d = 64, h = 2, g = 1}, {splits = 2})
  end)

  it("is right in all schedules of warpgroups with tasks #long", function()
    schedules({s = 70, t = 80, d = 256, causal = true}, {tasks = true})
  end)

  it("is right in all schedules of blocks that skip tiles #long", function()
    local function mask(at) return (at.q // 128 * 2):ne(at.k // 64) end
    local function modify(s, _, _, q, k)
      return q // 128 * 2 ~= k // 64 and s or -math.huge
    end
    local p = problem {s = 140, t = 140, d = 64, modify = modify}
    local blocks = cute.ops.block_mask(mask, {1, 1, 140, 140}, {
      device = "sim", block = {128, 64}}).blocks
    local k = made(backward, p, {list = true, modify = function()
      return nil, mask
    end})
    local by = require "kernels.block_mask_rows" {rows = 140, keys = 140,
      block = {128, 64}, tile = k.options.tile}
    local shape = by.shape(1, 1)
    local more = {lists = cute.zeros(shape, cute.i32),
                  before = cute.zeros(shape, cute.i32)}
    by.kernel(blocks, more.lists, more.before):launch {
      grid = by.grid(1, 1), block = by.block, device = "sim"}
    verdicts(k, p, more)
  end)

  it("is right in all schedules with functions of scores #long", function()
    local function score(s, at) return s * s + at.k:to(cute.f32) end
    local function mask(at) return ((at.q + at.k) % 3):ne(0) end
    for _, c in ipairs {{64}, {256, true}} do
      schedules({s = 70, t = 80, d = c[1], modify = function(s, _, _, q, k)
        return (q + k) % 3 ~= 0 and s * s + k or -math.huge
      end}, {deterministic = false, tasks = c[2],
             modify = function() return score, mask end})
    end
  end)

  it("is right in all schedules of sequences #long", function()
    sequence_schedules({h = 2, g = 1, d = 64, causal = true},
                       {{70, 90}, {20, 30}}, {deterministic = false})
  end)

  it("is right in all schedules of sequences in turn #long", function()
    sequence_schedules({h = 1, g = 1, d = 256, causal = true},
                       {{70, 90}, {20, 30}}, {})
  end)

  it("is right in all schedules of blocks that wait #long", function()
    -- Blocks wait for each other only if there are several. Each case has
    -- three blocks of keys, and two tiles of rows or two heads.
    for _, c in ipairs {{60, 130, 2}, {100, 130, 1}} do
      schedules({s = c[1], t = c[2], d = 64, causal = true, h = c[3], g = 1},
                {tile = {64, 64}})
    end
  end)

  for i, c in ipairs {{128, false, 500}, {128, true, 512}, {64, false, 512},
                      {64, true, 512}, {96, true, 500}, {192, true, 512},
                      {256, false, 512}, {256, true, 512},
                      {256, false, 512, true}} do
    it(("keeps values in registers, and products apart, %d%s%s"):format(c[1],
       c[2] and " causal" or c[4] and " tasks" or "", support.long(i, 9)),
       function()
      local p = oracle.problem {s = c[3], d = c[1]}
      local k = backward {head = c[1], causal = c[2], tasks = c[4]}
      local a = k.arguments(2, p, 1.0, memory(k, p))
      local built = compiled(k.kernel(table.unpack(a, 1, a.n)):trace {
        block = k.options.block}, "sm_90a")
      if built then
        assert.is_true(built.resources.spill_stores <= 64)
        assert.is_nil(built.log:find("serialized", 1, true))
      end
    end)
  end

end)

describe("attention_bwd_sm90's options", function()
  it("divide the heads of Q if some blocks would take long", function()
    local function splits(S, heads, group, causal)
      return backward({head = 128, rows = S, keys = S, heads = heads,
                       group = group, sms = 132, causal = causal
                       }).options.splits
    end
    -- 128 blocks keep 132 multiprocessors equally busy. With a causal mask, the
    -- first block has 16 times the rows of the last block.
    assert.equal(1, splits(2048, 8, 8))
    assert.equal(2, splits(2048, 8, 8, true))
    -- 64 blocks
    assert.equal(2, splits(512, 16, 8))
    assert.equal(4, splits(512, 16, 8, true))
    -- The fourth kernel would read 32 shares one after another.
    assert.equal(16, splits(128, 1, 32))
    -- One head of Q cannot be divided, and 8192 blocks need not be.
    assert.equal(1, splits(512, 16, 1, true))
    assert.equal(1, splits(2048, 512, 8, true))
  end)

  it("do not divide heads if something is not known or there is no head",
     function()
    for _, o in ipairs {{rows = 512}, {rows = 512, keys = 512, heads = 0,
                                       group = 8, sms = 132}} do
      o.head = 128
      assert.equal(1, backward(o).options.splits)
    end
  end)

  it("refuse to divide heads unequally", function()
    local p = oracle.problem {s = 20, d = 64, h = 3, g = 1}
    local _, why = pcall(function()
      run(backward, p, {splits = 2})
    end)
    assert.truthy(tostring(why):find("splits = 2; a divisor of 3 is needed, "
      .. "the number of heads of Q for a head of K", 1, true), tostring(why))
  end)

  it("pick the tile that keeps more multiprocessors busy", function()
    local function tile(keys, heads, causal)
      return backward({head = 256, keys = keys, heads = heads, sms = 132,
                       causal = causal}).options.tile
    end
    -- A GPU runs 132 blocks at once. 208 blocks of 80 keys and 256 blocks of 64
    -- keys both take two waves.
    assert.same({64, 64}, tile(1024, 16))
    assert.same({64, 80}, tile(1024, 16, true))
    -- 13 waves of blocks, instead of 16 with the other tile
    assert.same({64, 80}, tile(4096, 32))
    -- 4 waves of blocks with either of the tiles
    assert.same({64, 64}, tile(32768, 1))
    local any = backward {head = 256, deterministic = false}
    assert.is_true(any.options.tasks)
    assert.same({64, 64}, any.options.tile)
  end)

  it("exist, and operands fit", function()
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
      ["tasks = true with heads of 256, tile = {64, 80} and ds_stages = 1"] =
        {head = 256, tasks = true, tile = {64, 80}},
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
local P, K, TASKS = file "producer", file "kernel", file "tasks"
local FAULTS = {
  {C, "x.ready:wait(0, 0)", 1}, {C, "x.ready:wait(1, 0)", 1},
  {C, "x.acc.pipe:producer_acquire(state)", 1},
  {C, "x.acc.pipe:producer_commit(state)", 1},
  {C, "cute.arch.fence_view_async_shared()", 1},
  {C, "cute.arch.fence_view_async_shared()", 2},
  {C, "cute.arch.sync_warp()", 1},
  {C, "x.meet:arrive_and_wait()", 1}, {C, "x.own:arrive_and_wait()", 1},
  {P, "x.pipe:producer_acquire(state)", 1},
  {P, "x.acc.pipe:consumer_wait(full)", 1},
  {P, "turns.pair:wait()", 1, in_turn = true},
  {P, "turns.pair:arrive()", 1, in_turn = true},
  {P, "cute.arch.cp_async_bulk_wait_group(0)", 1, in_turn = true},
  {P, "cute.arch.cp_async_bulk_wait_group(pending, true)", 1},
  {P, "x.acc.pipe:consumer_release(read)", 1},
  {K, "pipeline.agent_sync()", 1},
  {file "parts", "warpgroup.fence()", 1},
  {file "parts", "warpgroup.commit_group()", 1},
}
-- {file, head size, {[text of a line] = which occurrences to remove, singly}}
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
    ["warpgroup.wait_group(1)"] = {2, 3, 4},
    ["warpgroup.wait_group(0)"] = {4, 5},
    ["x.meet:arrive_and_wait()"] = {3, 4, 5, 6},
    ["cute.arch.fence_view_async_shared()"] = {2, 3, 4}}},
  {TASKS, 256, {["x.q.pipe:consumer_wait(q)"] = {1},
    ["x.g.pipe:consumer_wait(g)"] = {1, 2},
    ["x.q.pipe:consumer_release(q)"] = {1, 2},
    ["x.g.pipe:consumer_release(g)"] = {1, 2},
    ["x.p.pipe:producer_acquire(free)"] = {1},
    ["x.p.pipe:producer_commit(free)"] = {1},
    ["x.p.pipe:consumer_wait(full)"] = {1},
    ["x.p.pipe:consumer_release(full)"] = {1},
    ["x.ds.pipe:producer_acquire(free)"] = {1},
    ["x.ds.pipe:producer_commit(free)"] = {1},
    ["x.ds.pipe:consumer_wait(state)"] = {1},
    ["x.ds.pipe:consumer_release(state)"] = {1},
    ["warpgroup.wait_group(0)"] = {1, 2, 3, 4, 5},
    ["cute.arch.fence_view_async_shared()"] = {1, 2, 3},
    ["cute.arch.sync_warp()"] = {2, 3, 4}}}} do
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
    it(oracle.title(f) .. support.long(i), function()
      local d = f.d or 64
      problems[d] = problems[d] or problem {s = 200, t = 90, d = d, h = 2,
                                            g = 1}
      local make = oracle.changed("attention_bwd_sm90", table.unpack(f, 1, 4))
      local ok, r = pcall(run, make, problems[d],
        {do_stages = 1, stages = d < 256 and 1 or 2,
         tile = f.in_turn and {64, 64} or nil, tasks = f[1] == TASKS,
         deterministic = f[1] == K or f.in_turn or false})
      assert.is_false(ok and r.ok)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
