-- luacheck: ignore 211 212 231 311 331 512 542 113 (kernels to be refused)
-- Tests traced values in Lua's conditions: `if`, `and`, `or`, `not`, `while`,
-- `until`. A condition on a value that cannot be nil must raise an error; a
-- test for nil must not.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local arch = cute.arch

-- Returns the first sentence of the error that f raises as a kernel of two i32
-- tensors and n, and the error's line relative to f's first line.
local function refused(f)
  local args = {cute.zeros({8}, cute.i32), cute.zeros({8}, cute.i32), 4}
  local text, line = support.message(function()
    cute.kernel("k", f)(table.unpack(args, 1, debug.getinfo(f, "u").nparams))
      :trace {block = 32}
  end)
  return text, line and line - debug.getinfo(f, "S").linedefined
end

local ALWAYS = " is always true in Lua's if, and, or, not, while, even when it "
  .. "is 0 [traced-in-lua]\n  write "
local NIL = "; '%s ~= nil' asks whether it was given"

local function found(what, f, given)
  local text, line = refused(f)
  local name = what and "the traced value '" .. what .. "'" or "a traced value"
  assert.equal(name .. ALWAYS .. (what or "value") .. ":ne(0), and "
    .. "cute.when(...) to branch on it, cute.where(c, x, y) to choose"
    .. (given and NIL:format(what) or ""), text)
  assert.equal(1, line)
end

describe("a traced number that Lua tests is reported", function()
  it("in an element, and each of Lua's conditions", function()
    found("m[0]", function(x, m)
      if m[0] then x[0] = 1 end
    end)
    found("m[1 + 1]", function(x, m)
      x[0] = m[1 + 1] or 5
    end)
    found("m[0]", function(x, m)
      x[0] = m[0] and 5 or 6
    end)
    found("m[0]", function(x, m)
      x[0] = cute.max(1, (m[0] or 5))
    end)
    found("m[0]", function(x, m)
      local absent = not m[0] x[0] = absent and 1 or 2
    end)
    found("m[0]", function(x, m)
      while m[0] do x[0] = 1 end
    end)
    found("m[x[0]]", function(x, m)
      repeat x[0] = 1 until m[x[0]]
    end)
    found("m[0]", function(x, m)
      if cute.size(x) == 1 then x[0] = 1 elseif m[0] then x[0] = 2 end
    end)
    found(nil, function(x, m)
      if m[0] and m[1] then x[0] = 1 end
    end)
    found("x[{0}]", function(x)
      return x[{0}] and 1
    end)
  end)

  it("in arithmetic and calls of ours", function()
    found("(arch.thread_idx() % 2)", function(x)
      if arch.thread_idx() % 2 then x[0] = 1 end
    end)
    found("cute.min(x[0], 3)", function(x)
      if cute.min(x[0], 3) then x[0] = 1 end
    end)
    found("(-x[0])", function(x)
      if -x[0] then x[0] = 1 end
    end)
    found("x[0]:to(cute.f32)", function(x)
      if x[0]:to(cute.f32) then x[0] = 1 end
    end)
    found("v.value", function(x, _, n)
      local v = cute.var(n) if v.value then x[0] = 1 end
    end)
  end)

  it("in a parameter of the kernel", function()
    found("n", function(x, _, n)
      if n then x[0] = 1 end
    end, true)
    found("n", function(x, _, n)
      if not n then x[0] = 1 end
    end, true)
    found("n", function(x, _, n)
      x[0] = n and 1 or 2
    end, true)
    found("n", function(x, _, n)
      for _ in cute.range(3) do if n then x[0] = 1 end end
    end, true)
    found("n", function(x, _, n)
      cute.when(x[0]:eq(0), function() if n then x[0] = 1 end end)
    end, true)
    found("n", function(x, _, n)
      local function deep() return (function() return n and 1 end)() end deep()
    end, true)
  end)

  it("in locals that cannot hold nil", function()
    found("odd", function(x)
      local odd = x[0] % 2 if odd then x[0] = 1 end
    end)
    found("v", function(x, m)
      local v = m[0] if v then x[0] = 1 end
    end)
    found("y", function(x)
      local _, y = arch.thread_idx() if y then x[0] = 1 end
    end)
    found("w", function(x, m)
      local v = m[0] local w = v if w then x[0] = 1 end
    end)
    found("v", function(x, m)
      local v = m[0] cute.when(v:eq(0), function() x[0] = v and 1 or 2 end)
    end)
    found("v", function(x, m)
      local v = m[0] cute.when(v:eq(0), function() v = m[1] end) x[0] = v or 1
    end)
    found("i", function(x, _, n)
      for i in cute.range(n) do if i then x[0] = i end end
    end, false)
    found("s", function(x, m, n)
      local s = 0 for i in cute.range(n) do s = s + m[i] end x[0] = s or 1
    end)
    found("best", function(x, m, n) local best = m[0]
      for i in cute.range(n) do best = cute.max(best, m[i]) end x[0] = best or 1
    end)
  end)

  it("in a helper's result that is never nil", function()
    found("at(0)", function(x, m)
      local function at(i) return m[i] end if at(0) then x[0] = 1 end
    end)
    found("v", function(x)
      local function odd(i) return i % 2 end local v = odd(x[0]) x[1] = v or 5
    end)
  end)
end)

