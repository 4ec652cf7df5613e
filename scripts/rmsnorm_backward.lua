-- RMSNorm backward: dx of every row, and dw, a sum over all rows.
--
-- A row of dx needs one sum along the row. dw needs one sum down each column.
-- Each block processes its share of the rows and keeps the sums of its columns
-- in registers, so x and dy are read once for both. A second kernel adds the
-- blocks' results, a few hundred rows of f32, in a fixed order. If a row has
-- more elements than the registers of a block can hold, several blocks share
-- the row and exchange their sums along it. The speed is 0.93 to 0.99 of the
-- driver's copy on an H200, for rows of 1024 to 65536 elements.
--   cutelua scripts/rmsnorm_backward.lua --help
local cute = require "cute"
local norm = require "kernels.norm"
local reduce = require "kernels.reduce"

-- Returns the launches for a problem, and the sizes of the tensors `part` and
-- `state`.
local function launches(p)
  local dtype = cute[p.dtype]
  local k = norm.rms_backward {dtype = dtype, n = p.n, weight = true}
  local parts = k.parts(p.rows)
  local sums = reduce.columns {op = "sum", m = parts, n = p.n,
                               dtype = cute.f32}
  return {
    {kernel = k.kernel, grid = k.grid, block = k.block,
     args = {"x", "w", "dy", "rstd", "dx", "part",
             k.states(p.rows) > 0 and "state" or nil}},
    {kernel = sums.kernel, grid = sums.grid, block = sums.block,
     args = {"part", "dw"}}}, parts, k.states(p.rows)
end

require "cutelua.bench.harness".run(arg, {
  about = "RMSNorm backward: dx and dw.",
  dims = {{"rows", "rows of x"}, {"n", "elements of a row"}},
  dtypes = {"bf16", "f16", "f32"},
  sim = {{16, 1000}},
  gpu = {{262144, 1024}, {65536, 4096}, {32768, 8192}, {4096, 65536}},
  operands = function(p)
    local _, parts, states = launches(p)
    return {{"x", {p.rows, p.n}}, {"w", {p.n}}, {"dy", {p.rows, p.n}},
            {"rstd", {p.rows}, dtype = "f32"},
            {"dx", {p.rows, p.n}, out = true},
            {"dw", {p.n}, dtype = "f32", out = true},
            {"part", {parts, p.n}, dtype = "f32", scratch = true},
            states > 0 and {"state", {states}, dtype = "u64", fill = "zero",
                            scratch = true} or nil}
  end,
  make = function(p) return (launches(p)) end,
  pieces = function(p) return p.rows end,
  look = 1 << 18,
  tolerance = {f32 = 1e-4, f16 = 2e-3, bf16 = 8e-3},
  -- Returns row i of dx and, for some i, also column i of dw.
  reference = function(p, i)
    local n, x, dy, rstd, mean, dx = p.n, p.x, p.dy, p.rstd[i], 0, {}
    for k = i * n, i * n + n - 1 do
      mean = mean + dy[k] * p.w[k - i * n] * x[k] * rstd / n
    end
    for k = 0, n - 1 do
      local at = i * n + k
      dx[k + 1] = rstd * (dy[at] * p.w[k] - x[at] * rstd * mean)
    end
    if i >= n or i >= 8 and i % 16 ~= 0 then return {dx = dx} end
    local dw = 0
    for r = 0, p.rows - 1 do
      dw = dw + dy[r * n + i] * x[r * n + i] * p.rstd[r]
    end
    return {dx = dx, dw = {dw, at = i}}
  end,
})
-- SPDX-License-Identifier: MIT
