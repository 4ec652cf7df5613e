-- Tests the operations of cute.ops on rows against ops.reference and plain Lua
-- in f64. The operations are norms, softmax, cross entropy and their
-- gradients, the k largest elements, sampling, embeddings and rotations.
-- They run with many strides, types and outputs.
-- Invalid calls must raise errors.
local cute = require "cute"
local helpers = require "spec.ops"
local rowwise = require "cute.ops.rowwise"
local support = require "spec.support"
local ops, raises, reference = cute.ops, support.raises, cute.ops.reference

local SIM = {device = "sim"}
local BOUND = {f32 = 4e-6, f16 = 2e-3, bf16 = 1.6e-2}

local function sim(o)
  o = o or {}
  o.device = o.device or "sim"
  return o
end

-- Returns a tensor of this shape with elements drawn from N(0,1). With
-- `turned`, its columns are contiguous instead of its rows.
local function normal(shape, dtype, turned)
  local t = cute.randn(shape, cute[dtype])
  if not turned then return t end
  local rank, perm = #shape, {}
  for i = 1, rank do perm[i] = i - 1 end
  perm[rank - 1], perm[rank] = rank - 1, rank - 2
  return cute.select(ops.transpose(t, perm, SIM), perm)
end

-- Returns a list of a tensor's rows in row-major order. Each row is a list.
local function rows_of(t)
  local shape = {}
  for i = 1, cute.rank(t) do shape[i] = cute.size(t.shape[i] or t.shape) end
  local n, out = table.remove(shape), {}
  helpers.each_of(shape, function(c, at)
    local row = {}
    for j = 0, n - 1 do
      local where = {table.unpack(c)}
      where[#where + 1] = j
      row[j + 1] = t(table.unpack(where))
    end
    out[at + 1] = row
  end)
  return out
end

-- Compares a tensor with the rows want(i), relative to the largest magnitude of
-- each row.
local function compare(t, want)
  local bound = BOUND[t.element_type.name]
  for i, row in ipairs(rows_of(t)) do
    local right, most = want(i), 1e-30
    assert.equal(#right, #row)
    for _, v in ipairs(right) do most = math.max(most, math.abs(v)) end
    for j, v in ipairs(right) do
      local got = row[j]
      if got ~= got or math.abs(got - v) > bound * most then
        error(("row %d, element %d of %s: %s, not %s"):format(i, j, t.layout,
          got, v))
      end
    end
  end
end

-- Compares a tensor that has one element per row with a list.
local function compare_flat(t, list)
  local flat = cute.make_tensor(t.iterator, cute.make_layout {cute.size(t)})
  compare(flat, function() return list end)
end

-- Returns the function that maps i to row i of a tensor.
local function rows_from(t)
  local rows = rows_of(t)
  return function(i) return rows[i] end
end

-- Returns the elements of a compact tensor as a list, in the order of memory.
local function elements(t)
  return rows_of(cute.make_tensor(t.iterator,
                                  cute.make_layout {cute.size(t)}))[1]
end

local function sum(n, f)
  local s = 0
  for j = 1, n do s = s + f(j) end
  return s
end

-- ---- norms in Lua ----

local function statistics(h, layer, eps)
  local n = #h
  local mean = layer and sum(n, function(j) return h[j] end) / n or 0
  return mean, 1 / math.sqrt(sum(n, function(j)
    return (h[j] - mean) ^ 2
  end) / n + eps)
end

-- Returns the gradient dX of a row, and the row's contributions to dW and
-- dB.
local function gradient(h, w, dy, layer, eps, dh)
  local n, mean, rstd = #h, statistics(h, layer, eps)
  local function g(j) return dy[j] * (w and w[j] or 1) end
  local function xhat(j) return (h[j] - mean) * rstd end
  local gx = sum(n, function(j) return g(j) * xhat(j) end) / n
  local gm = layer and sum(n, g) / n or 0
  local dx, dw = {}, {}
  for j = 1, n do
    dx[j] = rstd * (g(j) - gm - xhat(j) * gx) + (dh and dh[j] or 0)
    dw[j] = dy[j] * xhat(j)
  end
  return dx, dw
end

local SHAPES = {{{3, 5, 40}, "bf16"}, {{7, 129}, "f32"}, {{2, 1000}, "f16"},
                {{1, 1}, "f32"}, {{2, 3000}, "bf16"}, {{16}, "f32"},
                {{2, 3, 24}, "f32", true}}

-- Returns the tag #long for cases with long rows.
local function long(c)
  return c[1][#c[1]] >= 1000 and " #long" or ""
end

describe("ops of norms", function()
  for _, layer in ipairs {false, true} do
    local name = layer and "layernorm" or "rmsnorm"
    for _, c in ipairs(SHAPES) do
      local title = ("%s of (%s) %s%s"):format(name, table.concat(c[1], ","),
        c[2], c[3] and ", columns contiguous" or "")
      it("compute " .. title .. long(c), function()
        local n = c[1][#c[1]]
        local X, R = normal(c[1], c[2], c[3]), normal(c[1], c[2], c[3])
        local W, B = normal({n}, "f32"), normal({n}, "f32")
        local Y, want
        if layer then
          Y = ops.layernorm(X, W, B, sim {eps = 1e-3})
          want = reference.layernorm(X, W, B, {eps = 1e-3})
        else
          Y = ops.rmsnorm(X, W, sim {eps = 1e-3})
          want = reference.rmsnorm(X, W, {eps = 1e-3})
        end
        compare(Y, rows_from(want))
        -- Compares a call with a residual, an output, and saved statistics.
        local out = cute.zeros(c[1], cute.f32)
        local results = {ops[name](X, W, sim {eps = 1e-3, residual = R,
          save = true, out = out, device = "sim:sm_90a"})}
        local right = {reference[name](X, W, {eps = 1e-3, residual = R,
                                              save = true})}
        assert.equal(out, results[1])
        assert.equal(#right, #results)
        for k, t in ipairs(results) do
          if k <= 2 then compare(t, rows_from(right[k]))
          else compare_flat(t, elements(right[k])) end
        end
      end)
    end
  end
end)

describe("ops of norms", function()
  for _, layer in ipairs {false, true} do
    local name = layer and "layernorm_backward" or "rmsnorm_backward"
    for _, c in ipairs(SHAPES) do
      it(("compute %s of (%s) %s%s%s"):format(name, table.concat(c[1], ","),
        c[2], c[3] and ", columns contiguous" or "", long(c)), function()
        local n, eps = c[1][#c[1]], 1e-3
        local X, dY, dH = normal(c[1], c[2], c[3]), normal(c[1], c[2], c[3]),
          normal(c[1], c[2])
        local W = normal({n}, "f32")
        local x, dy, dh, w = rows_of(X), rows_of(dY), rows_of(dH), rows_of(W)[1]
        local dX, dW, dB
        if layer then
          local _, mean, rstd = ops.layernorm(X, W, sim {eps = eps,
                                                         save = true})
          dX, dW, dB = ops.layernorm_backward(dY, X, mean, rstd, W,
            sim {bias = true, residual = dH})
        else
          local _, rstd = ops.rmsnorm(X, W, sim {eps = eps, save = true})
          dX, dW = ops.rmsnorm_backward(dY, X, rstd, W, sim {residual = dH})
        end
        local by_w, by_b = {}, {}
        for j = 1, n do by_w[j], by_b[j] = 0, 0 end
        local right = {}
        for i = 1, #x do
          local dx, dw = gradient(x[i], w, dy[i], layer, eps, dh[i])
          right[i] = dx
          for j = 1, n do
            by_w[j], by_b[j] = by_w[j] + dw[j], by_b[j] + dy[i][j]
          end
        end
        compare(dX, function(i) return right[i] end)
        compare(dW, function() return by_w end)
        if layer then compare(dB, function() return by_b end) end
      end)
    end
  end

end)

describe("ops of norms", function()
  it("have the same bits where launches are dependent #long", function()
    for _, c in ipairs {{1, 4096}, {70, 100}, {2, 20000}} do
      local X, R = normal(c, "bf16"), normal(c, "bf16")
      local W = normal({c[2]}, "f32")
      for _, layer in ipairs {false, true} do
        local function run(device)
          local o = {device = device, residual = R}
          if layer then return ops.layernorm(X, W, W, o) end
          return ops.rmsnorm(X, W, o)
        end
        local Y, H = run "sim:sm_90a"
        local y, h = run "sim:sm_80"
        for i = 0, cute.size(Y) - 1, 61 do
          assert.equal(y[i], Y[i])
          assert.equal(h[i], H[i])
        end
      end
    end
  end)

  it("need no weights", function()
    local X, dY = normal({4, 24}, "f32"), normal({4, 24}, "f32")
    local x, dy = rows_of(X), rows_of(dY)
    local Y, rstd = ops.rmsnorm(X, sim {save = true})
    compare(Y, rows_from(reference.rmsnorm(X)))
    local dX, dW = ops.rmsnorm_backward(dY, X, rstd, SIM)
    assert.is_nil(dW)
    compare(dX, function(i)
      return (gradient(x[i], nil, dy[i], false, 1e-6))
    end)
  end)

  it("share long rows among blocks #long", function()
    local X, dY = normal({2, 40000}, "f32"), normal({2, 40000}, "f32")
    local W = normal({40000}, "f32")
    local _, rstd = ops.rmsnorm(X, W, sim {save = true})
    -- A block of sm_86 has less shared memory, so more blocks work on one row.
    for _, device in ipairs {"sim", "sim", "sim:sm_86"} do
      local dX, dW = ops.rmsnorm_backward(dY, X, rstd, W, {device = device})
      local x, dy, w = rows_of(X), rows_of(dY), rows_of(W)[1]
      local by_w = {}
      compare(dX, function(i)
        local dx, dw = gradient(x[i], w, dy[i], false, 1e-6)
        for j, v in ipairs(dw) do by_w[j] = (by_w[j] or 0) + v end
        return dx
      end)
      compare(dW, function() return by_w end)
    end
  end)

  it("reject what does not fit", function()
    local X, W = normal({4, 24}, "f32"), normal({23}, "f32")
    raises("ops.rmsnorm: W is (23):(1); a vector of 24 elements is needed "
      .. "[bad-argument]", function() return (ops.rmsnorm(X, W)) end)
    raises("ops.layernorm: eps = -1; 0 or more is needed", function()
      return (ops.layernorm(X, sim {eps = -1}))
    end)
    raises("ops.rmsnorm: residual is (2,24):(24,1), but X is (4,24):(24,1); "
      .. "equal shapes are needed", function()
        return (ops.rmsnorm(X, sim {residual = normal({2, 24}, "f32")}))
      end)
    raises("ops.rmsnorm: X has elements of type i32; bf16, f16 or f32 is "
      .. "needed", function()
        return (ops.rmsnorm(cute.zeros({4, 24}, cute.i32)))
      end)
    raises("ops.rmsnorm: no option 'epsilon'", function()
      return (ops.rmsnorm(X, sim {epsilon = 1}))
    end)
    raises("ops.rmsnorm: out is (24,4):(4,1), but the result has extents "
      .. "(4,24)", function()
        return (ops.rmsnorm(X, sim {out = normal({24, 4}, "f32")}))
      end)
    raises("ops.rmsnorm: out is (4,24):(1,4); contiguous, evenly spaced "
      .. "rows that do not overlap are needed", function()
        return (ops.rmsnorm(X, sim {out = cute.select(cute.zeros({24, 4},
          cute.f32), {1, 0})}))
      end)
    raises("ops.rmsnorm: out 2 is given, but there is only one result",
      function()
        return (ops.rmsnorm(X, sim {out = {cute.zeros({4, 24}, cute.f32),
                                           cute.zeros({4, 24}, cute.f32)}}))
      end)
    raises("ops.rmsnorm_backward: Rstd is (3):(1) of f32; 4 elements of f32 "
      .. "are needed", function()
        return (ops.rmsnorm_backward(X, X, normal({3}, "f32"), SIM))
      end)
    raises("ops.layernorm_backward: bias needs W", function()
      local r = normal({4}, "f32")
      return (ops.layernorm_backward(X, X, r, r, sim {bias = true}))
    end)
  end)

  it("of no elements launch nothing", function()
    assert.equal("(0,8):(8,1)", tostring(ops.rmsnorm(cute.zeros({0, 8},
      cute.bf16), SIM).layout))
    assert.equal("(3,0):(1,1)", tostring(ops.softmax(cute.zeros({3, 0},
      cute.bf16), SIM).layout))
  end)

  it("read views that begin at any element, with narrower vectors", function()
    local all = normal({5, 50}, "f32")
    local X = cute.make_tensor(all.iterator + 3,
                               cute.make_layout({4, 40}, {50, 1}))
    compare(ops.rmsnorm(X, SIM), rows_from(reference.rmsnorm(X)))
    compare(ops.softmax(X, sim {dtype = "bf16"}),
            rows_from(reference.softmax(X)))
  end)
end)

-- ---- softmax and cross entropy ----

describe("ops.softmax and ops.cross_entropy", function()
  for _, c in ipairs {{{3, 5, 40}, "bf16"}, {{7, 129}, "f32"}, {{2, 3}, "f16"},
                      {{2, 5000}, "f32"}, {{3, 24}, "f32", true}} do
    it(("compute (%s) %s%s%s"):format(table.concat(c[1], ","), c[2], c[3]
      and ", columns contiguous" or "", long(c)), function()
      local X, dY = normal(c[1], c[2], c[3]), normal(c[1], c[2])
      local dy, n = rows_of(dY), c[1][#c[1]]
      local Y = ops.softmax(X, SIM)
      local right = reference.softmax(X)
      compare(Y, rows_from(right))
      local y = rows_of(Y)
      compare(ops.softmax_backward(dY, Y, SIM), function(i)
        local dot = sum(n, function(j) return y[i][j] * dy[i][j] end)
        local dx = {}
        for j = 1, n do dx[j] = y[i][j] * (dy[i][j] - dot) end
        return dx
      end)
      local rows = {table.unpack(c[1], 1, #c[1] - 1)}
      local T = cute.zeros(rows, c[2] == "f32" and cute.i64 or cute.i32)
      local t = {}
      helpers.each_of(rows, function(at, i)
        t[i + 1] = i == 1 and -100 or i * 7 % n
        T[at] = t[i + 1]
      end)
      local losses, lses = reference.cross_entropy(X, T)
      local Loss, Lse = ops.cross_entropy(X, T, SIM)
      compare_flat(Loss, elements(losses))
      compare_flat(Lse, elements(lses))
      local g = normal(rows, "f32")
      local by, p = elements(g), rows_of(right)
      compare(ops.cross_entropy_backward(g, X, T, Lse, SIM), function(i)
        local dx = {}
        for j = 1, n do
          dx[j] = t[i] < 0 and 0
            or (p[i][j] - (j == t[i] + 1 and 1 or 0)) * by[i]
        end
        return dx
      end)
    end)
  end

  it("divide long rows among the blocks of a cluster", function()
    local sm_90 = {device = "sim:sm_90a"}
    local function blocks(m, n, arch)
      return rowwise.cluster_for(cute.device("sim:" .. arch), m, n, cute.bf16)
    end
    assert.equal(4, blocks(2, 17000, "sm_90a"))
    assert.equal(8, blocks(1, 151936, "sm_90a"))
    assert.equal(1, blocks(100, 17000, "sm_90a"))
    assert.equal(1, blocks(2, 17000, "sm_80"))
    local X, dY = normal({2, 17000}, "bf16"), normal({2, 17000}, "bf16")
    local Y, right = ops.softmax(X, sm_90), reference.softmax(X)
    compare(Y, rows_from(right))
    local T = cute.tensor({5, 16999}, cute.i32)
    local Loss, Lse = ops.cross_entropy(X, T, sm_90)
    local losses, lses = reference.cross_entropy(X, T)
    for i = 0, 1 do
      assert.near(losses(i), Loss(i), 1e-4)
      assert.near(lses(i), Lse(i), 1e-5)
    end
    local y, dy = rows_of(Y), rows_of(dY)
    compare(ops.softmax_backward(dY, Y, sm_90), function(i)
      local dot, dx = 0, {}
      for j, v in ipairs(y[i]) do dot = dot + v * dy[i][j] end
      for j, v in ipairs(y[i]) do dx[j] = v * (dy[i][j] - dot) end
      return dx
    end)
  end)

  it("give NaN for a target outside of the row, 0 for ignored", function()
    local X = normal({3, 4}, "f32")
    local T = cute.tensor({4, 2, -1}, cute.i32)
    local Loss = ops.cross_entropy(X, T, sim {ignore = 2})
    assert.is_true(Loss(0) ~= Loss(0) and Loss(2) ~= Loss(2))
    assert.equal(0, Loss(1))
  end)

  it("reject what does not fit", function()
    local X = normal({3, 4}, "f32")
    raises("ops.cross_entropy: T has elements of type f32; i32 or i64 is "
      .. "needed", function()
        return (ops.cross_entropy(X, normal({3}, "f32"), SIM))
      end)
    raises("ops.cross_entropy: T is (2):(1); 3 elements are needed, one for "
      .. "each row of X", function()
        return (ops.cross_entropy(X, cute.zeros({2}, cute.i32), SIM))
      end)
    raises("ops.cross_entropy_backward: Lse is (4):(1); extents (3), those of "
      .. "X without the last mode, are needed", function()
        local L, T = cute.zeros({3}, cute.f32), cute.zeros({3}, cute.i32)
        ops.cross_entropy_backward(L, cute.zeros({3, 4}, cute.f32), T,
                                   cute.zeros({4}, cute.f32), SIM)
      end)
    raises("ops.softmax_backward: dY is (4,3):(3,1), but Y is (3,4):(4,1)",
      function()
        return (ops.softmax_backward(normal({4, 3}, "f32"), X, SIM))
      end)
    raises("rows without elements have no loss", function()
      return (ops.cross_entropy(cute.zeros({3, 0}, cute.f32),
                                cute.zeros({3}, cute.i32), SIM))
    end)
  end)
end)

-- ---- the k largest, sampling ----

describe("ops.topk", function()
  for _, c in ipairs {{{3, 5, 40}, "bf16", 5}, {{2, 2000}, "f32", 64},
                      {{1, 1}, "f16", 1}, {{4, 33}, "f32", 33, true},
                      {{2, 32770}, "f32", 3}} do
    it(("finds %d of (%s) %s%s"):format(c[3], table.concat(c[1], ","), c[2],
      long(c)), function()
        for _, smallest in ipairs {false, true} do
          local X = normal(c[1], c[2], c[4])
          local V, I = ops.topk(X, c[3], sim {smallest = smallest})
          local x, v, at = rows_of(X), rows_of(V), rows_of(I)
          for i, row in ipairs(x) do
            local order = {}
            for j = 1, #row do order[j] = j end
            table.sort(order, function(a, b)
              if row[a] ~= row[b] then
                return (row[a] > row[b]) ~= smallest
              end
              return a < b
            end)
            for k = 1, c[3] do
              assert.equal(order[k] - 1, at[i][k])
              assert.equal(row[order[k]], v[i][k])
            end
          end
        end
      end)
  end

  it("rejects other k", function()
    local X = normal({3, 4}, "f32")
    raises("ops.topk: k = 5; 1 to 4 is needed for rows of 4 elements",
      function() return (ops.topk(X, 5, SIM)) end)
    raises("ops.topk: k = 65; 1 to 64 is needed for rows of 100 elements",
      function() return (ops.topk(normal({2, 100}, "f32"), 65, SIM)) end)
  end)
end)

describe("ops.sample", function()
  local P = {0.5, 0.25, 0.125, 0.0625, 0.0625}
  local ROWS = 4000
  local X = cute.zeros({ROWS, #P}, cute.f32)
  for i = 0, ROWS - 1 do
    for j, p in ipairs(P) do X[{i, j - 1}] = math.log(p) end
  end

  -- Compares how often each index was drawn with the expected probabilities. A
  -- difference of up to five standard deviations is accepted.
  local function frequencies(want, seed, o)
    local I, count = ops.sample(X, seed, sim(o)), {0, 0, 0, 0, 0}
    for i = 0, ROWS - 1 do count[I(i) + 1] = count[I(i) + 1] + 1 end
    for j, p in ipairs(want) do
      local off = math.abs(count[j] / ROWS - p)
      assert.is_true(off <= 5 * math.sqrt(p * (1 - p) / ROWS),
                     ("index %d: %d of %d"):format(j - 1, count[j], ROWS))
    end
    return I
  end

  local function scaled(f)
    local out, s = {}, 0
    for j, p in ipairs(P) do
      out[j] = f(j, p)
      s = s + out[j]
    end
    for j in ipairs(out) do out[j] = out[j] / s end
    return out
  end

  it("draws by softmax, temperature, top_k and top_p #long", function()
    local I = frequencies(P, 1)
    frequencies(scaled(function(_, p) return p * p end), 2, {temperature = 0.5})
    frequencies(P, 3, {top_k = 5})
    frequencies(scaled(function(j, p) return j <= 3 and p or 0 end), 4,
                {top_k = 3})
    frequencies(scaled(function(j, p) return j <= 2 and p or 0 end), 5,
                {top_k = 5, top_p = 0.7})
    frequencies(scaled(function(_, p) return p ^ 2 end), 6,
                {top_k = 5, temperature = 0.5})
    -- Whether the seed is a number or a tensor makes no difference.
    local again = ops.sample(X, cute.full({1}, 1, cute.i64), SIM)
    local other, equal = ops.sample(X, 7, SIM), 0
    for i = 0, ROWS - 1 do
      assert.equal(I(i), again(i))
      if I(i) == other(i) then equal = equal + 1 end
    end
    assert.is_true(equal < ROWS // 2)
  end)

  it("rejects what does not fit", function()
    raises("ops.sample: top_p = 0.5 needs the option top_k, from 1 to 64",
           function()
      return (ops.sample(X, 1, sim {top_p = 0.5}))
    end)
    raises("ops.sample: temperature = 0; more than 0 is needed. For the "
      .. "most probable index, call ops.reduce(X, \"argmax\", {by = \"row\"})",
      function()
        return (ops.sample(X, 1, sim {temperature = 0}))
      end)
    raises("ops.sample: top_k = 6; 1 to 5 is needed", function()
      return (ops.sample(X, 1, sim {top_k = 6}))
    end)
    raises("ops.sample: seed is (2):(1) of i64; an integer or one element of "
      .. "i64 is needed", function()
        return (ops.sample(X, cute.zeros({2}, cute.i64), SIM))
      end)
  end)
end)

-- ---- embeddings, rotations ----

describe("ops.embedding", function()
  it("returns rows, and adds their gradients in a fixed order", function()
    for _, c in ipairs {{"bf16", 24, "i32"}, {"f32", 7, "i64"},
                        {"f16", 1032, "i32"}} do
      local W = normal({11, c[2]}, c[1])
      local I = cute.tensor({{3, 0, 10}, {3, 11, -1}, {0, 3, 3}}, cute[c[3]])
      local Y, w = ops.embedding(I, W, SIM), rows_of(W)
      local dY = normal({3, 3, c[2]}, c[1])
      local y, dy, at = rows_of(Y), rows_of(dY), {3, 0, 10, 3, 11, -1, 0, 3, 3}
      local right = {}
      for r = 1, 11 do
        right[r] = {}
        for j = 1, c[2] do right[r][j] = 0 end
      end
      for i, r in ipairs(at) do
        local row = w[r + 1]
        for j = 1, c[2] do
          assert.is_true(support.same(row and row[j] or 0 / 0, y[i][j]))
          if row then right[r + 1][j] = right[r + 1][j] + dy[i][j] end
        end
      end
      compare(ops.embedding_backward(dY, I, 11, SIM), function(i)
        return right[i]
      end)
      compare(ops.embedding_backward(dY, I, 11, sim {dtype = "f32"}),
        function(i) return right[i] end)
    end
  end)

  it("rejects what does not fit", function()
    local W = normal({11, 8}, "f32")
    raises("ops.embedding: I has elements of type f32; i32 or i64 is needed",
      function() return (ops.embedding(W, W, SIM)) end)
    raises("ops.embedding_backward: I is (3):(1); 11 elements are needed",
      function()
        return (ops.embedding_backward(W, cute.zeros({3}, cute.i32), 5, SIM))
      end)
  end)
end)

describe("ops.rope", function()
  it("rotates heads in place", function()
    local X = normal({2, 3, 2, 8}, "bf16")
    local Cos, Sin = normal({3, 4}, "f32"), normal({3, 4}, "f32")
    local Y = ops.rope(X, Cos, Sin, SIM)
    ops.rope(X, Cos, Sin, {device = "sim", out = X})
    for i = 0, cute.size(Y) - 1 do assert.equal(Y[i], X[i]) end
  end)

  it("reads and writes heads in other tensors, such as one of Q, K and V",
     function()
    for _, type_ in ipairs {"f32", "bf16"} do
      local shape = {2, 5, 3 * 48}
      local all, out = normal(shape, type_), normal(shape, type_)
      local before = out:clone()
      local function part(t, i)  -- returns heads 3 i to 3 i + 2 of each token
        return cute.make_tensor(t.iterator + i * 48, cute.make_layout(
          {2, 5, 3, 16}, {5 * 144, 144, 16, 1}))
      end
      local C, S = normal({5, 8}, "f32"), normal({5, 8}, "f32")
      local X = part(all, 1)
      local dense = ops.copy(X, cute.empty({2, 5, 3, 16}, type_), SIM)
      local want = ops.rope(dense, C, S, SIM)
      ops.rope(X, C, S, sim {out = part(out, 2)})
      for i = 0, cute.size(out) - 1 do
        local row, c = i // 144, i % 144
        local w = before(row // 5, row % 5, c)
        if c >= 96 then
          w = want(row // 5, row % 5, (c - 96) // 16, c % 16)
        end
        assert.equal(w, out(row // 5, row % 5, c))
      end
    end
  end)

  -- Returns element i of the head x, rotated by the angles of position p.
  local function rotated(x, c, s, i, half, interleaved, inverse)
    local j = interleaved and i // 2 or i % half
    local first = interleaved and i % 2 == 0 or not interleaved and i < half
    local a = x[interleaved and 2 * j or j]
    local b = x[interleaved and 2 * j + 1 or j + half]
    local sine = inverse and -s[j + 1] or s[j + 1]
    if first then return a * c[j + 1] - b * sine end
    return b * c[j + 1] + a * sine
  end

  it("rotates pairs by position", function()
    for number = 1, 8 do
      local interleaved, inverse = number % 2 == 0, number // 2 % 2 == 0
      local placed = number > 4
      local X = normal({2, 5, 3, 16}, number % 3 == 0 and "bf16" or "f32",
                       number == 5)
      local C, S = normal({9, 8}, "f32"), normal({9, 8}, "f32")
      local P = cute.tensor({{8, 7, 6, 5, 4}, {3, 2, 1, 0, 8}}, cute.i32)
      local Y = ops.rope(X, C, S, sim {interleaved = interleaved,
        inverse = inverse, positions = placed and P or nil})
      local x, c, s = rows_of(X), rows_of(C), rows_of(S)
      compare(Y, function(row)
        local token = (row - 1) // 3
        local p = placed and P(token // 5, token % 5) or token % 5
        local of, out = {}, {}
        for j, v in ipairs(x[row]) do of[j - 1] = v end
        for i = 0, 15 do
          out[i + 1] = rotated(of, c[p + 1], s[p + 1], i, 8, interleaved,
                               inverse)
        end
        return out
      end)
    end
  end)

  it("rejects what does not fit", function()
    local X, C = normal({5, 3, 16}, "f32"), normal({4, 8}, "f32")
    raises("ops.rope: Cos is (4,8):(8,1); at least 5 rows of 8 elements are "
      .. "needed", function() return (ops.rope(X, C, C, SIM)) end)
    raises("ops.rope: X is (4,8):(8,1); modes (..., S, H, D) are needed",
      function() return (ops.rope(C, C, C, SIM)) end)
    raises("ops.rope: out is (5,3,16):(16,16,1); contiguous, evenly spaced "
      .. "rows that do not overlap are needed", function()
        local shared = cute.make_tensor(X.iterator, cute.make_layout({5, 3, 16},
                                                                 {16, 16, 1}))
        return (ops.rope(X, normal({5, 8}, "f32"), normal({5, 8}, "f32"),
                         sim {out = shared}))
      end)
    raises("ops.rope: positions is (2):(1) of i32; 5 elements of i32 are "
      .. "needed", function()
        return (ops.rope(X, C, C, sim {positions = cute.zeros({2}, cute.i32)}))
      end)
  end)
end)

describe("ops of rows", function()
  it("give the simulator's bits on the GPU, in later calls too #gpu", function()
    local X, W = normal({300, 4096}, "bf16"), normal({4096}, "bf16")
    local G, V = X:to "gpu", W:to "gpu"
    for _ = 1, 3 do
      for _, f in ipairs {
        function(x, w, o) return (ops.rmsnorm(x, w, o)) end,
        function(x, w, o) return (ops.layernorm(x, w, o)) end,
        function(x, _, o) return (ops.softmax(x, o)) end,
        function(x, _, o) return (ops.topk(x, 7, o)) end,
        function(x, _, o) return (ops.sample(x, 5, o)) end,
      } do
        local a, b = f(G, V):to "host", f(X, W, sim {device = "sim:sm_90a"})
        if a.element_type == cute.bf16 then
          local right = rows_of(b)
          compare(a, function(i) return right[i] end)
        else
          local same = 0
          for i = 0, 299 do same = same + (a(i) == b(i) and 1 or 0) end
          assert.is_true(same >= 297)
        end
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
