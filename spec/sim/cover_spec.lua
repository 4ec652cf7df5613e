-- SPDX-License-Identifier: MIT
-- Tests notes on parts of arguments that a launch never reads or stores: usual
-- mistakes get a note with the right coordinates, and kernels that access a
-- part on purpose get none. A brute force in Lua checks the coordinates for
-- random tiles and layouts.
local cute = require "cute"
local json = require "cutelua.text.json"
local support = require "spec.support"
local words = require "cute.lang.report"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync

-- Launches kernel f and returns its report; nothing is printed.
local function run(grid, block, f, ...)
  local tell = words.tell
  words.tell = function() end
  local arguments = {...}
  local ok, r = pcall(function()
    return support.report(cute.kernel("k", f)(table.unpack(arguments)):launch {
      grid = grid, block = block, device = "sim:sm_90a", faults = "return"})
  end)
  words.tell = tell
  if not ok then error(r, 0) end
  assert.is_true(r.ok, tostring(r))
  return r
end

-- Returns the notes of a report without place and advice.
local function notes(r)
  local list = {}
  for k, text in ipairs(json.decode(r:json()).notes) do
    list[k] = text:match "^cover_spec.lua:%d+: (.-) %(" or text
  end
  return list
end

local function zeros(...) return cute.zeros({...}, cute.f32) end
local function ones(...) return cute.ones({...}, cute.f32) end

-- Returns the notes of C = A B^T with tiles of 32 x 32 x 16. `how` is a mistake.
local function gemm(M, N, K, grid, how)
  return notes(run(grid, 32, function(mA, mB, mC)
    local t, m, n = arch.thread_idx(), arch.block_idx()
    if how == "swapped" then m, n = n, m end
    local tile, at = {32, 32, 16}, {m, n, cute._}
    local gA = cute.local_tile(mA, tile, at, {1, cute.X, 1})
    local gB = how == "projection"
      and cute.local_tile(mB, tile, at, {1, cute.X, 1})
      or cute.local_tile(mB, tile, at, {cute.X, 1, 1})
    local gC = cute.local_tile(mC, tile, at, {1, 1, cute.X})
    local sums = cute.make_rmem_tensor({32}, cute.f32)
    sums:fill(0)
    cute.range(0, K // 16 - 1, function(k)
      for c = 0, 15 do
        for j = 0, 31 do
          sums[j] = sums[j] + gA[{t, c, k}] * gB[{j, c, k}]
        end
        if how == "column" then return end
      end
    end)
    for j = 0, 31 do gC[{t, j}] = sums[j] end
  end, ones(M, K), ones(N, K), zeros(M, N)))
end
