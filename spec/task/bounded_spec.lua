-- Compares f32 results, rounded by string.pack, with the error bounds that
-- cutelua.task.bounded computes.
local bounded = require "cutelua.task.bounded"
local random = require "cutelua.task.random"
local support = require "spec.support"

local f32 = support.f32

-- Reports whether `got` is within the error bound number.e of number.v.
local function within(got, number)
  return math.abs(got - number.v) <= number.e
end

-- Calls f with numbers that have error bounds for f32; returns its result.
local function inputs(f) return bounded.with("f32", nil, f) end

describe("bounds of f32", function()
  it("hold for sums in any order, and are no more than gamma", function()
    local r = random.new(1)
    for n = 1, 60 do
      local x, magnitude = {}, 0
      for i = 1, n do
        x[i] = f32(r:normal())
        magnitude = magnitude + math.abs(x[i])
      end
      local want = inputs(function()
        return bounded.sum(n, function(i) return bounded.input(x[i + 1]) end)
      end)
      local u = 2.0 ^ -24
      local gamma = (n - 1) * u / (1 - (n - 1) * u)
      assert.is_true(want.e <= 1.0001 * gamma * magnitude)
      for _ = 1, 20 do
        -- Replaces two random terms by their sum, until one term remains.
        local list = table.move(x, 1, n, 1, {})
        while #list > 1 do
          local a = table.remove(list, r:integer(1, #list))
          local b = table.remove(list, r:integer(1, #list))
          list[#list + 1] = f32(a + b)
        end
        assert.is_true(within(list[1], want))
      end
    end
  end)

  it("hold for random expressions", function()
    local r = random.new(2)
    local OPS = {
      {function(a, b) return f32(a + b) end, function(a, b) return a + b end},
      {function(a, b) return f32(a - b) end, function(a, b) return a - b end},
      {function(a, b) return f32(a * b) end, function(a, b) return a * b end},
      {function(a, b) return f32(a / b) end, function(a, b) return a / b end},
      {function(a) return f32(math.exp(a)) end, bounded.exp},
      {function(a) return f32(math.sqrt(math.abs(a))) end,
       function(a) return bounded.sqrt(bounded.abs(a)) end},
      {math.max, bounded.most}}
    local checked = 0
    for _ = 1, 2000 do
      local list, want = {}, {}
      inputs(function()
        for i = 1, 4 do
          list[i] = f32(r:normal())
          want[i] = bounded.input(list[i])
        end
        for _ = 1, 6 do
          local op = OPS[r:integer(1, #OPS)]
          local i, j = r:integer(1, #list), r:integer(1, #list)
          list[#list + 1] = op[1](list[i], list[j])
          want[#want + 1] = op[2](want[i], want[j])
        end
      end)
      for i, got in ipairs(list) do
        local w = want[i]
        if w.e < math.huge and w.v == w.v and math.abs(w.v) < 1e30
          and got == got then
          checked = checked + 1
          assert.is_true(within(got, w), tostring(w) .. " " .. got)
        end
      end
    end
    assert.is_true(checked > 15000)
  end)

  it("are exceeded by f16 and by a lost term", function()
    local r = random.new(3)
    local missed = 0
    for _ = 1, 50 do
      local x, rounded, short = {}, 0, 0
      for i = 1, 40 do
        x[i] = f32(r:normal())
        local e = 2.0 ^ (math.floor(math.log(math.abs(x[i]), 2)) - 10)
        rounded = rounded + math.floor(x[i] / e + 0.5) * e
        if i < 40 then short = short + x[i] end
      end
      local want = inputs(function()
        return bounded.sum(40, function(i) return bounded.input(x[i + 1]) end)
      end)
      if within(rounded, want) or within(short, want) then
        missed = missed + 1
      end
    end
    assert.is_true(missed <= 5)
  end)
end)
-- SPDX-License-Identifier: MIT
