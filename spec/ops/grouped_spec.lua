-- Tests cute.ops.grouped_gemm against plain Lua, with kernels of all families.
-- Groups have any number of rows, and are concatenated or masked. Also tests
-- lists of problems, and the errors for wrong calls.
local cute = require "cute"
local grouped = require "spec.grouped"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local support = require "spec.support"
local raises = support.raises
local grouped_gemm = cute.ops.grouped_gemm

local SIMS = {gemm_sm90 = "sim:sm_90a", gemm_sm80 = "sim:sm_80",
              gemm_sm100 = "sim:sm_100a"}

local function right(c)
  for family, device in pairs(SIMS) do
    -- gemm_sm100 does not support scale factors for blocks of K.
    if family ~= "gemm_sm100" or c.scales == "each" or not c.scales then
      assert.is_nil(grouped.wrong(c, family, device), grouped.text(c))
    end
  end
end

-- small cases of every kind
local CASES = {
  {form = "rows", sizes = {70, 0, 1, 130, 64}, N = 72, K = 96, skip = 3},
  {form = "masked", sizes = {70, 0, 1, 130, 64}, N = 72, K = 96, most = 130},
  {form = "rows", sizes = {0, 0, 0}, N = 16, K = 32, skip = 9},
  {form = "masked", sizes = {0, 0}, N = 16, K = 32, most = 5},
  {form = "rows", sizes = {150}, N = 24, K = 64, where = cute.i64},
  {form = "masked", sizes = {33}, N = 24, K = 64, most = 40, d = "f16",
   dtype = "f16", where = cute.i32},
  {form = "rows", sizes = {64, 3, 128, 65}, N = 136, K = 128, epilogue = true},
  {form = "masked", sizes = {64, 3, 65}, N = 40, K = 64, most = 70,
   epilogue = true, alpha = 2.0},
  {form = "rows", sizes = {5, 0, 70}, N = 40, K = 64, gated = true, skip = 2},
  {form = "masked", sizes = {70, 2}, N = 40, K = 64, most = 80, gated = true},
  {form = "rows", sizes = {70, 0, 5}, N = 136, K = 256, dtype = "e4m3",
   scales = "blocks", skip = 1},
  {form = "masked", sizes = {70, 5}, N = 72, K = 256, dtype = "e4m3",
   most = 71, scales = "rows"},
  {form = "rows", sizes = {7, 64}, N = 40, K = 64, dtype = "e4m3", d = "bf16",
   scales = "each"},
  {form = "masked", sizes = {7, 64}, N = 40, K = 64, dtype = "e4m3",
   most = 64, scales = "each", alpha = 0.5},
}

