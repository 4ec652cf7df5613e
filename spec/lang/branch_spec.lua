-- luacheck: ignore 241 512 (tables only written, branches left at once)
-- Tests branches that return values, and branches written as the body of a
-- `for`. Their results are compared with plain Lua. The emitted text of the
-- `for` form must equal the text of branches written as functions. Invalid
-- forms must raise errors. loop_carried_random_spec tests random changes of
-- variables in branches.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"


-- Returns the n elements that the kernel f(out, i, ...) writes, run with n
-- threads, and the text of the program.
local function run(n, f, ...)
  local out = cute.zeros({n}, cute.i32)
  local k = cute.kernel("k", function(o, ...)
    f(o, cute.arch.thread_idx(), ...)
  end)
  k(out, ...):launch {grid = 1, block = n, device = "sim"}
  local t = {}
  for i = 0, n - 1 do t[i + 1] = out[i] end
  local program = k(out, ...):trace {block = n}
  kernels.compiles(program, {"sm_90a"})
  return t, program.source
end

local function message(f)
  return (support.message(function()
    cute.kernel("k", function(o, n) f(o, n) end)(cute.zeros({4}, cute.i32), 5)
      :trace {block = 32}
  end))
end

local function statements(text)
  return (text:gsub("\n *//[^\n]*", ""))
end

describe("the results of cute.when", function()
  it("come from the function of the taken branch", function()
    assert.same({100, 101, 102, 103, 24, 25, 26, 27}, (run(8, function(o, i)
      local x, y = cute.when(i:lt(4), function() return i, 100 end,
                             function() return 20, i end)
      o[i] = x + y
    end)))
  end)

  it("are of any kind that branches carry", function()
    local a = cute.zeros({2, 4}, cute.i32)
    for j = 0, 3 do a[{0, j}], a[{1, j}] = j + 1, 10 * j end
    local got, source = run(8, function(o, i, m)
      local s = cute.slice({0, cute._}, m)
      local t = cute.slice({1, cute._}, m)
      local low, at, v, pair, name = cute.when(i:lt(2), function()
        return i:eq(1), s, s:load() * 2, {x = i, k = {7}}, "one"
      end, function()
        return i:eq(5), t, t:load(), {x = i + 1, k = {8}}, "one"
      end)
      assert(name == "one" and at.layout == s.layout)
      o[i] = cute.where(low, 1000, 0) + at[i % 4] + 100 * v[3] + pair.x
        + pair.k[1]
    end, a)
    local want = {}
    for i = 0, 7 do
      local low = i < 2 and i == 1 or i >= 2 and i == 5
      local at = i < 2 and i % 4 + 1 or 10 * (i % 4)
      want[i + 1] = (low and 1000 or 0) + at + 100 * (i < 2 and 8 or 30)
        + (i < 2 and i + 7 or i + 9)
    end
    assert.same(want, got, source)
  end)

  it("are plain numbers if both branches give the same", function()
    assert.same({14, 5}, (run(2, function(o, i)
      local n, m = cute.when(i:eq(0), function()
        o[i] = 10
        return 4, 0
      end, function()
        return 4, 1
      end)
      for _ = 1, n do o[i] = o[i] + 1 end
      o[i] = o[i] + m
    end)))
  end)

  it("take the type of traced values", function()
    local types
    run(1, function(o, i)
      local a, b, c, d = cute.when(i:eq(0), function()
        return 1, i:to(cute.f32), 1, true
      end, function() return i:to(cute.i64), 2, 2.5, false end)
      types = ("%s %s %s %s"):format(a.dtype, b.dtype, c.dtype, d.dtype)
      o[0] = cute.where(d, 1, 0)
    end)
    assert.equal("i64 f32 f32 boolean", types)
  end)

  it("pass through loops and other branches", function()
    local function host(i)
      local sum = 0
      for k = 0, 5 do
        local x
        if k % 2 == 0 then
          if i > 3 then x = k * 10 else x = i end
        else
          x = sum % 7
        end
        sum = sum + x
      end
      return sum
    end
    local want = {}
    for i = 0, 7 do want[i + 1] = host(i) end
    assert.same(want, (run(8, function(o, i)
      local sum = 0
      for k in cute.range(6) do
        sum = sum + cute.when((k % 2):eq(0), function()
          return cute.when(i:gt(3), function() return k * 10 end,
                           function() return i end)
        end, function() return sum % 7 end)
      end
      o[i] = sum
    end)))
  end)

  it("is the branch's of a condition that is known", function()
    local function first() return 1, "a" end
    local function second() return 2, "b" end
    assert.same({1, "a"}, {cute.when(true, first, second)})
    assert.same({2, "b"}, {cute.when(false, first, second)})
    assert.same({}, {cute.when(false, function() end)})
  end)
end)

