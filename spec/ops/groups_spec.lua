-- Tests groups of rows in kernels/gemm_sm90, called directly, against plain
-- Lua. Covers all sizes of tiles and all forms of offsets.
local core = require "cute.core"
local cute = require "cute"
local gemm_sm90 = require "kernels.gemm_sm90"
local kernels = require "spec.kernels"
local ops = require "spec.ops"
local support = require "spec.support"
local raises = support.raises

local SIM = "sim:sm_90a"

local function numbers(dtype, seed, ...)
  local shape, n = {...}, 1
  for _, extent in ipairs(shape) do n = n * extent end
  local b = core.buffer(dtype, n)
  b:fill_int(seed, -2, 3)
  return cute.make_tensor(b, cute.make_layout(shape, cute.LayoutRight))
end

-- Returns the kernel's operands for groups with the sizes c.sizes: A, B, D, the
-- offsets, and the first row of each group (nil for masked groups).
local function operands(c)
  local E, at, first = #c.sizes, c.skip or 0, {}
  for e, n in ipairs(c.sizes) do first[e], at = at, at + n end
  first[E + 1] = at
  local B = cute.select(numbers("bf16", 2, E, c.N, c.K), {1, 2, 0})
  if c.form == "rows" then
    local M = math.max(at, 1)
    local D = cute.full({M, c.N + 7 & ~7}, 77, cute.bf16)
    D = cute.make_tensor(D.iterator, cute.make_layout({M, c.N}, D.stride))
    return numbers("bf16", 1, M, c.K), B, D,
           {offsets = cute.tensor(first, cute.i32)}, first
  end
  local D = cute.full({E, c.most, c.N + 7 & ~7}, 77, cute.bf16)
  return cute.select(numbers("bf16", 1, E, c.most, c.K), {1, 2, 0}), B,
    cute.make_tensor(D.iterator, cute.make_layout({c.most, c.N, E},
      {D.stride[2], 1, D.stride[1]})),
    {counts = cute.tensor(c.sizes, cute.i64)}
end

-- Runs a case, and describes the first wrong element.
local function wrong(c, device)
  local A, B, D, where, first = operands(c)
  local o = {groups = c.form}
  for name, v in pairs(c.options) do o[name] = v end
  local function there(t) return device == "gpu" and t:to "gpu" or t end
  for name, t in pairs(where) do where[name] = there(t) end
  local on = there(D)
  assert(gemm_sm90(o).prepare(there(A), there(B), on,
    {device = device, sms = 8, workspace = where})):launch()
  D = on:to "host"
  local mine = {}
  for e, n in ipairs(c.sizes) do
    for i = 0, n - 1 do
      local row = first and first[e] + i or i
      mine[first and row or (e - 1) * c.most + i] = true
      for j = i % 7, c.N - 1, 7 do
        local sum = 0
        for k = 0, c.K - 1 do
          sum = sum + (first and A(row, k) or A(row, k, e - 1)) * B(j, k, e - 1)
        end
        local x = first and D(row, j) or D(row, j, e - 1)
        if x ~= sum then
          return ("group %d: (%d,%d) is %s, not %s"):format(e - 1, i, j, x, sum)
        end
      end
    end
  end
  for row = 0, (first and 1 or #c.sizes) * D.shape[1] - 1 do
    for j = 0, mine[row] and -1 or c.N - 1 do
      local x = first and D(row, j) or D(row % c.most, j, row // c.most)
      if x ~= 77 then return ("row %d, nobody's, has %s"):format(row, x) end
    end
  end
end

local TILES = {
  {tile = {128, 256, 64}, cluster = {1, 2}, stages = 3, epi_stages = 4},
  {tile = {256, 208, 64}, cluster = {1, 2}, stages = 3, epi_stages = 1},
  {tile = {128, 64, 64}, schedule = "pingpong", stages = 3},
  {tile = {128, 48, 64}, cluster = {2, 1}},
  {tile = {64, 8, 64}, consumers = 1},
  {tile = {64, 24, 64}, consumers = 1, cluster = {1, 4}, stages = 2}}

-- Returns the nth random case.
local function random(n)
  local pick = ops.random(n)
  local c = {sizes = {}, form = pick {"rows", "masked", "rows"},
             N = 1 + pick(150), K = 8 * (1 + pick(12)), options = {}}
  for e = 1, 1 + pick(5) do
    c.sizes[e] = pick {0, 1, 7, 63, 64, 65, 100, 127, 128, 129, 200, 260}
  end
  c.most = 260 + pick(3)
  if c.form == "rows" then c.skip = pick {0, 0, 5, 300} end
  for name, v in pairs(pick(TILES)) do c.options[name] = v end
  return c
end

local function text(n, c)
  return ("%d: %s of %s, N %d, K %d, tile %s"):format(n, c.form,
    table.concat(c.sizes, ","), c.N, c.K, table.concat(c.options.tile, "x"))
end

describe("groups of rows on Hopper", function()
  for first = 1, 6, 5 do
    it(("are right at random, from %d on"):format(first)
       .. support.long(first), function()
      for n = first, first + 4 do
        local c = random(n)
        assert.is_nil(wrong(c, SIM), text(n, c))
      end
    end)
  end
  it("are right at random on a card #gpu", function()
    for n = 101, 140 do
      local c = random(n)
      assert.is_nil(wrong(c, "gpu"), text(n, c))
    end
  end)

  it("have all their rows' tiles beside each other, by rule", function()
    local o = gemm_sm90.choose(64 * 2000, 4096, 4096, {groups = "rows"})
    assert.same({32, false}, {o.swizzle, o.raster_along_m or false})
  end)

  it("are kernels that compile, without spills", function()
    for i = 1, 2 do
      local c = {form = "rows", sizes = {300}, N = 256, K = 128, options = {}}
      local A, B, D, where = operands(c)
      local o = {groups = "rows"}
      for name, v in pairs(TILES[i]) do o[name] = v end
      local g = gemm_sm90(o)
      local args = g.arguments(A, B, D, nil, nil, where)
      local out = kernels.compiled(g.kernel(table.unpack(args, 1, args.n))
        :trace {cluster = g.cluster}, "sm_90a")
      assert.equal(0, out and out.resources.spill_stores or 0)
    end
  end)

  it("of columns are rejected: TMA's boxes begin on 16 bytes", function()
    raises("groups = \"rows\" with a_major = \"k\" and d_major = \"m\"",
           gemm_sm90, {groups = "rows", d_major = "m"})
    raises("a_major = \"m\"", gemm_sm90, {groups = "rows", a_major = "m"})
  end)
end)
-- SPDX-License-Identifier: MIT
