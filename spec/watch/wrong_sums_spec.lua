-- Tests notes on outputs that are not the sums, products or copies that their
-- shapes suggest. spec/faults/notes/ has more examples.
local cute = require "cute"
local notes = require "spec.notes"
local arch = cute.arch
local f32 = cute.f32

local told, quiet = notes.told, notes.quiet

local function expect(text, ...)
  local said = told(...)
  assert.equal(1, #said, table.concat(said, "\n"))
  assert.matches("^cutelua: note: kernel k%d+: wrong_sums_spec.lua:%d+: "
    .. text, said[1])
end

local function rand(...) return cute.rand({...}, f32) end
local function zeros(...) return cute.zeros({...}, f32) end

-- Returns a kernel of C (M,N). A thread computes C[m,n] as the sum of the terms
-- f(a, b, m, n, k) of K steps. `at` changes the coordinate of the store.
local function product(K, f, at)
  return function(a, b, c)
    local x, y = arch.thread_idx()
    local bx, by = arch.block_idx()
    local m, n, sum = by * 8 + y, bx * 8 + x, 0.0
    for k in cute.range(K) do sum = sum + f(a, b, m, n, k) end
    c[at and at(m, n, bx, by, x, y) or {m, n}] = sum
  end
end

local function row(a, b, m, n, k) return a[{m, k}] * b[{n, k}] end
local function launch(m, n) return {grid = {n // 8, m // 8}, block = {8, 8}} end

describe("a note tells of", function()
  it("a square product with swapped tiles", function()
    expect("'c' is not the product of 'a' and 'b': .* are two coordinates of a "
      .. "tile swapped%?", product(12, row, function(_, _, bx, by, x, y)
        return {bx * 8 + y, by * 8 + x}
      end), launch(32, 32), rand(32, 12), rand(32, 12), zeros(32, 32))
  end)

  it("a product of elements of different steps, if K equals N", function()
    expect("'c' is not the product of 'a' and 'b': element %(%d+,%d+%) is %S+, "
      .. "but a%(%d+,_%) times b", product(16, function(a, b, m, n, k)
        return a[{m, k}] * b[{k // 4 * 4 + n % 4, n // 4 * 4 + k % 4}]
      end), launch(16, 16), rand(16, 16), rand(16, 16), zeros(16, 16))
  end)

  it("a sum of other integers", function()
    local x = cute.zeros({32, 8}, cute.i32)
    for i = 0, 255 do x[i] = i * i % 31 end
    expect("'b' is not a sum of 'a': element %(%d+%) is %d+, but the sum of "
      .. "a%(%d+,_%) is %d+; does each step of each loop", function(a, b)
        local t, sum = arch.thread_idx(), cute.var(0, cute.i32)
        for k in cute.range(8) do
          sum.value = sum.value + a[{k * 4 + t // 8, t % 8}]
        end
        b[t] = sum.value
      end, {grid = 1, block = 32}, x, cute.zeros({32}, cute.i32))
  end)

  it("an element-wise copy of tiles that are swapped", function()
    expect("'y' is not a copy of 'x'.* are two coordinates of a tile swapped%?",
      function(x, y)
        local c, r = arch.thread_idx()
        local bx, by = arch.block_idx()
        y[{bx * 8 + r, by * 8 + c}] = x[{by * 8 + r, bx * 8 + c}] * 2
      end, launch(32, 32), rand(32, 32), zeros(32, 32))
  end)
end)

describe("no note tells of", function()
  it("products with any order of modes, and scaled products", function()
    quiet(product(12, row), launch(32, 32), rand(32, 12), rand(32, 12),
          zeros(32, 32))
    quiet(product(16, function(a, b, m, n, k) return a[{k, m}] * b[{k, n}] end),
          launch(16, 16), rand(16, 16), rand(16, 16), zeros(16, 16))
    quiet(product(12, row, function(m, n) return {n, m} end), launch(32, 32),
          rand(32, 12), rand(32, 12), zeros(32, 32))
    quiet(function(a, b, c, alpha)
      local x, y = arch.thread_idx()
      local sum = 0.0
      for k in cute.range(12) do sum = sum + a[{y, k}] * b[{x, k}] end
      c[{y, x}] = alpha * sum
    end, {grid = 1, block = {8, 8}}, rand(8, 12), rand(8, 12), zeros(8, 8), 0.5)
  end)

  it("products whose rows are in the opposite order", function()
    quiet(product(12, row, function(m, n) return {31 - m, n} end),
          launch(32, 32), rand(32, 12), rand(32, 12), zeros(32, 32))
    quiet(function(x, y)
      local t, sum = arch.thread_idx(), 0.0
      for k in cute.range(8) do sum = sum + x[{31 - t, k}] end
      y[t] = sum
    end, {grid = 1, block = 32}, rand(32, 8), zeros(32))
  end)

  it("triangles, parts and weighted sums", function()
    quiet(function(a, b, c)
      local x, y = arch.thread_idx()
      local sum = 0.0
      for k in cute.range(8) do
        cute.when(k:le(y), function() sum = sum + a[{y, k}] * b[{x, k}] end)
      end
      c[{y, x}] = sum
    end, {grid = 1, block = {8, 8}}, rand(8, 8), rand(8, 8), zeros(8, 8))
    quiet(function(x, y)
      local t = arch.thread_idx()
      y[t] = x[{t, 0}] * 0.25 + x[{t, 1}] * 0.5 + x[{t, 2}] * 0.25
    end, {grid = 1, block = 32}, rand(32, 3), zeros(32))
    quiet(function(x, y)
      local t = arch.thread_idx()
      y[t] = x[{t, 0}] - x[{t, 1}]
    end, {grid = 1, block = 32}, rand(32, 2), zeros(32))
  end)

  it("a factor that is a tensor of one element", function()
    quiet(function(x, a, y)
      local t = arch.thread_idx()
      y[t] = x[t] * a[0]
    end, {grid = 1, block = 32}, rand(32), rand(1), zeros(32))
  end)

  it("copies in another order, and transpositions", function()
    quiet(function(x, y)
      local c, r = arch.thread_idx()
      y[{r, c}] = x[{15 - r, c}]
    end, {grid = 1, block = {16, 16}}, rand(16, 16), zeros(16, 16))
    quiet(function(x, y)
      local c, r = arch.thread_idx()
      y[{r, c}] = x[{c, r}]
    end, {grid = 1, block = {16, 16}}, rand(16, 16), zeros(16, 16))
    quiet(function(x, y)
      local c, r = arch.thread_idx()
      y[{r, c}] = x[{(r + 3) % 16, (c + 5) % 16}]
    end, {grid = 1, block = {16, 16}}, rand(16, 16), zeros(16, 16))
  end)

  it("a copy whose only element comes from outside of the input", function()
    quiet(function(x, y, n)
      local t = arch.thread_idx()
      local j = t ~ 33
      local v = cute.var(0, cute.i32)
      cute.when(j:lt(n), function() v.value = x[j] end)
      cute.when(t:lt(n), function() y[t] = v.value end)
    end, {grid = 1, block = 64}, cute.full({1}, -37, cute.i32),
      cute.zeros({1}, cute.i32), 1)
  end)

  it("sums over diagonals, and rows in another order", function()
    quiet(product(16, function(a, b, m, n, k)
      return a[{m, k}] * b[{(k + n) % 16, n}]
    end), launch(16, 16), rand(16, 16), rand(16, 16), zeros(16, 16))
    quiet(product(8, function(a, b, m, n, k)
      return a[{(m * 5) % 16, k}] * b[{n, k}]
    end), launch(16, 16), rand(16, 8), rand(16, 8), zeros(16, 16))
    quiet(function(h, x, y)
      local t, sum = arch.thread_idx(), cute.var(0.0, cute.f32)
      for k in cute.range(32) do
        sum.value = sum.value + h[{t ~ k, k}] * x[k]
      end
      y[t] = sum.value
    end, {grid = 1, block = 32}, rand(32, 32), rand(32), zeros(32))
  end)

  it("an output that cute.partial_ok names", function()
    quiet(function(a, b, c)
      cute.partial_ok(c)
      product(16, function(p, q, m, n, k)
        return p[{m, k}] * q[{(k + n) % 16, n}]
      end)(a, b, c)
    end, launch(16, 16), rand(16, 16), rand(16, 16), zeros(16, 16))
  end)
end)
-- SPDX-License-Identifier: MIT