describe("the results of cute.when", function()
  it("are of one type", function()
    assert.equal("result 1 is i32 in one branch of cute.when and f32 in the "
      .. "other [loop-type-changed]\n  both branches must return the same "
      .. "type, and tensors of the same layout and memory; :to(dtype) converts",
      message(function(_, n)
        cute.when(n:lt(3), function() return n end,
                  function() return n:to(cute.f32) end)
      end))
    assert.equal("result 2 is string in one branch of cute.when and nil in the "
      .. "other [loop-type-changed]\n  only numbers, booleans, traced values, "
      .. "tensors, vectors and plain tables of them may differ; return the "
      .. "same value of any other kind from both "
      .. "branches", message(function(_, n)
        cute.when(n:lt(3), function() return n, "a" end,
                  function() return n, nil end)
      end))
    assert.matches("^which string result 1 is", message(function(_, n)
      cute.when(n:lt(3), function() return "a" end,
                function() return "b" end)
    end))
    assert.matches("^result 1 is ptr%[i32,gmem%] o %(2%):%(1%) in one branch",
      message(function(o, n)
        cute.when(n:lt(3), function() return cute.local_tile(o, {2}, {0}) end,
                  function() return o end)
      end))
  end)

  it("does not choose a tensor, a string, a function or a layout", function()
    local L, x, y = cute.layout
    local function wrong(which, how, pick, a, b)
      local text = message(function(_, n) pick(n:lt(3), a, b) end)
      assert.equal(("which %s cannot %s [loop-type-changed]"):format(which,
        how), text:match "[^\n]*")
    end
    local ways = {
      ["'p'"] = function(c, a, b)
        local p = a
        cute.when(c, function() p = b end)
        return p
      end,
      ["'p' "] = function(c, a, b)
        local p = a
        for first in cute.cases(c) do if first then p = b end end
        return p
      end,
      ["'t.p'"] = function(c, a, b)
        local t = {p = a}
        cute.when(c, function() t.p = b end)
        return t
      end,
      ["result 1"] = function(c, a, b)
        return cute.when(c, function() return a end, function() return b end)
      end,
      ["result 1 "] = function(c, a, b)
        return cute.func(function()
          cute.return_if(c, a)
          return b
        end)()
      end}
    local pairs_of = {tensor = {}, string = {"a", "b"},
      ["function"] = {print, error}, layout = {L "4:1", L "4:2"},
      ["element type"] = {cute.f32, cute.f16}}
    for name, pick in pairs(ways) do
      for kind, two in pairs(pairs_of) do
        wrong(("%s %s is"):format(kind, (name:gsub(" $", ""))),
              "depend on a traced condition", function(c)
          if kind == "tensor" then
            x = cute.make_rmem_tensor({4}, cute.f32)
            y = cute.make_rmem_tensor({4}, cute.f32)
            return pick(c, x, y)
          end
          return pick(c, two[1], two[2])
        end)
      end
    end
    wrong("tensor 'p' is", "change in a traced loop", function()
      local p = cute.make_rmem_tensor({4}, cute.f32)
      for _ in cute.range(3) do p = cute.make_rmem_tensor({4}, cute.f32) end
      return p
    end)
    wrong("tensors 'p' holds", "depend on a traced condition", function(c)
      local a = cute.make_rmem_tensor({4}, cute.f32)
      local b = cute.make_rmem_tensor({4}, cute.f32)
      local p = {a, 1}
      cute.when(c, function() p = {b, 2} end)
      return p
    end)
  end)

  it("leaves no constant in a local that differs in the other branch",
    function()
    assert.matches("^which string 'mode' is cannot depend on a traced",
      message(function(_, n)
        local mode
        cute.when(n:lt(3), function() mode = "a" end,
                  function() mode = "b" end)
        return mode
      end))
  end)
end)

