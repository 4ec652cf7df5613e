-- The script of a bundle whose functions take any size. The simulator computes
-- the examples with kernels for any size; the script compares their results
-- with sums in Lua.
local cute = require "cute"
local ops = cute.ops

-- Adds a function f for any size, and checks the results of its examples.
-- `list` has every call of f as {size, arguments, result}. The result to check
-- is that of the second call with the first example's size, and of the first
-- call with any other size.
local function add(name, f, first, step, examples, arguments, check)
  local list = {}
  cute.bundle.add(name, function(...)
    local out = table.pack(f(...))
    list[#list + 1] = {cute.size(..., name == "attention" and 1 or 0), {...},
                       out[1]}
    return table.unpack(out, 1, out.n)
  end, {sizes = {first, "any", step}, examples = examples,
        arguments = arguments, results = {"D"}})
  for i, size in ipairs(examples) do
    local nth = i == 1 and 2 or 1
    for _, call in ipairs(list) do
      if call[1] == size then
        nth = nth - 1
        if nth == 0 then check(size, call[3], table.unpack(call[2])) end
      end
    end
    assert(nth <= 0, name)
  end
end

local function near(a, b, what)
  assert(math.abs(a - b) <= 0.02 * math.max(1, math.abs(b)), what)
end

local function bf16(...) return cute.rand({...}, cute.bf16) end
local function f32(...) return cute.rand({...}, cute.f32) end

-- Checks D = relu(A B^T + bias - 20) for some rows, the last one among them.
local function check_product(m, D, A, B, bias)
  assert(cute.size(D, 0) == m)
  for i = m - 1, 0, -math.max(1, m // 7) do
    for j = 0, cute.size(B, 0) - 1 do
      local sum = bias(j) - 20
      for k = 0, cute.size(B, 1) - 1 do sum = sum + A(i, k) * B(j, k) end
      near(D(i, j), math.max(sum, 0), "product")
    end
  end
end

local B, bias = bf16(96, 64), f32(96)
add("product", function(A, W, b)
  return ops.gemm(A, W, {epilogue = function(acc, at)
    return ops.relu(acc + at:col(b) - 20)
  end})
end, 1, 1, {77, 300, 1}, function(m) return {bf16(m, 64), B, bias} end,
check_product)

add("softmax", ops.softmax, 1, 1, {77, 1}, function(m)
  return {f32(m, 100)}
end, function(m, Y, X)
  for i = m - 1, 0, -10 do
    local sum = 0
    for j = 0, 99 do sum = sum + math.exp(X(i, j)) end
    for j = 0, 99 do near(Y(i, j) * sum, math.exp(X(i, j)), "softmax") end
  end
end)

local W = f32(64)
add("norm", ops.rmsnorm, 1, 1, {150, 1}, function(m)
  return {f32(m, 64), W}
end, function(m, Y, X)
  for i = m - 1, 0, -10 do
    local sum = 0
    for j = 0, 63 do sum = sum + X(i, j) ^ 2 end
    for j = 0, 63 do
      near(Y(i, j), X(i, j) * W(j) / math.sqrt(sum / 64), "norm")
    end
  end
end)

add("center", ops.layernorm, 1, 1, {150, 1}, function(m)
  return {f32(m, 64), W}
end, function(m, Y, X)
  for i = m - 1, 0, -10 do
    local sum, squares = 0, 0
    for j = 0, 63 do sum = sum + X(i, j) end
    for j = 0, 63 do squares = squares + (X(i, j) - sum / 64) ^ 2 end
    for j = 0, 63 do
      near(Y(i, j), (X(i, j) - sum / 64) * W(j) / math.sqrt(squares / 64),
           "center")
    end
  end
end)

add("top", function(x) return ops.topk(x, 3) end, 1, 1, {150, 1}, function(m)
  return {f32(m, 100)}
end, function(m, V, X)
  for i = m - 1, 0, -10 do
    local row = {}
    for j = 0, 99 do row[j + 1] = X(i, j) end
    table.sort(row)
    for j = 0, 2 do assert(V(i, j) == row[100 - j], "top") end
  end
end)

local words = f32(50, 64)
add("words", ops.embedding, 1, 1, {150, 1}, function(m)
  return {cute.randint(0, 50, {m}, cute.i32), words}
end, function(m, Y, index)
  for i = 0, m - 1 do
    for j = 0, 63, 9 do assert(Y(i, j) == words(index(i), j), "words") end
  end
end)

if cute.bundle.arch() == "sm_80" then
  add("attention", function(Q, K, V) return ops.attention(Q, K, V) end, 1, 1,
      {77, 1}, function(m)
    return {bf16(1, m, 2, 64), bf16(1, m, 2, 64), bf16(1, m, 2, 64)}
  end, function(_, O, Q, K, V)
    local m = cute.size(O, 1)
    for i = m - 1, 0, -25 do
      local sum, out = 0, {}
      for n = 0, m - 1 do
        local s = 0
        for j = 0, 63 do s = s + Q(0, i, 1, j) * K(0, n, 1, j) end
        s = math.exp(s / 8)
        sum = sum + s
        for j = 0, 63 do out[j] = (out[j] or 0) + s * V(0, n, 1, j) end
      end
      for j = 0, 63 do near(O(0, i, 1, j), out[j] / sum, "attention") end
    end
  end)
end

local function fused(x, y, w)
  return ops.elementwise(function(a, b, c) return a * b + c end, x, y, w)
end
local function check_fused(m, D, x, y, w)
  for i = m - 1, 0, -3 do
    for j = 0, cute.size(x, 1) - 1, 3 do
      near(D(i, j), x(i, j) * y(i, j) + w(j), "fused")
    end
  end
end
-- Rows of 64 elements allow vector accesses; rows of 9 elements do not.
for _, n in ipairs {64, 9} do
  local w = f32(n)
  add("fused" .. n, fused, 1, 1, {77, 1, 200}, function(m)
    return {f32(m, n), f32(m, n), w}
  end, check_fused)
end
add("line", function(x) return ops.elementwise(function(a) return a + 1 end, x)
end, 4, 4, {1200, 4}, function(m) return {f32(m)} end, function(m, D, x)
  for i = 0, m - 1 do near(D(i), x(i) + 1, "line") end
end)

-- Some sizes fit both variants. A call with such a size uses the variant for a
-- range of sizes, not the later one for any size.
local wide = bf16(512, 256)
for _, sizes in ipairs {{256, 512, 256}, {1, "any"}} do
  cute.bundle.add("mixed", ops.gemm, {sizes = sizes, results = {"D"},
    arguments = function(m) return {bf16(m, 256), wide} end})
end
-- SPDX-License-Identifier: MIT
