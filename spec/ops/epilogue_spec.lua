-- Tests epilogues of cute.ops.gemm against plain Lua, with kernels of every
-- family. Epilogues use vectors and matrices, additional results, reductions,
-- dropout, and captured values.
local choose = require "cute.ops.choose"
local cute = require "cute"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local plans = require "cute.ops.plan"
local products = require "cute.ops.gemm"
local support = require "spec.support"
local gemm = cute.ops.gemm

local NEAR = {f32 = 1e-5, bf16 = 1 / 128, f16 = 1 / 1024}

local function matrix(shape, dtype, seed)
  return ops.tensor(ops.random(seed or 1), shape, dtype or "bf16", seed or 1,
                    "k")
end

-- Each case is {kernel, M, N, K, type, device, number of batches}. "as D^T"
-- means that the kernel computes the transposed product. Some sizes are
-- multiples of a tile, others are not.
local CASES = {
  {"gemm_sm80", 70, 67, 41, "bf16", "sim:sm_90a"},
  {"gemm_sm90 as D^T", 300, 8, 64, "bf16", "sim:sm_90a"},
  {"gemm_sm90", 72, 40, 64, "f16", "sim:sm_90a", 3},
  {"gemm_sm90", 129, 264, 128, "bf16", "sim:sm_90a"},
  {"gemm_sm80", 35, 200, 64, "f16", "sim:sm_80", 2},
  {"gemm_skinny", 3, 200, 64, "f16", "sim:sm_80", 2},
  {"gemm_splitk", 33, 20, 4100, "bf16", "sim:sm_80"},
  {"gemm_simt", 50, 70, 24, "f32", "sim:sm_80"},
  {"gemm_simt", 131, 9, 7, "f32", "sim:sm_80", 3},
}

-- Calls f(A, B, call, batches) for each family. call(o, want) runs the product
-- with options o and compares D with want(batch, i, j, sum). It returns D and
-- the other results.
local function each_family(what, f, gpu)
  for n, c in ipairs(CASES) do
    local name, M, N, K, dtype, device, batches = table.unpack(c, 1, 7)
    local lead = batches and {batches} or {}
    it(("%s: %s, %dx%dx%d%s%s"):format(what, name, M, N, K,
       batches and " x " .. batches or "",
       gpu and " #gpu" or support.long(n)), function()
      local function extents(...)
        return table.move({...}, 1, select("#", ...), #lead + 1, {
          table.unpack(lead)})
      end
      local A = matrix(extents(M, K), dtype, n)
      local B = matrix({N, K}, dtype, n + 10)
      f(A, B, function(o, want)
        o.device, o.dtype = gpu or device, o.dtype or cute.f32
        if not gpu then
          assert.matches(name, tostring(cute.ops.explain(A, B, o)), 1, true)
        end
        local all = table.pack(gemm(A, B, o))
        assert.is_nil(ops.differs(A, B, all[1], want))
        return table.unpack(all, 1, all.n)
      end, extents, M, N, batches or 1)
    end)
  end
end

-- Returns element i of v's last mode, in batch l.
local function element(v, l, i)
  if cute.rank(v) == 1 then return v(i) end
  return v(v.shape[1] == 1 and 0 or l, i)
end

local function families(gpu)
  each_family("brings rows, columns and matrices", function(A, B, call, extents,
                                                            M, N)
    local row, col = matrix(extents(M), "f32", 3), matrix({N}, "f16", 4)
    local T, factor = matrix(extents(M, N), "bf16", 5), 2.0
    local _, also = call({epilogue = function(acc, at)
      local y = acc * factor + at:row(row) * 3 + at:col(col)
      return y - at:tile(T), y:to(cute.f16)
    end}, function(batch, i, j, sum)
      return sum * 2 + 3 * element(row, batch[1], i) + col(j)
        - ops.at(T, batch, i, j)
    end)
    assert.equal(cute.f16, also.element_type)
    assert.is_nil(ops.differs(A, B, also, function(batch, i, j, sum)
      return sum * 2 + 3 * element(row, batch[1], i) + col(j)
    end))
  end, gpu)

  each_family("reduces rows, columns, and all", function(A, B, call, _, M, N,
                                                         L)
    local _, sum, top, low, mean, amax, rms, total, shift = nil
    local lift = 1.5
    _, sum, top, low, mean, amax, rms, total, shift = call({
      epilogue = function(acc, at)
        local y = acc + lift
        return y, at:row_reduce("sum", y), at:row_reduce("max", y),
          at:col_reduce("min", y), at:col_reduce("mean", y),
          at:reduce("amax", y), at:row_reduce("rms", y), at:reduce("sum", y),
          at:col_reduce("sum", acc)
      end}, function(_, _, _, x) return x + 1.5 end)
    local rows, cols, all = {}, {}, {s = 0, a = 0}
    local fresh = {__index = function(t, k)
      local x = {s = 0, q = 0, max = -math.huge, min = math.huge, p = 0}
      rawset(t, k, x)
      return x
    end}
    setmetatable(rows, fresh)
    setmetatable(cols, fresh)
    ops.each(A, B, cute.zeros(L > 1 and {L, M, N} or {M, N}, cute.f32),
      function(batch, i, j, x)
        local l, y = batch[1] or 0, x + 1.5
        for _, t in ipairs {rows[l * M + i], cols[l * N + j]} do
          t.s, t.q, t.p = t.s + y, t.q + y * y, t.p + x
          t.max, t.min = math.max(t.max, y), math.min(t.min, y)
        end
        all.s, all.a = all.s + y, math.max(all.a, math.abs(y))
      end)
    local function close(want, got)
      assert.is_true(math.abs(want - got) <= 1e-5 * math.abs(want) + 1e-6,
        ("%s, not %s"):format(got, want))
    end
    for l = 0, L - 1 do
      for i = 0, M - 1 do
        local r = rows[l * M + i]
        assert.equal(r.s, element(sum, l, i))
        assert.equal(r.max, element(top, l, i))
        close((r.q / N) ^ 0.5, element(rms, l, i))
      end
      for j = 0, N - 1 do
        local c = cols[l * N + j]
        assert.equal(c.min, element(low, l, j))
        assert.equal(c.p, element(shift, l, j))
        close(c.s / M, element(mean, l, j))
      end
    end
    assert.equal(all.a, amax(0))
    close(all.s, total(0))
  end, gpu)

  each_family("says where elements are", function(_, _, call)
    call({epilogue = function(acc, at)
      local i, j = at:coords()
      return acc + i:to(cute.f32) * 1000 + j:to(cute.f32)
    end}, function(_, i, j, sum) return sum + 1000 * i + j end)
  end, gpu)