describe("branches as the body of a for", function()
  it("emit the same text as branches of functions", function()
    local _, flat = run(8, function(o, i)
      local x, y = 0, 0
      for _ in cute.when(i:lt(3)) do x = 7 end
      for low, mid in cute.cases(i:lt(2), i:lt(5)) do
        if low then
          x, y = y, i
        elseif mid then
          y = 20
        else
          o[i] = 3
        end
      end
      o[i] = x + y
    end)
    local _, nested = run(8, function(o, i)
      local x, y = 0, 0
      cute.when(i:lt(3), function() x = 7 end)
      local mid = i:lt(5)
      cute.when(i:lt(2), function() x, y = y, i end, function()
        cute.when(mid, function() y = 20 end, function() o[i] = 3 end)
      end)
      o[i] = x + y
    end)
    local function lines(text)
      local t = support.lines(statements(text))
      table.sort(t)
      return t
    end
    assert.same(lines(nested), lines(flat))
  end)

  it("run one at a time if Lua knows the condition", function()
    for first = 1, 3 do
      for second = 1, 3 do
        local known = {true, false}
        assert.same({first == 1 and 1 or first == 3 and 3 or
                     second == 1 and 10 or second == 3 and 30 or 50},
                    (run(1, function(o, i)
          local c, d = known[first], known[second]
          if c == nil then c = i:gt(2) end
          if d == nil then d = i:gt(2) end
          for a, b in cute.cases(c, d) do
            if a then
              o[0] = 1
            elseif b then
              o[0] = second == 1 and 10 or 20
            else
              o[0] = second == 3 and 30 or 50
            end
          end
          if first == 3 then o[0] = 3 end
        end)))
      end
    end
    local seen = {}
    for _ in cute.when(true) do seen[#seen + 1] = "when" end
    for _ in cute.when(false) do seen[#seen + 1] = "not" end
    for a, b in cute.cases(false, true) do seen[#seen + 1] = {a, b} end
    for a, b in cute.cases(false, false) do seen[#seen + 1] = {a, b} end
    assert.same({"when", {false, true}, {false, false}}, seen)
  end)

  it("carry fields, and leave loops", function()
    local state = {n = 0}
    assert.same({3, 12}, (run(2, function(o, i)
      state.n = 0
      local sum = 0
      for k in cute.range(10) do
        for yes in cute.cases(k:lt(3)) do
          if yes then
            state.n = state.n + 1
          else
            sum = sum + k
            cute.break_if(sum:gt(10))
          end
        end
      end
      for _ in cute.when(i:eq(0)) do o[0], o[1] = state.n, sum end
    end)))
  end)

  it("begin locals that were nil", function()
    assert.same({5, 5, 9, 9, 9, 9, 9, 9}, (run(8, function(o, i)
      local x
      for yes in cute.cases(i:lt(2)) do
        if yes then x = 5 else x = 9 end
      end
      o[i] = x
    end)))
  end)

  it("are left only at their end", function()
    local text = "break, return or goto out of a branch of %s: its body is "
      .. "traced for all threads [loop-exit]\n  cute.return_if(condition) "
      .. "leaves the kernel, cute.break_if(condition) leaves a traced loop"
    assert.equal(text:format "cute.when", message(function(o, n)
      for _ in cute.when(n:lt(3)) do
        o[0] = 1
        break
      end
    end))
    assert.equal(text:format "cute.cases", message(function(o, n)
      for a in cute.cases(n:lt(3), true) do
        if a then o[0] = 1 else return end
      end
    end))
    assert.equal(text:format "cute.when", message(function(o)
      for _ in cute.when(true) do
        o[0] = 1
        break
      end
    end))
  end)
end)

describe("branches as the body of a for", function()
  it("use the conditions after one that never holds", function()
    assert.matches("^this comparison was never used", message(function(o, n)
      for a, b in cute.cases(n:lt(3), n:lt(5)) do
        if a and b then o[0] = 1 end
      end
    end))
    assert.same({1, 1, 2, 2, 2, 0, 0, 0}, (run(8, function(o, i)
      for a, b in cute.cases(i:lt(5), i:lt(2)) do
        if a then
          for _ in cute.when(b) do o[i] = 1 end
          for _ in cute.when(~b) do o[i] = 2 end
        end
      end
    end)))
  end)

  it("are not allowed as statements", function()
    assert.matches("^cute.when got no function, and no `for` runs over it",
      message(function(_, n) cute.when(n:lt(3)) end))
    local function body() end
    assert.equal("cute.when got no function: body() returns nothing, and its "
      .. "result was passed [bad-argument]\n  write cute.when(c, body) for the "
      .. "function itself",
      message(function(_, n) cute.when(n:lt(3), body()) end))
    assert.equal("bad argument #2 to 'cute.when' (function expected, got nil) "
      .. "[bad-argument]\n  use cute.when(condition, f?, g?)",
      message(function(_, n) cute.when(n:lt(3), nil) end))
    assert.equal("cute.cases: the condition is i32, not a boolean "
      .. "[type-mismatch]", message(function(_, n)
        for _ in cute.cases(n:lt(3), n) do error "never" end
      end))
  end)

  it("are reported outside of `for`, for any condition", function()
    local function said(f)
      return tostring(select(2, pcall(run, 1, f)))
    end
    local function told(what, f)
      local line = debug.getinfo(f, "S").linedefined + 1
      local text = said(f)
      assert.is_truthy(text:find(("branch_spec.lua:%d: %s"):format(line, what),
        1, true), text)
    end
    local when = "cute.when got no function, and no `for` runs over it"
    told(when, function(o)
      cute.when(true)
      o[0] = 1
    end)
    told(when, function(o)
      cute.when(false)
      o[0] = 1
    end)
    local no_for = " is an iterator that no `for` loop uses"
    told("cute.cases(c, ...)" .. no_for, function(o)
      cute.cases(false, true)
      o[0] = 1
    end)
    told("cute.range(n)" .. no_for, function(o)
      cute.range(4)
      o[0] = 1
    end)
    assert.same({3}, (run(1, function(o)
      local n = 0
      for _ in cute.when(false) do n = 9 end
      for _ in cute.when(true) do n = n + 1 end
      for _ in cute.range(2) do n = n + 1 end
      o[0] = n
    end)))
  end)

  it("leave no state after a caught error", function()
    assert.same({1}, (run(1, function(o, i)
      local x = 1
      pcall(function()
        for _ in cute.when(i:eq(0)) do
          o[0] = 7
          error "out"
        end
      end)
      o[0] = x
    end)))
  end)
end)

-- SPDX-License-Identifier: MIT
