-- Tests products of few rows in f32 (kernels/gemm_dot.lua) against sums in
-- plain Lua, with random configurations, sizes and strides. Also tests for
-- which calls cute.ops chooses this kernel, and its order of additions.
local core = require "cute.core"
local cute = require "cute"
local gemm_dot = require "kernels.gemm_dot"
local ops = require "spec.ops"
local support = require "spec.support"

-- Returns a matrix (rows,k) of small whole numbers or, without `seed`, of NaNs.
-- Its rows are contiguous, with `pad` elements after each. With `first`, its
-- columns are contiguous instead.
local function matrix(rows, k, seed, pad, first)
  local across = (first and rows or k) + (pad or 0)
  local b = core.buffer("f32", across * (first and k or rows))
  if seed then b:fill_int(seed, -2, 3) else b:fill(0 / 0) end
  return cute.make_tensor(b, cute.make_layout({rows, k},
    first and {1, across} or {across, 1}))
end

-- Returns the kernel of configuration `o` after a launch on the simulator.
local function launch(o, A, B, D)
  local made = gemm_dot(o)
  made.kernel(A, B, D):launch {grid = made.grid(A.shape[1]),
                               block = made.block, device = "sim:sm_90a"}
  return made
end

-- Returns a random configuration with operands.
local function problem(number)
  local pick = ops.random(number)
  local by_columns = pick(3) == 0
  local o = {m = pick {1, 2, 3, 5, 8, 16, 17}, k = 4 * pick {1, 3, 8, 33, 65},
    n = by_columns and 4 * pick {1, 5, 8, 19} or pick {1, 7, 16, 40, 67},
    b_major = by_columns and "n" or pick {"k", false} or nil,
    count = by_columns and 4 or pick {1, 2, 4, 8}, unroll = pick {1, 2, 3},
    warps = pick {{1, 4}, {2, 2}, {1, 8}, {4, 2}, {8, 1}, {2, 8}}}
  -- The kernel is made for o.m rows, but A may have more or fewer.
  local rows = pick {o.m, 1, 19}
  return o, matrix(rows, o.k, 1, pick {0, 4}),
    matrix(o.n, o.k, 2, pick {0, 4, 12}, by_columns),
    ops.tensor(pick, {rows, o.n}, "f32")
end

local function same(_, _, _, sum) return sum end

describe("gemm_dot", function()
  for first = 1, 60, 10 do
    it(("is right: problems %d to %d"):format(first, first + 9)
       .. support.long(first, 20), function()
      for number = first, first + 9 do
        local o, A, B, D = problem(number)
        launch(o, A, B, D)
        assert.is_nil(ops.differs(A, B, D, same), number)
      end
    end)
  end

  it("adds the products of a row in one order, whatever M is", function()
    for _, c in ipairs {{4, {1, 8}, 1, "k"}, {8, {2, 4}, 1, "k"},
                        {4, {1, 16}, 2, "n"}} do
      local all = cute.randn({19, 1060}, cute.f32, {seed = 3})
      local B = matrix(36, 1060, nil, 0, c[4] == "n")
      B:copy_from(cute.randn({36, 1060}, cute.f32, {seed = 4}))
      local want
      for _, m in ipairs {19, 1, 3, 8} do
        local A = cute.make_tensor(all.iterator, cute.make_layout({m, 1060},
                                                                  {1060, 1}))
        local D = matrix(m, 36)
        launch({m = m, n = 36, k = 1060, count = c[1], warps = c[2],
                unroll = c[3], b_major = c[4]}, A, B, D)
        want = want or D
        for j = 0, 35 do assert.equal(want(0, j), D(0, j)) end
      end
    end
  end)

  it("rejects configurations that it cannot compute", function()
    for why, o in pairs {
        ["K is 6; multiples of 4 are needed"] = {n = 8, k = 6},
        ["N is 6 and count 4"] = {n = 6, k = 8, b_major = "n"},
        ["N is 8 and count 2"] = {n = 8, k = 8, b_major = "n", count = 2},
        ["b_major = \"m\"; \"k\" or \"n\" is needed"] = {n = 8, k = 8,
                                                   b_major = "m"},
        ["rows = 3 and count = 4; powers of 2"] = {n = 8, k = 8, rows = 3},
        ["warps = {3, 1}; powers of 2"] = {n = 8, k = 8, warps = {3, 1}},
        ["warps = {8, 8}; powers of 2"] = {n = 8, k = 8, warps = {8, 8}},
        ["rows = 32; an integer from 1 to 16"] = {n = 8, k = 8, rows = 32},
        ["n = nil"] = {k = 8}} do
      local ok, text = pcall(gemm_dot, o)
      assert.is_false(ok, why)
      assert.matches(why, text, 1, true)
    end
  end)
end)