describe("products of groups", function()
  for i, c in ipairs(CASES) do
    it(("are right: %d, %s"):format(i, grouped.text(c)) .. support.long(i),
       function()
      right(c)
    end)
    it(("are right on a card: %d, %s #gpu"):format(i, grouped.text(c)),
       function()
      for _, family in ipairs {"gemm_sm90", "gemm_sm80"} do
        assert.is_nil(grouped.wrong(c, family, "gpu"))
      end
    end)
  end

  it("are right at random #long", function()
    for n = 101, 104 do
      if not support.skipped(n, 3) then right(grouped.random(n)) end
    end
  end)
  it("are right at random on a card #gpu", function()
    for n = 201, 230 do
      local c = grouped.random(n)
      assert.is_nil(grouped.wrong(c, "gemm_sm90", "gpu"), grouped.text(c))
    end
  end)

  local function compiled(c, family)
    local A, B, where, o = grouped.problem(c)
    o.device, o.expected_m = SIMS[family], 2000
    local e = grouped.by(family, cute.ops.explain_grouped, A, B, where, o)
    local out = kernels.compiled(e:trace(), SIMS[family]:match "sm_.*")
    return out and out.resources.spill_stores or 0
  end

  for nth, i in ipairs {1, 8, 9, 11} do
    it("are kernels that compile, without spills: " .. i .. support.long(nth),
       function() assert.equal(0, compiled(CASES[i], "gemm_sm90")) end)
  end

  it("are kernels of gemm_sm80 that compile #long", function()
    compiled(CASES[2], "gemm_sm80")
    compiled(CASES[9], "gemm_sm80")
  end)

  it("describe their kernel", function()
    local A = cute.empty({9000, 512}, cute.bf16)
    local B = cute.empty({8, 1024, 512}, cute.bf16)
    local ends = cute.zeros({9}, cute.i32)
    local e = cute.ops.explain_grouped(A, B, ends, {device = "sim:sm_90a"})
    assert.equal("gemm_sm90", e.kernel)
    assert.matches("^9000 x 1024 x 512, 8 groups, bf16 x bf16 %-> bf16",
                   tostring(e))
    assert.equal("gemm_grouped", cute.ops.explain_grouped(A, B, ends,
      {device = "sim:sm_80"}).kernel)
    -- Groups with few rows get tiles of few rows.
    assert.equal(64, grouped.by("gemm_sm90", cute.ops.explain_grouped, A, B,
      ends, {device = "sim:sm_90a", expected_m = 4}).tile[1])
  end)

  it("of columns are served by mma.sync: TMA wants 16 bytes", function()
    local o = {device = "sim:sm_90a"}
    local ends = cute.tensor({0, 5, 5, 18}, cute.i32)
    local B = cute.full({3, 16, 32}, 1, cute.bf16)
    local rows = cute.full({18, 32}, 2, cute.bf16)
    local columns = cute.select(cute.full({32, 24}, 2, cute.bf16), {1, 0})
    columns = cute.local_tile(columns, {18, 32}, {0, 0})
    local D = cute.select(cute.zeros({16, 24}, cute.bf16), {1, 0})
    D = cute.local_tile(D, {18, 16}, {0, 0})
    for _, c in ipairs {{columns, nil, "A"}, {rows, D, "D"}} do
      o.out = c[2]
      local e = cute.ops.explain_grouped(c[1], B, ends, o)
      assert.equal("gemm_grouped", e.kernel)
      assert.matches("columns of " .. c[3] .. " must not be contiguous",
                     tostring(e), 1, true)
      local out = grouped_gemm(c[1], B, ends, o)
      for row = 0, 17 do assert.equal(64, out(row, 15)) end
    end
  end)

  it("return new results without out, of the default types", function()
    local A = cute.full({3, 4, 16}, 2, cute.e4m3)
    local B = cute.full({3, 8, 16}, 1, cute.e4m3)
    local counts = cute.tensor({4, 1, 0}, cute.i32)
    local D, copy = grouped_gemm(A, B, counts, {device = "sim",
      epilogue = function(acc) return acc, (acc * 2):to(cute.f16) end})
    assert.equal(cute.bf16, D.element_type)
    assert.equal("(3,4,8):(32,8,1)", tostring(D.layout))
    assert.same({32, 64}, {D(1, 0, 7), copy(0, 3, 0)})
    assert.equal(cute.f16, copy.element_type)
  end)
end)

