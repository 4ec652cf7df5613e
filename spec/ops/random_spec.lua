-- Tests random calls of ops.gemm against plain Lua: types, strides, batches,
-- scale factors, C and epilogues in all combinations. Each call must give the
-- right result or raise an expected error.
local cute = require "cute"
local ops = require "spec.ops"
local support = require "spec.support"

local FLOATS = {"bf16", "f16", "f32", "e4m3", "e5m2"}
local DEVICES = {"sim:sm_80", "sim:sm_89", "sim:sm_90a", "sim:sm_90a"}

-- Types of A and B.
local PAIRS = {{"bf16", "bf16"}, {"bf16", "bf16"}, {"f16", "f16"},
  {"f32", "f32"}, {"f32", "f32", tf32 = true}, {"f64", "f64"}, {"i8", "i8"},
  {"u8", "i8"}, {"e4m3", "e4m3"}, {"e4m3", "e5m2"}, {"e5m2", "e5m2"},
  {"bf16", "i8"}, {"f16", "u8"}, {"bf16", "e4m3"}, {"i8", "f16"},
  {"e5m2", "bf16"}, {"bf16", "f32"}, {"f32", "f16"}}

-- Texts of expected error messages. ops.gemm may reject a random call if no
-- kernel supports its combination of types and layouts.
local REFUSED = {"no kernel multiplies"}

local function expected(why)
  for _, text in ipairs(REFUSED) do
    if why:find(text, 1, true) then return true end
  end
end

local function ceil_div(a, b) return (a + b - 1) // b end