-- Returns cute.ops.explain for operands with these extents and strides.
local function explain(m, n, k, of, device)
  of = of or {}
  local A = cute.make_tensor(cute.empty({1}, of.dtype or cute.f32).iterator,
    cute.make_layout({m, k}, of.a or {k, 1}))
  local B = cute.make_tensor(cute.empty({1}, of.dtype or cute.f32).iterator,
    cute.make_layout({n, k}, of.b or {k, 1}))
  return cute.ops.explain(A, B, {device = device or "sim:sm_90a",
                                 tf32 = of.tf32})
end

describe("cute.ops", function()
  it("chooses gemm_dot for few rows of f32", function()
    for _, m in ipairs {1, 2, 8, 16, 25, 32} do
      assert.equal("gemm_dot", explain(m, 4096, 4096).kernel)
      assert.equal("gemm_dot", explain(m, 4096, 4096, {b = {1, 4096}}).kernel)
    end
    assert.equal("gemm_dot", explain(8, 4096, 4096, nil, "sim:sm_80").kernel)
    for _, e in ipairs {explain(33, 4096, 4096), explain(8, 64, 64,
        {dtype = cute.bf16}), explain(8, 4096, 4096, {tf32 = true})} do
      assert.not_equal("gemm_dot", e.kernel)
      for _, r in ipairs(e.refused) do assert.not_equal("gemm_dot", r[1]) end
    end
  end)

  it("explains why it does not", function()
    for _, case in ipairs {
        {{8, 64, 66}, {}, "K to be a multiple of 4, but it is 66"},
        {{8, 66, 64}, {b = {1, 66}}, "N to be a multiple of 4, but it is 66"},
        {{8, 64, 64}, {a = {66, 1}}, "rows at multiples of 16 bytes, but A is"},
        {{8, 64, 64}, {a = {1, 8}}, "rows at multiples of 16 bytes, but A is"},
        {{8, 64, 64}, {b = {1, 66}},
         "columns at multiples of 16 bytes, but B is "}} do
      local m, n, k = table.unpack(case[1])
      local e = explain(m, n, k, case[2])
      local found
      for _, r in ipairs(e.refused) do
        if r[1] == "gemm_dot" then found = r[2] end
      end
      assert.matches(case[3], found, 1, true)
    end
  end)

  it("computes batches, factors and epilogues with gemm_dot", function()
    local A = cute.randint(-2, 3, {3, 5, 132}, cute.f32, {seed = 1})
    local B = cute.randint(-2, 3, {3, 24, 132}, cute.f32, {seed = 2})
    local bias = cute.randint(-2, 3, {24}, cute.f32, {seed = 3})
    local o = {device = "sim:sm_90a", alpha = 2, epilogue = function(acc, at)
      local y = acc + at:col(bias)
      return y, at:row_reduce("sum", y), at:col_reduce("max", y)
    end}
    assert.equal("gemm_dot", cute.ops.explain(A, B, o).kernel)
    local D, rows, columns = cute.ops.gemm(A, B, o)
    local most = {}
    for l = 0, 2 do
      for i = 0, 4 do
        local all = 0
        for j = 0, 23 do
          local y = bias(j)
          for k = 0, 131 do y = y + 2 * A(l, i, k) * B(l, j, k) end
          assert.equal(y, D(l, i, j))
          all, most[24 * l + j] = all + y,
            math.max(y, most[24 * l + j] or -math.huge)
        end
        assert.equal(all, rows(l, i))
      end
    end
    for at, y in pairs(most) do assert.equal(y, columns(at // 24, at % 24)) end
  end)

  it("gives equal bits where ops.explain describes equal orders", function()
    local gemm = require "cute.ops.gemm"
    local plans = require "cute.ops.plan"
    local A = cute.randn({5, 1060}, cute.f32, {seed = 5})
    local B = cute.randn({24, 1060}, cute.f32, {seed = 6})
    local p, list, call = gemm.offers(A, B, {device = "sim:sm_90a"})
    local by, tested = {}, 0
    for _, c in ipairs(list) do
      if c.base == "gemm_dot" then
        local D = plans.new(p, c, call):run(call)
        local want = by[c.order]
        by[c.order] = want or D
        for i = 0, want and cute.size(D) - 1 or -1 do
          assert.equal(want[i], D[i], c.order)
        end
        tested = tested + (want and 1 or 0)
      end
    end
    assert.is_true(tested > 0)
  end)
end)
-- SPDX-License-Identifier: MIT