end

describe("an epilogue", function() families() end)
describe("an epilogue on a card", function() families "gpu" end)

local P, Q = matrix {40, 64}, matrix({24, 64}, "bf16", 2)
local function mul(f, o)
  o = o or {}
  o.device, o.dtype, o.epilogue = "sim:sm_80", o.dtype or cute.f32, f
  return gemm(P, Q, o)
end
local function holds(want, D)
  assert.is_nil(ops.differs(P, Q, D, want))
end

describe("an epilogue", function()
  it("has the functions of networks", function()
    -- formula 7.1.26 of Abramowitz and Stegun, whose error is at most 1.5e-7
    local erf = function(x)
      local t = 1 / (1 + 0.3275911 * math.abs(x))
      local y = 1 - (((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t
        - 0.284496736) * t + 0.254829592) * t * math.exp(-x * x)
      return x < 0 and -y or y
    end
    local function tanh(x) return 1 - 2 / (math.exp(2 * x) + 1) end
    for name, want in pairs {
      relu = function(x) return math.max(x, 0) end,
      sigmoid = function(x) return 1 / (1 + math.exp(-x)) end,
      silu = function(x) return x / (1 + math.exp(-x)) end,
      gelu = function(x) return x / 2 * (1 + erf(x / 2 ^ 0.5)) end,
      gelu_tanh = function(x)
        return x / 2 * (1 + tanh((2 / math.pi) ^ 0.5
          * (x + 0.044715 * x ^ 3)))
      end} do
      local f, scale = cute.ops[name], 0.125
      local D = mul(function(acc) return f(acc * scale) end)
      ops.each(P, Q, D, function(_, i, j, sum)
        local y = want(sum * 0.125)
        assert.is_true(math.abs(D(i, j) - y) <= 2e-6 + NEAR.f32 * math.abs(y),
          ("%s: %s, not %s"):format(name, D(i, j), y))
      end)
    end
  end)

  it("saturates whole sums in D's type #long", function()
    local X, Y = cute.full({9, 64}, 10, cute.i8), matrix({8, 64}, "i8", 2)
    for d, limits in pairs {i8 = {-128, 127}, u8 = {0, 255},
        i16 = {-32768, 32767}, u16 = {0, 65535}, u32 = {0, 1 << 31},
        i64 = {-1 << 31, 1 << 31}} do
      for _, f in ipairs {false, function(acc) return acc * 300 end} do
        local D = gemm(X, Y, {device = "sim:sm_90a", dtype = d,
                              alpha = f and 2 or 1, epilogue = f or nil})
        assert.is_nil(ops.differs(X, Y, D, function(_, _, _, sum)
          sum = f and sum * 600 or sum
          return math.max(limits[1], math.min(limits[2], sum))
        end), d)
      end
    end
  end)

  it("adds whole numbers that i32 does not have to whole sums #long", function()
    local X = cute.full({16, 16}, 3, cute.i8)
    local far = (1 << 40) + 1
    for _, c in ipairs {{"i64", far, "i64", far + 144}, {"i64", far, "i32",
        0x7fffffff}, {"i64", -far, "u8", 0}, {"u32", 4000000000, "u32",
        4000000144}, {"u32", 4000000000, "i64", 4000000144}} do
      local C = cute.full({16, 16}, c[2], cute[c[1]])
      for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
        local D = gemm(X, X, C, {device = device, dtype = c[3]})
        assert.equal(c[4], D(15, 15))
      end
      if c[1] == c[3] then
        gemm(X, X, {device = "sim", out = C, accumulate = true})
        assert.equal(c[4], C(15, 15))
      end
    end
  end)

  it("reduces magnitudes, of sums below 0, too", function()
    for _, device in ipairs {"sim:sm_80", "sim:sm_90a"} do
      local _, rows, all = gemm(P, Q, {device = device,
        epilogue = function(acc, at)
          local x = -cute.abs(acc)
          return x, at:row_reduce("amax", x), at:reduce("amax", x)
        end})
      local most, top = {}, 0
      ops.each(P, Q, gemm(P, Q, {device = device}), function(_, i, _, sum)
        most[i] = math.max(most[i] or 0, math.abs(sum))
        top = math.max(top, most[i])
      end)
      for i, x in pairs(most) do assert.equal(x, rows(i)) end
      assert.equal(top, all(0))
    end
  end)

  it("may be a function of cute's, of the sums alone", function()
    for f, want in pairs {[cute.ops.relu] = function(x) return math.max(x, 0)
        end, [cute.abs] = math.abs} do
      assert.is_nil(ops.differs(P, Q, gemm(P, Q, {device = "sim:sm_80",
        dtype = cute.f32, epilogue = f}), function(_, _, _, sum)
        return want(sum)
      end))
    end
  end)

  it("follows alpha, C and beta", function()
    local C = matrix({40, 24}, "f32", 7)
    local D = gemm(P, Q, C, {alpha = 2, beta = 3, device = "sim:sm_80",
      epilogue = function(acc) return acc * 10 end})
    holds(function(_, i, j, sum) return (2 * sum + 3 * C(i, j)) * 10 end, D)
  end)

  it("decides D's type by a cast", function()
    local D = gemm(P, Q, {device = "sim", epilogue = function(acc)
      return acc:to(cute.f16)
    end})
    assert.equal(cute.f16, D.element_type)
    assert.equal(cute.bf16, gemm(P, Q, {device = "sim",
      epilogue = function(acc) return acc + 1 end}).element_type)
  end)
end)

describe("an epilogue", function()
  it("writes results to the given tensors", function()
    local D, twice = cute.zeros({40, 24}, cute.f32),
      cute.zeros({40, 24}, cute.bf16)
    local sums = cute.zeros({40}, cute.f32)
    local d, t, s = mul(function(acc, at)
      return acc, acc * 2, at:row_reduce("sum", acc)
    end, {out = {D, twice, sums}})
    assert.is_true(rawequal(d, D) and rawequal(t, twice) and rawequal(s, sums))
    holds(function(_, _, _, sum) return 2 * sum end, twice)
    assert.is_true(pcall(holds, function(_, _, _, sum) return sum end, D))
  end)

  it("takes numbers and tensors as arguments: one kernel for all",
     function()
    local name, made = "kernels.gemm_sm80", 0
    local plain <close> = setmetatable({require(name)}, {
      __close = function(t) package.loaded[name] = t[1] end})
    package.loaded[name] = function(o)
      made = made + 1
      return plain[1](o)
    end
    local function make(bias, gain, t)
      return function(acc, at) return acc * gain + at:col(bias) * t.x end
    end
    for i = 1, 4 do
      local bias = matrix({24}, "f32", 30 + i)
      local D = mul(make(bias, i + 0.0, {x = 2.0 * i}))
      holds(function(_, _, j, sum) return sum * i + bias(j) * 2 * i end, D)
    end
    assert.equal(1, made)
    local bias, gain, t = matrix({24}, "f32", 40), 1.0, {x = 1.0}
    local function f(acc, at) return acc * gain + at:col(bias) * t.x end
    for i = 1, 3 do
      gain, t.x, bias = i + 0.0, i + 1.0, matrix({24}, "f32", 50 + i)
      holds(function(_, _, j, sum) return sum * i + bias(j) * (i + 1) end,
            mul(f))
    end
    assert.equal(2, made)
  end)

  it("takes arguments of functions that it calls, too", function()
    local gain, bias = 2.0, matrix({24}, "f32", 3)
    local function add(x, at) return x + at:col(bias) end
    local function act(x, at) return add(x * gain, at) end
    for i = 1, 3 do
      gain, bias = i + 0.0, matrix({24}, "f32", 60 + i)
      holds(function(_, _, j, sum) return sum * i + bias(j) end,
            mul(function(acc, at) return act(acc, at) end))
    end
  end)

  it("is the function of its call, not an earlier one of the same code",
     function()
    local X, o = cute.full({16}, 3, cute.f32), {device = "sim:sm_80"}
    local function made()
      local sign, table_of = nil, {by = {1}}
      return function(x)
        if sign == "-" then x = -x end
        return x * table_of.by[1]
      end, function(s, by)
        sign = s
        if by then table_of.by[1] = by end
      end
    end
    local function right(f_, by)
      local D = gemm(P, Q, {device = "sim:sm_80", dtype = "f32",
                            epilogue = f_})
      assert.is_nil(ops.differs(P, Q, D, function(_, _, _, sum)
        return sum * by
      end))
      assert.equal(3 * by, cute.ops.elementwise(f_, X, o)(0))
    end
    local f, set_f = made()
    local g, set_g = made()
    right(f, 1)
    set_f "-"
    right(g, 1)
    right(f, -1)
    set_g(nil, 2)
    right(g, 2)
    set_g("-", 5)
    set_f(nil, 4)
    right(f, 4)
    right(g, -5)
  end)

  it("sees that constants change", function()
    for _, mode in ipairs {"a", "b", "a"} do
      local f = function(acc)
        if mode == "a" then return acc end
        return acc * -1
      end
      holds(function(_, _, _, sum) return mode == "a" and sum or -sum end,
            mul(f))
    end
    local config = {scale = 2}
    local function scaled(acc, t) return acc * t.scale end
    local function through(acc) return scaled(acc, config) end
    for i = 1, 3 do
      config.scale = i
      holds(function(_, _, _, sum) return sum * i end, mul(through))
    end
    local n = 2
    local function repeated(acc)
      for _ = 1, n do acc = acc + 1 end
      return acc
    end
    for i = 1, 2 do
      n = cute.constexpr(i)
      holds(function(_, _, _, sum) return sum + i end, mul(repeated))
    end
  end)
end)

describe("an epilogue", function()
  it("keeps numbers of f64 whole", function()
    local X, Y = matrix({9, 16}, "f64"), matrix({8, 16}, "f64", 2)
    local third = 1 / 3
    local D = gemm(X, Y, {device = "sim:sm_80", epilogue = function(acc)
      return acc * third
    end})
    assert.is_nil(ops.differs(X, Y, D, function(_, _, _, sum)
      return sum * (1 / 3)
    end))
  end)

  it("of whole sums has scales of f32", function()
    local X, Y = matrix({33, 64}, "i8"), matrix({20, 64}, "i8", 2)
    local a, b = matrix({33}, "f32", 3), matrix({20}, "f32", 4)
    local D = gemm(X, Y, {device = "sim:sm_80", dtype = cute.bf16,
      epilogue = function(acc, at)
        return acc:to(cute.f32) * at:row(a) * at:col(b)
      end})
    assert.is_nil(ops.differs(X, Y, D, function(_, i, j, sum)
      return sum * a(i) * b(j)
    end))
  end)
end)

---------------------------------------------------------------------------
-- Gates
---------------------------------------------------------------------------

describe("gates", function()
  local function check(M, N, K, dtype, device, family, batches)
    local function lead(...)
      return batches and {batches, ...} or {...}
    end
    local A, B = matrix(lead(M, K), dtype), matrix({2 * N, K}, dtype, 2)
    local col, row = matrix({N}, "f32", 3), matrix(lead(M), "f32", 4)
    local T = matrix(lead(M, N), "bf16", 5)
    local o = {device = device, dtype = cute.f32, gated = true,
      epilogue = function(gate, up, at)
        local y = gate * up + at:col(col) + at:row(row)
        return y - at:tile(T), at:row_reduce("sum", up), up:to(cute.bf16)
      end}
    if family then assert.equal(family, cute.ops.explain(A, B, o).kernel) end
    local D, sums, copy = gemm(A, B, o)
    local ups, want = {}, {}
    ops.each(A, B, cute.zeros(lead(M, 2 * N), cute.f32),
      function(batch, i, j, sum)
        want[((batch[1] or 0) * M + i) * 2 * N + j] = sum
      end)
    ops.each(A, B, D, function(batch, i, j)
      local l = batch[1] or 0
      local at = (l * M + i) * 2 * N + j
      local gate, up = want[at], want[at + N]
      assert.equal(gate * up + col(j) + element(row, l, i)
        - ops.at(T, batch, i, j), ops.at(D, batch, i, j))
      assert.equal(ops.rounded "bf16"(up), ops.at(copy, batch, i, j))
      ups[l * M + i] = (ups[l * M + i] or 0) + up
    end)
    for l = 0, (batches or 1) - 1 do
      for i = 0, M - 1 do
        assert.equal(ups[l * M + i], element(sums, l, i))
      end
    end
  end

  for n, c in ipairs {
    {64, 24, 72, "f16", "sim:sm_90a", "gemm_sm90"},
    {129, 264, 128, "bf16", "sim:sm_90a", "gemm_sm90"},
    {70, 67, 41, "bf16", "sim:sm_80", "gemm_sm80"},
    {5, 3, 9, "bf16", "sim:sm_90a", "gemm_sm80"},
    {40, 64, 64, "bf16", "sim:sm_80", "gemm_sm80", 3},
    {33, 50, 64, "f16", "sim:sm_80", "gemm_sm80"},
    {40, 48, 128, "e4m3", "sim:sm_90a", "gemm_sm90"},
    {8, 72, 520, "bf16", "sim:sm_80", "gemm_skinny"},
    {17, 50, 64, "f16", "sim:sm_90a", "gemm_skinny", 2}} do
    it(("are of halves of B: %dx%dx%d of %s on %s"):format(table.unpack(c))
       .. support.long(n), function() check(table.unpack(c)) end)
    it(("are of halves of B: %dx%dx%d of %s #gpu"):format(table.unpack(c)),
       function() check(c[1], c[2], c[3], c[4], "gpu", nil, c[7]) end)
  end

  it("are right by all of Hopper's candidates #long", function()
    local M, N, K = 130, 72, 192
    local A, B = matrix({M, K}, "bf16"), matrix({2 * N, K}, "bf16", 2)
    local o = {device = "sim:sm_90a", gated = true, dtype = cute.f32,
               epilogue = function(gate, up) return gate - 2 * up end}
    local seen, want = {}, gemm(A, B, {device = "sim:sm_80", gated = true,
                                       dtype = cute.f32, epilogue = o.epilogue})
    for i, c in ipairs(select(2, products.offers(A, B, o))) do
      if c.base == "gemm_sm90" then
        local p, again, call = products.offers(A, B, o)
        local D = plans.new(p, again[i], call):run(call, function() end)
        for r = 0, M - 1 do
          for j = 0, N - 1 do
            if D(r, j) ~= want(r, j) then
              assert.equal(want(r, j), D(r, j), choose.name(c))
            end
          end
        end
        seen[c.options.split or 1] = true
      end
    end
    assert.same({true, true, true}, seen)
  end)

  it("are rejected if B or the epilogue does not fit", function()
    local A, B = matrix {8, 16}, matrix {9, 16}
    local function refuses(text, o, C)
      o.device, o.gated = "sim", true
      local ok, why = pcall(gemm, A, B, C, o)
      assert.is_false(ok)
      assert.is_truthy(why:find(text, 1, true), why)
    end
    local f = function(gate, up) return gate * up end
    refuses("B is (9,16):(16,1); with gated = true it needs 2 N "
      .. "rows", {epilogue = f})
    B = matrix {16, 16}
    refuses("gated = true needs an epilogue function of (gate, up, at)", {})
    refuses("gated = true cannot be combined with the option alpha: apply it "
      .. "in the epilogue", {epilogue = f, alpha = 2})
    refuses("gated = true cannot be combined with the option scale_a",
            {epilogue = f, scale_a = 2})
    refuses("with gated = true B needs 2 N = 32 rows, not 16",
            {epilogue = f, out = matrix {8, 16}})
  end)
end)

---------------------------------------------------------------------------
-- Dropout
---------------------------------------------------------------------------

-- Computes Philox4x32-10 of counter c and key k, as the paper defines it.
local function philox(c, k)
  local mask = 0xffffffff
  local k0, k1 = k[1], k[2]
  for _ = 1, 10 do
    local p0, p1 = c[1] * 0xD2511F53, c[3] * 0xCD9E8D57
    c = {(p1 >> 32 & mask) ~ c[2] ~ k0, p1 & mask,
         (p0 >> 32 & mask) ~ c[4] ~ k1, p0 & mask}
    k0, k1 = k0 + 0x9E3779B9 & mask, k1 + 0xBB67AE85 & mask
  end
  return c
end

describe("dropout", function()
  it("of the specs is Philox4x32-10 by its known answers", function()
    local function text(c, k)
      local r = philox(c, k)
      return ("%08x %08x %08x %08x"):format(r[1], r[2], r[3], r[4])
    end
    assert.equal("6627e8d5 e169c58d bc57ac4c 9b00dbd8", text({0, 0, 0, 0},
                                                             {0, 0}))
    local m = 0xffffffff
    assert.equal("408f276d 41c83b0e a20bc7c6 6d5451fd", text({m, m, m, m},
                                                             {m, m}))
  end)

  local function check(device, dtype, M, N, seed)
    local A, B = matrix({M, 32}, dtype), matrix({N, 32}, dtype, 2)
    local p = 0.25
    local D = gemm(A, B, {device = device, dtype = cute.f32,
      epilogue = function(acc, at) return at:dropout(acc + 100, p, seed) end})
    local kept = 0
    assert.is_nil(ops.differs(A, B, D, function(_, i, j, sum)
      local word = philox({j // 4, i, 0, 0}, {seed & 0xffffffff,
                                              seed >> 32 & 0xffffffff})
      if word[j % 4 + 1] < 1 << 30 then return 0 end
      kept = kept + 1
      return (sum + 100) * ops.rounded "f32"(1 / 0.75)
    end))
    assert.is_true(math.abs(kept / (M * N) - 0.75) < 0.05)
  end

  for i, c in ipairs {{"sim:sm_80", "bf16", 50, 33}, {"sim:sm_90a", "bf16", 64,
    40}, {"sim:sm_90a", "bf16", 300, 8}, {"sim:sm_80", "f32", 40, 50}} do
    it(("is the same everywhere: %s, %s, %dx%d"):format(table.unpack(c))
       .. support.long(i), function()
      check(c[1], c[2], c[3], c[4], 1234)
      check(c[1], c[2], c[3], c[4], 0x123456789abc)
    end)
    it(("is the same on a card: %s, %dx%d #gpu"):format(table.unpack(c, 2)),
       function() check("gpu", c[2], c[3], c[4], 1234) end)
  end
end)

---------------------------------------------------------------------------

local function refuses(text, f)
  local ok, why = pcall(gemm, P, Q, {device = "sim:sm_80", epilogue = f})
  assert.is_false(ok)
  assert.is_truthy(why:find(text, 1, true), why)
  assert.is_truthy(why:find("epilogue_spec.lua:", 1, true), why)
  return why
end

describe("an epilogue that is wrong", function()
  it("keeps state", function()
    local calls = 0
    refuses("assigns 'calls', which is defined outside of it; a function "
      .. "that cute.ops traces cannot keep state",
      function(acc)
        calls = calls + 1
        return acc
      end)
    local stats = {n = 0}  -- luacheck: ignore
    refuses("assigns 'n' of 'stats'; a function that "
      .. "cute.ops traces cannot keep state", function(acc)
      stats.n = 1
      return acc
    end)
    local list, sums = {deep = {n = 0}}, cute.zeros({1}, cute.f32)
    refuses("changes values outside of it; a function that "
      .. "cute.ops traces cannot keep state", function(acc)
      local deep = list.deep
      deep.n = deep.n + 1
      return acc
    end)
    refuses("changes values outside of it; a function that "
      .. "cute.ops traces cannot keep state", function(acc)
      table.insert(list, 1)
      return acc
    end)
    refuses("stores to a tensor that is defined outside of it; a "
      .. "function that cute.ops traces cannot keep state",
      function(acc)
        sums[0] = 1.0
        return acc
      end)
  end)

  it("caches its results, which are no state", function()
    local cache, n = {}, 3
    local D = gemm(P, Q, {device = "sim:sm_80", epilogue = function(acc)
      local bits = acc.dtype.bits
      cache[bits] = cache[bits] or bits // 16
      return acc * cache[bits] * n
    end})
    assert.equal(2, cache[32])
    assert.is_nil(ops.differs(P, Q, D, function(_, _, _, sum)
      return sum * 6
    end))
  end)

  it("returns something else", function()
    refuses("returns 1 as result 1; a vector of the accumulators' length is "
      .. "needed",
            function() return 1 end)
    refuses("returns nothing", function() end)
    refuses("values, one for each accumulator, not 3", function(acc)
      local r = cute.make_rmem_tensor({3}, cute.f32)
      r:fill(0)
      return acc, r:load()
    end)
    refuses("as result 1", function(acc, at)
      return at:row_reduce("sum", acc)
    end)
  end)

  it("returns another shape", function()
    local v, w = matrix({40}, "f32"), matrix({25}, "f32")
    local line = debug.getinfo(1, "l").currentline
    local why = refuses("at:col needs a value for each of 24 columns, but this "
      .. "is (40):(1); at:row takes one for each row", function(acc, at)
      return acc + at:col(v)
    end)
    assert.is_truthy(why:find(("epilogue_spec.lua:%d:"):format(line + 3), 1,
                              true), why)
    refuses("at:row needs a value for each of 40 rows, but this is (25):(1)",
      function(acc, at) return acc + at:row(w) end)
    refuses("at:tile needs a tensor of D's shape, (40,24), but this is "
      .. "(40):(1)",
      function(acc, at) return acc + at:tile(v) end)
  end)

  it("branches in Lua on the values of vectors", function()
    local text = "this comparison was never used"
    refuses(text, function(acc)
      if acc:gt(0) then return acc end
      return -acc
    end)
    refuses(text, function(acc) return acc:gt(0) and acc or -acc end)
    refuses(text, function(acc, at)
      local i, j = at:coords()
      return not i:lt(j) and acc or -acc
    end)
    -- No note on an unused comparison: where() uses it, and the epilogue
    -- returns it.
    gemm(P, Q, {device = "sim:sm_80", epilogue = function(acc)
      local up = acc:gt(0)
      return cute.where(up, acc, 0), up
    end})
  end)

  it("is no function of the script's", function()
    refuses("this is a built-in Lua function; a function of the script or of "
      .. "cute is needed", math.abs)
  end)
end)

describe("an epilogue that is wrong", function()
  it("requests missing coordinates or operands", function()
    local v = matrix({24}, "f32")
    refuses("an at has no 'column': it has batch_index col col_reduce coords "
      .. "dropout reduce row row_reduce tile",
      function(acc, at) return acc + at:column(v) end)
    refuses("an at has no 'cols' (did you mean col?)",
      function(acc, at) return acc + at:cols(v) end)
    refuses("at:dropout: the probability must be a number, not nil",
      function(acc, at) return at:dropout(acc) end)
    refuses("at:dropout: the seed must be an integer, not nil",
      function(acc, at) return at:dropout(acc, 0.5) end)
    refuses("got at:row_reduce, which is known behind the kernel",
      function(acc, at) return acc / at:row_reduce("sum", acc) end)
    refuses('no operation "product"; possible are sum mean prod max min amax '
            .. 'norm rms',
      function(acc, at) return acc, at:row_reduce("product", acc) end)
    refuses("dropout probability 1.5", function(acc, at)
      return at:dropout(acc, cute.constexpr and 3 / 2, 7)
    end)
  end)
end)

describe("matrices that an epilogue reads", function()
  local M, N, K = 200, 136, 72
  local A, B = matrix {M, K}, matrix({N, K}, nil, 2)

  -- Returns the number of tensor maps in the kernel of A B^T with C and options
  -- o.
  local function maps(C, o)
    o.device, o.dtype = "sim:sm_90a", cute.f32
    local text = cute.ops.explain(A, B, C, o):trace():cuda()
    return select(2, text:gsub("const __grid_constant__ TensorMap", ""))
  end

  -- Returns an M x N matrix with rows `far` apart, from element `first` on.
  local function like_D(far, first)
    local t = matrix({M, N}, "bf16", 5)
    local b = cute.zeros({M * far + first}, cute.bf16)
    local view = cute.make_tensor(b.iterator + first,
                                  cute.make_layout({M, N}, {far, 1}))
    for i = 0, M - 1 do
      for j = 0, N - 1 do view[{i, j}] = t(i, j) end
    end
    return view
  end

  it("come by TMA if it can address them #long", function()
    -- Four tensor maps mean that C is also loaded by TMA. The rows of the first
    -- C begin at multiples of 16 bytes; those of the second do not. The third C
    -- has an unaligned address; the fourth has contiguous columns.
    local turned = cute.make_tensor(matrix({N, M}, "bf16", 6).iterator,
                                    cute.make_layout({M, N}, {1, M}))
    for i, case in ipairs {{like_D(136, 0), 4}, {like_D(137, 0), 3},
                           {like_D(136, 1), 3}, {turned, 4},
                           {matrix({M, N}, "i8"), 3}} do
      local R, count = table.unpack(case)
      local o = {epilogue = function(acc, at) return 2 * acc + at:tile(R) end}
      assert.equal(count, maps(nil, o), i)
      assert.is_nil(ops.differs(A, B, gemm(A, B, o), function(_, x, y, sum)
        return 2 * sum + R(x, y)
      end))
    end
  end)

  it("are C, and two at most #long", function()
    local C, R, S = matrix({M, N}, nil, 5), matrix({M, N}, "f32", 6),
      matrix({M, N}, "f16", 7)
    local function want(_, x, y, sum)
      return 2 * sum - 3 * C(x, y) + R(x, y) * S(x, y) + S(x, y)
    end
    local o = {alpha = 2, beta = -3, epilogue = function(acc, at)
      return acc + at:tile(R) * at:tile(S) + at:tile(S)
    end}
    assert.equal(5, maps(C, o))
    assert.is_nil(ops.differs(A, B, gemm(A, B, C, o), want))
    assert.equal(4, maps(C, {beta = 2}))
    -- With few columns of D, the kernel computes D^T, and must read C^T.
    local thin = matrix({8, K}, nil, 3)
    local c = matrix({M, 8}, nil, 4)
    assert.is_nil(ops.differs(A, thin, gemm(A, thin, c, {device = "sim:sm_90a",
      beta = 2, dtype = cute.f32}), function(_, x, y, sum)
      return sum + 2 * c(x, y)
    end))
  end)

  it("are out itself, call after call with other ones #long", function()
    for seed = 1, 3 do
      local D, was = matrix({M, N}, "f32", seed), {}
      for i = 0, M * N - 1 do was[i] = D(i // N, i % N) end
      local o = {out = D, accumulate = true, device = "sim:sm_90a"}
      assert.equal(4, maps(nil, o))
      o.dtype = nil
      gemm(A, B, o)
      assert.is_nil(ops.differs(A, B, D, function(_, x, y, sum)
        return sum + was[x * N + y]
      end))
    end
  end)

  it("stay unchanged where part of a tile lies outside of D #long", function()
    local X, Y = matrix {64, 64}, matrix({72, 64}, "bf16", 2)
    local D = cute.full({64, 72}, 3, cute.f32)
    local p, list, call = products.offers(X, Y, {out = D, accumulate = true,
                                                 device = "sim:sm_90a"})
    local tried = 0
    for _, c in ipairs(list) do
      if c.base == "gemm_sm90" and (c.tile[1] > 64 or c.tile[2] > 72) then
        D:fill(3)
        plans.new(p, c, call):run(call, function() end)
        assert.is_nil(ops.differs(X, Y, D, function(_, _, _, sum)
          return sum + 3
        end))
        tried = tried + 1
      end
    end
    assert.is_true(tried >= 10)
  end)

  it("may be shared by all batches, or one for each #long", function()
    local A3, B3 = matrix {3, 72, 64}, matrix({3, 40, 64}, nil, 2)
    for _, R in ipairs {matrix({72, 40}, nil, 3), matrix({3, 72, 40}, nil, 4)}
    do
      local D = gemm(A3, B3, {device = "sim:sm_90a", dtype = cute.f32,
        epilogue = function(acc, at) return acc + at:tile(R) end})
      assert.is_nil(ops.differs(A3, B3, D, function(l, x, y, sum)
        return sum + (cute.rank(R) == 2 and R(x, y) or ops.at(R, l, x, y))
      end))
    end
  end)
end)

describe("the choice of an epilogue's form", function()
  -- Returns the chosen tile, and whether its warpgroups take turns (the
  -- schedule "pingpong").
  local function chosen(m, n, k, o)
    local A, B = cute.empty({m, k}, cute.bf16), cute.empty({n, k}, cute.bf16)
    o.device = "sim:sm_90a"
    local e = cute.ops.explain(A, B, o)
    local text = e:trace():cuda()
    return table.concat(e.tile, "x"), text:find "order_" ~= nil
  end
  local function gelu(acc) return cute.ops.gelu(acc) end

  it("overlaps with products, except for long K #long", function()
    local function gates(gate, up) return cute.ops.silu(gate) * up end
    assert.same({"128x128x64", true}, {chosen(4096, 4096, 4096, {
      epilogue = gelu})})
    assert.same({"128x256x64", false}, {chosen(2048, 4096, 14336, {
      epilogue = gelu})})
    assert.same({"128x128x64", true}, {chosen(4096, 8192, 4096, {
      gated = true, epilogue = gates})})
    assert.same({"128x256x64", false}, {chosen(2048, 8192, 14336, {
      gated = true, epilogue = gates})})
  end)

  it("it has registers #long", function()
    assert.not_matches("^256x", (chosen(8192, 14336, 4096, {
      epilogue = gelu})))
    assert.matches("^256x2", (chosen(8192, 14336, 4096, {})))
  end)
end)

describe("the text of an epilogue", function()
  it("compiles for sm_80 and sm_90a", function()
    local function source(M, N, K, dtype, device)
      local bias = matrix({N}, "f32", 3)
      local e = cute.ops.explain(matrix({M, K}, dtype), matrix({N, K}, dtype),
        {device = device, epilogue = function(acc, at)
          local y = cute.ops.gelu(acc + at:col(bias))
          return at:dropout(y, 0.5, 3), at:row_reduce("rms", y),
            at:col_reduce("sum", y), at:reduce("amax", y), y:to(cute.f16)
        end})
      assert.is_not_nil(kernels.compiles(e:trace(), {device:match "sm_.*"}))
    end
    local swiglu = {gated = true, epilogue = function(gate, up)
      return cute.ops.silu(gate) * up
    end}
    for _, n in ipairs {64, 33} do  -- gemm_sm90, gemm_sm80
      local e = cute.ops.explain(matrix {128, 64}, matrix {2 * n, 64}, swiglu)
      assert.is_not_nil(kernels.compiles(e:trace(), {"sm_90a"}))
    end
    source(128, 256, 128, "bf16", "sim:sm_90a")
    source(300, 8, 64, "bf16", "sim:sm_90a")
    source(70, 67, 41, "bf16", "sim:sm_80")
    source(50, 70, 24, "f32", "sim:sm_80")
    source(33, 20, 4100, "f16", "sim:sm_80")
  end)
end)

describe("parts of a tile that an epilogue of gemm_sm80 comes to in a loop",
         function()
  local gemm_sm80 = require "kernels.gemm_sm80"
  local hopper = require "spec.hopper"

  local function run(m, n, gated, rows)
    local A, B = hopper.matrix(m, 40, 1), hopper.matrix(gated and 2 * n or n,
                                                        40, 2)
    local D, R = hopper.matrix(m, n), hopper.matrix(m, n, 3)
    local g = gemm_sm80 {tile = {64, gated and 256 or 128, 32}, rows = rows,
      columns = 32, gated = gated, epilogue = function(acc, ...)
        local up, part, t = ...
        if not gated then up, part, t = 1, ... end
        return acc * up + part.load(t)
      end}
    g.kernel(A, B, D, R):launch {grid = g.grid(m, n), block = g.block,
                                 device = "sim:sm_90a"}
    local want = hopper.product(A, B)
    return hopper.differs(D, function(i, j)
      return hopper.rounded(want(i, j) * (gated and want(i, n + j) or 1)
        + R(i, j))
    end)
  end

  it("cover all of D, and nothing else #long", function()
    for _, c in ipairs {{70, 33}, {64, 64}, {64, 128}, {129, 200}, {5, 1}} do
      assert.is_nil(run(c[1], c[2], nil, true))
      assert.is_nil(run(c[1], c[2], nil, nil))
    end
    for _, c in ipairs {{70, 33}, {64, 64}, {65, 200}} do
      assert.is_nil(run(c[1], c[2], true, true))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
