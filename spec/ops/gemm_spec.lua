-- Tests cute.ops.gemm against sums in plain Lua, with random sizes, strides,
-- types and batches. Also tests which kernel it chooses, and that invalid calls
-- raise errors.
local choose = require "cute.ops.choose"
local families = require "cute.ops.families"
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local offers = require "cute.ops.gemm".offers
local operands = require "cutelua.tune.operands"
local ops = require "spec.ops"
local plans = require "cute.ops.plan"
local support = require "spec.support"

local DEVICES = {"sim:sm_80", "sim:sm_90a"}

-- Types of A, B, D.
local TYPES = {
  {"bf16", "bf16", "bf16"}, {"bf16", "bf16", "f32"}, {"f16", "f16", "f16"},
  {"f16", "f16", "bf16"}, {"f32", "f32", "f32"}, {"f64", "f64", "f64"},
  {"f32", "f32", "f32", tf32 = true}, {"i8", "i8", "i32"}, {"u8", "i8", "i32"},
  {"bf16", "f32", "f32"}, {"i8", "i8", "f32"}, {"f16", "bf16", "f32"},
  {"i32", "i32", "i32"}, {"e4m3", "e5m2", "bf16", device = "sim:sm_90a"},
  {"tf32", "tf32", "f32"},
}

local SIZES = {1, 2, 3, 8, 15, 16, 17, 33, 64, 70, 100, 129}

