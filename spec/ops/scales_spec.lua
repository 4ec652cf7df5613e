-- Factors and mixed types of cute.ops.gemm: by tensor, by row, by blocks of K,
-- of all 8-bit types, against plain Lua.
local cute = require "cute"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local gemm = cute.ops.gemm

local function matrix(shape, dtype, seed, kind)
  return ops.tensor(ops.random(seed or 1), shape, dtype or "bf16", seed or 1,
                    kind or "k")
end

local function ceil_div(a, b) return (a + b - 1) // b end

-- Scales of `rows` rows and K elements: the tensor, and its factor of (i, k).
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
function SCALES.strips(rows, K, group, seed)  -- 1 x group
  local t = matrix({rows, ceil_div(K, group)}, "f32", seed,
                   seed % 2 == 0 and "m" or "k")
  return t, function(i, k) return t(i, k // group) end
end
function SCALES.blocks(rows, K, group, seed)  -- 128 x group
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
    it("are right: " .. name, function()
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

  it("of blocks of K are in Hopper's kernel", function()
    local e = check({"e4m3", "e4m3", 130, 64, 256, "strips", "blocks"},
                    "sim:sm_90a")
    assert.equal("gemm_sm90", e.kernel)
    kernels.compiles(e:trace(), {"sm_90a"})
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

  it("have a shape that fits, or are refused", function()
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
    refuses("group is of scale_a or scale_b", {group = 64})
    refuses('scale_a = "x": a number or tensor is needed', {scale_a = "x"})
    local ok, why = pcall(gemm, matrix({8, 64}, "f64"), matrix({8, 64}, "f64"),
      {device = "sim", scale_a = matrix({8, 1}, "f32")})
    assert.is_false(ok)
    assert.is_truthy(why:find("factors for blocks of K are of f32 sums", 1,
                              true), why)
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

  -- (N,K/group), or (N), with N contiguous.
  local function by_column(t, group)
    if group then return cute.make_tensor(t.iterator, cute.select(t.layout,
                                                                  {1, 0})) end
    return cute.make_tensor(t.iterator, cute.make_layout {t.shape[2]})
  end

  -- f(i, j): sums of weights q, (N,K), and their factors, (K/group,N).
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
    it(("have gates: %dx%dx%d"):format(table.unpack(c)), function()
      local e = check_gates("sim:sm_90a", table.unpack(c))
      kernels.compiles(e:trace(), {"sm_90a"})
    end)
    it(("have gates: %dx%dx%d #gpu"):format(table.unpack(c)), function()
      check_gates("gpu", table.unpack(c))
    end)
  end

  for _, c in ipairs {{"bf16", 5, 64, 256, 64, true}, {"f16", 1, 32, 128, 128},
                      {"bf16", 17, 48, 192, nil, true}} do
    it(("are numbers with factors: %s, %dx%dx%d"):format(table.unpack(c, 1, 4)),
       function()
      local e = check_int4("sim:sm_90a", table.unpack(c, 1, 6))
      kernels.compiles(e:trace(), {"sm_90a"})
      check_int4("sim:sm_80", table.unpack(c, 1, 6))
    end)
    it(("are numbers with factors: %s, %dx%dx%d #gpu"):format(
       table.unpack(c, 1, 4)), function()
      check_int4("gpu", table.unpack(c, 1, 6))
    end)
  end

  it("are refused where they do not fit", function()
    local W = cute.ops.int4(function() return 8 end, 16, 64)
    local A, s = matrix {4, 64}, matrix({16}, "bf16")
    local function refuses(text, o, X, w)
      o.device = "sim"
      local ok, why = pcall(gemm, X or A, w or W, o)
      assert.is_false(ok)
      assert.is_truthy(why:find(text, 1, true), why)
    end
    refuses("gemm_int4 wants scale_b, one of each column, or of groups of K",
            {})
    refuses("gemm_int4 has A of bf16 or f16, not of f32", {scale_b = s},
            matrix({4, 64}, "f32"))
    refuses("gates of gemm_int4 come in groups of 16, N is 8", {scale_b = s,
      gated = true, epilogue = function(gate, up) return gate * up end})
    refuses("K of 128 and of 64 do not agree", {scale_b = s}, matrix {4, 128})
    refuses("zeros are of int4 weights", {zeros = s}, nil, matrix {16, 64})
    refuses("they want the same layout", {scale_b = s,
                                          zeros = matrix({8}, "u8")})
    refuses("lie with N contiguous, not (16,1):(2,1)", {group = 64,
      scale_b = cute.make_tensor(matrix({32}, "bf16").iterator,
                                 cute.make_layout({16, 1}, {2, 1}))})
    refuses("B is {}; a tensor is needed, or what ops.int4 gives", {}, nil, {})
    assert.is_false(pcall(cute.ops.int4, matrix({15, 64}, "u8")))
  end)
end)
