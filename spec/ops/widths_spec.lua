-- Tests gemm_sm90 with tiles as narrow as the product's number of columns
-- allows.
local choose = require "cute.ops.choose"
local cute = require "cute"
local gemm = require "cute.ops.gemm"
local gemm_sm90 = require "kernels.gemm_sm90"
local plans = require "cute.ops.plan"

-- Returns the set of tile widths of the candidates with tiles of bm rows, for a
-- product of m by n by k. Candidates with other options do not count.
local function widths(bm, m, n, k, o)
  local set = {}
  for _, c in ipairs(gemm_sm90.candidates(m, n, k, o)) do
    local x = c.options
    if x.tile[1] == bm and not (x.cluster or x.split or x.schedule) then
      set[x.tile[2]] = true
    end
  end
  return set
end

describe("tiles of gemm_sm90", function()
  it("are as narrow as serves as many, in whole swizzle patterns", function()
    local set = widths(128, 4096, 129, 8192)
    -- 129 columns fit in one tile of width 136, or in two tiles of width 72 or
    -- 128.
    assert.is_true(set[72] and set[136] and set[128])
    for w in pairs(set) do assert.equal(0, w % 8) end
    -- 289 columns fit in four tiles of width 80, three of 104, or two of 152.
    set = widths(128, 4096, 289, 8192)
    assert.is_true(set[80] and set[104] and set[152])
    -- The narrowest tile has about half of the original width.
    for w in pairs(widths(256, 4096, 64, 512)) do assert.is_true(w >= 96) end
  end)

  it("are as many as whole waves hold", function()
    -- There are 112 tiles along M. One wave of 132 blocks has space for one
    -- tile along N, two waves for two, and four waves for four tiles of 128
    -- columns.
    assert.is_true(widths(128, 14336, 512, 4096)[128])
    -- There are 4 tiles along M. One, two and three waves of 132 blocks have
    -- space for 33, 66 and 99 tiles along N.
    local set = widths(128, 512, 14336, 4096)
    assert.is_true(set[224] and set[152] and set[112])
    assert.is_nil(widths(128, 512, 14336, 4096, {sms = 100})[224])
    assert.is_true(widths(128, 128, 57344, 8192)[224])  -- 256
  end)

  it("stay if columns belong together, in groups and in gates",
     function()
    local function whole(o)
      for _, w in ipairs {40, 72, 80, 88, 104, 136} do
        assert.is_nil(widths(128, 4096, 129, 8192, o)[w])
      end
    end
    whole {b_major = "n"}
    whole {groups = "rows"}
    whole {gated = true}
  end)

  it("have names of their own", function()
    local A, B = cute.empty({129, 136}, cute.bf16),
      cute.empty({200, 136}, cute.bf16)
    local _, list = gemm.offers(A, B, {device = "sim:sm_90a"})
    local seen = {}
    for _, c in ipairs(list) do
      local name = choose.name(c)
      assert.is_nil(seen[name], name)
      seen[name] = true
    end
  end)

  it("are in a fixed order if their estimates are equal", function()
    local A, B = cute.empty({61, 1536}, cute.bf16),
      cute.empty({1024, 1536}, cute.bf16)
    local _, list = gemm.offers(A, B, {device = "sim:sm_90a"})
    local equal = 0
    for i = 2, #list do
      local x, y = list[i - 1], list[i]
      if x.ns == y.ns and x.swap == y.swap then
        equal = equal + 1
        local d = 0
        for k = 1, 3 do
          if d == 0 then d = (x.tile[k] or 0) - (y.tile[k] or 0) end
        end
        assert.is_true(d > 0 or d == 0 and x.at < y.at, choose.name(y))
      end
    end
    assert.is_true(equal > 0)
  end)

  it("multiply as others do #long", function()
    local m, n, k = 129, 136, 136
    local A = cute.randint(-3, 4, {m, k}, cute.bf16, {seed = 1})
    local B = cute.randint(-3, 4, {n, k}, cute.bf16, {seed = 2})
    local want = {}
    for i = 0, m - 1 do
      for j = 0, n - 1 do
        local sum = 0
        for x = 0, k - 1 do sum = sum + A(i, x) * B(j, x) end
        want[i * n + j] = sum
      end
    end
    local left = {["64x72x64"] = true, ["128x72x64"] = true,
                  ["128x80x64"] = true, ["128x144x64"] = true,
                  ["256x136x64"] = true, ["64x48x64"] = true}
    local D = cute.zeros({m, n}, cute.f32)
    local p, list, call = gemm.offers(A, B, {out = D, device = "sim:sm_90a"})
    for _, c in ipairs(list) do
      local name = table.concat(c.tile, "x")
      if c.base == "gemm_sm90" and left[name] then
        left[name] = nil
        for i = 0, m * n - 1 do D[i] = 0 / 0 end
        plans.new(p, c, call):prepare(call, {D}):launch()
        local wrong = 0
        for i = 0, m - 1 do
          for j = 0, n - 1 do
            if D(i, j) ~= want[i * n + j] then wrong = wrong + 1 end
          end
        end
        assert.equal(0, wrong, choose.name(c))
      end
    end
    assert.same({}, left)
  end)
end)
-- SPDX-License-Identifier: MIT
