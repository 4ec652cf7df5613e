-- luacheck: globals STALE_G STALE_T
-- Tests that a launch uses the script's current values. The upvalues, globals
-- and table fields that a trace read must be part of the key of the compiled
-- program.
local cute = require "cute"
local core = require "cute.core"

-- Makes a kernel that stores f(...) in a tensor. Returns a table with the
-- kernel and two functions: launch(...) launches the kernel and returns the
-- stored number, and traced() returns how often the kernel was traced.
local function kernel_of(f)
  local traced, out = 0, cute.zeros({1}, cute.f32)
  local k = cute.kernel("k", function(o, ...)
    traced = traced + 1
    o[0] = f(...)
  end)
  return {kernel = k, traced = function() return traced end,
          launch = function(...)
            k(out, ...):launch {grid = 1, block = 1, device = "sim"}
            return out(0)
          end}
end

-- Carries out `steps`, each {change, wanted, traced =}. After change(), a
-- launch must write the number `wanted`. A second launch must write it again
-- without a new trace. `traced` is the expected number of traces so far.
local function follows(f, steps, ...)
  local k = kernel_of(f)
  for i, step in ipairs(steps) do
    step[1]()
    assert.equal(step[2], k.launch(...), "step " .. i)
    if step.traced then assert.equal(step.traced, k.traced(), "step " .. i) end
    local traced = k.traced()
    assert.equal(step[2], k.launch(...))
    assert.equal(traced, k.traced(), "traced again for nothing: step " .. i)
  end
end

local function nothing() end

describe("a changed", function()
  it("upvalue is seen: a number, its type, its sign", function()
    local s = 2
    follows(function() return s end,
      {{nothing, 2.0, traced = 1}, {function() s = 3 end, 3.0, traced = 2}})
    local x = 7
    follows(function() return x // 2 * 1.0 + (math.type(x) == "float" and 0.25
                                              or 0) end,
      {{nothing, 3.0}, {function() x = 7.0 end, 3.25}})
    local zero = 0.0
    follows(function() return 1 / zero < 0 and -1 or 1 end,
      {{nothing, 1.0}, {function() zero = -0.0 end, -1.0}})
    local nan = 0 / 0
    follows(function() return nan ~= nan and 1 or 2 end, {{nothing, 1.0}})
  end)

  it("string, boolean, nil", function()
    local mode
    follows(function()
      return mode == nil and 0 or mode == "a" and 1 or mode and 2 or 3
    end, {{nothing, 0.0}, {function() mode = "a" end, 1.0},
          {function() mode = false end, 3.0}, {function() mode = "b" end, 2.0},
          {function() mode = nil end, 0.0, traced = 4}})
  end)

  it("field of a table, also a nested one, a list, a shared one", function()
    local t = {a = {b = {1}}}
    local same = t.a
    local list = {1, 2, 3}
    local function sum(l)
      local s = 0
      for _, v in ipairs(l) do s = s + v end
      return s
    end
    follows(function() return t.a.b[1] * 100 + sum(list) end, {
      {nothing, 106.0}, {function() t.a.b[1] = 2 end, 206.0},
      {function() t.a.b = {3} end, 306.0},
      {function() same.b = {4} end, 406.0},
      {function() list[4] = 4 end, 410.0},
      {function() table.remove(list, 1) end, 409.0},
      {function() t = {a = {b = {5}}} end, 509.0}})
  end)

  it("upvalue of a function that ran, and the function", function()
    local scale, offset = 2, 1
    local function inner() return scale end
    local use = function() return inner() * 10 + offset end
    follows(function() return use() end, {
      {nothing, 21.0}, {function() scale = 3 end, 31.0},
      {function() offset = 2 end, 32.0},
      {function() use = function() return 7 end end, 7.0}})
    local ops = {f = function() return scale end, g = function() return 1 end}
    follows(function() return ops.f() end, {
      {nothing, 3.0}, {function() scale = 4 end, 4.0},
      {function() ops.f = ops.g end, 1.0}})
    local function make(n) return function() return n * scale end end
    local made = make(10)
    follows(function() return made() + make(1)() end, {
      {nothing, 44.0}, {function() made = make(20) end, 84.0},
      {function() scale = 1 end, 21.0}})
  end)

  it("argument: a table's field, a function's upvalue", function()
    local c, n = {v = 1.0, in_it = {v = 2.0}}, 3.0
    follows(function(t, g) return t.v * 100 + t.in_it.v * 10 + g() end, {
      {nothing, 123.0, traced = 1}, {function() c.v = 4.0 end, 423.0},
      {function() c.in_it.v = 5.0 end, 453.0, traced = 1},
      {function() n = 6.0 end, 456.0, traced = 2}},
      c, function() return n end)
  end)

  it("function that answers for a field", function()
    for i = 1, 2 do
      local scale = 2
      local t = setmetatable({}, {__index = function() return scale end})
      local x = i == 1 and t or setmetatable({}, {__index = t})
      follows(function() return x.factor end, {
        {nothing, 2.0, traced = 1}, {function() scale = 3 end, 3.0},
        {function()
          getmetatable(t).__index = function() return scale * 10 end
        end, 30.0},
        {function() scale = 4 end, 40.0},
        {function()
          setmetatable(t, {__index = function() return scale + 1 end})
        end, 5.0}})
    end
  end)

  it("class: a method, a field behind __index, the metatable", function()
    local Class = {factor = 2}
    Class.__index = Class
    function Class.value(self) return self.x * self.factor end
    local o = setmetatable({x = 3}, Class)
    follows(function() return o:value() end, {
      {nothing, 6.0}, {function() Class.factor = 5 end, 15.0},
      {function() function Class.value() return 1 end end, 1.0},
      {function()
        setmetatable(o, {__index = {value = function() return 9 end}})
      end, 9.0}})
  end)

  it("layout, tensor, type", function()
    local l, t = cute.make_layout {4, 2}, cute.f32
    follows(function() return cute.size(l) * 100 + t.bits end, {
      {nothing, 832.0},
      {function() l = cute.make_layout {4, 2} end, 832.0, traced = 1},
      {function() l = cute.make_layout {4, 4} end, 1632.0},
      {function() t = cute.f16 end, 1616.0}})
  end)
