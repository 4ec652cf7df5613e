-- Tests variables that are nil before a loop or branch and get a value inside:
-- where this value can be used, and the errors elsewhere.
local cute = require "cute"
local support = require "spec.support"

local BLOCK = 4

-- Returns x(0) to x(3) after f(x, n, t), a kernel of four threads; n is 4.
local function run(f, n)
  local x = cute.full({8}, -1, cute.i32)
  cute.kernel("k", function(out, m) f(out, m, (cute.arch.thread_idx())) end)(
    x, n or 4):launch {grid = 1, block = BLOCK, device = "sim"}
  return {x(0), x(1), x(2), x(3)}
end

local function message(f, n)
  local ok, text = pcall(run, f, n)
  assert.is_false(ok)
  return (tostring(text):gsub("^[^\n]-:%d+: ", ""))
end

-- Checks that f raises an error: `name` is nil before this `form` (branch or
-- loop) and `value` after it.
local function undefined(name, value, form, f)
  assert.equal(("'%s' is nil before this %s and %s after it [out-of-region]")
    :format(name, form, value), (message(f):match "^[^\n]*"))
end

-- Checks that f raises an error: `name` is nil at first, but `value` in a later
-- iteration or another thread, so the body would behave differently there.
local function differs(name, value, form, f)
  assert.equal(("'%s' is nil at first and %s later, which changes what the "
    .. "body of this %s does [out-of-region]"):format(name, value, form),
    (message(f):match "^[^\n]*"))
end

