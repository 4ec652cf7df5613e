-- Tests products whose matrices are repacked for the Hopper kernel
-- (cute.ops.family.repack). Random products are compared with plain Lua. Also
-- tests which operands are repacked, how the call explains it, and calls with
-- other options.
local calls = require "cute.ops.calls"
local choices = require "cutelua.text.choice"
local choose = require "cute.ops.choose"
local core = require "cute.core"
local cute = require "cute"
local elementwise = require "cute.ops.elementwise"
local kernels = require "spec.kernels"
local offers = require "cute.ops.gemm".offers
local ops = require "spec.ops"
local plans = require "cute.ops.plan"
local tuned = require "cute.ops.tuned"

local SIM = "sim:sm_90a"

-- Returns the best of a call's candidates that repack operands, the call's
-- problem, and the call.
local function moved(A, B, C, o)
  local p, list, call = offers(A, B, o, C)
  for _, c in ipairs(list) do
    if c.base == "moved" then return c, p, call end
  end
end

local function none() end

-- Runs the best candidate that repacks operands, and returns its result.
local function run(A, B, C, o)
  local c, p, call = moved(A, B, C, o)
  return plans.new(p, c, call):run(call, none)
end

local function rows(shape, dtype, seed)
  return ops.tensor(ops.random(seed), shape, dtype, seed, "k")
end

-- Returns a tensor of this shape and stride that begins at element `first` of
-- its memory.
local function laid(shape, stride, dtype, seed, first)
  local l = cute.make_layout(shape, stride)
  local b = core.buffer(dtype, cute.cosize(l) + (first or 0))
  b:fill_int(seed, -2, 3)
  local t = cute.make_tensor(b, cute.make_layout {1})
  return cute.make_tensor(t.iterator + (first or 0), l)
end

local function plain(_, _, _, sum) return sum end

---------------------------------------------------------------------------
-- Random products
---------------------------------------------------------------------------

-- Types of A, B and D.
local TYPES = {{"bf16", "bf16", "f32"}, {"f16", "f16", "f16"},
  {"f32", "f32", "f32", tf32 = true}, {"i8", "u8", "i32"},
  {"e4m3", "e5m2", "f32"}, {"bf16", "i8", "f32"}, {"f16", "e4m3", "f32"}}