describe("errors of groups", function()
  local A = cute.full({10, 16}, 1, cute.bf16)
  local B = cute.full({2, 8, 16}, 1, cute.bf16)
  local M = cute.full({2, 10, 16}, 1, cute.bf16)
  local function refuses(text, ...)
    raises(text, grouped_gemm, ...)
  end
  local function ends(...) return cute.tensor({...}, cute.i32) end

  it("report operands", function()
    refuses("(8,16):(16,1); (E,N,K) is needed", A,
      cute.full({8, 16}, 1, cute.bf16), ends(0, 5, 10), {device = "sim"})
    refuses("A is (10,16):(16,1) and B is (2,8,24):(192,24,1): K is 16 in one "
      .. "and 24 in the other", A, cute.full({2, 8, 24}, 1, cute.bf16),
      ends(0, 5, 10), {device = "sim"})
    refuses("A is (2,10,16):(160,16,1) and B is (3,8,16):(128,16,1): E is 2 in "
      .. "one and 3 in the other", M, cute.full({3, 8, 16}, 1, cute.bf16),
      ends(1, 2, 3), {device = "sim"})
    refuses("out is (9,8):(8,1); (10,8) is needed", A, B, ends(0, 5, 10),
      {device = "sim", out = cute.zeros({9, 8}, cute.bf16)})
    refuses("no kernel multiplies f32 by f32", cute.full({10, 16}, 1, cute.f32),
      cute.full({2, 8, 16}, 1, cute.f32), ends(0, 5, 10), {device = "sim"})
  end)

  it("report offsets and counts", function()
    refuses("offsets are 2:1 and B is (2,8,16):(128,16,1): 3 numbers are "
      .. "needed for 2 groups: the start of each, and the end of the "
      .. "last", A, B,
      ends(5, 10), {device = "sim"})
    refuses("counts are 3:1 and B is (2,8,16):(128,16,1): 2 numbers are "
      .. "needed for 2 groups", M, B, ends(1, 2, 3), {device = "sim"})
    refuses("offsets have type f32; i32 or i64 is needed", A, B,
      cute.zeros({3}, cute.f32), {device = "sim"})
    refuses("offsets is nil; a tensor is needed", A, B)
    -- The second call takes the fast path, which must also reject these
    -- operands.
    for _ = 1, 2 do
      refuses("offsets[2] is 11; 0 to 10 rows are possible", A, B,
              ends(0, 5, 11), {device = "sim"})
      refuses("offsets[2] is 4, less than the offset before, 5: offsets must "
        .. "not decrease", A, B,
              ends(0, 5, 4), {device = "sim"})
      refuses("counts[1] is -1; 0 to 10 rows are possible", M, B, ends(3, -1),
              {device = "sim"})
      grouped_gemm(A, B, ends(0, 5, 10), {device = "sim"})
    end
  end)

  it("report options", function()
    refuses("ops.grouped_gemm: alpha = \"x\": a number is needed", A, B,
            ends(0, 5, 10), {device = "sim", alpha = "x"})
    refuses("ops.grouped_gemm: no option 'beta'", A, B, ends(0, 5, 10),
            {device = "sim", beta = 2})
    refuses("scale_b is (8):(1): (1), (2,8), (2,8,1) or (2,1,1) is needed for "
      .. "2 x 8 rows and 16 elements of K", A, B, ends(0, 5, 10),
      {device = "sim", scale_b = cute.zeros({8}, cute.f32)})
    refuses("grouped products do not support reductions", A, B, ends(0, 5, 10),
      {device = "sim", epilogue = function(acc, at)
        return acc, at:row_reduce("sum", acc)
      end})
    refuses("gated = true needs an epilogue function", A, B, ends(0, 5, 10),
            {device = "sim", gated = true})
    refuses('dtype = "f99"; this type does not exist', A, B, ends(0, 5, 10),
            {device = "sim", dtype = "f99"})
    refuses("dtype = f32, but out has type bf16", A, B, ends(0, 5, 10),
      {device = "sim", dtype = "f32", out = cute.zeros({10, 8}, cute.bf16)})
  end)

  it("report results in memory that is read", function()
    local D = cute.zeros({10, 8}, cute.i32)
    local where = cute.make_tensor(D.iterator, cute.make_layout {3})
    refuses("out shares memory with offsets", A, B, where,
            {device = "sim", out = D})
    local A3 = cute.full({2, 5, 16}, 1, cute.bf16)
    refuses("out shares memory with counts", A3, B,
      cute.make_tensor(D.iterator, cute.make_layout {2}),
      {device = "sim", out = cute.make_tensor(D.iterator,
        cute.make_layout({2, 5, 8}, cute.LayoutRight))})
  end)

  it("leave operands unread on a device with unchecked offsets #long",
     function()
    -- No check precedes a kernel that gets offsets in the GPU's memory.
    -- Whatever their values, the kernels must stay in bounds.
    local o = {{0, 700, 5, 10}, {-3, 4, 4, 1 << 40}, {9, 2, 1, 3},
               {-1, -2, -3, -4}}
    for _, family in ipairs {"gemm_sm90", "gemm_sm80"} do
      for _, list in ipairs(o) do
        local wild = grouped.wild(list, family, SIMS[family])
        assert.is_nil(wild)
      end
    end
  end)
end)

