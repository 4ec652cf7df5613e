-- Tests attention on the simulator, against plain Lua. Cases: every head size,
-- both types, masks, heads that share keys, partial and tiny tiles. The
-- simulator must detect the removal of any barrier, wait or predicate.
local cute = require "cute"
local attention = require "kernels.attention"
local compiled = require "spec.kernels".compiled
local oracle = require "spec.attention"
local support = require "spec.support"

local BOUND = {bf16 = {6e-3, 3e-2}, f16 = {8e-4, 4e-3}}

-- Runs a problem with the kernel of a maker. Returns the report.
local function run(make, o, seed)
  local p = oracle.problem(o)
  local k = make {head = p.d, causal = o.causal,
                  window = (p.left or o.window) and {p.left, p.right} or nil}
  local r = support.report(
    k.kernel(p.Q, p.K, p.V, p.O, p.LSE, p.scale):launch {
      grid = k.grid(p.s, p.h, p.b), block = k.block, device = "sim:sm_80",
      faults = "return", seed = seed})
  return r, p
end

local function check(o)
  local what = ("s=%d t=%d h=%d g=%d d=%d"):format(o.s, o.t or o.s, o.h or 1,
    o.g or o.h or 1, o.d)
  if o.causal then o.right = 0 end
  local r, p = run(attention, o, o.seed)
  assert.is_true(r.ok, what .. "\n" .. tostring(r))
  local out, lse = oracle.forward(p)
  local mean, most = oracle.distance(p.O, out)
  local bound = BOUND[p.dtype.name]
  assert.is_true(mean < bound[1] and most < bound[2],
    ("%s: %g, %g"):format(what, mean, most))
  assert.is_true(select(2, oracle.distance(p.LSE, lse)) < 2e-6, what)
  return r
end

describe("attention", function()
  for i, d in ipairs {32, 64, 96, 128, 192, 256} do
    it("is right with heads of " .. d .. support.long(i), function()
      check {s = 100, t = 130, d = d, causal = true, dtype = cute.f16}
      check {s = 128, t = 128, d = d, h = 2, g = 1}
    end)
  end

  it("is right at any size #long", function()
    for i, c in ipairs {{1, 1}, {1, 300}, {2, 64}, {129, 1}, {65, 63},
                        {200, 72}, {64, 200}} do
      check {s = c[1], t = c[2], d = 32, seed = i}
      check {s = c[1], t = c[2], d = 64, causal = true, seed = i}
    end
  end)

  it("takes batches, and heads that share keys #long", function()
    check {b = 2, s = 40, t = 70, h = 4, g = 2, d = 32, causal = true}
    check {b = 2, s = 70, t = 40, h = 3, g = 1, d = 32}
  end)

  it("takes windows #long", function()
    for _, w in ipairs {{0, 0}, {20, 0}, {100, 30}, {300, 0}, {nil, 70}} do
      check {s = 200, t = 230, d = 32, left = w[1], right = w[2],
             window = true}
    end
  end)

  it("gives zeros and -inf to rows that attend to nothing", function()
    local _, p = run(attention, {s = 140, t = 70, d = 64, causal = true,
                                 right = 0})
    for i = 0, 69 do
      assert.equal(-math.huge, p.LSE(0, 0, i))
      for j = 0, 63 do assert.equal(0, p.O(0, i, 0, j)) end
    end
    assert.is_true(p.LSE(0, 0, 70) > -math.huge)
  end)

  it("takes scores beyond the range of powers of 2", function()
    -- The score is 2 x for even keys and x for odd keys, where |x| is large.
    -- The last key, which is in another tile, has the score 0.
    local S, T, D = 20, 150, 32
    local function fill(t, f)
      for i = 0, t.shape[2] - 1 do
        for d = 0, D - 1 do t[{0, i, 0, d}] = f(i, d) end
      end
      return t
    end
    local function tensor(n) return cute.zeros({1, n, 1, D}, cute.bf16) end
    local K = fill(tensor(T), function(t, d)
      return d == 0 and t < T - 1 and 2 - t % 2 or 0
    end)
    local V = fill(tensor(T), function(t, d)
      return t == T - 1 and 7 or t % 2 == d % 2 and 1 or 3
    end)
    local k = attention {head = D}
    for _, e in ipairs {20, 31, 38, 60} do
      for sign = -1, 1, 2 do
        local Q = fill(tensor(S), function(_, d)
          return d == 0 and sign * 1.375 * 2.0 ^ e or 0
        end)
        local O, L = tensor(S), cute.zeros({1, 1, S}, cute.f32)
        k.kernel(Q, K, V, O, L, 0.75):launch {grid = k.grid(S, 1, 1),
          block = k.block, device = "sim:sm_80"}
        -- If x > 0, the result is the mean of V over the even keys; otherwise
        -- it is V of the last key.
        for i = 0, S - 1 do
          for d = 0, D - 1 do
            local want = sign < 0 and 7 or 1 + d % 2 * 2
            assert.is_true(math.abs(O(0, i, 0, d) - want) <= 0.01 * want)
          end
          local want = sign < 0 and 0 or 2 * 1.375 * 2.0 ^ e * 0.75
          assert.is_true(math.abs(L(0, 0, i) - want)
            <= 1e-6 * want + (sign < 0 and 1e-6 or 5))
        end
      end
    end
  end)

  it("requires a scale above 0", function()
    local p, k = oracle.problem {s = 40, t = 40, d = 32}, attention {head = 32}
    for _, scale in ipairs {0, -1, 0 / 0} do
      local r = support.report(k.kernel(p.Q, p.K, p.V, p.O, p.LSE, scale + 0.0)
        :launch {grid = k.grid(40, 1, 1), block = k.block, device = "sim:sm_80",
                 faults = "return"})
      assert.equal("assertion", r.reports[1].kind)
      assert.matches("the scale of attention must be above "
        .. "0", r.reports[1].message)
    end
  end)

  it("takes extents as arguments #long", function()
    local k = attention {head = 64, causal = true}
    for _, size in ipairs {{64, 64}, {100, 130}, {3, 200}} do
      local p = oracle.problem {s = size[1], t = size[2], d = 64, h = 2,
                                right = 0}
      local function dynamic(t)
        return t:mark_layout_dynamic {leading_dim = 3,
                                      divisibility = {1, 1, 1, 64}}
      end
      local r = k.kernel(dynamic(p.Q), dynamic(p.K), dynamic(p.V),
        dynamic(p.O), p.LSE:mark_layout_dynamic(), p.scale):launch {
          grid = k.grid(p.s, p.h, p.b), block = k.block, device = "sim"}
      assert.is_true(r.ok)
      assert.is_true(oracle.distance(p.O, (oracle.forward(p))) < 6e-3)
    end
  end)

  it("has no bank conflict #long", function()
    for _, d in ipairs {32, 64, 96, 128, 192, 256} do
      local r = check {s = 128, t = 64, d = d}
      for _, l in ipairs(r.lines) do assert.equal(0, l.conflicts) end
    end
  end)
end)

