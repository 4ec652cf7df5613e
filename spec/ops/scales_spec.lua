-- Tests scale factors and mixed types of cute.ops.gemm against plain Lua. Scale
-- factors apply to a tensor, a row or a block of K, and are tested for all
-- 8-bit types.
local cute = require "cute"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local plans = require "cute.ops.plan"
local offered = require "cute.ops.gemm"
local support = require "spec.support"
local gemm = cute.ops.gemm

local function matrix(shape, dtype, seed, kind)
  return ops.tensor(ops.random(seed or 1), shape, dtype or "bf16", seed or 1,
                    kind or "k")
end

local function ceil_div(a, b) return (a + b - 1) // b end

-- Kinds of scales. Each function gets the numbers of rows and of elements along
-- K. It returns the tensor of factors, and a function that returns the factor
-- of element (i, k).
local SCALES = {}
function SCALES.none() return nil, function() return 1 end end
function SCALES.number() return 0.5, function() return 0.5 end end
function SCALES.one(_, _, _, seed)
  local t = matrix({1}, "f32", seed)
  return t, function() return t(0) end
end
function SCALES.rows(rows, _, _, seed)
  local t = matrix({rows}, "f32", seed)
  return t, function(i) return t(i) end
end
-- Makes scales with one factor for every `group` elements of a row.
function SCALES.strips(rows, K, group, seed)
  local t = matrix({rows, ceil_div(K, group)}, "f32", seed,
                   seed % 2 == 0 and "m" or "k")
  return t, function(i, k) return t(i, k // group) end
end
-- Makes scales with one factor for each block of 128 rows and `group` elements
-- of K.
function SCALES.blocks(rows, K, group, seed)
  local t = matrix({ceil_div(rows, 128), ceil_div(K, group)}, "f32", seed)
  return t, function(i, k) return t(i // 128, k // group) end
end

-- {types of A and B, M, N, K, kinds of scales, group, layouts}.
local CASES = {
  {"e4m3", "e4m3", 40, 48, 256, "one", "one"},
  {"e4m3", "e5m2", 40, 48, 128, "rows", "rows"},
  {"e5m2", "e4m3", 33, 50, 100, "number", "rows"},
  {"e5m2", "e5m2", 70, 64, 384, "strips", "blocks"},
  {"e4m3", "e4m3", 130, 150, 300, "strips", "blocks"},
  {"e4m3", "e4m3", 20, 140, 256, "strips", "strips"},
  {"e4m3", "e5m2", 130, 264, 256, "strips", "blocks"},
  {"e4m3", "e4m3", 72, 64, 384, "strips", "strips"},
  {"e5m2", "e4m3", 40, 48, 128, "rows", "blocks"},
  {"e4m3", "e4m3", 140, 24, 200, "blocks", "none"},
  {"i8", "i8", 40, 48, 128, "rows", "rows"},
  {"u8", "i8", 9, 31, 77, "one", "number"},
  {"bf16", "i8", 40, 48, 256, "none", "strips", 64},
  {"bf16", "u8", 33, 37, 96, "none", "strips", 32},
  {"f16", "i8", 3, 200, 256, "none", "strips", 128},
  {"i8", "bf16", 17, 40, 130, "rows", "none", nil, "m"},
  {"bf16", "e4m3", 33, 37, 100, "none", "rows", nil, "m"},
  {"f16", "e5m2", 65, 20, 64, "none", "none"},
  {"bf16", "bf16", 40, 64, 256, "strips", "strips", 64},
  -- the group of a factor is as long as one MMA's K
  {"e4m3", "e4m3", 20, 40, 96, "none", "strips", 32},
  {"bf16", "bf16", 20, 40, 64, "rows", "strips", 16},
  {"f16", "f16", 3, 150, 256, "rows", "blocks", 64},  -- few rows
  {"bf16", "i8", 17, 270, 192, "none", "blocks", 64},
}

local function check(c, device)
  local a, b, M, N, K, kind_a, kind_b, group, kind = table.unpack(c, 1, 9)
  local A, B = matrix({M, K}, a, 1, kind), matrix({N, K}, b, 2, kind)
  local SA, sa = SCALES[kind_a](M, K, group or 128, 3)
  local SB, sb = SCALES[kind_b](N, K, group or 128, 4)
  local o = {device = device, dtype = cute.f32, scale_a = SA, scale_b = SB,
             group = group}
  local function rows(t, factor, count)
    local list = {}
    for i = 0, count - 1 do
      for k = 0, K - 1 do list[i * K + k] = t(i, k) * factor(i, k) end
    end
    return list
  end
  local x, y, D = rows(A, sa, M), rows(B, sb, N), gemm(A, B, o)
  for i = 0, M - 1 do
    for j = 0, N - 1 do
      local sum = 0
      for k = 0, K - 1 do sum = sum + x[i * K + k] * y[j * K + k] end
      assert.equal(sum, D(i, j))
    end
  end
  return cute.ops.explain(A, B, o)
end

describe("factors and mixed types", function()
  for n, c in ipairs(CASES) do
    local name = ("%s x %s, %dx%dx%d, %s and %s"):format(table.unpack(c, 1, 7))
    it("are right: " .. name .. support.long(n), function()
      for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
        local e = check(c, device)
        if n % 4 == 0 then
          kernels.compiles(e:trace(), {device:match "sm_.*"})
        end
      end
    end)
    it("are right on a card: " .. name .. " #gpu", function()
      check(c, "gpu")
    end)
  end

  it("of blocks of K are in Hopper's kernel #long", function()
    local e = check({"e4m3", "e4m3", 130, 64, 256, "strips", "blocks"},
                    "sim:sm_90a")
    assert.equal("gemm_sm90", e.kernel)
    kernels.compiles(e:trace(), {"sm_90a"})
  end)

  it("of blocks of 8-bit floats may be of 16 bits #long", function()
    local A, B = matrix({40, 256}, "e4m3"), matrix({48, 256}, "e4m3", 2)
    local a, b = matrix({40, 2}, "bf16", 3), matrix({48, 2}, "f16", 4)
    local o = {device = "sim:sm_90a", scale_a = a, scale_b = b,
               dtype = cute.f32}
    assert.equal("gemm_sm90", cute.ops.explain(A, B, o).kernel)
    local D = gemm(A, B, o)
    for i = 0, 39 do
      for j = 0, 47 do
        local sum = 0
        for k = 0, 255 do
          sum = sum + A(i, k) * B(j, k) * a(i, k // 128) * b(j, k // 128)
        end
        assert.equal(sum, D(i, j))
      end
    end
  end)

  it("belong to each matrix of a batch, or to all #long", function()
    local L, M, N, K = 3, 20, 24, 256
    local A, B = matrix({L, M, K}, "e4m3"), matrix({L, N, K}, "e4m3", 2)
    -- Layouts of scale factors: {function of n that returns the extents for n
    -- rows, function that returns the factor of batch l, row i and block g of
    -- K}
    local FORMS = {
      rows = {function(n) return {L, n} end,
              function(t, l, i) return t(l, i) end},
      each = {function() return {L, 1} end, function(t, l) return t(l, 0) end},
      one = {function(n) return {1, n} end,
             function(t, _, i) return t(0, i) end},
      column = {function(n) return {n, 1} end,
                function(t, _, i) return t(i, 0) end},
      columns = {function(n) return {L, n, 1} end,
                 function(t, l, i) return t(l, i, 0) end},
      blocks = {function(n) return {L, n, 2} end,
                function(t, l, i, g) return t(l, i, g) end},
      squares = {function() return {L, 1, 2} end,
                 function(t, l, _, g) return t(l, 0, g) end},
      shared = {function(n) return {n, 2} end,
                function(t, _, i, g) return t(i, g) end}}
    for seed, c in ipairs {{"rows", "rows"}, {"each", "one"},
        {"blocks", "squares"}, {"shared", "blocks"}, {"column", "column"},
        {"columns", "columns"}} do
      local a, b = FORMS[c[1]], FORMS[c[2]]
      local sa, sb = matrix(a[1](M), "f32", seed), matrix(b[1](N), "f32",
                                                          seed + 9)
      for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
        local D = gemm(A, B, {device = device, dtype = cute.f32, scale_a = sa,
                              scale_b = sb})
        for l = 0, L - 1 do
          for i = 0, M - 1, 7 do
            for j = 0, N - 1, 5 do
              local sum = 0
              for k = 0, K - 1 do
                sum = sum + A(l, i, k) * B(l, j, k) * a[2](sa, l, i, k // 128)
                  * b[2](sb, l, j, k // 128)
              end
              assert.equal(sum, D(l, i, j))
            end
          end
        end
      end
    end
    for _, shape in ipairs {{2, M}, {2, M, 2}, {L, M, 3}, {L, 1, M, 2}} do
      local ok, why = pcall(gemm, A, B, {device = "sim",
        scale_a = cute.full(shape, 1, cute.f32)})
      assert.is_false(ok)
      assert.is_truthy(why:find("with modes of the batch in front or without",
                                1, true), why)
    end
    -- B is shared, but each batch has its own factors of B, so batches cannot
    -- be merged into rows
    local all = matrix({N, K}, "e4m3", 2)
    local each = matrix({L, N}, "f32", 5)
    local D = gemm(A, all, {device = "sim:sm_90a", dtype = cute.f32,
                            scale_b = each})
    assert.is_nil(ops.differs(A, all, D, function(l, _, j, sum)
      return sum * each(l[1], j)
    end))
  end)
end)

describe("factors and mixed types", function()
  it("of rows may have a trailing mode of extent 1, for any K", function()
    for _, K in ipairs {64, 192} do
      for device, types in pairs {["sim:sm_80"] = {"i8", "f32"},
                                  ["sim:sm_90a"] = {"i8"}} do
        for _, dtype in ipairs(types) do
          local A, B = matrix({20, K}, dtype), matrix({24, K}, dtype, 2)
          local a, b = matrix({20, 1}, "f32", 3), matrix({24, 1}, "f32", 4)
          local D = gemm(A, B, {device = device, dtype = cute.f32,
                                scale_a = a, scale_b = b})
          assert.is_nil(ops.differs(A, B, D, function(_, i, j, sum)
            return sum * a(i, 0) * b(j, 0)
          end))
        end
      end
    end
    local X, W = matrix({2, 5, 64}, "i8"), matrix({2, 24, 64}, "i8", 2)
    local a, b = matrix({2, 5, 1}, "f32", 3), matrix({2, 24, 1}, "f32", 4)
    local D = cute.ops.grouped_gemm(X, W, cute.tensor({5, 5}, cute.i32),
      {device = "sim:sm_80", dtype = cute.f32, scale_a = a, scale_b = b})
    assert.is_nil(ops.differs(X, W, D, function(l, i, j, sum)
      return sum * a(l[1], i, 0) * b(l[1], j, 0)
    end))
  end)

  it("of integer sums are fractions, like C and epilogue tensors #long",
     function()
    local A, B = matrix({40, 64}, "i8"), matrix({48, 64}, "i8", 2)
    local function full(...) return cute.full({...}, 0.25, cute.f32) end
    local a, b, C, T = full(40), full(48), full(40, 48), full(40, 48)
    local function right(device, c, o, want)
      o.device, o.dtype = device, cute.f32
      assert.is_nil(ops.differs(A, B, gemm(A, B, c, o), want))
    end
    for family, device in pairs {gemm_sm80 = "sim:sm_80",
                                 gemm_sm90 = "sim:sm_90a"} do
      assert.equal(family, cute.ops.explain(A, B, {device = device,
                                                   scale_a = a}).kernel)
      right(device, nil, {scale_a = a, scale_b = b}, function(_, _, _, sum)
        return sum / 16
      end)
      right(device, C, {}, function(_, _, _, sum) return sum + 0.25 end)
      right(device, nil, {epilogue = function(acc, at)
        return acc + at:row(a) + at:col(b) + at:tile(T)
      end}, function(_, _, _, sum) return sum + 0.75 end)
    end
  end)

  it("go before an epilogue, alpha and C", function()
    local A, B = matrix({20, 128}, "i8"), matrix({24, 128}, "i8", 2)
    local C, a = matrix({20, 24}, "f32", 3), matrix({20}, "f32", 4)
    local D = gemm(A, B, C, {device = "sim:sm_80", scale_a = a, scale_b = 2,
      alpha = 3, beta = 0.5, dtype = cute.f32,
      epilogue = function(acc) return acc * 2 + 1 end})
    assert.is_nil(ops.differs(A, B, D, function(_, i, j, sum)
      return (sum * a(i) * 6 + C(i, j) / 2) * 2 + 1
    end))
    assert.equal(cute.bf16, gemm(A, B, {device = "sim",
                                        scale_a = a}).element_type)
    assert.equal(cute.i32, gemm(A, B, {device = "sim"}).element_type)
  end)

  it("are other factors in a later call", function()
    local A, B = matrix({20, 128}, "e4m3"), matrix({24, 128}, "e4m3", 2)
    for i = 1, 3 do
      local a, b = matrix({20}, "f32", 5 + i), matrix({24, 1}, "f32", 9 + i)
      local D = gemm(A, B, {device = "sim", scale_a = a, scale_b = b,
                            dtype = cute.f32})
      assert.is_nil(ops.differs(A, B, D, function(_, r, c, sum)
        return sum * a(r) * b(c, 0)
      end))
    end
  end)

  it("have a fitting shape, or are rejected", function()
    local A, B = matrix({20, 256}, "e4m3"), matrix({24, 256}, "e4m3", 2)
    local function refuses(text, o)
      o.device = "sim"
      local ok, why = pcall(gemm, A, B, o)
      assert.is_false(ok)
      assert.is_truthy(why:find(text, 1, true), why)
      assert.is_truthy(why:find("scales_spec.lua:", 1, true), why)
    end
    refuses("scale_a is (21):(1): (1), (20), (20,2) or (1,2) is needed for 20 "
      .. "rows and 256 elements of K in groups of 128",
      {scale_a = matrix({21}, "f32")})
    refuses("scale_b is (24,3):(3,1): (1), (24), (24,2)",
            {scale_b = matrix({24, 3}, "f32")})
    refuses("group = 64 needs scale_a or scale_b", {group = 64})
    refuses("group = 0; 1 or more elements of K for each factor of scale_a and "
      .. "scale_b are needed", {group = 0, scale_b = matrix({24, 1}, "f32")})
    refuses('scale_a = "x": a number or tensor is needed', {scale_a = "x"})
    local X = matrix({8, 192}, "f64")
    local ok, why = pcall(gemm, X, X, {device = "sim",
                                       scale_a = matrix({8, 2}, "f32")})
    assert.is_false(ok)
    assert.is_truthy(why:find("factors for blocks of K need f32 "
      .. "accumulators", 1,
                              true), why)
  end)
end)

describe("8-bit weights with many rows", function()
  local function stand_in(shape, dtype)
    return cute.make_tensor(cute.empty({1}, dtype).iterator,
                            cute.make_layout(shape, cute.LayoutRight))
  end

  it("are converted once if that is faster", function()
    for _, c in ipairs {{16, "gemm_skinny"}, {64, "gemm_splitk"},
                        {512, "moved"}, {2048, "moved"}} do
      for _, types in ipairs {{"bf16", "i8"}, {"f16", "e4m3"}} do
        local A, B = stand_in({c[1], 4096}, types[1]),
          stand_in({4096, 4096}, types[2])
        local p, list = offered.offers(A, B, {device = "sim:sm_90a",
          scale_b = stand_in({4096}, "f32")})
        local best = list[1]
        assert.equal(c[2], best.base == "moved" and best.base or best.family)
        if best.base == "moved" then
          assert.matches("^" .. c[1] .. " x 4096 x 4096, .*\n  gemm_sm90 with "
            .. "B as " .. types[1] .. " repacked %([%d.]+ us%).*\n  why: "
            .. "Hopper "
            .. "tensor cores, after operands are repacked for TMA and wgmma; "
            .. "by rule",
            tostring(cute.ops.explain(A, B, {device = "sim:sm_90a",
              scale_b = stand_in({4096}, "f32")})))
        end
        assert.equal(types[2], p.b.name)
      end
    end
    local A, B = stand_in({512, 4096}, "bf16"), stand_in({4096, 4096}, "i8")
    for device, operands in pairs {["sim:sm_80"] = {A, B},
        ["sim:sm_90a"] = {stand_in({512, 4096}, "i8"),
                          stand_in({4096, 4096}, "bf16")}} do
      local e = cute.ops.explain(operands[1], operands[2], {device = device})
      assert.is_nil(e.moved)
      assert.matches("tensor cores by mma.sync", e.why, 1, true)
    end
  end)

  -- Computes A B with each family of kernels. Returns a list of {family, order
  -- of additions, elements of the result as text}.
  local function by_families(A, B, o)
    local seen, out = {}, {}
    for i, c in ipairs(select(2, offered.offers(A, B, o))) do
      if not seen[c.base] and c.split == 1 then
        seen[c.base] = true
        local p, again, call = offered.offers(A, B, o)
        local D = plans.new(p, again[i], call):run(call, function() end)
        local bits = {}
        for r = 0, D.shape[1] - 1 do
          for j = 0, D.shape[2] - 1 do bits[#bits + 1] = D(r, j) end
        end
        out[#out + 1] = {c.base, c.order, table.concat(bits, " ")}
      end
    end
    return out
  end

  for _, c in ipairs {
      {"bf16", "i8", 40, 72, 320, {72, 3}, 128},
      {"f16", "u8", 70, 72, 192, {72}}, {"bf16", "e4m3", 33, 136, 192, {2, 3},
       64}, {"bf16", "e5m2", 33, 40, 128}} do
    it(("have the bits of other kernels: %s x %s, %dx%dx%d"):format(
       table.unpack(c, 1, 5)), function()
      local m, n, k = c[3], c[4], c[5]
      local A = cute.randn({m, k}, cute[c[1]], {seed = 1})
      local B = cute[c[2]].is_integer and cute.randint(0, 100, {n, k},
        cute[c[2]], {seed = 2}) or cute.randn({n, k}, cute[c[2]], {seed = 2})
      local list = by_families(A, B, {device = "sim:sm_90a", dtype = cute.f32,
        group = c[7], scale_b = c[6] and cute.randn(c[6], cute.f32,
                                                    {seed = 3})})
      assert.equal(2, #list)
      assert.same({"gemm_sm80", "moved"}, {list[1][1] < list[2][1]
        and list[1][1] or list[2][1], list[1][1] < list[2][1] and list[2][1]
        or list[1][1]})
      assert.equal(list[1][2], list[2][2])
      assert.equal(list[1][3], list[2][3])
    end)
  end

  -- Checks products with so many rows that ops.gemm first converts operands.
  -- Their results are exact.
  local function check_many(device)
    local A, B = matrix({384, 512}, "bf16"), matrix({1024, 512}, "i8", 2)
    local s = matrix({1024, 4}, "bf16", 3)
    local o = {device = device, scale_b = s, dtype = cute.f32,
               epilogue = function(acc, at)
                 return acc * 2.0, at:row_reduce("max", acc)
               end}
    local e = cute.ops.explain(A, B, o)
    assert.equal("B as bf16", e.moved)
    for _ = 1, 3 do
      local D, most = gemm(A, B, o)
      for i = 0, 383, 37 do
        local row = -math.huge
        for j = 0, 1023 do
          local sum = 0
          if j % 31 == 0 then
            for k = 0, 511 do
              sum = sum + A(i, k) * B(j, k) * s(j, k // 128)
            end
            assert.equal(2 * sum, D(i, j))
          end
          row = math.max(row, D(i, j) / 2)
        end
        assert.equal(row, most(i))
      end
    end
  end
  it("are right on a card, call after call #gpu", function()
    check_many "gpu"
  end)
end)

describe("int4 weights", function()
  local function numbers(shape, dtype, seed, lo, hi)
    local t = cute.zeros(shape, dtype)
    local n = cute.size(t)
    local pick = ops.random(seed)
    local flat = cute.make_tensor(t.iterator, cute.make_layout {n})
    for i = 0, n - 1 do flat[i] = lo + pick(hi - lo + 1) end
    return t
  end

  -- Returns a copy of factors, (N,K/group) or (N), in which N is contiguous.
  local function by_column(t, group)
    if group then return cute.make_tensor(t.iterator, cute.select(t.layout,
                                                                  {1, 0})) end
    return cute.make_tensor(t.iterator, cute.make_layout {t.shape[2]})
  end

  -- Returns f(i, j), the dot product of row i of A and row j of the weights (q
  -- - z) * s. q is (N,K). The factors s and the zero points z (8 if absent) are
  -- (K/group,N).
  local function products(A, q, s, z, group)
    return function(i, j)
      local sum = 0
      for k = 0, A.shape[2] - 1 do
        local g = group and k // group or 0
        sum = sum + A(i, k) * (q(j, k) - (z and z(g, j) or 8)) * s(g, j)
      end
      return sum
    end
  end

  local function check_int4(device, dtype, M, N, K, group, zeros)
    local A, q = matrix({M, K}, dtype), numbers({N, K}, "u8", 3, 0, 15)
    local along = group and K // group or 1
    local s = numbers({along, N}, dtype, 4, 1, 3)
    local z = zeros and numbers({along, N}, "u8", 5, 0, 15)
    local bias = matrix({N}, "f32", 9)
    local o = {device = device, dtype = cute.f32, group = group,
      scale_b = by_column(s, group), zeros = z and by_column(z, group) or nil,
      epilogue = function(acc, at)
        return acc * 2.0 + at:col(bias), acc:to(cute.f16),
          at:row_reduce("sum", acc)
      end}
    local W = cute.ops.int4(q)
    assert.equal("gemm_int4", cute.ops.explain(A, W, o).kernel)
    local D, plain, rows = gemm(A, W, o)
    local want = products(A, q, s, z, group)
    for i = 0, M - 1 do
      local all = 0
      for j = 0, N - 1 do
        local sum = want(i, j)
        assert.equal(sum * 2 + bias(j), D(i, j))
        assert.equal(ops.rounded "f16"(sum), plain(i, j))
        all = all + sum
      end
      assert.equal(all, rows(i))
    end
    return cute.ops.explain(A, W, o)
  end

  local function check_gates(device, M, N, K, group, zeros)
    local A, q = matrix({M, K}, "bf16"), numbers({2 * N, K}, "u8", 3, 0, 15)
    local s = numbers({K // group, 2 * N}, "bf16", 4, 1, 3)
    local z = zeros and numbers({K // group, 2 * N}, "u8", 5, 0, 15)
    local bias = matrix({N}, "f32", 9)
    local o = {device = device, dtype = cute.f32, group = group, gated = true,
      scale_b = by_column(s, group), zeros = z and by_column(z, group) or nil,
      epilogue = function(gate, up, at) return gate - up + at:col(bias) end}
    local W = cute.ops.int4(q)
    local D, want = gemm(A, W, o), products(A, q, s, z, group)
    for i = 0, M - 1 do
      for j = 0, N - 1 do
        assert.equal(want(i, j) - want(i, j + N) + bias(j), D(i, j))
      end
    end
    return cute.ops.explain(A, W, o)
  end

  for _, c in ipairs {{5, 48, 256, 64, true}, {33, 80, 128, 128}} do
    it(("have gates: %dx%dx%d #long"):format(table.unpack(c)), function()
      local e = check_gates("sim:sm_90a", table.unpack(c))
      kernels.compiles(e:trace(), {"sm_90a"})
    end)
    it(("have gates: %dx%dx%d #gpu"):format(table.unpack(c)), function()
      check_gates("gpu", table.unpack(c))
    end)
  end

  for i, c in ipairs {{"bf16", 5, 64, 256, 64, true}, {"f16", 1, 32, 128, 128},
                      {"bf16", 17, 48, 192, nil, true}} do
    it(("are numbers with factors: %s, %dx%dx%d"):format(table.unpack(c, 1, 4))
       .. support.long(i), function()
      local e = check_int4("sim:sm_90a", table.unpack(c, 1, 6))
      kernels.compiles(e:trace(), {"sm_90a"})
      check_int4("sim:sm_80", table.unpack(c, 1, 6))
    end)
    it(("are numbers with factors: %s, %dx%dx%d #gpu"):format(
       table.unpack(c, 1, 4)), function()
      check_int4("gpu", table.unpack(c, 1, 6))
    end)
  end
end)

describe("int4 weights", function()
  it("are rejected if they do not fit", function()
    local W = cute.ops.int4(function() return 8 end, 16, 64)
    local A, s = matrix {4, 64}, matrix({16}, "bf16")
    local function refuses(text, o, X, w)
      o.device = "sim"
      local ok, why = pcall(gemm, X or A, w or W, o)
      assert.is_false(ok)
      assert.is_truthy(why:find(text, 1, true), why)
    end
    refuses("gemm_int4 needs scale_b, with one factor for each column or for "
      .. "each group of K",
            {})
    refuses("gemm_int4 needs A of bf16 or f16, not f32", {scale_b = s},
            matrix({4, 64}, "f32"))
    refuses("with gated = true gemm_int4 needs N to be a multiple of 16, but "
      .. "it is 8", {scale_b = s,
      gated = true, epilogue = function(gate, up) return gate * up end})
    refuses("K is 128 in one and 64 in the "
      .. "other", {scale_b = s}, matrix {4, 128})
    refuses("the option zeros needs int4 weights, the result of ops.int4, as B",
            {zeros = s}, nil, matrix {16, 64})
    refuses("both need the same layout", {scale_b = s,
                                          zeros = matrix({8}, "u8")})
    refuses("need N contiguous, not (16,1):(2,1)", {group = 64,
      scale_b = cute.make_tensor(matrix({32}, "bf16").iterator,
                                 cute.make_layout({16, 1}, {2, 1}))})
    refuses("B is {}; a tensor or the result of ops.int4 is "
      .. "needed", {}, nil, {})
    assert.is_false(pcall(cute.ops.int4, matrix({15, 64}, "u8")))
  end)
end)

-- {M, N, K, columns that share a factor, options of gemm_sm90}. Some products
-- have more tiles along K than stages, others fewer. The number of tiles is no
-- multiple of the number of stages that multiply_overlapped
-- (kernels/gemm_sm90/mainloop.lua) processes at once.
local TILED = {
  {130, 152, 384, 1, {tile = {128, 128, 128}, stages = 3}},
  {130, 300, 384, 128, {tile = {128, 192, 128}, stages = 3}},
  {130, 304, 1152, 128, {tile = {128, 128, 128}, schedule = "pingpong"}},
  {130, 136, 640, 128, {tile = {128, 80, 128}, stages = 2}},
  {70, 104, 640, 1, {tile = {64, 64, 128}, consumers = 1, split = 2}},
  {70, 72, 1280, 128, {tile = {64, 96, 128}, consumers = 1, split = 4}},
  {270, 104, 640, 1, {tile = {256, 96, 128}, stages = 3}},
  {70, 104, 128, 1, {tile = {64, 96, 128}, consumers = 1, persistent = false}},
  {130, 152, 384, 1, {tile = {128, 160, 128}, cluster = {2, 1}, stages = 3}},
  {70, 104, 640, 1, {tile = {64, 64, 128}, consumers = 1, persistent = false,
                     pdl = true, ahead = "b"}},
}

describe("factors of blocks of K in gemm_sm90", function()
  for n, c in ipairs(TILED) do
    local M, N, K, blocks, o = table.unpack(c)
    local name = ("%dx%dx%d, %d columns, tile %s"):format(M, N, K, blocks,
      table.concat(o.tile, "x"))
    it("are right: " .. name .. support.long(n), function()
      local A, B = matrix({M, K}, "e4m3", 1), matrix({N, K}, "e4m3", 2)
      local SA, sa = SCALES.strips(M, K, 128, 4)
      local SB, sb
      if blocks == 1 then
        SB, sb = SCALES.strips(N, K, 128, 5)
      else
        local t, f = SCALES.blocks(N, K, 128, 5)
        local rows, along = table.unpack(t.shape)
        SB, sb = cute.make_tensor(t.iterator, cute.make_layout(
          {{128, rows}, along}, {{0, t.stride[1]}, t.stride[2]})), f
      end
      local D = cute.full({M, N}, 0 / 0, cute.f32)
      local all = {blocks = blocks, dtype = cute.e4m3, d_dtype = cute.f32}
      for option, v in pairs(o) do all[option] = v end
      local made = require "kernels.gemm_sm90" (all)
      local run = made.prepare(A, B, D, {device = "sim:sm_90a", sms = 3,
                                         factors = {SA, SB}})
      run:launch()
      for i = 0, M - 1, 17 do
        for j = 0, N - 1, 7 do
          local sum = 0
          for k = 0, K - 1 do
            sum = sum + A(i, k) * B(j, k) * sa(i, k) * sb(j, k)
          end
          assert.equal(sum, D(i, j))
        end
      end
      kernels.compiles(run.program, {"sm_90a"})
    end)
  end

  it("cannot be combined with some options", function()
    for _, o in ipairs {{scheduler = "dynamic"}, {split = "stream"},
                        {split = 2, promote = 2}} do
      o.blocks, o.dtype = 1, cute.e4m3
      assert.error_matches(function() require "kernels.gemm_sm90" (o) end,
                           "blocks = 1 cannot be combined with")
    end
  end)
end)
-- SPDX-License-Identifier: MIT
