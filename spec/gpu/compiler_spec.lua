-- Tests that the emitter avoids CUDA C that NVRTC 13, or its ptxas, compiles
-- incorrectly.
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local jit = require "cute.jit"
local ops = require "spec.ops"
local T = require "spec.kernels"
local faults = require "cutelua.text.compiler_faults"
local support = require "spec.support"
local arch = cute.arch

-- Loads either an input or a value that the kernel has just written, depending
-- on a condition.
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

-- Calls f(words, kernel, m, n) for f64 kernels with every atom that supports
-- f64. A warp computes 1, 2 or 4 tiles. If it has several, f is also called for
-- a D that is smaller than one tile. Kernels have 2, 3 and 4 stages or, if
-- `turns` is true, one of these numbers, in rotation.
local function each_f64(f, turns)
  local turn = 0
  for _, shape in ipairs {"8x8x4", "16x8x4", "16x8x8", "16x8x16"} do
    local m, k = shape:match "^(%d+)x8x(%d+)$"
    local mma = (m == "8" and "SM80_" or "SM90_") .. shape
      .. "_F64F64F64F64_TN"
    for _, warps in ipairs {{1, 1}, {2, 1}, {1, 2}, {2, 2}} do
      for _, tiles in ipairs {{1, 1}, {2, 1}, {1, 2}, {2, 2}} do
        local once = {m * warps[1] // 1, 8 * warps[2], k // 1}
        local tile = {once[1] * tiles[1], once[2] * tiles[2], 16}
        turn = turn % 3 + 1
        for stages = turns and 1 + turn or 2, turns and 1 + turn or 4 do
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

describe("code that NVRTC compiles wrongly", function()
  it("is not asked for: constants and what is written, in one load", function()
    if not jit.version() then return pending "needs NVRTC" end
    for _, kernel in ipairs {choose, branch} do
      local x, y, z = operands()
      local ptx = assert(kernel(x, y, z):trace {block = 32}:compile "sm_90a")
        .ptx
      -- No ld.global.nc (a non-coherent load) may use an address from a select.
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

  it("is not asked for: loops of f64 MMAs on sm_90 by ptxas at -O3 #long",
     function()
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
      -- Finds the accumulators of each MMA in the loop over K.
      local loop = text:match "for %(int k_tile.-\n  }\n" or ""
      local sums = {}
      for to in loop:gmatch "F64F64_TN%(&?([%w_%[%]]+)," do
        sums[#sums + 1] = to
      end
      local same = sums[1] ~= nil and sums[1] == sums[#sums]
      assert.equal(same or text:find "%] = false;" ~= nil, asked, words)
      all, careful = all + 1, careful + (asked and 1 or 0)
    end, true)
    assert.is_true(careful > all // 4 and careful < all)
  end)

  it("is right on the GPU: loops of f64 MMAs #gpu", function()
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

---------------------------------------------------------------------------
-- Kernels that users write in CUDA C
---------------------------------------------------------------------------

-- CUDA C that NVRTC 13 compiles wrongly: {words of the expected warning, text},
-- by name. If NVRTC 13 compiles the text correctly, the words are "".
local RAW = {
  select = {"parameter 2, which it writes", [[
extern "C" __global__ void k(const float *__restrict__ x,
    float *__restrict__ y, float *__restrict__ z) {
  int t = threadIdx.x;
  y[16 * t + 7] = x[8 * t + 3] + 1.0f;
  z[t] = x[8 * t] < x[8 * t + 1] ? x[8 * t + 7] : y[16 * t + 7];
}]]},
  ["select of constants"] = {"", [[
extern "C" __global__ void k(const float *__restrict__ x,
    const float *__restrict__ y, float *__restrict__ z) {
  int t = threadIdx.x;
  z[t] = x[8 * t] < x[8 * t + 1] ? x[8 * t + 7] : y[16 * t + 7];
}]]},
  ["select without promises"] = {"", [[
extern "C" __global__ void k(const float *x, float *y, float *z) {
  int t = threadIdx.x;
  y[16 * t + 7] = x[8 * t + 3] + 1.0f;
  z[t] = x[8 * t] < x[8 * t + 1] ? x[8 * t + 7] : y[16 * t + 7];
}]]},
  sum = {"add.noftz.f16x2 an integer add", [[
extern "C" __global__ void k(unsigned a) {
  asm volatile("red.relaxed.cluster.shared::cluster.add.noftz.f16x2 [%0], %1;"
               :: "r"(a), "r"(0x3c003c00u) : "memory");
}]]},
  ["sum of one"] = {"", [[
extern "C" __global__ void k(unsigned a) {
  asm volatile("red.relaxed.cluster.shared::cluster.add.noftz.f16 [%0], %1;"
               :: "r"(a), "h"((unsigned short)0x3c00) : "memory");
}]]},
  down = {"lose iterations of the loop `for (int i = 3; i > -n; --i)`", [[
extern "C" __global__ void k(const float *x, float *z, int n) {
  float s = 0;
  for (int i = 3; i > -n; --i) s += x[i & 7];
  z[0] = s;
}]]},
  ["down by a pragma"] = {"", [[
extern "C" __global__ void k(const float *x, float *z, int n) {
  float s = 0;
  #pragma unroll 1
  for (int i = 3; i > -n; --i) s += x[i & 7];
  for (int i = -n; i < 3; ++i) s += x[i & 7];
  for (int i = n; i > 0; i--) s += x[i & 7];
  z[0] = s;
}]]},
  ["hinted copy"] = {"an illegal instruction of cp.async.cg.shared.global."
    .. "L2::cache_hint", [[
extern "C" __global__ void k(const char *x, char *z) {
  __shared__ __align__(16) char s[512];
  int t = threadIdx.x * 16;
  unsigned to = (unsigned)__cvta_generic_to_shared(s) + t;
  asm volatile("{.reg .b64 p; createpolicy.fractional.L2::evict_last.b64 p;"
               "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, p;"
               "cp.async.wait_all;}" :: "r"(to), "l"(x + t) : "memory");
  z[t] = s[t];
}]]},
  f64 = {"accumulators of an f64 MMA", [[
extern "C" __global__ void k(const double *x, double *z, int n) {
  double a = 0, b = 0;
  for (int i = 0; i < n; i++)
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, "
                 "{%2}, {%3}, {%0,%1};" : "+d"(a), "+d"(b) : "d"(x[i]),
                 "d"(x[i + 1]));
  z[0] = a + b;
}]]}}

describe("kernels in CUDA C that NVRTC is known to break", function()
  local function warned(text, options, target)
    local dir = support.folder()
    local path = support.write(dir .. "/raw.lua", ([[
      local cute = require "cute"
      local k = cute.raw_kernel(%q, {options = {%s}})
      assert(k:compile %q)
      assert(k:compile %q)]]):format(text, options or "", target or "sm_90a",
      target or "sm_90a"))
    local _, err, status = support.run {path}
    support.remove(dir)
    assert.equal(0, status, err)
    return err
  end

  for name, case in pairs(RAW) do
    it("cause a warning, and others none: " .. name, function()
      if not jit.version() then return pending "needs NVRTC" end
      local err = warned(case[2])
      if case[1] == "" then return assert.equal("", err) end
      assert.equal(1, select(2, err:gsub("cutelua: warning: kernel k, by NVRTC "
        .. jit.version():gsub("%p", "%%%0"), "")), err)
      assert.truthy(err:find(case[1], 1, true), err)
    end)
  end

  it("cause no warning if an option or the target avoids the bug", function()
    if not jit.version() then return pending "needs NVRTC" end
    assert.equal("", warned(RAW.f64[2], '"--ptxas-options=-O2"'))
    assert.equal("", warned(RAW.f64[2], nil, "sm_80"))
    assert.equal("", warned(RAW["hinted copy"][2], nil, "sm_80"))
  end)

  it("are not emitted for our kernels", function()
    if not jit.version() then return pending "needs NVRTC" end
    for name, kernel in pairs(CASES) do
      local x, y, z = operands()
      local p = kernel(x, y, z):trace {block = 32}
      local text, _, _, options = p:cuda "sm_90a"
      assert.same({}, faults.find(text, assert(p:compile "sm_90a"),
        {arch = "sm_90a", options = options}), name)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