end)

describe("a changed", function()
  it("element of a tensor or buffer of the host", function()
    local t, b = cute.full({4}, 3, cute.f32), core.buffer_from("i32", {1, 2})
    local nibble = cute.full({4}, 1, cute.u8)
    follows(function() return t(1) * 100 + b[1] * 10 + nibble[{3}] end, {
      {nothing, 321.0}, {function() t[1] = 4 end, 421.0},
      {function() b[1] = 5 end, 451.0}, {function() nibble:fill(6) end, 456.0},
      {function() t[0], b[0] = 9, 9 end, 456.0, traced = 4}})
  end)

  it("global, and field of one", function()
    STALE_G, STALE_T = 1, {x = {2}}
    follows(function() return STALE_G * 10 + STALE_T.x[1] end, {
      {nothing, 12.0}, {function() STALE_G = 3 end, 32.0},
      {function() STALE_T.x[1] = 4 end, 34.0},
      {function() STALE_T = {x = {5}} end, 35.0}})
    STALE_G, STALE_T = nil, nil
    local env = setmetatable({Q = 1}, {__index = setmetatable({R = 2},
                                                              {__index = _G})})
    local f = load("return Q * 10 + R", "=env", "t", env)
    follows(f, {{nothing, 12.0}, {function() env.Q = 3 end, 32.0},
                {function() getmetatable(env).__index.R = 4 end, 34.0},
                {function() env.R = 5 end, 35.0}})
  end)

  it("upvalue of a stripped function, and of a required module",
    function()
    local text = "local n = 1 return function() return n end, "
      .. "function(x) n = x end"
    local f, set = load(string.dump(load(text, "=s"), true))()
    follows(f, {{nothing, 1.0}, {function() set(2) end, 2.0}})
    local get, put = load(text, "=m")()
    package.loaded["stale.module"] = {get = get}
    follows(function() return require "stale.module".get() end,
      {{nothing, 1.0}, {function() put(2) end, 2.0}})
    package.loaded["stale.module"] = nil
  end)
end)