describe("a variable set only in a branch is undefined after it:", function()
  it("a local", function()
    undefined("v", "3", "branch", function(x, _, t)
      local v
      cute.when(t:lt(2), function() v = 3 end)
      x[t] = v
    end)
    undefined("v", "3", "branch", function(x, _, t)
      local v
      for _ in cute.when(t:lt(2)) do v = 3 end
      x[t] = v
    end)
    undefined("v", "1", "branch", function(x, _, t)
      local v
      for a, b in cute.cases(t:lt(1), t:lt(2)) do
        if a then v = 1 elseif b then v = 1 end
      end
      x[t] = v
    end)
    undefined("v", "3", "branch", function(x, _, t)
      local v
      cute.when(t:lt(3), function()
        cute.when(t:lt(2), function() v = 3 end)
      end)
      x[t] = v
    end)
  end)

  it("a field, a global, a helper's upvalue, an element of a list", function()
    undefined("o.v", "3", "branch", function(x, _, t)
      local o = {}
      cute.when(t:lt(2), function() o.v = 3 end)
      x[t] = o.v
    end)
    undefined("UNDEFINED", "3", "branch", function(x, _, t)
      cute.when(t:lt(2), function() rawset(_G, "UNDEFINED", 3) end)
      x[t] = rawget(_G, "UNDEFINED")
    end)
    assert.is_nil(rawget(_G, "UNDEFINED"))
    local up
    local function helper() up = 3 end
    undefined("up", "3", "branch", function(x, _, t)
      cute.when(t:lt(2), helper)
      x[t] = up
    end)
    assert.is_nil(up)
    undefined("l[1]", "3", "branch", function(x, _, t)
      local l = {}
      cute.when(t:lt(2), function() table.insert(l, 3) end)
      x[t] = #l
    end)
  end)

  it("strings, functions, tables, tensors, layouts, however they are used",
    function()
    local function used(value, shown, use)
      undefined("v", shown, "branch", function(x, _, t)
        local v
        cute.when(t:lt(2), function() v = value or x end)
        use(v, x, t)
      end)
    end
    used("b", '"b"', function(v, x, t)
      if v == "b" then x[t] = 1 else x[t] = 2 end
    end)
    used("b", '"b"', function(v) return v .. "c" end)
    used("b", '"b"', function(v) return ({b = 1})[v] end)
    used(function() return 1 end, "a function", function(v, x) x[0] = v() end)
    used({a = 1}, "a table", function(v, x) x[0] = v.a end)
    used({a = 1}, "a table", function(v) v.a = 1 end)
    used(nil, "tensor ptr[i32,gmem] o (8):(1)", function(v) v[0] = 1 end)
    used(cute.make_layout(4), "layout 4:1", function(v) cute.size(v) end)
    used(3, "3", function(v, x, t) if v then x[t] = 1 end end)
    used(3, "3", function(v, x, t) if v == nil then x[t] = 1 end end)
    used(3, "3", function(v, x, t) x[t] = v or 1 end)
    used(3, "3", function(v, x, t) x[t] = not v and 1 or 2 end)
    used(3, "3", function(v, x, t) x[t] = type(v) == "number" and 1 or 2 end)
    used(3, "3", function(v, x, t) x[t] = rawequal(v, 3) and 1 or 2 end)
    used(3, "3", function(v, x) for i = 1, v do x[i] = 1 end end)
    used(3, "3", function(v, x) x[0] = tostring(v) == "3" and 1 or 2 end)
    used(3, "3", function(v, x) x[0] = cute.size(cute.make_layout {v, 2}) end)
  end)

  it("stored in a table whose length is taken", function()
    for _, kept in ipairs {
      function(v) return {v} end, function(v) return {a = v} end,
      function(v) local t = {} t.a = v return t end,
      function(v) local t = {} t[v == nil and 1 or 2] = v return t end,
      function(v) return table.pack(v) end} do
      undefined("v", "3", "branch", function(_, _, t)
        local v
        cute.when(t:lt(2), function() v = 3 end)
        for _ in pairs(kept(v)) do end
      end)
    end
  end)

  it("in a count of a table's fields", function()
    for _, count in ipairs {
      function(o) for _ in pairs(o) do end end,
      function(o) return next(o) end,
      function(o) for _ in next, o do end end,
      function(o) return table.unpack(o) end,
      function(o) return ipairs(o) end,
      function(o) return #o end} do
      undefined("o.v", "3", "branch", function(_, _, t)
        local o = {}
        cute.when(t:lt(2), function() o.v = 3 end)
        count(o)
      end)
    end
  end)
end)

describe("a variable set only in a branch is undefined after it:", function()
  it("a function that its two ends choose", function()
    assert.equal("'f' is a function in one branch and another one in the "
      .. "other, depending on the thread [out-of-region]",
      (message(function(x, _, t)
        local f
        cute.when(t:lt(2), function() f = function(a) return a * 10 end end,
                  function() f = function(a) return a * 100 end end)
        x[t] = f(t)
      end):match "^[^\n]*"))
  end)

  it("set by a helper after a return", function()
    undefined("v", "3", "function", function(x, _, t)
      local v
      cute.func(function()
        cute.return_if(t:lt(2))
        v = 3
      end)()
      x[t] = v
    end)
  end)
end)

describe("a variable set only in a loop is undefined after it", function()
  it("whether it runs a step or not", function()
    undefined("v", "7", "loop", function(x, n)
      local v
      for _ in cute.range(n) do v = 7 end
      x[0] = v
    end)
    undefined("v", "7", "loop", function(x, n)
      local v
      cute.loop(function() return n:gt(1) end, function()
        n, v = n - 1, 7
      end)
      x[0] = v
    end)
    undefined("v", "3", "loop", function(x, n)
      local v
      for k in cute.range(n) do
        v = 3
        cute.break_if(k:gt(1))
        x[1] = v
        v = nil
      end
      x[0] = v
    end)
  end)

  it("and its next iteration sees the value of the previous one", function()
    differs("c", "1", "loop", function(x, n)
      local c
      for _ in cute.range(n) do c = (c or 0) + 1 end
      x[0] = c
    end)
    differs("previous", "5", "loop", function(x, n)
      local previous
      local c = 0
      for _ in cute.range(n) do
        if previous then c = c + 1 end
        previous = 5
      end
      x[0] = c
    end)
    undefined("list[1]", "1", "loop", function(x, n)
      local list = {}
      for _ in cute.range(n) do list[#list + 1] = 1 end
      x[0] = #list
    end)
    differs("o.c", "1", "loop", function(x, n)
      local o = {}
      for _ in cute.range(n) do o.c = (o.c or 0) + 1 end
      x[0] = o.c
    end)
    assert.matches("^'p' is nil before this loop and traced i32",
      message(function(x, n)
        local p
        local c = 0
        for k in cute.range(n) do
          if p then c = c + 1 end
          p = k
        end
        x[0] = c
      end))
  end)
end)

describe("a later region that tests a variable set in a branch", function()
  it("does the same with nil and with that, or is an error", function()
    differs("a", "1", "loop", function(x, n, t)
      local a, b
      cute.when(t:lt(2), function() a = 1 end)
      cute.when(t:ge(2), function() b = 1 end)
      for _ in cute.range(n) do
        if a and not b then x[t] = 5 end
      end
    end)
    differs("up", "3", "loop", function(x, n, t)
      local up
      local function get()
        if not up then up = 2 end
        return up
      end
      cute.when(t:eq(1), function() up = 3 end)
      local z = t
      for _ in cute.range(n) do z = z + get() end
      x[t] = z
    end)
  end)
end)

describe("variables that are nil before a region work", function()
  it("as caches in one region and the next", function()
    assert.same({7, 7, 8, 8}, run(function(x, _, t)
      local v
      local function get()
        if not v then v = 7 end
        return v
      end
      cute.when(t:lt(2), function() x[t] = get() end)
      for _ in cute.when(t:ge(2)) do x[t] = get() + 1 end
    end))
    assert.same({4, 5, 4, 5}, run(function(x, n)
      local memo = {}
      local function get(k)
        local l = memo[k]
        if not l then
          l = cute.make_layout(k)
          memo[k] = l
        end
        return l
      end
      for _ = 0, 1 do
        for _ in cute.range(n) do
          x[0], x[1] = cute.size(get(4)), cute.size(get(5))
        end
      end
      cute.when(n:gt(1), function()
        x[2], x[3] = cute.size(get(4)), cute.size(get(5))
      end)
    end))
    assert.same({7, 7, 7, 7}, run(function(x, n)
      local c = {}
      for k in cute.range(n) do
        cute.when(k:ge(0), function()
          if not c.a then c.a, c.b = 3, 4 end
          x[k] = c.a + c.b
        end)
      end
    end))
  end)

  it("if only the body uses them", function()
    assert.same({5, 6, 7, 8}, run(function(x, n)
      local v, f, o
      for k in cute.range(n) do
        v, o = 5, {a = k}
        cute.when(k:ge(0), function()
          f = function() return o.a + v end
          x[k] = f()
        end)
      end
    end))
  end)

  it("if both sides of a branch set them", function()
    assert.same({3, 3, 4, 4}, run(function(x, _, t)
      local v, s
      cute.when(t:lt(2), function() v, s = 3, "a" end,
                function() v, s = 4, "a" end)
      if s == "a" then x[t] = v end
    end))
    -- v is nil at the start of each branch.
    assert.same({9, 9, 9, 9}, run(function(x, _, t)
      local v
      local y = 7
      cute.when(t:lt(2), function() v = v or 2 y = y + v end,
                function() v = 2 y = y + v end)
      x[t] = y
    end))
    assert.same({3, 3, 3, 3}, run(function(x, _, t)
      local v
      cute.func(function()
        v = 3
        cute.return_if(t:lt(2))
      end)()
      x[t] = v
    end))
  end)

  it("and are nil again when the kernel is traced", function()
    local v, number, o = nil, nil, {}
    run(function(x, _, t)
      cute.when(t:lt(2), function() v, o.v, number = "a", 3, 1 end,
                function() number = 2 end)
      x[t] = number
    end)
    assert.same({}, {v, number})
    assert.same({}, o)
  end)
end)

describe("a metatable that a region sets", function()
  it("is an error for a table from outside", function()
    local text = "the metatable of 'o' changes in %s [loop-table-changed]"
    assert.equal(text:format("cute.when"), (message(function(x, _, t)
      local o = {}
      cute.when(t:lt(2), function() setmetatable(o, {__index = {v = 3}}) end)
      x[t] = o.v
    end):match "^[^\n]*"))
    assert.equal(text:format("this loop"), (message(function(x, n)
      local o = {}
      for k in cute.range(n) do
        cute.when(k:gt(1), function()
          local p = setmetatable(table.pack(1), {__index = {v = 3}})
          x[0] = p.v
        end)
        setmetatable(o, {__index = {v = 3}})
      end
    end):match "^[^\n]*"))
  end)
end)

describe("a boolean of Lua that a region changes", function()
  it("is no condition in Lua after it", function()
    support.raises("this comparison was tested by Lua: a traced boolean is "
      .. "always true in Lua's if, and, or, not, while [unused-boolean]",
      function()
        run(function(x, _, t)
          local flag = true
          cute.when(t:lt(2), function() flag = false end)
          cute.when(flag, function() x[t] = 1 end)
          if flag then x[t + 4] = 2 end
        end)
      end)
  end)
end)
-- SPDX-License-Identifier: MIT
