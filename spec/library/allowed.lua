-- A script that uses all that an untrusted state of libcutelua offers. It must
-- have the same results as in a trusted state.
local cute = require "cute"
local ops = cute.ops
local softmax = require "kernels.softmax"

local function random(...) return cute.randn({...}, cute.bf16) end

-- Calls operations. One of them gets a function that the script defines.
local A = cute.full({64, 32}, 0.5, cute.bf16)
local B = cute.full({48, 32}, 2, cute.bf16)
assert(ops.gemm(A, B)(63, 47) == 32)
local function more(acc) return acc + 1 end
assert(ops.gemm(A, B, {epilogue = more})(5, 6) == 33)
assert(#tostring(ops.explain(A, B)) > 100)
local S = ops.softmax(cute.ones({8, 64}, cute.f32))
assert(S(7, 63) == 1 / 64 and softmax)
local D = ops.attention_decode(random(2, 1, 2, 64), random(2, 64, 2, 64),
                               cute.full({2, 64, 2, 64}, 3, cute.bf16))
assert(D(1, 0, 1, 63) == 3)
assert(ops.reduce(cute.ones({4, 8}, cute.f32), "sum", {by = "row"})(3) == 8)

-- Uses classes, tables, coroutines and caught errors inside a kernel.
local Sum = {}
Sum.__index = Sum
function Sum.new(x) return setmetatable({total = x}, Sum) end
function Sum:add(x) self.total = self.total + x end
assert(getmetatable(Sum.new(1)) == Sum)

rawset(_G, "FACTOR", 2)
local k = cute.kernel("k", function(x)
  local sum, list = Sum.new(x[0]), {}
  for i in cute.range(4) do sum:add(x[i] * _G.FACTOR) end
  for i = 1, 3 do table.insert(list, x[i]) end
  local last = table.unpack(list, 3)
  local each = coroutine.wrap(function()
    for i = 5, 7 do coroutine.yield(i) end
  end)
  for i in each do x[i] = i end
  local ok, v = pcall(function() return last + 1 end)
  local _, text = xpcall(error, function(e) return e .. "!" end, "no")
  assert(ok and text == "no!")
  x[4] = sum.total + v
end)
local x = cute.ones({8}, cute.f32)
k(x):launch {grid = 1, block = 1}
assert(x(4) == 11 and x(5) == 5 and x(7) == 7, x(4))

-- Uses Lua's libraries.
assert(("key = 12"):match "^(%w+)%s*=%s*(%d+)$" == "key")
assert(("a,b,,c"):gsub(",", {[","] = ";"}) == "a;b;;c")
assert(("x1y22"):gsub("%d+", function(s) return "<" .. s .. ">" end)
  == "x<1>y<22>")
assert(("THE (quick) fox"):find("%((%a+)%)") == 5)
local words = {}
for w in ("one two  three"):gmatch "%S+" do words[#words + 1] = w end
assert(table.concat(words, "-", 2, 3) == "two-three")
assert(("f(a(b)c)d"):match "%b()" == "(a(b)c)")
assert(("THE fox"):find "%f[%a]%a+%f[%A]" == 1)
assert(load("return ... + 1")(2) == 3)
assert(not load "return +")
-- SPDX-License-Identifier: MIT