describe("a program stays valid", function()
  it("while nothing changes that its trace read", function()
    local unread, t = 1, {x = 1}
    local function never() return unread end
    local objects = {never = never, t = t}
    local k = kernel_of(function() return t.x + #"a" end)
    local all = {k = k.kernel, never = objects}
    assert.equal(k.kernel, all.k)
    k.launch()
    for i = 1, 5 do
      unread, objects[i], all[i], STALE_G = i, i, i, i
      assert.equal(2.0, k.launch())
    end
    assert.equal(1, k.traced())
    STALE_G = nil
  end)

  it("if it makes the changes itself", function()
    local env = {}
    local f, count = load([[
      local traced, list = 0, nil
      return function(out)
        traced = traced + 1
        G = (G or 0) + 1
        list = {traced}
        out[0] = 1
      end, function() return traced, list[1], G end]], "=own", "t", env)()
    local k = cute.kernel("k", f)
    local a, b = cute.zeros({1}, cute.f32), cute.zeros({1}, cute.i32)
    for _ = 1, 3 do
      k(a):launch {grid = 1, block = 1, device = "sim"}
      k(b):launch {grid = 1, block = 1, device = "sim"}
    end
    assert.same({2, 2, 2}, {count()})
  end)

  it("beside others, for when earlier values return", function()
    local n = 1
    local k = kernel_of(function() return n end)
    for _ = 1, 3 do
      for i = 1, 5 do
        n = i
        assert.equal(i * 1.0, k.launch())
      end
    end
    assert.equal(5, k.traced())
    for i = 1, 100 do
      n = i
      assert.equal(i * 1.0, k.launch())
    end
    for _, known in pairs(k.kernel.programs) do
      assert.is_true(#known <= 16)
    end
  end)

  it("only for arguments that are the same in all, not in print", function()
    local k = kernel_of(function(x) return #tostring(x) end)
    local names = {"SM80_CP_ASYNC_CACHEALWAYS", "SM80_CP_ASYNC_CACHEGLOBAL"}
    local mine = {}
    for i, name in ipairs(names) do
      mine[i] = cute.make_copy_atom(name, cute.bf16, 128)
      k.launch(mine[i])
    end
    assert.equal(tostring(mine[1]), tostring(mine[2]))
    assert.equal(2, k.traced())
    local size = kernel_of(function(...)
      return #(...) * 10 + #select(2, ...)
    end)
    assert.equal(54.0, size.launch("a'|'b", "c'|d"))
    assert.equal(36.0, size.launch("a'|", "b'|'cd"))
    local last = kernel_of(function(s) return s:byte(-1) end)
    assert.equal(97.0, last.launch("x\0a"))
    assert.equal(98.0, last.launch("x\0b"))
  end)

  it("until a list that it read is no longer a list", function()
    for _, bad in ipairs {
      {}, {upvalues = 3}, {upvalues = {n = 3}, keys = {n = 0}},
      {upvalues = {n = 3, print, 1, 1}, keys = {n = 0}, tables = {n = 0}},
      {upvalues = {n = 0}, keys = {n = 3, 1, 1, 1}, tables = {n = 0}},
      {upvalues = {n = 0}, keys = {n = 0}, tables = {n = 4, 1, 1, 1, 1}},
      {upvalues = {n = 0}, keys = {n = 0}, tables = {n = 0},
       elements = {n = 4, core.buffer("u8", 1), 900, 1 << 60, 1}}} do
      local ok, same = pcall(core.unchanged, bad)
      assert.is_false(ok and same)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