describe("attention", function()
  it("keeps values in registers if possible", function()
    for _, c in ipairs {{64, "sm_80", 0}, {64, "sm_90a", 0},
                        {128, "sm_90a", 32}} do
      local d, arch, most = table.unpack(c)
      local p = oracle.problem {s = 256, d = d}
      local k = attention {head = d}
      local program = k.kernel(p.Q, p.K, p.V, p.O, p.LSE, 1.0):trace {
        block = k.block}
      local made = compiled(program, arch)
      if made then
        assert.is_true(made.resources.spill_stores <= most,
          ("%d on %s: %d"):format(d, arch, made.resources.spill_stores))
      end
    end
  end)

  it("rejects head sizes without a tile", function()
    for _, o in ipairs {{head = 80}, {}, {head = 64, window = {-1, 0}},
                        {head = 64, window = {1.5}}} do
      assert.has_error(function() attention(o) end)
    end
    local p = oracle.problem {s = 64, d = 64, dtype = cute.f32}
    local k = attention {head = 64}
    assert.has_error(function()
      k.kernel(p.Q, p.K, p.V, p.O, p.LSE, 1.0):trace {block = k.block}
    end)
  end)
end)

---------------------------------------------------------------------------
-- Faults
---------------------------------------------------------------------------

local WAIT, SYNC = "cp_async_wait_group(0)", "sync_threads()"
local COMMIT = "cp_async_commit_group()"
local FAULTS = {
  {"attention", "arch." .. COMMIT, 1}, {"attention", "arch." .. COMMIT, 2},
  {"attention", "arch." .. COMMIT, 3},
  {"attention", "arch." .. WAIT, 1}, {"attention", "arch." .. SYNC, 1},
  {"attention", "arch." .. WAIT, 2}, {"attention", "arch." .. SYNC, 2},
  {"attention", "arch." .. WAIT, 3}, {"attention", "arch." .. SYNC, 3},
  {"attention", "arch." .. WAIT, 4, s = 300, t = 64},
  {"attention", "arch." .. SYNC, 4, s = 300, t = 64},
  {"attention", "cute.when(cute.gt(i, first),", 1, "cute.when(true,"},
  {"attention", "cute.when(cute.lt(row, S),", 1, "cute.when(true,"},
  {"flash", "cute.arch." .. SYNC, 1},
  {"flash", "not inner and inside(0)", 1, "inner and inside(0)"},
  {"flash", "r, dst, inside(0))", 1, "r, dst)"},
  {"flash", "acc:fill(0)", 1},
}

describe("attention's faults are reported:", function()
  for i, f in ipairs(FAULTS) do
    it(oracle.title(f) .. support.long(i, 4), function()
      local make = oracle.changed("attention", table.unpack(f, 1, 4))
      local told = 0
      for _, d in ipairs {64, 128} do
        if told > 0 then break end
        local r = run(make, {s = f.s or 130, t = f.t or 200, d = d,
                             right = f.s and 0, window = f.s}, d)
        if not r.ok then told = told + 1 end
      end
      assert.is_true(told > 0)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
