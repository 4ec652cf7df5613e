-- Tests the text that the emitter writes in place of text that NVRTC 13 or its
-- ptxas compiles incorrectly.
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local jit = require "cute.jit"
local ops = require "spec.ops"
local T = require "spec.kernels"
local arch = cute.arch

-- Loads a constant or a value just written, depending on a condition.
local choose = cute.kernel("choose", function(x, y, z)
  local t = arch.thread_idx()
  y[16 * t + 7] = x[8 * t + 3] + 1
  z[t] = cute.where(cute.lt(x[8 * t], x[8 * t + 1]), x[8 * t + 7],
                    y[16 * t + 7])
end)

local branch = cute.kernel("branch", function(x, y, z)
  local t = arch.thread_idx()
  local v = x[8 * t] * 0
  y[16 * t + 7] = x[8 * t + 3] + 1
  cute.when(cute.lt(x[8 * t], x[8 * t + 1]), function() v = x[8 * t + 7] end,
            function() v = y[16 * t + 7] end)
  z[t] = v
end)

-- Makes a kernel whose loop counts down, or up, to a negated value.
local function counting(first, sign)
  return cute.kernel("counting", function(x, y, z)
    local t = arch.thread_idx()
    local sum = x[8 * t + 4]
    local n = x[8 * t + 6]:to(cute.i32) & 7
    for _ in cute.range(first, -n, sign) do sum = sum + x[8 * t + 5] end
    z[t] = sum
    y[t] = sum
  end)
end

local CASES = {choose = choose, branch = branch, down = counting(3, -1),
               ["down by twos"] = counting(9, -2), up = counting(-12, 1),
               ["up by threes"] = counting(-12, 3)}

