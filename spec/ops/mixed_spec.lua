-- Tests random calls of ops.gemm and ops.grouped_gemm against plain Lua. Covers
-- what random_spec does not: operands and epilogue tensors with some of the
-- batch modes, C of one row or column, sums added to `out`, packed weights,
-- groups, dropout, several reductions, and results with any strides.
local cute = require "cute"
local ops = require "spec.ops"
local support = require "spec.support"

local DEVICES = {"sim:sm_80", "sim:sm_90a", "sim:sm_90a", "sim:sm_89"}

local PAIRS = {{"bf16", "bf16"}, {"bf16", "bf16"}, {"f16", "f16"},
  {"f32", "f32"}, {"f32", "f32", tf32 = true}, {"f64", "f64"}, {"i8", "u8"},
  {"i32", "i32"}, {"e4m3", "e5m2"}, {"e4m3", "e4m3"}, {"bf16", "i8"},
  {"f16", "e5m2"}, {"e4m3", "f16"}, {"bf16", "f16"}}

local MOST = 1 << 19  -- most multiply-adds of a call

local function ceil_div(a, b) return (a + b - 1) // b end

local function with(list, ...)
  return table.move({...}, 1, select("#", ...), #list + 1,
                    {table.unpack(list)})
end

-- Returns batch modes of an operand: the result's batch modes or some of the
-- last ones. Some may be replaced by extent 1.
local function part(pick, batch)
  local kind, out = pick {"all", "all", "none", "ones", "last"}, {}
  for i = kind == "none" and #batch + 1 or kind == "last" and #batch or 1,
      #batch do
    out[#out + 1] = kind == "ones" and pick(2) == 0 and 1 or batch[i]
  end
  return out
end

-- Returns the element of t at coordinates `...` in the given batch; batch modes
-- of extent 1 broadcast.
local function at(t, batch, ...)
  local c, own = {}, {...}
  local lead = cute.rank(t) - #own
  for i = 1, lead do c[i] = batch[#batch - lead + i] end
  table.move(own, 1, #own, lead + 1, c)
  for i = 1, #c do c[i] = t.shape[i] == 1 and 0 or c[i] end
  return t(table.unpack(c))
end

-- Returns a vector for each batch, (batch..., n), whose elements are contiguous
-- or strided.
local function vector(pick, batch, n, dtype, seed)
  local t = ops.tensor(pick, with(batch, n, 1), dtype, seed, pick {"k", "any"})
  local shape, stride = {}, {}
  for i = 1, #batch + 1 do shape[i], stride[i] = t.shape[i], t.stride[i] end
  return cute.make_tensor(t.iterator, cute.make_layout(shape, stride))
end

-- Computes Philox4x32-10 of counter c and key k, as the paper defines it.
local function philox(c, k)
  local k0, k1 = k & 0xffffffff, k >> 32
  for _ = 1, 10 do
    local a, b = c[1] * 0xD2511F53, c[3] * 0xCD9E8D57
    c = {b >> 32 & 0xffffffff ~ c[2] ~ k0, b & 0xffffffff,
         a >> 32 & 0xffffffff ~ c[4] ~ k1, a & 0xffffffff}
    k0, k1 = k0 + 0x9E3779B9 & 0xffffffff, k1 + 0xBB67AE85 & 0xffffffff
  end
  return c
end

local FOLD = {sum = {0, function(a, b) return a + b end},
  max = {-math.huge, math.max}, min = {math.huge, math.min},
  amax = {0, function(a, b) return math.max(a, math.abs(b)) end}}

---------------------------------------------------------------------------
-- Parts of a call: each sets options, and returns their effect as Lua functions
---------------------------------------------------------------------------

-- Returns 4-bit weights, and a function of (j, k) to the scaled weight.
local function packed(pick, c, o, rows)
  local q, list, group = {}, {}, pick(2) == 0 and 64
  for i = 0, rows * c.k - 1 do q[i] = pick(4) + 6 end
  for i, name in ipairs {"scale_b", "zeros"} do
    if i == 1 or pick(2) == 0 then
      local t = ops.tensor(pick, {rows, group and c.k // group or 1},
                           i == 1 and pick {"bf16", "f32"} or "u8", i, "m")
      list[i], o[name] = t, group and t or cute.make_tensor(t.iterator,
        cute.make_layout({rows}, {1}))
    end
  end
  o.group = group or nil
  local function number(j, k) return q[j * c.k + k] end
  return cute.ops.int4(number, rows, c.k), function(_, j, k)
    local g = group and k // group or 0
    return (number(j, k) - (list[2] and list[2](j, g) or 8)) * list[1](j, g)
  end
end

-- Returns random scale factors for the rows of an operand: the value for the
-- option of ops.gemm, and a function that returns the factor of element (row,
-- k) in group e.
local function factor(pick, rows, k, groups, ragged)
  local kind = pick {"none", "number", "rows", "blocks", "squares"}
  if kind == "squares" and ragged then kind = "none" end
  if kind == "none" then return nil, function() return 1 end
  elseif kind == "number" then return 0.5, function() return 0.5 end end
  local own = groups and {groups} or {}
  local t = kind == "rows" and vector(pick, own, rows, "f32", 6)
    or ops.tensor(pick, with(own, kind == "blocks" and rows
      or ceil_div(rows, 128), ceil_div(k, 128)), pick {"f32", "bf16"}, 7,
      pick {"k", "m"})
  return t, function(e, i, at_k)
    if kind == "squares" then i = i // 128 end
    local c = with(groups and {t.shape[1] == 1 and 0 or e} or {}, i)
    if kind ~= "rows" then c[#c + 1] = at_k // 128 end
    return t(table.unpack(c))
  end
end

-- Returns a random epilogue. Also returns f(x, batch, l, i, j, row of D), which
-- computes in plain Lua the epilogue's value for a sum x, and the values of its
-- other results.
local function epilogue(pick, c, floats)
  local type_of = c.a == "f64" and {"f64"} or {"f32", "bf16", "f16", "e4m3"}
  local own = c.form == "rows" and {} or c.batch
  local row = vector(pick, part(pick, own), c.m, pick(type_of), 11)
  local col = vector(pick, c.ragged and pick {{}, c.batch} or part(pick, own),
                     c.n, pick(type_of), 12)
  local T = ops.tensor(pick, with(part(pick, own), c.m, c.n), pick(type_of), 13)
  local by, uses = pick {2.0, 0.5}, {}
  for i = 1, 6 do uses[i] = pick(3) == 0 end
  local drop = uses[6] and floats and c.a ~= "f64" and pick {7, 1 << 40 | 5}
  local second = c.a ~= "f64" and pick {"none", "f32", "i32", "bf16"} or "none"
  local reduces = {}
  for i = 1, c.ragged and 0 or c.a ~= "f64" and pick(3) or 0 do
    reduces[i] = {pick {"row", "col", "all"}, pick {"sum", "max", "amax"}}
  end
  local function f(x, where)
    x = floats and x * by or x * 2
    if uses[1] then x = x + where:row(row):to(x.dtype) end
    if uses[2] then x = x + where:col(col):to(x.dtype) end
    if uses[3] then x = x + where:tile(T):to(x.dtype) end
    if uses[4] then
      local i, j = where:coords()
      x = cute.where(cute.lt(i, j), x, -x)
    end
    if uses[5] then x = cute.max(x, 0) end
    if drop then x = where:dropout(x, 0.5, drop) end
    local out = {x}
    if second ~= "none" then out[2] = (x + 1):to(cute[second]) end
    for _, r in ipairs(reduces) do
      out[#out + 1] = r[1] == "all" and where:reduce(r[2], x)
        or where[r[1] .. "_reduce"](where, r[2], x)
    end
    return table.unpack(out)
  end
  local function want(x, batch, l, i, j, of_D)
    x = x * (floats and by or 2)
    if uses[1] then x = x + at(row, batch, of_D) end
    if uses[2] then x = x + at(col, batch, j) end
    if uses[3] then x = x + at(T, batch, of_D, j) end
    if uses[4] and i >= j then x = -x end
    if uses[5] then x = math.max(x, 0) end
    if drop then
      local word = philox({j // 4, i, l, 0}, drop)[j % 4 + 1]
      x = word < 1 << 31 and 0 or 2 * x
    end
    return x
  end
  return f, want, second, reduces
end

---------------------------------------------------------------------------
-- A call
---------------------------------------------------------------------------

local function extents(pick)
  local c = {m = pick {1, 2, 3, 9, 17, 33, 65, 129},
             n = pick {1, 2, 8, 31, 48, 72, 130},
             k = pick {1, 3, 16, 64, 65, 128, 192, 300}, batch = {}}
  c.form = pick {"one", "batch", "batch", "rows", "masked", "int4"}
  c.ragged = c.form == "rows" or c.form == "masked"
  if c.form == "batch" then c.batch = pick {{3}, {2, 2}, {1, 3}, {3, 1}}
  elseif c.ragged then c.batch = {pick {1, 2, 4}}
  elseif c.form == "int4" then
    c.n, c.k = pick {16, 48, 64}, pick {64, 192, 320}
  end
  c.batches = cute.product(c.batch)
  while c.m * c.n * c.k * c.batches > MOST do c.m = c.m // 2 end
  return c
end

-- Returns the operands and options of a random call, and its expected results.
local function random_call(pick, device)
  local c, pair = extents(pick), pick(PAIRS)
  local o = {device = device or pick(DEVICES)}
  c.a, c.b, o.tf32 = pair[1], pair[2], pair.tf32
  if c.form == "int4" then
    c.a, c.b, o.tf32 = pick {"bf16", "f16"}, "i4", nil
  end
  local whole = c.a:find "^[iu]" and c.b:find "^[iu]"
  local gated = pick(6) == 0 and c.a ~= "f64" and c.a ~= "i32"
  c.rows = gated and 2 * c.n or c.n
  local dense = pick(3) > 0 and "k" or nil
  c.A = ops.tensor(pick, with(c.form == "rows" and {} or c.batch, c.m, c.k),
                   c.a, 1, c.form == "int4" and "k" or dense)
  if c.form == "int4" then c.B, c.weight = packed(pick, c, o, c.rows)
  else
    c.B = ops.tensor(pick, with(c.ragged and c.batch or part(pick, c.batch),
                                c.rows, c.k), c.b, 2, dense)
  end
  local function one() return 1 end
  c.sa, c.sb = one, one
  local plain = c.a == "f64" or c.a == "i32" or c.form == "int4"
  if not gated and not plain and not whole and pick(3) == 0 then
    o.scale_a, c.sa = factor(pick, c.m, c.k, c.form == "masked" and c.batches,
                             c.ragged)
    o.scale_b, c.sb = factor(pick, c.rows, c.k, c.ragged and c.batches)
  end
  c.alpha, c.beta = 1, 0
  if pick(4) == 0 and not gated then
    o.alpha = pick {2, -1}
    c.alpha = o.alpha
  end
  o.dtype = c.a == "f64" and "f64" or whole and "i32"
    or pick {"f32", "f32", "bf16", "f16"}
  if c.ragged then
    local ends = {}
    for e = 1, c.batches do ends[e] = pick(c.m + 1) end
    if c.form == "rows" then table.sort(ends) end
    c.count, c.first = {}, {}
    for e = 1, c.batches do
      c.first[e] = c.form == "rows" and (ends[e - 1] or 0) or 0
      c.count[e] = ends[e] - c.first[e]
    end
    if c.form == "rows" then table.insert(ends, 1, 0) end
    c.where = cute.tensor(ends, pick {cute.i32, cute.i64})
  elseif not gated and pick(2) == 0 then
    local rows, columns = pick {1, c.m, c.m}, pick {1, c.n, c.n}
    local t = c.a == "f64" and "f64" or whole and "i32" or "bf16"
    c.C = pick(4) == 0 and vector(pick, {}, c.n, t, 8)
      or ops.tensor(pick, with(part(pick, c.batch), rows, columns), t, 8)
    c.beta = pick {1, 2, -1}
    o.beta = c.beta
  end
  if gated or pick(2) == 0 then
    local f
    f, c.want, c.second, c.reduces = epilogue(pick, c, not whole)
    o.epilogue, o.gated = f, gated or nil
    if gated then o.epilogue = function(g, u, where) return f(g * u, where) end
    end
  end
  local many = c.second and (c.second ~= "none" or #c.reduces > 0)
  if not many and pick(2) == 0 then
    o.out = ops.tensor(pick, with(c.form == "rows" and {} or c.batch, c.m, c.n),
                       o.dtype, nil)
  end
  return c, o
end

-- Returns x converted to the result type `dtype`.
local function as(x, dtype)
  if dtype == "i32" then return x < 0 and -(-x // 1) or x // 1 end
  return ops.rounded(dtype)(x)
end

-- Describes the first result element that is wrong, or returns nil.
local function compare(c, o, D, ...)
  local more, wrong = {...}, nil
  local E = c.second and c.second ~= "none" and table.remove(more, 1)
  local folds = {}
  for r = 1, #more do folds[r] = {} end
  local function check(name, i, j, have, want, dtype)
    -- a sum of integers below 2^24 is exact in f32
    local exact = math.abs(want) < 1 << 24
    if not wrong and exact and have ~= as(want, dtype) then
      wrong = ("%s(%s,%s) is %s, not %s"):format(name, i, j, have, want)
    end
  end
  local function each(batch, l, i, j, sum)
    local of_D = c.form == "rows" and c.first[l + 1] + i or i
    local x = sum * c.alpha
    if c.C then x = x + c.beta * at(c.C, batch, table.unpack(
      cute.rank(c.C) == 1 and {j} or {i, j})) end
    if c.want then x = c.want(x, batch, l, i, j, of_D) end
    local lead = c.form == "rows" and {} or batch
    check("D", of_D, j, at(D, lead, of_D, j), x, o.dtype)
    if E then check("E", of_D, j, at(E, lead, of_D, j), x + 1, c.second) end
    for r, kind in ipairs(c.reduces or {}) do
      local key = kind[1] == "all" and 0 or l * 1000
        + (kind[1] == "row" and i or j)
      local init, fold = table.unpack(FOLD[kind[2]])
      folds[r][key] = fold(folds[r][key] or init, x)
    end
  end
  for l = 0, c.batches - 1 do
    local batch, rest = {}, l
    for i = #c.batch, 1, -1 do
      batch[i], rest = rest % c.batch[i], rest // c.batch[i]
    end
    local first = c.form == "rows" and c.first[l + 1] or 0
    local m = c.count and c.count[l + 1] or c.m
    local x_of, y_of, k = {}, {}, c.k
    for i = 0, m * k - 1 do
      local row = first + i // k
      x_of[i] = at(c.A, c.form == "rows" and {} or batch, row, i % k)
        * c.sa(l, row, i % k)
    end
    for i = 0, c.rows * k - 1 do
      y_of[i] = c.weight and c.weight(l, i // k, i % k)
        or at(c.B, batch, i // k, i % k) * c.sb(l, i // k, i % k)
    end
    local function dot(i, j)
      local sum = 0
      for at_k = 0, k - 1 do sum = sum + x_of[i * k + at_k] * y_of[j * k + at_k]
      end
      return sum
    end
    for i = 0, m - 1 do
      for j = 0, c.n - 1 do
        each(batch, l, i, j, dot(i, j) * (o.gated and dot(i, j + c.n) or 1))
      end
    end
    for r, kind in ipairs(c.reduces or {}) do
      for key, x in pairs(kind[1] == "all" and {} or folds[r]) do
        if key // 1000 == l then
          check(kind[2], l, key % 1000, at(more[r], batch, key % 1000), x,
                "f32")
        end
      end
    end
  end
  for r, kind in ipairs(c.reduces or {}) do
    if kind[1] == "all" then check(kind[2], 0, 0, more[r](0), folds[r][0],
                                   "f32") end
  end
  return wrong
end

-- Runs and checks a random call. Returns nil, or what is wrong with it.
local function check(seed, device)
  local c, o = random_call(ops.random(seed * 7919 + 13), device)
  local words = {}
  for name, v in pairs(o) do words[#words + 1] = name .. "=" .. tostring(v) end
  table.sort(words)
  local text = ("%s: %s x %s, %dx%dx%d x %s, A %s, B %s, C %s, %s"):format(
    c.form, c.a, c.b, c.m, c.n, c.k, table.concat(c.batch, "."), c.A.layout,
    c.weight and "packed" or c.B.layout, c.C and c.C.layout,
    table.concat(words, " "))
  local got = c.where
    and table.pack(pcall(cute.ops.grouped_gemm, c.A, c.B, c.where, o))
    or table.pack(pcall(cute.ops.gemm, c.A, c.B, c.C, o))
  if not got[1] then
    if got[2]:find("no kernel multiplies", 1, true) then
      return nil, "refused"
    end
    return text .. ": " .. got[2]
  end
  local wrong = compare(c, o, table.unpack(got, 2, got.n))
  return wrong and text .. ": " .. wrong
end

describe("mixed calls of ops.gemm", function()
  for first = 1, 37, 4 do
    it(("are right: %d to %d"):format(first, first + 3) .. support.long(first),
       function()
      local refused = 0
      for seed = first, first + 3 do
        local wrong, how = check(seed)
        assert(not wrong, ("%d: %s"):format(seed, wrong))
        if how then refused = refused + 1 end
      end
      assert.is_true(refused <= 3)
    end)
  end

  it("are right on a card #gpu", function()
    for seed = 101, 116 do
      local wrong = check(seed, "gpu")
      assert(not wrong, ("%d: %s"):format(seed, wrong))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
