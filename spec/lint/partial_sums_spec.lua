-- Tests notes on sums and maxima that lack a reduction over lanes or warps.
local cute = require "cute"
local notes = require "spec.notes"
local arch = cute.arch
local f32 = cute.f32

local told, quiet = notes.told, notes.quiet

local function expect(text, ...)
  local said = told(...)
  assert.equal(1, #said, table.concat(said, "\n"))
  assert.matches("^cutelua: note: kernel k%d+: partial_sums_spec.lua:%d+: "
    .. text, said[1])
end

local function rand(...) return cute.rand({...}, f32) end
local function zeros(...) return cute.zeros({...}, f32) end

-- Returns a kernel that divides the elements of a row by their sum. `reduce`
-- combines the threads' sums.
local function divide(threads, reduce)
  return function(x, y)
    local t, row = arch.thread_idx(), arch.block_idx()
    local sum = 0.0
    for k in cute.range(t, 256, threads) do sum = sum + x[{row, k}] end
    sum = reduce(sum, t)
    for k in cute.range(t, 256, threads) do
      y[{row, k}] = x[{row, k}] / sum
    end
  end
end

local function same(x) return x end

local function through_shared(sum, t)
  local parts = cute.make_smem_tensor(f32, 2)
  sum = arch.warp_reduction_sum(sum)
  cute.when((t % 32):eq(0), function() parts[t // 32] = sum end)
  arch.sync_threads()
  return parts[0] + parts[1]
end

describe("a note tells of", function()
  it("a sum of lanes or warps in a loop", function()
    expect("this sum has only the elements of one lane, .* such as "
      .. "warp_reduction_sum%?", divide(32, same), {grid = 2, block = 32},
      rand(2, 256), zeros(2, 256))
    expect("this sum has only the elements of one warp, .* such as one through "
      .. "shared memory%?", divide(64, function(sum)
        return arch.warp_reduction_sum(sum)
      end), {grid = 2, block = 64}, rand(2, 256), zeros(2, 256))
  end)

  it("a sum of elements in registers", function()
    expect("this sum has only the elements of one lane", function(x, y)
      local t, row = arch.thread_idx(), arch.block_idx()
      local r = cute.make_rmem_tensor({4}, f32)
      for k = 0, 3 do r[k] = x[{row, k * 32 + t}] end
      local mean = (r[0] + r[1] + r[2] + r[3]) / 128
      for k = 0, 3 do y[{row, k * 32 + t}] = r[k] - mean end
    end, {grid = 2, block = 32}, rand(2, 128), zeros(2, 128))
  end)
end)

describe("no note tells of", function()
  it("sums that lanes and warps combine", function()
    quiet(divide(32, function(sum) return arch.warp_reduction_sum(sum) end),
          {grid = 2, block = 32}, rand(2, 256), zeros(2, 256))
    quiet(divide(64, through_shared), {grid = 2, block = 64}, rand(2, 256),
          zeros(2, 256))
  end)

  it("sums of warps that have a row each", function()
    quiet(function(x, y)
      local lane, row = arch.lane_idx(), arch.block_idx() * 4 + arch.warp_idx()
      local r, sum = cute.make_rmem_tensor({3}, f32), 0.0
      for k = 0, 2 do
        r[k] = x[{row, k * 32 + lane}]
        sum = sum + r[k]
      end
      sum = arch.warp_reduction_sum(sum)
      for k = 0, 2 do y[{row, k * 32 + lane}] = r[k] / sum end
    end, {grid = 2, block = 128}, rand(8, 96), zeros(8, 96))
    -- Two warps share a row.
    expect("this sum has only the elements of one warp", function(x, y)
      local t, row = arch.thread_idx() % 64, arch.block_idx() * 2
                     + arch.thread_idx() // 64
      local r, sum = cute.make_rmem_tensor({3}, f32), 0.0
      for k = 0, 2 do
        r[k] = x[{row, k * 64 + t}]
        sum = sum + r[k]
      end
      sum = arch.warp_reduction_sum(sum)
      for k = 0, 2 do y[{row, k * 64 + t}] = r[k] / sum end
    end, {grid = 4, block = 128}, rand(8, 192), zeros(8, 192))
  end)

  it("rows and columns of threads", function()
    quiet(function(x, y)
      local t, sum = arch.thread_idx(), 0.0
      for k in cute.range(16) do sum = sum + x[{t, k}] end
      for k in cute.range(16) do y[{t, k}] = x[{t, k}] / sum end
    end, {grid = 1, block = 32}, rand(32, 16), zeros(32, 16))
    quiet(function(x, y)
      local t = arch.thread_idx()
      local sum = x[{0, t}] + x[{1, t}] + x[{2, t}] + x[{3, t}]
      for k = 0, 3 do y[{k, t}] = x[{k, t}] / sum end
    end, {grid = 1, block = 32}, rand(4, 32), zeros(4, 32))
    quiet(function(x, y)
      local t = arch.thread_idx()
      local sum = x[{0, 4 * t}] + x[{0, 4 * t + 1}] + x[{0, 4 * t + 2}]
        + x[{0, 4 * t + 3}]
      for k = 0, 3 do y[{0, 4 * t + k}] = x[{0, 4 * t + k}] / sum end
    end, {grid = 1, block = 32}, rand(1, 128), zeros(1, 128))
  end)

  it("partial sums that are stored for another kernel", function()
    quiet(function(x, y)
      local t, b, sum = arch.thread_idx(), arch.block_idx(), 0.0
      for k in cute.range(t, 256, 32) do sum = sum + x[{b, k}] end
      y[{b, t}] = sum * 0.5
    end, {grid = 2, block = 32}, rand(2, 256), zeros(2, 32))
  end)
end)
-- SPDX-License-Identifier: MIT