-- Makes products of f64 by every atom that supports them. Their warps have one
-- tile of accumulators, several tiles, or several tiles, one of which is
-- stored. Calls f(words, kernel, m, n) for each.
local function each_f64(f)
  for _, shape in ipairs {"8x8x4", "16x8x4", "16x8x8", "16x8x16"} do
    local m, k = shape:match "^(%d+)x8x(%d+)$"
    local mma = (m == "8" and "SM80_" or "SM90_") .. shape
      .. "_F64F64F64F64_TN"
    for _, warps in ipairs {{1, 1}, {2, 1}, {1, 2}, {2, 2}} do
      for _, tiles in ipairs {{1, 1}, {2, 1}, {1, 2}, {2, 2}} do
        local once = {m * warps[1] // 1, 8 * warps[2], k // 1}
        local tile = {once[1] * tiles[1], once[2] * tiles[2], 16}
        for stages = 2, 4 do
          local kernel = gemm_sm80 {name = "sums", tile = tile, mma = mma,
            stages = stages, atoms = {warps[1], warps[2], 1},
            permutation = once}
          local words = ("%s, %dx%d warps of %dx%d, %d stages"):format(mma,
            warps[1], warps[2], tiles[1], tiles[2], stages)
          f(words, kernel, tile[1], tile[2])
          if tiles[1] * tiles[2] > 1 then
            f(words .. ", one stored", kernel, 3, 8)
          end
        end
      end
    end
  end
end

local function operands()
  return T.tensor({256}, cute.f32, function(i) return i * 37 % 23 end),
    cute.zeros({512}, cute.f32), cute.zeros({32}, cute.f32)
end

local function results(kernel, device)
  local x, y, z = operands()
  assert(kernel(x, y, z):launch {grid = 1, block = 32, device = device})
  local list = {}
  for i = 0, 31 do list[i] = z[i] end
  return list
end

describe("what NVRTC gets wrong", function()
  it("is not asked for: constants and what is written, in one load", function()
    if not jit.version() then return pending "needs NVRTC" end
    for _, kernel in ipairs {choose, branch} do
      local x, y, z = operands()
      local ptx = assert(kernel(x, y, z):trace {block = 32}:compile "sm_90a")
        .ptx
      -- No non-coherent load (ld.global.nc) may use an address from a select.
      local chosen = {}
      for name in ptx:gmatch "selp%.b64%s+(%%rd%d+)" do chosen[name] = true end
      for address in ptx:gmatch "ld%.global%.nc[%w.]*%s+[^,]+, %[(%%rd%d+)" do
        assert.is_nil(chosen[address])
      end
    end
  end)

  it("is not asked for: loops down that ptxas unrolls", function()
    local function pragma(first, limit, step)
      local text = cute.kernel("k", function(x)
        local n = limit or arch.thread_idx()
        for i in cute.range(first, n, step) do x[i] = 1.0 end
      end)(cute.zeros({99}, cute.f32)):trace {block = 32}.source
      return text:match "#pragma unroll[^\n]*"
    end
    assert.equal("#pragma unroll 1", pragma(9, nil, -1))
    assert.equal("#pragma unroll 1", pragma(40, nil, -2))
    assert.is_nil(pragma(9, -90, -1))
    assert.is_nil(pragma(0, nil, 1))
  end)

  it("is not asked for: loops of f64 MMAs on sm_90 by ptxas at -O3", function()
    local function first(of, arch_)
      local A, B = cute.zeros({16, 40}, of), cute.zeros({8, 40}, of)
      local C = cute.zeros({16, 8}, of)
      local mma = of == cute.f64 and "SM80_8x8x4_F64F64F64F64_TN"
        or "SM80_16x8x8_F16F16F16F16_TN"
      local k = gemm_sm80 {name = "sums", tile = {32, 32, 16}, stages = 3,
                           mma = mma, atoms = {2, 2, 1}}
      local program = k.kernel(A, B, C):trace {block = k.block, arch = arch_}
      local _, _, _, options = program:cuda()
      assert.equal(program.source:match "Compile with ([^\n]*)%.\n",
                   table.concat(options, " "))
      if jit.version() then assert(program:compile()) end
      return table.concat(options, " ")
    end
    assert.equal("--fmad=false --ptxas-options=-O2", first(cute.f64, "sm_90a"))
    assert.equal("--fmad=false", first(cute.f64, "sm_80"))
    assert.equal("--fmad=false", first(cute.f16, "sm_90a"))
    local careful, all = 0, 0
    each_f64(function(words, k, m, n)
      local A, B = cute.zeros({m, 40}, cute.f64), cute.zeros({n, 40}, cute.f64)
      local C = cute.zeros({m, n}, cute.f64)
      local text = k.kernel(A, B, C):trace {block = k.block, arch = "sm_90a"}
        .source
      local asked = text:find("--ptxas-options=-O2", 1, true) ~= nil
      -- Counts the MMAs in the text: the loop's first and last one, and those
      -- whose result is stored.
      local loop = text:match "for %(int k_tile.-\n  }\n" or ""
      local sums = {}
      for to in loop:gmatch "F64F64_TN%(&?([%w_%[%]]+)," do
        sums[#sums + 1] = to
      end
      local same = sums[1] ~= nil and sums[1] == sums[#sums]
      assert.equal(same or text:find "%] = false;" ~= nil, asked, words)
      all, careful = all + 1, careful + (asked and 1 or 0)
    end)
    assert.is_true(careful > all // 4 and careful < all)
  end)

  it("is right on the card: loops of f64 MMAs #gpu", function()
    local pick = ops.random(1)
    each_f64(function(words, k, m, n)
      local A, B = ops.tensor(pick, {m, 40}, "f64", 1, "k"),
        ops.tensor(pick, {n, 40}, "f64", 2, "k")
      local C = cute.zeros({m, n}, cute.f64)
      k.kernel(A, B, C):launch {grid = k.grid(m, n), block = k.block,
                                device = "gpu"}
      local wrong = ops.differs(A, B, C, function(_, _, _, sum) return sum end)
      assert(not wrong, ("%s: C%s"):format(words, wrong))
    end)
  end)

  for name, kernel in pairs(CASES) do
    it(("is right on the card: %s #gpu"):format(name), function()
      assert.same(results(kernel, "sim"), results(kernel, "gpu"))
    end)
  end
end)
-- SPDX-License-Identifier: MIT
