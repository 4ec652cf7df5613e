-- Tests that a kernel can be traced further after an error. An error that a
-- public function raises inside pcall must leave the traced function unchanged.
local cute = require "cute"
local core = require "cute.core"
local sign = require "cute.lang.signature"

local MODULES = {"cute.arch", "cute.ops", "cute.pipeline", "cute.utils",
  "cute.tiles", "cute.nvgpu.sm90.cpasync", "cute.nvgpu.sm90.warpgroup",
  "cute.hopper",
  "cute.npy", "cutelua.draw", "cute.testing"}

-- Names of functions that write to standard output, which are not called here.
local PRINTS = {help = true, doc = true, draw = true}

local function functions()
  local list = {}
  local function add(name, t)
    for k, f in pairs(t) do
      if type(k) == "string" and type(f) == "function" and not k:find "^__"
        and core.signature(f) and not PRINTS[k]
        and not k:find "print" then
        list[#list + 1] = {name .. "." .. k, f}
      end
    end
  end
  for _, names in ipairs {sign.lazy(cute)} do
    for name in pairs(names) do local _ = cute[name] end
  end
  add("cute", cute)
  for _, name in ipairs(MODULES) do
    for f in pairs(sign.lazy(require(name))) do local _ = require(name)[f] end
    add(name, require(name))
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

-- Traces one kernel and calls f in it with values such as a tensor, an index or
-- a layout. Returns the name of the function that is being traced after the
-- calls.
local function name_after(f)
  local after
  pcall(function()
    cute.kernel("whole", function(x, n)
      local tid = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({4}, cute.f32)
      local l = cute.make_layout({n, 4})
      local lists = {{x}, {r}, {tid}, {l}, {{x}}, {x, x, x}, {x, r}, {tid, l}}
      for _, list in ipairs(lists) do
        pcall(f, table.unpack(list))
        local on, name = core.tracing()
        after = on and name
        if not on then return end
      end
    end)(cute.zeros({8}, cute.f32), 3):trace {block = 32}
  end)
  return after
end

describe("an error within a pcall of a kernel", function()
  it("leaves the trace unchanged #long", function()
    local out = {}
    local list = functions()
    assert.truthy(#list > 300)
    for _, entry in ipairs(list) do
      local after = name_after(entry[2])
      if after ~= "whole" then
        out[#out + 1] = entry[1] .. ": " .. tostring(after)
      end
    end
    assert.same({}, out)
  end)

  it("does not stop the traced kernel from running", function()
    local x = cute.zeros({4}, cute.f32)
    local said = {}
    cute.kernel("k", function(t)
      local _, why = pcall(cute.ops.copy, t)
      said[1] = why
      said[2] = tostring(t)
      t[0] = 1
    end)(x):launch {grid = 1, block = 1, device = "sim"}
    assert.equal(1, x[0])
    assert.truthy(said[1]:find("[foreign-value]", 1, true))
    assert.truthy(said[2]:find(":", 1, true))
  end)
end)

describe("a script's variables that a kernel's loops change", function()
  it("have their values again when it is traced", function()
    local arch = cute.arch
    local n, m, was, t = 5, 0.5, true, {c = 7, deep = {3}}
    counter = 9  -- luacheck: ignore 111
    local k = cute.kernel("k", function(x, fails)
      for i in cute.range(x.shape[1]) do
        n = n + i
        t.c = t.c + 2 * i
        for j in cute.range(i) do
          t.deep[1] = t.deep[1] + j
          counter = counter + 1  -- luacheck: ignore 111 113
        end
      end
      cute.when(arch.thread_idx():eq(0), function()
        m = m + 1.0
        was = arch.thread_idx():eq(1)
      end)
      x[0], x[1], x[2], x[3] = n, t.c, t.deep[1], counter  -- luacheck: ignore
      x[4] = (m * 2.0):to(cute.i32)
      cute.when(was, function() x[5] = 1 end, function() x[5] = 2 end)
      if fails then error "stop" end
    end)
    local x = cute.zeros({6}, cute.i32):mark_layout_dynamic()
    for _, fails in ipairs {false, true, false} do
      x:fill(0)
      local ok = pcall(function()
        k(x, fails):launch {grid = 1, block = 1, device = "sim"}
      end)
      assert.equal(not fails, ok)
      assert.same({5, 0.5, true, 7, 3, 9}, {n, m, was, t.c, t.deep[1],
        counter})  -- luacheck: ignore 113
      if ok then
        local got = {}
        for i = 0, 5 do got[i + 1] = x[i] end
        -- The loops must add 15 to n, 30 to t.c, 20 to t.deep[1] and 15 to
        -- counter.
        assert.same({20, 37, 23, 24, 3, 2}, got)
      end
    end
    counter = nil  -- luacheck: ignore 111
  end)

  it("keep values that a kernel assigns on purpose", function()
    local kept
    cute.kernel("k", function(x)
      kept = cute.arch.thread_idx() + 1
      x[0] = 1.0
    end)(cute.zeros({4}, cute.f32)):trace {block = 1}
    assert.equal("value", core.typename(kept))
  end)
end)

describe("texts of scripts", function()
  it("are dropped once there are many #long", function()
    local x = cute.zeros({4}, cute.f32)
    local function one(i)
      load(([[local cute, x = ...
        cute.kernel("k", function(t)
          local a = 0.0
          for i in cute.range(3) do a = a + %d end
          t[0] = a
        end)(x):trace {block = 1}]]):format(i))(cute, x)
    end
    local function kib_after(from, n)
      for i = from, from + n - 1 do one(i) end
      collectgarbage()
      collectgarbage()
      return collectgarbage "count"
    end
    local before = kib_after(1, 256)
    assert.truthy(kib_after(1000, 512) - before < 100)
  end)
end)
-- SPDX-License-Identifier: MIT