describe("a traced number that Lua tests is reported", function()
  it("also as a boolean that other code uses", function()
    local always = "a traced boolean is always true in Lua's if, and, or, not, "
      .. "while [unused-boolean]"
    for _, f in ipairs {
      function(x, _, n)
        local c = n:lt(3)
        if c then x[0] = 1 end
        cute.when(c, function() x[0] = 2 end)
      end,
      function(x, _, n)
        local c = n:lt(3) cute.when(c, function() x[0] = 2 end)
        x[0] = c and 1 or 2
      end} do
      local text, line = refused(f)
      assert.equal(always, text:match "[^\n]*")
      assert.equal(2, line)
    end
  end)
end)

-- Asserts that f(x, n) returns `want` in a kernel of one thread, where x is an
-- output of 8 integers and n is 4.
local function gives(want, f)
  assert.equal(want, kernels.run(8, function(x, n) x[0] = f(x, n) end, 4)[1])
end

describe("nil may be the subject of a test", function()
  it("in defaults of parameters, the kernel's too", function()
    local function add(a, b)
      b = b or 1
      return a + b
    end
    local function twice(a, b)
      if b then return a + b end
      return a * 2
    end
    gives(8 + 5 + 8 + 8, function(_, n)
      return add(n, n) + add(n) + twice(n, n) + twice(n)
    end)
    for _, f in ipairs {
      function(x, n) n = n or 7 x[0] = n end,
      function(x, n) if not n then n = 7 end x[0] = n end,
      function(x, n) local k = n or 7 x[0] = k end,
      function(x, n)
        cute.when(x[0]:eq(0), function() local k = n or 7 x[0] = k end)
      end} do
      assert.equal(4, kernels.run(1, f, 4)[1])
      assert.equal(7, kernels.run(1, f)[1])
    end
  end)

  it("in fields, methods, globals and varargs", function()
    gives(4 * 4 + 3, function(_, n)
      local opts = {scale = n}
      local scaled = opts.scale and n * opts.scale or n
      return scaled + (opts.shift or 3)
    end)
    gives(4 + 9, function(_, n)
      local o = {n = n}
      function o:get(k) return self[k] or 9 end
      return o:get "n" + o:get "m"
    end)
    _G.TRUTH = nil
    gives(4, function(_, n)
      _G.TRUTH = TRUTH or n
      local v = TRUTH or 5
      _G.TRUTH = nil
      return v
    end)
    gives(12, function(_, n)
      local function f(...)
        local a, b = ...
        if b then return a + b end
        return a
      end
      return f(n) + f(n, n)
    end)
  end)

  it("in a previous result, and a kept one", function()
    gives(3 + 3 * 4, function(x, n)
      local previous, sum = nil, 0
      for i = 1, 4 do
        x[i] = i
        if previous then sum = sum + 1 + n end
        previous = x[i]
      end
      return sum
    end)
    gives(1 + 2 + 3, function(x)
      local acc
      for i = 1, 3 do
        x[i] = i
        acc = acc and acc + x[i] or x[i]
      end
      return acc
    end)
    gives(5, function(x)
      local cache, reads = {}, 0
      for _ = 1, 5 do
        local v = cache[1]
        if not v then
          v, reads = x[1], reads + 1
          cache[1] = v
        end
        x[2] = v
      end
      return reads * 5
    end)
    gives(2, function(x)
      local list, n = {x[0], x[1]}, 0
      for i = 1, 5 do
        local v = list[i]
        if v then n = n + 1 end
      end
      return n
    end)
    gives(3, function(x)
      local last, n = nil, 0
      local function step(i)
        if last then n = n + 1 end
        last = x[i]
      end
      for i = 0, 3 do step(i) end
      return n
    end)
  end)
end)

describe("nil may be the subject of a test", function()
  it("in results of Lua's library, and iterators", function()
    gives(2 + 1 + 1 + 2, function(x, n)
      local list, count = {n, x[0]}, 0
      local v = table.remove(list)
      while v do
        count, v = count + 1, table.remove(list)
      end
      local _, first = next {n}
      if first then count = count + 1 end
      if select(1, n) then count = count + 1 end
      local co = coroutine.wrap(function()
        for i = 0, 1 do coroutine.yield(x[i]) end
      end)
      local u = co()
      while u do
        count, u = count + 1, co()
      end
      return count
    end)
  end)

  it("in selections between traced and other values", function()
    local function maybe(x, i) if i == 1 then return x[0] end end
    gives(1, function(x)
      local n = 0
      for i = 0, 1 do
        local v = maybe(x, i)
        if v then n = n + 1 end
      end
      return n
    end)
    for _, guarded in ipairs {true, false} do
      gives(guarded and 0 or 1, function(x, n)
        local c = false
        if guarded then c = n:lt(3) end
        if c then
          cute.when(c, function() x[1] = 1 end)
        else
          x[1] = 1
        end
        return x[1]
      end)
      gives(guarded and 4 or 5, function(_, n)
        return guarded and n or 5
      end)
    end
    gives(4 + 4 + 0 + 4, function(x, n)
      local a, b = cute.size(x) > 4, nil
      local v, w = n, 2
      return (a and v or w) + (not b and n or x[1])
        + (a == 3 and n or a ~= 3 and x[2] or w) + ((b or a) and n or 5)
    end)
    gives(3, function(x, n)
      for a, b in cute.cases(n:lt(2), n:lt(3)) do
        if a then x[1] = 1 elseif b then x[1] = 2 else x[1] = 3 end
      end
      return x[1]
    end)
  end)
end)
-- SPDX-License-Identifier: MIT