-- Returns random scale factors for `rows` rows of k elements: the option of
-- ops.gemm, and a function that returns the factor of element (row, k).
local function factor(pick, rows, k, group)
  local kind = pick {"none", "none", "number", "one", "rows", "blocks"}
  local t = pick {"f32", "bf16"}
  if kind == "number" then return 0.5, function() return 0.5 end
  elseif kind == "one" then
    local x = ops.tensor(pick, {1}, t, 5, "k")
    return x, function() return x(0) end
  elseif kind == "rows" then
    local x = ops.tensor(pick, {rows}, t, 6, "k")
    return x, function(i) return x(i) end
  elseif kind == "blocks" then
    local x = ops.tensor(pick, {rows, ceil_div(k, group)}, t, 7,
                         pick {"k", "m"})
    return x, function(i, at) return x(i, at // group) end, true
  end
  return nil, function() return 1 end
end

-- Returns a random epilogue for D (m,n), and a function that computes in plain
-- Lua the epilogue's value for the sum x at (i, j). Also returns the type of a
-- second result, the mode that is reduced, and the reduction's operation.
local function epilogue(pick, m, n, floats)
  local row = ops.tensor(pick, {m}, pick(FLOATS), 11, "k")
  local col = ops.tensor(pick, {n}, pick(FLOATS), 12, "k")
  local T = ops.tensor(pick, {m, n}, pick(FLOATS), 13)
  local by = pick {2.0, 0.5, -1.0}
  local uses, cut = {pick(2), pick(2), pick(2), pick(2)}, pick(2) == 1
  local second = pick {"none", "none", "same", "f32", "i32"}
  local reduce = pick {"none", "none", "row", "col", "all"}
  local op = pick {"sum", "max", "min", "amax"}
  local function f(x, at)
    if floats then x = x * by else x = x * 2 end
    if uses[1] == 1 then x = x + at:row(row):to(x.dtype) end
    if uses[2] == 1 then x = x + at:col(col):to(x.dtype) end
    if uses[3] == 1 then x = x + at:tile(T):to(x.dtype) end
    if uses[4] == 1 then
      local i, j = at:coords()
      x = cute.where(cute.lt(i, j), x, -x)
    end
    if cut then x = cute.max(x, 0) end
    local out = {x}
    if second == "same" then out[2] = x + 1
    elseif second ~= "none" then out[2] = (x + 1):to(cute[second]) end
    if reduce == "row" then out[#out + 1] = at:row_reduce(op, x)
    elseif reduce == "col" then out[#out + 1] = at:col_reduce(op, x)
    elseif reduce == "all" then out[#out + 1] = at:reduce(op, x) end
    return table.unpack(out)
  end
  local function want(x, i, j)
    x = x * (floats and by or 2)
    if uses[1] == 1 then x = x + row(i) end
    if uses[2] == 1 then x = x + col(j) end
    if uses[3] == 1 then x = x + T(i, j) end
    if uses[4] == 1 and i >= j then x = -x end
    return cut and math.max(x, 0) or x
  end
  return f, want, second, reduce, op
end

local FOLD = {
  sum = {0, function(a, b) return a + b end}, max = {-math.huge, math.max},
  min = {math.huge, math.min},
  amax = {0, function(a, b) return math.max(a, math.abs(b)) end}}

-- Describes options.
local function words_of(o)
  local words = {}
  for name, v in pairs(o) do words[#words + 1] = name .. "=" .. tostring(v) end
  table.sort(words)
  return table.concat(words, " ")
end

-- Describes an element of a reduction that is not as expected, or returns nil.
local function differs(R, list, what)
  for i, x in pairs(list) do
    -- a sum of multiples of 1/4 is exact in f32 if it is below 2^22
    local exact = math.abs(x) < 1 << 22
    if exact and R(i) ~= x or math.abs(R(i) - x) > 1e-6 * math.abs(x) then
      return ("%s (%d) is %s, not %s"):format(what, i, R(i), x)
    end
  end
end

-- Runs and checks a random call. Returns nil, or what is wrong with it.
local function check(seed, device, told)
  local pick = ops.random(seed)
  device = device or pick(DEVICES)
  local pair = pick(PAIRS)
  local a, b = pair[1], pair[2]
  local m, n, k = pick {1, 3, 16, 33, 64, 70}, pick {1, 8, 31, 64, 72, 130},
    pick {1, 8, 40, 64, 129, 256}
  local whole = a:find "^[iu]" and b:find "^[iu]"
  local batch = pick {0, 0, 0, 2}
  local gated = pick(6) == 0 and batch == 0 and a ~= "f64"
  local function shape(r, c) return batch > 0 and {batch, r, c} or {r, c} end
  local dense = pick(2) == 1
  local function matrix(r, c, t, s)
    return ops.tensor(pick, shape(r, c), t, s, dense and "k" or nil)
  end
  local columns = n
  if gated then n = 2 * n end
  local A, B = matrix(m, k, a, 1), matrix(n, k, b, 2)
  local o = {device = device, tf32 = pair.tf32}
  local sa, sb = function() return 1 end, function() return 1 end
  if batch == 0 and not gated and a ~= "f64" and pick(3) == 0 then
    local group = pick {nil, 64, 128, 32}
    local blocks_a, blocks_b
    o.scale_a, sa, blocks_a = factor(pick, m, k, group or 128)
    o.scale_b, sb, blocks_b = factor(pick, n, k, group or 128)
    if group and (o.scale_a or o.scale_b) then o.group = group end
    if (blocks_a or blocks_b) and whole then return nil end
  end
  local floats = not whole or o.scale_a ~= nil or o.scale_b ~= nil
  o.dtype = floats and (a == "f64" and "f64" or "f32") or "i32"
  local C, alpha, beta
  if not gated and pick(4) == 0 then
    C = matrix(m, columns, floats and pick {"f32", "bf16"} or "i32", 3)
    beta = pick {1, 2, 0}
    o.beta, o.alpha = beta, pick {1, 3}
    alpha = o.alpha
  end
  local want, second, reduce, op
  if (pick(2) == 0 or gated) and batch == 0 and a ~= "f64" then
    local f
    f, want, second, reduce, op = epilogue(pick, m, columns, floats)
    o.epilogue = f
    if gated then
      o.gated = true
      o.epilogue = function(gate, up, at) return f(gate * up, at) end
    end
  end
  if pick(5) == 0 and not (reduce == "col" or reduce == "all") then
    o.batch_invariant = true
  end
  if pick(3) == 0 then
    o.out = matrix(m, columns, o.dtype, nil)
    if want and (second ~= "none" or reduce ~= "none") then o.out = {o.out} end
  end
  told(("%s: %s x %s, %dx%dx%d x %d, A %s, B %s, %s"):format(device, a, b, m, n,
    k, batch, A.layout, B.layout, words_of(o)))
  local got = table.pack(pcall(cute.ops.gemm, A, B, C, o))
  if not got[1] then
    return not expected(got[2]) and got[2] or nil, "refused"
  end
  local D = got[2]
  local rows, cols, all = {}, {}, nil
  local rounded = ops.rounded(o.dtype)
  local E = second and second ~= "none" and got[3]
  local wrong
  local x_of, y_of
  local function rows_of(t, count, l, by)
    local list = {}
    for i = 0, count - 1 do
      for at = 0, k - 1 do
        list[i * k + at] = ops.at(t, {l}, i, at) * by(i, at)
      end
    end
    return list
  end
  local function element(l, i, j)
    local function sum_of(row)
      local sum, first, second_ = 0, i * k, row * k
      for at = 0, k - 1 do
        sum = sum + x_of[first + at] * y_of[second_ + at]
      end
      return sum
    end
    local x = sum_of(j)
    if gated then x = x * sum_of(j + columns) end
    x = x * (alpha or 1)
    if C and beta ~= 0 then x = x + beta * ops.at(C, {l}, i, j) end
    if want then x = want(x, i, j) end
    return x
  end
  for l = 0, math.max(batch, 1) - 1 do
    x_of, y_of = rows_of(A, m, l, sa), rows_of(B, n, l, sb)
    for i = 0, m - 1 do
      for j = 0, columns - 1 do
        local x = element(l, i, j)
        local y = ops.at(D, {l}, i, j)
        if rounded(x) ~= y then
          wrong = wrong or ("D(%d,%d,%d) is %s, not %s"):format(l, i, j, y, x)
        end
        local e = x + 1
        if second == "i32" then e = e < 0 and -(-e // 1) or e // 1 end
        if E and E(i, j) ~= e then
          wrong = wrong or ("E(%d,%d) is %s, not %s"):format(i, j, E(i, j), e)
        end
        if reduce and reduce ~= "none" then
          local init, fold = FOLD[op][1], FOLD[op][2]
          rows[i] = fold(rows[i] or init, x)
          cols[j] = fold(cols[j] or init, x)
          all = fold(all or init, x)
        end
      end
    end
  end
  if wrong or not reduce or reduce == "none" then return wrong end
  return differs(got[got.n], reduce == "row" and rows
    or reduce == "col" and cols or {[0] = all}, op .. " " .. reduce)
end

describe("random calls of ops.gemm", function()
  for first = 1, 46, 5 do
    it(("are right: %d to %d"):format(first, first + 4) .. support.long(first),
       function()
      local refused = 0
      for seed = first, first + 4 do
        local words
        local wrong, how = check(seed, nil, function(x) words = x end)
        assert(not wrong, ("%d: %s: %s"):format(seed, words, wrong))
        if how == "refused" then refused = refused + 1 end
      end
      assert.is_true(refused <= 3)
    end)
  end

  it("are right on a card #gpu", function()
    for seed = 1, 60 do
      local words
      local wrong = check(seed, "gpu", function(x) words = x end)
      assert(not wrong, ("%d: %s: %s"):format(seed, words, wrong))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