-- Returns a random problem: operands, options, and the expected D.
local function problem(number)
  local pick = ops.random(number)
  local types = TYPES[number % #TYPES + 1]
  local m, n, k = pick(SIZES), pick(SIZES), pick(SIZES)
  local a, b, d = {m, k}, {n, k}, {m, n}
  for _ = 1, pick {0, 0, 0, 1, 2} do
    local extent = pick {1, 2, 3}
    table.insert(d, 1, extent)
    if pick(4) > 0 then table.insert(a, 1, pick(3) > 0 and extent or 1) end
    if pick(4) > 0 then table.insert(b, 1, pick(3) > 0 and extent or 1) end
  end
  -- Gives A and B the extents of D's batch modes. Their batch modes correspond
  -- to the last ones of D.
  for _, x in ipairs {a, b} do
    for i = 1, #x - 2 do
      if x[i] ~= 1 then x[i] = d[#d - #x + i] end
    end
  end
  for i = 1, #d - 2 do
    local has = false
    for _, x in ipairs {a, b} do
      has = has or #x - #d + i >= 1 and x[#x - #d + i] == d[i]
    end
    if not has then d[i] = 1 end
  end
  local A = ops.tensor(pick, a, types[1], number)
  local B = ops.tensor(pick, b, types[2], number + 1)
  local device = types.device or pick(DEVICES)
  local o = {tf32 = types.tf32, device = device, seed = number,
             dtype = types[3]}
  local C
  if pick(2) == 0 then o.alpha = pick {1, 2, -3} end
  if pick(3) == 0 then
    C = ops.tensor(pick, d, types[3], number + 2)
    if pick(2) == 0 then o.beta = pick {0, 1, 2} end
  end
  if pick(2) == 0 then
    o.out = ops.tensor(pick, d, types[3])
    if not C and pick(2) == 0 then
      o.accumulate = true
      o.out:fill(2)
    end
  end
  return A, B, C, o
end

local function check(number, device)
  local A, B, C, o = problem(number)
  o.device = device or o.device
  local was = o.accumulate and 2 or 0
  local D = cute.ops.gemm(A, B, C, o)
  if o.out then assert.is_true(rawequal(D, o.out)) end
  return ops.differs(A, B, D, function(batch, i, j, sum)
    local c = was
    if C then c = (o.beta or 1) * ops.at(C, batch, i, j) end
    return (o.alpha or 1) * sum + c
  end), tostring(cute.ops.explain(A, B, C, o))
end

local function matrix(shape, dtype, seed)
  return ops.tensor(ops.random(1), shape, dtype or "bf16", seed or 1, "k")
end

-- Returns a tensor for a trace, with the memory of one element. The last mode
-- is contiguous or, with `first`, the first.
local function shaped(dtype, shape, first)
  return cute.make_tensor(cute.empty({1}, dtype).iterator, cute.make_layout(
    shape, first and cute.LayoutLeft or cute.LayoutRight))
end

describe("ops.gemm", function()
  for first = 1, 80, 10 do
    it(("is right: problems %d to %d"):format(first, first + 9)
       .. support.long(first), function()
      for number = first, first + 9 do
        local wrong, text = check(number)
        assert.is_nil(wrong, ("problem %d: %s\n%s"):format(number,
          tostring(wrong), text))
      end
    end)
    it(("is right on a card: problems %d to %d #gpu"):format(first, first + 9),
       function()
      for number = first, first + 9 do
        local wrong, text = check(number, "gpu")
        assert.is_nil(wrong, ("problem %d: %s\n%s"):format(number,
          tostring(wrong), text))
      end
    end)
  end

  it("is the same again, with other operands and numbers", function()
    local A, B = matrix({40, 64}), matrix({24, 64}, nil, 2)
    local made = 0
    for i = 1, 3 do
      local C = matrix({40, 24}, nil, 10 + i)
      local X = matrix({40, 64}, nil, 20 + i)
      local o = {alpha = i + 1, beta = i + 2, device = "sim:sm_90a"}
      local D = cute.ops.gemm(i < 3 and X or A, B, C, o)
      assert.is_nil(ops.differs(i < 3 and X or A, B, D,
        function(_, r, c, sum)
          return o.alpha * sum + o.beta * C(r, c)
        end))
      made = made + 1
    end
    assert.equal(3, made)
  end)

  it("adds to its own output", function()
    local A, B = matrix({20, 64}), matrix({24, 64}, nil, 2)
    local D = cute.full({20, 24}, 5, cute.f32)
    for i = 1, 3 do
      cute.ops.gemm(A, B, {out = D, accumulate = true, alpha = 2,
                           device = "sim:sm_90a"})
      assert.is_nil(ops.differs(A, B, D, function(_, _, _, sum)
        return 5 + 2 * i * sum
      end))
    end
    cute.ops.gemm(A, B, D, {out = D, beta = -1, device = "sim:sm_90a"})
    assert.is_nil(ops.differs(A, B, D, function(_, _, _, sum)
      return -5 - 5 * sum
    end))
  end)

  it("has tiles with all threads along K, and missing rows",
     function()
    for _, t in ipairs {"e4m3", "e5m2", "i8"} do
      local A, B = ops.tensor(ops.random(1), {70, 129}, t, 1, "m"),
        ops.tensor(ops.random(2), {8, 129}, t, 2, "any")
      local D = cute.ops.gemm(A, B, {device = "sim:sm_90a",
        dtype = t == "i8" and "i32" or "f32"})
      assert.is_nil(ops.differs(A, B, D, function(_, _, _, sum)
        return sum
      end))
    end
  end)

  it("takes single rows and columns of any stride #long", function()
    local function view(shape, stride)
      return cute.make_tensor(cute.full({4096}, 2, cute.bf16).iterator,
                              cute.make_layout(shape, stride))
    end
    for _, c in ipairs {
        {view({33, 1}, {1, 33}), view({1, 1}, {1, 1})},
        {view({16, 256}, {256, 1}), view({1, 256}, {1, 1})},
        {view({1, 41}, {41, 1}), view({8, 41}, {48, 1})},
        {view({1, 8}, {8, 1}), view({1, 8}, {8, 1})},
        {view({2, 3, 64}, {192, 64, 1}), view({2, 1, 64}, {64, 1, 1})}} do
      local rank = cute.rank(c[1])
      local M, K, N = c[1].shape[rank - 1], c[1].shape[rank],
        c[2].shape[rank - 1]
      for _, D in ipairs {cute.zeros({2, M, N}, cute.f32),
                          cute.make_tensor(cute.zeros({999}, cute.f32).iterator,
                            cute.make_layout({2, M, N}, {3 * M * N, 1, M}))} do
        if rank == 2 then
          D = cute.make_tensor(D.iterator, cute.make_layout({M, N},
            {D.stride[2], D.stride[3]}))
        end
        cute.ops.gemm(c[1], c[2], {device = "sim:sm_90a", out = D})
        assert.equal(4.0 * K, rank == 2 and D(M - 1, N - 1)
          or D(1, M - 1, N - 1))
      end
    end
  end)

  it("has registers for 64 bits of each of a thread's sums", function()
    local function most(device, o)
      local X = shaped("bf16", {4096, 1024})
      o.device = device
      local _, list = offers(X, X, o)
      local out = 0
      for _, c in ipairs(list) do
        if c.family == "gemm_sm80" then
          local warps = c.options.atoms[1] * c.options.atoms[2]
          out = math.max(out, c.tile[1] * c.tile[2] // (32 * warps))
        end
      end
      return out
    end
    assert.equal(128, most("sim:sm_80", {dtype = "f32"}))
    assert.equal(64, most("sim:sm_80", {dtype = "f64"}))
    assert.equal(64, most("sim:sm_80", {dtype = "f32", epilogue = function(acc)
      return acc, acc:to(cute.i64)
    end}))
  end)
end)

describe("ops.gemm", function()
  it("reports a family none of whose tiles fits", function()
    local sm90 <const> = require "cute.ops.family.sm90"
    local list <const> = sm90.list
    sm90.list = function() return {} end
    local _ <close> = setmetatable({}, {__close = function()
      sm90.list = list
    end})
    local e = cute.ops.explain(matrix {3, 136}, matrix {264, 136},
                               {device = "sim:sm_90a"})
    assert.not_equal("gemm_sm90", e.kernel)
    assert.truthy(e.text:find("not gemm_sm90: none of its tiles has that order "
      .. "of additions", 1,
                              true), e.text)
  end)

  -- Checks that each form of C is accepted and broadcasts to D correctly.
  local function check_C(device)
    local M, N, K = 33, 24, 64
    local A, B = matrix {M, K}, matrix({N, K}, nil, 2)
    local function host(t, ...) return t:to(device), ... end
    for seed = 3, 5 do
      local row, all = matrix({1, N}, nil, seed), matrix({2, N}, nil, seed)
      local col, one = matrix({M, 1}, "f32", seed), matrix({1, 1}, nil, seed)
      local vector = cute.make_tensor(all.iterator + N, cute.make_layout {N})
      for _, c in ipairs {{vector, function(_, j) return vector(j) end},
          {row, function(_, j) return row(0, j) end},
          {col, function(i) return col(i, 0) end},
          {one, function() return one(0, 0) end}} do
        local D = cute.ops.gemm(host(A), host(B), host(c[1]),
          {beta = 2, dtype = cute.f32, device = device})
        assert.is_nil(ops.differs(A, B, D:to "host", function(_, i, j, sum)
          return sum + 2 * c[2](i, j)
        end))
      end
    end
  end
  it("broadcasts a C of one row or column, like a bias #long", function()
    local A, B = matrix {2, 9, 64}, matrix({24, 64}, nil, 2)
    local C = cute.make_tensor(matrix({1, 24}, nil, 3).iterator,
                               cute.make_layout(24))
    for _, a in ipairs {A, cute.select(A, {1, 0, 2})} do
      assert.is_nil(ops.differs(a, B, cute.ops.gemm(a, B, C,
        {dtype = cute.f32, device = "sim"}), function(_, _, j, sum)
        return sum + C(j)
      end))
    end
    check_C "host"
  end)
  it("has such a C on a card, call after call #gpu", function()
    check_C "gpu"
  end)

  -- Checks that ops.gemm merges the batches into one product of `rows` rows,
  -- and that its result is right.
  local function check_rows(rows, A, B, C, o, want)
    o.device, o.dtype = "sim:sm_90a", cute.f32
    local e = cute.ops.explain(A, B, C, o)
    assert.equal(rows, tonumber(e.text:match "^%d+"), e.text)
    assert.is_nil(ops.differs(A, B, cute.ops.gemm(A, B, C, o), want or
      function(_, _, _, sum) return sum end))
  end
  it("computes matrices that share B as rows of one product #long", function()
    local A, B = matrix {2, 3, 5, 64}, matrix({24, 64}, nil, 2)
    local R, bias = matrix({2, 3, 5, 24}, nil, 3), matrix({1, 24}, nil, 4)
    bias = cute.make_tensor(bias.iterator, cute.make_layout {24})
    check_rows(30, A, B, nil, {})
    check_rows(30, A, matrix({1, 24, 64}, nil, 2), nil, {})
    check_rows(30, A, B, R, {beta = -1}, function(l, i, j, sum)
      return sum - ops.at(R, l, i, j)
    end)
    check_rows(30, A, B, nil, {epilogue = function(acc, at)
      return acc + at:col(bias) - at:tile(R), acc:to(cute.f16)
    end}, function(l, i, j, sum) return sum + bias(j) - ops.at(R, l, i, j) end)
    -- The next calls must not merge batches into rows: the results depend on a
    -- row's batch, or the distances between rows of different batches vary.
    check_rows(5, A, matrix({2, 1, 24, 64}, nil, 2), nil, {})
    check_rows(5, A, B, nil, {epilogue = function(acc, at)
      return acc, at:row_reduce("sum", acc)
    end})
    check_rows(5, A, B, nil, {epilogue = function(acc, at)
      return acc + 0 * at:coords()
    end})
    check_rows(5, A, B, nil, {scale_a = cute.full({5}, 1, cute.f32)})
    check_rows(3, cute.select(A, {0, 2, 1, 3}), B, nil, {})
    check_rows(30, A, B, matrix {5, 24}, {beta = 0})
    check_rows(5, A, B, matrix({5, 24}, nil, 3), {beta = 2},
               function(_, i, j, sum)
      return sum + 2 * matrix({5, 24}, nil, 3)(i, j)
    end)
  end)

  it("of one element satisfies any determinism option", function()
    local x = matrix({1, 768}, "e4m3")
    local D = cute.ops.gemm(x, x, {device = "sim:sm_90a", dtype = cute.f32,
                                   batch_invariant = true})
    assert.is_nil(ops.differs(x, x, D, function(_, _, _, sum) return sum end))
  end)
end)

describe("ops.gemm", function()
  it("has batches and vectors of several strides in a mode", function()
    local M, N, K = 24, 32, 64
    local function nested(t, shape, stride)
      return cute.make_tensor(t.iterator, cute.make_layout(shape, stride))
    end
    local all, B = matrix {6, M, K}, matrix({N, K}, nil, 2)
    local v = matrix({6, M}, "f32", 3)
    local A = nested(all, {{2, 3}, M, K}, {{3 * M * K, M * K}, K, 1})
    local row = nested(v, {{2, 3}, M}, {{3 * M, M}, 1})
    local col = nested(v, {{4, 8}}, {{8, 1}})
    local by = nested(v, {{4, 6}}, {{6, 1}})
    for _, device in ipairs(DEVICES) do
      local out = nested(cute.zeros({6, M, N}, cute.f32), {{3, 2}, M, N},
                         {{2 * M * N, M * N}, N, 1})
      cute.ops.gemm(A, B, {device = device, out = {out}, scale_a = by,
        epilogue = function(acc, at)
          return acc + at:row(row) * 2 + at:col(col)
        end})
      for l = 0, 5 do
        for i = 0, M - 1, 5 do
          for j = 0, N - 1, 3 do
            local sum = 0
            for k = 0, K - 1 do sum = sum + A(l, i, k) * B(j, k) end
            assert.equal(sum * by(i) + row(l, i) * 2 + col(j), out(l, i, j))
          end
        end
      end
    end
    local other = nested(v, {{4, 6}}, {{6, 1}})
    local ok, why = pcall(cute.ops.gemm, matrix {M, K}, B, {device = "sim",
      out = {cute.zeros({M, N}, cute.f32), other}, epilogue = function(acc, at)
        return acc, at:row_reduce("sum", acc)
      end})
    assert.is_false(ok)
    assert.matches("out 2 is ((4,6)):((6,1)); its elements must have a "
      .. "single stride", why, 1, true)
  end)

  it("does not read C if beta is 0", function()
    local A, B = matrix({20, 64}), matrix({24, 64}, nil, 2)
    local D = cute.full({20, 24}, 0 / 0, cute.f32)
    local function right(t)
      assert.is_nil(ops.differs(A, B, t, function(_, _, _, sum)
        return sum
      end))
    end
    right(cute.ops.gemm(A, B, D, {out = D, beta = 0, device = "sim:sm_80"}))
    local C = cute.full({20, 24}, 0 / 0, cute.f32)
    for _, o in ipairs {{beta = 0}, {beta = 0, dtype = "f16"}} do
      o.device = "sim:sm_80"
      local E = cute.ops.gemm(A, B, C, o)
      assert.equal(o.dtype and cute.f16 or cute.f32, E.element_type)
      right(E)
    end
  end)

  -- Tries every candidate for f64 on a device, with and without split-K. The
  -- sums do not fit in f32. `layouts` says which operands have contiguous
  -- columns: bit 0 is for A, bit 1 for B.
  local function doubles(device, layouts, epilogue)
    local m, n, k, seen = 20, 24, 203, {}
    local function operand(rows, columns, across, seed)
      local t = cute.randint(-3, 4, {rows * columns}, cute.f64, {seed = seed})
      for i = 0, rows * columns - 1, 77 do t[i] = t[i] + (1 << 22) end
      return cute.make_tensor(t.iterator, cute.make_layout({rows, columns},
        across and {1, rows} or {columns, 1}))
    end
    for _, layout in ipairs(layouts) do
      local A = operand(m, k, layout & 1 > 0, 1)
      local B = operand(n, k, layout & 2 > 0, 2)
      local C = cute.randint(-3, 4, {m, n}, cute.f64, {seed = 3})
      local o, want = {device = device}, cute.zeros({m, n}, cute.f64)
      if epilogue then
        o.epilogue = function(acc, at) return acc * 2.0 + at:tile(C) end
      end
      ops.each(A, B, want, function(_, r, j, sum)
        want[{r, j}] = epilogue and sum * 2 + C(r, j) or sum
      end)
      for i, c in ipairs(select(2, offers(A, B, o))) do
        local p, again, call = offers(A, B, o)
        local D = plans.new(p, again[i], call):run(call, function() end)
        seen[c.base .. (c.split > 1 and " divided" or "")] = true
        local bits = {}
        for which, t in ipairs {want, D:to "host"} do
          bits[which] = core.param_memory(t):bytes()
        end
        assert(bits[1] == bits[2], choose.name(c))
      end
    end
    return seen
  end

  it("of doubles is right in all tiles, with and without split-K #long",
     function()
    local all = {gemm_sm80 = true, ["gemm_sm80 divided"] = true,
                 gemm_simt = true, ["gemm_simt divided"] = true}
    assert.same(all, doubles("sim:sm_80", {3}))
    assert.same(all, doubles("sim:sm_90a", {1, 2}))
    doubles("sim:sm_90a", {1}, true)
  end)

  it("of doubles is right in all tiles on a GPU #gpu", function()
    doubles("gpu", {0, 1, 2, 3})
    doubles("gpu", {2}, true)
  end)

  it("keeps a factor of f64 whole", function()
    local A, B = matrix({9, 16}, "f64"), matrix({8, 16}, "f64", 2)
    local D = cute.ops.gemm(A, B, {alpha = 0.1, device = "sim:sm_80"})
    assert.is_nil(ops.differs(A, B, D, function(_, _, _, sum)
      return 0.1 * sum
    end))
  end)
end)

describe("ops.gemm", function()
  it("swaps A and B where that suits the tiles", function()
    local A, B = matrix({1030, 64}), matrix({8, 64}, nil, 2)
    local C = matrix({1030, 8}, nil, 3)
    local o = {device = "sim:sm_90a", alpha = 2}
    assert.matches("gemm_sm90 as D^T = B A^T",
                   tostring(cute.ops.explain(A, B, C, o)), 1, true)
    assert.is_nil(ops.differs(A, B, cute.ops.gemm(A, B, C, o),
      function(_, i, j, sum) return 2 * sum + C(i, j) end))
  end)

  it("has Hopper's kernel for operands of either order #long", function()
    for _, dtype in ipairs {"bf16", "f16"} do
      for _, a in ipairs {"k", "m"} do
        for _, b in ipairs {"k", "m"} do
          for _, d in ipairs {"k", "m"} do
            local A = ops.tensor(ops.random(1), {72, 136}, dtype, 1, a)
            local B = ops.tensor(ops.random(2), {200, 136}, dtype, 2, b)
            local out = ops.tensor(ops.random(3), {72, 200}, dtype, nil, d)
            local o = {out = out, device = "sim:sm_90a"}
            assert.equal("gemm_sm90", cute.ops.explain(A, B, o).kernel)
            assert.is_nil(ops.differs(A, B, cute.ops.gemm(A, B, o),
              function(_, _, _, sum) return sum end))
          end
        end
      end
    end
  end)

  it("has Hopper's kernel for batches #long", function()
    for i, c in ipairs {{{3, 130, 64}, {72, 64}, {3, 130, 72}},
      {{2, 3, 64, 72}, {2, 1, 40, 72}, {2, 3, 64, 40}},
      {{4, 40, 128}, {4, 200, 128}, {4, 40, 200}},
      {{2, 300, 64}, {2, 8, 64}, {2, 300, 8}}} do
      local A, B = matrix(c[1]), matrix(c[2], nil, 2)
      local C = matrix(c[3], "f32", 3)
      local o = {device = "sim:sm_90a", alpha = 2, dtype = cute.f32}
      assert.equal("gemm_sm90", cute.ops.explain(A, B, C, o).kernel)
      assert.is_nil(ops.differs(A, B, cute.ops.gemm(A, B, C, o),
        function(batch, r, k, sum)
          return 2 * sum + ops.at(C, batch, r, k)
        end), i)
    end
  end)

  it("reaches elements past 2^31 #noasan #long", function()
    local function far(m, k, stride, dtype)
      return cute.make_tensor(core.buffer(dtype, (m - 1) * stride + k),
                              cute.make_layout({m, k}, {stride, 1}))
    end
    local A, B = far(3, 16, (1 << 30) + 64, "i8"), matrix({32, 16}, "i8", 2)
    for i = 0, 2 do
      for k = 0, 15 do A[{i, k}] = (i + k) % 5 - 2 end
    end
    for _, device in ipairs(DEVICES) do
      local o = {out = far(3, 32, (1 << 30) + 64, "i8"), device = device}
      assert.is_nil(ops.differs(A, B, cute.ops.gemm(A, B, o),
        function(_, _, _, sum) return sum end))
    end
  end)

  it("splits K if there are few tiles #long", function()
    local A, B = matrix({40, 8200}), matrix({24, 8200}, nil, 2)
    local o = {dtype = cute.f32, device = "sim:sm_80", alpha = 2}
    local e = cute.ops.explain(A, B, o)
    assert.equal("gemm_splitk", e.kernel)
    assert.is_true(e.split > 1)
    for _ = 1, 2 do
      assert.is_nil(ops.differs(A, B, cute.ops.gemm(A, B, o),
        function(_, _, _, sum) return 2 * sum end))
    end
  end)

  it("does not split K if the partial sums would fill the memory", function()
    local divided = 0
    for _, dtype in ipairs {"f64", "f32"} do
      for _, n in ipairs {1024, 4096, 8192} do
        local o = operands.without_memory(("%s %s %s tn row %d %d %d"):format(
          dtype, dtype, dtype, n, n, n))
        local p, list = offers(o.A, o.B, {out = o.D, device = "sim:sm_90a"})
        assert.is_true(n == 1024 or list[1].split == 1)
        for _, c in ipairs(list) do
          local elements = cute.round_up(n, c.tile[1])
            * cute.round_up(n, c.tile[2]) * c.split
          assert.is_true(c.split == 1
            or elements * p.sums.bits // 8 <= 256 << 20, choose.name(c))
          divided = math.max(divided, c.split)
        end
      end
    end
    assert.equal(32, divided)
  end)
end)

local function explain(a, b, d, o)
  o = o or {}
  o.device, o.out = o.device or "sim:sm_90a", d
  return cute.ops.explain(a, b, o)
end

describe("ops.explain", function()
  it("takes the fastest of all families that apply",
     function()
    local A = {layout = cute.make_layout({64, 64}, {64, 1}), shape = {64, 64},
               stride = {64, 1}, element_type = cute.bf16, alignment = 16}
    local p = {m = 64, n = 64, k = 64, batches = 1, columns = 64, A = A, B = A,
               D = A, a = cute.bf16, b = cute.bf16, d = cute.bf16,
               sums = cute.f32, arch = "sm_90a", sm = 90, sms = 132}
    local found, takers = {}, 0
    for _, family in ipairs(families) do
      if family.takes(p) == nil then
        takers = takers + 1
        for _, c in ipairs(family.list(p)) do
          found[#found + 1] = {family.name, c.ns}
        end
      end
    end
    table.sort(found, function(x, y) return x[2] < y[2] end)
    assert.equal(3, takers)
    local c = choose.choose(p)
    assert.same(found[1], {c.base, c.ns})
  end)

  it("reports kernel, tile, reasons, and why not another", function()
    local e = explain(matrix {512, 1024}, matrix {256, 1024})
    assert.equal("gemm_sm90", e.kernel)
    assert.equal(0, #e.refused)
    assert.matches("^512 x 256 x 1024, bf16 x bf16 %-> bf16, on sm_90a\n"
      .. "  gemm_sm90, tile %d+x%d+x%d+, %d stages", tostring(e))
    e = explain(matrix {64, 1001}, matrix {128, 1001})
    assert.equal("gemm_splitk", e.kernel)
    assert.equal("TMA needs rows at multiples of 16 bytes, but those of A are "
      .. "1001 elements (2002 bytes) apart", e.refused[1][2])
    assert.matches("  not gemm_sm90: TMA needs rows", tostring(e), 1, true)
  end)

  for _, c in ipairs {
    {"sim:sm_80", "bf16", "gemm_sm90", "wgmma needs sm_90a, but the device is "
      .. "sm_80"},
    {"sim:sm_90a", "f32", "gemm_sm80", "tensor cores do not support f32: tf32 "
      .. "= true rounds it to tf32"},
    {"sim:sm_90a", "f64", "gemm_sm90", "wgmma does not multiply f64 by f64"},
  } do
    it(("says of %s on %s why not %s"):format(c[2], c[1], c[3]), function()
      local e = explain(matrix({64, 64}, c[2]), matrix({64, 64}, c[2]), nil,
                        {device = c[1]})
      local found
      for _, r in ipairs(e.refused) do
        if r[1] == c[3] then found = r[2] end
      end
      assert.equal(c[4], found)
    end)
  end

  it("waits once for both operands that are copied by elements #long",
     function()
    local k = require "kernels.gemm_sm80" {tile = {64, 128, 64}}
    for _, c in ipairs {{70, 130, 133, true}, {64, 128, 133, false}} do
      local m, n, depth, once = table.unpack(c)
      local A, B = matrix {m, depth}, matrix({n, depth}, nil, 2)
      local C = cute.zeros({m, n}, cute.f32)
      local call = k.kernel(A, B, C)
      call:launch {grid = k.grid(m, n), block = k.block, device = "sim:sm_80"}
      assert.is_nil(ops.differs(A, B, C, function(_, _, _, sum) return sum end))
      local text = call:trace({block = k.block}):cuda "sm_80"
      local loop = text:match "for %(int k_tile.*"
      assert.equal(once, loop:find "mB%[" < loop:find "A_smem%[%w+%] = ")
    end
  end)

  it("multiplies in all tiles, with as many warps as elements ask for #long",
     function()
    local want = {  -- expected threads per block, by type and tile
      bf16 = {["128x256"] = 256, ["128x128"] = 256, ["128x64"] = 256,
              ["64x128"] = 256, ["64x64"] = 128, ["32x64"] = 128,
              ["16x128"] = 128, ["128x16"] = 128},
      e4m3 = {["128x256"] = 256, ["128x128"] = 512, ["128x64"] = 512,
              ["64x128"] = 512, ["64x64"] = 256, ["32x64"] = 128,
              ["16x128"] = 128, ["128x16"] = 128},
      f32 = {["128x128"] = 256, ["128x64"] = 256, ["64x64"] = 128},
    }
    for t, threads in pairs(want) do
      local A, B = matrix({133, 71}, t), matrix({131, 71}, t, 2)
      local D = cute.zeros({133, 131}, t == "f32" and t or "bf16")
      local _, list = offers(A, B, {out = D, device = "sim:sm_90a"})
      local seen = {}
      for _, c in ipairs(list) do
        if c.split == 1 and c.base ~= "moved" then
          local name = ("%dx%d"):format(c.tile[1], c.tile[2])
          local k = require("kernels." .. c.family)(c.options)
          k.kernel(A, B, D):launch {grid = k.grid(133, 131), block = k.block,
                                    device = "sim:sm_90a"}
          assert.is_nil(ops.differs(A, B, D,
            function(_, _, _, sum) return sum end), t .. " " .. name)
          seen[name] = k.block
          D:fill(0)
        end
      end
      assert.same(threads, seen)
    end
    local ok, why = pcall(require "kernels.gemm_simt", {warps = 2})
    assert.is_false(ok)
    assert.truthy(tostring(why):find("gemm_simt: warps = 2; 4 or 8 are needed",
                                     1, true), why)
  end)
end)

describe("ops.explain", function()
  it("takes shorter tiles of bytes that are copied singly, and is right #long",
     function()
    -- {type, K, row strides of A and B, expected K of a tile}
    for _, c in ipairs {{"i8", 131, 131, 131, 64}, {"i8", 128, 132, 131, 128},
                        {"i8", 128, 130, 129, 64}, {"i8", 132, 132, 132, 128},
                        {"e4m3", 131, 131, 131, 128},
                        {"bf16", 131, 131, 131, 64}} do
      local t, k, a, b, want = table.unpack(c)
      local function rows(n, apart, seed)
        local whole = matrix({n, apart}, t, seed)
        return cute.make_tensor(whole.iterator, cute.make_layout({n, k},
                                                                 {apart, 1}))
      end
      local A, B = rows(33, a, 1), rows(20, b, 2)
      local o = {device = "sim:sm_80"}
      if t == "e4m3" then o = {device = "sim:sm_90a", dtype = cute.f32} end
      assert.equal(want, cute.ops.explain(A, B, o).tile[3],
                   table.concat(c, " "))
      assert.is_nil(ops.differs(A, B, cute.ops.gemm(A, B, o),
        function(_, _, _, sum) return sum end), table.concat(c, " "))
    end
  end)
end)

describe("the launches of ops.gemm", function()
  local function compiles(e, archs)
    assert.is_not_nil(kernels.compiles(e:trace(), archs))
  end

  it("compiles for sm_80 and sm_90a #noasan", function()
    for number = 1, 2 * #TYPES do
      local A, B, C, o = problem(number)
      compiles(cute.ops.explain(A, B, C, o),
               o.device == "sim:sm_80" and {"sm_80", "sm_90a"} or {"sm_90a"})
    end
  end)
end)

-- A kernel's first call takes half a second. Most of it is compilation, whose
-- time is proportional to the length of the text.
describe("the text of a kernel", function()
  local function text_of(m, n, k, t, o)
    o = o or {}
    o.device = "sim:sm_90a"
    o.out = shaped(({i8 = "i32", e4m3 = "bf16"})[t] or t, {m, n})
    local p, list, call = offers(shaped(t, {m, k}),
                                 shaped(t, {o.gated and 2 * n or n, k}), o)
    local c, i = choose.choose(p), 1
    while c.base == "moved" or c.family == "gemm_splitk" and t ~= "f32" do
      c, i = list[i], i + 1
    end
    return plans.new(p, c, call):trace(call):cuda(), c
  end
  local function lines(text) return select(2, text:gsub("\n", "")) end

  it("is short for operands that are copied by elements", function()
    local gates = {gated = true, epilogue = function(g, x) return g * x end}
    for _, c in ipairs {{1024, 1024, 1023, "bf16", 550},
        {1023, 1023, 1023, "bf16", 700}, {1023, 1023, 1023, "i8", 700},
        {1023, 1023, 1023, "e4m3", 900}, {16, 64, 4095, "bf16", 700},
        {1023, 1023, 1023, "bf16", 900, gates}} do
      local text = text_of(c[1], c[2], c[3], c[4], c[6])
      assert.is_true(lines(text) < c[5], lines(text))
      assert.is_nil(text:find "cp.async.ca.shared")
    end
  end)

  it("has the functions of an epilogue once for a vector #long", function()
    local bias = shaped("f32", {4096})
    local function gelu(acc, at) return cute.ops.gelu(acc + at:col(bias)) end
    local function counted(k)
      local text = text_of(4096, 4096, k, "bf16", {epilogue = gelu})
      local each = select(2, text:gsub("= rcp_approx_ftz_f32", ""))
      assert.equal(each, select(2, text:gsub("#pragma unroll 16", "")))
      return each, lines(text)
    end
    -- An epilogue computes a tile in 8 parts. For short K, the text has one
    -- copy of the epilogue per part. For long K, the parts are iterations of a
    -- loop, which has one copy.
    local each, long = counted(2048)
    assert.is_true(each == 8 and long < 1100, long)
    each, long = counted(4096)
    assert.is_true(each == 1 and long < 650, long)
  end)

  it("has one epilogue for all parts of a tile, except for D's layout",
     function()
    local bias, R = shaped("f32", {4095}), shaped("bf16", {4095, 4095})
    local function loads(name, f)
      local text = text_of(4095, 4095, 4095, "bf16", {epilogue = f})
      return select(2, text:gsub(name .. "%[", "")), lines(text)
    end
    -- An iteration of the epilogue's loop computes 64 columns. Each thread has
    -- 4 of them: 2 for each of 2 MMAs.
    local count, long = loads("arg4", function(acc, at)
      return cute.ops.gelu(acc + at:col(bias))
    end)
    assert.is_true(count == 4 and long < 1250, long)
    assert.equal(128, (loads("arg4", function(acc, at)
      return acc + at:tile(R)
    end)))
    -- An epilogue with a reduction computes the whole tile at once.
    assert.equal(16, (loads("arg4", function(acc, at)
      local y = acc + at:col(bias)
      return y, at:row_reduce("sum", y)
    end)))
  end)

  it("loads a value for each column once", function()
    local bias = shaped("f32", {1023})
    local text, e = text_of(1023, 1023, 1023, "bf16", {
      epilogue = function(acc, at) return acc + at:col(bias) end})
    -- A warp has a quarter of the tile's columns, and each thread has 2 of
    -- every 8 of these.
    assert.equal("gemm_sm80", e.family)
    local loads = select(2, text:gsub("= arg4%[", ""))
    assert.equal(e.tile[2] // 4 // 8 * 2, loads)
  end)

  it("has a D of odd rows leave through shared memory, in a loop", function()
    for t, n in pairs {bf16 = 1023, e4m3 = 4095} do
      local text = text_of(n, n, n, t)
      local stores = select(2, text:gsub("mC%[", ""))
      assert.is_true(stores > 0 and stores <= 16, stores)
      assert.truthy(text:find "for %([^\n]*\n[^}]*mC%[")
    end
  end)

  it("has more warps if elements are copied singly", function()
    local function threads(K, t, n)
      local text = text_of(n or 1023, n or 1023, K, t)
      return tonumber(text:match "__launch_bounds__%((%d+)")
    end
    assert.same({256, 128, 512, 256, 128},
                {threads(1023, "bf16"), threads(1022, "bf16"),
                 threads(1023, "e4m3"), threads(1023, "i8"),
                 threads(1020, "i8")})
    assert.truthy(text_of(1024, 1024, 1023, "bf16"):find(
      "__launch_bounds__(256, 2)", 1, true))
  end)
end)

describe("the text of products on FMA units", function()
  local gemm_simt = require "kernels.gemm_simt"

  -- Returns the text of C (M,N) = A B^T. layout: "tn" if K is contiguous in A
  -- and in B, "nt" if M and N are.
  local function text_of(o, layout, m, n, k, t)
    local made, first = gemm_simt(o), layout == "nt"
    t = t or "f32"
    return made.kernel(shaped(t, {m, k}, first), shaped(t, {n, k}, first),
      shaped(t, {m, n})):trace {grid = made.grid(m, n),
                                block = made.block}.source
  end
  local function loop_of(text) return text:match "\n  for %(.-\n  }\n" end

  it("has loads of the next tile before the barrier", function()
    local loop = loop_of(text_of({}, "tn", 256, 256, 256))
    local store, load, barrier = loop:find "[AB]_smem%[[^%]]*%] = r",
      loop:find "ld_l2<128>", loop:find "__syncthreads"
    assert.is_true(store < load and load < barrier)
    -- The stores have no condition, although the last tiles have no successor.
    assert.equal(1, select(2, loop:gsub("if %(", "")))
  end)

  it("has no condition for rows outside A and B", function()
    local function conditions(m, n, k)
      return select(2, loop_of(text_of({}, "tn", m, n, k)):gsub("if %(", ""))
    end
    assert.equal(conditions(256, 256, 256), conditions(250, 301, 256))
    assert.truthy(text_of({}, "tn", 250, 256, 256):find "min%([^\n]*249%)")
    assert.is_true(conditions(250, 301, 260) > conditions(250, 301, 256))
  end)

  -- A thread of this tile loads two pieces along K; one may be outside.
  it("loads no columns outside A and B", function()
    local A, B = matrix({70, 68}, "f32"), matrix({65, 68}, "f32", 2)
    local D, made = cute.zeros({70, 65}, cute.f32),
                    gemm_simt {tile = {64, 64, 64}}
    made.kernel(A, B, D):launch {grid = made.grid(70, 65), block = made.block,
                                 device = "sim:sm_90a"}
    assert.is_nil(ops.differs(A, B, D, function(_, _, _, sum) return sum end))
  end)

  it("adds 0 to the sums of f32 before it stores them", function()
    local function additions(o, t)
      return select(2, text_of(o, "tn", 256, 256, 256, t)
        :gsub("C_acc[^\n]* %+ 0%.0f;", ""))
    end
    assert.equal(128, additions {})
    assert.equal(32, additions {tile = {64, 64, 8}})
    assert.equal(0, additions({sums = cute.f64, tile = {64, 64, 8}}, "f64"))
    assert.equal(0, additions({sums = cute.i32}, "i32"))
  end)

  it("asks for the blocks that fit on a multiprocessor", function()
    local function bounds(o, t)
      return text_of(o, "nt", 256, 256, 256, t)
        :match "__launch_bounds__%((%d+, %d+)%)"
    end
    local function epilogue(acc) return acc * 2 end
    for _, row in ipairs {{{128, 128, 8}, "128, 2", "128, 2"},
                          {{128, 64, 8}, "128, 4", "128, 3"},
                          {{64, 64, 8}, "128, 5", "128, 4"}} do
      assert.equal(row[2], bounds {tile = row[1]})
      assert.equal(row[3], bounds {tile = row[1], epilogue = epilogue})
    end
    assert.equal("256, 1", bounds {warps = 8})
    assert.equal("128, 3", bounds {min_blocks = 3})
    assert.equal("128, 2", bounds({tile = {64, 64, 8}, sums = cute.f64},
                                  "f64"))
  end)
end)

describe("the text of products on FMA units that divide K", function()
  local gemm_splitk = require "kernels.gemm_splitk"

  -- Returns the text of C (256,256) = A B^T, with K = 1024.
  local function text_of(o, base)
    local t = base and "f32" or "bf16"
    local made = gemm_splitk(o, base)
    local work, turns = made.scratch(256, 256)
    return made.kernel(shaped(t, {256, 1024}), shaped(t, {256, 1024}),
                       shaped(t, {256, 256}), work, turns)
      :trace {grid = made.grid(256, 256, 1024), block = made.block}.source
  end

  -- Returns how many blocks' parts the loop that adds them loads at once.
  local function unrolled(o, base)
    return text_of(o, base):match("#pragma unroll (%d+)\n *for %(int other")
  end

  it("says that each block has a tile", function()
    assert.truthy(text_of({splits = 3}, "gemm_simt"):find(
      "__builtin_assume%(%w+ > 0%);%s*#pragma unroll 1%s*for %(int k_tile"))
  end)

  it("asks for fewer blocks if registers are needed for the parts", function()
    local function bounds(tile, o)
      local all = {splits = 3, tile = tile}
      for k, v in pairs(o or {}) do all[k] = v end
      return text_of(all, "gemm_simt"):match "__launch_bounds__%((%d+, %d+)%)"
    end
    assert.equal("128, 2", bounds {128, 128, 8})
    assert.equal("128, 3", bounds {128, 64, 8})
    assert.equal("128, 5", bounds {64, 64, 8})
    assert.equal("128, 4", bounds({128, 64, 8}, {min_blocks = 4}))
    assert.equal("128, 3", bounds({128, 64, 8},
      {epilogue = function(acc) return acc * 2 end}))
  end)

  it("keeps a loop over the parts, for which registers suffice", function()
    local got = {}
    for i, splits in ipairs {2, 3, 4, 5} do
      got[i] = unrolled({splits = splits}, "gemm_simt")
    end
    assert.same({"1", "1", "2", "4"}, got)
    assert.equal("4", unrolled {splits = 4})
    -- The accumulators of a small tile leave enough registers.
    assert.equal("4", unrolled({splits = 4, tile = {64, 64, 8}}, "gemm_simt"))
  end)

  it("has one block for a tile if K is not divided", function()
    assert.truthy(text_of({splits = 1}, "gemm_simt"))
  end)
end)

describe("a product on FMA units with few tiles", function()
  -- Returns the options of tiles of 128x128 for C (128,4096).
  local function options(first)
    local _, list = offers(shaped("f32", {128, 64}, first),
                           shaped("f32", {4096, 64}, first),
                           {device = "sim:sm_90a"})
    for _, c in ipairs(list) do
      if c.family == "gemm_simt" and c.tile[1] * c.tile[2] == 128 * 128 then
        return c.options
      end
    end
  end

  it("has 8 warps if no operand passes through registers", function()
    assert.equal(8, options(true).warps)
    assert.is_nil(options(false).warps)
  end)
end)

local A, B = matrix {32, 64}, matrix {16, 64}
local function refuses(text, ...)
  local ok, why = pcall(cute.ops.gemm, ...)
  assert.is_false(ok)
  assert.is_truthy(why:find(text, 1, true), why)
  assert.is_truthy(why:find("gemm_spec.lua:", 1, true), why)
end

describe("ops.gemm rejects", function()
  local SIM = {device = "sim"}

  it("extents that do not agree", function()
    refuses("ops.gemm: A is (32,64):(64,1) and B is (16,48):(48,1): K is 64 in "
      .. "one and 48 in the other", A, matrix {16, 48}, SIM)
    refuses("A is (32,64):(64,1) and C is (31,16):(16,1): M is 32 in one and "
      .. "31 in the other", A, B, matrix {31, 16}, SIM)
    refuses("B is (16,64):(64,1) and out is (32,17):(17,1): N is 16 in one and "
      .. "17 in the other", A, B, {device = "sim", out = matrix {32, 17}})
    refuses("B is (16,64):(64,1) and C is (32):(1): N is 16 in one and 32 in "
      .. "the other", A, B, cute.zeros({32}, cute.f32), SIM)
    refuses("their batch modes do not match", matrix {2, 32, 64},
      matrix {3, 16, 64}, SIM)
    refuses("the batch modes of the operands are needed", matrix {2, 32, 64}, B,
      {device = "sim", out = matrix {32, 16}})
    refuses("modes (..., rows, columns) are needed", cute.zeros({8}, cute.f32),
      B, SIM)
  end)

  it("layouts other than rows and columns of one stride each", function()
    local t = cute.zeros({4096}, cute.bf16)
    local function of(...)
      return cute.make_tensor(t.iterator, cute.make_layout(...))
    end
    refuses("A is ((8,4),64):((64,512),1); its rows, and its columns, must "
      .. "have a single stride", of({{8, 4}, 64}, {{64, 512}, 1}), B, SIM)
    local swizzled = cute.composition(cute.make_swizzle(3, 3, 3),
                                      of({32, 64}, {64, 1}).layout)
    refuses("a layout without swizzle or composition is needed",
            cute.make_tensor(t.iterator, swizzled), B, SIM)
    refuses("out is (32,16):(0,1): several of its elements have the same "
      .. "address", A, B,
      {device = "sim", out = of({32, 16}, {0, 1})})
    refuses("out is (32,16):(8,1): several of its elements have the same "
      .. "address", A, B,
      {device = "sim", out = of({32, 16}, {8, 1})})
    refuses("out is (32,16):(-16,1); strides of 0 or more are needed", A, B,
      {device = "sim", out = cute.make_tensor(t.iterator + 31 * 16,
        cute.make_layout({32, 16}, {-16, 1}))})
    refuses("out 2 is (32,16):(8,1): several of its elements have the same "
      .. "address", A, B,
      {device = "sim", out = {matrix {32, 16}, of({32, 16}, {8, 1})},
       epilogue = function(acc) return acc, acc end})
  end)

  it("devices without cp.async, where FMA units do not help", function()
    local old, small = {device = "sim:sm_75"}, cute.full({5, 32}, 1, cute.i8)
    refuses("cp.async needs sm_80, but the device is sm_75", small, small, old)
    assert.is_nil(ops.differs(A, B, cute.ops.gemm(A, B, old),
                              function(_, _, _, sum) return sum end))
  end)

  it("types that no kernel has", function()
    refuses("no kernel multiplies f64 by bf16 on sm_90a",
      matrix({32, 64}, "f64"), B, SIM)
    refuses("gemm_simt: FMA units do not multiply u16", matrix({32, 64}, "u16"),
      matrix({16, 64}, "u16"), SIM)
  end)

  it("options that there are not, or of another type", function()
    refuses("ops.gemm: no option 'alhpa' (did you mean alpha?)", A, B,
      {alhpa = 2})
    refuses("alpha = \"x\": a number is needed", A, B, {alpha = "x"})
    refuses("beta is given, but C is not", A, B, {beta = 2})
    refuses("accumulate = true needs the option out", A, B, {accumulate = true})
    refuses("dtype = \"f99\"; this type does not exist", A, B, {dtype = "f99"})
    refuses("dtype = f32, but out has type bf16", A, B, {dtype = cute.f32,
      device = "sim", out = matrix {32, 16}})
    refuses("out has 2 tensors, but this product has 1 result", A, B,
      {device = "sim", out = {matrix {32, 16}, matrix {32, 16}}})
  end)

  it("an output that shares memory with an operand", function()
    local b = core.buffer("bf16", 64 * 64):fill(0)
    local X = cute.make_tensor(b, cute.make_layout({32, 64}, {64, 1}))
    local Y = cute.make_tensor(b, cute.make_layout({32, 16}, {16, 1}))
    refuses("out shares memory with A", X, B, {device = "sim", out = Y})
    local Z = cute.make_tensor(b, cute.make_layout({32, 16}, {1, 32}))
    refuses("out shares memory with C", A, B, Y, {device = "sim", out = Z})
    refuses("out 2 shares memory with out 1", A, B, {device = "sim",
      out = {Y, Y}, epilogue = function(acc) return acc, acc end})
    -- An epilogue may read the elements of `out` that it overwrites, no others.
    local R = cute.make_tensor(b, cute.make_layout({32, 16}, {16, 1}))
    local bias = cute.make_tensor(b, cute.make_layout {16})
    local after = cute.make_tensor(R.iterator + 16, R.layout)
    cute.ops.gemm(A, B, {device = "sim", out = Y, epilogue = function(acc, at)
      return acc + at:tile(R)
    end})
    refuses("out shares memory with a tensor of the epilogue", A, B,
      {device = "sim", out = Y, epilogue = function(acc, at)
        return acc + at:tile(after)
      end})
    refuses("out shares memory with a tensor of the epilogue", A, B,
      {device = "sim", out = Y, epilogue = function(acc, at)
        return acc + at:col(bias)
      end})
    refuses("out shares memory with scale_b", A, B, {device = "sim", out = Y,
                                                     scale_b = bias})
  end)
end)

describe("ops.gemm rejects", function()
  it("no out between an operand's rows", function()
    local b = core.buffer("bf16", 32 * 96)
    local function columns(first, n, apart)
      local t = cute.make_tensor(b, cute.make_layout {1})
      return cute.make_tensor(t.iterator + first,
                              cute.make_layout({32, n}, {96, apart or 1}))
    end
    for _, c in ipairs {{64, 16}, {80, 16}, {64, 16, 2}} do
      b:fill_int(1, -2, 2)
      local X, D = columns(0, 64), columns(table.unpack(c))
      cute.ops.gemm(X, B, {device = "sim", out = D})
      assert.is_nil(ops.differs(X, B, D, function(_, _, _, sum) return sum end))
    end
    for _, c in ipairs {{63, 16}, {81, 16}, {70, 16, 2}} do
      refuses("out shares memory with A", columns(0, 64), B,
              {device = "sim", out = columns(table.unpack(c))})
    end
  end)
end)
-- SPDX-License-Identifier: MIT
