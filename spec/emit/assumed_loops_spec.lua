-- Tests what the emitted text says about loops whose bound cute.assume limits:
-- compilers may rely on it only where the assumption holds.
local cute = require "cute"

-- Returns how often the text of kernel f (out, n) assumes that a loop runs.
local function assumed(f)
  local x = cute.zeros({64}, cute.i32)
  local text = cute.kernel("k", f)(x, 5):trace {grid = 1, block = 32}.source
  return select(2, text:gsub(
    "__builtin_assume%(n > 0%);%s*#pragma unroll 1%s*for %(int ", ""))
end

local function sum(out, n, first)
  for i in cute.range(first or 0, n, 1, {unroll = 1}) do
    out[i] = out[i] + 1
  end
end

describe("the text of a loop", function()
  it("says that it runs if cute.assume says so before", function()
    assert.equal(1, assumed(function(out, n)
      cute.assume(n, 1, 64, 1)
      sum(out, n)
    end))
    assert.equal(1, assumed(function(out, n)
      cute.assume(n, 3, 64, 1)
      cute.when(cute.lt(n, 9), function() sum(out, n) end)
    end))
    assert.equal(2, assumed(function(out, n)
      cute.assume(n, 1, 64, 1)
      for _ in cute.range(n, {unroll = 1}) do sum(out, n) end
    end))
  end)

  it("says nothing without cute.assume, or if the loop may not run", function()
    assert.equal(0, assumed(sum))
    assert.equal(0, assumed(function(out, n)
      cute.assume(n, 0, 64, 1)
      sum(out, n)
    end))
    assert.equal(0, assumed(function(out, n)
      cute.assume(n, 1, 64, 1)
      sum(out, n, 1)
    end))
    assert.equal(0, assumed(function(out, n)
      sum(out, n)
      cute.assume(n, 1, 64, 1)
    end))
  end)

  it("ignores what holds only in a branch or in another loop", function()
    local function limit(n) cute.assume(n, 1, 64, 1) end
    assert.equal(0, assumed(function(out, n)
      cute.when(cute.gt(n, 0), function() limit(n) end)
      sum(out, n)
    end))
    assert.equal(0, assumed(function(out, n)
      cute.when(cute.gt(n, 0), function() limit(n) end,
                function() sum(out, n) end)
    end))
    assert.equal(0, assumed(function(out, n)
      for _ in cute.range(out[0], {unroll = 1}) do limit(n) end
      sum(out, n)
    end))
    assert.equal(1, assumed(function(out, n)
      cute.when(cute.gt(n, 0), function()
        limit(n)
        sum(out, n)
      end, function() sum(out, n) end)
    end))
  end)

  it("leaves the results as they are", function()
    for _, n in ipairs {1, 5, 64} do
      local x = cute.zeros({64}, cute.i32)
      cute.kernel("k", function(out, count)
        cute.assume(count, 1, 64, 1)
        sum(out, count)
      end)(x, n):launch {grid = 1, block = 1, device = "sim"}
      for i = 0, 63 do assert.equal(i < n and 1 or 0, x(i)) end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
