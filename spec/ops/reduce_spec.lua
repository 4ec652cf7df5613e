-- Tests cute.ops.reduce against plain Lua, with all operations, modes, strides
-- and types. For some results, several blocks are combined. Invalid calls must
-- raise errors.
local core = require "cute.core"
local cute = require "cute"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local support = require "spec.support"
local reduce = cute.ops.reduce

local TYPES = {"f32", "bf16", "f16", "f64", "i32", "i8", "u8", "i64", "u32",
               "u64", "e4m3"}
local OPS = {"sum", "mean", "max", "min", "amax", "norm", "rms", "argmax",
             "argmin", "prod"}
local DEVICES = {"sim:sm_80", "sim:sm_90a"}

local function gone_of(rank, by)
  local gone = {}
  if by == "all" then for m = 1, rank do gone[m] = true end
  elseif by == "row" then gone[rank] = true
  elseif by == "column" then gone[rank - 1] = true
  else for _, m in ipairs(by) do gone[m + 1] = true end end
  return gone
end

-- Reduces X over the modes `by` in plain Lua. Returns a list with a table
-- {[operation] = value} for each element of the result. Also returns the
-- extents of the result.
local function right(X, by)
  local shape = {}
  for m = 1, cute.rank(X) do shape[m] = cute.size(X.shape[m]) end
  local gone, all, kept = gone_of(#shape, by), {}, {}
  for m, n in ipairs(shape) do
    if not gone[m] then kept[#kept + 1] = n end
  end
  for e = 0, cute.size(X) - 1 do
    local c, rest, at, index = {}, e, 0, 0
    for m = #shape, 1, -1 do c[m], rest = rest % shape[m], rest // shape[m] end
    for m, n in ipairs(shape) do
      if gone[m] then index = index * n + c[m] else at = at * n + c[m] end
    end
    local x = X(table.unpack(c))
    local a = all[at]
    if not a then
      a = {sum = 0, q = 0, n = 0, max = x, min = x, amax = 0, argmax = 0,
           argmin = 0, prod = 1}
      all[at] = a
    end
    a.sum, a.q, a.n = a.sum + x, a.q + x * x, a.n + 1
    a.prod = a.prod * x
    a.amax = math.max(a.amax, math.abs(x))
    if x > a.max then a.max, a.argmax = x, index end
    if x < a.min then a.min, a.argmin = x, index end
  end
  for _, a in pairs(all) do
    a.mean, a.norm, a.rms = a.sum / a.n, a.q ^ 0.5, (a.q / a.n) ^ 0.5
  end
  return all, #kept > 0 and kept or {1}
end

local EXACT = {sum = true, max = true, min = true, amax = true, argmax = true,
               argmin = true}

local function compare(X, op, by, Y)
  local all, kept = right(X, by)
  local shape = {}
  for m = 1, cute.rank(Y) do shape[m] = cute.size(Y.shape[m]) end
  assert.same(kept, shape)
  for at, a in pairs(all) do
    local c, rest = {}, at
    for m = #kept, 1, -1 do c[m], rest = rest % kept[m], rest // kept[m] end
    local got, want = Y(table.unpack(c)), a[op]
    local off = EXACT[op] and 0 or 2e-6 * math.abs(want)
    if got ~= got or math.abs(got - want) > off then
      error(("%s of %s: (%s) is %s, not %s"):format(op, X.layout,
        table.concat(c, ","), got, want))
    end
  end
end

local function random(number, device)
  local pick = ops.random(number)
  local shape = {}
  for m = 1, pick {2, 2, 3, 3, 4} do
    shape[m] = pick {1, 2, 3, 7, 8, 16, 33, 64, 100}
  end
  while cute.product(shape) > 12000 do table.remove(shape, 1) end
  if #shape < 2 then shape = {3, 100} end
  local dtype, op = TYPES[number % #TYPES + 1], OPS[number % #OPS + 1]
  local X = ops.tensor(pick, shape, dtype, number)
  local by = pick {"row", "column", "all", {pick(#shape)}, {0, #shape - 1}}
  local o = {by = by, device = device or pick(DEVICES), seed = number}
  if pick(3) == 0 and by == "row" then
    local kept = {table.unpack(shape, 1, #shape - 1)}
    local wide = table.move(kept, 1, #kept, 1, {})
    wide[#wide + 1] = 2
    local whole = cute.zeros(wide, op:find "^arg" and cute.i32 or cute.f32)
    o.out = whole(table.unpack(table.move({1}, 1, 1, #wide, (function()
      local u = {}
      for m = 1, #kept do u[m] = cute._ end
      return u
    end)())))
  end
  compare(X, op, by, reduce(X, op, o))
end

local function matrix(shape, dtype, seed)
  return ops.tensor(ops.random(1), shape, dtype or "f32", seed or 1, "k")
end
local SIM = {device = "sim"}

describe("cute.ops.reduce", function()
  ops.problems(it, random)

  it("shares long sums among blocks #long", function()
    for _, c in ipairs {
      {{200003}, "bf16", "sum", "all"}, {{2, 70001}, "f32", "argmax", "row"},
      {{40000, 3}, "f32", "sum", "column"}, {{9000, 16}, "f16", "argmin",
      "column"}, {{5, 3000, 8}, "f32", "mean", {0, 1}},
      {{3, 50000}, "f64", "rms", "row"}, {{30000, 8}, "i8", "sum", "column"},
    } do
      local X = matrix(c[1], c[2])
      local Y = reduce(X, c[3], {by = c[4], device = "sim"})
      compare(X, c[3], c[4], Y)
    end
  end)

  it("does so in repeated calls, and in a graph #gpu", function()
    local out = cute.zeros({1}, cute.f32, {device = "gpu"})
    for i = 1, 3 do
      local X = matrix({5, 70000}, "f32", i)
      local G = X:to "gpu"
      for _, c in ipairs {{"sum", "all"}, {"argmax", "row"}, {"max", "column"},
                          {"sum", "row"}} do
        compare(X, c[1], c[2], reduce(G, c[1], {by = c[2]}):to "host")
      end
      compare(X, "sum", "all", reduce(G, "sum", {out = out}):to "host")
      local Y
      local graph = cute.graph(function()
        Y = reduce(G, "sum", {by = "row"})
      end, {device = "gpu"})
      G:copy_from(matrix({5, 70000}, "f32", i + 7))
      graph:launch()
      compare(matrix({5, 70000}, "f32", i + 7), "sum", "row", Y:to "host")
    end
  end)

  it("has types from the operands, dtype and out", function()
    local function type_of(dtype, op, o)
      return tostring(reduce(matrix({4, 8}, dtype), op,
        setmetatable({device = "sim"}, {__index = o})).element_type)
    end
    assert.equal("f32", type_of("bf16", "sum"))
    assert.equal("f64", type_of("f64", "max"))
    assert.equal("i64", type_of("i8", "sum"))
    assert.equal("i8", type_of("i8", "max"))
    assert.equal("f32", type_of("i32", "mean"))
    assert.equal("i32", type_of("f32", "argmax"))
    local Y = reduce(matrix({4, 8}, "bf16"), "mean", {by = "row",
      dtype = "bf16", device = "sim"})
    assert.equal(cute.bf16, Y.element_type)
    local wide = reduce(matrix({4, 8}), "argmax", {by = "row", device = "sim",
      dtype = cute.i64})
    assert.equal(cute.i64, wide.element_type)
  end)

  it("sums integers past their type, and floats of 16 bits in f32", function()
    local X = cute.full({100, 50}, 2000000000, cute.i32)
    assert.equal(5000 * 2000000000, reduce(X, "sum", SIM)(0))
    local H = cute.full({3, 4096}, 1, cute.bf16)
    assert.equal(4096.0, reduce(H, "sum", {by = "row", device = "sim"})(2))
  end)

  it("passes NaNs by, and has them first as places", function()
    local X = matrix {3, 70}
    X[{1, 40}], X[{1, 60}], X[{0, 69}] = 0 / 0, -(0 / 0), math.huge
    for k = 0, 69 do X[{2, k}] = -math.huge end
    local function go(op) return reduce(X, op, {by = "row", device = "sim"}) end
    assert.equal(math.huge, go "max"(0))
    assert.is_true(go "max"(1) <= 3)
    assert.is_true(go "sum"(1) ~= go "sum"(1))
    assert.equal(69, go "argmax"(0))
    assert.equal(40, go "argmax"(1))
    assert.equal(40, go "argmin"(1))
    assert.equal(0, go "argmax"(2))
  end)
end)

describe("cute.ops.reduce", function()
  -- Returns, in plain Lua, the index of the largest or smallest element in each
  -- of `places` rows. A row has `many` elements get(row, k).
  local function first_of(op, places, many, get)
    local list = {}
    for p = 0, places - 1 do
      local best, at = get(p, 0), 0
      for k = 1, many - 1 do
        local x = get(p, k)
        local more = op == "argmax" and x > best or op == "argmin" and x < best
        if best == best and (more or x ~= x) then best, at = x, k end
      end
      list[p] = at
    end
    return list
  end

  local LEAST = {i64 = math.mininteger, i32 = -1 << 31, i8 = -128, u8 = 0,
                 u64 = 0}
  local MOST = {i64 = math.maxinteger, i32 = (1 << 31) - 1, i8 = 127, u8 = 255,
                u64 = math.maxinteger}

  it("finds the first of equals, of least values, of NaNs #long", function()
    local m, n = 61, 660
    for i, dtype in ipairs {"f32", "bf16", "f16", "f64", "i64", "u64", "i8",
                            "e5m2", "i32"} do
      local float = cute[dtype].is_float
      local b = core.buffer(dtype, m * n)
      local turned = i % 2 == 0
      local X = cute.make_tensor(b, cute.make_layout({m, n},
        turned and {1, m} or {n, 1}))
      local op = i % 3 == 0 and "argmin" or "argmax"
      local worst = op == "argmax" and (float and -math.huge or LEAST[dtype])
        or (float and math.huge or MOST[dtype])
      -- Each entry: {the value of most elements, the list of the others {row,
      -- column, value}}
      local fills = {{worst, {}}, {1, {}}, {worst, {{7, 300, 1}, {60, 659, 1},
                                                    {60, 2, 1}}}}
      if float then
        table.insert(fills, {-0.0, {{0, 5, 0.0}, {60, 659, 0.0}}})
        table.insert(fills, {1, {{20, 100, 0 / 0}, {20, 90, -(0 / 0)},
                                 {50, 659, 0 / 0}}})
        table.insert(fills, {0 / 0, {}})
      end
      for _, fill in ipairs(fills) do
        b:fill(fill[1])
        for _, p in ipairs(fill[2]) do X[{p[1], p[2]}] = p[3] end
        local function at(r, c) return b[turned and c * m + r or r * n + c] end
        for by, want in pairs {
          row = first_of(op, m, n, at),
          column = first_of(op, n, m, function(p, k) return at(k, p) end),
          all = first_of(op, 1, m * n, function(_, k)
            return at(k // n, k % n)
          end)} do
          local Y = reduce(X, op, {by = by, device = "sim"})
          for p = 0, cute.size(Y) - 1 do
            if Y(p) ~= want[p] then
              error(("%s of %s by %s of %s: %d is %d, not %d"):format(op,
                dtype, by, fill[1], p, Y(p), want[p]))
            end
          end
        end
      end
    end
  end)

  it("has as many vectors of a thread as its words count, and more #long",
     function()
    for _, m in ipairs {65535, 65537} do
      local k = require "kernels.reduce_tensor".across {op = "argmin",
        dtype = cute.f16, width = 2, kept = {extents = {2}, stride = {1}},
        stride = {1},
        folded = {extents = {m}, stride = {2}}, index = {1}, ordered = true,
        places = 2, count = m, block = 1, lanes = 1, steps = 1, splits = 1}
      local X, Y = cute.full({m, 2}, 3, cute.f16), cute.zeros({2}, cute.i32)
      X[{m - 1, 0}], X[{65533, 1}] = -2, 2.5
      k.kernel(X, Y):launch {grid = k.grid, block = k.block, device = "sim"}
      assert.equal(m - 1, Y(0))
      assert.equal(65533, Y(1))
    end
  end)

  it("counts places in rows, in whatever order memory has them", function()
    for _, c in ipairs {{"bf16", 1}, {"f32", 0 / 0}, {"i32", 1}} do
      local X = cute.full(cute.make_layout({61, 660}, {1, 61}), c[2], c[1])
      local Y = cute.full(cute.make_layout({7, 90, 40}, {40, 280, 1}), c[2],
                          c[1])
      for k = 0, 659 do if k ~= 500 then X[{0, k}] = 0 end end
      for b = 0, 89 do
        for j = 0, 39 do if b ~= 70 then Y[{0, b, j}] = 0 end end
      end
      assert.equal(500, reduce(X, "argmax", SIM)(0))
      local Z = reduce(Y, "argmax", {by = {0, 1}, device = "sim"})
      for j = 0, 39 do assert.equal(70, Z(j)) end
    end
  end)

  it("reduces the blocks' partial results in any number of steps #long",
     function()
    local X = matrix({33000, 37}, "i8")
    local b = core.launch_values {X, n = 1}[1][1]
    local sums = {}
    for j = 0, 36 do sums[j] = 0 end
    for e = 0, 33000 * 37 - 1 do sums[e % 37] = sums[e % 37] + b[e] end
    local Y = reduce(X, "sum", {by = "column", device = "sim"})
    for j = 0, 36 do assert.equal(sums[j], Y(j)) end
  end)

  it("gives the same bits in any order of the warps", function()
    local X = cute.randn({70, 900}, cute.f32, {seed = 5})
    for _, by in ipairs {"all", "row", "column"} do
      local first = reduce(X, "sum", {by = by, device = "sim", seed = 1})
      for seed = 2, 3 do
        local Y = reduce(X, "sum", {by = by, device = "sim", seed = seed})
        for i = 0, cute.size(Y) - 1 do assert.equal(first(i), Y(i)) end
      end
    end
  end)
end)

describe("cute.ops.reduce", function()
  -- findings/narrow_sums.sh and findings/jax_block_scales.sh show that other
  -- software gives wrong results here.
  it("sums narrow types in f32, and compares scale factors", function()
    for _, dtype in ipairs {"bf16", "f16", "e4m3", "e5m2", "ue8m0"} do
      local X = cute.ones({3000}, dtype)
      assert.equal(1, reduce(X, "mean", SIM)(0), dtype)
    end
    local factors = {0.5, 4, 2.0 ^ -127, 8, 2.0 ^ 127, 1}
    local X = cute.zeros({6}, "ue8m0")
    for i, x in ipairs(factors) do X[i - 1] = x end
    assert.equal(2.0 ^ 127, reduce(X, "max", SIM)(0))
    assert.equal(2.0 ^ -127, reduce(X, "min", SIM)(0))
    assert.equal(4, reduce(X, "argmax", SIM)(0))
    assert.equal(2, reduce(X, "argmin", SIM)(0))
  end)

  it("reaches elements past 2^31, and counts that many #noasan #long",
     function()
    local far = (1 << 31) + 64
    local X = cute.make_tensor(core.buffer("i8", far + 200),
                               cute.make_layout({2, 100}, {far, 1}))
    for j = 0, 99 do X[{0, j}], X[{1, j}] = 1, j end
    assert.equal(4950, reduce(X, "sum", {by = "row", device = "sim"})(1))
    assert.equal(99, reduce(X, "argmax", {by = "row", device = "sim"})(1))
    local k = require "kernels.reduce_tensor".along {op = "argmax",
      dtype = cute.i8, width = 16, kept = {extents = {1}, stride = {1}},
      stride = {1},
      folded = {extents = {1 << 40}, stride = {1}}, index = {1}, wide = true,
      places = 1, count = 1 << 40, threads = 256, block = 256, steps = 8,
      splits = 1}
    local source = k.kernel(cute.zeros({16}, cute.i8), cute.zeros({1},
      cute.i64)):trace {block = 256}.source
    assert.matches("long long", source, 1, true)
  end)

  it("is text that compiles, along and across, with parts", function()
    local reduce_tensor = require "kernels.reduce_tensor"
    for _, op in ipairs {"sum", "argmax"} do
      for way, row in pairs {along = true, across = false} do
        local m, n = 64, 4096
        local rows = {extents = {m}, stride = {n}}
        local columns = {extents = {n}, stride = {1}}
        local k = reduce_tensor[way] {op = op, dtype = cute.bf16,
          sums = cute.f32, width = 8, kept = row and rows or columns,
          stride = {1},
          folded = row and columns or rows, index = op == "argmax" and {1},
          ordered = true,
          places = row and m or n, count = row and n or m, threads = 128,
          lanes = 32, block = 256, steps = 4, splits = 2, pdl = true}
        local parts = cute.zeros({2 * n}, op == "sum" and cute.f32 or cute.i32)
        local p = k.kernel(cute.zeros({m, n}, cute.bf16), cute.zeros({n},
          cute.f32), parts, op == "argmax" and parts:clone() or nil):trace {
          block = k.block}
        -- The next launch begins after the loads, but not for indices across.
        assert.equal((row or op == "sum") and 1 or 0, select(2, p.ir:gsub(
          "griddepcontrol.launch_dependents", "")))
        kernels.compiles(p, {"sm_90a"})
      end
    end
  end)

  it("reports what is wrong", function()
    local X = matrix {4, 6}
    for _, c in ipairs {
      {"ops.reduce: no operation 'som' (did you mean sum?)", X, "som"},
      {"ops.reduce: no way 'by' 'rows' (did you mean row?)", X, "sum",
       {by = "rows"}},
      {"by = 2; a mode of x, (4,6):(6,1), is needed: 0 to 1, each at most "
        .. "once", X, "sum",
       {by = {2}}},
      {"by = 1; a mode of x, (4,6):(6,1), is needed: 0 to 1, each at most "
        .. "once", X, "sum",
       {by = {1, 1}}},
      {"by = {}; at least one mode to reduce is needed", X, "sum", {by = {}}},
      {"by = {0}; a mode of x, (4,6):(6,1), is needed: 0 to 1, each at most "
        .. "once", X, "sum",
       {by = {{0}}}},
      {"out has type f32, but dtype is bf16", X, "sum", {dtype = "bf16",
       out = cute.zeros({1}, cute.f32)}},
      {"x is (6):(1); column needs two modes", cute.zeros({6}, cute.f32),
       "sum", {by = "column"}},
      {"out is (6):(1), but the result has extents (4)", X, "sum",
       {by = "row", out = cute.zeros({6}, cute.f32)}},
      {"out shares memory with x", X, "sum", {by = "row",
       out = cute.make_tensor(X.iterator, cute.make_layout({4}, {6}))}},
      {"out is (4):(0): several of its elements have the same "
        .. "address", X, "sum",
       {by = "row", out = cute.make_tensor(cute.zeros({1}, cute.f32).iterator,
                                           cute.make_layout({4}, {0}))}},
      {"ops.reduce: no option 'bye' (did you mean by?)", X, "sum",
       {bye = 1}},
    } do
      assert.matches(c[1], support.message(reduce, c[2], c[3], c[4]), 1, true)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