-- Kinds of products. Each function returns three values: random options of
-- ops.gemm; the operand C or nil; and a function that computes the expected
-- element of D from its sum.
local ENDINGS = {
  [0] = function(pick, shape, d)
    return {out = ops.tensor(pick, shape, d)}, nil, plain
  end,
  function(pick, shape, d)
    local C = ops.tensor(pick, shape, d, 5)
    return {beta = 2}, C, function(batch, i, j, sum)
      return sum + 2 * ops.at(C, batch, i, j)
    end
  end,
  function(pick, shape, d)
    local D, was = ops.tensor(pick, shape, d), {}
    ops.each_of(shape, function(c, n) D[c], was[n] = n % 5, n % 5 end)
    return {out = D, accumulate = true}, nil, function(batch, i, j, sum)
      local c, n = {table.unpack(batch)}, 0
      c[#c + 1], c[#c + 2] = i, j
      for mode, at in ipairs(c) do n = n * shape[mode] + at end
      return sum + was[n]
    end
  end,
  function(pick, shape)
    local n = shape[#shape]
    local v = ops.tensor(pick, {1, n}, "f32", 4)
    v = cute.make_tensor(v.iterator, cute.make_layout({n}, {v.stride[2]}))
    local R = ops.tensor(pick, shape, "bf16", 6)
    return {epilogue = function(acc, at)
      local y = acc:to(cute.f32) + at:col(v) + at:tile(R)
      return y, at:row_reduce("max", y), y * 2.0
    end}, nil, function(batch, i, j, sum)
      return sum + v(j) + ops.at(R, batch, i, j)
    end
  end,
  function() return {}, nil, plain end,
}

local function random(number, device)
  local pick = ops.random(number)
  local t = pick(TYPES)
  local m, n, k = pick {1, 17, 40, 70, 130}, pick {1, 9, 24, 50, 133},
    pick {1, 16, 33, 64, 67, 100}
  local batch = pick(3) == 0 and pick {{2}, {3}, {2, 3}} or {}
  local function shape(r, c)
    local s = {table.unpack(batch)}
    s[#s + 1], s[#s + 2] = r, c
    return s
  end
  local A = ops.tensor(pick, shape(m, k), t[1], 3 * number + 1)
  local B = ops.tensor(pick, pick(3) == 0 and {n, k} or shape(n, k), t[2],
                       3 * number + 2)
  local o, C, want = ENDINGS[pick(5)](pick, shape(m, n), t[3])
  o.device, o.tf32, o.dtype = device or SIM, t.tf32, cute[t[3]]
  local c, p, call = moved(A, B, C, o)
  if not c then return false end
  local function to(x) return device and x and x:to(device) or x end
  if device then
    if o.epilogue or o.out then return false end
    c, p, call = moved(to(A), to(B), to(C), o)
  end
  local D, _, E = plans.new(p, c, call):run(call, none)
  if device then D = D:to "host" end
  local wrong = ops.differs(A, B, D, want)
    or E and ops.differs(A, B, E, function(...) return 2 * want(...) end)
  if wrong then
    error(("%d: %s, %s moved: %s"):format(number, table.concat(t, " "),
                                         c.moved.words, wrong))
  end
  return true
end

describe("repacked operands", function()
  it("give Lua's results for random operands #long", function()
    local count = 0
    for number = 1, 30 do count = count + (random(number) and 1 or 0) end
    assert.is_true(count > 24, count)
  end)

  it("does so on a GPU #gpu", function()
    local count = 0
    for number = 1000, 1100 do
      count = count + (random(number, "gpu") and 1 or 0)
    end
    assert.is_true(count > 30, count)
  end)

  it("has gates, whose rows of B it makes of columns", function()
    for _, how in ipairs {"k", "m"} do
      local A = ops.tensor(ops.random(1), {33, 67}, "bf16", 1, how)
      local B = ops.tensor(ops.random(2), {80, 67}, "bf16", 2, "m")
      local D = run(A, B, nil, {device = SIM, gated = true, dtype = cute.f32,
        epilogue = function(gate, up) return gate + 2.0 * up end})
      local halves = {}
      for h = 0, 1 do
        local half = cute.make_tensor(B.iterator + 40 * h * B.stride[1],
          cute.make_layout({40, 67}, {B.stride[1], B.stride[2]}))
        ops.each(A, half, D, function(_, i, j, sum)
          local n = i * 40 + j
          halves[n] = (halves[n] or 0) + (h + 1) * sum
        end)
      end
      ops.each_of({33, 40}, function(c, n)
        assert.equal(halves[n], D(table.unpack(c)))
      end)
    end
  end)

  it("are A, B or D, depending on which does not fit #long", function()
    local good, odd = {70, 64}, {70, 67}
    for _, c in ipairs {
        {rows(odd, "bf16", 1), rows({48, 67}, "bf16", 2), "A, B"},
        {rows(good, "bf16", 1), rows({45, 64}, "bf16", 2), "D"},
        {laid(good, {64, 1}, "bf16", 1, 1), rows({48, 64}, "bf16", 2), "A"},
        {laid(good, {0, 1}, "bf16", 1), rows({48, 64}, "bf16", 2), "A"},
        {laid(good, {2, 140}, "bf16", 1), rows({48, 64}, "bf16", 2), "A"},
        {rows(good, "e4m3", 1), laid({48, 64}, {1, 48}, "e4m3", 2), "B"},
        {rows(good, "bf16", 1), rows({48, 64}, "i8", 2), "B as bf16"},
        {rows(odd, "f16", 1), rows({45, 67}, "e5m2", 2), "A, B as f16, D"},
        -- TMA accepts these strides, but not the address of the first
        -- element.
        {laid(good, {1, 72}, "bf16", 1), laid({48, 64}, {1, 49}, "bf16", 2),
         "B"},
        -- All batches share one matrix of A, which is repacked only once.
        {laid({3, 70, 64}, {0, 67, 1}, "bf16", 1), rows({3, 48, 64}, "bf16", 2),
         "A"},
        {laid({2, 3, 70, 64}, {70 * 67, 0, 67, 1}, "bf16", 1),
         rows({2, 3, 45, 64}, "bf16", 2), "A, D"}} do
      local o = {device = SIM, dtype = c[1].element_type.bits == 8 and cute.f32
        or nil}
      local choice, p, call = moved(c[1], c[2], nil, o)
      assert.equal(c[3], choice.moved.words)
      local D = plans.new(p, choice, call):run(call, none)
      assert.is_nil(ops.differs(c[1], c[2], D, plain), c[3])
    end
    local A = laid({3, 70, 64}, {0, 67, 1}, "bf16", 1)
    local c = moved(A, rows({3, 48, 64}, "bf16", 2), nil, {device = SIM})
    assert.equal(70 * 64, cute.cosize(c.moved.A.layout))
  end)

  it("leave the memory between D's elements unchanged", function()
    local all = laid({40, 151}, {151, 1}, "bf16", 3)
    local was = {}
    ops.each_of({40, 151}, function(c, n) was[n] = all(table.unpack(c)) end)
    local function part(from, n)
      return cute.make_tensor(all.iterator + from, cute.make_layout({40, n},
                                                                    {151, 1}))
    end
    local A, B = part(0, 67), rows({45, 67}, "bf16", 2)
    run(A, B, nil, {device = SIM, out = part(80, 45)})
    assert.is_nil(ops.differs(A, B, part(80, 45), plain))
    ops.each_of({40, 151}, function(c, n)
      if c[2] < 80 or c[2] >= 125 then
        assert.equal(was[n], all(table.unpack(c)))
      end
    end)
  end)
end)

---------------------------------------------------------------------------
-- Explanations
---------------------------------------------------------------------------

local function stand_in(shape, dtype, stride)
  return cute.make_tensor(cute.empty({1}, dtype).iterator,
    cute.make_layout(shape, stride or cute.LayoutRight))
end

describe("repacking matrices", function()
  local function square(n, dtype) return stand_in({n, n}, dtype or "bf16") end

  it("is chosen and reported if it is faster", function()
    local e = cute.ops.explain(square(4095), square(4095), {device = SIM})
    assert.same({"gemm_sm90", "A, B, D"}, {e.kernel, e.moved})
    assert.matches("\n  gemm_sm90 with A, B, D repacked %([%d.]+ us%), tile %d",
                   e.text)
    assert.matches("\n  why: Hopper tensor cores, after operands are repacked "
      .. "for TMA and wgmma; by rule\n", e.text, 1, true)
    assert.matches("\n  not gemm_sm90: TMA needs rows at multiples of 16 "
      .. "bytes, but those of A are 4095 elements", e.text, 1, true)
    e = cute.ops.explain(square(255), square(255), {device = SIM})
    assert.is_nil(e.moved)
  end)

  it("is no option if nothing or too much prevents TMA", function()
    for _, c in ipairs {{square(64)}, {square(67, "f32")},
                        {square(67, "f64")},
                        {square(67), {device = "sim:sm_80"}}} do
      local o = c[2] or {}
      o.device = o.device or SIM
      assert.is_nil(moved(c[1], c[1], nil, o))
      local e = cute.ops.explain(c[1], c[1], o)
      for _, r in ipairs(e.refused) do assert.not_equal("moved", r[1]) end
    end
    -- Even with repacked operands, gemm_sm90 does not apply here, so explain
    -- must not mention repacking.
    local e = cute.ops.explain(rows({3, 5, 67}, "bf16", 1),
      rows({3, 48, 67}, "bf16", 2), {device = SIM, gated = true,
        epilogue = function(x, y) return x * y end})
    local said
    for _, r in ipairs(e.refused) do said = r[1] == "moved" and r[2] or said end
    assert.is_nil(said)
    e = cute.ops.explain(rows({5, 67}, "bf16", 1), rows({46, 67}, "bf16", 2), {
      device = SIM, gated = true, epilogue = function(x, y) return x * y end})
    for _, r in ipairs(e.refused) do said = r[1] == "moved" and r[2] or said end
    assert.is_nil(said)
  end)

  it("has names that tables of the tuner know", function()
    local p, list = offers(square(1023), square(1023), {device = SIM})
    local seen, count = {}, 0
    for _, c in ipairs(list) do
      local name = choose.name(c)
      assert.is_nil(seen[name], name)
      seen[name] = c
      count = count + (name:find "^moved %d+x%d+x%d+" and 1 or 0)
    end
    assert.is_true(count > 10)
    assert.equal("bf16 bf16 bf16 tn row", tuned.class(p))
  end)

  it("has sizes of 64 bits", function()
    local A, B = stand_in({70001, 40001}, "bf16"),
      stand_in({70003, 40001}, "bf16")
    local c, p, call = moved(A, B, nil, {device = SIM,
      out = stand_in({70001, 70003}, "bf16")})
    assert.equal("A, B, D", c.moved.words)
    local plan = plans.new(p, c, call)
    assert.is_true(4 * plan.floats >= 2 * (70001 * 40001 + 70003 * 40001
                                           + 70001 * 70003))
    assert.is_true(plan.moved.D.at > 1 << 31)
    local to = stand_in({70001, 40001}, "bf16", c.moved.A.stride)
    local step = elementwise.converting(A, to)
    local list = step.arguments({operands = {A}}, {to})
    assert.truthy(step.kernel(table.unpack(list, 1, list.n)):trace {
      block = step.block, arch = "sm_90a"}.source:find "long long")
  end)

  it("has memory that is little more than it needs", function()
    local large = 1 << 22
    for _, c in ipairs {{3000, 4096}, {large, large},
                        {large + 1, large + (1 << 19)},
                        {large + (1 << 19) + 1, large + (1 << 20)}} do
      assert.equal(c[2], cute.size(calls.work("host", c[1])))
    end
  end)

  it("does not read ahead its own results", function()
    local function text(A, B, words)
      local o = {device = SIM, constant = "B"}
      local c, p, call = moved(A, B, nil, o)
      assert.equal(words, c.moved.words)
      local without = run(A, B, nil, {device = SIM})
      local D = plans.new(p, c, call):run(call, none)
      ops.each_of(D.shape, function(at)
        assert.equal(without(table.unpack(at)), D(table.unpack(at)))
      end)
      return choices.text(p, choose.choose(p)), c.options.ahead
    end
    local _, is_ahead = text(rows({64, 67}, "bf16", 1),
      rows({128, 67}, "bf16", 2), "A, B")
    assert.is_nil(is_ahead)
    _, is_ahead = text(laid({64, 512}, {515, 1}, "bf16", 1),
                       rows({128, 512}, "bf16", 2), "A")
    assert.is_not_nil(is_ahead)
  end)
end)

describe("repacking matrices", function()
  it("keeps sums of 8-bit floats to the bits of aligned ones", function()
    local A = cute.randn({20, 640}, cute.e4m3, {seed = 1})
    local B = cute.randn({160, 640}, cute.e4m3, {seed = 2})
    local function padded(t)
      return cute.make_tensor(cute.zeros({20 * 641}, cute.e4m3).iterator,
        cute.make_layout({20, 640}, {641, 1})):copy_from(t)
    end
    local o = {device = SIM, batch_invariant = true, dtype = cute.f32}
    local X = padded(A)
    local D, E = cute.ops.gemm(A, B, o), cute.ops.gemm(X, B, o)
    assert.is_nil(cute.ops.explain(A, B, o).moved)
    assert.equal("A", cute.ops.explain(X, B, o).moved)
    ops.each_of({20, 160}, function(c)
      assert.equal(D(table.unpack(c)), E(table.unpack(c)))
    end)
    -- First the contents change, then an operand. The repeated calls must
    -- repack again.
    X:fill(1)
    B:fill(0.5)
    assert.equal(320, cute.ops.gemm(X, B, o)(19, 159))
    assert.equal(640, cute.ops.gemm(padded(cute.full({20, 640}, 2, cute.e4m3)),
                                    B, o)(19, 159))
  end)

  it("compiles, copies and all", function()
    for _, t in ipairs {"bf16", "i8"} do
      local A, B = rows({70, 131}, t, 1), laid({45, 131}, {1, 47}, t, 2)
      local c, p, call = moved(A, B, nil, {device = SIM})
      local plan = plans.new(p, c, call)
      kernels.compiles(plan:trace(call), {"sm_90a"})
      local out = plan:outputs(call)
      local work, turns = plan:memory(call)
      local names = {}
      for i, l in ipairs(plan:launches(call, out, work, turns)) do
        names[i] = l[1] == plan and "product" or "copy"
        if l[1] ~= plan then
          kernels.compiles(l[1].kernel(table.unpack(l[2], 1, l[2].n)):trace {
            block = l[1].block, arch = "sm_90a"}, {"sm_90a"})
        end
      end
      assert.same({"copy", "copy", "product", "copy"}, names)
    end
  end)

  it("is done again by repeated calls, and in graphs #gpu", function()
    local A, B = rows({300, 1001}, "i8", 1):to "gpu",
      laid({200, 1001}, {1, 201}, "i8", 2):to "gpu"
    local o = {out = cute.zeros({300, 201}, cute.i32, {device = "gpu"})}
    o.out = cute.make_tensor(o.out.iterator, cute.make_layout({300, 200},
                                                              {201, 1}))
    local c, p, call = moved(A, B, nil, o)
    assert.equal("A, B, D", c.moved.words)
    local plan, ready = plans.new(p, c, call), {}
    plan:run(call, function(r) ready[#ready + 1] = r end)
    assert.equal(4, #ready[1].steps)
    local graph = cute.graph(function() plan:run(call, none) end)
    core.param_memory(o.out):memset(0)
    graph:launch()
    cute.synchronize "gpu"
    assert.is_nil(ops.differs(A:to "host", B:to "host", o.out:to "host", plain))
  end)
end)
-- SPDX-License-Identifier: MIT
