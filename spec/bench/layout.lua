-- Measures the time of calls of the layout algebra from Lua, including argument
-- checks and the new userdata: `lua5.4 spec/bench/layout.lua [seconds per
-- case]`. The cases are the ones for which figures of other libraries exist.
local cute = require "cute"
local clock = require "cute.core".clock

local budget = tonumber(arg and arg[1]) or 0.3

local A = cute.layout "((8,16),(64,3)):((64,512),(1,8192))"
local B = cute.layout "((4,8),(2,2)):((32,1),(16,8))"
local D = cute.layout "(128,64):(64,1)"
local T = cute.layout "(16,8):(8,1)"
local S = cute.composition(cute.make_swizzle(3, 3, 3),
                           cute.make_layout({8, {8, 8}}, {8, {1, 64}}))

-- Each case is {name, limit, f}. The limit is in ns per call (0: no limit).
-- f(n) calls the measured function n times.
local cases = {
  {"composition", 1000, function(n)
    local f = cute.composition
    for _ = 1, n do f(A, B) end
  end},
  {"logical_divide", 1500, function(n)
    local f = cute.logical_divide
    for _ = 1, n do f(D, T) end
  end},
  {"complement", 1000, function(n)
    local f = cute.complement
    for _ = 1, n do f(T, 8192) end
  end},
  {"coalesce", 400, function(n)
    local f = cute.coalesce
    for _ = 1, n do f(A) end
  end},
  {"right_inverse", 400, function(n)
    local f = cute.right_inverse
    for _ = 1, n do f(D) end
  end},
  {"evaluation l(i)", 120, function(n)
    for i = 1, n do local _ = A(i) end
  end},
  {"evaluation l(i, j)", 120, function(n)
    for i = 1, n do local _ = D(i, 3) end
  end},
  {"evaluation l(i), swizzled", 120, function(n)
    for i = 1, n do local _ = S(i) end
  end},
  {"evaluation l(i, {j, k})", 0, function(n)
    local c = {3, 2}
    for i = 1, n do local _ = S(i, c) end
  end},
  {"make_layout", 0, function(n)
    local f, s, d = cute.make_layout, {128, {8, 8}}, {64, {1, 8}}
    for _ = 1, n do f(s, d) end
  end},
  {"zipped_divide by mode", 0, function(n)
    local f, t = cute.zipped_divide, {32, 16}
    for _ = 1, n do f(D, t) end
  end},
  {"tile_to_shape, swizzled", 0, function(n)
    local f, s = cute.tile_to_shape, {128, 64, 3}
    for _ = 1, n do f(S, s) end
  end},
  {"parse", 0, function(n)
    local f = cute.layout
    for _ = 1, n do f "((8,16),(64,3)):((64,512),(1,8192))" end
  end},
  {"tostring", 0, function(n)
    for _ = 1, n do tostring(A) end
  end},
}

-- Returns the best of five measurements in ns per call, each with a fifth of
-- the budget.
local function measure(f)
  local n = 1000
  while true do
    local t = clock()
    f(n)
    if clock() - t > budget / 20 then break end
    n = n * 2
  end
  local best = math.huge
  for _ = 1, 5 do
    local t = clock()
    f(n)
    best = math.min(best, (clock() - t) / n)
  end
  return best * 1e9
end

print(("%-28s %9s %9s"):format("operation", "ns", "target"))
for _, c in ipairs(cases) do
  local ns = measure(c[3])
  print(("%-28s %9.0f %9s"):format(c[1], ns, c[2] > 0 and c[2] or ""))
end

-- Returns the bytes of memory that a layout with this many modes takes,
-- including Lua's header.
local function bytes(leaves)
  local shape, n = {}, 200
  for i = 1, leaves do shape[i] = 2 end
  local l, keep = cute.make_layout(shape), {}
  for i = 1, n do keep[i] = false end
  collectgarbage()
  collectgarbage "stop"
  local before = collectgarbage "count"
  for i = 1, n do keep[i] = cute.flatten(l) end
  local all = (collectgarbage "count" - before) * 1024 / n
  collectgarbage "restart"
  return all, keep
end

print()
print(("%-28s %9s %9s"):format("a layout of", "bytes", "per leaf"))
for _, leaves in ipairs {1, 2, 4, 8, 16, 48} do
  local all = bytes(leaves)
  print(("%-28s %9.0f %9.1f"):format(leaves .. " leaves", all, all / leaves))
end
print(("each further leaf: %.0f bytes (at most 32)")
  :format((bytes(48) - bytes(16)) / 32))
-- SPDX-License-Identifier: MIT
