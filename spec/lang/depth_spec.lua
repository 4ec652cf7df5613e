-- Tests deep nesting: loops and branches of a kernel, sums in an address,
-- chains of layouts. Either a level must take no C stack, or the number of
-- levels must be limited. The programs run with a stack of 64 KB.
local support = require "spec.support"

local PROGRAM = [[
local cute = require "cute"
local kind, depth = arg[1], tonumber(arg[2])
local body
local function inner(x, d) return function() body(x, d - 1) end end
local FORMS = {
  when = function(x, d) cute.when(x[1]:lt(d), inner(x, d)) end,
  loop = function(x, d)
    cute.loop(function() return x[1]:gt(d) end, inner(x, d))
  end,
  ["for"] = function(x, d)
    for _ in cute.when(x[1]:lt(d)) do body(x, d - 1) end
  end,
  cases = function(x, d)
    for a in cute.cases(x[1]:lt(d)) do if a then body(x, d - 1) end end
  end,
  range = function(x, d)
    for _ in cute.range(x[1] + 1) do body(x, d - 1) end
  end,
  func = function(x, d)
    cute.func(function()
      cute.return_if(x[1]:gt(d))
      body(x, d - 1)
    end)()
  end,
  named = function(x, d) cute.arch.range("part", inner(x, d)) end,
}
local form = FORMS[kind]
function body(x, d)
  if d == 0 then x[0] = x[0] + 1 else form(x, d) end
end
local OTHERS = {}
function OTHERS.address()
  local x = cute.zeros({4}, cute.i32)
  cute.kernel("k", function(t, n)
    local s = n
    for i = 1, depth do s = s * n + i end
    t[s - depth] = 2  -- element 0
  end)(x, 0):launch {grid = 1, block = 1, device = "sim"}
  return x(0)
end
local function chain(make)
  local l = cute.layout "8:1"
  for _ = 1, depth do l = cute.make_composed_layout(make(), 0, l) end
  return l(3)
end
function OTHERS.functions()
  return chain(function() return function(c) return c end end)
end
function OTHERS.swizzles()
  return chain(function() return cute.make_swizzle(1, 1, 4) end)
end
local function regions()
  local x = cute.zeros({4}, cute.i32)
  local k = cute.kernel("k", function(t) body(t, depth) end)
  k(x):launch {grid = 1, block = 1, device = "sim"}
  assert(#k(x):trace {block = 1}.source > 0)
  return x(0)
end
local ok, got = pcall(OTHERS[kind] or regions)
print(ok and got or got:match "^[^\n]*":gsub("^.-:%d+: ", ""))
]]

describe("with a C stack of 64 KB #noasan", function()
  local path = support.write(os.tmpname(), PROGRAM)
  teardown(function() os.remove(path) end)

  local function gives(kind, depth)
    local out, err, code = support.exec {"/bin/sh", "-c",
      'ulimit -s 64; exec "$@"', "sh", support.program, path, kind,
      tostring(depth)}
    assert.equal("", err)
    assert.equal(0, code)
    return (out:gsub("\n$", ""))
  end

  it("regions nest as deep as they are, and have a limit #long", function()
    for kind, depth in pairs {when = 500, loop = 500, ["for"] = 500,
                              cases = 500, range = 200, func = 200,
                              named = 2000} do
      assert.equal(kind == "loop" and "0" or "1", gives(kind, depth), kind)
    end
    assert.equal("loops and branches nest at most 2048 deep [limit]",
                 gives("range", 3000))
  end)

  it("an address is a sum of any length", function()
    assert.equal("2", gives("address", 20000))
  end)

  it("a layout of 64 composed functions", function()
    local limit = "cute.make_composed_layout: a composed layout has at most "
      .. "64 functions to the left of its innermost layout [limit]"
    assert.equal("3", gives("functions", 64))
    assert.equal("3", gives("swizzles", 64))
    assert.equal(limit, gives("functions", 65))
    assert.equal(limit, gives("swizzles", 1000))
  end)
end)
-- SPDX-License-Identifier: MIT
