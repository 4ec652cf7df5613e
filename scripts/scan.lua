-- Prefix sums along rows, and of one long row in a single pass.
--
-- A row is read once and written once. The lanes and warps of a block pass
-- their sums to each other. A single row is processed by all blocks at once.
-- Each block publishes the total of its tile in global memory immediately. It
-- then waits for the totals of all tiles since its previous one, and adds them.
-- A counter assigns tiles to blocks in the order in which the blocks start. So
-- no block waits for a block that has not started.
--   cutelua scripts/scan.lua --help
local cute = require "cute"
local scan = require "kernels.scan"

local PIECE = 4096

-- Returns the sum of all elements of a row before its piece i. Caches the
-- prefix sums in p.sums.
local function before(p, row, i)
  p.sums = p.sums or {}
  local sums = p.sums[row] or {[0] = 0}
  p.sums[row] = sums
  for k = #sums + 1, i do
    local sum, at = sums[k - 1], row * p.n + (k - 1) * PIECE
    for j = at, at + PIECE - 1 do sum = sum + p.x[j] end
    sums[k] = sum
  end
  return sums[i]
end

require "cutelua.bench.harness".run(arg, {
  about = "Running sums along rows (one row: by all blocks in one pass).",
  dims = {{"rows", "rows of x"}, {"n", "elements of a row"}},
  dtypes = {"f32", "bf16", "f16", "i32"},
  sim = {{5, 3000}, {1, 20001}},
  gpu = {{262144, 1024}, {32768, 8192}, {4096, 65536}, {1, 1 << 26}},
  operands = function(p)
    local list = {{"x", {p.rows, p.n}}, {"y", {p.rows, p.n}, out = true}}
    if p.rows == 1 then
      list[3] = {"state", {1 << 20}, dtype = "u64", fill = "zero",
                 scratch = true}
    end
    return list
  end,
  make = function(p)
    return scan {dtype = cute[p.dtype], n = p.n, one_pass = p.rows == 1}
  end,
  pieces = function(p) return p.rows * ((p.n + PIECE - 1) // PIECE) end,
  reference = function(p, i)
    local pieces = (p.n + PIECE - 1) // PIECE
    local row, piece = i // pieces, i % pieces
    local y = {at = row * p.n + piece * PIECE}
    local sum = before(p, row, piece)
    for k = 1, math.min(PIECE, p.n - piece * PIECE) do
      sum = sum + p.x[y.at + k - 1]
      y[k] = sum
    end
    return {y = y}
  end,
})
-- SPDX-License-Identifier: MIT
