-- Tests the names that cutelua (the tools) adds to cute (the language). They
-- must be loaded on first use. If cutelua's modules are absent, the use of such
-- a name must raise an error that says so.
local support = require "spec.support"

local START = [[
  local cute = require "cute"
  local k = cute.kernel("k", function(x) x[0] = x[0] + 1 end)
  local x = cute.zeros({1}, cute.f32)
  local opts = {grid = 1, block = 1, device = "sim"}
]]

-- Runs code in a separate process. With `absent`, require finds no module of
-- cutelua.
local function run(code, absent)
  local hidden = absent and [[
    for i, find in ipairs(package.searchers) do
      package.searchers[i] = function(name)
        if name:find "^cutelua" then return "\n\thidden" end
        return find(name)
      end
    end
    for name in pairs(package.loaded) do
      if name:find "^cutelua" then package.loaded[name] = nil end
    end
    require "cute.lang.report".keep = nil  -- a function of the workshop
  ]] or ""
  local out, err = support.run {"-e", hidden .. START .. code}
  assert.equal("", err)
  return out
end

describe("the workshop", function()
  it("is loaded on first use of one of its names", function()
    assert.equal("true\n", run [[
      k(x):launch(opts)
      local before = package.loaded["cutelua.analyses.call"]
      k(x):check {grid = 1, block = 1}
      print(before == nil and package.loaded["cutelua.analyses.call"] ~= nil)
    ]])
  end)

  it("is not needed by a launch or an operation", function()
    assert.equal("", run([[
      k(x):launch(opts)
      cute.ops.gemm(cute.ones({16, 16}, cute.f16), cute.ones({16, 16},
        cute.f16), nil, {device = "sim"})]], true))
  end)

  it("is not needed to report an error or a fault", function()
    local out = run([[
      local bad = cute.kernel("bad", function(x) x[0] = x.y.z + nothing end)
      local race = cute.kernel("race", function(x)
        local s = cute.make_smem_tensor(cute.f32, 64)
        local t = cute.arch.thread_idx()
        s[t] = x[0]
        x[0] = s[63 - t]
      end)
      for _, f in ipairs {bad, race} do
        local ok, why = pcall(function() f(x):launch {grid = 1, block = 64,
          device = "sim"} end)
        print(ok, (tostring(why):gsub("^.-:%d+: ", "")))
      end]], true)
    assert.matches("^false\ta tensor has no field 'y'", out)
    assert.is_truthy(out:find("[kernel-fault]", 1, true), out)
    assert.is_truthy(out:find("with no barrier between", 1, true), out)
    assert.is_nil(out:find("workshop", 1, true))
  end)

  it("is missed by name", function()
    local advice = "\n  the workshop is not installed: Lua module cutelua"
    local out = run([[
      local report = k(x):launch(opts)
      for _, f in ipairs {
        function() return k(x):check {} end,
        function() return report:json() end,
        function() return cute.draw "4:1" end,
        function() return cute.print_tensor(x) end,
        function() return cute.testing.tune(print, {}) end,
        function() return cute.gpu.bench {} end} do
        print((select(2, pcall(f)):gsub("^.-:%d+: ", "")))
      end]], true)
    for _, what in ipairs {"a call has no 'check'", "report has no 'json'",
        "cute has no 'draw'", "cute has no 'print_tensor'",
        "cute has no 'testing'", "cute.gpu has no 'bench'"} do
      local at = out:find(what, 1, true)
      assert.is_truthy(at, what .. " in " .. out)
      assert.is_truthy(out:find(advice, at, true), what)
    end
    assert.equal(6, select(2, out:gsub(advice, "")))
  end)
end)
-- SPDX-License-Identifier: MIT