describe("lists of products", function()
  it("are products of any shapes", function()
    local list = {}
    for i, s in ipairs {{5, 8, 16}, {70, 24, 40}, {1, 1, 1}} do
      list[i] = {cute.full({s[1], s[3]}, i, cute.bf16),
                 cute.full({s[2], s[3]}, 2, cute.bf16)}
    end
    list[2][3] = cute.full({70, 24}, -1, cute.f32)
    local out = grouped_gemm(list, {device = "sim", alpha = 0.5})
    assert.equal(3, #out)
    assert.equal(list[2][3], out[2])
    assert.same({16, 80, 3}, {out[1](4, 7), out[2](69, 23), out[3](0, 0)})
    assert.same({}, grouped_gemm({}, {device = "sim"}))
  end)

  -- Runs a list of products of these extents on a device, and describes the
  -- first wrong one.
  local function wrong(shapes, device, o)
    local list, made = {}, {}
    for i, s in ipairs(shapes) do
      local A = ops.tensor(ops.random(i), {s[1], s[3]}, "bf16", i, "k")
      local B = ops.tensor(ops.random(i), {s[2], s[3]}, "bf16", i + 9, "k")
      made[i] = {A, B}
      list[i] = {A:to(device == "gpu" and "gpu" or "host"),
                 B:to(device == "gpu" and "gpu" or "host")}
    end
    o.device, o.dtype, o.alpha = device, cute.f32, 2
    for i, D in ipairs(grouped_gemm(list, o)) do
      local why = ops.differs(made[i][1], made[i][2], D:to "host",
        function(_, _, _, sum) return 2 * sum end)
      if why then return ("problem %d: %s"):format(i, why) end
    end
  end
  local SHAPES = {{70, 72, 128}, {1, 8, 8}, {200, 136, 72}, {64, 64, 64},
                  {129, 8, 264}}

  it("are one launch if the Hopper kernel takes all #long", function()
    local gemm = require "cute.ops.gemm"
    local own = gemm.gemm
    gemm.gemm = function() error "one by one" end
    local ok, why = pcall(function()
      for seed = 1, 2 do
        assert.is_nil(wrong(SHAPES, "sim:sm_90a", {seed = seed}))
      end
    end)
    gemm.gemm = own
    assert.is_true(ok, why)
    -- If no grouped kernel supports a list, its products run one by one.
    assert.is_nil(wrong({{9, 7, 5}, {64, 64, 64}}, "sim:sm_90a", {}))
    assert.is_nil(wrong(SHAPES, "sim:sm_80", {}))
  end)
  it("are right on a card #gpu", function()
    local many = {}
    for i = 1, 70 do many[i] = {i * 7, 8 * i, 8 * (i % 9 + 1)} end
    assert.is_nil(wrong(SHAPES, "gpu", {}))
    assert.is_nil(wrong(many, "gpu", {}))
    assert.is_nil(wrong(SHAPES, "gpu", {}))
  end)

  it("have results apart from all operands, and from each other", function()
    local function new(...) return cute.full({...}, 1, cute.bf16) end
    local X, D = new(16, 16), new(8, 16)
    for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
      local o = {device = device}
      raises("D of problem 1 shares memory with B of problem 2", grouped_gemm,
             {{new(16, 16), new(16, 16), X}, {new(8, 16), X}}, o)
      raises("D of problem 1 shares memory with D of problem 2", grouped_gemm,
             {{new(8, 16), X, D}, {new(8, 16), X, D}}, o)
      local halves = {}  -- two results that are column halves of one matrix
      for i = 0, 1 do
        halves[i + 1] = {new(8, 16), new(8, 16), cute.make_tensor(D.iterator
          + 8 * i, cute.make_layout({8, 8}, {16, 1}))}
      end
      grouped_gemm(halves, o)
      assert.equal(16.0, D(7, 15))
      raises("gated = true needs an epilogue "
        .. "function", grouped_gemm, {{D, X}, {D, X}},
             {device = device, gated = true})
      raises("group = 64 needs scale_a or scale_b", grouped_gemm,
             {{D, X}, {D, X}},
             {device = device, group = 64})
      raises("deterministic = false", grouped_gemm, {{D, X}, {D, X}},
             {device = device, batch_invariant = true, deterministic = false})
    end
  end)

  it("name the wrong problem", function()
    raises("A of problem 1 is nil; a tensor is needed", grouped_gemm, {{}},
           {device = "sim"})
    local function full(...) return cute.full({...}, 1, cute.bf16) end
    raises("A of problem 2 is (5,8):(8,1) and B of problem 2 is (4,9):(9,1): K "
      .. "is 8 in one and 9 in the other", grouped_gemm,
      {{full(5, 8), full(5, 8)}, {full(5, 8), full(4, 9)}}, {device = "sim"})
    raises("N is 4 in one and 5 in the other", grouped_gemm,
      {{full(5, 8), full(4, 8), full(5, 5)}}, {device = "sim"})
    raises("the epilogue must return exactly one result: D of the current "
      .. "problem", grouped_gemm,
      {{full(5, 8), full(5, 8)}}, {device = "sim", epilogue = function(acc)
        return acc, acc
      end})
    raises("out cannot be combined with a list of problems", grouped_gemm, {},
           {device = "sim", out = cute.zeros({1}, cute.f32)})
    raises("problem 2 is 7; {A, B} or {A, B, D} is needed", grouped_gemm,
      {{cute.full({5, 8}, 1, cute.bf16), cute.full({5, 8}, 1, cute.bf16)}, 7},
      {device = "sim"})
  end)
end)
-- SPDX-License-Identifier: MIT
