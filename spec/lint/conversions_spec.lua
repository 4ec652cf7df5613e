-- Tests notes on integer sums that wrap, or lose a fraction, before they become
-- a float. Also tests notes on scales that become 0 in a narrow type.
local cute = require "cute"
local notes = require "spec.notes"
local arch = cute.arch

local quiet = notes.quiet

local function expect(text, ...)
  local said = notes.told(...)
  assert.equal(1, #said)
  assert.matches("^cutelua: note: kernel k%d+: conversions_spec.lua:%d+: "
    .. text .. "$", said[1])
end

local N, ONE = 96, {grid = 1, block = 32}

local function filled(value, dtype)
  local t = cute.zeros({N}, dtype)
  for i = 0, N - 1 do t[i] = value end
  return t
end

local function zeros(dtype) return cute.zeros({N}, dtype or cute.f32) end

-- Returns a kernel in which each lane stores f(sum of its terms term(x[i])).
local function sum(term, f)
  return function(x, y)
    local lane, s = arch.lane_idx(), (0):to(cute.i32)
    for i in cute.range(lane, N, 32) do s = s + term(x[i]:to(cute.i32)) end
    y[lane] = f(s)
  end
end

local function square(v) return v * v end
local function same(v) return v end
local function to_float(v) return v:to(cute.f32) end

describe("a note tells of a sum of i32 that wraps", function()
  local text = "1431660050 %+ 715830025 is %-2147477221, in block "
    .. "%(0,0,0%), thread %(0,0,0%), 32 times in all, although it becomes a "
    .. "float; compute in a wider type"

  it("before it becomes a float", function()
    expect(text, sum(square, to_float), ONE, filled(26755, cute.i16), zeros())
    -- The note is the same if the sum passes through shuffles or shared memory.
    expect(text, sum(square, function(s)
      return arch.shuffle_sync_bfly(s, 1):to(cute.f32)
    end), ONE, filled(26755, cute.i16), zeros())
    expect(text, sum(square, function(s)
      local shared = cute.make_smem_tensor(cute.i32, 32)
      shared[arch.lane_idx()] = s
      arch.sync_warp()
      return shared[31 - arch.lane_idx()]:to(cute.f32)
    end), ONE, filled(26755, cute.i16), zeros())
  end)

  it("unless it fits, stays an integer, or is a hash", function()
    quiet(sum(square, to_float), ONE, filled(26754, cute.i16), zeros())
    quiet(sum(square, same), ONE, filled(26755, cute.i16), zeros(cute.i32))
    quiet(sum(same, function(s) return (s * 1664525 + 1013904223):to(cute.f32)
    end), ONE, filled(12345, cute.i16), zeros())
    quiet(sum(square, function(s) return (s & 0xffff):to(cute.f32) end), ONE,
          filled(26755, cute.i16), zeros())
    quiet(function(x, y)
      local lane, s = arch.lane_idx(), (0):to(cute.i64)
      for i in cute.range(lane, N, 32) do
        s = s + x[i]:to(cute.i64) * x[i]:to(cute.i64)
      end
      y[lane] = s:to(cute.f32)
    end, ONE, filled(26755, cute.i16), zeros())
  end)
end)

describe("a note tells of a quotient of an integer sum", function()
  local function mean(n) return sum(same, function(s)
    return (s // n):to(cute.f32)
  end) end

  it("that loses its fraction before it becomes a float", function()
    expect("21 / 4 is 5, in block %(0,0,0%), thread %(0,0,0%), 32 times in "
      .. "all: the quotient of integers has no fraction when it becomes a "
      .. "float; convert the sum first, as by sum:to%(cute.f32%) / n", mean(4),
      ONE, filled(7, cute.i16), zeros())
  end)

  it("unless it is exact, an integer, or not of a sum", function()
    quiet(mean(7), ONE, filled(7, cute.i16), zeros())
    quiet(sum(same, function(s) return s // 4 end), ONE, filled(7, cute.i16),
          zeros(cute.i32))
    quiet(sum(same, function(s) return s:to(cute.f32) / 4 end), ONE,
          filled(7, cute.i16), zeros())
    -- No notes: indices, such as those of the pairs of rotary embeddings, and
    -- single elements.
    quiet(function(x, y)
      local lane = arch.lane_idx()
      y[lane] = (lane // 2):to(cute.f32) + (x[lane] // 4):to(cute.f32)
    end, ONE, filled(7, cute.i32), zeros())
  end)
end)

describe("a note tells of a scale", function()
  -- Returns a kernel that stores the scale of a row, which is at least `least`.
  local function scale(least, by)
    return function(x, y)
      local lane, most = arch.lane_idx(), 0.0
      for i in cute.range(lane, N, 32) do
        most = cute.max(most, cute.abs(x[i]))
      end
      most = cute.max(arch.warp_reduction_max(most), least)
      cute.when(lane:eq(0), function() y[0] = by(most):to(y.dtype) end)
    end
  end
  local function part(v) return v / 127 end
  local function product(v) return v * (1 / 127) end

  it("that becomes 0 in a narrow type", function()
    for _, by in ipairs {part, product} do
      for _, name in ipairs {"f16", "e4m3"} do
        expect("the conversion of 7.874.*e%-09 to " .. name .. " is 0, in "
          .. "block %(0,0,0%), thread %(0,0,0%): with this scale, all elements "
          .. "are 0, although the largest is not; .*", scale(1e-8, by), ONE,
          filled(1e-6, cute.f32), zeros(cute[name]))
      end
    end
  end)

  it("unless its elements are 0, or the type is wide", function()
    quiet(scale(1e-8, part), ONE, filled(0, cute.f32), zeros(cute.f16))
    quiet(scale(1e-8, part), ONE, filled(1e-9, cute.f32), zeros(cute.f16))
    quiet(scale(1e-8, part), ONE, filled(1, cute.f32), zeros(cute.f16))
    quiet(scale(1e-8, part), ONE, filled(1e-6, cute.f32), zeros(cute.bf16))
    quiet(scale(1e-8, part), ONE, filled(1e-6, cute.f32), zeros())
    -- No note: small values that are no scales may become 0.
    quiet(function(x, y)
      local lane = arch.lane_idx()
      y[lane] = cute.max(x[lane], 0.0):to(cute.f16)
    end, ONE, filled(1e-9, cute.f32), zeros(cute.f16))
  end)
end)
-- SPDX-License-Identifier: MIT
